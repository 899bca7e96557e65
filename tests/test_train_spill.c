/* test_train_spill.c: a training whose optimizer waits in a file: its weights are those of one
 * without a budget, averages included; a disk that fails stops it cleanly, and loading weights
 * heals what it tore. Byte limit: 64 MiB. */
#include "support/files.h"
#include "train/model.h"

#include <snug/train.h>
#include <stdlib.h>
#include <string.h>

/* 64 -> 512 -> 2048 -> 3 with adam: slots of 4 MiB each. Without a file the middle layer's two
 * gradients are made within its update. */
static const char text[] =
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"wide\",\"layers\":["
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,64],\"name\":\"input\"}},"
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"first\",\"units\":512}},"
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"a\",\"units\":2048,\"activation\":\"relu\"}},"
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"b\",\"units\":3,\"activation\":\"softmax\"}}]"
    "},"
    "\"compile_config\":{\"loss\":\"sparse_categorical_crossentropy\",\"optimizer\":{\"class_"
    "name\":"
    "\"Adam\",\"config\":{\"learning_rate\":0.01,\"use_ema\":true,\"ema_momentum\":0.5}}}}";
enum { N_WEIGHTS = 64 * 512 + 512 + 512 * 2048 + 2048 + 2048 * 3 + 3 };

typedef struct {
    snug_engine *engine;
    snug_model *model;
    snug_feed *x, *y;
    sn_test_dir dir;
    char json[256];
} world;

static void begin_on(world *w, const snug_io *io) {
    snug_error err;
    *w = (world){.engine = NULL};
    expect_ok(
        snug_engine_create(&(snug_engine_options){.n_threads = 1, .io = io}, &w->engine, &err),
        &err);
    sn_test_dir_begin(&w->dir);
    sn_test_path(&w->dir, "wide.json", w->json);
    sn_test_write_file(w->json, text, sizeof text - 1);
    expect_ok(snug_model_load(w->engine, w->json, &w->model, &err), &err);
    expect_ok(snug_feed_open(w->engine, "normal:80x64@1", &w->x, &err), &err);
    expect_ok(snug_feed_open(w->engine, "labels:80@2@3", &w->y, &err), &err);
}

static void begin(world *w) {
    begin_on(w, NULL);
}

static void end(world *w) {
    snug_model_destroy(w->model);
    snug_feed_destroy(w->x);
    snug_feed_destroy(w->y);
    sn_test_engine_end(w->engine);
    sn_test_dir_end(&w->dir);
}

/* Half way between the smallest budgets with and without a file. */
static void set_budget(world *w) {
    snug_error err;
    size_t floors[2];
    for (int spills = 0; spills < 2; spills++) {
        snug_model_plan_info info;
        expect_ok(snug_spill(w->engine, spills ? w->dir.path : NULL, &err), &err);
        expect_ok(snug_model_plan(w->model,
                                  &(snug_plan_request){.batch = 32, .train = 1, .budget_bytes = 1},
                                  &info, &err),
                  &err);
        floors[spills] = info.floor_bytes;
        assert_int_equal(info.spilled_bytes > 0, spills);
    }
    assert_true(floors[1] + ((size_t)2 << 20) < floors[0]);
    expect_ok(snug_budget(w->engine, (floors[0] + floors[1]) / 2, &err), &err);
}

static snug_status fit(world *w, snug_error *err) {
    return snug_fit(w->model, &(snug_fit_options){.x = w->x, .y = w->y, .batch = 32, .epochs = 2},
                    NULL, err);
}

static void copy_weights(world *w, float *out) {
    snug_error err;
    size_t n = 0;
    for (size_t i = 0; i < snug_model_n_weights(w->model); i++) {
        snug_view view;
        expect_ok(snug_model_weight(w->model, i, NULL, &view, &err), &err);
        memcpy(out + n, view.data, view.bytes);
        n += view.bytes / sizeof *out;
    }
    assert_int_equal(n, N_WEIGHTS);
}

/* A sanitizer's own memory grows from call to call, and with it what a budget of the whole process
 * must be. */
static void skip_under_a_sanitizer(void) {
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
}

