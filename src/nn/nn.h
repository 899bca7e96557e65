/* nn.h: layers, losses, metrics, optimizers and initialisers as thin graph builders, with Keras'
 * names, defaults and numerics. A layer class is one row of layers.def and the build function it
 * names.
 *
 * sn_network is the list of layers and of their applications (Sequential is a chain; shared layers
 * and several inputs are the same structure with more edges). It owns no tensors and no graph.
 * Building appends one application after the other to a graph: for a batch size, in training or
 * inference mode. Variables get their home ids once, in creation order, when the network is first
 * built; the caller (room train) gives each home bytes in the state.
 *
 * Compute dtype: sn_network.compute_dtype may differ from variable_dtype; variables are cast at
 * reading. */
#ifndef SN_NN_NN_H
#define SN_NN_NN_H

#include "graph/build.h"
#include "memory/names.h"
#include "tensor/feed.h"

#define SN_MAX_INNER  8
#define SN_MAX_REALS  256 /* entries of the longest list of numbers in a configuration */
#define SN_MAX_TENSOR 64  /* inputs and outputs of a network, and outputs of an application */

/* Keras casts its Python numbers (SGD's momentum, slopes, scales, powers of beta) to tensors
 * through f32, also in f64 models; following it to 1e-9 takes the same rounding. */
static inline double sn_keras_number(double v) {
    return (double)(float)v;
}

/* Defaults that say "not given"; none of them can be given (sn_conf_set_number). Of sides and other
 * numbers whose default depends on the layer; of lists of axes, which may be negative; of shapes:
 * the list ends here. */
#define SN_UNSET    (-9007199254740992)
#define SN_NO_AXIS  (-9007199254740991)
#define SN_NO_ENTRY (-2)

/* --- configurations --------------------------------------------------------------------------- */
/* "glorot_uniform", "he_normal", "random_normal:stddev=0.02,seed=3", "zeros", ... parsed; see
 * init.c for Keras' list. */
typedef struct {
    char kind[32];
    double a, b;                     /* value / minval,maxval / mean,stddev / scale */
    char mode[16], distribution[24]; /* variance_scaling */
    double fan_in, fan_out;          /* 0: from the shape of the variable */
    int64_t seed;                    /* < 0: from the network's seed and the variable's name */
} sn_init;

typedef struct {
    char text[96];
} sn_conf_text;

/* What stands between the brackets of x[1:3, None, ...], in the row Operation. */
#define SN_OPERATION_LIST 16
#define SN_ITEM_OPEN      INT64_MIN /* a start, stop or step that is not given */
enum { SN_ITEM_SLICE, SN_ITEM_INDEX, SN_ITEM_NEW_AXIS, SN_ITEM_ELLIPSIS };

/* Layers inside a layer: the cells of an RNN, what a TimeDistributed applies. */
typedef struct sn_layer sn_layer;
typedef struct {
    sn_layer *at[SN_MAX_INNER];
    int64_t n;
} sn_layer_list;

/* An array of any length; the numbers lie in the network's zone. */
typedef struct {
    int64_t n;
    const double *v;
} sn_conf_array;

#define INT(key, value)     int64_t key;
#define INTS(key, n, value) int64_t key[n];
#define REAL(key, value)    double key;
#define FLAG(key, value)    int64_t key;
#define TEXT(key, value)    sn_conf_text key;
#define INIT(key, value)    sn_init key;
#define LAYER(key)          sn_layer *key;
#define LAYERS(key)         sn_layer_list key;
#define ARRAY(key)          sn_conf_array key;
#define REALS(key, most)                                                                           \
    struct {                                                                                       \
        int64_t n;                                                                                 \
        double v[most];                                                                            \
    } key;
#define SNUG_LAYER(name, snake, inputs, mask, fields)                                              \
    typedef struct {                                                                               \
        fields                                                                                     \
    } sn_conf_##snake;
#include "nn/layers.def"
#undef SNUG_LAYER
#undef INT
#undef INTS
#undef REAL
#undef REALS
#undef FLAG
#undef TEXT
#undef INIT
#undef LAYER
#undef LAYERS
#undef ARRAY

typedef enum {
    SN_CONF_INT,
    SN_CONF_INTS,
    SN_CONF_REAL,
    SN_CONF_REALS, /* how many, then they; a plain number is a list of one */
    SN_CONF_FLAG,
    SN_CONF_TEXT,
    SN_CONF_INIT,
    SN_CONF_LAYER,
    SN_CONF_LAYERS,
    SN_CONF_ARRAY
} sn_conf_kind;
typedef struct {
    const char *key;
    sn_conf_kind kind;
    size_t offset; /* in the sn_conf_ struct */
    int n; /* INTS, REALS: capacity. Unset tail entries hold the default; -2 marks "no entry" in
              shapes */
    double number;    /* default of INT, INTS, REAL, FLAG */
    const char *text; /* default of TEXT, INIT */
} sn_conf_field;

