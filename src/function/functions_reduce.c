/* functions_reduce.c: functions along axes: reductions, places of extremes, running sums, sorting,
 * counts and segments. */
#include "function/function_call.h"

#include <math.h>
#include <string.h>

/* x over the axes of "axis", all where none are given; a scalar is what it is, as is anything over
 * axis=[]. */
static sn_value reduced(sn_fn_call *c, sn_op op, sn_value x) {
    const int rank = sn_fn_type(c, x).rank;
    const uint32_t axes = sn_fn_axes(c, "axis", rank);
    if (rank == 0 || sn_fn_no_axes(c, "axis") || sn_fn_failed(c))
        return x;
    return sn_build_reduce(c->b, op, x, axes, sn_fn_flag(c, "keepdims"));
}

/* Keras adds truth values as int32. */
static sn_value summand(sn_fn_call *c, int i) {
    const sn_value x = sn_fn_value(c, i);
    return c->promotes && sn_fn_type(c, x).dtype == SNUG_BOOL ? sn_build_cast(c->b, x, SNUG_I32)
                                                              : x;
}

/* And numbers of 8 bits in 32, with a sign or without as they are. */
static void sum_up(sn_fn_call *c, sn_op op) {
    const sn_value x = summand(c, 0);
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    const bool grows = c->promotes && (dtype == SNUG_I8 || dtype == SNUG_U8);
    const sn_value sum = reduced(c, op, grows ? sn_build_cast(c->b, x, SNUG_I32) : x);
    c->out[0] = grows && dtype == SNUG_U8 ? sn_build_cast(c->b, sum, SNUG_U32) : sum;
}

void sn_fn_sum(sn_fn_call *c) {
    sum_up(c, SN_OP_sum);
}

void sn_fn_prod(sn_fn_call *c) {
    sum_up(c, SN_OP_prod);
}

void sn_fn_max(sn_fn_call *c) {
    c->out[0] = reduced(c, SN_OP_max, sn_fn_value(c, 0));
}

void sn_fn_min(sn_fn_call *c) {
    c->out[0] = reduced(c, SN_OP_min, sn_fn_value(c, 0));
}

static sn_value as_truth(sn_fn_call *c) {
    return sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_BOOL);
}

void sn_fn_any(sn_fn_call *c) {
    c->out[0] = reduced(c, SN_OP_max, as_truth(c));
}

void sn_fn_all(sn_fn_call *c) {
    c->out[0] = reduced(c, SN_OP_min, as_truth(c));
}

static int64_t reduced_count(sn_fn_call *c, const snug_type *t) {
    const uint32_t axes = sn_fn_axes(c, "axis", t->rank);
    int64_t n = 1;
    for (int k = 0; k < t->rank; k++)
        n *= axes == 0 || (axes >> k & 1) ? t->dims[k] : 1;
    return n;
}

/* TensorFlow's mean of whole numbers is a whole number, towards zero, of a sum in 64 bits; Keras'
 * is f32. */
void sn_fn_mean(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, x);
    if (t.rank == 0 || sn_fn_no_axes(c, "axis") || sn_fn_failed(c)) {
        c->out[0] = x;
        return;
    }
    if (sn_dtype_is_float(t.dtype)) {
        c->out[0] =
            sn_build_mean(c->b, x, sn_fn_axes(c, "axis", t.rank), sn_fn_flag(c, "keepdims"));
        return;
    }
    const sn_value sum = reduced(c, SN_OP_sum, sn_build_cast(c->b, x, SNUG_I64)),
                   count = sn_fn_like(c, sum, (double)reduced_count(c, &t)),
                   size = sn_build_floor_div(c->b, sn_build_abs(c->b, sum), count);
    c->out[0] = sn_build_cast(c->b, sn_build_mul(c->b, sn_build_sign(c->b, sum), size), t.dtype);
}

