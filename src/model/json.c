/* json.c: limits in front of jansson, which builds the whole tree on the C heap and recurses: a
 * look over the brackets tells depth and number of values beforehand, so that a small file cannot
 * ask for much memory or stack. */
#include "model/json.h"

#include "base/say.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Brackets and commas outside strings. The text need not be valid: the parser says what is wrong
 * with it. */
static snug_status check_limits(const char *path, const char *text, size_t n, snug_error *err) {
    size_t depth = 0, values = 1;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[' || c == ',')) {
            depth += c != ',';
            values++;
        } else if (!quoted && (c == '}' || c == ']') && depth > 0)
            depth--;
        if (depth > SN_JSON_MAX_DEPTH)
            return sn_fail(
                err, SNUG_E_FORMAT,
                "%s is nested deeper than %d levels at byte %zu; no model or weight file is", path,
                SN_JSON_MAX_DEPTH, i);
        if (values > SN_JSON_MAX_VALUES)
            return sn_fail(
                err, SNUG_E_FORMAT,
                "%s holds more than %d values up to byte %zu; no model or weight file does", path,
                SN_JSON_MAX_VALUES, i);
    }
    return SNUG_OK;
}

snug_status sn_json_parse(const char *path, const char *text, size_t n, json_t **out,
                          snug_error *err) {
    json_error_t where;
    char what[JSON_ERROR_TEXT_LENGTH];
    SNUG_TRY(check_limits(path, text, n, err));
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (!root && json_error_code(&where) == json_error_out_of_memory)
        return sn_fail(err, SNUG_E_MEMORY, "%s: no memory for the tree of its %zu bytes of JSON",
                       path, n);
    if (!root)
        return sn_fail(err, SNUG_E_FORMAT, "%s is not valid JSON: line %d, column %d: %s", path,
                       where.line, where.column, sn_plain_text(where.text, what, sizeof what));
    *out = root;
    return SNUG_OK;
}

static bool is_plain(char c) {
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

snug_status sn_json_escape(const snug_writer *w, const char *text, size_t n, snug_error *err) {
    for (size_t i = 0; i < n;) {
        size_t plain = 0;
        while (i + plain < n && is_plain(text[i + plain]))
            plain++;
        if (plain > 0)
            SNUG_TRY(w->write(w->ctx, text + i, plain, err));
        else if (text[i] == '\n')
            SNUG_TRY(sn_say(w, err, "\\n"));
        else if (text[i] == '"' || text[i] == '\\')
            SNUG_TRY(sn_say(w, err, "\\%c", text[i]));
        else
            SNUG_TRY(sn_say(w, err, "\\u%04x", (unsigned char)text[i]));
        i += plain > 0 ? plain : 1;
    }
    return SNUG_OK;
}

snug_status sn_json_string(const snug_writer *w, const char *text, snug_error *err) {
    SNUG_TRY(sn_say(w, err, "\""));
    SNUG_TRY(sn_json_escape(w, text, strlen(text), err));
    return sn_say(w, err, "\"");
}

const char *sn_plain_text(const char *text, char *out, size_t size) {
    snprintf(out, size, "%s", text);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return out;
}
