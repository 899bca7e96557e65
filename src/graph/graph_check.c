/* graph_check.c: the invariants of graph.h, restated over the readers alone and checked from
 * nothing: types are inferred again, versions are walked again. Shares no code with the builder.
 * Every failure is SNUG_E_INTERNAL, but for a template where a concrete graph is needed
 * (SNUG_E_SHAPE), and names the node. */
#include "graph/store.h"

#include <string.h>

static snug_status fail_at(const sn_graph *g, uint32_t n, snug_error *err, const char *what) {
    const sn_node_info *node = sn_graph_node_at(g, (sn_node){n});
    return sn_fail(err, SNUG_E_INTERNAL, "graph: node %u (%s): %s", n,
                   (unsigned)node->op < SN_N_OPS ? sn_ops[node->op].name : "?", what);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Invariant 1, and that nodes and values name each other. */
static snug_status check_links(const sn_graph *g, uint32_t n, snug_error *err) {
    const sn_node_info *node = sn_graph_node_at(g, (sn_node){n});
    const uint32_t n_values = sn_graph_n_values(g);
    if ((unsigned)node->op >= SN_N_OPS || node->owner >= sn_graph_n_owners(g) ||
        (unsigned)node->part > SN_PART_UPDATE)
        return fail_at(g, n, err, "operator, owner or part is out of range");
    if (node->n_in > SN_MAX_IN || node->n_out < 1 || node->n_out > SN_MAX_OUT)
        return fail_at(g, n, err, "has a wrong number of inputs or outputs");
    for (int k = 0; k < node->n_out; k++) {
        const sn_value out = node->out[k];
        if (out.i >= n_values)
            return fail_at(g, n, err, "makes a value that is not there");
        const sn_value_info *v = sn_graph_value_at(g, out);
        if (v->kind != SN_VALUE_OUTPUT || v->node.i != n || v->index != (uint32_t)k)
            return fail_at(g, n, err, "makes a value that names another maker");
        for (int i = 0; i < node->n_in; i++)
            if (node->in[i].i >= out.i)
                return fail_at(g, n, err, "reads a value made at or after its own");
    }
    return SNUG_OK;
}

static snug_status check_types(const sn_graph *g, uint32_t n, bool is_template, snug_error *err) {
    sn_opdesc have;
    sn_graph_desc(g, (sn_node){n}, &have);
    sn_opdesc again = have;
    const snug_status status = sn_op_infer(&again, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "graph: node %u", n);
    if (again.n_out != have.n_out)
        return fail_at(g, n, err, "has another number of outputs than its rule says");
    for (int k = 0; k < have.n_out; k++) {
        if (!sn_type_equal(&again.out[k], &have.out[k]))
            return fail_at(g, n, err, "has an output of another type than its rule says");
        if (!is_template && !sn_type_known(&have.out[k]))
            return sn_fail(
                err, SNUG_E_SHAPE,
                "node %u (%s) has an output with unknown extents; instantiate the template first",
                n, sn_ops[have.op].name);
    }
    return SNUG_OK;
}

static snug_status check_params(const sn_graph *g, uint32_t n, snug_error *err) {
    const sn_node_info *node = sn_graph_node_at(g, (sn_node){n});
    const sn_attr_family *family = sn_ops[node->op].attrs;
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        const bool is_key = f->kind == SN_FIELD_KEY;
        for (int k = 0; k < f->n && sn_field_is_param(f); k++) {
            const int64_t slot = node->attrs.word[f->word + k];
            if (slot == -1 && f->n > 1 && k >= sn_graph_type(g, node->in[0])->rank)
                continue;
            if (slot < 0 || slot >= (int64_t)sn_graph_n_params(g))
                return fail_at(g, n, err, "names a parameter slot that is not there");
            if (is_key != (sn_graph_param_at(g, (sn_param){(uint32_t)slot})->kind == SN_PARAM_KEY))
                return fail_at(g, n, err, "names a parameter slot of the wrong kind");
        }
    }
    return SNUG_OK;
}

/* STATE: output k continues the variable of input k; other rows make no versions. */
static snug_status check_state(const sn_graph *g, uint32_t n, snug_error *err) {
    const sn_node_info *node = sn_graph_node_at(g, (sn_node){n});
    for (int k = 0; k < node->n_out; k++) {
        const bool is_state = k < sn_op_versions(node->op, node->n_out);
        const sn_value_info *out = sn_graph_value_at(g, node->out[k]);
        if (!is_state && out->var >= 0)
            return fail_at(g, n, err, "makes a version of a variable its row does not write");
        if (!is_state)
            continue;
        const sn_value_info *in = sn_graph_value_at(g, node->in[k]);
        if (out->var < 0 || out->var != in->var || out->version != in->version + 1)
            return fail_at(g, n, err, "does not make the next version of the variable it updates");
    }
    return SNUG_OK;
}

