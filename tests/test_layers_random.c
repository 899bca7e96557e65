/* test_layers_random.c: layers that act in training only: shares, means and deviations of what they
 * make, what is dropped together, and that inference leaves values alone. */
#include "support/support.h"

#include "exec/exec.h"
#include "graph/build.h"
#include "nn/network.h"

#include <math.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *layer, *config;
    snug_type type; /* with the batch */
    bool training;
    double value; /* of each element of the input; NaN: standard normals */
    int64_t key;
} trial;

static snug_status fill_input(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                              snug_error *err) {
    const trial *t = ctx;
    const sn_recipe constant = {SN_RECIPE_CONSTANT, 0, t->value, 0},
                    normal = {SN_RECIPE_NORMAL, 77, 0, 1};
    (void)first;
    (void)n;
    return sn_recipe_fill(isnan(t->value) ? &normal : &constant, 0,
                          (size_t)sn_type_count(&dst->type), SNUG_F64, dst->data, err);
}

/* The layer's output; the caller frees it. */
static double *run(snug_engine *e, const trial *t) {
    snug_error err;
    sn_network *n;
    sn_graph *g;
    sn_state *none;
    sn_value x;
    sn_network_result result;
    sn_param key;
    sn_scalar params[16];
    snug_type open = t->type;
    open.dims[0] = -1;
    const size_t bytes = (size_t)sn_type_count(&t->type) * sizeof(double);
    double *out = malloc(bytes);
    expect_ok(sn_network_create(e, "n", &open, &n, &err), &err);
    expect_ok(
        sn_network_add(n, t->layer, NULL, sn_conf_fill_text, (void *)(uintptr_t)t->config, &err),
        &err);
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_state_create(e, &none, &err), &err);
    expect_ok(sn_graph_input(g, "x", &t->type, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, t->training, &result, &err), &err);
    sn_builder b = sn_builder_on(g);
    expect_ok(sn_graph_output(g, "y", sn_build_identity(&b, result.y[0]), &err), &err);
    assert_true(sn_graph_n_params(g) <= 16);
    for (uint32_t i = 0; i < sn_graph_n_params(g); i++) {
        const sn_param_info *p = sn_graph_param_at(g, (sn_param){i});
        params[i] =
            p->kind == SN_PARAM_KEY ? (sn_scalar){.key = p->key} : (sn_scalar){.real = p->real};
    }
    char name[64];
    snprintf(name, sizeof name, "dropout/%s/key", n->layers[0].name);
    if (sn_graph_find_param(g, name, &key, NULL) == SNUG_OK)
        params[key.i].key = t->key;
    const sn_input_binding input = {.ctx = (void *)(uintptr_t)t, .fill = fill_input};
    snug_view view = {.data = out, .bytes = bytes, .type = t->type};
    const sn_naive_options options = {.params = params, .inputs = &input, .outputs = &view};
    expect_ok(sn_naive_run(e, g, none, &options, &err), &err);
    sn_state_destroy(none);
    sn_graph_destroy(g);
    sn_network_destroy(n);
    return out;
}

static void moments(const double *x, int64_t n, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *deviation = sqrt(squares / (double)n);
}

#define SHAPE                                                                                      \
    {                                                                                              \
        SNUG_F64, 4, {                                                                             \
            16, 8, 6, 40                                                                           \
        }                                                                                          \
    }

