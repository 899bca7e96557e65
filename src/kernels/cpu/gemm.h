/* gemm.h: one block of an f32 matrix product, the inner loop of matmul and the convolutions.
 *
 * C += A B over a piece of K. Rows of A and C and columns of A are found through tables of offsets,
 * so that A may be a matrix, a transposed one, or the windows of an image that nobody ever lays out
 * as a matrix:
 *
 *     A(i, k) = a[a_row[i] + a_col[k]]        C(i, j) = c[c_row[i] + j]
 *
 * Invariant: inside a block the terms of an element are added one by one in the order of k,
 * starting from zero, and the sum is then stored or added. Nothing else decides its bits: not its
 * place in a tile, not the size of the block. */
#ifndef SN_KERNELS_CPU_GEMM_H
#define SN_KERNELS_CPU_GEMM_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

#include <stdbool.h>
#include <stdint.h>

/* A tile is MR rows by up to NV vectors of VL lanes: as many sums as the registers hold. */
#if defined(__AVX512F__)
enum { SN_GEMM_VL = SN_VL, SN_GEMM_NV = 4 };
#else
enum { SN_GEMM_VL = SN_VL, SN_GEMM_NV = 2 };
#endif
enum { SN_GEMM_MR = 6, SN_GEMM_NR = SN_GEMM_VL * SN_GEMM_NV };

typedef struct {
    int64_t m, n, k;
    const float *a;
    const int64_t *a_row, *a_col; /* m and k offsets */
    /* b_step 0: packed by gemm_pack. Otherwise plain rows, b_step floats apart: at least VL, or n
     * where that is below. */
    const float *b;
    int64_t b_step;
    bool b_goes_on; /* unpacked: the rows behind these k are what the next call reads */
    float *c;
    const int64_t *c_row; /* m offsets */
    bool add;             /* to what is in C; otherwise its bytes do not matter */
    const float *scale;   /* of the n columns: C is multiplied by it at last; NULL: none */
    const float *bias;    /* of the n columns, added after that; NULL: none */
    bool relu, relu6;     /* after the bias */
    /* A and a packed B hold words of two bf16 (pairs.h), and k counts words; their sums add the
     * second product first. */
    bool pairs;
} sn_gemm;

void SN_CPU(gemm)(const sn_gemm *g);

/* Floats that k rows of n columns take when packed: columns rounded up to whole vectors. */
static inline int64_t sn_gemm_packed(int64_t k, int64_t n) {
    return k * ((n + SN_GEMM_VL - 1) / SN_GEMM_VL * SN_GEMM_VL);
}

/* The part of a vector's lanes that n columns fill: the rest computes for nothing. */
static inline double sn_gemm_filled(int64_t n) {
    return n > 0 ? (double)n / (double)sn_gemm_packed(1, n) : 1;
}

/* B(i, j) = b[row[i] + j * col] as panels of NR columns, each [k][its columns rounded up to
 * vectors] with zeros behind the last column. Panel p begins at packed + p * NR * k. */
typedef struct {
    int64_t k, n;
    const float *b;
    const int64_t *row;
    int64_t col;
} sn_gemm_source;
void SN_CPU(gemm_pack)(const sn_gemm_source *s, float *packed);

#endif
