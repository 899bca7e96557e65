/* gemm.c: tiles of a matrix product in registers. A tile reads one value of A per row and step,
 * spread over a vector, and up to SN_GEMM_NV vectors of B; its sums stay in registers for the whole
 * piece of K. A tile of one vector over an unpacked B, or of words, is taller. See gemm.h for the
 * order of additions, which is the contract. */
#include "kernels/cpu/gemm.h"

#include <stddef.h>
#include <string.h>

/* Vector j of nv, the last of which has `tail` lanes. */
static inline __attribute__((always_inline)) sn_vec get(const float *p, int j, int nv,
                                                        int64_t tail) {
    return j < nv - 1 ? sn_vec_load(p + j * SN_GEMM_VL)
                      : sn_vec_load_part(p + j * SN_GEMM_VL, tail);
}

/* One tile: n columns of C, which fill nv vectors but for the last one's tail. */
typedef struct {
    int64_t k, n, b_step;
    int64_t ahead; /* floats from a row of B to what tile_fetches fetches beside it */
    const float *a, *b;
    const int64_t *a_row, *a_col, *c_row;
    float *c;
    const float *scale, *bias;
    bool add, relu, relu6;
} tile;

/* What a tile's sums become: t->n columns of row i. */
static inline __attribute__((always_inline)) void store_row(const tile *t, int i, sn_vec v[],
                                                            const int nv) {
    const int64_t tail = t->n - (nv - 1) * SN_GEMM_VL;
    float *c = t->c + t->c_row[i];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
        if (t->add)
            v[j] = get(c, j, nv, tail) + v[j];
        if (t->scale)
            v[j] *= get(t->scale, j, nv, tail);
        if (t->bias)
            v[j] += get(t->bias, j, nv, tail);
        if (t->relu)
            v[j] = sn_vec_relu(v[j]);
        if (t->relu6)
            v[j] = sn_vec_relu6(v[j]);
        if (j < nv - 1)
            sn_vec_store(c + j * SN_GEMM_VL, v[j]);
        else
            sn_vec_store_part(c + j * SN_GEMM_VL, v[j], tail);
    }
}

/* One term of every sum; of the last vector of B `lanes` lanes are read. */
static inline __attribute__((always_inline)) void add_term(const float *const row[], int64_t column,
                                                           const float *b, int64_t lanes,
                                                           sn_vec sum[][SN_GEMM_NV], const int rows,
                                                           const int nv) {
    sn_vec bv[SN_GEMM_NV];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++)
        bv[j] = j < nv - 1 || lanes == SN_GEMM_VL ? sn_vec_load(b + j * SN_GEMM_VL)
                                                  : sn_vec_load_part(b + j * SN_GEMM_VL, lanes);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        const sn_vec av = sn_vec_spread(row[i][column]);
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++)
            sum[i][j] = sn_vec_multiply_add(av, bv[j], sum[i][j]);
    }
}

/* rows, nv and fetches are constants wherever this is called: the loops over them unroll and the
 * sums become registers. Vectors of B may end in the row behind, whose lanes nobody stores; the
 * last row has none behind it. */
static inline __attribute__((always_inline)) void run_tile(const tile *t, const int rows,
                                                           const int nv, const bool fetches) {
    sn_vec sum[SN_GEMM_MR][SN_GEMM_NV] = {0};
    const float *row[SN_GEMM_MR], *b = t->b;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        row[i] = t->a + t->a_row[i];
    const int64_t tail = t->n - (nv - 1) * SN_GEMM_VL;
    for (int64_t k = 0; k < t->k - 1; k++, b += t->b_step) {
        if (fetches)
            __builtin_prefetch(b + t->ahead, 0, 2);
        add_term(row, t->a_col[k], b, SN_GEMM_VL, sum, rows, nv);
    }
    if (t->k > 0)
        add_term(row, t->a_col[t->k - 1], b, tail, sum, rows, nv);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        store_row(t, i, sum[i], nv);
}