static void test_layers_have_the_mean_and_deviation_of_keras(void **state) {
    /* of 2 times Bernoulli(0.75) / 0.75: mean 2, deviation 2 sqrt(0.25 / 0.75) */
    static const struct {
        trial t;
        double mean, deviation;
    } cases[] = {
        {{"Dropout", "rate=0.25", SHAPE, true, 2, 5}, 2, 1.1547005383792515},
        {{"GaussianNoise", "stddev=1.5", SHAPE, true, 2, 5}, 2, 1.5},
        {{"GaussianDropout", "rate=0.2", SHAPE, true, 2, 5}, 2, 1},
        {{"AlphaDropout", "rate=0.3", SHAPE, true, (double)NAN, 5}, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t n = sn_type_count(&cases[i].t.type);
        double *y = run(*state, &cases[i].t), mean, deviation;
        moments(y, n, &mean, &deviation);
        if (fabs(mean - cases[i].mean) > 4 * cases[i].deviation / sqrt((double)n) ||
            fabs(deviation - cases[i].deviation) > 0.02 * cases[i].deviation)
            fail_msg("%s: mean %g, deviation %g", cases[i].t.layer, mean, deviation);
        trial other = cases[i].t;
        other.key = 6;
        double *z = run(*state, &other);
        assert_true(memcmp(y, z, (size_t)n * sizeof *y) != 0); /* another key, another draw */
        free(z);
        free(y);
    }
}

/* Elements that differ only along axes of `together` are dropped together, and the share dropped is
 * the rate. */
static void check_together(snug_engine *e, const trial *t, uint32_t together, double rate) {
    double *y = run(e, t);
    const snug_type *s = &t->type;
    double n_groups = 0, n_dropped = 0;
    for (int64_t i = 0; i < sn_type_count(s); i++) {
        int64_t rest = i, first = 0, stride = 1;
        for (int a = s->rank - 1; a >= 0; a--) {
            first += together >> a & 1 ? 0 : rest % s->dims[a] * stride;
            stride *= s->dims[a];
            rest /= s->dims[a];
        }
        assert_true(y[i] == y[first]);
        assert_true(y[i] == 0 || fabs(y[i] - t->value / (1 - rate)) < 1e-12);
        n_groups += i == first;
        n_dropped += i == first && y[i] == 0;
    }
    assert_true(fabs(n_dropped / n_groups - rate) < 4 * sqrt(rate * (1 - rate) / n_groups));
    free(y);
}

static void test_channels_and_examples_are_dropped_as_one(void **state) {
    const snug_type line = {SNUG_F64, 3, {30, 5, 20}}, volume = {SNUG_F64, 5, {10, 2, 3, 2, 40}},
                    many = {SNUG_F64, 2, {900, 3}};
    check_together(*state, &(trial){"SpatialDropout1D", "rate=0.3", line, true, 1, 9}, 2u, 0.3);
    check_together(*state, &(trial){"SpatialDropout2D", "rate=0.3", SHAPE, true, 1, 9}, 6u, 0.3);
    check_together(*state, &(trial){"SpatialDropout3D", "rate=0.3", volume, true, 1, 9}, 14u, 0.3);
    check_together(*state, &(trial){"StochasticDepth", "drop_path_rate=0.4", many, true, 1, 9}, 2u,
                   0.4);
    check_together(*state, &(trial){"Dropout", "rate=0.4 noise_shape=-1,1", many, true, 1, 9}, 2u,
                   0.4);
    check_together(*state, &(trial){"Dropout", "rate=0.4 noise_shape=-1,8,1,40", SHAPE, true, 1, 9},
                   4u, 0.4);
}

static void test_inference_leaves_values_alone(void **state) {
    static const char *const layers[][2] = {
        {"Dropout", "rate=0.5"},           {"SpatialDropout2D", "rate=0.5"},
        {"GaussianNoise", "stddev=1"},     {"GaussianDropout", "rate=0.5"},
        {"AlphaDropout", "rate=0.5"},      {"StochasticDepth", "drop_path_rate=0.5"},
        {"ActivityRegularization", "l1=1"}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const trial t = {layers[i][0], layers[i][1], SHAPE, false, 3, 1};
        double *y = run(*state, &t);
        for (int64_t k = 0; k < sn_type_count(&t.type); k++)
            assert_true(y[k] == 3);
        free(y);
    }
}

static void test_wrong_settings_are_refused(void **state) {
    static const struct {
        const char *layer, *config;
        snug_status status;
    } bad[] = {
        {"Dropout", "rate=1.5", SNUG_E_INVALID},
        {"Dropout", "rate=0.5 noise_shape=-1,3", SNUG_E_SHAPE},
        {"SpatialDropout2D", "rate=0.5", SNUG_E_SHAPE},
        {"GaussianNoise", "stddev=-1", SNUG_E_INVALID},
        {"GaussianDropout", "rate=1", SNUG_E_INVALID},
    };
    const snug_type open = {SNUG_F64, 2, {-1, 4}};
    snug_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sn_network *n;
        expect_ok(sn_network_create(*state, "n", &open, &n, &err), &err);
        expect_status(sn_network_add(n, bad[i].layer, NULL, sn_conf_fill_text,
                                     (void *)(uintptr_t)bad[i].config, &err),
                      bad[i].status, &err);
        sn_network_destroy(n);
    }
}

