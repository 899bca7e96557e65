/* conv_pool.c: the families conv2d_pool, conv2d_pool_dx and conv2d_pool_dw: references,
 * descriptions, and which kernel runs. The references add in double; the codes of conv_pool.h are
 * the same for all kernels.
 *
 * 1. The first maximum of a window wins, a NaN beats every number, the convolution's padding is
 *    zeros, the pooling's padding never wins.
 * 2. y = act(maximum): relu keeps the order of numbers, so that is the maximum of act. */
#include "kernels/cpu/conv_pool.h"

#include "kernels/cpu/conv_fast.h"
#include "kernels/cpu/conv_halves.h"
#include "kernels/cpu/conv_reference.h"

#include <stdio.h>

/* --- geometry -------------------------------------------------------------------------------- */
/* y and dy of the description are pooled; the convolution's own extents follow from x and w. */
typedef struct {
    sn_conv v;
    sn_pooling q;
} conv_pool;

static conv_pool geometry_of(sn_conv v, const int64_t *pool, const snug_type *pooled) {
    v.oh = sn_conv_results(&v, 0);
    v.ow = sn_conv_results(&v, 1);
    return (conv_pool){v, sn_pooling_of(pool, &v, pooled)};
}

/* The three attribute families begin like conv, conv_dx and conv_dw. */
static conv_pool forward_of(const sn_attrs *a, const snug_type *const in[], const snug_type *out,
                            int n_in) {
    conv_pool g = geometry_of(sn_conv_forward(&a->conv, in, out, n_in), a->conv_pool.pool, out);
    g.q.relu = g.v.act == SN_ACT_relu;
    g.v.act = SN_ACT_none; /* the convolution's own */
    return g;
}

static conv_pool dx_of(const sn_attrs *a, const snug_type *const in[], const snug_type *out,
                       int n_in) {
    (void)n_in;
    return geometry_of(sn_conv_dx(&a->conv_dx, in, out), a->conv_pool_dx.pool, in[SN_CONV_DX_DY]);
}

static conv_pool dw_of(const sn_attrs *a, const snug_type *const in[], const snug_type *out,
                       int n_in) {
    (void)n_in;
    return geometry_of(sn_conv_dw(&a->conv_dw, in, out), a->conv_pool_dw.pool, in[SN_CONV_DW_DY]);
}

typedef conv_pool (*geometry)(const sn_attrs *a, const snug_type *const in[], const snug_type *out,
                              int n_in);

static conv_pool of_call(const sn_call *c, geometry geometry_of_row) {
    const snug_type *in[] = {&c->in[0].type, &c->in[1].type, c->n_in > 2 ? &c->in[2].type : NULL};
    return geometry_of_row(c->attrs, in, &c->out[0].type, c->n_in);
}

/* --- references ------------------------------------------------------------------------------ */
enum { CODE = 2 }; /* input of both gradients */

/* Element of the convolution with its bias. */
static double result_at(const sn_call *c, const sn_conv *v, const int64_t at[4]) {
    const double sum = sn_conv_y_at(v, sn_reals_factor(&c->in[SN_CONV_X], &c->in[SN_CONV_W]),
                                    sn_reals_factor(&c->in[SN_CONV_W], &c->in[SN_CONV_X]), at);
    if (!v->bias)
        return sum;
    const sn_reals bias = sn_reals_of(&c->in[SN_CONV_BIAS]);
    return v->line ? sum * sn_real_at(bias, at[3]) + sn_real_at(bias, v->O + at[3])
                   : sum + sn_real_at(bias, at[3]);
}

/* Pooled element `at` before relu; *place is where it stood. */
static double maximum_at(const sn_call *c, const conv_pool *g, const int64_t at[4],
                         int64_t *place) {
    const sn_pool *p = &g->q.p;
    const sn_pool_span r = sn_pool_window(p, 0, at[1]), s = sn_pool_window(p, 1, at[2]);
    double best = -INFINITY;
    *place = -1;
    for (int64_t a = r.from; a < r.to; a++)
        for (int64_t b = s.from; b < s.to; b++) {
            const int64_t from[4] = {at[0], r.start + a, s.start + b, at[3]};
            const double v = result_at(c, &g->v, from);
            if (*place >= 0 && !(v > best || (v != v && best == best)))
                continue;
            best = v;
            *place = a * p->kernel[1] + b;
        }
    return best;
}

