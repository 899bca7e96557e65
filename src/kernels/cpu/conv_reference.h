/* conv_reference.h: one element of a convolution, for the reference kernels of conv2d and
 * conv2d_pool: sums in double. */
#ifndef SN_KERNELS_CPU_CONV_REFERENCE_H
#define SN_KERNELS_CPU_CONV_REFERENCE_H

#include "kernels/cpu/conv.h"
#include "kernels/cpu/real_elements.h"

/* Index of x[n, row, col, 0], or -1 in the padding. */
static inline int64_t sn_conv_x_index(const sn_conv *v, int64_t n, int64_t row, int64_t col) {
    if (row < 0 || row >= v->H || col < 0 || col >= v->W)
        return -1;
    return ((n * v->H + row) * v->W + col) * v->C;
}

/* Element (image, row, column, channel) of y, before the bias. */
static inline double sn_conv_y_at(const sn_conv *v, sn_reals x, sn_reals w, const int64_t at[4]) {
    const int64_t depth = v->C / v->groups, first = at[3] / (v->O / v->groups) * depth;
    double sum = 0;
    for (int64_t pq = 0; pq < v->kh * v->kw; pq++) {
        const int64_t row = sn_conv_at(v, 0, at[1], pq / v->kw),
                      col = sn_conv_at(v, 1, at[2], pq % v->kw);
        const int64_t from = sn_conv_x_index(v, at[0], row, col);
        if (from < 0)
            continue;
        for (int64_t k = 0; k < depth; k++)
            sum += sn_real_at(x, from + first + k) * sn_real_at(w, (pq * depth + k) * v->O + at[3]);
    }
    return sum;
}

/* The output position that kernel position k along an axis links to input position `at`, or -1. */
static inline int64_t sn_conv_y_under(const sn_conv *v, int axis, int64_t at, int64_t k) {
    const int64_t scaled = at + v->pad[2 * axis] - k * v->dilation[axis];
    const int64_t extent = axis == 0 ? v->oh : v->ow;
    if (scaled < 0 || scaled % v->stride[axis] != 0 || scaled / v->stride[axis] >= extent)
        return -1;
    return scaled / v->stride[axis];
}

#endif
