/* place.c: a plan for a list of devices, where the caller says which node runs on which. Every node
 * runs once, in the order of the graph; a device has one arena, and its compute queue alone. What a
 * node reads and another device has is copied to its own device before it, by a step of its own
 * device that waits for the maker; it stays there for later readers. Inputs are fed to each device
 * that reads them. Variables have their homes on the first device, which runs their updates; other
 * devices read copies.
 *
 *     list_steps    steps, with the number of a buffer for each place that is not a home
 *     pack_arenas   an offset for each buffer, one packing per device
 *     find_waits    offsets written down, and which steps of other devices each step waits for
 *
 * A buffer is written by steps of its own device only, and read by those and by copies of others.
 * So a step must wait for: the maker of what it copies; copies that read what it writes over; and,
 * where it writes a variable, all steps before it that may refuse their values.
 *
 * Here a collective would be listed: one step per device, with operands of its own arena each, that
 * wait for one another's makers (exec/runner_class.h says what runs them). */
#include "base/size.h"
#include "plan/passes.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX

/* A copy that reads what another device writes: a buffer there, or the home of a variable. */
typedef struct {
    uint32_t step, device, buffer, var;
} reader;

typedef struct {
    sn_planner *p;
    uint32_t n_devices;
    const uint16_t *device; /* per node */
    /* Per value, per device: its buffer, or NONE; of roots and of versions of variables. */
    uint32_t *held;
    uint32_t *kept;    /* per value: the buffer of an old version that is overwritten, or NONE */
    uint32_t saved;    /* the last step that copies what can be taken back, + 1; on the first */
    uint32_t *written; /* per variable: the step that wrote its home last, or NONE */
    sn_pack_item *items[SN_MAX_DEVICES];
    uint32_t n_items[SN_MAX_DEVICES];
    size_t *bytes[SN_MAX_DEVICES];   /* per buffer, unpadded */
    uint32_t *maker[SN_MAX_DEVICES]; /* per buffer: its last writer before the step under way */
    reader *readers;
    uint32_t n_readers;
    uint32_t (*known)[SN_MAX_DEVICES]; /* per step: what is done when it is: steps + 1, by device */
    uint32_t know[SN_MAX_DEVICES][SN_MAX_DEVICES];
    uint32_t refusers[SN_MAX_DEVICES];    /* the last step that may refuse values, + 1 */
    double *finish, busy[SN_MAX_DEVICES]; /* seconds from the start on: of steps, of devices */
} placer;

static const sn_device *device_at(const placer *c, uint32_t d) {
    return c->p->devices[d];
}

static uint32_t *held_at(const placer *c, uint32_t value, uint32_t d) {
    return &c->held[(size_t)value * c->n_devices + d];
}

static const sn_node_info *node_at(const placer *c, uint32_t i) {
    return sn_graph_node_at(c->p->graph, (sn_node){i});
}

/* --- steps ------------------------------------------------------------------------------------ */

static uint32_t open_buffer(placer *c, uint32_t d, size_t bytes) {
    const uint32_t b = c->n_items[d]++, now = c->p->plan->n_steps;
    c->items[d][b] = (sn_pack_item){.lower = now, .upper = now + 1, .size = bytes};
    c->bytes[d][b] = bytes;
    return b;
}

static void use_buffer(placer *c, uint32_t d, uint32_t b, uint32_t until) {
    sn_pack_item *item = &c->items[d][b];
    item->upper = until > item->upper ? until : item->upper;
}

static sn_place home_place(sn_value v) {
    return (sn_place){.value = v, .memory = SN_MEM_STATE, .rows = -1};
}

/* Until offsets are known the number of the buffer stands in their place. */
static sn_place buffer_place(placer *c, sn_value v, uint32_t d, uint32_t b) {
    use_buffer(c, d, b, c->p->plan->n_steps + 1);
    return (sn_place){.value = v, .memory = SN_MEM_FIRST_ARENA + d, .offset = b, .rows = -1};
}

static snug_status begin_step(const placer *c, sn_step_kind kind, uint32_t d, int n_in, int n_out,
                              sn_place **in, sn_place **out, snug_error *err) {
    sn_step *step = &c->p->plan->steps[c->p->plan->n_steps];
    SNUG_TRY(sn_plan_array(c->p->plan->zone, (size_t)n_in, sizeof **in, in, err));
    SNUG_TRY(sn_plan_array(c->p->plan->zone, (size_t)n_out, sizeof **out, out, err));
    *step = (sn_step){.kind = kind,
                      .device = (uint16_t)d,
                      .n_in = (uint16_t)n_in,
                      .n_out = (uint16_t)n_out,
                      .in = *in,
                      .out = *out};
    return SNUG_OK;
}

