/* test_train_data.c: which rows training sees, and in which order: shuffling is a permutation that
 * depends on seed and epoch alone, remainders count, validation sees its own rows only, and data
 * without rows are refused. Rows are known by their number: row i of x is (i, i). */
#include "support/support.h"

#include <snug/train.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SEEN = 512 };

/* A feed that notes the rows it is asked for. */
typedef struct {
    int64_t rows[MAX_SEEN];
    int n;
} seen;

static snug_status fill_numbers(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                                snug_error *err) {
    (void)err;
    seen *s = ctx;
    for (int64_t i = 0; i < n; i++) {
        assert_true(s->n < MAX_SEEN);
        s->rows[s->n++] = first + i;
        for (int k = 0; k < 2; k++)
            ((float *)dst->data)[2 * i + k] = (float)(first + i) * 0.01f;
    }
    return SNUG_OK;
}

static snug_feed *numbers(snug_engine *e, int64_t n, seen *s) {
    snug_error err;
    snug_feed *feed;
    const snug_type type = {SNUG_F32, 2, {n, 2}};
    expect_ok(snug_feed_from_callback(e, &type, fill_numbers, NULL, s, &feed, &err), &err);
    return feed;
}

/* x -> x, by mean squares: y is read in the same order as x. */
static snug_model *identity(snug_engine *e) {
    snug_error err;
    snug_model *m;
    expect_ok(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {2}}, &m, &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=2", &err), &err);
    expect_ok(snug_model_compile(
                  m, &(snug_compile){.optimizer = "sgd", .loss = "mse", .metrics = "mae"}, &err),
              &err);
    return m;
}

typedef struct {
    snug_engine *engine;
    snug_model *model;
    seen x, y;
    snug_feed *fx, *fy;
} desk;

static void desk_begin(desk *d, snug_engine *e, int64_t rows) {
    *d = (desk){.engine = e, .model = identity(e)};
    d->fx = numbers(e, rows, &d->x);
    d->fy = numbers(e, rows, &d->y);
}

static void desk_end(desk *d) {
    snug_model_destroy(d->model);
    snug_feed_destroy(d->fx);
    snug_feed_destroy(d->fy);
}

static void desk_fit(desk *d, snug_fit_options o, snug_fit_result *r) {
    snug_error err;
    o.x = d->fx;
    o.y = d->fy;
    d->x.n = d->y.n = 0;
    expect_ok(snug_fit(d->model, &o, r, &err), &err);
    assert_int_equal(d->x.n, d->y.n);
    assert_memory_equal(d->x.rows, d->y.rows, (size_t)d->x.n * sizeof *d->x.rows);
}

/* rows[0..n) are 0..n-1 in some order. */
static void expect_permutation(const int64_t *rows, int n) {
    unsigned char there[MAX_SEEN] = {0};
    for (int i = 0; i < n; i++) {
        assert_true(rows[i] >= 0 && rows[i] < n && !there[rows[i]]);
        there[rows[i]] = 1;
    }
}

