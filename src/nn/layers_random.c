/* layers_random.c: layers that act in training only: dropouts, noise, and the one that adds to the
 * loss. Keys are parameters drawn anew in each step; element i of a mask is a function of the key
 * and of i, so no mask is stored for the backward pass and a part of a batch has the bits of the
 * whole. */
#include "nn/keras_number.h"
#include "nn/layer_call.h"

#include "base/rng.h"

#include <math.h>

/* What alpha dropout sets dropped elements to: SELU's limit for large negative numbers. */
#define SELU_FLOOR (-1.6732632423543772848170429916717 * 1.0507009873554804934193349852946)

/* Whether there is something to do: training, and a rate above 0. A wrong rate is refused. */
static bool is_active(sn_layer_call *c, double rate, bool below_one) {
    c->out = c->in[0];
    if (!(rate >= 0 && rate <= 1) || (below_one && rate == 1)) {
        sn_layer_refuse(c, SNUG_E_INVALID, "rate=%g must be between 0 and 1", rate);
        return false;
    }
    return c->training && rate > 0 && c->b->error.code == SNUG_OK;
}

static snug_type input_type(const sn_layer_call *c) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, c->in[0])
                                       : (snug_type){.dtype = SNUG_F32};
}

static sn_value dropped(sn_layer_call *c, sn_value x, double rate) {
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.rate = (int64_t)sn_build_param(c->b, "", rate).i;
    a.dropout.key = sn_layer_key(c);
    return sn_build(c->b, SN_OP_dropout, &a, &x, 1);
}

/* The input times a mask of 0 and 1 / (1 - rate), which is the same along axes where `shape` is
 * 1. */
static void drop_together(sn_layer_call *c, const snug_type *shape, double rate) {
    c->out = sn_build_mul(c->b, c->in[0], dropped(c, sn_build_fill(c->b, shape, 1), rate));
}

/* Keras' noise_shape: -1 (null) is the input's extent; -2 ends it. False: none was given, or it
 * does not fit, which is refused. */
static bool noise_type(sn_layer_call *c, const int64_t *noise_shape, snug_type *out) {
    snug_type t = input_type(c);
    if (noise_shape[0] == -2)
        return false;
    for (int i = 0; i < t.rank; i++) {
        const int64_t n = i == 0 && noise_shape[0] != 1 ? -1 : noise_shape[i];
        if (n != -1 && n != 1 && n != t.dims[i]) {
            sn_layer_refuse(c, SNUG_E_SHAPE,
                            "noise_shape has %lld at axis %d, the input %lld; it may be 1 or null",
                            (long long)n, i, (long long)t.dims[i]);
            return false;
        }
        t.dims[i] = n == -1 ? t.dims[i] : n;
    }
    *out = t;
    return true;
}

void sn_layer_build_dropout(sn_layer_call *c) {
    const sn_conf_dropout *conf = c->conf;
    snug_type noise;
    const bool together = noise_type(c, conf->noise_shape, &noise);
    if (!is_active(c, conf->rate, false))
        return;
    if (together)
        drop_together(c, &noise, conf->rate);
    else
        c->out = dropped(c, c->in[0], conf->rate);
}

/* --- whole channels, whole examples ----------------------------------------------------------- */
static void drop_channels(sn_layer_call *c, double rate, int rank) {
    if (c->b->error.code == SNUG_OK && input_type(c).rank != rank) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input has %d axes; it must have %d",
                        input_type(c).rank, rank);
        return;
    }
    if (!is_active(c, rate, false))
        return;
    snug_type t = input_type(c);
    for (int i = 1; i < t.rank - 1; i++)
        t.dims[i] = 1;
    drop_together(c, &t, rate);
}

void sn_layer_build_spatial_dropout1d(sn_layer_call *c) {
    drop_channels(c, ((const sn_conf_spatial_dropout1d *)c->conf)->rate, 3);
}
void sn_layer_build_spatial_dropout2d(sn_layer_call *c) {
    drop_channels(c, ((const sn_conf_spatial_dropout2d *)c->conf)->rate, 4);
}
void sn_layer_build_spatial_dropout3d(sn_layer_call *c) {
    drop_channels(c, ((const sn_conf_spatial_dropout3d *)c->conf)->rate, 5);
}

