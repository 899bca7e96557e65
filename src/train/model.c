/* model.c: the life of a model, its compile settings, and looking inside. Graphs and plans are made
 * in steps.c, when something needs them. */
#include "train/model.h"

#include "model/keras_json.h"
#include "nn/text.h"

#include <math.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------- */
static snug_status set_texts(snug_model *m, const snug_compile *c, snug_error *err);

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
    sn_cpu_device_init(&m->device, snug_engine_threads(e), false);
    status = sn_state_create(e, &m->state, err);
    if (status == SNUG_OK)
        status = set_texts(m, &(snug_compile){"adam", "mse", ""}, err);
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

snug_status snug_model_load(snug_engine *engine, const char *path, snug_model **out,
                            snug_error *err) {
    if (!engine || !path || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_load: engine, path and out must not be NULL");
    sn_network *network;
    sn_keras_compile found;
    snug_model *m;
    SNUG_TRY(sn_keras_load(engine, path, &network, &found, err));
    SNUG_TRY(create_from(network, &m, err));
    if (found.loss_weights[0] || found.weighted_metrics[0]) {
        snug_model_destroy(m);
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s has loss_weights or weighted_metrics", path);
    }
    const snug_compile c = {found.optimizer[0] ? found.optimizer : NULL,
                            found.loss[0] ? found.loss : NULL,
                            found.metrics[0] ? found.metrics : NULL};
    const snug_status status = snug_model_compile(m, &c, err);
    if (status != SNUG_OK) {
        snug_model_destroy(m);
        return sn_fail_in(err, status, "compile settings of %s", path);
    }
    *out = m;
    return SNUG_OK;
}

void snug_model_destroy(snug_model *m) {
    if (!m)
        return;
    sn_model_drop_steps(m);
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
    m->iterations = 0;
}

snug_status snug_model_add(snug_model *m, const char *layer, const char *config, snug_error *err) {
    if (!m || !layer)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_add: model and layer must not be NULL");
    SNUG_TRY(sn_model_check_idle(m, "layers", err));
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

/* --- compile ---------------------------------------------------------------------------------- */
/* The length of the first metric of a list: up to a comma or space, but "key=value" behind a comma
 * still belongs to it. */
static size_t metric_length(const char *p) {
    size_t n = sn_text_span(p, ", ");
    while (p[n] == ',') {
        const char *next = p + n + 1;
        if (next[strcspn(next, "=:, ")] != '=')
            break;
        n += 1 + sn_text_span(next, ", ");
    }
    return n;
}

static snug_status split_metrics(const char *text, sn_metric *out, int *n_out, snug_error *err) {
    int n = 0;
    for (const char *p = text + strspn(text, ", "); *p;) {
        const size_t length = metric_length(p);
        if (n == SNUG_MAX_METRICS)
            return sn_fail(err, SNUG_E_INVALID, "more than %d metrics", SNUG_MAX_METRICS);
        if (length >= sizeof out->text)
            return sn_fail(err, SNUG_E_INVALID, "metric '%.40s...' is not known", p);
        out[n] = (sn_metric){.name = ""};
        memcpy(out[n].text, p, length);
        SNUG_TRY(sn_option_name(out[n].text, out[n].name, sizeof out->name, err));
        n++;
        p += length;
        p += strspn(p, ", ");
    }
    *n_out = n;
    return SNUG_OK;
}

/* What the names mean with this loss and output. */
static snug_status resolve(sn_metric *metrics, int n, const sn_loss *loss, const snug_type *output,
                           snug_error *err) {
    for (int i = 0; i < n; i++) {
        char text[sizeof metrics->text];
        memcpy(text, metrics[i].text, sizeof text);
        SNUG_TRY(sn_metric_parse(text, loss, output, &metrics[i], err));
    }
    return SNUG_OK;
}

snug_status sn_model_resolve_metrics(snug_model *m, snug_error *err) {
    if (m->network->n_layers == 0)
        return SNUG_OK;
    return resolve(m->metrics, m->n_metrics, &m->loss, snug_model_output(m), err);
}

/* Copies a setting's text; `what` is its name. */
static snug_status keep_text(char *to, size_t size, const char *from, const char *what,
                             snug_error *err) {
    if (sn_text_copy(to, size, from))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "the text of the %s has more than %zu letters", what,
                   size - 1);
}

/* Parses everything before it changes anything. */
static snug_status set_texts(snug_model *m, const snug_compile *c, snug_error *err) {
    sn_optimizer optimizer = m->optimizer;
    sn_loss loss = m->loss;
    sn_metric metrics[SNUG_MAX_METRICS] = {{.name = ""}};
    int n_metrics = 0;
    if (c->optimizer)
        SNUG_TRY(sn_optimizer_parse(c->optimizer, &optimizer, err));
    if (c->loss)
        SNUG_TRY(sn_loss_parse(c->loss, &loss, err));
    const char *metrics_text = c->metrics ? c->metrics : m->metrics_text;
    SNUG_TRY(split_metrics(metrics_text, metrics, &n_metrics, err));
    if (m->network->n_layers > 0)
        SNUG_TRY(resolve(metrics, n_metrics, &loss, snug_model_output(m), err));
    char kept_metrics[sizeof m->metrics_text] = "", kept_loss[sizeof m->loss_text] = "";
    const char *loss_text = c->loss ? c->loss : m->loss_text;
    SNUG_TRY(keep_text(kept_metrics, sizeof kept_metrics, metrics_text, "metrics", err));
    SNUG_TRY(keep_text(kept_loss, sizeof kept_loss, loss_text, "loss", err));
    memcpy(m->metrics_text, kept_metrics, sizeof kept_metrics);
    memcpy(m->loss_text, kept_loss, sizeof kept_loss);
    m->optimizer = optimizer;
    m->loss = loss;
    memcpy(m->metrics, metrics, sizeof metrics);
    m->n_metrics = n_metrics;
    sn_optimizer_print(&m->optimizer, m->optimizer_text, sizeof m->optimizer_text);
    return SNUG_OK;
}

snug_status snug_model_compile(snug_model *m, const snug_compile *compile, snug_error *err) {
    if (!m)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_compile: model must not be NULL");
    const snug_compile nothing = {NULL, NULL, NULL};
    SNUG_TRY(sn_model_check_idle(m, "compile settings", err));
    SNUG_TRY(set_texts(m, compile ? compile : &nothing, err));
    drop_slots(m);
    return SNUG_OK;
}

snug_status snug_model_set_learning_rate(snug_model *m, double rate, snug_error *err) {
    if (!(rate >= 0) || !isfinite(rate))
        return sn_fail(err, SNUG_E_INVALID, "a learning rate of %g; it must be a number from 0",
                       rate);
    if (m->optimizer.schedule.name[0])
        return sn_fail(err, SNUG_E_INVALID,
                       "the optimizer has the schedule %s, so its learning rate cannot be set; "
                       "compile it with a number",
                       m->optimizer.schedule.name);
    m->optimizer.learning_rate = rate;
    sn_optimizer_print(&m->optimizer, m->optimizer_text, sizeof m->optimizer_text);
    return SNUG_OK;
}

double snug_model_learning_rate(const snug_model *m) {
    return sn_optimizer_rate(&m->optimizer, m->iterations);
}

static snug_status check_unused(const snug_model *m, const char *what, snug_error *err) {
    SNUG_TRY(sn_model_check_idle(m, what, err));
    if (sn_state_count(m->state) == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s must be set before anything uses the weights", what);
}

snug_status snug_model_set_seed(snug_model *m, uint64_t seed, snug_error *err) {
    SNUG_TRY(check_unused(m, "the seed", err));
    sn_model_drop_steps(m);
    sn_network_set_seed(m->network, seed);
    return SNUG_OK;
}

snug_status snug_model_set_dtype(snug_model *m, snug_dtype dtype, snug_error *err) {
    if (dtype != SNUG_F32 && dtype != SNUG_F64)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "a model computes in f32 or f64, not in %s",
                       snug_dtype_name(dtype));
    SNUG_TRY(check_unused(m, "the dtype", err));
    sn_model_drop_steps(m);
    sn_network_set_dtype(m->network, dtype);
    return SNUG_OK;
}

/* --- looking inside --------------------------------------------------------------------------- */
snug_engine *snug_model_engine(const snug_model *m) {
    return m->engine;
}
const char *snug_model_name(const snug_model *m) {
    return m->network->name;
}
const char *snug_model_optimizer(const snug_model *m) {
    return m->optimizer_text;
}
const char *snug_model_loss(const snug_model *m) {
    return m->loss_text;
}
size_t snug_model_n_metrics(const snug_model *m) {
    return (size_t)m->n_metrics;
}
const char *snug_model_metric_name(const snug_model *m, size_t i) {
    return m->metrics[i].name;
}
size_t snug_model_n_layers(const snug_model *m) {
    return m->network->n_layers;
}
const snug_type *snug_model_input(const snug_model *m) {
    return sn_network_type(m->network, 0);
}
size_t snug_model_n_weights(const snug_model *m) {
    return sn_network_n_weights(m->network);
}

const snug_type *snug_model_output(const snug_model *m) {
    return sn_network_type(m->network, m->network->outputs[0]);
}

void snug_model_target(const snug_model *m, snug_type *out) {
    sn_loss_target(&m->loss, snug_model_output(m), out);
}

void snug_model_layer(const snug_model *m, size_t i, snug_layer_info *out) {
    const sn_layer *l = &m->network->layers[i];
    *out = (snug_layer_info){.name = l->name, .type = l->cls->class_name, .output = l->output};
    for (int k = 0; k < l->n_vars; k++) {
        const int64_t count = sn_type_count(&m->network->vars[l->homes[k]].type);
        out->n_params += count;
        out->n_trainable += sn_network_trains(m->network, l->homes[k]) ? count : 0;
    }
}

snug_status snug_model_weight(snug_model *m, size_t i, const char **name, snug_view *view,
                              snug_error *err) {
    if (i >= snug_model_n_weights(m))
        return sn_fail(err, SNUG_E_INVALID, "there is no weight %zu; the model has %zu", i,
                       snug_model_n_weights(m));
    SNUG_TRY(sn_model_add_homes(m, err));
    SNUG_TRY(sn_state_view(m->state, (uint32_t)i, view, err));
    if (name)
        *name = m->network->vars[i].name;
    return SNUG_OK;
}
