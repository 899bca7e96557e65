/* keras_json.c: reads what model.to_json() writes, in the dialects of Keras 3 and of tf.keras 2.
 *
 * 1. The file is read whole (at most 64 MiB) and parsed by jansson, which stops at a depth of 2,048.
 * 2. Class names are looked up in layers.def, keys in the row's fields. A key that is in neither the row nor the list of
 *    settings without effect here is refused unless null, so that no setting is silently ignored.
 * 3. `module` is never looked at; nothing in a file can name code. */
#include "model/keras_json.h"

#include "base/file.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE_BYTES (64 << 20)

/* Settings that change nothing as long as they have this value; "*" is any value. */
static const struct {
    const char *key, *value;
} inert_settings[] = {
    {"name", "*"},       {"trainable", "*"},   {"dtype", "*"},          {"seed", "*"},
    {"optional", "*"},   {"batch_size", "*"},  {"input_length", "*"},   {"renorm_momentum", "*"},
    {"batch_shape", "*"}, {"batch_input_shape", "*"}, {"data_format", "channels_last"},
    {"axis", "-1"},      {"sparse", "false"},     {"ragged", "false"},
    {"mask_zero", "false"}, {"synchronized", "false"}, {"renorm", "false"}, {"rms_scaling", "false"},
    {"threshold", "0"},  {"build_input_shape", "*"},
};

typedef struct {
    const char *layer; /* its name, for messages */
    json_t *config;
} fill_context;

/* --- small readers ---------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

/* GlorotUniform -> glorot_uniform; text that is snake case already stays. */
static void to_snake(const char *name, char *out, size_t size) {
    size_t n = 0;
    for (const char *c = name; *c && n + 2 < size; c++) {
        const bool upper = isupper((unsigned char)*c) != 0;
        const bool starts_word = upper && c != name && (!isupper((unsigned char)c[-1]) || islower((unsigned char)c[1]));
        if (starts_word && c[-1] != '_')
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)*c);
    }
    out[n] = 0;
}