/* A function of graph/build.h of x, axes and keepdims, and what it is of each number alone. */
typedef sn_value (*reduction)(sn_builder *, sn_value, uint32_t, bool);
typedef sn_value (*of_one)(sn_builder *, sn_value);
static void reduce_by(sn_fn_call *c, reduction f, of_one alone) {
    const sn_value x = sn_fn_float(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    const uint32_t axes = sn_fn_axes(c, "axis", rank);
    const bool none = rank == 0 || sn_fn_no_axes(c, "axis");
    if (!sn_fn_failed(c))
        c->out[0] = none ? alone(c->b, x) : f(c->b, x, axes, sn_fn_flag(c, "keepdims"));
}

static sn_value off_itself(sn_builder *b, sn_value x) {
    return sn_build_sub(b, x, x);
}

static sn_value itself(sn_builder *b, sn_value x) {
    (void)b;
    return x;
}

void sn_fn_variance(sn_fn_call *c) {
    reduce_by(c, sn_build_variance, off_itself);
}

void sn_fn_std(sn_fn_call *c) {
    reduce_by(c, sn_build_deviation, off_itself);
}

void sn_fn_logsumexp(sn_fn_call *c) {
    reduce_by(c, sn_build_logsumexp, itself);
}

static sn_value length_of(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    return sn_build_norm(b, x, 2, axes, keepdims);
}

void sn_fn_euclidean_norm(sn_fn_call *c) {
    reduce_by(c, length_of, sn_build_abs);
}

void sn_fn_count_nonzero(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const sn_value is = sn_build_not_equal(c->b, x, sn_fn_like(c, x, 0));
    c->out[0] = reduced(
        c, SN_OP_sum,
        sn_build_cast(c->b, is, sn_fn_dtype(c, "dtype", c->promotes ? SNUG_I32 : SNUG_I64)));
}

/* Mean and variance over axes. */
void sn_fn_moments(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    const uint32_t axes = sn_fn_axes(c, "axes", rank);
    const bool keepdims = sn_fn_flag(c, "keepdims");
    if (sn_fn_failed(c))
        return;
    const sn_value mean = sn_build_mean(c->b, x, axes, true);
    const sn_value off = sn_build_sub(c->b, x, sn_build_stop_gradient(c->b, mean));
    c->out[0] = keepdims ? mean : sn_build_mean(c->b, x, axes, false);
    c->out[1] = sn_build_mean(c->b, sn_build_square(c->b, off), axes, keepdims);
    c->n_out = 2;
}

/* --- places of extremes ----------------------------------------------------------------------- */
static void argument_of(sn_fn_call *c, sn_op op) {
    sn_value x = sn_fn_value(c, 0);
    snug_type t = sn_fn_type(c, x);
    const bool whole = c->promotes && !sn_fn_given(c, "axis");
    if (sn_fn_failed(c))
        return;
    if (t.dtype == SNUG_BOOL)
        x = sn_build_cast(c->b, x, SNUG_I32);
    if (whole)
        x = sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1);
    const int axis = whole ? 0 : sn_fn_axis(c, "axis", t.rank, 0);
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.argmax.axis = axis;
    a.argmax.dtype = sn_fn_dtype(c, "output_type", c->promotes ? SNUG_I32 : SNUG_I64);
    c->out[0] = sn_build(c->b, op, &a, &x, 1);
    for (int k = 0; sn_fn_flag(c, "keepdims") && k < (whole ? t.rank : 1); k++)
        c->out[0] = sn_build_expand_dims(c->b, c->out[0], axis);
}

void sn_fn_argmax(sn_fn_call *c) {
    argument_of(c, SN_OP_argmax);
}

void sn_fn_argmin(sn_fn_call *c) {
    argument_of(c, SN_OP_argmin);
}

/* --- running ---------------------------------------------------------------------------------- */
static void scan_by(sn_fn_call *c, sn_op op) {
    sn_value x = summand(c, 0);
    const bool flat = c->promotes && !sn_fn_given(c, "axis");
    if (flat)
        x = sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1);
    const int axis = sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, 0);
    if (sn_fn_given(c, "dtype"))
        x = sn_build_cast(c->b, x, sn_fn_dtype(c, "dtype", c->floats));
    c->out[0] =
        sn_build_scan(c->b, op, x, axis, sn_fn_flag(c, "exclusive"), sn_fn_flag(c, "reverse"));
}

/* The largest is taken out first: sums of what is left neither overflow nor vanish at once. */
void sn_fn_cumulative_logsumexp(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const int axis = sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, 0);
    if (sn_fn_failed(c))
        return;
    const sn_value most = sn_build_stop_gradient(c->b, sn_build_max(c->b, x, 1u << axis, true)),
                   terms = sn_build_exp(c->b, sn_build_sub(c->b, x, most));
    const sn_value sums = sn_build_scan(c->b, SN_OP_cumsum, terms, axis, sn_fn_flag(c, "exclusive"),
                                        sn_fn_flag(c, "reverse"));
    c->out[0] = sn_build_add(c->b, sn_build_log(c->b, sums), most);
}

