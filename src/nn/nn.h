/* nn.h: layers, losses, metrics, optimizers and initialisers as thin graph builders, with Keras' names, defaults and
 * numerics. A layer class is one row of layers.def and the functions it names; its configuration is described by a schema, so
 * that the Keras JSON reader (room model) and the C door ("units=64 activation=relu") fill the same struct.
 *
 * sn_network is the list of layers with their connections (Sequential is a chain); it owns no tensors. Building it for a batch
 * size appends nodes to a graph and registers variables with the state (homes), once per network. */
#ifndef SN_NN_NN_H
#define SN_NN_NN_H

#include "graph/build.h"

#endif
