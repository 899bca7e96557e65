/* test_gpu_record.c: recorded code on the emulated card: the processor's values, the pool that its
 * tensors and variables lie in, what plans may take beside it, and failures of each request. */
#include "support/gpu_card.h"

#include "base/rng.h"
#include "exec/gpu_pool.h"

#include <snug/record.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 33, N_RECORDED = ROWS * COLUMNS };

/* v += x * x; what it holds then. */
static snug_status add_squares(snug_recorder *r, snug_variable *v, snug_tensor *x, float *out,
                               snug_error *err) {
    snug_tensor *in[2] = {x, x}, *square = NULL, *now = NULL;
    snug_status status = snug_record_op(r, "mul", "", in, 2, &square, 1, err);
    if (status == SNUG_OK)
        status = snug_variable_update(r, "assign_add", "", &v, 1, &square, 1, err);
    if (status == SNUG_OK)
        status = snug_variable_read(v, &now, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(now, out, N_RECORDED * sizeof *out, err);
    snug_tensor_drop(square);
    snug_tensor_drop(now);
    return status;
}

static snug_status record(snug_recorder *r, float *out, snug_error *err) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {ROWS, COLUMNS}};
    float values[N_RECORDED];
    snug_tensor *start = NULL, *x = NULL, *part = NULL, *twice = NULL;
    snug_variable *v = NULL;
    for (int i = 0; i < N_RECORDED; i++)
        values[i] = (float)(i % 17);
    snug_status status = snug_tensor_copy(r, &type, values, &x, err);
    if (status == SNUG_OK)
        status = snug_tensor_full(r, &type, 1, &start, err);
    if (status == SNUG_OK)
        status = snug_variable_create(r, start, NULL, &v, err);
    for (int i = 0; status == SNUG_OK && i < 4; i++) {
        snug_recorder_place(r, i == 2);
        status = add_squares(r, v, x, out, err);
    }
    if (status == SNUG_OK)
        status = snug_tensor_rows(x, 3, 8, &part, err);
    if (status == SNUG_OK)
        status = snug_record_op(r, "add", "", (snug_tensor *[]){part, part}, 2, &twice, 1, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(twice, out, 8 * COLUMNS * sizeof *out, err);
    snug_tensor_drop(start);
    snug_tensor_drop(x);
    snug_tensor_drop(part);
    snug_tensor_drop(twice);
    snug_variable_drop(v);
    return status;
}

static snug_status whole_recording(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r = NULL;
    float out[N_RECORDED];
    snug_status status = open_gpu(e, 0, err);
    if (status == SNUG_OK)
        status = snug_recorder_create(e, &r, err);
    if (status == SNUG_OK)
        status = record(r, ctx ? ctx : out, err);
    snug_recorder_destroy(r);
    if (snug_device(e, "cpu", NULL, NULL) != SNUG_OK)
        return SNUG_E_INTERNAL;
    assert_int_equal(card()->held_bytes, 0);
    return status;
}

static void test_recorded_code_gives_the_processors_values(void **state) {
    snug_error err;
    snug_recorder *r;
    float here[N_RECORDED], there[N_RECORDED];
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    expect_ok(record(r, here, &err), &err);
    snug_recorder_destroy(r);
    expect_ok(whole_recording(*state, there, &err), &err);
    assert_memory_equal(here, there, sizeof here);
}

static void test_recorded_code_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(whole_recording, NULL);
}

/* Takes and gives at random: blocks never overlap, and all of it goes back. */
static void test_the_pool_keeps_blocks_apart(void **state) {
    enum { MANY = 64, TURNS = 4000 };
    snug_error err;
    sn_gpu_block *held[MANY] = {NULL};
    sn_gpu_pool_info info;
    expect_ok(open_gpu(*state, 0, &err), &err);
    sn_gpu_device *d = sn_engine_gpu(*state);
    const size_t before = card()->held_bytes;
    for (uint64_t i = 0; i < TURNS; i++) {
        const uint64_t draw = sn_rng_key(3, i);
        const size_t k = draw % MANY, bytes = (size_t)1 << (draw >> 8) % 22;
        if (held[k]) {
            sn_gpu_pool_give(d, held[k]);
            held[k] = NULL;
            continue;
        }
        expect_ok(sn_gpu_pool_take(d, "a block", bytes, &held[k], &err), &err);
        assert_int_equal((uintptr_t)held[k]->data % SN_GPU_ALIGN, 0);
        for (size_t j = 0; j < MANY; j++)
            if (j != k && held[j])
                assert_true(held[j]->data + held[j]->bytes <= held[k]->data ||
                            held[k]->data + bytes <= held[j]->data);
    }
    for (size_t k = 0; k < MANY; k++)
        sn_gpu_pool_give(d, held[k]);
    sn_gpu_pool_tell(d, &info);
    assert_int_equal(info.used_bytes, 0);
    assert_int_equal(info.idle_bytes, info.chunk_bytes);
    sn_gpu_pool_trim(d);
    assert_int_equal(card()->held_bytes, before);
}

