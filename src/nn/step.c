/* step.c: a whole training, evaluation or prediction step as one graph. A training step is, in
 * order,
 *
 *     forward, loss and penalties, metrics, check_finite(loss), gradients, moving averages,
 *     optimizer updates
 *
 * so that every state write stands behind everything that may refuse the data: a step that fails
 * changed nothing. With a loss scale nothing looks at the loss: gradients are looked at, in the
 * part UPDATE, and a run in which one is not finite passes that part's writes over (exec.h). */
#include "nn/regularizer.h"
#include "nn/step.h"

#include <stdio.h>

typedef struct {
    const sn_step_spec *spec;
    sn_step_mode mode;
    int64_t batch;
    sn_graph *g;
    sn_network_result result;
    sn_value y_pred[SN_MAX_TENSOR]; /* outputs as losses and metrics see them: f32 of halves */
    sn_value y_true[SN_MAX_TENSOR], weight[SN_MAX_TENSOR]; /* SN_NO_VALUE where there is none */
    sn_value loss;
} step;

const char *sn_step_name(const char *what, uint32_t i, uint32_t n, char name[16]) {
    if (n > 1)
        snprintf(name, 16, "%s_%u", what, (unsigned)(uint16_t)i);
    else
        snprintf(name, 16, "%s", what);
    return name;
}

uint32_t sn_step_n_losses(const sn_step_spec *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->network->n_outputs; i++)
        n += s->objectives[i].used;
    return n;
}

/* --- forward ---------------------------------------------------------------------------------- */
static snug_status add_input(const step *s, const char *name, const snug_type *open, sn_value *out,
                             snug_error *err) {
    snug_type t = *open;
    t.dims[0] = s->batch;
    return sn_graph_input(s->g, name, &t, out, err);
}

/* Rows of inputs, targets and outputs belong together. */
static snug_status check_rows(const step *s, snug_error *err) {
    const sn_network *n = s->spec->network;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        SNUG_TRY(sn_network_check_rows(n, i, sn_graph_type(s->g, s->result.y[i]), s->batch, err));
    return SNUG_OK;
}

static snug_status build_forward(step *s, snug_error *err) {
    sn_network *const n = s->spec->network;
    sn_value x[SN_MAX_TENSOR];
    char name[16];
    if (n->n_layers == 0)
        return sn_fail(err, SNUG_E_INVALID, "model '%s' has no layers; add one first", n->name);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        SNUG_TRY(add_input(s, sn_step_name("x", i, n->n_inputs, name), sn_network_type(n, i), &x[i],
                           err));
    SNUG_TRY(sn_network_build(n, s->g, x, sn_step_trains(s->mode), &s->result, err));
    SNUG_TRY(check_rows(s, err));
    return sn_graph_set_owner(s->g, "loss", err);
}

static snug_status add_predictions(const step *s, snug_error *err) {
    const uint32_t n = s->spec->network->n_outputs;
    char name[16];
    for (uint32_t i = 0; i < n; i++)
        SNUG_TRY(sn_graph_output(s->g, sn_step_name("y_pred", i, n, name), s->result.y[i], err));
    return SNUG_OK;
}

/* --- loss and metrics ------------------------------------------------------------------------- */
static sn_value widened(sn_builder *b, sn_value x) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype d = sn_graph_type(b->graph, x)->dtype;
    return sn_dtype_is_float(d) ? sn_build_cast(b, x, sn_dtype_computed(d)) : x;
}

static snug_status widen_outputs(step *s, snug_error *err) {
    sn_builder b = sn_builder_on(s->g);
    for (uint32_t i = 0; i < s->spec->network->n_outputs; i++)
        s->y_pred[i] = widened(&b, s->result.y[i]);
    return sn_builder_done(&b, err);
}

static snug_status add_targets(step *s, snug_error *err) {
    const sn_step_spec *spec = s->spec;
    const uint32_t n = spec->network->n_outputs;
    char name[16];
    for (uint32_t i = 0; i < n; i++) {
        snug_type target;
        s->y_true[i] = SN_NO_VALUE;
        if (!spec->objectives[i].used)
            continue;
        sn_loss_target(&spec->objectives[i].loss, sn_graph_type(s->g, s->y_pred[i]), &target);
        SNUG_TRY(add_input(s, sn_step_name("y", i, n, name), &target, &s->y_true[i], err));
    }
    return SNUG_OK;
}

