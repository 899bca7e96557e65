/* test_fuse.c: what fusion makes of a graph, what it leaves alone, and that the numbers stay. */
#include "support/eval.h"
#include "support/support.h"
#include "support/text.h"

#include "graph/build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int count_ops(const sn_graph *g, sn_op op) {
    int n = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        n += sn_graph_node_at(g, (sn_node){i})->op == op;
    return n;
}

static const sn_node_info *find_op(const sn_graph *g, sn_op op) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        if (sn_graph_node_at(g, (sn_node){i})->op == op)
            return sn_graph_node_at(g, (sn_node){i});
    fail_msg("no %s in the graph", sn_ops[op].name);
    return NULL;
}

static sn_op maker_op(const sn_graph *g, sn_value v) {
    return sn_graph_node_at(g, sn_graph_value_at(g, v)->node)->op;
}

static sn_graph *parse(void **state, const char *text) {
    snug_error err;
    sn_graph *g;
    expect_ok(sn_graph_parse(*state, text, &g, &err), &err);
    return g;
}

static sn_graph *fuse(const sn_graph *g) {
    snug_error err;
    sn_graph *fused;
    expect_ok(sn_graph_fuse(g, &fused, &err), &err);
    expect_ok(sn_graph_check(fused, false, &err), &err);
    return fused;
}

static sn_graph *fuse_text(void **state, const char *text) {
    sn_graph *g = parse(state, text);
    sn_graph *fused = fuse(g);
    sn_graph_destroy(g);
    return fused;
}

static void expect_same_numbers(snug_engine *e, const sn_graph *a, const sn_graph *b, double step) {
    sn_test_arrays x = sn_test_inputs(a, -1, 1);
    for (uint32_t i = 0; step > 0 && i < x.n; i++) /* coarse numbers have ties */
        for (size_t k = 0; k < x.count[i]; k++)
            x.data[i][k] = step * floor(x.data[i][k] / step);
    sn_test_arrays left = sn_test_eval(e, a, &x), right = sn_test_eval(e, b, &x);
    assert_int_equal(left.n, right.n);
    for (uint32_t i = 0; i < left.n; i++) {
        assert_int_equal(left.count[i], right.count[i]);
        for (size_t k = 0; k < left.count[i]; k++)
            if (!(fabs(left.data[i][k] - right.data[i][k]) <= 1e-12 * (1 + fabs(left.data[i][k]))))
                fail_msg("output %s[%zu]: %.17g before, %.17g after", sn_graph_output_name(a, i), k,
                         left.data[i][k], right.data[i][k]);
    }
    sn_test_arrays_clear(&left);
    sn_test_arrays_clear(&right);
    sn_test_arrays_clear(&x);
}

static void test_fuse_drops_what_nobody_needs(void **state) {
    sn_graph *g = fuse_text(
        state,
        "snug graph 1\np0 real 1 kept\np1 real 2\np2 real 3\n%0 input x f32[3]\n%1 input i i32[2]\n"
        "%2 variable v f32[3] home 0 init constant 0 0 0\n"
        "%3 = exp(%0) | forward -> f32[3]\n"
        "%4 = affine(%3) scale=p1 shift=p2 | forward -> f32[3]\n"
        "%5 = tanh(%0) | forward -> f32[3]\n"
        "%6 = assign(%2 %5) | update -> f32[3]\n"
        "%7 = gather(%0 %1) | forward -> f32[2]\n"
        "%8 = neg(%0) | forward -> f32[3]\n"
        "output y %8\n");
    assert_int_equal(sn_graph_n_nodes(g), 4);
    assert_int_equal(count_ops(g, SN_OP_exp) + count_ops(g, SN_OP_affine), 0);
    assert_int_equal(count_ops(g, SN_OP_assign), 1); /* an effect */
    assert_int_equal(count_ops(g, SN_OP_gather), 1); /* may fail: the run must still say so */
    assert_int_equal(sn_graph_n_params(g), 1);
    assert_string_equal(sn_graph_param_at(g, (sn_param){0})->name, "kept");
    assert_string_equal(sn_graph_output_name(g, 0), "y");
    sn_graph_destroy(g);
}

#define DENSE                                                                                      \
    "snug graph 1\nowner d\n%0 input x f64[4,3]\n%1 input w f64[3,2]\n%2 input b f64[2]\n"         \
    "%3 = matmul(%0 %1) | forward @d -> f64[4,2]\n"

