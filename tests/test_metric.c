/* test_metric.c: metrics as sums: an example of weight 2 counts as two examples, one of weight 0
 * not at all, and cutting a batch in two gives the same sums; and reductions of losses. The values
 * themselves are Keras' (test_golden). */
#include "support/support.h"

#include "exec/exec.h"
#include "nn/metric.h"
#include "nn/objective.h"

#include <math.h>
#include <string.h>

enum { ROWS = 6, CLASSES = 3, MAX_SUMS = 1300 };

static const double scores[ROWS][CLASSES] = {{0.1, 0.7, 0.2}, {0.5, 0.25, 0.25}, {0.3, 0.3, 0.4},
                                             {0.0, 1.0, 0.0}, {0.2, 0.2, 0.6},   {0.9, 0.05, 0.05}};
static const double onehot[ROWS][CLASSES] = {{0, 1, 0}, {0, 0, 1}, {0, 0, 1},
                                             {1, 0, 0}, {0, 1, 0}, {1, 0, 0}};
static const double weights[ROWS] = {1, 2, 0, 1, 1, 3};

/* Rows of the table, each as often as it says. */
typedef struct {
    int n, row[16];
} pick;

typedef struct {
    const double *data;
    int64_t width;
    const pick *rows;
} source;

static snug_status fill_rows(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                             snug_error *err) {
    const source *s = ctx;
    (void)err;
    for (int64_t i = 0; i < n; i++)
        memcpy((double *)dst->data + i * s->width, s->data + s->rows->row[first + i] * s->width,
               (size_t)s->width * sizeof(double));
    return SNUG_OK;
}

static void add_sums(snug_engine *e, const sn_metric *m, const pick *rows, bool weighted,
                     double *sums) {
    snug_error err;
    sn_graph *g;
    sn_state *none;
    sn_value y_pred, y_true, weight = SN_NO_VALUE;
    double part[MAX_SUMS];
    const snug_type t = {SNUG_F64, 2, {rows->n, CLASSES}}, w = {SNUG_F64, 1, {rows->n}};
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_state_create(e, &none, &err), &err);
    expect_ok(sn_graph_input(g, "p", &t, &y_pred, &err), &err);
    expect_ok(sn_graph_input(g, "y", &t, &y_true, &err), &err);
    if (weighted)
        expect_ok(sn_graph_input(g, "w", &w, &weight, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value out = sn_metric_build(&b, m, y_true, y_pred, weight);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "sums", out, &err), &err);
    const snug_type type = *sn_graph_type(g, out);
    assert_int_equal(sn_type_count(&type), m->n_sums);
    source p = {&scores[0][0], CLASSES, rows}, y = {&onehot[0][0], CLASSES, rows},
           s = {weights, 1, rows};
    const sn_input_binding inputs[3] = {{.ctx = &p, .fill = fill_rows},
                                        {.ctx = &y, .fill = fill_rows},
                                        {.ctx = &s, .fill = fill_rows}};
    snug_view view = {.data = part, .bytes = (size_t)m->n_sums * sizeof *part, .type = type};
    const sn_naive_options options = {.inputs = inputs, .outputs = &view};
    expect_ok(sn_naive_run(e, g, none, &options, &err), &err);
    for (int64_t i = 0; i < m->n_sums; i++)
        sums[i] += part[i];
    sn_state_destroy(none);
    sn_graph_destroy(g);
}

static const char *const metrics[] = {
    "categorical_accuracy",
    "equality",
    "top_k_categorical_accuracy:k=2",
    "mae",
    "root_mean_squared_error",
    "precision:thresholds=0.3",
    "recall:class_id=1",
    "true_negatives",
    "auc",
    "auc:curve=pr,num_thresholds=7",
    "auc:multi_label=true",
    "sensitivity_at_specificity:specificity=0.5",
    "f1_score:average=weighted",
    "fbeta_score:average=micro,beta=2,threshold=0.25",
    "one_hot_mean_io_u:num_classes=3",
    "one_hot_io_u:num_classes=3,target_class_ids=[0,2],ignore_class=1",
    "r2_score",
};

static void test_weights_count_examples_more_than_once_or_never(void **state) {
    static const pick each = {ROWS, {0, 1, 2, 3, 4, 5}}, often = {8, {0, 1, 1, 3, 4, 5, 5, 5}};
    const snug_type t = {SNUG_F64, 2, {-1, CLASSES}};
    snug_error err;
    sn_loss loss;
    sn_metric m;
    expect_ok(sn_loss_parse("mse", &loss, &err), &err);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        double a[MAX_SUMS] = {0}, b[MAX_SUMS] = {0};
        expect_ok(sn_metric_parse(metrics[i], &loss, &t, &m, &err), &err);
        assert_true(m.n_sums <= MAX_SUMS);
        add_sums(*state, &m, &each, true, a);
        add_sums(*state, &m, &often, false, b);
        for (int64_t k = 0; k < m.n_sums; k++)
            assert_true(fabs(a[k] - b[k]) < 1e-12);
        assert_true(fabs(sn_metric_finish(&m, a) - sn_metric_finish(&m, b)) < 1e-12);
        assert_true(isfinite(sn_metric_finish(&m, a)));
    }
}

