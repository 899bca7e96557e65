/* array_file.h: .npy and idx files (MNIST's format), plain or .gz, as feeds: read in windows, never whole. */
#ifndef SN_MODEL_ARRAY_FILE_H
#define SN_MODEL_ARRAY_FILE_H

#include "base/file.h"
#include "tensor/feed.h"

typedef enum { SN_ARRAY_NPY, SN_ARRAY_IDX } sn_array_format;

/* What stands at the start of an array file. */
typedef struct {
    sn_array_format format;
    snug_type type;
    int64_t data_offset; /* of the first element, in the unpacked stream */
    bool big_endian;     /* idx with elements wider than a byte */
    bool packed;         /* .gz */
    char descr[16];      /* npy: "<f4"; idx: "0x08" */
} sn_array_header;

/* Reads and checks the header of an open file: magic, version, dims, and that the data are exactly as long as the
 * header says (for .gz: checked while reading). SNUG_E_FORMAT says what and at which offset. */
SNUG_CHECKED snug_status sn_array_header_read(snug_engine *e, sn_file *f, sn_array_header *out, snug_error *err);
SNUG_CHECKED snug_status sn_feed_from_array_file(snug_engine *e, const char *path, snug_feed **out, snug_error *err);

#endif
