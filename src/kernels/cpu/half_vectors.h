/* half_vectors.h: vectors of halves as f32, and back. What is done to an element is the same in
 * every lane and in every tail. */
#ifndef SN_KERNELS_CPU_HALF_VECTORS_H
#define SN_KERNELS_CPU_HALF_VECTORS_H

#include "kernels/cpu/halves.h"
#include "kernels/cpu/simd.h"

#include <string.h>

/* How an element becomes an f32. */
typedef enum {
    SN_PLAIN,
    SN_FROM_F16,
    SN_FROM_BF16,
    SN_AS_F16,
    SN_AS_BF16,
    SN_N_HALF_MODES
} sn_half_mode;

static inline sn_half_mode sn_half_mode_of(const sn_stored *s) {
    if (s->dtype == SNUG_F32 && s->rounded == SNUG_F32)
        return SN_PLAIN;
    if (s->dtype == SNUG_F32)
        return s->rounded == SNUG_F16 ? SN_AS_F16 : SN_AS_BF16;
    return s->dtype == SNUG_F16 ? SN_FROM_F16 : SN_FROM_BF16;
}

typedef unsigned sn_bits __attribute__((vector_size(SN_VL * sizeof(unsigned))));

/* Rounded to bf16; NaN stays NaN where its payload is cut. */
static inline sn_vec sn_half_as_bf16(sn_vec v) {
    const sn_bits b = (sn_bits)v, nan = (sn_bits)(v != v);
    const sn_bits up = (b + 0x7fffu + (b >> 16 & 1u)) & 0xffff0000u;
    const sn_bits cut = (b & 0xffff0000u) | 0x00400000u;
    return (sn_vec)((up & ~nan) | (cut & nan));
}

#if defined(__AVX512F__)

static inline __m256i sn_half_load(const uint16_t *p, int64_t n) {
    return n == SN_VL ? _mm256_loadu_si256((const __m256i *)p)
                      : _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p);
}

static inline sn_vec sn_half_from_f16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm512_cvtph_ps(sn_half_load(p, n));
}

static inline sn_vec sn_half_from_bf16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(sn_half_load(p, n)), 16);
}

static inline sn_vec sn_half_as_f16(sn_vec v) {
    return (sn_vec)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(__AVX2__)

static inline __m128i sn_half_load(const uint16_t *p, int64_t n) {
    uint16_t part[SN_VL] = {0};
    if (n == SN_VL)
        return _mm_loadu_si128((const __m128i *)p);
    for (int64_t i = 0; i < n; i++)
        part[i] = p[i];
    return _mm_loadu_si128((const __m128i *)part);
}

static inline sn_vec sn_half_from_f16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm256_cvtph_ps(sn_half_load(p, n));
}

static inline sn_vec sn_half_from_bf16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(sn_half_load(p, n)), 16);
}

static inline sn_vec sn_half_as_f16(sn_vec v) {
    return (sn_vec)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

#else

static inline sn_vec sn_half_from_f16(const uint16_t *p, int64_t n) {
    sn_vec v = {0};
    for (int64_t i = 0; i < n; i++) {
        SN_HALF half;
        memcpy(&half, &p[i], sizeof half);
        v[i] = (float)half;
    }
    return v;
}

static inline sn_vec sn_half_from_bf16(const uint16_t *p, int64_t n) {
    sn_bits v = {0};
    for (int64_t i = 0; i < n; i++)
        v[i] = (unsigned)p[i] << 16;
    return (sn_vec)v;
}

static inline sn_vec sn_half_as_f16(sn_vec v) {
    for (int i = 0; i < SN_VL; i++)
        v[i] = (float)(SN_HALF)v[i];
    return v;
}

#endif

/* n <= VL elements from `at` on, zeros behind them; m is a constant wherever this is called. */
static inline __attribute__((always_inline)) sn_vec sn_half_get(const void *data, int64_t at,
                                                                int64_t n, const sn_half_mode m) {
    if (m == SN_FROM_F16)
        return sn_half_from_f16((const uint16_t *)data + at, n);
    if (m == SN_FROM_BF16)
        return sn_half_from_bf16((const uint16_t *)data + at, n);
    const float *p = (const float *)data + at;
    const sn_vec v = n == SN_VL ? sn_vec_load(p) : sn_vec_load_part(p, n);
    return m == SN_AS_F16 ? sn_half_as_f16(v) : m == SN_AS_BF16 ? sn_half_as_bf16(v) : v;
}

/* --- back ------------------------------------------------------------------------------------- */
#if defined(__AVX512F__)

static inline __m256i sn_half_narrow(snug_dtype dtype, sn_vec v) {
    return dtype == SNUG_F16
               ? _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT)
               : _mm512_cvtepi32_epi16(_mm512_srli_epi32((__m512i)sn_half_as_bf16(v), 16));
}

