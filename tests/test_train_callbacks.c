/* test_train_callbacks.c: what is told during a fit, and who may act on it: validation, early
 * stopping, rates, history, CSV, best weights; and that the step loop requests no memory. */
#include "support/blobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = BLOB_ROWS, DIM = BLOB_DIM, CLASSES = BLOB_CLASSES };

/* --- progress, validation, callbacks ---------------------------------------------------------- */
static void test_validation_split_takes_the_last_part(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result split, given;
    blobs_begin(*state, &b);
    counter c = {.engine = *state};
    const snug_callback cb = counting(&c);
    snug_model *m = mlp(*state);
    snug_fit_options fit = {.x = b.fx,
                            .y = b.fy,
                            .epochs = 2,
                            .batch = 16,
                            .validation_split = 0.3,
                            .callbacks = &cb,
                            .n_callbacks = 1};
    expect_ok(snug_fit(m, &fit, &split, &err), &err);
    assert_int_equal(
        split.steps,
        2 * 4); /* floor(70 * 0.7) = 49 rows at most: three full batches and a remainder */
    assert_int_equal(c.validations, 2);
    snug_model_destroy(m);
    /* the same by hand */
    snug_feed *tx, *ty, *vx, *vy;
    const int cut = (int)floor(70 * (1 - 0.3));
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_F32, 2, {cut, DIM}}, b.x, NULL, NULL,
                                    &tx, &err),
              &err);
    expect_ok(
        snug_feed_from_memory(*state, &(snug_type){SNUG_I32, 1, {cut}}, b.y, NULL, NULL, &ty, &err),
        &err);
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_F32, 2, {N - cut, DIM}}, b.x[cut],
                                    NULL, NULL, &vx, &err),
              &err);
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_I32, 1, {N - cut}}, b.y + cut, NULL,
                                    NULL, &vy, &err),
              &err);
    m = mlp(*state);
    fit = (snug_fit_options){.x = tx, .y = ty, .val_x = vx, .val_y = vy, .epochs = 2, .batch = 16};
    expect_ok(snug_fit(m, &fit, &given, &err), &err);
    assert_memory_equal(split.values, given.values, 2 * sizeof(double));
    assert_memory_equal(split.val_values, given.val_values, 2 * sizeof(double));
    fit.val_y = NULL;
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_INVALID, &err);
    snug_model_destroy(m);
    snug_feed_destroy(tx);
    snug_feed_destroy(ty);
    snug_feed_destroy(vx);
    snug_feed_destroy(vy);
    blobs_end(&b);
}

static void test_step_loop_requests_no_memory(void **state) {
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    counter c = {.engine = *state};
    const snug_callback cb = counting(&c);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {.x = b.fx,
                                  .y = b.fy,
                                  .epochs = 3,
                                  .batch = 16,
                                  .validation_split = 0.3,
                                  .shuffle = 1,
                                  .callbacks = &cb,
                                  .n_callbacks = 1};
    sn_fault_memory(*state, 1000000000, false); /* counts from here */
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_true(c.first_requests > 0);
    assert_int_equal(c.requests, c.first_requests);
    sn_fault_memory(*state, -1, false);
    assert_int_equal(c.begins, 3);
    assert_int_equal(c.ends, 3);
    snug_model_destroy(m);
    blobs_end(&b);
}

static snug_status fill_f64(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                            snug_error *err) {
    (void)err;
    const blobs *b = ctx;
    for (int64_t i = 0; i < n * DIM; i++)
        ((double *)dst->data)[i] = (double)b->x[first + i / DIM][i % DIM];
    return SNUG_OK;
}

/* The buffer in which f64 becomes f32 is there before the first step, too. */
static void test_converting_feed_requests_no_memory_in_the_loop(void **state) {
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    snug_feed *wide;
    expect_ok(snug_feed_from_callback(*state, &(snug_type){SNUG_F64, 2, {N, DIM}}, fill_f64, NULL,
                                      &b, &wide, &err),
              &err);
    counter c = {.engine = *state};
    const snug_callback cb = counting(&c);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {
        .x = wide, .y = b.fy, .epochs = 2, .batch = 16, .callbacks = &cb, .n_callbacks = 1};
    sn_fault_memory(*state, 1000000000, false); /* counts from here */
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_true(c.begin_requests > 0);
    assert_int_equal(c.requests, c.begin_requests);
    sn_fault_memory(*state, -1, false);
    snug_model_destroy(m);
    snug_feed_destroy(wide);
    blobs_end(&b);
}

