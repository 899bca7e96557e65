/* grad_attention.c: the gradient of scaled dot-product attention: one row that makes the weights
 * again, block by block, from q, k, v and the logarithm of each row's sum, so that no matrix of
 * queries by keys waits between the passes. What is asked for seldom is made of plain operators
 * with that matrix in full: the gradient of a bias that learns, of the logarithms, and of the
 * gradient itself (second order). The formulas:
 *
 *     p = exp(s - lse), s = scale q k^T + bias;  dv = p'^T dy, p' what dropout leaves of p
 *     ds = p (dp - sum(dy y) + dlse), dp = dropped dy v^T;  dq = scale ds k;  dk = scale ds^T q
 *
 * Where a key is not seen p does not depend on s: it is 0, or 1 / S in a row that sees none. */
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
    split[r - 1] = u.dims[r - 2] > 0 ? t.dims[r - 2] / u.dims[r - 2] : 0;
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

/* Below this no score counts; the kernels have the same number. */
#define HALF_UNSEEN (-5e29)

/* What the row reads; SN_NO_VALUE where there is none. */
typedef struct {
    const sn_grad_call *c;
    sn_builder *b;
    const sn_attrs_attention *a;
    sn_value q, k, v, lse, mask;
    snug_dtype dtype;
    sn_value p, seen; /* weights [.., H, T, S] and truth values that spread over them */
} weights;

/* Of the scores, from inputs of the node: what is built may have failed. */
static snug_type scores_type(const weights *w) {
    snug_type t = sn_rule_type(w->c, w->q);
    const int r = t.rank;
    const int64_t T = t.dims[r - 3];
    t.dims[r - 3] = t.dims[r - 2];
    t.dims[r - 2] = T;
    t.dims[r - 1] = sn_rule_type(w->c, w->k).dims[r - 3];
    return t;
}

static sn_value scalar(const weights *w, double value) {
    return sn_build_scalar(w->b, w->dtype, value);
}

/* Which scores count: those not masked, not later and not of a bias of -infinity. */
static sn_value seen_of(const weights *w, sn_value score) {
    snug_type t = scores_type(w);
    sn_value seen = SN_NO_VALUE;
    if (sn_value_ok(w->mask))
        seen = sn_rule_type(w->c, w->mask).dtype == SNUG_BOOL
                   ? w->mask
                   : sn_build_logical_not(w->b,
                                          sn_build_less_equal(w->b, score, scalar(w, HALF_UNSEEN)));
    if (!w->a->causal)
        return seen;
    for (int i = 0; i < t.rank - 2; i++)
        t.dims[i] = 1;
    const sn_value band = sn_build_band(w->b, sn_build_fill(w->b, &t, 1), INT32_MIN, 0);
    const sn_value early = sn_build_greater(w->b, band, scalar(w, 0));
    return sn_value_ok(seen) ? sn_build_logical_and(w->b, seen, early) : early;
}

static void make_weights(weights *w) {
    sn_builder *const b = w->b;
    const sn_value scale = sn_rule_slot(w->c, w->dtype, w->a->scale);
    sn_value score = sn_build_mul(b, products(w->c, w->q, w->k), scale);
    const snug_type full = scores_type(w);
    if (sn_value_ok(w->mask) && sn_rule_type(w->c, w->mask).dtype != SNUG_BOOL)
        score = sn_build_add(b, score, w->mask);
    w->seen = seen_of(w, score);
    const sn_value lse = column(w->c, w->lse);
    const sn_value above = sn_build_sub(b, score, lse);
    w->p = sn_build_exp(b, sn_value_ok(w->seen) ? sn_build_select(b, w->seen, above, scalar(w, 0))
                                                : above);
    if (!sn_value_ok(w->seen))
        return;
    const double share = 1 / (double)full.dims[full.rank - 1];
    const sn_value blind = sn_build_less_equal(b, lse, scalar(w, HALF_UNSEEN));
    w->p = sn_build_select(b, w->seen, w->p,
                           sn_build_select(b, blind, scalar(w, share), scalar(w, 0)));
}

