/* functions_more.c: functions that are met less often: reductions that pass over NaN, segments'
 * extremes, sequences turned around, and keras.ops after NumPy. Compositions all of them. */
#include "function/function_call.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- over what is a number -------------------------------------------------------------------- */
/* x with `otherwise` in place of NaN. */
static sn_value without_nan(sn_fn_call *c, sn_value x, double otherwise) {
    if (!sn_dtype_is_float(sn_fn_type(c, x).dtype))
        return x;
    return sn_build_select(c->b, sn_build_isnan(c->b, x), sn_fn_like(c, x, otherwise), x);
}

static sn_value reduced(sn_fn_call *c, sn_op op, sn_value x, bool keepdims) {
    const int rank = sn_fn_type(c, x).rank;
    const uint32_t axes = sn_fn_axes(c, "axis", rank);
    const bool any = rank > 0 && !sn_fn_no_axes(c, "axis") && !sn_fn_failed(c);
    return any ? sn_build_reduce(c->b, op, x, axes, keepdims) : x;
}

void sn_fn_nansum(sn_fn_call *c) {
    c->out[0] =
        reduced(c, SN_OP_sum, without_nan(c, sn_fn_value(c, 0), 0), sn_fn_flag(c, "keepdims"));
}

void sn_fn_nanprod(sn_fn_call *c) {
    c->out[0] =
        reduced(c, SN_OP_prod, without_nan(c, sn_fn_value(c, 0), 1), sn_fn_flag(c, "keepdims"));
}

void sn_fn_nanmax(sn_fn_call *c) {
    c->out[0] = reduced(c, SN_OP_max, without_nan(c, sn_fn_value(c, 0), (double)-INFINITY),
                        sn_fn_flag(c, "keepdims"));
}

void sn_fn_nanmin(sn_fn_call *c) {
    c->out[0] = reduced(c, SN_OP_min, without_nan(c, sn_fn_value(c, 0), (double)INFINITY),
                        sn_fn_flag(c, "keepdims"));
}

/* The mean of x where `there` (1 or 0) is 1. */
static sn_value mean_of(sn_fn_call *c, sn_value x, sn_value there, bool keepdims) {
    return sn_build_div(c->b, reduced(c, SN_OP_sum, x, keepdims),
                        reduced(c, SN_OP_sum, there, keepdims));
}

static sn_value is_there(sn_fn_call *c, sn_value x) {
    return sn_build_cast(c->b, sn_build_logical_not(c->b, sn_build_isnan(c->b, x)),
                         sn_fn_type(c, x).dtype);
}

void sn_fn_nanmean(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    c->out[0] = mean_of(c, without_nan(c, x, 0), is_there(c, x), sn_fn_flag(c, "keepdims"));
}

static sn_value nan_variance(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0), there = is_there(c, x), known = without_nan(c, x, 0);
    const sn_value off = sn_build_sub(c->b, known, mean_of(c, known, there, true));
    return mean_of(c, sn_build_mul(c->b, sn_build_square(c->b, off), there), there,
                   sn_fn_flag(c, "keepdims"));
}

void sn_fn_nanvar(sn_fn_call *c) {
    c->out[0] = nan_variance(c);
}

void sn_fn_nanstd(sn_fn_call *c) {
    c->out[0] = sn_build_sqrt(c->b, nan_variance(c));
}

/* --- means and distances ---------------------------------------------------------------------- */
void sn_fn_average(sn_fn_call *c) {
    sn_value x = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, x);
    sn_value w = sn_fn_named_as(c, "weights", t.dtype);
    if (!sn_value_ok(w)) {
        c->out[0] = t.rank ? sn_build_mean(c->b, x, sn_fn_axes(c, "axis", t.rank), false) : x;
        return;
    }
    if (sn_fn_type(c, w).rank == 1 && t.rank > 1) {
        int64_t dims[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        dims[sn_fn_axis(c, "axis", t.rank, -1)] = -1;
        w = sn_build_reshape(c->b, w, dims, t.rank);
    }
    const sn_value wide = sn_build_broadcast_to(c->b, w, &t);
    c->out[0] = mean_of(c, sn_build_mul(c->b, x, wide), wide, false);
}

