/* eager_call.h: a call of a row of the table (function/function_call.h) on recorded tensors: what
 * the row's function does not see. */
#ifndef SN_EAGER_EAGER_CALL_H
#define SN_EAGER_EAGER_CALL_H

#include "function/function_call.h"
#include "record/record.h"

#define SN_EAGER_MAX_MADE 32 /* tensors made of lists and of what is read */

typedef struct {
    sn_fn_call f; /* first: doors get from it to the whole */
    sn_record_call r;
    struct sn_fold *fold; /* the call is computed now, on a graph of its own; or NULL */
    snug_tensor *made[SN_EAGER_MAX_MADE + 4];
    int n_made;
} sn_eager_call;

/* snug_function_call without computing anything now: for who repeats calls, whose recordings have
 * plans at hand. */
SNUG_CHECKED snug_status sn_function_record(snug_recorder *r, int function,
                                            const snug_argument *args, int n_args,
                                            snug_tensor **outputs, int max, int *n_out,
                                            snug_error *err);

/* The type of a tensor among the arguments, for doors. */
const snug_type *sn_eager_type(const snug_argument *a);

/* --- computing now (fold.c) ------------------------------------------------------------------- */
/* Whether the call is arithmetic on a few whole numbers that have bytes: shapes and places. Then it
 * is done at once, so that whoever needs them as settings need not run the recording. */
bool sn_eager_is_small(const sn_eager_call *c);
/* *done is false when the results are not of that kind; given has room for SN_FN_MAX_OUT. */
SNUG_CHECKED snug_status sn_eager_fold(sn_eager_call *c, sn_fn build, snug_tensor **given,
                                       bool *done, snug_error *err);

#endif
