/* keras_layers.c: the layers of a model's JSON become layers of a network.
 *
 * 1. Class names are looked up in layers.def, keys in the row's fields. A key that is in neither
 * the row nor the list of settings without effect here is refused unless null, so that no setting
 * is silently ignored.
 * 2. Models inside models are flattened: layer "dense" of the nested model "inner" is
 * "inner/dense". Applying a nested model again applies its layers again. */
#include "model/keras_layers.h"

#include "model/keras_graph.h"
#include "model/keras_operation.h"
#include "model/keras_value.h"
#include "nn/layer_call.h"

#include <stdio.h>
#include <string.h>

#define MAX_APPLICATIONS 20000 /* nested models can multiply without end */

/* Settings of layers that change nothing as long as they have this value. */
static const sn_keras_inert layer_inert[] = {
    {"name", "*"},
    {"trainable", "*"}, /* read by freeze */
    {"seed", "*"},      /* of layers that draw nothing */
    {"optional", "*"},
    {"use_cudnn", "*"},
    {"batch_size", "*"},
    {"input_length", "*"},
    {"renorm_momentum", "*"},
    {"batch_shape", "*"},
    {"batch_input_shape", "*"},
    {"build_input_shape", "*"},
    {"query_shape", "*"}, /* of tf.keras 2's MultiHeadAttention, once built */
    {"value_shape", "*"},
    {"key_shape", "*"},
    {"data_format", "channels_last"},
    {"groups", "1"},             /* of tf.keras 2's depthwise, separable and transposed layers */
    {"kernel_initializer", "*"}, /* of its SeparableConv, which has two others */
    {"axis", "-1"},
    {"sparse", "false"},
    {"ragged", "false"},
    {"synchronized", "false"},
    {"renorm", "false"},
    {"rms_scaling", "false"},
    {"threshold", "0"},
    {NULL, NULL},
};
static const sn_keras_inert init_inert[] = {{"name", "*"}, {"dtype", "*"}, {NULL, NULL}};

/* --- one layer's configuration ---------------------------------------------------------------- */

typedef struct {
    json_t *config;
    sn_policy policy; /* of the layer, its own or not */
    int last_axis;    /* of the layer's first input */
} fill_context;

static snug_status wrong_value(const char *key, const json_t *value, snug_error *err) {
    char text[100];
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "%.60s = %s is not supported yet; leave it at its default", key,
                   sn_keras_show(value, text, sizeof text));
}

static snug_status no_number(const char *key, const json_t *value, snug_error *err) {
    char text[100];
    return sn_fail(err, SNUG_E_FORMAT, "%.60s = %s is no number; save the model again", key,
                   sn_keras_show(value, text, sizeof text));
}

/* tf.keras 2 writes the last axis as a count from the front, alone or in a list. */
static bool is_last_axis(const fill_context *c, const json_t *value) {
    const json_t *axis = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    return json_is_integer(axis) && json_integer_value(axis) == c->last_axis;
}

/* Whether a key that the layer's row does not list may be passed over. */
static bool is_without_effect(const fill_context *c, const char *key, const json_t *value) {
    if (strcmp(key, "dtype") == 0 || strcmp(key, "autocast") == 0)
        return true; /* read by read_policy */
    if (strcmp(key, "axis") == 0 && is_last_axis(c, value))
        return true;
    return sn_keras_is_inert(layer_inert, key, value);
}

/* Lists in the list (a padding by axes) count as their entries. `at` is how many were set. */
static snug_status set_list(const sn_conf_field *f, void *conf, const json_t *list, int *at,
                            snug_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (json_is_array(v)) {
            SNUG_TRY(set_list(f, conf, v, at, err));
            continue;
        }
        if (*at >= f->n || (!json_is_number(v) && !json_is_null(v)))
            return wrong_value(f->key, list, err);
        SNUG_TRY(
            sn_conf_set_number(f, conf, (*at)++, json_is_null(v) ? -1 : json_number_value(v), err));
    }
    return SNUG_OK;
}

