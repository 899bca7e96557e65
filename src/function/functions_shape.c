/* functions_shape.c: functions that move elements without computing: shapes, axes, joining and
 * cutting, repeating and borders. Starts of slices are parameters; extents are structure. */
#include "function/function_call.h"

#include "base/size.h"

#include <string.h>

/* --- shapes ----------------------------------------------------------------------------------- */
void sn_fn_reshape(sn_fn_call *c) {
    snug_type t;
    const sn_value x = sn_fn_value(c, 0);
    const char *const key = sn_fn_place(c, "newshape") >= 0 ? "newshape" : "shape";
    if (!sn_fn_shape(c, key, &t))
        return;
    const snug_argument *const dims = sn_fn_argument(c, key);
    const bool batch = dims->kind == SNUG_ARG_LIST && t.rank > 0 && t.rank == dims->list.n &&
                       dims->list.items[0].kind == SNUG_ARG_NONE;
    int open = 0;
    for (int k = 0; k < t.rank; k++)
        open += t.dims[k] < 0;
    if (batch && open > 1 && c->n_slots > 0 && sn_fn_type(c, x).rank > 0) /* null in a file */
        t.dims[0] = sn_fn_type(c, x).dims[0];
    c->out[0] = sn_build_reshape(c->b, x, t.dims, t.rank);
}

void sn_fn_flatten(sn_fn_call *c) {
    c->out[0] = sn_build_reshape(c->b, sn_fn_value(c, 0), (const int64_t[]){-1}, 1);
}

void sn_fn_transpose(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    int perm[SNUG_MAX_RANK], n;
    const char *const key = sn_fn_place(c, "perm") >= 0      ? "perm"
                            : sn_fn_place(c, "pattern") >= 0 ? "pattern"
                                                             : "axes";
    const int64_t *given = sn_fn_ints(c, key, &n);
    if (given && n != rank)
        return sn_fn_refuse(c, SNUG_E_INVALID, "%d axes are named, the tensor has %d", n, rank);
    for (int k = 0; k < rank; k++)
        perm[k] = !given ? rank - 1 - k : (int)(given[k] < 0 ? given[k] + rank : given[k]);
    c->out[0] = rank > 1 ? sn_build_transpose(c->b, x, perm) : x;
}

void sn_fn_swapaxes(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    c->out[0] = sn_build_swapaxes(c->b, x, (int)sn_fn_int(c, "axis1"), (int)sn_fn_int(c, "axis2"));
}

void sn_fn_matrix_transpose(sn_fn_call *c) {
    c->out[0] = sn_build_swapaxes(c->b, sn_fn_value(c, 0), -2, -1);
}

/* Axes that are not named keep their order around those that are. */
void sn_fn_moveaxis(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    int perm[SNUG_MAX_RANK], n, m, next = 0;
    int64_t from[SN_FN_MAX_ITEMS];
    const int64_t *source = sn_fn_ints(c, "source", &n);
    memcpy(from, source ? source : c->ints, (size_t)n * sizeof *from);
    const int64_t *to = sn_fn_ints(c, "destination", &m);
    uint32_t moved = 0;
    for (int k = 0; k < rank; k++)
        perm[k] = -1;
    for (int i = 0; i < n; i++) {
        const int64_t a = from[i] + (from[i] < 0) * rank,
                      z = i < m ? to[i] + (to[i] < 0) * rank : -1;
        if (n != m || a < 0 || a >= rank || z < 0 || z >= rank)
            return sn_fn_refuse(c, SNUG_E_INVALID, "source and destination must be as many axes");
        perm[z] = (int)a;
        moved |= 1u << a;
    }
    for (int k = 0; k < rank; k++) {
        while (perm[k] < 0 && (moved >> next & 1))
            next++;
        perm[k] = perm[k] < 0 ? next++ : perm[k];
    }
    c->out[0] = rank > 1 ? sn_build_transpose(c->b, x, perm) : x;
}

