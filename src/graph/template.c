/* template.c: a graph with unknown extents becomes one with known ones: every node is replayed on
 * the concrete input types, so the shape rules work out all extents (a -1 in a reshape among them)
 * and inverse extents become numbers. */
#include "graph/replay.h"

/* The type given for an input has the template's dtype and rank, known extents, and equal ones
 * where the template knows them. */
static snug_status check_input(const sn_graph *g, uint32_t i, const snug_type *given,
                               snug_error *err) {
    const snug_type *want = sn_graph_type(g, sn_graph_input_at(g, i));
    bool fits = given->dtype == want->dtype && given->rank == want->rank;
    for (int a = 0; fits && a < want->rank; a++)
        fits = given->dims[a] >= 0 && (want->dims[a] < 0 || want->dims[a] == given->dims[a]);
    if (!fits) {
        char have_text[192], want_text[192];
        return sn_fail(err, SNUG_E_SHAPE, "input '%.80s' is given as %s, the template says %s",
                       sn_graph_input_name(g, i),
                       snug_type_print(given, have_text, sizeof have_text),
                       snug_type_print(want, want_text, sizeof want_text));
    }
    return SNUG_OK;
}

/* Whatever depends on inputs alone is known now; a node with an unknown extent in its attributes
 * (fill) is not. */
static snug_status check_known(const sn_graph *g, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_values(g); i++) {
        const sn_value_info *v = sn_graph_value_at(g, (sn_value){i});
        if (sn_type_known(&v->type))
            continue;
        const sn_node_info *maker = sn_graph_node_at(g, v->node);
        return sn_fail(
            err, SNUG_E_SHAPE,
            "%s %s: output %u still has an unknown extent with all inputs known; state it there",
            sn_graph_owner_name(g, maker->owner), sn_ops[maker->op].name, v->index);
    }
    return SNUG_OK;
}

static snug_status replay_all(sn_replay *r, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(r->from); i++)
        SNUG_TRY(sn_replay_node(r, sn_graph_node_at(r->from, (sn_node){i}), err));
    return SNUG_OK;
}

/* inputs NULL: those there are. */
static snug_status replay_graph(const sn_graph *g, const snug_type *inputs, bool is_template,
                                sn_graph **out, snug_error *err) {
    sn_replay r;
    SNUG_TRY(sn_replay_init(&r, g, inputs, err));
    snug_status status = replay_all(&r, err);
    if (status == SNUG_OK && !is_template)
        status = check_known(r.to, err);
    if (status == SNUG_OK)
        status = sn_replay_take(&r, out, err);
    sn_replay_clear(&r);
    return status;
}

snug_status sn_graph_copy(const sn_graph *g, sn_graph **out, snug_error *err) {
    return replay_graph(g, NULL, true, out, err);
}

snug_status sn_graph_instantiate(const sn_graph *g, const snug_type *inputs, int n, sn_graph **out,
                                 snug_error *err) {
    if (n < 0 || (uint32_t)n != sn_graph_n_inputs(g))
        return sn_fail(err, SNUG_E_INVALID, "%d input types for a template with %u inputs", n,
                       sn_graph_n_inputs(g));
    for (int i = 0; i < n; i++)
        SNUG_TRY(check_input(g, (uint32_t)i, &inputs[i], err));
    return replay_graph(g, inputs, false, out, err);
}
