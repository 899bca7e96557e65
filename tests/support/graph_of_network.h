/* graph_of_network.h: what layers build, as a graph of its own: the same model made another way.
 *
 *     sn_graph *graph = graph_of_network(network, -1, false);
 *     sn_graph *training = graph_of_network(network, -1, true); */
#ifndef SN_TESTS_GRAPH_OF_NETWORK_H
#define SN_TESTS_GRAPH_OF_NETWORK_H

#include "nn/network.h"

/* batch -1: open. training: with what a step that trains writes. Inputs without a name are "x". */
sn_graph *graph_of_network(sn_network *n, int64_t batch, bool training);

#endif