static void ordered(sn_fn_call *c, sn_value (*test)(sn_builder *, sn_value, sn_value)) {
    const sn_value x = sn_build_reshape(c->b, sn_fn_value(c, 0), (const int64_t[]){-1}, 1);
    const int64_t n = sn_fn_type(c, x).dims[0];
    if (sn_fn_failed(c))
        return;
    if (n < 2) {
        c->out[0] = sn_build_scalar(c->b, SNUG_BOOL, 1);
        return;
    }
    c->out[0] = sn_build_all_true(
        c->b, test(c->b, sn_build_part(c->b, x, 0, 1, n - 1), sn_build_part(c->b, x, 0, 0, n - 1)),
        0, false);
}

void sn_fn_is_increasing(sn_fn_call *c) {
    ordered(c, sn_build_greater);
}

void sn_fn_is_non_decreasing(sn_fn_call *c) {
    ordered(c, sn_build_greater_equal);
}

void sn_fn_cumsum(sn_fn_call *c) {
    scan_by(c, SN_OP_cumsum);
}

void sn_fn_cumprod(sn_fn_call *c) {
    scan_by(c, SN_OP_cumprod);
}

/* x[1:] - x[:-1] along an axis, n times. */
void sn_fn_diff(sn_fn_call *c) {
    c->out[0] = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, c->out[0]);
    const int axis = sn_fn_axis(c, "axis", t.rank, -1);
    const int64_t n = sn_fn_int(c, "n");
    for (int64_t i = 0; i < n && i < t.dims[axis] && !sn_fn_failed(c); i++) {
        const int64_t left = t.dims[axis] - i - 1;
        c->out[0] = sn_build_sub(c->b, sn_build_part(c->b, c->out[0], axis, 1, left),
                                 sn_build_part(c->b, c->out[0], axis, 0, left));
    }
}

/* --- sorting ---------------------------------------------------------------------------------- */
static void sort_by(sn_fn_call *c, sn_value *values, sn_value *places) {
    sn_value x = sn_fn_value(c, 0);
    if (sn_fn_argument(c, "axis")->kind == SNUG_ARG_NONE) /* axis=None */
        x = sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1);
    const sn_sort how = {.axis = sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, -1),
                         .descending = sn_fn_says(c, "direction", "descending"),
                         .places = SNUG_I32};
    sn_build_sort(c->b, x, &how, values, places);
}

void sn_fn_sort(sn_fn_call *c) {
    sn_value places;
    sort_by(c, &c->out[0], &places);
}

void sn_fn_argsort(sn_fn_call *c) {
    sn_value values;
    sort_by(c, &values, &c->out[0]);
}

/* No elements, and no places. */
static void pick_none(sn_fn_call *c, const snug_type *of, snug_dtype places) {
    snug_type t = *of;
    t.dims[t.rank - 1] = 0;
    c->out[0] = sn_build_fill(c->b, &t, 0);
    t.dtype = places;
    c->out[1] = sn_build_fill(c->b, &t, 0);
    c->n_out = 2;
}

void sn_fn_top_k(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const sn_sort how = {.axis = -1,
                         .descending = true,
                         .k = sn_fn_int(c, "k"),
                         .places = sn_fn_dtype(c, "index_type", SNUG_I32)};
    if (t.rank >= 1 && how.k == 0 && !sn_fn_failed(c))
        return pick_none(c, &t, how.places);
    if (t.rank < 1 || how.k < 0 || how.k > t.dims[t.rank - 1])
        return sn_fn_refuse(c, SNUG_E_INVALID, "input must have at least k=%lld columns",
                            (long long)how.k);
    sn_build_sort(c->b, x, &how, &c->out[0], &c->out[1]);
    c->n_out = 2;
}

/* Whether fewer than k others are above the score of the target. */
void sn_fn_in_top_k(sn_fn_call *c) {
    const sn_value targets = sn_fn_value(c, sn_fn_place(c, "targets")),
                   scores = sn_fn_value(c, sn_fn_place(c, "predictions"));
    const sn_value at = sn_build_expand_dims(c->b, targets, -1);
    const sn_value own = sn_build_take_along_axis(c->b, scores, at, -1);
    const sn_value above = sn_build_sum(
        c->b, sn_build_cast(c->b, sn_build_greater(c->b, scores, own), SNUG_I32), 1u << 1, false);
    c->out[0] = sn_build_less(c->b, above, sn_fn_like(c, above, (double)sn_fn_int(c, "k")));
    c->out[0] = sn_build_logical_and(
        c->b, c->out[0],
        sn_build_reshape(c->b, sn_build_isfinite(c->b, own), (const int64_t[]){-1}, 1));
}

