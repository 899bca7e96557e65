/* conv.c: the families conv2d, conv2d_dx and conv2d_dw. The references walk every (output, weight)
 * pair once and add in double: the pair (y[n,i,j,o], w[p,q,c,o]) meets x[n, i*s+p*d-top,
 * j*s+q*d-left, group(o)*C/groups + c]. */
#include "kernels/cpu/conv.h"

#include "kernels/cpu/conv_fast.h"
#include "kernels/cpu/conv_halves.h"
#include "kernels/cpu/conv_pool_few.h"
#include "kernels/cpu/conv_reference.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/winograd.h"

#include <stdio.h>

static sn_conv forward_of(const sn_call *c) {
    const snug_type *in[] = {&c->in[0].type, &c->in[1].type,
                             c->n_in > 2 ? &c->in[SN_CONV_BIAS].type : NULL};
    return sn_conv_forward(&c->attrs->conv, in, &c->out[0].type, c->n_in);
}

static sn_conv dx_of(const sn_call *c) {
    const snug_type *in[] = {&c->in[0].type, &c->in[1].type};
    return sn_conv_dx(&c->attrs->conv_dx, in, &c->out[0].type);
}

static sn_conv dw_of(const sn_call *c) {
    const snug_type *in[] = {&c->in[0].type, &c->in[1].type};
    return sn_conv_dw(&c->attrs->conv_dw, in, &c->out[0].type);
}

static snug_status reference_conv2d(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_conv v = forward_of(c);
    const sn_reals x = sn_reals_factor(&c->in[SN_CONV_X], &c->in[SN_CONV_W]);
    const sn_reals w = sn_reals_factor(&c->in[SN_CONV_W], &c->in[SN_CONV_X]);
    const sn_reals y = sn_reals_of(&c->out[0]);
    const int64_t count = v.N * v.oh * v.ow * v.O;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (v.oh * v.ow * v.O), i / (v.ow * v.O) % v.oh, i / v.O % v.ow,
                               i % v.O};
        double sum = sn_conv_y_at(&v, x, w, at);
        if (v.line)
            sum *= sn_real_at(sn_reals_of(&c->in[SN_CONV_BIAS]), at[3]);
        if (v.bias)
            sum += sn_real_at(sn_reals_of(&c->in[SN_CONV_BIAS]), (v.line ? v.O : 0) + at[3]);
        sn_real_put(y, i, sn_real_act(v.act, sum));
    }
    return SNUG_OK;
}

/* One element of dx. */
static double dx_at(const sn_conv *v, sn_reals dy, sn_reals w, const int64_t at[4]) {
    const int64_t depth = v->C / v->groups, width = v->O / v->groups, first = at[3] / depth * width;
    double sum = 0;
    for (int64_t pq = 0; pq < v->kh * v->kw; pq++) {
        const int64_t i = sn_conv_y_under(v, 0, at[1], pq / v->kw),
                      j = sn_conv_y_under(v, 1, at[2], pq % v->kw);
        if (i < 0 || j < 0)
            continue;
        const int64_t y0 = ((at[0] * v->oh + i) * v->ow + j) * v->O + first;
        const int64_t w0 = (pq * depth + at[3] % depth) * v->O + first;
        for (int64_t o = 0; o < width; o++)
            sum += sn_real_at(dy, y0 + o) * sn_real_at(w, w0 + o);
    }
    return sum;
}

static snug_status reference_conv2d_dx(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_conv v = dx_of(c);
    const sn_reals dy = sn_reals_factor(&c->in[SN_CONV_DX_DY], &c->in[SN_CONV_DX_W]);
    const sn_reals w = sn_reals_factor(&c->in[SN_CONV_DX_W], &c->in[SN_CONV_DX_DY]);
    const sn_reals dx = sn_reals_of(&c->out[0]);
    const int64_t count = v.N * v.H * v.W * v.C;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (v.H * v.W * v.C), i / (v.W * v.C) % v.H, i / v.C % v.W,
                               i % v.C};
        sn_real_put(dx, i, dx_at(&v, dy, w, at));
    }
    return SNUG_OK;
}

/* One element of dw: (p, q, k, o). */
static double dw_at(const sn_conv *v, sn_reals x, sn_reals dy, const int64_t at[4]) {
    const int64_t channel = at[3] / (v->O / v->groups) * (v->C / v->groups) + at[2];
    double sum = 0;
    for (int64_t n = 0; n < v->N; n++)
        for (int64_t ij = 0; ij < v->oh * v->ow; ij++) {
            const int64_t row = sn_conv_at(v, 0, ij / v->ow, at[0]),
                          col = sn_conv_at(v, 1, ij % v->ow, at[1]);
            const int64_t from = sn_conv_x_index(v, n, row, col);
            if (from >= 0)
                sum += sn_real_at(x, from + channel) *
                       sn_real_at(dy, (n * v->oh * v->ow + ij) * v->O + at[3]);
        }
    return sum;
}

