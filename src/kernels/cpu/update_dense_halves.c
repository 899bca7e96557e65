/* update_dense_halves.c: what matmul_adam does otherwise where x and dy are halves and the weights
 * f32. Sums are those of matmul on such operands (halves.h, pairs.h): x goes by blocks of ROWS
 * columns, widened or as words, dy is read as it lies; the weights are rounded to the half as they
 * are turned for dx, whose sums are rounded once.
 *
 * Shared is dy as dx reads it: [K][steps over N]. */
#include "kernels/cpu/update_dense.h"

#include "kernels/cpu/half_vectors.h"
#include "kernels/cpu/pairs.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { NARROW = SN_DENSE_NARROW, ROWS = SN_DENSE_ROWS };

static sn_stored x_of(const sn_dense_pass *l) {
    return sn_stored_of(&l->c->in[SN_DENSE_X]);
}

static sn_stored dy_of(const sn_dense_pass *l) {
    return sn_stored_of(&l->c->in[SN_DENSE_DY]);
}

static sn_stored w_of(const sn_dense_pass *l) {
    return sn_stored_factor(&l->c->in[SN_DENSE_W], &l->c->in[SN_DENSE_X]);
}

static int64_t word_of(const sn_dense_cut *u) {
    return u->pairs ? 2 : 1;
}

/* --- scratch ---------------------------------------------------------------------------------- */
/* Rows of dx whose sums stay in the cache. */
static int64_t back_rows(const sn_dense_cut *u) {
    enum { FLOATS = 8192, LEAST = 2 * SN_GEMM_MR, MOST = SN_PRODUCT_ROWS };
    const int64_t fit = FLOATS / u->rows / SN_GEMM_MR * SN_GEMM_MR;
    return sn_min_i64(fit < LEAST ? LEAST : sn_min_i64(fit, MOST), u->K);
}

void sn_dense_halves_cut(sn_dense_cut *u) {
    if (u->dx_pieces == 0 || u->n_spans == 0)
        return;
    u->shared_floats = u->K * u->back_steps;
    if (u->narrow)
        return;
    u->turned_floats = sn_lines(sn_gemm_packed(u->back_steps, u->rows));
    u->back_floats = sn_lines(back_rows(u) * u->rows);
}

void sn_dense_halves_share(const sn_dense_pass *l) {
    const sn_dense_cut *u = &l->u;
    const sn_stored dy = dy_of(l);
    for (int64_t k = 0; k < u->K && u->shared_floats > 0; k++)
        (u->pairs ? sn_pairs_run : sn_stored_read)(&dy, k * u->N, u->N,
                                                   l->shared + k * u->back_steps);
}

/* --- the gradient ----------------------------------------------------------------------------- */
/* Up to ROWS rows of a gradient: its sums over some terms. */
typedef struct {
    const void *x, *dy;
    int64_t x_at, dy_at; /* of the first term */
    float *block, *g;    /* x as [steps][ROWS], zeros behind the last row */
    int64_t M, N, terms, rows;
} part;

/* Elements from one block to what is fetched beside it: update_dense.c fetches as many bytes. */
INLINE int64_t ahead_of(const part *p) {
    enum { TERMS_AHEAD = 64 };
    return 2 * ROWS * (1 + TERMS_AHEAD / (p->terms + 1));
}

INLINE void fetch(const part *p, int64_t k) {
    __builtin_prefetch((const uint16_t *)p->x + p->x_at + k * p->M + ahead_of(p));
}

INLINE void widen_block(const part *p, const sn_half_mode m) {
    for (int64_t k = 0; k < p->terms; k++) {
        fetch(p, k);
        for (int64_t i = 0; i < ROWS; i += SN_VL) {
            const int64_t left = p->rows - i, n = left < 0 ? 0 : sn_min_i64(SN_VL, left);
            sn_vec_store(p->block + k * ROWS + i, sn_half_get(p->x, p->x_at + k * p->M + i, n, m));
        }
    }
}

INLINE void store_sums(const part *p, int64_t j, int64_t lanes, const sn_vec sum[ROWS]) {
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        if (r < p->rows)
            sn_vec_store_part(p->g + r * p->N + j, sum[r], lanes);
}

