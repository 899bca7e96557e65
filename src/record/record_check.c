/* record_check.c: values that a run would refuse, where they are in memory when they are recorded:
 * an index outside its axis, a label outside the classes. The call fails then and there, as an
 * eager one would, and what was recorded before it still runs; found in the middle of a run, the
 * variables that it was to write would be lost. In a trace nothing is known yet. */
#include "record/recording.h"
#include "kernels/cpu/cpu.h"

#define MOST_LOOKED_AT ((int64_t)1 << 20) /* elements; more of them only the run looks at */

/* Its bytes on the host; NULL: not there, too many, or a variable's, which changes. */
static void *bytes_at(const sn_recording *rec, sn_value v) {
    const sn_value_info *info = sn_graph_value_at(rec->graph, v);
    if (info->kind != SN_VALUE_INPUT || info->index >= rec->n_leaf ||
        sn_type_count(&info->type) > MOST_LOOKED_AT)
        return NULL;
    const sn_leaf *leaf = &rec->leaf[info->index];
    if (!leaf->storage || !leaf->storage->data || leaf->variable)
        return NULL;
    return (char *)leaf->storage->data + leaf->offset;
}

static snug_status check_node(const sn_recording *rec, const sn_node_info *n, snug_error *err) {
    const sn_cpu_family *family = sn_cpu_family_of(n->op);
    snug_view views[SN_MAX_IN + SN_MAX_OUT];
    if (!family->check_data)
        return SNUG_OK;
    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const sn_value v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
        views[k] = (snug_view){.type = *sn_graph_type(rec->graph, v),
                               .data = k < n->n_in ? bytes_at(rec, v) : NULL};
    }
    const sn_call call = {.op = n->op,
                          .attrs = &n->attrs,
                          .n_in = n->n_in,
                          .n_out = n->n_out,
                          .in = views,
                          .out = views + n->n_in};
    return family->check_data(&call, err);
}

snug_status sn_recording_check_data(const sn_recording *rec, uint32_t first, snug_error *err) {
    for (uint32_t i = first; i < rec->n_nodes && !rec->outer; i++) {
        const sn_node_info *n = sn_graph_node_at(rec->graph, (sn_node){i});
        if (sn_ops[n->op].effect != SN_MAYFAIL)
            continue;
        const snug_status status = check_node(rec, n, err);
        char text[400];
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "%s",
                              sn_recording_where(rec, (sn_node){i}, text, sizeof text));
    }
    return SNUG_OK;
}