void sn_fn_ptp(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const bool keepdims = sn_fn_flag(c, "keepdims");
    c->out[0] =
        sn_build_sub(c->b, reduced(c, SN_OP_max, x, keepdims), reduced(c, SN_OP_min, x, keepdims));
}

/* The sum of the products, of all elements in their order. */
void sn_fn_vdot(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const sn_value z = sn_build_mul(c->b, sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1),
                                    sn_build_reshape(c->b, y, (const int64_t[]){-1}, 1));
    c->out[0] = sn_build_sum(c->b, z, 0, false);
}

void sn_fn_trapezoid(sn_fn_call *c) {
    const sn_value y = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, y);
    const int axis = sn_fn_axis(c, "axis", t.rank, -1);
    if (sn_fn_failed(c) || sn_fn_given(c, "x"))
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "places of the samples; give dx");
    const int64_t n = t.dims[axis] - 1;
    const sn_value sum =
        sn_build_add(c->b, sn_build_part(c->b, y, axis, 1, n), sn_build_part(c->b, y, axis, 0, n));
    c->out[0] = sn_build_affine(c->b, sn_build_sum(c->b, sum, 1u << axis, false),
                                sn_fn_real(c, "dx") / 2, 0);
}

/* --- element by element ----------------------------------------------------------------------- */
void sn_fn_cbrt(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0), size = sn_build_abs(c->b, x);
    c->out[0] = sn_build_mul(c->b, sn_build_sign(c->b, x),
                             sn_build_value_op(c->b, SN_OP_power, &size, 1, 1.0 / 3));
}

void sn_fn_heaviside(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const sn_value zero = sn_fn_like(c, x, 0);
    c->out[0] = sn_build_select(
        c->b, sn_build_equal(c->b, x, zero), y,
        sn_build_cast(c->b, sn_build_greater(c->b, x, zero), sn_fn_type(c, x).dtype));
}

void sn_fn_reciprocal_no_nan(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0), zero = sn_fn_like(c, x, 0),
                   none = sn_build_equal(c->b, x, zero);
    const sn_value safe = sn_build_select(c->b, none, sn_fn_like(c, x, 1), x);
    c->out[0] = sn_build_select(c->b, none, zero, sn_build_reciprocal(c->b, safe));
}

/* What normal numbers are below with this probability. */
void sn_fn_ndtri(sn_fn_call *c) {
    const sn_value x = sn_build_affine(c->b, sn_fn_value(c, 0), 2, -1);
    c->out[0] = sn_build_affine(c->b, sn_build_erfinv(c->b, x), sqrt(2), 0);
}

void sn_fn_logaddexp2(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const sn_value apart = sn_build_abs(c->b, sn_build_sub(c->b, x, y)),
                   more = sn_build_softplus(c->b, sn_build_affine(c->b, apart, -log(2), 0));
    c->out[0] = sn_build_add(c->b, sn_build_maximum(c->b, x, y),
                             sn_build_affine(c->b, more, 1 / log(2), 0));
}

static void infinite(sn_fn_call *c, double sign) {
    const sn_value x = sn_fn_float(c, 0), zero = sn_fn_like(c, x, 0);
    const sn_value side = sign > 0 ? sn_build_greater(c->b, x, zero) : sn_build_less(c->b, x, zero);
    c->out[0] = sn_build_logical_and(c->b, sn_build_isinf(c->b, x), side);
}

void sn_fn_isposinf(sn_fn_call *c) {
    infinite(c, 1);
}

void sn_fn_isneginf(sn_fn_call *c) {
    infinite(c, -1);
}

/* Whether any of a list is equal to it. */
void sn_fn_isin(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const sn_value row = sn_build_reshape(c->b, y, (const int64_t[]){-1}, 1),
                   same = sn_build_equal(c->b, sn_build_expand_dims(c->b, x, -1), row);
    const int last = sn_fn_type(c, same).rank - 1;
    c->out[0] = sn_fn_failed(c) ? SN_NO_VALUE : sn_build_any_true(c->b, same, 1u << last, false);
    if (sn_fn_flag(c, "invert"))
        c->out[0] = sn_build_logical_not(c->b, c->out[0]);
}

