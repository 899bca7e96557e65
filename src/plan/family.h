/* family.h: the programs that a plan is chosen from (choose.c), and how one is made (family.c).
 *
 * A family does not depend on the number of bytes asked for. A member is made in a zone of its own:
 * planning must fit the budget, too. */
#ifndef SN_PLAN_FAMILY_H
#define SN_PLAN_FAMILY_H

#include "plan/passes.h"

enum { SN_MAX_CUTS = 4 };

/* A way to cut the batch: all nodes that can be sliced are, or only those at large values. */
typedef struct {
    sn_split split;
    sn_order order; /* sums live all the time there */
    sn_holder *holder;
    int searches;        /* of what to hold between blocks, for each member */
    uint64_t block_work; /* for each recomputation of a block */
} sn_family_cut;

/* What the members of the family are made from. */
typedef struct sn_family sn_family;
struct sn_family {
    sn_planner *p;
    sn_order order;                  /* of the plain program: its live peak is the smallest */
    sn_family_cut cuts[SN_MAX_CUTS]; /* the first one: of all that can be sliced */
    uint32_t n_cuts;                 /* 0: nothing can */
    size_t unlimited;                /* bound of the plain program */
    sn_member plain;                 /* without slices or a limit: the faster one of both graphs, */
    double seconds;                  /* what it takes: no member counts as faster, */
    size_t plain_bytes;              /* and its bound */
    sn_family *fused;                /* of the graph with fused updates; NULL: there is none */
    bool is_fused;                   /* this is such a one */
    uint64_t work;                   /* for each recomputation of a whole program */
    size_t step_bytes;               /* of each step of a plan, on top of the arena */
    sn_zone *spare;                  /* for the next layout; NULL: none */
};

/* A member made; lies in its own zone, its layout in another: many are made until one fits. */
typedef struct {
    sn_family *family; /* has the layout's zone afterwards; NULL: nobody */
    sn_zone *zone, *layout_zone;
    sn_member of;
    sn_slices slices;
    sn_program program;
    sn_layout layout;
    double seconds;
    bool fits; /* its limit */
} sn_candidate;

sn_family sn_family_of(sn_planner *p, const sn_plan_options *o);
void sn_family_clear(sn_family *f);
/* The order of the plain program, what it needs and takes; of that with fused updates as well. */
SNUG_CHECKED snug_status sn_family_order(sn_family *f, snug_error *err);
/* The cuts; `bytes`: one of all nodes, one of those at values of so many bytes; 0: some. */
SNUG_CHECKED snug_status sn_family_cuts(sn_family *f, size_t bytes, snug_error *err);
/* *floor: what its blocks need at least, where the limit is lower; else 0. */
SNUG_CHECKED snug_status sn_family_make(sn_family *f, sn_member m, sn_candidate **out,
                                        size_t *floor, snug_error *err);
void sn_candidate_drop(sn_candidate *o);
/* Bytes of the steps themselves: a plan of many steps is large. */
size_t sn_candidate_plan_bytes(const sn_family *f, const sn_candidate *o);

#endif
