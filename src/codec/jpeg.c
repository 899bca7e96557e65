/* jpeg.c: JPEG pictures through libjpeg-turbo, row by row into their place, with TensorFlow's
 * choices: the exact transform, smooth colour planes, CMYK turned to RGB.
 *
 * libjpeg's errors do not return, so they leave by longjmp: to setjmp in `read_rows`, `read_head`
 * and nowhere else. All that is needed behind the jump lives in the `reader`, never in a local.
 * Its memory comes from the pool and is on the ledger: some rows for usual files, every coefficient
 * of files of several scans. What all of it and the picture take is asked for before the first. */
#include "codec/jpeg_memory.h"
#include "codec/picture.h"

#include "base/size.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* A progressive file may repeat itself for hours. */
#define MAX_SCANS 512

typedef struct {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    char reason[JMSG_LENGTH_MAX];
    bool recover;
    const sn_picture_source *source;
    snug_engine *engine; /* NULL: the header alone is read */
    sn_jpeg_memory memory;
    const sn_picture_rows *rows; /* who gets them one by one; NULL: the picture */
    snug_datum picture;          /* or one row */
    unsigned char *cmyk;         /* a row of four colours; NULL: rows go to their place */
} reader;

static void leave_with_message(j_common_ptr d) {
    reader *r = d->client_data;
    d->err->format_message(d, r->reason);
    longjmp(r->leave, 1);
}

/* Warnings: only an early end is an error, as in TensorFlow. */
static void note(j_common_ptr d, int level) {
    reader *r = d->client_data;
    if (level == -1 && d->err->msg_code == JWRN_JPEG_EOF && !r->recover)
        leave_with_message(d);
}

static void say_nothing(j_common_ptr d) {
    (void)d;
}

static void limit_scans(j_common_ptr d) {
    reader *r = d->client_data;
    if (r->d.input_scan_number <= MAX_SCANS)
        return;
    snprintf(r->reason, sizeof r->reason, "it has more than %d scans", MAX_SCANS);
    longjmp(r->leave, 1);
}

static snug_status fail(const reader *r, snug_error *err) {
    const size_t left = r->d.src ? r->d.src->bytes_in_buffer : 0;
    const bool ended = r->errors.msg_code == JWRN_JPEG_EOF;
    if (r->memory.refused.code != SNUG_OK)
        return sn_fail(err, r->memory.refused.code, "%s cannot be decoded: %s", r->source->name,
                       r->memory.refused.text);
    return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                      "cannot decode %s as JPEG at byte %zu: %s%s", r->source->name,
                      ended || left > r->source->n ? r->source->n : r->source->n - left, r->reason,
                      ended ? "; the file is truncated: get a whole copy" : "");
}

static void set_colours(reader *r, int channels) {
    const J_COLOR_SPACE from = r->d.jpeg_color_space;
    const bool four = from == JCS_CMYK || from == JCS_YCCK;
    if (channels == 0)
        channels = r->d.num_components == 1 ? 1 : 3;
    r->d.out_color_space = channels == 1 ? JCS_GRAYSCALE : four ? JCS_CMYK : JCS_RGB;
}

/* Halves as long as the picture stays as large as is wanted. */
static unsigned ratio_of(const reader *r, const sn_picture_options *o) {
    unsigned ratio = o->at_least[0] > 0 ? 1 : (unsigned)o->ratio;
    while (o->at_least[0] > 0 && ratio < 8 && r->d.image_height / (2 * ratio) >= o->at_least[0] &&
           r->d.image_width / (2 * ratio) >= o->at_least[1])
        ratio *= 2;
    return ratio;
}

/* False: r->reason says why. */
static bool read_head(reader *r, const sn_picture_options *o) {
    if (setjmp(r->leave))
        return false;
    jpeg_create_decompress(&r->d);
    if (r->engine)
        sn_jpeg_memory_set(&r->memory, r->engine, (j_common_ptr)&r->d);
    jpeg_mem_src(&r->d, r->source->bytes, (unsigned long)r->source->n);
    (void)jpeg_read_header(&r->d, TRUE);
    set_colours(r, o->channels);
    r->d.dct_method = o->fast_dct ? JDCT_IFAST : JDCT_ISLOW;
    r->d.do_fancy_upsampling = o->fancy;
    r->d.scale_num = 1;
    r->d.scale_denom = ratio_of(r, o);
    jpeg_calc_output_dimensions(&r->d);
    return true;
}

/* As TensorFlow turns them. */
static void cmyk_to_rgb(const unsigned char *from, unsigned char *to, size_t n, bool adobe) {
    for (size_t i = 0; i < n; i++) {
        const int k = from[4 * i + 3];
        for (size_t c = 0; c < 3; c++) {
            const int v = from[4 * i + c];
            to[3 * i + c] = (unsigned char)(adobe ? v * k / 255 : (255 - v) * (255 - k) / 255);
        }
    }
}

static bool read_rows(reader *r) {
    if (setjmp(r->leave))
        return false;
    (void)jpeg_start_decompress(&r->d);
    const size_t row = (size_t)r->picture.type.dims[1] * (size_t)r->picture.type.dims[2];
    unsigned char *to = r->picture.data;
    while (r->d.output_scanline < r->d.output_height) {
        unsigned char *line = to + (r->rows ? 0 : row * r->d.output_scanline);
        JSAMPROW target = r->cmyk ? r->cmyk : line;
        if (jpeg_read_scanlines(&r->d, &target, 1) == 0)
            return false;
        if (r->cmyk)
            cmyk_to_rgb(r->cmyk, line, r->d.output_width, r->d.saw_Adobe_marker);
        if (r->rows)
            r->rows->row(r->rows->ctx, line);
    }
    return true;
}