static snug_status reference_conv2d_pool(const sn_call *c, snug_error *err) {
    (void)err;
    const conv_pool g = of_call(c, forward_of);
    const sn_pool *p = &g.q.p;
    const sn_reals y = sn_reals_of(&c->out[0]);
    const int64_t count = p->N * p->oh * p->ow * p->C;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (p->oh * p->ow * p->C), i / (p->ow * p->C) % p->oh,
                               i / p->C % p->ow, i % p->C};
        int64_t place;
        const double best = maximum_at(c, &g, at, &place);
        sn_real_put(y, i, g.q.relu ? sn_real_act(SN_ACT_relu, best) : best);
        if (c->n_out > 1)
            sn_code_put(p, (uint8_t *)c->out[1].data + i / p->C * sn_code_pixel(p), at[3],
                        g.q.relu && !(best > 0) ? SN_CODE_DEAD : place);
    }
    return SNUG_OK;
}

/* Where the gradient of pooled element i goes: row and column of the convolution's result. False:
 * nowhere. */
static bool find_winner(const sn_call *c, const sn_pool *p, int64_t i, int64_t at[2]) {
    const uint8_t *pixel = (const uint8_t *)c->in[CODE].data + i / p->C * sn_code_pixel(p);
    const int64_t place = sn_code_get(p, pixel, i % p->C);
    at[0] = i / (p->ow * p->C) % p->oh * p->stride[0] - p->pad[0] + place / p->kernel[1];
    at[1] = i / p->C % p->ow * p->stride[1] - p->pad[2] + place % p->kernel[1];
    return place != SN_CODE_DEAD;
}

/* The gradient of one element of the convolution's result. */
static double spread_at(const sn_call *c, const sn_pool *p, sn_reals dy, const int64_t at[4]) {
    double sum = 0;
    for (int64_t k = 0; k < p->kernel[0] * p->kernel[1]; k++) {
        const int64_t i = sn_pool_under(p, 0, at[1], k / p->kernel[1]);
        const int64_t j = sn_pool_under(p, 1, at[2], k % p->kernel[1]);
        int64_t winner[2];
        if (i < 0 || j < 0)
            continue;
        const int64_t y = sn_pool_y(p, at[0], i, j) + at[3];
        if (find_winner(c, p, y, winner) && winner[0] == at[1] && winner[1] == at[2])
            sum += sn_real_at(dy, y);
    }
    return sum;
}

/* One element of dx. */
static double dx_at(const sn_call *c, const conv_pool *g, const int64_t at[4]) {
    const sn_conv *v = &g->v;
    const sn_reals dy = sn_reals_factor(&c->in[SN_CONV_DX_DY], &c->in[SN_CONV_DX_W]);
    const sn_reals w = sn_reals_factor(&c->in[SN_CONV_DX_W], &c->in[SN_CONV_DX_DY]);
    const int64_t depth = v->C / v->groups, width = v->O / v->groups, first = at[3] / depth * width;
    double sum = 0;
    for (int64_t pq = 0; pq < v->kh * v->kw; pq++) {
        const int64_t i = sn_conv_y_under(v, 0, at[1], pq / v->kw),
                      j = sn_conv_y_under(v, 1, at[2], pq % v->kw);
        for (int64_t o = first; i >= 0 && j >= 0 && o < first + width; o++)
            sum += spread_at(c, &g->q.p, dy, (const int64_t[4]){at[0], i, j, o}) *
                   sn_real_at(w, (pq * depth + at[3] % depth) * v->O + o);
    }
    return sum;
}

static snug_status reference_conv2d_pool_dx(const sn_call *c, snug_error *err) {
    (void)err;
    const conv_pool g = of_call(c, dx_of);
    const sn_conv *v = &g.v;
    const int64_t count = v->N * v->H * v->W * v->C;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (v->H * v->W * v->C), i / (v->W * v->C) % v->H, i / v->C % v->W,
                               i % v->C};
        sn_real_put(sn_reals_of(&c->out[0]), i, dx_at(c, &g, at));
    }
    return SNUG_OK;
}