static snug_status set_field(const sn_conf_field *f, void *conf, const json_t *value,
                             snug_error *err) {
    char text[200];
    int at = 0;
    const char *cls = sn_keras_text(value, "class_name");
    if (cls && strcmp(cls, "__numpy__") == 0) /* an object around the list */
        value = json_object_get(json_object_get(value, "config"), "value");
    if (cls && strcmp(cls, "SeedGenerator") == 0 && strcmp(f->key, "seed") == 0)
        value = json_object_get(json_object_get(value, "config"), "seed");
    if (json_is_null(value))
        return SNUG_OK;
    if (json_is_array(value) && json_array_size(value) == 0)
        return sn_conf_set_empty(f, conf, err);
    if (json_is_array(value) && (f->kind == SN_CONF_INTS || f->kind == SN_CONF_REALS)) {
        SNUG_TRY(set_list(f, conf, value, &at, err));
        return sn_conf_check_count(f, at, err);
    }
    if (json_is_number(value))
        return sn_conf_set_number(f, conf, -1, json_number_value(value), err);
    if (json_is_boolean(value) && f->kind == SN_CONF_FLAG)
        return sn_conf_set_number(f, conf, 0, json_is_true(value) ? 1 : 0, err);
    if ((f->kind == SN_CONF_TEXT || f->kind == SN_CONF_INIT) &&
        sn_keras_object(value, init_inert, text, sizeof text))
        return sn_conf_set_text(f, conf, text, err);
    return f->kind == SN_CONF_INT && json_is_string(value) ? no_number(f->key, value, err)
                                                           : wrong_value(f->key, value, err);
}

static snug_status fill_from_json(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                  snug_error *err);

/* The policy that a configuration names becomes the layer's own where it is not that of what is
 * around the layer; c->policy is that, and then the layer's. */
static snug_status read_policy(fill_context *c, sn_layer_spec *spec, snug_error *err) {
    const json_t *const dtype = json_object_get(c->config, "dtype");
    const char *const name = sn_keras_policy(dtype);
    spec->uncast = json_is_false(json_object_get(c->config, "autocast"));
    spec->policy = (sn_policy){.own = false};
    if (!dtype || json_is_null(dtype))
        return SNUG_OK;
    if (!name)
        return wrong_value("dtype", dtype, err);
    SNUG_TRY(sn_policy_parse(name, &spec->policy, err));
    spec->policy.own = !sn_policy_equal(&spec->policy, &c->policy);
    c->policy = spec->policy;
    return SNUG_OK;
}

/* A layer inside another: the cell of an RNN, what a wrapper applies. */
static snug_status make_inner(const fill_context *c, sn_network *n, const json_t *layer,
                              sn_layer **out, snug_error *err) {
    fill_context inner = {
        .config = json_object_get(layer, "config"), .policy = c->policy, .last_axis = c->last_axis};
    sn_layer_spec spec = {.class_name = sn_keras_text(layer, "class_name"),
                          .name = sn_keras_layer_name(layer),
                          .fill = fill_from_json,
                          .ctx = &inner};
    SNUG_TRY(sn_keras_layer_check(layer, 0, err));
    SNUG_TRY(read_policy(&inner, &spec, err));
    return sn_layer_make(n, &spec, out, err);
}

static snug_status set_layers(const fill_context *c, sn_network *n, const sn_conf_field *f,
                              void *conf, const json_t *value, snug_error *err) {
    void *const at = (char *)conf + f->offset;
    if (f->kind == SN_CONF_LAYER)
        return make_inner(c, n, value, at, err);
    sn_layer_list list = {.n = (int64_t)json_array_size(value)};
    if (!json_is_array(value) || list.n > SN_MAX_INNER)
        return wrong_value(f->key, value, err);
    for (size_t i = 0; i < json_array_size(value); i++)
        SNUG_TRY(make_inner(c, n, json_array_get(value, i), &list.at[i], err));
    *(sn_layer_list *)at = list;
    return SNUG_OK;
}

