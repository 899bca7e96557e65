/* spatial.c: see spatial.h. */
#include "nn/spatial.h"

#include <string.h>

/* Larger windows, strides and paddings are typing errors; keeps sums far from overflow. */
#define MAX_SETTING (1 << 20)

bool sn_spatial_input(sn_layer_call *c, int n, snug_type *type) {
    static const char *const names[] = {"sequences have 3 axes: batch, steps, channels",
                                        "pictures have 4 axes: batch, height, width, channels",
                                        ("volumes have 5 axes: batch, depth, height, width, "
                                         "channels")};
    if (c->b->error.code != SNUG_OK)
        return false;
    *type = *sn_graph_type(c->b->graph, c->in[0]);
    if (type->rank == n + 2)
        return true;
    char text[192];
    sn_layer_refuse(c, SNUG_E_SHAPE, "the input is %s; %s",
                    snug_type_print(type, text, sizeof text), names[n - 1]);
    return false;
}

/* One entry per axis of the layer, into those of the window. */
static bool set_axes(sn_layer_call *c, const char *key, const int64_t *from, int n, int64_t *to) {
    for (int k = 0; k < SN_SPATIAL_AXES; k++)
        to[k] = 1;
    for (int k = 0; from && k < n; k++) {
        to[SN_SPATIAL_AXES - n + k] = from[k];
        if (from[k] >= 1 && from[k] <= MAX_SETTING)
            continue;
        sn_layer_refuse(c, SNUG_E_INVALID, "%s has the entry %lld; it must be at least 1", key,
                        (long long)from[k]);
        return false;
    }
    return true;
}

bool sn_spatial_settings(sn_layer_call *c, const sn_spatial_conf *conf, sn_spatial *w) {
    w->n = conf->n;
    return set_axes(c, conf->dilation ? "kernel_size" : "pool_size", conf->kernel, w->n,
                    w->kernel) &&
           set_axes(c, "strides", conf->strides, w->n, w->stride) &&
           set_axes(c, "dilation_rate", conf->dilation, w->n, w->dilation);
}

int64_t sn_spatial_reach(const sn_spatial *w, int axis) {
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

int64_t sn_spatial_count(const sn_spatial *w, int axis) {
    const int64_t padded = w->size[axis] + w->pad[2 * axis] + w->pad[2 * axis + 1];
    return (padded - sn_spatial_reach(w, axis)) / w->stride[axis] + 1;
}

static void pad_same(sn_spatial *w, int axis) {
    const int64_t extent = w->size[axis], stride = w->stride[axis];
    const int64_t windows = extent / stride + (extent % stride != 0);
    const int64_t covered = (windows - 1) * stride + sn_spatial_reach(w, axis);
    const int64_t total = covered > extent ? covered - extent : 0;
    w->pad[2 * axis] = total / 2;
    w->pad[2 * axis + 1] = total - total / 2;
}

bool sn_spatial_padding(sn_layer_call *c, const sn_spatial_conf *conf, sn_spatial *w) {
    const bool same = strcmp(conf->padding, "same") == 0,
               causal = conf->may_be_causal && strcmp(conf->padding, "causal") == 0;
    memset(w->pad, 0, sizeof w->pad);
    if (!same && !causal && strcmp(conf->padding, "valid") != 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "padding=%s is not known; there are valid%s same",
                        conf->padding, conf->may_be_causal ? ", causal and" : " and");
        return false;
    }
    for (int k = SN_SPATIAL_AXES - w->n; k < SN_SPATIAL_AXES; k++) {
        if (same)
            pad_same(w, k);
        else if (causal)
            w->pad[2 * k] = sn_spatial_reach(w, k) - 1;
    }
    return true;
}

bool sn_spatial_read(sn_layer_call *c, const sn_spatial_conf *conf, sn_spatial *w) {
    snug_type t;
    if (!sn_spatial_input(c, conf->n, &t) || !sn_spatial_settings(c, conf, w))
        return false;
    for (int k = 0; k < SN_SPATIAL_AXES; k++)
        w->size[k] = k < SN_SPATIAL_AXES - w->n ? 1 : t.dims[1 + k - (SN_SPATIAL_AXES - w->n)];
    w->channels = t.dims[w->n + 1];
    return sn_spatial_padding(c, conf, w);
}

sn_value sn_spatial_pictures(sn_layer_call *c, const sn_spatial *w, sn_value x) {
    if (c->b->error.code != SNUG_OK || w->n == 2)
        return x;
    const snug_type *t = sn_graph_type(c->b->graph, x);
    const int64_t dims[4] = {-1, w->n == 1 ? 1 : t->dims[2], t->dims[w->n], t->dims[w->n + 1]};
    return sn_build_reshape(c->b, x, dims, 4);
}

sn_value sn_spatial_volumes(sn_layer_call *c, const sn_spatial *w, sn_value y, int64_t depth) {
    if (c->b->error.code != SNUG_OK || w->n == 2)
        return y;
    const snug_type *t = sn_graph_type(c->b->graph, y);
    const int64_t flat[3] = {-1, t->dims[2], t->dims[3]},
                  deep[5] = {-1, depth, t->dims[1], t->dims[2], t->dims[3]};
    return w->n == 1 ? sn_build_reshape(c->b, y, flat, 3) : sn_build_reshape(c->b, y, deep, 5);
}
