/* orthogonal.c: makes the rows or columns of a matrix orthonormal, in place and without memory of
 * its own: what is left of a matrix of normals is then uniform among all such matrices. It is the
 * Q of a QR factorisation whose R has a positive diagonal.
 *
 * Gram-Schmidt: each vector is cleared of the earlier ones, and once more where little of it is
 * left, since what rounding leaves of the others grows by as much. Vectors are cleared some at a
 * time, so that an earlier one is fetched for all of them. Sums of a few elements are of the
 * matrix' type, in lanes of fixed places, and sums of those f64. */
#include "tensor/orthogonal.h"

#include <math.h>

enum { LANES = 16, CHUNK = 16 * LANES, TOGETHER = 8 };
#define ENOUGH 0.5 /* of a squared length: more than that is left, once will do */

/* Vectors of n elements that lie `step` apart. */
#define VECTOR_FUNCTIONS(real, suffix)                                                             \
    static double chunk_##suffix(const real *a, const real *b) {                                   \
        real lane[LANES] = {0};                                                                    \
        double sum = 0;                                                                            \
        for (int i = 0; i < CHUNK; i += LANES)                                                     \
            for (int k = 0; k < LANES; k++)                                                        \
                lane[k] += a[i + k] * b[i + k];                                                    \
        for (int k = 0; k < LANES; k++)                                                            \
            sum += (double)lane[k];                                                                \
        return sum;                                                                                \
    }                                                                                              \
    static double dot_##suffix(const real *a, const real *b, int64_t n, int64_t step) {            \
        double sum = 0;                                                                            \
        int64_t i = 0;                                                                             \
        for (; step == 1 && i + CHUNK <= n; i += CHUNK)                                            \
            sum += chunk_##suffix(a + i, b + i);                                                   \
        for (; i < n; i++)                                                                         \
            sum += (double)a[i * step] * (double)b[i * step];                                      \
        return sum;                                                                                \
    }                                                                                              \
    static void add_chunk_##suffix(real *restrict a, const real *restrict b, real f) {             \
        for (int i = 0; i < CHUNK; i++)                                                            \
            a[i] += f * b[i];                                                                      \
    }                                                                                              \
    static void add_##suffix(real *a, const real *b, double factor, int64_t n, int64_t step) {     \
        const real f = (real)factor;                                                               \
        int64_t i = 0;                                                                             \
        for (; step == 1 && i + CHUNK <= n; i += CHUNK)                                            \
            add_chunk_##suffix(a + i, b + i, f);                                                   \
        for (; i < n; i++)                                                                         \
            a[i * step] += f * b[i * step];                                                        \
    }                                                                                              \
    static void clear_##suffix(real *a, const real *b, int64_t n, int64_t step) {                  \
        add_##suffix(a, b, -dot_##suffix(a, b, n, step), n, step);                                 \
    }                                                                                              \
    /* vectors `from` to `to` - 1; the earlier ones are done */                                    \
    static void group_##suffix(real *v, const int64_t *range, int64_t stride, int64_t n,           \
                               int64_t step) {                                                     \
        const int64_t from = range[0], to = range[1];                                              \
        double before[TOGETHER];                                                                   \
        for (int64_t j = from; j < to; j++)                                                        \
            before[j - from] = dot_##suffix(v + j * stride, v + j * stride, n, step);              \
        for (int64_t i = 0; i < from; i++)                                                         \
            for (int64_t j = from; j < to; j++)                                                    \
                clear_##suffix(v + j * stride, v + i * stride, n, step);                           \
        for (int64_t j = from; j < to; j++) {                                                      \
            real *const a = v + j * stride;                                                        \
            for (int64_t i = from; i < j; i++)                                                     \
                clear_##suffix(a, v + i * stride, n, step);                                        \
            const double first = ENOUGH * before[j - from];                                        \
            double left = dot_##suffix(a, a, n, step);                                             \
            for (int64_t i = 0; i < j && left < first; i++)                                        \
                clear_##suffix(a, v + i * stride, n, step);                                        \
            if (left < first)                                                                      \
                left = dot_##suffix(a, a, n, step);                                                \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i * step] = (real)(left > 0 ? (double)a[i * step] / sqrt(left) : 0);             \
        }                                                                                          \
    }                                                                                              \
    static void vectors_##suffix(real *v, int64_t count, int64_t stride, int64_t n,                \
                                 int64_t step) {                                                   \
        for (int64_t j = 0; j < count; j += TOGETHER) {                                            \
            const int64_t range[2] = {j, j + TOGETHER < count ? j + TOGETHER : count};             \
            group_##suffix(v, range, stride, n, step);                                             \
        }                                                                                          \
    }
VECTOR_FUNCTIONS(float, f32)
VECTOR_FUNCTIONS(double, f64)

void sn_orthonormal_f32(float *m, int64_t rows, int64_t columns) {
    if (rows <= columns)
        vectors_f32(m, rows, columns, columns, 1);
    else
        vectors_f32(m, columns, 1, rows, columns);
}

void sn_orthonormal_f64(double *m, int64_t rows, int64_t columns) {
    if (rows <= columns)
        vectors_f64(m, rows, columns, columns, 1);
    else
        vectors_f64(m, columns, 1, rows, columns);
}
