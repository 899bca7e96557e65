/* remat_parts.h: what the parts of the recompute search share (remat.c: the door; remat_list.c:
 * lists and what follows from them; remat_greedy.c: a first list; remat_floor.c: the smallest;
 * remat_search.c: better ones).
 *
 * An answer is a list of computations, with repeats. When values are freed follows from it: right
 * after the last use before the next computation of the same operator, or the end. First
 * computations stand in the order of the program. */
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
    uint32_t n_inputs;
    uint32_t most; /* computations a list may have */
} sn_remat_program;

enum { SN_REMAT_BLOCK = 32 };

/* Places are indices in ops. An instance is a value as computed at one place. */
typedef struct {
    uint32_t *ops; /* room for program.most, as all below per place */
    uint32_t n;
    /* What follows from the above, found by sn_remat_measure: */
    uint32_t *end;    /* per place: the last use of the instance; its own place where none */
    uint32_t *before; /* per place: the computation of the same operator before, or NONE */
    size_t *bytes;    /* per place: what is in memory while it is computed */
    size_t *high;     /* per SN_REMAT_BLOCK places: the largest of bytes */
    uint32_t *again;  /* the n_again places with a computation before, ascending */
    uint32_t n_again;
    uint32_t *first, *last; /* per operator: places */
    double cost;
    size_t peak; /* the largest of bytes */
    uint32_t peak_at;
} sn_remat_list;

SNUG_CHECKED snug_status sn_remat_list_init(sn_zone *z, const sn_remat_program *g,
                                            sn_remat_list *out, snug_error *err);
void sn_remat_list_copy(const sn_remat_program *g, sn_remat_list *to, const sn_remat_list *from);

/* Takes repeated computations out that nobody reads, and finds all that follows from the list. */
void sn_remat_measure(const sn_remat_program *g, sn_remat_list *list);
/* The place of the instance of `op` that is read at `place`: the last computation before it; NONE
 * where there is none. */
uint32_t sn_remat_instance(const sn_remat_list *list, uint32_t op, uint32_t place);
/* Whether no place in [from, to] has more than `bytes`; places behind the end have none. Adds what
 * it looked at to *work. */
bool sn_remat_below(const sn_remat_list *list, uint32_t from, uint32_t to, size_t bytes,
                    uint64_t *work);
/* ops[0 .. n) before what stands at `place`; there must be room. Measure afterwards. */
void sn_remat_insert(sn_remat_list *list, uint32_t place, const uint32_t *ops, uint32_t n);
void sn_remat_remove(sn_remat_list *list, uint32_t place);

/* Runs the program in its order; where the budget is full, what costs least per byte and time goes,
 * and is computed again when it is wanted. */
typedef struct sn_remat_greedy sn_remat_greedy;
SNUG_CHECKED snug_status sn_remat_greedy_create(sn_zone *z, const sn_remat_program *g,
                                                sn_remat_greedy **out, snug_error *err);
/* A manner below SN_REMAT_MANNERS: cost counts to the power of 1, 1.5, 2, 3; time not, its root, in
 * full. False: no list within the budget was found. */
enum { SN_REMAT_MANNERS = 12 };
bool sn_remat_greedy_run(sn_remat_greedy *s, size_t budget, uint32_t manner, sn_remat_list *out);

/* The same for the smallest budgets: the inputs of a computation are brought in turn, and may go
 * again until it is theirs. turns: as the problem's inputs, those of each operator in any order. */
bool sn_remat_greedy_run_turns(sn_remat_greedy *s, size_t budget, uint32_t manner, uint32_t *turns,
                               sn_remat_list *out);
/* After a run that failed: the first operator that was not computed; and changes the turns of one
 * that was under way: what it lacked comes first. False: there is none to change. */
uint32_t sn_remat_greedy_reached(const sn_remat_greedy *s);
bool sn_remat_greedy_turn(sn_remat_greedy *s, uint32_t chance);

/* Takes a list of a smaller peak, where one is found (remat_floor.c); the budget is small
 * enough. */
SNUG_CHECKED snug_status sn_remat_floor(sn_zone *z, const sn_remat_program *g, sn_remat_greedy *s,
                                        size_t budget, sn_remat_list *list, snug_error *err);

/* Makes a list that fits the budget cheaper, within the work. */
SNUG_CHECKED snug_status sn_remat_search(sn_zone *z, const sn_remat_program *g,
                                         const sn_remat_limits *l, sn_remat_list *list,
                                         snug_error *err);

#endif
