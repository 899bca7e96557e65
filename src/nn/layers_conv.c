/* layers_conv.c: convolutions over one, two and three axes, plain, depthwise, separable and
 * transposed, as rows conv2d and conv2d_dx (see spatial.h for how axes map to pictures).
 *
 * A depthwise kernel [k..., C, M] is, element for element, a kernel [k..., 1, C * M] in C groups. A
 * transposed convolution is the gradient of a convolution by its input, and Keras' kernel [k...,
 * filters, channels] is laid out for that. Three axes are a sum over the kernel's depth of
 * convolutions of slices. */
#include "nn/spatial.h"

#include "base/size.h"
#include "nn/activation.h"

#define DEPTH 0
/* No tensor has a longer axis; times a stride it is far from overflow. */
#define MAX_EXTENT (INT64_C(1) << 40)

/* What a convolution is made of. */
typedef struct {
    sn_spatial window;
    sn_value kernel, bias; /* kernel [axes..., channels / groups, filters]; bias may be missing */
    int64_t groups;
} convolution;

/* --- slices along the depth ------------------------------------------------------------------- */
/* `count` elements of axis `axis` from `start` on, in steps. */
typedef struct {
    int axis;
    int64_t start, count, step;
} part;

static sn_value slice_of(sn_layer_call *c, sn_value x, part p) {
    int64_t start[SNUG_MAX_RANK], size[SNUG_MAX_RANK], step[SNUG_MAX_RANK];
    for (int k = 0; k < SNUG_MAX_RANK; k++) {
        start[k] = k == p.axis ? p.start : 0;
        size[k] = k == p.axis ? p.count : -1;
        step[k] = k == p.axis ? p.step : 1;
    }
    return sn_build_slice(c->b, x, start, size, step);
}

/* The opposite: y in an axis of `extent` elements, zeros around it. */
static sn_value spread(sn_layer_call *c, sn_value y, part p, int64_t extent) {
    sn_attrs a;
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(c->b->graph, y)->rank;
    sn_attrs_default(SN_OP_slice_grad, &a);
    a.slice_grad.dims.n = a.slice_grad.strides.n = rank;
    for (int k = 0; k < rank; k++) {
        a.slice_grad.dims.v[k] = k == p.axis ? extent : sn_graph_type(c->b->graph, y)->dims[k];
        a.slice_grad.strides.v[k] = k == p.axis ? p.step : 1;
        a.slice_grad.start[k] = (int64_t)sn_build_key(c->b, "", k == p.axis ? p.start : 0).i;
    }
    return sn_build(c->b, SN_OP_slice_grad, &a, &y, 1);
}

static sn_value pad_depth(sn_layer_call *c, const sn_spatial *w, sn_value x) {
    sn_attrs a;
    if (w->pad[2 * DEPTH] == 0 && w->pad[2 * DEPTH + 1] == 0)
        return x;
    sn_attrs_default(SN_OP_pad, &a);
    a.pad.before = (sn_list){.n = 5, .v = {0, w->pad[2 * DEPTH]}};
    a.pad.after = (sn_list){.n = 5, .v = {0, w->pad[2 * DEPTH + 1]}};
    a.pad.value = (int64_t)sn_build_param(c->b, "", 0).i;
    return sn_build(c->b, SN_OP_pad, &a, &x, 1);
}

/* The part of an axis under position k of the kernel's depth. */
static part under(const sn_spatial *w, int64_t k, int64_t count) {
    return (part){1, k * w->dilation[DEPTH], count, w->stride[DEPTH]};
}

/* Position k of the kernel's depth, as a kernel of pictures. */
static sn_value kernel_slice(sn_layer_call *c, const convolution *v, int64_t k) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int n = v->window.n;
    const snug_type t = *sn_graph_type(c->b->graph, v->kernel);
    const int64_t dims[4] = {v->window.kernel[1], v->window.kernel[2], t.dims[n], t.dims[n + 1]};
    sn_value kernel = v->kernel;
    if (n == 3 && t.dims[0] > 1)
        kernel = slice_of(c, kernel, (part){0, k, 1, 1});
    return n == 2 ? kernel : sn_build_reshape(c->b, kernel, dims, 4);
}