/* Several axes are those of the result. */
void sn_fn_expand_dims(sn_fn_call *c) {
    int n;
    sn_value x = sn_fn_value(c, 0);
    const int64_t *axes = sn_fn_ints(c, "axis", &n);
    if (n == 1) {
        c->out[0] = sn_build_expand_dims(c->b, x, (int)axes[0]);
        return;
    }
    const int rank = sn_fn_type(c, x).rank + n;
    const uint32_t places = sn_fn_axes(c, "axis", rank);
    for (int k = 0; k < rank && k < 32 && !sn_fn_failed(c); k++)
        x = places >> k & 1 ? sn_build_expand_dims(c->b, x, k) : x;
    c->out[0] = x;
}

void sn_fn_squeeze(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const uint32_t axes = sn_fn_axes(c, "axis", t.rank);
    int64_t dims[SNUG_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < t.rank; k++) {
        const bool named = (axes >> k & 1) != 0;
        if (named && t.dims[k] != 1)
            return sn_fn_refuse(c, SNUG_E_INVALID, "axis %d has the extent %lld, not 1", k,
                                (long long)t.dims[k]);
        if (!named && (axes || t.dims[k] != 1))
            dims[rank++] = t.dims[k];
    }
    c->out[0] = sn_build_reshape(c->b, x, dims, rank);
}

void sn_fn_broadcast_to(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    snug_type t;
    if (sn_fn_shape(c, "shape", &t))
        c->out[0] = sn_build_broadcast_to(c->b, x, &t);
}

/* --- what is known of a tensor ---------------------------------------------------------------- */
void sn_fn_shape_of(sn_fn_call *c) {
    const snug_type t = sn_fn_type(c, sn_fn_value(c, 0));
    const snug_type out = {sn_fn_dtype(c, "out_type", SNUG_I32), 1, {t.rank}};
    sn_fn_known(c, &out, t.dims);
}

void sn_fn_size_of(sn_fn_call *c) {
    const snug_type t = sn_fn_type(c, sn_fn_value(c, 0));
    const snug_type out = {.dtype = sn_fn_dtype(c, "out_type", SNUG_I32)};
    sn_fn_known(c, &out, &(int64_t){sn_type_count(&t)});
}

void sn_fn_rank_of(sn_fn_call *c) {
    const snug_type t = sn_fn_type(c, sn_fn_value(c, 0));
    sn_fn_known(c, &(snug_type){.dtype = SNUG_I32}, &(int64_t){t.rank});
}

/* --- several tensors -------------------------------------------------------------------------- */
/* Any number of them: an operator takes SN_MAX_IN. */
static sn_value join(sn_fn_call *c, sn_value *x, int n, int axis) {
    while (n > SN_MAX_IN) {
        int m = 0;
        for (int i = 0; i < n; i += SN_MAX_IN) {
            const int some = n - i < SN_MAX_IN ? n - i : SN_MAX_IN;
            x[m++] = sn_build_concat(c->b, x + i, some, axis);
        }
        n = m;
    }
    return sn_build_concat(c->b, x, n, axis);
}

void sn_fn_concat(sn_fn_call *c) {
    sn_value *x;
    const int n = sn_fn_list(c, 0, &x);
    if (n)
        c->out[0] = join(c, x, n, sn_fn_axis(c, "axis", sn_fn_type(c, x[0]).rank, 0));
}

static void stack_along(sn_fn_call *c, sn_value *x, int n, int axis) {
    for (int i = 0; i < n; i++)
        x[i] = sn_build_expand_dims(c->b, x[i], axis);
    c->out[0] = n ? join(c, x, n, axis) : SN_NO_VALUE;
}

void sn_fn_stack(sn_fn_call *c) {
    sn_value *x;
    const snug_argument *a = c->n_args ? &c->arg[0] : NULL;
    if (a && sn_fn_is_operand(a)) { /* its rows, along an axis that is there already */
        c->out[0] = sn_fn_value(c, 0);
        return;
    }
    const int n = sn_fn_list(c, 0, &x);
    if (n)
        stack_along(c, x, n, sn_fn_axis(c, "axis", sn_fn_type(c, x[0]).rank + 1, 0));
}

/* Vectors and more: hstack joins along axis 1 (of vectors 0), vstack along 0 (vectors are rows). */
void sn_fn_hstack(sn_fn_call *c) {
    sn_value *x;
    const int n = sn_fn_list(c, 0, &x);
    if (n)
        c->out[0] = join(c, x, n, sn_fn_type(c, x[0]).rank > 1 ? 1 : 0);
}

