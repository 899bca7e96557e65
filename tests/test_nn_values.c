/* test_nn_values.c: losses, metrics and activations give Keras' values: compared in f64 with
 * formulas written out here. */
#include "support/support.h"

#include "exec/exec.h"
#include "nn/activation.h"
#include "nn/metric.h"
#include "nn/objective.h"

#include <math.h>
#include <string.h>

/* --- values, by the naive executor ------------------------------------------------------------ */
typedef struct {
    const double *data;
    size_t bytes;
} block;

static snug_status fill_block(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                              snug_error *err) {
    const block *b = ctx;
    (void)first;
    (void)n;
    (void)err;
    assert_int_equal(dst->bytes, b->bytes);
    memcpy(dst->data, b->data, dst->bytes);
    return SNUG_OK;
}

#define ROWS    3
#define CLASSES 4
static const double scores[ROWS][CLASSES] = {
    {0.1, 0.7, -0.4, 1.9}, {2.0, -1.5, 0.3, 0.2}, {-0.6, 0.9, 0.8, -2.0}};
static const double chances[ROWS][CLASSES] = {
    {0.1, 0.2, 0.3, 0.4}, {0.7, 0.1, 0.1, 0.3}, {0.25, 0.5, 0.0, 0.25}};
static const double onehot[ROWS][CLASSES] = {{0, 0, 0, 1}, {0, 1, 0, 0}, {0, 0, 1, 0}};
static const int32_t labels[ROWS] = {3, 1, 2};

typedef sn_value (*result_fn)(sn_builder *b, const void *what, sn_value y_true, sn_value y_pred);

/* result(y_true, activation(x)) as one number. */
static double evaluate(void **state, const char *activation, const double (*x)[CLASSES],
                       bool sparse, result_fn result, const void *what) {
    snug_error err;
    sn_graph *g;
    sn_state *none;
    sn_value in, y;
    double out = NAN;
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_state_create(*state, &none, &err), &err);
    const snug_type t = {SNUG_F64, 2, {ROWS, CLASSES}}, rows = {SNUG_I32, 1, {ROWS}};
    expect_ok(sn_graph_input(g, "x", &t, &in, &err), &err);
    expect_ok(sn_graph_input(g, "y", sparse ? &rows : &t, &y, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value value = result(&b, what, y, sn_activation(&b, activation, in));
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "out", value, &err), &err);
    block bx = {&x[0][0], sizeof scores},
          by = {sparse ? (const double *)(const void *)labels : &onehot[0][0],
                sparse ? sizeof labels : sizeof onehot};
    const sn_input_binding inputs[2] = {{.ctx = &bx, .fill = fill_block},
                                        {.ctx = &by, .fill = fill_block}};
    snug_view view = {.data = &out, .bytes = sizeof out, .type = {.dtype = SNUG_F64}};
    const sn_naive_options options = {.inputs = inputs, .outputs = &view};
    expect_ok(sn_naive_run(*state, g, none, &options, &err), &err);
    sn_state_destroy(none);
    sn_graph_destroy(g);
    return out;
}

static sn_value build_loss(sn_builder *b, const void *what, sn_value y_true, sn_value y_pred) {
    const sn_objective o = {.used = true, .loss = *(const sn_loss *)what, .weight = 1};
    const sn_objective_data d = {y_true, y_pred, SN_NO_VALUE, SN_NO_VALUE};
    return sn_objective_build(b, &o, &d);
}

static sn_value build_metric(sn_builder *b, const void *what, sn_value y_true, sn_value y_pred) {
    const sn_value sums = sn_metric_build(b, what, y_true, y_pred, SN_NO_VALUE);
    const sn_attrs_slice first = {.sizes = {1, {1}}, .strides = {1, {1}}};
    sn_attrs a = {.slice = first};
    a.slice.start[0] = (int64_t)sn_build_key(b, "", 0).i;
    return sn_build_sum(b, sn_build(b, SN_OP_slice, &a, &sums, 1), 0, false);
}

static void expect_loss(void **state, const char *text, const char *activation,
                        const double (*x)[CLASSES], double wanted) {
    snug_error err;
    sn_loss l;
    expect_ok(sn_loss_parse(text, &l, &err), &err);
    const double got = evaluate(state, activation, x, l.sparse, build_loss, &l);
    if (!(fabs(got - wanted) <= 1e-12 * (1 + fabs(wanted))))
        fail_msg("%s after %s: %.17g, not %.17g", text, activation, got, wanted);
}

