/* describe.c: facts about nodes and values that no order changes: the device's variant of each
 * node, the bytes of each value (opaque ones by the variant), what shares bytes by an ALIAS row,
 * who is needed, who reads what. */
#include "base/size.h"
#include "plan/passes.h"

static const char *owner_of(const sn_planner *p, const sn_node_info *n) {
    return sn_graph_owner_name(p->graph, n->owner);
}

static snug_status describe_node(sn_planner *p, uint32_t i, snug_error *err) {
    sn_opdesc d;
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){i});
    sn_graph_desc(p->graph, (sn_node){i}, &d);
    const sn_device *device = p->placed ? p->devices[p->placed[i]] : p->device;
    const snug_status st = device->describe(device, &d, &p->variant[i], err);
    if (st != SNUG_OK)
        return sn_fail_in(err, st, "node n%u (%s) of layer '%s' on %s", i, sn_ops[n->op].name,
                          owner_of(p, n), device->name);
    p->seconds[i] = sn_cost_seconds(device, &d, &p->variant[i]);
    return SNUG_OK;
}

static snug_status size_value(sn_planner *p, uint32_t v, snug_error *err) {
    const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){v});
    if (info->type.dtype != SNUG_OPAQUE)
        SNUG_TRY(snug_type_bytes(&info->type, &p->bytes[v], err));
    else if (info->node.i < p->n_nodes)
        p->bytes[v] = p->variant[info->node.i].opaque_bytes[info->index];
    else
        return sn_fail(err, SNUG_E_UNSUPPORTED, "value %%%u is opaque but no node makes it", v);
    if (!sn_size_align(p->bytes[v], p->device->align, &p->padded[v]))
        return sn_fail(err, SNUG_E_OVERFLOW, "value %%%u of %zu bytes exceeds the address space", v,
                       p->bytes[v]);
    return SNUG_OK;
}

/* So that no sum of a plan is inexact, whatever is beside what. */
static snug_status check_sum(const sn_planner *p, snug_error *err) {
    const size_t most = (size_t)1 << 60;
    size_t sum = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (!sn_size_add(sum, p->padded[v], &sum) || sum > most)
            return sn_fail(
                err, SNUG_E_BUDGET,
                "the values up to %%%u have more than 2^60 bytes (%zu in that one), which "
                "no memory has; use a smaller batch",
                v, p->bytes[v]);
    return SNUG_OK;
}

/* An ALIAS row shares its input's bytes unless these are a variable's home, which an update may
 * overwrite. */
static void find_roots(sn_planner *p) {
    for (uint32_t v = 0; v < p->n_values; v++) {
        const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){v});
        p->root[v] = v;
        if (info->node.i >= p->n_nodes || info->index != 0)
            continue;
        const sn_node_info *n = sn_graph_node_at(p->graph, info->node);
        if (sn_ops[n->op].inplace != SN_INPLACE_ALIAS || n->n_in == 0)
            continue;
        const uint32_t from = n->in[0].i;
        if (!sn_plan_in_state(p, from) && p->bytes[from] == p->bytes[v])
            p->root[v] = p->root[from];
    }
}

static void mark_needed(sn_planner *p, bool *value_needed) {
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        value_needed[sn_graph_output_at(p->graph, i).i] = true;
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){i});
        const sn_effect effect = sn_ops[n->op].effect;
        bool needed = effect == SN_STATE || effect == SN_MAYFAIL;
        for (int k = 0; k < n->n_out; k++)
            needed = needed || value_needed[n->out[k].i];
        p->needed[i] = needed;
        for (int k = 0; needed && k < n->n_in; k++)
            value_needed[n->in[k].i] = true;
    }
}

/* Inputs and outputs of a graph that has them in the caller's memory. */
static void find_outside(sn_planner *p) {
    for (uint32_t v = 0; sn_graph_is_outside(p->graph) && v < p->n_values; v++) {
        const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){v});
        p->outside[v] = p->root[v] == v && !sn_plan_in_state(p, v) &&
                        (p->is_output[v] || (info->kind == SN_VALUE_INPUT && !info->fed));
    }
}

snug_status sn_plan_describe(sn_planner *p, snug_error *err) {
    bool *value_needed;
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *p->variant, &p->variant, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *p->seconds, &p->seconds, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *p->needed, &p->needed, err));
    SNUG_TRY(sn_plan_array(p->plan->zone, p->n_values, sizeof *p->bytes, &p->bytes, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *p->padded, &p->padded, err));
    SNUG_TRY(sn_plan_array(p->plan->zone, p->n_values, sizeof *p->root, &p->root, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *p->is_output, &p->is_output, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *p->outside, &p->outside, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *value_needed, &value_needed, err));
    mark_needed(p, value_needed);
    for (uint32_t i = 0; i < p->n_nodes; i++)
        SNUG_TRY(describe_node(p, i, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        SNUG_TRY(size_value(p, v, err));
    SNUG_TRY(check_sum(p, err));
    find_roots(p);
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        p->is_output[p->root[sn_graph_output_at(p->graph, i).i]] = true;
    find_outside(p);
    p->plan->value_bytes = p->bytes;
    p->plan->root = p->root;
    return SNUG_OK;
}

static bool reads_before(const sn_node_info *n, int k) {
    for (int j = 0; j < k; j++)
        if (n->in[j].i == n->in[k].i)
            return true;
    return false;
}

static void note_updates(sn_planner *p, uint32_t i, const sn_node_info *n) {
    for (int k = 0; k < sn_op_versions(n->op, n->n_out); k++)
        p->updater[n->in[k].i] = i;
}

/* Also: which node overwrites each version. An old version that is an output of the graph is kept
 * by a copy. */
snug_status sn_plan_readers(sn_planner *p, snug_error *err) {
    uint32_t *start, n_reads = 0;
    SNUG_TRY(sn_plan_array(p->work, (size_t)p->n_values + 2, sizeof *start, &start, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *p->updater, &p->updater, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *p->kept, &p->kept, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        p->updater[v] = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){i});
        note_updates(p, i, n);
        for (int k = 0; p->needed[i] && k < n->n_in; k++)
            if (!reads_before(n, k)) {
                start[n->in[k].i + 2]++;
                n_reads++;
            }
    }
    for (uint32_t v = 0; v < p->n_values; v++)
        start[v + 2] += start[v + 1];
    SNUG_TRY(sn_plan_array(p->work, n_reads, sizeof *p->readers, &p->readers, err));
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){i});
        for (int k = 0; p->needed[i] && k < n->n_in; k++)
            if (!reads_before(n, k))
                p->readers[start[n->in[k].i + 1]++] = i;
    }
    p->reader_start = start;
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++) {
        const uint32_t v = sn_graph_output_at(p->graph, i).i;
        p->kept[v] = p->updater[v] != UINT32_MAX;
    }
    return SNUG_OK;
}