void sn_fn_vstack(sn_fn_call *c) {
    sn_value *x;
    const int n = sn_fn_list(c, 0, &x);
    if (!n)
        return;
    if (sn_fn_type(c, x[0]).rank < 2)
        stack_along(c, x, n, 0);
    else
        c->out[0] = join(c, x, n, 0);
}

void sn_fn_unstack(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_axis(c, "axis", t.rank, 0);
    if (sn_fn_failed(c))
        return;
    if (sn_fn_given(c, "num") && sn_fn_int(c, "num") != t.dims[axis])
        return sn_fn_refuse(c, SNUG_E_INVALID, "num=%lld of an axis of %lld",
                            (long long)sn_fn_int(c, "num"), (long long)t.dims[axis]);
    if (t.dims[axis] > SN_FN_MAX_OUT)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "%lld parts; at most %d are possible",
                            (long long)t.dims[axis], SN_FN_MAX_OUT);
    for (int64_t i = 0; i < t.dims[axis]; i++)
        c->out[i] = sn_build_squeeze(c->b, sn_build_part(c->b, x, axis, i, 1), axis);
    c->n_out = (int)t.dims[axis];
}

/* Extents of the parts: so many equal ones, or as listed, one of which may be -1. */
static int part_sizes(sn_fn_call *c, int64_t extent, int64_t *sizes) {
    int n;
    const bool list = sn_fn_argument(c, "num_or_size_splits")->kind == SNUG_ARG_LIST;
    const int64_t *given = sn_fn_ints(c, "num_or_size_splits", &n);
    const int64_t count = !given || n < 1 ? 0 : list ? n : given[0];
    int64_t known = 0, open = -1;
    if (count < 1 || count > SN_FN_MAX_OUT || (!list && extent % count)) {
        sn_fn_refuse(c, SNUG_E_INVALID, "an extent of %lld does not split into %lld equal parts",
                     (long long)extent, (long long)count);
        return 0;
    }
    bool fits = true, clear = true; /* the sum fits; at most one extent is left out, as -1 */
    for (int64_t i = 0; i < count; i++) {
        sizes[i] = list ? given[i] : extent / count;
        clear = clear && (sizes[i] >= 0 || (sizes[i] == -1 && open < 0));
        open = sizes[i] < 0 ? i : open;
        fits = fits && sn_i64_add(known, sizes[i] < 0 ? 0 : sizes[i], &known);
    }
    if (fits && open >= 0) {
        sizes[open] = extent - known;
        known = extent;
    }
    if (!clear)
        sn_fn_refuse(c, SNUG_E_INVALID,
                     "extents of parts are at least 0, and one of them may be -1");
    if (!fits || known != extent || (open >= 0 && sizes[open] < 0))
        sn_fn_refuse(c, SNUG_E_INVALID, "the parts have %lld elements, the axis %lld",
                     (long long)known, (long long)extent);
    return (int)count;
}

static void give_parts(sn_fn_call *c, sn_value x, int axis, const int64_t *sizes, int n) {
    int64_t at = 0;
    for (int i = 0; i < n && !sn_fn_failed(c); i++) {
        c->out[i] = sn_build_part(c->b, x, axis, at, sizes[i]);
        at += sizes[i];
    }
    c->n_out = n;
}

void sn_fn_split(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_axis(c, "axis", t.rank, 0);
    int64_t sizes[SN_FN_MAX_OUT];
    if (sn_fn_failed(c))
        return;
    const int n = part_sizes(c, t.dims[axis], sizes);
    give_parts(c, x, axis, sizes, n);
}

