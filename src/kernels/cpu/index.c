/* index.c: gather, scatter_add and one_hot: rows whose indices are data.
 *
 * A value indexed along an axis is [outer, extent, inner]; the indices, flat, number n. gather and
 * scatter_add refuse an index outside [0, extent) with SNUG_E_DATA before anything is written;
 * one_hot gives zeros for it. scatter_add adds in the order of the indices into each element,
 * whoever does it: a thread owns rows of the output and goes through all indices. */
#include "kernels/cpu/half_floats.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/row_sums.h"
#include "tensor/feed.h"

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
    for (int64_t i = 0; i < l->n && l->data; i++) {
        const int64_t at = index_at(l, i);
        if (at < 0 || at >= extent)
            return sn_fail(err, SNUG_E_DATA,
                           "index %lld at position %lld is outside [0, %lld); correct the data",
                           (long long)at, (long long)i, (long long)extent);
    }
    return SNUG_OK;
}

/* --- gather ----------------------------------------------------------------------------------- */
typedef struct {
    index_list indices;
    int64_t extent, row; /* row: bytes */
    const char *from;
    char *to;
} gather;

static void gather_rows(const void *ctx, int64_t first, int64_t end) {
    const gather *g = ctx;
    const int64_t n = g->indices.n;
    for (int64_t u = first; u < end; u++)
        memcpy(g->to + u * g->row,
               g->from + (u / n * g->extent + index_at(&g->indices, u % n)) * g->row,
               (size_t)g->row);
}

static snug_status run_gather(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->in[0].type;
    const int axis = (int)c->attrs->axis.axis;
    const int64_t outer = sn_type_span(t, 0, axis);
    const gather g = {
        .indices = indices_of(&c->in[1]),
        .extent = t->dims[axis],
        .row = sn_type_span(t, axis + 1, t->rank) * (int64_t)snug_dtype_bytes(t->dtype),
        .from = c->in[0].data,
        .to = c->out[0].data,
    };
    SNUG_TRY(check_indices(&g.indices, g.extent, err));
    sn_parallel(c, sn_type_count(&c->out[0].type), outer * g.indices.n, gather_rows, &g);
    return SNUG_OK;
}

