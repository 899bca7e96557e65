/* liveness.c: closes lifetimes, pads workspaces and finds the bound: the largest sum of bytes live
 * in one action. A buffer lives from the action that first writes it through the last one that
 * needs it; outputs to the end. */
#include "base/size.h"
#include "plan/passes.h"

static snug_status close_lifetimes(const sn_planner *p, sn_layout *l, snug_error *err) {
    for (uint32_t b = 0; b < l->n_items; b++) {
        sn_pack_item *item = &l->items[b];
        if (item->upper < l->n_actions)
            item->upper++;
        if (!sn_size_align(item->size, p->device->align, &item->size))
            return sn_fail(err, SNUG_E_OVERFLOW, "plan: a workspace exceeds the address space");
    }
    return SNUG_OK;
}

snug_status sn_plan_liveness(sn_planner *p, sn_layout *l, snug_error *err) {
    size_t *born, *dead, live = 0;
    SNUG_TRY(close_lifetimes(p, l, err));
    SNUG_TRY(sn_plan_array(p->work, (size_t)l->n_actions + 1, sizeof *born, &born, err));
    SNUG_TRY(sn_plan_array(p->work, (size_t)l->n_actions + 1, sizeof *dead, &dead, err));
    for (uint32_t b = 0; b < l->n_items; b++) {
        const sn_pack_item *item = &l->items[b];
        if (!sn_size_add(born[item->lower], item->size, &born[item->lower]))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "plan: the values of step %u exceed the address space; use a smaller batch",
                item->lower);
        dead[item->upper] += item->size;
    }
    l->bound = 0;
    l->peak = 0;
    for (uint32_t t = 0; t < l->n_actions; t++) {
        live -= dead[t];
        if (!sn_size_add(live, born[t], &live))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "plan: live values at step %u exceed the address space; use a smaller batch", t);
        if (live > l->bound) {
            l->bound = live;
            l->peak = t;
        }
    }
    return SNUG_OK;
}