static double mean_of(double (*term)(double y, double p), const double (*p)[CLASSES]) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < CLASSES; k++)
            sum += term(onehot[i][k], p[i][k]);
    return sum / (ROWS * CLASSES);
}

static double squared(double y, double p) {
    return (y - p) * (y - p);
}
static double absolute(double y, double p) {
    return fabs(y - p);
}
static double percentage(double y, double p) {
    return 100 * fabs((y - p) / fmax(fabs(y), 1e-7));
}
static double logarithmic(double y, double p) {
    return squared(log(fmax(y, 1e-7) + 1), log(fmax(p, 1e-7) + 1));
}
static double huber_half(double y, double p) {
    const double e = fabs(y - p);
    return e <= 0.5 ? 0.5 * e * e : 0.5 * e - 0.125;
}
static double log_cosh(double y, double p) {
    return log(cosh(p - y)) + log(2) - (double)logf(2); /* Keras' logarithm of 2 is an f32 */
}
static double binary_logits(double y, double x) {
    return -(y * log(1 / (1 + exp(-x))) + (1 - y) * log(1 - 1 / (1 + exp(-x))));
}
static double binary_chance(double y, double p) {
    const double q = fmin(fmax(p, 1e-7), 1 - 1e-7);
    return -(y * log(q) + (1 - y) * log(1 - q));
}

static void test_regression_losses_follow_keras(void **state) {
    expect_loss(state, "mse", "linear", scores, mean_of(squared, scores));
    expect_loss(state, "MeanAbsoluteError", "linear", scores, mean_of(absolute, scores));
    expect_loss(state, "mape", "linear", scores, mean_of(percentage, scores));
    expect_loss(state, "mean_squared_logarithmic_error", "linear", scores,
                mean_of(logarithmic, scores));
    expect_loss(state, "huber:delta=0.5", "linear", scores, mean_of(huber_half, scores));
    expect_loss(state, "logcosh", "linear", scores, mean_of(log_cosh, scores));
}

/* Mean over rows of -log softmax(scores)[label]. */
static double row_entropy(void) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        double z = 0;
        for (int k = 0; k < CLASSES; k++)
            z += exp(scores[i][k]);
        sum += log(z) - scores[i][labels[i]];
    }
    return sum / ROWS;
}

static void test_cross_entropies_look_through_to_logits(void **state) {
    const double wanted = row_entropy();
    expect_loss(state, "sparse_categorical_crossentropy", "softmax", scores, wanted);
    expect_loss(state, "sparse_categorical_crossentropy:from_logits=true", "linear", scores,
                wanted);
    expect_loss(state, "categorical_crossentropy", "softmax", scores, wanted);
    expect_loss(state, "CategoricalCrossentropy:from_logits=1", "linear", scores, wanted);
    expect_loss(state, "binary_crossentropy", "sigmoid", scores, mean_of(binary_logits, scores));
    expect_loss(state, "bce:from_logits=true", "linear", scores, mean_of(binary_logits, scores));
}

static void test_cross_entropies_of_probabilities_clip_as_keras(void **state) {
    double categorical = 0, sparse = 0;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, z = 0;
        for (int k = 0; k < CLASSES; k++) {
            sum += chances[i][k];
            z += fmax(chances[i][k], 1e-7);
        }
        categorical -= log(fmax(chances[i][labels[i]] / sum, 1e-7)) / ROWS;
        sparse -= log(fmax(chances[i][labels[i]], 1e-7) / z) /
                  ROWS; /* the logarithm goes through a softmax */
    }
    expect_loss(state, "categorical_crossentropy", "linear", chances, categorical);
    expect_loss(state, "sparse_categorical_crossentropy", "linear", chances, sparse);
    expect_loss(state, "binary_crossentropy", "linear", chances, mean_of(binary_chance, chances));
}