/* What dropout leaves of weights, or of their gradients: the draw is by place, the same again. */
static sn_value dropped(const weights *w, sn_value x) {
    if (!w->a->dropout)
        return x;
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.rate = w->a->rate;
    a.dropout.key = w->a->key;
    return sn_build(w->b, SN_OP_dropout, &a, &x, 1);
}

/* p (d), and 0 where p is no function of the scores. */
static sn_value slopes(const weights *w, sn_value d) {
    const sn_value ds = sn_build_mul(w->b, w->p, d);
    return sn_value_ok(w->seen) ? sn_build_select(w->b, w->seen, ds, scalar(w, 0)) : ds;
}

/* dp - sum(dy y) [.., H, T, S] */
static sn_value slope_inside(const weights *w, sn_value y, sn_value dy) {
    const int rank = sn_rule_type(w->c, y).rank;
    const sn_value delta = sn_build_sum(w->b, sn_build_mul(w->b, dy, y), 1u << (rank - 1), false);
    return sn_build_sub(w->b, dropped(w, products(w->c, dy, w->v)), column(w->c, delta));
}

/* m [.., H, T, S] times x: by keys with x [.., S, G, D] to [.., T, H, D], or by queries with x
 * [.., T, H, D] to [.., S, G, D], where the heads of a group add up. */
static sn_value spread(const weights *w, sn_value m, sn_value x, bool by_queries) {
    const snug_type t = scores_type(w), u = sn_rule_type(w->c, x);
    const int r = t.rank;
    const int64_t H = t.dims[r - 3], G = sn_rule_type(w->c, w->k).dims[r - 2];
    const int64_t heads = G > 0 ? H / G : 0;
    int64_t grouped[SNUG_MAX_RANK + 1], rows[SNUG_MAX_RANK + 1];
    memcpy(grouped, t.dims, sizeof t.dims);
    memcpy(rows, u.dims, sizeof u.dims);
    grouped[r - 3] = G, grouped[r - 2] = heads;
    grouped[r - 1] = t.dims[r - 2], grouped[r] = t.dims[r - 1];
    rows[r - 2] = G, rows[r - 1] = heads, rows[r] = u.dims[r - 1];
    m = sn_build_reshape(w->b, m, grouped, r + 1);
    if (by_queries) {
        const sn_value in[2] = {m, sn_build_reshape(w->b, x, rows, r + 1)};
        return sn_build_einsum(w->b, "...gmts,...tgmd->...sgd", in, 2);
    }
    const sn_value in[2] = {m, x};
    const sn_value y = sn_build_einsum(w->b, "...gmts,...sgd->...tgmd", in, 2);
    snug_type out = sn_rule_type(w->c, w->q);
    out.dims[r - 1] = u.dims[r - 1];
    return sn_build_reshape(w->b, y, out.dims, r);
}

/* --- the rules -------------------------------------------------------------------------------- */
static bool refuses_rank(const sn_grad_call *c) {
    const bool high = sn_rule_type(c, c->in[0]).rank == SNUG_MAX_RANK;
    if (high)
        sn_rule_unsupported(c, "attention of rank 8 has neither a bias that learns nor a second "
                               "order; join two leading axes with reshape");
    return high;
}

