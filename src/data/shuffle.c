/* shuffle.c: elements in random order, drawn from a buffer of the next ones.
 *
 *     fill the buffer
 *     draw a slot and give what is in it; what is in the last slot takes its place; fill; and on
 *
 * One algorithm for three ways to keep elements: by index where the stage before has random access
 * (8 bytes each), in memory, and in a file beyond the pipelines' limit.
 *
 * Invariants:
 * 1. The order is a function of seed, iteration, buffer and the number of elements; how they are
 *    kept changes nothing.
 * 2. Draw k is number k of a counter-based generator. */
#include "data/stage.h"

#include "base/rng.h"
#include "base/size.h"
#include "codec/advance.h"
#include "data/element_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    int64_t buffer;
    uint64_t seed;
    bool keep_order;
    bool has_folder;
    char folder[1024];
} shuffle_stage;

typedef struct {
    uint64_t key, draws;
    sn_philox_block numbers; /* of draws 2k and 2k + 1 */
    size_t n;                /* in the buffer */
    bool started, ended;     /* of the stage before */
    int64_t next;            /* by index: of the stage before */
    int64_t *index;
    size_t index_cap;
    sn_store *store;
    bool full; /* was: filling the buffer for the first time is a pass of its own */
    sn_advance pass;
} shuffling;

static bool by_index(const sn_cursor *c) {
    return c->stage->before[0]->random;
}

static snug_status open_shuffle(sn_cursor *c, snug_error *err) {
    const shuffle_stage *o = c->stage->ctx;
    SNUG_TRY(sn_cursor_ctx(c, sizeof(shuffling), err));
    shuffling *s = c->ctx;
    s->key = sn_rng_key(o->seed, o->keep_order ? 0 : c->key);
    if (by_index(c))
        return SNUG_OK;
    snug_engine *e = c->stage->engine;
    const char *folder = o->has_folder ? o->folder : sn_engine_spill_folder(e);
    const int64_t all = c->stage->cardinality;
    const sn_store_plan plan = {"the shuffle", folder, c->place,
                                all >= 0 && all < o->buffer ? all : o->buffer};
    return sn_store_create(e, &plan, &s->store, err);
}

static void close_shuffle(sn_cursor *c) {
    shuffling *s = c->ctx;
    sn_advance_end(c->stage->engine, &s->pass);
    sn_store_destroy(s->store);
    sn_station_hold(c->place, -(int64_t)(s->index_cap * sizeof *s->index));
    sn_free(c->stage->engine, SN_MEM_INPUT, s->index, s->index_cap * sizeof *s->index);
}

/* Uniform in [0, n). */
static size_t draw(shuffling *s, size_t n) {
    const unsigned half = (unsigned)(s->draws & 1) * 2;
    if (half == 0)
        s->numbers = sn_philox(s->key, 0, s->draws / 2);
    s->draws++;
    const uint64_t bits = (uint64_t)s->numbers.v[half + 1] << 32 | s->numbers.v[half];
    return (size_t)((unsigned __int128)bits * n >> 64);
}

