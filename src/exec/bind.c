/* bind.c: from the steps of a plan to bound steps. Done in three parts, because they need different
 * things:
 *
 *     sn_bind_steps     the plan alone: views with their types, parameter slots, lanes, barriers
 *     sn_bind_kernels   the device: prepared objects for the slice height and for the last slice's
 *     sn_bind_pointers  arenas, state and threads: final addresses; done again when an arena has
 *                       moved
 *
 * Invariant: everything a bound step points to is in the session's zone, the plan, the graph, an
 * arena, a home or a file. */
#include "exec/inside.h"

#include <assert.h>
#include <string.h>

_Static_assert(SN_FILE_ALIGN % SN_FILE_BLOCK == 0,
               "plans put bytes where the spill file takes them");

/* Where the binder stands in the list of steps. */
typedef struct {
    sn_session *s;
    const sn_step *block; /* the REPEAT step we are in, or NULL */
    uint32_t block_index;
    uint64_t n_executions; /* of all steps before the last REPEAT or END, and of those since */
    uint64_t barrier;      /* the former alone */
} sn_binder;

static const sn_place *place_at(const sn_step *step, uint32_t j) {
    return j < step->n_in ? &step->in[j] : &step->out[j - step->n_in];
}

static uint32_t n_places(const sn_step *step) {
    return (uint32_t)step->n_in + step->n_out;
}

static sn_runner *runner_of(const sn_session *s, const sn_step *step) {
    return s->runner_of[step->device];
}

/* --- views ------------------------------------------------------------------------------------ */

/* Rows of a place in the last iteration. A place may carry the batch with a factor (time steps
 * inside it). */
static int64_t last_rows(const sn_place *place, const sn_step *block) {
    return place->rows < 0 ? place->rows : place->rows / block->rows * block->last;
}

static snug_status make_view(const sn_binder *b, const sn_place *place, bool last, snug_view *view,
                             snug_error *err) {
    const sn_plan *plan = b->s->plan;
    const int64_t rows = last ? last_rows(place, b->block) : place->rows;
    view->type = *sn_graph_type(plan->graph, place->value);
    view->bytes = plan->value_bytes[place->value.i];
    if (rows < 0)
        return SNUG_OK;
    const int64_t full = view->type.dims[place->axis];
    view->type.dims[place->axis] = rows;
    if (view->type.dtype != SNUG_OPAQUE)
        return snug_type_bytes(&view->type, &view->bytes, err);
    view->bytes = full > 0 ? view->bytes / (size_t)full * (size_t)rows : 0;
    return SNUG_OK;
}

