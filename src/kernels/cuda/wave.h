/* wave.h: sine and cosine of any double, in registers alone: the compiler's own need a stack frame
 * for large angles. Near 0 the nearest multiple of pi / 2 is taken off in three pieces; far away
 * the product with 2 / pi is made in integers, of the bits of 2 / pi that matter (Payne and Hanek).
 * What is left, at most pi / 4, goes into Taylor's series. */
#ifndef SN_KERNELS_CUDA_WAVE_H
#define SN_KERNELS_CUDA_WAVE_H

#include "kernels/cuda/cuda.h"

/* 2 / pi = 0.a2f9836e..., behind 64 zeros: word k has the bits of weights 2^(63 - 64k) and
 * below. */
static __constant__ uint64_t sn_two_over_pi[22] = {
    0,
    0xa2f9836e4e441529ull,
    0xfc2757d1f534ddc0ull,
    0xdb6295993c439041ull,
    0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull,
    0x06492eea09d1921cull,
    0xfe1deb1cb129a73eull,
    0xe88235f52ebb4484ull,
    0xe99c7026b45f7e41ull,
    0x3991d639835339f4ull,
    0x9c845f8bbdf9283bull,
    0x1ff897ffde05980full,
    0xef2f118b5a0a6d1full,
    0x6d367ecf27cb09b7ull,
    0x4f463f669e5fea2dull,
    0x7527bac7ebe5f17bull,
    0x3d0739f78a5292eaull,
    0x6bfb5fb11f8d5d08ull,
    0x56033046fc7b6babull,
    0xf0cfbc209af4361dull,
    0xa9e391615ee61b08ull,
};

/* An angle without whole quarters: |rest| <= pi / 4. */
typedef struct {
    double rest;
    int quarter; /* modulo 4 */
} sn_angle;

/* 64 bits from bit `first` of the table on. */
static __device__ __forceinline__ uint64_t sn_pi_bits(int first) {
    const int word = first / 64, shift = first % 64;
    const uint64_t high = sn_two_over_pi[word];
    return shift == 0 ? high : high << shift | sn_two_over_pi[word + 1] >> (64 - shift);
}

/* x = m 2^e. Bits of 2 / pi of weight 2^(2 - e) and more give whole turns; the 192 below them times
 * m, modulo 2^192, are the quarters in units of 2^-190. */
static __device__ __forceinline__ sn_angle sn_far_angle(double x) {
    const uint64_t u = (uint64_t)__double_as_longlong(x);
    const int e = (int)(u >> 52 & 2047) - 1075;
    const uint64_t m = (u & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    const int first = e + 62; /* the bit of weight 2^(1 - e) */
    const uint64_t a = sn_pi_bits(first), b = sn_pi_bits(first + 64), c = sn_pi_bits(first + 128);
    const uint64_t mid = __umul64hi(m, c) + m * b;
    const uint64_t carry = mid < m * b ? 1 : 0;
    const uint64_t top = m * a + __umul64hi(m, b) + carry;
    const uint64_t quarter = (top + ((uint64_t)1 << 61)) >> 62;
    const int64_t rest = (int64_t)(top - (quarter << 62));
    sn_angle r;
    r.rest = ((double)rest * 0x1p-62 + (double)mid * 0x1p-126) * 1.57079632679489661923;
    r.rest = x < 0 ? -r.rest : r.rest;
    r.quarter = x < 0 ? (int)(4 - quarter) & 3 : (int)quarter & 3;
    return r;
}

/* NaN for what is no number. */
static __device__ __forceinline__ sn_angle sn_angle_of(double x) {
    if (fabs(x) > 1e5 && x - x == 0)
        return sn_far_angle(x);
    const double n = rint(x * 0.63661977236758134308);
    sn_angle r;
    /* pi / 2 in pieces of 33 bits: their products with n are exact. */
    r.rest = ((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
    r.quarter = n - n == 0 ? (int)((int64_t)n & 3) : 0;
    return r;
}

static __device__ __forceinline__ double sn_sine_near(double x) {
    const double q = x * x;
    double s = 1.0 / 355687428096000.0;
    s = s * q - 1.0 / 1307674368000.0;
    s = s * q + 1.0 / 6227020800.0;
    s = s * q - 1.0 / 39916800.0;
    s = s * q + 1.0 / 362880.0;
    s = s * q - 1.0 / 5040.0;
    s = s * q + 1.0 / 120.0;
    s = s * q - 1.0 / 6.0;
    return x + x * q * s;
}
static __device__ __forceinline__ double sn_cosine_near(double x) {
    const double q = x * x;
    double s = -1.0 / 6402373705728000.0;
    s = s * q + 1.0 / 20922789888000.0;
    s = s * q - 1.0 / 87178291200.0;
    s = s * q + 1.0 / 479001600.0;
    s = s * q - 1.0 / 3628800.0;
    s = s * q + 1.0 / 40320.0;
    s = s * q - 1.0 / 720.0;
    s = s * q + 1.0 / 24.0;
    return 1 - q * 0.5 + q * q * s;
}

/* The sine of x plus `ahead` quarters: 0 sine, 1 cosine. */
static __device__ __forceinline__ double sn_wave(double x, int ahead) {
    const sn_angle a = sn_angle_of(x);
    const int quarter = (a.quarter + ahead) & 3;
    const double v = quarter & 1 ? sn_cosine_near(a.rest) : sn_sine_near(a.rest);
    return quarter & 2 ? -v : v;
}
static __device__ __forceinline__ double sn_tangent(double x) {
    const sn_angle a = sn_angle_of(x);
    const double s = sn_sine_near(a.rest), c = sn_cosine_near(a.rest);
    return a.quarter & 1 ? -c / s : s / c;
}

#endif