#if defined(__AVX512F__)
/* The same for a vector and at most half of another of a packed B: the half costs half. */
static inline __attribute__((always_inline)) void run_half(const tile *t, const int rows) {
    __m256 half[SN_GEMM_MR];
    sn_vec sum[SN_GEMM_MR] = {0};
    const float *row[SN_GEMM_MR], *b = t->b;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        row[i] = t->a + t->a_row[i];
        half[i] = _mm256_setzero_ps();
    }
    for (int64_t k = 0; k < t->k; k++, b += 2 * SN_GEMM_VL) {
        const sn_vec b0 = sn_vec_load(b);
        const __m256 b1 = _mm256_loadu_ps(b + SN_GEMM_VL);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const sn_vec av = sn_vec_spread(row[i][t->a_col[k]]);
            sum[i] = sn_vec_multiply_add(av, b0, sum[i]);
            half[i] = _mm256_fmadd_ps(_mm512_castps512_ps256((__m512)av), b1, half[i]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        sn_vec v[2] = {sum[i], (sn_vec)_mm512_zextps256_ps512(half[i])};
        store_row(t, i, v, 2);
    }
}
#endif

/* `terms` terms, in their order, of sums that are one vector each: B's vectors stay in registers
 * while the rows go by, and what A and B have next is fetched meanwhile: there are more rows than a
 * processor foresees, and of B it foresees too little. */
static inline __attribute__((always_inline)) void add_terms(const tile *t, int64_t k, sn_vec sum[],
                                                            const int rows, const int terms) {
    enum { AHEAD = 32, ROWS_AHEAD = 64 }; /* floats of a row of A, rows of B */
    sn_vec b[8];
    int64_t column[8];
#pragma GCC unroll 8
    for (int i = 0; i < terms; i++) {
        b[i] = sn_vec_load_part(t->b + (k + i) * t->b_step, t->n);
        __builtin_prefetch(t->b + (k + i + ROWS_AHEAD) * t->b_step);
        column[i] = t->a_col[k + i];
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        const float *row = t->a + t->a_row[r];
        __builtin_prefetch(row + column[0] + AHEAD);
#pragma GCC unroll 8
        for (int i = 0; i < terms; i++)
            sum[r] = sn_vec_multiply_add(sn_vec_spread(row[column[i]]), b[i], sum[r]);
    }
}

static inline __attribute__((always_inline)) void run_tall(const tile *t, const int rows) {
    sn_vec sum[16] = {0};
    int64_t k = 0;
    for (; k + 8 <= t->k; k += 8)
        add_terms(t, k, sum, rows, 8);
    for (; k < t->k; k++)
        add_terms(t, k, sum, rows, 1);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        store_row(t, r, &sum[r], 1);
}

#if defined(__AVX512F__)
#define WITH_PAIRS __attribute__((target("avx512bf16")))

