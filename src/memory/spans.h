/* spans.h: a map over the bytes of a memory while a loop runs: consecutive spans without gaps, each
 * with a record of the caller's. Borders and what a span holds are numbers that change by the same
 * in each iteration; a map is of a run of iterations at once.
 *
 *     sn_spans s = {.engine = e, .n_content = 1, .record_bytes = sizeof(record)};
 *     sn_spans_append(&s, 4096, &nothing, err);           // [0, 4096)
 *     sn_spans_cut(&s, start, end, &first, &stop, err);   // first .. stop-1: exactly these
 *     sn_spans_merge(&s, first, stop);                    // one, with the record of the first
 *
 * A number that changes by the same in each iteration is known from two of them: the first and the
 * last of the run. What is before, behind or equal to another one in both is so in all between. A
 * border that is before another one in the first and behind it in the last cannot be put into the
 * map: `crossed` says so.
 *
 * The map before a run is guessed: as one iteration moved everything on, so will the others. That
 * is right where the run leaves the guessed map of its next iteration, at both ends:
 *
 *     sn_spans_keep(&s, err);                             // then one iteration, then
 *     if (sn_spans_may_move(&s, n)) sn_spans_move(&s, n); // then the run of n iterations, then
 *     if (sn_spans_is_kept(&s)) sn_spans_land(&s);        // all as after the last iteration
 *
 * O(log n) to find; the list of n spans moves 4 bytes a span. */
#ifndef SN_MEMORY_SPANS_H
#define SN_MEMORY_SPANS_H

#include "memory/engine.h"

/* A number in the first and in the last iteration of a run; the same where it is one iteration. */
typedef struct {
    int64_t at[2];
} sn_ends;

typedef struct {
    snug_engine *engine;
    size_t record_bytes; /* a multiple of 8 */
    size_t n_content;    /* sn_ends that a record begins with: what the span holds */
    bool crossed;        /* since the map began */
    uint64_t looked_at;  /* spans, since then: the work */
    size_t n;            /* spans */
    int64_t end;
    uint32_t *order;     /* n entries of the pool, by start */
    unsigned char *pool; /* entries: start, record */
    sn_ends *kept;       /* start and content of n_kept spans */
    size_t cap_order, n_pool, cap_pool, n_kept, cap_kept;
    uint32_t n_free, free; /* entries of merged spans: the first, each has the number of the next */
} sn_spans;

static inline bool sn_ends_equal(sn_ends a, sn_ends b) {
    return a.at[0] == b.at[0] && a.at[1] == b.at[1];
}

static inline bool sn_ends_less(sn_ends a, sn_ends b) {
    return a.at[0] < b.at[0] && a.at[1] < b.at[1];
}

/* A span from the present end to `end`; nothing happens when that is no byte. Numbers stay below
 * 2^62. */
SNUG_CHECKED snug_status sn_spans_append(sn_spans *s, int64_t end, const void *record,
                                         snug_error *err);
/* Makes start and end (inside the map, start < end) borders; *first and *stop are the spans between
 * them: none where a border is crossed. Cutting copies the record to both halves. */
SNUG_CHECKED snug_status sn_spans_cut(sn_spans *s, sn_ends start, sn_ends end, size_t *first,
                                      size_t *stop, snug_error *err);
void sn_spans_merge(sn_spans *s, size_t first, size_t stop);
/* Merges all neighbours that hold the same; what records have besides becomes zero. */
void sn_spans_join(sn_spans *s);

/* Keeps borders and contents as they are now. */
SNUG_CHECKED snug_status sn_spans_keep(sn_spans *s, snug_error *err);
/* Whether the map is one that n > 1 iterations more can move as the last one did, without a span
 * that ends. */
bool sn_spans_may_move(const sn_spans *s, int64_t n);
/* From one iteration to the run of the n from there on; what should be after it is kept. */
void sn_spans_move(sn_spans *s, int64_t n);
bool sn_spans_is_kept(const sn_spans *s);
/* From the run to the last iteration of it. */
void sn_spans_land(sn_spans *s);

/* Lent until the next cut or append. */
sn_ends sn_spans_start(const sn_spans *s, size_t i); /* of n: the end */
void *sn_spans_record(const sn_spans *s, size_t i);
void sn_spans_clear(sn_spans *s); /* legal on zeroed */

#endif
