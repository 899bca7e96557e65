/* attention.cu: the families attention and attention_grad: softmax(scale q k^T) v per head, and its
 * gradient, without ever storing the T x S weights.
 *
 *   p = exp(s - lse), s = scale q k^T + bias; y = p' v with p' = p, or what dropout leaves of it
 *   dv = p'^T dy;  ds = p (dp - delta), dp = dropped dy v^T, delta = sum(dy y);
 *   dq = scale ds k;  dk = scale ds^T q
 *
 * Plain kernels for every mask, dropout and width, f32 and f64: a warp owns a row. It goes through
 * the other side 32 rows at a time: each lane makes the weight of one of them, then all lanes add
 * the 32 rows up, a feature each. Sums over lanes are trees. The common case is
 * attention_mma.cu's. */
#include "kernels/cuda/cuda_attention.h"

#include "kernels/cuda/random.h"
#include "kernels/cuda/widen.h"

#include <stdio.h>

enum { WARPS = 4, THREADS = 32 * WARPS, LANES = 32, FEATURES = 4 * LANES };

static inline __device__ float e_to(float x) {
    return expf(x);
}
static inline __device__ double e_to(double x) {
    return exp(x);
}
static inline __device__ float ln(float x) {
    return logf(x);
}
static inline __device__ double ln(double x) {
    return log(x);
}

/* --- places ---------------------------------------------------------------------------------- */
static __device__ __forceinline__ int64_t query_row(const sn_attend &a, int64_t b, int64_t t,
                                                    int64_t h) {
    return (b * a.T + t) * a.H + h;
}
static __device__ __forceinline__ int64_t key_row(const sn_attend &a, int64_t b, int64_t s,
                                                  int64_t h) {
    return (b * a.S + s) * a.G + sn_div(h, a.share);
}

/* First element of the mask for query t of head h of entry b. */
static __device__ int64_t mask_row(const sn_attend &a, int64_t b, int64_t t, int64_t h) {
    int64_t at = h * a.mask_h + t * a.mask_t;
    for (int i = a.n_leading - 1; i >= 0; i--) {
        const int64_t rest = sn_div(b, a.extent[i]);
        at += (b - rest * a.extent[i].d) * a.mask_step[i];
        b = rest;
    }
    return at;
}

/* Place of the weight of query t and key 0 among all weights [.., H, T, S] of the full value. */
static __device__ uint64_t weight_place(const sn_attend &a, int64_t b, int64_t t, int64_t h) {
    int64_t H = a.H;
    if (a.in_entries) {
        const int64_t outer = sn_div(b, a.inner), in = b - outer * a.inner.d;
        const int64_t block = sn_div(outer, a.rows), row = outer - block * a.rows.d;
        b = (block * a.full + a.first + row) * a.inner.d + in;
    } else if (a.in_heads) {
        H = a.full;
        h += a.first;
    }
    return (uint64_t)(((b * H + h) * a.T + t) * a.S);
}

