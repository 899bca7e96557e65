/* gpu_run.c: the steps of a run on a GPU, enqueued one by one, or captured and replayed.
 *
 * Invariants:
 * 1. Nothing is allocated on the device here, but by a capture.
 * 2. Pinned bytes are written by the host only when the device has read what was there: the ring's
 * slots have moments; all else is written between two runs, which end with finish.
 * 3. While capturing nothing waits for the device. */
#include "exec/inside.h"

#include "base/rng.h"

#include <string.h>

#define HOST_MOMENT  SN_GPU_RING          /* of rows that run on the host */
#define STAGE_MOMENT (SN_GPU_MOMENTS - 1) /* when staged feeds have been read */
#define CAPTURE_RUN  1                    /* a plan that runs once is not worth capturing */

/* --- order ------------------------------------------------------------------------------------ */

/* Compute waits for the others, and they for it. */
static snug_status merge(const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    for (int q = SN_QUEUE_IN; q < SN_N_QUEUES; q++)
        if (s->gpu.queues >> q & 1u)
            SNUG_TRY(d->api->order(d->gpu, q, SN_QUEUE_COMPUTE, err));
    return SNUG_OK;
}

static snug_status fork_queues(const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    for (int q = SN_QUEUE_IN; q < SN_N_QUEUES; q++)
        if (s->gpu.queues >> q & 1u)
            SNUG_TRY(d->api->order(d->gpu, SN_QUEUE_COMPUTE, q, err));
    return SNUG_OK;
}

snug_status sn_gpu_join(const sn_session *s, snug_error *err) {
    SNUG_TRY(merge(s, err));
    return fork_queues(s, err);
}

snug_status sn_gpu_wait(const sn_session *s, const sn_step *step, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    bool waited[SN_N_QUEUES] = {false};
    for (uint32_t k = 0; k < step->n_waits; k++) {
        const sn_queue q = s->plan->steps[step->waits[k]].queue;
        if (q == step->queue || waited[q])
            continue;
        waited[q] = true;
        SNUG_TRY(d->api->order(d->gpu, (int)q, (int)step->queue, err));
    }
    return SNUG_OK;
}

/* --- before and after ------------------------------------------------------------------------- */

static void gather_params(sn_session *s) {
    sn_scalar *to = s->executor->side.pinned.data;
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        if (bound->n_params == 0)
            continue;
        sn_param_gather(s->params, sn_graph_n_params(s->plan->graph), bound->slots, bound->n_params,
                        bound->params);
        memcpy(to + bound->param_at, bound->params, bound->n_params * sizeof *to);
    }
}

/* What the device makes of a recipe; -1: nothing. */
static int made_of(const sn_recipe *r, snug_dtype dtype) {
    static const int made[] = {[SN_RECIPE_CONSTANT] = SN_GPU_CONSTANT,
                               [SN_RECIPE_UNIFORM] = SN_RANDOM_UNIFORM,
                               [SN_RECIPE_NORMAL] = SN_RANDOM_NORMAL,
                               [SN_RECIPE_TRUNCATED] = SN_RANDOM_TRUNCATED};
    const bool real = dtype == SNUG_F32 || dtype == SNUG_F64;
    return real && (size_t)r->kind < sizeof made / sizeof made[0] ? made[r->kind] : -1;
}

/* The numbers of one iteration's rows; what they are made of, or -1. */
static int gather_recipe(const sn_session *s, const sn_bound *bound, int64_t iteration) {
    const sn_input_binding *input = &s->inputs[bound->step->input];
    const sn_place *place = &bound->step->out[0];
    const int64_t row = place->rows < 0 ? 0 : place->first + iteration * place->rows;
    sn_scalar *to = (sn_scalar *)s->executor->side.pinned.data + bound->param_at +
                    SN_GPU_NUMBERS * (size_t)iteration;
    sn_recipe recipe;
    uint64_t first;
    if (!input->recipe || !input->recipe(input->ctx, row, &recipe, &first))
        return -1;
    to[0].key = (int64_t)recipe.key;
    to[1].real = recipe.a;
    to[2].real = recipe.b;
    to[3].key = (int64_t)first;
    return made_of(&recipe, bound->whole.views[0].type.dtype);
}

