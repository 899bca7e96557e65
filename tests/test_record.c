/* test_record.c: recorded execution: what runs, when, with which plan, and who holds what. */
#include <stdio.h>
#include <string.h>

#include "record/recording.h"
#include "memory/process.h"
#include "support/record_call.h"

/* So much beyond what the process is booked with: sanitizers make it large. */
static void set_budget(bench *b, size_t beyond) {
    sn_process_booking booking;
    expect_ok(sn_process_book(b->e, &(sn_process_need){0}, &booking, &b->err), &b->err);
    expect_ok(snug_budget(b->e, booking.booked_bytes + beyond, &b->err), &b->err);
}

/* --- values ----------------------------------------------------------------------------------- */
static void test_a_value_is_computed_when_it_is_read(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = vector(&b, (float[]){1, 2, 3, 4}, 4), *y = op(&b, "square", "", x, NULL);
    snug_tensor *z = op(&b, "add", "", x, y);
    assert_int_equal(info_of(&b).n_flushes, 0);
    expect_first(&b, z, 2);
    expect_first(&b, y, 1); /* ran along */
    assert_int_equal(info_of(&b).n_flushes, 1);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(z);
    close_bench(&b);
}

static void test_what_nobody_holds_is_not_computed(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = vector(&b, (float[]){1, 2, 3, 4}, 4), *y = op(&b, "square", "", x, NULL);
    snug_tensor_drop(y);
    expect_ok(snug_sync(b.r, &b.err), &b.err);
    assert_int_equal(info_of(&b).n_flushes, 0);
    snug_tensor_drop(x);
    close_bench(&b);
}

static void test_an_alias_of_bytes_shares_them(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = vector(&b, (float[]){1, 2, 3, 4}, 4);
    snug_tensor *y = op(&b, "reshape", "dims=2,2", x, NULL);
    expect_first(&b, y, 1);
    assert_ptr_equal(y->storage, x->storage);
    snug_tensor *rows;
    expect_ok(snug_tensor_rows(y, 1, 1, &rows, &b.err), &b.err);
    expect_first(&b, rows, 3);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(rows);
    close_bench(&b);
}

/* Of `n` floats, all 3, in bytes of its own. */
static snug_tensor *threes(bench *b, int64_t n) {
    snug_tensor *t;
    void *data;
    expect_ok(snug_tensor_fresh(b->r, &(snug_type){SNUG_F32, 2, {n / 64, 64}}, &t, &data, &b->err),
              &b->err);
    for (int64_t i = 0; i < n; i++)
        ((float *)data)[i] = 3;
    return t;
}

static void expect_all(bench *b, snug_tensor *t, float want) {
    snug_view v;
    expect_ok(snug_tensor_pin(t, &v, &b->err), &b->err);
    for (size_t i = 0; i < v.bytes / 4; i++)
        if (((const float *)v.data)[i] < want || ((const float *)v.data)[i] > want)
            fail_msg("element %zu is %g", i, (double)((const float *)v.data)[i]);
    snug_tensor_unpin(t);
}

static void test_a_result_takes_the_bytes_of_an_operand_nobody_holds(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = threes(&b, 4096), *y = op(&b, "square", "", x, NULL);
    const sn_storage *bytes = x->storage;
    snug_tensor_drop(x);
    expect_all(&b, y, 9);
    assert_ptr_equal(y->storage, bytes);
    snug_tensor *z = op(&b, "square", "", y, NULL); /* the same plan, but y is held */
    expect_all(&b, z, 81);
    assert_ptr_not_equal(z->storage, y->storage);
    expect_all(&b, y, 9);
    assert_int_equal(info_of(&b).n_misses, 1);
    snug_tensor *view = op(&b, "reshape", "dims=4096", z, NULL); /* others may have the bytes */
    snug_tensor *w = op(&b, "square", "", z, NULL);
    snug_tensor_drop(z);
    expect_all(&b, w, 6561);
    expect_all(&b, view, 81);
    snug_tensor_drop(y), snug_tensor_drop(w), snug_tensor_drop(view);
    close_bench(&b);
}

static void test_operands_that_are_read_again_keep_their_bytes(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = threes(&b, 4096), *y = op(&b, "square", "", x, NULL);
    snug_tensor *z = op(&b, "add", "", x, y); /* the last reader of both */
    snug_tensor_drop(x);
    expect_all(&b, y, 9);
    expect_all(&b, z, 12);
    snug_tensor_drop(y), snug_tensor_drop(z);
    close_bench(&b);
}