INLINE void sum_widened(const part *p, const sn_half_mode m) {
    widen_block(p, m);
    for (int64_t j = 0; j < p->N; j += SN_VL) {
        const int64_t lanes = sn_min_i64(SN_VL, p->N - j);
        sn_vec sum[ROWS] = {0};
        for (int64_t k = 0; k < p->terms; k++) {
            const sn_vec d = sn_half_get(p->dy, p->dy_at + k * p->N + j, lanes, m);
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++)
                sum[r] = sn_vec_multiply_add(sn_vec_spread(p->block[k * ROWS + r]), d, sum[r]);
        }
        store_sums(p, j, lanes, sum);
    }
}

static void sum_f16(const part *p) {
    sum_widened(p, SN_FROM_F16);
}

static void sum_bf16(const part *p) {
    sum_widened(p, SN_FROM_BF16);
}

#if defined(__AVX512F__)
INLINE SN_WITH_PAIRS sn_vec add_pair(const float *a, sn_vec b, sn_vec sum) {
    int word;
    memcpy(&word, a, sizeof word);
    return (sn_vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(word), (__m512bh)b);
}

INLINE void pair_block(const part *p) {
    for (int64_t k = 0; k < p->terms; k += 2) {
        fetch(p, k);
        fetch(p, k + 1);
        _mm512_storeu_si512(p->block + k / 2 * ROWS, sn_half_pair(p->x, p->x_at + k * p->M, p->M,
                                                                  k + 1 == p->terms, p->rows));
    }
}

static SN_WITH_PAIRS void sum_pairs(const part *p) {
    pair_block(p);
    for (int64_t j = 0; j < p->N; j += SN_VL) {
        const int64_t lanes = sn_min_i64(SN_VL, p->N - j);
        sn_vec sum[ROWS] = {0};
        for (int64_t k = 0; k < p->terms; k += 2) {
            const sn_vec d = (sn_vec)sn_half_pair(p->dy, p->dy_at + k * p->N + j, p->N,
                                                  k + 1 == p->terms, lanes);
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++)
                sum[r] = add_pair(p->block + k / 2 * ROWS + r, d, sum[r]);
        }
        store_sums(p, j, lanes, sum);
    }
}
#else
#define sum_pairs sum_bf16 /* sn_pairs_take: never */
#endif

void sn_dense_halves_piece(const sn_dense_pass *l, sn_dense_span s, int64_t k, int64_t end,
                           float *block, float *g) {
    const sn_dense_cut *u = &l->u;
    const sn_stored x = x_of(l), dy = dy_of(l);
    const int64_t first = k * word_of(u), last = sn_min_i64(end * word_of(u), u->K);
    void (*const sum)(const part *p) = u->pairs               ? sum_pairs
                                       : x.dtype == SNUG_BF16 ? sum_bf16
                                                              : sum_f16;
    for (int64_t i = 0; i < s.n; i += ROWS) {
        const part p = {
            .x = x.data,
            .dy = dy.data,
            .x_at = first * u->M + s.first + i,
            .dy_at = first * u->N,
            .block = block,
            .g = g + i * u->N,
            .M = u->M,
            .N = u->N,
            .terms = last - first,
            .rows = sn_min_i64(ROWS, s.n - i),
        };
        sum(&p);
    }
}

/* --- dx --------------------------------------------------------------------------------------- */
/* A piece of its sums: steps from `first` on. */
typedef struct {
    int64_t first, steps;
} back_piece;

static back_piece piece_of(const sn_dense_cut *u, int64_t i) {
    const int64_t depth = sn_dense_depth(u->back_steps, u->dx_pieces);
    return (back_piece){i * depth, sn_min_i64(depth, u->back_steps - i * depth)};
}

