/* map.c: a function on each element, by the asking thread or by workers; and filter.
 *
 *     slots   [ done | done | running | running | queued |        |        ]   a ring
 *               ^ head: given next      ^ taken             ^ tail: filled next
 *
 * The asking thread fills slots with elements of the stage before it and takes finished ones from
 * the head, so order is the stream's whoever is done first. A failed element stands in its slot
 * like any other and is given when its turn comes.
 *
 * Invariants:
 * 1. Slots [head, taken) are a worker's or done, [taken, tail) wait; all three change under the
 *    mutex. A running slot is its worker's alone.
 * 2. Workers see elements only: the stage before is asked by one thread.
 * 3. The first elements are done by the asking thread and timed, eight at a time. Work that is
 *    shorter than handing it over stays there; else there are as many workers as were asked for, or
 *    as the engine has threads (autotune), from then on.
 * 4. What a call of a worker had no memory for is done once more when its turn comes, by the asking
 *    thread and with nobody beside it: only what does not fit alone fails. */
#include "data/stage.h"

#include "base/size.h"
#include "memory/pool.h"
#include "memory/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    MOST_WORKERS = 64,
    SLOTS_PER_WORKER = 3,
    MEASURED = 8, /* elements timed before it is decided who does the next */
    WORTH_A_WORKER_NS = 8000,
    WAIT_NS = 20 * 1000 * 1000, /* between looks at the caller's interrupt */
    STACK_BYTES = 512 << 10,
    WORKER_BYTES = 256 << 10, /* beside elements: of half of what a budget has left */
};

typedef struct {
    snug_mapper f;
    snug_map_options options;
} map_stage;

typedef enum { SLOT_QUEUED, SLOT_RUNNING, SLOT_DONE } slot_state;

typedef struct {
    slot_state state;
    bool again; /* there was no memory for it: `in` is still there */
    snug_status status;
    snug_error err;
    int64_t bytes;
    snug_element in, out;
} slot;

typedef struct map_run {
    const sn_cursor *cursor;
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    bool made, quit, ended;
    bool alone;        /* there is no memory for workers */
    bool paused;       /* no slot is to be taken */
    int n_running;     /* slots */
    int64_t n_undone;  /* slots with work to do, or at it */
    size_t call_bytes; /* the most that a call took */
    snug_element in;   /* of the asking thread's call: chains are long, stacks are not */
    void *own;         /* the asking thread's worker object */
    bool has_own;
    int measured, measured_long; /* elements, and those that took long */
    int n_workers;               /* threads that run */
    uint64_t head, taken, tail;
    size_t n_slots;
    slot *slots;
    sn_thread threads[MOST_WORKERS];
} map_run;

/* --- one call --------------------------------------------------------------------------------- */
static bool is_memory(snug_status s) {
    return s == SNUG_E_MEMORY || s == SNUG_E_BUDGET;
}

