/* input.h: the bytes of a file from its first to its last, packed or not, through one window.
 *
 *     SNUG_TRY(sn_input_open(e, "a.tfrecord.gz", SNUG_GZIP, &in, err));
 *     sn_input_look(in, &bytes, &n, err);        // what lies in the window; n 0 at the end
 *     sn_input_take(in, 12);                     // of these, so many are done with
 *     sn_input_read(in, buffer, n, &got, err);   // the next n bytes; got < n only at the end
 *     sn_input_close(in); */
#ifndef SN_DATA_INPUT_H
#define SN_DATA_INPUT_H

#include "memory/engine.h"

#include <snug/dataset.h>

typedef struct sn_input sn_input;

/* path is copied. Missing files, folders: SNUG_E_IO with the name. */
SNUG_CHECKED snug_status sn_input_open(snug_engine *e, const char *path, snug_compression packed,
                                       sn_input **out, snug_error *err);
void sn_input_close(sn_input *in); /* NULL is legal */
SNUG_CHECKED snug_status sn_input_look(sn_input *in, const char **bytes, size_t *n,
                                       snug_error *err);
void sn_input_take(sn_input *in, size_t n);
SNUG_CHECKED snug_status sn_input_read(sn_input *in, void *to, size_t n, size_t *got,
                                       snug_error *err);
/* Leaves out n bytes; false: there are fewer, or it is packed (nothing changed). */
bool sn_input_skip(sn_input *in, int64_t n);
const char *sn_input_path(const sn_input *in);
int64_t sn_input_at(const sn_input *in);   /* of the next byte, unpacked */
int64_t sn_input_left(const sn_input *in); /* bytes after it; -1: packed, not known */
int64_t sn_input_most(const sn_input *in); /* there are no more after it, packed or not */

#endif
