/* index.c: gather, scatter_add and one_hot: rows whose indices are data.
 *
 * A value indexed along an axis is [outer, extent, inner]; the indices, flat, number n. gather and
 * scatter_add refuse an index outside [0, extent) with SNUG_E_DATA before anything is written;
 * one_hot gives zeros for it. scatter_add adds in the order of the indices into each element,
 * whoever does it: a thread owns rows of the output and goes through all indices. */
#include "kernels/cpu/loops.h"

#include <string.h>

typedef struct {
    const void *data;
    bool wide; /* i64, else i32 */
    int64_t n;
} index_list;

static index_list indices_of(const snug_view *v) {
    return (index_list){v->data, v->type.dtype == SNUG_I64, sn_type_count(&v->type)};
}

static inline int64_t index_at(const index_list *l, int64_t i) {
    return l->wide ? ((const int64_t *)l->data)[i] : (int64_t)((const int32_t *)l->data)[i];
}

static snug_status check_indices(const index_list *l, int64_t extent, snug_error *err) {
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = index_at(l, i);
        if (at < 0 || at >= extent)
            return sn_fail(err, SNUG_E_DATA,
                           "index %lld at position %lld is outside [0, %lld); correct the data",
                           (long long)at, (long long)i, (long long)extent);
    }
    return SNUG_OK;
}

/* --- gather ----------------------------------------------------------------------------------- */
static snug_status run_gather(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->in[0].type;
    const int axis = (int)c->attrs->axis.axis;
    const index_list l = indices_of(&c->in[1]);
    const int64_t extent = t->dims[axis], outer = sn_type_span(t, 0, axis);
    const int64_t row = sn_type_span(t, axis + 1, t->rank) * (int64_t)snug_dtype_bytes(t->dtype);
    const char *from = c->in[0].data;
    char *to = c->out[0].data;
    SNUG_TRY(check_indices(&l, extent, err));
    const int n_threads = sn_threads_for(c, sn_type_count(&c->out[0].type));
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
    for (int64_t u = 0; u < outer * l.n; u++)
        memcpy(to + u * row, from + (u / l.n * extent + index_at(&l, u % l.n)) * row, (size_t)row);
    return SNUG_OK;
}

/* --- scatter_add ------------------------------------------------------------------------------ */
typedef struct {
    index_list indices;
    int64_t outer, extent, inner;
} scatter;

/* Rows [first, last) of the output, counted over outer and extent. */
typedef void (*scatter_rows)(const sn_call *c, const scatter *s, int64_t first, int64_t last);

/* S: the type sums are made in; wrapping for integers. */
#define SCATTER_ROWS(name, M, S)                                                                   \
    static void name(const sn_call *c, const scatter *s, int64_t first, int64_t last) {            \
        M *out = c->out[0].data;                                                                   \
        const M *in = c->in[1].data;                                                               \
        if (!c->accumulate)                                                                        \
            memset(out + first * s->inner, 0, (size_t)((last - first) * s->inner) * sizeof(M));    \
        for (int64_t u = first / s->extent * s->indices.n; u < s->outer * s->indices.n; u++) {     \
            const int64_t o = u / s->indices.n;                                                    \
            const int64_t row = o * s->extent + index_at(&s->indices, u - o * s->indices.n);       \
            if (o * s->extent >= last)                                                             \
                break;                                                                             \
            if (row < first || row >= last)                                                        \
                continue;                                                                          \
            M *to = out + row * s->inner;                                                          \
            const M *from = in + u * s->inner;                                                     \
            for (int64_t k = 0; k < s->inner; k++)                                                 \
                to[k] = (M)((S)to[k] + (S)from[k]);                                                \
        }                                                                                          \
    }
SCATTER_ROWS(scatter_f32, float, float)
SCATTER_ROWS(scatter_f64, double, double)
SCATTER_ROWS(scatter_i8, int8_t, uint64_t)
SCATTER_ROWS(scatter_u8, uint8_t, uint64_t)
SCATTER_ROWS(scatter_i32, int32_t, uint64_t)
SCATTER_ROWS(scatter_i64, int64_t, uint64_t)

static const scatter_rows scatters[SNUG_N_DTYPES] = {
    [SNUG_F32] = scatter_f32, [SNUG_F64] = scatter_f64, [SNUG_I8] = scatter_i8,
    [SNUG_U8] = scatter_u8,   [SNUG_I32] = scatter_i32, [SNUG_I64] = scatter_i64,
};

static snug_status scatter_by(const sn_call *c, int n_threads, snug_error *err) {
    const snug_type *t = &c->out[0].type;
    const int axis = (int)c->attrs->scatter.axis;
    const scatter s = {indices_of(&c->in[0]), sn_type_span(t, 0, axis), t->dims[axis],
                       sn_type_span(t, axis + 1, t->rank)};
    const scatter_rows rows = scatters[t->dtype];
    const int64_t n_rows = s.outer * s.extent;
    if (!rows)
        return sn_no_kernel(t->dtype, err);
    SNUG_TRY(check_indices(&s.indices, s.extent, err));
    if (n_rows == 0)
        return SNUG_OK;
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
    for (int part = 0; part < n_threads; part++)
        rows(c, &s, n_rows * part / n_threads, n_rows * (part + 1) / n_threads);
    return SNUG_OK;
}

static snug_status reference_scatter_add(const sn_call *c, snug_error *err) {
    return scatter_by(c, 1, err);
}

static snug_status run_scatter_add(const sn_call *c, snug_error *err) {
    return scatter_by(c, sn_threads_for(c, sn_type_count(&c->in[1].type)), err);
}

/* --- one_hot ---------------------------------------------------------------------------------- */
static snug_status run_one_hot(const sn_call *c, snug_error *err) {
    const index_list l = indices_of(&c->in[0]);
    const snug_dtype dtype = c->out[0].type.dtype;
    const int64_t depth = c->attrs->one_hot.depth, size = (int64_t)snug_dtype_bytes(dtype);
    const float single = 1;
    const double real = 1;
    const int64_t whole = 1; /* little endian: its low bytes are 1 in any width */
    const void *one = dtype == SNUG_F32   ? (const void *)&single
                      : dtype == SNUG_F64 ? (const void *)&real
                                          : (const void *)&whole;
    if (dtype != SNUG_F32 && dtype != SNUG_F64 && !sn_dtype_is_int(dtype))
        return sn_no_kernel(dtype, err);
    const int n_threads = sn_threads_for(c, l.n * depth);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
    for (int64_t i = 0; i < l.n; i++) {
        char *row = (char *)c->out[0].data + i * depth * size;
        const int64_t at = index_at(&l, i);
        memset(row, 0, (size_t)(depth * size));
        if (at >= 0 && at < depth)
            memcpy(row + at * size, one, (size_t)size);
    }
    return SNUG_OK;
}

SN_CPU_FAMILY(gather, .reference = run_gather, .run = run_gather)
SN_CPU_FAMILY(scatter_add, .reference = reference_scatter_add, .run = run_scatter_add)
SN_CPU_FAMILY(one_hot, .reference = run_one_hot, .run = run_one_hot)
