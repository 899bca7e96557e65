/* keras_graph.c: see keras_graph.h.
 *
 * An inbound node is, in Keras 3, {"args": [...], "kwargs": {...}} with tensors {"class_name":
 * "__keras_tensor__", "config": {"keras_history": [layer, node, tensor]}} in any lists; before, it
 * is a list of [layer, node, tensor, kwargs]. Both are walked by the same functions.
 *
 * Invariants once read:
 * 1. Nodes of one layer stand together, in the file's order; an edge is a node number.
 * 2. order holds every node once, behind those it reads.
 * 3. Every node but inputs and outputs is read by another: with 2, all lead to an output. */
#include "model/keras_graph.h"

#include "model/keras_value.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 20000 /* ordering a file that was written backwards takes their square */

typedef struct {
    sn_keras_graph *g;
    const json_t *layers;
    const json_t *inputs[SN_MAX_TENSOR];
    int n_inputs;
    json_t *index; /* name of a layer -> its first node */
} reader;

const char *sn_keras_layer_name(const json_t *layer) {
    const char *name = sn_keras_text(layer, "name");
    return name ? name : sn_keras_text(json_object_get(layer, "config"), "name");
}

const json_t *sn_keras_layer_list(const json_t *root) {
    const json_t *config = json_object_get(root, "config");
    return json_is_array(config) ? config : json_object_get(config, "layers");
}

bool sn_keras_is_input(const json_t *layer) {
    const char *class_name = sn_keras_text(layer, "class_name");
    return class_name && strcmp(class_name, "InputLayer") == 0;
}

bool sn_keras_is_sequential(const json_t *model) {
    const char *class_name = sn_keras_text(model, "class_name");
    return class_name && strcmp(class_name, "Sequential") == 0;
}

bool sn_keras_is_functional(const json_t *model) {
    const char *class_name = sn_keras_text(model, "class_name");
    return class_name &&
           (strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0);
}

snug_status sn_keras_layer_check(const json_t *layer, size_t i, snug_error *err) {
    if (sn_keras_text(layer, "class_name") && json_is_object(json_object_get(layer, "config")))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_FORMAT, "layer %zu has no class_name or no config", i);
}

/* --- inputs and outputs of the model ---------------------------------------------------------- */
/* [layer, node, tensor] and what may follow. */
static bool is_reference(const json_t *v) {
    return json_array_size(v) >= 3 && json_is_string(json_array_get(v, 0)) &&
           json_is_integer(json_array_get(v, 1)) && json_is_integer(json_array_get(v, 2));
}

static bool is_keras_tensor(const json_t *v) {
    const char *class_name = sn_keras_text(v, "class_name");
    return class_name && strcmp(class_name, "__keras_tensor__") == 0;
}

bool sn_keras_is_tensor(const json_t *v) {
    return is_reference(v) || is_keras_tensor(v);
}

bool sn_keras_holds_tensor(const json_t *v) {
    bool found = sn_keras_is_tensor(v);
    for (size_t i = 0; i < json_array_size(v) && !found; i++)
        found = sn_keras_holds_tensor(json_array_get(v, i));
    json_t *const object = (json_t *)(uintptr_t)v;
    for (void *it = json_object_iter(object); it && !found; it = json_object_iter_next(object, it))
        found = sn_keras_holds_tensor(json_object_iter_value(it));
    return found;
}

