/* ops_jpeg.c: what tf.io and tf.image offer for JPEG alone: looking at a header, a part of a
 * picture, a picture as a file of lower quality would show it. */
#include "codec/picture.h"
#include "codec/picture_write.h"

#include <string.h>

snug_status sn_data_is_jpeg(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    snug_type type = c->in[0].type;
    type.dtype = SNUG_BOOL;
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++) {
        const snug_text *t = &sn_texts_of(&c->in[0])[i];
        ((unsigned char *)c->out[0].data)[i] =
            sn_picture_guess((const unsigned char *)t->data, t->bytes) == SN_PICTURE_JPEG;
    }
    c->n_out = 1;
    return SNUG_OK;
}

/* The one text of a call; name holds SN_ORIGIN_TEXT. */
static snug_status source_of(const sn_data_call *c, char *name, sn_picture_source *out,
                             snug_error *err) {
    char me[64];
    SNUG_TRY(sn_data_want_text(c, 0, err));
    if (sn_datum_count(&c->in[0]) != 1)
        return sn_fail(err, SNUG_E_SHAPE, "%s takes one text", sn_data_name(c->op, me, sizeof me));
    const snug_text *t = sn_texts_of(&c->in[0]);
    *out = (sn_picture_source){(const unsigned char *)t->data, t->bytes,
                               sn_origin_print(&c->in[0], t, name, SN_ORIGIN_TEXT)};
    return SNUG_OK;
}

snug_status sn_data_jpeg_shape(sn_data_call *c, snug_error *err) {
    char name[SN_ORIGIN_TEXT];
    sn_picture_source s;
    int64_t shape[3];
    snug_type type = {SNUG_I32, 1, {3}};
    SNUG_TRY(sn_data_dtype(c->op, "output_type", &type.dtype, err));
    SNUG_TRY(source_of(c, name, &s, err));
    SNUG_TRY(sn_jpeg_shape(&s, shape, err));
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    if (type.dtype == SNUG_I64)
        memcpy(c->out[0].data, shape, sizeof shape);
    for (int i = 0; i < 3 && type.dtype == SNUG_I32; i++)
        ((int32_t *)c->out[0].data)[i] = (int32_t)shape[i];
    c->n_out = 1;
    return SNUG_OK;
}

snug_status sn_spec_three(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                          snug_error *err) {
    (void)in;
    out->n = 1;
    out->type[0] = (snug_type){SNUG_I32, 1, {3}};
    SNUG_TRY(sn_data_dtype(op, "output_type", &out->type[0].dtype, err));
    return out->type[0].dtype == SNUG_I32 || out->type[0].dtype == SNUG_I64
               ? SNUG_OK
               : sn_fail(err, SNUG_E_INVALID,
                         "tf.io.extract_jpeg_shape: output_type is int32 or int64");
}

/* --- a part ----------------------------------------------------------------------------------- */
/* Rows [at[0], at[0] + at[2]), columns [at[1], at[1] + at[3]) of a picture. */
static snug_status cut(sn_data_call *c, const snug_datum *picture, const int64_t at[4],
                       snug_error *err) {
    const int64_t *d = picture->type.dims;
    if (at[0] < 0 || at[1] < 0 || at[2] < 1 || at[3] < 1 || at[2] > d[0] - at[0] ||
        at[3] > d[1] - at[1])
        return sn_fail(err, SNUG_E_INVALID,
                       "crop_window [%lld, %lld, %lld, %lld] does not lie in a picture of %lld "
                       "rows and %lld columns",
                       (long long)at[0], (long long)at[1], (long long)at[2], (long long)at[3],
                       (long long)d[0], (long long)d[1]);
    const snug_type type = {SNUG_U8, 3, {at[2], at[3], d[2]}};
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    const size_t row = (size_t)(at[3] * d[2]);
    for (int64_t i = 0; i < at[2]; i++)
        memcpy((char *)c->out[0].data + (size_t)i * row,
               (const char *)picture->data + ((at[0] + i) * d[1] + at[1]) * d[2], row);
    c->n_out = 1;
    return SNUG_OK;
}

snug_status sn_data_crop_jpeg(sn_data_call *c, snug_error *err) {
    int64_t at[4];
    snug_datum picture;
    sn_data_call whole = *c;
    if (sn_data_ints(c->op, "crop_window", at, 4) != 4)
        return sn_fail(err, SNUG_E_INVALID, "crop_window is [row, column, height, width]");
    whole.out = &picture;
    whole.max = 1;
    SNUG_TRY(sn_data_decode_jpeg(&whole, err));
    const snug_status status = cut(c, &picture, at, err);
    snug_datum_drop(&picture);
    return status;
}

