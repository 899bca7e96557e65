/* maps.h: elementwise kernels of dense operands, out[i] = f(a[i]) or f(a[i], b[i]), four elements
 * at once where the addresses allow it. Out may be an operand.
 *
 * An operator is a struct of static functions, one per type it is computed in:
 *
 *     struct neg_op { static __device__ float at(float x, float p, float q) { return -x; } ... };
 *     SN_CUDA_FAMILY(neg, sn_run_unary<neg_op>)
 *
 * p and q are the operator's real parameters, rounded to what the dtype is computed in, read on the
 * device. */
#ifndef SN_KERNELS_CUDA_MAPS_H
#define SN_KERNELS_CUDA_MAPS_H

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/own.h"

/* Types that go in packs of four. */
template <class M> struct sn_packs {
    enum { yes = sizeof(M) == 4 || sn_is_half<M>::yes };
};

/* What a kernel reads of param: up to two reals. */
typedef struct {
    const sn_scalar *param;
    int n;
} sn_reals_at;
static inline sn_reals_at sn_reals_of_call(const sn_cuda_call *c) {
    const sn_reals_at r = {c->call->param, sn_ops[c->call->op].attrs->n_params};
    return r;
}
static __device__ __forceinline__ double sn_real_param(const sn_reals_at &r, int i) {
    return i < r.n ? r.param[i].real : 0;
}

/* M: what memory holds; R: the result's type, as wide as M where `packed`. */
template <class F, class M, class R>
static __global__ void __launch_bounds__(256, 2)
    sn_map_kernel(const M *a, const M *b, R *out, int64_t n, bool packed, sn_reals_at params) {
    const F f = F::make(sn_real_param(params, 0), sn_real_param(params, 1));
    int64_t done = 0;
    if (sn_packs<M>::yes && packed) {
        done = n / 4 * 4;
        for (int64_t i = sn_thread(); i < n / 4; i += sn_all_threads()) {
            const sn_four<M> x = ((const sn_four<M> *)a)[i];
            const sn_four<M> y = b == a ? x : ((const sn_four<M> *)b)[i];
            sn_four<R> to;
#pragma unroll
            for (int k = 0; k < 4; k++)
                to.v[k] = f(x.v[k], y.v[k]);
            ((sn_four<R> *)out)[i] = to;
        }
    }
#pragma unroll 1
    for (int64_t i = done + sn_thread(); i < n; i += sn_all_threads())
        out[i] = f(a[i], b[i]);
}

/* Unary operators hand their operand over twice. */
template <class F, class M, class R>
static void sn_map(const sn_cuda_call *c, const void *a, const void *b, int64_t n) {
    R *out = sn_out<R>(c, 0);
    const bool packed = sn_packs<M>::yes && sizeof(R) == sizeof(M) && sn_aligned(a) &&
                        sn_aligned(b) && sn_aligned(out);
    const int64_t items = packed ? sn_cuda_ceil(n, 4) : n;
    if (n > 0)
        SN_LAUNCH_APART((sn_map_kernel<F, M, R>), sn_blocks(items, SN_THREADS), SN_THREADS, 0,
                        c->stream, (const M *)a, (const M *)b, out, n, packed, sn_reals_of_call(c));
}

/* --- functors ----------------------------------------------------------------------------------*/
/* Computed in C. */
template <class Op, class M, class C> struct sn_unary_f {
    C p, q;
    static __device__ sn_unary_f make(double p, double q) {
        return sn_unary_f{(C)(sn_computed<M>)p, (C)(sn_computed<M>)q};
    }
    __device__ M operator()(M x, M) const { return (M)Op::at((C)x, p, q); }
};
template <class Op, class M, class C> struct sn_pair_f {
    C p;
    static __device__ sn_pair_f make(double p, double) { return sn_pair_f{(C)(sn_computed<M>)p}; }
    __device__ M operator()(M g, M y) const { return (M)Op::at((C)g, (C)y, p); }
};
/* Bounds beyond the integers' range bind nothing: no integer lies outside +-2^63. */
template <class Op, class M> struct sn_whole_f {
    double p, q;
    static __device__ double bound(double v) {
        return v < -0x1p63 ? -0x1p63 : v > 0x1p63 ? 0x1p63 : v;
    }
    static __device__ sn_whole_f make(double p, double q) { return sn_whole_f{bound(p), bound(q)}; }
    __device__ M operator()(M x, M) const { return (M)Op::whole((int64_t)x, p, q); }
};

/* S: the type f32 and halves are computed in. */
template <class Op, class S>
static snug_status sn_run_unary(const sn_cuda_call *c, snug_error *err) {
    const void *x = c->call->in[0].data;
    const int64_t n = sn_cuda_elements(&c->call->out[0]);
    if (sn_dtype_in(c, 0) == SNUG_F32)
        sn_map<sn_unary_f<Op, float, S>, float, float>(c, x, x, n);
    else if (sn_dtype_in(c, 0) == SNUG_F64)
        sn_map<sn_unary_f<Op, double, double>, double, double>(c, x, x, n);
    else if (sn_dtype_in(c, 0) == SNUG_F16)
        sn_map<sn_unary_f<Op, sn_half, S>, sn_half, sn_half>(c, x, x, n);
    else if (sn_dtype_in(c, 0) == SNUG_BF16)
        sn_map<sn_unary_f<Op, sn_brain, S>, sn_brain, sn_brain>(c, x, x, n);
    else
        return sn_cuda_no_kernel(sn_dtype_in(c, 0), err);
    return SNUG_OK;
}

/* Floats and integers. */
template <class Op> static snug_status sn_run_number(const sn_cuda_call *c, snug_error *err) {
    const void *x = c->call->in[0].data;
    const int64_t n = sn_cuda_elements(&c->call->out[0]);
    const snug_dtype dtype = sn_dtype_in(c, 0);
    if (dtype == SNUG_I8)
        sn_map<sn_whole_f<Op, int8_t>, int8_t, int8_t>(c, x, x, n);
    else if (dtype == SNUG_U8)
        sn_map<sn_whole_f<Op, uint8_t>, uint8_t, uint8_t>(c, x, x, n);
    else if (dtype == SNUG_I32)
        sn_map<sn_whole_f<Op, int32_t>, int32_t, int32_t>(c, x, x, n);
    else if (dtype == SNUG_I64)
        sn_map<sn_whole_f<Op, int64_t>, int64_t, int64_t>(c, x, x, n);
    else
        return sn_run_unary<Op, float>(c, err);
    return SNUG_OK;
}

template <class Op, class S>
static snug_status sn_run_pair(const sn_cuda_call *c, snug_error *err) {
    const void *g = c->call->in[0].data, *y = c->call->in[1].data;
    const int64_t n = sn_cuda_elements(&c->call->out[0]);
    if (sn_dtype_in(c, 0) == SNUG_F32)
        sn_map<sn_pair_f<Op, float, S>, float, float>(c, g, y, n);
    else if (sn_dtype_in(c, 0) == SNUG_F64)
        sn_map<sn_pair_f<Op, double, double>, double, double>(c, g, y, n);
    else if (sn_dtype_in(c, 0) == SNUG_F16)
        sn_map<sn_pair_f<Op, sn_half, S>, sn_half, sn_half>(c, g, y, n);
    else if (sn_dtype_in(c, 0) == SNUG_BF16)
        sn_map<sn_pair_f<Op, sn_brain, S>, sn_brain, sn_brain>(c, g, y, n);
    else
        return sn_cuda_no_kernel(sn_dtype_in(c, 0), err);
    return SNUG_OK;
}

#endif
