/* cache.c: the first full pass is kept, in memory or in a file, and later passes read it.
 *
 *     file   "SNUGDAT1", u64 elements, then for each: u64 bytes, record (packed.h)
 *
 * Invariants:
 * 1. One cursor at a time fills; others that run meanwhile go to the stage before by themselves.
 * 2. What is kept is complete or not there: a file has its name only when it is whole, a store is
 *    read only when a pass has ended. A whole file that another process has finished meanwhile
 *    stays: others may read it, and this one's is dropped.
 * 3. The stage before runs as in a first iteration whenever it fills: a process that comes back to
 *    a position fills the cache with the same elements. */
#include "data/stage.h"

#include "base/file.h"
#include "data/packed.h"
#include "codec/advance.h"
#include "data/element_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW_BYTES = 256 << 10, HEAD_BYTES = 16 };
static const char cache_magic[8] = {'S', 'N', 'U', 'G', 'D', 'A', 'T', '1'};

typedef struct {
    pthread_mutex_t mutex;
    bool made, filling, whole; /* under the mutex; whole: of the store */
    sn_store *store;
    int64_t n;
    bool has_path;
    char path[1000];
} cache_stage;

typedef enum { CACHE_NEW, CACHE_READS, CACHE_FILLS, CACHE_PASSES } cache_mode;

typedef struct {
    cache_mode mode;
    bool ended;
    int64_t n;       /* read, or kept */
    sn_store *store; /* while filling memory */
    sn_file file;
    int64_t offset;
    int64_t n_all;         /* of the file read */
    unsigned char *window; /* WINDOW_BYTES; file bytes [at, at + have) */
    int64_t window_at;
    size_t have;
    unsigned char *record;
    size_t record_cap;
    sn_advance pass;
} caching;

/* --- the file --------------------------------------------------------------------------------- */
static snug_status make_window(sn_cursor *c, caching *k, snug_error *err) {
    void *block;
    if (k->window)
        return SNUG_OK;
    SNUG_TRY(sn_alloc(c->stage->engine, SN_MEM_INPUT, WINDOW_BYTES, &block, err));
    k->window = block;
    sn_station_hold(c->place, WINDOW_BYTES);
    return SNUG_OK;
}

static snug_status flush(caching *k, snug_error *err) {
    SNUG_TRY(sn_file_write(&k->file, k->window, k->have, k->window_at, err));
    k->window_at += (int64_t)k->have;
    k->have = 0;
    return SNUG_OK;
}

static snug_status write_bytes(caching *k, const void *bytes, size_t n, snug_error *err) {
    if (n > WINDOW_BYTES - k->have)
        SNUG_TRY(flush(k, err));
    if (n > WINDOW_BYTES) {
        SNUG_TRY(sn_file_write(&k->file, bytes, n, k->window_at, err));
        k->window_at += (int64_t)n;
        return SNUG_OK;
    }
    memcpy(k->window + k->have, bytes, n);
    k->have += n;
    return SNUG_OK;
}

static snug_status write_record(sn_cursor *c, caching *k, const snug_element *e, snug_error *err) {
    size_t n = 0;
    SNUG_TRY(sn_packed_bytes(e, &n, err));
    SNUG_TRY(sn_grow(c->stage->engine, SN_MEM_INPUT, &k->record, 1, &k->record_cap, n, err));
    sn_packed_write(e, k->record);
    const uint64_t bytes = n;
    SNUG_TRY(write_bytes(k, &bytes, sizeof bytes, err));
    return write_bytes(k, k->record, n, err);
}

static snug_status begin_file(sn_cursor *c, caching *k, snug_error *err) {
    const cache_stage *o = c->stage->ctx;
    const unsigned char nothing[HEAD_BYTES] = {0};
    SNUG_TRY(make_window(c, k, err));
    SNUG_TRY(sn_file_create(&k->file, sn_engine_io(c->stage->engine), o->path, err));
    return write_bytes(k, nothing, sizeof nothing, err);
}

static bool file_is_there(const sn_cursor *c) {
    const cache_stage *o = c->stage->ctx;
    sn_file f = {0};
    const bool there = sn_file_open(&f, sn_engine_io(c->stage->engine), o->path, NULL) == SNUG_OK;
    sn_file_close(&f);
    return there;
}

/* The head is written last: a file without it is none. */
static snug_status finish_file(const sn_cursor *c, caching *k, snug_error *err) {
    unsigned char head[HEAD_BYTES];
    const uint64_t n = (uint64_t)k->n;
    if (file_is_there(c)) {
        sn_file_close(&k->file);
        return SNUG_OK;
    }
    SNUG_TRY(flush(k, err));
    memcpy(head, cache_magic, sizeof cache_magic);
    memcpy(head + sizeof cache_magic, &n, sizeof n);
    SNUG_TRY(sn_file_write(&k->file, head, sizeof head, 0, err));
    return sn_file_commit(&k->file, err);
}