#define MIB ((size_t)1 << 20)

/* A budget with so many left now. */
static sn_gpu_device *open_with_left(snug_engine *e, size_t left) {
    snug_error err;
    expect_ok(open_gpu(e, 0, &err), &err);
    expect_ok(snug_device_budget(e, fresh.context_bytes + card()->held_bytes + left, &err), &err);
    return sn_engine_gpu(e);
}

static void take_and_give(sn_gpu_device *d, const size_t *bytes, int n) {
    snug_error err;
    sn_gpu_block *held[4];
    for (int i = 0; i < n; i++)
        expect_ok(sn_gpu_pool_take(d, "a block", bytes[i], &held[i], &err), &err);
    for (int i = 0; i < n; i++)
        sn_gpu_pool_give(d, held[i]);
}

static size_t idle_bytes(const sn_gpu_device *d) {
    sn_gpu_pool_info info;
    sn_gpu_pool_tell(d, &info);
    return info.idle_bytes;
}

static void test_free_chunks_give_way_where_that_makes_room(void **state) {
    sn_gpu_device *d = open_with_left(*state, 8 * MIB);
    take_and_give(d, (size_t[]){6 * MIB}, 1);
    assert_true(sn_gpu_has_beside(d, MIB));
    assert_false(sn_gpu_has_beside(d, 9 * MIB));
    assert_int_equal(idle_bytes(d), 6 * MIB);
    assert_true(sn_gpu_has_beside(d, 4 * MIB));
    assert_int_equal(idle_bytes(d), 0);
}

/* 250 of 256 MiB: the one in between is too many. */
static void test_the_pool_keeps_every_chunk_that_it_may(void **state) {
    sn_gpu_device *d = open_with_left(*state, 400 * MIB);
    take_and_give(d, (size_t[]){50 * MIB, 100 * MIB, 200 * MIB}, 3);
    assert_int_equal(idle_bytes(d), 250 * MIB);
}

static void test_blocks_are_booked_with_what_they_leave_to_none(void **state) {
    static const size_t sizes[] = {0, 700 << 10, (1 << 20) - 256, (1 << 20) - 1, 1 << 20};
    enum { MANY = 6 };
    snug_error err;
    sn_gpu_block *held[MANY];
    sn_gpu_pool_info info;
    sn_gpu_device *d = open_with_left(*state, 64 * MIB);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int i = 0; i < MANY; i++)
            expect_ok(sn_gpu_pool_take(d, "a block", sizes[s], &held[i], &err), &err);
        sn_gpu_pool_tell(d, &info);
        assert_true(info.used_bytes <= MANY * sn_gpu_pool_bytes(d, sizes[s]));
        assert_true(info.chunk_bytes <=
                    MANY * sn_gpu_pool_bytes(d, sizes[s]) + sn_gpu_pool_slack(d));
        for (int i = 0; i < MANY; i++)
            sn_gpu_pool_give(d, held[i]);
        sn_gpu_pool_trim(d);
    }
}

/* The emulated card has granules of 64 KiB. */
static void test_a_block_takes_whole_granules_of_the_budget(void **state) {
    snug_error err;
    void *block;
    sn_gpu_device *d = open_with_left(*state, 96 << 10);
    expect_status(sn_gpu_take(d, "a block", (64 << 10) + 1, &block, &err), SNUG_E_BUDGET, &err);
    expect_ok(sn_gpu_take(d, "a block", 64 << 10, &block, &err), &err);
    sn_gpu_give(d, block);
}

static int always(void *ctx) {
    (void)ctx;
    return 1;
}

/* It is planned with room for what it takes when it first runs, and it has not run. */
static void test_a_plan_that_never_ran_is_served_with_its_reserve(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {ROWS, COLUMNS}};
    const snug_recorder_hooks stop = {.interrupt = always}, none = {.interrupt = NULL};
    static float zero[N_RECORDED];
    snug_error err;
    snug_recorder *r;
    snug_recorder_info info;
    snug_tensor *x, *twice;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    expect_ok(snug_tensor_copy(r, &type, zero, &x, &err), &err);
    for (int i = 0; i < 2; i++) {
        float out[N_RECORDED];
        snug_recorder_set_hooks(r, i == 0 ? &stop : &none);
        expect_ok(snug_record_op(r, "add", "", (snug_tensor *[]){x, x}, 2, &twice, 1, &err), &err);
        if (i == 1)
            expect_ok(snug_device_budget(*state, fresh.context_bytes + card()->held_bytes + 5 * MIB,
                                         &err),
                      &err);
        expect_status(snug_tensor_read(twice, out, sizeof out, &err),
                      i == 0 ? SNUG_E_INTERRUPTED : SNUG_OK, &err);
        snug_tensor_drop(twice);
    }
    snug_recorder_tell(r, &info);
    assert_true(info.n_hits == 0 && info.n_misses == 2);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
}