/* --- order ------------------------------------------------------------------------------------ */
static void test_rows_come_in_order_without_shuffle(void **state) {
    desk d;
    desk_begin(&d, *state, 10);
    desk_fit(&d, (snug_fit_options){.epochs = 2, .batch = 4, .seed = 7}, NULL);
    assert_int_equal(d.x.n, 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(d.x.rows[i], i % 10);
    desk_end(&d);
}

static void test_shuffling_is_a_permutation_by_seed_and_epoch(void **state) {
    for (int n = 1; n <= 70; n += 23) {
        desk d;
        int64_t first[MAX_SEEN];
        desk_begin(&d, *state, n);
        const snug_fit_options fit = {.epochs = 3, .batch = 8, .shuffle = 1, .seed = 7};
        desk_fit(&d, fit, NULL);
        assert_int_equal(d.x.n, 3 * n); /* each row once an epoch, the remainder's too */
        for (int epoch = 0; epoch < 3; epoch++)
            expect_permutation(d.x.rows + epoch * n, n);
        memcpy(first, d.x.rows, sizeof first);
        if (n > 20) {
            assert_true(memcmp(first, first + n, (size_t)n * sizeof *first) != 0);
            assert_true(memcmp(first + n, first + 2 * n, (size_t)n * sizeof *first) != 0);
        }
        desk_fit(&d, fit, NULL); /* neither the weights nor the fit before matter */
        assert_memory_equal(d.x.rows, first, 3 * (size_t)n * sizeof *first);
        /* nor the size of batches */
        desk_fit(&d, (snug_fit_options){.epochs = 3, .batch = 5, .shuffle = 1, .seed = 7}, NULL);
        assert_memory_equal(d.x.rows, first, 3 * (size_t)n * sizeof *first);
        desk_fit(&d, (snug_fit_options){.epochs = 3, .batch = 8, .shuffle = 1, .seed = 8}, NULL);
        if (n > 20)
            assert_true(memcmp(d.x.rows, first, (size_t)n * sizeof *first) != 0);
        desk_end(&d);
    }
}

/* --- validation ------------------------------------------------------------------------------- */
static void test_validation_sees_its_own_rows_in_order(void **state) {
    desk d;
    desk_begin(&d, *state, 23); /* 16 to train on in batches of 5, 5, 5, 1; 7 to validate */
    desk_fit(&d, (snug_fit_options){.epochs = 2, .batch = 5, .shuffle = 1, .validation_split = 0.3},
             NULL);
    assert_int_equal(d.x.n, 2 * 23);
    for (int epoch = 0; epoch < 2; epoch++) {
        expect_permutation(d.x.rows + epoch * 23, 16);
        for (int i = 16; i < 23; i++)
            assert_int_equal(d.x.rows[epoch * 23 + i], i);
    }
    desk_end(&d);
}

/* Validation with a remainder equals an evaluation of the same rows after the fit. */
static void test_validation_counts_its_remainder(void **state) {
    desk d, val;
    snug_error err;
    snug_fit_result r;
    double values[2];
    desk_begin(&d, *state, 12);
    desk_begin(&val, *state, 7);
    desk_fit(&d, (snug_fit_options){.batch = 5, .val_x = val.fx, .val_y = val.fy}, &r);
    expect_ok(snug_evaluate(d.model, &(snug_run_options){.x = val.fx, .y = val.fy, .batch = 7},
                            values, NULL, &err),
              &err);
    for (int i = 0; i < 2; i++)
        assert_true(fabs(r.val_values[i] - values[i]) <= 1e-6 * fabs(values[i]));
    assert_true(r.val_values[0] != r.values[0]);
    desk_end(&d);
    desk_end(&val);
}

/* --- how many rows ---------------------------------------------------------------------------- */
static snug_status no_rows(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    (void)ctx;
    (void)first_row;
    (void)view;
    (void)err;
    fail_msg("rows of nothing");
    return SNUG_OK;
}

static void test_data_without_rows_are_refused(void **state) {
    desk d;
    snug_error err;
    double values[2];
    desk_begin(&d, *state, 0);
    const snug_run_options run = {.x = d.fx, .y = d.fy};
    expect_status(snug_fit(d.model, &(snug_fit_options){.x = d.fx, .y = d.fy}, NULL, &err),
                  SNUG_E_DATA, &err);
    expect_text(err.text, "no rows");
    expect_status(snug_evaluate(d.model, &run, values, NULL, &err), SNUG_E_DATA, &err);
    expect_status(snug_predict(d.model, &run, no_rows, NULL, &err), SNUG_E_DATA, &err);
    desk_end(&d);
}

static void test_batch_larger_than_the_data_is_the_data(void **state) {
    desk d;
    snug_fit_result r;
    desk_begin(&d, *state, 3);
    desk_fit(&d, (snug_fit_options){.batch = 1000000}, &r);
    assert_int_equal(r.steps, 1);
    assert_int_equal(d.x.n, 3);
    desk_end(&d);
}

static void test_split_that_leaves_one_part_empty_is_refused(void **state) {
    desk d;
    snug_error err;
    desk_begin(&d, *state, 2);
    snug_fit_options fit = {.x = d.fx, .y = d.fy, .validation_split = 0.9};
    expect_status(snug_fit(d.model, &fit, NULL, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "of 2 rows leaves one part empty");
    fit.validation_split = NAN;
    expect_status(snug_fit(d.model, &fit, NULL, &err), SNUG_E_INVALID, &err);
    desk_end(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_rows_come_in_order_without_shuffle),
        engine_test(test_shuffling_is_a_permutation_by_seed_and_epoch),
        engine_test(test_validation_sees_its_own_rows_in_order),
        engine_test(test_validation_counts_its_remainder),
        engine_test(test_data_without_rows_are_refused),
        engine_test(test_batch_larger_than_the_data_is_the_data),
        engine_test(test_split_that_leaves_one_part_empty_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
