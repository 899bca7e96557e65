/* picture_resize.c: a resize as resize.c does it (rows first, then along the width, taps of
 * resize_taps.h), for one thread and from bytes.
 *
 * The rows a result's row is made of are added into a line of floats; its pixels are added along
 * the width. Where no pixel is made of more than two, which is what most resizes are, the places
 * and weights of both stand written down for each element of a row, so that the loop over them is
 * one of vectors. Otherwise a line has room for a vector behind its end: pixels of three channels
 * are read and written four floats at a time. */
#include "kernels/cpu/picture_resize.h"
#include "kernels/cpu/resize_taps.h"

#include "base/size.h"

#include <string.h>

#define BEHIND 16 /* floats behind a line */

/* Output o: taps first[o] ... with the weights from start[o] to start[o + 1]. */
typedef struct {
    int64_t *first, *start;
    float *weight;
} map;

/* Each element of a row as the sum of two of the line; where it is made of one, of its halves. */
typedef struct {
    int32_t *at[2];
    float *weight[2];
} pairs;

/* At the front of the workspace: where everything lies in it. */
typedef struct {
    map down, side;
    pairs pairs;
    float *line;
    bool by_pairs;
} layout;

static sn_resize_axis axis_of(const sn_picture_resize *p, int k) {
    return (sn_resize_axis){k == 0 ? p->h : p->w, k == 0 ? p->to_h : p->to_w, p->method,
                            p->antialias};
}

typedef struct {
    int64_t all, most; /* taps of an axis, and of an output */
} tap_count;

static tap_count taps_of(const sn_resize_axis *a) {
    tap_count n = {0, 0};
    for (int64_t o = 0; o < a->to; o++) {
        const int64_t here = sn_resize_taps(a, o).n;
        n.all += here;
        n.most = here > n.most ? here : n.most;
    }
    return n;
}

static bool work_bytes(const sn_picture_resize *p, size_t *bytes) {
    const sn_resize_axis rows = axis_of(p, 0), columns = axis_of(p, 1);
    const size_t words = 2 * (size_t)(p->to_h + p->to_w + 2);
    size_t line, row, floats;
    return sn_size_mul((size_t)p->w, (size_t)p->c, &line) && line <= INT32_MAX &&
           sn_size_add(line, BEHIND, &line) && sn_size_mul((size_t)p->to_w, (size_t)p->c, &row) &&
           sn_size_mul(row, 4, &row) &&
           sn_size_add(line, (size_t)(taps_of(&rows).all + taps_of(&columns).all), &floats) &&
           sn_size_add(floats, row, &floats) && sn_size_mul(floats, sizeof(float), &floats) &&
           sn_size_add(floats, words * sizeof(int64_t) + sizeof(layout), bytes);
}

static void fill_map(const sn_resize_axis *a, map *m) {
    int64_t at = 0;
    for (int64_t o = 0; o < a->to; o++) {
        const sn_taps t = sn_resize_taps(a, o);
        sn_resize_weights(a, o, t, m->weight + at);
        m->first[o] = t.first;
        m->start[o] = at;
        at += t.n;
    }
    m->start[a->to] = at;
}

static void fill_pairs(const map *m, const sn_picture_resize *p, void *room, pairs *out) {
    const int64_t n = p->to_w * p->c;
    *out = (pairs){{room, (int32_t *)room + n}, {(float *)room + 2 * n, (float *)room + 3 * n}};
    for (int64_t e = 0; e < n; e++) {
        const int64_t j = e / p->c, first = m->first[j] * p->c + e % p->c;
        const bool two = m->start[j + 1] - m->start[j] == 2;
        const float *w = m->weight + m->start[j];
        out->at[0][e] = (int32_t)first;
        out->at[1][e] = (int32_t)(two ? first + p->c : first);
        out->weight[0][e] = two ? w[0] : 0.5f * w[0];
        out->weight[1][e] = two ? w[1] : 0.5f * w[0];
    }
}

/* --- down ------------------------------------------------------------------------------------- */
#define ADD_ROWS(name, S)                                                                          \
    static void name(const S *restrict from, int64_t width, const float *w, int64_t n,             \
                     float *restrict line) {                                                       \
        if (n == 2) { /* most resizes: one pass */                                                 \
            const float a = w[0], b = w[1];                                                        \
            for (int64_t k = 0; k < width; k++)                                                    \
                line[k] = a * (float)from[k] + b * (float)from[width + k];                         \
            return;                                                                                \
        }                                                                                          \
        for (int64_t k = 0; k < width; k++)                                                        \
            line[k] = w[0] * (float)from[k];                                                       \
        for (int64_t t = 1; t < n; t++)                                                            \
            for (int64_t k = 0; k < width; k++)                                                    \
                line[k] += w[t] * (float)from[t * width + k];                                      \
    }
ADD_ROWS(add_rows_u8, uint8_t)
ADD_ROWS(add_rows_f32, float)