/* Into a new buffer of device d: of an input, or from `from`. */
static snug_status add_transfer(placer *c, sn_value v, const sn_place *from, uint32_t d,
                                uint32_t *buffer, snug_error *err) {
    const uint32_t now = c->p->plan->n_steps;
    sn_place *in, *out;
    SNUG_TRY(begin_step(c, from ? SN_STEP_COPY : SN_STEP_FEED, d, from ? 1 : 0, 1, &in, &out, err));
    c->p->plan->steps[now].input = from ? 0 : sn_graph_value_at(c->p->graph, v)->index;
    if (from)
        *in = *from;
    *buffer = open_buffer(c, d, c->p->bytes[v.i]);
    *out = buffer_place(c, v, d, *buffer);
    c->p->plan->n_steps++;
    return SNUG_OK;
}

static snug_status check_readable(const placer *c, sn_value v, uint32_t d, snug_error *err) {
    if (sn_graph_type(c->p->graph, v)->dtype != SNUG_OPAQUE)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "value %%%u is packed for the device that made it; place what reads it there, "
                   "and not on %s",
                   v.i, device_at(c, d)->name);
}

/* Where node operand v lies for device d, brought there where it does not yet. */
static snug_status bring(placer *c, sn_value v, uint32_t d, sn_place *out, snug_error *err) {
    const sn_planner *p = c->p;
    const bool state = sn_plan_in_state(p, v.i);
    const uint32_t root = p->root[v.i];
    uint32_t *const here = held_at(c, root, d);
    const bool kept = state && c->kept[v.i] != NONE;
    if (state && d == 0) {
        *out = kept ? buffer_place(c, v, 0, c->kept[v.i]) : home_place(v);
        return SNUG_OK;
    }
    if (*here == NONE) {
        uint32_t from = 0;
        while (!state && from < c->n_devices && *held_at(c, root, from) == NONE)
            from++;
        const bool fed =
            sn_graph_value_at(p->graph, (sn_value){root})->kind == SN_VALUE_INPUT && !state;
        if (!fed)
            SNUG_TRY(check_readable(c, v, d, err));
        const sn_place source =
            kept    ? buffer_place(c, v, 0, c->kept[v.i])
            : state ? home_place(v)
            : !fed  ? buffer_place(c, (sn_value){root}, from, *held_at(c, root, from))
                    : home_place(v);
        SNUG_TRY(add_transfer(c, (sn_value){root}, fed ? NULL : &source, d, here, err));
    }
    *out = buffer_place(c, v, d, *here);
    return SNUG_OK;
}

/* Old versions that are read later or may come back, before the node overwrites them. */
static snug_status keep_versions(placer *c, const sn_node_info *n, uint32_t node, snug_error *err) {
    for (int k = 0; k < n->n_in && k < n->n_out; k++) {
        const sn_value v = n->in[k];
        const sn_place home = home_place(v);
        if (c->p->kept[v.i] && c->p->updater[v.i] == node)
            SNUG_TRY(add_transfer(c, v, &home, 0, &c->kept[v.i], err));
    }
    return SNUG_OK;
}

static snug_status check_update(const placer *c, const sn_node_info *n, uint32_t d,
                                snug_error *err) {
    if (d == 0 || sn_ops[n->op].effect != SN_STATE)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "%s of layer '%s' writes a variable, and variables lie on %s; place it there, "
                   "and not on %s",
                   sn_ops[n->op].name, sn_graph_owner_name(c->p->graph, n->owner),
                   device_at(c, 0)->name, device_at(c, d)->name);
}

static sn_place place_output(placer *c, sn_value v, uint32_t d) {
    uint32_t *const here = held_at(c, c->p->root[v.i], d);
    if (sn_plan_in_state(c->p, v.i))
        return home_place(v);
    if (c->p->root[v.i] == v.i)
        *here = open_buffer(c, d, c->p->bytes[v.i]);
    return buffer_place(c, v, d, *here);
}

