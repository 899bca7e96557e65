/* functions_image.c: tf.image's common functions on one picture [H, W, C] or several [N, H, W,
 * C]. */
#include "function/function_call.h"

#include "op/picture_attrs.h"

#include <math.h>
#include <string.h>

/* Axis of the height; the width is behind it. */
static int height_axis(sn_fn_call *c, const snug_type *t) {
    if (t->rank != 3 && t->rank != 4)
        sn_fn_refuse(c, SNUG_E_INVALID, "a picture has 3 axes, several have 4; here are %d",
                     t->rank);
    return t->rank == 4 ? 1 : 0;
}

static sn_value as_float(sn_fn_call *c, sn_value x) {
    return sn_dtype_is_float(sn_fn_type(c, x).dtype) || sn_fn_failed(c)
               ? x
               : sn_build_cast(c->b, x, SNUG_F32);
}

void sn_fn_flip_left_right(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    c->out[0] = sn_build_flip(c->b, x, 1u << (h + 1));
}

void sn_fn_flip_up_down(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    c->out[0] = sn_build_flip(c->b, x, 1u << height_axis(c, &t));
}

void sn_fn_transpose_image(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    c->out[0] = sn_build_swapaxes(c->b, x, h, h + 1);
}

/* The largest size within the one wanted that has the picture's shape, in f32 as TensorFlow has
 * it. */
static void keep_aspect(const int64_t *picture, int64_t *size) {
    const float by_h = (float)size[0] / (float)picture[0],
                by_w = (float)size[1] / (float)picture[1], by = by_h < by_w ? by_h : by_w;
    for (int k = 0; k < 2; k++)
        size[k] = (int64_t)rintf(by * (float)picture[k]);
}

void sn_fn_resize(sn_fn_call *c) {
    static const struct {
        const char *name;
        sn_resize_method method;
    } known[] = {{"nearest", SN_RESIZE_NEAREST},   {"bilinear", SN_RESIZE_BILINEAR},
                 {"bicubic", SN_RESIZE_BICUBIC},   {"area", SN_RESIZE_AREA},
                 {"lanczos3", SN_RESIZE_LANCZOS3}, {"lanczos5", SN_RESIZE_LANCZOS5},
                 {"gaussian", SN_RESIZE_GAUSSIAN}, {"mitchellcubic", SN_RESIZE_MITCHELL}};
    const char *const key = sn_fn_place(c, "interpolation") >= 0 ? "interpolation" : "method";
    const sn_value given = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, given);
    int n;
    const int64_t *size = sn_fn_ints(c, "size", &n);
    const bool alone = height_axis(c, &t) == 0;
    sn_attrs a;
    sn_attrs_default(SN_OP_resize, &a);
    a.resize.method = SN_N_RESIZE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sn_fn_says(c, key, known[i].name))
            a.resize.method = (int64_t)known[i].method;
    if (a.resize.method == SN_N_RESIZE || n != 2)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs a height and a width, and a known method");
    a.resize.size[0] = size[0];
    a.resize.size[1] = size[1];
    if (sn_fn_place(c, "preserve_aspect_ratio") >= 0 && sn_fn_flag(c, "preserve_aspect_ratio"))
        keep_aspect(t.dims + height_axis(c, &t), a.resize.size);
    a.resize.antialias = sn_fn_flag(c, "antialias");
    sn_value x = as_float(c, given);
    x = alone ? sn_build_expand_dims(c->b, x, 0) : x;
    x = sn_build(c->b, SN_OP_resize, &a, &x, 1);
    x = alone ? sn_build_squeeze(c->b, x, 0) : x;
    c->out[0] = a.resize.method == SN_RESIZE_NEAREST && !sn_fn_failed(c)
                    ? sn_build_cast(c->b, x, t.dtype)
                    : x;
}

/* Rows [top, top + height), columns [left, left + width). */
static sn_value crop(sn_fn_call *c, sn_value x, int64_t top, int64_t left, int64_t height,
                     int64_t width) {
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    if (!sn_fn_failed(c) && (top < 0 || left < 0 || height < 0 || width < 0 ||
                             top + height > t.dims[h] || left + width > t.dims[h + 1]))
        sn_fn_refuse(c, SNUG_E_INVALID, "the part lies outside of the picture");
    return sn_build_part(c->b, sn_build_part(c->b, x, h, top, height), h + 1, left, width);
}