/* A captured run makes, or brings, what it did when it was captured. */
static void gather_recipes(sn_session *s) {
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        int made = -1;
        if (s->plan->steps[i].kind != SN_STEP_FEED)
            continue;
        for (int64_t k = 0; k < sn_gpu_iterations(s, bound); k++)
            made = gather_recipe(s, bound, k);
        if (made != bound->made) {
            sn_gpu_drop_graphs(s);
            s->executor->side.ahead = NULL;
        }
        bound->made = made;
    }
}

static snug_status poison(sn_executor *x, snug_error *err) {
    const sn_gpu_device *d = x->gpu;
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
        SNUG_TRY(d->api->fill(d->gpu, SN_QUEUE_COMPUTE, x->side.arenas[m].data, x->options.poison,
                              x->side.arenas[m].bytes, err));
    return SNUG_OK;
}

snug_status sn_gpu_begin(sn_session *s, snug_error *err) {
    sn_executor *x = s->executor;
    SNUG_TRY(sn_state_settle(x->state, err));
    sn_gpu_choose_capture(s);
    gather_params(s);
    gather_recipes(s);
    s->gpu.next_slot = 0;
    return x->options.poison_set && x->options.poison >= 0 ? poison(x, err) : SNUG_OK;
}

/* What the first part of a run begins with. */
snug_status sn_gpu_send_params(const sn_session *s, snug_error *err) {
    const sn_executor *x = s->executor;
    SNUG_TRY(x->gpu->api->copy(x->gpu->gpu, SN_GPU_TO, SN_QUEUE_COMPUTE, x->side.params,
                               x->side.pinned.data, s->gpu.sizes.params, err));
    return fork_queues(s, err);
}

/* The row that can have refused its values, where there is one only. */
static snug_status name_refusal(sn_session *s, snug_status status, snug_error *err) {
    uint32_t n = 0, found = 0;
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        const sn_bound *bound = &s->bound[i];
        if (bound->step->kind != SN_STEP_RUN || sn_ops[bound->call.op].effect != SN_MAYFAIL)
            continue;
        n++;
        found = i;
    }
    const bool refused = status == SNUG_E_NUMERIC || status == SNUG_E_DATA;
    if (refused && n == 1)
        s->failed_step = found;
    return refused && n == 1 && !s->sources
               ? sn_fail_at(s->plan->graph, s->plan->steps[found].node, status, err)
               : status;
}

static snug_status wait_for_all(sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const snug_status status = d->api->finish(d->gpu, err);
    return status == SNUG_OK ? SNUG_OK : name_refusal(s, status, err);
}

snug_status sn_gpu_finish(sn_session *s, snug_error *err) {
    void (*meanwhile)(void *ctx) = s->gpu.meanwhile;
    s->gpu.meanwhile = NULL;
    if (meanwhile)
        meanwhile(s->gpu.meanwhile_ctx);
    return wait_for_all(s, err);
}

static snug_status fetch_outputs(const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    for (uint32_t k = 0; !s->sources && k < sn_graph_n_outputs(s->plan->graph); k++)
        SNUG_TRY(d->api->copy(d->gpu, SN_GPU_FROM, SN_QUEUE_COMPUTE, s->outputs[k].data,
                              s->gpu.output_at[k], s->outputs[k].bytes, err));
    return SNUG_OK;
}

snug_status sn_gpu_end(sn_session *s, snug_error *err) {
    SNUG_TRY(merge(s, err));
    SNUG_TRY(fetch_outputs(s, err));
    return s->gpu.capturing ? SNUG_OK : sn_gpu_finish(s, err);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Operands of a row on the host: each has its bytes in the scratch, an output that overwrites an
 * input has that input's. Returns what is behind them. */
static unsigned char *lay_out(const sn_call *call, unsigned char *at, snug_view *views) {
    const int n = call->n_in + call->n_out;
    for (int j = 0; j < n; j++) {
        const snug_view *from = j < call->n_in ? &call->in[j] : &call->out[j - call->n_in];
        int same = 0;
        while (same < call->n_in && (j < call->n_in || call->in[same].data != from->data))
            same++;
        views[j] = *from;
        views[j].data = same < call->n_in ? views[same].data : at;
        at += same < call->n_in ? 0 : sn_gpu_units(from->bytes);
    }
    return at;
}

static snug_status run_on_host(const sn_session *s, const sn_bound *bound, const sn_call *call,
                               snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const int queue = (int)bound->step->queue;
    snug_view views[SN_MAX_IN + SN_MAX_OUT];
    sn_call here = *call;
    here.workspace = lay_out(call, sn_gpu_pinned_scratch(s->executor), views);
    here.in = views;
    here.out = views + call->n_in;
    for (int j = 0; j < call->n_in + (call->accumulate ? call->n_out : 0); j++) {
        const snug_view *from = j < call->n_in ? &call->in[j] : &call->out[j - call->n_in];
        SNUG_TRY(
            d->api->copy(d->gpu, SN_GPU_FROM, queue, views[j].data, from->data, from->bytes, err));
    }
    SNUG_TRY(d->api->mark(d->gpu, queue, HOST_MOMENT, err));
    SNUG_TRY(d->api->await(d->gpu, HOST_MOMENT, err));
    SNUG_TRY(bound->kernel(&here, err));
    for (int k = 0; k < call->n_out; k++)
        SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, queue, call->out[k].data, here.out[k].data,
                              call->out[k].bytes, err));
    return SNUG_OK;
}

