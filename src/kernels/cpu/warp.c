/* warp.c: warp and warp_grad: pixel (x, y) of the result is the picture at
 *
 *     ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k),   k = c0 x + c1 y + 1
 *
 * for the row a0 a1 a2 b0 b1 b2 c0 c1 of its transforms, with what `mode` says where that lies
 * outside. Positions are f32 and rounded as TensorFlow rounds them, for f64 pictures, too.
 *
 * A result pixel has up to four taps; taps without weight are left out, so that shifts by whole
 * pixels copy. The gradient adds the taps of a picture in the order of its result's pixels; a
 * thread owns some channels of a picture. */
#include "kernels/cpu/loops.h"
#include "kernels/cpu/real.h"

#include "op/picture.h"

#include <string.h>

#define CHANNELS 64   /* of an item of warp_grad */
#define FAR      1e9f /* positions beyond it are outside in every mode that repeats the picture */

/* offset < 0: outside, where the constant is. */
typedef struct {
    int64_t offset; /* of the pixel in its picture, in pixels */
    double weight;  /* a product of two f32: exact */
} tap;

typedef struct {
    int64_t mode;
    bool nearest;
    int64_t height, width;         /* of the picture */
    int64_t out_height, out_width; /* of the result */
    int64_t channels;
    double fill;
} warp;

/* --- positions -------------------------------------------------------------------------------- */
static float clamp(float v, float high) {
    return v < 0 ? 0 : v > high ? high : v;
}

/* dcba|abcd|dcba */
static float reflect(float at, int64_t n) {
    const float length = (float)n, twice = (float)(2 * n);
    if (n <= 1)
        return 0;
    if (at < 0) {
        at = twice * (float)(int64_t)(-at / twice) + at;
        return at < -length ? at + twice : -at - 1;
    }
    at -= twice * (float)(int64_t)(at / twice);
    return at >= length ? twice - at - 1 : at;
}

/* abcd|abcd|abcd */
static float wrap(float at, int64_t n) {
    const float length = (float)n, last = (float)(n - 1);
    if (n <= 1)
        return 0;
    return at < 0 ? at + length * (float)((int64_t)(-at / last) + 1)
                  : at - length * (float)(int64_t)(at / last);
}

/* Where on an axis of n pixels the position is taken. */
static float place(int64_t mode, float at, int64_t n) {
    const float last = (float)(n - 1);
    const bool repeats = mode == SN_WARP_REFLECT || mode == SN_WARP_WRAP;
    if (mode == SN_WARP_CONSTANT || (repeats && !(fabsf(at) < FAR)))
        return at;
    if (repeats && (at < 0 || at > last))
        at = mode == SN_WARP_REFLECT ? reflect(at, n) : wrap(at, n);
    return clamp(at, last);
}

static int64_t offset_of(const warp *w, float y, float x) {
    const bool inside = y >= 0 && x >= 0 && y < (float)w->height && x < (float)w->width;
    return inside ? (int64_t)y * w->width + (int64_t)x : -1;
}

static int add_tap(const warp *w, float y, float x, double weight, tap *taps, int n) {
    if (weight != 0)
        taps[n++] = (tap){offset_of(w, y, x), weight};
    return n;
}

/* The taps of result pixel (x, y); returns how many. Positions that are no numbers lie outside. */
static int taps_of(const warp *w, const float *t, int64_t ox, int64_t oy, tap *taps) {
    const float fx = (float)ox, fy = (float)oy, k = t[6] * fx + t[7] * fy + 1;
    const float x = place(w->mode, (t[0] * fx + t[1] * fy + t[2]) / k, w->width),
                y = place(w->mode, (t[3] * fx + t[4] * fy + t[5]) / k, w->height);
    if (k == 0 || !(fabsf(x) < FAR) || !(fabsf(y) < FAR)) {
        taps[0] = (tap){-1, 1};
        return 1;
    }
    if (w->nearest)
        return add_tap(w, roundf(y), roundf(x), 1, taps, 0);
    const float top = floorf(y), left = floorf(x);
    const double down = (double)(y - top), up = (double)(top + 1 - y), right = (double)(x - left),
                 over = (double)(left + 1 - x);
    int n = add_tap(w, top, left, over * up, taps, 0);
    n = add_tap(w, top, left + 1, right * up, taps, n);
    n = add_tap(w, top + 1, left, over * down, taps, n);
    return add_tap(w, top + 1, left + 1, right * down, taps, n);
}

static const float *transform_of(const sn_call *c, int64_t n) {
    return (const float *)c->in[1].data + 8 * n;
}

static warp warp_of(const snug_type *picture, const snug_type *result) {
    return (warp){.height = picture->dims[1],
                  .width = picture->dims[2],
                  .out_height = result->dims[1],
                  .out_width = result->dims[2],
                  .channels = result->dims[3]};
}

/* --- warp ------------------------------------------------------------------------------------- */
static snug_status reference_warp(const sn_call *c, snug_error *err) {
    warp w = warp_of(&c->in[0].type, &c->out[0].type);
    const sn_reals in = sn_reals_of(&c->in[0]), out = sn_reals_of(&c->out[0]);
    const int64_t pixels = w.out_height * w.out_width,
                  n_results = c->out[0].type.dims[0] * pixels * w.channels;
    (void)err;
    w.mode = c->attrs->warp.mode;
    w.nearest = c->attrs->warp.nearest != 0;
    for (int64_t i = 0; i < n_results; i++) {
        const int64_t p = i / w.channels % pixels, n = i / w.channels / pixels;
        tap taps[4];
        double sum = 0;
        const int n_taps = taps_of(&w, transform_of(c, n), p % w.out_width, p / w.out_width, taps);
        for (int k = 0; k < n_taps; k++) {
            const int64_t at = (n * w.height * w.width + taps[k].offset) * w.channels;
            const double v =
                taps[k].offset < 0 ? c->param[0].real : sn_real_at(in, at + i % w.channels);
            sum += taps[k].weight * v;
        }
        sn_real_put(out, i, sum);
    }
    return SNUG_OK;
}

