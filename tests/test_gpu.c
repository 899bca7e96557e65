/* test_gpu.c: models on a GPU, by the emulated plug-in: the processor's results, captured runs,
 * batches that come ahead, and failures: of each request, of the driver at each call, of what is
 * missing. */
#include "support/blobs.h"
#include "support/gpu_card.h"

#include "exec/gpu.h"
#include "plan/plan.h"

#include <snug/dataset.h>
#include <snug/graph.h>
#include <snug/record.h>
#include <snug/run.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the processor's results ------------------------------------------------------------------ */
static snug_status fit_blobs(snug_engine *e, float *weights, size_t *n, snug_error *err) {
    blobs b;
    snug_model *m = NULL;
    blobs_begin(e, &b);
    snug_status status = make_mlp(e, "adam:lr=0.02", &m, err);
    const snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .epochs = 4, .batch = 16, .shuffle = 1, .seed = 5};
    if (status == SNUG_OK)
        status = snug_fit(m, &fit, NULL, err);
    if (status == SNUG_OK && weights)
        *n = copy_weights(m, weights);
    snug_model_destroy(m);
    blobs_end(&b);
    return status;
}

static void test_training_gives_the_processors_weights(void **state) {
    snug_error err;
    float here[MAX_WEIGHTS], there[MAX_WEIGHTS], again[MAX_WEIGHTS];
    size_t n, m;
    expect_ok(fit_blobs(*state, here, &n, &err), &err);
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(fit_blobs(*state, there, &m, &err), &err);
    assert_int_equal(n, m);
    expect_near(there, here, n, 1e-5);
    expect_ok(fit_blobs(*state, again, &m, &err), &err);
    assert_memory_equal(there, again, n * sizeof *there);
}

/* Linear algebra is the processor's: the plan names it, and with that the copies. */
static void test_plans_name_rows_that_run_on_the_host(void **state) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {4, 4}};
    sn_cpu_device cpu;
    snug_error err;
    snug_graph *g;
    snug_value x, sum, made[2];
    sn_plan *plan;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &type, &x, &err), &err);
    expect_ok(snug_graph_op(g, "eigh", "", &x, 1, made, 2, &err), &err);
    expect_ok(snug_graph_op(g, "sum", "axes=0", &made[0], 1, &sum, 1, &err), &err);
    expect_ok(snug_graph_output(g, "sum", sum, &err), &err);
    const sn_device *device = sn_engine_device(*state, &cpu);
    const sn_plan_options o = {.devices = &device, .n_devices = 1};
    expect_ok(sn_plan_build(*state, g, &o, &plan, &err), &err);
    sn_text text = sn_text_begin();
    const snug_writer w = sn_text_writer(&text);
    expect_ok(sn_plan_print(plan, &w, &err), &err);
    expect_text(text.text, "host:");
    int n_host = 0, n_there = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == SN_STEP_RUN)
            ++*(sn_impl_kind_of(plan->steps[i].impl) == SN_IMPL_HOST ? &n_host : &n_there);
    assert_int_equal(n_host, 1);
    assert_int_equal(n_there, 1);
    sn_text_end(&text);
    sn_plan_destroy(plan);
    snug_graph_destroy(g);
}

/* Operands go to the host and back: its kernels, its bits. */
static void test_rows_without_a_kernel_run_on_the_host(void **state) {
    snug_error err;
    float here[MAX_WEIGHTS], there[MAX_WEIGHTS];
    size_t n, m;
    expect_ok(fit_blobs(*state, here, &n, &err), &err);
    card()->has_no_kernels = true;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(fit_blobs(*state, there, &m, &err), &err);
    assert_int_equal(n, m);
    assert_memory_equal(there, here, n * sizeof *here);
    assert_int_equal(card()->n_replays, 0);
}

/* From the second run of a plan on. */
static void test_runs_are_captured_and_replayed(void **state) {
    snug_error err;
    float weights[MAX_WEIGHTS];
    size_t n;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(fit_blobs(*state, weights, &n, &err), &err);
    /* 70 rows: 4 whole batches and a remainder, 4 epochs */
    assert_int_equal(card()->n_replays, 15 + 3);
}

