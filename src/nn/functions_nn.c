/* functions_nn.c: tf.nn and its like in keras.ops: activations with settings, cross-entropies,
 * convolutions, pooling, normalisation; and random numbers. Windows are those of layers
 * (nn/spatial.h). */
#include "function/function_call.h"

#include "base/rng.h"
#include "nn/activation.h"
#include "nn/keras_number.h"
#include "nn/loss.h"
#include "nn/spatial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- activations ------------------------------------------------------------------------------ */
#define ACTIVATION(name, text)                                                                     \
    void sn_fn_##name(sn_fn_call *c) {                                                             \
        c->out[0] = sn_activation(c->b, text, sn_fn_float(c, 0));                                  \
    }
ACTIVATION(sigmoid, "sigmoid")
ACTIVATION(softplus, "softplus")
ACTIVATION(softsign, "softsign")
ACTIVATION(relu6, "relu6")
ACTIVATION(selu, "selu")
ACTIVATION(log_sigmoid, "log_sigmoid")
ACTIVATION(hard_sigmoid, "hard_sigmoid")
ACTIVATION(hard_silu, "hard_silu")
ACTIVATION(hard_tanh, "hard_tanh")
ACTIVATION(mish, "mish")
ACTIVATION(sparse_plus, "sparse_plus")
ACTIVATION(sparse_sigmoid, "sparse_sigmoid")
ACTIVATION(tanh_shrink, "tanh_shrink")
ACTIVATION(exponential, "exponential")

void sn_fn_relu(sn_fn_call *c) {
    c->out[0] = sn_build_relu(c->b, sn_fn_value(c, 0));
}

/* Keras' relu with its settings. */
void sn_fn_relu_with(sn_fn_call *c) {
    const double most = sn_fn_given(c, "max_value") ? sn_fn_real(c, "max_value") : -1;
    const char *const slope = sn_fn_place(c, "alpha") >= 0 ? "alpha" : "negative_slope";
    c->out[0] = sn_relu_with(c->b, sn_fn_float(c, 0), sn_fn_real(c, slope), most,
                             sn_fn_real(c, "threshold"));
}

void sn_fn_leaky_relu(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const double slope = sn_fn_real(c, sn_fn_place(c, "alpha") >= 0 ? "alpha" : "negative_slope");
    c->out[0] = sn_build_value_op(c->b, SN_OP_leaky_relu, &x, 1, sn_keras_number(slope));
}

void sn_fn_elu(sn_fn_call *c) {
    if (sn_fn_given(c, "alpha")) {
        const sn_value x = sn_fn_float(c, 0);
        c->out[0] = sn_build_value_op(c->b, SN_OP_elu, &x, 1, sn_fn_real(c, "alpha"));
        return;
    }
    c->out[0] = sn_activation(c->b, "elu", sn_fn_float(c, 0));
}

void sn_fn_celu(sn_fn_call *c) {
    const double alpha = sn_fn_real(c, "alpha");
    const sn_value part = sn_build_affine(c->b, sn_fn_float(c, 0), 1 / alpha, 0);
    c->out[0] = sn_build_affine(c->b, sn_build_value_op(c->b, SN_OP_elu, &part, 1, 1), alpha, 0);
}

void sn_fn_gelu(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    c->out[0] = sn_fn_flag(c, "approximate") ? sn_build_gelu_tanh(c->b, x) : sn_build_gelu(c->b, x);
}

/* x * sigmoid(beta x) */
void sn_fn_silu(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    if (!sn_fn_given(c, "beta") || sn_fn_real(c, "beta") == 1)
        c->out[0] = sn_build_silu(c->b, x);
    else
        c->out[0] = sn_build_mul(
            c->b, x, sn_build_sigmoid(c->b, sn_build_affine(c->b, x, sn_fn_real(c, "beta"), 0)));
}

void sn_fn_hard_shrink(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0), limit = sn_fn_like(c, x, sn_fn_real(c, "threshold"));
    c->out[0] = sn_build_select(c->b, sn_build_greater(c->b, sn_build_abs(c->b, x), limit), x,
                                sn_fn_like(c, x, 0));
}

void sn_fn_soft_shrink(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const double limit = sn_fn_real(c, "threshold");
    c->out[0] = sn_build_sub(c->b, x, sn_build_clip(c->b, x, -limit, limit));
}

void sn_fn_threshold(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0), limit = sn_fn_like(c, x, sn_fn_real(c, "threshold"));
    c->out[0] = sn_build_select(c->b, sn_build_greater(c->b, x, limit), x,
                                sn_fn_like(c, x, sn_fn_real(c, "default_value")));
}

