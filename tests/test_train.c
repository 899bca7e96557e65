/* test_train.c: training as a user sees it: a model learns, the same call gives the same bits,
 * remainders and validation count, interrupts and NaN leave whole steps, weights travel through
 * files, nothing is requested inside the step loop. */
#include "support/support.h"

#include "train/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N       70
#define DIM     4
#define CLASSES 3

/* Points around three centres, by a fixed little generator. */
typedef struct {
    float x[N][DIM];
    int32_t y[N];
    snug_feed *fx, *fy;
} blobs;

static void blobs_begin(snug_engine *e, blobs *b) {
    snug_error err;
    uint32_t s = 12345;
    for (int i = 0; i < N; i++) {
        b->y[i] = i % CLASSES;
        for (int k = 0; k < DIM; k++) {
            s = s * 1664525u + 1013904223u;
            b->x[i][k] = (float)((double)(s >> 8) / 16777216.0 - 0.5) + (b->y[i] == k ? 1.5f : 0);
        }
    }
    expect_ok(snug_feed_from_memory(e, &(snug_type){SNUG_F32, 2, {N, DIM}}, b->x, NULL, NULL,
                                    &b->fx, &err),
              &err);
    expect_ok(
        snug_feed_from_memory(e, &(snug_type){SNUG_I32, 1, {N}}, b->y, NULL, NULL, &b->fy, &err),
        &err);
}

static void blobs_end(blobs *b) {
    snug_feed_destroy(b->fx);
    snug_feed_destroy(b->fy);
}

static snug_status make_mlp(snug_engine *e, const char *optimizer, snug_model **out,
                            snug_error *err) {
    snug_model *m;
    SNUG_TRY(snug_model_create(e, "mlp", &(snug_type){SNUG_F32, 1, {DIM}}, &m, err));
    snug_status status = snug_model_add(m, "Dense", "units=8 activation=relu", err);
    if (status == SNUG_OK)
        status = snug_model_add(m, "Dense", "units=3 activation=softmax name=head", err);
    if (status == SNUG_OK)
        status = snug_model_compile(m,
                                    &(snug_compile){.optimizer = optimizer,
                                                    .loss = "sparse_categorical_crossentropy",
                                                    .metrics = "accuracy"},
                                    err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

static snug_model *mlp(snug_engine *e) {
    snug_error err;
    snug_model *m;
    expect_ok(make_mlp(e, "adam:lr=0.02", &m, &err), &err);
    return m;
}

/* All weights, one behind the other. */
static size_t copy_weights(snug_model *m, float *out) {
    snug_error err;
    size_t n = 0;
    for (size_t i = 0; i < snug_model_n_weights(m); i++) {
        snug_view v;
        expect_ok(snug_model_weight(m, i, NULL, &v, &err), &err);
        memcpy(out + n, v.data, v.bytes);
        n += v.bytes / sizeof *out;
    }
    return n;
}
#define MAX_WEIGHTS 256

static bool same_weights(snug_model *m, const float *before) {
    float now[MAX_WEIGHTS];
    const size_t n = copy_weights(m, now);
    return memcmp(now, before, n * sizeof *now) == 0;
}

/* --- learning --------------------------------------------------------------------------------- */
static void test_mlp_learns_blobs(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .epochs = 30, .batch = 16, .shuffle = 1, .seed = 1};
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_int_equal(r.epochs, 30);
    assert_int_equal(r.steps, 30 * 5); /* 70 rows: four batches of 16 and one of 6 */
    assert_int_equal(r.n_values, 2);
    assert_true(r.values[0] < 0.2);
    assert_true(r.values[1] > 0.95);
    double values[2];
    int n_values;
    expect_ok(snug_evaluate(m, &(snug_run_options){.x = b.fx, .y = b.fy, .batch = 7}, values,
                            &n_values, &err),
              &err);
    assert_int_equal(n_values, 2);
    assert_true(values[1] > 0.95);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void fit_once(snug_engine *e, uint64_t seed, float *weights, double *loss) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    blobs_begin(e, &b);
    snug_model *m = mlp(e);
    const snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .epochs = 3, .batch = 16, .shuffle = 1, .seed = seed};
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    copy_weights(m, weights);
    *loss = r.values[0];
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_same_seed_gives_same_bits(void **state) {
    float a[MAX_WEIGHTS] = {0}, b[MAX_WEIGHTS] = {0}, c[MAX_WEIGHTS] = {0};
    double loss_a, loss_b, loss_c;
    fit_once(*state, 5, a, &loss_a);
    fit_once(*state, 5, b, &loss_b);
    fit_once(*state, 6, c, &loss_c);
    assert_memory_equal(a, b, sizeof a);
    assert_true(loss_a == loss_b);
    assert_true(memcmp(a, c, sizeof a) != 0);
}

/* The loss of an epoch without learning is that of evaluation, whatever the batches are. */
static void test_means_are_weighted_by_batch_size(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    blobs_begin(*state, &b);
    snug_model *m;
    expect_ok(make_mlp(*state, "sgd:lr=0", &m, &err), &err);
    expect_ok(snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = 16}, &r, &err), &err);
    double whole[2], parts[2];
    expect_ok(snug_evaluate(m, &(snug_run_options){.x = b.fx, .y = b.fy, .batch = 1000}, whole,
                            NULL, &err),
              &err);
    expect_ok(
        snug_evaluate(m, &(snug_run_options){.x = b.fx, .y = b.fy, .batch = 3}, parts, NULL, &err),
        &err);
    for (int i = 0; i < 2; i++) {
        assert_true(fabs(r.values[i] - whole[i]) < 1e-6);
        assert_true(fabs(parts[i] - whole[i]) < 1e-6);
    }
    snug_model_destroy(m);
    blobs_end(&b);
}