static inline void sn_half_store(snug_dtype dtype, uint16_t *to, int64_t n, sn_vec v) {
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1u), sn_half_narrow(dtype, v));
}

#else

static inline void sn_half_store(snug_dtype dtype, uint16_t *to, int64_t n, sn_vec v) {
    float line[SN_VL];
    sn_vec_store(line, v);
    sn_halves_of_f32(dtype, line, n, to);
}

#endif

/* n <= VL elements from `at` on, of f32 or a half. */
static inline void sn_half_put(const sn_stored *s, int64_t at, int64_t n, sn_vec v) {
    if (s->dtype == SNUG_F32)
        sn_vec_store_part((float *)s->data + at, v, n);
    else
        sn_half_store(s->dtype, (uint16_t *)s->data + at, n, v);
}

#if defined(__AVX512F__)
#define SN_WITH_PAIRS __attribute__((target("avx512bf16")))

/* bf16 of two rows as words, the second of the upper halves: n <= VL neighbours from `at` on, and
 * from `step` behind that; one: there is no second. */
static inline __m512i sn_half_pair(const void *data, int64_t at, int64_t step, bool one,
                                   int64_t n) {
    const __m512i first = (__m512i)sn_half_get(data, at, n, SN_FROM_BF16);
    const sn_vec second = one ? (sn_vec){0} : sn_half_get(data, at + step, n, SN_FROM_BF16);
    return _mm512_or_si512(_mm512_srli_epi32(first, 16), (__m512i)second);
}

/* Two vectors as bf16, one behind the other. The instruction rounds as sn_half_as_bf16 does, but
 * for what lies below the least normal number. */
static inline __attribute__((always_inline)) SN_WITH_PAIRS __m512i sn_half_narrow_two(sn_vec low,
                                                                                      sn_vec high) {
    enum { DENORMAL = 0x20 };
    const unsigned small = _mm512_fpclass_ps_mask((__m512)low, DENORMAL) |
                           (unsigned)_mm512_fpclass_ps_mask((__m512)high, DENORMAL);
    if (__builtin_expect(small != 0, 0))
        return _mm512_inserti64x4(_mm512_castsi256_si512(sn_half_narrow(SNUG_BF16, low)),
                                  sn_half_narrow(SNUG_BF16, high), 1);
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}
#endif

/* The same read, where the mode is no constant. */
static inline sn_vec sn_half_part(const sn_stored *s, int64_t at, int64_t n) {
    switch (sn_half_mode_of(s)) {
    case SN_FROM_F16:
        return sn_half_get(s->data, at, n, SN_FROM_F16);
    case SN_FROM_BF16:
        return sn_half_get(s->data, at, n, SN_FROM_BF16);
    case SN_AS_F16:
        return sn_half_get(s->data, at, n, SN_AS_F16);
    case SN_AS_BF16:
        return sn_half_get(s->data, at, n, SN_AS_BF16);
    default:
        return sn_half_get(s->data, at, n, SN_PLAIN);
    }
}

#endif