snug_status sn_gpu_call(sn_session *s, const sn_bound *bound, const sn_call *call,
                        snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    sn_call there = *call;
    if (bound->on_host)
        return run_on_host(s, bound, call, err);
    there.param = (const sn_scalar *)s->executor->side.params + bound->param_at;
    return d->api->run(d->gpu, (int)bound->step->queue, &there, err);
}

/* --- feeds and copies ------------------------------------------------------------------------- */

unsigned char *sn_gpu_slot(const sn_session *s, const sn_bound *bound, int64_t iteration) {
    return sn_gpu_pinned_stage(s->executor) + bound->stage_at +
           (size_t)iteration * sn_gpu_units(bound->whole.views[0].bytes);
}

bool sn_gpu_is_ahead(const sn_session *s) {
    return s->gpu.wants_next && s->executor->side.feeds.bytes / 2 >= s->gpu.staged_bytes;
}

bool sn_gpu_has_next(const sn_session *s) {
    return s->gpu.uses_next && sn_gpu_is_ahead(s) && sn_session_has_next(s);
}

static unsigned char *feeds_at(const sn_session *s, bool next) {
    const sn_gpu_piece *feeds = &s->executor->side.feeds;
    return (unsigned char *)feeds->data + (next ? feeds->bytes / 2 : 0);
}

snug_status sn_gpu_feed_whole(const sn_session *s, const sn_bound *bound, int64_t iteration,
                              const snug_view *to, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const bool there = sn_gpu_is_ahead(s);
    const unsigned char *slot = sn_gpu_slot(s, bound, iteration);
    if (there)
        slot = feeds_at(s, false) + (slot - sn_gpu_pinned_stage(s->executor));
    return d->api->copy(d->gpu, there ? SN_GPU_WITHIN : SN_GPU_TO, (int)bound->step->queue,
                        to->data, slot, to->bytes, err);
}

/* From then on the next run's may come: to the other half, behind what is enqueued here. */
snug_status sn_gpu_bring(const sn_session *s, bool came, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    if (!sn_gpu_is_ahead(s))
        return SNUG_OK;
    SNUG_TRY(d->api->copy(
        d->gpu, came ? SN_GPU_WITHIN : SN_GPU_TO, SN_QUEUE_COMPUTE, feeds_at(s, false),
        came ? feeds_at(s, true) : sn_gpu_pinned_stage(s->executor), s->gpu.staged_bytes, err));
    SNUG_TRY(d->api->mark(d->gpu, SN_QUEUE_COMPUTE, STAGE_MOMENT, err));
    return d->api->order(d->gpu, SN_QUEUE_COMPUTE, SN_QUEUE_IN, err);
}

snug_status sn_gpu_await_stage(const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    return d->api->await(d->gpu, STAGE_MOMENT, err);
}

snug_status sn_gpu_send_next(sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, SN_QUEUE_IN, feeds_at(s, true),
                          sn_gpu_pinned_stage(s->executor), s->gpu.staged_bytes, err));
    s->executor->side.ahead = s;
    s->executor->side.ahead_ctx = s->gpu.next_ctx;
    return SNUG_OK;
}

snug_status sn_gpu_make_rows(const sn_session *s, const sn_bound *bound, int64_t iteration,
                             const snug_view *to, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const sn_scalar *numbers = (const sn_scalar *)s->executor->side.params + bound->param_at +
                               SN_GPU_NUMBERS * (size_t)iteration;
    return d->api->make(d->gpu, (int)bound->step->queue, bound->made, numbers, to, err);
}

