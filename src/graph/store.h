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

/* Values and parameters, and pointers to nodes, lie on pages, each twice as large as the one
 * before: a recording of many thousands grows without copying what is there. Element i is at its
 * page's place. */
#define SN_FIRST_PAGE 16
#define SN_N_PAGES    28
static inline uint32_t sn_page_of(size_t i) {
    return 27 - (uint32_t)__builtin_clz((uint32_t)i + SN_FIRST_PAGE);
}
static inline size_t sn_place_on(uint32_t page, size_t i) {
    return i + SN_FIRST_PAGE - ((size_t)SN_FIRST_PAGE << page);
}
#define SN_PAGED(pages, i) (&(pages)[sn_page_of(i)][sn_place_on(sn_page_of(i), (i))])

/* Other arrays grow by doubling; n_ counts are the truth, cap_ what is allocated. Names, `in` and
 * `out` lists lie in the zone. */
struct snug_graph {
    snug_engine *engine;
    sn_zone *zone;
    sn_node_info **nodes[SN_N_PAGES]; /* each in the zone, with its lists behind it */
    sn_value_info *values[SN_N_PAGES];
    sn_param_info *params[SN_N_PAGES];
    uint32_t pages_nodes, pages_values, pages_params; /* of each that are there */
    sn_variable *vars;
    sn_named *inputs, *outputs;
    const char **owners;
    sn_names var_names, param_names, owner_names;
    size_t n_nodes, n_values, n_vars, n_params, n_inputs, n_outputs, n_owners;
    size_t cap_vars, cap_inputs, cap_outputs, cap_owners;
    bool outside;   /* inputs and outputs lie in the caller's memory */
    uint32_t owner; /* of nodes appended from now on */
    sn_part part;
    const sn_param_source *source; /* of parameters with names, or NULL */
    uint32_t plain[2];             /* slots of 0 and 1; UINT32_MAX: not made yet */
};

/* Owner by index, for rewrites that copy nodes of a graph with the same owners. */
void sn_graph_set_owner_at(sn_graph *g, uint32_t owner);

#endif
