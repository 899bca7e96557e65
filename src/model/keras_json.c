/* keras_json.c: reads what model.to_json() writes, in the dialects of Keras 3 and of tf.keras 2:
 * the file, the input, the dtype and the compile settings. Layers are read by keras_layers.c.
 *
 * 1. The file is read whole (at most 64 MiB) and parsed within the limits of json.h.
 * 2. `module` is never looked at; nothing in a file can name code. */
#include "model/keras_json.h"

#include "base/file.h"
#include "model/json.h"
#include "model/keras_graph.h"
#include "model/keras_layers.h"
#include "model/keras_value.h"

#include <stdio.h>
#include <string.h>

#define MAX_FILE_BYTES (64 << 20)

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
static const sn_keras_inert metric_inert[] = {
    {"dtype", "*"},
    {"fn", "*"},
    {"axis", "-1"},
    {NULL, NULL},
};

/* --- the model -------------------------------------------------------------------------------- */

/* The layer that may say the shape and the dtype of the input. */
static snug_status first_layer(const json_t *root, const json_t **out, snug_error *err) {
    if (sn_keras_is_functional(root))
        return sn_keras_graph_input(json_object_get(root, "config"), out, err);
    *out = json_array_get(sn_keras_layer_list(root), 0);
    return SNUG_OK;
}

/* The shape of an example: InputLayer's, the first layer's batch_input_shape, or the build shape;
 * NULL if none. */
static const json_t *input_shape(const json_t *root, const json_t *first) {
    static const char *const keys[] = {"batch_shape", "batch_input_shape"};
    const json_t *config = json_object_get(first, "config");
    for (size_t i = 0; i < 2; i++)
        if (json_is_array(json_object_get(config, keys[i])))
            return json_object_get(config, keys[i]);
    const json_t *build = json_object_get(json_object_get(root, "build_config"), "input_shape");
    return build ? build : json_object_get(json_object_get(root, "config"), "build_input_shape");
}

static snug_status read_input(const json_t *root, snug_type *out, snug_error *err) {
    const json_t *first;
    SNUG_TRY(first_layer(root, &first, err));
    const json_t *shape = input_shape(root, first);
    const char *dtype = sn_keras_text(json_object_get(first, "config"), "dtype");
    if (!json_is_array(shape) || json_array_size(shape) < 1)
        return sn_fail(err, SNUG_E_FORMAT,
                       "it does not say the shape of its input; add an Input layer in Keras");
    if (json_array_size(shape) > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "its input has %zu axes; at most %d are supported",
                       json_array_size(shape), SNUG_MAX_RANK);
    *out = (snug_type){.dtype = SNUG_F32, .rank = (int)json_array_size(shape)};
    if (sn_keras_is_input(first) && dtype && strncmp(dtype, "int", 3) == 0)
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

/* The model's policy, or that of its first layer that has one (older files and Functional models
 * have it there only). */
static const char *find_policy(const json_t *model) {
    const char *name = sn_keras_policy(json_object_get(json_object_get(model, "config"), "dtype"));
    const json_t *layers = sn_keras_layer_list(model);
    for (size_t i = 0; i < json_array_size(layers) && !name; i++)
        if (!sn_keras_is_input(json_array_get(layers, i)))
            name = find_policy(json_array_get(layers, i));
    return name;
}

/* Names other than float32 and float64 are refused: mixed precision must not be dropped silently.
 */
static snug_status read_dtype(sn_network *n, const json_t *root, snug_error *err) {
    const char *name = find_policy(root);
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
        char name[160];
        if (!sn_keras_object(json_array_get(metrics, i), metric_inert, name, sizeof name))
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
    if (!sn_keras_is_sequential(root) && !sn_keras_is_functional(root))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "it is a %.40s model; Sequential and Functional ones are supported",
                       class_name);
    SNUG_TRY(read_input(root, &input, err));
    SNUG_TRY(read_compile(root, &found, err));
    SNUG_TRY(sn_network_create(e, name ? name : "sequential", &input, &n, err));
    snug_status status = read_dtype(n, root, err);
    if (status == SNUG_OK)
        status = sn_keras_add_layers(n, root, err);
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
