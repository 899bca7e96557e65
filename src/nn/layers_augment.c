/* layers_augment.c: random changes of pictures while training; none otherwise. Keras' distributions
 * and geometry; the numbers are our own: element (picture, number) of a value drawn with a key per
 * step, application and layer, so that a picture's change does not depend on how a batch is cut.
 *
 * Rotation, zoom and translation are rows of a transform per picture (see warp in ops.def), made in
 * the dtypes Keras makes them in. */
#include "nn/picture_layers.h"
#include "nn/keras_number.h"

#include <math.h>
#include <string.h>

/* --- numbers ---------------------------------------------------------------------------------- */
/* Uniform in [low, high), of this type. */
static sn_value draw(sn_layer_call *c, const snug_type *t, double low, double high) {
    sn_attrs a;
    sn_attrs_default(SN_OP_random, &a);
    a.random.dims.n = t->rank;
    memcpy(a.random.dims.v, t->dims, sizeof a.random.dims.v);
    a.random.dtype = sn_dtype_computed(t->dtype);
    a.random.key = sn_layer_key(c);
    a.random.low = (int64_t)sn_build_param(c->b, "", sn_keras_number(low)).i;
    a.random.high = (int64_t)sn_build_param(c->b, "", sn_keras_number(high)).i;
    return sn_build_cast(c->b, sn_build(c->b, SN_OP_random, &a, NULL, 0), t->dtype);
}

/* n numbers in [0, 1) per picture, as columns of [batch, n]. */
static sn_value draw_columns(sn_layer_call *c, const snug_type *t, int64_t n) {
    return draw(c, &(snug_type){.dtype = t->dtype, .rank = 2, .dims = {t->dims[0], n}}, 0, 1);
}

/* Column k as a number in [low, high). */
static sn_value column(sn_layer_call *c, sn_value u, int k, double low, double high) {
    const double from = sn_keras_number(low), to = sn_keras_number(high);
    return sn_build_affine(c->b, sn_build_part(c->b, u, 1, k, 1), to - from, from);
}

/* One number per picture for all of its elements. */
static sn_value draw_each(sn_layer_call *c, const snug_type *t, double low, double high) {
    const snug_type each = {.dtype = t->dtype, .rank = 4, .dims = {t->dims[0], 1, 1, 1}};
    return draw(c, &each, low, high);
}

typedef struct {
    double low, high;
} range;

/* A factor is two bounds, or one number f for [-f, f] as far as that is allowed. */
static bool range_of(sn_layer_call *c, const char *key, const double *v, int64_t n, range allowed,
                     range *out) {
    const double f = n > 0 ? fabs(v[0]) : 0;
    *out = n == 2 ? (range){fmin(v[0], v[1]), fmax(v[0], v[1])} : (range){fmax(-f, allowed.low), f};
    if (n <= 2 && out->low <= allowed.high && out->high >= allowed.low)
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID, "%s must be a number, or two, in [%g, %g]", key, allowed.low,
                    allowed.high);
    return false;
}

static bool begin(sn_layer_call *c, sn_value *x, snug_type *t) {
    if (!sn_picture_input(c, x, t))
        return false;
    c->out = *x;
    return c->training;
}

/* --- geometry --------------------------------------------------------------------------------- */
static bool fill_of(sn_layer_call *c, const char *mode, const char *interpolation, sn_attrs *a) {
    static const char *const modes[SN_N_WARP] = {"constant", "reflect", "wrap", "nearest"};
    for (int i = 0; i < SN_N_WARP; i++)
        if (strcmp(mode, modes[i]) == 0) {
            a->warp.mode = i;
            a->warp.nearest = strcmp(interpolation, "nearest") == 0;
            if (a->warp.nearest || strcmp(interpolation, "bilinear") == 0)
                return true;
        }
    sn_layer_refuse(c, SNUG_E_INVALID,
                    "fill_mode=%s is one of constant, reflect, wrap and nearest, interpolation=%s "
                    "one of nearest and bilinear",
                    mode, interpolation);
    return false;
}

