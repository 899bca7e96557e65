/* call.h: what a function of the table sees. One function sn_fn_<x> per row of functions.def; it
 * appends to the recording through c->r.b and says what it gives. Errors stick in the builder. */
#ifndef SN_EAGER_CALL_H
#define SN_EAGER_CALL_H

#include "exec/record.h"

#include <snug/function.h>

#define SN_FN_MAX_ARGS 16
#define SN_FN_MAX_OUT  64

typedef struct {
    sn_record_call r;         /* r.b is the builder */
    const snug_argument *arg; /* defaults filled in: one per entry of the signature */
    int n_args;
    int n_out; /* 1 unless the function says otherwise */
    sn_value out[SN_FN_MAX_OUT];
} sn_fn_call;

typedef void (*sn_fn)(sn_fn_call *c);

#endif
