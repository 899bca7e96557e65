/* test_train_memory.c: what training real models does to memory: the arena is used to the byte and
 * nothing in it matters before it is written; a thousand steps request nothing; every failed
 * request and call is survived, with validation, callbacks and the search for NaN on the way. */
#include "support/arena.h"
#include "support/support.h"

#include "memory/idle.h"
#include "train/model.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static snug_model *load(snug_engine *e, const char *name) {
    snug_error err;
    snug_model *m;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", SNUG_TEST_DATA, name);
    expect_ok(snug_model_load(e, path, &m, &err), &err);
    return m;
}

static snug_feed *open_feed(snug_engine *e, const char *source) {
    snug_error err;
    snug_feed *feed;
    expect_ok(snug_feed_open(e, source, &feed, &err), &err);
    return feed;
}

/* A recipe of n rows of the type: labels for integers, else numbers. */
static snug_feed *feed_for(snug_engine *e, const snug_type *t, int64_t n, int64_t n_classes) {
    char text[256];
    int at = snprintf(text, sizeof text, "%s:%lld", sn_dtype_is_int(t->dtype) ? "labels" : "normal",
                      (long long)n);
    for (int i = 1; i < t->rank; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "x%lld", (long long)t->dims[i]);
    at += snprintf(text + at, sizeof text - (size_t)at, "@3");
    if (sn_dtype_is_int(t->dtype))
        snprintf(text + at, sizeof text - (size_t)at, "@%lld", (long long)n_classes);
    return open_feed(e, text);
}

/* --- the arena -------------------------------------------------------------------------------- */
/* One training step of a model in an arena of the test's own, poisoned before. */
typedef struct {
    snug_model *model;
    sn_model_step *step;
    sn_rows x, y;
    sn_executor *executor;
} rig;

static void rig_begin(rig *r, snug_model *m, int64_t batch) {
    snug_error err;
    snug_type target;
    *r = (rig){.model = m};
    const sn_weighting none = {.n_weights = 0};
    expect_ok(sn_model_step_weighted(m, SN_STEP_TRAIN, batch, &none, &r->step, &err), &err);
    expect_ok(sn_model_add_homes(m, &err), &err);
    snug_model_target(m, &target);
    const snug_type *output = snug_model_output(m);
    /* Indices into an embedding are below 2 in every model here. */
    r->x = (sn_rows){.feed = feed_for(m->engine, snug_model_input(m), batch, 2), .n = batch};
    r->y = (sn_rows){.feed = feed_for(m->engine, &target, batch, output->dims[output->rank - 1]),
                     .n = batch};
}

static void rig_end(rig *r) {
    snug_feed_destroy(r->x.feed);
    snug_feed_destroy(r->y.feed);
}

static void rig_run(rig *r, int poison) {
    snug_error err;
    const sn_device *const devices[1] = {&r->model->device.device};
    const sn_executor_options options = {.guard = true, .poison = poison, .poison_set = true};
    expect_ok(sn_executor_create(r->model->engine, r->model->state, devices, 1, &options,
                                 &r->executor, &err),
              &err);
    sn_session *s;
    expect_ok(sn_executor_add(r->executor, r->step->plan, &s, &err), &err);
    expect_ok(sn_executor_prepare(r->executor, &err), &err);
    sn_session_bind_input(s, r->step->x[0], (sn_input_binding){.ctx = &r->x, .fill = sn_rows_fill});
    sn_session_bind_input(s, r->step->y[0], (sn_input_binding){.ctx = &r->y, .fill = sn_rows_fill});
    r->step->session = s;
    sn_model_set_params(r->model, r->step, 9, NULL);
    r->step->session = NULL;
    expect_ok(sn_session_run(s, &err), &err);
}

/* Weights and slots as they start. */
static void start_anew(snug_model *m) {
    snug_error err;
    for (uint32_t i = 0; i < sn_state_count(m->state); i++)
        expect_ok(sn_state_restart(m->state, i, &err), &err);
}

/* All bytes of weights and slots in one number (FNV-1a). */
static uint64_t state_hash(snug_model *m) {
    snug_error err;
    uint64_t h = 1469598103934665603u;
    for (uint32_t i = 0; i < sn_state_count(m->state); i++) {
        snug_view v;
        expect_ok(sn_state_view(m->state, i, &v, &err), &err);
        for (size_t k = 0; k < v.bytes; k++)
            h = (h ^ ((const unsigned char *)v.data)[k]) * 1099511628211u;
    }
    return h;
}

