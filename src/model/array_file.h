/* array_file.h: .npy and idx files, plain or .gz, as feeds: read in windows, never whole.
 *
 *     SNUG_TRY(sn_array_file_open(e, "train-images-idx3-ubyte.gz", &a, err));
 *     sn_array_file_read(a, 100, 32, &view, err);     // rows 100..131, in the view's dtype
 *     sn_array_file_close(a); */
#ifndef SN_MODEL_ARRAY_FILE_H
#define SN_MODEL_ARRAY_FILE_H

#include "model/array_header.h"
#include "tensor/feed.h"

typedef struct sn_array_file sn_array_file;

/* Checks the header, and for plain files that the data are exactly as long as it says. */
SNUG_CHECKED snug_status sn_array_file_open(snug_engine *e, const char *path, sn_array_file **out,
                                            snug_error *err);
void sn_array_file_close(sn_array_file *a); /* NULL is legal */
const sn_array_header *sn_array_file_header(const sn_array_file *a);
bool sn_array_file_packed(const sn_array_file *a);
/* A packed file is unpacked into a temporary file when rows are wanted in another order than
 * theirs. */
SNUG_CHECKED snug_status sn_array_file_read(sn_array_file *a, int64_t first_row, int64_t n_rows,
                                            const snug_view *dst, snug_error *err);

SNUG_CHECKED snug_status sn_feed_from_array_file(snug_engine *e, const char *path, snug_feed **out,
                                                 snug_error *err);

#endif
