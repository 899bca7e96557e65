/* update_dense.c: the family matmul_adam: Adam's update of a dense layer's weights w [M, N] by the
 * gradient x^T dy of x [K, M] and dy [K, N], which exists as a whole only where it is an output; in
 * the row matmul_adam_dx also dx = dy w^T with the weights as they were, which may lie over x.
 *
 * Rows of w go in spans: a span's gradient is made in the taker's scratch, then its columns of dx,
 * and then the update takes the gradient, all while they are in the cache. Sums are added as
 * product.h orders them (terms one by one within a piece, pieces within a group, then the groups),
 * and the update is adam's own loop: so the bits of the rows matmul and adam apart.
 *
 * Narrow weights, those with short rows, go a few rows at a time through all three, and what
 * comes next is fetched meanwhile: memory is busy while sums, roots and quotients are computed.
 *
 * x and dy may be halves beside f32 weights (update_dense_halves.c): the bits are those of the
 * rows apart there, too, of a matmul whose result is f32.
 *
 * Scratch per taker: turned weights for dx; sums of a piece and of a group, where there are
 * several; the gradient of a span. Narrow weights need none, but for halves. Every taker has a
 * first span of its own, the last taker's is span 0, which is the longest: the last byte is always
 * written. */
#include "kernels/cpu/update_dense.h"

#include "kernels/cpu/adam.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/pairs.h"
#include "kernels/cpu/real_elements.h"

#include <stdio.h>
#include <string.h>

enum {
    WEIGHTS = SN_DENSE_W,
    MEAN = SN_DENSE_MEAN,
    SQUARE = SN_DENSE_SQUARE,
    X = SN_DENSE_X,
    DY = SN_DENSE_DY,
    DX = SN_DENSE_DX
};
enum { NARROW = SN_DENSE_NARROW, ROWS = SN_DENSE_ROWS };

typedef sn_dense_cut cut;
typedef sn_dense_pass pass;
typedef sn_dense_span span;

static bool makes_dx(int n_out, const sn_attrs *a) {
    return n_out - (int)a->matmul_adam.gradient > DX;
}

/* The output that the gradient is, or NULL. */
static const snug_view *gradient_out(const sn_call *c) {
    return c->attrs->matmul_adam.gradient ? &c->out[c->n_out - 1] : NULL;
}

/* --- reference ------------------------------------------------------------------------------- */
/* As the row matmul would store it beside weights of this type. */
static double stored_as(const snug_view *w, double v) {
    union {
        double wide;
        float single;
        uint16_t half;
    } place;
    sn_reals r = sn_reals_of(w);
    r.data = &place;
    sn_real_put(r, 0, v);
    return sn_real_at(r, 0);
}

static double gradient_at(const sn_call *c, int64_t row, int64_t column) {
    const sn_reals x = sn_reals_of(&c->in[X]), dy = sn_reals_of(&c->in[DY]);
    const int64_t *dims = c->in[WEIGHTS].type.dims;
    double sum = 0;
    for (int64_t k = 0; k < c->in[X].type.dims[0]; k++)
        sum += sn_real_at(x, k * dims[0] + row) * sn_real_at(dy, k * dims[1] + column);
    return stored_as(&c->in[WEIGHTS], sum);
}

/* A parameter as the weights' type has it. */
static double param_of(const sn_call *c, int i) {
    const double value = c->param[i].real;
    return c->in[WEIGHTS].type.dtype == SNUG_F64 ? value : (double)(float)value;
}

/* The averages of element i, by its gradient. */
static void average(const sn_call *c, int64_t i, double g) {
    const snug_view *gradient = gradient_out(c);
    const double mean = sn_real_at(sn_reals_of(&c->in[MEAN]), i),
                 square = sn_real_at(sn_reals_of(&c->in[SQUARE]), i);
    sn_real_put(sn_reals_of(&c->out[MEAN]), i, mean + (g - mean) * param_of(c, 1));
    sn_real_put(sn_reals_of(&c->out[SQUARE]), i, square + (g * g - square) * param_of(c, 2));
    if (gradient)
        sn_real_put(sn_reals_of(gradient), i, g);
}

