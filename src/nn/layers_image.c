/* layers_image.c: convolution and pooling of [batch, height, width, channels]. "same" padding is
 * TensorFlow's: the output has ceil(extent / stride) windows and, where the padding is odd, the
 * extra row goes to the bottom and the right. */
#include "nn/nn.h"

#include "base/size.h"

#include <string.h>

#define MAX_SETTING                                                                                \
    (1 << 20) /* larger windows, strides and paddings are typing errors; keeps sums far from       \
                 overflow */

static snug_type image_type(sn_layer_call *c) {
    if (c->b->error.code != SNUG_OK)
        return (snug_type){.rank = 0};
    const snug_type t = *sn_graph_type(c->b->graph, c->in[0]);
    if (t.rank == 4)
        return t;
    char text[192];
    sn_layer_refuse(c, SNUG_E_SHAPE,
                    "the input is %s; pictures have 4 axes: batch, height, width, channels",
                    snug_type_print(&t, text, sizeof text));
    return (snug_type){.rank = 0};
}

static bool check_pair(sn_layer_call *c, const char *key, const int64_t *v) {
    if (v[0] >= 1 && v[1] >= 1 && v[0] <= MAX_SETTING && v[1] <= MAX_SETTING)
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID, "%s=%lld,%lld must be at least 1", key, (long long)v[0],
                    (long long)v[1]);
    return false;
}

/* pad: top, bottom, left, right. */
static bool padding_of(sn_layer_call *c, const sn_conf_text *padding, const snug_type *image,
                       const int64_t *window, const int64_t *stride, int64_t *pad) {
    memset(pad, 0, 4 * sizeof *pad);
    if (strcmp(padding->text, "valid") == 0)
        return true;
    if (strcmp(padding->text, "same") != 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "padding=%s is not known; there are valid and same",
                        padding->text);
        return false;
    }
    for (int k = 0; k < 2; k++) {
        const int64_t extent = image->dims[1 + k];
        const int64_t windows = extent / stride[k] + (extent % stride[k] != 0);
        const int64_t covered = (windows - 1) * stride[k] + window[k];
        const int64_t total = covered > extent ? covered - extent : 0;
        pad[2 * k] = total / 2;
        pad[2 * k + 1] = total - total / 2;
    }
    return true;
}

/* --- Conv2D ----------------------------------------------------------------------------------- */
static bool check_conv(sn_layer_call *c, const sn_conf_conv2d *conf, int64_t channels) {
    if (!check_pair(c, "kernel_size", conf->kernel_size) ||
        !check_pair(c, "strides", conf->strides) ||
        !check_pair(c, "dilation_rate", conf->dilation_rate))
        return false;
    if (conf->filters < 1 || conf->groups < 1 || conf->filters % conf->groups ||
        channels % conf->groups) {
        sn_layer_refuse(c, SNUG_E_INVALID,
                        "filters=%lld, groups=%lld: %lld input channels and the filters must "
                        "divide into groups",
                        (long long)conf->filters, (long long)conf->groups, (long long)channels);
        return false;
    }
    const bool strided = conf->strides[0] > 1 || conf->strides[1] > 1;
    const bool dilated = conf->dilation_rate[0] > 1 || conf->dilation_rate[1] > 1;
    if (strided && dilated) {
        sn_layer_refuse(c, SNUG_E_INVALID,
                        "strides and dilation_rate cannot both be above 1, as in Keras");
        return false;
    }
    return true;
}

void sn_layer_build_conv2d(sn_layer_call *c) {
    const sn_conf_conv2d *conf = c->conf;
    const snug_type t = image_type(c);
    if (t.rank == 0 || !check_conv(c, conf, t.dims[3]))
        return;
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d, &a);
    int64_t window[2];
    for (int k = 0; k < 2; k++) {
        a.conv.stride[k] = conf->strides[k];
        a.conv.dilation[k] = conf->dilation_rate[k];
        window[k] = (conf->kernel_size[k] - 1) * conf->dilation_rate[k] + 1;
    }
    a.conv.groups = conf->groups;
    if (!padding_of(c, &conf->padding, &t, window, conf->strides, a.conv.pad))
        return;
    const snug_type kernel_type = {.rank = 4,
                                   .dims = {conf->kernel_size[0], conf->kernel_size[1],
                                            t.dims[3] / conf->groups, conf->filters}};
    const snug_type bias_type = {.rank = 1, .dims = {conf->filters}};
    sn_value in[3] = {c->in[0], SN_NO_VALUE, SN_NO_VALUE};
    in[1] = sn_layer_variable(c, "kernel", &kernel_type, &conf->kernel_initializer, true);
    if (conf->use_bias)
        in[2] = sn_layer_variable(c, "bias", &bias_type, &conf->bias_initializer, true);
    const sn_value y = sn_build(c->b, SN_OP_conv2d, &a, in, conf->use_bias ? 3 : 2);
    c->out = sn_activation(c->b, conf->activation.text, y);
}

