/* norm_fast.c: normalisation of f32 and of halves, sums in double. Sums over rows read halves as
 * they are; the other kernels run on lines of f32 (row_lines.h).
 *
 * Sums over rows: rows are cut into blocks by their number alone; each block adds its rows in
 * order, one double per channel, and the blocks' sums are added in order. Sums over a row:
 * ROW_LANES running sums, element i goes to sum i % ROW_LANES, and these are added in order. So
 * bits depend neither on threads nor on a row's or channel's place. */
#include "kernels/cpu/norm.h"

#include "kernels/cpu/real_elements.h"
#include "kernels/cpu/row_lines.h"

#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX2__)
#define LANES 4
#else
#define LANES 2
#endif
enum { WIDE = 4 * LANES, ROW_LANES = 8, MAX_BLOCKS = 32, BLOCK_ROWS = 512, STRIP = 512 };

typedef double vec __attribute__((vector_size(LANES * sizeof(double))));
typedef float half_vec __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef double vec_in_memory
    __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));

/* LANES elements from i on, of a type that is a constant in the loops where it matters. */
static inline __attribute__((always_inline)) vec load(const snug_dtype kind, const void *p,
                                                      int64_t i) {
    half_vec v;
    if (kind == SNUG_F32)
        v = *(const half_vec *)((const float *)p + i);
    else
        SN_HALVES_OF(LANES)(kind, p, i, &v);
    return __builtin_convertvector(v, vec);
}

static inline __attribute__((always_inline)) double load_one(const snug_dtype kind, const void *p,
                                                             int64_t i) {
    return (double)(kind == SNUG_F32 ? ((const float *)p)[i] : sn_half_at(kind, p, i));
}

/* --- sums over rows -------------------------------------------------------------------------- */
typedef struct {
    sn_sums_kind kind;
    snug_dtype kind_of_rows;          /* f32 or a half */
    const void *g, *x;                /* moments: x alone, as g */
    const snug_view *mean, *variance; /* layernorm: the second is rstd */
    double epsilon;
    int64_t rows, C;
    int64_t n_blocks, block_rows;
    double *partial; /* [block][2][C] */
} sums;

/* Not by the channels: a part of them would else be summed in another order than the whole. */
static int64_t count_blocks(int64_t rows) {
    return sn_min_i64(MAX_BLOCKS, sn_ceil_div(rows, BLOCK_ROWS));
}

size_t SN_CPU(channel_sums_workspace)(int64_t rows, int64_t channels) {
    return (size_t)(count_blocks(rows) * 2 * channels) * sizeof(double);
}

static inline double statistic(const snug_view *v, int64_t i) {
    return load_one(v->type.dtype, v->data, i);
}

/* n vectors of channels from k on, in registers over all rows of a block. n, kind and rows, what g
 * and x hold, are constants where this is called. */