static snug_status fill_from_json(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                  snug_error *err) {
    const fill_context *c = ctx;
    for (void *it = json_object_iter(c->config); it; it = json_object_iter_next(c->config, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        const sn_conf_field *field = sn_conf_find(cls, key);
        const bool inner = field && (field->kind == SN_CONF_LAYER || field->kind == SN_CONF_LAYERS);
        if (inner && !json_is_null(value))
            SNUG_TRY(set_layers(c, n, field, conf, value, err));
        else if (field && !json_is_null(value))
            SNUG_TRY(set_field(field, conf, value, err));
        else if (field && strcmp(key, "merge_mode") == 0) /* null is a mode, not its default */
            SNUG_TRY(sn_conf_set_text(field, conf, "none", err));
        else if (!field && !is_without_effect(c, key, value))
            return wrong_value(key, value, err);
    }
    return SNUG_OK;
}

snug_status sn_keras_make_layer(sn_network *n, const char *class_name, const json_t *config,
                                sn_layer **out, snug_error *err) {
    fill_context c = {.config = (json_t *)(uintptr_t)config, /* only read */
                      .policy = n->policy,
                      .last_axis = -1};
    sn_layer_spec spec = {.class_name = class_name,
                          .name = sn_keras_text(config, "name"),
                          .fill = fill_from_json,
                          .ctx = &c};
    const json_t *trainable = json_object_get(config, "trainable");
    SNUG_TRY(read_policy(&c, &spec, err));
    SNUG_TRY(sn_layer_make(n, &spec, out, err));
    (*out)->trainable = !json_is_false(trainable);
    return SNUG_OK;
}

/* --- applying layers and models --------------------------------------------------------------- */

/* Where layers are added: the model itself or a model within it. */
typedef struct {
    sn_network *network;
    char prefix[128]; /* "inner/"; "" in the model itself */
    bool trainable;   /* false: all that is in it is frozen */
    bool again;       /* it was applied before: its layers exist */
    bool inference;   /* it is called with training=False, and so is all that is in it */
    int64_t by_steps; /* its examples are so many steps of a TimeDistributed; 0: they are not */
} scope;

/* What a layer is called with. */
typedef struct {
    uint32_t in[SN_MAX_IN];
    const char *role[SN_MAX_IN];
    int n_in;
    char call[200];            /* keywords that are no tensors: "use_causal_mask=true" */
    const sn_keras_node *node; /* NULL in a Sequential model */
} arguments;

/* What it makes. */
typedef struct {
    uint32_t at[SN_MAX_TENSOR];
    const char *name[SN_MAX_TENSOR]; /* of a Functional model's outputs; else NULL */
    int n;
} results;

static snug_status apply_model(const scope *s, const json_t *model, const arguments *x,
                               results *out, snug_error *err);

/* Keywords that every call in the scope has. */
static void begin_call(const scope *s, arguments *x) {
    const int n = snprintf(x->call, sizeof x->call, "%s", s->inference ? "training=false" : "");
    if (s->by_steps > 0)
        snprintf(x->call + n, sizeof x->call - (size_t)n, "%sby_steps=%lld", n ? " " : "",
                 (long long)s->by_steps);
}

/* The layer's name in the network; "" for Keras' automatic one. */
static snug_status full_name(const scope *s, const json_t *layer, char *out, size_t size,
                             snug_error *err) {
    const char *name = sn_keras_text(json_object_get(layer, "config"), "name");
    if (!name)
        name = sn_keras_layer_name(layer); /* edges go by it */
    if (!name && s->prefix[0])
        return sn_fail(err, SNUG_E_FORMAT, "a layer in '%.60s' has no name", s->prefix);
    const int n = name ? snprintf(out, size, "%s%s", s->prefix, name) : 0;
    if (n >= (int)size)
        return sn_fail(err, SNUG_E_FORMAT, "the name '%.60s...' of a layer is longer than %zu", out,
                       size - 1);
    if (!name)
        out[0] = 0;
    return SNUG_OK;
}

static snug_status check_arity(const char *class_name, const char *name, const arguments *x,
                               snug_error *err) {
    const sn_layer_class *cls;
    int n_in = x->n_in;
    for (int k = 0; k < x->n_in; k++)
        n_in -= sn_role_is_mask(x->role[k]);
    SNUG_TRY(sn_layer_class_find(class_name, &cls, err));
    if (n_in >= cls->min_in && n_in <= cls->max_in)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_FORMAT, "layer '%.60s' (%s) is applied to %d tensors; it takes %d%s",
                   name, class_name, n_in, cls->min_in,
                   cls->max_in > cls->min_in ? " or more" : "");
}

