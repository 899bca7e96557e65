/* step.c: a whole training, evaluation or prediction step as one graph. A training step is, in
 * order,
 *
 *     forward, loss and penalties, metrics, check_finite(loss), gradients, moving averages,
 *     optimizer updates
 *
 * so that every state write stands behind everything that may refuse the data: a step that fails
 * changed nothing. */
#include "nn/nn.h"

#include <stdio.h>

typedef struct {
    const sn_step_spec *spec;
    sn_step_mode mode;
    int64_t batch;
    sn_graph *g;
    sn_network_result result;
    sn_value y_pred, loss;
} step;

static snug_status add_input(const step *s, const char *name, const snug_type *open, sn_value *out,
                             snug_error *err) {
    snug_type t = *open;
    t.dims[0] = s->batch;
    return sn_graph_input(s->g, name, &t, out, err);
}

/* "x", or "x_0", "x_1", ... of a network with several inputs. */
static snug_status add_inputs(const step *s, sn_value *x, snug_error *err) {
    const sn_network *n = s->spec->network;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        char name[16] = "x";
        if (n->n_inputs > 1)
            snprintf(name, sizeof name, "x_%u", i);
        SNUG_TRY(add_input(s, name, sn_network_type(n, i), &x[i], err));
    }
    return SNUG_OK;
}

static snug_status build_forward(step *s, snug_error *err) {
    sn_network *const n = s->spec->network;
    sn_value x[SN_MAX_TENSOR];
    if (n->n_layers == 0)
        return sn_fail(err, SNUG_E_INVALID, "model '%s' has no layers; add one first", n->name);
    SNUG_TRY(add_inputs(s, x, err));
    SNUG_TRY(sn_network_build(n, s->g, x, sn_step_trains(s->mode), &s->result, err));
    s->y_pred = s->result.y[0];
    return sn_graph_set_owner(s->g, "loss", err);
}

static snug_status build_metrics(step *s, sn_value y_true, snug_error *err) {
    for (int i = 0; i < s->spec->n_metrics; i++) {
        char name[32];
        sn_builder b = sn_builder_on(s->g);
        const sn_value sums =
            sn_metric_build(&b, &s->spec->metrics[i], y_true, s->y_pred, SN_NO_VALUE);
        SNUG_TRY(sn_builder_done(&b, err));
        snprintf(name, sizeof name, "metric_%d", i);
        SNUG_TRY(sn_graph_output(s->g, name, sums, err));
    }
    return SNUG_OK;
}

/* What regularisers of weights that train, and layers, add to the loss. */
static snug_status add_penalties(step *s, snug_error *err) {
    const sn_network *n = s->spec->network;
    sn_builder b = sn_builder_on(s->g);
    for (size_t i = 0; i < n->n_losses; i++)
        s->loss = sn_build_add(&b, s->loss, n->losses[i]);
    for (uint32_t home = 0; home < n->n_vars; home++) {
        const char *text = n->vars[home].regularizer;
        sn_value weight;
        if (!text || !text[0] || !sn_network_trains(n, home))
            continue;
        SNUG_TRY(sn_network_read(n, s->g, home, &weight, err));
        const sn_value penalty = sn_regularizer_build(&b, text, weight);
        s->loss = sn_build_add(&b, s->loss, sn_build_cast(&b, penalty, n->compute_dtype));
    }
    return sn_builder_done(&b, err);
}

static snug_status build_loss(step *s, snug_error *err) {
    snug_type target;
    sn_value y_true;
    sn_loss_target(s->spec->loss, sn_graph_type(s->g, s->y_pred), &target);
    SNUG_TRY(add_input(s, "y", &target, &y_true, err));
    sn_builder b = sn_builder_on(s->g);
    s->loss = sn_loss_build(&b, s->spec->loss, y_true, s->y_pred);
    SNUG_TRY(sn_builder_done(&b, err));
    SNUG_TRY(add_penalties(s, err));
    if (sn_step_trains(s->mode))
        s->loss = sn_build_check_finite(&b, s->loss);
    SNUG_TRY(sn_builder_done(&b, err));
    SNUG_TRY(sn_graph_output(s->g, "loss", s->loss, err));
    return build_metrics(s, y_true, err);
}

/* Versions 0 of what trains, in the order of homes. */
static snug_status trained_values(const step *s, sn_value *wrt, int *n_wrt, snug_error *err) {
    const sn_network *n = s->spec->network;
    const uint32_t n_weights = (uint32_t)sn_network_n_weights(n);
    *n_wrt = 0;
    for (uint32_t home = 0; home < n_weights; home++)
        if (sn_network_trains(n, home))
            SNUG_TRY(sn_network_read(n, s->g, home, &wrt[(*n_wrt)++], err));
    return SNUG_OK;
}

static snug_status build_backward(step *s, snug_error *err) {
    sn_network *const n = s->spec->network;
    snug_engine *const e = n->engine;
    const size_t bytes = (n->n_vars + 1) * 2 * sizeof(sn_value);
    void *block;
    SNUG_TRY(sn_alloc(e, SN_MEM_GRAPH, bytes, &block, err));
    sn_value *const wrt = block, *const grads = wrt + n->n_vars + 1;
    int n_wrt = 0;
    snug_status status = trained_values(s, wrt, &n_wrt, err);
    if (status == SNUG_OK && n_wrt == 0)
        status =
            sn_fail(err, SNUG_E_INVALID,
                    "model '%s' has nothing to train: no layer has trainable weights", n->name);
    if (status == SNUG_OK)
        status = sn_graph_gradients(s->g, s->loss, wrt, n_wrt, grads, err);
    if (status == SNUG_OK)
        status = sn_network_updates(n, s->g, err);
    if (status == SNUG_OK)
        status = s->mode == SN_STEP_TRAIN
                     ? sn_optimizer_build(s->spec->optimizer, n, s->g, grads, n_wrt, err)
                     : sn_optimizer_accumulate(s->spec->optimizer, n, s->g, grads, n_wrt, err);
    sn_free(e, SN_MEM_GRAPH, block, bytes);
    return status;
}

static snug_status build_parts(step *s, snug_error *err) {
    SNUG_TRY(build_forward(s, err));
    if (s->mode == SN_STEP_PREDICT)
        return sn_graph_output(s->g, "y_pred", s->y_pred, err);
    SNUG_TRY(build_loss(s, err));
    return sn_step_trains(s->mode) ? build_backward(s, err) : SNUG_OK;
}

snug_status sn_step_build(const sn_step_spec *spec, sn_step_mode mode, int64_t batch,
                          sn_graph **out, snug_error *err) {
    if (batch < 1)
        return sn_fail(err, SNUG_E_INVALID, "a batch of %lld rows; it must be at least 1",
                       (long long)batch);
    step s = {.spec = spec, .mode = mode, .batch = batch};
    sn_graph *fused = NULL;
    SNUG_TRY(sn_graph_create(spec->network->engine, &s.g, err));
    snug_status status = build_parts(&s, err);
    if (status == SNUG_OK)
        status = sn_graph_fuse(s.g, &fused, err);
    if (status == SNUG_OK)
        status = sn_graph_check(fused, false, err);
    sn_graph_destroy(s.g);
    if (status == SNUG_OK)
        *out = fused;
    else
        sn_graph_destroy(fused);
    return status;
}
