/* grad_norm.c: gradients of batch and layer normalisation. Per-channel arithmetic is ordinary rows
 * on vectors of C numbers; only the sums over dy read full-size values. A batch norm's dx comes
 * from two rows,
 *
 *     normalise: a dy            a = gamma rstd
 *     moments:   b x + c         b = 2 d(sum x^2), c = d(sum x)
 *
 * as plain mul and add, which sn_graph_fuse merges into the one channel_affine(dy, x, a, b, c). */
#include "graph/rule.h"

/* moments(x) -> s = sum x, q = sum x^2, both f64. */
SN_GRAD_RULE(moments) {
    const snug_dtype dtype = sn_rule_type(c, c->in[0]).dtype;
    sn_value dx = SN_NO_VALUE;
    if (sn_value_ok(c->dout[1])) {
        const sn_value b = sn_build_cast(c->b, sn_build_affine(c->b, c->dout[1], 2, 0), dtype);
        dx = sn_build_mul(c->b, c->in[0], b);
    }
    if (sn_value_ok(c->dout[0])) {
        const snug_type like = sn_rule_type(c, c->in[0]);
        const sn_value s = sn_build_cast(c->b, c->dout[0], dtype);
        dx = sn_value_ok(dx) ? sn_build_add(c->b, dx, s) : sn_build_broadcast_to(c->b, s, &like);
    }
    c->din[0] = dx;
}

/* y = gamma xhat + beta, xhat = (x - mean) rstd, rstd = (var + epsilon)^(-1/2), d rstd / d var =
 * -rstd^3 / 2. With the sums sdy = sum dy and sdyx = sum dy xhat: dmean = -gamma rstd sdy, dvar =
 * -gamma rstd^2 sdyx / 2. */
SN_GRAD_RULE(normalise) {
    enum { X, MEAN, VAR, GAMMA, BETA };
    sn_builder *b = c->b;
    const sn_value dy = c->dout[0];
    sn_attrs shift;
    sn_attrs_default(SN_OP_affine, &shift);
    shift.affine.scale = (int64_t)sn_build_param(b, "", 1).i;
    shift.affine.shift = c->node->attrs.epsilon.epsilon;
    const sn_value rstd = sn_build_rsqrt(b, sn_build(b, SN_OP_affine, &shift, &c->in[VAR], 1));
    const sn_value a = sn_build_mul(b, c->in[GAMMA], rstd);
    if (c->wants[X])
        c->din[X] = sn_build_mul(b, dy, a);
    if (!c->wants[MEAN] && !c->wants[VAR] && !c->wants[GAMMA] && !c->wants[BETA])
        return;
    const sn_value in[4] = {dy, c->in[X], c->in[MEAN], c->in[VAR]};
    sn_value sums[SN_MAX_OUT];
    sn_build_all(b, SN_OP_normalise_sums, &c->node->attrs, in, 4, sums);
    const snug_dtype dtype = sn_rule_type(c, c->in[GAMMA]).dtype;
    const sn_value sdy = sn_build_cast(b, sums[0], dtype), sdyx = sn_build_cast(b, sums[1], dtype);
    c->din[BETA] = sdy;
    c->din[GAMMA] = sdyx;
    if (c->wants[MEAN])
        c->din[MEAN] = sn_build_neg(b, sn_build_mul(b, a, sdy));
    if (c->wants[VAR])
        c->din[VAR] = sn_build_affine(b, sn_build_mul(b, sn_build_mul(b, a, rstd), sdyx), -0.5, 0);
}

/* y = a p + b q + c, with a, b, c along the last axis. */
SN_GRAD_RULE(channel_affine) {
    const sn_value dy = c->dout[0];
    for (int i = 0; i < 2; i++)
        if (c->wants[i])
            c->din[i] = sn_build_mul(c->b, dy, c->in[2 + i]);
    for (int i = 2; i < 5; i++) {
        if (!c->wants[i])
            continue;
        const snug_type like = sn_rule_type(c, c->in[i]);
        const sn_value full = i < 4 ? sn_build_mul(c->b, dy, c->in[i - 2]) : dy;
        c->din[i] = sn_build_sum_to(c->b, full, &like);
    }
}

/* layernorm(x, gamma, beta) -> (y, mean, rstd); the last two exist for this rule. */
SN_GRAD_RULE(layernorm) {
    if (sn_value_ok(c->dout[1]) || sn_value_ok(c->dout[2])) {
        sn_rule_unsupported(
            c,
            "layernorm's mean and rstd outputs have no gradient; compute them with sum and affine");
        return;
    }
    const sn_value dy = c->dout[0], x = c->in[0], mean = c->out[1], rstd = c->out[2];
    if (c->wants[0]) {
        const sn_value in[5] = {dy, x, c->in[1], mean, rstd};
        c->din[0] = sn_build(c->b, SN_OP_layernorm_dx, NULL, in, 5);
    }
    if (c->wants[1] || c->wants[2]) {
        const sn_value in[4] = {dy, x, mean, rstd};
        const snug_dtype dtype = sn_rule_type(c, c->in[1]).dtype;
        sn_value sums[SN_MAX_OUT];
        sn_build_all(c->b, SN_OP_layernorm_sums, NULL, in, 4, sums);
        c->din[2] = sn_build_cast(c->b, sums[0], dtype);
        c->din[1] = sn_build_cast(c->b, sums[1], dtype);
    }
}
