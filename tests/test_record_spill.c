/* test_record_spill.c: recorded training steps whose optimizer waits in a file: the bits of steps
 * in memory, wherever slots lie when somebody reads, assigns or uses them; plans that stay the same
 * when other slots lie elsewhere in the file; a disk or a memory that fails. Byte limit: 64 MiB. */
#include <stdio.h>
#include <string.h>

#include "record/recording.h"
#include "support/bench.h"
#include "support/files.h"

#include <snug/layer.h>

#define OK(call) expect_ok((call), &w->err)

enum { N_WEIGHTS = 5, SIDE = 512, COUNT = SIDE * SIDE, N_SLOTS = 2 * N_WEIGHTS };
static const snug_type square = {SNUG_F32, 2, {SIDE, SIDE}};

typedef struct {
    snug_engine *engine;
    snug_recorder *r;
    snug_error err;
    sn_test_dir dir;
    snug_variable *weight[N_WEIGHTS];
    snug_optimizer *optimizer;
} world;

static void make_optimizer(world *w) {
    OK(snug_optimizer_create(w->r, "adam:learning_rate=0.01", &w->optimizer, &w->err));
}

static void begin_on(world *w, const snug_io *io) {
    static float values[COUNT];
    snug_tensor *t;
    *w = (world){.engine = NULL};
    OK(snug_engine_create(&(snug_engine_options){.n_threads = 1, .io = io}, &w->engine, &w->err));
    OK(snug_recorder_create(w->engine, &w->r, &w->err));
    sn_test_dir_begin(&w->dir);
    for (int i = 0; i < N_WEIGHTS; i++) {
        for (int k = 0; k < COUNT; k++)
            values[k] = (float)((k * 7 + i) % 31) / 16 - 1;
        OK(snug_tensor_copy(w->r, &square, values, &t, &w->err));
        OK(snug_variable_create(w->r, t, NULL, &w->weight[i], &w->err));
        snug_tensor_drop(t);
    }
    OK(snug_sync(w->r, &w->err));
    make_optimizer(w);
}

static void begin(world *w) {
    begin_on(w, NULL);
}

static void end(world *w) {
    snug_optimizer_destroy(w->optimizer);
    for (int i = 0; i < N_WEIGHTS; i++)
        snug_variable_drop(w->weight[i]);
    snug_recorder_destroy(w->r);
    sn_test_engine_end(w->engine);
    sn_test_dir_end(&w->dir);
}

/* A gradient is the weight itself: other elements have others. */
static snug_status step(world *w, snug_error *err) {
    snug_tensor *grads[N_WEIGHTS] = {NULL};
    snug_status status = SNUG_OK;
    for (int i = 0; i < N_WEIGHTS && status == SNUG_OK; i++)
        status = snug_variable_read(w->weight[i], &grads[i], err);
    if (status == SNUG_OK)
        status = snug_optimizer_apply(w->optimizer, grads, w->weight, N_WEIGHTS, -1, err);
    for (int i = 0; i < N_WEIGHTS; i++)
        snug_tensor_drop(grads[i]);
    return status == SNUG_OK ? snug_sync(w->r, err) : status;
}

static void steps(world *w, int n) {
    for (int i = 0; i < n; i++)
        OK(step(w, &w->err));
}

/* The smallest budget that a refused step names. */
static size_t floor_of(world *w) {
    double mib = 0;
    OK(snug_budget(w->engine, 1, &w->err));
    expect_status(step(w, &w->err), SNUG_E_BUDGET, &w->err);
    const char *told = strstr(w->err.text, "smallest budget for it is ");
    assert_non_null(told);
    assert_int_equal(sscanf(told, "smallest budget for it is %lf MiB", &mib), 1);
    return (size_t)(mib * 1048576);
}

/* A sanitizer's own memory grows from call to call, and with it what a budget must be. */
static void skip_under_a_sanitizer(void) {
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
}

/* The budget that suffices with a file and `more`, which is far below the one that does without. */
static void spill(world *w, size_t more) {
    const size_t plain = floor_of(w);
    OK(snug_spill(w->engine, w->dir.path, &w->err));
    const size_t spilled = floor_of(w);
    assert_true(spilled + ((size_t)5 << 20) < plain);
    OK(snug_budget(w->engine, spilled + more, &w->err));
    snug_optimizer_destroy(w->optimizer);
    make_optimizer(w);
}

static size_t spilled_bytes(world *w) {
    snug_recorder_info info;
    snug_recorder_tell(w->r, &info);
    return info.spilled_bytes;
}