static inline __attribute__((always_inline)) void sum_vectors(const sums *s, const int n,
                                                              const sn_sums_kind kind,
                                                              const snug_dtype rows, int64_t block,
                                                              int64_t k) {
    vec first[4] = {0}, second[4] = {0}, mean[4] = {0}, rstd[4] = {0};
    double *out = s->partial + block * 2 * s->C + k;
#pragma GCC unroll 4
    for (int v = 0; v < n && kind == SN_SUMS_NORMALISE; v++) {
        double m[LANES], d[LANES];
        for (int l = 0; l < LANES; l++) {
            m[l] = statistic(s->mean, k + v * LANES + l);
            d[l] = 1 / sqrt(statistic(s->variance, k + v * LANES + l) + s->epsilon);
        }
        memcpy(&mean[v], m, sizeof m);
        memcpy(&rstd[v], d, sizeof d);
    }
    const int64_t last = sn_min_i64(s->rows, (block + 1) * s->block_rows);
    for (int64_t r = block * s->block_rows; r < last; r++) {
        const double m = kind == SN_SUMS_LAYERNORM ? statistic(s->mean, r) : 0,
                     d = kind == SN_SUMS_LAYERNORM ? statistic(s->variance, r) : 0;
#pragma GCC unroll 4
        for (int v = 0; v < n; v++) {
            const int64_t at = r * s->C + k + v * LANES;
            const vec g = load(rows, s->g, at);
            first[v] += g;
            if (kind == SN_SUMS_MOMENTS)
                second[v] += g * g;
            else if (kind == SN_SUMS_NORMALISE)
                second[v] += g * ((load(rows, s->x, at) - mean[v]) * rstd[v]);
            else
                second[v] += g * ((load(rows, s->x, at) - m) * d);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) {
        *(vec_in_memory *)(out + v * LANES) = first[v];
        *(vec_in_memory *)(out + s->C + v * LANES) = second[v];
    }
}

/* One channel, the same sums in the same order. */
static inline __attribute__((always_inline)) void sum_narrow(const sums *s, const snug_dtype rows,
                                                             int64_t block, int64_t k) {
    double first = 0, second = 0;
    const bool by_row = s->kind == SN_SUMS_LAYERNORM, moments = s->kind == SN_SUMS_MOMENTS;
    const double mean = s->kind == SN_SUMS_NORMALISE ? statistic(s->mean, k) : 0;
    const double rstd =
        s->kind == SN_SUMS_NORMALISE ? 1 / sqrt(statistic(s->variance, k) + s->epsilon) : 0;
    const int64_t last = sn_min_i64(s->rows, (block + 1) * s->block_rows);
    for (int64_t r = block * s->block_rows; r < last; r++) {
        const double g = load_one(rows, s->g, r * s->C + k);
        const double m = by_row ? statistic(s->mean, r) : mean,
                     d = by_row ? statistic(s->variance, r) : rstd;
        first += g;
        second += moments ? g * g : g * ((load_one(rows, s->x, r * s->C + k) - m) * d);
    }
    s->partial[block * 2 * s->C + k] = first;
    s->partial[(block * 2 + 1) * s->C + k] = second;
}

/* Channels from k on as long as n vectors of them are there; the first that is left. */
static inline __attribute__((always_inline)) int64_t sum_many(const sums *s, const int n,
                                                              const snug_dtype rows, int64_t block,
                                                              int64_t k, int64_t last) {
    for (; k + n * LANES <= last; k += n * LANES)
        if (s->kind == SN_SUMS_MOMENTS)
            sum_vectors(s, n, SN_SUMS_MOMENTS, rows, block, k);
        else if (s->kind == SN_SUMS_NORMALISE)
            sum_vectors(s, n, SN_SUMS_NORMALISE, rows, block, k);
        else
            sum_vectors(s, n, SN_SUMS_LAYERNORM, rows, block, k);
    return k;
}

/* Channels [k, last) of one block. */
static inline __attribute__((always_inline)) void
sum_strip(const sums *s, const snug_dtype rows, int64_t block, int64_t k, int64_t last) {
    k = sum_many(s, WIDE / LANES, rows, block, k, last);
    k = sum_many(s, 1, rows, block, k, last);
    for (; k < last; k++)
        sum_narrow(s, rows, block, k);
}

static void sum_strip_f32(const sums *s, int64_t block, int64_t k, int64_t last) {
    sum_strip(s, SNUG_F32, block, k, last);
}

static void sum_strip_f16(const sums *s, int64_t block, int64_t k, int64_t last) {
    sum_strip(s, SNUG_F16, block, k, last);
}

static void sum_strip_bf16(const sums *s, int64_t block, int64_t k, int64_t last) {
    sum_strip(s, SNUG_BF16, block, k, last);
}

/* Tasks: a block of rows and a strip of channels each. */
static void sum_tasks(const void *ctx, int64_t first, int64_t end) {
    const sums *s = ctx;
    const int64_t n_strips = sn_ceil_div(s->C, STRIP);
    for (int64_t task = first; task < end; task++) {
        const int64_t k = task % n_strips * STRIP, last = sn_min_i64(s->C, k + STRIP);
        if (s->kind_of_rows == SNUG_F32)
            sum_strip_f32(s, task / n_strips, k, last);
        else if (s->kind_of_rows == SNUG_F16)
            sum_strip_f16(s, task / n_strips, k, last);
        else
            sum_strip_bf16(s, task / n_strips, k, last);
    }
}

static void add_blocks(const sn_call *c, const sums *s) {
    for (int64_t k = 0; k < 2 * s->C; k++) {
        double sum = 0;
        for (int64_t block = 0; block < s->n_blocks; block++)
            sum += s->partial[block * 2 * s->C + k];
        sn_real_sum(sn_reals_of(&c->out[k / s->C]), k % s->C, sum, c->accumulate);
    }
}

void SN_CPU(channel_sums_f32)(const sn_call *c, sn_sums_kind kind) {
    const bool moments = kind == SN_SUMS_MOMENTS;
    sums s = {
        .kind = kind,
        .kind_of_rows = c->in[0].type.dtype,
        .g = c->in[0].data,
        .x = moments ? NULL : c->in[1].data,
        .mean = moments ? NULL : &c->in[2],
        .variance = moments ? NULL : &c->in[3],
        .epsilon = kind == SN_SUMS_NORMALISE ? c->param[0].real : 0,
        .rows = sn_rows_of(&c->in[0].type),
        .C = sn_width_of(&c->in[0].type),
        .partial = c->workspace,
    };
    s.n_blocks = count_blocks(s.rows);
    s.block_rows = s.n_blocks > 0 ? sn_ceil_div(s.rows, s.n_blocks) : 0;
    sn_parallel(c, s.rows * s.C, s.n_blocks * sn_ceil_div(s.C, STRIP), sum_tasks, &s);
    add_blocks(c, &s);
}

/* --- maps ------------------------------------------------------------------------------------ */
/* Loops over the rows of input 0 take the call as it is. */
typedef struct {
    sn_items rows;
} row_kernel;

static void run_lined(const void *ctx, const sn_call *c, int64_t n) {
    ((const row_kernel *)ctx)->rows(c, 0, n);
}

static const sn_row_roles roles[SN_N_OPS] = {
    [SN_OP_normalise] = {"rvvvv", "r", 0},
    [SN_OP_channel_affine] = {"rrvvv", "r", 0},
    [SN_OP_layernorm] = {"rvv", "rss", 0},
    [SN_OP_layernorm_dx] = {"rrvss", "r", 0},
};

static sn_row_roles roles_of(sn_op op, const snug_type *x) {
    sn_row_roles with_scale = roles[op];
    with_scale.own = op == SN_OP_normalise ? sn_width_of(x) : 0;
    return with_scale;
}

size_t SN_CPU(norm_rows_workspace)(const sn_opdesc *d, int n_threads) {
    const sn_row_roles of = roles_of(d->op, &d->in[0]);
    return sn_row_lines_bytes(d, &of, n_threads);
}

/* `before`: what the rows need of the vectors, once; NULL: nothing. */
static void each_row_of_halves(const sn_call *c, void (*before)(const sn_call *), sn_items rows) {
    const sn_row_roles of = roles_of(c->op, &c->in[0].type);
    const row_kernel kernel = {rows};
    sn_row_lines l;
    sn_row_lines_begin(&l, c, &of);
    if (before && l.rows > 0)
        before(&l.call);
    sn_row_lines_run(&l, run_lined, &kernel);
}

static void each_row(const sn_call *c, void (*before)(const sn_call *), sn_items rows) {
    if (sn_call_has_halves(c)) {
        each_row_of_halves(c, before, rows);
        return;
    }
    if (before)
        before(c);
    sn_parallel(c, sn_type_count(&c->in[0].type), sn_rows_of(&c->in[0].type), rows, c);
}

size_t SN_CPU(normalise_workspace)(int64_t channels) {
    return (size_t)channels * sizeof(float);
}

static void normalise_rows(const void *ctx, int64_t first, int64_t end) {
    const sn_call *c = ctx;
    const int64_t C = sn_width_of(&c->in[0].type);
    const float *mean = c->in[1].data, *beta = c->in[4].data, *scale = c->workspace;
    for (int64_t r = first; r < end; r++) {
        const float *x = (const float *)c->in[0].data + r * C;
        float *y = (float *)c->out[0].data + r * C;
#pragma omp simd
        for (int64_t k = 0; k < C; k++)
            y[k] = (x[k] - mean[k]) * scale[k] + beta[k];
    }
}

static void find_scale(const sn_call *c) {
    const float *variance = c->in[2].data, *gamma = c->in[3].data;
    float *scale = c->workspace;
    for (int64_t k = 0; k < sn_width_of(&c->in[0].type); k++)
        scale[k] = (float)((double)gamma[k] / sqrt((double)variance[k] + c->param[0].real));
}

void SN_CPU(normalise_f32)(const sn_call *c) {
    each_row(c, find_scale, normalise_rows);
}

static void affine_rows(const void *ctx, int64_t first, int64_t end) {
    const sn_call *c = ctx;
    const int64_t C = sn_width_of(&c->in[0].type);
    const float *a = c->in[2].data, *b = c->in[3].data, *shift = c->in[4].data;
    for (int64_t r = first; r < end; r++) {
        const float *p = (const float *)c->in[0].data + r * C,
                    *q = (const float *)c->in[1].data + r * C;
        float *y = (float *)c->out[0].data + r * C;
#pragma omp simd
        for (int64_t k = 0; k < C; k++)
            y[k] = a[k] * p[k] + b[k] * q[k] + shift[k];
    }
}

void SN_CPU(channel_affine_f32)(const sn_call *c) {
    each_row(c, NULL, affine_rows);
}

/* --- layer normalisation: sums over a row ---------------------------------------------------- */
/* Adds f(i) over 0 <= i < n in ROW_LANES running sums. */
#define ROW_SUM(total, n, term)                                                                    \
    do {                                                                                           \
        double lane[ROW_LANES] = {0};                                                              \
        int64_t i_ = 0;                                                                            \
        for (; i_ + ROW_LANES <= (n); i_ += ROW_LANES)                                             \
            for (int l_ = 0; l_ < ROW_LANES; l_++) {                                               \
                const int64_t i = i_ + l_;                                                         \
                lane[l_] += (term);                                                                \
            }                                                                                      \
        for (int l_ = 0; i_ + l_ < (n); l_++) {                                                    \
            const int64_t i = i_ + l_;                                                             \
            lane[l_] += (term);                                                                    \
        }                                                                                          \
        total = 0;                                                                                 \
        for (int l_ = 0; l_ < ROW_LANES; l_++)                                                     \
            total += lane[l_];                                                                     \
    } while (0)

static void layernorm_row(const sn_call *c, int64_t r, int64_t C) {
    const float *x = (const float *)c->in[0].data + r * C, *gamma = c->in[1].data,
                *beta = c->in[2].data;
    float *y = (float *)c->out[0].data + r * C;
    double sum, squares;
    ROW_SUM(sum, C, (double)x[i]);
    const double mean = sum / (double)C;
    ROW_SUM(squares, C, ((double)x[i] - mean) * ((double)x[i] - mean));
    const double rstd = 1 / sqrt(squares / (double)C + c->param[0].real);
    const float m = (float)mean, s = (float)rstd;
#pragma omp simd
    for (int64_t k = 0; k < C; k++)
        y[k] = gamma[k] * ((x[k] - m) * s) + beta[k];
    ((float *)c->out[1].data)[r] = m;
    ((float *)c->out[2].data)[r] = s;
}

static void layernorm_rows(const void *ctx, int64_t first, int64_t end) {
    const sn_call *c = ctx;
    for (int64_t r = first; r < end; r++)
        layernorm_row(c, r, sn_width_of(&c->in[0].type));
}

void SN_CPU(layernorm_f32)(const sn_call *c) {
    each_row(c, NULL, layernorm_rows);
}

static void layernorm_dx_row(const sn_call *c, int64_t r, int64_t C) {
    const float *dy = (const float *)c->in[0].data + r * C,
                *x = (const float *)c->in[1].data + r * C;
    const float *gamma = c->in[2].data;
    const float mean = ((const float *)c->in[3].data)[r], rstd = ((const float *)c->in[4].data)[r];
    float *dx = (float *)c->out[0].data + r * C;
    double sum, product;
    ROW_SUM(sum, C, (double)(gamma[i] * dy[i]));
    ROW_SUM(product, C, (double)(gamma[i] * dy[i]) * (double)((x[i] - mean) * rstd));
    const float a = (float)(sum / (double)C), b = (float)(product / (double)C);
#pragma omp simd
    for (int64_t k = 0; k < C; k++)
        dx[k] = rstd * (gamma[k] * dy[k] - a - (x[k] - mean) * rstd * b);
}

static void layernorm_dx_rows(const void *ctx, int64_t first, int64_t end) {
    const sn_call *c = ctx;
    for (int64_t r = first; r < end; r++)
        layernorm_dx_row(c, r, sn_width_of(&c->in[0].type));
}

void SN_CPU(layernorm_dx_f32)(const sn_call *c) {
    each_row(c, NULL, layernorm_dx_rows);
}