static snug_status call(const map_stage *m, void *worker, const snug_spec *spec,
                        const snug_element *in, snug_element *out, snug_error *err) {
    out->n = 0;
    snug_status status = m->f.call(m->f.ctx, worker, in, out, err);
    if (is_memory(status))
        return sn_fail_in(err, status, "map of element %lld",
                          (long long)(in->index & INT64_C(0xffffffffff)));
    if (status != SNUG_OK)
        return status;
    out->index = in->index;
    status = sn_spec_check(spec, out, "the function of map", err);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

/* The same, and how much it took; under the mutex where others may look. */
static snug_status call_measured(map_run *r, void *worker, const snug_element *in,
                                 snug_element *out, snug_error *err) {
    const snug_dataset *d = r->cursor->stage;
    sn_pool_mark();
    const snug_status status = call(d->ctx, worker, &d->spec, in, out, err);
    const size_t bytes = sn_pool_marked();
    pthread_mutex_lock(&r->mutex);
    r->call_bytes = bytes > r->call_bytes ? bytes : r->call_bytes;
    pthread_mutex_unlock(&r->mutex);
    return status;
}

static snug_status own_worker(map_run *r, const map_stage *m, snug_error *err) {
    if (r->has_own)
        return SNUG_OK;
    if (m->f.open)
        SNUG_TRY(m->f.open(m->f.ctx, r->cursor->stage->engine, &r->own, err));
    r->has_own = true;
    return SNUG_OK;
}

/* --- workers ---------------------------------------------------------------------------------- */
/* The next queued slot, or NULL to end. */
static slot *take_slot(map_run *r) {
    slot *s = NULL;
    pthread_mutex_lock(&r->mutex);
    for (;;) {
        /* What failed before this stage stands in line, too, but is no work. */
        while (r->taken < r->tail && r->slots[r->taken % r->n_slots].state == SLOT_DONE)
            r->taken++;
        if (r->quit || (r->taken < r->tail && !r->paused))
            break;
        pthread_cond_wait(&r->work, &r->mutex);
    }
    if (!r->quit) {
        s = &r->slots[r->taken++ % r->n_slots];
        s->state = SLOT_RUNNING;
        r->n_running++;
    }
    pthread_mutex_unlock(&r->mutex);
    return s;
}

static void end_slot(map_run *r, slot *s, snug_status status) {
    pthread_mutex_lock(&r->mutex);
    s->status = status;
    s->state = SLOT_DONE;
    s->again = is_memory(status);
    r->n_running--;
    r->n_undone--;
    pthread_cond_signal(&r->done);
    pthread_mutex_unlock(&r->mutex);
}

static void close_worker(const map_stage *m, void *worker) {
    if (m->f.close)
        m->f.close(m->f.ctx, worker);
}

static void *work(void *ctx) {
    map_run *r = ctx;
    const snug_dataset *d = r->cursor->stage;
    const map_stage *m = d->ctx;
    sn_figures *figures = &r->cursor->place->figures;
    void *worker = NULL;
    bool opened = false;
    for (slot *s; (s = take_slot(r));) {
        const int64_t start = sn_now_ns();
        snug_status status = SNUG_OK;
        if (!opened && m->f.open)
            status = m->f.open(m->f.ctx, d->engine, &worker, &s->err);
        opened = opened || status == SNUG_OK;
        if (status == SNUG_OK)
            status = call_measured(r, worker, &s->in, &s->out, &s->err);
        if (!is_memory(status))
            snug_element_drop(&s->in);
        else if (opened) { /* what it holds is missing to the call that is made alone */
            close_worker(m, worker);
            opened = false;
        }
        atomic_fetch_add_explicit(&figures->worker_ns, sn_now_ns() - start, memory_order_relaxed);
        end_slot(r, s, status);
    }
    if (opened)
        close_worker(m, worker);
    return NULL;
}

static snug_status make_ring(map_run *r, int n_workers, snug_error *err) {
    void *block;
    const size_t n = (size_t)n_workers * SLOTS_PER_WORKER;
    snug_engine *e = r->cursor->stage->engine;
    if (r->slots)
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, n * sizeof(slot), &block, err));
    r->slots = block;
    r->n_slots = n;
    r->cursor->place->figures.depth = (int64_t)n;
    return SNUG_OK;
}

/* Fewer threads than asked for are no failure: a system that gives none of them is. */
static snug_status start_workers(map_run *r, int n_workers, snug_error *err) {
    snug_engine *e = r->cursor->stage->engine;
    snug_status status = make_ring(r, n_workers, err);
    while (r->n_workers < n_workers && status == SNUG_OK) {
        char owner[32];
        snprintf(owner, sizeof owner, "map worker %d", r->n_workers + 1);
        status = sn_thread_start(e, &(sn_thread_plan){owner, STACK_BYTES, work, r},
                                 &r->threads[r->n_workers], err);
        r->n_workers += status == SNUG_OK;
    }
    r->cursor->place->figures.workers = r->n_workers;
    r->alone = r->n_workers == 0 && is_memory(status);
    return r->n_workers > 0 || r->alone ? SNUG_OK : status;
}

static void stop_workers(map_run *r) {
    pthread_mutex_lock(&r->mutex);
    r->quit = true;
    pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->mutex);
    for (int i = 0; i < r->n_workers; i++)
        sn_thread_join(&r->threads[i]);
    for (size_t i = 0; i < r->n_slots; i++) {
        snug_element_drop(&r->slots[i].in);
        snug_element_drop(&r->slots[i].out);
    }
    sn_free(r->cursor->stage->engine, SN_MEM_INPUT, r->slots, r->n_slots * sizeof(slot));
}

