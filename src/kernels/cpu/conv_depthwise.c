/* conv_depthwise.c: convolutions where each channel has a kernel of its own (groups = channels
 * of x = channels of y): y, dx, and the gradient of the weights and the bias. Vectors run along the
 * channels, which lie next to each other; there is nothing to pack.
 *
 * y and dx are the same loops over windows (window.h). Kernels of common widths take a few
 * neighbouring pixels at once: a pixel of the source is loaded once for all windows of the row it
 * lies in, and zero where it lies in the padding. Other kernels go pixel by pixel and leave taps in
 * the padding out. In both an element adds its taps in their order, and the shape of one image
 * alone decides how it is computed. Where channels are no multiple of a vector the last one
 * overlaps the one before it: an element may be computed twice, to the same bits.
 *
 * The weights' gradient sums up each row of dy in registers, adds the rows of a block in order, and
 * the blocks in order; blocks come from the shape alone. Workspace: the sums of each block, [taps +
 * 1 with a bias][C].
 *
 * Halves: the rows that a strip of targets reads become f32 in the thread's scratch, with the
 * weights, and a row of targets lies there until it is rounded; likewise the rows of x and dy. */
#include "kernels/cpu/act.h"
#include "kernels/cpu/conv_fast.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/window.h"
#include "kernels/cpu/winograd_block.h"

/* Pixels at once: maps of common networks are 7, 14, 28, ... wide. */
enum { GROUP = 7, MAX_TAPS = 7 };

typedef struct {
    int64_t from, to;
} span;

/* Taps of target i that lie inside the source. */
static span taps_inside(const sn_window *w, int64_t i) {
    span s = {0, w->taps};
    const int64_t at = i * w->step + w->e0;
    while (s.from < s.to && (at + s.from * w->de < 0 || at + s.from * w->de >= w->size))
        s.from++;
    while (s.to > s.from && (at + (s.to - 1) * w->de < 0 || at + (s.to - 1) * w->de >= w->size))
        s.to--;
    return s;
}

/* Targets all of whose taps lie inside. */
static span targets_inside(const sn_window *w) {
    span s = {0, w->count};
    while (s.from < s.to && s.from * w->step + sn_window_low(w) < 0)
        s.from++;
    while (s.to > s.from && (s.to - 1) * w->step + sn_window_high(w) >= w->size)
        s.to--;
    return s;
}

/* Channel of the vector behind that at c: the last one overlaps. */
static int64_t next_vector(int64_t c, int64_t C) {
    return c + SN_VL < C && c + 2 * SN_VL > C ? C - SN_VL : c + SN_VL;
}

/* --- y and dx --------------------------------------------------------------------------------- */
typedef struct {
    sn_window w[2];
    int64_t C, kw;
    int64_t target_size[2];
    const float *source, *weights, *bias, *scale;
    float *target;
    int64_t act;
} pass;

/* One row of targets. */
typedef struct {
    const pass *s;
    const float *source; /* the row under tap 0, column 0 */
    float *target;       /* of column 0 */
    span down;           /* the kernel's rows that lie inside */
} row;

/* Scale, bias and the simple activations; n is SN_VL but for thin layers. */
static inline __attribute__((always_inline)) sn_vec finish_vector(const pass *s, sn_vec y,
                                                                  int64_t c, const int64_t n) {
    if (s->scale)
        y *= n == SN_VL ? sn_vec_load(s->scale + c) : sn_vec_load_part(s->scale + c, n);
    if (s->bias)
        y += n == SN_VL ? sn_vec_load(s->bias + c) : sn_vec_load_part(s->bias + c, n);
    if (s->act == SN_ACT_relu)
        return sn_vec_relu(y);
    return s->act == SN_ACT_relu6 ? sn_vec_relu6(y) : y;
}

/* Targets j .. j + n - 1. n, taps, step and checks are constants wherever this is called: the sums
 * and a row of the kernel are registers. Pixels are taken in the direction in which taps go (de is
 * 1 or -1), so that a window meets its taps in order. checks: some of them lie in the padding. */
