/* network.h: what a model computes: inputs, outputs, variables, and who makes the forward part of a
 * step of them; for who puts it together and who makes steps of it. It owns no tensors.
 *
 * The forward part comes from one of two sources. Of layers it is a list of applications
 * (Sequential is a chain; shared layers and several inputs are the same structure with more edges),
 * appended one after the other to the graph of a step. Of a graph (sn_network_from_graph) its nodes
 * are. Either way for a batch size, in training or inference mode. Variables get their home ids
 * once, in creation order, when the network is first built; the caller (room train) gives each home
 * bytes in the state.
 *
 * Policies (nn/policy.h): the network has one, and a layer may have its own. Variables are cast
 * where a layer reads them, inputs where it is run. */
#ifndef SN_NN_NETWORK_H
#define SN_NN_NETWORK_H

#include "graph/graph.h"
#include "memory/names.h"
#include "nn/config.h"
#include "nn/policy.h"

#define SN_MAX_TENSOR 64 /* inputs and outputs of a network, and outputs of an application */

#define SN_LAYER_MAX_VARS 16
struct sn_layer {
    const sn_layer_class *cls;
    const char *name;
    void *conf;
    bool trainable;
    sn_policy policy; /* where it is its own */
    bool uncast;      /* autocast=False: inputs and variables are not cast to what it computes in */
    int n_vars;
    uint32_t *homes; /* [SN_LAYER_MAX_VARS] of the network's variables; set at the first build */
    int uses;        /* applications */
    uint32_t first_var, end_var; /* its weights, and those of layers within it, lie from here to
                                    there; others' may, too */
    snug_type output;            /* the first, of its first application */
};

/* A variable of the network: home id = index. */
typedef struct {
    const char *name; /* "conv2d/kernel" */
    snug_type type;
    bool trainable;
    bool slot;     /* made by the optimizer: "adam/conv2d/kernel/momentum"; slots stand behind all
                      weights */
    bool kept;     /* a slot that a layer made: what it keeps from step to step */
    bool own_type; /* its layer has a policy of its own: the network's does not change its type */
    bool own_seed; /* its initialiser names a seed: the network's seed does not change it */
    sn_recipe init;
    uint32_t layer;          /* of the network: a layer inside counts as the outer one */
    uint32_t *home;          /* the layer's entry for it; NULL for slots */
    const char *regularizer; /* of the layer's configuration: "l2:l2=0.01"; "" or NULL: none */
    const char *constraint;
    bool by_layer; /* the layer itself adds the penalty: it is of another value than the variable */
} sn_net_var;

/* A write asked for in the forward pass and done at the end of the step, behind the check of the
 * loss: a moving average, or (momentum 0) the value itself. */
typedef struct {
    uint32_t home;
    sn_value value; /* in the variable's dtype */
    double momentum;
} sn_pending_write;

/* One application of a layer. Tensors are numbered: the network's inputs, then the outputs of the
 * applications in their order; an application reads only earlier ones. */
typedef struct {
    uint32_t layer;
    int use; /* 0 for the first application of the layer */
    int n_in;
    uint32_t in[SN_MAX_IN];
    const char *role[SN_MAX_IN]; /* as in sn_layer_call */
    const char *call;
    uint32_t first; /* of its outputs */
    int n_out;
} sn_application;

/* dims[0] = -1 where it is the batch; inferred when the application is added. */
typedef struct {
    snug_type type, mask;
    bool masked;
} sn_net_tensor;

/* Where variables are read whose homes are not the graph's own: a recording has handles of its
 * own for them. */
typedef struct {
    void *ctx;
    snug_status (*read)(void *ctx, sn_graph *g, uint32_t home, sn_value *out, snug_error *err);
} sn_network_door;

/* What the network made of its inputs, one per output. */
typedef struct {
    sn_value y[SN_MAX_TENSOR];
    sn_value mask[SN_MAX_TENSOR]; /* SN_NO_VALUE: nothing is masked */
} sn_network_result;

