/* keras_graph.c: see keras_graph.h.
 *
 * An inbound node is, in Keras 3, {"args": [tensor or list of them], "kwargs": {}} with tensors
 * {"class_name": "__keras_tensor__", "config": {"keras_history": [layer, node, tensor]}}; before,
 * it is a list of [layer, node, tensor, kwargs]. Both are walked by the same function.
 *
 * Invariants once read:
 * 1. Nodes of one layer stand together, in the file's order; an edge is a node number.
 * 2. order holds every node once, behind those it reads.
 * 3. Every node but the output is read by another: with 2, all lead to the output. */
#include "model/keras_graph.h"

#include "model/keras_value.h"

#include <stdio.h>
#include <string.h>

#define MAX_NODES 20000 /* ordering a file that was written backwards takes their square */

typedef struct {
    sn_keras_graph *g;
    const json_t *layers;
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

/* "a, b, c" */
static void list_names(const json_t *references, char *text, size_t size) {
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < json_array_size(references) && n < size; i++) {
        const json_t *name = json_array_get(json_array_get(references, i), 0);
        n += (size_t)snprintf(text + n, size - n, "%s%.40s", i ? ", " : "",
                              json_is_string(name) ? json_string_value(name) : "?");
    }
}

/* The one entry of input_layers or output_layers: a reference, or a list of one. */
static snug_status one_end(const json_t *config, const char *key, const json_t **out,
                           snug_error *err) {
    const json_t *ends = json_object_get(config, key);
    const char *what = strcmp(key, "input_layers") == 0 ? "input" : "output";
    if (is_reference(ends)) {
        *out = ends;
        return SNUG_OK;
    }
    char names[200];
    list_names(ends, names, sizeof names);
    const size_t n = json_is_object(ends) ? json_object_size(ends) : json_array_size(ends);
    if (n > 1)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "the model has %zu %ss (%s); models of one %s are supported yet", n, what,
                       names, what);
    if (n == 0 || !is_reference(json_array_get(ends, 0)))
        return sn_fail(err, SNUG_E_FORMAT, "the model does not name its %s: %s has no entry", what,
                       key);
    *out = json_array_get(ends, 0);
    return SNUG_OK;
}

snug_status sn_keras_graph_input(const json_t *config, const json_t **layer, snug_error *err) {
    const json_t *end, *layers = json_object_get(config, "layers");
    SNUG_TRY(one_end(config, "input_layers", &end, err));
    const char *wanted = json_string_value(json_array_get(end, 0));
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *l = json_array_get(layers, i);
        const char *name = sn_keras_layer_name(l);
        if (!name || strcmp(name, wanted) != 0)
            continue;
        if (!sn_keras_is_input(l))
            return sn_fail(err, SNUG_E_FORMAT, "input_layers names '%.60s', which is no InputLayer",
                           wanted);
        *layer = l;
        return SNUG_OK;
    }
    return sn_fail(err, SNUG_E_FORMAT, "input_layers names '%.60s'; there is no such layer",
                   wanted);
}

/* --- nodes ------------------------------------------------------------------------------------ */
/* How many nodes a layer has: the input of the model has one, which reads nothing. */
static size_t count_uses(const json_t *layer, const json_t *input) {
    return layer == input ? 1 : json_array_size(json_object_get(layer, "inbound_nodes"));
}

static snug_status count_nodes(const json_t *layers, const json_t *input, size_t *out,
                               snug_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *name = sn_keras_layer_name(layer);
        SNUG_TRY(sn_keras_layer_check(layer, i, err));
        if (!name)
            return sn_fail(err, SNUG_E_FORMAT, "layer %zu has no name", i);
        const size_t uses = count_uses(layer, input);
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

static snug_status add_nodes(reader *r, const json_t *input, snug_error *err) {
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(r->layers); i++) {
        const json_t *layer = json_array_get(r->layers, i);
        const char *name = sn_keras_layer_name(layer);
        const size_t uses = count_uses(layer, input);
        if (json_object_get(r->index, name))
            return sn_fail(err, SNUG_E_FORMAT, "there are two layers '%.60s'", name);
        if (json_object_set_new(r->index, name, json_integer((json_int_t)at)) != 0)
            return sn_fail(err, SNUG_E_MEMORY, "no memory for the names of %zu layers", i + 1);
        for (size_t k = 0; k < uses; k++)
            r->g->nodes[at + k] =
                (sn_keras_node){.layer = layer, .name = name, .n_uses = (uint32_t)uses};
        at += uses;
    }
    return SNUG_OK;
}

/* The node that a reference names; `reader_name` is who names it. */
static snug_status resolve(const reader *r, const json_t *reference, const char *reader_name,
                           uint32_t *out, snug_error *err) {
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
    if (tensor != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "'%.60s' reads output %lld of '%.60s'; layers of one output are supported "
                       "yet",
                       reader_name, (long long)tensor, name);
    *out = node + (uint32_t)use;
    return SNUG_OK;
}