static inline __attribute__((always_inline)) void
sum_group(const row *r, int64_t j, const int n, const int taps, const int step, const bool checks) {
    const pass *s = r->s;
    const sn_window *w = s->w;
    const int64_t C = s->C, de = w[1].de, first = de > 0 ? j : j + n - 1;
    const int64_t at = first * w[1].step + w[1].e0; /* column u * de + at is pixel u */
    const int64_t low = de > 0 ? -at : at - w[1].size + 1, high = low + w[1].size;
    const int64_t line = w[0].de * w[1].size * C, next = de * C;
    const int64_t kernel_line = w[0].dk * s->kw * C, kernel_next = w[1].dk * C;
    const int64_t to = (w[1].t0 + first * w[1].dt) * C, to_next = de * w[1].dt * C;
    const int64_t place = (w[0].k0 + r->down.from * w[0].dk) * s->kw + w[1].k0;
    for (int64_t c = 0; c < C; c = next_vector(c, C)) {
        const float *x = r->source + at * C + r->down.from * line + c;
        const float *weight = s->weights + place * C + c;
        sn_vec sum[GROUP] = {0};
        for (int64_t i = r->down.from; i < r->down.to; i++, x += line, weight += kernel_line) {
            sn_vec k[MAX_TAPS];
#pragma GCC unroll 7
            for (int t = 0; t < taps; t++)
                k[t] = sn_vec_load(weight + t * kernel_next);
#pragma GCC unroll 20
            for (int u = 0; u < (n - 1) * step + taps; u++) {
                const bool outside = checks && (u < low || u >= high);
                const sn_vec a = outside ? (sn_vec){0} : sn_vec_load(x + u * next);
#pragma GCC unroll 7
                for (int t = 0; t < n; t++)
                    if (u - t * step >= 0 && u - t * step < taps)
                        sum[t] = sn_vec_multiply_add(a, k[u - t * step], sum[t]);
            }
        }
#pragma GCC unroll 7
        for (int t = 0; t < n; t++)
            sn_vec_store(r->target + to + t * to_next + c, finish_vector(s, sum[t], c, SN_VL));
    }
}

/* A whole row of targets for a kernel of this many taps across. */
#define SUM_GROUPS(n, taps, step)                                                                  \
    for (; j + n <= count; j += n)                                                                 \
        if (j >= inside.from && j + n <= inside.to)                                                \
            sum_group(r, j, n, taps, step, false);                                                 \
        else                                                                                       \
            sum_group(r, j, n, taps, step, true);
#define ROW_OF(taps, step)                                                                         \
    static void row_##taps##_##step(const row *r) {                                                \
        const int64_t count = r->s->w[1].count;                                                    \
        const span inside = targets_inside(&r->s->w[1]);                                           \
        int64_t j = 0;                                                                             \
        SUM_GROUPS(GROUP, taps, step)                                                              \
        SUM_GROUPS(4, taps, step)                                                                  \
        SUM_GROUPS(2, taps, step)                                                                  \
        SUM_GROUPS(1, taps, step)                                                                  \
    }
ROW_OF(1, 1)
ROW_OF(2, 1)
ROW_OF(3, 1)
ROW_OF(5, 1)
ROW_OF(7, 1)
ROW_OF(3, 2)
ROW_OF(5, 2)
ROW_OF(7, 2)

