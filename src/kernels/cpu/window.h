/* window.h: windows over an image, as both directions of a convolution see them along one axis.
 *
 * Target position i (0 <= i < count) lies at t0 + i * dt and reads source positions i * step + e0 +
 * j * de for taps j (0 <= j < taps), which use places k0 + j * dk of the kernel. Forward, the
 * target is y and the source x. Backward, the target is dx and the source dy: positions of dx that
 * leave the same remainder by the stride use the same taps, so each remainder is a run of its own,
 * without a step that multiplies by zero. */
#ifndef SN_KERNELS_CPU_WINDOW_H
#define SN_KERNELS_CPU_WINDOW_H

#include "kernels/cpu/conv.h"

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

#endif
