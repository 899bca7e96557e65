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

static snug_status check_budget(const sn_plan *p, size_t budget_bytes, snug_error *err) {
    const sn_plan_memory *state = &p->memories[SN_MEM_STATE];
    const sn_plan_memory *arena = &p->memories[SN_MEM_FIRST_ARENA];
    size_t need = SIZE_MAX;
    if (budget_bytes == 0 ||
        (sn_size_add(state->bytes, arena->bytes, &need) && need <= budget_bytes))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_BUDGET,
                   "the graph needs %zu bytes (%zu of variables, %zu of arena), the budget is %zu; "
                   "use a smaller batch or a budget of at least %zu",
                   need, state->bytes, arena->bytes, budget_bytes, need);
}

static snug_status fill_plan(snug_plan *p, const snug_graph *graph, const snug_plan_options *o,
                             snug_error *err) {
    sn_cpu_device cpu;
    sn_cpu_device_of(p->engine, &cpu);
    const sn_device *devices[1] = {&cpu.device};
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    SNUG_TRY(sn_graph_check(graph, false, err));
    SNUG_TRY(sn_graph_fuse(graph, &p->graph, err));
    SNUG_TRY(sn_plan_build(p->engine, p->graph, &options, &p->plan, err));
    return check_budget(p->plan, o ? o->budget_bytes : 0, err);
}

snug_status snug_plan_build(snug_engine *engine, const snug_graph *graph,
                            const snug_plan_options *options, snug_plan **out, snug_error *err) {
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
    };
}

snug_status snug_plan_print(const snug_plan *p, const snug_writer *out, snug_error *err) {
    return sn_plan_print(p->plan, out, err);
}
