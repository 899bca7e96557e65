/* file_source.h: what sources of names share. */
#ifndef SN_DATA_FILE_SOURCE_H
#define SN_DATA_FILE_SOURCE_H

#include <snug/dataset.h>

/* An element of one text. */
SNUG_CHECKED snug_status sn_text_element(snug_engine *e, const char *text, snug_element *out,
                                         snug_error *err);

#endif
