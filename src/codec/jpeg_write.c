/* jpeg_write.c: JPEG files of pictures, through libjpeg-turbo, into bytes that grow. Its errors
 * leave by longjmp to the setjmp of `write_rows`; all that is needed there lives in the
 * `writer`. */
#include "codec/jpeg_memory.h"
#include "codec/picture_write.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

typedef struct {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr target;
    jmp_buf leave;
    char reason[JMSG_LENGTH_MAX];
    sn_jpeg_memory memory;
    sn_growing *to;
    const snug_datum *picture;
    const sn_jpeg_options *options;
} writer;

static void leave_with_message(j_common_ptr c) {
    writer *w = c->client_data;
    c->err->format_message(c, w->reason);
    longjmp(w->leave, 1);
}

static void say_nothing(j_common_ptr c) {
    (void)c;
}

static void point_at_room(writer *w) {
    w->target.next_output_byte = (JOCTET *)w->to->block.data + w->to->n;
    w->target.free_in_buffer = w->to->block.bytes - w->to->n;
}

static void begin(j_compress_ptr c) {
    point_at_room(c->client_data);
}

/* The buffer is full, to its last byte. */
static boolean grow(j_compress_ptr c) {
    writer *w = c->client_data;
    w->to->n = w->to->block.bytes;
    if (!sn_growing_room(w->to, w->to->n)) {
        snprintf(w->reason, sizeof w->reason, "no memory for its bytes");
        longjmp(w->leave, 1);
    }
    point_at_room(w);
    return TRUE;
}

static void end(j_compress_ptr c) {
    writer *w = c->client_data;
    w->to->n = w->to->block.bytes - w->target.free_in_buffer;
}

static void set_format(writer *w) {
    const snug_type *t = &w->picture->type;
    w->c.image_height = (JDIMENSION)t->dims[0];
    w->c.image_width = (JDIMENSION)t->dims[1];
    w->c.input_components = (int)t->dims[2];
    w->c.in_color_space = t->dims[2] == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->c);
    if (w->options->optimize)
        w->c.optimize_coding = TRUE;
    w->c.density_unit = 1;
    w->c.X_density = w->c.Y_density = 300;
    jpeg_set_quality(&w->c, w->options->quality, TRUE);
    if (w->options->progressive)
        jpeg_simple_progression(&w->c);
    if (!w->options->downsample)
        for (int i = 0; i < w->c.num_components; i++)
            w->c.comp_info[i].h_samp_factor = w->c.comp_info[i].v_samp_factor = 1;
}

static bool write_rows(writer *w) {
    if (setjmp(w->leave))
        return false;
    jpeg_create_compress(&w->c);
    sn_jpeg_memory_set(&w->memory, w->to->engine, (j_common_ptr)&w->c);
    w->c.dest = &w->target;
    set_format(w);
    jpeg_start_compress(&w->c, TRUE);
    const size_t row = (size_t)w->picture->type.dims[1] * (size_t)w->picture->type.dims[2];
    while (w->c.next_scanline < w->c.image_height) {
        JSAMPROW line = (unsigned char *)w->picture->data + row * w->c.next_scanline;
        (void)jpeg_write_scanlines(&w->c, &line, 1);
    }
    jpeg_finish_compress(&w->c);
    return true;
}

snug_status sn_jpeg_write(const snug_datum *picture, const sn_jpeg_options *o, sn_growing *to,
                          snug_error *err) {
    writer w = {.picture = picture, .options = o, .to = to};
    w.c.client_data = &w;
    w.c.err = jpeg_std_error(&w.errors);
    w.errors.error_exit = leave_with_message;
    w.errors.output_message = say_nothing;
    w.target = (struct jpeg_destination_mgr){
        .init_destination = begin, .empty_output_buffer = grow, .term_destination = end};
    const bool done = write_rows(&w);
    jpeg_destroy_compress(&w.c);
    if (done)
        return SNUG_OK;
    const snug_error *why = &w.memory.refused;
    return sn_fail(err, why->code != SNUG_OK ? why->code : SNUG_E_MEMORY,
                   "cannot encode a picture as JPEG: %s",
                   why->code != SNUG_OK ? why->text : w.reason);
}
