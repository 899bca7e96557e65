/* grad_factors.c: gradients of the rows that take matrices apart. ^T turns a matrix; * multiplies
 * elements. Where two values are equal the vectors are not determined, and their part is 0, as
 * TensorFlow has it: 1 / x stands for x / (x^2 + 1e-20). */
#include "graph/rule.h"

static sn_value turned(sn_builder *b, sn_value x) {
    return sn_build_swapaxes(b, x, -2, -1);
}

static sn_value times(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_matmul_t(b, x, y, false, false);
}

/* x^T y and x y^T */
static sn_value first_turned(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_matmul_t(b, x, y, true, false);
}
static sn_value second_turned(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_matmul_t(b, x, y, false, true);
}

/* x, y or their sum, whichever there are. */
static sn_value added(sn_builder *b, sn_value x, sn_value y) {
    return !sn_value_ok(x) ? y : !sn_value_ok(y) ? x : sn_build_add(b, x, y);
}

static sn_value safe_reciprocal(sn_builder *b, sn_value x) {
    return sn_build_div(b, x, sn_build_affine(b, sn_build_square(b, x), 1, 1e-20));
}

static sn_value unit_like(const sn_grad_call *c, sn_value square) {
    const snug_type t = sn_rule_type(c, square);
    return sn_build_band(c->b, sn_build_fill(c->b, &t, 1), 0, 0);
}

/* [i][j] = 1 / (w[j] - w[i]) beside the diagonal of matrices like `square`; 0 where those are
 * equal. */
static sn_value gaps(const sn_grad_call *c, sn_value w, sn_value square) {
    sn_builder *const b = c->b;
    const sn_value apart =
        sn_build_sub(b, sn_build_expand_dims(b, w, -2), sn_build_expand_dims(b, w, -1));
    const sn_value unit = unit_like(c, square), beside = sn_build_affine(b, unit, -1, 1);
    return sn_build_mul(b, beside, safe_reciprocal(b, sn_build_add(b, apart, unit)));
}

/* diag(w) of matrices like `square`; nothing of nothing. */
static sn_value diagonal(const sn_grad_call *c, sn_value w, sn_value square) {
    if (!sn_value_ok(w))
        return w;
    return sn_build_mul(c->b, unit_like(c, square), sn_build_expand_dims(c->b, w, -1));
}

/* The lower triangle alone was read: it gets what the upper would. */
static sn_value in_lower(const sn_grad_call *c, sn_value da) {
    sn_builder *const b = c->b;
    const sn_value both = sn_build_add(b, da, turned(b, da));
    return sn_build_sub(b, sn_build_band(b, both, INT32_MIN, 0),
                        sn_build_mul(b, unit_like(c, da), da));
}

/* --- eigh: A = V diag(w) V^T ------------------------------------------------------------------ */
/* V (diag(dw) + F * (V^T dV)) V^T with F[i][j] = 1 / (w[j] - w[i]) beside the diagonal. */
SN_GRAD_RULE(eigh) {
    sn_builder *const b = c->b;
    const sn_value w = c->out[0], v = c->out[1];
    sn_value inner = diagonal(c, c->dout[0], v);
    if (sn_value_ok(c->dout[1]))
        inner = added(b, inner, sn_build_mul(b, gaps(c, w, v), first_turned(b, v, c->dout[1])));
    if (!sn_value_ok(inner))
        return;
    c->din[0] = in_lower(c, times(b, v, second_turned(b, inner, v)));
}

/* --- svd: A = U diag(s) V^T ------------------------------------------------------------------- */
typedef struct {
    sn_value s, u, vt;    /* of k values: U has k columns, V^T k rows */
    sn_value ds, du, dvt; /* SN_NO_VALUE: none */
} decomposition;

/* What flows back to the values and, with F[i][j] = 1 / (s[j]^2 - s[i]^2), within the columns:
 * diag(ds) + F * (U^T dU - dU^T U) S + S F * (V^T dV - dV^T V) */
