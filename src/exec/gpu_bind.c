/* gpu_bind.c: what a plan needs to run on a GPU beyond its arena: parameters on the device, pinned
 * memory for feeds, outputs and operands of rows that run on the host; and where everything lies.
 *
 * Invariants:
 * 1. The buffers are one block for all sessions of an executor, as large as the largest asks for.
 * 2. A captured run holds addresses: it is dropped whenever something moves. */
#include "exec/inside.h"

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

static bool is_library(const char *impl) {
    return strncmp(impl, "cublaslt:", 9) == 0 || strncmp(impl, "cudnn:", 6) == 0;
}

size_t sn_gpu_kernels(const sn_plan *plan) {
    size_t n = 0, times = 1;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const sn_step *s = &plan->steps[i];
        const bool engine = s->kind == SN_STEP_RUN && is_library(s->impl);
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
        library =
            library || (plan->steps[i].kind == SN_STEP_RUN && is_library(plan->steps[i].impl));
    return (capture < MOST_CAPTURE ? capture : MOST_CAPTURE) +
           (!has_guard && is_guarded(plan) ? GUARD_BYTES : 0) +
           (library && loaded < LIBRARY_BYTES ? LIBRARY_BYTES - loaded : 0);
}

/* --- measuring -------------------------------------------------------------------------------- */

int64_t sn_gpu_iterations(const sn_session *s, const sn_bound *bound) {
    return bound->block == SN_NO_BLOCK ? 1 : s->plan->steps[bound->block].repeat;
}

/* A feed may turn out to be a recipe: it has room for the numbers of each iteration's. */
static void measure_feed(sn_session *s, sn_bound *bound, size_t *sum, size_t *n_params) {
    const snug_view *view = &bound->whole.views[0];
    const int64_t rows = view->type.rank > 0 ? view->type.dims[0] : 1;
    const size_t row = rows > 0 ? view->bytes / (size_t)rows : view->bytes;
    const size_t piece = view->bytes < PIECE_BYTES ? view->bytes : larger(row, PIECE_BYTES);
    bound->made = -1;
    bound->param_at = *n_params;
    *n_params += SN_GPU_NUMBERS * (size_t)sn_gpu_iterations(s, bound);
    bound->stage_at = *sum;
    *sum += sn_gpu_units(view->bytes) * (size_t)sn_gpu_iterations(s, bound);
    s->gpu.piece_bytes = larger(s->gpu.piece_bytes, sn_gpu_units(piece));
}

/* Operands and scratch of a row that the host runs. */
static snug_status measure_host_row(sn_session *s, sn_bound *bound, snug_error *err) {
    const sn_device *host = &s->executor->gpu->host.device;
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
    s->gpu.has_host_rows = true;
    s->gpu.sizes.scratch =
        larger(s->gpu.sizes.scratch, sum + sn_gpu_units(variant.workspace_bytes));
    return SNUG_OK;
}

static snug_status measure_run(sn_session *s, sn_bound *bound, size_t *n_params, snug_error *err) {
    bound->param_at = *n_params;
    *n_params += bound->n_params;
    s->gpu.checks = s->gpu.checks || sn_ops[bound->call.op].effect == SN_MAYFAIL;
    return sn_gpu_is_host_row(bound->step->impl) ? measure_host_row(s, bound, err) : SNUG_OK;
}

/* Without anything outside there is one run to capture. */
static snug_status make_captures(sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    const size_t n = s->sources ? (size_t)sn_graph_n_vars(g) + sn_graph_n_values(g) : 0;
    size_t n_used = 0;
    s->gpu.now = &s->gpu.captures[0];
    for (size_t i = 0; i < n; i++)
        n_used += s->source_used[i];
    for (int k = 0; s->sources && k < SN_GPU_CAPTURES; k++)
        SNUG_TRY(sn_session_take(s, n_used, sizeof(void *), &s->gpu.captures[k].sources, err));
    return SNUG_OK;
}

/* How far from a step its result is read: known where its bytes are the arena's, and the steps up
 * to the last that reads it are calls, too. `last` has a word per value: the last step that reads
 * it before it is made again. */
static void set_reach(const sn_session *s, uint32_t i, const uint32_t *last) {
    const sn_step *step = &s->plan->steps[i];
    if (step->n_out != 1 || step->out[0].memory == SN_MEM_STATE)
        return;
    const uint32_t end = last[step->out[0].value.i];
    for (uint32_t k = i + 1; k <= end; k++)
        if (end == UINT32_MAX || s->plan->steps[k].kind != SN_STEP_RUN)
            return;
    s->bound[i].call.reach = end > i ? end - i : 0;
}

