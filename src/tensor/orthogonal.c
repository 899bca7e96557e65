/* orthogonal.c: makes the rows or columns of a matrix orthonormal, in place and without memory of
 * its own: what is left of a matrix of normals is then uniform among all such matrices. It is the
 * Q of a QR factorisation whose R has a positive diagonal.
 *
 * Gram-Schmidt, where each vector is cleared of the earlier ones twice: once leaves errors that
 * grow with the condition of the matrix, twice leaves rounding. Sums of a few elements are of the
 * matrix' type, in lanes of fixed places, and sums of those f64. */
#include "tensor/orthogonal.h"

#include <math.h>

enum { LANES = 16, CHUNK = 16 * LANES };

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
    static void add_##suffix(real *a, const real *b, double factor, int64_t n, int64_t step) {     \
        const real f = (real)factor;                                                               \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] += f * b[i];                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i * step] += f * b[i * step];                                                    \
    }                                                                                              \
    static void vectors_##suffix(real *v, int64_t count, int64_t stride, int64_t n,                \
                                 int64_t step) {                                                   \
        for (int64_t j = 0; j < count; j++) {                                                      \
            real *const a = v + j * stride;                                                        \
            for (int64_t i = 0; i < 2 * j; i++) {                                                  \
                const real *const b = v + (i % j) * stride;                                        \
                add_##suffix(a, b, -dot_##suffix(a, b, n, step), n, step);                         \
            }                                                                                      \
            const double length = sqrt(dot_##suffix(a, a, n, step));                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i * step] = (real)(length > 0 ? (double)a[i * step] / length : 0);               \
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