static sn_value surround(sn_fn_call *c, sn_value x, int64_t top, int64_t left, int64_t height,
                         int64_t width) {
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    int64_t before[SNUG_MAX_RANK] = {0}, after[SNUG_MAX_RANK] = {0};
    before[h] = top;
    before[h + 1] = left;
    after[h] = height - top - t.dims[h];
    after[h + 1] = width - left - t.dims[h + 1];
    return sn_build_pad(c->b, x, before, after, 0);
}

void sn_fn_crop_to_box(sn_fn_call *c) {
    c->out[0] =
        crop(c, sn_fn_value(c, 0), sn_fn_int(c, "offset_height"), sn_fn_int(c, "offset_width"),
             sn_fn_int(c, "target_height"), sn_fn_int(c, "target_width"));
}

void sn_fn_pad_to_box(sn_fn_call *c) {
    c->out[0] =
        surround(c, sn_fn_value(c, 0), sn_fn_int(c, "offset_height"), sn_fn_int(c, "offset_width"),
                 sn_fn_int(c, "target_height"), sn_fn_int(c, "target_width"));
}

/* Cut or padded alike on both sides. */
void sn_fn_crop_or_pad(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    if (sn_fn_failed(c))
        return;
    const int64_t height = sn_fn_int(c, "target_height"), width = sn_fn_int(c, "target_width"),
                  rows = t.dims[h] < height ? t.dims[h] : height,
                  columns = t.dims[h + 1] < width ? t.dims[h + 1] : width;
    x = crop(c, x, (t.dims[h] - rows) / 2, (t.dims[h + 1] - columns) / 2, rows, columns);
    c->out[0] = surround(c, x, (height - rows) / 2, (width - columns) / 2, height, width);
}

void sn_fn_central_crop(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    const double share = sn_fn_real(c, "central_fraction");
    if (sn_fn_failed(c) || !(share > 0 && share <= 1))
        return sn_fn_refuse(c, SNUG_E_INVALID, "central_fraction must be within (0, 1]");
    const int64_t top = (int64_t)(((double)t.dims[h] - (double)t.dims[h] * share) / 2),
                  left = (int64_t)(((double)t.dims[h + 1] - (double)t.dims[h + 1] * share) / 2);
    c->out[0] = crop(c, x, top, left, t.dims[h] - 2 * top, t.dims[h + 1] - 2 * left);
}

/* Numbers for the height and the width of windows: TensorFlow's four entries, or Keras' one or
 * two. */
static bool plane_setting(sn_fn_call *c, const char *key, int64_t *two) {
    int n;
    const int64_t *v = sn_fn_ints(c, key, &n);
    const bool fits = v && (c->promotes ? n == 1 || n == 2 : n == 4);
    if (!fits)
        sn_fn_refuse(c, SNUG_E_INVALID, "%s needs %s for pictures", key,
                     c->promotes ? "one or two entries" : "four entries");
    for (int k = 0; fits && k < 2; k++)
        two[k] = n == 4 ? v[1 + k] : v[n == 2 ? k : 0];
    for (int k = 0; fits && k < 2; k++)
        if (two[k] < 1 || two[k] > INT32_MAX) {
            sn_fn_refuse(c, SNUG_E_INVALID, "%s has the entry %lld; it must be 1 to %d", key,
                         (long long)two[k], INT32_MAX);
            return false;
        }
    return fits;
}

/* Windows that neither overlap nor leave gaps are a new order of the picture. */
static sn_value tiles(sn_fn_call *c, sn_value x, const int64_t *size, const int64_t *count) {
    static const int by_tile[6] = {0, 1, 3, 2, 4, 5};
    const snug_type t = sn_fn_type(c, x);
    const int64_t parts[6] = {t.dims[0], count[0], size[0], count[1], size[1], t.dims[3]},
                  flat[4] = {t.dims[0], count[0], count[1], -1};
    return sn_build_reshape(
        c->b, sn_build_transpose(c->b, sn_build_reshape(c->b, x, parts, 6), by_tile), flat, 4);
}

