/* test_train_ends.c: models of several inputs and outputs, and weights of examples: what is
 * refused, names of values, and that weights act on every way to train. What training computes is
 * compared with Keras by test_golden.c (io_*, weight_*, mask_*). */
#include "support/files.h"
#include "train/model.h"

#include <math.h>
#include <snug/train.h>
#include <stdio.h>
#include <string.h>

#define ENDS                                                                                       \
    SNUG_TEST_DATA                                                                                 \
    "/golden/io_list_f32/model.json" /* a [12], b [5, 4] -> first [3], second 4 classes */
#define MASKED SNUG_TEST_DATA "/golden/mask_loss_f32/model.json"
enum { ROWS = 20 };

typedef struct {
    snug_engine *engine;
    snug_model *model;
    snug_feed *x[2], *y[2], *w;
    snug_data data;
} world;

static snug_feed *open_recipe(snug_engine *e, const char *text) {
    snug_error err;
    snug_feed *feed = NULL;
    expect_ok(snug_feed_open(e, text, &feed, &err), &err);
    return feed;
}

static void begin(world *w, void **state) {
    snug_error err;
    *w = (world){.engine = *state};
    expect_ok(snug_model_load(w->engine, ENDS, &w->model, &err), &err);
    w->x[0] = open_recipe(w->engine, "normal:20x12@1");
    w->x[1] = open_recipe(w->engine, "normal:20x5x4@2");
    w->y[0] = open_recipe(w->engine, "normal:20x3@3");
    w->y[1] = open_recipe(w->engine, "labels:20@4@4");
    w->w = open_recipe(w->engine, "uniform:20@5");
    w->data = (snug_data){.x = w->x, .n_x = 2, .y = w->y, .n_y = 2};
}

static void end(world *w) {
    snug_feed_destroy(w->w);
    for (int i = 0; i < 2; i++) {
        snug_feed_destroy(w->y[i]);
        snug_feed_destroy(w->x[i]);
    }
    snug_model_destroy(w->model);
}

static double evaluate(world *w, double *values) {
    snug_error err;
    int n;
    const snug_run_options o = {.data = &w->data, .batch = 8};
    expect_ok(snug_evaluate(w->model, &o, values, &n, &err), &err);
    return values[0];
}

/* --- names and settings ----------------------------------------------------------------------- */
static void test_history_has_a_line_per_output(void **state) {
    static const char *const names[] = {
        "loss",     "first_loss",      "second_loss",         "first_mae",
        "val_loss", "val_second_loss", "val_second_accuracy", "second_accuracy"};
    world w;
    snug_error err;
    snug_history *history;
    snug_callback callback;
    begin(&w, state);
    expect_ok(snug_callback_history(w.engine, &history, &callback, &err), &err);
    const snug_fit_options o = {.data = &w.data,
                                .validation_split = 0.25,
                                .batch = 8,
                                .epochs = 2,
                                .shuffle = 1,
                                .callbacks = &callback,
                                .n_callbacks = 1};
    expect_ok(snug_fit(w.model, &o, NULL, &err), &err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double value;
        expect_ok(snug_history_value(history, names[i], 1, &value, &err), &err);
        assert_true(isfinite(value));
    }
    callback.destroy(callback.ctx);
    end(&w);
}

static void compile(world *w, snug_compile c) {
    snug_error err;
    expect_ok(snug_model_compile(w->model, &c, &err), &err);
}

static void test_settings_by_place_name_or_for_all(void **state) {
    world w;
    double by_place[1 + SNUG_MAX_METRICS], by_name[1 + SNUG_MAX_METRICS];
    begin(&w, state);
    compile(&w, (snug_compile){.loss = "mae;sparse_categorical_crossentropy",
                               .loss_weights = "0.5;2",
                               .metrics = "mse;accuracy"});
    evaluate(&w, by_place);
    compile(&w, (snug_compile){.loss = "second=sparse_categorical_crossentropy;first=mae",
                               .loss_weights = "second=2;first=0.5",
                               .metrics = "second=accuracy;first=mse"});
    evaluate(&w, by_name);
    assert_memory_equal(by_place, by_name, 5 * sizeof *by_place);
    assert_true(fabs(by_place[0] - 0.5 * by_place[1] - 2 * by_place[2]) < 1e-6);
    assert_string_equal(snug_model_metric_name(w.model, 3), "second_accuracy");
    end(&w);
}