static sn_value constant_like(sn_layer_call *c, sn_value x, double value) {
    return sn_build_affine(c->b, x, 0, value);
}

/* The six numbers a0 a1 a2 b0 b1 b2 of each picture as the rows of its transform. */
static sn_value transforms_of(sn_layer_call *c, const sn_value *six) {
    const sn_value none = constant_like(c, six[0], 0);
    const sn_value in[8] = {six[0], six[1], six[2], six[3], six[4], six[5], none, none};
    return sn_build_cast(c->b, sn_build_concat(c->b, in, 8, 1), SNUG_F32);
}

static void warp(sn_layer_call *c, sn_value x, sn_attrs *a, const sn_value *six, double value) {
    if (c->b->error.code != SNUG_OK)
        return;
    const snug_type t = *sn_graph_type(c->b->graph, x);
    const sn_value in[2] = {x, sn_build_stop_gradient(c->b, transforms_of(c, six))};
    if (a->warp.size[0] == 0)
        memcpy(a->warp.size, t.dims + 1, sizeof a->warp.size);
    a->warp.value = (int64_t)sn_build_param(c->b, "", value).i;
    c->out = sn_build(c->b, SN_OP_warp, a, in, 2);
}

/* About the middle (m, n) of the picture: x = m + cos (x - m) - sin (y - n), y = n + sin (x - m) +
 * cos (y - n). */
void sn_layer_build_random_rotation(sn_layer_call *c) {
    const sn_conf_random_rotation *conf = c->conf;
    snug_type t;
    sn_value x;
    range f;
    sn_attrs a;
    sn_attrs_default(SN_OP_warp, &a);
    if (!range_of(c, "factor", conf->factor.v, conf->factor.n, (range){-1, 1}, &f) ||
        !fill_of(c, conf->fill_mode.text, conf->interpolation.text, &a) || !begin(c, &x, &t))
        return;
    sn_builder *const b = c->b;
    const double m = 0.5 * (double)(t.dims[2] - 1), n = 0.5 * (double)(t.dims[1] - 1);
    const sn_value degrees = column(c, draw_columns(c, &t, 1), 0, f.low * 360, f.high * 360),
                   angle = sn_build_affine(b, degrees, sn_keras_number(acos(-1) / 180), 0),
                   cosine = sn_build(b, SN_OP_cos, NULL, &angle, 1),
                   sine = sn_build(b, SN_OP_sin, NULL, &angle, 1);
    const sn_value six[6] = {
        cosine,
        sn_build_neg(b, sine),
        sn_build_add(b, sn_build_affine(b, cosine, -m, m), sn_build_affine(b, sine, n, 0)),
        sine,
        cosine,
        sn_build_sub(b, sn_build_affine(b, sine, -m, n), sn_build_affine(b, cosine, n, 0)),
    };
    warp(c, x, &a, six, conf->fill_value);
}

/* height_factor and width_factor of a configuration, whose struct is the layer's own. */
#define TWO_RANGES(c, conf, h, w)                                                                  \
    (range_of(c, "height_factor", (conf)->height_factor.v, (conf)->height_factor.n,                \
              (range){-1, 1}, h) &&                                                                \
     range_of(c, "width_factor", (conf)->width_factor.v, (conf)->width_factor.n, (range){-1, 1},   \
              w))

/* By one factor, or by one for the height and one for the width; about the middle. */
void sn_layer_build_random_zoom(sn_layer_call *c) {
    const sn_conf_random_zoom *conf = c->conf;
    const bool apart = conf->width_factor.n > 0;
    snug_type t;
    sn_value x;
    range h, w;
    sn_attrs a;
    sn_attrs_default(SN_OP_warp, &a);
    if (!TWO_RANGES(c, conf, &h, &w) ||
        !fill_of(c, conf->fill_mode.text, conf->interpolation.text, &a) || !begin(c, &x, &t))
        return;
    const double m = 0.5 * (double)(t.dims[2] - 1), n = 0.5 * (double)(t.dims[1] - 1);
    const sn_value u = draw_columns(c, &t, apart ? 2 : 1);
    const sn_value by_height =
        sn_build_cast(c->b, column(c, u, 0, 1 + h.low, 1 + h.high), SNUG_F32);
    const sn_value by_width =
        apart ? sn_build_cast(c->b, column(c, u, 1, 1 + w.low, 1 + w.high), SNUG_F32) : by_height;
    const sn_value none = constant_like(c, by_height, 0);
    const sn_value six[6] = {by_width, none,      sn_build_affine(c->b, by_width, -m, m),
                             none,     by_height, sn_build_affine(c->b, by_height, -n, n)};
    warp(c, x, &a, six, conf->fill_value);
}

