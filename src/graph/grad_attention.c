/* grad_attention.c: the gradient of scaled dot-product attention: one row that makes the weights
 * again, block by block, from q, k, v and the logarithm of each row's sum, so that no matrix of
 * queries by keys waits between the passes. A bias that learns has a gradient of the scores' shape:
 * that one is made of plain operators, and only then. */
#include "graph/rule.h"

#include <string.h>

/* x [.., T, H, D] with the heads in groups, as [.., T, G, H / G, D], against y [.., S, G, D]: all
 * products over D, [.., H, T, S]. */
static sn_value products(const sn_grad_call *c, sn_value x, sn_value y) {
    const snug_type t = sn_rule_type(c, x), u = sn_rule_type(c, y);
    const int r = t.rank;
    int64_t split[SNUG_MAX_RANK + 1], scores[SNUG_MAX_RANK];
    memcpy(split, t.dims, sizeof t.dims);
    memcpy(scores, t.dims, sizeof scores);
    split[r - 2] = u.dims[r - 2];
    split[r - 1] = t.dims[r - 2] / u.dims[r - 2];
    split[r] = t.dims[r - 1];
    scores[r - 3] = t.dims[r - 2];
    scores[r - 2] = t.dims[r - 3];
    scores[r - 1] = u.dims[r - 3];
    const sn_value in[2] = {sn_build_reshape(c->b, x, split, r + 1), y};
    return sn_build_reshape(c->b, sn_build_einsum(c->b, "...tgmd,...sgd->...gmts", in, 2), scores,
                            r);
}

/* A number per query and head [.., T, H] as a column of the scores. */
static sn_value column(const sn_grad_call *c, sn_value rows) {
    return sn_build_expand_dims(c->b, sn_build_swapaxes(c->b, rows, -1, -2), -1);
}

/* p = exp(s - lse), ds = p (dy v^T - sum(dy y)), summed where the bias was spread. */
static sn_value grad_bias(const sn_grad_call *c) {
    const sn_attrs_attention *a = &c->node->attrs.attention;
    const snug_type bias = sn_rule_type(c, c->in[3]), y = sn_rule_type(c, c->out[0]);
    sn_builder *const b = c->b;
    const sn_value scale = sn_rule_slot(c, y.dtype, a->scale);
    const sn_value score =
        sn_build_add(b, sn_build_mul(b, products(c, c->in[0], c->in[1]), scale), c->in[3]);
    sn_value p = sn_build_exp(b, sn_build_sub(b, score, column(c, c->out[1])));
    if (a->causal)
        p = sn_build_band(b, p, INT32_MIN, 0);
    const sn_value delta =
        sn_build_sum(b, sn_build_mul(b, c->dout[0], c->out[0]), 1u << (y.rank - 1), false);
    const sn_value dp = products(c, c->dout[0], c->in[2]);
    return sn_build_sum_to(b, sn_build_mul(b, p, sn_build_sub(b, dp, column(c, delta))), &bias);
}

/* attention(q, k, v [, mask]) -> (y, lse); lse exists for this rule. */
SN_GRAD_RULE(attention) {
    const bool learns = c->node->n_in > 3 && c->wants[3];
    const snug_type q = sn_rule_type(c, c->in[0]);
    if (sn_value_ok(c->dout[1]) ||
        (learns && (c->node->attrs.attention.dropout || q.rank == SNUG_MAX_RANK))) {
        sn_rule_unsupported(c, "attention's second output, and its bias with dropout, have no "
                               "gradient; compute the weights with matmul and softmax");
        return;
    }
    const sn_value in[7] = {c->in[0],  c->in[1],   c->in[2], c->out[0],
                            c->out[1], c->dout[0], c->in[3]};
    sn_value din[SN_MAX_OUT];
    sn_build_all(c->b, SN_OP_attention_grad, &c->node->attrs, in, c->node->n_in + 3, din);
    for (int i = 0; i < 3; i++)
        c->din[i] = din[i];
    if (learns)
        c->din[3] = grad_bias(c);
}