/* dlse arrives in second order: of q, k and the bias it is one more term of ds. */
static void add_plain_terms(sn_grad_call *c, bool learns) {
    weights w = {.c = c,
                 .b = c->b,
                 .a = &c->node->attrs.attention,
                 .q = c->in[0],
                 .k = c->in[1],
                 .v = c->in[2],
                 .lse = c->out[1],
                 .mask = c->node->n_in > 3 ? c->in[3] : SN_NO_VALUE,
                 .dtype = sn_rule_type(c, c->in[0]).dtype};
    sn_value ds = SN_NO_VALUE, extra = SN_NO_VALUE;
    make_weights(&w);
    if (learns && sn_value_ok(c->dout[0]))
        ds = slopes(&w, slope_inside(&w, c->out[0], c->dout[0]));
    if (sn_value_ok(c->dout[1])) {
        extra = slopes(&w, column(c, c->dout[1]));
        const sn_value scaled = sn_build_mul(w.b, extra, sn_rule_slot(c, w.dtype, w.a->scale));
        const sn_value dq = spread(&w, scaled, w.k, false), dk = spread(&w, scaled, w.q, true);
        c->din[0] = sn_value_ok(c->din[0]) ? sn_build_add(w.b, c->din[0], dq) : dq;
        c->din[1] = sn_value_ok(c->din[1]) ? sn_build_add(w.b, c->din[1], dk) : dk;
        ds = sn_value_ok(ds) ? sn_build_add(w.b, ds, extra) : extra;
    }
    if (learns) {
        const snug_type bias = sn_rule_type(c, c->in[3]);
        c->din[3] = sn_build_sum_to(w.b, ds, &bias);
    }
}

/* attention(q, k, v [, mask]) -> (y, lse); lse exists for this rule. */
SN_GRAD_RULE(attention) {
    const bool learns = c->node->n_in > 3 && c->wants[3];
    if (sn_value_ok(c->dout[0])) {
        const sn_value in[7] = {c->in[0],  c->in[1],   c->in[2], c->out[0],
                                c->out[1], c->dout[0], c->in[3]};
        sn_value din[SN_MAX_OUT];
        sn_build_all(c->b, SN_OP_attention_grad, &c->node->attrs, in, c->node->n_in + 3, din);
        for (int i = 0; i < 3; i++)
            c->din[i] = din[i];
    }
    if ((learns || sn_value_ok(c->dout[1])) && !refuses_rank(c))
        add_plain_terms(c, learns);
}

/* The row in plain operators: (q, k, v, y, lse, dy [, mask]) -> dq, dk, dv. */
static void compose_gradient(const sn_grad_call *c, const sn_value *in, sn_value *out) {
    weights w = {.c = c,
                 .b = c->b,
                 .a = &c->node->attrs.attention,
                 .q = in[0],
                 .k = in[1],
                 .v = in[2],
                 .lse = in[4],
                 .mask = c->node->n_in > 6 ? in[6] : SN_NO_VALUE,
                 .dtype = sn_rule_type(c, in[0]).dtype};
    make_weights(&w);
    const sn_value ds = sn_build_mul(w.b, slopes(&w, slope_inside(&w, in[3], in[5])),
                                     sn_rule_slot(c, w.dtype, w.a->scale));
    out[0] = spread(&w, ds, w.k, false);
    out[1] = spread(&w, ds, w.q, true);
    out[2] = spread(&w, dropped(&w, w.p), in[5], true);
}

/* Second order: the row is written out from copies of its inputs, and that is differentiated. */
SN_GRAD_RULE(attention_grad) {
    if (refuses_rank(c))
        return;
    sn_value in[SN_MAX_IN] = {{0}}, out[SN_MAX_OUT], wrt[SN_MAX_IN], grads[SN_MAX_IN];
    int at[SN_MAX_IN], n = 0;
    for (int i = 0; i < c->node->n_in; i++) {
        in[i] = c->wants[i] ? sn_build_identity(c->b, c->in[i]) : c->in[i];
        if (c->wants[i]) {
            wrt[n] = in[i];
            at[n++] = i;
        }
    }
    if (c->b->error.code != SNUG_OK)
        return;
    compose_gradient(c, in, out);
    sn_rule_pull_back(c, &(sn_pull_back){out, c->dout, 3, wrt, n, NULL}, grads);
    for (int i = 0; i < n; i++)
        c->din[at[i]] = grads[i];
}
