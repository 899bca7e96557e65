/* ops_picture.c: the rows that decode pictures, and what all formats share. */
#include "codec/picture.h"
#include "codec/resizing.h"
#include "memory/pool.h"

#include <string.h>

sn_picture_kind sn_picture_guess(const unsigned char *b, size_t n) {
    if (n >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff)
        return SN_PICTURE_JPEG;
    if (n >= 8 && memcmp(b, "\x89PNG\r\n\x1a\n", 8) == 0)
        return SN_PICTURE_PNG;
    if (n >= 6 && (memcmp(b, "GIF87a", 6) == 0 || memcmp(b, "GIF89a", 6) == 0))
        return SN_PICTURE_GIF;
    if (n >= 2 && b[0] == 'B' && b[1] == 'M')
        return SN_PICTURE_BMP;
    return SN_PICTURE_NONE;
}

snug_status sn_picture_check(const sn_picture_source *s, const int64_t extents[3],
                             snug_error *err) {
    const int64_t h = extents[0], w = extents[1];
    if (h <= 0 || w <= 0)
        return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                          "%s: its header says %lld x %lld pixels", s->name, (long long)w,
                          (long long)h);
    if (h > SN_MAX_PIXELS / w)
        return sn_fail_by(
            err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
            "%s: its header says %lld x %lld pixels, more than the limit of %lld; make "
            "it smaller before training",
            s->name, (long long)w, (long long)h, (long long)SN_MAX_PIXELS);
    return SNUG_OK;
}

snug_status sn_picture_create(snug_engine *e, const sn_picture_source *s, const int64_t extents[3],
                              snug_datum *out, snug_error *err) {
    SNUG_TRY(sn_picture_check(s, extents, err));
    const snug_type type = {
        .dtype = SNUG_U8, .rank = 3, .dims = {extents[0], extents[1], extents[2]}};
    return snug_datum_create(e, &type, out, err);
}

/* Below this what a refusal of a part of it says is near enough. */
#define WORTH_ASKING ((size_t)1 << 20)

snug_status sn_picture_ask(snug_engine *e, const sn_picture_source *s, const char *how,
                           const int64_t extents[2], size_t bytes, snug_error *err) {
    snug_error why;
    char all[24];
    const snug_status status =
        bytes < WORTH_ASKING ? SNUG_OK : sn_pool_ask(e, bytes, "to decode it", &why);
    if (status == SNUG_OK)
        return SNUG_OK;
    return sn_fail(err, status,
                   "%s: its header says %lld x %lld pixels%s%s, which take %s to decode: %s; or "
                   "make the picture smaller",
                   s->name, (long long)extents[1], (long long)extents[0], how ? " in " : "",
                   how ? how : "", snug_bytes_print(bytes, all, sizeof all), why.text);
}

/* --- rows ------------------------------------------------------------------------------------- */
static snug_status check_channels(const sn_data_call *c, int64_t channels, const char *allowed,
                                  snug_error *err) {
    char me[64];
    if (channels >= 0 && channels <= 4 && strchr(allowed, '0' + (char)channels))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s: channels=%lld; there are %s",
                   sn_data_name(c->op, me, sizeof me), (long long)channels, allowed);
}

static snug_status check_kind(sn_picture_kind kind, const sn_picture_source *s,
                              const sn_picture_options *o, snug_error *err) {
    if (kind == SN_PICTURE_JPEG && (o->channels == 2 || o->channels == 4))
        return sn_fail(err, SNUG_E_INVALID, "%s: JPEG pictures have 1 or 3 channels, not %d",
                       s->name, o->channels);
    if (kind == SN_PICTURE_GIF && o->channels != 0 && o->channels != 3)
        return sn_fail(err, SNUG_E_INVALID, "%s: GIF pictures have 3 channels, not %d", s->name,
                       o->channels);
    return SNUG_OK;
}

/* As TensorFlow's, decode_jpeg and decode_png take JPEG, PNG and GIF pictures; what is none of them
 * is refused by the reader of the one that was asked for. */
static snug_status read_still(snug_engine *e, const sn_picture_source *s,
                              const sn_picture_options *o, snug_datum *out, snug_error *err) {
    const sn_picture_read readers[] = {o->otherwise, sn_jpeg_read, sn_png_read, sn_gif_read,
                                       o->otherwise};
    const sn_picture_kind kind = sn_picture_guess(s->bytes, s->n);
    SNUG_TRY(check_kind(kind, s, o, err));
    return readers[kind](e, s, o, out, err);
}

