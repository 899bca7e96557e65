/* graph_door.c: the public builder (include/snug/graph.h) over this room: operators by name,
 * attributes as text, homes numbered in the order variables are made. A snug_graph is a sn_graph.
 *
 * Invariants:
 * 1. A pointer that may not be NULL is refused by name; everything else is the room's to check. */
#include "graph/store.h"

#include "base/rng.h"

#include <snug/graph.h>

#include <stdio.h>
#include <string.h>

#define MAX_ATTRIBUTES 1024

static sn_value inside(snug_value v) {
    return (sn_value){v.id};
}

static snug_value outside(sn_value v) {
    return (snug_value){v.i};
}

/* `what` lists the pointers that `call` needs. */
static snug_status refuse_null(const char *call, const char *what, snug_error *err) {
    return sn_fail(err, SNUG_E_INVALID, "%s: %s must not be NULL", call, what);
}

snug_status snug_graph_create(snug_engine *engine, snug_graph **out, snug_error *err) {
    if (!engine || !out)
        return refuse_null("snug_graph_create", "engine and out", err);
    return sn_graph_create(engine, out, err);
}

void snug_graph_destroy(snug_graph *graph) {
    sn_graph_destroy(graph);
}

snug_status snug_graph_input(snug_graph *graph, const char *name, const snug_type *type,
                             snug_value *out, snug_error *err) {
    sn_value v;
    if (!graph || !type || !out)
        return refuse_null("snug_graph_input", "graph, type and out", err);
    SNUG_TRY(sn_graph_input(graph, name, type, &v, err));
    *out = outside(v);
    return SNUG_OK;
}

static const sn_recipe_kind recipe_kinds[] = {[SNUG_INIT_CONSTANT] = SN_RECIPE_CONSTANT,
                                              [SNUG_INIT_UNIFORM] = SN_RECIPE_UNIFORM,
                                              [SNUG_INIT_NORMAL] = SN_RECIPE_NORMAL,
                                              [SNUG_INIT_TRUNCATED] = SN_RECIPE_TRUNCATED};

/* Behind all there are: those of a parsed graph may have gaps. */
static uint32_t next_home(const sn_graph *g) {
    uint32_t home = 0;
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const uint32_t taken = sn_graph_var_at(g, (sn_var){i})->home;
        home = taken >= home ? taken + 1 : home;
    }
    return home;
}

snug_status snug_graph_variable(snug_graph *graph, const char *name, const snug_type *type,
                                const snug_variable_options *options, snug_value *out,
                                snug_error *err) {
    static const snug_variable_options zeros = {.kind = SNUG_INIT_CONSTANT};
    const snug_variable_options *o = options ? options : &zeros;
    if (!graph || !name || !type || !out)
        return refuse_null("snug_graph_variable", "graph, name, type and out", err);
    if ((unsigned)o->kind >= sizeof recipe_kinds / sizeof recipe_kinds[0])
        return sn_fail(err, SNUG_E_INVALID, "variable '%.80s' has no such initialiser: %d", name,
                       (int)o->kind);
    const uint64_t key = sn_rng_key(o->seed, sn_graph_n_vars(graph));
    const sn_variable var = {.name = name,
                             .type = *type,
                             .home = next_home(graph),
                             .trainable = !o->is_slot && !o->is_frozen,
                             .slot = o->is_slot != 0,
                             .init = {recipe_kinds[o->kind], key, o->a, o->b}};
    sn_value v;
    SNUG_TRY(sn_graph_variable(graph, &var, &v, err));
    *out = outside(v);
    return SNUG_OK;
}

static snug_status add_named_param(snug_graph *g, const sn_param_info *info, snug_error *err) {
    sn_param p;
    if (!g)
        return refuse_null("snug_graph_param and snug_graph_key", "graph", err);
    if (!info->name || !*info->name)
        return sn_fail(err, SNUG_E_INVALID, "a parameter needs a name");
    return sn_graph_param(g, info, &p, err);
}

