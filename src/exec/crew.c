/* crew.c: the worker threads of an executor, one per copy queue in use. They sleep between runs.
 * Their stacks are blocks on the ledger, so that a byte of them has a name too.
 *
 * The child of a fork has the crew but not its threads: there nobody waits for them, and their
 * stacks are given back without joining.
 *
 * A run: sn_crew_begin publishes the session under a new generation number and wakes all; each live
 * lane walks its steps and reports; sn_crew_finish waits until all have reported, so nobody looks
 * at the session after the run. */
#include "exec/inside.h"

#include <stdio.h>
#include <unistd.h>

/* Copies, feeds and the kernels a plan may put on a copy queue; kernels keep their scratch in the
 * arena. */
#define STACK_BYTES ((size_t)1 << 20)

static void *work(void *arg) {
    sn_lane *lane = arg;
    sn_crew *c = lane->crew;
    pthread_mutex_lock(&c->mutex);
    for (;;) {
        while (!c->quit && c->generation == lane->seen)
            pthread_cond_wait(&c->changed, &c->mutex);
        if (c->quit)
            break;
        lane->seen = c->generation;
        sn_session *job = c->job;
        pthread_mutex_unlock(&c->mutex);
        sn_run_lane(job, lane->index);
        pthread_mutex_lock(&c->mutex);
        c->n_busy--;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

static snug_status make_locks(sn_crew *c, snug_error *err) {
    if (c->made)
        return SNUG_OK;
    if (pthread_mutex_init(&c->mutex, NULL) != 0)
        return sn_fail(err, SNUG_E_MEMORY, "no mutex for the copy threads");
    if (pthread_cond_init(&c->changed, NULL) != 0) {
        pthread_mutex_destroy(&c->mutex);
        return sn_fail(err, SNUG_E_MEMORY, "no condition variable for the copy threads");
    }
    c->made = true;
    c->process = getpid();
    return SNUG_OK;
}

bool sn_crew_is_here(const sn_crew *c) {
    return c->process == getpid();
}

bool sn_crew_serves(const sn_crew *c, uint32_t lane) {
    return c->lanes[lane].thread.live || (c->made && !sn_crew_is_here(c));
}

static snug_status start_lane(sn_crew *c, snug_engine *e, uint32_t index, snug_error *err) {
    sn_lane *lane = &c->lanes[index];
    char owner[32];
    snprintf(owner, sizeof owner, "copy thread %u", index);
    lane->crew = c;
    lane->index = index;
    lane->seen = c->generation;
    SNUG_TRY(
        sn_thread_start(e, &(sn_thread_plan){owner, STACK_BYTES, work, lane}, &lane->thread, err));
    c->n_live++;
    return SNUG_OK;
}

snug_status sn_crew_start(sn_crew *c, snug_engine *e, uint32_t lanes, snug_error *err) {
    if (c->made && !sn_crew_is_here(c))
        return SNUG_OK;
    for (uint32_t k = 1; k < SN_MAX_LANES; k++) {
        if (!(lanes >> k & 1u) || c->lanes[k].thread.live)
            continue;
        SNUG_TRY(make_locks(c, err));
        SNUG_TRY(start_lane(c, e, k, err));
    }
    return SNUG_OK;
}

void sn_crew_stop(sn_crew *c) {
    if (!c->made)
        return;
    if (!sn_crew_is_here(c)) {
        for (uint32_t k = 1; k < SN_MAX_LANES; k++)
            sn_thread_forget(&c->lanes[k].thread);
        return;
    }
    pthread_mutex_lock(&c->mutex);
    c->quit = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    for (uint32_t k = 1; k < SN_MAX_LANES; k++)
        sn_thread_join(&c->lanes[k].thread);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    c->made = false;
}

void sn_crew_begin(sn_crew *c, sn_session *s) {
    pthread_mutex_lock(&c->mutex);
    c->job = s;
    c->n_busy = c->n_live;
    c->generation++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

void sn_crew_finish(sn_crew *c) {
    pthread_mutex_lock(&c->mutex);
    while (c->n_busy > 0)
        pthread_cond_wait(&c->changed, &c->mutex);
    c->job = NULL;
    pthread_mutex_unlock(&c->mutex);
}
