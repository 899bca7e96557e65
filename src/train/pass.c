/* pass.c: a pass over data (pass.h). The inputs of a session are bound to the pass's own row
 * sources at each step, so that several passes can share one session. */
#include "train/pass.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- data ------------------------------------------------------------------------------------- */
snug_data sn_plain_as_data(const sn_plain_data *plain) {
    return (snug_data){.x = &plain->x,
                       .n_x = plain->x != NULL,
                       .y = &plain->y,
                       .n_y = plain->y != NULL,
                       .sample_weight = &plain->weight,
                       .n_sample_weights = plain->weight != NULL};
}

sn_part_of_data sn_whole_data(const snug_data *data, int64_t batch) {
    const bool has_x = data->n_x > 0 && data->x[0];
    return (sn_part_of_data){
        .data = *data, .n = has_x ? snug_feed_type(data->x[0])->dims[0] : 0, .batch = batch};
}

sn_part_of_data sn_stream_part(sn_stream *stream) {
    const int64_t batch = sn_stream_batch(stream), rows = sn_stream_rows(stream);
    return (sn_part_of_data){.data = *sn_stream_data(stream),
                             .n = rows > 0 ? rows : batch,
                             .batch = batch,
                             .stream = stream};
}

/* "x", or of several "x 2 ('left')". */
static const char *feed_name(const char *what, uint32_t i, uint32_t n, const char *name, char *text,
                             size_t size) {
    if (n > 1)
        snprintf(text, size, "%s %u ('%.60s')", what, i, name);
    else
        snprintf(text, size, "%s", what);
    return text;
}

static snug_status check_count(const char *what, int given, uint32_t wanted, const char *ends,
                               snug_error *err) {
    if (given == (int)wanted)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "the model has %u %s; %d %s %s given", wanted, ends, given,
                   what, given == 1 ? "is" : "are");
}

static snug_status check_rows(const snug_data *d, const snug_feed *feed, const char *what,
                              snug_error *err) {
    const int64_t n_x = snug_feed_type(d->x[0])->dims[0], n = snug_feed_type(feed)->dims[0];
    if (n_x == n)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_DATA, "x has %lld rows and %s has %lld; each example needs one %s",
                   (long long)n_x, what, (long long)n, what[0] == 'y' ? "target" : "entry");
}

static snug_status check_inputs(const snug_model *m, const snug_data *d, snug_error *err) {
    const sn_network *n = m->network;
    char text[96];
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const char *what = feed_name("x", i, n->n_inputs, n->input_names[i], text, sizeof text);
        if (!d->x[i])
            return sn_fail(err, SNUG_E_INVALID, "%s is missing; give the examples", what);
        SNUG_TRY(sn_rows_check(d->x[i], sn_network_type(n, i), what, err));
        SNUG_TRY(check_rows(d, d->x[i], what, err));
    }
    return SNUG_OK;
}

static snug_status check_targets(const snug_model *m, const snug_data *d, snug_error *err) {
    const uint32_t n = m->network->n_outputs;
    char text[96];
    SNUG_TRY(check_count("y", d->n_y, n, "outputs", err));
    for (uint32_t i = 0; i < n; i++) {
        snug_type target;
        const char *what =
            feed_name("y", i, n, sn_network_output_name(m->network, i), text, sizeof text);
        if (!snug_model_target_at(m, i, &target))
            continue;
        if (!d->y[i])
            return sn_fail(err, SNUG_E_INVALID, "%s is missing; give the targets", what);
        SNUG_TRY(check_rows(d, d->y[i], what, err));
        SNUG_TRY(sn_rows_check(d->y[i], &target, what, err));
    }
    return SNUG_OK;
}

static snug_status find_weighting(const snug_model *m, const sn_part_of_data *part,
                                  sn_weighting *out, snug_error *err) {
    const snug_data *d = &part->data;
    snug_type types[SN_MAX_TENSOR];
    const snug_plan_request request = {.class_weight = part->class_weight,
                                       .n_sample_weights = d->n_sample_weights,
                                       .sample_weights = types};
    for (int i = 0; i < d->n_sample_weights && i < SN_MAX_TENSOR; i++) {
        if (!d->sample_weight[i])
            return sn_fail(err, SNUG_E_INVALID, "sample_weight %d is missing", i);
        SNUG_TRY(check_rows(d, d->sample_weight[i], "sample_weight", err));
        types[i] = *snug_feed_type(d->sample_weight[i]);
    }
    SNUG_TRY(sn_weighting_find(m, &request, out, err));
    for (int i = 0; i < d->n_sample_weights; i++)
        SNUG_TRY(sn_rows_check(d->sample_weight[i], &out->weights[i], "sample_weight", err));
    return SNUG_OK;
}