static snug_status measure_reach(sn_session *s, snug_error *err) {
    const sn_plan *plan = s->plan;
    uint32_t *last;
    SNUG_TRY(sn_session_take(s, sn_graph_n_values(plan->graph), sizeof *last, &last, err));
    for (uint32_t k = 0; k < sn_graph_n_outputs(plan->graph); k++)
        last[plan->outputs[k].value.i] = UINT32_MAX;
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        const sn_step *step = &plan->steps[i];
        if (step->kind == SN_STEP_RUN)
            set_reach(s, i, last);
        for (uint32_t k = 0; k < step->n_out; k++)
            last[step->out[k].value.i] = 0;
        for (uint32_t k = 0; k < step->n_in; k++)
            if (last[step->in[k].value.i] == 0)
                last[step->in[k].value.i] = i;
    }
    return SNUG_OK;
}

snug_status sn_gpu_measure(sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    size_t n_params = 0, staged = 0;
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        if (bound->step->kind == SN_STEP_FEED)
            measure_feed(s, bound, &staged, &n_params);
        else if (bound->step->kind == SN_STEP_RUN)
            SNUG_TRY(measure_run(s, bound, &n_params, err));
        s->gpu.writes = s->gpu.writes || bound->writes_state;
        if (bound->base)
            s->gpu.queues |= 1u << bound->step->queue;
    }
    for (uint32_t k = 0; !s->sources && k < sn_graph_n_outputs(g); k++)
        s->gpu.sizes.outputs += sn_gpu_units(s->plan->value_bytes[s->plan->outputs[k].value.i]);
    s->gpu.whole = staged <= WHOLE_BYTES;
    s->gpu.staged_bytes = staged;
    s->gpu.sizes.stage = s->gpu.whole ? staged : SN_GPU_RING * s->gpu.piece_bytes;
    s->gpu.sizes.params = sn_gpu_units(n_params * sizeof(sn_scalar));
    SNUG_TRY(make_captures(s, err));
    SNUG_TRY(measure_reach(s, err));
    return sn_session_take(s, sn_graph_n_outputs(g), sizeof *s->gpu.output_at, &s->gpu.output_at,
                           err);
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* The plan pins the way of the slice; of a shorter last one the checker has seen the device's own,
 * and that the workspace has room for it. */
snug_status sn_gpu_prepare_shape(sn_session *s, const sn_bound *bound, const sn_opdesc *desc,
                                 void **prepared, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    sn_variant own = {.id = 0};
    if (bound->on_host)
        return sn_kernel_prepare(s->executor->engine, &d->host, desc, prepared, err);
    const bool last = prepared == &bound->last.prepared;
    if (last)
        SNUG_TRY(d->device.describe(&d->device, desc, &own, err));
    return d->api->prepare(d->gpu, desc, last ? own.impl : bound->step->impl, prepared, err);
}

void sn_gpu_release(sn_session *s, const sn_bound *bound, void *prepared) {
    const sn_gpu_device *d = s->executor->gpu;
    if (bound->on_host)
        sn_kernel_release(s->executor->engine, bound->call.op, prepared);
    else if (prepared)
        d->api->release(d->gpu, bound->call.op, prepared);
}

static void drop_graphs_of(const sn_session *s, sn_gpu_captured_run *c) {
    const sn_gpu_device *d = s->executor->gpu;
    if (c->graph)
        d->api->drop(d->gpu, c->graph);
    c->graph = NULL;
    c->guarded = false;
}

void sn_gpu_drop_graphs(sn_session *s) {
    for (int k = 0; k < SN_GPU_CAPTURES; k++)
        drop_graphs_of(s, &s->gpu.captures[k]);
}

/* --- which capture serves ----------------------------------------------------------------------
 */

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