/* --- progress, validation, callbacks ---------------------------------------------------------- */
typedef struct {
    int begins, steps, ends, validations, stop_after;
    double last_value;
    int64_t begin_requests;           /* of memory, before the first step, */
    int64_t first_requests, requests; /* after it and after the last */
    snug_engine *engine;
} counter;

static snug_status count_begin(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    counter *c = ctx;
    assert_int_equal(p->epoch, c->begins);
    if (c->begins++ == 0)
        c->begin_requests = sn_fault_memory_requests(c->engine);
    return SNUG_OK;
}

static snug_status count_step(void *ctx, const snug_progress *p, snug_error *err) {
    counter *c = ctx;
    assert_true(p->step >= 1 && p->step <= p->n_steps);
    c->requests = sn_fault_memory_requests(c->engine);
    if (c->steps++ == 0)
        c->first_requests = c->requests;
    c->last_value = p->values[0];
    return c->steps == c->stop_after ? sn_fail(err, SNUG_E_INTERRUPTED, "enough") : SNUG_OK;
}

static snug_status count_end(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    counter *c = ctx;
    c->ends++;
    c->validations += p->has_validation;
    return SNUG_OK;
}

static snug_callback counting(counter *c) {
    return (snug_callback){.ctx = c,
                           .on_epoch_begin = count_begin,
                           .on_step_end = count_step,
                           .on_epoch_end = count_end};
}

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

/* --- stopping in the middle ------------------------------------------------------------------- */
static int count_down(void *ctx) {
    return --*(int *)ctx < 0;
}

static void test_interrupt_leaves_weights_of_a_whole_step(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    float after[6][MAX_WEIGHTS];
    blobs_begin(*state, &b);
    for (int steps = 1; steps <= 5; steps++) { /* weights after 1..5 whole steps */
        counter c = {.engine = *state, .stop_after = steps};
        const snug_callback cb = counting(&c);
        snug_model *m = mlp(*state);
        const snug_fit_options fit = {
            .x = b.fx, .y = b.fy, .epochs = 9, .batch = 16, .callbacks = &cb, .n_callbacks = 1};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        copy_weights(m, after[steps]);
        snug_model_destroy(m);
    }
    snug_model *fresh = mlp(*state);
    copy_weights(fresh, after[0]);
    snug_model_destroy(fresh);
    for (int asks = 0; asks < 60; asks += 7) {
        int left = asks;
        snug_model *m = mlp(*state);
        const snug_fit_options fit = {.x = b.fx,
                                      .y = b.fy,
                                      .epochs = 1,
                                      .batch = 16,
                                      .interrupted = count_down,
                                      .interrupt_ctx = &left};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        assert_true(r.steps >= 0 && r.steps <= 5);
        assert_true(same_weights(m, after[r.steps]));
        assert_true(r.stopped || r.steps == 5);
        snug_model_destroy(m);
    }
    blobs_end(&b);
}

/* Wherever Ctrl-C comes, also inside validation: fit stops cleanly, and what watches the validation
 * is asked after whole epochs only. */
static void test_interrupt_inside_validation_ends_no_epoch(void **state) {
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    int n_cut = 0;
    for (int asks = 0; asks < 200; asks++) {
        int left = asks;
        snug_fit_result r;
        counter c = {.engine = *state};
        snug_callback cbs[2] = {counting(&c)};
        expect_ok(snug_callback_early_stopping(*state, "val_loss", 9, 0, &cbs[1], &err), &err);
        snug_model *m = mlp(*state);
        const snug_fit_options fit = {.x = b.fx,
                                      .y = b.fy,
                                      .batch = 16,
                                      .validation_split = 0.3,
                                      .interrupted = count_down,
                                      .interrupt_ctx = &left,
                                      .callbacks = cbs,
                                      .n_callbacks = 2};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        assert_int_equal(r.epochs, c.ends);
        assert_int_equal(c.ends, c.validations);
        n_cut += r.steps == 4 && r.epochs == 0;
        cbs[1].destroy(cbs[1].ctx);
        snug_model_destroy(m);
        if (!r.stopped)
            break;
        assert_true(asks < 199); /* some number of questions is enough for the whole epoch */
    }
    assert_true(n_cut > 2);
    blobs_end(&b);
}

