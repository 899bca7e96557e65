/* activation.h: activations as graph builders. */
#ifndef SN_NN_ACTIVATION_H
#define SN_NN_ACTIVATION_H

#include "graph/build.h"

/* Activations by Keras' names (activation.c has the list), with settings behind the name where it
 * has any: "gelu:approximate=true". */
sn_value sn_activation(sn_builder *b, const char *text, sn_value x);
/* Keras' relu: x above the threshold, at most max (below 0: no limit); slope * (x - threshold)
 * below it. */
sn_value sn_relu_with(sn_builder *b, sn_value x, double slope, double max, double threshold);

#endif
