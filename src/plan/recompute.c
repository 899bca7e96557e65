/* recompute.c: makes a program fit a number of bytes by dropping values and making them again
 * (remat.h decides which). It works on a stretch of actions: the inside of one block, where an
 * action is an operation on slices, or all between two blocks or the ends of the program.
 *
 *     an action                 op; its bytes are those of the copies it makes in the stretch
 *     a copy that outlives it   fixed bytes: whole values of blocks, sums; made once
 *     a name of an input        no bytes: readers depend on the action that made the input
 *     a version to be written   ends what may be made again from it */
#include "plan/passes.h"

#include <string.h>

#define NONE UINT32_MAX

struct sn_recomputer {
    sn_planner *p;
    const sn_layout *l;
    uint32_t *maker;   /* per copy: the op that makes it, or NONE; of the stretch under way, as */
    uint32_t *updated; /* per value: the op that overwrites this version, or NONE */
};

typedef struct {
    sn_planner *p;
    const sn_layout *l;
    uint32_t first, end; /* actions of the stretch */
    uint32_t *maker, *updated;
    sn_remat_op *ops;
    uint32_t *inputs;
    uint32_t n_inputs;
} stretch;

static const sn_node_info *node_of(const stretch *s, uint32_t action) {
    return sn_graph_node_at(s->p->graph, (sn_node){s->l->program->actions[action].id});
}

static bool is_run(const stretch *s, uint32_t action) {
    return s->l->program->actions[action].kind == SN_STEP_RUN;
}

static uint32_t n_in_of(const stretch *s, uint32_t action) {
    return is_run(s, action) ? node_of(s, action)->n_in
                             : s->l->program->actions[action].kind == SN_STEP_COPY;
}

static bool in_block(const stretch *s) {
    return s->l->block_of[s->first] != NONE;
}

/* The copy lives and dies in the stretch, with its readers. */
static bool is_inside(const stretch *s, const sn_copy *c) {
    return in_block(s) ? c->local : c->last < s->end && !s->p->saved[c->value];
}

/* Sizes that the layout has aligned before. */
static size_t aligned(const stretch *s, size_t bytes) {
    const size_t align = s->p->device->align;
    return (bytes + align - 1) / align * align;
}

static size_t copy_bytes(const stretch *s, const sn_copy *c) {
    return aligned(s, c->local ? s->l->program->slices->bytes[c->value] : s->p->bytes[c->value]);
}

/* Whether output 0 may lie in the bytes of input k, should that die here. */
static bool may_take(const stretch *s, uint32_t action, uint32_t k) {
    const sn_node_info *n = node_of(s, action);
    const uint32_t *copy = &s->l->copy[s->l->operand[action]];
    const uint32_t out = copy[n->n_in];
    if (k > 1 || !((uint32_t)sn_ops[n->op].inplace >> k & 1) || n->n_out != 1 || out == NONE ||
        s->maker[out] != action - s->first)
        return false;
    return copy_bytes(s, &s->l->copies[copy[k]]) == copy_bytes(s, &s->l->copies[out]) &&
           s->ops[s->maker[copy[k]]].bytes == copy_bytes(s, &s->l->copies[out]);
}

static void add_input(stretch *s, sn_remat_op *op, uint32_t maker) {
    for (uint32_t k = 0; k < op->n_in; k++)
        if (s->inputs[op->in + k] == maker)
            return;
    s->inputs[s->n_inputs++] = maker;
    op->n_in++;
}

static void read_operands(stretch *s, uint32_t action) {
    const uint32_t i = action - s->first, n_in = n_in_of(s, action);
    const uint32_t *copy = &s->l->copy[s->l->operand[action]];
    sn_remat_op *const op = &s->ops[i];
    op->in = s->n_inputs;
    for (uint32_t k = 0; k < n_in; k++) {
        const uint32_t v =
            is_run(s, action) ? node_of(s, action)->in[k].i : s->l->program->actions[action].id;
        const uint32_t over = s->updated[v];
        if (copy[k] == NONE && over != NONE && over > i && over < op->not_after)
            op->not_after = over;
        if (copy[k] == NONE || s->maker[copy[k]] == NONE || s->maker[copy[k]] == i)
            continue;
        add_input(s, op, s->maker[copy[k]]);
        if (op->takes == NONE && is_run(s, action) && may_take(s, action, k))
            op->takes = s->maker[copy[k]];
    }
}

static void make_outputs(stretch *s, uint32_t action) {
    const uint32_t i = action - s->first, n_in = n_in_of(s, action);
    const uint32_t *copy = &s->l->copy[s->l->operand[action]];
    const uint32_t n_out = s->l->operand[action + 1] - s->l->operand[action] - n_in;
    sn_remat_op *const op = &s->ops[i];
    for (uint32_t k = 0; k < n_out; k++) {
        const uint32_t c = copy[n_in + k];
        if (c == NONE || (n_in > 0 && c == copy[0]))
            continue; /* in its home, or a name of its input */
        s->maker[c] = i;
        if (is_inside(s, &s->l->copies[c])) {
            op->bytes += copy_bytes(s, &s->l->copies[c]);
        } else if (s->l->block_of[action] == NONE) {
            op->bytes += copy_bytes(s, &s->l->copies[c]);
            op->keep = true;
        } else {
            op->once = true;
        }
    }
}

static void note_updates(stretch *s, uint32_t action) {
    const sn_node_info *n = node_of(s, action);
    if (sn_ops[n->op].effect != SN_STATE)
        return;
    for (int k = 0; k < sn_op_versions(n->op, n->n_out); k++)
        s->updated[n->in[k].i] = action - s->first;
}

