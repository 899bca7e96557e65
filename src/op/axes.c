/* axes.c: axis rules of operators that keep axes in place, of products and of reductions: which
 * axes can be cut so that pieces of the inputs give pieces of the outputs (or, with `sum`, parts to
 * add up).
 *
 * 1. An output that does not carry the label of a way is a sum over it, and the way says so.
 * 2. Types are known: the planner asks about concrete graphs only. */
#include "op/rules.h"

#include <assert.h>

sn_way *sn_way_add(sn_ways *ways, int64_t extent) {
    assert(ways->n < SN_MAX_WAYS);
    sn_way *way = &ways->way[ways->n++];
    way->extent = extent;
    way->sum = false;
    for (int i = 0; i < SN_MAX_IN; i++)
        way->in[i] = (sn_axis_ref){-1, 1, 1};
    for (int i = 0; i < SN_MAX_OUT; i++)
        way->out[i] = (sn_axis_ref){-1, 1, 1};
    return way;
}

/* The axis of t that lies under axis k of `out` when both are aligned at the last; -1: there is
 * none, or t has extent 1 there and is used whole. */
static int aligned_axis(const snug_type *t, const snug_type *out, int k) {
    const int axis = k - (out->rank - t->rank);
    return axis >= 0 && t->dims[axis] == out->dims[k] ? axis : -1;
}

/* --- element by element ----------------------------------------------------------------------- */
void sn_axes_free(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->out[0].rank; k++)
        sn_carry(&sn_way_add(ways, d->out[0].dims[k])->out[0], k);
}

void sn_axes_broadcast(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->out[0].rank; k++) {
        sn_way *way = sn_way_add(ways, d->out[0].dims[k]);
        for (int i = 0; i < d->n_in; i++)
            way->in[i].axis = aligned_axis(&d->in[i], &d->out[0], k);
        for (int i = 0; i < d->n_out; i++)
            sn_carry(&way->out[i], k);
    }
}

void sn_axes_elementwise(const sn_opdesc *d, sn_ways *ways) {
    sn_axes_broadcast(d, ways);
}

void sn_axes_broadcast_to(const sn_opdesc *d, sn_ways *ways) {
    sn_axes_broadcast(d, ways);
}

/* The variables have the axes of their gradient; that an update runs once per step is the planner's
 * rule. */
void sn_axes_state(const sn_opdesc *d, sn_ways *ways) {
    sn_axes_broadcast(d, ways);
}

/* All operands carry the first axis, and nothing else is cut: windows read their neighbours, and
 * the bytes of a pooling code are known per image only. */
void sn_axes_leading(const sn_opdesc *d, sn_ways *ways) {
    sn_way *way = sn_way_add(ways, d->in[0].dims[0]);
    for (int i = 0; i < d->n_in; i++)
        sn_carry(&way->in[i], 0);
    for (int i = 0; i < d->n_out; i++)
        sn_carry(&way->out[i], 0);
}

/* All axes of the input, in their places; the output has more. */
void sn_axes_leading_map(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->in[0].rank; k++) {
        sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
        sn_carry(&way->in[0], k);
        sn_carry(&way->out[0], k);
    }
}

/* --- reductions ------------------------------------------------------------------------------- */
/* Kept axes map; reduced ones are sums, or with sums = false need their whole extent. */
static void reduce_ways(const sn_opdesc *d, sn_ways *ways, uint32_t reduced, bool keepdims,
                        bool sums) {
    int at = 0;
    for (int k = 0; k < d->in[0].rank; k++) {
        const bool gone = reduced >> k & 1;
        if (!gone || sums) {
            sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
            sn_carry(&way->in[0], k);
            way->sum = gone;
            if (!gone)
                sn_carry(&way->out[0], at);
        }
        at += !gone || keepdims;
    }
}

uint32_t sn_axes_set(const sn_list *axes, int rank) {
    uint32_t set = axes->n == 0 ? (1u << rank) - 1 : 0;
    for (int k = 0; k < axes->n; k++)
        set |= 1u << axes->v[k];
    return set;
}

static uint32_t reduced_axes(const sn_opdesc *d) {
    return sn_axes_set(&d->attrs.axes.axes, d->in[0].rank);
}

