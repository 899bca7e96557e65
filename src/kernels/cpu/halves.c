/* halves.c: halves read, packed and written under f32 products (halves.h). What is done to an
 * element is the same in every lane and in every tail. */
#include "kernels/cpu/halves.h"

#include "kernels/cpu/act.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* --- vectors of halves ------------------------------------------------------------------------ */
/* How an element becomes an f32. */
typedef enum { PLAIN, FROM_F16, FROM_BF16, AS_F16, AS_BF16, N_MODES } mode;

static mode mode_of(const sn_stored *s) {
    if (s->dtype == SNUG_F32 && s->rounded == SNUG_F32)
        return PLAIN;
    if (s->dtype == SNUG_F32)
        return s->rounded == SNUG_F16 ? AS_F16 : AS_BF16;
    return s->dtype == SNUG_F16 ? FROM_F16 : FROM_BF16;
}

typedef unsigned bits __attribute__((vector_size(SN_VL * sizeof(unsigned))));

/* Rounded to bf16; NaN stays NaN where its payload is cut. */
INLINE sn_vec as_bf16(sn_vec v) {
    const bits b = (bits)v, nan = (bits)(v != v);
    const bits up = (b + 0x7fffu + (b >> 16 & 1u)) & 0xffff0000u;
    const bits cut = (b & 0xffff0000u) | 0x00400000u;
    return (sn_vec)((up & ~nan) | (cut & nan));
}

#if defined(__AVX512F__)

INLINE __m256i load_halves(const uint16_t *p, int64_t n) {
    return n == SN_VL ? _mm256_loadu_si256((const __m256i *)p)
                      : _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p);
}

INLINE sn_vec from_f16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm512_cvtph_ps(load_halves(p, n));
}

INLINE sn_vec from_bf16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_halves(p, n)), 16);
}

INLINE sn_vec as_f16(sn_vec v) {
    return (sn_vec)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(__AVX2__)

INLINE __m128i load_halves(const uint16_t *p, int64_t n) {
    uint16_t part[SN_VL] = {0};
    if (n == SN_VL)
        return _mm_loadu_si128((const __m128i *)p);
    for (int64_t i = 0; i < n; i++)
        part[i] = p[i];
    return _mm_loadu_si128((const __m128i *)part);
}

INLINE sn_vec from_f16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm256_cvtph_ps(load_halves(p, n));
}

INLINE sn_vec from_bf16(const uint16_t *p, int64_t n) {
    return (sn_vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_halves(p, n)), 16);
}

INLINE sn_vec as_f16(sn_vec v) {
    return (sn_vec)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

#else

INLINE sn_vec from_f16(const uint16_t *p, int64_t n) {
    sn_vec v = {0};
    for (int64_t i = 0; i < n; i++) {
        SN_HALF half;
        memcpy(&half, &p[i], sizeof half);
        v[i] = (float)half;
    }
    return v;
}

INLINE sn_vec from_bf16(const uint16_t *p, int64_t n) {
    bits v = {0};
    for (int64_t i = 0; i < n; i++)
        v[i] = (unsigned)p[i] << 16;
    return (sn_vec)v;
}

INLINE sn_vec as_f16(sn_vec v) {
    for (int i = 0; i < SN_VL; i++)
        v[i] = (float)(SN_HALF)v[i];
    return v;
}

#endif

/* n <= VL elements from `at` on, zeros behind them; m is a constant wherever this is called. */
INLINE sn_vec get(const void *data, int64_t at, int64_t n, const mode m) {
    if (m == FROM_F16)
        return from_f16((const uint16_t *)data + at, n);
    if (m == FROM_BF16)
        return from_bf16((const uint16_t *)data + at, n);
    const float *p = (const float *)data + at;
    const sn_vec v = n == SN_VL ? sn_vec_load(p) : sn_vec_load_part(p, n);
    return m == AS_F16 ? as_f16(v) : m == AS_BF16 ? as_bf16(v) : v;
}

/* --- rows ------------------------------------------------------------------------------------- */
INLINE void read_row(const void *data, int64_t at, int64_t n, float *to, const mode m) {
    int64_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL)
        sn_vec_store(to + i, get(data, at + i, SN_VL, m));
    if (i < n)
        sn_vec_store_part(to + i, get(data, at + i, n - i, m), n - i);
}

void sn_stored_read(const sn_stored *s, int64_t at, int64_t n, float *to) {
    switch (mode_of(s)) {
    case FROM_F16:
        return read_row(s->data, at, n, to, FROM_F16);
    case FROM_BF16:
        return read_row(s->data, at, n, to, FROM_BF16);
    case AS_F16:
        return read_row(s->data, at, n, to, AS_F16);
    case AS_BF16:
        return read_row(s->data, at, n, to, AS_BF16);
    default:
        return read_row(s->data, at, n, to, PLAIN);
    }
}

static void add_row(const sn_stored *s, int64_t at, int64_t n, const float *from) {
    float sum[SN_PRODUCT_COLUMNS];
    for (int64_t i = 0, part; i < n; i += part) {
        part = sn_min_i64(SN_PRODUCT_COLUMNS, n - i);
        sn_stored_read(s, at + i, part, sum);
        for (int64_t j = 0; j < part; j++)
            sum[j] += from[i + j];
        sn_stored_write(s, at + i, part, sum, false);
    }
}

void sn_stored_write(const sn_stored *s, int64_t at, int64_t n, const float *from, bool add) {
    if (add)
        add_row(s, at, n, from);
    else if (s->dtype == SNUG_F32)
        memcpy((float *)s->data + at, from, (size_t)n * sizeof(float));
    else
        sn_halves_of_f32(s->dtype, from, n, (uint16_t *)s->data + at);
}

