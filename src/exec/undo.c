/* undo.c: writes of variables taken back. What a plan writes before a step that may refuse its
 * values it has copied into an arena first, and the copies stay there to the end of the run
 * (plan/take_back.c; the checker has seen to it). Where one refuses, they are copied back.
 *
 * Invariants:
 * 1. A plan without such a step costs nothing: undone.end is 0.
 * 2. Nothing is asked for here: the copies are steps of the plan, and bytes of its arena. */
#include "exec/inside.h"

/* The step, the other way round. */
static snug_status copy_back(sn_session *s, const sn_bound *bound) {
    sn_runner *r = sn_runner_of_step(s, bound);
    snug_view views[2] = {bound->whole.views[1], bound->whole.views[0]};
    const sn_bound_shape back = {.views = views};
    views[0].data = bound->base[1];
    views[1].data = bound->base[0];
    SNUG_TRY(r->kind->copy(r, s, bound, 0, &back, NULL));
    return r->kind->reach(r, s, bound->step->queue, NULL);
}

/* Another lane may be further than the step that failed, at a write that no copy is of. */
bool sn_undo_restore(sn_session *s) {
    bool can = !s->wrote_late;
    for (uint32_t i = 0; can && i < s->undone.n; i++)
        if (s->done[s->undone.steps[i]] > 0)
            can = copy_back(s, &s->bound[s->undone.steps[i]]) == SNUG_OK;
    return can;
}
