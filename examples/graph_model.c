/* graph_model.c: a model of operators instead of layers. Two branches look at a point of the plane,
 * one at where it is and one at its squares, and their sum says whether the point lies in a ring;
 * the model then learns, and is written and read, as one of layers.
 *
 *     cc graph_model.c $(pkg-config --cflags --libs snug) -o graph_model && ./graph_model */
#include <snug/train.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2048, HIDDEN = 16, CLASSES = 2 };
static float points[ROWS][2];
static int32_t labels[ROWS];
static snug_error err;

static void check(snug_status status) {
    if (status == SNUG_OK)
        return;
    fprintf(stderr, "%s: %s\n", snug_status_name(status), err.text);
    exit(snug_status_exit_code(status));
}

static void make_points(void) {
    srand(1);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 2; k++)
            points[i][k] = 2 * (float)rand() / (float)RAND_MAX - 1;
        const float r2 = points[i][0] * points[i][0] + points[i][1] * points[i][1];
        labels[i] = r2 > 0.16f && r2 < 0.64f;
    }
}

static snug_value op(snug_graph *g, const char *name, snug_value a, snug_value b) {
    snug_value out;
    check(snug_graph_op(g, name, "", (snug_value[]){a, b}, b.id == UINT32_MAX ? 1 : 2, &out, 1,
                        &err));
    return out;
}

/* x times a matrix of its own. */
static snug_value product(snug_graph *g, const char *name, snug_value x, int64_t n_in,
                          int64_t n_out) {
    const snug_variable_options start = {.kind = SNUG_INIT_NORMAL, .b = 0.5, .seed = 1};
    snug_value w;
    check(snug_graph_variable(g, name, &(snug_type){SNUG_F32, 2, {n_in, n_out}}, &start, &w, &err));
    return op(g, "matmul", x, w);
}

static snug_value bias(snug_graph *g, const char *name, snug_value x, int64_t n) {
    snug_value b;
    check(snug_graph_variable(g, name, &(snug_type){SNUG_F32, 1, {n}}, NULL, &b, &err));
    return op(g, "add", x, b);
}

/* Points to two probabilities, for any number of points: the first axis is open. */
static snug_graph *ring(snug_engine *engine) {
    snug_graph *g;
    snug_value x;
    check(snug_graph_create(engine, &g, &err));
    check(snug_graph_input(g, "point", &(snug_type){SNUG_F32, 2, {-1, 2}}, &x, &err));
    check(snug_graph_set_owner(g, "branches", &err));
    const snug_value squares = op(g, "square", x, SNUG_NO_VALUE);
    const snug_value sum =
        op(g, "add", product(g, "place", x, 2, HIDDEN), product(g, "squares", squares, 2, HIDDEN));
    const snug_value hidden = op(g, "tanh", bias(g, "offset", sum, HIDDEN), SNUG_NO_VALUE);
    check(snug_graph_set_owner(g, "classes", &err));
    const snug_value scores =
        bias(g, "classes_offset", product(g, "classes", hidden, HIDDEN, CLASSES), CLASSES);
    check(snug_graph_output(g, "inside", op(g, "softmax", scores, SNUG_NO_VALUE), &err));
    return g;
}

static snug_status print_epoch(void *ctx, const snug_progress *p, snug_error *e) {
    (void)ctx, (void)e;
    if (p->epoch % 5 == 4)
        printf("epoch %2d  loss %.4f  accuracy %.3f\n", p->epoch + 1, p->values[0], p->values[1]);
    return SNUG_OK;
}

int main(void) {
    snug_engine *engine;
    snug_feed *x, *y;
    snug_model *model;
    make_points();
    check(snug_engine_create(&(snug_engine_options){.budget_bytes = 16 << 20}, &engine, &err));
    check(snug_feed_from_memory(engine, &(snug_type){SNUG_F32, 2, {ROWS, 2}}, points, NULL, NULL,
                                &x, &err));
    check(snug_feed_from_memory(engine, &(snug_type){SNUG_I32, 1, {ROWS}}, labels, NULL, NULL, &y,
                                &err));

    snug_graph *graph = ring(engine);
    check(snug_model_from_graph(graph, NULL, "ring", &model, &err));
    snug_graph_destroy(graph); /* the model has a copy */
    const snug_compile compile = {.optimizer = "adam:lr=0.02",
                                  .loss = "sparse_categorical_crossentropy",
                                  .metrics = "accuracy"};
    check(snug_model_compile(model, &compile, &err));

    const snug_callback progress = {.on_epoch_end = print_epoch};
    const snug_fit_options fit = {.x = x,
                                  .y = y,
                                  .epochs = 20,
                                  .batch = 64,
                                  .shuffle = 1,
                                  .callbacks = &progress,
                                  .n_callbacks = 1};
    snug_fit_result result;
    check(snug_fit(model, &fit, &result, &err));
    printf("used an arena of %zu bytes; most memory ever held: %zu\n", result.arena_bytes,
           snug_engine_peak_bytes(engine));

    snug_model_destroy(model);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_engine_destroy(engine);
    return result.values[1] > 0.9 ? 0 : 1;
}