/* --- one picture convolution ------------------------------------------------------------------ */
#define SET_PICTURE_WINDOW(a, w)                                                                   \
    do {                                                                                           \
        for (int i_ = 0; i_ < 2; i_++) {                                                           \
            (a)->stride[i_] = (w)->stride[1 + i_];                                                 \
            (a)->dilation[i_] = (w)->dilation[1 + i_];                                             \
        }                                                                                          \
        for (int i_ = 0; i_ < 4; i_++)                                                             \
            (a)->pad[i_] = (w)->pad[2 + i_];                                                       \
    } while (0)

/* Zeros that were put around x before (ZeroPadding2D) become the convolution's own, and the padded
 * copy is made only if others read it. */
static sn_value without_border(sn_layer_call *c, sn_value x, int64_t *pad) {
    const sn_graph *g = c->b->graph;
    if (c->b->error.code != SNUG_OK || sn_graph_value_at(g, x)->kind != SN_VALUE_OUTPUT)
        return x;
    const sn_node_info *n = sn_graph_node_at(g, sn_graph_value_at(g, x)->node);
    const sn_attrs_pad *border = &n->attrs.pad;
    if (n->op != SN_OP_pad || border->before.v[0] || border->after.v[0] || border->before.v[3] ||
        border->after.v[3] || sn_graph_param_at(g, (sn_param){(uint32_t)border->value})->real != 0)
        return x;
    for (int i = 0; i < 2; i++) {
        pad[2 * i] += border->before.v[1 + i];
        pad[2 * i + 1] += border->after.v[1 + i];
    }
    return n->in[0];
}

static sn_value convolve_pictures(sn_layer_call *c, const convolution *v, sn_value x, int64_t k) {
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d, &a);
    SET_PICTURE_WINDOW(&a.conv, &v->window);
    x = without_border(c, x, a.conv.pad);
    a.conv.groups = v->groups;
    const bool biased = k == 0 && sn_value_ok(v->bias);
    const sn_value in[3] = {x, kernel_slice(c, v, k), v->bias};
    return sn_build(c->b, SN_OP_conv2d, &a, in, biased ? 3 : 2);
}

static sn_value transposed_pictures(sn_layer_call *c, const convolution *v, sn_value x, int64_t k) {
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d_dx, &a);
    SET_PICTURE_WINDOW(&a.conv_dx, &v->window);
    a.conv_dx.groups = v->groups;
    a.conv_dx.input[0] = v->window.size[1];
    a.conv_dx.input[1] = v->window.size[2];
    const sn_value in[2] = {x, kernel_slice(c, v, k)};
    return sn_build(c->b, SN_OP_conv2d_dx, &a, in, 2);
}

/* --- whole convolutions ----------------------------------------------------------------------- */
/* y as pictures: the activation comes before their last reshape, so that it can be fused. */
static sn_value convolve(sn_layer_call *c, const convolution *v, sn_value x) {
    const sn_spatial *w = &v->window;
    if (w->n < 3)
        return convolve_pictures(c, v, sn_spatial_pictures(c, w, x), 0);
    const int64_t count = sn_spatial_count(w, DEPTH);
    if (count < 1) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "a kernel of depth %lld does not fit the input's %lld",
                        (long long)sn_spatial_reach(w, DEPTH), (long long)w->size[DEPTH]);
        return SN_NO_VALUE;
    }
    const sn_value padded = pad_depth(c, w, x);
    sn_value sum = SN_NO_VALUE;
    for (int64_t k = 0; k < w->kernel[DEPTH] && c->b->error.code == SNUG_OK; k++) {
        const sn_value images = sn_spatial_pictures(c, w, slice_of(c, padded, under(w, k, count)));
        const sn_value y = convolve_pictures(c, v, images, k);
        sum = k == 0 ? y : sn_build_add(c->b, sum, y);
    }
    return sum;
}