void sn_fn_squareplus(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const sn_value root = sn_build_sqrt(c->b, sn_build_affine(c->b, sn_build_square(c->b, x), 1,
                                                              sn_keras_number(sn_fn_real(c, "b"))));
    c->out[0] = sn_build_affine(c->b, sn_build_add(c->b, x, root), 0.5, 0);
}

/* A function of rows along any axis. */
static sn_value along(sn_fn_call *c, sn_value x, int axis,
                      sn_value (*rows)(sn_builder *, sn_value)) {
    if (axis == sn_fn_type(c, x).rank - 1)
        return rows(c->b, x);
    return sn_build_swapaxes(c->b, rows(c->b, sn_build_swapaxes(c->b, x, axis, -1)), axis, -1);
}

void sn_fn_softmax(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    c->out[0] = along(c, x, sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, -1), sn_build_softmax);
}

void sn_fn_log_softmax(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    c->out[0] = along(c, x, sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, -1), sn_build_log_softmax);
}

static void axis_activation(sn_fn_call *c, const char *name) {
    char text[32];
    snprintf(text, sizeof text, "%s:axis=%d", name, (int)sn_fn_int(c, "axis"));
    c->out[0] = sn_activation(c->b, text, sn_fn_float(c, 0));
}

void sn_fn_glu(sn_fn_call *c) {
    axis_activation(c, "glu");
}

void sn_fn_sparsemax(sn_fn_call *c) {
    axis_activation(c, "sparsemax");
}

/* --- cross-entropies -------------------------------------------------------------------------- */
/* x with axis `axis` last. */
static sn_value axis_last(sn_fn_call *c, sn_value x, int axis) {
    const int rank = sn_fn_type(c, x).rank;
    int perm[SNUG_MAX_RANK], at = 0;
    for (int k = 0; k < rank; k++)
        if (k != axis)
            perm[at++] = k;
    perm[at] = axis;
    return axis == rank - 1 ? x : sn_build_transpose(c->b, x, perm);
}

void sn_fn_softmax_xent(sn_fn_call *c) {
    sn_value labels, logits;
    sn_fn_pair(c, 0, 1, &labels, &logits);
    const int rank = sn_fn_type(c, logits).rank, axis = sn_fn_axis(c, "axis", rank, -1);
    if (axis != rank - 1) {
        labels = axis_last(c, labels, axis);
        logits = axis_last(c, logits, axis);
    }
    const sn_value in[2] = {logits, labels};
    sn_attrs a;
    sn_attrs_default(SN_OP_softmax_xent, &a);
    a.xent.unit = 1;
    c->out[0] = sn_build(c->b, SN_OP_softmax_xent, &a, in, 2);
}

void sn_fn_sparse_xent(sn_fn_call *c) {
    const sn_value labels = sn_fn_value(c, 0), logits = sn_fn_value(c, 1);
    const snug_dtype dtype = sn_fn_type(c, labels).dtype;
    const bool whole = dtype == SNUG_I32 || dtype == SNUG_I64;
    c->out[0] =
        sn_build_sparse_xent(c->b, logits, whole ? labels : sn_build_cast(c->b, labels, SNUG_I32));
}

void sn_fn_sigmoid_xent(sn_fn_call *c) {
    sn_value labels, logits;
    sn_fn_pair(c, 0, 1, &labels, &logits);
    c->out[0] = sn_build_sigmoid_xent(c->b, logits, labels);
}

/* (1 - z) x + (1 + (w - 1) z) (log(1 + e^-|x|) + relu(-x)) */
void sn_fn_weighted_xent(sn_fn_call *c) {
    sn_value labels, x;
    sn_fn_pair(c, 0, 1, &labels, &x);
    const double w = sn_fn_real(c, "pos_weight");
    const sn_value size = sn_build_neg(c->b, sn_build_abs(c->b, x));
    const sn_value tail = sn_build_add(c->b, sn_build_softplus(c->b, size),
                                       sn_build_relu(c->b, sn_build_neg(c->b, x)));
    const sn_value scale = sn_build_affine(c->b, labels, w - 1, 1);
    c->out[0] = sn_build_add(c->b, sn_build_mul(c->b, sn_build_affine(c->b, labels, -1, 1), x),
                             sn_build_mul(c->b, scale, tail));
}