/* --- the asking thread ------------------------------------------------------------------------ */
/* With a limit on pipelines' bytes the ring is filled while there is room for what the calls to
 * come will take; one slot always is. */
static bool has_room(map_run *r) {
    if (r->tail == r->head)
        return true;
    if (r->tail - r->head >= r->n_slots)
        return false;
    pthread_mutex_lock(&r->mutex);
    const size_t bytes = (size_t)(r->n_undone + 1) * r->call_bytes;
    pthread_mutex_unlock(&r->mutex);
    return sn_pool_has_room(r->cursor->stage->engine, bytes);
}

/* Fills slots from the stage before; only this thread moves head and tail. */
static void fill_slots(map_run *r) {
    while (!r->ended && has_room(r)) {
        slot *s = &r->slots[r->tail % r->n_slots];
        const snug_status status = sn_cursor_next(r->cursor->before[0], &s->in, &s->err);
        r->ended = status == SNUG_E_END;
        if (r->ended)
            return;
        pthread_mutex_lock(&r->mutex);
        s->status = status;
        s->state = status == SNUG_OK ? SLOT_QUEUED : SLOT_DONE;
        s->again = false;
        r->n_undone += status == SNUG_OK;
        r->tail++;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->mutex);
        if (status != SNUG_OK)
            return;
    }
}