/* Any kernel, pixel by pixel; n is SN_VL but for thin layers. */
static inline __attribute__((always_inline)) void sum_pixel(const row *r, int64_t j, int64_t c,
                                                            const int64_t n) {
    const pass *s = r->s;
    const sn_window *w = s->w;
    const span across = taps_inside(&w[1], j);
    const float *x = r->source + (j * w[1].step + w[1].e0) * s->C + c;
    sn_vec sum = {0};
    for (int64_t i = r->down.from; i < r->down.to; i++)
        for (int64_t u = across.from; u < across.to; u++) {
            const int64_t place = (w[0].k0 + i * w[0].dk) * s->kw + w[1].k0 + u * w[1].dk;
            const float *a = x + (i * w[0].de * w[1].size + u * w[1].de) * s->C;
            const float *k = s->weights + place * s->C + c;
            sum = n == SN_VL
                      ? sn_vec_multiply_add(sn_vec_load(a), sn_vec_load(k), sum)
                      : sn_vec_multiply_add(sn_vec_load_part(a, n), sn_vec_load_part(k, n), sum);
        }
    float *to = r->target + (w[1].t0 + j * w[1].dt) * s->C + c;
    sum = finish_vector(s, sum, c, n);
    if (n == SN_VL)
        sn_vec_store(to, sum);
    else
        sn_vec_store_part(to, sum, n);
}

static void row_of_any(const row *r) {
    const int64_t C = r->s->C;
    for (int64_t j = 0; j < r->s->w[1].count; j++) {
        if (C < SN_VL)
            sum_pixel(r, j, 0, C);
        for (int64_t c = 0; C >= SN_VL && c < C; c = next_vector(c, C))
            sum_pixel(r, j, c, SN_VL);
    }
}

typedef void (*row_kernel)(const row *r);

static row_kernel kernel_of(const pass *s) {
    static const row_kernel kernels[2][MAX_TAPS + 1] = {
        {NULL, row_1_1, row_2_1, row_3_1, NULL, row_5_1, NULL, row_7_1},
        {NULL, NULL, NULL, row_3_2, NULL, row_5_2, NULL, row_7_2}};
    const sn_window *w = &s->w[1];
    if (s->C < SN_VL || w->taps > MAX_TAPS || w->step > 2 || (w->de != 1 && w->de != -1) ||
        (w->de < 0 && w->step > 1))
        return row_of_any;
    const row_kernel kernel = kernels[w->step - 1][w->taps];
    return kernel ? kernel : row_of_any;
}

/* Row i of targets; source: the row under tap 0. */
static void run_row_at(const pass *s, int64_t i, const float *source, float *target) {
    const row r = {.s = s, .source = source, .target = target, .down = taps_inside(&s->w[0], i)};
    kernel_of(s)(&r);
}

/* Row i of image n's targets. */
static void run_row(const pass *s, int64_t n, int64_t i) {
    const sn_window *w = s->w;
    const int64_t line = n * w[0].size + i * w[0].step + w[0].e0;
    const int64_t down = n * s->target_size[0] + w[0].t0 + i * w[0].dt;
    run_row_at(s, i, s->source + line * w[1].size * s->C,
               s->target + down * s->target_size[1] * s->C);
}

static pass y_pass(const sn_conv_operands *o) {
    const sn_conv *v = &o->v;
    return (pass){.w = {sn_window_forward(v, 0), sn_window_forward(v, 1)},
                  .C = v->C,
                  .kw = v->kw,
                  .target_size = {v->oh, v->ow},
                  .source = o->x,
                  .weights = o->w,
                  .bias = o->bias,
                  .scale = o->scale,
                  .target = o->y,
                  .act = v->act};
}

static void y_row(const sn_conv_operands *o, int64_t n, int64_t i) {
    const pass s = y_pass(o);
    run_row(&s, n, i);
}

/* Columns j, j + stride, ... of row i of dx. */
static pass dx_pass(const sn_conv_operands *o, int64_t i, int64_t j) {
    const sn_conv *v = &o->v;
    return (pass){.w = {sn_window_backward(v, 0, i % v->stride[0]), sn_window_backward(v, 1, j)},
                  .C = v->C,
                  .kw = v->kw,
                  .target_size = {v->H, v->W},
                  .source = o->dy,
                  .weights = o->w,
                  .target = o->dx};
}

/* A row of dx has one window for each remainder of its columns by the stride. */
static void dx_row(const sn_conv_operands *o, int64_t n, int64_t i) {
    const sn_conv *v = &o->v;
    for (int64_t j = 0; j < sn_min_i64(v->stride[1], v->W); j++) {
        const pass s = dx_pass(o, i, j);
        run_row(&s, n, i / v->stride[0]);
    }
}

