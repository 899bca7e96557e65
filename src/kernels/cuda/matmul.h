/* matmul.h: a product as its own kernels see it (matmul.cu, matmul_mma.cu). */
#ifndef SN_KERNELS_CUDA_MATMUL_H
#define SN_KERNELS_CUDA_MATMUL_H

#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/lib.h"

enum { SN_PRODUCT_DEPTH = 128, SN_PRODUCT_LEADING = SNUG_MAX_RANK - 2 };

/* C[b] = act(A[b] B[b] + bias); element (m, k) of A lies at m * a_row + k * a_col, likewise (k, n)
 * of B. An element is the sum of its groups of SN_PRODUCT_DEPTH terms, in order. */
typedef struct {
    int64_t batch, M, N, K;
    int64_t a_row, a_col, b_row, b_col;
    int n_leading; /* axes of the batch, and what a step along each moves the operands */
    int64_t extent[SN_PRODUCT_LEADING], a_step[SN_PRODUCT_LEADING], b_step[SN_PRODUCT_LEADING];
    int64_t n_groups;
    int act;
    bool add;
} sn_product;

typedef struct {
    const void *a, *b, *bias;
    void *c;
    void *partial; /* [n_groups][batch M N]: groups are blocks of their own; NULL: whole sums */
    snug_dtype dtype, bias_type,
        c_type; /* dtype: of a and b; beside halves the others may be f32 */
} sn_product_operands;

/* Tiles of 64 x 64 on tensor cores (TF32), of f32 and halves. */
bool sn_product_mma_takes(const sn_gpu *g, const sn_product *p);
void sn_product_mma(const sn_product *p, const sn_product_operands *o, int64_t n_tasks,
                    cudaStream_t stream);

/* First elements of batch entry b. */
static __device__ __forceinline__ void sn_product_entry(const sn_product &p, int64_t b,
                                                        int64_t *a_at, int64_t *b_at) {
    int64_t x = 0, y = 0;
    for (int i = p.n_leading - 1; i >= 0; i--) {
        x += b % p.extent[i] * p.a_step[i];
        y += b % p.extent[i] * p.b_step[i];
        b /= p.extent[i];
    }
    *a_at = x;
    *b_at = y;
}

/* Where a task's tile lies. */
typedef struct {
    int64_t entry, m, n, first, last; /* groups [first, last) */
} sn_product_task;

static __device__ __forceinline__ sn_product_task sn_product_task_of(const sn_product &p,
                                                                     bool in_parts, int64_t i,
                                                                     int rows, int columns) {
    const int64_t across = (p.N + columns - 1) / columns, down = (p.M + rows - 1) / rows;
    const int64_t tile = in_parts ? i / p.n_groups : i;
    sn_product_task t;
    t.first = in_parts ? i % p.n_groups : 0;
    t.last = in_parts ? t.first + 1 : p.n_groups;
    t.n = tile % across * columns;
    t.m = tile / across % down * rows;
    t.entry = tile / across / down;
    return t;
}

/* A whole sum; M: what a and b hold. */
template <class M>
static __device__ __forceinline__ void sn_product_put(const sn_product &p,
                                                      const sn_product_operands &o, int64_t at,
                                                      int64_t n, sn_computed<M> sum) {
    if constexpr (sn_is_half<M>::yes) {
        const sn_mixed_line bias = {(void *)o.bias, o.bias_type}, c = {o.c, o.c_type};
        if (o.bias)
            sum += bias[n];
        sum = sn_act_of(p.act, sum);
        c.put(at, p.add ? c[at] + sum : sum);
    } else {
        M *c = (M *)o.c;
        if (o.bias)
            sum += ((const M *)o.bias)[n];
        sum = sn_act_of(p.act, sum);
        c[at] = p.add ? c[at] + sum : sum;
    }
}

/* A sum of a task: whole, or of its group. */
template <class M>
static __device__ __forceinline__ void
sn_product_store(const sn_product &p, const sn_product_operands &o, const sn_product_task &t,
                 int64_t m, int64_t n, sn_computed<M> sum) {
    const int64_t at = (t.entry * p.M + m) * p.N + n;
    if (m >= p.M || n >= p.N)
        return;
    if (o.partial)
        ((sn_computed<M> *)o.partial)[t.first * (p.batch * p.M * p.N) + at] = sum;
    else
        sn_product_put<M>(p, o, at, n, sum);
}

#endif
