/* reduce.cu: sum, product, max, min and the places of the extremes, over axes; running sums and
 * products. f32 is summed in double, integers in 64 bits, wrapping; NaN wins maximum and minimum.
 * reduce.h has the order. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/reduce.h"

/* --- geometry --------------------------------------------------------------------------------- */
/* The input as [outer, extent, inner] with the middle reduced where `simple`, and in general the
 * axes that stay and those that go. */
typedef struct {
    sn_cuda_walk kept, reduced;
    bool simple;
    int64_t outer, extent, inner;
} geometry;

static bool is_reduced(const sn_list *axes, int axis) {
    for (int64_t k = 0; k < axes->n; k++)
        if (axes->v[k] == axis)
            return true;
    return axes->n == 0;
}

static void group_add(sn_cuda_walk *g, int64_t extent, int64_t stride) {
    g->dims[g->rank] = extent;
    g->stride[0][g->rank++] = stride;
}

static geometry geometry_of(const snug_type *t, const sn_list *axes) {
    geometry g = {};
    int64_t dense[SNUG_MAX_RANK] = {0};
    int runs = 0;
    bool inside = false;
    g.kept.n = g.reduced.n = 1;
    g.outer = g.extent = g.inner = 1;
    sn_cuda_dense(t, dense);
    for (int k = 0; k < t->rank; k++) {
        const bool gone = is_reduced(axes, k);
        group_add(gone ? &g.reduced : &g.kept, t->dims[k], dense[k]);
        if (t->dims[k] == 1)
            continue;
        runs += gone && !inside;
        inside = gone;
        *(gone ? &g.extent : runs == 0 ? &g.outer : &g.inner) *= t->dims[k];
    }
    g.simple = runs <= 1;
    sn_cuda_walk_merge(&g.kept);
    sn_cuda_walk_merge(&g.reduced);
    return g;
}

static sn_rows rows_of(const geometry *g) {
    return sn_rows_of(sn_cuda_steps(&g->kept), sn_cuda_steps(&g->reduced));
}

static snug_status describe(const sn_gpu *gpu, const sn_opdesc *d, sn_variant *out,
                            snug_error *err) {
    (void)gpu, (void)err;
    const geometry g = geometry_of(&d->in[0], &d->attrs.axes.axes);
    const sn_columns columns = sn_columns_of(g.outer, g.extent, g.inner);
    const sn_rows rows = rows_of(&g);
    out->workspace_bytes =
        g.simple && g.inner > 1 ? sn_columns_bytes(&columns, 1) : sn_rows_bytes(&rows, 1);
    return SNUG_OK;
}

/* --- what is combined ------------------------------------------------------------------------- */
/* A sum, rounded once; of halves it may be f32. */
template <class M, class A>
static __device__ __forceinline__ void put_sum(const sn_plain_line<M> &to, int64_t o, A v) {
    to.put(o, (M)v);
}
static __device__ __forceinline__ void put_sum(const sn_mixed_line &to, int64_t o, double v) {
    if (to.dtype == SNUG_F16)
        ((sn_half *)to.data)[o] = (sn_half)v;
    else
        to.put(o, (float)v);
}

/* M: what memory holds, A: what is computed in. */
template <class M, class A> struct sum_f {
    typedef A value;
    enum { N = 1 };
    const M *x;
    sn_line<M> out;
    bool accumulate;
    static __device__ A start() { return (A)0; }
    static __device__ A combine(A a, A b) { return a + b; }
    __device__ void add(int64_t at, int64_t, int64_t, A *v) const { v[0] += (A)x[at]; }
    __device__ void add_pack(int64_t at, int64_t, int64_t, A v[][1]) const {
        struct __align__(SN_PACK * sizeof(M)) pack {
            M v[SN_PACK];
        };
        const pack e = *(const pack *)(x + at);
#pragma unroll
        for (int k = 0; k < SN_PACK; k++)
            v[k][0] += (A)e.v[k];
    }
    __device__ void put(int64_t o, const A *v) const {
        put_sum(out, o, accumulate ? (A)out[o] + v[0] : v[0]);
    }
};
template <class M, class A> struct prod_f {
    typedef A value;
    enum { N = 1 };
    const M *x;
    sn_line<M> out;
    bool accumulate;
    static __device__ A start() { return (A)1; }
    static __device__ A combine(A a, A b) { return a * b; }
    __device__ void add(int64_t at, int64_t, int64_t, A *v) const { v[0] *= (A)x[at]; }
    __device__ void put(int64_t o, const A *v) const { put_sum(out, o, v[0]); }
};

