/* conv_pool.cu: the families conv2d_pool, conv2d_pool_dx and conv2d_pool_dw: which kernel runs.
 *
 *   few input channels   one kernel on tensor cores (conv_pool_mma.cu), nothing else in memory
 *   many                 the convolution of some images at a time lies in scratch, by whichever
 *                        kernel suits (cuda_conv.h), and is pooled, or spread, by a pass of its own
 *   plain                the rest (conv_pool_own.cu)
 *
 * Scratch of the second: the convolution's result of a chunk of images, then what its kernel
 * needs. Chunks divide the images evenly: one preparation serves all of them. */
#include "kernels/cuda/cuda_conv_pool.h"
#include "kernels/cuda/own.h"

#include <stdio.h>
#include <string.h>

enum { CODE = 2 }; /* input of both gradients */

/* --- geometry -------------------------------------------------------------------------------- */
/* Extent of the convolution's result along an axis. */
static int64_t results(const sn_conv *v, int axis) {
    const int64_t size = axis == 0 ? v->H : v->W, kernel = axis == 0 ? v->kh : v->kw;
    const int64_t padded = size + v->pad[2 * axis] + v->pad[2 * axis + 1];
    return (padded - (kernel - 1) * v->dilation[axis] - 1) / v->stride[axis] + 1;
}

static sn_conv_pool geometry(sn_conv v, const int64_t *pool, const snug_type *pooled) {
    sn_conv_pool q = {};
    v.oh = results(&v, 0);
    v.ow = results(&v, 1);
    q.relu = v.act == SN_ACT_relu;
    v.act = SN_ACT_none; /* the convolution's own */
    q.v = v;
    q.p.N = v.N;
    q.p.H = v.oh;
    q.p.W = v.ow;
    q.p.C = v.O;
    q.p.oh = pooled->dims[1];
    q.p.ow = pooled->dims[2];
    for (int i = 0; i < 2; i++) {
        q.p.kernel[i] = pool[i];
        q.p.stride[i] = pool[2 + i];
    }
    for (int i = 0; i < 4; i++)
        q.p.pad[i] = pool[4 + i];
    return q;
}

/* The attribute families begin like conv, conv_dx and conv_dw. */
static sn_conv_pool pool_of(sn_dnn_kind kind, const sn_attrs *a, const snug_type *const in[],
                            const snug_type *out, int n_in) {
    if (kind == SN_DNN_DX)
        return geometry(sn_conv_dx(&a->conv_dx, in, out), a->conv_pool_dx.pool, in[SN_CONV_DX_DY]);
    if (kind == SN_DNN_DW)
        return geometry(sn_conv_dw(&a->conv_dw, in, out), a->conv_pool_dw.pool, in[SN_CONV_DW_DY]);
    return geometry(sn_conv_forward(&a->conv, in, out, n_in), a->conv_pool.pool, out);
}

static sn_conv_pool of_desc(const sn_opdesc *d, sn_dnn_kind kind) {
    const snug_type *in[] = {&d->in[0], &d->in[1], &d->in[2]};
    return pool_of(kind, &d->attrs, in, &d->out[0], d->n_in);
}

static sn_conv_pool of_call(const sn_call *c, sn_dnn_kind kind) {
    const snug_type *in[] = {&c->in[0].type, &c->in[1].type, c->n_in > 2 ? &c->in[2].type : NULL};
    return pool_of(kind, c->attrs, in, &c->out[0].type, c->n_in);
}

