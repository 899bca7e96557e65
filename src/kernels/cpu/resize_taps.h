/* resize_taps.h: one axis of a resize as numbers: output o is the sum of weight * input over the
 * taps [first, first + n) of the input. Positions and weights are f32 and rounded as TensorFlow
 * rounds them, half a pixel off the edge; for f64 pictures, too. */
#ifndef SN_KERNELS_CPU_RESIZE_TAPS_H
#define SN_KERNELS_CPU_RESIZE_TAPS_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

typedef struct {
    int64_t from, to; /* extents of input and output, >= 1 */
    int64_t method;   /* sn_resize_method */
    bool antialias;
} sn_resize_axis;

typedef struct {
    int64_t first, n;
} sn_taps;

#define sn_resize_taps    SN_CPU(resize_taps)
#define sn_resize_weights SN_CPU(resize_weights)

/* The taps of output o. Both ends grow with o. */
sn_taps sn_resize_taps(const sn_resize_axis *a, int64_t o);
/* Their weights, taps.n of them. */
void sn_resize_weights(const sn_resize_axis *a, int64_t o, sn_taps taps, float *weights);

#endif