static void test_no_run_is_captured_where_that_is_asked_for(void **state) {
    snug_error err;
    float captured[MAX_WEIGHTS], weights[MAX_WEIGHTS];
    size_t n, m;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(fit_blobs(*state, captured, &n, &err), &err);
    const int64_t replays = card()->n_replays;
    setenv("SNUG_CUDA_GRAPHS", "0", 1);
    const snug_status opened = open_gpu(*state, 0, &err);
    unsetenv("SNUG_CUDA_GRAPHS");
    expect_ok(opened, &err);
    expect_ok(fit_blobs(*state, weights, &m, &err), &err);
    assert_int_equal(card()->n_replays, replays);
    assert_int_equal(n, m);
    assert_memory_equal(weights, captured, n * sizeof *weights);
}

/* Three numbers a row: batches begin anywhere in the generator's blocks of four. */
static snug_status make_narrow(snug_engine *e, const char *precision, snug_model **out,
                               snug_error *err) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {3}};
    const snug_compile compile = {.optimizer = "adam:lr=0.02",
                                  .loss = "sparse_categorical_crossentropy",
                                  .precision = precision};
    SNUG_TRY(snug_model_create(e, "narrow", &type, out, err));
    SNUG_TRY(snug_model_add(*out, "Dense", "units=5 activation=tanh", err));
    SNUG_TRY(snug_model_add(*out, "Dense", "units=3 activation=softmax", err));
    return snug_model_compile(*out, &compile, err);
}

static snug_status fit_recipe(snug_engine *e, const char *x, const char *precision, float *weights,
                              size_t *n, snug_error *err) {
    snug_feed *fx = NULL, *fy = NULL;
    snug_model *m = NULL;
    snug_status status = snug_feed_open(e, x, &fx, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, "labels:70@3@3", &fy, err);
    if (status == SNUG_OK)
        status = make_narrow(e, precision, &m, err);
    const snug_fit_options fit = {.x = fx, .y = fy, .epochs = 3, .batch = 15};
    if (status == SNUG_OK)
        status = snug_fit(m, &fit, NULL, err);
    if (status == SNUG_OK)
        *n = copy_weights(m, weights);
    snug_model_destroy(m);
    snug_feed_destroy(fx);
    snug_feed_destroy(fy);
    return status;
}

/* Each batch its own rows of it, from any element on, also in captured runs; as halves where the
 * model reads them so. */
static void test_recipes_are_made_on_the_device(void **state) {
    enum { KINDS = 5 };
    static const struct {
        const char *x, *precision;
        double tolerance;
    } kinds[KINDS] = {{"uniform:70x3@7", NULL, 1e-5},
                      {"normal:70x3@8", NULL, 1e-5},
                      {"truncated:70x3@9", NULL, 1e-5},
                      {"constant:70x3@0.5", NULL, 1e-5},
                      {"normal:70x3@8", "mixed_bf16", 0.02}};
    snug_error err;
    float here[KINDS][MAX_WEIGHTS], there[MAX_WEIGHTS];
    size_t n, m;
    for (int k = 0; k < KINDS; k++)
        expect_ok(fit_recipe(*state, kinds[k].x, kinds[k].precision, here[k], &n, &err), &err);
    expect_ok(open_gpu(*state, 0, &err), &err);
    for (int k = 0; k < KINDS; k++) {
        const int64_t made = card()->n_made, replays = card()->n_replays;
        expect_ok(fit_recipe(*state, kinds[k].x, kinds[k].precision, there, &m, &err), &err);
        expect_near(there, here[k], n, kinds[k].tolerance);
        assert_true(card()->n_made > made);
        assert_true(card()->n_replays > replays || kinds[k].precision);
    }
}