/* --- moving ----------------------------------------------------------------------------------- */
/* k quarter turns from axis one to axis other. */
static void turn(sn_fn_call *c, int one, int other) {
    const sn_value x = sn_fn_value(c, 0);
    const int64_t k = ((sn_fn_int(c, "k") % 4) + 4) % 4;
    const int rank = sn_fn_type(c, x).rank;
    if (sn_fn_failed(c))
        return;
    if (one < 0 || other < 0 || one >= rank || other >= rank || one == other)
        return sn_fn_refuse(c, SNUG_E_INVALID,
                            "axes %d and %d are no plane of a tensor with %d axes", one, other,
                            rank);
    if (k == 0)
        c->out[0] = x;
    else if (k == 2)
        c->out[0] = sn_build_flip(c->b, x, 1u << one | 1u << other);
    else if (k == 1)
        c->out[0] = sn_build_flip(c->b, sn_build_swapaxes(c->b, x, one, other), 1u << one);
    else
        c->out[0] = sn_build_flip(c->b, sn_build_swapaxes(c->b, x, one, other), 1u << other);
}

void sn_fn_rot90(sn_fn_call *c) {
    const int rank = sn_fn_type(c, sn_fn_value(c, 0)).rank;
    int n;
    const int64_t *axes = sn_fn_ints(c, "axes", &n);
    if (n != 0 && n != 2)
        return sn_fn_refuse(c, SNUG_E_INVALID, "two axes make a plane");
    if (n && (axes[0] != (int)axes[0] || axes[1] != (int)axes[1]))
        return sn_fn_refuse(c, SNUG_E_INVALID, "a tensor has at most %d axes", SNUG_MAX_RANK);
    const int one = (int)(n ? axes[0] : 0), other = (int)(n ? axes[1] : 1);
    turn(c, one < 0 ? one + rank : one, other < 0 ? other + rank : other);
}

/* Pictures turn against the clock; one alone has no batch. */
void sn_fn_rot90_image(sn_fn_call *c) {
    const int rank = sn_fn_type(c, sn_fn_value(c, 0)).rank;
    if (!sn_fn_failed(c) && rank != 3 && rank != 4)
        return sn_fn_refuse(c, SNUG_E_INVALID, "a picture has 3 axes, several have 4; here are %d",
                            rank);
    turn(c, rank - 3, rank - 2);
}

static void flip_axis(sn_fn_call *c, int axis) {
    c->out[0] = sn_build_flip(c->b, sn_fn_value(c, 0), 1u << axis);
}

void sn_fn_flipud(sn_fn_call *c) {
    flip_axis(c, 0);
}

void sn_fn_fliplr(sn_fn_call *c) {
    flip_axis(c, 1);
}

/* Both in a row, or joined along an axis. */
void sn_fn_append(sn_fn_call *c) {
    sn_value x[2];
    sn_fn_pair(c, 0, 1, &x[0], &x[1]);
    const bool flat = !sn_fn_given(c, "axis");
    for (int i = 0; flat && i < 2; i++)
        x[i] = sn_build_reshape(c->b, x[i], (const int64_t[]){-1}, 1);
    c->out[0] = sn_build_concat(c->b, x, 2, flat ? 0 : (int)sn_fn_int(c, "axis"));
}

/* The tensor with a part replaced. */
void sn_fn_slice_update(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const sn_value y = sn_fn_named_as(c, "updates", t.dtype);
    const snug_type part = sn_fn_type(c, y);
    snug_type from;
    int64_t before[SNUG_MAX_RANK], after[SNUG_MAX_RANK];
    if (!sn_fn_shape(c, "start_indices", &from))
        return;
    if (from.rank != t.rank || part.rank != t.rank)
        return sn_fn_refuse(c, SNUG_E_SHAPE, "updates and their start need %d axes", t.rank);
    for (int k = 0; k < t.rank; k++) {
        before[k] = from.dims[k];
        after[k] = t.dims[k] - from.dims[k] - part.dims[k];
    }
    snug_type ones = part;
    ones.dtype = SNUG_I32;
    const sn_value mask = sn_build_pad(c->b, sn_build_fill(c->b, &ones, 1), before, after, 0);
    c->out[0] = sn_build_select(c->b, sn_build_cast(c->b, mask, SNUG_BOOL),
                                sn_build_pad(c->b, y, before, after, 0), x);
}

