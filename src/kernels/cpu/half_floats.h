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

/* By the instruction: a cast that goes on to double would be a call of the compiler's library. */
static inline float sn_f16_wide(const sn_f16 *p) {
#ifdef __F16C__
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return _cvtsh_ss(bits);
#else
    return (float)*p;
#endif
}

static inline float sn_half_at(snug_dtype kind, const void *p, int64_t i) {
    return kind == SNUG_BF16 ? sn_bf16_wide(((const sn_bf16 *)p)[i])
                             : sn_f16_wide((const sn_f16 *)p + i);
}

#define SN_HALVES_JOIN(n) sn_halves_##n
#define SN_HALVES_OF(n)   SN_HALVES_JOIN(n)

/* sn_halves_N(kind, p, i, to): N of them from element i on, in to[0..N). */
#define SN_HALVES(n)                                                                               \
    static inline __attribute__((always_inline)) void sn_halves_##n(                               \
        const snug_dtype kind, const void *p, int64_t i, void *to) {                               \
        if (kind == SNUG_BF16)                                                                     \
            sn_bf16_wide_##n((const uint16_t *)p + i, to);                                         \
        else                                                                                       \
            sn_f16_wide_##n((const uint16_t *)p + i, to);                                          \
    }
/* One vector of them: what is loaded, widened, and shifted to the upper half. */
#define SN_WIDE(n, V, load, wide, shifted)                                                         \
    static inline void sn_f16_wide_##n(const uint16_t *p, void *to) {                              \
        const V v = wide(load);                                                                    \
        memcpy(to, &v, sizeof v);                                                                  \
    }                                                                                              \
    static inline void sn_bf16_wide_##n(const uint16_t *p, void *to) {                             \
        const V##i v = shifted;                                                                    \
        memcpy(to, &v, sizeof v);                                                                  \
    }

#if defined(__AVX512F__)
#define SN_LOADED_16 _mm256_loadu_si256((const __m256i *)p)
#define SN_LOADED_8  _mm_loadu_si128((const __m128i *)p)
SN_WIDE(16, __m512, SN_LOADED_16, _mm512_cvtph_ps,
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(SN_LOADED_16), 16))
SN_WIDE(8, __m256, SN_LOADED_8, _mm256_cvtph_ps,
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(SN_LOADED_8), 16))
SN_HALVES(8)
#elif defined(__F16C__)
#define SN_LOADED_8 _mm_loadu_si128((const __m128i *)p)
#define SN_LOADED_4 _mm_loadl_epi64((const __m128i *)p)
SN_WIDE(8, __m256, SN_LOADED_8, _mm256_cvtph_ps,
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(SN_LOADED_8), 16))
SN_WIDE(4, __m128, SN_LOADED_4, _mm_cvtph_ps, _mm_slli_epi32(_mm_cvtepu16_epi32(SN_LOADED_4), 16))
static inline void sn_f16_wide_16(const uint16_t *p, float *to) {
    sn_f16_wide_8(p, to);
    sn_f16_wide_8(p + 8, to + 8);
}
static inline void sn_bf16_wide_16(const uint16_t *p, float *to) {
    sn_bf16_wide_8(p, to);
    sn_bf16_wide_8(p + 8, to + 8);
}
SN_HALVES(4)
#else
static inline void sn_halves_each(snug_dtype kind, const uint16_t *p, int n, float *to) {
    for (int i = 0; i < n; i++)
        to[i] = sn_half_at(kind, p, i);
}
#define sn_f16_wide_16(p, to)  sn_halves_each(SNUG_F16, p, 16, to)
#define sn_bf16_wide_16(p, to) sn_halves_each(SNUG_BF16, p, 16, to)
#define sn_f16_wide_2(p, to)   sn_halves_each(SNUG_F16, p, 2, to)
#define sn_bf16_wide_2(p, to)  sn_halves_each(SNUG_BF16, p, 2, to)
SN_HALVES(2)
#endif
SN_HALVES(16)

#endif
