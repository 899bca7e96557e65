/* layers_pool.c: max and average pooling over one, two and three axes, over all positions, and
 * to a given size.
 *
 * Three axes are pooled over height and width first, then over depth. For the largest element that
 * is the same; for an average it is, too, since each pass divides by how many elements of the image
 * lie along its own axes, and those counts multiply. */
#include "nn/spatial.h"

#include "base/size.h"

#include <string.h>

#define DEPTH 0
/* Windows of an adaptive pooling that do not divide the axis are nodes of their own. */
#define MAX_WINDOWS (1 << 16)

/* Pictures under axes `first` and `first + 1` of the window. */
static sn_value pool_pictures(sn_layer_call *c, sn_op op, const sn_spatial *w, int first,
                              sn_value x) {
    sn_attrs a;
    sn_attrs_default(op, &a);
    memcpy(a.pool.kernel, w->kernel + first, sizeof a.pool.kernel);
    memcpy(a.pool.stride, w->stride + first, sizeof a.pool.stride);
    memcpy(a.pool.pad, w->pad + 2 * first, sizeof a.pool.pad);
    return sn_build(c->b, op, &a, &x, 1);
}

/* Pictures [N * depth, h, w, C]: pooled over the depth, as [N, depth, h * w, C]. */
static sn_value pool_depth(sn_layer_call *c, sn_op op, const sn_spatial *w, sn_value x) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(c->b->graph, x);
    int64_t columns[4] = {-1, w->size[DEPTH], 0, t.dims[3]};
    const int64_t pictures[4] = {-1, t.dims[1], t.dims[2], t.dims[3]};
    sn_spatial deep = *w;
    if (!sn_i64_mul(t.dims[1], t.dims[2], &columns[2])) {
        sn_layer_refuse(c, SNUG_E_OVERFLOW, "pictures of %lld x %lld exceed the address space",
                        (long long)t.dims[1], (long long)t.dims[2]);
        return SN_NO_VALUE;
    }
    deep.kernel[1] = deep.stride[1] = 1;
    deep.pad[2] = deep.pad[3] = 0;
    const sn_value y = pool_pictures(c, op, &deep, DEPTH, sn_build_reshape(c->b, x, columns, 4));
    return sn_build_reshape(c->b, y, pictures, 4);
}

void sn_spatial_pool(sn_layer_call *c, sn_op op, const sn_spatial_conf *conf) {
    sn_spatial w;
    int64_t strides[SN_SPATIAL_AXES];
    sn_spatial_conf filled = *conf;
    for (int k = 0; k < conf->n; k++)
        strides[k] = conf->strides[k] ? conf->strides[k] : conf->kernel[k];
    filled.strides = strides;
    if (!sn_spatial_read(c, &filled, &w))
        return;
    sn_value y = pool_pictures(c, op, &w, 1, sn_spatial_pictures(c, &w, c->in[0]));
    if (w.n == 3)
        y = pool_depth(c, op, &w, y);
    c->out = sn_spatial_volumes(c, &w, y, sn_spatial_count(&w, DEPTH));
}

#define BUILD_POOL(name, op, axes)                                                                 \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        sn_spatial_pool(c, op,                                                                     \
                        &(sn_spatial_conf){.n = axes,                                              \
                                           .kernel = conf->pool_size,                              \
                                           .strides = conf->strides,                               \
                                           .padding = conf->padding.text});                        \
    }
BUILD_POOL(max_pooling1d, SN_OP_maxpool, 1)
BUILD_POOL(max_pooling2d, SN_OP_maxpool, 2)
BUILD_POOL(max_pooling3d, SN_OP_maxpool, 3)
BUILD_POOL(average_pooling1d, SN_OP_avgpool, 1)
BUILD_POOL(average_pooling2d, SN_OP_avgpool, 2)
BUILD_POOL(average_pooling3d, SN_OP_avgpool, 3)

/* --- over all positions ----------------------------------------------------------------------- */
/* The spatial axes as a bit set. */
static uint32_t all_positions(int n) {
    return ((1u << n) - 1) << 1;
}

#define BUILD_GLOBAL(name, reduce, axes)                                                           \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        snug_type t;                                                                               \
        if (sn_spatial_input(c, axes, &t))                                                         \
            c->out = reduce(c->b, c->in[0], all_positions(axes), conf->keepdims != 0);             \
    }
BUILD_GLOBAL(global_average_pooling2d, sn_build_mean, 2)
BUILD_GLOBAL(global_average_pooling3d, sn_build_mean, 3)
BUILD_GLOBAL(global_max_pooling1d, sn_build_max, 1)
BUILD_GLOBAL(global_max_pooling2d, sn_build_max, 2)
BUILD_GLOBAL(global_max_pooling3d, sn_build_max, 3)

