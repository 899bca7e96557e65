/* test_augment.c: rules of the random layers: what they do to pictures lies within the configured
 * bounds and fills them, depends on the key and the picture's place in the batch alone, and happens
 * only while training.
 *
 * The picture is two ramps: channel 0 of pixel (y, x) is x, channel 1 is y. Bilinear sampling keeps
 * ramps, so a changed picture says where its pixels came from. */
#include "support/support.h"

#include "exec/exec.h"
#include "nn/network.h"

#include <math.h>
#include <snug/train.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 9, MIDDLE = 4, PIXELS = SIDE * SIDE * 2, MANY = 512 };

static snug_status fill_ramps(void *ctx, int64_t first, int64_t rows, const snug_view *dst,
                              snug_error *err) {
    (void)ctx;
    (void)first;
    (void)err;
    float *x = dst->data;
    for (int64_t i = 0; i < rows * PIXELS; i++) {
        const int64_t pixel = i / 2 % (SIDE * SIDE);
        x[i] = (float)(i % 2 == 0 ? pixel % SIDE : pixel / SIDE);
    }
    return SNUG_OK;
}

/* What a layer does. */
typedef struct {
    const char *cls, *config;
    int64_t batch;
    int64_t key; /* of the step */
    bool training;
} what;

static sn_graph *graph_of(snug_engine *e, const what *w, sn_network **network) {
    snug_error err;
    sn_graph *g;
    sn_value x;
    sn_network_result out;
    snug_type t = {SNUG_F32, 4, {-1, SIDE, SIDE, 2}};
    expect_ok(sn_network_create(e, "net", &t, network, &err), &err);
    expect_ok(sn_network_add(*network, w->cls, NULL, sn_conf_fill_text,
                             (void *)(uintptr_t)w->config, &err),
              &err);
    t.dims[0] = w->batch;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &t, &x, &err), &err);
    expect_ok(sn_network_build(*network, g, &x, w->training, &out, &err), &err);
    expect_ok(sn_graph_output(g, "y", out.y[0], &err), &err);
    return g;
}

/* The pictures it makes of ramps, to be freed. */
static float *pictures(const what *w) {
    snug_error err;
    snug_engine *e = sn_test_engine(0);
    sn_network *network;
    sn_graph *g = graph_of(e, w, &network);
    sn_scalar params[64];
    const uint32_t n_params = sn_graph_n_params(g);
    assert_true(n_params <= 64);
    for (uint32_t i = 0; i < n_params; i++) {
        const sn_param_info *p = sn_graph_param_at(g, (sn_param){i});
        params[i] =
            p->kind == SN_PARAM_KEY ? (sn_scalar){.key = p->key} : (sn_scalar){.real = p->real};
        if (strncmp(p->name, "dropout/", 8) == 0)
            params[i].key = w->key;
    }
    sn_state *state;
    expect_ok(sn_state_create(e, &state, &err), &err);
    snug_view out = {.type = *sn_graph_type(g, sn_graph_output_at(g, 0))};
    expect_ok(snug_type_bytes(&out.type, &out.bytes, &err), &err);
    out.data = malloc(out.bytes);
    const sn_input_binding input = {.fill = fill_ramps};
    const sn_naive_options o = {.params = params, .inputs = &input, .outputs = &out};
    expect_ok(sn_naive_run(e, g, state, &o, &err), &err);
    sn_state_destroy(state);
    sn_graph_destroy(g);
    sn_network_destroy(network);
    sn_test_engine_end(e);
    return out.data;
}

static float at(const float *p, int64_t picture, int y, int x, int channel) {
    return p[picture * PIXELS + (y * SIDE + x) * 2 + channel];
}

/* --- all of them ------------------------------------------------------------------------------ */
#define CALM " fill_mode=nearest"
static const what layers[] = {
    {"RandomFlip", "mode=horizontal", 8, 5, true},
    {"RandomRotation", "factor=0.2" CALM, 8, 5, true},
    {"RandomZoom", "height_factor=0.3" CALM, 8, 5, true},
    {"RandomTranslation", "height_factor=0.3 width_factor=0.2" CALM, 8, 5, true},
    {"RandomContrast", "factor=0.5", 8, 5, true},
    {"RandomBrightness", "factor=0.1", 8, 5, true},
    {"RandomCrop", "height=4 width=5", 8, 5, true},
};
enum { N_LAYERS = sizeof layers / sizeof layers[0] };
static const size_t crop_bytes = 8 * 4 * 5 * 2 * sizeof(float);

