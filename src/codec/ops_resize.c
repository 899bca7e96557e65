/* ops_resize.c: tf.image.resize of pictures whose size is known when they come: one picture
 * [H, W, C] or a batch, from u8 or f32 straight to f32; nearest keeps the dtype. */
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/resizing.h"
#include "kernels/cpu/picture_resize.h"
#include "op/picture_attrs.h"
#include "tensor/feed.h"

#include <math.h>
#include <string.h>

static bool find_method(const snug_text *name, int64_t *out) {
    static const struct {
        const char *name;
        sn_resize_method method;
    } known[] = {{"bilinear", SN_RESIZE_BILINEAR}, {"nearest", SN_RESIZE_NEAREST},
                 {"bicubic", SN_RESIZE_BICUBIC},   {"area", SN_RESIZE_AREA},
                 {"lanczos3", SN_RESIZE_LANCZOS3}, {"lanczos5", SN_RESIZE_LANCZOS5},
                 {"gaussian", SN_RESIZE_GAUSSIAN}, {"mitchellcubic", SN_RESIZE_MITCHELL}};
    for (size_t i = 0; name->data && i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == name->bytes &&
            memcmp(known[i].name, name->data, name->bytes) == 0) {
            *out = (int64_t)known[i].method;
            return true;
        }
    return false;
}

typedef struct {
    int64_t size[2], method;
    bool keep_aspect, antialias;
} resize_options;

snug_status sn_prepare_resize(snug_data_op *op, snug_error *err) {
    void *memory;
    SNUG_TRY(sn_zone_alloc(op->zone, sizeof(resize_options), &memory, err));
    resize_options *o = memory;
    const snug_text method = sn_data_text(op, "method");
    if (!find_method(&method, &o->method))
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.image.resize: method '%.*s'; there are bilinear, nearest, bicubic, "
                       "area, lanczos3, lanczos5, gaussian and mitchellcubic",
                       (int)method.bytes, method.data ? method.data : "");
    if (sn_data_ints(op, "size", o->size, 2) != 2 || o->size[0] < 1 || o->size[1] < 1 ||
        o->size[0] > INT32_MAX || o->size[1] > INT32_MAX)
        return sn_fail(err, SNUG_E_INVALID, "tf.image.resize: size wants a height and a width");
    o->keep_aspect = sn_data_bool(op, "preserve_aspect_ratio");
    o->antialias = sn_data_bool(op, "antialias");
    op->prepared = o;
    return SNUG_OK;
}

/* The extents of the result, in f32 as TensorFlow has them. */
static void result_size(const resize_options *o, int64_t h, int64_t w, int64_t out[2]) {
    out[0] = o->size[0];
    out[1] = o->size[1];
    if (!o->keep_aspect)
        return;
    const float by_h = (float)out[0] / (float)h, by_w = (float)out[1] / (float)w,
                by = by_h < by_w ? by_h : by_w;
    out[0] = (int64_t)rintf(by * (float)h);
    out[1] = (int64_t)rintf(by * (float)w);
}

/* Whole pixels of any dtype. */
static void nearest(const snug_datum *in, snug_datum *out, int64_t n) {
    const int k = in->type.rank - 3;
    const int64_t h = in->type.dims[k], w = in->type.dims[k + 1], to_h = out->type.dims[k],
                  to_w = out->type.dims[k + 1];
    const size_t pixel = (size_t)in->type.dims[k + 2] * snug_dtype_bytes(in->type.dtype);
    const float by_h = (float)h / (float)to_h, by_w = (float)w / (float)to_w;
    char *to = out->data;
    for (int64_t r = 0; r < n * to_h; r++) {
        const int64_t y = (int64_t)floorf(((float)(r % to_h) + 0.5f) * by_h);
        const char *row = (const char *)in->data +
                          (size_t)(r / to_h * h + (y < h ? y : h - 1)) * (size_t)w * pixel;
        for (int64_t j = 0; j < to_w; j++, to += pixel) {
            const int64_t x = (int64_t)floorf(((float)j + 0.5f) * by_w);
            memcpy(to, row + (size_t)(x < w ? x : w - 1) * pixel, pixel);
        }
    }
}