/* --- ZeroPadding2D ---------------------------------------------------------------------------- */
/* padding is one number, one for the height and one for the width, or top, bottom, left, right;
 * entries that were not given are -1. */
void sn_layer_build_zero_padding2d(sn_layer_call *c) {
    const sn_conf_zero_padding2d *conf = c->conf;
    const int64_t *p = conf->padding;
    const bool pair = p[0] >= 0 && p[2] < 0;
    const int64_t by_axis[4] = {p[0], p[0], p[1], p[1]}, one[4] = {1, 1, 1, 1};
    const int64_t *pad = p[0] < 0 ? one : pair ? by_axis : p;
    if (image_type(c).rank == 0)
        return;
    sn_attrs a;
    sn_attrs_default(SN_OP_pad, &a);
    for (int k = 0; k < 4; k++)
        if (pad[k] < 0 || pad[k] > MAX_SETTING) {
            sn_layer_refuse(c, SNUG_E_INVALID, "padding has the entry %lld", (long long)pad[k]);
            return;
        }
    a.pad.before = (sn_list){.n = 4, .v = {0, pad[0], pad[2], 0}};
    a.pad.after = (sn_list){.n = 4, .v = {0, pad[1], pad[3], 0}};
    a.pad.value = (int64_t)sn_build_param(c->b, "", 0).i;
    c->out = sn_build(c->b, SN_OP_pad, &a, c->in, 1);
}

/* --- pooling ---------------------------------------------------------------------------------- */
/* Strides of 0 mean: as the window. */
static void build_pool(sn_layer_call *c, sn_op op, const int64_t *size, const int64_t *strides,
                       const sn_conf_text *padding) {
    const snug_type t = image_type(c);
    const int64_t stride[2] = {strides[0] ? strides[0] : size[0],
                               strides[1] ? strides[1] : size[1]};
    if (t.rank == 0 || !check_pair(c, "pool_size", size) || !check_pair(c, "strides", stride))
        return;
    sn_attrs a;
    sn_attrs_default(op, &a);
    memcpy(a.pool.kernel, size, sizeof a.pool.kernel);
    memcpy(a.pool.stride, stride, sizeof a.pool.stride);
    if (padding_of(c, padding, &t, size, stride, a.pool.pad))
        c->out = sn_build(c->b, op, &a, c->in, 1);
}

void sn_layer_build_max_pooling2d(sn_layer_call *c) {
    const sn_conf_max_pooling2d *conf = c->conf;
    build_pool(c, SN_OP_maxpool, conf->pool_size, conf->strides, &conf->padding);
}

void sn_layer_build_average_pooling2d(sn_layer_call *c) {
    const sn_conf_average_pooling2d *conf = c->conf;
    build_pool(c, SN_OP_avgpool, conf->pool_size, conf->strides, &conf->padding);
}

#define HEIGHT_AND_WIDTH (1u << 1 | 1u << 2)

void sn_layer_build_global_average_pooling2d(sn_layer_call *c) {
    const sn_conf_global_average_pooling2d *conf = c->conf;
    if (image_type(c).rank)
        c->out = sn_build_mean(c->b, c->in[0], HEIGHT_AND_WIDTH, conf->keepdims != 0);
}

void sn_layer_build_global_max_pooling2d(sn_layer_call *c) {
    const sn_conf_global_max_pooling2d *conf = c->conf;
    if (image_type(c).rank)
        c->out = sn_build_max(c->b, c->in[0], HEIGHT_AND_WIDTH, conf->keepdims != 0);
}