static void test_sums_do_not_depend_on_the_cut_into_batches(void **state) {
    static const pick all = {ROWS, {0, 1, 2, 3, 4, 5}}, head = {4, {0, 1, 2, 3}},
                      tail = {2, {4, 5}};
    const snug_type t = {SNUG_F64, 2, {-1, CLASSES}};
    snug_error err;
    sn_loss loss;
    sn_metric m;
    expect_ok(sn_loss_parse("mse", &loss, &err), &err);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        double a[MAX_SUMS] = {0}, b[MAX_SUMS] = {0};
        expect_ok(sn_metric_parse(metrics[i], &loss, &t, &m, &err), &err);
        add_sums(*state, &m, &all, false, a);
        add_sums(*state, &m, &head, false, b);
        add_sums(*state, &m, &tail, false, b);
        for (int64_t k = 0; k < m.n_sums; k++)
            assert_true(fabs(a[k] - b[k]) < 1e-12);
    }
}

/* The loss of all rows of the table, with or without their weights. */
static double loss_of(snug_engine *e, const char *text, bool weighted) {
    static const pick rows = {ROWS, {0, 1, 2, 3, 4, 5}};
    snug_error err;
    sn_graph *g;
    sn_state *none;
    sn_objective o = {.used = true, .weight = 1};
    sn_objective_data d = {.weight = SN_NO_VALUE, .mask = SN_NO_VALUE};
    double out = NAN;
    const snug_type t = {SNUG_F64, 2, {ROWS, CLASSES}}, w = {SNUG_F64, 1, {ROWS}};
    expect_ok(sn_loss_parse(text, &o.loss, &err), &err);
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_state_create(e, &none, &err), &err);
    expect_ok(sn_graph_input(g, "p", &t, &d.y_pred, &err), &err);
    expect_ok(sn_graph_input(g, "y", &t, &d.y_true, &err), &err);
    if (weighted)
        expect_ok(sn_graph_input(g, "w", &w, &d.weight, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value loss = sn_objective_build(&b, &o, &d);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "loss", loss, &err), &err);
    source p = {&scores[0][0], CLASSES, &rows}, y = {&onehot[0][0], CLASSES, &rows},
           s = {weights, 1, &rows};
    const sn_input_binding inputs[3] = {{.ctx = &p, .fill = fill_rows},
                                        {.ctx = &y, .fill = fill_rows},
                                        {.ctx = &s, .fill = fill_rows}};
    snug_view view = {.data = &out, .bytes = sizeof out, .type = {.dtype = SNUG_F64}};
    const sn_naive_options options = {.inputs = inputs, .outputs = &view};
    expect_ok(sn_naive_run(e, g, none, &options, &err), &err);
    sn_state_destroy(none);
    sn_graph_destroy(g);
    return out;
}

static void test_reductions_divide_by_what_they_say(void **state) {
    double plain = 0, weighted = 0, sum_of_weights = 0;
    for (int i = 0; i < ROWS; i++) {
        double row = 0;
        for (int k = 0; k < CLASSES; k++)
            row += (scores[i][k] - onehot[i][k]) * (scores[i][k] - onehot[i][k]) / CLASSES;
        plain += row;
        weighted += weights[i] * row;
        sum_of_weights += weights[i];
    }
    static const char sum[] = "mse:reduction=sum", mean[] = "mse:reduction=mean",
                      by_weight[] = "mse:reduction=mean_with_sample_weight";
    assert_true(fabs(loss_of(*state, sum, false) - plain) < 1e-12);
    assert_true(fabs(loss_of(*state, sum, true) - weighted) < 1e-12);
    assert_true(fabs(loss_of(*state, mean, false) - plain / ROWS) < 1e-12);
    assert_true(fabs(loss_of(*state, mean, true) - weighted / ROWS) < 1e-12);
    assert_true(fabs(loss_of(*state, by_weight, false) - plain / ROWS) < 1e-12);
    assert_true(fabs(loss_of(*state, by_weight, true) - weighted / sum_of_weights) < 1e-12);
}

static void test_settings_that_do_not_fit_are_refused(void **state) {
    static const struct {
        const char *text;
        snug_status status;
        const char *piece;
    } bad[] = {
        {"f1_score", SNUG_E_UNSUPPORTED, "average=micro, macro or weighted"},
        {"f1_score:average=best", SNUG_E_INVALID, "micro macro weighted"},
        {"precision:class_id=3", SNUG_E_INVALID, "3 classes"},
        {"precision:thresholds=[0.1,0.5]", SNUG_E_UNSUPPORTED, "one number"},
        {"auc:num_thresholds=1", SNUG_E_INVALID, "out of range"},
        {"auc:curve=roq", SNUG_E_INVALID, "roc pr prgain"},
        {"io_u", SNUG_E_INVALID, "num_classes=0"},
        {"io_u:num_classes=2,target_class_ids=[2],sparse_y_true=0,sparse_y_pred=0", SNUG_E_INVALID,
         "not below 2"},
        {"io_u:num_classes=3,sparse_y_pred=false", SNUG_E_INVALID, "sparse_y_true=false"},
    };
    const snug_type t = {SNUG_F64, 2, {-1, CLASSES}};
    snug_error err;
    sn_loss loss;
    sn_metric m;
    (void)state;
    expect_ok(sn_loss_parse("mse", &loss, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_status(sn_metric_parse(bad[i].text, &loss, &t, &m, &err), bad[i].status, &err);
        expect_text(err.text, bad[i].piece);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_weights_count_examples_more_than_once_or_never),
        engine_test(test_sums_do_not_depend_on_the_cut_into_batches),
        engine_test(test_reductions_divide_by_what_they_say),
        cmocka_unit_test(test_settings_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
