/* fit.c: training. All plans (full batch, remainder, validation and its remainder), the arena and
 * the weights are there before the first step; the loop then requests nothing from the allocator.
 *
 * A step is atomic: an interrupt is honoured before its first state write, and a loss that is not
 * finite stops it there. So after fit the weights are always those of a whole number of steps. */
#include "train/step_budget.h"
#include "train/pass.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

typedef struct {
    snug_model *model;
    const snug_fit_options *options;
    sn_pass train, validation;
    sn_plain_data feeds, val_feeds;
    sn_stream *stream, *val_stream; /* of datasets, or NULL */
    bool validates;
    int n_epochs;
    snug_progress progress;
    int64_t steps; /* all, over the epochs */
    int epochs;    /* finished */
    size_t predicted_bytes;
    bool stopped;
} fit_run;

typedef snug_status (*callback_fn)(void *ctx, const snug_progress *p, snug_error *err);

/* --- before step 1 ---------------------------------------------------------------------------- */
/* The caller's data in one form; feeds is storage for plain ones. */
static snug_data data_of(const snug_data *data, snug_feed *x, snug_feed *y, snug_feed *weight,
                         sn_plain_data *feeds) {
    *feeds = (sn_plain_data){x, y, weight};
    return data ? *data : sn_plain_as_data(feeds);
}

/* Keras' split: validation is the last part, from floor(n * (1 - split)) on. Class weights act on
 * training only. */
static snug_status split_data(fit_run *f, sn_part_of_data *train, sn_part_of_data *validation,
                              snug_error *err) {
    const snug_fit_options *o = f->options;
    const snug_data data = data_of(o->data, o->x, o->y, o->sample_weight, &f->feeds);
    *train = sn_whole_data(&data, o->batch);
    f->validates = o->val_x || o->val_data;
    if (!o->val_x != !o->val_y)
        return sn_fail(err, SNUG_E_INVALID, "validation needs both x and y; %s is missing",
                       o->val_x ? "y" : "x");
    if (f->validates) {
        const snug_data val =
            data_of(o->val_data, o->val_x, o->val_y, o->val_sample_weight, &f->val_feeds);
        *validation = sn_whole_data(&val, o->batch);
    } else if (o->validation_split != 0) {
        const int64_t n = train->n, cut = (int64_t)floor((double)n * (1 - o->validation_split));
        if (!(o->validation_split > 0 && o->validation_split < 1))
            return sn_fail(err, SNUG_E_INVALID, "validation_split=%g must be between 0 and 1",
                           o->validation_split);
        if (cut < 1 || cut >= n)
            return sn_fail(err, SNUG_E_DATA,
                           "validation_split=%g of %lld rows leaves one part empty",
                           o->validation_split, (long long)n);
        *validation = *train;
        validation->first = train->n = cut;
        validation->n = n - cut;
        f->validates = true;
    }
    train->class_weight = o->class_weight;
    return SNUG_OK;
}

/* Datasets: their first batches come before the plans. */
static snug_status open_streams(fit_run *f, snug_error *err) {
    const snug_fit_options *o = f->options;
    if (o->x || o->data || o->val_x || o->val_data || o->validation_split != 0)
        return sn_fail(err, SNUG_E_INVALID,
                       "a dataset goes with a validation dataset only; give feeds or datasets");
    SNUG_TRY(sn_stream_create(f->model, o->dataset, SN_STEP_TRAIN, NULL, &f->stream, err));
    sn_stream_set_interrupt(f->stream, o->interrupted, o->interrupt_ctx);
    if (!o->val_dataset)
        return SNUG_OK;
    snug_status status = sn_stream_create(f->model, o->val_dataset, SN_STEP_EVALUATE, f->stream,
                                          &f->val_stream, err);
    if (status == SNUG_OK)
        status = sn_stream_put_back(f->val_stream, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "validation data");
    sn_stream_set_interrupt(f->val_stream, o->interrupted, o->interrupt_ctx);
    f->validates = true;
    return SNUG_OK;
}

static void limit_steps(sn_pass *p, int64_t steps) {
    if (steps > 0)
        p->n_steps = steps;
}

/* Full batch and remainder; of a stream nobody knows the last batch. */
static size_t n_steps_of(const sn_part_of_data *part) {
    const int64_t wanted = part->batch > 0 ? part->batch : 32;
    const int64_t batch = wanted < part->n ? wanted : part->n;
    return part->stream || (batch > 0 && part->n % batch != 0) ? 2 : 1;
}