static void test_output_without_a_loss_reads_no_target(void **state) {
    world w;
    snug_type target;
    double values[1 + SNUG_MAX_METRICS];
    begin(&w, state);
    compile(&w, (snug_compile){.loss = "none;sparse_categorical_crossentropy",
                               .metrics = "second=accuracy",
                               .loss_weights = ""});
    assert_false(snug_model_target_at(w.model, 0, &target));
    snug_feed *const only[2] = {NULL, w.y[1]};
    w.data.y = only;
    evaluate(&w, values);
    assert_int_equal(snug_model_n_metrics(w.model), 1);
    end(&w);
}

static void test_repeated_metrics_have_keras_names(void **state) {
    world w;
    begin(&w, state);
    compile(&w, (snug_compile){.metrics = "first=mae,mae",
                               .weighted_metrics = "first=mae;second=accuracy"});
    assert_int_equal(snug_model_n_metrics(w.model), 6);
    assert_string_equal(snug_model_metric_name(w.model, 2), "first_mae");
    assert_string_equal(snug_model_metric_name(w.model, 3), "first_mae_1");
    assert_string_equal(snug_model_metric_name(w.model, 4), "first_weighted_mae");
    assert_string_equal(snug_model_metric_name(w.model, 5), "second_accuracy");
    end(&w);
}

static void test_bad_settings_change_nothing(void **state) {
    static const struct {
        snug_compile c;
        const char *piece;
    } rows[] = {
        {{.loss = "mse;mse;mse"}, "3 entries, the model 2 outputs"},
        {{.loss = "third=mse"}, "no output 'third'"},
        {{.loss_weights = "first=heavy"}, "'heavy' is no number"},
        {{.loss = "mse;none", .metrics = "second=accuracy"}, "no loss"},
        {{.loss = "second=fancy"}, "fancy"},
    };
    world w;
    begin(&w, state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_error err;
        assert_int_not_equal(snug_model_compile(w.model, &rows[i].c, &err), SNUG_OK);
        expect_text(err.text, rows[i].piece);
        assert_string_equal(snug_model_loss(w.model), "mse;sparse_categorical_crossentropy");
        assert_int_equal(snug_model_n_metrics(w.model), 4);
    }
    end(&w);
}

/* --- feeds ------------------------------------------------------------------------------------ */
static void expect_refused(world *w, const snug_fit_options *o, snug_status status,
                           const char *piece) {
    snug_error err;
    expect_status(snug_fit(w->model, o, NULL, &err), status, &err);
    expect_text(err.text, piece);
}

static void test_wrong_feeds_are_refused_by_name(void **state) {
    world w;
    begin(&w, state);
    snug_feed *const swapped[2] = {w.x[1], w.x[0]}, *const missing[2] = {w.x[0], NULL};
    const snug_fit_options o = {.data = &w.data};
    w.data.n_x = 1;
    expect_refused(&w, &o, SNUG_E_INVALID, "the model has 2 inputs; 1 x is given");
    w.data.n_x = 2;
    w.data.x = swapped;
    expect_refused(&w, &o, SNUG_E_SHAPE, "x 0 ('a')");
    w.data.x = missing;
    expect_refused(&w, &o, SNUG_E_INVALID, "x 1 ('b') is missing");
    w.data.x = w.x;
    w.data.n_y = 1;
    expect_refused(&w, &o, SNUG_E_INVALID, "the model has 2 outputs; 1 y is given");
    end(&w);
}

static snug_status take_nothing(void *ctx, int64_t first_row, const snug_view *view,
                                snug_error *err) {
    (void)ctx;
    (void)first_row;
    (void)view;
    (void)err;
    return SNUG_OK;
}