/* The least and the largest of a type. */
template <class M> static __device__ __forceinline__ M lowest(void) {
    return (M)-1 > (M)0 ? (M)0 : (M)((uint64_t)1 << (8 * sizeof(M) - 1));
}
template <> __device__ __forceinline__ float lowest<float>(void) {
    return -INFINITY;
}
template <> __device__ __forceinline__ double lowest<double>(void) {
    return -INFINITY;
}
template <class M> static __device__ __forceinline__ M highest(void) {
    return (M) ~(uint64_t)lowest<M>();
}
template <> __device__ __forceinline__ float highest<float>(void) {
    return INFINITY;
}
template <> __device__ __forceinline__ double highest<double>(void) {
    return INFINITY;
}

template <> __device__ __forceinline__ bool highest<bool>(void) {
    return true;
}

template <class M> struct max_f {
    typedef sn_computed<M> value;
    enum { N = 1 };
    const M *x;
    sn_line<M> out;
    bool accumulate;
    static __device__ value start() { return lowest<value>(); }
    static __device__ value combine(value a, value b) { return b > a || b != b ? b : a; }
    __device__ void add(int64_t at, int64_t, int64_t, value *v) const {
        v[0] = combine(v[0], x[at]);
    }
    __device__ void put(int64_t o, const value *v) const { out.put(o, v[0]); }
};
template <class M> struct min_f {
    typedef sn_computed<M> value;
    enum { N = 1 };
    const M *x;
    sn_line<M> out;
    bool accumulate;
    static __device__ value start() { return highest<value>(); }
    static __device__ value combine(value a, value b) { return b < a || b != b ? b : a; }
    __device__ void add(int64_t at, int64_t, int64_t, value *v) const {
        v[0] = combine(v[0], x[at]);
    }
    __device__ void put(int64_t o, const value *v) const { out.put(o, v[0]); }
};

/* Sums of f32 and halves, which are the ones of large networks, go in packs. */
template <class F>
static void reduce_columns(const sn_cuda_call *c, F f, const sn_columns *p, void *partial) {
    sn_reduce_columns(c, f, p, partial);
}
template <class M>
static void reduce_columns(const sn_cuda_call *c, sum_f<M, double> f, const sn_columns *p,
                           void *partial) {
    if constexpr (sizeof(M) <= sizeof(float))
        if (p->inner % SN_PACK == 0 && sn_aligned(f.x)) {
            sn_reduce_packs(c, f, p, partial);
            return;
        }
    sn_reduce_columns(c, f, p, partial);
}

template <class F, class M> static void reduce(const sn_cuda_call *c) {
    const geometry g = geometry_of(&c->call->in[0].type, &c->call->attrs->axes.axes);
    const F f = {sn_in<M>(c, 0), sn_line_of<M>(&c->call->out[0]), c->call->accumulate};
    const sn_columns columns = sn_columns_of(g.outer, g.extent, g.inner);
    const sn_rows rows = rows_of(&g);
    if (g.simple && g.inner > 1)
        reduce_columns(c, f, &columns, c->call->workspace);
    else
        sn_reduce_rows(c, f, &rows, c->call->workspace);
}

typedef void (*runner)(const sn_cuda_call *c);
#define BY_DTYPE(dtype, F32, F64, F16, BF16, I8, U8, I32, I64, BOOL)                               \
    ((dtype) == SNUG_F32    ? F32                                                                  \
     : (dtype) == SNUG_F64  ? F64                                                                  \
     : (dtype) == SNUG_F16  ? F16                                                                  \
     : (dtype) == SNUG_BF16 ? BF16                                                                 \
     : (dtype) == SNUG_I8   ? I8                                                                   \
     : (dtype) == SNUG_U8   ? U8                                                                   \
     : (dtype) == SNUG_I32  ? I32                                                                  \
     : (dtype) == SNUG_I64  ? I64                                                                  \
     : (dtype) == SNUG_BOOL ? BOOL                                                                 \
                            : (runner)NULL)
