/* functions_solve.c: linear equations, inverses, determinants and factors of matrices along the
 * last two axes, over the rows that LAPACK works for. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "function/function_call.h"

/* --- small parts ------------------------------------------------------------------------------ */
/* The matrices of argument 0; false after refusing. */
static bool square_input(sn_fn_call *c, sn_value *x, snug_type *t) {
    *x = sn_fn_float(c, 0);
    *t = sn_fn_type(c, *x);
    const int r = t->rank;
    if (!sn_fn_failed(c) && (r < 2 || t->dims[r - 1] != t->dims[r - 2]))
        sn_fn_refuse(c, SNUG_E_INVALID, "it needs square matrices");
    return !sn_fn_failed(c);
}

static sn_value identity_like(sn_fn_call *c, const snug_type *t) {
    return sn_build_band(c->b, sn_build_fill(c->b, t, 1), 0, 0);
}

/* --- equations -------------------------------------------------------------------------------- */
/* The answer, and an error where `one`, a number for each matrix, is not 1. */
static sn_value checked(sn_fn_call *c, sn_value answer, sn_value one) {
    const sn_value each = sn_build_expand_dims(c->b, sn_build_expand_dims(c->b, one, -1), -1),
                   fine = sn_build_check_finite(c->b, sn_build_stop_gradient(c->b, each));
    return sn_build_mul(c->b, answer, fine);
}

/* The x of a x = b, or of its adjoint; there has to be one. */
static sn_value solution(sn_fn_call *c, sn_value a, sn_value b) {
    const sn_attrs_solve how = {.adjoint = sn_fn_flag(c, "adjoint")};
    sn_value one;
    const sn_value x = sn_build_solve(c->b, &how, a, b, &one);
    return checked(c, x, one);
}

void sn_fn_inverse(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (square_input(c, &x, &t))
        c->out[0] = solution(c, x, identity_like(c, &t));
}

/* A right side that is a vector is a column. */
void sn_fn_solve(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const sn_value y = sn_fn_value_as(c, 1, t.dtype);
    const bool vector = sn_fn_type(c, y).rank == t.rank - 1;
    const sn_value z = solution(c, x, vector ? sn_build_expand_dims(c->b, y, -1) : y);
    c->out[0] = vector ? sn_build_squeeze(c->b, z, -1) : z;
}

void sn_fn_triangular_solve(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const bool lower = sn_fn_flag(c, "lower");
    const sn_attrs_solve how = {
        .lower = lower, .upper = !lower, .adjoint = sn_fn_flag(c, "adjoint")};
    c->out[0] = sn_build_solve(c->b, &how, x, sn_fn_value_as(c, 1, t.dtype), NULL);
}

/* --- factors of elimination ------------------------------------------------------------------- */
typedef struct {
    sn_value both;  /* the lower one without its diagonal of ones */
    sn_value order; /* which row of the matrix each row of theirs is */
    sn_value sign;  /* of the determinant */
    snug_type t;
} elimination;

static bool eliminated(sn_fn_call *c, elimination *e) {
    sn_value x, out[SN_MAX_OUT];
    if (!square_input(c, &x, &e->t))
        return false;
    sn_build_all(c->b, SN_OP_lu, NULL, &x, 1, out);
    e->both = out[0];
    e->order = out[1];
    e->sign = out[2];
    return !sn_fn_failed(c);
}

/* The magnitudes of the pivots, whose product is the determinant's. */
static sn_value pivots(sn_fn_call *c, const elimination *e) {
    const sn_value diagonal = sn_build_band(c->b, e->both, 0, 0);
    return sn_build_abs(c->b, sn_build_sum(c->b, diagonal, 1u << (e->t.rank - 1), false));
}

void sn_fn_determinant(sn_fn_call *c) {
    elimination e;
    if (!eliminated(c, &e))
        return;
    const uint32_t last = 1u << (e.t.rank - 2);
    c->out[0] =
        sn_build_mul(c->b, e.sign, sn_build_reduce(c->b, SN_OP_prod, pivots(c, &e), last, false));
}

void sn_fn_slogdet(sn_fn_call *c) {
    elimination e;
    if (!eliminated(c, &e))
        return;
    const uint32_t last = 1u << (e.t.rank - 2);
    c->out[0] = e.sign;
    c->out[1] = sn_build_sum(c->b, sn_build_log(c->b, pivots(c, &e)), last, false);
    c->n_out = 2;
}

void sn_fn_logdet(sn_fn_call *c) {
    sn_fn_slogdet(c);
    c->out[0] = c->out[1];
    c->n_out = 1;
}