/* By a part of the height and a part of the width. */
void sn_layer_build_random_translation(sn_layer_call *c) {
    const sn_conf_random_translation *conf = c->conf;
    snug_type t;
    sn_value x;
    range h, w;
    sn_attrs a;
    sn_attrs_default(SN_OP_warp, &a);
    if (!TWO_RANGES(c, conf, &h, &w) ||
        !fill_of(c, conf->fill_mode.text, conf->interpolation.text, &a) || !begin(c, &x, &t))
        return;
    const double height = (double)t.dims[1], width = (double)t.dims[2];
    const sn_value u = draw_columns(c, &t, 2),
                   down = sn_build_affine(c->b, column(c, u, 0, h.low, h.high), -height, 0),
                   right = sn_build_affine(c->b, column(c, u, 1, w.low, w.high), -width, 0);
    const sn_value one = constant_like(c, down, 1), none = constant_like(c, down, 0);
    const sn_value six[6] = {one, none, right, none, one, down};
    warp(c, x, &a, six, conf->fill_value);
}

/* --- flips and crops -------------------------------------------------------------------------- */
void sn_layer_build_random_flip(sn_layer_call *c) {
    const sn_conf_random_flip *conf = c->conf;
    const char *mode = conf->mode.text;
    const bool both = strcmp(mode, "horizontal_and_vertical") == 0;
    const bool across = both || strcmp(mode, "horizontal") == 0,
               down = both || strcmp(mode, "vertical") == 0;
    snug_type t;
    sn_value x;
    if (!across && !down) {
        sn_layer_refuse(c, SNUG_E_INVALID,
                        "mode=%s is not known; there are horizontal, vertical and "
                        "horizontal_and_vertical",
                        mode);
        return;
    }
    if (!begin(c, &x, &t))
        return;
    const sn_value half = sn_build_scalar(c->b, t.dtype, 0.5),
                   turned = sn_build_greater_equal(c->b, half, draw_each(c, &t, 0, 1));
    const sn_value other = sn_build_flip(c->b, x, (down ? 1u << 1 : 0) | (across ? 1u << 2 : 0));
    c->out = sn_build_select(c->b, turned, other, x);
}

/* One window for all pictures of a step, as Keras draws it: a shift by whole pixels. */
static void crop_anywhere(sn_layer_call *c, sn_value x, const snug_type *t, const int64_t *size) {
    const snug_type two = {.dtype = SNUG_F32, .rank = 2, .dims = {1, 2}};
    const snug_type each = {.dtype = SNUG_F32, .rank = 2, .dims = {t->dims[0], 1}};
    const sn_value u = draw(c, &two, 0, 1);
    sn_value at[2];
    for (int k = 0; k < 2; k++) {
        const sn_value where = column(c, u, k, 0, (double)(t->dims[1 + k] - size[k] + 1));
        at[k] = sn_build_broadcast_to(c->b, sn_build(c->b, SN_OP_floor, NULL, &where, 1), &each);
    }
    sn_attrs a;
    sn_attrs_default(SN_OP_warp, &a);
    a.warp.mode = SN_WARP_NEAREST;
    a.warp.nearest = 1;
    memcpy(a.warp.size, size, sizeof a.warp.size);
    const sn_value one = constant_like(c, at[0], 1), none = constant_like(c, at[0], 0);
    const sn_value six[6] = {one, none, at[1], none, one, at[0]};
    warp(c, x, &a, six, 0);
}

