/* vmath.h: exp, log, tanh and friends for f32, as branch-free functions that the compiler
 * vectorises. A loop's vector body and its tail run the same operations in the same order, so an
 * element's bits do not depend on its position; no fused multiply-add is used, so they do not
 * depend on the instruction set either.
 *
 *     for (int64_t i = 0; i < n; i++)
 *         y[i] = sn_exp_f32(x[i]);
 *
 * Largest error found against long double libm, in units in the last place (tests/test_kernels.c
 * holds these):
 *
 *     exp 1.5   expm1 1.5 and log1p 1.5 (any argument: 2)   log 1   tanh 1.5
 *     sigmoid 3   softplus 2.5   erf 2   sin and cos 1
 *
 * NaN gives NaN; infinities give the limits. Polynomials are minimax fits made for these
 * intervals. */
#ifndef SN_KERNELS_CPU_VMATH_H
#define SN_KERNELS_CPU_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t sn_bits_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float sn_float_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* 2^n for n in [-126, 127], by its bits. */
static inline float sn_exp2_int(int32_t n) {
    return sn_float_of_bits(((uint32_t)n + 127u) << 23);
}

/* x = n ln 2 + r with |r| <= ln 2 / 2: writes n, returns q = exp(r) - 1. Adding and subtracting
 * 1.5 * 2^23 rounds to the nearest integer; ln 2 is split so that n times its first part is
 * exact. */
static inline float sn_exp_reduced(float x, int32_t *n) {
    const float shift = 12582912.0f;
    const float shifted = x * 1.44269504f + shift;
    const float k = shifted - shift;
    const float r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
    const float p =
        0.5f + r * (1.666651219e-01f +
                    r * (4.166618735e-02f + r * (8.369597606e-03f + r * 1.395170344e-03f)));
    *n = (int32_t)(sn_bits_f32(shifted) - sn_bits_f32(shift));
    return r + r * r * p;
}

/* 2^n is applied in two halves: n runs from -150 (results below the normal range) to 128
 * (infinity). */
static inline float sn_exp_down_f32(float x) { /* x <= 89 */
    int32_t n;
    const float q = sn_exp_reduced(x < -104.0f ? -104.0f : x, &n);
    const int32_t half = n >> 1;
    return (1.0f + q) * sn_exp2_int(half) * sn_exp2_int(n - half);
}

static inline float sn_exp_f32(float x) {
    return sn_exp_down_f32(x > 89.0f ? 89.0f : x);
}

/* exp(x) - 1 for x <= 0 (elu); -1 below -18. */
static inline float sn_expm1_f32(float x) {
    int32_t n;
    const float q = sn_exp_reduced(x < -18.0f ? -18.0f : x, &n);
    const float scale = sn_exp2_int(n);
    return scale * q + (scale - 1.0f);
}

/* log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)]: with s = f / (2 + f) it is 2 atanh(s), arranged
 * around f. */
static inline float sn_log_near_one(float f) {
    const float s = f / (2.0f + f);
    const float z = s * s;
    const float r = z * (6.666677594e-01f + z * (3.997747600e-01f + z * 2.987367213e-01f));
    const float half_square = 0.5f * f * f;
    return f - (half_square - s * (half_square + r));
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); for normal positive x: writes e, returns m - 1. */
static inline float sn_log_reduced(float x, float *e) {
    const uint32_t root_half = 0x3f3504f3u;
    const uint32_t above = sn_bits_f32(x) - root_half;
    *e = (float)((int32_t)above >> 23);
    return sn_float_of_bits((above & 0x7fffffu) + root_half) - 1.0f;
}

static inline float sn_log_f32(float x) {
    float e;
    const float normal = x < 1.17549435e-38f ? x * 33554432.0f : x;
    const float f = sn_log_reduced(normal, &e);
    const float exponent = x < 1.17549435e-38f ? e - 25.0f : e;
    const float y = exponent * 0.693359375f + (sn_log_near_one(f) + exponent * -2.12194440e-4f);
    const float valid = x > 0.0f ? y : (x == 0.0f ? -INFINITY : NAN);
    return x == INFINITY ? x : valid;
}

/* log(1 + u) for u in [0, 1]: what rounding 1 + u lost comes back to first order. */
static inline float sn_log1p_f32(float u) {
    float e;
    const float w = 1.0f + u;
    const float lost = (u - (w - 1.0f)) / w;
    const float f = sn_log_reduced(w, &e);
    return e * 0.693359375f + (sn_log_near_one(f) + (lost + e * -2.12194440e-4f));
}

/* The same for any argument. */
static inline float sn_log1p_any_f32(float x) {
    const float w = 1.0f + x;
    const float y = sn_log_f32(w);
    const float lost = (x - (w - 1.0f)) / w;
    return w > 0.0f && w < INFINITY ? y + lost : y;
}

