/* functions_picture.c: tf.image beyond the common functions: other colour systems, edges, pictures
 * compared by structure, boxes cut out and resized. All are compositions of operators. */
#include "function/function_call.h"

#include "op/picture_attrs.h"

#include <math.h>
#include <string.h>

/* Axis of the height in one picture [H, W, C] or several [N, H, W, C]. */
static int height_axis(sn_fn_call *c, const snug_type *t) {
    if (!sn_fn_failed(c) && t->rank != 3 && t->rank != 4)
        sn_fn_refuse(c, SNUG_E_INVALID, "a picture has 3 axes, several have 4; here are %d",
                     t->rank);
    return t->rank == 4 ? 1 : 0;
}

/* --- colour systems --------------------------------------------------------------------------- */
/* Colours times a matrix whose columns are the new ones. */
static void change_colours(sn_fn_call *c, const double m[3][3]) {
    const sn_value x = sn_fn_unit_picture(c, sn_fn_value(c, 0));
    const snug_type t = sn_fn_type(c, x);
    sn_value parts[3];
    if (!sn_fn_failed(c) && (t.rank < 1 || t.dims[t.rank - 1] != 3))
        return sn_fn_refuse(c, SNUG_E_INVALID, "the last axis must be three colours");
    for (int k = 0; k < 3; k++) {
        sn_value sum = SN_NO_VALUE;
        for (int i = 0; i < 3; i++) {
            const sn_value part =
                sn_build_affine(c->b, sn_build_part(c->b, x, -1, i, 1), m[i][k], 0);
            sum = i ? sn_build_add(c->b, sum, part) : part;
        }
        parts[k] = sum;
    }
    c->out[0] = sn_build_concat(c->b, parts, 3, -1);
}

void sn_fn_rgb_to_yuv(sn_fn_call *c) {
    change_colours(c, (const double[3][3]){{0.299, -0.14714119, 0.61497538},
                                           {0.587, -0.28886916, -0.51496512},
                                           {0.114, 0.43601035, -0.10001026}});
}

void sn_fn_yuv_to_rgb(sn_fn_call *c) {
    change_colours(c, (const double[3][3]){
                          {1, 1, 1}, {0, -0.394642334, 2.03206185}, {1.13988303, -0.58062185, 0}});
}

void sn_fn_rgb_to_yiq(sn_fn_call *c) {
    change_colours(c, (const double[3][3]){{0.299, 0.59590059, 0.2115},
                                           {0.587, -0.27455667, -0.52273617},
                                           {0.114, -0.32134392, 0.31119955}});
}

void sn_fn_yiq_to_rgb(sn_fn_call *c) {
    change_colours(c, (const double[3][3]){{1, 1, 1},
                                           {0.95598634, -0.27201283, -1.10674021},
                                           {0.6208248, -0.64720424, 1.70423049}});
}

/* --- edges ------------------------------------------------------------------------------------ */
/* The next pixel minus this one along an axis; 0 at the end. */
static sn_value differences(sn_fn_call *c, sn_value x, int axis) {
    const snug_type t = sn_fn_type(c, x);
    int64_t none[SNUG_MAX_RANK] = {0}, after[SNUG_MAX_RANK] = {0};
    after[axis] = 1;
    const sn_value apart = sn_build_sub(c->b, sn_build_part(c->b, x, axis, 1, t.dims[axis] - 1),
                                        sn_build_part(c->b, x, axis, 0, t.dims[axis] - 1));
    return sn_build_pad(c->b, apart, none, after, 0);
}

void sn_fn_image_gradients(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    if (sn_fn_type(c, x).rank != 4)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it takes pictures [N, H, W, C]");
    c->out[0] = differences(c, x, 1);
    c->out[1] = differences(c, x, 2);
    c->n_out = 2;
}

/* sum of w[k] * x shifted by k along an axis, n - count + 1 pixels of n. */
static sn_value weighted(sn_fn_call *c, sn_value x, int axis, const double *w, int count) {
    if (sn_fn_failed(c))
        return SN_NO_VALUE;
    const int64_t n = sn_fn_type(c, x).dims[axis] - count + 1;
    sn_value sum = SN_NO_VALUE;
    for (int k = 0; k < count; k++) {
        if (w[k] == 0)
            continue;
        const sn_value part = sn_build_affine(c->b, sn_build_part(c->b, x, axis, k, n), w[k], 0);
        sum = sn_value_ok(sum) ? sn_build_add(c->b, sum, part) : part;
    }
    return sum;
}

