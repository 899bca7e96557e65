/* own.h: what own kernels share: launches over elements, walks over strided index spaces, sums of a
 * warp and a block, and the plain products that stand in where a library is missing.
 *
 *     struct twice { const float *x; float *y;
 *                    __device__ void operator()(int64_t i) const { y[i] = 2 * x[i]; } };
 *     sn_each(c, n, twice{x, y});        // one thread per element, a grid-stride loop
 *
 * A functor's members are the launch's arguments. Its call for element i touches what no other
 * element's call writes. f32 sums are made in double: memory is what these kernels wait for. */
#ifndef SN_KERNELS_CUDA_OWN_H
#define SN_KERNELS_CUDA_OWN_H

#include "kernels/cuda/cuda.h"

#define SN_CUDA_FAMILY(name, ...)                                                                  \
    extern const sn_cuda_family sn_cuda_##name;                                                    \
    const sn_cuda_family sn_cuda_##name = {__VA_ARGS__};
/* Of floats of all sizes; mixes as in cuda.h. */
#define SN_CUDA_FLOATS(name, run, describe, mixes)                                                 \
    SN_CUDA_FAMILY(name, run, describe, NULL, NULL, NULL, SN_HALF_DTYPES, mixes)

/* What a MAYFAIL kernel writes into sn_cuda_call::refused. */
typedef enum {
    SN_CUDA_REFUSED_NOT = 0,
    SN_CUDA_REFUSED_INDEX,  /* an index or a position outside its axis: SNUG_E_DATA */
    SN_CUDA_REFUSED_LABEL,  /* a class number outside the row: SNUG_E_DATA */
    SN_CUDA_REFUSED_FINITE, /* NaN or infinity: SNUG_E_NUMERIC */
    SN_CUDA_N_REFUSALS
} sn_cuda_refusal;

static inline snug_status sn_cuda_no_kernel(snug_dtype dtype, snug_error *err) {
    return sn_fail(err, SNUG_E_UNSUPPORTED, "no GPU kernel for %s; cast to f32 before it",
                   snug_dtype_name(dtype));
}

/* --- arguments ---------------------------------------------------------------------------------*/
static inline int64_t sn_cuda_count(const snug_type *t, int from, int to) {
    int64_t n = 1;
    for (int k = from; k < to; k++)
        n *= t->dims[k];
    return n;
}
static inline int64_t sn_cuda_elements(const snug_view *v) {
    return sn_cuda_count(&v->type, 0, v->type.rank);
}
static inline int64_t sn_cuda_ceil(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}
template <class T> static inline const T *sn_in(const sn_cuda_call *c, int i) {
    return (const T *)c->call->in[i].data;
}
template <class T> static inline T *sn_out(const sn_cuda_call *c, int i) {
    return (T *)c->call->out[i].data;
}
static inline snug_dtype sn_dtype_in(const sn_cuda_call *c, int i) {
    return c->call->in[i].type.dtype;
}
static inline bool sn_aligned(const void *p) {
    return (uintptr_t)p % 16 == 0;
}

/* Runs f<float> or f<double> by dtype. */
#define SN_BY_REAL(dtype, err, f, ...)                                                             \
    do {                                                                                           \
        if ((dtype) == SNUG_F32)                                                                   \
            f<float>(__VA_ARGS__);                                                                 \
        else if ((dtype) == SNUG_F64)                                                              \
            f<double>(__VA_ARGS__);                                                                \
        else                                                                                       \
            return sn_cuda_no_kernel((dtype), (err));                                              \
    } while (0)

/* --- division by a number known at launch ------------------------------------------------------*/
/* Of numerators below 2^63 by multiplication: the rounded-up 2^(63 + l) / d, 2^l >= d, has 64 bits
 * and an error too small to show. Numbers below 2^31 do with half the bits. */
typedef struct {
    int64_t d;
    uint64_t mul;
    uint32_t mul32;
    int shift; /* -1: d is 1 */
} sn_divisor;

static inline sn_divisor sn_divisor_of(int64_t d) {
    sn_divisor v = {d, 0, 0, -1};
    if (d <= 1)
        return v;
    const int l = 64 - __builtin_clzll((unsigned long long)(d - 1));
    const unsigned __int128 power = (unsigned __int128)1 << (63 + l);
    v.mul = (uint64_t)((power + (uint64_t)d - 1) / (uint64_t)d);
    if (l <= 31)
        v.mul32 = (uint32_t)((((uint64_t)1 << (31 + l)) + (uint64_t)d - 1) / (uint64_t)d);
    v.shift = l - 1;
    return v;
}
static __device__ __forceinline__ int64_t sn_div(int64_t n, const sn_divisor &v) {
    if (v.shift < 0)
        return n;
    if ((n | v.d) >> 31 == 0)
        return __umulhi((uint32_t)n, v.mul32) >> v.shift;
    return (int64_t)(__umul64hi((uint64_t)n, v.mul) >> v.shift);
}

