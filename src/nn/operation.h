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

#endif
