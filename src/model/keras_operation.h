/* keras_operation.h: Keras' operation nodes (x + y, x[:, 1:], keras.ops.mean(x), and what tf.keras
 * 2 writes as TFOpLambda and SlicingOpLambda) as the layer class Operation. */
#ifndef SN_MODEL_KERAS_OPERATION_H
#define SN_MODEL_KERAS_OPERATION_H

#include "model/keras_graph.h"

/* By the text of its module, which is compared and never resolved. */
bool sn_keras_is_operation(const json_t *layer);

typedef struct {
    const json_t *layer;
    const sn_keras_node *node; /* its call: numbers stand there as arguments */
} sn_keras_operation;

/* A sn_conf_fill with a sn_keras_operation as ctx. */
snug_status sn_keras_operation_fill(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                    snug_error *err);

#endif
