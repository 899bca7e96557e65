/* json.h: JSON from files, within limits; strings for JSON and for terminals.
 *
 * Text from a file may hold anything: what goes into JSON is escaped, what goes to a terminal has
 * its control characters replaced. */
#ifndef SN_MODEL_JSON_H
#define SN_MODEL_JSON_H

#include "base/status.h"

#include <jansson.h>
#include <snug/engine.h>

#define SN_JSON_MAX_DEPTH  64
#define SN_JSON_MAX_VALUES 2000000 /* the tree of a value takes some 100 bytes on the C heap */

/* Refuses, as SNUG_E_FORMAT with the place: what is no JSON in UTF-8, duplicate keys, deeper
 * nesting and more values than above. The tree is jansson's: it is not on the ledger; release it
 * with json_decref. */
SNUG_CHECKED snug_status sn_json_parse(const char *path, const char *text, size_t n, json_t **out,
                                       snug_error *err);

/* Writes "text" with quotes and escapes; bytes that are not UTF-8 go through as they are. */
SNUG_CHECKED snug_status sn_json_string(const snug_writer *w, const char *text, snug_error *err);
/* n bytes of text, escaped, without the quotes around. */
SNUG_CHECKED snug_status sn_json_escape(const snug_writer *w, const char *text, size_t n,
                                        snug_error *err);

/* The text with control characters as '?', cut to size - 1 bytes. Returns out. */
const char *sn_plain_text(const char *text, char *out, size_t size);

#endif