static void test_nan_stops_before_the_first_write_and_is_found(void **state) {
    snug_error err;
    blobs b;
    char text[300];
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    expect_status(snug_model_find_nan(m, text, sizeof text, &err), SNUG_E_INVALID, &err);
    b.x[40][2] = NAN;
    float before[MAX_WEIGHTS];
    copy_weights(m, before);
    snug_fit_options fit = {.x = b.fx, .y = b.fy, .batch = N};
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_NUMERIC, &err);
    expect_text(err.text, "epoch 1, step 1 of 1");
    assert_true(same_weights(m, before));
    expect_ok(snug_model_find_nan(m, text, sizeof text, &err), &err);
    expect_text(text, "row 40 of x has nan");
    /* good data, a weight that overflows in the second layer */
    b.x[40][2] = 0;
    snug_view kernel;
    expect_ok(snug_model_weight(m, 2, NULL, &kernel, &err), &err);
    for (size_t i = 0; i < kernel.bytes / sizeof(float); i++)
        ((float *)kernel.data)[i] = 3e38f;
    copy_weights(m, before);
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_NUMERIC, &err);
    assert_true(same_weights(m, before));
    expect_ok(snug_model_find_nan(m, text, sizeof text, &err), &err);
    expect_text(text, "layer head, operator matmul");
    /* and a weight that is bad already */
    ((float *)kernel.data)[4] = INFINITY;
    expect_ok(snug_model_find_nan(m, text, sizeof text, &err), &err);
    expect_text(text, "head/kernel has inf at [1,1]");
    snug_model_destroy(m);
    blobs_end(&b);
}

/* --- wrong data ------------------------------------------------------------------------------- */
static void expect_refused(snug_model *m, snug_feed *x, snug_feed *y, snug_status status,
                           const char *piece) {
    snug_error err;
    expect_status(
        snug_fit(m, &(snug_fit_options){.x = x, .y = y, .batch = 16, .shuffle = 1}, NULL, &err),
        status, &err);
    expect_text(err.text, piece);
}

static void test_data_that_do_not_fit_are_refused_with_numbers(void **state) {
    snug_error err;
    blobs b;
    snug_feed *wide, *few, *reals, *ones;
    static float zeros[N * 5];
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_F32, 2, {N, 5}}, zeros, NULL, NULL,
                                    &wide, &err),
              &err);
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_I32, 1, {N - 1}}, b.y, NULL, NULL,
                                    &few, &err),
              &err);
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_F32, 1, {N}}, zeros, NULL, NULL,
                                    &reals, &err),
              &err);
    expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_I32, 2, {N, 1}}, b.y, NULL, NULL,
                                    &ones, &err),
              &err);
    expect_refused(m, wide, b.fy, SNUG_E_SHAPE, "x is f32[70,5], but the model wants f32[?,4]");
    expect_refused(m, b.fx, few, SNUG_E_DATA, "x has 70 rows and y has 69");
    expect_refused(m, b.fx, reals, SNUG_E_DATA,
                   "y is f32[70], but the model wants whole numbers (i32[?])");
    expect_refused(m, b.fx, wide, SNUG_E_SHAPE, "y is f32[70,5], but the model wants i32[?]");
    expect_ok(snug_fit(m, &(snug_fit_options){.x = b.fx, .y = ones}, NULL, &err),
              &err); /* [n,1] labels are [n] */
    float before[MAX_WEIGHTS];
    copy_weights(m, before);
    for (int i = 0; i < N; i++)
        b.y[i] = i == 61 ? 3 : b.y[i];
    const snug_fit_options whole = {.x = b.fx, .y = b.fy, .batch = N, .shuffle = 1};
    expect_status(snug_fit(m, &whole, NULL, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "row 61 of y has the label 3; the model has 3 classes, 0 to 2");
    assert_true(same_weights(m, before));
    expect_status(
        snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy, .validation_split = 1.5}, NULL, &err),
        SNUG_E_INVALID, &err);
    snug_model_destroy(m);
    snug_feed_destroy(wide);
    snug_feed_destroy(few);
    snug_feed_destroy(reals);
    snug_feed_destroy(ones);
    blobs_end(&b);
}

static void test_model_without_layers_or_weights_is_refused(void **state) {
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    snug_model *m;
    expect_ok(snug_model_create(*state, NULL, &(snug_type){SNUG_F32, 1, {DIM}}, &m, &err), &err);
    expect_refused(m, b.fx, b.fx, SNUG_E_INVALID, "has no layers");
    expect_ok(snug_model_add(m, "ReLU", "", &err), &err);
    expect_refused(m, b.fx, b.fx, SNUG_E_INVALID, "nothing to train");
    snug_model_destroy(m);
    blobs_end(&b);
}

/* --- predict, plan, files --------------------------------------------------------------------- */
typedef struct {
    float y[N][CLASSES];
    int64_t next;
} collected;

static snug_status collect(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    (void)err;
    collected *c = ctx;
    assert_int_equal(first_row, c->next);
    memcpy(c->y[first_row], view->data, view->bytes);
    c->next += view->type.dims[0];
    return SNUG_OK;
}

