/* window.h: what convolutions and poolings over one, two or three axes share. Every window is one
 * over depth, height and width; axes that a layer does not have are 1 wide. The operators know
 * pictures [N, height, width, channels]: a sequence is a picture of height 1, and depth joins the
 * batch.
 *
 *     sn_window w;
 *     if (!sn_window_read(c, &(sn_window_conf){.n = 1, .kernel = conf->kernel_size, ...}, &w))
 *         return;
 *     sn_value y = ... on sn_window_pictures(c, &w, c->in[0]);
 *     c->out = sn_window_volumes(c, &w, y); */
#ifndef SN_NN_WINDOW_H
#define SN_NN_WINDOW_H

#include "nn/nn.h"

#define SN_WINDOW_AXES 3

/* As the layer's configuration has it; the arrays have n entries. */
typedef struct {
    int n;
    const int64_t *kernel, *strides, *dilation; /* dilation NULL: 1 */
    const char *padding; /* "valid", "same", or, of a sequence's convolution, "causal" */
    bool may_be_causal;
} sn_window_conf;

typedef struct {
    int n;                        /* axes of the layer: the last n of the three */
    int64_t size[SN_WINDOW_AXES]; /* of the input, or, transposed, of the output */
    int64_t channels;             /* of the input */
    int64_t kernel[SN_WINDOW_AXES], stride[SN_WINDOW_AXES], dilation[SN_WINDOW_AXES];
    int64_t pad[2 * SN_WINDOW_AXES]; /* before and after, for each axis */
} sn_window;

/* The type of the first input, which has n spatial axes; false after an error. */
bool sn_window_input(sn_layer_call *c, int n, snug_type *type);
/* Kernel, strides and dilation; they must be at least 1. False after an error. */
bool sn_window_settings(sn_layer_call *c, const sn_window_conf *conf, sn_window *w);
/* The padding for images of w->size: TensorFlow's "same" has ceil(extent / stride) windows and,
 * where the padding is odd, the extra row behind. */
bool sn_window_padding(sn_layer_call *c, const sn_window_conf *conf, sn_window *w);
/* All three for the layer's input. */
bool sn_window_read(sn_layer_call *c, const sn_window_conf *conf, sn_window *w);

/* How far the kernel reaches along an axis, and how many windows there are. */
int64_t sn_window_reach(const sn_window *w, int axis);
int64_t sn_window_count(const sn_window *w, int axis);

/* [N, axes..., C] as pictures [N * depth, H, W, C]. */
sn_value sn_window_pictures(sn_layer_call *c, const sn_window *w, sn_value x);
/* Pictures [N * depth, H, W, C] as [N, axes..., C]. */
sn_value sn_window_volumes(sn_layer_call *c, const sn_window *w, sn_value y, int64_t depth);

#endif