/* Of each column the sum of its squares. */
enum { TALL = 4096, WIDE = 1024 };

static snug_status sum_squares(snug_recorder *r, snug_tensor *x, float *out, snug_error *err) {
    snug_tensor *square = NULL, *sum = NULL;
    snug_status status = snug_record_op(r, "mul", "", (snug_tensor *[]){x, x}, 2, &square, 1, err);
    if (status == SNUG_OK)
        status = snug_record_op(r, "sum", "axes=0", &square, 1, &sum, 1, err);
    snug_tensor_drop(square);
    if (status == SNUG_OK)
        status = snug_tensor_read(sum, out, WIDE * sizeof *out, err);
    snug_tensor_drop(sum);
    return status;
}

/* 16 MiB within a budget that leaves 14, or 5 once they are there: plans bring them in slices, from
 * the host, and later batches have a plan at hand. */
static void test_a_batch_larger_than_what_is_left_is_fed_in_slices(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {TALL, WIDE}};
    static float values[TALL * WIDE], here[WIDE], there[WIDE];
    snug_error err;
    snug_recorder *r;
    snug_recorder_info info;
    snug_tensor *x;
    for (int i = 0; i < TALL * WIDE; i++)
        values[i] = (float)(i % 1013) / 1013;
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    expect_ok(snug_tensor_copy(r, &type, values, &x, &err), &err);
    expect_ok(sum_squares(r, x, here, &err), &err);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
    for (int later = 0; later < 2; later++) {
        if (later)
            expect_ok(open_gpu(*state, 0, &err), &err);
        else
            (void)open_with_left(*state, 14 * MIB);
        expect_ok(snug_recorder_create(*state, &r, &err), &err);
        for (int batch = 0; batch < 3; batch++) {
            expect_ok(snug_tensor_copy(r, &type, values, &x, &err), &err);
            if (later && batch == 0)
                expect_ok(snug_device_budget(
                              *state, fresh.context_bytes + card()->held_bytes + 5 * MIB, &err),
                          &err);
            expect_ok(sum_squares(r, x, there, &err), &err);
            for (int i = 0; i < WIDE; i++)
                assert_float_equal(there[i], here[i], 1e-3);
            snug_tensor_drop(x);
            snug_recorder_tell(r, &info);
            assert_true(info.slices > 1);
        }
        assert_true(info.n_hits > 0);
        snug_recorder_destroy(r);
    }
}

/* Its bytes on the host alone. */
static snug_tensor *fresh_tensor(snug_recorder *r, const snug_type *type, float first) {
    snug_error err;
    snug_tensor *t;
    void *data;
    expect_ok(snug_tensor_fresh(r, type, &t, &data, &err), &err);
    for (int64_t i = 0; i < type->dims[0] * type->dims[1]; i++)
        ((float *)data)[i] = first + (float)(i % 7);
    return t;
}

/* The same bytes as two leaves: one is a result as it is and goes to the card, the other is fed. */
static void test_a_batch_that_is_fed_stays_while_its_twin_is_brought(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {TALL, WIDE}};
    static float sums[WIDE];
    snug_error err;
    snug_recorder *r;
    snug_tensor *twin, *whole;
    (void)open_with_left(*state, 40 * MIB);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    snug_tensor *x = fresh_tensor(r, &type, 0);
    expect_ok(snug_tensor_rows(x, 0, TALL, &twin, &err), &err);
    expect_ok(snug_record_op(r, "identity", "", &twin, 1, &whole, 1, &err), &err);
    expect_ok(sum_squares(r, x, sums, &err), &err);
    float sum = 0;
    for (int row = 0; row < TALL; row++)
        sum += (float)(row * WIDE % 7 * (row * WIDE % 7));
    assert_float_equal(sums[0], sum, 1e-3);
    snug_tensor_drop(whole);
    snug_tensor_drop(twin);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
}

static size_t tensors_there(const snug_recorder *r) {
    snug_recorder_device there;
    snug_recorder_tell_device(r, &there);
    return there.tensor_bytes;
}