static void test_weights_that_are_written_reach_the_device(void **state) {
    snug_error err;
    blobs b;
    double before[2], zeroed[2];
    expect_ok(open_gpu(*state, 0, &err), &err);
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    const snug_run_options run = {.x = b.fx, .y = b.fy, .batch = 16};
    expect_ok(snug_evaluate(m, &run, before, NULL, &err), &err);
    for (size_t i = 0; i < snug_model_n_weights(m); i++) {
        snug_view v;
        expect_ok(snug_model_weight(m, i, NULL, &v, &err), &err);
        memset(v.data, 0, v.bytes);
    }
    expect_ok(snug_evaluate(m, &run, zeroed, NULL, &err), &err);
    expect_real(zeroed[0], log(3), 1e-6);
    assert_true(fabs(before[0] - log(3)) > 1e-3);
    snug_model_destroy(m);
    blobs_end(&b);
}

/* --- the next batch --------------------------------------------------------------------------- */
/* Of 70 rows in batches of 16 each epoch has three steps whose batch comes while another of its
 * kind runs. */
static void test_the_next_batch_comes_while_a_step_runs(void **state) {
    snug_error err;
    snug_model_plan_info info;
    float with[MAX_WEIGHTS], without[MAX_WEIGHTS];
    size_t n;
    expect_ok(open_gpu(*state, 0, &err), &err);
    snug_model *m = mlp(*state);
    const snug_plan_request request = {.batch = 16, .train = 1};
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    assert_true(info.next_batch_bytes >= 2 * 16 * (BLOB_DIM + 1) * sizeof(float));
    const size_t tight = info.peak_bytes + info.reserve_bytes;
    snug_model_destroy(m);
    expect_ok(fit_blobs(*state, with, &n, &err), &err);
    assert_int_equal(card()->n_beside, 3 * 4);
    expect_ok(open_gpu(*state, tight, &err), &err); /* no room for it */
    m = mlp(*state);
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    assert_true(info.fits);
    assert_int_equal(info.next_batch_bytes, 0);
    snug_model_destroy(m);
    expect_ok(fit_blobs(*state, without, &n, &err), &err);
    assert_int_equal(card()->n_beside, 3 * 4);
    assert_memory_equal(with, without, n * sizeof *with);
}

/* Rows of more than a MiB, in pieces of 13: six pieces go through four places. */
enum { LONG_ROWS = 70, LONG = 300000, SEVENTH = 7 };

typedef struct {
    int64_t bad_row; /* -1: none */
} long_rows;

static snug_status fill_long(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                             snug_error *err) {
    const long_rows *l = ctx;
    for (int64_t i = 0; i < n_rows; i++) {
        if (first_row + i == l->bad_row)
            return sn_fail(err, SNUG_E_IO, "row %d is not there", (int)l->bad_row);
        ((float *)dst->data)[i * LONG + SEVENTH] = (float)(first_row + i);
    }
    return SNUG_OK;
}

static snug_session *open_long(snug_engine *e) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {LONG_ROWS, LONG}};
    snug_error err;
    snug_graph *g;
    snug_session *s;
    snug_value x, y;
    expect_ok(snug_graph_create(e, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &type, &x, &err), &err);
    expect_ok(snug_graph_op(g, "slice", "sizes=70,1 start=0,7", &x, 1, &y, 1, &err), &err);
    expect_ok(snug_graph_output(g, "y", y, &err), &err);
    expect_ok(snug_session_create(e, g, NULL, &s, &err), &err);
    snug_graph_destroy(g);
    return s;
}