static int by_key(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keras takes the entries of a dictionary in the order of their keys. False: there are too many. */
static bool sorted_keys(json_t *object, const char *keys[SN_MAX_TENSOR], size_t *n) {
    *n = 0;
    for (void *it = json_object_iter(object); it && *n < SN_MAX_TENSOR;
         it = json_object_iter_next(object, it))
        keys[(*n)++] = json_object_iter_key(it);
    qsort(keys, *n, sizeof *keys, by_key);
    return *n == json_object_size(object);
}

static snug_status add_end(sn_keras_ends *ends, const json_t *value, const char *key,
                           const char *what, snug_error *err);

static snug_status add_dictionary(sn_keras_ends *ends, const json_t *object, const char *what,
                                  snug_error *err) {
    const char *keys[SN_MAX_TENSOR];
    size_t n;
    if (!sorted_keys((json_t *)(uintptr_t)object, keys, &n))
        return add_end(ends, NULL, NULL, what, err);
    for (size_t i = 0; i < n; i++)
        SNUG_TRY(add_end(ends, json_object_get(object, keys[i]), keys[i], what, err));
    return SNUG_OK;
}

/* A reference, or lists and dictionaries of them. NULL: one too many. */
static snug_status add_end(sn_keras_ends *ends, const json_t *value, const char *key,
                           const char *what, snug_error *err) {
    if (!value || (is_reference(value) && ends->n == SN_MAX_TENSOR))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the model has more than %d %ss", SN_MAX_TENSOR,
                       what);
    if (is_reference(value)) {
        ends->reference[ends->n] = value;
        ends->key[ends->n++] = key;
        return SNUG_OK;
    }
    if (json_is_object(value))
        return add_dictionary(ends, value, what, err);
    if (!json_is_array(value))
        return sn_fail(err, SNUG_E_FORMAT, "an %s of the model is no [layer, node, tensor]", what);
    for (size_t i = 0; i < json_array_size(value); i++)
        SNUG_TRY(add_end(ends, json_array_get(value, i), key, what, err));
    return SNUG_OK;
}

static snug_status read_ends(const json_t *config, const char *key, sn_keras_ends *out,
                             snug_error *err) {
    const char *what = strcmp(key, "input_layers") == 0 ? "input" : "output";
    const json_t *ends = json_object_get(config, key);
    out->n = 0;
    if (ends)
        SNUG_TRY(add_end(out, ends, NULL, what, err));
    if (out->n == 0)
        return sn_fail(err, SNUG_E_FORMAT, "the model does not name its %s: %s has no entry", what,
                       key);
    return SNUG_OK;
}

static snug_status find_input(const json_t *layers, const char *wanted, const json_t **out,
                              snug_error *err) {
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *l = json_array_get(layers, i);
        const char *name = sn_keras_layer_name(l);
        if (!name || strcmp(name, wanted) != 0)
            continue;
        if (!sn_keras_is_input(l))
            return sn_fail(err, SNUG_E_FORMAT, "input_layers names '%.60s', which is no InputLayer",
                           wanted);
        *out = l;
        return SNUG_OK;
    }
    return sn_fail(err, SNUG_E_FORMAT, "input_layers names '%.60s'; there is no such layer",
                   wanted);
}

snug_status sn_keras_graph_inputs(const json_t *config, const json_t **layers, int *n,
                                  snug_error *err) {
    sn_keras_ends ends;
    SNUG_TRY(read_ends(config, "input_layers", &ends, err));
    for (int i = 0; i < ends.n; i++)
        SNUG_TRY(find_input(json_object_get(config, "layers"),
                            json_string_value(json_array_get(ends.reference[i], 0)), &layers[i],
                            err));
    *n = ends.n;
    return SNUG_OK;
}

/* --- nodes ------------------------------------------------------------------------------------ */
/* Which input of the model a layer is, or -1. */
static int input_number(const reader *r, const json_t *layer) {
    int i = 0;
    while (i < r->n_inputs && r->inputs[i] != layer)
        i++;
    return i < r->n_inputs ? i : -1;
}

/* How many nodes a layer has: an input of the model has one, which reads nothing. */
static size_t count_uses(const reader *r, const json_t *layer) {
    return input_number(r, layer) >= 0 ? 1
                                       : json_array_size(json_object_get(layer, "inbound_nodes"));
}

static snug_status count_nodes(const reader *r, size_t *out, snug_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(r->layers); i++) {
        const json_t *layer = json_array_get(r->layers, i);
        const char *name = sn_keras_layer_name(layer);
        SNUG_TRY(sn_keras_layer_check(layer, i, err));
        if (!name)
            return sn_fail(err, SNUG_E_FORMAT, "layer %zu has no name", i);
        const size_t uses = count_uses(r, layer);
        if (uses == 0)
            return sn_fail(err, SNUG_E_FORMAT,
                           "layer '%.60s' is connected to nothing: it has no inbound_nodes", name);
        n += uses;
        if (n > MAX_NODES)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "the model applies layers more than %d times",
                           MAX_NODES);
    }
    *out = n;
    return SNUG_OK;
}

