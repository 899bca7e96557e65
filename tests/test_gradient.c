/* test_gradient.c: gradients graph to graph: against central differences in f64, first and second
 * order, for every row that has a rule; what they append, what they read, and how they refuse. */
#include "support/eval.h"
#include "support/support.h"
#include "support/text.h"

#include "graph/build.h"
#include "graph/grad.h"
#include "graph/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numeric cases --- */

#define MAX_CASE_IN 5

typedef sn_value (*case_builder)(sn_builder *b, const sn_value *in);

/* One operator (or a composition by `build`), applied to inputs of these types. The gradient is
 * taken for float inputs. */
typedef struct {
    const char *op, *attrs;
    const char *types; /* separated by blanks */
    double low, high;  /* of the float inputs */
    int order;         /* 2: the gradient is differentiated again */
    case_builder build;
} gradient_case;

static snug_status add_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *err) {
    sn_param p;
    SNUG_TRY(sn_graph_param(
        ctx,
        &(sn_param_info){.kind = is_key ? SN_PARAM_KEY : SN_PARAM_REAL, .real = real, .key = key},
        &p, err));
    *slot = (int64_t)p.i;
    return SNUG_OK;
}

static sn_value pick_after_pool(sn_builder *b, const sn_value *in) {
    sn_attrs a, p;
    sn_value pooled[SN_MAX_OUT];
    snug_error err;
    expect_ok(sn_attrs_parse(SN_OP_maxpool, "kernel=2,2 stride=2,2", NULL, &a, &err), &err);
    expect_ok(sn_attrs_parse(SN_OP_maxpool_pick, "kernel=2,2 stride=2,2 input=4,4", NULL, &p, &err),
              &err);
    sn_build_all(b, SN_OP_maxpool, &a, &in[0], 1, pooled);
    const sn_value pair[2] = {in[1], pooled[1]};
    return sn_build(b, SN_OP_maxpool_pick, &p, pair, 2);
}

/* Batch norm as layers build it: mean and variance from moments in f64. in: x, gamma, beta. */
static sn_value batch_norm(sn_builder *b, const sn_value *in) {
    sn_value sums[SN_MAX_OUT];
    const snug_type t = *sn_graph_type(b->graph, in[0]);
    const double n = (double)sn_type_span(&t, 0, t.rank - 1);
    sn_build_all(b, SN_OP_moments, NULL, in, 1, sums);
    const sn_value mean = sn_build_affine(b, sums[0], 1 / n, 0),
                   square = sn_build_affine(b, sums[1], 1 / n, 0);
    const sn_value var = sn_build_sub(b, square, sn_build_square(b, mean));
    const sn_value all[5] = {in[0], sn_build_cast(b, mean, t.dtype), sn_build_cast(b, var, t.dtype),
                             in[1], in[2]};
    sn_attrs a;
    sn_attrs_default(SN_OP_normalise, &a);
    a.epsilon.epsilon = (int64_t)sn_build_param(b, "", 1e-3).i;
    return sn_build(b, SN_OP_normalise, &a, all, 5);
}

/* One head of attention with a shared weight: q, k and v from x [B,T,D]. in: x, w [D,D]. */
static sn_value attention(sn_builder *b, const sn_value *in) {
    const sn_value q = sn_build_matmul(b, in[0], in[1], SN_NO_VALUE);
    const sn_value scores = sn_build_matmul_t(b, q, in[0], false, true);
    return sn_build_matmul(b, sn_build_softmax(b, sn_build_affine(b, scores, 0.5, 0)), q,
                           SN_NO_VALUE);
}

static sn_value shared_twice(sn_builder *b, const sn_value *in) {
    const sn_value y = sn_build_mul(b, in[0], in[0]);
    return sn_build_add(b, sn_build_mul(b, y, in[0]), sn_build_sub(b, y, in[0]));
}

