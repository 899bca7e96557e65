/* test_session_door.c: the public session of run.h, from a program's point of view: only public
 * headers, but for the fault hook. Byte limit: each test below 1 MiB. */
#include "support/support.h"
#include "support/text.h"

#include <snug/graph.h>
#include <snug/run.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float xs[8][2] = {{1, 0}, {0, 1}, {1, 1}, {2, 1}, {0, 2}, {3, 1}, {1, 3}, {2, 2}};

static snug_value op(snug_graph *g, const char *name, const char *attributes, const snug_value *in,
                     int n) {
    snug_error err;
    snug_value out;
    expect_ok(snug_graph_op(g, name, attributes, in, n, &out, 1, &err), &err);
    return out;
}

static snug_value add_input(snug_graph *g, int64_t rows) {
    snug_error err;
    snug_value x;
    expect_ok(snug_graph_input(g, "x", &(snug_type){SNUG_F32, 2, {rows, 2}}, &x, &err), &err);
    return x;
}

static snug_value add_variable(snug_graph *g, const char *name, int64_t columns) {
    snug_error err;
    snug_value w;
    const snug_variable_options ones = {.kind = SNUG_INIT_CONSTANT, .a = 1};
    const snug_type type = {SNUG_F32, 2, {2, columns}};
    expect_ok(snug_graph_variable(g, name, &type, &ones, &w, &err), &err);
    return w;
}

/* sum((x w)^2) and one sgd step of w with the parameter "rate". */
static snug_graph *training_graph(snug_engine *e, int64_t rows) {
    snug_error err;
    snug_graph *g;
    expect_ok(snug_graph_create(e, &g, &err), &err);
    const snug_value x = add_input(g, rows), w = add_variable(g, "w", 1);
    const snug_value y = op(g, "matmul", "", (snug_value[]){x, w}, 2);
    const snug_value squares = op(g, "square", "", &y, 1);
    const snug_value loss = op(g, "sum", "", &squares, 1);
    snug_value dw;
    expect_ok(snug_graph_gradients(g, loss, &w, 1, &dw, &err), &err);
    expect_ok(snug_graph_param(g, "rate", 0.001, &err), &err);
    (void)op(g, "sgd", "rate=p:rate momentum=0", (snug_value[]){w, dw}, 2);
    expect_ok(snug_graph_output(g, "loss", loss, &err), &err);
    return g;
}

/* y = x w, with w of `columns` columns. */
static snug_graph *prediction_graph(snug_engine *e, int64_t rows, int64_t columns) {
    snug_error err;
    snug_graph *g;
    expect_ok(snug_graph_create(e, &g, &err), &err);
    const snug_value x = add_input(g, rows), w = add_variable(g, "w", columns);
    const snug_value y = op(g, "matmul", "", (snug_value[]){x, w}, 2);
    expect_ok(snug_graph_output(g, "y", y, &err), &err);
    return g;
}

static snug_session *open_session(snug_engine *e, snug_graph *g, snug_session *share) {
    snug_error err;
    snug_session *s;
    expect_ok(snug_session_create(e, g, share, &s, &err), &err);
    snug_graph_destroy(g); /* the session has its own copy */
    return s;
}

static snug_feed *open_feed(snug_engine *e) {
    snug_error err;
    snug_feed *feed;
    const snug_type type = {SNUG_F32, 2, {8, 2}};
    expect_ok(snug_feed_from_memory(e, &type, xs, NULL, NULL, &feed, &err), &err);
    return feed;
}

static float scalar_of(const snug_session *s, const char *output) {
    snug_error err;
    snug_view view;
    expect_ok(snug_session_output(s, output, &view, &err), &err);
    return *(const float *)view.data;
}

/* --- running -------------------------------------------------------------------------------- */

static void test_session_feeds_from_the_row_asked_for(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, prediction_graph(e, 2, 1), NULL);
    snug_feed *x = open_feed(e);
    for (int64_t row = 0; row <= 6; row++) {
        snug_view y;
        expect_ok(snug_session_feed(s, "x", x, row, &err), &err);
        expect_ok(snug_session_run(s, &err), &err);
        expect_ok(snug_session_output(s, "y", &y, &err), &err);
        assert_true(((const float *)y.data)[0] == xs[row][0] + xs[row][1]);
        assert_true(((const float *)y.data)[1] == xs[row + 1][0] + xs[row + 1][1]);
    }
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