static snug_status reference_conv2d_dw(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_conv v = dw_of(c);
    const sn_reals x = sn_reals_factor(&c->in[SN_CONV_DW_X], &c->in[SN_CONV_DW_DY]);
    const sn_reals dy = sn_reals_factor(&c->in[SN_CONV_DW_DY], &c->in[SN_CONV_DW_X]);
    const sn_reals dw = sn_reals_of(&c->out[0]);
    const int64_t depth = v.C / v.groups, count = v.kh * v.kw * depth * v.O;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (v.kw * depth * v.O), i / (depth * v.O) % v.kw, i / v.O % depth,
                               i % v.O};
        sn_real_sum(dw, i, dw_at(&v, x, dy, at), c->accumulate);
    }
    for (int64_t o = 0; v.bias && o < v.O; o++) {
        double sum = 0;
        for (int64_t i = 0; i < v.N * v.oh * v.ow; i++)
            sum += sn_real_at(dy, i * v.O + o);
        sn_real_sum(sn_reals_of(&c->out[1]), o, sum, c->accumulate);
    }
    return SNUG_OK;
}

/* --- the fast kernels: f32 and halves --------------------------------------------------------- */
static bool goes_by_tiles(const sn_conv *v, sn_onednn_kind kind) {
    return kind == SN_ONEDNN_DX ? sn_winograd_takes(v, v->O, v->H, v->W)
                                : sn_winograd_takes(v, v->C, v->oh, v->ow);
}

sn_conv_kernel SN_CPU(conv_kernel)(const sn_conv_operands *o, sn_onednn_kind kind) {
    static const sn_conv_kernel direct[] = {{SN_CPU(conv_workspace), SN_CPU(conv_run)},
                                            {SN_CPU(conv_dx_workspace), SN_CPU(conv_dx_run)},
                                            {SN_CPU(conv_dw_workspace), SN_CPU(conv_dw_run)}};
    static const sn_conv_kernel depthwise[] = {
        {NULL, SN_CPU(depthwise_run)},
        {NULL, SN_CPU(depthwise_dx_run)},
        {SN_CPU(depthwise_dw_workspace), SN_CPU(depthwise_dw_run)}};
    static const sn_conv_kernel depthwise_halves[] = {
        {SN_CPU(depthwise_halves_workspace), SN_CPU(depthwise_halves_run)},
        {SN_CPU(depthwise_halves_dx_workspace), SN_CPU(depthwise_halves_dx_run)},
        {SN_CPU(depthwise_halves_dw_workspace), SN_CPU(depthwise_halves_dw_run)}};
    static const sn_conv_kernel winograd[] = {
        {SN_CPU(winograd_workspace), SN_CPU(winograd_run)},
        {SN_CPU(winograd_dx_workspace), SN_CPU(winograd_dx_run)},
        {SN_CPU(winograd_dw_workspace), SN_CPU(winograd_dw_run)}};
    static const sn_conv_kernel few[] = {{SN_CPU(few_workspace), SN_CPU(few_run)},
                                         {SN_CPU(conv_dx_workspace), SN_CPU(conv_dx_run)},
                                         {SN_CPU(few_dw_workspace), SN_CPU(few_dw_run)}};
    const sn_conv *v = &o->v;
    if (SN_CPU(few_takes)(o))
        return few[kind];
    if (sn_conv_is_depthwise(v) && !o->pool)
        return (o->halves ? depthwise_halves : depthwise)[kind];
    if (o->pool && kind == SN_ONEDNN_FORWARD && !sn_winograd_pools(&o->pool->p))
        return direct[kind];
    return goes_by_tiles(v, kind) ? winograd[kind] : direct[kind];
}

static void run_conv2d_halves(const sn_call *c) {
    const sn_conv v = forward_of(c);
    const sn_conv_halves h = sn_conv_halves_forward(c, &v);
    const sn_conv_operands o = {.v = v, .halves = &h};
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_FORWARD).run(&o, c);
}

static void run_conv2d_dx_halves(const sn_call *c) {
    const sn_conv v = dx_of(c);
    const sn_conv_halves h = sn_conv_halves_dx(c);
    const sn_conv_operands o = {.v = v, .halves = &h};
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_DX).run(&o, c);
}

