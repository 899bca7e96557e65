/* test_record_tapes.c: recorded execution: tapes and traces. */
#include <stdio.h>
#include <string.h>

#include "record/recording.h"
#include "support/record_call.h"

/* --- tapes ------------------------------------------------------------------------------------ */
static void test_a_tape_sees_only_what_it_recorded(void **state) {
    bench b = open_bench(state);
    snug_variable *w = variable(&b, 3);
    snug_tensor *before = read(&b, w), *square = op(&b, "square", "", before, NULL), *grads[2];
    snug_tape *tape;
    expect_ok(snug_tape_create(b.r, NULL, &tape, &b.err), &b.err);
    snug_tensor *x = vector(&b, (float[]){2, 2, 2, 2}, 4);
    expect_ok(snug_tape_watch(tape, x, &b.err), &b.err);
    snug_tensor *y = op(&b, "mul", "", square, x);
    const snug_source sources[2] = {{.variable = w}, {.tensor = x}};
    expect_ok(snug_tape_gradient(tape, &y, NULL, 1, sources, 2, grads, &b.err), &b.err);
    assert_null(grads[0]); /* the square was made before the tape */
    expect_first(&b, grads[1], 9);
    expect_status(snug_tape_gradient(tape, &y, NULL, 1, sources, 2, grads, &b.err), SNUG_E_INVALID,
                  &b.err);
    snug_tensor_drop(before), snug_tensor_drop(square), snug_tensor_drop(x), snug_tensor_drop(y);
    snug_tensor_drop(grads[1]);
    snug_tape_drop(tape);
    snug_variable_drop(w);
    close_bench(&b);
}

/* Numbers to come have no bytes to be found by: a run between must not lose that they are
 * watched. */
static void test_a_tape_finds_watched_numbers_after_a_run(void **state) {
    bench b = open_bench(state);
    snug_tensor *x, *grad;
    snug_tape *tape;
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {4}};
    expect_ok(snug_tensor_full(b.r, &type, 3, &x, &b.err), &b.err);
    expect_ok(snug_tape_create(b.r, NULL, &tape, &b.err), &b.err);
    expect_ok(snug_tape_watch(tape, x, &b.err), &b.err);
    snug_tensor *y = op(&b, "square", "", x, NULL);
    expect_first(&b, y, 9);
    const snug_source source = {.tensor = x};
    expect_ok(snug_tape_gradient(tape, &y, NULL, 1, &source, 1, &grad, &b.err), &b.err);
    expect_first(&b, grad, 6);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(grad);
    snug_tape_drop(tape);
    close_bench(&b);
}

/* A persistent tape gives gradients by what a variable held, also after it was assigned and run. */
static void test_a_tape_remembers_versions(void **state) {
    bench b = open_bench(state);
    snug_variable *w = variable(&b, 3);
    snug_tape *tape;
    snug_tensor *grad;
    expect_ok(snug_tape_create(b.r, &(snug_tape_options){.persistent = 1}, &tape, &b.err), &b.err);
    snug_tensor *v = read(&b, w), *y = op(&b, "square", "", v, NULL);
    snug_tape_stop(tape);
    snug_tensor_drop(v);
    assign(&b, w, 10);
    const snug_source source = {.variable = w};
    for (int i = 0; i < 3; i++) {
        expect_ok(snug_tape_gradient(tape, &y, NULL, 1, &source, 1, &grad, &b.err), &b.err);
        expect_first(&b, grad, 6);
        snug_tensor_drop(grad);
    }
    snug_tensor_drop(y);
    snug_tape_drop(tape);
    snug_variable_drop(w);
    close_bench(&b);
}

/* d2(x^3)/dx2 = 6 x, with a run between the two tapes' gradients or not. */
static void second_order(bench *b, bool peek) {
    snug_tape *outer, *inner;
    snug_tensor *x = vector(b, (float[]){2, 1}, 2), *first, *second;
    expect_ok(snug_tape_create(b->r, NULL, &outer, &b->err), &b->err);
    expect_ok(snug_tape_watch(outer, x, &b->err), &b->err);
    expect_ok(snug_tape_create(b->r, NULL, &inner, &b->err), &b->err);
    expect_ok(snug_tape_watch(inner, x, &b->err), &b->err);
    snug_tensor *y = op(b, "mul", "", x, x), *z = op(b, "mul", "", y, x);
    const snug_source source = {.tensor = x};
    if (peek)
        expect_first(b, z, 8);
    expect_ok(snug_tape_gradient(inner, &z, NULL, 1, &source, 1, &first, &b->err), &b->err);
    if (peek)
        expect_first(b, first, 12);
    expect_ok(snug_tape_gradient(outer, &first, NULL, 1, &source, 1, &second, &b->err), &b->err);
    expect_first(b, second, 12);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(z);
    snug_tensor_drop(first), snug_tensor_drop(second);
    snug_tape_drop(outer), snug_tape_drop(inner);
}

