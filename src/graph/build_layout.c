/* build_layout.c: rearranging values by the rows that move elements. Everything here is a
 * composition: slices, concatenations, reshapes and broadcasts, so gradients and splits come from
 * the rows.
 *
 * 1. Axes may be negative: they count from the end.
 * 2. The batch axis may be unknown (-1) as long as nothing is cut, turned or repeated along it. */
#include "graph/build.h"

#include "base/size.h"

#include <string.h>

/* --- what the helpers share ------------------------------------------------------------------- */
static sn_value refuse(sn_builder *b, snug_status status) {
    b->error.code = status;
    return SN_NO_VALUE;
}

/* Copies the type of x; false after an error or when there is no x. */
static bool type_of(sn_builder *b, sn_value x, snug_type *out) {
    if (b->error.code != SNUG_OK)
        return false;
    if (x.i >= sn_graph_n_values(b->graph)) {
        refuse(b, sn_fail(&b->error, SNUG_E_INVALID, "value %u is not in the graph", x.i));
        return false;
    }
    *out = *sn_graph_type(b->graph, x);
    return true;
}

/* Makes *axis count from 0; axes of a value of this rank. */
static bool resolve_axis(sn_builder *b, int rank, int *axis) {
    const int given = *axis;
    if (b->error.code != SNUG_OK)
        return false;
    *axis = given < 0 ? given + rank : given;
    if (*axis >= 0 && *axis < rank)
        return true;
    refuse(b, sn_fail(&b->error, SNUG_E_INVALID, "axis %d of a value with %d axes", given, rank));
    return false;
}

/* That axis k, along which elements move, has a known extent. */
static bool is_known(sn_builder *b, const snug_type *t, int k) {
    if (t->dims[k] >= 0)
        return true;
    refuse(b, sn_fail(&b->error, SNUG_E_SHAPE,
                      "axis %d has no known extent; give the batch size first", k));
    return false;
}

/* --- axes of extent 1, and their order -------------------------------------------------------- */
sn_value sn_build_expand_dims(sn_builder *b, sn_value x, int axis) {
    snug_type t;
    if (!type_of(b, x, &t) || !resolve_axis(b, t.rank + 1, &axis))
        return SN_NO_VALUE;
    if (t.rank == SNUG_MAX_RANK)
        return refuse(
            b, sn_fail(&b->error, SNUG_E_SHAPE, "a value has at most %d axes", SNUG_MAX_RANK));
    memmove(t.dims + axis + 1, t.dims + axis, (size_t)(t.rank - axis) * sizeof t.dims[0]);
    t.dims[axis] = 1;
    return sn_build_reshape(b, x, t.dims, t.rank + 1);
}

sn_value sn_build_squeeze(sn_builder *b, sn_value x, int axis) {
    snug_type t;
    if (!type_of(b, x, &t) || !resolve_axis(b, t.rank, &axis))
        return SN_NO_VALUE;
    if (t.dims[axis] != 1)
        return refuse(b, sn_fail(&b->error, SNUG_E_SHAPE,
                                 "axis %d has the extent %lld; only 1 can be left out", axis,
                                 (long long)t.dims[axis]));
    memmove(t.dims + axis, t.dims + axis + 1, (size_t)(t.rank - axis - 1) * sizeof t.dims[0]);
    return sn_build_reshape(b, x, t.dims, t.rank - 1);
}

sn_value sn_build_swapaxes(sn_builder *b, sn_value x, int one, int other) {
    snug_type t;
    int perm[SNUG_MAX_RANK];
    if (!type_of(b, x, &t) || !resolve_axis(b, t.rank, &one) || !resolve_axis(b, t.rank, &other))
        return SN_NO_VALUE;
    for (int k = 0; k < t.rank; k++)
        perm[k] = k == one ? other : k == other ? one : k;
    return one == other ? x : sn_build_transpose(b, x, perm);
}

/* --- slices ----------------------------------------------------------------------------------- */
sn_value sn_build_slice(sn_builder *b, sn_value x, const int64_t *begin, const int64_t *size,
                        const int64_t *stride) {
    snug_type t;
    if (!type_of(b, x, &t))
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes.n = a.slice.strides.n = t.rank;
    for (int k = 0; k < t.rank; k++) {
        a.slice.sizes.v[k] = size[k];
        a.slice.strides.v[k] = stride ? stride[k] : 1;
        a.slice.start[k] = (int64_t)sn_build_key(b, "", begin[k]).i;
    }
    return sn_build(b, SN_OP_slice, &a, &x, 1);
}

sn_value sn_build_part(sn_builder *b, sn_value x, int axis, int64_t begin, int64_t size) {
    snug_type t;
    int64_t from[SNUG_MAX_RANK] = {0}, n[SNUG_MAX_RANK];
    if (!type_of(b, x, &t) || !resolve_axis(b, t.rank, &axis))
        return SN_NO_VALUE;
    if (begin == 0 && size == t.dims[axis])
        return x;
    for (int k = 0; k < t.rank; k++)
        n[k] = -1;
    from[axis] = begin;
    n[axis] = size;
    return sn_build_slice(b, x, from, n, NULL);
}

