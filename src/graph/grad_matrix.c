/* grad_matrix.c: gradients of matmul, the convolutions and the poolings. The three convolution rows
 * are bilinear and each other's adjoints, so they differentiate into one another to any order; so
 * do max-pool's grad and pick, and avg-pool and its grad.
 *
 * Fused forms (act, bias=1 of conv2d_dw) are made by sn_graph_fuse only, after the gradients; here
 * they are refused. */
#include "graph/rule.h"

static bool is_fused(const sn_grad_call *c, bool fused) {
    if (fused)
        sn_rule_unsupported(c, "a fused node has no gradient; take gradients before sn_graph_fuse");
    return fused;
}

/* The gradient of a bias along the last axis. */
static sn_value bias_gradient(const sn_grad_call *c) {
    const snug_type like = sn_rule_type(c, c->in[2]);
    return sn_build_sum_to(c->b, c->dout[0], &like);
}

/* --- matmul: y = op(a) op(w), op = transpose of the last two axes where asked ----------------- */

static sn_value matmul_da(const sn_grad_call *c) {
    const sn_attrs_matmul *m = &c->node->attrs.matmul;
    const sn_value dy = c->dout[0], w = c->in[1];
    const snug_type like = sn_rule_type(c, c->in[0]);
    if (m->fold_b) {
        sn_attrs a;
        sn_attrs_default(SN_OP_matmul, &a);
        a.matmul.fold_b = m->fold_b;
        a.matmul.trans_b = !m->trans_b;
        return sn_build(c->b, SN_OP_matmul, &a, (const sn_value[]){dy, w}, 2);
    }
    const sn_value da = m->trans_a ? sn_build_matmul_t(c->b, w, dy, m->trans_b, true)
                                   : sn_build_matmul_t(c->b, dy, w, false, !m->trans_b);
    return sn_build_sum_to(c->b, da, &like);
}

/* v as a matrix: all axes but the last in one. */
static sn_value flat_rows(const sn_grad_call *c, sn_value v, const snug_type *t) {
    if (t->rank == 2)
        return v;
    const int64_t dims[2] = {sn_type_span(t, 0, t->rank - 1), t->dims[t->rank - 1]};
    return sn_build_reshape(c->b, v, dims, 2);
}

/* A weight that all batch entries share gets its gradient from one long product, not from a batch
 * of partial ones. */
static sn_value matmul_dw(const sn_grad_call *c) {
    const sn_attrs_matmul *m = &c->node->attrs.matmul;
    const snug_type ta = sn_rule_type(c, c->in[0]), tw = sn_rule_type(c, c->in[1]),
                    ty = sn_rule_type(c, c->out[0]);
    sn_value a = c->in[0], dy = c->dout[0];
    if ((tw.rank == 2 || m->fold_b) && ta.rank > 2 && !m->trans_a) {
        a = flat_rows(c, a, &ta);
        dy = flat_rows(c, dy, &ty);
    }
    const sn_value dw = m->trans_b ? sn_build_matmul_t(c->b, dy, a, true, m->trans_a)
                                   : sn_build_matmul_t(c->b, a, dy, !m->trans_a, false);
    return m->fold_b ? sn_build_reshape(c->b, dw, tw.dims, tw.rank)
                     : sn_build_sum_to(c->b, dw, &tw);
}

SN_GRAD_RULE(matmul) {
    if (is_fused(c, c->node->attrs.matmul.act != SN_ACT_none))
        return;
    if (c->wants[0])
        c->din[0] = matmul_da(c);
    if (c->wants[1])
        c->din[1] = matmul_dw(c);
    if (c->node->n_in > 2 && c->wants[2])
        c->din[2] = bias_gradient(c);
}

/* --- convolution ------------------------------------------------------------------------------ */

/* What the three attribute families share. */
typedef struct {
    int64_t stride[2], pad[4], dilation[2], groups;
} window;

#define WINDOW_OF(a)                                                                               \
    ((window){{(a)->stride[0], (a)->stride[1]},                                                    \
              {(a)->pad[0], (a)->pad[1], (a)->pad[2], (a)->pad[3]},                                \
              {(a)->dilation[0], (a)->dilation[1]},                                                \
              (a)->groups})