/* 16 MiB of numbers, and room for less than twice that. */
static void test_shared_bytes_count_once_in_the_budget(void **state) {
    bench b = open_bench(state);
    const int64_t n = (int64_t)4 << 20;
    set_budget(&b, (size_t)28 << 20);
    snug_tensor *x = threes(&b, n), *y = op(&b, "square", "", x, NULL);
    snug_tensor_drop(x);
    expect_all(&b, y, 9);
    snug_tensor *z = op(&b, "square", "", y, NULL);
    expect_status(snug_sync(b.r, &b.err), SNUG_E_BUDGET, &b.err);
    snug_tensor_drop(z);
    expect_all(&b, y, 9);
    snug_tensor_drop(y);
    close_bench(&b);
}

static void count_release(void *ctx) {
    ++*(int *)ctx;
}

/* Bytes that only the tensor has: on the ledger while it has them, never written. */
static void test_adopted_bytes_are_on_the_ledger(void **state) {
    bench b = open_bench(state);
    static float data[1024];
    int released = 0;
    const size_t before = info_of(&b).tensor_bytes;
    snug_tensor *x;
    data[0] = 3;
    expect_ok(snug_tensor_adopt(b.r, &(snug_type){SNUG_F32, 1, {1024}}, data, count_release,
                                &released, &x, &b.err),
              &b.err);
    assert_int_equal(info_of(&b).tensor_bytes - before, sizeof data);
    snug_tensor *y = op(&b, "square", "", x, NULL);
    snug_tensor_drop(x);
    assert_int_equal(released, 0);
    expect_ok(snug_sync(b.r, &b.err), &b.err);
    assert_int_equal(released, 1);
    assert_true(data[0] > 2.5f && data[0] < 3.5f);
    assert_int_equal(info_of(&b).tensor_bytes - before, sizeof data); /* of y */
    snug_tensor_drop(y);
    assert_int_equal(info_of(&b).tensor_bytes, before);
    close_bench(&b);
}

static void test_an_error_leaves_the_recording_as_it_was(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = vector(&b, (float[]){1, 2, 3, 4}, 4), *y = op(&b, "square", "", x, NULL);
    snug_tensor *z = vector(&b, (float[]){1, 2, 3}, 3), *in[2] = {y, z}, *out;
    const size_t nodes = info_of(&b).n_nodes;
    expect_status(snug_record_op(b.r, "add", "", in, 2, &out, 1, &b.err), SNUG_E_SHAPE, &b.err);
    assert_int_equal(info_of(&b).n_nodes, nodes);
    assert_int_equal(b.r->main->n_leaf, 1);
    expect_first(&b, y, 1);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(z);
    close_bench(&b);
}

static void test_random_numbers_that_are_held_cost_nothing(void **state) {
    bench b = open_bench(state);
    snug_tensor *x, *grad;
    snug_tape *tape;
#ifdef SN_REDZONES
    enum { ROWS = 8 }; /* more is half a minute of drawing numbers */
#else
    enum { ROWS = 64 };
#endif
    const snug_type type = {SNUG_F32, 2, {ROWS, INT64_C(1) << 20}};
    set_budget(&b, (size_t)ROWS << 21);
    expect_ok(snug_tensor_random(b.r, &type, SNUG_INIT_NORMAL, 0, 1, &x, &b.err), &b.err);
    for (int i = 0; i < 2; i++) {
        snug_tensor *y = op(&b, "mul", "", x, x), *sum = op(&b, "sum", "axes=0,1", y, NULL);
        snug_tensor_drop(y);
        const float value = first_of(&b, sum);
        assert_true(value > 0.99f * (float)(ROWS << 20) && value < 1.01f * (float)(ROWS << 20));
        assert_true(info_of(&b).slices > 1);
        assert_true(info_of(&b).tensor_bytes < 1024);
        snug_tensor_drop(sum);
    }
    const snug_type small = {SNUG_F32, 1, {4}};
    snug_tensor_drop(x);
    expect_ok(snug_tensor_random(b.r, &small, SNUG_INIT_NORMAL, 0, 1, &x, &b.err), &b.err);
    const float first = first_of(&b, x);
    expect_ok(snug_tape_create(b.r, NULL, &tape, &b.err), &b.err);
    expect_ok(snug_tape_watch(tape, x, &b.err), &b.err);
    snug_tensor *square = op(&b, "square", "", x, NULL);
    expect_ok(
        snug_tape_gradient(tape, &square, NULL, 1, &(snug_source){.tensor = x}, 1, &grad, &b.err),
        &b.err);
    expect_first(&b, grad, 2.0 * (double)first);
    snug_tensor_drop(x), snug_tensor_drop(square), snug_tensor_drop(grad);
    snug_tape_drop(tape);
    close_bench(&b);
}

