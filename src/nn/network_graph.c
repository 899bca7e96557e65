/* network_graph.c: a network whose forward part is a graph instead of layers: one that the public
 * builder made, or that was read from a text.
 *
 * 1. Variable i of the graph has home i. One of the training graph has the home of the variable
 *    with its name.
 * 2. What the graph writes is written at the end of a step that trains, behind the check of the
 *    loss, as what layers write; so nothing may read a version that the graph itself made.
 * 3. Owners of nodes are the network's layers, for reports and messages. A variable belongs to the
 *    layer that reads it first.
 * 4. Everything is tried once, with rows for a small batch, before a network is made of it. */
#include "nn/application.h"

#include "base/rng.h"

#include <string.h>

enum { TRIED_ROWS = 2 }; /* where no input fixes the batch */

static const sn_layer_class class_of_owners = {.class_name = "Graph", .snake = "graph"};

/* --- checks ----------------------------------------------------------------------------------- */
static snug_status check_ends(const sn_graph *g, snug_error *err) {
    if (sn_graph_n_inputs(g) == 0)
        return sn_fail(err, SNUG_E_INVALID,
                       "it has no input; a model needs one, whose first axis is the batch");
    if (sn_graph_n_outputs(g) == 0)
        return sn_fail(err, SNUG_E_INVALID,
                       "it has no output; name a value with a row per example as one");
    if (sn_graph_n_outputs(g) > SN_MAX_TENSOR)
        return sn_fail(err, SNUG_E_INVALID, "it has %u outputs; a model has at most %d",
                       sn_graph_n_outputs(g), SN_MAX_TENSOR);
    if (sn_graph_n_nodes(g) == 0)
        return sn_fail(err, SNUG_E_INVALID, "it has no operator, so there is nothing to run");
    return SNUG_OK;
}

static snug_status check_read(const sn_graph *g, sn_value v, snug_error *err) {
    const sn_value_info *info = sn_graph_value_at(g, v);
    if (info->var < 0 || info->version == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "variable '%s' is read after it was written, but a model writes at the end of a "
                   "step; read the value that is written instead",
                   sn_graph_var_at(g, (sn_var){(uint32_t)info->var})->name);
}

static bool is_write(const sn_node_info *node) {
    return sn_ops[node->op].effect == SN_STATE;
}

static snug_status check_node(const sn_graph *g, const sn_node_info *node, snug_error *err) {
    if (is_write(node) && node->op != SN_OP_assign && node->op != SN_OP_moving_average)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "%s writes a variable; in a model's graph only assign and moving_average "
                       "may, and updates by gradients are made by the model's optimizer",
                       sn_ops[node->op].name);
    for (int i = is_write(node); i < node->n_in; i++)
        SNUG_TRY(check_read(g, node->in[i], err));
    return SNUG_OK;
}

static snug_status check_graph(const sn_graph *g, snug_error *err) {
    SNUG_TRY(check_ends(g, err));
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        SNUG_TRY(check_node(g, sn_graph_node_at(g, (sn_node){i}), err));
    for (uint32_t i = 0; i < sn_graph_n_outputs(g); i++)
        SNUG_TRY(check_read(g, sn_graph_output_at(g, i), err));
    return SNUG_OK;
}

/* That the variable can have the values it is to start from. */
static snug_status check_start(snug_engine *e, const sn_variable *v, snug_error *err) {
    snug_feed *feed;
    double element;
    if (v->slot)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "variable '%s' is a slot of an optimizer; a model's optimizer makes its "
                       "own, so leave it out",
                       v->name);
    if (!sn_recipe_is_whole(&v->init))
        return sn_recipe_fill(&v->init, 0, 1, v->type.dtype, &element, err);
    SNUG_TRY(sn_feed_from_recipe(e, &v->type, &v->init, &feed, err));
    snug_feed_destroy(feed);
    return SNUG_OK;
}

/* --- one trial -------------------------------------------------------------------------------- */
static const snug_type *input_type(const sn_graph *g, uint32_t i) {
    return sn_graph_type(g, sn_graph_input_at(g, i));
}

/* The batch that the graph fixes, or -1. */
static int64_t fixed_batch(const sn_graph *g) {
    int64_t batch = -1;
    for (uint32_t i = 0; i < sn_graph_n_inputs(g) && batch < 0; i++)
        batch = input_type(g, i)->dims[0];
    return batch;
}