static size_t add_keys(const sn_pass *p, sn_step_mode mode, sn_step_key *keys) {
    const int64_t rest = p->batch > 0 ? p->n % p->batch : 0;
    size_t n = 0;
    if (p->batch > 0)
        keys[n++] = (sn_step_key){mode, p->batch, &p->weighting};
    if (rest > 0)
        keys[n++] = (sn_step_key){mode, rest, &p->weighting};
    return n;
}

/* One number that suffices for all steps, not only for the one that was refused first. Without room
 * for the plans there are the others are judged as if they were not made yet. */
static snug_status refuse_all(fit_run *f, snug_error *err) {
    sn_step_key keys[4];
    size_t n = add_keys(&f->train, SN_STEP_TRAIN, keys);
    n += add_keys(&f->validation, SN_STEP_EVALUATE, keys + n);
    sn_model_make_room(f->model, SN_MODEL_MAX_STEPS);
    return n > 1 ? sn_model_refuse_all(f->model, keys, n, err) : SNUG_E_BUDGET;
}

/* Whether a plan at hand is for more rows than there are, as that of snug_fit_check may be: it will
 * not run, and the arena is as large as the largest. */
static bool has_step_beyond(const snug_model *m, const sn_part_of_data *train) {
    for (int i = 0; i < m->n_steps; i++)
        if (m->steps[i].mode == SN_STEP_TRAIN && !train->stream && m->steps[i].batch > train->n)
            return true;
    return false;
}

/* A step that is refused does not keep the others from being looked at: a refusal counts all. */
static snug_status init_passes(fit_run *f, const sn_part_of_data *train,
                               const sn_part_of_data *validation, snug_error *err) {
    const snug_status trains = sn_pass_init(&f->train, f->model, SN_STEP_TRAIN, train, err);
    if (!f->validates || (trains != SNUG_OK && trains != SNUG_E_BUDGET))
        return trains;
    const snug_status status = sn_pass_init(&f->validation, f->model, SN_STEP_EVALUATE, validation,
                                            trains == SNUG_OK ? err : NULL);
    if (trains != SNUG_OK || status == SNUG_OK)
        return trains;
    return sn_fail_in(err, status, "validation data");
}

static snug_status plan_passes(fit_run *f, const sn_part_of_data *train,
                               const sn_part_of_data *validation, snug_error *err) {
    const snug_fit_options *o = f->options;
    sn_model_make_room(f->model,
                       has_step_beyond(f->model, train) ? SN_MODEL_MAX_STEPS : SN_FIT_STEPS);
    f->model->foreseen = (sn_foreseen){.is_known = true,
                                       .n_train = n_steps_of(train),
                                       .n_others = f->validates ? n_steps_of(validation) : 0};
    SNUG_TRY(init_passes(f, train, validation, err));
    limit_steps(&f->train, o->steps_per_epoch);
    limit_steps(&f->validation, o->val_steps);
    f->train.interrupt = f->validation.interrupt = (sn_interrupt){o->interrupted, o->interrupt_ctx};
    SNUG_TRY(sn_model_expect(f->model, &f->predicted_bytes, err));
    return sn_model_prepare(f->model, err);
}

/* Beside pipelines, whose batches go on from epoch to epoch where they are counted. Plans that were
 * made without them do not count. */
static snug_status plan_beside_streams(fit_run *f, snug_error *err) {
    const bool together = f->options->steps_per_epoch > 0;
    sn_part_of_data train, validation = {.n = 0};
    if (f->model->n_pinned == 0 && snug_budget_bytes(f->model->engine) > 0)
        sn_model_drop_steps(f->model);
    sn_streams_book(f->stream, f->val_stream, together);
    train = sn_stream_part(f->stream);
    train.class_weight = f->options->class_weight;
    if (f->val_stream)
        validation = sn_stream_part(f->val_stream);
    return plan_passes(f, &train, &validation, err);
}

static snug_status shrink(fit_run *f, bool *done, snug_error *err) {
    SNUG_TRY(sn_stream_shrink(f->stream, f->model, done, err));
    if (!*done)
        SNUG_TRY(sn_stream_shrink(f->val_stream, f->model, done, err));
    sn_pass_clear(&f->validation);
    sn_pass_clear(&f->train);
    return SNUG_OK;
}