/* --- by index --------------------------------------------------------------------------------- */
static snug_status start_indices(sn_cursor *c, snug_error *err) {
    const shuffle_stage *o = c->stage->ctx;
    shuffling *s = c->ctx;
    const int64_t all = c->stage->before[0]->cardinality;
    const int64_t n = o->buffer < all ? o->buffer : all;
    void *block;
    if (s->started)
        return SNUG_OK;
    size_t bytes;
    if (!sn_size_mul((size_t)n, sizeof *s->index, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "a shuffle of %" PRId64 " elements cannot be", n);
    SNUG_TRY(sn_alloc(c->stage->engine, SN_MEM_INPUT, bytes, &block, err));
    s->index = block;
    s->index_cap = s->n = (size_t)n;
    for (int64_t i = 0; i < n; i++)
        s->index[i] = i;
    s->next = n;
    s->started = true;
    sn_station_hold(c->place, (int64_t)bytes);
    return SNUG_OK;
}

static int64_t draw_index(shuffling *s, int64_t all) {
    const size_t j = draw(s, s->n);
    const int64_t index = s->index[j];
    s->index[j] = s->index[--s->n];
    if (s->next < all)
        s->index[s->n++] = s->next++;
    return index;
}

static snug_status next_index(sn_cursor *c, snug_element *out, snug_error *err) {
    const snug_dataset *before = c->stage->before[0];
    shuffling *s = c->ctx;
    SNUG_TRY(start_indices(c, err));
    if (s->n == 0)
        return sn_end(err);
    return before->kind->at(before, draw_index(s, before->cardinality), out, err);
}

enum { RUN = 256 };

static snug_status fill_indices(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                                int64_t *done, snug_error *err) {
    const snug_dataset *before = c->stage->before[0];
    shuffling *s = c->ctx;
    int64_t index[RUN];
    SNUG_TRY(start_indices(c, err));
    *done = 0;
    while (*done < n && s->n > 0) {
        int64_t k = 0;
        while (k < RUN && *done + k < n && s->n > 0)
            index[k++] = draw_index(s, before->cardinality);
        SNUG_TRY(sn_stage_gather(before, index, k, to, first + *done, err));
        *done += k;
    }
    return SNUG_OK;
}

static snug_status seek_indices(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    shuffling *s = c->ctx;
    SNUG_TRY(start_indices(c, err));
    for (*done = 0; *done < n && s->n > 0; ++*done)
        draw_index(s, c->stage->before[0]->cardinality);
    return SNUG_OK;
}

static snug_status draw_shuffled(sn_cursor *c, int64_t *index, int64_t n, int64_t *done,
                                 snug_error *err) {
    shuffling *s = c->ctx;
    SNUG_TRY(start_indices(c, err));
    for (*done = 0; *done < n && s->n > 0; ++*done)
        index[*done] = draw_index(s, c->stage->before[0]->cardinality);
    return SNUG_OK;
}

/* --- by element ------------------------------------------------------------------------------- */
/* The next element of the stage before into a slot; *got false at its end. */
static snug_status put_next(sn_cursor *c, size_t slot, bool *got, snug_error *err) {
    shuffling *s = c->ctx;
    snug_element e;
    *got = false;
    if (s->ended)
        return SNUG_OK;
    snug_status status = sn_cursor_next(c->before[0], &e, err);
    s->ended = status == SNUG_E_END;
    if (s->ended)
        return SNUG_OK;
    if (status == SNUG_OK)
        status = sn_store_put(s->store, slot, &e, err);
    snug_element_drop(&e);
    *got = status == SNUG_OK;
    return status;
}

/* A failure of the stage before comes when the element would have been put into the buffer: filling
 * goes on behind it the next time. */
static snug_status fill_buffer(sn_cursor *c, snug_error *err) {
    const shuffle_stage *o = c->stage->ctx;
    shuffling *s = c->ctx;
    bool got = true;
    while (got && (int64_t)s->n < o->buffer) {
        SNUG_TRY(put_next(c, s->n, &got, err));
        s->n += got;
        if (!s->full)
            sn_advance_step(c->stage->engine, &s->pass, SNUG_PASS_SHUFFLE, (int64_t)s->n,
                            o->buffer);
        if (got && sn_iterator_interrupted(c->iterator))
            return sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller");
    }
    if (!s->full)
        sn_advance_end(c->stage->engine, &s->pass);
    s->full = true;
    return SNUG_OK;
}

static snug_status next_element(sn_cursor *c, snug_element *out, snug_error *err) {
    shuffling *s = c->ctx;
    SNUG_TRY(fill_buffer(c, err));
    if (s->n == 0)
        return sn_end(err);
    const size_t j = draw(s, s->n);
    SNUG_TRY(sn_store_take(s->store, j, out, err));
    sn_store_move(s->store, s->n - 1, j);
    s->n--;
    return SNUG_OK;
}

static snug_status next_shuffled(sn_cursor *c, snug_element *out, snug_error *err) {
    return by_index(c) ? next_index(c, out, err) : next_element(c, out, err);
}

static snug_status fill_shuffled(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                                 int64_t *done, snug_error *err) {
    if (by_index(c))
        return fill_indices(c, to, first, n, done, err);
    snug_status status = SNUG_OK;
    *done = 0;
    while (*done < n && status == SNUG_OK) {
        snug_element e = {0};
        status = next_element(c, &e, err);
        if (status == SNUG_OK)
            status = sn_target_put_all(to, first + *done, &e, err);
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    return status == SNUG_E_END ? SNUG_OK : status;
}

static snug_status seek_shuffled(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    if (by_index(c))
        return seek_indices(c, n, done, err);
    snug_status status = SNUG_OK;
    *done = 0;
    while (*done < n && status == SNUG_OK) {
        snug_element e = {0};
        status = next_element(c, &e, err);
        *done += status == SNUG_OK;
        snug_element_drop(&e);
    }
    return status == SNUG_E_END ? SNUG_OK : status;
}

static const sn_stage_class shuffle_class = {.name = "shuffle",
                                             .open = open_shuffle,
                                             .next = next_shuffled,
                                             .close = close_shuffle,
                                             .seek = seek_shuffled,
                                             .fill = fill_shuffled,
                                             .draw = draw_shuffled,
                                             .reorders = true};

snug_status snug_dataset_shuffle(snug_dataset *d, const snug_shuffle *o, snug_dataset **out,
                                 snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    snug_status status = SNUG_OK;
    if (!o || o->buffer < 1)
        status = sn_fail(err, SNUG_E_INVALID, "a shuffle buffer of %" PRId64 "; give at least 1",
                         o ? o->buffer : 0);
    else if (o->spill_folder && strlen(o->spill_folder) >= sizeof((shuffle_stage *)0)->folder)
        status = sn_fail(err, SNUG_E_INVALID, "the spill folder's name is too long");
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    SNUG_TRY(sn_stage_after(&shuffle_class, d, sizeof(shuffle_stage), &made, err));
    made->hoards = !d->random;
    shuffle_stage *s = made->ctx;
    s->buffer = o->buffer;
    s->seed = o->seed;
    s->keep_order = o->keep_order != 0;
    s->has_folder = o->spill_folder != NULL;
    if (o->spill_folder)
        snprintf(s->folder, sizeof s->folder, "%s", o->spill_folder);
    *out = made;
    return SNUG_OK;
}
