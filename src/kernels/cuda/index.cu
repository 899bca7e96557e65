/* index.cu: rows whose indices are data: gather, gather_nd, scatter_add, scatter_nd, one_hot; and
 * band and check_finite.
 *
 * gather and scatter refuse an index outside its extent; what they write then does not matter.
 * scatter adds in the order of the indices into each element, as the processor does: the indices
 * are sorted, and a thread adds up the run of one destination. Sums are made in the element's type,
 * so the bits are the processor's; those of halves in f32, rounded once. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/radix.h"

/* --- which row an index names ----------------------------------------------------------------- */
/* Entry u of the indices, [entries, k] of them, names a row of [extents]; gather: k = 1. */
typedef struct {
    sn_indices indices;
    int k;
    int64_t rows; /* product of the extents */
    int64_t extent[SNUG_MAX_RANK];
    sn_divisor entries; /* per batch entry: a batch entry has its own rows */
    uint32_t *refused;
} lookup;

/* -1: outside. */
static __device__ __forceinline__ int64_t row_at(const lookup &l, int64_t u) {
    const int64_t batch = sn_div(u, l.entries);
    int64_t row = 0;
    bool inside = true;
    for (int j = 0; j < l.k; j++) {
        const int64_t at = sn_index_at(l.indices, u * l.k + j);
        inside = inside && at >= 0 && at < l.extent[j];
        row = row * l.extent[j] + at;
    }
    if (inside)
        return batch * l.rows + row;
    *l.refused = SN_CUDA_REFUSED_INDEX;
    return -1;
}

static lookup lookup_nd(const sn_cuda_call *c, const snug_type *x, const snug_view *indices,
                        int64_t batch) {
    const snug_type *t = &indices->type;
    lookup l = {sn_indices_of(indices),
                (int)t->dims[t->rank - 1],
                1,
                {},
                sn_divisor_of(sn_cuda_count(t, (int)batch, t->rank - 1)),
                c->refused};
    for (int j = 0; j < l.k; j++) {
        l.extent[j] = x->dims[batch + j];
        l.rows *= l.extent[j];
    }
    return l;
}

static lookup lookup_axis(const sn_cuda_call *c, const snug_view *indices, int64_t extent) {
    lookup l = {sn_indices_of(indices),
                1,
                extent,
                {},
                sn_divisor_of(sn_cuda_elements(indices)),
                c->refused};
    l.extent[0] = extent;
    return l;
}

/* --- gather ----------------------------------------------------------------------------------- */
/* out[o, u, :] = x[o, row(u), :]; a row has `units` words. */
template <class W> struct gather_f {
    lookup l;
    const W *x;
    W *out;
    sn_divisor units, entries; /* entries: of the indices in all */
    int64_t rows;              /* of x per outer entry */
    __device__ void operator()(int64_t i) const {
        const int64_t line = sn_div(i, units), unit = i - line * units.d;
        const int64_t outer = sn_div(line, entries), row = row_at(l, line - outer * entries.d);
        out[i] = x[(outer * rows + (row < 0 ? 0 : row)) * units.d + unit];
    }
};

typedef struct {
    lookup l;
    int64_t outer, entries, rows, row_bytes;
    const void *x;
    void *out;
} gathering;

template <class W> static void gather_words(const sn_cuda_call *c, const gathering *g) {
    const int64_t units = g->row_bytes / (int64_t)sizeof(W);
    sn_each(c, g->outer * g->entries * units,
            gather_f<W>{g->l, (const W *)g->x, (W *)g->out, sn_divisor_of(units),
                        sn_divisor_of(g->entries), g->rows});
}

static void gather_rows(const sn_cuda_call *c, const gathering *g) {
    const uintptr_t all = (uintptr_t)g->x | (uintptr_t)g->out | (uintptr_t)g->row_bytes;
    if (all % 16 == 0)
        gather_words<int4>(c, g);
    else if (all % 4 == 0)
        gather_words<uint32_t>(c, g);
    else
        gather_words<uint8_t>(c, g);
}

