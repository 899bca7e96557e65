/* test_train.c: training as a user sees it: a model learns, the same call gives the same bits,
 * remainders count, interrupts and NaN leave whole steps, wrong data are refused, failures leave
 * nothing behind. Its neighbours: test_train_callbacks.c, test_train_model.c. */
#include "support/blobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = BLOB_ROWS, DIM = BLOB_DIM, CLASSES = BLOB_CLASSES };

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

/* Rows that are fed as halves are looked at, too. A loss scale waits for better numbers until f32
 * cannot invert it. */
static void test_nan_is_found_under_policies(void **state) {
    static const struct {
        const char *precision;
        int64_t epochs;
        const char *text;
    } rows[] = {{"mixed_bf16", 1, "epoch 1, step 1 of 1"},
                {"mixed_f16", 200, "epoch 142, step 1 of 1"}};
    snug_error err;
    blobs b;
    char text[300];
    blobs_begin(*state, &b);
    b.x[40][2] = NAN;
    for (int k = 0; k < 2; k++) {
        float before[MAX_WEIGHTS];
        snug_model *m = mlp(*state);
        expect_ok(snug_model_set_precision(m, rows[k].precision, &err), &err);
        copy_weights(m, before);
        const snug_fit_options fit = {
            .x = b.fx, .y = b.fy, .batch = N, .epochs = (int)rows[k].epochs};
        expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_NUMERIC, &err);
        expect_text(err.text, rows[k].text);
        assert_true(same_weights(m, before));
        expect_ok(snug_model_find_nan(m, text, sizeof text, &err), &err);
        expect_text(text, "row 40 of x has nan");
        snug_model_destroy(m);
    }
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

/* The unlimited run's weights, or SNUG_E_BUDGET before the first step; never more than the
 * budget. */
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
        engine_test(test_interrupt_leaves_weights_of_a_whole_step),
        engine_test(test_interrupt_inside_validation_ends_no_epoch),
        engine_test(test_nan_stops_before_the_first_write_and_is_found),
        engine_test(test_nan_is_found_under_policies),
        engine_test(test_data_that_do_not_fit_are_refused_with_numbers),
        engine_test(test_model_without_layers_or_weights_is_refused),
        engine_test(test_any_budget_is_kept_or_refused_before_training),
        engine_test(test_dropout_draws_anew_in_each_step_and_repeats_by_seed),
        engine_test(test_training_survives_any_failed_request),
        engine_test(test_files_survive_any_failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
