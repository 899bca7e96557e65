/* functions_index.c: functions that find elements by tensors of indices, and those that make
 * tensors from nothing: creation, ranges, one-hot rows, masks. */
#include "function/function_call.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

/* --- gathering -------------------------------------------------------------------------------- */
static sn_value gather(sn_fn_call *c, sn_value x, sn_value at, int axis) {
    const sn_value in[2] = {x, at};
    sn_attrs a;
    sn_attrs_default(SN_OP_gather, &a);
    a.axis.axis = axis;
    return sn_build(c->b, SN_OP_gather, &a, in, 2);
}

/* Indices as an operator reads them. */
static sn_value indices_of(sn_fn_call *c, int i) {
    const sn_value at = sn_fn_value(c, i);
    const snug_dtype dtype = sn_fn_type(c, at).dtype;
    if (!c->promotes && sn_dtype_is_float(dtype))
        sn_fn_refuse(c, SNUG_E_INVALID, "indices of %s; they must be whole numbers, cast them",
                     snug_dtype_name(dtype));
    return dtype == SNUG_I32 || dtype == SNUG_I64 || sn_fn_failed(c)
               ? at
               : sn_build_cast(c->b, at, SNUG_I32);
}

/* The first axes of x and indices belong together; then the axis is the one behind them. */
static void gather_batches(sn_fn_call *c, sn_value x, sn_value at, int axis, int batch) {
    const int rank = sn_fn_type(c, x).rank;
    int perm[SNUG_MAX_RANK];
    if (axis < batch || rank < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "axis %d is one of %d batch axes", axis, batch);
    for (int k = 0; k < rank; k++)
        perm[k] = k < batch ? k : k == batch ? axis : k <= axis ? k - 1 : k;
    const sn_value first = axis == batch ? x : sn_build_transpose(c->b, x, perm);
    const sn_value y = sn_build_gather_nd(c->b, first, sn_build_expand_dims(c->b, at, -1), batch);
    if (axis == batch) {
        c->out[0] = y;
        return;
    }
    const int some = sn_fn_type(c, at).rank - batch, between = axis - batch; /* new axes; moved */
    for (int k = 0; k < sn_fn_type(c, y).rank && k < SNUG_MAX_RANK; k++)
        perm[k] = k < batch                    ? k
                  : k < batch + between        ? k + some
                  : k < batch + between + some ? k - between
                                               : k;
    c->out[0] = sn_build_transpose(c->b, y, perm);
}

void sn_fn_gather(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0), at = indices_of(c, 1);
    const int rank = sn_fn_type(c, x).rank;
    int64_t batch = sn_fn_int(c, "batch_dims");
    batch += batch < 0 ? sn_fn_type(c, at).rank : 0;
    const int axis = sn_fn_axis(c, "axis", rank, (int)batch);
    if (sn_fn_failed(c))
        return;
    if (batch > 0)
        gather_batches(c, x, at, axis, (int)batch);
    else
        c->out[0] = gather(c, x, at, axis);
}

/* NumPy's: negative indices count from the end; without an axis all elements in their order. */
void sn_fn_take(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0), at = indices_of(c, 1);
    if (!sn_fn_given(c, "axis"))
        x = sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_axis(c, "axis", t.rank, 0);
    if (sn_fn_failed(c))
        return;
    const sn_value zero = sn_fn_like(c, at, 0);
    at = sn_build_select(c->b, sn_build_less(c->b, at, zero),
                         sn_fn_affine(c, at, 1, (double)t.dims[axis]), at);
    c->out[0] = gather(c, x, at, axis);
}

void sn_fn_take_along_axis(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0), at = indices_of(c, 1);
    const int axis = sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, -1);
    c->out[0] = sn_build_take_along_axis(c->b, x, at, axis);
}

void sn_fn_gather_nd(sn_fn_call *c) {
    sn_fn_bad_indices_fail(c);
    const sn_value x = sn_fn_value(c, 0), at = indices_of(c, 1);
    c->out[0] = sn_build_gather_nd(c->b, x, at, (int)sn_fn_int(c, "batch_dims"));
}