/* Where the largest window of the proportions of `size` begins along axis k, in the middle. */
static int64_t middle(const snug_type *t, const int64_t *size, int k) {
    const double ratio = (double)t->dims[2 - k] * (double)size[k] / (double)size[1 - k];
    const int64_t extent = t->dims[1 + k];
    return ratio >= (double)extent ? 0 : (extent - (ratio < 1 ? 1 : (int64_t)ratio)) / 2;
}

/* There is nothing to choose: from there on as much of the window as the picture has, stretched. */
static sn_value crop_the_middle(sn_layer_call *c, sn_value x, const snug_type *t,
                                const int64_t *size) {
    int64_t begin[2], part[2];
    for (int k = 0; k < 2; k++) {
        begin[k] = middle(t, size, k);
        part[k] = t->dims[1 + k] - begin[k] < size[k] ? t->dims[1 + k] - begin[k] : size[k];
    }
    return sn_picture_resize(c, sn_picture_crop(c, x, begin, part), "bilinear", false, size);
}

/* Keras 3.15 leaves pictures uncropped when it does not train, against its own shapes, and so does
 * the Python door; a network, whose shapes are fixed, has what Keras documents: the middle. */
void sn_layer_build_random_crop(sn_layer_call *c) {
    const sn_conf_random_crop *conf = c->conf;
    snug_type t;
    sn_value x;
    int64_t size[2];
    if (!sn_picture_size(c, conf->height, conf->width, size) || !sn_picture_input(c, &x, &t))
        return;
    if (c->training && t.dims[1] > size[0] && t.dims[2] > size[1])
        crop_anywhere(c, x, &t, size);
    else if (c->training)
        c->out = crop_the_middle(c, x, &t, size);
    else
        c->out = sn_picture_fit(c, x, "bilinear", false, size);
}

/* --- colours ---------------------------------------------------------------------------------- */
static sn_value clip_to(sn_layer_call *c, sn_value x, const double *v, int64_t n) {
    sn_attrs a;
    sn_attrs_default(SN_OP_clip, &a);
    a.clip.low = (int64_t)sn_build_param(c->b, "", n == 2 ? v[0] : 0).i;
    a.clip.high = (int64_t)sn_build_param(c->b, "", n == 2 ? v[1] : 255).i;
    return sn_build(c->b, SN_OP_clip, &a, &x, 1);
}

static bool check_values(sn_layer_call *c, const double *v, int64_t n) {
    if (n == 0 || (n == 2 && v[0] <= v[1]))
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID, "value_range must be two numbers, the lower one first");
    return false;
}

/* Every channel's distances from its mean, times a factor. */
void sn_layer_build_random_contrast(sn_layer_call *c) {
    const sn_conf_random_contrast *conf = c->conf;
    const uint32_t places = 1u << 1 | 1u << 2;
    snug_type t;
    sn_value x;
    range f;
    if (!range_of(c, "factor", conf->factor.v, conf->factor.n, (range){0, 1}, &f) ||
        !check_values(c, conf->value_range.v, conf->value_range.n) || !begin(c, &x, &t))
        return;
    const sn_value mean = sn_build_mean(c->b, x, places, true),
                   by = draw_each(c, &t, 1 - f.low, 1 + f.high),
                   y = sn_build_mul(c->b, sn_build_sub(c->b, x, mean), by);
    c->out = clip_to(c, sn_build_add(c->b, y, mean), conf->value_range.v, conf->value_range.n);
}

/* A part of the range of values is added. */
void sn_layer_build_random_brightness(sn_layer_call *c) {
    const sn_conf_random_brightness *conf = c->conf;
    const double *v = conf->value_range.v;
    snug_type t;
    sn_value x;
    range f;
    if (!range_of(c, "factor", conf->factor.v, conf->factor.n, (range){-1, 1}, &f) ||
        !check_values(c, v, conf->value_range.n) || !begin(c, &x, &t))
        return;
    const double span = conf->value_range.n == 2 ? v[1] - v[0] : 255;
    const sn_value plus = sn_build_affine(c->b, draw_each(c, &t, f.low, f.high), span, 0);
    c->out = clip_to(c, sn_build_add(c->b, x, plus), v, conf->value_range.n);
}