#define X23  "f64[2,3]"
#define CONV "stride=2,1 pad=1,0,1,1 dilation=1,2"
static const gradient_case cases[] = {
    {"identity", "", X23, -1, 1, 2, NULL},
    {"check_finite", "", X23, -1, 1, 1, NULL},
    {"neg", "", X23, -1, 1, 2, NULL},
    {"abs", "", X23, -1, 1, 2, NULL},
    {"square", "", X23, -1, 1, 2, NULL},
    {"sqrt", "", X23, 0.5, 2, 2, NULL},
    {"rsqrt", "", X23, 0.5, 2, 2, NULL},
    {"reciprocal", "", X23, 0.5, 2, 2, NULL},
    {"exp", "", X23, -1, 1, 2, NULL},
    {"log", "", X23, 0.5, 2, 2, NULL},
    {"tanh", "", X23, -1, 1, 2, NULL},
    {"sigmoid", "", X23, -2, 2, 2, NULL},
    {"softplus", "", X23, -2, 2, 2, NULL},
    {"erf", "", X23, -2, 2, 2, NULL},
    {"relu", "", X23, -1, 1, 2, NULL},
    {"leaky_relu", "value=0.2", X23, -1, 1, 2, NULL},
    {"elu", "value=0.7", X23, -1, 1, 2, NULL},
    {"silu", "", X23, -2, 2, 2, NULL},
    {"gelu", "", X23, -2, 2, 2, NULL},
    {"affine", "scale=2.5 shift=-1", X23, -1, 1, 2, NULL},
    {"power", "value=3", X23, -1, 1, 2, NULL},
    {"power", "value=-0.5", X23, 0.5, 2, 2, NULL},
    {"clip", "low=-0.4 high=0.6", X23, -1, 1, 2, NULL},
    {"cast", "dtype=f64", X23, -1, 1, 2, NULL},
    {"dropout", "rate=0.5 key=3", "f64[4,5]", -1, 1, 2, NULL},
    {"relu_grad", "", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"leaky_relu_grad", "value=0.2", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"elu_grad", "value=0.7", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"tanh_grad", "", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"sigmoid_grad", "", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"silu_grad", "", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"gelu_grad", "", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"add", "", "f64[2,3] f64[3]", -1, 1, 2, NULL},
    {"add", "", "f64[2,1] f64[1,3]", -1, 1, 2, NULL},
    {"sub", "", "f64[3] f64[2,3]", -1, 1, 2, NULL},
    {"mul", "", "f64[2,1,3] f64[2,1]", -1, 1, 2, NULL},
    {"div", "", "f64[2,3] f64[3]", 0.5, 2, 2, NULL},
    {"maximum", "", "f64[2,3] f64[3]", -1, 1, 2, NULL},
    {"minimum", "", "f64[1,3] f64[2,3]", -1, 1, 2, NULL},
    {"select", "", "bool[2,3] f64[2,3] f64[]", -1, 1, 2, NULL},
    {"sum", "axes=0", X23, -1, 1, 2, NULL},
    {"sum", "", X23, -1, 1, 2, NULL},
    {"sum", "axes=1,2 keepdims=1", "f64[2,3,2]", -1, 1, 2, NULL},
    {"max", "axes=1", X23, -1, 1, 2, NULL},
    {"max", "axes=0,2 keepdims=1", "f64[2,3,2]", -1, 1, 2, NULL},
    {"broadcast_to", "dims=2,4,3", "f64[4,1]", -1, 1, 2, NULL},
    {"matmul", "", "f64[2,3] f64[3,4] f64[4]", -1, 1, 2, NULL},
    {"matmul", "trans_a=1", "f64[3,2] f64[3,4]", -1, 1, 2, NULL},
    {"matmul", "trans_b=1", "f64[2,3] f64[4,3]", -1, 1, 2, NULL},
    {"matmul", "trans_a=1 trans_b=1", "f64[3,2] f64[4,3]", -1, 1, 2, NULL},
    {"matmul", "", "f64[2,2,3] f64[3,2]", -1, 1, 2, NULL},
    {"matmul", "trans_b=1", "f64[2,2,3] f64[2,3] f64[2]", -1, 1, 2, NULL},
    {"matmul", "trans_a=1", "f64[2,3,2] f64[3,2]", -1, 1, 2, NULL},
    {"matmul", "", "f64[2,3] f64[2,3,2]", -1, 1, 2, NULL},
    {"matmul", "trans_a=1 trans_b=1", "f64[2,1,3,2] f64[2,2,3]", -1, 1, 2, NULL},
    {"conv2d", "pad=1,1,1,1", "f64[1,3,3,2] f64[3,3,2,2] f64[2]", -1, 1, 2, NULL},
    {"conv2d", CONV, "f64[2,4,4,1] f64[2,2,1,2]", -1, 1, 2, NULL},
    {"conv2d", "groups=2", "f64[1,3,3,4] f64[2,2,2,2]", -1, 1, 2, NULL},
    {"conv2d_dx", CONV " input=4,4", "f64[2,2,4,2] f64[2,2,1,2]", -1, 1, 2, NULL},
    {"conv2d_dw", CONV " kernel=2,2", "f64[2,4,4,1] f64[2,2,4,2]", -1, 1, 2, NULL},
    {"maxpool", "kernel=2,2 stride=2,2", "f64[1,4,4,2]", -1, 1, 2, NULL},
    {"maxpool", "kernel=3,3 stride=1,2 pad=1,1,1,0", "f64[1,3,4,1]", -1, 1, 2, NULL},
    {"maxpool_pick", "", "f64[1,4,4,1] f64[1,4,4,1]", -1, 1, 2, pick_after_pool},
    {"avgpool", "kernel=2,2 stride=2,1 pad=0,1,1,0", "f64[1,3,3,2]", -1, 1, 2, NULL},
    {"avgpool_grad", "kernel=2,2 stride=2,1 pad=0,1,1,0 input=3,3", "f64[1,2,3,2]", -1, 1, 2, NULL},
    {"moments", "", "f64[2,3,2]", -1, 1, 2, NULL},
    {"normalise", "epsilon=0.1", "f64[4,3] f64[3] f64[3] f64[3] f64[3]", 0.5, 2, 2, NULL},
    {"channel_affine", "", "f64[4,3] f64[4,3] f64[3] f64[3] f64[3]", -1, 1, 2, NULL},
    {"layernorm", "epsilon=0.1", "f64[2,3,4] f64[4] f64[4]", -1, 1, 2, NULL},
    {"softmax", "", "f64[2,4]", -1, 1, 2, NULL},
    {"softmax_grad", "", "f64[2,4] f64[2,4]", -1, 1, 2, NULL},
    {"log_softmax", "", "f64[2,4]", -1, 1, 2, NULL},
    {"softmax_xent", "", "f64[2,4] f64[2,4]", 0.1, 1, 2, NULL},
    {"softmax_xent", "", "f64[4] f64[4]", 0.1, 1, 2, NULL},
    {"softmax_xent_grad", "", "f64[2,4] f64[2,4] f64[2]", 0.1, 1, 2, NULL},
    {"sparse_xent", "", "f64[3,4] i32[3]", -1, 1, 2, NULL},
    {"sparse_xent_grad", "", "f64[3,4] i32[3] f64[3]", -1, 1, 2, NULL},
    {"sigmoid_xent", "", "f64[2,3] f64[2,3]", -1, 1, 2, NULL},
    {"reshape", "dims=3,2", X23, -1, 1, 2, NULL},
    {"transpose", "perm=2,0,1", "f64[2,3,4]", -1, 1, 2, NULL},
    {"concat", "axis=1", "f64[2,1] f64[2,3] f64[2,2]", -1, 1, 2, NULL},
    {"slice", "sizes=2,2 strides=1,2 start=1,0", "f64[4,3]", -1, 1, 2, NULL},
    {"slice_grad", "dims=4,3 strides=1,2 start=1,0", "f64[2,2]", -1, 1, 2, NULL},
    {"pad", "before=1,0 after=0,2 value=0.5", X23, -1, 1, 2, NULL},
    {"gather", "axis=1", "f64[2,3,2] i32[4]", -1, 1, 2, NULL},
    {"scatter_add", "axis=1 dims=2,3,2", "i32[4] f64[2,4,2]", -1, 1, 2, NULL},
    /* nothing and one of everything */
    {"mul", "", "f64[0,3] f64[3]", -1, 1, 2, NULL},
    {"sum", "axes=0", "f64[0,3]", -1, 1, 2, NULL},
    {"sum", "", "f64[]", -1, 1, 2, NULL},
    {"max", "axes=0", "f64[1,1]", -1, 1, 2, NULL},
    {"matmul", "", "f64[0,3] f64[3,2] f64[2]", -1, 1, 2, NULL},
    {"matmul", "", "f64[2,0,3] f64[3,2]", -1, 1, 2, NULL},
    {"matmul", "", "f64[2,0] f64[0,3]", -1, 1, 2, NULL},
    {"conv2d", "pad=1,1,1,1", "f64[0,3,3,2] f64[3,3,2,2] f64[2]", -1, 1, 2, NULL},
    {"maxpool", "kernel=2,2 stride=2,2", "f64[0,4,4,2]", -1, 1, 2, NULL},
    {"moments", "", "f64[0,3]", -1, 1, 2, NULL},
    {"normalise", "epsilon=0.1", "f64[0,3] f64[3] f64[3] f64[3] f64[3]", 0.5, 2, 2, NULL},
    {"layernorm", "epsilon=0.1", "f64[0,4] f64[4] f64[4]", -1, 1, 2, NULL},
    {"softmax_xent", "", "f64[0,4] f64[0,4]", 0.1, 1, 2, NULL},
    {"concat", "axis=0", "f64[0,2] f64[2,2]", -1, 1, 2, NULL},
    {"gather", "axis=0", "f64[3,2] i32[0]", -1, 1, 2, NULL},
    {"transpose", "perm=1,0", "f64[0,1]", -1, 1, 2, NULL},
    {"batch norm", "", "f64[4,3] f64[3] f64[3]", 0.5, 2, 2, batch_norm},
    {"attention", "", "f64[2,3,2] f64[2,2]", -1, 1, 2, attention},
    {"shared", "", X23, -1, 1, 2, shared_twice},
};

