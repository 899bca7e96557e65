/* gpu_bind.c: a GPU as a runner: its life, and what plans need there: arenas, parameters on the
 * device, pinned memory for feeds, outputs and operands of rows that run on the host, and for
 * copies to other devices; and where everything lies. gpu_run.c has the run.
 *
 * Invariants:
 * 1. The buffers are one block for all sessions of a runner, as large as the largest asks for.
 * 2. A captured run holds addresses: it is dropped whenever something moves. */
#include "exec/gpu_inside.h"

#include "base/size.h"

#include <string.h>

#define UNIT ((size_t)SN_GPU_ALIGN)
/* Feeds of a run up to this are staged whole; others go through a ring of pieces. */
#define WHOLE_BYTES ((size_t)64 << 20)
#define PIECE_BYTES ((size_t)16 << 20)

/* Libraries load code when a kernel of theirs runs first; measured at 46 MiB for 28 plans. */
#define LIBRARY_BYTES ((size_t)48 << 20)
/* A captured run takes memory for each kernel; a row is some of them. Measured with 160,000 rows,
 * about 400,000 kernels: 722 MiB there, and 2.1 GiB of the host. */
#define KERNEL_BYTES   ((size_t)2560)
#define CAPTURE_BYTES  ((size_t)4 << 20)
#define GUARD_BYTES    ((size_t)10 << 20) /* the first guard of a process: 12 MiB with its run */
#define ROW_KERNELS    2
#define ENGINE_KERNELS 4
#define MOST_KERNELS   20000 /* of a run that is captured */
/* Of the graph's nodes, each once: what is booked is the same for all plans of a graph. Runs of
 * many slices or repetitions are captured where there is more room than that. */
#define NODE_KERNELS 3
#define MOST_CAPTURE ((size_t)16 << 20)

size_t sn_gpu_units(size_t bytes) {
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

size_t sn_gpu_kernels(const sn_plan *plan) {
    size_t n = 0, times = 1;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const sn_step *s = &plan->steps[i];
        const bool engine = s->kind == SN_STEP_RUN && sn_impl_is_library(s->impl);
        if (s->kind == SN_STEP_REPEAT)
            times = (size_t)s->repeat;
        else if (s->kind == SN_STEP_END)
            times = 1;
        else
            n += times * (engine ? ENGINE_KERNELS : ROW_KERNELS);
    }
    return n <= MOST_KERNELS ? n : 0;
}

/* Whether something may be refused in a run that writes. */
static bool is_guarded(const sn_plan *plan) {
    bool refuses = false, writes = false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const sn_step *s = &plan->steps[i];
        if (s->kind == SN_STEP_RUN)
            refuses =
                refuses || sn_ops[sn_graph_node_at(plan->graph, s->node)->op].effect == SN_MAYFAIL;
        writes = writes || sn_writes_state(plan->graph, s);
    }
    return refuses && writes;
}

bool sn_gpu_has_capture_room(sn_gpu_device *d, const sn_plan *plan) {
    const size_t n = sn_gpu_kernels(plan);
    const size_t guard = !d->has_guard && is_guarded(plan) ? GUARD_BYTES : 0;
    return n > 0 && sn_gpu_has_beside(d, CAPTURE_BYTES + guard + n * KERNEL_BYTES);
}

size_t sn_gpu_capture_room(sn_gpu_device *d, const sn_plan *plan) {
    const size_t guard = !d->has_guard && is_guarded(plan) ? GUARD_BYTES : 0;
    size_t room;
    d->room_ms = 0; /* libraries may have loaded code since it was looked at */
    if (sn_gpu_room(d, &room, NULL) != SNUG_OK || d->room_bytes < CAPTURE_BYTES + guard)
        return 0;
    return d->room_bytes - CAPTURE_BYTES - guard;
}

/* What the context grew by meanwhile is the run's, not libraries'. */
void sn_gpu_note_capture(sn_gpu_device *d) {
    const size_t loaded = d->loaded_bytes;
    size_t room;
    d->room_ms = 0;
    if (sn_gpu_room(d, &room, NULL) == SNUG_OK && d->loaded_bytes > loaded) {
        d->captured_bytes += d->loaded_bytes - loaded;
        d->loaded_bytes = loaded;
    }
}

