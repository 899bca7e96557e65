/* test_train_dataset.c: a model trained, evaluated and asked with datasets gives what it gives with
 * feeds of the same rows, bit for bit, whatever the pipeline looks like. */
#include "support/streams.h"

#include <snug/train.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TRY(call) expect_ok(call, &err)
enum { ROWS = 23, BATCH = 5 };

static snug_model *regression_by(snug_engine *e, const char *optimizer) {
    snug_error err = {0};
    snug_model *m;
    TRY(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {4}}, &m, &err));
    TRY(snug_model_add(m, "Dense", "units=8 activation=tanh", &err));
    TRY(snug_model_add(m, "Dropout", "rate=0.2", &err));
    TRY(snug_model_add(m, "Dense", "units=2", &err));
    TRY(snug_model_compile(
        m, &(snug_compile){.optimizer = optimizer, .loss = "mse", .metrics = "mae"}, &err));
    return m;
}

static snug_model *regression(snug_engine *e) {
    return regression_by(e, "adam");
}

static void open_feeds(snug_engine *e, snug_feed *feeds[3]) {
    snug_error err = {0};
    TRY(snug_feed_open(e, "normal:23x4@1", &feeds[0], &err));
    TRY(snug_feed_open(e, "normal:23x2@2", &feeds[1], &err));
    TRY(snug_feed_open(e, "uniform:23@3", &feeds[2], &err));
}

static void destroy_feeds(snug_feed *feeds[3]) {
    for (int i = 0; i < 3; i++)
        snug_feed_destroy(feeds[i]);
}

static snug_status same(void *ctx, void *worker, const snug_element *in, snug_element *out,
                        snug_error *err) {
    (void)ctx, (void)worker, (void)err;
    *out = *in;
    for (int i = 0; i < out->n; i++)
        snug_datum_hold(&out->part[i]);
    return SNUG_OK;
}

static snug_status yes(void *ctx, void *worker, const snug_element *in, snug_element *out,
                       snug_error *err) {
    (void)worker, (void)in;
    out->n = 0;
    const snug_status status =
        snug_datum_create(ctx, &(snug_type){.dtype = SNUG_BOOL}, &out->part[0], err);
    if (status == SNUG_OK)
        *(char *)out->part[0].data = 1;
    out->n = status == SNUG_OK;
    return status;
}

/* The same rows in batches; how: another pipeline each. */
static snug_dataset *batches(snug_engine *e, int how, int n_parts) {
    snug_error err = {0};
    snug_feed *feeds[3];
    snug_dataset *d;
    open_feeds(e, feeds);
    if (n_parts < 3)
        snug_feed_destroy(feeds[2]);
    TRY(snug_dataset_from_feeds(e, feeds, n_parts, &d, &err));
    if (how == 1)
        TRY(snug_dataset_map(d, &(snug_mapper){.call = same}, &(snug_map_options){.workers = 3}, &d,
                             &err));
    if (how == 2) /* nobody knows how many there are */
        TRY(snug_dataset_filter(d, &(snug_mapper){.ctx = e, .call = yes}, &d, &err));
    TRY(snug_dataset_batch(d, BATCH, 0, &d, &err));
    if (how == 3)
        TRY(snug_dataset_prefetch(d, 2, &d, &err));
    return d;
}

typedef struct {
    snug_fit_result fit;
    double values[1 + SNUG_MAX_METRICS];
    float predicted[ROWS][2];
} outcome;

static snug_status keep_rows(void *ctx, int64_t first, const snug_view *view, snug_error *err) {
    (void)err;
    outcome *o = ctx;
    memcpy(o->predicted[first], view->data, view->bytes);
    return SNUG_OK;
}

static outcome with_feeds(snug_engine *e, const char *optimizer, int n_parts) {
    snug_error err = {0};
    outcome o = {0};
    snug_feed *f[3];
    snug_model *m = regression_by(e, optimizer);
    open_feeds(e, f);
    snug_feed *const w = n_parts == 3 ? f[2] : NULL;
    TRY(snug_fit(m,
                 &(snug_fit_options){.x = f[0],
                                     .y = f[1],
                                     .sample_weight = w,
                                     .val_x = f[0],
                                     .val_y = f[1],
                                     .val_sample_weight = w,
                                     .batch = BATCH,
                                     .epochs = 3,
                                     .seed = 4},
                 &o.fit, &err));
    TRY(snug_evaluate(m,
                      &(snug_run_options){.x = f[0], .y = f[1], .sample_weight = w, .batch = BATCH},
                      o.values, NULL, &err));
    TRY(snug_predict(m, &(snug_run_options){.x = f[0], .batch = BATCH}, keep_rows, &o, &err));
    snug_model_destroy(m);
    destroy_feeds(f);
    return o;
}

