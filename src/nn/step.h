/* step.h: whole steps, for the room train. */
#ifndef SN_NN_STEP_H
#define SN_NN_STEP_H

#include "nn/metric.h"
#include "nn/objective.h"
#include "nn/optimizer.h"

typedef enum {
    SN_STEP_PREDICT,
    SN_STEP_EVALUATE,
    SN_STEP_TRAIN,
    SN_STEP_ACCUMULATE /* a training step whose gradients wait for a later one to update */
} sn_step_mode;
static inline bool sn_step_trains(sn_step_mode mode) {
    return mode == SN_STEP_TRAIN || mode == SN_STEP_ACCUMULATE;
}
/* One step as a graph; check_finite on the loss before any state write; fused (sn_graph_fuse) and
 * checked. Inputs are "x", "y" of the outputs with a loss and "w" where there are sample weights;
 * outputs "y_pred" (PREDICT) or "loss" and "metric_<i>". Of several the names are "x_0", "x_1", ...
 * by input or output, and each loss is an output, "loss_0", too. */
typedef struct {
    sn_network *network;
    const sn_objective *objectives; /* one per output */
    const sn_optimizer *optimizer;
    const sn_metric *metrics;
    int n_metrics;
    const snug_type *weights; /* types of the sample weights: one for all outputs or one each */
    int n_weights;            /* 0: none */
    const sn_class_weight *classes; /* instead of sample weights, in a network of one output */
    int n_classes;
    bool scaled; /* with a loss scale (optimizer.h) */
} sn_step_spec;
/* "x" or, of several, "x_2". Returns name. */
const char *sn_step_name(const char *what, uint32_t i, uint32_t n, char name[16]);
/* How many outputs have a loss. */
uint32_t sn_step_n_losses(const sn_step_spec *s);
SNUG_CHECKED snug_status sn_step_build(const sn_step_spec *s, sn_step_mode mode, int64_t batch,
                                       sn_graph **out, snug_error *err);

#endif