static void y_rows(const void *ctx, int64_t first, int64_t end) {
    const sn_conv_operands *o = ctx;
    const int64_t floats = o->v.ow * o->v.C;
    for (int64_t i = first; i < end; i++) {
        y_row(o, i / o->v.oh, i % o->v.oh);
        if (o->v.act != SN_ACT_none && o->v.act != SN_ACT_relu && o->v.act != SN_ACT_relu6)
            sn_act_f32(o->v.act, o->y + i * floats, floats);
    }
}

static void dx_rows(const void *ctx, int64_t first, int64_t end) {
    const sn_conv_operands *o = ctx;
    for (int64_t i = first; i < end; i++)
        dx_row(o, i / o->v.H, i % o->v.H);
}

void SN_CPU(depthwise_run)(const sn_conv_operands *o, const sn_call *c) {
    const int64_t rows = o->v.N * o->v.oh;
    sn_parallel(c, rows * o->v.ow * o->v.C, rows, y_rows, o);
}

void SN_CPU(depthwise_dx_run)(const sn_conv_operands *o, const sn_call *c) {
    const int64_t rows = o->v.N * o->v.H;
    sn_parallel(c, rows * o->v.W * o->v.C, rows, dx_rows, o);
}

/* --- y and dx of halves ----------------------------------------------------------------------- */
/* Strips of the target's rows. Scratch of a taker: weights | scale and bias | rows of the source |
 * a row of the target. */
typedef struct {
    const sn_conv_operands *o;
    bool back;          /* dx */
    int64_t rows, high; /* of the target, of a strip */
    int64_t n_strips;   /* of an image */
    int64_t target_width, source_size[2];
    const sn_stored *from, *to;
} strips;

static int64_t taps_reach(const sn_conv *v) {
    return (v->kh - 1) * v->dilation[0];
}

/* Rows of the source that n rows of the target read, at most. */
static int64_t rows_read(const strips *s, int64_t n) {
    const sn_conv *v = &s->o->v;
    const int64_t reach = s->back ? (n - 1 + taps_reach(v)) / v->stride[0] + 1
                                  : (n - 1) * v->stride[0] + taps_reach(v) + 1;
    return sn_min_i64(reach, s->source_size[0]);
}

/* Those that rows [i, end) read. */
static span rows_under(const strips *s, int64_t i, int64_t end) {
    const sn_conv *v = &s->o->v;
    const int64_t step = v->stride[0], pad = v->pad[0], first = i + pad - taps_reach(v);
    span r = {i * step - pad, (end - 1) * step - pad + taps_reach(v) + 1};
    if (s->back)
        r = (span){first > 0 ? sn_ceil_div(first, step) : 0, (end - 1 + pad) / step + 1};
    r.from = r.from < 0 ? 0 : r.from;
    r.to = sn_min_i64(r.to, s->source_size[0]);
    return r.from < r.to ? r : (span){0, 0};
}

static strips strips_of(const sn_conv_operands *o, bool back) {
    enum { MOST = 8, FLOATS = 1 << 16 };
    const sn_conv *v = &o->v;
    strips s = {
        .o = o,
        .back = back,
        .rows = back ? v->H : v->oh,
        .target_width = back ? v->W : v->ow,
        .source_size = {back ? v->oh : v->H, back ? v->ow : v->W},
        .from = back ? &o->halves->dy : &o->halves->x,
        .to = back ? &o->halves->dx : &o->halves->y,
    };
    s.high = sn_min_i64(MOST, s.rows);
    while (s.high > 1 && rows_read(&s, s.high) * s.source_size[1] * v->C > FLOATS)
        s.high--;
    s.n_strips = s.high > 0 ? sn_ceil_div(s.rows, s.high) : 0;
    return s;
}

/* Where the parts of a taker's scratch begin. */
typedef struct {
    int64_t lines, source, target, end;
} places;

