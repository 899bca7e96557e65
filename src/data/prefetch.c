/* prefetch.c: a thread that runs ahead of who asks, up to some elements.
 *
 * Invariants:
 * 1. The stage before is asked by the thread alone; a serial one by who asks, and there is no
 *    thread.
 * 2. Failures stand in the queue like elements, in their order. After the end the thread is done.
 * 3. A full queue is filled again when half of it is gone: two threads that wake each other for
 *    each element do little else. Small elements may run further ahead than the depth.
 * 4. Autotune: the depth is 2 at first and doubles each time somebody had to wait though the thread
 *    had been held back by it, up to MOST_DEPTH; it never shrinks.
 * 5. What has no memory is no failure while elements wait, or are at work, that will be given back.
 * 6. With a limit on pipelines' bytes that has no room for one more, an element is made when
 *    somebody waits for it, and not before. */
#include "data/stage.h"

#include "memory/pool.h"
#include "memory/thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    MOST_DEPTH = 16,
    SMALL_ENTRIES = 64,
    SMALL_BYTES = 1 << 20, /* that a queue may hold whatever its depth: waking costs more */
    WAIT_NS = 20 * 1000 * 1000,
    STACK_BYTES = 512 << 10,
    STAGE_BYTES = 3 * sizeof(snug_element), /* that the calls of one stage take at most */
    MOST_STAGES_BYTES = 8 << 20,
};

typedef struct {
    int64_t depth;
} prefetch_stage;

/* An element in the queue, or a failure. */
typedef struct entry {
    struct entry *next;
    snug_status status;
    int64_t bytes;
    snug_error err;
    snug_element element;
} entry;

typedef struct {
    sn_cursor *cursor;
    pthread_mutex_t mutex;
    pthread_cond_t room, news;
    bool made, quit, held_back, autotune;
    bool wanted;  /* somebody waits for the next */
    bool starved; /* the thread waits for room */
    bool ended;   /* the thread's last entry is in the queue */
    sn_thread thread;
    int64_t n, depth, bytes, largest; /* in the queue */
    int64_t wake_at; /* the thread sleeps until there are so few; -1: it does not */
    entry *first, *last, *spare;
} prefetch;

static void free_entries(prefetch *p, entry *list) {
    for (entry *next; list; list = next) {
        next = list->next;
        snug_element_drop(&list->element);
        sn_free(p->cursor->stage->engine, SN_MEM_INPUT, list, sizeof *list);
    }
}

/* --- the thread ------------------------------------------------------------------------------- */
/* Too little room for one more, and nobody waits for it. */
static bool is_short(const prefetch *p) {
    return !(p->n == 0 && p->wanted) &&
           !sn_pool_has_room(p->cursor->stage->engine, (size_t)p->largest);
}

static bool is_full(const prefetch *p) {
    if (p->n == 0)
        return false;
    return p->n >= p->depth && (p->bytes + p->largest > SMALL_BYTES || p->n >= SMALL_ENTRIES);
}

static bool wait_for_room(prefetch *p, entry **spare) {
    pthread_mutex_lock(&p->mutex);
    if (!p->quit && is_full(p)) {
        p->held_back = true;
        p->wake_at = p->n / 2;
        while (!p->quit && p->n > p->wake_at)
            pthread_cond_wait(&p->room, &p->mutex);
        p->wake_at = -1;
    }
    for (p->starved = true; !p->quit && is_short(p);)
        pthread_cond_wait(&p->room, &p->mutex);
    p->starved = false;
    const bool go = !p->quit;
    *spare = go ? p->spare : NULL;
    if (*spare)
        p->spare = p->spare->next;
    pthread_mutex_unlock(&p->mutex);
    return go;
}