static snug_status fill_f64(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                            snug_error *err) {
    (void)ctx, (void)err;
    for (int64_t i = 0; i < 2 * n; i++)
        ((double *)dst->data)[i] = (double)xs[first + i / 2][i % 2];
    return SNUG_OK;
}

static void test_feed_of_another_dtype_allocates_when_bound(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, prediction_graph(e, 2, 1), NULL);
    snug_feed *x;
    snug_view y;
    expect_ok(snug_feed_from_callback(e, &(snug_type){SNUG_F64, 2, {8, 2}}, fill_f64, NULL, NULL,
                                      &x, &err),
              &err);
    expect_ok(snug_session_feed(s, "x", x, 3, &err), &err);
    sn_fault_memory(e, 0, true);
    expect_ok(snug_session_run(s, &err), &err);
    sn_fault_memory(e, -1, false);
    expect_ok(snug_session_output(s, "y", &y, &err), &err);
    assert_true(((const float *)y.data)[0] == xs[3][0] + xs[3][1]);
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

static void test_session_set_changes_the_next_run(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, training_graph(e, 8), NULL);
    snug_feed *x = open_feed(e);
    snug_view w;
    expect_ok(snug_session_feed(s, "x", x, 0, &err), &err);
    expect_ok(snug_session_variable(s, "w", &w, &err), &err);
    expect_ok(snug_session_set(s, "rate", 0, &err), &err);
    expect_ok(snug_session_run(s, &err), &err);
    assert_true(((const float *)w.data)[0] == 1.0f);
    const float first = scalar_of(s, "loss");
    expect_ok(snug_session_set(s, "rate", 0.001, &err), &err);
    expect_ok(snug_session_run(s, &err), &err);
    assert_true(((const float *)w.data)[0] < 1.0f);
    expect_ok(snug_session_run(s, &err), &err);
    assert_true(scalar_of(s, "loss") < first);
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

