/* step_run.h: a graph run a few times by a plan of the test's choice, and everything that came out:
 * the outputs of each run, and all variables at the end.
 *
 *     sn_step_run whole = {0}, sliced = {0};
 *     sn_step_run_make(&subject, &(sn_plan_options){0}, &whole);
 *     sn_step_run_make(&subject, &(sn_plan_options){.slices = 3}, &sliced);
 *     sn_step_run_expect_close(&sliced, &whole, 1e-12, "mlp");
 *     sn_step_run_clear(&whole);  sn_step_run_clear(&sliced);
 *
 * Plans run in a guarded, poisoned arena, which they must use to the byte. */
#ifndef SN_TESTS_STEP_RUN_H
#define SN_TESTS_STEP_RUN_H

#include "exec/exec.h"
#include "train/model.h"

#define SN_STEP_RUN_INPUTS 16

/* What is run. Nothing here is owned. */
typedef struct {
    snug_engine *engine;
    const sn_graph *graph;
    const sn_cpu_device *device;
    sn_state *start;           /* variables before the first run; stays as it is */
    snug_model *model;         /* whose optimizer and dropout set the parameters; NULL: defaults */
    const sn_model_step *step; /* with a model */
    sn_input_binding inputs[SN_STEP_RUN_INPUTS];
    int n_runs;
} sn_step_subject;

/* An output of one run, or a variable at the end. */
typedef struct {
    char name[96];
    snug_view view; /* own bytes */
} sn_step_result;

typedef struct {
    sn_step_result *results;
    size_t n;
    /* Of the plan. */
    size_t arena_bytes;
    int64_t slices;
    uint32_t n_blocks, n_recomputed;
    double seconds;
} sn_step_run;

/* Devices of the options are set here. */
void sn_step_run_make(const sn_step_subject *s, const sn_plan_options *o, sn_step_run *out);
/* SNUG_OK, or why there is no plan. */
snug_status sn_step_run_try(const sn_step_subject *s, const sn_plan_options *o, sn_step_run *out,
                            snug_error *err);
/* Results of other executors in the same form, and a state to run them on. */
sn_state *sn_step_state_copy(const sn_step_subject *s);
void sn_step_run_add_outputs(sn_step_run *r, const snug_view *outputs, uint32_t n, int run);
void sn_step_run_add_state(sn_step_run *r, sn_state *state);
/* Floats within tol of the largest magnitude in their tensor (at least 0.01); the rest equal. */
void sn_step_run_expect_close(const sn_step_run *have, const sn_step_run *want, double tol,
                              const char *what);
/* Bit for bit. */
void sn_step_run_expect_equal(const sn_step_run *have, const sn_step_run *want, const char *what);
void sn_step_run_clear(sn_step_run *r);

/* A subject from a model: its training step, made here, on the first rows of feeds. The model's
 * state gets homes for all variables; weighting NULL: none. */
typedef struct {
    snug_feed *const *x, *const *y, *const *w;
    int n_x, n_y, n_w;
    const char *class_weight; /* or NULL */
} sn_step_data;
typedef struct {
    sn_step_subject subject;
    sn_rows rows[SN_STEP_RUN_INPUTS];
} sn_model_subject;
void sn_model_subject_make(snug_model *m, int64_t batch, const sn_step_data *data,
                           sn_model_subject *out);

/* A subject from a graph of the test's own: variables from their recipes, inputs by seed and
 * position: floats in [0.5, 1.5), integers and booleans 0 or 1. */
typedef struct {
    sn_step_subject subject;
    sn_cpu_device device;
    uint64_t keys[SN_STEP_RUN_INPUTS];
} sn_graph_subject;
void sn_graph_subject_make(snug_engine *e, const sn_graph *g, uint64_t seed, sn_graph_subject *out);
void sn_graph_subject_clear(sn_graph_subject *s);

#endif
