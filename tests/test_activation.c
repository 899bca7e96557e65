/* test_activation.c: activations by name and setting against formulas written out here, layers with
 * settings, what is refused; and the compositions of build_math.c. Goldens compare training with
 * Keras; here are the corners: kinks, settings, axes, infinities. */
#include "support/eval.h"
#include "support/support.h"

#include "nn/activation.h"
#include "nn/network.h"

#include <math.h>
#include <string.h>

static sn_graph *new_graph(void **state, const char *type, sn_value *x) {
    snug_error err;
    snug_type t;
    const char *end;
    sn_graph *g;
    expect_ok(sn_type_parse(type, &end, &t, &err), &err);
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &t, x, &err), &err);
    return g;
}

/* Runs the graph whose outputs are `y` on these numbers, and compares; NaN means NaN. */
static void expect_values(void **state, sn_graph *g, sn_builder *b, const char *what, sn_value y,
                          const double *x, const double *wanted) {
    snug_error err;
    expect_ok(sn_builder_done(b, &err), &err);
    expect_ok(sn_graph_output(g, "y", y, &err), &err);
    sn_test_arrays in = sn_test_inputs(g, 0, 1);
    memcpy(in.data[0], x, in.count[0] * sizeof *x);
    sn_test_arrays out = sn_test_eval(*state, g, &in);
    for (size_t i = 0; i < out.count[0]; i++) {
        const double got = out.data[0][i];
        const bool same = got == wanted[i] || (isnan(got) && isnan(wanted[i]));
        if (!same && !(fabs(got - wanted[i]) <= 1e-12 * fmax(1, fabs(wanted[i]))))
            fail_msg("%s, element %zu: %.17g, not %.17g", what, i, got, wanted[i]);
    }
    sn_test_arrays_clear(&in);
    sn_test_arrays_clear(&out);
    sn_graph_destroy(g);
}

/* --- activations ------------------------------------------------------------------------------ */
enum { N = 9 };
static const double points[N] = {-4, -3, -1, -0.25, 0, 0.5, 1, 3, 7};

static double near_f32(double v) { /* a setting that Keras makes an f32 tensor of */
    return (double)(float)v;
}
static double relu_all(double x) {
    const double slope = 0.25, max = 2, threshold = 0.75;
    const double up = x > threshold ? fmin(x, max) : 0;
    return up - slope * fmax(0, threshold - x);
}
static double leaky(double x) {
    return x < 0 ? near_f32(0.1) * x : x;
}
static double relu6(double x) {
    return fmin(fmax(x, 0), 6);
}
static double celu(double x) {
    return fmax(x, 0) + 0.5 * expm1(fmin(x, 0) / 0.5);
}
static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + near_f32(0.044715) * x * x * x)));
}
static double hard_sigmoid(double x) {
    return fmin(fmax(x + 3, 0), 6) / 6;
}
static double hard_silu(double x) {
    return x * hard_sigmoid(x);
}
static double hard_tanh(double x) {
    return fmin(fmax(x, -1), 1);
}
static double hard_shrink(double x) {
    return fabs(x) > 1 ? x : 0;
}
static double soft_shrink(double x) {
    return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0;
}
static double tanh_shrink(double x) {
    return x - tanh(x);
}
static double threshold(double x) {
    return x > 0.5 ? x : 9;
}
static double log_sigmoid(double x) {
    return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}
static double squareplus(double x) {
    return (x + sqrt(x * x + 2)) / 2;
}
static double sparse_plus(double x) {
    return x <= -1 ? 0 : x < 1 ? (x + 1) * (x + 1) / 4 : x;
}
static double sparse_sigmoid(double x) {
    return x <= -1 ? 0 : x >= 1 ? 1 : 0.5 * (x + 1);
}

static void test_activations_with_settings(void **state) {
    static const struct {
        const char *text;
        double (*formula)(double);
    } rows[] = {
        {"relu:negative_slope=0.25,max_value=2,threshold=0.75", relu_all},
        {"leaky_relu:negative_slope=0.1", leaky},
        {"relu6", relu6},
        {"ReLU:max_value=6", relu6},
        {"celu:alpha=0.5", celu},
        {"gelu:approximate=true", gelu_tanh},
        {"hard_sigmoid", hard_sigmoid},
        {"hard_swish", hard_silu},
        {"hard_tanh", hard_tanh},
        {"hard_shrink:threshold=1", hard_shrink},
        {"soft_shrink", soft_shrink},
        {"tanh_shrink", tanh_shrink},
        {"threshold:threshold=0.5,default_value=9", threshold},
        {"log_sigmoid", log_sigmoid},
        {"squareplus:b=2", squareplus},
        {"sparse_plus", sparse_plus},
        {"sparse_sigmoid", sparse_sigmoid},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sn_value x;
        double wanted[N];
        sn_graph *g = new_graph(state, "f64[9]", &x);
        sn_builder b = sn_builder_on(g);
        for (int i = 0; i < N; i++)
            wanted[i] = rows[r].formula(points[i]);
        const sn_value y = sn_activation(&b, rows[r].text, x);
        expect_values(state, g, &b, rows[r].text, y, points, wanted);
    }
}

