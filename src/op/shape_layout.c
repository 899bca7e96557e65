/* shape_layout.c: shape rules of reductions, of operators that move elements, and of indexing.
 *
 * An extent of -1 in an attribute is for templates: reshape works out one of them, slice takes the
 * whole axis, slice_grad the extent of its input; what stays unknown stays -1. */
#include "op/rules.h"

#include "base/size.h"

/* The list has one entry per axis of input i. */
static snug_status want_per_axis(const sn_opdesc *d, const char *name, const sn_list *list, int i,
                                 snug_error *err) {
    if (list->n == d->in[i].rank)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE,
                   "%s: %s has %lld entries and input %d is %s; there must be %d", sn_op_name(d),
                   name, (long long)list->n, i, sn_type_text(&d->in[i]).s, d->in[i].rank);
}

static snug_status want_reduced_axes(const sn_opdesc *d, const sn_list *axes, snug_error *err) {
    uint32_t seen = 0;
    for (int k = 0; k < axes->n; k++) {
        SNUG_TRY(sn_want_axis(d, axes->v[k], d->in[0].rank, err));
        if (seen >> axes->v[k] & 1)
            return sn_fail(err, SNUG_E_INVALID, "%s: axis %lld is there twice", sn_op_name(d),
                           (long long)axes->v[k]);
        seen |= 1u << axes->v[k];
    }
    return SNUG_OK;
}

static void drop_axes(snug_type *t, uint32_t set, bool keepdims) {
    const snug_type from = *t;
    *t = (snug_type){.dtype = from.dtype};
    for (int k = 0; k < from.rank; k++) {
        const bool dropped = set >> k & 1;
        if (!dropped || keepdims)
            t->dims[t->rank++] = dropped ? 1 : from.dims[k];
    }
}

static snug_status reduced(sn_opdesc *d, snug_error *err) {
    const sn_attrs_axes *a = &d->attrs.axes;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_flag(d, "keepdims", a->keepdims, err));
    SNUG_TRY(want_reduced_axes(d, &a->axes, err));
    drop_axes(&t, sn_axes_set(&a->axes, t.rank), a->keepdims != 0);
    return sn_one_output(d, t);
}

snug_status sn_shape_sum(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(sn_want_wide(d, 0, d->attrs.axes.wide, err));
    SNUG_TRY(reduced(d, err));
    d->out[0].dtype = sn_wide_dtype(d, 0, d->attrs.axes.wide);
    return SNUG_OK;
}

static snug_status want_narrow(const sn_opdesc *d, snug_error *err) {
    if (!d->attrs.axes.wide)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s: wide=%lld; sums alone can be wider", sn_op_name(d),
                   (long long)d->attrs.axes.wide);
}

snug_status sn_shape_reduce(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(want_narrow(d, err));
    return reduced(d, err);
}

/* The maximum of truth values is whether any holds, the minimum whether all do. */
snug_status sn_shape_reduce_extreme(sn_opdesc *d, snug_error *err) {
    if (d->in[0].dtype != SNUG_BOOL)
        SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(want_narrow(d, err));
    return reduced(d, err);
}

static snug_status want_positions(const sn_opdesc *d, int64_t dtype, snug_error *err) {
    if (dtype == SNUG_I32 || dtype == SNUG_I64)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "%s: dtype=%s; positions are i32 or i64", sn_op_name(d),
                   snug_dtype_name((snug_dtype)dtype));
}

snug_status sn_shape_argmax(sn_opdesc *d, snug_error *err) {
    const sn_attrs_argmax *a = &d->attrs.argmax;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(sn_want_axis(d, a->axis, t.rank, err));
    SNUG_TRY(want_positions(d, a->dtype, err));
    if (t.dims[a->axis] == 0)
        return sn_fail(err, SNUG_E_SHAPE, "%s: axis %lld of %s has no elements", sn_op_name(d),
                       (long long)a->axis, sn_type_text(&t).s);
    t.dtype = (snug_dtype)a->dtype;
    drop_axes(&t, 1u << a->axis, false);
    return sn_one_output(d, t);
}

snug_status sn_shape_scan(sn_opdesc *d, snug_error *err) {
    const sn_attrs_scan *a = &d->attrs.scan;
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(sn_want_axis(d, a->axis, d->in[0].rank, err));
    SNUG_TRY(sn_want_flag(d, "exclusive", a->exclusive, err));
    SNUG_TRY(sn_want_flag(d, "reverse", a->reverse, err));
    return sn_one_output(d, d->in[0]);
}