/* Two fits with one seed give the same weights, with another seed others. */
static float train_once(snug_engine *e, uint64_t seed) {
    static const char *const layers[][2] = {{"Dropout", "rate=0.2 noise_shape=-1,1,6"},
                                            {"SpatialDropout1D", "rate=0.2"},
                                            {"GaussianNoise", "stddev=0.1"},
                                            {"GaussianDropout", "rate=0.2"},
                                            {"AlphaDropout", "rate=0.2"},
                                            {"StochasticDepth", "drop_path_rate=0.2"},
                                            {"ActivityRegularization", "l1=0.01 l2=0.01"},
                                            {"Flatten", ""},
                                            {"Dense", "units=1"}};
    const snug_type example = {SNUG_F32, 2, {4, 3}};
    snug_error err;
    snug_model *m;
    snug_feed *x, *y;
    snug_view w;
    expect_ok(snug_model_create(e, NULL, &example, &m, &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=6", &err), &err);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        expect_ok(snug_model_add(m, layers[i][0], layers[i][1], &err), &err);
    expect_ok(snug_feed_open(e, "normal:20x4x3@1", &x, &err), &err);
    expect_ok(snug_feed_open(e, "normal:20x1@2", &y, &err), &err);
    const snug_fit_options o = {.x = x, .y = y, .batch = 8, .epochs = 2, .seed = seed};
    snug_fit_result result;
    expect_ok(snug_fit(m, &o, &result, &err), &err);
    assert_true(isfinite(result.values[0]));
    expect_ok(snug_model_weight(m, 0, NULL, &w, &err), &err);
    const float first = *(const float *)w.data;
    snug_feed_destroy(y);
    snug_feed_destroy(x);
    snug_model_destroy(m);
    return first;
}

static void test_training_repeats_by_seed(void **state) {
    const float a = train_once(*state, 3);
    assert_true(a == train_once(*state, 3));
    assert_true(a != train_once(*state, 4));
}

/* Losses of two steps that learn nothing: they differ by what is dropped. */
static void drop_twice(snug_engine *e, const char *const *layers, uint64_t seed, double *losses) {
    snug_error err;
    snug_model *m;
    snug_feed *x, *y;
    expect_ok(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {9}}, &m, &err), &err);
    for (int i = 0; layers[i]; i++)
        expect_ok(snug_model_add(m, "Dropout", layers[i], &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=1", &err), &err);
    expect_ok(snug_model_compile(m, &(snug_compile){.optimizer = "sgd:lr=0", .loss = "mse"}, &err),
              &err);
    expect_ok(snug_feed_open(e, "normal:8x9@1", &x, &err), &err);
    expect_ok(snug_feed_open(e, "normal:8x1@2", &y, &err), &err);
    for (int i = 0; i < 2; i++) {
        const snug_fit_options o = {.x = x, .y = y, .batch = 8, .epochs = 1, .seed = seed};
        snug_fit_result result;
        expect_ok(snug_fit(m, &o, &result, &err), &err);
        losses[i] = result.values[0];
    }
    snug_feed_destroy(y);
    snug_feed_destroy(x);
    snug_model_destroy(m);
}

static void test_a_seed_of_its_own_decides_what_a_layer_draws(void **state) {
    static const char *const own[] = {"rate=0.4 seed=7", NULL},
                             *const other[] = {"rate=0.4 seed=8", NULL},
                             *const none[] = {"rate=0.4", NULL},
                             *const twice[] = {"rate=0.4 seed=7", "rate=0 seed=3", NULL};
    double a[2], b[2];
    drop_twice(*state, own, 1, a);
    drop_twice(*state, own, 2, b);
    assert_true(a[0] == b[0] && a[1] == b[1]); /* whatever the fit's seed is */
    assert_true(a[0] != a[1]);                 /* it goes on from step to step */
    drop_twice(*state, twice, 2, b);
    assert_true(a[0] == b[0] && a[1] == b[1]); /* and whatever stands beside it */
    drop_twice(*state, other, 1, b);
    assert_true(a[0] != b[0]);
    drop_twice(*state, none, 1, a);
    drop_twice(*state, none, 2, b);
    assert_true(a[0] != b[0]);
}

/* Layers of one seed draw alike, as in Keras; applications of one layer do not. */
static void test_keys_follow_from_seed_and_use(void **state) {
    static const char *const configs[] = {"seed=5", "seed=5", "seed=6"};
    snug_error err;
    sn_network *n;
    sn_graph *g;
    sn_value x;
    sn_network_result result;
    uint32_t out;
    int64_t keys[4];
    const snug_type open = {SNUG_F32, 2, {-1, 4}}, type = {SNUG_F32, 2, {2, 4}};
    expect_ok(sn_network_create(*state, "n", &open, &n, &err), &err);
    for (int i = 0; i < 3; i++)
        expect_ok(sn_network_add(n, "Dropout", NULL, sn_conf_fill_text,
                                 (void *)(uintptr_t)configs[i], &err),
                  &err);
    const sn_layer_spec again = {.in = n->outputs, .n_in = 1};
    expect_ok(sn_network_apply(n, 2, &again, &out, &err), &err);
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &type, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, true, &result, &err), &err);
    int at = 0;
    for (uint32_t i = 0; i < sn_graph_n_params(g); i++)
        if (sn_graph_param_at(g, (sn_param){i})->kind == SN_PARAM_KEY)
            keys[at++] = sn_graph_param_at(g, (sn_param){i})->key;
    assert_int_equal(at, 4);
    assert_true(keys[0] == keys[1] && keys[0] != 0);
    assert_true(keys[2] != keys[0] && keys[3] != keys[2] && keys[3] != 0);
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_layers_have_the_mean_and_deviation_of_keras),
        engine_test(test_channels_and_examples_are_dropped_as_one),
        engine_test(test_inference_leaves_values_alone),
        engine_test(test_wrong_settings_are_refused),
        engine_test(test_training_repeats_by_seed),
        engine_test(test_a_seed_of_its_own_decides_what_a_layer_draws),
        engine_test(test_keys_follow_from_seed_and_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
