/* build.c: the planner as a list of passes. What they make is given to the checker, in every build.
 */
#include "base/size.h"
#include "plan/passes.h"

#include <stdio.h>

snug_status sn_plan_array(sn_zone *z, size_t n, size_t elem_bytes, void *out, snug_error *err) {
    size_t bytes;
    if (!sn_size_mul(n, elem_bytes, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "plan: an array of %zu elements of %zu bytes is too large", n, elem_bytes);
    void *block;
    SNUG_TRY(sn_zone_alloc(z, bytes, &block, err));
    *(void **)out = block;
    return SNUG_OK;
}

static snug_status check_options(const sn_graph *g, const sn_plan_options *o, snug_error *err) {
    if (o->n_devices < 1 || o->n_devices > SN_MAX_DEVICES)
        return sn_fail(err, SNUG_E_INVALID, "plan: %d devices given, 1 to %d can be used",
                       o->n_devices, SN_MAX_DEVICES);
    if (sn_graph_n_nodes(g) > UINT32_MAX / 64 || sn_graph_n_values(g) > UINT32_MAX / 64)
        return sn_fail(err, SNUG_E_OVERFLOW, "plan: a graph of %u nodes is too large",
                       sn_graph_n_nodes(g));
    return SNUG_OK;
}

static snug_status create_plan(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                               sn_plan **out, snug_error *err) {
    sn_zone *z = NULL;
    sn_plan *plan = NULL;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    const snug_status st = sn_plan_array(z, 1, sizeof *plan, &plan, err);
    if (st != SNUG_OK) {
        sn_zone_destroy(z);
        return st;
    }
    plan->zone = z;
    plan->graph = g;
    plan->n_devices = (uint32_t)o->n_devices;
    for (int d = 0; d < o->n_devices; d++) {
        snprintf(plan->device_names[d], sizeof plan->device_names[d], "%s", o->devices[d]->name);
        plan->device_align[d] = o->devices[d]->align;
    }
    *out = plan;
    return SNUG_OK;
}

static snug_status run_passes(sn_planner *p, const sn_plan_options *o, snug_error *err) {
    SNUG_TRY(sn_plan_describe(p, err));
    SNUG_TRY(sn_plan_readers(p, err));
    SNUG_TRY(sn_plan_choose(p, o, err));
    return sn_plan_summarise(p->plan, err);
}

/* A plan of our own that the checker refuses is a bug of the planner, not of the caller. */
static snug_status check_own(const sn_plan *p, const sn_plan_options *o, snug_error *err) {
    const snug_status st = sn_plan_check(p, o->devices, o->n_devices, err);
    if (st != SNUG_E_INVALID)
        return st;
    (void)sn_fail_in(err, st, "the planner made a plan that is wrong; please report it");
    if (err)
        err->code = SNUG_E_INTERNAL;
    return SNUG_E_INTERNAL;
}

static sn_planner planner_of(snug_engine *e, const sn_graph *g, const sn_plan_options *o) {
    return (sn_planner){.engine = e,
                        .graph = g,
                        .device = o->devices[0],
                        .n_nodes = sn_graph_n_nodes(g),
                        .n_values = sn_graph_n_values(g)};
}

snug_status sn_plan_build(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                          sn_plan **out, snug_error *err) {
    SNUG_TRY(check_options(g, o, err));
    sn_planner p = planner_of(e, g, o);
    SNUG_TRY(create_plan(e, g, o, &p.plan, err));
    snug_status st = sn_zone_create(e, SN_MEM_PLAN, &p.work, err);
    if (st == SNUG_OK)
        st = run_passes(&p, o, err);
    sn_zone_destroy(p.work);
    if (st == SNUG_OK)
        st = check_own(p.plan, o, err);
    if (st != SNUG_OK) {
        sn_plan_destroy(p.plan);
        return st;
    }
    *out = p.plan;
    return SNUG_OK;
}

snug_status sn_plan_curve(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                          sn_plan_point *out, uint32_t max, uint32_t *n, snug_error *err) {
    SNUG_TRY(check_options(g, o, err));
    sn_planner p = planner_of(e, g, o);
    SNUG_TRY(create_plan(e, g, o, &p.plan, err));
    snug_status st = sn_zone_create(e, SN_MEM_PLAN, &p.work, err);
    if (st == SNUG_OK)
        st = sn_plan_describe(&p, err);
    if (st == SNUG_OK)
        st = sn_plan_readers(&p, err);
    if (st == SNUG_OK)
        st = sn_plan_front(&p, o, out, max, n, err);
    sn_zone_destroy(p.work);
    sn_plan_destroy(p.plan);
    return st;
}

void sn_plan_destroy(sn_plan *p) {
    if (p)
        sn_zone_destroy(p->zone);
}
