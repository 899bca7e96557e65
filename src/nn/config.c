/* config.c: the layer classes and the fields of their configurations, both made from layers.def,
 * and how a field is set from a number or a text. A field that was set is checked for its kind
 * here; whether the value makes sense (units > 0) is the build function's business. */
#include "nn/layer_call.h"
#include "base/setting_text.h"

#include <ctype.h>
#include <math.h>
#include <snug/layer.h>
#include <stdio.h>
#include <string.h>

#define MAX_VALUE 512 /* letters of a value, with those of the layers inside */

/* --- the tables ------------------------------------------------------------------------------- */
/* A function per class, because `conf` must name another struct in each of them. The last element
 * is a sentinel: a class may have no fields. */
#define FIELD(key, kind, n, number, text) {#key, kind, offsetof(conf, key), n, number, text},
#define INT(key, value)                   FIELD(key, SN_CONF_INT, 1, value, NULL)
#define INTS(key, n, value)               FIELD(key, SN_CONF_INTS, n, value, NULL)
#define REAL(key, value)                  FIELD(key, SN_CONF_REAL, 1, value, NULL)
#define REALS(key, most)                  FIELD(key, SN_CONF_REALS, most, SN_NO_ENTRY, NULL)
#define FLAG(key, value)                  FIELD(key, SN_CONF_FLAG, 1, value, NULL)
#define TEXT(key, value)                  FIELD(key, SN_CONF_TEXT, 1, 0, value)
#define INIT(key, value)                  FIELD(key, SN_CONF_INIT, 1, 0, value)
#define LAYER(key)                        FIELD(key, SN_CONF_LAYER, 0, 0, NULL)
#define LAYERS(key)                       FIELD(key, SN_CONF_LAYERS, 0, 0, NULL)
#define CALL(key)                         FIELD(key, SN_CONF_CALL, 0, 0, NULL)
#define SNUG_LAYER(name, snake, inputs, mask, traits, arguments, about, list)                      \
    void sn_layer_build_##snake(sn_layer_call *c);                                                 \
    static const sn_conf_field *fields_##snake(void) {                                             \
        typedef sn_conf_##snake conf;                                                              \
        static const sn_conf_field fields[] = {                                                    \
            list{NULL, SN_CONF_INT, 0 * sizeof(conf), 0, 0, NULL}};                                \
        return fields;                                                                             \
    }
#include "nn/layers.def"
#undef SNUG_LAYER
#undef INT
#undef INTS
#undef REAL
#undef REALS
#undef FLAG
#undef TEXT
#undef INIT
#undef LAYER
#undef LAYERS
#undef CALL

#define INT(key, value)     +1
#define INTS(key, n, value) +1
#define REAL(key, value)    +1
#define REALS(key, most)    +1
#define FLAG(key, value)    +1
#define TEXT(key, value)    +1
#define INIT(key, value)    +1
#define LAYER(key)          +1
#define LAYERS(key)         +1
#define CALL(key)           +1
#define ONE                 1, 1
#define TWO                 2, 2
#define SOME                1, SN_MAX_IN
#define SNUG_LAYER(name, snake, inputs, mask, traits, arguments, about, list)                      \
    {#name,                                                                                        \
     #snake,                                                                                       \
     traits,                                                                                       \
     arguments,                                                                                    \
     about,                                                                                        \
     inputs,                                                                                       \
     SN_MASK_##mask,                                                                               \
     sizeof(sn_conf_##snake),                                                                      \
     0 list,                                                                                       \
     fields_##snake,                                                                               \
     sn_layer_build_##snake},
const sn_layer_class sn_layer_classes[] = {
#include "nn/layers.def"
};
#undef SNUG_LAYER
#undef ONE
#undef TWO
#undef SOME
#undef INT
#undef INTS
#undef REAL
#undef REALS
#undef FLAG
#undef TEXT
#undef INIT
#undef LAYER
#undef LAYERS
#undef CALL
const int sn_n_layer_classes = sizeof sn_layer_classes / sizeof *sn_layer_classes;

bool sn_class_is(const sn_layer_class *cls, sn_layer_kind kind) {
    return cls == &sn_layer_classes[kind];
}

/* "Conv1D, Conv2D, Conv3D": the known names most like this one, up to five. */
static void list_near(const char *name, char *list, size_t size) {
    int n = 0;
    list[0] = 0;
    for (int distance = 0; distance < 40 && n < 5; distance++)
        for (int i = 0; i < sn_n_layer_classes && n < 5; i++)
            if (sn_text_distance(name, sn_layer_classes[i].class_name) == distance) {
                sn_text_list(list, size, sn_layer_classes[i].class_name);
                n++;
            }
}

/* What to do about layers that no row could build; NULL for others. */
static const char *remedy_for(const char *name) {
    static const char table[] = "it looks values up in a table; apply it to the data before, and "
                                "begin the model with what it gives";
    static const struct {
        const char *name, *remedy;
    } rows[] = {
        {"Lambda", "it holds Python code; write the expression with keras.ops instead"},
        {"TorchModuleWrapper", "it holds Python code; write it with Keras' layers instead"},
        {"TFSMLayer", "it holds a SavedModel; write it with Keras' layers instead"},
        {"TextVectorization", table},
        {"StringLookup", table},
        {"IntegerLookup", table},
        {"Hashing", table},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0)
            return rows[i].remedy;
    return NULL;
}

snug_status sn_layer_class_find(const char *name, const sn_layer_class **out, snug_error *err) {
    char list[300];
    for (int i = 0; i < sn_n_layer_classes; i++)
        if (strcmp(name, sn_layer_classes[i].class_name) == 0) {
            *out = &sn_layer_classes[i];
            return SNUG_OK;
        }
    const char *remedy = remedy_for(name);
    if (remedy)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "layer '%.60s' is not known: %s", name, remedy);
    list_near(name, list, sizeof list);
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "layer '%.60s' is not known; the nearest of the %d that are: %s (`snug layers` "
                   "lists all). To add it: a row in layers.def and its build function",
                   name, sn_n_layer_classes, list);
}