static snug_status check_data(const snug_model *m, sn_step_mode mode, const sn_part_of_data *part,
                              snug_error *err) {
    const snug_data *d = &part->data;
    if (d->n_x < 1 || !d->x[0])
        return sn_fail(err, SNUG_E_INVALID, "there is no x; give the examples");
    SNUG_TRY(check_count("x", d->n_x, m->network->n_inputs, "inputs", err));
    SNUG_TRY(check_inputs(m, d, err));
    if (part->n < 1)
        return sn_fail(err, SNUG_E_DATA, "x has no rows here; at least one is needed");
    return mode == SN_STEP_PREDICT ? SNUG_OK : check_targets(m, d, err);
}

/* --- beginning -------------------------------------------------------------------------------- */
static snug_status want_step(snug_model *m, sn_step_mode mode, int64_t batch,
                             const sn_weighting *weighting, sn_model_step **out, snug_error *err) {
    SNUG_TRY(sn_model_step_weighted(m, mode, batch, weighting, out, err));
    (*out)->wanted = true;
    return SNUG_OK;
}

/* A source of rows; makes what reading the feed in the input's dtype needs: the step loop allocates
 * nothing. */
static snug_status add_rows(sn_rows *rows, const sn_part_of_data *part, snug_feed *feed,
                            const sn_model_step *s, uint32_t input, snug_error *err) {
    const sn_value v = sn_graph_input_at(s->graph, input);
    *rows = (sn_rows){.feed = feed, .first = part->first, .n = part->n};
    return sn_feed_prepare(feed, sn_graph_type(s->graph, v)->dtype, err);
}

static snug_status add_all_rows(sn_pass *p, const sn_part_of_data *part, snug_error *err) {
    const sn_model_step *s = p->steps[0];
    const snug_data *d = &part->data;
    for (uint32_t i = 0; i < p->n_x; i++)
        SNUG_TRY(add_rows(&p->rows.x[i], part, d->x[i], s, s->x[i], err));
    for (uint32_t i = 0; i < p->n_y; i++)
        if (sn_model_has_target(p->model, i))
            SNUG_TRY(add_rows(&p->rows.y[i], part, d->y[i], s, s->y[i], err));
    for (uint32_t i = 0; i < p->n_w; i++)
        SNUG_TRY(add_rows(&p->rows.w[i], part, d->sample_weight[i], s, s->w[i], err));
    return SNUG_OK;
}

/* Nothing of it is read: a GPU makes it itself, or what it does not is computed quickly. */
static bool is_made(const sn_pass *p) {
    sn_recipe recipe;
    uint64_t element;
    bool made = true;
    for (uint32_t i = 0; i < SN_MAX_TENSOR; i++) {
        const sn_rows *const rows[3] = {&p->rows.x[i], &p->rows.y[i], &p->rows.w[i]};
        for (int k = 0; k < 3; k++)
            if (rows[k]->feed &&
                (!sn_rows_recipe((void *)(uintptr_t)rows[k], 0, &recipe, &element) ||
                 sn_recipe_source(&recipe)))
                made = false;
    }
    return made;
}

/* The metrics of the model are resolved: it has a step. */
static snug_status make_sums(sn_pass *p, snug_error *err) {
    const sn_compiled *c = &p->model->compiled;
    void *block;
    p->n_sums = 1 + (size_t)c->n_losses;
    for (int i = 0; i < c->n_metrics; i++)
        p->n_sums += (size_t)c->metrics[i].n_sums;
    SNUG_TRY(
        sn_alloc_zero(p->model->engine, SN_MEM_OTHER, p->n_sums * sizeof *p->sums, &block, err));
    p->sums = block;
    return SNUG_OK;
}

/* Full batch and remainder (0: none) of a mode. */
static snug_status want_both(sn_pass *p, sn_step_mode mode, const sn_weighting *weighting,
                             sn_model_step *out[2], snug_error *err) {
    const int64_t rest = p->n % p->batch;
    out[1] = NULL;
    SNUG_TRY(want_step(p->model, mode, p->batch, weighting, &out[0], err));
    return rest ? want_step(p->model, mode, rest, weighting, &out[1], err) : SNUG_OK;
}

