/* conv_pool_few.c: see conv_pool_few.h. Work goes in strips: up to STRIP pooled pixels of one row,
 * sixteen channels of y at a time.
 *
 * Forward, Winograd's F(2 x 2, 3 x 3): four by four pixels of x make two by two of y, which is
 * exactly one pooled pixel, by 16 products per channel instead of 36. Along an axis, with d four
 * pixels, g three taps and m = (transformed d) * (transformed g):
 *
 *     d0 - d2, d1 + d2, d2 - d1, d1 - d3      g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2
 *     y = m0 + m1 + m2, m1 - m2 - m3
 *
 * Both axes of d are transformed for a whole strip in plain vector loops. Products run over the
 * points of one column after the other, so that four tiles' sums stay in registers.
 *
 * Backward, one of four positions is alive per pooled element: a vector of dy meets, for each tap,
 * a vector of x picked by the bits of the code: a permutation and one multiply-add where a dense
 * product has four. What a tap may pick, two pixels of two rows, is laid out as one vector before:
 * permutations of two vectors would cost as much as the products.
 *
 * Bits: an element of y depends on its tile alone. Weights' sums go strip by strip within a group
 * of rows, then group by group; the groups follow from the number of rows, not from threads. */
#include "kernels/cpu/conv_pool_few.h"

#if defined(__AVX512F__)

#include "kernels/cpu/conv_halves.h"
#include "kernels/cpu/half_vectors.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/window.h"

enum { MAX_C = 4, STRIP = 32, TILES = 4, MAX_GROUPS = 16, LANES = 16 };
/* Pixels of a strip's rows, their floats with room for a vector behind: whole vectors. */
enum { WIDE = 2 * STRIP + 2, LINE = (WIDE * MAX_C / LANES + 3) * LANES };
enum { ROWS = 4, POINTS = 16 };

/* The vectors are computed here. Otherwise the compiler moves each tile's sums to where they
 * are pooled, one tile after the other, loads every weight four times, and runs out of
 * registers. */
#define HERE2(u, v) __asm__ volatile("" : "+v"(u), "+v"(v))
#define HERE1(u)    __asm__ volatile("" : "+v"(u))

#define INLINE static inline __attribute__((always_inline))

bool SN_CPU(few_takes)(const sn_conv_operands *o) {
    const sn_conv *v = &o->v;
    const sn_pool *p = o->pool ? &o->pool->p : NULL;
    return p && v->kh == 3 && v->kw == 3 && v->stride[0] == 1 && v->stride[1] == 1 &&
           v->dilation[0] == 1 && v->dilation[1] == 1 && v->groups == 1 && v->C >= 1 &&
           v->C <= MAX_C && v->O > 0 && !v->line && p->kernel[0] == 2 && p->kernel[1] == 2 &&
           p->stride[0] == 2 && p->stride[1] == 2 && p->pad[0] == 0 && p->pad[1] == 0 &&
           p->pad[2] == 0 && p->pad[3] == 0;
}

/* --- strips ---------------------------------------------------------------------------------- */
/* n pooled pixels from pixel j of a row on; the row is counted over all images. */
typedef struct {
    int64_t row, j, n;
} strip;

/* The four rows of x under a strip, LINE floats of each; what is behind the strip's pixels may be
 * anything. */
typedef struct {
    const float *row[ROWS];
    float copy[ROWS][LINE];
} strip_rows;

/* With the padding's zeros, and zeros behind. */
static void copy_rows(const sn_conv_operands *o, sn_region r, sn_image from, strip_rows *to) {
    const sn_conv *v = &o->v;
    const sn_window w[2] = {sn_window_forward(v, 0), sn_window_forward(v, 1)};
    for (int k = 0; k < ROWS; k++) {
        const sn_region line = {r.row + k, r.col, 1, r.wide};
        sn_copy_region(w, &line, from, v->C, to->copy[k], r.wide);
        memset(to->copy[k] + r.wide * v->C, 0, (size_t)(LINE - r.wide * v->C) * sizeof(float));
        to->row[k] = to->copy[k];
    }
}

