/* objective.c: the loss of one output of a network: its terms, weighted by example or by class,
 * without the steps that a mask hides, as one number.
 *
 * Keras' reductions: with weights the sum is still divided by the number of terms
 * (sum_over_batch_size), not by the sum of the weights; a mask divides by the number of valid
 * terms. Weights and masks have the leading axes of the terms; they count for all that lies
 * behind. */
#include "nn/objective.h"

#include <string.h>

static snug_type type_of(const sn_builder *b, sn_value x) {
    return b->error.code == SNUG_OK ? *sn_graph_type(b->graph, x) : (snug_type){.rank = 1};
}

/* x [batch, ...] with axes of one behind it, up to a rank. */
static sn_value spread(sn_builder *b, sn_value x, int rank) {
    const snug_type t = type_of(b, x);
    int64_t dims[SNUG_MAX_RANK];
    if (t.rank == rank || b->error.code != SNUG_OK)
        return x;
    int n = t.rank;
    while (n > rank && t.dims[n - 1] == 1)
        n--;
    if (n > rank) {
        sn_fail(&b->error, SNUG_E_SHAPE,
                "a mask or sample weight has %d axes, the losses of the output have %d", t.rank,
                rank);
        return SN_NO_VALUE;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = i < n ? t.dims[i] : 1;
    return sn_build_reshape(b, x, dims, rank);
}

/* Valid steps as 1, others as 0, in the dtype of `like`; no gradient goes there. */
static sn_value as_number(sn_builder *b, sn_value mask, sn_value like) {
    return sn_build_stop_gradient(b, sn_build_cast(b, mask, type_of(b, like).dtype));
}

sn_value sn_objective_weight(sn_builder *b, sn_value weight, sn_value mask, sn_value like) {
    if (!sn_value_ok(mask))
        return weight;
    const sn_value valid = as_number(b, mask, like);
    if (!sn_value_ok(weight))
        return valid;
    const int rank = type_of(b, valid).rank, other = type_of(b, weight).rank;
    const int most = rank > other ? rank : other;
    return sn_build_mul(b, spread(b, weight, most), spread(b, valid, most));
}

/* The mean over what is valid. Where nothing is the sum is 0, and so is the loss. */
static sn_value masked_mean(sn_builder *b, sn_value terms, sn_value valid) {
    const int rank = type_of(b, terms).rank;
    const sn_value sum = sn_build_mean(b, sn_build_mul(b, terms, spread(b, valid, rank)), 0, false);
    const sn_value least = sn_build_scalar(b, type_of(b, valid).dtype, 1e-30);
    return sn_build_div(b, sum, sn_build_maximum(b, sn_build_mean(b, valid, 0, false), least));
}

/* The sum, or the sum over that of the weights: what a mask hides has the weight 0. Terms of each
 * element count as their mean over the last axis. */
static sn_value weighted_sum(sn_builder *b, const sn_objective *o, const sn_objective_data *d,
                             sn_value terms, sn_value mask) {
    const int rank = type_of(b, terms).rank;
    const bool by_element = rank > 1 && rank == type_of(b, d->y_pred).rank;
    const sn_value each = by_element ? sn_build_mean(b, terms, 1u << (rank - 1), false) : terms;
    const sn_value weight = sn_objective_weight(b, d->weight, mask, d->y_pred);
    if (!sn_value_ok(weight))
        return o->loss.reduction == SN_REDUCE_SUM ? sn_build_sum(b, each, 0, false)
                                                  : sn_build_mean(b, each, 0, false);
    const sn_value spread_weight = spread(b, weight, type_of(b, each).rank);
    const sn_value sum = sn_build_sum(b, sn_build_mul(b, each, spread_weight), 0, false);
    if (o->loss.reduction == SN_REDUCE_SUM)
        return sum;
    const sn_value over = sn_build_sum(b, spread_weight, 0, false);
    const sn_value zero = sn_build_scalar(b, type_of(b, over).dtype, 0);
    return sn_build_select(b, sn_build_equal(b, over, zero), zero, sn_build_div(b, sum, over));
}

sn_value sn_objective_build(sn_builder *b, const sn_objective *o, const sn_objective_data *d) {
    sn_value terms = sn_loss_terms(b, &o->loss, d->y_true, d->y_pred);
    const int rank = type_of(b, terms).rank;
    sn_value mask = sn_loss_mask(b, &o->loss, d->y_true);
    if (!sn_value_ok(mask))
        mask = d->mask;
    else if (sn_value_ok(d->mask))
        mask = sn_build_logical_and(b, mask, spread(b, d->mask, type_of(b, mask).rank));
    if (rank == 0)
        return terms;
    if (o->loss.reduction != SN_REDUCE_MEAN)
        return weighted_sum(b, o, d, terms, mask);
    if (sn_value_ok(d->weight))
        terms = sn_build_mul(b, terms, spread(b, d->weight, rank));
    return sn_value_ok(mask) ? masked_mean(b, terms, as_number(b, mask, d->y_pred))
                             : sn_build_mean(b, terms, 0, false);
}

/* --- class weights ---------------------------------------------------------------------------- */
/* Where the label of an example, a number or the place of the largest entry, is this class. */
static sn_value is_class(sn_builder *b, sn_value label, int64_t wanted) {
    const snug_dtype dtype = type_of(b, label).dtype;
    if (!sn_dtype_is_float(dtype))
        return sn_build_equal(b, label, sn_build_scalar(b, dtype, (double)wanted));
    return sn_build_logical_and(
        b, sn_build_greater(b, label, sn_build_scalar(b, dtype, (double)wanted - 0.5)),
        sn_build_greater_equal(b, sn_build_scalar(b, dtype, (double)wanted + 0.5), label));
}

sn_value sn_class_weights_build(sn_builder *b, const sn_class_weight *classes, int n,
                                sn_value y_true, snug_dtype dtype) {
    const snug_type t = type_of(b, y_true);
    sn_value label = y_true;
    if (t.rank > 2 || (t.rank == 2 && t.dims[1] < 1)) {
        sn_fail(&b->error, SNUG_E_UNSUPPORTED,
                "class weights need one label per example; the target has %d axes", t.rank);
        return SN_NO_VALUE;
    }
    if (t.rank == 2 && t.dims[1] > 1)
        label = sn_build_argmax(b, y_true, 1, SNUG_I32);
    else if (t.rank == 2)
        label = sn_build_reshape(b, y_true, t.dims, 1);
    sn_value weight = sn_build_scalar(b, dtype, 1);
    for (int i = 0; i < n; i++)
        weight = sn_build_select(b, is_class(b, label, classes[i].label),
                                 sn_build_scalar(b, dtype, classes[i].weight), weight);
    return weight;
}
