/* layers_spectral.c: SpectralNormalization: a layer whose kernel has about the spectral norm 1.
 *
 * In a training step the kernel is divided by an estimate of its largest singular value, from one
 * or some power iterations that go on where the last step's vector u ended. As in Keras the
 * quotient becomes the kernel, before the optimizer changes it, and gradients are those of the
 * quotient: none flows through the division. A kernel of zeros stays as it is. */
#include "nn/layer_call.h"
#include "nn/regularizer.h"

#include <string.h>

#define MAX_ITERATIONS 1000

static const char *name_of(const sn_layer_call *c, int index) {
    const char *name = c->network->vars[c->layer->homes[index]].name, *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* x over its length, of which at least 1e-7 is assumed. */
static sn_value unit(sn_builder *b, sn_value x) {
    const sn_value square = sn_build_sum(b, sn_build_square(b, x), 0, false);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value most = sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, 1e7);
    return sn_build_mul(b, x, sn_build_minimum(b, sn_build_rsqrt(b, square), most));
}

/* Row vectors u [1, n] and v [1, m] for the kernel as a matrix [m, n]: the new u, and sigma [1,
 * 1]. */
static sn_value iterate(sn_builder *b, int64_t times, sn_value matrix, sn_value *u) {
    sn_value v = SN_NO_VALUE;
    for (int64_t i = 0; i < times; i++) {
        v = unit(b, sn_build_matmul_t(b, *u, matrix, false, true));
        *u = unit(b, sn_build_matmul(b, v, matrix, SN_NO_VALUE));
    }
    return sn_build_matmul_t(b, sn_build_matmul(b, v, matrix, SN_NO_VALUE), *u, false, true);
}

/* The kernel over its norm, which becomes the kernel; u goes on. */
static sn_value quotient(sn_layer_call *c, sn_layer_call *inner, int index, sn_value weight,
                         sn_value old_u) {
    const sn_conf_spectral_normalization *conf = c->conf;
    sn_builder *const b = c->b;
    sn_value u = old_u;
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, weight);
    const sn_value fixed = sn_build_stop_gradient(b, weight);
    const sn_value matrix =
        sn_build_reshape(b, fixed, (const int64_t[]){-1, t.dims[t.rank - 1]}, 2);
    const sn_value sigma = iterate(b, conf->power_iterations, matrix, &u);
    const sn_value zero = sn_build_equal(b, sn_build_max(b, sn_build_abs(b, fixed), 0, false),
                                         sn_build_scalar(b, t.dtype, 0));
    const sn_value scale = sn_build_reshape(b, sigma, NULL, 0);
    const sn_value kernel = sn_build_select(b, zero, fixed, sn_build_div(b, fixed, scale));
    sn_layer_assign(c, 0, sn_build_select(b, zero, old_u, u));
    sn_layer_assign(inner, index, kernel);
    /* the quotient's value with the weight's gradient */
    return sn_build_add(b, weight, sn_build_sub(b, kernel, fixed));
}

/* An sn_weight_rule: what the layer inside uses as its kernel. */
static sn_value normalised(sn_layer_call *c, sn_layer_call *inner, int index, sn_value weight) {
    sn_builder *const b = c->b;
    sn_init start;
    if (b->error.code != SNUG_OK || (strcmp(name_of(inner, index), "kernel") != 0 &&
                                     strcmp(name_of(inner, index), "embeddings") != 0))
        return weight;
    const snug_type t = *sn_graph_type(b->graph, weight);
    const snug_type row = {.rank = 2, .dims = {1, t.dims[t.rank - 1]}};
    if (sn_init_parse("truncated_normal:stddev=0.02", &start, &b->error) != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value u = sn_layer_variable(c, "vector_u", &row, &start, false);
    const sn_value used = c->training ? quotient(c, inner, index, weight, u) : weight;
    sn_net_var *const v = &c->network->vars[inner->layer->homes[index]];
    v->by_layer = true;
    if (v->regularizer && v->regularizer[0] && c->network->layers[c->top].trainable)
        sn_layer_add_loss(c, sn_regularizer_build(b, v->regularizer, used));
    return used;
}

void sn_layer_build_spectral_normalization(sn_layer_call *c) {
    const sn_conf_spectral_normalization *conf = c->conf;
    if (!conf->layer)
        return sn_layer_refuse(c, SNUG_E_INVALID, "there is no layer in it");
    if (conf->power_iterations < 1 || conf->power_iterations > MAX_ITERATIONS)
        return sn_layer_refuse(c, SNUG_E_INVALID, "power_iterations=%lld must be at least 1",
                               (long long)conf->power_iterations);
    const sn_weight_rule rule = {normalised, c};
    sn_layer_call inner = sn_layer_enter(c, conf->layer, NULL);
    inner.in[inner.n_in++] = c->in[0];
    inner.rule = &rule;
    sn_layer_run(&inner);
    c->out = inner.out;
    if (c->b->error.code == SNUG_OK && c->next_var == 0)
        sn_layer_refuse(c, SNUG_E_INVALID, "%s has neither a kernel nor embeddings",
                        conf->layer->cls->class_name);
}