static void append(prefetch *p, entry *e) {
    e->next = NULL;
    e->bytes = sn_element_bytes(&e->element);
    sn_station_hold(p->cursor->place, e->bytes);
    pthread_mutex_lock(&p->mutex);
    *(p->last ? &p->last->next : &p->first) = e;
    p->last = e;
    p->n++;
    p->bytes += e->bytes;
    if (e->bytes > p->largest)
        p->largest = e->bytes;
    p->ended = e->status == SNUG_E_END;
    if (p->n == 1)
        pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->mutex);
}

/* Of the stages before the one that is asked. */
static int64_t elements_used(const sn_cursor *c) {
    int64_t n = 0;
    for (int i = 0; i < c->stage->n_before; i++)
        n += c->before[i] ? c->before[i]->given : 0;
    return n;
}

/* The next element into e. What has no memory before it used an element is asked for again when
 * somebody waits for it, who has given back what was made before; false: to be ended meanwhile. */
static bool make(prefetch *p, entry *e) {
    sn_cursor *from = p->cursor->before[0];
    const int64_t used = elements_used(from);
    e->status = sn_cursor_next(from, &e->element, &e->err);
    if ((e->status != SNUG_E_BUDGET && e->status != SNUG_E_MEMORY) || elements_used(from) != used)
        return true;
    pthread_mutex_lock(&p->mutex);
    const bool waits = !(p->n == 0 && p->wanted);
    for (p->starved = true; !p->quit && !(p->n == 0 && p->wanted);)
        pthread_cond_wait(&p->room, &p->mutex);
    p->starved = false;
    const bool go = !p->quit;
    pthread_mutex_unlock(&p->mutex);
    if (go && waits)
        e->status = sn_cursor_next(from, &e->element, &e->err);
    return go;
}

static void *run_ahead(void *ctx) {
    prefetch *p = ctx;
    snug_engine *engine = p->cursor->stage->engine;
    snug_status status = SNUG_OK;
    entry *e;
    while (status != SNUG_E_END && wait_for_room(p, &e)) {
        void *block = e;
        /* Without the bytes for an entry there is nowhere to say so: try again when there are. */
        if (!e && sn_alloc_zero(engine, SN_MEM_INPUT, sizeof *e, &block, NULL) != SNUG_OK) {
            nanosleep(&(struct timespec){0, WAIT_NS / 20}, NULL);
            continue;
        }
        e = block;
        if (!make(p, e))
            e->status = SNUG_E_END; /* nobody asks any more */
        status = e->status;
        append(p, e);
    }
    return NULL;
}

