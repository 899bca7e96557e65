/* ladder.h: members of a family in the order of their seconds. They are made down a ladder of sizes
 * that does not depend on the number of bytes asked for, as far as one may be the fastest of its
 * size (ladder.c); choose.c takes one. */
#ifndef SN_PLAN_LADDER_H
#define SN_PLAN_LADDER_H

#include "plan/family.h"

#define SN_STEPS_PER_OCTAVE 6

/* Members, the fastest first; the larger one first among equals. */
typedef struct {
    sn_member of;
    double seconds;
    size_t bound;
    bool misses; /* the limit, when packed */
} sn_ranked;
typedef struct {
    uint32_t n;
    size_t least;         /* of all bounds */
    double least_seconds; /* of members to come */
    sn_ranked at[SN_MAX_MEMBERS];
} sn_ranking;

/* Every row alone; of a batch of more rows as many slices as a plan may have. */
static inline int64_t sn_most_slices(int64_t extent) {
    return extent < SN_MAX_SLICES ? extent : SN_MAX_SLICES;
}

/* Where it is possible; it counts as no faster than r->least_seconds. */
void sn_rank(const sn_family *f, sn_ranking *r, const sn_candidate *o);

/* The way down, as far as it was gone; lies in the planner's zone. */
typedef struct sn_ladder sn_ladder;
/* Above the first step: what needs no recomputation. */
SNUG_CHECKED snug_status sn_ladder_open(sn_family *f, sn_ranking *r, sn_ladder **out,
                                        snug_error *err);
/* One step down; *ends: there is none. */
SNUG_CHECKED snug_status sn_ladder_down(sn_family *f, sn_ranking *r, sn_ladder *l, bool *ends,
                                        snug_error *err);
/* The smallest members, behind the last step. */
SNUG_CHECKED snug_status sn_ladder_bottom(sn_ladder *l, sn_ranking *r, snug_error *err);
/* The whole family. */
SNUG_CHECKED snug_status sn_ladder_all(sn_family *f, sn_ranking *r, snug_error *err);

#endif
