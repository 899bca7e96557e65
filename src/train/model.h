/* model.h: what a snug_model is inside, for the files of this room and for reports.
 *
 * A model is a network, its state (homes of variables), its compile settings, and a small cache of
 * steps: each the graph and plan of one mode and batch size, with a session once it has run. All
 * sessions share one executor, so one arena.
 *
 * Invariants:
 * 1. Home i of the state is variable i of the network; the state may lag behind (sn_model_prepare
 * adds what is missing).
 * 2. A step's plan was made from its graph, and its session (if any) belongs to the executor. Steps
 * are dropped from the end of the cache; dropping gives back sessions, plans and graphs (the last
 * one also the arena), and keeps the state.
 * 3. While fit, evaluate or predict runs, the first n_pinned steps are its own and stay: its
 * callbacks may run the model too, but not change it. */
#ifndef SN_TRAIN_MODEL_H
#define SN_TRAIN_MODEL_H

#include "exec/exec.h"
#include "model/text_file.h"
#include "nn/step.h"
#include "train/compile.h"
#include "train/batch_rows.h"

#include <snug/train.h>

#define SN_MODEL_MAX_STEPS 8
#define SN_FIT_STEPS       6 /* full batch and remainder: updating, adding up, validation */

/* How examples are weighted in a step. Compared as bytes: start with zeros. */
typedef struct {
    snug_type weights[SN_MAX_TENSOR]; /* of sample weights */
    int n_weights, n_classes;
    sn_class_weight classes[SN_MAX_CLASS_WEIGHTS];
} sn_weighting;

typedef struct {
    sn_step_mode mode;
    int64_t batch;
    sn_weighting weighting;
    sn_graph *graph;
    sn_graph *fused;     /* the same with fused updates, while it is planned, or NULL */
    sn_plan *plan;       /* of one of them */
    size_t step_bytes;   /* of a step of such a plan and of the session that runs it */
    bool wanted;         /* to run; others are planned only to be looked at */
    bool streams;        /* batch after batch comes from the host */
    sn_session *session; /* NULL until sn_model_prepare */
    uint32_t x[SN_MAX_TENSOR], y[SN_MAX_TENSOR], w[SN_MAX_TENSOR]; /* inputs of the graph */
    uint32_t outputs[1 + SNUG_MAX_METRICS]; /* values; in PREDICT what each output says */
} sn_model_step;

/* Where the rows of a batch come from, for each input of a step. */
typedef struct {
    sn_rows x[SN_MAX_TENSOR], y[SN_MAX_TENSOR], w[SN_MAX_TENSOR];
} sn_batch_rows;

/* The batch whose loss was not finite, for snug_model_find_nan. The feeds in it are the
 * caller's. */
typedef struct {
    bool is_known;
    int64_t batch;
    sn_weighting weighting;
    sn_batch_rows rows;
    uint64_t dropout_key;
} sn_failed_step;

/* The smallest budget of a step, and the plan it is for. */
typedef struct {
    size_t budget;
    sn_plan_floor least;
} sn_budget_floor;

/* Which steps a run will plan: full batch and remainder of each kind. */
typedef struct {
    bool is_known;            /* else all that fit may have are booked */
    size_t n_train, n_others; /* others: validation, or evaluation or prediction alone */
} sn_foreseen;

/* Keras' LossScaleOptimizer: halved by a step that is refused for a gradient that is not finite,
 * doubled after so many that are not. */
typedef struct {
    double factor;
    int64_t good; /* steps since it changed */
} sn_loss_scale;

struct snug_model {
    snug_engine *engine;
    sn_network *network;
    sn_state *state;
    sn_cpu_device device;
    const sn_device *target; /* what plans are made for: that device, or the engine's GPU */
    const struct sn_budget_class *kind; /* whose memory the budget is of (step_budget.h) */
    sn_executor *executor;              /* NULL while no step has a session */
    sn_model_step steps[SN_MODEL_MAX_STEPS];
    int n_steps, n_pinned;
    sn_foreseen foreseen;
    sn_text_file pinned; /* a plan for training steps of pinned_batch rows, or no text */
    int64_t pinned_batch;
    uint32_t effort;      /* of the planner: times the usual work; 0: once */
    bool has_told;        /* the last refusal named the smallest budget */
    bool wants_floor;     /* of a step that fits, too */
    bool as_if_spilling;  /* plans that are only looked at may spill, without a folder, */
    bool as_if_whole;     /* or have no slices */
    sn_model_step looked; /* by sn_model_verdict, last; no session */
    sn_budget_floor looked_floor;
    size_t looked_pipeline; /* bytes of the pipeline of that look, at the least */
    sn_compiled compiled;
    char optimizer_text[640];
    int64_t iterations; /* training steps since the optimizer was new */
    sn_loss_scale scale;
    sn_failed_step failed;
};

