/* test_record_direct.c: long recordings of tiny values run without a plan and give the bits that
 * the same operations give when each of them is run by itself, and their gradients. */
#include <stdio.h>

#include "record/recording.h"
#include "support/bench.h"

#define OK(call) expect_ok((call), &b->err)

enum { LENGTH = 3000 };

static const snug_type four = {SNUG_F32, 1, {4}}, one = {SNUG_F32, 0, {0}};

static snug_tensor *op(bench *b, const char *name, const char *attrs, snug_tensor *x,
                       snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    OK(snug_record_op(b->r, name, attrs, in, y ? 2 : 1, &out, 1, &b->err));
    return out;
}

static snug_recorder_info info_of(const bench *b) {
    snug_recorder_info info;
    snug_recorder_tell(b->r, &info);
    return info;
}

/* One of a few operations, with other numbers each time, on vectors, scalars and draws. */
static snug_tensor *next(bench *b, int i, snug_tensor *x, snug_tensor *scalar) {
    char attrs[64];
    snug_tensor *draw, *y;
    snprintf(attrs, sizeof attrs, "scale=%g shift=%g", 0.5 + 0.001 * (i % 7), 0.25 * (i % 5));
    if (i % 4 == 0)
        return op(b, "affine", attrs, x, NULL);
    if (i % 4 == 1)
        return op(b, "tanh", "", x, NULL);
    if (i % 4 == 2)
        return op(b, "add", "", x, scalar);
    OK(snug_tensor_random(b->r, &four, SNUG_INIT_UNIFORM, -1, 1, &draw, &b->err));
    y = op(b, "mul", "", x, draw);
    snug_tensor_drop(draw);
    return y;
}

static void play(bench *b, int sync_every, float *out) {
    snug_tensor *x, *scalar, *early = NULL;
    snug_recorder_seed(b->r, 7);
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 2, 3, 4}, &x, &b->err));
    OK(snug_tensor_copy(b->r, &one, (float[]){0.125f}, &scalar, &b->err));
    for (int i = 0; i < LENGTH; i++) {
        snug_tensor *y = next(b, i, x, scalar);
        snug_tensor_drop(x);
        x = y;
        if (i == LENGTH / 2) {
            early = x;
            snug_tensor_hold(early);
        }
        if (i % sync_every == sync_every - 1)
            OK(snug_sync(b->r, &b->err));
    }
    OK(snug_tensor_read(x, out, 16, &b->err));
    OK(snug_tensor_read(early, out + 4, 16, &b->err));
    snug_tensor_drop(x), snug_tensor_drop(early), snug_tensor_drop(scalar);
}

static void test_many_tiny_operations_run_without_a_plan(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    float at_once[8], each[8];
    play(b, LENGTH + 1, at_once);
    assert_int_equal(info_of(b).n_misses, 0);
    assert_int_equal(info_of(b).n_flushes, 1);
    play(b, 1, each);
    assert_true(info_of(b).n_misses > 0);
    assert_memory_equal(at_once, each, sizeof each);
    snug_recorder_destroy(b->r);
}

/* One large value among them, or an assignment: then a plan is worth its price. */
static void test_large_values_and_variables_are_planned(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tensor *x, *large;
    float v[4];
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 2, 3, 4}, &x, &b->err));
    OK(snug_tensor_full(b->r, &(snug_type){SNUG_F32, 1, {64}}, 1, &large, &b->err));
    for (int i = 0; i < 1500; i++) {
        snug_tensor *y = op(b, "affine", "scale=1 shift=1", x, NULL);
        snug_tensor_drop(x);
        x = y;
    }
    snug_tensor *sum = op(b, "sum", "axes=0", large, NULL), *y = op(b, "add", "", x, sum);
    OK(snug_tensor_read(y, v, sizeof v, &b->err));
    assert_float_equal(v[0], 1 + 1500 + 64, 0);
    assert_int_equal(info_of(b).n_misses, 1);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(sum), snug_tensor_drop(large);
    snug_recorder_destroy(b->r);
}

static int stop(void *ctx) {
    return ++*(int *)ctx > 1;
}