/* A pivot of zero: there are no factors. */
void sn_fn_lu(sn_fn_call *c) {
    elimination e;
    if (!eliminated(c, &e))
        return;
    c->out[0] = checked(c, e.both, sn_build_reciprocal(c->b, sn_build_abs(c->b, e.sign)));
    c->out[1] = sn_build_cast(c->b, e.order, sn_fn_dtype(c, "output_idx_type", SNUG_I32));
    c->n_out = 2;
}

/* The factors of argument 0, and the matrix that orders rows as argument 1 says. */
typedef struct {
    sn_value both, order;
    snug_type t;
} factors;

static bool factors_of(sn_fn_call *c, factors *f) {
    if (!square_input(c, &f->both, &f->t))
        return false;
    const sn_one_hot spec = {
        .depth = f->t.dims[f->t.rank - 1], .dtype = f->t.dtype, .axis = -1, .on = 1};
    f->order = sn_build_one_hot(c->b, sn_fn_value(c, 1), &spec);
    return !sn_fn_failed(c);
}

static sn_value solved(sn_fn_call *c, const factors *f, sn_value rhs) {
    const sn_attrs_solve lower = {.lower = 1, .unit = 1}, upper = {.upper = 1};
    const sn_value ordered = sn_build_matmul_t(c->b, f->order, rhs, false, false);
    const sn_value y = sn_build_solve(c->b, &lower, f->both, ordered, NULL);
    return sn_build_solve(c->b, &upper, f->both, y, NULL);
}

void sn_fn_lu_solve(sn_fn_call *c) {
    factors f;
    if (factors_of(c, &f))
        c->out[0] = solved(c, &f, sn_fn_named_as(c, "rhs", f.t.dtype));
}

void sn_fn_lu_inverse(sn_fn_call *c) {
    factors f;
    if (factors_of(c, &f))
        c->out[0] = solved(c, &f, identity_like(c, &f.t));
}

void sn_fn_lu_reconstruct(sn_fn_call *c) {
    factors f;
    if (!factors_of(c, &f))
        return;
    const sn_value below = sn_build_band(c->b, f.both, INT32_MIN, -1),
                   lower = sn_build_add(c->b, below, identity_like(c, &f.t)),
                   upper = sn_build_band(c->b, f.both, 0, INT32_MAX);
    c->out[0] = sn_build_matmul_t(c->b, f.order,
                                  sn_build_matmul_t(c->b, lower, upper, false, false), true, false);
}

/* --- Cholesky --------------------------------------------------------------------------------- */
/* A matrix that is not positive is refused, as TensorFlow does. */
void sn_fn_cholesky(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    /* Both triangles count alike, also in the gradient. */
    x = sn_build_affine(c->b, sn_build_add(c->b, x, sn_build_swapaxes(c->b, x, -2, -1)), 0.5, 0);
    c->out[0] = sn_build_check_finite(c->b, sn_build(c->b, SN_OP_cholesky, NULL, &x, 1));
}

void sn_fn_cholesky_solve(sn_fn_call *c) {
    sn_attrs_solve how = {.lower = 1};
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const sn_value y = sn_build_solve(c->b, &how, x, sn_fn_value_as(c, 1, t.dtype), NULL);
    how.adjoint = 1;
    c->out[0] = sn_build_solve(c->b, &how, x, y, NULL);
}

/* --- least squares ---------------------------------------------------------------------------- */
/* l2 |x|^2 joins |a x - b|^2 as rows sqrt(l2) x = 0. */
static void regularise(sn_fn_call *c, double l2, sn_value *a, sn_value *b) {
    snug_type more = sn_fn_type(c, *a), zeros = sn_fn_type(c, *b);
    if (sn_fn_failed(c) || zeros.rank < 2)
        return sn_fn_refuse(c, SNUG_E_INVALID, "rhs has %d axes; it needs matrices", zeros.rank);
    more.dims[more.rank - 2] = zeros.dims[zeros.rank - 2] = more.dims[more.rank - 1];
    const sn_value rows[2] = {*a, sn_build_affine(c->b, identity_like(c, &more), sqrt(l2), 0)},
                   right[2] = {*b, sn_build_fill(c->b, &zeros, 0)};
    *a = sn_build_concat(c->b, rows, 2, -2);
    *b = sn_build_concat(c->b, right, 2, -2);
}

/* tf.linalg.lstsq: an l2_regularizer counts where `fast`. keras.ops.lstsq: a right side may be a
 * vector; singular values below rcond times the largest count as zero. */
