/* conv.cu: the families conv2d, conv2d_dx and conv2d_dw: which kernel runs, and a call of it.
 *
 *   one product            one place, no stride: pixels are rows, the filter is a matrix
 *   an engine of cuDNN     one group; filters are turned into scratch and back around it
 *   products of a turned x the gradient of 3 x 3 filters with many channels (conv_turned.cu)
 *   product of patches     the gradient of filters of few channels (conv_patches.cu)
 *   first layer            3 x 3 filters of 3 channels, of halves (conv_pool_half.cu)
 *   depthwise              one filter per channel (conv_depthwise.cu)
 *   plain                  the rest, and everything where cuDNN is missing (conv_own.cu)
 *
 * Libraries and depthwise take f32 and halves; turned x and patches f32; plain all floats.
 *
 * Engines want the same padding on both sides. Where it differs the filter gets rows or columns of
 * zeros on the other side, since it is copied anyway; a line's scale is multiplied into it, too.
 *
 * Without a stride dx is a convolution of dy by the filter with its places in reverse, and goes by
 * the engines of those: they are quicker than those for gradients that have no large stack frames.
 *
 * Scratch: the turned filter, then the engine's, which the bias gradient uses before it: dy, which
 * was written just now, is in the cache in part. */
#include "kernels/cuda/cuda_conv.h"
#include "kernels/cuda/own.h"

#include <stdio.h>
#include <string.h>

#define TURNED  SN_BY_BLAS "turned"
#define PATCHES SN_BY_BLAS "patches"

struct sn_conv_step {
    sn_dnn_plan *engine;
    sn_turned_dw *turned;
    sn_blas_plan *patches, *plain;
};

/* --- geometry -------------------------------------------------------------------------------- */
static sn_conv conv_of(sn_dnn_kind kind, const sn_attrs *a, const snug_type *const in[],
                       const snug_type *out, int n_in) {
    if (kind == SN_DNN_DX)
        return sn_conv_dx(&a->conv_dx, in, out);
    if (kind == SN_DNN_DW)
        return sn_conv_dw(&a->conv_dw, in, out);
    return sn_conv_forward(&a->conv, in, out, n_in);
}

static sn_conv of_desc(const sn_opdesc *d, sn_dnn_kind kind) {
    const snug_type *in[] = {&d->in[0], &d->in[1], &d->in[2]};
    return conv_of(kind, &d->attrs, in, &d->out[0], d->n_in);
}

static sn_conv of_call(const sn_call *c, sn_dnn_kind kind) {
    const snug_type *in[] = {&c->in[0].type, &c->in[1].type, c->n_in > 2 ? &c->in[2].type : NULL};
    return conv_of(kind, c->attrs, in, &c->out[0].type, c->n_in);
}

static int64_t pixels_of(const sn_conv *v) {
    return v->N * v->oh * v->ow;
}

static bool is_empty(const sn_conv *v) {
    return v->N * v->H * v->W * v->C == 0 || pixels_of(v) * v->O == 0;
}

/* Rows or columns of zeros that make the padding of an axis even; < 0: no number of them does. */
static int64_t missing(const sn_conv *v, int axis) {
    const int64_t before = v->pad[2 * axis], after = v->pad[2 * axis + 1];
    const int64_t apart = before > after ? before - after : after - before;
    return apart % v->dilation[axis] == 0 ? apart / v->dilation[axis] : -1;
}

/* The filter as the engine gets it. */
static sn_turned turned_of(const sn_conv *v) {
    sn_turned t = {v->kh, v->kw, v->C, v->O, v->kh + missing(v, 0), v->kw + missing(v, 1), 0, 0};
    t.top = v->pad[0] < v->pad[1] ? missing(v, 0) : 0;
    t.left = v->pad[2] < v->pad[3] ? missing(v, 1) : 0;
    return t;
}

/* The padding of dx's convolution along an axis. */
static int64_t reverse_pad(const sn_conv *v, int axis) {
    const int64_t places = axis == 0 ? v->kh : v->kw;
    return v->dilation[axis] * (places - 1) - v->pad[2 * axis];
}

static bool is_reversed(const sn_conv *v, sn_dnn_kind kind) {
    bool ok = kind == SN_DNN_DX;
    for (int i = 0; i < 2; i++)
        ok =
            ok && v->stride[i] == 1 && v->pad[2 * i] == v->pad[2 * i + 1] && reverse_pad(v, i) >= 0;
    return ok;
}

