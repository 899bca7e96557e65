/* pictures.c: names of files, or numbers, to pictures of one size (snug_dataset_pictures): a map
 * whose workers read, decode, resize, scale and augment.
 *
 * Invariants:
 * 1. Random changes are keyed by seed and element, so any number of workers makes the same
 *    pictures. */
#include "data/augment.h"
#include "data/stage.h"

#include "base/rng.h"

#include <snug/data_ops.h>

#include <stdio.h>
#include <string.h>

typedef struct {
    snug_engine *engine;
    sn_picture_size size;
    float scale;
    uint64_t seed;
    sn_augment augment;
    bool augments;
    snug_data_op *read, *decode;
} loader;

static snug_status call_op(const snug_data_op *op, const snug_datum *in, snug_datum *out,
                           snug_error *err) {
    int n;
    return snug_data_op_call(op, 0, in, 1, out, 1, &n, err);
}

/* A file's name to numbers of the wanted size, 0 to 255. */
static snug_status load(const loader *l, const snug_datum *name, snug_datum *out, snug_error *err) {
    const snug_text *path = name->data;
    snug_datum bytes;
    SNUG_TRY(call_op(l->read, name, &bytes, err));
    const snug_status status = call_op(l->decode, &bytes, out, err);
    snug_datum_drop(&bytes);
    return status == SNUG_OK ? SNUG_OK
                             : sn_fail_in(err, status, "'%.*s'", (int)path->bytes, path->data);
}

static snug_status copy_numbers(const loader *l, const snug_datum *in, snug_datum *out,
                                snug_error *err) {
    const snug_type type = {SNUG_F32, 3, {l->size.height, l->size.width, l->size.channels}};
    if (!sn_dims_equal(&in->type, &type)) {
        char have[192], want[192];
        return sn_fail(err, SNUG_E_SHAPE, "a picture is %s, not %s",
                       snug_type_print(&in->type, have, sizeof have),
                       snug_type_print(&type, want, sizeof want));
    }
    SNUG_TRY(snug_datum_create(l->engine, &type, out, err));
    const snug_status status = sn_convert(in->type.dtype, in->data, SNUG_F32, out->data,
                                          (size_t)sn_type_count(&type), err);
    if (status != SNUG_OK)
        snug_datum_drop(out);
    return status;
}

static snug_status augment(const loader *l, int64_t index, snug_datum *picture, snug_error *err) {
    snug_datum spare;
    SNUG_TRY(snug_datum_create(l->engine, &picture->type, &spare, err));
    sn_augment_run(&l->augment, l->size, (double)l->scale * 255,
                   sn_rng_key(l->seed, (uint64_t)index), picture->data, spare.data);
    snug_datum_drop(&spare);
    return SNUG_OK;
}

static snug_status call(void *ctx, void *worker, const snug_element *in, snug_element *out,
                        snug_error *err) {
    const loader *l = ctx;
    (void)worker;
    snug_datum picture;
    SNUG_TRY((in->part[0].is_text ? load : copy_numbers)(l, &in->part[0], &picture, err));
    const int64_t n = sn_type_count(&picture.type);
    for (int64_t i = 0; i < n && l->scale != 1; i++)
        ((float *)picture.data)[i] *= l->scale;
    const snug_status status = l->augments ? augment(l, in->index, &picture, err) : SNUG_OK;
    if (status != SNUG_OK) {
        snug_datum_drop(&picture);
        return status;
    }
    out->part[0] = picture;
    for (int i = 1; i < in->n; i++) {
        out->part[i] = in->part[i];
        snug_datum_hold(&in->part[i]);
    }
    out->n = in->n;
    return SNUG_OK;
}

static snug_status spec_of(void *ctx, const snug_spec *in, snug_spec *out, snug_error *err) {
    const loader *l = ctx;
    (void)err;
    *out = *in;
    out->is_text[0] = 0;
    out->type[0] = (snug_type){SNUG_F32, 3, {l->size.height, l->size.width, l->size.channels}};
    return SNUG_OK;
}

static void release(void *ctx) {
    loader *l = ctx;
    snug_data_op_destroy(l->read);
    snug_data_op_destroy(l->decode);
    sn_free(l->engine, SN_MEM_INPUT, l, sizeof *l);
}

static snug_text text_of(const char *text) {
    return (snug_text){text, strlen(text)};
}

static snug_status make_ops(loader *l, snug_error *err) {
    char channels[24], size[64];
    snprintf(channels, sizeof channels, "%lld", (long long)l->size.channels);
    snprintf(size, sizeof size, "[%lld,%lld]", (long long)l->size.height, (long long)l->size.width);
    const snug_data_attr decode[] = {{"channels", text_of(channels)}, {"size", text_of(size)}};
    SNUG_TRY(snug_data_op_create(l->engine, "tf.io.read_file", NULL, 0, &l->read, err));
    return snug_data_op_create(l->engine, "snug.image.decode_resize", decode, 2, &l->decode, err);
}

static snug_status make_loader(snug_engine *e, const snug_pictures *o, loader **out,
                               snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(loader), &block, err));
    loader *l = block;
    l->engine = e;
    l->size = (sn_picture_size){o->height, o->width, o->channels ? o->channels : 3};
    l->scale = (float)((o->scale != 0 ? o->scale : 1) / 255);
    l->seed = o->seed;
    l->augments = o->augment && o->augment[0];
    snug_status status = sn_augment_parse(o->augment, l->size, &l->augment, err);
    if (status == SNUG_OK)
        status = make_ops(l, err);
    if (status == SNUG_OK)
        *out = l;
    else
        release(l);
    return status;
}

snug_status snug_dataset_pictures(snug_dataset *d, const snug_pictures *o, snug_dataset **out,
                                  snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_status status = SNUG_OK;
    loader *l = NULL;
    if (!d || !o || !out || o->height < 1 || o->width < 1 || o->channels < 0)
        status = sn_fail(err, SNUG_E_INVALID,
                         "snug_dataset_pictures: an argument is NULL, or the size is not positive");
    else if (d->spec.n < 1)
        status = sn_fail(err, SNUG_E_SHAPE, "elements without parts hold no picture");
    if (status == SNUG_OK)
        status = make_loader(d->engine, o, &l, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    const snug_mapper f = {.ctx = l, .release = release, .spec = spec_of, .call = call};
    status = snug_dataset_map(d, &f, &o->map, out, err);
    if (status != SNUG_OK)
        release(l);
    return status;
}