/* As keras.applications has it: drops a block's branch for whole examples. */
void sn_layer_build_stochastic_depth(sn_layer_call *c) {
    const sn_conf_stochastic_depth *conf = c->conf;
    if (!is_active(c, conf->drop_path_rate, true))
        return;
    snug_type t = input_type(c);
    for (int i = 1; i < t.rank; i++)
        t.dims[i] = 1;
    drop_together(c, &t, conf->drop_path_rate);
}

/* --- noise ------------------------------------------------------------------------------------ */
static sn_value normals(sn_layer_call *c, double mean, double deviation) {
    const snug_type t = input_type(c);
    sn_attrs a;
    sn_attrs_default(SN_OP_random, &a);
    a.random.dims.n = t.rank;
    for (int i = 0; i < t.rank; i++)
        a.random.dims.v[i] = t.dims[i];
    a.random.dtype = sn_dtype_computed(t.dtype);
    a.random.kind = SN_RANDOM_NORMAL;
    a.random.key = sn_layer_key(c);
    a.random.low = (int64_t)sn_build_param(c->b, "", mean).i;
    a.random.high = (int64_t)sn_build_param(c->b, "", deviation).i;
    return sn_build_cast(c->b, sn_build(c->b, SN_OP_random, &a, NULL, 0), t.dtype);
}

void sn_layer_build_gaussian_noise(sn_layer_call *c) {
    const sn_conf_gaussian_noise *conf = c->conf;
    c->out = c->in[0];
    if (!(conf->stddev >= 0 && isfinite(conf->stddev)))
        sn_layer_refuse(c, SNUG_E_INVALID, "stddev=%g must be a number from 0", conf->stddev);
    else if (c->training && conf->stddev > 0 && c->b->error.code == SNUG_OK)
        c->out = sn_build_add(c->b, c->in[0], normals(c, 0, conf->stddev));
}

void sn_layer_build_gaussian_dropout(sn_layer_call *c) {
    const double rate = ((const sn_conf_gaussian_dropout *)c->conf)->rate;
    if (is_active(c, rate, true))
        c->out = sn_build_mul(c->b, c->in[0], normals(c, 1, sqrt(rate / (1 - rate))));
}

/* Dropped elements are set to SELU's floor; then all are scaled and shifted so that a mean of 0 and
 * a variance of 1 stay. */
void sn_layer_build_alpha_dropout(sn_layer_call *c) {
    const sn_conf_alpha_dropout *conf = c->conf;
    const double rate = conf->rate;
    snug_type noise;
    if (!noise_type(c, conf->noise_shape, &noise))
        noise = input_type(c);
    if (!is_active(c, rate, true))
        return;
    const sn_value zero = sn_build_scalar(c->b, noise.dtype, 0);
    const sn_value kept =
        sn_build_greater(c->b, dropped(c, sn_build_fill(c->b, &noise, 1), rate), zero);
    const sn_value floor_value = sn_build_scalar(c->b, noise.dtype, SELU_FLOOR);
    const double a = 1 / sqrt((1 - rate) * (1 + rate * SELU_FLOOR * SELU_FLOOR));
    c->out = sn_build_affine(c->b, sn_build_select(c->b, kept, c->in[0], floor_value), a,
                             -a * SELU_FLOOR * rate);
}

/* --- the loss --------------------------------------------------------------------------------- */
void sn_layer_build_activity_regularization(sn_layer_call *c) {
    const sn_conf_activity_regularization *conf = c->conf;
    sn_builder *const b = c->b;
    c->out = c->in[0];
    if (b->error.code != SNUG_OK)
        return;
    const double batch = (double)input_type(c).dims[0];
    const sn_value size = sn_build_sum(b, sn_build_abs(b, c->out), 0, false);
    const sn_value square = sn_build_sum(b, sn_build_square(b, c->out), 0, false);
    sn_layer_add_loss(
        c, sn_build_add(b, sn_build_affine(b, size, sn_keras_number(conf->l1) / batch, 0),
                        sn_build_affine(b, square, sn_keras_number(conf->l2) / batch, 0)));
}
