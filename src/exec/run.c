/* run.c: the run loop. Each lane walks the same list of steps and runs those that are its own; a
 * session with only compute steps has one lane, the caller's, and no locks. The child of a fork has
 * no copy threads: there the caller runs the steps of all lanes, which is an order that fits, since
 * nothing waits for a later step.
 *
 * Invariants:
 * 1. Nothing is allocated here, but for what undo.c keeps of the plans that need it.
 * 2. A step of iteration i begins after everything before the block (or the end of the block before
 * it) and, inside a block, after all of iteration i - 1, and after the steps it waits for.
 * 3. The first state write and an interrupt exclude each other: whoever takes the mutex first wins.
 * 4. After a failure no step begins; if state was written by then, the state is torn.
 * 5. When several lanes fail, the error of the step that stands first in the plan is reported. */
#include "exec/inside.h"

#include <string.h>

enum { ALL_LANES = SN_MAX_LANES };

/* One lane's place in the walk. */
typedef struct {
    sn_session *s;
    uint32_t lane; /* ALL_LANES: the caller does everything */
    bool shared;   /* other lanes run too: lock */
    uint32_t step;
    uint32_t block;
    int64_t iteration;
} sn_walk;

static void lock(const sn_walk *w) {
    if (w->shared)
        pthread_mutex_lock(&w->s->executor->crew.mutex);
}

static void unlock(const sn_walk *w) {
    if (w->shared)
        pthread_mutex_unlock(&w->s->executor->crew.mutex);
}

/* --- the order of lanes ----------------------------------------------------------------------- */

/* Executions of step `of` that must be over before the walk's step may begin. */
static uint64_t executions_needed(const sn_walk *w, uint32_t of) {
    const sn_session *s = w->s;
    const uint32_t block = s->bound[of].block;
    if (block == SN_NO_BLOCK)
        return 1;
    return block == s->bound[w->step].block ? (uint64_t)w->iteration + 1
                                            : (uint64_t)s->plan->steps[block].repeat;
}

static bool may_begin(const sn_walk *w) {
    const sn_session *s = w->s;
    const sn_bound *bound = &s->bound[w->step];
    if (s->n_done < bound->barrier + bound->barrier_step * (uint64_t)w->iteration)
        return false;
    for (uint32_t k = 0; k < bound->step->n_waits; k++) {
        const uint32_t of = bound->step->waits[k];
        if (s->bound[of].base && s->done[of] < executions_needed(w, of))
            return false;
    }
    return true;
}

/* Lock held. Wakes the lanes that wait for steps which will not come. */
static void note_failure(const sn_walk *w, snug_status status, const snug_error *err) {
    sn_session *s = w->s;
    if (s->status != SNUG_OK && s->failed_step <= w->step)
        return;
    s->status = status;
    s->failed_step = w->step;
    s->error = *err;
    if (w->shared)
        pthread_cond_broadcast(&s->executor->crew.changed);
}

/* On a GPU: order among queues, and before the first state write the device's word that nothing was
 * refused. */
static void begin_there(const sn_walk *w) {
    sn_session *s = w->s;
    snug_error err = {.code = SNUG_OK};
    snug_status status = sn_gpu_wait(s, &s->plan->steps[w->step], &err);
    if (status == SNUG_OK && s->bound[w->step].writes_state && !s->wrote_state)
        status = sn_gpu_before_writes(s, &err);
    if (status != SNUG_OK)
        note_failure(w, status, &err);
}

/* Waits for the step's turn; false when the run has failed. Asks for an interrupt, claims the first
 * state write. */
