/* json.h: JSON from files, within limits; strings for JSON and for terminals.
 *
 * Text from a file may hold anything: what goes into JSON is escaped, what goes to a terminal has
 * its control characters replaced. */
#ifndef SN_MODEL_JSON_H
#define SN_MODEL_JSON_H

#include "memory/engine.h"

#include <jansson.h>

#define SN_JSON_MAX_DEPTH  64
#define SN_JSON_MAX_VALUES 2000000

/* A tree of jansson's on the C heap, and what the ledger has booked for it (category MODEL): a
 * bound, from a look at the text. */
typedef struct {
    json_t *root;
    snug_engine *engine;
    size_t bytes;
} sn_json;

/* Refuses, as SNUG_E_FORMAT with the place: what is no JSON in UTF-8, duplicate keys, deeper
 * nesting and more values than above. path is for messages. */
SNUG_CHECKED snug_status sn_json_parse(snug_engine *e, const char *path, const char *text, size_t n,
                                       sn_json *out, snug_error *err);
void sn_json_clear(sn_json *tree);

/* Writes "text" with quotes and escapes; bytes that are not UTF-8 go through as they are. */
SNUG_CHECKED snug_status sn_json_string(const snug_writer *w, const char *text, snug_error *err);
/* n bytes of text, escaped, without the quotes around. */
SNUG_CHECKED snug_status sn_json_escape(const snug_writer *w, const char *text, size_t n,
                                        snug_error *err);

/* The text with control characters as '?', cut to size - 1 bytes. Returns out. */
const char *sn_plain_text(const char *text, char *out, size_t size);

#endif
