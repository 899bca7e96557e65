/* evaluate.c: evaluation and prediction: one pass in inference mode. Outputs of predict are handed
 * over batch by batch, so the whole result is never in memory. */
#include "train/pass.h"

#include <string.h>

/* The dataset's batches; *out NULL: there are feeds. */
static snug_status open_stream(snug_model *m, sn_step_mode mode, const snug_run_options *o,
                               sn_stream **out, snug_error *err) {
    *out = NULL;
    if (!m || !o || (!o->x && !o->data && !o->dataset))
        return sn_fail(err, SNUG_E_INVALID, "model, options and x must not be NULL");
    if (!o->dataset)
        return SNUG_OK;
    SNUG_TRY(sn_stream_create(m, o->dataset, mode, NULL, out, err));
    sn_stream_set_interrupt(*out, o->interrupted, o->interrupt_ctx);
    return SNUG_OK;
}

static snug_status plan_pass(sn_pass *pass, sn_stream *stream, snug_model *m, sn_step_mode mode,
                             const snug_run_options *o, snug_error *err) {
    const sn_plain_data feeds = {o->x, o->y, o->sample_weight};
    const snug_data data = o->data ? *o->data : sn_plain_as_data(&feeds);
    const sn_part_of_data part = stream ? sn_stream_part(stream) : sn_whole_data(&data, o->batch);
    sn_model_make_room(m, 2);
    SNUG_TRY(sn_pass_init(pass, m, mode, &part, err));
    const snug_status status = sn_model_prepare(m, err);
    if (status != SNUG_OK)
        sn_pass_clear(pass);
    return status;
}

/* Also names the values for callbacks. A pipeline makes room before the step is refused. */
static snug_status begin(sn_pass *pass, sn_stream *stream, snug_model *m, sn_step_mode mode,
                         const snug_run_options *o, snug_progress *progress, snug_error *err) {
    snug_status status = plan_pass(pass, stream, m, mode, o, err);
    for (bool done = true; status == SNUG_E_BUDGET && done;) {
        SNUG_TRY(sn_stream_shrink(stream, m, &done, err));
        sn_streams_book(stream, NULL, false);
        if (done)
            status = plan_pass(pass, stream, m, mode, o, err);
    }
    SNUG_TRY(sn_stream_explain(stream, status, err));
    sn_stream_start(stream);
    if (stream && o->steps > 0)
        pass->n_steps = o->steps;
    pass->interrupt = (sn_interrupt){o->interrupted, o->interrupt_ctx};
    *progress = (snug_progress){
        .n_epochs = 1, .n_steps = pass->n_steps > 0 ? pass->n_steps : 0, .model = m};
    if (mode != SN_STEP_PREDICT)
        sn_progress_name_values(progress, m);
    return SNUG_OK;
}

static snug_status end_step(const snug_run_options *o, const snug_progress *p, snug_error *err) {
    for (size_t i = 0; i < o->n_callbacks; i++)
        if (o->callbacks[i].on_step_end)
            SNUG_TRY(o->callbacks[i].on_step_end(o->callbacks[i].ctx, p, err));
    if (o->interrupted && o->interrupted(o->interrupt_ctx))
        return sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller after %lld of %lld steps",
                       (long long)p->step, (long long)p->n_steps);
    return SNUG_OK;
}

static snug_status evaluate_all(sn_pass *pass, const snug_run_options *o, snug_progress *progress,
                                snug_error *err) {
    for (int64_t k = 0; sn_pass_has(pass, k); k++) {
        const snug_status status = sn_pass_step(pass, k, 0, err);
        if (status != SNUG_OK)
            return status == SNUG_E_END ? SNUG_OK : status;
        sn_pass_add(pass);
        sn_pass_means(pass, progress->values);
        progress->step = k + 1;
        SNUG_TRY(end_step(o, progress, err));
    }
    return SNUG_OK;
}

snug_status snug_evaluate(snug_model *model, const snug_run_options *options, double *values,
                          int *n_values, snug_error *err) {
    sn_pass pass;
    snug_progress progress;
    if (!values)
        return sn_fail(err, SNUG_E_INVALID, "snug_evaluate: values must not be NULL");
    sn_stream *stream;
    SNUG_TRY(open_stream(model, SN_STEP_EVALUATE, options, &stream, err));
    snug_status status = begin(&pass, stream, model, SN_STEP_EVALUATE, options, &progress, err);
    if (status == SNUG_OK) {
        const int pinned = sn_model_pin(model);
        status = evaluate_all(&pass, options, &progress, err);
        sn_model_unpin(model, pinned);
        sn_pass_clear(&pass);
    }
    sn_stream_destroy(stream);
    if (status != SNUG_OK)
        return status;
    memcpy(values, progress.values, (size_t)progress.n_values * sizeof *values);
    if (n_values)
        *n_values = progress.n_values;
    return SNUG_OK;
}

/* The caller's function for rows, with its ctx. */
typedef snug_status (*output_fn)(void *ctx, int output, int64_t first_row, const snug_view *view,
                                 snug_error *err);
typedef struct {
    output_fn rows;
    void *ctx;
} taker;

static snug_status predict_all(sn_pass *pass, const snug_run_options *o, snug_progress *progress,
                               const taker *to, snug_error *err) {
    for (int64_t k = 0; sn_pass_has(pass, k); k++) {
        const snug_status status = sn_pass_step(pass, k, 0, err);
        if (status != SNUG_OK)
            return status == SNUG_E_END ? SNUG_OK : status;
        for (uint32_t i = 0; i < pass->model->network->n_outputs; i++) {
            snug_view view;
            sn_session_output(pass->now->session, pass->now->outputs[i], &view);
            SNUG_TRY(to->rows(to->ctx, (int)i, pass->first_row, &view, err));
        }
        progress->step = k + 1;
        SNUG_TRY(end_step(o, progress, err));
    }
    return SNUG_OK;
}

snug_status snug_predict_outputs(snug_model *model, const snug_run_options *options, output_fn rows,
                                 void *ctx, snug_error *err) {
    sn_pass pass;
    snug_progress progress;
    if (!rows)
        return sn_fail(err, SNUG_E_INVALID, "snug_predict: rows must not be NULL");
    sn_stream *stream;
    SNUG_TRY(open_stream(model, SN_STEP_PREDICT, options, &stream, err));
    snug_status status = begin(&pass, stream, model, SN_STEP_PREDICT, options, &progress, err);
    if (status == SNUG_OK) {
        const int pinned = sn_model_pin(model);
        status = predict_all(&pass, options, &progress, &(taker){rows, ctx}, err);
        sn_model_unpin(model, pinned);
    }
    sn_stream_destroy(stream);
    return status;
}

typedef struct {
    snug_status (*rows)(void *ctx, int64_t first_row, const snug_view *view, snug_error *err);
    void *ctx;
} plain_taker;

static snug_status take_plain(void *ctx, int output, int64_t first_row, const snug_view *view,
                              snug_error *err) {
    const plain_taker *t = ctx;
    (void)output;
    return t->rows(t->ctx, first_row, view, err);
}

snug_status snug_predict(snug_model *model, const snug_run_options *options,
                         snug_status (*rows)(void *ctx, int64_t first_row, const snug_view *view,
                                             snug_error *err),
                         void *ctx, snug_error *err) {
    plain_taker t = {rows, ctx};
    if (model && model->network->n_outputs > 1)
        return sn_fail(err, SNUG_E_INVALID,
                       "the model has %u outputs; snug_predict_outputs tells them apart",
                       model->network->n_outputs);
    return snug_predict_outputs(model, options, rows ? take_plain : NULL, &t, err);
}
