/* operation.h: tables of functions of keras.ops beside those of layers_operation.c. */
#ifndef SN_NN_OPERATION_H
#define SN_NN_OPERATION_H

#include "nn/nn.h"

typedef struct {
    const char *names; /* words, in small letters without underscores; NULL ends a table */
    void (*build)(sn_layer_call *c, const sn_conf_operation *conf);
} sn_operation_row;

/* What moves, repeats, pads, indexes and resizes (operation_layout.c). */
extern const sn_operation_row sn_layout_operations[];

/* einsum (layers_einsum.c) and dot_product_attention (layers_attention.c). */
void sn_operation_einsum(sn_layer_call *c, const sn_conf_operation *conf);
void sn_operation_attention(sn_layer_call *c, const sn_conf_operation *conf);

#endif