void sn_fn_lstsq(sn_fn_call *c) {
    sn_value a, b;
    sn_fn_pair(c, 0, 1, &a, &b);
    snug_type t = sn_fn_type(c, a);
    const bool keras = sn_fn_place(c, "rcond") >= 0, vector = keras && sn_fn_type(c, b).rank == 1;
    if (sn_fn_failed(c) || t.rank < 2)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs matrices");
    const double l2 = keras ? 0 : sn_fn_real(c, "l2_regularizer");
    if (l2 < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "l2_regularizer is %g; it must not be negative", l2);
    b = vector ? sn_build_expand_dims(c->b, b, -1) : b;
    if (l2 > 0 && sn_fn_flag(c, "fast"))
        regularise(c, l2, &a, &b);
    const int64_t m = t.dims[t.rank - 2], n = t.dims[t.rank - 1];
    const double epsilon = t.dtype == SNUG_F64 ? DBL_EPSILON : FLT_EPSILON,
                 usual = epsilon * (double)(m > n ? m : n);
    const double cut = !keras || !sn_fn_given(c, "rcond") ? usual
                       : sn_fn_real(c, "rcond") < 0       ? epsilon
                                                          : sn_fn_real(c, "rcond");
    c->out[0] = sn_build_lstsq(c->b, a, b, cut);
    if (vector && !sn_fn_failed(c))
        c->out[0] = sn_build_squeeze(c->b, c->out[0], -1);
}

/* --- eigenvalues ------------------------------------------------------------------------------ */
typedef struct {
    sn_value values, vectors; /* the smallest first; as columns */
} spectrum;

static spectrum spectrum_of(sn_fn_call *c, sn_value x) {
    sn_value out[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_build_all(c->b, SN_OP_eigh, NULL, &x, 1, out);
    return (spectrum){out[0], out[1]};
}

void sn_fn_eigh(sn_fn_call *c) {
    const spectrum s = spectrum_of(c, sn_fn_float(c, 0));
    c->out[0] = s.values;
    c->out[1] = s.vectors;
    c->n_out = 2;
}

void sn_fn_eigvalsh(sn_fn_call *c) {
    c->out[0] = spectrum_of(c, sn_fn_float(c, 0)).values;
}

/* The series of the matrix over 2^8, squared eight times; in f64, as squaring takes digits. */
void sn_fn_expm(sn_fn_call *c) {
    sn_builder *const b = c->b;
    sn_value given;
    snug_type t;
    if (!square_input(c, &given, &t))
        return;
    const sn_value x = sn_build_affine(b, sn_build_cast(b, given, SNUG_F64), 1.0 / 256, 0);
    const snug_type wide = sn_fn_type(c, x);
    sn_value total = sn_build_add(b, identity_like(c, &wide), x), term = x;
    for (int k = 2; k <= 10; k++) {
        term = sn_build_affine(b, sn_build_matmul_t(b, term, x, false, false), 1.0 / k, 0);
        total = sn_build_add(b, total, term);
    }
    for (int k = 0; k < 8; k++)
        total = sn_build_matmul_t(b, total, total, false, false);
    c->out[0] = sn_build_cast(b, total, t.dtype);
}

/* --- columns at right angles ------------------------------------------------------------------ */
void sn_fn_qr(sn_fn_call *c) {
    sn_value out[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE};
    const sn_value x = sn_fn_float(c, 0);
    sn_attrs a;
    sn_attrs_default(SN_OP_qr, &a);
    a.qr.whole = sn_fn_place(c, "mode") >= 0 ? strcmp(sn_fn_text(c, "mode"), "complete") == 0
                                             : sn_fn_flag(c, "full_matrices");
    sn_build_all(c->b, SN_OP_qr, &a, &x, 1, out);
    c->out[0] = out[0];
    c->out[1] = out[1];
    c->n_out = 2;
}

/* --- singular values -------------------------------------------------------------------------- */
static void decompose(sn_fn_call *c, sn_value x, bool vectors, bool whole, sn_value *out) {
    sn_attrs a;
    sn_attrs_default(SN_OP_svd, &a);
    a.svd.vectors = vectors;
    a.svd.whole = vectors && whole;
    sn_build_all(c->b, SN_OP_svd, &a, &x, 1, out);
}

sn_value sn_fn_singular_values(sn_fn_call *c, sn_value x) {
    sn_value out[SN_MAX_OUT] = {SN_NO_VALUE};
    decompose(c, x, false, false, out);
    return out[0];
}

/* s, u, v of TensorFlow; u, s, v' of Keras. */
void sn_fn_svd(sn_fn_call *c) {
    sn_value out[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    const bool vectors = sn_fn_flag(c, "compute_uv"), keras = sn_fn_place(c, "x") >= 0;
    decompose(c, sn_fn_float(c, 0), vectors, sn_fn_flag(c, "full_matrices"), out);
    c->out[0] = out[0];
    c->n_out = vectors ? 3 : 1;
    if (!vectors)
        return;
    c->out[0] = keras ? out[1] : out[0];
    c->out[1] = keras ? out[0] : out[1];
    c->out[2] = keras ? out[2] : sn_build_swapaxes(c->b, out[2], -2, -1);
}
