/* pool_fast.c: pooling of f32, vectorised over channels, parallel over rows of the output. For a
 * row of halves, those it is made of are widened into scratch, which the same kernel takes for a
 * picture of so many rows.
 *
 * Forward, LANES channels go through all places of a window in local arrays. Backward, a row of dx
 * is cleared and the windows over it are added place by place: no two threads write to the same
 * row, and each element adds its windows in the order of places, whatever the threads. */
#include "kernels/cpu/lines.h"
#include "kernels/cpu/parts.h"
#include "kernels/cpu/pooling.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

/* --- forward --------------------------------------------------------------------------------- */
/* n is the constant LANES but for the last channels. */
static inline __attribute__((always_inline)) void
take_larger(const float *x, int32_t place, float *best, int32_t *code, const int64_t n) {
    for (int64_t l = 0; l < n; l++) {
        const int wins =
            (x[l] > best[l]) | ((x[l] != x[l]) & (best[l] == best[l])); /* no branch: vectorises */
        best[l] = wins ? x[l] : best[l];
        code[l] = wins ? place : code[l];
    }
}

/* One window of n <= LANES channels; x is the window's place 0, which may lie in the padding. */
static inline __attribute__((always_inline)) void max_window(const sn_pool *p, sn_pool_span r,
                                                             sn_pool_span s, const float *x,
                                                             float *y, uint8_t *code,
                                                             const int64_t n) {
    float best[LANES];
    int32_t places[LANES];
    const int32_t first = (int32_t)(r.from * p->kernel[1] + s.from);
    for (int64_t l = 0; l < n; l++) {
        best[l] = x[(r.from * p->W + s.from) * p->C + l];
        places[l] = first;
    }
    for (int64_t a = r.from; a < r.to; a++)
        for (int64_t b = s.from; b < s.to; b++)
            take_larger(x + (a * p->W + b) * p->C, (int32_t)(a * p->kernel[1] + b), best, places,
                        n);
    for (int64_t l = 0; l < n; l++) {
        y[l] = best[l];
        code[l] = (uint8_t)places[l];
    }
}

typedef void (*pool_row)(const sn_call *c, const sn_pool *p, int64_t row);

typedef struct {
    const sn_call *c;
    sn_pool p;
    pool_row row;        /* forward */
    const uint8_t *code; /* backward of a maximum, else NULL */
    sn_parts parts;      /* of halves */
} pool_loop;

/* One row of windows. */
static void max_row(const sn_call *c, const sn_pool *p, int64_t row) {
    const int64_t n = row / p->oh, i = row % p->oh;
    const sn_pool_span r = sn_pool_window(p, 0, i);
    for (int64_t j = 0; j < p->ow; j++) {
        const sn_pool_span s = sn_pool_window(p, 1, j);
        const int64_t x0 = sn_pool_x(p, n, r.start, s.start), y0 = sn_pool_y(p, n, i, j);
        const float *x = (const float *)c->in[0].data + x0;
        float *y = (float *)c->out[0].data + y0;
        uint8_t *code = (uint8_t *)c->out[1].data + y0;
        int64_t k = 0;
        for (; k + LANES <= p->C; k += LANES)
            max_window(p, r, s, x + k, y + k, code + k, LANES);
        if (k < p->C)
            max_window(p, r, s, x + k, y + k, code + k, p->C - k);
    }
}

static inline __attribute__((always_inline)) void mean_window(const sn_pool *p, sn_pool_span r,
                                                              sn_pool_span s, const float *x,
                                                              float *y, const int64_t n) {
    float sum[LANES] = {0};
    const float cells = (float)((r.to - r.from) * (s.to - s.from));
    for (int64_t a = r.from; a < r.to; a++)
        for (int64_t b = s.from; b < s.to; b++)
            for (int64_t l = 0; l < n; l++)
                sum[l] += x[(a * p->W + b) * p->C + l];
    for (int64_t l = 0; l < n; l++)
        y[l] = sum[l] / cells;
}

static void mean_row(const sn_call *c, const sn_pool *p, int64_t row) {
    const int64_t n = row / p->oh, i = row % p->oh;
    const sn_pool_span r = sn_pool_window(p, 0, i);
    for (int64_t j = 0; j < p->ow; j++) {
        const sn_pool_span s = sn_pool_window(p, 1, j);
        const float *x = (const float *)c->in[0].data + sn_pool_x(p, n, r.start, s.start);
        float *y = (float *)c->out[0].data + sn_pool_y(p, n, i, j);
        int64_t k = 0;
        for (; k + LANES <= p->C; k += LANES)
            mean_window(p, r, s, x + k, y + k, LANES);
        if (k < p->C)
            mean_window(p, r, s, x + k, y + k, p->C - k);
    }
}

