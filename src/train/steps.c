/* steps.c: the cache of planned steps, and what stands between a plan and its first run: homes,
 * arena, kernels, parameters. */
#include "train/step_budget.h"

#include "base/rng.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- making a step ---------------------------------------------------------------------------- */
/* Inputs of one kind: "x", or "x_0", "x_1", ... */
static snug_status find_input(const sn_model_step *s, const char *what, uint32_t i, uint32_t n,
                              uint32_t *out, snug_error *err) {
    char name[16];
    return sn_graph_find_input(s->graph, sn_step_name(what, i, n, name), out, err);
}

static snug_status find_inputs(const snug_model *m, sn_model_step *s, snug_error *err) {
    const sn_network *n = m->network;
    const uint32_t n_weights = (uint32_t)s->weighting.n_weights;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        SNUG_TRY(find_input(s, "x", i, n->n_inputs, &s->x[i], err));
    for (uint32_t i = 0; i < n->n_outputs && s->mode != SN_STEP_PREDICT; i++)
        if (sn_model_has_target(m, i))
            SNUG_TRY(find_input(s, "y", i, n->n_outputs, &s->y[i], err));
    for (uint32_t i = 0; i < n_weights; i++)
        SNUG_TRY(find_input(s, "w", i, n_weights, &s->w[i], err));
    return SNUG_OK;
}

static snug_status find_output(const sn_model_step *s, const char *what, uint32_t i, uint32_t n,
                               uint32_t *out, snug_error *err) {
    char name[16];
    return sn_graph_find_output(s->graph, sn_step_name(what, i, n, name), out, err);
}

static snug_status find_ends(const snug_model *m, sn_model_step *s, snug_error *err) {
    const sn_compiled *c = &m->compiled;
    uint32_t *at = s->outputs;
    SNUG_TRY(find_inputs(m, s, err));
    for (uint32_t i = 0; i < m->network->n_outputs && s->mode == SN_STEP_PREDICT; i++)
        SNUG_TRY(find_output(s, "y_pred", i, m->network->n_outputs, at++, err));
    if (s->mode == SN_STEP_PREDICT)
        return SNUG_OK;
    SNUG_TRY(sn_graph_find_output(s->graph, "loss", at++, err));
    for (int i = 0; i < c->n_losses; i++)
        SNUG_TRY(find_output(s, "loss", c->loss_outputs[i], 2, at++, err));
    for (int i = 0; i < c->n_metrics; i++)
        SNUG_TRY(find_output(s, "metric", (uint32_t)i, 2, at++, err));
    return SNUG_OK;
}

static void clear_step(sn_model_step *s) {
    sn_plan_destroy(s->plan);
    sn_graph_destroy(s->fused);
    sn_graph_destroy(s->graph);
    *s = (sn_model_step){.batch = 0};
}

/* Keras scales the loss of such a model, lest gradients become 0 in f16. */
bool sn_model_scales(const snug_model *m) {
    const sn_policy *const p = &m->network->policy;
    return p->compute == SNUG_F16 && p->variable != p->compute;
}

void sn_model_start_anew(snug_model *m) {
    m->iterations = 0;
    m->scale = (sn_loss_scale){SN_FIRST_LOSS_SCALE, 0};
}

snug_status sn_model_step_build(snug_model *m, sn_model_step *s, snug_error *err) {
    SNUG_TRY(sn_compiled_resolve(m->network, &m->compiled, err));
    const sn_step_spec spec = {.network = m->network,
                               .objectives = m->compiled.objectives,
                               .optimizer = &m->compiled.optimizer,
                               .metrics = m->compiled.metrics,
                               .n_metrics = m->compiled.n_metrics,
                               .weights = s->weighting.weights,
                               .n_weights = s->weighting.n_weights,
                               .classes = s->weighting.classes,
                               .n_classes = s->weighting.n_classes,
                               .scaled = sn_model_scales(m)};
    return sn_step_build(&spec, s->mode, s->batch, &s->graph, err);
}

static snug_status check_plan(const snug_model *m, const sn_plan *plan, snug_error *err) {
    size_t budget;
    SNUG_TRY(sn_model_budget(m, &budget, err));
    return sn_model_check_plan(m, plan, budget, err);
}

/* Of the step's graph, or of that with fused updates. */
static snug_status parse_either(snug_model *m, sn_model_step *s, snug_error *why) {
    const sn_device *const devices[1] = {m->target};
    snug_error unused;
    const snug_status status =
        sn_plan_parse(m->engine, s->graph, m->pinned.text, devices, 1, &s->plan, why);
    if (status == SNUG_OK)
        return SNUG_OK;
    SNUG_TRY(sn_model_step_fuse(m, s, why));
    return s->fused && sn_plan_parse(m->engine, s->fused, m->pinned.text, devices, 1, &s->plan,
                                     &unused) == SNUG_OK
               ? SNUG_OK
               : status;
}