void sn_fn_sobel_edges(sn_fn_call *c) {
    static const double smooth[3] = {1, 2, 1}, apart[3] = {-1, 0, 1};
    const int64_t around[SNUG_MAX_RANK] = {0, 1, 1, 0};
    const sn_value given = sn_fn_value(c, 0);
    if (sn_fn_type(c, given).rank != 4)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it takes pictures [N, H, W, C]");
    const sn_value x = sn_build_pad_mirror(c->b, given, around, around, false);
    const sn_value edges[2] = {weighted(c, weighted(c, x, 1, apart, 3), 2, smooth, 3),
                               weighted(c, weighted(c, x, 1, smooth, 3), 2, apart, 3)};
    c->out[0] = sn_build_stack(c->b, edges, 2, -1);
}

/* --- structural similarity -------------------------------------------------------------------- */
typedef struct {
    int size;
    double weight[64];
    double c1, c2;
} ssim_window;

/* Means over a window whose weights fall off as a bell. */
static sn_value blur(sn_fn_call *c, sn_value x, const ssim_window *w) {
    const int h = sn_fn_type(c, x).rank - 3;
    return weighted(c, weighted(c, x, h, w->weight, w->size), h + 1, w->weight, w->size);
}

static bool fill_window(sn_fn_call *c, double span, ssim_window *w) {
    const double sigma = sn_fn_real(c, "filter_sigma"), k1 = sn_fn_real(c, "k1"),
                 k2 = sn_fn_real(c, "k2");
    double sum = 0;
    w->size = (int)sn_fn_int(c, "filter_size");
    if (w->size < 1 || w->size > 64) {
        sn_fn_refuse(c, SNUG_E_INVALID, "filter_size must lie between 1 and 64");
        return false;
    }
    for (int i = 0; i < w->size; i++) {
        const double x = i - (w->size - 1) / 2.0;
        sum += w->weight[i] = exp(-x * x / (2 * sigma * sigma));
    }
    for (int i = 0; i < w->size; i++)
        w->weight[i] /= sum;
    w->c1 = k1 * span * k1 * span;
    w->c2 = k2 * span * k2 * span;
    return true;
}

/* Pictures [..., H, W, C] that are as large as it. */
static bool holds_window(const snug_type *t, const ssim_window *w) {
    return t->rank >= 3 && t->dims[t->rank - 3] >= w->size && t->dims[t->rank - 2] >= w->size;
}

void sn_fn_ssim(sn_fn_call *c) {
    sn_builder *const b = c->b;
    const sn_value first = sn_fn_value(c, 0);
    const sn_value x = sn_fn_unit_picture(c, first), y = sn_fn_unit_picture(c, sn_fn_value(c, 1));
    const snug_type given = sn_fn_type(c, first), t = sn_fn_type(c, x), other = sn_fn_type(c, y);
    const double scale = given.dtype == SNUG_U8 ? 255 : 1;
    ssim_window w;
    if (sn_fn_failed(c) || !fill_window(c, sn_fn_real(c, "max_val") / scale, &w))
        return;
    if (!holds_window(&t, &w) || !holds_window(&other, &w))
        return sn_fn_refuse(c, SNUG_E_INVALID, "pictures must be at least %d by %d pixels", w.size,
                            w.size);
    const sn_value mx = blur(c, x, &w), my = blur(c, y, &w), product = sn_build_mul(b, mx, my),
                   squares = sn_build_add(b, sn_build_square(b, mx), sn_build_square(b, my));
    const sn_value light =
        sn_build_div(b, sn_build_affine(b, product, 2, w.c1), sn_build_affine(b, squares, 1, w.c1));
    const sn_value xy = blur(c, sn_build_mul(b, x, y), &w),
                   xx = blur(c, sn_build_add(b, sn_build_square(b, x), sn_build_square(b, y)), &w);
    const sn_value structure =
        sn_build_div(b, sn_build_affine(b, sn_build_sub(b, xy, product), 2, w.c2),
                     sn_build_affine(b, sn_build_sub(b, xx, squares), 1, w.c2));
    const sn_value map = sn_build_mul(b, light, structure);
    const int h = t.rank - 3;
    c->out[0] = sn_build_mean(b, map, (sn_fn_flag(c, "return_index_map") ? 4u : 7u) << h, false);
}

/* --- resize_with_pad -------------------------------------------------------------------------- */
static int64_t method_of(sn_fn_call *c) {
    static const char *const names[SN_N_RESIZE] = {"nearest",  "bilinear",     "bicubic",
                                                   "area",     "lanczos3",     "lanczos5",
                                                   "gaussian", "mitchellcubic"};
    for (int i = 0; i < SN_N_RESIZE; i++)
        if (sn_fn_says(c, "method", names[i]))
            return i;
    sn_fn_refuse(c, SNUG_E_INVALID, "method is not known");
    return 0;
}

