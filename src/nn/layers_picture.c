/* layers_picture.c: pictures of another size (Resizing, CenterCrop, UpSampling2D) and numbers of
 * another scale (Rescaling, Normalization), as Keras makes them. */
#include "nn/picture_layers.h"

#include "base/size.h"
#include "nn/keras_number.h"

#include <string.h>

#define MAX_SIZE (1 << 20)

/* --- shared: nn/picture_layers.h
 * --------------------------------------------------------------------- */
bool sn_picture_input(sn_layer_call *c, sn_value *x, snug_type *t) {
    *x = sn_build_cast(c->b, c->in[0], c->policy.compute);
    if (c->b->error.code != SNUG_OK)
        return false;
    *t = *sn_graph_type(c->b->graph, *x);
    if (t->rank == 4)
        return true;
    char text[192];
    sn_layer_refuse(c, SNUG_E_SHAPE,
                    "the input is %s; pictures have 4 axes: batch, height, width, channels",
                    snug_type_print(t, text, sizeof text));
    return false;
}

bool sn_picture_size(sn_layer_call *c, int64_t height, int64_t width, int64_t *size) {
    size[0] = height;
    size[1] = width;
    if (height >= 1 && width >= 1 && height <= MAX_SIZE && width <= MAX_SIZE)
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID, "height=%lld, width=%lld must be at least 1",
                    (long long)height, (long long)width);
    return false;
}

static bool method_of(sn_layer_call *c, const char *name, int64_t *method) {
    static const char *const names[SN_N_RESIZE] = {"nearest",  "bilinear",     "bicubic",
                                                   "area",     "lanczos3",     "lanczos5",
                                                   "gaussian", "mitchellcubic"};
    for (int i = 0; i < SN_N_RESIZE; i++)
        if (strcmp(name, names[i]) == 0) {
            *method = i;
            return true;
        }
    sn_layer_refuse(c, SNUG_E_INVALID,
                    "interpolation=%s is not known; there are nearest, bilinear, bicubic, area, "
                    "lanczos3, lanczos5, gaussian and mitchellcubic",
                    name);
    return false;
}

sn_value sn_picture_resize(sn_layer_call *c, sn_value x, const char *interpolation, bool antialias,
                           const int64_t *size) {
    sn_attrs a;
    sn_attrs_default(SN_OP_resize, &a);
    if (c->b->error.code != SNUG_OK || !method_of(c, interpolation, &a.resize.method))
        return SN_NO_VALUE;
    const snug_type *t = sn_graph_type(c->b->graph, x);
    if (t->dims[1] == size[0] && t->dims[2] == size[1])
        return x;
    a.resize.antialias = antialias;
    memcpy(a.resize.size, size, sizeof a.resize.size);
    return sn_build(c->b, SN_OP_resize, &a, &x, 1);
}

/* [a, extent, b, channels], the extent and b as height and width, resized to the nearest. */
static sn_value repeat_pair(sn_layer_call *c, sn_value x, const int64_t *dims, const int64_t *by) {
    sn_attrs a;
    sn_attrs_default(SN_OP_resize, &a);
    a.resize.method = SN_RESIZE_NEAREST;
    for (int k = 0; k < 2; k++)
        a.resize.size[k] = dims[1 + k] * by[k];
    const sn_value picture = sn_build_reshape(c->b, x, dims, 4);
    return sn_build(c->b, SN_OP_resize, &a, &picture, 1);
}

/* extents[k] times counts[k]; false after refusing. */
static bool multiply(sn_layer_call *c, int64_t *extents, const int64_t *counts, int n) {
    for (int k = 0; k < n; k++)
        if (counts[k] < 1 || counts[k] > MAX_SIZE ||
            !sn_i64_mul(extents[k], counts[k], &extents[k])) {
            sn_layer_refuse(c, SNUG_E_INVALID, "size has the entry %lld; it must be at least 1",
                            (long long)counts[k]);
            return false;
        }
    return true;
}

/* Repeating is resizing to the nearest by a whole factor: one pass forwards and one back. */
sn_value sn_picture_repeat(sn_layer_call *c, sn_value x, int n_axes, const int64_t *counts) {
    const snug_type t = *sn_graph_type(c->b->graph, x);
    snug_type to = t;
    if (!multiply(c, to.dims + 1, counts, n_axes))
        return SN_NO_VALUE;
    const int last = t.rank - 1;
    const int64_t n[2] = {n_axes > 1 ? t.dims[last - 2] : 1, t.dims[last - 1]};
    const int64_t by[2] = {n_axes > 1 ? counts[n_axes - 2] : 1, counts[n_axes - 1]};
    x = repeat_pair(c, x, (const int64_t[]){-1, n[0], n[1], t.dims[last]}, by);
    if (n_axes == 3) /* rows of what is there now */
        x = repeat_pair(c, x, (const int64_t[]){t.dims[0], t.dims[1], 1, -1},
                        (const int64_t[]){counts[0], 1});
    return sn_build_reshape(c->b, x, to.dims, t.rank);
}