static snug_status make_views(const sn_binder *b, const sn_step *step, bool last, snug_view **out,
                              snug_error *err) {
    snug_view *views;
    const uint32_t n = n_places(step);
    SNUG_TRY(sn_session_take(b->s, n, sizeof *views, &views, err));
    for (uint32_t j = 0; j < n; j++)
        SNUG_TRY(make_view(b, place_at(step, j), last, &views[j], err));
    *out = views;
    return SNUG_OK;
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Copy queues are lanes of their own; all compute queues are lane 0, and so is everything where
 * steps are handed over. */
static uint32_t lane_of(const sn_session *s, const sn_step *step) {
    if (step->queue == SN_QUEUE_COMPUTE || s->lead->kind->apart)
        return 0;
    return 1 + 2 * runner_of(s, step)->index + (step->queue == SN_QUEUE_OUT ? 1 : 0);
}

bool sn_writes_state(const sn_graph *g, const sn_step *step) {
    for (uint32_t j = 0; j < step->n_out; j++)
        if (step->out[j].memory == SN_MEM_STATE &&
            sn_graph_value_at(g, step->out[j].value)->var >= 0)
            return true;
    return false;
}

/* The parts of the call that no iteration changes. */
static snug_status bind_call(sn_session *s, sn_bound *bound, snug_error *err) {
    const sn_step *step = bound->step;
    const sn_node_info *node = sn_graph_node_at(s->plan->graph, step->node);
    const sn_cpu_device *device = &runner_of(s, step)->host;
    uint32_t slots[SN_MAX_PARAMS];
    bound->n_params = sn_param_slots(node->op, &node->attrs, slots);
    SNUG_TRY(sn_session_take(s, bound->n_params, sizeof *slots, &bound->slots, err));
    SNUG_TRY(sn_session_take(s, bound->n_params, sizeof *bound->params, &bound->params, err));
    memcpy(bound->slots, slots, bound->n_params * sizeof *slots);
    bound->kernel = sn_kernel_of(device, node->op);
    bound->check = sn_cpu_family_of(node->op)->check;
    bound->call = (sn_call){.op = node->op,
                            .attrs = &node->attrs,
                            .param = bound->params,
                            .n_in = step->n_in,
                            .n_out = step->n_out,
                            .workspace_bytes = step->ws_bytes,
                            .n_threads = device->device.n_threads};
    bound->updates = node->part == SN_PART_UPDATE && sn_ops[node->op].effect == SN_STATE;
    bound->may_pass = node->part == SN_PART_UPDATE && node->op == SN_OP_check_finite;
    return SNUG_OK;
}

static snug_status bind_step(sn_binder *b, const sn_step *step, sn_bound *bound, snug_error *err) {
    sn_session *s = b->s;
    bound->runner = (uint8_t)runner_of(s, step)->index;
    bound->lane = lane_of(s, step);
    bound->block = b->block ? b->block_index : SN_NO_BLOCK;
    bound->barrier = b->barrier;
    bound->writes_state = sn_writes_state(s->plan->graph, step);
    s->lanes |= 1u << bound->lane;
    SNUG_TRY(sn_session_take(s, n_places(step), sizeof *bound->base, &bound->base, err));
    SNUG_TRY(make_views(b, step, false, &bound->whole.views, err));
    if (b->block && b->block->last != b->block->rows)
        SNUG_TRY(make_views(b, step, true, &bound->last.views, err));
    return step->kind == SN_STEP_RUN ? bind_call(s, bound, err) : SNUG_OK;
}

/* Now that the length of the block's body is known. */
static void leave_block(sn_binder *b, uint32_t end) {
    const uint64_t body = end - b->block_index - 1;
    for (uint32_t i = b->block_index + 1; i < end; i++)
        b->s->bound[i].barrier_step = body;
    b->n_executions += body * (uint64_t)(b->block->repeat - 1);
    b->block = NULL;
}

static snug_status make_fixups(sn_session *s, snug_error *err);

snug_status sn_bind_steps(sn_session *s, snug_error *err) {
    sn_binder b = {.s = s};
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        const sn_step *step = &s->plan->steps[i];
        s->bound[i].step = step;
        if (step->kind == SN_STEP_REPEAT) {
            b.block = step;
            b.block_index = i;
            b.barrier = b.n_executions;
        } else if (step->kind == SN_STEP_END) {
            leave_block(&b, i);
            b.barrier = b.n_executions;
        } else {
            SNUG_TRY(bind_step(&b, step, &s->bound[i], err));
            b.n_executions++;
        }
    }
    SNUG_TRY(sn_plan_undone(s->plan, s->zone, &s->undone, err));
    return make_fixups(s, err);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static snug_status prepare_shape(sn_session *s, const sn_bound *bound, sn_bound_shape *shape,
                                 snug_error *err) {
    const sn_step *step = bound->step;
    if (!shape->views || shape->prepared)
        return SNUG_OK;
    sn_opdesc desc;
    sn_graph_desc(s->plan->graph, step->node, &desc);
    for (int i = 0; i < desc.n_in; i++)
        desc.in[i] = shape->views[i].type;
    for (int i = 0; i < desc.n_out; i++)
        desc.out[i] = shape->views[desc.n_in + i].type;
    sn_runner *r = sn_runner_of_step(s, bound);
    const snug_status status = r->kind->prepare(r, s, bound, &desc, &shape->prepared, err);
    return status == SNUG_OK ? SNUG_OK : sn_fail_at(s->plan->graph, step->node, status, err);
}

snug_status sn_bind_kernels(sn_session *s, snug_error *err) {
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        if (bound->step->kind != SN_STEP_RUN)
            continue;
        SNUG_TRY(prepare_shape(s, bound, &bound->whole, err));
        SNUG_TRY(prepare_shape(s, bound, &bound->last, err));
    }
    return SNUG_OK;
}

static void release_shape(sn_session *s, const sn_bound *bound, sn_bound_shape *shape) {
    sn_runner *r = sn_runner_of_step(s, bound);
    if (shape->prepared)
        r->kind->release(r, bound, shape->prepared);
    shape->prepared = NULL;
}

void sn_bind_release(sn_session *s) {
    for (uint32_t i = 0; s->bound && i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        release_shape(s, bound, &bound->whole);
        release_shape(s, bound, &bound->last);
    }
}

/* --- pointers --------------------------------------------------------------------------------- */

/* Of a copy at most one end lies in a file, of other steps none: so says the checker, and homes are
 * where the plan has them. */
static snug_status locate_place(sn_session *s, sn_bound *bound, uint32_t j, snug_error *err) {
    const sn_place *place = place_at(bound->step, j);
    const sn_runner *r = sn_runner_of_memory(s, place->memory);
    const bool is_in = j < bound->step->n_in;
    sn_spot spot;
    SNUG_TRY(r->kind->find(r, s, place, &spot, err));
    bound->base[j] = spot.data;
    *(is_in ? &bound->from : &bound->to) = (uint8_t)r->index;
    *(is_in ? &bound->from_host : &bound->to_host) = spot.pinned;
    if (bound->step->kind != SN_STEP_COPY && (spot.pinned || spot.file))
        return sn_fail(err, SNUG_E_INTERNAL, "a step of the plan works on bytes that wait outside");
    if (spot.file) {
        assert(!bound->file);
        bound->file = spot.file;
        bound->file_offset = spot.offset;
        bound->to_file = j > 0;
    }
    return SNUG_OK;
}