static void run_conv2d_dw_halves(const sn_call *c) {
    const sn_conv v = dw_of(c);
    const sn_conv_halves h = sn_conv_halves_dw(c);
    const sn_conv_operands o = {
        .v = v, .dw = sn_f32_of(&h.dw), .accumulate = c->accumulate, .halves = &h};
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_DW).run(&o, c);
}

static snug_status run_conv2d(const sn_call *c, snug_error *err) {
    if (sn_call_has_halves(c)) {
        run_conv2d_halves(c);
        return SNUG_OK;
    }
    if (!sn_call_is_f32(c))
        return reference_conv2d(c, err);
    sn_conv_operands o = {
        .v = forward_of(c),
        .x = c->in[SN_CONV_X].data,
        .w = c->in[SN_CONV_W].data,
        .bias = c->n_in > 2 ? c->in[SN_CONV_BIAS].data : NULL,
        .y = c->out[0].data,
    };
    if (o.v.line) {
        o.scale = o.bias;
        o.bias += o.v.O;
    }
    if (c->prepared)
        return sn_onednn_run(c->prepared, &o, c->workspace, c->n_threads, err);
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_FORWARD).run(&o, c);
    return SNUG_OK;
}

static snug_status run_conv2d_dx(const sn_call *c, snug_error *err) {
    if (sn_call_has_halves(c)) {
        run_conv2d_dx_halves(c);
        return SNUG_OK;
    }
    if (!sn_call_is_f32(c))
        return reference_conv2d_dx(c, err);
    const sn_conv_operands o = {
        .v = dx_of(c),
        .dy = c->in[SN_CONV_DX_DY].data,
        .w = c->in[SN_CONV_DX_W].data,
        .dx = c->out[0].data,
    };
    if (c->prepared)
        return sn_onednn_run(c->prepared, &o, c->workspace, c->n_threads, err);
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_DX).run(&o, c);
    return SNUG_OK;
}

static snug_status run_conv2d_dw(const sn_call *c, snug_error *err) {
    if (sn_call_has_halves(c)) {
        run_conv2d_dw_halves(c);
        return SNUG_OK;
    }
    if (!sn_call_is_f32(c))
        return reference_conv2d_dw(c, err);
    const sn_conv_operands o = {
        .v = dw_of(c),
        .x = c->in[SN_CONV_DW_X].data,
        .dy = c->in[SN_CONV_DW_DY].data,
        .dw = c->out[0].data,
        .db = c->n_out > 1 ? c->out[1].data : NULL,
        .accumulate = c->accumulate,
    };
    if (c->prepared)
        return sn_onednn_run(c->prepared, &o, c->workspace, c->n_threads, err);
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_DW).run(&o, c);
    return SNUG_OK;
}

/* --- descriptions and prepared objects ------------------------------------------------------- */
static sn_conv conv_of(const sn_opdesc *d, sn_onednn_kind kind) {
    const snug_type *in[] = {&d->in[0], &d->in[1], &d->in[2]};
    if (kind == SN_ONEDNN_DX)
        return sn_conv_dx(&d->attrs.conv_dx, in, &d->out[0]);
    if (kind == SN_ONEDNN_DW)
        return sn_conv_dw(&d->attrs.conv_dw, in, &d->out[0]);
    return sn_conv_forward(&d->attrs.conv, in, &d->out[0], d->n_in);
}

snug_status SN_CPU(conv_check)(const sn_conv *v, snug_error *err) {
    enum { MOST = 1 << 16 };
    int64_t most = v->kh > v->kw ? v->kh : v->kw;
    for (int i = 0; i < 4; i++)
        most = v->pad[i] > most ? v->pad[i] : most;
    for (int i = 0; i < 2; i++) {
        most = v->stride[i] > most ? v->stride[i] : most;
        most = v->dilation[i] > most ? v->dilation[i] : most;
    }
    if (most > MOST)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "no CPU kernel for a convolution with a kernel, stride, dilation or padding "
                       "of %lld; the largest is %d",
                       (long long)most, MOST);
    return SNUG_OK;
}

/* --- how near they come to the rate of products ---------------------------------------------- */
/* A quarter of the multiplications (of tiles at the edge, partly for nothing), and transforms that
 * weigh the more the fewer channels and the fewer tiles share them. */
static double winograd_efficiency(const sn_conv *v, sn_onednn_kind kind) {
    const bool back = kind == SN_ONEDNN_DX;
    const int64_t high = back ? v->H : v->oh, wide = back ? v->W : v->ow;
    const double tiles = (double)(v->N * sn_ceil_div(high, 4) * sn_ceil_div(wide, 4));
    const double filled = (double)(v->N * high * wide) / (16 * tiles);
    const double channels = (double)(v->C + v->O) / 2;
    return 4 * 0.68 * filled / (1 + 8.8 / channels) * tiles / (tiles + 6);
}

