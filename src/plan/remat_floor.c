/* remat_floor.c: the smallest peak that a list of computations can have, at any cost.
 *
 * A greedy run in which inputs come in turns (remat_greedy.c) fails only where the inputs that came
 * first leave no room for another one to be made. Then that one should have come before them: of
 * some operator under way there the turns are changed, and the run is made again. Changes stay as
 * long as the run gets no less far than before them.
 *
 * Invariant: a budget that was found as the floor of a problem is reached again when it is asked
 * for: the way down does not depend on the budget, but for where it ends. */
#include "plan/remat_parts.h"

#include <string.h>

enum { TRIES = 16, PARTS = 8 }; /* to reach a peak; the smallest part to go down by */
#define SEED      UINT64_C(0x9e3779b97f4a7c15)
#define WORK      UINT64_C(20000) /* per operator, at most */
#define MOST_WORK UINT64_C(20000000)

typedef struct {
    const sn_remat_program *g;
    sn_remat_greedy *greedy;
    uint32_t *turns, *before; /* as the problem's inputs */
    uint64_t random, spent, limit;
    sn_remat_list trial;
} search;

static uint32_t draw(search *s) {
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (uint32_t)(s->random >> 33);
}

static void start(search *s) {
    memcpy(s->turns, s->g->p->inputs, s->g->n_inputs * sizeof *s->turns);
    s->random = SEED;
    s->spent = 0;
}

static bool run(search *s, size_t budget) {
    const uint32_t manner = draw(s) % SN_REMAT_MANNERS;
    const bool fits = sn_remat_greedy_run_turns(s->greedy, budget, manner, s->turns, &s->trial);
    s->spent += 16 * (uint64_t)s->trial.n + s->g->n_inputs;
    return fits;
}

/* Whether the turns can be made to fit the budget. */
static bool reach(search *s, size_t budget) {
    const size_t bytes = s->g->n_inputs * sizeof *s->turns;
    uint32_t furthest = 0;
    for (int i = 0; i < TRIES && s->spent < s->limit; i++) {
        if (run(s, budget))
            return true;
        const uint32_t reached = sn_remat_greedy_reached(s->greedy);
        if (reached >= furthest)
            memcpy(s->before, s->turns, bytes);
        else
            memcpy(s->turns, s->before, bytes);
        furthest = reached > furthest ? reached : furthest;
        if (!sn_remat_greedy_turn(s->greedy, draw(s)))
            return false;
    }
    return false;
}

/* By a part of what is above the bound, and by a smaller part when that fails. */
static void go_down(search *s, size_t budget, sn_remat_list *list) {
    for (uint32_t part = 1; part <= PARTS && s->spent < s->limit && list->peak > budget;) {
        const size_t above = list->peak - s->g->bound;
        if (above == 0)
            break;
        if (reach(s, list->peak - 1 - (above - 1) / part))
            sn_remat_list_copy(s->g, list, &s->trial);
        else
            part *= 2;
    }
}

snug_status sn_remat_floor(sn_zone *z, const sn_remat_program *g, sn_remat_greedy *greedy,
                           size_t budget, sn_remat_list *list, snug_error *err) {
    const uint64_t enough = WORK * g->p->n;
    search s = {.g = g, .greedy = greedy, .limit = enough < MOST_WORK ? enough : MOST_WORK};
    void *mem;
    if (list->peak <= budget)
        return SNUG_OK;
    SNUG_TRY(sn_remat_list_init(z, g, &s.trial, err));
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)g->n_inputs * sizeof *s.turns, &mem, err));
    s.turns = mem;
    s.before = s.turns + g->n_inputs;
    start(&s);
    if (budget >= g->bound && reach(&s, budget)) {
        sn_remat_list_copy(g, list, &s.trial);
        return SNUG_OK;
    }
    start(&s);
    go_down(&s, budget, list);
    return SNUG_OK;
}