/* --- edges ------------------------------------------------------------------------------------ */
static snug_status refuse_argument(const sn_keras_node *node, const char *key, const json_t *value,
                                   snug_error *err) {
    char text[100];
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "layer '%.60s' is called with %.40s = %s; only tensors are supported yet",
                   node->name, key, sn_keras_show(value, text, sizeof text));
}

/* A null changes nothing; anything else must not be dropped silently. */
static snug_status check_kwargs(const sn_keras_node *node, json_t *kwargs, snug_error *err) {
    for (void *it = json_object_iter(kwargs); it; it = json_object_iter_next(kwargs, it))
        if (!json_is_null(json_object_iter_value(it)))
            return refuse_argument(node, json_object_iter_key(it), json_object_iter_value(it), err);
    return SNUG_OK;
}

static snug_status add_edge(const reader *r, sn_keras_node *node, const json_t *reference,
                            snug_error *err) {
    if (node->n_in == SN_MAX_IN)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "layer '%.60s' reads more than %d tensors",
                       node->name, SN_MAX_IN);
    SNUG_TRY(check_kwargs(node, json_array_get(reference, 3), err));
    uint32_t from;
    SNUG_TRY(resolve(r, reference, node->name, &from, err));
    node->in[node->n_in++] = from;
    r->g->nodes[from].is_read = true;
    return SNUG_OK;
}

/* Tensors in any lists around them, in both dialects. The depth of JSON is limited. */
static snug_status add_edges(const reader *r, sn_keras_node *node, const json_t *value,
                             snug_error *err) {
    const char *class_name = sn_keras_text(value, "class_name");
    if (class_name && strcmp(class_name, "__keras_tensor__") == 0)
        value = json_object_get(json_object_get(value, "config"), "keras_history");
    if (is_reference(value))
        return add_edge(r, node, value, err);
    if (!json_is_array(value) || class_name)
        return refuse_argument(node, "an argument", value, err);
    for (size_t i = 0; i < json_array_size(value); i++)
        SNUG_TRY(add_edges(r, node, json_array_get(value, i), err));
    return SNUG_OK;
}

static snug_status add_inbound(const reader *r, sn_keras_node *node, const json_t *inbound,
                               snug_error *err) {
    const json_t *args = json_object_get(inbound, "args");
    SNUG_TRY(check_kwargs(node, json_object_get(inbound, "kwargs"), err));
    SNUG_TRY(add_edges(r, node, args ? args : inbound, err));
    if (node->n_in == 0)
        return sn_fail(err, SNUG_E_FORMAT, "layer '%.60s' is applied to no tensor", node->name);
    return SNUG_OK;
}

static snug_status connect(const reader *r, const json_t *input, snug_error *err) {
    uint32_t k = 0;
    for (size_t i = 0; i < r->g->n_nodes; i++) {
        sn_keras_node *const node = &r->g->nodes[i];
        k = i && node->layer == node[-1].layer ? k + 1 : 0;
        if (node->layer == input)
            continue;
        const json_t *inbound = json_object_get(node->layer, "inbound_nodes");
        SNUG_TRY(add_inbound(r, node, json_array_get(inbound, k), err));
    }
    return SNUG_OK;
}

/* --- order ------------------------------------------------------------------------------------ */
static bool is_ready(const sn_keras_graph *g, const sn_keras_node *node) {
    bool ready = !node->placed;
    for (int k = 0; k < node->n_in && ready; k++)
        ready = g->nodes[node->in[k]].placed;
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
        if (!g->nodes[i].is_read && i != g->output)
            return sn_fail(err, SNUG_E_FORMAT, "layer '%.60s' does not lead to the model's output",
                           g->nodes[i].name);
    return SNUG_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */
static snug_status read_graph(reader *r, const json_t *config, const json_t *input,
                              snug_error *err) {
    const json_t *end;
    SNUG_TRY(add_nodes(r, input, err));
    SNUG_TRY(connect(r, input, err));
    SNUG_TRY(one_end(config, "output_layers", &end, err));
    SNUG_TRY(resolve(r, end, "output_layers", &r->g->output, err));
    SNUG_TRY(place_nodes(r, err));
    return check_reach(r->g, err);
}

snug_status sn_keras_graph_read(snug_engine *e, const json_t *config, sn_keras_graph *out,
                                snug_error *err) {
    sn_keras_graph g = {.n_nodes = 0};
    reader r = {.g = &g, .layers = json_object_get(config, "layers")};
    const json_t *input;
    void *block;
    SNUG_TRY(sn_keras_graph_input(config, &input, err));
    SNUG_TRY(count_nodes(r.layers, input, &g.n_nodes, err));
    /* At most MAX_NODES of them: the sizes cannot wrap. */
    SNUG_TRY(sn_alloc(e, SN_MEM_MODEL, g.n_nodes * sizeof *g.nodes, &block, err));
    g.nodes = block;
    snug_status status = sn_alloc(e, SN_MEM_MODEL, g.n_nodes * sizeof *g.order, &block, err);
    if (status == SNUG_OK) {
        g.order = block;
        r.index = json_object();
        status = read_graph(&r, config, input, err);
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
