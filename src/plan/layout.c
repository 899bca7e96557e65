/* layout.c: from a list of actions to buffers with lifetimes.
 *
 * Each making of a value is a *copy*; readers see the newest one. A copy made in a block and read
 * there only is local: its buffer holds a slice at a time. Every other copy is whole; a block that
 * makes or reads it needs it from its REPEAT through its END, because iterations come back to it.
 *
 * Values that share bytes by ALIAS rows are one copy from the start; an output moves into an
 * input's buffer where the table allows it, the sizes are equal and nobody reads the input later.
 * A whole value that a block makes takes the buffer of one that the block has read for the last
 * time: each iteration writes the rows that it needs no more.
 * STATE outputs lie in the homes of their variables, values outside in the caller's memory: they
 * have no buffer. */
#include "base/size.h"
#include "plan/passes.h"

#include <string.h>

#define NONE UINT32_MAX

typedef struct {
    sn_planner *p;
    const sn_program *program;
    sn_layout *l;
    uint32_t block;   /* the REPEAT we are in, or NONE */
    uint32_t *newest; /* per value: its copy, or NONE: in its home */
    uint32_t *set_by; /* per variable version: the copy to be read once its update has run */
    uint32_t *last;   /* per item: the last action that reads it, before blocks stretch it */
    uint32_t *gone;   /* whole copies that nobody reads behind this action of this block */
    uint32_t n_gone;
} layer_out;

static const sn_node_info *node_at(const layer_out *s, uint32_t i) {
    return sn_graph_node_at(s->p->graph, (sn_node){i});
}

static bool has_label(const layer_out *s, uint32_t v) {
    return s->program->split && s->program->split->label[v].axis >= 0;
}

/* --- copies ----------------------------------------------------------------------------------- */
static uint32_t make_copy(layer_out *s, uint32_t v, uint32_t now) {
    const uint32_t c = s->l->n_copies++;
    s->l->copies[c] = (sn_copy){.value = v,
                                .last = now,
                                .block = s->block,
                                .buffer = SN_NO_BUFFER,
                                .local = s->block != NONE && has_label(s, v)};
    s->newest[v] = c;
    return c;
}

static uint32_t read_copy(layer_out *s, uint32_t v, uint32_t now) {
    const uint32_t c = s->newest[s->p->root[v]];
    if (c == NONE)
        return NONE;
    sn_copy *const copy = &s->l->copies[c];
    copy->last = now;
    copy->local = copy->local && copy->block == s->block;
    return c;
}

static uint32_t write_output(layer_out *s, uint32_t v, uint32_t now) {
    if (sn_plan_elsewhere(s->p, v))
        return NONE;
    return s->p->root[v] == v ? make_copy(s, v, now) : s->newest[s->p->root[v]];
}

static void resolve_run(layer_out *s, uint32_t node, uint32_t now, uint32_t *out) {
    const sn_node_info *n = node_at(s, node);
    for (int k = 0; k < n->n_in; k++)
        *out++ = read_copy(s, n->in[k].i, now);
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t old = k < n->n_in ? n->in[k].i : 0;
        if (k < sn_op_versions(n->op, n->n_out) && s->set_by[old] != NONE)
            s->newest[old] = s->set_by[old];
        *out++ = write_output(s, n->out[k].i, now);
    }
}

/* To the file, where the bytes are needed a while longer, or back. */
static void resolve_spill(layer_out *s, uint32_t now, uint32_t *out) {
    const sn_action *a = &s->program->actions[now];
    const uint32_t end = s->program->n - 1;
    out[0] = a->back ? NONE : read_copy(s, a->id, now);
    out[1] = a->back ? make_copy(s, a->id, now) : NONE;
    if (!a->back)
        s->l->copies[out[0]].last = a->hold < end - now ? now + a->hold : end;
}

static void resolve_action(layer_out *s, uint32_t now, uint32_t *out) {
    const sn_action a = s->program->actions[now];
    if (a.kind == SN_STEP_REPEAT) {
        s->block = now;
    } else if (a.kind == SN_STEP_END) {
        s->l->end_of[s->block] = now;
        s->block = NONE;
    } else if (a.kind == SN_STEP_FEED) {
        *out = make_copy(s, sn_graph_input_at(s->p->graph, a.id).i, now);
    } else if (a.kind == SN_STEP_COPY && !sn_plan_in_state(s->p, a.id)) {
        resolve_spill(s, now, out);
    } else if (a.kind == SN_STEP_COPY) {
        out[0] = NONE;
        out[1] = s->set_by[a.id] = make_copy(s, a.id, now);
        s->newest[a.id] = NONE; /* the home is good until the update */
    } else {
        resolve_run(s, a.id, now, out);
    }
}