typedef struct {
    const int64_t *size, *stride, *rate, *count; /* of both axes */
} windows;

#define MAX_PIXELS 4096 /* of a window that is made of slices */

/* Pixel (i, j) of every window: one picture per place in the window, channel after channel. */
static sn_value pixels(sn_fn_call *c, sn_value x, const windows *w) {
    const int64_t step[4] = {1, w->stride[0], w->stride[1], 1},
                  shape[4] = {-1, w->count[0], w->count[1], -1};
    sn_value parts[SN_MAX_IN];
    int n = 0;
    for (int64_t k = 0; k < w->size[0] * w->size[1] && !sn_fn_failed(c); k++) {
        const int64_t from[4] = {0, k / w->size[1] * w->rate[0], k % w->size[1] * w->rate[1], 0};
        if (n == SN_MAX_IN) {
            parts[0] = sn_build_concat(c->b, parts, n, 3);
            n = 1;
        }
        parts[n++] = sn_build_slice(c->b, x, from, shape, step);
    }
    return sn_build_concat(c->b, parts, n, 3);
}

/* Windows over a picture, which lie side by side as channels. */
void sn_fn_extract_patches(sn_fn_call *c) {
    sn_value x = sn_fn_channels_last(c, sn_fn_value(c, 0));
    snug_type t = sn_fn_type(c, x);
    int64_t size[2], stride[2], rate[2], before[4] = {0}, after[4] = {0}, count[2];
    const char *const sizes = c->promotes ? "size" : "sizes";
    if (t.rank != 4)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs pictures of 4 axes, not of %d", t.rank);
    if (!plane_setting(c, sizes, size) ||
        !plane_setting(c, sn_fn_given(c, "strides") ? "strides" : sizes, stride) ||
        !plane_setting(c, c->promotes ? "dilation_rate" : "rates", rate))
        return;
    bool even = true;
    for (int k = 0; k < 2; k++) {
        const int64_t reach = (size[k] - 1) * rate[k] + 1, by = stride[k], extent = t.dims[1 + k];
        count[k] =
            sn_fn_says(c, "padding", "same") ? (extent + by - 1) / by : (extent - reach) / by + 1;
        const int64_t covered = (count[k] - 1) * by + reach, more = covered - extent;
        if (count[k] < 1)
            return sn_fn_refuse(c, SNUG_E_INVALID, "a window reaches over %lld of %lld pixels",
                                (long long)reach, (long long)extent);
        before[1 + k] = more > 0 ? more / 2 : 0;
        after[1 + k] = more > 0 ? more - more / 2 : 0;
        even = even && by == size[k] && rate[k] == 1 && covered == extent;
    }
    if (!even && size[0] * size[1] > MAX_PIXELS)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                            "a window of %lld x %lld pixels; where windows overlap or leave gaps "
                            "at most %d are possible",
                            (long long)size[0], (long long)size[1], MAX_PIXELS);
    x = sn_build_pad(c->b, x, before, after, 0);
    c->out[0] = sn_fn_channels_back(c, even ? tiles(c, x, size, count)
                                            : pixels(c, x, &(windows){size, stride, rate, count}));
}

/* 20 log10(max) - 10 log10 of the mean square difference of each picture */
void sn_fn_psnr(sn_fn_call *c) {
    const sn_value x = as_float(c, sn_fn_value(c, 0)), y = as_float(c, sn_fn_value(c, 1));
    const int rank = sn_fn_type(c, x).rank;
    if (rank < 3)
        return sn_fn_refuse(c, SNUG_E_INVALID, "a picture has 3 axes");
    const sn_value mse = sn_build_mean(c->b, sn_build_square(c->b, sn_build_sub(c->b, x, y)),
                                       7u << (rank - 3), false);
    c->out[0] = sn_build_affine(c->b, sn_build_log(c->b, mse), -10 / log(10),
                                20 * log10(sn_fn_real(c, "max_val")));
}

