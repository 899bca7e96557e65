/* application.h: what the files of network*.c and layer_call.c share. */
#ifndef SN_NN_APPLICATION_H
#define SN_NN_APPLICATION_H

#include "nn/layer_call.h"

/* What an application reads and makes in a graph. */
typedef struct {
    sn_value in[SN_MAX_IN], in_mask[SN_MAX_IN];
    sn_value out[SN_MAX_TENSOR], out_mask;
    int n_out;
    bool ends_masks; /* of the tensors it read, for applications behind it */
} sn_applied;

SNUG_CHECKED snug_status sn_network_build_one(sn_network *n, const sn_application *a, sn_graph *g,
                                              bool training, sn_applied *io, snug_error *err);
extern const sn_network_source sn_network_of_layers;
/* Asks for a write at the end of the step; the value has the variable's dtype. */
SNUG_CHECKED snug_status sn_network_add_write(sn_network *n, const sn_pending_write *write,
                                              snug_error *err);
/* Types of all tensors behind the inputs, after what they follow from has changed. */
SNUG_CHECKED snug_status sn_network_infer_again(sn_network *n, snug_error *err);
/* Of its layers: which variables are theirs, after those got other numbers. */
void sn_network_find_ranges(sn_network *n);
/* The key of a variable's initial values. */
uint64_t sn_network_initial_key(const sn_network *n, const char *name);
/* data_format="channels_first" (channels.c): whether the layer has it; inputs as the build function
 * wants them, which gives the number of spatial axes; and outputs as the model wants them. */
bool sn_channels_first(sn_layer_call *c);
int sn_channels_to_end(sn_layer_call *c);
void sn_channels_back(sn_layer_call *c, int spatial);
/* That a network may have this input. */
SNUG_CHECKED snug_status sn_network_check_input(const snug_type *input, snug_error *err);

#endif