/* Two steps from the same state, with another poison each. */
static void expect_exact(snug_model *m, const char *name, int64_t batch) {
    rig r;
    rig_begin(&r, m, batch);
    const size_t bytes = r.step->plan->memories[SN_MEM_FIRST_ARENA].bytes;
    unsigned char *written = calloc(bytes, 1);
    assert_non_null(written);
    uint64_t states[2];
    for (int k = 0; k < 2; k++) {
        const int poison = k ? 0xA5 : 0x5A;
        start_anew(m);
        const uint64_t before = state_hash(m);
        rig_run(&r, poison);
        states[k] = state_hash(m);
        assert_true(states[k] != before);
        assert_int_equal(sn_executor_arena(r.executor, SN_MEM_FIRST_ARENA).bytes, bytes);
        sn_arena_mark(r.executor, poison, written);
        sn_executor_destroy(r.executor);
    }
    sn_arena_expect_exact(r.step->plan, written, name);
    free(written);
    assert_true(states[0] == states[1]); /* what the arena held before is never read */
    rig_end(&r);
}

static void test_arena_of_real_models_is_used_to_the_byte(void **state) {
    static const char *const names[] = {
        "../examples/models/mnist_mlp.json",     "../examples/models/blobs_mlp.json",
        "../examples/models/shapes_cnn.json",    "golden/cnn_f32/model.json",
        "golden/batchnorm_dense_f32/model.json", "golden/embedding_f32/model.json",
        "golden/layernorm_f32/model.json",       "golden/conv_groups_f32/model.json",
    };
    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        snug_engine *e;
        const snug_engine_options options = {.n_threads = n_threads};
        expect_ok(snug_engine_create(&options, &e, NULL), NULL);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            snug_model *m = load(e, names[i]);
            for (int64_t batch = 1; batch <= 9; batch += 4)
                expect_exact(m, names[i], batch);
            snug_model_destroy(m);
        }
        sn_test_engine_end(e);
    }
}

/* --- a thousand steps ------------------------------------------------------------------------ */
typedef struct {
    snug_engine *engine;
    int64_t n;
    int64_t requests[2]; /* through src/memory, after steps 2 and 1,000 */
    size_t heap[2];      /* of the C library in use, the same */
} watch;

static snug_status watch_step(void *ctx, const snug_progress *p, snug_error *err) {
    (void)p;
    (void)err;
    watch *w = ctx;
    w->n++;
    if (w->n != 2 && w->n != 1000)
        return SNUG_OK;
    w->requests[w->n == 1000] = sn_fault_memory_requests(w->engine);
    w->heap[w->n == 1000] = mallinfo2().uordblks;
    return SNUG_OK;
}

/* Convolution, normalisation, pooling, dropout, dense: every family of kernels that has prepared
 * objects. Two threads, files of weights, shuffled rows, a remainder and validation. */
static void test_a_thousand_steps_request_nothing(void **unused) {
    (void)unused;
    static const char *const layers[][2] = {
        {"Conv2D", "filters=4 kernel_size=3 padding=same activation=relu"},
        {"BatchNormalization", ""},
        {"MaxPooling2D", ""},
        {"Conv2D", "filters=4 kernel_size=3 groups=2 use_bias=false"},
        {"AveragePooling2D", "padding=same"},
        {"Flatten", ""},
        {"LayerNormalization", ""},
        {"Dropout", "rate=0.25"},
        {"Dense", "units=8 activation=gelu"},
        {"Dense", "units=4 activation=softmax"},
    };
    snug_error err;
    snug_engine *e;
    snug_model *m;
    snug_fit_result r;
    expect_ok(snug_engine_create(&(snug_engine_options){.n_threads = 2}, &e, &err), &err);
    const snug_type image = {SNUG_F32, 3, {8, 8, 3}};
    expect_ok(snug_model_create(e, NULL, &image, &m, &err), &err);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        expect_ok(snug_model_add(m, layers[i][0], layers[i][1], &err), &err);
    const snug_compile compile = {
        .optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = "accuracy"};
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    snug_feed *x = open_feed(e, "normal:50x8x8x3@1"), *y = open_feed(e, "labels:50@2@4");
    watch w = {.engine = e};
    const snug_callback cb = {.ctx = &w, .on_step_end = watch_step};
    const snug_fit_options fit = {.x = x,
                                  .y = y,
                                  .epochs = 100,
                                  .batch = 4, /* 40 rows to train on, 10 to validate: 4, 4, 2 */
                                  .shuffle = 1,
                                  .validation_split = 0.2,
                                  .callbacks = &cb,
                                  .n_callbacks = 1};
    sn_fault_memory(e, INT64_MAX, false); /* counts */
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    sn_fault_memory(e, -1, false);
    assert_int_equal(w.n, 1000);
    assert_true(w.requests[0] > 0);
    assert_int_equal(w.requests[1], w.requests[0]);
    /* Both 0 under AddressSanitizer. Less, at times: threads of the test before end late. */
    assert_in_range(w.heap[1], 0, w.heap[0]);
    snug_model_destroy(m);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    sn_test_engine_end(e);
}

