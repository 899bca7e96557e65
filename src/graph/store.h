/* store.h: how a graph is stored; for the files of this room only. Everybody else uses the readers
 * of graph.h. */
#ifndef SN_GRAPH_STORE_H
#define SN_GRAPH_STORE_H

#include "graph/graph.h"
#include "memory/names.h"
#include "memory/numbers.h"

#define SN_MAX_NAME 255 /* characters; the text form and the builder agree on it */

typedef struct {
    const char *name; /* in the zone */
    sn_value value;
} sn_named;

/* Values and parameters, and pointers to nodes, lie on pages: a recording of many thousands grows
 * without copying what is there. The first pages are each twice as large as the one before, from 16
 * elements to 2048, and allocated one by one; all others have 2048 and lie in the zone, where huge
 * pages hold them: the system takes 2 us to give a small page. Element i is at its page's place. */
#define SN_FIRST_PAGE 16
#define SN_LAST_PAGE  2048
#define SN_OWN_PAGES  8
static inline size_t sn_page_of(size_t i) {
    const size_t at = i + SN_FIRST_PAGE;
    return at < SN_LAST_PAGE ? 27 - (size_t)__builtin_clz((uint32_t)at)
                             : at / SN_LAST_PAGE + SN_OWN_PAGES - 2;
}
static inline size_t sn_page_size(size_t page) {
    return page < SN_OWN_PAGES ? (size_t)SN_FIRST_PAGE << page : SN_LAST_PAGE;
}
/* Page sizes are powers of two, and element i has the same place on its page as i + 16 has. */
#define SN_PAGED(pages, i)                                                                         \
    (&(pages)[sn_page_of(i)][((i) + SN_FIRST_PAGE) & (sn_page_size(sn_page_of(i)) - 1)])

/* Other arrays grow by doubling; n_ counts are the truth, cap_ what is allocated. Names, `in` and
 * `out` lists lie in the zone. */
struct snug_graph {
    snug_engine *engine;
    sn_zone *zone;
    sn_node_info ***nodes; /* each in the zone, with its lists behind it */
    sn_value_info **values;
    sn_param_info **params;
    size_t pages_nodes, pages_values, pages_params; /* of each that are there */
    size_t cap_nodes, cap_values, cap_params;       /* of each that could be listed */
    sn_variable *vars;
    sn_named *inputs, *outputs;
    const char **owners;
    sn_names var_names, param_names, owner_names;
    sn_names input_names, output_names; /* both empty where they lie outside */
    sn_numbers homes;                   /* of variables; the same */
    size_t n_nodes, n_values, n_vars, n_params, n_inputs, n_outputs, n_owners;
    size_t cap_vars, cap_inputs, cap_outputs, cap_owners;
    bool outside;   /* inputs and outputs lie in the caller's memory */
    uint32_t owner; /* of nodes appended from now on */
    sn_part part;
    const sn_param_source *source; /* of parameters with names, or NULL */
    uint32_t plain[2];             /* slots of 0 and 1; UINT32_MAX: not made yet */
    uint32_t *way;                 /* per value: its place in a reverse pass, if it has one there */
    size_t cap_way;
};

/* Owner by index, for rewrites that copy nodes of a graph with the same owners. */
void sn_graph_set_owner_at(sn_graph *g, uint32_t owner);

#endif