/* A graph under test: value inputs first, then the weights that make a scalar of many numbers. */
typedef struct {
    sn_graph *g;
    sn_value in[MAX_CASE_IN];
    int n_in, n_weights;
} subject;

/* sum(v * r) with r a new input. */
static sn_value weigh(subject *s, sn_builder *b, sn_value v) {
    char name[16];
    snug_error err;
    sn_value r;
    const snug_type t = *sn_graph_type(s->g, v);
    snprintf(name, sizeof name, "r%d", s->n_weights++);
    expect_ok(sn_graph_input(s->g, name, &t, &r, &err), &err);
    return sn_build_sum(b, sn_build_mul(b, v, r), 0, false);
}

static void make_inputs(subject *s, const char *types) {
    snug_error err;
    while (*types) {
        char name[16];
        snug_type t;
        snprintf(name, sizeof name, "x%d", s->n_in);
        expect_ok(sn_type_parse(types, &types, &t, &err), &err);
        expect_ok(sn_graph_input(s->g, name, &t, &s->in[s->n_in++], &err), &err);
        types += *types == ' ';
    }
}

/* The case's operator and a scalar of all its float outputs; of layernorm only the first has a
 * gradient. */
static sn_value make_loss(subject *s, sn_builder *b, const gradient_case *c) {
    snug_error err;
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    if (c->build) {
        outs[0] = c->build(b, s->in);
    } else {
        sn_op op = SN_OP_fill;
        sn_attrs a;
        const sn_param_maker maker = {s->g, add_slot};
        expect_ok(sn_op_find(c->op, &op, &err), &err);
        expect_ok(sn_attrs_parse(op, c->attrs, &maker, &a, &err), &err);
        sn_build_all(b, op, &a, s->in, s->n_in, outs);
    }
    expect_ok(sn_builder_done(b, &err), &err);
    sn_value loss = weigh(s, b, outs[0]);
    for (int k = 1; k < SN_MAX_OUT; k++)
        if (sn_value_ok(outs[k]) && sn_dtype_is_float(sn_graph_type(s->g, outs[k])->dtype))
            loss = sn_build_add(b, loss, weigh(s, b, outs[k]));
    expect_ok(sn_builder_done(b, &err), &err);
    return loss;
}