static snug_status add_run(placer *c, uint32_t node, snug_error *err) {
    sn_planner *p = c->p;
    const sn_node_info *n = node_at(c, node);
    const sn_variant *variant = &p->variant[node];
    const uint32_t d = c->device[node];
    sn_place *in, *out, places[SN_MAX_IN];
    SNUG_TRY(check_update(c, n, d, err));
    for (int k = 0; k < n->n_in; k++)
        SNUG_TRY(bring(c, n->in[k], d, &places[k], err));
    SNUG_TRY(keep_versions(c, n, node, err));
    SNUG_TRY(begin_step(c, SN_STEP_RUN, d, n->n_in, n->n_out, &in, &out, err));
    for (int k = 0; k < n->n_in; k++) {
        in[k] = places[k];
        if (in[k].memory != SN_MEM_STATE)
            use_buffer(c, d, (uint32_t)in[k].offset, p->plan->n_steps + 1);
    }
    for (int k = 0; k < n->n_out; k++)
        out[k] = place_output(c, n->out[k], d);
    sn_step *step = &p->plan->steps[p->plan->n_steps];
    step->node = (sn_node){node};
    step->variant = variant->id;
    memcpy(step->impl, variant->impl, sizeof step->impl);
    step->impl[sizeof step->impl - 1] = '\0';
    step->ws_bytes = variant->workspace_bytes;
    if (step->ws_bytes > 0) {
        step->ws_memory = SN_MEM_FIRST_ARENA + d;
        step->ws_offset = open_buffer(c, d, step->ws_bytes);
    }
    p->plan->flops += variant->flops;
    p->plan->code_bytes += variant->code_bytes;
    p->plan->n_steps++;
    return SNUG_OK;
}

/* On the device that has it, the first one where several do. */
static snug_status place_result(placer *c, sn_value v, sn_place *out, snug_error *err) {
    uint32_t d = 0;
    if (sn_plan_in_state(c->p, v.i) && c->kept[v.i] != NONE)
        *out = buffer_place(c, v, 0, c->kept[v.i]);
    else if (sn_plan_in_state(c->p, v.i))
        *out = home_place(v);
    else {
        while (d + 1 < c->n_devices && *held_at(c, c->p->root[v.i], d) == NONE)
            d++;
        const bool none = *held_at(c, c->p->root[v.i], d) == NONE;
        SNUG_TRY(bring(c, v, none ? 0 : d, out, err));
    }
    return SNUG_OK;
}

static snug_status list_steps(placer *c, const sn_order *order, snug_error *err) {
    sn_plan *plan = c->p->plan;
    const uint32_t n_outputs = sn_graph_n_outputs(c->p->graph);
    sn_place *outputs;
    for (uint32_t i = 0; i < order->n; i++)
        SNUG_TRY(add_run(c, order->node[i], err));
    SNUG_TRY(sn_plan_array(plan->zone, n_outputs, sizeof *outputs, &outputs, err));
    for (uint32_t i = 0; i < n_outputs; i++)
        SNUG_TRY(place_result(c, sn_graph_output_at(c->p->graph, i), &outputs[i], err));
    for (uint32_t i = 0; i < n_outputs; i++)
        if (outputs[i].memory != SN_MEM_STATE)
            use_buffer(c, outputs[i].memory - SN_MEM_FIRST_ARENA, (uint32_t)outputs[i].offset,
                       plan->n_steps);
    for (uint32_t v = 0; v < c->p->n_values; v++)
        if (c->p->saved[v] && c->kept[v] != NONE)
            use_buffer(c, 0, c->kept[v], plan->n_steps);
    plan->outputs = outputs;
    return SNUG_OK;
}

/* --- arenas ----------------------------------------------------------------------------------- */

/* Where the bound of the first arena is reached first. */
static snug_status find_peak(const placer *c, snug_error *err) {
    sn_plan *plan = c->p->plan;
    const size_t n = (size_t)plan->n_steps + 2; /* results are read behind the last step */
    size_t *born, *dead, live = 0;
    SNUG_TRY(sn_plan_array(c->p->work, n, sizeof *born, &born, err));
    SNUG_TRY(sn_plan_array(c->p->work, n, sizeof *dead, &dead, err));
    for (uint32_t b = 0; b < c->n_items[0]; b++) {
        born[c->items[0][b].lower] += c->items[0][b].size;
        dead[c->items[0][b].upper] += c->items[0][b].size;
    }
    for (uint32_t t = 0; t < plan->n_steps; t++) {
        live += born[t] - dead[t];
        if (live == plan->memories[SN_MEM_FIRST_ARENA].lower_bound_bytes) {
            plan->peak_step = t;
            return SNUG_OK;
        }
    }
    return SNUG_OK;
}