/* The mean of the steps that are not masked. */
static sn_value masked_mean(sn_layer_call *c, sn_value x, sn_value mask, bool keepdims) {
    const snug_type t = *sn_graph_type(c->b->graph, x);
    const int64_t dims[3] = {-1, t.dims[1], 1};
    const sn_value kept = sn_build_reshape(c->b, mask, dims, 3);
    const sn_value valid = sn_build_select(c->b, kept, x, sn_build_scalar(c->b, t.dtype, 0));
    const sn_value total = sn_build_sum(c->b, valid, all_positions(1), keepdims);
    const sn_value weights = sn_build_cast(c->b, kept, t.dtype);
    return sn_build_div(c->b, total, sn_build_sum(c->b, weights, all_positions(1), keepdims));
}

void sn_layer_build_global_average_pooling1d(sn_layer_call *c) {
    const sn_conf_global_average_pooling1d *conf = c->conf;
    snug_type t;
    if (!sn_spatial_input(c, 1, &t))
        return;
    c->out = sn_value_ok(c->mask[0])
                 ? masked_mean(c, c->in[0], c->mask[0], conf->keepdims != 0)
                 : sn_build_mean(c->b, c->in[0], all_positions(1), conf->keepdims != 0);
}

/* --- to a given number of windows ------------------------------------------------------------- */
typedef sn_value (*reduction)(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);

/* Windows of one size: the axis becomes two, of which the second is reduced. */
static sn_value pool_evenly(sn_layer_call *c, sn_value x, int axis, int64_t n, reduction reduce) {
    const snug_type t = *sn_graph_type(c->b->graph, x);
    int64_t dims[SNUG_MAX_RANK];
    dims[0] = -1;
    for (int k = 1; k < t.rank; k++)
        dims[k + (k > axis)] = t.dims[k];
    dims[axis] = n;
    dims[axis + 1] = t.dims[axis] / n;
    return reduce(c->b, sn_build_reshape(c->b, x, dims, t.rank + 1), 1u << (axis + 1), false);
}

/* Window i of n goes from floor(i extent / n) to ceil((i + 1) extent / n): sizes differ by one, and
 * windows may overlap. */
static sn_value pool_axis(sn_layer_call *c, sn_value x, int axis, int64_t n, reduction reduce) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int64_t extent = sn_graph_type(c->b->graph, x)->dims[axis];
    if (n < 1 || n > MAX_WINDOWS || extent < 1 || extent > MAX_WINDOWS) {
        sn_layer_refuse(c, SNUG_E_INVALID, "output_size has the entry %lld for an extent of %lld",
                        (long long)n, (long long)extent);
        return SN_NO_VALUE;
    }
    if (extent % n == 0)
        return pool_evenly(c, x, axis, n, reduce);
    sn_value parts[SN_MAX_IN];
    int count = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = i * extent / n, to = ((i + 1) * extent + n - 1) / n;
        const sn_value window = sn_build_part(c->b, x, axis, from, to - from);
        parts[count++] = reduce(c->b, window, 1u << axis, true);
        if (count == SN_MAX_IN && i < n - 1) {
            parts[0] = sn_build_concat(c->b, parts, count, axis);
            count = 1;
        }
    }
    return count == 1 ? parts[0] : sn_build_concat(c->b, parts, count, axis);
}

/* Axis by axis: windows are boxes. */
static void build_adaptive(sn_layer_call *c, int n, const int64_t *size, reduction reduce) {
    snug_type t;
    sn_value y = c->in[0];
    if (!sn_spatial_input(c, n, &t))
        return;
    for (int k = 0; k < n; k++)
        y = pool_axis(c, y, 1 + k, size[k], reduce);
    c->out = y;
}

#define BUILD_ADAPTIVE(name, reduce, axes)                                                         \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        build_adaptive(c, axes, conf->output_size, reduce);                                        \
    }
BUILD_ADAPTIVE(adaptive_average_pooling1d, sn_build_mean, 1)
BUILD_ADAPTIVE(adaptive_average_pooling2d, sn_build_mean, 2)
BUILD_ADAPTIVE(adaptive_average_pooling3d, sn_build_mean, 3)
BUILD_ADAPTIVE(adaptive_max_pooling1d, sn_build_max, 1)
BUILD_ADAPTIVE(adaptive_max_pooling2d, sn_build_max, 2)
BUILD_ADAPTIVE(adaptive_max_pooling3d, sn_build_max, 3)
