/* test_pull_back.c: sn_graph_pull_back: gradients of several results arrive and are carried back
 * together, one of a value itself among them; results that nobody gives a gradient count nothing;
 * wrong arguments are refused and leave the graph as it was. */
#include "graph/build.h"
#include "support/eval.h"
#include "support/support.h"

#include <string.h>

#define PULL(o, d, n, a)                                                                           \
    { .outs = o, .douts = d, .n_outs = n, .wrt = a, .n_wrt = 1 }

/* a [3], dy [3], dz [3], s []; y = 2 a, z = a a. */
typedef struct {
    sn_graph *g;
    sn_value a, dy, dz, scalar, y, z;
} parts;

static parts make(snug_engine *e) {
    parts p;
    snug_error err;
    const snug_type row = {SNUG_F64, 1, {3}}, none = {.dtype = SNUG_F64};
    expect_ok(sn_graph_create(e, &p.g, &err), &err);
    expect_ok(sn_graph_input(p.g, "a", &row, &p.a, &err), &err);
    expect_ok(sn_graph_input(p.g, "dy", &row, &p.dy, &err), &err);
    expect_ok(sn_graph_input(p.g, "dz", &row, &p.dz, &err), &err);
    expect_ok(sn_graph_input(p.g, "s", &none, &p.scalar, &err), &err);
    sn_builder b = sn_builder_on(p.g);
    p.y = sn_build_affine(&b, p.a, 2, 0);
    p.z = sn_build_square(&b, p.a);
    expect_ok(sn_builder_done(&b, &err), &err);
    return p;
}

/* d a = want(a, dy, dz), element by element. */
static void expect_gradient(snug_engine *e, parts *p, const sn_pull_back *q,
                            double (*want)(double a, double dy, double dz)) {
    snug_error err;
    sn_value da;
    expect_ok(sn_graph_pull_back(p->g, q, &da, &err), &err);
    expect_ok(sn_graph_output(p->g, "da", da, &err), &err);
    sn_test_arrays in = sn_test_inputs(p->g, -1, 1), out = sn_test_eval(e, p->g, &in);
    for (int i = 0; i < 3; i++) {
        const double wanted = want(in.data[0][i], in.data[1][i], in.data[2][i]);
        if (!(out.data[0][i] - wanted < 1e-12 && wanted - out.data[0][i] < 1e-12))
            fail_msg("element %d: %g, not %g", i, out.data[0][i], wanted);
    }
    sn_test_arrays_clear(&out);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(p->g);
}

static double of_both(double a, double dy, double dz) {
    return 2 * dy + 2 * a * dz;
}
static double of_one_and_itself(double a, double dy, double dz) {
    (void)a;
    return 2 * dy + dz;
}
static double of_one_twice(double a, double dy, double dz) {
    (void)a;
    return 2 * (dy + dz);
}

static void test_gradients_of_several_results_add_up(void **state) {
    parts p = make(*state);
    const sn_value outs[2] = {p.y, p.z}, douts[2] = {p.dy, p.dz};
    expect_gradient(*state, &p, &(sn_pull_back)PULL(outs, douts, 2, &p.a), of_both);
}

static void test_a_value_may_be_a_result_itself(void **state) {
    parts p = make(*state);
    const sn_value outs[3] = {p.y, p.a, p.z}, douts[3] = {p.dy, p.dz, SN_NO_VALUE};
    expect_gradient(*state, &p, &(sn_pull_back)PULL(outs, douts, 3, &p.a), of_one_and_itself);
}

static void test_one_result_may_stand_twice(void **state) {
    parts p = make(*state);
    const sn_value outs[2] = {p.y, p.y}, douts[2] = {p.dy, p.dz};
    expect_gradient(*state, &p, &(sn_pull_back)PULL(outs, douts, 2, &p.a), of_one_twice);
}

static void test_nothing_arrives_where_no_gradient_is_given(void **state) {
    parts p = make(*state);
    snug_error err;
    sn_value da;
    const sn_value none = SN_NO_VALUE;
    expect_ok(sn_graph_pull_back(p.g, &(sn_pull_back)PULL(&p.y, &none, 1, &p.a), &da, &err), &err);
    assert_false(sn_value_ok(da));
    sn_graph_destroy(p.g);
}

static void test_wrong_arguments_are_refused(void **state) {
    parts p = make(*state);
    snug_error err;
    sn_value da;
    const uint32_t n_nodes = sn_graph_n_nodes(p.g);
    const sn_value far = {999};
    const struct {
        sn_pull_back q;
        snug_status status;
        const char *says;
    } rows[] = {
        {PULL(&far, &p.dy, 1, &p.a), SNUG_E_INVALID, "result 0"},
        {PULL(&p.y, &far, 1, &p.a), SNUG_E_INVALID, "result 0"},
        {PULL(&p.y, &p.scalar, 1, &p.a), SNUG_E_SHAPE, "another type"},
        {PULL(&p.y, &p.dy, 1, &far), SNUG_E_INVALID, "999"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(sn_graph_pull_back(p.g, &rows[i].q, &da, &err), rows[i].status);
        assert_non_null(strstr(err.text, rows[i].says));
        assert_int_equal(sn_graph_n_nodes(p.g), n_nodes);
    }
    sn_graph_destroy(p.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_gradients_of_several_results_add_up),
        engine_test(test_a_value_may_be_a_result_itself),
        engine_test(test_one_result_may_stand_twice),
        engine_test(test_nothing_arrives_where_no_gradient_is_given),
        engine_test(test_wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