static void test_tapes_nest(void **state) {
    bench b = open_bench(state);
    second_order(&b, false);
    second_order(&b, true);
    close_bench(&b);
}

/* --- traces ----------------------------------------------------------------------------------- */
static void test_a_trace_is_applied_at_each_call(void **state) {
    bench b = open_bench(state);
    const snug_type type = {SNUG_F32, 1, {4}};
    snug_variable *count = variable(&b, 0);
    snug_tensor *arg, *captured = vector(&b, (float[]){10, 10, 10, 10}, 4), *result;
    snug_trace *trace;
    expect_ok(snug_trace_begin(b.r, &type, 1, &arg, &trace, &b.err), &b.err);
    snug_tensor *y = op(&b, "mul", "", arg, captured), *old = read(&b, count);
    snug_tensor *new = op(&b, "add", "", old, arg);
    expect_ok(snug_variable_assign(count, new, &b.err), &b.err);
    expect_status(snug_tensor_read(y, &(float[4]){0}, 16, &b.err), SNUG_E_UNSUPPORTED, &b.err);
    expect_ok(snug_trace_end(trace, &y, 1, &b.err), &b.err);
    snug_tensor_drop(arg), snug_tensor_drop(y), snug_tensor_drop(old), snug_tensor_drop(new);
    snug_tensor_drop(captured);
    assert_true(snug_trace_has_effects(trace));
    for (int i = 1; i <= 3; i++) {
        snug_tensor *x = vector(&b, (float[]){(float)i, 0, 0, 0}, 4);
        expect_ok(snug_trace_call(trace, &x, 1, &result, 1, &b.err), &b.err);
        expect_first(&b, result, 10 * i);
        snug_tensor_drop(x), snug_tensor_drop(result);
    }
    snug_tensor *now = read(&b, count);
    expect_first(&b, now, 6);
    assert_true(info_of(&b).n_misses <= 2);
    snug_tensor_drop(now);
    snug_trace_drop(trace);
    snug_variable_drop(count);
    close_bench(&b);
}

/* [n, 4] in pieces of rows, once over; n is open. */
static snug_tensor *call_open(bench *b, snug_trace *trace, int64_t n, snug_status wanted) {
    snug_tensor *x, *out = NULL;
    expect_ok(snug_tensor_full(b->r, &(snug_type){SNUG_F32, 2, {n, 4}}, 0.5, &x, &b->err), &b->err);
    expect_status(snug_trace_call(trace, &x, 1, &out, 1, &b->err), wanted, &b->err);
    snug_tensor_drop(x);
    return out;
}

static snug_trace *open_trace(bench *b, snug_tensor **argument) {
    snug_trace *trace;
    const snug_open_axes axes = {.of = {1}};
    expect_ok(snug_trace_begin_open(b->r, &(snug_type){SNUG_F32, 2, {8, 4}}, &axes, 1, argument,
                                    &trace, &b->err),
              &b->err);
    assert_int_equal(snug_tensor_open_axes(*argument), 1);
    return trace;
}

static void test_a_trace_serves_any_size_of_an_open_axis(void **state) {
    bench b = open_bench(state);
    snug_tensor *x, *ones;
    char dims[64];
    snug_trace *trace = open_trace(&b, &x);
    const int64_t n = snug_tensor_type(x)->dims[0];
    snprintf(dims, sizeof dims, "dims=%lld", (long long)(4 * n));
    snug_tensor *flat = op(&b, "reshape", dims, x, NULL);
    expect_ok(snug_tensor_full(b.r, &(snug_type){SNUG_F32, 1, {4 * n}}, (double)n, &ones, &b.err),
              &b.err);
    snug_tensor *y = op(&b, "add", "", flat, ones), *sum = op(&b, "sum", "axes=0", y, NULL);
    expect_ok(snug_trace_end(trace, &sum, 1, &b.err), &b.err);
    for (int64_t size = 1; size < 50; size += 16) {
        snug_tensor *out = call_open(&b, trace, size, SNUG_OK);
        expect_first(&b, out, 4 * (double)size * (0.5 + (double)size));
        snug_tensor_drop(out);
    }
    snug_tensor_drop(x), snug_tensor_drop(flat), snug_tensor_drop(ones), snug_tensor_drop(y);
    snug_tensor_drop(sum);
    snug_trace_drop(trace);
    close_bench(&b);
}

