/* keras_operation.c: see keras_operation.h.
 *
 * Keras 3 keeps an operation's settings (axis, newshape) in its configuration and its operands in
 * the call; tf.keras 2 has the function's name in the configuration and all else as keywords of the
 * call. Both are read into one form, sn_conf_operation: numbers among the operands by their place,
 * axes, a shape, a key of brackets. A setting that is not listed here is refused by name. */
#include "model/keras_operation.h"

#include "base/size.h"
#include "model/keras_value.h"

#include <string.h>

bool sn_keras_is_operation(const json_t *layer) {
    static const char place[] = "keras.src.ops.";
    const char *module = sn_keras_text(layer, "module");
    const char *class_name = sn_keras_text(layer, "class_name");
    return (module && strncmp(module, place, sizeof place - 1) == 0) ||
           (class_name &&
            (strcmp(class_name, "TFOpLambda") == 0 || strcmp(class_name, "SlicingOpLambda") == 0));
}

/* What is being filled; arrays go to the network's zone. */
typedef struct {
    sn_conf_operation *conf;
    sn_network *network;
} reader;

/* --- values ----------------------------------------------------------------------------------- */
static snug_status refuse(const char *key, const json_t *value, snug_error *err) {
    char text[100];
    return sn_fail(err, SNUG_E_UNSUPPORTED, "%.40s = %s is not supported in an operation", key,
                   sn_keras_show(value, text, sizeof text));
}

/* Integers in any lists around them; null is -1, an open extent. */
static snug_status read_list(const char *key, const json_t *value, int64_t *list, int64_t *n,
                             snug_error *err) {
    for (size_t i = 0; i < json_array_size(value); i++)
        SNUG_TRY(read_list(key, json_array_get(value, i), list, n, err));
    if (json_is_array(value))
        return SNUG_OK;
    if (*n == SN_OPERATION_LIST || !(json_is_integer(value) || json_is_null(value)))
        return refuse(key, value, err);
    list[(*n)++] = json_is_null(value) ? -1 : (int64_t)json_integer_value(value);
    return SNUG_OK;
}

/* The extents of [[1, 2], [3, 4]], by its first entries. */
static bool measure_array(sn_conf_operation *conf, const json_t *value, int64_t *n) {
    *n = 1;
    for (conf->array_rank = 0; json_is_array(value); value = json_array_get(value, 0)) {
        const int64_t extent = (int64_t)json_array_size(value);
        if (conf->array_rank == SNUG_MAX_RANK || extent == 0 || !sn_i64_mul(*n, extent, n))
            return false;
        conf->array_dims[conf->array_rank++] = extent;
    }
    return json_is_number(value);
}

/* Its numbers in order from *at on, and whether it has those extents all over. */
static bool copy_array(const sn_conf_operation *conf, const json_t *value, int64_t depth,
                       double **at) {
    if (depth == conf->array_rank) {
        *(*at)++ = json_number_value(value);
        return json_is_number(value);
    }
    bool fits = (int64_t)json_array_size(value) == conf->array_dims[depth];
    for (size_t i = 0; fits && i < json_array_size(value); i++)
        fits = copy_array(conf, json_array_get(value, i), depth + 1, at);
    return fits;
}

/* An array stands as lists in tf.keras 2, as {"class_name": "__numpy__"} or "__tensor__" in
 * Keras 3. */
static snug_status add_array(reader *r, int place, const json_t *value, snug_error *err) {
    sn_conf_operation *const conf = r->conf;
    const json_t *const inside = json_object_get(json_object_get(value, "config"), "value");
    const json_t *const list = inside ? inside : value;
    int64_t n;
    size_t bytes;
    void *numbers;
    if (conf->array.n > 0 || !measure_array(conf, list, &n) ||
        !sn_size_mul((size_t)n, sizeof(double), &bytes))
        return refuse("an operand", value, err);
    SNUG_TRY(sn_zone_alloc(r->network->zone, bytes, &numbers, err));
    double *at = numbers;
    if (!copy_array(conf, list, 0, &at))
        return refuse("an operand", value, err);
    conf->array = (sn_conf_array){n, numbers};
    conf->array_at = place;
    conf->whole = 0;
    return SNUG_OK;
}

