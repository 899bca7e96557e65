/* store.h: how a graph is stored; for the files of this room only. Everybody else uses the readers
 * of graph.h. */
#ifndef SN_GRAPH_STORE_H
#define SN_GRAPH_STORE_H

#include "graph/graph.h"
#include "memory/names.h"

#define SN_MAX_NAME 255 /* characters; the text form and the builder agree on it */

typedef struct {
    const char *name; /* in the zone */
    sn_value value;
} sn_named;

/* Arrays grow by doubling; n_ counts are the truth, cap_ what is allocated. Names, `in` and `out`
 * lists lie in the zone. */
struct snug_graph {
    snug_engine *engine;
    sn_zone *zone;
    sn_node_info *nodes;
    sn_value_info *values;
    sn_variable *vars;
    sn_param_info *params;
    sn_named *inputs, *outputs;
    const char **owners;
    sn_names var_names, param_names, owner_names;
    size_t n_nodes, n_values, n_vars, n_params, n_inputs, n_outputs, n_owners;
    size_t cap_nodes, cap_values, cap_vars, cap_params, cap_inputs, cap_outputs, cap_owners;
    bool outside;   /* inputs and outputs lie in the caller's memory */
    uint32_t owner; /* of nodes appended from now on */
    sn_part part;
    const sn_param_source *source; /* of parameters with names, or NULL */
};

/* Owner by index, for rewrites that copy nodes of a graph with the same owners. */
void sn_graph_set_owner_at(sn_graph *g, uint32_t owner);

#endif
