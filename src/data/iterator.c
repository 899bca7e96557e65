/* iterator.c: going through a dataset: the tree of places with their figures, cursors over them,
 * positions.
 *
 *     dataset   batch -> map -> shuffle -> rows        (descriptions)
 *     places    batch -> map -> shuffle -> rows        (of this iterator: ordinal, figures)
 *     cursors   batch -> map -> shuffle -> rows        (opened again by repeat)
 *
 * Invariants:
 * 1. A position is how many elements were given, the places' ordinals, and what they learned; to
 *    restore it is to ask an equal tree that far. Buffers and workers are no part of it.
 * 2. Times are taken of every call that is slow, and of each sixteenth that is not. */
#include "data/iterator.h"

#include "base/rng.h"
#include "base/size.h"
#include "memory/pool.h"
#include "memory/thread.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { TIMED_EVERY = 16, SLOW_NS = 2000 };

int64_t sn_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

snug_status sn_end(snug_error *err) {
    return sn_fail(err, SNUG_E_END, "there are no more elements");
}

/* One cursor is about to ask another. */
static snug_status check_stack(const snug_dataset *d, snug_error *err) {
    return sn_stack_is_low(SN_STAGE_STACK)
               ? sn_fail(err, SNUG_E_MEMORY,
                         "%s: it and the stages before it, %d one behind another, do not fit what "
                         "is left of this thread's stack; use fewer stages or a larger stack "
                         "(ulimit -s)",
                         d->kind->name, d->depth)
               : SNUG_OK;
}

/* --- places ----------------------------------------------------------------------------------- */
/* ordinal SN_COUNT_ITERATORS: the number of iterators the stage had so far. */
snug_status sn_station_create(snug_iterator *it, const snug_dataset *d, uint64_t ordinal,
                              sn_station **out, snug_error *err) {
    void *block = NULL, *list = NULL;
    snug_engine *e = d->engine;
    SNUG_TRY(check_stack(d, err));
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_station), &block, err));
    sn_station *p = block;
    p->stage = d;
    snug_dataset_hold((snug_dataset *)d);
    p->iterator = it;
    p->ordinal = ordinal == SN_COUNT_ITERATORS
                     ? atomic_fetch_add(&((snug_dataset *)d)->iterators, 1)
                     : ordinal;
    snug_status status = SNUG_OK;
    if (d->n_before > 0)
        status =
            sn_alloc_zero(e, SN_MEM_INPUT, (size_t)d->n_before * sizeof *p->before, &list, err);
    p->before = list;
    for (int i = 0; i < d->n_before && status == SNUG_OK; i++)
        status = sn_station_create(it, d->before[i], ordinal, &p->before[i], err);
    if (status == SNUG_OK)
        *out = p;
    else
        sn_station_destroy(p);
    return status;
}

void sn_station_destroy(sn_station *p) {
    if (!p)
        return;
    snug_dataset *d = (snug_dataset *)p->stage;
    for (int i = 0; p->before && i < d->n_before; i++)
        sn_station_destroy(p->before[i]);
    sn_free(d->engine, SN_MEM_INPUT, p->before, (size_t)d->n_before * sizeof *p->before);
    sn_free(d->engine, SN_MEM_INPUT, p, sizeof *p);
    snug_dataset_drop(d);
}

void sn_station_hold(sn_station *p, int64_t bytes) {
    const int64_t now = atomic_fetch_add(&p->figures.bytes, bytes) + bytes;
    if (now > p->figures.peak_bytes)
        p->figures.peak_bytes = now;
}

/* --- cursors ---------------------------------------------------------------------------------- */
snug_status sn_cursor_ctx(sn_cursor *c, size_t bytes, snug_error *err) {
    SNUG_TRY(sn_alloc_zero(c->stage->engine, SN_MEM_INPUT, bytes, &c->ctx, err));
    c->n_ctx = bytes;
    return SNUG_OK;
}

static size_t cursor_bytes(const snug_dataset *d) {
    return sizeof(sn_cursor) + (size_t)d->n_before * sizeof(sn_cursor *);
}