/* Of examples or classes, one value per output. */
static snug_status add_weights(step *s, snug_error *err) {
    const sn_step_spec *spec = s->spec;
    const uint32_t n = spec->network->n_outputs;
    sn_value given[SN_MAX_TENSOR];
    char name[16];
    sn_builder b = sn_builder_on(s->g);
    for (int i = 0; i < spec->n_weights; i++)
        SNUG_TRY(add_input(s, sn_step_name("w", (uint32_t)i, (uint32_t)spec->n_weights, name),
                           &spec->weights[i], &given[i], err));
    for (uint32_t i = 0; i < n; i++) {
        s->weight[i] = SN_NO_VALUE;
        if (spec->n_weights > 0)
            s->weight[i] = given[spec->n_weights > 1 ? i : 0];
        else if (spec->n_classes > 0 && spec->objectives[i].used)
            s->weight[i] = sn_class_weights_build(&b, spec->classes, spec->n_classes, s->y_true[i],
                                                  sn_graph_type(s->g, s->y_pred[i])->dtype);
    }
    return sn_builder_done(&b, err);
}

static snug_status build_metrics(step *s, snug_error *err) {
    for (int i = 0; i < s->spec->n_metrics; i++) {
        const sn_metric *m = &s->spec->metrics[i];
        const sn_value y_pred = s->y_pred[m->output];
        char name[32];
        sn_builder b = sn_builder_on(s->g);
        sn_value weight = m->weighted ? s->weight[m->output] : SN_NO_VALUE;
        if (sn_metric_masked(m))
            weight = sn_objective_weight(&b, weight, s->result.mask[m->output], y_pred);
        const sn_value sums = sn_metric_build(&b, m, s->y_true[m->output], y_pred, weight);
        SNUG_TRY(sn_builder_done(&b, err));
        snprintf(name, sizeof name, "metric_%d", i);
        SNUG_TRY(sn_graph_output(s->g, name, sums, err));
    }
    return SNUG_OK;
}

/* What regularisers of weights that train, and layers, add to the loss. */
static snug_status add_penalties(step *s, snug_error *err) {
    const sn_network *n = s->spec->network;
    const snug_dtype dtype = sn_graph_type(s->g, s->loss)->dtype;
    sn_builder b = sn_builder_on(s->g);
    for (size_t i = 0; i < n->n_losses; i++)
        s->loss = sn_build_add(&b, s->loss, sn_build_cast(&b, n->losses[i], dtype));
    for (uint32_t home = 0; home < n->n_vars; home++) {
        const char *text = n->vars[home].regularizer;
        sn_value weight;
        if (!text || !text[0] || n->vars[home].by_layer || !sn_network_trains(n, home))
            continue;
        SNUG_TRY(sn_network_read(n, s->g, home, &weight, err));
        const sn_value penalty = sn_regularizer_build(&b, text, widened(&b, weight));
        s->loss = sn_build_add(&b, s->loss, sn_build_cast(&b, penalty, dtype));
    }
    return sn_builder_done(&b, err);
}

/* The sum of the outputs' losses, each with its weight. */
static snug_status build_losses(step *s, snug_error *err) {
    const sn_step_spec *spec = s->spec;
    const uint32_t n_losses = sn_step_n_losses(spec);
    s->loss = SN_NO_VALUE;
    for (uint32_t i = 0; i < spec->network->n_outputs; i++) {
        const sn_objective *o = &spec->objectives[i];
        const sn_objective_data d = {s->y_true[i], s->y_pred[i], s->weight[i], s->result.mask[i]};
        sn_builder b = sn_builder_on(s->g);
        char name[16];
        if (!o->used)
            continue;
        const sn_value loss = sn_objective_build(&b, o, &d);
        const sn_value part = o->weight == 1 ? loss : sn_build_affine(&b, loss, o->weight, 0);
        s->loss = sn_value_ok(s->loss) ? sn_build_add(&b, s->loss, part) : part;
        SNUG_TRY(sn_builder_done(&b, err));
        if (n_losses > 1)
            SNUG_TRY(sn_graph_output(s->g, sn_step_name("loss", i, 2, name), loss, err));
    }
    return SNUG_OK;
}

