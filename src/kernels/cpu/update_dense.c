/* update_dense.c: the family matmul_adam: Adam's update of a dense layer's weights w [M, N] by the
 * gradient x^T dy of x [K, M] and dy [K, N], which never exists as a whole.
 *
 * Rows of w go in spans: a span's gradient is made in the taker's scratch and taken by the update
 * while it is in the cache. Sums are added as product.h orders them (terms one by one within a
 * piece, pieces within a group, then the groups), and the update is adam's own loop: so the bits of
 * the rows matmul and adam apart.
 *
 * Scratch per taker: the gradient of a span; the sum of a group behind it where there are several;
 * a piece's where there are several. Every taker has a first span of its own, the last taker's is
 * span 0, which is the longest: the last byte is always written. */
#include "kernels/cpu/adam.h"
#include "kernels/cpu/matrix.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/real.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { WEIGHTS, MEAN, SQUARE, X, DY };

/* --- reference ------------------------------------------------------------------------------- */
/* The gradient is rounded to the weights' type, as the row matmul would store it. */
static double gradient_at(const sn_call *c, int64_t row, int64_t column) {
    const sn_reals x = sn_reals_of(&c->in[X]), dy = sn_reals_of(&c->in[DY]);
    const int64_t *dims = c->in[WEIGHTS].type.dims;
    double sum = 0;
    for (int64_t k = 0; k < c->in[X].type.dims[0]; k++)
        sum += sn_real_at(x, k * dims[0] + row) * sn_real_at(dy, k * dims[1] + column);
    return x.wide ? sum : (double)(float)sum;
}

/* A parameter as the weights' type has it. */
static double param_of(const sn_call *c, int i) {
    const double value = c->param[i].real;
    return c->in[WEIGHTS].type.dtype == SNUG_F64 ? value : (double)(float)value;
}

static snug_status reference_matmul_adam(const sn_call *c, snug_error *err) {
    (void)err;
    const int64_t *dims = c->in[WEIGHTS].type.dims;
    const double rate = param_of(c, 0), toward1 = param_of(c, 1), toward2 = param_of(c, 2);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        const double g = gradient_at(c, i / dims[1], i % dims[1]);
        double mean = sn_real_at(sn_reals_of(&c->in[MEAN]), i);
        double square = sn_real_at(sn_reals_of(&c->in[SQUARE]), i);
        mean += (g - mean) * toward1;
        square += (g * g - square) * toward2;
        const double w = sn_real_at(sn_reals_of(&c->in[WEIGHTS]), i);
        sn_real_put(sn_reals_of(&c->out[WEIGHTS]), i,
                    w - rate * mean / (sqrt(square) + param_of(c, 3)));
        sn_real_put(sn_reals_of(&c->out[MEAN]), i, mean);
        sn_real_put(sn_reals_of(&c->out[SQUARE]), i, square);
    }
    return SNUG_OK;
}

/* --- spans ----------------------------------------------------------------------------------- */
/* How the weights are cut, and what a taker needs. */
typedef struct {
    int64_t M, N, K;
    int64_t rows, n_spans, n_takers; /* rows of every span but the last */
    int64_t n_pieces, n_groups;
    int64_t own_floats;
} cut;

/* Floats of a buffer of a span. */
static int64_t span_floats(const cut *u) {
    return u->rows * u->N;
}

static cut cut_for(const snug_type *w, int64_t terms, int n_threads) {
    enum { FLOATS = 4096, LEAST = 16, MOST = 256, SMALL = 1 << 18 };
    cut u = {.M = w->dims[0], .N = w->dims[1], .K = terms};
    const int64_t wanted = u.N > 0 ? FLOATS / u.N / LEAST * LEAST : LEAST;
    const int64_t most = wanted < LEAST ? LEAST : sn_min_i64(wanted, MOST);
    const bool small = (double)u.M * (double)u.N * (double)(u.K + 1) < SMALL;
    u.rows = sn_min_i64(most, u.M);
    u.n_spans = u.rows > 0 && u.N > 0 ? sn_ceil_div(u.M, u.rows) : 0;
    u.n_takers =
        small || n_threads < 1 ? sn_min_i64(1, u.n_spans) : sn_min_i64(n_threads, u.n_spans);
    u.n_pieces = sn_ceil_div(u.K, SN_PRODUCT_DEPTH);
    u.n_groups = sn_product_groups(u.n_pieces);
    const int64_t buffers = 1 + (u.n_groups > 1) + (u.n_pieces > 1);
    u.own_floats = (buffers - 1) * sn_lines(span_floats(&u)) + span_floats(&u);
    return u;
}

static int64_t taker_floats(const cut *u) {
    return sn_lines(u->own_floats);
}

typedef struct {
    cut u;
    const sn_call *c;
    float *scratch;
    _Atomic int64_t *next;
} pass;

/* Rows [first, first + n) of w. */
typedef struct {
    int64_t first, n;
} span;

/* --- the gradient ---------------------------------------------------------------------------- */
#define INLINE static inline __attribute__((always_inline))
enum { ROWS = 16 }; /* of g at once: as many floats of x as a cache line has */

/* Up to VL columns of a span's sums over some terms. */
typedef struct {
    const float *x, *dy; /* of the first term */
    float *g;
    int64_t M, N, K, lanes;
} strip;

INLINE sn_vec load_lanes(const float *from, int64_t lanes) {
    return lanes == SN_VL ? sn_vec_load(from) : sn_vec_load_part(from, lanes);
}

/* Rows [i, i + rows) of g. Each term's row of x is far from the one before: nobody but us knows
 * what is read next. */
