/* index_nd.c: gather_nd, scatter_nd and band.
 *
 * The indexed value is [batch, e1..ek, inner], the indices [batch, n, k]; row u of the gathered
 * one, [batch, n, inner], belongs to entry u of the indices. A position outside its extent is
 * refused with SNUG_E_DATA before anything is written. scatter_nd adds in the order of the indices
 * into each element: a thread owns some of the inner columns of one batch entry and goes through
 * all its indices. */
#include "kernels/cpu/half_floats.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/row_sums.h"

#include <string.h>

#define COLUMNS 512 /* of an item of scatter_nd */

typedef struct {
    const void *indices;
    bool wide; /* i64, else i32 */
    int k;
    int64_t batch, n, inner;       /* inner: elements */
    int64_t extent[SNUG_MAX_RANK]; /* of the k indexed axes */
    int64_t rows;                  /* product of them */
} lookup;

static lookup lookup_of(const snug_type *x, const snug_view *indices, int64_t batch) {
    const snug_type *t = &indices->type;
    lookup l = {.indices = indices->data,
                .wide = t->dtype == SNUG_I64,
                .k = (int)t->dims[t->rank - 1],
                .batch = sn_type_span(t, 0, (int)batch),
                .n = sn_type_span(t, (int)batch, t->rank - 1),
                .rows = 1};
    for (int j = 0; j < l.k; j++) {
        l.extent[j] = x->dims[batch + j];
        l.rows *= l.extent[j];
    }
    l.inner = sn_type_span(x, (int)batch + l.k, x->rank);
    return l;
}

static inline int64_t position(const lookup *l, int64_t u, int j) {
    const int64_t i = u * l->k + j;
    return l->wide ? ((const int64_t *)l->indices)[i] : ((const int32_t *)l->indices)[i];
}

/* Which row of its batch entry u points to. */
static inline int64_t row_at(const lookup *l, int64_t u) {
    int64_t row = 0;
    for (int j = 0; j < l->k; j++)
        row = row * l->extent[j] + position(l, u, j);
    return row;
}

static snug_status check_positions(const lookup *l, snug_error *err) {
    for (int64_t u = 0; u < l->batch * l->n && l->indices; u++)
        for (int j = 0; j < l->k; j++) {
            const int64_t at = position(l, u, j);
            if (at < 0 || at >= l->extent[j])
                return sn_fail(err, SNUG_E_DATA,
                               "entry %lld points to %lld of an axis of %lld; correct the data",
                               (long long)u, (long long)at, (long long)l->extent[j]);
        }
    return SNUG_OK;
}

/* --- gather_nd -------------------------------------------------------------------------------- */
typedef struct {
    lookup l;
    const char *from;
    char *to;
    int64_t row_bytes;
} gather;

static void gather_rows(const void *ctx, int64_t first, int64_t end) {
    const gather *g = ctx;
    for (int64_t u = first; u < end; u++)
        memcpy(g->to + u * g->row_bytes,
               g->from + (u / g->l.n * g->l.rows + row_at(&g->l, u)) * g->row_bytes,
               (size_t)g->row_bytes);
}

static snug_status run_gather_nd(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->in[0].type;
    gather g = {.l = lookup_of(t, &c->in[1], c->attrs->batch.batch),
                .from = c->in[0].data,
                .to = c->out[0].data};
    SNUG_TRY(check_positions(&g.l, err));
    g.row_bytes = g.l.inner * (int64_t)snug_dtype_bytes(t->dtype);
    sn_parallel(c, sn_type_count(&c->out[0].type), g.l.batch * g.l.n, gather_rows, &g);
    return SNUG_OK;
}

static snug_status check_gather_nd(const sn_call *c, snug_error *err) {
    const lookup l = lookup_of(&c->in[0].type, &c->in[1], c->attrs->batch.batch);
    return check_positions(&l, err);
}

/* --- scatter_nd ------------------------------------------------------------------------------- */
/* Columns [first, first + n) of batch entry b. */
typedef void (*add_columns)(const sn_call *c, const lookup *l, int64_t b, int64_t first, int64_t n);

/* S: the type sums are made in; wrapping for integers. */
#define ADD_COLUMNS(name, M, S)                                                                    \
    static void name(const sn_call *c, const lookup *l, int64_t b, int64_t first, int64_t n) {     \
        const M *in = (const M *)c->in[1].data + first;                                            \
        M *out = (M *)c->out[0].data + b * l->rows * l->inner + first;                             \
        for (int64_t r = 0; r < l->rows && !c->accumulate; r++)                                    \
            memset(out + r * l->inner, 0, (size_t)n * sizeof(M));                                  \
        for (int64_t u = b * l->n; u < (b + 1) * l->n; u++) {                                      \
            const M *from = in + u * l->inner;                                                     \
            M *to = out + row_at(l, u) * l->inner;                                                 \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = (M)((S)to[i] + (S)from[i]);                                                \
        }                                                                                          \
    }
ADD_COLUMNS(add_f32, float, float)
ADD_COLUMNS(add_f64, double, double)
ADD_COLUMNS(add_i8, int8_t, uint64_t)
ADD_COLUMNS(add_u8, uint8_t, uint64_t)
ADD_COLUMNS(add_i32, int32_t, uint64_t)
ADD_COLUMNS(add_i64, int64_t, uint64_t)
ADD_COLUMNS(add_i16, int16_t, uint64_t)
ADD_COLUMNS(add_u16, uint16_t, uint64_t)
ADD_COLUMNS(add_u32, uint32_t, uint64_t)

