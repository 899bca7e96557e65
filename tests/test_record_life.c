/* test_record_life.c: recorded execution where runs, traces, tapes and drops come in unusual
 * orders: who holds what, what a gradient finds after runs, which recordings share a plan. */
#include <stdlib.h>
#include <string.h>

#include "record/recording.h"
#include "memory/process.h"
#include "support/bench.h"

#define OK(call) expect_ok((call), &b->err)

static const snug_type four = {SNUG_F32, 1, {4}};

static snug_tensor *tensor(bench *b, float first) {
    snug_tensor *t;
    OK(snug_tensor_copy(b->r, &four, (float[]){first, 1, 2, 3}, &t, &b->err));
    return t;
}

static snug_tensor *full(bench *b, double value) {
    snug_tensor *t;
    OK(snug_tensor_full(b->r, &four, value, &t, &b->err));
    return t;
}

static snug_tensor *op(bench *b, const char *name, const char *attrs, snug_tensor *x,
                       snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    OK(snug_record_op(b->r, name, attrs, in, y ? 2 : 1, &out, 1, &b->err));
    return out;
}

static snug_variable *variable(bench *b, double value) {
    snug_variable *v;
    snug_tensor *t = full(b, value);
    OK(snug_variable_create(b->r, t, NULL, &v, &b->err));
    snug_tensor_drop(t);
    return v;
}

static snug_tensor *read(bench *b, snug_variable *v) {
    snug_tensor *t;
    OK(snug_variable_read(v, &t, &b->err));
    return t;
}

static void assign(bench *b, snug_variable *v, double value) {
    snug_tensor *t = full(b, value);
    OK(snug_variable_assign(v, t, &b->err));
    snug_tensor_drop(t);
}

static void sync(bench *b) {
    OK(snug_sync(b->r, &b->err));
}

static snug_tape *tape(bench *b, snug_tensor *watched) {
    snug_tape *t;
    OK(snug_tape_create(b->r, NULL, &t, &b->err));
    if (watched)
        OK(snug_tape_watch(t, watched, &b->err));
    return t;
}

static void expect_first(bench *b, snug_tensor *t, double want) {
    float v[64];
    size_t bytes;
    assert_non_null(t);
    OK(snug_type_bytes(snug_tensor_type(t), &bytes, &b->err));
    assert_true(bytes <= sizeof v);
    OK(snug_tensor_read(t, v, bytes, &b->err));
    if (!((double)v[0] > want - 1e-5 && (double)v[0] < want + 1e-5))
        fail_msg("%g instead of %g", (double)v[0], want);
}

/* Uses the tape up, drops it and the target. */
static void expect_gradient(bench *b, snug_tape *t, snug_tensor *target, snug_source by,
                            double want) {
    snug_tensor *grad;
    OK(snug_tape_gradient(t, &target, NULL, 1, &by, 1, &grad, &b->err));
    expect_first(b, grad, want);
    snug_tensor_drop(grad), snug_tensor_drop(target);
    snug_tape_drop(t);
}

static void drop_all(snug_tensor *const *t, int n) {
    for (int i = 0; i < n; i++)
        snug_tensor_drop(t[i]);
}
#define DROP(...)                                                                                  \
    drop_all((snug_tensor *[]){__VA_ARGS__},                                                       \
             (int)(sizeof((snug_tensor *[]){__VA_ARGS__}) / sizeof(snug_tensor *)))

/* --- who holds what --------------------------------------------------------------------------- */
static void test_everything_may_be_dropped_after_the_recorder(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_variable *v = variable(b, 2);
    snug_tensor *x = tensor(b, 1), *w = read(b, v), *y = op(b, "mul", "", x, w), *arg;
    snug_tape *t = tape(b, x);
    snug_tensor *u = read(b, v), *z = op(b, "mul", "", x, u);
    snug_trace *open, *closed;
    sync(b);
    snug_tensor *pending = op(b, "square", "", z, NULL);
    OK(snug_trace_begin(b->r, &four, 1, &arg, &closed, &b->err));
    snug_tensor *inside = op(b, "mul", "", arg, pending);
    OK(snug_trace_end(closed, &inside, 1, &b->err));
    OK(snug_trace_begin(b->r, NULL, 0, NULL, &open, &b->err));
    snug_recorder_destroy(b->r);
    snug_variable_drop(v);
    snug_trace_drop(open);
    DROP(x, w, y, u, z, pending, arg, inside);
    snug_trace_drop(closed);
    snug_tape_drop(t);
}

