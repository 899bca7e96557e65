/* test_record_sets.c: more tapes than have a bit of a mark: what they give is what one tape gives,
 * and what they take goes back. */
#include <stdlib.h>
#include <string.h>

#include "record/recording.h"
#include "support/bench.h"

#define OK(call) expect_ok((call), &b->err)

static snug_tensor *number(bench *b, float value) {
    snug_tensor *t;
    OK(snug_tensor_copy(b->r, &(snug_type){SNUG_F32, 0, {0}}, &value, &t, &b->err));
    return t;
}

static snug_tensor *op(bench *b, const char *name, snug_tensor *x, snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    OK(snug_record_op(b->r, name, "", in, y ? 2 : 1, &out, 1, &b->err));
    return out;
}

static snug_variable *variable(bench *b, float value) {
    snug_variable *v;
    snug_tensor *t = number(b, value);
    OK(snug_variable_create(b->r, t, NULL, &v, &b->err));
    snug_tensor_drop(t);
    return v;
}

static snug_tape *tape(bench *b, int persistent, snug_tensor *watched) {
    snug_tape *t;
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = persistent}, &t, &b->err));
    if (watched)
        OK(snug_tape_watch(t, watched, &b->err));
    return t;
}

static snug_tensor *gradient(bench *b, snug_tape *t, snug_tensor *y, snug_source by) {
    snug_tensor *dx;
    OK(snug_tape_gradient(t, &y, NULL, 1, &by, 1, &dx, &b->err));
    return dx;
}

static float value_of(bench *b, snug_tensor *t) {
    float v;
    assert_non_null(t);
    OK(snug_tensor_read(t, &v, sizeof v, &b->err));
    snug_tensor_drop(t);
    return v;
}

static void expect_number(bench *b, snug_tensor *t, double want) {
    const double v = (double)value_of(b, t);
    if (!(v > want - 1e-3 && v < want + 1e-3))
        fail_msg("%g instead of %g", v, want);
}