/* --- counts and segments ---------------------------------------------------------------------- */
static sn_value scattered(sn_fn_call *c, sn_value at, sn_value what, int64_t n) {
    const snug_type t = sn_fn_type(c, what);
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_add, &a);
    a.scatter.dims.n = t.rank;
    memcpy(a.scatter.dims.v, t.dims, sizeof t.dims);
    a.scatter.dims.v[0] = n;
    const sn_value in[2] = {at, what};
    return sn_build(c->b, SN_OP_scatter_add, &a, in, 2);
}

/* An extent that a setting says, or, where it is not given, the largest number that was read. */
static int64_t extent_of(sn_fn_call *c, const char *key) {
    const int64_t n = sn_fn_given(c, key) ? sn_fn_int(c, key) : c->largest + 1;
    if (n < 1)
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                     "%s is needed here: the shape of the result depends on values", key);
    return n;
}

/* The number of bins: up to the largest number, or to what is asked for. */
static int64_t count_bins(sn_fn_call *c, const snug_type *x, int64_t *wanted) {
    const int64_t least = sn_fn_int(c, "minlength"),
                  n = c->largest + 1 > least ? c->largest + 1 : least;
    *wanted = sn_fn_given(c, "maxlength") ? sn_fn_int(c, "maxlength") : INT64_MAX;
    if (*wanted < 0)
        sn_fn_refuse(c, SNUG_E_INVALID, "maxlength=%lld must not be negative", (long long)*wanted);
    else if (n < 1 && sn_type_count(x) > 0)
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                     "needs minlength: the shape of its result depends on values");
    return n < 0 ? 0 : n;
}

/* How often each number comes. */
void sn_fn_bincount(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const snug_dtype whole = t.dtype == SNUG_I64 ? SNUG_I64 : SNUG_I32;
    int64_t most;
    sn_fn_dense_only(c);
    const int64_t n = count_bins(c, &t, &most);
    x = sn_build_reshape(c->b, sn_build_cast(c->b, x, whole), (const int64_t[]){-1}, 1);
    sn_value weights = sn_fn_named(c, "weights");
    if (sn_value_ok(weights))
        weights = sn_build_reshape(c->b, weights, (const int64_t[]){-1}, 1);
    else
        weights = sn_build_fill(
            c->b, &(snug_type){sn_fn_dtype(c, "dtype", SNUG_I32), 1, {sn_fn_type(c, x).dims[0]}},
            1);
    if (sn_fn_failed(c))
        return;
    if (most == 0 || n == 0) {
        c->out[0] = sn_build_fill(c->b, &(snug_type){sn_fn_dtype_of(c, weights), 1, {0}}, 0);
        return;
    }
    if (most < n) { /* what lies beyond is not counted */
        const sn_value end = sn_build_scalar(c->b, whole, (double)most),
                       last = sn_build_scalar(c->b, whole, (double)(most - 1)),
                       none = sn_build_scalar(c->b, sn_fn_dtype_of(c, weights), 0);
        weights = sn_build_select(c->b, sn_build_greater(c->b, end, x), weights, none);
        x = sn_build_minimum(c->b, x, last);
    }
    c->out[0] = scattered(c, x, weights, most < n ? most : n);
}

void sn_fn_segment_sum(sn_fn_call *c) {
    const sn_value data = sn_fn_value(c, 0), at = sn_fn_value(c, 1);
    const int64_t n = extent_of(c, "num_segments");
    if (!sn_fn_failed(c))
        c->out[0] = scattered(c, at, data, n);
}

void sn_fn_segment_mean(sn_fn_call *c) {
    const sn_value data = sn_fn_value(c, 0), at = sn_fn_value(c, 1);
    const snug_type t = sn_fn_type(c, data);
    const int64_t n = extent_of(c, "num_segments");
    if (sn_fn_failed(c))
        return;
    const sn_value ones = sn_build_fill(c->b, &(snug_type){t.dtype, 1, {t.dims[0]}}, 1),
                   count = scattered(c, at, ones, n);
    int64_t dims[SNUG_MAX_RANK] = {n, 1, 1, 1, 1, 1, 1, 1};
    const sn_value least = sn_build_maximum(c->b, count, sn_fn_like(c, count, 1));
    c->out[0] =
        sn_build_div(c->b, scattered(c, at, data, n), sn_build_reshape(c->b, least, dims, t.rank));
}