static void test_a_trace_that_cannot_tell_says_so(void **state) {
    bench b = open_bench(state);
    snug_tensor *x;
    char attrs[64];
    snug_trace *trace = open_trace(&b, &x);
    snprintf(attrs, sizeof attrs, "sizes=%lld,4 strides=1,1 start=0,0",
             (long long)(snug_tensor_type(x)->dims[0] / 2));
    snug_tensor *half = op(&b, "slice", attrs, x, NULL);
    expect_ok(snug_trace_end(trace, &half, 1, &b.err), &b.err);
    assert_null(call_open(&b, trace, 8, SNUG_E_UNSUPPORTED));
    snug_tensor_drop(x), snug_tensor_drop(half);
    snug_trace_drop(trace);
    close_bench(&b);
}

static void test_a_trace_draws_anew_at_each_call(void **state) {
    bench b = open_bench(state);
    snug_tensor *drawn, *one, *two;
    snug_trace *trace;
    const snug_type type = {SNUG_F32, 1, {4}};
    snug_recorder_seed(b.r, 7);
    expect_ok(snug_trace_begin(b.r, NULL, 0, NULL, &trace, &b.err), &b.err);
    expect_ok(snug_tensor_random(b.r, &type, SNUG_INIT_NORMAL, 0, 1, &drawn, &b.err), &b.err);
    expect_ok(snug_trace_end(trace, &drawn, 1, &b.err), &b.err);
    expect_ok(snug_trace_call(trace, NULL, 0, &one, 1, &b.err), &b.err);
    expect_ok(snug_trace_call(trace, NULL, 0, &two, 1, &b.err), &b.err);
    assert_true(first_of(&b, one) != first_of(&b, two));
    snug_tensor_drop(drawn), snug_tensor_drop(one), snug_tensor_drop(two);
    snug_trace_drop(trace);
    close_bench(&b);
}

static int64_t seeded(bench *b, const char *op, int64_t seed) {
    int64_t key;
    expect_ok(snug_recorder_draw_seeded(b->r, op, seed, &key, &b->err), &b->err);
    return key;
}

static void test_sequences_of_operations_go_on_from_any_place(void **state) {
    bench b = open_bench(state);
    snug_recorder_seed(b.r, 7);
    const int64_t first = seeded(&b, "a", 1), second = seeded(&b, "a", 1),
                  other = seeded(&b, "b", 1);
    assert_true(first != second && first != other);
    uint64_t pairs[4];
    assert_int_equal(snug_recorder_tell_sequences(b.r, pairs, 2), 2);
    const int64_t third = seeded(&b, "a", 1);
    snug_recorder_seed(b.r, 7);
    assert_int_equal(snug_recorder_tell_sequences(b.r, NULL, 0), 0);
    assert_true(seeded(&b, "a", 1) == first);
    expect_ok(snug_recorder_set_sequences(b.r, pairs, 2, &b.err), &b.err);
    assert_true(seeded(&b, "a", 1) == third);
    pairs[1] = UINT64_C(1) << 32;
    expect_status(snug_recorder_set_sequences(b.r, pairs, 2, &b.err), SNUG_E_INVALID, &b.err);
    assert_int_equal(snug_recorder_tell_sequences(b.r, NULL, 0), 2);
    close_bench(&b);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_tape_sees_only_what_it_recorded),
        engine_test(test_a_tape_finds_watched_numbers_after_a_run),
        engine_test(test_a_tape_remembers_versions),
        engine_test(test_tapes_nest),
        engine_test(test_a_trace_is_applied_at_each_call),
        engine_test(test_a_trace_serves_any_size_of_an_open_axis),
        engine_test(test_a_trace_that_cannot_tell_says_so),
        engine_test(test_a_trace_draws_anew_at_each_call),
        engine_test(test_sequences_of_operations_go_on_from_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