static snug_status add_nodes(reader *r, snug_error *err) {
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(r->layers); i++) {
        const json_t *layer = json_array_get(r->layers, i);
        const char *name = sn_keras_layer_name(layer);
        const size_t uses = count_uses(r, layer);
        if (json_object_get(r->index, name))
            return sn_fail(err, SNUG_E_FORMAT, "there are two layers '%.60s'", name);
        if (json_object_set_new(r->index, name, json_integer((json_int_t)at)) != 0)
            return sn_fail(err, SNUG_E_MEMORY, "no memory for the names of %zu layers", i + 1);
        for (size_t k = 0; k < uses; k++)
            r->g->nodes[at + k] = (sn_keras_node){.layer = layer,
                                                  .name = name,
                                                  .n_uses = (uint32_t)uses,
                                                  .input = input_number(r, layer)};
        at += uses;
    }
    return SNUG_OK;
}

/* The tensor that a reference names; `reader_name` is who names it. How many outputs a layer has is
 * known when it is built. */
static snug_status resolve(const reader *r, const json_t *reference, const char *reader_name,
                           sn_keras_edge *out, snug_error *err) {
    const char *name = json_string_value(json_array_get(reference, 0));
    const json_int_t use = json_integer_value(json_array_get(reference, 1));
    const json_int_t tensor = json_integer_value(json_array_get(reference, 2));
    const json_t *first = json_object_get(r->index, name);
    if (!first)
        return sn_fail(err, SNUG_E_FORMAT, "'%.60s' reads from '%.60s'; there is no such layer",
                       reader_name, name);
    const uint32_t node = (uint32_t)json_integer_value(first);
    if (use < 0 || use >= (json_int_t)r->g->nodes[node].n_uses)
        return sn_fail(err, SNUG_E_FORMAT,
                       "'%.60s' reads application %lld of '%.60s', which is applied %u times",
                       reader_name, (long long)use, name, r->g->nodes[node].n_uses);
    if (tensor < 0 || tensor >= SN_MAX_TENSOR)
        return sn_fail(err, SNUG_E_FORMAT, "'%.60s' reads output %lld of '%.60s'", reader_name,
                       (long long)tensor, name);
    *out = (sn_keras_edge){.node = node + (uint32_t)use, .index = (int)tensor};
    r->g->nodes[out->node].is_read = true;
    return SNUG_OK;
}

/* --- edges ------------------------------------------------------------------------------------ */
static snug_status add_edge(const reader *r, sn_keras_node *node, const json_t *reference,
                            const char *role, snug_error *err) {
    if (node->n_in == SN_MAX_IN)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "layer '%.60s' reads more than %d tensors",
                       node->name, SN_MAX_IN);
    sn_keras_edge *const edge = &node->in[node->n_in];
    SNUG_TRY(resolve(r, reference, node->name, edge, err));
    edge->role = role;
    node->n_in++;
    return SNUG_OK;
}

/* Tensors in any lists around them, in both dialects. The depth of JSON is limited. */
static snug_status add_edges(const reader *r, sn_keras_node *node, const json_t *value,
                             const char *role, snug_error *err) {
    char text[100];
    if (is_keras_tensor(value))
        value = json_object_get(json_object_get(value, "config"), "keras_history");
    if (is_reference(value))
        return add_edge(r, node, value, role, err);
    if (json_is_null(value))
        return SNUG_OK;
    const char *keys[SN_MAX_TENSOR];
    size_t n = 0;
    const bool named = json_is_object(value) && !sn_keras_text(value, "class_name") &&
                       sorted_keys((json_t *)(uintptr_t)value, keys, &n);
    if (!json_is_array(value) && !named)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "layer '%.60s' is called with %s among tensors; use tensors only",
                       node->name, sn_keras_show(value, text, sizeof text));
    for (size_t i = 0; i < n; i++)
        SNUG_TRY(add_edges(r, node, json_object_get(value, keys[i]), role, err));
    for (size_t i = 0; i < json_array_size(value); i++)
        SNUG_TRY(add_edges(r, node, json_array_get(value, i), role, err));
    return SNUG_OK;
}