static uint32_t n_operands(const layer_out *s, const sn_action *a) {
    if (a->kind == SN_STEP_RUN)
        return (uint32_t)node_at(s, a->id)->n_in + node_at(s, a->id)->n_out;
    return a->kind == SN_STEP_FEED ? 1 : a->kind == SN_STEP_COPY ? 2 : 0;
}

static uint32_t n_outputs_of(const layer_out *s, const sn_action *a) {
    if (a->kind == SN_STEP_RUN)
        return node_at(s, a->id)->n_out;
    return a->kind == SN_STEP_FEED || a->kind == SN_STEP_COPY ? 1 : 0;
}

/* What can be taken back stays to the end: a device may say late that a row has refused its values,
 * when steps behind that have run. */
static void hold_saved(layer_out *s) {
    for (uint32_t c = 0; c < s->l->n_copies; c++)
        if (s->p->saved[s->l->copies[c].value])
            s->l->copies[c].last = s->program->n - 1;
}

static snug_status resolve(layer_out *s, sn_zone *z, snug_error *err) {
    sn_layout *const l = s->l;
    const uint32_t n = s->program->n, n_outputs = sn_graph_n_outputs(s->p->graph);
    uint32_t total = 0, n_made = 0;
    SNUG_TRY(sn_plan_array(z, (size_t)n + 1, sizeof *l->operand, &l->operand, err));
    SNUG_TRY(sn_plan_array(z, n, sizeof *l->block_of, &l->block_of, err));
    SNUG_TRY(sn_plan_array(z, n, sizeof *l->end_of, &l->end_of, err));
    SNUG_TRY(sn_plan_array(z, n_outputs, sizeof *l->output, &l->output, err));
    for (uint32_t t = 0; t < n; t++) {
        l->operand[t] = total;
        total += n_operands(s, &s->program->actions[t]);
        n_made += n_outputs_of(s, &s->program->actions[t]);
    }
    l->operand[n] = total;
    SNUG_TRY(sn_plan_array(z, total, sizeof *l->copy, &l->copy, err));
    SNUG_TRY(sn_plan_array(z, n_made, sizeof *l->copies, &l->copies, err));
    for (uint32_t t = 0; t < n; t++) {
        resolve_action(s, t, &l->copy[l->operand[t]]);
        l->block_of[t] = s->program->actions[t].kind == SN_STEP_REPEAT ? NONE : s->block;
    }
    for (uint32_t i = 0; i < n_outputs; i++)
        l->output[i] = read_copy(s, sn_graph_output_at(s->p->graph, i).i, n);
    hold_saved(s);
    return SNUG_OK;
}

/* --- buffers ---------------------------------------------------------------------------------- */
/* The last action through which the copy's bytes must stay. */
static uint32_t end_of(const layer_out *s, const sn_copy *c) {
    const uint32_t block = c->last < s->program->n ? s->l->block_of[c->last] : NONE;
    return c->local || block == NONE ? c->last : s->l->end_of[block];
}

static size_t bytes_of(const layer_out *s, const sn_copy *c) {
    return c->local ? s->program->slices->bytes[c->value] : s->p->bytes[c->value];
}

static void open_buffer(layer_out *s, uint32_t copy, uint32_t now) {
    sn_layout *const l = s->l;
    sn_copy *const c = &l->copies[copy];
    const uint32_t b = l->n_items++;
    l->items[b] = (sn_pack_item){.lower = c->local || c->block == NONE ? now : c->block,
                                 .upper = end_of(s, c),
                                 .size = bytes_of(s, c)};
    s->last[b] = c->last;
    c->buffer = b;
}

/* Both hold slices of this block, both lie outside of blocks, or both are whole values whose rows
 * this block goes through. */
static bool same_kind(const layer_out *s, const sn_copy *in, const sn_copy *out) {
    if (in->local || out->local)
        return in->local && out->local;
    return out->block == NONE || (has_label(s, in->value) && has_label(s, out->value));
}