static void test_plain_predict_asks_for_one_output(void **state) {
    world w;
    snug_error err;
    begin(&w, state);
    const snug_run_options o = {.data = &w.data};
    expect_status(snug_predict(w.model, &o, take_nothing, NULL, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "snug_predict_outputs");
    end(&w);
}

static void test_label_outside_of_the_classes_is_found(void **state) {
    world w;
    begin(&w, state);
    snug_feed_destroy(w.y[1]);
    w.y[1] = open_recipe(w.engine, "labels:20@4@9");
    expect_refused(&w, &(snug_fit_options){.data = &w.data}, SNUG_E_DATA,
                   "the model has 4 classes");
    end(&w);
}

static void test_nan_in_the_second_input_is_found(void **state) {
    static float bad[ROWS * 20];
    const snug_type type = {.dtype = SNUG_F32, .rank = 3, .dims = {ROWS, 5, 4}};
    world w;
    snug_error err;
    char where[400];
    begin(&w, state);
    bad[3 * 20 + 7] = NAN;
    snug_feed_destroy(w.x[1]);
    expect_ok(snug_feed_from_memory(w.engine, &type, bad, NULL, NULL, &w.x[1], &err), &err);
    w.data.sample_weight = &w.w;
    w.data.n_sample_weights = 1;
    expect_refused(&w, &(snug_fit_options){.data = &w.data}, SNUG_E_NUMERIC, "");
    expect_ok(snug_model_find_nan(w.model, where, sizeof where, &err), &err);
    expect_text(where, "row 3 of x");
    end(&w);
}

/* --- weights of examples ---------------------------------------------------------------------- */
static void test_weights_of_zero_leave_the_loss_out(void **state) {
    static float weights[ROWS];
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {ROWS, 1}};
    world w;
    snug_error err;
    double all[1 + SNUG_MAX_METRICS], part[1 + SNUG_MAX_METRICS];
    begin(&w, state);
    evaluate(&w, all);
    snug_feed_destroy(w.w);
    expect_ok(snug_feed_from_memory(w.engine, &type, weights, NULL, NULL, &w.w, &err), &err);
    w.data.sample_weight = &w.w;
    w.data.n_sample_weights = 1;
    assert_true(evaluate(&w, part) == 0);
    for (int i = 0; i < ROWS; i++)
        weights[i] = 2;
    evaluate(&w, part);
    assert_true(fabs(part[0] - 2 * all[0]) < 1e-5 &&
                fabs(part[3] - all[3]) < 1e-6); /* plain metrics do not see weights */
    end(&w);
}

static void test_class_weights_are_for_one_output(void **state) {
    world w;
    begin(&w, state);
    expect_refused(&w, &(snug_fit_options){.data = &w.data, .class_weight = "0=2"},
                   SNUG_E_UNSUPPORTED, "models of one output");
    end(&w);
}

static void test_class_weights_are_checked(void **state) {
    static const char *const bad[] = {"0", "a=1", "0=heavy", "0.5=1", "=1", "0=1,1"};
    sn_class_weight out[SN_MAX_CLASS_WEIGHTS];
    snug_error err;
    int n;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_status(sn_class_weights_parse(bad[i], out, &n, &err), SNUG_E_INVALID, &err);
    expect_ok(sn_class_weights_parse("-1=0.5,7=2", out, &n, &err), &err);
    assert_true(n == 2 && out[0].label == -1 && out[1].label == 7 && out[1].weight == 2);
}

/* A batch in which everything is masked has the loss 0, and training goes on. */
static void test_a_batch_that_is_masked_whole_has_no_loss(void **state) {
    snug_error err;
    snug_model *m;
    snug_fit_result result;
    snug_engine *e = *state;
    expect_ok(snug_model_load(e, MASKED, &m, &err), &err);
    snug_fit_options o = {
        .x = open_recipe(e, "labels:8x5@1@1"), .y = open_recipe(e, "normal:8x5x3@1"), .batch = 8};
    expect_ok(snug_fit(m, &o, &result, &err), &err);
    assert_true(result.values[0] == 0);
    snug_feed_destroy(o.y);
    snug_feed_destroy(o.x);
    snug_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_history_has_a_line_per_output),
        engine_test(test_settings_by_place_name_or_for_all),
        engine_test(test_output_without_a_loss_reads_no_target),
        engine_test(test_repeated_metrics_have_keras_names),
        engine_test(test_bad_settings_change_nothing),
        engine_test(test_wrong_feeds_are_refused_by_name),
        engine_test(test_plain_predict_asks_for_one_output),
        engine_test(test_label_outside_of_the_classes_is_found),
        engine_test(test_nan_in_the_second_input_is_found),
        engine_test(test_weights_of_zero_leave_the_loss_out),
        engine_test(test_class_weights_are_for_one_output),
        cmocka_unit_test(test_class_weights_are_checked),
        engine_test(test_a_batch_that_is_masked_whole_has_no_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
