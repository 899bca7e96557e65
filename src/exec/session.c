/* session.c: what a caller sets before a run and reads after it: inputs, parameters, the interrupt,
 * outputs. */
#include "exec/inside.h"

#include <assert.h>

/* The largest block of a zone. */
#define ZONE_BLOCK ((size_t)64 << 10)
/* Of a value of a plan: its bytes, and whose they are. */
#define VALUE_BYTES 12

/* What a piece of a zone takes. */
static size_t piece(size_t bytes) {
    return bytes > 16 ? (bytes + 15) / 16 * 16 : 16;
}

/* Of n operands and so many parameters; as bind.c takes it: kernels' own parameters are few. */
static size_t bytes_of_step(size_t n, size_t n_params, bool uneven) {
    return sizeof(sn_bound) + sizeof(uint64_t) + piece(n * sizeof(void *)) +
           (uneven ? 2 : 1) * piece(n * sizeof(snug_view)) + piece(n_params * sizeof(uint32_t)) +
           piece(n_params * sizeof(sn_scalar));
}

/* Of a graph that has its inputs and outputs outside: what is bound before each run. */
static size_t bytes_outside(const sn_graph *g) {
    const size_t n = (size_t)sn_graph_n_vars(g) + sn_graph_n_values(g);
    return sn_graph_is_outside(g) ? n * (sizeof(void *) + sizeof(bool)) : 0;
}

static size_t n_params_of(const sn_node_info *node) {
    uint32_t slots[SN_MAX_PARAMS];
    return sn_param_slots(node->op, &node->attrs, slots);
}

size_t sn_session_step_bytes(const sn_graph *g) {
    const uint32_t n_nodes = sn_graph_n_nodes(g);
    const size_t fixup = sn_graph_is_outside(g) ? sizeof(sn_fixup) : 0;
    size_t sum = bytes_outside(g);
    for (uint32_t i = 0; i < n_nodes; i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        const size_t n = (size_t)node->n_in + node->n_out;
        sum += sizeof(sn_step) + piece(node->n_in * sizeof(sn_place)) +
               piece(node->n_out * sizeof(sn_place)) + node->n_out * VALUE_BYTES + n * fixup +
               bytes_of_step(n, n_params_of(node), false);
    }
    return n_nodes > 0 ? sum / n_nodes : 0;
}

size_t sn_session_bytes(const sn_plan *p) {
    const sn_graph *g = p->graph;
    size_t sum = sizeof(sn_session) + sn_graph_n_outputs(g) * sizeof(snug_view) +
                 sn_graph_n_params(g) * sizeof(sn_scalar) +
                 sn_graph_n_inputs(g) * sizeof(sn_input_binding) + bytes_outside(g);
    bool uneven = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        const bool runs = s->kind == SN_STEP_RUN;
        uneven = s->kind == SN_STEP_REPEAT ? s->last != s->rows : uneven && s->kind != SN_STEP_END;
        sum += bytes_of_step((size_t)s->n_in + s->n_out,
                             runs ? n_params_of(sn_graph_node_at(g, s->node)) : 0, uneven);
    }
    return sum;
}

size_t sn_session_rest_bytes(size_t bytes) {
    const size_t most = 2 * ZONE_BLOCK;
    return (bytes < most ? bytes : most) / 2 + (bytes < ZONE_BLOCK / 4 ? bytes : ZONE_BLOCK / 4);
}

void sn_session_bind_input(sn_session *s, uint32_t input, sn_input_binding b) {
    assert(input < sn_graph_n_inputs(s->plan->graph));
    s->inputs[input] = b;
}

void sn_session_bind_variable(sn_session *s, sn_var var, void *data) {
    assert(s->sources && var.i < sn_graph_n_vars(s->plan->graph));
    s->sources[var.i] = data;
}

void sn_session_bind_file(sn_session *s, sn_var var, sn_spill *file, size_t offset) {
    assert(s->sources && sn_plan_spills(s->plan, var));
    s->spots[var.i] = (sn_spot){.file = file, .offset = offset};
}

void sn_session_bind_value(sn_session *s, sn_value v, void *data) {
    assert(s->sources && v.i < sn_graph_n_values(s->plan->graph));
    s->sources[sn_graph_n_vars(s->plan->graph) + s->plan->root[v.i]] = data;
}

bool sn_session_uses(const sn_session *s, sn_var var) {
    return s->source_used[var.i];
}

bool sn_session_is_ready(const sn_session *s) {
    return s->ready;
}

void sn_session_set_real(sn_session *s, sn_param p, double v) {
    assert(p.i < sn_graph_n_params(s->plan->graph));
    s->params[p.i].real = v;
}

void sn_session_set_key(sn_session *s, sn_param p, int64_t v) {
    assert(p.i < sn_graph_n_params(s->plan->graph));
    s->params[p.i].key = v;
}

void sn_session_set_passes(sn_session *s, bool passes) {
    s->passes = passes;
}

bool sn_session_passed_over(const sn_session *s) {
    return s->passed_over;
}

void sn_session_set_interrupt(sn_session *s, bool (*asked)(void *ctx), void *ctx) {
    s->interrupt = asked;
    s->interrupt_ctx = ctx;
}

void sn_session_set_meanwhile(sn_session *s, void (*meanwhile)(void *ctx), void *ctx) {
    s->meanwhile = meanwhile;
    s->meanwhile_ctx = ctx;
}

bool sn_session_want_next(sn_session *s) {
    const bool wanted = s->wants_next;
    s->wants_next = s->lead->kind->takes_next(s->lead, s);
    return s->wants_next && !wanted;
}

void sn_session_set_next(sn_session *s, bool came, bool (*next)(void *ctx), void *ctx) {
    s->uses_next = came;
    s->bind_next = next;
    s->next_ctx = ctx;
}

bool sn_session_has_next(const sn_session *s) {
    return s->lead->kind->has_next(s->lead, s);
}

void sn_session_output(const sn_session *s, uint32_t output, snug_view *out) {
    assert(output < sn_graph_n_outputs(s->plan->graph));
    *out = s->outputs[output];
}