/* --- colours ---------------------------------------------------------------------------------- */
static bool channels_first(sn_fn_call *c) {
    return sn_fn_says(c, "data_format", "channels_first") || sn_fn_says(c, "data_format", "NCHW");
}

/* Pictures, or one of them, whose channels come first where the argument data_format says so. */
sn_value sn_fn_channels_last(sn_fn_call *c, sn_value x) {
    static const int one[3] = {1, 2, 0}, all[4] = {0, 2, 3, 1};
    const int rank = sn_fn_type(c, x).rank;
    if (!channels_first(c) || (rank != 3 && rank != 4))
        return x;
    return sn_build_transpose(c->b, x, rank == 3 ? one : all);
}

sn_value sn_fn_channels_back(sn_fn_call *c, sn_value x) {
    static const int one[3] = {2, 0, 1}, all[4] = {0, 3, 1, 2};
    const int rank = sn_fn_type(c, x).rank;
    if (!channels_first(c) || (rank != 3 && rank != 4))
        return x;
    return sn_build_transpose(c->b, x, rank == 3 ? one : all);
}

/* Brightness of red, green and blue along the last axis. */
void sn_fn_rgb_to_grayscale(sn_fn_call *c) {
    static const double share[3] = {0.2989, 0.5870, 0.1140};
    const sn_value given = sn_fn_channels_last(c, sn_fn_value(c, 0)),
                   x = sn_fn_unit_picture(c, given);
    const snug_type t = sn_fn_type(c, x);
    sn_value sum = SN_NO_VALUE;
    if (t.rank < 1 || t.dims[t.rank - 1] != 3)
        return sn_fn_refuse(c, SNUG_E_INVALID, "the last axis must be three colours");
    for (int k = 0; k < 3; k++) {
        const sn_value part = sn_build_affine(c->b, sn_build_part(c->b, x, -1, k, 1), share[k], 0);
        sum = k ? sn_build_add(c->b, sum, part) : part;
    }
    c->out[0] = sn_fn_channels_back(c, sn_fn_picture_of(c, sum, sn_fn_type(c, given).dtype));
}

void sn_fn_grayscale_to_rgb(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    snug_type t = sn_fn_type(c, x);
    if (t.rank < 1 || t.dims[t.rank - 1] != 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "the last axis must have one element");
    t.dims[t.rank - 1] = 3;
    c->out[0] = sn_build_broadcast_to(c->b, x, &t);
}

void sn_fn_adjust_brightness(sn_fn_call *c) {
    const sn_value given = sn_fn_value(c, 0), x = sn_fn_unit_picture(c, given);
    c->out[0] = sn_fn_picture_of(c, sn_build_affine(c->b, x, 1, sn_fn_real(c, "delta")),
                                 sn_fn_type(c, given).dtype);
}

/* Each channel's distance from its mean, scaled by a number of its dtype. */
static void change_contrast(sn_fn_call *c, sn_value factor) {
    const sn_value given = sn_fn_value(c, 0), x = sn_fn_unit_picture(c, given);
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    if (sn_fn_failed(c))
        return;
    const sn_value mean = sn_build_mean(c->b, x, 3u << h, true),
                   off = sn_build_mul(c->b, sn_build_sub(c->b, x, mean), factor);
    c->out[0] = sn_fn_picture_of(c, sn_build_add(c->b, off, mean), sn_fn_type(c, given).dtype);
}

/* f32 for whole numbers, which become floats on the way. */
static snug_dtype float_of(sn_fn_call *c, sn_value x) {
    const snug_dtype t = sn_fn_type(c, x).dtype;
    return sn_dtype_is_float(t) ? t : SNUG_F32;
}

/* A setting as a number of the picture's dtype. */
static sn_value setting(sn_fn_call *c, const char *name) {
    const sn_value x = sn_fn_value(c, 0);
    return sn_build_scalar(c->b, float_of(c, x), sn_fn_real(c, name));
}

void sn_fn_adjust_contrast(sn_fn_call *c) {
    change_contrast(c, setting(c, "contrast_factor"));
}

