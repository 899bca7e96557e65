/* keras_json.h: the JSON of Keras' model.to_json() becomes a network. Never resolves a module to
 * code: class names are looked up in layers.def; anything unknown is refused by name. */
#ifndef SN_MODEL_KERAS_JSON_H
#define SN_MODEL_KERAS_JSON_H

#include "nn/nn.h"

/* Compile settings found in the file, as the texts snug_model_compile takes; "" where the file has
 * none. */
typedef struct {
    char optimizer[384], loss[192], metrics[1536];
} sn_keras_compile;

SNUG_CHECKED snug_status sn_keras_load(snug_engine *e, const char *path, sn_network **out,
                                       sn_keras_compile *compile, snug_error *err);

#endif