static snug_status check_request(const snug_model *m, sn_step_mode mode,
                                 const sn_part_of_data *part, snug_error *err) {
    if (m->network->n_layers == 0)
        return sn_fail(err, SNUG_E_INVALID, "model '%s' has no layers; add one first",
                       m->network->name);
    if (mode != SN_STEP_PREDICT && part->data.n_y == 0)
        return sn_fail(err, SNUG_E_INVALID, "there is no y; give the targets");
    if (part->batch < 0)
        return sn_fail(err, SNUG_E_INVALID, "a batch of %lld rows; it must be at least 1",
                       (long long)part->batch);
    return check_data(m, mode, part, err);
}

snug_status sn_pass_init(sn_pass *p, snug_model *m, sn_step_mode mode, const sn_part_of_data *part,
                         snug_error *err) {
    const bool predicts = mode == SN_STEP_PREDICT;
    sn_weighting weighting;
    memset(&weighting, 0, sizeof weighting);
    SNUG_TRY(check_request(m, mode, part, err));
    if (!predicts)
        SNUG_TRY(find_weighting(m, part, &weighting, err));
    const int64_t wanted = part->batch ? part->batch : 32;
    const int64_t batch = wanted < part->n ? wanted : part->n;
    *p = (sn_pass){.model = m,
                   .mode = mode,
                   .batch = batch,
                   .n = part->n,
                   .n_x = m->network->n_inputs,
                   .n_y = predicts ? 0 : m->network->n_outputs,
                   .n_w = (uint32_t)weighting.n_weights,
                   .n_steps = part->n / batch + (part->n % batch != 0),
                   .stream = part->stream,
                   .weighting = weighting};
    if (part->stream)
        p->n_steps = sn_stream_steps(part->stream);
    SNUG_TRY(want_both(p, mode, &weighting, p->steps, err));
    if (mode == SN_STEP_TRAIN && m->compiled.optimizer.gradient_accumulation_steps > 0)
        SNUG_TRY(want_both(p, SN_STEP_ACCUMULATE, &weighting, p->adding_steps, err));
    SNUG_TRY(add_all_rows(p, part, err));
    p->ahead = -1;
    p->steps[0]->streams =
        p->n_steps != 1 && !is_made(p) && (!p->stream || sn_stream_may_look(p->stream));
    if (p->adding_steps[0])
        p->adding_steps[0]->streams = p->steps[0]->streams;
    return predicts ? SNUG_OK : make_sums(p, err);
}

void sn_pass_shuffle(sn_pass *p, uint64_t key) {
    for (uint32_t i = 0; i < SN_MAX_TENSOR; i++) {
        sn_rows *const rows[3] = {&p->rows.x[i], &p->rows.y[i], &p->rows.w[i]};
        for (int k = 0; k < 3; k++) {
            rows[k]->shuffle = true;
            rows[k]->key = key;
        }
    }
}

void sn_progress_name_values(snug_progress *progress, const snug_model *m) {
    progress->n_values = sn_compiled_n_values(&m->compiled);
    for (int i = 0; i < progress->n_values; i++)
        progress->names[i] = sn_compiled_value_name(&m->compiled, i);
}

/* --- steps ------------------------------------------------------------------------------------ */
static bool ask(void *ctx) {
    const sn_interrupt *i = ctx;
    return i->asked(i->ctx) != 0;
}

/* A label outside of the classes: say which row of the caller's data it is in. */
static snug_status explain(const sn_pass *p, snug_status status, snug_error *err) {
    int64_t row, label;
    for (uint32_t i = 0; i < p->n_y && status == SNUG_E_DATA; i++) {
        const sn_objective *o = &p->model->compiled.objectives[i];
        const snug_type *output = snug_model_output_at(p->model, i);
        const int64_t n_classes = output->dims[output->rank - 1];
        if (o->used && o->loss.sparse &&
            sn_rows_bad_label(&p->rows.y[i], p->now_rows, n_classes, &row, &label))
            return sn_fail(
                err, status,
                "row %lld of y has the label %lld; the model has %lld classes, 0 to %lld",
                (long long)row, (long long)label, (long long)n_classes, (long long)n_classes - 1);
    }
    return status;
}

