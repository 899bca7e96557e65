/* test_fuse_xent.c: a cross-entropy written in plain rows is one node in each direction after
 * fusion, in all the ways people write it, and the numbers stay; what is none, or is seen by
 * others, stays as it is. */
#include "support/eval.h"
#include "support/support.h"

#include <snug/plan.h>

#include "graph/build.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5, UNITS = 3, CLASSES = 4 };

static int count_ops(const sn_graph *g, sn_op op) {
    int n = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        n += sn_graph_node_at(g, (sn_node){i})->op == op;
    return n;
}

/* Nodes of [ROWS, CLASSES] numbers, the logits' matmul not counted. */
static int count_full(const sn_graph *g) {
    int n = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        const snug_type *t = sn_graph_type(g, node->out[0]);
        n += node->op != SN_OP_matmul && sn_type_count(t) == ROWS * CLASSES;
    }
    return n;
}

/* How a net is written. */
typedef struct {
    bool log_softmax;                /* else log(softmax) */
    enum { LAST, INSIDE, NONE } neg; /* neg(sum(..)), sum(neg(..)), or a loss that is maximised */
    bool sparse;                     /* labels are one_hot(class numbers) */
    bool labels_first;
} form;

typedef struct {
    sn_graph *g;
    sn_builder b;
    sn_value w, x, labels, logits, p, logp, terms;
} net;

static sn_value add_input(net *n, const char *name, snug_type t) {
    snug_error err;
    sn_value v;
    expect_ok(sn_graph_input(n->g, name, &t, &v, &err), &err);
    return v;
}

static sn_value one_hot(net *n, sn_value k) {
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = CLASSES;
    a.one_hot.dtype = SNUG_F64;
    return sn_build(&n->b, SN_OP_one_hot, &a, &k, 1);
}

/* Dense, softmax and the cross-entropy of each row. */
static net build(snug_engine *e, const form *how) {
    snug_error err;
    net n = {0};
    expect_ok(sn_graph_create(e, &n.g, &err), &err);
    n.b = sn_builder_on(n.g);
    n.x = add_input(&n, "x", (snug_type){SNUG_F64, 2, {ROWS, UNITS}});
    n.w = add_input(&n, "w", (snug_type){SNUG_F64, 2, {UNITS, CLASSES}});
    n.labels = how->sparse ? one_hot(&n, add_input(&n, "k", (snug_type){SNUG_I32, 1, {ROWS}}))
                           : add_input(&n, "y", (snug_type){SNUG_F64, 2, {ROWS, CLASSES}});
    n.logits = sn_build_matmul(&n.b, n.x, n.w, SN_NO_VALUE);
    n.p = how->log_softmax ? SN_NO_VALUE : sn_build_softmax(&n.b, n.logits);
    n.logp = how->log_softmax ? sn_build_log_softmax(&n.b, n.logits) : sn_build_log(&n.b, n.p);
    sn_value terms = how->labels_first ? sn_build_mul(&n.b, n.labels, n.logp)
                                       : sn_build_mul(&n.b, n.logp, n.labels);
    if (how->neg == INSIDE)
        terms = sn_build_neg(&n.b, terms);
    terms = sn_build_sum(&n.b, terms, 2, false);
    n.terms = how->neg == LAST ? sn_build_neg(&n.b, terms) : terms;
    return n;
}

/* The mean is an output; with wrt also its gradient. */
static void finish(net *n, const sn_value *wrt, int n_wrt) {
    snug_error err;
    sn_value grads[2];
    const sn_value loss = sn_build_mean(&n->b, n->terms, 0, false);
    expect_ok(sn_builder_done(&n->b, &err), &err);
    expect_ok(sn_graph_gradients(n->g, loss, wrt, n_wrt, grads, &err), &err);
    expect_ok(sn_graph_output(n->g, "loss", loss, &err), &err);
    for (int i = 0; i < n_wrt; i++)
        expect_ok(sn_graph_output(n->g, i ? "g1" : "g0", grads[i], &err), &err);
}