static snug_status read_bytes(caching *k, void *to, size_t n, snug_error *err) {
    while (n > 0) {
        const int64_t behind = k->offset - k->window_at;
        if (behind < 0 || behind >= (int64_t)k->have) {
            const int64_t left = k->file.size - k->offset;
            const size_t get = left < WINDOW_BYTES ? (size_t)(left > 0 ? left : 0) : WINDOW_BYTES;
            if (get == 0)
                return sn_fail(err, SNUG_E_FORMAT, "the cache file '%s' is cut short",
                               k->file.path);
            SNUG_TRY(sn_file_read(&k->file, k->window, get, k->offset, err));
            k->window_at = k->offset;
            k->have = get;
            continue;
        }
        const size_t there = k->have - (size_t)behind, part = n < there ? n : there;
        memcpy(to, k->window + behind, part);
        to = (char *)to + part;
        k->offset += (int64_t)part;
        n -= part;
    }
    return SNUG_OK;
}

static snug_status open_file(sn_cursor *c, caching *k, snug_error *err) {
    const cache_stage *o = c->stage->ctx;
    unsigned char head[HEAD_BYTES];
    uint64_t n;
    SNUG_TRY(make_window(c, k, err));
    SNUG_TRY(sn_file_open(&k->file, sn_engine_io(c->stage->engine), o->path, err));
    SNUG_TRY(read_bytes(k, head, sizeof head, err));
    memcpy(&n, head + sizeof cache_magic, sizeof n);
    if (memcmp(head, cache_magic, sizeof cache_magic) != 0 || n > INT64_MAX)
        return sn_fail(err, SNUG_E_FORMAT,
                       "'%s' is no cache of this version; remove it, or name another file",
                       o->path);
    k->n_all = (int64_t)n;
    return SNUG_OK;
}

static snug_status record_length(caching *k, uint64_t *n, snug_error *err) {
    SNUG_TRY(read_bytes(k, n, sizeof *n, err));
    if (*n <= (uint64_t)(k->file.size - k->offset))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_FORMAT, "the cache file '%s' is cut short", k->file.path);
}