/* Outputs of the newest application. */
static void take_results(const sn_network *n, uint32_t first, results *out) {
    *out = (results){.n = n->applications[n->n_applications - 1].n_out};
    for (int i = 0; i < out->n; i++)
        out->at[i] = first + (uint32_t)i;
}

static bool is_frozen(const json_t *layer) {
    return json_is_false(json_object_get(json_object_get(layer, "config"), "trainable"));
}

/* Layers that have weights: the layer itself, or those inside it. */
typedef struct {
    int all, frozen;
} share;

static void count_frozen(const json_t *layer, bool within_frozen, share *out) {
    static const char *const keys[] = {"layer", "backward_layer", "cell"};
    const json_t *config = json_object_get(layer, "config"),
                 *cells = json_object_get(config, "cells");
    const bool frozen = within_frozen || is_frozen(layer);
    const int before = out->all;
    for (size_t i = 0; i < 3; i++)
        if (sn_keras_text(json_object_get(config, keys[i]), "class_name"))
            count_frozen(json_object_get(config, keys[i]), frozen, out);
    for (size_t i = 0; i < json_array_size(cells); i++)
        count_frozen(json_array_get(cells, i), frozen, out);
    const bool is_leaf = out->all == before;
    out->all += is_leaf;
    out->frozen += is_leaf && frozen;
}

/* Freezes the newest layer where the file says so. */
static snug_status freeze(const scope *s, const json_t *layer, snug_error *err) {
    sn_network *const n = s->network;
    share inside = {0, 0};
    count_frozen(layer, !s->trainable, &inside);
    if (inside.frozen != 0 && inside.frozen != inside.all)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "layer '%.60s': %d of the %d layers within it are trainable=false; only all "
                       "or none can be",
                       n->layers[n->n_layers - 1].name, inside.frozen, inside.all);
    sn_network_set_trainable(n, n->n_layers - 1, inside.frozen == 0);
    return SNUG_OK;
}

static snug_status add_layer(const scope *s, const json_t *layer, const char *name,
                             const arguments *x, results *out, snug_error *err) {
    sn_network *const n = s->network;
    json_t *config = json_object_get(layer, "config");
    fill_context c = {
        .config = config, .policy = n->policy, .last_axis = sn_network_type(n, x->in[0])->rank - 1};
    sn_keras_operation operation = {layer, x->node};
    const bool is_operation = sn_keras_is_operation(layer);
    sn_layer_spec spec = {.class_name =
                              is_operation ? "Operation" : sn_keras_text(layer, "class_name"),
                          .name = name,
                          .fill = is_operation ? sn_keras_operation_fill : fill_from_json,
                          .ctx = is_operation ? (void *)&operation : (void *)&c,
                          .in = x->in,
                          .n_in = x->n_in,
                          .role = x->role,
                          .call = x->call};
    uint32_t first;
    SNUG_TRY(check_arity(spec.class_name, name, x, err));
    if (!is_operation) /* cast has a dtype of its own */
        SNUG_TRY(read_policy(&c, &spec, err));
    SNUG_TRY(sn_network_add_on(n, &spec, &first, err));
    SNUG_TRY(freeze(s, layer, err));
    take_results(n, first, out);
    return SNUG_OK;
}