/* One argument given in order. */
static snug_status add_argument(const reader *r, sn_keras_node *node, const json_t *value,
                                snug_error *err) {
    if (node->n_args == SN_KERAS_MAX_ARGS)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "layer '%.60s' is called with more than %d values",
                       node->name, SN_KERAS_MAX_ARGS);
    const bool tensors = sn_keras_holds_tensor(value);
    node->args[node->n_args++] = value;
    return tensors ? add_edges(r, node, value, NULL, err) : SNUG_OK;
}

static snug_status add_keywords(const reader *r, sn_keras_node *node, json_t *kwargs,
                                snug_error *err) {
    node->kwargs = kwargs;
    for (void *it = json_object_iter(kwargs); it; it = json_object_iter_next(kwargs, it))
        if (sn_keras_holds_tensor(json_object_iter_value(it)))
            SNUG_TRY(add_edges(r, node, json_object_iter_value(it), json_object_iter_key(it), err));
    return SNUG_OK;
}

/* tf.keras 2: [layer, node, tensor, kwargs] in a list; ["_CONSTANT_VALUE", -1, 1.5, kwargs] is a
 * number in the place of the tensor. Keywords stand with every tensor; they are read once. */
static snug_status add_old(const reader *r, sn_keras_node *node, const json_t *inbound,
                           snug_error *err) {
    if (is_reference(inbound) || json_is_string(json_array_get(inbound, 0))) {
        const char *name = json_string_value(json_array_get(inbound, 0));
        const bool constant = strcmp(name, "_CONSTANT_VALUE") == 0;
        SNUG_TRY(add_argument(r, node, constant ? json_array_get(inbound, 2) : inbound, err));
        json_t *kwargs = json_array_get(inbound, 3);
        return json_is_object(kwargs) && !node->kwargs ? add_keywords(r, node, kwargs, err)
                                                       : SNUG_OK;
    }
    if (!json_is_array(inbound))
        return sn_fail(err, SNUG_E_FORMAT, "layer '%.60s' reads what is no tensor", node->name);
    for (size_t i = 0; i < json_array_size(inbound); i++)
        SNUG_TRY(add_old(r, node, json_array_get(inbound, i), err));
    return SNUG_OK;
}

static snug_status add_inbound(const reader *r, sn_keras_node *node, const json_t *inbound,
                               snug_error *err) {
    const json_t *args = json_object_get(inbound, "args");
    node->is_old = !json_is_object(inbound);
    if (node->is_old)
        SNUG_TRY(add_old(r, node, inbound, err));
    for (size_t i = 0; i < json_array_size(args); i++)
        SNUG_TRY(add_argument(r, node, json_array_get(args, i), err));
    if (json_is_object(inbound))
        SNUG_TRY(add_keywords(r, node, json_object_get(inbound, "kwargs"), err));
    if (node->n_in == 0)
        return sn_fail(err, SNUG_E_FORMAT, "layer '%.60s' is applied to no tensor", node->name);
    return SNUG_OK;
}

static snug_status connect(const reader *r, snug_error *err) {
    uint32_t k = 0;
    for (size_t i = 0; i < r->g->n_nodes; i++) {
        sn_keras_node *const node = &r->g->nodes[i];
        k = i && node->layer == node[-1].layer ? k + 1 : 0;
        if (node->input >= 0)
            continue;
        const json_t *inbound = json_object_get(node->layer, "inbound_nodes");
        SNUG_TRY(add_inbound(r, node, json_array_get(inbound, k), err));
    }
    return SNUG_OK;
}