static void test_activations_along_an_axis(void **state) {
    sn_value x;
    sn_graph *g = new_graph(state, "f64[2,2]", &x);
    sn_builder b = sn_builder_on(g);
    const double values[4] = {0, 1, log(3), 1}, columns[4] = {0.25, 0.5, 0.75, 0.5};
    sn_value y = sn_activation(&b, "softmax:axis=0", x);
    expect_values(state, g, &b, "softmax of columns", y, values, columns);
    g = new_graph(state, "f64[2,2]", &x);
    b = sn_builder_on(g);
    const double halves[2] = {0, 1 / (1 + exp(-1.0))};
    y = sn_activation(&b, "glu:axis=0", x);
    expect_values(state, g, &b, "glu", y, (double[]){0, 1, 5, 1}, halves);
}

static void test_unknown_activations_are_refused_by_name(void **state) {
    static const char *const rows[][2] = {
        {"rilu",
         "activation 'rilu' is not known; did you mean relu? There are linear, relu, relu6"},
        {"elu:beta=1", "'elu' has no setting 'beta'; there is alpha"},
        {"tanh:alpha=1", "'tanh' has no setting 'alpha'; there is none"},
        {"elu:alpha=much", "neither true nor false"},
        {"threshold:threshold=1", "'threshold' needs its default_value"},
        {"glu", "its extent must be even"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        snug_error err;
        sn_value x;
        sn_graph *g = new_graph(state, "f32[2,3]", &x);
        sn_builder b = sn_builder_on(g);
        const sn_value y = sn_activation(&b, rows[r][0], x);
        assert_false(sn_value_ok(y));
        assert_int_not_equal(sn_builder_done(&b, &err), SNUG_OK);
        expect_text(err.text, rows[r][1]);
        sn_graph_destroy(g);
    }
}

/* --- layers ----------------------------------------------------------------------------------- */
static snug_status add(sn_network *n, const char *cls, const char *config, snug_error *err) {
    return sn_network_add(n, cls, NULL, sn_conf_fill_text, (void *)(uintptr_t)config, err);
}

static void test_layers_with_settings(void **state) {
    static const char *const rows[][3] = {
        {"PReLU", "shared_axes=3", "shared_axes has 3; axes are 1 to 2"},
        {"ReLU", "negative_slope=-1", "must be 0 or more"},
        {"LeakyReLU", "negative_slope=-1", "must be 0 or more"},
        {"ThresholdedReLU", "theta=-1", "must be 0 or more"},
        {"Softmax", "axis=3", "axis 3 of an input with 3 axes"},
    };
    snug_error err;
    sn_network *n;
    char text[192];
    const snug_type t = {.dtype = SNUG_F32, .rank = 3, .dims = {-1, 4, 6}};
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    expect_ok(add(n, "PReLU", "shared_axes=1", &err), &err);
    expect_ok(add(n, "PReLU", "", &err), &err);
    expect_ok(add(n, "Softmax", "axis=1,2", &err), &err);
    expect_ok(add(n, "ELU", "alpha=0.5", &err), &err);
    assert_int_equal(n->n_vars, 2);
    assert_string_equal(n->vars[0].name, "p_re_lu/alpha");
    assert_string_equal(snug_type_print(&n->vars[0].type, text, sizeof text), "f32[1,6]");
    assert_string_equal(snug_type_print(&n->vars[1].type, text, sizeof text), "f32[4,6]");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        assert_int_equal(add(n, rows[r][0], rows[r][1], &err), SNUG_E_INVALID);
        expect_text(err.text, rows[r][2]);
    }
    sn_network_destroy(n);
}

/* One row of numbers through one layer. */
static void expect_layer(void **state, const char *cls, const char *config, const double *x,
                         const double *wanted) {
    snug_error err;
    sn_network *n;
    sn_graph *g;
    sn_value in;
    sn_network_result out;
    const snug_type t = {.dtype = SNUG_F64, .rank = 2, .dims = {-1, 4}};
    const snug_type one = {.dtype = SNUG_F64, .rank = 2, .dims = {1, 4}};
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    expect_ok(sn_network_set_policy(n, &(sn_policy){SNUG_F64, SNUG_F64, false}, &err), &err);
    expect_ok(add(n, cls, config, &err), &err);
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &one, &in, &err), &err);
    expect_ok(sn_network_build(n, g, &in, false, &out, &err), &err);
    sn_builder b = sn_builder_on(g);
    expect_values(state, g, &b, cls, out.y[0], x, wanted);
    sn_network_destroy(n);
}

