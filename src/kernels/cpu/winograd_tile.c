/* winograd_tile.c: the transforms of a tile; see winograd_tile.h.
 *
 * The points are 0, +-A, +-B and infinity. A = 5/8, B = 3/2 were chosen among many: the error is
 * less than twice that of adding the products one by one, a quarter of that of the textbook's
 * +-1, +-2; and the coefficients of the source are exact.
 *
 * An axis is transformed by a *_line function. Where six lines of six would not fit the registers
 * two halves are made one after the other, which share no work: loading twice is cheaper than
 * spilling. */
#include "kernels/cpu/winograd_tile.h"

#include <stddef.h>

#define POINT_A 0.625
#define POINT_B 1.5
#define POINT_P (POINT_A * POINT_A)
#define POINT_Q (POINT_B * POINT_B)
/* One over the product of a point's distances from the others. */
#define WEIGHT_0 (1 / (POINT_P * POINT_Q))
#define WEIGHT_A (1 / (2 * POINT_P * (POINT_P - POINT_Q)))
#define WEIGHT_B (1 / (2 * POINT_Q * (POINT_Q - POINT_P)))

#define INLINE static inline __attribute__((always_inline))

/* k * x + y and k * x for a constant k. */
INLINE sn_vec times_plus(double k, sn_vec x, sn_vec y) {
    return sn_vec_multiply_add(sn_vec_spread((float)k), x, y);
}

INLINE sn_vec times(double k, sn_vec x) {
    return sn_vec_spread((float)k) * x;
}

/* Six pixels of x. */
INLINE void source_line(const sn_vec d[6], sn_vec v[6]) {
    const double p = POINT_P, q = POINT_Q;
    const sn_vec even_a = times_plus(-q, d[2], d[4]), odd_a = times_plus(-q, d[1], d[3]);
    const sn_vec even_b = times_plus(-p, d[2], d[4]), odd_b = times_plus(-p, d[1], d[3]);
    v[0] = times_plus(p * q, d[0], times_plus(-(p + q), d[2], d[4]));
    v[1] = times_plus(POINT_A, odd_a, even_a);
    v[2] = times_plus(-POINT_A, odd_a, even_a);
    v[3] = times_plus(POINT_B, odd_b, even_b);
    v[4] = times_plus(-POINT_B, odd_b, even_b);
    v[5] = times_plus(p * q, d[1], times_plus(-(p + q), d[3], d[5]));
}

/* Three taps of w. */
INLINE void kernel_line(const sn_vec g[3], sn_vec u[6]) {
    const sn_vec even_a = times_plus(WEIGHT_A * POINT_P, g[2], times(WEIGHT_A, g[0]));
    const sn_vec even_b = times_plus(WEIGHT_B * POINT_Q, g[2], times(WEIGHT_B, g[0]));
    const sn_vec odd_a = times(WEIGHT_A * POINT_A, g[1]);
    const sn_vec odd_b = times(WEIGHT_B * POINT_B, g[1]);
    u[0] = times(WEIGHT_0, g[0]);
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
}

/* Four pixels of y. */
INLINE void target_line(const sn_vec m[6], sn_vec y[4]) {
    const double a = POINT_A, b = POINT_B;
    const sn_vec sum_a = m[1] + m[2], less_a = m[1] - m[2];
    const sn_vec sum_b = m[3] + m[4], less_b = m[3] - m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = times_plus(a, less_a, times(b, less_b));
    y[2] = times_plus(a * a, sum_a, times(b * b, sum_b));
    y[3] = times_plus(a * a * a, less_a, times_plus(b * b * b, less_b, m[5]));
}

