/* reduce.c: sum, product, max, min and the places of the extremes, over axes.
 *
 * The order of a sum is a function of the reduced extent alone, so that an output element has the
 * same bits however many outputs there are, wherever they lie and however many threads work. For
 * f32, with the reduced elements numbered row-major:
 *
 *     lane    elements i, i + 16, i + 32, ... of a unit, one after the other, in f32
 *     unit    256 elements: 16 lanes, added pairwise (0+8, 1+9, ...; then 4, 2, 1 apart)
 *     block   4096 elements: its units one after the other, in double
 *     total   the blocks one after the other, in double, rounded to f32 once
 *
 * A vector register holds the 16 lanes of a contiguous run, or the same lane of 16 neighbouring
 * columns. Blocks are what threads share; with more than one, their sums wait in the workspace.
 * Other dtypes are summed in plain order, in double or in 64 bits, and so is every product. Maximum
 * and minimum have no order; NaN wins them. */
#include "kernels/cpu/loops.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define LANES 16
#define UNIT  256
#define BLOCK 4096
#define STRIP 64 /* columns one task sums: four cache lines of each row */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* clang-format off */
/*      dtype  name  holds  sums in  smallest  largest */
#define TYPE_MAP(X)                                         \
    X(SNUG_F32, f32, float, double, -INFINITY, INFINITY)    \
    X(SNUG_F64, f64, double, double, -INFINITY, INFINITY)   \
    X(SNUG_I8, i8, int8_t, uint64_t, INT8_MIN, INT8_MAX)    \
    X(SNUG_U8, u8, uint8_t, uint64_t, 0, UINT8_MAX)         \
    X(SNUG_I32, i32, int32_t, uint64_t, INT32_MIN, INT32_MAX) \
    X(SNUG_I64, i64, int64_t, uint64_t, INT64_MIN, INT64_MAX) \
    X(SNUG_BOOL, bool, uint8_t, uint64_t, 0, 1)
/* clang-format on */

/* --- geometry --------------------------------------------------------------------------------- */
/* Axes apart: those that stay and those that go, each with the input's strides. */
typedef struct {
    int n;
    int64_t dims[SNUG_MAX_RANK], stride[SNUG_MAX_RANK];
    int64_t count; /* product of dims */
} axis_group;

typedef struct {
    axis_group kept, reduced;
    /* The input as [outer, extent, inner] with the middle reduced; only if `simple`. */
    bool simple;
    int64_t outer, inner;
} geometry;

static bool is_reduced(const sn_list *axes, int axis) {
    for (int k = 0; k < axes->n; k++)
        if (axes->v[k] == axis)
            return true;
    return axes->n == 0;
}

static void group_add(axis_group *g, int64_t extent, int64_t stride) {
    g->dims[g->n] = extent;
    g->stride[g->n++] = stride;
    g->count *= extent;
}

/* Reduced axes next to each other (extents of 1 between them do not count) make one middle axis. */
static geometry geometry_of(const snug_type *t, const sn_list *axes) {
    geometry g = {.kept.count = 1, .reduced.count = 1, .outer = 1, .inner = 1};
    int64_t dense[SNUG_MAX_RANK] = {0};
    int runs = 0;
    bool inside = false;
    sn_dense_strides(t, dense);
    for (int k = 0; k < t->rank; k++) {
        const bool gone = is_reduced(axes, k);
        group_add(gone ? &g.reduced : &g.kept, t->dims[k], dense[k]);
        if (t->dims[k] == 1)
            continue;
        runs += gone && !inside;
        inside = gone;
        if (!gone && runs == 0)
            g.outer *= t->dims[k];
        else if (!gone)
            g.inner *= t->dims[k];
    }
    g.simple = runs <= 1;
    if (runs == 0) { /* nothing goes: a copy, which columns do faster than rows of one */
        g.inner = g.outer;
        g.outer = 1;
    }
    return g;
}

