/* gpu_run.c: the steps of a run on a GPU, enqueued one by one, or captured and replayed.
 *
 * Invariants:
 * 1. Nothing is allocated on the device here, but by a capture.
 * 2. Pinned bytes are written by the host only when the device has read what was there: the ring's
 * slots have moments; all else is written between two runs, which end with finish.
 * 3. While capturing nothing waits for the device. */
#include "exec/gpu_inside.h"

#include "base/rng.h"

#include <string.h>

#define HOST_MOMENT  SN_GPU_RING          /* of rows that run on the host */
#define STAGE_MOMENT (SN_GPU_MOMENTS - 1) /* when staged feeds have been read */
#define CAPTURE_RUN  1                    /* a plan that runs once is not worth capturing */

/* --- order ------------------------------------------------------------------------------------ */

/* Compute waits for the others, and they for it. */
static snug_status merge(const sn_runner *r, const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    for (int q = SN_QUEUE_IN; q < SN_N_QUEUES; q++)
        if (sn_gpu_part_of(r, s)->queues >> q & 1u)
            SNUG_TRY(d->api->order(d->gpu, q, SN_QUEUE_COMPUTE, err));
    return SNUG_OK;
}

static snug_status fork_queues(const sn_runner *r, const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    for (int q = SN_QUEUE_IN; q < SN_N_QUEUES; q++)
        if (sn_gpu_part_of(r, s)->queues >> q & 1u)
            SNUG_TRY(d->api->order(d->gpu, SN_QUEUE_COMPUTE, q, err));
    return SNUG_OK;
}

snug_status sn_gpu_wait(sn_runner *r, sn_session *s, const sn_step *step, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    bool waited[SN_N_QUEUES] = {false};
    for (uint32_t k = 0; k < step->n_waits; k++) {
        const sn_step *of = &s->plan->steps[step->waits[k]];
        if (s->runner_of[of->device] != r || of->queue == step->queue || waited[of->queue])
            continue;
        waited[of->queue] = true;
        SNUG_TRY(d->api->order(d->gpu, (int)of->queue, (int)step->queue, err));
    }
    return SNUG_OK;
}

static snug_status await_queue(const sn_runner *r, sn_queue queue, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    SNUG_TRY(d->api->mark(d->gpu, (int)queue, HOST_MOMENT, err));
    return d->api->await(d->gpu, HOST_MOMENT, err);
}

snug_status sn_gpu_reach(sn_runner *r, sn_session *s, sn_queue queue, snug_error *err) {
    (void)s;
    return await_queue(r, queue, err);
}

/* --- before and after ------------------------------------------------------------------------- */

static void gather_params(const sn_runner *r, sn_session *s) {
    sn_scalar *to = sn_gpu_side_of(r)->pinned.data;
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        if (bound->n_params == 0 || bound->runner != r->index)
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
    return sn_dtype_is_float(dtype) && (size_t)r->kind < sizeof made / sizeof made[0]
               ? made[r->kind]
               : -1;
}

/* The numbers of one iteration's rows; what they are made of, or -1. */
static int gather_recipe(const sn_runner *r, const sn_session *s, const sn_bound *bound,
                         int64_t iteration) {
    const sn_input_binding *input = &s->inputs[bound->step->input];
    const sn_place *place = &bound->step->out[0];
    const int64_t row = place->rows < 0 ? 0 : place->first + iteration * place->rows;
    sn_scalar *to = (sn_scalar *)sn_gpu_side_of(r)->pinned.data + bound->param_at +
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
static void gather_recipes(const sn_runner *r, sn_session *s) {
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        sn_bound *bound = &s->bound[i];
        int made = -1;
        if (s->plan->steps[i].kind != SN_STEP_FEED || bound->runner != r->index)
            continue;
        for (int64_t k = 0; k < sn_gpu_iterations(s, bound); k++)
            made = gather_recipe(r, s, bound, k);
        if (made != bound->made) {
            sn_gpu_drop_graphs(r, s);
            sn_gpu_side_of(r)->ahead = NULL;
        }
        bound->made = made;
    }
}

static snug_status poison(const sn_runner *r, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++) {
        const sn_gpu_piece *arena = &sn_gpu_side_of(r)->arenas[m];
        SNUG_TRY(d->api->fill(d->gpu, SN_QUEUE_COMPUTE, arena->data, r->executor->options.poison,
                              arena->bytes, err));
    }
    return SNUG_OK;
}

