/* pooling.c: the pooling families: references, descriptions, and which kernel runs.
 *
 * 1. The code of maxpool is one byte per output: the place of the maximum in its window, row by
 * row.
 * 2. Padding never wins and is never counted; the first maximum wins; a NaN beats every number.
 * 3. Each element of dx adds up the windows that hold it, in the order of window places. */
#include "kernels/cpu/pooling.h"

#include "base/size.h"
#include "kernels/cpu/real_elements.h"

static bool beats(double v, double best) {
    return v > best || (v != v && best == best);
}

/* --- references ------------------------------------------------------------------------------ */
static void reference_max_at(const sn_pool *p, sn_reals x, const int64_t at[4], double *value,
                             uint8_t *code) {
    const sn_pool_span r = sn_pool_window(p, 0, at[1]), s = sn_pool_window(p, 1, at[2]);
    double best = -INFINITY;
    int64_t place = -1;
    for (int64_t a = r.from; a < r.to; a++)
        for (int64_t b = s.from; b < s.to; b++) {
            const double v = sn_real_at(x, sn_pool_x(p, at[0], r.start + a, s.start + b) + at[3]);
            if (place >= 0 && !beats(v, best))
                continue;
            best = v;
            place = a * p->kernel[1] + b;
        }
    *value = best;
    *code = (uint8_t)(place < 0 ? 0 : place);
}

static snug_status reference_maxpool(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_pool p = sn_pool_of(&c->in[0].type, &c->out[0].type, &c->attrs->pool);
    const sn_reals x = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->out[0]);
    uint8_t *code = c->out[1].data;
    const int64_t count = p.N * p.oh * p.ow * p.C;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (p.oh * p.ow * p.C), i / (p.ow * p.C) % p.oh, i / p.C % p.ow,
                               i % p.C};
        double value;
        reference_max_at(&p, x, at, &value, &code[i]);
        sn_real_put(y, i, value);
    }
    return SNUG_OK;
}

static snug_status reference_maxpool_pick(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_pool p = sn_pool_backward_of(&c->in[0].type, &c->out[0].type, &c->attrs->pool_grad);
    const sn_reals x = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->out[0]);
    const uint8_t *code = c->in[1].data;
    const int64_t count = p.N * p.oh * p.ow * p.C;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row =
            i / (p.ow * p.C) % p.oh * p.stride[0] - p.pad[0] + code[i] / p.kernel[1];
        const int64_t col = i / p.C % p.ow * p.stride[1] - p.pad[2] + code[i] % p.kernel[1];
        const bool inside = row >= 0 && row < p.H && col >= 0 && col < p.W;
        const int64_t n = i / (p.oh * p.ow * p.C);
        sn_real_put(y, i, inside ? sn_real_at(x, sn_pool_x(&p, n, row, col) + i % p.C) : 0);
    }
    return SNUG_OK;
}

/* One element of dx: the sum over windows that hold it. code NULL: the mean's share, else where it
 * was the maximum. */
static double reference_dx_at(const sn_pool *p, sn_reals dy, const uint8_t *code,
                              const int64_t at[4]) {
    double sum = 0;
    for (int64_t k = 0; k < p->kernel[0] * p->kernel[1]; k++) {
        const int64_t i = sn_pool_under(p, 0, at[1], k / p->kernel[1]);
        const int64_t j = sn_pool_under(p, 1, at[2], k % p->kernel[1]);
        if (i < 0 || j < 0)
            continue;
        const int64_t y = sn_pool_y(p, at[0], i, j) + at[3];
        const sn_pool_span r = sn_pool_window(p, 0, i), s = sn_pool_window(p, 1, j);
        if (!code)
            sum += sn_real_at(dy, y) / (double)((r.to - r.from) * (s.to - s.from));
        else if (code[y] == k)
            sum += sn_real_at(dy, y);
    }
    return sum;
}

static void reference_backward(const sn_call *c, const uint8_t *code) {
    const sn_pool p = sn_pool_backward_of(&c->out[0].type, &c->in[0].type, &c->attrs->pool_grad);
    const sn_reals dy = sn_reals_of(&c->in[0]), dx = sn_reals_of(&c->out[0]);
    const int64_t count = p.N * p.H * p.W * p.C;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at[4] = {i / (p.H * p.W * p.C), i / (p.W * p.C) % p.H, i / p.C % p.W,
                               i % p.C};
        sn_real_put(dx, i, reference_dx_at(&p, dy, code, at));
    }
}

static snug_status reference_maxpool_grad(const sn_call *c, snug_error *err) {
    (void)err;
    reference_backward(c, c->in[1].data);
    return SNUG_OK;
}