void sn_fn_standardize_image(sn_fn_call *c) {
    const sn_value x = as_float(c, sn_fn_value(c, 0));
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    if (sn_fn_failed(c))
        return;
    const double n = (double)(t.dims[h] * t.dims[h + 1] * t.dims[h + 2]);
    const uint32_t axes = 7u << h;
    const sn_value mean = sn_build_mean(c->b, x, axes, true),
                   spread = sn_build_deviation(c->b, x, axes, true),
                   least = sn_build_maximum(c->b, spread, sn_fn_like(c, x, 1 / sqrt(n)));
    c->out[0] = sn_build_div(c->b, sn_build_sub(c->b, x, mean), least);
}

/* Whole numbers span their dtype, floats [0, 1]. */
static double span_of(snug_dtype dtype) {
    return sn_dtype_is_int(dtype) ? sn_dtype_largest(dtype) : INT32_MAX;
}

/* As the picture came, before it was widened to be computed with. */
static snug_dtype dtype_of(const sn_fn_call *c, sn_value x) {
    const snug_dtype is = sn_fn_type(c, x).dtype;
    return (is == SNUG_I32 || is == SNUG_I64) && c->narrow != SNUG_N_DTYPES ? c->narrow : is;
}

sn_value sn_fn_unit_picture(sn_fn_call *c, sn_value x) {
    const snug_dtype from = dtype_of(c, x);
    return sn_dtype_is_float(from) || sn_fn_failed(c)
               ? x
               : sn_build_affine(c->b, sn_build_cast(c->b, x, SNUG_F32), 1 / span_of(from), 0);
}

sn_value sn_fn_picture_of(sn_fn_call *c, sn_value unit, snug_dtype dtype) {
    if (sn_dtype_is_float(dtype) || sn_fn_failed(c))
        return unit;
    const double most = span_of(dtype);
    const sn_value scaled = sn_build_affine(c->b, unit, most + 0.5, 0);
    return sn_build_cast(c->b, sn_build_clip(c->b, scaled, 0, most), dtype);
}

void sn_fn_convert_image_dtype(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_dtype from = dtype_of(c, x), to = sn_fn_dtype(c, "dtype", from);
    const bool real_from = sn_dtype_is_float(from), real_to = sn_dtype_is_float(to);
    if (from == to || (real_from && real_to))
        c->out[0] = sn_build_cast(c->b, x, to);
    else if (real_to)
        c->out[0] = sn_build_affine(c->b, sn_build_cast(c->b, x, to), 1 / span_of(from), 0);
    else if (real_from)
        c->out[0] = sn_fn_picture_of(c, x, to);
    else
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "from one integer dtype to another");
}

/* --- hue and saturation ----------------------------------------------------------------------- */
static sn_value channel(sn_fn_call *c, sn_value x, int k) {
    return sn_build_part(c->b, x, -1, k, 1);
}

/* x / y, 0 where y is 0. */
static sn_value share(sn_fn_call *c, sn_value x, sn_value y) {
    const sn_value zero = sn_fn_like(c, y, 0), none = sn_build_equal(c->b, y, zero);
    return sn_build_select(
        c->b, none, zero,
        sn_build_div(c->b, x, sn_build_select(c->b, none, sn_fn_like(c, y, 1), y)));
}

/* Which colour is largest says where on the circle of six parts the hue lies. */
static sn_value to_hsv(sn_fn_call *c, sn_value x) {
    const sn_value r = channel(c, x, 0), g = channel(c, x, 1), b = channel(c, x, 2);
    const sn_value most = sn_build_maximum(c->b, r, sn_build_maximum(c->b, g, b)),
                   least = sn_build_minimum(c->b, r, sn_build_minimum(c->b, g, b)),
                   range = sn_build_sub(c->b, most, least);
    const sn_value by_r = share(c, sn_build_sub(c->b, g, b), range),
                   by_g = sn_build_affine(c->b, share(c, sn_build_sub(c->b, b, r), range), 1, 2),
                   by_b = sn_build_affine(c->b, share(c, sn_build_sub(c->b, r, g), range), 1, 4);
    const sn_value is_r = sn_build_equal(c->b, most, r), is_g = sn_build_equal(c->b, most, g);
    const sn_value six = sn_build_select(c->b, is_r, by_r, sn_build_select(c->b, is_g, by_g, by_b));
    const sn_value flat = sn_build_equal(c->b, range, sn_fn_like(c, range, 0));
    const sn_value turns = sn_build_affine(c->b, six, 1.0 / 6, 0),
                   hue = sn_build_sub(c->b, turns, sn_build_floor(c->b, turns));
    const sn_value parts[3] = {sn_build_select(c->b, flat, sn_fn_like(c, x, 0), hue),
                               share(c, range, most), most};
    return sn_build_concat(c->b, parts, 3, -1);
}

