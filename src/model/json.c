/* json.c: limits in front of jansson, which builds the whole tree on the C heap and recurses: a
 * look over the text tells depth and what the tree will take beforehand, so that a small file
 * cannot ask for much stack, nor a file of any size for memory that the ledger does not know. */
#include "model/json.h"

#include "base/say.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What a tree is made of. */
typedef struct {
    size_t containers, values, strings; /* containers and strings are values, keys are strings */
} census;

/* Brackets and commas outside strings. The text need not be valid: the parser says what is wrong
 * with it. */
static snug_status check_limits(const char *path, const char *text, size_t n, census *out,
                                snug_error *err) {
    size_t depth = 0, quotes = 0;
    census c = {.values = 1};
    for (size_t i = 0; i < n; i++) {
        const bool quoted = quotes % 2 == 1;
        const char letter = text[i];
        if (quoted && letter == '\\')
            i++;
        else if (letter == '"')
            quotes++;
        else if (!quoted && (letter == '{' || letter == '[' || letter == ',')) {
            depth += letter != ',';
            c.containers += letter != ',';
            c.values++;
        } else if (!quoted && (letter == '}' || letter == ']') && depth > 0)
            depth--;
        if (depth > SN_JSON_MAX_DEPTH)
            return sn_fail(
                err, SNUG_E_FORMAT,
                "%s is nested deeper than %d levels at byte %zu; no model or weight file is", path,
                SN_JSON_MAX_DEPTH, i);
        if (c.values > SN_JSON_MAX_VALUES)
            return sn_fail(
                err, SNUG_E_FORMAT,
                "%s holds more than %d values up to byte %zu; no model or weight file does", path,
                SN_JSON_MAX_VALUES, i);
    }
    c.strings = quotes / 2;
    *out = c;
    return SNUG_OK;
}

/* Chunks of malloc: an object with its first table, 224 bytes; a number 32; a string 48 and its
 * text; a member 64 and its key; an entry of a table up to 24 while it grows. */
static size_t tree_bytes(const census *c, size_t n) {
    return 224 * c->containers + 56 * c->values + 112 * c->strings + 2 * n + 4096;
}

snug_status sn_json_parse(snug_engine *e, const char *path, const char *text, size_t n,
                          sn_json *out, snug_error *err) {
    json_error_t where;
    census c = {.values = 0};
    char what[JSON_ERROR_TEXT_LENGTH];
    SNUG_TRY(check_limits(path, text, n, &c, err));
    const size_t bytes = tree_bytes(&c, n);
    SNUG_TRY(sn_claim(e, SN_MEM_MODEL, bytes, err));
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (root) {
        *out = (sn_json){root, e, bytes};
        return SNUG_OK;
    }
    sn_unclaim(e, SN_MEM_MODEL, bytes);
    if (json_error_code(&where) == json_error_out_of_memory)
        return sn_fail(err, SNUG_E_MEMORY, "%s: no memory for the tree of its %zu bytes of JSON",
                       path, n);
    return sn_fail(err, SNUG_E_FORMAT, "%s is not valid JSON: line %d, column %d: %s", path,
                   where.line, where.column, sn_plain_text(where.text, what, sizeof what));
}

void sn_json_clear(sn_json *tree) {
    json_decref(tree->root);
    sn_unclaim(tree->engine, SN_MEM_MODEL, tree->bytes);
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
