/* layer_call.h: what the build function of a layer sees and calls. */
#ifndef SN_NN_LAYER_CALL_H
#define SN_NN_LAYER_CALL_H

#include "graph/build.h"
#include "nn/network.h"

/* How a wrapper sees the weights of the layer inside it: `use` gives what is used in place of
 * variable number `index`. */
typedef struct {
    sn_value (*use)(sn_layer_call *wrapper, sn_layer_call *inner, int index, sn_value weight);
    sn_layer_call *wrapper;
} sn_weight_rule;

/* What a build function sees. Errors stick in b. */
struct sn_layer_call {
    sn_builder *b;
    sn_network *network;
    sn_layer *layer;
    uint32_t top;     /* the layer of the network it is, or is inside of */
    char path[160];   /* "bidirectional/forward_lstm": in front of its variables' names */
    const void *conf; /* sn_conf_<snake> */
    bool training;
    sn_policy policy; /* what it goes by: its own, or an outer layer's, or the network's */
    snug_dtype
        reads; /* variables are read in this type: what it computes in, unless it says else */
    int n_in;
    sn_value in[SN_MAX_IN];
    sn_value mask[SN_MAX_IN];     /* bool [batch, steps]; SN_NO_VALUE: nothing is masked */
    const char *role[SN_MAX_IN];  /* "initial_state" of a tensor given by keyword; NULL in order;
                                     "mask" never: those are in mask */
    bool mask_given;              /* a mask came by keyword */
    const char *call;             /* keywords that are no tensors: "use_causal_mask=true" */
    int use;                      /* how often the layer was applied before in this network */
    int n_out;                    /* 1 unless the build function says otherwise */
    sn_value out;                 /* the answer; the first of several */
    sn_value outs[SN_MAX_TENSOR]; /* outs[1], ... are the others */
    sn_value out_mask;            /* of the first output */
    bool ends_masks;              /* who reads its inputs later sees no masks on them */
    int next_var; /* how many variables were asked for so far; for sn_layer_variable */
    int next_key; /* how many keys; for sn_layer_key */
    const sn_weight_rule *rule; /* of the wrapper; NULL: none */
};

/* For build functions: the variable `var` of the layer ("kernel") as a value of the type
 * `reads`; made when new. */
sn_value sn_layer_variable(sn_layer_call *c, const char *var, const snug_type *type,
                           const sn_init *init, bool trainable);
/* Variable number `index` of the layer becomes momentum * itself + (1 - momentum) * value, when
 * sn_network_updates is called. */
void sn_layer_average(sn_layer_call *c, int index, sn_value value, double momentum);
/* Variable number `index` of the layer becomes this value, when sn_network_updates is called. */
void sn_layer_assign(sn_layer_call *c, int index, sn_value value);
/* A key for random numbers that is another one in each training step, as attributes hold it; each
 * application of a shared layer draws for itself. The parameter's default is 0, or a number that
 * follows from the layer's own seed. */
int64_t sn_layer_key(sn_layer_call *c);
/* What a layer keeps from step to step and no file holds, such as the state of a stateful RNN:
 * zeros at first, of one batch size. *home is for sn_layer_keep, which gives it its next value when
 * sn_network_updates is called. */
sn_value sn_layer_kept(sn_layer_call *c, const char *name, const snug_type *type, uint32_t *home);
void sn_layer_keep(sn_layer_call *c, uint32_t home, sn_value value);
/* A scalar to be added to the loss. */
void sn_layer_add_loss(sn_layer_call *c, sn_value loss);
/* A layer inside: enter, set in and n_in (mask, role, call, training where they matter), run; the
 * answer is in out, outs and out_mask. name NULL: its own.
 *
 *     sn_layer_call inner = sn_layer_enter(c, conf->layer, NULL);
 *     inner.in[inner.n_in++] = c->in[0];
 *     sn_layer_run(&inner); */
sn_layer_call sn_layer_enter(const sn_layer_call *c, sn_layer *inner, const char *name);
void sn_layer_run(sn_layer_call *c);
/* The keyword of the call: "" or `otherwise` when it is not given. */
void sn_call_text(sn_layer_call *c, const char *key, char *value, size_t size);
bool sn_call_flag(sn_layer_call *c, const char *key, bool otherwise);
/* A tensor given by this keyword is the mask of an input, not one more input. */
bool sn_role_is_mask(const char *role);
/* Which input has this role (the k-th of several), or -1. */
int sn_call_role(const sn_layer_call *c, const char *role, int k);
/* Real numbers in the type that halves are computed in where nothing between may be rounded: f32.
 * And the result of a layer that computes so, as its policy says. */
sn_value sn_layer_widened(sn_layer_call *c, sn_value x);
sn_value sn_layer_narrowed(sn_layer_call *c, sn_value y);
/* Goes on as if the policy named the type that halves are computed in. */
void sn_layer_without_halves(sn_layer_call *c);
/* What Keras writes in place of scores that a mask hides, before a softmax, as far as the type has
 * it: `low` of f16, -1e9 of others. */
double sn_layer_hidden(snug_dtype dtype, double low);
/* A list of up to SN_MAX_REALS numbers as a vector of the compute dtype; rounds: each as
 * sn_keras_number has it. */
sn_value sn_layer_vector(sn_layer_call *c, const double *v, int64_t n, bool rounds);
/* An array of these extents as a value of the compute dtype. A long one is a variable of the layer
 * that is no weight: nobody trains, saves or loads it. */
sn_value sn_layer_array(sn_layer_call *c, const sn_conf_array *array, const int64_t *dims,
                        int rank);
/* Makes the builder fail with the layer's name in front; printf-style. */
void sn_layer_refuse(sn_layer_call *c, snug_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
