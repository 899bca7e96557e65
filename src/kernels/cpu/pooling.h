/* pooling.h: the geometry of pooling over x [N, H, W, C]; y is [N, oh, ow, C]. */
#ifndef SN_KERNELS_CPU_POOLING_H
#define SN_KERNELS_CPU_POOLING_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

typedef struct {
    int64_t N, H, W, C, oh, ow;
    int64_t kernel[2], stride[2], pad[4];
} sn_pool;

/* big is the type of x or dx, small that of y or dy. */
static inline sn_pool sn_pool_of(const snug_type *big, const snug_type *small,
                                 const sn_attrs_pool *a) {
    return (sn_pool){
        .N = big->dims[0],
        .H = big->dims[1],
        .W = big->dims[2],
        .C = big->dims[3],
        .oh = small->dims[1],
        .ow = small->dims[2],
        .kernel = {a->kernel[0], a->kernel[1]},
        .stride = {a->stride[0], a->stride[1]},
        .pad = {a->pad[0], a->pad[1], a->pad[2], a->pad[3]},
    };
}

/* pool_grad begins like pool: kernel, stride, pad. */
static inline sn_pool sn_pool_backward_of(const snug_type *big, const snug_type *small,
                                          const sn_attrs_pool_grad *a) {
    const sn_attrs_pool head = {
        .kernel = {a->kernel[0], a->kernel[1]},
        .stride = {a->stride[0], a->stride[1]},
        .pad = {a->pad[0], a->pad[1], a->pad[2], a->pad[3]},
    };
    return sn_pool_of(big, small, &head);
}

/* Places [from, to) of a window along one axis that lie inside x, and the first element they
 * touch. */
typedef struct {
    int64_t from, to, start;
} sn_pool_span;

static inline sn_pool_span sn_pool_window(const sn_pool *p, int axis, int64_t o) {
    const int64_t extent = axis == 0 ? p->H : p->W;
    const int64_t start = o * p->stride[axis] - p->pad[2 * axis];
    const int64_t from = start < 0 ? -start : 0;
    const int64_t room = extent - start;
    const int64_t to = room < p->kernel[axis] ? room : p->kernel[axis];
    return (sn_pool_span){from, to > from ? to : from, start};
}

/* The window along an axis whose place k is input position `at`, or -1. */
static inline int64_t sn_pool_under(const sn_pool *p, int axis, int64_t at, int64_t k) {
    const int64_t extent = axis == 0 ? p->oh : p->ow;
    const int64_t scaled = at + p->pad[2 * axis] - k;
    if (scaled < 0 || scaled % p->stride[axis] != 0 || scaled / p->stride[axis] >= extent)
        return -1;
    return scaled / p->stride[axis];
}

static inline int64_t sn_pool_x(const sn_pool *p, int64_t n, int64_t row, int64_t col) {
    return ((n * p->H + row) * p->W + col) * p->C;
}

static inline int64_t sn_pool_y(const sn_pool *p, int64_t n, int64_t i, int64_t j) {
    return ((n * p->oh + i) * p->ow + j) * p->C;
}

/* The fast kernels, of f32 and of halves, which need a workspace. */
size_t SN_CPU(pool_workspace)(const sn_opdesc *d, int n_threads);
size_t SN_CPU(pool_backward_workspace)(const sn_opdesc *d, int n_threads);
void SN_CPU(maxpool_f32)(const sn_call *c);
void SN_CPU(avgpool_f32)(const sn_call *c);
/* code NULL: of avgpool. */
void SN_CPU(pool_backward_f32)(const sn_call *c, const uint8_t *code);

#endif