/* Halves, too, are copied. */
static void widen_rows(const sn_conv_operands *o, int64_t image, sn_region r, strip_rows *to) {
    const sn_conv *v = &o->v;
    const sn_window w[2] = {sn_window_forward(v, 0), sn_window_forward(v, 1)};
    const sn_stored_image from = {&o->halves->x, image * v->H * v->W * v->C, v->W, v->C, false};
    for (int k = 0; k < ROWS; k++) {
        const sn_region line = {r.row + k, r.col, 1, r.wide};
        sn_copy_stored(w, &line, from, v->C, to->copy[k], r.wide, v->C);
        memset(to->copy[k] + r.wide * v->C, 0, (size_t)(LINE - r.wide * v->C) * sizeof(float));
        to->row[k] = to->copy[k];
    }
}

/* The two rows that the strip below reads and this one does not. */
static void fetch_below(const float *x, int64_t step, int64_t floats) {
    for (int64_t k = 0; k < floats; k += LANES) {
        __builtin_prefetch(x + k);
        __builtin_prefetch(x + step + k);
    }
}

/* Where they lie, if they lie inside and x does not end there. */
static void find_rows(const sn_conv_operands *o, strip s, strip_rows *to) {
    const sn_conv *v = &o->v;
    const int64_t image = s.row / o->pool->p.oh, i = s.row % o->pool->p.oh;
    const sn_region r = {2 * i - v->pad[0], 2 * s.j - v->pad[2], ROWS, 2 * s.n + 2};
    if (o->halves) {
        widen_rows(o, image, r, to);
        return;
    }
    const sn_image from = {o->x + image * v->H * v->W * v->C, v->W, v->C};
    const int64_t at = (r.row * v->W + r.col) * v->C, step = v->W * v->C;
    const int64_t left = (v->N - image) * v->H * step - at;
    fetch_below(from.data + at + ROWS * step, step, r.wide * v->C);
    if (r.row < 0 || r.row + ROWS > v->H || r.col < 0 || r.col + r.wide > v->W ||
        (ROWS - 1) * step + LINE > left) {
        copy_rows(o, r, from, to);
        return;
    }
    for (int k = 0; k < ROWS; k++)
        to->row[k] = from.data + at + k * step;
}

static int64_t vectors_of(const sn_conv *v) {
    return sn_ceil_div(v->O, LANES);
}

/* --- forward --------------------------------------------------------------------------------- */
typedef struct {
    const sn_conv_operands *o;
    const float *weights; /* [vector of channels][point][C][LANES], column after column of points */
} few_pass;

/* One output channel of one input channel. */
static void transform_taps(const float g[3][3], float u[4][4]) {
    float t[4][3];
    for (int q = 0; q < 3; q++) {
        t[0][q] = g[0][q];
        t[1][q] = 0.5f * (g[0][q] + g[1][q] + g[2][q]);
        t[2][q] = 0.5f * (g[0][q] - g[1][q] + g[2][q]);
        t[3][q] = g[2][q];
    }
    for (int a = 0; a < 4; a++) {
        u[a][0] = t[a][0];
        u[a][1] = 0.5f * (t[a][0] + t[a][1] + t[a][2]);
        u[a][2] = 0.5f * (t[a][0] - t[a][1] + t[a][2]);
        u[a][3] = t[a][2];
    }
}

static float weight_at(const sn_conv_operands *o, int64_t at) {
    return o->halves ? sn_half_part(&o->halves->w, at, 1)[0] : o->w[at];
}

static void transform_weights(const sn_conv_operands *o, float *to) {
    const sn_conv *v = &o->v;
    for (int64_t i = 0; i < vectors_of(v) * LANES * v->C; i++) {
        const int64_t channel = i / v->C, c = i % v->C;
        float g[3][3] = {{0}}, u[4][4];
        for (int k = 0; k < 9 && channel < v->O; k++)
            g[k / 3][k % 3] = weight_at(o, (k * v->C + c) * v->O + channel);
        transform_taps(g, u);
        float *at = to + (channel / LANES * POINTS * v->C + c) * LANES + channel % LANES;
        for (int k = 0; k < POINTS; k++)
            at[k * v->C * LANES] = u[k % 4][k / 4];
    }
}