/* Gradients for the float inputs; other entries are SN_NO_VALUE. */
static void take_gradients(subject *s, sn_value loss, sn_value *grads) {
    snug_error err;
    for (int i = 0; i < s->n_in; i++) {
        grads[i] = SN_NO_VALUE;
        if (sn_dtype_is_float(sn_graph_type(s->g, s->in[i])->dtype))
            expect_ok(sn_graph_gradients(s->g, loss, &s->in[i], 1, &grads[i], &err), &err);
    }
}

/* The gradients by the graph against central differences of its output "loss". */
static void compare(snug_engine *e, subject *s, const gradient_case *c, const sn_value *grads) {
    const double h = 1e-5;
    sn_test_arrays x = sn_test_inputs(s->g, c->low, c->high);
    sn_test_arrays base = sn_test_eval(e, s->g, &x);
    uint32_t output = 1;
    for (int i = 0; i < s->n_in; i++) {
        const bool has = sn_value_ok(grads[i]);
        if (!sn_dtype_is_float(sn_graph_type(s->g, s->in[i])->dtype))
            continue;
        for (size_t k = 0; k < x.count[i]; k++) {
            const double at = x.data[i][k];
            x.data[i][k] = at + h;
            sn_test_arrays up = sn_test_eval(e, s->g, &x);
            x.data[i][k] = at - h;
            sn_test_arrays down = sn_test_eval(e, s->g, &x);
            x.data[i][k] = at;
            const double want = (up.data[0][0] - down.data[0][0]) / (2 * h);
            const double got = has ? base.data[output][k] : 0;
            if (!(fabs(want - got) <= 2e-7 * (1 + fabs(want))))
                fail_msg("%s %s (%s): gradient %d[%zu] is %.10g, differences say %.10g", c->op,
                         c->attrs, c->types, i, k, got, want);
            sn_test_arrays_clear(&up);
            sn_test_arrays_clear(&down);
        }
        output += has;
    }
    sn_test_arrays_clear(&base);
    sn_test_arrays_clear(&x);
}