/* A JSON scalar as text: true, 0.5, same. False when it is none or does not fit. */
static bool scalar_text(const json_t *value, char *out, size_t size) {
    int n = -1;
    if (json_is_string(value))
        n = snprintf(out, size, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        n = snprintf(out, size, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        n = snprintf(out, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        n = snprintf(out, size, "%.17g", json_real_value(value));
    return n >= 0 && (size_t)n < size;
}

/* {"class_name":"Adam","config":{"learning_rate":0.1,"clipnorm":null}} or "adam" -> "adam:learning_rate=0.1". Keys in
 * `skip` (NULL ended) and nulls are left out. */
static bool object_text(const json_t *value, const char *const *skip, char *out, size_t size) {
    char name[64], entry[64];
    if (json_is_string(value))
        return (size_t)snprintf(out, size, "%s", json_string_value(value)) < size;
    const char *class_name = text_at(value, "class_name");
    json_t *config = json_object_get(value, "config");
    if (!class_name)
        return false;
    to_snake(class_name, name, sizeof name);
    size_t n = (size_t)snprintf(out, size, "%s", name);
    char mark = ':';
    for (void *it = json_object_iter(config); it; it = json_object_iter_next(config, it)) {
        const json_t *v = json_object_iter_value(it);
        bool skipped = json_is_null(v) || json_is_false(v);
        for (const char *const *s = skip; *s; s++)
            skipped = skipped || strcmp(*s, json_object_iter_key(it)) == 0;
        if (skipped)
            continue;
        if (!scalar_text(v, entry, sizeof entry) || n >= size)
            return false;
        n += (size_t)snprintf(out + n, size - n, "%c%s=%s", mark, json_object_iter_key(it), entry);
        mark = ',';
    }
    return n < size;
}

/* --- one layer's configuration ------------------------------------------------------------------------------------ */

static snug_status wrong_value(const fill_context *c, const char *key, const json_t *value, snug_error *err) {
    char text[80];
    if (!scalar_text(value, text, sizeof text))
        snprintf(text, sizeof text, "this");
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "layer %s: %s = %s is not supported yet; leave it at its default", c->layer, key, text);
}

static bool is_inert(const char *key, const json_t *value) {
    char text[40] = "";
    if (json_is_null(value))
        return true;
    /* axis: [-1] means -1 */
    const bool alone = json_is_array(value) && json_array_size(value) == 1;
    (void)scalar_text(alone ? json_array_get(value, 0) : value, text, sizeof text);
    for (size_t i = 0; i < sizeof inert_settings / sizeof *inert_settings; i++)
        if (strcmp(inert_settings[i].key, key) == 0 &&
            (inert_settings[i].value[0] == '*' || strcmp(inert_settings[i].value, text) == 0))
            return true;
    return false;
}

static snug_status set_list(const fill_context *c, const sn_conf_field *f, void *conf, const json_t *list,
                            snug_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if ((int)i >= f->n || (!json_is_number(v) && !json_is_null(v)))
            return wrong_value(c, f->key, list, err);
        SNUG_TRY(sn_conf_set_number(f, conf, (int)i, json_is_null(v) ? -1 : json_number_value(v), err));
    }
    return SNUG_OK;
}

static snug_status set_field(const fill_context *c, const sn_conf_field *f, void *conf, const json_t *value,
                             snug_error *err) {
    static const char *const skip[] = {"name", NULL};
    char text[200];
    if (json_is_array(value) && f->kind == SN_CONF_INTS)
        return set_list(c, f, conf, value, err);
    if (json_is_number(value) && f->kind == SN_CONF_INTS) {
        for (int i = 0; i < f->n; i++)
            SNUG_TRY(sn_conf_set_number(f, conf, i, json_number_value(value), err));
        return SNUG_OK;
    }
    if (json_is_number(value))
        return sn_conf_set_number(f, conf, 0, json_number_value(value), err);
    if (json_is_boolean(value))
        return sn_conf_set_number(f, conf, 0, json_is_true(value) ? 1 : 0, err);
    if ((f->kind == SN_CONF_TEXT || f->kind == SN_CONF_INIT) && object_text(value, skip, text, sizeof text))
        return sn_conf_set_text(f, conf, text, err);
    return wrong_value(c, f->key, value, err);
}

static snug_status fill_from_json(void *ctx, const sn_layer_class *cls, void *conf, snug_error *err) {
    const fill_context *c = ctx;
    for (void *it = json_object_iter(c->config); it; it = json_object_iter_next(c->config, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        const sn_conf_field *field = NULL;
        for (int i = 0; i < cls->n_fields; i++)
            if (strcmp(cls->fields()[i].key, key) == 0)
                field = &cls->fields()[i];
        if (field && !json_is_null(value))
            SNUG_TRY(set_field(c, field, conf, value, err));
        else if (!field && !is_inert(key, value))
            return wrong_value(c, key, value, err);
    }
    return SNUG_OK;
}

/* --- the model ------------------------------------------------------------------------------------------------------- */

static json_t *layer_list(json_t *root) {
    json_t *config = json_object_get(root, "config");
    return json_is_array(config) ? config : json_object_get(config, "layers"); /* the oldest files: a bare list */
}

/* The shape of an example: InputLayer's, the first layer's batch_input_shape, or the build shape; NULL if none. */
static const json_t *input_shape(json_t *root, const json_t **input_config) {
    static const char *const keys[] = {"batch_shape", "batch_input_shape"};
    json_t *first = json_object_get(json_array_get(layer_list(root), 0), "config");
    *input_config = first;
    for (size_t i = 0; i < 2; i++)
        if (json_is_array(json_object_get(first, keys[i])))
            return json_object_get(first, keys[i]);
    const json_t *build = json_object_get(json_object_get(root, "build_config"), "input_shape");
    return build ? build : json_object_get(json_object_get(root, "config"), "build_input_shape");
}

static snug_status read_input(const char *path, json_t *root, snug_type *out, snug_error *err) {
    const json_t *config = NULL;
    const json_t *shape = input_shape(root, &config);
    const char *class_name = text_at(json_array_get(layer_list(root), 0), "class_name");
    const char *dtype = text_at(config, "dtype");
    if (!json_is_array(shape) || json_array_size(shape) < 1 || json_array_size(shape) > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_FORMAT, "%s does not say the shape of its input; add an Input layer in Keras", path);
    *out = (snug_type){.dtype = SNUG_F32, .rank = (int)json_array_size(shape)};
    if (class_name && strcmp(class_name, "InputLayer") == 0 && dtype && strncmp(dtype, "int", 3) == 0)
        out->dtype = SNUG_I32;
    if (class_name && strcmp(class_name, "Embedding") == 0)
        out->dtype = SNUG_I32;
    out->dims[0] = -1;
    for (int i = 1; i < out->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 1)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "%s: axis %d of the input is open; give it a size in Keras", path, i);
        out->dims[i] = (int64_t)json_integer_value(dim);
    }
    return SNUG_OK;
}

static snug_status add_layers(sn_network *n, const json_t *layers, snug_error *err) {
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *class_name = text_at(layer, "class_name");
        json_t *config = json_object_get(layer, "config");
        const char *name = text_at(config, "name");
        if (!class_name || !json_is_object(config))
            return sn_fail(err, SNUG_E_FORMAT, "layer %zu has no class_name or no config", i);
        if (strcmp(class_name, "InputLayer") == 0)
            continue; /* the network's input has its type */
        fill_context c = {.layer = name ? name : class_name, .config = config};
        SNUG_TRY(sn_network_add(n, class_name, name, fill_from_json, &c, err));
        n->layers[n->n_layers - 1].trainable = !json_is_false(json_object_get(config, "trainable"));
    }
    return SNUG_OK;
}