#define SUMS(f)                                                                                    \
    (reduce<f<float, double>, float>), (reduce<f<double, double>, double>),                        \
        (reduce<f<sn_half, double>, sn_half>), (reduce<f<sn_brain, double>, sn_brain>),            \
        (reduce<f<int8_t, uint64_t>, int8_t>), (reduce<f<uint8_t, uint64_t>, uint8_t>),            \
        (reduce<f<int32_t, uint64_t>, int32_t>), (reduce<f<int64_t, uint64_t>, int64_t>),          \
        (reduce<f<uint8_t, uint64_t>, uint8_t>)
#define EXTREMES(f)                                                                                \
    (reduce<f<float>, float>), (reduce<f<double>, double>), (reduce<f<sn_half>, sn_half>),         \
        (reduce<f<sn_brain>, sn_brain>), (reduce<f<int8_t>, int8_t>),                              \
        (reduce<f<uint8_t>, uint8_t>), (reduce<f<int32_t>, int32_t>),                              \
        (reduce<f<int64_t>, int64_t>), (reduce<f<bool>, bool>)

static snug_status run_by(const sn_cuda_call *c, runner run, snug_error *err) {
    if (!run)
        return sn_cuda_no_kernel(sn_dtype_in(c, 0), err);
    run(c);
    return SNUG_OK;
}

