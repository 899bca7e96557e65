/* log.c: a log of records with segments that are used again (log.h).
 *
 *     file   [ segment | segment | segment | ... ]        of SEGMENT_BYTES each
 *     page   the segment that is being filled, in memory; written when it is full
 *
 * Invariants:
 * 1. live[s] is the sum of record bytes of segment s that were not dropped; 0: it is free, unless
 * it is the page's.
 * 2. A record lies in one segment, or, where it is larger, alone in several neighbours at the end
 * of the file. */
#include "data/log.h"

#include "base/size.h"
#include "memory/spill.h"

#include <string.h>

#define SEGMENT_BYTES ((size_t)1 << 20)
#define GROWTH        ((size_t)32) /* segments the file grows by */

struct sn_log {
    snug_engine *engine;
    sn_spill *file;
    sn_block page;
    bool begun;           /* there is a page */
    size_t segment, used; /* of the page */
    size_t n_segments;    /* that have been used */
    size_t *live;
    size_t live_cap;
    size_t *free;
    size_t n_free, free_cap;
};

snug_status sn_log_create(snug_engine *e, const char *folder, sn_log **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_log), &block, err));
    sn_log *l = block;
    l->engine = e;
    snug_status status =
        sn_block_init(e, SN_MEM_INPUT, "records to spill", SEGMENT_BYTES, NULL, &l->page, err);
    if (status == SNUG_OK)
        status = sn_spill_create(e, folder, GROWTH * SEGMENT_BYTES, &l->file, err);
    if (status == SNUG_OK)
        *out = l;
    else
        sn_log_destroy(l);
    return status;
}

void sn_log_destroy(sn_log *l) {
    if (!l)
        return;
    snug_engine *e = l->engine;
    sn_spill_destroy(l->file);
    sn_block_clear(&l->page);
    sn_free(e, SN_MEM_INPUT, l->live, l->live_cap * sizeof *l->live);
    sn_free(e, SN_MEM_INPUT, l->free, l->free_cap * sizeof *l->free);
    sn_free(e, SN_MEM_INPUT, l, sizeof *l);
}

/* n neighbours at the end of the file. */
static snug_status add_segments(sn_log *l, size_t n, size_t *first, snug_error *err) {
    size_t all, bytes;
    if (!sn_size_add(l->n_segments, n, &all) || !sn_size_mul(all, SEGMENT_BYTES, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "a file for %zu MiB of records cannot be", n);
    SNUG_TRY(sn_grow(l->engine, SN_MEM_INPUT, &l->live, sizeof *l->live, &l->live_cap, all, err));
    /* Room for all of them among the free ones: giving one back cannot fail. */
    SNUG_TRY(sn_grow(l->engine, SN_MEM_INPUT, &l->free, sizeof *l->free, &l->free_cap, all, err));
    if (bytes > sn_spill_bytes(l->file)) {
        const size_t more = n > GROWTH ? n : GROWTH;
        SNUG_TRY(sn_spill_grow(l->file, (l->n_segments + more) * SEGMENT_BYTES, err));
    }
    *first = l->n_segments;
    memset(l->live + l->n_segments, 0, n * sizeof *l->live);
    l->n_segments = all;
    return SNUG_OK;
}

/* Writes the page and begins another. */
static snug_status turn_page(sn_log *l, snug_error *err) {
    size_t next;
    if (l->begun && l->live[l->segment] == 0) {
        l->used = 0; /* all of it is gone already */
        return SNUG_OK;
    }
    if (l->begun)
        SNUG_TRY(
            sn_spill_write(l->file, l->page.data, SEGMENT_BYTES, l->segment * SEGMENT_BYTES, err));
    if (l->n_free > 0)
        next = l->free[--l->n_free];
    else
        SNUG_TRY(add_segments(l, 1, &next, err));
    l->segment = next;
    l->begun = true;
    l->used = 0;
    return SNUG_OK;
}

static snug_status add_large(sn_log *l, const void *bytes, size_t n, uint64_t *where,
                             snug_error *err) {
    size_t first;
    SNUG_TRY(add_segments(l, (n - 1) / SEGMENT_BYTES + 1, &first, err));
    SNUG_TRY(sn_spill_write(l->file, bytes, n, first * SEGMENT_BYTES, err));
    l->live[first] = n;
    *where = first * SEGMENT_BYTES;
    return SNUG_OK;
}

snug_status sn_log_add(sn_log *l, const void *bytes, size_t n, uint64_t *where, snug_error *err) {
    if (n > SEGMENT_BYTES)
        return add_large(l, bytes, n, where, err);
    if (!l->begun || n > SEGMENT_BYTES - l->used)
        SNUG_TRY(turn_page(l, err));
    memcpy((char *)l->page.data + l->used, bytes, n);
    *where = l->segment * SEGMENT_BYTES + l->used;
    l->used += n;
    l->live[l->segment] += n;
    return SNUG_OK;
}

static bool is_on_page(const sn_log *l, uint64_t where, size_t n) {
    return l->begun && n <= SEGMENT_BYTES && where / SEGMENT_BYTES == l->segment;
}

snug_status sn_log_read(sn_log *l, uint64_t where, size_t n, void *bytes, snug_error *err) {
    if (!is_on_page(l, where, n))
        return sn_spill_read(l->file, bytes, n, where, err);
    memcpy(bytes, (const char *)l->page.data + where % SEGMENT_BYTES, n);
    return SNUG_OK;
}

void sn_log_drop(sn_log *l, uint64_t where, size_t n) {
    const size_t first = where / SEGMENT_BYTES;
    const size_t count = n > SEGMENT_BYTES ? (n - 1) / SEGMENT_BYTES + 1 : 1;
    l->live[first] -= n;
    if (l->live[first] > 0 || is_on_page(l, where, n))
        return;
    for (size_t i = 0; i < count; i++)
        l->free[l->n_free++] = first + i;
}