/* --- one weight ------------------------------------------------------------------------------ */
template <class T> static __device__ __forceinline__ T dot(const T *x, const T *y, int64_t n) {
    T sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* One query of one head. */
template <class T> struct attend_query {
    const T *q;
    int64_t t, mask;
    T scale;
    uint64_t place, key;
    T rate;
};

template <class T>
static __device__ attend_query<T> query_of(const sn_attend &a, int64_t b, int64_t t, int64_t h) {
    attend_query<T> o;
    o.q = (const T *)a.q + query_row(a, b, t, h) * a.D;
    o.t = t;
    o.mask = a.mask ? mask_row(a, b, t, h) : 0;
    o.scale = (T)a.param[0].real;
    o.rate = (T)a.param[1].real;
    o.key = (uint64_t)a.param[2].key;
    o.place = a.dropout ? weight_place(a, b, t, h) : 0;
    return o;
}

template <class T>
static __device__ T score(const sn_attend &a, const attend_query<T> &o, const T *k, int64_t s) {
    T bias = 0;
    if (a.mask && a.truth && !((const uint8_t *)a.mask)[o.mask + s * a.mask_s])
        return (T)SN_UNSEEN;
    if (a.mask && !a.truth)
        bias = ((const T *)a.mask)[o.mask + s * a.mask_s];
    if (a.causal && s > o.t)
        return (T)SN_UNSEEN;
    const T v = o.scale * dot(o.q, k, a.D) + bias;
    return v < (T)SN_UNSEEN ? (T)SN_UNSEEN : v;
}

/* The weight for a score, and whether it depends on it. */
template <class T>
static __device__ __forceinline__ T weight(const sn_attend &a, T v, T lse, bool *depends) {
    *depends = !(v <= (T)SN_HALF_UNSEEN);
    if (*depends)
        return e_to(v - lse);
    return lse <= (T)SN_HALF_UNSEEN ? T(1) / (T)a.S : T(0);
}

/* What a weight is multiplied by: 1, or 0 or more where weights are dropped. */
template <class T>
static __device__ __forceinline__ T kept(const sn_attend &a, const attend_query<T> &o, int64_t s) {
    if (!a.dropout)
        return 1;
    return sn_uniform_at(o.key, o.place + (uint64_t)s) >= (float)o.rate ? T(1) / (T(1) - o.rate)
                                                                        : T(0);
}

/* --- adding 32 rows up ----------------------------------------------------------------------- */
/* sum[i] += weight of lane j times feature 32 i + lane of row j, for j < n; features from `first`
 * on, of which `width` exist. */
template <class T>
static __device__ void add_rows(T mine, int n, const T *rows, int64_t pitch, int64_t first,
                                int64_t width, T sum[4]) {
    const int lane = (int)threadIdx.x % LANES;
    for (int j = 0; j < n; j++) {
        const T w = __shfl_sync(0xffffffffu, mine, j);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (first + LANES * i + lane < width)
                sum[i] += w * rows[j * pitch + first + LANES * i + lane];
    }
}

template <class T>
static __device__ void put_row(T *to, int64_t first, int64_t width, const T sum[4]) {
    const int lane = (int)threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (first + LANES * i + lane < width)
            to[first + LANES * i + lane] = sum[i];
}

/* How many of 32 rows from `at` on there are. */
static __device__ __forceinline__ int count_from(int64_t at, int64_t n) {
    return n - at < LANES ? (int)(n - at) : (int)LANES;
}

/* --- forward --------------------------------------------------------------------------------- */
/* The larger of two sums' shifts is the shift of both; a NaN stays. */
template <class T> static __device__ void join(T *max, T *sum, T other_max, T other_sum) {
    const T m = other_max > *max || other_max != other_max ? other_max : *max;
    *sum = *sum * e_to(*max - m) + other_sum * e_to(other_max - m);
    *max = m;
}

template <class T>
static __device__ T row_lse(const sn_attend &a, const attend_query<T> &o, const T *k,
                            int64_t pitch) {
    const int lane = (int)threadIdx.x % LANES;
    T max = (T)SN_UNSEEN, sum = 0;
    for (int64_t s = lane; s < a.S; s += LANES)
        join(&max, &sum, score(a, o, k + s * pitch, s), T(1));
#pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const T m = __shfl_xor_sync(0xffffffffu, max, by),
                n = __shfl_xor_sync(0xffffffffu, sum, by);
        join(&max, &sum, m, n);
    }
    return max <= (T)SN_HALF_UNSEEN ? (T)SN_UNSEEN : max + ln(sum);
}

template <class T>
static __global__ void __launch_bounds__(THREADS, 2) attend(const __grid_constant__ sn_attend a) {
    const int lane = (int)threadIdx.x % LANES;
    const int64_t n = a.B * a.T * a.H, stride = (int64_t)gridDim.x * WARPS;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES; row < n; row += stride) {
        const int64_t bt = sn_div(row, a.heads), h = row - bt * a.H, b = sn_div(bt, a.queries);
        const attend_query<T> o = query_of<T>(a, b, bt - b * a.T, h);
        const T *k = (const T *)a.k + key_row(a, b, 0, h) * a.D,
                *v = (const T *)a.v + key_row(a, b, 0, h) * a.E;
        const T lse = row_lse(a, o, k, a.G * a.D);
        if (lane == 0)
            ((T *)a.lse_out)[row] = lse;
        for (int64_t first = 0; first < a.E; first += FEATURES) {
            T sum[4] = {};
            for (int64_t at = 0; at < a.S; at += LANES) {
                const int64_t s = at + lane;
                bool depends;
                T w = 0;
                if (s < a.S)
                    w = weight(a, score(a, o, k + s * a.G * a.D, s), lse, &depends) * kept(a, o, s);
                add_rows(w, count_from(at, a.S), v + at * a.G * a.E, a.G * a.E, first, a.E, sum);
            }
            put_row((T *)a.y_out + row * a.E, first, a.E, sum);
        }
    }
}