sn_value sn_build_flip(sn_builder *b, sn_value x, uint32_t axes) {
    snug_type t;
    int64_t from[SNUG_MAX_RANK], n[SNUG_MAX_RANK], by[SNUG_MAX_RANK];
    if (!type_of(b, x, &t))
        return SN_NO_VALUE;
    for (int k = 0; k < t.rank; k++) {
        const bool turned = (axes >> k & 1) != 0;
        if (turned && !is_known(b, &t, k))
            return SN_NO_VALUE;
        n[k] = turned ? t.dims[k] : -1;
        from[k] = turned && t.dims[k] > 0 ? t.dims[k] - 1 : 0;
        by[k] = turned ? -1 : 1;
    }
    return sn_build_slice(b, x, from, n, by);
}

/* --- several values as one -------------------------------------------------------------------- */
sn_value sn_build_concat(sn_builder *b, const sn_value *in, int n, int axis) {
    snug_type t;
    if (!type_of(b, in[0], &t) || !resolve_axis(b, t.rank, &axis))
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_concat, &a);
    a.axis.axis = axis;
    return n == 1 ? in[0] : sn_build(b, SN_OP_concat, &a, in, n);
}

sn_value sn_build_stack(sn_builder *b, const sn_value *in, int n, int axis) {
    sn_value tall[SN_MAX_IN];
    snug_type t;
    if (!type_of(b, in[0], &t) || !resolve_axis(b, t.rank + 1, &axis))
        return SN_NO_VALUE;
    for (int i = 0; i < n && i < SN_MAX_IN; i++)
        tall[i] = sn_build_expand_dims(b, in[i], axis);
    return n <= SN_MAX_IN ? sn_build_concat(b, tall, n, axis)
                          : refuse(b, sn_fail(&b->error, SNUG_E_UNSUPPORTED,
                                              "stacks %d values; the most is %d", n, SN_MAX_IN));
}

sn_value sn_build_roll(sn_builder *b, sn_value x, int axis, int64_t shift) {
    snug_type t;
    if (!type_of(b, x, &t) || !resolve_axis(b, t.rank, &axis) || !is_known(b, &t, axis))
        return SN_NO_VALUE;
    const int64_t extent = t.dims[axis], rest = extent > 0 ? shift % extent : 0,
                  by = rest < 0 ? rest + extent : rest;
    if (by == 0)
        return x;
    const sn_value in[2] = {sn_build_part(b, x, axis, extent - by, by),
                            sn_build_part(b, x, axis, 0, extent - by)};
    return sn_build_concat(b, in, 2, axis);
}

/* --- the same several times ------------------------------------------------------------------- */
/* The product of the extents of axes [from, to); -1 when one is unknown. */
static int64_t span_of(const snug_type *t, int from, int to) {
    bool known = true;
    for (int k = from; k < to; k++)
        known = known && t->dims[k] >= 0;
    return known ? sn_type_span(t, from, to) : -1;
}

/* An axis of extent 1 is broadcast: before the repeated one, copies of the whole axis follow one
 * another; behind it, copies of each element do. One axis after the other, because sums over one
 * axis (the gradients) are fast. */
static sn_value repeat_axis(sn_builder *b, sn_value x, int axis, int64_t n, bool whole) {
    snug_type t;
    if (!type_of(b, x, &t) || !is_known(b, &t, axis))
        return SN_NO_VALUE;
    const int cut = whole ? axis : axis + 1;
    snug_type wide = {.dtype = t.dtype, .rank = 3};
    wide.dims[0] = span_of(&t, 0, cut);
    wide.dims[1] = 1;
    wide.dims[2] = span_of(&t, cut, t.rank);
    const sn_value thin = sn_build_reshape(b, x, wide.dims, 3);
    wide.dims[1] = n;
    if (n < 0 || !sn_i64_mul(t.dims[axis], n, &t.dims[axis]))
        return refuse(b, sn_fail(&b->error, SNUG_E_INVALID, "repeats axis %d %lld times", axis,
                                 (long long)n));
    return sn_build_reshape(b, sn_build_broadcast_to(b, thin, &wide), t.dims, t.rank);
}

static sn_value repeat(sn_builder *b, sn_value x, const int64_t *counts, bool whole) {
    snug_type t;
    if (!type_of(b, x, &t))
        return SN_NO_VALUE;
    for (int k = t.rank - 1; k >= 0; k--)
        if (counts[k] != 1)
            x = repeat_axis(b, x, k, counts[k], whole);
    return x;
}

sn_value sn_build_repeat(sn_builder *b, sn_value x, const int64_t *counts) {
    return repeat(b, x, counts, false);
}

sn_value sn_build_tile(sn_builder *b, sn_value x, const int64_t *counts) {
    return repeat(b, x, counts, true);
}

