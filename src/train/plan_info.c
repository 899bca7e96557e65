/* plan_info.c: the verdict on a step before it runs: whether it fits, what it will use, how long it
 * will take, and what the smallest budget would be. The step that was looked at last stays with the
 * model, outside the cache of steps that run. */
#include "train/step_budget.h"

#include "base/file.h"
#include "memory/pool.h"
#include "train/stream.h"

/* Under a minute for ImageNet's networks. */
#define BEST_EFFORT 64
#define PAGE_BYTES  ((size_t)4096)

static void sum_state(const snug_model *m, snug_model_plan_info *out) {
    for (size_t i = 0; i < m->network->n_vars; i++) {
        const sn_net_var *v = &m->network->vars[i];
        const size_t bytes = (size_t)sn_type_count(&v->type) * snug_dtype_bytes(v->type.dtype);
        *(v->slot ? &out->optimizer_bytes : &out->weights_bytes) += bytes;
    }
}

bool sn_model_step_peak(const sn_model_step *s, const char **layer, const char **op) {
    const sn_plan *plan = s->plan;
    *layer = *op = "";
    if (plan->peak_step >= plan->n_steps || plan->steps[plan->peak_step].kind != SN_STEP_RUN)
        return false;
    const sn_node_info *node = sn_graph_node_at(plan->graph, plan->steps[plan->peak_step].node);
    *layer = sn_graph_owner_name(plan->graph, node->owner);
    *op = sn_ops[node->op].name;
    return true;
}

static void tell_plan(const sn_model_step *s, snug_model_plan_info *out) {
    const sn_plan *plan = s->plan;
    const sn_plan_memory *arena = &plan->memories[SN_MEM_FIRST_ARENA];
    sn_plan_categories live;
    sn_plan_peak_categories(plan, &live);
    out->arena_bytes = arena->bytes;
    out->lower_bound_bytes = arena->lower_bound_bytes;
    out->input_bytes = live.inputs;
    out->activation_bytes = live.activations;
    out->gradient_bytes = live.gradients;
    out->workspace_bytes = live.workspace;
    out->output_bytes = live.outputs;
    out->graph_bytes = sn_graph_bytes(plan->graph);
    out->plan_bytes = sn_zone_bytes(plan->zone);
    out->slices = plan->slices;
    out->recomputed = plan->n_recomputed;
    out->again_seconds = plan->again_seconds;
    out->spill_seconds = plan->spill_seconds;
    out->spilled_bytes = plan->spilled_bytes + plan->spilled_value_bytes;
    out->step_seconds = plan->seconds;
    out->plain_seconds = plan->plain_seconds;
    out->plain_arena_bytes = plan->plain_bytes;
    out->n_nodes = sn_graph_n_nodes(plan->graph);
    out->n_steps = plan->n_steps;
    out->flops = plan->flops;
    (void)sn_model_step_peak(s, &out->peak_layer, &out->peak_operator);
}

/* Rows that add up to the peak; the reserve comes on top. */
static snug_status tell_share(const snug_model *m, const sn_model_step *s,
                              snug_model_plan_info *out, snug_error *err) {
    sn_forecast f;
    SNUG_TRY(sn_model_forecast(m, s->plan, &f, err));
    sum_state(m, out);
    if (!m->kind->of_process)
        out->graph_bytes = out->plan_bytes = 0;
    out->optimizer_bytes -= s->plan->spilled_bytes;
    out->process_bytes = f.process;
    out->reserve_bytes = f.reserve;
    out->books_bytes = f.books + f.state - out->weights_bytes - out->optimizer_bytes;
    if (m->kind->of_process)
        out->pipeline_bytes = sn_pool_taken(m->engine) + sn_pool_to_come(m->engine);
    out->peak_bytes = out->process_bytes + out->weights_bytes + out->optimizer_bytes +
                      out->arena_bytes + out->books_bytes;
    return SNUG_OK;
}

static snug_status tell_host(const snug_model *m, const sn_model_step *s, size_t budget,
                             snug_model_plan_info *out, snug_error *err) {
    sn_host_share h;
    SNUG_TRY(m->kind->host_share(m, s->plan, &h, err));
    out->host_budget_bytes = h.budget;
    out->host_process_bytes = h.process;
    out->host_pinned_bytes = h.pinned;
    out->host_spilled_bytes = h.spilled;
    out->host_fits = sn_host_fits(&h);
    const size_t taken = out->peak_bytes + out->reserve_bytes;
    return m->kind->next_batch(m, s->graph, budget > taken ? budget - taken : 0,
                               &out->next_batch_bytes, err);
}

