/* keras_json.c: reads what model.to_json() writes, in the dialects of Keras 3 and of tf.keras 2.
 *
 * 1. The file is read whole (at most 64 MiB) and parsed within the limits of json.h.
 * 2. Class names are looked up in layers.def, keys in the row's fields. A key that is in neither
 * the row nor the list of settings without effect here is refused unless null, so that no setting
 * is silently ignored.
 * 3. `module` is never looked at; nothing in a file can name code. */
#include "model/keras_json.h"

#include "base/file.h"
#include "model/json.h"
#include "model/keras_value.h"

#include <stdio.h>
#include <string.h>

#define MAX_FILE_BYTES (64 << 20)

/* Settings of layers that change nothing as long as they have this value. */
static const sn_keras_inert layer_inert[] = {
    {"name", "*"},
    {"trainable", "*"}, /* read by add_layer */
    {"seed", "*"},
    {"optional", "*"},
    {"batch_size", "*"},
    {"input_length", "*"},
    {"renorm_momentum", "*"},
    {"batch_shape", "*"},
    {"batch_input_shape", "*"},
    {"build_input_shape", "*"},
    {"data_format", "channels_last"},
    {"axis", "-1"},
    {"sparse", "false"},
    {"ragged", "false"},
    {"mask_zero", "false"},
    {"synchronized", "false"},
    {"renorm", "false"},
    {"rms_scaling", "false"},
    {"threshold", "0"},
    {NULL, NULL},
};
static const sn_keras_inert init_inert[] = {{"name", "*"}, {"dtype", "*"}, {NULL, NULL}};
static const sn_keras_inert optimizer_inert[] = {
    {"name", "*"},  {"ema_momentum", "*"}, {"jit_compile", "*"}, {"is_legacy_optimizer", "*"},
    {"decay", "0"}, {NULL, NULL},
};
static const sn_keras_inert loss_inert[] = {
    {"name", "*"},
    {"dtype", "*"},
    {"fn", "*"},
    {"axis", "-1"},
    {"reduction", "sum_over_batch_size"},
    {"reduction", "auto"},
    {NULL, NULL},
};

/* --- one layer's configuration ---------------------------------------------------------------- */

typedef struct {
    json_t *config;
    const char *dtype; /* the network's: "float32" */
    int last_axis;     /* of the layer's input */
} fill_context;

static snug_status wrong_value(const char *key, const json_t *value, snug_error *err) {
    char text[100];
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "%.60s = %s is not supported yet; leave it at its default", key,
                   sn_keras_show(value, text, sizeof text));
}

/* tf.keras 2 writes the last axis as a count from the front, alone or in a list. */
static bool is_last_axis(const fill_context *c, const json_t *value) {
    const json_t *axis = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    return json_is_integer(axis) && json_integer_value(axis) == c->last_axis;
}

/* Whether a key that the layer's row does not list may be passed over. */
static bool is_without_effect(const fill_context *c, const char *key, const json_t *value) {
    if (strcmp(key, "dtype") == 0)
        return !sn_keras_policy(value) || strcmp(sn_keras_policy(value), c->dtype) == 0;
    if (strcmp(key, "axis") == 0 && is_last_axis(c, value))
        return true;
    return sn_keras_is_inert(layer_inert, key, value);
}

static snug_status set_list(const sn_conf_field *f, void *conf, const json_t *list,
                            snug_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if ((int)i >= f->n || (!json_is_number(v) && !json_is_null(v)))
            return wrong_value(f->key, list, err);
        SNUG_TRY(
            sn_conf_set_number(f, conf, (int)i, json_is_null(v) ? -1 : json_number_value(v), err));
    }
    return SNUG_OK;
}

static snug_status set_field(const sn_conf_field *f, void *conf, const json_t *value,
                             snug_error *err) {
    char text[200];
    if (json_is_array(value) && f->kind == SN_CONF_INTS)
        return set_list(f, conf, value, err);
    if (json_is_number(value))
        return sn_conf_set_number(f, conf, -1, json_number_value(value), err);
    if (json_is_boolean(value) && f->kind == SN_CONF_FLAG)
        return sn_conf_set_number(f, conf, 0, json_is_true(value) ? 1 : 0, err);
    if ((f->kind == SN_CONF_TEXT || f->kind == SN_CONF_INIT) &&
        sn_keras_object(value, init_inert, text, sizeof text))
        return sn_conf_set_text(f, conf, text, err);
    return wrong_value(f->key, value, err);
}

