/* emit.c: writes the plan: a step per action, places from buffers and offsets, the two memories,
 * the totals. */
#include "base/size.h"
#include "plan/passes.h"

#include <stdio.h>
#include <string.h>

static sn_place in_arena(const sn_layout *l, sn_value v) {
    return (sn_place){.value = v,
                      .memory = SN_MEM_FIRST_ARENA,
                      .offset = l->items[l->buffer[v.i]].offset,
                      .rows = -1};
}

/* Variables are read in their homes; a kept version is read in its copy once its update has run. */
static sn_place place_of(const sn_planner *p, const sn_layout *l, sn_value v, uint32_t now) {
    const bool gone = l->copied_at[v.i] != UINT32_MAX && now > l->at[p->updater[v.i]];
    if (sn_plan_in_state(p, v.i) && !gone)
        return (sn_place){.value = v, .memory = SN_MEM_STATE, .rows = -1};
    return in_arena(l, v);
}

static snug_status make_places(sn_planner *p, uint16_t n, sn_place **out, snug_error *err) {
    return sn_plan_array(p->plan->zone, n, sizeof **out, out, err);
}

static snug_status emit_transfer(sn_planner *p, const sn_layout *l, uint32_t now, sn_step *step,
                                 snug_error *err) {
    const bool is_feed = step->kind == SN_STEP_FEED;
    const uint32_t id = l->actions[now].id;
    const sn_value v = is_feed ? sn_graph_input_at(p->graph, id) : (sn_value){id};
    sn_place *in, *out;
    SNUG_TRY(make_places(p, 1, &in, err));
    SNUG_TRY(make_places(p, 1, &out, err));
    *in = place_of(p, l, v, now);
    *out = in_arena(l, v);
    step->input = is_feed ? id : 0;
    step->n_in = is_feed ? 0 : 1;
    step->n_out = 1;
    step->in = in;
    step->out = out;
    return SNUG_OK;
}

static snug_status emit_run(sn_planner *p, const sn_layout *l, uint32_t now, sn_step *step,
                            snug_error *err) {
    const uint32_t id = l->actions[now].id;
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){id});
    const sn_variant *variant = &p->variant[id];
    sn_place *in, *out;
    SNUG_TRY(make_places(p, n->n_in, &in, err));
    SNUG_TRY(make_places(p, n->n_out, &out, err));
    for (int k = 0; k < n->n_in; k++)
        in[k] = place_of(p, l, n->in[k], now);
    for (int k = 0; k < n->n_out; k++)
        out[k] = place_of(p, l, n->out[k], now);
    step->node = (sn_node){id};
    step->n_in = n->n_in;
    step->n_out = n->n_out;
    step->in = in;
    step->out = out;
    step->variant = variant->id;
    memcpy(step->impl, variant->impl, sizeof step->impl);
    step->impl[sizeof step->impl - 1] = '\0';
    if (l->workspace[now] != SN_NO_BUFFER) {
        step->ws_memory = SN_MEM_FIRST_ARENA;
        step->ws_offset = l->items[l->workspace[now]].offset;
        step->ws_bytes = variant->workspace_bytes;
    }
    p->plan->flops += variant->flops;
    p->plan->code_bytes += variant->code_bytes;
    return SNUG_OK;
}

static void raise_used(sn_plan *plan, const sn_place *place) {
    sn_plan_memory *m = &plan->memories[place->memory];
    const size_t top = place->offset + plan->value_bytes[place->value.i];
    if (place->memory != SN_MEM_STATE && top > m->used_bytes)
        m->used_bytes = top;
}

static void count_used(sn_plan *plan) {
    sn_plan_memory *arena = &plan->memories[SN_MEM_FIRST_ARENA];
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const sn_step *s = &plan->steps[i];
        for (int k = 0; k < s->n_in; k++)
            raise_used(plan, &s->in[k]);
        for (int k = 0; k < s->n_out; k++)
            raise_used(plan, &s->out[k]);
        if (s->ws_bytes > 0 && s->ws_offset + s->ws_bytes > arena->used_bytes)
            arena->used_bytes = s->ws_offset + s->ws_bytes;
    }
}

static snug_status describe_memories(sn_planner *p, snug_error *err) {
    sn_plan *plan = p->plan;
    sn_plan_memory *state = &plan->memories[SN_MEM_STATE];
    plan->n_memories = 2;
    snprintf(state->name, sizeof state->name, "state");
    snprintf(plan->memories[SN_MEM_FIRST_ARENA].name, sizeof state->name, "arena");
    for (uint32_t i = 0; i < sn_graph_n_vars(p->graph); i++) {
        const sn_variable *var = sn_graph_var_at(p->graph, (sn_var){i});
        if (!sn_size_add(state->bytes, p->bytes[var->first.i], &state->bytes))
            return sn_fail(err, SNUG_E_OVERFLOW,
                           "plan: variables up to '%s' exceed the address space", var->name);
    }
    state->used_bytes = state->lower_bound_bytes = state->bytes;
    count_used(plan);
    return SNUG_OK;
}

snug_status sn_plan_emit(sn_planner *p, sn_layout *l, snug_error *err) {
    sn_plan *plan = p->plan;
    const uint32_t n_outputs = sn_graph_n_outputs(p->graph);
    sn_place *outputs;
    SNUG_TRY(sn_plan_array(plan->zone, l->n_actions, sizeof *plan->steps, &plan->steps, err));
    SNUG_TRY(sn_plan_array(plan->zone, n_outputs, sizeof *outputs, &outputs, err));
    for (uint32_t t = 0; t < l->n_actions; t++) {
        sn_step *step = &plan->steps[t];
        step->kind = l->actions[t].kind;
        SNUG_TRY(step->kind == SN_STEP_RUN ? emit_run(p, l, t, step, err)
                                           : emit_transfer(p, l, t, step, err));
    }
    plan->n_steps = l->n_actions;
    plan->peak_step = l->peak;
    for (uint32_t i = 0; i < n_outputs; i++)
        outputs[i] = place_of(p, l, sn_graph_output_at(p->graph, i), l->n_actions);
    plan->outputs = outputs;
    return describe_memories(p, err);
}