/* Four pixels of dy. */
INLINE void gradient_line(const sn_vec g[4], sn_vec u[6]) {
    const double p = POINT_P, q = POINT_Q;
    const sn_vec even_a = times_plus(WEIGHT_A * p, g[2], times(WEIGHT_A, g[0]));
    const sn_vec even_b = times_plus(WEIGHT_B * q, g[2], times(WEIGHT_B, g[0]));
    const sn_vec odd_a = times_plus(p, g[3], g[1]), odd_b = times_plus(q, g[3], g[1]);
    u[0] = times(WEIGHT_0, g[0]);
    u[1] = times_plus(WEIGHT_A * POINT_A, odd_a, even_a);
    u[2] = times_plus(-WEIGHT_A * POINT_A, odd_a, even_a);
    u[3] = times_plus(WEIGHT_B * POINT_B, odd_b, even_b);
    u[4] = times_plus(-WEIGHT_B * POINT_B, odd_b, even_b);
    u[5] = g[3];
}

/* Three taps of dw. */
INLINE void taps_line(const sn_vec m[6], sn_vec y[3]) {
    const double a = POINT_A, b = POINT_B;
    const sn_vec sum_a = m[1] + m[2], sum_b = m[3] + m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = times_plus(a, m[1] - m[2], times(b, m[3] - m[4]));
    y[2] = times_plus(a * a, sum_a, times_plus(b * b, sum_b, m[5]));
}

INLINE sn_vec load(const float *at, int64_t lanes) {
    return lanes == SN_VL ? sn_vec_load(at) : sn_vec_load_part(at, lanes);
}

/* Six values to their slices. */
INLINE void put_slices(const sn_vec v[6], float *to, int64_t slice) {
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++)
        sn_vec_store(to + j * slice, v[j]);
}

/* Rows 3 * half .. 3 * half + 2 of the points. */
INLINE void source_half(const sn_tile_view *x, int64_t lanes, float *to, int64_t slice,
                        const int half) {
    sn_vec t[3][6];
    const float *at = x->data;
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++, at += x->pixel) {
        sn_vec d[6], v[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            d[i] = load(at + i * x->row, lanes);
        source_line(d, v);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            t[i][j] = v[3 * half + i];
    }
    to += 18 * half * slice;
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++, to += 6 * slice) {
        sn_vec v[6];
        source_line(t[i], v);
        put_slices(v, to, slice);
    }
}

void SN_CPU(tile_source)(const sn_tile_view *x, int64_t n, float *to, int64_t slice) {
    sn_tile_view at = *x;
    for (; n >= SN_VL; n -= SN_VL, at.data += SN_VL, to += SN_VL) {
        source_half(&at, SN_VL, to, slice, 0);
        source_half(&at, SN_VL, to, slice, 1);
    }
    if (n > 0) {
        source_half(&at, n, to, slice, 0);
        source_half(&at, n, to, slice, 1);
    }
}

INLINE void gradient_half(const sn_tile_view *dy, int64_t lanes, float *to, int64_t slice,
                          const int half) {
    sn_vec t[3][4];
    const float *at = dy->data;
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++, at += dy->pixel) {
        sn_vec g[4], u[6];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            g[i] = load(at + i * dy->row, lanes);
        gradient_line(g, u);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            t[i][j] = u[3 * half + i];
    }
    to += 18 * half * slice;
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++, to += 6 * slice) {
        sn_vec u[6];
        gradient_line(t[i], u);
        put_slices(u, to, slice);
    }
}

INLINE sn_vec sum_of(const sn_tile_view *dy, int64_t lanes) {
    sn_vec sum = {0};
    const float *at = dy->data;
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++, at += dy->pixel)
        sum += (load(at, lanes) + load(at + dy->row, lanes)) +
               (load(at + 2 * dy->row, lanes) + load(at + 3 * dy->row, lanes));
    return sum;
}