static snug_status fill_from_json(void *ctx, const sn_layer_class *cls, void *conf,
                                  snug_error *err) {
    const fill_context *c = ctx;
    for (void *it = json_object_iter(c->config); it; it = json_object_iter_next(c->config, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        const sn_conf_field *field = sn_conf_find(cls, key);
        if (field && !json_is_null(value))
            SNUG_TRY(set_field(field, conf, value, err));
        else if (!field && !is_without_effect(c, key, value))
            return wrong_value(key, value, err);
    }
    return SNUG_OK;
}

/* --- the model -------------------------------------------------------------------------------- */

/* The oldest files have a bare list as config. */
static json_t *layer_list(const json_t *root) {
    json_t *config = json_object_get(root, "config");
    return json_is_array(config) ? config : json_object_get(config, "layers");
}

static bool is_input(const json_t *layer) {
    const char *class_name = sn_keras_text(layer, "class_name");
    return class_name && strcmp(class_name, "InputLayer") == 0;
}

/* The shape of an example: InputLayer's, the first layer's batch_input_shape, or the build shape;
 * NULL if none. */
static const json_t *input_shape(const json_t *root) {
    static const char *const keys[] = {"batch_shape", "batch_input_shape"};
    const json_t *first = json_object_get(json_array_get(layer_list(root), 0), "config");
    for (size_t i = 0; i < 2; i++)
        if (json_is_array(json_object_get(first, keys[i])))
            return json_object_get(first, keys[i]);
    const json_t *build = json_object_get(json_object_get(root, "build_config"), "input_shape");
    return build ? build : json_object_get(json_object_get(root, "config"), "build_input_shape");
}

static snug_status read_input(const json_t *root, snug_type *out, snug_error *err) {
    const json_t *shape = input_shape(root), *first = json_array_get(layer_list(root), 0);
    const char *dtype = sn_keras_text(json_object_get(first, "config"), "dtype");
    if (!json_is_array(shape) || json_array_size(shape) < 1)
        return sn_fail(err, SNUG_E_FORMAT,
                       "it does not say the shape of its input; add an Input layer in Keras");
    if (json_array_size(shape) > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "its input has %zu axes; at most %d are supported",
                       json_array_size(shape), SNUG_MAX_RANK);
    *out = (snug_type){.dtype = SNUG_F32, .rank = (int)json_array_size(shape)};
    if (is_input(first) && dtype && strncmp(dtype, "int", 3) == 0)
        out->dtype = SNUG_I32;
    out->dims[0] = -1;
    for (int i = 1; i < out->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 1)
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "axis %d of its input is open or not positive; give it a size in Keras",
                           i);
        out->dims[i] = (int64_t)json_integer_value(dim);
    }
    return SNUG_OK;
}

static snug_status add_layer(sn_network *n, const json_t *layer, size_t i, snug_error *err) {
    const char *class_name = sn_keras_text(layer, "class_name");
    json_t *config = json_object_get(layer, "config");
    const snug_type *input = n->n_layers ? &n->layers[n->n_layers - 1].output : &n->input;
    if (!class_name || !json_is_object(config))
        return sn_fail(err, SNUG_E_FORMAT, "layer %zu has no class_name or no config", i);
    fill_context c = {.config = config,
                      .dtype = n->variable_dtype == SNUG_F64 ? "float64" : "float32",
                      .last_axis = input->rank - 1};
    SNUG_TRY(sn_network_add(n, class_name, sn_keras_text(config, "name"), fill_from_json, &c, err));
    if (json_is_false(json_object_get(config, "trainable")))
        sn_network_set_trainable(n, n->n_layers - 1, false);
    return SNUG_OK;
}

/* The network's input has InputLayer's type already. */
static snug_status add_layers(sn_network *n, const json_t *layers, snug_error *err) {
    for (size_t i = 0; i < json_array_size(layers); i++)
        if (!is_input(json_array_get(layers, i)))
            SNUG_TRY(add_layer(n, json_array_get(layers, i), i, err));
    return n->n_layers ? SNUG_OK : sn_fail(err, SNUG_E_FORMAT, "the model has no layers");
}

/* The model's policy, or that of its first layer (older files have it there only). Names other than
 * float32 and float64 are refused: mixed precision must not be dropped silently. */
static snug_status read_dtype(sn_network *n, const json_t *root, snug_error *err) {
    const char *name = sn_keras_policy(json_object_get(json_object_get(root, "config"), "dtype"));
    const json_t *layers = layer_list(root);
    for (size_t i = 0; i < json_array_size(layers) && !name; i++)
        if (!is_input(json_array_get(layers, i)))
            name = sn_keras_policy(
                json_object_get(json_object_get(json_array_get(layers, i), "config"), "dtype"));
    if (!name || strcmp(name, "float32") == 0)
        return SNUG_OK;
    if (strcmp(name, "float64") != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "dtype policy %.40s is not supported yet; use float32 or float64", name);
    sn_network_set_dtype(n, SNUG_F64);
    return SNUG_OK;
}

/* --- compile settings ------------------------------------------------------------------------- */

static snug_status refuse_compile(const char *key, const json_t *value, snug_error *err) {
    char text[160];
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "its compile settings have %s = %s, which Snug does not read yet; save the "
                   "model before model.compile, and "
                   "give --optimizer, --loss and --metrics",
                   key, sn_keras_show(value, text, sizeof text));
}