static struct timespec deadline(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += WAIT_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static snug_status wait_for_head(map_run *r, slot *s, snug_error *err) {
    bool stop = false;
    pthread_mutex_lock(&r->mutex);
    while (s->state != SLOT_DONE && !stop) {
        const struct timespec until = deadline();
        pthread_cond_timedwait(&r->done, &r->mutex, &until);
        pthread_mutex_unlock(&r->mutex);
        stop = sn_iterator_interrupted(r->cursor->iterator);
        pthread_mutex_lock(&r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
    return stop ? sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller") : SNUG_OK;
}

static void pause_workers(map_run *r, bool paused) {
    pthread_mutex_lock(&r->mutex);
    r->paused = paused;
    while (paused && r->n_running > 0)
        pthread_cond_wait(&r->done, &r->mutex);
    if (!paused)
        pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->mutex);
}

/* The call of a slot that had no memory, with all others at rest. */
static snug_status call_alone(map_run *r, slot *s, snug_error *err) {
    pause_workers(r, true);
    snug_status status = own_worker(r, r->cursor->stage->ctx, err);
    if (status == SNUG_OK)
        status = call_measured(r, r->own, &s->in, &s->out, err);
    snug_element_drop(&s->in);
    s->again = false;
    pause_workers(r, false);
    return status;
}

static snug_status next_from_ring(map_run *r, snug_element *out, snug_error *err) {
    fill_slots(r);
    if (r->head == r->tail)
        return sn_end(err);
    slot *s = &r->slots[r->head % r->n_slots];
    SNUG_TRY(wait_for_head(r, s, err));
    snug_status status = s->status;
    if (status != SNUG_OK && err)
        *err = s->err;
    if (s->again)
        status = call_alone(r, s, err);
    if (status == SNUG_OK)
        sn_element_move(out, &s->out);
    pthread_mutex_lock(&r->mutex);
    r->head++;
    pthread_mutex_unlock(&r->mutex);
    return status;
}

static bool may_have_workers(const map_stage *m) {
    return !m->f.serial && m->options.workers != 0 && m->options.workers != 1;
}

static snug_status next_by_self(map_run *r, snug_element *out, snug_error *err) {
    const map_stage *m = r->cursor->stage->ctx;
    SNUG_TRY(own_worker(r, m, err));
    SNUG_TRY(sn_cursor_next(r->cursor->before[0], &r->in, err));
    const bool timed = may_have_workers(m);
    const int64_t start = timed ? sn_now_ns() : 0;
    const snug_status status = call_measured(r, r->own, &r->in, out, err);
    snug_element_drop(&r->in);
    if (timed) {
        r->measured_long += sn_now_ns() - start >= WORTH_A_WORKER_NS;
        r->measured++;
    }
    return status;
}

/* How many workers there should be now; 0: the asking thread alone. */
static int wanted_workers(map_run *r) {
    const map_stage *m = r->cursor->stage->ctx;
    const int asked = m->options.workers;
    const bool worth = r->measured_long >= MEASURED / 2; /* one may only have lost its core */
    if (!may_have_workers(m) || r->alone || (!worth && r->measured < MEASURED))
        return 0;
    if (!sn_pool_has_room(r->cursor->stage->engine, 2 * r->call_bytes))
        return 0; /* for no more than one call at a time */
    r->measured = r->measured_long = 0;
    if (!worth)
        return 0;
    const int n = asked > 1 ? asked : snug_engine_threads(r->cursor->stage->engine);
    const size_t most = snug_room(r->cursor->stage->engine) / (2 * WORKER_BYTES);
    return most < MOST_WORKERS && (int)most < n ? (int)most : n < MOST_WORKERS ? n : MOST_WORKERS;
}

/* Failures of the data, which ignore_errors leaves out; a machine without memory is none. */
static bool is_of_the_data(snug_status s) {
    return s != SNUG_OK && s != SNUG_E_END && s != SNUG_E_MEMORY && s != SNUG_E_BUDGET &&
           s != SNUG_E_INTERRUPTED && s != SNUG_E_INTERNAL;
}

static snug_status next_mapped(sn_cursor *c, snug_element *out, snug_error *err) {
    map_run *r = c->ctx;
    const map_stage *m = c->stage->ctx;
    snug_status status;
    do {
        const int n = r->n_workers > 0 ? 0 : wanted_workers(r);
        if (n > 0)
            SNUG_TRY(start_workers(r, n, err));
        status = r->n_workers > 0 ? next_from_ring(r, out, err) : next_by_self(r, out, err);
    } while (m->options.ignore_errors && is_of_the_data(status));
    return status;
}

/* A function need not run for elements nobody sees, unless it may do more than give a value. */
static snug_status seek_mapped(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    map_run *r = c->ctx;
    const map_stage *m = c->stage->ctx;
    snug_status status = SNUG_OK;
    const bool runs = m->f.serial || m->options.ignore_errors;
    *done = 0;
    while (*done < n && status == SNUG_OK && (runs || r->tail != r->head)) {
        snug_element e = {0};
        status = next_mapped(c, &e, err);
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    if (status != SNUG_OK)
        return status == SNUG_E_END ? SNUG_OK : status;
    int64_t more = 0;
    SNUG_TRY(sn_cursor_seek(c->before[0], n - *done, &more, err));
    *done += more;
    return SNUG_OK;
}

/* --- life ------------------------------------------------------------------------------------- */
static snug_status open_map(sn_cursor *c, snug_error *err) {
    pthread_condattr_t attr;
    SNUG_TRY(sn_cursor_ctx(c, sizeof(map_run), err));
    map_run *r = c->ctx;
    r->cursor = c;
    bool made = pthread_condattr_init(&attr) == 0;
    if (made) {
        made = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
               pthread_mutex_init(&r->mutex, NULL) == 0 && pthread_cond_init(&r->work, NULL) == 0 &&
               pthread_cond_init(&r->done, &attr) == 0;
        pthread_condattr_destroy(&attr);
    }
    r->made = made;
    return made ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "the system has no mutex; free memory");
}

static void close_map(sn_cursor *c) {
    map_run *r = c->ctx;
    const map_stage *m = c->stage->ctx;
    if (!r->made)
        return;
    stop_workers(r);
    if (r->has_own && m->f.close)
        m->f.close(m->f.ctx, r->own);
    pthread_cond_destroy(&r->done);
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->mutex);
}

static void release_map(snug_dataset *d) {
    const map_stage *m = d->ctx;
    if (m->f.release)
        m->f.release(m->f.ctx);
}

static const sn_stage_class map_class = {.name = "map",
                                         .open = open_map,
                                         .next = next_mapped,
                                         .close = close_map,
                                         .seek = seek_mapped,
                                         .release = release_map,
                                         .waits = true};

static snug_status create_mapped(const sn_stage_class *kind, snug_dataset *d, const snug_mapper *f,
                                 snug_dataset **out, snug_error *err) {
    if (!f || !f->call) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID, "%s: there is no function to call", kind->name);
    }
    SNUG_TRY(sn_stage_after(kind, d, sizeof(map_stage), out, err));
    ((map_stage *)(*out)->ctx)->f = *f;
    (*out)->serial = (*out)->serial || f->serial;
    return SNUG_OK;
}

