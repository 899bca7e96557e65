/* pass.c: a pass over data (pass.h). The inputs of a session are bound to the pass's own row
 * sources at each step, so that several passes can share one session. */
#include "train/pass.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static snug_status check_data(const snug_model *m, const sn_part_of_data *part, snug_error *err) {
    if (!part->x)
        return sn_fail(err, SNUG_E_INVALID, "there is no x; give the examples");
    SNUG_TRY(sn_rows_check(part->x, snug_model_input(m), "x", err));
    if (part->n < 1)
        return sn_fail(err, SNUG_E_DATA, "x has no rows here; at least one is needed");
    if (!part->y)
        return SNUG_OK;
    const int64_t n_x = snug_feed_type(part->x)->dims[0], n_y = snug_feed_type(part->y)->dims[0];
    if (n_x != n_y)
        return sn_fail(err, SNUG_E_DATA,
                       "x has %lld rows and y has %lld; each example needs one target",
                       (long long)n_x, (long long)n_y);
    snug_type target;
    snug_model_target(m, &target);
    return sn_rows_check(part->y, &target, "y", err);
}

static snug_status want_step(snug_model *m, sn_step_mode mode, int64_t batch, sn_model_step **out,
                             snug_error *err) {
    SNUG_TRY(sn_model_step_find(m, mode, batch, out, err));
    (*out)->wanted = true;
    return SNUG_OK;
}

/* Makes what reading the feed in the input's dtype needs: the step loop allocates nothing. */
static snug_status prepare_feed(const sn_model_step *s, uint32_t input, snug_feed *feed,
                                snug_error *err) {
    const sn_value v = sn_graph_input_at(s->graph, input);
    return sn_feed_prepare(feed, sn_graph_type(s->graph, v)->dtype, err);
}

/* The metrics of the model are resolved: it has a step. */
static snug_status make_sums(sn_pass *p, snug_error *err) {
    void *block;
    p->n_sums = 1;
    for (int i = 0; i < p->model->n_metrics; i++)
        p->n_sums += (size_t)p->model->metrics[i].n_sums;
    SNUG_TRY(
        sn_alloc_zero(p->model->engine, SN_MEM_OTHER, p->n_sums * sizeof *p->sums, &block, err));
    p->sums = block;
    return SNUG_OK;
}

/* Full batch and remainder (0: none) of a mode. */
static snug_status want_both(snug_model *m, sn_step_mode mode, int64_t batch, int64_t rest,
                             sn_model_step *out[2], snug_error *err) {
    out[1] = NULL;
    SNUG_TRY(want_step(m, mode, batch, &out[0], err));
    return rest ? want_step(m, mode, rest, &out[1], err) : SNUG_OK;
}

snug_status sn_pass_init(sn_pass *p, snug_model *m, sn_step_mode mode, const sn_part_of_data *part,
                         snug_error *err) {
    if (m->network->n_layers == 0)
        return sn_fail(err, SNUG_E_INVALID, "model '%s' has no layers; add one first",
                       m->network->name);
    if (m->network->n_inputs > 1 || m->network->n_outputs > 1)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "model '%s' has %u inputs and %u outputs",
                       m->network->name, m->network->n_inputs, m->network->n_outputs);
    if (mode != SN_STEP_PREDICT && !part->y)
        return sn_fail(err, SNUG_E_INVALID, "there is no y; give the targets");
    if (part->batch < 0)
        return sn_fail(err, SNUG_E_INVALID, "a batch of %lld rows; it must be at least 1",
                       (long long)part->batch);
    SNUG_TRY(check_data(m, part, err));
    const int64_t wanted = part->batch ? part->batch : 32;
    const int64_t batch = wanted < part->n ? wanted : part->n;
    *p = (sn_pass){.model = m,
                   .mode = mode,
                   .batch = batch,
                   .n_steps = part->n / batch + (part->n % batch != 0)};
    p->x = (sn_rows){.feed = part->x, .first = part->first, .n = part->n};
    p->y = (sn_rows){.feed = part->y, .first = part->first, .n = part->n};
    SNUG_TRY(want_both(m, mode, batch, part->n % batch, p->steps, err));
    if (mode == SN_STEP_TRAIN && m->optimizer.gradient_accumulation_steps > 0)
        SNUG_TRY(want_both(m, SN_STEP_ACCUMULATE, batch, part->n % batch, p->adding_steps, err));
    SNUG_TRY(prepare_feed(p->steps[0], p->steps[0]->x, part->x, err));
    if (mode != SN_STEP_PREDICT)
        SNUG_TRY(prepare_feed(p->steps[0], p->steps[0]->y, part->y, err));
    return mode == SN_STEP_PREDICT ? SNUG_OK : make_sums(p, err);
}