static void test_a_run_without_a_plan_can_be_stopped(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    float v[4];
    int asked = 0;
    snug_recorder_set_hooks(b->r, &(snug_recorder_hooks){.ctx = &asked, .interrupt = stop});
    snug_tensor *x;
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 2, 3, 4}, &x, &b->err));
    for (int i = 0; i < LENGTH; i++) {
        snug_tensor *y = op(b, "square", "", x, NULL);
        snug_tensor_drop(x);
        x = y;
    }
    expect_status(snug_tensor_read(x, v, sizeof v, &b->err), SNUG_E_INTERRUPTED, &b->err);
    snug_tensor_drop(x);
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 2, 3, 4}, &x, &b->err));
    OK(snug_tensor_read(x, v, sizeof v, &b->err));
    snug_tensor_drop(x);
    snug_recorder_destroy(b->r);
}

static snug_status tanh_chain(snug_recorder *r, snug_tensor **x, int n, snug_error *err) {
    snug_status status = SNUG_OK;
    for (int i = 0; status == SNUG_OK && i < n; i++) {
        snug_tensor *y;
        status = snug_record_op(r, "tanh", "", x, 1, &y, 1, err);
        if (status == SNUG_OK) {
            snug_tensor_drop(*x);
            *x = y;
        }
    }
    return status;
}

static snug_status long_chain(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_tensor *x = NULL;
    float v[4];
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    snug_status status = snug_tensor_copy(r, &four, (float[]){1, 2, 3, 4}, &x, err);
    if (status == SNUG_OK)
        status = tanh_chain(r, &x, 1100, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(x, v, sizeof v, err);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
    return status;
}

/* Its values are read on the way, and then a gradient. */
static snug_status taped_chain(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_tensor *first = NULL, *x = NULL, *dx = NULL;
    snug_tape *t = NULL;
    float v[4];
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    snug_status status = snug_tensor_copy(r, &four, (float[]){1, 2, 3, 4}, &first, err);
    if (status == SNUG_OK)
        status = snug_tape_create(r, NULL, &t, err);
    if (status == SNUG_OK)
        status = snug_tape_watch(t, first, err);
    snug_tensor_hold(x = first);
    if (status == SNUG_OK)
        status = tanh_chain(r, &x, 1100, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(x, v, sizeof v, err);
    if (status == SNUG_OK)
        status = snug_tape_gradient(t, &x, NULL, 1, &(snug_source){.tensor = first}, 1, &dx, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(dx, v, sizeof v, err);
    snug_tensor_drop(first), snug_tensor_drop(x), snug_tensor_drop(dx);
    snug_tape_drop(t);
    snug_recorder_destroy(r);
    return status;
}

/* --- under a tape ----------------------------------------------------------------------------- */
/* One step of a chain whose values and slopes stay near 1. What a draw is made of no tape sees. */
static snug_tensor *seen_step(bench *b, int i, snug_tensor *x, snug_tensor *scalar) {
    snug_tensor *draw, *side, *y;
    if (i % 4 < 2)
        return op(b, i % 4 ? "sqrt" : "square", "", x, NULL);
    if (i % 4 == 2)
        return op(b, "add", "", x, scalar);
    OK(snug_tensor_random(b->r, &four, SNUG_INIT_UNIFORM, -1, 1, &draw, &b->err));
    side = op(b, "affine", "scale=0.001 shift=1", draw, NULL);
    y = op(b, "mul", "", x, side);
    snug_tensor_drop(draw), snug_tensor_drop(side);
    return y;
}

/* A sync, after which a recording that ran without a plan goes on; another one has its place. */
static void sync_and_look(bench *b) {
    const uint64_t serial = b->r->main->serial;
    const bool is_long = b->r->main->n_nodes >= 1024;
    OK(snug_sync(b->r, &b->err));
    assert_true((b->r->main->serial == serial) == is_long);
    assert_int_equal(b->r->main->n_nodes, b->r->main->n_again);
}

enum { ASKED = 3 };

/* Of the end by the beginning, by a scalar that each part reads, and by a value on the way. */
static void ask(bench *b, snug_tape *t, snug_tensor *y, snug_tensor *const *by, float *out) {
    snug_source sources[ASKED];
    snug_tensor *grads[ASKED];
    for (int i = 0; i < ASKED; i++)
        sources[i] = (snug_source){.tensor = by[i]};
    OK(snug_tape_gradient(t, &y, NULL, 1, sources, ASKED, grads, &b->err));
    for (int i = 0; i < ASKED; i++) {
        assert_non_null(grads[i]);
        OK(snug_tensor_read(grads[i], out + 4 * i, i == 1 ? 4 : 16, &b->err));
        snug_tensor_drop(grads[i]);
    }
}

/* large: values of more than a few bytes come in the end. */
static void differentiate(bench *b, int sync_every, bool large, float *out) {
    snug_tensor *x, *by[ASKED];
    snug_tape *t;
    OK(snug_sync(b->r, &b->err)); /* what the last one recorded goes */
    snug_recorder_seed(b->r, 7);
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 1.25f, 1.5f, 2}, &by[0], &b->err));
    OK(snug_tensor_copy(b->r, &one, (float[]){0.0001f}, &by[1], &b->err));
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, &t, &b->err));
    OK(snug_tape_watch(t, by[0], &b->err));
    OK(snug_tape_watch(t, by[1], &b->err));
    snug_tensor_hold(x = by[0]);
    for (int i = 0; i < LENGTH; i++) {
        snug_tensor *y = seen_step(b, i, x, by[1]);
        snug_tensor_drop(x);
        x = y;
        if (i == LENGTH / 2)
            snug_tensor_hold(by[2] = x);
        if (i % sync_every == sync_every - 1)
            sync_and_look(b);
    }
    if (large) {
        snug_tensor *wide = op(b, "broadcast_to", "dims=32,4", x, NULL);
        snug_tensor_drop(x);
        x = op(b, "mul", "", wide, wide);
        snug_tensor_drop(wide);
    }
    ask(b, t, x, by, out);
    ask(b, t, x, by, out + 4 * ASKED);
    for (int i = 0; i < ASKED; i++)
        snug_tensor_drop(by[i]);
    snug_tensor_drop(x);
    snug_tape_drop(t);
}

