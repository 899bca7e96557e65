/* softmax_fast.c: f32 softmax and cross-entropies; halves run on lines of f32 (row_lines.h).
 *
 * Narrow rows (up to NARROW classes) are taken ROWS at a time and turned, so that a vector holds
 * the same class of ROWS rows: ten classes fill vectors, too. A last group of fewer rows computes
 * lanes that nobody reads. Wide rows are taken one by one, their sums in LANES running sums. Which
 * way depends on the width alone, and in both a row goes through the same operations in the same
 * order wherever it stands. */
#include "kernels/cpu/softmax.h"

#include "kernels/cpu/loops.h"
#include "kernels/cpu/real_elements.h"
#include "kernels/cpu/row_lines.h"
#include "kernels/cpu/vmath.h"

enum { ROWS = 16, NARROW = 64, LANES = 16 };

/* What softmax needs of a row: sum is that of exp(x - max), at least 1 where a class is finite. */
typedef struct {
    float max, sum;
} stats;

static inline float larger(float v, float max) {
    return ((v > max) | (v != v)) ? v : max;
}

/* A row of -infinity alone: exp(-inf - 0) is 0, as it should be. */
static inline float usable(float max) {
    return max == -INFINITY ? 0.0f : max;
}

/* --- narrow rows, turned --------------------------------------------------------------------- */
typedef struct {
    float v[NARROW][ROWS];
} strip;

/* Rows [first, first + n), 1 <= n <= ROWS. */
typedef struct {
    int64_t first, n, width;
} group;

/* Lanes without a row repeat the first. */
static void read_strip(const group *g, const float *x, strip *s) {
    for (int64_t r = 0; r < ROWS; r++) {
        const float *row = x + (g->first + (r < g->n ? r : 0)) * g->width;
        for (int64_t k = 0; k < g->width; k++)
            s->v[k][r] = row[k];
    }
}

static void write_strip(const group *g, const strip *s, float *y) {
    for (int64_t r = 0; r < g->n; r++)
        for (int64_t k = 0; k < g->width; k++)
            y[(g->first + r) * g->width + k] = s->v[k][r];
}