static void test_feeds_too_large_to_be_staged_come_in_pieces(void **state) {
    const snug_type all = {.dtype = SNUG_F32, .rank = 2, .dims = {2 * LONG_ROWS, LONG}};
    snug_error err;
    snug_feed *x;
    snug_view y;
    long_rows rows = {-1};
    expect_ok(open_gpu(*state, 0, &err), &err);
    snug_session *s = open_long(*state);
    expect_ok(snug_feed_from_callback(*state, &all, fill_long, NULL, &rows, &x, &err), &err);
    for (int run = 0; run < 3; run++) {
        const int64_t first = run * LONG_ROWS / 2;
        expect_ok(snug_session_feed(s, "x", x, first, &err), &err);
        rows.bad_row = first + 60;
        expect_status(snug_session_run(s, &err), SNUG_E_IO, &err);
        expect_text(err.text, "is not there");
        rows.bad_row = -1;
        expect_ok(snug_session_run(s, &err), &err);
        expect_ok(snug_session_output(s, "y", &y, &err), &err);
        for (int i = 0; i < LONG_ROWS; i++)
            assert_true(((const float *)y.data)[i] == (float)(first + i));
    }
    assert_int_equal(card()->n_replays, 0);
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

/* By the numbers of rows, or in assembled batches. */
static snug_dataset *blob_batches(snug_engine *e, blobs *b, int how) {
    snug_error err;
    snug_feed *feeds[2] = {b->fx, b->fy};
    snug_dataset *d;
    expect_ok(snug_dataset_from_feeds(e, feeds, 2, &d, &err), &err);
    b->fx = b->fy = NULL;
    expect_ok(snug_dataset_batch(d, 16, 0, &d, &err), &err);
    if (how == 1)
        expect_ok(snug_dataset_prefetch(d, 2, &d, &err), &err);
    return d;
}

static void fit_dataset(snug_engine *e, int how, int64_t steps_per_epoch, float *weights) {
    snug_error err;
    blobs b;
    blobs_begin(e, &b);
    snug_model *m = mlp(e);
    snug_dataset *d = blob_batches(e, &b, how);
    const snug_fit_options fit = {
        .dataset = d, .epochs = 3, .steps_per_epoch = steps_per_epoch, .seed = 5};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    (void)copy_weights(m, weights);
    snug_model_destroy(m);
    snug_dataset_drop(d);
    blobs_end(&b);
}

static void test_batches_of_datasets_come_ahead_and_are_the_same(void **state) {
    static const int64_t steps[] = {0, 3, 7}; /* a pass; a part of one; into the next */
    for (int how = 0; how < 2; how++)
        for (int k = 0; k < 3; k++) {
            snug_error err;
            float here[MAX_WEIGHTS] = {0}, there[MAX_WEIGHTS] = {0};
            fit_dataset(*state, how, steps[k], here);
            expect_ok(open_gpu(*state, 0, &err), &err);
            const int64_t before = card()->n_beside;
            fit_dataset(*state, how, steps[k], there);
            assert_true(card()->n_beside - before >= 2 * 2);
            expect_near(there, here, MAX_WEIGHTS, 1e-5);
            expect_ok(snug_device(*state, "cpu", NULL, &err), &err);
        }
}

/* A source of the caller's own thread that asks the model itself before each batch. */
typedef struct {
    snug_engine *engine;
    blobs *data;
    snug_model *model;
    int64_t at;
} asking;

static snug_status open_asking(void *ctx, void **cursor, snug_error *err) {
    (void)err;
    ((asking *)ctx)->at = 0;
    *cursor = ctx;
    return SNUG_OK;
}

static snug_status ignore_rows(void *ctx, int64_t first_row, const snug_view *view,
                               snug_error *err) {
    (void)ctx, (void)first_row, (void)view, (void)err;
    return SNUG_OK;
}

static snug_status next_asking(void *cursor, snug_element *out, snug_error *err) {
    asking *a = cursor;
    const snug_type x = {SNUG_F32, 2, {16, BLOB_DIM}}, y = {SNUG_I32, 1, {16}};
    const snug_run_options run = {.x = a->data->fx, .batch = 16};
    if (a->at == 4)
        return SNUG_E_END;
    SNUG_TRY(snug_predict(a->model, &run, ignore_rows, NULL, err));
    *out = (snug_element){.n = 2, .index = a->at};
    SNUG_TRY(snug_datum_create(a->engine, &x, &out->part[0], err));
    SNUG_TRY(snug_datum_create(a->engine, &y, &out->part[1], err));
    memcpy(out->part[0].data, a->data->x[16 * a->at], sizeof a->data->x[0] * 16);
    memcpy(out->part[1].data, &a->data->y[16 * a->at], sizeof a->data->y[0] * 16);
    a->at++;
    return SNUG_OK;
}

static void close_asking(void *cursor) {
    (void)cursor;
}

static double fit_asking(snug_engine *e, float *weights) {
    snug_error err;
    blobs b;
    snug_dataset *d;
    snug_fit_result result;
    blobs_begin(e, &b);
    asking a = {e, &b, mlp(e), 0};
    const snug_generator source = {
        .ctx = &a,
        .spec = {.n = 2, .type = {{SNUG_F32, 2, {16, BLOB_DIM}}, {SNUG_I32, 1, {16}}}},
        .cardinality = 4,
        .open = open_asking,
        .next = next_asking,
        .close = close_asking,
        .serial = 1};
    expect_ok(snug_dataset_from_generator(e, &source, &d, &err), &err);
    expect_ok(snug_fit(a.model, &(snug_fit_options){.dataset = d, .epochs = 3}, &result, &err),
              &err);
    (void)copy_weights(a.model, weights);
    snug_dataset_drop(d);
    snug_model_destroy(a.model);
    blobs_end(&b);
    return result.values[0];
}

static void test_a_source_may_ask_the_model_it_feeds(void **state) {
    snug_error err;
    float here[MAX_WEIGHTS] = {0}, there[MAX_WEIGHTS] = {0};
    const double loss = fit_asking(*state, here);
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_real(fit_asking(*state, there), loss, 1e-5);
    expect_near(there, here, MAX_WEIGHTS, 1e-5);
}

/* The rows that are asked about are those of the step that failed, not of the next. */
static void test_a_bad_label_of_a_dataset_is_named_though_the_next_batch_is_there(void **state) {
    for (int how = 0; how < 2; how++) {
        snug_error err;
        blobs b;
        expect_ok(open_gpu(*state, 0, &err), &err);
        blobs_begin(*state, &b);
        b.y[40] = 7;
        snug_model *m = mlp(*state);
        snug_dataset *d = blob_batches(*state, &b, how);
        expect_status(snug_fit(m, &(snug_fit_options){.dataset = d}, NULL, &err), SNUG_E_DATA,
                      &err);
        expect_text(err.text, "row 8 of y has the label 7");
        assert_int_equal(card()->n_beside, 3 * (how + 1));
        snug_model_destroy(m);
        snug_dataset_drop(d);
        blobs_end(&b);
    }
}

/* --- a step is atomic ------------------------------------------------------------------------- */
static void test_nan_leaves_the_weights_as_they_were(void **state) {
    snug_error err;
    blobs b;
    float before[MAX_WEIGHTS];
    expect_ok(open_gpu(*state, 0, &err), &err);
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    const snug_fit_options fit = {.x = b.fx, .y = b.fy, .epochs = 2, .batch = 35};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err); /* captured by now */
    copy_weights(m, before);
    b.x[3][1] = NAN;
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_NUMERIC, &err);
    assert_true(same_weights(m, before));
    b.x[3][1] = 0;
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_labels_outside_of_the_classes_are_named(void **state) {
    snug_error err;
    blobs b;
    expect_ok(open_gpu(*state, 0, &err), &err);
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    b.y[40] = 7;
    const snug_fit_options fit = {.x = b.fx, .y = b.fy, .batch = 16};
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "row 40 of y has the label 7");
    snug_model_destroy(m);
    blobs_end(&b);
}

