/* layer.h: layers, losses, metrics and optimizers on recorded tensors (record.h): the same build
 * functions that whole models (model.h) are made of.
 *
 *     snug_layer *dense;
 *     snug_layer_create(r, "Dense", "{\"units\": 64, \"activation\": \"relu\"}", &dense, &err);
 *     snug_layer_arguments arguments = {.inputs = &x, .n_inputs = 1};
 *     snug_layer_call(dense, &arguments, &y, 1, &n, NULL, &err);
 *     snug_layer_variable(dense, 0);   // kernel: made at the first call, from the input's shape */
#ifndef SNUG_LAYER_H
#define SNUG_LAYER_H

#include <snug/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what there is ---------------------------------------------------------------------------- */
/* What a class is to who calls its layers. */
typedef enum {
    SNUG_LAYER_PLAIN = 0,
    SNUG_LAYER_PICTURE = 1,   /* takes one picture as well as a batch of them */
    SNUG_LAYER_DRAWS = 2,     /* has a seed among its variables, in Keras */
    SNUG_LAYER_AT_ONCE = 4,   /* has nothing to build: it is built when it is made */
    SNUG_LAYER_RECURRENT = 8, /* runs a cell of its own over the steps */
    SNUG_LAYER_INDICES = 16,  /* reads whole numbers */
    SNUG_LAYER_PENALTY = 32,  /* adds to the loss without being asked to */
    SNUG_LAYER_EXTENTS = 64,  /* its output's type needs every extent but the batch's */
    SNUG_LAYER_INSIDE = 128,  /* of networks in keras.applications; keras.layers lacks it */
    SNUG_LAYER_CELL = 256,    /* its variables are those of a cell inside it, in Keras */
    SNUG_LAYER_UNCAST =
        512 /* autocast is off, in Keras: inputs are not cast to what it computes in */
} snug_layer_trait;

typedef struct {
    const char *name;      /* Keras' class */
    const char *arguments; /* as Python writes them, with defaults; NULL: only files name it */
    const char *about;     /* a sentence, without its full stop */
    unsigned traits;       /* a set of snug_layer_trait */
    int drops_masks;       /* whoever comes behind sees no mask of its inputs */
} snug_layer_row;

/* A key of a class' configuration. */
typedef struct {
    const char *key;
    int numbers;      /* so many, one for each axis or side; 0: it is no such list */
    const char *text; /* the default; NULL: it is a number or a layer */
    double number;    /* the default; NaN: none, or it depends on the layer */
} snug_layer_setting;

/* 0: there is none of this number. */
SNUG_API int snug_layer_row_at(int row, snug_layer_row *out);
SNUG_API int snug_layer_setting_at(int row, int setting, snug_layer_setting *out);

/* --- layers ----------------------------------------------------------------------------------- */
typedef struct snug_layer snug_layer;

/* Keras' class and the configuration as get_config() gives it, in JSON; what is left out has its
 * default. name: in front of its variables' names. */
SNUG_API SNUG_CHECKED snug_status snug_layer_create(snug_recorder *r, const char *class_name,
                                                    const char *config_json, snug_layer **out,
                                                    snug_error *err);
SNUG_API void snug_layer_destroy(snug_layer *layer);

typedef struct {
    snug_tensor *const *inputs; /* in Keras' order; also those given by keyword */
    const char *const *roles;   /* "initial_state", "mask", ...: NULL, or NULL for those in order */
    snug_tensor *const *masks;  /* of the inputs; NULL, or NULL for none */
    int n_inputs;
    int training;
    const char *call; /* keywords that are no tensors: "use_causal_mask=true"; or NULL */
} snug_layer_arguments;
/* *mask (may be NULL) gets the mask of the first output, or NULL. State that the layer keeps
 * (moving averages) is assigned in the recording, at once. */
SNUG_API SNUG_CHECKED snug_status snug_layer_call(snug_layer *layer,
                                                  const snug_layer_arguments *arguments,
                                                  snug_tensor **outputs, int max, int *n_out,
                                                  snug_tensor **mask, snug_error *err);
/* Makes the variables for inputs of these types (dims -1: any), records nothing; and the types of
 * the outputs for them. */