/* --- packing ---------------------------------------------------------------------------------- */
static int64_t panel_stride(int64_t n) {
    return sn_ceil_div(n, SN_VL) * SN_VL;
}

/* Columns lie side by side. */
INLINE void pack_rows(const sn_stored_source *s, float *packed, const mode m) {
    enum { LINE = 16, LINES_AHEAD = 32 };
    const int64_t ahead = 1 + LINES_AHEAD * LINE / s->n;
    const int64_t bytes = (int64_t)snug_dtype_bytes(s->from->dtype);
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t at = s->at + s->row[i];
        const int64_t later = s->at + s->row[i + ahead < s->k ? i + ahead : s->k - 1];
        for (int64_t j = 0; j < s->n; j += LINE)
            __builtin_prefetch((const char *)s->from->data + (later + j) * bytes);
        for (int64_t j = 0; j < s->n; j += SN_GEMM_NR) {
            const int64_t n = sn_min_i64(SN_GEMM_NR, s->n - j);
            float *to = packed + j * s->k + i * panel_stride(n);
            for (int64_t l = 0; l < n; l += SN_VL)
                sn_vec_store(to + l, get(s->from->data, at + j + l, sn_min_i64(SN_VL, n - l), m));
        }
    }
}

static bool is_run(const int64_t *row, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (row[i] != row[0] + i)
            return false;
    return true;
}

/* n <= VL columns, each a run of k <= VL elements from `at` on. */
INLINE void turn_square(const sn_stored_source *s, int64_t at, int64_t k, int64_t n, float *to,
                        int64_t stride, const mode m) {
    sn_vec square[SN_VL] = {0};
    for (int64_t j = 0; j < n; j++)
        square[j] = get(s->from->data, at + j * s->col, k, m);
    sn_vec_turn(square);
    for (int64_t i = 0; i < k; i++)
        sn_vec_store(to + i * stride, square[i]);
}

/* Rows from `row` on, element by element. */
INLINE void gather(const sn_stored_source *s, const int64_t *row, int64_t at, int64_t k, int64_t n,
                   float *to, int64_t stride, const mode m) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < SN_VL; j++)
            to[i * stride + j] =
                j < n ? get(s->from->data, at + row[i] + j * s->col, 1, m)[0] : 0.0f;
}

/* n <= NR columns from `first` on. */
INLINE void pack_panel(const sn_stored_source *s, int64_t first, int64_t n, float *packed,
                       const mode m) {
    const int64_t stride = panel_stride(n);
    for (int64_t k = 0; k < s->k; k += SN_VL) {
        const int64_t high = sn_min_i64(SN_VL, s->k - k);
        const bool run = is_run(s->row + k, high);
        for (int64_t j = 0; j < n; j += SN_VL) {
            const int64_t wide = sn_min_i64(SN_VL, n - j), at = s->at + (first + j) * s->col;
            float *to = packed + k * stride + j;
            if (!run)
                gather(s, s->row + k, at, high, wide, to, stride, m);
            else if (high == SN_VL && wide == SN_VL) /* stays in registers */
                turn_square(s, at + s->row[k], SN_VL, SN_VL, to, stride, m);
            else
                turn_square(s, at + s->row[k], high, wide, to, stride, m);
        }
    }
}

INLINE void pack(const sn_stored_source *s, float *packed, const mode m) {
    if (s->col == 1 && s->n > 0) {
        pack_rows(s, packed, m);
        return;
    }
    for (int64_t j = 0; j < s->n; j += SN_GEMM_NR)
        pack_panel(s, j, sn_min_i64(SN_GEMM_NR, s->n - j), packed + j * s->k, m);
}

/* clang-format off */
#define PACK(m) static void pack_##m(const sn_stored_source *s, float *packed) { pack(s, packed, m); }
PACK(PLAIN) PACK(FROM_F16) PACK(FROM_BF16) PACK(AS_F16) PACK(AS_BF16)
    /* clang-format on */

    void sn_stored_pack(const sn_stored_source *s, float *packed) {
    static void (*const packs[N_MODES])(const sn_stored_source *s, float *packed) = {
        [PLAIN] = pack_PLAIN,   [FROM_F16] = pack_FROM_F16, [FROM_BF16] = pack_FROM_BF16,
        [AS_F16] = pack_AS_F16, [AS_BF16] = pack_AS_BF16,
    };
    packs[mode_of(s->from)](s, packed);
}

/* --- what sums become ------------------------------------------------------------------------- */
void sn_finish_open(const sn_finish *f, int64_t column, int64_t n, sn_finish_lines *l) {
    l->n = n;
    l->scaled = f->scale.data != NULL;
    l->biased = f->bias.data != NULL;
    if (l->scaled)
        sn_stored_read(&f->scale, column, n, l->scale);
    if (l->biased)
        sn_stored_read(&f->bias, column, n, l->bias);
}

void sn_finish_line(const sn_finish *f, const sn_finish_lines *l, float *sums) {
    if (l->scaled)
        for (int64_t j = 0; j < l->n; j++)
            sums[j] *= l->scale[j];
    if (l->biased)
        for (int64_t j = 0; j < l->n; j++)
            sums[j] += l->bias[j];
    sn_act_f32(f->act, sums, l->n);
}

void sn_finish_row(const sn_finish *f, const sn_finish_lines *l, float *sums, int64_t at) {
    sn_finish_line(f, l, sums);
    sn_stored_write(&f->out, at, l->n, sums, f->add);
}