size_t sn_gpu_reserve(const sn_gpu_device *d, const sn_plan *plan) {
    const size_t loaded = d ? d->loaded_bytes : 0;
    const bool has_guard = d && d->has_guard;
    const size_t capture =
        CAPTURE_BYTES + sn_graph_n_nodes(plan->graph) * NODE_KERNELS * KERNEL_BYTES;
    bool library = false;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        library = library ||
                  (plan->steps[i].kind == SN_STEP_RUN && sn_impl_is_library(plan->steps[i].impl));
    return (capture < MOST_CAPTURE ? capture : MOST_CAPTURE) +
           (!has_guard && is_guarded(plan) ? GUARD_BYTES : 0) +
           (library && loaded < LIBRARY_BYTES ? LIBRARY_BYTES - loaded : 0);
}

/* --- measuring -------------------------------------------------------------------------------- */

int64_t sn_gpu_iterations(const sn_session *s, const sn_bound *bound) {
    return bound->block == SN_NO_BLOCK ? 1 : s->plan->steps[bound->block].repeat;
}

/* A feed may turn out to be a recipe: it has room for the numbers of each iteration's. */
static void measure_feed(sn_gpu_part *part, const sn_session *s, sn_bound *bound, size_t *sum,
                         size_t *n_params) {
    const snug_view *view = &bound->whole.views[0];
    const int64_t rows = view->type.rank > 0 ? view->type.dims[0] : 1;
    const size_t row = rows > 0 ? view->bytes / (size_t)rows : view->bytes;
    const size_t piece = view->bytes < PIECE_BYTES ? view->bytes : larger(row, PIECE_BYTES);
    bound->made = -1;
    bound->param_at = *n_params;
    *n_params += SN_GPU_NUMBERS * (size_t)sn_gpu_iterations(s, bound);
    bound->stage_at = *sum;
    *sum += sn_gpu_units(view->bytes) * (size_t)sn_gpu_iterations(s, bound);
    part->piece_bytes = larger(part->piece_bytes, sn_gpu_units(piece));
}

/* Operands and scratch of a row that the host runs. */
static snug_status measure_host_row(const sn_runner *r, const sn_session *s, sn_bound *bound,
                                    snug_error *err) {
    const sn_device *host = &r->host.device;
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    const sn_step *step = bound->step;
    sn_opdesc desc;
    sn_variant variant = {.id = 0};
    size_t sum = 0;
    sn_graph_desc(s->plan->graph, step->node, &desc);
    for (int i = 0; i < desc.n_in; i++)
        desc.in[i] = bound->whole.views[i].type;
    for (int i = 0; i < desc.n_out; i++)
        desc.out[i] = bound->whole.views[desc.n_in + i].type;
    SNUG_TRY(host->describe(host, &desc, &variant, err));
    for (uint32_t j = 0; j < (uint32_t)step->n_in + step->n_out; j++)
        sum += sn_gpu_units(bound->whole.views[j].bytes);
    bound->on_host = true;
    bound->call.workspace_bytes = variant.workspace_bytes;
    part->has_host_rows = true;
    part->sizes.scratch = larger(part->sizes.scratch, sum + sn_gpu_units(variant.workspace_bytes));
    return SNUG_OK;
}

static snug_status measure_run(const sn_runner *r, const sn_session *s, sn_bound *bound,
                               size_t *n_params, snug_error *err) {
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    bound->param_at = *n_params;
    *n_params += bound->n_params;
    part->checks = part->checks || sn_ops[bound->call.op].effect == SN_MAYFAIL;
    return sn_impl_kind_of(bound->step->impl) == SN_IMPL_HOST ? measure_host_row(r, s, bound, err)
                                                              : SNUG_OK;
}

/* A copy from one card to another goes through the first one's pinned memory. */
static void measure_copy(const sn_runner *r, const sn_session *s, const sn_bound *bound) {
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    const sn_runner *from = sn_runner_of_memory(s, bound->step->in[0].memory);
    const sn_runner *to = sn_runner_of_memory(s, bound->step->out[0].memory);
    if (from == r && to != r && to->kind->apart)
        part->sizes.scratch =
            larger(part->sizes.scratch, sn_gpu_units(bound->whole.views[0].bytes));
}