/* The mask's places, which argument 1 is already, of x. */
void sn_fn_boolean_mask(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const sn_value at = indices_of(c, 1);
    const int rank = sn_fn_type(c, x).rank, axis = sn_fn_axis(c, "axis", rank, 0),
              n = (int)sn_fn_type(c, at).dims[1];
    if (axis == 0) {
        c->out[0] = sn_build_gather_nd(c->b, x, at, 0);
        return;
    }
    if (n != 1)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a mask of %d axes from axis %d on", n, axis);
    c->out[0] = gather(c, x, sn_build_reshape(c->b, at, (const int64_t[]){-1}, 1), axis);
}

/* The same, a vector of places for each axis. */
void sn_fn_nonzero(sn_fn_call *c) {
    const sn_value at = sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_I32);
    const snug_type t = sn_fn_type(c, at);
    for (int k = 0; k < (int)t.dims[1] && k < SNUG_MAX_RANK; k++)
        c->out[k] = sn_build_squeeze(c->b, sn_build_part(c->b, at, 1, k, 1), 1);
    c->n_out = (int)t.dims[1];
}

/* Argument 0 is a list of what there is: values, places, counts. */
void sn_fn_unique(sn_fn_call *c) {
    sn_value x[3];
    for (int i = 0; i < 3; i++)
        x[i] = sn_fn_use(c, &c->unique[i]);
    c->out[0] = x[0];
    c->out[1] = sn_build_cast(c->b, x[1], sn_fn_dtype(c, "out_idx", SNUG_I32));
    c->out[2] = sn_build_cast(c->b, x[2], sn_fn_dtype(c, "out_idx", SNUG_I32));
    c->n_out = 2;
}

void sn_fn_unique_with_counts(sn_fn_call *c) {
    sn_fn_unique(c);
    c->n_out = 3;
}

/* The index along each axis of a shape: what is left by the axes behind it. */
void sn_fn_unravel_index(sn_fn_call *c) {
    const sn_value at = sn_fn_value(c, 0);
    snug_type shape;
    sn_value each[SNUG_MAX_RANK], rest = at;
    if (!sn_fn_shape(c, "dims", &shape) || shape.rank < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs a shape");
    for (int k = shape.rank - 1; k >= 0; k--) {
        const sn_value extent = sn_fn_like(c, at, (double)shape.dims[k]);
        each[k] = sn_build_mod(c->b, rest, extent);
        rest = sn_build_floor_div(c->b, rest, extent);
    }
    c->out[0] = sn_build_stack(c->b, each, shape.rank, 0);
}

void sn_fn_ensure_shape(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    snug_type shape;
    if (!sn_fn_shape(c, "shape", &shape))
        return;
    bool fits = shape.rank == t.rank;
    for (int k = 0; k < t.rank && fits; k++)
        fits = shape.dims[k] < 0 || shape.dims[k] == t.dims[k];
    if (!fits)
        sn_fn_refuse(c, SNUG_E_SHAPE, "the tensor is not compatible with the expected shape");
    c->out[0] = x;
}

/* --- scattering ------------------------------------------------------------------------------- */
static sn_value scatter(sn_fn_call *c, sn_value at, sn_value what, const snug_type *shape) {
    const sn_value in[2] = {at, what};
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_nd, &a);
    a.scatter_nd.dims.n = shape->rank;
    memcpy(a.scatter_nd.dims.v, shape->dims, sizeof shape->dims);
    return sn_build(c->b, SN_OP_scatter_nd, &a, in, 2);
}

void sn_fn_scatter_nd(sn_fn_call *c) {
    const sn_value at = indices_of(c, 0), what = sn_fn_value(c, 1);
    snug_type t;
    sn_fn_bad_indices_fail(c);
    if (sn_fn_shape(c, "shape", &t))
        c->out[0] = scatter(c, at, what, &t);
}

