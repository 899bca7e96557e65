/* runner_cpu.c: the processor as a runner. Its memory is everybody's, and what it is given is over
 * when the call returns: there is nothing to wait for between steps. Steps of its copy queues are
 * lanes with threads of their own, where no runner of the session is apart.
 *
 * Invariants:
 * 1. An arena that must grow is given back before the larger one is asked for: the peak is never
 * old + new.
 * 2. A variable's home has one address as long as the state lives, or lies in the spill file. */
#include "exec/inside.h"

#include <string.h>

typedef struct {
    sn_block arenas[SN_MAX_MEMORIES]; /* by the plans' memory numbers; 0 is unused */
    sn_spill *files[SN_MAX_MEMORIES]; /* the same of memories that are files */
} cpu_side;

static cpu_side *side_of(const sn_runner *r) {
    return r->own;
}

/* --- life ------------------------------------------------------------------------------------- */

static snug_status cpu_open(sn_runner *r, const sn_device *d, snug_error *err) {
    r->host = *(const sn_cpu_device *)d;
    return sn_alloc_zero(r->executor->engine, SN_MEM_PLAN, sizeof(cpu_side), &r->own, err);
}

static void cpu_close(sn_runner *r) {
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++) {
        sn_block_clear(&side_of(r)->arenas[m]);
        sn_spill_destroy(side_of(r)->files[m]);
    }
    sn_free(r->executor->engine, SN_MEM_PLAN, r->own, sizeof(cpu_side));
}

/* --- memory ----------------------------------------------------------------------------------- */

static snug_status make_arena(sn_runner *r, uint32_t m, snug_error *err) {
    size_t bytes;
    const char *name;
    sn_block *arena = &side_of(r)->arenas[m];
    if (!sn_runner_largest(r, m, SN_MEMORY_BYTES, &bytes, &name) ||
        (arena->data && arena->bytes >= bytes))
        return SNUG_OK;
    sn_executor_make_unready(r->executor);
    sn_block_clear(arena);
    const sn_block_options options = {.guard = r->executor->options.guard, .populate = true};
    return sn_block_init(r->executor->engine, SN_MEM_ARENA, name, bytes, &options, arena, err);
}

/* Of the plan's own variables: a model that only predicts does not pay for an optimizer's slots. */
static snug_status make_homes(const sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    for (uint32_t i = 0; !sn_graph_is_outside(g) && i < sn_graph_n_vars(g); i++) {
        snug_view home;
        if (!sn_plan_spills(s->plan, (sn_var){i}))
            SNUG_TRY(sn_state_view(s->executor->state, sn_graph_var_at(g, (sn_var){i})->home, &home,
                                   err));
    }
    return SNUG_OK;
}

static snug_status try_make(sn_runner *r, snug_error *err) {
    for (const sn_session *s = r->executor->first; s; s = s->next)
        if (sn_runner_of_memory(s, SN_MEM_STATE) == r)
            SNUG_TRY(make_homes(s, err));
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
        SNUG_TRY(make_arena(r, m, err));
    return SNUG_OK;
}

/* Plans count idle arenas of others as free: here they are taken, if need be. */
static snug_status cpu_make(sn_runner *r, snug_error *err) {
    sn_executor *x = r->executor;
    snug_status status = try_make(r, err);
    if ((status == SNUG_E_BUDGET || status == SNUG_E_MEMORY) && sn_idle_give(x->engine, &x->idle))
        status = try_make(r, err);
    return status;
}

static bool cpu_fits(const sn_runner *r, const sn_session *s) {
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < s->plan->n_memories; m++) {
        const sn_plan_memory *memory = &s->plan->memories[m];
        const sn_block *arena = &side_of(r)->arenas[m];
        if (memory->kind == SN_MEMORY_BYTES && sn_runner_of_memory(s, m) == r &&
            (!arena->data || arena->bytes < memory->bytes))
            return false;
    }
    return true;
}

static void cpu_drop_arenas(sn_runner *r) {
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++)
        sn_block_clear(&side_of(r)->arenas[m]);
}

static snug_view cpu_arena(const sn_runner *r, uint32_t memory) {
    const sn_block *b = &side_of(r)->arenas[memory];
    return (snug_view){.data = b->data, .bytes = b->bytes};
}

static size_t cpu_booked(const sn_runner *r) {
    size_t sum = 0;
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++)
        sum += side_of(r)->arenas[m].booked_bytes;
    return sum;
}

