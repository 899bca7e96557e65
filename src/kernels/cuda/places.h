/* places.h: where an element of an image-shaped value stands: divisions by extents known at
 * launch. */
#ifndef SN_KERNELS_CUDA_PLACES_H
#define SN_KERNELS_CUDA_PLACES_H

#include "kernels/cuda/own.h"

/* Extents that elements are taken apart by. */
typedef struct {
    sn_divisor channels, width, height;
} sn_parts;

typedef struct {
    int64_t n, i, j, c; /* image, row, column, channel */
} sn_place4;

static __device__ __forceinline__ sn_place4 sn_place_of_element(const sn_parts &p, int64_t i) {
    sn_place4 at;
    const int64_t pixel = sn_div(i, p.channels), line = sn_div(pixel, p.width);
    at.c = i - pixel * p.channels.d;
    at.j = pixel - line * p.width.d;
    at.n = sn_div(line, p.height);
    at.i = line - at.n * p.height.d;
    return at;
}

/* The position of a convolution's or a pooling's result that place k of the window links to
 * position `at` of what it goes over, or -1. */
static __device__ __forceinline__ int64_t sn_place_under(int64_t at, int64_t k, int64_t pad,
                                                         int64_t dilation, const sn_divisor &stride,
                                                         int64_t extent) {
    const int64_t scaled = at + pad - k * dilation;
    if (scaled < 0)
        return -1;
    const int64_t o = sn_div(scaled, stride);
    return o * stride.d == scaled && o < extent ? o : -1;
}

static inline sn_parts sn_parts_of(int64_t height, int64_t width, int64_t channels) {
    const sn_parts p = {sn_divisor_of(channels), sn_divisor_of(width), sn_divisor_of(height)};
    return p;
}

#endif