/* Each row in the opposite order up to its length. */
void sn_fn_reverse_sequence(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const sn_value lengths = sn_build_cast(c->b, sn_fn_value(c, 1), SNUG_I32);
    const int axis = sn_fn_axis(c, "seq_axis", t.rank, 1),
              batch = sn_fn_axis(c, "batch_axis", t.rank, 0);
    if (sn_fn_failed(c) || batch != 0 || axis != 1)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                            "sequences along axis %d of batches along axis %d", axis, batch);
    const sn_value at = sn_build_scan(
        c->b, SN_OP_cumsum, sn_build_fill(c->b, &(snug_type){SNUG_I32, 1, {t.dims[1]}}, 1), 0, true,
        false);
    const sn_value n = sn_build_expand_dims(c->b, lengths, -1),
                   back = sn_build_sub(c->b, sn_fn_affine(c, n, 1, -1), at);
    const sn_value which = sn_build_select(c->b, sn_build_less(c->b, at, n), back, at);
    c->out[0] = sn_build_gather_nd(c->b, x, sn_build_expand_dims(c->b, which, -1), 1);
}

/* --- segments --------------------------------------------------------------------------------- */
/* The extreme of the rows of each segment: `none` changes no extreme, and `empty` is that of no
 * rows. */
static void extreme_of(sn_fn_call *c, sn_op op, double none, double empty) {
    const sn_value x = sn_fn_value(c, 0), at = sn_fn_value(c, 1);
    const snug_type t = sn_fn_type(c, x);
    const int64_t n =
        sn_fn_given(c, "num_segments") ? sn_fn_int(c, "num_segments") : c->largest + 1;
    if (n < 1 || t.rank < 1 || t.rank == SNUG_MAX_RANK || sn_fn_type(c, at).rank != 1)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                            "needs num_segments, and a segment for each row");
    const sn_value each = sn_build_scan(
        c->b, SN_OP_cumsum, sn_build_fill(c->b, &(snug_type){sn_fn_type(c, at).dtype, 1, {n}}, 1),
        0, true, false);
    int64_t column[SNUG_MAX_RANK] = {n, 1, 1, 1, 1, 1, 1, 1},
            row[SNUG_MAX_RANK] = {1, t.dims[0], 1, 1, 1, 1, 1, 1};
    const sn_value is = sn_build_equal(c->b, sn_build_reshape(c->b, each, column, t.rank + 1),
                                       sn_build_reshape(c->b, at, row, t.rank + 1));
    const sn_value all =
        sn_build_select(c->b, is, sn_build_expand_dims(c->b, x, 0), sn_fn_like(c, x, none));
    const sn_value made = sn_build_reduce(c->b, op, all, 1u << 1, false);
    if (none == empty) {
        c->out[0] = made;
        return;
    }
    const sn_value rows =
        sn_build_reduce(c->b, SN_OP_sum, sn_build_cast(c->b, is, SNUG_I32), 1u << 1, false);
    c->out[0] = sn_build_select(c->b, sn_build_less(c->b, sn_fn_like(c, rows, 0), rows), made,
                                sn_fn_like(c, made, empty));
}

static double lowest(sn_fn_call *c) {
    const snug_dtype dtype = sn_fn_operand_dtype(c, &c->arg[0]);
    return dtype == SNUG_F32   ? (double)-FLT_MAX
           : dtype == SNUG_F64 ? -DBL_MAX
           : dtype == SNUG_I64 ? -9.2233720368547758e18
                               : (double)INT32_MIN;
}

/* Largest (`sign` 1) or smallest (-1). Of an empty segment the lowest number, or its opposite;
 * where segments are sorted, 0. */
static void largest_of(sn_fn_call *c, sn_op op, int sign, bool sorted) {
    if (!c->n_args || !sn_fn_is_operand(&c->arg[0]))
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs a tensor");
    const double none = sign * lowest(c);
    extreme_of(c, op, none, sorted ? 0 : none);
}

void sn_fn_segment_max(sn_fn_call *c) {
    largest_of(c, SN_OP_max, 1, false);
}

void sn_fn_segment_min(sn_fn_call *c) {
    largest_of(c, SN_OP_min, -1, false);
}

void sn_fn_sorted_segment_max(sn_fn_call *c) {
    largest_of(c, SN_OP_max, 1, true);
}

void sn_fn_sorted_segment_min(sn_fn_call *c) {
    largest_of(c, SN_OP_min, -1, true);
}