sn_value sn_picture_crop(sn_layer_call *c, sn_value x, const int64_t *begin, const int64_t *size) {
    return sn_build_part(c->b, sn_build_part(c->b, x, 1, begin[0], size[0]), 2, begin[1], size[1]);
}

/* Keras divides in f32 and cuts the fraction off. */
static int64_t scaled(int64_t extent, int64_t by, int64_t over) {
    const float ratio = (float)((double)extent * (double)by) / (float)over;
    return ratio < (float)INT32_MAX ? (int64_t)ratio : INT32_MAX;
}

static int64_t within(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

sn_value sn_picture_fit(sn_layer_call *c, sn_value x, const char *interpolation, bool antialias,
                        const int64_t *size) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(c->b->graph, x);
    const int64_t window[2] = {within(scaled(t.dims[2], size[0], size[1]), 1, t.dims[1]),
                               within(scaled(t.dims[1], size[1], size[0]), 1, t.dims[2])};
    const int64_t begin[2] = {(t.dims[1] - window[0]) / 2, (t.dims[2] - window[1]) / 2};
    const sn_value middle = sn_picture_crop(c, x, begin, window);
    return sn_picture_resize(c, middle, interpolation, antialias, size);
}

/* --- sizes ------------------------------------------------------------------------------------ */
/* The same borders on both sides, so that the aspect ratio is about that of `size`. */
static sn_value pad_to_ratio(sn_layer_call *c, sn_value x, const int64_t *size, double value) {
    const snug_type t = *sn_graph_type(c->b->graph, x);
    const int64_t height = scaled(t.dims[2], size[0], size[1]),
                  width = scaled(t.dims[1], size[1], size[0]);
    const int64_t border[4] = {0, height > t.dims[1] ? (height - t.dims[1]) / 2 : 0,
                               width > t.dims[2] ? (width - t.dims[2]) / 2 : 0, 0};
    return sn_build_pad(c->b, x, border, border, value);
}

void sn_layer_build_resizing(sn_layer_call *c) {
    const sn_conf_resizing *conf = c->conf;
    const char *interpolation = conf->interpolation.text;
    const bool antialias = conf->antialias != 0;
    snug_type t;
    sn_value x;
    int64_t size[2];
    if (!sn_picture_size(c, conf->height, conf->width, size) || !sn_picture_input(c, &x, &t))
        return;
    if (strcmp(conf->fill_mode.text, "constant") != 0 ||
        (conf->crop_to_aspect_ratio && conf->pad_to_aspect_ratio)) {
        sn_layer_refuse(c, SNUG_E_INVALID,
                        "fill_mode=%s; it must be constant, and only one of crop_to_aspect_ratio "
                        "and pad_to_aspect_ratio can be true",
                        conf->fill_mode.text);
        return;
    }
    if (conf->pad_to_aspect_ratio)
        x = pad_to_ratio(c, x, size, conf->fill_value);
    c->out = conf->crop_to_aspect_ratio ? sn_picture_fit(c, x, interpolation, antialias, size)
                                        : sn_picture_resize(c, x, interpolation, antialias, size);
}

void sn_layer_build_center_crop(sn_layer_call *c) {
    const sn_conf_center_crop *conf = c->conf;
    snug_type t;
    sn_value x;
    int64_t size[2];
    if (!sn_picture_size(c, conf->height, conf->width, size) || !sn_picture_input(c, &x, &t))
        return;
    const int64_t begin[2] = {(t.dims[1] - size[0]) / 2, (t.dims[2] - size[1]) / 2};
    c->out = t.dims[1] >= size[0] && t.dims[2] >= size[1]
                 ? sn_picture_crop(c, x, begin, size)
                 : sn_picture_fit(c, x, "bilinear", false, size);
}

void sn_layer_build_up_sampling2d(sn_layer_call *c) {
    const sn_conf_up_sampling2d *conf = c->conf;
    snug_type t;
    sn_value x;
    if (!sn_picture_input(c, &x, &t))
        return;
    int64_t size[2] = {t.dims[1], t.dims[2]};
    if (!multiply(c, size, conf->size, 2))
        return;
    c->out = strcmp(conf->interpolation.text, "nearest") == 0
                 ? sn_picture_repeat(c, x, 2, conf->size)
                 : sn_picture_resize(c, x, conf->interpolation.text, false, size);
}

/* --- scales ----------------------------------------------------------------------------------- */
/* A value each, put together by 16. */
sn_value sn_layer_vector(sn_layer_call *c, const double *v, int64_t n, bool rounds) {
    const snug_type one = {.dtype = c->policy.compute, .rank = 1, .dims = {1}};
    sn_value groups[SN_MAX_IN], entries[SN_MAX_IN];
    int n_groups = 0, n_entries = 0;
    for (int64_t i = 0; i < n; i++) {
        entries[n_entries++] = sn_build_fill(c->b, &one, rounds ? sn_keras_number(v[i]) : v[i]);
        if (n_entries == SN_MAX_IN || i == n - 1) {
            groups[n_groups++] = sn_build_concat(c->b, entries, n_entries, 0);
            n_entries = 0;
        }
    }
    return sn_build_concat(c->b, groups, n_groups, 0);
}

