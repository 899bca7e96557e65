/* step_budget.h: a step's plan within a budget of the whole process, or of a GPU's memory. What is
 * left for its arena is decided in src/budget. */
#ifndef SN_TRAIN_STEP_BUDGET_H
#define SN_TRAIN_STEP_BUDGET_H

#include "budget/room.h"
#include "budget/share.h"
#include "train/model.h"

/* What is expected when the step has run: the process beside the ledger, and what is booked for it
 * beyond that; all variables in whole pages; the books on the ledger. */
typedef struct {
    size_t process, reserve, state, books;
} sn_forecast;
/* What is still to come beside state and arena: on the ledger, and as code; and bytes of variables
 * that lie in a file and not in memory, where the planner does not count them. */
typedef struct {
    size_t reserve, code, away;
} sn_extras;
/* The plan without a limit, and what the ledger had at most while it was made. */
typedef struct {
    sn_plan_floor plan;
    size_t peak;
} sn_plain_plan;
/* What a step on a GPU needs of the host: the process with graph, plan and session, and pinned
 * memory for feeds and outputs on their way, and for what waits there because the device has no
 * room. */
typedef struct {
    size_t budget; /* the engine's; 0: none */
    size_t process, pinned, spilled;
} sn_host_share;

/* THE table of whose memory the budget of a model is of: the process's (step_budget.c), or a GPU's
 * (step_budget_gpu.c), where `process` is the context with what libraries may still take, and
 * `books` the buffers there. */
typedef struct sn_budget_class {
    bool of_process; /* graphs, plans, pipelines and homes on the host are counted in it */
    /* In reports: where what spills lies, also as the head of a column, and names of rows. */
    const char *waits, *waits_column, *books, *process, *reserve;
    size_t (*asked)(const snug_model *m); /* the budget that was asked for, where less is left */
    snug_status (*budget)(const snug_model *m, size_t *out, snug_error *err);
    /* inout->budget is set. */
    snug_status (*share)(const snug_model *m, sn_extras x, sn_share *inout, snug_error *err);
    snug_status (*forecast)(const snug_model *m, const sn_plan *plan, sn_forecast *out,
                            snug_error *err);
    snug_status (*expect)(const snug_model *m, size_t *out, snug_error *err); /* sn_model_expect */
    /* Of any plan of a step: code that its kernels make, or what libraries take for them. */
    size_t (*code)(const sn_plan *plan);
    /* What may wait outside of the memory: *may not at all; 0: no limit. */
    snug_status (*spill_room)(const snug_model *m, const sn_graph *g, bool *may, size_t *bytes,
                              snug_error *err);
    bool (*take_idle)(const snug_model *m); /* sn_model_take_idle */
    /* Of the host, where the budget is another memory's; all 0: it is the host's. */
    snug_status (*host_share)(const snug_model *m, const sn_plan *plan, sn_host_share *out,
                              snug_error *err);
    /* What the feeds of two runs take, where so much is spare; else 0. The executor takes it where
     * it has that room. */
    snug_status (*next_batch)(const snug_model *m, const sn_graph *g, size_t spare, size_t *out,
                              snug_error *err);
} sn_budget_class;

extern const sn_budget_class sn_process_budget;
const sn_budget_class *sn_budget_class_of(const sn_device *d);

/* The budget that a model has: the engine's, or its GPU's; there no budget means what is left. */
static inline snug_status sn_model_budget(const snug_model *m, size_t *out, snug_error *err) {
    return m->kind->budget(m, out, err);
}

bool sn_host_fits(const sn_host_share *s);
/* That the host's budget has room for a step, where that is not the model's. */
SNUG_CHECKED snug_status sn_model_check_host(const snug_model *m, const sn_plan *plan,
                                             snug_error *err);
static inline snug_status sn_model_forecast(const snug_model *m, const sn_plan *plan,
                                            sn_forecast *out, snug_error *err) {
    return m->kind->forecast(m, plan, out, err);
}

/* Whether a plan that was not made for the budget (0: none) is within it all the same. */
SNUG_CHECKED snug_status sn_model_check_plan(const snug_model *m, const sn_plan *plan,
                                             size_t budget, snug_error *err);

/* Other models give their idle arenas, where there is no room to plan in. Whether there were
 * any. */
static inline bool sn_model_take_idle(const snug_model *m) {
    return m->kind->take_idle(m);
}
/* The peak to expect of the process with what is on the ledger now. */
SNUG_CHECKED snug_status sn_model_peak(const snug_model *m, size_t *out, snug_error *err);
/* The same when all steps that are wanted have run, before any arena exists. */
static inline snug_status sn_model_expect(const snug_model *m, size_t *out, snug_error *err) {
    return m->kind->expect(m, out, err);
}

/* s->fused, where the step has updates that can be. */
SNUG_CHECKED snug_status sn_model_step_fuse(const snug_model *m, sn_model_step *s, snug_error *err);
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