static sn_value inner_of(const sn_grad_call *c, const decomposition *d) {
    sn_builder *const b = c->b;
    const sn_value turn_u = sn_value_ok(d->du) ? first_turned(b, d->u, d->du) : SN_NO_VALUE,
                   turn_v = sn_value_ok(d->dvt) ? second_turned(b, d->vt, d->dvt) : SN_NO_VALUE;
    const sn_value square = sn_value_ok(turn_u) ? turn_u : turn_v;
    const sn_value f = gaps(c, sn_build_square(b, d->s), square);
    sn_value inner = diagonal(c, d->ds, square);
    if (sn_value_ok(turn_u)) {
        const sn_value skew = sn_build_mul(b, f, sn_build_sub(b, turn_u, turned(b, turn_u)));
        inner = added(b, inner, sn_build_mul(b, skew, sn_build_expand_dims(b, d->s, -2)));
    }
    if (sn_value_ok(turn_v)) {
        const sn_value skew = sn_build_mul(b, f, sn_build_sub(b, turn_v, turned(b, turn_v)));
        inner = added(b, inner, sn_build_mul(b, skew, sn_build_expand_dims(b, d->s, -1)));
    }
    return inner;
}

/* Values alone: U diag(ds) V^T. */
static sn_value pull_values(sn_builder *b, const decomposition *d) {
    return times(b, sn_build_mul(b, d->u, sn_build_expand_dims(b, d->ds, -2)), d->vt);
}

/* U inner V^T, and what leads out of the columns' span:
 * (dU - U U^T dU) S^-1 V^T + U S^-1 (dV^T - dV^T V V^T) */
static sn_value pull_all(const sn_grad_call *c, const decomposition *d) {
    sn_builder *const b = c->b;
    const sn_value s = safe_reciprocal(b, d->s);
    sn_value da = times(b, d->u, times(b, inner_of(c, d), d->vt));
    if (sn_value_ok(d->du)) {
        const sn_value within = times(b, d->u, first_turned(b, d->u, d->du));
        const sn_value out =
            sn_build_mul(b, sn_build_sub(b, d->du, within), sn_build_expand_dims(b, s, -2));
        da = sn_build_add(b, da, times(b, out, d->vt));
    }
    if (sn_value_ok(d->dvt)) {
        const sn_value within = times(b, second_turned(b, d->dvt, d->vt), d->vt);
        const sn_value out =
            sn_build_mul(b, sn_build_sub(b, d->dvt, within), sn_build_expand_dims(b, s, -1));
        da = sn_build_add(b, da, times(b, d->u, out));
    }
    return da;
}

/* Where only values were asked for, their vectors are made here. */
static void make_vectors(const sn_grad_call *c, decomposition *d) {
    sn_value made[SN_MAX_OUT];
    sn_attrs a;
    sn_attrs_copy(c->node->op, &c->node->attrs, &a);
    a.svd.vectors = 1;
    a.svd.whole = 0;
    sn_build_all(c->b, SN_OP_svd, &a, &c->in[0], 1, made);
    d->u = made[1];
    d->vt = made[2];
}

SN_GRAD_RULE(svd) {
    const sn_attrs_svd *a = &c->node->attrs.svd;
    const snug_type t = sn_rule_type(c, c->in[0]);
    const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1], k = m < n ? m : n;
    const bool vectors = a->vectors, extra = vectors && a->whole && m != n;
    decomposition d = {c->out[0], SN_NO_VALUE, SN_NO_VALUE, c->dout[0], SN_NO_VALUE, SN_NO_VALUE};
    if (vectors) {
        d.u = c->out[1];
        d.vt = c->out[2];
        d.du = c->dout[1];
        d.dvt = c->dout[2];
    } else {
        make_vectors(c, &d);
    }
    const bool moved = sn_value_ok(d.du) || sn_value_ok(d.dvt);
    if (extra && moved) {
        sn_rule_unsupported(c, "svd: vectors beyond the singular values have no gradient; ask for "
                               "as many vectors as values (full_matrices=False)");
        return;
    }
    if (extra) {
        d.u = sn_build_part(c->b, d.u, -1, 0, k);
        d.vt = sn_build_part(c->b, d.vt, -2, 0, k);
    }
    if (moved)
        c->din[0] = pull_all(c, &d);
    else if (sn_value_ok(d.ds))
        c->din[0] = pull_values(c->b, &d);
}