/* Of one colour: rows that wait for each other, and every coefficient of a file of several
 * scans. */
static bool add_colour(const reader *r, const jpeg_component_info *k, bool scans, size_t *all) {
    const size_t width = (size_t)k->width_in_blocks + (size_t)k->h_samp_factor;
    const size_t height = (size_t)k->height_in_blocks + (size_t)k->v_samp_factor;
    const size_t lines = 14 * (size_t)k->v_samp_factor + (size_t)r->d.max_v_samp_factor;
    size_t rows, blocks;
    return sn_size_mul(width * DCTSIZE + r->d.output_width, lines, &rows) &&
           sn_size_add(*all, rows, all) && sn_size_mul(width, scans ? height : 0, &blocks) &&
           sn_size_mul(blocks, sizeof(JBLOCK), &blocks) && sn_size_add(*all, blocks, all);
}

/* What decoding takes, by the header, and what it makes: asked for as one, so that a refusal has
 * the number that would do. */
static snug_status ask(const reader *r, size_t made, snug_error *err) {
    const bool scans = jpeg_has_multiple_scans((j_decompress_ptr)&r->d);
    size_t all = made;
    bool fits = true;
    for (int i = 0; i < r->d.num_components && fits; i++)
        fits = add_colour(r, &r->d.comp_info[i], scans, &all);
    if (!fits)
        return sn_fail(err, SNUG_E_OVERFLOW, "%s: the picture exceeds the address space",
                       r->source->name);
    return sn_picture_ask(r->engine, r->source, scans ? "several scans" : NULL,
                          (const int64_t[]){r->d.image_height, r->d.image_width}, all, err);
}

/* A place for the picture, or for one row of it. */
static snug_status make_place(reader *r, const int64_t extents[3], snug_error *err) {
    const size_t row = (size_t)extents[1] * (size_t)extents[2];
    /* All pixels of the file are gone through, also for a picture of an eighth of its size. */
    const int64_t header[3] = {r->d.image_height, r->d.image_width, 0};
    SNUG_TRY(sn_picture_check(r->source, header, err));
    SNUG_TRY(ask(r, r->rows ? row : row * (size_t)extents[0], err));
    if (!r->rows)
        return sn_picture_create(r->engine, r->source, extents, &r->picture, err);
    SNUG_TRY(r->rows->begin(r->rows->ctx, extents, err));
    return sn_picture_create(r->engine, r->source, (const int64_t[]){1, extents[1], extents[2]},
                             &r->picture, err);
}

/* The header is read; *out on success. */
static snug_status decode(reader *r, snug_datum *out, snug_error *err) {
    const bool cmyk = r->d.out_color_space == JCS_CMYK;
    const int64_t extents[3] = {r->d.output_height, r->d.output_width,
                                cmyk ? 3 : r->d.out_color_components};
    snug_datum row = {.data = NULL};
    SNUG_TRY(make_place(r, extents, err));
    snug_status status = SNUG_OK;
    if (cmyk)
        status = sn_scratch(r->engine, (size_t)r->d.output_width * 4, &row, err);
    r->cmyk = row.data;
    if (status == SNUG_OK && !read_rows(r))
        status = fail(r, err);
    if (row.data)
        snug_datum_drop(&row);
    if (status != SNUG_OK || r->rows)
        snug_datum_drop(&r->picture);
    if (status == SNUG_OK)
        *out = r->picture;
    return status;
}

/* Checks the first bytes and reads the header; the reader is to be destroyed in any case. */
static snug_status begin(reader *r, const sn_picture_options *o, snug_error *err) {
    r->recover = o->recover;
    r->d.client_data = r;
    r->d.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = leave_with_message;
    r->errors.emit_message = note;
    r->errors.output_message = say_nothing;
    r->progress.progress_monitor = limit_scans;
    if (sn_picture_guess(r->source->bytes, r->source->n) != SN_PICTURE_JPEG)
        return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                          "%s is no JPEG picture: it does not start with ff d8 ff",
                          r->source->name);
    const bool head = read_head(r, o);
    r->d.progress = &r->progress;
    return head ? SNUG_OK : fail(r, err);
}

snug_status sn_jpeg_read(snug_engine *e, const sn_picture_source *s, const sn_picture_options *o,
                         snug_datum *out, snug_error *err) {
    reader r = {.source = s, .engine = e, .rows = o->rows};
    snug_status status = begin(&r, o, err);
    if (status == SNUG_OK)
        status = decode(&r, out, err);
    jpeg_destroy_decompress(&r.d);
    return status;
}

snug_status sn_jpeg_shape(const sn_picture_source *s, int64_t shape[3], snug_error *err) {
    reader r = {.source = s};
    const snug_status status = begin(&r, &(sn_picture_options){.ratio = 1}, err);
    if (status == SNUG_OK) {
        shape[0] = r.d.image_height;
        shape[1] = r.d.image_width;
        shape[2] = r.d.num_components;
    }
    jpeg_destroy_decompress(&r.d);
    return status;
}