static outcome with_datasets(snug_engine *e, const char *optimizer, int how, int n_parts) {
    snug_error err = {0};
    outcome o = {0};
    snug_model *m = regression_by(e, optimizer);
    snug_dataset *d = batches(e, how, n_parts), *val = batches(e, (how + 1) % 4, n_parts);
    TRY(snug_fit(m, &(snug_fit_options){.dataset = d, .val_dataset = val, .epochs = 3, .seed = 4},
                 &o.fit, &err));
    TRY(snug_evaluate(m, &(snug_run_options){.dataset = d}, o.values, NULL, &err));
    TRY(snug_predict(m, &(snug_run_options){.dataset = val}, keep_rows, &o, &err));
    snug_model_destroy(m);
    snug_dataset_drop(d);
    snug_dataset_drop(val);
    return o;
}

static void expect_as_feeds(snug_engine *e, const char *optimizer, int n_parts) {
    const outcome want = with_feeds(e, optimizer, n_parts);
    for (int how = 0; how < 4; how++) {
        const outcome got = with_datasets(e, optimizer, how, n_parts);
        assert_int_equal(got.fit.epochs, 3);
        assert_int_equal(got.fit.steps, want.fit.steps);
        assert_memory_equal(got.fit.values, want.fit.values, sizeof got.fit.values);
        assert_memory_equal(got.fit.val_values, want.fit.val_values, sizeof got.fit.values);
        assert_memory_equal(got.values, want.values, sizeof got.values);
        assert_memory_equal(got.predicted, want.predicted, sizeof got.predicted);
        assert_true(got.fit.input_seconds > 0);
    }
}

static void test_datasets_train_as_feeds_do(void **state) {
    expect_as_feeds(*state, "adam", 2);
    expect_as_feeds(*state, "adam", 3);
    expect_as_feeds(*state, "adam:gradient_accumulation_steps=3", 2);
}

/* --- epochs ----------------------------------------------------------------------------------- */
typedef struct {
    char text[512];
} notes;

static snug_status note_step(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    notes *n = ctx;
    snprintf(n->text + strlen(n->text), sizeof n->text - strlen(n->text),
             "%" PRId64 "/%" PRId64 " ", p->step, p->n_steps);
    return SNUG_OK;
}

static const char *steps_of(snug_engine *e, snug_dataset *d, int64_t steps_per_epoch, notes *n) {
    snug_error err = {0};
    snug_model *m = regression(e);
    const snug_callback c = {.ctx = n, .on_step_end = note_step};
    n->text[0] = '\0';
    TRY(snug_fit(m,
                 &(snug_fit_options){.dataset = d,
                                     .steps_per_epoch = steps_per_epoch,
                                     .epochs = 2,
                                     .callbacks = &c,
                                     .n_callbacks = 1},
                 NULL, &err));
    snug_model_destroy(m);
    snug_dataset_drop(d);
    return n->text;
}

static void test_epochs_are_iterations_or_counted_steps(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    notes n;
    assert_string_equal(steps_of(e, batches(e, 0, 2), 0, &n),
                        "1/5 2/5 3/5 4/5 5/5 1/5 2/5 3/5 4/5 5/5 ");
    assert_string_equal(steps_of(e, batches(e, 2, 2), 0, &n),
                        "1/0 2/0 3/0 4/0 5/0 1/5 2/5 3/5 4/5 5/5 ");
    assert_string_equal(steps_of(e, batches(e, 0, 2), 3, &n), "1/3 2/3 3/3 1/3 2/3 3/3 ");
    snug_dataset *d = batches(e, 3, 2);
    TRY(snug_dataset_repeat(d, -1, &d, &err));
    assert_string_equal(steps_of(e, d, 2, &n), "1/2 2/2 1/2 2/2 ");
}

static void expect_refused(snug_engine *e, snug_dataset *d, snug_status wanted, const char *text) {
    snug_error err = {0};
    snug_model *m = regression(e);
    expect_status(snug_fit(m, &(snug_fit_options){.dataset = d}, NULL, &err), wanted, &err);
    expect_text(err.text, text);
    snug_model_destroy(m);
    snug_dataset_drop(d);
}

static void test_datasets_that_do_not_suit_the_model_are_told(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d = batches(e, 0, 2);
    TRY(snug_dataset_unbatch(d, &d, &err));
    expect_refused(e, d, SNUG_E_DATA, "is there a batch stage?");
    d = sn_range_of(e, 7);
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    expect_refused(e, d, SNUG_E_SHAPE, "have 1 parts");
    d = batches(e, 0, 2);
    TRY(snug_dataset_take(d, 0, &d, &err));
    expect_refused(e, d, SNUG_E_DATA, "has no batch");
}

/* With a budget the pipeline has a share, and the result is the same. */
static void test_a_budget_gives_pipelines_their_share(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const outcome want = with_feeds(e, "adam", 2);
    TRY(snug_budget(e, (size_t)256 << 20, &err));
    const outcome got = with_datasets(e, "adam", 3, 2);
    assert_memory_equal(got.predicted, want.predicted, sizeof got.predicted);
    assert_true(got.fit.predicted_bytes <= (size_t)256 << 20);
    TRY(snug_budget(e, 0, &err));
}

