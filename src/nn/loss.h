/* loss.h: losses by Keras' names. */
#ifndef SN_NN_LOSS_H
#define SN_NN_LOSS_H

#include "graph/build.h"

/* Keras' names and aliases (mse = mean_squared_error = MeanSquaredError). */
typedef enum {
    SN_REDUCE_MEAN, /* Keras' sum_over_batch_size */
    SN_REDUCE_SUM,
    SN_REDUCE_WEIGHTED_MEAN /* mean_with_sample_weight: over the sum of the weights */
} sn_reduction;
typedef struct {
    char name[48]; /* canonical snake case */
    bool from_logits;
    bool sparse;                   /* integer labels without the class axis */
    double label_smoothing, delta; /* of the cross-entropies; of huber */
    double alpha, gamma;           /* of the focal cross-entropies; alpha also of tversky */
    double beta, q;                /* of tversky; of the generalised cross-entropy */
    bool apply_class_balancing;    /* of the binary focal one */
    double ignore_class;           /* of the sparse one; NaN: none */
    uint32_t axes;                 /* of dice and tversky: a set of axes; 0: all */
    sn_reduction reduction;
} sn_loss;
bool sn_loss_known(const char *name);
SNUG_CHECKED snug_status sn_loss_parse(const char *text, sn_loss *out, snug_error *err);
void sn_loss_target(const sn_loss *l, const snug_type *output, snug_type *target);
/* The loss of each element or row, not averaged: [batch, ...]. Softmax / sigmoid under a
 * cross-entropy are looked through to the logits, as Keras does in graph mode. */
sn_value sn_loss_terms(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred);
/* The last axis of x, that of classes, as a set of axes; a scalar is refused. 0 after an error. */
uint32_t sn_last_axis(sn_builder *b, sn_value x);
/* Which of the terms count, where labels say so (ignore_class): bool, or SN_NO_VALUE. */
sn_value sn_loss_mask(sn_builder *b, const sn_loss *l, sn_value y_true);

#endif
