/* run.c: the run loop. Each lane walks the same list of steps and runs those that are its own; a
 * session with only compute steps has one lane, the caller's, and no locks. The child of a fork has
 * no copy threads: there the caller runs the steps of all lanes, which is an order that fits, since
 * nothing waits for a later step.
 *
 * Invariants:
 * 1. Nothing is allocated here.
 * 2. A step of iteration i begins after everything before the block (or the end of the block before
 * it) and, inside a block, after all of iteration i - 1, and after the steps it waits for.
 * 3. The first state write and an interrupt exclude each other: whoever takes the mutex first wins.
 * 4. After a failure no step begins; if state was written by then that undo.c cannot take back, the
 * state is torn.
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

/* Lock held. Wakes the lanes that wait for steps which will not come. A device that is asked before
 * a step may have named an earlier one. */
static void note_failure(const sn_walk *w, snug_status status, const snug_error *err) {
    sn_session *s = w->s;
    if (s->status != SNUG_OK && s->failed_step <= w->step)
        return;
    s->status = status;
    s->failed_step = s->failed_step < w->step ? s->failed_step : w->step;
    s->error = *err;
    if (w->shared)
        pthread_cond_broadcast(&s->executor->crew.changed);
}

/* What the step's device, and others it waits for, must have done; before the first state write,
 * and before the first that cannot be taken back, all devices' word that nothing was refused. Where
 * an update may be passed over, that of a copy counts, too: it is copied back all the same. */
static snug_status begin_on_devices(const sn_walk *w, snug_error *err) {
    sn_session *s = w->s;
    const sn_bound *bound = &s->bound[w->step];
    sn_runner *own = sn_runner_of_step(s, bound);
    for (uint32_t k = 0; k < bound->step->n_waits; k++) {
        const sn_step *of = &s->plan->steps[bound->step->waits[k]];
        sn_runner *r = s->runner_of[of->device];
        if (r != own)
            SNUG_TRY(r->kind->reach(r, s, of->queue, err));
    }
    if (bound->step->n_waits > 0)
        SNUG_TRY(own->kind->wait(own, s, bound->step, err));
    bool *const asked = w->step < s->undone.end ? &s->asked : &s->asked_late;
    if (*asked || !(bound->writes_state || (s->passes && bound->updates)))
        return SNUG_OK;
    *asked = true;
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        SNUG_TRY(r->kind->before_writes(r, s, err));
    return SNUG_OK;
}

static void try_to_begin(const sn_walk *w) {
    snug_error err; /* filled by what fails */
    const snug_status status = begin_on_devices(w, &err);
    if (status != SNUG_OK)
        note_failure(w, status, &err);
}

/* Waits for the step's turn; false when the run has failed. Asks for an interrupt, claims the first
 * state write. */