static void name_outputs(subject *s, sn_value loss, const sn_value *grads) {
    snug_error err;
    expect_ok(sn_graph_output(s->g, "loss", loss, &err), &err);
    for (int i = 0; i < s->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", i);
        if (sn_value_ok(grads[i]))
            expect_ok(sn_graph_output(s->g, name, grads[i], &err), &err);
    }
    expect_ok(sn_graph_check(s->g, false, &err), &err);
}

/* order 2: the loss is made of the gradients of the case's loss. */
static void check_case(snug_engine *e, const gradient_case *c, int order) {
    snug_error err;
    subject s = {0};
    sn_value grads[MAX_CASE_IN];
    expect_ok(sn_graph_create(e, &s.g, &err), &err);
    make_inputs(&s, c->types);
    sn_builder b = sn_builder_on(s.g);
    sn_value loss = make_loss(&s, &b, c);
    if (order == 2) {
        take_gradients(&s, loss, grads);
        loss = sn_build_scalar(&b, SNUG_F64, 0);
        for (int i = 0; i < s.n_in; i++)
            if (sn_value_ok(grads[i]))
                loss = sn_build_add(&b, loss, weigh(&s, &b, grads[i]));
        expect_ok(sn_builder_done(&b, &err), &err);
    }
    take_gradients(&s, loss, grads);
    name_outputs(&s, loss, grads);
    compare(e, &s, c, grads);
    sn_graph_destroy(s.g);
}

/* That every row with a rule is differentiated is test_ops_gradient's, from the cases column. */
static void test_gradients_agree_with_differences(void **state) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int order = 1; order <= cases[i].order; order++)
            check_case(*state, &cases[i], order);
}

/* --- structure --- */

static sn_graph *parse(void **state, const char *text) {
    snug_error err;
    sn_graph *g;
    expect_ok(sn_graph_parse(*state, text, &g, &err), &err);
    return g;
}

static int count_ops(const sn_graph *g, sn_op op) {
    int n = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        n += sn_graph_node_at(g, (sn_node){i})->op == op;
    return n;
}

static const char mlp_text[] = "snug graph 1\n"
                               "owner dense\nowner loss\n"
                               "%0 input x f32[8,4,5]\n"
                               "%1 variable w f32[5,3] home 0 trainable init constant 0 1 0\n"
                               "%2 = matmul(%0 %1) | forward @dense -> f32[8,4,3]\n"
                               "%3 = relu(%2) | forward @dense -> f32[8,4,3]\n"
                               "%4 = sum(%3) | forward @loss -> f32[]\n";

static void test_gradient_nodes_belong_to_the_layer_and_part(void **state) {
    snug_error err;
    sn_graph *g = parse(state, mlp_text);
    const sn_value w = {1};
    sn_value dw;
    expect_ok(sn_graph_set_owner(g, "later", &err), &err);
    expect_ok(sn_graph_gradients(g, (sn_value){4}, &w, 1, &dw, &err), &err);
    assert_true(sn_type_equal(sn_graph_type(g, dw), sn_graph_type(g, w)));
    for (uint32_t i = 3; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        assert_int_equal(node->part, SN_PART_BACKWARD);
        assert_string_equal(sn_graph_owner_name(g, node->owner),
                            node->op == SN_OP_fill || node->op == SN_OP_broadcast_to ||
                                    (node->op == SN_OP_reshape && node->owner != 1)
                                ? "loss"
                                : "dense");
    }
    sn_builder b = sn_builder_on(g);
    sn_build_relu(&b, w); /* the caller's owner and part are back */
    const sn_node_info *last = sn_graph_node_at(g, (sn_node){sn_graph_n_nodes(g) - 1});
    assert_string_equal(sn_graph_owner_name(g, last->owner), "later");
    assert_int_equal(last->part, SN_PART_FORWARD);
    sn_graph_destroy(g);
}

