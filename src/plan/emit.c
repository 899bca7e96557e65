/* emit.c: writes the plan: a step per action, places from buffers and offsets, the two memories,
 * the totals. */
#include "base/size.h"
#include "plan/passes.h"

#include <stdio.h>
#include <string.h>

enum { FILE_MEMORY = SN_MEM_FIRST_ARENA + 1 }; /* of spilled values */

/* Where a value lies; copy SN_NO_BUFFER: in its home. `label`: as it is read or made in a block, or
 * NULL outside of blocks. */
static sn_place place_of(const sn_planner *p, const sn_layout *l, sn_value v, uint32_t copy,
                         const sn_label *label) {
    const sn_program *program = l->program;
    const bool home = copy == SN_NO_BUFFER;
    sn_place place = {.value = v, .memory = home ? SN_MEM_STATE : SN_MEM_FIRST_ARENA, .rows = -1};
    if (!home)
        place.offset = l->items[l->copies[copy].buffer].offset;
    if (!label || label->axis < 0)
        return place;
    place.axis = label->axis;
    place.rows = program->slices->rows * label->inner;
    if (home || !l->copies[copy].local)
        place.stride =
            p->bytes[v.i] / (size_t)program->split->extent * (size_t)program->slices->rows;
    return place;
}

static bool in_block(const sn_layout *l, uint32_t now) {
    return l->block_of[now] != UINT32_MAX;
}

/* Of operand k of the node that action `now` runs. */
static sn_place operand_place(const sn_planner *p, const sn_layout *l, uint32_t now, int k) {
    const uint32_t id = l->program->actions[now].id, copy = l->copy[l->operand[now] + (uint32_t)k];
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){id});
    const sn_value v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
    if (!in_block(l, now))
        return place_of(p, l, v, copy, NULL);
    const sn_label label = sn_split_label(p, l->program->split, id, k);
    return place_of(p, l, v, copy, &label);
}

static snug_status make_places(sn_planner *p, uint16_t n, sn_place **out, snug_error *err) {
    return sn_plan_array(p->plan->zone, n, sizeof **out, out, err);
}

static snug_status emit_transfer(sn_planner *p, const sn_layout *l, uint32_t now, sn_step *step,
                                 snug_error *err) {
    const bool is_feed = step->kind == SN_STEP_FEED;
    const uint32_t id = l->program->actions[now].id, *copy = &l->copy[l->operand[now]];
    const sn_value v = is_feed ? sn_graph_input_at(p->graph, id) : (sn_value){id};
    sn_place *in, *out;
    SNUG_TRY(make_places(p, 1, &in, err));
    SNUG_TRY(make_places(p, 1, &out, err));
    const sn_label *label = in_block(l, now) ? &l->program->split->label[v.i] : NULL;
    *in = place_of(p, l, v, copy[0], label);
    *out = place_of(p, l, v, copy[is_feed ? 0 : 1], label);
    if (!is_feed && !sn_plan_in_state(p, id)) {
        sn_place *const file = copy[0] == SN_NO_BUFFER ? in : out;
        *file = (sn_place){.value = v, .memory = FILE_MEMORY, .offset = p->file_at[id], .rows = -1};
    }
    step->input = is_feed ? id : 0;
    step->n_in = is_feed ? 0 : 1;
    step->n_out = 1;
    step->in = in;
    step->out = out;
    return SNUG_OK;
}

/* Sums over the batch begin with the first slice. */
static bool adds_up(const sn_layout *l, const sn_node_info *n, uint32_t now) {
    return in_block(l, now) && n->n_out > 0 && l->program->split->label[n->out[0].i].axis < 0;
}

