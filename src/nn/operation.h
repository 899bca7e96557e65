/* operation.h: tables of functions of keras.ops beside those of layers_operation.c. */
#ifndef SN_NN_OPERATION_H
#define SN_NN_OPERATION_H

#include "nn/layer_call.h"

typedef struct {
    const char *names; /* words, in small letters without underscores; NULL ends a table */
    void (*build)(sn_layer_call *c, const sn_conf_operation *conf);
} sn_operation_row;

/* The array that stands among the operands, where conf->array has entries. */
sn_value sn_operation_array(sn_layer_call *c, const sn_conf_operation *conf);
/* An axis of the configuration, or `otherwise`, as a count from the front; false after refusing. */
bool sn_operation_axis(sn_layer_call *c, const sn_conf_operation *conf, int rank, int otherwise,
                       int *axis);

/* What moves, repeats, pads, indexes and resizes (operation_layout.c). */
extern const sn_operation_row sn_layout_operations[];

/* Values like others, unit lengths, products (operation_values.c). */
extern const sn_operation_row sn_value_operations[];

/* Order statistics, counts, pooling, diagonals, products over axes (operation_numbers.c). */
extern const sn_operation_row sn_number_operations[];

/* einsum (layers_einsum.c) and dot_product_attention (layers_attention.c). */
void sn_operation_einsum(sn_layer_call *c, const sn_conf_operation *conf);
void sn_operation_attention(sn_layer_call *c, const sn_conf_operation *conf);

#endif
