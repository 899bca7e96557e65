/* picture_write.h: pictures u8[H, W, C] as files. */
#ifndef SN_CODEC_PICTURE_WRITE_H
#define SN_CODEC_PICTURE_WRITE_H

#include "codec/data_ops.h"

/* Bytes that grow. data of block: what was taken for them; n so far. */
typedef struct {
    snug_engine *engine;
    snug_datum block;
    size_t n;
} sn_growing;

SNUG_CHECKED snug_status sn_growing_begin(snug_engine *e, size_t bytes, sn_growing *g,
                                          snug_error *err);
/* False: no memory; the bytes so far stay. */
bool sn_growing_room(sn_growing *g, size_t more);
void sn_growing_end(sn_growing *g);

typedef struct {
    int quality; /* 0 to 100 */
    bool progressive, optimize, downsample;
} sn_jpeg_options;

/* The file's bytes in *to, which is begun. channels 1 or 3; of PNG 1 to 4. */
SNUG_CHECKED snug_status sn_jpeg_write(const snug_datum *picture, const sn_jpeg_options *o,
                                       sn_growing *to, snug_error *err);
SNUG_CHECKED snug_status sn_png_write(const snug_datum *picture, int compression, sn_growing *to,
                                      snug_error *err);

#endif