/* Goes through a group row-major; `at` is the offset in the input. */
typedef struct {
    int64_t index[SNUG_MAX_RANK], at;
} group_place;

static inline void group_next(const axis_group *g, group_place *p) {
    for (int k = g->n - 1; k >= 0; k--) {
        p->at += g->stride[k];
        if (++p->index[k] < g->dims[k])
            return;
        p->at -= g->stride[k] * g->dims[k];
        p->index[k] = 0;
    }
}

/* Offset in the input of element i of a group. */
static int64_t group_offset(const axis_group *g, int64_t i) {
    int64_t offset = 0;
    for (int k = g->n - 1; k >= 0; k--) {
        offset += i % g->dims[k] * g->stride[k];
        i /= g->dims[k];
    }
    return offset;
}

/* --- plain loops: the reference, and the kernels of all but f32 ------------------------------- */
/* result = combine(result, v) over the reduced elements v, from `start` on; A: its type. */
#define REDUCE_ONE(name, M, A, start, combine)                                                     \
    static void name(const sn_call *c, const geometry *g, int64_t o) {                             \
        const M *x = (const M *)c->in[0].data + group_offset(&g->kept, o);                         \
        M *out = (M *)c->out[0].data + o;                                                          \
        group_place p = {{0}, 0};                                                                  \
        A result = start;                                                                          \
        for (int64_t i = 0; i < g->reduced.count; i++, group_next(&g->reduced, &p)) {              \
            const A v = (A)x[p.at];                                                                \
            result = combine;                                                                      \
        }                                                                                          \
        *out = (M)result;                                                                          \
    }
/* The first of the best; the first NaN where there is one. */
#define FIND_ONE(name, M, beats)                                                                   \
    static int64_t name(const void *data, int64_t n, int64_t step) {                               \
        const M *x = data;                                                                         \
        int64_t best = 0;                                                                          \
        for (int64_t i = 1; i < n; i++)                                                            \
            if (x[best * step] == x[best * step] &&                                                \
                (x[i * step] beats x[best * step] || x[i * step] != x[i * step]))                  \
                best = i;                                                                          \
        return best;                                                                               \
    }
