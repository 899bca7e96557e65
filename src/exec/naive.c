/* naive.c: runs a graph without a plan, every value in a buffer of its own, nodes in program order.
 * The oracle of the tests, and the checked second pass that finds the node that made a NaN.
 *
 * Invariants:
 * 1. A buffer is written by one node only, so `visit` sees every value as its node made it. It is
 * given back behind its last reader: where a step has just run, its search for a NaN fits, too.
 * 2. Variables are written at the very end, after everything else has gone well, and only with
 * write_state. */
#include "exec/inside.h"

#include <string.h>

typedef struct {
    snug_engine *engine;
    const sn_graph *graph;
    sn_state *state;
    const sn_naive_options *options;
    sn_cpu_device device;
    sn_team *team;
    snug_view *views;  /* one per value */
    bool *owned;       /* whether the view's bytes are ours */
    uint32_t *last;    /* the last node that needs the value; n_nodes: it stays to the end */
    sn_scalar *params; /* one per slot */
} sn_naive;

static const sn_device *device_of(const sn_naive *n, sn_node node) {
    const sn_naive_options *o = n->options;
    return o->placed ? o->devices[o->placed[node.i]] : &n->device.device;
}

/* The size of an opaque value is its maker's. */
static snug_status make_buffer(sn_naive *n, sn_value v, snug_error *err) {
    snug_view *view = &n->views[v.i];
    const sn_node maker = sn_graph_value_at(n->graph, v)->node;
    const sn_device *device = maker.i == SN_NO_NODE.i ? &n->device.device : device_of(n, maker);
    view->type = *sn_graph_type(n->graph, v);
    SNUG_TRY(sn_value_bytes(n->graph, v, device, &view->bytes, err));
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_OTHER, view->bytes, &view->data, err));
    n->owned[v.i] = true;
    return SNUG_OK;
}

static snug_status read_inputs(sn_naive *n, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_inputs(n->graph); i++) {
        const sn_value v = sn_graph_input_at(n->graph, i);
        const char *name = sn_graph_input_name(n->graph, i);
        SNUG_TRY(make_buffer(n, v, err));
        const snug_view *view = &n->views[v.i];
        const sn_input_binding *b = n->options->inputs ? &n->options->inputs[i] : NULL;
        if (!b || !b->fill)
            return sn_fail(err, SNUG_E_INVALID,
                           "input '%s' has no data; bind a feed to it before the run", name);
        const snug_status status =
            b->fill(b->ctx, 0, view->type.rank > 0 ? view->type.dims[0] : 1, view, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "input '%s'", name);
    }
    return SNUG_OK;
}

/* Version 0 of a variable is read where it lives, of a spilled one in a copy. */
static snug_status read_variables(sn_naive *n, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_vars(n->graph); i++) {
        const sn_variable *var = sn_graph_var_at(n->graph, (sn_var){i});
        snug_view *view = &n->views[var->first.i];
        if (!sn_state_is_spilled(n->state, var->home)) {
            SNUG_TRY(sn_state_view(n->state, var->home, view, err));
            continue;
        }
        SNUG_TRY(make_buffer(n, var->first, err));
        SNUG_TRY(sn_state_read(n->state, var->home, 0, view->bytes, view->data, err));
    }
    return SNUG_OK;
}

static snug_status call_kernel(sn_naive *n, sn_node id, const sn_opdesc *desc,
                               const snug_view *operands, snug_error *err) {
    const sn_node_info *node = sn_graph_node_at(n->graph, id);
    const sn_device *device = device_of(n, id);
    uint32_t slots[SN_MAX_PARAMS];
    sn_scalar params[SN_MAX_PARAMS];
    sn_param_gather(n->params, sn_graph_n_params(n->graph), slots,
                    sn_param_slots(node->op, &node->attrs, slots), params);
    sn_call call = {.op = node->op,
                    .attrs = &node->attrs,
                    .param = params,
                    .n_in = node->n_in,
                    .n_out = node->n_out,
                    .in = operands,
                    .out = operands + node->n_in,
                    .team = n->team};
    call.full = node->n_out > 0 && call.out[0].type.rank > 0 ? call.out[0].type.dims[0] : 1;
    return sn_runner_class_of(device)->call_once(n->engine, device, desc, &call, err);
}

static snug_status run_one(sn_naive *n, sn_node id, snug_error *err) {
    const sn_node_info *node = sn_graph_node_at(n->graph, id);
    snug_view operands[SN_MAX_IN + SN_MAX_OUT];
    sn_opdesc desc;
    sn_graph_desc(n->graph, id, &desc);
    for (int i = 0; i < node->n_in; i++)
        operands[i] = n->views[node->in[i].i];
    for (int i = 0; i < node->n_out; i++) {
        SNUG_TRY(make_buffer(n, node->out[i], err));
        operands[node->n_in + i] = n->views[node->out[i].i];
    }
    const snug_status status = call_kernel(n, id, &desc, operands, err);
    if (status != SNUG_OK)
        return sn_fail_at(n->graph, id, status, err);
    if (!n->options->visit)
        return SNUG_OK;
    return n->options->visit(n->options->ctx, id, operands + node->n_in, node->n_out, err);
}