static void test_predict_gives_all_rows_in_order(void **state) {
    snug_error err;
    blobs b;
    collected whole = {.next = 0}, parts = {.next = 0};
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    expect_ok(snug_predict(m, &(snug_run_options){.x = b.fx, .batch = 500}, collect, &whole, &err),
              &err);
    expect_ok(snug_predict(m, &(snug_run_options){.x = b.fx, .batch = 9}, collect, &parts, &err),
              &err);
    assert_int_equal(whole.next, N);
    assert_int_equal(parts.next, N);
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int k = 0; k < CLASSES; k++) {
            assert_true(fabsf(whole.y[i][k] - parts.y[i][k]) < 1e-6f);
            sum += whole.y[i][k];
        }
        assert_true(fabsf(sum - 1) < 1e-5f);
    }
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_weights_travel_through_files(void **state) {
    snug_error err;
    sn_test_dir dir;
    char path[256];
    float a[MAX_WEIGHTS];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "w.safetensors", path);
    snug_model *m = mlp(*state), *other = mlp(*state), *wrong;
    expect_ok(snug_model_set_seed(m, 9, &err), &err);
    copy_weights(m, a);
    expect_status(snug_model_set_seed(m, 10, &err), SNUG_E_INVALID, &err);
    expect_ok(snug_model_save_weights(m, path, &err), &err);
    assert_false(same_weights(other, a));
    expect_ok(snug_model_load_weights(other, path, &err), &err);
    assert_true(same_weights(other, a));
    expect_ok(snug_model_create(*state, NULL, &(snug_type){SNUG_F32, 1, {DIM}}, &wrong, &err),
              &err);
    expect_ok(snug_model_add(wrong, "Dense", "units=9", &err), &err);
    expect_status(snug_model_load_weights(wrong, path, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "dense/kernel is f32[4,8]");
    snug_model_destroy(m);
    snug_model_destroy(other);
    snug_model_destroy(wrong);
    sn_test_dir_end(&dir);
}

static void test_plan_says_what_fit_uses(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r;
    snug_model_plan_info info;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    expect_ok(snug_model_plan(m, &(snug_plan_request){.batch = 16, .train = 1}, &info, &err), &err);
    assert_int_equal(snug_engine_bytes(*state) > info.graph_bytes, 1);
    assert_int_equal(info.weights_bytes, (4 * 8 + 8 + 8 * 3 + 3) * 4);
    assert_int_equal(info.optimizer_bytes, 2 * info.weights_bytes);
    assert_true(info.process_bytes > 1 << 20 && info.reserve_bytes > 0);
    assert_true(info.fits && info.budget_bytes == 0 && info.slices == 1);
    assert_true(info.arena_bytes >= info.lower_bound_bytes && info.lower_bound_bytes > 0);
    assert_true(info.peak_bytes > info.process_bytes + info.arena_bytes);
    assert_true(info.n_nodes > 5 && info.n_steps > 5 && info.flops > 0);
    assert_true(info.peak_operator[0] != 0);
    expect_ok(snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = 16}, &r, &err), &err);
    assert_int_equal(r.arena_bytes, info.arena_bytes);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_compile_starts_the_optimizer_anew(void **state) {
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {.x = b.fx, .y = b.fy, .batch = 35};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    const size_t with_adam = sn_state_count(m->state);
    assert_int_equal(with_adam, 3 * 4);
    float before[MAX_WEIGHTS];
    copy_weights(m, before);
    expect_status(snug_model_compile(m, &(snug_compile){.optimizer = "sgd:speed=3"}, &err),
                  SNUG_E_INVALID, &err);
    assert_string_equal(snug_model_optimizer(m), "adam:learning_rate=0.02");
    expect_ok(snug_model_compile(m, &(snug_compile){.optimizer = "sgd:lr=0.1,momentum=0.9"}, &err),
              &err);
    assert_string_equal(snug_model_optimizer(m), "sgd:learning_rate=0.1,momentum=0.9");
    assert_true(same_weights(m, before));
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_int_equal(sn_state_count(m->state), 2 * 4);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_recompiling_does_not_grow_the_model(void **state) {
    snug_error err;
    blobs b;
    size_t held = 0;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    for (int i = 0; i < 40; i++) {
        expect_ok(snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = 35}, NULL, &err),
                  &err);
        expect_ok(snug_model_compile(m, NULL, &err), &err);
        held = i == 0 ? snug_engine_bytes(*state) : held;
        assert_int_equal(snug_engine_bytes(*state), held);
    }
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_layer_added_after_training_keeps_the_weights(void **state) {
    snug_error err;
    blobs b;
    const char *name;
    snug_view view;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {.x = b.fx, .y = b.fy, .batch = 35};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    float before[MAX_WEIGHTS];
    const size_t n = copy_weights(m, before);
    expect_status(snug_model_add(m, "Dense", "units=0", &err), SNUG_E_INVALID, &err);
    assert_int_equal(m->iterations, 2);
    assert_int_equal(sn_state_count(m->state), 12);
    expect_ok(snug_model_add(m, "Dense", "units=3 activation=softmax trainable=false", &err), &err);
    assert_int_equal(m->iterations, 0);
    assert_int_equal(snug_model_n_weights(m), 6);
    float now[MAX_WEIGHTS];
    copy_weights(m, now);
    assert_memory_equal(now, before, n * sizeof *now);
    expect_ok(snug_model_weight(m, 4, &name, &view, &err), &err);
    assert_string_equal(name, "dense_1/kernel");
    float frozen[9];
    memcpy(frozen, view.data, sizeof frozen);
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_memory_equal(frozen, view.data, sizeof frozen);
    assert_false(same_weights(m, now));
    snug_layer_info info;
    snug_model_layer(m, 2, &info);
    assert_int_equal(info.n_params, 12);
    assert_int_equal(info.n_trainable, 0);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_torn_model_goes_on_only_after_loading(void **state) {
    snug_error err;
    blobs b;
    sn_test_dir dir;
    char path[256];
    blobs_begin(*state, &b);
    sn_test_dir_begin(&dir);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {.x = b.fx, .y = b.fy};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    const char *file = sn_test_path(&dir, "w.safetensors", path);
    expect_ok(snug_model_save_weights(m, file, &err), &err);
    sn_state_tear(m->state);
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_TORN, &err);
    expect_text(err.text, "load weights");
    expect_status(snug_model_save_weights(m, file, &err), SNUG_E_TORN, &err);
    expect_ok(snug_model_load_weights(m, file, &err), &err);
    assert_int_equal(m->iterations, 0);
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    snug_model_destroy(m);
    sn_test_dir_end(&dir);
    blobs_end(&b);
}