static void test_gradient_of_a_shared_weight_is_one_product(void **state) {
    snug_error err;
    sn_graph *g = parse(state, mlp_text);
    const sn_value w = {1};
    sn_value dw;
    expect_ok(sn_graph_gradients(g, (sn_value){4}, &w, 1, &dw, &err), &err);
    const sn_node_info *maker = sn_graph_node_at(g, sn_graph_value_at(g, dw)->node);
    assert_int_equal(maker->op, SN_OP_matmul);
    assert_int_equal(maker->attrs.matmul.trans_a, 1);
    assert_int_equal(sn_graph_type(g, maker->in[0])->dims[0], 32);
    assert_int_equal(count_ops(g, SN_OP_matmul), 2); /* none for x, which nobody asked for */
    sn_graph_destroy(g);
}

static void test_gradient_of_relu_reads_the_output(void **state) {
    snug_error err;
    sn_graph *g = parse(state, mlp_text);
    const sn_value w = {1};
    sn_value dw;
    expect_ok(sn_graph_gradients(g, (sn_value){4}, &w, 1, &dw, &err), &err);
    for (uint32_t i = 3; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        for (int k = 0; k < node->n_in; k++)
            assert_int_not_equal(node->in[k].i, 2); /* the value before relu */
    }
    assert_int_equal(count_ops(g, SN_OP_relu_grad), 1);
    sn_graph_destroy(g);
}

static void test_gradient_is_absent_where_nothing_depends(void **state) {
    snug_error err;
    sn_graph *g =
        parse(state, "snug graph 1\n%0 input x f32[3]\n%1 input y f32[3]\n%2 = stop_gradient(%1) | "
                     "forward -> f32[3]\n"
                     "%3 = mul(%0 %2) | forward -> f32[3]\n%4 = sum(%3) | forward -> f32[]\n");
    const sn_value wrt[3] = {{0}, {1}, {4}};
    sn_value grads[3];
    const uint32_t before = sn_graph_n_nodes(g);
    expect_ok(sn_graph_gradients(g, (sn_value){4}, &wrt[1], 1, grads, &err), &err);
    assert_false(sn_value_ok(grads[0]));
    assert_int_equal(sn_graph_n_nodes(g), before);
    expect_ok(sn_graph_gradients(g, (sn_value){4}, wrt, 3, grads, &err), &err);
    assert_true(sn_value_ok(grads[0]) && !sn_value_ok(grads[1]) && sn_value_ok(grads[2]));
    sn_graph_destroy(g);
}

/* x^0 is 1 everywhere; 0 x^(-1) would be NaN at 0: no second power is made. */
static void test_gradient_of_a_power_of_zero_is_zeros(void **state) {
    snug_error err;
    sn_graph *g = parse(state, "snug graph 1\n%0 input x f32[3]\np0 real 0\n"
                               "%1 = power(%0) value=p0 | forward -> f32[3]\n"
                               "%2 = sum(%1) | forward -> f32[]\n");
    const sn_value x = {0};
    sn_value dx;
    expect_ok(sn_graph_gradients(g, (sn_value){2}, &x, 1, &dx, &err), &err);
    assert_true(sn_value_ok(dx));
    assert_true(sn_type_equal(sn_graph_type(g, dx), sn_graph_type(g, x)));
    const sn_node_info *node = sn_graph_node_at(g, sn_graph_value_at(g, dx)->node);
    assert_int_equal(node->op, SN_OP_fill);
    const sn_param zero = {(uint32_t)node->attrs.fill.value};
    assert_true(sn_graph_param_at(g, zero)->real == 0);
    assert_int_equal(count_ops(g, SN_OP_power), 1);
    sn_graph_destroy(g);
}