/* --- through scratch ------------------------------------------------------------------------- */
static size_t whole(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static size_t image_bytes(const sn_conv *v, snug_dtype dtype) {
    return (size_t)(v->oh * v->ow * v->O) * snug_dtype_bytes(dtype);
}

/* Images of a chunk: the most that divide them all evenly and fit; 0: none. */
static int64_t chunk_images(const sn_gpu *g, const sn_conv *v, snug_dtype dtype) {
    const size_t cap = sn_gpu_layout_cap(g);
    int64_t best = 0;
    for (int64_t n = 1; n <= v->N; n++)
        if (v->N % n == 0 && (size_t)n * image_bytes(v, dtype) <= cap)
            best = n;
    return best;
}

/* The convolution of one chunk. The bias comes with the pooling. */
static sn_conv chunk_of(const sn_conv *v, int64_t images, sn_dnn_kind kind) {
    sn_conv part = *v;
    part.N = images;
    if (kind == SN_DNN_FORWARD)
        part.bias = part.line = false;
    return part;
}

static bool is_wide(const sn_gpu *g, const sn_conv_pool *q, snug_dtype dtype) {
    enum { FEW_TERMS = 64 };
    const sn_conv *v = &q->v;
    const bool many = v->C * v->kh * v->kw > FEW_TERMS || sn_dtype_is_half(dtype);
    return dtype != SNUG_F64 && v->groups == 1 && many && chunk_images(g, v, dtype) > 0;
}

static bool is_mma(const sn_gpu *g, const sn_conv_pool *q, sn_dnn_kind kind, snug_dtype dtype) {
    return dtype != SNUG_F64 && kind != SN_DNN_DX && sn_conv_pool_mma_takes(g, q);
}

/* --- descriptions ---------------------------------------------------------------------------- */
static snug_status describe(const sn_gpu *g, const sn_opdesc *d, sn_dnn_kind kind, sn_variant *out,
                            snug_error *err) {
    const snug_dtype dtype = d->in[0].dtype;
    const sn_conv_pool q = of_desc(d, kind);
    const bool mma = is_mma(g, &q, kind, dtype);
    const bool half = sn_dtype_is_half(dtype) && (mma || is_wide(g, &q, dtype));
    if (dtype != SNUG_F32 && dtype != SNUG_F64 && !half)
        return sn_cuda_no_kernel(dtype, err);
    if (q.p.kernel[0] * q.p.kernel[1] > SN_CODE_DEAD)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a max-pool window of %lld x %lld has more than %d places, which one byte "
                       "cannot tell apart; pool in two steps",
                       (long long)q.p.kernel[0], (long long)q.p.kernel[1], SN_CODE_DEAD);
    if (d->n_out > 1 && d->out[1].dtype == SNUG_OPAQUE)
        out->opaque_bytes[1] = (size_t)(q.p.N * q.p.oh * q.p.ow * sn_code_pixel(q.p));
    out->speed = SN_SPEED_PRODUCT;
    if (mma) {
        out->efficiency = kind == SN_DNN_DW ? 0.45 : 0.9; /* measured, beside the traffic */
        out->workspace_bytes = kind == SN_DNN_DW ? sn_conv_pool_mma_dw_bytes(g, &q) : 0;
        snprintf(out->impl, sizeof out->impl, "own:mma");
        return SNUG_OK;
    }
    if (is_wide(g, &q, dtype)) {
        const int64_t images = chunk_images(g, &q.v, dtype);
        const sn_conv part = chunk_of(&q.v, images, kind);
        const sn_conv_types types = sn_conv_types_of_desc(d, kind);
        sn_conv_choice choice;
        sn_conv_choose(g, &part, kind, &types, &choice);
        out->efficiency = choice.efficiency;
        out->workspace_bytes = whole((size_t)images * image_bytes(&q.v, dtype)) + choice.bytes;
        snprintf(out->impl, sizeof out->impl, "%s", choice.impl);
        return SNUG_OK;
    }
    out->efficiency = 0.01;
    out->workspace_bytes = kind == SN_DNN_DW ? sn_conv_pool_plain_dw_bytes(g, &q, dtype) : 0;
    snprintf(out->impl, sizeof out->impl, "own:plain");
    return SNUG_OK;
}

static snug_status prepare(sn_gpu *g, const sn_opdesc *d, sn_dnn_kind kind, const char *impl,
                           void **prepared, snug_error *err) {
    const sn_conv_pool q = of_desc(d, kind);
    *prepared = NULL;
    if (sn_impl_kind_of(impl) == SN_IMPL_OWN || !is_wide(g, &q, d->in[0].dtype))
        return SNUG_OK;
    const sn_conv part = chunk_of(&q.v, chunk_images(g, &q.v, d->in[0].dtype), kind);
    const sn_conv_types types = sn_conv_types_of_desc(d, kind);
    return sn_conv_make(g, &part, kind, &types, impl, (sn_conv_step **)prepared, err);
}

static void release(sn_gpu *g, void *prepared) {
    sn_conv_drop(g, (sn_conv_step *)prepared);
}

/* --- calls ----------------------------------------------------------------------------------- */
/* Operands of images from n on. */
static sn_cuda_conv_pool images_from(const sn_conv_pool *q, const sn_cuda_conv_pool *o, int64_t n) {
    const int64_t size = (int64_t)snug_dtype_bytes(o->o.types.dtype);
    const int64_t x = n * q->v.H * q->v.W * q->v.C * size,
                  y = n * q->p.oh * q->p.ow * q->p.C * size;
    sn_cuda_conv_pool s = *o;
    s.o.x = o->o.x ? (const char *)o->o.x + x : NULL;
    s.o.dx = o->o.dx ? (char *)o->o.dx + x : NULL;
    s.o.y = o->o.y ? (char *)o->o.y + y : NULL;
    s.o.dy = o->o.dy ? (const char *)o->o.dy + y : NULL;
    s.code = o->code ? o->code + n * q->p.oh * q->p.ow * sn_code_pixel(q->p) : NULL;
    s.o.accumulate = o->o.accumulate || n > 0;
    return s;
}

