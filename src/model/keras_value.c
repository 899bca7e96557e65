/* keras_value.c: see keras_value.h. Nothing here looks at `module`: a class is a name and nothing
 * more. */
#include "model/keras_value.h"

#include "base/real.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *sn_keras_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

/* GlorotUniform -> glorot_uniform; text that is snake case already stays. */
static void to_snake(const char *name, char *out, size_t size) {
    size_t n = 0;
    for (const char *c = name; *c && n + 2 < size; c++) {
        const bool upper = isupper((unsigned char)*c) != 0;
        const bool starts_word =
            upper && c != name && (!isupper((unsigned char)c[-1]) || islower((unsigned char)c[1]));
        if (starts_word && c[-1] != '_')
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)*c);
    }
    out[n] = 0;
}

/* With the fewest digits that give the same number back. */
static int print_real(double v, char *out, size_t size) {
    char text[SN_REAL_TEXT];
    const char *end;
    double back;
    int digits = 6;
    while (sn_real_parse(sn_real_print(v, digits, text), &end, &back) && back != v && digits < 17)
        digits++;
    return snprintf(out, size, "%s", text);
}

bool sn_keras_scalar(const json_t *value, char *out, size_t size) {
    int n = -1;
    if (json_is_string(value))
        n = snprintf(out, size, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        n = snprintf(out, size, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        n = snprintf(out, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        n = print_real(json_real_value(value), out, size);
    return n >= 0 && (size_t)n < size;
}

bool sn_keras_is_inert(const sn_keras_inert *list, const char *key, const json_t *value) {
    char text[40];
    const bool alone = json_is_array(value) && json_array_size(value) == 1;
    if (json_is_null(value))
        return true;
    if (!sn_keras_scalar(alone ? json_array_get(value, 0) : value, text, sizeof text))
        text[0] = 0;
    for (; list->key; list++)
        if (strcmp(list->key, key) == 0 &&
            (list->value[0] == '*' || strcmp(list->value, text) == 0))
            return true;
    return false;
}

/* Flags that are on unless a file says otherwise. */
static bool is_on_by_default(const char *key) {
    return strcmp(key, "sparse_y_true") == 0 || strcmp(key, "sparse_y_pred") == 0;
}

static bool print_list(const json_t *list, char *out, size_t size) {
    char entry[40];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < size; i++) {
        if (!sn_keras_scalar(json_array_get(list, i), entry, sizeof entry))
            return false;
        n += (size_t)snprintf(out + n, size - n, "%c%s", i ? ',' : '[', entry);
    }
    return n > 0 && n < size && (size_t)snprintf(out + n, size - n, "]") < size - n;
}

static bool print_object(const char *class_name, json_t *config, const sn_keras_inert *inert,
                         char *out, size_t size);

/* A scalar, a list of them, or "name(key=value,...)". */
static bool print_value(const json_t *value, const sn_keras_inert *inert, char *out, size_t size) {
    const char *class_name = sn_keras_text(value, "class_name");
    if (json_is_array(value))
        return print_list(value, out, size);
    if (!class_name)
        return sn_keras_scalar(value, out, size);
    if (!print_object(class_name, json_object_get(value, "config"), inert, out, size) ||
        strchr(out, '('))
        return false;
    char *const colon = strchr(out, ':');
    if (colon)
        *colon = '(';
    const size_t n = strlen(out);
    return (size_t)snprintf(out + n, size - n, colon ? ")" : "()") < size - n;
}

/* "NAME:key=value,..." from an object's class and configuration. */
static bool print_object(const char *class_name, json_t *config, const sn_keras_inert *inert,
                         char *out, size_t size) {
    char name[64], entry[256];
    char mark = ':';
    to_snake(class_name, name, sizeof name);
    size_t n = (size_t)snprintf(out, size, "%s", name);
    for (void *it = json_object_iter(config); it && n < size;
         it = json_object_iter_next(config, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        if ((json_is_false(value) && !is_on_by_default(key)) ||
            sn_keras_is_inert(inert, key, value))
            continue;
        if (!print_value(value, inert, entry, sizeof entry))
            return false;
        if (strcmp(key, "name") == 0 && strcmp(entry, name) == 0)
            continue;
        n += (size_t)snprintf(out + n, size - n, "%c%s=%s", mark, key, entry);
        mark = ',';
    }
    return n < size;
}

bool sn_keras_object(const json_t *value, const sn_keras_inert *inert, char *out, size_t size) {
    const char *class_name = sn_keras_text(value, "class_name");
    json_t *config = json_object_get(value, "config");
    if (json_is_string(value))
        return (size_t)snprintf(out, size, "%s", json_string_value(value)) < size;
    if (class_name && strcmp(class_name, "function") == 0 &&
        json_is_string(config)) /* keras.losses.mse and the like */
        return (size_t)snprintf(out, size, "%s", json_string_value(config)) < size;
    return class_name && print_object(class_name, config, inert, out, size);
}

const char *sn_keras_show(const json_t *value, char *out, size_t size) {
    memset(out, 0, size); /* pieces that do not fit are left out, with a gap in their place */
    const size_t n = json_dumpb(value, out, size - 1, JSON_COMPACT | JSON_ENCODE_ANY);
    const size_t shown = strlen(out);
    if (n > size - 1 && size > 4)
        memcpy(out + (shown < size - 4 ? shown : size - 4), "...", 4);
    return out;
}

const char *sn_keras_policy(const json_t *dtype) {
    return json_is_string(dtype) ? json_string_value(dtype)
                                 : sn_keras_text(json_object_get(dtype, "config"), "name");
}