#define SET_WINDOW(a, w)                                                                           \
    do {                                                                                           \
        for (int i_ = 0; i_ < 2; i_++) {                                                           \
            (a)->stride[i_] = (w)->stride[i_];                                                     \
            (a)->dilation[i_] = (w)->dilation[i_];                                                 \
        }                                                                                          \
        for (int i_ = 0; i_ < 4; i_++)                                                             \
            (a)->pad[i_] = (w)->pad[i_];                                                           \
        (a)->groups = (w)->groups;                                                                 \
    } while (0)

static sn_value conv(const sn_grad_call *c, const window *w, sn_value x, sn_value kernel) {
    const sn_value in[2] = {x, kernel};
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d, &a);
    SET_WINDOW(&a.conv, w);
    return sn_build(c->b, SN_OP_conv2d, &a, in, 2);
}

/* x_like: a value of the node with the shape of x. */
static sn_value conv_dx(const sn_grad_call *c, const window *w, sn_value dy, sn_value kernel,
                        sn_value x_like) {
    const sn_value in[2] = {dy, kernel};
    const snug_type t = sn_rule_type(c, x_like);
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d_dx, &a);
    SET_WINDOW(&a.conv_dx, w);
    a.conv_dx.input[0] = t.dims[1];
    a.conv_dx.input[1] = t.dims[2];
    return sn_build(c->b, SN_OP_conv2d_dx, &a, in, 2);
}

/* kernel_like: a value of the node with the shape of the kernel. */
static sn_value conv_dw(const sn_grad_call *c, const window *w, sn_value x, sn_value dy,
                        sn_value kernel_like) {
    const sn_value in[2] = {x, dy};
    const snug_type t = sn_rule_type(c, kernel_like);
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d_dw, &a);
    SET_WINDOW(&a.conv_dw, w);
    a.conv_dw.kernel[0] = t.dims[0];
    a.conv_dw.kernel[1] = t.dims[1];
    return sn_build(c->b, SN_OP_conv2d_dw, &a, in, 2);
}

SN_GRAD_RULE(conv2d) {
    const window w = WINDOW_OF(&c->node->attrs.conv);
    const bool lined = c->node->n_in > 2 && sn_rule_type(c, c->in[2]).rank == 2;
    if (is_fused(c, lined || c->node->attrs.conv.act != SN_ACT_none))
        return;
    if (c->wants[0])
        c->din[0] = conv_dx(c, &w, c->dout[0], c->in[1], c->in[0]);
    if (c->wants[1])
        c->din[1] = conv_dw(c, &w, c->in[0], c->dout[0], c->in[1]);
    if (c->node->n_in > 2 && c->wants[2])
        c->din[2] = bias_gradient(c);
}

/* in: dy, kernel; out: dx */
SN_GRAD_RULE(conv2d_dx) {
    const window w = WINDOW_OF(&c->node->attrs.conv_dx);
    if (c->wants[0])
        c->din[0] = conv(c, &w, c->dout[0], c->in[1]);
    if (c->wants[1])
        c->din[1] = conv_dw(c, &w, c->dout[0], c->in[0], c->in[1]);
}

/* in: x, dy; out: dw */
SN_GRAD_RULE(conv2d_dw) {
    const window w = WINDOW_OF(&c->node->attrs.conv_dw);
    if (is_fused(c, c->node->attrs.conv_dw.bias != 0))
        return;
    if (c->wants[0])
        c->din[0] = conv_dx(c, &w, c->in[1], c->dout[0], c->in[0]);
    if (c->wants[1])
        c->din[1] = conv(c, &w, c->in[0], c->dout[0]);
}

/* --- convolution and pooling at once: the code says where the gradient goes, and whether relu lets
 * it through ---------------------------------------------------------------------------------- */

