/* take_back.c: which writes of variables can be taken back, and what that takes.
 *
 * A step that refuses its values (a MAYFAIL row) leaves all variables as they were. Nearly all such
 * rows run before the first write. One that needs what was written cannot: what is written before
 * it is copied away first, by a step of the plan, into bytes that stay to the end of the step: a
 * device may say late that a row has refused. Who runs the plan copies it back then
 * (exec/undo.c). So the copies are bytes of the arena, on any device, and a budget that has no room
 * for them is refused with the plan.
 *
 * What no such row needs is written behind all of them (order.c): nothing of it is copied. A row
 * that runs again has not refused these values before, and does not now. */
#include "plan/passes.h"

/* --- of a graph ------------------------------------------------------------------------------- */
static sn_effect effect_of(const sn_graph *g, uint32_t node) {
    return sn_ops[sn_graph_node_at(g, (sn_node){node})->op].effect;
}

/* The variable of which this is the first version; -1: it is none. */
static int32_t first_of(const sn_graph *g, sn_value v) {
    const int32_t var = sn_graph_value_at(g, v)->var;
    return var >= 0 && sn_graph_var_at(g, (sn_var){(uint32_t)var})->first.i == v.i ? var : -1;
}

/* What must run before the node: makers of what it reads, readers of what it overwrites. Those that
 * come later in the program read a copy, or are found by order.c. */
static void lead(sn_planner *p, uint32_t node) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t v = n->in[k].i, maker = sn_graph_value_at(p->graph, n->in[k])->node.i;
        if (maker < p->n_nodes)
            p->leads[maker] = true;
        for (uint32_t r = p->reader_start[v]; p->updater[v] == node && r < p->reader_start[v + 1];
             r++)
            p->leads[p->readers[r]] = p->leads[p->readers[r]] || p->readers[r] < node;
    }
}

/* The first versions of what the node writes: those of later writes need not come back. */
static void save_versions(sn_planner *p, uint32_t node) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    for (int k = 0; k < sn_op_versions(n->op, n->n_out); k++) {
        const uint32_t v = n->in[k].i;
        if (first_of(p->graph, n->in[k]) >= 0)
            p->saved[v] = p->kept[v] = p->saves = true;
    }
}

snug_status sn_plan_undo(sn_planner *p, snug_error *err) {
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *p->leads, &p->leads, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *p->saved, &p->saved, err));
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const sn_effect effect = effect_of(p->graph, i);
        p->leads[i] = p->leads[i] || effect == SN_MAYFAIL;
        if (p->leads[i])
            lead(p, i);
        if (p->leads[i] && effect == SN_STATE)
            save_versions(p, i);
    }
    return SNUG_OK;
}

/* --- of a plan -------------------------------------------------------------------------------- */
static bool may_refuse(const sn_plan *p, const sn_step *s) {
    return s->kind == SN_STEP_RUN && effect_of(p->graph, s->node.i) == SN_MAYFAIL;
}

static bool writes_variable(const sn_plan *p, const sn_step *s) {
    bool writes = false;
    for (uint32_t k = 0; k < s->n_out; k++)
        writes = writes || (s->out[k].memory == SN_MEM_STATE &&
                            sn_graph_value_at(p->graph, s->out[k].value)->var >= 0);
    return writes;
}

/* Whether it has seen all rows then; in a block it has when that is over. */
static bool is_whole(const sn_plan *p, const sn_step *s) {
    const sn_place *out = &s->out[0];
    return s->n_out == 0 || out->rows < 0 ||
           out->first + out->rows >= sn_graph_type(p->graph, out->value)->dims[out->axis];
}

/* Rows of the steps [first, end) that may refuse their values, and have not seen all of them
 * before; now they have. */
static bool refuses_first(const sn_plan *p, uint32_t first, uint32_t end, bool *passed) {
    bool refuses = false;
    for (uint32_t i = first; i < end; i++)
        refuses = refuses || (may_refuse(p, &p->steps[i]) && !passed[p->steps[i].node.i]);
    for (uint32_t i = first; i < end; i++)
        if (may_refuse(p, &p->steps[i]) && (end - first > 1 || is_whole(p, &p->steps[i])))
            passed[p->steps[i].node.i] = true;
    return refuses;
}

/* Steps up to the last that may refuse its values, for the first time, behind a write. A block
 * whose iterations come one after the other counts as one step. */
static uint32_t find_end(const sn_plan *p, bool *passed) {
    bool wrote = false;
    uint32_t end = 0, first = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        const bool loops = s->kind == SN_STEP_REPEAT && s->repeat > 1;
        wrote = wrote || writes_variable(p, s);
        for (first = i; loops && p->steps[i].kind != SN_STEP_END; i++)
            wrote = wrote || writes_variable(p, &p->steps[i]);
        if (refuses_first(p, first, i + 1, passed) && wrote)
            end = i + 1;
    }
    return end;
}

/* Of each variable that is written up to there, the first copy out of its home. */
static void find_copies(const sn_plan *p, bool *wanted, sn_undone *out) {
    for (uint32_t i = 0; i < out->end; i++)
        for (uint32_t k = 0; k < p->steps[i].n_out; k++) {
            const sn_place *to = &p->steps[i].out[k];
            const int32_t var = sn_graph_value_at(p->graph, to->value)->var;
            if (to->memory == SN_MEM_STATE && var >= 0)
                wanted[var] = true;
        }
    for (uint32_t i = 0; i < out->end; i++) {
        const sn_step *s = &p->steps[i];
        const bool copies = s->kind == SN_STEP_COPY && s->in[0].memory == SN_MEM_STATE;
        const int32_t var = copies ? first_of(p->graph, s->in[0].value) : -1;
        if (var < 0 || !wanted[var])
            continue;
        wanted[var] = false;
        out->steps[out->n++] = i;
    }
}

static bool may_refuse_late(const sn_plan *p) {
    bool wrote = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (wrote && may_refuse(p, &p->steps[i]))
            return true;
        wrote = wrote || writes_variable(p, &p->steps[i]);
    }
    return false;
}

snug_status sn_plan_undone(const sn_plan *p, sn_zone *z, sn_undone *out, snug_error *err) {
    const uint32_t n_vars = sn_graph_n_vars(p->graph);
    bool *passed, *wanted;
    *out = (sn_undone){.end = 0};
    if (!may_refuse_late(p))
        return SNUG_OK;
    SNUG_TRY(sn_plan_array(z, sn_graph_n_nodes(p->graph), sizeof *passed, &passed, err));
    SNUG_TRY(sn_plan_array(z, n_vars, sizeof *wanted, &wanted, err));
    SNUG_TRY(sn_plan_array(z, n_vars, sizeof *out->steps, &out->steps, err));
    out->end = find_end(p, passed);
    find_copies(p, wanted, out);
    return SNUG_OK;
}