/* Fuses, compares all outputs with the graph as written, and destroys the latter. */
static sn_graph *fuse_and_compare(snug_engine *e, net *n) {
    snug_error err;
    sn_graph *fused;
    expect_ok(sn_graph_fuse(n->g, &fused, &err), &err);
    expect_ok(sn_graph_check(fused, false, &err), &err);
    sn_test_arrays in = sn_test_inputs(n->g, -1, 1);
    sn_test_arrays left = sn_test_eval(e, n->g, &in), right = sn_test_eval(e, fused, &in);
    for (uint32_t i = 0; i < left.n; i++)
        for (size_t k = 0; k < left.count[i]; k++)
            if (!(fabs(left.data[i][k] - right.data[i][k]) <= 1e-12))
                fail_msg("output %u[%zu]: %.17g before, %.17g after", i, k, left.data[i][k],
                         right.data[i][k]);
    sn_test_arrays_clear(&left);
    sn_test_arrays_clear(&right);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(n->g);
    return fused;
}

static void test_every_way_of_writing_it_is_fused_in_both_directions(void **state) {
    for (int i = 0; i < 24; i++) {
        const form how = {i & 1, (unsigned)i / 8, i & 2, i & 4};
        net n = build(*state, &how);
        finish(&n, &n.w, 1);
        sn_graph *fused = fuse_and_compare(*state, &n);
        assert_int_equal(count_ops(fused, SN_OP_softmax_xent), !how.sparse);
        assert_int_equal(count_ops(fused, SN_OP_softmax_xent_grad), !how.sparse);
        assert_int_equal(count_ops(fused, SN_OP_sparse_xent), how.sparse);
        assert_int_equal(count_ops(fused, SN_OP_sparse_xent_grad), how.sparse);
        assert_int_equal(count_full(fused), 1); /* the gradient of the logits */
        sn_graph_destroy(fused);
    }
}

static void test_a_loss_without_gradients_is_fused_too(void **state) {
    net n = build(*state, &(form){.neg = LAST});
    finish(&n, NULL, 0);
    sn_graph *fused = fuse_and_compare(*state, &n);
    assert_int_equal(count_ops(fused, SN_OP_softmax_xent), 1);
    assert_int_equal(count_full(fused), 0);
    sn_graph_destroy(fused);
}

/* Predictions that are asked for are made, and only for the one who asks. */
static void test_probabilities_that_are_an_output_stay(void **state) {
    snug_error err;
    for (int log_softmax = 0; log_softmax < 2; log_softmax++) {
        net n = build(*state, &(form){.log_softmax = log_softmax});
        expect_ok(sn_graph_output(n.g, "p", log_softmax ? n.logp : n.p, &err), &err);
        finish(&n, &n.w, 1);
        sn_graph *fused = fuse_and_compare(*state, &n);
        assert_int_equal(count_ops(fused, SN_OP_softmax_xent_grad), 1);
        assert_int_equal(count_full(fused), 2);
        sn_graph_destroy(fused);
    }
}

