/* dense.h: products with a sum over very many terms and few columns: a dense layer behind a
 * flattened image. C [M, N] = act(A [M, K] B [K, N] + bias), all plain rows of f32. */
#ifndef SN_KERNELS_CUDA_DENSE_H
#define SN_KERNELS_CUDA_DENSE_H

#include "kernels/cuda/cuda.h"

typedef struct {
    int64_t M, N, K;
} sn_dense_product;

typedef struct {
    const float *a, *b, *bias;
    float *c;
    bool add;
    int act;
} sn_dense_operands;

bool sn_dense_takes(const sn_dense_product *p);
size_t sn_dense_workspace(const sn_gpu *g, const sn_dense_product *p);
void sn_dense_run(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o);

#endif
