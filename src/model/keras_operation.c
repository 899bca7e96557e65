/* keras_operation.c: see keras_operation.h.
 *
 * Keras 3 keeps an operation's settings (axis, newshape) in its configuration and its operands in
 * the call; tf.keras 2 has the function's name in the configuration and all else as keywords of the
 * call. Both become the arguments of a row of the function table, by their names in its signature:
 * what is given in order takes the places that no configuration names. A setting that the row does
 * not have is refused by name unless its value changes nothing. */
#include "model/keras_operation.h"

#include "base/setting_text.h"
#include "base/size.h"
#include "model/keras_value.h"
#include "nn/layer_call.h"
#include "nn/operation.h"

#include <string.h>

bool sn_keras_is_operation(const json_t *layer) {
    static const char place[] = "keras.src.ops.";
    const char *module = sn_keras_text(layer, "module");
    const char *class_name = sn_keras_text(layer, "class_name");
    return (module && strncmp(module, place, sizeof place - 1) == 0) ||
           (class_name &&
            (strcmp(class_name, "TFOpLambda") == 0 || strcmp(class_name, "SlicingOpLambda") == 0));
}

/* What is being filled; lists, texts and arrays go to the network's zone. */
typedef struct {
    sn_operation *call;
    sn_network *network;
    const sn_keras_node *node;
    const char *signature;
    bool is_item;               /* x[...] */
    bool given[SN_FN_MAX_ARGS]; /* whether something names the argument */
    bool used[SN_MAX_IN];       /* edges of the node that an argument has */
} reader;

/* --- which row -------------------------------------------------------------------------------- */
/* Classes and functions that are called otherwise in the table. */
static const struct {
    const char *name, *row;
} other_names[] = {
    {"getitem", "tf.strided_slice"},
    {"converttotensor", "tf.identity"},
    {"batchnorm", "keras.ops.batch_normalization"},
    {"layernorm", "keras.ops.layer_normalization"},
    {"rmsnorm", "keras.ops.rms_normalization"},
    {"addv2", "tf.add"},
    {"sub", "tf.subtract"},
    {"mul", "tf.multiply"},
    {"div", "tf.divide"},
    {"neg", "tf.negative"},
    {"batchmatmul", "tf.matmul"},
    {"reversev2", "tf.reverse"},
    {"padv2", "tf.pad"},
    {"mirrorpad", "tf.pad"},
    {"wherev2", "tf.where"},
};

/* The first row of names that begin with `place` and end with this name, case and underscores
 * aside. */
static bool find_in(const char *place, const char *name, int *function) {
    const size_t n = strlen(place);
    char word[96];
    for (int i = 0; i < snug_function_count(); i++)
        for (const char *at = snug_function_at(i)->names; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");
            if (length < sizeof word && strncmp(at, place, n) == 0) {
                memcpy(word, at, length);
                word[length] = 0;
                if (sn_same_name(strrchr(word, '.') + 1, name)) {
                    *function = i;
                    return true;
                }
            }
            at += length;
        }
    return false;
}

static bool find_row(const char *path, bool is_old, int *function) {
    const char *const dot = strrchr(path, '.'), *const name = dot ? dot + 1 : path;
    char full[96];
    if (is_old && strlen(path) + 4 <= sizeof full) {
        memcpy(full, "tf.", 3);
        strcpy(full + 3, path);
        if (snug_function_find(full, function))
            return true;
    }
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (sn_same_name(other_names[i].name, name))
            return snug_function_find(other_names[i].row, function) != 0;
    return (is_old && find_in("tf.", name, function)) || find_in("keras.ops.", name, function) ||
           find_in("keras.activations.", name, function);
}

/* --- values ----------------------------------------------------------------------------------- */
static snug_status refuse(const char *key, const json_t *value, snug_error *err) {
    char text[100];
    return sn_fail(err, SNUG_E_UNSUPPORTED, "%.40s = %s is not supported in an operation", key,
                   sn_keras_show(value, text, sizeof text));
}

/* The next tensor in order (role NULL) or of this keyword, by its place among the layer's
 * inputs. */