/* Each call of the I/O table fails in turn: the weights are those from before, those of the file,
 * or the model says that it is torn, and a load that works makes it whole. */
static void test_load_that_fails_half_way_tears_the_model(void **state) {
    snug_error err;
    blobs b;
    sn_test_dir dir;
    char path[256];
    float filed[MAX_WEIGHTS], before[MAX_WEIGHTS];
    int n_torn = 0, n_kept = 0;
    blobs_begin(*state, &b);
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "w.safetensors", path);
    snug_model *m = mlp(*state);
    copy_weights(m, filed);
    expect_ok(snug_model_save_weights(m, path, &err), &err);
    const snug_fit_options fit = {.x = b.fx, .y = b.fy};
    for (int64_t n = 0;; n++) {
        expect_ok(snug_fit(m, &fit, NULL, &err), &err);
        copy_weights(m, before);
        sn_fault_io(*state, n, SN_FAULT_EIO, false);
        const snug_status status = snug_model_load_weights(m, path, &err);
        const bool fired = sn_fault_fired(*state), torn = sn_state_torn(m->state);
        sn_fault_io(*state, -1, SN_FAULT_EIO, false);
        if (status == SNUG_OK)
            assert_true(same_weights(m, filed));
        else if (!torn)
            assert_true(same_weights(m, before));
        if (status == SNUG_OK && !fired)
            break;
        n_torn += torn;
        n_kept += status != SNUG_OK && !torn;
        if (torn) {
            expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_TORN, &err);
            expect_status(snug_model_save_weights(m, path, &err), SNUG_E_TORN, &err);
            expect_ok(snug_model_load_weights(m, path, &err), &err);
        }
    }
    assert_true(n_torn >= 4 && n_kept >= 2); /* one read for each of the four weights */
    snug_model_destroy(m);
    sn_test_dir_end(&dir);
    blobs_end(&b);
}

static size_t held_by(const snug_engine *e, const char *category) {
    snug_memory_row rows[64];
    const size_t n = snug_engine_memory(e, rows, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (!rows[i].owner[0] && strcmp(rows[i].category, category) == 0)
            return rows[i].bytes;
    return 0;
}

static void test_prediction_pays_for_no_optimizer(void **state) {
    snug_error err;
    blobs b;
    snug_model_plan_info info;
    collected rows = {.next = 0};
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    expect_ok(snug_model_plan(m, &(snug_plan_request){.batch = 16, .train = 1}, &info, &err), &err);
    assert_true(info.optimizer_bytes > 0); /* Adam's slots are known, */
    expect_ok(snug_predict(m, &(snug_run_options){.x = b.fx}, collect, &rows, &err), &err);
    assert_int_equal(held_by(*state, "optimizer"), 0); /* but nobody has needed them */
    assert_true(held_by(*state, "weights") > 0);
    expect_ok(snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy}, NULL, &err), &err);
    assert_true(held_by(*state, "optimizer") >= info.optimizer_bytes);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_many_batch_sizes_keep_the_cache_small(void **state) {
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    for (int batch = 1; batch <= 24; batch++) {
        double values[2];
        expect_ok(snug_evaluate(m, &(snug_run_options){.x = b.fx, .y = b.fy, .batch = batch},
                                values, NULL, &err),
                  &err);
        assert_true(m->n_steps <= SN_MODEL_MAX_STEPS);
    }
    snug_model_destroy(m);
    blobs_end(&b);
}

/* Runs the model, tries to change it and is refused, all in the middle of a fit. */
typedef struct {
    blobs *data;
    int64_t batch; /* another one each time, so that the cache of plans overflows */
    double last[2];
} meddler;