static size_t bytes_of(const what *w) {
    return strcmp(w->cls, "RandomCrop") == 0 ? crop_bytes : 8 * PIXELS * sizeof(float);
}

static void test_random_layers_follow_the_key(void **state) {
    (void)state;
    for (int i = 0; i < N_LAYERS; i++) {
        what other = layers[i];
        float *once = pictures(&layers[i]), *again = pictures(&layers[i]);
        bool changed = false;
        assert_memory_equal(once, again, bytes_of(&other));
        for (other.key = 6; other.key < 16 && !changed; other.key++) {
            float *third = pictures(&other);
            changed = memcmp(once, third, bytes_of(&other)) != 0;
            free(third);
        }
        assert_true(changed);
        free(once);
        free(again);
    }
}

/* A picture's change does not depend on how many stand behind it. */
static void test_random_layers_do_not_see_the_batch(void **state) {
    (void)state;
    for (int i = 0; i < N_LAYERS; i++) {
        what more = layers[i];
        more.batch = 13;
        float *few = pictures(&layers[i]), *many = pictures(&more);
        assert_memory_equal(few, many, bytes_of(&more));
        free(few);
        free(many);
    }
}

static void test_random_layers_rest_while_not_training(void **state) {
    (void)state;
    for (int i = 0; i < N_LAYERS - 1; i++) {
        what calm = layers[i];
        calm.training = false;
        float *p = pictures(&calm);
        for (int64_t k = 0; k < 8 * SIDE * SIDE; k++) {
            const int y = (int)(k / SIDE % SIDE), x = (int)(k % SIDE);
            assert_true(at(p, k / (SIDE * SIDE), y, x, 0) == (float)x);
            assert_true(at(p, k / (SIDE * SIDE), y, x, 1) == (float)y);
        }
        free(p);
    }
}

/* --- one after the other ---------------------------------------------------------------------- */
/* What was seen of a number that is uniform in [low, high). */
typedef struct {
    double low, high, sum;
    int n;
} seen;

static void see(seen *s, double v) {
    s->low = s->n == 0 || v < s->low ? v : s->low;
    s->high = s->n == 0 || v > s->high ? v : s->high;
    s->sum += v;
    s->n++;
}

/* Within the bounds, nearly up to them, and in the middle on average (5 deviations of the mean). */
static void expect_uniform(const seen *s, double low, double high) {
    const double width = high - low, slack = 1e-4 * (1 + fabs(low) + fabs(high));
    assert_true(s->low >= low - slack && s->high <= high + slack);
    assert_true(s->low < low + 0.05 * width && s->high > high - 0.05 * width);
    assert_true(fabs(s->sum / s->n - (low + high) / 2) < 5 * width / sqrt(12.0 * s->n));
}

static void test_flips_turn_half_of_the_pictures(void **state) {
    (void)state;
    const char *const modes[] = {"mode=horizontal", "mode=vertical", ""};
    for (int m = 0; m < 3; m++) {
        float *p = pictures(&(what){"RandomFlip", modes[m], MANY, 3, true});
        int turned = 0;
        for (int i = 0; i < MANY; i++) {
            const bool now = at(p, i, 0, 0, m == 1 ? 1 : 0) != 0;
            turned += now;
            for (int k = 0; k < SIDE * SIDE; k++) {
                const int y = k / SIDE, x = k % SIDE;
                const bool across = now && m != 1, down = now && m != 0;
                assert_true(at(p, i, y, x, 0) == (float)(across ? SIDE - 1 - x : x));
                assert_true(at(p, i, y, x, 1) == (float)(down ? SIDE - 1 - y : y));
            }
        }
        assert_true(abs(turned - MANY / 2) < 57); /* 5 deviations */
        free(p);
    }
}

static void test_translations_move_within_their_bounds(void **state) {
    (void)state;
    float *p = pictures(&(what){"RandomTranslation",
                                "height_factor=(-0.1,0.3) width_factor=0.2" CALM, MANY, 3, true});
    seen right = {0}, down = {0};
    for (int i = 0; i < MANY; i++) {
        see(&right, MIDDLE - (double)at(p, i, MIDDLE, MIDDLE, 0));
        see(&down, MIDDLE - (double)at(p, i, MIDDLE, MIDDLE, 1));
    }
    expect_uniform(&right, -0.2 * SIDE, 0.2 * SIDE);
    expect_uniform(&down, -0.1 * SIDE, 0.3 * SIDE);
    free(p);
}