SNUG_API SNUG_CHECKED snug_status snug_layer_infer(snug_layer *layer, const snug_type *inputs,
                                                   int n_inputs, snug_type *outputs, int max,
                                                   int *n_out, snug_error *err);
/* Keras' layer.trainable: a frozen layer's variables are not trainable, and batch normalisation uses
 * its moving statistics. */
SNUG_API void snug_layer_set_trainable(snug_layer *layer, int trainable);
SNUG_API int snug_layer_n_variables(const snug_layer *layer);
SNUG_API snug_variable *snug_layer_variable(const snug_layer *layer, int i); /* lent */
/* How often the layer drew from a seed of its own (0 without one); and that it goes on from there,
 * for a run that goes on (checkpoint.h). */
SNUG_API uint64_t snug_layer_draws(const snug_layer *layer);
SNUG_API SNUG_CHECKED snug_status snug_layer_set_draws(snug_layer *layer, uint64_t draws,
                                                       snug_error *err);
/* Scalars that regularisers of configuration add to the loss, of the variables as they are now;
 * and what calls since the last look added (activity regularisers). Given held. */
SNUG_API SNUG_CHECKED snug_status snug_layer_losses(snug_layer *layer, snug_tensor **out, int max,
                                                    int *n, snug_error *err);
/* What the variable becomes by its constraint after an update; recorded. */
SNUG_API SNUG_CHECKED snug_status snug_layer_constrain(snug_layer *layer, snug_error *err);

/* "sparse_categorical_crossentropy:from_logits=true"; weight and mask may be NULL. reduced 0: the
 * loss of each example. */
SNUG_API SNUG_CHECKED snug_status snug_loss_call(snug_recorder *r, const char *loss,
                                                 snug_tensor *y_true, snug_tensor *y_pred,
                                                 snug_tensor *weight, int reduced,
                                                 snug_tensor **out, snug_error *err);

/* A metric's sums over batches: kept in a variable, added to by update; the result from the sums,
 * read on the host. `loss` decides what "accuracy" means; may be NULL. */
typedef struct snug_metric snug_metric;
SNUG_API SNUG_CHECKED snug_status snug_metric_create(snug_recorder *r, const char *metric,
                                                     const char *loss, snug_metric **out,
                                                     snug_error *err);
SNUG_API void snug_metric_destroy(snug_metric *m);
SNUG_API SNUG_CHECKED snug_status snug_metric_update(snug_metric *m, snug_tensor *y_true,
                                                     snug_tensor *y_pred, snug_tensor *weight,
                                                     snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_metric_result(snug_metric *m, double *out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_metric_reset(snug_metric *m, snug_error *err);

/* "adam:lr=1e-3,beta_1=0.9" as in compile; slots are made at the first apply. */
typedef struct snug_optimizer snug_optimizer;
SNUG_API SNUG_CHECKED snug_status snug_optimizer_create(snug_recorder *r, const char *optimizer,
                                                        snug_optimizer **out, snug_error *err);
SNUG_API void snug_optimizer_destroy(snug_optimizer *o);
/* One update of all variables; grads[i] NULL: none. rate < 0: by the optimizer's own rate or
 * schedule. Recorded; counts one step. */
SNUG_API SNUG_CHECKED snug_status snug_optimizer_apply(snug_optimizer *o, snug_tensor *const *grads,
                                                       snug_variable *const *variables, int n,
                                                       double rate, snug_error *err);
/* Makes the slots of variables now, and not with their first update. */
SNUG_API SNUG_CHECKED snug_status snug_optimizer_build(snug_optimizer *o,
                                                       snug_variable *const *variables, int n,
                                                       snug_error *err);
SNUG_API int64_t snug_optimizer_steps(const snug_optimizer *o);
SNUG_API void snug_optimizer_set_steps(snug_optimizer *o, int64_t steps);
SNUG_API double snug_optimizer_rate(const snug_optimizer *o); /* of the next step */
SNUG_API void snug_optimizer_set_rate(snug_optimizer *o, double rate);
SNUG_API int snug_optimizer_n_slots(const snug_optimizer *o);
SNUG_API snug_variable *snug_optimizer_slot(const snug_optimizer *o, int i); /* lent */

#ifdef __cplusplus
}
#endif
#endif