static snug_status check_gather(const sn_call *c, snug_error *err) {
    const index_list indices = indices_of(&c->in[1]);
    return check_indices(&indices, c->in[0].type.dims[c->attrs->axis.axis], err);
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
SCATTER_ROWS(scatter_i16, int16_t, uint64_t)
SCATTER_ROWS(scatter_u16, uint16_t, uint64_t)
SCATTER_ROWS(scatter_u32, uint32_t, uint64_t)

static const scatter_rows scatters[SNUG_N_DTYPES] = {
    [SNUG_F32] = scatter_f32, [SNUG_F64] = scatter_f64, [SNUG_I8] = scatter_i8,
    [SNUG_U8] = scatter_u8,   [SNUG_I32] = scatter_i32, [SNUG_I64] = scatter_i64,
    [SNUG_I16] = scatter_i16, [SNUG_U16] = scatter_u16, [SNUG_U32] = scatter_u32,
};

typedef struct {
    const sn_call *c;
    scatter s;
    scatter_rows rows;
    int64_t n_rows, n_parts;
} scatter_loop;

/* Every part goes through all indices, so neighbouring parts are done in one go. */
static void scatter_parts(const void *ctx, int64_t first, int64_t end) {
    const scatter_loop *l = ctx;
    l->rows(l->c, &l->s, l->n_rows * first / l->n_parts, l->n_rows * end / l->n_parts);
}

static snug_status scatter_by(const sn_call *c, int64_t n_parts, snug_error *err) {
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
    const scatter_loop loop = {c, s, rows, n_rows, n_parts};
    sn_parallel(c, sn_type_count(&c->in[1].type), n_parts, scatter_parts, &loop);
    return SNUG_OK;
}

static int64_t place_of(const void *indices, int64_t u) {
    const index_list *l = indices;
    return index_at(l, u % l->n);
}

/* What halves are summed by; `indices` stays where it is. */
static sn_row_sums row_sums_of(const snug_type *t, const sn_attrs_scatter *a,
                               const index_list *indices) {
    const int axis = (int)a->axis;
    return (sn_row_sums){sn_type_span(t, 0, axis),
                         t->dims[axis],
                         sn_type_span(t, axis + 1, t->rank),
                         indices->n,
                         place_of,
                         indices};
}

static snug_status scatter_halves(const sn_call *c,
                                  void (*add)(const sn_call *, const sn_row_sums *),
                                  snug_error *err) {
    const index_list indices = indices_of(&c->in[0]);
    const sn_row_sums sums = row_sums_of(&c->out[0].type, &c->attrs->scatter, &indices);
    SNUG_TRY(check_indices(&indices, sums.extent, err));
    add(c, &sums);
    return SNUG_OK;
}

static snug_status describe_scatter_add(const sn_opdesc *d, int n_threads, sn_variant *out,
                                        snug_error *err) {
    const index_list indices = {.n = sn_type_count(&d->in[0])};
    const sn_row_sums sums = row_sums_of(&d->out[0], &d->attrs.scatter, &indices);
    (void)err;
    if (sn_dtype_is_half(d->in[1].dtype))
        out->workspace_bytes = sn_row_sums_bytes(&sums, d->out[0].dtype, n_threads);
    return SNUG_OK;
}

static snug_status check_scatter_add(const sn_call *c, snug_error *err) {
    const index_list indices = indices_of(&c->in[0]);
    return check_indices(&indices, c->out[0].type.dims[c->attrs->scatter.axis], err);
}

static snug_status reference_scatter_add(const sn_call *c, snug_error *err) {
    return sn_dtype_is_half(c->in[1].type.dtype) ? scatter_halves(c, sn_row_sums_plain, err)
                                                 : scatter_by(c, 1, err);
}

static snug_status run_scatter_add(const sn_call *c, snug_error *err) {
    if (sn_dtype_is_half(c->in[1].type.dtype))
        return scatter_halves(c, sn_row_sums_run, err);
    return scatter_by(c, c->n_threads < 1 ? 1 : c->n_threads, err);
}

/* --- one_hot ---------------------------------------------------------------------------------- */
typedef struct {
    index_list indices;
    char *out;
    int64_t depth;
    size_t size;
    char one[8];
} one_hot;

static void one_hot_rows(const void *ctx, int64_t first, int64_t end) {
    const one_hot *h = ctx;
    const size_t row_bytes = (size_t)h->depth * h->size;
    for (int64_t i = first; i < end; i++) {
        char *row = h->out + (size_t)i * row_bytes;
        const int64_t at = index_at(&h->indices, i);
        memset(row, 0, row_bytes);
        if (at >= 0 && at < h->depth)
            memcpy(row + (size_t)at * h->size, h->one, h->size);
    }
}

static snug_status run_one_hot(const sn_call *c, snug_error *err) {
    const snug_dtype dtype = c->out[0].type.dtype;
    const double real = 1;
    one_hot h = {
        .indices = indices_of(&c->in[0]),
        .out = c->out[0].data,
        .depth = c->attrs->one_hot.depth,
        .size = snug_dtype_bytes(dtype),
        .one = {1}, /* little endian: a 1 of any width */
    };
    if (sn_dtype_is_float(dtype))
        SNUG_TRY(sn_convert(SNUG_F64, &real, dtype, h.one, 1, err));
    else if (!sn_dtype_is_int(dtype))
        return sn_no_kernel(dtype, err);
    sn_parallel(c, h.indices.n * h.depth, h.indices.n, one_hot_rows, &h);
    return SNUG_OK;
}

SN_CPU_FAMILY(gather, .reference = run_gather, .run = run_gather, .takes_stored = SN_STORED_DTYPES,
              .check_data = check_gather)
SN_CPU_FAMILY(scatter_add, .reference = reference_scatter_add, .run = run_scatter_add,
              .takes_stored = SN_STORED_DTYPES, .describe = describe_scatter_add,
              .check_data = check_scatter_add)
SN_CPU_FAMILY(one_hot, .reference = run_one_hot, .run = run_one_hot,
              .takes_stored = SN_STORED_DTYPES)