/* What is booked beyond the step itself. */
static void tell_later(size_t booked, snug_model_plan_info *out) {
    const size_t taken = out->peak_bytes + out->reserve_bytes;
    out->later_bytes = booked > taken ? booked - taken : 0;
}

/* Of a step that has a plan; graph and plan stay as they are, and count nothing: the floor is what
 * a run would need that never made them. */
static snug_status find_floor(snug_model *m, sn_model_step *s, sn_budget_floor *floor,
                              snug_error *err) {
    const sn_model_step kept = *s;
    sn_share share;
    const snug_status st = sn_model_plan_within(m, s, 1, &share, floor, err);
    if (floor->budget > 0 && kept.plan && m->kind->of_process)
        floor->budget -=
            (sn_zone_bytes(kept.plan->zone) + (kept.fused ? sn_graph_bytes(kept.fused) : 0)) /
            PAGE_BYTES * PAGE_BYTES; /* a cgroup counts pages */
    *s = kept;
    return st == SNUG_E_BUDGET ? SNUG_OK : st;
}

/* The plan within the budget, or where there is none at the floor. The floor of a step that fits
 * without any means is asked for by a budget that is too small. */
static snug_status judge(snug_model *m, sn_model_step *s, size_t budget, snug_model_plan_info *out,
                         snug_error *err) {
    sn_share share;
    sn_budget_floor floor = {.budget = 0};
    snug_status st = sn_model_plan_within(m, s, budget, &share, &floor, err);
    out->fits = st == SNUG_OK;
    if (st == SNUG_E_BUDGET && floor.budget > 0)
        st = sn_model_plan_floor(m, s, &floor, err);
    SNUG_TRY(st);
    tell_plan(s, out);
    SNUG_TRY(tell_share(m, s, out, err));
    tell_later(out->fits ? sn_model_booked(m, s, &share) : floor.budget, out);
    SNUG_TRY(tell_host(m, s, budget, out, err));
    if (m->wants_floor && budget > 0 && floor.budget == 0)
        SNUG_TRY(find_floor(m, s, &floor, err));
    out->budget_bytes = budget;
    out->floor_bytes = floor.budget;
    out->floor_seconds = floor.least.seconds;
    m->looked_floor = floor;
    return SNUG_OK;
}

static size_t pipeline_of(const snug_model *m, const snug_plan_request *request) {
    return request->dataset ? m->looked_pipeline : request->pipeline_bytes;
}

/* As if pipelines of so many bytes were at work (0: those that are), until the limit that this
 * returns is set again. */
static size_t set_pipelines(snug_model *m, const snug_plan_request *request) {
    const size_t limit = sn_pool_limit(m->engine), bytes = pipeline_of(m, request);
    if (bytes == 0)
        return limit;
    sn_pool_hold(m->engine);
    sn_pool_set_limit(m->engine, bytes);
    return limit;
}

static void reset_pipelines(snug_model *m, const snug_plan_request *request, size_t limit) {
    if (pipeline_of(m, request) == 0)
        return;
    sn_pool_set_limit(m->engine, limit);
    sn_pool_drop(m->engine);
}

/* A step whose file the disk has no room for does not run. One that was made has its bytes. */
static snug_status check_disk(const snug_model *m, const snug_model_plan_info *info,
                              snug_error *err) {
    const char *folder = sn_engine_spill_folder(m->engine);
    if (!info->fits || info->spilled_bytes == 0 || !folder || !m->kind->of_process)
        return SNUG_OK;
    for (uint32_t i = 0; i < sn_state_count(m->state); i++)
        if (sn_state_is_spilled(m->state, i))
            return SNUG_OK;
    return sn_file_check_folder(sn_engine_io(m->engine), folder, (int64_t)info->spilled_bytes, err);
}

static snug_status judge_anew(snug_model *m, const snug_plan_request *request, size_t budget,
                              snug_model_plan_info *out, snug_error *err) {
    sn_model_step_close(&m->looked);
    SNUG_TRY(sn_model_step_open(m, request, &m->looked, err));
    return judge(m, &m->looked, budget, out, err);
}

