/* replay.c: copies a graph node by node under new ids. Parameters come over when first needed, so
 * those of dropped nodes vanish; named ones always come, because callers set them by name. Order of
 * owners is kept: owner indices do not change. */
#include "graph/replay.h"

#include <string.h>

static snug_status copy_owners(sn_replay *r, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_owners(r->from); i++)
        SNUG_TRY(sn_graph_set_owner(r->to, sn_graph_owner_name(r->from, i), err));
    return SNUG_OK;
}

static snug_status copy_inputs(sn_replay *r, const snug_type *types, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_inputs(r->from); i++) {
        const sn_value v = sn_graph_input_at(r->from, i);
        const snug_type *type = types ? &types[i] : sn_graph_type(r->from, v);
        SNUG_TRY(sn_graph_input(r->to, sn_graph_input_name(r->from, i), type, &r->value[v.i], err));
        sn_graph_set_fed(r->to, i, sn_graph_value_at(r->from, v)->fed);
    }
    return SNUG_OK;
}

static snug_status copy_variables(sn_replay *r, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_vars(r->from); i++) {
        const sn_variable *var = sn_graph_var_at(r->from, (sn_var){i});
        SNUG_TRY(sn_graph_variable(r->to, var, &r->value[var->first.i], err));
    }
    return SNUG_OK;
}

static snug_status copy_param(const sn_graph_move *m, uint32_t slot, snug_error *err) {
    if (m->param[slot] != UINT32_MAX)
        return SNUG_OK;
    sn_param_info info = *sn_graph_param_at(m->from, (sn_param){slot});
    if (info.kind == SN_PARAM_INVERSE_EXTENT) {
        info.of = m->value[info.of.i];
        if (!sn_value_ok(info.of))
            info.kind = SN_PARAM_REAL;
    }
    const bool draws = m->draws && info.kind == SN_PARAM_KEY && info.name[0];
    info.each_step = info.each_step || draws;
    if (m->unnamed && !draws)
        info.name = "";
    sn_param p;
    SNUG_TRY(sn_graph_param(m->to, &info, &p, err));
    m->param[slot] = p.i;
    return SNUG_OK;
}

snug_status sn_graph_move_attrs(const sn_graph_move *m, sn_op op, sn_attrs *a, snug_error *err) {
    const sn_attr_family *family = sn_ops[op].attrs;
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        for (int k = 0; sn_field_is_param(f) && k < f->n; k++) {
            int64_t *word = &a->word[f->word + k];
            if (*word < 0)
                continue;
            SNUG_TRY(copy_param(m, (uint32_t)*word, err));
            *word = m->param[*word];
        }
    }
    return SNUG_OK;
}

static sn_graph_move move_of(const sn_replay *r) {
    return (sn_graph_move){.from = r->from, .to = r->to, .value = r->value, .param = r->param};
}

static snug_status copy_named_params(sn_replay *r, snug_error *err) {
    const sn_graph_move m = move_of(r);
    for (uint32_t i = 0; i < sn_graph_n_params(r->from); i++) {
        const sn_param_info *p = sn_graph_param_at(r->from, (sn_param){i});
        if (*p->name && p->kind != SN_PARAM_INVERSE_EXTENT)
            SNUG_TRY(copy_param(&m, i, err));
    }
    return SNUG_OK;
}

static snug_status make_maps(sn_replay *r, snug_error *err) {
    snug_engine *e = r->from->engine;
    void *block;
    SNUG_TRY(sn_alloc(e, SN_MEM_GRAPH, r->from->n_values * sizeof *r->value, &block, err));
    r->value = memset(block, 0xff, r->from->n_values * sizeof *r->value);
    SNUG_TRY(sn_alloc(e, SN_MEM_GRAPH, r->from->n_params * sizeof *r->param, &block, err));
    r->param = memset(block, 0xff, r->from->n_params * sizeof *r->param);
    return SNUG_OK;
}

static snug_status fill_replay(sn_replay *r, const snug_type *types, snug_error *err) {
    SNUG_TRY(make_maps(r, err));
    SNUG_TRY(sn_graph_create(r->from->engine, &r->to, err));
    r->to->outside = r->from->outside;
    SNUG_TRY(copy_owners(r, err));
    SNUG_TRY(copy_inputs(r, types, err));
    SNUG_TRY(copy_variables(r, err));
    return copy_named_params(r, err);
}

snug_status sn_replay_init(sn_replay *r, const sn_graph *from, const snug_type *input_types,
                           snug_error *err) {
    *r = (sn_replay){.from = from};
    const snug_status status = fill_replay(r, input_types, err);
    if (status != SNUG_OK)
        sn_replay_clear(r);
    return status;
}

snug_status sn_replay_node(sn_replay *r, const sn_node_info *node, snug_error *err) {
    sn_attrs attrs;
    sn_attrs_copy(node->op, &node->attrs, &attrs);
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    int n_outs = 0;
    const sn_graph_move m = move_of(r);
    SNUG_TRY(sn_graph_move_attrs(&m, node->op, &attrs, err));
    for (int i = 0; i < node->n_in; i++)
        in[i] = r->value[node->in[i].i];
    sn_graph_set_owner_at(r->to, node->owner);
    sn_graph_set_part(r->to, node->part);
    const snug_status status =
        sn_graph_node(r->to, node->op, &attrs, in, node->n_in, outs, &n_outs, err);
    if (status != SNUG_OK) {
        const char *owner = sn_graph_owner_name(r->to, node->owner);
        return *owner ? sn_fail_in(err, status, "%s", owner) : status;
    }
    for (int k = 0; k < n_outs && k < node->n_out; k++)
        r->value[node->out[k].i] = outs[k];
    return SNUG_OK;
}

snug_status sn_replay_take(sn_replay *r, sn_graph **out, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_outputs(r->from); i++) {
        const sn_value v = r->value[sn_graph_output_at(r->from, i).i];
        SNUG_TRY(sn_graph_output(r->to, sn_graph_output_name(r->from, i), v, err));
    }
    sn_graph_set_owner_at(r->to, r->from->owner);
    sn_graph_set_part(r->to, r->from->part);
    *out = r->to;
    r->to = NULL;
    return SNUG_OK;
}

void sn_replay_clear(sn_replay *r) {
    snug_engine *e = r->from->engine;
    sn_graph_destroy(r->to);
    sn_free(e, SN_MEM_GRAPH, r->param, r->from->n_params * sizeof *r->param);
    sn_free(e, SN_MEM_GRAPH, r->value, r->from->n_values * sizeof *r->value);
    *r = (sn_replay){.from = r->from};
}