void SN_CPU(tile_gradient)(const sn_tile_view *dy, int64_t n, float *to, int64_t slice,
                           sn_vec *sum) {
    sn_tile_view at = *dy;
    for (; n >= SN_VL; n -= SN_VL, at.data += SN_VL, to += SN_VL) {
        *sum++ += sum_of(&at, SN_VL);
        gradient_half(&at, SN_VL, to, slice, 0);
        gradient_half(&at, SN_VL, to, slice, 1);
    }
    if (n > 0) {
        *sum += sum_of(&at, n);
        gradient_half(&at, n, to, slice, 0);
        gradient_half(&at, n, to, slice, 1);
    }
}

void SN_CPU(tile_kernel)(const float *taps, int64_t step, float *to, int64_t slice) {
    sn_vec t[6][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
        sn_vec g[3], u[6];
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            g[i] = sn_vec_load(taps + (i * 3 + j) * step);
        kernel_line(g, u);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            t[i][j] = u[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; i++, to += 6 * slice) {
        sn_vec u[6];
        kernel_line(t[i], u);
        put_slices(u, to, slice);
    }
}

/* What is added to and multiplied with a vector of channels. */
typedef struct {
    sn_vec scale, bias;
    bool scaled, relu, relu6;
} finish;

INLINE void put_pixel(sn_vec v, const finish *f, float *to, int64_t lanes) {
    v = (f->scaled ? v * f->scale : v) + f->bias;
    v = f->relu ? sn_vec_relu(v) : v;
    v = f->relu6 ? sn_vec_relu6(v) : v;
    if (lanes == SN_VL)
        sn_vec_store(to, v);
    else
        sn_vec_store_part(to, v, lanes);
}

/* Rows `half` and `half` + 2 of the pixels. */
INLINE void target_half(const float *sums, int64_t slice, int64_t lanes, const sn_tile_pixels *y,
                        const finish *f, const int half) {
    sn_vec t[2][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++, sums += slice) {
        sn_vec m[6], v[4];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            m[i] = sn_vec_load(sums + 6 * i * slice);
        target_line(m, v);
        t[0][j] = v[half];
        t[1][j] = v[half + 2];
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        sn_vec v[4];
        float *to = y->data + (half + 2 * i) * y->row;
        target_line(t[i], v);
        if (half + 2 * i >= y->high)
            break;
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++, to += y->pixel)
            if (j < y->wide)
                put_pixel(v[j], f, to, lanes);
    }
}

void SN_CPU(tile_target)(const float *sums, int64_t slice, int64_t n, const sn_tile_pixels *y) {
    sn_tile_pixels to = *y;
    finish f = {.scaled = y->scale != NULL, .relu = y->relu, .relu6 = y->relu6};
    for (int64_t k = 0; k < n; k += SN_VL, sums += SN_VL, to.data += SN_VL) {
        const int64_t lanes = n - k < SN_VL ? n - k : SN_VL;
        if (y->scale)
            f.scale = sn_vec_load_part(y->scale + k, lanes);
        if (y->bias)
            f.bias = sn_vec_load_part(y->bias + k, lanes);
        target_half(sums, slice, lanes, &to, &f, 0);
        target_half(sums, slice, lanes, &to, &f, 1);
    }
}

INLINE void put_taps(const float *sums, int64_t slice, int64_t lanes, float *taps, int64_t step,
                     bool add) {
    sn_vec t[3][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++, sums += slice) {
        sn_vec m[6], v[3];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            m[i] = sn_vec_load(sums + 6 * i * slice);
        taps_line(m, v);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            t[i][j] = v[i];
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        sn_vec v[3];
        taps_line(t[i], v);
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++, taps += step)
            sn_vec_store_part(taps, add ? sn_vec_load_part(taps, lanes) + v[j] : v[j], lanes);
    }
}

void SN_CPU(tile_taps)(const float *sums, int64_t slice, int64_t n, float *taps, int64_t step,
                       bool add) {
    for (int64_t k = 0; k < n; k += SN_VL)
        put_taps(sums + k, slice, n - k < SN_VL ? n - k : SN_VL, taps + k, step, add);
}