/* One element of dw: (p, q, k, o); with p < 0 one of db. */
static double dw_at(const sn_call *c, const conv_pool *g, const int64_t at[4]) {
    const sn_conv *v = &g->v;
    const sn_reals x = sn_reals_factor(&c->in[SN_CONV_DW_X], &c->in[SN_CONV_DW_DY]);
    const sn_reals dy = sn_reals_factor(&c->in[SN_CONV_DW_DY], &c->in[SN_CONV_DW_X]);
    const int64_t channel = at[3] / (v->O / v->groups) * (v->C / v->groups) + at[2];
    double sum = 0;
    for (int64_t i = at[3]; i < v->N * g->q.p.oh * g->q.p.ow * v->O; i += v->O) {
        int64_t winner[2];
        if (!find_winner(c, &g->q.p, i, winner))
            continue;
        const int64_t from =
            sn_conv_x_index(v, i / (g->q.p.oh * g->q.p.ow * v->O),
                            sn_conv_at(v, 0, winner[0], at[0]), sn_conv_at(v, 1, winner[1], at[1]));
        if (at[0] < 0)
            sum += sn_real_at(dy, i);
        else if (from >= 0)
            sum += sn_real_at(x, from + channel) * sn_real_at(dy, i);
    }
    return sum;
}

static snug_status reference_conv2d_pool_dw(const sn_call *c, snug_error *err) {
    (void)err;
    const conv_pool g = of_call(c, dw_of);
    const sn_conv *v = &g.v;
    const int64_t depth = v->C / v->groups, count = v->kh * v->kw * depth * v->O;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (v->kw * depth * v->O), i / (depth * v->O) % v->kw,
                               i / v->O % depth, i % v->O};
        sn_real_sum(sn_reals_of(&c->out[0]), i, dw_at(c, &g, at), c->accumulate);
    }
    for (int64_t o = 0; v->bias && o < v->O; o++)
        sn_real_sum(sn_reals_of(&c->out[1]), o, dw_at(c, &g, (const int64_t[4]){-1, -1, 0, o}),
                    c->accumulate);
    return SNUG_OK;
}

/* --- the fast kernels: f32 and halves --------------------------------------------------------- */
/* A byte of a plane is one group's. */
static bool is_fast(bool halves, snug_dtype dtype, const conv_pool *g) {
    const sn_pool *p = &g->q.p;
    int64_t area[2];
    if (g->v.groups > 1 && g->v.O / g->v.groups % 8 != 0)
        return false;
    for (int i = 0; i < 2; i++)
        area[i] = p->kernel[i] > p->stride[i] ? p->kernel[i] : p->stride[i];
    return (halves || dtype == SNUG_F32) && area[0] <= SN_POOL_AREA && area[1] <= SN_POOL_AREA &&
           area[0] * area[1] <= SN_POOL_AREA;
}

static void run_halves(const sn_call *c, const conv_pool *g, const sn_conv_halves *h,
                       sn_onednn_kind kind) {
    const sn_conv_operands o = {
        .v = g->v,
        .y = sn_f32_of(&h->y),
        .dw = sn_f32_of(&h->dw),
        .accumulate = c->accumulate,
        .pool = &g->q,
        .halves = h,
    };
    SN_CPU(conv_kernel)(&o, kind).run(&o, c);
}

static snug_status run_conv2d_pool(const sn_call *c, snug_error *err) {
    conv_pool g = of_call(c, forward_of);
    const bool halves = sn_call_has_halves(c);
    if (!is_fast(halves, c->in[0].type.dtype, &g))
        return reference_conv2d_pool(c, err);
    g.q.code = c->n_out > 1 ? c->out[1].data : NULL;
    if (halves) {
        const sn_conv_halves h = sn_conv_halves_forward(c, &g.v);
        g.q.pooled = h.y;
        run_halves(c, &g, &h, SN_ONEDNN_FORWARD);
        return SNUG_OK;
    }
    sn_conv_operands o = {
        .v = g.v,
        .x = c->in[SN_CONV_X].data,
        .w = c->in[SN_CONV_W].data,
        .bias = c->n_in > 2 ? c->in[SN_CONV_BIAS].data : NULL,
        .y = c->out[0].data,
        .pool = &g.q,
    };
    if (o.v.line) {
        o.scale = o.bias;
        o.bias += o.v.O;
    }
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_FORWARD).run(&o, c);
    return SNUG_OK;
}