_Static_assert(SN_MAX_IN *SN_MAX_IN >= SN_MAX_REALS, "a vector holds every list");

void sn_layer_build_rescaling(sn_layer_call *c) {
    const sn_conf_rescaling *conf = c->conf;
    const sn_value x = sn_build_cast(c->b, c->in[0], c->policy.compute);
    const double scale = conf->scale.n ? conf->scale.v[0] : 1,
                 offset = conf->offset.n ? conf->offset.v[0] : 0;
    if (conf->scale.n <= 1 && conf->offset.n <= 1) {
        c->out = sn_build_affine(c->b, x, sn_keras_number(scale), sn_keras_number(offset));
        return;
    }
    const sn_value by = sn_layer_vector(c, conf->scale.n ? conf->scale.v : &scale,
                                        conf->scale.n ? conf->scale.n : 1, true),
                   plus = sn_layer_vector(c, conf->offset.n ? conf->offset.v : &offset,
                                          conf->offset.n ? conf->offset.n : 1, true);
    c->out = sn_build_add(c->b, sn_build_mul(c->b, x, by), plus);
}

/* Extents of the kept axes: as they are, and with 1 for all others. */
typedef struct {
    snug_type kept, broadcast;
    int64_t count;
} kept_axes;

static bool kept_axes_of(sn_layer_call *c, const snug_type *t, kept_axes *out) {
    const sn_conf_normalization *conf = c->conf;
    const double last = -1;
    const double *axes = conf->axis.n ? conf->axis.v : &last;
    const int64_t n_axes = conf->axis.n ? conf->axis.n : 1; /* none of an empty list */
    uint32_t set = 0;
    for (int i = 0; i < n_axes; i++) {
        const int axis = (int)axes[i] + (axes[i] < 0 ? t->rank : 0);
        if (axis < 1 || axis >= t->rank) {
            sn_layer_refuse(c, SNUG_E_INVALID, "axis=%g is not one of the axes 1 to %d", axes[i],
                            t->rank - 1);
            return false;
        }
        set |= 1u << axis;
    }
    *out = (kept_axes){{.rank = 0}, {.rank = t->rank}, 1};
    for (int k = 0; k < t->rank; k++) {
        const bool keep = (set >> k & 1) != 0;
        out->broadcast.dims[k] = keep ? t->dims[k] : 1;
        if (keep)
            out->kept.dims[out->kept.rank++] = t->dims[k];
        out->count *= keep ? t->dims[k] : 1;
    }
    return true;
}

/* A mean or variance as the configuration has it: for all, or one per kept element. */
static sn_value moment_of(sn_layer_call *c, const kept_axes *k, const double *v, int64_t n) {
    if (n != 1 && n != k->count) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "mean and variance have %lld entries, not 1 or %lld",
                        (long long)n, (long long)k->count);
        return SN_NO_VALUE;
    }
    const sn_value list = sn_layer_vector(c, v, n, true);
    return n == 1 ? list : sn_build_reshape(c->b, list, k->broadcast.dims, k->broadcast.rank);
}

static sn_value stored_moment(sn_layer_call *c, const kept_axes *k, const char *name,
                              const char *initializer) {
    sn_init init;
    if (sn_init_parse(initializer, &init, &c->b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_reshape(c->b, sn_layer_variable(c, name, &k->kept, &init, false),
                            k->broadcast.dims, k->broadcast.rank);
}

void sn_layer_build_normalization(sn_layer_call *c) {
    const sn_conf_normalization *conf = c->conf;
    const sn_value x = sn_build_cast(c->b, c->in[0], c->policy.compute);
    kept_axes k;
    if (c->b->error.code != SNUG_OK || !kept_axes_of(c, sn_graph_type(c->b->graph, x), &k))
        return;
    if (conf->mean.n != conf->variance.n) {
        sn_layer_refuse(c, SNUG_E_INVALID, "mean has %lld entries, variance %lld",
                        (long long)conf->mean.n, (long long)conf->variance.n);
        return;
    }
    const bool given = conf->mean.n > 0;
    const sn_value mean = given ? moment_of(c, &k, conf->mean.v, conf->mean.n)
                                : stored_moment(c, &k, "mean", "zeros"),
                   variance = given ? moment_of(c, &k, conf->variance.v, conf->variance.n)
                                    : stored_moment(c, &k, "variance", "ones");
    const sn_value least = sn_build_scalar(c->b, c->policy.compute, 1e-7),
                   spread = sn_build_maximum(c->b, sn_build_sqrt(c->b, variance), least);
    c->out = conf->invert ? sn_build_add(c->b, mean, sn_build_mul(c->b, x, spread))
                          : sn_build_div(c->b, sn_build_sub(c->b, x, mean), spread);
}