INLINE void sum_rows(const strip *s, int64_t i, const int rows) {
    enum { TERMS_AHEAD = 64 };
    const int64_t ahead = ROWS * (1 + TERMS_AHEAD / (s->K + 1));
    sn_vec sum[ROWS] = {0};
    const float *x = s->x + i, *dy = s->dy;
    for (int64_t k = 0; k < s->K; k++, x += s->M, dy += s->N) {
        const sn_vec d = load_lanes(dy, s->lanes);
        __builtin_prefetch(x + ahead);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            sum[r] = sn_vec_multiply_add(sn_vec_spread(x[r]), d, sum[r]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        sn_vec_store_part(s->g + (i + r) * s->N, sum[r], s->lanes);
}

/* The sums of terms [k, end) of a span. */
static void make_piece(const pass *l, span s, int64_t k, int64_t end, float *g) {
    const cut *u = &l->u;
    for (int64_t j = 0; j < u->N; j += SN_VL) {
        const strip p = {
            .x = (const float *)l->c->in[X].data + k * u->M + s.first,
            .dy = (const float *)l->c->in[DY].data + k * u->N + j,
            .g = g + j,
            .M = u->M,
            .N = u->N,
            .K = end - k,
            .lanes = sn_min_i64(SN_VL, u->N - j),
        };
        int64_t i = 0;
        for (; i + ROWS <= s.n; i += ROWS)
            sum_rows(&p, i, ROWS);
        for (; i < s.n; i++)
            sum_rows(&p, i, 1);
    }
}

static void add_to(float *sum, const float *more, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        sum[i] += more[i];
}

/* The buffers stand in own in the order: piece, group, gradient; only those that are needed. */
static float *make_gradient(const pass *l, span s, float *own) {
    const cut *u = &l->u;
    const int64_t depth = u->n_pieces > 0 ? sn_ceil_div(u->K, u->n_pieces) : 0, n = s.n * u->N;
    const int64_t step = sn_lines(span_floats(u));
    float *piece = own, *group = piece + (u->n_pieces > 1 ? step : 0);
    float *g = group + (u->n_groups > 1 ? step : 0);
    if (u->n_pieces == 0)
        memset(g, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < u->n_groups; i++) {
        float *sum = i == 0 ? g : group;
        const int64_t first = i * u->n_pieces / u->n_groups;
        for (int64_t p = first; p < (i + 1) * u->n_pieces / u->n_groups; p++) {
            float *part = p == first ? sum : piece;
            make_piece(l, s, p * depth, sn_min_i64((p + 1) * depth, u->K), part);
            if (part != sum)
                add_to(sum, part, n);
        }
        if (sum != g)
            add_to(g, sum, n);
    }
    return g;
}

/* --- the update ------------------------------------------------------------------------------ */
/* Elements [first, first + n) of the weights, whose gradient is g. */
static void update_weights(const sn_call *c, int64_t first, const float *g, int64_t n) {
    const float *w = (const float *)c->in[WEIGHTS].data + first,
                *m = (const float *)c->in[MEAN].data + first,
                *v = (const float *)c->in[SQUARE].data + first;
    float *w_out = (float *)c->out[WEIGHTS].data + first,
          *m_out = (float *)c->out[MEAN].data + first,
          *v_out = (float *)c->out[SQUARE].data + first;
    const float rate = (float)c->param[0].real, toward1 = (float)c->param[1].real,
                toward2 = (float)c->param[2].real, epsilon = (float)c->param[3].real;
    ADAM_LOOP(float, float, grad *grad)
}

static void take_spans(const void *ctx, int64_t first, int64_t end) {
    const pass *l = ctx;
    const cut *u = &l->u;
    for (int64_t taker = first; taker < end; taker++) {
        float *own = l->scratch + taker * taker_floats(u);
        for (int64_t i = u->n_takers - 1 - taker; i < u->n_spans;
             i = atomic_fetch_add(l->next, 1)) {
            const span s = {i * u->rows, sn_min_i64(u->rows, u->M - i * u->rows)};
            update_weights(l->c, s.first * u->N, make_gradient(l, s, own), s.n * u->N);
        }
    }
}

static snug_status run_matmul_adam(const sn_call *c, snug_error *err) {
    if (!sn_call_is_f32(c))
        return reference_matmul_adam(c, err);
    pass l = {cut_for(&c->in[WEIGHTS].type, c->in[X].type.dims[0], c->n_threads), c, c->workspace,
              NULL};
    _Atomic int64_t next = l.u.n_takers;
    l.next = &next;
    sn_team_run(c->team, l.u.n_takers, take_spans, &l);
    return SNUG_OK;
}

/* Counted as a plain loop, which it is for few terms: then the slots' traffic weighs most. An
 * operation of the product takes `product` of one of the loop's, the update `update` of them
 * (measured with 8 and 32 terms and 10 columns); `own` is what the update is counted as. */
static double update_efficiency(const cut *u) {
    static const double product = 0.18, update = 17, own = 12;
    const double terms = 2 * (double)u->K;
    return (terms + own) / (terms * product / sn_gemm_filled(u->N) + update);
}

static snug_status describe_matmul_adam(const sn_opdesc *d, int n_threads, sn_variant *out,
                                        snug_error *err) {
    (void)err;
    if (d->in[0].dtype != SNUG_F32) {
        snprintf(out->impl, sizeof out->impl, "reference");
        return SNUG_OK;
    }
    const cut u = cut_for(&d->in[WEIGHTS], d->in[X].dims[0], n_threads);
    if (u.n_takers > 0)
        out->workspace_bytes =
            (size_t)((u.n_takers - 1) * taker_floats(&u) + u.own_floats) * sizeof(float);
    out->efficiency *= update_efficiency(&u);
    return SNUG_OK;
}

SN_CPU_FAMILY(matmul_adam, .reference = reference_matmul_adam, .run = run_matmul_adam,
              .describe = describe_matmul_adam)
