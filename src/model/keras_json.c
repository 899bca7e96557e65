/* keras_json.c: reads what model.to_json() writes, in the dialects of Keras 3 and of tf.keras 2:
 * the file, the inputs, the dtype and the compile settings. Layers are read by keras_layers.c.
 *
 * 1. The file is read whole (at most 64 MiB) and parsed within the limits of json.h.
 * 2. Nothing in a file can name code: `module` tells layers from operations and nothing more. */
#include "model/keras_json.h"

#include "model/json.h"
#include "model/keras_graph.h"
#include "model/keras_layers.h"
#include "model/keras_operation.h"
#include "model/keras_value.h"
#include "model/text_file.h"
#include "nn/optimizer.h"

#include <stdio.h>
#include <string.h>

static const sn_keras_inert optimizer_inert[] = {
    {"name", "*"},        {"ema_momentum", "0.99"},
    {"jit_compile", "*"}, {"is_legacy_optimizer", "*"},
    {"decay", "0"},       {NULL, NULL},
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

/* --- inputs ----------------------------------------------------------------------------------- */

typedef struct {
    const json_t *root;
    const char *shapes; /* what the caller says of them, or "" */
    const json_t *layer[SN_MAX_TENSOR];
    const char *name[SN_MAX_TENSOR];
    snug_type type[SN_MAX_TENSOR];
    int n;
} model_inputs;

/* The layers that may say shapes and dtypes of the inputs. */
static snug_status find_inputs(model_inputs *in, snug_error *err) {
    in->n = 1;
    in->layer[0] = json_array_get(sn_keras_layer_list(in->root), 0);
    if (sn_keras_is_functional(in->root))
        SNUG_TRY(
            sn_keras_graph_inputs(json_object_get(in->root, "config"), in->layer, &in->n, err));
    for (int i = 0; i < in->n; i++) {
        const char *name = sn_keras_is_input(in->layer[i]) ? sn_keras_layer_name(in->layer[i]) : "";
        in->name[i] = name ? name : "";
    }
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
    return json_is_array(build)
               ? build
               : json_object_get(json_object_get(root, "config"), "build_input_shape");
}

/* The part of "a=1,2;b=3" for input i; "" when there is none. Without a name it is for all. */
static const char *given_shape(const model_inputs *in, int i) {
    const size_t n = strlen(in->name[i]);
    for (const char *at = in->shapes; *at;) {
        const size_t length = strcspn(at, ";"), name = strcspn(at, "=;");
        if (at[name] != '=')
            return at;
        if (name == n && strncmp(at, in->name[i], n) == 0)
            return at + n + 1;
        at += length + (at[length] == ';');
    }
    return "";
}

/* Axis k of the given shape, from 1; 0 when there is none. */
static int64_t given_extent(const char *shape, int k) {
    int64_t value = 0;
    for (int i = 1; i < k && *shape && *shape != ';'; i++) {
        shape += strcspn(shape, ",;");
        shape += *shape == ',';
    }
    for (; *shape >= '0' && *shape <= '9' && value < INT32_MAX; shape++)
        value = value * 10 + (*shape - '0');
    return value;
}

/* "96,96,3", for at most `most` axes. */
static bool is_shape(const char *shape, int most) {
    int n = 0;
    for (bool more = shape[0] && shape[0] != ';'; more; n++) {
        const size_t digits = strspn(shape, "0123456789");
        shape += digits;
        more = *shape == ',';
        if (digits < 1 || digits > 9 || (*shape && !more && *shape != ';'))
            return false;
        shape += more;
    }
    return n <= most;
}

static snug_status check_shape(const model_inputs *in, int i, int rank, snug_error *err) {
    const char *const shape = given_shape(in, i);
    if (is_shape(shape, rank - 1))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   "the shape '%.*s' is none of its input '%.60s', which has %d axes beside the "
                   "batch; give it like 96,96,3",
                   (int)strcspn(shape, ";"), shape, in->name[i], rank - 1);
}