void sn_gpu_choose_capture(sn_session *s) {
    if (!s->sources)
        return;
    for (int k = 0; k < SN_GPU_CAPTURES; k++)
        if (s->gpu.captures[k].n_runs > 0 && has_sources(s, &s->gpu.captures[k], false)) {
            s->gpu.now = &s->gpu.captures[k];
            return;
        }
    s->gpu.now = &s->gpu.captures[s->gpu.next_capture++ % SN_GPU_CAPTURES];
    drop_graphs_of(s, s->gpu.now);
    s->gpu.now->n_runs = 0;
    (void)has_sources(s, s->gpu.now, true);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void make_unready(sn_executor *x) {
    for (sn_session *s = x->first; s; s = s->next)
        s->ready = false;
}

static snug_status make_arena(sn_executor *x, uint32_t m, snug_error *err) {
    size_t bytes;
    const char *name;
    sn_gpu_piece *arena = &x->side.arenas[m];
    if (!sn_executor_largest(x, m, SN_MEMORY_BYTES, &bytes, &name) ||
        (arena->data && arena->bytes >= bytes))
        return SNUG_OK;
    make_unready(x);
    sn_gpu_give(x->gpu, arena->data);
    *arena = (sn_gpu_piece){.data = NULL};
    SNUG_TRY(sn_gpu_take(x->gpu, name, bytes, &arena->data, err));
    arena->bytes = bytes;
    return SNUG_OK;
}

static bool cover(const sn_gpu_sizes *have, const sn_gpu_sizes *need) {
    return have->params >= need->params && have->outputs >= need->outputs &&
           have->stage >= need->stage && have->scratch >= need->scratch;
}

static sn_gpu_sizes largest_of(sn_gpu_sizes a, const sn_gpu_sizes *b) {
    return (sn_gpu_sizes){larger(a.params, b->params), larger(a.outputs, b->outputs),
                          larger(a.stage, b->stage), larger(a.scratch, b->scratch)};
}

static void clear_buffers(sn_executor *x) {
    sn_gpu_give(x->gpu, x->side.params);
    if (x->side.pinned.data)
        x->gpu->api->unpin(x->gpu->gpu, x->side.pinned.data, x->side.pinned.bytes);
    x->side.params = NULL;
    x->side.pinned = (sn_gpu_piece){.data = NULL};
    x->side.sizes = (sn_gpu_sizes){.params = 0};
}

static snug_status make_buffers(sn_executor *x, snug_error *err) {
    sn_gpu_sizes need = x->side.sizes;
    for (const sn_session *s = x->first; s; s = s->next)
        need = largest_of(need, &s->gpu.sizes);
    if (x->side.pinned.data && cover(&x->side.sizes, &need))
        return SNUG_OK;
    make_unready(x);
    clear_buffers(x);
    const size_t sum = need.params + need.outputs + need.stage + need.scratch;
    SNUG_TRY(sn_gpu_take(x->gpu, "parameters", need.params, &x->side.params, err));
    SNUG_TRY(x->gpu->api->pin(x->gpu->gpu, sum, &x->side.pinned.data, err));
    x->side.pinned.bytes = sum;
    x->side.sizes = need;
    return SNUG_OK;
}

/* Of the plans' own variables: a model that only predicts does not pay for an optimizer's slots. */
static snug_status place_homes(sn_executor *x, bool *wanted, snug_error *err) {
    for (const sn_session *s = x->first; s; s = s->next)
        for (uint32_t i = 0; !s->sources && i < sn_graph_n_vars(s->plan->graph); i++)
            if (!sn_plan_spills(s->plan, (sn_var){i}))
                wanted[sn_graph_var_at(s->plan->graph, (sn_var){i})->home] = true;
    return sn_state_place(x->state, wanted, err);
}

static snug_status make_homes(sn_executor *x, snug_error *err) {
    const size_t n = sn_state_count(x->state);
    void *wanted;
    SNUG_TRY(sn_alloc_zero(x->engine, SN_MEM_PLAN, n, &wanted, err));
    const snug_status status = place_homes(x, wanted, err);
    sn_free(x->engine, SN_MEM_PLAN, wanted, n);
    return status;
}

static void clear_feeds(sn_executor *x) {
    sn_gpu_give(x->gpu, x->side.feeds.data);
    x->side.feeds = (sn_gpu_piece){.data = NULL};
    x->side.ahead = NULL;
}

/* Twice the feeds of a run, where there is room for that beside what libraries and captured runs
 * may still take. Nothing needs them: where they cannot be had, runs bring their own feeds. */
static void make_feeds(sn_executor *x) {
    size_t bytes = 0, reserve = 0, room;
    for (const sn_session *s = x->first; s; s = s->next) {
        bytes = s->gpu.wants_next ? larger(bytes, 2 * s->gpu.staged_bytes) : bytes;
        reserve = larger(reserve, sn_gpu_reserve(NULL, s->plan));
    }
    if (bytes == 0 || sn_gpu_room(x->gpu, &room, NULL) != SNUG_OK || room < reserve + bytes)
        return;
    if (sn_gpu_take(x->gpu, "the next batch", bytes, &x->side.feeds.data, NULL) == SNUG_OK)
        x->side.feeds.bytes = bytes;
}

/* The feeds' place is taken last, and given back first: all else is needed more. */
snug_status sn_gpu_make(sn_executor *x, snug_error *err) {
    if (x->side.feeds.data)
        make_unready(x);
    clear_feeds(x);
    SNUG_TRY(make_homes(x, err));
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
        SNUG_TRY(make_arena(x, m, err));
    SNUG_TRY(make_buffers(x, err));
    make_feeds(x);
    return SNUG_OK;
}

void sn_gpu_clear_arenas(sn_executor *x) {
    clear_feeds(x);
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++) {
        sn_gpu_give(x->gpu, x->side.arenas[m].data);
        x->side.arenas[m] = (sn_gpu_piece){.data = NULL};
    }
}