/* Outputs: the first k along the last axis (k = 0: all), and where they were. */
snug_status sn_shape_sort(sn_opdesc *d, snug_error *err) {
    const sn_attrs_sort *a = &d->attrs.sort;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 1, SNUG_MAX_RANK, err));
    SNUG_TRY(sn_want_flag(d, "descending", a->descending, err));
    SNUG_TRY(want_positions(d, a->dtype, err));
    int64_t *last = &t.dims[t.rank - 1];
    if (a->k < 0 || (*last >= 0 && a->k > *last))
        return sn_fail(err, SNUG_E_SHAPE, "sort: k=%lld of the %lld along the last axis of %s",
                       (long long)a->k, (long long)*last, sn_type_text(&d->in[0]).s);
    *last = a->k > 0 ? a->k : *last;
    SNUG_TRY(sn_one_output(d, t));
    t.dtype = (snug_dtype)a->dtype;
    d->n_out = 2;
    d->out[1] = t;
    return SNUG_OK;
}

/* --- reshape ---------------------------------------------------------------------------------- */
/* Product of the known extents, and how many are unknown. */
typedef struct {
    int64_t known;
    int n_unknown;
} extent_product;

static snug_status multiply_dims(const sn_opdesc *d, const int64_t *dims, int rank,
                                 extent_product *out, snug_error *err) {
    extent_product p = {1, 0};
    for (int k = 0; k < rank; k++) {
        if (dims[k] < 0)
            p.n_unknown++;
        else if (!sn_i64_mul(p.known, dims[k], &p.known))
            return sn_fail(err, SNUG_E_OVERFLOW, "%s: the extents multiply to more than 2^63",
                           sn_op_name(d));
    }
    *out = p;
    return SNUG_OK;
}

/* Fills in the one unknown extent of t, or fails where the counts cannot be equal. */
static snug_status fit_reshape(const sn_opdesc *d, snug_type *t, snug_error *err) {
    extent_product from = {1, 0}, to = {1, 0};
    const snug_type *x = &d->in[0];
    SNUG_TRY(multiply_dims(d, x->dims, x->rank, &from, err));
    SNUG_TRY(multiply_dims(d, t->dims, t->rank, &to, err));
    if (from.n_unknown > 0) {
        const bool fits = to.n_unknown > 0 || from.known == 0 || to.known % from.known == 0;
        return fits ? SNUG_OK
                    : sn_fail(err, SNUG_E_SHAPE, "reshape: no extents make %s into %s",
                              sn_type_text(x).s, sn_type_text(t).s);
    }
    if (to.n_unknown > 1 || (to.n_unknown == 1 && to.known == 0))
        return sn_fail(err, SNUG_E_SHAPE,
                       "reshape: %s to %s leaves extents open; give all but one of them",
                       sn_type_text(x).s, sn_type_text(t).s);
    const bool fits = to.n_unknown == 1 ? from.known % to.known == 0 : from.known == to.known;
    if (!fits)
        return sn_fail(err, SNUG_E_SHAPE, "reshape: %s has %lld elements and does not fit %s",
                       sn_type_text(x).s, (long long)from.known, sn_type_text(t).s);
    for (int k = 0; k < t->rank; k++) {
        if (t->dims[k] < 0)
            t->dims[k] = from.known / to.known;
    }
    return SNUG_OK;
}

snug_status sn_shape_reshape(sn_opdesc *d, snug_error *err) {
    const sn_list *dims = &d->attrs.shape.dims;
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(sn_want_extents(d, "dims", dims, err));
    snug_type t = sn_type_of(d->in[0].dtype, dims);
    SNUG_TRY(fit_reshape(d, &t, err));
    return sn_one_output(d, t);
}

/* --- moving elements -------------------------------------------------------------------------- */
snug_status sn_shape_transpose(sn_opdesc *d, snug_error *err) {
    const sn_list *perm = &d->attrs.perm.perm;
    const snug_type *x = &d->in[0];
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(want_per_axis(d, "perm", perm, 0, err));
    snug_type t = *x;
    uint32_t seen = 0;
    for (int k = 0; k < t.rank; k++) {
        SNUG_TRY(sn_want_axis(d, perm->v[k], t.rank, err));
        if (seen >> perm->v[k] & 1)
            return sn_fail(err, SNUG_E_INVALID,
                           "transpose: axis %lld is in perm twice; each must be there once",
                           (long long)perm->v[k]);
        seen |= 1u << perm->v[k];
        t.dims[k] = x->dims[perm->v[k]];
    }
    return sn_one_output(d, t);
}

