/* test_train_model.c: a model between its runs: prediction, plans, weights in files, compiling
 * again, layers added later, torn weights, what is cached, and callbacks that run the model. */
#include "support/blobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = BLOB_ROWS, DIM = BLOB_DIM, CLASSES = BLOB_CLASSES };

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

static void test_a_list_of_weights_without_end_is_refused(void **state) {
    enum { HEADER = 400000 };
    static unsigned char raw[8 + HEADER];
    snug_error err;
    sn_test_dir dir;
    char path[256];
    memset(raw, ' ', sizeof raw);
    for (int i = 0; i < 8; i++)
        raw[i] = (unsigned char)((uint64_t)HEADER >> (8 * i));
    raw[8] = '{';
    raw[sizeof raw - 1] = '}';
    sn_test_dir_begin(&dir);
    sn_test_write_file(sn_test_path(&dir, "w.safetensors", path), raw, sizeof raw);
    snug_model *m = mlp(*state);
    expect_status(snug_model_load_weights(m, path, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "too long for the 20");
    snug_model_destroy(m);
    sn_test_dir_end(&dir);
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
        sn_fault_expect_told(*state, "snug_model_load_weights", status);
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
    expect_ok(sn_network_set_policy(m->network, &(sn_policy){variable, compute, false}, &err),
              &err);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_predict_gives_all_rows_in_order),
        engine_test(test_weights_travel_through_files),
        engine_test(test_a_list_of_weights_without_end_is_refused),
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
        engine_test(test_variables_may_have_another_dtype_than_computation),
    };
    return cmocka_run_group_tests_name("train_model", tests, NULL, NULL);
}