/* Whether output `o` of the node may take over the buffer of input k at action `now`. */
static bool may_take(const layer_out *s, const sn_node_info *n, int o, int k, uint32_t now) {
    const uint32_t *copy = &s->l->copy[s->l->operand[now]];
    if (!sn_op_may_overwrite(n->op, o, k) || copy[k] == NONE)
        return false;
    const sn_copy *in = &s->l->copies[copy[k]], *out = &s->l->copies[copy[n->n_in + o]];
    if (in->buffer == SN_NO_BUFFER || s->last[in->buffer] != now || !same_kind(s, in, out) ||
        bytes_of(s, in) != bytes_of(s, out) || sn_plan_in_state(s->p, in->value))
        return false;
    for (int j = 0; j < n->n_in; j++)
        if (copy[j] != NONE && s->l->copies[copy[j]].buffer == in->buffer &&
            !sn_op_may_overwrite(n->op, o, j))
            return false;
    return true;
}

static void take_buffer(layer_out *s, uint32_t from, uint32_t to) {
    sn_copy *const out = &s->l->copies[to];
    const uint32_t b = s->l->copies[from].buffer, end = end_of(s, out);
    sn_pack_item *const item = &s->l->items[b];
    out->buffer = b;
    s->last[b] = out->last;
    item->upper = end > item->upper ? end : item->upper;
}

/* Rows of these are read by this action for the last time; it itself must not write them. */
static void note_gone(layer_out *s, const sn_node_info *n, uint32_t now) {
    const uint32_t *copy = &s->l->copy[s->l->operand[now]];
    for (int k = 0; k < n->n_in; k++) {
        if (copy[k] == NONE)
            continue;
        const sn_copy *c = &s->l->copies[copy[k]];
        bool listed = c->local || c->last != now || s->last[c->buffer] != now ||
                      !has_label(s, c->value) || sn_plan_in_state(s->p, c->value);
        for (uint32_t i = 0; i < s->n_gone && !listed; i++)
            listed = s->gone[i] == copy[k];
        if (!listed)
            s->gone[s->n_gone++] = copy[k];
    }
}

/* A buffer that the whole output may take over; NONE: there is none. */
static uint32_t find_gone(layer_out *s, const sn_copy *out) {
    for (uint32_t i = 0; !out->local && has_label(s, out->value) && i < s->n_gone; i++) {
        const uint32_t from = s->gone[i];
        if (bytes_of(s, &s->l->copies[from]) != bytes_of(s, out))
            continue;
        s->gone[i] = s->gone[--s->n_gone];
        return from;
    }
    return NONE;
}

static void place_outputs(layer_out *s, const sn_node_info *n, uint32_t now) {
    const uint32_t *copy = &s->l->copy[s->l->operand[now]];
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t c = copy[n->n_in + k];
        if (c == NONE || s->l->copies[c].buffer != SN_NO_BUFFER)
            continue; /* in its home, or another name of an input */
        int taken = -1;
        for (int j = 0; j < n->n_in && taken < 0; j++)
            taken = may_take(s, n, k, j, now) ? j : -1;
        const uint32_t gone = taken >= 0 ? NONE : find_gone(s, &s->l->copies[c]);
        if (taken >= 0)
            take_buffer(s, copy[taken], c);
        else if (gone != NONE)
            take_buffer(s, gone, c);
        else
            open_buffer(s, c, now);
    }
}

static size_t workspace_of(const layer_out *s, uint32_t now) {
    const uint32_t node = s->program->actions[now].id;
    return s->l->block_of[now] == NONE ? s->p->variant[node].workspace_bytes
                                       : s->program->slices->variant[node].workspace_bytes;
}