static void scatter_onto(sn_fn_call *c, sn_value (*join)(sn_builder *, sn_value, sn_value)) {
    sn_fn_bad_indices_fail(c);
    const sn_value x = sn_fn_value(c, 0), at = indices_of(c, 1);
    const snug_type t = sn_fn_type(c, x);
    const sn_value what = sn_fn_value_as(c, 2, t.dtype);
    c->out[0] = join(c->b, x, scatter(c, at, what, &t));
}

void sn_fn_scatter_add(sn_fn_call *c) {
    scatter_onto(c, sn_build_add);
}

void sn_fn_scatter_sub(sn_fn_call *c) {
    scatter_onto(c, sn_build_sub);
}

/* Each row of indices as one number: its place in the shape. i64 [n]. */
static sn_value places_of(sn_fn_call *c, sn_value at, const snug_type *shape, int64_t n) {
    const snug_type t = sn_fn_type(c, at);
    const int depth = (int)t.dims[t.rank - 1];
    const sn_value rows = sn_build_reshape(c->b, at, (int64_t[]){n, depth}, 2);
    sn_value sum = SN_NO_VALUE;
    double stride = 1;
    for (int k = depth - 1; k >= 0; k--) {
        const sn_value part = sn_build_cast(c->b, sn_build_part(c->b, rows, 1, k, 1), SNUG_I64);
        const sn_value term = sn_fn_affine(c, part, stride, 0);
        sum = sn_value_ok(sum) ? sn_build_add(c->b, sum, term) : term;
        stride *= (double)shape->dims[k];
    }
    return sn_build_reshape(c->b, sum, &n, 1);
}

/* Per row of indices whether no later one is the same: in the order of places, equal ones in their
 * own, it is the last of its kind; sorting that order again leads back. */
static sn_value are_last(sn_fn_call *c, sn_value at, const snug_type *shape, int64_t n) {
    const sn_sort how = {.axis = 0, .places = SNUG_I32};
    const snug_type one = {SNUG_I32, 1, {1}};
    sn_value sorted, order, ignored, back;
    sn_build_sort(c->b, places_of(c, at, shape, n), &how, &sorted, &order);
    sn_build_sort(c->b, order, &how, &ignored, &back);
    const sn_value differs = sn_build_not_equal(c->b, sn_build_part(c->b, sorted, 0, 0, n - 1),
                                                sn_build_part(c->b, sorted, 0, 1, n - 1));
    const sn_value both[2] = {sn_build_cast(c->b, differs, SNUG_I32), sn_build_fill(c->b, &one, 1)};
    return sn_fn_failed(c) ? SN_NO_VALUE : gather(c, sn_build_concat(c->b, both, 2, 0), back, 0);
}

/* Updates with zeros in the place of those that a later one overwrites. */
static sn_value keep_last(sn_fn_call *c, sn_value at, sn_value what, const snug_type *shape) {
    const snug_type t = sn_fn_type(c, at), w = sn_fn_type(c, what);
    snug_type per_row = w;
    int64_t n = 1;
    if (sn_fn_failed(c) || t.rank < 1)
        return what;
    for (int k = 0; k < t.rank - 1; k++)
        n *= t.dims[k];
    for (int k = t.rank - 1; k < w.rank; k++)
        per_row.dims[k] = 1;
    if (n < 2 || t.dims[t.rank - 1] < 1)
        return what;
    const sn_value last = sn_build_reshape(c->b, are_last(c, at, shape, n), per_row.dims, w.rank);
    const sn_value yes = sn_build_greater(c->b, last, sn_fn_like(c, last, 0));
    return sn_build_select(c->b, yes, what, sn_fn_like(c, what, 0));
}