/* Without anything outside there is one run to capture. */
static snug_status make_captures(sn_gpu_part *part, sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    const size_t n = s->sources ? (size_t)sn_graph_n_vars(g) + sn_graph_n_values(g) : 0;
    size_t n_used = 0;
    part->now = &part->captures[0];
    for (size_t i = 0; i < n; i++)
        n_used += s->source_used[i];
    for (int k = 0; s->sources && k < SN_GPU_CAPTURES; k++)
        SNUG_TRY(sn_session_take(s, n_used, sizeof(void *), &part->captures[k].sources, err));
    return SNUG_OK;
}

/* How far from a step its result is read: known where its bytes are the arena's, and the steps up
 * to the last that reads it are calls, too. `last` has a word per value: the last step that reads
 * it before it is made again. */
static void set_reach(const sn_runner *r, const sn_session *s, uint32_t i, const uint32_t *last) {
    const sn_step *step = &s->plan->steps[i];
    if (s->bound[i].runner != r->index || step->n_out != 1 || step->out[0].memory == SN_MEM_STATE)
        return;
    const uint32_t end = last[step->out[0].value.i];
    for (uint32_t k = i + 1; k <= end; k++)
        if (end == UINT32_MAX || s->plan->steps[k].kind != SN_STEP_RUN ||
            s->bound[k].runner != r->index)
            return;
    s->bound[i].call.reach = end > i ? end - i : 0;
}

static snug_status measure_reach(const sn_runner *r, sn_session *s, snug_error *err) {
    const sn_plan *plan = s->plan;
    uint32_t *last;
    SNUG_TRY(sn_session_take(s, sn_graph_n_values(plan->graph), sizeof *last, &last, err));
    for (uint32_t k = 0; k < sn_graph_n_outputs(plan->graph); k++)
        last[plan->outputs[k].value.i] = UINT32_MAX;
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        const sn_step *step = &plan->steps[i];
        if (step->kind == SN_STEP_RUN)
            set_reach(r, s, i, last);
        for (uint32_t k = 0; k < step->n_out; k++)
            last[step->out[k].value.i] = 0;
        for (uint32_t k = 0; k < step->n_in; k++)
            if (last[step->in[k].value.i] == 0)
                last[step->in[k].value.i] = i;
    }
    return SNUG_OK;
}

static snug_status measure_steps(sn_runner *r, sn_session *s, size_t *staged, size_t *n_params,
                                 snug_error *err) {
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        if (bound->step->kind == SN_STEP_COPY)
            measure_copy(r, s, bound);
        if (!bound->base || bound->runner != r->index)
            continue;
        if (bound->step->kind == SN_STEP_FEED)
            measure_feed(part, s, bound, staged, n_params);
        else if (bound->step->kind == SN_STEP_RUN)
            SNUG_TRY(measure_run(r, s, bound, n_params, err));
        part->writes = part->writes || bound->writes_state;
        part->queues |= 1u << bound->step->queue;
    }
    return SNUG_OK;
}

static bool is_output_here(const sn_runner *r, const sn_session *s, uint32_t k) {
    return !s->sources && sn_runner_of_memory(s, s->plan->outputs[k].memory) == r;
}

