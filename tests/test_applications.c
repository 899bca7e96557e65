/* test_applications.c: networks of keras.applications load, plan a training step and predict as Keras does, at 64 x 64 with ten
 * classes. The files hold the network and what Keras predicted; weights and picture are a formula that applications.py has, too:
 * see there for how they were recorded and for the comparison of all other networks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/safetensors.h"
#include "support/support.h"
#include "tensor/type.h"

#include <math.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, CLASSES = 10 };

/* Numbers in [-1, 1): FNV-1a of the name, mixed with each index. */
static uint64_t name_key(const char *name) {
    uint64_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

static double noise(uint64_t key, uint64_t i) {
    uint64_t z = key + i * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 40) / 8388608.0 - 1;
}

/* Scales that keep signals alive from the first layer to the last. */
static void fill_weight(const char *name, const snug_view *v) {
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    const bool spread = strcmp(last, "gamma") == 0 || strcmp(last, "moving_variance") == 0 ||
                        strcmp(last, "variance") == 0;
    const snug_type *t = &v->type;
    const uint64_t key = name_key(name);
    double fan_in = 1;
    for (int i = 0; i + 1 < t->rank; i++)
        fan_in *= (double)t->dims[i];
    if (t->rank == 4 && t->dims[3] == 1)
        fan_in = (double)(t->dims[0] * t->dims[1]);
    const double scale = spread ? 0.2 : t->rank < 2 ? 0.1 : sqrt(4.5 / fan_in);
    float *const out = v->data;
    for (int64_t i = 0; i < sn_type_count(t); i++)
        out[i] = (float)((spread ? 1 : 0) + scale * noise(key, (uint64_t)i));
}

static void fill_weights(snug_model *m) {
    snug_error err;
    for (size_t i = 0; i < snug_model_n_weights(m); i++) {
        const char *name;
        snug_view v;
        expect_ok(snug_model_weight(m, i, &name, &v, &err), &err);
        fill_weight(name, &v);
    }
}

static snug_status take(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    (void)first_row;
    (void)err;
    assert_int_equal(view->bytes, CLASSES * sizeof(float));
    memcpy(ctx, view->data, view->bytes);
    return SNUG_OK;
}

static void predict(snug_model *m, float *out) {
    static float x[SIDE * SIDE * 3];
    const snug_type type = {.dtype = SNUG_F32, .rank = 4, .dims = {1, SIDE, SIDE, 3}};
    const uint64_t key = name_key("input");
    snug_error err;
    snug_run_options o = {.batch = 1};
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        x[i] = (float)(127.5 + 127.5 * noise(key, (uint64_t)i));
    expect_ok(snug_feed_from_memory(snug_model_engine(m), &type, x, NULL, NULL, &o.x, &err), &err);
    expect_ok(snug_predict(m, &o, take, out, &err), &err);
    snug_feed_destroy(o.x);
}

static void load_prediction(snug_engine *e, const char *name, float *out) {
    char path[512];
    snug_error err;
    sn_safetensors *file;
    const sn_st_entry *t;
    snprintf(path, sizeof path, "%s/applications/%s.safetensors", SNUG_TEST_DATA, name);
    expect_ok(sn_safetensors_open(e, path, 0, &file, &err), &err);
    expect_ok(sn_safetensors_find(file, "pred", &t, &err), &err);
    const snug_view v = {out, CLASSES * sizeof *out, t->type};
    expect_ok(sn_safetensors_read(file, t, &v, &err), &err);
    sn_safetensors_close(file);
}

static void predicts_as_keras(void **state) {
    const char *name = *state;
    char path[512];
    snug_error err;
    snug_engine *e;
    snug_model *m;
    snug_model_plan_info info;
    float have[CLASSES], want[CLASSES], most = 0;
    expect_ok(snug_engine_create(NULL, &e, &err), &err);
    snprintf(path, sizeof path, "%s/applications/%s.json", SNUG_TEST_DATA, name);
    expect_ok(snug_model_load(e, path, &m, &err), &err);
    fill_weights(m);
    predict(m, have);
    load_prediction(e, name, want);
    for (int i = 0; i < CLASSES; i++)
        most = fmaxf(most, fabsf(want[i]));
    assert_true(most > 1e-2f);
    for (int i = 0; i < CLASSES; i++)
        if (!(fabsf(have[i] - want[i]) <= 2e-4f * most))
            fail_msg("%s: output %d is %g, Keras has %g", name, i, (double)have[i],
                     (double)want[i]);
    expect_ok(snug_model_plan(m, &(snug_plan_request){.batch = 2, .train = 1}, &info, &err), &err);
    assert_true(info.arena_bytes > 0 && info.n_nodes > 500);
    snug_model_destroy(m);
    snug_engine_destroy(e);
}

int main(void) {
    static char names[][20] = {"ResNet50", "MobileNetV2", "EfficientNetB0"};
    struct CMUnitTest tests[3];
    for (size_t i = 0; i < 3; i++)
        tests[i] = (struct CMUnitTest){names[i], predicts_as_keras, NULL, NULL, names[i]};
    return _cmocka_run_group_tests("applications", tests, 3, NULL, NULL);
}
