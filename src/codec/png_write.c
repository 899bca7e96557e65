/* png_write.c: PNG files of pictures, through libpng, into bytes that grow. Its errors leave by
 * longjmp to the setjmp of `write_rows`; all that is needed there lives in the `writer`. */
#include "codec/picture_write.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

typedef struct {
    const snug_datum *picture;
    sn_growing *to;
    int compression;
    png_structp png;
    png_infop info;
    jmp_buf leave;
    char reason[128];
} writer;

static void leave_with_message(png_structp png, png_const_charp message) {
    writer *w = png_get_error_ptr(png);
    snprintf(w->reason, sizeof w->reason, "%s", message);
    longjmp(w->leave, 1);
}

static void say_nothing(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void take_bytes(png_structp png, png_bytep bytes, size_t n) {
    writer *w = png_get_io_ptr(png);
    if (!sn_growing_room(w->to, n))
        png_error(png, "no memory for its bytes");
    memcpy((char *)w->to->block.data + w->to->n, bytes, n);
    w->to->n += n;
}

static void flush(png_structp png) {
    (void)png;
}

static bool write_rows(writer *w) {
    static const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    const snug_type *t = &w->picture->type;
    if (setjmp(w->leave))
        return false;
    png_set_write_fn(w->png, w, take_bytes, flush);
    png_set_compression_level(w->png, w->compression);
    png_set_compression_mem_level(w->png, 9);
    png_set_IHDR(w->png, w->info, (png_uint_32)t->dims[1], (png_uint_32)t->dims[0], 8,
                 colours[t->dims[2]], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    const size_t row = (size_t)t->dims[1] * (size_t)t->dims[2];
    for (int64_t i = 0; i < t->dims[0]; i++)
        png_write_row(w->png, (png_const_bytep)w->picture->data + (size_t)i * row);
    png_write_end(w->png, NULL);
    return true;
}

snug_status sn_png_write(const snug_datum *picture, int compression, sn_growing *to,
                         snug_error *err) {
    writer w = {.picture = picture, .to = to, .compression = compression, .reason = "no memory"};
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, leave_with_message, say_nothing);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    const bool done = w.info && write_rows(&w);
    if (w.png)
        png_destroy_write_struct(&w.png, w.info ? &w.info : NULL);
    return done ? SNUG_OK
                : sn_fail(err, SNUG_E_MEMORY, "cannot encode a picture as PNG: %s", w.reason);
}