/* Along the columns: differences two apart, sums and differences of neighbours. */
typedef struct {
    float apart[LINE], sum[LINE], less[LINE];
} __attribute__((aligned(64))) transformed;

/* A vector of every transformed row, from float k of the rows on. */
INLINE void transform_rows(const float *const row[ROWS], int64_t k, __m512 line[4]) {
    const __m512 r[ROWS] = {_mm512_loadu_ps(row[0] + k), _mm512_loadu_ps(row[1] + k),
                            _mm512_loadu_ps(row[2] + k), _mm512_loadu_ps(row[3] + k)};
    line[0] = _mm512_sub_ps(r[0], r[2]);
    line[1] = _mm512_add_ps(r[1], r[2]);
    line[2] = _mm512_sub_ps(r[2], r[1]);
    line[3] = _mm512_sub_ps(r[1], r[3]);
}

INLINE void transform_strip(const float *const row[ROWS], int64_t floats, transformed t[4],
                            const int C) {
    for (int64_t k = 0; k < floats; k += LANES) {
        __m512 here[4], next[4], behind[4];
        transform_rows(row, k, here);
        transform_rows(row, k + C, next);
        transform_rows(row, k + 2 * C, behind);
#pragma GCC unroll 4
        for (int a = 0; a < 4; a++) {
            _mm512_store_ps(t[a].apart + k, _mm512_sub_ps(here[a], behind[a]));
            _mm512_store_ps(t[a].sum + k, _mm512_add_ps(here[a], next[a]));
            _mm512_store_ps(t[a].less + k, _mm512_sub_ps(next[a], here[a]));
        }
    }
}

/* Where point (a, b) of tile 0 is read. */
INLINE const float *point_at(const transformed *t, int b, const int C) {
    return b == 0 ? t->apart : b == 1 ? t->sum + C : b == 2 ? t->less + C : t->apart + C;
}

/* y[tile][2 * row + column] of TILES tiles from pixel 2 * tile on. */
INLINE void multiply_tiles(const transformed t[4], int64_t tile, const float *u, __m512 y[TILES][4],
                           const int C) {
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
        __m512 up[TILES], down[TILES];
#pragma GCC unroll 4
        for (int a = 0; a < 4; a++) {
            const float *x = point_at(&t[a], b, C) + 2 * tile * C;
            const float *w = u + (b * 4 + a) * C * LANES;
#pragma GCC unroll 4
            for (int k = 0; k < TILES; k++) {
                __m512 m = _mm512_mul_ps(_mm512_set1_ps(x[2 * k * C]), _mm512_loadu_ps(w));
#pragma GCC unroll 4
                for (int c = 1; c < C; c++)
                    m = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * k * C + c]),
                                        _mm512_loadu_ps(w + c * LANES), m);
                up[k] = a == 0 ? m : a < 3 ? _mm512_add_ps(up[k], m) : up[k];
                down[k] = a == 1 ? m : a > 1 ? _mm512_sub_ps(down[k], m) : m;
                HERE2(up[k], down[k]);
            }
        }
#pragma GCC unroll 4
        for (int k = 0; k < TILES; k++) {
            y[k][0] = b == 0 ? up[k] : b < 3 ? _mm512_add_ps(y[k][0], up[k]) : y[k][0];
            y[k][2] = b == 0 ? down[k] : b < 3 ? _mm512_add_ps(y[k][2], down[k]) : y[k][2];
            y[k][1] = b == 1 ? up[k] : b > 1 ? _mm512_sub_ps(y[k][1], up[k]) : up[k];
            y[k][3] = b == 1 ? down[k] : b > 1 ? _mm512_sub_ps(y[k][3], down[k]) : down[k];
            HERE2(y[k][0], y[k][1]);
            HERE2(y[k][2], y[k][3]);
        }
    }
}