/* --- the search for a NaN -------------------------------------------------------------------- */
/* Gives the most memory ever held up to the step that failed. */
static size_t expect_nan_found(snug_engine *e) {
    static float rows[64][32], targets[64];
    snug_error err;
    char text[300];
    snug_model *m;
    snug_feed *x, *y;
    const snug_type x_type = {SNUG_F32, 2, {64, 32}}, y_type = {SNUG_F32, 2, {64, 1}};
    for (int i = 0; i < 64; i++)
        rows[i][0] = 100;
    expect_ok(snug_feed_from_memory(e, &x_type, rows, NULL, NULL, &x, &err), &err);
    expect_ok(snug_feed_from_memory(e, &y_type, targets, NULL, NULL, &y, &err), &err);
    expect_ok(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 1, {32}}, &m, &err), &err);
    for (int i = 0; i < 6; i++)
        expect_ok(
            snug_model_add(m, "Dense", "units=256 activation=exponential use_bias=false", &err),
            &err);
    expect_ok(snug_model_add(m, "Dense", "units=1", &err), &err);
    expect_ok(snug_model_compile(m, &(snug_compile){.optimizer = "sgd"}, &err), &err);
    const snug_fit_options fit = {.x = x, .y = y, .batch = 64};
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_NUMERIC, &err);
    const size_t peak = snug_engine_peak_bytes(e);
    expect_ok(snug_model_find_nan(m, text, sizeof text, &err), &err);
    expect_text(text, "operator exp");
    snug_model_destroy(m);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    return peak;
}

/* A budget that is enough for the step is enough to find what went wrong in it. */
static void test_nan_is_found_within_the_budget_of_the_step(void **unused) {
    (void)unused;
    snug_engine *roomy = sn_test_engine(0);
    const size_t peak = expect_nan_found(roomy);
    sn_test_engine_end(roomy);
    snug_engine *tight = sn_test_engine(peak);
    assert_int_equal(expect_nan_found(tight), peak);
    sn_test_engine_end(tight);
}

/* Trains a model for which the floor has been asked, with a remainder and validation, within it. */
static void train_at_the_floor(const char *name, const char *x_recipe, const char *y_recipe) {
    snug_engine *e = sn_test_engine(0);
    snug_model *m = load(e, name);
    snug_feed *x = open_feed(e, x_recipe), *y = open_feed(e, y_recipe);
    snug_model_plan_info info;
    snug_error err;
    const snug_plan_request request = {.batch = 6, .train = 1, .budget_bytes = 1};
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    assert_false(info.fits);
    expect_ok(snug_budget(e, info.floor_bytes, &err), &err);
    const snug_fit_options fit = {.x = x, .y = y, .batch = 6, .validation_split = 0.25};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_model_destroy(m);
    sn_test_engine_end(e);
}

/* AddressSanitizer's own memory grows between the question and the training. */
static void test_the_floor_is_enough_for_a_remainder_and_validation(void **unused) {
    (void)unused;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    train_at_the_floor("../examples/models/resnet20.json", "normal:12x32x32x3@1", "labels:12@2@10");
    train_at_the_floor("../examples/models/shapes_cnn.json", "normal:12x32x32x3@1",
                       "labels:12@2@8");
}

/* A label that is no class, in the last slice of a step with normalised batches, leaves weights,
 * slots and moving means as they were. */
static void test_a_bad_label_in_the_last_slice_loses_nothing(void **unused) {
    (void)unused;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    enum { BATCH = 1024 };
    static int32_t labels[BATCH];
    const snug_type type = {.dtype = SNUG_I32, .rank = 1, .dims = {BATCH}};
    snug_engine *e = sn_test_engine(0);
    snug_model *m = load(e, "golden/cnn_f32/model.json");
    snug_feed *x = open_feed(e, "normal:1024x7x6x3@1"), *y;
    snug_model_plan_info info;
    snug_error err;
    snug_plan_request request = {.batch = BATCH, .train = 1, .budget_bytes = 1};
    expect_ok(snug_feed_from_memory(e, &type, labels, NULL, NULL, &y, &err), &err);
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    request.budget_bytes = info.floor_bytes;
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    assert_true(info.fits && info.slices > 1);
    expect_ok(snug_budget(e, request.budget_bytes, &err), &err);
    const snug_fit_options fit = {.x = x, .y = y, .batch = BATCH};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    const uint64_t before = state_hash(m);
    labels[BATCH - 1] = 99;
    expect_status(snug_fit(m, &fit, NULL, &err), SNUG_E_DATA, &err);
    assert_true(state_hash(m) == before);
    labels[BATCH - 1] = 1;
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    assert_true(state_hash(m) != before);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_model_destroy(m);
    sn_test_engine_end(e);
}