/* Where something is scattered to, that; of an index that comes twice the last. */
void sn_fn_scatter_update(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const sn_value at = indices_of(c, 1);
    snug_type t = sn_fn_type(c, x), counts;
    const bool truth = t.dtype == SNUG_BOOL;
    if (truth) {
        x = sn_build_cast(c->b, x, SNUG_I32);
        t.dtype = SNUG_I32;
    }
    sn_value what =
        truth ? sn_build_cast(c->b, sn_fn_value(c, 2), SNUG_I32) : sn_fn_value_as(c, 2, t.dtype);
    if (sn_fn_failed(c))
        return;
    counts = sn_fn_type(c, what);
    counts.dtype = SNUG_I32;
    const sn_value hit = scatter(c, at, sn_build_fill(c->b, &counts, 1), &t);
    what = keep_last(c, at, what, &t);
    const sn_value y = sn_build_select(c->b, sn_build_greater(c->b, hit, sn_fn_like(c, hit, 0)),
                                       scatter(c, at, what, &t), x);
    c->out[0] = truth ? sn_build_cast(c->b, y, SNUG_BOOL) : y;
}

/* The larger or smaller of both where something is scattered to; an index may come once. */
static void scatter_extreme(sn_fn_call *c, sn_value (*join)(sn_builder *, sn_value, sn_value)) {
    const sn_value x = sn_fn_value(c, 0), at = indices_of(c, 1);
    const snug_type t = sn_fn_type(c, x);
    const sn_value what = sn_fn_value_as(c, 2, t.dtype);
    if (sn_fn_failed(c))
        return;
    snug_type counts = sn_fn_type(c, what);
    counts.dtype = SNUG_I32;
    const sn_value hit = scatter(c, at, sn_build_fill(c->b, &counts, 1), &t),
                   there = sn_build_greater(c->b, hit, sn_fn_like(c, hit, 0));
    c->out[0] = sn_build_select(c->b, there, join(c->b, x, scatter(c, at, what, &t)), x);
}

void sn_fn_scatter_max(sn_fn_call *c) {
    scatter_extreme(c, sn_build_maximum);
}

void sn_fn_scatter_min(sn_fn_call *c) {
    scatter_extreme(c, sn_build_minimum);
}

/* --- from nothing ----------------------------------------------------------------------------- */
static void fill_with(sn_fn_call *c, double v) {
    snug_type t;
    if (!sn_fn_shape(c, "shape", &t))
        return;
    t.dtype = sn_fn_dtype(c, "dtype", c->floats);
    for (int k = 0; k < t.rank; k++)
        if (t.dims[k] < 0)
            return sn_fn_refuse(c, SNUG_E_INVALID, "the extent %lld", (long long)t.dims[k]);
    c->out[0] = sn_build_fill(c->b, &t, v);
}

void sn_fn_zeros(sn_fn_call *c) {
    fill_with(c, 0);
}

void sn_fn_ones(sn_fn_call *c) {
    fill_with(c, 1);
}

/* value: a number, or a tensor that is spread. */
static void full_of(sn_fn_call *c, snug_type *t, const char *value) {
    const snug_argument *a = sn_fn_argument(c, value);
    const bool real = a->kind == SNUG_ARG_REAL, truth = a->kind == SNUG_ARG_BOOL,
               wide = a->kind == SNUG_ARG_INTEGER &&
                      (a->integer > INT32_MAX || a->integer < INT32_MIN);
    const int i = sn_fn_place(c, value);
    double v;
    t->dtype = sn_fn_dtype(c, "dtype",
                           real || c->promotes ? c->floats
                           : truth             ? SNUG_BOOL
                           : wide              ? SNUG_I64
                                               : SNUG_I32);
    if (!(wide && t->dtype == SNUG_I64) && sn_fn_number(c, i, &v)) {
        c->out[0] = sn_build_fill(c->b, t, v);
        return;
    }
    const sn_value x = sn_fn_value(c, i);
    const snug_dtype own = sn_fn_type(c, x).dtype;
    c->out[0] =
        sn_build_broadcast_to(c->b, sn_build_cast(c->b, x, sn_fn_dtype(c, "dtype", own)), t);
}