#define PLAIN_LOOPS(dtype, name, M, A, smallest, largest)                                          \
    REDUCE_ONE(sum_##name, M, A, c->accumulate ? (A)*out : (A)0, result + v)                       \
    REDUCE_ONE(prod_##name, M, A, (A)1, result *v)                                                 \
    REDUCE_ONE(max_##name, M, M, (M)(smallest), v > result || v != v ? v : result)                 \
    REDUCE_ONE(min_##name, M, M, (M)(largest), v < result || v != v ? v : result)                  \
    FIND_ONE(argmax_##name, M, >)                                                                  \
    FIND_ONE(argmin_##name, M, <)
TYPE_MAP(PLAIN_LOOPS)

typedef void (*reduce_one)(const sn_call *c, const geometry *g, int64_t o);
typedef int64_t (*find_one)(const void *data, int64_t n, int64_t step);

/* By operator and dtype. */
static const reduce_one plain[SN_N_OPS][SNUG_N_DTYPES] = {
#define PLAIN_SUM(dtype, name, ...)  [dtype] = sum_##name,
#define PLAIN_PROD(dtype, name, ...) [dtype] = prod_##name,
#define PLAIN_MAX(dtype, name, ...)  [dtype] = max_##name,
#define PLAIN_MIN(dtype, name, ...)  [dtype] = min_##name,
    [SN_OP_sum] = {TYPE_MAP(PLAIN_SUM)},
    [SN_OP_prod] = {TYPE_MAP(PLAIN_PROD)},
    [SN_OP_max] = {TYPE_MAP(PLAIN_MAX)},
    [SN_OP_min] = {TYPE_MAP(PLAIN_MIN)}};
static const find_one finds[SN_N_OPS][SNUG_N_DTYPES] = {
#define PLAIN_ARGMAX(dtype, name, ...) [dtype] = argmax_##name,
#define PLAIN_ARGMIN(dtype, name, ...) [dtype] = argmin_##name,
    [SN_OP_argmax] = {TYPE_MAP(PLAIN_ARGMAX)}, [SN_OP_argmin] = {TYPE_MAP(PLAIN_ARGMIN)}};

typedef struct {
    const sn_call *c;
    geometry g;
    reduce_one reduce;
} output_loop;

static void reduce_outputs(const void *ctx, int64_t first, int64_t end) {
    const output_loop *l = ctx;
    for (int64_t o = first; o < end; o++)
        l->reduce(l->c, &l->g, o);
}

static snug_status each_output(const sn_call *c, reduce_one reduce, snug_error *err) {
    const output_loop l = {c, geometry_of(&c->in[0].type, &c->attrs->axes.axes), reduce};
    if (!reduce)
        return sn_no_kernel(c->in[0].type.dtype, err);
    sn_parallel(c, l.g.kept.count * l.g.reduced.count, l.g.kept.count, reduce_outputs, &l);
    return SNUG_OK;
}

static snug_status reference(const sn_call *c, snug_error *err) {
    return each_output(c, plain[c->op][c->in[0].type.dtype], err);
}

/* --- the f32 sum: units and blocks ------------------------------------------------------------ */
static double fold(float *lane) {
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return (double)lane[0];
}

static double sum_unit(const float *x, int64_t n) {
    lanes sum = {0}, v;
    float lane[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        memcpy(&v, x + i, sizeof v);
        sum += v;
    }
    memcpy(lane, &sum, sizeof lane);
    for (int64_t j = 0; i + j < n; j++)
        lane[j] += x[i + j];
    return fold(lane);
}

static double sum_run(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += UNIT)
        sum += sum_unit(x + i, sn_min_i64(UNIT, n - i));
    return sum;
}

/* Elements `step` apart. */
static double sum_unit_strided(const float *x, int64_t n, int64_t step) {
    float lane[LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] += x[i * step];
    return fold(lane);
}

/* A unit of LANES neighbouring columns: register j has lane j of each. The loops over j are
 * unrolled, so that the sums stay in registers. */
static void sum_unit_columns(const float *x, int64_t n, int64_t step, double *sum) {
    lanes lane[LANES] = {{0}}, v;
    float column[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES, x += LANES * step) {
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) {
            memcpy(&v, x + j * step, sizeof v);
            lane[j] += v;
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) {
        if (i + j < n) {
            memcpy(&v, x + j * step, sizeof v);
            lane[j] += v;
        }
    }
#pragma GCC unroll 4
    for (int width = LANES / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
        for (int j = 0; j < width; j++)
            lane[j] += lane[j + width];
    }
    memcpy(column, &lane[0], sizeof column);
    for (int k = 0; k < LANES; k++)
        sum[k] += (double)column[k];
}

/* Rows [0, n) of `width` columns, rows `step` apart; n <= BLOCK, width <= STRIP. */
static void sum_block_columns(const float *x, int64_t n, int64_t step, int64_t width, double *sum) {
    for (int64_t k = 0; k < width; k++)
        sum[k] = 0;
    for (int64_t i = 0; i < n; i += UNIT) {
        const int64_t rows = sn_min_i64(UNIT, n - i);
        int64_t k = 0;
        for (; k + LANES <= width; k += LANES)
            sum_unit_columns(x + i * step + k, rows, step, sum + k);
        for (; k < width; k++)
            sum[k] += sum_unit_strided(x + i * step + k, rows, step);
    }
}

/* --- the f32 sum: tasks ----------------------------------------------------------------------- */
typedef struct {
    const float *x;
    float *out;
    double *partial; /* [outer, blocks, inner]; used with more than one block */
    int64_t extent, inner, blocks, strips;
    bool accumulate;
} sum_plan;

static void put_sum(const sum_plan *p, int64_t o, double sum) {
    p->out[o] = (float)(p->accumulate ? (double)p->out[o] + sum : sum);
}

/* One block of one strip of columns (of one row when inner is 1). */
static void sum_strip(const sum_plan *p, int64_t task) {
    const int64_t strip = task % p->strips, block = task / p->strips % p->blocks;
    const int64_t outer = task / p->strips / p->blocks;
    const int64_t first = strip * STRIP, width = sn_min_i64(STRIP, p->inner - first);
    const int64_t n = sn_min_i64(BLOCK, p->extent - block * BLOCK);
    const float *x = p->x + (outer * p->extent + block * BLOCK) * p->inner + first;
    double sum[STRIP];
    if (p->inner == 1)
        sum[0] = sum_run(x, n);
    else
        sum_block_columns(x, n, p->inner, width, sum);
    if (p->blocks > 1)
        memcpy(p->partial + (outer * p->blocks + block) * p->inner + first, sum,
               (size_t)width * sizeof *sum);
    else
        for (int64_t k = 0; k < width; k++)
            put_sum(p, outer * p->inner + first + k, sum[k]);
}

static void sum_strips(const void *ctx, int64_t first, int64_t end) {
    for (int64_t task = first; task < end; task++)
        sum_strip(ctx, task);
}

/* Of outputs [first, end). */
static void add_blocks(const void *ctx, int64_t first, int64_t end) {
    const sum_plan *p = ctx;
    for (int64_t o = first; o < end; o++) {
        const double *partial = p->partial + o / p->inner * p->blocks * p->inner + o % p->inner;
        double sum = 0;
        for (int64_t b = 0; b < p->blocks; b++)
            sum += partial[b * p->inner];
        put_sum(p, o, sum);
    }
}

static void sum_simple(const sn_call *c, const geometry *g) {
    const sum_plan p = {
        .x = c->in[0].data,
        .out = c->out[0].data,
        .partial = c->workspace,
        .extent = g->reduced.count,
        .inner = g->inner,
        .blocks = g->reduced.count > BLOCK ? sn_ceil_div(g->reduced.count, BLOCK) : 1,
        .strips = sn_ceil_div(g->inner, STRIP),
        .accumulate = c->accumulate,
    };
    assert(p.blocks == 1 ||
           c->workspace_bytes >= (size_t)(g->kept.count * p.blocks) * sizeof *p.partial);
    sn_parallel(c, g->kept.count * g->reduced.count, g->outer * p.blocks * p.strips, sum_strips,
                &p);
    if (p.blocks > 1)
        sn_parallel(c, g->kept.count * p.blocks, g->kept.count, add_blocks, &p);
}

/* --- the f32 sum: axes that do not lie together ----------------------------------------------- */
/* The same order; units are gathered first, of LANES neighbouring outputs where the last axis
 * stays, which then share every cache line. */
typedef struct {
    const sn_call *c;
    geometry g;
    int64_t columns, strips; /* outputs that lie together, and tasks they make */
} scattered_sum;

/* The next n reduced elements of one output, one after the other. */
static void gather_run(const axis_group *g, group_place *p, const float *x, int64_t n, float *to) {
    const int last = g->n - 1;
    const int64_t step = g->stride[last];
    for (int64_t j = 0; j < n;) {
        const int64_t run = sn_min_i64(g->dims[last] - p->index[last], n - j);
        for (int64_t k = 0; k < run; k++)
            to[j + k] = x[p->at + k * step];
        j += run;
        p->index[last] += run - 1;
        p->at += (run - 1) * step;
        group_next(g, p);
    }
}

static void gather_rows(const axis_group *g, group_place *p, const float *x, int64_t n,
                        int64_t width, float *to) {
    for (int64_t j = 0; j < n; j++, group_next(g, p))
        memcpy(to + j * LANES, x + p->at, (size_t)width * sizeof *to);
}

/* Outputs `first` on, `width` of them. */
static void sum_scattered(const scattered_sum *l, int64_t first, int64_t width) {
    const axis_group *const reduced = &l->g.reduced;
    const float *x = (const float *)l->c->in[0].data + group_offset(&l->g.kept, first);
    float *out = (float *)l->c->out[0].data + first;
    float unit[UNIT * LANES] = {0};
    double total[LANES] = {0}, block[LANES] = {0};
    group_place p = {{0}, 0};
    for (int64_t i = 0; i < reduced->count; i += UNIT) {
        const int64_t n = sn_min_i64(UNIT, reduced->count - i);
        if (width > 1) {
            gather_rows(reduced, &p, x, n, width, unit);
            sum_unit_columns(unit, n, LANES, block);
        } else {
            gather_run(reduced, &p, x, n, unit);
            block[0] += sum_unit(unit, n);
        }
        if ((i + UNIT) % BLOCK != 0 && i + UNIT < reduced->count)
            continue;
        for (int64_t k = 0; k < width; k++) {
            total[k] += block[k];
            block[k] = 0;
        }
    }
    for (int64_t k = 0; k < width; k++)
        out[k] = (float)(l->c->accumulate ? (double)out[k] + total[k] : total[k]);
}

static void sum_scattered_strips(const void *ctx, int64_t begin, int64_t end) {
    const scattered_sum *l = ctx;
    for (int64_t task = begin; task < end; task++) {
        const int64_t column = task % l->strips * LANES;
        sum_scattered(l, task / l->strips * l->columns + column,
                      sn_min_i64(LANES, l->columns - column));
    }
}

static void run_scattered(const sn_call *c, const geometry *g) {
    scattered_sum l = {c, *g, 1, 1};
    int last = g->kept.n - 1;
    while (last > 0 && g->kept.dims[last] == 1)
        last--;
    if (last >= 0 && g->kept.stride[last] == 1)
        l.columns = g->kept.dims[last];
    l.strips = sn_ceil_div(l.columns, LANES);
    if (g->kept.count > 0)
        sn_parallel(c, g->kept.count * g->reduced.count, g->kept.count / l.columns * l.strips,
                    sum_scattered_strips, &l);
}

static snug_status run_sum(const sn_call *c, snug_error *err) {
    const geometry g = geometry_of(&c->in[0].type, &c->attrs->axes.axes);
    if (c->in[0].type.dtype != SNUG_F32)
        return reference(c, err);
    if (g.simple)
        sum_simple(c, &g);
    else
        run_scattered(c, &g);
    return SNUG_OK;
}

static snug_status describe_sum(const sn_opdesc *d, int n_threads, sn_variant *out,
                                snug_error *err) {
    const geometry g = geometry_of(&d->in[0], &d->attrs.axes.axes);
    (void)n_threads, (void)err;
    /* At most input bytes / 1024: one double for more than 2048 floats. */
    if (d->in[0].dtype == SNUG_F32 && g.simple && g.reduced.count > BLOCK)
        out->workspace_bytes =
            (size_t)(g.kept.count * sn_ceil_div(g.reduced.count, BLOCK)) * sizeof(double);
    return SNUG_OK;
}

/* --- max and min ------------------------------------------------------------------------------ */
/* The minimum is the maximum of sign * x with sign -1, times sign: both are exact. */
static inline float larger(float best, float v) {
    return v > best || v != v ? v : best;
}

static float max_run(const float *x, int64_t n, float sign) {
    float lane[LANES];
    int64_t i = 0;
    for (int j = 0; j < LANES; j++)
        lane[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] = larger(lane[j], sign * x[i + j]);
    for (int64_t j = 0; i + j < n; j++)
        lane[j] = larger(lane[j], sign * x[i + j]);
    for (int j = 1; j < LANES; j++)
        lane[0] = larger(lane[0], lane[j]);
    return sign * lane[0];
}

typedef struct {
    const float *x;
    float *out;
    int64_t extent, inner, strips;
    float sign;
} max_plan;

static void max_columns(const max_plan *p, const float *x, int64_t width, float *out) {
    for (int64_t k = 0; k < width; k++)
        out[k] = -INFINITY;
    for (int64_t i = 0; i < p->extent; i++)
        for (int64_t k = 0; k < width; k++)
            out[k] = larger(out[k], p->sign * x[i * p->inner + k]);
    for (int64_t k = 0; k < width; k++)
        out[k] *= p->sign;
}

/* Strips of UNIT columns (rows when inner is 1). */
static void max_strips(const void *ctx, int64_t begin, int64_t end) {
    const max_plan *p = ctx;
    for (int64_t task = begin; task < end; task++) {
        const int64_t outer = task / p->strips, first = task % p->strips * UNIT;
        const float *x = p->x + outer * p->extent * p->inner + first;
        if (p->inner == 1)
            p->out[outer] = max_run(x, p->extent, p->sign);
        else
            max_columns(p, x, sn_min_i64(UNIT, p->inner - first),
                        p->out + outer * p->inner + first);
    }
}

static snug_status run_max(const sn_call *c, snug_error *err) {
    const geometry g = geometry_of(&c->in[0].type, &c->attrs->axes.axes);
    if (c->in[0].type.dtype != SNUG_F32 || !g.simple)
        return reference(c, err);
    const max_plan p = {
        .x = c->in[0].data,
        .out = c->out[0].data,
        .extent = g.reduced.count,
        .inner = g.inner,
        .strips = sn_ceil_div(g.inner, UNIT),
        .sign = c->op == SN_OP_min ? -1.0f : 1.0f,
    };
    sn_parallel(c, g.kept.count * g.reduced.count, g.outer * p.strips, max_strips, &p);
    return SNUG_OK;
}

/* --- argmax and argmin ------------------------------------------------------------------------ */
typedef struct {
    const sn_call *c;
    find_one find;
    int64_t n, inner;
} argmax_loop;

static void find_outputs(const void *ctx, int64_t first, int64_t end) {
    const argmax_loop *l = ctx;
    const snug_view *in = &l->c->in[0], *out = &l->c->out[0];
    const int64_t element = (int64_t)snug_dtype_bytes(in->type.dtype);
    for (int64_t o = first; o < end; o++) {
        const int64_t at = o / l->inner * l->n * l->inner + o % l->inner;
        const int64_t best = l->find((const char *)in->data + at * element, l->n, l->inner);
        if (out->type.dtype == SNUG_I64)
            ((int64_t *)out->data)[o] = best;
        else
            ((int32_t *)out->data)[o] = (int32_t)best;
    }
}

static snug_status run_argmax(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->in[0].type;
    const int axis = (int)c->attrs->argmax.axis;
    const int64_t n = t->dims[axis], inner = sn_type_span(t, axis + 1, t->rank);
    const int64_t count = sn_type_span(t, 0, axis) * inner;
    const argmax_loop loop = {c, finds[c->op][t->dtype], n, inner};
    if (!loop.find)
        return sn_no_kernel(t->dtype, err);
    sn_parallel(c, count * n, count, find_outputs, &loop);
    return SNUG_OK;
}

SN_CPU_FAMILY(sum, .reference = reference, .run = run_sum, .describe = describe_sum)
SN_CPU_FAMILY(prod, .reference = reference, .run = reference)
SN_CPU_FAMILY(max, .reference = reference, .run = run_max)
SN_CPU_FAMILY(min, .reference = reference, .run = run_max)
SN_CPU_FAMILY(argmax, .reference = run_argmax, .run = run_argmax)
SN_CPU_FAMILY(argmin, .reference = run_argmax, .run = run_argmax)