static snug_status resize_floats(sn_data_call *c, sn_picture_resize *p, snug_error *err) {
    const sn_cpu_picture *kernel = sn_cpu_picture_of();
    size_t bytes;
    if (!kernel->work(p, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "tf.image.resize: the picture is too wide");
    snug_datum work;
    SNUG_TRY(sn_scratch(c->engine, bytes, &work, err));
    kernel->resize(p, work.data);
    snug_datum_drop(&work);
    return SNUG_OK;
}

/* Numbers that are neither bytes nor f32 become f32 first. */
static snug_status resize_others(sn_data_call *c, sn_picture_resize *p, snug_error *err) {
    snug_type type = c->in[0].type;
    type.dtype = SNUG_F32;
    snug_datum floats;
    SNUG_TRY(snug_datum_create(c->engine, &type, &floats, err));
    snug_status status = sn_convert(c->in[0].type.dtype, c->in[0].data, SNUG_F32, floats.data,
                                    (size_t)sn_datum_count(&floats), err);
    p->from = floats.data;
    p->is_f32 = true;
    if (status == SNUG_OK)
        status = resize_floats(c, p, err);
    snug_datum_drop(&floats);
    return status;
}

static snug_status check_picture(const snug_datum *d, snug_error *err) {
    char type[192];
    bool fits = d->type.rank == 3 || d->type.rank == 4;
    for (int i = 0; fits && i < d->type.rank; i++)
        fits = d->type.dims[i] > 0 && d->type.dims[i] <= INT32_MAX;
    return fits ? SNUG_OK
                : sn_fail(err, SNUG_E_SHAPE,
                          "tf.image.resize takes pictures [H, W, C] or [N, H, W, C], not %s",
                          snug_type_print(&d->type, type, sizeof type));
}

snug_status sn_data_resize(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_number(c, 0, err));
    const snug_datum *in = &c->in[0];
    const resize_options *o = c->op->prepared;
    SNUG_TRY(check_picture(in, err));
    const int k = in->type.rank - 3;
    const int64_t *d = in->type.dims, n = k == 1 ? d[0] : 1;
    int64_t to[2];
    result_size(o, d[k], d[k + 1], to);
    snug_type type = in->type;
    type.dtype = o->method == SN_RESIZE_NEAREST ? in->type.dtype : SNUG_F32;
    type.dims[k] = to[0] < 1 ? 1 : to[0];
    type.dims[k + 1] = to[1] < 1 ? 1 : to[1];
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    sn_picture_resize p = {.from = in->data,
                           .is_f32 = in->type.dtype == SNUG_F32,
                           .to = c->out[0].data,
                           .n = n,
                           .h = d[k],
                           .w = d[k + 1],
                           .c = d[k + 2],
                           .to_h = type.dims[k],
                           .to_w = type.dims[k + 1],
                           .method = o->method,
                           .antialias = o->antialias};
    snug_status status = SNUG_OK;
    if (o->method == SN_RESIZE_NEAREST)
        nearest(in, &c->out[0], n);
    else if (in->type.dtype == SNUG_F32 || in->type.dtype == SNUG_U8)
        status = resize_floats(c, &p, err);
    else
        status = resize_others(c, &p, err);
    if (status != SNUG_OK)
        snug_datum_drop(&c->out[0]);
    c->n_out = status == SNUG_OK;
    return status;
}