/* --- variables -------------------------------------------------------------------------------- */
static void test_a_read_before_an_assignment_keeps_the_old_value(void **state) {
    bench b = open_bench(state);
    snug_variable *v = variable(&b, 5);
    snug_tensor *old = read(&b, v);
    assign(&b, v, 7);
    snug_tensor *new = read(&b, v);
    expect_first(&b, new, 7);
    expect_first(&b, old, 5);
    assign(&b, v, 8); /* `new` was read in an earlier run */
    expect_ok(snug_sync(b.r, &b.err), &b.err);
    expect_first(&b, new, 7);
    snug_tensor_drop(old), snug_tensor_drop(new);
    snug_variable_drop(v);
    close_bench(&b);
}

static void test_two_variables_can_be_swapped(void **state) {
    bench b = open_bench(state);
    snug_variable *v = variable(&b, 1), *w = variable(&b, 2);
    snug_tensor *x = read(&b, v), *y = read(&b, w);
    expect_ok(snug_variable_assign(v, y, &b.err), &b.err);
    expect_ok(snug_variable_assign(w, x, &b.err), &b.err);
    snug_tensor_drop(x), snug_tensor_drop(y);
    x = read(&b, v), y = read(&b, w);
    expect_first(&b, x, 2);
    expect_first(&b, y, 1);
    snug_tensor_drop(x), snug_tensor_drop(y);
    snug_variable_drop(v), snug_variable_drop(w);
    close_bench(&b);
}

/* A variable that is dropped before it was needed never gets bytes of its own. */
static void test_a_variable_that_nobody_can_reach_is_a_value(void **state) {
    bench b = open_bench(state);
    snug_tensor *sum = NULL;
    for (int i = 0; i < 3; i++) {
        snug_variable *v = variable(&b, i + 1);
        snug_tensor *x = read(&b, v), *y = sum ? op(&b, "add", "", sum, x) : NULL;
        snug_tensor_drop(sum);
        snug_variable_drop(v);
        sum = y ? y : x;
        if (y)
            snug_tensor_drop(x);
    }
    snug_variable *stays = variable(&b, 10);
    snug_tensor *x = read(&b, stays), *y = op(&b, "add", "", sum, x);
    snug_tensor_drop(sum), snug_tensor_drop(x);
    expect_first(&b, y, 16);
    assert_int_equal(info_of(&b).variable_bytes, 16); /* of the one that stays */
    snug_tensor_drop(y);
    snug_variable_drop(stays);
    close_bench(&b);
}

/* All programs of four actions over two variables, with every choice of when to run. */
static double play(bench *b, unsigned program, unsigned syncs) {
    snug_variable *v[2] = {variable(b, 1), variable(b, 2)};
    snug_tensor *held[5] = {NULL};
    double sum = 0;
    int n_held = 0;
    for (int i = 0; i < 4; i++, program /= 6) {
        const unsigned what = program % 6;
        if (what < 2) {
            held[n_held++] = read(b, v[what]);
        } else if (what < 4) {
            snug_tensor *x = read(b, v[what - 2]), *y = op(b, "add", "", x, x);
            expect_ok(snug_variable_assign(v[what - 2], y, &b->err), &b->err);
            snug_tensor_drop(x), snug_tensor_drop(y);
        } else {
            snug_tensor *x = read(b, v[what - 4]);
            expect_ok(snug_variable_assign(v[5 - what], x, &b->err), &b->err);
            snug_tensor_drop(x);
        }
        if (syncs >> i & 1)
            expect_ok(snug_sync(b->r, &b->err), &b->err);
    }
    for (int k = 0; k < 2; k++)
        held[n_held + k < 5 ? n_held + k : 4] = n_held + k < 5 ? read(b, v[k]) : held[4];
    for (int k = 0; k < 5; k++)
        sum = held[k] ? 16 * sum + (double)first_of(b, held[k]) : sum;
    for (int k = 0; k < 5; k++)
        snug_tensor_drop(held[k]);
    snug_variable_drop(v[0]), snug_variable_drop(v[1]);
    return sum;
}

