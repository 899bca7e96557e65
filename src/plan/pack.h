/* pack.h: what the two halves of the packer share (pack.c: preparation and greedy; search.c:
 * complete search). */
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
    size_t bound;   /* largest load */
    size_t wanted;  /* the height to stop at: the bound, or more */
    size_t *offset; /* per box: the best packing so far */
    size_t height;  /* its height */
} sn_packing;

/* Improves p->offset and p->height where it can. Takes what it does from *work, which counts
 * elementary operations, and stops when that is used up. */
SNUG_CHECKED snug_status sn_pack_search(snug_engine *e, sn_packing *p, uint64_t *work,
                                        snug_error *err);

#endif