static void test_layers_of_old_files(void **state) {
    const double x[4] = {-2, 0.25, 0.5, 3};
    expect_layer(state, "LeakyReLU", "alpha=0.5", x, (double[]){-1, 0.25, 0.5, 3});
    expect_layer(state, "ThresholdedReLU", "theta=0.25", x, (double[]){0, 0, 0.5, 3});
    expect_layer(state, "ThresholdedReLU", "", x, (double[]){0, 0, 0, 3});
}

/* --- compositions ----------------------------------------------------------------------------- */
static void test_logsumexp_of_infinities(void **state) {
    sn_value x;
    sn_graph *g = new_graph(state, "f64[4,2]", &x);
    sn_builder b = sn_builder_on(g);
    const double values[8] = {-INFINITY, -INFINITY, INFINITY, 1, 1000, 1000, 0, -INFINITY};
    const double wanted[4] = {-INFINITY, INFINITY, 1000 + log(2), 0};
    const sn_value y = sn_build_logsumexp(&b, x, 1u << 1, false);
    expect_values(state, g, &b, "logsumexp", y, values, wanted);
}

static void test_statistics_of_integers(void **state) {
    sn_value x;
    sn_graph *g = new_graph(state, "i32[2,4]", &x);
    sn_builder b = sn_builder_on(g);
    const double values[8] = {1, 2, 3, 4, -5, -5, -5, 7};
    const double variance[2] = {1.25, 27};
    sn_value y = sn_build_variance(&b, x, 1u << 1, false);
    expect_values(state, g, &b, "variance", y, values, variance);
    g = new_graph(state, "i32[2,4]", &x);
    b = sn_builder_on(g);
    y = sn_build_mean(&b, x, 1u << 1, true);
    expect_values(state, g, &b, "mean", y, values, (double[]){2.5, -2});
}

static void test_norms(void **state) {
    for (int order = 1; order <= 2; order++) {
        sn_value x;
        sn_graph *g = new_graph(state, "f64[2,2]", &x);
        sn_builder b = sn_builder_on(g);
        const double values[4] = {3, -4, 0, -1};
        const double wanted[2][2] = {{7, 1}, {5, 1}};
        const sn_value y = sn_build_norm(&b, x, order, 1u << 1, true);
        expect_values(state, g, &b, "norm", y, values, wanted[order - 1]);
    }
}

static void test_any_and_all(void **state) {
    for (int all = 0; all < 2; all++) {
        sn_value x;
        sn_graph *g = new_graph(state, "bool[3,2]", &x);
        sn_builder b = sn_builder_on(g);
        const double values[6] = {0, 0, 0, 1, 1, 1}, wanted[2][3] = {{0, 1, 1}, {0, 0, 1}};
        const sn_value y = all ? sn_build_all_true(&b, x, 1u << 1, false)
                               : sn_build_any_true(&b, x, 1u << 1, false);
        expect_values(state, g, &b, all ? "all" : "any", y, values, wanted[all]);
    }
}

/* Ties: the lowest place first, in both directions; NaN is above all. */
static void test_sorting_along_an_axis(void **state) {
    const double values[8] = {2, NAN, 7, 1, 2, 1, 5, 4}; /* two columns of four */
    const double top[4] = {7, NAN, 5, 4}, places[4] = {1, 0, 3, 3},
                 order[8] = {0, 1, 2, 2, 3, 3, 1, 0};
    for (int what = 0; what < 3; what++) {
        sn_value x, sorted, where;
        sn_graph *g = new_graph(state, "f64[4,2]", &x);
        sn_builder b = sn_builder_on(g);
        const sn_sort how = {
            .axis = 0, .descending = what < 2, .k = what < 2 ? 2 : 0, .places = SNUG_I32};
        sn_build_sort(&b, x, &how, &sorted, &where);
        expect_values(state, g, &b, "sort", what == 0 ? sorted : where, values,
                      what == 0   ? top
                      : what == 1 ? places
                                  : order);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_activations_with_settings),
        engine_test(test_activations_along_an_axis),
        engine_test(test_unknown_activations_are_refused_by_name),
        engine_test(test_layers_with_settings),
        engine_test(test_layers_of_old_files),
        engine_test(test_logsumexp_of_infinities),
        engine_test(test_statistics_of_integers),
        engine_test(test_norms),
        engine_test(test_any_and_all),
        engine_test(test_sorting_along_an_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
