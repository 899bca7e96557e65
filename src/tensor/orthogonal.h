/* orthogonal.h: matrices with orthonormal rows or columns, for initial values. */
#ifndef SN_TENSOR_ORTHOGONAL_H
#define SN_TENSOR_ORTHOGONAL_H

#include <stdint.h>

/* The rows, or the columns where these are fewer, become orthonormal, the first of them in its
 * own direction. The matrix lies row by row and has full rank. */
void sn_orthonormal_f32(float *m, int64_t rows, int64_t columns);
void sn_orthonormal_f64(double *m, int64_t rows, int64_t columns);

#endif
