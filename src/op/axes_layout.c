/* axes_layout.c: axis rules of operators that move elements and of indexing. Only reshape makes
 * labels that are a part of an axis: [B,T,D] -> [B*T,D] keeps B (outer 1, inner T) and T (outer B,
 * inner 1). */
#include "op/rules.h"

#include <stddef.h>

static void map_axis(const sn_opdesc *d, sn_ways *ways, int in_axis, int out_axis) {
    sn_way *way = sn_way_add(ways, d->out[0].dims[out_axis]);
    for (int i = 0; i < d->n_in; i++)
        sn_carry(&way->in[i], in_axis);
    sn_carry(&way->out[0], out_axis);
}

/* --- reshape ---------------------------------------------------------------------------------- */
/* A walk over one shape: `left` is what is still to be matched of axis `axis`; `outer` of it is
 * matched. */
typedef struct {
    const snug_type *type;
    int axis;
    int64_t outer, left;
} walk;

static walk walk_from(const snug_type *t, int axis) {
    return (walk){t, axis, 1, axis < t->rank ? t->dims[axis] : 1};
}

/* On to the next axis with something to match; false at the end. */
static bool walk_on(walk *w) {
    while (w->left == 1 && w->axis < w->type->rank)
        *w = walk_from(w->type, w->axis + 1);
    return w->axis < w->type->rank;
}

/* Takes a label of this extent off the front of what is left. */
static sn_axis_ref walk_take(walk *w, int64_t extent) {
    w->left /= extent;
    const sn_axis_ref ref = {w->axis, w->outer, w->left};
    w->outer *= extent;
    return ref;
}

/* Both shapes list the same elements in one order. The next label is the smaller of what is left on
 * both sides; it exists if it divides the larger. Where it does not ([6,4] -> [4,6]) nothing behind
 * can be cut. */
static void match_axes(sn_ways *ways, walk in, walk out) {
    while (walk_on(&in) && walk_on(&out)) {
        const int64_t small = in.left < out.left ? in.left : out.left,
                      large = in.left < out.left ? out.left : in.left;
        if (large % small != 0)
            return;
        sn_way *way = sn_way_add(ways, small);
        way->in[0] = walk_take(&in, small);
        way->out[0] = walk_take(&out, small);
    }
}

void sn_axes_reshape(const sn_opdesc *d, sn_ways *ways) {
    const snug_type *in = &d->in[0], *out = &d->out[0];
    int same = 0;
    while (same < in->rank && same < out->rank && in->dims[same] == out->dims[same]) {
        map_axis(d, ways, same, same);
        same++;
    }
    if (sn_type_count(in) > 0)
        match_axes(ways, walk_from(in, same), walk_from(out, same));
}

/* --- moving elements -------------------------------------------------------------------------- */
void sn_axes_transpose(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->out[0].rank; k++)
        map_axis(d, ways, (int)d->attrs.perm.perm.v[k], k);
}

void sn_axes_concat(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->out[0].rank; k++) {
        if (k != d->attrs.axis.axis)
            map_axis(d, ways, k, k);
    }
}

/* An axis of which the slice is everything, forwards: its start can only be 0. Both attribute
 * families of the rule keep the strides at the same place. */
_Static_assert(offsetof(sn_attrs_slice, strides) == offsetof(sn_attrs_slice_grad, strides),
               "slice and slice_grad share their axis rule");
void sn_axes_slice(const sn_opdesc *d, sn_ways *ways) {
    const sn_list *strides = &d->attrs.slice.strides;
    for (int k = 0; k < d->out[0].rank; k++) {
        const bool forwards = strides->n == 0 || strides->v[k] > 0;
        if (forwards && d->in[0].dims[k] == d->out[0].dims[k])
            map_axis(d, ways, k, k);
    }
}

void sn_axes_pad(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->out[0].rank; k++) {
        if (d->in[0].dims[k] == d->out[0].dims[k])
            map_axis(d, ways, k, k);
    }
}

/* --- indexing --------------------------------------------------------------------------------- */
/* Where axis k of the indexed tensor is in the gathered one; k is not the indexed axis. */
static int moved_axis(int k, int axis, int n_index) {
    return k < axis ? k : k + n_index - 1;
}

void sn_axes_gather(const sn_opdesc *d, sn_ways *ways) {
    const int axis = (int)d->attrs.axis.axis, n_index = d->in[1].rank;
    for (int k = 0; k < n_index; k++) {
        sn_way *way = sn_way_add(ways, d->in[1].dims[k]);
        sn_carry(&way->in[1], k);
        sn_carry(&way->out[0], axis + k);
    }
    for (int k = 0; k < d->in[0].rank; k++) {
        if (k == axis)
            continue;
        sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
        sn_carry(&way->in[0], k);
        sn_carry(&way->out[0], moved_axis(k, axis, n_index));
    }
}

void sn_axes_scatter_add(const sn_opdesc *d, sn_ways *ways) {
    const int axis = (int)d->attrs.scatter.axis, n_index = d->in[0].rank;
    for (int k = 0; k < n_index; k++) {
        sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
        sn_carry(&way->in[0], k);
        sn_carry(&way->in[1], axis + k);
        way->sum = true;
    }
    for (int k = 0; k < d->out[0].rank; k++) {
        if (k == axis)
            continue;
        sn_way *way = sn_way_add(ways, d->out[0].dims[k]);
        sn_carry(&way->in[1], moved_axis(k, axis, n_index));
        sn_carry(&way->out[0], k);
    }
}
