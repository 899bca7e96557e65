/* replay.h: making a new graph from an old one, node by node; for template.c and fuse.c.
 *
 *     sn_replay r;
 *     SNUG_TRY(sn_replay_init(&r, old, NULL, err));    // owners, inputs, variables, named slots
 *     status = sn_replay_node(&r, node, err);          // in an order that makes before it reads
 *     status = sn_replay_take(&r, &graph, err);        // names the outputs
 *     sn_replay_clear(&r);                             // always */
#ifndef SN_GRAPH_REPLAY_H
#define SN_GRAPH_REPLAY_H

#include "graph/store.h"

typedef struct {
    const sn_graph *from;
    sn_graph *to;
    sn_value *value; /* by old id; SN_NO_VALUE: not made (yet) */
    uint32_t *param; /* by old slot; UINT32_MAX: not made (yet) */
} sn_replay;

/* input_types: one per input, or NULL for those there are. */
SNUG_CHECKED snug_status sn_replay_init(sn_replay *r, const sn_graph *from,
                                        const snug_type *input_types, snug_error *err);
/* `node` speaks of old ids: a node of the old graph, or one a rewrite made up. Its out[k] then
 * stand for the new outputs. */
SNUG_CHECKED snug_status sn_replay_node(sn_replay *r, const sn_node_info *node, snug_error *err);
/* Names the outputs and moves the graph to the caller. */
SNUG_CHECKED snug_status sn_replay_take(sn_replay *r, sn_graph **out, snug_error *err);
void sn_replay_clear(sn_replay *r); /* legal after a failed init */

#endif