static void test_results_do_not_depend_on_when_things_run(void **state) {
    bench b = open_bench(state);
    for (unsigned program = 0; program < 6 * 6 * 6 * 6; program++) {
        const double eager = play(&b, program, 15);
        for (unsigned syncs = 0; syncs < 15; syncs += 1 + program % 3)
            assert_true(play(&b, program, syncs) == eager);
    }
    close_bench(&b);
}

/* --- plans ------------------------------------------------------------------------------------ */
static void test_numbers_and_rows_are_no_structure(void **state) {
    bench b = open_bench(state);
    float data[64];
    for (int i = 0; i < 64; i++)
        data[i] = (float)i;
    snug_tensor *all = vector(&b, data, 64);
    for (int i = 0; i < 50; i++) {
        snug_tensor *x, *n = number(&b, i % 3), *y, *z;
        expect_ok(snug_tensor_rows(all, i, 8, &x, &b.err), &b.err);
        y = op(&b, "mul", "", x, n);
        z = op(&b, "affine", "scale=2 shift=1", y, NULL);
        expect_first(&b, z, 2.0 * i * (i % 3) + 1);
        snug_tensor_drop(x), snug_tensor_drop(n), snug_tensor_drop(y), snug_tensor_drop(z);
    }
    assert_int_equal(info_of(&b).n_misses, 1);
    assert_int_equal(info_of(&b).n_hits, 49);
    snug_tensor_drop(all);
    close_bench(&b);
}

/* w <- w - rate * d(sum((w x)^2)) / dw, as an eager loop. */
static void step(bench *b, snug_variable *w, snug_tensor *x, bool peek, float *loss) {
    snug_tape *tape;
    expect_ok(snug_tape_create(b->r, NULL, &tape, &b->err), &b->err);
    snug_tensor *v = read(b, w), *y = op(b, "mul", "", v, x), *z = op(b, "square", "", y, NULL);
    snug_tensor *sum = op(b, "sum", "axes=0", z, NULL), *grad;
    if (peek)
        *loss = first_of(b, sum);
    const snug_source source = {.variable = w};
    expect_ok(snug_tape_gradient(tape, &sum, NULL, 1, &source, 1, &grad, &b->err), &b->err);
    assert_non_null(grad);
    expect_ok(snug_variable_update(b->r, "sgd", "rate=0.1 momentum=0", &w, 1, &grad, 1, &b->err),
              &b->err);
    *loss = peek ? *loss : first_of(b, sum);
    snug_tensor_drop(v), snug_tensor_drop(y), snug_tensor_drop(z), snug_tensor_drop(sum);
    snug_tensor_drop(grad);
    snug_tape_drop(tape);
    expect_ok(snug_boundary(b->r, &b->err), &b->err);
}

static void train(bench *b, bool peek, float *losses) {
    snug_variable *w = variable(b, 1);
    snug_tensor *x = vector(b, (float[]){1, 2, 3, 0.5f}, 4);
    for (int i = 0; i < 5; i++)
        step(b, w, x, peek, &losses[i]);
    snug_tensor_drop(x);
    snug_variable_drop(w);
}

static void test_a_training_loop_is_one_plan(void **state) {
    bench b = open_bench(state);
    float losses[5];
    train(&b, false, losses);
    assert_true(losses[0] == 14.25f); /* 1 + 4 + 9 + 1/4 */
    assert_true(losses[1] < 20);
    assert_true(info_of(&b).n_misses <= 2);
    close_bench(&b);
}

static void test_looking_at_the_loss_before_the_gradient_changes_nothing(void **state) {
    bench b = open_bench(state);
    float a[5], c[5];
    train(&b, false, a);
    train(&b, true, c);
    assert_memory_equal(a, c, sizeof a);
    close_bench(&b);
}