/* --- who asks --------------------------------------------------------------------------------- */
static struct timespec soon(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += WAIT_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Takes the first entry, under the mutex; the last stays, to be given again. */
static entry *pop(prefetch *p) {
    entry *e = p->first;
    if (e->status == SNUG_E_END)
        return e;
    p->first = e->next;
    if (!p->first)
        p->last = NULL;
    p->n--;
    p->bytes -= e->bytes;
    return e;
}

static void deepen(prefetch *p) {
    if (p->autotune && p->held_back && p->depth < MOST_DEPTH) {
        p->depth *= 2;
        p->held_back = false;
        p->cursor->place->figures.depth = p->depth;
    }
}

static snug_status wait_for_entry(prefetch *p, entry **out, snug_error *err) {
    bool stop = false;
    pthread_mutex_lock(&p->mutex);
    if (!p->first)
        deepen(p);
    p->wanted = true;
    if (p->starved)
        pthread_cond_signal(&p->room);
    while (!p->first && !stop) {
        const struct timespec until = soon();
        pthread_cond_timedwait(&p->news, &p->mutex, &until);
        pthread_mutex_unlock(&p->mutex);
        stop = sn_iterator_interrupted(p->cursor->iterator);
        pthread_mutex_lock(&p->mutex);
    }
    p->wanted = false;
    if (!stop)
        *out = pop(p);
    if (p->n <= p->wake_at)
        pthread_cond_signal(&p->room);
    pthread_mutex_unlock(&p->mutex);
    return stop ? sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller") : SNUG_OK;
}

static void give_back(prefetch *p, entry *e) {
    pthread_mutex_lock(&p->mutex);
    e->next = p->spare;
    p->spare = e;
    pthread_mutex_unlock(&p->mutex);
}

/* Stages that others come behind are asked on its thread; the rest is refused (check_stack). */
static size_t stack_bytes(const snug_dataset *d) {
    const size_t more = (size_t)d->depth * STAGE_BYTES;
    return STACK_BYTES + (more > MOST_STAGES_BYTES ? MOST_STAGES_BYTES : more);
}

static snug_status next_prefetched(sn_cursor *c, snug_element *out, snug_error *err) {
    prefetch *p = c->ctx;
    entry *e = NULL;
    if (c->stage->before[0]->serial || p->depth == 0)
        return sn_cursor_next(c->before[0], out, err);
    if (!p->thread.live) {
        SNUG_TRY(sn_thread_start(c->stage->engine,
                                 &(sn_thread_plan){"prefetch", stack_bytes(c->stage), run_ahead, p},
                                 &p->thread, err));
        c->place->figures.depth = p->depth;
        c->place->figures.workers = 1; /* whose work is that of the stages before */
    }
    SNUG_TRY(wait_for_entry(p, &e, err));
    const snug_status status = e->status;
    if (status == SNUG_E_END)
        return sn_end(err);
    sn_station_hold(c->place, -e->bytes);
    if (status == SNUG_OK)
        sn_element_move(out, &e->element);
    else if (err)
        *err = e->err;
    give_back(p, e);
    return status;
}

/* Before the thread runs, the stage before can go forward by itself. */
static snug_status seek_prefetched(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    prefetch *p = c->ctx;
    snug_status status = SNUG_OK;
    *done = 0;
    if (!p->thread.live)
        return sn_cursor_seek(c->before[0], n, done, err);
    while (*done < n && status == SNUG_OK) {
        snug_element e = {0};
        status = next_prefetched(c, &e, err);
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    return status == SNUG_E_END ? SNUG_OK : status;
}

static snug_status open_prefetch(sn_cursor *c, snug_error *err) {
    const prefetch_stage *o = c->stage->ctx;
    pthread_condattr_t attr;
    SNUG_TRY(sn_cursor_ctx(c, sizeof(prefetch), err));
    prefetch *p = c->ctx;
    p->cursor = c;
    p->autotune = o->depth < 0;
    p->depth = p->autotune ? 2 : o->depth;
    p->wake_at = -1;
    if (pthread_condattr_init(&attr) == 0) {
        p->made = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
                  pthread_mutex_init(&p->mutex, NULL) == 0 &&
                  pthread_cond_init(&p->room, NULL) == 0 && pthread_cond_init(&p->news, &attr) == 0;
        pthread_condattr_destroy(&attr);
    }
    return p->made ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "the system has no mutex; free memory");
}

static void close_prefetch(sn_cursor *c) {
    prefetch *p = c->ctx;
    if (!p->made)
        return;
    pthread_mutex_lock(&p->mutex);
    p->quit = true;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->mutex);
    sn_thread_join(&p->thread);
    sn_station_hold(c->place, -p->bytes);
    free_entries(p, p->first);
    free_entries(p, p->spare);
    pthread_cond_destroy(&p->news);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->mutex);
}

static const sn_stage_class prefetch_class = {.name = "prefetch",
                                              .open = open_prefetch,
                                              .next = next_prefetched,
                                              .close = close_prefetch,
                                              .seek = seek_prefetched,
                                              .hands_on = true,
                                              .waits = true};

snug_status snug_dataset_prefetch(snug_dataset *d, int64_t depth, snug_dataset **out,
                                  snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    if (depth < SNUG_AUTOTUNE) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID,
                       "prefetch of %" PRId64 " elements; give 0 or more, or autotune", depth);
    }
    SNUG_TRY(sn_stage_after(&prefetch_class, d, sizeof(prefetch_stage), &made, err));
    ((prefetch_stage *)made->ctx)->depth = depth;
    *out = made;
    return SNUG_OK;
}