/* A loss of nn/loss.c per example, of (target, output, from_logits, axis). */
static void loss_terms(sn_fn_call *c, const char *name) {
    sn_loss l;
    char text[80];
    snprintf(text, sizeof text, "%s:from_logits=%d", name, sn_fn_flag(c, "from_logits") ? 1 : 0);
    sn_value output = sn_fn_float(c, 1), target = sn_fn_value(c, 0);
    const int rank = sn_fn_type(c, output).rank;
    const int axis = rank > 0 ? sn_fn_axis(c, "axis", rank, -1) : 0;
    if (!sn_fn_failed(c) && rank > 0) {
        output = axis_last(c, output, axis);
        target = sn_fn_type(c, target).rank == rank ? axis_last(c, target, axis) : target;
    }
    if (sn_fn_failed(c) || sn_loss_parse(text, &l, &c->b->error) != SNUG_OK)
        return;
    const snug_type t = sn_fn_type(c, output), tt = sn_fn_type(c, target);
    if (!sn_value_ok(output) || !sn_value_ok(target) || t.rank == 0)
        return sn_fn_refuse(c, SNUG_E_SHAPE, "target and output must have an axis");
    if (!l.sparse)
        target = sn_build_cast(c->b, target, t.dtype);
    else if (tt.rank == t.rank && tt.rank > 0 && tt.dims[tt.rank - 1] == 1)
        target = sn_build_squeeze(c->b, target, -1);
    const bool index = tt.dtype == SNUG_I32 || tt.dtype == SNUG_I64;
    if (l.sparse && !index)
        target = sn_build_cast(c->b, target, SNUG_I32);
    c->out[0] = sn_loss_terms(c->b, &l, target, output);
}

void sn_fn_categorical_xent(sn_fn_call *c) {
    loss_terms(c, "categorical_crossentropy");
}

void sn_fn_sparse_categorical_xent(sn_fn_call *c) {
    loss_terms(c, "sparse_categorical_crossentropy");
}

void sn_fn_binary_xent(sn_fn_call *c) {
    loss_terms(c, "binary_crossentropy");
}

void sn_fn_l2_loss(sn_fn_call *c) {
    const sn_value squares = sn_build_square(c->b, sn_fn_value(c, 0));
    const sn_value sum =
        sn_fn_type(c, squares).rank ? sn_build_sum(c->b, squares, 0, false) : squares;
    c->out[0] = sn_build_affine(c->b, sum, 0.5, 0);
}

void sn_fn_log_poisson_loss(sn_fn_call *c) {
    sn_value target, x;
    sn_fn_pair(c, 0, 1, &target, &x);
    sn_value y = sn_build_sub(c->b, sn_build_exp(c->b, x), sn_build_mul(c->b, x, target));
    if (sn_fn_flag(c, "compute_full_loss")) { /* Stirling's formula, above 1 */
        const sn_value log_target = sn_build_log(c->b, target);
        const sn_value more =
            sn_build_add(c->b, sn_build_sub(c->b, sn_build_mul(c->b, target, log_target), target),
                         sn_build_affine(c->b, log_target, 0.5, 0.5 * log(2 * acos(-1))));
        const sn_value zero = sn_fn_like(c, target, 0), one = sn_fn_like(c, target, 1);
        const sn_value small =
            sn_build_logical_and(c->b, sn_build_greater_equal(c->b, target, zero),
                                 sn_build_less_equal(c->b, target, one));
        y = sn_build_add(c->b, y, sn_build_select(c->b, small, zero, more));
    }
    c->out[0] = y;
}

/* The sum of the losses over how many examples there are in all. */
void sn_fn_average_loss(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const sn_value weight = sn_fn_named_as(c, "sample_weight", t.dtype);
    const sn_value each = sn_value_ok(weight) ? sn_build_mul(c->b, x, weight) : x;
    const double n = sn_fn_given(c, "global_batch_size") ? sn_fn_real(c, "global_batch_size")
                     : t.rank                            ? (double)t.dims[0]
                                                         : 1;
    const sn_value sum = t.rank ? sn_build_sum(c->b, each, 0, false) : each;
    c->out[0] = sn_build_div(c->b, sum, sn_fn_like(c, sum, n));
}

void sn_fn_crelu(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const sn_value both[2] = {x, sn_build_neg(c->b, x)};
    const int axis = sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, -1);
    c->out[0] = sn_build_relu(c->b, sn_build_concat(c->b, both, 2, axis));
}

void sn_fn_zero_fraction(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const sn_value is = sn_build_equal(c->b, x, sn_fn_like(c, x, 0));
    c->out[0] = sn_build_mean(c->b, sn_build_cast(c->b, is, SNUG_F32), 0, false);
}