/* x / 3 and 3 / x have the same leaves and nodes; which value is which is structure. */
static void test_plans_know_which_value_is_which(void **state) {
    bench b = open_bench(state);
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {2}};
    snug_tensor *three;
    expect_ok(snug_tensor_full(b.r, &type, 3, &three, &b.err), &b.err);
    expect_ok(snug_sync(b.r, &b.err), &b.err); /* no node of the recordings to come */
    for (int turned = 0; turned < 4; turned++) {
        snug_tensor *x = vector(&b, (float[]){6, 2}, 2);
        snug_tensor *y = turned & 1 ? op(&b, "div", "", three, x) : op(&b, "div", "", x, three);
        expect_first(&b, y, turned & 1 ? 0.5f : 2);
        snug_tensor_drop(x), snug_tensor_drop(y);
    }
    snug_tensor_drop(three);
    close_bench(&b);
}

/* --- bounds ----------------------------------------------------------------------------------- */
static void test_assignments_of_much_work_do_not_pile_up(void **state) {
#ifdef SN_REDZONES
    skip(); /* much work is half a minute there, and arithmetic only */
#endif
    bench b = open_bench(state);
    const snug_type type = {SNUG_F32, 2, {1024, 1024}};
    snug_variable *v;
    snug_tensor *x, *y;
    expect_ok(snug_tensor_full(b.r, &type, 0.5 / 1024, &x, &b.err), &b.err);
    expect_ok(snug_variable_create(b.r, x, NULL, &v, &b.err), &b.err);
    for (int i = 0; i < 30; i++) {
        snug_tensor *now = read(&b, v);
        y = op(&b, "matmul", "", now, x);
        if (i >= 15)
            expect_ok(snug_variable_assign(v, y, &b.err), &b.err);
        snug_tensor_drop(now), snug_tensor_drop(y);
        assert_true(i > 15 || info_of(&b).n_flushes == 0); /* products alone may wait */
    }
    assert_int_equal(info_of(&b).n_flushes, 1);
    snug_tensor_drop(x);
    snug_variable_drop(v);
    close_bench(&b);
}

/* --- where ------------------------------------------------------------------------------------ */
static const char *say_line(void *ctx, uint64_t site, char *text, size_t size) {
    (void)ctx;
    snprintf(text, size, "train.py:%d", (int)site);
    return text;
}

static snug_tensor *gather_at(bench *b, uint64_t site, snug_tensor *x, snug_tensor *i) {
    snug_recorder_set_site(b->r, site);
    return op(b, "gather", "axis=0", x, i);
}

/* Also with the plan of another call, and in a trace, whose own line it is. */
static void test_an_error_in_a_run_says_where_it_was_recorded(void **state) {
    bench b = open_bench(state);
    float v[2];
    snug_trace *trace;
    snug_tensor *argument, *out, *i, *x = vector(&b, (float[]){1, 2, 3, 4}, 4);
    snug_recorder_set_hooks(b.r, &(snug_recorder_hooks){.line = say_line});
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_I32, 1, {2}}, (int32_t[]){1, 9}, &i, &b.err),
              &b.err);
    for (uint64_t site = 41; site < 43; site++) {
        snug_tensor *twice = op(&b, "add", "", i, i), *y = gather_at(&b, site, x, twice);
        expect_status(snug_tensor_read(y, v, sizeof v, &b.err), SNUG_E_DATA, &b.err);
        expect_text(b.err.text, site == 41 ? "gather f32[2], train.py:41" : "train.py:42");
        snug_tensor_drop(y), snug_tensor_drop(twice);
    }
    expect_ok(snug_trace_begin(b.r, snug_tensor_type(x), 1, &argument, &trace, &b.err), &b.err);
    snug_tensor *twice = op(&b, "add", "", i, i), *y = gather_at(&b, 7, argument, twice);
    expect_ok(snug_trace_end(trace, &y, 1, &b.err), &b.err);
    snug_recorder_set_site(b.r, 8);
    expect_ok(snug_trace_call(trace, &x, 1, &out, 1, &b.err), &b.err);
    expect_status(snug_tensor_read(out, v, sizeof v, &b.err), SNUG_E_DATA, &b.err);
    expect_text(b.err.text, "train.py:7");
    snug_tensor_drop(argument), snug_tensor_drop(y), snug_tensor_drop(out);
    snug_tensor_drop(twice), snug_tensor_drop(i), snug_tensor_drop(x);
    snug_trace_drop(trace);
    close_bench(&b);
}