void sn_fn_fill(sn_fn_call *c) {
    snug_type t;
    if (sn_fn_shape(c, sn_fn_place(c, "dims") >= 0 ? "dims" : "shape", &t))
        full_of(c, &t, sn_fn_place(c, "value") >= 0 ? "value" : "fill_value");
}

/* Of the shape and, unless another is asked for, the dtype of x; x itself is not computed. */
static snug_type like_of(sn_fn_call *c) {
    snug_type t = sn_fn_type(c, sn_fn_value(c, 0));
    t.dtype = sn_fn_dtype(c, "dtype", t.dtype);
    return t;
}

void sn_fn_zeros_like(sn_fn_call *c) {
    const snug_type t = like_of(c);
    c->out[0] = sn_build_fill(c->b, &t, 0);
}

void sn_fn_ones_like(sn_fn_call *c) {
    const snug_type t = like_of(c);
    c->out[0] = sn_build_fill(c->b, &t, 1);
}

void sn_fn_full_like(sn_fn_call *c) {
    const snug_type t = like_of(c);
    const sn_value v = sn_fn_named_as(c, "fill_value", t.dtype);
    c->out[0] = sn_build_broadcast_to(c->b, v, &t);
}

/* 0, 1, 2, ... as running sums of ones: no bytes until someone needs them. */
static sn_value count_up(sn_fn_call *c, int64_t n, snug_dtype dtype) {
    const snug_type t = {dtype, 1, {n}};
    return sn_build_scan(c->b, SN_OP_cumsum, sn_build_fill(c->b, &t, 1), 0, true, false);
}

/* Of range and arange. */
typedef struct {
    double start, limit, delta;
    int64_t first, last, step; /* the same where all of them are whole */
    bool whole;
} steps;

/* The arguments in Python's manner. */
static bool range_of(sn_fn_call *c, steps *s) {
    const char *const last = sn_fn_place(c, "limit") >= 0  ? "limit"
                             : sn_fn_place(c, "stop") >= 0 ? "stop"
                                                           : "end",
                      *const by = sn_fn_place(c, "delta") >= 0 ? "delta" : "step";
    const bool both = sn_fn_given(c, last), steps_by = sn_fn_given(c, by);
    const char *const end = both ? last : "start";
    s->start = both ? sn_fn_real(c, "start") : 0;
    s->limit = sn_fn_real(c, end);
    s->delta = steps_by ? sn_fn_real(c, by) : 1;
    s->whole = sn_fn_argument(c, "start")->kind != SNUG_ARG_REAL &&
               sn_fn_argument(c, last)->kind != SNUG_ARG_REAL &&
               sn_fn_argument(c, by)->kind != SNUG_ARG_REAL;
    s->first = s->whole && both ? sn_fn_int(c, "start") : 0;
    s->last = s->whole ? sn_fn_int(c, end) : 0;
    s->step = s->whole && steps_by ? sn_fn_int(c, by) : 1;
    const bool away = (s->limit - s->start) * s->delta < 0;
    if (s->delta == 0 || (away && !c->promotes) || !isfinite(s->start) || !isfinite(s->limit) ||
        !isfinite(s->delta))
        sn_fn_refuse(c, SNUG_E_INVALID, "from %g to %g by %g", s->start, s->limit, s->delta);
    return !sn_fn_failed(c);
}

/* How many numbers there are. */
static int64_t count_of(const steps *s) {
    const double n = ceil((s->limit - s->start) / s->delta);
    if (!s->whole || n <= 0)
        return n > 0 ? (int64_t)n : 0;
    const uint64_t from = (uint64_t)s->first, to = (uint64_t)s->last, by = (uint64_t)s->step;
    return (int64_t)(s->step > 0 ? (to - from - 1) / by + 1 : (from - to - 1) / (0 - by) + 1);
}

