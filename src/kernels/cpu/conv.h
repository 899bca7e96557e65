/* conv.h: the geometry of a convolution, read once from the types and attributes of conv2d,
 * conv2d_dx or conv2d_dw. x [N, H, W, C], w [kh, kw, C / groups, O], y [N, oh, ow, O]; pad is top,
 * bottom, left, right. */
#ifndef SN_KERNELS_CPU_CONV_H
#define SN_KERNELS_CPU_CONV_H

#include "kernels/cpu/cpu.h"

typedef struct {
    int64_t N, H, W, C, kh, kw, O, oh, ow, groups;
    int64_t stride[2], pad[4], dilation[2];
    bool bias;   /* conv2d: has input 2; conv2d_dw: has output 1 */
    bool line;   /* conv2d: input 2 is a scale and a shift */
    int64_t act; /* conv2d only */
} sn_conv;

struct sn_pooling;     /* conv_pool.h */
struct sn_conv_halves; /* conv_halves.h */

/* A call's memory. */
typedef struct {
    sn_conv v;
    const float *x, *w, *dy, *bias; /* those the operator reads */
    const float *scale;             /* of a line, whose shift is the bias; or NULL */
    float *y, *dx, *dw, *db;        /* those it writes; db may be NULL */
    bool accumulate;                /* dw, db */
    const struct sn_pooling *pool;  /* y or dy is pooled, and this says how; or NULL */
    /* NULL: all are f32, and lie as above; else some are halves, and this says where they lie. */
    const struct sn_conv_halves *halves;
} sn_conv_operands;

/* Operand positions. */
enum { SN_CONV_X = 0, SN_CONV_W = 1, SN_CONV_BIAS = 2 };
enum { SN_CONV_DX_DY = 0, SN_CONV_DX_W = 1 };
enum { SN_CONV_DW_X = 0, SN_CONV_DW_DY = 1 };

static inline sn_conv sn_conv_from(const snug_type *x, const snug_type *w, const snug_type *y,
                                   int64_t groups) {
    return (sn_conv){
        .N = y->dims[0],
        .H = x->dims[1],
        .W = x->dims[2],
        .C = x->dims[3],
        .kh = w->dims[0],
        .kw = w->dims[1],
        .O = w->dims[3],
        .oh = y->dims[1],
        .ow = y->dims[2],
        .groups = groups,
    };
}

/* The three attribute families begin alike: stride, pad, dilation, groups. */
static inline void sn_conv_set_window(sn_conv *v, const int64_t *stride, const int64_t *pad,
                                      const int64_t *dilation) {
    for (int i = 0; i < 2; i++) {
        v->stride[i] = stride[i];
        v->dilation[i] = dilation[i];
    }
    for (int i = 0; i < 4; i++)
        v->pad[i] = pad[i];
}

/* in and out are the types of the operator's operands. */
static inline sn_conv sn_conv_forward(const sn_attrs_conv *a, const snug_type *const in[],
                                      const snug_type *y, int n_in) {
    sn_conv v = sn_conv_from(in[SN_CONV_X], in[SN_CONV_W], y, a->groups);
    sn_conv_set_window(&v, a->stride, a->pad, a->dilation);
    v.bias = n_in > 2;
    v.line = n_in > 2 && in[SN_CONV_BIAS]->rank == 2;
    v.act = a->act;
    return v;
}

static inline sn_conv sn_conv_dx(const sn_attrs_conv_dx *a, const snug_type *const in[],
                                 const snug_type *dx) {
    sn_conv v = sn_conv_from(dx, in[SN_CONV_DX_W], in[SN_CONV_DX_DY], a->groups);
    sn_conv_set_window(&v, a->stride, a->pad, a->dilation);
    return v;
}

static inline sn_conv sn_conv_dw(const sn_attrs_conv_dw *a, const snug_type *const in[],
                                 const snug_type *dw) {
    sn_conv v = sn_conv_from(in[SN_CONV_DW_X], dw, in[SN_CONV_DW_DY], a->groups);
    sn_conv_set_window(&v, a->stride, a->pad, a->dilation);
    v.bias = a->bias != 0;
    return v;
}

/* Each channel has a kernel of its own. */
static inline bool sn_conv_is_depthwise(const sn_conv *v) {
    return v->groups > 1 && v->groups == v->C && v->groups == v->O;
}

/* Row or column of x under output position o and kernel position k along axis 0 (rows) or 1
 * (columns); it may lie outside, in the padding. */
static inline int64_t sn_conv_at(const sn_conv *v, int axis, int64_t o, int64_t k) {
    return o * v->stride[axis] + k * v->dilation[axis] - v->pad[2 * axis];
}

#endif