/* Row `row` of w is column `row` of x and dx. */
static void reference_dx(const sn_call *c, int64_t row) {
    const sn_reals w = sn_reals_factor(&c->in[WEIGHTS], &c->in[DY]), dy = sn_reals_of(&c->in[DY]);
    const int64_t *dims = c->in[WEIGHTS].type.dims;
    for (int64_t k = 0; k < c->in[X].type.dims[0]; k++) {
        double sum = 0;
        for (int64_t n = 0; n < dims[1]; n++)
            sum += sn_real_at(dy, k * dims[1] + n) * sn_real_at(w, row * dims[1] + n);
        sn_real_put(sn_reals_of(&c->out[DX]), k * dims[0] + row, sum);
    }
}

static void step_weight(const sn_call *c, int64_t i) {
    const double mean = sn_real_at(sn_reals_of(&c->out[MEAN]), i),
                 square = sn_real_at(sn_reals_of(&c->out[SQUARE]), i),
                 w = sn_real_at(sn_reals_of(&c->in[WEIGHTS]), i);
    sn_real_put(sn_reals_of(&c->out[WEIGHTS]), i,
                w - param_of(c, 0) * mean / (sqrt(square) + param_of(c, 3)));
}

/* Row by row of w: first what needs x, then what needs w and may overwrite x, then w. */
static snug_status reference_matmul_adam(const sn_call *c, snug_error *err) {
    (void)err;
    const int64_t rows = c->in[WEIGHTS].type.dims[0], columns = c->in[WEIGHTS].type.dims[1];
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t n = 0; n < columns; n++)
            average(c, row * columns + n, gradient_at(c, row, n));
        if (makes_dx(c->n_out, c->attrs))
            reference_dx(c, row);
        for (int64_t n = 0; n < columns; n++)
            step_weight(c, row * columns + n);
    }
    return SNUG_OK;
}

/* --- spans ----------------------------------------------------------------------------------- */
/* Floats of a buffer of a span. */
static int64_t span_floats(const cut *u) {
    return u->rows * u->N;
}

static bool by_pairs(const snug_type *x) {
    return sn_pairs_take(x->dtype, x->dtype);
}

/* Steps of a sum of so many terms. */
static int64_t steps_of(const snug_type *x, int64_t terms) {
    return sn_ceil_div(terms, by_pairs(x) ? 2 : 1);
}

/* Sums of dx over nothing, and those in several groups, are the reference's. */
static bool is_fast(const snug_type *w, const snug_type *x, bool dx) {
    const int64_t pieces = sn_ceil_div(steps_of(x, w->dims[1]), SN_PRODUCT_DEPTH);
    return w->dtype == SNUG_F32 && (!dx || sn_product_groups(pieces) == 1);
}

/* Rows of a span: of floats that stay in the first-level cache. Where there are spans enough for
 * all takers, of four times as many: what memory is read in longer runs counts more then. */
static int64_t span_rows(int64_t M, int64_t N) {
    enum { FLOATS = 4096, MOST = 256, LONGER = 4, ENOUGH = 256 };
    const int64_t times = M / ENOUGH >= LONGER * MOST ? LONGER : 1;
    const int64_t wanted = N > 0 ? times * FLOATS / N / ROWS * ROWS : ROWS;
    return wanted < ROWS ? ROWS : sn_min_i64(wanted, times * MOST);
}

/* Of narrow weights: enough spans for all takers; the longer they are, the less is fetched beyond
 * their ends. */
static int64_t narrow_span_rows(int64_t M) {
    enum { ENOUGH = 64, LEAST = 256, MOST = 8192 };
    const int64_t wanted = M / ENOUGH / ROWS * ROWS;
    return wanted < LEAST ? LEAST : sn_min_i64(wanted, MOST);
}

/* Halves need a block of x; buffers stand in own in the order: turned, sums of dx, block, piece,
 * group, gradient; only those that are needed. */
static void cut_scratch(cut *u) {
    const int64_t block = u->halves ? sn_dense_depth(u->steps, u->n_pieces) * (int64_t)ROWS : 0;
    if (u->halves)
        sn_dense_halves_cut(u);
    else if (u->dx_pieces > 0 && !u->narrow)
        u->turned_floats = sn_lines(sn_gemm_packed(sn_dense_depth(u->N, u->dx_pieces), u->rows));
    const int64_t buffers = 1 + (u->n_groups > 1) + (u->n_pieces > 1);
    u->block_floats = u->narrow ? block : sn_lines(block);
    u->own_floats = u->turned_floats + u->back_floats + u->block_floats;
    if (!u->narrow)
        u->own_floats += (buffers - 1) * sn_lines(span_floats(u)) + span_floats(u);
}