static snug_status meddle(void *ctx, const snug_progress *p, snug_error *err) {
    meddler *k = ctx;
    snug_error own;
    k->batch++;
    expect_status(snug_model_compile(p->model, NULL, &own), SNUG_E_INVALID, &own);
    expect_status(snug_model_add(p->model, "ReLU", "", &own), SNUG_E_INVALID, &own);
    expect_status(snug_model_set_dtype(p->model, SNUG_F64, &own), SNUG_E_INVALID, &own);
    expect_text(own.text, "while the model runs");
    snug_model_plan_info info;
    SNUG_TRY(snug_model_plan(p->model, &(snug_plan_request){.batch = k->batch}, &info, err));
    return snug_evaluate(p->model,
                         &(snug_run_options){.x = k->data->fx, .y = k->data->fy, .batch = k->batch},
                         k->last, NULL, err);
}

static void test_callbacks_may_run_the_model_but_not_change_it(void **state) {
    snug_error err;
    blobs b;
    float alone[MAX_WEIGHTS] = {0}, watched[MAX_WEIGHTS] = {0};
    blobs_begin(*state, &b);
    meddler k = {.data = &b};
    const snug_callback cb = {.ctx = &k, .on_step_end = meddle};
    for (int with = 0; with < 2; with++) {
        snug_model *m = mlp(*state);
        const snug_fit_options fit = {.x = b.fx,
                                      .y = b.fy,
                                      .epochs = 4,
                                      .batch = 16,
                                      .validation_split = 0.3,
                                      .callbacks = &cb,
                                      .n_callbacks = (size_t)with};
        expect_ok(snug_fit(m, &fit, NULL, &err), &err);
        copy_weights(m, with ? watched : alone);
        expect_ok(snug_model_add(m, "ReLU", "", &err), &err); /* now it may change */
        snug_model_destroy(m);
    }
    assert_memory_equal(alone, watched, sizeof alone);
    assert_int_equal(k.batch, 16);
    blobs_end(&b);
}

/* A run inside a callback that does not fit the budget costs the fit around it nothing. */
static snug_status too_large(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    snug_error own;
    double values[2];
    blobs *b = ctx;
    expect_status(snug_evaluate(p->model, &(snug_run_options){.x = b->fx, .y = b->fy, .batch = 70},
                                values, NULL, &own),
                  SNUG_E_BUDGET, &own);
    return SNUG_OK;
}

static void test_failed_run_inside_a_callback_leaves_the_fit_running(void **state) {
    (void)state;
    snug_error err;
    snug_fit_result r = {.steps = 0};
    blobs b;
    const snug_callback cb = {.ctx = &b, .on_step_end = too_large};
    snug_fit_options fit = {.x = NULL, .epochs = 2, .batch = 2};
    snug_engine *roomy = sn_test_engine(0);
    blobs_begin(roomy, &b);
    snug_model *m = mlp(roomy);
    fit.x = b.fx;
    fit.y = b.fy;
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    const size_t enough = snug_engine_peak_bytes(roomy);
    snug_model_destroy(m);
    blobs_end(&b);
    sn_test_engine_end(roomy);

    snug_engine *tight = sn_test_engine(enough);
    blobs_begin(tight, &b);
    m = mlp(tight);
    fit.x = b.fx;
    fit.y = b.fy;
    fit.callbacks = &cb;
    fit.n_callbacks = 1;
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_int_equal(r.steps, 70);
    snug_model_destroy(m);
    blobs_end(&b);
    sn_test_engine_end(tight);
}

static void test_metrics_are_split_outside_their_settings(void **state) {
    snug_error err;
    snug_model *m = mlp(*state);
    const snug_compile compile = {
        .metrics = "sparse_top_k_categorical_accuracy:k=2, accuracy,"
                   "sparse_categorical_crossentropy:from_logits=false,from_logits=true,acc"};
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    assert_int_equal(snug_model_n_metrics(m), 4);
    assert_string_equal(snug_model_metric_name(m, 0), "sparse_top_k_categorical_accuracy");
    assert_true(m->compiled.metrics[0].k == 2);
    assert_string_equal(snug_model_metric_name(m, 1), "accuracy");
    assert_string_equal(m->compiled.metrics[2].text,
                        "sparse_categorical_crossentropy:from_logits=false,from_logits=true");
    assert_true(m->compiled.metrics[2].loss.from_logits);
    expect_ok(sn_compiled_resolve(m->network, &m->compiled, &err), &err); /* again: settings stay */
    assert_true(m->compiled.metrics[0].k == 2);
    snug_model_destroy(m);
}