/* What may refuse its values is not run again behind the update that follows it. */
static void bound_refusals(stretch *s) {
    uint32_t update = NONE;
    for (uint32_t t = s->end; t-- > s->first;) {
        const sn_effect effect = is_run(s, t) ? sn_ops[node_of(s, t)->op].effect : SN_PURE;
        sn_remat_op *const op = &s->ops[t - s->first];
        if (effect == SN_STATE)
            update = t - s->first;
        else if (effect == SN_MAYFAIL && update < op->not_after)
            op->not_after = update;
    }
}

static void describe_action(stretch *s, uint32_t action) {
    const sn_program *program = s->l->program;
    const sn_action a = program->actions[action];
    const bool in_block = s->l->block_of[action] != NONE;
    sn_remat_op *const op = &s->ops[action - s->first];
    *op = (sn_remat_op){.not_after = NONE, .takes = NONE, .once = a.kind == SN_STEP_COPY};
    if (a.kind == SN_STEP_RUN) {
        op->cost = in_block ? program->slices->seconds[a.id] : s->p->seconds[a.id];
        op->work_bytes = aligned(s, in_block ? program->slices->variant[a.id].workspace_bytes
                                             : s->p->variant[a.id].workspace_bytes);
        op->once = sn_ops[node_of(s, action)->op].effect == SN_STATE;
    } else if (a.kind == SN_STEP_FEED) {
        op->cost = sn_plan_feed_seconds(s->p, a.id);
    }
    make_outputs(s, action);
    read_operands(s, action);
    op->keep = op->keep && op->bytes > 0;
}

static snug_status describe_stretch(stretch *s, sn_zone *z, snug_error *err) {
    const uint32_t n = s->end - s->first;
    const size_t most = s->l->operand[s->end] - s->l->operand[s->first];
    SNUG_TRY(sn_plan_array(z, n, sizeof *s->ops, &s->ops, err));
    SNUG_TRY(sn_plan_array(z, most, sizeof *s->inputs, &s->inputs, err));
    for (uint32_t t = s->first; t < s->end; t++)
        if (is_run(s, t))
            note_updates(s, t);
    for (uint32_t t = s->first; t < s->end; t++)
        describe_action(s, t);
    bound_refusals(s);
    return SNUG_OK;
}

/* Leaves the tables as they were: a program has many stretches. */
static void forget_stretch(stretch *s) {
    for (uint32_t i = s->l->operand[s->first]; i < s->l->operand[s->end]; i++)
        if (s->l->copy[i] != NONE)
            s->maker[s->l->copy[i]] = NONE;
    for (uint32_t t = s->first; t < s->end; t++)
        for (int k = 0; is_run(s, t) && k < node_of(s, t)->n_in; k++)
            s->updated[node_of(s, t)->in[k].i] = NONE;
}

snug_status sn_recomputer_create(sn_planner *p, sn_zone *z, const sn_layout *l, sn_recomputer **out,
                                 snug_error *err) {
    sn_recomputer *r;
    SNUG_TRY(sn_plan_array(z, 1, sizeof *r, &r, err));
    r->p = p;
    r->l = l;
    SNUG_TRY(sn_plan_array(z, l->n_copies, sizeof *r->maker, &r->maker, err));
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *r->updated, &r->updated, err));
    memset(r->maker, 0xff, l->n_copies * sizeof *r->maker);
    memset(r->updated, 0xff, p->n_values * sizeof *r->updated);
    *out = r;
    return SNUG_OK;
}

/* What was made before the stretch: all that lives at the REPEAT of a block lives all through it;
 * elsewhere it counts to the end of the stretch, where it may go earlier. */
static size_t fixed_bytes(const stretch *s) {
    size_t bytes = 0;
    if (s->first == 0 || in_block(s))
        return s->first == 0 ? 0 : s->l->live[s->first - 1];
    for (uint32_t b = 0; b < s->l->n_items; b++)
        if (s->l->items[b].lower < s->first && s->l->items[b].upper > s->first)
            bytes += s->l->items[b].size;
    return bytes;
}

snug_status sn_recompute(sn_recomputer *r, sn_zone *z, const sn_stretch *what,
                         const sn_remat_limits *limits, sn_remat_result *out, snug_error *err) {
    stretch s = {.p = r->p,
                 .l = r->l,
                 .first = what->first,
                 .end = what->end,
                 .maker = r->maker,
                 .updated = r->updated};
    SNUG_TRY(describe_stretch(&s, z, err));
    const sn_remat_problem problem = {
        .ops = s.ops, .n = s.end - s.first, .inputs = s.inputs, .fixed_bytes = fixed_bytes(&s)};
    forget_stretch(&s);
    return sn_remat(z, &problem, limits, out, err);
}

snug_status sn_program_replace(sn_zone *z, const sn_program *from, const sn_replacement *parts,
                               uint32_t n, sn_program *out, snug_error *err) {
    size_t most = from->n;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        most += parts[i].n_actions;
    *out = *from;
    SNUG_TRY(sn_plan_array(z, most, sizeof *out->actions, &out->actions, err));
    out->n = 0;
    for (uint32_t i = 0; i <= n; i++) {
        const uint32_t end = i < n ? parts[i].what.first : from->n;
        memcpy(&out->actions[out->n], &from->actions[at], (end - at) * sizeof *out->actions);
        out->n += end - at;
        if (i == n)
            break;
        for (uint32_t k = 0; k < parts[i].n_actions; k++)
            out->actions[out->n++] = from->actions[parts[i].actions[k]];
        at = parts[i].what.end;
    }
    return SNUG_OK;
}