snug_status sn_gpu_start(sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const sn_gpu_side *side = sn_gpu_side_of(r);
    SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, SN_QUEUE_COMPUTE, side->params, side->pinned.data,
                          sn_gpu_part_of(r, s)->sizes.params, err));
    return fork_queues(r, s, err);
}

/* The row that can have refused its values, where there is one only. */
static snug_status name_refusal(const sn_runner *r, sn_session *s, snug_status status,
                                snug_error *err) {
    uint32_t n = 0, found = 0;
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        const sn_bound *bound = &s->bound[i];
        if (bound->step->kind != SN_STEP_RUN || bound->runner != r->index ||
            sn_ops[bound->call.op].effect != SN_MAYFAIL || (s->passes && bound->may_pass))
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

static snug_status wait_for_all(const sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const snug_status status = d->api->finish(d->gpu, err);
    s->passed_over = s->passed_over || d->api->objected(d->gpu);
    return status == SNUG_OK ? SNUG_OK : name_refusal(r, s, status, err);
}

static snug_status finish(const sn_runner *r, sn_session *s, snug_error *err) {
    void (*meanwhile)(void *ctx) = s->meanwhile;
    s->meanwhile = NULL;
    if (meanwhile)
        meanwhile(s->meanwhile_ctx);
    return wait_for_all(r, s, err);
}

/* Others may have no queues that could wait for these. */
snug_status sn_gpu_join(sn_runner *r, sn_session *s, snug_error *err) {
    if (!sn_gpu_is_alone(r, s))
        return wait_for_all(r, s, err);
    SNUG_TRY(merge(r, s, err));
    return fork_queues(r, s, err);
}

static snug_status fetch_outputs(const sn_runner *r, const sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const sn_gpu_part *part = sn_gpu_part_of(r, s);
    for (uint32_t k = 0; !s->sources && k < sn_graph_n_outputs(s->plan->graph); k++)
        if (part->output_at[k])
            SNUG_TRY(d->api->copy(d->gpu, SN_GPU_FROM, SN_QUEUE_COMPUTE, s->outputs[k].data,
                                  part->output_at[k], s->outputs[k].bytes, err));
    return SNUG_OK;
}

snug_status sn_gpu_end(sn_runner *r, sn_session *s, snug_error *err) {
    SNUG_TRY(merge(r, s, err));
    SNUG_TRY(fetch_outputs(r, s, err));
    return s->capturing ? SNUG_OK : finish(r, s, err);
}

void sn_gpu_give_up(sn_runner *r, sn_session *s) {
    s->meanwhile = NULL;
    if (!s->capturing && finish(r, s, NULL) != SNUG_OK)
        return; /* the first error counts */
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

static snug_status run_on_host(const sn_runner *r, const sn_bound *bound, const sn_call *call,
                               snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const int queue = (int)bound->step->queue;
    snug_view views[SN_MAX_IN + SN_MAX_OUT];
    sn_call here = *call;
    here.workspace = lay_out(call, sn_gpu_pinned_scratch(r), views);
    here.in = views;
    here.out = views + call->n_in;
    for (int j = 0; j < call->n_in + (call->accumulate ? call->n_out : 0); j++) {
        const snug_view *from = j < call->n_in ? &call->in[j] : &call->out[j - call->n_in];
        SNUG_TRY(
            d->api->copy(d->gpu, SN_GPU_FROM, queue, views[j].data, from->data, from->bytes, err));
    }
    SNUG_TRY(await_queue(r, bound->step->queue, err));
    SNUG_TRY(bound->kernel(&here, err));
    for (int k = 0; k < call->n_out; k++)
        SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, queue, call->out[k].data, here.out[k].data,
                              call->out[k].bytes, err));
    return SNUG_OK;
}

snug_status sn_gpu_call(sn_runner *r, sn_session *s, const sn_bound *bound, const sn_call *call,
                        snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_call on_device = *call;
    const bool looks = s->passes && bound->may_pass;
    if (bound->on_host)
        return run_on_host(r, bound, call, err);
    on_device.param = (const sn_scalar *)sn_gpu_side_of(r)->params + bound->param_at;
    return (looks ? d->api->look : d->api->run)(d->gpu, (int)bound->step->queue, &on_device, err);
}

/* --- feeds and copies ------------------------------------------------------------------------- */

