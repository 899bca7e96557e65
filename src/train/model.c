/* model.c: the life of a model, its compile settings, and looking inside. Graphs and plans are made
 * in steps.c, when something needs them. */
#include "train/model.h"
#include "train/step_budget.h"

#include "base/setting_text.h"
#include "model/model_file.h"

#include <math.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------- */
static snug_status set_compiled(snug_model *m, const snug_compile *settings, snug_error *err);

/* Takes the network, also when it fails. */
static snug_status create_from(sn_network *network, snug_model **out, snug_error *err) {
    snug_engine *const e = network->engine;
    void *block = NULL;
    snug_status status = sn_alloc_zero(e, SN_MEM_MODEL, sizeof(snug_model), &block, err);
    if (status != SNUG_OK) {
        sn_network_destroy(network);
        return status;
    }
    snug_model *const m = block;
    m->engine = e;
    m->network = network;
    m->target = sn_engine_device(e, &m->device);
    m->kind = sn_budget_class_of(m->target);
    status = sn_state_create(e, &m->state, err);
    if (status == SNUG_OK)
        sn_state_set_device(m->state, m->target);
    if (status == SNUG_OK)
        status = set_compiled(m, &(snug_compile){.optimizer = "adam", .loss = "mse"}, err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

snug_status snug_model_create(snug_engine *engine, const char *name, const snug_type *input,
                              snug_model **out, snug_error *err) {
    if (!engine || !input || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_create: engine, input and out must not be NULL");
    if (input->rank < 0 || input->rank >= SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_SHAPE,
                       "an example has %d axes; at most %d are possible beside the batch",
                       input->rank, SNUG_MAX_RANK - 1);
    snug_type type = {.dtype = input->dtype, .rank = input->rank + 1, .dims = {-1}};
    for (int i = 0; i < input->rank; i++)
        type.dims[i + 1] = input->dims[i];
    sn_network *network;
    SNUG_TRY(sn_network_create(engine, name, &type, &network, err));
    return create_from(network, out, err);
}

snug_status snug_model_from_graph(const snug_graph *graph, const snug_graph *training,
                                  const char *name, snug_model **out, snug_error *err) {
    SNUG_NEEDS(err, graph && out);
    sn_graph *copy, *training_copy = NULL;
    sn_network *network;
    SNUG_TRY(sn_graph_copy(graph, &copy, err));
    const snug_status status = training ? sn_graph_copy(training, &training_copy, err) : SNUG_OK;
    if (status != SNUG_OK) {
        sn_graph_destroy(copy);
        return status;
    }
    SNUG_TRY(sn_network_from_graph(copy, training_copy, name, &network, err));
    return create_from(network, out, err);
}

/* Settings given instead count where the file's own are refused: a loss that is Python code. */
static snug_status compile_loaded(snug_model *m, const sn_keras_compile *found,
                                  const snug_compile *instead, snug_error *err) {
    snug_compile c = {.optimizer = found->optimizer[0] ? found->optimizer : NULL,
                      .loss = found->loss[0] ? found->loss : NULL,
                      .metrics = found->metrics[0] ? found->metrics : NULL,
                      .loss_weights = found->loss_weights[0] ? found->loss_weights : NULL,
                      .weighted_metrics =
                          found->weighted_metrics[0] ? found->weighted_metrics : NULL};
    const snug_status status = snug_model_compile(m, &c, err);
    const bool given = instead && (instead->optimizer || instead->loss || instead->metrics ||
                                   instead->loss_weights || instead->weighted_metrics);
    if (status == SNUG_E_INVALID && !given) { /* wrong in the file: nobody typed it */
        if (err)
            err->code = SNUG_E_FORMAT;
        return SNUG_E_FORMAT;
    }
    if (status == SNUG_OK || !given)
        return status;
    c.optimizer = instead->optimizer ? instead->optimizer : c.optimizer;
    c.loss = instead->loss ? instead->loss : c.loss;
    c.metrics = instead->metrics ? instead->metrics : c.metrics;
    c.loss_weights = instead->loss_weights ? instead->loss_weights : c.loss_weights;
    c.weighted_metrics = instead->weighted_metrics ? instead->weighted_metrics : c.weighted_metrics;
    return snug_model_compile(m, &c, err);
}

snug_status snug_model_load_with(snug_engine *engine, const char *path, const char *shapes,
                                 const snug_compile *instead, snug_model **out, snug_error *err) {
    if (!engine || !path || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_load: engine, path and out must not be NULL");
    sn_network *network;
    sn_keras_compile found;
    snug_model *m;
    SNUG_TRY(sn_model_file_load(engine, path, shapes, &network, &found, err));
    SNUG_TRY(create_from(network, &m, err));
    snug_status status = instead && instead->precision
                             ? snug_model_set_precision(m, instead->precision, err)
                             : SNUG_OK;
    if (status != SNUG_OK) {
        snug_model_destroy(m);
        return status;
    }
    status = compile_loaded(m, &found, instead, err);
    if (status != SNUG_OK) {
        snug_model_destroy(m);
        (void)sn_fail_in(err, status, "compile settings of %s (others can be given instead)", path);
        if (err)
            err->cause = SNUG_CAUSE_NO_SETTINGS;
        return status;
    }
    *out = m;
    return SNUG_OK;
}

snug_status snug_model_load_shaped(snug_engine *engine, const char *path, const char *shapes,
                                   snug_model **out, snug_error *err) {
    return snug_model_load_with(engine, path, shapes, NULL, out, err);
}

snug_status snug_model_load(snug_engine *engine, const char *path, snug_model **out,
                            snug_error *err) {
    return snug_model_load_with(engine, path, NULL, NULL, out, err);
}

void snug_model_destroy(snug_model *m) {
    if (!m)
        return;
    sn_model_drop_steps(m);
    sn_model_unpin_plan(m);
    sn_state_destroy(m->state);
    sn_network_destroy(m->network);
    sn_free(m->engine, SN_MEM_MODEL, m, sizeof *m);
}

/* The optimizer starts anew: its slots go, in the network and in the state. */
static void drop_slots(snug_model *m) {
    sn_model_drop_steps(m);
    const uint32_t n_weights = (uint32_t)sn_network_n_weights(m->network);
    if (sn_state_count(m->state) > n_weights)
        sn_state_truncate(m->state, n_weights);
    sn_network_drop_slots(m->network);
    sn_model_start_anew(m);
}

snug_status snug_model_add(snug_model *m, const char *layer, const char *config, snug_error *err) {
    if (!m || !layer)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_add: model and layer must not be NULL");
    SNUG_TRY(sn_model_check_idle(m, "layers", err));
    if (m->network->graph)
        return sn_fail(err, SNUG_E_INVALID,
                       "model '%s' is a graph, which has all its operators; add to the graph and "
                       "make a model of it again",
                       m->network->name);
    char name[128], text[16];
    bool trainable = true;
    const char *const settings = config ? config : "";
    SNUG_TRY(sn_conf_text_get(settings, "name", name, sizeof name, err));
    SNUG_TRY(sn_conf_text_get(settings, "trainable", text, sizeof text, err));
    if (text[0] && !sn_text_flag(text, &trainable))
        return sn_fail(err, SNUG_E_INVALID, "trainable=%s is neither true nor false", text);
    SNUG_TRY(sn_network_add(m->network, layer, name, sn_conf_fill_text, (void *)(uintptr_t)settings,
                            err));
    sn_network_set_trainable(m->network, m->network->n_layers - 1, trainable);
    drop_slots(m);
    return SNUG_OK;
}

/* --- before weights are used ------------------------------------------------------------------ */
static snug_status check_unused(const snug_model *m, const char *what, snug_error *err) {
    SNUG_TRY(sn_model_check_idle(m, what, err));
    if (sn_state_count(m->state) == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s must be set before anything uses the weights", what);
}

static snug_status set_policy(snug_model *m, const sn_policy *policy, snug_error *err) {
    sn_network *const n = m->network;
    if (policy->variable != n->policy.variable)
        SNUG_TRY(check_unused(m, "the type of weights", err));
    SNUG_TRY(sn_model_check_idle(m, "the precision", err));
    if (n->graph && !sn_policy_equal(policy, &n->policy))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "model '%s' is a graph, whose types say %s; make the graph in %s", n->name,
                       snug_dtype_name(n->policy.compute), snug_dtype_name(policy->compute));
    if (n->graph)
        return SNUG_OK;
    sn_model_drop_steps(m);
    return sn_network_set_policy(n, policy, err);
}

/* --- compile ---------------------------------------------------------------------------------- */
/* Parses everything before it changes anything. */
static snug_status set_compiled(snug_model *m, const snug_compile *settings, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc(m->engine, SN_MEM_MODEL, sizeof m->compiled, &block, err));
    sn_compiled *const next = block;
    *next = m->compiled;
    const snug_status status = sn_compiled_set(m->network, settings, next, err);
    if (status == SNUG_OK) {
        m->compiled = *next;
        sn_optimizer_print(&m->compiled.optimizer, m->optimizer_text, sizeof m->optimizer_text);
    }
    sn_free(m->engine, SN_MEM_MODEL, block, sizeof m->compiled);
    return status;
}

snug_status snug_model_compile(snug_model *m, const snug_compile *compile, snug_error *err) {
    if (!m)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_compile: model must not be NULL");
    const snug_compile nothing = {.optimizer = NULL};
    const sn_policy before = m->network->policy;
    SNUG_TRY(sn_model_check_idle(m, "compile settings", err));
    if (compile && compile->precision)
        SNUG_TRY(snug_model_set_precision(m, compile->precision, err));
    const snug_status status = set_compiled(m, compile ? compile : &nothing, err);
    snug_error unused;
    if (status != SNUG_OK)
        (void)!set_policy(m, &before, &unused); /* as it was */
    else
        drop_slots(m);
    return status;
}

snug_status snug_model_set_learning_rate(snug_model *m, double rate, snug_error *err) {
    SNUG_NEEDS(err, m);
    if (!(rate >= 0) || !isfinite(rate))
        return sn_fail(err, SNUG_E_INVALID, "a learning rate of %g; it must be a number from 0",
                       rate);
    if (m->compiled.optimizer.schedule.name[0])
        return sn_fail(err, SNUG_E_INVALID,
                       "the optimizer has the schedule %s, so its learning rate cannot be set; "
                       "compile it with a number",
                       m->compiled.optimizer.schedule.name);
    m->compiled.optimizer.learning_rate = rate;
    sn_optimizer_print(&m->compiled.optimizer, m->optimizer_text, sizeof m->optimizer_text);
    return SNUG_OK;
}

double snug_model_learning_rate(const snug_model *m) {
    if (!m)
        return 0;
    return sn_optimizer_rate(&m->compiled.optimizer, m->iterations);
}

snug_status snug_model_set_seed(snug_model *m, uint64_t seed, snug_error *err) {
    SNUG_NEEDS(err, m);
    SNUG_TRY(check_unused(m, "the seed", err));
    sn_model_drop_steps(m);
    sn_network_set_seed(m->network, seed);
    return SNUG_OK;
}

snug_status snug_model_set_precision(snug_model *m, const char *precision, snug_error *err) {
    SNUG_NEEDS(err, m && precision);
    sn_policy policy;
    SNUG_TRY(sn_policy_parse(precision, &policy, err));
    return set_policy(m, &policy, err);
}

snug_status snug_model_set_dtype(snug_model *m, snug_dtype dtype, snug_error *err) {
    SNUG_NEEDS(err, m);
    if (dtype != SNUG_F32 && dtype != SNUG_F64)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "a model computes in f32 or f64, not in %s",
                       snug_dtype_name(dtype));
    return set_policy(m, &(sn_policy){.variable = dtype, .compute = dtype}, err);
}

/* --- looking inside --------------------------------------------------------------------------- */
snug_engine *snug_model_engine(const snug_model *m) {
    if (!m)
        return NULL;
    return m->engine;
}
const char *snug_model_name(const snug_model *m) {
    if (!m)
        return NULL;
    return m->network->name;
}
const char *snug_model_optimizer(const snug_model *m) {
    return m ? m->optimizer_text : NULL;
}
const char *snug_model_loss(const snug_model *m) {
    return m ? m->compiled.loss : NULL;
}
size_t snug_model_n_metrics(const snug_model *m) {
    if (!m)
        return 0;
    return (size_t)sn_compiled_n_values(&m->compiled) - 1;
}
const char *snug_model_metric_name(const snug_model *m, size_t i) {
    if (!m || i >= snug_model_n_metrics(m))
        return NULL;
    return sn_compiled_value_name(&m->compiled, (int)i + 1);
}
size_t snug_model_n_layers(const snug_model *m) {
    if (!m)
        return 0;
    return m->network->n_layers;
}
const snug_type *snug_model_input(const snug_model *m) {
    if (!m)
        return NULL;
    return sn_network_type(m->network, 0);
}
size_t snug_model_n_weights(const snug_model *m) {
    if (!m)
        return 0;
    return sn_network_n_weights(m->network);
}

const snug_type *snug_model_output(const snug_model *m) {
    if (!m)
        return NULL;
    return sn_network_type(m->network, m->network->outputs[0]);
}

void snug_model_target(const snug_model *m, snug_type *out) {
    if (!(m && out))
        return;
    sn_loss_target(&m->compiled.objectives[0].loss, snug_model_output(m), out);
}

size_t snug_model_n_inputs(const snug_model *m) {
    if (!m)
        return 0;
    return m->network->n_inputs;
}
size_t snug_model_n_outputs(const snug_model *m) {
    if (!m)
        return 0;
    return m->network->n_outputs;
}
const char *snug_model_input_name(const snug_model *m, size_t i) {
    return m && i < m->network->n_inputs ? m->network->input_names[i] : NULL;
}
const char *snug_model_output_name(const snug_model *m, size_t i) {
    return m && i < m->network->n_outputs ? sn_network_output_name(m->network, (uint32_t)i) : NULL;
}
const snug_type *snug_model_input_at(const snug_model *m, size_t i) {
    return m && i < m->network->n_inputs ? sn_network_type(m->network, (uint32_t)i) : NULL;
}
const snug_type *snug_model_output_at(const snug_model *m, size_t i) {
    return m && i < m->network->n_outputs ? sn_network_type(m->network, m->network->outputs[i])
                                          : NULL;
}

int snug_model_target_at(const snug_model *m, size_t i, snug_type *out) {
    if (!m || !out || i >= m->network->n_outputs)
        return 0;
    const sn_objective *o = &m->compiled.objectives[i];
    if (o->used)
        sn_loss_target(&o->loss, snug_model_output_at(m, i), out);
    return o->used;
}

/* An operation is called after its function, as in Keras. */
static const char *class_of(const sn_layer *l) {
    const sn_conf_operation *operation = l->conf;
    return sn_class_is(l->cls, SN_LAYER_Operation) ? operation->function.text : l->cls->class_name;
}

void snug_model_layer(const snug_model *m, size_t i, snug_layer_info *out) {
    if (!out)
        return;
    *out = (snug_layer_info){.name = ""};
    if (!m || i >= m->network->n_layers)
        return;
    const sn_layer *l = &m->network->layers[i];
    *out = (snug_layer_info){.name = l->name, .type = class_of(l), .output = l->output};
    for (uint32_t k = l->first_var; k < l->end_var; k++) { /* also of layers within it */
        const sn_net_var *v = &m->network->vars[k];
        if (v->slot || v->layer != i)
            continue;
        out->n_params += sn_type_count(&v->type);
        out->n_trainable += sn_network_trains(m->network, k) ? sn_type_count(&v->type) : 0;
    }
}

snug_status snug_model_weight(snug_model *m, size_t i, const char **name, snug_view *view,
                              snug_error *err) {
    SNUG_NEEDS(err, m && view);
    if (i >= snug_model_n_weights(m))
        return sn_fail(err, SNUG_E_INVALID, "there is no weight %zu; the model has %zu", i,
                       snug_model_n_weights(m));
    SNUG_TRY(sn_model_add_homes(m, err));
    SNUG_TRY(sn_state_view(m->state, (uint32_t)i, view, err));
    if (name)
        *name = m->network->vars[i].name;
    return SNUG_OK;
}
