/* later.h: calls that wait for the next ones, so that several run as one launch.
 *
 *     sn_later_run(&gpu->later, &call, err);      // runs it now, or holds it
 *     sn_later_flush(&gpu->later, err);           // before anything else is given to a queue
 *
 * Two groups wait: updates of one row (adam, ...), each of its own variable, which become one
 * launch over a table of pointers; and a chain of elementwise calls over one index space, which
 * become one launch that goes through memory once (chain.h).
 *
 * Invariants:
 * 1. No call that waits writes bytes that a call in another group reads or writes, and none that
 * has run since did: so the groups may run in any order, and after all other calls.
 * 2. Same calls, same groups: what runs together depends on the calls and their addresses alone.
 * 3. What a call's `reach` says is all that decides whether a result inside a chain is stored. */
#ifndef SN_KERNELS_CUDA_LATER_H
#define SN_KERNELS_CUDA_LATER_H

#include "kernels/cuda/chain.h"

typedef struct {
    int n; /* of the same row and dtype */
    sn_cuda_call base;
    sn_held calls[SN_MOST_UPDATES];
} sn_later_updates;

typedef struct {
    uint64_t number;
    sn_later_updates updates;
    sn_chain chain;
} sn_later;

/* c->call stays the caller's; what it points to beyond the views outlives the flush. */
snug_status sn_later_run(sn_later *l, const sn_cuda_call *c, snug_error *err);
snug_status sn_later_flush(sn_later *l, snug_error *err);

#endif