static size_t tape_memory(const bench *b) {
    snug_memory_row row[64];
    const size_t n = snug_engine_memory(b->e, row, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (strcmp(row[i].category, "tapes") == 0 && !*row[i].owner)
            return row[i].bytes;
    return 0;
}

static bool is_full(void) {
    return getenv("SNUG_TEST_FULL") != NULL;
}

/* Each sees a product of its own, by a tensor and by a variable; asked one after the other at the
 * end. Their bytes go with them. */
typedef struct {
    snug_tape *tape;
    snug_tensor *y, *dx, *dv;
} seen;

static void see(bench *b, snug_tensor *x, snug_variable *v, int i, seen *out) {
    snug_tensor *w, *times = number(b, (float)(i % 100)), *part;
    out->tape = tape(b, 1, x);
    part = op(b, "mul", x, times);
    OK(snug_variable_read(v, &w, &b->err));
    out->y = op(b, "mul", part, w);
    snug_tape_stop(out->tape);
    snug_tensor_drop(w), snug_tensor_drop(times), snug_tensor_drop(part);
}

static void hold_many(bench *b, int n, bool runs) {
    snug_tensor *x = number(b, 3);
    snug_variable *v = variable(b, 2);
    seen *s = calloc((size_t)n, sizeof(seen));
    OK(snug_sync(b->r, &b->err));
    const size_t before = tape_memory(b);
    for (int i = 0; i < n; i++)
        see(b, x, v, i, &s[i]);
    if (runs)
        OK(snug_sync(b->r, &b->err));
    assert_true(tape_memory(b) - before < (size_t)n * 4096);
    for (int i = 0; i < n; i++) {
        const snug_source by[2] = {{.tensor = x}, {.variable = v}};
        snug_tensor *grads[2];
        OK(snug_tape_gradient(s[i].tape, &s[i].y, NULL, 1, by, 2, grads, &b->err));
        s[i].dx = grads[0], s[i].dv = grads[1];
        if (i % 20 == 0)
            assert_null(gradient(b, s[i].tape, s[(i + 1) % n].y, by[0]));
    }
    for (int i = 0; i < n; i++)
        snug_tape_drop(s[i].tape);
    for (int i = 0; i < n; i++) {
        expect_number(b, s[i].dx, 2.0 * (i % 100));
        expect_number(b, s[i].dv, 3.0 * (i % 100));
        snug_tensor_drop(s[i].y);
    }
    snug_tensor_drop(x);
    snug_variable_drop(v);
    OK(snug_sync(b->r, &b->err));
    assert_int_equal(tape_memory(b), before);
    free(s);
}

static void test_any_number_of_tapes_wait_to_be_asked(void **state) {
    bench b = open_bench(state);
    hold_many(&b, is_full() ? 10000 : 500, false);
    hold_many(&b, is_full() ? 2000 : 200, true);
    snug_recorder_destroy(b.r);
}

/* Of 1 to n open tapes; the k-th of them watches from the k-th step on, and is stopped there. */
static void test_tapes_nest_as_deep_as_one_likes(void **state) {
    enum { N = 100 };
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tape *t[N];
    snug_variable *v = variable(b, 1);
    snug_tensor *x[N + 1] = {number(b, 1)}, *w, *late;
    for (int i = 0; i < N; i++) {
        t[i] = tape(b, i % 2, x[i]);
        x[i + 1] = op(b, "add", x[i], x[0]);
    }
    OK(snug_variable_read(v, &w, &b->err));
    snug_tensor *y = op(b, "mul", x[N], w);
    for (int i = N; i-- > 0;)
        snug_tape_stop(t[i]);
    late = op(b, "square", x[N], NULL); /* none sees it */
    OK(snug_sync(b->r, &b->err));
    for (int i = N; i-- > 0;) {
        const double by_x = i == 0 ? N + 1 : 1;
        if (i % 2) {
            expect_number(b, gradient(b, t[i], y, (snug_source){.variable = v}), N + 1);
            assert_null(gradient(b, t[i], late, (snug_source){.tensor = x[i]}));
            assert_null(gradient(b, t[i], y, (snug_source){.tensor = x[i ? i - 1 : N]}));
        }
        expect_number(b, gradient(b, t[i], y, (snug_source){.tensor = x[i]}), by_x);
        snug_tape_drop(t[i]);
    }
    snug_tensor_drop(late), snug_tensor_drop(y), snug_tensor_drop(w);
    for (int i = 0; i <= N; i++)
        snug_tensor_drop(x[i]);
    snug_variable_drop(v);
    OK(snug_sync(b->r, &b->err));
    assert_int_equal(tape_memory(b), 0);
    snug_recorder_destroy(b->r);
}

/* d^n/dx^n of x^n = n!: each gradient is recorded by the tapes around it. */
static void test_gradients_of_gradients_among_many(void **state) {
    enum { N = 4, IDLE = 40 };
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tensor *x = number(b, 2), *y = number(b, 1);
    snug_tape *idle[IDLE], *t[N];
    for (int i = 0; i < IDLE; i++)
        idle[i] = tape(b, 1, i % 2 ? x : NULL);
    for (int i = 0; i < N; i++)
        t[i] = tape(b, 0, x);
    for (int i = 0; i < N; i++) {
        snug_tensor *more = op(b, "mul", y, x);
        snug_tensor_drop(y);
        y = more;
    }
    for (int i = N; i-- > 0;) {
        snug_tensor *dy = gradient(b, t[i], y, (snug_source){.tensor = x});
        snug_tensor_drop(y);
        y = dy;
        snug_tape_drop(t[i]);
        if (i == 2)
            OK(snug_sync(b->r, &b->err));
    }
    expect_number(b, y, 24);
    for (int i = 0; i < IDLE; i++)
        snug_tape_drop(idle[i]);
    snug_tensor_drop(x);
    snug_recorder_destroy(b->r);
}

/* Stopped, resumed, reset and dropped in the middle: others see what they saw. */
static void test_tapes_leave_sets_as_they_leave_marks(void **state) {
    enum { N = 40 };
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tape *t[N];
    snug_tensor *x = number(b, 3);
    for (int i = 0; i < N; i++)
        t[i] = tape(b, 1, x);
    snug_tape_stop(t[35]);
    snug_tensor *y = op(b, "square", x, NULL);
    OK(snug_tape_resume(t[35], &b->err));
    OK(snug_sync(b->r, &b->err));
    snug_tape_reset(t[36]);
    snug_tape_drop(t[0]), snug_tape_drop(t[37]);
    t[0] = tape(b, 1, NULL); /* their bits are others' now, who have not seen it */
    t[37] = tape(b, 1, NULL);
    snug_tensor *z = op(b, "square", y, NULL);
    for (int i = 0; i < N; i++) {
        const bool saw = i != 0 && i != 35 && i != 36 && i != 37;
        snug_tensor *dy = gradient(b, t[i], y, (snug_source){.tensor = x});
        snug_tensor *dz = gradient(b, t[i], z, (snug_source){.tensor = x});
        if (saw)
            expect_number(b, dy, 6), expect_number(b, dz, 108);
        else
            assert_true(!dy && !dz);
    }
    for (int i = 0; i < N; i++)
        snug_tape_drop(t[i]);
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(z);
    OK(snug_sync(b->r, &b->err));
    assert_int_equal(tape_memory(b), 0);
    snug_recorder_destroy(b->r);
}

/* While many are alive a loop makes one after the other: their sets do not heap up. */
static void test_sets_that_nobody_has_go(void **state) {
    enum { N = 40, STEPS = 2000 };
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tape *t[N];
    snug_variable *v = variable(b, 2);
    size_t after_some = 0;
    for (int i = 0; i < N; i++) {
        t[i] = tape(b, 1, NULL);
        snug_tape_stop(t[i]);
    }
    for (int i = 0; i < STEPS; i++) {
        snug_tape *step = tape(b, 0, NULL);
        snug_tensor *w;
        OK(snug_variable_read(v, &w, &b->err));
        snug_tensor *y = op(b, "square", w, NULL);
        expect_number(b, gradient(b, step, y, (snug_source){.variable = v}), 4);
        snug_tensor_drop(w), snug_tensor_drop(y);
        snug_tape_drop(step);
        after_some = i == STEPS / 10 ? tape_memory(b) : after_some;
    }
    assert_true(tape_memory(b) <= 2 * after_some);
    for (int i = 0; i < N; i++)
        snug_tape_drop(t[i]);
    assert_int_equal(tape_memory(b), 0);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

/* --- any request may fail --------------------------------------------------------------------- */
enum { CROWD = 34 };
typedef struct {
    snug_recorder *r;
    snug_tensor *t[8];
    snug_variable *v;
    snug_tape *tape[CROWD];
} program;

static snug_status play(program *p, snug_error *err) {
    const float two = 2;
    float out;
    snug_tensor **t = p->t;
    SNUG_TRY(snug_tensor_copy(p->r, &(snug_type){SNUG_F32, 0, {0}}, &two, &t[0], err));
    SNUG_TRY(snug_variable_create(p->r, t[0], NULL, &p->v, err));
    for (int i = 0; i < CROWD; i++) {
        SNUG_TRY(snug_tape_create(p->r, &(snug_tape_options){.persistent = 1}, &p->tape[i], err));
        SNUG_TRY(snug_tape_watch(p->tape[i], t[0], err));
    }
    snug_tape_stop(p->tape[3]);
    SNUG_TRY(snug_variable_read(p->v, &t[1], err));
    SNUG_TRY(snug_record_op(p->r, "mul", "", t, 2, &t[2], 1, err));
    SNUG_TRY(snug_variable_assign(p->v, t[2], err));
    SNUG_TRY(snug_sync(p->r, err));
    SNUG_TRY(snug_record_op(p->r, "mul", "", &t[1], 2, &t[3], 1, err));
    const snug_source by = {.variable = p->v};
    SNUG_TRY(snug_tape_gradient(p->tape[33], &t[3], NULL, 1, &by, 1, &t[4], err));
    SNUG_TRY(snug_tensor_read(t[4], &out, sizeof out, err));
    assert_true(out > 7.99F && out < 8.01F); /* v (v x): 2 v x */
    return SNUG_OK;
}

static snug_status crowded_program(snug_engine *e, void *ctx, snug_error *err) {
    program p = {.r = NULL};
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &p.r, err));
    const snug_status status = play(&p, err);
    for (int i = 0; i < 8; i++)
        snug_tensor_drop(p.t[i]);
    snug_variable_drop(p.v);
    snug_recorder_destroy(p.r);
    for (int i = 0; i < CROWD; i++)
        snug_tape_drop(p.tape[i]);
    return status;
}

static void test_any_request_of_a_crowded_program_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(crowded_program, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_any_number_of_tapes_wait_to_be_asked),
        engine_test(test_tapes_nest_as_deep_as_one_likes),
        engine_test(test_gradients_of_gradients_among_many),
        engine_test(test_tapes_leave_sets_as_they_leave_marks),
        engine_test(test_sets_that_nobody_has_go),
        cmocka_unit_test(test_any_request_of_a_crowded_program_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
