/* operation.h: a node of keras.ops in a network: a row of the function table, and what the call
 * gave it beside tensors. Readers of files fill one; the layer class Operation runs the row. */
#ifndef SN_NN_OPERATION_H
#define SN_NN_OPERATION_H

#include "function/function_call.h"
#include "nn/config.h"

/* Operands of the arguments are of kind SLOT: input i of the layer has slot i, and behind them are
 * the array of numbers among the operands and the tensor that was given as `mask`. */
enum { SN_OPERATION_ARRAY = SN_MAX_IN, SN_OPERATION_MASK, SN_OPERATION_SLOTS };

struct sn_operation {
    int function; /* of the table */
    int n_args;
    snug_argument args[SN_FN_MAX_ARGS]; /* in the order of the signature */
    sn_conf_array array;                /* n 0: there is none */
    int64_t dims[SNUG_MAX_RANK];
    int rank;
    bool whole; /* it holds places: whole numbers for an argument of kind O */
};

#endif