static snug_status run_gather(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_type *t = &c->call->in[0].type;
    const int axis = (int)c->call->attrs->axis.axis;
    const gathering g = {lookup_axis(c, &c->call->in[1], t->dims[axis]),
                         sn_cuda_count(t, 0, axis),
                         sn_cuda_elements(&c->call->in[1]),
                         t->dims[axis],
                         sn_cuda_count(t, axis + 1, t->rank) * (int64_t)snug_dtype_bytes(t->dtype),
                         c->call->in[0].data,
                         c->call->out[0].data};
    gather_rows(c, &g);
    return SNUG_OK;
}
SN_CUDA_FAMILY(gather, run_gather, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)

static snug_status run_gather_nd(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_type *t = &c->call->in[0].type, *u = &c->call->in[1].type;
    const int64_t batch = c->call->attrs->batch.batch;
    const lookup l = lookup_nd(c, t, &c->call->in[1], batch);
    const gathering g = {l,
                         1,
                         sn_cuda_count(u, 0, u->rank - 1),
                         0,
                         sn_cuda_count(t, (int)batch + l.k, t->rank) *
                             (int64_t)snug_dtype_bytes(t->dtype),
                         c->call->in[0].data,
                         c->call->out[0].data};
    gather_rows(c, &g);
    return SNUG_OK;
}
SN_CUDA_FAMILY(gather_nd, run_gather_nd, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)

/* --- scatter ---------------------------------------------------------------------------------- */
/* out[o, row(u), :] += in[o, u, :] over the entries u. */
typedef struct {
    lookup l;
    int64_t outer, entries, rows, inner;
    const void *in;
    void *out;
    bool accumulate;
} scattering;

static scattering scattering_axis(const sn_cuda_call *c) {
    const snug_type *t = &c->call->out[0].type;
    const int axis = (int)c->call->attrs->scatter.axis;
    const scattering s = {lookup_axis(c, &c->call->in[0], t->dims[axis]),
                          sn_cuda_count(t, 0, axis),
                          sn_cuda_elements(&c->call->in[0]),
                          t->dims[axis],
                          sn_cuda_count(t, axis + 1, t->rank),
                          c->call->in[1].data,
                          c->call->out[0].data,
                          c->call->accumulate};
    return s;
}

static scattering scattering_nd(const sn_cuda_call *c) {
    const snug_type *t = &c->call->out[0].type, *u = &c->call->in[0].type;
    const int64_t batch = c->call->attrs->scatter_nd.batch;
    const lookup l = lookup_nd(c, t, &c->call->in[0], batch);
    const scattering s = {l,
                          1,
                          sn_cuda_count(u, 0, u->rank - 1),
                          sn_cuda_count(t, 0, (int)batch) * l.rows,
                          sn_cuda_count(t, (int)batch + l.k, t->rank),
                          c->call->in[1].data,
                          c->call->out[0].data,
                          c->call->accumulate};
    return s;
}

/* Entries that point nowhere have a row of their own behind all others. */
struct keys_f {
    lookup l;
    uint64_t *key;
    uint32_t *at;
    int64_t rows;
    __device__ void operator()(int64_t u) const {
        const int64_t row = row_at(l, u);
        key[u] = (uint64_t)(row < 0 ? rows : row);
        at[u] = (uint32_t)u;
    }
};

template <class M> struct zero_f {
    M *out;
    __device__ void operator()(int64_t i) const { out[i] = (M)0; }
};

/* Item (outer, sorted place, column): the first place of a row adds the whole run. A: the type sums
 * are made in; wrapping for integers. */
