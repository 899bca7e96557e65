/* nan.c: where a NaN came from. The failed step is run once more by the naive executor, every value
 * in a buffer of its own, and looked at in this order: weights, the batch, then each node in
 * program order; the first value that is not finite is named. The step failed before its first
 * state write, so weights are still those it had. */
#include "base/real.h"
#include "train/model.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    const sn_graph *graph;
    bool found;
    char text[400];
} search;

typedef struct {
    search *s;
    sn_rows *rows;
    const char *name;
} watched_input;

/* Index of the first element that is not finite, or -1. */
static int64_t first_bad(const snug_view *v, double *value) {
    enum { CHUNK = 256 };
    double chunk[CHUNK];
    const int64_t n = sn_dtype_is_float(v->type.dtype) ? sn_type_count(&v->type) : 0;
    const size_t size = snug_dtype_bytes(v->type.dtype);
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t k = n - done < CHUNK ? n - done : CHUNK;
        const char *const from = (const char *)v->data + (size_t)done * size;
        if (sn_convert(v->type.dtype, from, SNUG_F64, chunk, (size_t)k, NULL) != SNUG_OK)
            return -1;
        for (int64_t i = 0; i < k; i++)
            if (!isfinite(chunk[i])) {
                *value = sn_shown(chunk[i]);
                return done + i;
            }
    }
    return -1;
}

/* "[3,5]" */
static const char *print_index(const snug_type *t, int64_t flat, char *text, size_t size) {
    int64_t index[SNUG_MAX_RANK];
    for (int i = t->rank - 1; i >= 0; i--) {
        index[i] = flat % t->dims[i];
        flat /= t->dims[i];
    }
    size_t n = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "", (long long)index[i]);
    if (n < size)
        snprintf(text + n, size - n, "]");
    return text;
}

static snug_status stop(search *s, snug_error *err) {
    s->found = true;
    return sn_fail(err, SNUG_E_NUMERIC, "%s", s->text);
}

static snug_status look_at_weights(search *s, snug_model *m, snug_error *err) {
    for (uint32_t i = 0; i < sn_state_count(m->state); i++) {
        snug_view view;
        double value;
        char at[120];
        if (sn_state_is_spilled(m->state, i))
            continue; /* a bad slot shows in the weights a step later */
        SNUG_TRY(sn_state_view(m->state, i, &view, err));
        const int64_t bad = first_bad(&view, &value);
        if (bad < 0)
            continue;
        sn_print(s->text, sizeof s->text,
                 "the weights are bad already: %s has %g at %s; load weights or start anew",
                 sn_state_home(m->state, i)->name, value,
                 print_index(&view.type, bad, at, sizeof at));
        return stop(s, err);
    }
    return SNUG_OK;
}

static snug_status fill_and_look(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                                 snug_error *err) {
    watched_input *w = ctx;
    double value;
    SNUG_TRY(sn_rows_fill(w->rows, first, n, dst, err));
    const int64_t bad = first_bad(dst, &value);
    if (bad < 0)
        return SNUG_OK;
    const int64_t row = bad / sn_type_span(&dst->type, 1, dst->type.rank);
    sn_print(w->s->text, sizeof w->s->text, "the data are bad: row %lld of %s has %g",
             (long long)sn_rows_at(w->rows, w->rows->start + first + row), w->name, value);
    return stop(w->s, err);
}

static snug_status look_at_node(void *ctx, sn_node id, const snug_view *outs, int n_outs,
                                snug_error *err) {
    search *s = ctx;
    const sn_node_info *node = sn_graph_node_at(s->graph, id);
    for (int k = 0; k < n_outs; k++) {
        double value;
        char at[120], type[192];
        const int64_t bad = first_bad(&outs[k], &value);
        if (bad < 0)
            continue;
        sn_print(s->text, sizeof s->text,
                 "layer %s, operator %s%s: the first bad value is %g at %s of %s",
                 sn_graph_owner_name(s->graph, node->owner), sn_ops[node->op].name,
                 node->part == SN_PART_FORWARD ? "" : " (backward)", value,
                 print_index(&outs[k].type, bad, at, sizeof at),
                 snug_type_print(&outs[k].type, type, sizeof type));
        return stop(s, err);
    }
    return SNUG_OK;
}

static void watch(search *s, sn_rows *rows, const char *name, watched_input *w,
                  sn_input_binding *input) {
    *w = (watched_input){s, rows, name};
    *input = (sn_input_binding){.ctx = w, .fill = fill_and_look};
}

static void watch_inputs(search *s, snug_model *m, const sn_model_step *step, watched_input *w,
                         sn_input_binding *inputs) {
    sn_batch_rows *const rows = &m->failed.rows;
    for (uint32_t i = 0; i < m->network->n_inputs; i++)
        watch(s, &rows->x[i], "x", w++, &inputs[step->x[i]]);
    for (uint32_t i = 0; i < m->network->n_outputs; i++)
        if (sn_model_has_target(m, i))
            watch(s, &rows->y[i], "y", w++, &inputs[step->y[i]]);
    for (int i = 0; i < step->weighting.n_weights; i++)
        watch(s, &rows->w[i], "sample_weight", w++, &inputs[step->w[i]]);
}

static snug_status run_again(search *s, snug_model *m, const sn_model_step *step, snug_error *err) {
    snug_engine *const e = m->engine;
    watched_input watched[3 * SN_MAX_TENSOR];
    sn_input_binding inputs[3 * SN_MAX_TENSOR];
    watch_inputs(s, m, step, watched, inputs);
    const uint32_t n_params = sn_graph_n_params(step->graph);
    const size_t bytes = (size_t)n_params * sizeof(sn_scalar);
    void *params;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_OTHER, bytes, &params, err));
    for (uint32_t i = 0; i < n_params; i++) {
        const sn_param_info *info = sn_graph_param_at(step->graph, (sn_param){i});
        sn_scalar *const p = (sn_scalar *)params + i;
        *p = info->kind == SN_PARAM_KEY ? (sn_scalar){.key = info->key}
                                        : (sn_scalar){.real = info->real};
    }
    sn_model_set_params(m, step, m->failed.dropout_key, params);
    const sn_naive_options options = {
        .params = params, .inputs = inputs, .visit = look_at_node, .ctx = s};
    const snug_status status = sn_naive_run(e, step->graph, m->state, &options, err);
    sn_free(e, SN_MEM_OTHER, params, bytes);
    return status;
}

snug_status snug_model_find_nan(snug_model *m, char *text, size_t size, snug_error *err) {
    if (!m || !text || size == 0)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_find_nan: model and text must not be NULL");
    if (!m->failed.is_known)
        return sn_fail(err, SNUG_E_INVALID,
                       "no training step of this model has failed with NaN or infinity");
    sn_model_step *step;
    if (m->n_pinned == 0)
        sn_model_drop_steps(m); /* with the arena: the search needs that memory */
    SNUG_TRY(sn_model_step_weighted(m, SN_STEP_TRAIN, m->failed.batch, &m->failed.weighting, &step,
                                    err));
    SNUG_TRY(sn_model_add_homes(m, err));
    search s = {.graph = step->graph};
    snug_error inner = {.code = SNUG_OK};
    snug_status status = look_at_weights(&s, m, &inner);
    if (status == SNUG_OK)
        status = run_again(&s, m, step, &inner);
    if (!s.found && status != SNUG_OK) {
        if (err)
            *err = inner;
        return status;
    }
    snprintf(text, size, "%s", s.found ? s.text : "every value of the step was finite this time");
    return SNUG_OK;
}
