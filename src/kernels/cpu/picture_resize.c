/* picture_resize.c: a resize as resize.c does it (rows first, then along the width, taps of
 * resize_taps.h), for one thread and from bytes.
 *
 * The rows a result's row is made of are added into a line of floats; its pixels are added along
 * the width. A line has room for a vector behind its end: pixels of three channels are read and
 * written four floats at a time. */
#include "kernels/cpu/picture.h"
#include "kernels/cpu/resize_taps.h"

#include "base/size.h"

#include <string.h>

#define BEHIND 16 /* floats behind a line */

/* Output o: taps first[o] ... with the weights from start[o] to start[o + 1]. */
typedef struct {
    int64_t *first, *start;
    float *weight;
} map;

static sn_resize_axis axis_of(const sn_picture_resize *p, int k) {
    return (sn_resize_axis){k == 0 ? p->h : p->w, k == 0 ? p->to_h : p->to_w, p->method,
                            p->antialias};
}

static int64_t taps_of(const sn_resize_axis *a) {
    int64_t n = 0;
    for (int64_t o = 0; o < a->to; o++)
        n += sn_resize_taps(a, o).n;
    return n;
}

static bool work_bytes(const sn_picture_resize *p, size_t *bytes) {
    const sn_resize_axis rows = axis_of(p, 0), columns = axis_of(p, 1);
    const size_t words = 2 * (size_t)(p->to_h + p->to_w + 2);
    size_t line, floats;
    return sn_size_mul((size_t)p->w, (size_t)p->c, &line) && sn_size_add(line, BEHIND, &line) &&
           sn_size_add(line, (size_t)(taps_of(&rows) + taps_of(&columns)), &floats) &&
           sn_size_mul(floats, sizeof(float), &floats) &&
           sn_size_add(floats, words * sizeof(int64_t), bytes);
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

static void resize(const sn_picture_resize *p, void *work) {
    const sn_resize_axis rows = axis_of(p, 0), columns = axis_of(p, 1);
    const int64_t width = p->w * p->c, size = p->h * width;
    int64_t *words = work;
    map down = {.first = words, .start = words + p->to_h};
    map side = {.first = down.start + p->to_h + 1};
    side.start = side.first + p->to_w;
    float *line = (float *)(side.start + p->to_w + 1);
    down.weight = line + width + BEHIND;
    fill_map(&rows, &down);
    side.weight = down.weight + down.start[p->to_h];
    fill_map(&columns, &side);
    memset(line + width, 0, BEHIND * sizeof *line);
    for (int64_t r = 0; r < p->n * p->to_h; r++) {
        const int64_t i = r % p->to_h, at = r / p->to_h * size + down.first[i] * width;
        const int64_t taps = down.start[i + 1] - down.start[i];
        const float *w = down.weight + down.start[i];
        if (p->is_f32)
            add_rows_f32((const float *)p->from + at, width, w, taps, line);
        else
            add_rows_u8((const uint8_t *)p->from + at, width, w, taps, line);
        across(&side, line, p->to + r * p->to_w * p->c, p->to_w, p->c);
    }
}

extern const sn_cpu_picture SN_CPU(picture);
const sn_cpu_picture SN_CPU(picture) = {work_bytes, resize};