static size_t cpu_others(const sn_runner *r) {
    return sn_idle_bytes(r->executor->engine, &r->executor->idle);
}

static bool cpu_take_others(const sn_runner *r) {
    return sn_idle_give(r->executor->engine, &r->executor->idle);
}

static size_t cpu_file_bytes(const sn_runner *r, uint32_t memory) {
    const sn_spill *file = side_of(r)->files[memory];
    return file ? sn_spill_bytes(file) : 0;
}

static snug_status cpu_make_file(sn_runner *r, uint32_t memory, size_t bytes, snug_error *err) {
    sn_spill **file = &side_of(r)->files[memory];
    sn_spill_destroy(*file);
    *file = NULL;
    return sn_spill_create(r->executor->engine, r->executor->options.spill_folder, bytes, file,
                           err);
}

/* --- a session -------------------------------------------------------------------------------- */

static snug_status cpu_measure(sn_runner *r, sn_session *s, snug_error *err) {
    (void)r, (void)s, (void)err;
    return SNUG_OK;
}

static void cpu_forget(sn_runner *r, sn_session *s) {
    (void)r, (void)s;
}

static snug_status cpu_prepare(sn_runner *r, sn_session *s, const sn_bound *bound,
                               const sn_opdesc *desc, void **prepared, snug_error *err) {
    (void)s, (void)bound;
    return sn_kernel_prepare(r->executor->engine, &r->host, desc, prepared, err);
}

static void cpu_release(sn_runner *r, const sn_bound *bound, void *prepared) {
    sn_kernel_release(r->executor->engine, bound->call.op, prepared);
}

static snug_status find_home(const sn_session *s, const sn_place *place, sn_spot *out,
                             snug_error *err) {
    const sn_graph *g = s->plan->graph;
    const int32_t var =
        sn_graph_value_at(g, place->value)->var; /* the checker has seen that it is */
    const uint32_t home = sn_graph_var_at(g, (sn_var){(uint32_t)var})->home;
    snug_view view;
    out->file = sn_state_file(s->executor->state, home, &out->offset);
    out->offset += place->offset;
    if (out->file)
        return SNUG_OK;
    SNUG_TRY(sn_state_view(s->executor->state, home, &view, err));
    out->data = (unsigned char *)view.data + place->offset;
    return SNUG_OK;
}

static snug_status cpu_find(const sn_runner *r, const sn_session *s, const sn_place *place,
                            sn_spot *out, snug_error *err) {
    *out = (sn_spot){.offset = place->offset};
    if (place->memory == SN_MEM_STATE) /* what is outside is known at each run: sn_bind_sources */
        return s->sources ? SNUG_OK : find_home(s, place, out, err);
    if (s->plan->memories[place->memory].kind == SN_MEMORY_FILE)
        out->file = side_of(r)->files[place->memory];
    else
        out->data = (unsigned char *)side_of(r)->arenas[place->memory].data + place->offset;
    return SNUG_OK;
}

static snug_status cpu_show(sn_runner *r, sn_session *s, snug_error *err) {
    for (uint32_t k = 0; k < sn_graph_n_outputs(s->plan->graph); k++) {
        const sn_place *place = &s->plan->outputs[k];
        sn_spot spot;
        if (sn_runner_of_memory(s, place->memory) != r)
            continue;
        SNUG_TRY(cpu_find(r, s, place, &spot, err));
        s->outputs[k].data = spot.data;
    }
    return SNUG_OK;
}

/* --- a run ------------------------------------------------------------------------------------ */

static snug_status cpu_begin(sn_runner *r, sn_session *s, snug_error *err) {
    const sn_executor_options *o = &r->executor->options;
    (void)s, (void)err;
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++) {
        const sn_block *arena = &side_of(r)->arenas[m];
        if (o->poison_set && o->poison >= 0 && arena->data)
            memset(arena->data, o->poison, arena->bytes);
    }
    return SNUG_OK;
}

/* The child of a fork has no copy threads: it does all itself. */
static snug_status cpu_drive(sn_runner *r, sn_session *s, snug_error *err) {
    sn_crew *crew = &r->executor->crew;
    if ((s->lanes & ~1u) == 0 || !sn_crew_is_here(crew))
        return sn_run_alone(s, err);
    sn_crew_begin(crew, s);
    sn_run_lane(s, 0);
    sn_crew_finish(crew);
    return s->status;
}

static snug_status nothing(sn_runner *r, sn_session *s, snug_error *err) {
    (void)r, (void)s, (void)err;
    return SNUG_OK;
}