/* --- values, variables, names ----------------------------------------------------------------- */

static snug_status check_values(const sn_graph *g, bool is_template, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_values(g); i++) {
        const sn_value_info *v = sn_graph_value_at(g, (sn_value){i});
        bool ok = v->var < (int64_t)sn_graph_n_vars(g);
        if (v->kind == SN_VALUE_INPUT)
            ok = ok && v->index < sn_graph_n_inputs(g) && sn_graph_input_at(g, v->index).i == i &&
                 v->var < 0;
        else if (v->kind == SN_VALUE_VARIABLE)
            ok = ok && v->version == 0 && v->var == (int64_t)v->index &&
                 sn_graph_var_at(g, (sn_var){v->index})->first.i == i;
        else
            ok = ok && v->node.i < sn_graph_n_nodes(g) &&
                 v->index < sn_graph_node_at(g, v->node)->n_out &&
                 sn_graph_node_at(g, v->node)->out[v->index].i == i;
        if (!ok)
            return sn_fail(err, SNUG_E_INTERNAL, "graph: value %u is not where it says it is", i);
        if (!is_template && !sn_type_known(&v->type))
            return sn_fail(err, SNUG_E_SHAPE,
                           "value %u has unknown extents; instantiate the template first", i);
    }
    return SNUG_OK;
}

/* Walks each chain from its last version to the first; a version off the chains would make the
 * counts differ. */
static snug_status check_chains(const sn_graph *g, snug_error *err) {
    size_t on_chains = 0, versions = 0;
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *var = sn_graph_var_at(g, (sn_var){i});
        sn_value v = var->last;
        for (on_chains++; v.i != var->first.i; on_chains++) {
            const sn_value_info *info = sn_graph_value_at(g, v);
            if (info->kind != SN_VALUE_OUTPUT || info->var != (int32_t)i)
                return sn_fail(err, SNUG_E_INTERNAL,
                               "graph: versions of '%s' do not lead back to the first", var->name);
            v = sn_graph_node_at(g, info->node)->in[info->index];
        }
        if (!sn_type_equal(&var->type, sn_graph_type(g, var->last)))
            return sn_fail(err, SNUG_E_INTERNAL, "graph: variable '%s' changes its type",
                           var->name);
    }
    for (uint32_t i = 0; i < sn_graph_n_values(g); i++)
        versions += sn_graph_value_at(g, (sn_value){i})->var >= 0;
    if (versions != on_chains)
        return sn_fail(err, SNUG_E_INTERNAL,
                       "graph: %zu versions of variables, %zu on their chains", versions,
                       on_chains);
    return SNUG_OK;
}

static const char *var_name(const sn_graph *g, uint32_t i) {
    return sn_graph_var_at(g, (sn_var){i})->name;
}

static snug_status check_names(const sn_graph *g, const char *kind, uint32_t n,
                               const char *(*name)(const sn_graph *, uint32_t), snug_error *err) {
    sn_names seen = {.engine = g->engine, .category = SN_MEM_GRAPH};
    snug_status st = SNUG_OK;
    for (uint32_t i = 0, there; st == SNUG_OK && i < n; i++) {
        if (sn_names_find(&seen, name(g, i), &there))
            st = sn_fail(err, SNUG_E_INTERNAL, "graph: two %ss are called '%.80s'", kind,
                         name(g, i));
        else
            st = sn_names_reserve(&seen, err);
        if (st == SNUG_OK)
            sn_names_put(&seen, name(g, i), i);
    }
    sn_names_clear(&seen);
    return st;
}

snug_status sn_graph_check(const sn_graph *g, bool is_template, snug_error *err) {
    for (uint32_t n = 0; n < sn_graph_n_nodes(g); n++) {
        SNUG_TRY(check_links(g, n, err));
        SNUG_TRY(check_params(g, n, err));
        SNUG_TRY(check_types(g, n, is_template, err));
        SNUG_TRY(check_state(g, n, err));
    }
    SNUG_TRY(check_values(g, is_template, err));
    SNUG_TRY(check_chains(g, err));
    for (uint32_t i = 0; i < sn_graph_n_outputs(g); i++)
        if (sn_graph_output_at(g, i).i >= sn_graph_n_values(g))
            return sn_fail(err, SNUG_E_INTERNAL, "graph: output '%.80s' is not there",
                           sn_graph_output_name(g, i));
    SNUG_TRY(check_names(g, "input", sn_graph_n_inputs(g), sn_graph_input_name, err));
    SNUG_TRY(check_names(g, "output", sn_graph_n_outputs(g), sn_graph_output_name, err));
    return check_names(g, "variable", sn_graph_n_vars(g), var_name, err);
}