const sn_conf_field *sn_conf_find(const sn_layer_class *cls, const char *key) {
    for (int i = 0; i < cls->n_fields; i++)
        if (strcmp(key, cls->fields()[i].key) == 0)
            return &cls->fields()[i];
    return NULL;
}

/* --- setting ---------------------------------------------------------------------------------- */
static int64_t *ints_of(const sn_conf_field *f, void *conf) {
    return (int64_t *)((char *)conf + f->offset);
}

static snug_status set_ints(const sn_conf_field *f, void *conf, int index, double value,
                            snug_error *err) {
    if (value != floor(value) || fabs(value) > 9007199254740992.0)
        return sn_fail(err, SNUG_E_INVALID, "%s: %g is not a whole number", f->key, value);
    if (index >= f->n)
        return sn_fail(err, SNUG_E_INVALID, "%s has more than %d entries", f->key, f->n);
    int64_t *const v = ints_of(f, conf);
    const bool fills = index < 0 && f->number != SN_NO_ENTRY;
    for (int i = 0; fills && i < f->n; i++)
        v[i] = (int64_t)value;
    if (!fills)
        v[index < 0 ? 0 : index] = (int64_t)value;
    return SNUG_OK;
}

/* The layout of every REALS field. */
typedef struct {
    int64_t n;
    double v[];
} reals;

static snug_status set_reals(const sn_conf_field *f, void *conf, int index, double value,
                             snug_error *err) {
    reals *const list = (reals *)((char *)conf + f->offset);
    const int at = index < 0 ? 0 : index;
    if (at >= f->n)
        return sn_fail(err, SNUG_E_INVALID, "%s has more than %d entries", f->key, f->n);
    list->v[at] = value;
    list->n = at + 1;
    return SNUG_OK;
}

snug_status sn_conf_set_empty(const sn_conf_field *f, void *conf, snug_error *err) {
    if (f->kind != SN_CONF_REALS)
        return sn_fail(err, SNUG_E_INVALID, "%s is an empty list", f->key);
    ((reals *)((char *)conf + f->offset))->n = SN_EMPTY_LIST;
    return SNUG_OK;
}

static snug_status put_number(const sn_conf_field *f, void *conf, int index, double value,
                              snug_error *err) {
    if (!isfinite(value))
        return sn_fail(err, SNUG_E_INVALID, "%s must be a finite number", f->key);
    switch (f->kind) {
    case SN_CONF_INT:
    case SN_CONF_INTS:
        return set_ints(f, conf, index, value, err);
    case SN_CONF_FLAG:
        if (value != 0 && value != 1)
            return sn_fail(err, SNUG_E_INVALID, "%s=%g is neither true nor false", f->key, value);
        return set_ints(f, conf, index, value, err);
    case SN_CONF_REAL:
        *(double *)((char *)conf + f->offset) = value;
        return SNUG_OK;
    case SN_CONF_REALS:
        return set_reals(f, conf, index, value, err);
    case SN_CONF_TEXT:
    case SN_CONF_INIT:
    case SN_CONF_LAYER:
    case SN_CONF_LAYERS:
    case SN_CONF_CALL:
        break;
    }
    return sn_fail(err, SNUG_E_INVALID, "%s wants a name, not the number %g", f->key, value);
}