/* v - v s max(0, min(k, 4 - k, 1)) with k = (n + 6 h) mod 6, for n = 5, 3, 1. */
static sn_value from_hsv(sn_fn_call *c, sn_value x) {
    const sn_value h = channel(c, x, 0), s = channel(c, x, 1), v = channel(c, x, 2),
                   vs = sn_build_mul(c->b, v, s);
    sn_value parts[3];
    for (int i = 0; i < 3; i++) {
        const sn_value k =
            sn_build_mod(c->b, sn_build_affine(c->b, h, 6, 5 - 2 * i), sn_fn_like(c, h, 6));
        const sn_value inside = sn_build_minimum(c->b, k, sn_build_affine(c->b, k, -1, 4));
        parts[i] = sn_build_sub(c->b, v, sn_build_mul(c->b, vs, sn_build_clip(c->b, inside, 0, 1)));
    }
    return sn_build_concat(c->b, parts, 3, -1);
}

static bool has_colours(sn_fn_call *c, sn_value x) {
    const snug_type t = sn_fn_type(c, x);
    if (!sn_fn_failed(c) && (t.rank < 1 || t.dims[t.rank - 1] != 3))
        sn_fn_refuse(c, SNUG_E_INVALID, "the last axis must be three colours");
    return !sn_fn_failed(c);
}

void sn_fn_rgb_to_hsv(sn_fn_call *c) {
    const sn_value x = as_float(c, sn_fn_channels_last(c, sn_fn_value(c, 0)));
    c->out[0] = has_colours(c, x) ? sn_fn_channels_back(c, to_hsv(c, x)) : SN_NO_VALUE;
}

void sn_fn_hsv_to_rgb(sn_fn_call *c) {
    const sn_value x = as_float(c, sn_fn_channels_last(c, sn_fn_value(c, 0)));
    c->out[0] = has_colours(c, x) ? sn_fn_channels_back(c, from_hsv(c, x)) : SN_NO_VALUE;
}

/* Hue plus `turn`, saturation times `factor`; either may be SN_NO_VALUE. */
static void recolour(sn_fn_call *c, sn_value turn, sn_value factor) {
    const sn_value given = sn_fn_value(c, 0), x = sn_fn_unit_picture(c, given);
    if (!has_colours(c, x))
        return;
    const sn_value hsv = to_hsv(c, x);
    sn_value parts[3] = {channel(c, hsv, 0), channel(c, hsv, 1), channel(c, hsv, 2)};
    if (sn_value_ok(turn)) {
        const sn_value h = sn_build_add(c->b, parts[0], turn);
        parts[0] = sn_build_sub(c->b, h, sn_build_floor(c->b, h));
    }
    if (sn_value_ok(factor))
        parts[1] = sn_build_clip(c->b, sn_build_mul(c->b, parts[1], factor), 0, 1);
    c->out[0] = sn_fn_picture_of(c, from_hsv(c, sn_build_concat(c->b, parts, 3, -1)),
                                 sn_fn_type(c, given).dtype);
}

void sn_fn_adjust_saturation(sn_fn_call *c) {
    recolour(c, SN_NO_VALUE, setting(c, "saturation_factor"));
}

void sn_fn_adjust_hue(sn_fn_call *c) {
    recolour(c, setting(c, "delta"), SN_NO_VALUE);
}