static snug_status read_tensor(reader *r, const char *role, snug_argument *out, snug_error *err) {
    int slot = 0;
    for (int k = 0; r->node && k < r->node->n_in; k++) {
        const char *const has = r->node->in[k].role;
        const bool is_mask = sn_role_is_mask(has),
                   fits = role ? has && strcmp(has, role) == 0 : !has;
        if (fits && !r->used[k]) {
            r->used[k] = true;
            *out = (snug_argument){.kind = SNUG_ARG_SLOT,
                                   .integer = is_mask ? SN_OPERATION_MASK : slot};
            return SNUG_OK;
        }
        slot += !is_mask;
    }
    return sn_fail(err, SNUG_E_FORMAT, "a tensor of the call is not among its inputs");
}

/* The extents of [[1, 2], [3, 4]], by its first entries. */
static bool measure_array(sn_operation *o, const json_t *value, int64_t *n) {
    *n = 1;
    for (o->rank = 0; json_is_array(value); value = json_array_get(value, 0)) {
        const int64_t extent = (int64_t)json_array_size(value);
        if (o->rank == SNUG_MAX_RANK || extent == 0 || !sn_i64_mul(*n, extent, n))
            return false;
        o->dims[o->rank++] = extent;
    }
    return json_is_number(value);
}

/* Its numbers in order from *at on, and whether it has those extents all over. */
static bool copy_array(sn_operation *o, const json_t *value, int depth, double **at) {
    if (depth == o->rank) {
        o->whole = o->whole && json_is_integer(value);
        *(*at)++ = json_number_value(value);
        return json_is_number(value);
    }
    bool fits = (int64_t)json_array_size(value) == o->dims[depth];
    for (size_t i = 0; fits && i < json_array_size(value); i++)
        fits = copy_array(o, json_array_get(value, i), depth + 1, at);
    return fits;
}

/* An array stands as lists in tf.keras 2, as {"class_name": "__numpy__"} or "__tensor__" in
 * Keras 3. */
static snug_status read_array(reader *r, char kind, const json_t *value, snug_argument *out,
                              snug_error *err) {
    sn_operation *const o = r->call;
    const json_t *const inside = json_object_get(json_object_get(value, "config"), "value");
    const json_t *const list = inside ? inside : value;
    int64_t n;
    size_t bytes;
    void *numbers;
    if (json_is_number(list)) {
        *out = (snug_argument){.kind = SNUG_ARG_REAL, .real = json_number_value(list)};
        return SNUG_OK;
    }
    if (o->array.n > 0 || !measure_array(o, list, &n) ||
        !sn_size_mul((size_t)n, sizeof(double), &bytes))
        return refuse("an operand", value, err);
    SNUG_TRY(sn_zone_alloc(r->network->zone, bytes, &numbers, err));
    double *at = numbers;
    o->whole = kind == 'O';
    if (!copy_array(o, list, 0, &at))
        return refuse("an operand", value, err);
    o->array = (sn_conf_array){n, numbers};
    *out = (snug_argument){.kind = SNUG_ARG_SLOT, .integer = SN_OPERATION_ARRAY};
    return SNUG_OK;
}

static bool is_float(const char *dtype, snug_dtype *out) {
    *out = SNUG_F32;
    return strcmp(dtype, "float") == 0 ||
           (sn_dtype_of_word(dtype, strlen(dtype), out) && sn_dtype_is_float(*out));
}

/* In a network of f64 every kind of float is that (nn/layers_operation.c). */
static snug_status read_text(reader *r, char kind, const char *text, snug_argument *out,
                             snug_error *err) {
    snug_dtype dtype;
    if (kind == 'D' && is_float(text, &dtype)) {
        *out = (snug_argument){.kind = SNUG_ARG_DTYPE, .dtype = dtype};
        return SNUG_OK;
    }
    out->kind = SNUG_ARG_TEXT;
    return sn_zone_text(r->network->zone, text, &out->text, err);
}

static snug_status read_value(reader *r, const sn_fn_entry *entry, const char *role,
                              const json_t *value, snug_argument *out, snug_error *err);

static snug_status read_list(reader *r, const sn_fn_entry *entry, const char *role,
                             const json_t *value, snug_argument *out, snug_error *err) {
    const size_t n = json_array_size(value);
    void *block;
    if (n > SN_FN_MAX_ITEMS)
        return refuse("a list", value, err);
    SNUG_TRY(sn_zone_alloc(r->network->zone, (n + 1) * sizeof(snug_argument), &block, err));
    snug_argument *const items = block;
    const sn_fn_entry one = {
        .name = entry->name, .n = entry->n, .kind = entry->kind == 'V' ? 'T' : entry->kind};
    for (size_t i = 0; i < n; i++)
        SNUG_TRY(read_value(r, &one, role, json_array_get(value, i), &items[i], err));
    *out = (snug_argument){.kind = SNUG_ARG_LIST};
    out->list.items = items;
    out->list.n = (int)n;
    return SNUG_OK;
}