void sn_fn_resize_with_pad(sn_fn_call *c) {
    const sn_value given = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, given);
    const int h = height_axis(c, &t);
    const int64_t to[2] = {sn_fn_int(c, "target_height"), sn_fn_int(c, "target_width")};
    int64_t before[SNUG_MAX_RANK] = {0}, after[SNUG_MAX_RANK] = {0};
    sn_attrs a;
    sn_attrs_default(SN_OP_resize, &a);
    a.resize.method = method_of(c);
    a.resize.antialias = sn_fn_flag(c, "antialias");
    if (sn_fn_failed(c))
        return;
    if (to[0] < 1 || to[1] < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "target sizes must be at least 1");
    /* In f64, as TensorFlow for sizes that are known. */
    const double by_h = (double)t.dims[h] / (double)to[0],
                 by_w = (double)t.dims[h + 1] / (double)to[1], by = by_h > by_w ? by_h : by_w;
    for (int k = 0; k < 2; k++) {
        const double size = (double)t.dims[h + k] / by, pad = ((double)to[k] - size) / 2;
        a.resize.size[k] = (int64_t)floor(size);
        before[h + k] = pad > 0 ? (int64_t)floor(pad) : 0;
        after[h + k] = to[k] - before[h + k] - a.resize.size[k];
    }
    sn_value x = sn_dtype_is_float(t.dtype) ? given : sn_build_cast(c->b, given, SNUG_F32);
    x = h == 0 ? sn_build_expand_dims(c->b, x, 0) : x;
    x = sn_build(c->b, SN_OP_resize, &a, &x, 1);
    x = h == 0 ? sn_build_squeeze(c->b, x, 0) : x;
    x = sn_build_pad(c->b, x, before, after, 0);
    c->out[0] = a.resize.method == SN_RESIZE_NEAREST ? sn_build_cast(c->b, x, t.dtype) : x;
}

/* --- crop_and_resize -------------------------------------------------------------------------- */
/* One axis of all boxes: where the samples lie, [boxes, size], and whether inside the picture. */
typedef struct {
    sn_value below, above, share, inside; /* i32, i32, f32, bool */
} samples;

static samples sample_axis(sn_fn_call *c, sn_value boxes, int axis, int64_t extent, int64_t size,
                           bool nearest) {
    sn_builder *const b = c->b;
    const double last = (double)(extent - 1);
    const sn_value low = sn_build_affine(b, sn_build_part(b, boxes, 1, axis, 1), last, 0),
                   high = sn_build_affine(b, sn_build_part(b, boxes, 1, axis + 2, 1), last, 0);
    const snug_type row = {SNUG_F32, 2, {1, size}};
    const sn_value steps =
        sn_build_scan(b, SN_OP_cumsum, sn_build_fill(b, &row, 1), 1, true, false);
    const sn_value stride =
        sn_build_affine(b, sn_build_sub(b, high, low), size > 1 ? 1.0 / (double)(size - 1) : 0, 0);
    const sn_value start = size > 1 ? low : sn_build_affine(b, sn_build_add(b, low, high), 0.5, 0);
    const sn_value at = sn_build_add(b, start, sn_build_mul(b, stride, steps));
    const sn_value zero = sn_fn_like(c, at, 0), most = sn_fn_like(c, at, last);
    const sn_value inside =
        sn_build_logical_and(b, sn_build_less_equal(b, zero, at), sn_build_less_equal(b, at, most));
    const sn_value place = sn_build_clip(b, at, 0, last);
    const sn_value below = sn_build_floor(b, nearest ? sn_build_affine(b, place, 1, 0.5) : place);
    const sn_value above =
        nearest ? below : sn_build_minimum(b, sn_build_affine(b, below, 1, 1), most);
    return (samples){sn_build_cast(b, below, SNUG_I32), sn_build_cast(b, above, SNUG_I32),
                     sn_build_sub(b, place, below), inside};
}

/* A value of every box, row and column, from those of an axis: its place among the three is k. */
static sn_value spread(sn_fn_call *c, sn_value x, int k, const snug_type *t) {
    const snug_type have = sn_fn_type(c, x);
    int64_t dims[3] = {t->dims[0], 1, 1};
    snug_type to = {have.dtype, 3, {t->dims[0], t->dims[1], t->dims[2]}};
    if (k > 0)
        dims[k] = t->dims[k];
    return sn_build_broadcast_to(c->b, sn_build_reshape(c->b, x, dims, 3), &to);
}

/* Pixels [boxes, rows, columns, channels] at these rows and columns. */
static sn_value pick(sn_fn_call *c, sn_value picture, sn_value which, sn_value y, sn_value x,
                     const snug_type *t) {
    const sn_value at[3] = {spread(c, which, 0, t), spread(c, y, 1, t), spread(c, x, 2, t)};
    return sn_build_gather_nd(c->b, picture, sn_build_stack(c->b, at, 3, -1), 0);
}