/* --- windows ---------------------------------------------------------------------------------- */
/* The functions of nn/spatial.h serve layers: what they see of one. */
typedef struct {
    sn_layer layer;
    sn_layer_call call;
    int64_t kernel[SN_SPATIAL_AXES], strides[SN_SPATIAL_AXES], dilation[SN_SPATIAL_AXES];
    sn_spatial_conf conf;
    bool channels_first;
} window;

static const sn_layer_class function_class = {.class_name = "function"};

/* Entries of a setting for n spatial axes: one, n, or with those of batch and channels around. */
static bool spread_axes(sn_fn_call *c, const char *key, int n, bool channels_first, int64_t *out) {
    int m;
    const int64_t *v = sn_fn_ints(c, key, &m);
    const int from = m == n + 2 ? (channels_first ? 2 : 1) : 0;
    if (v && m != 1 && m != n && m != n + 2)
        sn_fn_refuse(c, SNUG_E_INVALID, "%s has %d entries for %d axes", key, m, n);
    for (int k = 0; k < n; k++)
        out[k] = !v ? 1 : m == 1 ? v[0] : v[from + k];
    return !sn_fn_failed(c);
}

/* x [N, axes..., C] under the window; NCHW is turned. */
static bool enter_window(sn_fn_call *c, window *w, sn_value x, int n) {
    const int rank = sn_fn_type(c, x).rank;
    const char *const format = sn_fn_text(c, "data_format");
    int perm[SNUG_MAX_RANK];
    memset(w, 0, sizeof *w);
    w->channels_first =
        (format[0] == 'N' && format[1] == 'C') || strncmp(format, "channels_f", 10) == 0;
    w->layer = (sn_layer){.cls = &function_class, .name = "function"};
    w->call = (sn_layer_call){.b = c->b, .layer = &w->layer, .n_in = 1};
    snprintf(w->call.path, sizeof w->call.path, "%.*s", (int)strcspn(c->names, " "), c->names);
    if (sn_fn_failed(c))
        return false;
    if (rank != n + 2) {
        sn_fn_refuse(c, SNUG_E_SHAPE, "the input has %d axes; it must have %d", rank, n + 2);
        return false;
    }
    for (int k = 0; k < rank; k++)
        perm[k] = k == 0 ? 0 : k == rank - 1 ? 1 : k + 1;
    w->call.in[0] = w->channels_first ? sn_build_transpose(c->b, x, perm) : x;
    w->conf = (sn_spatial_conf){.n = n, .kernel = w->kernel, .strides = w->strides};
    w->conf.padding = sn_fn_says(c, "padding", "same")     ? "same"
                      : sn_fn_says(c, "padding", "causal") ? "causal"
                                                           : "valid";
    w->conf.may_be_causal = n == 1;
    if (sn_fn_text(c, "padding")[0] && w->conf.padding[0] == 'v' &&
        !sn_fn_says(c, "padding", "valid"))
        sn_fn_refuse(c, SNUG_E_INVALID, "padding must be SAME or VALID");
    return !sn_fn_failed(c);
}

static void leave_window(sn_fn_call *c, const window *w, sn_value y) {
    const int rank = sn_fn_type(c, y).rank;
    int perm[SNUG_MAX_RANK];
    for (int k = 0; k < rank; k++)
        perm[k] = k == 0 ? 0 : k == 1 ? rank - 1 : k - 1;
    c->out[0] = w->channels_first && !sn_fn_failed(c) ? sn_build_transpose(c->b, y, perm) : y;
}

static const char *stride_key(const sn_fn_call *c) {
    return sn_fn_place(c, "stride") >= 0 ? "stride" : "strides";
}

static const char *dilation_key(const sn_fn_call *c) {
    return sn_fn_place(c, "dilations") >= 0 ? "dilations"
           : sn_fn_place(c, "rate") >= 0    ? "rate"
                                            : "dilation_rate";
}

/* x with the borders that a list of paddings says; the window's own are none then. */
static sn_value with_borders(sn_fn_call *c, sn_value x) {
    const snug_type t = sn_fn_type(c, x);
    int64_t before[SNUG_MAX_RANK], after[SNUG_MAX_RANK];
    int n;
    if (sn_fn_argument(c, "padding")->kind != SNUG_ARG_LIST)
        return x;
    const int64_t *widths = sn_fn_ints(c, "padding", &n);
    if (n != 2 * t.rank) {
        sn_fn_refuse(c, SNUG_E_INVALID, "padding needs two widths for each of %d axes", t.rank);
        return SN_NO_VALUE;
    }
    for (int k = 0; k < t.rank; k++) {
        before[k] = widths[2 * k];
        after[k] = widths[2 * k + 1];
    }
    return sn_build_pad(c->b, x, before, after, 0);
}

