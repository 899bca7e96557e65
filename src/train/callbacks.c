/* callbacks.c: the ready-made callbacks: early stopping, best weights, a learning rate by schedule
 * or lower on a plateau, CSV log. Each owns one small block that its destroy gives back. A quantity
 * is "loss", a metric's name, or either with "val_" in front; the metric knows whether more of it
 * is better, and losses are better when lower. */
#include "train/model.h"

#include "base/real.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PATH 1024

/* --- quantities ------------------------------------------------------------------------------- */
typedef struct {
    char name[64];
    bool higher_is_better;
    bool any; /* best holds a value */
    double best;
} watched;

static snug_status watch(watched *w, const char *quantity, snug_error *err) {
    if (!quantity || !quantity[0] || strlen(quantity) >= sizeof w->name)
        return sn_fail(err, SNUG_E_INVALID, "a callback needs a quantity such as val_loss");
    *w = (watched){.any = false};
    memcpy(w->name, quantity, strlen(quantity) + 1);
    return SNUG_OK;
}

static bool rises(const snug_model *m, const char *name) {
    const sn_compiled *c = &m->compiled;
    for (int i = 0; i < c->n_metrics; i++)
        if (strcmp(c->metrics[i].name, name) == 0)
            return sn_metric_rises(&c->metrics[i]);
    return false;
}

static snug_status read_quantity(watched *w, const snug_progress *p, double *out, snug_error *err) {
    const bool validation = strncmp(w->name, "val_", 4) == 0;
    const char *name = validation ? w->name + 4 : w->name;
    for (int i = 0; i < p->n_values; i++) {
        if (strcmp(name, p->names[i]) != 0)
            continue;
        if (validation && !p->has_validation)
            return sn_fail(err, SNUG_E_INVALID, "'%s' is watched, but there is no validation data",
                           w->name);
        *out = validation ? p->val_values[i] : p->values[i];
        w->higher_is_better = rises(p->model, name);
        return SNUG_OK;
    }
    return sn_fail(err, SNUG_E_INVALID,
                   "'%s' is watched, but there are only loss and %d metrics%s%s", w->name,
                   p->n_values - 1, p->n_values > 1 ? ", the first is " : "",
                   p->n_values > 1 ? p->names[1] : "");
}

/* Whether value is better than the best so far by more than delta; then it is the best. */
static bool improve(watched *w, double value, double delta) {
    const bool better = !w->any               ? !isnan(value)
                        : w->higher_is_better ? value - delta > w->best
                                              : value + delta < w->best;
    if (better) {
        w->any = true;
        w->best = value;
    }
    return better;
}

/* --- early stopping --------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    watched what;
    int patience, wait;
    double min_delta;
} early_stopping;

/* One callback may serve several fits. */
static snug_status begin_watching(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    early_stopping *s = ctx;
    if (p->epoch == 0) {
        s->wait = 0;
        s->what.any = false;
    }
    return SNUG_OK;
}

static snug_status stop_early(void *ctx, const snug_progress *p, snug_error *err) {
    early_stopping *s = ctx;
    double value;
    SNUG_TRY(read_quantity(&s->what, p, &value, err));
    s->wait = improve(&s->what, value, s->min_delta) ? 0 : s->wait + 1;
    if (s->wait < s->patience || s->wait == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INTERRUPTED, "%s has not improved for %d epochs", s->what.name,
                   s->wait);
}

static void destroy_early_stopping(void *ctx) {
    early_stopping *s = ctx;
    sn_free(s->engine, SN_MEM_OTHER, s, sizeof *s);
}

snug_status snug_callback_early_stopping(snug_engine *e, const char *quantity, int patience,
                                         double min_delta, snug_callback *out, snug_error *err) {
    SNUG_NEEDS(err, e && out);
    early_stopping made = {.engine = e, .patience = patience, .min_delta = fabs(min_delta)};
    void *block;
    SNUG_TRY(watch(&made.what, quantity, err));
    SNUG_TRY(sn_alloc(e, SN_MEM_OTHER, sizeof made, &block, err));
    *(early_stopping *)block = made;
    *out = (snug_callback){.ctx = block,
                           .on_epoch_begin = begin_watching,
                           .on_epoch_end = stop_early,
                           .destroy = destroy_early_stopping};
    return SNUG_OK;
}