static void test_an_outer_trace_may_go_first(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_trace *outer, *inner;
    snug_tensor *x, *y;
    OK(snug_trace_begin(b->r, &four, 1, &x, &outer, &b->err));
    OK(snug_trace_begin(b->r, &four, 1, &y, &inner, &b->err));
    snug_tensor *z = op(b, "mul", "", x, y);
    snug_trace_drop(outer);
    assert_true(snug_is_tracing(b->r));
    snug_trace_drop(inner);
    assert_false(snug_is_tracing(b->r));
    snug_tensor *a = tensor(b, 5), *c = op(b, "add", "", a, a);
    expect_first(b, c, 10);
    DROP(x, y, z, a, c);
    snug_recorder_destroy(b->r);
}

/* A value from outside is read while a function is traced: what is recorded outside runs. */
static void test_a_run_may_come_in_the_middle_of_a_trace(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_trace *trace;
    snug_tensor *x, *result, *a = tensor(b, 3), *outside = op(b, "square", "", a, NULL);
    snug_variable *v = variable(b, 2);
    snug_tape *t = tape(b, NULL);
    snug_tensor *w = read(b, v), *seen = op(b, "mul", "", w, a);
    OK(snug_trace_begin(b->r, &four, 1, &x, &trace, &b->err));
    snug_tensor *w1 = read(b, v), *y = op(b, "mul", "", x, w1);
    OK(snug_variable_assign(v, y, &b->err));
    expect_first(b, outside, 9); /* runs */
    snug_tensor *w2 = read(b, v), *z = op(b, "add", "", w2, outside);
    OK(snug_trace_end(trace, &z, 1, &b->err));
    assert_false(snug_is_tracing(b->r));
    OK(snug_trace_call(trace, &a, 1, &result, 1, &b->err));
    expect_first(b, result, 15); /* 3 * 2 + 9 */
    snug_tensor *now = read(b, v);
    expect_first(b, now, 6);
    DROP(x, result, a, outside, w, seen, w1, y, w2, z, now);
    snug_trace_drop(trace);
    snug_tape_drop(t);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

/* --- gradients after runs --------------------------------------------------------------------- */
/* d(x^2 + 3 x) = 2 x + 3, with a run or a trace between the two uses of x. */
static void test_all_uses_of_a_source_count(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    for (int how = 0; how < 4; how++) {
        snug_tensor *x = how & 1 ? full(b, 2) : tensor(b, 2), *three = full(b, 3), *z;
        snug_tape *t = tape(b, x);
        snug_trace *trace = NULL;
        snug_tensor *y = op(b, "mul", "", x, x);
        if (how < 2) {
            sync(b);
            z = op(b, "mul", "", x, three);
        } else {
            OK(snug_trace_begin(b->r, NULL, 0, NULL, &trace, &b->err));
            snug_tensor *inside = op(b, "mul", "", x, three);
            OK(snug_trace_end(trace, &inside, 1, &b->err));
            OK(snug_trace_call(trace, NULL, 0, &z, 1, &b->err));
            snug_tensor_drop(inside);
        }
        if (how == 0)
            sync(b);
        expect_gradient(b, t, op(b, "add", "", y, z), (snug_source){.tensor = x}, 7);
        DROP(x, three, y, z);
        snug_trace_drop(trace);
    }
    snug_recorder_destroy(b->r);
}

static void test_several_targets_and_seeds_count(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tensor *x = tensor(b, 2), *grad;
    snug_tape *t = tape(b, x);
    snug_tensor *targets[2] = {op(b, "square", "", x, NULL), op(b, "add", "", x, x)};
    snug_tensor *seeds[2] = {tensor(b, 10), tensor(b, 100)};
    OK(snug_tape_gradient(t, targets, seeds, 2, &(snug_source){.tensor = x}, 1, &grad, &b->err));
    expect_first(b, grad, 4 * 10 + 2 * 100);
    DROP(x, grad, targets[0], targets[1], seeds[0], seeds[1]);
    snug_tape_drop(t);
    snug_recorder_destroy(b->r);
}

/* What a function gives may be the very value it was given. */
static void test_a_target_may_be_its_source(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    for (int reads = 0; reads < 2; reads++) {
        snug_tensor *x = tensor(b, 2), *y, *arg;
        snug_trace *identity;
        OK(snug_trace_begin(b->r, &four, 1, &arg, &identity, &b->err));
        OK(snug_trace_end(identity, &arg, 1, &b->err));
        snug_tape *t = tape(b, x);
        OK(snug_trace_call(identity, &x, 1, &y, 1, &b->err));
        if (reads)
            expect_first(b, y, 2);
        expect_gradient(b, t, y, (snug_source){.tensor = x}, 1);
        DROP(x, arg);
        snug_trace_drop(identity);
    }
    snug_recorder_destroy(b->r);
}

/* A result may have the very bytes of its operand. */
static void test_an_alias_is_another_value(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    for (int by_alias = 0; by_alias < 2; by_alias++) {
        snug_tensor *x = tensor(b, 2);
        snug_tape *t = tape(b, x);
        snug_tensor *y = op(b, "reshape", "dims=4", x, NULL), *z = op(b, "mul", "", x, x);
        expect_first(b, y, 2);
        assert_ptr_equal(y->storage, x->storage);
        expect_gradient(b, t, op(b, "add", "", y, z), (snug_source){.tensor = by_alias ? y : x},
                        by_alias ? 1 : 5);
        DROP(x, y, z);
    }
    snug_recorder_destroy(b->r);
}

/* Another run, which has nothing to do with what is kept. */
static void run_something(bench *b) {
    snug_tensor *x = tensor(b, 1), *y = op(b, "square", "", x, NULL);
    expect_first(b, y, 1);
    DROP(x, y);
}

/* The codes of a maximum are made again from what the run kept, not from what it did not. */
static void test_codes_are_made_again_after_a_run(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    const snug_type image = {SNUG_F32, 4, {1, 2, 2, 1}};
    for (int runs = 0; runs < 3; runs++) {
        snug_tensor *x, *k, *pooled[2];
        OK(snug_tensor_copy(b->r, &image, (float[]){5, 1, 2, 3}, &x, &b->err));
        OK(snug_tensor_copy(b->r, &image, (float[]){0, 1, 0, 1}, &k, &b->err));
        snug_tape *t = tape(b, x);
        snug_tensor *unseen = op(b, "exp", "", k, NULL), *sum = op(b, "add", "", x, unseen);
        OK(snug_record_op(b->r, "maxpool", "kernel=2,2 stride=2,2", &sum, 1, pooled, 1, &b->err));
        DROP(unseen, sum, k);
        for (int i = 0; i < runs; i++)
            expect_first(b, pooled[0], 6), run_something(b);
        expect_gradient(b, t, pooled[0], (snug_source){.tensor = x}, 1);
        DROP(x);
    }
    snug_recorder_destroy(b->r);
}

/* A handle of an older version is still the variable to a tape, runs later. */
static void test_an_old_version_is_its_variable(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    for (int runs = 1; runs < 4; runs++) {
        snug_variable *v = variable(b, 3);
        snug_tape *t = tape(b, NULL);
        snug_tensor *old = read(b, v);
        if (runs == 2)
            sync(b); /* the assignment finds a handle of an earlier run */
        assign(b, v, 10);
        for (int i = 0; i < runs; i++)
            run_something(b);
        expect_gradient(b, t, op(b, "square", "", old, NULL), (snug_source){.variable = v}, 6);
        DROP(old);
        snug_variable_drop(v);
    }
    snug_recorder_destroy(b->r);
}

/* Bytes that are lent are a copy, and still the variable to a tape. */
static void test_a_pinned_version_is_its_variable(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    for (int runs = 0; runs < 3; runs++) {
        snug_variable *v = variable(b, 3);
        snug_tape *t = tape(b, NULL);
        snug_tensor *x = read(b, v);
        snug_view view;
        sync(b);
        OK(snug_tensor_pin(x, &view, &b->err));
        assign(b, v, 8);
        for (int i = 0; i < runs; i++)
            run_something(b);
        expect_gradient(b, t, op(b, "square", "", x, NULL), (snug_source){.variable = v}, 6);
        assert_true(((const float *)view.data)[0] == 3);
        snug_tensor_unpin(x);
        DROP(x);
        snug_variable_drop(v);
    }
    snug_recorder_destroy(b->r);
}

/* --- plans ------------------------------------------------------------------------------------ */
/* A cap of six is part of the product; any other is a number. */
static void test_a_cap_is_not_always_six(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    static const char *const caps[] = {"value=6", "value=3", "value=6", "value=7"};
    static const double want[] = {6, 3, 6, 7};
    const snug_type square = {SNUG_F32, 2, {2, 2}};
    snug_tensor *x;
    OK(snug_tensor_copy(b->r, &square, (float[]){2, 2, 2, 2}, &x, &b->err));
    for (int i = 0; i < 4; i++) {
        snug_tensor *y = op(b, "matmul", "", x, x), *z = op(b, "relu_max", caps[i], y, NULL);
        snug_tensor_drop(y);
        expect_first(b, z, want[i]);
        snug_tensor_drop(z);
    }
    DROP(x);
    snug_recorder_destroy(b->r);
}

/* v.assign(v), and of an alias of it. */
static void test_a_variable_may_be_assigned_itself(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    for (int how = 0; how < 4; how++) {
        snug_variable *v = variable(b, 3);
        snug_tensor *x = read(b, v), *y = how & 1 ? op(b, "reshape", "dims=4", x, NULL) : NULL;
        if (how & 2)
            assign(b, v, 5);
        OK(snug_variable_assign(v, y ? y : x, &b->err));
        sync(b);
        snug_tensor *now = read(b, v);
        expect_first(b, now, 3);
        DROP(x, y, now);
        snug_variable_drop(v);
    }
    snug_recorder_destroy(b->r);
}

/* --- growth ----------------------------------------------------------------------------------- */
static void test_what_is_dropped_leaves_nothing(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    size_t before = 0;
    for (int round = 0; round < 3; round++) {
        snug_tensor *x = tensor(b, 1), *y;
        for (int i = 0; i < 70000; i++)
            snug_tensor_drop(op(b, "square", "", x, NULL));
        for (int i = 0; i < 3000; i++) {
            snug_variable *v = variable(b, i);
            if (i % 3 == 0)
                assign(b, v, 1);
            snug_tensor *w = i % 3 ? read(b, v) : NULL;
            if (i % 300 == 1)
                expect_first(b, w, i);
            snug_tensor_drop(w);
            snug_variable_drop(v);
        }
        y = op(b, "add", "", x, x);
        expect_first(b, y, 2);
        DROP(x, y);
        sync(b);
        if (round == 1)
            before = snug_engine_bytes(b->e);
    }
    assert_true(snug_engine_bytes(b->e) <= before);
    snug_recorder_destroy(b->r);
}

static void test_a_long_chain_goes_at_once(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tensor *x = tensor(b, 1), *y;
    for (int i = 0; i < 150000; i++) {
        y = op(b, "affine", "scale=1 shift=0", x, NULL);
        snug_tensor_drop(x);
        x = y;
    }
    snug_tensor_drop(x);
    x = tensor(b, 4);
    expect_first(b, x, 4);
    DROP(x);
    snug_recorder_destroy(b->r);
}

/* An array that only the recording holds, and its sum. */
static snug_tensor *sum_of_batch(bench *b, const float *data, int64_t mib) {
    const snug_type type = {SNUG_F32, 1, {mib << 18}};
    snug_tensor *x;
    OK(snug_tensor_copy(b->r, &type, data, &x, &b->err));
    snug_tensor *y = op(b, "sin", "", x, NULL), *sum = op(b, "sum", "axes=0", y, NULL);
    DROP(x, y);
    return sum;
}

static uint64_t runs_of(bench *b) {
    snug_recorder_info info;
    snug_recorder_tell(b->r, &info);
    return info.n_flushes;
}

/* Cut behind it, what is made of one large batch would lie whole. Several are not let pile up, but
 * under a tape, whose gradient reads them. */
static void test_one_large_batch_does_not_cut_a_recording(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    float *data = calloc((size_t)72 << 18, sizeof *data);
    assert_non_null(data);
    const uint64_t before = runs_of(b);
    snug_tensor *first = sum_of_batch(b, data, 72), *second, *third;
    assert_int_equal(runs_of(b), before);
    second = sum_of_batch(b, data, 40);
    assert_int_equal(runs_of(b), before + 1);
    sync(b);
    snug_tape *t = tape(b, first);
    const uint64_t under = runs_of(b);
    DROP(first, second);
    first = sum_of_batch(b, data, 40);
    second = sum_of_batch(b, data, 40);
    third = op(b, "add", "", first, second);
    assert_int_equal(runs_of(b), under);
    snug_tape_drop(t);
    DROP(first, second, third);
    free(data);
    snug_recorder_destroy(b->r);
}

/* A run under it kept what gradients would read. */
static void test_a_dropped_tape_gives_its_bytes_back(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    const snug_type wide = {SNUG_F32, 1, {1 << 20}};
    snug_recorder_info info;
    snug_tensor *x, *sum;
    snug_tape *t;
    OK(snug_tensor_full(b->r, &wide, 0.5, &x, &b->err));
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    snug_tensor *y = op(b, "sin", "", x, NULL), *z = op(b, "sin", "", y, NULL);
    sum = op(b, "sum", "axes=0", z, NULL);
    snug_tensor *later = op(b, "affine", "scale=2 shift=0", sum, NULL);
    DROP(y, z);
    sync(b);
    snug_tensor *twice =
        op(b, "add", "", later, sum); /* recorded, and none of the tape's business */
    snug_recorder_tell(b->r, &info);
    assert_true(info.tape_bytes >= (size_t)4 << 20);
    const size_t before = snug_engine_bytes(b->e);
    snug_tape_drop(t);
    snug_recorder_tell(b->r, &info);
    assert_int_equal(info.tape_bytes, 0);
    assert_true(snug_engine_bytes(b->e) + ((size_t)4 << 20) <= before);
    float v, w;
    OK(snug_tensor_read(twice, &v, sizeof v, &b->err));
    OK(snug_tensor_read(sum, &w, sizeof w, &b->err));
    expect_real((double)v, 3 * (double)w, 1e-3 * (double)w);
    DROP(x, sum, later, twice);
    snug_recorder_destroy(b->r);
}

static snug_tensor *run_wide(bench *b, snug_tensor *x) {
    snug_tensor *y = op(b, "affine", "scale=2 shift=1", x, NULL);
    sync(b);
    return y;
}

/* Without a budget, that is; and what is asked about memory counts none of it. */
static void test_results_take_the_place_of_dropped_ones(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    const size_t bytes = (size_t)4 << 20;
    const snug_type wide = {SNUG_F32, 1, {1 << 20}};
    snug_recorder_info info;
    snug_tensor *x;
    OK(snug_tensor_full(b->r, &wide, 0.5, &x, &b->err));
    sync(b);
    snug_tensor *y = run_wide(b, x);
    const void *first = y->storage->data;
    DROP(y);
    assert_int_equal(b->r->left_bytes, bytes);
    y = run_wide(b, x);
    assert_ptr_equal(y->storage->data, first);
    assert_int_equal(b->r->left_bytes, 0);
    float v;
    snug_tensor *one = op(b, "slice", "sizes=1 strides=1 start=9", y, NULL);
    OK(snug_tensor_read(one, &v, sizeof v, &b->err));
    expect_real((double)v, 2, 0);
    const size_t held = snug_engine_bytes(b->e);
    DROP(one, y);
    snug_recorder_tell(b->r, &info);
    assert_true(snug_engine_bytes(b->e) + bytes <= held);
    y = run_wide(b, x);
    OK(snug_budget(b->e, (size_t)256 << 20, &b->err));
    DROP(y, x);
    assert_int_equal(b->r->left_bytes, 0);
    snug_recorder_destroy(b->r);
}

/* Indices, one of which is not there, that only a run knows. */
static snug_tensor *bad_indices(bench *b) {
    snug_tensor *half;
    OK(snug_tensor_copy(b->r, &(snug_type){SNUG_I32, 1, {4}}, (int32_t[]){0, 1, 2, 5}, &half,
                        &b->err));
    snug_tensor *bad = op(b, "add", "", half, half);
    DROP(half);
    return bad;
}

/* Found after the variable was written; from that request of memory on all are refused, if >= 0. */
static snug_status write_and_fail(bench *b, snug_variable *v, int64_t refused) {
    snug_tensor *bad = bad_indices(b), *one = tensor(b, 1), *now;
    float first[4];
    OK(snug_variable_update(b->r, "assign_add", "", &v, 1, &one, 1, &b->err));
    now = read(b, v);
    snug_tensor *y = op(b, "gather", "axis=0", now, bad);
    if (refused >= 0)
        snug_engine_refuse(b->e, refused, 1);
    const snug_status status = snug_tensor_read(y, first, sizeof first, &b->err);
    snug_engine_refuse(b->e, -1, 0);
    DROP(bad, one, now, y);
    return status;
}

static void test_a_write_before_a_check_that_fails_is_taken_back(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_variable *v = variable(b, 1);
    sync(b);
    int n_memory = 0;
    for (int64_t n = -1; n < 100; n++) { /* the plan is at hand from the second time on */
        const snug_status status = write_and_fail(b, v, n);
        n_memory += status == SNUG_E_MEMORY;
        assert_true(status == SNUG_E_DATA || (n >= 0 && status == SNUG_E_MEMORY));
        assert_false(v->torn);
        snug_tensor *now = read(b, v);
        expect_first(b, now, 1);
        DROP(now);
    }
    assert_true(n_memory > 3);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

static void test_a_torn_variable_is_whole_once_an_assignment_has_run(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_variable *v = variable(b, 1);
    snug_tensor *old = read(b, v), *now, *bad;
    sync(b);
    v->torn = true; /* as a device leaves it that fails while it is written */
    expect_status(snug_variable_read(v, &now, &b->err), SNUG_E_TORN, &b->err);
    snug_tensor *one = tensor(b, 1);
    expect_status(snug_variable_update(b->r, "assign_add", "", &v, 1, &one, 1, &b->err),
                  SNUG_E_TORN, &b->err);
    bad = bad_indices(b);
    snug_tensor *y = op(b, "gather", "axis=0", one, bad);
    OK(snug_variable_assign(v, y, &b->err)); /* which fails */
    expect_status(snug_sync(b->r, &b->err), SNUG_E_DATA, &b->err);
    expect_status(snug_variable_read(v, &now, &b->err), SNUG_E_TORN, &b->err);
    assign(b, v, 7);
    now = read(b, v);
    expect_first(b, now, 7);
    assert_false(v->torn);
    DROP(old, now, one, bad, y);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

static void test_an_index_that_is_in_memory_is_refused_at_once(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_variable *v = variable(b, 1);
    snug_tensor *bad, *out;
    OK(snug_tensor_copy(b->r, &(snug_type){SNUG_I32, 1, {2}}, (int32_t[]){3, 9}, &bad, &b->err));
    assign(b, v, 5);
    snug_tensor *now = read(b, v), *in[2] = {now, bad};
    const size_t n_nodes = b->r->now->n_nodes;
    expect_status(snug_record_op(b->r, "gather", "axis=0", in, 2, &out, 1, &b->err), SNUG_E_DATA,
                  &b->err);
    assert_int_equal(b->r->now->n_nodes, n_nodes);
    sync(b); /* what stood before it happens */
    expect_first(b, now, 5);
    assert_false(v->torn);
    DROP(now, bad);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

/* Whatever fails, its error goes with the last handle that has it. */
static void test_refusals_leave_nothing(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* what is freed waits there, and counts */
#endif
    bench bench_ = open_bench(state), *b = &bench_;
    const snug_type huge = {SNUG_F32, 1, {INT64_C(200) << 20}};
    sn_process_booking booking;
    size_t before = 0;
    OK(sn_process_book(b->e, &(sn_process_need){0}, &booking, &b->err));
    OK(snug_budget(b->e, booking.booked_bytes + ((size_t)192 << 20), &b->err));
    snug_variable *v = variable(b, 3);
    for (int i = 0; i < 300; i++) {
        snug_tensor *x, *w = read(b, v);
        float first;
        OK(snug_tensor_random(b->r, &huge, SNUG_INIT_NORMAL, 0, 1, &x, &b->err));
        snug_tape *t = tape(b, x);
        snug_tensor *sorted = op(b, "sort", "dtype=i32", x, NULL), *y = op(b, "mul", "", w, w);
        assign(b, v, 7);
        snug_tensor *sum = op(b, "sum", "axes=0", sorted, NULL),
                    *lost = op(b, "square", "", y, NULL);
        expect_status(snug_tensor_read(sum, &first, sizeof first, &b->err), SNUG_E_BUDGET, &b->err);
        float four_[4];
        expect_status(snug_tensor_read(lost, four_, sizeof four_, &b->err), SNUG_E_BUDGET, &b->err);
        DROP(x, w, sorted, y, sum, lost);
        snug_tape_drop(t);
        w = read(b, v);
        expect_first(b, w, 3);
        DROP(w);
        if (i == 20)
            before = snug_engine_bytes(b->e);
    }
    assert_true(snug_engine_bytes(b->e) <= before);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

/* --- any request may fail --------------------------------------------------------------------- */
typedef struct {
    snug_recorder *r;
    snug_tensor *t[16];
    snug_variable *v[2];
    snug_tape *tape;
    snug_trace *trace;
} program;

static snug_status trace_it(program *p, snug_error *err) {
    snug_tensor **t = p->t;
    const snug_type types[2] = {four, four};
    SNUG_TRY(snug_trace_begin(p->r, types, 2, &t[0], &p->trace, err));
    snug_tensor_drop(t[1]); /* not used */
    t[1] = NULL;
    SNUG_TRY(snug_variable_read(p->v[0], &t[1], err));
    SNUG_TRY(snug_record_op(p->r, "mul", "", (snug_tensor *[]){t[0], t[1]}, 2, &t[2], 1, err));
    SNUG_TRY(snug_tensor_random(p->r, &four, SNUG_INIT_NORMAL, 0, 1, &t[3], err));
    SNUG_TRY(snug_record_op(p->r, "add", "", (snug_tensor *[]){t[2], t[3]}, 2, &t[4], 1, err));
    SNUG_TRY(snug_variable_assign(p->v[0], t[4], err));
    return snug_trace_end(p->trace, &t[4], 1, err);
}

static snug_status play(program *p, snug_error *err) {
    snug_tensor **t = p->t, *grads[2];
    float out[4];
    SNUG_TRY(snug_tensor_full(p->r, &four, 2, &t[5], err));
    SNUG_TRY(snug_variable_create(p->r, t[5], NULL, &p->v[0], err));
    SNUG_TRY(snug_variable_create(p->r, t[5], NULL, &p->v[1], err));
    SNUG_TRY(trace_it(p, err));
    SNUG_TRY(snug_variable_read(p->v[1], &t[6], err));
    SNUG_TRY(snug_record_op(p->r, "square", "", &t[6], 1, &t[7], 1, err));
    snug_tensor_drop(t[6]);
    t[6] = NULL;
    snug_variable_drop(p->v[1]); /* an ordinary value from here on */
    p->v[1] = NULL;
    SNUG_TRY(snug_tape_create(p->r, &(snug_tape_options){.persistent = 1}, &p->tape, err));
    SNUG_TRY(snug_tape_watch(p->tape, t[5], err));
    SNUG_TRY(snug_record_op(p->r, "mul", "", (snug_tensor *[]){t[5], t[5]}, 2, &t[8], 1, err));
    SNUG_TRY(snug_trace_call(p->trace, (snug_tensor *[]){t[8], t[7]}, 2, &t[9], 1, err));
    SNUG_TRY(snug_tensor_read(t[9], out, sizeof out, err));
    SNUG_TRY(snug_tensor_read(t[5], out, sizeof out, err)); /* bytes for watched numbers */
    SNUG_TRY(snug_record_op(p->r, "mul", "", (snug_tensor *[]){t[9], t[5]}, 2, &t[10], 1, err));
    SNUG_TRY(snug_sync(p->r, err));
    const snug_source by[2] = {{.tensor = t[5]}, {.variable = p->v[0]}};
    SNUG_TRY(snug_tape_gradient(p->tape, &t[10], NULL, 1, by, 2, grads, err));
    t[11] = grads[0], t[12] = grads[1];
    SNUG_TRY(snug_variable_update(p->r, "sgd", "rate=0.5 momentum=0", p->v, 1, &t[12], 1, err));
    return snug_tensor_read(t[11], out, sizeof out, err);
}

static snug_status long_program(snug_engine *e, void *ctx, snug_error *err) {
    program p = {.r = NULL};
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &p.r, err));
    const snug_status status = play(&p, err);
    drop_all(p.t, 16);
    for (int i = 0; i < 2; i++)
        snug_variable_drop(p.v[i]);
    snug_tape_drop(p.tape);
    snug_trace_drop(p.trace);
    snug_recorder_destroy(p.r);
    return status;
}

static void test_any_request_of_a_long_program_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(long_program, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_everything_may_be_dropped_after_the_recorder),
        engine_test(test_an_outer_trace_may_go_first),
        engine_test(test_a_run_may_come_in_the_middle_of_a_trace),
        engine_test(test_all_uses_of_a_source_count),
        engine_test(test_several_targets_and_seeds_count),
        engine_test(test_a_target_may_be_its_source),
        engine_test(test_an_alias_is_another_value),
        engine_test(test_codes_are_made_again_after_a_run),
        engine_test(test_an_old_version_is_its_variable),
        engine_test(test_a_pinned_version_is_its_variable),
        engine_test(test_a_cap_is_not_always_six),
        engine_test(test_a_variable_may_be_assigned_itself),
        engine_test(test_what_is_dropped_leaves_nothing),
        engine_test(test_a_long_chain_goes_at_once),
        engine_test(test_one_large_batch_does_not_cut_a_recording),
        engine_test(test_a_dropped_tape_gives_its_bytes_back),
        engine_test(test_a_write_before_a_check_that_fails_is_taken_back),
        engine_test(test_a_torn_variable_is_whole_once_an_assignment_has_run),
        engine_test(test_an_index_that_is_in_memory_is_refused_at_once),
        engine_test(test_refusals_leave_nothing),
        engine_test(test_results_take_the_place_of_dropped_ones),
        cmocka_unit_test(test_any_request_of_a_long_program_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
