/* inplace.c: which values lie in the same bytes. Values that share bytes by ALIAS rows are one
 * buffer from the start; an output moves into an input's buffer where the table allows it, the
 * sizes are equal and nobody reads the input later. STATE outputs lie in the homes of their
 * variables and have no buffer.
 *
 * Also makes the list of actions from the order: inputs are fed right before their first use, kept
 * versions are copied right before their update. */
#include "plan/passes.h"

typedef struct {
    sn_planner *p;
    sn_layout *l;
    uint32_t *last_use; /* per root: its last action; n_actions when it lives to the end */
    uint32_t *last;     /* per buffer: the same over all that lie in it */
    bool *fed;          /* per value */
} sharing;

static void add_action(sn_layout *l, sn_step_kind kind, uint32_t id) {
    l->actions[l->n_actions++] = (sn_action){kind, id};
}

static void feed_first(sn_planner *p, sn_layout *l, bool *fed, uint32_t value) {
    const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){value});
    if (info->kind != SN_VALUE_INPUT || fed[value])
        return;
    fed[value] = true;
    add_action(l, SN_STEP_FEED, info->index);
}

snug_status sn_plan_actions(sn_planner *p, sn_layout *l, snug_error *err) {
    const size_t most = (size_t)l->n_order + sn_graph_n_inputs(p->graph) + p->n_values;
    bool *fed;
    SNUG_TRY(sn_plan_array(p->work, most, sizeof *l->actions, &l->actions, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *l->at, &l->at, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *l->copied_at, &l->copied_at, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *fed, &fed, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        l->copied_at[v] = UINT32_MAX;
    for (uint32_t i = 0; i < l->n_order; i++) {
        const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){l->order[i]});
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in[k].i;
            feed_first(p, l, fed, v);
            if (p->kept[v] && p->updater[v] == l->order[i] && k < n->n_out) {
                l->copied_at[v] = l->n_actions;
                add_action(l, SN_STEP_COPY, v);
            }
        }
        l->at[l->order[i]] = l->n_actions;
        add_action(l, SN_STEP_RUN, l->order[i]);
    }
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        feed_first(p, l, fed, sn_graph_output_at(p->graph, i).i);
    return SNUG_OK;
}

static void find_last_uses(sharing *s) {
    const sn_planner *p = s->p;
    for (uint32_t v = 0; v < p->n_values; v++) {
        uint32_t *last = &s->last_use[p->root[v]];
        for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++) {
            const uint32_t at = s->l->at[p->readers[k]];
            *last = at > *last ? at : *last;
        }
        if (p->is_output[p->root[v]])
            *last = s->l->n_actions;
    }
}

/* A new buffer that holds the value from `now` on. */
static void open_buffer(sharing *s, uint32_t value, uint32_t now) {
    sn_layout *l = s->l;
    const uint32_t b = l->n_items++, last = s->last_use[value];
    l->items[b] = (sn_pack_item){.lower = now, .size = s->p->padded[value]};
    s->last[b] = last > now ? last : now;
    l->buffer[value] = b;
}

static bool lies_in(const sharing *s, sn_value v, uint32_t buffer) {
    return s->l->buffer[v.i] == buffer;
}

/* Whether output 0 of the node may take over the buffer of input k at action `now`. */
static bool may_take(const sharing *s, const sn_node_info *n, int k, uint32_t now) {
    const sn_planner *p = s->p;
    const uint32_t rule = (uint32_t)sn_ops[n->op].inplace;
    const uint32_t b = s->l->buffer[n->in[k].i];
    if (k > 1 || !(rule & (1u << k)) || b == SN_NO_BUFFER || s->last[b] != now)
        return false;
    if (p->bytes[n->in[k].i] != p->bytes[n->out[0].i] || sn_plan_in_state(p, n->in[k].i))
        return false;
    for (int j = 0; j < n->n_in; j++)
        if (lies_in(s, n->in[j], b) && !(j <= 1 && (rule & (1u << j))))
            return false;
    return true;
}

static void place_outputs(sharing *s, const sn_node_info *n, uint32_t now) {
    const sn_planner *p = s->p;
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t v = n->out[k].i;
        if (sn_plan_in_state(p, v))
            continue;
        if (p->root[v] != v) {
            s->l->buffer[v] = s->l->buffer[p->root[v]];
            continue;
        }
        int taken = -1;
        for (int j = 0; k == 0 && j < n->n_in && taken < 0; j++)
            taken = may_take(s, n, j, now) ? j : -1;
        if (taken < 0) {
            open_buffer(s, v, now);
            continue;
        }
        const uint32_t b = s->l->buffer[n->in[taken].i];
        s->l->buffer[v] = b;
        s->last[b] = s->last_use[v] > now ? s->last_use[v] : now;
    }
}

static void place_action(sharing *s, uint32_t now) {
    const sn_planner *p = s->p;
    sn_layout *l = s->l;
    const sn_action a = l->actions[now];
    if (a.kind == SN_STEP_FEED) {
        open_buffer(s, sn_graph_input_at(p->graph, a.id).i, now);
        return;
    }
    if (a.kind == SN_STEP_COPY) {
        open_buffer(s, a.id, now);
        return;
    }
    place_outputs(s, sn_graph_node_at(p->graph, (sn_node){a.id}), now);
    if (p->variant[a.id].workspace_bytes == 0)
        return;
    l->workspace[now] = l->n_items;
    s->last[l->n_items] = now;
    l->items[l->n_items++] = (sn_pack_item){.lower = now, .size = p->variant[a.id].workspace_bytes};
}

snug_status sn_plan_inplace(sn_planner *p, sn_layout *l, snug_error *err) {
    sharing s = {.p = p, .l = l};
    const size_t most = (size_t)p->n_values + l->n_actions;
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *s.last_use, &s.last_use, err));
    SNUG_TRY(sn_plan_array(p->work, most, sizeof *s.last, &s.last, err));
    SNUG_TRY(sn_plan_array(p->work, most, sizeof *l->items, &l->items, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *l->buffer, &l->buffer, err));
    SNUG_TRY(sn_plan_array(p->work, l->n_actions, sizeof *l->workspace, &l->workspace, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        l->buffer[v] = SN_NO_BUFFER;
    for (uint32_t t = 0; t < l->n_actions; t++)
        l->workspace[t] = SN_NO_BUFFER;
    find_last_uses(&s);
    for (uint32_t t = 0; t < l->n_actions; t++)
        place_action(&s, t);
    for (uint32_t b = 0; b < l->n_items; b++)
        l->items[b].upper =
            s.last[b]; /* the last action that needs it; liveness.c makes it half open */
    return SNUG_OK;
}
