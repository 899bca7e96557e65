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
 * Halves are summed as the floats they are, and rounded once. Other dtypes are summed in plain
 * order, in double or in 64 bits, and so is every product. Maximum and minimum have no order; NaN
 * wins them. */
#include "kernels/cpu/real_elements.h"

#include <assert.h>
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
/* The same of halves. */
#define FIND_HALF(name, kind, beats)                                                               \
    static int64_t name(const void *data, int64_t n, int64_t step) {                               \
        float most = n > 0 ? sn_half_at(kind, data, 0) : 0;                                        \
        int64_t best = 0;                                                                          \
        for (int64_t i = 1; i < n; i++) {                                                          \
            const float v = sn_half_at(kind, data, i * step);                                      \
            if (most == most && (v beats most || v != v)) {                                        \
                most = v;                                                                          \
                best = i;                                                                          \
            }                                                                                      \
        }                                                                                          \
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
FIND_HALF(argmax_f16, SNUG_F16, >)
FIND_HALF(argmin_f16, SNUG_F16, <)
FIND_HALF(argmax_bf16, SNUG_BF16, >)
FIND_HALF(argmin_bf16, SNUG_BF16, <)

/* Stores a result, or adds it to what is there; rounded to f32, then to what holds it. */
static void put_real(const snug_view *out, int64_t o, double v, bool accumulate) {
    const sn_reals to = sn_reals_of(out);
    sn_real_put(to, o, (double)(float)(accumulate ? sn_real_at(to, o) + v : v));
}

/* Halves in. */
static void half_one(const sn_call *c, const geometry *g, int64_t o) {
    const snug_view *in = &c->in[0];
    const int64_t first = group_offset(&g->kept, o);
    group_place p = {{0}, 0};
    double result = c->op == SN_OP_sum    ? 0
                    : c->op == SN_OP_prod ? 1
                    : c->op == SN_OP_max  ? -INFINITY
                                          : INFINITY;
    for (int64_t i = 0; i < g->reduced.count; i++, group_next(&g->reduced, &p)) {
        const double v = (double)sn_half_at(in->type.dtype, in->data, first + p.at);
        if (c->op == SN_OP_sum)
            result += v;
        else if (c->op == SN_OP_prod)
            result *= v;
        else if (v != v || (c->op == SN_OP_max ? v > result : v < result))
            result = v;
    }
    put_real(&c->out[0], o, result, c->accumulate);
}

/* Narrow whole numbers. */
static void narrow_one(const sn_call *c, const geometry *g, int64_t o) {
    const snug_view *in = &c->in[0], *out = &c->out[0];
    const snug_dtype dtype = in->type.dtype;
    const int64_t first = group_offset(&g->kept, o), most = (int64_t)sn_dtype_largest(dtype);
    const int64_t least = sn_dtype_counts(dtype) ? 0 : -most - 1;
    group_place p = {{0}, 0};
    uint64_t result = c->op == SN_OP_sum
                          ? (c->accumulate ? (uint64_t)sn_narrow_at(dtype, out->data, o) : 0)
                      : c->op == SN_OP_prod ? 1
                      : c->op == SN_OP_max  ? (uint64_t)least
                                            : (uint64_t)most;
    for (int64_t i = 0; i < g->reduced.count; i++, group_next(&g->reduced, &p)) {
        const int64_t v = sn_narrow_at(dtype, in->data, first + p.at);
        if (c->op == SN_OP_sum)
            result += (uint64_t)v;
        else if (c->op == SN_OP_prod)
            result *= (uint64_t)v;
        else if (c->op == SN_OP_max ? v > (int64_t)result : v < (int64_t)result)
            result = (uint64_t)v;
    }
    sn_narrow_put(dtype, out->data, o, result);
}

#define NARROW_MAP(X)                                                                              \
    X(SNUG_I16, i16, int16_t)                                                                      \
    X(SNUG_U16, u16, uint16_t)                                                                     \
    X(SNUG_U32, u32, uint32_t)
#define NARROW_LOOPS(dtype, name, M) FIND_ONE(argmax_##name, M, >) FIND_ONE(argmin_##name, M, <)
NARROW_MAP(NARROW_LOOPS)

typedef void (*reduce_one)(const sn_call *c, const geometry *g, int64_t o);
typedef int64_t (*find_one)(const void *data, int64_t n, int64_t step);

/* By operator and dtype. */
static const reduce_one plain[SN_N_OPS][SNUG_N_DTYPES] = {
#define PLAIN_SUM(dtype, name, ...)  [dtype] = sum_##name,
#define PLAIN_PROD(dtype, name, ...) [dtype] = prod_##name,
#define PLAIN_MAX(dtype, name, ...)  [dtype] = max_##name,
#define PLAIN_MIN(dtype, name, ...)  [dtype] = min_##name,
#define STORED                                                                                     \
    [SNUG_F16] = half_one, [SNUG_BF16] = half_one, [SNUG_I16] = narrow_one,                        \
    [SNUG_U16] = narrow_one, [SNUG_U32] = narrow_one
    [SN_OP_sum] = {TYPE_MAP(PLAIN_SUM) STORED},
    [SN_OP_prod] = {TYPE_MAP(PLAIN_PROD) STORED},
    [SN_OP_max] = {TYPE_MAP(PLAIN_MAX) STORED},
    [SN_OP_min] = {TYPE_MAP(PLAIN_MIN) STORED}};
static const find_one finds[SN_N_OPS][SNUG_N_DTYPES] = {
#define PLAIN_ARGMAX(dtype, name, ...) [dtype] = argmax_##name,
#define PLAIN_ARGMIN(dtype, name, ...) [dtype] = argmin_##name,
    [SN_OP_argmax] =
        {TYPE_MAP(PLAIN_ARGMAX) NARROW_MAP(PLAIN_ARGMAX)[SNUG_F16] = argmax_f16, [SNUG_BF16] =
                                                                                     argmax_bf16},
    [SN_OP_argmin] = {
        TYPE_MAP(PLAIN_ARGMIN) NARROW_MAP(PLAIN_ARGMIN)[SNUG_F16] = argmin_f16, [SNUG_BF16] =
                                                                                    argmin_bf16}};

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

/* --- the sum of f32 and of halves: units and blocks ------------------------------------------- */
/* `kind` says what x holds, a constant in each of three kernels. */
static inline __attribute__((always_inline)) void load(const snug_dtype kind, const void *x,
                                                       int64_t at, lanes *v) {
    if (kind == SNUG_F32)
        memcpy(v, (const float *)x + at, sizeof *v);
    else
        sn_halves_16(kind, x, at, v);
}

static inline __attribute__((always_inline)) float load_one(const snug_dtype kind, const void *x,
                                                            int64_t at) {
    return kind == SNUG_F32 ? ((const float *)x)[at] : sn_half_at(kind, x, at);
}

static double fold(float *lane) {
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return (double)lane[0];
}

static inline __attribute__((always_inline)) double sum_unit(const snug_dtype kind, const void *x,
                                                             int64_t at, int64_t n) {
    lanes sum = {0}, v;
    float lane[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        load(kind, x, at + i, &v);
        sum += v;
    }
    memcpy(lane, &sum, sizeof lane);
    for (int64_t j = 0; i + j < n; j++)
        lane[j] += load_one(kind, x, at + i + j);
    return fold(lane);
}

static inline __attribute__((always_inline)) double sum_run(const snug_dtype kind, const void *x,
                                                            int64_t at, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += UNIT)
        sum += sum_unit(kind, x, at + i, sn_min_i64(UNIT, n - i));
    return sum;
}