static snug_status refuse_at(const sn_fn_entry *entry, const json_t *value, snug_error *err) {
    char name[48];
    const size_t n = (size_t)entry->n < sizeof name ? (size_t)entry->n : sizeof name - 1;
    memcpy(name, entry->name, n);
    name[n] = 0;
    return refuse(name, value, err);
}

/* As the kind of the argument takes it: in the place of a tensor a list of numbers is an array. */
static snug_status read_value(reader *r, const sn_fn_entry *entry, const char *role,
                              const json_t *value, snug_argument *out, snug_error *err) {
    const char kind = entry->kind;
    const bool tensor = strchr("TOWMQV", kind) != NULL, holds = sn_keras_holds_tensor(value);
    const char *const text = kind == 'D' ? sn_keras_policy(value) : json_string_value(value);
    *out = (snug_argument){.kind = SNUG_ARG_NONE};
    if (holds && !tensor)
        return refuse_at(entry, value, err);
    if (json_is_null(value))
        return SNUG_OK;
    if (sn_keras_is_tensor(value))
        return read_tensor(r, role, out, err);
    if (text)
        return read_text(r, kind, text, out, err);
    if (json_is_array(value) && (!tensor || kind == 'V' || holds))
        return read_list(r, entry, role, value, out, err);
    if (tensor && (json_is_array(value) || json_is_object(value)))
        return read_array(r, kind, value, out, err);
    if (json_is_boolean(value))
        *out = (snug_argument){.kind = SNUG_ARG_BOOL, .integer = json_is_true(value)};
    else if (json_is_integer(value))
        *out = (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = json_integer_value(value)};
    else if (json_is_real(value))
        *out = (snug_argument){.kind = SNUG_ARG_REAL, .real = json_real_value(value)};
    else
        return refuse_at(entry, value, err);
    return SNUG_OK;
}

/* --- arguments -------------------------------------------------------------------------------- */
static void set_at(reader *r, int place, snug_argument value) {
    r->call->args[place] = value;
    r->given[place] = true;
    r->call->n_args = place >= r->call->n_args ? place + 1 : r->call->n_args;
}

/* The place of a name in the signature and its entry, or -1. */
static int place_of(const reader *r, const char *name, sn_fn_entry *e) {
    for (int i = 0; i < SN_FN_MAX_ARGS && sn_signature_at(r->signature, i, e); i++)
        if ((size_t)e->n == strlen(name) && strncmp(e->name, name, (size_t)e->n) == 0)
            return i;
    return -1;
}

static void set_named(reader *r, const char *name, snug_argument value) {
    sn_fn_entry e;
    const int place = place_of(r, name, &e);
    if (place >= 0)
        set_at(r, place, value);
}

/* --- the brackets of x[...] ------------------------------------------------------------------- */
/* As tf.strided_slice takes them. */
typedef struct {
    snug_argument begin[SN_FN_MAX_ITEMS], end[SN_FN_MAX_ITEMS], strides[SN_FN_MAX_ITEMS];
    int n;
    int64_t begins, ends, ellipsis, new_axes, shrinks; /* masks: bit i is of entry i */
} brackets;

/* *mask says that it is not given. */
static snug_status slice_part(const json_t *slice, const char *key, int i, snug_argument *out,
                              int64_t *mask, snug_error *err) {
    const json_t *const value = json_object_get(slice, key);
    if (!value || json_is_null(value))
        *mask |= (int64_t)1 << i;
    else if (json_is_integer(value))
        out->integer = json_integer_value(value);
    else
        return refuse(key, value, err);
    return SNUG_OK;
}

