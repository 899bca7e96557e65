/* kernel_call.h: one kernel call, whichever device runs it: views, parameters, scratch. A kernel
 * sees no graph and no plan. */
#ifndef SN_OP_KERNEL_CALL_H
#define SN_OP_KERNEL_CALL_H

#include "memory/team.h"
#include "op/op.h"

/* Dtypes that many kernels have no loops of, as bits; which of them a family takes it says. */
#define SN_HALF_DTYPES   (1u << SNUG_F16 | 1u << SNUG_BF16)
#define SN_STORED_DTYPES (SN_HALF_DTYPES | 1u << SNUG_I16 | 1u << SNUG_U16 | 1u << SNUG_U32)

typedef union {
    double real;
    int64_t key;
} sn_scalar;

/* One kernel call. */
typedef struct {
    sn_op op;
    const sn_attrs *attrs;
    const sn_scalar *param; /* values of the attribute family's parameter words, in order */
    int n_in, n_out;
    const snug_view *in;
    const snug_view *out;
    void *workspace;
    size_t workspace_bytes;
    void *prepared;  /* from the family's prepare, or NULL */
    bool accumulate; /* add into outputs (only rows with acc YES) */
    int n_threads;   /* what the workspace was described for */
    sn_team *team;   /* who does the work; NULL: the calling thread alone */
    /* Where this call's output 0 lies in the full value: rows [first, ...) of axis `axis`, whose
     * full extent is `full`. Whole values: axis 0, first 0, full = dims[0]. Counter-based
     * randomness uses it. */
    int axis;
    int64_t first, full;
    /* Output 0 is read by this many next calls at most, and never after; 0: by any. A device that
     * runs them together need not store it. */
    uint32_t reach;
} sn_call;

typedef snug_status (*sn_kernel)(const sn_call *c, snug_error *err);

#endif
