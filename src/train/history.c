/* history.c: the callback that keeps what every epoch gave, as Keras' History does.
 *
 *     row of epoch i: [ loss, metrics ... | val_loss, val_metrics ... ], NaN where nothing was
 *     validated
 *
 * Room is made at the start of an epoch and, for all epochs up to SOON, at the start of the first:
 * the step loop requests nothing. */
#include "train/model.h"

#include <math.h>
#include <string.h>

enum { SOON = 4096 };

struct snug_history {
    snug_engine *engine;
    int n_values;
    char names[1 + SNUG_MAX_METRICS][sizeof((sn_metric *)0)->name];
    double *values; /* rows of 2 * n_values; cap doubles by sn_grow */
    size_t cap, n_epochs;
};

static snug_status begin_epoch(void *ctx, const snug_progress *p, snug_error *err) {
    snug_history *h = ctx;
    if (p->epoch == 0) {
        h->n_epochs = 0;
        h->n_values = p->n_values;
        for (int i = 0; i < p->n_values; i++) {
            strncpy(h->names[i], p->names[i], sizeof h->names[i] - 1);
            h->names[i][sizeof h->names[i] - 1] = 0;
        }
    }
    const size_t width = 2 * (size_t)h->n_values;
    const size_t soon = (size_t)(p->n_epochs < SOON ? p->n_epochs : SOON);
    const size_t next = h->n_epochs + 1;
    return sn_grow(h->engine, SN_MEM_OTHER, (void **)&h->values, sizeof *h->values, &h->cap,
                   (next > soon ? next : soon) * width, err);
}

static snug_status end_epoch(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    snug_history *h = ctx;
    double *row = h->values + h->n_epochs++ * 2 * (size_t)h->n_values;
    for (int i = 0; i < h->n_values; i++) {
        row[i] = p->values[i];
        row[h->n_values + i] = p->has_validation ? p->val_values[i] : NAN;
    }
    return SNUG_OK;
}

static void destroy_history(void *ctx) {
    snug_history *h = ctx;
    sn_free(h->engine, SN_MEM_OTHER, h->values, h->cap * sizeof *h->values);
    sn_free(h->engine, SN_MEM_OTHER, h, sizeof *h);
}

snug_status snug_callback_history(snug_engine *e, snug_history **history, snug_callback *out,
                                  snug_error *err) {
    SNUG_NEEDS(err, e && history && out);
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_OTHER, sizeof(snug_history), &block, err));
    snug_history *const h = block;
    h->engine = e;
    *history = h;
    *out = (snug_callback){.ctx = h,
                           .on_epoch_begin = begin_epoch,
                           .on_epoch_end = end_epoch,
                           .destroy = destroy_history};
    return SNUG_OK;
}

size_t snug_history_epochs(const snug_history *h) {
    if (!h)
        return 0;
    return h->n_epochs;
}

snug_status snug_history_value(const snug_history *h, const char *quantity, size_t epoch,
                               double *out, snug_error *err) {
    SNUG_NEEDS(err, h && quantity);
    const bool validation = strncmp(quantity, "val_", 4) == 0;
    const char *name = validation ? quantity + 4 : quantity;
    if (epoch >= h->n_epochs)
        return sn_fail(err, SNUG_E_INVALID, "there is no epoch %zu; %zu were finished", epoch,
                       h->n_epochs);
    for (int i = 0; i < h->n_values; i++)
        if (strcmp(name, h->names[i]) == 0) {
            *out = h->values[(epoch * 2 + validation) * (size_t)h->n_values + (size_t)i];
            return SNUG_OK;
        }
    return sn_fail(err, SNUG_E_INVALID, "'%.60s' was not measured; there are loss and %d metrics",
                   quantity, h->n_values - 1);
}