/* Neighbours of the middle are as far apart as the picture is stretched. */
static void test_zooms_stretch_about_the_middle(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        float *p = pictures(&(what){"RandomZoom",
                                    apart ? "height_factor=0.3 width_factor=(0.1,0.5)" CALM
                                          : "height_factor=0.3" CALM,
                                    MANY, 3, true});
        seen across = {0}, down = {0};
        for (int i = 0; i < MANY; i++) {
            assert_true(at(p, i, MIDDLE, MIDDLE, 0) == MIDDLE);
            assert_true(at(p, i, MIDDLE, MIDDLE, 1) == MIDDLE);
            const double x = (double)at(p, i, MIDDLE, MIDDLE + 1, 0) - MIDDLE,
                         y = (double)at(p, i, MIDDLE + 1, MIDDLE, 1) - MIDDLE;
            if (!apart)
                assert_true(fabs(x - y) < 1e-5);
            see(&across, x);
            see(&down, y);
        }
        expect_uniform(&across, apart ? 1.1 : 0.7, apart ? 1.5 : 1.3);
        expect_uniform(&down, 0.7, 1.3);
        free(p);
    }
}

static void test_rotations_turn_about_the_middle(void **state) {
    (void)state;
    float *p = pictures(&(what){"RandomRotation", "factor=(-0.1,0.2)" CALM, MANY, 3, true});
    seen turns = {0};
    for (int i = 0; i < MANY; i++) {
        assert_true(fabsf(at(p, i, MIDDLE, MIDDLE, 0) - MIDDLE) < 1e-5f);
        const double x = (double)at(p, i, MIDDLE, MIDDLE + 1, 0) - MIDDLE,
                     y = (double)at(p, i, MIDDLE, MIDDLE + 1, 1) - MIDDLE;
        assert_true(fabs(x * x + y * y - 1) < 1e-5);
        see(&turns, atan2(y, x) / (2 * acos(-1)));
    }
    expect_uniform(&turns, -0.1, 0.2);
    free(p);
}

/* One window for all pictures of a step; over the steps, everywhere. */
static void test_crops_are_windows_anywhere(void **state) {
    (void)state;
    int found[SIDE - 4 + 1][SIDE - 5 + 1] = {{0}};
    for (int key = 0; key < 400; key++) {
        float *p = pictures(&(what){"RandomCrop", "height=4 width=5", 2, key * 7919, true});
        const int left = (int)p[0], top = (int)p[1];
        assert_in_range(left, 0, SIDE - 5);
        assert_in_range(top, 0, SIDE - 4);
        for (int k = 0; k < 2 * 4 * 5; k++) {
            assert_true(p[2 * k] == (float)(left + k % 5));
            assert_true(p[2 * k + 1] == (float)(top + k / 5 % 4));
        }
        found[top][left]++;
        free(p);
    }
    for (int k = 0; k < (SIDE - 3) * (SIDE - 4); k++)
        assert_in_range(found[k / (SIDE - 4)][k % (SIDE - 4)], 1, 45); /* 13 each on average */
}

static void test_crops_rest_in_the_middle(void **state) {
    (void)state;
    float *p = pictures(&(what){"RandomCrop", "height=9 width=5", 1, 3, true});
    assert_true(p[0] == 2 && p[1] == 0); /* no choice: as high as the picture */
    free(p);
    p = pictures(&(what){"RandomCrop", "height=3 width=3", 1, 3, false});
    assert_true(p[0] == 1 && p[1] == 1); /* the whole picture, by thirds */
    free(p);
}

static void test_contrast_scales_about_the_mean_of_a_channel(void **state) {
    (void)state;
    float *p = pictures(&(what){"RandomContrast", "factor=(0.4,0.6)", MANY, 3, true});
    seen by = {0};
    for (int i = 0; i < MANY; i++) {
        assert_true(fabsf(at(p, i, MIDDLE, MIDDLE, 1) - MIDDLE) < 1e-5f);
        see(&by, (double)(at(p, i, MIDDLE, MIDDLE + 1, 0) - at(p, i, MIDDLE, MIDDLE, 0)));
        assert_true(at(p, i, 0, 0, 0) >= 0); /* cut at the range of values */
    }
    expect_uniform(&by, 0.6, 1.6);
    free(p);
}

static void test_brightness_adds_a_part_of_the_range(void **state) {
    (void)state;
    float *p = pictures(
        &(what){"RandomBrightness", "factor=(-0.2,0.1) value_range=(-1,9)", MANY, 3, true});
    seen plus = {0};
    for (int i = 0; i < MANY; i++) {
        see(&plus, (double)at(p, i, MIDDLE, MIDDLE, 0) - MIDDLE);
        assert_true(at(p, i, 0, 0, 0) >= -1 && at(p, i, 0, SIDE - 1, 0) <= 9);
    }
    expect_uniform(&plus, -2, 1);
    free(p);
}

