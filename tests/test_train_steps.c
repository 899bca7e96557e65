/* test_train_steps.c: what optimizers do over the steps of one fit: moving averages of weights,
 * accumulated gradients, schedules. The model is y = w x with x = 1 and y = 0, so that a step of
 * SGD is w -= rate * 2 w, and all can be followed by hand; single steps are Keras'
 * (test_golden). */
#include "support/support.h"

#include "train/model.h"

#include <math.h>

enum { ROWS = 7 };

typedef struct {
    snug_engine *engine;
    snug_model *model;
    snug_feed *x, *y;
} desk;

static void begin(desk *d, const char *optimizer) {
    static double ones[ROWS] = {1, 1, 1, 1, 1, 1, 1}, zeros[ROWS];
    const snug_type one = {.dtype = SNUG_F64, .rank = 1, .dims = {1}};
    const snug_type rows = {.dtype = SNUG_F64, .rank = 2, .dims = {ROWS, 1}};
    const snug_compile c = {.optimizer = optimizer, .loss = "mse", .metrics = NULL};
    snug_error err;
    expect_ok(snug_engine_create(NULL, &d->engine, &err), &err);
    expect_ok(snug_model_create(d->engine, NULL, &one, &d->model, &err), &err);
    expect_ok(
        snug_model_add(d->model, "Dense", "units=1 use_bias=false kernel_initializer=ones", &err),
        &err);
    expect_ok(snug_model_compile(d->model, &c, &err), &err);
    expect_ok(snug_feed_from_memory(d->engine, &rows, ones, NULL, NULL, &d->x, &err), &err);
    expect_ok(snug_feed_from_memory(d->engine, &rows, zeros, NULL, NULL, &d->y, &err), &err);
}

static void end(desk *d) {
    snug_feed_destroy(d->y);
    snug_feed_destroy(d->x);
    snug_model_destroy(d->model);
    assert_int_equal(snug_engine_bytes(d->engine), 0);
    snug_engine_destroy(d->engine);
}

static double fit(desk *d, int64_t batch, int epochs) {
    const snug_fit_options o = {.x = d->x, .y = d->y, .batch = batch, .epochs = epochs};
    snug_error err;
    snug_view w;
    expect_ok(snug_fit(d->model, &o, NULL, &err), &err);
    expect_ok(snug_model_weight(d->model, 0, NULL, &w, &err), &err);
    return *(const double *)w.data;
}

#define assert_close(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static void test_a_fit_ends_with_the_moving_average(void **state) {
    (void)state;
    desk d;
    double w = 1, mean = 0;
    begin(&d, "sgd:learning_rate=0.125,use_ema=true,ema_momentum=0.75");
    for (int t = 0; t < ROWS; t++) {
        w -= 0.125 * 2 * w;
        mean = t ? 0.75 * mean + 0.25 * w : w;
    }
    assert_close(fit(&d, 1, 1), mean);
    w = mean; /* the next fit goes on from there, and so does the average */
    w -= 0.125 * 2 * w;
    mean = 0.75 * mean + 0.25 * w;
    assert_close(fit(&d, ROWS, 1), mean);
    end(&d);
}

static void test_averages_take_the_place_of_weights_as_often_as_asked(void **state) {
    (void)state;
    desk d;
    double w = 1, mean = 0;
    begin(&d, "sgd:learning_rate=0.125,use_ema=true,ema_momentum=0.75,ema_overwrite_frequency=3");
    for (int t = 0; t < ROWS; t++) {
        w -= 0.125 * 2 * w;
        mean = t ? 0.75 * mean + 0.25 * w : w;
        w = (t + 1) % 3 == 0 ? mean : w;
    }
    assert_close(fit(&d, 1, 1), mean);
    end(&d);
}

/* 7 rows in batches of 2: the remainder of one row is a plan of its own, and updates fall on any
 * batch. */
static void test_gradients_of_several_steps_make_one_update(void **state) {
    (void)state;
    desk d;
    double w = 1, sum = 0;
    begin(&d, "sgd:learning_rate=0.125,gradient_accumulation_steps=3");
    for (int t = 1; t <= 5 * 4; t++) {
        sum += 2 * w;
        if (t % 3 == 0) {
            w -= 0.125 * sum / 3;
            sum = 0;
        }
    }
    assert_close(fit(&d, 2, 5), w);
    assert_int_equal(d.model->iterations, 20);
    /* a fit may end between two updates: the next one goes on with what was added up */
    sum += 2 * w;
    assert_close(fit(&d, 7, 1), w - 0.125 * sum / 3);
    end(&d);
}