static snug_status try_graph(const sn_graph *g, int64_t batch, sn_graph **out, snug_error *err) {
    snug_type types[SN_MAX_TENSOR];
    for (uint32_t i = 0; i < sn_graph_n_inputs(g); i++) {
        types[i] = *input_type(g, i);
        types[i].dims[0] = batch;
    }
    const snug_status status = sn_graph_instantiate(g, types, (int)sn_graph_n_inputs(g), out, err);
    return status == SNUG_OK ? SNUG_OK
                             : sn_fail_in(err, status, "with a batch of %lld", (long long)batch);
}

/* --- the network ------------------------------------------------------------------------------ */
static snug_status add_inputs(sn_network *n, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_inputs(n->graph); i++) {
        snug_type type = *input_type(n->graph, i);
        uint32_t tensor;
        if (type.rank > 0)
            type.dims[0] = -1;
        const snug_status status =
            sn_network_add_input(n, sn_graph_input_name(n->graph, i), &type, &tensor, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "input '%s'", sn_graph_input_name(n->graph, i));
    }
    return SNUG_OK;
}

/* Outputs that are real numbers have one type, in which the model computes. */
static snug_status take_dtype(sn_network *n, snug_error *err) {
    const snug_type *first = NULL;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const snug_type *type = sn_network_type(n, n->outputs[i]);
        if (!sn_dtype_is_float(type->dtype))
            continue;
        first = first ? first : type;
        if (type->dtype != first->dtype)
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "output '%s' is %s, others before it are %s; cast it, for a model "
                           "computes in one type",
                           sn_network_output_name(n, i), snug_dtype_name(type->dtype),
                           snug_dtype_name(first->dtype));
    }
    const snug_dtype dtype = first ? first->dtype : SNUG_F32;
    n->policy = (sn_policy){.variable = dtype, .compute = dtype};
    return SNUG_OK;
}

/* Of `tried` the types are known. */
static snug_status add_outputs(sn_network *n, const sn_graph *tried, int64_t batch,
                               snug_error *err) {
    const uint32_t count = sn_graph_n_outputs(n->graph);
    uint32_t tensors[SN_MAX_TENSOR];
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->tensors, sizeof *n->tensors,
                     &n->cap_tensors, n->n_tensors + count, err));
    for (uint32_t i = 0; i < count; i++) {
        tensors[i] = (uint32_t)n->n_tensors;
        n->tensors[n->n_tensors++] =
            (sn_net_tensor){.type = *sn_graph_type(tried, sn_graph_output_at(tried, i))};
    }
    sn_network_set_outputs(n, tensors, count);
    for (uint32_t i = 0; i < count; i++) {
        snug_type *const type = &n->tensors[tensors[i]].type;
        SNUG_TRY(sn_network_name_output(n, i, sn_graph_output_name(n->graph, i), err));
        SNUG_TRY(sn_network_check_rows(n, i, type, batch, err));
        type->dims[0] = -1;
    }
    return take_dtype(n, err);
}

/* Which layer each owner, and each variable, belongs to; UINT32_MAX: none (yet). */
typedef struct {
    uint32_t *of_owner, *of_var;
} places;

/* Nodes without an owner are a layer, too. */
static const char *layer_name(const sn_graph *g, uint32_t owner) {
    return owner ? sn_graph_owner_name(g, owner) : class_of_owners.snake;
}

static snug_status add_layer(sn_network *n, const char *name, snug_error *err) {
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->layers, sizeof *n->layers,
                     &n->cap_layers, n->n_layers + 1, err));
    sn_layer *const l = &n->layers[n->n_layers];
    *l = (sn_layer){.cls = &class_of_owners, .trainable = true};
    SNUG_TRY(sn_zone_text(n->zone, name, &l->name, err));
    n->n_layers++;
    return SNUG_OK;
}

/* Nodes of `tried` are those of the graph, in order. */
static snug_status add_layers(sn_network *n, const sn_graph *tried, int64_t batch, places *p,
                              snug_error *err) {
    const sn_graph *g = n->graph;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        uint32_t *const layer = &p->of_owner[node->owner];
        if (*layer == UINT32_MAX) {
            *layer = (uint32_t)n->n_layers;
            SNUG_TRY(add_layer(n, layer_name(g, node->owner), err));
        }
        for (int k = 0; k < node->n_in; k++) {
            const sn_value_info *v = sn_graph_value_at(g, node->in[k]);
            if (v->var >= 0 && p->of_var[v->var] == UINT32_MAX)
                p->of_var[v->var] = *layer;
        }
        snug_type *const output = &n->layers[*layer].output;
        *output = *sn_graph_type(tried, sn_graph_node_at(tried, (sn_node){i})->out[0]);
        if (output->rank > 0 && output->dims[0] == batch)
            output->dims[0] = -1;
    }
    return SNUG_OK;
}