snug_status snug_graph_param(snug_graph *graph, const char *name, double value, snug_error *err) {
    const sn_param_info info = {.name = name, .kind = SN_PARAM_REAL, .real = value};
    return add_named_param(graph, &info, err);
}

snug_status snug_graph_key(snug_graph *graph, const char *name, int64_t value, snug_error *err) {
    const sn_param_info info = {.name = name, .kind = SN_PARAM_KEY, .key = value};
    return add_named_param(graph, &info, err);
}

/* --- operators -------------------------------------------------------------------------------- */

/* Writes the slot "p3" of the name behind "p:"; *text moves behind the name. */
static snug_status name_to_slot(const snug_graph *g, const char **text, char *to, size_t room,
                                snug_error *err) {
    char name[SN_MAX_NAME + 1];
    const size_t n = strcspn(*text + 2, " ,");
    sn_param p;
    if (n == 0 || n >= sizeof name)
        return sn_fail(err, SNUG_E_INVALID, "a parameter name is missing or too long at '%.20s'",
                       *text);
    memcpy(name, *text + 2, n);
    name[n] = '\0';
    SNUG_TRY(sn_graph_find_param(g, name, &p, err));
    snprintf(to, room, "p%u", p.i);
    *text += 2 + n;
    return SNUG_OK;
}

/* Copies the attributes with every value "p:NAME" replaced by its slot. */
static snug_status resolve_names(const snug_graph *g, const char *text, char *to, snug_error *err) {
    size_t used = 0;
    bool at_value = false;
    while (*text) {
        if (used + 16 > MAX_ATTRIBUTES)
            return sn_fail(err, SNUG_E_INVALID, "attributes have more than %d characters",
                           MAX_ATTRIBUTES - 16);
        if (at_value && text[0] == 'p' && text[1] == ':') {
            SNUG_TRY(name_to_slot(g, &text, to + used, MAX_ATTRIBUTES - used, err));
            used += strlen(to + used);
            at_value = false;
            continue;
        }
        at_value = *text == '=' || *text == ',';
        to[used++] = *text++;
    }
    to[used] = '\0';
    return SNUG_OK;
}

static snug_status add_constant(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                                snug_error *err) {
    const sn_param_info info = {
        .kind = is_key ? SN_PARAM_KEY : SN_PARAM_REAL, .real = real, .key = key};
    sn_param p;
    SNUG_TRY(sn_graph_param(ctx, &info, &p, err));
    *slot = (int64_t)p.i;
    return SNUG_OK;
}

/* Rows that write variables are the update of a step, whoever calls. */
static snug_status append_op(snug_graph *g, sn_op op, const char *attributes, const sn_value *in,
                             int n_in, sn_value *outs, snug_error *err) {
    char text[MAX_ATTRIBUTES];
    sn_attrs attrs;
    const sn_param_maker maker = {g, add_constant};
    SNUG_TRY(resolve_names(g, attributes ? attributes : "", text, err));
    SNUG_TRY(sn_attrs_parse(op, text, &maker, &attrs, err));
    sn_graph_set_part(g, sn_ops[op].effect == SN_STATE ? SN_PART_UPDATE : SN_PART_FORWARD);
    return sn_graph_node(g, op, &attrs, in, n_in, outs, NULL, err);
}

