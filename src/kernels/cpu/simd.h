/* simd.h: vectors of SN_VL floats, as wide as the build's registers. Every lane does what one float
 * would; with fused multiply-add where the instruction set has it, so lanes and tails of a loop
 * must both go through these functions. */
#ifndef SN_KERNELS_CPU_SIMD_H
#define SN_KERNELS_CPU_SIMD_H

#include <stdint.h>

#if defined(__AVX512F__)
enum { SN_VL = 16 };
#elif defined(__AVX2__)
enum { SN_VL = 8 };
#else
enum { SN_VL = 4 };
#endif

#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float sn_vec __attribute__((vector_size(SN_VL * sizeof(float))));
/* The same in memory, at any address of a float. */
typedef float sn_vec_in_memory
    __attribute__((vector_size(SN_VL * sizeof(float)), aligned(4), may_alias));
typedef int sn_lanes __attribute__((vector_size(SN_VL * sizeof(int))));

static inline sn_vec sn_vec_load(const float *p) {
    return *(const sn_vec_in_memory *)p;
}

static inline void sn_vec_store(float *p, sn_vec v) {
    *(sn_vec_in_memory *)p = v;
}

static inline sn_vec sn_vec_spread(float x) {
    return x - (sn_vec){0};
}

static inline sn_vec sn_vec_multiply_add(sn_vec a, sn_vec b, sn_vec c) {
#if defined(__AVX512F__)
    return (sn_vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (sn_vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* The first n lanes; the others are zero. */
static inline sn_vec sn_vec_load_part(const float *p, int64_t n) {
#if defined(__AVX512F__)
    return (sn_vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#else
    sn_vec v = {0};
    for (int64_t i = 0; i < n; i++)
        v[i] = p[i];
    return v;
#endif
}

static inline void sn_vec_store_part(float *p, sn_vec v, int64_t n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
    for (int64_t i = 0; i < n; i++)
        p[i] = v[i];
#endif
}

/* The first halves of two vectors, element by element in turn, and the second halves. */
#if defined(__AVX512F__)
#define SN_VEC_LOW(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SN_VEC_HIGH(a, b)                                                                          \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__AVX2__)
#define SN_VEC_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SN_VEC_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define SN_VEC_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SN_VEC_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* A square of VL x VL turned over its diagonal: each round interleaves the first half of the rows
 * with the second, and log2(VL) rounds bring every element to its place. */
static inline __attribute__((always_inline)) void sn_vec_turn(sn_vec square[SN_VL]) {
    enum { HALF = SN_VL / 2 };
    for (int round = 1; round < SN_VL; round *= 2) {
        sn_vec next[SN_VL];
#pragma GCC unroll 8
        for (int i = 0; i < HALF; i++) {
            next[2 * i] = SN_VEC_LOW(square[i], square[i + HALF]);
            next[2 * i + 1] = SN_VEC_HIGH(square[i], square[i + HALF]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < SN_VL; i++)
            square[i] = next[i];
    }
}

/* Lanes below zero become zero; NaN stays. */
static inline sn_vec sn_vec_relu(sn_vec v) {
#if defined(__AVX512F__)
    /* of a NaN, and of two zeros, the second */
    return (sn_vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
#else
    return (sn_vec)((sn_lanes)v & ~(sn_lanes)(v < 0));
#endif
}

/* And those above six become six. */
static inline sn_vec sn_vec_relu6(sn_vec v) {
#if defined(__AVX512F__)
    return (sn_vec)_mm512_min_ps(_mm512_set1_ps(6), (__m512)sn_vec_relu(v));
#else
    const sn_lanes above = v > 6;
    return (sn_vec)(((sn_lanes)sn_vec_relu(v) & ~above) | ((sn_lanes)sn_vec_spread(6) & above));
#endif
}

#endif