/* --- layers ----------------------------------------------------------------------------------- */
typedef struct sn_network sn_network;

/* What a layer's output says of the time steps that its input masks. */
typedef enum {
    SN_MASK_KEEP, /* the output is masked as the inputs are (where several are: all must be valid)
                   */
    SN_MASK_DROP, /* the output has no mask */
    SN_MASK_OWN   /* the build function sets out_mask */
} sn_mask_rule;

/* How a wrapper sees the weights of the layer inside it: `use` gives what is used in place of
 * variable number `index`. */
typedef struct sn_layer_call sn_layer_call;
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

typedef struct {
    const char *class_name, *snake;
    int min_in, max_in; /* how many tensors it is applied to */
    sn_mask_rule mask;
    size_t conf_bytes;
    int n_fields;
    const sn_conf_field *(*fields)(void); /* n_fields of them */
    void (*build)(sn_layer_call *c);
} sn_layer_class;

extern const sn_layer_class sn_layer_classes[];
extern const int sn_n_layer_classes;
/* Unknown: SNUG_E_UNSUPPORTED, names it, the known ones most like it, and what it would need. */
SNUG_CHECKED snug_status sn_layer_class_find(const char *name, const sn_layer_class **out,
                                             snug_error *err);

#define SN_LAYER_MAX_VARS 16
struct sn_layer {
    const sn_layer_class *cls;
    const char *name;
    void *conf;
    bool trainable;
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

struct sn_network {
    snug_engine *engine;
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
    sn_names var_names;        /* to indices of vars */
    sn_names layer_names;      /* to indices of layers */
    sn_names last_numbers;     /* of automatic names, by the class's snake case */
    uint32_t first_updated;    /* gradients of an update are of weights from here on */
    sn_pending_write *pending; /* of the newest sn_network_build */
    size_t n_pending, cap_pending;
    sn_value *losses; /* scalars that layers add to the loss, of the newest sn_network_build */
    size_t n_losses, cap_losses;
    snug_dtype variable_dtype, compute_dtype;
    uint64_t seed;
    const sn_network_door *door; /* NULL: variables are the graph's */
};

/* `input` has dims[0] = -1, the batch; f32, f64, i32 or i64. */
SNUG_CHECKED snug_status sn_network_create(snug_engine *e, const char *name, const snug_type *input,
                                           sn_network **out, snug_error *err);
/* Without an input: for layers that are applied by hand, and for the slots of an optimizer. */
SNUG_CHECKED snug_status sn_network_create_bare(snug_engine *e, snug_dtype dtype, sn_network **out,
                                                snug_error *err);
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
typedef snug_status (*sn_conf_fill)(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                    snug_error *err);
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
/* "units=64 activation=relu kernel_size=3,3" as a sn_conf_fill; ctx is the text. Layers inside:
 * "layer=LSTM(units=8)", lists with spaces between. Unknown keys are errors. */
snug_status sn_conf_fill_text(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                              snug_error *err);
/* The value of a key of such a text, "" when it is not there. sn_conf_fill_text skips "name" and
 * "trainable", which every layer has: who adds the layer reads them with this. */
SNUG_CHECKED snug_status sn_conf_text_get(const char *text, const char *key, char *value,
                                          size_t size, snug_error *err);
SNUG_CHECKED snug_status sn_conf_defaults(const sn_layer_class *cls, void *conf, snug_error *err);
/* Sets one field from its JSON-like parts; used by the JSON reader and the text form. index < 0: a
 * plain number, which fills all entries of an INTS that is not a shape (kernel_size = 3). */
SNUG_CHECKED snug_status sn_conf_set_number(const sn_conf_field *f, void *conf, int index,
                                            double value, snug_error *err);
/* That a list of n entries is one that Keras takes: strides of a Conv2D are two. */
SNUG_CHECKED snug_status sn_conf_check_count(const sn_conf_field *f, int n, snug_error *err);
/* A list that is given and has no entries: a REALS of SN_EMPTY_LIST, while one that is not given
 * has 0. */
#define SN_EMPTY_LIST (-1)
SNUG_CHECKED snug_status sn_conf_set_empty(const sn_conf_field *f, void *conf, snug_error *err);
SNUG_CHECKED snug_status sn_conf_set_text(const sn_conf_field *f, void *conf, const char *value,
                                          snug_error *err);
SNUG_CHECKED snug_status sn_init_parse(const char *text, sn_init *out, snug_error *err);
/* The recipe of a variable of this type; key is used unless the initialiser has a seed of its own.
 */
SNUG_CHECKED snug_status sn_init_recipe(const sn_init *init, const snug_type *type, uint64_t key,
                                        sn_recipe *out, snug_error *err);
/* The field of a class, or NULL. */
const sn_conf_field *sn_conf_find(const sn_layer_class *cls, const char *key);
/* Keras' layer.trainable: a frozen layer has no gradients, and batch normalisation uses its moving
 * statistics. */
void sn_network_set_trainable(sn_network *n, size_t layer, bool trainable);
/* Of all initial values; of all variables and of computation (f32 or f64). Before anything reads
 * the variables. */
void sn_network_set_seed(sn_network *n, uint64_t seed);
void sn_network_set_dtype(sn_network *n, snug_dtype dtype);
/* Keras' dtype policy: variables are kept in one type and cast to the other where they are read;
 * input and output have the compute dtype. */
void sn_network_set_policy(sn_network *n, snug_dtype variable, snug_dtype compute);
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

/* What the network made of its inputs, one per output. */
typedef struct {
    sn_value y[SN_MAX_TENSOR];
    sn_value mask[SN_MAX_TENSOR]; /* SN_NO_VALUE: nothing is masked */
} sn_network_result;
/* Appends the network to a graph; x has n_inputs values. Registers variables on first use. */
SNUG_CHECKED snug_status sn_network_build(sn_network *n, sn_graph *g, const sn_value *x,
                                          bool training, sn_network_result *out, snug_error *err);
/* For build functions: the variable `var` of the layer ("kernel") as a value in the compute dtype;
 * made when new. */
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
/* Appends the writes of the newest sn_network_build (part UPDATE). */
SNUG_CHECKED snug_status sn_network_updates(sn_network *n, sn_graph *g, snug_error *err);
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

/* Activations by Keras' names (activation.c has the list), with settings behind the name where it
 * has any: "gelu:approximate=true". */
sn_value sn_activation(sn_builder *b, const char *text, sn_value x);
/* Keras' relu: x above the threshold, at most max (below 0: no limit); slope * (x - threshold)
 * below it. */
sn_value sn_relu_with(sn_builder *b, sn_value x, double slope, double max, double threshold);

/* --- regularisers and constraints ------------------------------------------------------------- */
/* The scalar of x that "l1", "l2:l2=0.02", "l1_l2:l1=...", "orthogonal_regularizer" add to the
 * loss. */
sn_value sn_regularizer_build(sn_builder *b, const char *text, sn_value x);
/* What w becomes after an update: max_norm, min_max_norm, unit_norm, non_neg. */
sn_value sn_constraint_build(sn_builder *b, const char *text, sn_value w);
/* Whether both texts of a variable are understood and fit its type. */
SNUG_CHECKED snug_status sn_rules_check(const sn_net_var *v, snug_error *err);

/* --- losses and metrics ----------------------------------------------------------------------- */
/* Keras' names and aliases (mse = mean_squared_error = MeanSquaredError). */
typedef enum {
    SN_REDUCE_MEAN, /* Keras' sum_over_batch_size */
    SN_REDUCE_SUM,
    SN_REDUCE_WEIGHTED_MEAN /* mean_with_sample_weight: over the sum of the weights */
} sn_reduction;
typedef struct {
    char name[48]; /* canonical snake case */
    bool from_logits;
    bool sparse;                   /* integer labels without the class axis */
    double label_smoothing, delta; /* of the cross-entropies; of huber */
    double alpha, gamma;           /* of the focal cross-entropies; alpha also of tversky */
    double beta, q;                /* of tversky; of the generalised cross-entropy */
    bool apply_class_balancing;    /* of the binary focal one */
    double ignore_class;           /* of the sparse one; NaN: none */
    uint32_t axes;                 /* of dice and tversky: a set of axes; 0: all */
    sn_reduction reduction;
} sn_loss;
bool sn_loss_known(const char *name);
SNUG_CHECKED snug_status sn_loss_parse(const char *text, sn_loss *out, snug_error *err);
void sn_loss_target(const sn_loss *l, const snug_type *output, snug_type *target);
/* Per-example losses averaged over the batch (sum_over_batch_size): a scalar. Softmax / sigmoid
 * under a cross-entropy are looked through to the logits, as Keras does in graph mode. */
sn_value sn_loss_build(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred);
/* The loss of each element or row, not averaged: [batch, ...]. */
sn_value sn_loss_terms(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred);
/* The last axis of x, that of classes, as a set of axes; a scalar is refused. 0 after an error. */
uint32_t sn_last_axis(sn_builder *b, sn_value x);
/* Which of the terms count, where labels say so (ignore_class): bool, or SN_NO_VALUE. */
sn_value sn_loss_mask(sn_builder *b, const sn_loss *l, sn_value y_true);
/* A metric is sums over the batches seen, n_sums of them, and a function of the sums. For most they
 * are two: of its terms (each example's mean), and the number of examples. Settings have Keras'
 * names and defaults; those a metric does not have are as they come. */
typedef struct {
    char name[96];     /* as Keras shows it: "accuracy", "out_a_accuracy" */
    char text[160];    /* as it was asked for: "top_k_categorical_accuracy:k=3" */
    char resolved[48]; /* "sparse_categorical_accuracy", by loss and shapes */
    int64_t n_sums;
    sn_loss loss;        /* where `resolved` is the name of a loss */
    double k, threshold; /* of the top-k accuracies; of decisions, NaN: the highest class is said */
    double top_k;        /* of precision and recall; 0: all above the threshold */
    double class_id;     /* -1: all classes */
    double num_thresholds, bound; /* bound: the recall of precision_at_recall, ... */
    double curve, summation_method, average, class_aggregation; /* places in metric.h's enums */
    double beta, num_classes, num_regressors;
    double ignore_class;       /* NaN: none */
    uint64_t target_class_ids; /* bits; 0: all */
    bool multi_label, from_logits, sparse_y_true, sparse_y_pred;
    uint32_t output; /* of the network: which one it looks at */
    bool weighted;   /* by the sample weights; others count examples once each */
} sn_metric;
SNUG_CHECKED snug_status sn_metric_parse(const char *text, const sn_loss *loss,
                                         const snug_type *output, sn_metric *out, snug_error *err);
/* The sums of this batch: n_sums numbers of y_pred's dtype, in any shape. weight ([batch], y_pred's
 * dtype; for means also [batch, steps]) counts examples otherwise than once each; SN_NO_VALUE: all
 * alike. */
sn_value sn_metric_build(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred,
                         sn_value weight);
/* Whether a mask of the output acts on it: on means, as in Keras. */
bool sn_metric_masked(const sn_metric *m);
/* Whether more of it is better. */
bool sn_metric_rises(const sn_metric *m);
/* The metric from its sums over all batches; NaN where no example was seen. */
double sn_metric_finish(const sn_metric *m, const double *sums);

/* --- learning-rate schedules ------------------------------------------------------------------ */
#define SN_SCHEDULE_MAX 15 /* boundaries of piecewise_constant_decay */
/* "cosine_decay(initial_learning_rate=0.1,decay_steps=1000)": Keras' names and defaults. */
typedef struct {
    char name[32]; /* a row of schedule.c; "": none */
    char text[256];
    double initial_learning_rate, decay_steps, first_decay_steps, decay_rate, end_learning_rate;
    double power, alpha, t_mul, m_mul, warmup_steps;
    double warmup_target; /* NaN: no warmup */
    double boundaries[SN_SCHEDULE_MAX], values[SN_SCHEDULE_MAX + 1];
    int n_boundaries, n_values;
    bool staircase, cycle;
} sn_schedule;
SNUG_CHECKED snug_status sn_schedule_parse(const char *text, sn_schedule *out, snug_error *err);
/* The rate of the step behind `steps` others. */
double sn_schedule_rate(const sn_schedule *s, int64_t steps);

/* What is asked of one output of a network. */
typedef struct {
    bool used; /* it has a loss; otherwise it only gives predictions */
    sn_loss loss;
    double weight; /* of its loss in the sum */
} sn_objective;
typedef struct {
    sn_value y_true, y_pred;
    sn_value weight; /* [batch] or more of the leading axes; or SN_NO_VALUE */
    sn_value mask;   /* bool, likewise */
} sn_objective_data;
/* The loss of the output, a scalar: sn_loss_build's unless there are weights or a mask. */
sn_value sn_objective_build(sn_builder *b, const sn_objective *o, const sn_objective_data *d);
/* A weight that is 0 where the mask hides a step; either may be SN_NO_VALUE. */
sn_value sn_objective_weight(sn_builder *b, sn_value weight, sn_value mask, sn_value like);
/* Keras' class_weight: classes that are not listed count 1. Gives [batch]. */
typedef struct {
    int64_t label;
    double weight;
} sn_class_weight;
sn_value sn_class_weights_build(sn_builder *b, const sn_class_weight *classes, int n,
                                sn_value y_true, snug_dtype dtype);

/* --- optimizers ------------------------------------------------------------------------------- */
typedef struct {
    char name[16];                       /* a row of optimizer.c: sgd, adam, rmsprop, ... */
    sn_schedule schedule;                /* instead of learning_rate, where it has a name */
    double learning_rate, momentum, rho; /* Keras' names; 0 where the optimizer has none */
    double beta_1, beta_2, epsilon;
    double initial_accumulator_value, learning_rate_power;
    double l1_regularization_strength, l2_regularization_strength;
    double l2_shrinkage_regularization_strength, beta;
    double beta_2_decay, epsilon_1, epsilon_2, clip_threshold;
    double weight_decay, clipnorm, clipvalue, global_clipnorm; /* 0: off */
    double ema_momentum, ema_overwrite_frequency;              /* 0: never overwritten in a fit */
    double gradient_accumulation_steps;                        /* 0: each step updates */
    bool nesterov, amsgrad, centered, use_ema;
    bool relative_step; /* of Adafactor, whose formula has its effect anyway */
} sn_optimizer;
SNUG_CHECKED snug_status sn_optimizer_parse(const char *text, sn_optimizer *out, snug_error *err);
const char *sn_optimizer_print(const sn_optimizer *o, char *text, size_t size);
/* The learning rate of the step behind `steps` others. */
double sn_optimizer_rate(const sn_optimizer *o, int64_t steps);
/* Whether step t (from 1) updates weights; else it adds up gradients. */
bool sn_optimizer_updates(const sn_optimizer *o, int64_t step);
/* Appends updates of all trainable variables (part UPDATE), making slots as variables of the
 * network; or, for a step that does not update, adds the gradients to their accumulators. Graph
 * parameters are named "optimizer/<param>" and are set for each step by sn_optimizer_params. grads
 * are used up. */
SNUG_CHECKED snug_status sn_optimizer_build(const sn_optimizer *o, sn_network *n, sn_graph *g,
                                            sn_value *grads, int n_grads, snug_error *err);
SNUG_CHECKED snug_status sn_optimizer_accumulate(const sn_optimizer *o, sn_network *n, sn_graph *g,
                                                 const sn_value *grads, int n_grads,
                                                 snug_error *err);
/* The home of a weight's moving average (use_ema); false when there is none (yet). */
bool sn_optimizer_average(const sn_optimizer *o, const sn_network *n, uint32_t weight,
                          uint32_t *home);
typedef struct {
    const char *name;
    double value;
} sn_named_real;
#define SN_OPTIMIZER_PARAMS 16
/* Values for step t (from 1), e.g. Adam's corrected rate; up to max of them; returns how many. */
int sn_optimizer_params(const sn_optimizer *o, int64_t step, sn_named_real *out, int max);

/* --- whole steps ------------------------------------------------------------------------------ */
typedef enum {
    SN_STEP_PREDICT,
    SN_STEP_EVALUATE,
    SN_STEP_TRAIN,
    SN_STEP_ACCUMULATE /* a training step whose gradients wait for a later one to update */
} sn_step_mode;
static inline bool sn_step_trains(sn_step_mode mode) {
    return mode == SN_STEP_TRAIN || mode == SN_STEP_ACCUMULATE;
}
/* One step as a graph; check_finite on the loss before any state write; fused (sn_graph_fuse) and
 * checked. Inputs are "x", "y" of the outputs with a loss and "w" where there are sample weights;
 * outputs "y_pred" (PREDICT) or "loss" and "metric_<i>". Of several the names are "x_0", "x_1", ...
 * by input or output, and each loss is an output, "loss_0", too. */
typedef struct {
    sn_network *network;
    const sn_objective *objectives; /* one per output */
    const sn_optimizer *optimizer;
    const sn_metric *metrics;
    int n_metrics;
    const snug_type *weights; /* types of the sample weights: one for all outputs or one each */
    int n_weights;            /* 0: none */
    const sn_class_weight *classes; /* instead of sample weights, in a network of one output */
    int n_classes;
} sn_step_spec;
/* "x" or, of several, "x_2". Returns name. */
const char *sn_step_name(const char *what, uint32_t i, uint32_t n, char name[16]);
/* How many outputs have a loss. */
uint32_t sn_step_n_losses(const sn_step_spec *s);
SNUG_CHECKED snug_status sn_step_build(const sn_step_spec *s, sn_step_mode mode, int64_t batch,
                                       sn_graph **out, snug_error *err);

#endif