/* --- gradient -------------------------------------------------------------------------------- */
template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    make_delta(const __grid_constant__ sn_attend a) {
    const int lane = (int)threadIdx.x % LANES;
    const int64_t n = a.B * a.T * a.H, stride = (int64_t)gridDim.x * WARPS;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES; row < n; row += stride) {
        const T *dy = (const T *)a.dy + row * a.E, *y = (const T *)a.y + row * a.E;
        T sum = 0;
        for (int64_t e = lane; e < a.E; e += LANES)
            sum += dy[e] * y[e];
#pragma unroll
        for (int by = 16; by > 0; by /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, by);
        if (lane == 0)
            ((T *)a.delta)[row] = sum;
    }
}

/* Query and key: the weight as it was used, and the gradient of q k^T. */
template <class T> struct attend_edge { T w, ds; };

template <class T>
static __device__ attend_edge<T> edge_of(const sn_attend &a, const attend_query<T> &o, int64_t row,
                                         const T *k, const T *v, int64_t s) {
    const T lse = ((const T *)a.lse)[row], keep = kept(a, o, s);
    attend_edge<T> x = {0, 0};
    bool depends;
    const T p = weight(a, score(a, o, k, s), lse, &depends);
    x.w = p * keep;
    if (depends)
        x.ds = p * (keep * dot((const T *)a.dy + row * a.E, v, a.E) - ((const T *)a.delta)[row]) *
               o.scale;
    return x;
}

template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    attend_back_q(const __grid_constant__ sn_attend a) {
    const int lane = (int)threadIdx.x % LANES;
    const int64_t n = a.B * a.T * a.H, stride = (int64_t)gridDim.x * WARPS;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES; row < n; row += stride) {
        const int64_t bt = sn_div(row, a.heads), h = row - bt * a.H, b = sn_div(bt, a.queries);
        const attend_query<T> o = query_of<T>(a, b, bt - b * a.T, h);
        const T *k = (const T *)a.k + key_row(a, b, 0, h) * a.D,
                *v = (const T *)a.v + key_row(a, b, 0, h) * a.E;
        for (int64_t first = 0; first < a.D; first += FEATURES) {
            T sum[4] = {};
            for (int64_t at = 0; at < a.S; at += LANES) {
                const int64_t s = at + lane;
                T ds = 0;
                if (s < a.S)
                    ds = edge_of(a, o, row, k + s * a.G * a.D, v + s * a.G * a.E, s).ds;
                add_rows(ds, count_from(at, a.S), k + at * a.G * a.D, a.G * a.D, first, a.D, sum);
            }
            put_row((T *)a.dq + row * a.D, first, a.D, sum);
        }
    }
}

/* Of key s, or with VALUE of its value, over all heads of q that read it. */
template <class T, bool VALUE>
static __global__ void __launch_bounds__(THREADS, 2)
    attend_back_kv(const __grid_constant__ sn_attend a) {
    const int lane = (int)threadIdx.x % LANES;
    const int64_t n = a.B * a.S * a.G, stride = (int64_t)gridDim.x * WARPS;
    const int64_t width = VALUE ? a.E : a.D;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES; row < n; row += stride) {
        const int64_t bs = sn_div(row, a.groups), g = row - bs * a.G, b = sn_div(bs, a.keys),
                      s = bs - b * a.S;
        const T *k = (const T *)a.k + row * a.D, *v = (const T *)a.v + row * a.E;
        for (int64_t first = 0; first < width; first += FEATURES) {
            T sum[4] = {};
            for (int64_t h = g * a.share.d; h < (g + 1) * a.share.d; h++)
                for (int64_t at = 0; at < a.T; at += LANES) {
                    const int64_t t = at + lane, from = query_row(a, b, at, h);
                    attend_edge<T> x = {0, 0};
                    if (t < a.T)
                        x = edge_of(a, query_of<T>(a, b, t, h), query_row(a, b, t, h), k, v, s);
                    add_rows(VALUE ? x.w : x.ds, count_from(at, a.T),
                             VALUE ? (const T *)a.dy + from * a.E : (const T *)a.q + from * a.D,
                             a.H * width, first, width, sum);
                }
            put_row((T *)(VALUE ? a.dv : a.dk) + row * width, first, width, sum);
        }
    }
}

