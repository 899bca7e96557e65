/* grad_norm.c: gradients of batch and layer normalisation. Per-channel arithmetic is ordinary rows
 * on vectors of C numbers; only the sums over dy read full-size values. A batch norm's dx comes
 * from two rows,
 *
 *     normalise: a dy            a = gamma rstd
 *     moments:   b x + c         b = 2 d(sum x^2), c = d(sum x)
 *
 * as plain mul and add, which sn_graph_fuse merges into the one channel_affine(dy, x, a, b, c). */
#include "graph/rule.h"

/* (var + epsilon)^(-1/2), with the node's epsilon. */
static sn_value rstd_of(const sn_grad_call *c, sn_value var) {
    sn_attrs shift;
    sn_attrs_default(SN_OP_affine, &shift);
    shift.affine.scale = (int64_t)sn_build_param(c->b, "", 1).i;
    shift.affine.shift = c->node->attrs.epsilon.epsilon;
    return sn_build_rsqrt(c->b, sn_build(c->b, SN_OP_affine, &shift, &var, 1));
}

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

/* y = gamma xhat + beta with xhat = (x - mean) rstd, rstd = (var + epsilon)^(-1/2), so that
 *
 *     d rstd / d var = -rstd^3 / 2
 *     dmean = -gamma rstd sdy           sdy = sum dy
 *     dvar  = -gamma rstd^2 sdyx / 2    sdyx = sum dy xhat */
