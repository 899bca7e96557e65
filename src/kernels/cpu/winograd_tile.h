/* winograd_tile.h: the transforms of Winograd's fast 3 x 3 convolution, on vectors of channels.
 *
 * Along one axis, four outputs of a three-tap filter (or three taps of a gradient over four pixels)
 * come from six products instead of twelve: polynomials are evaluated at six points, multiplied
 * there, and interpolated. In two axes a tile takes 36 products instead of 144.
 *
 *     y  = target(source(x) * kernel(w))        6 x 6 of x, 3 x 3 of w -> 4 x 4 of y
 *     dw = taps(source(x) * gradient(dy))       6 x 6 of x, 4 x 4 of dy -> 3 x 3 of dw
 *
 * The points are 0, +-A, +-B and infinity. A = 5/8, B = 3/2 were chosen among many: the error is
 * less than twice that of adding the products one by one, a quarter of that of the textbook's
 * +-1, +-2; and the coefficients of the source are exact. Every output of a tile is a function of
 * the tile alone. */
#ifndef SN_KERNELS_CPU_WINOGRAD_TILE_H
#define SN_KERNELS_CPU_WINOGRAD_TILE_H

#include "kernels/cpu/simd.h"

/* Pixels of a tile of y, of x, of the kernel, along an axis; products of a tile. */
enum { SN_TILE_Y = 4, SN_TILE_X = 6, SN_TILE_W = 3, SN_TILE_POINTS = 36 };

#define SN_POINT_A 0.625
#define SN_POINT_B 1.5
#define SN_POINT_P (SN_POINT_A * SN_POINT_A)
#define SN_POINT_Q (SN_POINT_B * SN_POINT_B)
/* One over the product of a point's distances from the others. */
#define SN_WEIGHT_0 (1 / (SN_POINT_P * SN_POINT_Q))
#define SN_WEIGHT_A (1 / (2 * SN_POINT_P * (SN_POINT_P - SN_POINT_Q)))
#define SN_WEIGHT_B (1 / (2 * SN_POINT_Q * (SN_POINT_Q - SN_POINT_P)))

#define SN_TILE_INLINE static inline __attribute__((always_inline))

/* k * x + y and k * x for a constant k. */
SN_TILE_INLINE sn_vec sn_times_plus(double k, sn_vec x, sn_vec y) {
    return sn_vec_multiply_add(sn_vec_spread((float)k), x, y);
}

SN_TILE_INLINE sn_vec sn_times(double k, sn_vec x) {
    return sn_vec_spread((float)k) * x;
}

/* Six pixels of x. */
SN_TILE_INLINE void sn_tile_source_line(const sn_vec d[6], sn_vec v[6]) {
    const double p = SN_POINT_P, q = SN_POINT_Q;
    const sn_vec even_a = sn_times_plus(-q, d[2], d[4]), odd_a = sn_times_plus(-q, d[1], d[3]);
    const sn_vec even_b = sn_times_plus(-p, d[2], d[4]), odd_b = sn_times_plus(-p, d[1], d[3]);
    v[0] = sn_times_plus(p * q, d[0], sn_times_plus(-(p + q), d[2], d[4]));
    v[1] = sn_times_plus(SN_POINT_A, odd_a, even_a);
    v[2] = sn_times_plus(-SN_POINT_A, odd_a, even_a);
    v[3] = sn_times_plus(SN_POINT_B, odd_b, even_b);
    v[4] = sn_times_plus(-SN_POINT_B, odd_b, even_b);
    v[5] = sn_times_plus(p * q, d[1], sn_times_plus(-(p + q), d[3], d[5]));
}

/* Three taps of w. */
SN_TILE_INLINE void sn_tile_kernel_line(const sn_vec g[3], sn_vec u[6]) {
    const sn_vec even_a =
        sn_times_plus(SN_WEIGHT_A * SN_POINT_P, g[2], sn_times(SN_WEIGHT_A, g[0]));
    const sn_vec even_b =
        sn_times_plus(SN_WEIGHT_B * SN_POINT_Q, g[2], sn_times(SN_WEIGHT_B, g[0]));
    const sn_vec odd_a = sn_times(SN_WEIGHT_A * SN_POINT_A, g[1]);
    const sn_vec odd_b = sn_times(SN_WEIGHT_B * SN_POINT_B, g[1]);
    u[0] = sn_times(SN_WEIGHT_0, g[0]);
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
}

/* Four pixels of y. */
SN_TILE_INLINE void sn_tile_target_line(const sn_vec m[6], sn_vec y[4]) {
    const double a = SN_POINT_A, b = SN_POINT_B;
    const sn_vec sum_a = m[1] + m[2], less_a = m[1] - m[2];
    const sn_vec sum_b = m[3] + m[4], less_b = m[3] - m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = sn_times_plus(a, less_a, sn_times(b, less_b));
    y[2] = sn_times_plus(a * a, sum_a, sn_times(b * b, sum_b));
    y[3] = sn_times_plus(a * a * a, less_a, sn_times_plus(b * b * b, less_b, m[5]));
}

/* Four pixels of dy. */
SN_TILE_INLINE void sn_tile_gradient_line(const sn_vec g[4], sn_vec u[6]) {
    const double p = SN_POINT_P, q = SN_POINT_Q;
    const sn_vec even_a = sn_times_plus(SN_WEIGHT_A * p, g[2], sn_times(SN_WEIGHT_A, g[0]));
    const sn_vec even_b = sn_times_plus(SN_WEIGHT_B * q, g[2], sn_times(SN_WEIGHT_B, g[0]));
    const sn_vec odd_a = sn_times_plus(p, g[3], g[1]), odd_b = sn_times_plus(q, g[3], g[1]);
    u[0] = sn_times(SN_WEIGHT_0, g[0]);
    u[1] = sn_times_plus(SN_WEIGHT_A * SN_POINT_A, odd_a, even_a);
    u[2] = sn_times_plus(-SN_WEIGHT_A * SN_POINT_A, odd_a, even_a);
    u[3] = sn_times_plus(SN_WEIGHT_B * SN_POINT_B, odd_b, even_b);
    u[4] = sn_times_plus(-SN_WEIGHT_B * SN_POINT_B, odd_b, even_b);
    u[5] = g[3];
}

/* Three taps of dw. */
SN_TILE_INLINE void sn_tile_taps_line(const sn_vec m[6], sn_vec y[3]) {
    const double a = SN_POINT_A, b = SN_POINT_B;
    const sn_vec sum_a = m[1] + m[2], sum_b = m[3] + m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = sn_times_plus(a, m[1] - m[2], sn_times(b, m[3] - m[4]));
    y[2] = sn_times_plus(a * a, sum_a, sn_times_plus(b * b, sum_b, m[5]));
}

#endif
