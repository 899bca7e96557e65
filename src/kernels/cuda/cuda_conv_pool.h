/* cuda_conv_pool.h: a convolution that is max-pooled at once. Codes are those of kernels/cpu: of
 * every pooled element the place of its window that won, row by row, or that nothing flows back
 * through it, because relu made it zero. Windows of at most 2 x 2 places have three planes of
 * bits per pixel, each of ceil(O / 8) bytes: column of the place, row of the place, alive (what
 * is not alive has place 0). Other windows have a byte per element: the place, or SN_CODE_DEAD. */
#ifndef SN_KERNELS_CUDA_CUDA_CONV_POOL_H
#define SN_KERNELS_CUDA_CUDA_CONV_POOL_H

#include "kernels/cuda/cuda_conv.h"

enum { SN_CODE_DEAD = 255 };

/* Pooling of [N, H, W, C] to [N, oh, ow, C]; pad is top, bottom, left, right. */
typedef struct {
    int64_t N, H, W, C, oh, ow;
    int64_t kernel[2], stride[2], pad[4];
} sn_pool;

static inline __host__ __device__ bool sn_code_is_planes(const sn_pool &p) {
    return p.kernel[0] <= 2 && p.kernel[1] <= 2;
}

/* Bytes of a plane of one pixel. */
static inline __host__ __device__ int64_t sn_code_plane(const sn_pool &p) {
    return (p.C + 7) / 8;
}

/* Bytes of one pooled pixel. */
static inline __host__ __device__ int64_t sn_code_pixel(const sn_pool &p) {
    return sn_code_is_planes(p) ? 3 * sn_code_plane(p) : p.C;
}

/* Place of channel c in the codes of a pixel, or SN_CODE_DEAD. */
static __device__ __forceinline__ int sn_code_get(const sn_pool &p, const uint8_t *pixel,
                                                  int64_t c) {
    if (!sn_code_is_planes(p))
        return pixel[c];
    const int64_t plane = sn_code_plane(p), at = c / 8;
    const int bit = (int)(c % 8);
    if (!(pixel[2 * plane + at] >> bit & 1))
        return SN_CODE_DEAD;
    return (pixel[plane + at] >> bit & 1) * (int)p.kernel[1] + (pixel[at] >> bit & 1);
}

/* The convolution's own extents are v's; its result is pooled by p. */
typedef struct {
    sn_conv v;
    sn_pool p;
    bool relu; /* after pooling */
} sn_conv_pool;

/* y of o is pooled, dy too; codes are written beside y, or read. */
typedef struct {
    sn_cuda_conv o;
    uint8_t *code; /* forward: or NULL */
} sn_cuda_conv_pool;

/* --- plain: everything made again where it is needed, f32 and f64 ----------------------------- */
void sn_conv_pool_plain(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o);
void sn_conv_pool_plain_dx(const sn_cuda_call *c, const sn_conv_pool *q,
                           const sn_cuda_conv_pool *o);
size_t sn_conv_pool_plain_dw_bytes(const sn_gpu *g, const sn_conv_pool *q, snug_dtype dtype);
void sn_conv_pool_plain_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                           void *scratch);

/* --- few input channels on tensor cores ------------------------------------------------------- */
bool sn_conv_pool_mma_takes(const sn_gpu *g, const sn_conv_pool *q);
size_t sn_conv_pool_mma_dw_bytes(const sn_gpu *g, const sn_conv_pool *q);
/* f32 by way of TF32 (conv_pool_mma.cu) */
void sn_conv_pool_mma(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o);
void sn_conv_pool_mma_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                         void *scratch);
/* halves (conv_pool_half.cu) */
void sn_conv_pool_half(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o);
void sn_conv_pool_half_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                          void *scratch);

/* --- through scratch: the convolution's result of some images --------------------------------- */
/* y and codes of the images in `big` [N, oh, ow, O], without the convolution's bias if it has one:
 * bias and scale come here, as they keep no order of the numbers when a scale is negative. */
void sn_pool_take(const sn_cuda_call *c, const sn_conv_pool *q, const void *big,
                  const sn_cuda_conv_pool *o);
/* The gradient of the convolution's result into `big`. */
void sn_pool_spread(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                    void *big);

#endif