static snug_status gpu_measure(sn_runner *r, sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    size_t n_params = 0, staged = 0;
    sn_gpu_part *part;
    SNUG_TRY(sn_session_take(s, 1, sizeof *part, &part, err));
    s->parts[r->index] = part;
    SNUG_TRY(measure_steps(r, s, &staged, &n_params, err));
    for (uint32_t k = 0; k < sn_graph_n_outputs(g); k++)
        if (is_output_here(r, s, k))
            part->sizes.outputs += sn_gpu_units(s->plan->value_bytes[s->plan->outputs[k].value.i]);
    part->whole = staged <= WHOLE_BYTES;
    part->staged_bytes = staged;
    part->sizes.stage = part->whole ? staged : SN_GPU_RING * part->piece_bytes;
    part->sizes.params = sn_gpu_units(n_params * sizeof(sn_scalar));
    SNUG_TRY(make_captures(part, s, err));
    SNUG_TRY(measure_reach(r, s, err));
    return sn_session_take(s, sn_graph_n_outputs(g), sizeof *part->output_at, &part->output_at,
                           err);
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* The plan pins the way of the slice; of a shorter last one the checker has seen the device's own,
 * and that the workspace has room for it. */
static snug_status gpu_prepare(sn_runner *r, sn_session *s, const sn_bound *bound,
                               const sn_opdesc *desc, void **prepared, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_variant own = {.id = 0};
    (void)s;
    if (bound->on_host)
        return sn_kernel_prepare(r->executor->engine, &r->host, desc, prepared, err);
    const bool last = prepared == &bound->last.prepared;
    if (last)
        SNUG_TRY(d->device.describe(&d->device, desc, &own, err));
    return d->api->prepare(d->gpu, desc, last ? own.impl : bound->step->impl, prepared, err);
}

static void gpu_release(sn_runner *r, const sn_bound *bound, void *prepared) {
    const sn_gpu_device *d = sn_gpu_card(r);
    if (bound->on_host)
        sn_kernel_release(r->executor->engine, bound->call.op, prepared);
    else
        d->api->release(d->gpu, bound->call.op, prepared);
}

static void drop_graph(const sn_runner *r, sn_gpu_captured_run *c) {
    const sn_gpu_device *d = sn_gpu_card(r);
    if (c->graph)
        d->api->drop(d->gpu, c->graph);
    c->graph = NULL;
    c->guarded = false;
}

void sn_gpu_drop_graphs(const sn_runner *r, sn_session *s) {
    for (int k = 0; k < SN_GPU_CAPTURES; k++)
        drop_graph(r, &sn_gpu_part_of(r, s)->captures[k]);
}

static void gpu_moved(sn_runner *r, sn_session *s) {
    sn_gpu_drop_graphs(r, s);
}

static void gpu_forget(sn_runner *r, sn_session *s) {
    if (!sn_gpu_part_of(r, s))
        return;
    sn_gpu_drop_graphs(r, s);
    if (sn_gpu_side_of(r)->ahead == s)
        sn_gpu_side_of(r)->ahead = NULL;
}

/* --- which capture serves --------------------------------------------------------------------- */

/* Whether the capture's sources are those of now; `take` makes them so. */
static bool has_sources(const sn_session *s, sn_gpu_captured_run *c, bool take) {
    const sn_graph *g = s->plan->graph;
    const size_t n = (size_t)sn_graph_n_vars(g) + sn_graph_n_values(g);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!s->source_used[i])
            continue;
        if (take)
            c->sources[k] = s->sources[i];
        else if (c->sources[k] != s->sources[i])
            return false;
        k++;
    }
    return true;
}