void sn_fn_range(sn_fn_call *c) {
    steps s;
    if (!range_of(c, &s))
        return;
    const int64_t n = count_of(&s);
    const snug_dtype dtype = sn_fn_dtype(c, "dtype", s.whole ? SNUG_I32 : c->floats);
    if (sn_dtype_is_int(dtype) && n <= SN_FN_MAX_ITEMS) {
        int64_t v[SN_FN_MAX_ITEMS];
        for (int64_t i = 0; i < n; i++)
            v[i] = s.whole ? s.first + i * s.step : (int64_t)s.start + i * (int64_t)s.delta;
        sn_fn_known(c, &(snug_type){dtype, 1, {n}}, v);
        return;
    }
    if (dtype != SNUG_I64 || !sn_fn_is_wide(s.first)) {
        c->out[0] = sn_fn_affine(c, count_up(c, n, dtype), s.delta, s.start);
        return;
    }
    const snug_argument first = {.kind = SNUG_ARG_INTEGER, .integer = s.first};
    c->out[0] = sn_build_add(c->b, sn_fn_affine(c, count_up(c, n, dtype), s.delta, 0),
                             sn_fn_scalar(c, &first, dtype));
}

void sn_fn_linspace(sn_fn_call *c) {
    const double start = sn_fn_real(c, "start"), stop = sn_fn_real(c, "stop");
    const int64_t n = sn_fn_int(c, "num");
    const bool open = sn_fn_given(c, "endpoint") && !sn_fn_flag(c, "endpoint");
    const double parts = (double)n - !open;
    if (n < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "num=%lld; at least 1", (long long)n);
    const bool whole = !c->promotes && c->n_args > 1 && c->arg[0].kind == SNUG_ARG_INTEGER &&
                       c->arg[1].kind == SNUG_ARG_INTEGER; /* of which TensorFlow makes f64 */
    const sn_value count = count_up(c, n, sn_fn_dtype(c, "dtype", whole ? SNUG_F64 : c->floats));
    const double step = parts > 0 ? (stop - start) / parts : 0;
    c->out[0] = sn_build_affine(c->b, count, step, start);
    if (sn_fn_flag(c, "retstep")) {
        c->out[1] = sn_build_scalar(c->b, sn_fn_dtype_of(c, c->out[0]), step);
        c->n_out = 2;
    }
}

/* 1 on a diagonal. */
void sn_fn_eye(sn_fn_call *c) {
    const char *const key = sn_fn_place(c, "num_rows") >= 0 ? "num_rows"
                            : sn_fn_place(c, "n") >= 0      ? "n"
                                                            : "N",
                      *const wide = sn_fn_place(c, "num_rows") >= 0 ? "num_columns" : "M";
    const int64_t rows = sn_fn_int(c, key),
                  columns = sn_fn_given(c, wide) ? sn_fn_int(c, wide) : rows, k = sn_fn_int(c, "k");
    snug_type t = {sn_fn_dtype(c, "dtype", c->floats), 2, {rows, columns}}, batch = {.rank = 0};
    if (rows < 0 || columns < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "a matrix of %lld x %lld", (long long)rows,
                            (long long)columns);
    c->out[0] = sn_build_band(c->b, sn_build_fill(c->b, &t, 1), k, k);
    if (!sn_fn_given(c, "batch_shape") || !sn_fn_shape(c, "batch_shape", &batch))
        return;
    if (batch.rank + 2 > SNUG_MAX_RANK)
        return sn_fn_refuse(c, SNUG_E_INVALID, "too many batch axes");
    batch.dims[batch.rank++] = rows;
    batch.dims[batch.rank++] = columns;
    c->out[0] = sn_build_broadcast_to(c->b, c->out[0], &batch);
}

/* Ones on and below a diagonal. */
void sn_fn_tri(sn_fn_call *c) {
    const int64_t rows = sn_fn_int(c, "N"),
                  columns = sn_fn_given(c, "M") ? sn_fn_int(c, "M") : rows;
    const snug_type t = {sn_fn_dtype(c, "dtype", c->floats), 2, {rows, columns}};
    if (rows < 0 || columns < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "a matrix of %lld x %lld", (long long)rows,
                            (long long)columns);
    c->out[0] = sn_build_band(c->b, sn_build_fill(c->b, &t, 1), INT32_MIN, sn_fn_int(c, "k"));
}