static snug_status read_extent(const model_inputs *in, int i, int k, const json_t *dim,
                               int64_t *out, snug_error *err) {
    const int64_t given = given_extent(given_shape(in, i), k);
    const int64_t known = json_is_integer(dim) ? (int64_t)json_integer_value(dim) : 0;
    if (known < 1 && given < 1)
        return sn_fail_by(
            err, json_is_null(dim) ? SNUG_E_INVALID : SNUG_E_FORMAT, SNUG_CAUSE_NO_SHAPE,
            "axis %d of its input '%.60s' is open or not positive; give the shape of an "
            "example, as 96,96,3, or a size in Keras",
            k, in->name[i]);
    if (known > 0 && given > 0 && known != given)
        return sn_fail(err, SNUG_E_INVALID,
                       "axis %d of its input '%.60s' has %lld entries, the shape given says %lld",
                       k, in->name[i], (long long)known, (long long)given);
    *out = known > 0 ? known : given;
    return SNUG_OK;
}

static bool is_dtype(const char *word) {
    static const char *const begins[] = {"float", "bfloat16", "mixed_", "int",
                                         "uint",  "bool",     "string", "complex"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(word, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static snug_status read_input(model_inputs *in, int i, snug_error *err) {
    const json_t *shape = input_shape(in->root, in->layer[i]);
    const char *dtype = sn_keras_text(json_object_get(in->layer[i], "config"), "dtype");
    snug_type *const t = &in->type[i];
    if (!json_is_array(shape) || json_array_size(shape) < 1)
        return sn_fail(err, SNUG_E_FORMAT,
                       "it does not say the shape of its input; add an Input layer in Keras");
    if (json_array_size(shape) > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "its input has %zu axes; at most %d are supported",
                       json_array_size(shape), SNUG_MAX_RANK);
    if (dtype && !is_dtype(dtype))
        return sn_fail(err, SNUG_E_FORMAT, "its input '%.60s' is of dtype '%.40s', which is none",
                       in->name[i], dtype);
    *t = (snug_type){.dtype = SNUG_F32, .rank = (int)json_array_size(shape), .dims = {-1}};
    if (sn_keras_is_input(in->layer[i]) && dtype &&
        (strncmp(dtype, "int", 3) == 0 || strncmp(dtype, "uint", 4) == 0 ||
         strcmp(dtype, "bool") == 0))
        t->dtype = SNUG_I32;
    SNUG_TRY(check_shape(in, i, t->rank, err));
    for (int k = 1; k < t->rank; k++)
        SNUG_TRY(read_extent(in, i, k, json_array_get(shape, (size_t)k), &t->dims[k], err));
    return SNUG_OK;
}

static snug_status read_inputs(model_inputs *in, snug_error *err) {
    SNUG_TRY(find_inputs(in, err));
    for (int i = 0; i < in->n; i++)
        SNUG_TRY(read_input(in, i, err));
    return SNUG_OK;
}

static snug_status add_inputs(sn_network *n, const model_inputs *in, snug_error *err) {
    uint32_t tensor;
    if (sn_keras_is_functional(in->root)) /* the input of a Sequential model is no layer of it */
        SNUG_TRY(sn_zone_text(n->zone, in->name[0], &n->input_names[0], err));
    for (int i = 1; i < in->n; i++)
        SNUG_TRY(sn_network_add_input(n, in->name[i], &in->type[i], &tensor, err));
    return SNUG_OK;
}

/* --- the model -------------------------------------------------------------------------------- */

/* The model's policy, or that of its first layer that has one (older files and Functional models
 * have it there only). */
static const char *find_policy(const json_t *model) {
    const char *name = sn_keras_policy(json_object_get(json_object_get(model, "config"), "dtype"));
    const json_t *layers = sn_keras_layer_list(model);
    for (size_t i = 0; i < json_array_size(layers) && !name; i++)
        if (!sn_keras_is_input(json_array_get(layers, i)) &&
            !sn_keras_is_operation(json_array_get(layers, i))) /* cast has a dtype of its own */
            name = find_policy(json_array_get(layers, i));
    return name;
}

static snug_status read_dtype(sn_network *n, const json_t *root, snug_error *err) {
    const char *name = find_policy(root);
    sn_policy policy;
    if (!name)
        return SNUG_OK;
    SNUG_TRY(sn_policy_parse(name, &policy, err));
    return sn_network_set_policy(n, &policy, err);
}

/* --- compile settings ------------------------------------------------------------------------- */

static snug_status refuse_compile(const char *key, const json_t *value, snug_error *err) {
    char text[160];
    return sn_fail_by(err, SNUG_E_UNSUPPORTED, SNUG_CAUSE_NO_SETTINGS,
                      "its compile settings have %s = %s, which Snug does not read yet; save the "
                      "model before model.compile, and give optimizer, loss and metrics",
                      key, sn_keras_show(value, text, sizeof text));
}

/* One entry of a setting as text; a list of them with commas between. Null is "none". */
static bool print_entry(const json_t *value, const sn_keras_inert *inert, char *out, size_t size) {
    size_t n = 0;
    if (json_is_null(value))
        return (size_t)snprintf(out, size, "none") < size;
    if (json_is_number(value))
        return sn_keras_scalar(value, out, size);
    const char *class_name = sn_keras_text(value, "class_name");
    const json_t *reduction = json_object_get(json_object_get(value, "config"), "reduction");
    if (json_is_null(reduction)) /* a loss per example is no loss to train with */
        return false;
    if (class_name && strcmp(class_name, "Accuracy") == 0) /* not what the word means */
        return (size_t)snprintf(out, size, "equality:name=accuracy") < size;
    if (!json_is_array(value))
        return sn_keras_object(value, inert, out, size);
    out[0] = 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i)
            n += (size_t)snprintf(out + n, size - n, ",");
        if (n >= size || !print_entry(json_array_get(value, i), inert, out + n, size - n))
            return false;
        n += strlen(out + n);
    }
    return true;
}

/* {"a": entry, ...} as "a=entry;..." */
static bool print_by_name(json_t *object, const sn_keras_inert *inert, char *out, size_t size) {
    size_t n = 0;
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        n += (size_t)snprintf(out + n, size - n, "%s%s=", n ? ";" : "", json_object_iter_key(it));
        if (n >= size || !print_entry(json_object_iter_value(it), inert, out + n, size - n))
            return false;
        n += strlen(out + n);
    }
    return n < size;
}