static snug_status parse_plan(snug_model *m, sn_model_step *s, snug_error *err) {
    snug_error why = {.code = SNUG_OK};
    const snug_status status = parse_either(m, s, &why);
    if (status == SNUG_OK)
        return check_plan(m, s->plan, err);
    /* What the checker calls a wrong argument came from a file. */
    return sn_fail(err, status == SNUG_E_INVALID ? SNUG_E_DATA : status,
                   "the plan that was given is of another model, batch, machine or version: %s",
                   why.text);
}

/* Adds to a refusal where the smallest plan is full. */
static void name_peak(snug_model *m, sn_model_step *s, sn_budget_floor *floor, snug_error *err) {
    const size_t n = err ? strlen(err->text) : 0;
    const char *layer, *op;
    if (n > 0 && sn_model_plan_floor(m, s, floor, NULL) == SNUG_OK &&
        sn_model_step_peak(s, &layer, &op))
        snprintf(err->text + n, sizeof err->text - n, "; it is full in layer %.80s (%s)", layer,
                 op);
}

static snug_status plan_step(snug_model *m, sn_model_step *s, snug_error *err) {
    sn_share share;
    size_t budget;
    sn_budget_floor floor = {.budget = 0};
    SNUG_TRY(sn_model_budget(m, &budget, err));
    const snug_status status = sn_model_plan_within(m, s, budget, &share, &floor, err);
    if (status == SNUG_E_BUDGET && floor.budget > 0)
        name_peak(m, s, &floor, err);
    return status;
}

/* The graph that the plan is of; the other one was only to choose from. */
static void keep_planned(sn_model_step *s) {
    const bool is_fused = s->plan->graph == s->fused;
    sn_graph_destroy(is_fused ? s->graph : s->fused);
    s->graph = is_fused ? s->fused : s->graph;
    s->fused = NULL;
}

static snug_status make_step(snug_model *m, sn_model_step *s, snug_error *err) {
    SNUG_TRY(sn_model_step_build(m, s, err));
    if (m->pinned.text && s->mode == SN_STEP_TRAIN && s->batch == m->pinned_batch)
        SNUG_TRY(parse_plan(m, s, err));
    else
        SNUG_TRY(plan_step(m, s, err));
    keep_planned(s);
    return find_ends(m, s, err);
}

void sn_model_unpin_plan(snug_model *m) {
    sn_text_file_free(&m->pinned);
}

snug_status snug_model_pin_plan(snug_model *m, int64_t batch, const char *path, snug_error *err) {
    sn_text_file file;
    if (!m || !path)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_pin_plan: model and path must not be NULL");
    SNUG_TRY(sn_model_check_idle(m, "the plan", err));
    SNUG_TRY(sn_text_file_read(m->engine, path, "a plan", SN_MEM_PLAN, &file, err));
    const snug_status status = sn_text_file_check(&file, path, err);
    if (status != SNUG_OK) {
        sn_text_file_free(&file);
        return status;
    }
    sn_model_drop_steps(m);
    sn_model_unpin_plan(m);
    m->pinned = file;
    m->pinned_batch = batch;
    return SNUG_OK;
}

/* --- weights of examples ---------------------------------------------------------------------- */
/* A weight per example or step: axes of one at the end say nothing. */
static snug_type weight_type(const snug_model *m, const snug_type *feed) {
    snug_type t = *feed;
    while (t.rank > 1 && t.dims[t.rank - 1] == 1)
        t.rank--;
    for (int i = t.rank; i < SNUG_MAX_RANK; i++)
        t.dims[i] = 0;
    t.dtype = sn_dtype_computed(m->network->policy.compute);
    t.dims[0] = -1;
    return t;
}

static snug_status check_weighting(const snug_model *m, const snug_plan_request *r,
                                   snug_error *err) {
    const int n_outputs = (int)m->network->n_outputs;
    if (r->n_sample_weights > 0 && r->class_weight)
        return sn_fail(err, SNUG_E_INVALID,
                       "there are sample weights and class weights; only one can act");
    if (r->n_sample_weights > 1 && r->n_sample_weights != n_outputs)
        return sn_fail(err, SNUG_E_INVALID, "the model has %d outputs; %d sample_weight are given",
                       n_outputs, r->n_sample_weights);
    if (r->class_weight && n_outputs > 1)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "class weights are for models of one output, this one has %d; use sample "
                       "weights",
                       n_outputs);
    return SNUG_OK;
}

