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
#include "kernels/cpu/parts.h"
#include "kernels/cpu/real_elements.h"

#include "op/picture_attrs.h"

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
static inline float place(int64_t mode, float at, int64_t n) {
    const float last = (float)(n - 1);
    const bool repeats = mode == SN_WARP_REFLECT || mode == SN_WARP_WRAP;
    if ((at >= 0 && at <= last) || mode == SN_WARP_CONSTANT || (repeats && !(fabsf(at) < FAR)))
        return at;
    if (repeats)
        at = mode == SN_WARP_REFLECT ? reflect(at, n) : wrap(at, n);
    return clamp(at, last);
}

/* Where result pixel (x, y) lies in its picture; NaN: nowhere. */
typedef struct {
    float x, y;
} spot;

static inline spot spot_of(const warp *w, const float *t, int64_t ox, int64_t oy) {
    const float x = (float)ox, y = (float)oy, k = t[6] * x + t[7] * y + 1;
    float across = t[0] * x + t[1] * y + t[2], down = t[3] * x + t[4] * y + t[5];
    if (k == 0)
        return (spot){NAN, NAN};
    if (k != 1) { /* 1 for all but projections */
        across /= k;
        down /= k;
    }
    return (spot){place(w->mode, across, w->width), place(w->mode, down, w->height)};
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

/* The taps of a spot; returns how many. Positions that are no numbers lie outside. */
static int taps_at(const warp *w, spot s, tap *taps) {
    const float x = s.x, y = s.y;
    if (!(fabsf(x) < FAR) || !(fabsf(y) < FAR)) {
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
        const int n_taps =
            taps_at(&w, spot_of(&w, transform_of(c, n), p % w.out_width, p / w.out_width), taps);
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
    /* warp_grad */
    int64_t pieces; /* of the channels */
    sn_parts parts;
} warp_loop;

/* S: what memory holds, M: the type computed in. NAME_inside: between four pixels; C is a constant
 * where it is small. False: near the border, or on a pixel's row or column. */
#define WARP_ROW(name, S, M, get, put)                                                             \
    static void name##_taps(const warp *w, const tap *taps, int n, const S *picture, S *to) {      \
        for (int64_t i = 0; i < w->channels; i++) {                                                \
            M sum = 0;                                                                             \
            for (int k = 0; k < n; k++)                                                            \
                sum += (M)taps[k].weight *                                                         \
                       (taps[k].offset < 0 ? (M)w->fill                                            \
                                           : (M)get(picture[taps[k].offset * w->channels + i]));   \
            to[i] = put(sum);                                                                      \
        }                                                                                          \
    }                                                                                              \
    static inline __attribute__((always_inline)) bool name##_inside(                               \
        const warp *w, spot s, const S *picture, S *restrict to, const int64_t C) {                \
        if (!(s.x > 0 && s.y > 0 && s.x < (float)(w->width - 1) && s.y < (float)(w->height - 1)))  \
            return false;                                                                          \
        const int64_t left = (int64_t)s.x, top = (int64_t)s.y;                                     \
        const float right = s.x - (float)left, down = s.y - (float)top,                            \
                    over = (float)left + 1 - s.x, up = (float)top + 1 - s.y;                       \
        if (right == 0 || down == 0)                                                               \
            return false;                                                                          \
        const M a = (M)over * (M)up, b = (M)right * (M)up, c = (M)over * (M)down,                  \
                d = (M)right * (M)down;                                                            \
        const S *one = picture + (top * w->width + left) * C, *two = one + w->width * C;           \
        for (int64_t i = 0; i < C; i++)                                                            \
            to[i] = put(a * get(one[i]) + b * get(one[C + i]) + c * get(two[i]) +                  \
                        d * get(two[C + i]));                                                      \
        return true;                                                                               \
    }                                                                                              \
    static inline __attribute__((always_inline)) void name##_row(                                  \
        const warp *w, const float *t, int64_t y, const S *picture, S *to, const int64_t C) {      \
        for (int64_t x = 0; x < w->out_width; x++, to += C) {                                      \
            const spot s = spot_of(w, t, x, y);                                                    \
            tap taps[4];                                                                           \
            if (w->nearest || !name##_inside(w, s, picture, to, C))                                \
                name##_taps(w, taps, taps_at(w, s, taps), picture, to);                            \
        }                                                                                          \
    }                                                                                              \
    /* Row number `row` of all results. */                                                         \
    static void name(const warp_loop *l, int64_t row) {                                            \
        const warp *w = &l->w;                                                                     \
        const int64_t C = w->channels, n = row / w->out_height, y = row % w->out_height;           \
        const float *t = transform_of(l->c, n);                                                    \
        const S *picture = (const S *)l->c->in[0].data + n * w->height * w->width * C;             \
        S *to = (S *)l->c->out[0].data + row * w->out_width * C;                                   \
        if (C == 1)                                                                                \
            name##_row(w, t, y, picture, to, 1);                                                   \
        else if (C == 3)                                                                           \
            name##_row(w, t, y, picture, to, 3);                                                   \
        else                                                                                       \
            name##_row(w, t, y, picture, to, C);                                                   \
    }
WARP_ROW(warp_f32, float, float, , )
WARP_ROW(warp_f64, double, double, , )
WARP_ROW(warp_f16, sn_f16, float, , (sn_f16))
WARP_ROW(warp_bf16, sn_bf16, float, sn_bf16_wide, sn_bf16_of)

static void (*const warps[SNUG_N_DTYPES])(const warp_loop *, int64_t) = {
    [SNUG_F32] = warp_f32, [SNUG_F64] = warp_f64, [SNUG_F16] = warp_f16, [SNUG_BF16] = warp_bf16};

static void warp_rows(const void *ctx, int64_t first, int64_t end) {
    const warp_loop *l = ctx;
    for (int64_t row = first; row < end; row++)
        warps[l->c->in[0].type.dtype](l, row);
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
/* Channels [first, first + n) of picture b, whose pixels are `pitch` apart in dx. */
typedef void (*give_back)(const warp_loop *l, int64_t b, int64_t first, int64_t n, void *dx,
                          int64_t pitch);

#define GIVE_BACK(name, S, M, get)                                                                 \
    static void name(const warp_loop *l, int64_t b, int64_t first, int64_t n, void *result,        \
                     int64_t pitch) {                                                              \
        const warp *w = &l->w;                                                                     \
        const S *dy =                                                                              \
            (const S *)l->c->in[0].data + b * w->out_height * w->out_width * w->channels + first;  \
        M *dx = result;                                                                            \
        const float *t = transform_of(l->c, b);                                                    \
        for (int64_t p = 0; p < w->height * w->width; p++)                                         \
            memset(dx + p * pitch, 0, (size_t)n * sizeof(M));                                      \
        for (int64_t p = 0; p < w->out_height * w->out_width; p++, dy += w->channels) {            \
            tap taps[4];                                                                           \
            const int n_taps =                                                                     \
                taps_at(w, spot_of(w, t, p % w->out_width, p / w->out_width), taps);               \
            for (int k = 0; k < n_taps; k++) {                                                     \
                M *to = dx + taps[k].offset * pitch;                                               \
                for (int64_t i = 0; i < n && taps[k].offset >= 0; i++)                             \
                    to[i] += (M)taps[k].weight * get(dy[i]);                                       \
            }                                                                                      \
        }                                                                                          \
    }
GIVE_BACK(give_f32, float, float, )
GIVE_BACK(give_f64, double, double, )
GIVE_BACK(give_f16, sn_f16, float, )
GIVE_BACK(give_bf16, sn_bf16, float, sn_bf16_wide)

static const give_back gives[SNUG_N_DTYPES] = {
    [SNUG_F32] = give_f32, [SNUG_F64] = give_f64, [SNUG_F16] = give_f16, [SNUG_BF16] = give_bf16};

/* Item u is some channels of a picture. */
static void give_item(const warp_loop *l, int64_t u, float *scratch) {
    const snug_view *out = &l->c->out[0];
    const snug_dtype dtype = out->type.dtype;
    const warp *w = &l->w;
    const int64_t from = u % l->pieces * CHANNELS, b = u / l->pieces;
    const int64_t n = sn_min_i64(CHANNELS, w->channels - from), pixels = w->height * w->width;
    char *dx =
        (char *)out->data + (b * pixels * w->channels + from) * (int64_t)snug_dtype_bytes(dtype);
    if (!sn_dtype_is_half(dtype)) {
        gives[dtype](l, b, from, n, dx, w->channels);
        return;
    }
    gives[dtype](l, b, from, n, scratch, n);
    for (int64_t p = 0; p < pixels; p++)
        sn_halves_of_f32(dtype, scratch + p * n, n, (uint16_t *)dx + p * w->channels);
}

/* Halves are added up in scratch. */
static sn_parts parts_of(const snug_type *picture, int64_t pieces, int n_threads) {
    const bool halves = sn_dtype_is_half(picture->dtype);
    const int64_t area = picture->dims[1] * picture->dims[2];
    return sn_parts_of(sn_type_count(picture) > 0 ? picture->dims[0] * pieces : 0, n_threads,
                       halves ? area * sn_min_i64(CHANNELS, picture->dims[3]) : 0);
}

static void give_parts(const void *ctx, int64_t first, int64_t end) {
    const warp_loop *l = ctx;
    for (int64_t k = first; k < end; k++)
        for (int64_t u = sn_part_first(&l->parts, k); u < sn_part_first(&l->parts, k + 1); u++)
            give_item(l, u, sn_part_scratch(&l->parts, l->c->workspace, k));
}

static void give_items(const void *ctx, int64_t first, int64_t end) {
    for (int64_t u = first; u < end; u++)
        give_item(ctx, u, NULL);
}

static snug_status run_warp_grad(const sn_call *c, snug_error *err) {
    (void)err;
    warp_loop l = {.c = c, .w = warp_of(&c->out[0].type, &c->in[0].type)};
    l.w.mode = c->attrs->warp_grad.mode;
    l.w.nearest = c->attrs->warp_grad.nearest != 0;
    l.pieces = sn_ceil_div(l.w.channels, CHANNELS);
    l.parts = parts_of(&c->out[0].type, l.pieces, c->n_threads);
    const int64_t work = sn_type_count(&c->in[0].type);
    if (sn_dtype_is_half(c->out[0].type.dtype))
        sn_parallel(c, work, l.parts.n_parts, give_parts, &l);
    else if (sn_type_count(&c->out[0].type) > 0)
        sn_parallel(c, work, c->in[0].type.dims[0] * l.pieces, give_items, &l);
    return SNUG_OK;
}

static snug_status describe_warp_grad(const sn_opdesc *d, int n_threads, sn_variant *out,
                                      snug_error *err) {
    const snug_type *picture = &d->out[0];
    const sn_parts parts = parts_of(picture, sn_ceil_div(picture->dims[3], CHANNELS), n_threads);
    (void)err;
    if (sn_dtype_is_half(picture->dtype))
        out->workspace_bytes = sn_parts_bytes(&parts);
    return SNUG_OK;
}

SN_CPU_FAMILY(warp, .reference = reference_warp, .run = run_warp, .takes_stored = SN_HALF_DTYPES)
SN_CPU_FAMILY(warp_grad, .reference = run_warp_grad, .run = run_warp_grad,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_warp_grad)