/* Row: the label; column: what it was taken for. */
void sn_fn_confusion_matrix(sn_fn_call *c) {
    const snug_dtype dtype = sn_fn_dtype(c, "dtype", SNUG_I32);
    const sn_value flat_labels =
                       sn_build_reshape(c->b, sn_fn_value(c, 0), (const int64_t[]){-1, 1}, 2),
                   flat_said =
                       sn_build_reshape(c->b, sn_fn_value(c, 1), (const int64_t[]){-1, 1}, 2);
    const int64_t n = extent_of(c, "num_classes");
    if (sn_fn_failed(c))
        return;
    const sn_value pair[2] = {sn_build_cast(c->b, flat_labels, SNUG_I64),
                              sn_build_cast(c->b, flat_said, SNUG_I64)};
    const sn_value at = sn_build_concat(c->b, pair, 2, 1);
    sn_value weights = sn_fn_named(c, "weights");
    if (sn_value_ok(weights))
        weights =
            sn_build_cast(c->b, sn_build_reshape(c->b, weights, (const int64_t[]){-1}, 1), dtype);
    else
        weights = sn_build_fill(c->b, &(snug_type){dtype, 1, {sn_fn_type(c, at).dims[0]}}, 1);
    const sn_value in[2] = {at, weights};
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_nd, &a);
    a.scatter_nd.dims = (sn_list){.n = 2, .v = {n, n}};
    c->out[0] = sn_build(c->b, SN_OP_scatter_nd, &a, in, 2);
}

/* In which of nbins equal ranges each lies, as f64; what lies outside is in the first or last. */
static sn_value ranges_of(sn_fn_call *c, sn_value x) {
    const snug_argument *range = sn_fn_argument(c, "value_range");
    const int64_t n = sn_fn_int(c, "nbins");
    if (range->kind != SNUG_ARG_LIST || range->list.n != 2 || n < 1) {
        sn_fn_refuse(c, SNUG_E_INVALID, "it needs a range of two numbers and nbins");
        return SN_NO_VALUE;
    }
    double ends[2];
    for (int i = 0; i < 2; i++)
        ends[i] = range->list.items[i].kind == SNUG_ARG_REAL ? range->list.items[i].real
                                                             : (double)range->list.items[i].integer;
    const double scale = (double)n / (ends[1] - ends[0]);
    const sn_value real = sn_build_cast(c->b, x, SNUG_F64);
    return sn_build_clip(c->b,
                         sn_build_floor(c->b, sn_build_affine(c->b, real, scale, -ends[0] * scale)),
                         0, (double)(n - 1));
}

void sn_fn_histogram(sn_fn_call *c) {
    const sn_value x = sn_build_reshape(c->b, sn_fn_value(c, 0), (const int64_t[]){-1}, 1),
                   at = ranges_of(c, x);
    const snug_type ones = {sn_fn_dtype(c, "dtype", SNUG_I32), 1, {sn_fn_type(c, x).dims[0]}};
    if (!sn_fn_failed(c))
        c->out[0] = scattered(c, sn_build_cast(c->b, at, SNUG_I32), sn_build_fill(c->b, &ones, 1),
                              sn_fn_int(c, "nbins"));
}

void sn_fn_histogram_bins(sn_fn_call *c) {
    const sn_value at = ranges_of(c, sn_fn_value(c, 0));
    c->out[0] = sn_build_cast(c->b, at, sn_fn_dtype(c, "dtype", SNUG_I32));
}

/* --- order statistics ------------------------------------------------------------------------- */
/* x with the reduced axes as one, the last; *left the others. */
static sn_value rows_of(sn_fn_call *c, sn_value x, uint32_t axes, snug_type *left) {
    const snug_type t = sn_fn_type(c, x);
    int perm[SNUG_MAX_RANK], at = 0;
    axes = axes ? axes : (1u << t.rank) - 1;
    *left = (snug_type){.dtype = t.dtype};
    for (uint32_t pass = 0; pass < 2; pass++)
        for (int k = 0; k < t.rank; k++)
            if ((axes >> k & 1) == pass)
                perm[at++] = k;
    for (int k = 0; k < t.rank; k++)
        if (!(axes >> k & 1))
            left->dims[left->rank++] = t.dims[k];
    int64_t dims[SNUG_MAX_RANK];
    memcpy(dims, left->dims, sizeof dims);
    dims[left->rank] = -1;
    return sn_build_reshape(c->b, sn_build_transpose(c->b, x, perm), dims, left->rank + 1);
}