/* Runs something that has nothing to do with it. */
static snug_status run_other(snug_recorder *r, snug_error *err) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {ROWS, COLUMNS}};
    static float out[N_RECORDED];
    snug_tensor *x = fresh_tensor(r, &type, 1), *twice = NULL;
    snug_status status = snug_record_op(r, "add", "", (snug_tensor *[]){x, x}, 2, &twice, 1, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(twice, out, sizeof out, err);
    snug_tensor_drop(x);
    snug_tensor_drop(twice);
    return status;
}

/* But not where it would take most of what is left, nor by a run that was stopped. */
static void test_a_batch_is_brought_while_another_runs(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {TALL, WIDE}};
    const size_t bytes = TALL * WIDE * sizeof(float);
    const snug_recorder_hooks stop = {.interrupt = always}, none = {.interrupt = NULL};
    static float here[WIDE], there[WIDE];
    snug_error err;
    snug_recorder *r;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    for (int kind = 0; kind < 3; kind++) {
        snug_tensor *x = fresh_tensor(r, &type, (float)kind);
        const size_t before = tensors_there(r), on_host = snug_engine_bytes(*state);
        snug_recorder_trim(r);
        const size_t tight = fresh.context_bytes + card()->held_bytes + 20 * MIB;
        expect_ok(snug_device_budget(*state, kind == 1 ? tight : 0, &err), &err);
        snug_recorder_set_hooks(r, kind == 2 ? &stop : &none);
        snug_tensor_bring(x);
        expect_status(run_other(r, &err), kind == 2 ? SNUG_E_INTERRUPTED : SNUG_OK, &err);
        snug_recorder_set_hooks(r, &none);
        assert_int_equal(tensors_there(r), before + (kind == 0 ? bytes : 0));
        if (kind == 0)
            assert_true(snug_engine_bytes(*state) < on_host - bytes / 4);
        expect_ok(sum_squares(r, x, there, &err), &err);
        for (int c = 0; c < WIDE; c++)
            here[c] = 0;
        for (int64_t i = 0; i < TALL * WIDE; i++)
            here[i % WIDE] += (float)((kind + i % 7) * (kind + i % 7));
        assert_memory_equal(here, there, sizeof here); /* whole numbers */
        snug_tensor_drop(x);
    }
    snug_recorder_destroy(r);
}

static void test_a_batch_brought_ahead_counts_in_the_peak(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {TALL, WIDE}};
    const size_t bytes = TALL * WIDE * sizeof(float);
    snug_recorder_device there;
    snug_error err;
    snug_recorder *r;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    snug_tensor *x = fresh_tensor(r, &type, 1);
    expect_ok(run_other(r, &err), &err);
    snug_recorder_reset_peak(r);
    snug_tensor_bring(x);
    snug_tensor_drop(x); /* gone as soon as the step is done */
    expect_ok(run_other(r, &err), &err);
    snug_recorder_tell_device(r, &there);
    assert_true(there.bytes < bytes && there.peak_bytes >= bytes);
    snug_recorder_destroy(r);
}

/* The pinned pieces for that are the host's memory: not where its budget is taken up. */
static void test_a_batch_is_not_brought_ahead_beyond_the_hosts_budget(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {TALL, WIDE}};
    snug_error err;
    snug_recorder *r;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    snug_tensor *x = fresh_tensor(r, &type, 1);
    expect_ok(run_other(r, &err), &err);
    const size_t before = tensors_there(r), held = snug_engine_bytes(*state);
    expect_ok(snug_budget(*state, held + MIB, &err), &err);
    snug_tensor_bring(x);
    expect_ok(run_other(r, &err), &err);
    assert_int_equal(tensors_there(r), before);
    assert_true(snug_engine_bytes(*state) < held + MIB);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
}

/* A value that somebody looks at is on both sides: where a step has no room, it leaves the card. */
static void test_what_is_on_both_sides_leaves_the_card_for_a_step(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {TALL, WIDE}};
    const size_t bytes = TALL * WIDE * sizeof(float);
    static float sums[WIDE];
    snug_error err;
    snug_recorder *r;
    snug_tensor *x, *y, *square, *other;
    snug_view look;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    x = fresh_tensor(r, &type, 2);
    expect_ok(snug_record_op(r, "mul", "", (snug_tensor *[]){x, x}, 2, &square, 1, &err), &err);
    snug_tensor_drop(x);
    expect_ok(snug_tensor_pin(square, &look, &err), &err);
    assert_true(tensors_there(r) >= bytes);
    expect_ok(snug_device_budget(*state, fresh.context_bytes + card()->held_bytes + 14 * MIB, &err),
              &err);
    y = fresh_tensor(r, &type, 1);
    expect_ok(snug_record_op(r, "mul", "", (snug_tensor *[]){y, y}, 2, &other, 1, &err), &err);
    snug_tensor_drop(y);
    expect_ok(snug_sync(r, &err), &err);
    assert_true(tensors_there(r) < 2 * bytes);
    assert_float_equal(((const float *)look.data)[5], 49, 0);
    snug_tensor_unpin(square);
    snug_tensor_drop(other);
    expect_ok(sum_squares(r, square, sums, &err), &err);
    snug_tensor_drop(square);
    snug_recorder_destroy(r);
}