/* The smallest budget is one of a pipeline that makes do with the least. */
static snug_status judge_floor(snug_model *m, sn_stream *stream, snug_model_plan_info *inout,
                               snug_error *err) {
    sn_budget_floor floor = {.budget = 0};
    for (bool done = true; done;) {
        SNUG_TRY(sn_stream_shrink(stream, m, &done, err));
        sn_streams_book(stream, NULL, false);
    }
    m->looked_pipeline = sn_pool_limit(m->engine);
    if (m->wants_floor && inout->fits && inout->budget_bytes > 0) {
        SNUG_TRY(find_floor(m, &m->looked, &floor, err));
        inout->floor_bytes = floor.budget;
        inout->floor_seconds = floor.least.seconds;
        m->looked_floor = floor;
    }
    return SNUG_OK;
}

/* As fit plans a step beside a pipeline: that makes room before the step is refused. */
static snug_status judge_beside(snug_model *m, const snug_plan_request *request, size_t budget,
                                snug_model_plan_info *out, snug_error *err) {
    const sn_step_mode mode = request->train ? SN_STEP_TRAIN : SN_STEP_PREDICT;
    const bool wants_floor = m->wants_floor;
    sn_stream *stream = NULL;
    bool done = true;
    SNUG_TRY(sn_stream_create(m, request->dataset, mode, NULL, &stream, err));
    m->wants_floor = false;
    snug_status status = judge_anew(m, request, budget, out, err);
    while (status == SNUG_OK && !out->fits && done) {
        status = sn_stream_shrink(stream, m, &done, err);
        sn_streams_book(stream, NULL, false);
        if (status == SNUG_OK && done)
            status = judge_anew(m, request, budget, out, err);
    }
    m->wants_floor = wants_floor;
    if (status == SNUG_OK)
        status = judge_floor(m, stream, out, err);
    sn_stream_destroy(stream);
    return status;
}

snug_status sn_model_verdict(snug_model *m, const snug_plan_request *request,
                             snug_model_plan_info *out, snug_error *err) {
    size_t budget = request->budget_bytes;
    snug_model_plan_info info = {.fits = 0};
    if (budget == 0)
        SNUG_TRY(sn_model_budget(m, &budget, err));
    m->effort = request->best ? BEST_EFFORT : 0;
    m->wants_floor = !request->quick;
    m->looked_pipeline = 0;
    snug_status status;
    if (request->dataset) {
        status = judge_beside(m, request, budget, &info, err);
    } else {
        const size_t limit = set_pipelines(m, request);
        status = judge_anew(m, request, budget, &info, err);
        reset_pipelines(m, request, limit);
    }
    m->effort = 0;
    m->wants_floor = false;
    if (status == SNUG_OK)
        status = check_disk(m, &info, err);
    if (status == SNUG_OK)
        *out = info;
    else
        sn_model_step_close(&m->looked);
    return status;
}

snug_status sn_model_floor(snug_model *m, const snug_plan_request *request, sn_look look,
                           size_t *out, snug_error *err) {
    sn_budget_floor floor = {.budget = 0};
    sn_model_step step;
    sn_model_step_close(&m->looked);
    SNUG_TRY(sn_model_step_open(m, request, &step, err));
    m->as_if_spilling = look == SN_LOOK_SPILLING;
    m->as_if_whole = look == SN_LOOK_WHOLE;
    const size_t limit = set_pipelines(m, request);
    const snug_status status = find_floor(m, &step, &floor, err);
    reset_pipelines(m, request, limit);
    m->as_if_spilling = m->as_if_whole = false;
    sn_model_step_close(&step);
    *out = floor.budget;
    return status;
}

snug_status sn_model_verdict_again(snug_model *m, const snug_plan_request *request,
                                   snug_model_plan_info *inout, snug_error *err) {
    snug_model_plan_info info = {.budget_bytes = inout->budget_bytes};
    sn_model_step_close(&m->looked);
    SNUG_TRY(sn_model_step_open(m, request, &m->looked, err));
    const size_t limit = set_pipelines(m, request);
    m->effort = request->best ? BEST_EFFORT : 0;
    snug_status status = sn_model_plan_floor(m, &m->looked, &m->looked_floor, err);
    m->effort = 0;
    if (status == SNUG_OK) {
        tell_plan(&m->looked, &info);
        status = tell_share(m, &m->looked, &info, err);
    }
    reset_pipelines(m, request, limit);
    if (status != SNUG_OK) {
        sn_model_step_close(&m->looked);
        return status;
    }
    info.floor_bytes = m->looked_floor.budget;
    info.floor_seconds = m->looked_floor.least.seconds;
    tell_later(info.floor_bytes, &info);
    *inout = info;
    return SNUG_OK;
}