snug_status sn_cursor_open(sn_station *p, sn_cursor **out, snug_error *err) {
    const snug_dataset *d = p->stage;
    void *block;
    SNUG_TRY(check_stack(d, err));
    SNUG_TRY(sn_alloc_zero(d->engine, SN_MEM_INPUT, cursor_bytes(d), &block, err));
    sn_cursor *c = block;
    c->stage = d;
    c->iterator = p->iterator;
    c->place = p;
    c->before = (sn_cursor **)(void *)(c + 1);
    c->iteration = (p->ordinal & 0x7ff) << 11 | (p->opens & 0x7ff);
    c->key = sn_rng_key(p->ordinal, p->opens++);
    snug_status status = SNUG_OK;
    for (int i = 0; i < d->n_before && !d->kind->opens_before && status == SNUG_OK; i++)
        status = sn_cursor_open(p->before[i], &c->before[i], err);
    if (status == SNUG_OK && d->kind->open)
        status = d->kind->open(c, err);
    if (status == SNUG_OK)
        *out = c;
    else
        sn_cursor_close(c);
    return status;
}

void sn_cursor_close(sn_cursor *c) {
    if (!c)
        return;
    const snug_dataset *d = c->stage;
    if (d->kind->close && c->ctx)
        d->kind->close(c);
    sn_free(d->engine, SN_MEM_INPUT, c->ctx, c->n_ctx);
    for (int i = 0; i < d->n_before; i++)
        sn_cursor_close(c->before[i]);
    sn_free(d->engine, SN_MEM_INPUT, c, cursor_bytes(d));
}

