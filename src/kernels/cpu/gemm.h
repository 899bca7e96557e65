/* gemm.h: the f32 matrix product that matmul and the convolutions share, one block at a time.
 *
 * Invariant: an element of C is the sum over pieces of K of at most SN_GEMM_KC terms; inside a piece the terms are added
 * one by one in the order of k. Nothing else decides its bits: not M or N, not its place in a tile, not the threads. */
#ifndef SN_KERNELS_CPU_GEMM_H
#define SN_KERNELS_CPU_GEMM_H

#include "kernels/cpu/isa.h"

#include <stdbool.h>
#include <stdint.h>

/* A tile is MR rows by up to NV vectors of VL lanes: as many sums as the registers hold. */
#if defined(__AVX512F__)
enum { SN_GEMM_VL = 16, SN_GEMM_NV = 4 };
#elif defined(__AVX2__)
enum { SN_GEMM_VL = 8, SN_GEMM_NV = 2 };
#else
enum { SN_GEMM_VL = 4, SN_GEMM_NV = 2 };
#endif
enum { SN_GEMM_MR = 6, SN_GEMM_NR = SN_GEMM_VL * SN_GEMM_NV, SN_GEMM_KC = 256 };

/* A matrix in memory: element (i, j) at data[i * row + j * col]. */
typedef struct {
    const float *data;
    int64_t row, col;
} sn_matrix;

/* Floats that a packed block of B takes: columns rounded up to whole vectors. */
static inline int64_t sn_gemm_packed(int64_t k, int64_t n) {
    return k * ((n + SN_GEMM_VL - 1) / SN_GEMM_VL * SN_GEMM_VL);
}

/* B (k by n) as panels of NR columns, each [k][its columns rounded up to vectors], zeros behind the last column. */
void SN_CPU(gemm_pack)(sn_matrix b, int64_t k, int64_t n, float *packed);

/* C (m by n, rows ldc apart) = or += A (m by k) times packed B; k <= SN_GEMM_KC for the invariant. */
typedef struct {
    int64_t m, n, k;
    sn_matrix a;
    const float *packed;
    float *c;
    int64_t ldc;
    bool add;
} sn_gemm_block;
void SN_CPU(gemm_block)(const sn_gemm_block *g);

#endif