/* --- batches that are never assembled --------------------------------------------------------- */
static snug_fit_result fit_shuffled(snug_engine *e, bool prefetch) {
    snug_error err = {0};
    snug_feed *feeds[3];
    snug_dataset *d;
    snug_fit_result r;
    snug_model *m = regression(e);
    open_feeds(e, feeds);
    TRY(snug_dataset_from_feeds(e, feeds, 3, &d, &err));
    TRY(snug_dataset_take(d, 21, &d, &err));
    TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 9, .seed = 8}, &d, &err));
    TRY(snug_dataset_repeat(d, 2, &d, &err));
    TRY(snug_dataset_batch(d, 8, 1, &d, &err));
    if (prefetch)
        TRY(snug_dataset_prefetch(d, 1, &d, &err));
    TRY(snug_fit(m, &(snug_fit_options){.dataset = d, .epochs = 2}, &r, &err));
    snug_model_destroy(m);
    snug_dataset_drop(d);
    return r;
}

static void test_rows_by_number_train_as_assembled_batches_do(void **state) {
    const snug_fit_result want = fit_shuffled(*state, true), got = fit_shuffled(*state, false);
    assert_int_equal(got.steps, 10); /* 42 rows by eights, twice */
    assert_int_equal(got.steps, want.steps);
    assert_memory_equal(got.values, want.values, sizeof got.values);
}

static size_t peak_of_input(const snug_engine *e) {
    snug_memory_row rows[64];
    const size_t n = snug_engine_memory(e, rows, 64);
    for (size_t i = 0; i < n; i++)
        if (!rows[i].owner[0] && strcmp(rows[i].category, "input") == 0)
            return rows[i].peak_bytes;
    return 0;
}

static void test_rows_go_straight_into_the_steps_input(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_feed *feeds[2];
    snug_dataset *d;
    snug_model *m;
    TRY(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {50000}}, &m, &err));
    TRY(snug_model_add(m, "Dense", "units=1", &err));
    TRY(snug_model_compile(m, &(snug_compile){.optimizer = "sgd", .loss = "mse"}, &err));
    TRY(snug_feed_open(e, "normal:20x50000@1", &feeds[0], &err));
    TRY(snug_feed_open(e, "normal:20x1@2", &feeds[1], &err));
    TRY(snug_dataset_from_feeds(e, feeds, 2, &d, &err));
    TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 20}, &d, &err));
    TRY(snug_dataset_batch(d, 8, 0, &d, &err));
    TRY(snug_fit(m, &(snug_fit_options){.dataset = d}, NULL, &err));
    assert_true(peak_of_input(e) < 100000); /* a row has 200,000 bytes, a batch 1.6 million */
    snug_model_destroy(m);
    snug_dataset_drop(d);
}

static snug_status evaluate_once(snug_engine *e, void *ctx, snug_error *err) {
    const bool prefetch = *(bool *)ctx;
    snug_feed *feeds[2] = {NULL, NULL};
    snug_dataset *d = NULL;
    snug_model *m = NULL;
    double values[1 + SNUG_MAX_METRICS];
    snug_status status = snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {2}}, &m, err);
    if (status == SNUG_OK)
        status = snug_model_add(m, "Dense", "units=1", err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &(snug_compile){.optimizer = "sgd", .loss = "mse"}, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, "normal:7x2@1", &feeds[0], err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, "normal:7x1@2", &feeds[1], err);
    if (status == SNUG_OK)
        status = snug_dataset_from_feeds(e, feeds, 2, &d, err);
    else
        for (int i = 0; i < 2; i++)
            snug_feed_destroy(feeds[i]);
    if (status == SNUG_OK)
        status = snug_dataset_batch(d, 3, 0, &d, err);
    if (status == SNUG_OK && prefetch)
        status = snug_dataset_prefetch(d, 0, &d, err);
    if (status == SNUG_OK) {
        status = snug_evaluate(m, &(snug_run_options){.dataset = d}, values, NULL, err);
        snug_dataset_drop(d);
    }
    snug_model_destroy(m);
    return status;
}

static void test_runs_on_datasets_survive_any_failed_request(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool prefetch = i == 1;
        sn_fault_sweep(evaluate_once, &prefetch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_datasets_train_as_feeds_do),
        engine_test(test_epochs_are_iterations_or_counted_steps),
        engine_test(test_datasets_that_do_not_suit_the_model_are_told),
        engine_test(test_a_budget_gives_pipelines_their_share),
        engine_test(test_rows_by_number_train_as_assembled_batches_do),
        engine_test(test_rows_go_straight_into_the_steps_input),
        cmocka_unit_test(test_runs_on_datasets_survive_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