static snug_status apply_again(const scope *s, const char *name, const arguments *x, results *out,
                               snug_error *err) {
    sn_network *const n = s->network;
    const uint32_t layer = sn_network_find(n, name); /* not there: it got an automatic name */
    if (layer == n->n_layers)
        return sn_fail(err, SNUG_E_FORMAT, "a layer that is applied again has no name");
    SNUG_TRY(check_arity(n->layers[layer].cls->class_name, name, x, err));
    const sn_layer_spec spec = {.in = x->in, .n_in = x->n_in, .role = x->role, .call = x->call};
    uint32_t first;
    SNUG_TRY(sn_network_apply(n, layer, &spec, &first, err));
    take_results(n, first, out);
    return SNUG_OK;
}

/* The model that a TimeDistributed applies, or NULL. */
static const json_t *distributed_model(const json_t *layer) {
    const char *const class_name = sn_keras_text(layer, "class_name");
    const json_t *const within = json_object_get(json_object_get(layer, "config"), "layer");
    const bool is_model = sn_keras_is_sequential(within) || sn_keras_is_functional(within);
    return class_name && strcmp(class_name, "TimeDistributed") == 0 && is_model ? within : NULL;
}

static snug_status add_plain(const scope *s, const char *class_name, const uint32_t *in, int n_in,
                             uint32_t *out, snug_error *err) {
    const sn_layer_spec spec = {.class_name = class_name, .in = in, .n_in = n_in};
    return sn_network_add_on(s->network, &spec, out, err);
}

static int64_t steps_of(const sn_network *n, uint32_t tensor) {
    const snug_type *t = sn_network_type(n, tensor);
    return t->rank > 1 ? t->dims[1] : 0;
}

/* A model in TimeDistributed: applied to all steps as one batch. */
static snug_status apply_distributed(const scope *s, const json_t *layer, const char *name,
                                     const arguments *x, results *out, snug_error *err) {
    const json_t *const model = distributed_model(layer);
    const char *const inner_name = sn_keras_text(json_object_get(model, "config"), "name");
    scope inner = *s;
    arguments steps = {.n_in = 1};
    inner.by_steps = steps_of(s->network, x->in[0]);
    inner.trainable = s->trainable && !is_frozen(layer) && !is_frozen(model);
    if (x->n_in != 1 || snprintf(inner.prefix, sizeof inner.prefix, "%s/%s/", name,
                                 inner_name ? inner_name : "") >= (int)sizeof inner.prefix)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "layer '%.60s' (TimeDistributed) takes one tensor and shorter names", name);
    SNUG_TRY(add_plain(s, "StepsToBatch", x->in, 1, &steps.in[0], err));
    SNUG_TRY(apply_model(&inner, model, &steps, out, err));
    for (int i = 0; i < out->n; i++)
        SNUG_TRY(add_plain(s, "BatchToSteps", (const uint32_t[]){out->at[i], x->in[0]}, 2,
                           &out->at[i], err));
    return SNUG_OK;
}

/* A layer, or a model that stands where layers do. An operation has no variables: applied again it
 * is a new one, with the arguments of this call. */
static snug_status apply_layer(const scope *s, const json_t *layer, const arguments *x,
                               results *out, snug_error *err) {
    char name[sizeof s->prefix - 1];
    SNUG_TRY(full_name(s, layer, name, sizeof name, err));
    if (s->network->n_applications >= MAX_APPLICATIONS)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the model applies layers more than %d times",
                       MAX_APPLICATIONS);
    if (distributed_model(layer))
        return apply_distributed(s, layer, name, x, out, err);
    if (s->again && sn_keras_is_operation(layer))
        return add_layer(s, layer, NULL, x, out, err);
    if (!sn_keras_is_sequential(layer) && !sn_keras_is_functional(layer))
        return s->again ? apply_again(s, name, x, out, err)
                        : add_layer(s, layer, name, x, out, err);
    scope inner = {.network = s->network,
                   .trainable = s->trainable && !is_frozen(layer),
                   .again = s->again,
                   .inference = s->inference || strstr(x->call, "training=false"),
                   .by_steps = s->by_steps};
    if (!name[0])
        return sn_fail(err, SNUG_E_FORMAT, "a model inside the model has no name");
    if (x->n_in != 1 && sn_keras_is_sequential(layer))
        return sn_fail(err, SNUG_E_FORMAT, "model '%.60s' is applied to %d tensors; it takes 1",
                       name, x->n_in);
    snprintf(inner.prefix, sizeof inner.prefix, "%s/", name);
    return apply_model(&inner, layer, x, out, err);
}

