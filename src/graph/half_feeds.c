/* half_feeds.c: inputs that come as the halves they are read as.
 *
 *     x f32, cast(x) to bf16, and nobody else reads x    ->    x bf16
 *
 * Feeds round each element while they copy it in, as the cast would, so that neither the f32 rows
 * nor the cast go through memory. Only of inputs that are fed: what lies outside of a graph is read
 * as it lies there. */
#include "graph/replay.h"

#include <string.h>

typedef struct {
    const sn_graph *g;
    snug_type *types;   /* by input */
    uint32_t *input_of; /* by value: which input it is; UINT32_MAX: none that may come as a half */
    bool any;
} half_feeds;

static const sn_node_info *cast_at(const half_feeds *h, uint32_t i) {
    const sn_node_info *n = sn_graph_node_at(h->g, (sn_node){i});
    return n->op == SN_OP_cast && h->input_of[n->in[0].i] != UINT32_MAX ? n : NULL;
}

static void keep(const half_feeds *h, sn_value v) {
    if (h->input_of[v.i] == UINT32_MAX)
        return;
    h->types[h->input_of[v.i]].dtype = SNUG_F32;
    h->input_of[v.i] = UINT32_MAX;
}

/* An input takes the type of the first cast; another reader, or a cast to another type, keeps it
 * as it is. */
static void look_at_readers(half_feeds *h) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(h->g); i++) {
        const sn_node_info *n = sn_graph_node_at(h->g, (sn_node){i}), *cast = cast_at(h, i);
        const snug_dtype to = sn_graph_type(h->g, n->out[0])->dtype;
        snug_type *t = cast ? &h->types[h->input_of[cast->in[0].i]] : NULL;
        if (t && sn_dtype_is_half(to) && (t->dtype == SNUG_F32 || t->dtype == to))
            t->dtype = to;
        else
            for (int k = 0; k < n->n_in; k++)
                keep(h, n->in[k]);
    }
    for (uint32_t i = 0; i < sn_graph_n_outputs(h->g); i++)
        keep(h, sn_graph_output_at(h->g, i));
}

static void look_at_inputs(half_feeds *h) {
    memset(h->input_of, 0xff, sn_graph_n_values(h->g) * sizeof *h->input_of);
    for (uint32_t i = 0; i < sn_graph_n_inputs(h->g); i++) {
        const sn_value v = sn_graph_input_at(h->g, i);
        h->types[i] = *sn_graph_type(h->g, v);
        if (h->types[i].dtype == SNUG_F32 && !sn_graph_is_outside(h->g))
            h->input_of[v.i] = i;
    }
    look_at_readers(h);
    for (uint32_t i = 0; i < sn_graph_n_inputs(h->g); i++)
        h->any = h->any || sn_dtype_is_half(h->types[i].dtype);
}

static snug_status replay(const half_feeds *h, sn_graph **out, snug_error *err) {
    sn_replay r;
    SNUG_TRY(sn_replay_init(&r, h->g, h->types, err));
    snug_status status = SNUG_OK;
    for (uint32_t i = 0; i < sn_graph_n_nodes(h->g) && status == SNUG_OK; i++) {
        const sn_node_info *cast = cast_at(h, i);
        if (cast)
            r.value[cast->out[0].i] = r.value[cast->in[0].i];
        else
            status = sn_replay_node(&r, sn_graph_node_at(h->g, (sn_node){i}), err);
    }
    if (status == SNUG_OK)
        status = sn_replay_take(&r, out, err);
    sn_replay_clear(&r);
    return status;
}

snug_status sn_graph_half_feeds(const sn_graph *g, sn_graph **out, snug_error *err) {
    const size_t of_types = sn_graph_n_inputs(g) * sizeof(snug_type);
    const size_t bytes = of_types + sn_graph_n_values(g) * sizeof(uint32_t);
    void *block;
    *out = NULL;
    SNUG_TRY(sn_alloc(g->engine, SN_MEM_GRAPH, bytes, &block, err));
    half_feeds h = {.g = g, .types = block};
    h.input_of = (uint32_t *)(h.types + sn_graph_n_inputs(g));
    look_at_inputs(&h);
    const snug_status status = h.any ? replay(&h, out, err) : SNUG_OK;
    sn_free(g->engine, SN_MEM_GRAPH, block, bytes);
    return status;
}
