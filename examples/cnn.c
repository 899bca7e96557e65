/* cnn.c: a convolutional network with batch normalisation and dropout learns whether a noisy
 * picture shows a horizontal bar, a vertical bar or a dot. The pictures come from a callback feed:
 * they are made when a batch is filled and are never all in memory. Stops early when the validation
 * loss no longer falls, and saves the best weights.
 *
 *     cc cnn.c $(pkg-config --cflags --libs snug) -o cnn && ./cnn [WEIGHTS.safetensors] */
#include <snug/train.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 12, ROWS = 900, CLASSES = 3 };

static void check(snug_status status, const snug_error *err) {
    if (status == SNUG_OK)
        return;
    fprintf(stderr, "%s: %s\n", snug_status_name(status), err->text);
    exit(snug_status_exit_code(status));
}

/* A number in [0, 1) that depends on the row and the place alone: any row can be made at any
 * time. */
static float noise(int64_t row, uint32_t place) {
    uint32_t h = (uint32_t)row * 2654435761u + place * 2246822519u;
    h = (h ^ (h >> 15)) * 2654435769u;
    h = (h ^ (h >> 13)) * 3266489917u;
    return (float)((h ^ (h >> 16)) >> 8) / 16777216.0f;
}

static snug_status fill_pictures(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                                 snug_error *err) {
    (void)ctx;
    (void)err;
    float *out = dst->data;
    for (int64_t row = first_row; row < first_row + n_rows; row++) {
        const int kind = (int)(row % CLASSES);
        const int at_y = 2 + (int)(noise(row, 1000) * 8), at_x = 2 + (int)(noise(row, 1001) * 8);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                const int dy = abs(y - at_y), dx = abs(x - at_x);
                const int lit = kind == 0   ? dy == 0 && dx <= 3
                                : kind == 1 ? dx == 0 && dy <= 3
                                            : dx <= 1 && dy <= 1;
                *out++ = (lit ? 0.8f : 0.0f) + 0.6f * noise(row, (uint32_t)(y * SIDE + x));
            }
    }
    return SNUG_OK;
}

static snug_status fill_labels(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                               snug_error *err) {
    (void)ctx;
    (void)err;
    int32_t *out = dst->data;
    for (int64_t i = 0; i < n_rows; i++)
        out[i] = (int32_t)((first_row + i) % CLASSES);
    return SNUG_OK;
}

static snug_status print_epoch(void *ctx, const snug_progress *p, snug_error *err) {
    (void)ctx;
    (void)err;
    printf("epoch %2d  loss %.4f  accuracy %.3f  val_loss %.4f  val_accuracy %.3f\n", p->epoch + 1,
           p->values[0], p->values[1], p->val_values[0], p->val_values[1]);
    return SNUG_OK;
}

static void add_layers(snug_model *model) {
    static const char *const layers[][2] = {
        {"Conv2D", "filters=8 kernel_size=3 padding=same activation=relu"},
        {"MaxPooling2D", ""},
        {"Conv2D", "filters=16 kernel_size=3 padding=same use_bias=false"},
        {"BatchNormalization", "momentum=0.9"},
        {"ReLU", ""},
        {"MaxPooling2D", ""},
        {"Flatten", ""},
        {"Dropout", "rate=0.2"},
        {"Dense", "units=3 activation=softmax"},
    };
    snug_error err;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        check(snug_model_add(model, layers[i][0], layers[i][1], &err), &err);
}

int main(int argc, char **argv) {
    snug_error err;
    snug_engine *engine;
    snug_feed *x, *y;
    snug_model *model;
    snug_callback callbacks[3] = {{.on_epoch_end = print_epoch}};
    size_t n_callbacks = 2;
    check(snug_engine_create(NULL, &engine, &err), &err);
    const snug_type pictures = {SNUG_F32, 4, {ROWS, SIDE, SIDE, 1}}, labels = {SNUG_I32, 1, {ROWS}};
    check(snug_feed_from_callback(engine, &pictures, fill_pictures, NULL, NULL, &x, &err), &err);
    check(snug_feed_from_callback(engine, &labels, fill_labels, NULL, NULL, &y, &err), &err);
    check(
        snug_model_create(engine, "cnn", &(snug_type){SNUG_F32, 3, {SIDE, SIDE, 1}}, &model, &err),
        &err);
    add_layers(model);
    check(snug_model_compile(model,
                             &(snug_compile){.optimizer = "adam:lr=0.003",
                                             .loss = "sparse_categorical_crossentropy",
                                             .metrics = "accuracy"},
                             &err),
          &err);

    check(snug_callback_early_stopping(engine, "val_loss", 3, 0.001, &callbacks[1], &err), &err);
    if (argc > 1)
        check(snug_callback_best_weights(engine, "val_loss", argv[1], &callbacks[n_callbacks++],
                                         &err),
              &err);
    const snug_fit_options fit = {.x = x,
                                  .y = y,
                                  .epochs = 12,
                                  .batch = 32,
                                  .shuffle = 1,
                                  .validation_split = 0.2,
                                  .callbacks = callbacks,
                                  .n_callbacks = n_callbacks};
    snug_fit_result result;
    check(snug_fit(model, &fit, &result, &err), &err);

    for (size_t i = 1; i < n_callbacks; i++)
        callbacks[i].destroy(callbacks[i].ctx);
    snug_model_destroy(model);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_engine_destroy(engine);
    return result.val_values[1] > 0.9 ? 0 : 1;
}