static snug_status emit_run(sn_planner *p, const sn_layout *l, uint32_t now, sn_step *step,
                            snug_error *err) {
    const uint32_t id = l->program->actions[now].id;
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){id});
    const sn_variant *variant =
        in_block(l, now) ? &l->program->slices->variant[id] : &p->variant[id];
    sn_place *in, *out;
    SNUG_TRY(make_places(p, n->n_in, &in, err));
    SNUG_TRY(make_places(p, n->n_out, &out, err));
    for (int k = 0; k < n->n_in; k++)
        in[k] = operand_place(p, l, now, k);
    for (int k = 0; k < n->n_out; k++)
        out[k] = operand_place(p, l, now, n->n_in + k);
    step->node = (sn_node){id};
    step->n_in = n->n_in;
    step->n_out = n->n_out;
    step->in = in;
    step->out = out;
    step->accumulate = adds_up(l, n, now) ? SN_ACC_ADD_LATER : SN_ACC_STORE;
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

static snug_status emit_step(sn_planner *p, const sn_layout *l, uint32_t now, snug_error *err) {
    sn_step *const step = &p->plan->steps[now];
    step->kind = l->program->actions[now].kind;
    if (step->kind == SN_STEP_RUN)
        return emit_run(p, l, now, step, err);
    if (step->kind == SN_STEP_FEED || step->kind == SN_STEP_COPY)
        return emit_transfer(p, l, now, step, err);
    if (step->kind == SN_STEP_REPEAT) {
        step->repeat = l->program->slices->repeat;
        step->rows = l->program->slices->rows;
        step->last = l->program->slices->last;
    }
    return SNUG_OK;
}

static void raise_used(sn_plan *plan, const sn_place *place) {
    sn_plan_memory *m = &plan->memories[place->memory];
    const size_t top = place->offset + sn_plan_place_bytes(plan, place);
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
    plan->n_memories = p->file_bytes > 0 ? FILE_MEMORY + 1 : FILE_MEMORY;
    if (p->file_bytes > 0)
        plan->memories[FILE_MEMORY] = (sn_plan_memory){.name = "spill",
                                                       .kind = SN_MEMORY_FILE,
                                                       .bytes = p->file_bytes,
                                                       .lower_bound_bytes = p->file_bytes};
    snprintf(state->name, sizeof state->name, "state");
    snprintf(plan->memories[SN_MEM_FIRST_ARENA].name, sizeof state->name, "arena");
    for (uint32_t i = 0; i < sn_graph_n_vars(p->graph); i++) {
        const sn_variable *var = sn_graph_var_at(p->graph, (sn_var){i});
        if (!sn_plan_spills(plan, (sn_var){i}) &&
            !sn_size_add(state->bytes, p->bytes[var->first.i], &state->bytes))
            return sn_fail(err, SNUG_E_OVERFLOW,
                           "plan: variables up to '%s' exceed the address space", var->name);
    }
    state->used_bytes = state->lower_bound_bytes = state->bytes;
    count_used(plan);
    return SNUG_OK;
}

snug_status sn_plan_emit(sn_planner *p, const sn_layout *l, snug_error *err) {
    sn_plan *plan = p->plan;
    const uint32_t n_outputs = sn_graph_n_outputs(p->graph), n = l->program->n;
    sn_place *outputs;
    SNUG_TRY(sn_plan_array(plan->zone, n, sizeof *plan->steps, &plan->steps, err));
    SNUG_TRY(sn_plan_array(plan->zone, n_outputs, sizeof *outputs, &outputs, err));
    for (uint32_t t = 0; t < n; t++)
        SNUG_TRY(emit_step(p, l, t, err));
    plan->n_steps = n;
    plan->peak_step = l->peak;
    for (uint32_t i = 0; i < n_outputs; i++)
        outputs[i] = place_of(p, l, sn_graph_output_at(p->graph, i), l->output[i], NULL);
    plan->outputs = outputs;
    plan->spilled_value_bytes = p->file_bytes;
    SNUG_TRY(sn_spill_queues(p, l, err));
    SNUG_TRY(sn_spill_emit(p, l, err));
    return describe_memories(p, err);
}