static snug_status add_variables(sn_network *n, const places *p, snug_error *err) {
    const uint32_t count = sn_graph_n_vars(n->graph);
    void *block;
    SNUG_TRY(sn_zone_alloc(n->zone, (count + 1) * sizeof(uint32_t), &block, err));
    uint32_t *const homes = block;
    for (uint32_t i = 0; i < count; i++) {
        const sn_variable *v = sn_graph_var_at(n->graph, (sn_var){i});
        const bool written = v->first.i != v->last.i;
        const sn_net_var var = {.name = v->name,
                                .type = v->type,
                                .trainable =
                                    v->trainable && !written && sn_dtype_is_float(v->type.dtype),
                                .init = v->init,
                                .layer = p->of_var[i] == UINT32_MAX ? 0 : p->of_var[i],
                                .home = &homes[i]};
        const snug_status status = check_start(n->engine, v, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "variable '%s'", v->name);
        SNUG_TRY(sn_network_variable(n, &var, &homes[i], err));
    }
    sn_network_find_ranges(n);
    return SNUG_OK;
}

static snug_status add_parts(sn_network *n, const sn_graph *tried, int64_t batch, snug_error *err) {
    const size_t n_owners = sn_graph_n_owners(n->graph), n_vars = sn_graph_n_vars(n->graph);
    const size_t bytes = (n_owners + n_vars) * sizeof(uint32_t);
    void *block;
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_MODEL, bytes, &block, err));
    memset(block, 0xff, bytes);
    places p = {block, (uint32_t *)block + n_owners};
    snug_status status = add_layers(n, tried, batch, &p, err);
    if (status == SNUG_OK)
        status = add_variables(n, &p, err);
    sn_free(n->engine, SN_MEM_MODEL, block, bytes);
    return status;
}

static snug_status fill_network(sn_network *n, const char *name, snug_error *err) {
    sn_graph *tried;
    SNUG_TRY(sn_zone_text(n->zone, name && name[0] ? name : "graph", &n->name, err));
    SNUG_TRY(check_graph(n->graph, err));
    SNUG_TRY(add_inputs(n, err));
    const int64_t fixed = fixed_batch(n->graph), batch = fixed < 0 ? TRIED_ROWS : fixed;
    SNUG_TRY(try_graph(n->graph, batch, &tried, err));
    snug_status status = add_outputs(n, tried, batch, err);
    if (status == SNUG_OK)
        status = add_parts(n, tried, batch, err);
    sn_graph_destroy(tried);
    return status;
}

/* --- the training graph ----------------------------------------------------------------------- */
/* Inputs or outputs have the same names and types in both, in the same order. */
static snug_status same_end(const char *what, const char *name, const snug_type *type,
                            const char *other, const snug_type *wanted, snug_error *err) {
    char a[192], b[192];
    if (strcmp(name, other) == 0 && sn_type_equal(type, wanted))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s '%s' is %s, where the other graph has '%s', %s", what,
                   name, snug_type_print(type, a, sizeof a), other,
                   snug_type_print(wanted, b, sizeof b));
}

static snug_status same_inputs(const sn_network *n, snug_error *err) {
    const sn_graph *a = n->training, *b = n->graph;
    if (sn_graph_n_inputs(a) != sn_graph_n_inputs(b) ||
        sn_graph_n_outputs(a) != sn_graph_n_outputs(b))
        return sn_fail(err, SNUG_E_INVALID,
                       "it has %u inputs and %u outputs, the other graph %u and %u",
                       sn_graph_n_inputs(a), sn_graph_n_outputs(a), sn_graph_n_inputs(b),
                       sn_graph_n_outputs(b));
    for (uint32_t i = 0; i < sn_graph_n_inputs(a); i++)
        SNUG_TRY(same_end("input", sn_graph_input_name(a, i), input_type(a, i),
                          sn_graph_input_name(b, i), input_type(b, i), err));
    return SNUG_OK;
}