/* Each layer on the one before. The model's input has InputLayer's type already. */
static snug_status apply_chain(const scope *s, const json_t *layers, const arguments *x,
                               results *out, snug_error *err) {
    arguments t = {.in = {x->in[0]}, .n_in = 1};
    results r = {.n = 0};
    begin_call(s, &t);
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        SNUG_TRY(sn_keras_layer_check(layer, i, err));
        if (sn_keras_is_input(layer))
            continue;
        SNUG_TRY(apply_layer(s, layer, &t, &r, err));
        t.in[0] = r.at[0];
    }
    *out = r;
    return r.n ? SNUG_OK : sn_fail(err, SNUG_E_FORMAT, "the model has no layers");
}

/* --- Functional models ------------------------------------------------------------------------ */
static bool is_nothing(const json_t *value) {
    bool nothing = json_is_null(value) || json_is_array(value);
    for (size_t i = 0; i < json_array_size(value) && nothing; i++)
        nothing = is_nothing(json_array_get(value, i));
    return nothing;
}

/* Keywords of a call that are no tensors, as text. `training` may only switch training off: a layer
 * that trains while the model predicts is not known here. In models of Keras 3 it means nothing:
 * fit, evaluate and predict say themselves what it is, for every layer. */
static snug_status read_keywords(const sn_keras_node *node, arguments *x, snug_error *err) {
    size_t n = strlen(x->call);
    for (void *it = json_object_iter(node->kwargs); it;
         it = json_object_iter_next(node->kwargs, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        char text[64], shown[100];
        const bool training = strcmp(key, "training") == 0;
        if (is_nothing(value) || sn_keras_holds_tensor(value) || (training && !node->is_old))
            continue;
        const bool trains = training && !json_is_false(value);
        if (trains || !sn_keras_scalar(value, text, sizeof text) || strchr(text, ' '))
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "layer '%.60s' is called with %.40s = %s, which is not supported; leave "
                           "it out in Keras",
                           node->name, key, sn_keras_show(value, shown, sizeof shown));
        n += (size_t)snprintf(x->call + n, sizeof x->call - n, "%s%s=%s", n ? " " : "", key, text);
        if (n >= sizeof x->call)
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "layer '%.60s' is called with too many keywords", node->name);
    }
    return SNUG_OK;
}

/* What a call gives in order beside tensors; a null changes nothing. */
static snug_status refuse_values(const sn_keras_node *node, snug_error *err) {
    char shown[100];
    for (int i = 0; i < node->n_args; i++)
        if (!sn_keras_holds_tensor(node->args[i]) && !json_is_null(node->args[i]))
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "layer '%.60s' is called with an argument = %s; only tensors are "
                           "supported there",
                           node->name, sn_keras_show(node->args[i], shown, sizeof shown));
    return SNUG_OK;
}

static snug_status apply_node(const scope *s, const sn_keras_graph *g, const sn_keras_node *node,
                              const results *made, results *out, snug_error *err) {
    scope here = *s;
    arguments x = {.n_in = node->n_in, .node = node};
    here.again = s->again || node->again;
    for (int k = 0; k < node->n_in; k++) {
        const sn_keras_edge *edge = &node->in[k];
        const results *from = &made[edge->node];
        if (edge->index >= from->n)
            return sn_fail(err, SNUG_E_FORMAT, "'%.60s' reads output %d of '%.60s', which has %d",
                           node->name, edge->index, g->nodes[edge->node].name, from->n);
        x.in[k] = from->at[edge->index];
        x.role[k] = edge->role;
    }
    begin_call(s, &x);
    if (!sn_keras_is_operation(node->layer)) {
        SNUG_TRY(refuse_values(node, err));
        SNUG_TRY(read_keywords(node, &x, err));
    }
    return apply_layer(&here, node->layer, &x, out, err);
}

