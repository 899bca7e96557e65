/* grad_softmax.c: gradients of softmax and the cross-entropies, rows along the last axis, and of
 * their gradients. With p = softmax(x) the matrix d p / d x = diag(p) - p p^T is symmetric, so
 * softmax_grad is its own adjoint in dy. */
#include "graph/rule.h"

/* Sum along the last axis, which stays with extent 1. */
static sn_value row_sum(const sn_grad_call *c, sn_value v, int rank) {
    return sn_build_sum(c->b, v, 1u << (rank - 1), true);
}

/* One number per row, shaped to broadcast against the rows of `like`. */
static sn_value as_column(const sn_grad_call *c, sn_value v, sn_value like) {
    snug_type t = sn_rule_type(c, like);
    t.dims[t.rank - 1] = 1;
    return sn_build_reshape(c->b, v, t.dims, t.rank);
}

SN_GRAD_RULE(softmax) {
    c->din[0] = sn_build_softmax_grad(c->b, c->dout[0], c->out[0]);
}

/* in: dy, y; out_i = y_i (dy_i - s), s = sum dy y. By y_k: g_k (dy_k - s) - dy_k sum(g y). */
SN_GRAD_RULE(softmax_grad) {
    const sn_value g = c->dout[0], dy = c->in[0], y = c->in[1];
    const int rank = sn_rule_type(c, y).rank;
    if (c->wants[0])
        c->din[0] = sn_build_softmax_grad(c->b, g, y);
    if (c->wants[1]) {
        const sn_value s = row_sum(c, sn_build_mul(c->b, dy, y), rank);
        const sn_value t = row_sum(c, sn_build_mul(c->b, g, y), rank);
        c->din[1] = sn_build_sub(c->b, sn_build_mul(c->b, g, sn_build_sub(c->b, dy, s)),
                                 sn_build_mul(c->b, dy, t));
    }
}

/* y = x - lse(x): dx = dy - exp(y) sum(dy) */
SN_GRAD_RULE(log_softmax) {
    const sn_value total = row_sum(c, c->dout[0], sn_rule_type(c, c->out[0]).rank);
    c->din[0] =
        sn_build_sub(c->b, c->dout[0], sn_build_mul(c->b, sn_build_exp(c->b, c->out[0]), total));
}

/* in: logits x, labels; out: loss per row = sum(labels (lse - x)) */
SN_GRAD_RULE(softmax_xent) {
    if (c->wants[0]) {
        const sn_value in[3] = {c->in[0], c->in[1], c->dout[0]};
        c->din[0] = sn_build(c->b, SN_OP_softmax_xent_grad, &c->node->attrs, in, 3);
    }
    if (c->wants[1]) {
        const sn_value dloss = as_column(c, c->dout[0], c->in[0]);
        c->din[1] =
            sn_build_neg(c->b, sn_build_mul(c->b, sn_build_log_softmax(c->b, c->in[0]), dloss));
    }
}

/* in: x, labels l, dloss d; out = d (W p - l) with W = sum(l), or 1 where rows are of unit
 * weight. */
SN_GRAD_RULE(softmax_xent_grad) {
    sn_builder *b = c->b;
    const sn_value g = c->dout[0], x = c->in[0], l = c->in[1];
    const int rank = sn_rule_type(c, x).rank;
    const snug_type like = sn_rule_type(c, c->in[2]);
    const sn_value p = sn_build_softmax(b, x);
    const bool unit = c->node->attrs.xent.unit != 0;
    const sn_value weight = unit ? sn_build_scalar(b, like.dtype, 1) : row_sum(c, l, rank);
    const sn_value gd = sn_build_mul(b, g, as_column(c, c->in[2], x));
    if (c->wants[0])
        c->din[0] = sn_build_softmax_grad(b, sn_build_mul(b, gd, weight), p);
    if (c->wants[1])
        c->din[1] = unit ? sn_build_neg(b, gd)
                         : sn_build_sub(b, row_sum(c, sn_build_mul(b, gd, p), rank), gd);
    if (c->wants[2]) {
        const sn_value slope = sn_build_sub(b, sn_build_mul(b, p, weight), l);
        const sn_value sums = row_sum(c, sn_build_mul(b, g, slope), rank);
        c->din[2] = sn_build_reshape(b, sums, like.dims, like.rank);
    }
}

/* in: logits x, class numbers; out: loss per row */
SN_GRAD_RULE(sparse_xent) {
    const sn_value in[3] = {c->in[0], c->in[1], c->dout[0]};
    c->din[0] = sn_build(c->b, SN_OP_sparse_xent_grad, &c->node->attrs, in, 3);
}

/* in: x, class numbers, dloss d; out = d (W p - onehot), W = sum(onehot): 0 for a skipped row */
SN_GRAD_RULE(sparse_xent_grad) {
    sn_builder *b = c->b;
    const sn_value g = c->dout[0], x = c->in[0];
    const snug_type t = sn_rule_type(c, x), like = sn_rule_type(c, c->in[2]);
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = t.dims[t.rank - 1];
    a.one_hot.dtype = t.dtype;
    const sn_value hot = sn_build(b, SN_OP_one_hot, &a, &c->in[1], 1);
    const sn_value weight = row_sum(c, hot, t.rank), p = sn_build_softmax(b, x);
    if (c->wants[0]) {
        const sn_value gd = sn_build_mul(b, g, as_column(c, c->in[2], x));
        c->din[0] = sn_build_softmax_grad(b, sn_build_mul(b, gd, weight), p);
    }
    if (c->wants[2]) {
        const sn_value slope = sn_build_sub(b, sn_build_mul(b, p, weight), hot);
        const sn_value sums = row_sum(c, sn_build_mul(b, g, slope), t.rank);
        c->din[2] = sn_build_reshape(b, sums, like.dims, like.rank);
    }
}

/* in: logits x, labels z; out = max(x, 0) - x z + log(1 + exp(-|x|)) */
SN_GRAD_RULE(sigmoid_xent) {
    const sn_value x = c->in[0], z = c->in[1];
    if (c->wants[0])
        c->din[0] =
            sn_build_mul(c->b, c->dout[0], sn_build_sub(c->b, sn_build_sigmoid(c->b, x), z));
    if (c->wants[1])
        c->din[1] = sn_build_neg(c->b, sn_build_mul(c->b, c->dout[0], x));
}