/* Policy names other than float32 and float64 are refused: mixed precision must not be dropped silently. */
static snug_status read_dtype(sn_network *n, const json_t *root, snug_error *err) {
    const json_t *dtype = json_object_get(json_object_get(root, "config"), "dtype");
    const char *name = json_is_string(dtype) ? json_string_value(dtype) : text_at(json_object_get(dtype, "config"), "name");
    if (!name || strcmp(name, "float32") == 0)
        return SNUG_OK;
    if (strcmp(name, "float64") != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "dtype policy %s is not supported yet; use float32 or float64", name);
    sn_network_set_dtype(n, SNUG_F64);
    return SNUG_OK;
}

static snug_status read_compile(const json_t *root, sn_keras_compile *out, snug_error *err) {
    static const char *const optimizer_skip[] = {"name", "ema_momentum", "is_legacy_optimizer", "jit_compile", NULL};
    static const char *const loss_skip[] = {"name", "reduction", "fn", "axis", "dtype", NULL};
    const json_t *c = json_object_get(root, "compile_config");
    const json_t *optimizer = json_object_get(c, "optimizer"), *loss = json_object_get(c, "loss");
    const json_t *metrics = json_object_get(c, "metrics");
    size_t n = 0;
    *out = (sn_keras_compile){{0}, {0}, {0}};
    bool ok = !optimizer || json_is_null(optimizer) ||
              object_text(optimizer, optimizer_skip, out->optimizer, sizeof out->optimizer);
    ok = ok && (!loss || json_is_null(loss) || object_text(loss, loss_skip, out->loss, sizeof out->loss));
    for (size_t i = 0; i < json_array_size(metrics) && ok; i++) {
        char name[64];
        ok = object_text(json_array_get(metrics, i), loss_skip, name, sizeof name) && n < sizeof out->metrics;
        if (ok)
            n += (size_t)snprintf(out->metrics + n, sizeof out->metrics - n, "%s%s", i ? "," : "", name);
    }
    if (!ok)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the compile settings in the file are of a kind Snug does not read yet; "
                                                "save the model without compile, and give --optimizer, --loss, --metrics");
    return SNUG_OK;
}

static snug_status read_model(snug_engine *e, const char *path, json_t *root, sn_network **out,
                              sn_keras_compile *compile, snug_error *err) {
    const char *class_name = text_at(root, "class_name");
    const char *name = text_at(json_object_get(root, "config"), "name");
    sn_network *n = NULL;
    snug_type input;
    if (!class_name)
        return sn_fail(err, SNUG_E_FORMAT, "%s is JSON, but not a Keras model: it has no class_name", path);
    if (strcmp(class_name, "Sequential") != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s is a %s model; only Sequential is built yet", path, class_name);
    SNUG_TRY(read_input(path, root, &input, err));
    SNUG_TRY(read_compile(root, compile, err));
    SNUG_TRY(sn_network_create(e, name ? name : "sequential", &input, &n, err));
    snug_status status = read_dtype(n, root, err);
    if (status == SNUG_OK)
        status = add_layers(n, layer_list(root), err);
    if (status != SNUG_OK) {
        sn_network_destroy(n);
        return status;
    }
    *out = n;
    return SNUG_OK;
}

static snug_status parse_json(const char *path, const char *text, size_t n, json_t **out, snug_error *err) {
    json_error_t where;
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (!*out)
        return sn_fail(err, SNUG_E_FORMAT, "%s is not valid JSON: line %d, column %d: %s", path, where.line,
                       where.column, where.text);
    return SNUG_OK;
}

snug_status sn_keras_load(snug_engine *e, const char *path, sn_network **out, sn_keras_compile *compile,
                          snug_error *err) {
    sn_file f = {.fd = -1};
    void *text = NULL;
    json_t *root = NULL;
    SNUG_TRY(sn_file_open(&f, sn_engine_io(e), path, err));
    const size_t n = (size_t)f.size;
    snug_status status = f.size > MAX_FILE_BYTES
                             ? sn_fail(err, SNUG_E_FORMAT, "%s has %zu bytes; a model JSON has at most 64 MiB", path, n)
                             : sn_alloc(e, SN_MEM_MODEL, n, &text, err);
    if (status == SNUG_OK)
        status = sn_file_read(&f, text, n, 0, err);
    sn_file_close(&f);
    if (status == SNUG_OK)
        status = parse_json(path, text, n, &root, err);
    sn_free(e, SN_MEM_MODEL, text, text ? n : 0);
    if (status == SNUG_OK)
        status = read_model(e, path, root, out, compile, err);
    json_decref(root);
    return status;
}