/* --- closing ---------------------------------------------------------------------------------- */
static void test_a_reset_is_made_only_when_asked_for(void **state) {
    snug_error err;
    snug_device_info d;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_device(*state, "cpu", NULL, &err), &err);
    assert_int_equal(card()->n_resets, 0);
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(snug_device_reset(*state, &err), &err);
    assert_int_equal(card()->n_resets, 1);
    assert_int_equal(card()->n_contexts, 0);
    expect_ok(snug_device_look(*state, &d, &err), &err);
    assert_string_equal(d.name, "cpu:0");
    expect_ok(snug_device_reset(*state, &err), &err); /* nothing to do */
    assert_int_equal(card()->n_resets, 1);
}

static void test_a_device_in_use_is_not_given_back(void **state) {
    snug_error err;
    blobs b;
    double values[2];
    snug_recorder *r;
    expect_ok(open_gpu(*state, 0, &err), &err);
    snug_model *m = mlp(*state);
    expect_status(snug_device(*state, "cpu", NULL, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "gpu:0 is in use; destroy the models, sessions and recorders");
    expect_status(open_gpu(*state, 0, &err), SNUG_E_INVALID, &err);
    expect_status(snug_device_reset(*state, &err), SNUG_E_INVALID, &err);
    blobs_begin(*state, &b);
    const snug_run_options run = {.x = b.fx, .y = b.fy, .batch = 16};
    expect_ok(snug_evaluate(m, &run, values, NULL, &err), &err);
    blobs_end(&b);
    snug_model_destroy(m);
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    expect_status(snug_device(*state, "cpu", NULL, &err), SNUG_E_INVALID, &err);
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {4096}};
    static const float zeros[4096];
    snug_tensor *t, *twice;
    expect_ok(snug_tensor_copy(r, &type, zeros, &t, &err), &err);
    expect_ok(snug_record_op(r, "add", "", (snug_tensor *[]){t, t}, 2, &twice, 1, &err), &err);
    expect_ok(snug_sync(r, &err), &err);
    snug_tensor_drop(t);
    snug_recorder_destroy(r);
    expect_status(snug_device(*state, "cpu", NULL, &err), SNUG_E_INVALID, &err);
    snug_tensor_drop(twice); /* it lay on the card until now */
    expect_ok(snug_device(*state, "cpu", NULL, &err), &err);
    assert_int_equal(card()->n_contexts, 0);
}