/* The window is one over the output; x is under it what y is in a convolution. */
static sn_value convolve_transposed(sn_layer_call *c, const convolution *v, sn_value x) {
    const sn_spatial *w = &v->window;
    const sn_value images = sn_spatial_pictures(c, w, x);
    if (w->n < 3)
        return transposed_pictures(c, v, images, 0);
    const int64_t count = sn_spatial_count(w, DEPTH), before = w->pad[2 * DEPTH],
                  padded = before + w->size[DEPTH] + w->pad[2 * DEPTH + 1];
    sn_value sum = SN_NO_VALUE;
    for (int64_t k = 0; k < w->kernel[DEPTH] && c->b->error.code == SNUG_OK; k++) {
        const sn_value y = sn_spatial_volumes(c, w, transposed_pictures(c, v, images, k), count);
        const sn_value wide = spread(c, y, under(w, k, count), padded);
        sum = k == 0 ? wide : sn_build_add(c->b, sum, wide);
    }
    return sn_spatial_pictures(c, w, slice_of(c, sum, (part){1, before, w->size[DEPTH], 1}));
}

sn_value sn_spatial_convolve(sn_layer_call *c, const sn_spatial_conf *conf, sn_value x,
                             sn_value kernel, sn_value bias) {
    convolution v = {.groups = 1, .kernel = kernel, .bias = bias};
    sn_layer_call on_x = *c; /* the window is one over x */
    on_x.in[0] = x;
    if (!sn_spatial_read(&on_x, conf, &v.window))
        return SN_NO_VALUE;
    const sn_value y = convolve(c, &v, x);
    return sn_spatial_volumes(c, &v.window, y, sn_spatial_count(&v.window, DEPTH));
}

/* --- variables -------------------------------------------------------------------------------- */
/* [kernel axes..., a, b] */
static snug_type kernel_type(const sn_spatial *w, int64_t a, int64_t b) {
    snug_type t = {.rank = w->n + 2};
    for (int k = 0; k < w->n; k++)
        t.dims[k] = w->kernel[SN_SPATIAL_AXES - w->n + k];
    t.dims[w->n] = a;
    t.dims[w->n + 1] = b;
    return t;
}

static sn_value bias_variable(sn_layer_call *c, bool use, int64_t n, const sn_init *init) {
    const snug_type t = {.rank = 1, .dims = {n}};
    return use ? sn_layer_variable(c, "bias", &t, init, true) : SN_NO_VALUE;
}

/* --- Conv1D, Conv2D, Conv3D ------------------------------------------------------------------- */
/* The settings that are not a window's. */
typedef struct {
    int64_t filters, groups;
    const char *activation;
    bool use_bias;
    const sn_init *kernel_init, *bias_init;
} conv_conf;

static bool check_dilation(sn_layer_call *c, const sn_spatial *w) {
    bool strided = false, dilated = false;
    for (int k = 0; k < SN_SPATIAL_AXES; k++) {
        strided = strided || w->stride[k] > 1;
        dilated = dilated || w->dilation[k] > 1;
    }
    if (strided && dilated)
        sn_layer_refuse(c, SNUG_E_INVALID,
                        "strides and dilation_rate cannot both be above 1, as in Keras");
    return !(strided && dilated);
}

static bool check_filters(sn_layer_call *c, const conv_conf *conf, int64_t channels) {
    if (conf->filters >= 1 && conf->groups >= 1 && conf->filters % conf->groups == 0 &&
        channels % conf->groups == 0)
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID,
                    "filters=%lld, groups=%lld: %lld input channels and the filters must divide "
                    "into groups",
                    (long long)conf->filters, (long long)conf->groups, (long long)channels);
    return false;
}

static void build_conv(sn_layer_call *c, const sn_spatial_conf *window, const conv_conf *conf) {
    convolution v = {.groups = conf->groups};
    if (!sn_spatial_read(c, window, &v.window) || !check_filters(c, conf, v.window.channels) ||
        !check_dilation(c, &v.window))
        return;
    const snug_type t = kernel_type(&v.window, v.window.channels / conf->groups, conf->filters);
    v.kernel = sn_layer_variable(c, "kernel", &t, conf->kernel_init, true);
    v.bias = bias_variable(c, conf->use_bias, conf->filters, conf->bias_init);
    const sn_value y = sn_activation(c->b, conf->activation, convolve(c, &v, c->in[0]));
    c->out = sn_spatial_volumes(c, &v.window, y, sn_spatial_count(&v.window, DEPTH));
}