static void free_buffer(sn_naive *n, uint32_t v) {
    if (n->owned[v])
        sn_free(n->engine, SN_MEM_OTHER, n->views[v].data, n->views[v].bytes);
    n->owned[v] = false;
}

/* Outputs and newest versions of variables are handed out at the end; what nobody reads goes with
 * its maker. */
static void find_last_readers(const sn_naive *n) {
    const sn_graph *g = n->graph;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        for (int k = 0; k < node->n_in; k++)
            n->last[node->in[k].i] = i;
        for (int k = 0; k < node->n_out; k++)
            n->last[node->out[k].i] = i;
    }
    for (uint32_t k = 0; k < sn_graph_n_outputs(g); k++)
        n->last[sn_graph_output_at(g, k).i] = sn_graph_n_nodes(g);
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++)
        n->last[sn_graph_var_at(g, (sn_var){i})->last.i] = sn_graph_n_nodes(g);
}

static void free_read_last_by(sn_naive *n, sn_node id) {
    const sn_node_info *node = sn_graph_node_at(n->graph, id);
    for (int k = 0; k < node->n_in; k++)
        if (n->last[node->in[k].i] == id.i)
            free_buffer(n, node->in[k].i);
    for (int k = 0; k < node->n_out; k++)
        if (n->last[node->out[k].i] == id.i)
            free_buffer(n, node->out[k].i);
}

static snug_status hand_out(sn_naive *n, snug_error *err) {
    for (uint32_t k = 0; n->options->outputs && k < sn_graph_n_outputs(n->graph); k++) {
        const snug_view *from = &n->views[sn_graph_output_at(n->graph, k).i];
        memcpy(n->options->outputs[k].data, from->data, from->bytes);
    }
    for (uint32_t i = 0; n->options->write_state && i < sn_graph_n_vars(n->graph); i++) {
        const sn_variable *var = sn_graph_var_at(n->graph, (sn_var){i});
        const snug_view *newest = &n->views[var->last.i];
        if (var->last.i != var->first.i)
            SNUG_TRY(sn_state_write(n->state, var->home, 0, newest->bytes, newest->data, err));
    }
    return SNUG_OK;
}

static snug_status run_all(sn_naive *n, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_params(n->graph); i++)
        n->params[i] = n->options->params
                           ? n->options->params[i]
                           : sn_param_default(sn_graph_param_at(n->graph, (sn_param){i}));
    find_last_readers(n);
    SNUG_TRY(read_inputs(n, err));
    SNUG_TRY(read_variables(n, err));
    for (uint32_t i = 0; i < sn_graph_n_nodes(n->graph); i++) {
        SNUG_TRY(run_one(n, (sn_node){i}, err));
        free_read_last_by(n, (sn_node){i});
    }
    return hand_out(n, err);
}

static snug_status take_arrays(sn_naive *n, sn_zone *zone, snug_error *err) {
    const size_t n_values = sn_graph_n_values(n->graph), n_params = sn_graph_n_params(n->graph);
    void *views, *owned, *last, *params;
    SNUG_TRY(sn_zone_alloc(zone, n_values * sizeof *n->views, &views, err));
    SNUG_TRY(sn_zone_alloc(zone, n_values * sizeof *n->owned, &owned, err));
    SNUG_TRY(sn_zone_alloc(zone, n_values * sizeof *n->last, &last, err));
    SNUG_TRY(sn_zone_alloc(zone, n_params * sizeof *n->params, &params, err));
    n->views = views;
    n->owned = owned;
    n->last = last;
    n->params = params;
    return SNUG_OK;
}

snug_status sn_naive_run(snug_engine *e, const sn_graph *g, sn_state *state,
                         const sn_naive_options *o, snug_error *err) {
    sn_naive n = {.engine = e, .graph = g, .state = state, .options = o};
    sn_zone *zone;
    sn_cpu_device_init(&n.device, snug_engine_threads(e), o->reference_only);
    SNUG_TRY(sn_zone_create(e, SN_MEM_OTHER, &zone, err));
    snug_status status = take_arrays(&n, zone, err);
    if (status == SNUG_OK)
        status = sn_team_hold(e, &n.team, err);
    if (status == SNUG_OK) {
        status = run_all(&n, err);
        sn_team_drop(e);
        for (uint32_t i = 0; i < sn_graph_n_values(g); i++)
            free_buffer(&n, i);
    }
    sn_zone_destroy(zone);
    return status;
}