static void add_figures(sn_cursor *c, int64_t n, int64_t start) {
    if (start > 0) {
        const int64_t took = sn_now_ns() - start;
        c->slow = took > SLOW_NS;
        const bool sampled = !c->slow && !c->stage->kind->waits;
        atomic_fetch_add_explicit(&c->place->figures.asked_ns, sampled ? took * TIMED_EVERY : took,
                                  memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&c->place->figures.elements, n, memory_order_relaxed);
}

snug_status sn_cursor_next(sn_cursor *c, snug_element *out, snug_error *err) {
    const bool timed = c->slow || c->stage->kind->waits || c->given % TIMED_EVERY == 0;
    const int64_t start = timed ? sn_now_ns() : 0;
    out->n = 0;
    SNUG_TRY(check_stack(c->stage, err));
    const snug_status status = c->stage->kind->next(c, out, err);
    if (status == SNUG_OK)
        out->index = (int64_t)(c->iteration << 40) + c->given++;
    add_figures(c, status == SNUG_OK, start);
    return status;
}

snug_status sn_cursor_seek(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    snug_status status = SNUG_OK;
    *done = 0;
    SNUG_TRY(check_stack(c->stage, err));
    if (c->stage->kind->seek) {
        SNUG_TRY(c->stage->kind->seek(c, n, done, err));
        c->given += *done;
        return SNUG_OK;
    }
    while (*done < n && status == SNUG_OK) {
        snug_element e = {0};
        status = sn_cursor_next(c, &e, err);
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    return status == SNUG_E_END ? SNUG_OK : status;
}

snug_status sn_cursor_fill(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                           int64_t *done, snug_error *err) {
    *done = 0;
    SNUG_TRY(check_stack(c->stage, err));
    if (c->stage->kind->fill) {
        const int64_t start = sn_now_ns();
        SNUG_TRY(c->stage->kind->fill(c, to, first, n, done, err));
        c->given += *done;
        c->slow = true;
        atomic_fetch_add_explicit(&c->place->figures.asked_ns, sn_now_ns() - start,
                                  memory_order_relaxed);
        atomic_fetch_add_explicit(&c->place->figures.elements, *done, memory_order_relaxed);
        return SNUG_OK;
    }
    snug_status status = SNUG_OK;
    while (*done < n && status == SNUG_OK) {
        snug_element e;
        status = sn_cursor_next(c, &e, err);
        if (status == SNUG_OK)
            status = sn_target_put_all(to, first + *done, &e, err);
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    return status == SNUG_E_END ? SNUG_OK : status;
}

snug_status sn_cursor_draw(sn_cursor *c, int64_t *index, int64_t n, int64_t *done,
                           snug_error *err) {
    SNUG_TRY(check_stack(c->stage, err));
    SNUG_TRY(c->stage->kind->draw(c, index, n, done, err));
    c->given += *done;
    atomic_fetch_add_explicit(&c->place->figures.elements, *done, memory_order_relaxed);
    return SNUG_OK;
}

/* --- iterators -------------------------------------------------------------------------------- */
snug_status snug_iterator_create(snug_dataset *d, snug_iterator **out, snug_error *err) {
    void *block;
    if (!d || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_iterator_create: an argument is NULL");
    SNUG_TRY(sn_alloc_zero(d->engine, SN_MEM_INPUT, sizeof(snug_iterator), &block, err));
    snug_iterator *it = block;
    it->engine = d->engine;
    it->owner = pthread_self();
    sn_pool_hold(it->engine);
    snug_status status = sn_station_create(it, d, SN_COUNT_ITERATORS, &it->root, err);
    if (status == SNUG_OK)
        status = sn_cursor_open(it->root, &it->cursor, err);
    if (status == SNUG_OK)
        *out = it;
    else
        snug_iterator_destroy(it);
    return status;
}

void snug_iterator_destroy(snug_iterator *it) {
    if (!it)
        return;
    snug_engine *e = it->engine;
    sn_cursor_close(it->cursor);
    sn_station_destroy(it->root);
    sn_free(e, SN_MEM_INPUT, it, sizeof *it);
    sn_pool_drop(e);
}

snug_status sn_iterator_begin(snug_iterator *it, snug_error *err) {
    it->owner = pthread_self();
    if (!it->cursor)
        return sn_fail(err, SNUG_E_INVALID,
                       "the iterator's position could not be restored; make a new one");
    if (sn_iterator_interrupted(it))
        return sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller");
    return SNUG_OK;
}

snug_status snug_iterator_next(snug_iterator *it, snug_element *out, snug_error *err) {
    if (!it || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_iterator_next: an argument is NULL");
    SNUG_TRY(sn_iterator_begin(it, err));
    return sn_cursor_next(it->cursor, out, err);
}

void snug_iterator_set_interrupt(snug_iterator *it, int (*asked)(void *ctx), void *ctx) {
    if (!it)
        return;
    it->asked = asked;
    it->asked_ctx = ctx;
}

bool sn_iterator_interrupted(snug_iterator *it) {
    return it->asked && pthread_equal(it->owner, pthread_self()) && it->asked(it->asked_ctx);
}

/* --- figures ---------------------------------------------------------------------------------- */
static void add_rows(const sn_station *p, snug_stage_row *rows, int max, int *n) {
    int64_t before_ns = 0;
    for (int i = 0; i < p->stage->n_before; i++) {
        add_rows(p->before[i], rows, max, n);
        before_ns += p->before[i]->figures.asked_ns;
    }
    const sn_figures *f = &p->figures;
    if (*n < max) {
        const int64_t own = f->asked_ns > before_ns ? f->asked_ns - before_ns : 0;
        rows[*n] = (snug_stage_row){
            .stage = p->stage->kind->name,
            .elements = f->elements,
            .busy_seconds = (double)(f->workers > 0 ? f->worker_ns : own) * 1e-9,
            .wait_seconds = (double)f->asked_ns * 1e-9,
            .workers = f->workers,
            .depth = f->depth,
            .bytes = (size_t)(f->bytes > 0 ? f->bytes : 0),
            .peak_bytes = (size_t)f->peak_bytes,
        };
    }
    ++*n;
}

int snug_iterator_stages(const snug_iterator *it, snug_stage_row *rows, int max) {
    if (!(it && (rows || max == 0)))
        return 0;
    int n = 0;
    add_rows(it->root, rows, max, &n);
    return n;
}

static void close_places(sn_station *p) {
    p->opens = 0;
    for (int i = 0; i < p->stage->n_before; i++)
        close_places(p->before[i]);
}

snug_status sn_iterator_rewind(snug_iterator *it, snug_error *err) {
    sn_cursor_close(it->cursor);
    it->cursor = NULL;
    close_places(it->root);
    return sn_cursor_open(it->root, &it->cursor, err);
}

void sn_dataset_forget_iterator(snug_dataset *d) {
    atomic_fetch_sub(&d->iterators, 1);
    for (int i = 0; i < d->n_before; i++)
        sn_dataset_forget_iterator(d->before[i]);
}

/* --- positions -------------------------------------------------------------------------------- */
static const uint64_t position_magic = 0x31736f7067756e73u; /* "snugpos1" */

typedef struct {
    uint64_t magic, given, n_places;
} position_head;

typedef struct {
    uint64_t name_hash, ordinal;
    int64_t fact;
} position_place;

static uint64_t hash_name(const char *text) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static uint64_t count_places(const sn_station *p) {
    uint64_t n = 1;
    for (int i = 0; i < p->stage->n_before; i++)
        n += count_places(p->before[i]);
    return n;
}

static snug_status write_bytes(const snug_writer *w, const void *bytes, size_t n, snug_error *err) {
    return w->write(w->ctx, bytes, n, err);
}

static snug_status save_place(const sn_station *p, const snug_writer *w, snug_error *err) {
    const position_place at = {hash_name(p->stage->kind->name), p->ordinal, p->fact};
    SNUG_TRY(write_bytes(w, &at, sizeof at, err));
    for (int i = 0; i < p->stage->n_before; i++)
        SNUG_TRY(save_place(p->before[i], w, err));
    return SNUG_OK;
}

snug_status snug_iterator_save(snug_iterator *it, const snug_writer *w, snug_error *err) {
    if (!it || !w)
        return sn_fail(err, SNUG_E_INVALID, "snug_iterator_save: an argument is NULL");
    const position_head head = {position_magic, (uint64_t)it->cursor->given,
                                count_places(it->root)};
    SNUG_TRY(write_bytes(w, &head, sizeof head, err));
    return save_place(it->root, w, err);
}

/* Two passes over the tree, so that a position of another dataset changes nothing. */
static bool place_matches(const sn_station *p, const unsigned char **at) {
    position_place saved;
    memcpy(&saved, *at, sizeof saved);
    *at += sizeof saved;
    bool same = saved.name_hash == hash_name(p->stage->kind->name);
    for (int i = 0; same && i < p->stage->n_before; i++)
        same = place_matches(p->before[i], at);
    return same;
}

static void restore_place(sn_station *p, const unsigned char **at) {
    position_place saved;
    memcpy(&saved, *at, sizeof saved);
    *at += sizeof saved;
    p->ordinal = saved.ordinal;
    p->fact = saved.fact;
    p->opens = 0;
    for (int i = 0; i < p->stage->n_before; i++)
        restore_place(p->before[i], at);
}

snug_status snug_iterator_restore(snug_iterator *it, const void *bytes, size_t n, snug_error *err) {
    if (!it || !bytes)
        return sn_fail(err, SNUG_E_INVALID, "snug_iterator_restore: an argument is NULL");
    position_head head = {0};
    if (n >= sizeof head)
        memcpy(&head, bytes, sizeof head);
    const uint64_t n_places = count_places(it->root);
    const unsigned char *places = (const unsigned char *)bytes + sizeof head, *at = places;
    if (head.magic != position_magic || head.given > INT64_MAX)
        return sn_fail(err, SNUG_E_FORMAT, "these %zu bytes are no position of an iterator", n);
    if (head.n_places != n_places || n != sizeof head + n_places * sizeof(position_place) ||
        !place_matches(it->root, &at))
        return sn_fail(err, SNUG_E_FORMAT,
                       "the position is one of another dataset: it has %" PRIu64
                       " stages, this one %" PRIu64 "; build the same pipeline",
                       head.n_places, n_places);
    int64_t done;
    sn_cursor_close(it->cursor);
    it->cursor = NULL;
    at = places;
    restore_place(it->root, &at);
    SNUG_TRY(sn_cursor_open(it->root, &it->cursor, err));
    SNUG_TRY(sn_cursor_seek(it->cursor, (int64_t)head.given, &done, err));
    if ((uint64_t)done == head.given)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_DATA,
                   "the position is after %" PRIu64 " elements, but the dataset has %" PRId64,
                   head.given, done);
}