SN_GRAD_RULE(normalise) {
    enum { X, MEAN, VAR, GAMMA, BETA };
    sn_builder *b = c->b;
    const sn_value dy = c->dout[0];
    const sn_value rstd = rstd_of(c, c->in[VAR]);
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

/* (dy, x, mean, var) -> sdy, sdyx as above. With their gradients s and t:
 *
 *     ddy = s + t xhat,  dx = t rstd dy
 *     dmean = -t rstd sdy,  dvar = -t rstd^2 sdyx / 2    from the same two sums */
SN_GRAD_RULE(normalise_sums) {
    enum { DY, X, MEAN, VAR };
    sn_builder *b = c->b;
    const snug_type like = sn_rule_type(c, c->in[DY]);
    const sn_value s = c->dout[0], t = c->dout[1];
    if (!sn_value_ok(t)) {
        c->din[DY] = sn_build_broadcast_to(b, s, &like);
        return;
    }
    const sn_value rstd = rstd_of(c, c->in[VAR]), slope = sn_build_mul(b, t, rstd);
    if (c->wants[DY]) {
        const sn_value part = sn_build_mul(b, sn_build_sub(b, c->in[X], c->in[MEAN]), slope);
        c->din[DY] = sn_value_ok(s) ? sn_build_add(b, part, s) : part;
    }
    if (c->wants[X])
        c->din[X] = sn_build_mul(b, c->in[DY], slope);
    if (!c->wants[MEAN] && !c->wants[VAR])
        return;
    sn_value sums[SN_MAX_OUT];
    sn_build_all(b, SN_OP_normalise_sums, &c->node->attrs, c->in, 4, sums);
    c->din[MEAN] = sn_build_neg(b, sn_build_mul(b, slope, sums[0]));
    c->din[VAR] =
        sn_build_affine(b, sn_build_mul(b, sn_build_mul(b, slope, rstd), sums[1]), -0.5, 0);
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

/* --- layer normalisation ---------------------------------------------------------------------- */
/* Below, per row: m the mean, s = rstd, h = (x - m) s; C elements in a row. */

/* One number per row, shaped to broadcast against the rows of x. */
static sn_value as_column(const sn_grad_call *c, sn_value v, sn_value x) {
    snug_type t = sn_rule_type(c, x);
    t.dims[t.rank - 1] = 1;
    return sn_build_reshape(c->b, v, t.dims, t.rank);
}

static sn_value row_sum(const sn_grad_call *c, sn_value v) {
    if (!sn_value_ok(v))
        return SN_NO_VALUE;
    return sn_build_sum(c->b, v, 1u << (sn_rule_type(c, v).rank - 1), true);
}

static sn_value row_mean(const sn_grad_call *c, sn_value v) {
    if (!sn_value_ok(v))
        return SN_NO_VALUE;
    const snug_type t = sn_rule_type(c, v);
    return sn_build_affine(c->b, row_sum(c, v), 1 / (double)t.dims[t.rank - 1], 0);
}

/* A column back to the shape of the statistics. */
static sn_value as_rows(const sn_grad_call *c, sn_value column, sn_value like) {
    const snug_type t = sn_rule_type(c, like);
    return sn_build_reshape(c->b, column, t.dims, t.rank);
}

static sn_value add_if(sn_builder *b, sn_value sum, sn_value term) {
    return sn_value_ok(sum) ? sn_build_add(b, sum, term) : term;
}

/* What x gets from the gradients of m and s: dm / C - ds s^3 (x - m) / C. */
static sn_value from_statistics(const sn_grad_call *c, sn_value dm, sn_value ds) {
    sn_builder *b = c->b;
    const sn_value x = c->in[0];
    const snug_type like = sn_rule_type(c, x);
    const double share = 1 / (double)like.dims[like.rank - 1];
    sn_value dx = SN_NO_VALUE;
    if (sn_value_ok(ds)) {
        const sn_value m = as_column(c, c->out[1], x), s = as_column(c, c->out[2], x);
        const sn_value cube = sn_build_mul(b, sn_build_square(b, s), s);
        const sn_value slope =
            sn_build_affine(b, sn_build_mul(b, as_column(c, ds, x), cube), -share, 0);
        dx = sn_build_mul(b, sn_build_sub(b, x, m), slope);
    }
    if (sn_value_ok(dm)) {
        const sn_value part = sn_build_affine(b, as_column(c, dm, x), share, 0);
        dx = sn_value_ok(dx) ? sn_build_add(b, dx, part) : sn_build_broadcast_to(b, part, &like);
    }
    return dx;
}

/* layernorm(x, gamma, beta) -> (y, mean, rstd); the last two exist for this rule, and get gradients
 * when it is differentiated again. */
SN_GRAD_RULE(layernorm) {
    const sn_value dy = c->dout[0], x = c->in[0], mean = c->out[1], rstd = c->out[2];
    if (c->wants[0] && (sn_value_ok(c->dout[1]) || sn_value_ok(c->dout[2])))
        c->din[0] = from_statistics(c, c->dout[1], c->dout[2]);
    if (!sn_value_ok(dy))
        return;
    if (c->wants[0]) {
        const sn_value in[5] = {dy, x, c->in[1], mean, rstd};
        c->din[0] = add_if(c->b, c->din[0], sn_build(c->b, SN_OP_layernorm_dx, NULL, in, 5));
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

/* What x, m and s get from dh, the gradient of h. */
static void through_h(sn_grad_call *c, sn_value dh, int x, int m, int s) {
    sn_builder *b = c->b;
    const sn_value slope = sn_build_mul(b, dh, as_column(c, c->in[s], c->in[x]));
    if (c->wants[x])
        c->din[x] = slope;
    if (c->wants[m])
        c->din[m] = as_rows(c, sn_build_neg(b, row_sum(c, slope)), c->in[m]);
    if (c->wants[s]) {
        const sn_value off = sn_build_sub(b, c->in[x], as_column(c, c->in[m], c->in[x]));
        c->din[s] = as_rows(c, row_sum(c, sn_build_mul(b, dh, off)), c->in[s]);
    }
}

static sn_value h_of(const sn_grad_call *c, int x, int m, int s) {
    const sn_value off = sn_build_sub(c->b, c->in[x], as_column(c, c->in[m], c->in[x]));
    return sn_build_mul(c->b, off, as_column(c, c->in[s], c->in[x]));
}

/* (dy, x, m, s) -> sum dy, sum dy h, over the rows; their gradients are vectors of C. */
SN_GRAD_RULE(layernorm_sums) {
    enum { DY, X, M, S };
    sn_builder *b = c->b;
    const snug_type like = sn_rule_type(c, c->in[DY]);
    const sn_value g = c->dout[1];
    if (!sn_value_ok(g)) {
        c->din[DY] = sn_build_broadcast_to(b, c->dout[0], &like);
        return;
    }
    if (c->wants[DY]) {
        const sn_value part = sn_build_mul(b, h_of(c, X, M, S), g);
        c->din[DY] = sn_value_ok(c->dout[0]) ? sn_build_add(b, part, c->dout[0]) : part;
    }
    if (c->wants[X] || c->wants[M] || c->wants[S])
        through_h(c, sn_build_mul(b, c->in[DY], g), X, M, S);
}

/* out = s (v - mean(v) - h mean(v h)), v = gamma dy. In v it is linear and symmetric, so that v's
 * gradient is the same of g with gamma 1; that of h is -s (g mean(v h) + v mean(g h)), that of s
 * sum(g out) / s. */
SN_GRAD_RULE(layernorm_dx) {
    enum { DY, X, GAMMA, M, S };
    sn_builder *b = c->b;
    const sn_value g = c->dout[0], x = c->in[X];
    const snug_type channels = sn_rule_type(c, c->in[GAMMA]);
    if (c->wants[DY] || c->wants[GAMMA]) {
        const sn_value in[5] = {g, x, sn_build_fill(b, &channels, 1), c->in[M], c->in[S]};
        const sn_value dv = sn_build(b, SN_OP_layernorm_dx, NULL, in, 5);
        if (c->wants[DY])
            c->din[DY] = sn_build_mul(b, dv, c->in[GAMMA]);
        if (c->wants[GAMMA])
            c->din[GAMMA] = sn_build_sum_to(b, sn_build_mul(b, dv, c->in[DY]), &channels);
    }
    if (!c->wants[X] && !c->wants[M] && !c->wants[S])
        return;
    const sn_value v = sn_build_mul(b, c->in[DY], c->in[GAMMA]), h = h_of(c, X, M, S);
    const sn_value vh = row_mean(c, sn_build_mul(b, v, h)), gh = row_mean(c, sn_build_mul(b, g, h));
    const sn_value both = sn_build_add(b, sn_build_mul(b, g, vh), sn_build_mul(b, v, gh));
    const sn_value s = as_column(c, c->in[S], x);
    through_h(c, sn_build_neg(b, sn_build_mul(b, both, s)), X, M, S);
    if (c->wants[S]) {
        const sn_value rest =
            sn_build_sub(b, sn_build_sub(b, v, row_mean(c, v)), sn_build_mul(b, h, vh));
        const sn_value own = row_sum(c, sn_build_mul(b, g, rest));
        c->din[S] = sn_build_add(b, c->din[S], as_rows(c, own, c->in[S]));
    }
}
