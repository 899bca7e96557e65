/* remat_parts.h: what the parts of the recompute search share (remat.c: the door; remat_greedy.c: a
 * first list; remat_search.c: better ones).
 *
 * An answer is a list of computations, with repeats. When values are freed follows from it: right
 * after the last use before the next computation of the same operator, or the end. */
#ifndef SN_PLAN_REMAT_PARTS_H
#define SN_PLAN_REMAT_PARTS_H

#include "plan/remat.h"

/* The problem with what is derived from it once. */
typedef struct {
    const sn_remat_problem *p;
    uint32_t *use_at, *uses; /* readers of value i: uses[use_at[i] .. use_at[i + 1]), ascending */
    uint32_t *horizon; /* the last op before whose first computation i can still be computed again;
                        * 0: never again */
    double base_cost;  /* every operator once */
    size_t bound;      /* what the hungriest computation needs */
    uint32_t most;     /* computations a list may have */
} sn_remat_program;

typedef struct {
    uint32_t *ops; /* room for program.most */
    uint32_t n;
    double cost;
    size_t peak; /* with the fixed bytes */
} sn_remat_list;

SNUG_CHECKED snug_status sn_remat_list_init(sn_zone *z, const sn_remat_program *g,
                                            sn_remat_list *out, snug_error *err);
void sn_remat_list_copy(sn_remat_list *to, const sn_remat_list *from);

/* Takes computations out that nobody needs, finds cost and peak. live: a flag per operator. */
void sn_remat_measure(const sn_remat_program *g, bool *live, sn_remat_list *list);

/* Runs the program in its order; where the budget is full, what costs least per byte and time goes,
 * and is computed again when it is wanted. */
typedef struct sn_remat_greedy sn_remat_greedy;
SNUG_CHECKED snug_status sn_remat_greedy_create(sn_zone *z, const sn_remat_program *g,
                                                sn_remat_greedy **out, snug_error *err);
/* False: no list within the budget was found. */
bool sn_remat_greedy_run(sn_remat_greedy *s, size_t budget, sn_remat_list *out);

/* Makes a list that fits the budget cheaper, within the work. */
SNUG_CHECKED snug_status sn_remat_search(sn_zone *z, const sn_remat_program *g,
                                         const sn_remat_limits *l, sn_remat_list *list,
                                         snug_error *err);

#endif