static snug_status read_metrics(const json_t *metrics, char *out, size_t size, snug_error *err) {
    size_t n = 0;
    if (metrics && !json_is_null(metrics) && !json_is_array(metrics))
        return refuse_compile("metrics", metrics, err);
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        char name[64];
        if (!sn_keras_object(json_array_get(metrics, i), loss_inert, name, sizeof name))
            return refuse_compile("metrics", metrics, err);
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? "," : "", name);
        if (n >= size)
            return refuse_compile("metrics", metrics, err);
    }
    return SNUG_OK;
}

static snug_status read_compile(const json_t *root, sn_keras_compile *out, snug_error *err) {
    static const char *const unread[] = {"loss_weights", "weighted_metrics"};
    const json_t *c = json_object_get(root, "compile_config");
    const json_t *optimizer = json_object_get(c, "optimizer"), *loss = json_object_get(c, "loss");
    sn_keras_compile found = {{0}, {0}, {0}};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(c, unread[i]);
        if (value && !json_is_null(value) && !(json_is_array(value) && json_array_size(value) == 0))
            return refuse_compile(unread[i], value, err);
    }
    if (optimizer && !json_is_null(optimizer) &&
        !sn_keras_object(optimizer, optimizer_inert, found.optimizer, sizeof found.optimizer))
        return refuse_compile("optimizer", optimizer, err);
    if (loss && !json_is_null(loss) &&
        !sn_keras_object(loss, loss_inert, found.loss, sizeof found.loss))
        return refuse_compile("loss", loss, err);
    SNUG_TRY(read_metrics(json_object_get(c, "metrics"), found.metrics, sizeof found.metrics, err));
    *out = found;
    return SNUG_OK;
}

/* --- the file --------------------------------------------------------------------------------- */

static snug_status read_model(snug_engine *e, const json_t *root, sn_network **out,
                              sn_keras_compile *compile, snug_error *err) {
    const char *class_name = sn_keras_text(root, "class_name");
    const char *name = sn_keras_text(json_object_get(root, "config"), "name");
    sn_network *n = NULL;
    sn_keras_compile found;
    snug_type input;
    if (!class_name)
        return sn_fail(err, SNUG_E_FORMAT,
                       "it is JSON, but not a Keras model: it has no class_name");
    if (strcmp(class_name, "Sequential") != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "it is a %.40s model; only Sequential is built yet",
                       class_name);
    SNUG_TRY(read_input(root, &input, err));
    SNUG_TRY(read_compile(root, &found, err));
    SNUG_TRY(sn_network_create(e, name ? name : "sequential", &input, &n, err));
    snug_status status = read_dtype(n, root, err);
    if (status == SNUG_OK)
        status = add_layers(n, layer_list(root), err);
    if (status != SNUG_OK) {
        sn_network_destroy(n);
        return status;
    }
    *out = n;
    *compile = found;
    return SNUG_OK;
}

/* Files people take for model JSON. */
static snug_status check_kind(const char *path, const char *text, size_t n, snug_error *err) {
    const bool zip = n >= 4 && memcmp(text, "PK\x03\x04", 4) == 0,
               hdf5 = n >= 4 && memcmp(text, "\x89HDF", 4) == 0;
    if (!zip && !hdf5)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "%s is %s; Snug reads the JSON of the model: open(\"model.json\", "
                   "\"w\").write(model.to_json())",
                   path, zip ? "a .keras archive" : "an HDF5 file");
}

static snug_status read_text(snug_engine *e, const char *path, const char *text, size_t n,
                             sn_network **out, sn_keras_compile *compile, snug_error *err) {
    json_t *root;
    SNUG_TRY(check_kind(path, text, n, err));
    SNUG_TRY(sn_json_parse(path, text, n, &root, err));
    const snug_status status = read_model(e, root, out, compile, err);
    json_decref(root);
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "%s", path);
}

snug_status sn_keras_load(snug_engine *e, const char *path, sn_network **out,
                          sn_keras_compile *compile, snug_error *err) {
    sn_file f = {.fd = -1};
    void *text = NULL;
    SNUG_TRY(sn_file_open(&f, sn_engine_io(e), path, err));
    const size_t n = (size_t)f.size;
    snug_status status = f.size > MAX_FILE_BYTES
                             ? sn_fail(err, SNUG_E_FORMAT,
                                       "%s has %zu bytes; a model JSON has at most 64 MiB", path, n)
                             : sn_alloc(e, SN_MEM_MODEL, n, &text, err);
    if (status == SNUG_OK)
        status = sn_file_read(&f, text, n, 0, err);
    sn_file_close(&f);
    if (status == SNUG_OK)
        status = read_text(e, path, text, n, out, compile, err);
    sn_free(e, SN_MEM_MODEL, text, n);
    return status;
}
