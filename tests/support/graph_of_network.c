/* graph_of_network.c: see graph_of_network.h. */
#include "support/graph_of_network.h"

#include "support/support.h"

sn_graph *graph_of_network(sn_network *n, int64_t batch, bool training) {
    sn_value x[SN_MAX_TENSOR];
    sn_network_result result;
    sn_graph *g;
    snug_error err;
    expect_ok(sn_graph_create(n->engine, &g, &err), &err);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const char *name = n->input_names[i][0] ? n->input_names[i] : "x";
        snug_type type = *sn_network_type(n, i);
        type.dims[0] = batch;
        expect_ok(sn_graph_input(g, name, &type, &x[i], &err), &err);
    }
    expect_ok(sn_network_build(n, g, x, training, &result, &err), &err);
    if (training)
        expect_ok(sn_network_updates(n, g, &err), &err);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        expect_ok(sn_graph_output(g, sn_network_output_name(n, i), result.y[i], &err), &err);
    return g;
}