/* Who makes the forward part of a step: layers (layer_call.c) or graphs (network_graph.c). */
typedef struct {
    /* Appends it to a graph; x has n_inputs values. */
    snug_status (*build)(sn_network *n, sn_graph *g, const sn_value *x, bool training,
                         sn_network_result *out, snug_error *err);
    /* Where the initial values of a weight without a seed of its own are drawn. */
    uint64_t (*initial_key)(const sn_network *n, uint32_t home);
} sn_network_source;

struct sn_network {
    snug_engine *engine;
    const sn_network_source *source;
    sn_graph *graph;    /* of a network made from graphs: what it computes; else NULL */
    sn_graph *training; /* what steps that train compute instead, or NULL */
    sn_zone *zone;      /* names, configurations: category MODEL */
    sn_zone *slot_zone; /* names of slots; NULL while there are none */
    const char *name;
    const char *input_names[SN_MAX_TENSOR]; /* "" for the only input of a Sequential model */
    uint32_t n_inputs;
    sn_net_tensor *tensors;
    size_t n_tensors, cap_tensors;
    sn_layer *layers;
    size_t n_layers, cap_layers;
    sn_application *applications;
    size_t n_applications, cap_applications;
    uint32_t outputs[SN_MAX_TENSOR];         /* tensors; the newest alone unless set */
    const char *output_names[SN_MAX_TENSOR]; /* where they differ from the layers' names; or NULL */
    uint32_t n_outputs;
    sn_net_var *vars;
    size_t n_vars, cap_vars;
    size_t n_weights;          /* the first variables, up to the first slot */
    sn_names var_names;        /* to indices of vars */
    sn_names layer_names;      /* to indices of layers */
    sn_names last_numbers;     /* of automatic names, by the class's snake case */
    uint32_t first_updated;    /* gradients of an update are of weights from here on */
    sn_pending_write *pending; /* of the newest sn_network_build */
    size_t n_pending, cap_pending;
    sn_value *losses; /* scalars that layers add to the loss, of the newest sn_network_build */
    size_t n_losses, cap_losses;
    sn_policy policy;
    uint64_t seed;
    const sn_network_door *door; /* NULL: variables are the graph's */
};

/* `input` has dims[0] = -1, the batch; f32, f64, i32 or i64. */
SNUG_CHECKED snug_status sn_network_create(snug_engine *e, const char *name, const snug_type *input,
                                           sn_network **out, snug_error *err);
/* Without an input: for layers that are applied by hand, and for the slots of an optimizer. */
SNUG_CHECKED snug_status sn_network_create_bare(snug_engine *e, snug_dtype dtype, sn_network **out,
                                                snug_error *err);
/* From a graph whose inputs have the batch as their first axis, open or fixed; its owners of nodes
 * are the network's layers. Writes (assign, moving_average) happen at the end of steps that train.
 * training has the same inputs, outputs and variables; without one (NULL) steps that train compute
 * `graph`, and others compute it without its dropout. Takes both graphs, also when it fails. */
SNUG_CHECKED snug_status sn_network_from_graph(sn_graph *graph, sn_graph *training,
                                               const char *name, sn_network **out, snug_error *err);
void sn_network_destroy(sn_network *n);
/* Makes `layer` (of sn_layer_make) the network's only one, to be applied by hand. */
SNUG_CHECKED snug_status sn_network_take_layer(sn_network *n, const sn_layer *layer,
                                               snug_error *err);
/* One more input, before the first layer is added. */
SNUG_CHECKED snug_status sn_network_add_input(sn_network *n, const char *name,
                                              const snug_type *input, uint32_t *tensor,
                                              snug_error *err);
/* name NULL or "": Keras' automatic one (dense, dense_1, ...). `fill` sets fields of the defaulted
 * configuration; the layer is checked by inferring its output. After an error the network is what
 * it was. */
SNUG_CHECKED snug_status sn_network_add(sn_network *n, const char *class_name, const char *name,
                                        sn_conf_fill fill, void *ctx, snug_error *err);
/* The same on any tensors; sn_network_add's is the network's output. *tensor is the number of the
 * new one. */