/* --- rows of one ------------------------------------------------------------------------------ */
/* Of the values that are given: a tensor keeps its own. */
static snug_dtype mark_dtype(sn_fn_call *c, const snug_argument *on, const snug_argument *off) {
    const snug_argument *const given = sn_fn_is_operand(on)    ? on
                                       : sn_fn_is_operand(off) ? off
                                                               : NULL;
    const bool real = on->kind == SNUG_ARG_REAL || off->kind == SNUG_ARG_REAL,
               plain = on->kind == SNUG_ARG_NONE && off->kind == SNUG_ARG_NONE;
    const snug_dtype whole = on->kind == SNUG_ARG_BOOL ? SNUG_BOOL : SNUG_I32;
    return sn_fn_dtype(c, "dtype",
                       given           ? sn_fn_operand_dtype(c, given)
                       : plain || real ? c->floats
                                       : whole);
}

/* What kernels have for a dtype. */
static snug_dtype made_as(snug_dtype dtype) {
    return dtype == SNUG_BOOL ? SNUG_I32 : sn_dtype_computed(dtype);
}

/* Where tensors say what stands at the index and elsewhere: as they are, to the last bit. */
static sn_value marked(sn_fn_call *c, sn_value hot) {
    static const char *const names[] = {"on_value", "off_value"};
    const snug_dtype dtype = sn_fn_dtype_of(c, hot);
    sn_value marks[2];
    for (int i = 0; i < 2; i++)
        marks[i] = sn_fn_given(c, names[i]) ? sn_build_cast(c->b, sn_fn_named(c, names[i]), dtype)
                                            : sn_build_scalar(c->b, dtype, 1 - i);
    return sn_build_select(c->b, sn_build_cast(c->b, hot, SNUG_BOOL), marks[0], marks[1]);
}

/* on where the index is, off elsewhere, in any dtype. */
void sn_fn_one_hot(sn_fn_call *c) {
    const bool keras = sn_fn_place(c, "num_classes") >= 0;
    const snug_argument on = *sn_fn_argument(c, "on_value"), off = *sn_fn_argument(c, "off_value");
    const bool plain = on.kind == SNUG_ARG_NONE && off.kind == SNUG_ARG_NONE;
    const snug_dtype dtype = mark_dtype(c, &on, &off);
    const sn_one_hot spec = {.depth = sn_fn_int(c, keras ? "num_classes" : "depth"),
                             .dtype = made_as(dtype),
                             .axis = sn_fn_given(c, "axis") ? (int)sn_fn_int(c, "axis") : -1,
                             .on = 1};
    const sn_value at = indices_of(c, 0);
    sn_fn_dense_only(c);
    if (spec.depth < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "depth=%lld", (long long)spec.depth);
    sn_value hot = sn_build_one_hot(c->b, at, &spec);
    if (sn_fn_is_operand(&on) || sn_fn_is_operand(&off)) {
        hot = marked(c, hot);
    } else if (!plain) {
        const double high = on.kind == SNUG_ARG_NONE ? 1 : sn_fn_real(c, "on_value"),
                     low = off.kind == SNUG_ARG_NONE ? 0 : sn_fn_real(c, "off_value");
        hot = sn_fn_affine(c, hot, high - low, low);
    }
    c->out[0] = sn_build_cast(c->b, hot, dtype);
}

/* Which classes an example has: the largest of its one-hot rows, along the axis that Keras
 * takes. */