static snug_status add_outputs(const reader *r, const json_t *config, snug_error *err) {
    sn_keras_ends ends;
    SNUG_TRY(read_ends(config, "output_layers", &ends, err));
    for (int i = 0; i < ends.n; i++) {
        sn_keras_edge *const edge = &r->g->outputs[i];
        SNUG_TRY(resolve(r, ends.reference[i], "output_layers", edge, err));
        r->g->output_names[i] = ends.key[i] ? ends.key[i] : r->g->nodes[edge->node].name;
    }
    r->g->n_outputs = ends.n;
    return SNUG_OK;
}

/* --- order ------------------------------------------------------------------------------------ */
static bool is_ready(const sn_keras_graph *g, const sn_keras_node *node) {
    bool ready = !node->placed;
    for (int k = 0; k < node->n_in && ready; k++)
        ready = g->nodes[node->in[k].node].placed;
    return ready;
}

/* Whether another node of its layer was placed. */
static bool is_repeated(const reader *r, const sn_keras_node *node) {
    const json_int_t first = json_integer_value(json_object_get(r->index, node->name));
    uint32_t k = 0;
    while (k < node->n_uses && !r->g->nodes[(size_t)first + k].placed)
        k++;
    return k < node->n_uses;
}

/* In the file's order as far as possible: Keras numbers weights by it. What cannot be placed waits
 * for itself. */
static snug_status place_nodes(const reader *r, snug_error *err) {
    sn_keras_graph *const g = r->g;
    size_t n = 0, before;
    do {
        before = n;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
            if (!is_ready(g, &g->nodes[i]))
                continue;
            g->nodes[i].again = is_repeated(r, &g->nodes[i]);
            g->nodes[i].placed = true;
            g->order[n++] = i;
        }
    } while (n > before);
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].placed)
            return sn_fail(err, SNUG_E_FORMAT,
                           "layer '%.60s' waits for its own output: the layers form a cycle",
                           g->nodes[i].name);
    return SNUG_OK;
}

static snug_status check_reach(const sn_keras_graph *g, snug_error *err) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].is_read && g->nodes[i].input < 0)
            return sn_fail(err, SNUG_E_FORMAT, "layer '%.60s' does not lead to the model's output",
                           g->nodes[i].name);
    return SNUG_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */
static snug_status read_graph(reader *r, const json_t *config, snug_error *err) {
    SNUG_TRY(add_nodes(r, err));
    SNUG_TRY(connect(r, err));
    SNUG_TRY(add_outputs(r, config, err));
    SNUG_TRY(place_nodes(r, err));
    return check_reach(r->g, err);
}

snug_status sn_keras_graph_read(snug_engine *e, const json_t *config, sn_keras_graph *out,
                                snug_error *err) {
    sn_keras_graph g = {.n_nodes = 0};
    reader r = {.g = &g, .layers = json_object_get(config, "layers")};
    void *block;
    SNUG_TRY(sn_keras_graph_inputs(config, r.inputs, &r.n_inputs, err));
    g.n_inputs = r.n_inputs;
    SNUG_TRY(count_nodes(&r, &g.n_nodes, err));
    /* At most MAX_NODES of them: the sizes cannot wrap. */
    SNUG_TRY(sn_alloc(e, SN_MEM_MODEL, g.n_nodes * sizeof *g.nodes, &block, err));
    g.nodes = block;
    snug_status status = sn_alloc(e, SN_MEM_MODEL, g.n_nodes * sizeof *g.order, &block, err);
    if (status == SNUG_OK) {
        g.order = block;
        r.index = json_object();
        status = read_graph(&r, config, err);
        json_decref(r.index);
    }
    if (status == SNUG_OK)
        *out = g;
    else
        sn_keras_graph_clear(e, &g);
    return status;
}

void sn_keras_graph_clear(snug_engine *e, sn_keras_graph *g) {
    sn_free(e, SN_MEM_MODEL, g->order, g->n_nodes * sizeof *g->order);
    sn_free(e, SN_MEM_MODEL, g->nodes, g->n_nodes * sizeof *g->nodes);
}
