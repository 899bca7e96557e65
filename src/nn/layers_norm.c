/* layers_norm.c: batch and layer normalisation over the last axis (channels).
 *
 * Batch normalisation in training is two operators: `moments` (f64 sums over all other axes) and
 * `normalise`; between them mean = s1 / n and variance = s2 / n - mean^2 (biased, as Keras'
 * moments) stand as ordinary f64 operators of [channels], so the gradient flows through them by
 * their own rules. The moving statistics follow the same mean and variance. */
#include "nn/nn.h"

typedef struct {
    sn_value gamma, beta;
} scale_and_shift;

/* What is switched off is a constant 1 or 0. */
static scale_and_shift parameters(sn_layer_call *c, const snug_type *vector, const sn_init *gamma,
                                  const sn_init *beta) {
    snug_type constant = *vector;
    constant.dtype = c->network->compute_dtype;
    scale_and_shift p;
    p.gamma = gamma ? sn_layer_variable(c, "gamma", vector, gamma, true)
                    : sn_build_fill(c->b, &constant, 1);
    p.beta =
        beta ? sn_layer_variable(c, "beta", vector, beta, true) : sn_build_fill(c->b, &constant, 0);
    return p;
}

/* The vector type of the input's channels; rank 0 after an error. */
static snug_type channels(sn_layer_call *c) {
    snug_type none = {.rank = 0};
    if (c->b->error.code != SNUG_OK)
        return none;
    const snug_type *t = sn_graph_type(c->b->graph, c->in[0]);
    if (t->rank >= 2)
        return (snug_type){.dtype = t->dtype, .rank = 1, .dims = {t->dims[t->rank - 1]}};
    sn_layer_refuse(c, SNUG_E_SHAPE, "the input has no axis beside the batch");
    return none;
}

static int64_t epsilon_slot(sn_layer_call *c, double epsilon) {
    return (int64_t)sn_build_param(c->b, "", epsilon).i;
}

/* sum / number of elements of `of` along every axis but the last. */
static sn_value divide_by_rows(sn_builder *b, sn_value sum, sn_value of) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, of)->rank;
    const sn_param_info info = {
        .kind = SN_PARAM_INVERSE_EXTENT, .of = of, .axes = (1u << (rank - 1)) - 1};
    sn_param p;
    if (sn_graph_param(b->graph, &info, &p, &b->error) != SNUG_OK)
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_affine, &a);
    a.affine.scale = (int64_t)p.i;
    a.affine.shift = (int64_t)sn_build_param(b, "", 0).i;
    return sn_build(b, SN_OP_affine, &a, &sum, 1);
}

static void batch_statistics(sn_layer_call *c, sn_value *mean, sn_value *variance) {
    sn_value sums[SN_MAX_OUT];
    sn_build_all(c->b, SN_OP_moments, NULL, c->in, 1, sums);
    const sn_value mean64 = divide_by_rows(c->b, sums[0], c->in[0]);
    const sn_value square64 = divide_by_rows(c->b, sums[1], c->in[0]);
    const sn_value variance64 = sn_build_sub(c->b, square64, sn_build_square(c->b, mean64));
    *mean = sn_build_cast(c->b, mean64, c->network->compute_dtype);
    *variance = sn_build_cast(c->b, variance64, c->network->compute_dtype);
}

void sn_layer_build_batch_normalization(sn_layer_call *c) {
    const sn_conf_batch_normalization *conf = c->conf;
    const snug_type vector = channels(c);
    if (vector.rank == 0)
        return;
    const scale_and_shift p = parameters(c, &vector, conf->scale ? &conf->gamma_initializer : NULL,
                                         conf->center ? &conf->beta_initializer : NULL);
    const int first_moving = c->next_var;
    sn_value mean =
        sn_layer_variable(c, "moving_mean", &vector, &conf->moving_mean_initializer, false);
    sn_value variance =
        sn_layer_variable(c, "moving_variance", &vector, &conf->moving_variance_initializer, false);
    if (c->training && c->layer->trainable) {
        batch_statistics(c, &mean, &variance);
        sn_layer_average(c, first_moving, mean, conf->momentum);
        sn_layer_average(c, first_moving + 1, variance, conf->momentum);
    }
    sn_attrs a;
    sn_attrs_default(SN_OP_normalise, &a);
    a.epsilon.epsilon = epsilon_slot(c, conf->epsilon);
    c->out = sn_build(c->b, SN_OP_normalise, &a,
                      (const sn_value[]){c->in[0], mean, variance, p.gamma, p.beta}, 5);
}

void sn_layer_build_layer_normalization(sn_layer_call *c) {
    const sn_conf_layer_normalization *conf = c->conf;
    const snug_type vector = channels(c);
    if (vector.rank == 0)
        return;
    const scale_and_shift p = parameters(c, &vector, conf->scale ? &conf->gamma_initializer : NULL,
                                         conf->center ? &conf->beta_initializer : NULL);
    sn_attrs a;
    sn_attrs_default(SN_OP_layernorm, &a);
    a.epsilon.epsilon = epsilon_slot(c, conf->epsilon);
    c->out = sn_build(c->b, SN_OP_layernorm, &a, (const sn_value[]){c->in[0], p.gamma, p.beta}, 3);
}
