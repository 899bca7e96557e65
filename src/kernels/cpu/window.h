/* window.h: windows over an image, as both directions of a convolution see them along one axis.
 *
 * Target position i (0 <= i < count) lies at t0 + i * dt and reads source positions i * step + e0 +
 * j * de for taps j (0 <= j < taps), which use places k0 + j * dk of the kernel. Forward, the
 * target is y and the source x. Backward, the target is dx and the source dy: positions of dx that
 * leave the same remainder by the stride use the same taps, so each remainder is a run of its own,
 * without a step that multiplies by zero.
 *
 * Pixels are taken in blocks (sn_grid); the source pixels around a block (sn_region) are read in
 * the image itself or copied with the padding's zeros. */
#ifndef SN_KERNELS_CPU_WINDOW_H
#define SN_KERNELS_CPU_WINDOW_H

#include "kernels/cpu/conv.h"
#include "kernels/cpu/product.h"

#include <string.h>

typedef struct {
    int64_t count, t0, dt;
    int64_t taps, k0, dk;
    int64_t step, e0, de;
    int64_t size; /* source positions 0 <= s < size exist; the others are zero */
} sn_window;

static inline sn_window sn_window_forward(const sn_conv *v, int axis) {
    return (sn_window){
        .count = axis == 0 ? v->oh : v->ow,
        .dt = 1,
        .taps = axis == 0 ? v->kh : v->kw,
        .dk = 1,
        .step = v->stride[axis],
        .e0 = -v->pad[2 * axis],
        .de = v->dilation[axis],
        .size = axis == 0 ? v->H : v->W,
    };
}

/* Positions of dx with this remainder: place k meets position i of dy when r + i*s + pad - k*d = s
 * * (its position). */
static inline sn_window sn_window_backward(const sn_conv *v, int axis, int64_t remainder) {
    const int64_t s = v->stride[axis], d = v->dilation[axis], pad = v->pad[2 * axis];
    const int64_t extent = axis == 0 ? v->H : v->W, places = axis == 0 ? v->kh : v->kw;
    int64_t k0 = 0, dk = s, divisor = d; /* dk = s / gcd(s, d) */
    while (k0 < places && (remainder + pad - k0 * d) % s != 0)
        k0++;
    while (dk % divisor != 0) {
        const int64_t rest = dk % divisor;
        dk = divisor;
        divisor = rest;
    }
    dk = s / divisor;
    return (sn_window){
        .count = extent > remainder ? (extent - remainder + s - 1) / s : 0,
        .t0 = remainder,
        .dt = s,
        .taps = k0 < places ? (places - k0 + dk - 1) / dk : 0,
        .k0 = k0,
        .dk = dk,
        .step = 1,
        .e0 = k0 < places ? (remainder + pad - k0 * d) / s : 0,
        .de = -(dk * d / s),
        .size = axis == 0 ? v->oh : v->ow,
    };
}

/* Smallest and largest source offset of the taps. */
static inline int64_t sn_window_low(const sn_window *w) {
    return w->de < 0 && w->taps > 0 ? w->e0 + (w->taps - 1) * w->de : w->e0;
}

static inline int64_t sn_window_high(const sn_window *w) {
    return w->de > 0 && w->taps > 0 ? w->e0 + (w->taps - 1) * w->de : w->e0;
}

/* Source positions that n neighbouring targets read, from first to last. */
static inline int64_t sn_window_reach(const sn_window *w, int64_t n) {
    return n > 0 ? (n - 1) * w->step + sn_window_high(w) - sn_window_low(w) + 1 : 0;
}

/* All targets read inside the source. */
static inline bool sn_window_inside(const sn_window *w) {
    return w->count > 0 && sn_window_low(w) >= 0 &&
           (w->count - 1) * w->step + sn_window_high(w) < w->size;
}

/* A block of neighbouring targets: `high` rows of `wide` pixels; every pixel of an image is in
 * one. */
typedef struct {
    int64_t high, wide, n_down, n_across;
} sn_grid;

/* At most `limit` pixels: whole rows, or even parts of one in multiples of `multiple`. */
static inline sn_grid sn_grid_of(int64_t height, int64_t width, int64_t limit, int64_t multiple) {
    if (height == 0 || width == 0)
        return (sn_grid){0, 0, 0, 0};
    const int64_t across = sn_ceil_div(width, limit);
    const int64_t wide =
        sn_min_i64(sn_ceil_div(sn_ceil_div(width, across), multiple) * multiple, width);
    const int64_t most = wide < width || width > limit ? 1 : limit / width;
    const int64_t high = sn_ceil_div(height, sn_ceil_div(height, most));
    return (sn_grid){high, wide, sn_ceil_div(height, high), sn_ceil_div(width, wide)};
}

/* Source pixels around a block, and where they are read: in the image itself, or in a copy with the
 * padding. */
typedef struct {
    int64_t row, col, high, wide; /* in source positions; may reach outside */
} sn_region;

typedef struct {
    const float *data; /* one image, first channel of the group */
    int64_t pitch, channels;
} sn_image;

static inline sn_region sn_region_of(const sn_window *w, const int64_t first[2], int64_t high,
                                     int64_t wide) {
    return (sn_region){
        .row = first[0] * w[0].step + sn_window_low(&w[0]),
        .col = first[1] * w[1].step + sn_window_low(&w[1]),
        .high = sn_window_reach(&w[0], high),
        .wide = sn_window_reach(&w[1], wide),
    };
}

static inline int64_t sn_clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* dst[high][pitch][depth] = the region of the image, zeros outside. */
static inline void sn_copy_region(const sn_window *w, const sn_region *r, sn_image from,
                                  int64_t depth, float *dst, int64_t pitch) {
    const int64_t left = sn_clamp(-r->col, 0, r->wide),
                  right = sn_clamp(w[1].size - r->col, left, r->wide);
    for (int64_t i = 0; i < r->high; i++) {
        float *row = dst + i * pitch * depth;
        const bool outside = r->row + i < 0 || r->row + i >= w[0].size;
        const int64_t a = outside ? r->wide : left, b = outside ? r->wide : right;
        memset(row, 0, (size_t)(a * depth) * sizeof(float));
        memset(row + b * depth, 0, (size_t)((r->wide - b) * depth) * sizeof(float));
        const float *src = from.data + ((r->row + i) * from.pitch + r->col) * from.channels;
        if (depth == from.channels && b > a)
            memcpy(row + a * depth, src + a * depth, (size_t)((b - a) * depth) * sizeof(float));
        for (int64_t j = a; j < b && depth != from.channels; j++)
            memcpy(row + j * depth, src + j * from.channels, (size_t)depth * sizeof(float));
    }
}

#endif