/* exp(x) - 1 for any argument: where 2^n would overflow, 1 is less than half a unit. */
static inline float sn_expm1_any_f32(float x) {
    int32_t n;
    const float low = x < -18.0f ? -18.0f : x;
    const float q = sn_exp_reduced(low > 80.0f ? 80.0f : low, &n);
    const float scale = sn_exp2_int(n);
    return x > 80.0f ? sn_exp_f32(x) : scale * q + (scale - 1.0f);
}

static inline float sn_tanh_f32(float x) {
    const float a = fabsf(x);
    const float z = x * x;
    const float p = -3.333325982e-01f +
                    z * (1.333083063e-01f +
                         z * (-5.368801951e-02f + z * (2.046941034e-02f + z * -5.515154917e-03f)));
    const float small = a + a * z * p;
    const float large = 1.0f - 2.0f / (sn_exp_f32(2.0f * a) + 1.0f);
    return copysignf(a < 0.625f ? small : large, x);
}

/* sin (quarter 0) or cos (quarter 1) for |x| <= SN_WAVE_FAR, in double: x = k pi/2 + r with pi/2 in
 * three parts, the first two so short that k times them is exact; then a series in r, by the
 * quarter that k is in. */
#define SN_WAVE_FAR 5e8f

static inline float sn_wave_f32(float x, int64_t quarter) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 rounds to a whole number */
    const double shifted = (double)x * 0.63661977236758134308 + shift;
    const double k = shifted - shift;
    const double r = (((double)x - k * 1.570796251296997) - k * 7.549789415861596e-08) -
                     k * 5.390302858158119e-15;
    const double z = r * r;
    const double odd =
        r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880))));
    const double even =
        1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 - z / 3628800))));
    int64_t at;
    memcpy(&at, &shifted, sizeof at);
    at += quarter;
    const double y = at & 1 ? even : odd;
    return (float)(at & 2 ? -y : y);
}

static inline float sn_sigmoid_f32(float x) {
    const float e = sn_exp_down_f32(-fabsf(x));
    const float s = 1.0f / (1.0f + e);
    return x < 0.0f ? e * s : s;
}

/* log(1 + exp(x)) without overflow. */
static inline float sn_softplus_f32(float x) {
    const float positive = x > 0.0f ? x : 0.0f;
    const float y = positive + sn_log1p_f32(sn_exp_down_f32(-fabsf(x)));
    return x != x ? x : y;
}

/* Below 1 an odd polynomial, above it 1 - exp(-g(x)) where g fits -log(erfc). */
static inline float sn_erf_f32(float x) {
    const float a = fabsf(x);
    const float z = x * x;
    const float q =
        1.283791661e-01f +
        z * (-3.761262596e-01f +
             z * (1.128360033e-01f +
                  z * (-2.685444430e-02f +
                       z * (5.189534742e-03f + z * (-8.020836976e-04f + z * 7.889106200e-05f)))));
    const float b = a > 4.0f ? 4.0f : a;
    const float g =
        3.005194303e-04f +
        b * (1.127251029e+00f +
             b * (6.378837228e-01f +
                  b * (1.033268049e-01f +
                       b * (-2.194016986e-02f + b * (2.972376533e-03f + b * -1.888169645e-04f)))));
    int32_t n; /* -g lies in [-16, 0]: no limit, one power */
    const float e = 1.0f + sn_exp_reduced(-g, &n);
    const float small = a + a * q;
    const float large = 1.0f - e * sn_exp2_int(n);
    return copysignf(a < 1.0f ? small : large, x);
}

/* 1 - Phi(a) of the normal distribution for a >= 0, and e = exp(-a * a / 2), which it is made of:
 * their quotient is smooth, and a fraction of two polynomials fits it to 5e-9. Both are 0 from 12.5
 * on. */
static inline float sn_normal_tail_f32(float a, float *e) {
    int32_t n; /* the exponent lies in [-78.2, 0]: one power */
    const float b = a > 12.5f ? 12.5f : a;
    const float q = sn_exp_reduced(-0.5f * b * b, &n);
    const float top = 5.000000022e-01f +
                      b * (4.337343911e-01f +
                           b * (1.798721130e-01f + b * (3.950341847e-02f + b * 3.949510601e-03f)));
    const float bottom =
        1.0f + b * (1.665353660e+00f +
                    b * (1.188500504e+00f +
                         b * (4.605946436e-01f + b * (9.902852761e-02f + b * 9.899791961e-03f))));
    *e = a > 12.5f ? 0.0f : (1.0f + q) * sn_exp2_int(n);
    return *e * (top / bottom);
}

/* Phi(x); writes exp(-x * x / 2). */
static inline float sn_normal_f32(float x, float *e) {
    const float tail = sn_normal_tail_f32(fabsf(x), e);
    return x < 0.0f ? tail : 1.0f - tail;
}

#endif