static snug_status same_outputs(const sn_network *n, const sn_graph *tried, int64_t batch,
                                snug_error *err) {
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        snug_type wanted = *sn_network_type(n, n->outputs[i]);
        wanted.dims[0] = batch;
        SNUG_TRY(same_end("output", sn_graph_output_name(tried, i),
                          sn_graph_type(tried, sn_graph_output_at(tried, i)),
                          sn_graph_output_name(n->graph, i), &wanted, err));
    }
    return SNUG_OK;
}

/* All of them are variables of the network; what is written is not trained. */
static snug_status share_variables(sn_network *n, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_vars(n->training); i++) {
        const sn_variable *v = sn_graph_var_at(n->training, (sn_var){i});
        uint32_t home;
        if (!sn_network_find_variable(n, v->name, &home))
            return sn_fail(err, SNUG_E_INVALID,
                           "variable '%s' is not in the other graph; make it there, too", v->name);
        SNUG_TRY(same_end("variable", v->name, &v->type, v->name, &n->vars[home].type, err));
        if (v->first.i != v->last.i)
            n->vars[home].trainable = false;
    }
    return SNUG_OK;
}

static snug_status check_training(sn_network *n, snug_error *err) {
    sn_graph *tried;
    SNUG_TRY(check_graph(n->training, err));
    SNUG_TRY(same_inputs(n, err));
    const int64_t fixed = fixed_batch(n->training), batch = fixed < 0 ? TRIED_ROWS : fixed;
    SNUG_TRY(try_graph(n->training, batch, &tried, err));
    const snug_status status = same_outputs(n, tried, batch, err);
    sn_graph_destroy(tried);
    SNUG_TRY(status);
    return share_variables(n, err);
}

/* --- building steps --------------------------------------------------------------------------- */
/* The way of a graph into that of a step. */
typedef struct {
    sn_network *n;
    sn_graph_move move;
    sn_value *value; /* by old id */
    bool training;
} copier;

static snug_status check_batch(const copier *c, const sn_value *x, snug_error *err) {
    for (uint32_t i = 0; i < c->n->n_inputs; i++) {
        const int64_t fixed = input_type(c->move.from, i)->dims[0];
        const int64_t batch = sn_graph_type(c->move.to, x[i])->dims[0];
        if (fixed >= 0 && fixed != batch)
            return sn_fail(err, SNUG_E_SHAPE,
                           "graph '%s' fixes a batch of %lld rows (input '%s'), %lld are asked "
                           "for; use that batch and as many rows as fill whole batches, or leave "
                           "the first axis open",
                           c->n->name, (long long)fixed, c->n->input_names[i], (long long)batch);
    }
    return SNUG_OK;
}

/* The home of the variable that this value is a version of. */
static snug_status find_home(const copier *c, sn_value v, uint32_t *home, snug_error *err) {
    const int32_t var = sn_graph_value_at(c->move.from, v)->var;
    const char *name = sn_graph_var_at(c->move.from, (sn_var){(uint32_t)var})->name;
    if (sn_network_find_variable(c->n, name, home))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INTERNAL, "variable '%s' has no home", name);
}

/* A number that hangs on an extent is known where it has moved to. */
static snug_status find_momentum(const copier *c, const sn_node_info *node, double *out,
                                 snug_error *err) {
    sn_attrs attrs;
    sn_attrs_copy(node->op, &node->attrs, &attrs);
    const sn_param slot = {(uint32_t)attrs.momentum.momentum};
    const sn_param_info *info = sn_graph_param_at(c->move.from, slot);
    if (info->kind == SN_PARAM_INVERSE_EXTENT) {
        SNUG_TRY(sn_graph_move_attrs(&c->move, node->op, &attrs, err));
        info = sn_graph_param_at(c->move.to, (sn_param){(uint32_t)attrs.momentum.momentum});
    }
    *out = info->real;
    return SNUG_OK;
}

/* Asks for the write, for the end of the step. */
static snug_status add_write(copier *c, const sn_node_info *node, snug_error *err) {
    sn_pending_write w = {.value = c->value[node->in[1].i]};
    SNUG_TRY(find_home(c, node->in[0], &w.home, err));
    if (node->op == SN_OP_moving_average)
        SNUG_TRY(find_momentum(c, node, &w.momentum, err));
    return sn_network_add_write(c->n, &w, err);
}

