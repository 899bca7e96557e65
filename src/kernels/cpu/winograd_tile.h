/* winograd_tile.h: the transforms of Winograd's fast 3 x 3 convolution, on channels of one tile.
 *
 * Along one axis, four outputs of a three-tap filter (or three taps of a gradient over four pixels)
 * come from six products instead of twelve: polynomials are evaluated at six points, multiplied
 * there, and interpolated. In two axes a tile takes 36 products instead of 144.
 *
 *     y  = target(source(x) * kernel(w))        6 x 6 of x, 3 x 3 of w -> 4 x 4 of y
 *     dw = taps(source(x) * gradient(dy))       6 x 6 of x, 4 x 4 of dy -> 3 x 3 of dw
 *
 * Values at the points lie in 36 slices. Every output is a function of its tile and channel alone,
 * the same in every lane of a vector. */
#ifndef SN_KERNELS_CPU_WINOGRAD_TILE_H
#define SN_KERNELS_CPU_WINOGRAD_TILE_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

#include <stdbool.h>

/* Pixels of a tile of y, of x, of the kernel, along an axis; products of a tile. */
enum { SN_TILE_Y = 4, SN_TILE_X = 6, SN_TILE_W = 3, SN_TILE_POINTS = 36 };

/* Where a tile is read or written: floats between rows and between pixels. */
typedef struct {
    const float *data;
    int64_t row, pixel;
} sn_tile_view;

/* n channels of 6 x 6 pixels; the slices get whole vectors, zeros behind the last channel. */
void SN_CPU(tile_source)(const sn_tile_view *x, int64_t n, float *to, int64_t slice);
/* The same of 4 x 4 pixels; sum[n] grows by them, vector by vector. */
void SN_CPU(tile_gradient)(const sn_tile_view *dy, int64_t n, float *to, int64_t slice,
                           sn_vec *sum);
/* One vector of columns of nine taps, `step` floats apart. */
void SN_CPU(tile_kernel)(const float *taps, int64_t step, float *to, int64_t slice);

/* Pixels that exist, of at most 4 x 4, and what is done to their n channels. */
typedef struct {
    float *data;
    int64_t row, pixel, high, wide;
    const float *scale, *bias; /* of these channels, or NULL */
    bool relu, relu6;
} sn_tile_pixels;
void SN_CPU(tile_target)(const float *sums, int64_t slice, int64_t n, const sn_tile_pixels *y);
/* n channels of nine taps, `step` floats apart; added to what is there, or stored. */
void SN_CPU(tile_taps)(const float *sums, int64_t slice, int64_t n, float *taps, int64_t step,
                       bool add);

#endif