/* Element q of sorted rows: between two of them, or the one that the method chooses. */
static sn_value quantile_of(sn_fn_call *c, sn_value sorted, int axis, double q) {
    const int64_t n = sn_fn_type(c, sorted).dims[axis];
    const double at = (double)(n - 1) * q;
    const int64_t low = (int64_t)floor(at), high = (int64_t)ceil(at);
    if (sn_fn_says(c, "method", "lower"))
        return sn_build_part(c->b, sorted, axis, low, 1);
    if (sn_fn_says(c, "method", "higher"))
        return sn_build_part(c->b, sorted, axis, high, 1);
    if (sn_fn_says(c, "method", "nearest"))
        return sn_build_part(c->b, sorted, axis, (int64_t)nearbyint(at), 1);
    const bool middle = sn_fn_says(c, "method", "midpoint");
    if (!middle && sn_fn_text(c, "method")[0] && !sn_fn_says(c, "method", "linear"))
        sn_fn_refuse(c, SNUG_E_INVALID, "method=%.20s is not known", sn_fn_text(c, "method"));
    /* Where q meets an element Keras still takes two, one of them 0 times; so does its gradient. */
    const int64_t above = middle     ? high
                          : high > 0 ? high
                                     : n > 1,
                  below = middle ? low : above - (above > 0);
    const double share = middle ? 0.5 : (double)above - at;
    return sn_build_add(
        c->b, sn_build_affine(c->b, sn_build_part(c->b, sorted, axis, above, 1), 1 - share, 0),
        sn_build_affine(c->b, sn_build_part(c->b, sorted, axis, below, 1), share, 0));
}

static void quantiles(sn_fn_call *c, const double *q, int n, bool stacked) {
    const sn_value x = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const uint32_t axes = sn_fn_axes(c, "axis", t.rank);
    snug_type left;
    sn_value sorted, places, each[SN_MAX_IN];
    if (sn_fn_failed(c) || t.rank < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "a scalar has no order");
    const sn_value rows = rows_of(c, x, axes, &left);
    sn_build_sort(c->b, rows, &(sn_sort){.axis = -1, .places = SNUG_I32}, &sorted, &places);
    const uint32_t last = 1u << left.rank; /* a row with a NaN has no order and gives NaN */
    const sn_value bad = sn_build_any_true(c->b, sn_build_isnan(c->b, rows), last, true),
                   sum = sn_build_sum(c->b, rows, last, true);
    snug_type shape = left;
    if (sn_fn_flag(c, "keepdims")) {
        shape = t;
        for (int k = 0; k < t.rank; k++)
            shape.dims[k] = !axes || (axes >> k & 1) ? 1 : t.dims[k];
    }
    for (int i = 0; i < n && !sn_fn_failed(c); i++)
        each[i] = sn_build_reshape(
            c->b, sn_build_select(c->b, bad, sum, quantile_of(c, sorted, left.rank, q[i])),
            shape.dims, shape.rank);
    c->out[0] = stacked && !sn_fn_failed(c) ? sn_build_stack(c->b, each, n, 0) : each[0];
}

void sn_fn_median(sn_fn_call *c) {
    quantiles(c, &(const double){0.5}, 1, false);
}

void sn_fn_quantile(sn_fn_call *c) {
    const snug_argument *a = sn_fn_argument(c, "q");
    double q[SN_MAX_IN];
    const bool list = a->kind == SNUG_ARG_LIST;
    const int n = list ? a->list.n : 1;
    if (n < 1 || n > SN_MAX_IN)
        return sn_fn_refuse(c, SNUG_E_INVALID, "up to %d quantiles at once", SN_MAX_IN);
    for (int i = 0; i < n; i++) {
        const snug_argument *one = list ? &a->list.items[i] : a;
        q[i] = one->kind == SNUG_ARG_REAL ? one->real : (double)one->integer;
        q[i] = c->promotes ? (double)(float)q[i] : q[i]; /* Keras makes an f32 tensor of it */
        if (!(q[i] >= 0 && q[i] <= 1))
            return sn_fn_refuse(c, SNUG_E_INVALID, "q=%g is not within 0 and 1", q[i]);
    }
    quantiles(c, q, n, list);
}