/* --- one thread per element --------------------------------------------------------------------*/
enum { SN_THREADS = 256, SN_MAX_BLOCKS = 1 << 20 };

static inline unsigned sn_blocks(int64_t items, int64_t per_block) {
    const int64_t n = sn_cuda_ceil(items, per_block);
    return (unsigned)(n < SN_MAX_BLOCKS ? n : (int64_t)SN_MAX_BLOCKS);
}

static __device__ __forceinline__ int64_t sn_thread(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ int64_t sn_all_threads(void) {
    return (int64_t)gridDim.x * blockDim.x;
}

template <class F>
static __global__ void __launch_bounds__(256, 2)
    sn_each_kernel(const __grid_constant__ F f, int64_t n) {
    for (int64_t i = sn_thread(); i < n; i += sn_all_threads())
        f(i);
}

template <class F> static inline void sn_each(const sn_cuda_call *c, int64_t n, F f) {
    if (n > 0)
        SN_LAUNCH_APART((sn_each_kernel<F>), sn_blocks(n, SN_THREADS), SN_THREADS, 0, c->stream, f,
                        n);
}

/* --- walks -------------------------------------------------------------------------------------*/
enum { SN_WALK_OPERANDS = 4 };

/* An index space with strides (in elements; 0: broadcast) for each operand. */
typedef struct {
    int rank; /* >= 1 once merged */
    int n;
    int64_t dims[SNUG_MAX_RANK];
    int64_t stride[SN_WALK_OPERANDS][SNUG_MAX_RANK];
} sn_cuda_walk;

/* The same as kernels read it. */
typedef struct {
    int rank;
    int64_t count;
    sn_divisor dim[SNUG_MAX_RANK];
    int64_t stride[SN_WALK_OPERANDS][SNUG_MAX_RANK];
} sn_steps;

void sn_cuda_dense(const snug_type *t, int64_t *stride);
sn_cuda_walk sn_cuda_walk_over(const snug_type *t);
void sn_cuda_walk_broadcast(sn_cuda_walk *w, const snug_type *t);
void sn_cuda_walk_merge(sn_cuda_walk *w);
sn_steps sn_cuda_steps(const sn_cuda_walk *w);

/* Offsets of element i in the first N operands. */
template <int N>
static __device__ __forceinline__ void sn_locate(const sn_steps &s, int64_t i, int64_t *at) {
#pragma unroll
    for (int o = 0; o < N; o++)
        at[o] = 0;
    for (int k = s.rank - 1; k > 0; k--) {
        const int64_t q = sn_div(i, s.dim[k]), r = i - q * s.dim[k].d;
#pragma unroll
        for (int o = 0; o < N; o++)
            at[o] += r * s.stride[o][k];
        i = q;
    }
#pragma unroll
    for (int o = 0; o < N; o++)
        at[o] += i * s.stride[o][0];
}

/* Where element i of the call's output lies in the full value (sn_call: axis, first, full). */
typedef struct {
    sn_divisor length;
    int64_t start, pitch;
} sn_cuda_place;
sn_cuda_place sn_cuda_place_of(const sn_call *c);
static __device__ __forceinline__ int64_t sn_place_at(const sn_cuda_place &p, int64_t i) {
    const int64_t run = sn_div(i, p.length);
    return p.start + run * p.pitch + (i - run * p.length.d);
}

/* Bytes from one place to another, as many as divide by four in words; both may be the same. */
void sn_cuda_copy(const sn_cuda_call *c, void *to, const void *from, int64_t bytes);

/* --- sums in a fixed order ---------------------------------------------------------------------*/
/* Of a warp; every lane gets it. */
static __device__ __forceinline__ double sn_warp_sum(double v) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

/* --- indices -----------------------------------------------------------------------------------*/
typedef struct {
    const void *data;
    bool wide; /* i64, else i32 */
} sn_indices;
static inline sn_indices sn_indices_of(const snug_view *v) {
    const sn_indices l = {v->data, v->type.dtype == SNUG_I64};
    return l;
}
static __device__ __forceinline__ int64_t sn_index_at(const sn_indices &l, int64_t i) {
    return l.wide ? ((const int64_t *)l.data)[i] : (int64_t)((const int32_t *)l.data)[i];
}

#endif