static snug_status locate_step(sn_session *s, sn_bound *bound, snug_error *err) {
    const sn_step *step = bound->step;
    const sn_runner *r = sn_runner_of_step(s, bound);
    bound->file = NULL;
    for (uint32_t j = 0; j < n_places(step); j++)
        SNUG_TRY(locate_place(s, bound, j, err));
    bound->call.team = s->executor->team;
    if (step->ws_bytes > 0)
        bound->call.workspace =
            (unsigned char *)r->kind->arena(r, step->ws_memory).data + step->ws_offset;
    return SNUG_OK;
}

/* --- what the caller has ---------------------------------------------------------------------- */

static uint32_t source_of(const sn_session *s, sn_value v) {
    const sn_graph *g = s->plan->graph;
    const int32_t var = sn_graph_value_at(g, v)->var;
    return var >= 0 ? (uint32_t)var : sn_graph_n_vars(g) + s->plan->root[v.i];
}

static bool is_in_file(const sn_session *s, sn_value v) {
    const int32_t var = sn_graph_value_at(s->plan->graph, v)->var;
    return var >= 0 && sn_plan_spills(s->plan, (sn_var){(uint32_t)var});
}

static sn_fixup fixup_of(const sn_session *s, sn_bound *bound, uint32_t j) {
    const sn_place *place = place_at(bound->step, j);
    const bool in_file = is_in_file(s, place->value);
    bound->to_file = bound->to_file || (in_file && j > 0);
    return (sn_fixup){.slot = &bound->base[j],
                      .copy = in_file ? bound : NULL,
                      .source = source_of(s, place->value),
                      .offset = place->offset};
}

static size_t list_fixups(sn_session *s) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        for (uint32_t j = 0; bound->base && j < n_places(bound->step); j++) {
            const sn_place *place = place_at(bound->step, j);
            if (place->memory != SN_MEM_STATE)
                continue;
            const sn_fixup f = fixup_of(s, bound, j);
            s->source_used[f.source] = true;
            if (s->fixups)
                s->fixups[n] = f;
            n++;
        }
    }
    return n;
}

/* Plans of graphs with everything in arenas and homes have none. */
static snug_status make_fixups(sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    if (!sn_graph_is_outside(g))
        return SNUG_OK;
    if (!s->plan->root)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "a parsed plan cannot run on memory outside");
    const size_t n_sources = (size_t)sn_graph_n_vars(g) + sn_graph_n_values(g);
    SNUG_TRY(sn_session_take(s, n_sources, sizeof *s->sources, &s->sources, err));
    SNUG_TRY(sn_session_take(s, n_sources, sizeof *s->source_used, &s->source_used, err));
    if (s->plan->spilled)
        SNUG_TRY(sn_session_take(s, sn_graph_n_vars(g), sizeof *s->spots, &s->spots, err));
    s->n_fixups = list_fixups(s);
    SNUG_TRY(sn_session_take(s, s->n_fixups, sizeof *s->fixups, &s->fixups, err));
    (void)list_fixups(s);
    return SNUG_OK;
}

static bool bind_source(const sn_session *s, const sn_fixup *f) {
    const sn_spot *at = f->copy ? &s->spots[f->source] : NULL;
    if (at) {
        f->copy->file = at->file;
        f->copy->file_offset = at->offset + f->offset;
        return at->file != NULL;
    }
    unsigned char *const source = s->sources[f->source];
    *f->slot = source ? source + f->offset : NULL;
    return source != NULL;
}

snug_status sn_bind_sources(sn_session *s, snug_error *err) {
    for (size_t i = 0; i < s->n_fixups; i++)
        if (!bind_source(s, &s->fixups[i]))
            return sn_fail(err, SNUG_E_INVALID, "source %u of the plan is not bound",
                           s->fixups[i].source);
    return SNUG_OK;
}

snug_status sn_bind_pointers(sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    for (uint32_t i = 0; i < s->plan->n_steps; i++)
        if (s->bound[i].base)
            SNUG_TRY(locate_step(s, &s->bound[i], err));
    for (uint32_t k = 0; k < sn_graph_n_outputs(g); k++) {
        const sn_value v = s->plan->outputs[k].value;
        s->outputs[k] = (snug_view){.bytes = s->plan->value_bytes[v.i]};
        s->outputs[k].type = *sn_graph_type(g, v);
    }
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        SNUG_TRY(r->kind->show(r, s, err));
    return SNUG_OK;
}