static unsigned char *slot_of(const sn_runner *r, const sn_bound *bound, int64_t iteration) {
    return sn_gpu_pinned_stage(r) + bound->stage_at +
           (size_t)iteration * sn_gpu_units(bound->whole.views[0].bytes);
}

bool sn_gpu_takes_next(const sn_runner *r, const sn_session *s) {
    const sn_gpu_part *part = sn_gpu_part_of(r, s);
    return sn_gpu_is_alone(r, s) && part->whole && part->staged_bytes > 0;
}

/* Whether feeds lie on the device before a run begins, so that those of the next can come
 * meanwhile. */
static bool is_ahead(const sn_runner *r, const sn_session *s) {
    return s->wants_next &&
           sn_gpu_side_of(r)->feeds.bytes / 2 >= sn_gpu_part_of(r, s)->staged_bytes;
}

bool sn_gpu_has_next(const sn_runner *r, const sn_session *s) {
    return sn_gpu_side_of(r)->ahead == s && sn_gpu_side_of(r)->ahead_ctx == s->next_ctx;
}

static unsigned char *feeds_at(const sn_runner *r, bool next) {
    const sn_gpu_piece *feeds = &sn_gpu_side_of(r)->feeds;
    return (unsigned char *)feeds->data + (next ? feeds->bytes / 2 : 0);
}

/* The rows of one FEED out of what was staged whole. */
static snug_status feed_whole(const sn_runner *r, const sn_session *s, const sn_bound *bound,
                              int64_t iteration, const snug_view *to, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const bool on_device = is_ahead(r, s);
    const unsigned char *slot = slot_of(r, bound, iteration);
    if (on_device)
        slot = feeds_at(r, false) + (slot - sn_gpu_pinned_stage(r));
    return d->api->copy(d->gpu, on_device ? SN_GPU_WITHIN : SN_GPU_TO, (int)bound->step->queue,
                        to->data, slot, to->bytes, err);
}

/* What was staged for this run (came: has come already) is where its FEEDs read it. From then on
 * the next run's may come: to the other half, behind what is enqueued here. */
static snug_status bring(const sn_runner *r, const sn_session *s, bool came, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    if (!is_ahead(r, s))
        return SNUG_OK;
    SNUG_TRY(d->api->copy(d->gpu, came ? SN_GPU_WITHIN : SN_GPU_TO, SN_QUEUE_COMPUTE,
                          feeds_at(r, false), came ? feeds_at(r, true) : sn_gpu_pinned_stage(r),
                          sn_gpu_part_of(r, s)->staged_bytes, err));
    SNUG_TRY(d->api->mark(d->gpu, SN_QUEUE_COMPUTE, STAGE_MOMENT, err));
    return d->api->order(d->gpu, SN_QUEUE_COMPUTE, SN_QUEUE_IN, err);
}

/* Before the pinned bytes are filled for the next run; and when they are. */
static snug_status await_stage(const sn_runner *r, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    return d->api->await(d->gpu, STAGE_MOMENT, err);
}

static snug_status send_next(const sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, SN_QUEUE_IN, feeds_at(r, true), sn_gpu_pinned_stage(r),
                          sn_gpu_part_of(r, s)->staged_bytes, err));
    sn_gpu_side_of(r)->ahead = s;
    sn_gpu_side_of(r)->ahead_ctx = s->next_ctx;
    return SNUG_OK;
}

/* Those that come from the host, before anything is enqueued. */
static snug_status stage_rows(sn_runner *r, sn_session *s, const sn_bound *bound, int64_t iteration,
                              int64_t first_row, const snug_view *to, snug_error *err) {
    snug_view view = *to;
    if (bound->made >= 0)
        return SNUG_OK;
    view.data = slot_of(r, bound, iteration);
    return sn_fill_rows(s, bound->step->input, first_row, &view, err);
}

/* A meanwhile: the feeds of the next run. Where they do not come now, that run fetches them itself,
 * and says what was wrong with them. */
static void bring_next(void *ctx) {
    sn_session *s = ctx;
    sn_runner *r = s->lead;
    if (await_stage(r, NULL) != SNUG_OK || !s->bind_next(s->next_ctx) ||
        sn_run_feeds(r, s, stage_rows, NULL) != SNUG_OK || send_next(r, s, NULL) != SNUG_OK)
        sn_gpu_side_of(r)->ahead = NULL;
}

