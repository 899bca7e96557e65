/* passes.h: what the passes of the planner hand to each other. build.c calls them in order; each
 * file is one pass.
 *
 *     sn_planner   facts that no order changes: sizes, variants, readers, what shares bytes
 *     sn_layout    one order and what follows: steps to be, buffers, lifetimes, the bound */
#ifndef SN_PLAN_PASSES_H
#define SN_PLAN_PASSES_H

#include "plan/plan.h"

#define SN_NO_BUFFER UINT32_MAX

typedef struct {
    snug_engine *engine;
    const sn_graph *graph;
    const sn_device *device;
    sn_zone *work; /* dies with the planner */
    sn_plan *plan; /* being made */
    uint32_t n_nodes, n_values;
    sn_variant *variant;    /* per node */
    bool *needed;           /* per node: an output or an effect needs it */
    size_t *bytes;          /* per value, unpadded; in the plan's zone */
    size_t *padded;         /* per value, aligned */
    uint32_t *root;         /* per value: the value whose bytes it is, through ALIAS rows */
    bool *is_output;        /* per root: some graph output is these bytes */
    uint32_t *reader_start; /* needed nodes that read value v, each once: readers[reader_start[v] ..
                               [v + 1]) */
    uint32_t *readers;
    uint32_t *updater; /* per value: the STATE node that overwrites this version, or UINT32_MAX */
    bool *kept;        /* per value: an old version that is copied away before its update */
} sn_planner;

/* A step to be: RUN node id, FEED input id, COPY value id (an old version into the arena). */
typedef struct {
    sn_step_kind kind;
    uint32_t id;
} sn_action;

typedef struct {
    uint32_t n_order;
    uint32_t *order; /* nodes */
    uint32_t n_actions;
    sn_action *actions;
    uint32_t *at;        /* per node: its action */
    uint32_t *copied_at; /* per value: the action that copies it away, or UINT32_MAX */
    uint32_t *buffer;    /* per value: index into items, or SN_NO_BUFFER */
    uint32_t *workspace; /* per action: index into items, or SN_NO_BUFFER */
    uint32_t n_items;
    sn_pack_item *items; /* buffers and workspaces with their lifetimes in actions */
    size_t bound;        /* largest sum of live bytes */
    uint32_t peak;       /* the action where it is reached first */
} sn_layout;

/* How the next node is chosen among those that could run. */
typedef enum {
    SN_ORDER_PROGRAM,  /* as written */
    SN_ORDER_EAGER,    /* as written, but updates as soon as they can run */
    SN_ORDER_GREEDY,   /* updates first, then what frees most and takes least */
    SN_ORDER_BACKWARD, /* from the end: what makes most and reads least first */
    SN_N_ORDERS
} sn_order_kind;

SNUG_CHECKED snug_status sn_plan_describe(sn_planner *p, snug_error *err);
SNUG_CHECKED snug_status sn_plan_readers(sn_planner *p, snug_error *err);
SNUG_CHECKED snug_status sn_plan_order(sn_planner *p, sn_order_kind kind, sn_layout *l,
                                       snug_error *err);
SNUG_CHECKED snug_status sn_plan_actions(sn_planner *p, sn_layout *l, snug_error *err);
SNUG_CHECKED snug_status sn_plan_inplace(sn_planner *p, sn_layout *l, snug_error *err);
SNUG_CHECKED snug_status sn_plan_liveness(sn_planner *p, sn_layout *l, snug_error *err);
SNUG_CHECKED snug_status sn_plan_emit(sn_planner *p, sn_layout *l, snug_error *err);
/* Fills at_peak; also for parsed plans. */
SNUG_CHECKED snug_status sn_plan_summarise(sn_plan *p, snug_error *err);

/* An array of n zeroed elements from a zone. */
SNUG_CHECKED snug_status sn_plan_array(sn_zone *z, size_t n, size_t elem_bytes, void *out,
                                       snug_error *err);

static inline bool sn_plan_in_state(const sn_planner *p, uint32_t value) {
    return sn_graph_value_at(p->graph, (sn_value){value})->var >= 0;
}

#endif
