/* fuse.h: what fusion patterns (fuse_patterns.c) see of the rewrite in fuse.c. */
#ifndef SN_GRAPH_FUSE_H
#define SN_GRAPH_FUSE_H

#include "graph/store.h"

/* From so many weights on a layer's gradient is worth not having, or not in f32. */
#define SN_WIDE_WEIGHTS (INT64_C(1) << 20)

/* What is emitted in the place of an old node. node.in and node.out point to in and out, which a
 * pattern may change. */
typedef struct {
    bool gone;   /* dead, or absorbed by another record */
    bool rounds; /* what it gives is wide; casts behind it make the halves that others read */
    sn_node_info node;
    sn_value in[SN_MAX_IN];
    sn_value out[SN_MAX_OUT];
} sn_record;

typedef struct {
    /* Its readers are places[first, first + n), ascending, as they were before any pattern. */
    uint32_t first, n;
    bool is_kept;     /* an output, or read in a way the list does not know: may not be absorbed */
    bool is_unlisted; /* the latter */
} sn_readers;

typedef struct {
    const sn_graph *g;
    sn_fuse_options options;
    sn_zone *zone; /* everything below; gone after the rewrite */
    uint32_t n_nodes;
    sn_record *records;
    /* By value: the place of the record that makes it, UINT32_MAX for inputs and variables. */
    uint32_t *maker;
    sn_readers *readers; /* by value */
    uint32_t *places;
} sn_fuser;

/* Tries to match with its last (or, for pools, first) node in place n; changes nothing when it
 * answers false. */
typedef bool (*sn_fuse_pattern)(sn_fuser *f, uint32_t n);

/* The record that makes v, or NULL. */
static inline sn_record *sn_fuse_maker(const sn_fuser *f, sn_value v) {
    return f->maker[v.i] == UINT32_MAX ? NULL : &f->records[f->maker[v.i]];
}

/* Its readers are others now than the list says, or more. */
static inline void sn_fuse_unlist(const sn_fuser *f, sn_value v) {
    f->readers[v.i].is_kept = f->readers[v.i].is_unlisted = true;
}

/* One record reads v, once, and nobody else sees it. */
static inline bool sn_fuse_read_once(const sn_fuser *f, sn_value v) {
    return f->readers[v.i].n == 1 && !f->readers[v.i].is_kept;
}

/* The record that makes v when it is of this operator and v is read once; else NULL. */
static inline sn_record *sn_fuse_only_for(const sn_fuser *f, sn_value v, sn_op op) {
    sn_record *r = sn_fuse_maker(f, v);
    return r && r->node.op == op && sn_fuse_read_once(f, v) ? r : NULL;
}

/* Whether the record sums d over all axes but the last. */
bool sn_fuse_is_channel_sum(const sn_fuser *f, const sn_record *r, sn_value d);

bool sn_fuse_cross_entropy(sn_fuser *f, uint32_t n); /* fuse_xent.c */
bool sn_fuse_pool_relu(sn_fuser *f, uint32_t n);     /* fuse_pool.c */
bool sn_fuse_conv_pool(sn_fuser *f, uint32_t n);
bool sn_fuse_wide(sn_fuser *f, uint32_t n); /* fuse_casts.c */
/* The cast to f32 that alone reads a bf16 value; NULL: there is none. */
sn_record *sn_fuse_only_widened(sn_fuser *f, sn_value v);
/* All records at once, after the patterns. */
void sn_fuse_operands(sn_fuser *f);
void sn_fuse_round_sums(sn_fuser *f);
/* Of a node, whether the latter may round what it gives. */
bool sn_fuse_sums_halves(const sn_graph *g, const sn_node_info *n);

extern const sn_fuse_pattern sn_fuse_patterns[]; /* in order of preference; ends with NULL */

#endif
