/* keras_json.h: the JSON of Keras' model.to_json() becomes a network. Never resolves a module to
 * code: class names are looked up in layers.def; anything unknown is refused by name. */
#ifndef SN_MODEL_KERAS_JSON_H
#define SN_MODEL_KERAS_JSON_H

#include "nn/network.h"

#define SN_COMPILE_TEXT 1536

/* Compile settings found in the file, as the texts snug_model_compile takes; "" where the file has
 * none. */
typedef struct {
    char optimizer[640];
    char loss[SN_COMPILE_TEXT], loss_weights[SN_COMPILE_TEXT];
    char metrics[SN_COMPILE_TEXT], weighted_metrics[SN_COMPILE_TEXT];
} sn_keras_compile;

/* shapes: of inputs, without the batch: "96,96,3" or "left=96,96,3;right=10". Open axes of the file
 * take these extents; those it knows must agree. NULL: none are given. */
SNUG_CHECKED snug_status sn_keras_load(snug_engine *e, const char *path, const char *shapes,
                                       sn_network **out, sn_keras_compile *compile,
                                       snug_error *err);

#endif
