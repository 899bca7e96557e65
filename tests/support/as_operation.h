/* as_operation.h: a call of the function table as a node of keras.ops in a network: the layer class Operation with the same
 * arguments, on the same tensors. */
#ifndef SN_TESTS_AS_OPERATION_H
#define SN_TESTS_AS_OPERATION_H

#include "nn/layer_call.h"
#include "nn/operation.h"

typedef struct {
    sn_operation call;
    snug_argument items[SN_FN_MAX_ITEMS];
    int n_items;
    snug_tensor *in[SN_MAX_IN]; /* lent */
    int n_in;
} sn_test_operation;

/* Whether a row draws numbers. */
bool sn_test_draws(const snug_function_info *info);

/* False where no file can say it: without a tensor; where values of one decide a shape or are a setting; where lists of numbers
 * stand for tensors; where numbers are drawn. */
bool sn_test_as_operation(int function, const snug_argument *args, int n_args,
                          sn_test_operation *out);

/* Applies the layer in a recording: planned and run as an eager call is. out has SN_MAX_TENSOR places. */
SNUG_CHECKED snug_status sn_test_apply(const sn_test_operation *o, snug_recorder *r,
                                       snug_tensor **out, int *n_out, snug_error *err);

/* Types of the results where the first axis of the first tensor, and of all with as many rows, is an open batch. */
SNUG_CHECKED snug_status sn_test_infer(const sn_test_operation *o, snug_recorder *r,
                                       snug_type *types, int *n_out, snug_error *err);

#endif
