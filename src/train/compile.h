/* compile.h: what a model is trained for: optimizer, the loss of each output, metrics. */
#ifndef SN_TRAIN_COMPILE_H
#define SN_TRAIN_COMPILE_H

#include "nn/metric.h"
#include "nn/objective.h"
#include "nn/optimizer.h"

#include <snug/train.h>

#define SN_COMPILED_TEXT     1536
#define SN_MAX_CLASS_WEIGHTS 64

typedef struct {
    sn_optimizer optimizer;
    sn_objective objectives[SN_MAX_TENSOR]; /* one per output */
    sn_metric metrics[SNUG_MAX_METRICS];
    int n_metrics;
    uint32_t loss_outputs[SN_MAX_TENSOR]; /* outputs whose loss is a value of its own */
    char loss_names[SN_MAX_TENSOR][96];
    int n_losses;
    char loss[SN_COMPILED_TEXT], loss_weights[SN_COMPILED_TEXT]; /* as they were given */
    char metrics_text[SN_COMPILED_TEXT], weighted_metrics[SN_COMPILED_TEXT];
} sn_compiled;

/* Settings that are NULL stay as they are. After an error *inout is of no use. */
SNUG_CHECKED snug_status sn_compiled_set(const sn_network *n, const snug_compile *settings,
                                         sn_compiled *inout, snug_error *err);
/* What the metrics mean, once the network has layers. */
SNUG_CHECKED snug_status sn_compiled_resolve(const sn_network *n, sn_compiled *c, snug_error *err);
/* Values of a step: the loss, losses of outputs, metrics. */
static inline int sn_compiled_n_values(const sn_compiled *c) {
    return 1 + c->n_losses + c->n_metrics;
}
const char *sn_compiled_value_name(const sn_compiled *c, int i);

/* "0=1,1=3.5" into out[SN_MAX_CLASS_WEIGHTS]. */
SNUG_CHECKED snug_status sn_class_weights_parse(const char *text, sn_class_weight *out, int *n,
                                                snug_error *err);

#endif
