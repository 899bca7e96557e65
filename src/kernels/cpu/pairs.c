/* pairs.c: see pairs.h. */
#include "kernels/cpu/pairs.h"

#if defined(__AVX512F__)

#include "kernels/cpu/half_vectors.h"

#define INLINE static inline __attribute__((always_inline))

enum { WORDS = SN_VL };

bool sn_pairs_here(void) {
    return __builtin_cpu_supports("avx512bf16") != 0;
}

/* n <= 2 * WORDS neighbouring elements as words. */
INLINE __m512i run_at(const sn_stored *s, int64_t at, int64_t n) {
    const uint16_t *p = (const uint16_t *)s->data + at;
    if (s->dtype == SNUG_BF16)
        return _mm512_maskz_loadu_epi16(n == 2 * WORDS ? ~0u : (1u << n) - 1u, p);
    const int64_t low = sn_min_i64(n, WORDS);
    const __m256i first = sn_half_narrow(SNUG_BF16, sn_half_get(s->data, at, low, SN_AS_BF16));
    const __m256i second =
        n > low ? sn_half_narrow(SNUG_BF16, sn_half_get(s->data, at + low, n - low, SN_AS_BF16))
                : _mm256_setzero_si256();
    return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}

void sn_pairs_run(const sn_stored *s, int64_t at, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i += 2 * WORDS, to += WORDS) {
        const int64_t part = sn_min_i64(2 * WORDS, n - i), words = (part + 1) / 2;
        _mm512_mask_storeu_epi32(to, (__mmask16)((1u << words) - 1u), run_at(s, at + i, part));
    }
}

INLINE void pair_rows(const void *data, int64_t at, int64_t step, bool one, int64_t n, float *to,
                      const sn_half_mode m) {
    int64_t i = 0;
    for (; i + WORDS <= n; i += WORDS)
        _mm512_storeu_si512(to + i, sn_half_pair(data, at + i, step, one, WORDS, m));
    if (i < n)
        _mm512_mask_storeu_epi32(to + i, (__mmask16)((1u << (n - i)) - 1u),
                                 sn_half_pair(data, at + i, step, one, n - i, m));
}

void sn_pairs_rows(const sn_stored *s, int64_t at, int64_t step, bool one, int64_t n, float *to) {
    if (s->dtype == SNUG_BF16)
        pair_rows(s->data, at, step, one, n, to, SN_FROM_BF16);
    else
        pair_rows(s->data, at, step, one, n, to, SN_AS_BF16);
}

/* Columns lie side by side. */
INLINE void pack_rows(const sn_stored_source *s, float *packed, const sn_half_mode m) {
    const int64_t words = sn_ceil_div(s->k, 2);
    for (int64_t i = 0; i < words; i++) {
        const bool one = 2 * i + 1 == s->k;
        const int64_t at = s->at + s->row[2 * i];
        const int64_t step = one ? 0 : s->row[2 * i + 1] - s->row[2 * i];
        for (int64_t j = 0; j < s->n; j += SN_GEMM_NR) {
            const int64_t n = sn_min_i64(SN_GEMM_NR, s->n - j);
            float *to = packed + j * words + i * sn_gemm_packed(1, n);
            for (int64_t l = 0; l < n; l += WORDS)
                _mm512_storeu_si512(to + l, sn_half_pair(s->from->data, at + j + l, step, one,
                                                         sn_min_i64(WORDS, n - l), m));
        }
    }
}

/* n <= WORDS columns of k <= 2 * WORDS terms, each a run from `at` on. */
INLINE void turn(const sn_stored_source *s, int64_t at, int64_t k, int64_t n, float *to,
                 int64_t stride) {
    sn_vec square[SN_VL] = {0};
    for (int64_t j = 0; j < n; j++)
        square[j] = (sn_vec)run_at(s->from, at + j * s->col, k);
    sn_vec_turn(square);
    for (int64_t i = 0; i < (k + 1) / 2; i++)
        sn_vec_store(to + i * stride, square[i]);
}

static void pack_panel(const sn_stored_source *s, int64_t first, int64_t n, float *packed) {
    const int64_t stride = sn_gemm_packed(1, n);
    for (int64_t k = 0; k < s->k; k += 2 * WORDS) {
        const int64_t high = sn_min_i64(2 * WORDS, s->k - k);
        for (int64_t j = 0; j < n; j += WORDS) {
            const int64_t wide = sn_min_i64(WORDS, n - j);
            const int64_t at = s->at + s->row[k] + (first + j) * s->col;
            float *to = packed + k / 2 * stride + j;
            if (high == 2 * WORDS && wide == WORDS) /* stays in registers */
                turn(s, at, 2 * WORDS, WORDS, to, stride);
            else
                turn(s, at, high, wide, to, stride);
        }
    }
}

void sn_pairs_pack(const sn_stored_source *s, float *packed) {
    if (s->col == 1 && s->from->dtype == SNUG_BF16) {
        pack_rows(s, packed, SN_FROM_BF16);
        return;
    }
    if (s->col == 1) {
        pack_rows(s, packed, SN_AS_BF16);
        return;
    }
    for (int64_t j = 0; j < s->n; j += SN_GEMM_NR)
        pack_panel(s, j, sn_min_i64(SN_GEMM_NR, s->n - j), packed + j * sn_ceil_div(s->k, 2));
}

#else

bool sn_pairs_here(void) {
    return false;
}

void sn_pairs_run(const sn_stored *s, int64_t at, int64_t n, float *to) {
    (void)s, (void)at, (void)n, (void)to;
}

void sn_pairs_rows(const sn_stored *s, int64_t at, int64_t step, bool one, int64_t n, float *to) {
    (void)s, (void)at, (void)step, (void)one, (void)n, (void)to;
}

void sn_pairs_pack(const sn_stored_source *s, float *packed) {
    (void)s, (void)packed;
}

#endif