/* Pipelines make room before a step is refused. */
static snug_status plan_streams(fit_run *f, snug_error *err) {
    SNUG_TRY(open_streams(f, err));
    snug_status status = plan_beside_streams(f, err);
    for (bool done = true; status == SNUG_E_BUDGET && done;) {
        SNUG_TRY(shrink(f, &done, err));
        if (done)
            status = plan_beside_streams(f, err);
    }
    sn_stream_start(f->stream);
    return sn_stream_explain(f->stream, status, err);
}

static snug_status plan_all(fit_run *f, snug_error *err) {
    sn_part_of_data train, validation;
    if (f->options->dataset)
        return plan_streams(f, err);
    SNUG_TRY(split_data(f, &train, &validation, err));
    const snug_status status = plan_passes(f, &train, &validation, err);
    return status == SNUG_E_BUDGET ? refuse_all(f, err) : status;
}

static void init_progress(fit_run *f) {
    snug_progress *p = &f->progress;
    *p = (snug_progress){.n_epochs = f->n_epochs, .model = f->model};
    sn_progress_name_values(p, f->model);
}

/* --- the loop --------------------------------------------------------------------------------- */
static callback_fn on_epoch_begin(const snug_callback *c) {
    return c->on_epoch_begin;
}
static callback_fn on_step_end(const snug_callback *c) {
    return c->on_step_end;
}
static callback_fn on_epoch_end(const snug_callback *c) {
    return c->on_epoch_end;
}

/* A callback that wants to stop is not an error; the others are still called. */
static snug_status call_back(fit_run *f, callback_fn (*which)(const snug_callback *c),
                             snug_error *err) {
    for (size_t i = 0; i < f->options->n_callbacks; i++) {
        const snug_callback *c = &f->options->callbacks[i];
        if (!which(c))
            continue;
        const snug_status status = which(c)(c->ctx, &f->progress, err);
        if (status == SNUG_E_INTERRUPTED)
            f->stopped = true;
        else if (status != SNUG_OK)
            return status;
    }
    return SNUG_OK;
}

static bool asked_to_stop(const fit_run *f) {
    return f->options->interrupted && f->options->interrupted(f->options->interrupt_ctx);
}

static snug_status fail_in_step(const fit_run *f, int64_t k, snug_status status, snug_error *err) {
    if (f->train.n_steps < 0)
        return sn_fail_in(err, status, "epoch %d, step %lld", f->progress.epoch + 1,
                          (long long)k + 1);
    return sn_fail_in(err, status, "epoch %d, step %lld of %lld", f->progress.epoch + 1,
                      (long long)k + 1, (long long)f->train.n_steps);
}

static snug_status train_step(fit_run *f, int64_t k, snug_error *err) {
    const uint64_t key = sn_rng_key(sn_rng_key(f->options->seed, UINT64_MAX), (uint64_t)f->steps);
    const snug_status status = sn_pass_step(&f->train, k, key, err);
    if (status == SNUG_E_INTERRUPTED) {
        f->stopped = true;
        return SNUG_OK;
    }
    if (status != SNUG_OK)
        return status == SNUG_E_END ? status : fail_in_step(f, k, status, err);
    f->steps++;
    sn_pass_add(&f->train);
    sn_pass_means(&f->train, f->progress.values);
    f->progress.step = k + 1;
    SNUG_TRY(call_back(f, on_step_end, err));
    f->stopped = f->stopped || asked_to_stop(f);
    return SNUG_OK;
}

/* Leaves has_validation unset when it is interrupted. */
static snug_status validate(fit_run *f, snug_error *err) {
    sn_pass_restart(&f->validation);
    if (f->val_stream)
        SNUG_TRY(sn_stream_restart(f->val_stream, err));
    for (int64_t k = 0; sn_pass_has(&f->validation, k); k++) {
        const snug_status status = sn_pass_step(&f->validation, k, 0, err);
        if (status == SNUG_E_END)
            break;
        if (status == SNUG_E_INTERRUPTED) {
            f->stopped = true;
            return SNUG_OK;
        }
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "validation after epoch %d", f->progress.epoch + 1);
        sn_pass_add(&f->validation);
    }
    sn_pass_means(&f->validation, f->progress.val_values);
    f->progress.has_validation = 1;
    return SNUG_OK;
}