snug_status sn_spec_crop_jpeg(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                              snug_error *err) {
    int64_t at[4];
    SNUG_TRY(sn_spec_picture(op, in, out, err));
    if (sn_data_ints(op, "crop_window", at, 4) == 4)
        memcpy(out->type[0].dims, at + 2, 2 * sizeof *at);
    return SNUG_OK;
}

/* --- a lower quality -------------------------------------------------------------------------- */
/* Floats of [0, 1] as bytes, and back, as tf.image.convert_image_dtype turns them. */
static snug_status to_bytes(sn_data_call *c, const snug_datum *in, snug_datum *out,
                            snug_error *err) {
    snug_type type = in->type;
    type.dtype = SNUG_U8;
    SNUG_TRY(snug_datum_create(c->engine, &type, out, err));
    const float *from = in->data;
    for (size_t i = 0; i < out->bytes; i++) {
        const float v = from[i] * 255.5f;
        ((unsigned char *)out->data)[i] = (unsigned char)(v > 0 ? v < 255 ? v : 255 : 0);
    }
    return SNUG_OK;
}

static snug_status to_floats(sn_data_call *c, const snug_datum *in, snug_datum *out,
                             snug_error *err) {
    snug_type type = in->type;
    type.dtype = SNUG_F32;
    SNUG_TRY(snug_datum_create(c->engine, &type, out, err));
    for (size_t i = 0; i < in->bytes; i++)
        ((float *)out->data)[i] = (float)((unsigned char *)in->data)[i] * (1.0f / 255.0f);
    return SNUG_OK;
}

static snug_status through_jpeg(sn_data_call *c, const snug_datum *picture, snug_datum *out,
                                snug_error *err) {
    const int64_t quality = sn_data_int(c->op, "jpeg_quality");
    const snug_type *t = &picture->type;
    if (quality < 0 || quality > 100 || t->dims[0] < 1 || t->dims[1] < 1 || t->dims[0] > 65500 ||
        t->dims[1] > 65500)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.image.adjust_jpeg_quality: quality %lld, or a "
                       "picture without pixels",
                       (long long)quality);
    const sn_jpeg_options o = {.quality = (int)quality, .downsample = true};
    sn_growing bytes;
    SNUG_TRY(sn_growing_begin(c->engine, 4096 + picture->bytes / 4, &bytes, err));
    snug_status status = sn_jpeg_write(picture, &o, &bytes, err);
    const sn_picture_source s = {bytes.block.data, bytes.n, "the picture"};
    if (status == SNUG_OK)
        status = sn_jpeg_read(c->engine, &s,
                              &(sn_picture_options){.ratio = 1, .fancy = true, .fast_dct = true},
                              out, err);
    sn_growing_end(&bytes);
    return status;
}

snug_status sn_data_jpeg_quality(sn_data_call *c, snug_error *err) {
    const snug_datum *in = &c->in[0];
    snug_datum bytes = {.data = NULL}, seen = {.data = NULL};
    SNUG_TRY(sn_data_want_number(c, 0, err));
    if (in->type.rank != 3 || (in->type.dims[2] != 3 && in->type.dims[2] != 1) ||
        (in->type.dtype != SNUG_U8 && in->type.dtype != SNUG_F32))
        return sn_fail(
            err, SNUG_E_SHAPE,
            "tf.image.adjust_jpeg_quality takes a picture [H, W, 3] of uint8 or float32");
    const bool real = in->type.dtype == SNUG_F32;
    snug_status status = real ? to_bytes(c, in, &bytes, err) : SNUG_OK;
    if (status == SNUG_OK)
        status = through_jpeg(c, real ? &bytes : in, real ? &seen : &c->out[0], err);
    if (status == SNUG_OK && real)
        status = to_floats(c, &seen, &c->out[0], err);
    snug_datum_drop(&bytes);
    snug_datum_drop(&seen);
    c->n_out = status == SNUG_OK;
    return status;
}

snug_status sn_spec_same(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                         snug_error *err) {
    (void)op;
    (void)err;
    out->n = 1;
    out->type[0] = in->type[0];
    out->is_text[0] = in->is_text[0];
    return SNUG_OK;
}

snug_status sn_spec_texts(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                          snug_error *err) {
    (void)op;
    (void)in;
    (void)err;
    out->n = 1;
    out->is_text[0] = 1;
    out->type[0] = (snug_type){SNUG_OPAQUE, 1, {-1}};
    return SNUG_OK;
}
