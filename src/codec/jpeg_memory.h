/* jpeg_memory.h: libjpeg's memory from the pool of pipelines, so that all of it is on the ledger
 * and asked for before it is there: working rows, and every coefficient of a file of several scans.
 *
 *     sn_jpeg_memory m;
 *     jpeg_create_decompress(&d);
 *     sn_jpeg_memory_set(&m, engine, (j_common_ptr)&d);     // gone with jpeg_destroy
 *     ... m.refused.code                                    // why libjpeg left by error_exit */
#ifndef SN_CODEC_JPEG_MEMORY_H
#define SN_CODEC_JPEG_MEMORY_H

#include "codec/data_ops.h"

#include <stdio.h>

#include <jpeglib.h>

typedef struct sn_jpeg_chunk sn_jpeg_chunk;
typedef struct {
    struct jpeg_memory_mgr methods;  /* first: libjpeg has its address */
    struct jpeg_memory_mgr *library; /* its own, which holds the object itself */
    snug_engine *engine;
    sn_jpeg_chunk *chunks[JPOOL_NUMPOOLS]; /* newest first */
    snug_error refused;                    /* code SNUG_OK: nothing was */
} sn_jpeg_memory;

/* Must not move until the object is destroyed. */
void sn_jpeg_memory_set(sn_jpeg_memory *m, snug_engine *e, j_common_ptr object);

#endif