static void test_a_schedule_sets_the_rate_of_each_step(void **state) {
    (void)state;
    desk d;
    snug_error err;
    double w = 1;
    begin(&d, "sgd:lr=piecewise_constant_decay(boundaries=[1,3],values=[0.25,0.125,0.0625])");
    assert_close(snug_model_learning_rate(d.model), 0.25);
    for (int t = 0; t < ROWS; t++)
        w -= (t <= 1 ? 0.25 : t <= 3 ? 0.125 : 0.0625) * 2 * w;
    assert_close(fit(&d, 1, 1), w);
    assert_close(snug_model_learning_rate(d.model), 0.0625);
    expect_status(snug_model_set_learning_rate(d.model, 1, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "piecewise_constant_decay");
    end(&d);
}

static void test_schedules_that_make_no_sense_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        snug_status status;
        const char *piece;
    } bad[] = {
        {"sgd:lr=cosine_decay(decay_steps=3)", SNUG_E_INVALID, "needs initial_learning_rate"},
        {"sgd:lr=cosine_decay(initial_learning_rate=1,decay_steps=0)", SNUG_E_INVALID, "range"},
        {"sgd:lr=cosine_decay(initial_learning_rate=1,steps=3)", SNUG_E_INVALID, "it has initial"},
        {"sgd:lr=zigzag(a=1)", SNUG_E_UNSUPPORTED, "exponential_decay"},
        {"sgd:lr=piecewise_constant_decay(boundaries=[1,2],values=[1,2])", SNUG_E_INVALID,
         "one value more"},
        {"sgd:lr=cosine_decay(", SNUG_E_INVALID, "schedule(key=value"},
    };
    sn_optimizer o;
    snug_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_status(sn_optimizer_parse(bad[i].text, &o, &err), bad[i].status, &err);
        expect_text(err.text, bad[i].piece);
    }
}

/* All of it at once, with metrics of many sums, regularisers and constraints. */
static snug_status train_small(snug_engine *e, void *ctx, snug_error *err) {
    static float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {0, 1, 1};
    const snug_type example = {.dtype = SNUG_F32, .rank = 1, .dims = {2}};
    const snug_type rows_x = {.dtype = SNUG_F32, .rank = 2, .dims = {3, 2}},
                    rows_y = {.dtype = SNUG_F32, .rank = 2, .dims = {3, 1}};
    const snug_compile c = {
        .optimizer = "adafactor:gradient_accumulation_steps=2,use_ema=true,lr=cosine_decay("
                     "initial_learning_rate=0.1,decay_steps=3)",
        .loss = "binary_crossentropy",
        .metrics = "auc:num_thresholds=5,f1_score:average=micro"};
    snug_model *m = NULL;
    snug_feed *fx = NULL, *fy = NULL;
    (void)ctx;
    snug_status status = snug_model_create(e, NULL, &example, &m, err);
    if (status == SNUG_OK)
        status = snug_model_add(m, "Dense",
                                "units=1 activation=sigmoid kernel_regularizer=l2 "
                                "kernel_constraint=max_norm kernel_initializer=orthogonal",
                                err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &c, err);
    if (status == SNUG_OK)
        status = snug_feed_from_memory(e, &rows_x, x, NULL, NULL, &fx, err);
    if (status == SNUG_OK)
        status = snug_feed_from_memory(e, &rows_y, y, NULL, NULL, &fy, err);
    if (status == SNUG_OK) {
        const snug_fit_options o = {.x = fx, .y = fy, .batch = 2, .epochs = 2};
        status = snug_fit(m, &o, NULL, err);
    }
    snug_feed_destroy(fy);
    snug_feed_destroy(fx);
    snug_model_destroy(m);
    return status;
}

static void test_training_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(train_small, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fit_ends_with_the_moving_average),
        cmocka_unit_test(test_averages_take_the_place_of_weights_as_often_as_asked),
        cmocka_unit_test(test_gradients_of_several_steps_make_one_update),
        cmocka_unit_test(test_a_schedule_sets_the_rate_of_each_step),
        cmocka_unit_test(test_schedules_that_make_no_sense_are_refused),
        cmocka_unit_test(test_training_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
