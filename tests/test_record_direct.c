/* test_record_direct.c: long recordings of tiny values run without a plan and give the bits that
 * the same operations give when each of them is run by itself. */
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

static snug_status long_chain(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_tensor *x = NULL, *y;
    float v[4];
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    snug_status status = snug_tensor_copy(r, &four, (float[]){1, 2, 3, 4}, &x, err);
    for (int i = 0; status == SNUG_OK && i < 1100; i++) {
        status = snug_record_op(r, "tanh", "", &x, 1, &y, 1, err);
        if (status == SNUG_OK) {
            snug_tensor_drop(x);
            x = y;
        }
    }
    if (status == SNUG_OK)
        status = snug_tensor_read(x, v, sizeof v, err);
    snug_tensor_drop(x);
    snug_recorder_destroy(r);
    return status;
}

static void test_any_request_of_a_long_chain_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(long_chain, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_many_tiny_operations_run_without_a_plan),
        engine_test(test_large_values_and_variables_are_planned),
        engine_test(test_a_run_without_a_plan_can_be_stopped),
        cmocka_unit_test(test_any_request_of_a_long_chain_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