/* Where the values of a pixel go; code may be NULL. */
typedef struct {
    float *y;
    uint16_t *halves; /* or NULL: y gets them */
    snug_dtype half;
    int64_t n; /* lanes */
    uint8_t *code;
    int64_t plane; /* bytes of a plane */
    __mmask16 lanes;
    bool relu, second; /* second: more than eight lanes */
} pooled_pixel;

INLINE void put_plane(uint8_t *to, __mmask16 bits, bool second) {
    if (second)
        memcpy(to, &bits, sizeof bits);
    else
        to[0] = (uint8_t)bits;
}

/* The first of the greatest wins; a NaN stays one. Comparisons take turns with the products,
 * maxima and sums do not: so there are as few of the former as can be. */
INLINE void pool_tile(const __m512 y[4], __m512 bias, const pooled_pixel *to) {
    const __m512 upper = _mm512_max_ps(y[1], y[0]), under = _mm512_max_ps(y[3], y[2]);
    const __m512 sum = _mm512_add_ps(_mm512_add_ps(y[0], y[1]), _mm512_add_ps(y[2], y[3]));
    const __mmask16 lower = _mm512_cmp_ps_mask(under, upper, _CMP_GT_OQ);
    const __m512 left = _mm512_mask_mov_ps(y[0], lower, y[2]);
    const __mmask16 right =
        _mm512_cmp_ps_mask(_mm512_mask_mov_ps(y[1], lower, y[3]), left, _CMP_GT_OQ);
    const __mmask16 lost = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
    __m512 best = _mm512_mask_mov_ps(_mm512_max_ps(under, upper), lost, sum);
    best = _mm512_add_ps(best, bias);
    const __m512 zero = _mm512_setzero_ps();
    __mmask16 alive = to->lanes;
    if (to->relu) {
        alive &= _mm512_cmp_ps_mask(best, zero, _CMP_GT_OQ);
        best = _mm512_max_ps(zero, best); /* of a NaN the second */
    }
    if (to->halves)
        sn_half_store(to->half, to->halves, to->n, (sn_vec)best);
    else
        _mm512_mask_storeu_ps(to->y, to->lanes, best);
    if (!to->code)
        return;
    put_plane(to->code, alive & right, to->second);
    put_plane(to->code + to->plane, alive & lower, to->second);
    put_plane(to->code + 2 * to->plane, alive, to->second);
}

static __m512 bias_at(const sn_conv_operands *o, int64_t first, int64_t n) {
    if (!o->v.bias)
        return _mm512_setzero_ps();
    return o->halves ? (__m512)sn_half_part(&o->halves->bias, first, n)
                     : _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), o->bias + first);
}

/* One vector of channels of a strip. */
INLINE void forward_lanes(const few_pass *l, const transformed t[4], strip s, int64_t vector,
                          const int C) {
    const sn_conv_operands *o = l->o;
    const sn_pooling *q = o->pool;
    const int64_t first = vector * LANES, n = sn_min_i64(LANES, o->v.O - first);
    const int64_t pixel = s.row * q->p.ow + s.j, code_step = sn_code_pixel(&q->p);
    const sn_stored *y16 = o->halves && sn_dtype_is_half(o->halves->y.dtype) ? &o->halves->y : NULL;
    pooled_pixel to = {
        .y = y16 ? NULL : o->y + pixel * o->v.O + first,
        .halves = y16 ? (uint16_t *)y16->data + pixel * o->v.O + first : NULL,
        .half = y16 ? y16->dtype : SNUG_F32,
        .n = n,
        .code = q->code ? q->code + pixel * code_step + first / 8 : NULL,
        .plane = sn_code_plane(&q->p),
        .lanes = (__mmask16)((1u << n) - 1u),
        .relu = q->relu,
        .second = n > 8,
    };
    const __m512 bias = bias_at(o, first, n);
    const float *u = l->weights + vector * POINTS * C * LANES;
    for (int64_t tile = 0; tile < s.n; tile += TILES) {
        __m512 y[TILES][4];
        multiply_tiles(t, tile, u, y, C);
#pragma GCC unroll 4
        for (int k = 0; k < TILES; k++) {
            if (!to.halves)
                __builtin_prefetch(to.y + s.n * o->v.O, 1);
            if (tile + k < s.n)
                pool_tile(y[k], bias, &to);
            if (to.halves)
                to.halves += o->v.O;
            else
                to.y += o->v.O;
            to.code += to.code ? code_step : 0;
        }
    }
}