/* What says that nothing was given. */
static bool is_marker(const sn_conf_field *f, double value) {
    const bool marks = f->number == SN_UNSET || f->number == SN_NO_AXIS || f->number == SN_NO_ENTRY;
    const bool numbers = f->kind == SN_CONF_INTS || f->kind == SN_CONF_REAL;
    return numbers && marks && value == f->number;
}

snug_status sn_conf_set_number(const sn_conf_field *f, void *conf, int index, double value,
                               snug_error *err) {
    if (is_marker(f, value))
        return sn_fail(err, SNUG_E_INVALID, "%s has the entry %.0f; leave it out for the default",
                       f->key, value);
    return put_number(f, conf, index, value, err);
}

/* Whether the list may be of any length: a shape, or axes. */
static bool is_open(const sn_conf_field *f) {
    return f->kind != SN_CONF_INTS || f->n > 6 || f->number == SN_NO_ENTRY ||
           f->number == SN_NO_AXIS;
}

snug_status sn_conf_check_count(const sn_conf_field *f, int n, snug_error *err) {
    const bool halves = f->n == 4 || f->n == 6; /* sides: two per axis, or one for both */
    if (is_open(f) || n == f->n || (halves && 2 * n == f->n))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   halves ? "%s has %d entries, not %d or %d"
                          : "%s has %d entries, not %d; one number stands for all",
                   f->key, n, halves ? f->n / 2 : f->n, f->n);
}

/* "3", "3,3", "(3, 3)", "true" for the number kinds. */
static snug_status set_numbers_text(const sn_conf_field *f, void *conf, const char *text,
                                    snug_error *err) {
    bool flag;
    if (f->kind == SN_CONF_FLAG && sn_text_flag(text, &flag))
        return sn_conf_set_number(f, conf, 0, flag, err);
    const bool is_list = f->kind == SN_CONF_INTS || f->kind == SN_CONF_REALS;
    const bool list = is_list && strpbrk(text, ",([");
    int n = 0;
    for (const char *p = text + strspn(text, "([ "); *p; n++) {
        char piece[40];
        const size_t length = strcspn(p, ",)]");
        double value;
        snprintf(piece, sizeof piece, "%.*s", (int)(length < 39 ? length : 39), p);
        if (!sn_text_real(piece, &value))
            return sn_fail(err, SNUG_E_INVALID, "%s=%.60s: '%s' is not a number", f->key, text,
                           piece);
        if (n > 0 && !list)
            return sn_fail(err, SNUG_E_INVALID, "%s=%.60s: one number is wanted", f->key, text);
        SNUG_TRY(sn_conf_set_number(f, conf, list ? n : -1, value, err));
        p += length;
        p += strspn(p, ",)] ");
    }
    if (n > 0)
        return list ? sn_conf_check_count(f, n, err) : SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s= has no value", f->key);
}

snug_status sn_conf_set_text(const sn_conf_field *f, void *conf, const char *value,
                             snug_error *err) {
    char *const at = (char *)conf + f->offset;
    if (f->kind == SN_CONF_INIT) {
        const snug_status status = sn_init_parse(value, (sn_init *)at, err);
        return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "%s", f->key);
    }
    if (f->kind != SN_CONF_TEXT)
        return set_numbers_text(f, conf, value, err);
    sn_conf_text *const text = (sn_conf_text *)at;
    if (!sn_text_copy(text->text, sizeof text->text, value))
        return sn_fail(err, SNUG_E_INVALID, "%s='%.60s' has more than %zu letters", f->key, value,
                       sizeof text->text - 1);
    return SNUG_OK;
}

snug_status sn_conf_defaults(const sn_layer_class *cls, void *conf, snug_error *err) {
    for (int i = 0; i < cls->n_fields; i++) {
        const sn_conf_field *f = &cls->fields()[i];
        if (f->kind == SN_CONF_TEXT || f->kind == SN_CONF_INIT) {
            SNUG_TRY(sn_conf_set_text(f, conf, f->text, err));
            continue;
        }
        if (f->kind == SN_CONF_REALS) {
            ((reals *)((char *)conf + f->offset))->n = 0;
            continue;
        }
        for (int k = 0; k < f->n; k++)
            SNUG_TRY(put_number(f, conf, k, f->number, err));
    }
    return SNUG_OK;
}