static void test_layers_describe_themselves(void **state) {
    snug_error err;
    snug_layer_info info;
    snug_type target;
    snug_model *m = mlp(*state);
    assert_string_equal(snug_model_name(m), "mlp");
    assert_int_equal(snug_model_n_layers(m), 2);
    snug_model_layer(m, 1, &info);
    assert_string_equal(info.name, "head");
    assert_string_equal(info.type, "Dense");
    assert_int_equal(info.n_params, 27);
    assert_int_equal(info.n_trainable, 27);
    snug_model_target(m, &target);
    assert_int_equal(target.dtype, SNUG_I32);
    assert_int_equal(target.rank, 1);
    assert_int_equal(snug_model_n_metrics(m), 1);
    assert_string_equal(snug_model_metric_name(m, 0), "accuracy");
    assert_string_equal(snug_model_loss(m), "sparse_categorical_crossentropy");
    expect_status(snug_model_add(m, "Dense", "units=3 name=head", &err), SNUG_E_INVALID, &err);
    assert_int_equal(snug_model_n_layers(m), 2);
    snug_model_destroy(m);
}

/* --- faults ----------------------------------------------------------------------------------- */
static snug_status ignore_rows(void *ctx, int64_t first_row, const snug_view *view,
                               snug_error *err) {
    (void)ctx;
    (void)first_row;
    (void)view;
    (void)err;
    return SNUG_OK;
}

/* A whole life: make, fit, predict, save and load. ctx: the folder for files, or NULL. */
static snug_status live(snug_engine *e, void *ctx, snug_error *err) {
    static const float x[6][DIM] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0},
                                    {1, 1, 0, 0}, {0, 1, 1, 0}, {1, 0, 1, 0}};
    static const int32_t y[6] = {0, 1, 2, 0, 1, 2};
    snug_feed *fx = NULL, *fy = NULL;
    snug_model *m = NULL;
    char path[256];
    snug_status status =
        snug_feed_from_memory(e, &(snug_type){SNUG_F32, 2, {6, DIM}}, x, NULL, NULL, &fx, err);
    if (status == SNUG_OK)
        status = snug_feed_from_memory(e, &(snug_type){SNUG_I32, 1, {6}}, y, NULL, NULL, &fy, err);
    if (status == SNUG_OK)
        status = make_mlp(e, "sgd:lr=0.1,momentum=0.9", &m, err);
    if (status == SNUG_OK)
        status =
            snug_fit(m, &(snug_fit_options){.x = fx, .y = fy, .batch = 4, .shuffle = 1}, NULL, err);
    if (status == SNUG_OK)
        status = snug_predict(m, &(snug_run_options){.x = fx, .batch = 4}, ignore_rows, NULL, err);
    if (status == SNUG_OK && ctx)
        status = snug_model_save_weights(m, sn_test_path(ctx, "w.safetensors", path), err);
    if (status == SNUG_OK && ctx)
        status = snug_model_load_weights(m, sn_test_path(ctx, "w.safetensors", path), err);
    snug_model_destroy(m);
    snug_feed_destroy(fx);
    snug_feed_destroy(fy);
    return status;
}

static void test_training_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(live, NULL);
}

static void test_files_survive_any_failed_call(void **state) {
    (void)state;
    sn_test_dir dir;
    sn_test_dir_begin(&dir);
    sn_fault_sweep_io(live, &dir);
    sn_test_dir_end(&dir);
}

/* The unlimited run's weights, or SNUG_E_BUDGET before the first step; never more than the budget.
 */
static void test_any_budget_is_kept_or_refused_before_training(void **state) {
    (void)state;
    float wanted[MAX_WEIGHTS] = {0}, got[MAX_WEIGHTS] = {0};
    snug_error err;
    int n_ran = 0, n_refused = 0;
    snug_engine *free_engine = sn_test_engine(0);
    double loss;
    fit_once(free_engine, 3, wanted, &loss);
    const size_t peak = snug_engine_peak_bytes(free_engine);
    sn_test_engine_end(free_engine);
    for (size_t budget = peak / 8; budget <= peak + peak / 8; budget += peak / 8) {
        snug_engine *e = sn_test_engine(budget);
        blobs b;
        counter c = {.engine = e};
        const snug_callback cb = counting(&c);
        snug_model *m = NULL;
        blobs_begin(e, &b);
        const snug_fit_options fit = {.x = b.fx,
                                      .y = b.fy,
                                      .epochs = 3,
                                      .batch = 16,
                                      .shuffle = 1,
                                      .seed = 3,
                                      .callbacks = &cb,
                                      .n_callbacks = 1};
        snug_status status = make_mlp(e, "adam:lr=0.02", &m, &err);
        if (status == SNUG_OK)
            status = snug_fit(m, &fit, NULL, &err);
        if (status == SNUG_OK) {
            copy_weights(m, got);
            assert_memory_equal(got, wanted, sizeof got);
            n_ran++;
        } else {
            expect_status(status, SNUG_E_BUDGET, &err);
            assert_int_equal(c.steps, 0);
            n_refused++;
        }
        assert_true(snug_engine_peak_bytes(e) <= budget);
        snug_model_destroy(m);
        blobs_end(&b);
        sn_test_engine_end(e);
    }
    assert_true(n_ran > 0 && n_refused > 0);
}