static const add_columns adders[SNUG_N_DTYPES] = {
    [SNUG_F32] = add_f32, [SNUG_F64] = add_f64, [SNUG_I8] = add_i8,
    [SNUG_U8] = add_u8,   [SNUG_I32] = add_i32, [SNUG_I64] = add_i64,
    [SNUG_I16] = add_i16, [SNUG_U16] = add_u16, [SNUG_U32] = add_u32,
};

typedef struct {
    const sn_call *c;
    lookup l;
    add_columns add;
    int64_t pieces; /* of the inner columns */
} scatter;

static void scatter_items(const void *ctx, int64_t first, int64_t end) {
    const scatter *s = ctx;
    for (int64_t u = first; u < end; u++) {
        const int64_t from = u % s->pieces * COLUMNS;
        s->add(s->c, &s->l, u / s->pieces, from, sn_min_i64(COLUMNS, s->l.inner - from));
    }
}

static snug_status check_scatter_nd(const sn_call *c, snug_error *err) {
    const lookup l = lookup_of(&c->out[0].type, &c->in[0], c->attrs->scatter_nd.batch);
    return check_positions(&l, err);
}

static int64_t place_of(const void *indices, int64_t u) {
    return row_at(indices, u);
}

/* What halves are summed by. */
static sn_row_sums row_sums_of(const lookup *l) {
    return (sn_row_sums){l->batch, l->rows, l->inner, l->n, place_of, l};
}

static snug_status describe_scatter_nd(const sn_opdesc *d, int n_threads, sn_variant *out,
                                       snug_error *err) {
    const snug_view indices = {.type = d->in[0]};
    const lookup l = lookup_of(&d->out[0], &indices, d->attrs.scatter_nd.batch);
    const sn_row_sums sums = row_sums_of(&l);
    (void)err;
    if (sn_dtype_is_half(d->in[1].dtype))
        out->workspace_bytes = sn_row_sums_bytes(&sums, d->out[0].dtype, n_threads);
    return SNUG_OK;
}

static snug_status scatter_halves(const sn_call *c,
                                  void (*add)(const sn_call *, const sn_row_sums *),
                                  snug_error *err) {
    const lookup l = lookup_of(&c->out[0].type, &c->in[0], c->attrs->scatter_nd.batch);
    const sn_row_sums sums = row_sums_of(&l);
    SNUG_TRY(check_positions(&l, err));
    add(c, &sums);
    return SNUG_OK;
}

static snug_status run_scatter_nd(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->out[0].type;
    if (sn_dtype_is_half(c->in[1].type.dtype))
        return scatter_halves(c, sn_row_sums_run, err);
    const lookup l = lookup_of(t, &c->in[0], c->attrs->scatter_nd.batch);
    const scatter s = {c, l, adders[t->dtype], sn_ceil_div(l.inner, COLUMNS)};
    if (!s.add)
        return sn_no_kernel(t->dtype, err);
    SNUG_TRY(check_positions(&s.l, err));
    sn_parallel(c, sn_type_count(&c->in[1].type), s.l.batch * s.pieces, scatter_items, &s);
    return SNUG_OK;
}

static snug_status reference_scatter_nd(const sn_call *c, snug_error *err) {
    return sn_dtype_is_half(c->in[1].type.dtype) ? scatter_halves(c, sn_row_sums_plain, err)
                                                 : run_scatter_nd(c, err);
}

/* --- band ------------------------------------------------------------------------------------- */
typedef struct {
    const char *from;
    char *to;
    size_t size;
    int64_t height, width, low, high;
} band;

static int64_t inside(int64_t at, int64_t width) {
    return at < 0 ? 0 : at > width ? width : at;
}

static void band_rows(const void *ctx, int64_t first, int64_t end) {
    const band *b = ctx;
    const size_t row_bytes = (size_t)b->width * b->size;
    for (int64_t r = first; r < end; r++) {
        const int64_t i = r % b->height, left = inside(i + b->low, b->width),
                      stop = inside(i + b->high + 1, b->width), right = stop < left ? left : stop;
        const size_t from = (size_t)left * b->size, to = (size_t)right * b->size;
        char *row = b->to + (size_t)r * row_bytes;
        if (b->to != b->from)
            memcpy(row + from, b->from + (size_t)r * row_bytes + from, to - from);
        memset(row, 0, from);
        memset(row + to, 0, row_bytes - to);
    }
}

static snug_status run_band(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->out[0].type;
    (void)err;
    const band b = {.from = c->in[0].data,
                    .to = c->out[0].data,
                    .size = snug_dtype_bytes(t->dtype),
                    .height = t->dims[t->rank - 2],
                    .width = t->dims[t->rank - 1],
                    .low = c->attrs->band.low,
                    .high = c->attrs->band.high};
    sn_parallel(c, sn_type_count(t), sn_type_span(t, 0, t->rank - 1), band_rows, &b);
    return SNUG_OK;
}

SN_CPU_FAMILY(gather_nd, .reference = run_gather_nd, .run = run_gather_nd,
              .takes_stored = SN_STORED_DTYPES, .check_data = check_gather_nd)
SN_CPU_FAMILY(scatter_nd, .reference = reference_scatter_nd, .run = run_scatter_nd,
              .takes_stored = SN_STORED_DTYPES, .describe = describe_scatter_nd,
              .check_data = check_scatter_nd)
SN_CPU_FAMILY(band, .reference = run_band, .run = run_band, .takes_stored = SN_STORED_DTYPES)
