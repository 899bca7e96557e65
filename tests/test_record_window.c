/* test_record_window.c: a long recording that tapes see goes on from run to run, and each run is of
 * what has come since: the same numbers and gradients as when all of it runs at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/recording.h"
#include "support/record_call.h"

#define OK(call) expect_ok((call), &b->err)

enum { LONG = 1500, COLUMNS = 20 }; /* operations; of values too wide to run without a plan */

static const snug_type row = {SNUG_F32, 1, {COLUMNS}};

typedef struct {
    int between; /* operations between two reads; 0: none is read */
    bool drops;  /* other tapes come and go */
    float y[COLUMNS], dx[COLUMNS], dw[COLUMNS];
} story;

static snug_tensor *make(bench *b, double first) {
    float v[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        v[i] = (float)(first + 0.01 * i);
    return vector(b, v, COLUMNS);
}

static void replace(snug_tensor **x, snug_tensor *by) {
    snug_tensor_drop(*x);
    *x = by;
}

/* What gradients read here: operands, results, whole numbers, draws, what no tape sees, a variable,
 * and values whose names are kept. */
static snug_tensor *next_step(bench *b, int i, snug_tensor *x, snug_tensor *read_once,
                              snug_variable *w) {
    snug_tensor *side, *draw, *out[2], *in[1] = {x}, *y;
    if (i % 5 == 0)
        return op(b, "tanh", "", x, NULL);
    if (i % 5 == 1) {
        side = op(b, "mul", "", read_once, read_once);
        y = op(b, "mul", "", x, side);
    } else if (i % 5 == 2) {
        OK(snug_tensor_random(b->r, &row, SNUG_INIT_UNIFORM, 0.9, 1.1, &draw, &b->err));
        side = op(b, "neg", "", draw, NULL);
        y = op(b, "mul", "", x, side);
        snug_tensor_drop(draw);
    } else if (i % 5 == 3) {
        side = read(b, w);
        y = op(b, "add", "", x, side);
    } else {
        OK(snug_record_op(b->r, "sort", "dtype=i32", in, 1, out, 2, &b->err));
        y = out[0];
        side = out[1];
    }
    snug_tensor_drop(side);
    return y;
}

static void come_and_go(bench *b, snug_tensor *x) {
    snug_tape *t;
    OK(snug_tape_create(b->r, NULL, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    snug_tape_drop(t);
}

static void tell(bench *b, story *s) {
    snug_tape *t;
    snug_variable *w;
    snug_tensor *init = make(b, 0.1), *x = make(b, 0.5), *once = make(b, 0.95), *y = x, *grads[2];
    OK(snug_variable_create(b->r, init, NULL, &w, &b->err));
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    snug_tensor_hold(y);
    for (int i = 0; i < LONG; i++) {
        replace(&y, next_step(b, i, y, once, w));
        if (s->between > 0 && i % s->between == 0) {
            OK(snug_tensor_read(y, s->y, sizeof s->y, &b->err));
            if (s->drops)
                come_and_go(b, y);
        }
    }
    const snug_source sources[2] = {{.tensor = x}, {.variable = w}};
    OK(snug_tape_gradient(t, &y, NULL, 1, sources, 2, grads, &b->err));
    OK(snug_tensor_read(y, s->y, sizeof s->y, &b->err));
    OK(snug_tensor_read(grads[0], s->dx, sizeof s->dx, &b->err));
    OK(snug_tensor_read(grads[1], s->dw, sizeof s->dw, &b->err));
    snug_tensor *all[] = {init, x, once, y, grads[0], grads[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        snug_tensor_drop(all[i]);
    snug_tape_drop(t);
    snug_variable_drop(w);
}

static void test_reads_change_no_number_and_no_gradient(void **state) {
    story all[] = {{.between = 0}, {.between = 7}, {.between = 100}, {.between = 7, .drops = true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bench bench_ = open_bench(state), *const b = &bench_;
        tell(b, &all[i]);
        snug_recorder_destroy(b->r);
        assert_memory_equal(all[0].y, all[i].y, sizeof all[0].y);
        assert_memory_equal(all[0].dx, all[i].dx, sizeof all[0].dx);
        assert_memory_equal(all[0].dw, all[i].dw, sizeof all[0].dw);
    }
    assert_true(all[0].dx[3] != 0 && all[0].dw[3] != 0);
}

/* --- what runs, and what does not -------------------------------------------------------------- */
static snug_tensor *long_chain(bench *b, snug_tape **t, snug_tensor *x) {
    snug_tensor *y = x;
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, t, &b->err));
    OK(snug_tape_watch(*t, x, &b->err));
    snug_tensor_hold(y);
    for (int i = 0; i < LONG; i++)
        replace(&y, op(b, "tanh", "", y, NULL));
    (void)first_of(b, y);
    return y;
}

/* The plan of what has come serves again, however long the recording has become. */
static void test_equal_parts_of_a_long_recording_are_one_plan(void **state) {
    bench bench_ = open_bench(state), *const b = &bench_;
    snug_tape *t;
    snug_tensor *x = make(b, 0.5), *y = long_chain(b, &t, x);
    for (int i = 0; i < 2; i++) {
        replace(&y, op(b, "square", "", y, NULL));
        (void)first_of(b, y);
    }
    const snug_recorder_info before = info_of(b);
    for (int i = 0; i < 20; i++) {
        replace(&y, op(b, "square", "", y, NULL));
        (void)first_of(b, y);
    }
    assert_int_equal(info_of(b).n_plans, before.n_plans);
    assert_int_equal(info_of(b).n_flushes, before.n_flushes + 20);
    snug_tape_drop(t);
    snug_tensor_drop(x), snug_tensor_drop(y);
    snug_recorder_destroy(b->r);
}

/* Bytes of steps that no tape sees are not kept for it. */
static void test_what_tapes_do_not_see_is_not_kept(void **state) {
    enum { LARGE = 1 << 18 };
    bench bench_ = open_bench(state), *const b = &bench_;
    snug_tape *t;
    snug_tensor *x = make(b, 0.5), *y = long_chain(b, &t, x);
    const snug_type large = {SNUG_F32, 1, {LARGE}};
    float *v = calloc(LARGE, sizeof *v);
    assert_non_null(v);
    const size_t before = snug_engine_bytes(b->e);
    for (int i = 0; i < 16; i++) {
        snug_tensor *rows, *sum;
        OK(snug_tensor_copy(b->r, &large, v, &rows, &b->err));
        sum = op(b, "sum", "axes=0", rows, NULL);
        snug_tensor_drop(rows);
        assert_true(first_of(b, sum) == 0);
        snug_tensor_drop(sum);
    }
    assert_in_range(snug_engine_bytes(b->e), 0, before + 4 * LARGE * sizeof *v);
    free(v);
    snug_tape_drop(t);
    snug_tensor_drop(x), snug_tensor_drop(y);
    snug_recorder_destroy(b->r);
}

/* A gradient by itself is 1; and each asks for a name of what an earlier run made. */
static void test_names_of_earlier_values_get_their_bytes(void **state) {
    bench bench_ = open_bench(state), *const b = &bench_;
    snug_tape *t;
    snug_tensor *x = make(b, 0.5), *y = long_chain(b, &t, x);
    for (int i = 0; i < 40; i++) {
        snug_tensor *in[2] = {y, x}, *dy;
        const snug_source source = {.tensor = y};
        OK(snug_tape_gradient(t, &in[i % 2], NULL, 1, &source, 1, &dy, &b->err));
        if (dy)
            assert_true(first_of(b, dy) == 1);
        snug_tensor_drop(dy);
    }
    snug_tape_drop(t);
    snug_tensor_drop(x), snug_tensor_drop(y);
    snug_recorder_destroy(b->r);
}

static const char *say_line(void *ctx, uint64_t site, char *text, size_t size) {
    (void)ctx;
    snprintf(text, size, "train.py:%u", (unsigned)site);
    return text;
}

static void test_an_error_in_a_part_says_where_it_was_recorded(void **state) {
    bench bench_ = open_bench(state), *const b = &bench_;
    float v[COLUMNS];
    snug_tape *t;
    snug_tensor *i, *x = make(b, 0.5), *y = long_chain(b, &t, x);
    snug_recorder_set_hooks(b->r, &(snug_recorder_hooks){.line = say_line});
    OK(snug_tensor_copy(b->r, &(snug_type){SNUG_I32, 1, {1}}, (int32_t[]){COLUMNS}, &i, &b->err));
    snug_recorder_set_site(b->r, 7);
    snug_tensor *far = op(b, "add", "", i, i);
    snug_recorder_set_site(b->r, 8);
    snug_tensor *bad = op(b, "gather", "axis=0", y, far);
    snug_recorder_set_site(b->r, 9);
    expect_status(snug_tensor_read(bad, v, 4, &b->err), SNUG_E_DATA, &b->err);
    expect_text(b->err.text, "train.py:8");
    expect_first(b, x, 0.5);
    snug_tensor *all[] = {i, x, y, far, bad};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        snug_tensor_drop(all[k]);
    snug_tape_drop(t);
    snug_recorder_destroy(b->r);
}

/* An assignment among them: all of it runs, as before. */
static void test_a_variable_that_is_written_ends_it(void **state) {
    bench bench_ = open_bench(state), *const b = &bench_;
    snug_tape *t;
    snug_variable *w = variable(b, 2);
    snug_tensor *x = make(b, 0.5), *y = long_chain(b, &t, x), *of = read(b, w);
    expect_first(b, of, 2);
    assign(b, w, 3);
    snug_tensor *now = read(b, w);
    expect_first(b, now, 3);
    expect_first(b, of, 2);
    snug_tensor *dx = NULL;
    OK(snug_tape_gradient(t, &y, NULL, 1, &(snug_source){.tensor = x}, 1, &dx, &b->err));
    assert_true(first_of(b, dx) > 0);
    snug_tensor *all[] = {x, y, of, now, dx};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        snug_tensor_drop(all[k]);
    snug_tape_drop(t);
    snug_variable_drop(w);
    snug_recorder_destroy(b->r);
}

/* --- want of memory ---------------------------------------------------------------------------- */
static snug_status add_steps(snug_recorder *r, snug_tensor **y, int n, snug_error *err) {
    snug_status status = SNUG_OK;
    float v[4];
    for (int i = 0; status == SNUG_OK && i < n; i++) {
        snug_tensor *next;
        status = snug_record_op(r, "tanh", "", y, 1, &next, 1, err);
        if (status == SNUG_OK)
            replace(y, next);
    }
    return status == SNUG_OK ? snug_tensor_read(*y, v, sizeof v, err) : status;
}

/* Long, then twice a part of it, then its gradient. */
static snug_status go_on(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_tensor *x = NULL, *y = NULL, *dx = NULL;
    snug_tape *t = NULL;
    float v[4];
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    snug_status status =
        snug_tensor_copy(r, &(snug_type){SNUG_F32, 1, {4}}, (float[]){1, 2, 3, 4}, &x, err);
    if (status == SNUG_OK)
        status = snug_tape_create(r, NULL, &t, err);
    if (status == SNUG_OK)
        status = snug_tape_watch(t, x, err);
    snug_tensor_hold(y = x);
    for (int i = 0; status == SNUG_OK && i < 3; i++)
        status = add_steps(r, &y, i == 0 ? 1100 : 3, err);
    if (status == SNUG_OK)
        status = snug_tape_gradient(t, &y, NULL, 1, &(snug_source){.tensor = x}, 1, &dx, err);
    if (status == SNUG_OK)
        status = snug_tensor_read(dx, v, sizeof v, err);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(dx);
    snug_tape_drop(t);
    snug_recorder_destroy(r);
    return status;
}

static void test_any_request_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(go_on, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_reads_change_no_number_and_no_gradient),
        engine_test(test_equal_parts_of_a_long_recording_are_one_plan),
        engine_test(test_what_tapes_do_not_see_is_not_kept),
        engine_test(test_names_of_earlier_values_get_their_bytes),
        engine_test(test_an_error_in_a_part_says_where_it_was_recorded),
        engine_test(test_a_variable_that_is_written_ends_it),
        cmocka_unit_test(test_any_request_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