static void test_weights_and_averages_are_those_without_a_budget(void **state) {
    static float plain[N_WEIGHTS], spilled[N_WEIGHTS];
    (void)state;
    skip_under_a_sanitizer();
    world w;
    snug_error err;
    begin(&w);
    expect_ok(fit(&w, &err), &err);
    copy_weights(&w, plain);
    end(&w);
    begin(&w);
    set_budget(&w);
    expect_ok(fit(&w, &err), &err);
    uint32_t n_spilled = 0;
    for (uint32_t i = 0; i < sn_state_count(w.model->state); i++) {
        size_t offset;
        n_spilled += sn_state_file(w.model->state, i, &offset) != NULL;
    }
    assert_true(n_spilled > 0);
    copy_weights(&w, spilled);
    assert_memory_equal(plain, spilled, sizeof plain);
    expect_ok(fit(&w, &err), &err); /* goes on from the slots in the file */
    end(&w);
}

/* Some of the calls of a fit, spread over all of it. */
static void test_disk_that_fails_stops_the_fit_and_loading_heals_it(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    world w;
    snug_error err;
    char path[256];
    int n_torn = 0, n_stopped = 0;
    begin(&w);
    set_budget(&w);
    sn_fault_io(w.engine, INT64_MAX, SN_FAULT_EIO, false);
    expect_ok(fit(&w, &err), &err);
    const int64_t n_calls = sn_fault_io_requests(w.engine);
    sn_fault_io(w.engine, -1, SN_FAULT_EIO, false);
    sn_test_path(&w.dir, "w.safetensors", path);
    expect_ok(snug_model_save_weights(w.model, path, &err), &err);
    assert_true(n_calls > 100);
    for (int64_t k = 0; k < 12; k++) {
        sn_fault_io(w.engine, n_calls * k / 13 + k % 4, SN_FAULT_ENOSPC, false);
        const snug_status status = fit(&w, &err);
        const bool fired = sn_fault_fired(w.engine);
        sn_fault_io(w.engine, -1, SN_FAULT_EIO, false);
        expect_status(status, fired ? SNUG_E_IO : SNUG_OK, &err);
        n_stopped += fired;
        if (!sn_state_torn(w.model->state))
            continue;
        n_torn++;
        expect_status(fit(&w, &err), SNUG_E_TORN, &err);
        expect_ok(snug_model_load_weights(w.model, path, &err), &err);
    }
    assert_true(n_stopped > 8 && n_torn > 2);
    expect_ok(fit(&w, &err), &err);
    end(&w);
}

static int nearly_full(void *ctx, const char *path, snug_io_folder *out) {
    const int rc = sn_io_system.folder(ctx, path, out);
    out->free_bytes = 1 << 20;
    return rc;
}

/* By the plan as by the fit: neither promises a step that the other refuses. */
static void test_disk_without_room_is_told_before_the_first_step(void **state) {
    (void)state;
    skip_under_a_sanitizer();
    snug_io io = sn_io_system;
    io.folder = nearly_full;
    const snug_plan_request request = {.batch = 32, .train = 1};
    world w;
    snug_error err;
    snug_model_plan_info info;
    begin_on(&w, &io);
    set_budget(&w);
    expect_status(snug_model_plan(w.model, &request, &info, &err), SNUG_E_IO, &err);
    expect_text(err.text, "1048576 are free; free space on that disk");
    expect_status(fit(&w, &err), SNUG_E_IO, &err);
    expect_text(err.text, "1048576 are free; free space on that disk");
    end(&w);
    begin(&w);
    set_budget(&w);
    expect_ok(fit(&w, &err), &err);
    expect_ok(snug_model_plan(w.model, &request, &info, &err), &err);
    assert_true(info.spilled_bytes > 0);
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_and_averages_are_those_without_a_budget),
        cmocka_unit_test(test_disk_without_room_is_told_before_the_first_step),
        cmocka_unit_test(test_disk_that_fails_stops_the_fit_and_loading_heals_it),
    };
    return cmocka_run_group_tests_name("train_spill", tests, NULL, NULL);
}
