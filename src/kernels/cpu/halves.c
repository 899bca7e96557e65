/* halves.c: halves read, packed and written under f32 products (halves.h). */
#include "kernels/cpu/halves.h"

#include "kernels/cpu/act.h"
#include "kernels/cpu/half_vectors.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* --- rows ------------------------------------------------------------------------------------- */
INLINE void read_row(const void *data, int64_t at, int64_t n, float *to, const sn_half_mode m) {
    int64_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL)
        sn_vec_store(to + i, sn_half_get(data, at + i, SN_VL, m));
    if (i < n)
        sn_vec_store_part(to + i, sn_half_get(data, at + i, n - i, m), n - i);
}

void sn_stored_read(const sn_stored *s, int64_t at, int64_t n, float *to) {
    switch (sn_half_mode_of(s)) {
    case SN_FROM_F16:
        return read_row(s->data, at, n, to, SN_FROM_F16);
    case SN_FROM_BF16:
        return read_row(s->data, at, n, to, SN_FROM_BF16);
    case SN_AS_F16:
        return read_row(s->data, at, n, to, SN_AS_F16);
    case SN_AS_BF16:
        return read_row(s->data, at, n, to, SN_AS_BF16);
    default:
        return read_row(s->data, at, n, to, SN_PLAIN);
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

/* Columns lie side by side. What is fetched may be the next piece's. */
INLINE void pack_rows(const sn_stored_source *s, float *packed, const sn_half_mode m) {
    enum { LINE = 16, LINES_AHEAD = 32 };
    const int64_t ahead = 1 + LINES_AHEAD * LINE / s->n;
    const int64_t bytes = (int64_t)snug_dtype_bytes(s->from->dtype);
    const int64_t step = s->k > 1 ? s->row[s->k - 1] - s->row[s->k - 2] : 0;
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t at = s->at + s->row[i], behind = i + ahead - (s->k - 1);
        const int64_t later =
            s->at + (behind < 0 ? s->row[i + ahead] : s->row[s->k - 1] + behind * step);
        for (int64_t j = 0; j < s->n; j += LINE)
            __builtin_prefetch((const char *)s->from->data + (later + j) * bytes);
        for (int64_t j = 0; j < s->n; j += SN_GEMM_NR) {
            const int64_t n = sn_min_i64(SN_GEMM_NR, s->n - j);
            float *to = packed + j * s->k + i * panel_stride(n);
            for (int64_t l = 0; l < n; l += SN_VL)
                sn_vec_store(to + l,
                             sn_half_get(s->from->data, at + j + l, sn_min_i64(SN_VL, n - l), m));
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
                        int64_t stride, const sn_half_mode m) {
    sn_vec square[SN_VL] = {0};
#pragma GCC unroll 16
    for (int64_t j = 0; j < n; j++)
        square[j] = sn_half_get(s->from->data, at + j * s->col, k, m);
    sn_vec_turn(square);
#pragma GCC unroll 16
    for (int64_t i = 0; i < SN_VL; i++)
        if (i < k)
            sn_vec_store(to + i * stride, square[i]);
}

/* Rows from `row` on, element by element. */
INLINE void gather(const sn_stored_source *s, const int64_t *row, int64_t at, int64_t k, int64_t n,
                   float *to, int64_t stride, const sn_half_mode m) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < SN_VL; j++)
            to[i * stride + j] =
                j < n ? sn_half_get(s->from->data, at + row[i] + j * s->col, 1, m)[0] : 0.0f;
}

/* n <= NR columns from `first` on. */
INLINE void pack_panel(const sn_stored_source *s, int64_t first, int64_t n, float *packed,
                       const sn_half_mode m) {
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
            else if (wide == SN_VL) /* the same */
                turn_square(s, at + s->row[k], high, SN_VL, to, stride, m);
            else
                turn_square(s, at + s->row[k], high, wide, to, stride, m);
        }
    }
}

INLINE void pack(const sn_stored_source *s, float *packed, const sn_half_mode m) {
    if (s->col == 1 && s->n > 0) {
        pack_rows(s, packed, m);
        return;
    }
    for (int64_t j = 0; j < s->n; j += SN_GEMM_NR)
        pack_panel(s, j, sn_min_i64(SN_GEMM_NR, s->n - j), packed + j * s->k, m);
}

/* clang-format off */
#define PACK(m)                                                                                    \
    static void pack_##m(const sn_stored_source *s, float *packed) { pack(s, packed, SN_##m); }
PACK(PLAIN) PACK(FROM_F16) PACK(FROM_BF16) PACK(AS_F16) PACK(AS_BF16)

static void (*const packs[SN_N_HALF_MODES])(const sn_stored_source *s, float *packed) = {
    [SN_PLAIN] = pack_PLAIN, [SN_FROM_F16] = pack_FROM_F16, [SN_FROM_BF16] = pack_FROM_BF16,
    [SN_AS_F16] = pack_AS_F16, [SN_AS_BF16] = pack_AS_BF16,
};
/* clang-format on */

void sn_stored_pack(const sn_stored_source *s, float *packed) {
    packs[sn_half_mode_of(s->from)](s, packed);
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

/* Simple activations on the way to where results are stored. */
static void finish_vectors(const sn_finish *f, const sn_finish_lines *l, const float *sums,
                           int64_t at) {
    for (int64_t j = 0; j < l->n; j += SN_VL) {
        const int64_t n = sn_min_i64(SN_VL, l->n - j);
        sn_vec v = sn_vec_load_part(sums + j, n);
        if (l->scaled)
            v *= sn_vec_load_part(l->scale + j, n);
        if (l->biased)
            v += sn_vec_load_part(l->bias + j, n);
        if (f->act == SN_ACT_relu)
            v = sn_vec_relu(v);
        if (f->act == SN_ACT_relu6)
            v = sn_vec_relu6(v);
        sn_half_put(&f->out, at + j, n, v);
    }
}

void sn_finish_rows(const sn_finish *f, const sn_finish_lines *l, float *sums, int64_t rows,
                    int64_t at, int64_t step) {
    const bool simple = f->act == SN_ACT_none || f->act == SN_ACT_relu || f->act == SN_ACT_relu6;
    const bool plain = f->act == SN_ACT_none && !l->scaled && !l->biased;
    for (int64_t i = 0; i < rows; i++, sums += l->n, at += step) {
        if (simple && !plain && !f->add) {
            finish_vectors(f, l, sums, at);
            continue;
        }
        sn_finish_line(f, l, sums);
        sn_stored_write(&f->out, at, l->n, sums, f->add);
    }
}
