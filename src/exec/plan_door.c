/* plan_door.c: the public snug_plan: a graph fused and planned for this machine's CPU, without
 * state or memory to run it in. */
#include <snug/plan.h>

#include "base/size.h"
#include "exec/exec.h"

struct snug_plan {
    snug_engine *engine;
    sn_graph *graph;
    sn_plan *plan;
};

void snug_plan_destroy(snug_plan *p) {
    if (!p)
        return;
    sn_plan_destroy(p->plan);
    sn_graph_destroy(p->graph);
    sn_free(p->engine, SN_MEM_PLAN, p, sizeof *p);
}

static snug_status state_of(const sn_graph *g, size_t *out, snug_error *err) {
    *out = 0;
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        size_t bytes;
        SNUG_TRY(snug_type_bytes(&v->type, &bytes, err));
        if (!sn_size_add(*out, bytes, out))
            return sn_fail(err, SNUG_E_OVERFLOW, "the variables exceed the address space");
    }
    return SNUG_OK;
}

/* What variables leave of the budget is the arena's. */
static snug_status plan_within(snug_plan *p, sn_plan_options *o, size_t budget, snug_error *err) {
    sn_plan_floor floor = {.bytes = 0};
    size_t state;
    SNUG_TRY(state_of(p->graph, &state, err));
    o->arena_bytes = budget == 0 ? 0 : budget > state ? budget - state : 1;
    o->floor = &floor;
    const snug_status status = sn_plan_build(p->engine, p->graph, o, &p->plan, err);
    if (status != SNUG_E_BUDGET || budget == 0)
        return status;
    return sn_fail(err, SNUG_E_BUDGET,
                   "no plan of the graph fits %zu bytes: the smallest needs %zu (%zu of variables, "
                   "%zu of arena), with %.3g s a run; give it that, or use a smaller batch",
                   budget, state + floor.bytes, state, floor.bytes, floor.seconds);
}

static snug_status fill_plan(snug_plan *p, const snug_graph *graph, const snug_plan_options *o,
                             snug_error *err) {
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, snug_engine_threads(p->engine), false);
    const sn_device *devices[1] = {&cpu.device};
    sn_plan_options options = {.devices = devices, .n_devices = 1};
    SNUG_TRY(sn_graph_check(graph, false, err));
    SNUG_TRY(sn_graph_fuse(graph, &p->graph, err));
    return plan_within(p, &options, o ? o->budget_bytes : 0, err);
}

snug_status snug_plan_build(snug_engine *engine, const snug_graph *graph,
                            const snug_plan_options *options, snug_plan **out, snug_error *err) {
    SNUG_NEEDS(err, engine && graph && out);
    void *block;
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_PLAN, sizeof(snug_plan), &block, err));
    snug_plan *p = block;
    p->engine = engine;
    const snug_status st = fill_plan(p, graph, options, err);
    if (st == SNUG_OK)
        *out = p;
    else
        snug_plan_destroy(p);
    return st;
}

void snug_plan_summarise(const snug_plan *p, snug_plan_summary *out) {
    if (!(p && out))
        return;
    const sn_plan_memory *arena = &p->plan->memories[SN_MEM_FIRST_ARENA];
    const double bound = (double)arena->lower_bound_bytes;
    sn_plan_categories at;
    sn_plan_peak_categories(p->plan, &at);
    *out = (snug_plan_summary){
        .arena_bytes = arena->bytes,
        .state_bytes = p->plan->memories[SN_MEM_STATE].bytes,
        .lower_bound_bytes = arena->lower_bound_bytes,
        .gap = bound > 0 ? (double)arena->bytes / bound - 1 : 0,
        .input_bytes = at.inputs,
        .activation_bytes = at.activations,
        .gradient_bytes = at.gradients,
        .workspace_bytes = at.workspace,
        .output_bytes = at.outputs,
        .n_steps = p->plan->n_steps,
        .code_bytes = p->plan->code_bytes,
        .flops = p->plan->flops,
        .slices = p->plan->slices,
        .recomputed = p->plan->n_recomputed,
        .run_seconds = p->plan->seconds,
        .plain_seconds = p->plan->plain_seconds,
    };
}

snug_status snug_plan_print(const snug_plan *p, const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, p && out);
    return sn_plan_print(p->plan, out, err);
}