/* --- a call ---------------------------------------------------------------------------------- */
static sn_attend shape_of(const sn_attrs_attention *attrs, const snug_type *q, const snug_type *k,
                          const snug_type *v) {
    const int r = q->rank;
    sn_attend a = {};
    a.B = sn_cuda_count(q, 0, r - 3);
    a.T = q->dims[r - 3];
    a.S = k->dims[r - 3];
    a.H = q->dims[r - 2];
    a.G = k->dims[r - 2];
    a.D = q->dims[r - 1];
    a.E = v->dims[r - 1];
    a.causal = attrs->causal != 0;
    a.dropout = attrs->dropout != 0;
    a.heads = sn_divisor_of(a.H);
    a.queries = sn_divisor_of(a.T);
    a.keys = sn_divisor_of(a.S);
    a.groups = sn_divisor_of(a.G);
    a.share = sn_divisor_of(a.G > 0 ? a.H / a.G : 1);
    return a;
}

static void set_mask(sn_attend *a, const snug_view *mask, const snug_type *q) {
    const snug_type *t = &mask->type;
    const int leading = t->rank - 3;
    const int64_t *d = t->dims + leading;
    int64_t stride = d[0] * d[1] * d[2];
    a->mask = mask->data;
    a->truth = t->dtype == SNUG_BOOL;
    a->mask_s = d[2] != 1;
    a->mask_t = d[1] != 1 ? d[2] : 0;
    a->mask_h = d[0] != 1 ? d[1] * d[2] : 0;
    a->n_leading = leading;
    for (int i = leading - 1; i >= 0; i--) {
        a->extent[i] = sn_divisor_of(q->dims[i]);
        a->mask_step[i] = t->dims[i] != 1 ? stride : 0;
        stride *= t->dims[i];
    }
}

/* Which input the mask is, where there is one. */
enum { FORWARD_MASK = 3, GRADIENT_MASK = 6 };

static sn_attend attend_of(const sn_call *c, int mask) {
    const snug_type *q = &c->in[0].type;
    const int leading = q->rank - 3;
    sn_attend a = shape_of(&c->attrs->attention, q, &c->in[1].type, &c->in[2].type);
    a.param = c->param;
    a.q = c->in[0].data;
    a.k = c->in[1].data;
    a.v = c->in[2].data;
    a.first = c->first;
    a.full = c->full;
    a.in_entries = c->axis < leading;
    a.in_heads = c->axis == leading + 1;
    if (a.in_entries) {
        a.inner = sn_divisor_of(sn_cuda_count(q, c->axis + 1, leading));
        a.rows = sn_divisor_of(q->dims[c->axis]);
    }
    if (c->n_in > mask)
        set_mask(&a, &c->in[mask], q);
    return a;
}

static unsigned blocks_of(int64_t rows) {
    return sn_blocks(rows, WARPS);
}

template <class T> static void run_plain(const sn_cuda_call *c, const sn_attend *a) {
    SN_LAUNCH(attend<T>, blocks_of(a->B * a->T * a->H), THREADS, 0, c->stream, *a);
}

template <class T> static void run_delta(const sn_cuda_call *c, const sn_attend *a) {
    SN_LAUNCH(make_delta<T>, blocks_of(a->B * a->T * a->H), THREADS, 0, c->stream, *a);
}

template <class T> static void run_plain_grad(const sn_cuda_call *c, const sn_attend *a) {
    const int64_t queries = a->B * a->T * a->H, keys = a->B * a->S * a->G;
    if (queries > 0)
        SN_LAUNCH(attend_back_q<T>, blocks_of(queries), THREADS, 0, c->stream, *a);
    if (keys > 0) {
        SN_LAUNCH((attend_back_kv<T, false>), blocks_of(keys), THREADS, 0, c->stream, *a);
        SN_LAUNCH((attend_back_kv<T, true>), blocks_of(keys), THREADS, 0, c->stream, *a);
    }
}