#define WINDOW_CONF(conf, axes)                                                                    \
    ((sn_spatial_conf){.n = axes,                                                                  \
                       .kernel = (conf)->kernel_size,                                              \
                       .strides = (conf)->strides,                                                 \
                       .dilation = (conf)->dilation_rate,                                          \
                       .padding = (conf)->padding.text,                                            \
                       .may_be_causal = axes == 1})
#define BUILD_CONV(name, axes)                                                                     \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        build_conv(c, &WINDOW_CONF(conf, axes),                                                    \
                   &(conv_conf){conf->filters, conf->groups, conf->activation.text,                \
                                conf->use_bias != 0, &conf->kernel_initializer,                    \
                                &conf->bias_initializer});                                         \
    }
BUILD_CONV(conv1d, 1)
BUILD_CONV(conv2d, 2)
BUILD_CONV(conv3d, 3)

/* --- depthwise and separable ------------------------------------------------------------------ */
typedef struct {
    const char *variable;
    int64_t multiplier;
    const sn_init *init;
} depthwise_conf;

/* Fills v but for the bias; *width is how many channels come out. */
static bool open_depthwise(sn_layer_call *c, const sn_spatial_conf *window,
                           const depthwise_conf *conf, convolution *v, int64_t *width) {
    if (!sn_spatial_read(c, window, &v->window))
        return false;
    const int64_t channels = v->window.channels;
    if (conf->multiplier < 1 || !sn_i64_mul(channels, conf->multiplier, width)) {
        sn_layer_refuse(c, SNUG_E_INVALID, "depth_multiplier=%lld must be at least 1",
                        (long long)conf->multiplier);
        return false;
    }
    const snug_type t = kernel_type(&v->window, channels, conf->multiplier),
                    grouped = kernel_type(&v->window, 1, *width);
    const sn_value kernel = sn_layer_variable(c, conf->variable, &t, conf->init, true);
    v->kernel = sn_build_reshape(c->b, kernel, grouped.dims, grouped.rank);
    v->groups = channels;
    v->bias = SN_NO_VALUE;
    return true;
}

#define BUILD_DEPTHWISE(name, axes)                                                                \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        const depthwise_conf depthwise = {"kernel", conf->depth_multiplier,                        \
                                          &conf->depthwise_initializer};                           \
        convolution v;                                                                             \
        int64_t width;                                                                             \
        if (!open_depthwise(c, &WINDOW_CONF(conf, axes), &depthwise, &v, &width))                  \
            return;                                                                                \
        v.bias = bias_variable(c, conf->use_bias != 0, width, &conf->bias_initializer);            \
        const sn_value y = convolve(c, &v, c->in[0]);                                              \
        c->out =                                                                                   \
            sn_spatial_volumes(c, &v.window, sn_activation(c->b, conf->activation.text, y), 1);    \
    }
BUILD_DEPTHWISE(depthwise_conv1d, 1)
BUILD_DEPTHWISE(depthwise_conv2d, 2)

/* The convolution 1 x 1 behind a depthwise one of `width` channels. */
static void build_pointwise(sn_layer_call *c, const convolution *depthwise, int64_t width,
                            const conv_conf *conf) {
    convolution v = {.groups = 1, .window = {.n = depthwise->window.n}};
    for (int k = 0; k < SN_SPATIAL_AXES; k++)
        v.window.kernel[k] = v.window.stride[k] = v.window.dilation[k] = 1;
    if (!check_filters(c, conf, width))
        return;
    const snug_type t = kernel_type(&v.window, width, conf->filters);
    v.kernel = sn_layer_variable(c, "pointwise_kernel", &t, conf->kernel_init, true);
    v.bias = bias_variable(c, conf->use_bias, conf->filters, conf->bias_init);
    const sn_value middle = convolve(c, depthwise, c->in[0]);
    const sn_value y = convolve_pictures(c, &v, middle, 0);
    c->out = sn_spatial_volumes(c, &v.window, sn_activation(c->b, conf->activation, y), 1);
}

