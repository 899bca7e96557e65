/* custom_loop.c: a training loop of your own on the graph builder: a network with one hidden layer
 * learns sin(3 x) with Adam, and the loop, not the library, decides the learning rate of each step.
 * Shows inputs, variables, operators by name, gradients, an optimizer row, and a session that runs
 * the whole step.
 *
 *     cc custom_loop.c $(pkg-config --cflags --libs snug) -lm -o custom_loop && ./custom_loop */
#include <snug/graph.h>
#include <snug/run.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 512, BATCH = 64, HIDDEN = 32, STEPS = 400, WEIGHTS = 4 };
static float xs[ROWS][1], ts[ROWS][1];

static void check(snug_status status, const snug_error *err) {
    if (status == SNUG_OK)
        return;
    fprintf(stderr, "%s: %s\n", snug_status_name(status), err->text);
    exit(snug_status_exit_code(status));
}

/* The one output of an operator. */
static snug_value op(snug_graph *g, const char *name, const char *attrs, int n,
                     const snug_value *in) {
    snug_error err;
    snug_value out;
    check(snug_graph_op(g, name, attrs, in, n, &out, 1, &err), &err);
    return out;
}
#define OP(g, name, attrs, ...)                                                                    \
    op(g, name, attrs, (int)(sizeof((snug_value[]){__VA_ARGS__}) / sizeof(snug_value)),            \
       (snug_value[]){__VA_ARGS__})

static snug_value variable(snug_graph *g, const char *name, int64_t rows, int64_t cols,
                           snug_variable_options o) {
    snug_error err;
    snug_value v;
    check(snug_graph_variable(g, name, &(snug_type){SNUG_F32, 2, {rows, cols}}, &o, &v, &err),
          &err);
    return v;
}

/* w -= step, by Adam, whose two moments are variables of the graph like any other. */
static void update(snug_graph *g, int i, snug_value w, snug_value dw) {
    snug_error err;
    snug_type t;
    char name[16];
    check(snug_graph_type(g, w, &t, &err), &err);
    snprintf(name, sizeof name, "m%d", i);
    const snug_value m =
        variable(g, name, t.dims[0], t.dims[1], (snug_variable_options){.is_slot = 1});
    snprintf(name, sizeof name, "v%d", i);
    const snug_value v =
        variable(g, name, t.dims[0], t.dims[1], (snug_variable_options){.is_slot = 1});
    OP(g, "adam", "rate=p:rate one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7", w, m, v,
       dw);
}

static void build(snug_graph *g) {
    snug_error err;
    snug_value x, t, dw[WEIGHTS];
    const snug_type rows = {SNUG_F32, 2, {BATCH, 1}};
    check(snug_graph_input(g, "x", &rows, &x, &err), &err);
    check(snug_graph_input(g, "t", &rows, &t, &err), &err);
    const snug_value w[WEIGHTS] = {
        variable(g, "w1", 1, HIDDEN, (snug_variable_options){SNUG_INIT_UNIFORM, -2, 2, .seed = 1}),
        variable(g, "b1", 1, HIDDEN, (snug_variable_options){SNUG_INIT_UNIFORM, -1, 1, .seed = 2}),
        variable(g, "w2", HIDDEN, 1, (snug_variable_options){SNUG_INIT_NORMAL, 0, 0.2, .seed = 3}),
        variable(g, "b2", 1, 1, (snug_variable_options){.kind = SNUG_INIT_CONSTANT}),
    };
    const snug_value hidden =
        OP(g, "tanh", "", OP(g, "add", "", OP(g, "matmul", "", x, w[0]), w[1]));
    const snug_value y = OP(g, "add", "", OP(g, "matmul", "", hidden, w[2]), w[3]);
    const snug_value errors = OP(g, "square", "", OP(g, "sub", "", y, t));
    const snug_value loss =
        OP(g, "affine", "scale=0.015625 shift=0", OP(g, "sum", "", errors)); /* 1 / BATCH */
    check(snug_graph_gradients(g, loss, w, WEIGHTS, dw, &err), &err);
    check(snug_graph_param(g, "rate", 0, &err), &err);
    for (int i = 0; i < WEIGHTS; i++)
        update(g, i, w[i], dw[i]);
    check(snug_graph_output(g, "loss", loss, &err), &err);
}

/* The caller's schedule: warm up, then decay; Adam's bias correction is part of it. */
static double rate_of(int step) {
    const double k = step + 1, base = 0.02 * fmin(k / 20, 1) / (1 + k / 200);
    return base * sqrt(1 - pow(0.999, k)) / (1 - pow(0.9, k));
}

int main(void) {
    snug_error err;
    snug_engine *engine;
    snug_graph *g;
    snug_session *session;
    snug_feed *x, *t;
    snug_view loss;
    float first = 0, last = 0;
    const snug_type all = {SNUG_F32, 2, {ROWS, 1}};
    for (int i = 0; i < ROWS; i++) {
        xs[i][0] = (float)(i * 37 % ROWS) / (ROWS / 2) - 1;
        ts[i][0] = sinf(3 * xs[i][0]);
    }
    check(snug_engine_create(&(snug_engine_options){.budget_bytes = 8u << 20}, &engine, &err),
          &err);
    check(snug_feed_from_memory(engine, &all, xs, NULL, NULL, &x, &err), &err);
    check(snug_feed_from_memory(engine, &all, ts, NULL, NULL, &t, &err), &err);
    check(snug_graph_create(engine, &g, &err), &err);
    build(g);
    check(snug_session_create(engine, g, NULL, &session, &err), &err);
    printf("a step uses an arena of %zu bytes\n", snug_session_arena_bytes(session));
    for (int step = 0; step < STEPS; step++) {
        const int64_t row = (int64_t)step * BATCH % ROWS;
        check(snug_session_feed(session, "x", x, row, &err), &err);
        check(snug_session_feed(session, "t", t, row, &err), &err);
        check(snug_session_set(session, "rate", rate_of(step), &err), &err);
        check(snug_session_run(session, &err), &err);
        check(snug_session_output(session, "loss", &loss, &err), &err);
        last = *(const float *)loss.data;
        first = step == 0 ? last : first;
        if (step % 50 == 0 || step == STEPS - 1)
            printf("step %3d  loss %.5f\n", step, (double)last);
    }
    snug_session_destroy(session);
    snug_graph_destroy(g);
    snug_feed_destroy(x);
    snug_feed_destroy(t);
    snug_engine_destroy(engine);
    return last < 0.05f * first ? 0 : 1;
}