/* Without learning the loss of the same pictures changes only by what is drawn: anew in each step,
 * and the same again for the same seed. */
static void test_fit_draws_anew_in_each_step_and_repeats_by_seed(void **state) {
    static const char *const all[][2] = {
        {"RandomFlip", ""},
        {"RandomRotation", "factor=0.1"},
        {"RandomZoom", "height_factor=0.2"},
        {"RandomTranslation", "height_factor=0.2 width_factor=0.1"},
        {"RandomCrop", "height=7 width=6"},
        {"RandomContrast", "factor=0.3 value_range=(-9,9)"},
        {"RandomBrightness", "factor=0.3 value_range=(-9,9)"},
        {"Flatten", ""},
        {"Dense", "units=3"}};
    snug_error err;
    snug_model *m;
    snug_feed *x, *y;
    double losses[3];
    expect_ok(snug_model_create(*state, NULL, &(snug_type){SNUG_F32, 3, {SIDE, SIDE, 2}}, &m, &err),
              &err);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_ok(snug_model_add(m, all[i][0], all[i][1], &err), &err);
    expect_ok(snug_feed_open(*state, "normal:16x9x9x2@7", &x, &err), &err);
    expect_ok(snug_feed_open(*state, "normal:16x3@8", &y, &err), &err);
    expect_ok(snug_model_compile(m, &(snug_compile){.optimizer = "sgd:lr=0", .loss = "mse"}, &err),
              &err);
    for (int i = 0; i < 3; i++) {
        snug_fit_result r;
        const snug_fit_options fit = {
            .x = x, .y = y, .batch = 16, .epochs = i == 0 ? 2 : 1, .seed = 4};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        losses[i] = r.values[0];
    }
    assert_true(losses[1] == losses[2]);
    assert_true(losses[0] != losses[1]);
    snug_model_destroy(m);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
}

static void test_settings_without_sense_are_refused(void **state) {
    snug_error err;
    sn_network *n;
    const snug_type t = {SNUG_F32, 4, {-1, SIDE, SIDE, 2}};
    const char *const bad[][3] = {
        {"RandomFlip", "mode=sideways", "mode=sideways"},
        {"RandomRotation", "factor=0.1 fill_mode=mirror", "fill_mode=mirror"},
        {"RandomRotation", "factor=0.1 interpolation=bicubic", "interpolation=bicubic"},
        {"RandomZoom", "height_factor=(2,3)", "height_factor must be"},
        {"RandomCrop", "height=0 width=3", "height=0"},
        {"RandomContrast", "factor=0.1 value_range=3", "value_range"},
        {"Resizing", "height=3 width=3 interpolation=cubic", "interpolation=cubic"},
        {"Resizing", "height=3 width=3 crop_to_aspect_ratio=1 pad_to_aspect_ratio=1", "only one"},
        {"Normalization", "mean=1,2,3 variance=1,2,3", "3 entries"},
        {"Normalization", "axis=0", "axis=0"},
        {"Normalization", "mean=1", "variance 0"},
        {"Cropping2D", "cropping=5", "cropping takes 10"},
        {"UpSampling2D", "size=0", "at least 1"},
        {"RepeatVector", "n=3", "must have 2 axes"},
        {"UpSampling3D", "", "must have 5 axes"},
    };
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const snug_status status = sn_network_add(n, bad[i][0], NULL, sn_conf_fill_text,
                                                  (void *)(uintptr_t)bad[i][1], &err);
        assert_int_not_equal(status, SNUG_OK);
        expect_text(err.text, bad[i][2]);
    }
    sn_network_destroy(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_layers_follow_the_key),
        cmocka_unit_test(test_random_layers_do_not_see_the_batch),
        cmocka_unit_test(test_random_layers_rest_while_not_training),
        cmocka_unit_test(test_flips_turn_half_of_the_pictures),
        cmocka_unit_test(test_translations_move_within_their_bounds),
        cmocka_unit_test(test_zooms_stretch_about_the_middle),
        cmocka_unit_test(test_rotations_turn_about_the_middle),
        cmocka_unit_test(test_crops_are_windows_anywhere),
        cmocka_unit_test(test_crops_rest_in_the_middle),
        cmocka_unit_test(test_contrast_scales_about_the_mean_of_a_channel),
        cmocka_unit_test(test_brightness_adds_a_part_of_the_range),
        engine_test(test_fit_draws_anew_in_each_step_and_repeats_by_seed),
        engine_test(test_settings_without_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