typedef struct {
    const char *class_name, *name;
    sn_conf_fill fill;
    void *ctx;
    const uint32_t *in;
    int n_in;
    const char *const *role; /* n_in of them, or NULL: all in order */
    const char *call;        /* or NULL */
    sn_policy policy;        /* the layer's, where it is its own */
    bool uncast;             /* autocast=False */
} sn_layer_spec;
/* *tensor is the first output; the others have the numbers behind it. */
SNUG_CHECKED snug_status sn_network_add_on(sn_network *n, const sn_layer_spec *spec,
                                           uint32_t *tensor, snug_error *err);
/* Applies a layer once more, with the same variables; of the spec only in, n_in, role and call
 * count. */
SNUG_CHECKED snug_status sn_network_apply(sn_network *n, uint32_t layer, const sn_layer_spec *spec,
                                          uint32_t *tensor, snug_error *err);
/* A layer to stand inside another, for LAYER and LAYERS fields; of the spec only class_name, name,
 * fill and ctx count. name NULL: the snake-case class. It lives as long as the network. */
SNUG_CHECKED snug_status sn_layer_make(sn_network *n, const sn_layer_spec *spec, sn_layer **out,
                                       snug_error *err);
/* The layer of this name, or n_layers. */
uint32_t sn_network_find(const sn_network *n, const char *name);
const snug_type *sn_network_type(const sn_network *n, uint32_t tensor);
void sn_network_set_outputs(sn_network *n, const uint32_t *tensors, uint32_t count);
/* The name of output i: what it was given, or that of the layer that makes it. */
SNUG_CHECKED snug_status sn_network_name_output(sn_network *n, uint32_t i, const char *name,
                                                snug_error *err);
const char *sn_network_output_name(const sn_network *n, uint32_t i);
/* Keras' layer.trainable: a frozen layer has no gradients, and batch normalisation uses its moving
 * statistics. */
void sn_network_set_trainable(sn_network *n, size_t layer, bool trainable);
/* Of all initial values. Before anything reads the variables. */
void sn_network_set_seed(sn_network *n, uint64_t seed);
/* Of all layers that have none of their own; of layers only, as a graph says its types itself.
 * Inputs are f64 where it computes in f64, else f32. Before anything reads the variables. */
SNUG_CHECKED snug_status sn_network_set_policy(sn_network *n, const sn_policy *policy,
                                               snug_error *err);
bool sn_network_trains(const sn_network *n,
                       uint32_t home); /* a weight that gets gradients: its layer is not frozen */
size_t sn_network_n_weights(const sn_network *n); /* variables that are not slots: the first ones */
bool sn_network_find_variable(const sn_network *n, const char *name, uint32_t *home);
/* A variable behind all others, in the network's own order: home id = index. Used by layers and
 * optimizers. */
SNUG_CHECKED snug_status sn_network_variable(sn_network *n, const sn_net_var *var, uint32_t *home,
                                             snug_error *err);
/* Variable `home` in this graph: its newest version, raw; declared there when it is new to it. */
SNUG_CHECKED snug_status sn_network_read(const sn_network *n, sn_graph *g, uint32_t home,
                                         sn_value *out, snug_error *err);
/* Forgets slots (the optimizer changed). Homes of weights before the first slot stay; those of a
 * layer that was added behind slots move down. */
void sn_network_drop_slots(sn_network *n);

/* Appends the network to a graph; x has n_inputs values. Registers variables on first use. */
SNUG_CHECKED snug_status sn_network_build(sn_network *n, sn_graph *g, const sn_value *x,
                                          bool training, sn_network_result *out, snug_error *err);
/* Appends the writes of the newest sn_network_build (part UPDATE). */
SNUG_CHECKED snug_status sn_network_updates(sn_network *n, sn_graph *g, snug_error *err);
/* That output i, of this type, has a row per example of the batch. */
SNUG_CHECKED snug_status sn_network_check_rows(const sn_network *n, uint32_t i,
                                               const snug_type *type, int64_t batch,
                                               snug_error *err);

#endif