static places places_of(const strips *s) {
    const sn_conv *v = &s->o->v;
    const int64_t lines = sn_lines(v->kh * v->kw * v->C);
    const int64_t source = lines + sn_lines((v->line ? 2 : v->bias) * v->C);
    const int64_t floats = s->high > 0 ? rows_read(s, s->high) * s->source_size[1] * v->C : 0;
    const int64_t target = source + sn_lines(floats);
    return (places){lines, source, target, target + s->target_width * v->C};
}

/* Row i, of an image whose source rows from `first` on are in the scratch. */
static void make_row(const strips *s, int64_t i, int64_t first, float *scratch) {
    const sn_conv_operands *o = s->o;
    const places at = places_of(s);
    const int64_t step = s->back ? o->v.stride[0] : 1, width = s->source_size[1] * o->v.C;
    for (int64_t j = 0; j < (s->back ? sn_min_i64(o->v.stride[1], o->v.W) : 1); j++) {
        pass p = s->back ? dx_pass(o, i, j) : y_pass(o);
        p.weights = scratch;
        p.scale = o->v.line ? scratch + at.lines : NULL;
        p.bias = !s->back && o->v.bias ? scratch + at.lines + (o->v.line ? o->v.C : 0) : NULL;
        const int64_t line = i / step * p.w[0].step + p.w[0].e0 - first;
        run_row_at(&p, i / step, scratch + at.source + line * width, scratch + at.target);
    }
}

static void make_strip(const void *ctx, int64_t i, int64_t before, float *scratch) {
    const strips *s = ctx;
    const sn_conv *v = &s->o->v;
    const sn_conv_halves *h = s->o->halves;
    const places at = places_of(s);
    const int64_t n = i / s->n_strips, first = i % s->n_strips * s->high;
    const int64_t end = sn_min_i64(first + s->high, s->rows), floats = s->target_width * v->C;
    const int64_t width = s->source_size[1] * v->C;
    const span source = rows_under(s, first, end);
    if (before < 0)
        sn_stored_read(&h->w, 0, v->kh * v->kw * v->C, scratch);
    if (before < 0 && v->line)
        sn_stored_read(&h->scale, 0, v->C, scratch + at.lines);
    if (before < 0 && v->bias && !s->back)
        sn_stored_read(&h->bias, 0, v->C, scratch + at.lines + (v->line ? v->C : 0));
    sn_stored_read(s->from, (n * s->source_size[0] + source.from) * width,
                   (source.to - source.from) * width, scratch + at.source);
    for (int64_t r = first; r < end; r++) {
        make_row(s, r, source.from, scratch);
        if (!s->back && v->act != SN_ACT_relu && v->act != SN_ACT_relu6)
            sn_act_f32(v->act, scratch + at.target, floats);
        sn_stored_write(s->to, (n * s->rows + r) * floats, floats, scratch + at.target, false);
    }
}

static sn_tasks strip_tasks(const strips *s, int n_threads) {
    const int64_t n = s->target_width * s->o->v.C > 0 ? s->o->v.N * s->n_strips : 0;
    const bool few = s->o->v.N * s->rows * s->target_width * s->o->v.C < SN_SMALL;
    return (sn_tasks){s, make_strip, n, sn_min_i64(few || n_threads < 1 ? 1 : n_threads, n),
                      places_of(s).end};
}

static size_t strips_workspace(const strips *s, int n_threads) {
    const sn_tasks t = strip_tasks(s, n_threads);
    return (size_t)sn_tasks_floats(&t) * sizeof(float);
}

static void run_strips(const strips *s, const sn_call *c) {
    const sn_tasks t = strip_tasks(s, c->n_threads);
    SN_CPU(winograd_take)(&t, c, c->workspace);
}

size_t SN_CPU(depthwise_halves_workspace)(const sn_conv_operands *o, int n_threads) {
    const strips s = strips_of(o, false);
    return strips_workspace(&s, n_threads);
}

size_t SN_CPU(depthwise_halves_dx_workspace)(const sn_conv_operands *o, int n_threads) {
    const strips s = strips_of(o, true);
    return strips_workspace(&s, n_threads);
}