/* --- what is missing -------------------------------------------------------------------------- */
static void test_what_is_missing_is_said(void **state) {
    snug_error err;
    const snug_device_options none = {.plugin = "/nowhere/libsnug-cuda.so"};
    expect_status(snug_device(*state, "gpu", &none, &err), SNUG_E_DEVICE, &err);
    expect_text(err.text, "there is no GPU plug-in (/nowhere/libsnug-cuda.so)");
    assert_int_equal(snug_device_count(none.plugin, &err), 0);
    assert_int_equal(err.cause, SNUG_CAUSE_NO_PLUGIN);
    expect_status(snug_device(*state, "tpu", NULL, &err), SNUG_E_INVALID, &err);
    const snug_device_options other = {.plugin = SNUG_EMULATED_PLUGIN};
    expect_status(snug_device(*state, "gpu:3", &other, &err), SNUG_E_DEVICE, &err);
    expect_text(err.text, "there is no GPU 3; the driver sees 1, from gpu:0 on");
    card()->n_devices = 0;
    assert_int_equal(snug_device_count(SNUG_EMULATED_PLUGIN, &err), 0);
    expect_text(err.text, "sees no GPU");
    assert_int_equal(err.cause, SNUG_CAUSE_NONE);
    card()->n_devices = 1;
    card()->others_bytes = fresh.total_bytes - 1;
    expect_status(open_gpu(*state, 0, &err), SNUG_E_MEMORY, &err);
    expect_text(err.text, "is full");
    card()->others_bytes = 0;
    expect_status(open_gpu(*state, (size_t)100 << 20, &err), SNUG_E_BUDGET, &err);
    expect_text(err.text, "less than its context alone takes, 264.0 MiB");
}

/* --- libraries -------------------------------------------------------------------------------- */
static snug_status plan_convolutions(snug_engine *e, snug_model_plan_info *out, snug_error *err) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 3, .dims = {16, 16, 3}};
    const snug_plan_request request = {.batch = 8, .train = 1};
    const snug_compile compile = {.optimizer = "adam", .loss = "mse"};
    snug_model *m = NULL;
    snug_status status = snug_model_create(e, "convolutions", &type, &m, err);
    for (int i = 0; i < 2 && status == SNUG_OK; i++)
        status = snug_model_add(m, "Conv2D", "filters=8 kernel_size=3", err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &compile, err);
    if (status == SNUG_OK)
        status = snug_model_plan(m, &request, out, err);
    snug_model_destroy(m);
    return status;
}