snug_status snug_graph_op(snug_graph *graph, const char *op, const char *attributes,
                          const snug_value *inputs, int n_in, snug_value *outputs, int n_out,
                          snug_error *err) {
    sn_op row;
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    if (!graph || !op || (!inputs && n_in > 0) || (!outputs && n_out > 0))
        return refuse_null("snug_graph_op", "graph, op, inputs and outputs", err);
    SNUG_TRY(sn_op_find(op, &row, err));
    if (n_in < 0 || n_in > SN_MAX_IN)
        return sn_fail(err, SNUG_E_INVALID, "%s with %d inputs; no row takes more than %d", op,
                       n_in, SN_MAX_IN);
    for (int i = 0; i < n_in; i++)
        in[i] = inside(inputs[i]);
    for (int k = 0; k < SN_MAX_OUT; k++)
        outs[k] = SN_NO_VALUE;
    const sn_graph_mark mark = sn_graph_mark_now(graph);
    const snug_status status = append_op(graph, row, attributes, in, n_in, outs, err);
    if (status != SNUG_OK) {
        sn_graph_go_back(graph, &mark);
        return status;
    }
    sn_graph_set_part(graph, mark.part);
    for (int k = 0; k < n_out; k++)
        outputs[k] = k < SN_MAX_OUT ? outside(outs[k]) : SNUG_NO_VALUE;
    return SNUG_OK;
}

snug_status snug_graph_gradients(snug_graph *graph, snug_value loss, const snug_value *wrt, int n,
                                 snug_value *grads, snug_error *err) {
    void *block;
    if (!graph || ((!wrt || !grads) && n > 0))
        return refuse_null("snug_graph_gradients", "graph, wrt and grads", err);
    if (n < 0)
        return sn_fail(err, SNUG_E_INVALID, "%d gradients asked for", n);
    const size_t bytes = 2 * (size_t)n * sizeof(sn_value);
    SNUG_TRY(sn_alloc(graph->engine, SN_MEM_GRAPH, bytes, &block, err));
    sn_value *in = block, *out = in + n;
    for (int k = 0; k < n; k++)
        in[k] = inside(wrt[k]);
    const snug_status status = sn_graph_gradients(graph, inside(loss), in, n, out, err);
    for (int k = 0; k < n && status == SNUG_OK; k++)
        grads[k] = outside(out[k]);
    sn_free(graph->engine, SN_MEM_GRAPH, block, bytes);
    return status;
}

/* --- results ---------------------------------------------------------------------------------- */

snug_status snug_graph_set_owner(snug_graph *graph, const char *layer, snug_error *err) {
    if (!graph || !layer)
        return refuse_null("snug_graph_set_owner", "graph and layer", err);
    return sn_graph_set_owner(graph, layer, err);
}

snug_status snug_graph_output(snug_graph *graph, const char *name, snug_value value,
                              snug_error *err) {
    if (!graph)
        return refuse_null("snug_graph_output", "graph", err);
    return sn_graph_output(graph, name, inside(value), err);
}

snug_status snug_graph_type(const snug_graph *graph, snug_value value, snug_type *out,
                            snug_error *err) {
    if (!graph || !out)
        return refuse_null("snug_graph_type", "graph and out", err);
    if (value.id >= sn_graph_n_values(graph))
        return sn_fail(err, SNUG_E_INVALID, "value %u is not in the graph, which has %u values",
                       value.id, sn_graph_n_values(graph));
    *out = *sn_graph_type(graph, inside(value));
    return SNUG_OK;
}

snug_status snug_graph_instantiate(const snug_graph *open, const snug_type *inputs, int n_inputs,
                                   snug_graph **out, snug_error *err) {
    SNUG_NEEDS(err, open && (inputs || n_inputs == 0) && out);
    return sn_graph_instantiate(open, inputs, n_inputs, out, err);
}

snug_status snug_graph_print(const snug_graph *graph, const snug_writer *out, snug_error *err) {
    if (!graph || !out || !out->write)
        return refuse_null("snug_graph_print", "graph, out and its write", err);
    return sn_graph_print(graph, out, err);
}

snug_status snug_graph_parse(snug_engine *engine, const char *text, snug_graph **out,
                             snug_error *err) {
    if (!engine || !text || !out)
        return refuse_null("snug_graph_parse", "engine, text and out", err);
    return sn_graph_parse(engine, text, out, err);
}
