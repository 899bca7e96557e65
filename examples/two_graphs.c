/* two_graphs.c: one graph trains, another evaluates the same variables, both in one arena. A
 * network of two layers learns by plain gradient descent which points of the plane lie inside a
 * ring, and is then tried on points it has never seen. */
#include <snug/graph.h>
#include <snug/run.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, N_TRAIN = 2048, N_TEST = 512, HIDDEN = 32, EPOCHS = 30, N_VARS = 4 };

static snug_error err;

static void ok(snug_status status) {
    if (status != SNUG_OK) {
        fprintf(stderr, "two_graphs: %s\n", err.text);
        exit(1);
    }
}

#define OP(g, name, attributes, ...)                                                               \
    op(g, name, attributes, (snug_value[]){__VA_ARGS__},                                           \
       sizeof((snug_value[]){__VA_ARGS__}) / sizeof(snug_value))

static snug_value op(snug_graph *g, const char *name, const char *attributes, const snug_value *in,
                     size_t n) {
    snug_value out;
    ok(snug_graph_op(g, name, attributes, in, (int)n, &out, 1, &err));
    return out;
}

static snug_value variable(snug_graph *g, const char *name, snug_type type, double deviation) {
    const snug_variable_options start = {.kind = SNUG_INIT_NORMAL, .b = deviation, .seed = 7};
    snug_value out;
    ok(snug_graph_variable(g, name, &type, &start, &out, &err));
    return out;
}

/* Points x[rows, 2] -> scores of the two classes; vars gets the four variables. */
static snug_value network(snug_graph *g, int64_t rows, snug_value *vars) {
    snug_value x;
    ok(snug_graph_input(g, "x", &(snug_type){SNUG_F32, 2, {rows, 2}}, &x, &err));
    vars[0] = variable(g, "hidden/kernel", (snug_type){SNUG_F32, 2, {2, HIDDEN}}, 2);
    vars[1] = variable(g, "hidden/bias", (snug_type){SNUG_F32, 1, {HIDDEN}}, 0);
    vars[2] = variable(g, "scores/kernel", (snug_type){SNUG_F32, 2, {HIDDEN, 2}}, 0.3);
    vars[3] = variable(g, "scores/bias", (snug_type){SNUG_F32, 1, {2}}, 0);
    const snug_value hidden = OP(g, "relu", "", OP(g, "matmul", "", x, vars[0], vars[1]));
    return OP(g, "matmul", "", hidden, vars[2], vars[3]);
}

static snug_session *training(snug_engine *engine) {
    snug_graph *g;
    snug_value label, vars[N_VARS], grads[N_VARS];
    snug_session *session;
    char mean[32];
    snprintf(mean, sizeof mean, "scale=%.17g shift=0", 1.0 / BATCH);
    ok(snug_graph_create(engine, &g, &err));
    const snug_value scores = network(g, BATCH, vars);
    ok(snug_graph_input(g, "label", &(snug_type){SNUG_I32, 1, {BATCH}}, &label, &err));
    const snug_value losses = OP(g, "sparse_xent", "", scores, label);
    const snug_value loss = OP(g, "affine", mean, OP(g, "sum", "axes=0", losses));
    ok(snug_graph_gradients(g, loss, vars, N_VARS, grads, &err));
    ok(snug_graph_param(g, "rate", 0.5, &err));
    for (int i = 0; i < N_VARS; i++)
        OP(g, "sgd", "rate=p:rate momentum=0", vars[i], grads[i]);
    ok(snug_graph_output(g, "loss", loss, &err));
    ok(snug_session_create(engine, g, NULL, &session, &err));
    snug_graph_destroy(g);
    return session;
}