static snug_status decode_with(sn_data_call *c, sn_picture_read read, const sn_picture_options *o,
                               snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    char me[64], name[SN_ORIGIN_TEXT];
    if (sn_datum_count(&c->in[0]) != 1)
        return sn_fail(err, SNUG_E_SHAPE, "%s takes one text, not %lld; use map",
                       sn_data_name(c->op, me, sizeof me), (long long)sn_datum_count(&c->in[0]));
    const snug_text *t = sn_texts_of(&c->in[0]);
    const sn_picture_source s = {(const unsigned char *)t->data, t->bytes,
                                 sn_origin_print(&c->in[0], t, name, sizeof name)};
    SNUG_TRY(read(c->engine, &s, o, &c->out[0], err));
    c->n_out = 1;
    return SNUG_OK;
}

static snug_status whole_jpeg_only(const sn_data_call *c, snug_error *err) {
    const double part = sn_data_number(c->op, "acceptable_fraction");
    return part == 1 ? SNUG_OK
                     : sn_fail(err, SNUG_E_UNSUPPORTED,
                               "tf.io.decode_jpeg: acceptable_fraction=%g is not in Snug; there is "
                               "try_recover_truncated=True",
                               part);
}

snug_status sn_data_decode_jpeg(sn_data_call *c, snug_error *err) {
    const int64_t channels = sn_data_int(c->op, "channels"), ratio = sn_data_int(c->op, "ratio");
    const snug_text dct = sn_data_text(c->op, "dct_method");
    SNUG_TRY(check_channels(c, channels, "0, 1, 3 and 4", err));
    SNUG_TRY(whole_jpeg_only(c, err));
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.io.decode_jpeg: ratio=%lld; there are 1, 2, 4 and 8", (long long)ratio);
    return decode_with(
        c, read_still,
        &(sn_picture_options){
            .otherwise = sn_jpeg_read,
            .channels = (int)channels,
            .ratio = (int)ratio,
            .fancy = sn_data_bool(c->op, "fancy_upscaling"),
            .recover = sn_data_bool(c->op, "try_recover_truncated"),
            .fast_dct = dct.bytes != 16 || memcmp(dct.data, "INTEGER_ACCURATE", 16) != 0,
        },
        err);
}

snug_status sn_data_decode_png(sn_data_call *c, snug_error *err) {
    const int64_t channels = sn_data_int(c->op, "channels");
    snug_dtype dtype;
    SNUG_TRY(sn_data_dtype(c->op, "dtype", &dtype, err));
    if (dtype != SNUG_U8)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "tf.io.decode_png gives uint8 alone in Snug");
    SNUG_TRY(check_channels(c, channels, "0, 1, 2, 3 and 4", err));
    const sn_picture_options o = {.otherwise = sn_png_read,
                                  .channels = (int)channels,
                                  .ratio = 1,
                                  .fancy = true,
                                  .fast_dct = true};
    return decode_with(c, read_still, &o, err);
}

snug_status sn_data_decode_bmp(sn_data_call *c, snug_error *err) {
    const int64_t channels = sn_data_int(c->op, "channels");
    SNUG_TRY(check_channels(c, channels, "0, 1, 3 and 4", err));
    return decode_with(c, sn_bmp_read, &(sn_picture_options){.channels = (int)channels}, err);
}

snug_status sn_data_decode_gif(sn_data_call *c, snug_error *err) {
    return decode_with(c, sn_gif_read, &(sn_picture_options){.all_frames = true}, err);
}

/* Any of the formats, by its first bytes. */
static snug_status read_any(snug_engine *e, const sn_picture_source *s, const sn_picture_options *o,
                            snug_datum *out, snug_error *err) {
    static const sn_picture_read readers[] = {NULL, sn_jpeg_read, sn_png_read, sn_gif_read,
                                              sn_bmp_read};
    const sn_picture_kind kind = sn_picture_guess(s->bytes, s->n);
    if (kind == SN_PICTURE_NONE)
        return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                          "%s is no picture: its first bytes are none of JPEG, PNG, GIF or BMP",
                          s->name);
    SNUG_TRY(check_kind(kind, s, o, err));
    return readers[kind](e, s, o, out, err);
}