static snug_status cpu_wait(sn_runner *r, sn_session *s, const sn_step *step, snug_error *err) {
    (void)r, (void)s, (void)step, (void)err;
    return SNUG_OK;
}

static snug_status cpu_reach(sn_runner *r, sn_session *s, sn_queue queue, snug_error *err) {
    (void)r, (void)s, (void)queue, (void)err;
    return SNUG_OK;
}

static snug_status cpu_call(sn_runner *r, sn_session *s, const sn_bound *bound, const sn_call *call,
                            snug_error *err) {
    (void)r, (void)s;
    return bound->kernel(call, err);
}

static snug_status cpu_feed(sn_runner *r, sn_session *s, const sn_bound *bound, int64_t iteration,
                            int64_t first_row, const snug_view *to, snug_error *err) {
    (void)r, (void)iteration;
    return sn_fill_rows(s, bound->step->input, first_row, to, err);
}

static snug_status cpu_copy(sn_runner *r, sn_session *s, const sn_bound *bound, int64_t iteration,
                            const sn_bound_shape *shape, snug_error *err) {
    const snug_view *from = &shape->views[0], *to = &shape->views[1];
    const sn_place *place = bound->to_file ? &bound->step->out[0] : &bound->step->in[0];
    const size_t at = bound->file_offset + (size_t)iteration * place->stride;
    (void)r, (void)s;
    if (bound->file && bound->to_file)
        return sn_spill_write(bound->file, from->data, from->bytes, at, err);
    if (bound->file)
        return sn_spill_read(bound->file, to->data, to->bytes, at, err);
    if (from->data != to->data)
        memcpy(to->data, from->data, from->bytes);
    return SNUG_OK;
}

static snug_status cpu_move(sn_runner *r, sn_queue queue, void *to, const void *from, size_t bytes,
                            snug_error *err) {
    (void)r, (void)queue, (void)err;
    if (to != from)
        memcpy(to, from, bytes);
    return SNUG_OK;
}

static void *cpu_between(const sn_runner *r) {
    (void)r;
    return NULL;
}

static bool never(const sn_runner *r, const sn_session *s) {
    (void)r, (void)s;
    return false;
}

static snug_status cpu_call_once(snug_engine *e, const sn_device *d, const sn_opdesc *desc,
                                 const sn_call *call, snug_error *err) {
    const sn_cpu_device *cpu = (const sn_cpu_device *)d;
    sn_variant variant = {0};
    void *scratch = NULL, *prepared = NULL;
    SNUG_TRY(d->describe(d, desc, &variant, err));
    SNUG_TRY(sn_alloc(e, SN_MEM_OTHER, variant.workspace_bytes, &scratch, err));
    snug_status status = sn_kernel_prepare(e, cpu, desc, &prepared, err);
    if (status == SNUG_OK) {
        sn_call own = *call;
        own.workspace = scratch;
        own.workspace_bytes = variant.workspace_bytes;
        own.n_threads = d->n_threads;
        own.prepared = prepared;
        status = sn_kernel_of(cpu, desc->op)(&own, err);
    }
    sn_kernel_release(e, desc->op, prepared);
    sn_free(e, SN_MEM_OTHER, scratch, variant.workspace_bytes);
    return status;
}

const sn_runner_class sn_cpu_runner = {
    .on_disk = true,
    .lends = true,
    .open = cpu_open,
    .close = cpu_close,
    .make = cpu_make,
    .fits = cpu_fits,
    .drop_arenas = cpu_drop_arenas,
    .arena = cpu_arena,
    .booked = cpu_booked,
    .others = cpu_others,
    .take_others = cpu_take_others,
    .file_bytes = cpu_file_bytes,
    .make_file = cpu_make_file,
    .measure = cpu_measure,
    .forget = cpu_forget,
    .moved = cpu_forget,
    .prepare = cpu_prepare,
    .release = cpu_release,
    .find = cpu_find,
    .show = cpu_show,
    .begin = cpu_begin,
    .drive = cpu_drive,
    .start = nothing,
    .wait = cpu_wait,
    .reach = cpu_reach,
    .join = nothing,
    .before_writes = nothing,
    .call = cpu_call,
    .feed = cpu_feed,
    .copy = cpu_copy,
    .fetch = cpu_move,
    .store = cpu_move,
    .between = cpu_between,
    .end = nothing,
    .give_up = cpu_forget,
    .call_once = cpu_call_once,
    .takes_next = never,
    .has_next = never,
};