void sn_gpu_choose_capture(const sn_runner *r, sn_session *s) {
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    if (!s->sources)
        return;
    for (int k = 0; k < SN_GPU_CAPTURES; k++)
        if (part->captures[k].n_runs > 0 && has_sources(s, &part->captures[k], false)) {
            part->now = &part->captures[k];
            return;
        }
    part->now = &part->captures[part->next_capture++ % SN_GPU_CAPTURES];
    drop_graph(r, part->now);
    part->now->n_runs = 0;
    (void)has_sources(s, part->now, true);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* A session that uses the runner, after another; NULL: there is none. */
static const sn_session *next_session(const sn_runner *r, const sn_session *before) {
    const sn_session *s = before ? before->next : r->executor->first;
    while (s && !sn_gpu_part_of(r, s))
        s = s->next;
    return s;
}

static snug_status make_arena(const sn_runner *r, uint32_t m, snug_error *err) {
    size_t bytes;
    const char *name;
    sn_gpu_piece *arena = &sn_gpu_side_of(r)->arenas[m];
    if (!sn_runner_largest(r, m, SN_MEMORY_BYTES, &bytes, &name) ||
        (arena->data && arena->bytes >= bytes))
        return SNUG_OK;
    sn_executor_make_unready(r->executor);
    sn_gpu_give(sn_gpu_card(r), arena->data);
    *arena = (sn_gpu_piece){.data = NULL};
    SNUG_TRY(sn_gpu_take(sn_gpu_card(r), name, bytes, &arena->data, err));
    arena->bytes = bytes;
    return SNUG_OK;
}

static snug_view gpu_arena(const sn_runner *r, uint32_t memory) {
    const sn_gpu_piece *arena = &sn_gpu_side_of(r)->arenas[memory];
    return (snug_view){.data = arena->data, .bytes = arena->bytes};
}

static size_t gpu_file_bytes(const sn_runner *r, uint32_t memory) {
    return sn_gpu_side_of(r)->files[memory].bytes;
}

static snug_status gpu_make_file(sn_runner *r, uint32_t memory, size_t bytes, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_gpu_piece *file = &sn_gpu_side_of(r)->files[memory];
    d->api->unpin(d->gpu, file->data, file->bytes);
    *file = (sn_gpu_piece){.data = NULL};
    SNUG_TRY(d->api->pin(d->gpu, bytes, &file->data, err));
    file->bytes = bytes;
    return SNUG_OK;
}

/* Arenas on the host's ledger: there are none. */
static size_t gpu_nothing(const sn_runner *r) {
    (void)r;
    return 0;
}

static bool gpu_take_nothing(const sn_runner *r) {
    (void)r;
    return false;
}

static bool cover(const sn_gpu_sizes *have, const sn_gpu_sizes *need) {
    return have->params >= need->params && have->outputs >= need->outputs &&
           have->stage >= need->stage && have->scratch >= need->scratch;
}

static sn_gpu_sizes largest_of(sn_gpu_sizes a, const sn_gpu_sizes *b) {
    return (sn_gpu_sizes){larger(a.params, b->params), larger(a.outputs, b->outputs),
                          larger(a.stage, b->stage), larger(a.scratch, b->scratch)};
}

static void clear_buffers(const sn_runner *r) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_gpu_side *side = sn_gpu_side_of(r);
    sn_gpu_give(side->card, side->params);
    if (side->pinned.data)
        d->api->unpin(d->gpu, side->pinned.data, side->pinned.bytes);
    side->params = NULL;
    side->pinned = (sn_gpu_piece){.data = NULL};
    side->sizes = (sn_gpu_sizes){.params = 0};
}

static snug_status make_buffers(const sn_runner *r, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_gpu_side *side = sn_gpu_side_of(r);
    sn_gpu_sizes need = side->sizes;
    for (const sn_session *s = next_session(r, NULL); s; s = next_session(r, s))
        need = largest_of(need, &sn_gpu_part_of(r, s)->sizes);
    if (side->pinned.data && cover(&side->sizes, &need))
        return SNUG_OK;
    sn_executor_make_unready(r->executor);
    clear_buffers(r);
    const size_t sum = need.params + need.outputs + need.stage + need.scratch;
    SNUG_TRY(sn_gpu_take(side->card, "parameters", need.params, &side->params, err));
    SNUG_TRY(d->api->pin(d->gpu, sum, &side->pinned.data, err));
    side->pinned.bytes = sum;
    side->sizes = need;
    return SNUG_OK;
}

/* Whether the variable's home has its place here. */
static bool is_home_here(const sn_runner *r, const sn_session *s) {
    return !s->sources && sn_runner_of_memory(s, SN_MEM_STATE) == r;
}

/* Of the plans' own variables: a model that only predicts does not pay for an optimizer's slots. */
static snug_status place_homes(const sn_runner *r, bool *wanted, snug_error *err) {
    for (const sn_session *s = next_session(r, NULL); s; s = next_session(r, s))
        for (uint32_t i = 0; is_home_here(r, s) && i < sn_graph_n_vars(s->plan->graph); i++)
            if (!sn_plan_spills(s->plan, (sn_var){i}))
                wanted[sn_graph_var_at(s->plan->graph, (sn_var){i})->home] = true;
    return sn_state_place(r->executor->state, wanted, err);
}