/* Kernel extents are the first n of the filters'. */
static bool enter_convolution(sn_fn_call *c, window *w, sn_value x, sn_value filters) {
    const snug_type t = sn_fn_type(c, filters);
    x = with_borders(c, x);
    const int n = sn_fn_type(c, x).rank - 2;
    if (n < 1 || n > SN_SPATIAL_AXES || t.rank != n + 2) {
        sn_fn_refuse(c, SNUG_E_SHAPE, "filters with %d axes for an input with %d", t.rank, n + 2);
        return false;
    }
    if (!enter_window(c, w, x, n))
        return false;
    memcpy(w->kernel, t.dims, (size_t)n * sizeof *w->kernel);
    w->conf.dilation = w->dilation;
    return spread_axes(c, stride_key(c), n, w->channels_first, w->strides) &&
           spread_axes(c, dilation_key(c), n, w->channels_first, w->dilation);
}

/* One and two axes by the operator itself, in groups where filters see fewer channels. */
static sn_value convolve(window *w, sn_value filters, int64_t groups) {
    sn_layer_call *const l = &w->call;
    sn_spatial s;
    if (!sn_spatial_read(l, &w->conf, &s))
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(l->b->graph, filters);
    const int64_t pictures[4] = {s.kernel[1], s.kernel[2], t.dims[t.rank - 2], t.dims[t.rank - 1]};
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d, &a);
    memcpy(a.conv.stride, s.stride + 1, sizeof a.conv.stride);
    memcpy(a.conv.dilation, s.dilation + 1, sizeof a.conv.dilation);
    memcpy(a.conv.pad, s.pad + 2, sizeof a.conv.pad);
    a.conv.groups = groups;
    const sn_value in[2] = {sn_spatial_pictures(l, &s, l->in[0]),
                            t.rank == 4 ? filters : sn_build_reshape(l->b, filters, pictures, 4)};
    return sn_spatial_volumes(l, &s, sn_build(l->b, SN_OP_conv2d, &a, in, 2), 1);
}

void sn_fn_conv(sn_fn_call *c) {
    sn_value x, filters;
    window w;
    sn_fn_pair(c, 0, 1, &x, &filters);
    if (sn_fn_failed(c) || !enter_convolution(c, &w, x, filters))
        return;
    const snug_type t = sn_fn_type(c, w.call.in[0]), f = sn_fn_type(c, filters);
    const int64_t channels = t.dims[t.rank - 1], each = f.dims[f.rank - 2];
    if (each < 1 || channels % each)
        return sn_fn_refuse(c, SNUG_E_SHAPE, "filters of %lld channels for an input of %lld",
                            (long long)each, (long long)channels);
    if (w.conf.n == 3 && each == channels)
        leave_window(c, &w,
                     sn_spatial_convolve(&w.call, &w.conf, w.call.in[0], filters, SN_NO_VALUE));
    else if (w.conf.n < 3)
        leave_window(c, &w, convolve(&w, filters, channels / each));
    else
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "groups over three axes");
}

/* Filters [kernel..., channels, multiplier]: a group for each channel. */
static sn_value depthwise(sn_fn_call *c, window *w, sn_value filters) {
    if (sn_fn_failed(c))
        return SN_NO_VALUE;
    snug_type f = sn_fn_type(c, filters);
    const int last = f.rank - 1;
    const int64_t channels = f.dims[last - 1];
    f.dims[last] *= channels;
    f.dims[last - 1] = 1;
    return convolve(w, sn_build_reshape(c->b, filters, f.dims, f.rank), channels);
}

void sn_fn_depthwise_conv(sn_fn_call *c) {
    sn_value x, filters;
    window w;
    sn_fn_pair(c, 0, 1, &x, &filters);
    if (sn_fn_failed(c) || !enter_convolution(c, &w, x, filters))
        return;
    if (w.conf.n > 2)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "over three axes");
    leave_window(c, &w, depthwise(c, &w, filters));
}