static bool begin_step(const sn_walk *w) {
    sn_session *s = w->s;
    lock(w);
    const bool ask =
        (w->lane == 0 || !w->shared) && s->interrupt && !s->wrote_state && !s->gpu.capturing;
    unlock(w);
    const bool interrupted =
        ask && s->interrupt(s->interrupt_ctx); /* the caller's code: not under our lock */
    lock(w);
    while (w->shared && s->status == SNUG_OK && !may_begin(w))
        pthread_cond_wait(&s->executor->crew.changed, &s->executor->crew.mutex);
    if (interrupted && !s->wrote_state && s->status == SNUG_OK) {
        snug_error err;
        note_failure(w,
                     sn_fail(&err, SNUG_E_INTERRUPTED,
                             "stopped by the caller before the step changed anything"),
                     &err);
    }
    if (s->executor->gpu && s->status == SNUG_OK)
        begin_there(w);
    const bool go = s->status == SNUG_OK;
    if (go && s->bound[w->step].writes_state) {
        s->wrote_state = true;
        s->wrote_late = s->wrote_late || w->step >= s->undo_end;
    }
    unlock(w);
    return go;
}

static void end_step(const sn_walk *w, snug_status status, const snug_error *err) {
    sn_session *s = w->s;
    lock(w);
    if (status != SNUG_OK)
        note_failure(w, status, err);
    s->n_done++;
    s->done[w->step]++;
    if (w->shared)
        pthread_cond_broadcast(&s->executor->crew.changed);
    unlock(w);
}

/* --- one step --------------------------------------------------------------------------------- */

static bool is_last_iteration(const sn_walk *w) {
    return w->block != SN_NO_BLOCK && w->iteration == w->s->plan->steps[w->block].repeat - 1;
}

/* The shape of this iteration, its views moved to where the iteration's slices lie. */
static const sn_bound_shape *aim_views(const sn_walk *w, const sn_bound *bound) {
    const sn_step *step = bound->step;
    const sn_bound_shape *shape =
        bound->last.views && is_last_iteration(w) ? &bound->last : &bound->whole;
    const uint32_t n = (uint32_t)step->n_in + step->n_out;
    for (uint32_t j = 0; j < n; j++) {
        const sn_place *place = j < step->n_in ? &step->in[j] : &step->out[j - step->n_in];
        if (bound->base[j])
            shape->views[j].data = bound->base[j] + (size_t)w->iteration * place->stride;
    }
    return shape;
}

/* Where iteration i of a place begins along its axis. */
static int64_t first_row(const sn_walk *w, const sn_place *place) {
    return place->rows < 0 ? 0 : place->first + w->iteration * place->rows;
}

static void set_position(const sn_walk *w, const sn_place *place, sn_call *call) {
    const snug_type *type = sn_graph_type(w->s->plan->graph, place->value);
    call->axis = place->rows < 0 ? 0 : place->axis;
    call->first = first_row(w, place);
    call->full = type->rank > 0 ? type->dims[call->axis] : 1;
}

/* Who has inputs and outputs outside knows what stood where, and asks sn_session_failed. */
static snug_status fail_at(const sn_session *s, sn_node n, snug_status status, snug_error *err) {
    return sn_graph_is_outside(s->plan->graph) ? status
                                               : sn_fail_at(s->plan->graph, n, status, err);
}

static snug_status run_node(const sn_walk *w, const sn_bound *bound, const sn_bound_shape *shape,
                            snug_error *err) {
    sn_session *s = w->s;
    const sn_step *step = bound->step;
    sn_call call = bound->call;
    sn_param_gather(s->params, sn_graph_n_params(s->plan->graph), bound->slots, bound->n_params,
                    bound->params);
    call.in = shape->views;
    call.out = shape->views + step->n_in;
    call.prepared = shape->prepared;
    call.accumulate = step->accumulate == SN_ACC_ADD ||
                      (step->accumulate == SN_ACC_ADD_LATER && w->iteration > 0);
    if (step->n_out > 0)
        set_position(w, &step->out[0], &call);
    const snug_status status =
        s->executor->gpu ? sn_gpu_call(s, bound, &call, err) : bound->kernel(&call, err);
    return status == SNUG_OK ? SNUG_OK : fail_at(s, step->node, status, err);
}