/* A list with an entry per output as "entry;entry". */
static bool print_by_place(const json_t *list, const sn_keras_inert *inert, char *out,
                           size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i)
            n += (size_t)snprintf(out + n, size - n, ";");
        if (n >= size || !print_entry(json_array_get(list, i), inert, out + n, size - n))
            return false;
        n += strlen(out + n);
    }
    return n < size;
}

/* Keras takes one entry for all outputs, a list, or a dictionary by their names. */
static snug_status read_setting(const json_t *config, const char *key, uint32_t n_outputs,
                                char *out, snug_error *err) {
    json_t *value = json_object_get(config, key);
    const bool by_name = json_is_object(value) && !sn_keras_text(value, "class_name");
    const bool by_place = n_outputs > 1 && json_array_size(value) == n_outputs;
    if (!value || json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0))
        return SNUG_OK;
    const sn_keras_inert *inert = strncmp(key, "loss", 4) == 0 ? loss_inert : metric_inert;
    const bool read = by_name    ? print_by_name(value, inert, out, SN_COMPILE_TEXT)
                      : by_place ? print_by_place(value, inert, out, SN_COMPILE_TEXT)
                                 : print_entry(value, inert, out, SN_COMPILE_TEXT);
    return read ? SNUG_OK : refuse_compile(key, value, err);
}

/* What a LossScaleOptimizer wraps: where a model scales its loss it does so by Keras' defaults, and
 * with f32, f64 and bf16, which need no scale, its steps are the same. */
static snug_status unwrap(const sn_network *n, const json_t **optimizer, snug_error *err) {
    const char *class_name = sn_keras_text(*optimizer, "class_name");
    const json_t *const config = json_object_get(*optimizer, "config");
    const json_t *const first = json_object_get(config, "initial_scale"),
                        *const growth = json_object_get(config, "dynamic_growth_steps");
    if (!class_name || strcmp(class_name, "LossScaleOptimizer") != 0)
        return SNUG_OK;
    if (n->policy.compute == SNUG_F16 &&
        ((first && json_number_value(first) != SN_FIRST_LOSS_SCALE) ||
         (growth && json_number_value(growth) != SN_GROWTH_STEPS)))
        return refuse_compile("optimizer", *optimizer, err);
    *optimizer = json_object_get(config, "inner_optimizer");
    return SNUG_OK;
}

static snug_status read_compile(const json_t *root, const sn_network *n, sn_keras_compile *out,
                                snug_error *err) {
    const json_t *c = json_object_get(root, "compile_config");
    const json_t *optimizer = json_object_get(c, "optimizer");
    *out = (sn_keras_compile){{0}, {0}, {0}, {0}, {0}};
    SNUG_TRY(unwrap(n, &optimizer, err));
    if (optimizer && !json_is_null(optimizer) &&
        !sn_keras_object(optimizer, optimizer_inert, out->optimizer, sizeof out->optimizer))
        return refuse_compile("optimizer", optimizer, err);
    SNUG_TRY(read_setting(c, "loss", n->n_outputs, out->loss, err));
    SNUG_TRY(read_setting(c, "loss_weights", n->n_outputs, out->loss_weights, err));
    SNUG_TRY(read_setting(c, "metrics", n->n_outputs, out->metrics, err));
    return read_setting(c, "weighted_metrics", n->n_outputs, out->weighted_metrics, err);
}