static cut cut_for(const snug_type *w, const snug_type *x, bool dx, int n_threads) {
    enum { SMALL = 1 << 18 };
    cut u = {.M = w->dims[0], .N = w->dims[1], .K = x->dims[0]};
    const bool small = (double)u.M * (double)u.N * (double)(u.K + 1) < SMALL;
    u.halves = sn_dtype_is_half(x->dtype);
    u.pairs = by_pairs(x);
    u.steps = steps_of(x, u.K);
    u.back_steps = steps_of(x, u.N);
    u.n_pieces = sn_ceil_div(u.steps, SN_PRODUCT_DEPTH);
    u.n_groups = sn_product_groups(u.n_pieces);
    u.dx_pieces = dx ? sn_ceil_div(u.back_steps, SN_PRODUCT_DEPTH) : 0;
    u.narrow = u.N <= NARROW && u.n_pieces <= 1;
    u.rows = sn_min_i64(u.narrow ? narrow_span_rows(u.M) : span_rows(u.M, u.N), u.M);
    u.n_spans = u.rows > 0 && u.N > 0 ? sn_ceil_div(u.M, u.rows) : 0;
    u.n_takers =
        small || n_threads < 1 ? sn_min_i64(1, u.n_spans) : sn_min_i64(n_threads, u.n_spans);
    cut_scratch(&u);
    return u;
}

static int64_t taker_floats(const cut *u) {
    return sn_lines(u->own_floats);
}

/* --- the gradient ---------------------------------------------------------------------------- */
#define INLINE static inline __attribute__((always_inline))

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

