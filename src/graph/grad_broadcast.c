/* grad_broadcast.c: gradients of the rows that broadcast, of select, and of the reductions. What
 * was broadcast is summed back to the input's shape; what was reduced is spread again. */
#include "graph/rule.h"

/* Sums v down to the shape of input i. */
static sn_value back_to(sn_grad_call *c, int i, sn_value v) {
    const snug_type like = sn_rule_type(c, c->in[i]);
    return sn_build_sum_to(c->b, v, &like);
}

SN_GRAD_RULE(add) {
    for (int i = 0; i < 2; i++)
        if (c->wants[i])
            c->din[i] = back_to(c, i, c->dout[0]);
}

SN_GRAD_RULE(sub) {
    if (c->wants[0])
        c->din[0] = back_to(c, 0, c->dout[0]);
    if (c->wants[1])
        c->din[1] = sn_build_neg(c->b, back_to(c, 1, c->dout[0]));
}

SN_GRAD_RULE(mul) {
    for (int i = 0; i < 2; i++)
        if (c->wants[i])
            c->din[i] = back_to(c, i, sn_build_mul(c->b, c->dout[0], c->in[1 - i]));
}

/* q = x / y: dx = dq / y, dy = -dx q */
SN_GRAD_RULE(div) {
    const sn_value dx = sn_build_div(c->b, c->dout[0], c->in[1]);
    if (c->wants[0])
        c->din[0] = back_to(c, 0, dx);
    if (c->wants[1])
        c->din[1] = sn_build_neg(c->b, back_to(c, 1, sn_build_mul(c->b, dx, c->out[0])));
}

/* The whole gradient goes to one side; `first` is true where that is input 0. */
static void choose(sn_grad_call *c, sn_value first) {
    const sn_value zero = sn_build_scalar(c->b, sn_rule_type(c, c->in[0]).dtype, 0);
    if (c->wants[0])
        c->din[0] = back_to(c, 0, sn_build_select(c->b, first, c->dout[0], zero));
    if (c->wants[1])
        c->din[1] = back_to(c, 1, sn_build_select(c->b, first, zero, c->dout[0]));
}

SN_GRAD_RULE(maximum) {
    choose(c, sn_build_greater_equal(c->b, c->in[0], c->in[1]));
}

SN_GRAD_RULE(minimum) {
    choose(c, sn_build_greater_equal(c->b, c->in[1], c->in[0]));
}

SN_GRAD_RULE(select) {
    const sn_value zero = sn_build_scalar(c->b, sn_rule_type(c, c->out[0]).dtype, 0);
    if (c->wants[1])
        c->din[1] = back_to(c, 1, sn_build_select(c->b, c->in[0], c->dout[0], zero));
    if (c->wants[2])
        c->din[2] = back_to(c, 2, sn_build_select(c->b, c->in[0], zero, c->dout[0]));
}

/* --- reductions ------------------------------------------------------------------------------- */

/* v has the shape of the output; gives it the reduced axes back, with extent 1. */
static sn_value with_axes(sn_grad_call *c, sn_value v) {
    snug_type t = sn_rule_type(c, c->in[0]);
    const uint32_t axes = sn_axes_set(&c->node->attrs.axes.axes, t.rank);
    if (c->node->attrs.axes.keepdims || axes == 0)
        return v;
    for (int i = 0; i < t.rank; i++)
        if (axes >> i & 1u)
            t.dims[i] = 1;
    return sn_build_reshape(c->b, v, t.dims, t.rank);
}

SN_GRAD_RULE(sum) {
    const snug_type like = sn_rule_type(c, c->in[0]);
    c->din[0] = sn_build_broadcast_to(c->b, with_axes(c, c->dout[0]), &like);
}

/* Elements that are equal to the maximum share the gradient in equal parts. */
SN_GRAD_RULE(max) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    const uint32_t axes = sn_axes_set(&c->node->attrs.axes.axes, t.rank);
    if (axes == 0) {
        c->din[0] = c->dout[0];
        return;
    }
    if (sn_type_count(&t) == 0) /* nobody is equal to the maximum of nothing */
        return;
    const sn_value hit =
        sn_build_cast(c->b, sn_build_equal(c->b, c->in[0], with_axes(c, c->out[0])), t.dtype);
    const sn_value share =
        sn_build_div(c->b, with_axes(c, c->dout[0]), sn_build_sum(c->b, hit, axes, true));
    c->din[0] = sn_build_mul(c->b, hit, share);
}

SN_GRAD_RULE(broadcast_to) {
    c->din[0] = back_to(c, 0, c->dout[0]);
}
