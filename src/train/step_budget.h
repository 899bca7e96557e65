/* step_budget.h: a step's plan within a budget of the whole process, or of a GPU's memory. What is
 * left for its arena is decided in src/budget. */
#ifndef SN_TRAIN_STEP_BUDGET_H
#define SN_TRAIN_STEP_BUDGET_H

#include "budget/share.h"
#include "train/model.h"

/* On a GPU budget and rows are those of its memory: `process` is the context with what libraries
 * may still take, `books` the buffers there. (step_budget_gpu.c)
 *
 * The budget that a model has: the engine's, or its GPU's; there no budget means what is left. */
SNUG_CHECKED snug_status sn_model_budget(const snug_model *m, size_t *out, snug_error *err);

/* What is expected when the step has run: the process beside the ledger, and what is booked for it
 * beyond that; all variables in whole pages; the books on the ledger. */
typedef struct {
    size_t process, reserve, state, books;
} sn_forecast;
SNUG_CHECKED snug_status sn_gpu_share(const snug_model *m, size_t reserve, size_t away,
                                      sn_share *inout, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_forecast(const snug_model *m, const sn_plan *plan, sn_forecast *out,
                                         snug_error *err);
/* What a step on a GPU needs of the host: the process with graph, plan and session, and pinned
 * memory for feeds and outputs on their way, and for what waits there because the device has no
 * room. */
typedef struct {
    size_t budget; /* the engine's; 0: none */
    size_t process, pinned, spilled;
} sn_host_share;
SNUG_CHECKED snug_status sn_gpu_host_share(const snug_model *m, const sn_plan *plan,
                                           sn_host_share *out, snug_error *err);
bool sn_gpu_host_fits(const sn_host_share *s);
/* What of the device's memory the feeds of two runs take, where so much is spare; else 0. The
 * executor takes it where it has that room. */
SNUG_CHECKED snug_status sn_gpu_next_batch(const snug_model *m, const sn_graph *g, size_t spare,
                                           size_t *out, snug_error *err);
/* What of the device may wait on the host: *may not at all; 0: no limit. */
SNUG_CHECKED snug_status sn_gpu_spill_room(const snug_model *m, const sn_graph *g, bool *may,
                                           size_t *bytes, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_check_host(const snug_model *m, const sn_plan *plan,
                                           snug_error *err);
SNUG_CHECKED snug_status sn_model_forecast(const snug_model *m, const sn_plan *plan,
                                           sn_forecast *out, snug_error *err);

/* Whether a plan that was not made for the budget (0: none) is within it all the same. */
SNUG_CHECKED snug_status sn_model_check_plan(const snug_model *m, const sn_plan *plan,
                                             size_t budget, snug_error *err);

/* Other models give their idle arenas, where there is no room to plan in. Whether there were
 * any. */
bool sn_model_take_idle(const snug_model *m);
/* The peak to expect of the process with what is on the ledger now. */
SNUG_CHECKED snug_status sn_model_peak(const snug_model *m, size_t *out, snug_error *err);
/* The same when all steps that are wanted have run, before any arena exists. */
SNUG_CHECKED snug_status sn_model_expect(const snug_model *m, size_t *out, snug_error *err);

/* s->fused, where the step has updates that can be. */
SNUG_CHECKED snug_status sn_model_step_fuse(sn_model_step *s, snug_error *err);
/* Plans s->graph within the budget. A refusal (SNUG_E_BUDGET) says the smallest budget that would
 * do; *floor (may be NULL) gets it, with the arena and seconds of that plan. */
SNUG_CHECKED snug_status sn_model_plan_within(snug_model *m, sn_model_step *s, size_t budget,
                                              sn_share *share, sn_budget_floor *floor,
                                              snug_error *err);
/* Of a run that has several steps, one of which was refused: the smallest budget that suffices for
 * all of them, in place of the message of the one. The first is the one whose plan counts all
 * others in. */
typedef struct {
    sn_step_mode mode;
    int64_t batch;
    const sn_weighting *weighting;
} sn_step_key;
SNUG_CHECKED snug_status sn_model_refuse_all(snug_model *m, const sn_step_key *keys, size_t n,
                                             snug_error *err);
/* The plan of such a floor, without a search. To look for it has made the process larger than it
 * was: inout->budget is raised to what would do now. */
SNUG_CHECKED snug_status sn_model_plan_floor(snug_model *m, sn_model_step *s,
                                             sn_budget_floor *inout, snug_error *err);

/* Layer and operator where a planned step needs most; false where that is no run of one. */
bool sn_model_step_peak(const sn_model_step *s, const char **layer, const char **op);

/* The trade of plans that spill nothing, with whole budgets in place of the planner's bytes. */
SNUG_CHECKED snug_status sn_model_curve(snug_model *m, sn_model_step *s, sn_plan_point *out,
                                        uint32_t max, uint32_t *n, snug_error *err);

/* The smallest budget for the very plan that the step has; 0 without a limit, and on a GPU. */
size_t sn_model_booked(const snug_model *m, const sn_model_step *s, const sn_share *share);

#endif