static void test_session_variable_can_be_written(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, prediction_graph(e, 8, 1), NULL);
    snug_feed *x = open_feed(e);
    snug_view w, y;
    expect_ok(snug_session_feed(s, "x", x, 0, &err), &err);
    expect_ok(snug_session_variable(s, "w", &w, &err), &err);
    ((float *)w.data)[0] = 5;
    ((float *)w.data)[1] = 0;
    expect_ok(snug_session_run(s, &err), &err);
    expect_ok(snug_session_output(s, "y", &y, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(((const float *)y.data)[i] == 5 * xs[i][0]);
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

static int always(void *ctx) {
    (*(int *)ctx)++;
    return 1;
}

static void test_session_interrupt_leaves_variables(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, training_graph(e, 8), NULL);
    snug_feed *x = open_feed(e);
    snug_view w;
    int asked = 0;
    expect_ok(snug_session_feed(s, "x", x, 0, &err), &err);
    snug_session_interrupt(s, always, &asked);
    expect_status(snug_session_run(s, &err), SNUG_E_INTERRUPTED, &err);
    assert_int_equal(asked, 1);
    expect_ok(snug_session_variable(s, "w", &w, &err), &err);
    assert_true(((const float *)w.data)[0] == 1.0f);
    snug_session_interrupt(s, NULL, NULL);
    expect_ok(snug_session_run(s, &err), &err);
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

/* --- sharing -------------------------------------------------------------------------------- */

static void test_sessions_share_variables_of_one_name(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *train = open_session(e, training_graph(e, 4), NULL);
    snug_session *predict = open_session(e, prediction_graph(e, 8, 1), train);
    snug_feed *x = open_feed(e);
    snug_view a, b, y;
    expect_ok(snug_session_variable(train, "w", &a, &err), &err);
    expect_ok(snug_session_variable(predict, "w", &b, &err), &err);
    assert_ptr_equal(a.data, b.data);
    expect_ok(snug_session_feed(train, "x", x, 0, &err), &err);
    expect_ok(snug_session_feed(predict, "x", x, 0, &err), &err);
    expect_ok(snug_session_run(train, &err), &err);
    expect_ok(snug_session_run(predict, &err), &err);
    expect_ok(snug_session_output(predict, "y", &y, &err), &err);
    assert_true(((const float *)y.data)[0] == ((const float *)a.data)[0]); /* xs[0] is (1, 0) */
    snug_session_destroy(train); /* the first may go before the second */
    expect_ok(snug_session_run(predict, &err), &err);
    snug_session_destroy(predict);
    snug_feed_destroy(x);
}

/* A session that cannot be made (its w has another shape) leaves the one it shares with as it
 * was. */
static void test_failed_sharing_leaves_the_other_session_running(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *train = open_session(e, training_graph(e, 4), NULL), *other = NULL;
    snug_feed *x = open_feed(e);
    expect_ok(snug_session_feed(train, "x", x, 0, &err), &err);
    expect_ok(snug_session_run(train, &err), &err);
    const size_t held = snug_engine_bytes(e);
    snug_graph *g = prediction_graph(e, 8, 3);
    expect_status(snug_session_create(e, g, train, &other, &err), SNUG_E_SHAPE, &err);
    assert_null(other);
    snug_graph_destroy(g);
    assert_int_equal(snug_engine_bytes(e), held);
    expect_ok(snug_session_run(train, &err), &err);
    snug_session_destroy(train);
    snug_feed_destroy(x);
}

/* The same when the larger arena does not fit the budget. */
static void test_sharing_beyond_the_budget_leaves_the_other_session_running(void **unused) {
    (void)unused;
    snug_error err;
    snug_engine *e = sn_test_engine(1 << 20);
    snug_session *train = open_session(e, training_graph(e, 4), NULL), *other = NULL;
    snug_feed *x = open_feed(e);
    expect_ok(snug_session_feed(train, "x", x, 0, &err), &err);
    snug_graph *g = prediction_graph(e, 1 << 20, 1);
    expect_status(snug_session_create(e, g, train, &other, &err), SNUG_E_BUDGET, &err);
    snug_graph_destroy(g);
    expect_ok(snug_session_run(train, &err), &err);
    snug_session_destroy(train);
    snug_feed_destroy(x);
    sn_test_engine_end(e);
}

/* --- refusals and reports -------------------------------------------------------------------- */

static void test_unknown_names_are_refused_with_the_known_ones(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, training_graph(e, 4), NULL);
    snug_feed *x = open_feed(e);
    snug_view view = {0};
    expect_status(snug_session_feed(s, "z", x, 0, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "x");
    expect_status(snug_session_set(s, "speed", 1, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "rate");
    expect_status(snug_session_output(s, "gain", &view, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "loss");
    expect_status(snug_session_variable(s, "v", &view, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "'w'");
    assert_null(view.data);
    snug_session_destroy(s);
    snug_feed_destroy(x);
}

static void test_wrong_arguments_are_refused(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, prediction_graph(e, 4, 1), NULL), *other = NULL;
    snug_engine *stranger = sn_test_engine(0);
    snug_graph *g = prediction_graph(stranger, 4, 1);
    expect_status(snug_session_create(stranger, g, s, &other, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "another engine");
    expect_status(snug_session_create(stranger, NULL, NULL, &other, &err), SNUG_E_INVALID, &err);
    assert_null(other);
    snug_graph_destroy(g);
    sn_test_engine_end(stranger);
    snug_session_destroy(s);
}

static void test_keys_are_whole_numbers(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_graph *g;
    snug_value x, y;
    snug_view view;
    snug_feed *feed = open_feed(e);
    float first[16], second[16];
    expect_ok(snug_graph_create(e, &g, &err), &err);
    x = add_input(g, 8);
    expect_ok(snug_graph_key(g, "seed", 1, &err), &err);
    y = op(g, "dropout", "rate=0.5 key=p:seed", &x, 1);
    expect_ok(snug_graph_output(g, "y", y, &err), &err);
    snug_session *s = open_session(e, g, NULL);
    expect_ok(snug_session_feed(s, "x", feed, 0, &err), &err);
    expect_ok(snug_session_set(s, "seed", -2.9, &err), &err); /* -2 */
    expect_ok(snug_session_run(s, &err), &err);
    expect_ok(snug_session_output(s, "y", &view, &err), &err);
    memcpy(first, view.data, sizeof first);
    const double bad[] = {NAN, INFINITY, -INFINITY, 0x1p63, -0x1p63};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_status(snug_session_set(s, "seed", bad[i], &err), SNUG_E_INVALID, &err);
    expect_ok(snug_session_set(s, "seed", -2, &err), &err);
    expect_ok(snug_session_run(s, &err), &err);
    memcpy(second, view.data, sizeof second);
    assert_memory_equal(first, second, sizeof first);
    expect_ok(snug_session_set(s, "seed", 7, &err), &err);
    expect_ok(snug_session_run(s, &err), &err);
    assert_true(memcmp(first, view.data, sizeof first) != 0);
    snug_session_destroy(s);
    snug_feed_destroy(feed);
}

static void test_feeds_that_do_not_fit_are_refused(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, training_graph(e, 4), NULL);
    snug_feed *x = open_feed(e), *wide;
    expect_status(snug_session_feed(s, "x", x, 5, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "takes 4 rows from row 5 on; the feed has 8");
    expect_status(snug_session_feed(s, "x", x, -1, &err), SNUG_E_DATA, &err);
    expect_ok(snug_feed_open(e, "zeros:8x3", &wide, &err), &err);
    expect_status(snug_session_feed(s, "x", wide, 0, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "f32[4,2]");
    expect_status(snug_session_run(s, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "input 'x' has no data");
    snug_feed_destroy(wide);
    snug_feed_destroy(x);
    snug_session_destroy(s);
}

static void test_session_prints_its_plan(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_session *s = open_session(e, training_graph(e, 4), NULL);
    sn_test_text text = {0};
    const snug_writer writer = sn_test_text_writer(&text);
    expect_ok(snug_session_print(s, &writer, &err), &err);
    expect_text(text.data, "sgd");
    char bytes[64];
    snprintf(bytes, sizeof bytes, "bytes %zu", snug_session_arena_bytes(s));
    expect_text(text.data, bytes);
    sn_test_text_clear(&text);
    snug_session_destroy(s);
}

static snug_status create_and_run(snug_engine *e, void *ctx, snug_error *err) {
    snug_graph *g = NULL;
    snug_session *s = NULL, *second = NULL;
    snug_feed *x = NULL;
    const snug_type type = {SNUG_F32, 2, {8, 2}}, kernel = {SNUG_F32, 2, {2, 1}};
    snug_value in[2], y;
    (void)ctx;
    snug_status status = snug_graph_create(e, &g, err);
    if (status == SNUG_OK)
        status = snug_graph_input(g, "x", &type, &in[0], err);
    if (status == SNUG_OK)
        status = snug_graph_variable(g, "w", &kernel, NULL, &in[1], err);
    if (status == SNUG_OK)
        status = snug_graph_op(g, "matmul", "", in, 2, &y, 1, err);
    if (status == SNUG_OK)
        status = snug_graph_output(g, "y", y, err);
    if (status == SNUG_OK)
        status = snug_feed_from_memory(e, &type, xs, NULL, NULL, &x, err);
    if (status == SNUG_OK)
        status = snug_session_create(e, g, NULL, &s, err);
    if (status == SNUG_OK)
        status = snug_session_create(e, g, s, &second, err);
    if (status == SNUG_OK)
        status = snug_session_feed(second, "x", x, 0, err);
    if (status == SNUG_OK)
        status = snug_session_run(second, err);
    snug_session_destroy(s);
    snug_session_destroy(second);
    snug_feed_destroy(x);
    snug_graph_destroy(g);
    return status;
}

static void test_session_survives_any_failed_request(void **unused) {
    (void)unused;
    sn_fault_sweep(create_and_run, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_session_feeds_from_the_row_asked_for),
        engine_test(test_feed_of_another_dtype_allocates_when_bound),
        engine_test(test_session_set_changes_the_next_run),
        engine_test(test_session_variable_can_be_written),
        engine_test(test_session_interrupt_leaves_variables),
        engine_test(test_sessions_share_variables_of_one_name),
        engine_test(test_failed_sharing_leaves_the_other_session_running),
        cmocka_unit_test(test_sharing_beyond_the_budget_leaves_the_other_session_running),
        engine_test(test_unknown_names_are_refused_with_the_known_ones),
        engine_test(test_wrong_arguments_are_refused),
        engine_test(test_keys_are_whole_numbers),
        engine_test(test_feeds_that_do_not_fit_are_refused),
        engine_test(test_session_prints_its_plan),
        cmocka_unit_test(test_session_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