static void run_rows(const void *ctx, int64_t first, int64_t end) {
    const pool_loop *l = ctx;
    for (int64_t row = first; row < end; row++)
        l->row(l->c, &l->p, row);
}

/* --- forward, halves -------------------------------------------------------------------------- */
/* Scratch of a part: the rows of x that a row of windows is over, then the row of y. */
static sn_parts forward_parts(const sn_pool *p, int n_threads) {
    const int64_t rows = sn_min_i64(p->kernel[0], p->H);
    return sn_parts_of(p->ow * p->C > 0 ? p->N * p->oh : 0, n_threads,
                       sn_line_floats(rows * p->W * p->C) + p->ow * p->C);
}

/* Row 0 of windows of a picture that has their rows of x alone: the padding is what is missing. */
static void forward_row(const pool_loop *l, int64_t row, float *scratch) {
    const sn_pool *p = &l->p;
    const int64_t n = row / p->oh, width = p->ow * p->C;
    const sn_pool_span r = sn_pool_window(p, 0, row % p->oh);
    const int64_t rows = r.to - r.from, pixels = rows * p->W * p->C;
    snug_view in = l->c->in[0], out[2] = {l->c->out[0]};
    sn_call call = *l->c;
    sn_pool q = *p;
    float *y = scratch + sn_line_floats(sn_min_i64(p->kernel[0], p->H) * p->W * p->C);
    sn_halves_to_f32(in.type.dtype,
                     (const uint16_t *)in.data + sn_pool_x(p, n, r.start + r.from, 0), pixels,
                     scratch);
    q.N = 1;
    q.H = rows;
    q.oh = 1;
    q.pad[0] = r.from;
    in.data = scratch;
    out[0].data = y;
    if (call.n_out > 1) {
        out[1] = l->c->out[1];
        out[1].data = (uint8_t *)out[1].data + row * width;
    }
    call.in = &in;
    call.out = out;
    l->row(&call, &q, 0);
    sn_halves_of_f32(out[0].type.dtype, y, width, (uint16_t *)l->c->out[0].data + row * width);
}

static void run_forward_parts(const void *ctx, int64_t first, int64_t end) {
    const pool_loop *l = ctx;
    for (int64_t k = first; k < end; k++) {
        float *scratch = sn_part_scratch(&l->parts, l->c->workspace, k);
        for (int64_t row = sn_part_first(&l->parts, k); row < sn_part_first(&l->parts, k + 1);
             row++)
            forward_row(l, row, scratch);
    }
}

static void run_forward(const sn_call *c, pool_row row) {
    pool_loop l = {
        .c = c, .p = sn_pool_of(&c->in[0].type, &c->out[0].type, &c->attrs->pool), .row = row};
    const int64_t work = sn_type_count(&c->in[0].type);
    if (!sn_dtype_is_half(c->in[0].type.dtype)) {
        sn_parallel(c, work, l.p.N * l.p.oh, run_rows, &l);
        return;
    }
    l.parts = forward_parts(&l.p, c->n_threads);
    sn_parallel(c, work, l.parts.n_parts, run_forward_parts, &l);
}

size_t SN_CPU(pool_workspace)(const sn_opdesc *d, int n_threads) {
    const sn_pool p = sn_pool_of(&d->in[0], &d->out[0], &d->attrs.pool);
    const sn_parts parts = forward_parts(&p, n_threads);
    return sn_dtype_is_half(d->in[0].dtype) ? sn_parts_bytes(&parts) : 0;
}

void SN_CPU(maxpool_f32)(const sn_call *c) {
    run_forward(c, max_row);
}

void SN_CPU(avgpool_f32)(const sn_call *c) {
    run_forward(c, mean_row);
}

/* --- backward -------------------------------------------------------------------------------- */
static void add_where(float *dx, const float *dy, const uint8_t *code, int place, int64_t n) {
    for (int64_t l = 0; l < n; l++)
        dx[l] += code[l] == place ? dy[l] : 0.0f;
}

static void add_share(float *dx, const float *dy, float share, int64_t n) {
    for (int64_t l = 0; l < n; l++)
        dx[l] += dy[l] * share;
}

