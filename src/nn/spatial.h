/* spatial.h: what convolutions and poolings over one, two or three axes share. Every window is one
 * over depth, height and width; axes that a layer does not have are 1 wide. The operators know
 * pictures [N, height, width, channels]: a sequence is a picture of height 1, and depth joins the
 * batch.
 *
 *     sn_spatial w;
 *     if (!sn_spatial_read(c, &(sn_spatial_conf){.n = 1, .kernel = conf->kernel_size, ...}, &w))
 *         return;
 *     sn_value y = ... on sn_spatial_pictures(c, &w, c->in[0]);
 *     c->out = sn_spatial_volumes(c, &w, y); */
#ifndef SN_NN_SPATIAL_H
#define SN_NN_SPATIAL_H

#include "nn/layer_call.h"

#define SN_SPATIAL_AXES 3

/* As the layer's configuration has it; the arrays have n entries. */
typedef struct {
    int n;
    const int64_t *kernel, *strides, *dilation; /* dilation NULL: 1 */
    const char *padding; /* "valid", "same", or, of a sequence's convolution, "causal" */
    bool may_be_causal;
} sn_spatial_conf;

typedef struct {
    int n;                         /* axes of the layer: the last n of the three */
    int64_t size[SN_SPATIAL_AXES]; /* of the input, or, transposed, of the output */
    int64_t channels;              /* of the input */
    int64_t kernel[SN_SPATIAL_AXES], stride[SN_SPATIAL_AXES], dilation[SN_SPATIAL_AXES];
    int64_t pad[2 * SN_SPATIAL_AXES]; /* before and after, for each axis */
} sn_spatial;

/* The type of the first input, which has n spatial axes; false after an error. */
bool sn_spatial_input(sn_layer_call *c, int n, snug_type *type);
/* Kernel, strides and dilation; they must be at least 1. False after an error. */
bool sn_spatial_settings(sn_layer_call *c, const sn_spatial_conf *conf, sn_spatial *w);
/* The padding for images of w->size: TensorFlow's "same" has ceil(extent / stride) windows and,
 * where the padding is odd, the extra row behind. */
bool sn_spatial_padding(sn_layer_call *c, const sn_spatial_conf *conf, sn_spatial *w);
/* All three for the layer's input. */
bool sn_spatial_read(sn_layer_call *c, const sn_spatial_conf *conf, sn_spatial *w);

/* How far the kernel reaches along an axis, and how many windows there are. */
int64_t sn_spatial_reach(const sn_spatial *w, int axis);
int64_t sn_spatial_count(const sn_spatial *w, int axis);

/* [N, axes..., C] as pictures [N * depth, H, W, C]. */
sn_value sn_spatial_pictures(sn_layer_call *c, const sn_spatial *w, sn_value x);
/* Pictures [N * depth, H, W, C] as [N, axes..., C]. */
sn_value sn_spatial_volumes(sn_layer_call *c, const sn_spatial *w, sn_value y, int64_t depth);

/* A whole convolution of x [N, axes..., C] (layers_conv.c); bias may be SN_NO_VALUE. */
sn_value sn_spatial_convolve(sn_layer_call *c, const sn_spatial_conf *conf, sn_value x,
                             sn_value kernel, sn_value bias);
/* A whole pooling of the input (layers_pool.c): SN_OP_maxpool or SN_OP_avgpool; strides of 0 are
 * the window's. */
void sn_spatial_pool(sn_layer_call *c, sn_op op, const sn_spatial_conf *conf);

#endif