/* Elements `step` apart. */
static inline __attribute__((always_inline)) double
sum_unit_strided(const snug_dtype kind, const void *x, int64_t at, int64_t n, int64_t step) {
    float lane[LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] += load_one(kind, x, at + i * step);
    return fold(lane);
}

/* A unit of LANES neighbouring columns: register j has lane j of each. The loops over j are
 * unrolled, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void sum_unit_columns(const snug_dtype kind,
                                                                   const void *x, int64_t at,
                                                                   int64_t n, int64_t step,
                                                                   double *sum) {
    lanes lane[LANES] = {{0}}, v;
    float column[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES, at += LANES * step) {
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) {
            load(kind, x, at + j * step, &v);
            lane[j] += v;
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) {
        if (i + j < n) {
            load(kind, x, at + j * step, &v);
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
static inline __attribute__((always_inline)) void sum_block_columns(const snug_dtype kind,
                                                                    const void *x, int64_t at,
                                                                    int64_t n, int64_t step,
                                                                    int64_t width, double *sum) {
    for (int64_t k = 0; k < width; k++)
        sum[k] = 0;
    for (int64_t i = 0; i < n; i += UNIT) {
        const int64_t rows = sn_min_i64(UNIT, n - i);
        int64_t k = 0;
        for (; k + LANES <= width; k += LANES)
            sum_unit_columns(kind, x, at + i * step + k, rows, step, sum + k);
        for (; k < width; k++)
            sum[k] += sum_unit_strided(kind, x, at + i * step + k, rows, step);
    }
}

/* A block: of one row, or of columns that are `step` apart. */
typedef void (*block_sum)(const void *x, int64_t at, int64_t n, int64_t step, int64_t width,
                          double *sum);