snug_status sn_weighting_find(const snug_model *m, const snug_plan_request *request,
                              sn_weighting *out, snug_error *err) {
    const snug_type plain = {.rank = 1};
    memset(out, 0, sizeof *out); /* padding, too: it is compared as bytes */
    SNUG_TRY(check_weighting(m, request, err));
    for (int i = 0; i < request->n_sample_weights; i++)
        out->weights[i] =
            weight_type(m, request->sample_weights ? &request->sample_weights[i] : &plain);
    out->n_weights = request->n_sample_weights;
    return request->class_weight
               ? sn_class_weights_parse(request->class_weight, out->classes, &out->n_classes, err)
               : SNUG_OK;
}

/* --- steps ------------------------------------------------------------------------------------ */
snug_status sn_model_step_open(snug_model *m, const snug_plan_request *request, sn_model_step *out,
                               snug_error *err) {
    *out = (sn_model_step){.mode = request->train ? SN_STEP_TRAIN : SN_STEP_PREDICT,
                           .batch = request->batch};
    if (request->train)
        SNUG_TRY(sn_weighting_find(m, request, &out->weighting, err));
    const snug_status status = sn_model_step_build(m, out, err);
    if (status != SNUG_OK)
        sn_model_step_close(out);
    return status;
}

void sn_model_step_close(sn_model_step *s) {
    clear_step(s);
}

/* There was no room even to plan the step: it is planned once more only to say what would do. */
static snug_status tell_floor(snug_model *m, sn_model_step *s, snug_error *err) {
    snug_error said = {.code = SNUG_OK};
    sn_gate_tell(m->engine, true);
    const snug_status status = make_step(m, s, &said);
    sn_gate_tell(m->engine, false);
    clear_step(s);
    if (status == SNUG_E_BUDGET && m->has_told && err)
        *err = said;
    return SNUG_E_BUDGET;
}

snug_status sn_model_step_weighted(snug_model *m, sn_step_mode mode, int64_t batch,
                                   const sn_weighting *weighting, sn_model_step **out,
                                   snug_error *err) {
    for (int i = 0; i < m->n_steps; i++)
        if (m->steps[i].mode == mode && m->steps[i].batch == batch &&
            memcmp(&m->steps[i].weighting, weighting, sizeof *weighting) == 0) {
            *out = &m->steps[i];
            return SNUG_OK;
        }
    sn_model_make_room(m, 1);
    if (m->n_steps == SN_MODEL_MAX_STEPS)
        return sn_fail(err, SNUG_E_INVALID,
                       "the model is running already with all of its %d plans; run it again when "
                       "the call under way has returned",
                       SN_MODEL_MAX_STEPS);
    sn_model_step s = {.mode = mode, .batch = batch, .weighting = *weighting};
    m->has_told = false;
    snug_status status = make_step(m, &s, err);
    if (status == SNUG_E_BUDGET && sn_model_take_idle(m)) {
        clear_step(&s);
        s = (sn_model_step){.mode = mode, .batch = batch, .weighting = *weighting};
        m->has_told = false;
        status = make_step(m, &s, err);
    }
    if (status != SNUG_OK) {
        clear_step(&s);
        s = (sn_model_step){.mode = mode, .batch = batch, .weighting = *weighting};
        return status == SNUG_E_BUDGET && !m->has_told ? tell_floor(m, &s, err) : status;
    }
    *out = &m->steps[m->n_steps];
    m->steps[m->n_steps++] = s;
    return SNUG_OK;
}

/* Steps first, first + 1, ... */
static void drop_from(snug_model *m, int first) {
    while (m->n_steps > first) {
        sn_model_step *const s = &m->steps[--m->n_steps];
        if (s->session)
            sn_executor_remove(m->executor, s->session);
        clear_step(s);
    }
    if (first == 0) {
        sn_executor_destroy(m->executor);
        m->executor = NULL;
    }
}

void sn_model_make_room(snug_model *m, int n) {
    sn_model_step_close(&m->looked);
    if (m->n_steps + n > SN_MODEL_MAX_STEPS)
        drop_from(m, m->n_pinned);
}

void sn_model_drop_steps(snug_model *m) {
    assert(m->n_pinned == 0);
    sn_model_step_close(&m->looked);
    drop_from(m, 0);
}

int sn_model_pin(snug_model *m) {
    const int before = m->n_pinned;
    sn_executor_use(m->executor);
    m->n_pinned = m->n_steps;
    return before;
}

void sn_model_unpin(snug_model *m, int before) {
    sn_executor_unuse(m->executor);
    m->n_pinned = before;
}

snug_status sn_model_check_idle(const snug_model *m, const char *what, snug_error *err) {
    if (m->n_pinned == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   "%s cannot change while the model runs; do it when fit, evaluate or predict has "
                   "returned",
                   what);
}