/* x = exp(x - max) */
static void exp_strip(strip *restrict x, int64_t width, float *restrict max, float *restrict sum) {
#pragma omp simd
    for (int r = 0; r < ROWS; r++) {
        max[r] = -INFINITY;
        sum[r] = 0.0f;
    }
    for (int64_t k = 0; k < width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            max[r] = larger(x->v[k][r], max[r]);
#pragma omp simd
    for (int r = 0; r < ROWS; r++)
        max[r] = usable(max[r]);
    for (int64_t k = 0; k < width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++) {
            x->v[k][r] = sn_exp_f32(x->v[k][r] - max[r]);
            sum[r] += x->v[k][r];
        }
}

static void softmax_group(const sn_call *c, const group *g) {
    strip s;
    float max[ROWS], sum[ROWS];
    read_strip(g, c->in[0].data, &s);
    exp_strip(&s, g->width, max, sum);
    for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            s.v[k][r] /= sum[r];
    write_strip(g, &s, c->out[0].data);
}

static void log_softmax_group(const sn_call *c, const group *g) {
    strip s, e;
    float max[ROWS], sum[ROWS];
    read_strip(g, c->in[0].data, &s);
    e = s;
    exp_strip(&e, g->width, max, sum);
#pragma omp simd
    for (int r = 0; r < ROWS; r++)
        sum[r] = sn_log_f32(sum[r]);
    for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            s.v[k][r] = (s.v[k][r] - max[r]) - sum[r];
    write_strip(g, &s, c->out[0].data);
}

static void softmax_grad_group(const sn_call *c, const group *g) {
    strip dy, y;
    float dot[ROWS] = {0};
    read_strip(g, c->in[0].data, &dy);
    read_strip(g, c->in[1].data, &y);
    for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            dot[r] += dy.v[k][r] * y.v[k][r];
    for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            y.v[k][r] *= dy.v[k][r] - dot[r];
    write_strip(g, &y, c->out[0].data);
}

static bool takes_unit_labels(const sn_call *c) {
    return c->op == SN_OP_softmax_xent_grad && c->attrs->xent.unit != 0;
}

static bool has_class_numbers(const sn_call *c) {
    return c->in[1].type.dtype != SNUG_F32;
}

static void xent_group(const sn_call *c, const group *g) {
    strip e, labels;
    float max[ROWS], sum[ROWS], loss[ROWS] = {0};
    const float *x = c->in[0].data;
    read_strip(g, x, &e);
    exp_strip(&e, g->width, max, sum);
#pragma omp simd
    for (int r = 0; r < ROWS; r++)
        sum[r] = sn_log_f32(sum[r]);
    for (int64_t r = 0; has_class_numbers(c) && r < g->n; r++) {
        const int64_t label = sn_class_at(&c->in[1], g->first + r, g->width);
        loss[r] = label < 0 ? 0.0f : sum[r] + (max[r] - x[(g->first + r) * g->width + label]);
    }
    if (!has_class_numbers(c)) {
        read_strip(g, x, &e);
        read_strip(g, c->in[1].data, &labels);
        for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
            for (int r = 0; r < ROWS; r++) {
                const float term = labels.v[k][r] * (sum[r] + (max[r] - e.v[k][r]));
                loss[r] += labels.v[k][r] == 0.0f ? 0.0f : term;
            }
    }
    for (int64_t r = 0; r < g->n; r++)
        ((float *)c->out[0].data)[g->first + r] = loss[r];
}

/* Labels as weights and their sum; a class number is a weight of 1 for its class. */
static void read_labels(const sn_call *c, const group *g, strip *labels, float weight[ROWS]) {
    for (int r = 0; r < ROWS; r++)
        weight[r] = 0.0f;
    if (!has_class_numbers(c)) {
        read_strip(g, c->in[1].data, labels);
        for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
            for (int r = 0; r < ROWS; r++)
                weight[r] += labels->v[k][r];
        return;
    }
    for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            labels->v[k][r] = 0.0f;
    for (int64_t r = 0; r < g->n; r++) {
        const int64_t label = sn_class_at(&c->in[1], g->first + r, g->width);
        if (label >= 0)
            labels->v[label][r] = weight[r] = 1.0f;
    }
}

static void xent_grad_group(const sn_call *c, const group *g) {
    strip x, labels;
    float max[ROWS], sum[ROWS], weight[ROWS], dloss[ROWS] = {0};
    read_strip(g, c->in[0].data, &x);
    exp_strip(&x, g->width, max, sum);
    read_labels(c, g, &labels, weight);
    for (int64_t r = 0; r < g->n; r++)
        dloss[r] = ((const float *)c->in[2].data)[g->first + r];
    const bool unit = takes_unit_labels(c);
#pragma omp simd
    for (int r = 0; r < ROWS; r++)
        weight[r] = (unit ? 1.0f : weight[r]) / sum[r];
    for (int64_t k = 0; k < g->width; k++)
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            x.v[k][r] = (x.v[k][r] * weight[r] - labels.v[k][r]) * dloss[r];
    write_strip(g, &x, c->out[0].data);
}

/* --- wide rows, one by one ------------------------------------------------------------------- */
/* Element i goes to running sum i % LANES; these are added in order. */
static double add_lanes(const float lane[LANES]) {
    double sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += (double)lane[l];
    return sum;
}

/* Calls body(first, n) for runs of LANES elements and one shorter last run; n is a constant in the
 * first case, so that loops over it become one vector operation. */
#define EACH_RUN(count, body)                                                                      \
    do {                                                                                           \
        int64_t first_ = 0;                                                                        \
        for (; first_ + LANES <= (count); first_ += LANES)                                         \
            body(first_, LANES);                                                                   \
        if (first_ < (count))                                                                      \
            body(first_, (count)-first_);                                                          \
    } while (0)

static float row_max(const float *x, int64_t n) {
    float lane[LANES], most = -INFINITY;
    for (int l = 0; l < LANES; l++)
        lane[l] = -INFINITY;
#define BODY(first, count)                                                                         \
    _Pragma("omp simd") for (int64_t l = 0; l < (count); l++) lane[l] =                            \
        larger(x[(first) + l], lane[l])
    EACH_RUN(n, BODY);
#undef BODY
    for (int l = 0; l < LANES; l++)
        most = larger(lane[l], most);
    return usable(most);
}

/* e = exp(x - max) as well; e may be x. */
static stats exp_row(const float *x, float *e, int64_t n) {
    float lane[LANES] = {0};
    const float max = row_max(x, n);
#define BODY(first, count)                                                                         \
    _Pragma("omp simd") for (int64_t l = 0; l < (count); l++) {                                    \
        const float v = sn_exp_f32(x[(first) + l] - max);                                          \
        lane[l] += v;                                                                              \
        e[(first) + l] = v;                                                                        \
    }
    EACH_RUN(n, BODY);
#undef BODY
    return (stats){max, (float)add_lanes(lane)};
}

/* The same without the exponentials. */
static stats row_stats(const float *x, int64_t n) {
    float lane[LANES] = {0};
    const float max = row_max(x, n);
#define BODY(first, count)                                                                         \
    _Pragma("omp simd") for (int64_t l = 0; l < (count); l++) lane[l] +=                           \
        sn_exp_f32(x[(first) + l] - max)
    EACH_RUN(n, BODY);
#undef BODY
    return (stats){max, (float)add_lanes(lane)};
}

static float dot(const float *a, const float *b, int64_t n) {
    float lane[LANES] = {0};
#define BODY(first, count)                                                                         \
    _Pragma("omp simd") for (int64_t l = 0; l < (count); l++) lane[l] +=                           \
        a[(first) + l] * b[(first) + l]
    EACH_RUN(n, BODY);
#undef BODY
    return (float)add_lanes(lane);
}

static float total(const float *a, int64_t n) {
    float lane[LANES] = {0};
#define BODY(first, count)                                                                         \
    _Pragma("omp simd") for (int64_t l = 0; l < (count); l++) lane[l] += a[(first) + l]
    EACH_RUN(n, BODY);
#undef BODY
    return (float)add_lanes(lane);
}

/* Row r of operand i, as `width` floats. */
static const float *row_in(const sn_call *c, int i, int64_t r, int64_t width) {
    return (const float *)c->in[i].data + r * width;
}

static float *row_out(const sn_call *c, int64_t r, int64_t width) {
    return (float *)c->out[0].data + r * width;
}

static void softmax_row(const sn_call *c, int64_t r, int64_t width) {
    float *y = row_out(c, r, width);
    const stats t = exp_row(row_in(c, 0, r, width), y, width);
    for (int64_t i = 0; i < width; i++)
        y[i] /= t.sum;
}

static void log_softmax_row(const sn_call *c, int64_t r, int64_t width) {
    const float *x = row_in(c, 0, r, width);
    float *y = row_out(c, r, width);
    const stats t = row_stats(x, width);
    const float log_sum = sn_log_f32(t.sum);
    for (int64_t i = 0; i < width; i++)
        y[i] = (x[i] - t.max) - log_sum;
}

static void softmax_grad_row(const sn_call *c, int64_t r, int64_t width) {
    const float *dy = row_in(c, 0, r, width), *y = row_in(c, 1, r, width);
    float *dx = row_out(c, r, width);
    const float d = dot(dy, y, width);
    for (int64_t i = 0; i < width; i++)
        dx[i] = y[i] * (dy[i] - d);
}

static void xent_row(const sn_call *c, int64_t r, int64_t width) {
    const float *x = row_in(c, 0, r, width);
    const stats t = row_stats(x, width);
    const float log_sum = sn_log_f32(t.sum);
    float *loss = (float *)c->out[0].data + r;
    if (has_class_numbers(c)) {
        const int64_t label = sn_class_at(&c->in[1], r, width);
        *loss = label < 0 ? 0.0f : log_sum + (t.max - x[label]);
        return;
    }
    const float *labels = row_in(c, 1, r, width);
    float lane[LANES] = {0};
#define BODY(first, count)                                                                         \
    _Pragma("omp simd") for (int64_t l = 0; l < (count); l++) {                                    \
        const float term = labels[(first) + l] * (log_sum + (t.max - x[(first) + l]));             \
        lane[l] += labels[(first) + l] == 0.0f ? 0.0f : term;                                      \
    }
    EACH_RUN(width, BODY);
#undef BODY
    *loss = (float)add_lanes(lane);
}

static void xent_grad_row(const sn_call *c, int64_t r, int64_t width) {
    const float dloss = ((const float *)c->in[2].data)[r];
    float *dx = row_out(c, r, width);
    const stats t = exp_row(row_in(c, 0, r, width), dx, width);
    if (has_class_numbers(c)) {
        const int64_t label = sn_class_at(&c->in[1], r, width);
        const float weight = label < 0 ? 0.0f : 1.0f / t.sum;
        for (int64_t i = 0; i < width; i++)
            dx[i] = (dx[i] * weight - (i == label ? 1.0f : 0.0f)) * dloss;
        return;
    }
    const float *labels = row_in(c, 1, r, width);
    const float weight = (takes_unit_labels(c) ? 1.0f : total(labels, width)) / t.sum;
    for (int64_t i = 0; i < width; i++)
        dx[i] = (dx[i] * weight - labels[i]) * dloss;
}

/* --- all rows -------------------------------------------------------------------------------- */
typedef void (*group_body)(const sn_call *c, const group *g);
typedef void (*row_body)(const sn_call *c, int64_t row, int64_t width);

typedef struct {
    const sn_call *c;
    group_body narrow;
    row_body wide;
    int64_t rows, width;
} row_loop;

static void run_groups(const void *ctx, int64_t begin, int64_t end) {
    const row_loop *l = ctx;
    for (int64_t first = begin * ROWS; first < sn_min_i64(end * ROWS, l->rows); first += ROWS) {
        const group g = {first, sn_min_i64(ROWS, l->rows - first), l->width};
        if (l->width <= NARROW)
            l->narrow(l->c, &g);
        for (int64_t r = first; l->width > NARROW && r < first + g.n; r++)
            l->wide(l->c, r, l->width);
    }
}

/* Rows [0, n) of another call. */
static void run_lined(const void *ctx, const sn_call *c, int64_t n) {
    row_loop l = *(const row_loop *)ctx;
    l.c = c;
    l.rows = n;
    run_groups(&l, 0, sn_ceil_div(n, ROWS));
}

static const sn_row_roles roles[SN_N_OPS] = {
    [SN_OP_softmax] = {"r", "r", 0},
    [SN_OP_log_softmax] = {"r", "r", 0},
    [SN_OP_softmax_grad] = {"rr", "r", 0},
    [SN_OP_softmax_xent] = {"rr", "s", 0},
    [SN_OP_softmax_xent_grad] = {"rrs", "r", 0},
    [SN_OP_sparse_xent] = {"rs", "s", 0},
    [SN_OP_sparse_xent_grad] = {"rss", "r", 0},
};

size_t SN_CPU(softmax_workspace)(const sn_opdesc *d, int n_threads) {
    return sn_desc_has_halves(d) ? sn_row_lines_bytes(d, &roles[d->op], n_threads) : 0;
}

static void run_rows(const sn_call *c, group_body narrow, row_body wide) {
    const row_loop l = {c, narrow, wide, sn_rows_of(&c->in[0].type), sn_width_of(&c->in[0].type)};
    if (sn_call_has_halves(c)) {
        sn_row_lines lines;
        sn_row_lines_begin(&lines, c, &roles[c->op]);
        sn_row_lines_run(&lines, run_lined, &l);
        return;
    }
    /* an exp costs more than a move */
    sn_parallel(c, 4 * l.rows * l.width, sn_ceil_div(l.rows, ROWS), run_groups, &l);
}

void SN_CPU(softmax_f32)(const sn_call *c) {
    run_rows(c, softmax_group, softmax_row);
}

void SN_CPU(log_softmax_f32)(const sn_call *c) {
    run_rows(c, log_softmax_group, log_softmax_row);
}

void SN_CPU(softmax_grad_f32)(const sn_call *c) {
    run_rows(c, softmax_grad_group, softmax_grad_row);
}

void SN_CPU(xent_f32)(const sn_call *c) {
    run_rows(c, xent_group, xent_row);
}

void SN_CPU(xent_grad_f32)(const sn_call *c) {
    run_rows(c, xent_grad_group, xent_grad_row);
}

static void sigmoid_xent_span(const sn_call *c, int64_t first, int64_t n) {
    const float *x = (const float *)c->in[0].data + first,
                *z = (const float *)c->in[1].data + first;
    float *loss = (float *)c->out[0].data + first;
    for (int64_t i = 0; i < n; i++)
        loss[i] = sn_softplus_f32(x[i]) - x[i] * z[i];
}

void SN_CPU(sigmoid_xent_f32)(const sn_call *c) {
    const int64_t n = sn_type_count(&c->in[0].type);
    if (sn_call_has_halves(c))
        sn_line_spans(c, n, sigmoid_xent_span, SNUG_F32);
    else
        sn_spans(c, n, sigmoid_xent_span);
}