static snug_status fill_view(const sn_walk *w, const sn_step *step, const snug_view *view,
                             snug_error *err) {
    const sn_input_binding *input = &w->s->inputs[step->input];
    const int64_t n_rows = view->type.rank > 0 ? view->type.dims[0] : 1;
    return input->fill(input->ctx, first_row(w, &step->out[0]), n_rows, view, err);
}

/* The device makes it, or what was staged goes over, or the ring brings it. */
static snug_status feed_there(const sn_walk *w, const sn_bound *bound, const snug_view *view,
                              snug_error *err) {
    sn_session *s = w->s;
    if (bound->made >= 0)
        return sn_gpu_make_rows(s, bound, w->iteration, view, err);
    if (s->gpu.whole)
        return sn_gpu_feed_whole(s, bound, w->iteration, view, err);
    return sn_gpu_feed_ring(s, &s->inputs[bound->step->input], first_row(w, &bound->step->out[0]),
                            view, err);
}

static snug_status check_input(const sn_session *s, uint32_t input, snug_error *err) {
    if (s->inputs[input].fill)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "input '%s' has no data; bind a feed to it before the run",
                   sn_graph_input_name(s->plan->graph, input));
}

static snug_status run_feed(const sn_walk *w, const sn_bound *bound, const sn_bound_shape *shape,
                            snug_error *err) {
    const sn_step *step = bound->step;
    const snug_view *view = &shape->views[0];
    if (bound->lent)
        return SNUG_OK;
    SNUG_TRY(check_input(w->s, step->input, err));
    const snug_status status =
        w->s->executor->gpu ? feed_there(w, bound, view, err) : fill_view(w, step, view, err);
    return status == SNUG_OK ? SNUG_OK
                             : sn_fail_in(err, status, "input '%s'",
                                          sn_graph_input_name(w->s->plan->graph, step->input));
}

static snug_status run_copy(const sn_walk *w, const sn_bound *bound, const sn_bound_shape *shape,
                            snug_error *err) {
    const snug_view *from = &shape->views[0], *to = &shape->views[1];
    if (w->s->executor->gpu)
        return sn_gpu_copy_step(w->s, bound, shape, err);
    const sn_place *place = bound->to_file ? &bound->step->out[0] : &bound->step->in[0];
    const size_t at = bound->file_offset + (size_t)w->iteration * place->stride;
    if (bound->file && bound->to_file)
        return sn_spill_write(bound->file, from->data, from->bytes, at, err);
    if (bound->file)
        return sn_spill_read(bound->file, to->data, to->bytes, at, err);
    if (from->data != to->data)
        memcpy(to->data, from->data, from->bytes);
    return SNUG_OK;
}

static snug_status run_step(const sn_walk *w, snug_error *err) {
    const sn_bound *bound = &w->s->bound[w->step];
    const sn_bound_shape *shape = aim_views(w, bound);
    if (bound->step->kind == SN_STEP_RUN)
        return run_node(w, bound, shape, err);
    if (bound->step->kind == SN_STEP_FEED)
        return run_feed(w, bound, shape, err);
    return run_copy(w, bound, shape, err);
}

/* --- the walk --------------------------------------------------------------------------------- */

static void enter_or_leave(sn_walk *w, const sn_step *step) {
    if (step->kind == SN_STEP_REPEAT) {
        w->block = w->step;
        w->iteration = 0;
    } else if (w->iteration + 1 < w->s->plan->steps[w->block].repeat) {
        w->iteration++;
        w->step = w->block;
    } else {
        w->block = SN_NO_BLOCK;
        w->iteration = 0;
    }
}

/* Queues enter, iterate and leave a block together. */
static void join_there(const sn_walk *w) {
    snug_error err = {.code = SNUG_OK};
    const snug_status status = sn_gpu_join(w->s, &err);
    if (status != SNUG_OK)
        note_failure(w, status, &err);
}