static snug_status add_number(reader *r, int place, const json_t *value, snug_error *err) {
    sn_conf_operation *const conf = r->conf;
    if (json_is_array(value) || json_is_object(value))
        return add_array(r, place, value, err);
    if (!json_is_number(value) || conf->n_numbers == 2)
        return refuse("an operand", value, err);
    *(conf->n_numbers ? &conf->second : &conf->first) = json_number_value(value);
    *(conf->n_numbers ? &conf->second_given : &conf->first_given) = 1;
    conf->whole &= json_is_integer(value);
    conf->numbers |= (int64_t)1 << place;
    conf->n_numbers++;
    return SNUG_OK;
}

/* --- the brackets of x[...] ------------------------------------------------------------------- */
static snug_status slice_part(const json_t *slice, const char *key, int64_t *out, snug_error *err) {
    const json_t *value = json_object_get(slice, key);
    *out = SN_ITEM_OPEN;
    if (!value || json_is_null(value))
        return SNUG_OK;
    if (!json_is_integer(value))
        return refuse(key, value, err);
    *out = (int64_t)json_integer_value(value);
    return SNUG_OK;
}

static snug_status add_item(sn_conf_operation *conf, const json_t *item, snug_error *err) {
    const char *class_name = sn_keras_text(item, "class_name");
    const int64_t i = conf->n_items;
    if (i == SN_OPERATION_LIST)
        return refuse("a key", item, err);
    if (json_is_null(item))
        conf->item[i] = SN_ITEM_NEW_AXIS;
    else if (class_name && strcmp(class_name, "__ellipsis__") == 0)
        conf->item[i] = SN_ITEM_ELLIPSIS;
    else if (json_is_integer(item)) {
        conf->item[i] = SN_ITEM_INDEX;
        conf->start[i] = (int64_t)json_integer_value(item);
    } else if (json_is_object(item) && (!class_name || strcmp(class_name, "__slice__") == 0)) {
        const json_t *slice = class_name ? json_object_get(item, "config") : item;
        conf->item[i] = SN_ITEM_SLICE;
        SNUG_TRY(slice_part(slice, "start", &conf->start[i], err));
        SNUG_TRY(slice_part(slice, "stop", &conf->stop[i], err));
        SNUG_TRY(slice_part(slice, "step", &conf->step[i], err));
    } else
        return refuse("a key", item, err);
    conf->n_items++;
    return SNUG_OK;
}

static snug_status read_key(sn_conf_operation *conf, const json_t *key, snug_error *err) {
    if (!json_is_array(key))
        return add_item(conf, key, err);
    for (size_t i = 0; i < json_array_size(key); i++)
        SNUG_TRY(add_item(conf, json_array_get(key, i), err));
    return SNUG_OK;
}

