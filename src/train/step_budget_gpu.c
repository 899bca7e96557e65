/* step_budget_gpu.c: what is left of a GPU's memory for the arena of a step. All of it is counted
 * as the device counts: the context as it was measured, variables and arena in whole granules.
 *
 *     budget = context + reserve + variables + buffers + arena */
#include "train/step_budget.h"

#include "base/size.h"

#define PLACE_ALIGN 256
/* Of feeds that are not staged whole. */
#define STAGE_BYTES ((size_t)64 << 20)
/* On the host: of a plan with its session, and more for each node. */
#define PLAN_BYTES      ((size_t)512 << 10)
#define PLAN_STEP_BYTES 4096
#define KERNEL_BYTES    6144 /* of a captured run, each */

/* All variables lie in one block. */
static snug_status state_of(const snug_model *m, size_t *out, snug_error *err) {
    *out = 0;
    for (size_t i = 0; i < m->network->n_vars; i++) {
        size_t bytes;
        SNUG_TRY(snug_type_bytes(&m->network->vars[i].type, &bytes, err));
        if (!sn_size_align(bytes, PLACE_ALIGN, &bytes) || !sn_size_add(*out, bytes, out))
            return sn_fail(err, SNUG_E_OVERFLOW, "the variables exceed the address space");
    }
    return SNUG_OK;
}

static snug_status facts_of(const snug_model *m, sn_gpu_facts *out, snug_error *err) {
    const sn_gpu_device *g = sn_gpu_of(m->target);
    return g->api->facts(g->gpu, out, err);
}

static snug_status gpu_budget(const snug_model *m, size_t *out, snug_error *err) {
    const sn_gpu_device *g = sn_gpu_of(m->target);
    sn_gpu_facts f;
    SNUG_TRY(facts_of(m, &f, err));
    *out = sn_share_of_card(&f, g->budget_bytes);
    return SNUG_OK;
}

static snug_status gpu_share(const snug_model *m, sn_extras x, sn_share *inout, snug_error *err) {
    sn_share_need need = {.code_bytes = x.code};
    sn_gpu_facts f;
    SNUG_TRY(facts_of(m, &f, err));
    SNUG_TRY(state_of(m, &need.state, err));
    need.state -= x.away;
    sn_share_find_card(&f, inout->budget, &need, inout);
    return SNUG_OK;
}

static size_t gpu_code(const sn_plan *plan) {
    return sn_gpu_reserve(NULL, plan);
}

static snug_status gpu_forecast(const snug_model *m, const sn_plan *plan, sn_forecast *out,
                                snug_error *err) {
    const size_t arena = plan->memories[SN_MEM_FIRST_ARENA].bytes;
    sn_share_need need = {.books = 0};
    sn_gpu_facts f;
    sn_share share;
    SNUG_TRY(facts_of(m, &f, err));
    SNUG_TRY(state_of(m, &need.state, err));
    need.state -= plan->spilled_bytes;
    need.books = sn_gpu_granules(&f, arena) - arena;
    sn_share_find_card(&f, 0, &need, &share);
    *out = (sn_forecast){.process = share.process,
                         .reserve = sn_gpu_reserve(NULL, plan),
                         .state = share.state,
                         .books = share.books};
    return SNUG_OK;
}

/* --- the host --------------------------------------------------------------------------------- */

static snug_status feeds_of(const sn_graph *g, size_t *out, snug_error *err) {
    size_t bytes;
    *out = 0;
    for (uint32_t i = 0; i < sn_graph_n_inputs(g); i++) {
        SNUG_TRY(snug_type_bytes(sn_graph_type(g, sn_graph_input_at(g, i)), &bytes, err));
        if (!sn_size_align(bytes, PLACE_ALIGN, &bytes) || !sn_size_add(*out, bytes, out))
            *out = SIZE_MAX;
    }
    return SNUG_OK;
}

static snug_status gpu_next_batch(const snug_model *m, const sn_graph *g, size_t spare, size_t *out,
                                  snug_error *err) {
    sn_gpu_facts f;
    size_t feeds;
    SNUG_TRY(facts_of(m, &f, err));
    SNUG_TRY(feeds_of(g, &feeds, err));
    const size_t both = feeds <= STAGE_BYTES ? sn_gpu_granules(&f, 2 * feeds) : 0;
    *out = both <= spare ? both : 0;
    return SNUG_OK;
}