static snug_status run_conv2d_pool_dx(const sn_call *c, snug_error *err) {
    conv_pool g = of_call(c, dx_of);
    const bool halves = sn_call_has_halves(c);
    if (!is_fast(halves, c->in[0].type.dtype, &g))
        return reference_conv2d_pool_dx(c, err);
    g.q.code = c->in[CODE].data;
    if (halves) {
        const sn_conv_halves h = sn_conv_halves_dx(c);
        g.q.pooled = h.dy;
        run_halves(c, &g, &h, SN_ONEDNN_DX);
        return SNUG_OK;
    }
    const sn_conv_operands o = {
        .v = g.v,
        .dy = c->in[SN_CONV_DX_DY].data,
        .w = c->in[SN_CONV_DX_W].data,
        .dx = c->out[0].data,
        .pool = &g.q,
    };
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_DX).run(&o, c);
    return SNUG_OK;
}

static snug_status run_conv2d_pool_dw(const sn_call *c, snug_error *err) {
    conv_pool g = of_call(c, dw_of);
    const bool halves = sn_call_has_halves(c);
    if (!is_fast(halves, c->in[0].type.dtype, &g))
        return reference_conv2d_pool_dw(c, err);
    g.q.code = c->in[CODE].data;
    if (halves) {
        const sn_conv_halves h = sn_conv_halves_dw(c);
        g.q.pooled = h.dy;
        run_halves(c, &g, &h, SN_ONEDNN_DW);
        return SNUG_OK;
    }
    const sn_conv_operands o = {
        .v = g.v,
        .x = c->in[SN_CONV_DW_X].data,
        .dy = c->in[SN_CONV_DW_DY].data,
        .dw = c->out[0].data,
        .db = c->n_out > 1 ? c->out[1].data : NULL,
        .accumulate = c->accumulate,
        .pool = &g.q,
    };
    SN_CPU(conv_kernel)(&o, SN_ONEDNN_DW).run(&o, c);
    return SNUG_OK;
}

/* --- descriptions ---------------------------------------------------------------------------- */
/* What the three rows differ in. */
typedef struct {
    geometry geometry;
    sn_onednn_kind kind;
} row;

static snug_status describe(const sn_opdesc *d, row r, int n_threads, sn_variant *out,
                            snug_error *err) {
    const snug_type *in[] = {&d->in[0], &d->in[1], &d->in[2]};
    const conv_pool g = r.geometry(&d->attrs, in, &d->out[0], d->n_in);
    const sn_pool *p = &g.q.p;
    if (p->kernel[0] > SN_CODE_DEAD || p->kernel[1] > SN_CODE_DEAD ||
        p->kernel[0] * p->kernel[1] > SN_CODE_DEAD)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a max-pool window of %lld x %lld has more than %d places, which one byte "
                       "cannot tell apart; pool in two steps",
                       (long long)p->kernel[0], (long long)p->kernel[1], SN_CODE_DEAD);
    if (d->n_out > 1 && d->out[1].dtype == SNUG_OPAQUE)
        out->opaque_bytes[1] = (size_t)(p->N * p->oh * p->ow * sn_code_pixel(p));
    const bool has_halves = sn_desc_has_halves(d);
    const sn_conv_halves h = sn_conv_halves_described(d);
    if (!is_fast(has_halves, d->in[0].dtype, &g)) {
        snprintf(out->impl, sizeof out->impl, "reference");
        return SNUG_OK;
    }
    SNUG_TRY(SN_CPU(conv_check)(&g.v, err));
    const sn_conv_operands o = {.v = g.v, .pool = &g.q, .halves = has_halves ? &h : NULL};
    out->speed = SN_SPEED_PRODUCT;
    out->workspace_bytes = SN_CPU(conv_kernel)(&o, r.kind).workspace(&o, n_threads);
    out->efficiency = SN_CPU(conv_efficiency)(&o, r.kind);
    return SNUG_OK;
}

#define FAMILY(name, ...)                                                                          \
    static snug_status describe_##name(const sn_opdesc *d, int n_threads, sn_variant *out,         \
                                       snug_error *err) {                                          \
        return describe(d, (row){__VA_ARGS__}, n_threads, out, err);                               \
    }                                                                                              \
    SN_CPU_FAMILY(name, .reference = reference_##name, .run = run_##name,                          \
                  .takes_stored = SN_HALF_DTYPES, .describe = describe_##name)
FAMILY(conv2d_pool, forward_of, SN_ONEDNN_FORWARD)
FAMILY(conv2d_pool_dx, dx_of, SN_ONEDNN_DX)
FAMILY(conv2d_pool_dw, dw_of, SN_ONEDNN_DW)
