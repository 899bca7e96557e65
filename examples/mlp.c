/* mlp.c: a small network learns to tell points of three clouds apart. Shows the whole way: engine,
 * data, model, the plan before the first step, training with a progress callback, prediction of one
 * point, and where the memory went.
 *
 *     cc mlp.c $(pkg-config --cflags --libs snug) -o mlp && ./mlp */
#include <snug/train.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 600, CLASSES = 3 };
static float points[ROWS][2];
static int32_t labels[ROWS];

static void check(snug_status status, const snug_error *err) {
    if (status == SNUG_OK)
        return;
    fprintf(stderr, "%s: %s\n", snug_status_name(status), err->text);
    exit(snug_status_exit_code(status));
}

static void make_points(void) {
    static const float centres[CLASSES][2] = {{0, 1}, {1, -0.7f}, {-1, -0.7f}};
    uint32_t seed = 1;
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % CLASSES;
        for (int k = 0; k < 2; k++) {
            seed = seed * 1664525u + 1013904223u;
            points[i][k] = centres[labels[i]][k] + (float)(seed >> 8) / 16777216.0f - 0.5f;
        }
    }
}

static snug_status print_epoch(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    if (p->epoch == 0)
        *(double *)ctx = p->values[0];
    printf("epoch %2d  loss %.4f  accuracy %.3f\n", p->epoch + 1, p->values[0], p->values[1]);
    return SNUG_OK;
}

static snug_status print_rows(void *ctx, int64_t first_row, const snug_view *view,
                              snug_error *err) {
    (void)ctx;
    (void)err;
    const float *p = view->data;
    if (first_row == 0)
        printf("point (%.2f, %.2f): class 0 with %.3f, 1 with %.3f, 2 with %.3f\n", points[0][0],
               points[0][1], p[0], p[1], p[2]);
    return SNUG_OK;
}

int main(void) {
    snug_error err;
    snug_engine *engine;
    snug_feed *x, *y;
    snug_model *model;
    make_points();
    check(snug_engine_create(&(snug_engine_options){.budget_bytes = 16u << 20}, &engine, &err),
          &err);
    check(snug_feed_from_memory(engine, &(snug_type){SNUG_F32, 2, {ROWS, 2}}, points, NULL, NULL,
                                &x, &err),
          &err);
    check(snug_feed_from_memory(engine, &(snug_type){SNUG_I32, 1, {ROWS}}, labels, NULL, NULL, &y,
                                &err),
          &err);

    check(snug_model_create(engine, "mlp", &(snug_type){SNUG_F32, 1, {2}}, &model, &err), &err);
    check(snug_model_add(model, "Dense", "units=16 activation=relu", &err), &err);
    check(snug_model_add(model, "Dense", "units=3 activation=softmax", &err), &err);
    const snug_compile compile = {"adam:learning_rate=0.01", "sparse_categorical_crossentropy",
                                  "accuracy"};
    check(snug_model_compile(model, &compile, &err), &err);

    snug_model_plan_info plan;
    char text[24];
    check(snug_model_plan(model, &(snug_plan_request){.batch = 50, .train = 1}, &plan, &err), &err);
    printf("a step of 50 points will use an arena of %s\n",
           snug_bytes_print(plan.arena_bytes, text, sizeof text));

    double first_loss = 0;
    const snug_callback progress = {.ctx = &first_loss, .on_epoch_end = print_epoch};
    const snug_fit_options fit = {.x = x,
                                  .y = y,
                                  .epochs = 10,
                                  .batch = 50,
                                  .shuffle = 1,
                                  .callbacks = &progress,
                                  .n_callbacks = 1};
    snug_fit_result result;
    check(snug_fit(model, &fit, &result, &err), &err);
    check(snug_predict(model, &(snug_run_options){.x = x, .batch = 50}, print_rows, NULL, &err),
          &err);
    printf("most memory ever held: %s\n",
           snug_bytes_print(snug_engine_peak_bytes(engine), text, sizeof text));

    snug_model_destroy(model);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_engine_destroy(engine);
    return result.values[0] < first_loss / 2 ? 0 : 1;
}
