/* layers_merge.c: layers of several inputs. Inputs of one rank broadcast as Keras' do; other ranks
 * are refused. Three and more are taken from the left, as Keras does, so that sums round alike. */
#include "nn/layer_call.h"

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

/* The mask of input k, one value per step for all its features; SN_NO_VALUE: there is none. */
static sn_value steps_mask(sn_layer_call *c, int k) {
    if (!sn_value_ok(c->mask[k]) || c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(c->b->graph, c->mask[k])->rank;
    const bool fits = rank + 1 == sn_graph_type(c->b->graph, c->in[k])->rank;
    return fits ? sn_build_expand_dims(c->b, c->mask[k], rank) : SN_NO_VALUE;
}

static sn_value either(sn_layer_call *c, sn_value a, sn_value b) {
    return sn_value_ok(a) ? sn_build_logical_or(c->b, a, b) : b;
}

/* A masked step counts as one; where all inputs mask it, the product is zero. */
void sn_layer_build_multiply(sn_layer_call *c) {
    sn_value product = SN_NO_VALUE, valid = SN_NO_VALUE;
    bool all_masked = true;
    if (!check_ranks(c))
        return;
    const snug_dtype dtype = sn_graph_type(c->b->graph, c->in[0])->dtype;
    for (int k = 0; k < c->n_in && c->b->error.code == SNUG_OK; k++) {
        const sn_value mask = steps_mask(c, k);
        sn_value x = c->in[k];
        all_masked = all_masked && sn_value_ok(mask);
        if (sn_value_ok(mask)) {
            x = sn_build_select(c->b, mask, x, sn_build_scalar(c->b, dtype, 1));
            valid = either(c, valid, mask);
        }
        product = k ? sn_build_mul(c->b, product, x) : x;
    }
    if (all_masked)
        product = sn_build_select(c->b, valid, product, sn_build_scalar(c->b, dtype, 0));
    c->out = product;
}

/* The extreme of what is valid: there is no value that a masked step could count as. */
static void fold_valid(sn_layer_call *c, pair_op op) {
    if (!check_ranks(c))
        return;
    sn_value out = c->in[0], valid = steps_mask(c, 0);
    for (int k = 1; k < c->n_in && c->b->error.code == SNUG_OK; k++) {
        const sn_value mask = steps_mask(c, k);
        sn_value x = c->in[k];
        if (sn_value_ok(mask))
            x = sn_build_select(c->b, mask, x, out);
        if (sn_value_ok(valid))
            out = sn_build_select(c->b, valid, out, x);
        const bool both = sn_value_ok(mask) && sn_value_ok(valid);
        valid = both ? either(c, valid, mask) : SN_NO_VALUE;
        out = op(c->b, out, x);
    }
    c->out = out;
}

void sn_layer_build_average(sn_layer_call *c) {
    fold(c, sn_build_add);
    c->out = sn_build_affine(c->b, c->out, 1.0 / c->n_in, 0);
}

void sn_layer_build_maximum(sn_layer_call *c) {
    fold_valid(c, sn_build_maximum);
}

void sn_layer_build_minimum(sn_layer_call *c) {
    fold_valid(c, sn_build_minimum);
}

/* Of InceptionResNetV2: x + scale * y. */
void sn_layer_build_custom_scale_layer(sn_layer_call *c) {
    const sn_conf_custom_scale_layer *conf = c->conf;
    c->out = sn_build_add(c->b, c->in[0], sn_build_affine(c->b, c->in[1], conf->scale, 0));
}

/* All true, one value per step of x. */
static sn_value all_valid(sn_layer_call *c, sn_value x) {
    snug_type t = *sn_graph_type(c->b->graph, x);
    t.dtype = SNUG_BOOL;
    t.rank--;
    return sn_build_broadcast_to(c->b, sn_build_scalar(c->b, SNUG_BOOL, 1), &t);
}

/* Masks say something about every axis but the last. Along the last a step is valid where it is so
 * in any input; along others the masks follow each other. An input without a mask is valid. */
static sn_value joined_mask(sn_layer_call *c, int rank, int axis) {
    sn_value mask[SN_MAX_IN], any = SN_NO_VALUE;
    bool masked = false;
    for (int k = 0; k < c->n_in; k++) {
        const bool has = sn_value_ok(c->mask[k]);
        if (has && sn_graph_type(c->b->graph, c->mask[k])->rank != rank - 1)
            return SN_NO_VALUE;
        masked = masked || has;
    }
    for (int k = 0; masked && k < c->n_in && c->b->error.code == SNUG_OK; k++) {
        mask[k] = sn_value_ok(c->mask[k]) ? c->mask[k] : all_valid(c, c->in[k]);
        any = either(c, any, mask[k]);
    }
    return masked && axis != rank - 1 ? sn_build_concat(c->b, mask, c->n_in, axis) : any;
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
    c->out = sn_build_concat(c->b, c->in, c->n_in, (int)axis);
    c->out_mask = joined_mask(c, rank, (int)axis);
}
