/* winograd.h: convolutions with 3 x 3 kernels and stride 1 by products of transformed tiles
 * (winograd_tile.h): a quarter of the multiplications.
 *
 * For each of the 36 points a tile of y is a product over the channels; 36 small products of
 * matrices, one per point, make a block of tiles and of columns:
 *
 *     y    rows: tiles             k: channels of x     columns: channels of y
 *     dx   rows: tiles             k: channels of dy    columns: channels of x
 *     dw   rows: channels of x     k: tiles             columns: channels of dy
 *
 * Each thread transforms what its block needs, piece of k by piece of k, into scratch of its own
 * that fits the cache: nothing is kept for the whole batch or for all weights, so the workspace
 * grows neither with N nor with the layer. */
#ifndef SN_KERNELS_CPU_WINOGRAD_H
#define SN_KERNELS_CPU_WINOGRAD_H

#include "kernels/cpu/conv_pool.h"

/* Whether a convolution over `depth` channels that makes a map of high x wide pixels is done so: by
 * what no axis rule ever cuts, so that a part is made like the whole. */
static inline bool sn_winograd_takes(const sn_conv *v, int64_t depth, int64_t high, int64_t wide) {
    enum { MIN_DEPTH = 16, MIN_EXTENT = 3 };
    return v->kh == 3 && v->kw == 3 && v->stride[0] == 1 && v->stride[1] == 1 &&
           v->dilation[0] == 1 && v->dilation[1] == 1 && v->groups == 1 && depth >= MIN_DEPTH &&
           high >= MIN_EXTENT && wide >= MIN_EXTENT;
}

/* Whether a tile of y, which is 4 x 4 pixels, holds whole windows. */
static inline bool sn_winograd_pools(const sn_pool *p) {
    return p->kernel[0] <= p->stride[0] && p->kernel[1] <= p->stride[1] && p->pad[0] == 0 &&
           p->pad[2] == 0 && 4 % p->stride[0] == 0 && 4 % p->stride[1] == 0;
}

size_t SN_CPU(winograd_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(winograd_dx_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(winograd_dw_workspace)(const sn_conv_operands *o, int n_threads);
void SN_CPU(winograd_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(winograd_dx_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(winograd_dw_run)(const sn_conv_operands *o, const sn_call *c);

#endif