static void test_callback_stops_after_its_step(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    blobs_begin(*state, &b);
    counter c = {.engine = *state, .stop_after = 7};
    const snug_callback cb = counting(&c);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .epochs = 9, .batch = 16, .callbacks = &cb, .n_callbacks = 1};
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_int_equal(r.stopped, 1);
    assert_int_equal(r.steps, 7);
    assert_int_equal(r.epochs, 1);
    assert_int_equal(c.ends, 1);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_early_stopping_waits_for_its_patience(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    snug_callback cb;
    blobs_begin(*state, &b);
    snug_model *m;
    expect_ok(make_mlp(*state, "sgd:lr=0", &m, &err), &err);
    expect_ok(snug_callback_early_stopping(*state, "loss", 3, 0, &cb, &err), &err);
    const snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .epochs = 20, .batch = 16, .callbacks = &cb, .n_callbacks = 1};
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_int_equal(r.epochs, 4); /* one to set the mark, three without improvement */
    assert_int_equal(r.stopped, 1);
    expect_ok(snug_fit(m, &fit, &r, &err), &err); /* counts anew */
    assert_int_equal(r.epochs, 4);
    cb.destroy(cb.ctx);
    expect_ok(snug_callback_early_stopping(*state, "val_loss", 3, 0, &cb, &err), &err);
    expect_status(snug_fit(m, &fit, &r, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "no validation data");
    cb.destroy(cb.ctx);
    snug_model_destroy(m);
    blobs_end(&b);
}

/* With a rate of 0 nothing improves: the first epoch sets the mark. */
static void test_the_rate_falls_on_a_plateau(void **state) {
    static const struct {
        snug_plateau_options options;
        int epochs;
        double rate;
    } cases[] = {
        {{.factor = 0.5, .patience = 3}, 3, 1},
        {{.factor = 0.5, .patience = 3}, 4, 0.5},
        {{.factor = 0.5, .patience = 3}, 7, 0.25},
        {{.factor = 0.5, .patience = 3, .cooldown = 2}, 7, 0.5},
        {{.factor = 0.5, .patience = 3, .cooldown = 2}, 8, 0.25},
        {{.patience = 1, .min_rate = 0.05}, 9, 0.05},
        {{.factor = 0}, 10, 1},
        {{.factor = 0}, 11, 0.1},
    };
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snug_callback cb;
        snug_model *m;
        /* only what clipping leaves of a gradient is learnt: nothing */
        expect_ok(make_mlp(*state, "sgd:lr=1,clipvalue=1e-30", &m, &err), &err);
        expect_ok(snug_callback_reduce_on_plateau(*state, "loss", &cases[i].options, &cb, &err),
                  &err);
        const snug_fit_options fit = {.x = b.fx,
                                      .y = b.fy,
                                      .epochs = cases[i].epochs,
                                      .batch = 64,
                                      .callbacks = &cb,
                                      .n_callbacks = 1};
        expect_ok(snug_fit(m, &fit, NULL, &err), &err);
        assert_true(fabs(snug_model_learning_rate(m) - cases[i].rate) < 1e-12);
        cb.destroy(cb.ctx);
        snug_model_destroy(m);
    }
    const snug_plateau_options bad = {.factor = 2};
    snug_callback cb;
    expect_status(snug_callback_reduce_on_plateau(*state, "loss", &bad, &cb, &err), SNUG_E_INVALID,
                  &err);
    blobs_end(&b);
}

/* A callback that watches a metric knows whether more of it is better. */
static void test_metrics_know_their_direction(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool rises;
    } cases[] = {{"accuracy", true},  {"auc", true},
                 {"mae", false},      {"false_positives", false},
                 {"r2_score", true},  {"root_mean_squared_error", false},
                 {"precision", true}, {"cosine_similarity", true}};
    const snug_type t = {SNUG_F32, 2, {-1, 3}};
    snug_error err;
    sn_loss loss;
    sn_metric m;
    expect_ok(sn_loss_parse("mse", &loss, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(sn_metric_parse(cases[i].text, &loss, &t, &m, &err), &err);
        assert_int_equal(sn_metric_rises(&m), cases[i].rises);
    }
}