static bool begin_step(const sn_walk *w) {
    sn_session *s = w->s;
    lock(w);
    const bool ask =
        (w->lane == 0 || !w->shared) && s->interrupt && !s->wrote_state && !s->capturing;
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
    if (s->status == SNUG_OK)
        try_to_begin(w);
    const bool go = s->status == SNUG_OK;
    if (go && s->bound[w->step].writes_state) {
        s->wrote_state = true;
        s->wrote_late = s->wrote_late || w->step >= s->undone.end;
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

/* Values that a check of the update refuses. */
static bool passes_over(const sn_session *s, const sn_bound *bound, snug_status status) {
    return status == SNUG_E_NUMERIC && s->passes && bound->may_pass;
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
    if (s->passed_over && bound->updates)
        return SNUG_OK;
    sn_runner *r = sn_runner_of_step(s, bound);
    const snug_status status = r->kind->call(r, s, bound, &call, err);
    s->passed_over = s->passed_over || passes_over(s, bound, status);
    return status == SNUG_OK || passes_over(s, bound, status) ? SNUG_OK
                                                              : fail_at(s, step->node, status, err);
}

snug_status sn_fill_rows(const sn_session *s, uint32_t input, int64_t first_row,
                         const snug_view *to, snug_error *err) {
    const sn_input_binding *b = &s->inputs[input];
    if (b->fill)
        return b->fill(b->ctx, first_row, to->type.rank > 0 ? to->type.dims[0] : 1, to, err);
    return sn_fail(err, SNUG_E_INVALID, "input '%s' has no data; bind a feed to it before the run",
                   sn_graph_input_name(s->plan->graph, input));
}

static snug_status run_feed(const sn_walk *w, const sn_bound *bound, const sn_bound_shape *shape,
                            sn_feed_visit visit, snug_error *err) {
    sn_session *s = w->s;
    const sn_step *step = bound->step;
    if (bound->lent)
        return SNUG_OK;
    const snug_status status = visit(sn_runner_of_step(s, bound), s, bound, w->iteration,
                                     first_row(w, &step->out[0]), &shape->views[0], err);
    return status == SNUG_OK || !s->inputs[step->input].fill
               ? status
               : sn_fail_in(err, status, "input '%s'",
                            sn_graph_input_name(s->plan->graph, step->input));
}

/* Neither end need be the host's memory. Both devices have done it when this returns. Between two
 * that are apart the bytes lie in the host's memory that is the maker's: its queue writes them
 * there behind all that it still reads there, which nobody could say of the other's. */
snug_status sn_copy_across(const sn_session *s, const sn_bound *bound, const sn_bound_shape *shape,
                           snug_error *err) {
    sn_runner *const from = &s->executor->runners[bound->from];
    sn_runner *const to = &s->executor->runners[bound->to];
    const snug_view *in = &shape->views[0], *out = &shape->views[1];
    const sn_queue queue = bound->step->queue;
    void *const own = from->kind->between(from);
    void *const between = !own ? in->data : to->kind->between(to) ? own : out->data;
    SNUG_TRY(from->kind->fetch(from, queue, between, in->data, in->bytes, err));
    return to->kind->store(to, queue, out->data, between, out->bytes, err);
}

static snug_status run_copy(const sn_walk *w, const sn_bound *bound, const sn_bound_shape *shape,
                            snug_error *err) {
    sn_runner *r = sn_runner_of_step(w->s, bound);
    return bound->from != bound->to ? sn_copy_across(w->s, bound, shape, err)
                                    : r->kind->copy(r, w->s, bound, w->iteration, shape, err);
}

static snug_status run_step(const sn_walk *w, snug_error *err) {
    const sn_bound *bound = &w->s->bound[w->step];
    const sn_bound_shape *shape = aim_views(w, bound);
    if (bound->step->kind == SN_STEP_RUN)
        return run_node(w, bound, shape, err);
    if (bound->step->kind == SN_STEP_FEED)
        return run_feed(w, bound, shape, sn_runner_of_step(w->s, bound)->kind->feed, err);
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

static void join_queues(const sn_walk *w) {
    snug_error err = {.code = SNUG_OK};
    snug_status status = SNUG_OK;
    for (sn_runner *r = sn_runner_next(w->s, NULL); r && status == SNUG_OK;
         r = sn_runner_next(w->s, r))
        status = r->kind->join(r, w->s, &err);
    if (status != SNUG_OK)
        note_failure(w, status, &err);
}

static void walk(sn_session *s, uint32_t lane, bool shared) {
    sn_walk w = {.s = s, .lane = lane, .shared = shared, .block = SN_NO_BLOCK};
    for (; w.step < s->plan->n_steps; w.step++) {
        const sn_step *step = &s->plan->steps[w.step];
        if (step->kind == SN_STEP_REPEAT || step->kind == SN_STEP_END) {
            join_queues(&w);
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

/* --- a run ------------------------------------------------------------------------------------ */

snug_status sn_run_feeds(sn_runner *r, sn_session *s, sn_feed_visit visit, snug_error *err) {
    sn_walk w = {.s = s, .lane = ALL_LANES, .block = SN_NO_BLOCK};
    for (; w.step < s->plan->n_steps; w.step++) {
        const sn_step *step = &s->plan->steps[w.step];
        const sn_bound *bound = &s->bound[w.step];
        if (step->kind == SN_STEP_REPEAT || step->kind == SN_STEP_END)
            enter_or_leave(&w, step);
        if (step->kind == SN_STEP_FEED && sn_runner_of_step(s, bound) == r)
            SNUG_TRY(run_feed(&w, bound, aim_views(&w, bound), visit, err));
    }
    return SNUG_OK;
}

static snug_status end_all(sn_session *s, snug_error *err) {
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        SNUG_TRY(r->kind->end(r, s, err));
    return SNUG_OK;
}

static snug_status start_all(sn_session *s, snug_error *err) {
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        SNUG_TRY(r->kind->start(r, s, err));
    return SNUG_OK;
}

/* After a failure all runners have done what they were given, too: what they read is used again. */
snug_status sn_run_alone(sn_session *s, snug_error *err) {
    snug_status status = start_all(s, err);
    if (status == SNUG_OK) {
        walk(s, ALL_LANES, false); /* its error is the session's */
        status = s->status == SNUG_OK ? end_all(s, err) : s->status;
    }
    for (sn_runner *r = sn_runner_next(s, NULL); r && status != SNUG_OK; r = sn_runner_next(s, r))
        r->kind->give_up(r, s); /* the first error counts */
    return status;
}

static snug_status begin_and_drive(sn_session *s, snug_error *err) {
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        SNUG_TRY(r->kind->begin(r, s, err));
    return s->lead->kind->drive(s->lead, s, err);
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
    s->n_done = 0;
    s->wrote_state = s->wrote_late = s->asked = s->asked_late = s->passed_over = false;
    memset(s->done, 0, s->plan->n_steps * sizeof *s->done);
    s->status = begin_and_drive(s, &s->error);
    const bool torn = s->status != SNUG_OK && s->wrote_state && !sn_undo_restore(s);
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