/* Words of two bf16 each. */
static inline __attribute__((always_inline)) WITH_PAIRS void
run_pairs(const tile *t, const int rows, const int nv) {
    sn_vec sum[SN_GEMM_MR][SN_GEMM_NV] = {0};
    const float *row[SN_GEMM_MR], *b = t->b;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        row[i] = t->a + t->a_row[i];
    for (int64_t k = 0; k < t->k; k++, b += t->b_step) {
        __m512i bv[SN_GEMM_NV];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++)
            bv[j] = _mm512_loadu_si512(b + j * SN_GEMM_VL);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            int word;
            memcpy(&word, row[i] + t->a_col[k], sizeof word);
            const __m512i av = _mm512_set1_epi32(word);
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++)
                sum[i][j] =
                    (sn_vec)_mm512_dpbf16_ps((__m512)sum[i][j], (__m512bh)av, (__m512bh)bv[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        store_row(t, i, sum[i], nv);
}

/* As add_terms, for words; a packed B is near. */
static inline __attribute__((always_inline)) WITH_PAIRS void
add_words(const tile *t, int64_t k, sn_vec sum[], const int rows, const int words) {
    enum { AHEAD = 32 }; /* words of a row of A */
    __m512i b[8];
    int64_t column[8];
#pragma GCC unroll 8
    for (int i = 0; i < words; i++) {
        b[i] = _mm512_loadu_si512(t->b + (k + i) * t->b_step);
        column[i] = t->a_col[k + i];
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        const float *row = t->a + t->a_row[r];
        __builtin_prefetch(row + column[0] + AHEAD);
#pragma GCC unroll 8
        for (int i = 0; i < words; i++) {
            int word;
            memcpy(&word, row + column[i], sizeof word);
            sum[r] = (sn_vec)_mm512_dpbf16_ps((__m512)sum[r], (__m512bh)_mm512_set1_epi32(word),
                                              (__m512bh)b[i]);
        }
    }
}

static inline __attribute__((always_inline)) WITH_PAIRS void run_tall_pairs(const tile *t,
                                                                            const int rows) {
    sn_vec sum[16] = {0};
    int64_t k = 0;
    for (; k + 8 <= t->k; k += 8)
        add_words(t, k, sum, rows, 8);
    for (; k < t->k; k++)
        add_words(t, k, sum, rows, 1);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        store_row(t, r, &sum[r], 1);
}
#endif

typedef void (*tile_kernel)(const tile *t);

/* clang-format off */
#define TALL(rows) static void tall_##rows(const tile *t) { run_tall(t, rows); }
#define HALF(rows) static void half_##rows(const tile *t) { run_half(t, rows); }
#define TILE(rows, nv) \
    static void tile_##rows##x##nv(const tile *t) { run_tile(t, rows, nv, false); }
#define TILES(nv) TILE(1, nv) TILE(2, nv) TILE(4, nv) TILE(6, nv)
#define TILE_ROW(nv) {tile_1x##nv, tile_2x##nv, tile_4x##nv, tile_6x##nv}
TALL(1) TALL(4) TALL(8) TALL(16)
TILES(1) TILES(2)
#if defined(__AVX512F__)
TILES(3) TILES(4)
HALF(1) HALF(2) HALF(4) HALF(6)
#define PAIR(rows, nv) \
    static WITH_PAIRS void pair_##rows##x##nv(const tile *t) { run_pairs(t, rows, nv); }
#define PAIRS(nv) PAIR(1, nv) PAIR(2, nv) PAIR(4, nv) PAIR(6, nv)
#define PAIR_ROW(nv) {pair_1x##nv, pair_2x##nv, pair_4x##nv, pair_6x##nv}
PAIRS(2) PAIRS(3) PAIRS(4)
#define TALL_PAIR(rows) \
    static WITH_PAIRS void tall_pair_##rows(const tile *t) { run_tall_pairs(t, rows); }
TALL_PAIR(1) TALL_PAIR(4) TALL_PAIR(8) TALL_PAIR(16)

/* Of two vectors and more. */
static const tile_kernel pair_tiles[SN_GEMM_NV - 1][4] = {PAIR_ROW(2), PAIR_ROW(3), PAIR_ROW(4)};
#endif

static const tile_kernel tiles[SN_GEMM_NV][4] = {
    TILE_ROW(1),
    TILE_ROW(2),
#if defined(__AVX512F__)
    TILE_ROW(3),
    TILE_ROW(4),
#endif
};
/* clang-format on */

/* An unpacked B is read from far away, a panel in the time of a few tiles, and its rows lie so far
 * apart that nobody but us knows which comes next: the first tiles of a panel fetch the next one,
 * a vector of each of its rows per tile. */
static void tile_fetches(const tile *t) {
    run_tile(t, SN_GEMM_MR, SN_GEMM_NV, true);
}

/* What tile i of the panel at column n fetches: vectors of the panel beside it, then of the first
 * panel in the rows that follow. 0: nothing. */
static int64_t ahead_of(const sn_gemm *g, int64_t n, int64_t i) {
    const int64_t beside = g->n - n - SN_GEMM_NR, at = i * SN_GEMM_VL;
    if (!g->b_step || beside < 0)
        return 0;
    if (at < beside && at < SN_GEMM_NR)
        return SN_GEMM_NR + at;
    const int64_t behind = at - sn_gemm_packed(1, beside);
    const bool reads = g->b_goes_on && beside < SN_GEMM_NR && behind < SN_GEMM_NR;
    return reads ? g->k * g->b_step - n + behind : 0;
}

/* Kernels of a panel of so many columns, from the lowest to the highest, and their heights. */
typedef struct {
    int rows[4];
    const tile_kernel *run;
} tile_set;

static tile_set tiles_for(const sn_gemm *g, int64_t width) {
    static const tile_kernel tall[4] = {tall_1, tall_4, tall_8, tall_16};
    const int64_t nv = (width + SN_GEMM_VL - 1) / SN_GEMM_VL;
#if defined(__AVX512F__)
    static const tile_kernel halves[4] = {half_1, half_2, half_4, half_6};
    static const tile_kernel tall_pairs[4] = {tall_pair_1, tall_pair_4, tall_pair_8, tall_pair_16};
    if (g->pairs && nv == 1)
        return (tile_set){{1, 4, 8, 16}, tall_pairs};
    if (g->pairs)
        return (tile_set){{1, 2, 4, SN_GEMM_MR}, pair_tiles[nv - 2]};
#endif
    if (nv == 1 && g->b_step)
        return (tile_set){{1, 4, 8, 16}, tall};
#if defined(__AVX512F__)
    if (nv == 2 && width <= SN_GEMM_VL + SN_GEMM_VL / 2 && !g->b_step)
        return (tile_set){{1, 2, 4, SN_GEMM_MR}, halves};
#endif
    return (tile_set){{1, 2, 4, SN_GEMM_MR}, tiles[nv - 1]};
}

/* All rows of the panel of columns [n, n + width). */
static void run_panel(const sn_gemm *g, int64_t n, int64_t width) {
    const tile_set set = tiles_for(g, width);
    int size = 3;
    tile t = {
        .k = g->k,
        .n = width,
        .b_step = g->b_step ? g->b_step : sn_gemm_packed(1, width),
        .a = g->a,
        .b = g->b_step ? g->b + n : g->b + n * g->k,
        .a_row = g->a_row,
        .a_col = g->a_col,
        .c_row = g->c_row,
        .c = g->c + n,
        .scale = g->scale ? g->scale + n : NULL,
        .bias = g->bias ? g->bias + n : NULL,
        .add = g->add,
        .relu = g->relu,
        .relu6 = g->relu6,
    };
    for (int64_t m = 0; m < g->m; m += set.rows[size]) {
        while (set.rows[size] > g->m - m)
            size--;
        t.a_row = g->a_row + m;
        t.c_row = g->c_row + m;
        t.ahead = ahead_of(g, n, m / SN_GEMM_MR);
        (t.ahead && size == 3 ? tile_fetches : set.run[size])(&t);
    }
}

void SN_CPU(gemm)(const sn_gemm *g) {
    for (int64_t n = 0; n < g->n; n += SN_GEMM_NR)
        run_panel(g, n, g->n - n < SN_GEMM_NR ? g->n - n : SN_GEMM_NR);
}

/* n <= NR floats of a row, with zeros up to whole vectors. */
static inline void copy_part(const float *row, int64_t n, float *to) {
    for (; n >= SN_GEMM_VL; n -= SN_GEMM_VL, row += SN_GEMM_VL, to += SN_GEMM_VL)
        sn_vec_store(to, sn_vec_load(row));
    if (n > 0)
        sn_vec_store(to, sn_vec_load_part(row, n));
}

/* Columns lie side by side: row by row, for a row is one run of memory, and rows may be a page
 * apart. Nobody but us knows which comes next. */
static void pack_rows(const sn_gemm_source *s, float *packed) {
    enum { LINE = 16, LINES_AHEAD = 32 };
    const int64_t ahead = 1 + LINES_AHEAD * LINE / s->n;
    for (int64_t i = 0; i < s->k; i++) {
        const float *row = s->b + s->row[i];
        const float *later = s->b + s->row[i + ahead < s->k ? i + ahead : s->k - 1];
        for (int64_t j = 0; j < s->n; j += LINE)
            __builtin_prefetch(later + j);
        for (int64_t j = 0; j < s->n; j += SN_GEMM_NR) {
            const int64_t n = s->n - j < SN_GEMM_NR ? s->n - j : SN_GEMM_NR;
            const int64_t stride = (n + SN_GEMM_VL - 1) / SN_GEMM_VL * SN_GEMM_VL;
            copy_part(row + j, n, packed + j * s->k + i * stride);
        }
    }
}

static bool is_run(const int64_t *row, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (row[i] != row[0] + i)
            return false;
    return true;
}

/* Columns of B are contiguous along these k <= VL rows: n <= VL columns are read as rows and
 * turned. */
static inline __attribute__((always_inline)) void
turn_part(const float *b, int64_t col, int64_t k, int64_t n, float *packed, int64_t stride) {
    sn_vec square[SN_GEMM_VL] = {0};
#pragma GCC unroll 16
    for (int64_t j = 0; j < n; j++)
        square[j] = k == SN_GEMM_VL ? sn_vec_load(b + j * col) : sn_vec_load_part(b + j * col, k);
    sn_vec_turn(square);
#pragma GCC unroll 16
    for (int64_t i = 0; i < k; i++)
        sn_vec_store(packed + i * stride, square[i]);
}

/* A whole one stays in registers. */
static void turn_square(const float *b, int64_t col, int64_t k, int64_t n, float *packed,
                        int64_t stride) {
    if (k == SN_GEMM_VL && n == SN_GEMM_VL)
        turn_part(b, col, SN_GEMM_VL, SN_GEMM_VL, packed, stride);
    else
        turn_part(b, col, k, n, packed, stride);
}

/* Rows [first, first + k) of vector j of a panel, element by element. */
static void gather(const sn_gemm_source *s, const float *b, int64_t k, int64_t n, float *packed,
                   int64_t stride, const int64_t *row) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < SN_GEMM_VL; j++)
            packed[i * stride + j] = j < n ? b[row[i] + j * s->col] : 0.0f;
}

