/* resize_taps.c: which pixels a pixel of a resized picture is made of (resize_taps.h).
 *
 *   nearest, bilinear   the pixel under the sample, the two around it
 *   bicubic             four around it, by Keys' cubic tabulated in steps of 1/1024; what lies
 *                       outside has no weight
 *   area                all that overlap, by how much of them does
 *   lanczos, gaussian,
 *   mitchell, antialias all within the kernel's radius, which grows with the step when the picture
 *                       shrinks and antialias is on */
#include "kernels/cpu/resize_taps.h"

#include "op/picture_attrs.h"

#include <float.h>
#include <math.h>

#define CUBIC_STEPS 1024

static float step_of(const sn_resize_axis *a) {
    return (float)a->from / (float)a->to;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* --- kernels as functions of the distance ----------------------------------------------------- */
static float triangle(float x) {
    return x < 1 ? 1 - x : 0;
}

static float keys_cubic(float x) {
    if (x >= 2)
        return 0;
    return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}

static float lanczos(float x, float radius) {
    const float pi = 3.14159265358979f;
    if (x > radius)
        return 0;
    return x <= 1e-3f ? 1 : radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x) {
    const float sigma = 0.5f;
    return x >= 1.5f ? 0 : expf(-x * x / (2 * sigma * sigma));
}

static float mitchell(float x) {
    if (x >= 2)
        return 0;
    return x >= 1 ? (((-7.0f / 18.0f) * x + 2) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f
                  : (((7.0f / 6.0f) * x - 2) * x) * x + 8.0f / 9.0f;
}

static float radius_of(const sn_resize_axis *a) {
    static const float radius[SN_N_RESIZE] = {
        [SN_RESIZE_BILINEAR] = 1, [SN_RESIZE_BICUBIC] = 2,     [SN_RESIZE_LANCZOS3] = 3,
        [SN_RESIZE_LANCZOS5] = 5, [SN_RESIZE_GAUSSIAN] = 1.5f, [SN_RESIZE_MITCHELL] = 2};
    return radius[a->method];
}

static float kernel_at(const sn_resize_axis *a, float x) {
    if (a->method == SN_RESIZE_BILINEAR)
        return triangle(x);
    if (a->method == SN_RESIZE_BICUBIC)
        return keys_cubic(x);
    if (a->method == SN_RESIZE_GAUSSIAN)
        return gaussian(x);
    return a->method == SN_RESIZE_MITCHELL ? mitchell(x) : lanczos(x, radius_of(a));
}

/* How much the kernel is stretched. */
static float stretch_of(const sn_resize_axis *a) {
    const float step = 1 / ((float)a->to / (float)a->from);
    return a->antialias && step > 1 ? step : 1;
}

/* Weights that do not add up to 1 because some lie outside are divided by their sum. */
static void normalise(float *weights, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weights[i];
    if (fabsf(sum) < 1000 * FLT_MIN)
        return;
    const float inverse = 1 / sum;
    for (int64_t i = 0; i < n; i++)
        weights[i] *= inverse;
}

/* --- methods: taps, then their weights -------------------------------------------------------- */
static bool by_kernel(const sn_resize_axis *a) {
    return a->method >= SN_RESIZE_LANCZOS3 ||
           (a->antialias && (a->method == SN_RESIZE_BILINEAR || a->method == SN_RESIZE_BICUBIC));
}

/* Where output o lies among the centres of the inputs, which have whole numbers. */
static float centre_of(const sn_resize_axis *a, int64_t o) {
    return ((float)o + 0.5f) * step_of(a) - 0.5f;
}

/* The same from the edge, and with the step as kernels have it. */
static float sample_of(const sn_resize_axis *a, int64_t o) {
    return ((float)o + 0.5f) * (1 / ((float)a->to / (float)a->from));
}

/* Inputs [low, high] as far as there are any; one at least. */
static sn_taps between(const sn_resize_axis *a, float low, float high) {
    const int64_t first = clamp((int64_t)low, 0, a->from - 1),
                  last = clamp((int64_t)high, first, a->from - 1);
    return (sn_taps){first, last - first + 1};
}

sn_taps sn_resize_taps(const sn_resize_axis *a, int64_t o) {
    if (by_kernel(a)) {
        const float at = sample_of(a, o), reach = radius_of(a) * stretch_of(a);
        return between(a, ceilf(at - reach - 0.5f), floorf(at + reach - 0.5f));
    }
    if (a->method == SN_RESIZE_NEAREST) {
        const float at = floorf(((float)o + 0.5f) * step_of(a));
        return between(a, at, at);
    }
    if (a->method == SN_RESIZE_AREA)
        return between(a, floorf((float)o * step_of(a)), ceilf((float)(o + 1) * step_of(a)) - 1);
    const float at = centre_of(a, o), below = floorf(at);
    return a->method == SN_RESIZE_BILINEAR ? between(a, below, ceilf(at))
                                           : between(a, below - 1, below + 2);
}

static void kernel_weights(const sn_resize_axis *a, int64_t o, sn_taps taps, float *weights) {
    const float at = sample_of(a, o), stretch = stretch_of(a);
    for (int64_t i = 0; i < taps.n; i++)
        weights[i] = kernel_at(a, fabsf((float)(taps.first + i) + 0.5f - at) / stretch);
    normalise(weights, taps.n);
}

static void bilinear_weights(const sn_resize_axis *a, int64_t o, sn_taps taps, float *weights) {
    const float at = centre_of(a, o), share = at - floorf(at);
    weights[0] = taps.n == 1 ? 1 : 1 - share;
    if (taps.n > 1)
        weights[1] = share;
}

static void bicubic_weights(const sn_resize_axis *a, int64_t o, sn_taps taps, float *weights) {
    const float at = centre_of(a, o), below = floorf(at),
                share = rintf((at - below) * CUBIC_STEPS) / CUBIC_STEPS;
    for (int64_t i = 0; i < taps.n; i++)
        weights[i] = keys_cubic(fabsf((float)(taps.first + i - (int64_t)below) - share));
    normalise(weights, taps.n);
}

static void area_weights(const sn_resize_axis *a, int64_t o, sn_taps taps, float *weights) {
    const float step = step_of(a), from = (float)o * step, to = (float)(o + 1) * step;
    for (int64_t i = 0; i < taps.n; i++) {
        const float pixel = (float)(taps.first + i);
        weights[i] = (fminf(pixel + 1, to) - fmaxf(pixel, from)) / step;
    }
}

void sn_resize_weights(const sn_resize_axis *a, int64_t o, sn_taps taps, float *weights) {
    if (by_kernel(a))
        kernel_weights(a, o, taps, weights);
    else if (a->method == SN_RESIZE_NEAREST)
        weights[0] = 1;
    else if (a->method == SN_RESIZE_BILINEAR)
        bilinear_weights(a, o, taps, weights);
    else if (a->method == SN_RESIZE_BICUBIC)
        bicubic_weights(a, o, taps, weights);
    else
        area_weights(a, o, taps, weights);
}
