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
INLINE SN_WITH_PAIRS __m512i run_at(const sn_stored *s, int64_t at, int64_t n) {
    const uint16_t *p = (const uint16_t *)s->data + at;
    if (s->dtype == SNUG_BF16)
        return _mm512_maskz_loadu_epi16(n == 2 * WORDS ? ~0u : (1u << n) - 1u, p);
    const int64_t low = sn_min_i64(n, WORDS);
    return sn_half_narrow_two(sn_half_get(s->data, at, low, SN_PLAIN),
                              sn_half_get(s->data, at + low, n - low, SN_PLAIN));
}

/* n <= WORDS words of two rows. */
INLINE SN_WITH_PAIRS __m512i rows_at(const sn_stored *s, int64_t at, int64_t step, bool one,
                                     int64_t n) {
    enum { HIGH = 16 };
    if (s->dtype == SNUG_BF16)
        return sn_half_pair(s->data, at, step, one, n);
    const __m512i in_turn =
        _mm512_or_si512(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                        _mm512_slli_epi32(_mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                                            26, 27, 28, 29, 30, 31),
                                          HIGH));
    const sn_vec second = one ? (sn_vec){0} : sn_half_get(s->data, at + step, n, SN_PLAIN);
    return _mm512_permutexvar_epi16(
        in_turn, sn_half_narrow_two(sn_half_get(s->data, at, n, SN_PLAIN), second));
}

static SN_WITH_PAIRS void make_run(const sn_stored *s, int64_t at, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i += 2 * WORDS, to += WORDS) {
        const int64_t part = sn_min_i64(2 * WORDS, n - i), words = (part + 1) / 2;
        _mm512_mask_storeu_epi32(to, (__mmask16)((1u << words) - 1u), run_at(s, at + i, part));
    }
}

static SN_WITH_PAIRS void make_rows(const sn_stored *s, int64_t at, int64_t step, bool one,
                                    int64_t n, float *to) {
    int64_t i = 0;
    for (; i + WORDS <= n; i += WORDS)
        _mm512_storeu_si512(to + i, rows_at(s, at + i, step, one, WORDS));
    if (i < n)
        _mm512_mask_storeu_epi32(to + i, (__mmask16)((1u << (n - i)) - 1u),
                                 rows_at(s, at + i, step, one, n - i));
}

/* Fetches n elements of two rows. */
static void fetch_rows(const sn_stored *s, int64_t at, int64_t step, int64_t n) {
    enum { LINE = 16 };
    const int64_t bytes = (int64_t)snug_dtype_bytes(s->dtype);
    for (int64_t j = 0; j < n; j += LINE) {
        __builtin_prefetch((const char *)s->data + (at + j) * bytes);
        __builtin_prefetch((const char *)s->data + (at + step + j) * bytes);
    }
}

/* Columns lie side by side. What is fetched may be the next piece's. */
static SN_WITH_PAIRS void pack_rows(const sn_stored_source *s, float *packed) {
    enum { AHEAD = 512 }; /* elements */
    const int64_t words = sn_ceil_div(s->k, 2), ahead = 2 + AHEAD / s->n;
    for (int64_t i = 0; i < words; i++) {
        const bool one = 2 * i + 1 == s->k;
        const int64_t at = s->at + s->row[2 * i];
        const int64_t step = one ? 0 : s->row[2 * i + 1] - s->row[2 * i];
        fetch_rows(s->from, at + ahead * step, step, s->n);
        for (int64_t j = 0; j < s->n; j += SN_GEMM_NR) {
            const int64_t n = sn_min_i64(SN_GEMM_NR, s->n - j);
            float *to = packed + j * words + i * sn_gemm_packed(1, n);
            for (int64_t l = 0; l < n; l += WORDS)
                _mm512_storeu_si512(
                    to + l, rows_at(s->from, at + j + l, step, one, sn_min_i64(WORDS, n - l)));
        }
    }
}

/* n <= WORDS columns of k <= 2 * WORDS terms, each a run from `at` on. */
INLINE SN_WITH_PAIRS void turn(const sn_stored_source *s, int64_t at, int64_t k, int64_t n,
                               float *to, int64_t stride) {
    sn_vec square[SN_VL] = {0};
    for (int64_t j = 0; j < n; j++)
        square[j] = (sn_vec)run_at(s->from, at + j * s->col, k);
    sn_vec_turn(square);
    for (int64_t i = 0; i < (k + 1) / 2; i++)
        sn_vec_store(to + i * stride, square[i]);
}

static SN_WITH_PAIRS void pack_panel(const sn_stored_source *s, int64_t first, int64_t n,
                                     float *packed) {
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

static SN_WITH_PAIRS void pack(const sn_stored_source *s, float *packed) {
    if (s->col == 1 && s->n > 0) {
        pack_rows(s, packed);
        return;
    }
    for (int64_t j = 0; j < s->n; j += SN_GEMM_NR)
        pack_panel(s, j, sn_min_i64(SN_GEMM_NR, s->n - j), packed + j * sn_ceil_div(s->k, 2));
}

/* The same without the attribute, which declarations do not have. */
void sn_pairs_run(const sn_stored *s, int64_t at, int64_t n, float *to) {
    make_run(s, at, n, to);
}

void sn_pairs_rows(const sn_stored *s, int64_t at, int64_t step, bool one, int64_t n, float *to) {
    make_rows(s, at, step, one, n, to);
}

void sn_pairs_pack(const sn_stored_source *s, float *packed) {
    pack(s, packed);
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