static snug_status read_record(sn_cursor *c, caching *k, snug_element *out, snug_error *err) {
    snug_engine *e = c->stage->engine;
    uint64_t n = 0;
    SNUG_TRY(record_length(k, &n, err));
    SNUG_TRY(sn_grow(e, SN_MEM_INPUT, &k->record, 1, &k->record_cap, n, err));
    SNUG_TRY(read_bytes(k, k->record, n, err));
    SNUG_TRY(sn_packed_read(e, k->record, n, out, err));
    out->index = k->n;
    const snug_status status = sn_spec_check(&c->stage->spec, out, "the cache file", err);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

/* --- modes ------------------------------------------------------------------------------------ */
static void as_first_iteration(sn_station *p) {
    p->ordinal = p->opens = 0;
    for (int i = 0; i < p->stage->n_before; i++)
        as_first_iteration(p->before[i]);
}

static snug_status begin_filling(sn_cursor *c, caching *k, snug_error *err) {
    const cache_stage *o = c->stage->ctx;
    snug_engine *e = c->stage->engine;
    if (k->mode == CACHE_FILLS && o->has_path)
        SNUG_TRY(begin_file(c, k, err));
    if (k->mode == CACHE_FILLS && !o->has_path) {
        const sn_store_plan plan = {"the cache", sn_engine_spill_folder(e), NULL,
                                    c->stage->cardinality};
        SNUG_TRY(sn_store_create(e, &plan, &k->store, err));
    }
    as_first_iteration(c->place->before[0]);
    return sn_cursor_open(c->place->before[0], &c->before[0], err);
}

/* Decided when the first element is asked for: a cache may have become whole meanwhile. */
static snug_status find_mode(sn_cursor *c, caching *k, snug_error *err) {
    cache_stage *o = c->stage->ctx;
    if (k->mode != CACHE_NEW)
        return SNUG_OK;
    pthread_mutex_lock(&o->mutex);
    if (o->has_path ? file_is_there(c) : o->whole)
        k->mode = CACHE_READS;
    else
        k->mode = o->filling ? CACHE_PASSES : CACHE_FILLS;
    o->filling = o->filling || k->mode == CACHE_FILLS;
    pthread_mutex_unlock(&o->mutex);
    if (k->mode != CACHE_READS)
        return begin_filling(c, k, err);
    if (o->has_path)
        return open_file(c, k, err);
    k->n_all = o->n;
    return SNUG_OK;
}

/* The pass has ended: what was kept is for all from now on. */
static snug_status finish(sn_cursor *c, caching *k, snug_error *err) {
    cache_stage *o = c->stage->ctx;
    if (o->has_path)
        SNUG_TRY(finish_file(c, k, err));
    pthread_mutex_lock(&o->mutex);
    o->filling = false;
    if (!o->has_path) {
        o->store = k->store;
        o->n = k->n;
        o->whole = true;
    }
    pthread_mutex_unlock(&o->mutex);
    sn_advance_end(c->stage->engine, &k->pass);
    k->store = NULL;
    k->mode = CACHE_PASSES;
    k->ended = true;
    return SNUG_OK;
}

static snug_status keep(sn_cursor *c, caching *k, const snug_element *e, snug_error *err) {
    const cache_stage *o = c->stage->ctx;
    if (o->has_path) {
        SNUG_TRY(write_record(c, k, e, err));
    } else {
        snug_element copy = *e;
        for (int i = 0; i < copy.n; i++)
            snug_datum_hold(&copy.part[i]);
        const snug_status status = sn_store_put(k->store, (size_t)k->n, &copy, err);
        snug_element_drop(&copy);
        SNUG_TRY(status);
    }
    k->n++;
    sn_advance_step(c->stage->engine, &k->pass, SNUG_PASS_CACHE, k->n, c->stage->cardinality);
    return SNUG_OK;
}

static snug_status next_new(sn_cursor *c, caching *k, snug_element *out, snug_error *err) {
    snug_status status = sn_cursor_next(c->before[0], out, err);
    if (k->mode == CACHE_PASSES)
        return status;
    if (status == SNUG_E_END) {
        SNUG_TRY(finish(c, k, err));
        return sn_end(err);
    }
    SNUG_TRY(status);
    status = keep(c, k, out, err);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

static snug_status next_kept(sn_cursor *c, caching *k, snug_element *out, snug_error *err) {
    cache_stage *o = c->stage->ctx;
    if (k->n >= k->n_all)
        return sn_end(err);
    snug_status status;
    if (o->has_path) {
        status = read_record(c, k, out, err);
    } else {
        pthread_mutex_lock(&o->mutex); /* a spilled one goes through the store's own buffer */
        status = sn_store_copy(o->store, (size_t)k->n, out, err);
        pthread_mutex_unlock(&o->mutex);
    }
    k->n += status == SNUG_OK;
    return status;
}

static snug_status next_cached(sn_cursor *c, snug_element *out, snug_error *err) {
    caching *k = c->ctx;
    if (k->ended)
        return sn_end(err);
    SNUG_TRY(find_mode(c, k, err));
    return k->mode == CACHE_READS ? next_kept(c, k, out, err) : next_new(c, k, out, err);
}

static snug_status seek_cached(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    const cache_stage *o = c->stage->ctx;
    caching *k = c->ctx;
    snug_status status = SNUG_OK;
    *done = 0;
    SNUG_TRY(find_mode(c, k, err));
    while (*done < n && status == SNUG_OK) {
        snug_element e = {0};
        if (k->mode == CACHE_READS && k->n < k->n_all) {
            uint64_t bytes = 0;
            if (o->has_path)
                SNUG_TRY(record_length(k, &bytes, err));
            k->offset += (int64_t)bytes;
            k->n++;
        } else {
            status = next_cached(c, &e, err);
        }
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    return status == SNUG_E_END ? SNUG_OK : status;
}

/* --- life ------------------------------------------------------------------------------------- */
static snug_status open_cache(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(caching), err);
}

static void close_cache(sn_cursor *c) {
    cache_stage *o = c->stage->ctx;
    caching *k = c->ctx;
    snug_engine *e = c->stage->engine;
    if (k->mode == CACHE_FILLS) {
        pthread_mutex_lock(&o->mutex);
        o->filling = false;
        pthread_mutex_unlock(&o->mutex);
    }
    sn_advance_end(e, &k->pass);
    sn_store_destroy(k->store);
    sn_file_close(&k->file);
    if (k->window)
        sn_station_hold(c->place, -WINDOW_BYTES);
    sn_free(e, SN_MEM_INPUT, k->window, WINDOW_BYTES);
    sn_free(e, SN_MEM_INPUT, k->record, k->record_cap);
}

static void release_cache(snug_dataset *d) {
    cache_stage *o = d->ctx;
    sn_store_destroy(o->store);
    if (o->made)
        pthread_mutex_destroy(&o->mutex);
}

static const sn_stage_class cache_class = {.name = "cache",
                                           .open = open_cache,
                                           .next = next_cached,
                                           .close = close_cache,
                                           .seek = seek_cached,
                                           .release = release_cache,
                                           .opens_before = true};

snug_status snug_dataset_cache(snug_dataset *d, const char *path, snug_dataset **out,
                               snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    if (path && (!path[0] || strlen(path) >= sizeof((cache_stage *)0)->path)) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID, "a cache file's name has 1 to %zu letters, not %zu",
                       sizeof((cache_stage *)0)->path - 1, strlen(path));
    }
    SNUG_TRY(sn_stage_after(&cache_class, d, sizeof(cache_stage), &made, err));
    made->hoards = made->grows = !path;
    cache_stage *o = made->ctx;
    o->made = pthread_mutex_init(&o->mutex, NULL) == 0;
    if (!o->made) {
        snug_dataset_drop(made);
        return sn_fail(err, SNUG_E_MEMORY, "the system has no mutex for a cache; free memory");
    }
    o->has_path = path != NULL;
    if (path)
        snprintf(o->path, sizeof o->path, "%s", path);
    *out = made;
    return SNUG_OK;
}