snug_status snug_model_plan(snug_model *m, const snug_plan_request *request,
                            snug_model_plan_info *out, snug_error *err) {
    if (!m || !request || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_plan: model, request and out must not be NULL");
    return sn_model_verdict(m, request, out, err);
}

/* --- the trade -------------------------------------------------------------------------------- */
#define MOST_POINTS 64

/* What a budget gives. */
static snug_status plan_point(snug_model *m, sn_model_step *s, size_t budget, sn_plan_point *out,
                              snug_error *err) {
    sn_share share;
    SNUG_TRY(sn_model_plan_within(m, s, budget, &share, NULL, err));
    *out = (sn_plan_point){.bytes = budget,
                           .seconds = s->plan->seconds,
                           .slices = s->plan->slices,
                           .n_steps = s->plan->n_steps,
                           .spilled_bytes = s->plan->spilled_bytes + s->plan->spilled_value_bytes};
    sn_plan_destroy(s->plan);
    s->plan = NULL;
    return SNUG_OK;
}

/* At most `most`, evenly, both ends among them. */
static void take_some(sn_plan_point *points, uint32_t *n, uint32_t most) {
    for (uint32_t i = 0; *n > most && i < most; i++)
        points[i] = points[i * (*n - 1) / (most - 1)];
    *n = *n < most ? *n : most;
}

/* With a file any budget may have a plan of its own. Those of plans without one are asked, and even
 * steps from the smallest of them down to the floor. */
static snug_status curve_with_file(snug_model *m, sn_model_step *s, sn_plan_point *points,
                                   uint32_t max, uint32_t *n, snug_error *err) {
    sn_budget_floor floor = {.budget = 0};
    SNUG_TRY(sn_model_curve(m, s, points, max, n, err));
    SNUG_TRY(find_floor(m, s, &floor, err));
    const size_t least = points[*n - 1].bytes;
    if (floor.budget < least) {
        take_some(points, n, max / 2);
        const uint32_t n_below = max - *n;
        for (uint32_t i = n_below; i-- > 0;)
            points[(*n)++].bytes = floor.budget + (least - floor.budget) / n_below * i;
    }
    for (uint32_t i = 0; i < *n; i++)
        SNUG_TRY(plan_point(m, s, points[i].bytes, &points[i], err));
    sn_plan_thin(points, n);
    return SNUG_OK;
}

static snug_status curve_of(snug_model *m, sn_model_step *s, snug_curve_point *points, size_t max,
                            size_t *n, snug_error *err) {
    sn_plan_point found[MOST_POINTS];
    uint32_t n_found;
    const uint32_t most = max < MOST_POINTS ? (uint32_t)max : MOST_POINTS;
    const bool may = sn_engine_spill_folder(m->engine) || !m->kind->of_process;
    const bool spills = may && max >= 4;
    SNUG_TRY((spills ? curve_with_file : sn_model_curve)(m, s, found, most, &n_found, err));
    for (uint32_t i = 0; i < n_found; i++)
        points[i] = (snug_curve_point){.budget_bytes = found[i].bytes,
                                       .slices = found[i].slices,
                                       .n_steps = found[i].n_steps,
                                       .spilled_bytes = found[i].spilled_bytes,
                                       .step_seconds = found[i].seconds};
    *n = n_found;
    return SNUG_OK;
}

snug_status snug_model_curve(snug_model *m, const snug_plan_request *request,
                             snug_curve_point *points, size_t max, size_t *n, snug_error *err) {
    if (!m || !request || !points || !n || max < 2)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_curve: model, request, points and n must not be NULL, and there "
                       "must be room for 2 points");
    sn_model_step step;
    SNUG_TRY(sn_model_step_open(m, request, &step, err));
    const snug_status status = curve_of(m, &step, points, max, n, err);
    sn_model_step_close(&step);
    return status;
}

snug_status snug_fit_check(snug_model *m, const snug_plan_request *request, snug_error *err) {
    sn_weighting weighting;
    sn_model_step *step;
    if (!m || !request)
        return sn_fail(err, SNUG_E_INVALID, "snug_fit_check: model and request must not be NULL");
    SNUG_TRY(sn_weighting_find(m, request, &weighting, err));
    return sn_model_step_weighted(m, SN_STEP_TRAIN, request->batch, &weighting, &step, err);
}

snug_status snug_model_plan_text(snug_model *m, const snug_plan_request *request,
                                 const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, out);
    snug_model_plan_info info;
    SNUG_TRY(snug_model_plan(m, request, &info, err));
    return sn_plan_print(m->looked.plan, out, err);
}