static snug_status add_item(brackets *b, const json_t *item, snug_error *err) {
    const char *const class_name = sn_keras_text(item, "class_name");
    const int i = b->n;
    int64_t no_step = 0;
    if (i == 60) /* masks have 63 bits */
        return refuse("a key", item, err);
    b->begin[i] = b->end[i] = (snug_argument){.kind = SNUG_ARG_INTEGER};
    b->strides[i] = (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = 1};
    if (json_is_null(item))
        b->new_axes |= (int64_t)1 << i;
    else if (class_name && strcmp(class_name, "__ellipsis__") == 0)
        b->ellipsis |= (int64_t)1 << i;
    else if (json_is_integer(item)) {
        b->begin[i].integer = json_integer_value(item);
        b->shrinks |= (int64_t)1 << i;
    } else if (json_is_object(item) && (!class_name || strcmp(class_name, "__slice__") == 0)) {
        const json_t *const slice = class_name ? json_object_get(item, "config") : item;
        SNUG_TRY(slice_part(slice, "start", i, &b->begin[i], &b->begins, err));
        SNUG_TRY(slice_part(slice, "stop", i, &b->end[i], &b->ends, err));
        SNUG_TRY(slice_part(slice, "step", i, &b->strides[i], &no_step, err));
    } else
        return refuse("a key", item, err);
    b->n++;
    return SNUG_OK;
}

static snug_status keep_items(reader *r, const char *name, const snug_argument *items, int n,
                              snug_error *err) {
    void *block;
    SNUG_TRY(sn_zone_alloc(r->network->zone, (size_t)(n + 1) * sizeof *items, &block, err));
    memcpy(block, items, (size_t)n * sizeof *items);
    snug_argument list = {.kind = SNUG_ARG_LIST};
    list.list.items = block;
    list.list.n = n;
    set_named(r, name, list);
    return SNUG_OK;
}

static snug_status read_key(reader *r, const json_t *key, snug_error *err) {
    brackets b = {.n = 0};
    for (size_t i = 0; json_is_array(key) && i < json_array_size(key); i++)
        SNUG_TRY(add_item(&b, json_array_get(key, i), err));
    if (!json_is_array(key))
        SNUG_TRY(add_item(&b, key, err));
    SNUG_TRY(keep_items(r, "begin", b.begin, b.n, err));
    SNUG_TRY(keep_items(r, "end", b.end, b.n, err));
    SNUG_TRY(keep_items(r, "strides", b.strides, b.n, err));
    const struct {
        const char *name;
        int64_t mask;
    } masks[] = {{"begin_mask", b.begins},
                 {"end_mask", b.ends},
                 {"ellipsis_mask", b.ellipsis},
                 {"new_axis_mask", b.new_axes},
                 {"shrink_axis_mask", b.shrinks}};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        set_named(r, masks[i].name,
                  (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = masks[i].mask});
    return SNUG_OK;
}

/* --- what a node gives ------------------------------------------------------------------------ */
/* Settings that rows need not have: names, and values that change nothing. */
static bool is_inert(const char *key, const json_t *value) {
    static const sn_keras_inert list[] = {
        {"name", "*"},
        {"trainable", "*"},
        {"function", "*"},
        {"dtype", "*"},
        {"fill_value", "*"}, /* of a border that is not asked for */
        {"sorted", "*"},
        {"fill_mode", "constant"},
        {"data_format", "channels_last"},
        {"dilation_rate", "1"},
        {NULL, NULL}};
    return json_is_false(value) || sn_keras_is_inert(list, key, value);
}

static bool is_key(const char *name) {
    return strcmp(name, "slice_spec") == 0 || strcmp(name, "key") == 0;
}

/* Of the configuration, or keywords of the call. */
static snug_status read_settings(reader *r, json_t *object, bool is_call, snug_error *err) {
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *const key = json_object_iter_key(it);
        const json_t *const value = json_object_iter_value(it);
        const bool renamed = strcmp(key, "keep_dims") == 0;
        snug_argument read;
        sn_fn_entry e;
        const int place = place_of(r, renamed ? "keepdims" : key, &e);
        if (r->is_item && is_key(key)) {
            SNUG_TRY(read_key(r, value, err));
            continue;
        }
        if (place < 0 && is_inert(key, value))
            continue;
        if (place < 0 || (!is_call && sn_keras_holds_tensor(value)))
            return refuse(key, value, err);
        SNUG_TRY(read_value(r, &e, is_call ? key : NULL, value, &read, err));
        set_at(r, place, read);
    }
    return SNUG_OK;
}

/* All further arguments of the call as one list. */
static snug_status read_rest(reader *r, const sn_fn_entry *entry, int first, snug_argument *out,
                             snug_error *err) {
    const sn_fn_entry one = {.name = entry->name, .n = entry->n, .kind = 'T'};
    const int n = r->node->n_args - first;
    void *block;
    SNUG_TRY(sn_zone_alloc(r->network->zone, (size_t)n * sizeof(snug_argument), &block, err));
    *out = (snug_argument){.kind = SNUG_ARG_LIST};
    snug_argument *const items = block;
    for (int i = 0; i < n; i++)
        SNUG_TRY(read_value(r, &one, NULL, r->node->args[first + i], &items[i], err));
    out->list.items = items;
    out->list.n = n;
    return SNUG_OK;
}

