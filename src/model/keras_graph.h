/* keras_graph.h: which layer of a Functional model is applied to what, from its inbound_nodes.
 *
 *     sn_keras_graph g;
 *     SNUG_TRY(sn_keras_graph_read(e, config, &g, err));
 *     for (size_t i = 0; i < g.n_nodes; i++)
 *         apply g.nodes[g.order[i]] to the tensors of its inputs
 *     sn_keras_graph_clear(e, &g);
 *
 * The reader only looks at names and edges; it makes no layer. It lends from the JSON tree. */
#ifndef SN_MODEL_KERAS_GRAPH_H
#define SN_MODEL_KERAS_GRAPH_H

#include "nn/network.h"

#include <jansson.h>

#define SN_KERAS_MAX_ARGS 8

/* A tensor that is read: output `index` of a node. */
typedef struct {
    uint32_t node;
    int index;
    const char *role; /* the keyword it is given by; NULL: in order */
} sn_keras_edge;

/* One application of a layer. */
typedef struct {
    const json_t *layer;
    const char *name;
    uint32_t n_uses; /* on the first node of a layer: how many it has, one after the other */
    bool again;      /* another node of this layer comes earlier in the order */
    bool placed, is_read;
    bool is_old; /* written by tf.keras 2 */
    int input;   /* which input of the model it is, or -1 */
    int n_in;
    sn_keras_edge in[SN_MAX_IN];
    const json_t *args[SN_KERAS_MAX_ARGS]; /* arguments in order, tensors among them */
    int n_args;
    json_t *kwargs; /* of the call, tensors among them; may be NULL */
} sn_keras_node;

/* Inputs or outputs of a model in Keras' order: that of the list, or of a dictionary's keys. */
typedef struct {
    const json_t *reference[SN_MAX_TENSOR]; /* [layer, node, tensor] */
    const char *key[SN_MAX_TENSOR];         /* of the dictionary, or NULL */
    int n;
} sn_keras_ends;

typedef struct {
    sn_keras_node *nodes;
    uint32_t *order; /* node numbers; each stands behind those it reads */
    size_t n_nodes;
    int n_inputs, n_outputs;
    sn_keras_edge outputs[SN_MAX_TENSOR];
    const char *output_names[SN_MAX_TENSOR]; /* of the dictionary or of the layers */
} sn_keras_graph;

/* `config` is the model's. SNUG_E_FORMAT with the layer's name: cycles, unknown or repeated names,
 * layers that nothing feeds or that do not lead to an output, no input or output. */
SNUG_CHECKED snug_status sn_keras_graph_read(snug_engine *e, const json_t *config,
                                             sn_keras_graph *out, snug_error *err);
void sn_keras_graph_clear(snug_engine *e, sn_keras_graph *g);

/* The layers of the list that a Functional model names as its inputs; layers[SN_MAX_TENSOR]. */
SNUG_CHECKED snug_status sn_keras_graph_inputs(const json_t *config, const json_t **layers, int *n,
                                               snug_error *err);

/* Whether it is a tensor, in either dialect; whether it is one or has one in it. */
bool sn_keras_is_tensor(const json_t *value);
bool sn_keras_holds_tensor(const json_t *value);

/* --- what the readers of models share --------------------------------------------------------- */
/* Of a model; the oldest files have a bare list as config. */
const json_t *sn_keras_layer_list(const json_t *model);
bool sn_keras_is_input(const json_t *layer);
bool sn_keras_is_sequential(const json_t *model);
bool sn_keras_is_functional(const json_t *model); /* tf.keras 2 calls some of them Model */
/* Layer i of a list has a class and a configuration. */
SNUG_CHECKED snug_status sn_keras_layer_check(const json_t *layer, size_t i, snug_error *err);
/* "name" beside the class or in the configuration; NULL when there is none. */
const char *sn_keras_layer_name(const json_t *layer);

#endif