/* --- settings by name ------------------------------------------------------------------------- */
typedef enum {
    INERT,
    PLAIN, /* without effect while it is false, 1 or constant */
    AXES,
    SHAPE,
    STRIDES,
    FLAG,
    OTHER_FLAG,
    FIRST,
    SECOND,
    THIRD,
    OPERAND,
    BIAS, /* an array that is operand 3 */
    DTYPE,
    MODE,
    FORMAT,
    KEY
} setting_kind;
static const struct {
    const char *key;
    setting_kind kind;
} settings[] = {
    {"name", INERT},
    {"trainable", INERT},
    {"function", INERT},
    {"axis", AXES},
    {"axes", AXES},
    {"perm", AXES},
    {"axis1", AXES},
    {"axis2", AXES},
    {"source", AXES},
    {"destination", SHAPE},
    {"newshape", SHAPE},
    {"shape", SHAPE},
    {"indices_or_sections", SHAPE},
    {"num_or_size_splits", SHAPE},
    {"repeats", SHAPE},
    {"multiples", SHAPE},
    {"pad_width", SHAPE},
    {"paddings", SHAPE},
    {"num", SHAPE},
    {"num_classes", SHAPE},
    {"depth", SHAPE},
    {"keepdims", FLAG},
    {"keep_dims", FLAG},
    {"approximate", FLAG},
    {"transpose_b", FLAG},
    {"transpose_a", OTHER_FLAG},
    {"adjoint_a", PLAIN},
    {"adjoint_b", PLAIN},
    {"a_is_sparse", PLAIN},
    {"b_is_sparse", PLAIN},
    {"x_min", FIRST},
    {"clip_value_min", FIRST},
    {"negative_slope", FIRST},
    {"alpha", FIRST},
    {"threshold", FIRST},
    {"default_value", SECOND},
    {"decimals", FIRST},
    {"ord", FIRST},
    {"order", FIRST},
    {"epsilon", SECOND},
    {"sorted", INERT},
    {"k", SHAPE},
    {"n", SHAPE},
    {"offset", SHAPE},
    {"pool_size", SHAPE},
    {"strides", STRIDES},
    {"dilation_rate", PLAIN},
    {"padding", MODE},
    {"method", MODE},
    {"q", OPERAND},
    {"axisa", AXES},
    {"axisb", AXES},
    {"axisc", AXES},
    {"nan", FIRST},
    {"posinf", SECOND},
    {"neginf", THIRD},
    {"rtol", FIRST},
    {"atol", SECOND},
    {"equal_nan", FLAG},
    {"rms_scaling", PLAIN},
    {"x_max", SECOND},
    {"clip_value_max", SECOND},
    {"y", OPERAND},
    {"x2", OPERAND},
    {"bias", BIAS},
    {"b", OPERAND},
    {"dtype", DTYPE},
    {"mode", MODE},
    {"subscripts", MODE},
    {"is_causal", FLAG},
    {"scale", FIRST},
    {"interpolation", MODE},
    {"shift", SHAPE},
    {"size", SHAPE},
    {"antialias", FLAG},
    {"constant_values", FIRST},
    {"fill_value", INERT}, /* of pad_to_aspect_ratio */
    {"fill_mode", PLAIN},
    {"data_format", FORMAT},
    {"sparse", PLAIN},
    {"crop_to_aspect_ratio", PLAIN},
    {"pad_to_aspect_ratio", PLAIN},
    {"slice_spec", KEY},
    {"key", KEY},
};

/* tf.split gives sizes, keras.ops.split where the parts but the last one end. */
static snug_status sizes_to_ends(sn_conf_operation *conf, const char *key, const json_t *value,
                                 snug_error *err) {
    bool fits = conf->n_shape > 0;
    for (int64_t i = 1; i < conf->n_shape && fits; i++)
        fits = sn_i64_add(conf->shape[i], conf->shape[i - 1], &conf->shape[i]);
    if (!fits)
        return refuse(key, value, err);
    conf->n_shape--;
    return SNUG_OK;
}

static snug_status set_text(sn_conf_operation *conf, setting_kind kind, const char *key,
                            const json_t *value, snug_error *err) {
    sn_conf_text *const to = kind == MODE     ? &conf->mode
                             : kind == FORMAT ? &conf->data_format
                                              : &conf->dtype;
    const char *text = kind == DTYPE ? sn_keras_policy(value) : json_string_value(value);
    if (!text || strlen(text) >= sizeof to->text)
        return refuse(key, value, err);
    strcpy(to->text, text);
    return SNUG_OK;
}

static snug_status set_number(sn_conf_operation *conf, setting_kind kind, const char *key,
                              const json_t *value, snug_error *err) {
    double *const to = kind == FIRST ? &conf->first : kind == SECOND ? &conf->second : &conf->third;
    if (json_is_boolean(value) && (kind == FLAG || kind == OTHER_FLAG)) {
        *(kind == FLAG ? &conf->flag : &conf->other_flag) = json_is_true(value);
        return SNUG_OK;
    }
    if (!json_is_number(value) || kind == FLAG || kind == OTHER_FLAG)
        return refuse(key, value, err);
    *to = json_number_value(value);
    conf->first_given |= kind == FIRST;
    conf->second_given |= kind == SECOND;
    conf->third_given |= kind == THIRD;
    return SNUG_OK;
}