void sn_fn_multi_hot(sn_fn_call *c) {
    sn_fn_dense_only(c);
    const sn_value at = indices_of(c, 0);
    const int rank = sn_fn_type(c, at).rank, axis = sn_fn_axis(c, "axis", rank + 1, -1);
    const sn_one_hot spec = {.depth = sn_fn_int(c, "num_classes"),
                             .dtype = sn_fn_dtype(c, "dtype", c->floats),
                             .axis = axis == rank ? -1 : axis,
                             .on = 1};
    const sn_value hot = sn_build_one_hot(c->b, at, &spec);
    c->out[0] = rank ? sn_build_max(c->b, hot, rank > 1 ? 2 : 1, false) : hot;
}

/* Position < length. */
void sn_fn_sequence_mask(sn_fn_call *c) {
    const sn_value lengths = sn_fn_value(c, 0);
    const int64_t most = sn_fn_given(c, "maxlen") ? sn_fn_int(c, "maxlen") : c->largest;
    if (most < 0)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                            "needs maxlen: the shape of its result depends on values");
    const sn_value at = count_up(c, most, sn_fn_type(c, lengths).dtype);
    const sn_value mask = sn_build_less(c->b, at, sn_build_expand_dims(c->b, lengths, -1));
    c->out[0] = sn_build_cast(c->b, mask, sn_fn_dtype(c, "dtype", SNUG_BOOL));
}

/* Each vector along an axis of its own. indexing xy: the first two change places. */
void sn_fn_meshgrid(sn_fn_call *c) {
    sn_value x[SNUG_MAX_RANK];
    const int n = sn_fn_values(c, 0, x, SNUG_MAX_RANK);
    const bool swapped = !sn_fn_says(c, "indexing", "ij") && n > 1;
    if (!sn_fn_says(c, "indexing", "ij") && !sn_fn_says(c, "indexing", "xy"))
        return sn_fn_refuse(c, SNUG_E_INVALID, "indexing is 'xy' or 'ij'");
    snug_type t = {.rank = n};
    for (int i = 0; i < n; i++) {
        const int axis = swapped && i < 2 ? 1 - i : i;
        const snug_type of = sn_fn_type(c, x[i]);
        t.dims[axis] = of.rank ? of.dims[0] : 1;
    }
    for (int i = 0; i < n && !sn_fn_failed(c); i++) {
        const int axis = swapped && i < 2 ? 1 - i : i;
        int64_t dims[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        dims[axis] = t.dims[axis];
        c->out[i] = sn_build_broadcast_to(c->b, sn_build_reshape(c->b, x[i], dims, n), &t);
    }
    c->n_out = n;
}

/* Places of edges below each value. */
void sn_fn_searchsorted(sn_fn_call *c) {
    sn_value edges, values;
    sn_fn_pair(c, 0, 1, &edges, &values);
    const int rank = sn_fn_type(c, edges).rank;
    if (rank < 1 || sn_fn_type(c, values).rank < rank)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs a sorted row for each row of values");
    const sn_value row = sn_build_expand_dims(c->b, edges, rank == 1 ? 0 : -2),
                   each = sn_build_expand_dims(c->b, values, -1);
    const sn_value below = sn_fn_says(c, "side", "right") ? sn_build_less_equal(c->b, row, each)
                                                          : sn_build_less(c->b, row, each);
    const snug_dtype dtype = sn_fn_dtype(c, "out_type", SNUG_I32);
    if (!sn_fn_failed(c))
        c->out[0] = sn_build_sum(c->b, sn_build_cast(c->b, below, dtype),
                                 1u << (sn_fn_type(c, below).rank - 1), false);
}

/* NumPy's: the place behind which each value stands. */
void sn_fn_digitize(sn_fn_call *c) {
    sn_value values, edges;
    sn_fn_pair(c, 0, 1, &values, &edges);
    const sn_value below = sn_build_less_equal(c->b, edges, sn_build_expand_dims(c->b, values, -1));
    const int last = sn_fn_type(c, below).rank - 1;
    c->out[0] = sn_fn_failed(c)
                    ? SN_NO_VALUE
                    : sn_build_sum(c->b, sn_build_cast(c->b, below, SNUG_I32), 1u << last, false);
}