#define BLOCK_SUM(name, kind)                                                                      \
    static void name(const void *x, int64_t at, int64_t n, int64_t step, int64_t width,            \
                     double *sum) {                                                                \
        if (step == 1)                                                                             \
            sum[0] = sum_run(kind, x, at, n);                                                      \
        else                                                                                       \
            sum_block_columns(kind, x, at, n, step, width, sum);                                   \
    }
BLOCK_SUM(block_f32, SNUG_F32)
BLOCK_SUM(block_f16, SNUG_F16)
BLOCK_SUM(block_bf16, SNUG_BF16)

static const block_sum block_sums[SNUG_N_DTYPES] = {
    [SNUG_F32] = block_f32, [SNUG_F16] = block_f16, [SNUG_BF16] = block_bf16};

/* --- the same: tasks -------------------------------------------------------------------------- */
typedef struct {
    const void *x;
    const snug_view *out;
    block_sum sum;
    double *partial; /* [outer, blocks, inner]; used with more than one block */
    int64_t extent, inner, blocks, strips;
    bool accumulate;
} sum_plan;

/* One block of one strip of columns (of one row when inner is 1). */
static void sum_strip(const sum_plan *p, int64_t task) {
    const int64_t strip = task % p->strips, block = task / p->strips % p->blocks;
    const int64_t outer = task / p->strips / p->blocks;
    const int64_t first = strip * STRIP, width = sn_min_i64(STRIP, p->inner - first);
    const int64_t n = sn_min_i64(BLOCK, p->extent - block * BLOCK);
    double sum[STRIP];
    p->sum(p->x, (outer * p->extent + block * BLOCK) * p->inner + first, n, p->inner, width, sum);
    if (p->blocks > 1)
        memcpy(p->partial + (outer * p->blocks + block) * p->inner + first, sum,
               (size_t)width * sizeof *sum);
    else
        for (int64_t k = 0; k < width; k++)
            put_real(p->out, outer * p->inner + first + k, sum[k], p->accumulate);
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
        put_real(p->out, o, sum, p->accumulate);
    }
}