void sn_gpu_clear(sn_executor *x) {
    sn_gpu_clear_arenas(x);
    clear_buffers(x);
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++)
        x->gpu->api->unpin(x->gpu->gpu, x->side.files[m].data, x->side.files[m].bytes);
}

bool sn_gpu_fits(const sn_session *s) {
    const sn_gpu_side *side = &s->executor->side;
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < s->plan->n_memories; m++)
        if (s->plan->memories[m].kind == SN_MEMORY_BYTES &&
            (!side->arenas[m].data || side->arenas[m].bytes < s->plan->memories[m].bytes))
            return false;
    for (uint32_t i = 0; !s->sources && i < sn_graph_n_vars(s->plan->graph); i++)
        if (!sn_state_at(s->executor->state, sn_graph_var_at(s->plan->graph, (sn_var){i})->home))
            return false;
    return side->pinned.data && cover(&side->sizes, &s->gpu.sizes);
}

/* --- places ----------------------------------------------------------------------------------- */

/* *host: pinned memory, that only copies reach. */
static unsigned char *place_of(const sn_session *s, const sn_place *place, bool *host) {
    const sn_executor *x = s->executor;
    const sn_graph *g = s->plan->graph;
    *host = false;
    if (place->memory == SN_MEM_STATE && s->sources)
        return NULL; /* known at each run: sn_bind_sources */
    if (place->memory == SN_MEM_STATE) {
        const int32_t var = sn_graph_value_at(g, place->value)->var;
        const uint32_t home = sn_graph_var_at(g, (sn_var){(uint32_t)var})->home;
        *host = sn_state_is_spilled(x->state, home);
        return (unsigned char *)sn_state_at(x->state, home) + place->offset;
    }
    *host = s->plan->memories[place->memory].kind == SN_MEMORY_FILE;
    const sn_gpu_piece *piece =
        *host ? &x->side.files[place->memory] : &x->side.arenas[place->memory];
    return (unsigned char *)piece->data + place->offset;
}

snug_status sn_gpu_locate(sn_session *s, sn_bound *bound, snug_error *err) {
    const sn_step *step = bound->step;
    bool host = false, some = false;
    for (uint32_t j = 0; j < (uint32_t)step->n_in + step->n_out; j++) {
        bound->base[j] =
            place_of(s, j < step->n_in ? &step->in[j] : &step->out[j - step->n_in], &host);
        some = some || host;
        if (j < step->n_in)
            bound->from_host = host;
        else
            bound->to_host = host;
    }
    if (some && step->kind != SN_STEP_COPY)
        return sn_fail(err, SNUG_E_INTERNAL, "a step of the plan works in pinned memory");
    bound->call.team = s->executor->team;
    if (step->ws_bytes > 0)
        bound->call.workspace =
            (unsigned char *)s->executor->side.arenas[step->ws_memory].data + step->ws_offset;
    return SNUG_OK;
}

unsigned char *sn_gpu_pinned_outputs(const sn_executor *x) {
    return (unsigned char *)x->side.pinned.data + x->side.sizes.params;
}

unsigned char *sn_gpu_pinned_stage(const sn_executor *x) {
    return sn_gpu_pinned_outputs(x) + x->side.sizes.outputs;
}

unsigned char *sn_gpu_pinned_scratch(const sn_executor *x) {
    return sn_gpu_pinned_stage(x) + x->side.sizes.stage;
}

void sn_gpu_locate_outputs(sn_session *s) {
    unsigned char *at = sn_gpu_pinned_outputs(s->executor);
    for (uint32_t k = 0; !s->sources && k < sn_graph_n_outputs(s->plan->graph); k++) {
        bool host;
        s->gpu.output_at[k] = place_of(s, &s->plan->outputs[k], &host);
        s->outputs[k].data = at;
        at += sn_gpu_units(s->outputs[k].bytes);
    }
}
