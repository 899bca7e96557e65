/* undo.c: taking writes of variables back. A plan checks its values before it writes variables
 * (graph/fuse.c), but for a check that needs what was written. Where a plan has such a one, what is
 * written before the last of them is copied first, and comes back when the run fails there.
 *
 * Invariants:
 * 1. A plan without such a check costs nothing: undo_end is 0.
 * 2. The copy lives from before the first step to the end of the run. Where there is no memory for
 *    it the run goes on without, and a failure leaves the state torn. */
#include "exec/inside.h"

#include <string.h>

/* Steps up to the last that may refuse its values behind a write; 0: there is none, or one writes
 * where there is no taking back: in slices, to a file, on a device. */
uint32_t sn_undo_end(const sn_session *s) {
    const sn_plan *plan = s->plan;
    bool wrote = false;
    uint32_t end = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const sn_step *step = &plan->steps[i];
        const sn_bound *bound = &s->bound[i];
        if (step->kind == SN_STEP_REPEAT || step->kind == SN_STEP_END)
            continue;
        if (bound->writes_state && (bound->block != SN_NO_BLOCK || step->kind != SN_STEP_RUN ||
                                    !sn_runner_of_step(s, bound)->kind->undoes))
            return end;
        wrote = wrote || bound->writes_state;
        if (wrote && step->kind == SN_STEP_RUN &&
            sn_ops[sn_graph_node_at(plan->graph, step->node)->op].effect == SN_MAYFAIL)
            end = i + 1;
    }
    return end;
}

/* Copies what steps write to `kept`, in order, or back from there, the last first: of a variable
 * that is written twice the oldest bytes stay. NULL: counts only. */
static size_t each_write(const sn_session *s, unsigned char *kept, size_t all, bool back) {
    size_t bytes = 0;
    for (uint32_t k = 0; k < s->undo_end; k++) {
        const sn_bound *bound = &s->bound[back ? s->undo_end - 1 - k : k];
        const sn_step *step = bound->step;
        for (uint32_t j = 0; bound->writes_state && j < step->n_out; j++) {
            const uint32_t at = step->n_in + (back ? step->n_out - 1 - j : j);
            const sn_place *place = &step->out[at - step->n_in];
            const snug_view *view = &bound->whole.views[at];
            unsigned char *data = bound->base[at] ? bound->base[at] : view->data;
            if (place->memory != SN_MEM_STATE)
                continue;
            bytes += view->bytes;
            if (kept && back)
                memcpy(data, kept + all - bytes, view->bytes);
            else if (kept)
                memcpy(kept + bytes - view->bytes, data, view->bytes);
        }
    }
    return bytes;
}

void sn_undo_begin(sn_session *s) {
    s->undo_bytes = s->undo_end ? each_write(s, NULL, 0, false) : 0;
    if (!s->undo_bytes ||
        sn_alloc(s->executor->engine, SN_MEM_OTHER, s->undo_bytes, &s->undo, NULL) != SNUG_OK)
        s->undo = NULL;
    else
        each_write(s, s->undo, s->undo_bytes, false);
}

/* Another lane may be further than the step that failed, at a write that was not copied. */
bool sn_undo_restore(sn_session *s) {
    const bool can = s->undo && s->failed_step < s->undo_end && !s->wrote_late;
    if (can)
        each_write(s, s->undo, s->undo_bytes, true);
    return can;
}

void sn_undo_clear(sn_session *s) {
    if (s->undo)
        sn_free(s->executor->engine, SN_MEM_OTHER, s->undo, s->undo_bytes);
    s->undo = NULL;
}