/* The convolution of dy that gives dx; zeros are its bias, as in a forward one. */
static sn_dnn_conv reversed_conv(const sn_conv *v) {
    sn_dnn_conv e = {};
    e.kind = SN_DNN_FORWARD;
    e.N = v->N;
    e.H = v->oh;
    e.W = v->ow;
    e.C = v->O;
    e.kh = v->kh;
    e.kw = v->kw;
    e.O = v->C;
    e.oh = v->H;
    e.ow = v->W;
    for (int i = 0; i < 2; i++) {
        e.stride[i] = 1;
        e.dilation[i] = v->dilation[i];
        e.pad[2 * i] = e.pad[2 * i + 1] = reverse_pad(v, i);
    }
    e.bias = true;
    return e;
}

static bool engine_conv(const sn_conv *v, sn_dnn_kind kind, snug_dtype dtype, sn_dnn_conv *out) {
    if (v->groups != 1 || is_empty(v) || missing(v, 0) < 0 || missing(v, 1) < 0)
        return false;
    if (is_reversed(v, kind)) {
        *out = reversed_conv(v);
        out->dtype = dtype;
        return true;
    }
    const sn_turned t = turned_of(v);
    sn_dnn_conv e = {};
    e.kind = kind;
    e.dtype = dtype;
    e.N = v->N;
    e.H = v->H;
    e.W = v->W;
    e.C = v->C;
    e.kh = t.high;
    e.kw = t.wide;
    e.O = v->O;
    e.oh = v->oh;
    e.ow = v->ow;
    for (int i = 0; i < 2; i++) {
        const int64_t before = v->pad[2 * i], after = v->pad[2 * i + 1];
        e.stride[i] = v->stride[i];
        e.dilation[i] = v->dilation[i];
        e.pad[2 * i] = e.pad[2 * i + 1] = before > after ? before : after;
    }
    e.bias =
        kind == SN_DNN_FORWARD; /* zeros where there is none: such engines are the faster ones */
    e.relu = kind == SN_DNN_FORWARD && v->act == SN_ACT_relu;
    *out = e;
    return true;
}

/* A filter of one place is a matrix: y = x w, dx = dy w', dw = x' dy. Beside halves it is of their
 * type. */
static bool plain_product(const sn_conv *v, sn_dnn_kind kind, const sn_conv_types *t,
                          sn_blas_product *out) {
    const bool dw = kind == SN_DNN_DW;
    sn_blas_product p = {};
    bool ok = (dw || t->w == t->dtype) && (dw || !v->bias || t->bias == t->dtype);
    ok = ok && v->groups == 1 && v->kh == 1 && v->kw == 1 && !is_empty(v) && !v->line &&
         v->C % 4 == 0 && v->O % 4 == 0;
    for (int i = 0; i < 2; i++)
        ok = ok && v->stride[i] == 1;
    for (int i = 0; i < 4; i++)
        ok = ok && v->pad[i] == 0;
    if (!ok)
        return false;
    p.batch = 1;
    p.trans_a = kind == SN_DNN_DW;
    p.trans_b = kind == SN_DNN_DX;
    p.M = kind == SN_DNN_DW ? v->C : pixels_of(v);
    p.N = kind == SN_DNN_DX ? v->C : v->O;
    p.K = kind == SN_DNN_DW ? pixels_of(v) : kind == SN_DNN_DX ? v->O : v->C;
    p.a_pitch = kind == SN_DNN_DX ? v->O : v->C;
    p.b_pitch = v->O;
    p.c_pitch = p.N;
    p.bias = kind == SN_DNN_FORWARD && v->bias;
    p.relu = kind == SN_DNN_FORWARD && v->act == SN_ACT_relu;
    p.dtype = t->dtype;
    p.out = dw ? t->w : t->dtype;
    *out = p;
    return true;
}