/* The feeds of this run, and what is to be done about the next one's. */
static snug_status bring_feeds(sn_runner *r, sn_session *s, snug_error *err) {
    const bool came = s->uses_next && is_ahead(r, s) && sn_gpu_has_next(r, s);
    sn_gpu_side_of(r)->ahead = NULL;
    if (!came)
        SNUG_TRY(sn_run_feeds(r, s, stage_rows, err));
    if (s->wants_next)
        sn_session_set_meanwhile(s, s->bind_next && is_ahead(r, s) ? bring_next : NULL, s);
    return bring(r, s, came, err);
}

snug_status sn_gpu_begin(sn_runner *r, sn_session *s, snug_error *err) {
    const sn_executor_options *o = &r->executor->options;
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    if (sn_runner_of_memory(s, SN_MEM_STATE) == r)
        SNUG_TRY(sn_state_settle(r->executor->state, err));
    if (part->passes != s->passes)
        sn_gpu_drop_graphs(r, s);
    part->passes = s->passes;
    sn_gpu_choose_capture(r, s);
    gather_params(r, s);
    gather_recipes(r, s);
    part->next_slot = 0;
    if (o->poison_set && o->poison >= 0)
        SNUG_TRY(poison(r, err));
    return part->whole ? bring_feeds(r, s, err) : SNUG_OK;
}

static snug_status make_rows(const sn_runner *r, const sn_bound *bound, int64_t iteration,
                             const snug_view *to, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const sn_scalar *numbers = (const sn_scalar *)sn_gpu_side_of(r)->params + bound->param_at +
                               SN_GPU_NUMBERS * (size_t)iteration;
    return d->api->make(d->gpu, (int)bound->step->queue, bound->made, numbers, to, err);
}

/* Rows that the ring brings, piece by piece. */
static snug_status feed_ring(const sn_runner *r, sn_session *s, const sn_bound *bound,
                             int64_t first_row, const snug_view *to, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    const int64_t rows = to->type.rank > 0 ? to->type.dims[0] : 1;
    const size_t row_bytes = rows > 0 ? to->bytes / (size_t)rows : 1;
    const int64_t step = row_bytes > 0 ? (int64_t)(part->piece_bytes / row_bytes) : rows;
    for (int64_t at = 0; at < rows; at += step) {
        const int64_t n = rows - at < step ? rows - at : step;
        const uint32_t slot = part->next_slot++ % SN_GPU_RING;
        snug_view piece = *to;
        piece.data = sn_gpu_pinned_stage(r) + slot * part->piece_bytes;
        piece.bytes = (size_t)n * row_bytes;
        if (piece.type.rank > 0)
            piece.type.dims[0] = n;
        SNUG_TRY(d->api->await(d->gpu, (int)slot, err));
        SNUG_TRY(sn_fill_rows(s, bound->step->input, first_row + at, &piece, err));
        SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, SN_QUEUE_COMPUTE,
                              (unsigned char *)to->data + (size_t)at * row_bytes, piece.data,
                              piece.bytes, err));
        SNUG_TRY(d->api->mark(d->gpu, SN_QUEUE_COMPUTE, (int)slot, err));
    }
    return SNUG_OK;
}

/* The device makes it, or what was staged goes over, or the ring brings it. */
snug_status sn_gpu_feed(sn_runner *r, sn_session *s, const sn_bound *bound, int64_t iteration,
                        int64_t first_row, const snug_view *to, snug_error *err) {
    if (bound->made >= 0)
        return make_rows(r, bound, iteration, to, err);
    if (sn_gpu_part_of(r, s)->whole)
        return feed_whole(r, s, bound, iteration, to, err);
    return feed_ring(r, s, bound, first_row, to, err);
}

snug_status sn_gpu_copy_step(sn_runner *r, sn_session *s, const sn_bound *bound, int64_t iteration,
                             const sn_bound_shape *shape, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const snug_view *from = &shape->views[0], *to = &shape->views[1];
    const sn_gpu_copy kind = bound->from_host ? SN_GPU_TO
                             : bound->to_host ? SN_GPU_FROM
                                              : SN_GPU_WITHIN;
    (void)s, (void)iteration;
    return from->data == to->data ? SNUG_OK
                                  : d->api->copy(d->gpu, kind, (int)bound->step->queue, to->data,
                                                 from->data, from->bytes, err);
}

snug_status sn_gpu_fetch(sn_runner *r, sn_queue queue, void *to, const void *from, size_t bytes,
                         snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    SNUG_TRY(d->api->copy(d->gpu, SN_GPU_FROM, (int)queue, to, from, bytes, err));
    return await_queue(r, queue, err);
}

