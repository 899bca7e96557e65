/* grad_map.c: gradients of the elementwise rows with one input, and of the rows that are those
 * gradients (second order). Where two forms are equal, the one is chosen that works on dy first, so
 * that it can run in place over dy. */
#include "graph/rule.h"

#define TWO_OVER_SQRT_PI 1.1283791670955126
#define ONE_OVER_SQRT_PI 0.5641895835477563

sn_value sn_rule_slot(const sn_grad_call *c, snug_dtype dtype, int64_t slot) {
    sn_attrs a;
    sn_attrs_default(SN_OP_fill, &a);
    a.fill.dtype = dtype;
    a.fill.value = slot;
    return sn_build(c->b, SN_OP_fill, &a, NULL, 0);
}

void sn_rule_unsupported(const sn_grad_call *c, const char *why) {
    if (c->b->error.code == SNUG_OK)
        c->b->error.code = sn_fail(&c->b->error, SNUG_E_UNSUPPORTED, "%s", why);
}

void sn_rule_pull_back(const sn_grad_call *c, const sn_pull_back *p, sn_value *grads) {
    for (int i = 0; i < p->n_wrt; i++)
        grads[i] = SN_NO_VALUE;
    if (c->b->error.code == SNUG_OK)
        c->b->error.code = sn_graph_pull_back(c->b->graph, p, grads, &c->b->error);
}

/* Nothing flows back: fill, random, one_hot, stop_gradient. */
SN_GRAD_RULE(zero) {
    (void)c;
}

/* A gradient that is there, and zero. */
SN_GRAD_RULE(sign) {
    const snug_type type = sn_rule_type(c, c->in[0]);
    c->din[0] = sn_type_known(&type) ? sn_build_fill(c->b, &type, 0)
                                     : sn_build_affine(c->b, c->dout[0], 0, 0);
}

SN_GRAD_RULE(identity) {
    c->din[0] = c->dout[0];
}

SN_GRAD_RULE(neg) {
    c->din[0] = sn_build_neg(c->b, c->dout[0]);
}

SN_GRAD_RULE(abs) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_sign(c->b, c->in[0]));
}

SN_GRAD_RULE(square) {
    c->din[0] = sn_build_affine(c->b, sn_build_mul(c->b, c->dout[0], c->in[0]), 2, 0);
}

SN_GRAD_RULE(sqrt) {
    c->din[0] = sn_build_affine(c->b, sn_build_div(c->b, c->dout[0], c->out[0]), 0.5, 0);
}

/* y = x^(-1/2), dy/dx = -y^3 / 2 */
SN_GRAD_RULE(rsqrt) {
    const sn_value y = c->out[0];
    const sn_value cube = sn_build_mul(c->b, sn_build_square(c->b, y), y);
    c->din[0] = sn_build_affine(c->b, sn_build_mul(c->b, c->dout[0], cube), -0.5, 0);
}

SN_GRAD_RULE(reciprocal) {
    c->din[0] =
        sn_build_neg(c->b, sn_build_mul(c->b, c->dout[0], sn_build_square(c->b, c->out[0])));
}

SN_GRAD_RULE(exp) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], c->out[0]);
}

SN_GRAD_RULE(log) {
    c->din[0] = sn_build_div(c->b, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(tanh) {
    c->din[0] = sn_build_tanh_grad(c->b, c->dout[0], c->out[0]);
}

SN_GRAD_RULE(sigmoid) {
    c->din[0] = sn_build_sigmoid_grad(c->b, c->dout[0], c->out[0]);
}

SN_GRAD_RULE(softplus) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_sigmoid(c->b, c->in[0]));
}

SN_GRAD_RULE(erf) {
    const sn_value bell = sn_build_exp(c->b, sn_build_neg(c->b, sn_build_square(c->b, c->in[0])));
    c->din[0] = sn_build_affine(c->b, sn_build_mul(c->b, c->dout[0], bell), TWO_OVER_SQRT_PI, 0);
}

SN_GRAD_RULE(relu) {
    c->din[0] = sn_build_relu_grad(c->b, c->dout[0], c->out[0]);
}

