/* objective.c: the loss of one output of a network: its terms, weighted by example or by class,
 * without the steps that a mask hides, as one number.
 *
 * Keras' reductions: with weights the sum is still divided by the number of terms
 * (sum_over_batch_size), not by the sum of the weights; a mask divides by the number of valid
 * terms. Weights and masks have the leading axes of the terms; they count for all that lies
 * behind. */
#include "nn/nn.h"

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

sn_value sn_objective_build(sn_builder *b, const sn_objective *o, const sn_objective_data *d) {
    sn_value terms = sn_loss_terms(b, &o->loss, d->y_true, d->y_pred);
    const int rank = type_of(b, terms).rank;
    if (sn_value_ok(d->weight))
        terms = sn_build_mul(b, terms, spread(b, d->weight, rank));
    if (!sn_value_ok(d->mask))
        return sn_build_mean(b, terms, 0, false);
    const sn_value valid = as_number(b, d->mask, d->y_pred);
    const sn_value sum = sn_build_mean(b, sn_build_mul(b, terms, spread(b, valid, rank)), 0, false);
    /* Where nothing is valid the sum is 0, and so is the loss. */
    const sn_value least = sn_build_scalar(b, type_of(b, valid).dtype, 1e-30);
    return sn_build_div(b, sum, sn_build_maximum(b, sn_build_mean(b, valid, 0, false), least));
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
