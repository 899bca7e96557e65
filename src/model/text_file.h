/* text_file.h: a whole file in memory, for readers of texts: model JSON, graphs, plans. */
#ifndef SN_MODEL_TEXT_FILE_H
#define SN_MODEL_TEXT_FILE_H

#include "memory/engine.h"

typedef struct {
    snug_engine *engine;
    sn_category category;
    char *text; /* with a zero behind it */
    size_t length;
} sn_text_file;

/* At most 64 MiB. `what` is what such a file holds, for messages: "a model JSON". */
SNUG_CHECKED snug_status sn_text_file_read(snug_engine *e, const char *path, const char *what,
                                           sn_category category, sn_text_file *out,
                                           snug_error *err);
/* A zero byte within the text is SNUG_E_FORMAT: for readers that would stop there. */
SNUG_CHECKED snug_status sn_text_file_check(const sn_text_file *f, const char *path,
                                            snug_error *err);
void sn_text_file_free(sn_text_file *f); /* legal on a zeroed one */

#endif