/* NumPy's: a list says where to cut. */
void sn_fn_array_split(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_axis(c, "axis", t.rank, 0);
    const bool list = sn_fn_argument(c, "indices_or_sections")->kind == SNUG_ARG_LIST;
    int64_t sizes[SN_FN_MAX_OUT], at = 0;
    int n;
    const int64_t *cuts = sn_fn_ints(c, "indices_or_sections", &n);
    if (sn_fn_failed(c) || !cuts)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs indices or a number of sections");
    const int64_t extent = t.dims[axis], count = list ? n + 1 : cuts[0];
    if (count < 1 || count > SN_FN_MAX_OUT || (!list && extent % count))
        return sn_fn_refuse(c, SNUG_E_INVALID, "an extent of %lld does not split into %lld parts",
                            (long long)extent, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t end = i + 1 == count ? extent : list ? cuts[i] : (i + 1) * (extent / count);
        sizes[i] = end > at ? end - at : 0;
        at += sizes[i];
    }
    give_parts(c, x, axis, sizes, (int)count);
}

/* --- repeating and turning -------------------------------------------------------------------- */
void sn_fn_tile(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    snug_type t = sn_fn_type(c, x);
    int64_t counts[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    int n;
    const int64_t *given =
        sn_fn_ints(c, sn_fn_place(c, "repeats") >= 0 ? "repeats" : "multiples", &n);
    if (n > SNUG_MAX_RANK || (n != t.rank && !c->promotes))
        return sn_fn_refuse(c, SNUG_E_INVALID, "%d multiples of a tensor with %d axes", n, t.rank);
    for (; t.rank < n && !sn_fn_failed(c); t.rank++)
        x = sn_build_expand_dims(c->b, x, 0);
    for (int k = 0; k < n; k++)
        counts[t.rank - n + k] = given[k];
    c->out[0] = sn_build_tile(c->b, x, counts);
}

/* Each element of an axis as often as the list says. */
static sn_value repeat_each(sn_fn_call *c, sn_value x, int axis, const int64_t *times, int n) {
    sn_value parts[SN_FN_MAX_ITEMS];
    int m = 0;
    for (int i = 0; i < n && !sn_fn_failed(c); i++) {
        snug_type t = sn_fn_type(c, x);
        t.dims[axis] = times[i];
        if (times[i] > 0)
            parts[m++] = sn_build_broadcast_to(c->b, sn_build_part(c->b, x, axis, i, 1), &t);
    }
    return m ? join(c, parts, m, axis) : sn_build_part(c->b, x, axis, 0, 0);
}

void sn_fn_repeat(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    int64_t counts[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    int n;
    if (!sn_fn_given(c, "axis"))
        x = sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_axis(c, "axis", t.rank, 0);
    const int64_t *times = sn_fn_ints(c, "repeats", &n);
    if (sn_fn_failed(c) || n < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs a number of repeats");
    if (n > 1 && n != t.dims[axis])
        return sn_fn_refuse(c, SNUG_E_INVALID, "%d numbers of repeats, the axis has %lld elements",
                            n, (long long)t.dims[axis]);
    counts[axis] = times[0];
    c->out[0] = n == 1 ? sn_build_repeat(c->b, x, counts) : repeat_each(c, x, axis, times, n);
}

void sn_fn_reverse(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    const uint32_t axes = sn_fn_axes(c, sn_fn_place(c, "axes") >= 0 ? "axes" : "axis", rank);
    const bool all = c->promotes && !sn_fn_given(c, "axis");
    c->out[0] = rank ? sn_build_flip(c->b, x, all ? (1u << rank) - 1 : axes) : x;
}

void sn_fn_roll(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    int64_t shifts[SN_FN_MAX_ITEMS];
    int n, m;
    const int64_t *given = sn_fn_ints(c, "shift", &n);
    memcpy(shifts, given ? given : c->ints, (size_t)n * sizeof *shifts);
    const int64_t *axes = sn_fn_ints(c, "axis", &m);
    if (!axes) { /* of all elements in their order */
        x = sn_build_roll(c->b, sn_build_reshape(c->b, x, (const int64_t[]){-1}, 1), 0,
                          n ? shifts[0] : 0);
        c->out[0] = sn_build_reshape(c->b, x, t.dims, t.rank);
        return;
    }
    if (n != m)
        return sn_fn_refuse(c, SNUG_E_INVALID, "%d shifts for %d axes", n, m);
    for (int i = 0; i < n; i++)
        x = sn_build_roll(c->b, x, (int)axes[i], shifts[i]);
    c->out[0] = x;
}

static sn_value pad_edge(sn_fn_call *c, sn_value x, const int64_t *before, const int64_t *after) {
    const snug_type t = sn_fn_type(c, x);
    for (int k = 0; k < t.rank && !sn_fn_failed(c); k++) {
        snug_type wide = sn_fn_type(c, x);
        sn_value parts[3];
        int n = 0;
        wide.dims[k] = before[k];
        if (before[k] > 0)
            parts[n++] = sn_build_broadcast_to(c->b, sn_build_part(c->b, x, k, 0, 1), &wide);
        parts[n++] = x;
        wide.dims[k] = after[k];
        if (after[k] > 0)
            parts[n++] =
                sn_build_broadcast_to(c->b, sn_build_part(c->b, x, k, t.dims[k] - 1, 1), &wide);
        x = sn_build_concat(c->b, parts, n, k);
    }
    return x;
}

/* Keras makes a float32 of a real number; a whole one keeps its digits. */
static double border_number(sn_fn_call *c) {
    const double v = sn_fn_real(c, "constant_values");
    const bool real = sn_fn_argument(c, "constant_values")->kind == SNUG_ARG_REAL;
    return c->promotes && real ? (double)(float)v : v;
}

/* A border of more bits than a graph's numbers have is 0 beside what is lower by it. */
static sn_value pad_constant(sn_fn_call *c, sn_value x, const int64_t *before,
                             const int64_t *after) {
    const snug_argument *const a = sn_fn_argument(c, "constant_values");
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    if (dtype != SNUG_I64 || a->kind != SNUG_ARG_INTEGER || !sn_fn_is_wide(a->integer))
        return sn_build_pad(c->b, x, before, after, border_number(c));
    const sn_value v = sn_fn_scalar(c, a, dtype);
    return sn_build_add(c->b, sn_build_pad(c->b, sn_build_sub(c->b, x, v), before, after, 0), v);
}

void sn_fn_pad(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    int64_t before[SNUG_MAX_RANK], after[SNUG_MAX_RANK];
    int n;
    const int64_t *widths =
        sn_fn_ints(c, sn_fn_place(c, "pad_width") >= 0 ? "pad_width" : "paddings", &n);
    if (n != 2 * rank && !(c->promotes && (n == 1 || n == 2)))
        return sn_fn_refuse(c, SNUG_E_INVALID, "%d widths; two are needed for each of %d axes", n,
                            rank);
    for (int k = 0; k < rank; k++) {
        before[k] = widths[n == 2 * rank ? 2 * k : 0];
        after[k] = widths[n == 2 * rank ? 2 * k + 1 : n - 1];
    }
    if (sn_fn_says(c, "mode", "reflect") || sn_fn_says(c, "mode", "symmetric"))
        c->out[0] = sn_build_pad_mirror(c->b, x, before, after, sn_fn_says(c, "mode", "symmetric"));
    else if (sn_fn_says(c, "mode", "edge"))
        c->out[0] = pad_edge(c, x, before, after);
    else if (sn_fn_says(c, "mode", "constant"))
        c->out[0] = pad_constant(c, x, before, after);
    else
        sn_fn_refuse(c, SNUG_E_INVALID, "mode must be CONSTANT, REFLECT or SYMMETRIC");
}

/* --- parts ------------------------------------------------------------------------------------ */
void sn_fn_slice(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    int64_t begin[SNUG_MAX_RANK], size[SNUG_MAX_RANK];
    snug_type from, to;
    if (!sn_fn_shape(c, sn_fn_place(c, "begin") >= 0 ? "begin" : "start_indices", &from) ||
        !sn_fn_shape(c, sn_fn_place(c, "size") >= 0 ? "size" : "shape", &to))
        return;
    if (from.rank != t.rank || to.rank != t.rank)
        return sn_fn_refuse(c, SNUG_E_INVALID, "begin and size need an entry for each of %d axes",
                            t.rank);
    for (int k = 0; k < t.rank; k++) {
        const int64_t rest = from.dims[k] < 0 ? -1 : t.dims[k] - from.dims[k];
        begin[k] = from.dims[k];
        size[k] = to.dims[k] < 0 ? rest : to.dims[k];
        if (rest < 0 || size[k] > rest)
            return sn_fn_refuse(c, SNUG_E_INVALID, "%lld from %lld on of axis %d, which has %lld",
                                (long long)size[k], (long long)begin[k], k, (long long)t.dims[k]);
    }
    c->out[0] = t.rank ? sn_build_slice(c->b, x, begin, size, NULL) : x;
}

/* One slice per axis of x, as tf.strided_slice's lists and masks say it. */
typedef struct {
    snug_type t;
    int64_t begin[SN_FN_MAX_ITEMS], end[SN_FN_MAX_ITEMS], stride[SN_FN_MAX_ITEMS];
    int n; /* entries of the lists */
    int64_t begins, ends, ellipsis, new_axes, shrinks;
    int64_t from[SNUG_MAX_RANK], size[SNUG_MAX_RANK], by[SNUG_MAX_RANK];
    int64_t dims[2 * SNUG_MAX_RANK];
    int axis, rank; /* of x; of the result */
} strided;

static bool has(int64_t mask, int i) {
    return i < 63 && (mask >> i & 1);
}

static bool take_all(strided *s) {
    const bool there = s->axis < s->t.rank && s->rank < 2 * SNUG_MAX_RANK;
    if (there) {
        s->from[s->axis] = 0;
        s->by[s->axis] = 1;
        s->size[s->axis] = s->dims[s->rank++] = s->t.dims[s->axis];
        s->axis++;
    }
    return there;
}

/* Entry i as Python's start:stop:step of an extent. */
static void take_range(strided *s, int i) {
    const int64_t extent = s->t.dims[s->axis], step = s->stride[i];
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
    int64_t start = s->begin[i] + (s->begin[i] < 0) * extent,
            stop = s->end[i] + (s->end[i] < 0) * extent;
    start = start < low ? low : start > high ? high : start;
    stop = stop < low ? low : stop > high ? high : stop;
    start = has(s->begins, i) ? (step < 0 ? high : low) : start;
    stop = has(s->ends, i) ? (step < 0 ? low : high) : stop;
    const int64_t reach = step < 0 ? start - stop : stop - start, pace = step < 0 ? -step : step;
    s->size[s->axis] = reach > 0 ? (reach - 1) / pace + 1 : 0;
    s->from[s->axis] = reach > 0 ? start : 0;
    s->by[s->axis] = reach > 0 ? step : 1;
    s->dims[s->rank++] = s->size[s->axis++];
}

static void take_entry(sn_fn_call *c, strided *s, int i) {
    if (s->rank >= 2 * SNUG_MAX_RANK || (s->axis >= s->t.rank && !has(s->new_axes, i)))
        return sn_fn_refuse(c, SNUG_E_INVALID, "too many indices for a tensor with %d axes",
                            s->t.rank);
    if (has(s->new_axes, i)) {
        s->dims[s->rank++] = 1;
        return;
    }
    if (s->stride[i] == 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "strides[%d] must be non-zero", i);
    if (!has(s->shrinks, i))
        return take_range(s, i);
    const int64_t extent = s->t.dims[s->axis], at = s->begin[i] + (s->begin[i] < 0) * extent;
    if (at < 0 || at >= extent)
        return sn_fn_refuse(c, SNUG_E_INVALID, "slice index %lld of dimension %d out of bounds",
                            (long long)s->begin[i], s->axis);
    s->from[s->axis] = at;
    s->by[s->axis] = s->size[s->axis] = 1;
    s->axis++;
}

static bool read_strided(sn_fn_call *c, strided *s) {
    int n;
    const int64_t *v = sn_fn_ints(c, "begin", &s->n);
    memcpy(s->begin, v ? v : c->ints, (size_t)s->n * sizeof *v);
    v = sn_fn_ints(c, "end", &n);
    memcpy(s->end, v ? v : c->ints, (size_t)n * sizeof *v);
    if (n != s->n)
        sn_fn_refuse(c, SNUG_E_INVALID, "begin has %d entries, end %d", s->n, n);
    v = sn_fn_ints(c, "strides", &n);
    for (int i = 0; i < s->n; i++)
        s->stride[i] = v && i < n ? v[i] : 1;
    s->begins = sn_fn_int(c, "begin_mask");
    s->ends = sn_fn_int(c, "end_mask");
    s->ellipsis = sn_fn_int(c, "ellipsis_mask");
    s->new_axes = sn_fn_int(c, "new_axis_mask");
    s->shrinks = sn_fn_int(c, "shrink_axis_mask");
    return !sn_fn_failed(c);
}

/* Whether every element of x is taken, in its order. */
static bool is_everything(const strided *s) {
    for (int k = 0; k < s->t.rank; k++)
        if (s->size[k] != s->t.dims[k] || s->by[k] != 1)
            return false;
    return true;
}

void sn_fn_strided_slice(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    strided s = {.t = sn_fn_type(c, x)};
    if (!read_strided(c, &s))
        return;
    for (int i = 0; i < s.n && !sn_fn_failed(c); i++) {
        if (!has(s.ellipsis, i) || has(s.new_axes, i)) {
            take_entry(c, &s, i);
            continue;
        }
        int left = 0;
        for (int k = i + 1; k < s.n; k++)
            left += !has(s.new_axes, k);
        while (s.axis < s.t.rank - left && take_all(&s)) {
        }
    }
    while (!sn_fn_failed(c) && take_all(&s)) {
    }
    if (s.rank > SNUG_MAX_RANK)
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "the result has %d axes; at most %d are possible",
                     s.rank, SNUG_MAX_RANK);
    if (sn_fn_failed(c))
        return;
    const sn_value part = is_everything(&s) ? x : sn_build_slice(c->b, x, s.from, s.size, s.by);
    const snug_type out = {s.t.dtype, s.rank, {0}};
    snug_type wanted = out;
    memcpy(wanted.dims, s.dims, sizeof wanted.dims);
    const snug_type got = sn_fn_type(c, part);
    c->out[0] =
        sn_dims_equal(&got, &wanted) ? part : sn_build_reshape(c->b, part, wanted.dims, s.rank);
}

/* --- pictures as channels --------------------------------------------------------------------- */
void sn_fn_space_to_depth(sn_fn_call *c) {
    static const int perm[6] = {0, 1, 3, 2, 4, 5};
    const sn_value x = sn_fn_channels_last(c, sn_fn_value(c, 0));
    const snug_type t = sn_fn_type(c, x);
    const int64_t n = sn_fn_int(c, "block_size");
    if (t.rank != 4 || n < 1 || t.dims[1] % n || t.dims[2] % n)
        return sn_fn_refuse(c, SNUG_E_INVALID, "blocks of %lld do not fit the picture",
                            (long long)n);
    const int64_t parts[6] = {t.dims[0], t.dims[1] / n, n, t.dims[2] / n, n, t.dims[3]},
                  flat[4] = {t.dims[0], t.dims[1] / n, t.dims[2] / n, -1};
    const sn_value blocks = sn_build_transpose(c->b, sn_build_reshape(c->b, x, parts, 6), perm);
    c->out[0] = sn_fn_channels_back(c, sn_build_reshape(c->b, blocks, flat, 4));
}

void sn_fn_depth_to_space(sn_fn_call *c) {
    static const int perm[6] = {0, 1, 3, 2, 4, 5};
    const sn_value x = sn_fn_channels_last(c, sn_fn_value(c, 0));
    const snug_type t = sn_fn_type(c, x);
    const int64_t n = sn_fn_int(c, "block_size");
    if (t.rank != 4 || n < 1 || n > INT32_MAX || t.dims[3] % (n * n))
        return sn_fn_refuse(c, SNUG_E_INVALID, "channels do not make blocks of %lld", (long long)n);
    const int64_t parts[6] = {t.dims[0], t.dims[1], t.dims[2], n, n, t.dims[3] / (n * n)},
                  flat[4] = {t.dims[0], t.dims[1] * n, t.dims[2] * n, parts[5]};
    const sn_value blocks = sn_build_transpose(c->b, sn_build_reshape(c->b, x, parts, 6), perm);
    c->out[0] = sn_fn_channels_back(c, sn_build_reshape(c->b, blocks, flat, 4));
}