void sn_fn_adjust_gamma(sn_fn_call *c) {
    const sn_value given = sn_fn_value(c, 0), x = sn_fn_unit_picture(c, given);
    const sn_value y =
        sn_build_affine(c->b, sn_build_value_op(c->b, SN_OP_power, &x, 1, sn_fn_real(c, "gamma")),
                        sn_fn_real(c, "gain"), 0);
    c->out[0] = sn_fn_picture_of(c, y, sn_fn_type(c, given).dtype);
}

void sn_fn_total_variation(sn_fn_call *c) {
    const sn_value x = as_float(c, sn_fn_value(c, 0));
    const snug_type t = sn_fn_type(c, x);
    const int h = height_axis(c, &t);
    sn_value sum = SN_NO_VALUE;
    for (int axis = h; axis < h + 2 && !sn_fn_failed(c); axis++) {
        const int64_t n = t.dims[axis] - 1;
        const sn_value apart =
            sn_build_abs(c->b, sn_build_sub(c->b, sn_build_part(c->b, x, axis, 1, n),
                                            sn_build_part(c->b, x, axis, 0, n)));
        const sn_value part = sn_build_sum(c->b, apart, 7u << h, false);
        sum = axis > h ? sn_build_add(c->b, sum, part) : part;
    }
    c->out[0] = sum;
}

/* --- random ----------------------------------------------------------------------------------- */
/* A number for each picture, of a shape that spreads over it. */
static sn_value number_each(sn_fn_call *c, const snug_type *t, double low, double high) {
    sn_attrs a;
    sn_attrs_default(SN_OP_random, &a);
    a.random.dims = (sn_list){.n = t->rank, .v = {1, 1, 1, 1, 1, 1, 1, 1}};
    a.random.dims.v[0] = t->rank == 4 ? t->dims[0] : 1;
    a.random.dtype = SNUG_F32;
    a.random.kind = 0; /* uniform */
    a.random.key = sn_fn_key(c);
    a.random.low = sn_fn_parameter(c, low);
    a.random.high = sn_fn_parameter(c, high);
    return sn_build(c->b, SN_OP_random, &a, NULL, 0);
}

static void flip_some(sn_fn_call *c, int behind_height) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int axis = height_axis(c, &t) + behind_height;
    if (sn_fn_failed(c))
        return;
    const sn_value u = number_each(c, &t, 0, 1);
    c->out[0] = sn_build_select(c->b, sn_build_less(c->b, u, sn_fn_like(c, u, 0.5)),
                                sn_build_flip(c->b, x, 1u << axis), x);
}

void sn_fn_random_flip_left_right(sn_fn_call *c) {
    flip_some(c, 1);
}

void sn_fn_random_flip_up_down(sn_fn_call *c) {
    flip_some(c, 0);
}

/* One number for all of them, as the picture's float dtype. */
static sn_value one_number(sn_fn_call *c, double low, double high) {
    const snug_type one = {.dtype = SNUG_F32, .rank = 0};
    const sn_value x = sn_fn_value(c, 0);
    return sn_build_cast(c->b, number_each(c, &one, low, high), float_of(c, x));
}

void sn_fn_random_brightness(sn_fn_call *c) {
    const sn_value given = sn_fn_value(c, 0), x = sn_fn_unit_picture(c, given);
    const double most = sn_fn_real(c, "max_delta");
    c->out[0] = sn_fn_picture_of(c, sn_build_add(c->b, x, one_number(c, -most, most)),
                                 sn_fn_type(c, given).dtype);
}

void sn_fn_random_contrast(sn_fn_call *c) {
    change_contrast(c, one_number(c, sn_fn_real(c, "lower"), sn_fn_real(c, "upper")));
}

void sn_fn_random_saturation(sn_fn_call *c) {
    recolour(c, SN_NO_VALUE, one_number(c, sn_fn_real(c, "lower"), sn_fn_real(c, "upper")));
}

void sn_fn_random_hue(sn_fn_call *c) {
    const double most = sn_fn_real(c, "max_delta");
    recolour(c, one_number(c, -most, most), SN_NO_VALUE);
}
