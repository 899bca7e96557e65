/* test_long_arrays.c: an operation of a Keras file with an array of 10,000 numbers: what it
 * computes, that the array is no weight, that it stays through training and a new compilation, and
 * files whose arrays are ragged. What operations do with arrays is compared with Keras by
 * test_golden.c. Byte limit: 8 MiB. */
#include "support/files.h"

#include <snug/model.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, H = 100, W = 100, N = H * W };

static double number(int i) {
    return (i * 37 % 101) / 32.0 - 1.5;
}

/* x + array, then a Dense of one unit on the flattened result. `last` stands in place of the last
 * row of the array when it is not NULL. */
static char *model_text(const char *last) {
    char *text = malloc(40 * N), *at = text;
    at += sprintf(
        at,
        "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"
        "\"InputLayer\",\"name\":\"x\",\"config\":{\"name\":\"x\",\"batch_shape\":[null,%d,%d]},"
        "\"inbound_nodes\":[]},{\"module\":\"keras.src.ops.numpy\",\"class_name\":\"Add\","
        "\"config\":"
        "{\"name\":\"add\"},\"name\":\"add\",\"inbound_nodes\":[{\"args\":[{\"class_name\":"
        "\"__keras_tensor__\",\"config\":{\"shape\":[null,%d,%d],\"keras_history\":[\"x\",0,0]}},"
        "{\"class_name\":\"__numpy__\",\"config\":{\"value\":[",
        H, W, H, W);
    for (int i = 0; i < H; i++) {
        if (i == H - 1 && last) {
            at += sprintf(at, ",%s", last);
            break;
        }
        for (int k = 0; k < W; k++)
            at += sprintf(at, "%s%.17g%s",
                          k   ? ","
                          : i ? ",["
                              : "[",
                          number(i * W + k), k == W - 1 ? "]" : "");
    }
    strcpy(
        at,
        "],\"dtype\":\"float32\"}}],\"kwargs\":{}}]},{\"class_name\":\"Flatten\",\"config\":{"
        "\"name\":"
        "\"flatten\"},\"name\":\"flatten\",\"inbound_nodes\":[[[\"add\",0,0,{}]]]},{\"class_name\":"
        "\"Dense\",\"config\":{\"name\":\"dense\",\"units\":1,\"kernel_initializer\":\"ones\"},"
        "\"name\":"
        "\"dense\",\"inbound_nodes\":[[[\"flatten\",0,0,{}]]]}],\"input_layers\":[[\"x\",0,0]],"
        "\"output_layers\":[[\"dense\",0,0]]}}");
    return text;
}

static snug_status load(snug_engine *e, const char *last, snug_model **out, snug_error *err) {
    sn_test_dir d;
    char path[256], *text = model_text(last);
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    const snug_status status = snug_model_load(e, path, out, err);
    sn_test_dir_end(&d);
    free(text);
    return status;
}

static snug_status keep(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    (void)err;
    memcpy((float *)ctx + first_row, view->data, view->bytes);
    return SNUG_OK;
}

typedef struct {
    snug_feed *x, *y;
} feeds;

/* Row r of x is r everywhere; y is 0. */
static feeds make_feeds(snug_engine *e) {
    static float x[ROWS * N], y[ROWS];
    snug_error err;
    feeds f;
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (float)(i / N);
    const snug_type x_type = {SNUG_F32, 3, {ROWS, H, W}}, y_type = {SNUG_F32, 2, {ROWS, 1}};
    expect_ok(snug_feed_from_memory(e, &x_type, x, NULL, NULL, &f.x, &err), &err);
    expect_ok(snug_feed_from_memory(e, &y_type, y, NULL, NULL, &f.y, &err), &err);
    return f;
}

static void clear_feeds(feeds *f) {
    snug_feed_destroy(f->x);
    snug_feed_destroy(f->y);
}

/* Predictions less the bias are the sums of x + array over the kernel of ones. */
static void expect_sums(snug_model *m, const feeds *f) {
    snug_error err;
    float got[ROWS];
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += number(i);
    const snug_run_options o = {.x = f->x, .batch = 2};
    expect_ok(snug_predict(m, &o, keep, got, &err), &err);
    for (int r = 0; r < ROWS; r++)
        if (!(got[r] - (sum + (double)N * r) < 0.5 && got[r] - (sum + (double)N * r) > -0.5))
            fail_msg("row %d: %g, not %g", r, (double)got[r], sum + (double)N * r);
}

static void test_an_array_of_ten_thousand_numbers_is_read(void **state) {
    snug_error err;
    snug_model *m;
    expect_ok(load(*state, NULL, &m, &err), &err);
    feeds f = make_feeds(*state);
    expect_sums(m, &f);
    assert_int_equal(snug_model_n_weights(m), 2); /* kernel and bias of the Dense */
    clear_feeds(&f);
    snug_model_destroy(m);
}

static void test_a_long_array_stays_through_training_and_compilation(void **state) {
    snug_error err;
    snug_model *m;
    snug_fit_result result;
    expect_ok(load(*state, NULL, &m, &err), &err);
    feeds f = make_feeds(*state);
    for (int i = 0; i < 2; i++) {
        const snug_compile c = {.optimizer = i ? "adam:lr=0" : "sgd:lr=0", .loss = "mse"};
        expect_ok(snug_model_compile(m, &c, &err), &err);
        const snug_fit_options o = {.x = f.x, .y = f.y, .epochs = 2, .batch = ROWS};
        expect_ok(snug_fit(m, &o, &result, &err), &err);
        expect_sums(m, &f);
    }
    expect_ok(snug_model_reset_states(m, &err), &err);
    expect_sums(m, &f);
    clear_feeds(&f);
    snug_model_destroy(m);
}

static void test_ragged_arrays_are_refused(void **state) {
    static const char *const last[] = {"[1,2]", "7", "[]", "[[1],[2]]", "\"a\"", "null"};
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        snug_error err;
        snug_model *m;
        assert_int_not_equal(load(*state, last[i], &m, &err), SNUG_OK);
        if (!strstr(err.text, "operand"))
            fail_msg("%s: %s", last[i], err.text);
    }
}

static snug_status load_and_predict(snug_engine *e, void *ctx, snug_error *err) {
    snug_model *m;
    static float x[ROWS * N];
    float got[ROWS];
    snug_feed *feed = NULL;
    (void)ctx;
    SNUG_TRY(load(e, NULL, &m, err));
    const snug_type x_type = {SNUG_F32, 3, {ROWS, H, W}};
    snug_status status = snug_feed_from_memory(e, &x_type, x, NULL, NULL, &feed, err);
    const snug_run_options o = {.x = feed, .batch = 2};
    if (status == SNUG_OK)
        status = snug_predict(m, &o, keep, got, err);
    snug_feed_destroy(feed);
    snug_model_destroy(m);
    return status;
}

static void test_long_arrays_survive_failing_requests(void **state) {
    (void)state;
    sn_fault_sweep(load_and_predict, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_an_array_of_ten_thousand_numbers_is_read),
        engine_test(test_a_long_array_stays_through_training_and_compilation),
        engine_test(test_ragged_arrays_are_refused),
        cmocka_unit_test(test_long_arrays_survive_failing_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
