/* functions_solve.c: linear equations, inverses, determinants and Cholesky factors of small
 * matrices [..., n, n] as compositions of rows: elimination with row exchange, one column after the
 * other. Gradients come from the rows. Meant for matrices of up to a hundred rows: each column is a
 * few nodes that touch the whole matrix. Eigenvalues, singular values, orthogonal factors and least
 * squares have rows of their own. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "function/function_call.h"

#define MAX_ROWS 128

/* --- small parts ------------------------------------------------------------------------------ */
/* The matrices of argument 0; false after refusing. */
static bool square_input(sn_fn_call *c, sn_value *x, snug_type *t) {
    *x = sn_fn_float(c, 0);
    *t = sn_fn_type(c, *x);
    const int r = t->rank;
    if (!sn_fn_failed(c) && (r < 2 || t->dims[r - 1] != t->dims[r - 2]))
        sn_fn_refuse(c, SNUG_E_INVALID, "it needs square matrices");
    if (!sn_fn_failed(c) && t->dims[r - 1] > MAX_ROWS)
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "matrices of %lld rows; up to %d are possible",
                     (long long)t->dims[r - 1], MAX_ROWS);
    return !sn_fn_failed(c);
}

/* Column k of matrices, as [..., rows, 1]; row k as [..., 1, columns]. */
static sn_value column(sn_fn_call *c, sn_value m, int64_t k) {
    return sn_build_part(c->b, m, -1, k, 1);
}
static sn_value row_of(sn_fn_call *c, sn_value m, int64_t k) {
    return sn_build_part(c->b, m, -2, k, 1);
}

/* The unit vector k of length n, as a column. */
static sn_value unit(sn_fn_call *c, snug_dtype dtype, int64_t n, int64_t k) {
    const sn_one_hot spec = {.depth = n, .dtype = dtype, .axis = -1, .on = 1};
    const sn_value at = sn_build_scalar(c->b, SNUG_I32, (double)k);
    return sn_build_expand_dims(c->b, sn_build_one_hot(c->b, at, &spec), -1);
}

static sn_value identity_like(sn_fn_call *c, const snug_type *t) {
    return sn_build_band(c->b, sn_build_fill(c->b, t, 1), 0, 0);
}

/* --- elimination ------------------------------------------------------------------------------ */
typedef struct {
    sn_value m; /* the matrix, and behind it the right sides: in the end the unit and the answer */
    int64_t n;  /* rows */
    sn_value sign;    /* of the row exchanges, [..., 1, 1] */
    sn_value log;     /* the sum of the logarithms of the pivots' magnitudes; or SN_NO_VALUE */
    sn_value product; /* of the pivots; or SN_NO_VALUE */
} elimination;

static sn_value times(sn_fn_call *c, sn_value product, sn_value factor) {
    return sn_value_ok(product) ? sn_build_mul(c->b, product, factor) : factor;
}

/* Brings column k to the unit vector: its largest entry from row k on becomes the pivot. */
static void eliminate(sn_fn_call *c, elimination *e, int64_t k) {
    const snug_type t = sn_fn_type(c, e->m);
    const int r = t.rank;
    if (sn_fn_failed(c))
        return;
    const sn_value below =
        sn_build_part(c->b, sn_build_abs(c->b, column(c, e->m, k)), r - 2, k, e->n - k);
    const sn_value found = sn_build_argmax(c->b, below, r - 2, SNUG_I32); /* [..., 1] */
    const sn_value p = sn_fn_affine(c, found, 1, (double)k);
    const sn_one_hot spec = {.depth = e->n, .dtype = t.dtype, .axis = -1, .on = 1};
    const sn_value hot = sn_build_swapaxes(c->b, sn_build_one_hot(c->b, p, &spec), -2, -1);
    const sn_value here = unit(c, t.dtype, e->n, k), old = row_of(c, e->m, k);
    const sn_value chosen =
        sn_build_sum(c->b, sn_build_mul(c->b, hot, e->m), 1u << (r - 2), true); /* [..., 1, m] */
    const sn_value apart = sn_build_sub(c->b, old, chosen);
    const sn_value swapped =
        sn_build_add(c->b, e->m, sn_build_mul(c->b, sn_build_sub(c->b, hot, here), apart));
    const sn_value pivot = column(c, chosen, k); /* [..., 1, 1] */
    const sn_value line = sn_build_div(c->b, chosen, pivot);
    const sn_value by = sn_build_sub(c->b, column(c, swapped, k), here);
    e->m = sn_build_sub(c->b, swapped, sn_build_mul(c->b, by, line));
    const sn_value same = sn_build_equal(c->b, found, sn_fn_like(c, found, 0));
    const sn_value turn = sn_build_affine(c->b, sn_build_cast(c->b, same, t.dtype), 2, -1);
    e->sign =
        times(c, e->sign,
              sn_build_mul(c->b, sn_build_expand_dims(c->b, turn, -1), sn_build_sign(c->b, pivot)));
    e->product = times(c, e->product, sn_build_abs(c->b, pivot));
    const sn_value size = sn_build_log(c->b, sn_build_abs(c->b, pivot));
    e->log = sn_value_ok(e->log) ? sn_build_add(c->b, e->log, size) : size;
}