INLINE void forward_strip(const few_pass *l, strip s, const int C) {
    strip_rows rows;
    transformed t[4];
    find_rows(l->o, s, &rows);
    /* Whole blocks of tiles: what is behind the last goes nowhere. */
    transform_strip(rows.row, (2 * sn_ceil_div(s.n, TILES) * TILES + 2) * C, t, C);
    for (int64_t vector = 0; vector < vectors_of(&l->o->v); vector++)
        forward_lanes(l, t, s, vector, C);
}

#define FORWARD(C)                                                                                 \
    static void forward_##C(const few_pass *l, strip s) {                                          \
        forward_strip(l, s, C);                                                                    \
    }
FORWARD(1)
FORWARD(2)
FORWARD(3)
FORWARD(4)

static void forward_rows(const void *ctx, int64_t first, int64_t end) {
    static void (*const by_channels[MAX_C])(const few_pass *l, strip s) = {forward_1, forward_2,
                                                                           forward_3, forward_4};
    const few_pass *l = ctx;
    const int64_t ow = l->o->pool->p.ow;
    for (int64_t row = first; row < end; row++)
        for (int64_t j = 0; j < ow; j += STRIP)
            by_channels[l->o->v.C - 1](l, (strip){row, j, sn_min_i64(STRIP, ow - j)});
}

size_t SN_CPU(few_workspace)(const sn_conv_operands *o, int n_threads) {
    (void)n_threads;
    return (size_t)(vectors_of(&o->v) * LANES * POINTS * o->v.C) * sizeof(float);
}

void SN_CPU(few_run)(const sn_conv_operands *o, const sn_call *c) {
    const sn_pool *p = &o->pool->p;
    const few_pass l = {o, c->workspace};
    transform_weights(o, c->workspace);
    sn_parallel(c, p->N * p->oh * p->ow * p->C, p->N * p->oh, forward_rows, &l);
}

/* --- the gradient of the weights ------------------------------------------------------------- */
/* Per group: [tap row][3 C][O padded], then the bias's [O padded]. */
typedef struct {
    const sn_conv_operands *o;
    float *sums;
    int64_t n_groups;
} few_dw_pass;

static int64_t group_floats(const sn_conv *v) {
    return (9 * v->C + 1) * vectors_of(v) * LANES;
}

static int64_t groups_of(const sn_pool *p) {
    return sn_min_i64(p->N * p->oh, MAX_GROUPS);
}

/* dy and codes of a strip's pixels, one vector of channels. */
typedef struct {
    const float *dy;
    const sn_stored *halves; /* or NULL: dy is what is read */
    int64_t at, lanes_read;  /* of halves */
    const uint8_t *code;
    int64_t dy_step, code_step, plane, n;
    __mmask16 lanes;
    bool second;
} gradients;

INLINE __mmask16 plane_at(const uint8_t *at, bool second) {
    __mmask16 bits = at[0];
    if (second)
        memcpy(&bits, at, sizeof bits);
    return bits;
}

/* Two rows of x, one below the other: the pixels from each column on, HALF floats of either. */
enum { HALF = LANES / 2, PAIRS = ROWS - 1 };
typedef float paired[WIDE][LANES] __attribute__((aligned(64)));

INLINE void pair_rows(const float *const row[ROWS], int64_t columns, const int C, paired *pairs) {
    for (int p = 0; p < PAIRS; p++)
        for (int64_t k = 0; k < columns; k++) {
            _mm256_store_ps(pairs[p][k], _mm256_loadu_ps(row[p] + k * C));
            _mm256_store_ps(pairs[p][k] + HALF, _mm256_loadu_ps(row[p + 1] + k * C));
        }
}

/* Of a strip's pixels, one vector of channels: what flows back, and which place of a pair it meets.
 * Found before the products, which would wait for the codes at every pixel. */
