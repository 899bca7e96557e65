/* number.h: numbers in texts. */
#ifndef SN_CODEC_NUMBER_H
#define SN_CODEC_NUMBER_H

#include <snug/dataset.h>
#include <stdbool.h>

/* The whole text as one number of dtype F32, F64, I32 or I64, spaces around it allowed, into `to`.
 * False: it is none, or does not fit. */
bool sn_number_parse(const snug_text *t, snug_dtype dtype, void *to);

#endif
