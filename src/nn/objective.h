/* objective.h: what is asked of one output of a network. */
#ifndef SN_NN_OBJECTIVE_H
#define SN_NN_OBJECTIVE_H

#include "nn/loss.h"

/* The loss of an output. */
typedef struct {
    bool used; /* it has a loss; otherwise it only gives predictions */
    sn_loss loss;
    double weight; /* of its loss in the sum */
} sn_objective;
typedef struct {
    sn_value y_true, y_pred;
    sn_value weight; /* [batch] or more of the leading axes; or SN_NO_VALUE */
    sn_value mask;   /* bool, likewise */
} sn_objective_data;
/* The loss of the output, a scalar: its terms, weighted and masked, averaged as the loss says. */
sn_value sn_objective_build(sn_builder *b, const sn_objective *o, const sn_objective_data *d);
/* A weight that is 0 where the mask hides a step; either may be SN_NO_VALUE. */
sn_value sn_objective_weight(sn_builder *b, sn_value weight, sn_value mask, sn_value like);
/* Keras' class_weight: classes that are not listed count 1. Gives [batch]. */
typedef struct {
    int64_t label;
    double weight;
} sn_class_weight;
sn_value sn_class_weights_build(sn_builder *b, const sn_class_weight *classes, int n,
                                sn_value y_true, snug_dtype dtype);

#endif