static uint64_t misses(world *w) {
    snug_recorder_info info;
    snug_recorder_tell(w->r, &info);
    return info.n_misses;
}

/* --- the same numbers ------------------------------------------------------------------------- */
static void copy_variable(world *w, snug_variable *v, float *out) {
    snug_tensor *t;
    OK(snug_variable_read(v, &t, &w->err));
    OK(snug_tensor_read(t, out, COUNT * sizeof *out, &w->err));
    snug_tensor_drop(t);
}

static void expect_same(world *w, snug_variable *mine, world *other, snug_variable *theirs) {
    static float a[COUNT], b[COUNT];
    if (snug_variable_type(mine)->rank != 2)
        return;
    copy_variable(w, mine, a);
    copy_variable(other, theirs, b);
    assert_memory_equal(a, b, sizeof a);
}

static void expect_equal(world *a, world *b) {
    const int n = snug_optimizer_n_slots(a->optimizer);
    expect_ok(snug_budget(b->engine, 0, &b->err), &b->err); /* what is read is beside */
    assert_true(n >= N_SLOTS);
    for (int i = 0; i < N_WEIGHTS; i++)
        expect_same(a, a->weight[i], b, b->weight[i]);
    for (int i = 0; i < n; i++)
        expect_same(a, snug_optimizer_slot(a->optimizer, i), b,
                    snug_optimizer_slot(b->optimizer, i));
}

static void test_steps_have_the_bits_of_steps_in_memory(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    world a, b;
    begin(&a), begin(&b);
    steps(&a, 4);
    spill(&b, 0);
    steps(&b, 1);
    const uint64_t planned = misses(&b);
    steps(&b, 3);
    assert_int_equal(misses(&b), planned); /* also when slots lie in the file already */
    assert_true(spilled_bytes(&b) > (size_t)6 << 20);
    assert_int_equal(spilled_bytes(&a), 0);
    expect_equal(&a, &b);
    assert_true(spilled_bytes(&b) > (size_t)6 << 20); /* reading moves nothing */
    steps(&a, 1), steps(&b, 1);
    assert_int_equal(spilled_bytes(&b), 0); /* without a budget they come back */
    expect_equal(&a, &b);
    end(&a), end(&b);
}

static snug_variable *large_slot(world *w, int nth) {
    for (int i = 0; i < snug_optimizer_n_slots(w->optimizer); i++) {
        snug_variable *v = snug_optimizer_slot(w->optimizer, i);
        if (snug_variable_type(v)->rank == 2 && nth-- == 0)
            return v;
    }
    fail();
    return NULL;
}

/* Assigns a slot twice itself: a plan reads and writes it. */
static void twice(world *w, int nth) {
    snug_variable *v = large_slot(w, nth);
    snug_tensor *t, *sum;
    OK(snug_variable_read(v, &t, &w->err));
    snug_tensor *in[2] = {t, t};
    OK(snug_record_op(w->r, "add", "", in, 2, &sum, 1, &w->err));
    OK(snug_variable_assign(v, sum, &w->err));
    snug_tensor_drop(t), snug_tensor_drop(sum);
    OK(snug_sync(w->r, &w->err));
}

/* A slot in the file stays what it is, but a plan reads it that can only do so in memory, where there
 * is room for once. */
static void use_one(world *w) {
    snug_tensor *t, *product;
    int i = 0;
    while (!sn_variable_in_file(large_slot(w, i)))
        i++;
    const size_t budget = snug_budget_bytes(w->engine);
    OK(snug_budget(w->engine, budget + ((size_t)4 << 20), &w->err));
    OK(snug_variable_read(large_slot(w, i), &t, &w->err));
    snug_tensor *in[2] = {t, t};
    OK(snug_record_op(w->r, "matmul", "", in, 2, &product, 1, &w->err));
    OK(snug_sync(w->r, &w->err));
    snug_tensor_drop(t), snug_tensor_drop(product);
    assert_false(sn_variable_in_file(large_slot(w, i)));
    OK(snug_budget(w->engine, budget, &w->err));
}

static void test_slots_are_read_and_assigned_wherever_they_lie(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    world a, b;
    size_t file = 0;
    begin(&a), begin(&b);
    for (int i = 0; i < 6; i++)
        steps(&a, 1), twice(&a, i % 4);
    spill(&b, 0);
    for (int i = 0; i < 6; i++) {
        steps(&b, 1);
        file = i == 0 ? sn_spill_bytes(b.r->file) : file;
        assert_true(spilled_bytes(&b) > 0);
        twice(&b, i % 4);
        use_one(&b);
    }
    expect_equal(&a, &b);
    assert_int_equal(sn_spill_bytes(b.r->file), file); /* gaps are filled again */
    end(&a), end(&b);
}

