/* keras_layers.h: the layers of a Sequential or Functional model are added to a network. */
#ifndef SN_MODEL_KERAS_LAYERS_H
#define SN_MODEL_KERAS_LAYERS_H

#include "nn/network.h"

#include <jansson.h>

/* `model` is the root of the JSON; the network has its input and dtype. Sets the network's
 * output. */
SNUG_CHECKED snug_status sn_keras_add_layers(sn_network *n, const json_t *model, snug_error *err);

/* One layer by itself, from its class and the configuration as get_config() gives it; of the
 * network's dtype. */
SNUG_CHECKED snug_status sn_keras_make_layer(sn_network *n, const char *class_name,
                                             const json_t *config, sn_layer **out, snug_error *err);

#endif