void sn_fn_separable_conv(sn_fn_call *c) {
    sn_value x, filters;
    window w;
    sn_fn_pair(c, 0, 1, &x, &filters);
    if (sn_fn_failed(c) || !enter_convolution(c, &w, x, filters))
        return;
    const sn_value points = sn_fn_value(c, 2), y = depthwise(c, &w, filters);
    const snug_type t = sn_fn_type(c, points), ty = sn_fn_type(c, y);
    const int64_t matrix[2] = {-1, t.rank ? t.dims[t.rank - 1] : 1},
                  flat[2] = {-1, ty.rank ? ty.dims[ty.rank - 1] : 1};
    snug_type out = ty;
    out.dims[out.rank ? out.rank - 1 : 0] = matrix[1];
    const sn_value rows = sn_build_matmul(c->b, sn_build_reshape(c->b, y, flat, 2),
                                          sn_build_reshape(c->b, points, matrix, 2), SN_NO_VALUE);
    leave_window(c, &w, sn_build_reshape(c->b, rows, out.dims, out.rank));
}

/* Extents of a transposed convolution's output, over which its window is: as given, or as padding
 * and strides say. */
static bool transposed_size(sn_fn_call *c, const window *w, sn_spatial *s) {
    const snug_type t = sn_fn_type(c, w->call.in[0]);
    const int skip = SN_SPATIAL_AXES - w->conf.n, first = w->channels_first ? 2 : 1;
    snug_type out = {.rank = 0};
    if (sn_fn_given(c, "output_shape") && !sn_fn_shape(c, "output_shape", &out))
        return false;
    if (out.rank && out.rank != t.rank)
        sn_fn_refuse(c, SNUG_E_SHAPE, "output_shape must have %d entries", t.rank);
    for (int k = 0; k < SN_SPATIAL_AXES; k++) {
        const int64_t n = k < skip ? 1 : t.dims[1 + k - skip], reach = sn_spatial_reach(s, k);
        const int64_t over = reach > s->stride[k] ? reach - s->stride[k] : 0;
        s->size[k] = k < skip   ? 1
                     : out.rank ? out.dims[first + k - skip]
                                : n * s->stride[k] + (w->conf.padding[0] == 's' ? 0 : over);
    }
    return !sn_fn_failed(c);
}

/* Filters [kernel..., out, in], over one or two axes. */
void sn_fn_conv_transpose(sn_fn_call *c) {
    sn_value x, filters;
    window w;
    sn_spatial s;
    sn_fn_pair(c, 0, 1, &x, &filters);
    if (sn_fn_failed(c) || !enter_convolution(c, &w, x, filters))
        return;
    const snug_type f = sn_fn_type(c, filters);
    if (w.conf.n > 2 || sn_fn_given(c, "output_padding"))
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "three axes, or output_padding");
    if (!sn_spatial_settings(&w.call, &w.conf, &s) || !transposed_size(c, &w, &s) ||
        !sn_spatial_padding(&w.call, &w.conf, &s))
        return;
    const int64_t pictures[4] = {s.kernel[1], s.kernel[2], f.dims[f.rank - 2], f.dims[f.rank - 1]};
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d_dx, &a);
    memcpy(a.conv_dx.stride, s.stride + 1, sizeof a.conv_dx.stride);
    memcpy(a.conv_dx.dilation, s.dilation + 1, sizeof a.conv_dx.dilation);
    memcpy(a.conv_dx.pad, s.pad + 2, sizeof a.conv_dx.pad);
    memcpy(a.conv_dx.input, s.size + 1, sizeof a.conv_dx.input);
    a.conv_dx.groups = 1;
    const sn_value in[2] = {sn_spatial_pictures(&w.call, &s, w.call.in[0]),
                            f.rank == 4 ? filters : sn_build_reshape(c->b, filters, pictures, 4)};
    leave_window(c, &w,
                 sn_spatial_volumes(&w.call, &s, sn_build(c->b, SN_OP_conv2d_dx, &a, in, 2), 1));
}

static void pool(sn_fn_call *c, sn_op op) {
    const sn_value x = sn_fn_float(c, 0);
    const int n = sn_fn_type(c, x).rank - 2;
    const bool by_shape = sn_fn_place(c, "window_shape") >= 0;
    const char *const size = by_shape                       ? "window_shape"
                             : sn_fn_place(c, "ksize") >= 0 ? "ksize"
                                                            : "pool_size";
    window w;
    if (n < 1 || n > SN_SPATIAL_AXES)
        return sn_fn_refuse(c, SNUG_E_SHAPE, "the input has %d axes; from 3 to 5 are possible",
                            n + 2);
    if (!enter_window(c, &w, x, n) || !spread_axes(c, size, n, w.channels_first, w.kernel))
        return;
    int n_dilations = 0;
    const int64_t *const dilations = sn_fn_ints(c, "dilations", &n_dilations);
    for (int k = 0; dilations && k < n_dilations; k++)
        if (dilations[k] != 1)
            return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "windows with dilations");
    if (by_shape && !sn_fn_given(c, "strides"))
        for (int k = 0; k < n; k++)
            w.strides[k] = 1;
    else if (!spread_axes(c, sn_fn_given(c, "strides") ? "strides" : size, n, w.channels_first,
                          w.strides))
        return;
    sn_spatial_pool(&w.call, op, &w.conf);
    leave_window(c, &w, w.call.out);
}