/* One panel of n columns from column `first`. */
static void pack_panel(const sn_gemm_source *s, int64_t first, int64_t n, float *packed) {
    const int64_t nv = (n + SN_GEMM_VL - 1) / SN_GEMM_VL, stride = nv * SN_GEMM_VL;
    const float *b = s->b + first * s->col;
    for (int64_t k = 0; k < s->k; k += SN_GEMM_VL) {
        const int64_t high = s->k - k < SN_GEMM_VL ? s->k - k : SN_GEMM_VL;
        const bool run = is_run(s->row + k, high);
        for (int64_t j = 0; j < n; j += SN_GEMM_VL) {
            const int64_t wide = n - j < SN_GEMM_VL ? n - j : SN_GEMM_VL;
            float *to = packed + k * stride + j;
            if (run)
                turn_square(b + s->row[k] + j * s->col, s->col, high, wide, to, stride);
            else
                gather(s, b + j * s->col, high, wide, to, stride, s->row + k);
        }
    }
}

void SN_CPU(gemm_pack)(const sn_gemm_source *s, float *packed) {
    if (s->col == 1 && s->n > 0) {
        pack_rows(s, packed);
        return;
    }
    for (int64_t j = 0; j < s->n; j += SN_GEMM_NR)
        pack_panel(s, j, s->n - j < SN_GEMM_NR ? s->n - j : SN_GEMM_NR, packed + j * s->k);
}
