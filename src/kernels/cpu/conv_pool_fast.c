/* conv_pool_fast.c: what a block of a convolution does about pooling: forward its results, still in
 * the thread's scratch, become pooled values and codes; backward pooled gradients are spread over a
 * part of the full-size gradient before a product reads it. Channels go by sixteen; with AVX-512 a
 * plane of a code is a mask register. */
#include "kernels/cpu/conv_pool.h"

#include "kernels/cpu/half_vectors.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/simd.h"

#include <string.h>

enum { LANES = 16 };

/* A pooled pixel: its window's places inside the result, and where it stands. */
typedef struct {
    sn_pool_span r, s;
    int64_t index; /* of the pooled pixel in the batch */
    /* of place (0, 0) in the area, in pixels; places outside are not read or written */
    int64_t row, col;
} window;

static window window_at(const sn_pool *p, const sn_pool_area *a, int64_t i, int64_t j) {
    window w = {.r = sn_pool_window(p, 0, i), .s = sn_pool_window(p, 1, j)};
    w.index = (a->image * p->oh + i) * p->ow + j;
    w.row = w.r.start - a->row;
    w.col = w.s.start - a->col;
    return w;
}

static float *place_in(const sn_pool_area *a, const window *w, int64_t down, int64_t across) {
    return a->at + ((w->row + down) * a->pitch + w->col + across) * a->step;
}

/* n <= LANES channels from channel c of the area on. */
typedef struct {
    int64_t c, n;
} lanes;

#if defined(__AVX512F__)

static __mmask16 load_plane(const uint8_t *plane, int64_t n) {
    return (__mmask16)(plane[0] | (n > 8 ? plane[1] << 8 : 0));
}

static void store_plane(uint8_t *plane, int64_t n, __mmask16 bits) {
    plane[0] = (uint8_t)bits;
    if (n > 8)
        plane[1] = (uint8_t)(bits >> 8);
}

static void store_code(const sn_pool *p, uint8_t *pixel, lanes l, __m512i place, __mmask16 alive) {
    const __mmask16 all = (__mmask16)((1u << l.n) - 1u);
    const int64_t plane = sn_code_plane(p);
    if (!sn_code_is_planes(p)) {
        const __m512i dead = _mm512_set1_epi32(SN_CODE_DEAD);
        _mm512_mask_cvtepi32_storeu_epi8(pixel + l.c, all,
                                         _mm512_mask_mov_epi32(dead, alive, place));
        return;
    }
    const __m512i one = _mm512_set1_epi32(1), two = _mm512_set1_epi32((int)p->kernel[1]);
    const __m512i column = p->kernel[1] == 2 ? one : _mm512_setzero_si512();
    pixel += l.c / 8;
    alive &= all;
    store_plane(pixel, l.n, _mm512_mask_test_epi32_mask(alive, place, column));
    store_plane(pixel + plane, l.n, _mm512_mask_cmpge_epi32_mask(alive, place, two));
    store_plane(pixel + 2 * plane, l.n, alive);
}

static void store_pooled(const sn_pooling *q, int64_t at, int64_t n, __m512 values) {
    sn_half_put(&q->pooled, at, n, (sn_vec)values);
}

static __m512 load_pooled(const sn_pooling *q, const float *dy, int64_t at, int64_t n) {
    const __mmask16 all = (__mmask16)((1u << n) - 1u);
    return q->pooled.data ? (__m512)sn_half_part(&q->pooled, at, n)
                          : _mm512_maskz_loadu_ps(all, dy + at);
}

