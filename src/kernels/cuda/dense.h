/* dense.h: the products of a dense layer with very many inputs and few outputs, behind a flattened
 * image; all plain rows, of f32 or halves, summed in f32.
 *
 *     forward    C [M, N] = act(A [M, K] B [K, N] + bias), K very large
 *     gradient   W [M, N] (+)= X [K, M]^T D [K, N], M very large
 *     back       X [K, M] = D [K, N] W [M, N]^T, M very large */
#ifndef SN_KERNELS_CUDA_DENSE_H
#define SN_KERNELS_CUDA_DENSE_H

#include "kernels/cuda/cuda.h"

typedef struct {
    int64_t M, N, K;
} sn_dense_product;

/* The widths N there are kernels for. */
#define SN_DENSE_WIDTHS(X) X(1) X(2) X(3) X(4) X(5) X(8) X(10) X(16)

enum { SN_DENSE_RANGE = 4096 }; /* terms of a sum that are added on their own */

typedef struct {
    const void *a, *b, *bias;
    void *c;
    snug_dtype dtype, b_type, bias_type, c_type; /* dtype: of a; beside halves others may be f32 */
    bool add;
    int act;
} sn_dense_operands;

bool sn_dense_takes(const sn_dense_product *p);
size_t sn_dense_workspace(const sn_gpu *g, const sn_dense_product *p);
void sn_dense_run(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o);

/* The sums of each range, [range][M][N], of halves on tensor cores (dense_half.cu). */
bool sn_dense_half_takes(const sn_dense_product *p, snug_dtype dtype);
void sn_dense_half_sums(const sn_cuda_call *c, const sn_dense_product *p,
                        const sn_dense_operands *o, float *partial);

/* M weights of N columns, K images. In `back` c is of a's type. */
bool sn_dense_is_long(int64_t M, int64_t N);
void sn_dense_gradient(const sn_cuda_call *c, const sn_dense_product *p,
                       const sn_dense_operands *o);
void sn_dense_back(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o);

#endif