/* --- lstsq: X = A^+ B ------------------------------------------------------------------------- */
/* With Y = A^+^T dX, Z = A^+ Y and W = A^+^T X, all of them least squares:
 * dB = Y, dA = (B - A X) Z^T - Y X^T + W (dX - A^T Y)^T. The first is 0 where A has all its rows'
 * rank, the last where it has all its columns'. */
SN_GRAD_RULE(lstsq) {
    sn_builder *const b = c->b;
    const sn_value a = c->in[0], x = c->out[0], dx = c->dout[0], at = turned(b, a);
    const sn_value y = sn_rule_same_attrs(c, SN_OP_lstsq, at, dx);
    c->din[1] = y;
    if (!c->wants[0])
        return;
    const sn_value z = sn_rule_same_attrs(c, SN_OP_lstsq, a, y);
    const sn_value w = sn_rule_same_attrs(c, SN_OP_lstsq, at, x);
    const sn_value left = sn_build_sub(b, c->in[1], times(b, a, x));
    const sn_value beside = sn_build_sub(b, dx, times(b, at, y));
    const sn_value da = sn_build_sub(b, second_turned(b, left, z), second_turned(b, y, x));
    c->din[0] = sn_build_add(b, da, second_turned(b, w, beside));
}

/* --- qr: A = Q R ------------------------------------------------------------------------------ */
/* (dQ + Q copied(R dR^T - dQ^T Q)) R^-T, of a matrix with no more columns than rows; copied: the
 * lower triangle, above the diagonal, too. */
static sn_value pull_square(const sn_grad_call *c, sn_value r, sn_value dq, sn_value dr) {
    sn_builder *const b = c->b;
    const sn_value q = c->out[0];
    sn_value m = SN_NO_VALUE;
    if (sn_value_ok(dr))
        m = second_turned(b, r, dr);
    if (sn_value_ok(dq))
        m = added(b, m, sn_build_neg(b, first_turned(b, dq, q)));
    const sn_value lower = sn_build_band(b, m, INT32_MIN, 0),
                   below = sn_build_band(b, m, INT32_MIN, -1);
    const sn_value copied = sn_build_add(b, lower, turned(b, below));
    const sn_value g = added(b, times(b, q, copied), dq);
    return turned(b, sn_build_lstsq(b, r, turned(b, g), 0));
}

/* A matrix with more columns than rows is a square one and others, which are Q times theirs. */
SN_GRAD_RULE(qr) {
    sn_builder *const b = c->b;
    const sn_value q = c->out[0], r = c->out[1];
    sn_value dq = c->dout[0], dr = c->dout[1];
    const snug_type t = sn_rule_type(c, c->in[0]);
    const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1];
    if (!sn_value_ok(dq) && !sn_value_ok(dr))
        return;
    if (c->node->attrs.qr.whole && m > n) {
        sn_rule_unsupported(c, "qr: columns beyond those of the matrix have no gradient; ask for "
                               "as many (full_matrices=False, mode=\"reduced\")");
        return;
    }
    if (m >= n) {
        c->din[0] = pull_square(c, r, dq, dr);
        return;
    }
    if (!sn_value_ok(dr)) {
        const sn_value first = pull_square(c, sn_build_part(b, r, -1, 0, m), dq, dr);
        snug_type rest = t;
        rest.dims[t.rank - 1] = n - m;
        const sn_value both[2] = {first, sn_build_fill(b, &rest, 0)};
        c->din[0] = sn_build_concat(b, both, 2, -1);
        return;
    }
    const sn_value others = sn_build_part(b, dr, -1, m, n - m);
    const sn_value beside = times(b, q, sn_build_part(b, r, -1, m, n - m));
    dq = added(b, dq, second_turned(b, beside, others));
    const sn_value both[2] = {
        pull_square(c, sn_build_part(b, r, -1, 0, m), dq, sn_build_part(b, dr, -1, 0, m)),
        times(b, q, others)};
    c->din[0] = sn_build_concat(b, both, 2, -1);
}