/* Bytes of 4 MiB for a tensor, for the result of a step, for others. */
static void want_tensor(world *w) {
    enum { LARGE = 1 << 20 };
    static const snug_type large = {SNUG_F32, 1, {LARGE}};
    static float values[LARGE];
    snug_tensor *t;
    OK(snug_tensor_copy(w->r, &large, values, &t, &w->err));
    snug_tensor_drop(t);
}

static void want_result(world *w) {
    static const snug_type large = {SNUG_F32, 1, {1 << 20}};
    snug_tensor *t, *sum;
    OK(snug_tensor_full(w->r, &large, 2, &t, &w->err));
    snug_tensor *in[2] = {t, t};
    OK(snug_record_op(w->r, "add", "", in, 2, &sum, 1, &w->err));
    OK(snug_sync(w->r, &w->err));
    snug_tensor_drop(t), snug_tensor_drop(sum);
}

static void want_others(world *w) {
    snug_recorder_trim(w->r);
}

/* Somebody wants bytes that the slots in memory have. */
static void test_slots_make_way(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    static void (*const want[])(world *) = {want_tensor, want_result, want_others};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        world a, b;
        begin(&a), begin(&b);
        steps(&a, 3);
        spill(&b, (size_t)11 << 19);
        steps(&b, 1);
        const size_t before = spilled_bytes(&b);
        assert_true(before > 0 && before < (size_t)8 << 20);
        want[i](&b);
        assert_true(spilled_bytes(&b) > before);
        steps(&b, 2);
        expect_equal(&a, &b);
        end(&a), end(&b);
    }
}

static void step_of_another(world *w) {
    snug_optimizer *old = w->optimizer;
    make_optimizer(w);
    steps(w, 1);
    snug_optimizer_destroy(w->optimizer);
    w->optimizer = old;
}

static void test_slots_stay_in_the_file_when_there_is_room(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    world a, b;
    begin(&a), begin(&b);
    steps(&a, 4);
    step_of_another(&a);
    steps(&a, 1);
    spill(&b, 0);
    const size_t small = snug_budget_bytes(b.engine), large = small + ((size_t)32 << 20);
    expect_ok(snug_budget(b.engine, large, &b.err), &b.err);
    steps(&b, 1);
    assert_int_equal(spilled_bytes(&b), 0);
    expect_ok(snug_budget(b.engine, small, &b.err), &b.err);
    steps(&b, 1);
    const size_t spilled = spilled_bytes(&b);
    assert_true(spilled > 0);
    expect_ok(snug_budget(b.engine, large, &b.err), &b.err);
    steps(&b, 2);
    assert_int_equal(spilled_bytes(&b), spilled);
    sn_cache_clear(b.r);
    step_of_another(&b); /* leaves a plan with all in memory */
    steps(&b, 1);
    assert_int_equal(spilled_bytes(&b), spilled);
    expect_equal(&a, &b);
    end(&a), end(&b);
}

/* The only one. */
static const sn_entry *plan_that_spills(const world *w) {
    const sn_entry *found = NULL;
    for (const sn_entry *e = w->r->entries; e; e = e->next)
        if (e->plan->spilled_bytes > 0) {
            assert_null(found);
            found = e;
        }
    assert_non_null(found);
    return found;
}

/* The new optimizer's steps have the plan of the old one's, whose slots lie in the file, too. */
static void test_a_plan_serves_slots_that_lie_elsewhere(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    world a, b;
    begin(&a), begin(&b);
    steps(&a, 2);
    snug_optimizer *old = a.optimizer;
    make_optimizer(&a);
    steps(&a, 3);
    snug_optimizer_destroy(old);
    spill(&b, (size_t)512 << 10); /* no slot more fits memory */
    steps(&b, 2);
    old = b.optimizer;
    const sn_entry *const planned = plan_that_spills(&b);
    make_optimizer(&b);
    steps(&b, 2);
    assert_ptr_equal(plan_that_spills(&b), planned);
    snug_optimizer_destroy(old);
    steps(&b, 1);
    expect_equal(&a, &b);
    snug_optimizer_destroy(b.optimizer);
    assert_null(b.r->file);
    make_optimizer(&b);
    end(&a), end(&b);
}

/* --- failures --------------------------------------------------------------------------------- */
static int nearly_full(void *ctx, const char *path, snug_io_folder *out) {
    const int rc = sn_io_system.folder(ctx, path, out);
    out->free_bytes = 1 << 20;
    return rc;
}