/* What is given in order, to the arguments that nothing names. */
static snug_status read_in_order(reader *r, snug_error *err) {
    const sn_keras_node *const node = r->node;
    int place = 0;
    for (int i = 0; i < node->n_args; i++) {
        const json_t *const value = node->args[i];
        const bool is_list = json_is_array(value) && !sn_keras_is_tensor(value);
        snug_argument read;
        sn_fn_entry e;
        if (r->is_item && i == 1) {
            SNUG_TRY(read_key(r, value, err));
            continue;
        }
        while (place < SN_FN_MAX_ARGS && r->given[place])
            place++;
        if (place == SN_FN_MAX_ARGS || !sn_signature_at(r->signature, place, &e))
            return refuse("one argument more", value, err);
        if (e.takes_rest || (e.kind == 'V' && !is_list)) {
            SNUG_TRY(read_rest(r, &e, i, &read, err));
            i = node->n_args;
        } else {
            SNUG_TRY(read_value(r, &e, NULL, value, &read, err));
        }
        set_at(r, place, read);
    }
    return SNUG_OK;
}

/* Values of a tensor decide a shape only where they can be read: never here. */
static snug_status check_values(const reader *r, const sn_fn_entry *e, int i, snug_error *err) {
    static const char *const counts[] = {"num_segments", "maxlen", "num_classes"};
    const bool chooses = i == 0 && r->given[1] && r->call->args[1].kind != SNUG_ARG_NONE;
    sn_fn_entry other;
    bool counted = false;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const int place = place_of(r, counts[k], &other);
        counted = counted || (place >= 0 && r->call->args[place].kind != SNUG_ARG_NONE);
    }
    if (e->kind == 'Q' || (e->kind == 'W' && !chooses) || (e->kind == 'M' && !counted))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "the values of %.*s decide the shape of the result, which a model must know",
                       e->n, e->name);
    return SNUG_OK;
}

static snug_status check_arguments(const reader *r, snug_error *err) {
    sn_fn_entry e;
    for (int i = 0; i < SN_FN_MAX_ARGS && sn_signature_at(r->signature, i, &e); i++) {
        const bool given = i < r->call->n_args && r->call->args[i].kind != SNUG_ARG_NONE;
        if (!given && !e.has_default)
            return sn_fail(err, SNUG_E_INVALID, "it is called without %.*s", e.n, e.name);
        if (given)
            SNUG_TRY(check_values(r, &e, i, err));
    }
    return SNUG_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */
/* "Add"; or "math.add" in tf.keras 2. */
static const char *function_path(const json_t *layer, bool *is_old) {
    const char *const function = sn_keras_text(json_object_get(layer, "config"), "function");
    *is_old = function != NULL;
    return function ? function : sn_keras_text(layer, "class_name");
}

static snug_status read_call(reader *r, const json_t *layer, bool is_old, snug_error *err) {
    if (!is_old)
        SNUG_TRY(read_settings(r, json_object_get(layer, "config"), false, err));
    if (r->node)
        SNUG_TRY(read_in_order(r, err));
    if (r->node)
        SNUG_TRY(read_settings(r, r->node->kwargs, true, err));
    return check_arguments(r, err);
}

snug_status sn_keras_operation_fill(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                    snug_error *err) {
    (void)cls;
    const sn_keras_operation *const o = ctx;
    sn_conf_operation *const c = conf;
    bool is_old;
    const char *const path = function_path(o->layer, &is_old), *const dot = strrchr(path, '.'),
                      *const name = dot ? dot + 1 : path;
    int function;
    void *block;
    if (!sn_text_copy(c->function.text, sizeof c->function.text, name) ||
        !find_row(path, is_old, &function))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "operation '%.60s' is not known; it would need a row in functions.def",
                       name);
    SNUG_TRY(sn_zone_alloc(n->zone, sizeof(sn_operation), &block, err));
    sn_operation *const call = block;
    *call = (sn_operation){.function = function};
    c->call = call;
    reader r = {.call = call,
                .network = n,
                .node = o->node,
                .signature = snug_function_at(function)->signature,
                .is_item = sn_same_name(name, "getitem")};
    return read_call(&r, o->layer, is_old, err);
}