/* The recording that ran goes on with its nodes, or hands them to the next one: gradients are the
 * same, asked once or twice. */
static void test_a_tape_goes_on_behind_runs_without_a_plan(void **state) {
    for (int large = 0; large < 2; large++) {
        float at_once[2 * 4 * ASKED] = {0}, stays[2 * 4 * ASKED] = {0}, moves[2 * 4 * ASKED] = {0};
        bench bench_ = open_bench(state), *b = &bench_;
        differentiate(b, LENGTH + 1, large, at_once);
        differentiate(b, 1100, large, stays);
        differentiate(b, 250, large, moves);
        assert_true(at_once[0] > 0.01 && at_once[0] < 1000 && at_once[4] > 1 && at_once[8] > 0.01);
        assert_memory_equal(at_once, at_once + 4 * ASKED, 4 * 4 * ASKED);
        assert_memory_equal(at_once, stays, sizeof stays);
        assert_memory_equal(at_once, moves, sizeof moves);
        snug_recorder_destroy(b->r);
    }
}

/* Nodes that no tape sees would stay as long as the tape does. */
static void test_a_tape_that_sees_little_keeps_little(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tensor *x, *y, *other;
    snug_tape *t;
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 2, 3, 4}, &x, &b->err));
    OK(snug_tensor_copy(b->r, &four, (float[]){1, 2, 3, 4}, &other, &b->err));
    OK(snug_tape_create(b->r, NULL, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    y = op(b, "tanh", "", x, NULL);
    for (int i = 0; i < LENGTH; i++) {
        snug_tensor *more = op(b, "tanh", "", other, NULL);
        snug_tensor_drop(other);
        other = more;
    }
    OK(snug_sync(b->r, &b->err));
    assert_int_equal(b->r->main->n_nodes, 1);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(other);
    snug_tape_drop(t);
    snug_recorder_destroy(b->r);
}

static void test_any_request_of_a_long_chain_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(long_chain, NULL);
    sn_fault_sweep(taped_chain, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_many_tiny_operations_run_without_a_plan),
        engine_test(test_large_values_and_variables_are_planned),
        engine_test(test_a_run_without_a_plan_can_be_stopped),
        engine_test(test_a_tape_goes_on_behind_runs_without_a_plan),
        engine_test(test_a_tape_that_sees_little_keeps_little),
        cmocka_unit_test(test_any_request_of_a_long_chain_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
