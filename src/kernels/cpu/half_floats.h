/* half_floats.h: numbers of two bytes, one by one and some at a time, as f32. `kind` is F16 or
 * BF16, and a constant where it matters. */
#ifndef SN_KERNELS_CPU_HALF_FLOATS_H
#define SN_KERNELS_CPU_HALF_FLOATS_H

#include "tensor/type.h"

#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

typedef SN_HALF sn_f16;

/* The upper half of a float. */
typedef struct {
    uint16_t bits;
} sn_bf16;


static inline float sn_bf16_wide(sn_bf16 x) {
    const uint32_t bits = (uint32_t)x.bits << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Rounded to even; NaN stays NaN where its payload is cut. */
static inline sn_bf16 sn_bf16_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (sn_bf16){(uint16_t)(f != f ? bits >> 16 | 64 : rounded)};
}

static inline float sn_half_at(snug_dtype kind, const void *p, int64_t i) {
    return kind == SNUG_BF16 ? sn_bf16_wide(((const sn_bf16 *)p)[i])
                             : (float)((const sn_f16 *)p)[i];
}

#define SN_HALVES_JOIN(n) sn_halves_##n
#define SN_HALVES_OF(n)   SN_HALVES_JOIN(n)

/* sn_halves_N(kind, p, i, to): N of them from element i on, in to[0..N). */
#define SN_HALVES(n)                                                                               \
    typedef uint16_t sn_halves_bits_##n                                                            \
        __attribute__((vector_size(2 * n), aligned(2), may_alias));                                \
    typedef uint32_t sn_halves_wide_##n __attribute__((vector_size(4 * n)));                       \
    static inline __attribute__((always_inline)) void sn_halves_##n(                               \
        const snug_dtype kind, const void *p, int64_t i, void *to) {                               \
        if (kind == SNUG_BF16) {                                                                   \
            const sn_halves_wide_##n bits =                                                        \
                __builtin_convertvector(*(const sn_halves_bits_##n *)((const uint16_t *)p + i),    \
                                        sn_halves_wide_##n)                                        \
                << 16;                                                                             \
            memcpy(to, &bits, sizeof bits);                                                        \
        } else {                                                                                   \
            sn_f16_wide_##n((const sn_f16 *)p + i, to);                                            \
        }                                                                                          \
    }

#if !defined(__AVX512F__)
static inline void sn_f16_wide_each(const sn_f16 *p, int n, float *to) {
    for (int i = 0; i < n; i++)
        to[i] = (float)p[i];
}
#endif

#if defined(__AVX512F__)
static inline void sn_f16_wide_16(const sn_f16 *p, void *to) {
    const __m512 v = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    memcpy(to, &v, sizeof v);
}
static inline void sn_f16_wide_8(const sn_f16 *p, void *to) {
    const __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    memcpy(to, &v, sizeof v);
}
SN_HALVES(8)
#elif defined(__F16C__)
static inline void sn_f16_wide_16(const sn_f16 *p, void *to) {
    const __m256 v[2] = {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
    memcpy(to, v, sizeof v);
}
static inline void sn_f16_wide_4(const sn_f16 *p, void *to) {
    const __m128 v = _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p));
    memcpy(to, &v, sizeof v);
}
SN_HALVES(4)
#else
#define sn_f16_wide_16(p, to) sn_f16_wide_each(p, 16, to)
#define sn_f16_wide_2(p, to)  sn_f16_wide_each(p, 2, to)
SN_HALVES(2)
#endif
SN_HALVES(16)

#endif