/* --- borders ---------------------------------------------------------------------------------- */
sn_value sn_build_pad(sn_builder *b, sn_value x, const int64_t *before, const int64_t *after,
                      double value) {
    snug_type t;
    bool any = false;
    if (!type_of(b, x, &t))
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_pad, &a);
    a.pad.before.n = a.pad.after.n = t.rank;
    for (int k = 0; k < t.rank; k++) {
        a.pad.before.v[k] = before[k];
        a.pad.after.v[k] = after[k];
        any = any || before[k] != 0 || after[k] != 0;
    }
    a.pad.value = (int64_t)sn_build_param(b, "", value).i;
    return any ? sn_build(b, SN_OP_pad, &a, &x, 1) : x;
}

/* `size` elements of x from `begin` on, in the opposite order. */
static sn_value mirrored(sn_builder *b, sn_value x, int axis, int64_t begin, int64_t size) {
    return sn_build_flip(b, sn_build_part(b, x, axis, begin, size), 1u << axis);
}

sn_value sn_build_pad_mirror(sn_builder *b, sn_value x, const int64_t *before, const int64_t *after,
                             bool edge_twice) {
    snug_type t;
    const int64_t skip = edge_twice ? 0 : 1;
    if (!type_of(b, x, &t))
        return SN_NO_VALUE;
    for (int k = 0; k < t.rank; k++) {
        const int64_t extent = t.dims[k];
        sn_value parts[3];
        int n = 0;
        if (before[k] == 0 && after[k] == 0)
            continue;
        if (!is_known(b, &t, k))
            return SN_NO_VALUE;
        if (before[k] < 0 || after[k] < 0 || before[k] > extent - skip || after[k] > extent - skip)
            return refuse(b, sn_fail(&b->error, SNUG_E_SHAPE,
                                     "mirrors %lld and %lld elements of axis %d; it has %lld",
                                     (long long)before[k], (long long)after[k], k,
                                     (long long)(extent - skip)));
        if (before[k] > 0)
            parts[n++] = mirrored(b, x, k, skip, before[k]);
        parts[n++] = x;
        if (after[k] > 0)
            parts[n++] = mirrored(b, x, k, extent - skip - after[k], after[k]);
        x = sn_build_concat(b, parts, n, k);
    }
    return x;
}

/* --- indexing --------------------------------------------------------------------------------- */
sn_value sn_build_gather_nd(sn_builder *b, sn_value x, sn_value indices, int batch) {
    const sn_value in[2] = {x, indices};
    sn_attrs a;
    sn_attrs_default(SN_OP_gather_nd, &a);
    a.batch.batch = batch;
    return sn_build(b, SN_OP_gather_nd, &a, in, 2);
}

/* The axis goes last; then each row of x has indices of its own. */
sn_value sn_build_take_along_axis(sn_builder *b, sn_value x, sn_value indices, int axis) {
    snug_type t;
    if (!type_of(b, x, &t) || !resolve_axis(b, t.rank, &axis))
        return SN_NO_VALUE;
    const int last = t.rank - 1;
    const sn_value rows = sn_build_swapaxes(b, x, axis, last),
                   at = sn_build_expand_dims(b, sn_build_swapaxes(b, indices, axis, last), -1);
    return sn_build_swapaxes(b, sn_build_gather_nd(b, rows, at, last), axis, last);
}

sn_value sn_build_one_hot(sn_builder *b, sn_value indices, const sn_one_hot *spec) {
    snug_type t;
    int axis = spec->axis, perm[SNUG_MAX_RANK];
    if (!type_of(b, indices, &t) || !resolve_axis(b, t.rank + 1, &axis))
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = spec->depth;
    a.one_hot.dtype = spec->dtype;
    sn_value hot = sn_build(b, SN_OP_one_hot, &a, &indices, 1);
    for (int k = 0; k <= t.rank && k < SNUG_MAX_RANK; k++)
        perm[k] = k < axis ? k : k == axis ? t.rank : k - 1;
    if (axis != t.rank)
        hot = sn_build_transpose(b, hot, perm);
    if (spec->on == 1 && spec->off == 0)
        return hot;
    return sn_build_affine(b, hot, spec->on - spec->off, spec->off);
}

sn_value sn_build_band(sn_builder *b, sn_value x, int64_t low, int64_t high) {
    sn_attrs a;
    sn_attrs_default(SN_OP_band, &a);
    a.band.low = low;
    a.band.high = high;
    return sn_build(b, SN_OP_band, &a, &x, 1);
}

sn_value sn_build_lstsq(sn_builder *b, sn_value m, sn_value rhs, double cut) {
    sn_attrs a;
    const sn_value in[2] = {m, rhs};
    sn_attrs_default(SN_OP_lstsq, &a);
    a.lstsq.cut = (int64_t)sn_build_param(b, "", cut).i;
    return sn_build(b, SN_OP_lstsq, &a, in, 2);
}

sn_value sn_build_solve(sn_builder *b, const sn_attrs_solve *how, sn_value m, sn_value rhs,
                        sn_value *one) {
    sn_attrs a;
    sn_value outs[SN_MAX_OUT];
    const sn_value in[2] = {m, rhs};
    sn_attrs_default(SN_OP_solve, &a);
    a.solve = *how;
    sn_build_all(b, SN_OP_solve, &a, in, 2, outs);
    if (one)
        *one = outs[1];
    return outs[0];
}