/* Counts the right answers; shares the variables of the training. */
static snug_session *evaluation(snug_engine *engine, snug_session *trained) {
    snug_graph *g;
    snug_value label, vars[N_VARS];
    snug_session *session;
    ok(snug_graph_create(engine, &g, &err));
    const snug_value answer = OP(g, "argmax", "axis=1 dtype=i32", network(g, N_TEST, vars));
    ok(snug_graph_input(g, "label", &(snug_type){SNUG_I32, 1, {N_TEST}}, &label, &err));
    const snug_value right = OP(g, "cast", "dtype=f32", OP(g, "equal", "", answer, label));
    ok(snug_graph_output(g, "right", OP(g, "sum", "axes=0", right), &err));
    ok(snug_session_create(engine, g, trained, &session, &err));
    snug_graph_destroy(g);
    return session;
}

/* Points of the square [-1, 1)^2 and whether they lie in the ring 0.4 < radius < 0.8. */
static void make_points(snug_engine *engine, int n, unsigned seed, snug_feed **x,
                        snug_feed **label) {
    float *points = malloc((size_t)n * 2 * sizeof *points);
    int32_t *inside = malloc((size_t)n * sizeof *inside);
    if (!points || !inside)
        exit(1);
    for (int i = 0; i < n * 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        points[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    for (int i = 0; i < n; i++) {
        const float r2 = points[2 * i] * points[2 * i] + points[2 * i + 1] * points[2 * i + 1];
        inside[i] = r2 > 0.16f && r2 < 0.64f;
    }
    ok(snug_feed_from_memory(engine, &(snug_type){SNUG_F32, 2, {n, 2}}, points, free, points, x,
                             &err));
    ok(snug_feed_from_memory(engine, &(snug_type){SNUG_I32, 1, {n}}, inside, free, inside, label,
                             &err));
}

static float scalar(snug_session *session, const char *output) {
    snug_view view;
    ok(snug_session_output(session, output, &view, &err));
    return *(const float *)view.data;
}

static float train_epoch(snug_session *session, snug_feed *x, snug_feed *label) {
    float sum = 0;
    for (int64_t row = 0; row < N_TRAIN; row += BATCH) {
        ok(snug_session_feed(session, "x", x, row, &err));
        ok(snug_session_feed(session, "label", label, row, &err));
        ok(snug_session_run(session, &err));
        sum += scalar(session, "loss");
    }
    return sum / (N_TRAIN / BATCH);
}

int main(void) {
    snug_engine *engine;
    snug_feed *x, *label, *x_test, *label_test;
    float first = 0, loss = 0;
    char bytes[24];
    /* So small a network is done before a second thread has started. */
    const snug_engine_options options = {.budget_bytes = 16 << 20, .n_threads = 1};
    ok(snug_engine_create(&options, &engine, &err));
    make_points(engine, N_TRAIN, 1, &x, &label);
    make_points(engine, N_TEST, 2, &x_test, &label_test);
    snug_session *train = training(engine), *test = evaluation(engine, train);
    printf("a step needs %s of transient memory\n",
           snug_bytes_print(snug_session_arena_bytes(train), bytes, sizeof bytes));

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        ok(snug_session_set(train, "rate", 1.0 / (1 + 0.1 * epoch), &err));
        loss = train_epoch(train, x, label);
        first = epoch == 0 ? loss : first;
        if (epoch % 5 == 4)
            printf("epoch %2d  loss %.4f\n", epoch + 1, (double)loss);
    }
    ok(snug_session_feed(test, "x", x_test, 0, &err));
    ok(snug_session_feed(test, "label", label_test, 0, &err));
    ok(snug_session_run(test, &err));
    const float right = scalar(test, "right") / N_TEST;
    printf("%.1f %% of %d new points right\n", 100 * (double)right, N_TEST);
    printf("most memory held: %s\n",
           snug_bytes_print(snug_engine_peak_bytes(engine), bytes, sizeof bytes));

    snug_session_destroy(test);
    snug_session_destroy(train);
    snug_feed_destroy(x);
    snug_feed_destroy(label);
    snug_feed_destroy(x_test);
    snug_feed_destroy(label_test);
    snug_engine_destroy(engine);
    return loss < 0.5f * first && right > 0.9f ? 0 : 1;
}
