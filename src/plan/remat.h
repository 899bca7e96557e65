/* remat.h: which values to keep, which to drop and compute again, so that a program runs in a
 * number of bytes at the least cost. Knows nothing of graphs: operators are numbers.
 *
 *     sn_remat_problem p = {ops, n, inputs, fixed_bytes};
 *     sn_remat_limits l = {budget, .work = SN_REMAT_WORK_SECOND / 2};
 *     sn_remat_result r;
 *     SNUG_TRY(sn_remat(zone, &p, &l, &r, err));
 *     if (r.fits)
 *         for (uint32_t i = 0; i < r.n_events; i++)
 *             ... r.events[i].op is computed, or its value freed
 *
 * Memory is counted at each computation: fixed bytes, the values resident then (the inputs among
 * them), the output and its work bytes. An input that is freed right after the computation whose
 * `takes` names it shares its bytes with the output. */
#ifndef SN_PLAN_REMAT_H
#define SN_PLAN_REMAT_H

#include "memory/engine.h"

#define SN_REMAT_NONE UINT32_MAX
/* Elementary operations that take about a second on a core of 2022. */
#define SN_REMAT_WORK_SECOND UINT64_C(250000000)

/* A program in an order that respects inputs: op i makes value i. First computations keep this
 * order. */
typedef struct {
    size_t bytes;       /* of its value while it is resident */
    size_t work_bytes;  /* beside, only while it is computed */
    double cost;        /* >= 0, in any unit */
    uint32_t in, n_in;  /* inputs[in .. in + n_in): ops, all smaller */
    uint32_t not_after; /* a larger op: never computed once that one has been, as it reads what that
                         * one overwrites; or SN_REMAT_NONE */
    uint32_t takes;     /* the input whose bytes this value takes over if it dies here, or NONE */
    bool once;          /* never computed a second time (effects, sums over slices) */
    bool keep;          /* resident from its computation to the end */
} sn_remat_op;

typedef struct {
    const sn_remat_op *ops;
    uint32_t n;
    const uint32_t *inputs;
    size_t fixed_bytes;
} sn_remat_problem;

typedef struct {
    uint32_t op;
    bool frees; /* its value goes; otherwise it is computed */
} sn_remat_event;

typedef struct {
    size_t budget; /* with the fixed bytes */
    uint64_t work; /* elementary operations to improve the first answer; 0: none */
    bool no_floor; /* where it does not fit, say only so: the floor is SIZE_MAX */
    bool any;      /* any answer that fits will do */
} sn_remat_limits;

typedef struct {
    bool fits;
    /* Where it fits. Values are freed right after their last use. */
    sn_remat_event *events; /* of the zone */
    uint32_t n_events;
    double cost; /* of all computations */
    size_t peak; /* <= budget */
    /* Where it does not: a budget that does fit, the smallest that was found. No budget below
     * `bound` can fit: it is what one computation needs. */
    size_t floor;
    size_t bound;
} sn_remat_result;

/* Same problem, same limits: same events. SNUG_E_INVALID for a program that breaks the rules above,
 * SNUG_E_OVERFLOW where all bytes together exceed the address space. */
SNUG_CHECKED snug_status sn_remat(sn_zone *z, const sn_remat_problem *p, const sn_remat_limits *l,
                                  sn_remat_result *out, snug_error *err);

#endif