void sn_fn_segment_prod(sn_fn_call *c) {
    extreme_of(c, SN_OP_prod, 1, 1);
}

/* --- matrices --------------------------------------------------------------------------------- */
/* Of a vector the matrix with it on the diagonal k, of a matrix the diagonal k. */
void sn_fn_diag_either(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int64_t k = sn_fn_int(c, "k");
    if (k > INT32_MAX || k < -INT32_MAX)
        return sn_fn_refuse(c, SNUG_E_INVALID, "there is no diagonal %lld", (long long)k);
    const int64_t far = k < 0 ? -k : k;
    if (t.rank == 1) {
        const int64_t n = t.dims[0] + far, before[1] = {k > 0 ? k : 0}, after[1] = {k < 0 ? -k : 0};
        const sn_value row = sn_build_pad(c->b, x, before, after, 0);
        const snug_type wide = {t.dtype, 2, {n, n}};
        c->out[0] = sn_build_band(c->b, sn_build_broadcast_to(c->b, row, &wide), k, k);
        return;
    }
    if (t.rank != 2)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs a vector or a matrix");
    const int64_t top = k < 0 ? -k : 0, left = k > 0 ? k : 0,
                  n = t.dims[0] - top < t.dims[1] - left ? t.dims[0] - top : t.dims[1] - left;
    const sn_value sum = sn_build_sum(c->b, sn_build_band(c->b, x, k, k), 1u << 1, false);
    c->out[0] = sn_build_part(c->b, sum, 0, n > 0 ? top : 0, n > 0 ? n : 0);
}

void sn_fn_kron(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const snug_type tx = sn_fn_type(c, x), ty = sn_fn_type(c, y);
    if (tx.rank != 2 || ty.rank != 2)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "it needs two matrices");
    const int64_t a[4] = {tx.dims[0], 1, tx.dims[1], 1}, b[4] = {1, ty.dims[0], 1, ty.dims[1]},
                  out[2] = {tx.dims[0] * ty.dims[0], -1};
    c->out[0] = sn_build_reshape(
        c->b, sn_build_mul(c->b, sn_build_reshape(c->b, x, a, 4), sn_build_reshape(c->b, y, b, 4)),
        out, 2);
}

/* A mask or bias with the four axes of the scores. */
static sn_value of_scores(sn_fn_call *c, sn_value x) {
    while (sn_value_ok(x) && !sn_fn_failed(c) && sn_fn_type(c, x).rank < 4)
        x = sn_build_expand_dims(c->b, x, 0);
    return x;
}

/* softmax(q k / sqrt(h) + bias) v of [batch, steps, heads, h], without a matrix of weights. */
void sn_fn_attention(sn_fn_call *c) {
    const sn_value q = sn_fn_float(c, 0), k = sn_fn_float(c, 1), v = sn_fn_float(c, 2);
    const snug_type t = sn_fn_type(c, q);
    const sn_value bias = of_scores(c, sn_fn_named_as(c, "bias", t.dtype)),
                   mask = of_scores(c, sn_fn_named(c, "mask"));
    if (t.rank != 4)
        return sn_fn_refuse(c, SNUG_E_SHAPE, "queries have %d axes; they must have 4", t.rank);
    if (sn_fn_given(c, "attn_logits_soft_cap"))
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "attn_logits_soft_cap");
    const double scale =
        sn_fn_given(c, "scale") ? sn_fn_real(c, "scale") : 1 / sqrt((double)t.dims[3]);
    const bool masked = sn_value_ok(mask), biased = sn_value_ok(bias);
    sn_value seen = masked ? sn_build_cast(c->b, mask, SNUG_BOOL) : bias;
    if (masked && biased)
        seen = sn_build_select(c->b, seen, bias, sn_fn_like(c, bias, -1e30));
    const sn_value in[4] = {q, k, v, seen};
    sn_attrs a;
    sn_attrs_default(SN_OP_attention, &a);
    a.attention.causal = sn_fn_flag(c, "is_causal");
    a.attention.scale = sn_fn_parameter(c, (double)(float)scale); /* Keras makes it an f32 */
    a.attention.rate = sn_fn_parameter(c, 0);
    a.attention.key = (int64_t)sn_build_key(c->b, "", 0).i;
    c->out[0] = sn_build(c->b, SN_OP_attention, &a, in, masked || biased ? 4 : 3);
}
