/* spans.h: a map over the bytes of a memory: consecutive spans without gaps, each with a record of
 * the caller's.
 *
 *     sn_spans s = {.engine = e, .record_bytes = sizeof(record)};
 *     sn_spans_append(&s, 4096, &nothing, err);         // [0, 4096)
 *     sn_spans_cut(&s, 64, 128, &first, &stop, err);    // first .. stop-1 are exactly [64, 128)
 *     sn_spans_merge(&s, first, stop);                  // now one, with the record of the first
 *
 * Cutting copies the record to both halves. O(log n) to find; the list of n spans moves 4 bytes a
 * span. */
#ifndef SN_MEMORY_SPANS_H
#define SN_MEMORY_SPANS_H

#include "memory/engine.h"

typedef struct {
    snug_engine *engine;
    size_t record_bytes; /* a multiple of 8 */
    size_t n;            /* spans */
    uint32_t *order;     /* n entries of the pool, by start */
    unsigned char *pool; /* entries: start, end, record */
    size_t cap_order, n_pool, cap_pool;
} sn_spans;

typedef struct {
    size_t start, end;
} sn_span;

/* A span from the present end to `end`; nothing happens when that is no byte. */
SNUG_CHECKED snug_status sn_spans_append(sn_spans *s, size_t end, const void *record,
                                         snug_error *err);
/* Makes start and end (inside the map, start < end) borders; *first and *stop are the spans between
 * them. */
SNUG_CHECKED snug_status sn_spans_cut(sn_spans *s, size_t start, size_t end, size_t *first,
                                      size_t *stop, snug_error *err);
void sn_spans_merge(sn_spans *s, size_t first, size_t stop);
/* Lent until the next cut or append. */
const sn_span *sn_spans_at(const sn_spans *s, size_t i);
void *sn_spans_record(const sn_spans *s, size_t i);
void sn_spans_clear(sn_spans *s); /* legal on zeroed */

#endif