/* --- best weights ----------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    watched what;
    char path[MAX_PATH];
} best_weights;

static snug_status check_path(const char *path, snug_error *err) {
    if (path && path[0] && strlen(path) < MAX_PATH)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "a path of 1 to %d letters is needed", MAX_PATH - 1);
}

static snug_status save_if_best(void *ctx, const snug_progress *p, snug_error *err) {
    best_weights *b = ctx;
    double value;
    SNUG_TRY(read_quantity(&b->what, p, &value, err));
    return improve(&b->what, value, 0) ? snug_model_save_weights(p->model, b->path, err) : SNUG_OK;
}

static void destroy_best_weights(void *ctx) {
    best_weights *b = ctx;
    sn_free(b->engine, SN_MEM_OTHER, b, sizeof *b);
}

snug_status snug_callback_best_weights(snug_engine *e, const char *quantity, const char *path,
                                       snug_callback *out, snug_error *err) {
    SNUG_NEEDS(err, e && out);
    watched what;
    void *block;
    SNUG_TRY(check_path(path, err));
    SNUG_TRY(watch(&what, quantity, err));
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_OTHER, sizeof(best_weights), &block, err));
    best_weights *const b = block;
    b->engine = e;
    b->what = what;
    memcpy(b->path, path, strlen(path) + 1);
    *out = (snug_callback){.ctx = b, .on_epoch_end = save_if_best, .destroy = destroy_best_weights};
    return SNUG_OK;
}

/* --- schedule --------------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    double (*rate)(void *ctx, int epoch, double current);
    void *ctx;
} schedule;

static snug_status set_rate(void *ctx, const snug_progress *p, snug_error *err) {
    const schedule *s = ctx;
    return snug_model_set_learning_rate(
        p->model, s->rate(s->ctx, p->epoch, snug_model_learning_rate(p->model)), err);
}

static void destroy_schedule(void *ctx) {
    schedule *s = ctx;
    sn_free(s->engine, SN_MEM_OTHER, s, sizeof *s);
}

snug_status snug_callback_schedule(snug_engine *e,
                                   double (*rate)(void *ctx, int epoch, double current), void *ctx,
                                   snug_callback *out, snug_error *err) {
    SNUG_NEEDS(err, e && out);
    void *block;
    if (!rate)
        return sn_fail(err, SNUG_E_INVALID, "snug_callback_schedule: rate must not be NULL");
    SNUG_TRY(sn_alloc(e, SN_MEM_OTHER, sizeof(schedule), &block, err));
    *(schedule *)block = (schedule){e, rate, ctx};
    *out = (snug_callback){.ctx = block, .on_epoch_begin = set_rate, .destroy = destroy_schedule};
    return SNUG_OK;
}

/* --- plateau ---------------------------------------------------------------------------------- */
/* Keras' ReduceLROnPlateau: cooldown epochs after a reduction do not count as waiting. */
typedef struct {
    snug_engine *engine;
    watched what;
    snug_plateau_options options;
    int wait, resting;
} plateau;

static snug_status begin_plateau(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    plateau *s = ctx;
    if (p->epoch == 0) {
        s->wait = s->resting = 0;
        s->what.any = false;
    }
    return SNUG_OK;
}

static snug_status reduce_rate(void *ctx, const snug_progress *p, snug_error *err) {
    plateau *s = ctx;
    const snug_plateau_options *o = &s->options;
    const double rate = snug_model_learning_rate(p->model);
    double value;
    SNUG_TRY(read_quantity(&s->what, p, &value, err));
    if (s->resting > 0) {
        s->resting--;
        s->wait = 0;
    }
    if (improve(&s->what, value, o->min_delta)) {
        s->wait = 0;
        return SNUG_OK;
    }
    if (s->resting > 0 || ++s->wait < o->patience || rate <= o->min_rate)
        return SNUG_OK;
    s->wait = 0;
    s->resting = o->cooldown;
    return snug_model_set_learning_rate(p->model, fmax(rate * o->factor, o->min_rate), err);
}

static void destroy_plateau(void *ctx) {
    plateau *s = ctx;
    sn_free(s->engine, SN_MEM_OTHER, s, sizeof *s);
}

