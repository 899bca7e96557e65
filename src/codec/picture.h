/* picture.h: pictures in files. A format is two functions: the header (extents, channels), and all
 * rows straight into their place. Bytes come from anywhere: nothing in them may crash, hang or make
 * the program ask for memory without limit.
 *
 *     snug_datum p;
 *     SNUG_TRY(sn_jpeg_read(e, &source, &options, &p, err));     // p: u8[H, W, C] */
#ifndef SN_CODEC_PICTURE_H
#define SN_CODEC_PICTURE_H

#include "codec/data_ops.h"

/* A picture of more pixels is refused before a byte is asked for. */
#define SN_MAX_PIXELS ((int64_t)1 << 28)

typedef struct {
    const unsigned char *bytes;
    size_t n;
    const char *name; /* for messages: "'a.jpg' (512 bytes)" */
} sn_picture_source;

/* Who takes a picture row by row, top to bottom, so that it is never there as a whole. */
typedef struct {
    snug_status (*begin)(void *ctx, const int64_t extents[3], snug_error *err);
    void (*row)(void *ctx, const unsigned char *row);
    void *ctx;
} sn_picture_rows;

typedef struct sn_picture_options sn_picture_options;
typedef snug_status (*sn_picture_read)(snug_engine *e, const sn_picture_source *s,
                                       const sn_picture_options *o, snug_datum *out,
                                       snug_error *err);

struct sn_picture_options {
    int channels;        /* 0: as the file has them; 1, 2, 3 or 4 */
    int ratio;           /* JPEG: 1, 2, 4, 8: so many pixels become one */
    bool fancy;          /* JPEG: smooth colour planes */
    bool fast_dct;       /* JPEG: the less exact transform */
    bool recover;        /* JPEG: the part of a truncated file that is there */
    int64_t at_least[2]; /* JPEG: the largest ratio whose picture has so many rows and columns; 0:
                            `ratio` itself */
    bool all_frames;     /* GIF: u8[frames, H, W, 3], else the first */
    const sn_picture_rows *rows; /* NULL: none. Else they get it where the file has its rows in
                                    order (JPEG, most PNG), and out->data is NULL then */
    sn_picture_read otherwise;   /* for pictures of no format that the function takes */
};

typedef enum {
    SN_PICTURE_NONE,
    SN_PICTURE_JPEG,
    SN_PICTURE_PNG,
    SN_PICTURE_GIF,
    SN_PICTURE_BMP
} sn_picture_kind;
/* What the first bytes say. */
sn_picture_kind sn_picture_guess(const unsigned char *bytes, size_t n);

/* SNUG_E_FORMAT for no pixels and for more than the limit, with the numbers. */
SNUG_CHECKED snug_status sn_picture_check(const sn_picture_source *s, const int64_t extents[3],
                                          snug_error *err);
/* Room for a picture whose header said so, checked as above. */
SNUG_CHECKED snug_status sn_picture_create(snug_engine *e, const sn_picture_source *s,
                                           const int64_t extents[3], snug_datum *out,
                                           snug_error *err);

/* Whether there is room for what decoding takes in all; a refusal says how much that is. how: what
 * makes the file one that takes more than usual, or NULL. */
SNUG_CHECKED snug_status sn_picture_ask(snug_engine *e, const sn_picture_source *s, const char *how,
                                        const int64_t extents[2], size_t bytes, snug_error *err);

SNUG_CHECKED snug_status sn_jpeg_read(snug_engine *e, const sn_picture_source *s,
                                      const sn_picture_options *o, snug_datum *out,
                                      snug_error *err);
/* Rows, columns, channels, by the header alone. */
SNUG_CHECKED snug_status sn_jpeg_shape(const sn_picture_source *s, int64_t shape[3],
                                       snug_error *err);
SNUG_CHECKED snug_status sn_png_read(snug_engine *e, const sn_picture_source *s,
                                     const sn_picture_options *o, snug_datum *out, snug_error *err);
SNUG_CHECKED snug_status sn_bmp_read(snug_engine *e, const sn_picture_source *s,
                                     const sn_picture_options *o, snug_datum *out, snug_error *err);
SNUG_CHECKED snug_status sn_gif_read(snug_engine *e, const sn_picture_source *s,
                                     const sn_picture_options *o, snug_datum *out, snug_error *err);

#endif