/* --- before the first run --------------------------------------------------------------------- */
snug_status sn_model_add_homes(snug_model *m, snug_error *err) {
    for (uint32_t i = sn_state_count(m->state); i < m->network->n_vars; i++) {
        const sn_net_var *v = &m->network->vars[i];
        const sn_home home = {.name = v->name,
                              .type = v->type,
                              .trainable = v->trainable,
                              .slot = v->slot,
                              .init = v->init};
        uint32_t id;
        SNUG_TRY(sn_state_add(m->state, &home, &id, err));
    }
    return SNUG_OK;
}

static snug_status prepare(snug_model *m, snug_error *err) {
    const sn_device *const devices[1] = {m->target};
    const sn_executor_options options = {.spill_folder = sn_engine_spill_folder(m->engine),
                                         .gives = true};
    bool fresh = !m->executor || !sn_executor_is_ready(m->executor);
    SNUG_TRY(sn_model_add_homes(m, err));
    if (!m->executor)
        SNUG_TRY(sn_executor_create(m->engine, m->state, devices, 1, &options, &m->executor, err));
    for (int i = 0; i < m->n_steps; i++) {
        if (m->steps[i].session || !m->steps[i].wanted)
            continue;
        SNUG_TRY(sn_model_check_host(m, m->steps[i].plan, err));
        SNUG_TRY(sn_executor_add(m->executor, m->steps[i].plan, &m->steps[i].session, err));
        fresh = true;
    }
    for (int i = 0; i < m->n_steps; i++)
        if (m->steps[i].session && m->steps[i].streams)
            fresh = sn_session_want_next(m->steps[i].session) || fresh;
    return fresh ? sn_executor_prepare(m->executor, err) : SNUG_OK;
}

snug_status sn_model_prepare(snug_model *m, snug_error *err) {
    if (sn_state_torn(m->state))
        return sn_fail(err, SNUG_E_TORN,
                       "a step stopped half-way through its updates; load weights to go on");
    const snug_status status = prepare(m, err);
    if (status == SNUG_OK)
        return SNUG_OK;
    drop_from(m, m->n_pinned);
    /* The run under way gets its arena back, or its next step says that there is none. */
    const snug_status again = m->n_pinned > 0 ? sn_executor_prepare(m->executor, NULL) : SNUG_OK;
    (void)again;
    return status;
}

/* --- parameters ------------------------------------------------------------------------------- */
static void set_param(const sn_model_step *s, sn_param p, sn_scalar value, bool is_key,
                      sn_scalar *params) {
    if (params)
        params[p.i] = value;
    else if (is_key)
        sn_session_set_key(s->session, p, value.key);
    else
        sn_session_set_real(s->session, p, value.real);
}

void sn_model_set_params(const snug_model *m, const sn_model_step *s, uint64_t dropout_key,
                         sn_scalar *params) {
    sn_named_real reals[SN_OPTIMIZER_PARAMS + 2];
    int n =
        sn_optimizer_params(&m->compiled.optimizer, m->iterations + 1, reals, SN_OPTIMIZER_PARAMS);
    reals[n++] = (sn_named_real){SN_LOSS_SCALE, m->scale.factor};
    reals[n++] = (sn_named_real){SN_LOSS_UNSCALE, 1 / m->scale.factor};
    for (uint32_t i = 0; i < sn_graph_n_params(s->graph); i++) {
        const sn_param p = {i};
        const sn_param_info *info = sn_graph_param_at(s->graph, p);
        if (info->each_step) {
            /* a layer with a seed of its own draws by it and by how often it drew before */
            const uint64_t key = info->key
                                     ? sn_rng_key((uint64_t)info->key, (uint64_t)m->iterations)
                                     : sn_rng_key(dropout_key, i);
            set_param(s, p, (sn_scalar){.key = (int64_t)key}, true, params);
        }
        for (int k = 0; info->kind == SN_PARAM_REAL && info->name[0] && k < n; k++)
            if (strcmp(info->name, reals[k].name) == 0)
                set_param(s, p, (sn_scalar){.real = reals[k].value}, false, params);
    }
}

/* --- after the last run ----------------------------------------------------------------------- */
snug_status sn_model_finish_fit(snug_model *m, snug_error *err) {
    const size_t n =
        m->compiled.optimizer.use_ema && m->iterations > 0 ? snug_model_n_weights(m) : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t home;
        snug_view weight;
        if (!sn_optimizer_average(&m->compiled.optimizer, m->network, i, &home))
            continue;
        SNUG_TRY(sn_state_view(m->state, i, &weight, err));
        SNUG_TRY(sn_state_read(m->state, home, 0, weight.bytes, weight.data, err));
    }
    return SNUG_OK;
}
