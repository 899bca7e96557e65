/* mlp.c: a small network learns to tell the points of three clouds apart, inside 16 MiB; says
 * before the first step what it will use, and afterwards what it used.
 *
 *     cc mlp.c $(pkg-config --cflags --libs snug) -o mlp && ./mlp */
#include <snug/train.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 600 };
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
    static const float centres[3][2] = {{0, 1}, {1, -0.7f}, {-1, -0.7f}};
    srand(1);
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % 3;
        for (int k = 0; k < 2; k++)
            points[i][k] = centres[i % 3][k] + (float)rand() / (float)RAND_MAX - 0.5f;
    }
}

static snug_status print_epoch(void *ctx, const snug_progress *p, snug_error *e) {
    (void)ctx, (void)e;
    printf("epoch %2d  loss %.4f  accuracy %.3f\n", p->epoch + 1, p->values[0], p->values[1]);
    return SNUG_OK;
}

int main(void) {
    const snug_type x_type = {SNUG_F32, 2, {ROWS, 2}}, y_type = {SNUG_I32, 1, {ROWS}};
    snug_engine *engine;
    snug_feed *x, *y;
    snug_model *model;
    make_points();
    check(snug_engine_create(&(snug_engine_options){.budget_bytes = 16 << 20}, &engine, &err));
    check(snug_feed_from_memory(engine, &x_type, points, NULL, NULL, &x, &err));
    check(snug_feed_from_memory(engine, &y_type, labels, NULL, NULL, &y, &err));

    check(snug_model_create(engine, "mlp", &(snug_type){SNUG_F32, 1, {2}}, &model, &err));
    check(snug_model_add(model, "Dense", "units=16 activation=relu", &err));
    check(snug_model_add(model, "Dense", "units=3 activation=softmax", &err));
    const snug_compile compile = {.optimizer = "adam:lr=0.01",
                                  .loss = "sparse_categorical_crossentropy",
                                  .metrics = "accuracy"};
    check(snug_model_compile(model, &compile, &err));

    snug_model_plan_info plan;
    check(snug_model_plan(model, &(snug_plan_request){.batch = 50, .train = 1}, &plan, &err));
    printf("a step of 50 points will use an arena of %zu bytes\n", plan.arena_bytes);

    const snug_callback progress = {.on_epoch_end = print_epoch};
    const snug_fit_options fit = {.x = x,
                                  .y = y,
                                  .epochs = 10,
                                  .batch = 50,
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
    return result.values[1] > 0.95 ? 0 : 1;
}