static void take_lanes(const sn_pooling *q, const sn_pool_area *a, const window *w, lanes l,
                       float *y) {
    const sn_pool *p = &q->p;
    const __mmask16 all = (__mmask16)((1u << l.n) - 1u);
    const float *first = place_in(a, w, w->r.from, w->s.from) + l.c - a->c;
    __m512 best = _mm512_maskz_loadu_ps(all, first);
    __m512i place = _mm512_set1_epi32((int)(w->r.from * p->kernel[1] + w->s.from));
    for (int64_t i = w->r.from; i < w->r.to; i++)
        for (int64_t j = w->s.from; j < w->s.to; j++) {
            const __m512 v = _mm512_maskz_loadu_ps(all, place_in(a, w, i, j) + l.c - a->c);
            /* greater, or the first NaN */
            const __mmask16 wins = _mm512_mask_cmp_ps_mask(
                _mm512_cmp_ps_mask(best, best, _CMP_ORD_Q), v, best, _CMP_NLE_UQ);
            best = _mm512_mask_mov_ps(best, wins, v);
            place =
                _mm512_mask_mov_epi32(place, wins, _mm512_set1_epi32((int)(i * p->kernel[1] + j)));
        }
    const __m512 zero = _mm512_setzero_ps();
    __mmask16 alive = all;
    if (q->relu) {
        alive = _mm512_cmp_ps_mask(best, zero, _CMP_GT_OQ);
        best = _mm512_mask_mov_ps(best, _mm512_cmp_ps_mask(best, zero, _CMP_LT_OQ), zero);
    }
    if (q->pooled.data)
        store_pooled(q, w->index * p->C + l.c, l.n, best);
    else
        _mm512_mask_storeu_ps(y + w->index * p->C + l.c, all, best);
    if (q->code)
        store_code(p, q->code + w->index * sn_code_pixel(p), l, place, alive);
}

static __m512i load_code(const sn_pool *p, const uint8_t *pixel, lanes l) {
    const __mmask16 all = (__mmask16)((1u << l.n) - 1u);
    const __m512i dead = _mm512_set1_epi32(SN_CODE_DEAD);
    if (!sn_code_is_planes(p)) {
        const __m512i bytes = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(all, pixel + l.c));
        return _mm512_mask_cvtepu8_epi32(dead, all, _mm512_castsi512_si128(bytes));
    }
    const int64_t plane = sn_code_plane(p);
    pixel += l.c / 8;
    __m512i place = _mm512_maskz_set1_epi32(load_plane(pixel, l.n), 1);
    place = _mm512_mask_add_epi32(place, load_plane(pixel + plane, l.n), place,
                                  _mm512_set1_epi32((int)p->kernel[1]));
    return _mm512_mask_mov_epi32(dead, load_plane(pixel + 2 * plane, l.n), place);
}

static void spread_lanes(const sn_pooling *q, const sn_pool_area *a, const window *w, lanes l,
                         const float *dy) {
    const sn_pool *p = &q->p;
    const __m512i place = load_code(p, q->code + w->index * sn_code_pixel(p), l);
    const __m512 d = load_pooled(q, dy, w->index * p->C + l.c, l.n);
    for (int64_t i = w->r.from; i < w->r.to; i++)
        for (int64_t j = w->s.from; j < w->s.to; j++) {
            float *to = place_in(a, w, i, j) + l.c - a->c;
            const __mmask16 here =
                _mm512_cmpeq_epi32_mask(place, _mm512_set1_epi32((int)(i * p->kernel[1] + j)));
            _mm512_mask_storeu_ps(to, here, _mm512_add_ps(_mm512_maskz_loadu_ps(here, to), d));
        }
}

#else

static void take_lanes(const sn_pooling *q, const sn_pool_area *a, const window *w, lanes l,
                       float *y) {
    const sn_pool *p = &q->p;
    float best[LANES];
    int32_t place[LANES];
    const float *first = place_in(a, w, w->r.from, w->s.from) + l.c - a->c;
    for (int64_t k = 0; k < l.n; k++) {
        best[k] = first[k];
        place[k] = (int32_t)(w->r.from * p->kernel[1] + w->s.from);
    }
    for (int64_t i = w->r.from; i < w->r.to; i++)
        for (int64_t j = w->s.from; j < w->s.to; j++) {
            const float *v = place_in(a, w, i, j) + l.c - a->c;
            for (int64_t k = 0; k < l.n; k++) {
                const int wins = (v[k] > best[k]) | ((v[k] != v[k]) & (best[k] == best[k]));
                best[k] = wins ? v[k] : best[k];
                place[k] = wins ? (int32_t)(i * p->kernel[1] + j) : place[k];
            }
        }
    for (int64_t k = 0; k < l.n; k++) {
        place[k] = q->relu && !(best[k] > 0) ? SN_CODE_DEAD : place[k];
        best[k] = q->relu && best[k] < 0 ? 0 : best[k];
    }
    if (q->pooled.data)
        sn_stored_write(&q->pooled, w->index * p->C + l.c, l.n, best, false);
    else
        memcpy(y + w->index * p->C + l.c, best, (size_t)l.n * sizeof(float));
    for (int64_t k = 0; q->code && k < l.n; k++)
        sn_code_put(p, q->code + w->index * sn_code_pixel(p), l.c + k, place[k]);
}