/* Under mixed_float16, whose training has a loss scale. */
bool sn_model_scales(const snug_model *m);
/* What training steps count, from the start; with slots that are new. */
void sn_model_start_anew(snug_model *m);
/* From what a request says of them; writes every byte of *out. */
SNUG_CHECKED snug_status sn_weighting_find(const snug_model *m, const snug_plan_request *request,
                                           sn_weighting *out, snug_error *err);
/* The step for a mode, batch and weights of examples, planned; from the cache when it is there.
 * Lent until steps are dropped. */
SNUG_CHECKED snug_status sn_model_step_weighted(snug_model *m, sn_step_mode mode, int64_t batch,
                                                const sn_weighting *weighting, sn_model_step **out,
                                                snug_error *err);
/* The step that was asked for, outside the cache, as a graph without a plan (step_budget.h plans
 * it); the caller closes it. */
SNUG_CHECKED snug_status sn_model_step_open(snug_model *m, const snug_plan_request *request,
                                            sn_model_step *out, snug_error *err);
/* The graph of a step of this mode, batch and weighting, not planned yet. */
SNUG_CHECKED snug_status sn_model_step_build(snug_model *m, sn_model_step *s, snug_error *err);
void sn_model_step_close(sn_model_step *s);
/* snug_model_plan; the step it speaks of is m->looked: planned, or where it does not fit planned at
 * the floor. */
SNUG_CHECKED snug_status sn_model_verdict(snug_model *m, const snug_plan_request *request,
                                          snug_model_plan_info *out, snug_error *err);
/* The smallest budget of a step: as it is, with slots and values in a file, or without slices.
 * m->looked is closed. */
typedef enum { SN_LOOK_PLAIN, SN_LOOK_SPILLING, SN_LOOK_WHOLE } sn_look;
SNUG_CHECKED snug_status sn_model_floor(snug_model *m, const snug_plan_request *request,
                                        sn_look look, size_t *out, snug_error *err);
/* The same verdict as before on a step that did not fit, once more into m->looked. */
SNUG_CHECKED snug_status sn_model_verdict_again(snug_model *m, const snug_plan_request *request,
                                                snug_model_plan_info *inout, snug_error *err);
/* Drops all steps that are not pinned when fewer than `n` more would fit the cache. */
void sn_model_make_room(snug_model *m, int n);
/* Homes, arena and kernels for every wanted step; after an error only pinned steps are left. */
SNUG_CHECKED snug_status sn_model_prepare(snug_model *m, snug_error *err);
/* Pins every step there is; returns what sn_model_unpin is given when the run is over. */
int sn_model_pin(snug_model *m);
void sn_model_unpin(snug_model *m, int before);
/* SNUG_E_INVALID while a run has pinned steps: `what` may not change now. */
SNUG_CHECKED snug_status sn_model_check_idle(const snug_model *m, const char *what,
                                             snug_error *err);
/* Adds homes for variables the network has got since. */
SNUG_CHECKED snug_status sn_model_add_homes(snug_model *m, snug_error *err);
/* All steps; none may be pinned. */
void sn_model_drop_steps(snug_model *m);
void sn_model_unpin_plan(snug_model *m);
/* Parameters of a training step: what the optimizer changes, and keys for dropout drawn from
 * `dropout_key`. Into the step's session, or into params (one per slot of the graph) if not
 * NULL. */
void sn_model_set_params(const snug_model *m, const sn_model_step *s, uint64_t dropout_key,
                         sn_scalar *params);
/* What ends a fit: weights become their moving averages, where the optimizer keeps some. */
SNUG_CHECKED snug_status sn_model_finish_fit(snug_model *m, snug_error *err);
/* Whether y is read for output i. */
static inline bool sn_model_has_target(const snug_model *m, uint32_t i) {
    return m->compiled.objectives[i].used;
}

#endif