/* --- solve: A X = B, or A^T X = B ------------------------------------------------------------- */
/* dB = A^-T dX, dA = -dB X^T; of A^T dB = A^-1 dX, dA = -X dB^T. What was not read gets nothing. */
SN_GRAD_RULE(solve) {
    sn_builder *const b = c->b;
    const sn_attrs_solve how = c->node->attrs.solve;
    sn_attrs_solve other = how;
    other.adjoint = !how.adjoint;
    if (!sn_value_ok(c->dout[0]))
        return;
    const sn_value x = c->out[0], db = sn_build_solve(b, &other, c->in[0], c->dout[0], NULL);
    c->din[1] = db;
    if (!c->wants[0])
        return;
    const sn_value da =
        sn_build_neg(b, how.adjoint ? second_turned(b, x, db) : second_turned(b, db, x));
    const int64_t beside = how.unit ? 1 : 0;
    c->din[0] = how.lower   ? sn_build_band(b, da, INT32_MIN, -beside)
                : how.upper ? sn_build_band(b, da, beside, INT32_MAX)
                            : da;
}

/* --- cholesky: A = L L^T ---------------------------------------------------------------------- */
/* L^-T P L^-1, where P is the lower triangle of L^T dL with half its diagonal. */
SN_GRAD_RULE(cholesky) {
    sn_builder *const b = c->b;
    const sn_value l = c->out[0];
    const sn_attrs_solve how = {.lower = 1, .adjoint = 1};
    const sn_value product = first_turned(b, l, c->dout[0]);
    const sn_value half = sn_build_affine(b, sn_build_band(b, product, 0, 0), 0.5, 0);
    const sn_value p = sn_build_add(b, sn_build_band(b, product, INT32_MIN, -1), half);
    const sn_value left = turned(b, sn_build_solve(b, &how, l, p, NULL));
    c->din[0] = in_lower(c, sn_build_solve(b, &how, l, left, NULL));
}

/* --- lu: A = P^T L U -------------------------------------------------------------------------- */
/* P^T L^-T (the lower triangle of L^T dL, below its diagonal, and the upper of dU U^T) U^-T */
SN_GRAD_RULE(lu) {
    sn_builder *const b = c->b;
    const sn_value both = c->out[0], d = c->dout[0];
    const sn_attrs_solve by_lower = {.lower = 1, .adjoint = 1, .unit = 1}, by_upper = {.upper = 1};
    const snug_type t = sn_rule_type(c, both);
    const sn_one_hot rows = {.depth = t.dims[t.rank - 1], .dtype = t.dtype, .axis = -1, .on = 1};
    if (!sn_value_ok(d))
        return;
    const sn_value lower =
                       sn_build_add(b, sn_build_band(b, both, INT32_MIN, -1), unit_like(c, both)),
                   upper = sn_build_band(b, both, 0, INT32_MAX);
    const sn_value below = sn_build_band(b, first_turned(b, lower, d), INT32_MIN, -1),
                   above = sn_build_band(b, second_turned(b, d, upper), 0, INT32_MAX);
    const sn_value left = sn_build_solve(b, &by_lower, both, sn_build_add(b, below, above), NULL);
    const sn_value right = sn_build_solve(b, &by_upper, both, turned(b, left), NULL);
    c->din[0] = first_turned(b, sn_build_one_hot(b, c->out[1], &rows), turned(b, right));
}