/* What snug_model_find_nan needs to run the step again. */
static void keep_failed(sn_pass *p, uint64_t dropout_key) {
    p->model->failed = (sn_failed_step){.is_known = true,
                                        .batch = p->now_rows,
                                        .weighting = p->now->weighting,
                                        .rows = p->rows,
                                        .dropout_key = dropout_key};
}

static void bind(const sn_model_step *s, uint32_t input, sn_rows *rows, int64_t start) {
    rows->start = start;
    sn_session_bind_input(s->session, input,
                          (sn_input_binding){rows, sn_rows_fill, sn_rows_recipe});
}

static void bind_rows(sn_pass *p, int64_t start) {
    for (uint32_t i = 0; i < p->n_x; i++)
        bind(p->now, p->now->x[i], &p->rows.x[i], start);
    for (uint32_t i = 0; i < p->n_y; i++)
        if (sn_model_has_target(p->model, i))
            bind(p->now, p->now->y[i], &p->rows.y[i], start);
    for (uint32_t i = 0; i < p->n_w; i++)
        bind(p->now, p->now->w[i], &p->rows.w[i], start);
}

bool sn_pass_has(const sn_pass *p, int64_t k) {
    return p->n_steps < 0 || k < p->n_steps;
}

/* The step for a batch of other rows than the first had: planned when it comes, where nobody could
 * know of it before. */
static snug_status plan_others(sn_pass *p, int64_t rows, snug_error *err) {
    if (rows == p->batch || (p->steps[1] && p->steps[1]->batch == rows))
        return SNUG_OK;
    SNUG_TRY(want_step(p->model, p->mode, rows, &p->weighting, &p->steps[1], err));
    if (p->adding_steps[0])
        SNUG_TRY(
            want_step(p->model, SN_STEP_ACCUMULATE, rows, &p->weighting, &p->adding_steps[1], err));
    return sn_model_prepare(p->model, err);
}

/* That of so many rows, for the n-th iteration from now. */
static sn_model_step *step_of(const sn_pass *p, int64_t rows, int64_t n) {
    const bool updates =
        p->mode != SN_STEP_TRAIN ||
        sn_optimizer_updates(&p->model->compiled.optimizer, p->model->iterations + n);
    return (updates ? p->steps : p->adding_steps)[rows != p->batch];
}

/* Of the rows of step k where they are known beforehand. */
static int64_t rows_of(const sn_pass *p, int64_t k) {
    const int64_t left = p->n - k * p->batch;
    return left < p->batch ? left : p->batch;
}

/* Which step, and where its rows begin in their feeds. */
static snug_status choose_step(sn_pass *p, int64_t k, int64_t *start, snug_error *err) {
    int64_t rows = rows_of(p, k);
    *start = p->first_row = k * p->batch;
    if (p->stream) {
        *start = 0;
        p->first_row = k == 0 ? 0 : p->rows_given;
        SNUG_TRY(sn_stream_next(p->stream, &rows, err));
        SNUG_TRY(plan_others(p, rows, err));
        p->rows_given = p->first_row + rows;
    }
    p->now = step_of(p, rows, 1);
    p->now_rows = rows;
    p->step = k;
    return SNUG_OK;
}

/* Called while a step runs: binds the rows of the next one, where that is of the same kind. */
static bool bind_next(void *ctx) {
    sn_pass *p = ctx;
    const int64_t k = p->step + 1;
    int64_t rows = 0;
    if (p->stream && !sn_stream_look(p->stream, &rows))
        return false;
    if (!p->stream)
        rows = rows_of(p, k);
    if (rows != p->now_rows || step_of(p, rows, 2) != p->now)
        return false;
    bind_rows(p, p->stream ? 0 : k * p->batch);
    p->ahead = k;
    return true;
}

/* The session knows whether the rows of step k have come, and how to get those of the next. */
static void set_next(sn_pass *p, int64_t k) {
    const bool more = p->now->streams && sn_pass_has(p, k + 1);
    sn_session_set_next(p->now->session, p->ahead == k, more ? bind_next : NULL, p);
    p->ahead = -1;
}

/* What becomes of the loss scale, by Keras' rule: of each batch, also of one whose gradients are
 * only added up. A scale that f32 cannot invert any more had nothing to do with it. */
