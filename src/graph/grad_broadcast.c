/* grad_broadcast.c: gradients of the rows that broadcast, of select, and of the reductions. What
 * was broadcast is summed back to the input's shape; what was reduced is spread again. */
#include "graph/rule.h"

SN_GRAD_RULE(add) {
    for (int i = 0; i < 2; i++)
        if (c->wants[i])
            c->din[i] = sn_rule_back_to(c, i, c->dout[0]);
}

SN_GRAD_RULE(sub) {
    if (c->wants[0])
        c->din[0] = sn_rule_back_to(c, 0, c->dout[0]);
    if (c->wants[1])
        c->din[1] = sn_build_neg(c->b, sn_rule_back_to(c, 1, c->dout[0]));
}

SN_GRAD_RULE(mul) {
    for (int i = 0; i < 2; i++)
        if (c->wants[i])
            c->din[i] = sn_rule_back_to(c, i, sn_build_mul(c->b, c->dout[0], c->in[1 - i]));
}

/* q = x / y: dx = dq / y, dy = -dx q */
SN_GRAD_RULE(div) {
    const sn_value dx = sn_build_div(c->b, c->dout[0], c->in[1]);
    if (c->wants[0])
        c->din[0] = sn_rule_back_to(c, 0, dx);
    if (c->wants[1])
        c->din[1] = sn_build_neg(c->b, sn_rule_back_to(c, 1, sn_build_mul(c->b, dx, c->out[0])));
}

/* The whole gradient goes to one side; `first` is true where that is input 0. */
static void choose(sn_grad_call *c, sn_value first) {
    const sn_value zero = sn_build_scalar(c->b, sn_rule_type(c, c->in[0]).dtype, 0);
    if (c->wants[0])
        c->din[0] = sn_rule_back_to(c, 0, sn_build_select(c->b, first, c->dout[0], zero));
    if (c->wants[1])
        c->din[1] = sn_rule_back_to(c, 1, sn_build_select(c->b, first, zero, c->dout[0]));
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
        c->din[1] = sn_rule_back_to(c, 1, sn_build_select(c->b, c->in[0], c->dout[0], zero));
    if (c->wants[2])
        c->din[2] = sn_rule_back_to(c, 2, sn_build_select(c->b, c->in[0], zero, c->dout[0]));
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

/* --- products and running sums ---------------------------------------------------------------- */

static sn_value scan(sn_grad_call *c, sn_op op, sn_value x, sn_attrs_scan how) {
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.scan = how;
    return sn_build(c->b, op, &a, &x, 1);
}

/* The product of all others along an axis: of those before times those behind, so that zeros need
 * no division. */
static sn_value product_of_others(sn_grad_call *c, sn_value x, int axis) {
    const sn_attrs_scan before = {.axis = axis, .exclusive = 1};
    const sn_attrs_scan behind = {.axis = axis, .exclusive = 1, .reverse = 1};
    return sn_build_mul(c->b, scan(c, SN_OP_cumprod, x, before), scan(c, SN_OP_cumprod, x, behind));
}

/* Several axes are made one, behind those that stay. */
SN_GRAD_RULE(prod) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    const uint32_t axes = sn_axes_set(&c->node->attrs.axes.axes, t.rank);
    int perm[SNUG_MAX_RANK] = {0}, inverse[SNUG_MAX_RANK] = {0}, n = 0;
    snug_type moved = t, flat = t;
    if (axes == 0) {
        c->din[0] = c->dout[0];
        return;
    }
    if (sn_type_count(&t) == 0)
        return;
    for (int stays = 1; stays >= 0; stays--)
        for (int k = 0; k < t.rank; k++)
            if ((axes >> k & 1u) != (uint32_t)stays)
                perm[n++] = k;
    flat.rank = t.rank - __builtin_popcount(axes) + 1;
    flat.dims[flat.rank - 1] = 1;
    for (int k = 0; k < t.rank; k++) {
        inverse[perm[k]] = k;
        moved.dims[k] = t.dims[perm[k]];
        if (k < flat.rank - 1)
            flat.dims[k] = moved.dims[k];
        else
            flat.dims[flat.rank - 1] *= moved.dims[k];
    }
    sn_value x = sn_build_transpose(c->b, c->in[0], perm);
    x = sn_build_reshape(c->b, x, flat.dims, flat.rank);
    x = product_of_others(c, x, flat.rank - 1);
    x = sn_build_transpose(c->b, sn_build_reshape(c->b, x, moved.dims, t.rank), inverse);
    c->din[0] = sn_build_mul(c->b, x, with_axes(c, c->dout[0]));
}

static sn_attrs_scan turned(const sn_grad_call *c) {
    sn_attrs_scan how = c->node->attrs.scan;
    how.reverse = !how.reverse;
    return how;
}

SN_GRAD_RULE(cumsum) {
    c->din[0] = scan(c, SN_OP_cumsum, c->dout[0], turned(c));
}

/* The sum of what every product that has x in it gives, over x; 0 where x is 0, as TensorFlow. */
SN_GRAD_RULE(cumprod) {
    const snug_dtype dtype = sn_rule_type(c, c->in[0]).dtype;
    const sn_value zero = sn_build_scalar(c->b, dtype, 0), one = sn_build_scalar(c->b, dtype, 1);
    const sn_value is_zero = sn_build_equal(c->b, c->in[0], zero);
    const sn_value sums =
        scan(c, SN_OP_cumsum, sn_build_mul(c->b, c->dout[0], c->out[0]), turned(c));
    const sn_value each = sn_build_div(c->b, sums, sn_build_select(c->b, is_zero, one, c->in[0]));
    c->din[0] = sn_build_select(c->b, is_zero, zero, each);
}

/* --- sorting ---------------------------------------------------------------------------------- */

/* Every element goes back to where it came from; rows of all leading axes are one axis. */
SN_GRAD_RULE(sort) {
    const snug_type t = sn_rule_type(c, c->in[0]), sorted = sn_rule_type(c, c->out[0]);
    const int64_t n = t.dims[t.rank - 1], k = sorted.dims[t.rank - 1];
    const int64_t rows = sn_type_span(&t, 0, t.rank - 1);
    const sn_value in[2] = {sn_build_reshape(c->b, c->out[1], (int64_t[]){rows, k, 1}, 3),
                            sn_build_reshape(c->b, c->dout[0], (int64_t[]){rows, k}, 2)};
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_nd, &a);
    a.scatter_nd.batch = 1;
    a.scatter_nd.dims = (sn_list){2, {rows, n}};
    c->din[0] = sn_build_reshape(c->b, sn_build(c->b, SN_OP_scatter_nd, &a, in, 2), t.dims, t.rank);
}

SN_GRAD_RULE(broadcast_to) {
    c->din[0] = sn_rule_back_to(c, 0, c->dout[0]);
}