static void walk(sn_session *s, uint32_t lane, bool shared) {
    sn_walk w = {.s = s, .lane = lane, .shared = shared, .block = SN_NO_BLOCK};
    for (; w.step < s->plan->n_steps; w.step++) {
        const sn_step *step = &s->plan->steps[w.step];
        if (step->kind == SN_STEP_REPEAT || step->kind == SN_STEP_END) {
            if (s->executor->gpu)
                join_there(&w);
            enter_or_leave(&w, step);
        } else if (s->bound[w.step].lane == lane || lane == ALL_LANES) {
            snug_error err = {.code = SNUG_OK};
            if (!begin_step(&w))
                return;
            const snug_status status = run_step(&w, &err);
            end_step(&w, status, &err);
        }
    }
}

void sn_run_lane(sn_session *s, uint32_t lane) {
    walk(s, lane, true);
}

/* What kernels would refuse by their parameters is refused here: a run that begins fails only by
 * its data. */
static snug_status check_params(sn_session *s, snug_error *err) {
    for (uint32_t i = 0; i < s->plan->n_steps; i++) {
        const sn_bound *bound = &s->bound[i];
        if (!bound->check)
            continue;
        const sn_bound_shape *const shapes[2] = {&bound->whole, &bound->last};
        sn_call call = bound->call;
        sn_param_gather(s->params, sn_graph_n_params(s->plan->graph), bound->slots, bound->n_params,
                        bound->params);
        for (int k = 0; k < 2 && shapes[k]->views; k++) {
            call.in = shapes[k]->views;
            call.out = shapes[k]->views + bound->step->n_in;
            const snug_status status = bound->check(&call, err);
            if (status != SNUG_OK) {
                s->failed_step = i;
                return fail_at(s, bound->step->node, status, err);
            }
        }
    }
    return SNUG_OK;
}

/* --- a run on a GPU --------------------------------------------------------------------------- */

/* All rows of all inputs that come from the host, before anything is enqueued. */
static snug_status stage_feeds(sn_session *s, snug_error *err) {
    sn_walk w = {.s = s, .lane = ALL_LANES, .block = SN_NO_BLOCK};
    for (; w.step < s->plan->n_steps; w.step++) {
        const sn_step *step = &s->plan->steps[w.step];
        const sn_bound *bound = &s->bound[w.step];
        if (step->kind == SN_STEP_REPEAT || step->kind == SN_STEP_END)
            enter_or_leave(&w, step);
        if (step->kind != SN_STEP_FEED || bound->made >= 0)
            continue;
        snug_view view = aim_views(&w, bound)->views[0];
        view.data = sn_gpu_slot(s, bound, w.iteration);
        SNUG_TRY(check_input(s, step->input, err));
        const snug_status status = fill_view(&w, step, &view, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "input '%s'",
                              sn_graph_input_name(s->plan->graph, step->input));
    }
    return SNUG_OK;
}

/* A meanwhile: the feeds of the next run. Where they do not come now, that run fetches them itself,
 * and says what was wrong with them. */
static void bring_next(void *ctx) {
    sn_session *s = ctx;
    if (sn_gpu_await_stage(s, NULL) != SNUG_OK || !s->gpu.next(s->gpu.next_ctx) ||
        stage_feeds(s, NULL) != SNUG_OK || sn_gpu_send_next(s, NULL) != SNUG_OK)
        s->executor->side.ahead = NULL;
}

/* The feeds of this run, and what is to be done about the next one's. */
static snug_status bring_feeds(sn_session *s, snug_error *err) {
    const bool came = sn_gpu_has_next(s);
    s->executor->side.ahead = NULL;
    if (!came)
        SNUG_TRY(stage_feeds(s, err));
    if (s->gpu.wants_next)
        sn_session_set_meanwhile(s, s->gpu.next && sn_gpu_is_ahead(s) ? bring_next : NULL, s);
    return sn_gpu_bring(s, came, err);
}

