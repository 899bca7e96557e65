/* adam.h: Adam's loop, for memory type M and the type C computed in: of the row adam, and of those
 * that make the gradient themselves. Names in scope: w, m, v, g and their outputs, n, and rate,
 * toward1, toward2, epsilon of type C. */
#ifndef SN_KERNELS_CPU_ADAM_H
#define SN_KERNELS_CPU_ADAM_H

#include <math.h>

static inline float root_float(float x) {
    return sqrtf(x);
}
static inline double root_double(double x) {
    return sqrt(x);
}

/* Element i, and the loop over all of them, for squared = grad * grad, and for squares that are
 * given. */
#define ADAM_STEP(M, C, squared)                                                                   \
    {                                                                                              \
        const C grad = (C)g[i];                                                                    \
        const C mean = (C)m[i] + (grad - (C)m[i]) * toward1;                                       \
        const C square = (C)v[i] + ((squared) - (C)v[i]) * toward2;                                \
        w_out[i] = (M)((C)w[i] - rate * mean / (root_##C(square) + epsilon));                      \
        m_out[i] = (M)mean;                                                                        \
        v_out[i] = (M)square;                                                                      \
    }
#define ADAM_LOOP(M, C, squared) SN_IVDEP for (int64_t i = 0; i < n; i++) ADAM_STEP(M, C, squared)

#endif