/* The span's weights: all pieces, one behind another. */
static void turn_weights(const sn_dense_pass *l, sn_dense_span s, float *turned) {
    const sn_dense_cut *u = &l->u;
    const sn_stored w = w_of(l);
    int64_t row[2 * SN_PRODUCT_DEPTH];
    for (int64_t j = 0; j < 2 * SN_PRODUCT_DEPTH; j++)
        row[j] = j;
    for (int64_t i = 0; i < u->dx_pieces; i++) {
        const back_piece p = piece_of(u, i);
        const int64_t first = p.first * word_of(u);
        const sn_stored_source source = {
            .from = &w,
            .at = s.first * u->N + first,
            .k = sn_min_i64(p.steps * word_of(u), u->N - first),
            .n = s.n,
            .row = row,
            .col = u->N,
        };
        (u->pairs ? sn_pairs_pack : sn_stored_pack)(&source, turned + sn_gemm_packed(p.first, s.n));
    }
}

/* Rows [m, m + n) of the span's columns, as a matrix of its own. */
static void multiply(const sn_dense_pass *l, sn_dense_span s, int64_t m, int64_t n,
                     const float *turned, float *sums) {
    const sn_dense_cut *u = &l->u;
    int64_t a_row[SN_PRODUCT_ROWS], c_row[SN_PRODUCT_ROWS], a_col[SN_PRODUCT_DEPTH];
    sn_gemm g = {.m = n, .n = s.n, .a = l->shared, .c = sums, .pairs = u->pairs};
    g.a_row = a_row;
    g.a_col = a_col;
    g.c_row = c_row;
    for (int64_t i = 0; i < n; i++) {
        a_row[i] = (m + i) * u->back_steps;
        c_row[i] = i * s.n;
    }
    for (int64_t i = 0; i < u->dx_pieces; i++) {
        const back_piece p = piece_of(u, i);
        for (int64_t j = 0; j < p.steps; j++)
            a_col[j] = p.first + j;
        g.k = p.steps;
        g.b = turned + sn_gemm_packed(p.first, s.n);
        g.add = i > 0;
        SN_CPU(gemm)(&g);
    }
}

void sn_dense_halves_dx(const sn_dense_pass *l, sn_dense_span s, float *own) {
    const sn_dense_cut *u = &l->u;
    const sn_stored dx = sn_stored_of(&l->c->out[SN_DENSE_DX]);
    const int64_t rows = back_rows(u);
    float *turned = own, *sums = own + u->turned_floats;
    turn_weights(l, s, turned);
    for (int64_t m = 0, n; m < u->K; m += n) {
        n = sn_min_i64(rows, u->K - m);
        multiply(l, s, m, n, turned, sums);
        for (int64_t i = 0; i < n; i++)
            sn_stored_write(&dx, (m + i) * u->M + s.first, s.n, sums + i * s.n, false);
    }
}

/* --- dx of narrow weights --------------------------------------------------------------------- */
enum { DX_ROWS = 8 }; /* at once */

/* Columns [s.first, s.first + s.n) of w^T, at most VL of them. */
INLINE void turn_narrow(const sn_dense_pass *l, sn_dense_span s, sn_vec turned[NARROW],
                        const sn_half_mode m) {
    const int64_t N = l->u.N;
    const void *w = l->c->in[SN_DENSE_W].data;
#pragma GCC unroll 4
    for (int64_t j = 0; j < NARROW; j += SN_VL) {
        const int64_t left = N - j, lanes = left < 0 ? 0 : sn_min_i64(SN_VL, left);
#pragma GCC unroll 16
        for (int64_t i = 0; i < SN_VL; i++)
            turned[j + i] = i < s.n ? sn_half_get(w, (s.first + i) * N + j, lanes, m) : (sn_vec){0};
        sn_vec_turn(turned + j);
    }
}

INLINE void store_back(const sn_dense_pass *l, sn_dense_span s, int64_t k, const sn_vec sum[],
                       const int rows, const snug_dtype half) {
    uint16_t *dx = (uint16_t *)l->c->out[SN_DENSE_DX].data + k * l->u.M + s.first;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sn_half_store(half, dx + r * l->u.M, s.n, sum[r]);
}