static void test_history_keeps_every_epoch_of_the_newest_fit(void **state) {
    snug_error err;
    blobs b;
    snug_callback cbs[2];
    snug_history *h;
    counter c = {.engine = *state};
    double loss, accuracy, value = -1;
    snug_fit_result r;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    expect_ok(snug_callback_history(*state, &h, &cbs[0], &err), &err);
    cbs[1] = counting(&c);
    snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .epochs = 5, .batch = 16, .callbacks = cbs, .n_callbacks = 1};
    assert_int_equal(snug_history_epochs(h), 0);
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_int_equal(snug_history_epochs(h), 5);
    expect_ok(snug_history_value(h, "loss", 0, &loss, &err), &err);
    expect_ok(snug_history_value(h, "loss", 4, &value, &err), &err);
    assert_true(value < loss); /* it learns */
    expect_ok(snug_history_value(h, "val_loss", 2, &value, &err), &err);
    assert_true(isnan(value));
    fit.validation_split = 0.3;
    fit.epochs = 2;
    fit.n_callbacks = 2;
    sn_fault_memory(*state, 1000000000, false); /* counts requests */
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    sn_fault_memory(*state, -1, false);
    assert_int_equal(c.requests, c.first_requests); /* none between the first step and the last */
    assert_int_equal(snug_history_epochs(h), 2);
    expect_ok(snug_history_value(h, "val_loss", 1, &loss, &err), &err);
    expect_ok(snug_history_value(h, "accuracy", 1, &accuracy, &err), &err);
    assert_true(loss == r.val_values[0] && accuracy == r.values[1]);
    expect_status(snug_history_value(h, "val_loss", 2, &value, &err), SNUG_E_INVALID, &err);
    expect_status(snug_history_value(h, "speed", 0, &value, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "'speed' was not measured");
    cbs[0].destroy(cbs[0].ctx);
    snug_model_destroy(m);
    blobs_end(&b);
}

static double halve(void *ctx, int epoch, double current) {
    (void)ctx;
    return epoch == 0 ? current : current / 2;
}

static void test_schedule_and_csv_follow_the_epochs(void **state) {
    snug_error err;
    blobs b;
    snug_callback cbs[2];
    sn_test_dir dir;
    char path[256], text[512] = "";
    blobs_begin(*state, &b);
    sn_test_dir_begin(&dir);
    snug_model *m = mlp(*state);
    expect_ok(snug_callback_schedule(*state, halve, NULL, &cbs[0], &err), &err);
    expect_ok(snug_callback_csv(*state, sn_test_path(&dir, "log.csv", path), &cbs[1], &err), &err);
    const snug_fit_options fit = {.x = b.fx,
                                  .y = b.fy,
                                  .epochs = 3,
                                  .validation_split = 0.5,
                                  .callbacks = cbs,
                                  .n_callbacks = 2};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_true(snug_model_learning_rate(m) == 0.02 / 4);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    assert_memory_equal(text, "epoch,loss,accuracy,val_loss,val_accuracy\n0,", 44);
    int n_lines = 0;
    for (const char *p = text; *p; p++)
        n_lines += *p == '\n';
    assert_int_equal(n_lines, 4);
    cbs[0].destroy(cbs[0].ctx);
    cbs[1].destroy(cbs[1].ctx);
    snug_model_destroy(m);
    sn_test_dir_end(&dir);
    blobs_end(&b);
}

static void test_best_weights_are_those_of_the_best_epoch(void **state) {
    snug_error err;
    blobs b;
    snug_callback cb;
    sn_test_dir dir;
    char path[256];
    blobs_begin(*state, &b);
    sn_test_dir_begin(&dir);
    snug_model *m = mlp(*state);
    expect_ok(snug_callback_best_weights(*state, "loss",
                                         sn_test_path(&dir, "best.safetensors", path), &cb, &err),
              &err);
    snug_fit_options fit = {.x = b.fx, .y = b.fy, .epochs = 2, .callbacks = &cb, .n_callbacks = 1};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    float best[MAX_WEIGHTS], bad[MAX_WEIGHTS];
    copy_weights(m, best);
    /* a rate that makes everything worse must not overwrite the file */
    expect_ok(snug_model_set_learning_rate(m, 10, &err), &err);
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    copy_weights(m, bad);
    expect_ok(snug_model_load_weights(m, path, &err), &err);
    assert_true(same_weights(m, best) && !same_weights(m, bad));
    cb.destroy(cb.ctx);
    snug_model_destroy(m);
    sn_test_dir_end(&dir);
    blobs_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_validation_split_takes_the_last_part),
        engine_test(test_step_loop_requests_no_memory),
        engine_test(test_converting_feed_requests_no_memory_in_the_loop),
        engine_test(test_callback_stops_after_its_step),
        engine_test(test_early_stopping_waits_for_its_patience),
        engine_test(test_the_rate_falls_on_a_plateau),
        cmocka_unit_test(test_metrics_know_their_direction),
        engine_test(test_history_keeps_every_epoch_of_the_newest_fit),
        engine_test(test_schedule_and_csv_follow_the_epochs),
        engine_test(test_best_weights_are_those_of_the_best_epoch),
    };
    return cmocka_run_group_tests_name("train_callbacks", tests, NULL, NULL);
}