static snug_status build_loss(step *s, snug_error *err) {
    SNUG_TRY(widen_outputs(s, err));
    SNUG_TRY(add_targets(s, err));
    SNUG_TRY(add_weights(s, err));
    SNUG_TRY(build_losses(s, err));
    if (!sn_value_ok(s->loss))
        return sn_fail(err, SNUG_E_INVALID, "no output of model '%s' has a loss; give one",
                       s->spec->network->name);
    SNUG_TRY(add_penalties(s, err));
    sn_builder b = sn_builder_on(s->g);
    if (sn_step_trains(s->mode) && !s->spec->scaled)
        s->loss = sn_build_check_finite(&b, s->loss);
    SNUG_TRY(sn_builder_done(&b, err));
    SNUG_TRY(sn_graph_output(s->g, "loss", s->loss, err));
    return build_metrics(s, err);
}

/* --- backward --------------------------------------------------------------------------------- */
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

static snug_status build_gradients(const step *s, const sn_value *wrt, int n_wrt, sn_value *grads,
                                   snug_error *err) {
    sn_builder b = sn_builder_on(s->g);
    if (!s->spec->scaled)
        return sn_graph_gradients(s->g, s->loss, wrt, n_wrt, grads, err);
    const sn_value scaled = sn_optimizer_scale_loss(&b, s->loss);
    SNUG_TRY(sn_builder_done(&b, err));
    SNUG_TRY(sn_graph_gradients(s->g, scaled, wrt, n_wrt, grads, err));
    sn_optimizer_unscale(&b, grads, n_wrt);
    return sn_builder_done(&b, err);
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
        status = build_gradients(s, wrt, n_wrt, grads, err);
    if (status == SNUG_OK)
        status = sn_network_updates(n, s->g, err);
    if (status == SNUG_OK)
        status = s->mode == SN_STEP_TRAIN
                     ? sn_optimizer_build(s->spec->optimizer, n, s->g, grads, n_wrt, err)
                     : sn_optimizer_accumulate(s->spec->optimizer, n, s->g, grads, n_wrt, err);
    sn_free(e, SN_MEM_GRAPH, block, bytes);
    return status;
}

/* A step that does not train writes only what stateful layers keep. */
static snug_status build_parts(step *s, snug_error *err) {
    SNUG_TRY(build_forward(s, err));
    if (s->mode != SN_STEP_PREDICT)
        SNUG_TRY(build_loss(s, err));
    if (sn_step_trains(s->mode))
        return build_backward(s, err);
    if (s->mode == SN_STEP_PREDICT)
        SNUG_TRY(add_predictions(s, err));
    return sn_network_updates(s->spec->network, s->g, err);
}

/* What a rewrite made of the graph in its place, if anything. */
static snug_status rewrite(sn_graph **g,
                           snug_status (*by)(const sn_graph *g, sn_graph **out, snug_error *err),
                           snug_error *err) {
    sn_graph *made = NULL;
    SNUG_TRY(by(*g, &made, err));
    if (made) {
        sn_graph_destroy(*g);
        *g = made;
    }
    return SNUG_OK;
}

snug_status sn_step_build(const sn_step_spec *spec, sn_step_mode mode, int64_t batch,
                          sn_graph **out, snug_error *err) {
    if (batch < 1)
        return sn_fail(err, SNUG_E_INVALID, "a batch of %lld rows; it must be at least 1",
                       (long long)batch);
    step s = {.spec = spec, .mode = mode, .batch = batch};
    SNUG_TRY(sn_graph_create(spec->network->engine, &s.g, err));
    snug_status status = build_parts(&s, err);
    if (status == SNUG_OK)
        status = rewrite(&s.g, sn_graph_unjoin, err);
    if (status == SNUG_OK)
        status = rewrite(&s.g, sn_graph_fuse, err);
    if (status == SNUG_OK)
        status = rewrite(&s.g, sn_graph_half_feeds, err);
    if (status == SNUG_OK)
        status = sn_graph_check(s.g, false, err);
    if (status == SNUG_OK)
        *out = s.g;
    else
        sn_graph_destroy(s.g);
    return status;
}