/* Weights are packed for however few pixels. */
static double direct_efficiency(const sn_conv *v, sn_onednn_kind kind) {
    static const double packing[] = {12, 35, 4}; /* as so many pixels of the product */
    static const double best[] = {1, 1, 0.88};
    const double pixels = (double)(v->N * v->oh * v->ow);
    return best[kind] * sn_gemm_filled(kind == SN_ONEDNN_DX ? v->C : v->O) * pixels /
           (pixels + packing[kind]);
}

/* What words of two terms gain. */
#define PAIRS_GAIN 1.5

static bool goes_by_pairs(const sn_conv_operands *o, sn_onednn_kind kind) {
    const bool direct = !goes_by_tiles(&o->v, kind) && !sn_conv_is_depthwise(&o->v);
    return direct && !o->pool && SN_CPU(conv_has_pairs)(o, kind);
}

/* Pooling in the epilogue of a direct product, which has few channels, takes its share. */
double SN_CPU(conv_efficiency)(const sn_conv_operands *o, sn_onednn_kind kind) {
    const sn_conv *v = &o->v;
    if (v->N == 0)
        return 1;
    if (SN_CPU(few_takes)(o) && kind != SN_ONEDNN_DX) /* pooling is shared by the channels of x */
        return 3 * (double)v->C / (double)(v->C + 3);
    if (sn_conv_is_depthwise(v))
        return kind == SN_ONEDNN_DW ? 0.17 : 0.42; /* no weight is used twice */
    if (goes_by_tiles(v, kind))
        return winograd_efficiency(v, kind);
    return direct_efficiency(v, kind) * (o->pool ? 0.62 : 1) *
           (goes_by_pairs(o, kind) ? PAIRS_GAIN : 1);
}

/* f64 has the reference only. Groups are oneDNN's where it has a kernel for them. */
static snug_status describe(const sn_opdesc *d, sn_onednn_kind kind, int n_threads, sn_variant *out,
                            snug_error *err) {
    const sn_conv v = conv_of(d, kind);
    const bool has_halves = sn_desc_has_halves(d);
    const sn_conv_halves h = sn_conv_halves_described(d);
    if (d->in[0].dtype != SNUG_F32 && !has_halves) {
        snprintf(out->impl, sizeof out->impl, "reference");
        return SNUG_OK;
    }
    SNUG_TRY(SN_CPU(conv_check)(&v, err));
    const sn_conv_operands o = {.v = v, .halves = has_halves ? &h : NULL};
    const sn_conv_kernel own = SN_CPU(conv_kernel)(&o, kind);
    out->workspace_bytes = own.workspace ? own.workspace(&o, n_threads) : 0;
    out->speed = SN_SPEED_PRODUCT;
    out->efficiency = SN_CPU(conv_efficiency)(&o, kind);
    if (goes_by_pairs(&o, kind))
        snprintf(out->impl, sizeof out->impl, "own:avx512bf16");
    return sn_onednn_wanted(&v) && !has_halves ? sn_onednn_describe(kind, &v, n_threads, out, err)
                                               : SNUG_OK;
}

static snug_status prepare(snug_engine *e, const sn_opdesc *d, sn_onednn_kind kind, int n_threads,
                           void **prepared, snug_error *err) {
    const sn_conv v = conv_of(d, kind);
    if (d->in[0].dtype == SNUG_F32 && !sn_desc_has_halves(d) && sn_onednn_wanted(&v))
        return sn_onednn_prepare(e, kind, &v, n_threads, prepared, err);
    *prepared = NULL;
    return SNUG_OK;
}

#define FAMILY(name, kind)                                                                         \
    static snug_status describe_##name(const sn_opdesc *d, int n_threads, sn_variant *out,         \
                                       snug_error *err) {                                          \
        return describe(d, kind, n_threads, out, err);                                             \
    }                                                                                              \
    static snug_status prepare_##name(snug_engine *e, const sn_opdesc *d, int n_threads,           \
                                      void **prepared, snug_error *err) {                          \
        return prepare(e, d, kind, n_threads, prepared, err);                                      \
    }                                                                                              \
    SN_CPU_FAMILY(name, .reference = reference_##name, .run = run_##name,                          \
                  .takes_stored = SN_HALF_DTYPES, .describe = describe_##name,                     \
                  .prepare = prepare_##name, .release = sn_onednn_release)
FAMILY(conv2d, SN_ONEDNN_FORWARD)
FAMILY(conv2d_dx, SN_ONEDNN_DX)
FAMILY(conv2d_dw, SN_ONEDNN_DW)