void SN_CPU(depthwise_halves_run)(const sn_conv_operands *o, const sn_call *c) {
    const strips s = strips_of(o, false);
    run_strips(&s, c);
}

void SN_CPU(depthwise_halves_dx_run)(const sn_conv_operands *o, const sn_call *c) {
    const strips s = strips_of(o, true);
    run_strips(&s, c);
}

/* --- gradient of weights and bias ------------------------------------------------------------- */
enum { MAX_BLOCKS = 16 };

typedef struct {
    const sn_conv_operands *o;
    sn_window w[2];
    int64_t block_rows, n_blocks;
    float *sums; /* [n_blocks][sum_floats] */
} weights_pass;

static int64_t sum_floats(const sn_conv *v) {
    return (v->kh * v->kw + v->bias) * v->C;
}

static weights_pass weights_pass_of(const sn_conv_operands *o) {
    const sn_conv *v = &o->v;
    const int64_t rows = v->N * v->oh;
    weights_pass s = {.o = o, .w = {sn_window_forward(v, 0), sn_window_forward(v, 1)}};
    s.block_rows = rows > 0 ? sn_ceil_div(rows, MAX_BLOCKS) : 0;
    s.n_blocks = rows > 0 ? sn_ceil_div(rows, s.block_rows) : 0;
    return s;
}

/* A row of dy and the row of x under one row of the kernel, one vector of channels. */
typedef struct {
    const sn_window *w; /* across */
    int64_t C, lanes;
    const float *x, *dy; /* column 0 */
    float *sums;         /* of tap 0 */
} row_pair;

/* Pixels j .. j + n - 1 of dy times the pixels of x under them: neighbouring pixels of x go to sums
 * of their own, which need not wait for each other. n, taps, step and checks are constants. */
static inline __attribute__((always_inline)) void
multiply_group(const row_pair *r, int64_t j, sn_vec sum[2][MAX_TAPS], const int n, const int taps,
               const int step, const bool checks) {
    const int64_t at = j * r->w->step + r->w->e0;
    const float *from = r->x + at * r->C;
    sn_vec dy[GROUP];
#pragma GCC unroll 7
    for (int t = 0; t < n; t++)
        dy[t] = sn_vec_load(r->dy + (j + t) * r->C);
#pragma GCC unroll 20
    for (int u = 0; u < (n - 1) * step + taps; u++) {
        if (checks && (at + u < 0 || at + u >= r->w->size))
            continue;
        const sn_vec x = sn_vec_load(from + u * r->C);
#pragma GCC unroll 7
        for (int t = 0; t < n; t++) {
            const int q = u - t * step;
            if (q >= 0 && q < taps)
                sum[u % 2][q] = sn_vec_multiply_add(x, dy[t], sum[u % 2][q]);
        }
    }
}

#define MULTIPLY_GROUPS(n, taps, step)                                                             \
    for (; j + n <= r->w->count; j += n)                                                           \
        if (j >= inside.from && j + n <= inside.to)                                                \
            multiply_group(r, j, sum, n, taps, step, false);                                       \
        else                                                                                       \
            multiply_group(r, j, sum, n, taps, step, true);
#define PAIR_OF(taps, step)                                                                        \
    static void pair_##taps##_##step(const row_pair *r) {                                          \
        const span inside = targets_inside(r->w);                                                  \
        sn_vec sum[2][MAX_TAPS] = {0};                                                             \
        int64_t j = 0;                                                                             \
        MULTIPLY_GROUPS(GROUP, taps, step)                                                         \
        MULTIPLY_GROUPS(2, taps, step)                                                             \
        MULTIPLY_GROUPS(1, taps, step)                                                             \
        for (int q = 0; q < taps; q++) {                                                           \
            float *to = r->sums + q * r->C;                                                        \
            sn_vec_store(to, sn_vec_load(to) + (sum[0][q] + sum[1][q]));                           \
        }                                                                                          \
    }