static snug_status make_homes(const sn_runner *r, snug_error *err) {
    const size_t n = sn_state_count(r->executor->state);
    void *wanted;
    SNUG_TRY(sn_alloc_zero(r->executor->engine, SN_MEM_PLAN, n, &wanted, err));
    const snug_status status = place_homes(r, wanted, err);
    sn_free(r->executor->engine, SN_MEM_PLAN, wanted, n);
    return status;
}

static void clear_feeds(const sn_runner *r) {
    sn_gpu_side *side = sn_gpu_side_of(r);
    sn_gpu_give(side->card, side->feeds.data);
    side->feeds = (sn_gpu_piece){.data = NULL};
    side->ahead = NULL;
}

/* Twice the feeds of a run, where there is room for that beside what libraries and captured runs
 * may still take. Nothing needs them: where they cannot be had, runs bring their own feeds. */
static void make_feeds(const sn_runner *r) {
    sn_gpu_side *side = sn_gpu_side_of(r);
    size_t bytes = 0, reserve = 0, room;
    for (const sn_session *s = next_session(r, NULL); s; s = next_session(r, s)) {
        bytes = s->wants_next ? larger(bytes, 2 * sn_gpu_part_of(r, s)->staged_bytes) : bytes;
        reserve = larger(reserve, sn_gpu_reserve(NULL, s->plan));
    }
    if (bytes == 0 || sn_gpu_room(side->card, &room, NULL) != SNUG_OK || room < reserve + bytes)
        return;
    if (sn_gpu_take(side->card, "the next batch", bytes, &side->feeds.data, NULL) == SNUG_OK)
        side->feeds.bytes = bytes;
}

/* The feeds' place is taken last, and given back first: all else is needed more. */
static snug_status gpu_make(sn_runner *r, snug_error *err) {
    if (sn_gpu_side_of(r)->feeds.data)
        sn_executor_make_unready(r->executor);
    clear_feeds(r);
    SNUG_TRY(make_homes(r, err));
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
        SNUG_TRY(make_arena(r, m, err));
    SNUG_TRY(make_buffers(r, err));
    make_feeds(r);
    return SNUG_OK;
}

static void gpu_drop_arenas(sn_runner *r) {
    clear_feeds(r);
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++) {
        sn_gpu_give(sn_gpu_card(r), sn_gpu_side_of(r)->arenas[m].data);
        sn_gpu_side_of(r)->arenas[m] = (sn_gpu_piece){.data = NULL};
    }
}

static bool gpu_fits(const sn_runner *r, const sn_session *s) {
    const sn_gpu_side *side = sn_gpu_side_of(r);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < s->plan->n_memories; m++)
        if (s->plan->memories[m].kind == SN_MEMORY_BYTES && sn_runner_of_memory(s, m) == r &&
            (!side->arenas[m].data || side->arenas[m].bytes < s->plan->memories[m].bytes))
            return false;
    for (uint32_t i = 0; is_home_here(r, s) && i < sn_graph_n_vars(s->plan->graph); i++)
        if (!sn_state_at(r->executor->state, sn_graph_var_at(s->plan->graph, (sn_var){i})->home))
            return false;
    return side->pinned.data && cover(&side->sizes, &sn_gpu_part_of(r, s)->sizes);
}

/* --- life ------------------------------------------------------------------------------------- */

static snug_status gpu_open(sn_runner *r, const sn_device *d, snug_error *err) {
    SNUG_TRY(sn_alloc_zero(r->executor->engine, SN_MEM_PLAN, sizeof(sn_gpu_side), &r->own, err));
    sn_gpu_side_of(r)->card = sn_gpu_of(d);
    r->host = sn_gpu_card(r)->host;
    sn_gpu_card(r)->n_users++;
    return SNUG_OK;
}

static void gpu_close(sn_runner *r) {
    sn_gpu_device *d = sn_gpu_card(r);
    gpu_drop_arenas(r);
    clear_buffers(r);
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++)
        d->api->unpin(d->gpu, sn_gpu_side_of(r)->files[m].data, sn_gpu_side_of(r)->files[m].bytes);
    d->n_users--;
    sn_free(r->executor->engine, SN_MEM_PLAN, r->own, sizeof(sn_gpu_side));
}

/* --- places ----------------------------------------------------------------------------------- */