void sn_axes_sum(const sn_opdesc *d, sn_ways *ways) {
    reduce_ways(d, ways, reduced_axes(d), d->attrs.axes.keepdims != 0, true);
}

void sn_axes_reduce_whole(const sn_opdesc *d, sn_ways *ways) {
    reduce_ways(d, ways, reduced_axes(d), d->attrs.axes.keepdims != 0, false);
}

void sn_axes_argmax(const sn_opdesc *d, sn_ways *ways) {
    reduce_ways(d, ways, 1u << d->attrs.argmax.axis, false, false);
}

/* A running sum needs all that comes before. */
void sn_axes_all_but_axis(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->in[0].rank; k++) {
        if (k == d->attrs.scan.axis)
            continue;
        sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
        sn_carry(&way->in[0], k);
        sn_carry(&way->out[0], k);
    }
}

/* --- channels and rows ------------------------------------------------------------------------ */
#define IS(i) (1u << (i))

/* One way per row axis of input 0 (all but the last). Inputs in the mask do not carry it, nor do
 * outputs that are sums over it. */
static void row_ways(const sn_opdesc *d, sn_ways *ways, uint32_t whole_in, bool sum) {
    for (int k = 0; k + 1 < d->in[0].rank; k++) {
        sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
        for (int i = 0; i < d->n_in; i++) {
            if (!(whole_in >> i & 1))
                sn_carry(&way->in[i], k);
        }
        for (int i = 0; i < d->n_out && !sum; i++)
            sn_carry(&way->out[i], k);
        way->sum = sum;
    }
}

/* The way along the channels: the last axis of every operand but the inputs in the mask. */
static void channel_way(const sn_opdesc *d, sn_ways *ways, uint32_t whole_in) {
    sn_way *way = sn_way_add(ways, d->in[0].dims[d->in[0].rank - 1]);
    for (int i = 0; i < d->n_in; i++) {
        if (!(whole_in >> i & 1))
            sn_carry(&way->in[i], d->in[i].rank - 1);
    }
    for (int i = 0; i < d->n_out; i++)
        sn_carry(&way->out[i], d->out[i].rank - 1);
}

/* Which inputs are [C] beside an input 0 of more axes. */
static uint32_t vectors(const sn_opdesc *d) {
    uint32_t set = 0;
    for (int i = 0; i < d->n_in; i++)
        set |= d->in[i].rank < d->in[0].rank ? IS(i) : 0;
    return set;
}

void sn_axes_channel_map(const sn_opdesc *d, sn_ways *ways) {
    row_ways(d, ways, vectors(d), false);
    channel_way(d, ways, 0);
}

void sn_axes_channel_sum(const sn_opdesc *d, sn_ways *ways) {
    row_ways(d, ways, vectors(d), true);
    channel_way(d, ways, 0);
}

void sn_axes_rows(const sn_opdesc *d, sn_ways *ways) {
    row_ways(d, ways, 0, false);
}

void sn_axes_layernorm(const sn_opdesc *d, sn_ways *ways) {
    row_ways(d, ways, IS(1) | IS(2), false);
}

void sn_axes_layernorm_dx(const sn_opdesc *d, sn_ways *ways) {
    row_ways(d, ways, IS(2), false);
}

/* mean and rstd (inputs 2 and 3) have the rows' shape. */
void sn_axes_layernorm_sums(const sn_opdesc *d, sn_ways *ways) {
    row_ways(d, ways, 0, true);
    channel_way(d, ways, IS(2) | IS(3));
}

/* --- matrices and convolution ----------------------------------------------------------------- */
/* A way of a product: the axis of each operand, -1 where it does not carry the label. */
static sn_way *product_way(sn_ways *ways, int64_t extent, int in0, int in1, int out0) {
    sn_way *way = sn_way_add(ways, extent);
    way->in[0].axis = in0;
    way->in[1].axis = in1;
    way->out[0].axis = out0;
    way->sum = out0 < 0;
    return way;
}