PAIR_OF(3, 1)
PAIR_OF(5, 1)
PAIR_OF(7, 1)
PAIR_OF(3, 2)
PAIR_OF(5, 2)
PAIR_OF(7, 2)

/* Any kernel, tap by tap. */
static void pair_of_any(const row_pair *r) {
    for (int64_t q = 0; q < r->w->taps; q++) {
        sn_vec sum = {0};
        for (int64_t j = 0; j < r->w->count; j++) {
            const int64_t at = j * r->w->step + r->w->e0 + q * r->w->de;
            if (at >= 0 && at < r->w->size)
                sum = sn_vec_multiply_add(sn_vec_load_part(r->x + at * r->C, r->lanes),
                                          sn_vec_load_part(r->dy + j * r->C, r->lanes), sum);
        }
        float *to = r->sums + q * r->C;
        sn_vec_store_part(to, sn_vec_load_part(to, r->lanes) + sum, r->lanes);
    }
}

typedef void (*pair_kernel)(const row_pair *r);

static pair_kernel pair_kernel_of(const row_pair *r) {
    static const pair_kernel kernels[2][MAX_TAPS + 1] = {
        {NULL, NULL, NULL, pair_3_1, NULL, pair_5_1, NULL, pair_7_1},
        {NULL, NULL, NULL, pair_3_2, NULL, pair_5_2, NULL, pair_7_2}};
    const sn_window *w = r->w;
    if (r->lanes < SN_VL || w->taps > MAX_TAPS || w->step > 2 || w->de != 1)
        return pair_of_any;
    const pair_kernel kernel = kernels[w->step - 1][w->taps];
    return kernel ? kernel : pair_of_any;
}

/* A row of dy and the rows of x under taps [from, to) of the kernel, the first of which is `x`. */
typedef struct {
    const float *x, *dy;
    int64_t step; /* floats between those rows of x */
    span down;
} row_set;

static int64_t line_under(const weights_pass *s, int64_t n, int64_t i, int64_t p) {
    return n * s->o->v.H + i * s->w[0].step + s->w[0].e0 + p * s->w[0].de;
}

/* Row i of image n, where it lies, or of halves in the scratch. */
static row_set rows_of(const weights_pass *s, int64_t n, int64_t i, float *scratch) {
    const sn_conv *v = &s->o->v;
    const int64_t width = v->W * v->C, dy = (n * v->oh + i) * v->ow * v->C;
    const span down = taps_inside(&s->w[0], i);
    if (!s->o->halves)
        return (row_set){s->o->x + line_under(s, n, i, down.from) * width, s->o->dy + dy,
                         s->w[0].de * width, down};
    float *rows = scratch + sn_lines(v->ow * v->C);
    sn_stored_read(&s->o->halves->dy, dy, v->ow * v->C, scratch);
    for (int64_t p = down.from; p < down.to; p++)
        sn_stored_read(&s->o->halves->x, line_under(s, n, i, p) * width, width,
                       rows + (p - down.from) * width);
    return (row_set){rows, scratch, width, down};
}

/* Every tap of every channel. Vectors do not overlap here: sums are added to. */
static void add_rows(const weights_pass *s, const row_set *rows, float *sums) {
    const sn_conv *v = &s->o->v;
    const float *dy = rows->dy;
    for (int64_t p = rows->down.from; p < rows->down.to; p++) {
        for (int64_t c = 0; c < v->C; c += SN_VL) {
            const row_pair r = {.w = &s->w[1],
                                .C = v->C,
                                .lanes = sn_min_i64(SN_VL, v->C - c),
                                .x = rows->x + (p - rows->down.from) * rows->step + c,
                                .dy = dy + c,
                                .sums = sums + p * v->kw * v->C + c};
            pair_kernel_of (&r)(&r);
        }
    }
    float *db = sums + v->kh * v->kw * v->C;
    for (int64_t j = 0; v->bias && j < v->ow; j++)
        for (int64_t c = 0; c < v->C; c++)
            db[c] += dy[j * v->C + c];
}

