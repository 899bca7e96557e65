/* eigh.c: eigenvalues and eigenvectors of symmetric matrices, by Jacobi's rotations.
 *
 * Output 2 begins as the matrix (its lower triangle, mirrored) and output 1 as the unit; each
 * rotation brings one pair of places of output 2 to zero and is applied to the columns of output 1.
 * Sweeps end when what stands beside the diagonal no longer counts. Then the values are put in
 * order, the smallest first, with their columns, and output 2, which was room to work in, is zeros.
 * A matrix is the work of one thread: its bits do not depend on how many there are. */
#include "kernels/cpu/loops.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_SWEEPS 40 /* NaNs never end; 6 to 10 are usual */

typedef struct {
    const sn_call *c;
    int64_t n;
} matrices;

#define EIGH(suffix, M, SQRT, ABS, EPSILON)                                                        \
    static void begin_##suffix(const M *x, M *a, M *v, int64_t n) {                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < n; j++) {                                                      \
                a[i * n + j] = i >= j ? x[i * n + j] : x[j * n + i];                               \
                v[i * n + j] = i == j;                                                             \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    /* Whether what stands beside the diagonal is more than rounding. */                           \
    static bool goes_on_##suffix(const M *a, int64_t n) {                                          \
        M off = 0, all = 0;                                                                        \
        for (int64_t i = 0; i < n * n; i++) {                                                      \
            all += a[i] * a[i];                                                                    \
            off += i / n == i % n ? 0 : a[i] * a[i];                                               \
        }                                                                                          \
        return off > all * (EPSILON) * (EPSILON);                                                  \
    }                                                                                              \
                                                                                                   \
    static void rotate_##suffix(M *m, int64_t p, int64_t q, M cosine, M sine) {                    \
        const M x = m[p], y = m[q];                                                                \
        m[p] = cosine * x - sine * y;                                                              \
        m[q] = sine * x + cosine * y;                                                              \
    }                                                                                              \
                                                                                                   \
    /* The rotation that brings place (p, q) to zero. */                                           \
    static void zero_##suffix(M *a, M *v, int64_t n, int64_t p, int64_t q) {                       \
        const M apq = a[p * n + q];                                                                \
        if (apq == 0)                                                                              \
            return;                                                                                \
        const M theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);                                 \
        const M t = (theta < 0 ? -1 : 1) / (ABS(theta) + SQRT(theta * theta + 1));                 \
        const M cosine = 1 / SQRT(t * t + 1), sine = t * cosine;                                   \
        for (int64_t k = 0; k < n; k++)                                                            \
            rotate_##suffix(a + k * n, p, q, cosine, sine);                                        \
        for (int64_t k = 0; k < n; k++)                                                            \
            rotate_##suffix(a + k, p * n, q * n, cosine, sine);                                    \
        for (int64_t k = 0; k < n; k++)                                                            \
            rotate_##suffix(v + k * n, p, q, cosine, sine);                                        \
    }                                                                                              \
                                                                                                   \
    static void order_##suffix(M *w, M *v, int64_t n) {                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t least = i;                                                                     \
            for (int64_t j = i + 1; j < n; j++)                                                    \
                least = w[j] < w[least] ? j : least;                                               \
            const M value = w[i];                                                                  \
            w[i] = w[least];                                                                       \
            w[least] = value;                                                                      \
            for (int64_t k = 0; k < n && least != i; k++) {                                        \
                const M x = v[k * n + i];                                                          \
                v[k * n + i] = v[k * n + least];                                                   \
                v[k * n + least] = x;                                                              \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void solve_##suffix(const void *ctx, int64_t first, int64_t end) {                      \
        const matrices *m = ctx;                                                                   \
        const int64_t n = m->n, area = n * n;                                                      \
        for (int64_t i = first; i < end; i++) {                                                    \
            M *w = (M *)m->c->out[0].data + i * n, *v = (M *)m->c->out[1].data + i * area,         \
              *a = (M *)m->c->out[2].data + i * area;                                              \
            begin_##suffix((const M *)m->c->in[0].data + i * area, a, v, n);                       \
            for (int s = 0; s < MAX_SWEEPS && goes_on_##suffix(a, n); s++)                         \
                for (int64_t p = 0; p < n; p++)                                                    \
                    for (int64_t q = p + 1; q < n; q++)                                            \
                        zero_##suffix(a, v, n, p, q);                                              \
            for (int64_t k = 0; k < n; k++)                                                        \
                w[k] = a[k * n + k];                                                               \
            order_##suffix(w, v, n);                                                               \
            memset(a, 0, (size_t)area * sizeof(M));                                                \
        }                                                                                          \
    }
EIGH(f32, float, sqrtf, fabsf, FLT_EPSILON)
EIGH(f64, double, sqrt, fabs, DBL_EPSILON)

static snug_status run_eigh(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->in[0].type;
    const matrices m = {c, t->dims[t->rank - 1]};
    if (t->dtype != SNUG_F32 && t->dtype != SNUG_F64)
        return sn_no_kernel(t->dtype, err);
    sn_parallel(c, 60 * m.n * sn_type_count(t), sn_type_span(t, 0, t->rank - 2),
                t->dtype == SNUG_F32 ? solve_f32 : solve_f64, &m);
    return SNUG_OK;
}

SN_CPU_FAMILY(eigh, .reference = run_eigh, .run = run_eigh)