/* a + (b - a) share */
static sn_value between(sn_fn_call *c, sn_value a, sn_value b, sn_value share) {
    return sn_build_add(c->b, a, sn_build_mul(c->b, sn_build_sub(c->b, b, a), share));
}

void sn_fn_crop_and_resize(sn_fn_call *c) {
    sn_builder *const b = c->b;
    const sn_value given = sn_fn_value(c, 0), boxes = sn_build_cast(b, sn_fn_value(c, 1), SNUG_F32),
                   which = sn_fn_value_as(c, 2, SNUG_I32);
    const snug_type t = sn_fn_type(c, given), n = sn_fn_type(c, boxes);
    const bool nearest = sn_fn_says(c, "method", "nearest");
    int k;
    const int64_t *size = sn_fn_ints(c, "crop_size", &k);
    if (sn_fn_failed(c))
        return;
    if (t.rank != 4 || n.rank != 2 || n.dims[1] != 4 || k != 2 || size[0] < 1 || size[1] < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID,
                            "it takes pictures [N, H, W, C], boxes [n, 4] and a height and width");
    const snug_type out = {SNUG_F32, 3, {n.dims[0], size[0], size[1]}};
    const sn_value x = sn_build_cast(b, given, SNUG_F32);
    const samples rows = sample_axis(c, boxes, 0, t.dims[1], size[0], nearest),
                  columns = sample_axis(c, boxes, 1, t.dims[2], size[1], nearest);
    const sn_value left = sn_build_expand_dims(b, spread(c, columns.share, 2, &out), -1),
                   down = sn_build_expand_dims(b, spread(c, rows.share, 1, &out), -1);
    sn_value y = pick(c, x, which, rows.below, columns.below, &out);
    if (!nearest) {
        const sn_value top =
            between(c, y, pick(c, x, which, rows.below, columns.above, &out), left);
        const sn_value low = between(c, pick(c, x, which, rows.above, columns.below, &out),
                                     pick(c, x, which, rows.above, columns.above, &out), left);
        y = between(c, top, low, down);
    }
    const sn_value inside =
        sn_build_expand_dims(b,
                             sn_build_logical_and(b, spread(c, rows.inside, 1, &out),
                                                  spread(c, columns.inside, 2, &out)),
                             -1);
    c->out[0] =
        sn_build_select(b, inside, y, sn_fn_like(c, y, sn_fn_real(c, "extrapolation_value")));
}

/* --- transforms ------------------------------------------------------------------------------- */
static int place_of(const char *const *words, int n, sn_fn_call *c, const char *name) {
    for (int i = 0; i < n; i++)
        if (sn_fn_says(c, name, words[i]))
            return i;
    return -1;
}

/* Pictures [N, H, W, C] or one of them, seen through transforms [N, 8] or one for all: see warp in
 * ops.def. Pictures that are not f32 are for the time of it. */
void sn_fn_warp(sn_fn_call *c) {
    static const char *const modes[] = {"constant", "reflect", "wrap", "nearest"};
    static const char *const kinds[] = {"bilinear", "nearest"};
    sn_builder *const b = c->b;
    const sn_value given = sn_fn_channels_last(c, sn_fn_value(c, 0));
    const snug_type t = sn_fn_type(c, given);
    sn_value moves = sn_fn_value_as(c, 1, SNUG_F32);
    const int mode = place_of(modes, 4, c, "fill_mode"),
              kind = place_of(kinds, 2, c, "interpolation");
    const bool single = t.rank == 3;
    if (sn_fn_failed(c))
        return;
    if ((t.rank != 3 && t.rank != 4) || mode < 0 || kind < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID,
                            "it takes pictures, interpolation bilinear or nearest and fill_mode "
                            "constant, reflect, wrap or nearest");
    sn_value x = sn_build_cast(b, given, SNUG_F32);
    x = single ? sn_build_expand_dims(b, x, 0) : x;
    moves = sn_fn_type(c, moves).rank == 1 ? sn_build_expand_dims(b, moves, 0) : moves;
    const snug_type all = sn_fn_type(c, x), each = {SNUG_F32, 2, {all.dims[0], 8}};
    const sn_value in[2] = {x, sn_build_stop_gradient(b, sn_build_broadcast_to(b, moves, &each))};
    sn_attrs a;
    sn_attrs_default(SN_OP_warp, &a);
    a.warp.size[0] = all.dims[1];
    a.warp.size[1] = all.dims[2];
    a.warp.mode = mode;
    a.warp.nearest = kind;
    a.warp.value = (int64_t)sn_build_param(b, "", sn_fn_real(c, "fill_value")).i;
    x = sn_build(b, SN_OP_warp, &a, in, 2);
    x = single ? sn_build_squeeze(b, x, 0) : x;
    c->out[0] = sn_fn_channels_back(c, sn_build_cast(b, x, t.dtype));
}