static snug_status pack_arena(placer *c, uint32_t d, snug_error *err) {
    sn_plan *plan = c->p->plan;
    sn_plan_memory *m = &plan->memories[SN_MEM_FIRST_ARENA + d];
    for (uint32_t b = 0; b < c->n_items[d]; b++)
        if (!sn_size_align(c->items[d][b].size, device_at(c, d)->align, &c->items[d][b].size))
            return sn_fail(err, SNUG_E_OVERFLOW, "plan: a buffer exceeds the address space");
    SNUG_TRY(
        sn_pack(c->p->engine, c->items[d], c->n_items[d], &m->bytes, &m->lower_bound_bytes, err));
    for (uint32_t b = 0; b < c->n_items[d]; b++) {
        const size_t top = c->items[d][b].offset + c->bytes[d][b];
        m->used_bytes = top > m->used_bytes ? top : m->used_bytes;
    }
    m->device = (uint16_t)d;
    snprintf(m->name, sizeof m->name, d == 0 ? "arena" : "arena %u", d);
    return SNUG_OK;
}

static snug_status pack_arenas(placer *c, snug_error *err) {
    sn_plan *plan = c->p->plan;
    sn_plan_memory *state = &plan->memories[SN_MEM_STATE];
    for (uint32_t d = 0; d < c->n_devices; d++)
        SNUG_TRY(pack_arena(c, d, err));
    snprintf(state->name, sizeof state->name, "state");
    for (uint32_t i = 0; i < sn_graph_n_vars(c->p->graph); i++) {
        const sn_variable *var = sn_graph_var_at(c->p->graph, (sn_var){i});
        if (!sn_size_add(state->bytes, c->p->bytes[var->first.i], &state->bytes))
            return sn_fail(err, SNUG_E_OVERFLOW,
                           "plan: variables up to '%s' exceed the address space", var->name);
    }
    state->used_bytes = state->lower_bound_bytes = state->bytes;
    plan->n_memories = SN_MEM_FIRST_ARENA + c->n_devices;
    return find_peak(c, err);
}

/* --- waits ------------------------------------------------------------------------------------ */

static void want(uint32_t wanted[SN_MAX_DEVICES], uint32_t d, uint32_t steps) {
    wanted[d] = steps > wanted[d] ? steps : wanted[d];
}

static uint32_t var_of(const placer *c, const sn_place *place) {
    return (uint32_t)sn_graph_value_at(c->p->graph, place->value)->var;
}

static bool overlap(const placer *c, uint32_t d, uint32_t a, uint32_t b) {
    const sn_pack_item *x = &c->items[d][a], *y = &c->items[d][b];
    return x->offset < y->offset + c->bytes[d][b] && y->offset < x->offset + c->bytes[d][a];
}

/* Copies of other devices that read what the place has. Those that its device, the only one that
 * writes there, knows to be done are forgotten. */
static void want_readers(placer *c, const sn_step *step, const sn_place *place,
                         uint32_t wanted[SN_MAX_DEVICES]) {
    const bool home = place->memory == SN_MEM_STATE;
    for (uint32_t i = 0; i < c->n_readers;) {
        const reader *r = &c->readers[i];
        const uint32_t by = c->p->plan->steps[r->step].device;
        if (r->device == step->device && c->know[r->device][by] > r->step) {
            c->readers[i] = c->readers[--c->n_readers];
            continue;
        }
        const bool same = home ? r->buffer == NONE && r->var == var_of(c, place)
                               : r->buffer != NONE && r->device == step->device &&
                                     overlap(c, r->device, r->buffer, (uint32_t)place->offset);
        if (same)
            want(wanted, by, r->step + 1);
        i++;
    }
}

/* The maker of what is copied from another device; and the copy is noted as a reader of that. */
static void want_source(placer *c, uint32_t now, uint32_t wanted[SN_MAX_DEVICES]) {
    const sn_step *step = &c->p->plan->steps[now];
    if (step->kind != SN_STEP_COPY)
        return;
    const sn_place *from = &step->in[0];
    const bool home = from->memory == SN_MEM_STATE;
    const uint32_t d = home ? 0 : from->memory - SN_MEM_FIRST_ARENA;
    if (d == step->device)
        return;
    const uint32_t maker = home ? c->written[var_of(c, from)] : c->maker[d][(uint32_t)from->offset];
    if (maker != NONE)
        want(wanted, d, maker + 1);
    c->readers[c->n_readers++] = (reader){.step = now,
                                          .device = d,
                                          .buffer = home ? NONE : (uint32_t)from->offset,
                                          .var = home ? var_of(c, from) : NONE};
}

