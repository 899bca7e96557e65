/* matrix.h: a matmul call or description taken apart: extents, strides and the offsets of its batch
 * entries. */
#ifndef SN_KERNELS_CPU_MATRIX_H
#define SN_KERNELS_CPU_MATRIX_H

#include "kernels/cpu/cpu.h"

/* C[b] = act(A[b] B[b] + bias): element (m, k) of A lies at a + m * a_row + k * a_col; likewise (k,
 * n) of B. */
typedef struct {
    int64_t batch, M, K, N;
    int64_t a_row, a_col, b_row, b_col;
    snug_type a, b, out; /* b as matrices */
} sn_matmul_shape;

/* With fold_b the first axes of b are the rows of one matrix, the others its columns. */
static inline snug_type sn_matmul_b(const sn_attrs_matmul *attrs, const snug_type *b) {
    const int rows = (int)attrs->fold_b;
    if (rows == 0)
        return *b;
    return (snug_type){.dtype = b->dtype,
                       .rank = 2,
                       .dims = {sn_type_span(b, 0, rows), sn_type_span(b, rows, b->rank)}};
}

static inline sn_matmul_shape sn_matmul_shape_of(const sn_attrs_matmul *attrs, const snug_type *a,
                                                 const snug_type *whole_b, const snug_type *out) {
    const snug_type b = sn_matmul_b(attrs, whole_b);
    const int64_t *ad = a->dims + a->rank - 2, *bd = b.dims + b.rank - 2;
    const int64_t M = out->dims[out->rank - 2], N = out->dims[out->rank - 1];
    const int64_t K = attrs->trans_a ? ad[0] : ad[1];
    return (sn_matmul_shape){
        .batch = sn_type_span(out, 0, out->rank - 2),
        .M = M,
        .K = K,
        .N = N,
        .a_row = attrs->trans_a ? 1 : ad[1],
        .a_col = attrs->trans_a ? ad[1] : 1,
        .b_row = attrs->trans_b ? 1 : bd[1],
        .b_col = attrs->trans_b ? bd[1] : 1,
        .a = *a,
        .b = b,
        .out = *out,
    };
}

/* First element of operand t's matrix for batch entry b of the output; extents of 1 are
 * repeated. */
static inline int64_t sn_matmul_offset(const snug_type *out, const snug_type *t, int64_t b) {
    int64_t offset = 0, stride = t->dims[t->rank - 1] * t->dims[t->rank - 2];
    for (int i = out->rank - 3, j = t->rank - 3; i >= 0 && j >= 0; i--, j--) {
        if (t->dims[j] != 1)
            offset += b % out->dims[i] * stride;
        stride *= t->dims[j];
        b /= out->dims[i];
    }
    return offset;
}

#endif