static bool ask(void *ctx) {
    const sn_interrupt *i = ctx;
    return i->asked(i->ctx) != 0;
}

/* A label outside of the classes: say which row of the caller's data it is in. */
static snug_status explain(const sn_pass *p, snug_status status, snug_error *err) {
    int64_t row, label;
    const snug_type *output = snug_model_output(p->model);
    const int64_t n_classes = output->dims[output->rank - 1];
    if (status == SNUG_E_DATA && p->mode != SN_STEP_PREDICT && p->model->loss.sparse &&
        sn_rows_bad_label(&p->y, p->now_rows, n_classes, &row, &label))
        return sn_fail(
            err, status, "row %lld of y has the label %lld; the model has %lld classes, 0 to %lld",
            (long long)row, (long long)label, (long long)n_classes, (long long)n_classes - 1);
    return status;
}

/* What snug_model_find_nan needs to run the step again. */
static void keep_failed(sn_pass *p, uint64_t dropout_key) {
    p->model->failed = (sn_failed_step){
        .there = true, .batch = p->now_rows, .x = p->x, .y = p->y, .dropout_key = dropout_key};
}

snug_status sn_pass_step(sn_pass *p, int64_t k, uint64_t dropout_key, snug_error *err) {
    p->x.start = p->y.start = k * p->batch;
    const int64_t left = p->x.n - p->x.start;
    const bool updates = p->mode != SN_STEP_TRAIN ||
                         sn_optimizer_updates(&p->model->optimizer, p->model->iterations + 1);
    p->now = (updates ? p->steps : p->adding_steps)[left < p->batch];
    p->now_rows = p->now->batch;
    sn_session *const session = p->now->session;
    sn_session_bind_input(session, p->now->x, (sn_input_binding){&p->x, sn_rows_fill});
    if (p->mode != SN_STEP_PREDICT)
        sn_session_bind_input(session, p->now->y, (sn_input_binding){&p->y, sn_rows_fill});
    sn_session_set_interrupt(session, p->interrupt.asked ? ask : NULL, &p->interrupt);
    if (p->mode == SN_STEP_TRAIN)
        sn_model_set_params(p->model, p->now, dropout_key, NULL);
    const snug_status status = sn_session_run(session, err);
    if (status == SNUG_OK) {
        p->model->iterations += p->mode == SN_STEP_TRAIN;
        return SNUG_OK;
    }
    if (status == SNUG_E_NUMERIC && p->mode == SN_STEP_TRAIN)
        keep_failed(p, dropout_key);
    return explain(p, status, err);
}

/* --- sums ------------------------------------------------------------------------------------- */
void sn_pass_restart(sn_pass *p) {
    memset(p->sums, 0, p->n_sums * sizeof *p->sums);
    p->n_seen = 0;
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
    p->n_seen += p->now_rows;
    size_t at = add_output(p->now, p->now->outputs[0], (double)p->now_rows, p->sums); /* a mean */
    for (int i = 0; i < p->model->n_metrics; i++)
        at += add_output(p->now, p->now->outputs[1 + i], 1, p->sums + at);
    assert(at == p->n_sums);
}

void sn_pass_means(const sn_pass *p, double *out) {
    const snug_model *m = p->model;
    size_t at = 1;
    out[0] = p->n_seen ? p->sums[0] / (double)p->n_seen : NAN;
    for (int i = 0; i < m->n_metrics; i++) {
        out[1 + i] = p->n_seen ? sn_metric_finish(&m->metrics[i], p->sums + at) : NAN;
        at += (size_t)m->metrics[i].n_sums;
    }
}

void sn_pass_clear(sn_pass *p) {
    if (p->sums)
        sn_free(p->model->engine, SN_MEM_OTHER, p->sums, p->n_sums * sizeof *p->sums);
    p->sums = NULL;
}