/* --- failures --------------------------------------------------------------------------------- */
static void test_a_refused_run_poisons_and_the_next_one_works(void **state) {
    bench b = open_bench(state);
    set_budget(&b, (size_t)192 << 20);
    for (int i = 0; i < 20; i++) {
        snug_tensor *huge, *sorted;
        const snug_type type = {SNUG_F32, 1, {INT64_C(200) << 20}};
        expect_ok(snug_tensor_random(b.r, &type, SNUG_INIT_NORMAL, 0, 1, &huge, &b.err), &b.err);
        sorted = op(&b, "sort", "dtype=i32", huge, NULL);
        float v;
        snug_tensor *rows;
        expect_ok(snug_tensor_rows(sorted, 0, 1, &rows, &b.err), &b.err);
        expect_status(snug_tensor_read(rows, &v, 4, &b.err), SNUG_E_BUDGET, &b.err);
        expect_text(b.err.text, "smallest budget");
        expect_status(snug_tensor_read(rows, &v, 4, &b.err), SNUG_E_BUDGET, &b.err);
        snug_tensor_drop(huge), snug_tensor_drop(sorted), snug_tensor_drop(rows);
        snug_tensor *x = vector(&b, (float[]){4, 2}, 2), *y = op(&b, "sqrt", "", x, NULL);
        expect_first(&b, y, 2);
        snug_tensor_drop(x), snug_tensor_drop(y);
    }
    close_bench(&b);
}

static snug_status small_program(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_tensor *x = NULL, *y = NULL, *g = NULL, *v = NULL;
    snug_variable *w = NULL;
    snug_tape *tape = NULL;
    float out[4];
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    const snug_type type = {SNUG_F32, 1, {4}};
    snug_status s = snug_tensor_full(r, &type, 2, &x, err);
    if (s == SNUG_OK)
        s = snug_variable_create(r, x, NULL, &w, err);
    if (s == SNUG_OK)
        s = snug_tape_create(r, NULL, &tape, err);
    if (s == SNUG_OK)
        s = snug_variable_read(w, &v, err);
    if (s == SNUG_OK)
        s = snug_record_op(r, "square", "", &v, 1, &y, 1, err);
    if (s == SNUG_OK)
        s = snug_tensor_read(y, out, sizeof out, err);
    if (s == SNUG_OK)
        s = snug_tape_gradient(tape, &y, NULL, 1, &(snug_source){.variable = w}, 1, &g, err);
    if (s == SNUG_OK)
        s = snug_variable_update(r, "sgd", "rate=0.5 momentum=0", &w, 1, &g, 1, err);
    if (s == SNUG_OK)
        s = snug_sync(r, err);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(g), snug_tensor_drop(v);
    snug_variable_drop(w);
    snug_tape_drop(tape);
    snug_recorder_destroy(r);
    return s;
}

static void test_any_request_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(small_program, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_value_is_computed_when_it_is_read),
        engine_test(test_what_nobody_holds_is_not_computed),
        engine_test(test_an_alias_of_bytes_shares_them),
        engine_test(test_random_numbers_that_are_held_cost_nothing),
        engine_test(test_a_result_takes_the_bytes_of_an_operand_nobody_holds),
        engine_test(test_operands_that_are_read_again_keep_their_bytes),
        engine_test(test_shared_bytes_count_once_in_the_budget),
        engine_test(test_adopted_bytes_are_on_the_ledger),
        engine_test(test_an_error_leaves_the_recording_as_it_was),
        engine_test(test_a_read_before_an_assignment_keeps_the_old_value),
        engine_test(test_two_variables_can_be_swapped),
        engine_test(test_a_variable_that_nobody_can_reach_is_a_value),
        engine_test(test_results_do_not_depend_on_when_things_run),
        engine_test(test_numbers_and_rows_are_no_structure),
        engine_test(test_plans_know_which_value_is_which),
        engine_test(test_a_training_loop_is_one_plan),
        engine_test(test_looking_at_the_loss_before_the_gradient_changes_nothing),
        engine_test(test_assignments_of_much_work_do_not_pile_up),
        engine_test(test_an_error_in_a_run_says_where_it_was_recorded),
        engine_test(test_a_refused_run_poisons_and_the_next_one_works),
        cmocka_unit_test(test_any_request_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