/* Four times 2^62 bytes would be none. */
static void test_the_sum_of_results_does_not_wrap(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {1 << 30, 1 << 30}};
    static const char *const ops[] = {"neg", "exp", "tanh", "sigmoid"};
    snug_error err;
    snug_recorder *r;
    snug_tensor *full, *huge[4];
    float none;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    expect_ok(snug_tensor_full(r, &type, 1, &full, &err), &err);
    for (int i = 0; i < 4; i++)
        expect_ok(snug_record_op(r, ops[i], "", &full, 1, &huge[i], 1, &err), &err);
    snug_tensor_drop(full);
    expect_status(snug_tensor_read(huge[0], &none, (size_t)1 << 62, &err), SNUG_E_OVERFLOW, &err);
    expect_text(err.text, "exceed the address space");
    for (int i = 0; i < 4; i++)
        snug_tensor_drop(huge[i]);
    snug_recorder_destroy(r);
}

/* A capture takes some more than 4 MiB. */
static void test_a_tight_moment_does_not_forbid_captures(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {ROWS, COLUMNS}};
    static float out[N_RECORDED];
    snug_error err;
    snug_recorder *r;
    snug_tensor *x;
    snug_variable *v;
    snug_recorder_info info;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    expect_ok(snug_tensor_copy(r, &type, out, &x, &err), &err);
    expect_ok(snug_variable_create(r, x, NULL, &v, &err), &err);
    for (int i = 0; i < 2; i++) /* the first one makes the variable */
        expect_ok(add_squares(r, v, x, out, &err), &err);
    snug_recorder_tell(r, &info);
    const uint64_t planned = info.n_misses;
    const size_t taken = fresh.context_bytes + card()->held_bytes;
    expect_ok(snug_device_budget(*state, taken + 4 * MIB + 4096, &err), &err);
    for (int i = 0; i < 4; i++)
        expect_ok(add_squares(r, v, x, out, &err), &err);
    assert_int_equal(card()->n_replays, 0);
    expect_ok(snug_device_budget(*state, 0, &err), &err);
    for (int i = 0; i < 4; i++)
        expect_ok(add_squares(r, v, x, out, &err), &err);
    assert_true(card()->n_replays > 0);
    snug_recorder_tell(r, &info);
    assert_int_equal(info.n_misses, planned); /* the same plan */
    snug_variable_drop(v);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        gpu_test(test_recorded_code_gives_the_processors_values),
        gpu_test(test_recorded_code_survives_any_failed_request),
        gpu_test(test_the_pool_keeps_blocks_apart),
        gpu_test(test_free_chunks_give_way_where_that_makes_room),
        gpu_test(test_the_pool_keeps_every_chunk_that_it_may),
        gpu_test(test_blocks_are_booked_with_what_they_leave_to_none),
        gpu_test(test_a_block_takes_whole_granules_of_the_budget),
        gpu_test(test_a_plan_that_never_ran_is_served_with_its_reserve),
        gpu_test(test_a_tight_moment_does_not_forbid_captures),
        gpu_test(test_the_sum_of_results_does_not_wrap),
        gpu_test(test_a_batch_larger_than_what_is_left_is_fed_in_slices),
        gpu_test(test_a_batch_that_is_fed_stays_while_its_twin_is_brought),
        gpu_test(test_a_batch_is_brought_while_another_runs),
        gpu_test(test_a_batch_brought_ahead_counts_in_the_peak),
        gpu_test(test_a_batch_is_not_brought_ahead_beyond_the_hosts_budget),
        gpu_test(test_what_is_on_both_sides_leaves_the_card_for_a_step),
        late_gpu_test(test_recorded_code_gives_the_processors_values),
        late_gpu_test(test_a_batch_larger_than_what_is_left_is_fed_in_slices),
        late_gpu_test(test_a_batch_is_brought_while_another_runs),
    };
    return cmocka_run_group_tests_name("gpu_record", tests, NULL, NULL);
}