snug_status snug_callback_reduce_on_plateau(snug_engine *e, const char *quantity,
                                            const snug_plateau_options *options, snug_callback *out,
                                            snug_error *err) {
    SNUG_NEEDS(err, e && out);
    plateau made = {.engine = e};
    void *block;
    if (options)
        made.options = *options;
    snug_plateau_options *const o = &made.options;
    o->factor = o->factor == 0 ? 0.1 : o->factor;
    o->patience = o->patience == 0 ? 10 : o->patience;
    o->min_delta = o->min_delta == 0 ? 1e-4 : o->min_delta;
    if (!(o->factor > 0 && o->factor < 1) || o->patience < 0 || o->cooldown < 0 ||
        !(o->min_delta >= 0) || !(o->min_rate >= 0))
        return sn_fail(err, SNUG_E_INVALID,
                       "factor=%g must be between 0 and 1, the other settings not negative",
                       o->factor);
    SNUG_TRY(watch(&made.what, quantity, err));
    SNUG_TRY(sn_alloc(e, SN_MEM_OTHER, sizeof made, &block, err));
    *(plateau *)block = made;
    *out = (snug_callback){.ctx = block,
                           .on_epoch_begin = begin_plateau,
                           .on_epoch_end = reduce_rate,
                           .destroy = destroy_plateau};
    return SNUG_OK;
}

/* --- CSV -------------------------------------------------------------------------------------- */
/* Every line is on disk before the next epoch starts, so a killed run leaves whole lines. */
typedef struct {
    snug_engine *engine;
    const snug_io *io;
    int fd;
    int64_t end;
    char path[MAX_PATH];
} csv;

static snug_status append(csv *c, const char *text, snug_error *err) {
    const size_t n = strlen(text);
    for (size_t done = 0; done < n;) {
        int64_t wrote = c->io->pwrite(c->io->ctx, c->fd, text + done, n - done, c->end);
        if (wrote == -ESPIPE) /* a pipe takes what comes next */
            wrote = c->io->pwrite(c->io->ctx, c->fd, text + done, n - done, -1);
        if (wrote <= 0)
            return sn_fail_by(err, SNUG_E_IO, sn_file_cause((int)-wrote), "%s: cannot write: %s",
                              c->path, wrote ? strerror((int)-wrote) : "nothing was taken");
        done += (size_t)wrote;
        c->end += wrote;
    }
    const int status = c->io->sync(c->io->ctx, c->fd);
    return status >= 0 ? SNUG_OK
                       : sn_fail_by(err, SNUG_E_IO, sn_file_cause(-status), "%s: cannot sync: %s",
                                    c->path, strerror(-status));
}

static void add_columns(char *line, size_t size, const char *prefix, const snug_progress *p,
                        const double *values) {
    char number[SN_REAL_TEXT];
    for (int i = 0; i < p->n_values; i++) {
        const size_t n = strlen(line);
        if (values)
            snprintf(line + n, size - n, ",%s", sn_real_print(sn_shown(values[i]), 9, number));
        else
            snprintf(line + n, size - n, ",%s%s", prefix, p->names[i]);
    }
}

static snug_status write_line(void *ctx, const snug_progress *p, snug_error *err) {
    csv *c = ctx;
    char line[2 * (1 + SNUG_MAX_METRICS) * 64 + 32] = "epoch";
    if (c->end == 0) {
        add_columns(line, sizeof line, "", p, NULL);
        if (p->has_validation)
            add_columns(line, sizeof line, "val_", p, NULL);
        strcat(line, "\n");
        SNUG_TRY(append(c, line, err));
    }
    snprintf(line, sizeof line, "%d", p->epoch);
    add_columns(line, sizeof line, "", p, p->values);
    if (p->has_validation)
        add_columns(line, sizeof line, "", p, p->val_values);
    strcat(line, "\n");
    return append(c, line, err);
}

static void destroy_csv(void *ctx) {
    csv *c = ctx;
    c->io->close(c->io->ctx, c->fd);
    sn_free(c->engine, SN_MEM_OTHER, c, sizeof *c);
}

snug_status snug_callback_csv(snug_engine *e, const char *path, snug_callback *out,
                              snug_error *err) {
    SNUG_NEEDS(err, e);
    void *block;
    SNUG_TRY(check_path(path, err));
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_OTHER, sizeof(csv), &block, err));
    csv *const c = block;
    c->engine = e;
    c->io = sn_engine_io(e);
    memcpy(c->path, path, strlen(path) + 1);
    c->fd = c->io->open(c->io->ctx, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (c->fd < 0) {
        const int error = -c->fd;
        sn_free(e, SN_MEM_OTHER, c, sizeof *c);
        return sn_fail_by(err, SNUG_E_IO, sn_file_cause(error), "%s: cannot create: %s", path,
                          strerror(error));
    }
    *out = (snug_callback){.ctx = c, .on_epoch_end = write_line, .destroy = destroy_csv};
    return SNUG_OK;
}