static snug_status gpu_find(const sn_runner *r, const sn_session *s, const sn_place *place,
                            sn_spot *out, snug_error *err) {
    const sn_gpu_side *side = sn_gpu_side_of(r);
    const sn_graph *g = s->plan->graph;
    (void)err;
    *out = (sn_spot){.data = NULL};
    if (place->memory == SN_MEM_STATE && s->sources)
        return SNUG_OK; /* known at each run: sn_bind_sources */
    if (place->memory == SN_MEM_STATE) {
        const int32_t var = sn_graph_value_at(g, place->value)->var;
        const uint32_t home = sn_graph_var_at(g, (sn_var){(uint32_t)var})->home;
        out->pinned = sn_state_is_spilled(r->executor->state, home);
        out->data = (unsigned char *)sn_state_at(r->executor->state, home) + place->offset;
        return SNUG_OK;
    }
    out->pinned = s->plan->memories[place->memory].kind == SN_MEMORY_FILE;
    const sn_gpu_piece *piece =
        out->pinned ? &side->files[place->memory] : &side->arenas[place->memory];
    out->data = (unsigned char *)piece->data + place->offset;
    return SNUG_OK;
}

unsigned char *sn_gpu_pinned_outputs(const sn_runner *r) {
    return (unsigned char *)sn_gpu_side_of(r)->pinned.data + sn_gpu_side_of(r)->sizes.params;
}

unsigned char *sn_gpu_pinned_stage(const sn_runner *r) {
    return sn_gpu_pinned_outputs(r) + sn_gpu_side_of(r)->sizes.outputs;
}

unsigned char *sn_gpu_pinned_scratch(const sn_runner *r) {
    return sn_gpu_pinned_stage(r) + sn_gpu_side_of(r)->sizes.stage;
}

static void *gpu_between(const sn_runner *r) {
    return sn_gpu_pinned_scratch(r);
}

/* They are copied there at the end of a run. */
static snug_status gpu_show(sn_runner *r, sn_session *s, snug_error *err) {
    unsigned char *at = sn_gpu_pinned_outputs(r);
    for (uint32_t k = 0; k < sn_graph_n_outputs(s->plan->graph); k++) {
        sn_spot spot;
        if (!is_output_here(r, s, k))
            continue;
        SNUG_TRY(gpu_find(r, s, &s->plan->outputs[k], &spot, err));
        sn_gpu_part_of(r, s)->output_at[k] = spot.data;
        s->outputs[k].data = at;
        at += sn_gpu_units(s->outputs[k].bytes);
    }
    return SNUG_OK;
}

const sn_runner_class sn_gpu_runner = {
    .apart = true,
    .open = gpu_open,
    .close = gpu_close,
    .make = gpu_make,
    .fits = gpu_fits,
    .drop_arenas = gpu_drop_arenas,
    .arena = gpu_arena,
    .booked = gpu_nothing,
    .others = gpu_nothing,
    .take_others = gpu_take_nothing,
    .file_bytes = gpu_file_bytes,
    .make_file = gpu_make_file,
    .measure = gpu_measure,
    .forget = gpu_forget,
    .moved = gpu_moved,
    .prepare = gpu_prepare,
    .release = gpu_release,
    .find = gpu_find,
    .show = gpu_show,
    .begin = sn_gpu_begin,
    .drive = sn_gpu_drive,
    .start = sn_gpu_start,
    .wait = sn_gpu_wait,
    .reach = sn_gpu_reach,
    .join = sn_gpu_join,
    .before_writes = sn_gpu_before_writes,
    .call = sn_gpu_call,
    .feed = sn_gpu_feed,
    .copy = sn_gpu_copy_step,
    .fetch = sn_gpu_fetch,
    .store = sn_gpu_store,
    .between = gpu_between,
    .end = sn_gpu_end,
    .give_up = sn_gpu_give_up,
    .call_once = sn_gpu_call_once,
    .takes_next = sn_gpu_takes_next,
    .has_next = sn_gpu_has_next,
};

const sn_runner_class *sn_runner_class_of(const sn_device *d) {
    return sn_gpu_of(d) ? &sn_gpu_runner : &sn_cpu_runner;
}