/* An epoch's steps; *whole: none is missing. Batches that are counted go on from epoch to epoch,
 * and from the dataset's end to its start. */
static snug_status run_steps(fit_run *f, bool *whole, snug_error *err) {
    const bool counted = f->options->steps_per_epoch > 0;
    snug_status status = SNUG_OK;
    int64_t k = 0;
    if (f->stream && !counted)
        SNUG_TRY(sn_stream_restart(f->stream, err));
    while (sn_pass_has(&f->train, k) && !f->stopped && status == SNUG_OK) {
        status = train_step(f, k, err);
        if (status == SNUG_E_END && counted) {
            SNUG_TRY(sn_stream_restart(f->stream, err));
            status = train_step(f, k, err);
        }
        k = f->progress.step;
    }
    *whole = status == SNUG_E_END || (status == SNUG_OK && !sn_pass_has(&f->train, k));
    if (status == SNUG_E_END)
        f->train.n_steps = k;
    return status == SNUG_E_END ? SNUG_OK : status;
}

static snug_status run_epoch(fit_run *f, int epoch, snug_error *err) {
    bool whole = false;
    f->progress.epoch = epoch;
    f->progress.step = 0;
    f->progress.has_validation = 0;
    sn_pass_restart(&f->train);
    if (f->options->shuffle && !f->stream)
        sn_pass_shuffle(&f->train, sn_rng_key(f->options->seed, (uint64_t)epoch));
    f->progress.n_steps = f->train.n_steps > 0 ? f->train.n_steps : 0;
    SNUG_TRY(call_back(f, on_epoch_begin, err));
    SNUG_TRY(run_steps(f, &whole, err));
    f->progress.n_steps = f->train.n_steps > 0 ? f->train.n_steps : 0;
    if (!whole)
        return SNUG_OK;
    if (f->validates) {
        SNUG_TRY(validate(f, err));
        if (!f->progress.has_validation)
            return SNUG_OK; /* the epoch did not end: who watches val_loss is not asked */
    }
    f->epochs++;
    return call_back(f, on_epoch_end, err);
}

static snug_status run_epochs(fit_run *f, snug_error *err) {
    for (int epoch = 0; epoch < f->n_epochs && !f->stopped; epoch++)
        SNUG_TRY(run_epoch(f, epoch, err));
    return SNUG_OK;
}

static void fill_result(const fit_run *f, snug_fit_result *out) {
    snug_fit_result r = {.epochs = f->epochs,
                         .steps = f->steps,
                         .stopped = f->stopped,
                         .n_values = f->progress.n_values};
    memcpy(r.values, f->progress.values, sizeof r.values);
    memcpy(r.val_values, f->progress.val_values, sizeof r.val_values);
    r.predicted_bytes = f->predicted_bytes;
    r.input_seconds = f->stream ? sn_stream_wait_seconds(f->stream) : 0;
    r.arena_bytes = sn_executor_arena(f->model->executor, SN_MEM_FIRST_ARENA).bytes;
    *out = r;
}

snug_status snug_fit(snug_model *model, const snug_fit_options *options, snug_fit_result *out,
                     snug_error *err) {
    if (!model || !options || (!options->data && !options->dataset && (!options->x || !options->y)))
        return sn_fail(err, SNUG_E_INVALID, "snug_fit: model, options, x and y must not be NULL");
    if (options->epochs < 0)
        return sn_fail(err, SNUG_E_INVALID, "%d epochs; at least 1 is needed", options->epochs);
    fit_run f = {
        .model = model, .options = options, .n_epochs = options->epochs ? options->epochs : 1};
    model->failed.is_known = false;
    snug_status status = plan_all(&f, err);
    model->foreseen = (sn_foreseen){.is_known = false};
    if (status == SNUG_OK) {
        init_progress(&f);
        const int pinned = sn_model_pin(model);
        status = run_epochs(&f, err);
        if (status == SNUG_OK)
            status = sn_model_finish_fit(model, err);
        sn_model_unpin(model, pinned);
    }
    if (status == SNUG_OK && out)
        fill_result(&f, out);
    sn_pass_clear(&f.validation);
    sn_pass_clear(&f.train);
    sn_stream_destroy(f.val_stream);
    sn_stream_destroy(f.stream);
    return status;
}