/* f32 and f64. */
static snug_status run_attention(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    const snug_dtype dtype = k->in[0].type.dtype;
    sn_attend a = attend_of(k, FORWARD_MASK);
    a.y_out = k->out[0].data;
    a.lse_out = k->out[1].data;
    if (a.B * a.T * a.H == 0)
        return SNUG_OK;
    if (sn_attend_mma_takes(c->gpu, &a, dtype))
        sn_attend_mma(c, &a);
    else
        SN_BY_REAL(dtype, err, run_plain, c, &a);
    return SNUG_OK;
}

static sn_attend gradient_of(const sn_call *k) {
    sn_attend a = attend_of(k, GRADIENT_MASK);
    a.y = k->in[3].data;
    a.lse = k->in[4].data;
    a.dy = k->in[5].data;
    a.dq = k->out[0].data;
    a.dk = k->out[1].data;
    a.dv = k->out[2].data;
    a.delta = k->workspace;
    return a;
}

static snug_status run_attention_grad(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    const sn_attend a = gradient_of(c->call);
    if (a.B * a.T * a.H > 0)
        SN_BY_REAL(dtype, err, run_delta, c, &a);
    if (sn_attend_mma_takes(c->gpu, &a, dtype))
        sn_attend_mma_grad(c, &a);
    else
        SN_BY_REAL(dtype, err, run_plain_grad, c, &a);
    return SNUG_OK;
}

/* All floats: halves on tensor cores, or as f32. */
static snug_status run_any(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    sn_attend a = attend_of(c->call, FORWARD_MASK);
    if (!sn_attend_half_takes(c->gpu, &a, dtype))
        return sn_widened_run(c, run_attention, err);
    a.y_out = c->call->out[0].data;
    a.lse_out = c->call->out[1].data;
    if (a.B * a.H > 0)
        sn_attend_half(c, &a, dtype);
    return SNUG_OK;
}

static snug_status run_any_grad(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    const sn_attend a = gradient_of(c->call);
    if (!sn_attend_half_takes(c->gpu, &a, dtype))
        return sn_widened_run(c, run_attention_grad, err);
    sn_attend_half_grad(c, &a, dtype);
    return SNUG_OK;
}

static bool is_gradient(const sn_opdesc *d) {
    return d->op == SN_OP_attention_grad;
}

static sn_attend described(const sn_opdesc *d) {
    sn_attend a = shape_of(&d->attrs.attention, &d->in[0], &d->in[1], &d->in[2]);
    a.mask =
        d->n_in > (is_gradient(d) ? GRADIENT_MASK : FORWARD_MASK) ? d : NULL; /* there is one */
    return a;
}

/* How fast, and the scratch of sums of dy y, by the type they are made in. */
static void describe_as(const sn_opdesc *d, const sn_attend *a, snug_dtype sums, bool mma,
                        double efficiency, sn_variant *out) {
    out->speed = SN_SPEED_PRODUCT;
    out->efficiency = mma ? efficiency : 0.005;
    if (is_gradient(d))
        out->workspace_bytes = (size_t)(a->B * a->T * a->H) * snug_dtype_bytes(sums);
    snprintf(out->impl, sizeof out->impl, "%s", mma ? "own:flash" : "own:plain");
}

static snug_status describe(const sn_gpu *g, const sn_opdesc *d, sn_variant *out, snug_error *err) {
    const snug_dtype dtype = d->in[0].dtype;
    const sn_attend a = described(d);
    if (dtype != SNUG_F32 && dtype != SNUG_F64)
        return sn_cuda_no_kernel(dtype, err);
    describe_as(d, &a, dtype, sn_attend_mma_takes(g, &a, dtype), 0.3, out);
    return SNUG_OK;
}

static snug_status describe_any(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                snug_error *err) {
    const sn_attend a = described(d);
    if (!sn_attend_half_takes(g, &a, d->in[0].dtype))
        return sn_widened_describe(g, d, describe, out, err);
    describe_as(d, &a, SNUG_F32, true, 0.6, out);
    return SNUG_OK;
}

SN_CUDA_FAMILY(attention, run_any, describe_any, NULL, NULL, NULL, SN_HALF_DTYPES,
               SN_CUDA_MIXES_ALL)
SN_CUDA_FAMILY(attention_grad, run_any_grad, describe_any, NULL, NULL, NULL, SN_HALF_DTYPES,
               SN_CUDA_MIXES_ALL)