static snug_status add_node(copier *c, const sn_node_info *node, snug_error *err) {
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    sn_attrs attrs;
    sn_attrs_copy(node->op, &node->attrs, &attrs);
    SNUG_TRY(sn_graph_move_attrs(&c->move, node->op, &attrs, err));
    for (int i = 0; i < node->n_in; i++)
        in[i] = c->value[node->in[i].i];
    SNUG_TRY(sn_graph_set_owner(c->move.to, layer_name(c->move.from, node->owner), err));
    SNUG_TRY(sn_graph_node(c->move.to, node->op, &attrs, in, node->n_in, outs, NULL, err));
    for (int k = 0; k < node->n_out; k++)
        c->value[node->out[k].i] = outs[k];
    return SNUG_OK;
}

/* Without a graph for training, dropout is what steps that train do. */
static snug_status add_maker(copier *c, const sn_node_info *node, snug_error *err) {
    const bool drops = c->training || c->n->training;
    if (node->op == SN_OP_dropout && !drops) {
        c->value[node->out[0].i] = c->value[node->in[0].i];
        return SNUG_OK;
    }
    if (!is_write(node))
        return add_node(c, node, err);
    return c->training ? add_write(c, node, err) : SNUG_OK;
}

/* In the order of values: variables are read where the graph has them, as layers do it. */
static snug_status add_value(copier *c, sn_value v, snug_error *err) {
    const sn_value_info *info = sn_graph_value_at(c->move.from, v);
    uint32_t home;
    if (info->kind == SN_VALUE_OUTPUT && info->index == 0)
        return add_maker(c, sn_graph_node_at(c->move.from, info->node), err);
    if (info->kind != SN_VALUE_VARIABLE)
        return SNUG_OK;
    SNUG_TRY(find_home(c, v, &home, err));
    return sn_network_read(c->n, c->move.to, home, &c->value[v.i], err);
}

static snug_status copy_graph(copier *c, const sn_value *x, sn_network_result *out,
                              snug_error *err) {
    SNUG_TRY(check_batch(c, x, err));
    for (uint32_t i = 0; i < c->n->n_inputs; i++)
        c->value[sn_graph_input_at(c->move.from, i).i] = x[i];
    for (uint32_t i = 0; i < sn_graph_n_values(c->move.from); i++)
        SNUG_TRY(add_value(c, (sn_value){i}, err));
    for (uint32_t i = 0; i < c->n->n_outputs; i++) {
        out->y[i] = c->value[sn_graph_output_at(c->move.from, i).i];
        out->mask[i] = SN_NO_VALUE;
    }
    return SNUG_OK;
}

static snug_status build_graph(sn_network *n, sn_graph *g, const sn_value *x, bool training,
                               sn_network_result *out, snug_error *err) {
    const sn_graph *from = training && n->training ? n->training : n->graph;
    const size_t n_values = sn_graph_n_values(from), n_params = sn_graph_n_params(from);
    const size_t bytes = n_values * sizeof(sn_value) + n_params * sizeof(uint32_t);
    void *block;
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_GRAPH, bytes, &block, err));
    sn_value *const value = memset(block, 0xff, bytes);
    copier c = {.n = n,
                .move = {.from = from,
                         .to = g,
                         .value = value,
                         .param = (uint32_t *)(void *)(value + n_values),
                         .unnamed = true,
                         .draws = true},
                .value = value,
                .training = training};
    const snug_status status = copy_graph(&c, x, out, err);
    sn_free(n->engine, SN_MEM_GRAPH, block, bytes);
    return status;
}

static uint64_t key_of_graph(const sn_network *n, uint32_t home) {
    const uint64_t own = sn_graph_var_at(n->graph, (sn_var){home})->init.key;
    return n->seed ? sn_rng_key(n->seed, own) : own;
}

static const sn_network_source of_graphs = {build_graph, key_of_graph};

snug_status sn_network_from_graph(sn_graph *graph, sn_graph *training, const char *name,
                                  sn_network **out, snug_error *err) {
    sn_network *n;
    snug_status status = sn_network_create_bare(sn_graph_engine(graph), SNUG_F32, &n, err);
    if (status != SNUG_OK) {
        sn_graph_destroy(graph);
        sn_graph_destroy(training);
        return status;
    }
    n->source = &of_graphs;
    n->graph = graph;
    n->training = training;
    status = fill_network(n, name, err);
    if (status != SNUG_OK)
        (void)sn_fail_in(err, status, "graph '%s'", n->name);
    else if (training && (status = check_training(n, err)) != SNUG_OK)
        (void)sn_fail_in(err, status, "the training graph of '%s'", n->name);
    if (status == SNUG_OK)
        *out = n;
    else
        sn_network_destroy(n);
    return status;
}