snug_status sn_gpu_feed_ring(sn_session *s, const sn_input_binding *input, int64_t first_row,
                             const snug_view *to, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const int64_t rows = to->type.rank > 0 ? to->type.dims[0] : 1;
    const size_t row_bytes = rows > 0 ? to->bytes / (size_t)rows : 1;
    const int64_t step = row_bytes > 0 ? (int64_t)(s->gpu.piece_bytes / row_bytes) : rows;
    for (int64_t at = 0; at < rows; at += step) {
        const int64_t n = rows - at < step ? rows - at : step;
        const uint32_t slot = s->gpu.next_slot++ % SN_GPU_RING;
        snug_view piece = *to;
        piece.data = sn_gpu_pinned_stage(s->executor) + slot * s->gpu.piece_bytes;
        piece.bytes = (size_t)n * row_bytes;
        if (piece.type.rank > 0)
            piece.type.dims[0] = n;
        SNUG_TRY(d->api->await(d->gpu, (int)slot, err));
        SNUG_TRY(input->fill(input->ctx, first_row + at, n, &piece, err));
        SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, SN_QUEUE_COMPUTE,
                              (unsigned char *)to->data + (size_t)at * row_bytes, piece.data,
                              piece.bytes, err));
        SNUG_TRY(d->api->mark(d->gpu, SN_QUEUE_COMPUTE, (int)slot, err));
    }
    return SNUG_OK;
}

snug_status sn_gpu_copy_step(sn_session *s, const sn_bound *bound, const sn_bound_shape *shape,
                             snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const snug_view *from = &shape->views[0], *to = &shape->views[1];
    const sn_gpu_copy kind = bound->from_host ? SN_GPU_TO
                             : bound->to_host ? SN_GPU_FROM
                                              : SN_GPU_WITHIN;
    return from->data == to->data ? SNUG_OK
                                  : d->api->copy(d->gpu, kind, (int)bound->step->queue, to->data,
                                                 from->data, from->bytes, err);
}

/* --- captured runs ---------------------------------------------------------------------------- */

/* Asked after a first run: by then libraries have loaded what they need. */
bool sn_gpu_may_capture(sn_session *s) {
    if (!s->gpu.whole || s->gpu.has_host_rows || s->gpu.never || s->gpu.now->n_runs < CAPTURE_RUN)
        return false;
    s->gpu.never = s->executor->gpu->one_by_one || sn_gpu_kernels(s->plan) == 0;
    return !s->gpu.never && sn_gpu_has_capture_room(s->executor->gpu, s->plan);
}

snug_status sn_gpu_capture(sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    SNUG_TRY(d->api->capture(d->gpu, err));
    s->gpu.capturing = true;
    return SNUG_OK;
}

snug_status sn_gpu_captured(sn_session *s, bool ok, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    const bool open = s->gpu.capturing;
    s->gpu.capturing = false;
    const size_t room = open ? sn_gpu_capture_room(s->executor->gpu, s->plan) : 0;
    const snug_status status =
        open ? d->api->captured(d->gpu, room, &s->gpu.now->graph, err) : SNUG_OK;
    if (!ok || status != SNUG_OK) {
        sn_gpu_drop_graphs(s);
        s->gpu.never = true;
    } else if (open) {
        sn_gpu_note_capture(s->executor->gpu);
    }
    s->executor->gpu->has_guard = s->executor->gpu->has_guard || s->gpu.now->guarded;
    return status;
}

snug_status sn_gpu_before_writes(sn_session *s, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    if (!s->gpu.checks)
        return SNUG_OK;
    if (!s->gpu.capturing)
        return wait_for_all(s, err);
    SNUG_TRY(merge(s, err));
    SNUG_TRY(d->api->guard(d->gpu, err));
    s->gpu.now->guarded = true;
    return fork_queues(s, err);
}

snug_status sn_gpu_replay(sn_session *s, bool *wrote, snug_error *err) {
    const sn_gpu_device *d = s->executor->gpu;
    SNUG_TRY(d->api->replay(d->gpu, s->gpu.now->graph, err));
    *wrote = s->gpu.writes;
    const snug_status status = sn_gpu_finish(s, err);
    if ((status == SNUG_E_NUMERIC || status == SNUG_E_DATA) && s->gpu.now->guarded)
        *wrote = s->gpu.writes && d->api->passed(d->gpu);
    return status;
}