#define BUILD_SEPARABLE(name, axes)                                                                \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        const depthwise_conf depthwise = {"depthwise_kernel", conf->depth_multiplier,              \
                                          &conf->depthwise_initializer};                           \
        convolution v;                                                                             \
        int64_t width;                                                                             \
        if (open_depthwise(c, &WINDOW_CONF(conf, axes), &depthwise, &v, &width))                   \
            build_pointwise(c, &v, width,                                                          \
                            &(conv_conf){conf->filters, 1, conf->activation.text,                  \
                                         conf->use_bias != 0, &conf->pointwise_initializer,        \
                                         &conf->bias_initializer});                                \
    }
BUILD_SEPARABLE(separable_conv1d, 1)
BUILD_SEPARABLE(separable_conv2d, 2)

/* --- transposed ------------------------------------------------------------------------------- */
/* Extents of the output, by Keras' rules: output_padding is what lies behind the last window; where
 * it is not given (SN_UNSET), "same" gives the input's extent times the stride, and "valid" all
 * that the windows and strides cover. */
static int64_t transposed_extent(const sn_spatial *w, int axis, bool same, int64_t behind) {
    const int64_t inner = (w->size[axis] - 1) * w->stride[axis], reach = sn_spatial_reach(w, axis);
    if (behind < 0 && same)
        return w->size[axis] * w->stride[axis];
    if (behind < 0)
        return inner + (reach > w->stride[axis] ? reach : w->stride[axis]);
    return inner + (same ? reach % 2 : reach) + behind;
}

/* Turns the window over the input into one over the output. */
static bool transpose_window(sn_layer_call *c, const sn_spatial_conf *conf, const int64_t *behind,
                             sn_spatial *w) {
    const bool same = conf->padding[0] == 's';
    for (int i = 0; i < w->n; i++) {
        const int axis = SN_SPATIAL_AXES - w->n + i;
        if (behind[i] >= w->stride[axis] || (behind[i] < 0 && behind[i] != SN_UNSET)) {
            sn_layer_refuse(c, SNUG_E_INVALID,
                            "output_padding has the entry %lld; it must be below the stride, %lld",
                            (long long)behind[i], (long long)w->stride[axis]);
            return false;
        }
        const int64_t before = w->size[axis];
        w->size[axis] = before <= MAX_EXTENT ? transposed_extent(w, axis, same, behind[i]) : 0;
        if (before < 1 || w->size[axis] < 1) {
            sn_layer_refuse(c, SNUG_E_SHAPE, "an input of extent %lld gives an output of %lld",
                            (long long)before, (long long)w->size[axis]);
            return false;
        }
    }
    return sn_spatial_padding(c, conf, w);
}

static void build_transposed(sn_layer_call *c, const sn_spatial_conf *window, const int64_t *behind,
                             const conv_conf *conf) {
    convolution v = {.groups = 1};
    if (!sn_spatial_read(c, window, &v.window) || !check_filters(c, conf, v.window.channels) ||
        !check_dilation(c, &v.window) || !transpose_window(c, window, behind, &v.window))
        return;
    const snug_type t = kernel_type(&v.window, conf->filters, v.window.channels);
    v.kernel = sn_layer_variable(c, "kernel", &t, conf->kernel_init, true);
    const sn_value bias = bias_variable(c, conf->use_bias, conf->filters, conf->bias_init);
    sn_value y = convolve_transposed(c, &v, c->in[0]);
    if (conf->use_bias)
        y = sn_build_add(c->b, y, bias);
    y = sn_activation(c->b, conf->activation, y);
    c->out = sn_spatial_volumes(c, &v.window, y, v.window.size[DEPTH]);
}

#define BUILD_TRANSPOSED(name, axes)                                                               \
    void sn_layer_build_##name(sn_layer_call *c) {                                                 \
        const sn_conf_##name *conf = c->conf;                                                      \
        sn_spatial_conf window = WINDOW_CONF(conf, axes);                                          \
        window.may_be_causal = false;                                                              \
        build_transposed(c, &window, conf->output_padding,                                         \
                         &(conv_conf){conf->filters, 1, conf->activation.text,                     \
                                      conf->use_bias != 0, &conf->kernel_initializer,              \
                                      &conf->bias_initializer});                                   \
    }
BUILD_TRANSPOSED(conv1d_transpose, 1)
BUILD_TRANSPOSED(conv2d_transpose, 2)
BUILD_TRANSPOSED(conv3d_transpose, 3)