template <class M, class A> struct add_runs_f {
    typedef sn_computed<M> S;
    const uint64_t *key;
    const uint32_t *at;
    const M *in;
    M *out;
    sn_divisor inner, entries;
    int64_t rows;
    /* Behind the run of `row` that begins at `first`: a step that doubles, then halves. Knowing it,
     * the loads of a run need not wait for each other. */
    __device__ int64_t run_end(int64_t first, uint64_t row) const {
        int64_t end = first + 1, step = 1;
        for (; end + step <= entries.d && key[end + step - 1] == row; step *= 2)
            end += step;
        for (; step > 0; step /= 2)
            if (end + step <= entries.d && key[end + step - 1] == row)
                end += step;
        return end;
    }
    __device__ void operator()(int64_t i) const {
        const int64_t line = sn_div(i, inner), column = i - line * inner.d;
        const int64_t outer = sn_div(line, entries), first = line - outer * entries.d;
        const uint64_t row = key[first];
        if (row >= (uint64_t)rows || (first > 0 && key[first - 1] == row))
            return;
        M *to = out + (outer * rows + (int64_t)row) * inner.d + column;
        const M *from = in + outer * entries.d * inner.d + column;
        S sum = (S)*to;
        const int64_t end = run_end(first, row);
#pragma unroll 4
        for (int64_t k = first; k < end; k++)
            sum = (S)((A)sum + (A)from[(int64_t)at[k] * inner.d]);
        *to = (M)sum;
    }
};

template <class M, class A>
static snug_status scatter_as(const sn_cuda_call *c, const scattering *s) {
    const int64_t size = s->outer * s->rows * s->inner;
    sn_radix r = sn_radix_in(c->call->workspace, s->entries);
    if (!s->accumulate)
        sn_each(c, size, zero_f<M>{(M *)s->out});
    if (size == 0)
        return SNUG_OK;
    sn_each(c, s->entries, keys_f{s->l, r.key[0], r.at[0], s->rows});
    sn_radix_sort(c, &r, sn_bits_below(s->rows + 1));
    sn_each(c, s->outer * s->entries * s->inner,
            add_runs_f<M, A>{r.key[r.now], r.at[r.now], (const M *)s->in, (M *)s->out,
                             sn_divisor_of(s->inner), sn_divisor_of(s->entries), s->rows});
    return SNUG_OK;
}

static snug_status scatter(const sn_cuda_call *c, const scattering *s, snug_error *err) {
    const snug_dtype dtype = c->call->out[0].type.dtype;
    return dtype == SNUG_F32    ? scatter_as<float, float>(c, s)
           : dtype == SNUG_F64  ? scatter_as<double, double>(c, s)
           : dtype == SNUG_F16  ? scatter_as<sn_half, float>(c, s)
           : dtype == SNUG_BF16 ? scatter_as<sn_brain, float>(c, s)
           : dtype == SNUG_I8   ? scatter_as<int8_t, uint64_t>(c, s)
           : dtype == SNUG_U8   ? scatter_as<uint8_t, uint64_t>(c, s)
           : dtype == SNUG_I32  ? scatter_as<int32_t, uint64_t>(c, s)
           : dtype == SNUG_I64  ? scatter_as<int64_t, uint64_t>(c, s)
                                : sn_cuda_no_kernel(dtype, err);
}

static snug_status describe_entries(int64_t entries, sn_variant *out, snug_error *err) {
    if (entries >> 32 != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the GPU sorts fewer than 2^32 numbers, not %lld",
                       (long long)entries);
    out->workspace_bytes = sn_radix_bytes(entries);
    return SNUG_OK;
}

static snug_status run_scatter_add(const sn_cuda_call *c, snug_error *err) {
    const scattering s = scattering_axis(c);
    return scatter(c, &s, err);
}
static snug_status describe_scatter_add(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                        snug_error *err) {
    (void)g;
    return describe_entries(sn_cuda_count(&d->in[0], 0, d->in[0].rank), out, err);
}
SN_CUDA_FLOATS(scatter_add, run_scatter_add, describe_scatter_add, 0)