/* --- the text form ---------------------------------------------------------------------------- */
static snug_status refuse_key(const sn_layer_class *cls, const char *key, snug_error *err) {
    char list[300] = "";
    for (int i = 0; i < cls->n_fields; i++)
        sn_text_list(list, sizeof list, cls->fields()[i].key);
    return sn_fail(err, SNUG_E_INVALID, "%s has no setting '%.40s'; it has %s", cls->class_name,
                   key, list[0] ? list : "none");
}

/* One "key=value" from *at; a value may not contain a space unless it stands in brackets. */
static snug_status next_pair(const char **at, char *key, char *value, size_t size,
                             snug_error *err) {
    const char *p = *at;
    const size_t n_key = strcspn(p, "= \t\n");
    if (p[n_key] != '=' || n_key == 0 || n_key >= size)
        return sn_fail(err, SNUG_E_INVALID, "'%.60s' is not of the form key=value", p);
    snprintf(key, size, "%.*s", (int)n_key, p);
    p += n_key + 1;
    const char *end = p;
    for (int depth = 0; *end && (depth > 0 || !isspace((unsigned char)*end)); end++)
        depth += (*end == '(' || *end == '[') - (*end == ')' || *end == ']');
    if ((size_t)(end - p) >= size)
        return sn_fail(err, SNUG_E_INVALID, "%s: the value is longer than %zu letters", key,
                       size - 1);
    snprintf(value, size, "%.*s", (int)(end - p), p);
    *at = end + strspn(end, " \t\n");
    return SNUG_OK;
}

/* A layer inside: "LSTM(units=8 name=forward)" from *at. */
static snug_status read_layer(const char **at, sn_network *n, sn_layer **out, snug_error *err) {
    char cls[64], settings[MAX_VALUE], name[64];
    const char *p = *at;
    const size_t length = strcspn(p, "(, ");
    snprintf(cls, sizeof cls, "%.*s", (int)(length < 63 ? length : 63), p);
    p += length;
    const char *end = p;
    for (int depth = 0; *end && (end == p ? *end == '(' : depth > 0); end++)
        depth += (*end == '(') - (*end == ')');
    settings[0] = 0;
    if (end > p + 1)
        snprintf(settings, sizeof settings, "%.*s", (int)(end - p - 2), p + 1);
    *at = end + strspn(end, ", ");
    SNUG_TRY(sn_conf_text_get(settings, "name", name, sizeof name, err));
    const sn_layer_spec spec = {
        .class_name = cls, .name = name, .fill = sn_conf_fill_text, .ctx = settings};
    return sn_layer_make(n, &spec, out, err);
}

static snug_status set_layers_text(const sn_conf_field *f, sn_network *n, void *conf,
                                   const char *text, snug_error *err) {
    void *const at = (char *)conf + f->offset;
    if (f->kind == SN_CONF_LAYER)
        return read_layer(&text, n, at, err);
    sn_layer_list list = {.n = 0};
    for (text += *text == '['; *text && *text != ']'; list.n++) {
        if (list.n == SN_MAX_INNER)
            return sn_fail(err, SNUG_E_INVALID, "%s has more than %d layers", f->key, SN_MAX_INNER);
        SNUG_TRY(read_layer(&text, n, &list.at[list.n], err));
    }
    *(sn_layer_list *)at = list;
    return SNUG_OK;
}

snug_status sn_conf_fill_text(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                              snug_error *err) {
    const char *at = ctx ? ctx : "";
    char key[MAX_VALUE], value[MAX_VALUE];
    for (at += strspn(at, " \t\n"); *at;) {
        SNUG_TRY(next_pair(&at, key, value, sizeof key, err));
        if (strcmp(key, "name") == 0 || strcmp(key, "trainable") == 0)
            continue;
        const sn_conf_field *f = sn_conf_find(cls, key);
        if (!f)
            return refuse_key(cls, key, err);
        if (f->kind == SN_CONF_LAYER || f->kind == SN_CONF_LAYERS)
            SNUG_TRY(set_layers_text(f, n, conf, value, err));
        else
            SNUG_TRY(sn_conf_set_text(f, conf, value, err));
    }
    return SNUG_OK;
}

snug_status sn_conf_text_get(const char *text, const char *key, char *value, size_t size,
                             snug_error *err) {
    char k[MAX_VALUE], v[MAX_VALUE];
    value[0] = 0;
    for (const char *at = text + strspn(text, " \t\n"); *at;) {
        SNUG_TRY(next_pair(&at, k, v, sizeof k, err));
        if (strcmp(k, key) == 0 && !sn_text_copy(value, size, v))
            return sn_fail(err, SNUG_E_INVALID, "%s='%.60s' has more than %zu letters", key, v,
                           size - 1);
    }
    return SNUG_OK;
}