static elimination eliminated(sn_fn_call *c, sn_value m, int64_t n) {
    elimination e = {m, n, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    for (int64_t k = 0; k < n && !sn_fn_failed(c); k++)
        eliminate(c, &e, k);
    return e;
}

/* The same, and an error where a pivot was zero: then its logarithm, or their sum, is infinite (or
 * none at all, of a pivot that had to be positive). */
static sn_value checked(sn_fn_call *c, sn_value answer, sn_value log) {
    if (!sn_value_ok(log))
        return answer;
    const sn_value finite = sn_build_check_finite(c->b, sn_build_stop_gradient(c->b, log));
    return sn_build_mul(c->b, answer, sn_build_affine(c->b, finite, 0, 1));
}

/* The x of a x = b; checks: there is one. */
static sn_value solution(sn_fn_call *c, sn_value a, sn_value b, bool checks) {
    snug_type ta = sn_fn_type(c, a), tb = sn_fn_type(c, b);
    const int r = ta.rank;
    if (!sn_fn_failed(c) && (tb.rank != r || tb.dims[r - 2] != ta.dims[r - 2]))
        sn_fn_refuse(c, SNUG_E_SHAPE, "the right side does not have the rows of the matrix");
    if (sn_fn_failed(c))
        return SN_NO_VALUE;
    const sn_value both[2] = {a, b};
    const elimination e = eliminated(c, sn_build_concat(c->b, both, 2, -1), ta.dims[r - 1]);
    const sn_value answer = sn_build_part(c->b, e.m, -1, ta.dims[r - 1], tb.dims[r - 1]);
    return checks ? checked(c, answer, e.log) : answer;
}

void sn_fn_inverse(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    if (sn_fn_flag(c, "adjoint"))
        x = sn_build_swapaxes(c->b, x, -2, -1);
    c->out[0] = solution(c, x, identity_like(c, &t), true);
}

/* A right side that is a vector is a column. */
void sn_fn_solve(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    sn_value y = sn_fn_value_as(c, 1, t.dtype);
    const bool vector = sn_fn_type(c, y).rank == t.rank - 1;
    if (sn_fn_flag(c, "adjoint"))
        x = sn_build_swapaxes(c->b, x, -2, -1);
    y = vector ? sn_build_expand_dims(c->b, y, -1) : y;
    const sn_value z = solution(c, x, y, true);
    c->out[0] = vector ? sn_build_squeeze(c->b, z, -1) : z;
}

void sn_fn_triangular_solve(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const bool lower = sn_fn_flag(c, "lower");
    const sn_value y = sn_fn_value_as(c, 1, t.dtype);
    x = sn_build_band(c->b, x, lower ? INT32_MIN : 0, lower ? 0 : INT32_MAX);
    if (sn_fn_flag(c, "adjoint"))
        x = sn_build_swapaxes(c->b, x, -2, -1);
    c->out[0] = solution(c, x, y, false);
}

/* [..., 1, 1] without the two. */
static sn_value number_each(sn_fn_call *c, sn_value v) {
    return sn_build_squeeze(c->b, sn_build_squeeze(c->b, v, -1), -1);
}

void sn_fn_determinant(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const elimination e = eliminated(c, x, t.dims[t.rank - 1]);
    c->out[0] = number_each(c, sn_build_mul(c->b, e.sign, e.product));
}

void sn_fn_slogdet(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const elimination e = eliminated(c, x, t.dims[t.rank - 1]);
    c->out[0] = number_each(c, e.sign);
    c->out[1] = number_each(c, e.log);
    c->n_out = 2;
}

void sn_fn_logdet(sn_fn_call *c) {
    sn_fn_slogdet(c);
    c->out[0] = c->out[1];
    c->n_out = 1;
}

/* --- factors of elimination ------------------------------------------------------------------- */
/* A column (axis -2) or row (axis -1) that is 1 from place k on, n - k - behind of them, else 0. */
static sn_value ones_from(sn_fn_call *c, const snug_type *t, int axis, int64_t k, int64_t behind) {
    const int64_t n = t->dims[t->rank - 1], some = n - k;
    const int64_t before[2] = {axis == -2 ? k : 0, axis == -1 ? k : 0},
                  after[2] = {0, axis == -1 ? behind : 0};
    const snug_type ones = {t->dtype, 2, {axis == -2 ? some : 1, axis == -1 ? some : 1}};
    return sn_build_pad(c->b, sn_build_fill(c->b, &ones, 1), before, after, 0);
}

/* Column k of m [..., n, n + 1] below its diagonal: the factors by which the pivot's row was taken
 * off the others. The last column moves with the rows: which row each was. */
static sn_value factored(sn_fn_call *c, sn_value m, const snug_type *t, int64_t k) {
    sn_builder *const b = c->b;
    const int64_t n = t->dims[t->rank - 1];
    const int r = t->rank;
    const sn_value size = sn_build_abs(b, column(c, m, k)),
                   found = sn_build_argmax(b, sn_build_part(b, size, r - 2, k, n - k), r - 2,
                                           SNUG_I32); /* [..., 1] */
    const sn_one_hot spec = {.depth = n, .dtype = t->dtype, .axis = -1, .on = 1};
    const sn_value hot = sn_build_swapaxes(
        b, sn_build_one_hot(b, sn_fn_affine(c, found, 1, (double)k), &spec), -2, -1);
    const sn_value old = row_of(c, m, k),
                   chosen = sn_build_sum(b, sn_build_mul(b, hot, m), 1u << (r - 2), true);
    const sn_value apart = sn_build_sub(b, old, chosen),
                   moves = sn_build_sub(b, hot, unit(c, t->dtype, n, k));
    m = sn_build_add(b, m, sn_build_mul(b, moves, apart));
    const sn_value below = sn_build_mul(b, column(c, m, k), ones_from(c, t, -2, k + 1, 0));
    const sn_value by = sn_build_div(b, below, column(c, chosen, k));
    const sn_value right = sn_build_mul(b, chosen, ones_from(c, t, -1, k + 1, 1));
    const sn_value here = sn_build_swapaxes(b, unit(c, t->dtype, n + 1, k), -2, -1);
    m = sn_build_sub(b, m, sn_build_mul(b, by, right));
    return sn_build_sub(b, m, sn_build_mul(b, sn_build_sub(b, below, by), here));
}

/* Both factors in one matrix, the lower one without its diagonal of ones; and which row of the
 * given matrix each row of theirs is. */
void sn_fn_lu(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const int64_t n = t.dims[t.rank - 1];
    snug_type tall = t;
    tall.dims[t.rank - 1] = 1;
    const sn_value places =
        sn_build_scan(c->b, SN_OP_cumsum, sn_build_fill(c->b, &tall, 1), t.rank - 2, true, false);
    const sn_value both[2] = {x, places};
    sn_value m = sn_build_concat(c->b, both, 2, -1);
    for (int64_t k = 0; k + 1 < n && !sn_fn_failed(c); k++)
        m = factored(c, m, &t, k);
    m = sn_build_check_finite(c->b, m); /* a pivot of zero: there are no factors */
    const sn_value last = n ? column(c, row_of(c, m, n - 1), n - 1) : SN_NO_VALUE;
    c->out[0] = checked(c, sn_build_part(c->b, m, -1, 0, n),
                        n ? sn_build_log(c->b, sn_build_abs(c->b, last)) : SN_NO_VALUE);
    c->out[1] = sn_build_cast(c->b, sn_build_squeeze(c->b, sn_build_part(c->b, m, -1, n, 1), -1),
                              sn_fn_dtype(c, "output_idx_type", SNUG_I32));
    c->n_out = 2;
}

/* The factors of argument 0, and the matrix that orders rows as argument 1 says. */
typedef struct {
    sn_value lower, upper, order;
    snug_type t;
} factors;

static bool factors_of(sn_fn_call *c, factors *f) {
    sn_value both;
    if (!square_input(c, &both, &f->t))
        return false;
    const sn_one_hot spec = {
        .depth = f->t.dims[f->t.rank - 1], .dtype = f->t.dtype, .axis = -1, .on = 1};
    f->order = sn_build_one_hot(c->b, sn_fn_value(c, 1), &spec);
    f->lower =
        sn_build_add(c->b, sn_build_band(c->b, both, INT32_MIN, -1), identity_like(c, &f->t));
    f->upper = sn_build_band(c->b, both, 0, INT32_MAX);
    return !sn_fn_failed(c);
}

static sn_value solved(sn_fn_call *c, const factors *f, sn_value rhs) {
    const sn_value y = sn_build_matmul_t(c->b, f->order, rhs, false, false);
    return solution(c, f->upper, solution(c, f->lower, y, false), false);
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
    if (factors_of(c, &f))
        c->out[0] = sn_build_matmul_t(
            c->b, f.order, sn_build_matmul_t(c->b, f.lower, f.upper, false, false), true, false);
}

/* --- Cholesky --------------------------------------------------------------------------------- */
/* Column k of the factor is that of what is left, over the root of its pivot; then the product of
 * the column with itself is taken off. A matrix that is not positive is refused, as TensorFlow
 * does. */
void sn_fn_cholesky(sn_fn_call *c) {
    sn_value x, columns[MAX_ROWS];
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const int64_t n = t.dims[t.rank - 1];
    c->out[0] = x;
    if (n == 0)
        return;
    /* Both triangles count alike, also in the gradient. */
    x = sn_build_affine(c->b, sn_build_add(c->b, x, sn_build_swapaxes(c->b, x, -2, -1)), 0.5, 0);
    sn_value log = SN_NO_VALUE; /* of the pivots: finite where all of them are positive */
    for (int64_t k = 0; k < n && !sn_fn_failed(c); k++) {
        const sn_value pivot = row_of(c, column(c, x, k), k);
        const sn_value one = sn_build_log(c->b, pivot);
        log = k ? sn_build_add(c->b, log, one) : one;
        const sn_value whole = sn_build_div(c->b, column(c, x, k), sn_build_sqrt(c->b, pivot));
        columns[k] = whole;
        x = sn_build_sub(c->b, x,
                         sn_build_mul(c->b, whole, sn_build_swapaxes(c->b, whole, -2, -1)));
    }
    sn_value factor = SN_NO_VALUE;
    for (int64_t k = 0; k < n && !sn_fn_failed(c); k += SN_MAX_IN - 1) {
        sn_value some[SN_MAX_IN];
        int m = 0;
        if (k)
            some[m++] = factor;
        for (int64_t i = k; i < n && i < k + SN_MAX_IN - 1; i++)
            some[m++] = columns[i];
        factor = sn_build_concat(c->b, some, m, -1);
    }
    c->out[0] = checked(c, sn_build_band(c->b, factor, INT32_MIN, 0), log);
}

/* --- with factors ----------------------------------------------------------------------------- */
void sn_fn_cholesky_solve(sn_fn_call *c) {
    sn_value x;
    snug_type t;
    if (!square_input(c, &x, &t))
        return;
    const sn_value lower = sn_build_band(c->b, x, INT32_MIN, 0),
                   y = solution(c, lower, sn_fn_value_as(c, 1, t.dtype), false);
    c->out[0] = solution(c, sn_build_swapaxes(c->b, lower, -2, -1), y, false);
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