snug_status sn_shape_concat(sn_opdesc *d, snug_error *err) {
    const int64_t axis = d->attrs.axis.axis;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(sn_want_axis(d, axis, t.rank, err));
    int64_t total = t.dims[axis];
    for (int i = 1; i < d->n_in; i++) {
        const int64_t extent = d->in[i].rank == t.rank ? d->in[i].dims[axis] : -1;
        t.dims[axis] = extent;
        SNUG_TRY(sn_want_dtype_of(d, i, 0, err));
        SNUG_TRY(sn_want_dims(d, i, &t, err));
        if (total < 0 || extent < 0)
            total = -1;
        else if (!sn_i64_add(total, extent, &total))
            return sn_fail(err, SNUG_E_OVERFLOW, "concat: axis %lld grows beyond the address space",
                           (long long)axis);
    }
    t.dims[axis] = total;
    return sn_one_output(d, t);
}

/* Strides are there for each axis, or not at all: ones. A negative one goes backwards from
 * `start`. */
static snug_status want_strides(const sn_opdesc *d, const sn_list *strides, snug_error *err) {
    if (strides->n == 0)
        return SNUG_OK;
    SNUG_TRY(want_per_axis(d, "strides", strides, 0, err));
    for (int k = 0; k < strides->n; k++)
        if (strides->v[k] == 0 || strides->v[k] > INT32_MAX || strides->v[k] < -INT32_MAX)
            return sn_fail(err, SNUG_E_INVALID,
                           "%s: strides has the value %lld; it must lie in 1 to 2^31 or their "
                           "negatives",
                           sn_op_name(d), (long long)strides->v[k]);
    return SNUG_OK;
}

/* How far apart neighbours of a slice are along axis k, forwards or backwards. */
static int64_t step_of(const sn_list *strides, int k) {
    const int64_t stride = strides->n > 0 ? strides->v[k] : 1;
    return stride < 0 ? -stride : stride;
}

/* Whether n elements `step` apart lie in an extent; all below 2^63 because extents are. */
static bool strided_fits(int64_t n, int64_t step, int64_t extent) {
    return n < 0 || extent < 0 || n == 0 || (extent > 0 && n - 1 <= (extent - 1) / step);
}

snug_status sn_shape_slice(sn_opdesc *d, snug_error *err) {
    const sn_attrs_slice *a = &d->attrs.slice;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(want_per_axis(d, "sizes", &a->sizes, 0, err));
    SNUG_TRY(sn_want_extents(d, "sizes", &a->sizes, err));
    SNUG_TRY(want_strides(d, &a->strides, err));
    for (int k = 0; k < t.rank; k++) {
        const int64_t extent = t.dims[k], size = a->sizes.v[k], stride = step_of(&a->strides, k);
        if (!strided_fits(size, stride, extent))
            return sn_fail(err, SNUG_E_SHAPE,
                           "slice: %lld elements with stride %lld from axis %d of %s; it has %lld",
                           (long long)size, (long long)stride, k, sn_type_text(&d->in[0]).s,
                           (long long)extent);
        const int64_t whole = extent > 0 ? (extent - 1) / stride + 1 : extent;
        t.dims[k] = size < 0 ? whole : size;
    }
    return sn_one_output(d, t);
}

snug_status sn_shape_slice_grad(sn_opdesc *d, snug_error *err) {
    const sn_attrs_slice_grad *a = &d->attrs.slice_grad;
    const snug_type *dy = &d->in[0];
    snug_type t = *dy;
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(want_per_axis(d, "dims", &a->dims, 0, err));
    SNUG_TRY(sn_want_extents(d, "dims", &a->dims, err));
    SNUG_TRY(want_strides(d, &a->strides, err));
    for (int k = 0; k < t.rank; k++) {
        const int64_t stride = step_of(&a->strides, k), extent = a->dims.v[k];
        if (!strided_fits(dy->dims[k], stride, extent))
            return sn_fail(
                err, SNUG_E_SHAPE,
                "slice_grad: %s with stride %lld does not lie in an extent of %lld (axis %d)",
                sn_type_text(dy).s, (long long)stride, (long long)extent, k);
        t.dims[k] = extent < 0 && stride == 1 ? dy->dims[k] : extent;
    }
    return sn_one_output(d, t);
}