/* Contributions of several readers meet in one fixed order: the later reader's comes first. */
static void test_gradients_are_summed_in_reverse_program_order(void **state) {
    snug_error err;
    sn_graph *g =
        parse(state, "snug graph 1\n%0 input x f32[3]\n%1 = exp(%0) | forward -> f32[3]\n%2 = "
                     "tanh(%0) | forward -> f32[3]\n"
                     "%3 = add(%1 %2) | forward -> f32[3]\n%4 = sum(%3) | forward -> f32[]\n");
    const sn_value x = {0};
    sn_value dx;
    expect_ok(sn_graph_gradients(g, (sn_value){4}, &x, 1, &dx, &err), &err);
    const sn_node_info *add = sn_graph_node_at(g, sn_graph_value_at(g, dx)->node);
    assert_int_equal(add->op, SN_OP_add);
    assert_int_equal(sn_graph_node_at(g, sn_graph_value_at(g, add->in[0])->node)->op,
                     SN_OP_tanh_grad);
    assert_int_equal(sn_graph_node_at(g, sn_graph_value_at(g, add->in[1])->node)->op, SN_OP_mul);
    sn_graph_destroy(g);
}

/* Equal elements share the gradient of max; a minimum's goes to the first. */
static void test_gradient_splits_ties_as_tensorflow_does(void **state) {
    snug_error err;
    sn_graph *g = parse(
        state,
        "snug graph 1\n%0 input x f64[4]\n%1 input y f64[4]\n%2 = max(%0) | forward -> f64[]\n"
        "%3 = maximum(%0 %1) | forward -> f64[4]\n%4 = minimum(%0 %1) | forward -> f64[4]\n"
        "%5 = sum(%3) | forward -> f64[]\n%6 = sum(%4) | forward -> f64[]\n");
    const sn_value loss[3] = {{2}, {5}, {6}}, wrt[2] = {{0}, {1}};
    char name[8];
    for (int i = 0; i < 3; i++) {
        sn_value grads[2];
        expect_ok(sn_graph_gradients(g, loss[i], wrt, i == 0 ? 1 : 2, grads, &err), &err);
        for (int k = 0; k < (i == 0 ? 1 : 2); k++) {
            snprintf(name, sizeof name, "g%d%d", i, k);
            expect_ok(sn_graph_output(g, name, grads[k], &err), &err);
        }
    }
    sn_test_arrays in = sn_test_inputs(g, 0, 1);
    const double x[4] = {2, 1, 2, 0}, y[4] = {2, 3, 0, 0};
    memcpy(in.data[0], x, sizeof x);
    memcpy(in.data[1], y, sizeof y);
    sn_test_arrays out = sn_test_eval(*state, g, &in);
    const double want[5][4] = {
        {0.5, 0, 0.5, 0}, {1, 0, 1, 1}, {0, 1, 0, 0}, {1, 1, 0, 1}, {0, 0, 1, 0}};
    for (int i = 0; i < 5; i++)
        assert_memory_equal(out.data[i], want[i], sizeof want[i]);
    sn_test_arrays_clear(&out);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(g);
}

/* A product of others needs no division: one zero leaves its own gradient, two leave none. */
static void test_gradient_of_a_product_with_zeros(void **state) {
    snug_error err;
    sn_graph *g = parse(state, "snug graph 1\n%0 input x f64[3,3]\n"
                               "%1 = prod(%0) axes=1 | forward -> f64[3]\n"
                               "%2 = sum(%1) | forward -> f64[]\n");
    const sn_value loss = {2}, wrt = {0};
    sn_value grad;
    expect_ok(sn_graph_gradients(g, loss, &wrt, 1, &grad, &err), &err);
    expect_ok(sn_graph_output(g, "g", grad, &err), &err);
    sn_test_arrays in = sn_test_inputs(g, 0, 1);
    const double x[9] = {2, 3, 4, 2, 0, 4, 0, 3, 0}, want[9] = {12, 8, 6, 0, 8, 0, 0, 0, 0};
    memcpy(in.data[0], x, sizeof x);
    sn_test_arrays out = sn_test_eval(*state, g, &in);
    assert_memory_equal(out.data[0], want, sizeof want);
    sn_test_arrays_clear(&out);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(g);
}

/* --- refusals --- */

static void expect_no_gradient(sn_graph *g, sn_value loss, sn_value wrt, snug_status status,
                               const char *piece) {
    snug_error err;
    sn_value grad = {42};
    sn_test_text before = {0}, after = {0};
    const snug_writer w0 = sn_test_text_writer(&before), w1 = sn_test_text_writer(&after);
    expect_ok(sn_graph_print(g, &w0, &err), &err);
    expect_status(sn_graph_gradients(g, loss, &wrt, 1, &grad, &err), status, &err);
    expect_text(err.text, piece);
    assert_int_equal(grad.i, 42);
    expect_ok(sn_graph_print(g, &w1, &err), &err);
    assert_string_equal(before.data, after.data);
    sn_test_text_clear(&before);
    sn_test_text_clear(&after);
}

