/* gemm.c: tiles of a matrix product in registers. A tile reads one value of A per row and step,
 * spread over a vector, and up to SN_GEMM_NV vectors of B; its sums stay in registers for the whole
 * piece of K. See gemm.h for the order of additions, which is the contract. */
#include "kernels/cpu/gemm.h"

#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(SN_GEMM_VL * sizeof(float))));
/* The same in memory, at any address of a float. */
typedef float vec_in_memory
    __attribute__((vector_size(SN_GEMM_VL * sizeof(float)), aligned(4), may_alias));

static inline vec load(const float *p) {
    return *(const vec_in_memory *)p;
}

static inline void store(float *p, vec v) {
    *(vec_in_memory *)p = v;
}

static inline vec spread(float x) {
    return x - (vec){0};
}

static inline vec multiply_add(vec a, vec b, vec c) {
#if defined(__AVX512F__)
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* The first n lanes at p = or += v. */
static inline void store_part(float *p, vec v, int64_t n, bool add) {
#if defined(__AVX512F__)
    const __mmask16 mask = (__mmask16)((1u << n) - 1u);
    const __m512 old = add ? _mm512_maskz_loadu_ps(mask, p) : _mm512_setzero_ps();
    _mm512_mask_storeu_ps(p, mask, add ? _mm512_add_ps(old, (__m512)v) : (__m512)v);
#else
    for (int64_t i = 0; i < n; i++)
        p[i] = add ? p[i] + v[i] : v[i];
#endif
}

/* One tile: n columns of C, which fill nv vectors but for the last one's tail. */
typedef struct {
    int64_t k, n, b_step;
    const float *a, *b;
    const int64_t *a_row, *a_col, *c_row;
    float *c;
    bool add;
} tile;

/* rows and nv are constants wherever this is called: the loops over them unroll and the sums become
 * registers. */
static inline __attribute__((always_inline)) void run_tile(const tile *t, const int rows,
                                                           const int nv) {
    vec sum[SN_GEMM_MR][SN_GEMM_NV] = {0};
    const float *row[SN_GEMM_MR], *b = t->b;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        row[i] = t->a + t->a_row[i];
    for (int64_t k = 0; k < t->k; k++, b += t->b_step) {
        const int64_t column = t->a_col[k];
        vec bv[SN_GEMM_NV];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++)
            bv[j] = load(b + j * SN_GEMM_VL);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const vec av = spread(row[i][column]);
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++)
                sum[i][j] = multiply_add(av, bv[j], sum[i][j]);
        }
    }
    const int64_t tail = t->n - (nv - 1) * SN_GEMM_VL;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        float *c = t->c + t->c_row[i];
#pragma GCC unroll 4
        for (int j = 0; j < nv - 1; j++)
            store(c + j * SN_GEMM_VL, t->add ? load(c + j * SN_GEMM_VL) + sum[i][j] : sum[i][j]);
        store_part(c + (nv - 1) * SN_GEMM_VL, sum[i][nv - 1], tail, t->add);
    }
}

#define TILE(rows, nv)                                                                             \
    static void tile_##rows##x##nv(const tile *t) {                                                \
        run_tile(t, rows, nv);                                                                     \
    }
#define TILES(nv) TILE(1, nv) TILE(2, nv) TILE(4, nv) TILE(6, nv)
#define TILE_ROW(nv)                                                                               \
    { tile_1x##nv, tile_2x##nv, tile_4x##nv, tile_6x##nv }
TILES(1)
TILES(2)
#if defined(__AVX512F__)
TILES(3)
TILES(4)
#endif

static void (*const tiles[SN_GEMM_NV][4])(const tile *t) = {
    TILE_ROW(1),
    TILE_ROW(2),
#if defined(__AVX512F__)
    TILE_ROW(3),
    TILE_ROW(4),
#endif
};

/* All rows of the panel of columns [n, n + width). */
static void run_panel(const sn_gemm *g, int64_t n, int64_t width) {
    static const int heights[4] = {1, 2, 4, SN_GEMM_MR};
    const int64_t nv = (width + SN_GEMM_VL - 1) / SN_GEMM_VL;
    int size = 3;
    for (int64_t m = 0; m < g->m; m += heights[size]) {
        while (heights[size] > g->m - m)
            size--;
        const tile t = {
            .k = g->k,
            .n = width,
            .b_step = g->b_step ? g->b_step : nv * SN_GEMM_VL,
            .a = g->a,
            .b = g->b_step ? g->b + n : g->b + n * g->k,
            .a_row = g->a_row + m,
            .a_col = g->a_col,
            .c_row = g->c_row + m,
            .c = g->c + n,
            .add = g->add,
        };
        tiles[nv - 1][size](&t);
    }
}

void SN_CPU(gemm)(const sn_gemm *g) {
    for (int64_t n = 0; n < g->n; n += SN_GEMM_NR)
        run_panel(g, n, g->n - n < SN_GEMM_NR ? g->n - n : SN_GEMM_NR);
}

/* One panel of n columns from column `first`. Columns that lie contiguous in memory are copied;
 * others are walked along k in short pieces, so that neither side leaves the cache. */
static void pack_panel(const sn_gemm_source *s, int64_t first, int64_t n, float *packed) {
    const int64_t stride = (n + SN_GEMM_VL - 1) / SN_GEMM_VL * SN_GEMM_VL;
    const float *b = s->b + first * s->col;
    for (int64_t i = 0; i < s->k && n < stride; i++)
        memset(packed + i * stride + n, 0, (size_t)(stride - n) * sizeof(float));
    if (s->col == 1) {
        for (int64_t i = 0; i < s->k; i++)
            memcpy(packed + i * stride, b + s->row[i], (size_t)n * sizeof(float));
        return;
    }
    for (int64_t k = 0; k < s->k; k += 16) {
        const int64_t last = k + 16 < s->k ? k + 16 : s->k;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = k; i < last; i++)
                packed[i * stride + j] = b[s->row[i] + j * s->col];
    }
}

void SN_CPU(gemm_pack)(const sn_gemm_source *s, float *packed) {
    for (int64_t j = 0; j < s->n; j += SN_GEMM_NR)
        pack_panel(s, j, s->n - j < SN_GEMM_NR ? s->n - j : SN_GEMM_NR, packed + j * s->k);
}
