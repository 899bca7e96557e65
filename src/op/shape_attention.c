/* shape_attention.c: shape and axis rules of scaled dot-product attention and its gradient.
 *
 * Letters: q [.., T, H, D], k [.., S, G, D], v [.., S, G, E]: T queries and S keys of H and G
 * heads; G divides H, and head h reads the keys of head h / (H / G). A mask or bias has the axes of
 * the scores, [.., H, T, S], each in full or as 1. The result is [.., T, H, E], the logarithm of
 * each row's sum [.., T, H]. */
#include "op/rules.h"

/* What all rules ask: which extents are known to fit is merged into q, k and v. */
typedef struct {
    snug_type q, k, v;
    int rank;
} parts;

static snug_status unfit(const sn_opdesc *d, const char *why, snug_error *err) {
    return sn_fail(err, SNUG_E_SHAPE, "%s: q %s, k %s, v %s: %s", sn_op_name(d),
                   sn_type_text(&d->in[0]).s, sn_type_text(&d->in[1]).s, sn_type_text(&d->in[2]).s,
                   why);
}

static bool merge(int64_t *a, int64_t *b) {
    const bool fits = sn_dim_fits(*a, *b);
    *a = *b = sn_dim_merge(*a, *b);
    return fits;
}

static snug_status check_parts(const sn_opdesc *d, parts *p, snug_error *err) {
    SNUG_TRY(sn_want_flag(d, "causal", d->attrs.attention.causal, err));
    SNUG_TRY(sn_want_flag(d, "dropout", d->attrs.attention.dropout, err));
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 3, SNUG_MAX_RANK, err));
    const int rank = d->in[0].rank;
    for (int i = 1; i < 3; i++) {
        SNUG_TRY(sn_want_dtype_of(d, i, 0, err));
        SNUG_TRY(sn_want_rank(d, i, rank, rank, err));
    }
    *p = (parts){d->in[0], d->in[1], d->in[2], rank};
    for (int k = 0; k < rank - 3; k++)
        if (!merge(&p->q.dims[k], &p->k.dims[k]) || !merge(&p->k.dims[k], &p->v.dims[k]) ||
            !merge(&p->q.dims[k], &p->k.dims[k]))
            return unfit(d, "the leading extents must be equal", err);
    if (!merge(&p->k.dims[rank - 3], &p->v.dims[rank - 3]) ||
        !merge(&p->k.dims[rank - 2], &p->v.dims[rank - 2]))
        return unfit(d, "k and v must have the same steps and heads", err);
    if (!merge(&p->q.dims[rank - 1], &p->k.dims[rank - 1]))
        return unfit(d, "q and k must have the same features", err);
    const int64_t H = p->q.dims[rank - 2], G = p->k.dims[rank - 2];
    if (H >= 0 && G >= 0 && (G == 0 || H == 0 ? H != G : H % G != 0))
        return unfit(d, "the heads of k must divide those of q", err);
    return SNUG_OK;
}

/* Input i is truth values or numbers of q's dtype that spread over the scores. */
static snug_status check_mask(const sn_opdesc *d, int i, const parts *p, snug_error *err) {
    const int rank = p->rank;
    const snug_type *m = &d->in[i];
    if (m->dtype != SNUG_BOOL)
        SNUG_TRY(sn_want_dtype_of(d, i, 0, err));
    SNUG_TRY(sn_want_rank(d, i, rank, rank, err));
    snug_type scores = p->q;
    scores.dims[rank - 3] = p->q.dims[rank - 2];
    scores.dims[rank - 2] = p->q.dims[rank - 3];
    scores.dims[rank - 1] = p->k.dims[rank - 3];
    for (int k = 0; k < rank; k++)
        if (m->dims[k] != 1 && !sn_dim_fits(m->dims[k], scores.dims[k]))
            return sn_fail(err, SNUG_E_SHAPE,
                           "%s: mask %s does not spread over the scores %s (heads, queries, keys)",
                           sn_op_name(d), sn_type_text(m).s, sn_type_text(&scores).s);
    return SNUG_OK;
}

snug_status sn_shape_attention(sn_opdesc *d, snug_error *err) {
    parts p;
    SNUG_TRY(check_parts(d, &p, err));
    if (d->n_in > 3)
        SNUG_TRY(check_mask(d, 3, &p, err));
    d->n_out = 2;
    d->out[0] = p.q;
    d->out[0].dims[p.rank - 1] = p.v.dims[p.rank - 1];
    d->out[1] = sn_type_rows(&p.q);
    d->out[1].dtype = sn_dtype_sums(p.q.dtype);
    return SNUG_OK;
}

/* (q, k, v, y, lse, dy [, mask]) -> dq, dk, dv */
snug_status sn_shape_attention_grad(sn_opdesc *d, snug_error *err) {
    parts p;
    SNUG_TRY(check_parts(d, &p, err));
    snug_type y = p.q, lse = sn_type_rows(&p.q);
    y.dims[p.rank - 1] = p.v.dims[p.rank - 1];
    SNUG_TRY(sn_want_dtype_of(d, 3, 0, err));
    SNUG_TRY(sn_want_beside(d, 4, 0, err));
    SNUG_TRY(sn_want_dtype_of(d, 5, 0, err));
    SNUG_TRY(sn_want_dims(d, 3, &y, err));
    SNUG_TRY(sn_want_dims(d, 4, &lse, err));
    SNUG_TRY(sn_want_dims(d, 5, &y, err));
    if (d->n_in > 6)
        SNUG_TRY(check_mask(d, 6, &p, err));
    d->n_out = 3;
    d->out[0] = p.q;
    d->out[1] = p.k;
    d->out[2] = p.v;
    return SNUG_OK;
}

/* Every operand but a mask carries axis k; `inner` heads of q are one of k. */
static void carry_all(const sn_opdesc *d, sn_way *way, int k, int64_t inner) {
    const int mask = d->op == SN_OP_attention ? 3 : 6;
    const bool heads = k == d->in[0].rank - 2;
    for (int i = 0; i < d->n_in && i < mask; i++)
        way->in[i] = (sn_axis_ref){k, 1, i == 1 || i == 2 ? 1 : inner};
    for (int i = 0; i < d->n_out; i++)
        way->out[i] = (sn_axis_ref){k, 1, d->op == SN_OP_attention || i == 0 ? inner : 1};
    const int at = heads ? k - 1 : k; /* the scores have heads before steps */
    if (d->n_in > mask && d->in[mask].dims[at] != 1)
        way->in[mask] = (sn_axis_ref){at, 1, inner};
}

/* Batches and heads are separate problems. Weights are dropped by their place in the whole, which a
 * kernel does not know for a part of an axis. */
void sn_axes_attention(const sn_opdesc *d, sn_ways *ways) {
    const int rank = d->in[0].rank;
    for (int k = 0; k < rank - 3; k++)
        carry_all(d, sn_way_add(ways, d->in[0].dims[k]), k, 1);
    const int64_t H = d->in[0].dims[rank - 2], G = d->in[1].dims[rank - 2];
    if (G > 0 && (H == G || !d->attrs.attention.dropout))
        carry_all(d, sn_way_add(ways, G), rank - 2, H / G);
}