/* --- faults ----------------------------------------------------------------------------------- */
/* Six callbacks at once. */
typedef struct {
    snug_callback made[6];
    size_t n;
    snug_feed *x, *y;
} crowd;

static double same_rate(void *ctx, int epoch, double current) {
    (void)ctx;
    (void)epoch;
    return current;
}

static snug_status evaluate_inside(void *ctx, const snug_progress *p, snug_error *err) {
    const crowd *c = ctx;
    double values[2];
    return snug_evaluate(p->model, &(snug_run_options){.x = c->x, .y = c->y, .batch = 5}, values,
                         NULL, err);
}

static snug_status gather_crowd(snug_engine *e, const sn_test_dir *dir, crowd *c, snug_error *err) {
    char path[256];
    snug_history *history;
    c->made[c->n++] = (snug_callback){.ctx = c, .on_epoch_end = evaluate_inside};
    SNUG_TRY(snug_callback_history(e, &history, &c->made[c->n], err));
    c->n++;
    SNUG_TRY(snug_callback_early_stopping(e, "val_loss", 3, 0, &c->made[c->n], err));
    c->n++;
    SNUG_TRY(snug_callback_schedule(e, same_rate, NULL, &c->made[c->n], err));
    c->n++;
    sn_test_path(dir, "best.safetensors", path);
    SNUG_TRY(snug_callback_best_weights(e, "val_loss", path, &c->made[c->n], err));
    c->n++;
    sn_test_path(dir, "log.csv", path);
    SNUG_TRY(snug_callback_csv(e, path, &c->made[c->n], err));
    c->n++;
    return SNUG_OK;
}