/* --- across ----------------------------------------------------------------------------------- */
static void add_pixel(const float *x, const float *w, int64_t taps, int64_t C, float *to) {
    for (int64_t k = 0; k < C; k++) {
        float sum = 0;
        for (int64_t t = 0; t < taps; t++)
            sum += w[t] * x[t * C + k];
        to[k] = sum;
    }
}

typedef float four __attribute__((vector_size(16)));
typedef float four_in_memory __attribute__((vector_size(16), aligned(4), may_alias));

/* Pixels of three channels but the last of a row, whose fourth float would be somebody else's. */
static void across_3(const map *m, const float *line, float *to, int64_t n) {
    for (int64_t j = 0; j + 1 < n; j++, to += 3) {
        const int64_t taps = m->start[j + 1] - m->start[j];
        const float *w = m->weight + m->start[j], *x = line + m->first[j] * 3;
        four sum = w[0] * *(const four_in_memory *)x;
        for (int64_t t = 1; t < taps; t++)
            sum += w[t] * *(const four_in_memory *)(x + 3 * t);
        *(four_in_memory *)to = sum;
    }
    add_pixel(line + m->first[n - 1] * 3, m->weight + m->start[n - 1],
              m->start[n] - m->start[n - 1], 3, to);
}

static void across(const map *m, const float *line, float *to, int64_t n, int64_t C) {
    if (C == 3) {
        across_3(m, line, to, n);
        return;
    }
    for (int64_t j = 0; j < n; j++, to += C)
        add_pixel(line + m->first[j] * C, m->weight + m->start[j], m->start[j + 1] - m->start[j], C,
                  to);
}

static void across_pairs(const pairs *m, const float *restrict line, float *restrict to,
                         int64_t n) {
    const int32_t *restrict a = m->at[0], *restrict b = m->at[1];
    const float *restrict v = m->weight[0], *restrict w = m->weight[1];
#pragma omp simd
    for (int64_t e = 0; e < n; e++)
        to[e] = v[e] * line[a[e]] + w[e] * line[b[e]];
}

static void lay_out(const sn_picture_resize *p, int64_t *words, layout *l) {
    const sn_resize_axis rows = axis_of(p, 0), columns = axis_of(p, 1);
    l->down = (map){.first = words, .start = words + p->to_h};
    l->side.first = l->down.start + p->to_h + 1;
    l->side.start = l->side.first + p->to_w;
    l->line = (float *)(l->side.start + p->to_w + 1);
    memset(l->line + p->w * p->c, 0, BEHIND * sizeof *l->line);
    l->down.weight = l->line + p->w * p->c + BEHIND;
    fill_map(&rows, &l->down);
    l->side.weight = l->down.weight + l->down.start[p->to_h];
    fill_map(&columns, &l->side);
    l->by_pairs = taps_of(&columns).most <= 2;
    if (l->by_pairs)
        fill_pairs(&l->side, p, l->side.weight + l->side.start[p->to_w], &l->pairs);
}

static void begin(const sn_picture_resize *p, void *work) {
    layout *l = work;
    *l = (layout){.by_pairs = false};
    lay_out(p, (int64_t *)(void *)(l + 1), l);
}

static void span(const void *work, int64_t i, int64_t *first, int64_t *n) {
    const layout *l = work;
    *first = l->down.first[i];
    *n = l->down.start[i + 1] - l->down.start[i];
}

static void make_row(const sn_picture_resize *p, const layout *l, int64_t i, const void *rows,
                     float *to) {
    const int64_t width = p->w * p->c, taps = l->down.start[i + 1] - l->down.start[i];
    const float *w = l->down.weight + l->down.start[i];
    if (p->is_f32)
        add_rows_f32(rows, width, w, taps, l->line);
    else
        add_rows_u8(rows, width, w, taps, l->line);
    if (l->by_pairs)
        across_pairs(&l->pairs, l->line, to, p->to_w * p->c);
    else
        across(&l->side, l->line, to, p->to_w, p->c);
}

static void row(const sn_picture_resize *p, const void *work, int64_t i, const void *rows) {
    make_row(p, work, i, rows, p->to + i * p->to_w * p->c);
}

static void resize(const sn_picture_resize *p, void *work) {
    const layout *l = work;
    const size_t width = (size_t)(p->w * p->c) * (p->is_f32 ? sizeof(float) : 1);
    begin(p, work);
    for (int64_t r = 0; r < p->n * p->to_h; r++) {
        const int64_t i = r % p->to_h, at = r / p->to_h * p->h + l->down.first[i];
        make_row(p, l, i, (const char *)p->from + (size_t)at * width, p->to + r * p->to_w * p->c);
    }
}

extern const sn_cpu_picture SN_CPU(picture);
const sn_cpu_picture SN_CPU(picture) = {work_bytes, resize, begin, span, row};
