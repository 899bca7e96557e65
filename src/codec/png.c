/* png.c: PNG pictures through libpng, row by row into their place, with TensorFlow's choices of
 * channels: an even number has alpha, below three is grey.
 *
 * libpng's errors do not return, so they leave by longjmp, to setjmp in `read_head` and `read_rows`
 * and nowhere else. All that is needed behind the jump lives in the `reader`, never in a local. Its
 * memory comes from the pool and is on the ledger. */
#include "codec/picture.h"

#include "base/size.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

typedef struct {
    snug_engine *engine;
    const sn_picture_source *source;
    size_t at; /* of the next byte */
    png_structp png;
    png_infop info;
    jmp_buf leave;
    char reason[128];
    int passes, channels;
    int64_t height;
    const sn_picture_rows *rows; /* who gets them one by one; NULL: the picture */
    snug_datum picture;          /* or one row */
    snug_error refused;          /* why there was no memory; code SNUG_OK: there was */
} reader;

static void leave_with_message(png_structp png, png_const_charp message) {
    reader *r = png_get_error_ptr(png);
    snprintf(r->reason, sizeof r->reason, "%s", message);
    longjmp(r->leave, 1);
}

static void say_nothing(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void give_bytes(png_structp png, png_bytep to, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->source->n - r->at) {
        r->at = r->source->n;
        png_error(png, "the file is truncated");
    }
    memcpy(to, r->source->bytes + r->at, n);
    r->at += n;
}

/* A block from the pool knows its datum: it stands in front. */
#define FRONT 128
_Static_assert(sizeof(snug_datum) <= FRONT, "the front holds a datum");

static png_voidp take(png_structp png, png_alloc_size_t n) {
    reader *r = png_get_mem_ptr(png);
    snug_datum d;
    size_t bytes;
    snug_error *why = &r->refused;
    if (!sn_size_add(n, FRONT, &bytes)) {
        sn_fail(why, SNUG_E_OVERFLOW, "%zu bytes exceed the address space", (size_t)n);
        return NULL;
    }
    if (sn_scratch(r->engine, bytes, &d, why) != SNUG_OK)
        return NULL;
    memcpy(d.data, &d, sizeof d);
    return (char *)d.data + FRONT;
}

static void give(png_structp png, png_voidp block) {
    (void)png;
    snug_datum d;
    memcpy(&d, (char *)block - FRONT, sizeof d);
    snug_datum_drop(&d);
}

static snug_status fail(const reader *r, snug_error *err) {
    if (r->refused.code != SNUG_OK)
        return sn_fail(err, r->refused.code, "%s cannot be decoded: %s", r->source->name,
                       r->refused.text);
    return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                      "cannot decode %s as PNG at byte %zu: %s", r->source->name, r->at, r->reason);
}

static void set_alpha(reader *r, int colour) {
    const bool has_alpha = colour & PNG_COLOR_MASK_ALPHA;
    const bool has_mask = png_get_valid(r->png, r->info, PNG_INFO_tRNS) != 0;
    if (r->channels % 2 == 0 && !has_alpha && has_mask)
        png_set_tRNS_to_alpha(r->png);
    else if (r->channels % 2 == 0 && !has_alpha)
        png_set_add_alpha(r->png, (1u << png_get_bit_depth(r->png, r->info)) - 1, PNG_FILLER_AFTER);
    else if (r->channels % 2 == 1 && (has_alpha || has_mask))
        png_set_strip_alpha(r->png);
}

static void set_format(reader *r, int channels) {
    const int colour = png_get_color_type(r->png, r->info),
              depth = png_get_bit_depth(r->png, r->info);
    const bool grey = !(colour & PNG_COLOR_MASK_COLOR), palette = colour == PNG_COLOR_TYPE_PALETTE;
    r->channels = channels;
    if (channels == 0 && palette)
        r->channels = png_get_valid(r->png, r->info, PNG_INFO_tRNS) ? 4 : 3;
    else if (channels == 0)
        r->channels = png_get_channels(r->png, r->info);
    set_alpha(r, colour);
    if (depth > 8)
        png_set_strip_16(r->png);
    if (palette)
        png_set_palette_to_rgb(r->png);
    if (grey && depth < 8)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (grey && r->channels >= 3)
        png_set_gray_to_rgb(r->png);
    else if (!grey && r->channels < 3)
        png_set_rgb_to_gray(r->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    r->passes = png_set_interlace_handling(r->png);
}

static bool read_head(reader *r, int channels) {
    if (setjmp(r->leave))
        return false;
    png_set_read_fn(r->png, r, give_bytes);
    png_set_user_limits(r->png, 0x7fffffff, 0x7fffffff); /* ours are checked before any row */
    png_set_chunk_malloc_max(r->png, 1u << 23);
    png_set_chunk_cache_max(r->png, 64);
    png_read_info(r->png, r->info);
    set_format(r, channels);
    return true;
}

static bool read_rows(reader *r) {
    if (setjmp(r->leave))
        return false;
    png_read_update_info(r->png, r->info);
    const size_t row = (size_t)r->picture.type.dims[1] * (size_t)r->picture.type.dims[2];
    if (png_get_rowbytes(r->png, r->info) != row)
        png_error(r->png, "its rows are not as long as its header says");
    for (int pass = 0; pass < r->passes; pass++)
        for (int64_t i = 0; i < r->height; i++) {
            png_bytep to = (png_bytep)r->picture.data + (r->rows ? 0 : (size_t)i * row);
            png_read_row(r->png, to, NULL);
            if (r->rows)
                r->rows->row(r->rows->ctx, to);
        }
    return true;
}

/* A place for the picture, or for one row of it. */
static snug_status make_place(reader *r, snug_error *err) {
    int64_t extents[3] = {png_get_image_height(r->png, r->info),
                          png_get_image_width(r->png, r->info), r->channels};
    SNUG_TRY(sn_picture_check(r->source, extents, err));
    r->height = extents[0];
    if (r->passes > 1)
        r->rows = NULL; /* they come several times */
    const int64_t kept = r->rows ? 1 : extents[0];
    SNUG_TRY(sn_picture_ask(r->engine, r->source, r->passes > 1 ? "several passes" : NULL, extents,
                            (size_t)(kept * extents[1] * extents[2]), err));
    if (r->rows)
        SNUG_TRY(r->rows->begin(r->rows->ctx, extents, err));
    extents[0] = kept;
    return sn_picture_create(r->engine, r->source, extents, &r->picture, err);
}

static snug_status decode(reader *r, snug_datum *out, snug_error *err) {
    SNUG_TRY(make_place(r, err));
    const snug_status status = read_rows(r) ? SNUG_OK : fail(r, err);
    if (status != SNUG_OK || r->rows)
        snug_datum_drop(&r->picture);
    if (status == SNUG_OK)
        *out = r->picture;
    return status;
}

snug_status sn_png_read(snug_engine *e, const sn_picture_source *s, const sn_picture_options *o,
                        snug_datum *out, snug_error *err) {
    reader r = {.engine = e, .source = s, .rows = o->rows};
    if (sn_picture_guess(s->bytes, s->n) != SN_PICTURE_PNG)
        return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                          "%s is no PNG picture: it does not start with \\x89PNG", s->name);
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, leave_with_message, say_nothing, &r,
                                     take, give);
    if (!r.png)
        return fail(&r, err);
    r.info = png_create_info_struct(r.png);
    const bool head = r.info && read_head(&r, o->channels);
    const snug_status status = head ? decode(&r, out, err) : fail(&r, err);
    png_destroy_read_struct(&r.png, r.info ? &r.info : NULL, NULL);
    return status;
}
