/* share.h: THE place where it is decided how much of a budget a plan may take. Every door asks it
 * before an arena is made: steps of models (train/step_budget.c, step_budget_gpu.c), recorded steps
 * (record/record_cache.c, record_card.c). What asks for less than an arena passes the gate of
 * src/memory, or the card's (sn_gpu_take), with each request.
 *
 *     budget = process (measured, and what will come) + page tables + state + books + arena
 *
 * On a card the context stands for the process, there are no page tables, and state and arena are
 * whole granules.
 *
 *     sn_share s;
 *     const sn_share_need need = {.state = ..., .books = ..., .code_bytes = plan->code_bytes};
 *     sn_share_find(engine, budget, &need, &s, err);
 *     s.arena                              // what an arena and the steps of its plan may have
 *     sn_share_budget(&s, arena_bytes)     // the smallest budget that has so much for them */
#ifndef SN_BUDGET_SHARE_H
#define SN_BUDGET_SHARE_H

#include "memory/process.h"
#include "op/runner.h"

/* What there is, or will be, beside the arena. */
typedef struct {
    size_t state;      /* variables; on the host in whole pages */
    size_t books;      /* the rest of the ledger: now, and what is to come */
    size_t code_bytes; /* a bound of the code that kernels make, or of what libraries take */
} sn_share_need;

typedef struct {
    size_t budget;   /* 0: no limit */
    size_t process;  /* the most to expect beside the ledger, without page tables */
    size_t expected; /* of it, what is expected */
    size_t tables;   /* page tables of the budget */
    size_t differ;   /* what the next process of the kind may have more (sn_process_differ) */
    size_t state;    /* as needed */
    size_t books;    /* as needed */
    size_t arena;    /* what is left */
    size_t missing;  /* what the others have too many, where nothing is left */
    size_t granule;  /* on a GPU: memory there is given in multiples of this; else 0 */
} sn_share;

/* Of the host's memory. */
SNUG_CHECKED snug_status sn_share_find(snug_engine *e, size_t budget, const sn_share_need *need,
                                       sn_share *out, snug_error *err);
/* Of a card's memory, of which the facts are what its driver told last. Where what libraries take
 * is known only with a plan (code_bytes is 0), who plans takes it from the arena (room.h). */
void sn_share_find_card(const sn_gpu_facts *f, size_t budget, const sn_share_need *need,
                        sn_share *out);
/* The budget there: as asked for, but no more than this process can have; 0: all of that. */
size_t sn_share_of_card(const sn_gpu_facts *f, size_t asked);
/* The smallest budget that leaves so many bytes, for any process that is as this one but for some
 * pages; in whole pages, as a cgroup counts. */
size_t sn_share_budget(const sn_share *s, size_t arena_bytes);

static inline size_t sn_in_pages(size_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

#endif