/* --- while it is decoded ---------------------------------------------------------------------- */
static snug_status make_window(sn_resizing *r, snug_error *err) {
    const sn_cpu_picture *kernel = sn_cpu_picture_of();
    const sn_picture_resize *p = &r->picture;
    size_t bytes;
    if (!kernel->work(p, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "tf.image.resize: the picture is too wide");
    SNUG_TRY(sn_scratch(r->call->engine, bytes, &r->work, err));
    kernel->begin(p, r->work.data);
    for (int64_t i = 0; i < p->to_h; i++) {
        int64_t first, n;
        kernel->span(r->work.data, i, &first, &n);
        r->most = n > r->most ? n : r->most;
    }
    r->row_bytes = (size_t)(p->w * p->c);
    if (!sn_size_mul(r->row_bytes, (size_t)r->most, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "tf.image.resize: the picture is too wide");
    return sn_scratch(r->call->engine, bytes, &r->window, err);
}

static snug_status begin_rows(void *ctx, const int64_t extents[3], snug_error *err) {
    sn_resizing *r = ctx;
    const resize_options *o = r->call->op->prepared;
    int64_t to[2];
    result_size(o, extents[0], extents[1], to);
    const snug_type type = {
        SNUG_F32, 3, {to[0] < 1 ? 1 : to[0], to[1] < 1 ? 1 : to[1], extents[2]}};
    SNUG_TRY(snug_datum_create(r->call->engine, &type, &r->call->out[0], err));
    r->picture = (sn_picture_resize){.to = r->call->out[0].data,
                                     .n = 1,
                                     .h = extents[0],
                                     .w = extents[1],
                                     .c = extents[2],
                                     .to_h = type.dims[0],
                                     .to_w = type.dims[1],
                                     .method = o->method,
                                     .antialias = o->antialias};
    return make_window(r, err);
}

/* The window begins with a later row: those before it are not needed any more. */
static void move_window(sn_resizing *r, int64_t first) {
    char *window = r->window.data;
    const int64_t left = first < r->in ? r->in - first : 0;
    if (first > r->first && left > 0)
        memmove(window, window + (size_t)(first - r->first) * r->row_bytes,
                (size_t)left * r->row_bytes);
    r->first = first > r->first ? first : r->first;
}

static void take_row(void *ctx, const unsigned char *row) {
    const sn_cpu_picture *kernel = sn_cpu_picture_of();
    sn_resizing *r = ctx;
    int64_t first, n;
    for (bool stored = false; r->out < r->picture.to_h;) {
        kernel->span(r->work.data, r->out, &first, &n);
        move_window(r, first);
        if (!stored && r->in >= first)
            memcpy((char *)r->window.data + (size_t)(r->in - first) * r->row_bytes, row,
                   r->row_bytes);
        if (!stored)
            r->in++;
        stored = true;
        if (r->in < first + n)
            return;
        kernel->row(&r->picture, r->work.data, r->out++, r->window.data);
    }
}

bool sn_resizing_init(sn_resizing *r, sn_data_call *c, sn_picture_rows *rows) {
    const resize_options *o = c->op->prepared;
    *r = (sn_resizing){.call = c};
    *rows = (sn_picture_rows){begin_rows, take_row, r};
    c->out[0] = (snug_datum){.data = NULL};
    return o->method != SN_RESIZE_NEAREST;
}

snug_status sn_resizing_end(sn_resizing *r, snug_status status) {
    snug_datum_drop(&r->work);
    snug_datum_drop(&r->window);
    if (status != SNUG_OK)
        snug_datum_drop(&r->call->out[0]);
    return status;
}

snug_status sn_spec_resize(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                           snug_error *err) {
    (void)err;
    const resize_options *o = op->prepared;
    out->n = 1;
    snug_type t = in->type[0];
    if (o->method != SN_RESIZE_NEAREST)
        t.dtype = SNUG_F32;
    const int k = t.rank - 3;
    if (t.rank == 3 || t.rank == 4)
        for (int i = 0; i < 2; i++)
            t.dims[k + i] = o->keep_aspect ? -1 : o->size[i];
    out->type[0] = t;
    return SNUG_OK;
}