/* Bytes as floats from 0 to 1, as tf.image.convert_image_dtype makes them. */
static snug_status scale_to_floats(sn_data_call *c, snug_error *err) {
    snug_type type = c->out[0].type;
    type.dtype = SNUG_F32;
    snug_datum floats;
    SNUG_TRY(snug_datum_create(c->engine, &type, &floats, err));
    const unsigned char *from = c->out[0].data;
    float *to = floats.data;
    for (size_t i = 0; i < c->out[0].bytes; i++)
        to[i] = (float)from[i] * (1.0f / 255.0f);
    snug_datum_drop(&c->out[0]);
    c->out[0] = floats;
    return SNUG_OK;
}

snug_status sn_data_decode_image(sn_data_call *c, snug_error *err) {
    const int64_t channels = sn_data_int(c->op, "channels");
    snug_dtype dtype;
    SNUG_TRY(sn_data_dtype(c->op, "dtype", &dtype, err));
    SNUG_TRY(check_channels(c, channels, "0, 1, 2, 3 and 4", err));
    if (dtype != SNUG_U8 && dtype != SNUG_F32)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "tf.io.decode_image gives uint8 or float32");
    const sn_picture_options o = {.channels = (int)channels,
                                  .ratio = 1,
                                  .fancy = true,
                                  .fast_dct = true,
                                  .all_frames = sn_data_bool(c->op, "expand_animations")};
    SNUG_TRY(decode_with(c, read_any, &o, err));
    if (dtype == SNUG_U8)
        return SNUG_OK;
    const snug_status status = scale_to_floats(c, err);
    if (status != SNUG_OK) {
        snug_datum_drop(&c->out[0]);
        c->n_out = 0;
    }
    return status;
}

/* A picture of any format in another size, in one step. With fast, JPEG pictures are decoded at a
 * half, a quarter or an eighth where that is still as large: several times quicker, and smoother
 * than a resize of the whole picture. */
snug_status sn_data_decode_resize(sn_data_call *c, snug_error *err) {
    const int64_t channels = sn_data_int(c->op, "channels");
    SNUG_TRY(check_channels(c, channels, "0, 1, 2, 3 and 4", err));
    sn_picture_options o = {.channels = (int)channels, .ratio = 1, .fancy = true, .fast_dct = true};
    if (sn_data_bool(c->op, "fast") && !sn_data_bool(c->op, "preserve_aspect_ratio"))
        (void)sn_data_ints(c->op, "size", o.at_least, 2);
    snug_datum picture;
    sn_resizing resizing;
    sn_picture_rows rows;
    sn_data_call decode = *c, resize = *c;
    decode.out = &picture;
    o.rows = sn_resizing_init(&resizing, c, &rows) ? &rows : NULL;
    const snug_status status = decode_with(&decode, read_any, &o, err);
    if (status != SNUG_OK || !picture.data) {
        c->n_out = status == SNUG_OK;
        return sn_resizing_end(&resizing, status);
    }
    resize.in = &picture;
    const snug_status resized = sn_data_resize(&resize, err);
    snug_datum_drop(&picture);
    c->n_out = resize.n_out;
    return resized;
}

snug_status sn_spec_decode_resize(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                                  snug_error *err) {
    snug_spec picture = {.n = 0};
    SNUG_TRY(sn_spec_picture(op, in, &picture, err));
    return sn_spec_resize(op, &picture, out, err);
}

/* --- specs ------------------------------------------------------------------------------------ */
snug_status sn_spec_picture(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                            snug_error *err) {
    (void)in;
    (void)err;
    const int64_t channels = sn_data_int(op, "channels");
    out->n = 1;
    out->type[0] =
        (snug_type){.dtype = SNUG_U8, .rank = 3, .dims = {-1, -1, channels > 0 ? channels : -1}};
    return SNUG_OK;
}

snug_status sn_spec_frames(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                           snug_error *err) {
    (void)op;
    (void)in;
    (void)err;
    out->n = 1;
    out->type[0] = (snug_type){.dtype = SNUG_U8, .rank = 4, .dims = {-1, -1, -1, 3}};
    return SNUG_OK;
}

/* With animations not even the rank is known before. */
snug_status sn_spec_image(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                          snug_error *err) {
    SNUG_TRY(sn_spec_picture(op, in, out, err));
    SNUG_TRY(sn_data_dtype(op, "dtype", &out->type[0].dtype, err));
    if (sn_data_bool(op, "expand_animations"))
        out->type[0].rank = -1;
    return SNUG_OK;
}