/* On failure the function is the caller's still. */
static snug_status give_up(snug_dataset *made, snug_status status) {
    ((map_stage *)made->ctx)->f.release = NULL;
    snug_dataset_drop(made);
    return status;
}

snug_status snug_dataset_map(snug_dataset *d, const snug_mapper *f, const snug_map_options *o,
                             snug_dataset **out, snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    SNUG_TRY(create_mapped(&map_class, d, f, &made, err));
    if (o)
        ((map_stage *)made->ctx)->options = *o;
    snug_spec spec = made->spec;
    const snug_status status = f->spec ? f->spec(f->ctx, &made->spec, &spec, err) : SNUG_OK;
    if (status != SNUG_OK)
        return give_up(made, status);
    made->spec = spec;
    if (o && o->ignore_errors && made->cardinality > 0)
        made->cardinality = SNUG_UNKNOWN;
    *out = made;
    return SNUG_OK;
}

/* --- filter ----------------------------------------------------------------------------------- */
typedef struct {
    void *worker;
    bool opened;
    snug_element truth; /* not on the stack: chains are long */
} filtering;

static snug_status open_filter(sn_cursor *c, snug_error *err) {
    const map_stage *m = c->stage->ctx;
    SNUG_TRY(sn_cursor_ctx(c, sizeof(filtering), err));
    filtering *f = c->ctx;
    if (m->f.open)
        SNUG_TRY(m->f.open(m->f.ctx, c->stage->engine, &f->worker, err));
    f->opened = true;
    return SNUG_OK;
}

static void close_filter(sn_cursor *c) {
    const map_stage *m = c->stage->ctx;
    filtering *f = c->ctx;
    if (f->opened && m->f.close)
        m->f.close(m->f.ctx, f->worker);
}

/* A single number; true when it is not zero. */
static snug_status read_truth(const snug_element *e, bool *out, snug_error *err) {
    char text[192];
    if (e->n != 1 || e->part[0].is_text || sn_type_count(&e->part[0].type) != 1)
        return sn_fail(err, SNUG_E_SHAPE, "filter: the function gave %s; give one true or false",
                       e->n == 1 ? snug_type_print(&e->part[0].type, text, sizeof text)
                                 : "several parts");
    static const unsigned char zero[16];
    *out = memcmp(e->part[0].data, zero, e->part[0].bytes) != 0;
    return SNUG_OK;
}

static snug_status next_filtered(sn_cursor *c, snug_element *out, snug_error *err) {
    const map_stage *m = c->stage->ctx;
    filtering *f = c->ctx;
    for (;;) {
        bool keep = false;
        f->truth.n = 0;
        SNUG_TRY(sn_cursor_next(c->before[0], out, err));
        snug_status status = m->f.call(m->f.ctx, f->worker, out, &f->truth, err);
        if (status == SNUG_OK)
            status = read_truth(&f->truth, &keep, err);
        snug_element_drop(&f->truth);
        if (status == SNUG_OK && keep)
            return SNUG_OK;
        snug_element_drop(out);
        SNUG_TRY(status);
        if (sn_iterator_interrupted(c->iterator))
            return sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller");
    }
}

static const sn_stage_class filter_class = {.name = "filter",
                                            .open = open_filter,
                                            .next = next_filtered,
                                            .close = close_filter,
                                            .release = release_map};

snug_status snug_dataset_filter(snug_dataset *d, const snug_mapper *f, snug_dataset **out,
                                snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    SNUG_TRY(create_mapped(&filter_class, d, f, &made, err));
    if (made->cardinality != 0)
        made->cardinality = SNUG_UNKNOWN;
    *out = made;
    return SNUG_OK;
}