static bool writes_home(const sn_step *step) {
    bool writes = false;
    for (uint32_t k = 0; k < step->n_out; k++)
        writes = writes || step->out[k].memory == SN_MEM_STATE;
    return writes;
}

static bool may_refuse(const placer *c, const sn_step *step) {
    return step->kind == SN_STEP_RUN && sn_ops[node_at(c, step->node.i)->op].effect == SN_MAYFAIL;
}

static void note_written(placer *c, uint32_t now) {
    const sn_step *step = &c->p->plan->steps[now];
    for (uint32_t k = 0; k < step->n_out; k++) {
        const sn_place *place = &step->out[k];
        if (place->memory == SN_MEM_STATE)
            c->written[var_of(c, place)] = now;
        else
            c->maker[step->device][place->offset] = now;
    }
    if (may_refuse(c, step))
        c->refusers[step->device] = now + 1;
    if (step->kind == SN_STEP_COPY && step->device == 0 && c->p->saved[step->in[0].value.i])
        c->saved = now + 1;
}

/* One wait per device, for the last step that is wanted there and not known to be done. */
static snug_status write_waits(placer *c, uint32_t now, const uint32_t wanted[SN_MAX_DEVICES],
                               snug_error *err) {
    sn_step *step = &c->p->plan->steps[now];
    uint32_t *know = c->know[step->device], *waits;
    SNUG_TRY(sn_plan_array(c->p->plan->zone, c->n_devices, sizeof *waits, &waits, err));
    for (uint32_t d = 0; d < c->n_devices; d++) {
        if (d == step->device || wanted[d] <= know[d])
            continue;
        waits[step->n_waits++] = wanted[d] - 1;
        for (uint32_t e = 0; e < c->n_devices; e++)
            want(know, e, c->known[wanted[d] - 1][e]);
    }
    step->waits = waits;
    know[step->device] = now + 1;
    memcpy(c->known[now], know, sizeof c->known[now]);
    return SNUG_OK;
}

static double copy_seconds(const placer *c, const sn_step *step) {
    const uint32_t from =
        step->in[0].memory == SN_MEM_STATE ? 0 : step->in[0].memory - SN_MEM_FIRST_ARENA;
    const sn_device *a = device_at(c, from), *b = device_at(c, step->device);
    const double bytes = (double)c->p->bytes[step->in[0].value.i];
    return bytes / (a->apart ? a->rates.spill_write : a->rates.memory) +
           bytes / (b->apart ? b->rates.spill_read : b->rates.memory);
}

/* A device begins a step when it is through with the one before, and others with what it waits
 * for. */
static void time_step(placer *c, uint32_t now) {
    const sn_step *step = &c->p->plan->steps[now];
    double start = c->busy[step->device];
    for (uint32_t k = 0; k < step->n_waits; k++)
        start = c->finish[step->waits[k]] > start ? c->finish[step->waits[k]] : start;
    const double takes = step->kind == SN_STEP_RUN    ? c->p->seconds[step->node.i]
                         : step->kind == SN_STEP_FEED ? sn_plan_feed_seconds(c->p, step->input)
                                                      : copy_seconds(c, step);
    c->finish[now] = c->busy[step->device] = start + takes;
}

/* The last word on where places lie. */
static void write_offsets(const placer *c, const sn_place *places, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        sn_place *place = (sn_place *)(uintptr_t)&places[k]; /* ours until the plan is given away */
        if (place->memory != SN_MEM_STATE)
            place->offset = c->items[place->memory - SN_MEM_FIRST_ARENA][place->offset].offset;
    }
}