static snug_status set_kind(reader *r, setting_kind kind, const char *key, const json_t *value,
                            snug_error *err) {
    sn_conf_operation *const conf = r->conf;
    if (kind == AXES)
        return read_list(key, value, conf->axes, &conf->n_axes, err);
    if (kind == STRIDES)
        return read_list(key, value, conf->strides, &conf->n_strides, err);
    if (kind == SHAPE) {
        conf->is_list = json_is_array(value);
        SNUG_TRY(read_list(key, value, conf->shape, &conf->n_shape, err));
        if (strcmp(key, "num_or_size_splits") == 0 && conf->is_list)
            return sizes_to_ends(conf, key, value, err);
        return SNUG_OK;
    }
    if (kind == KEY)
        return read_key(conf, value, err);
    if (kind == OPERAND)
        return add_number(r, 1, value, err);
    if (kind == BIAS)
        return add_array(r, 3, value, err);
    if (kind == PLAIN) {
        const char *text = json_string_value(value);
        const bool plain = json_is_false(value) || (text && strcmp(text, "constant") == 0);
        return plain || (json_is_integer(value) && json_integer_value(value) == 1)
                   ? SNUG_OK
                   : refuse(key, value, err);
    }
    if (kind == MODE || kind == FORMAT || kind == DTYPE)
        return set_text(conf, kind, key, value, err);
    return kind == INERT ? SNUG_OK : set_number(conf, kind, key, value, err);
}

/* Tensors among the keywords of a call are read with its edges; a setting cannot be one. */
static snug_status read_settings(reader *r, json_t *object, bool is_call, snug_error *err) {
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        size_t i = 0;
        if ((is_call && sn_keras_holds_tensor(value)) ||
            (json_is_null(value) && strcmp(key, "slice_spec") != 0))
            continue;
        while (i < sizeof settings / sizeof *settings && strcmp(settings[i].key, key) != 0)
            i++;
        if (i == sizeof settings / sizeof *settings)
            return refuse(key, value, err);
        SNUG_TRY(set_kind(r, settings[i].kind, key, value, err));
    }
    return SNUG_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */
/* "Add"; or the last part of "math.add" in tf.keras 2. */
static const char *function_name(const json_t *layer) {
    const char *class_name = sn_keras_text(layer, "class_name");
    const char *function = sn_keras_text(json_object_get(layer, "config"), "function");
    const char *dot = function ? strrchr(function, '.') : NULL;
    return dot ? dot + 1 : function ? function : class_name;
}

snug_status sn_keras_operation_fill(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                    snug_error *err) {
    (void)cls;
    const sn_keras_operation *o = ctx;
    sn_conf_operation *const c = conf;
    reader r = {c, n};
    const char *name = function_name(o->layer);
    const bool lambda = sn_keras_text(json_object_get(o->layer, "config"), "function") != NULL;
    const bool is_item = strcmp(name, "GetItem") == 0;
    if (strlen(name) >= sizeof c->function.text)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "operation '%.60s' is not known", name);
    strcpy(c->function.text, name);
    c->whole = 1;
    for (int i = 0; o->node && i < o->node->n_args; i++)
        if (o->node->args[i] && is_item && i == 1)
            SNUG_TRY(read_key(c, o->node->args[i], err));
        else if (o->node->args[i] && !json_is_null(o->node->args[i]))
            SNUG_TRY(add_number(&r, i, o->node->args[i], err));
    if (!lambda)
        SNUG_TRY(read_settings(&r, json_object_get(o->layer, "config"), false, err));
    return o->node ? read_settings(&r, o->node->kwargs, true, err) : SNUG_OK;
}
