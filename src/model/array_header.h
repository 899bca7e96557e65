/* array_header.h: the start of an .npy or idx file (MNIST's format). */
#ifndef SN_MODEL_ARRAY_HEADER_H
#define SN_MODEL_ARRAY_HEADER_H

#include "tensor/type.h"

#define SN_ARRAY_HEADER_BYTES 8192 /* as much as is ever looked at; longer headers are refused */

typedef enum { SN_ARRAY_NPY, SN_ARRAY_IDX } sn_array_format;

typedef struct {
    sn_array_format format;
    snug_type type;
    int64_t data_offset; /* of the first element, in the unpacked stream */
    bool big_endian;     /* elements wider than a byte, highest first: idx, or npy with '>' */
    char descr[16];      /* npy: "<f4"; idx: "0x08" */
} sn_array_header;

/* From the first n bytes of the unpacked file. Afterwards neither the data's bytes nor the position
 * of the last overflow. */
SNUG_CHECKED snug_status sn_array_header_parse(const char *path, const unsigned char *bytes,
                                               size_t n, sn_array_header *out, snug_error *err);

#endif