/* A want of memory is no refusal: it goes up, whatever own kernel there is, and is not kept. */
static void test_a_library_that_had_no_memory_is_asked_again(void **state) {
    snug_error err;
    snug_model_plan_info own, info;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(plan_convolutions(*state, &own, &err), &err);
    assert_int_equal(card()->n_asked, 0);
    card()->has_libraries = true;
    card()->n_starved = 1;
    expect_status(plan_convolutions(*state, &info, &err), SNUG_E_MEMORY, &err);
    expect_text(err.text, "cuDNN has no memory here");
    assert_int_equal(card()->n_asked, 1);
    expect_ok(plan_convolutions(*state, &info, &err), &err);
    assert_true(info.step_seconds < own.step_seconds);
    const int64_t asked = card()->n_asked;
    assert_true(asked >= 1 + 2 + 1 + 2); /* forward, of inputs, of filters; and of slices */
    expect_ok(plan_convolutions(*state, &info, &err), &err);
    assert_int_equal(card()->n_asked, asked);
}

/* No engine is asked after that, no own kernel taken instead: the engine's GPU is lost. */
static void test_a_card_that_fails_while_a_library_is_asked_is_lost(void **state) {
    snug_error err;
    snug_model_plan_info info;
    expect_ok(open_gpu(*state, 0, &err), &err);
    card()->has_libraries = true;
    card()->fails_asked = true;
    expect_status(plan_convolutions(*state, &info, &err), SNUG_E_DEVICE, &err);
    expect_text(err.text, "the card failed while cuDNN was asked");
    assert_int_equal(card()->n_asked, 1);
    card()->fails_asked = false;
    expect_status(plan_convolutions(*state, &info, &err), SNUG_E_DEVICE, &err);
    expect_text(err.text, "the card failed while cuDNN was asked; the GPU is of no use");
    assert_int_equal(card()->n_asked, 1);
}

typedef struct {
    snug_engine *engine;
    sn_opdesc desc;
    sn_variant variant;
    snug_status status;
    snug_error err;
} question;

static void *describe_there(void *ctx) {
    question *q = ctx;
    sn_cpu_device cpu;
    const sn_device *device = sn_engine_device(q->engine, &cpu);
    q->status = device->describe(device, &q->desc, &q->variant, &q->err);
    return NULL;
}

/* Whatever card a thread has worked with before, libraries are asked about the engine's. */
static void test_any_thread_may_ask_libraries(void **state) {
    pthread_t thread;
    question q = {.engine = *state, .desc = {.op = SN_OP_matmul, .n_in = 2}};
    q.desc.in[0] = q.desc.in[1] = (snug_type){SNUG_F32, 2, {512, 512}};
    expect_ok(sn_op_infer(&q.desc, &q.err), &q.err);
    expect_ok(open_gpu(*state, 0, &q.err), &q.err);
    card()->has_libraries = true;
    assert_int_equal(pthread_create(&thread, NULL, describe_there, &q), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_ok(q.status, &q.err);
    expect_text(q.variant.impl, "cublaslt:");
}

/* --- failures --------------------------------------------------------------------------------- */
static snug_status whole_training(snug_engine *e, void *ctx, snug_error *err) {
    (void)ctx;
    snug_model *m = NULL;
    snug_feed *x = NULL, *y = NULL;
    snug_status status = open_gpu(e, 0, err);
    if (status == SNUG_OK)
        status = make_mlp(e, "adam", &m, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, "normal:8x4@1", &x, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, "labels:8@2@3", &y, err);
    if (status == SNUG_OK)
        status =
            snug_fit(m, &(snug_fit_options){.x = x, .y = y, .batch = 4, .epochs = 2}, NULL, err);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_model_destroy(m);
    if (snug_device(e, "cpu", NULL, NULL) != SNUG_OK)
        return SNUG_E_INTERNAL;
    assert_int_equal(card()->held_bytes, 0);
    assert_int_equal(card()->n_contexts, 0);
    return status;
}

static void test_training_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(whole_training, NULL);
}