typedef struct {
    const sn_call *c;
    warp w;
    int64_t pieces; /* of the channels; warp_grad */
} warp_loop;

#define WARP_PIXEL(name, M)                                                                        \
    static void name(const warp *w, const tap *taps, int n, const void *picture, void *result) {   \
        M *to = result;                                                                            \
        for (int k = 0; k < n; k++) {                                                              \
            const M *from = (const M *)picture + taps[k].offset * w->channels;                     \
            const M weight = (M)taps[k].weight, outside = weight * (M)w->fill;                     \
            if (k == 0)                                                                            \
                for (int64_t i = 0; i < w->channels; i++)                                          \
                    to[i] = taps[k].offset < 0 ? outside : weight * from[i];                       \
            else                                                                                   \
                for (int64_t i = 0; i < w->channels; i++)                                          \
                    to[i] += taps[k].offset < 0 ? outside : weight * from[i];                      \
        }                                                                                          \
    }
WARP_PIXEL(pixel_f32, float)
WARP_PIXEL(pixel_f64, double)

/* Rows of all results, one behind the other. */
static void warp_rows(const void *ctx, int64_t first, int64_t end) {
    const warp_loop *l = ctx;
    const warp *w = &l->w;
    const bool wide = l->c->in[0].type.dtype == SNUG_F64;
    const int64_t pixel_bytes = w->channels * (wide ? 8 : 4);
    for (int64_t row = first; row < end; row++) {
        const int64_t n = row / w->out_height;
        const char *picture =
            (const char *)l->c->in[0].data + n * w->height * w->width * pixel_bytes;
        char *to = (char *)l->c->out[0].data + row * w->out_width * pixel_bytes;
        const float *t = transform_of(l->c, n);
        for (int64_t x = 0; x < w->out_width; x++, to += pixel_bytes) {
            tap taps[4];
            const int n_taps = taps_of(w, t, x, row % w->out_height, taps);
            (wide ? pixel_f64 : pixel_f32)(w, taps, n_taps, picture, to);
        }
    }
}

static snug_status run_warp(const sn_call *c, snug_error *err) {
    (void)err;
    warp_loop l = {.c = c, .w = warp_of(&c->in[0].type, &c->out[0].type)};
    l.w.mode = c->attrs->warp.mode;
    l.w.nearest = c->attrs->warp.nearest != 0;
    l.w.fill = c->param[0].real;
    if (sn_type_count(&c->out[0].type) > 0)
        sn_parallel(c, sn_type_count(&c->out[0].type), c->out[0].type.dims[0] * l.w.out_height,
                    warp_rows, &l);
    return SNUG_OK;
}

/* --- warp_grad -------------------------------------------------------------------------------- */
#define GIVE_BACK(name, M)                                                                         \
    /* Channels [first, first + n) of picture b. */                                                \
    static void name(const warp_loop *l, int64_t b, int64_t first, int64_t n) {                    \
        const warp *w = &l->w;                                                                     \
        const M *dy =                                                                              \
            (const M *)l->c->in[0].data + b * w->out_height * w->out_width * w->channels + first;  \
        M *dx = (M *)l->c->out[0].data + b * w->height * w->width * w->channels + first;           \
        const float *t = transform_of(l->c, b);                                                    \
        for (int64_t p = 0; p < w->height * w->width; p++)                                         \
            memset(dx + p * w->channels, 0, (size_t)n * sizeof(M));                                \
        for (int64_t p = 0; p < w->out_height * w->out_width; p++, dy += w->channels) {            \
            tap taps[4];                                                                           \
            const int n_taps = taps_of(w, t, p % w->out_width, p / w->out_width, taps);            \
            for (int k = 0; k < n_taps; k++) {                                                     \
                M *to = dx + taps[k].offset * w->channels;                                         \
                for (int64_t i = 0; i < n && taps[k].offset >= 0; i++)                             \
                    to[i] += (M)taps[k].weight * dy[i];                                            \
            }                                                                                      \
        }                                                                                          \
    }
GIVE_BACK(give_f32, float)
GIVE_BACK(give_f64, double)

static void give_items(const void *ctx, int64_t first, int64_t end) {
    const warp_loop *l = ctx;
    const bool wide = l->c->in[0].type.dtype == SNUG_F64;
    for (int64_t u = first; u < end; u++) {
        const int64_t from = u % l->pieces * CHANNELS;
        (wide ? give_f64 : give_f32)(l, u / l->pieces, from,
                                     sn_min_i64(CHANNELS, l->w.channels - from));
    }
}

static snug_status run_warp_grad(const sn_call *c, snug_error *err) {
    (void)err;
    warp_loop l = {.c = c, .w = warp_of(&c->out[0].type, &c->in[0].type)};
    l.w.mode = c->attrs->warp_grad.mode;
    l.w.nearest = c->attrs->warp_grad.nearest != 0;
    l.pieces = sn_ceil_div(l.w.channels, CHANNELS);
    if (sn_type_count(&c->out[0].type) > 0)
        sn_parallel(c, sn_type_count(&c->in[0].type), c->in[0].type.dims[0] * l.pieces, give_items,
                    &l);
    return SNUG_OK;
}

SN_CPU_FAMILY(warp, .reference = reference_warp, .run = run_warp)
SN_CPU_FAMILY(warp_grad, .reference = run_warp_grad, .run = run_warp_grad)