#define EXPAND(m, ...) m(__VA_ARGS__)
#define REDUCTION(name, kinds, mixes)                                                              \
    static snug_status run_##name(const sn_cuda_call *c, snug_error *err) {                        \
        return run_by(c, EXPAND(BY_DTYPE, sn_dtype_in(c, 0), kinds(name##_f)), err);               \
    }                                                                                              \
    SN_CUDA_FLOATS(name, run_##name, describe, mixes)
REDUCTION(sum, SUMS, SN_CUDA_OUT(0))
REDUCTION(prod, SUMS, 0)
REDUCTION(max, EXTREMES, 0)
REDUCTION(min, EXTREMES, 0)

/* --- argmax and argmin ------------------------------------------------------------------------ */
/* The first of the best; the first NaN where there is one. */
template <class M, bool most>
static __device__ __forceinline__ bool beats(M b, int64_t at_b, M a, int64_t at_a) {
    if (a != a || b != b)
        return b != b && (a == a || at_b < at_a);
    return (most ? b > a : b < a) || (b == a && at_b < at_a);
}

/* One warp per output. */
template <class M, bool most>
static __global__ void __launch_bounds__(256, 2)
    find_kernel(const M *x, void *out, bool wide, int64_t outputs, int64_t n, sn_divisor inner) {
    typedef sn_computed<M> V;
    const int lane = (int)threadIdx.x % 32;
    for (int64_t o = sn_thread() / 32; o < outputs; o += sn_all_threads() / 32) {
        const int64_t outer = sn_div(o, inner);
        const M *row = x + outer * n * inner.d + (o - outer * inner.d);
        int64_t best = lane < n ? lane : 0;
        V value = row[best * inner.d];
        for (int64_t i = best + 32; i < n; i += 32) {
            const V v = row[i * inner.d];
            if (beats<V, most>(v, i, value, best)) {
                value = v;
                best = i;
            }
        }
#pragma unroll
        for (int by = 16; by > 0; by /= 2) {
            const int64_t at = __shfl_down_sync(0xffffffffu, best, by);
            const V v = __shfl_down_sync(0xffffffffu, value, by);
            if (beats<V, most>(v, at, value, best)) {
                value = v;
                best = at;
            }
        }
        if (lane == 0 && wide)
            ((int64_t *)out)[o] = best;
        else if (lane == 0)
            ((int32_t *)out)[o] = (int32_t)best;
    }
}

template <class M, bool most> static void find(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type;
    const int axis = (int)c->call->attrs->argmax.axis;
    const int64_t inner = sn_cuda_count(t, axis + 1, t->rank);
    const int64_t outputs = sn_cuda_count(t, 0, axis) * inner;
    if (outputs > 0)
        SN_LAUNCH((find_kernel<M, most>), sn_blocks(outputs, 8), 256, 0, c->stream, sn_in<M>(c, 0),
                  c->call->out[0].data, c->call->out[0].type.dtype == SNUG_I64, outputs,
                  t->dims[axis], sn_divisor_of(inner));
}

template <bool most> static snug_status run_find(const sn_cuda_call *c, snug_error *err) {
    return run_by(c,
                  BY_DTYPE(sn_dtype_in(c, 0), (find<float, most>), (find<double, most>),
                           (find<sn_half, most>), (find<sn_brain, most>), (find<int8_t, most>),
                           (find<uint8_t, most>), (find<int32_t, most>), (find<int64_t, most>),
                           (find<uint8_t, most>)),
                  err);
}
SN_CUDA_FLOATS(argmax, run_find<true>, NULL, 0)
SN_CUDA_FLOATS(argmin, run_find<false>, NULL, 0)

/* --- running sums and products ---------------------------------------------------------------- */
/* One thread per column, in order: an element is read before its place is written. */
template <class M, class A, bool product> struct scan_f {
    const M *x;
    M *out;
    sn_divisor inner;
    int64_t extent, first, step;
    bool exclusive;
    __device__ void operator()(int64_t o) const {
        const int64_t outer = sn_div(o, inner);
        const int64_t base = outer * extent * inner.d + (o - outer * inner.d);
        A total = product ? (A)1 : (A)0;
        int64_t at = base + first * inner.d;
#pragma unroll 1
        for (int64_t n = 0; n < extent; n++, at += step * inner.d) {
            const A before = total;
            total = product ? before * (A)x[at] : before + (A)x[at];
            out[at] = (M)(exclusive ? before : total);
        }
    }
};

/* Rows of neighbours: a warp goes along its row, 32 elements at a time. */
template <class M, class A, bool product>
static __global__ void __launch_bounds__(256, 2)
    scan_rows(const __grid_constant__ scan_f<M, A, product> f, int64_t rows) {
    const int lane = (int)threadIdx.x % 32;
    for (int64_t r = sn_thread() / 32; r < rows; r += sn_all_threads() / 32) {
        A total = product ? (A)1 : (A)0;
        for (int64_t n = 0; n < f.extent; n += 32) {
            const bool inside = n + lane < f.extent;
            const int64_t at = r * f.extent + f.first + f.step * (n + lane);
            A sum = inside ? (A)f.x[at] : product ? (A)1 : (A)0;
#pragma unroll
            for (int by = 1; by < 32; by *= 2) {
                const A left = __shfl_up_sync(0xffffffffu, sum, by);
                if (lane >= by)
                    sum = product ? sum * left : sum + left;
            }
            sum = product ? total * sum : total + sum;
            const A previous = __shfl_up_sync(0xffffffffu, sum, 1);
            if (inside)
                f.out[at] = (M)(!f.exclusive ? sum : lane == 0 ? total : previous);
            total = __shfl_sync(0xffffffffu, sum, 31);
        }
    }
}

template <class M, class A, bool product> static void scan(const sn_cuda_call *c) {
    const sn_attrs_scan *a = &c->call->attrs->scan;
    const snug_type *t = &c->call->in[0].type;
    const int64_t extent = t->dims[a->axis], inner = sn_cuda_count(t, (int)a->axis + 1, t->rank);
    const int64_t columns = sn_cuda_count(t, 0, (int)a->axis) * inner;
    const scan_f<M, A, product> f = {sn_in<M>(c, 0),
                                     sn_out<M>(c, 0),
                                     sn_divisor_of(inner),
                                     extent,
                                     a->reverse ? extent - 1 : 0,
                                     a->reverse ? -1 : 1,
                                     a->exclusive != 0};
    if (inner == 1 && extent > 32 && columns > 0)
        SN_LAUNCH((scan_rows<M, A, product>), sn_blocks(columns, 8), 256, 0, c->stream, f, columns);
    else
        sn_each(c, columns, f);
}

template <bool product> static snug_status run_scan(const sn_cuda_call *c, snug_error *err) {
    return run_by(c,
                  BY_DTYPE(sn_dtype_in(c, 0), (scan<float, double, product>),
                           (scan<double, double, product>), (scan<sn_half, double, product>),
                           (scan<sn_brain, double, product>), (scan<int8_t, uint64_t, product>),
                           (scan<uint8_t, uint64_t, product>), (scan<int32_t, uint64_t, product>),
                           (scan<int64_t, uint64_t, product>), (runner)NULL),
                  err);
}
SN_CUDA_FLOATS(cumsum, run_scan<false>, NULL, 0)
SN_CUDA_FLOATS(cumprod, run_scan<true>, NULL, 0)