static void sum_simple(const sn_call *c, const geometry *g) {
    const sum_plan p = {
        .x = c->in[0].data,
        .out = &c->out[0],
        .sum = block_sums[c->in[0].type.dtype],
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

/* --- the same: axes that do not lie together ----------------------------------------------- */
/* The same order; units are gathered first, of LANES neighbouring outputs where the last axis
 * stays, which then share every cache line. */
typedef struct {
    const sn_call *c;
    geometry g;
    int64_t columns, strips; /* outputs that lie together, and tasks they make */
} scattered_sum;

/* The next n reduced elements of one output, one after the other. */
static void gather_run(const axis_group *g, group_place *p, const void *x, snug_dtype kind,
                       int64_t first, int64_t n, float *to) {
    const int last = g->n - 1;
    const int64_t step = g->stride[last];
    for (int64_t j = 0; j < n;) {
        const int64_t run = sn_min_i64(g->dims[last] - p->index[last], n - j);
        for (int64_t k = 0; k < run; k++)
            to[j + k] = load_one(kind, x, first + p->at + k * step);
        j += run;
        p->index[last] += run - 1;
        p->at += (run - 1) * step;
        group_next(g, p);
    }
}

static void gather_rows(const axis_group *g, group_place *p, const void *x, snug_dtype kind,
                        int64_t first, int64_t n, int64_t width, float *to) {
    for (int64_t j = 0; j < n; j++, group_next(g, p))
        if (kind == SNUG_F32)
            memcpy(to + j * LANES, (const float *)x + first + p->at, (size_t)width * sizeof *to);
        else
            sn_halves_to_f32(kind, (const uint16_t *)x + first + p->at, width, to + j * LANES);
}

/* Outputs `first` on, `width` of them. */
static void sum_scattered(const scattered_sum *l, int64_t first, int64_t width) {
    const axis_group *const reduced = &l->g.reduced;
    const snug_view *in = &l->c->in[0];
    const int64_t from = group_offset(&l->g.kept, first);
    float unit[UNIT * LANES] = {0};
    double total[LANES] = {0}, block[LANES] = {0};
    group_place p = {{0}, 0};
    for (int64_t i = 0; i < reduced->count; i += UNIT) {
        const int64_t n = sn_min_i64(UNIT, reduced->count - i);
        if (width > 1) {
            gather_rows(reduced, &p, in->data, in->type.dtype, from, n, width, unit);
            sum_unit_columns(SNUG_F32, unit, 0, n, LANES, block);
        } else {
            gather_run(reduced, &p, in->data, in->type.dtype, from, n, unit);
            block[0] += sum_unit(SNUG_F32, unit, 0, n);
        }
        if ((i + UNIT) % BLOCK != 0 && i + UNIT < reduced->count)
            continue;
        for (int64_t k = 0; k < width; k++) {
            total[k] += block[k];
            block[k] = 0;
        }
    }
    for (int64_t k = 0; k < width; k++)
        put_real(&l->c->out[0], first + k, total[k], l->c->accumulate);
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
    if (!block_sums[c->in[0].type.dtype])
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
    if (block_sums[d->in[0].dtype] && g.simple && g.reduced.count > BLOCK)
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
    const snug_view *x, *out;
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

/* The same of halves, which are widened a piece at a time. */
static void max_run_halves(const max_plan *p, const uint16_t *x, uint16_t *out) {
    const snug_dtype kind = p->x->type.dtype;
    float line[UNIT], best = -INFINITY;
    for (int64_t i = 0; i < p->extent; i += UNIT) {
        const int64_t n = sn_min_i64(UNIT, p->extent - i);
        sn_halves_to_f32(kind, x + i, n, line);
        best = larger(best, p->sign * max_run(line, n, p->sign));
    }
    best *= p->sign;
    sn_halves_of_f32(kind, &best, 1, out);
}

static void max_columns_halves(const max_plan *p, const uint16_t *x, int64_t width, uint16_t *out) {
    const snug_dtype kind = p->x->type.dtype;
    float line[UNIT], best[UNIT];
    for (int64_t k = 0; k < width; k++)
        best[k] = -INFINITY;
    for (int64_t i = 0; i < p->extent; i++) {
        sn_halves_to_f32(kind, x + i * p->inner, width, line);
        for (int64_t k = 0; k < width; k++)
            best[k] = larger(best[k], p->sign * line[k]);
    }
    for (int64_t k = 0; k < width; k++)
        best[k] *= p->sign;
    sn_halves_of_f32(kind, best, width, out);
}

/* Of the columns at `from`, or of the row. */
static void max_strip(const max_plan *p, int64_t from, int64_t width, int64_t to) {
    const float *x = (const float *)p->x->data + from;
    float *out = (float *)p->out->data + to;
    if (p->inner == 1)
        *out = max_run(x, p->extent, p->sign);
    else
        max_columns(p, x, width, out);
}

static void max_strip_halves(const max_plan *p, int64_t from, int64_t width, int64_t to) {
    const uint16_t *x = (const uint16_t *)p->x->data + from;
    uint16_t *out = (uint16_t *)p->out->data + to;
    if (p->inner == 1)
        max_run_halves(p, x, out);
    else
        max_columns_halves(p, x, width, out);
}

/* Strips of UNIT columns (rows when inner is 1). */
static void max_strips(const void *ctx, int64_t begin, int64_t end) {
    const max_plan *p = ctx;
    for (int64_t task = begin; task < end; task++) {
        const int64_t outer = task / p->strips, first = task % p->strips * UNIT;
        (sn_dtype_is_half(p->x->type.dtype) ? max_strip_halves : max_strip)(
            p, outer * p->extent * p->inner + first, sn_min_i64(UNIT, p->inner - first),
            outer * p->inner + first);
    }
}

static snug_status run_max(const sn_call *c, snug_error *err) {
    const geometry g = geometry_of(&c->in[0].type, &c->attrs->axes.axes);
    const snug_dtype dtype = c->in[0].type.dtype;
    if ((dtype != SNUG_F32 && !sn_dtype_is_half(dtype)) || !g.simple)
        return reference(c, err);
    const max_plan p = {
        .x = &c->in[0],
        .out = &c->out[0],
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

SN_CPU_FAMILY(sum, .reference = reference, .run = run_sum, .takes_stored = SN_STORED_DTYPES,
              .describe = describe_sum)
#define FAMILY(name, plain, fast)                                                                  \
    SN_CPU_FAMILY(name, .reference = plain, .run = fast, .takes_stored = SN_STORED_DTYPES)
FAMILY(prod, reference, reference)
FAMILY(max, reference, run_max)
FAMILY(min, reference, run_max)
FAMILY(argmax, run_argmax, run_argmax)
FAMILY(argmin, run_argmax, run_argmax)