/* The sums of steps [k, end) of a span. */
static void make_piece(const pass *l, span s, int64_t k, int64_t end, float *block, float *g) {
    const cut *u = &l->u;
    if (u->halves) {
        sn_dense_halves_piece(l, s, k, end, block, g);
        return;
    }
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

static float *make_gradient(const pass *l, span s, float *own) {
    const cut *u = &l->u;
    const int64_t depth = sn_dense_depth(u->steps, u->n_pieces), n = s.n * u->N;
    const int64_t line = sn_lines(span_floats(u));
    float *block = own + u->turned_floats + u->back_floats;
    float *piece = block + u->block_floats, *group = piece + (u->n_pieces > 1 ? line : 0);
    float *g = group + (u->n_groups > 1 ? line : 0);
    if (u->n_pieces == 0)
        memset(g, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < u->n_groups; i++) {
        float *sum = i == 0 ? g : group;
        const int64_t first = i * u->n_pieces / u->n_groups;
        for (int64_t p = first; p < (i + 1) * u->n_pieces / u->n_groups; p++) {
            float *part = p == first ? sum : piece;
            make_piece(l, s, p * depth, sn_min_i64((p + 1) * depth, u->steps), block, part);
            if (part != sum)
                add_to(sum, part, n);
        }
        if (sum != g)
            add_to(g, sum, n);
    }
    return g;
}

/* --- dx -------------------------------------------------------------------------------------- */
/* Columns [s.first, s.first + s.n) of dx from terms [k, k + terms), whose weights are turned. */
static void multiply(const pass *l, span s, int64_t k, int64_t terms, const float *turned) {
    enum { ROWS_OF_DX = 96 };
    const cut *u = &l->u;
    int64_t a_row[ROWS_OF_DX], c_row[ROWS_OF_DX], a_col[SN_PRODUCT_DEPTH];
    sn_gemm g = {.n = s.n, .k = terms, .a = l->c->in[DY].data, .b = turned, .add = k > 0};
    g.c = (float *)l->c->out[DX].data + s.first;
    g.a_row = a_row;
    g.a_col = a_col;
    g.c_row = c_row;
    for (int64_t j = 0; j < terms; j++)
        a_col[j] = k + j;
    for (int64_t m = 0; m < u->K; m += g.m) {
        g.m = sn_min_i64(ROWS_OF_DX, u->K - m);
        for (int64_t i = 0; i < g.m; i++) {
            a_row[i] = (m + i) * u->N;
            c_row[i] = (m + i) * u->M;
        }
        SN_CPU(gemm)(&g);
    }
}

static void make_dx(const pass *l, span s, float *turned) {
    const cut *u = &l->u;
    if (u->halves) {
        sn_dense_halves_dx(l, s, turned);
        return;
    }
    const int64_t depth = sn_dense_depth(u->N, u->dx_pieces);
    int64_t row[SN_PRODUCT_DEPTH];
    for (int64_t j = 0; j < depth; j++)
        row[j] = j;
    for (int64_t k = 0; k < u->N; k += depth) {
        const sn_gemm_source source = {
            .k = sn_min_i64(depth, u->N - k),
            .n = s.n,
            .b = (const float *)l->c->in[WEIGHTS].data + s.first * u->N + k,
            .row = row,
            .col = u->N,
        };
        SN_CPU(gemm_pack)(&source, turned);
        multiply(l, s, k, source.k, turned);
    }
}

/* --- dx of narrow weights -------------------------------------------------------------------- */
enum { DX_ROWS = 8 }; /* at once */

/* Columns [s.first, s.first + s.n) of dx, at most VL of them, in rows [k, k + rows): each
 * sum is a chain of its own, and the turned weights stay in registers. */
INLINE void narrow_rows(const pass *l, span s, int64_t k, const sn_vec *turned, const int rows) {
    const cut *u = &l->u;
    const float *dy = (const float *)l->c->in[DY].data + k * u->N;
    float *dx = (float *)l->c->out[DX].data + k * u->M + s.first;
    sn_vec sum[DX_ROWS] = {0};
#pragma GCC unroll 16
    for (int64_t j = 0; j < NARROW; j++) {
        if (j == u->N)
            break;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] = sn_vec_multiply_add(sn_vec_spread(dy[r * u->N + j]), turned[j], sum[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sn_vec_store_part(dx + r * u->M, sum[r], s.n);
}

/* The same in all rows. */
INLINE void narrow_columns(const pass *l, span s) {
    const cut *u = &l->u;
    const float *w = (const float *)l->c->in[WEIGHTS].data + s.first * u->N;
    sn_vec turned[NARROW];
#pragma GCC unroll 4
    for (int64_t j = 0; j < NARROW; j += SN_VL) {
        const int64_t left = u->N - j, lanes = left < 0 ? 0 : sn_min_i64(SN_VL, left);
#pragma GCC unroll 16
        for (int64_t i = 0; i < SN_VL; i++)
            turned[j + i] = i < s.n ? sn_vec_load_part(w + i * u->N + j, lanes) : (sn_vec){0};
        sn_vec_turn(turned + j);
    }
    int64_t k = 0;
    for (; k + DX_ROWS <= u->K; k += DX_ROWS)
        narrow_rows(l, s, k, turned, DX_ROWS);
    for (; k < u->K; k++)
        narrow_rows(l, s, k, turned, 1);
}

static void make_narrow_dx(const pass *l, span s) {
    int64_t i = 0;
    if (l->u.halves) {
        sn_dense_halves_narrow_dx(l, s);
        return;
    }
    for (; i + SN_VL <= s.n; i += SN_VL)
        narrow_columns(l, (span){s.first + i, SN_VL});
    if (i < s.n)
        narrow_columns(l, (span){s.first + i, s.n - i});
}

/* --- the update ------------------------------------------------------------------------------ */
/* Elements [first, first + n) of the weights, whose gradient is g. Some behind them are
 * fetched. */
static void update_weights(const sn_call *c, int64_t first, const float *g, int64_t n) {
    enum { LINE = 16, AHEAD = 20 * LINE };
    const float *w = (const float *)c->in[WEIGHTS].data + first,
                *m = (const float *)c->in[MEAN].data + first,
                *v = (const float *)c->in[SQUARE].data + first;
    float *w_out = (float *)c->out[WEIGHTS].data + first,
          *m_out = (float *)c->out[MEAN].data + first,
          *v_out = (float *)c->out[SQUARE].data + first;
    const float rate = (float)c->param[0].real, toward1 = (float)c->param[1].real,
                toward2 = (float)c->param[2].real, epsilon = (float)c->param[3].real;
    int64_t at = 0;
    for (; at + LINE <= n; at += LINE) {
        __builtin_prefetch(w + at + AHEAD);
        __builtin_prefetch(m + at + AHEAD);
        __builtin_prefetch(v + at + AHEAD);
        SN_IVDEP for (int64_t i = at; i < at + LINE; i++) ADAM_STEP(float, float, grad *grad)
    }
    for (int64_t i = at; i < n; i++)
        ADAM_STEP(float, float, grad *grad)
}

static void copy_gradient(const pass *l, span s, const float *g) {
    const snug_view *gradient = gradient_out(l->c);
    if (gradient)
        memcpy((float *)gradient->data + s.first * l->u.N, g, (size_t)(s.n * l->u.N) * sizeof *g);
}

static void take_span(const pass *l, span s, float *own) {
    const float *g = make_gradient(l, s, own);
    if (l->u.dx_pieces > 0)
        make_dx(l, s, own);
    update_weights(l->c, s.first * l->u.N, g, s.n * l->u.N);
    copy_gradient(l, s, g);
}

/* So few rows at a time that nothing leaves the first-level cache on the way. */
static void take_narrow(const pass *l, span s, float *own) {
    const cut *u = &l->u;
    float g[ROWS * NARROW];
    for (int64_t i = 0; i < s.n; i += ROWS) {
        const span few = {s.first + i, sn_min_i64(ROWS, s.n - i)};
        make_piece(l, few, 0, u->steps, own, g);
        if (u->dx_pieces > 0)
            make_narrow_dx(l, few);
        update_weights(l->c, few.first * u->N, g, few.n * u->N);
        copy_gradient(l, few, g);
    }
}

static void take_spans(const void *ctx, int64_t first, int64_t end) {
    const pass *l = ctx;
    const cut *u = &l->u;
    for (int64_t taker = first; taker < end; taker++) {
        float *own = l->scratch + taker * taker_floats(u);
        for (int64_t i = u->n_takers - 1 - taker; i < u->n_spans;
             i = atomic_fetch_add(l->next, 1)) {
            const span s = {i * u->rows, sn_min_i64(u->rows, u->M - i * u->rows)};
            if (u->narrow)
                take_narrow(l, s, own);
            else
                take_span(l, s, own);
        }
    }
}

static snug_status run_matmul_adam(const sn_call *c, snug_error *err) {
    const snug_type *w = &c->in[WEIGHTS].type;
    const bool dx = makes_dx(c->n_out, c->attrs);
    if (!is_fast(w, &c->in[X].type, dx))
        return reference_matmul_adam(c, err);
    pass l = {.u = cut_for(w, &c->in[X].type, dx, c->n_threads)};
    l.c = c;
    l.shared = c->workspace;
    l.scratch = l.shared + sn_lines(l.u.shared_floats);
    _Atomic int64_t next = l.u.n_takers;
    l.next = &next;
    if (l.u.shared_floats > 0)
        sn_dense_halves_share(&l);
    sn_team_run(c->team, l.u.n_takers, take_spans, &l);
    return SNUG_OK;
}

/* Counted as a plain loop, which it is for few terms: then the slots' traffic weighs most. An
 * operation of the product takes `product` of one of the loop's, the update `update` of them
 * (measured with 8 and 32 terms and 10 columns); `own` is what the update is counted as. */
static double update_efficiency(const cut *u) {
    const double product = (u->narrow ? 0.22 : 0.18) * (u->pairs ? 0.8 : 1);
    const double update = u->narrow ? 9 : 17, own = 12;
    const double terms = (u->dx_pieces > 0 ? 4 : 2) * (double)u->K;
    return (terms + own) / (terms * product / sn_gemm_filled(u->N) + update);
}

static snug_status describe_matmul_adam(const sn_opdesc *d, int n_threads, sn_variant *out,
                                        snug_error *err) {
    (void)err;
    const bool dx = makes_dx(d->n_out, &d->attrs);
    if (!is_fast(&d->in[WEIGHTS], &d->in[X], dx)) {
        snprintf(out->impl, sizeof out->impl, "reference");
        return SNUG_OK;
    }
    const cut u = cut_for(&d->in[WEIGHTS], &d->in[X], dx, n_threads);
    if (u.n_takers > 0 && u.own_floats > 0)
        out->workspace_bytes = (size_t)(sn_lines(u.shared_floats) +
                                        (u.n_takers - 1) * taker_floats(&u) + u.own_floats) *
                               sizeof(float);
    out->efficiency *= update_efficiency(&u);
    return SNUG_OK;
}

SN_CPU_FAMILY(matmul_adam, .reference = reference_matmul_adam, .run = run_matmul_adam,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_matmul_adam)
