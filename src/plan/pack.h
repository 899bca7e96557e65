/* pack.h: what the parts of the packer share (pack.c: preparation and greedy; search.c and
 * search_valleys.c: two complete searches, which search.c runs in turns; join.c: smaller
 * problems). */
#ifndef SN_PLAN_PACK_H
#define SN_PLAN_PACK_H

#include "plan/plan.h"

/* An item with its lifetime in sections: maximal spans of time with the same live set. */
typedef struct {
    uint32_t lo, hi; /* sections [lo, hi) */
    uint32_t item;   /* index in the caller's array */
    size_t size;     /* > 0 */
} sn_box;

typedef struct {
    uint32_t n, n_sections;
    sn_box *boxes;  /* by lo, larger first, then by item */
    size_t *load;   /* per section: sum of live sizes */
    size_t *most;   /* a tree over the loads, its leaves: the larger of 2i and 2i + 1 is at i */
    size_t bound;   /* largest load */
    size_t wanted;  /* the height to stop at: the bound, or more */
    size_t *offset; /* per box: the best packing so far */
    size_t height;  /* its height */
} sn_packing;

/* Improves p->offset and p->height where it can. Takes what it does from *work, which counts
 * elementary operations, and stops when that is used up. */
SNUG_CHECKED snug_status sn_pack_search(snug_engine *e, sn_packing *p, uint64_t *work,
                                        snug_error *err);

/* Sorts the boxes; finds loads and bound. The height is none yet, wanted the bound. */
void sn_packing_measure(sn_packing *p);
/* Room for n boxes in that many sections. */
SNUG_CHECKED snug_status sn_packing_alloc(sn_zone *z, uint32_t n, uint32_t n_sections,
                                          sn_packing *p, snug_error *err);

/* Smaller problems whose packings are packings of p (join.c). *out is NULL where there are too many
 * boxes. */
typedef struct sn_joiner sn_joiner;
SNUG_CHECKED snug_status sn_joiner_create(sn_zone *z, const sn_packing *p, sn_joiner **out,
                                          snug_error *err);
uint32_t sn_joiner_most(const sn_joiner *j); /* pieces */
/* The problem of this variant, for packings of at most `capacity` (>= p's bound). q has room for
 * that many pieces and the sections of p. After about `limit` operations it is what was joined by
 * then. Returns the work it took. */
uint64_t sn_join(sn_joiner *j, size_t capacity, uint64_t variant, uint64_t limit, sn_packing *q);
/* The offsets of p's boxes from those of q's; `pieces` has room for the pieces. */
void sn_join_expand(const sn_joiner *j, const sn_packing *q, const size_t *offset, size_t *pieces,
                    size_t *out);

typedef enum { SN_FOUND, SN_NOT_FOUND, SN_GAVE_UP } sn_outcome;

/* The second search. *out is NULL where there are too many boxes for it. */
typedef struct sn_valleys sn_valleys;
SNUG_CHECKED snug_status sn_valleys_create(snug_engine *e, sn_zone *z, const sn_packing *p,
                                           sn_valleys **out, snug_error *err);
void sn_valleys_clear(sn_valleys *v); /* what is not of the zone; NULL is legal */
/* One attempt of at most about `limit` operations; adds those it took to *work. Each attempt goes
 * another way and learns from those before. SN_NOT_FOUND is a proof that there is no packing. */
sn_outcome sn_valleys_try(sn_valleys *v, size_t capacity, uint64_t limit, uint64_t *work);
size_t sn_valleys_offset(const sn_valleys *v, uint32_t box); /* of the packing found */
snug_status sn_valleys_status(const sn_valleys *v);          /* anything but SNUG_OK ends it */

/* pack_sweep.c: offsets and height of measured boxes, in bounded work for each. */
SNUG_CHECKED snug_status sn_pack_sweep(sn_zone *z, sn_packing *p, snug_error *err);

#endif