/* --- descriptions ---------------------------------------------------------------------------- */
static size_t whole(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* Of a turned filter of halves, what stands behind it begins here. */
static size_t half_filter_bytes(const sn_turned *t) {
    return whole((size_t)(t->high * t->wide * t->C * t->O) * sizeof(sn_half));
}

/* The turned filter, and zeros for a bias behind it. */
static size_t filter_bytes(const sn_conv *v, snug_dtype dtype) {
    const sn_turned t = turned_of(v);
    const int64_t zeros = t.C > t.O ? t.C : t.O;
    if (dtype != SNUG_F32)
        return half_filter_bytes(&t) + whole((size_t)zeros * sizeof(sn_half));
    return whole((size_t)(t.high * t.wide * t.C * t.O + zeros) * sizeof(float));
}

static size_t sums_bytes(const sn_conv *v) {
    return v->bias ? sn_column_sums_bytes(pixels_of(v), v->O) : 0;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static bool take(sn_conv_choice *out, const char *impl, size_t bytes) {
    out->bytes = bytes;
    snprintf(out->impl, sizeof out->impl, "%s", impl);
    return true;
}

/* The first way of a library there is; partial sums of a bias gradient lie in its scratch. */
static bool choose_library(const sn_gpu *g, const sn_conv *v, sn_dnn_kind kind,
                           const sn_conv_types *t, sn_conv_choice *out) {
    const bool dw = kind == SN_DNN_DW, own = dw && t->dtype == SNUG_F32;
    const size_t sums = dw ? sums_bytes(v) : 0;
    sn_dnn_conv e;
    sn_choice choice;
    sn_blas_product p;
    if (plain_product(v, kind, t, &p) && sn_blas_choose(g, &p, &choice, NULL) == SNUG_OK)
        return take(out, choice.impl, larger(choice.workspace_bytes, sums));
    const size_t turned = own && sn_turned_dw_takes(g, v) ? sn_turned_dw_bytes(g, v) : 0;
    if (turned > 0)
        return take(out, TURNED, larger(turned, sums));
    const size_t patches = own && sn_patches_dw_takes(g, v) ? sn_patches_dw_bytes(g, v) : 0;
    if (patches > 0)
        return take(out, PATCHES, larger(patches, sums));
    return engine_conv(v, kind, t->dtype, &e) && sn_dnn_choose(g, &e, &choice, NULL) == SNUG_OK &&
           take(out, choice.impl, larger(filter_bytes(v, t->dtype) + choice.workspace_bytes, sums));
}

void sn_conv_choose(const sn_gpu *g, const sn_conv *v, sn_dnn_kind kind, const sn_conv_types *t,
                    sn_conv_choice *out) {
    const snug_dtype dtype = t->dtype;
    const bool dw = kind == SN_DNN_DW, depthwise = sn_depthwise_takes(v, dtype);
    out->efficiency = 1;
    if (kind == SN_DNN_FORWARD && sn_conv_first_takes(g, v, dtype)) {
        take(out, "own:mma", 0);
        return;
    }
    if (dtype != SNUG_F64 && choose_library(g, v, kind, t, out)) {
        out->efficiency = sn_library_efficiency(dtype);
        return;
    }
    out->efficiency = depthwise ? 0.015 : 0.01;
    const size_t plain = dw ? sn_conv_plain_dw_bytes(g, v, dtype) : 0;
    /* Addresses may turn out to be the plain kernel's. */
    const size_t bytes = dw && depthwise ? larger(plain, sn_conv_depthwise_dw_bytes(v)) : plain;
    take(out, depthwise ? "own:depthwise" : "own:plain", bytes);
}

static snug_status make(sn_gpu *g, const sn_conv *v, sn_dnn_kind kind, const sn_conv_types *t,
                        const char *impl, sn_conv_step *out, snug_error *err) {
    sn_dnn_conv e;
    sn_blas_product p;
    if (strcmp(impl, TURNED) == 0)
        return sn_turned_dw_make(g, v, &out->turned, err);
    if (strcmp(impl, PATCHES) == 0)
        return sn_patches_dw_make(g, v, &out->patches, err);
    if (sn_impl_kind_of(impl) == SN_IMPL_BLAS && plain_product(v, kind, t, &p))
        return sn_blas_make(g, &p, impl, &out->plain, err);
    if (!engine_conv(v, kind, t->dtype, &e))
        return sn_fail(err, SNUG_E_INTERNAL, "'%s' does not take this convolution", impl);
    return sn_dnn_make(g, &e, impl, &out->engine, err);
}

snug_status sn_conv_make(sn_gpu *g, const sn_conv *v, sn_dnn_kind kind, const sn_conv_types *t,
                         const char *impl, sn_conv_step **out, snug_error *err) {
    *out = NULL;
    if (!sn_impl_is_library(impl))
        return SNUG_OK;
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    sn_conv_step *p = (sn_conv_step *)host->alloc(host->ctx, sizeof *p);
    if (!p)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for a convolution's plan");
    memset((void *)p, 0, sizeof *p);
    const snug_status status = make(g, v, kind, t, impl, p, err);
    if (status == SNUG_OK)
        *out = p;
    else
        host->free(host->ctx, p, sizeof *p);
    return status;
}

void sn_conv_drop(sn_gpu *g, sn_conv_step *step) {
    if (!step)
        return;
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    sn_dnn_drop(g, step->engine);
    sn_turned_dw_drop(g, step->turned);
    sn_blas_drop(g, step->patches);
    sn_blas_drop(g, step->plain);
    host->free(host->ctx, step, sizeof *step);
}

/* --- runs ------------------------------------------------------------------------------------ */
static sn_mixed_line line_of(const void *data, snug_dtype dtype) {
    return sn_mixed_line{(void *)data, dtype};
}

/* The turned filter lies in front of the engine's scratch. */
static snug_status run_engine(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                              snug_dtype dtype, sn_dnn_operands o, void *scratch, snug_error *err) {
    o.w = scratch;
    o.workspace = (char *)scratch + filter_bytes(v, dtype);
    return sn_dnn_run(c->gpu, step->engine, &o, c->stream, err);
}

static void sum_bias(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                     void *scratch) {
    if (o->db && o->types.dtype == SNUG_F32)
        sn_column_sums(c, (const float *)o->dy, pixels_of(v), v->O, o->accumulate, (float *)o->db,
                       scratch);
    else if (o->db)
        sn_column_sums_of(c, line_of(o->dy, o->types.dtype), pixels_of(v), v->O, o->accumulate,
                          line_of(o->db, o->types.bias), scratch);
}

/* What a library left of bias and activation. */
static void finish(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o, bool biased,
                   int act) {
    if (o->types.dtype == SNUG_F32)
        sn_conv_finish(c, (float *)o->y, pixels_of(v), v->O, NULL,
                       biased ? NULL : (const float *)o->bias, act);
    else
        sn_conv_finish_of(c, line_of(o->y, o->types.dtype), pixels_of(v), v->O,
                          line_of(biased ? NULL : o->bias, o->types.bias), act);
}

static snug_status run_plain(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                             sn_dnn_kind kind, const sn_cuda_conv *o, void *scratch,
                             snug_error *err) {
    const void *const a = kind == SN_DNN_DX ? o->dy : o->x;
    const void *const b = kind == SN_DNN_DW ? o->dy : o->w;
    void *const out = kind == SN_DNN_DW ? o->dw : kind == SN_DNN_DX ? o->dx : o->y;
    const sn_blas_operands p = {a, b, o->bias, out, kind == SN_DNN_DW && o->accumulate, scratch};
    if (kind == SN_DNN_DW)
        sum_bias(c, v, o, scratch);
    SNUG_TRY(sn_blas_run(c->gpu, step->plain, &p, c->stream, err));
    if (kind == SN_DNN_FORWARD && v->act != SN_ACT_relu)
        finish(c, v, o, true, (int)v->act);
    return SNUG_OK;
}

/* Turns the filter into scratch; the bias an engine is to add is returned, zeros where there is
 * none. */
static const void *turn_filter(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                               void *scratch) {
    const sn_turned t = turned_of(v);
    const snug_dtype dtype = o->types.dtype;
    if (dtype == SNUG_F32) {
        const float *zeros = (const float *)scratch + t.high * t.wide * t.C * t.O;
        sn_filter_turn(c, &t, (const float *)o->w, (const float *)o->scale, (float *)scratch);
        return o->bias ? o->bias : zeros;
    }
    void *const behind = (char *)scratch + half_filter_bytes(&t);
    sn_filter_turn_to(c, &t, line_of(o->w, o->types.w), line_of(o->scale, o->types.bias),
                      line_of(o->bias, o->types.bias), line_of(scratch, dtype), behind);
    return behind;
}

static snug_status run_forward(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                               const sn_cuda_conv *o, void *scratch, snug_error *err) {
    const void *const bias = turn_filter(c, v, o, scratch);
    const sn_dnn_operands e = {(void *)o->x, NULL, o->y, bias, NULL};
    SNUG_TRY(run_engine(c, step, v, o->types.dtype, e, scratch, err));
    finish(c, v, o, sn_dnn_takes_bias(step->engine),
           sn_dnn_takes_relu(step->engine) ? (int)SN_ACT_none : (int)v->act);
    return SNUG_OK;
}

/* Zeros behind the filter that is turned for it are returned. */
static const void *reverse_filter(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                                  void *scratch) {
    const sn_turned t = turned_of(v);
    if (o->types.dtype == SNUG_F32) {
        sn_filter_reverse(c, &t, (const float *)o->w, (float *)scratch);
        return (const float *)scratch + t.kh * t.kw * t.C * t.O;
    }
    void *const behind = (char *)scratch + half_filter_bytes(&t);
    sn_filter_reverse_to(c, &t, line_of(o->w, o->types.w), line_of(scratch, o->types.dtype),
                         behind);
    return behind;
}

static snug_status run_dx(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                          const sn_cuda_conv *o, void *scratch, snug_error *err) {
    const bool reversed = is_reversed(v, SN_DNN_DX);
    const void *const zeros =
        reversed ? reverse_filter(c, v, o, scratch) : turn_filter(c, v, o, scratch);
    const sn_dnn_operands turned = {(void *)o->dy, NULL, o->dx, zeros, NULL},
                          e = {o->dx, NULL, (void *)o->dy, NULL, NULL};
    return run_engine(c, step, v, o->types.dtype, reversed ? turned : e, scratch, err);
}

static snug_status run_dw(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                          const sn_cuda_conv *o, void *scratch, snug_error *err) {
    const sn_turned t = turned_of(v);
    const snug_dtype dtype = o->types.dtype;
    const sn_dnn_operands e = {(void *)o->x, NULL, (void *)o->dy, NULL, NULL};
    sum_bias(c, v, o, scratch);
    if (step->turned)
        return sn_turned_dw_run(c, step->turned, v, o, scratch, err);
    if (step->patches)
        return sn_patches_dw_run(c, step->patches, v, o, scratch, err);
    SNUG_TRY(run_engine(c, step, v, dtype, e, scratch, err));
    if (dtype == SNUG_F32)
        sn_filter_return(c, &t, (const float *)scratch, o->accumulate, (float *)o->dw);
    else
        sn_filter_return_from(c, &t, line_of(scratch, dtype), o->accumulate,
                              line_of(o->dw, o->types.w));
    return SNUG_OK;
}

/* Whether every address is one of sixteen bytes; NULL is. */
static bool has_packs(const sn_cuda_conv *o, const void *scratch) {
    const void *all[] = {o->x, o->w, o->dy, o->bias, o->scale, o->y, o->dx, o->dw, o->db, scratch};
    bool ok = true;
    for (const void *at : all)
        ok = ok && sn_aligned(at);
    return ok;
}

snug_status sn_conv_run(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                        sn_dnn_kind kind, const sn_cuda_conv *o, void *scratch, snug_error *err) {
    if (step && step->plain)
        return run_plain(c, step, v, kind, o, scratch, err);
    if (step)
        return (kind == SN_DNN_FORWARD ? run_forward
                : kind == SN_DNN_DX    ? run_dx
                                       : run_dw)(c, step, v, o, scratch, err);
    const bool depthwise = sn_depthwise_takes(v, o->types.dtype) && has_packs(o, scratch);
    if (kind == SN_DNN_FORWARD && sn_conv_first_takes(c->gpu, v, o->types.dtype))
        sn_conv_first(c, v, o);
    else if (kind == SN_DNN_FORWARD)
        (depthwise ? sn_conv_depthwise : sn_conv_plain)(c, v, o);
    else if (kind == SN_DNN_DX)
        (depthwise ? sn_conv_depthwise_dx : sn_conv_plain_dx)(c, v, o);
    else
        (depthwise ? sn_conv_depthwise_dw : sn_conv_plain_dw)(c, v, o, scratch);
    return SNUG_OK;
}

/* --- families -------------------------------------------------------------------------------- */
static snug_status describe(const sn_gpu *g, const sn_opdesc *d, sn_dnn_kind kind, sn_variant *out,
                            snug_error *err) {
    const snug_dtype dtype = d->in[0].dtype;
    if (dtype != SNUG_F32 && dtype != SNUG_F64 && !sn_dtype_is_half(dtype))
        return sn_cuda_no_kernel(dtype, err);
    const sn_conv v = of_desc(d, kind);
    const sn_conv_types t = sn_conv_types_of_desc(d, kind);
    sn_conv_choice choice;
    sn_conv_choose(g, &v, kind, &t, &choice);
    out->speed = SN_SPEED_PRODUCT;
    out->efficiency = choice.efficiency;
    out->workspace_bytes = choice.bytes;
    snprintf(out->impl, sizeof out->impl, "%s", choice.impl);
    return SNUG_OK;
}

static snug_status prepare(sn_gpu *g, const sn_opdesc *d, sn_dnn_kind kind, const char *impl,
                           void **prepared, snug_error *err) {
    const sn_conv v = of_desc(d, kind);
    const sn_conv_types t = sn_conv_types_of_desc(d, kind);
    return sn_conv_make(g, &v, kind, &t, impl, (sn_conv_step **)prepared, err);
}

static void release(sn_gpu *g, void *prepared) {
    sn_conv_drop(g, (sn_conv_step *)prepared);
}

static snug_status run(const sn_cuda_call *c, sn_dnn_kind kind, const sn_cuda_conv *o,
                       snug_error *err) {
    const sn_call *k = c->call;
    const sn_conv v = of_call(k, kind);
    const sn_conv_step *step = (const sn_conv_step *)k->prepared;
    if (step && step->engine)
        SNUG_TRY(sn_scratch_check(
            k, filter_bytes(&v, o->types.dtype) + sn_dnn_workspace(step->engine), err));
    return sn_conv_run(c, step, &v, kind, o, k->workspace, err);
}

static snug_status run_conv2d(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    sn_cuda_conv o = {};
    o.types = sn_conv_types_of_call(k, SN_DNN_FORWARD);
    o.x = k->in[SN_CONV_X].data;
    o.w = k->in[SN_CONV_W].data;
    o.bias = k->n_in > 2 ? k->in[SN_CONV_BIAS].data : NULL;
    o.y = k->out[0].data;
    sn_conv_split_line(k, &o);
    return run(c, SN_DNN_FORWARD, &o, err);
}

static snug_status run_conv2d_dx(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    sn_cuda_conv o = {};
    o.types = sn_conv_types_of_call(k, SN_DNN_DX);
    o.dy = k->in[SN_CONV_DX_DY].data;
    o.w = k->in[SN_CONV_DX_W].data;
    o.dx = k->out[0].data;
    return run(c, SN_DNN_DX, &o, err);
}

static snug_status run_conv2d_dw(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    sn_cuda_conv o = {};
    o.types = sn_conv_types_of_call(k, SN_DNN_DW);
    o.x = k->in[SN_CONV_DW_X].data;
    o.dy = k->in[SN_CONV_DW_DY].data;
    o.dw = k->out[0].data;
    o.db = k->n_out > 1 ? k->out[1].data : NULL;
    o.accumulate = k->accumulate;
    return run(c, SN_DNN_DW, &o, err);
}

#define FAMILY(name, kind, run, mixes)                                                             \
    static snug_status describe_##name(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,       \
                                       snug_error *err) {                                          \
        return describe(g, d, kind, out, err);                                                     \
    }                                                                                              \
    static snug_status prepare_##name(sn_gpu *g, const sn_opdesc *d, const char *impl,             \
                                      void **prepared, snug_error *err) {                          \
        return prepare(g, d, kind, impl, prepared, err);                                           \
    }                                                                                              \
    SN_CUDA_FAMILY(name, run, describe_##name, prepare_##name, release, NULL, SN_HALF_DTYPES, mixes)
FAMILY(conv2d, SN_DNN_FORWARD, run_conv2d, 1u << 1 | 1u << 2)
FAMILY(conv2d_dx, SN_DNN_DX, run_conv2d_dx, 1u << 1)
FAMILY(conv2d_dw, SN_DNN_DW, run_conv2d_dw, SN_CUDA_OUT(0) | SN_CUDA_OUT(1))
