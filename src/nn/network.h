/* network.h: what the files of network*.c and layer_call.c share. */
#ifndef SN_NN_NETWORK_H
#define SN_NN_NETWORK_H

#include "nn/nn.h"

/* What an application reads and makes in a graph. */
typedef struct {
    sn_value in[SN_MAX_IN], in_mask[SN_MAX_IN];
    sn_value out[SN_MAX_TENSOR], out_mask;
    int n_out;
} sn_applied;

SNUG_CHECKED snug_status sn_network_build_one(sn_network *n, const sn_application *a, sn_graph *g,
                                              bool training, sn_applied *io, snug_error *err);
/* The key of a variable's initial values. */
uint64_t sn_network_initial_key(const sn_network *n, const char *name);
/* That a network may have this input. */
SNUG_CHECKED snug_status sn_network_check_input(const snug_type *input, snug_error *err);

#endif
