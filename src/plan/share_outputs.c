/* share_outputs.c: outputs in the caller's memory that may be the bytes of an input that the caller
 * needs no more: y = x * 2 where nobody holds x.
 *
 * Seen from the finished plan: the step that makes the output, and no other, reads the input last,
 * and its operator may overwrite that operand. Inside a block every reader of the input must go
 * through it in pieces, the same ones as the output: rows that are overwritten are not read again.
 * Whether the caller still needs the input is its own business, asked at each run. */
#include "plan/plan.h"

/* Fewer are not worth the look. */
#define LEAST_BYTES 64
#define NONE        UINT32_MAX

static bool is_root(const sn_plan *p, const sn_place *place, uint32_t root) {
    return p->root[place->value.i] == root;
}

/* Each iteration has its own piece, behind that of the one before. */
static bool goes_on(const sn_plan *p, const sn_place *place) {
    const snug_type *type = sn_graph_type(p->graph, place->value);
    if (place->rows < 0 || type->dims[place->axis] <= 0)
        return false;
    const size_t row = p->value_bytes[place->value.i] / (size_t)type->dims[place->axis];
    return place->stride == row * (size_t)place->rows;
}

static bool same_pieces(const sn_plan *p, const sn_place *a, const sn_place *b) {
    return a->memory == b->memory && a->offset == b->offset && a->stride == b->stride &&
           goes_on(p, a) && goes_on(p, b);
}

/* The only step that runs the node, and the REPEAT and END around it (NONE: none). */
typedef struct {
    uint32_t step, repeat, end;
} maker;

static bool find_maker(const sn_plan *p, sn_node node, maker *out) {
    uint32_t open = NONE;
    *out = (maker){NONE, NONE, NONE};
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        if (s->kind == SN_STEP_REPEAT)
            open = i;
        if (s->kind == SN_STEP_END && open == out->repeat && out->step != NONE && open != NONE)
            out->end = i;
        if (s->kind == SN_STEP_END)
            open = NONE;
        if (s->kind != SN_STEP_RUN || s->node.i != node.i)
            continue;
        if (out->step != NONE || s->accumulate != SN_ACC_STORE)
            return false;
        *out = (maker){i, open, NONE};
    }
    return out->step != NONE;
}

/* Nobody reads the root behind the maker, nor, in its block, rows that it has written. */
static bool reads_last(const sn_plan *p, const maker *m, uint32_t root, const sn_place *out) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        const bool inside = m->repeat != NONE && i > m->repeat && i < m->end;
        for (uint32_t k = 0; k < s->n_in; k++) {
            if (!is_root(p, &s->in[k], root))
                continue;
            if (i > m->step || (inside && !same_pieces(p, &s->in[k], out)))
                return false;
        }
    }
    return true;
}

/* Wherever the step reads the root, output o may overwrite it. */
static bool may_overwrite(const sn_plan *p, const sn_node_info *n, int o, uint32_t root) {
    for (int k = 0; k < n->n_in; k++)
        if (p->root[n->in[k].i] == root && !sn_op_may_overwrite(n->op, o, k))
            return false;
    return true;
}

static bool is_output(const sn_plan *p, uint32_t root) {
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        if (p->root[sn_graph_output_at(p->graph, i).i] == root)
            return true;
    return false;
}

static bool is_taken(const uint32_t *donor, uint32_t n, uint32_t input) {
    for (uint32_t i = 0; i < n; i++)
        if (donor[i] == input)
            return true;
    return false;
}

static bool is_candidate(const sn_plan *p, const sn_node_info *n, int o, uint32_t root) {
    const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){root});
    return info->kind == SN_VALUE_INPUT && !info->fed &&
           p->value_bytes[root] == p->value_bytes[n->out[o].i] && may_overwrite(p, n, o, root) &&
           !is_output(p, root);
}

static uint32_t find_donor(const sn_plan *p, sn_value v, const uint32_t *donor, uint32_t n_before) {
    const sn_graph *g = p->graph;
    const sn_value_info *info = sn_graph_value_at(g, v);
    if (p->value_bytes[v.i] < LEAST_BYTES || info->node.i == NONE || info->var >= 0 ||
        p->root[v.i] != v.i)
        return NONE;
    const sn_node_info *n = sn_graph_node_at(g, info->node);
    const int o = (int)info->index;
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t root = p->root[n->in[k].i];
        const uint32_t input = sn_graph_value_at(g, (sn_value){root})->index;
        maker m;
        if (is_candidate(p, n, o, root) && !is_taken(donor, n_before, input) &&
            find_maker(p, info->node, &m) && reads_last(p, &m, root, &p->steps[m.step].out[o]))
            return input;
    }
    return NONE;
}

void sn_plan_donors(const sn_plan *p, uint32_t *donor) {
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        donor[i] = find_donor(p, sn_graph_output_at(p->graph, i), donor, i);
}