static snug_status run_wide(const sn_cuda_call *c, const sn_conv_pool *q, sn_dnn_kind kind,
                            const sn_cuda_conv_pool *o, snug_error *err) {
    const snug_dtype dtype = o->o.types.dtype;
    const int64_t images = chunk_images(c->gpu, &q->v, dtype);
    const sn_conv_step *step = (const sn_conv_step *)c->call->prepared;
    sn_conv_pool part = *q;
    part.v = chunk_of(&q->v, images, kind);
    part.p.N = images;
    void *big = c->call->workspace;
    void *rest = (char *)c->call->workspace + whole((size_t)images * image_bytes(&q->v, dtype));
    for (int64_t n = 0; n < q->v.N; n += images) {
        const sn_cuda_conv_pool s = images_from(q, o, n);
        sn_cuda_conv conv = s.o;
        conv.bias = conv.scale = NULL;
        conv.y = big;
        conv.dy = big;
        if (kind != SN_DNN_FORWARD)
            sn_pool_spread(c, &part, &s, big);
        SNUG_TRY(sn_conv_run(c, step, &part.v, kind, &conv, rest, err));
        if (kind == SN_DNN_FORWARD)
            sn_pool_take(c, &part, big, &s);
    }
    return SNUG_OK;
}

static snug_status run(const sn_cuda_call *c, sn_dnn_kind kind, const sn_cuda_conv_pool *o,
                       snug_error *err) {
    const sn_conv_pool q = of_call(c->call, kind);
    void *scratch = c->call->workspace;
    const bool half = sn_dtype_is_half(o->o.types.dtype);
    if (is_mma(c->gpu, &q, kind, o->o.types.dtype)) {
        if (kind == SN_DNN_DW)
            (half ? sn_conv_pool_half_dw : sn_conv_pool_mma_dw)(c, &q, o, scratch);
        else
            (half ? sn_conv_pool_half : sn_conv_pool_mma)(c, &q, o);
    } else if (is_wide(c->gpu, &q, o->o.types.dtype)) {
        return run_wide(c, &q, kind, o, err);
    } else if (kind == SN_DNN_FORWARD) {
        sn_conv_pool_plain(c, &q, o);
    } else if (kind == SN_DNN_DX) {
        sn_conv_pool_plain_dx(c, &q, o);
    } else {
        sn_conv_pool_plain_dw(c, &q, o, scratch);
    }
    return SNUG_OK;
}

static snug_status run_conv2d_pool(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    sn_cuda_conv_pool o = {};
    o.o.types = sn_conv_types_of_call(k, SN_DNN_FORWARD);
    o.o.x = k->in[SN_CONV_X].data;
    o.o.w = k->in[SN_CONV_W].data;
    o.o.bias = k->n_in > 2 ? k->in[SN_CONV_BIAS].data : NULL;
    o.o.y = k->out[0].data;
    o.code = k->n_out > 1 ? (uint8_t *)k->out[1].data : NULL;
    sn_conv_split_line(k, &o.o);
    return run(c, SN_DNN_FORWARD, &o, err);
}

static snug_status run_conv2d_pool_dx(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    sn_cuda_conv_pool o = {};
    o.o.types = sn_conv_types_of_call(k, SN_DNN_DX);
    o.o.dy = k->in[SN_CONV_DX_DY].data;
    o.o.w = k->in[SN_CONV_DX_W].data;
    o.o.dx = k->out[0].data;
    o.code = (uint8_t *)k->in[CODE].data;
    return run(c, SN_DNN_DX, &o, err);
}

static snug_status run_conv2d_pool_dw(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    sn_cuda_conv_pool o = {};
    o.o.types = sn_conv_types_of_call(k, SN_DNN_DW);
    o.o.x = k->in[SN_CONV_DW_X].data;
    o.o.dy = k->in[SN_CONV_DW_DY].data;
    o.o.dw = k->out[0].data;
    o.o.db = k->n_out > 1 ? k->out[1].data : NULL;
    o.o.accumulate = k->accumulate;
    o.code = (uint8_t *)k->in[CODE].data;
    return run(c, SN_DNN_DW, &o, err);
}

#define FAMILY(name, kind, mixes)                                                                  \
    static snug_status describe_##name(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,       \
                                       snug_error *err) {                                          \
        return describe(g, d, kind, out, err);                                                     \
    }                                                                                              \
    static snug_status prepare_##name(sn_gpu *g, const sn_opdesc *d, const char *impl,             \
                                      void **prepared, snug_error *err) {                          \
        return prepare(g, d, kind, impl, prepared, err);                                           \
    }                                                                                              \
    SN_CUDA_FAMILY(name, run_##name, describe_##name, prepare_##name, release, NULL,               \
                   SN_HALF_DTYPES, mixes)
FAMILY(conv2d_pool, SN_DNN_FORWARD, 1u << 1 | 1u << 2)
FAMILY(conv2d_pool_dx, SN_DNN_DX, 1u << 1)
FAMILY(conv2d_pool_dw, SN_DNN_DW, SN_CUDA_OUT(0) | SN_CUDA_OUT(1))