static void test_bad_losses_are_refused(void **state) {
    (void)state;
    snug_error err;
    sn_loss l;
    expect_status(sn_loss_parse("hinge2", &l, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "mean_squared_error");
    expect_status(sn_loss_parse("mse:reduction=none", &l, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "sum_over_batch_size");
    expect_status(sn_loss_parse("ctc", &l, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "'ctc'");
    expect_status(sn_loss_parse("circle", &l, &err), SNUG_E_UNSUPPORTED, &err);
    expect_status(sn_loss_parse("dice:axis=-1", &l, &err), SNUG_E_INVALID, &err);
    expect_status(sn_loss_parse("mse:from_logits=true", &l, &err), SNUG_E_INVALID, &err);
    expect_status(sn_loss_parse("bce:logits=true", &l, &err), SNUG_E_INVALID, &err);
    expect_status(sn_loss_parse("bce:from_logits=perhaps", &l, &err), SNUG_E_INVALID, &err);
    expect_status(sn_loss_parse("bce:label_smoothing=2", &l, &err), SNUG_E_INVALID, &err);
}

static void test_accuracy_means_what_the_shapes_say(void **state) {
    (void)state;
    snug_error err;
    sn_loss mse, sparse;
    sn_metric m;
    const snug_type ten = {SNUG_F32, 2, {-1, 10}}, one = {SNUG_F32, 2, {-1, 1}};
    expect_ok(sn_loss_parse("mse", &mse, &err), &err);
    expect_ok(sn_loss_parse("sparse_categorical_crossentropy", &sparse, &err), &err);
    expect_ok(sn_metric_parse("accuracy", &mse, &ten, &m, &err), &err);
    assert_string_equal(m.resolved, "categorical_accuracy");
    expect_ok(sn_metric_parse("acc", &sparse, &ten, &m, &err), &err);
    assert_string_equal(m.resolved, "sparse_categorical_accuracy");
    assert_string_equal(m.name, "acc");
    expect_ok(sn_metric_parse("accuracy", &mse, &one, &m, &err), &err);
    assert_string_equal(m.resolved, "binary_accuracy");
    expect_status(sn_metric_parse("categorical_accuracy", &sparse, &ten, &m, &err), SNUG_E_INVALID,
                  &err);
    expect_text(err.text, "use sparse_categorical_accuracy");
    expect_status(sn_metric_parse("sparse_top_k_categorical_accuracy", &mse, &ten, &m, &err),
                  SNUG_E_INVALID, &err);
    expect_text(err.text, "use top_k_categorical_accuracy");
    expect_status(sn_metric_parse("mae", &sparse, &ten, &m, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "leave it out");
    expect_status(sn_metric_parse("hue", &sparse, &ten, &m, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "accuracy");
    expect_status(sn_metric_parse("auc", &sparse, &ten, &m, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "one-hot");
}

static void test_metrics_sum_over_examples(void **state) {
    snug_error err;
    sn_loss dense, sparse;
    sn_metric m;
    const snug_type t = {SNUG_F64, 2, {-1, CLASSES}};
    expect_ok(sn_loss_parse("mse", &dense, &err), &err);
    expect_ok(sn_loss_parse("sparse_categorical_crossentropy", &sparse, &err), &err);
    expect_ok(sn_metric_parse("accuracy", &sparse, &t, &m, &err), &err);
    assert_true(evaluate(state, "softmax", scores, true, build_metric, &m) ==
                1); /* row 0 is right */
    expect_ok(sn_metric_parse("accuracy", &dense, &t, &m, &err), &err);
    assert_true(evaluate(state, "linear", scores, false, build_metric, &m) == 1);
    expect_ok(sn_metric_parse("binary_accuracy", &dense, &t, &m, &err), &err);
    /* hits per row: {1,0,1,1}, {0,0,1,1}, {1,0,1,1} */
    expect_real(evaluate(state, "linear", scores, false, build_metric, &m), 0.75 + 0.5 + 0.75,
                1e-12);
    expect_ok(sn_metric_parse("mae", &dense, &t, &m, &err), &err);
    expect_real(evaluate(state, "linear", scores, false, build_metric, &m),
                ROWS * mean_of(absolute, scores), 1e-12);
}

static void test_metric_settings_are_kept_and_checked(void **state) {
    (void)state;
    snug_error err;
    sn_loss mse;
    sn_metric m;
    const snug_type ten = {SNUG_F32, 2, {-1, 10}};
    expect_ok(sn_loss_parse("mse", &mse, &err), &err);
    expect_ok(sn_metric_parse("TopKCategoricalAccuracy:k=3", &mse, &ten, &m, &err), &err);
    assert_true(m.k == 3);
    assert_string_equal(m.name, "TopKCategoricalAccuracy");
    assert_string_equal(m.text, "TopKCategoricalAccuracy:k=3");
    assert_string_equal(m.resolved, "top_k_categorical_accuracy");
    expect_ok(sn_metric_parse("recall:thresholds=0.7", &mse, &ten, &m, &err), &err);
    assert_true(m.threshold == 0.7);
    static const char *const bad[] = {
        "top_k_categorical_accuracy:k=0",   "top_k_categorical_accuracy:k=1.5",
        "precision:thresholds=2",           "recall:k=3",
        "root_mean_squared_error:delta=1",  "mse:delta=1",
        "sparse_top_k_categorical_accuracy"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_status(sn_metric_parse(bad[i], &mse, &ten, &m, &err), SNUG_E_INVALID, &err);
    assert_true(m.threshold == 0.7); /* written only on success */
}

static void test_metrics_finish_from_their_sums(void **state) {
    (void)state;
    snug_error err;
    sn_loss mse;
    sn_metric m;
    const snug_type ten = {SNUG_F32, 2, {-1, 10}};
    const double decision[4] = {3, 4, 6, 10}, nothing[4] = {0, 0, 0, 0}, mean[2] = {8, 2};
    expect_ok(sn_loss_parse("mse", &mse, &err), &err);
    expect_ok(sn_metric_parse("precision", &mse, &ten, &m, &err), &err);
    assert_int_equal(m.n_sums, 4);
    assert_true(sn_metric_finish(&m, decision) == 0.75);
    assert_true(sn_metric_finish(&m, nothing) == 0); /* nothing was said to be there */
    expect_ok(sn_metric_parse("true_negatives", &mse, &ten, &m, &err), &err);
    assert_true(sn_metric_finish(&m, decision) == 3);
    expect_ok(sn_metric_parse("root_mean_squared_error", &mse, &ten, &m, &err), &err);
    assert_int_equal(m.n_sums, 2);
    assert_true(sn_metric_finish(&m, mean) == 2);
    expect_ok(sn_metric_parse("mse:name=squares", &mse, &ten, &m, &err), &err);
    assert_true(sn_metric_finish(&m, mean) == 4);
    assert_true(isnan(sn_metric_finish(&m, nothing)));
    assert_string_equal(m.name, "squares");
}

static void test_activations_follow_keras(void **state) {
    static const struct {
        const char *name;
        double at_07; /* of 0.7 in the row {0.1, 0.7, -0.4, 1.9} */
        double at_m04;
    } cases[] = {
        {"relu", 0.7, 0},
        {"leaky_relu", 0.7, -0.4 * 0.2f},
        {"elu", 0.7, -0.32967995396436073},
        {"selu", 0.7 * 1.0507009873554805,
         -0.32967995396436073 * 1.0507009873554805 * 1.6732632423543772},
        {"gelu", 0.5306254408252895, -0.13783130436429833},
        {"swish", 0.46773144051771626, -0.1605249359550192},
        {"softplus", 1.103186048885458, 0.5130152523999526},
        {"softsign", 0.7 / 1.7, -0.4 / 1.4},
        {"mish", 0.5611483776438518, -0.18891648239351463},
        {"exponential", 2.0137527074704766, 0.6703200460356393},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snug_error err;
        sn_graph *g;
        sn_state *none;
        sn_value x;
        double out[4];
        expect_ok(sn_graph_create(*state, &g, &err), &err);
        expect_ok(sn_state_create(*state, &none, &err), &err);
        expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F64, 2, {1, 4}}, &x, &err), &err);
        sn_builder b = sn_builder_on(g);
        expect_ok(sn_graph_output(g, "y", sn_activation(&b, cases[i].name, x), &err), &err);
        block bx = {&scores[0][0], 4 * sizeof(double)};
        const sn_input_binding input = {.ctx = &bx, .fill = fill_block};
        snug_view view = {.data = out, .bytes = sizeof out};
        const sn_naive_options options = {.inputs = &input, .outputs = &view};
        expect_ok(sn_naive_run(*state, g, none, &options, &err), &err);
        if (fabs(out[1] - cases[i].at_07) > 1e-9 || fabs(out[2] - cases[i].at_m04) > 1e-9)
            fail_msg("%s: %.12g and %.12g", cases[i].name, out[1], out[2]);
        sn_state_destroy(none);
        sn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_regression_losses_follow_keras),
        engine_test(test_cross_entropies_look_through_to_logits),
        engine_test(test_cross_entropies_of_probabilities_clip_as_keras),
        engine_test(test_bad_losses_are_refused),
        engine_test(test_accuracy_means_what_the_shapes_say),
        engine_test(test_metrics_sum_over_examples),
        engine_test(test_metric_settings_are_kept_and_checked),
        engine_test(test_metrics_finish_from_their_sums),
        engine_test(test_activations_follow_keras),
    };
    return cmocka_run_group_tests_name("nn_values", tests, NULL, NULL);
}