/* Rows [k, k + rows) of the same columns of dx: each sum is a chain of its own. */
INLINE void widened_rows(const sn_dense_pass *l, sn_dense_span s, int64_t k, const sn_vec *turned,
                         const int rows, const snug_dtype half) {
    const sn_dense_cut *u = &l->u;
    const float *dy = l->shared + k * u->N;
    sn_vec sum[DX_ROWS] = {0};
#pragma GCC unroll 16
    for (int64_t j = 0; j < NARROW; j++) {
        if (j == u->N)
            break;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] = sn_vec_multiply_add(sn_vec_spread(dy[r * u->N + j]), turned[j], sum[r]);
    }
    store_back(l, s, k, sum, rows, half);
}

INLINE void widened_columns(const sn_dense_pass *l, sn_dense_span s, const sn_half_mode m,
                            const snug_dtype half) {
    sn_vec turned[NARROW];
    turn_narrow(l, s, turned, m);
    int64_t k = 0;
    for (; k + DX_ROWS <= l->u.K; k += DX_ROWS)
        widened_rows(l, s, k, turned, DX_ROWS, half);
    for (; k < l->u.K; k++)
        widened_rows(l, s, k, turned, 1, half);
}

static void columns_f16(const sn_dense_pass *l, sn_dense_span s) {
    widened_columns(l, s, SN_AS_F16, SNUG_F16);
}

static void columns_bf16(const sn_dense_pass *l, sn_dense_span s) {
    widened_columns(l, s, SN_AS_BF16, SNUG_BF16);
}

#if defined(__AVX512F__)
INLINE SN_WITH_PAIRS void pair_rows(const sn_dense_pass *l, sn_dense_span s, int64_t k,
                                    const sn_vec *words, const int rows) {
    const int64_t steps = l->u.back_steps;
    const float *dy = l->shared + k * steps;
    sn_vec sum[DX_ROWS] = {0};
#pragma GCC unroll 8
    for (int64_t j = 0; j < NARROW / 2; j++) {
        if (j == steps)
            break;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] = add_pair(dy + r * steps + j, words[j], sum[r]);
    }
    store_back(l, s, k, sum, rows, SNUG_BF16);
}

/* The eights of two rows of words, word by word in turn: their first halves, and the second. */
#define EIGHTS_LOW(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27)
#define EIGHTS_HIGH(a, b)                                                                          \
    __builtin_shufflevector(a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31)

/* Columns of w^T as words: VL rows of w, of eight words each, turned as sn_vec_turn does. */
INLINE SN_WITH_PAIRS void turn_words(const sn_dense_pass *l, sn_dense_span s, sn_vec words[8]) {
    const int64_t N = l->u.N;
    const float *w = (const float *)l->c->in[SN_DENSE_W].data + s.first * N;
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; i++) {
        const sn_vec low = i < s.n ? sn_vec_load_part(w + i * N, N) : (sn_vec){0},
                     high = i + 8 < s.n ? sn_vec_load_part(w + (i + 8) * N, N) : (sn_vec){0};
        words[i] = (sn_vec)sn_half_narrow_two(low, high);
    }
    for (int round = 1; round < 8; round *= 2) {
        sn_vec next[8];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            next[2 * i] = EIGHTS_LOW(words[i], words[i + 4]);
            next[2 * i + 1] = EIGHTS_HIGH(words[i], words[i + 4]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            words[i] = next[i];
    }
}

static SN_WITH_PAIRS void columns_pairs(const sn_dense_pass *l, sn_dense_span s) {
    sn_vec words[NARROW / 2];
    turn_words(l, s, words);
    int64_t k = 0;
    for (; k + DX_ROWS <= l->u.K; k += DX_ROWS)
        pair_rows(l, s, k, words, DX_ROWS);
    for (; k < l->u.K; k++)
        pair_rows(l, s, k, words, 1);
}
#else
#define columns_pairs columns_bf16
#endif

void sn_dense_halves_narrow_dx(const sn_dense_pass *l, sn_dense_span s) {
    void (*const columns)(const sn_dense_pass *l, sn_dense_span s) = l->u.pairs ? columns_pairs
                                                                     : x_of(l).dtype == SNUG_BF16
                                                                         ? columns_bf16
                                                                         : columns_f16;
    for (int64_t i = 0; i < s.n; i += SN_VL)
        columns(l, (sn_dense_span){s.first + i, sn_min_i64(SN_VL, s.n - i)});
}