static snug_status follow_scale(snug_model *m, bool passed_over, snug_error *err) {
    sn_loss_scale *const s = &m->scale;
    if (passed_over && s->factor <= FLT_MIN)
        return sn_fail(err, SNUG_E_NUMERIC,
                       "the gradients are not finite with a loss scale of %g either; lower the "
                       "learning rate or clip gradients",
                       s->factor);
    if (passed_over)
        *s = (sn_loss_scale){s->factor / 2, 0};
    else if (++s->good == SN_GROWTH_STEPS)
        *s = (sn_loss_scale){s->factor * 2, 0};
    return SNUG_OK;
}

/* One run of the step that was chosen; counts it unless its update was passed over. */
static snug_status run_step(sn_pass *p, snug_error *err) {
    snug_model *const m = p->model;
    sn_session *const session = p->now->session;
    const bool trains = p->mode == SN_STEP_TRAIN, scales = trains && sn_model_scales(m);
    sn_session_set_passes(session, scales);
    SNUG_TRY(sn_session_run(session, err));
    const bool passed_over = sn_session_passed_over(session);
    if (scales)
        SNUG_TRY(follow_scale(m, passed_over, err));
    m->iterations += trains && !passed_over;
    return SNUG_OK;
}

snug_status sn_pass_step(sn_pass *p, int64_t k, uint64_t dropout_key, snug_error *err) {
    int64_t start;
    SNUG_TRY(choose_step(p, k, &start, err));
    sn_session *const session = p->now->session;
    bind_rows(p, start);
    set_next(p, k);
    sn_session_set_interrupt(session, p->interrupt.asked ? ask : NULL, &p->interrupt);
    if (p->mode == SN_STEP_TRAIN)
        sn_model_set_params(p->model, p->now, dropout_key, NULL);
    const snug_status status = run_step(p, err);
    if (p->stream)
        sn_stream_look_back(p->stream);
    if (!sn_session_has_next(session))
        p->ahead = -1;
    if (status == SNUG_OK)
        return SNUG_OK;
    bind_rows(p, start); /* those of the step that failed */
    if (status == SNUG_E_NUMERIC && p->mode == SN_STEP_TRAIN && !p->stream)
        keep_failed(p, dropout_key);
    return explain(p, status, err);
}

/* --- sums ------------------------------------------------------------------------------------- */
void sn_pass_restart(sn_pass *p) {
    memset(p->sums, 0, p->n_sums * sizeof *p->sums);
    p->n_seen = 0;
    p->ahead = -1;
}

/* Adds factor * each number of an output; returns how many there are. */
static size_t add_output(const sn_model_step *s, uint32_t output, double factor, double *to) {
    snug_view view;
    sn_session_output(s->session, output, &view);
    const size_t n = (size_t)sn_type_count(&view.type);
    for (size_t i = 0; i < n; i++)
        to[i] += factor * (view.type.dtype == SNUG_F64 ? ((const double *)view.data)[i]
                                                       : (double)((const float *)view.data)[i]);
    return n;
}

void sn_pass_add(sn_pass *p) {
    const sn_compiled *c = &p->model->compiled;
    const uint32_t *output = p->now->outputs;
    size_t at = 0;
    p->n_seen += p->now_rows;
    for (int i = 0; i < 1 + c->n_losses; i++) /* means */
        at += add_output(p->now, *output++, (double)p->now_rows, p->sums + at);
    for (int i = 0; i < c->n_metrics; i++)
        at += add_output(p->now, *output++, 1, p->sums + at);
    assert(at == p->n_sums);
}

void sn_pass_means(const sn_pass *p, double *out) {
    const sn_compiled *c = &p->model->compiled;
    size_t at = 0;
    for (int i = 0; i < 1 + c->n_losses; i++, at++)
        *out++ = p->n_seen ? p->sums[at] / (double)p->n_seen : NAN;
    for (int i = 0; i < c->n_metrics; i++) {
        *out++ = p->n_seen ? sn_metric_finish(&c->metrics[i], p->sums + at) : NAN;
        at += (size_t)c->metrics[i].n_sums;
    }
}

void sn_pass_clear(sn_pass *p) {
    if (p->sums)
        sn_free(p->model->engine, SN_MEM_OTHER, p->sums, p->n_sums * sizeof *p->sums);
    p->sums = NULL;
}
