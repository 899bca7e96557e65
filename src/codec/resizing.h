/* resizing.h: a picture resized while it is decoded, row by row: what is there of it are the rows
 * of one row of the result.
 *
 *     sn_resizing r;
 *     sn_picture_rows rows;
 *     if (sn_resizing_init(&r, call, &rows)) ...    // rows: for a decoder (sn_picture_options)
 *     return sn_resizing_end(&r, status);           // call->out[0] is the result, or nothing */
#ifndef SN_CODEC_RESIZING_H
#define SN_CODEC_RESIZING_H

#include "codec/picture.h"
#include "kernels/cpu/picture_resize.h"

typedef struct {
    sn_data_call *call;
    sn_picture_resize picture;
    snug_datum work, window;
    size_t row_bytes;
    int64_t in, out;     /* rows that came and that were made */
    int64_t first, most; /* the row that the window begins with, and how many it may hold */
} sn_resizing;

/* By the options of the call's function (tf.image.resize); false: its method is none that can. */
bool sn_resizing_init(sn_resizing *r, sn_data_call *c, sn_picture_rows *rows);
/* Nothing is left of a picture that failed. Legal where no row came. */
snug_status sn_resizing_end(sn_resizing *r, snug_status status);

#endif