static void spread_lanes(const sn_pooling *q, const sn_pool_area *a, const window *w, lanes l,
                         const float *dy) {
    const sn_pool *p = &q->p;
    const uint8_t *pixel = q->code + w->index * sn_code_pixel(p);
    float line[LANES];
    const float *d = line;
    if (q->pooled.data)
        sn_stored_read(&q->pooled, w->index * p->C + l.c, l.n, line);
    else
        d = dy + w->index * p->C + l.c;
    for (int64_t k = l.c; k < l.c + l.n; k++) {
        const int64_t place = sn_code_get(p, pixel, k);
        const int64_t i = place / p->kernel[1], j = place % p->kernel[1];
        if (i >= w->r.from && i < w->r.to && j >= w->s.from && j < w->s.to)
            place_in(a, w, i, j)[k - a->c] += d[k - l.c];
    }
}

#endif

void SN_CPU(conv_pool_take)(const sn_pooling *q, const sn_pool_area *a, float *y) {
    const sn_pool *p = &q->p;
    const int64_t down = (a->row + p->pad[0]) / p->stride[0],
                  across = (a->col + p->pad[2]) / p->stride[1];
    for (int64_t i = 0; i * p->stride[0] + p->kernel[0] <= a->high && down + i < p->oh; i++)
        for (int64_t j = 0; j * p->stride[1] + p->kernel[1] <= a->wide && across + j < p->ow; j++) {
            const window w = window_at(p, a, down + i, across + j);
            for (int64_t c = 0; c < a->n; c += LANES)
                take_lanes(q, a, &w, (lanes){a->c + c, sn_min_i64(LANES, a->n - c)}, y);
        }
}

/* Leaves the places [first, first + n) of one axis of the area. */
static sn_pool_span clipped(sn_pool_span s, int64_t first, int64_t n) {
    const int64_t low = first - s.start, high = first + n - s.start;
    s.from = s.from < low ? low : s.from;
    s.to = s.to > high ? high : s.to;
    return s;
}

/* The windows [from, to) along an axis that reach into [first, first + n). */
typedef struct {
    int64_t from, to;
} reach;

static reach reach_of(const sn_pool *p, int axis, int64_t first, int64_t n) {
    const int64_t windows = axis == 0 ? p->oh : p->ow, step = p->stride[axis];
    const int64_t before = first + p->pad[2 * axis] - p->kernel[axis] + 1;
    const int64_t from = before > 0 ? sn_ceil_div(before, step) : 0;
    const int64_t last = first + n - 1 + p->pad[2 * axis];
    return (reach){from, last < 0 ? 0 : sn_min_i64(last / step + 1, windows)};
}

void SN_CPU(conv_pool_spread)(const sn_pooling *q, const sn_pool_area *a, const float *dy) {
    const sn_pool *p = &q->p;
    const reach down = reach_of(p, 0, a->row, a->high), across = reach_of(p, 1, a->col, a->wide);
    for (int64_t i = 0; i < a->high; i++)
        memset(a->at + i * a->pitch * a->step, 0, (size_t)(a->wide * a->step) * sizeof(float));
    for (int64_t i = down.from; i < down.to; i++)
        for (int64_t j = across.from; j < across.to; j++) {
            window w = window_at(p, a, i, j);
            w.r = clipped(w.r, a->row, a->high);
            w.s = clipped(w.s, a->col, a->wide);
            for (int64_t c = 0; c < a->n; c += LANES)
                spread_lanes(q, a, &w, (lanes){a->c + c, sn_min_i64(LANES, a->n - c)}, dy);
        }
}