snug_status sn_shape_pad(sn_opdesc *d, snug_error *err) {
    const sn_attrs_pad *a = &d->attrs.pad;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(want_per_axis(d, "before", &a->before, 0, err));
    SNUG_TRY(want_per_axis(d, "after", &a->after, 0, err));
    SNUG_TRY(sn_want_range(d, "before", a->before.v, t.rank, 0, err));
    SNUG_TRY(sn_want_range(d, "after", a->after.v, t.rank, 0, err));
    for (int k = 0; k < t.rank; k++) {
        if (t.dims[k] >= 0 && !sn_i64_add(t.dims[k], a->before.v[k] + a->after.v[k], &t.dims[k]))
            return sn_fail(err, SNUG_E_OVERFLOW,
                           "pad: axis %d of %s grows beyond the address space", k,
                           sn_type_text(&d->in[0]).s);
    }
    return sn_one_output(d, t);
}

/* --- indexing --------------------------------------------------------------------------------- */
/* x with `axis` replaced by the dims of the indices. */
static snug_status replace_axis(const sn_opdesc *d, const snug_type *x, int64_t axis,
                                const snug_type *indices, snug_type *out, snug_error *err) {
    if (x->rank - 1 + indices->rank > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_SHAPE, "%s: %s indexed by %s would have %d axes; the most is %d",
                       sn_op_name(d), sn_type_text(x).s, sn_type_text(indices).s,
                       x->rank - 1 + indices->rank, SNUG_MAX_RANK);
    snug_type t = {.dtype = x->dtype};
    for (int k = 0; k < axis; k++)
        t.dims[t.rank++] = x->dims[k];
    for (int k = 0; k < indices->rank; k++)
        t.dims[t.rank++] = indices->dims[k];
    for (int k = (int)axis + 1; k < x->rank; k++)
        t.dims[t.rank++] = x->dims[k];
    *out = t;
    return SNUG_OK;
}

snug_status sn_shape_gather(sn_opdesc *d, snug_error *err) {
    snug_type t;
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(sn_want_index(d, 1, err));
    SNUG_TRY(sn_want_axis(d, d->attrs.axis.axis, d->in[0].rank, err));
    SNUG_TRY(replace_axis(d, &d->in[0], d->attrs.axis.axis, &d->in[1], &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_scatter_add(sn_opdesc *d, snug_error *err) {
    const sn_attrs_scatter *a = &d->attrs.scatter;
    const int n_index = d->in[0].rank;
    SNUG_TRY(sn_want_index(d, 0, err));
    SNUG_TRY(sn_want_number(d, 1, err));
    SNUG_TRY(sn_want_wide(d, 1, a->wide, err));
    SNUG_TRY(sn_want_extents(d, "dims", &a->dims, err));
    snug_type t = sn_type_of(sn_wide_dtype(d, 1, a->wide), &a->dims), updates;
    if (a->axis < 0 || a->axis >= t.rank)
        return sn_fail(err, SNUG_E_SHAPE, "scatter_add: axis %lld of %s; axes count from 0 to %d",
                       (long long)a->axis, sn_type_text(&t).s, t.rank - 1);
    SNUG_TRY(replace_axis(d, &t, a->axis, &d->in[0], &updates, err));
    SNUG_TRY(sn_want_dims(d, 1, &updates, err));
    for (int k = 0; k < t.rank; k++) {
        if (k != a->axis)
            t.dims[k] = updates.dims[k < a->axis ? k : k + n_index - 1];
    }
    return sn_one_output(d, t);
}

snug_status sn_shape_one_hot(sn_opdesc *d, snug_error *err) {
    const sn_attrs_one_hot *a = &d->attrs.one_hot;
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_index(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 0, SNUG_MAX_RANK - 1, err));
    SNUG_TRY(sn_want_range(d, "depth", &a->depth, 1, 0, err));
    if (!sn_dtype_is_number((snug_dtype)a->dtype))
        return sn_fail(err, SNUG_E_SHAPE, "one_hot: dtype=%s; it must be a float or integer type",
                       snug_dtype_name((snug_dtype)a->dtype));
    t.dtype = (snug_dtype)a->dtype;
    t.dims[t.rank++] = a->depth;
    return sn_one_output(d, t);
}