static void test_fuse_dense_is_one_node(void **state) {
    static const char *const texts[] = {DENSE "%4 = add(%3 %2) | forward @d -> f64[4,2]\n%5 = "
                                              "relu(%4) | forward @d -> f64[4,2]\noutput y %5\n",
                                        DENSE "%4 = add(%2 %3) | forward @d -> f64[4,2]\n%5 = "
                                              "tanh(%4) | forward @d -> f64[4,2]\noutput y %5\n",
                                        DENSE
                                        "%4 = add(%2 %3) | forward @d -> f64[4,2]\n%5 = "
                                        "sigmoid(%4) | forward @d -> f64[4,2]\noutput y %5\n"};
    const int64_t acts[] = {SN_ACT_relu, SN_ACT_tanh, SN_ACT_sigmoid};
    for (size_t i = 0; i < 3; i++) {
        sn_graph *g = parse(state, texts[i]), *fused = fuse(g);
        assert_int_equal(sn_graph_n_nodes(fused), 1);
        const sn_node_info *node = sn_graph_node_at(fused, (sn_node){0});
        assert_int_equal(node->n_in, 3);
        assert_int_equal(node->attrs.matmul.act, acts[i]);
        assert_string_equal(sn_graph_owner_name(fused, node->owner), "d");
        expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* What somebody else reads, or is no bias, stays. */
static void test_fuse_leaves_alone_what_others_see(void **state) {
    static const struct {
        const char *text;
        uint32_t n_nodes;
    } cases[] = {
        /* the product is an output */
        {DENSE "%4 = relu(%3) | forward -> f64[4,2]\noutput y %4\noutput z %3\n", 2},
        /* the product has two readers */
        {DENSE "%4 = relu(%3) | forward -> f64[4,2]\n%5 = exp(%3) | forward -> f64[4,2]\noutput y "
               "%4\noutput z %5\n",
         3},
        /* a full matrix is no bias */
        {"snug graph 1\n%0 input x f64[2,2]\n%1 = matmul(%0 %0) | forward -> f64[2,2]\n%2 = add(%1 "
         "%0) | forward -> f64[2,2]\n"
         "output y %2\n",
         2},
        /* one number for all channels is no bias */
        {"snug graph 1\n%0 input x f64[2,2]\n%1 input b f64[1]\n%2 = matmul(%0 %0) | forward -> "
         "f64[2,2]\n"
         "%3 = add(%2 %1) | forward -> f64[2,2]\noutput y %3\n",
         2},
        /* a bias made after the product */
        {DENSE
         "%4 = exp(%2) | forward -> f64[2]\n%5 = add(%3 %4) | forward -> f64[4,2]\noutput y %5\n",
         3},
        /* a second bias, and an activation after an activation */
        {DENSE "%4 = add(%3 %2) | forward -> f64[4,2]\n%5 = add(%4 %2) | forward -> f64[4,2]\n%6 = "
               "relu(%5) | forward -> f64[4,2]\n"
               "output y %6\n",
         3},
        {DENSE
         "%4 = relu(%3) | forward -> f64[4,2]\n%5 = tanh(%4) | forward -> f64[4,2]\noutput y %5\n",
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_graph *g = parse(state, cases[i].text), *fused = fuse(g);
        assert_int_equal(sn_graph_n_nodes(fused), cases[i].n_nodes);
        expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* --- a convolution, a batch norm in inference, an activation --- */
#define NORMED(conv, norm)                                                                         \
    "snug graph 1\np0 real 0.001\np1 real 6\np2 real 5\nowner c\nowner n\n"                        \
    "%0 input x f64[2,3,3,4]\n%1 input w f64[2,2,4,4]\n%2 input k f64[2,2,1,4]\n"                  \
    "%3 input b f64[4]\n%4 input m f64[4]\n%5 input s f64[4]\n%6 input g f64[4]\n"                 \
    "%7 = exp(%5) | forward -> f64[4]\n"                                                           \
    "%8 = conv2d(" conv " | forward @c -> f64[2,2,2,4]\n"                                          \
    "%9 = normalise(%8 %4 " norm " %6 %3) epsilon=p0 | forward @n -> f64[2,2,2,4]\n"

static void test_fuse_batch_norm_in_inference_is_the_convolution_s(void **state) {
    static const struct {
        const char *text;
        int64_t act;
    } cases[] = {
        {NORMED("%0 %1)", "%7") "output y %9\n", SN_ACT_none},
        {NORMED("%0 %1 %3)", "%7") "output y %9\n", SN_ACT_none},
        {NORMED("%0 %2) groups=4",
                "%7") "%10 = relu(%9) | forward @n -> f64[2,2,2,4]\noutput y %10\n",
         SN_ACT_relu},
        {NORMED("%0 %1 %3)", "%7") "%10 = silu(%9) | forward @n -> f64[2,2,2,4]\noutput y %10\n",
         SN_ACT_silu},
        {NORMED("%0 %1)",
                "%7") "%10 = relu_max(%9) value=p1 | forward @n -> f64[2,2,2,4]\noutput y %10\n",
         SN_ACT_relu6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_graph *g = parse(state, cases[i].text), *fused = fuse(g);
        assert_int_equal(sn_graph_n_nodes(fused), 3); /* exp, the line, the convolution */
        const sn_node_info *conv = find_op(fused, SN_OP_conv2d);
        assert_int_equal(conv->attrs.conv.act, cases[i].act);
        assert_int_equal(maker_op(fused, conv->in[2]), SN_OP_normalise_line);
        assert_string_equal(sn_graph_owner_name(fused, conv->owner), "c");
        expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* With a pool behind it, too: then the line is that of both in one. */
static void test_fuse_batch_norm_before_a_pool(void **state) {
    static const char *const texts[] = {
        NORMED("%0 %1)", "%7") "%10 %11 = maxpool(%9) kernel=2,2 stride=2,2 | forward -> "
                               "f64[2,1,1,4] opaque[2,1,1,4]\noutput y %10\n",
        NORMED("%0 %1 %3)", "%7") "%10 = relu(%9) | forward @n -> f64[2,2,2,4]\n"
                                  "%11 %12 = maxpool(%10) kernel=2,2 stride=2,2 | forward -> "
                                  "f64[2,1,1,4] opaque[2,1,1,4]\noutput y %11\n"};
    for (size_t i = 0; i < 2; i++) {
        sn_graph *g = parse(state, texts[i]), *fused = fuse(g);
        const sn_node_info *pool = find_op(fused, SN_OP_conv2d_pool);
        assert_int_equal(sn_graph_n_nodes(fused), 3); /* exp, the line, both in one */
        assert_int_equal(maker_op(fused, pool->in[2]), SN_OP_normalise_line);
        expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

static void test_fuse_leaves_batch_norms_that_are_no_line(void **state) {
    static const struct {
        const char *text;
        uint32_t n_nodes;
    } cases[] = {
        /* the convolution is an output; groups that are no channels; statistics made later; a cap
         * that is not 6 */
        {NORMED("%0 %1)", "%7") "output y %9\noutput z %8\n", 3},
        {"snug graph 1\np0 real 0.001\n%0 input x f64[2,3,3,4]\n%1 input w f64[2,2,2,4]\n"
         "%2 input m f64[4]\n%3 = conv2d(%0 %1) groups=2 | forward -> f64[2,2,2,4]\n"
         "%4 = normalise(%3 %2 %2 %2 %2) epsilon=p0 | forward -> f64[2,2,2,4]\noutput y %4\n",
         2},
        {"snug graph 1\np0 real 0.001\n%0 input x f64[2,3,3,4]\n%1 input w f64[2,2,4,4]\n"
         "%2 input m f64[4]\n%3 = conv2d(%0 %1) | forward -> f64[2,2,2,4]\n"
         "%4 = exp(%2) | forward -> f64[4]\n"
         "%5 = normalise(%3 %2 %4 %2 %2) epsilon=p0 | forward -> f64[2,2,2,4]\noutput y %5\n",
         3},
        {NORMED("%0 %1)",
                "%7") "%10 = relu_max(%9) value=p2 | forward @n -> f64[2,2,2,4]\noutput y %10\n",
         4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_graph *g = parse(state, cases[i].text), *fused = fuse(g);
        assert_int_equal(sn_graph_n_nodes(fused), cases[i].n_nodes);
        if (i != 1) /* where the variance may be below zero, nothing is compared */
            expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* --- whole networks --- */

typedef struct {
    sn_graph *g;
    sn_builder b;
    sn_value weights[16];
    int n_weights;
} net;

static sn_value net_input(net *n, const char *type) {
    char name[16];
    const char *end;
    snug_type t;
    sn_value v;
    snug_error err;
    snprintf(name, sizeof name, "in%u", sn_graph_n_inputs(n->g));
    expect_ok(sn_type_parse(type, &end, &t, &err), &err);
    expect_ok(sn_graph_input(n->g, name, &t, &v, &err), &err);
    return v;
}

static sn_value net_weight(net *n, const char *type) {
    return n->weights[n->n_weights++] = net_input(n, type);
}

static sn_value net_op(net *n, sn_op op, const char *attrs, const sn_value *in, int n_in) {
    snug_error err;
    sn_attrs a;
    expect_ok(sn_attrs_parse(op, attrs, NULL, &a, &err), &err);
    return sn_build(&n->b, op, &a, in, n_in);
}

/* conv + bias, as layers build them. */
static sn_value net_conv(net *n, sn_value x, const char *kernel, const char *bias) {
    const sn_value in[2] = {x, net_weight(n, kernel)};
    return sn_build_add(&n->b, net_op(n, SN_OP_conv2d, "pad=1,1,1,1", in, 2), net_weight(n, bias));
}

static sn_value net_batch_norm(net *n, sn_value x, const char *channels) {
    sn_builder *b = &n->b;
    sn_value sums[SN_MAX_OUT];
    const snug_type t = *sn_graph_type(n->g, x);
    const double count = (double)sn_type_span(&t, 0, t.rank - 1);
    sn_build_all(b, SN_OP_moments, NULL, &x, 1, sums);
    const sn_value mean = sn_build_affine(b, sums[0], 1 / count, 0);
    const sn_value var =
        sn_build_sub(b, sn_build_affine(b, sums[1], 1 / count, 0), sn_build_square(b, mean));
    const sn_value gamma = net_weight(n, channels), beta = net_weight(n, channels);
    const sn_value all[5] = {x, sn_build_cast(b, mean, t.dtype), sn_build_cast(b, var, t.dtype),
                             gamma, beta};
    sn_attrs a;
    sn_attrs_default(SN_OP_normalise, &a);
    a.epsilon.epsilon = (int64_t)sn_build_param(b, "", 1e-3).i;
    return sn_build(b, SN_OP_normalise, &a, all, 5);
}

static net net_begin(void **state) {
    snug_error err;
    net n = {0};
    expect_ok(sn_graph_create(*state, &n.g, &err), &err);
    n.b = sn_builder_on(n.g);
    return n;
}

/* loss = sum(y * r); the gradients of all weights are outputs. */
static void net_train(net *n, sn_value y) {
    snug_error err;
    sn_value grads[16], r;
    const snug_type t = *sn_graph_type(n->g, y);
    expect_ok(sn_graph_input(n->g, "r", &t, &r, &err), &err);
    const sn_value loss = sn_build_sum(&n->b, sn_build_mul(&n->b, y, r), 0, false);
    expect_ok(sn_builder_done(&n->b, &err), &err);
    expect_ok(sn_graph_gradients(n->g, loss, n->weights, n->n_weights, grads, &err), &err);
    expect_ok(sn_graph_output(n->g, "loss", loss, &err), &err);
    for (int i = 0; i < n->n_weights; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", i);
        expect_ok(sn_graph_output(n->g, name, grads[i], &err), &err);
    }
}

static void test_fuse_conv_network_in_pairs(void **state) {
    net n = net_begin(state);
    const sn_value x = net_input(&n, "f64[2,6,6,2]");
    sn_value y = sn_build_relu(&n.b, net_conv(&n, x, "f64[3,3,2,3]", "f64[3]"));
    y = sn_build_tanh(&n.b, net_conv(&n, y, "f64[3,3,3,2]", "f64[2]"));
    net_train(&n, y);
    sn_graph *fused = fuse(n.g);
    assert_int_equal(count_ops(fused, SN_OP_conv2d), 2);
    assert_int_equal(count_ops(fused, SN_OP_add) + count_ops(fused, SN_OP_relu) +
                         count_ops(fused, SN_OP_tanh),
                     0);
    const sn_node_info *conv = find_op(fused, SN_OP_conv2d), *dw = find_op(fused, SN_OP_conv2d_dw);
    assert_int_equal(conv->n_in, 3);
    assert_int_equal(conv->attrs.conv.act, SN_ACT_relu);
    assert_int_equal(dw->n_out, 2);                   /* the bias gradient comes with it */
    assert_int_equal(count_ops(fused, SN_OP_sum), 1); /* the loss */
    expect_same_numbers(*state, n.g, fused, 0);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

/* Windows that overlap: nothing is made of the convolution and the pool together. */
static void build_pool_net(net *n) {
    const sn_value x = net_input(n, "f64[2,6,6,2]");
    const sn_value y = sn_build_relu(&n->b, net_conv(n, x, "f64[3,3,2,3]", "f64[3]"));
    net_train(n, net_op(n, SN_OP_maxpool, "kernel=3,3 stride=2,2 pad=0,1,0,1", &y, 1));
}

/* relu moves behind the pool, forward and backward, so that nothing full-size is kept for the
 * backward half. */
static void test_fuse_pools_before_relu(void **state) {
    net n = net_begin(state);
    build_pool_net(&n);
    sn_graph *fused = fuse(n.g);
    const sn_node_info *relu = find_op(fused, SN_OP_relu),
                       *relu_grad = find_op(fused, SN_OP_relu_grad);
    const sn_node_info *grad = find_op(fused, SN_OP_maxpool_grad);
    assert_int_equal(maker_op(fused, relu->in[0]), SN_OP_maxpool);
    assert_int_equal(sn_graph_type(fused, relu->out[0])->dims[1], 3);
    assert_int_equal(relu_grad->in[1].i, relu->out[0].i);
    assert_int_equal(grad->in[0].i, relu_grad->out[0].i);
    assert_int_equal(maker_op(fused, find_op(fused, SN_OP_maxpool)->in[0]), SN_OP_conv2d);
    expect_same_numbers(*state, n.g, fused, 0);
    expect_same_numbers(*state, n.g, fused, 0.5); /* ties, also at zero */
    expect_same_numbers(*state, n.g, fused, 1);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

/* Two of them, so that one has a gradient to its input; the second without a relu, and with windows
 * that reach over the end. */
static void test_fuse_convolution_and_pool_are_one_node(void **state) {
    static const sn_op gone[] = {SN_OP_conv2d,  SN_OP_conv2d_dw, SN_OP_conv2d_dx,
                                 SN_OP_maxpool, SN_OP_relu_grad, SN_OP_maxpool_grad,
                                 SN_OP_relu,    SN_OP_add};
    net n = net_begin(state);
    const sn_value x = net_input(&n, "f64[2,9,9,2]");
    sn_value y = sn_build_relu(&n.b, net_conv(&n, x, "f64[3,3,2,3]", "f64[3]"));
    y = net_op(&n, SN_OP_maxpool, "kernel=2,2 stride=2,2", &y, 1);
    y = net_conv(&n, y, "f64[3,3,3,4]", "f64[4]");
    y = net_op(&n, SN_OP_maxpool, "kernel=3,2 stride=3,2 pad=0,2,0,0", &y, 1);
    net_train(&n, y);
    sn_graph *fused = fuse(n.g);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        assert_int_equal(count_ops(fused, gone[i]), 0);
    assert_int_equal(count_ops(fused, SN_OP_conv2d_pool), 2);
    assert_int_equal(count_ops(fused, SN_OP_conv2d_pool_dw), 2);
    assert_int_equal(count_ops(fused, SN_OP_conv2d_pool_dx), 1);
    assert_int_equal(count_ops(fused, SN_OP_sum), 1); /* the loss */
    assert_int_equal(find_op(fused, SN_OP_conv2d_pool)->attrs.conv_pool.act, SN_ACT_relu);
    expect_same_numbers(*state, n.g, fused, 0);
    expect_same_numbers(*state, n.g, fused, 0.5); /* ties, also at zero */
    expect_same_numbers(*state, n.g, fused, 1);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

#define CONV_POOL(between, pooled, attrs, out)                                                     \
    "snug graph 1\n%0 input x f64[2,6,6,2]\n%1 input w f64[3,3,2,3]\n"                             \
    "%2 = conv2d(%0 %1) | forward -> f64[2,4,4,3]\n" between " = maxpool(" pooled ") " attrs       \
    " | forward -> f64[2,2,2,3] opaque[2,2,2,3]\noutput y " out "\n"
#define RELU "%3 = relu(%2) | forward -> f64[2,4,4,3]\n%4 %5"
#define HALF "kernel=2,2 stride=2,2"

/* Nobody asks where the maxima were. */
static void test_fuse_conv_pool_in_inference_makes_no_codes(void **state) {
    static const char *const texts[] = {CONV_POOL(RELU, "%3", HALF, "%4"),
                                        CONV_POOL("%3 %4", "%2", HALF, "%3")};
    for (size_t i = 0; i < 2; i++) {
        sn_graph *g = parse(state, texts[i]), *fused = fuse(g);
        assert_int_equal(sn_graph_n_nodes(fused), 1);
        const sn_node_info *node = find_op(fused, SN_OP_conv2d_pool);
        assert_int_equal(node->n_out, 1);
        assert_int_equal(node->attrs.conv_pool.act, i == 0 ? SN_ACT_relu : SN_ACT_none);
        expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* The result of the convolution or its relu is an output, windows overlap, another activation
 * stands between; the gradient of the result has another reader. */
static void test_fuse_keeps_a_convolution_that_others_see(void **state) {
    static const char *const texts[] = {
        CONV_POOL(RELU, "%3", HALF, "%4") "output z %2\n",
        CONV_POOL(RELU, "%3", HALF, "%4") "output z %3\n",
        CONV_POOL(RELU, "%3", "kernel=3,3 stride=1,1", "%4"),
        CONV_POOL("%3 = tanh(%2) | forward -> f64[2,4,4,3]\n%4 %5", "%3", HALF, "%4"),
        CONV_POOL("%3 %4", "%2", HALF,
                  "%3") "%5 = maxpool_grad(%3 %4) kernel=2,2 stride=2,2 input=4,4 | backward -> "
                        "f64[2,4,4,3]\n%6 = conv2d_dw(%0 %5) kernel=3,3 | backward -> "
                        "f64[3,3,2,3]\noutput g %6\n%7 = exp(%5) | backward -> "
                        "f64[2,4,4,3]\noutput e %7\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sn_graph *g = parse(state, texts[i]), *fused = fuse(g);
        assert_int_equal(count_ops(fused, SN_OP_conv2d), 1);
        assert_int_equal(count_ops(fused, SN_OP_conv2d_pool), 0);
        expect_same_numbers(*state, g, fused, 0);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* A relu that somebody else reads stays where it is; without a backward half it moves alone. */
static void test_fuse_pool_keeps_a_relu_with_other_readers(void **state) {
#define POOLED                                                                                     \
    "snug graph 1\n%0 input x f64[1,4,4,1]\n%1 = relu(%0) | forward -> f64[1,4,4,1]\n"             \
    "%2 %3 = maxpool(%1) kernel=2,2 stride=2,2 | forward -> f64[1,2,2,1] opaque[1,2,2,1]\noutput " \
    "y %2\n"
    sn_graph *plain = fuse_text(state, POOLED);
    assert_int_equal(sn_graph_node_at(plain, (sn_node){0})->op, SN_OP_maxpool);
    assert_int_equal(sn_graph_node_at(plain, (sn_node){1})->op, SN_OP_relu);
    sn_graph *seen = fuse_text(state, POOLED "output z %1\n");
    assert_int_equal(sn_graph_node_at(seen, (sn_node){0})->op, SN_OP_relu);
    sn_graph *read =
        fuse_text(state, POOLED "%4 = exp(%1) | forward -> f64[1,4,4,1]\noutput z %4\n");
    assert_int_equal(sn_graph_node_at(read, (sn_node){0})->op, SN_OP_relu);
    sn_graph_destroy(plain);
    sn_graph_destroy(seen);
    sn_graph_destroy(read);
}

/* Who else reads the winners sees another one where a whole window is <= 0, so nothing moves: here
 * the gradient by the relu's output is asked for, and none by its input. */
static void test_fuse_pool_keeps_a_code_that_others_read(void **state) {
#define COARSE "kernel=2,2 stride=2,2"
    sn_graph *g = parse(
        state, "snug graph 1\n%0 input x f64[1,16,16,1]\n%1 input d f64[1,8,8,1]\n"
               "%2 = relu(%0) | forward -> f64[1,16,16,1]\n"
               "%3 %4 = maxpool(%2) " COARSE " | forward -> f64[1,8,8,1] opaque[1,8,8,1]\n"
               "%5 = maxpool_grad(%1 %4) " COARSE " input=16,16 | backward -> f64[1,16,16,1]\n"
               "output y %3\noutput g %5\n");
    sn_graph *fused = fuse(g);
    assert_int_equal(sn_graph_node_at(fused, (sn_node){0})->op, SN_OP_relu);
    expect_same_numbers(*state, g, fused, 0);
    sn_graph_destroy(fused);
    sn_graph_destroy(g);
}

/* Two pools in a row: the second must not move the relu the first one's backward half reads. */
static void test_fuse_pool_after_pool_stays_right(void **state) {
    net n = net_begin(state);
    const sn_value x = net_input(&n, "f64[2,8,8,1]");
    sn_value y = sn_build_relu(&n.b, net_conv(&n, x, "f64[3,3,1,2]", "f64[2]"));
    y = net_op(&n, SN_OP_maxpool, "kernel=2,2 stride=2,2", &y, 1);
    y = net_op(&n, SN_OP_maxpool, "kernel=2,2 stride=2,2", &y, 1);
    net_train(&n, sn_build_relu(&n.b, y));
    sn_graph *fused = fuse(n.g);
    expect_same_numbers(*state, n.g, fused, 0);
    expect_same_numbers(*state, n.g, fused, 0.5);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

/* One pass makes dx of a batch norm; the rest of its backward half is vectors. */
static void test_fuse_batch_norm_backward_is_one_channel_affine(void **state) {
    net n = net_begin(state);
    const sn_value x = net_input(&n, "f64[2,4,4,2]");
    const sn_value y = net_batch_norm(&n, net_conv(&n, x, "f64[3,3,2,3]", "f64[3]"), "f64[3]");
    net_train(&n, sn_build_relu(&n.b, y));
    sn_graph *fused = fuse(n.g);
    assert_int_equal(count_ops(fused, SN_OP_channel_affine), 1);
    for (uint32_t i = 0; i < sn_graph_n_nodes(fused); i++) {
        const sn_node_info *node = sn_graph_node_at(fused, (sn_node){i});
        if (node->part == SN_PART_BACKWARD && (node->op == SN_OP_add || node->op == SN_OP_mul))
            assert_true(sn_graph_type(fused, node->out[0])->rank < 4 ||
                        maker_op(fused, node->in[0]) == SN_OP_broadcast_to);
    }
    expect_same_numbers(*state, n.g, fused, 0);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

/* With a shortcut around it another gradient comes first; there is still one channel_affine, and
 * one sum. */
static void test_fuse_batch_norm_with_a_shortcut(void **state) {
    net n = net_begin(state);
    const sn_value x = net_input(&n, "f64[2,4,4,3]");
    const sn_value c = net_conv(&n, x, "f64[3,3,3,3]", "f64[3]");
    const sn_value y = sn_build_exp(&n.b, net_batch_norm(&n, c, "f64[3]"));
    net_train(&n, sn_build_add(&n.b, y, c));
    sn_graph *fused = fuse(n.g);
    assert_int_equal(count_ops(fused, SN_OP_channel_affine), 1);
    int full_sums = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(fused); i++) {
        const sn_node_info *node = sn_graph_node_at(fused, (sn_node){i});
        full_sums += node->part == SN_PART_BACKWARD && node->op == SN_OP_add &&
                     sn_graph_type(fused, node->out[0])->rank == 4;
    }
    assert_int_equal(full_sums, 1);
    expect_same_numbers(*state, n.g, fused, 0);
    sn_graph_destroy(fused);
    sn_graph_destroy(n.g);
}

static void test_fuse_of_a_fused_graph_changes_nothing(void **state) {
    net n = net_begin(state);
    snug_error err;
    build_pool_net(&n);
    sn_graph *once = fuse(n.g), *twice = fuse(once);
    sn_test_text a = {0}, b = {0};
    const snug_writer wa = sn_test_text_writer(&a), wb = sn_test_text_writer(&b);
    expect_ok(sn_graph_print(once, &wa, &err), &err);
    expect_ok(sn_graph_print(twice, &wb, &err), &err);
    assert_string_equal(a.data, b.data);
    sn_test_text_clear(&a);
    sn_test_text_clear(&b);
    sn_graph_destroy(twice);
    sn_graph_destroy(once);
    sn_graph_destroy(n.g);
}

/* The same rewrite for every extent of the batch: node for node, 1 and 5 give the same
 * operators. */
static void test_fuse_ignores_the_extent_of_the_batch(void **state) {
    sn_graph *fused[2];
    const char *const types[2] = {"f64[1,6,6,2]", "f64[5,6,6,2]"};
    for (int i = 0; i < 2; i++) {
        net n = net_begin(state);
        const sn_value x = net_input(&n, types[i]);
        const sn_value y = net_batch_norm(&n, net_conv(&n, x, "f64[3,3,2,3]", "f64[3]"), "f64[3]");
        const sn_value z = sn_build_relu(&n.b, y);
        net_train(&n, net_op(&n, SN_OP_maxpool, "kernel=2,2 stride=2,2", &z, 1));
        fused[i] = fuse(n.g);
        sn_graph_destroy(n.g);
    }
    assert_int_equal(sn_graph_n_nodes(fused[0]), sn_graph_n_nodes(fused[1]));
    for (uint32_t i = 0; i < sn_graph_n_nodes(fused[0]); i++)
        assert_int_equal(sn_graph_node_at(fused[0], (sn_node){i})->op,
                         sn_graph_node_at(fused[1], (sn_node){i})->op);
    sn_graph_destroy(fused[0]);
    sn_graph_destroy(fused[1]);
}

static void test_fuse_keeps_templates_open(void **state) {
    snug_error err;
    sn_graph *t = parse(
        state, "snug graph 1\n%0 input x f32[?,3]\n%1 input w f32[3,2]\n%2 input b f32[2]\n"
               "%3 = exp(%0) | forward -> f32[?,3]\np0 inverse %3 0x1\np1 real 0\n"
               "%4 = matmul(%0 %1) | forward -> f32[?,2]\n%5 = add(%4 %2) | forward -> f32[?,2]\n"
               "%6 = affine(%5) scale=p0 shift=p1 | forward -> f32[?,2]\noutput y %6\n");
    sn_graph *fused, *g;
    expect_ok(sn_graph_fuse(t, &fused, &err), &err);
    expect_ok(sn_graph_check(fused, true, &err), &err);
    const snug_type types[3] = {{SNUG_F32, 2, {4, 3}}, {SNUG_F32, 2, {3, 2}}, {SNUG_F32, 1, {2}}};
    expect_ok(sn_graph_instantiate(fused, types, 3, &g, &err), &err);
    const sn_param scale = {(uint32_t)find_op(g, SN_OP_affine)->attrs.affine.scale};
    assert_true(sn_graph_param_at(g, scale)->real == 0.25);
    sn_graph_destroy(g);
    sn_graph_destroy(fused);
    sn_graph_destroy(t);
}

/* A product whose rows a parameter waits to count is not absorbed by its activation. */
static void test_fuse_keeps_a_value_whose_extent_is_open(void **state) {
    snug_error err;
    sn_graph *t =
        parse(state, "snug graph 1\n%0 input x f32[?,3]\n%1 input w f32[3,2]\n"
                     "%2 = matmul(%0 %1) | forward -> f32[?,2]\np0 inverse %2 0x1\np1 real 0\n"
                     "%3 = relu(%2) | forward -> f32[?,2]\n"
                     "%4 = affine(%3) scale=p0 shift=p1 | forward -> f32[?,2]\noutput y %4\n");
    sn_graph *fused, *g;
    expect_ok(sn_graph_fuse(t, &fused, &err), &err);
    const snug_type types[2] = {{SNUG_F32, 2, {8, 3}}, {SNUG_F32, 2, {3, 2}}};
    expect_ok(sn_graph_instantiate(fused, types, 2, &g, &err), &err);
    const sn_param scale = {(uint32_t)find_op(g, SN_OP_affine)->attrs.affine.scale};
    assert_true(sn_graph_param_at(g, scale)->real == 0.125);
    sn_graph_destroy(g);
    sn_graph_destroy(fused);
    sn_graph_destroy(t);
}

/* --- convolutions of concatenations ----------------------------------------------------------- */
/* Parts of 16 and `width` channels; %6 is the concatenation, %8 the weight gradient. */
#define JOIN(width, all)                                                                           \
    "snug graph 1\n%0 input a f64[2,3,3,16]\n%1 input b f64[2,3,3," width "]\n"                    \
    "%2 input dy f64[2,3,3,2]\n%3 input w f64[3,3," all ",2]\n"                                    \
    "%4 = exp(%0) | forward -> f64[2,3,3,16]\n%5 = exp(%1) | forward -> f64[2,3,3," width "]\n"    \
    "%6 = concat(%4 %5) axis=3 | forward -> f64[2,3,3," all "]\n"                                  \
    "%7 = conv2d(%6 %3) stride=1,1 pad=1,1,1,1 dilation=1,1 groups=1 act=none | forward -> "       \
    "f64[2,3,3,2]\n"                                                                               \
    "%8 = conv2d_dw(%6 %2) stride=1,1 pad=1,1,1,1 dilation=1,1 groups=1 kernel=3,3 bias=0 | "      \
    "backward -> f64[3,3," all ",2]\n"                                                             \
    "output y %7\noutput dw %8\n"

static sn_graph *unjoin(void **state, const char *text) {
    snug_error err;
    sn_graph *g = parse(state, text), *out;
    expect_ok(sn_graph_unjoin(g, &out, &err), &err);
    if (out) {
        expect_ok(sn_graph_check(out, false, &err), &err);
        expect_same_numbers(*state, g, out, 0);
    }
    sn_graph_destroy(g);
    return out;
}

static void test_the_weight_gradient_of_a_concatenation_comes_in_parts(void **state) {
    sn_graph *g = unjoin(state, JOIN("32", "48"));
    assert_non_null(g);
    assert_int_equal(count_ops(g, SN_OP_conv2d_dw), 2);
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        if (n->op == SN_OP_conv2d_dw)
            assert_int_equal(maker_op(g, n->in[0]), SN_OP_exp);
    }
    sn_graph_destroy(g);
}

static void test_narrow_parts_and_what_others_read_stay_joined(void **state) {
    assert_null(unjoin(state, JOIN("3", "19")));
    assert_null(unjoin(state, JOIN("32", "48") "output joined %6\n"));
    assert_null(unjoin(state, DENSE "output y %3\n"));
}

/* The same in bf16, whose gradients of weights and bias are read in f32. */
#define JOIN_BF16                                                                                  \
    "snug graph 1\n%0 input a bf16[2,3,3,16]\n%1 input b bf16[2,3,3,32]\n%2 input dy "             \
    "bf16[2,3,3,2]\n"                                                                              \
    "%3 = exp(%0) | forward -> bf16[2,3,3,16]\n%4 = exp(%1) | forward -> bf16[2,3,3,32]\n"         \
    "%5 = concat(%3 %4) axis=3 | forward -> bf16[2,3,3,48]\n"                                      \
    "%6 = conv2d_dw(%5 %2) stride=1,1 pad=1,1,1,1 dilation=1,1 groups=1 kernel=3,3 bias=0 | "      \
    "backward -> bf16[3,3,48,2]\n"                                                                 \
    "%7 = cast(%6) dtype=f32 | backward -> f32[3,3,48,2]\n"                                        \
    "%8 = sum(%2) axes=0,1,2 keepdims=0 | backward -> bf16[2]\n"                                   \
    "%9 = cast(%8) dtype=f32 | backward -> f32[2]\n"                                               \
    "output dw %7\noutput db %9\n"

static void test_parts_that_are_read_in_f32_are_made_so(void **state) {
    snug_error err;
    sn_graph *g = parse(state, JOIN_BF16), *apart, *fused;
    expect_ok(sn_graph_unjoin(g, &apart, &err), &err);
    assert_non_null(apart);
    expect_ok(sn_graph_check(apart, false, &err), &err);
    expect_ok(sn_graph_fuse(apart, &fused, &err), &err);
    expect_ok(sn_graph_check(fused, false, &err), &err);
    assert_int_equal(count_ops(fused, SN_OP_cast), 0);
    assert_int_equal(count_ops(fused, SN_OP_sum), 0);
    for (uint32_t i = 0; i < sn_graph_n_nodes(fused); i++) {
        const sn_node_info *n = sn_graph_node_at(fused, (sn_node){i});
        if (n->op == SN_OP_conv2d_dw)
            assert_int_equal(n->attrs.conv_dw.wide, 1);
    }
    assert_int_equal(count_ops(fused, SN_OP_conv2d_dw), 2);
    sn_graph_destroy(fused);
    sn_graph_destroy(apart);
    sn_graph_destroy(g);
}

static snug_status unjoin_scenario(snug_engine *e, void *ctx, snug_error *err) {
    sn_graph *g, *out = NULL;
    SNUG_TRY(sn_graph_parse(e, ctx, &g, err));
    const snug_status status = sn_graph_unjoin(g, &out, err);
    sn_graph_destroy(out);
    sn_graph_destroy(g);
    return status;
}

static void test_unjoin_survives_any_failed_request(void **state) {
    (void)state;
    char text[] = JOIN("32", "48");
    sn_fault_sweep(unjoin_scenario, text);
}

static snug_status fuse_scenario(snug_engine *e, void *ctx, snug_error *err) {
    sn_graph *g, *fused = NULL;
    SNUG_TRY(sn_graph_parse(e, ctx, &g, err));
    const snug_status status = sn_graph_fuse(g, &fused, err);
    sn_graph_destroy(fused);
    sn_graph_destroy(g);
    return status;
}

static void test_fuse_survives_any_failed_request(void **state) {
    (void)state;
    char text[] = DENSE
        "%4 = add(%3 %2) | forward -> f64[4,2]\n%5 = relu(%4) | forward -> f64[4,2]\noutput y %5\n";
    sn_fault_sweep(fuse_scenario, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_fuse_drops_what_nobody_needs),
        engine_test(test_fuse_dense_is_one_node),
        engine_test(test_fuse_leaves_alone_what_others_see),
        engine_test(test_fuse_batch_norm_in_inference_is_the_convolution_s),
        engine_test(test_fuse_batch_norm_before_a_pool),
        engine_test(test_fuse_leaves_batch_norms_that_are_no_line),
        engine_test(test_the_weight_gradient_of_a_concatenation_comes_in_parts),
        engine_test(test_narrow_parts_and_what_others_read_stay_joined),
        engine_test(test_parts_that_are_read_in_f32_are_made_so),
        cmocka_unit_test(test_unjoin_survives_any_failed_request),
        engine_test(test_fuse_conv_network_in_pairs),
        engine_test(test_fuse_pools_before_relu),
        engine_test(test_fuse_convolution_and_pool_are_one_node),
        engine_test(test_fuse_conv_pool_in_inference_makes_no_codes),
        engine_test(test_fuse_keeps_a_convolution_that_others_see),
        engine_test(test_fuse_pool_keeps_a_relu_with_other_readers),
        engine_test(test_fuse_pool_keeps_a_code_that_others_read),
        engine_test(test_fuse_keeps_a_value_whose_extent_is_open),
        engine_test(test_fuse_pool_after_pool_stays_right),
        engine_test(test_fuse_batch_norm_backward_is_one_channel_affine),
        engine_test(test_fuse_batch_norm_with_a_shortcut),
        engine_test(test_fuse_of_a_fused_graph_changes_nothing),
        engine_test(test_fuse_ignores_the_extent_of_the_batch),
        engine_test(test_fuse_keeps_templates_open),
        cmocka_unit_test(test_fuse_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