/* --- the file --------------------------------------------------------------------------------- */

/* What is read besides the path. */
typedef struct {
    const char *path, *shapes;
    sn_keras_compile *compile;
} request;

/* What a builder calls a wrong argument is wrong in the file here: nobody typed it. */
static snug_status blame_file(snug_status status, snug_error *err) {
    if (status != SNUG_E_INVALID)
        return status;
    if (err)
        err->code = SNUG_E_FORMAT;
    return SNUG_E_FORMAT;
}

static snug_status read_model(snug_engine *e, const json_t *root, const request *q,
                              sn_network **out, snug_error *err) {
    const char *class_name = sn_keras_text(root, "class_name");
    const char *name = sn_keras_text(json_object_get(root, "config"), "name");
    sn_network *n = NULL;
    sn_keras_compile found;
    model_inputs inputs = {.root = root, .shapes = q->shapes ? q->shapes : ""};
    if (!class_name)
        return sn_fail(err, SNUG_E_FORMAT,
                       "it is JSON, but not a Keras model: it has no class_name");
    if (!sn_keras_is_sequential(root) && !sn_keras_is_functional(root))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "it is a %.40s model; Sequential and Functional ones are supported",
                       class_name);
    SNUG_TRY(read_inputs(&inputs, err));
    SNUG_TRY(sn_network_create(e, name ? name : "sequential", &inputs.type[0], &n, err));
    snug_status status = add_inputs(n, &inputs, err);
    if (status == SNUG_OK)
        status = blame_file(read_dtype(n, root, err), err);
    if (status == SNUG_OK)
        status = blame_file(sn_keras_add_layers(n, root, err), err);
    if (status == SNUG_OK)
        status = read_compile(root, n, &found, err);
    if (status != SNUG_OK) {
        sn_network_destroy(n);
        return status;
    }
    *out = n;
    *q->compile = found;
    return SNUG_OK;
}

/* Files people take for model JSON. */
static snug_status check_kind(const char *path, const char *text, size_t n, snug_error *err) {
    static const struct {
        size_t at;
        const char *mark, *is;
        snug_status code;
    } rows[] = {
        {0, "PK\x03\x04", "a .keras archive", SNUG_E_UNSUPPORTED},
        {0, "\x89HDF", "an HDF5 file", SNUG_E_UNSUPPORTED},
        {0, "\x93NUMPY", "an array (.npy), not a model", SNUG_E_FORMAT},
        {0, "\x1f\x8b", "packed with gzip, not a model", SNUG_E_FORMAT},
        {8, "{\"", "weights (safetensors), not a model", SNUG_E_FORMAT}, /* behind its length */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t length = strlen(rows[i].mark);
        if (n >= rows[i].at + length && memcmp(text + rows[i].at, rows[i].mark, length) == 0 &&
            (rows[i].at == 0 || memchr(text, 0, rows[i].at)))
            return sn_fail(err, rows[i].code,
                           "%s is %s; Snug reads the JSON of the model: open(\"model.json\", "
                           "\"w\").write(model.to_json())",
                           path, rows[i].is);
    }
    return SNUG_OK;
}

static snug_status read_text(snug_engine *e, const char *text, size_t n, const request *q,
                             sn_network **out, snug_error *err) {
    sn_json tree;
    SNUG_TRY(check_kind(q->path, text, n, err));
    SNUG_TRY(sn_json_parse(e, q->path, text, n, &tree, err));
    const snug_status status = read_model(e, tree.root, q, out, err);
    sn_json_clear(&tree);
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "%s", q->path);
}

snug_status sn_keras_load(snug_engine *e, const char *path, const char *shapes, sn_network **out,
                          sn_keras_compile *compile, snug_error *err) {
    const request q = {path, shapes, compile};
    sn_text_file f;
    SNUG_TRY(sn_text_file_read(e, path, "a model JSON", SN_MEM_MODEL, &f, err));
    const snug_status status = read_text(e, f.text, f.length, &q, out, err);
    sn_text_file_free(&f);
    return status;
}