static snug_status find_waits(placer *c, snug_error *err) {
    sn_plan *plan = c->p->plan;
    for (uint32_t t = 0; t < plan->n_steps; t++) {
        const sn_step *step = &plan->steps[t];
        uint32_t wanted[SN_MAX_DEVICES] = {0};
        want_source(c, t, wanted);
        for (uint32_t k = 0; k < step->n_out; k++)
            want_readers(c, step, &step->out[k], wanted);
        if (step->ws_bytes > 0)
            want_readers(c, step, &(sn_place){.memory = step->ws_memory, .offset = step->ws_offset},
                         wanted);
        for (uint32_t d = 0; writes_home(step) && d < c->n_devices; d++)
            want(wanted, d, c->refusers[d]);
        if (may_refuse(c, step))
            want(wanted, 0, c->saved);
        SNUG_TRY(write_waits(c, t, wanted, err));
        note_written(c, t);
        time_step(c, t);
    }
    for (uint32_t t = 0; t < plan->n_steps; t++) {
        sn_step *step = &plan->steps[t];
        write_offsets(c, step->in, step->n_in);
        write_offsets(c, step->out, step->n_out);
        if (step->ws_bytes > 0)
            step->ws_offset = c->items[step->device][step->ws_offset].offset;
    }
    write_offsets(c, plan->outputs, sn_graph_n_outputs(c->p->graph));
    return SNUG_OK;
}

/* --- all of it -------------------------------------------------------------------------------- */

static snug_status check_placement(const sn_planner *p, const sn_plan_options *o, snug_error *err) {
    if (o->arena_bytes > 0 || o->slices > 0 || o->may_spill || o->spilled || o->at || o->fused)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a plan with nodes placed on devices runs the batch whole, in memory and "
                       "without a limit; leave the other options out");
    if (sn_graph_is_outside(p->graph))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a graph whose inputs and outputs the caller has runs on one device");
    return SNUG_OK;
}

static snug_status make_room(placer *c, snug_error *err) {
    sn_planner *p = c->p;
    const size_t n_held = (size_t)p->n_values * c->n_devices;
    const size_t most = (size_t)p->n_nodes + n_held + p->n_values;
    SNUG_TRY(sn_plan_array(p->plan->zone, most, sizeof *p->plan->steps, &p->plan->steps, err));
    SNUG_TRY(sn_plan_array(p->work, n_held, sizeof *c->held, &c->held, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *c->kept, &c->kept, err));
    SNUG_TRY(
        sn_plan_array(p->work, sn_graph_n_vars(p->graph), sizeof *c->written, &c->written, err));
    SNUG_TRY(sn_plan_array(p->work, most, sizeof *c->readers, &c->readers, err));
    SNUG_TRY(sn_plan_array(p->work, most, sizeof *c->known, &c->known, err));
    SNUG_TRY(sn_plan_array(p->work, most, sizeof *c->finish, &c->finish, err));
    for (uint32_t d = 0; d < c->n_devices; d++) {
        const size_t n = (size_t)p->n_nodes + 2 * (size_t)p->n_values; /* workspaces, values */
        SNUG_TRY(sn_plan_array(p->work, n, sizeof *c->items[d], &c->items[d], err));
        SNUG_TRY(sn_plan_array(p->work, n, sizeof *c->bytes[d], &c->bytes[d], err));
        SNUG_TRY(sn_plan_array(p->work, n, sizeof *c->maker[d], &c->maker[d], err));
        memset(c->maker[d], 0xff, n * sizeof *c->maker[d]);
    }
    memset(c->held, 0xff, n_held * sizeof *c->held);
    memset(c->kept, 0xff, p->n_values * sizeof *c->kept);
    memset(c->written, 0xff, sn_graph_n_vars(p->graph) * sizeof *c->written);
    return SNUG_OK;
}

snug_status sn_plan_place(sn_planner *p, const sn_plan_options *o, snug_error *err) {
    placer c = {.p = p, .n_devices = (uint32_t)o->n_devices, .device = o->placed};
    sn_order order;
    SNUG_TRY(check_placement(p, o, err));
    SNUG_TRY(sn_plan_order(p, p->work, SN_ORDER_PROGRAM, p->padded, &order, err));
    SNUG_TRY(make_room(&c, err));
    SNUG_TRY(list_steps(&c, &order, err));
    SNUG_TRY(pack_arenas(&c, err));
    SNUG_TRY(find_waits(&c, err));
    for (uint32_t d = 0; d < c.n_devices; d++) {
        const sn_device *device = device_at(&c, d);
        const double end = c.busy[d] + (device->apart ? device->rates.handoff : 0);
        p->plan->seconds = end > p->plan->seconds ? end : p->plan->seconds;
    }
    p->plan->plain_seconds = p->plan->seconds;
    p->plan->plain_bytes = p->plan->memories[SN_MEM_FIRST_ARENA].bytes;
    p->plan->slices = 1;
    p->taken = true;
    return SNUG_OK;
}