void sn_fn_pool(sn_fn_call *c) {
    pool(c, sn_fn_says(c, "pooling_type", "max") ? SN_OP_maxpool : SN_OP_avgpool);
}

void sn_fn_max_pool(sn_fn_call *c) {
    pool(c, SN_OP_maxpool);
}

void sn_fn_avg_pool(sn_fn_call *c) {
    pool(c, SN_OP_avgpool);
}

/* --- normalisation ---------------------------------------------------------------------------- */
void sn_fn_bias_add(sn_fn_call *c) {
    sn_value x, bias;
    const char *const format = sn_fn_text(c, "data_format");
    sn_fn_pair(c, 0, 1, &x, &bias);
    const int rank = sn_fn_type(c, x).rank;
    if (format[0] == 'N' && format[1] == 'C' && rank > 2) {
        int64_t dims[SNUG_MAX_RANK] = {-1, 1, 1, 1, 1, 1, 1, 1};
        bias = sn_build_reshape(c->b, bias, dims, rank - 1);
    }
    c->out[0] = sn_build_add(c->b, x, bias);
}

/* A vector along one axis of x, or as it is where it has x's axes. */
static sn_value along_axis(sn_fn_call *c, sn_value v, int rank, int axis) {
    int64_t dims[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (!sn_value_ok(v) || axis == rank - 1 || sn_fn_type(c, v).rank != 1)
        return v;
    dims[axis] = -1;
    return sn_build_reshape(c->b, v, dims, rank);
}

/* (x - mean) / sqrt(variance + epsilon) * scale + offset */
void sn_fn_batch_normalization(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_given(c, "axis") ? sn_fn_axis(c, "axis", t.rank, -1) : t.rank - 1;
    const char *const key =
        sn_fn_place(c, "variance_epsilon") >= 0 ? "variance_epsilon" : "epsilon";
    const sn_value mean = along_axis(c, sn_fn_named_as(c, "mean", t.dtype), t.rank, axis),
                   variance = along_axis(c, sn_fn_named_as(c, "variance", t.dtype), t.rank, axis),
                   scale = along_axis(c, sn_fn_named_as(c, "scale", t.dtype), t.rank, axis),
                   offset = along_axis(c, sn_fn_named_as(c, "offset", t.dtype), t.rank, axis);
    sn_value by = sn_build_rsqrt(c->b, sn_build_affine(c->b, variance, 1, sn_fn_real(c, key)));
    by = sn_value_ok(scale) ? sn_build_mul(c->b, by, scale) : by;
    const sn_value y = sn_build_mul(c->b, sn_build_sub(c->b, x, mean), by);
    c->out[0] = sn_value_ok(offset) ? sn_build_add(c->b, y, offset) : y;
}

static void normalised(sn_fn_call *c, bool centred) {
    sn_value x = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const uint32_t axes =
        sn_fn_given(c, "axis") ? sn_fn_axes(c, "axis", t.rank) : 1u << (t.rank ? t.rank - 1 : 0);
    if (centred)
        x = sn_build_sub(c->b, x, sn_build_mean(c->b, x, axes, true));
    const sn_value square = sn_build_mean(c->b, sn_build_square(c->b, x), axes, true),
                   by = sn_build_rsqrt(c->b,
                                       sn_build_affine(c->b, square, 1, sn_fn_real(c, "epsilon")));
    const sn_value gamma =
                       sn_fn_named_as(c, sn_fn_place(c, "gamma") >= 0 ? "gamma" : "scale", t.dtype),
                   beta = sn_fn_named_as(c, "beta", t.dtype);
    sn_value y = sn_build_mul(c->b, x, by);
    y = sn_value_ok(gamma) ? sn_build_mul(c->b, y, gamma) : y;
    c->out[0] = sn_value_ok(beta) ? sn_build_add(c->b, y, beta) : y;
}

void sn_fn_layer_normalization(sn_fn_call *c) {
    normalised(c, true);
}

void sn_fn_rms_normalization(sn_fn_call *c) {
    normalised(c, false);
}

/* x / (bias + alpha * the sum of squares of channels within the radius)^beta */
void sn_fn_local_response(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    int64_t radius = sn_fn_int(c, "depth_radius");
    if (t.rank != 4 || radius < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs pictures and a radius");
    radius = radius < t.dims[3] ? radius : t.dims[3]; /* there are no channels beyond */
    const int64_t n = t.dims[3], border[4] = {0, 0, 0, radius};
    const sn_value squares = sn_build_pad(c->b, sn_build_square(c->b, x), border, border, 0);
    sn_value sum = SN_NO_VALUE;
    for (int64_t k = 0; k <= 2 * radius && !sn_fn_failed(c); k++) {
        const sn_value part = sn_build_part(c->b, squares, 3, k, n);
        sum = k ? sn_build_add(c->b, sum, part) : part;
    }
    const sn_value base = sn_build_affine(c->b, sum, sn_fn_real(c, "alpha"), sn_fn_real(c, "bias"));
    c->out[0] = sn_build_div(c->b, x,
                             sn_build_value_op(c->b, SN_OP_power, &base, 1, sn_fn_real(c, "beta")));
}

void sn_fn_normalize_moments(sn_fn_call *c) {
    const sn_value counts = sn_fn_value(c, 0);
    const snug_dtype dtype = sn_fn_type(c, counts).dtype;
    const sn_value shift = sn_fn_named_as(c, "shift", dtype),
                   mean = sn_build_div(c->b, sn_fn_value(c, 1), counts),
                   square = sn_build_div(c->b, sn_fn_value(c, 2), counts);
    c->out[0] = sn_value_ok(shift) ? sn_build_add(c->b, mean, shift) : mean;
    c->out[1] = sn_build_sub(c->b, square, sn_build_square(c->b, mean));
    c->n_out = 2;
}

void sn_fn_weighted_moments(sn_fn_call *c) {
    sn_value x, w;
    sn_fn_pair(c, 0, 2, &x, &w);
    const snug_type t = sn_fn_type(c, x);
    const uint32_t axes = sn_fn_axes(c, "axes", t.rank);
    const bool keepdims = sn_fn_flag(c, "keepdims");
    if (sn_fn_failed(c))
        return;
    const sn_value wide = sn_build_broadcast_to(c->b, w, &t),
                   sum = sn_build_sum(c->b, wide, axes, true);
    const sn_value mean =
        sn_build_div(c->b, sn_build_sum(c->b, sn_build_mul(c->b, x, wide), axes, true), sum);
    const sn_value off = sn_build_square(c->b, sn_build_sub(c->b, x, mean));
    const sn_value spread =
        sn_build_div(c->b, sn_build_sum(c->b, sn_build_mul(c->b, off, wide), axes, true), sum);
    c->out[0] = keepdims ? mean : sn_build_sum(c->b, mean, axes, false); /* over extents of 1 */
    c->out[1] = keepdims ? spread : sn_build_sum(c->b, spread, axes, false);
    c->n_out = 2;
}

void sn_fn_sufficient_statistics(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const uint32_t axes = sn_fn_axes(c, "axes", t.rank);
    const bool keepdims = sn_fn_flag(c, "keepdims");
    double n = 1;
    for (int k = 0; k < t.rank; k++)
        n *= !axes || (axes >> k & 1) ? (double)t.dims[k] : 1;
    if (sn_fn_failed(c))
        return;
    c->out[0] = sn_fn_like(c, x, n);
    c->out[1] = sn_build_sum(c->b, x, axes, keepdims);
    c->out[2] = sn_build_sum(c->b, sn_build_square(c->b, x), axes, keepdims);
    c->n_out = 3;
}

/* Rows, from axis `first` on, of a length of at most max_norm; those of a vector are numbers. */
static sn_value shorten_rows(sn_fn_call *c, sn_value x, int first) {
    const sn_value most = sn_fn_like(c, x, sn_fn_real(c, "max_norm"));
    const sn_value squares = sn_build_square(c->b, x);
    uint32_t axes = 0;
    for (int k = first; k < sn_fn_type(c, x).rank; k++)
        axes |= 1u << k;
    return sn_fn_shortened(c, x, axes ? sn_build_sum(c->b, squares, axes, true) : squares, most);
}

void sn_fn_embedding_lookup(sn_fn_call *c) {
    const sn_value table = sn_fn_value(c, 0), at = sn_fn_value(c, 1);
    const sn_value in[2] = {table, at};
    const sn_value rows = sn_build(c->b, SN_OP_gather, NULL, in, 2);
    c->out[0] = sn_fn_given(c, "max_norm") ? shorten_rows(c, rows, sn_fn_type(c, at).rank) : rows;
}