/* Feeds and outputs go through it (exec/gpu_bind.c). */
static snug_status staged_of(const sn_graph *g, size_t *out, snug_error *err) {
    size_t feeds, outputs = 0, bytes;
    SNUG_TRY(feeds_of(g, &feeds, err));
    for (uint32_t i = 0; i < sn_graph_n_outputs(g); i++) {
        SNUG_TRY(snug_type_bytes(sn_graph_type(g, sn_graph_output_at(g, i)), &bytes, err));
        outputs = sn_size_add(outputs, bytes, &bytes) ? bytes : SIZE_MAX / 2;
    }
    *out = outputs + (feeds < STAGE_BYTES ? feeds : STAGE_BYTES);
    return SNUG_OK;
}

static snug_status gpu_host_share(const snug_model *m, const sn_plan *plan, sn_host_share *out,
                                  snug_error *err) {
    sn_host_share s = {.budget = snug_budget_bytes(m->engine),
                       .spilled = plan->spilled_bytes + plan->spilled_value_bytes};
    SNUG_TRY(sn_model_peak(m, &s.process, err));
    SNUG_TRY(staged_of(plan->graph, &s.pinned, err));
    s.process +=
        2 * sn_zone_bytes(plan->zone) /* of the session */ + sn_gpu_kernels(plan) * KERNEL_BYTES;
    *out = s;
    return SNUG_OK;
}

static size_t sum_of(const sn_host_share *s) {
    return s->process + s->pinned + s->spilled;
}

/* Not more than what the host's budget leaves beside a plan that is still to be made. */
static snug_status gpu_spill_room(const snug_model *m, const sn_graph *g, bool *may, size_t *bytes,
                                  snug_error *err) {
    const size_t budget = snug_budget_bytes(m->engine);
    const size_t plan = PLAN_BYTES + (size_t)sn_graph_n_nodes(g) * PLAN_STEP_BYTES;
    size_t process, staged;
    *may = true;
    *bytes = 0;
    if (budget == 0)
        return SNUG_OK;
    SNUG_TRY(sn_model_peak(m, &process, err));
    SNUG_TRY(staged_of(g, &staged, err));
    *may = process + plan + staged < budget;
    *bytes = *may ? budget - process - plan - staged : 0;
    return SNUG_OK;
}

bool sn_host_fits(const sn_host_share *s) {
    return s->budget == 0 || sum_of(s) <= s->budget;
}

snug_status sn_model_check_host(const snug_model *m, const sn_plan *plan, snug_error *err) {
    sn_host_share s;
    char have[24], need[24], held[24];
    SNUG_TRY(m->kind->host_share(m, plan, &s, err));
    if (sn_host_fits(&s))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_BUDGET,
                   "the step needs %s of the host, %s of it pinned, and its budget is %s; give it "
                   "more, or use a smaller batch",
                   snug_bytes_print(sum_of(&s), need, sizeof need),
                   snug_bytes_print(s.pinned + s.spilled, held, sizeof held),
                   snug_bytes_print(s.budget, have, sizeof have));
}

/* Arenas of others are the host's. */
static bool gpu_take_idle(const snug_model *m) {
    (void)m;
    return false;
}

static size_t gpu_asked(const snug_model *m) {
    return sn_gpu_of(m->target)->budget_bytes;
}

static const sn_budget_class gpu_memory = {.waits = "pinned memory of the host",
                                           .waits_column = "    on the host",
                                           .books = "buffers",
                                           .process = "context",
                                           .reserve = "reserve for libraries",
                                           .asked = gpu_asked,
                                           .budget = gpu_budget,
                                           .share = gpu_share,
                                           .forecast = gpu_forecast,
                                           .expect = sn_model_peak,
                                           .code = gpu_code,
                                           .spill_room = gpu_spill_room,
                                           .take_idle = gpu_take_idle,
                                           .host_share = gpu_host_share,
                                           .next_batch = gpu_next_batch};

const sn_budget_class *sn_budget_class_of(const sn_device *d) {
    return sn_gpu_of(d) ? &gpu_memory : &sn_process_budget;
}