static snug_status run_scatter_nd(const sn_cuda_call *c, snug_error *err) {
    const scattering s = scattering_nd(c);
    return scatter(c, &s, err);
}
static snug_status describe_scatter_nd(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                       snug_error *err) {
    (void)g;
    return describe_entries(sn_cuda_count(&d->in[0], 0, d->in[0].rank - 1), out, err);
}
SN_CUDA_FLOATS(scatter_nd, run_scatter_nd, describe_scatter_nd, 0)

/* --- one_hot, band, check_finite -------------------------------------------------------------- */
template <class T> struct one_hot_f {
    sn_indices indices;
    T *out;
    sn_divisor depth;
    __device__ void operator()(int64_t i) const {
        const int64_t row = sn_div(i, depth);
        out[i] = sn_index_at(indices, row) == i - row * depth.d ? (T)1 : (T)0;
    }
};
template <class T> static snug_status one_hot(const sn_cuda_call *c) {
    sn_each(c, sn_cuda_elements(&c->call->out[0]),
            one_hot_f<T>{sn_indices_of(&c->call->in[0]), sn_out<T>(c, 0),
                         sn_divisor_of(c->call->attrs->one_hot.depth)});
    return SNUG_OK;
}
static snug_status run_one_hot(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = c->call->out[0].type.dtype;
    return dtype == SNUG_F32                      ? one_hot<float>(c)
           : dtype == SNUG_F64                    ? one_hot<double>(c)
           : dtype == SNUG_F16                    ? one_hot<sn_half>(c)
           : dtype == SNUG_BF16                   ? one_hot<sn_brain>(c)
           : dtype == SNUG_I8 || dtype == SNUG_U8 ? one_hot<uint8_t>(c)
           : dtype == SNUG_I32                    ? one_hot<int32_t>(c)
           : dtype == SNUG_I64                    ? one_hot<int64_t>(c)
                                                  : sn_cuda_no_kernel(dtype, err);
}
SN_CUDA_FLOATS(one_hot, run_one_hot, NULL, 0)

template <class W> struct band_f {
    const W *x;
    W *out;
    sn_divisor width, height;
    int64_t low, high;
    __device__ void operator()(int64_t i) const {
        const int64_t line = sn_div(i, width), column = i - line * width.d;
        const int64_t row = line - sn_div(line, height) * height.d;
        out[i] = column >= row + low && column <= row + high ? x[i] : (W)0;
    }
};
template <class W> static void band(const sn_cuda_call *c) {
    const snug_type *t = &c->call->out[0].type;
    sn_each(c, sn_cuda_elements(&c->call->out[0]),
            band_f<W>{sn_in<W>(c, 0), sn_out<W>(c, 0), sn_divisor_of(t->dims[t->rank - 1]),
                      sn_divisor_of(t->dims[t->rank - 2]), c->call->attrs->band.low,
                      c->call->attrs->band.high});
}
static snug_status run_band(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const size_t size = snug_dtype_bytes(c->call->out[0].type.dtype);
    size == 1   ? band<uint8_t>(c)
    : size == 2 ? band<uint16_t>(c)
    : size == 4 ? band<uint32_t>(c)
                : band<uint64_t>(c);
    return SNUG_OK;
}
SN_CUDA_FAMILY(band, run_band, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)

template <class T> struct finite_f {
    const T *x;
    T *out;
    uint32_t *refused;
    __device__ void operator()(int64_t i) const {
        const T v = x[i];
        if (!(v - v == (sn_computed<T>)0))
            *refused = SN_CUDA_REFUSED_FINITE;
        if (out != x)
            out[i] = v;
    }
};
template <class T> static void check_finite(const sn_cuda_call *c) {
    sn_each(c, sn_cuda_elements(&c->call->out[0]),
            finite_f<T>{sn_in<T>(c, 0), sn_out<T>(c, 0), c->refused});
}
static snug_status run_check_finite(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, check_finite, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(check_finite, run_check_finite, NULL, 0)