static void test_a_disk_without_room_is_told_before_the_step(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    snug_io io = sn_io_system;
    io.folder = nearly_full;
    world a, b;
    begin(&a), begin_on(&b, &io);
    spill(&b, 0);
    expect_status(step(&b, &b.err), SNUG_E_IO, &b.err);
    expect_text(b.err.text, "1048576 are free; free space on that disk");
    for (int i = 0; i < N_WEIGHTS; i++)
        expect_same(&a, a.weight[i], &b, b.weight[i]);
    assert_int_equal(spilled_bytes(&b), 0);
    end(&a), end(&b);
}

/* A variable says that it was being written, or is what it was or shall be. */
static bool is_torn(world *w, snug_variable *v, world *before, snug_variable *was, world *after,
                    snug_variable *becomes) {
    static float now[COUNT], one[COUNT], other[COUNT];
    snug_tensor *t;
    snug_status status = snug_variable_read(v, &t, &w->err);
    if (status == SNUG_OK) {
        status = snug_tensor_read(t, now, sizeof now, &w->err);
        snug_tensor_drop(t);
    }
    if (status == SNUG_E_TORN)
        return true;
    expect_status(status, SNUG_OK, &w->err);
    copy_variable(before, was, one);
    copy_variable(after, becomes, other);
    assert_true(!memcmp(now, one, sizeof now) || !memcmp(now, other, sizeof now));
    return false;
}

/* Calls spread over the first two steps, which make the file and fill it. */
static void test_a_disk_that_fails_stops_the_step(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    enum { TRIES = 14 };
    world start, one, two, w;
    int n_torn = 0, n_fired = 0;
    begin(&start), begin(&one), begin(&two), begin(&w);
    steps(&one, 1), steps(&two, 2);
    spill(&w, 0);
    sn_fault_io(w.engine, INT64_MAX, SN_FAULT_EIO, false);
    steps(&w, 2);
    const int64_t n_calls = sn_fault_io_requests(w.engine);
    assert_true(n_calls > 60);
    end(&w);
    for (int64_t k = 0; k < TRIES; k++) {
        begin(&w);
        spill(&w, 0);
        sn_fault_io(w.engine, n_calls * k / TRIES, SN_FAULT_ENOSPC, false);
        const snug_status first = step(&w, &w.err);
        const snug_status status = first == SNUG_OK ? step(&w, &w.err) : first;
        const bool fired = sn_fault_fired(w.engine);
        sn_fault_io(w.engine, -1, SN_FAULT_EIO, false);
        expect_status(status, fired ? SNUG_E_IO : SNUG_OK, &w.err);
        n_fired += fired;
        bool torn = false;
        for (int i = 0; i < N_WEIGHTS; i++)
            torn |= is_torn(&w, w.weight[i], first == SNUG_OK ? &one : &start,
                            first == SNUG_OK ? one.weight[i] : start.weight[i],
                            first == SNUG_OK ? &two : &one,
                            first == SNUG_OK ? two.weight[i] : one.weight[i]);
        n_torn += torn;
        if (torn)
            expect_status(step(&w, &w.err), SNUG_E_TORN, &w.err);
        end(&w);
    }
    assert_true(n_fired >= TRIES - 2 && n_torn > 2 && n_torn < n_fired);
    end(&start), end(&one), end(&two);
}

static void test_a_memory_that_fails_leaves_nothing(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    world w;
    bool through = false;
    for (int64_t n = 0; !through; n = n < 40 ? n + 1 : n + 1 + n / 8) {
        begin(&w);
        spill(&w, 0);
        sn_fault_memory(w.engine, n, false);
        const snug_status status = step(&w, &w.err);
        through = !sn_fault_fired(w.engine);
        sn_fault_memory(w.engine, -1, false);
        if (status == SNUG_OK)
            assert_true(spilled_bytes(&w) > 0);
        end(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_have_the_bits_of_steps_in_memory),
        cmocka_unit_test(test_slots_are_read_and_assigned_wherever_they_lie),
        cmocka_unit_test(test_slots_make_way),
        cmocka_unit_test(test_slots_stay_in_the_file_when_there_is_room),
        cmocka_unit_test(test_a_plan_serves_slots_that_lie_elsewhere),
        cmocka_unit_test(test_a_disk_without_room_is_told_before_the_step),
        cmocka_unit_test(test_a_disk_that_fails_stops_the_step),
        cmocka_unit_test(test_a_memory_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests_name("record_spill", tests, NULL, NULL);
}