SN_GRAD_RULE(leaky_relu) {
    c->din[0] = sn_rule_same_attrs(c, SN_OP_leaky_relu_grad, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(elu) {
    c->din[0] = sn_rule_same_attrs(c, SN_OP_elu_grad, c->dout[0], c->out[0]);
}

SN_GRAD_RULE(silu) {
    c->din[0] = sn_build_silu_grad(c->b, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(gelu) {
    c->din[0] = sn_build_gelu_grad(c->b, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(gelu_tanh) {
    c->din[0] = sn_build_gelu_tanh_grad(c->b, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(mish) {
    c->din[0] = sn_build_mish_grad(c->b, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(relu_max) {
    c->din[0] = sn_rule_same_attrs(c, SN_OP_relu_max_grad, c->dout[0], c->out[0]);
}

/* y rises by 1/6 while it is between 0 and 1. */
static sn_value within_one(const sn_grad_call *c, sn_value v, sn_value y, double scale) {
    const sn_value in[2] = {v, y};
    return sn_build_affine(c->b, sn_build_value_op(c->b, SN_OP_relu_max_grad, in, 2, 1), scale, 0);
}

SN_GRAD_RULE(hard_sigmoid) {
    c->din[0] = within_one(c, c->dout[0], c->out[0], 1.0 / 6);
}

SN_GRAD_RULE(hard_silu) {
    c->din[0] = sn_build_hard_silu_grad(c->b, c->dout[0], c->in[0]);
}

SN_GRAD_RULE(affine) {
    sn_attrs a;
    sn_attrs_copy(c->node->op, &c->node->attrs, &a);
    a.affine.shift = (int64_t)sn_build_param(c->b, "", 0).i;
    c->din[0] = sn_build(c->b, SN_OP_affine, &a, &c->dout[0], 1);
}

/* d(x^p) = p x^(p-1), and zeros for x^0, where 0 x^(-1) would be NaN at 0. There is no
 * slot that follows p - 1, so p must be a constant of the graph, not a named slot. */
SN_GRAD_RULE(power) {
    const sn_param_info *p =
        sn_graph_param_at(c->b->graph, (sn_param){(uint32_t)c->node->attrs.value.value});
    const double exponent = p->real;
    if (*p->name) {
        sn_rule_unsupported(c, "power with a named exponent; use a constant exponent");
        return;
    }
    if (exponent == 0) {
        sn_grad_sign(c);
        return;
    }
    const sn_value lower = sn_build_value_op(c->b, SN_OP_power, &c->in[0], 1, exponent - 1);
    c->din[0] = sn_build_affine(c->b, sn_build_mul(c->b, c->dout[0], lower), exponent, 0);
}

/* Passes where low <= x <= high. */
SN_GRAD_RULE(clip) {
    const snug_dtype dtype = sn_rule_type(c, c->in[0]).dtype;
    const sn_value low = sn_rule_slot(c, dtype, c->node->attrs.clip.low);
    const sn_value high = sn_rule_slot(c, dtype, c->node->attrs.clip.high);
    const sn_value inside = sn_build_logical_and(c->b, sn_build_greater_equal(c->b, c->in[0], low),
                                                 sn_build_greater_equal(c->b, high, c->in[0]));
    c->din[0] = sn_build_select(c->b, inside, c->dout[0], sn_build_scalar(c->b, dtype, 0));
}

SN_GRAD_RULE(cast) {
    c->din[0] = sn_build_cast(c->b, c->dout[0], sn_rule_type(c, c->in[0]).dtype);
}

/* The same numbers are drawn again: same slots, same positions. */
SN_GRAD_RULE(dropout) {
    c->din[0] = sn_rule_same_attrs(c, SN_OP_dropout, c->dout[0], SN_NO_VALUE);
}

/* --- second order: the rows (dy, y) -> dx and (dy, x) -> dx, linear in dy --------------------- */

SN_GRAD_RULE(relu_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_relu_grad(c->b, c->dout[0], c->in[1]);
}

SN_GRAD_RULE(leaky_relu_grad) {
    if (c->wants[0])
        c->din[0] = sn_rule_same_attrs(c, SN_OP_leaky_relu_grad, c->dout[0], c->in[1]);
}

/* y > 0 ? dy : dy (y + alpha): by y it is g dy where y <= 0. */
SN_GRAD_RULE(elu_grad) {
    if (c->wants[0])
        c->din[0] = sn_rule_same_attrs(c, SN_OP_elu_grad, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        const sn_value both = sn_build_mul(c->b, c->dout[0], c->in[0]);
        c->din[1] = sn_build_sub(c->b, both, sn_build_relu_grad(c->b, both, c->in[1]));
    }
}

/* dy (1 - y^2) */
SN_GRAD_RULE(tanh_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_tanh_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        const sn_value both = sn_build_mul(c->b, c->dout[0], c->in[0]);
        c->din[1] = sn_build_affine(c->b, sn_build_mul(c->b, both, c->in[1]), -2, 0);
    }
}

/* dy y (1 - y) */
SN_GRAD_RULE(sigmoid_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_sigmoid_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        const sn_value both = sn_build_mul(c->b, c->dout[0], c->in[0]);
        c->din[1] = sn_build_mul(c->b, both, sn_build_affine(c->b, c->in[1], -2, 1));
    }
}

/* With s = sigmoid(x): silu'' = s (1 - s) (2 + x (1 - 2 s)) */
SN_GRAD_RULE(silu_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_silu_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        const sn_value s = sn_build_sigmoid(c->b, c->in[1]);
        const sn_value bend = sn_build_mul(c->b, sn_build_affine(c->b, s, -2, 1), c->in[1]);
        const sn_value second = sn_build_sigmoid_grad(c->b, sn_build_affine(c->b, bend, 1, 2), s);
        c->din[1] = sn_build_mul(c->b, sn_build_mul(c->b, c->dout[0], c->in[0]), second);
    }
}

/* gelu(x) = x erfc(-c x) / 2, c = sqrt(1/2) as a float: its second derivative is
 * 2 c / sqrt(pi) exp(-c^2 x^2) (1 - c^2 x^2). */
SN_GRAD_RULE(gelu_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_gelu_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        const double k = (double)0.707106781f;
        const sn_value uu = sn_build_affine(c->b, sn_build_square(c->b, c->in[1]), k * k, 0);
        const sn_value bell = sn_build_exp(c->b, sn_build_neg(c->b, uu));
        const sn_value second = sn_build_mul(c->b, bell, sn_build_affine(c->b, uu, -1, 1));
        const sn_value both = sn_build_mul(c->b, c->dout[0], c->in[0]);
        c->din[1] =
            sn_build_affine(c->b, sn_build_mul(c->b, both, second), 2 * k * ONE_OVER_SQRT_PI, 0);
    }
}

SN_GRAD_RULE(relu_max_grad) {
    if (c->wants[0])
        c->din[0] = sn_rule_same_attrs(c, SN_OP_relu_max_grad, c->dout[0], c->in[1]);
}

/* hard_silu'' is 1/3 where hard_sigmoid rises. */
SN_GRAD_RULE(hard_silu_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_hard_silu_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1])
        c->din[1] = within_one(c, sn_build_mul(c->b, c->dout[0], c->in[0]),
                               sn_build_hard_sigmoid(c->b, c->in[1]), 1.0 / 3);
}

/* With u = k (x + a x^3) and t = tanh(u): (1 - t^2) (u' + x u'' / 2 - x t u'^2), where
 * u' = k + 3 k a x^2 and x u'' / 2 = 3 k a x^2 */
SN_GRAD_RULE(gelu_tanh_grad) {
    const double k = 0.7978845608028654, a = (double)0.044715f;
    if (c->wants[0])
        c->din[0] = sn_build_gelu_tanh_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        sn_builder *b = c->b;
        const sn_value x = c->in[1], xx = sn_build_square(b, x);
        const sn_value u = sn_build_mul(b, x, sn_build_affine(b, xx, k * a, k));
        const sn_value t = sn_build_tanh(b, u), up = sn_build_affine(b, xx, 3 * k * a, k);
        const sn_value bend = sn_build_mul(b, sn_build_mul(b, x, t), sn_build_square(b, up));
        const sn_value sum = sn_build_sub(b, sn_build_affine(b, xx, 6 * k * a, k), bend);
        const sn_value second = sn_build_tanh_grad(b, sum, t);
        c->din[1] = sn_build_mul(b, sn_build_mul(b, c->dout[0], c->in[0]), second);
    }
}

/* With s = sigmoid(x), t = tanh(softplus(x)), t' = s (1 - t^2): 2 t' + x t' (1 - s - 2 t s) */
SN_GRAD_RULE(mish_grad) {
    if (c->wants[0])
        c->din[0] = sn_build_mish_grad(c->b, c->dout[0], c->in[1]);
    if (c->wants[1]) {
        sn_builder *b = c->b;
        const sn_value x = c->in[1], s = sn_build_sigmoid(b, x);
        const sn_value t = sn_build_tanh(b, sn_build_softplus(b, x));
        const sn_value ts = sn_build_mul(b, s, sn_build_affine(b, t, 2, 1)); /* s + 2 t s */
        const sn_value bend = sn_build_mul(b, x, sn_build_affine(b, ts, -1, 1));
        const sn_value sum = sn_build_mul(b, s, sn_build_affine(b, bend, 1, 2));
        const sn_value both = sn_build_mul(b, c->dout[0], c->in[0]);
        c->din[1] = sn_build_mul(b, both, sn_build_tanh_grad(b, sum, t));
    }
}