snug_status sn_gpu_store(sn_runner *r, sn_queue queue, void *to, const void *from, size_t bytes,
                         snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, (int)queue, to, from, bytes, err));
    return await_queue(r, queue, err);
}

/* --- captured runs ---------------------------------------------------------------------------- */

/* Asked after a first run: by then libraries have loaded what they need. A captured run has one
 * guard, before its first write. */
static bool may_capture(const sn_runner *r, sn_session *s) {
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    if (!sn_gpu_is_alone(r, s) || !part->whole || part->has_host_rows || part->never ||
        part->now->n_runs < CAPTURE_RUN)
        return false;
    part->never = sn_gpu_card(r)->one_by_one || sn_gpu_kernels(s->plan) == 0 || s->undone.end > 0;
    return !part->never && sn_gpu_has_capture_room(sn_gpu_card(r), s->plan);
}

static snug_status open_capture(const sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    SNUG_TRY(d->api->capture(d->gpu, err));
    s->capturing = true;
    return SNUG_OK;
}

/* ok: all steps were given; else what was captured is dropped. */
static snug_status close_capture(const sn_runner *r, sn_session *s, bool ok, snug_error *err) {
    sn_gpu_device *d = sn_gpu_card(r);
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    const bool open = s->capturing;
    s->capturing = false;
    const size_t room = open ? sn_gpu_capture_room(d, s->plan) : 0;
    const snug_status status =
        open ? d->api->captured(d->gpu, room, &part->now->graph, err) : SNUG_OK;
    if (!ok || status != SNUG_OK) {
        sn_gpu_drop_graphs(r, s);
        part->never = true;
    } else if (open) {
        sn_gpu_note_capture(d);
    }
    d->has_guard = d->has_guard || part->now->guarded;
    return status;
}

/* Enqueues everything into a capture. Where that cannot be, the run goes on without. */
static void capture(const sn_runner *r, sn_session *s) {
    const bool ok = open_capture(r, s, NULL) == SNUG_OK && sn_run_alone(s, NULL) == SNUG_OK;
    if (close_capture(r, s, ok, NULL) != SNUG_OK || !ok)
        s->status = SNUG_OK;
    s->wrote_state = s->wrote_late = s->asked = s->asked_late = false;
}

/* In a captured run the device sees to that itself. */
snug_status sn_gpu_before_writes(sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    if (!part->checks)
        return SNUG_OK;
    if (!s->capturing)
        return wait_for_all(r, s, err);
    SNUG_TRY(merge(r, s, err));
    SNUG_TRY(d->api->guard(d->gpu, err));
    part->now->guarded = true;
    return fork_queues(r, s, err);
}

/* Enqueues the captured run and waits; wrote_state: whether state may have been written. */
static snug_status replay(const sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    const sn_gpu_part *part = sn_gpu_part_of(r, s);
    if (s->interrupt && s->interrupt(s->interrupt_ctx))
        return sn_fail(err, SNUG_E_INTERRUPTED,
                       "stopped by the caller before the step changed anything");
    SNUG_TRY(d->api->replay(d->gpu, part->now->graph, err));
    s->wrote_state = part->writes;
    const snug_status status = finish(r, s, err);
    if ((status == SNUG_E_NUMERIC || status == SNUG_E_DATA) && part->now->guarded)
        s->wrote_state = part->writes && d->api->passed(d->gpu);
    return status;
}

/* The guard of a replayed run has closed where a check of the update refused its values: the steps
 * are given once more, one by one, but for those of the update. */
static snug_status run_passed_over(const sn_runner *r, sn_session *s, snug_error *err) {
    const sn_gpu_device *d = sn_gpu_card(r);
    if (!s->passed_over || !sn_gpu_part_of(r, s)->now->guarded || d->api->passed(d->gpu))
        return SNUG_OK;
    s->wrote_state = false;
    return sn_run_alone(s, err);
}

snug_status sn_gpu_drive(sn_runner *r, sn_session *s, snug_error *err) {
    sn_gpu_part *part = sn_gpu_part_of(r, s);
    if (!part->now->graph && may_capture(r, s))
        capture(r, s);
    part->now->n_runs++;
    if (!part->now->graph)
        return sn_run_alone(s, err);
    SNUG_TRY(replay(r, s, err));
    return run_passed_over(r, s, err);
}
