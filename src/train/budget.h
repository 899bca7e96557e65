/* budget.h: what is left of a budget of the whole process for the arena of a step.
 *
 *     budget = process (booked) + state + books (graph, plan, sessions, names) + arena
 *
 * The process is booked in bands with a reserve, so that equal runs get equal plans; `predicted` is
 * what it is expected to be in the end. */
#ifndef SN_TRAIN_BUDGET_H
#define SN_TRAIN_BUDGET_H

#include "train/model.h"

typedef struct {
    size_t budget;             /* 0: no limit */
    size_t process, predicted; /* beside the ledger: booked, and expected */
    size_t state;              /* all variables of the network */
    size_t books;              /* on the ledger beside state and arena, and reserved there */
    size_t arena;              /* what is left */
} sn_share;

/* reserve: bytes on the ledger that are still to come. */
SNUG_CHECKED snug_status sn_share_find(const snug_model *m, size_t budget, size_t reserve,
                                       sn_share *out, snug_error *err);

/* Plans s->graph within the budget. A refusal (SNUG_E_BUDGET) says the smallest budget that would
 * do; *floor (may be NULL) gets it, with the arena and seconds of that plan. */
typedef struct {
    size_t budget, arena;
    double seconds;
} sn_budget_floor;
SNUG_CHECKED snug_status sn_model_plan_within(snug_model *m, sn_model_step *s, size_t budget,
                                              sn_share *share, sn_budget_floor *floor,
                                              snug_error *err);

#endif