/* Enqueues everything from parameters to outputs. */
static snug_status walk_there(sn_session *s, snug_error *err) {
    SNUG_TRY(sn_gpu_send_params(s, err));
    walk(s, ALL_LANES, false); /* its error is the session's */
    if (s->status == SNUG_OK)
        return sn_gpu_end(s, err);
    s->gpu.meanwhile = NULL;
    if (!s->gpu.capturing && sn_gpu_finish(s, NULL) != SNUG_OK)
        return s->status; /* the first error counts */
    return s->status;
}

/* Enqueues everything into captures. Where that cannot be, the run goes on without. */
static void capture(sn_session *s) {
    const bool ok = sn_gpu_capture(s, NULL) == SNUG_OK && walk_there(s, NULL) == SNUG_OK;
    if (sn_gpu_captured(s, ok, NULL) != SNUG_OK || !ok)
        s->status = SNUG_OK;
    s->wrote_state = false;
}

static snug_status replay(sn_session *s, snug_error *err) {
    if (s->interrupt && s->interrupt(s->interrupt_ctx))
        return sn_fail(err, SNUG_E_INTERRUPTED,
                       "stopped by the caller before the step changed anything");
    return sn_gpu_replay(s, &s->wrote_state, err);
}

static snug_status run_there(sn_session *s, snug_error *err) {
    SNUG_TRY(sn_gpu_begin(s, err));
    if (s->gpu.whole)
        SNUG_TRY(bring_feeds(s, err));
    if (!s->gpu.now->graph && sn_gpu_may_capture(s))
        capture(s);
    s->gpu.now->n_runs++;
    return s->gpu.now->graph ? replay(s, err) : walk_there(s, err);
}

static void poison_arenas(sn_executor *x) {
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
        if (x->arenas[m].data)
            memset(x->arenas[m].data, x->options.poison, x->arenas[m].bytes);
}

static snug_status run_session(sn_session *s, snug_error *err) {
    sn_executor *x = s->executor;
    if (!s->ready)
        return sn_fail(err, SNUG_E_INVALID,
                       "this plan is not bound to memory; call sn_executor_prepare first");
    if (sn_state_torn(x->state))
        return sn_fail(
            err, SNUG_E_TORN,
            "an earlier step stopped after it had changed some variables; load weights to go on");
    s->failed_step = UINT32_MAX;
    s->status = SNUG_OK;
    SNUG_TRY(sn_bind_sources(s, err));
    sn_loans_take(s);
    SNUG_TRY(check_params(s, err));
    if (x->options.poison_set && x->options.poison >= 0)
        poison_arenas(x);
    s->n_done = 0;
    s->wrote_state = s->wrote_late = false;
    sn_undo_begin(s);
    memset(s->done, 0, s->plan->n_steps * sizeof *s->done);
    if (x->gpu) {
        s->status = run_there(s, &s->error);
    } else if ((s->lanes & ~1u) != 0 && sn_crew_is_here(&x->crew)) {
        sn_crew_begin(&x->crew, s);
        walk(s, 0, true);
        sn_crew_finish(&x->crew);
    } else {
        walk(s, ALL_LANES, false);
    }
    const bool torn = s->status != SNUG_OK && s->wrote_state && !sn_undo_restore(s);
    sn_undo_clear(s);
    if (s->status == SNUG_OK)
        return SNUG_OK;
    if (torn)
        sn_state_tear(x->state);
    if (err)
        *err = s->error;
    return s->status;
}

snug_status sn_session_run(sn_session *s, snug_error *err) {
    sn_executor_use(s->executor);
    const snug_status status = run_session(s, err);
    sn_executor_unuse(s->executor);
    return status;
}

sn_node sn_session_failed(const sn_session *s) {
    const bool known = s->failed_step < s->plan->n_steps && s->status != SNUG_E_INTERRUPTED &&
                       s->plan->steps[s->failed_step].kind == SN_STEP_RUN;
    return known ? s->plan->steps[s->failed_step].node : SN_NO_NODE;
}