/* Every kind of layer that has variables, trained; the losses of its steps' epochs. */
static void fit_with_policy(snug_engine *e, snug_dtype variable, snug_dtype compute,
                            double *losses) {
    static const char *const layers[][2] = {
        {"Reshape", "target_shape=2,2,1"},
        {"Conv2D", "filters=4 kernel_size=2 padding=same activation=relu"},
        {"BatchNormalization", ""},
        {"MaxPooling2D", ""},
        {"Flatten", ""},
        {"LayerNormalization", ""},
        {"Dense", "units=3 activation=softmax"},
    };
    snug_error err;
    blobs b;
    snug_model *m;
    snug_view view;
    blobs_begin(e, &b);
    expect_ok(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {DIM}}, &m, &err), &err);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        expect_ok(snug_model_add(m, layers[i][0], layers[i][1], &err), &err);
    const snug_compile compile = {.optimizer = "adam:lr=0.02",
                                  .loss = "sparse_categorical_crossentropy",
                                  .metrics = "accuracy"};
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    sn_network_set_policy(m->network, variable, compute);
    for (int i = 0; i < 4; i++) {
        snug_fit_result r;
        const snug_fit_options fit = {.x = b.fx, .y = b.fy, .batch = 16, .validation_split = 0.2};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        losses[i] = r.values[0];
    }
    for (uint32_t i = 0; i < sn_state_count(m->state); i++) {
        expect_ok(sn_state_view(m->state, i, &view, &err), &err);
        assert_int_equal(view.type.dtype, variable);
    }
    assert_int_equal(snug_model_output(m)->dtype, compute);
    collected rows = {.next = 0};
    if (compute == SNUG_F32)
        expect_ok(snug_predict(m, &(snug_run_options){.x = b.fx}, collect, &rows, &err), &err);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_variables_may_have_another_dtype_than_computation(void **state) {
    double plain[4], wide[4], mixed[4];
    fit_with_policy(*state, SNUG_F32, SNUG_F32, plain);
    fit_with_policy(*state, SNUG_F64, SNUG_F64, wide);
    for (int i = 0; i < 2; i++) {
        fit_with_policy(*state, i ? SNUG_F64 : SNUG_F32, i ? SNUG_F32 : SNUG_F64, mixed);
        assert_true(mixed[3] < mixed[0]);
        for (int k = 0; k < 4; k++)
            assert_true(fabs(mixed[k] - wide[k]) < 1e-4);         /* it is the same training, */
        assert_true(mixed[3] != wide[3] && mixed[3] != plain[3]); /* rounded elsewhere */
    }
}

/* Without learning the loss of the same rows changes only by what dropout removes. */
static void test_dropout_draws_anew_in_each_step_and_repeats_by_seed(void **state) {
    snug_error err;
    blobs b;
    snug_model *m;
    double losses[3];
    blobs_begin(*state, &b);
    expect_ok(snug_model_create(*state, NULL, &(snug_type){SNUG_F32, 1, {DIM}}, &m, &err), &err);
    expect_ok(snug_model_add(m, "Dropout", "rate=0.5", &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=3 activation=softmax", &err), &err);
    const snug_compile compile = {
        .optimizer = "sgd:lr=0", .loss = "sparse_categorical_crossentropy", .metrics = NULL};
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    for (int i = 0; i < 3; i++) {
        snug_fit_result r;
        const snug_fit_options fit = {
            .x = b.fx, .y = b.fy, .batch = N, .epochs = i == 0 ? 2 : 1, .seed = 4};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        losses[i] = r.values[0];
    }
    assert_true(losses[1] == losses[2]);
    assert_true(losses[0] != losses[1]); /* its second step has other keys */
    snug_model_destroy(m);
    blobs_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_mlp_learns_blobs),
        engine_test(test_same_seed_gives_same_bits),
        engine_test(test_means_are_weighted_by_batch_size),
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
        engine_test(test_interrupt_leaves_weights_of_a_whole_step),
        engine_test(test_interrupt_inside_validation_ends_no_epoch),
        engine_test(test_nan_stops_before_the_first_write_and_is_found),
        engine_test(test_data_that_do_not_fit_are_refused_with_numbers),
        engine_test(test_model_without_layers_or_weights_is_refused),
        engine_test(test_predict_gives_all_rows_in_order),
        engine_test(test_weights_travel_through_files),
        engine_test(test_plan_says_what_fit_uses),
        engine_test(test_compile_starts_the_optimizer_anew),
        engine_test(test_recompiling_does_not_grow_the_model),
        engine_test(test_layer_added_after_training_keeps_the_weights),
        engine_test(test_torn_model_goes_on_only_after_loading),
        engine_test(test_load_that_fails_half_way_tears_the_model),
        engine_test(test_prediction_pays_for_no_optimizer),
        engine_test(test_many_batch_sizes_keep_the_cache_small),
        engine_test(test_callbacks_may_run_the_model_but_not_change_it),
        engine_test(test_failed_run_inside_a_callback_leaves_the_fit_running),
        engine_test(test_metrics_are_split_outside_their_settings),
        engine_test(test_layers_describe_themselves),
        engine_test(test_any_budget_is_kept_or_refused_before_training),
        engine_test(test_variables_may_have_another_dtype_than_computation),
        engine_test(test_dropout_draws_anew_in_each_step_and_repeats_by_seed),
        engine_test(test_training_survives_any_failed_request),
        engine_test(test_files_survive_any_failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