static snug_status reference_avgpool_grad(const sn_call *c, snug_error *err) {
    (void)err;
    reference_backward(c, NULL);
    return SNUG_OK;
}

static snug_status reference_avgpool(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_pool p = sn_pool_of(&c->in[0].type, &c->out[0].type, &c->attrs->pool);
    const sn_reals x = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->out[0]);
    const int64_t count = p.N * p.oh * p.ow * p.C;
    for (int64_t i = 0; i < count; i++) {
        const sn_pool_span r = sn_pool_window(&p, 0, i / (p.ow * p.C) % p.oh),
                           s = sn_pool_window(&p, 1, i / p.C % p.ow);
        const int64_t n = i / (p.oh * p.ow * p.C), cells = (r.to - r.from) * (s.to - s.from);
        double sum = 0;
        for (int64_t a = r.from; a < r.to; a++)
            for (int64_t b = s.from; b < s.to; b++)
                sum += sn_real_at(x, sn_pool_x(&p, n, r.start + a, s.start + b) + i % p.C);
        sn_real_put(y, i, cells > 0 ? sum / (double)cells : 0);
    }
    return SNUG_OK;
}

/* --- description ----------------------------------------------------------------------------- */
static snug_status check_window(const int64_t kernel[2], snug_error *err) {
    int64_t area;
    if (!sn_i64_mul(kernel[0], kernel[1], &area) || area > 256)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a max-pool window of %lld x %lld has more than 256 places, which one byte "
                       "cannot tell apart; "
                       "pool in two steps",
                       (long long)kernel[0], (long long)kernel[1]);
    return SNUG_OK;
}

static snug_status describe_maxpool(const sn_opdesc *d, int n_threads, sn_variant *out,
                                    snug_error *err) {
    SNUG_TRY(check_window(d->attrs.pool.kernel, err));
    out->opaque_bytes[1] = (size_t)sn_type_count(&d->out[0]);
    out->workspace_bytes = SN_CPU(pool_workspace)(d, n_threads);
    return SNUG_OK;
}

static snug_status describe_maxpool_pick(const sn_opdesc *d, int n_threads, sn_variant *out,
                                         snug_error *err) {
    (void)n_threads;
    (void)out;
    return check_window(d->attrs.pool_grad.kernel, err);
}

static snug_status describe_avgpool(const sn_opdesc *d, int n_threads, sn_variant *out,
                                    snug_error *err) {
    (void)err;
    out->workspace_bytes = SN_CPU(pool_workspace)(d, n_threads);
    return SNUG_OK;
}

static snug_status describe_backward(const sn_opdesc *d, int n_threads, sn_variant *out,
                                     snug_error *err) {
    if (d->op == SN_OP_maxpool_grad)
        SNUG_TRY(check_window(d->attrs.pool_grad.kernel, err));
    out->workspace_bytes = SN_CPU(pool_backward_workspace)(d, n_threads);
    return SNUG_OK;
}

/* --- which kernel runs ----------------------------------------------------------------------- */
static snug_status run_maxpool(const sn_call *c, snug_error *err) {
    if (sn_call_is_f64(c))
        return reference_maxpool(c, err);
    SN_CPU(maxpool_f32)(c);
    return SNUG_OK;
}

static snug_status run_maxpool_grad(const sn_call *c, snug_error *err) {
    if (sn_call_is_f64(c))
        return reference_maxpool_grad(c, err);
    SN_CPU(pool_backward_f32)(c, c->in[1].data);
    return SNUG_OK;
}

static snug_status run_avgpool(const sn_call *c, snug_error *err) {
    if (sn_call_is_f64(c))
        return reference_avgpool(c, err);
    SN_CPU(avgpool_f32)(c);
    return SNUG_OK;
}

static snug_status run_avgpool_grad(const sn_call *c, snug_error *err) {
    if (sn_call_is_f64(c))
        return reference_avgpool_grad(c, err);
    SN_CPU(pool_backward_f32)(c, NULL);
    return SNUG_OK;
}

SN_CPU_FAMILY(maxpool, .reference = reference_maxpool, .run = run_maxpool,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_maxpool)
SN_CPU_FAMILY(maxpool_grad, .reference = reference_maxpool_grad, .run = run_maxpool_grad,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_backward)
SN_CPU_FAMILY(maxpool_pick, .reference = reference_maxpool_pick, .run = reference_maxpool_pick,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_maxpool_pick)
SN_CPU_FAMILY(avgpool, .reference = reference_avgpool, .run = run_avgpool,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_avgpool)
SN_CPU_FAMILY(avgpool_grad, .reference = reference_avgpool_grad, .run = run_avgpool_grad,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_backward)