/* scratch: of halves. */
static void add_block(const void *ctx, int64_t block, int64_t before, float *scratch) {
    const weights_pass *s = ctx;
    const sn_conv *v = &s->o->v;
    (void)before;
    float *sums = s->sums + block * sum_floats(v);
    memset(sums, 0, (size_t)sum_floats(v) * sizeof(float));
    const int64_t last = sn_min_i64(v->N * v->oh, (block + 1) * s->block_rows);
    for (int64_t i = block * s->block_rows; i < last; i++) {
        const row_set rows = rows_of(s, i / v->oh, i % v->oh, scratch);
        add_rows(s, &rows, sums);
    }
}

static void add_blocks(const void *ctx, int64_t first, int64_t end) {
    for (int64_t block = first; block < end; block++)
        add_block(ctx, block, -1, NULL);
}

/* Of halves: takers with a row of dy and the rows of x that meet it. */
static sn_tasks block_tasks(const weights_pass *s, int n_threads) {
    const sn_conv *v = &s->o->v;
    const bool few = v->N * v->oh * v->ow * v->C < SN_SMALL;
    return (sn_tasks){s, add_block, s->n_blocks,
                      sn_min_i64(few || n_threads < 1 ? 1 : n_threads, s->n_blocks),
                      sn_lines(v->ow * v->C) + v->kh * v->W * v->C};
}

/* The same of halves, or of f32 beside them. */
static void store_sums(const weights_pass *s, int64_t from, int64_t n, const sn_stored *to) {
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t block = 0; block < s->n_blocks; block++)
            sum += s->sums[block * sum_floats(&s->o->v) + from + i];
        sn_stored_write(to, i, 1, &sum, s->o->accumulate);
    }
}

/* to[i] (+)= the sums of all blocks. */
static void finish_sums(const weights_pass *s, int64_t from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++) {
        float sum = s->o->accumulate ? to[i] : 0.0f;
        for (int64_t block = 0; block < s->n_blocks; block++)
            sum += s->sums[block * sum_floats(&s->o->v) + from + i];
        to[i] = sum;
    }
}

size_t SN_CPU(depthwise_dw_workspace)(const sn_conv_operands *o, int n_threads) {
    (void)n_threads; /* the blocks follow from the shape */
    return (size_t)(weights_pass_of(o).n_blocks * sum_floats(&o->v)) * sizeof(float);
}

/* The takers' scratch, then the sums. */
size_t SN_CPU(depthwise_halves_dw_workspace)(const sn_conv_operands *o, int n_threads) {
    const weights_pass s = weights_pass_of(o);
    const sn_tasks t = block_tasks(&s, n_threads);
    const int64_t sums = s.n_blocks * sum_floats(&o->v);
    return sums > 0 ? (size_t)(sn_lines(sn_tasks_floats(&t)) + sums) * sizeof(float) : 0;
}

void SN_CPU(depthwise_halves_dw_run)(const sn_conv_operands *o, const sn_call *c) {
    const int64_t taps = o->v.kh * o->v.kw * o->v.C;
    weights_pass s = weights_pass_of(o);
    const sn_tasks t = block_tasks(&s, c->n_threads);
    s.sums = (float *)c->workspace + sn_lines(sn_tasks_floats(&t));
    if (taps > 0)
        SN_CPU(winograd_take)(&t, c, c->workspace);
    store_sums(&s, 0, taps, &o->halves->dw);
    if (o->v.bias)
        store_sums(&s, taps, o->v.C, &o->halves->db);
}

void SN_CPU(depthwise_dw_run)(const sn_conv_operands *o, const sn_call *c) {
    const int64_t taps = o->v.kh * o->v.kw * o->v.C;
    weights_pass s = weights_pass_of(o);
    s.sums = c->workspace;
    sn_parallel(c, o->v.N * o->v.oh * o->v.ow * o->v.C, s.n_blocks, add_blocks, &s);
    finish_sums(&s, 0, taps, o->dw);
    if (o->db)
        finish_sums(&s, taps, o->v.C, o->db);
}