/* The driver fails at call n and from then on: the error is told, nothing is left behind, and a new
 * engine works. */
static void test_a_lost_device_poisons_its_engine_only(void **state) {
    (void)state;
    int64_t n = 0;
    for (snug_status status = SNUG_E_DEVICE; status != SNUG_OK; n += 7) {
        snug_error err;
        snug_engine *e = sn_test_engine(0);
        *card() = fresh;
        card()->fail_at = n;
        status = whole_training(e, NULL, &err);
        if (status != SNUG_OK)
            expect_status(status, SNUG_E_DEVICE, &err);
        sn_test_engine_end(e);
    }
    assert_true(n > 100);
    *card() = fresh;
}

static void test_a_lost_device_says_so_until_it_is_opened_again(void **state) {
    snug_error err;
    blobs b;
    expect_ok(open_gpu(*state, 0, &err), &err);
    blobs_begin(*state, &b);
    snug_model *m = mlp(*state);
    const snug_run_options run = {.x = b.fx, .y = b.fy, .batch = 16};
    double values[2];
    expect_ok(snug_evaluate(m, &run, values, NULL, &err), &err);
    card()->fail_at = 3;
    expect_status(snug_evaluate(m, &run, values, NULL, &err), SNUG_E_DEVICE, &err);
    expect_status(snug_evaluate(m, &run, values, NULL, &err), SNUG_E_DEVICE, &err);
    expect_text(err.text, "of no use to this engine any more");
    snug_model_destroy(m);
    blobs_end(&b);
    expect_ok(snug_device(*state, "cpu", NULL, &err), &err);
    *card() = fresh;
    float weights[MAX_WEIGHTS];
    size_t n;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(fit_blobs(*state, weights, &n, &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        gpu_test(test_training_gives_the_processors_weights),
        gpu_test(test_rows_without_a_kernel_run_on_the_host),
        gpu_test(test_plans_name_rows_that_run_on_the_host),
        gpu_test(test_runs_are_captured_and_replayed),
        gpu_test(test_no_run_is_captured_where_that_is_asked_for),
        gpu_test(test_recipes_are_made_on_the_device),
        gpu_test(test_weights_that_are_written_reach_the_device),
        gpu_test(test_the_next_batch_comes_while_a_step_runs),
        gpu_test(test_feeds_too_large_to_be_staged_come_in_pieces),
        gpu_test(test_batches_of_datasets_come_ahead_and_are_the_same),
        gpu_test(test_a_source_may_ask_the_model_it_feeds),
        gpu_test(test_a_bad_label_of_a_dataset_is_named_though_the_next_batch_is_there),
        gpu_test(test_nan_leaves_the_weights_as_they_were),
        gpu_test(test_labels_outside_of_the_classes_are_named),
        gpu_test(test_a_reset_is_made_only_when_asked_for),
        gpu_test(test_a_device_in_use_is_not_given_back),
        gpu_test(test_what_is_missing_is_said),
        gpu_test(test_a_library_that_had_no_memory_is_asked_again),
        gpu_test(test_a_card_that_fails_while_a_library_is_asked_is_lost),
        gpu_test(test_any_thread_may_ask_libraries),
        gpu_test(test_training_survives_any_failed_request),
        gpu_test(test_a_lost_device_poisons_its_engine_only),
        gpu_test(test_a_lost_device_says_so_until_it_is_opened_again),
        late_gpu_test(test_training_gives_the_processors_weights),
        late_gpu_test(test_no_run_is_captured_where_that_is_asked_for),
        late_gpu_test(test_the_next_batch_comes_while_a_step_runs),
        late_gpu_test(test_feeds_too_large_to_be_staged_come_in_pieces),
        late_gpu_test(test_batches_of_datasets_come_ahead_and_are_the_same),
        late_gpu_test(test_nan_leaves_the_weights_as_they_were),
    };
    return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