static sn_value conv_pool_dx(const sn_grad_call *c, const window *w) {
    const sn_value in[3] = {c->dout[0], c->in[1], c->out[1]};
    const snug_type t = sn_rule_type(c, c->in[0]);
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d_pool_dx, &a);
    SET_WINDOW(&a.conv_pool_dx, w);
    for (int i = 0; i < 8; i++)
        a.conv_pool_dx.pool[i] = c->node->attrs.conv_pool.pool[i];
    a.conv_pool_dx.input[0] = t.dims[1];
    a.conv_pool_dx.input[1] = t.dims[2];
    return sn_build(c->b, SN_OP_conv2d_pool_dx, &a, in, 3);
}

/* out: dw, and with bias its gradient */
static void conv_pool_dw(const sn_grad_call *c, const window *w, bool bias, sn_value *out) {
    const sn_value in[3] = {c->in[0], c->dout[0], c->out[1]};
    const snug_type t = sn_rule_type(c, c->in[1]);
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d_pool_dw, &a);
    SET_WINDOW(&a.conv_pool_dw, w);
    for (int i = 0; i < 8; i++)
        a.conv_pool_dw.pool[i] = c->node->attrs.conv_pool.pool[i];
    a.conv_pool_dw.kernel[0] = t.dims[0];
    a.conv_pool_dw.kernel[1] = t.dims[1];
    a.conv_pool_dw.bias = bias;
    sn_build_all(c->b, SN_OP_conv2d_pool_dw, &a, in, 3, out);
}

SN_GRAD_RULE(conv2d_pool) {
    const window w = WINDOW_OF(&c->node->attrs.conv_pool);
    const bool bias = c->node->n_in > 2;
    const bool lined = bias && sn_rule_type(c, c->in[2]).rank == 2;
    if (is_fused(c, lined || !c->node->attrs.conv_pool.codes))
        return;
    if (c->wants[0])
        c->din[0] = conv_pool_dx(c, &w);
    if (c->wants[1] || (bias && c->wants[2]))
        conv_pool_dw(c, &w, bias && c->wants[2], &c->din[1]);
}

/* --- pooling: pool_grad is pool with the extents of the input behind it ----------------------- */

static sn_attrs pool_grad_attrs(const sn_grad_call *c, sn_op op) {
    const sn_attrs_pool *from = &c->node->attrs.pool;
    const snug_type t = sn_rule_type(c, c->in[0]);
    sn_attrs a;
    sn_attrs_default(op, &a);
    for (int i = 0; i < 2; i++) {
        a.pool_grad.kernel[i] = from->kernel[i];
        a.pool_grad.stride[i] = from->stride[i];
        a.pool_grad.input[i] = t.dims[1 + i];
    }
    for (int i = 0; i < 4; i++)
        a.pool_grad.pad[i] = from->pad[i];
    return a;
}

SN_GRAD_RULE(maxpool) {
    const sn_attrs a = pool_grad_attrs(c, SN_OP_maxpool_grad);
    const sn_value in[2] = {c->dout[0], c->out[1]};
    if (sn_value_ok(c->dout[0]))
        c->din[0] = sn_build(c->b, SN_OP_maxpool_grad, &a, in, 2);
}

SN_GRAD_RULE(maxpool_grad) {
    if (c->wants[0])
        c->din[0] = sn_rule_same_attrs(c, SN_OP_maxpool_pick, c->dout[0], c->in[1]);
}

SN_GRAD_RULE(maxpool_pick) {
    if (c->wants[0])
        c->din[0] = sn_rule_same_attrs(c, SN_OP_maxpool_grad, c->dout[0], c->in[1]);
}

SN_GRAD_RULE(avgpool) {
    const sn_attrs a = pool_grad_attrs(c, SN_OP_avgpool_grad);
    c->din[0] = sn_build(c->b, SN_OP_avgpool_grad, &a, &c->dout[0], 1);
}

SN_GRAD_RULE(avgpool_grad) {
    const sn_attrs_pool_grad *from = &c->node->attrs.pool_grad;
    sn_attrs a;
    sn_attrs_default(SN_OP_avgpool, &a);
    for (int i = 0; i < 2; i++) {
        a.pool.kernel[i] = from->kernel[i];
        a.pool.stride[i] = from->stride[i];
    }
    for (int i = 0; i < 4; i++)
        a.pool.pad[i] = from->pad[i];
    c->din[0] = sn_build(c->b, SN_OP_avgpool, &a, &c->dout[0], 1);
}