typedef struct {
    float d[STRIP][LANES] __attribute__((aligned(64)));
    int32_t at[STRIP][LANES] __attribute__((aligned(64)));
} flows;

/* Returns the sum of what flows, which is the bias's. */
INLINE __m512 find_flows(const gradients *g, flows *to, const int C, const bool halves) {
    const __m512i down = _mm512_set1_epi32(HALF);
    const float *dy = g->dy;
    const uint8_t *code = g->code;
    __m512 total = _mm512_setzero_ps();
    for (int64_t j = 0; j < g->n; j++) {
        const __mmask16 right = plane_at(code, g->second),
                        lower = plane_at(code + g->plane, g->second),
                        alive = plane_at(code + 2 * g->plane, g->second);
        const __m512 d =
            halves
                ? _mm512_maskz_mov_ps(
                      alive, (__m512)sn_half_part(g->halves, g->at + j * g->dy_step, g->lanes_read))
                : _mm512_maskz_loadu_ps(alive, dy);
        const __m512i at = _mm512_maskz_set1_epi32(right, C);
        /* the next strip's, of which the same lines come first */
        if (!halves)
            __builtin_prefetch(dy + g->n * g->dy_step);
        total = _mm512_add_ps(total, d);
        _mm512_store_ps(to->d[j], d);
        _mm512_store_si512(to->at[j], _mm512_mask_add_epi32(at, lower, at, down));
        dy += halves ? 0 : g->dy_step;
        code += g->code_step;
    }
    return total;
}

/* Sums over a strip of n pixels: sum[k * C + c] of tap first + k, channel c. */
INLINE void add_taps(const flows *f, int64_t n, paired *pairs, const int first, const int taps,
                     __m512 *sum, const int C) {
    for (int64_t j = 0; j < n; j++) {
        const __m512 d = _mm512_load_ps(f->d[j]);
        __m512i at = _mm512_load_si512(f->at[j]);
#pragma GCC unroll 4
        for (int c = 0; c < C; c++) {
#pragma GCC unroll 9
            for (int k = 0; k < taps; k++) {
                const int tap = first + k;
                const __m512 x = _mm512_load_ps(pairs[tap / 3][2 * j + tap % 3]);
                sum[k * C + c] = _mm512_fmadd_ps(_mm512_permutexvar_ps(at, x), d, sum[k * C + c]);
            }
            at = _mm512_add_epi32(at, _mm512_set1_epi32(1));
            HERE1(at);
        }
    }
}

INLINE void add_to(float *at, __m512 v) {
    _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), v));
}

/* Adds taps [first, first + taps) of a strip to the group's sums of this vector of channels. */
INLINE void add_tap_sums(const flows *f, int64_t n, paired *pairs, const int first, const int taps,
                         float *to, int64_t step, const int C) {
    __m512 sum[9 * MAX_C];
#pragma GCC unroll 36
    for (int k = 0; k < taps * C; k++)
        sum[k] = _mm512_setzero_ps();
    add_taps(f, n, pairs, first, taps, sum, C);
#pragma GCC unroll 36
    for (int k = 0; k < taps * C; k++)
        add_to(to + (first * C + k) * step, sum[k]);
}

INLINE void dw_strip(const few_dw_pass *l, strip s, float *sums, const int C) {
    strip_rows rows;
    paired pairs[PAIRS];
    flows f;
    const sn_conv_operands *o = l->o;
    const sn_pool *p = &o->pool->p;
    const int64_t pixel = s.row * p->ow + s.j, step = vectors_of(&o->v) * LANES;
    find_rows(o, s, &rows);
    pair_rows(rows.row, 2 * s.n + 2, C, pairs);
    for (int64_t first = 0; first < o->v.O; first += LANES) {
        const int64_t n = sn_min_i64(LANES, o->v.O - first);
        const gradients g = {
            .dy = o->halves ? NULL : o->dy + pixel * o->v.O + first,
            .halves = o->halves ? &o->halves->dy : NULL,
            .at = pixel * o->v.O + first,
            .lanes_read = n,
            .code = o->pool->code + pixel * sn_code_pixel(p) + first / 8,
            .dy_step = o->v.O,
            .code_step = sn_code_pixel(p),
            .plane = sn_code_plane(p),
            .n = s.n,
            .second = n > 8,
        };
        add_to(sums + 9 * C * step + first,
               g.halves ? find_flows(&g, &f, C, true) : find_flows(&g, &f, C, false));
        /* Up to three channels' sums all fit the registers. */
        add_tap_sums(&f, s.n, pairs, 0, C < 4 ? 9 : 5, sums + first, step, C);
        if (C == 4)
            add_tap_sums(&f, s.n, pairs, 5, 4, sums + first, step, C);
    }
}