static void place_action(layer_out *s, uint32_t now) {
    sn_layout *const l = s->l;
    const sn_action a = s->program->actions[now];
    const uint32_t *copy = &l->copy[l->operand[now]];
    if (a.kind == SN_STEP_REPEAT || a.kind == SN_STEP_END) {
        s->block = a.kind == SN_STEP_REPEAT ? now : NONE;
        s->n_gone = 0;
    }
    if (a.kind == SN_STEP_FEED || (a.kind == SN_STEP_COPY && copy[1] != NONE))
        open_buffer(s, copy[a.kind == SN_STEP_COPY ? 1 : 0], now);
    if (a.kind != SN_STEP_RUN)
        return;
    place_outputs(s, node_at(s, a.id), now);
    if (s->block != NONE)
        note_gone(s, node_at(s, a.id), now);
    if (workspace_of(s, now) == 0)
        return;
    l->workspace[now] = l->n_items;
    l->items[l->n_items++] =
        (sn_pack_item){.lower = now, .upper = now, .size = workspace_of(s, now)};
}

/* Stages of spilled slots, from the first update that needs them to the end. */
static void place_ring(layer_out *s) {
    sn_layout *const l = s->l;
    uint32_t first = 0;
    l->ring = SN_NO_BUFFER;
    while (first < s->program->n && (s->program->actions[first].kind != SN_STEP_RUN ||
                                     !sn_spill_uses(s->p, s->program->actions[first].id)))
        first++;
    if (first == s->program->n)
        return;
    l->ring = l->n_items;
    l->items[l->n_items++] =
        (sn_pack_item){.lower = first, .upper = s->program->n, .size = s->p->ring_bytes};
}

/* Half-open lifetimes, aligned sizes. */
static snug_status close_lifetimes(const layer_out *s, snug_error *err) {
    for (uint32_t b = 0; b < s->l->n_items; b++) {
        sn_pack_item *const item = &s->l->items[b];
        item->upper += item->upper < s->program->n;
        if (!sn_size_align(item->size, s->p->device->align, &item->size))
            return sn_fail(err, SNUG_E_OVERFLOW, "plan: a buffer exceeds the address space");
    }
    return SNUG_OK;
}

/* --- the bound -------------------------------------------------------------------------------- */
static snug_status find_bound(layer_out *s, sn_zone *z, snug_error *err) {
    sn_layout *const l = s->l;
    size_t *born, *dead, live = 0;
    SNUG_TRY(sn_plan_array(z, s->program->n, sizeof *l->live, &l->live, err));
    SNUG_TRY(sn_plan_array(z, (size_t)s->program->n + 1, sizeof *born, &born, err));
    SNUG_TRY(sn_plan_array(z, (size_t)s->program->n + 1, sizeof *dead, &dead, err));
    for (uint32_t b = 0; b < l->n_items; b++) {
        const sn_pack_item *item = &l->items[b];
        if (!sn_size_add(born[item->lower], item->size, &born[item->lower]))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "plan: the values of step %u exceed the address space; use a smaller batch",
                item->lower);
        dead[item->upper] += item->size;
    }
    for (uint32_t t = 0; t < s->program->n; t++) {
        live -= dead[t];
        if (!sn_size_add(live, born[t], &live))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "plan: live values at step %u exceed the address space; use a smaller batch", t);
        l->live[t] = live;
        if (live > l->bound) {
            l->bound = live;
            l->peak = t;
        }
    }
    return SNUG_OK;
}

snug_status sn_plan_layout(sn_planner *p, sn_zone *z, const sn_program *program, sn_layout *out,
                           snug_error *err) {
    layer_out s = {.p = p, .program = program, .l = out, .block = NONE};
    *out = (sn_layout){.program = program};
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *s.newest, &s.newest, err));
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *s.set_by, &s.set_by, err));
    memset(s.newest, 0xff, p->n_values * sizeof *s.newest);
    memset(s.set_by, 0xff, p->n_values * sizeof *s.set_by);
    SNUG_TRY(resolve(&s, z, err));
    const size_t most = (size_t)out->n_copies + program->n + 1;
    SNUG_TRY(sn_plan_array(z, most, sizeof *out->items, &out->items, err));
    SNUG_TRY(sn_plan_array(z, most, sizeof *s.last, &s.last, err));
    SNUG_TRY(sn_plan_array(z, out->n_copies, sizeof *s.gone, &s.gone, err));
    SNUG_TRY(sn_plan_array(z, program->n, sizeof *out->workspace, &out->workspace, err));
    memset(out->workspace, 0xff, program->n * sizeof *out->workspace);
    for (uint32_t t = 0; t < program->n; t++)
        place_action(&s, t);
    place_ring(&s);
    SNUG_TRY(close_lifetimes(&s, err));
    return find_bound(&s, z, err);
}
