/* layers_merge.c: layers of several inputs. Inputs of one rank broadcast as Keras' do; other ranks
 * are refused. Three and more are taken from the left, as Keras does, so that sums round alike. */
#include "nn/nn.h"

typedef sn_value (*pair_op)(sn_builder *b, sn_value x, sn_value y);

static bool check_ranks(sn_layer_call *c) {
    const snug_type first = *sn_graph_type(c->b->graph, c->in[0]);
    for (int k = 1; k < c->n_in; k++) {
        const snug_type *t = sn_graph_type(c->b->graph, c->in[k]);
        if (t->rank == first.rank)
            continue;
        char a[192], b[192];
        sn_layer_refuse(c, SNUG_E_SHAPE, "input 0 is %s, input %d is %s; their ranks must agree",
                        snug_type_print(&first, a, sizeof a), k, snug_type_print(t, b, sizeof b));
        return false;
    }
    return true;
}

static void fold(sn_layer_call *c, pair_op op) {
    if (!check_ranks(c))
        return;
    sn_value sum = c->in[0];
    for (int k = 1; k < c->n_in; k++)
        sum = op(c->b, sum, c->in[k]);
    c->out = sum;
}

void sn_layer_build_add(sn_layer_call *c) {
    fold(c, sn_build_add);
}

void sn_layer_build_subtract(sn_layer_call *c) {
    fold(c, sn_build_sub);
}

void sn_layer_build_multiply(sn_layer_call *c) {
    fold(c, sn_build_mul);
}

void sn_layer_build_average(sn_layer_call *c) {
    fold(c, sn_build_add);
    c->out = sn_build_affine(c->b, c->out, 1.0 / c->n_in, 0);
}

void sn_layer_build_maximum(sn_layer_call *c) {
    fold(c, sn_build_maximum);
}

void sn_layer_build_minimum(sn_layer_call *c) {
    fold(c, sn_build_minimum);
}

/* Of InceptionResNetV2: x + scale * y. */
void sn_layer_build_custom_scale_layer(sn_layer_call *c) {
    const sn_conf_custom_scale_layer *conf = c->conf;
    c->out = sn_build_add(c->b, c->in[0], sn_build_affine(c->b, c->in[1], conf->scale, 0));
}

void sn_layer_build_concatenate(sn_layer_call *c) {
    const sn_conf_concatenate *conf = c->conf;
    if (!check_ranks(c))
        return;
    const int rank = sn_graph_type(c->b->graph, c->in[0])->rank;
    const int64_t axis = conf->axis < 0 ? conf->axis + rank : conf->axis;
    if (axis < 0 || axis >= rank) {
        sn_layer_refuse(c, SNUG_E_INVALID, "axis=%lld is not one of the axes 0 to %d",
                        (long long)conf->axis, rank - 1);
        return;
    }
    sn_attrs a;
    sn_attrs_default(SN_OP_concat, &a);
    a.axis.axis = axis;
    c->out = sn_build(c->b, SN_OP_concat, &a, c->in, c->n_in);
}