static snug_status make_net(snug_engine *e, snug_model **out, snug_error *err) {
    static const char *const layers[][2] = {
        {"Conv2D", "filters=2 kernel_size=2"},
        {"BatchNormalization", ""},
        {"MaxPooling2D", ""},
        {"Flatten", ""},
        {"Dropout", "rate=0.5"},
        {"Dense", "units=1"},
    };
    snug_model *m;
    SNUG_TRY(snug_model_create(e, NULL, &(snug_type){SNUG_F32, 3, {3, 3, 1}}, &m, err));
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < sizeof layers / sizeof *layers && status == SNUG_OK; i++)
        status = snug_model_add(m, layers[i][0], layers[i][1], err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

static snug_status train(snug_engine *e, const sn_test_dir *dir, snug_model *m, crowd *c,
                         snug_error *err) {
    snug_model_plan_info info;
    SNUG_TRY(snug_model_plan(m, &(snug_plan_request){.batch = 3, .train = 1}, &info, err));
    SNUG_TRY(gather_crowd(e, dir, c, err));
    const snug_fit_options fit = {.x = c->x,
                                  .y = c->y,
                                  .epochs = 2,
                                  .batch = 3,
                                  .shuffle = 1,
                                  .validation_split = 0.4,
                                  .callbacks = c->made,
                                  .n_callbacks = c->n};
    return snug_fit(m, &fit, NULL, err);
}

/* Plan, fit with validation and all callbacks; then data that are bad, and the search for them. */
static snug_status train_in_company(snug_engine *e, void *ctx, snug_error *err) {
    crowd c = {.n = 0};
    snug_model *m = NULL;
    snug_feed *bad = NULL;
    static const float nan[1] = {NAN};
    char text[256];
    snug_status status = snug_feed_open(e, "normal:9x3x3x1@1", &c.x, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, "normal:9x1@2", &c.y, err);
    if (status == SNUG_OK)
        status = make_net(e, &m, err);
    if (status == SNUG_OK)
        status = train(e, ctx, m, &c, err);
    if (status == SNUG_OK)
        status =
            snug_feed_from_memory(e, &(snug_type){SNUG_F32, 2, {1, 1}}, nan, NULL, NULL, &bad, err);
    if (status == SNUG_OK) {
        snug_feed *one = NULL;
        status = snug_feed_open(e, "normal:1x3x3x1@1", &one, err);
        if (status == SNUG_OK)
            status = snug_fit(m, &(snug_fit_options){.x = one, .y = bad}, NULL, err);
        if (status == SNUG_E_NUMERIC)
            status = snug_model_find_nan(m, text, sizeof text, err);
        snug_feed_destroy(one);
    }
    for (size_t i = 0; i < c.n; i++)
        if (c.made[i].destroy)
            c.made[i].destroy(c.made[i].ctx);
    snug_model_destroy(m);
    snug_feed_destroy(bad);
    snug_feed_destroy(c.x);
    snug_feed_destroy(c.y);
    return status;
}

static void test_training_in_company_survives_any_failed_request(void **state) {
    (void)state;
    sn_test_dir dir;
    sn_test_dir_begin(&dir);
    sn_fault_sweep(train_in_company, &dir);
    sn_test_dir_end(&dir);
}

static void test_training_in_company_survives_any_failed_call(void **state) {
    (void)state;
    sn_test_dir dir;
    sn_test_dir_begin(&dir);
    sn_fault_sweep_io(train_in_company, &dir);
    sn_test_dir_end(&dir);
}

/* --- the arena of an idle model --------------------------------------------------------------- */
static snug_status ignore_rows(void *ctx, int64_t first, const snug_view *rows, snug_error *err) {
    (void)ctx, (void)first, (void)rows, (void)err;
    return SNUG_OK;
}

static void predict_some(snug_model *m) {
    snug_error err;
    snug_feed *x = feed_for(m->engine, snug_model_input(m), 6, 2);
    const snug_run_options o = {.x = x, .batch = 6};
    expect_ok(snug_predict(m, &o, ignore_rows, NULL, &err), &err);
    snug_feed_destroy(x);
}

/* Who has no room takes it: the model makes another one when it runs again, and nothing is left
 * over. */
static void test_a_model_runs_on_whose_arena_another_one_took(void **unused) {
    (void)unused;
    snug_engine *e = sn_test_engine(0);
    snug_model *m = load(e, "golden/dense_linear_f32/model.json");
    predict_some(m);
    const sn_executor *x = m->executor;
    const size_t held = snug_engine_bytes(e);
    for (int i = 0; i < 2; i++) {
        assert_true(sn_idle_give(e, NULL));
        predict_some(m);
        assert_ptr_equal(m->executor, x);
        assert_int_equal(snug_engine_bytes(e), held);
    }
    snug_model_destroy(m);
    sn_test_engine_end(e);
}

/* --- the process ------------------------------------------------------------------------------ */
/* The plan of a small model, in an engine of its own, as if for another process. */
static snug_model_plan_info plan_anew(size_t budget) {
    snug_engine *e = sn_test_engine(0);
    snug_model *m = load(e, "golden/dense_linear_f32/model.json");
    snug_model_plan_info info;
    snug_error err;
    const snug_plan_request request = {.batch = 6, .train = 1, .budget_bytes = budget};
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    snug_model_destroy(m);
    sn_test_engine_end(e);
    return info;
}

/* The system moves a process by some pages from run to run: a floor that was told runs all the same;
 * where the program around Snug has become larger than that, it is refused. */
static void test_a_floor_runs_where_the_process_is_some_pages_larger(void **unused) {
    (void)unused;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    const size_t pages = (size_t)48 << 10, more = (size_t)1 << 20;
    (void)plan_anew(1); /* what comes with the first use is there */
    const size_t floor = plan_anew(1).floor_bytes;
    char *foreign = malloc(more);
    assert_non_null(foreign);
    assert_true(plan_anew(floor).fits);
    assert_false(plan_anew(floor - ((size_t)512 << 10)).fits);
    memset(foreign, 1, pages);
    assert_true(plan_anew(floor).fits);
    memset(foreign, 1, more);
    assert_false(plan_anew(floor).fits);
    free(foreign);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_of_real_models_is_used_to_the_byte),
        cmocka_unit_test(test_a_thousand_steps_request_nothing),
        cmocka_unit_test(test_nan_is_found_within_the_budget_of_the_step),
        cmocka_unit_test(test_the_floor_is_enough_for_a_remainder_and_validation),
        cmocka_unit_test(test_a_bad_label_in_the_last_slice_loses_nothing),
        cmocka_unit_test(test_a_floor_runs_where_the_process_is_some_pages_larger),
        cmocka_unit_test(test_a_model_runs_on_whose_arena_another_one_took),
        cmocka_unit_test(test_training_in_company_survives_any_failed_request),
        cmocka_unit_test(test_training_in_company_survives_any_failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