void sn_axes_matmul(const sn_opdesc *d, sn_ways *ways) {
    const sn_attrs_matmul *at = &d->attrs.matmul;
    const snug_type *a = &d->in[0], *b = &d->in[1], *out = &d->out[0];
    const int row_a = a->rank - (at->trans_a ? 1 : 2), inner_a = a->rank - (at->trans_a ? 2 : 1);
    const int col_b = b->rank - (at->trans_b ? 2 : 1), inner_b = b->rank - (at->trans_b ? 1 : 2);
    for (int k = 0; k < out->rank - 2; k++)
        product_way(ways, out->dims[k], aligned_axis(a, out, k),
                    at->fold_b ? -1 : aligned_axis(b, out, k), k);
    product_way(ways, a->dims[row_a], row_a, -1, out->rank - 2);
    if (at->fold_b) /* rows and columns of b are several axes each */
        return;
    sn_way *columns = product_way(ways, b->dims[col_b], -1, col_b, out->rank - 1);
    if (d->n_in == 3)
        sn_carry(&columns->in[2], 0);
    /* A bias or an activation is applied once, to the whole sum. */
    if (d->n_in == 2 && at->act == SN_ACT_none)
        product_way(ways, a->dims[inner_a], inner_a, inner_b, -1);
}

void sn_axes_conv2d(const sn_opdesc *d, sn_ways *ways) {
    product_way(ways, d->in[0].dims[0], 0, -1, 0);
    if (d->attrs.conv.groups != 1)
        return;
    sn_way *channels = product_way(ways, d->in[1].dims[3], -1, 3, 3);
    if (d->n_in == 3)
        sn_carry(&channels->in[2], d->in[2].rank - 1);
}

void sn_axes_conv2d_dx(const sn_opdesc *d, sn_ways *ways) {
    product_way(ways, d->in[0].dims[0], 0, -1, 0);
    if (d->attrs.conv_dx.groups == 1)
        product_way(ways, d->in[1].dims[2], -1, 2, 3);
}

void sn_axes_conv2d_dw(const sn_opdesc *d, sn_ways *ways) {
    product_way(ways, d->in[0].dims[0], 0, 0, -1);
    if (d->attrs.conv_dw.groups != 1)
        return;
    sn_way *channels = product_way(ways, d->in[1].dims[3], -1, 3, 3);
    /* Each piece of the input channels would make the whole bias gradient again; and devices choose
     * a kernel for 3 x 3 windows by these channels. */
    const bool fixed = d->out[0].dims[0] == 3 && d->out[0].dims[1] == 3;
    if (d->n_out == 2)
        sn_carry(&channels->out[1], 0);
    else if (!fixed)
        product_way(ways, d->in[0].dims[3], 3, -1, 2);
}

/* The bytes of a code are known per image only: nothing but images is cut. */
void sn_axes_conv2d_pool(const sn_opdesc *d, sn_ways *ways) {
    sn_way *images = product_way(ways, d->in[0].dims[0], 0, -1, 0);
    if (d->n_out == 2)
        sn_carry(&images->out[1], 0);
}

void sn_axes_conv2d_pool_dx(const sn_opdesc *d, sn_ways *ways) {
    sn_carry(&product_way(ways, d->in[0].dims[0], 0, -1, 0)->in[2], 0);
}

void sn_axes_conv2d_pool_dw(const sn_opdesc *d, sn_ways *ways) {
    sn_carry(&product_way(ways, d->in[0].dims[0], 0, 0, -1)->in[2], 0);
}

/* w, m, v and the gradient along an axis of theirs, and `other`, x or dy, along its columns. */
static void update_way(const sn_opdesc *d, sn_ways *ways, int axis, int other) {
    sn_way *way = sn_way_add(ways, d->in[0].dims[axis]);
    for (int i = 0; i < 3; i++) {
        sn_carry(&way->in[i], axis);
        sn_carry(&way->out[i], axis);
    }
    if (d->attrs.matmul_adam.gradient)
        sn_carry(&way->out[d->n_out - 1], axis);
    sn_carry(&way->in[other], 1);
}

void sn_axes_matmul_adam_dx(const sn_opdesc *d, sn_ways *ways) {
    update_way(d, ways, 0, 3);
    sn_carry(&ways->way[ways->n - 1].out[3], 1);
}

void sn_axes_matmul_adam(const sn_opdesc *d, sn_ways *ways) {
    update_way(d, ways, 0, 3);
    update_way(d, ways, 1, 4);
}