/* A class number out of range: one_hot has no one, so the row counts nothing, fused or not. */
static void test_a_class_number_out_of_range_counts_nothing(void **state) {
    net n = build(*state, &(form){.neg = LAST, .sparse = true});
    finish(&n, &n.w, 1);
    snug_error err;
    sn_graph *fused;
    expect_ok(sn_graph_fuse(n.g, &fused, &err), &err);
    assert_int_equal(count_ops(fused, SN_OP_sparse_xent), 1);
    sn_test_arrays in = sn_test_inputs(n.g, -1, 1);
    in.data[2][1] = -1;
    in.data[2][3] = CLASSES;
    sn_test_arrays left = sn_test_eval(*state, n.g, &in), right = sn_test_eval(*state, fused, &in);
    for (uint32_t i = 0; i < left.n; i++)
        for (size_t k = 0; k < left.count[i]; k++)
            assert_true(fabs(left.data[i][k] - right.data[i][k]) <= 1e-12);
    sn_test_arrays_clear(&left);
    sn_test_arrays_clear(&right);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

/* Gradients of labels, logarithms read by others, other uses of p in the loss, sums over another
 * axis: all as written. */
static void test_what_others_need_is_left_alone(void **state) {
    for (int i = 0; i < 4; i++) {
        snug_error err;
        net n = build(*state, &(form){.neg = i == 3 ? NONE : LAST});
        const sn_value wrt[2] = {n.w, n.labels};
        if (i == 1)
            expect_ok(sn_graph_output(n.g, "logp", n.logp, &err), &err);
        if (i == 2) /* the entropy of p, too */
            n.terms = sn_build_add(&n.b, n.terms,
                                   sn_build_sum(&n.b, sn_build_mul(&n.b, n.p, n.p), 2, false));
        if (i == 3)
            n.terms = sn_build_sum(&n.b, sn_build_mul(&n.b, n.labels, n.logp), 1, false);
        finish(&n, wrt, i == 0 ? 2 : 1);
        sn_graph *fused = fuse_and_compare(*state, &n);
        assert_int_equal(count_ops(fused, SN_OP_softmax_xent), 0);
        assert_int_equal(count_ops(fused, SN_OP_softmax_grad), 1);
        sn_graph_destroy(fused);
    }
}

/* --- through the public door ------------------------------------------------------------------ */

static snug_value op(snug_graph *g, const char *name, const char *attributes, snug_value a,
                     snug_value b) {
    snug_error err;
    snug_value out;
    const snug_value in[2] = {a, b};
    const int n = b.id == SNUG_NO_VALUE.id ? 1 : 2;
    expect_ok(snug_graph_op(g, name, attributes, in, n, &out, 1, &err), &err);
    return out;
}

static void test_a_plan_of_plain_operators_runs_the_fused_pair(void **state) {
    snug_graph *g;
    snug_plan *p;
    snug_error err;
    snug_value x, w, k, dw;
    const snug_type types[3] = {
        {SNUG_F32, 2, {ROWS, UNITS}}, {SNUG_F32, 2, {UNITS, CLASSES}}, {SNUG_I32, 1, {ROWS}}};
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &types[0], &x, &err), &err);
    expect_ok(snug_graph_input(g, "k", &types[2], &k, &err), &err);
    expect_ok(snug_graph_variable(g, "w", &types[1], NULL, &w, &err), &err);
    const snug_value softmax = op(g, "softmax", "", op(g, "matmul", "", x, w), SNUG_NO_VALUE);
    const snug_value logp = op(g, "log", "", softmax, SNUG_NO_VALUE);
    const snug_value hot = op(g, "one_hot", "depth=4 dtype=f32", k, SNUG_NO_VALUE);
    const snug_value rows = op(g, "sum", "axes=1", op(g, "mul", "", hot, logp), SNUG_NO_VALUE);
    const snug_value loss =
        op(g, "affine", "scale=-0.2 shift=0", op(g, "sum", "", rows, SNUG_NO_VALUE), SNUG_NO_VALUE);
    expect_ok(snug_graph_gradients(g, loss, &w, 1, &dw, &err), &err);
    op(g, "sgd", "rate=0.1 momentum=0", w, dw);
    expect_ok(snug_graph_output(g, "loss", loss, &err), &err);
    expect_ok(snug_plan_build(*state, g, NULL, &p, &err), &err);
    sn_text text = sn_text_begin();
    const snug_writer writer = sn_text_writer(&text);
    expect_ok(snug_plan_print(p, &writer, &err), &err);
    expect_text(text.text, "sparse_xent ");
    expect_text(text.text, "sparse_xent_grad");
    assert_null(strstr(text.text, "one_hot"));
    assert_null(strstr(text.text, "softmax"));
    sn_text_end(&text);
    snug_plan_destroy(p);
    snug_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_every_way_of_writing_it_is_fused_in_both_directions),
        engine_test(test_a_loss_without_gradients_is_fused_too),
        engine_test(test_probabilities_that_are_an_output_stay),
        engine_test(test_a_class_number_out_of_range_counts_nothing),
        engine_test(test_what_others_need_is_left_alone),
        engine_test(test_a_plan_of_plain_operators_runs_the_fused_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