#define DW(C)                                                                                      \
    static void dw_##C(const few_dw_pass *l, strip s, float *sums) {                               \
        dw_strip(l, s, sums, C);                                                                   \
    }
DW(1)
DW(2)
DW(3)
DW(4)

static void add_groups(const void *ctx, int64_t first, int64_t end) {
    static void (*const by_channels[MAX_C])(const few_dw_pass *l, strip s,
                                            float *sums) = {dw_1, dw_2, dw_3, dw_4};
    const few_dw_pass *l = ctx;
    const sn_pool *p = &l->o->pool->p;
    const int64_t rows = p->N * p->oh;
    for (int64_t group = first; group < end; group++) {
        float *sums = l->sums + group * group_floats(&l->o->v);
        memset(sums, 0, (size_t)group_floats(&l->o->v) * sizeof(float));
        for (int64_t row = group * rows / l->n_groups; row < (group + 1) * rows / l->n_groups;
             row++)
            for (int64_t j = 0; j < p->ow; j += STRIP)
                by_channels[l->o->v.C - 1](l, (strip){row, j, sn_min_i64(STRIP, p->ow - j)}, sums);
    }
}

/* Row `row` of all groups' sums becomes O floats, or halves from element `at` on. */
static void finish_row(const few_dw_pass *l, int64_t row, float *to, const sn_stored *halves,
                       int64_t at) {
    const sn_conv *v = &l->o->v;
    for (int64_t i = 0; i < v->O; i++) {
        float sum = l->o->accumulate && !halves ? to[i] : 0.0f;
        for (int64_t group = 0; group < l->n_groups; group++)
            sum += l->sums[group * group_floats(v) + row * vectors_of(v) * LANES + i];
        if (halves)
            sn_stored_write(halves, at + i, 1, &sum, l->o->accumulate);
        else
            to[i] = sum;
    }
}

size_t SN_CPU(few_dw_workspace)(const sn_conv_operands *o, int n_threads) {
    (void)n_threads;
    return (size_t)(groups_of(&o->pool->p) * group_floats(&o->v)) * sizeof(float);
}

void SN_CPU(few_dw_run)(const sn_conv_operands *o, const sn_call *c) {
    const sn_pool *p = &o->pool->p;
    const few_dw_pass l = {o, c->workspace, groups_of(p)};
    sn_parallel(c, p->N * p->oh * p->ow * p->C, l.n_groups, add_groups, &l);
    const sn_conv_halves *h = o->halves;
    for (int64_t row = 0; row < 9 * o->v.C; row++)
        finish_row(&l, row, h ? NULL : o->dw + row * o->v.O, h ? &h->dw : NULL, row * o->v.O);
    if (o->v.bias)
        finish_row(&l, 9 * o->v.C, h ? NULL : o->db, h ? &h->db : NULL, 0);
}

#else

bool SN_CPU(few_takes)(const sn_conv_operands *o) {
    (void)o;
    return false;
}

size_t SN_CPU(few_workspace)(const sn_conv_operands *o, int n_threads) {
    (void)o, (void)n_threads;
    return 0;
}

size_t SN_CPU(few_dw_workspace)(const sn_conv_operands *o, int n_threads) {
    (void)o, (void)n_threads;
    return 0;
}

void SN_CPU(few_run)(const sn_conv_operands *o, const sn_call *c) {
    (void)o, (void)c;
}

void SN_CPU(few_dw_run)(const sn_conv_operands *o, const sn_call *c) {
    (void)o, (void)c;
}

#endif