static snug_status apply_nodes(const scope *s, const sn_keras_graph *g, const arguments *x,
                               results *made, snug_error *err) {
    if (x->n_in != g->n_inputs)
        return sn_fail(err, SNUG_E_FORMAT, "the model is applied to %d tensors; it takes %d",
                       x->n_in, g->n_inputs);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const uint32_t k = g->order[i];
        const int input = g->nodes[k].input;
        if (input >= 0)
            made[k] = (results){.at = {x->in[input]}, .n = 1};
        else
            SNUG_TRY(apply_node(s, g, &g->nodes[k], made, &made[k], err));
    }
    return g->n_nodes > (size_t)g->n_inputs
               ? SNUG_OK
               : sn_fail(err, SNUG_E_FORMAT, "the model has no layers");
}

static snug_status take_outputs(const sn_keras_graph *g, const results *made, results *out,
                                snug_error *err) {
    out->n = g->n_outputs;
    for (int i = 0; i < g->n_outputs; i++) {
        const sn_keras_edge *edge = &g->outputs[i];
        if (edge->index >= made[edge->node].n)
            return sn_fail(err, SNUG_E_FORMAT, "output_layers names output %d of '%.60s'",
                           edge->index, g->nodes[edge->node].name);
        out->at[i] = made[edge->node].at[edge->index];
        out->name[i] = g->output_names[i];
    }
    return SNUG_OK;
}

static snug_status apply_graph(const scope *s, const json_t *config, const arguments *x,
                               results *out, snug_error *err) {
    snug_engine *const e = s->network->engine;
    sn_keras_graph g;
    void *block = NULL;
    SNUG_TRY(sn_keras_graph_read(e, config, &g, err));
    const size_t bytes = g.n_nodes * sizeof(results);
    snug_status status = sn_alloc(e, SN_MEM_MODEL, bytes, &block, err);
    results *const made = block;
    if (status == SNUG_OK)
        status = apply_nodes(s, &g, x, made, err);
    if (status == SNUG_OK)
        status = take_outputs(&g, made, out, err);
    sn_free(e, SN_MEM_MODEL, block, bytes);
    sn_keras_graph_clear(e, &g);
    return status;
}

static snug_status apply_model(const scope *s, const json_t *model, const arguments *x,
                               results *out, snug_error *err) {
    const snug_status status = sn_keras_is_functional(model)
                                   ? apply_graph(s, json_object_get(model, "config"), x, out, err)
                                   : apply_chain(s, sn_keras_layer_list(model), x, out, err);
    if (status != SNUG_OK && s->prefix[0])
        return sn_fail_in(err, status, "in '%.60s'", s->prefix);
    return status;
}

/* Two outputs of one layer have one name in Keras; the second is called "lstm_1" here. */
static snug_status name_outputs(sn_network *n, const results *r, snug_error *err) {
    for (int i = 0; i < r->n && r->n > 1; i++) {
        char name[160];
        int again = 0;
        for (int k = 0; k < i; k++)
            again += strcmp(r->name[i], r->name[k]) == 0;
        snprintf(name, sizeof name, again ? "%.140s_%d" : "%.140s", r->name[i], again);
        SNUG_TRY(sn_network_name_output(n, (uint32_t)i, name, err));
    }
    return SNUG_OK;
}

snug_status sn_keras_add_layers(sn_network *n, const json_t *root, snug_error *err) {
    const scope s = {.network = n, .trainable = true};
    arguments x = {.n_in = (int)n->n_inputs};
    results out;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        x.in[i] = i;
    SNUG_TRY(apply_model(&s, root, &x, &out, err));
    sn_network_set_outputs(n, out.at, (uint32_t)out.n);
    return sn_keras_is_functional(root) ? name_outputs(n, &out, err) : SNUG_OK;
}
