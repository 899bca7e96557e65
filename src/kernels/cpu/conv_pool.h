/* conv_pool.h: a convolution whose result is max-pooled at once: geometry, codes, and the two steps
 * that the products of conv_fast.c and conv_weights.c take on a block of it.
 *
 * A code says of every pooled element which place of its window won, row by row, or that nothing
 * flows back through it, because relu made it zero. Windows of at most 2 x 2 places have three
 * planes of bits per pixel, each of ceil(O / 8) bytes: column of the place, row of the place, alive
 * (what is not alive has place 0). Other windows have a byte per element: the place, or DEAD. */
#ifndef SN_KERNELS_CPU_CONV_POOL_H
#define SN_KERNELS_CPU_CONV_POOL_H

#include "kernels/cpu/conv.h"
#include "kernels/cpu/halves.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/pooling.h"

enum { SN_CODE_DEAD = 255 };

typedef struct sn_pooling {
    sn_pool p;        /* its H, W and C are oh, ow and O of the convolution */
    bool relu;        /* after pooling */
    uint8_t *code;    /* written beside y, or NULL; backward: read */
    sn_stored pooled; /* y or dy of a call with halves; without data where they are f32 */
} sn_pooling;

/* pool: kernel, stride, pad, as the attributes have them; v: N, oh, ow and O are set. */
static inline sn_pooling sn_pooling_of(const int64_t *pool, const sn_conv *v,
                                       const snug_type *pooled) {
    const snug_type big = {.rank = 4, .dims = {v->N, v->oh, v->ow, v->O}};
    const sn_attrs_pool a = {
        .kernel = {pool[0], pool[1]},
        .stride = {pool[2], pool[3]},
        .pad = {pool[4], pool[5], pool[6], pool[7]},
    };
    return (sn_pooling){.p = sn_pool_of(&big, pooled, &a)};
}

/* Extent of the convolution's result along an axis. */
static inline int64_t sn_conv_results(const sn_conv *v, int axis) {
    const int64_t size = axis == 0 ? v->H : v->W, kernel = axis == 0 ? v->kh : v->kw;
    const int64_t padded = size + v->pad[2 * axis] + v->pad[2 * axis + 1];
    return (padded - (kernel - 1) * v->dilation[axis] - 1) / v->stride[axis] + 1;
}

static inline bool sn_code_is_planes(const sn_pool *p) {
    return p->kernel[0] <= 2 && p->kernel[1] <= 2;
}

/* Bytes of a plane of one pixel. */
static inline int64_t sn_code_plane(const sn_pool *p) {
    return (p->C + 7) / 8;
}

/* Bytes of one pooled pixel. */
static inline int64_t sn_code_pixel(const sn_pool *p) {
    return sn_code_is_planes(p) ? 3 * sn_code_plane(p) : p->C;
}

/* Place of channel c in the codes of a pixel, or DEAD. */
static inline int64_t sn_code_get(const sn_pool *p, const uint8_t *pixel, int64_t c) {
    if (!sn_code_is_planes(p))
        return pixel[c];
    const int64_t plane = sn_code_plane(p), at = c / 8;
    const int bit = (int)(c % 8);
    if (!(pixel[2 * plane + at] >> bit & 1))
        return SN_CODE_DEAD;
    return (pixel[plane + at] >> bit & 1) * p->kernel[1] + (pixel[at] >> bit & 1);
}

/* Channels c, c + 8.. of a pixel may be put by different threads when c is a multiple of 8: the
 * first of eight clears the byte. */
static inline void sn_code_put(const sn_pool *p, uint8_t *pixel, int64_t c, int64_t place) {
    if (!sn_code_is_planes(p)) {
        pixel[c] = (uint8_t)place;
        return;
    }
    const int64_t at = place == SN_CODE_DEAD ? 0 : place;
    const int64_t bits[3] = {at % p->kernel[1], at / p->kernel[1], place != SN_CODE_DEAD};
    for (int i = 0; i < 3; i++) {
        uint8_t *byte = &pixel[i * sn_code_plane(p) + c / 8];
        *byte = (uint8_t)((c % 8 == 0 ? 0 : *byte) | bits[i] << c % 8);
    }
}

/* A rectangle of the convolution's result in one image, which may reach outside, in channels [c, c
 * + n). Pixel (i, j) of it lies at at + (i * pitch + j) * step. */
typedef struct {
    int64_t image, row, col, high, wide, c, n;
    float *at;
    int64_t pitch, step;
} sn_pool_area;

/* Pools the windows there are that lie in the area with all their places (padding counted), of
 * which the first begins with it: y and codes. y and dy count where q has no other. */
void SN_CPU(conv_pool_take)(const sn_pooling *q, const sn_pool_area *a, float *y);
/* Fills the area with the gradient of the convolution's result: that of pooled values dy goes where
 * the codes say, all else up to `step` is zero. */
void SN_CPU(conv_pool_spread)(const sn_pooling *q, const sn_pool_area *a, const float *dy);

/* Windows of more places are the reference's. */
enum { SN_POOL_AREA = 120 };

#endif