static void test_gradient_through_a_row_without_rule_names_it(void **state) {
    sn_graph *g = parse(state, "snug graph 1\nowner stats\n%0 input x f32[4,3]\n"
                               "%1 = trigamma(%0) | forward @stats -> f32[4,3]\n"
                               "%2 = sum(%1) | forward -> f32[]\n");
    expect_no_gradient(g, (sn_value){2}, (sn_value){0}, SNUG_E_UNSUPPORTED,
                       "trigamma of layer stats");
    sn_graph_destroy(g);
}

static void test_gradient_refuses_bad_arguments(void **state) {
    sn_graph *g = parse(
        state, "snug graph 1\np0 real 2 p\n%0 input x f32[3]\n%1 input i i32[3]\n%2 = sum(%0) | "
               "forward -> f32[]\n"
               "%3 = power(%0) value=p0 | forward -> f32[3]\n%4 = sum(%3) | forward -> f32[]\n");
    expect_no_gradient(g, (sn_value){0}, (sn_value){0}, SNUG_E_SHAPE, "scalar");
    expect_no_gradient(g, (sn_value){99}, (sn_value){0}, SNUG_E_INVALID, "99");
    expect_no_gradient(g, (sn_value){2}, (sn_value){99}, SNUG_E_INVALID, "99");
    expect_no_gradient(g, (sn_value){2}, (sn_value){1}, SNUG_E_INVALID, "float");
    expect_no_gradient(g, (sn_value){4}, (sn_value){0}, SNUG_E_UNSUPPORTED, "exponent");
    sn_graph_destroy(g);
}

static void test_gradient_refuses_templates_and_fused_nodes(void **state) {
    sn_graph *t =
        parse(state, "snug graph 1\n%0 input x f32[?]\n%1 = sum(%0) | forward -> f32[]\n");
    expect_no_gradient(t, (sn_value){1}, (sn_value){0}, SNUG_E_UNSUPPORTED, "instantiate");
    sn_graph_destroy(t);
    sn_graph *g = parse(
        state,
        "snug graph 1\n%0 input x f32[2,2]\n%1 = matmul(%0 %0) act=relu | forward -> f32[2,2]\n"
        "%2 = sum(%1) | forward -> f32[]\n");
    expect_no_gradient(g, (sn_value){2}, (sn_value){0}, SNUG_E_UNSUPPORTED, "fuse");
    sn_graph_destroy(g);
}

/* --- faults --- */

static snug_status gradient_scenario(snug_engine *e, void *ctx, snug_error *err) {
    sn_graph *g;
    const sn_value w = {1};
    sn_value dw;
    SNUG_TRY(sn_graph_parse(e, ctx, &g, err));
    const uint32_t n_nodes = sn_graph_n_nodes(g);
    const snug_status status = sn_graph_gradients(g, (sn_value){4}, &w, 1, &dw, err);
    if (status != SNUG_OK)
        assert_int_equal(sn_graph_n_nodes(g), n_nodes);
    sn_graph_destroy(g);
    return status;
}

static void test_gradient_survives_any_failed_request(void **state) {
    (void)state;
    char text[sizeof mlp_text];
    memcpy(text, mlp_text, sizeof text);
    sn_fault_sweep(gradient_scenario, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_gradients_agree_with_differences),
        engine_test(test_gradient_nodes_belong_to_the_layer_and_part),
        engine_test(test_gradient_of_a_shared_weight_is_one_product),
        engine_test(test_gradient_of_relu_reads_the_output),
        engine_test(test_gradient_is_absent_where_nothing_depends),
        engine_test(test_gradient_of_a_power_of_zero_is_zeros),
        engine_test(test_gradients_are_summed_in_reverse_program_order),
        engine_test(test_gradient_splits_ties_as_tensorflow_does),
        engine_test(test_gradient_of_a_product_with_zeros),
        engine_test(test_gradient_through_a_row_without_rule_names_it),
        engine_test(test_gradient_refuses_bad_arguments),
        engine_test(test_gradient_refuses_templates_and_fused_nodes),
        cmocka_unit_test(test_gradient_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
