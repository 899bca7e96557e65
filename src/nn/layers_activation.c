/* layers_activation.c: activations as layers: Activation, and those with settings of their own. */
#include "nn/activation.h"
#include "nn/keras_number.h"
#include "nn/layer_call.h"

#include <math.h>

static snug_type input_type(const sn_layer_call *c) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, c->in[0])
                                       : (snug_type){.rank = 0};
}

void sn_layer_build_activation(sn_layer_call *c) {
    const sn_conf_activation *conf = c->conf;
    c->out = sn_activation(c->b, conf->activation.text, c->in[0]);
}

void sn_layer_build_re_lu(sn_layer_call *c) {
    const sn_conf_re_lu *conf = c->conf;
    if (conf->negative_slope < 0 || conf->threshold < 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "negative_slope=%g and threshold=%g must be 0 or more",
                        conf->negative_slope, conf->threshold);
        return;
    }
    if (conf->max_value < 0 && conf->max_value != SN_UNSET) {
        sn_layer_refuse(c, SNUG_E_INVALID, "max_value=%g must be 0 or more", conf->max_value);
        return;
    }
    c->out = sn_relu_with(c->b, c->in[0], conf->negative_slope, conf->max_value, conf->threshold);
}

void sn_layer_build_leaky_re_lu(sn_layer_call *c) {
    const sn_conf_leaky_re_lu *conf = c->conf;
    const double slope = conf->alpha != SN_UNSET ? conf->alpha : conf->negative_slope;
    if (slope < 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "negative_slope=%g must be 0 or more", slope);
        return;
    }
    c->out = sn_build_value_op(c->b, SN_OP_leaky_relu, c->in, 1, sn_keras_number(slope));
}

void sn_layer_build_thresholded_re_lu(sn_layer_call *c) {
    const sn_conf_thresholded_re_lu *conf = c->conf;
    if (conf->theta < 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "theta=%g must be 0 or more", conf->theta);
        return;
    }
    c->out = sn_relu_with(c->b, c->in[0], 0, -1, conf->theta);
}

void sn_layer_build_elu(sn_layer_call *c) {
    const sn_conf_elu *conf = c->conf;
    c->out = sn_build_value_op(c->b, SN_OP_elu, c->in, 1, conf->alpha);
}

/* relu(x) - alpha relu(-x), alpha of the shape of an example but 1 along shared axes. */
void sn_layer_build_p_re_lu(sn_layer_call *c) {
    const sn_conf_p_re_lu *conf = c->conf;
    const snug_type t = input_type(c);
    snug_type alpha_type = {.rank = t.rank > 0 ? t.rank - 1 : 0};
    for (int k = 1; k < t.rank; k++)
        alpha_type.dims[k - 1] = t.dims[k];
    for (int i = 0; i < 7 && conf->shared_axes[i] != 0; i++) {
        const int64_t axis = conf->shared_axes[i];
        if (axis < 1 || axis >= t.rank) {
            sn_layer_refuse(c, SNUG_E_INVALID, "shared_axes has %lld; axes are 1 to %d",
                            (long long)axis, t.rank - 1);
            return;
        }
        alpha_type.dims[axis - 1] = 1;
    }
    const sn_value alpha =
        sn_layer_variable(c, "alpha", &alpha_type, &conf->alpha_initializer, true);
    const sn_value below = sn_build_relu(c->b, sn_build_neg(c->b, c->in[0]));
    c->out = sn_build_sub(c->b, sn_build_relu(c->b, c->in[0]), sn_build_mul(c->b, alpha, below));
}

/* --- Softmax ---------------------------------------------------------------------------------- */

/* The axes as a bit set; 0 after a refusal. */
static uint32_t softmax_axes(sn_layer_call *c, int rank) {
    const sn_conf_softmax *conf = c->conf;
    uint32_t set = 0;
    for (int i = 0; i < SNUG_MAX_RANK && conf->axis[i] != SN_NO_AXIS; i++) {
        const int64_t axis = conf->axis[i] < 0 ? conf->axis[i] + rank : conf->axis[i];
        if (axis < 0 || axis >= rank) {
            sn_layer_refuse(c, SNUG_E_INVALID, "axis %lld of an input with %d axes",
                            (long long)conf->axis[i], rank);
            return 0;
        }
        set |= 1u << axis;
    }
    return set == 0 && rank > 0 ? 1u << (rank - 1) : set;
}

static sn_value softmax_over(sn_layer_call *c, sn_value x, uint32_t axes, int rank) {
    const int axis = __builtin_ctz(axes);
    if (axes != 1u << axis)
        return sn_build_exp(c->b, sn_build_sub(c->b, x, sn_build_logsumexp(c->b, x, axes, true)));
    if (axis == rank - 1)
        return sn_build_softmax(c->b, x);
    const sn_value rows = sn_build_softmax(c->b, sn_build_swapaxes(c->b, x, axis, -1));
    return sn_build_swapaxes(c->b, rows, axis, -1);
}

/* What is masked has no part in the sums, and gives 0. */
void sn_layer_build_softmax(sn_layer_call *c) {
    const snug_type t = input_type(c);
    const uint32_t axes = softmax_axes(c, t.rank);
    if (axes == 0)
        return;
    if (!sn_value_ok(c->mask[0])) {
        c->out = softmax_over(c, c->in[0], axes, t.rank);
        return;
    }
    const sn_value low = sn_build_scalar(c->b, t.dtype, sn_layer_hidden(t.dtype, -3e4));
    const sn_value x = sn_build_select(c->b, c->mask[0], c->in[0], low);
    const sn_value y = softmax_over(c, x, axes, t.rank);
    c->out = sn_build_select(c->b, c->mask[0], y, sn_build_scalar(c->b, t.dtype, 0));
}