/* Adds row i of windows, whose row a of places lies over this row of dx. */
static void add_windows(const sn_pool *p, float *dx, const float *dy, const uint8_t *code,
                        const int64_t at[2]) {
    const int64_t i = at[0], a = at[1];
    const sn_pool_span r = sn_pool_window(p, 0, i);
    for (int64_t b = 0; b < p->kernel[1]; b++)
        for (int64_t j = 0; j < p->ow; j++) {
            const sn_pool_span s = sn_pool_window(p, 1, j);
            if (b < s.from || b >= s.to)
                continue;
            float *to = dx + (s.start + b) * p->C;
            if (code)
                add_where(to, dy + j * p->C, code + j * p->C, (int)(a * p->kernel[1] + b), p->C);
            else
                add_share(to, dy + j * p->C, 1.0f / (float)((r.to - r.from) * (s.to - s.from)),
                          p->C);
        }
}

static void backward_rows(const void *ctx, int64_t first, int64_t end) {
    const pool_loop *l = ctx;
    const sn_pool *p = &l->p;
    for (int64_t row = first; row < end; row++) {
        float *dx = (float *)l->c->out[0].data + row * p->W * p->C;
        memset(dx, 0, (size_t)(p->W * p->C) * sizeof(float));
        for (int64_t a = 0; a < p->kernel[0]; a++) {
            const int64_t i = sn_pool_under(p, 0, row % p->H, a);
            if (i < 0)
                continue;
            const int64_t y0 = sn_pool_y(p, row / p->H, i, 0);
            add_windows(p, dx, (const float *)l->c->in[0].data + y0, l->code ? l->code + y0 : NULL,
                        (const int64_t[2]){i, a});
        }
    }
}

/* --- backward, halves ------------------------------------------------------------------------- */
/* Scratch of a part: a row of dy, then the row of dx. */
static sn_parts backward_parts(const sn_pool *p, int n_threads) {
    return sn_parts_of(p->W * p->C > 0 ? p->N * p->H : 0, n_threads,
                       sn_line_floats(p->ow * p->C) + p->W * p->C);
}

static void backward_row(const pool_loop *l, int64_t row, float *scratch) {
    const sn_pool *p = &l->p;
    const snug_view *in = &l->c->in[0], *out = &l->c->out[0];
    float *dy = scratch, *dx = scratch + sn_line_floats(p->ow * p->C);
    memset(dx, 0, (size_t)(p->W * p->C) * sizeof *dx);
    for (int64_t a = 0; a < p->kernel[0]; a++) {
        const int64_t i = sn_pool_under(p, 0, row % p->H, a);
        if (i < 0)
            continue;
        const int64_t y0 = sn_pool_y(p, row / p->H, i, 0);
        sn_halves_to_f32(in->type.dtype, (const uint16_t *)in->data + y0, p->ow * p->C, dy);
        add_windows(p, dx, dy, l->code ? l->code + y0 : NULL, (const int64_t[]){i, a});
    }
    sn_halves_of_f32(out->type.dtype, dx, p->W * p->C, (uint16_t *)out->data + row * p->W * p->C);
}

static void run_backward_parts(const void *ctx, int64_t first, int64_t end) {
    const pool_loop *l = ctx;
    for (int64_t k = first; k < end; k++) {
        float *scratch = sn_part_scratch(&l->parts, l->c->workspace, k);
        for (int64_t row = sn_part_first(&l->parts, k); row < sn_part_first(&l->parts, k + 1);
             row++)
            backward_row(l, row, scratch);
    }
}

size_t SN_CPU(pool_backward_workspace)(const sn_opdesc *d, int n_threads) {
    const sn_pool p = sn_pool_backward_of(&d->out[0], &d->in[0], &d->attrs.pool_grad);
    const sn_parts parts = backward_parts(&p, n_threads);
    return sn_dtype_is_half(d->in[0].dtype) ? sn_parts_bytes(&parts) : 0;
}

void SN_CPU(pool_backward_f32)(const sn_call *c, const uint8_t *code) {
    pool_loop l = {.c = c,
                   .p = sn_pool_backward_of(&c->out[0].type, &c->in[0].type, &c->attrs->pool_grad),
                   .code = code};
    const int64_t work = sn_type_count(&c->out[0].type);
    if (!sn_dtype_is_half(c->in[0].type.dtype)) {
        sn_parallel(c, work, l.p.N * l.p.H, backward_rows, &l);
        return;
    }
    l.parts = backward_parts(&l.p, c->n_threads);
    sn_parallel(c, work, l.parts.n_parts, run_backward_parts, &l);
}
