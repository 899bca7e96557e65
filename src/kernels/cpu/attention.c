/* attention.c: the families attention and attention_grad: softmax(scale q k^T) v per head, and its
 * gradient from q, k, v, the result y and the logarithm lse of each row's sum.
 *
 *   p = exp(s - lse), s = scale q k^T + bias; y = p' v with p' = p, or what dropout leaves of it
 *   dv = p'^T dy;  ds = p (dp - delta), dp = dropped dy v^T, delta = sum(dy y);
 *   dq = scale ds k;  dk = scale ds^T q
 *
 * The references make each score as often as they need it and keep none. attention.h says what a
 * mask does. */
#include "kernels/cpu/attention.h"

#include "base/rng.h"
#include "kernels/cpu/real_elements.h"

#include <string.h>

enum { CHUNK = 64 }; /* features summed up side by side */

/* The operands of one head. */
typedef struct {
    sn_attention a;
    sn_reals q, k, v, y, lse, dy, bias;
    int64_t b, h;
} head;

static head head_of(const sn_call *c, bool gradient) {
    head o = {.a = sn_attention_of(c, gradient ? 6 : 3)};
    o.q = sn_reals_of(&c->in[0]);
    o.k = sn_reals_of(&c->in[1]);
    o.v = sn_reals_of(&c->in[2]);
    o.y = sn_reals_of(gradient ? &c->in[3] : &c->out[0]);
    o.lse = sn_reals_of(gradient ? &c->in[4] : &c->out[1]);
    if (gradient)
        o.dy = sn_reals_of(&c->in[5]);
    if (o.a.bias)
        o.bias = sn_reals_of(&c->in[gradient ? 6 : 3]);
    return o;
}

static double dot(sn_reals x, int64_t i, sn_reals y, int64_t j, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += sn_real_at(x, i + k) * sn_real_at(y, j + k);
    return sum;
}

static double score(const head *o, int64_t t, int64_t s) {
    const sn_attention *a = &o->a;
    double bias = 0;
    if (a->mask) {
        const int64_t at =
            sn_attention_mask_at(a, o->b) + o->h * a->mask_h + t * a->mask_t + s * a->mask_s;
        if (a->seen && !a->seen[at])
            return (double)SN_UNSEEN;
        bias = a->bias ? sn_real_at(o->bias, at) : 0;
    }
    if (a->causal && s > t)
        return (double)SN_UNSEEN;
    const double v = a->scale * dot(o->q, sn_query_at(a, o->b, t, o->h), o->k,
                                    sn_key_at(a, o->b, s, o->h), a->D) +
                     bias;
    return v < (double)SN_UNSEEN ? (double)SN_UNSEEN : v;
}

static double row_lse(const head *o, int64_t t) {
    double max = (double)SN_UNSEEN, sum = 0;
    for (int64_t s = 0; s < o->a.S; s++) {
        const double v = score(o, t, s);
        max = v > max || v != v ? v : max;
    }
    if (max <= (double)SN_HALF_UNSEEN)
        return (double)SN_UNSEEN;
    for (int64_t s = 0; s < o->a.S; s++)
        sum += exp(score(o, t, s) - max);
    return max + log(sum);
}

/* What a weight is multiplied by: 1, or 0 or more where weights are dropped. */
static double kept(const head *o, int64_t t, int64_t s) {
    const sn_attention *a = &o->a;
    float u;
    if (!a->dropout)
        return 1;
    sn_random_fill_f32(SN_RANDOM_UNIFORM, a->key,
                       sn_attention_place(a, o->b, o->h, t) + (uint64_t)s, 1, &u);
    return u >= (float)a->rate ? 1 / (1 - a->rate) : 0;
}

/* The weight of key s for query t, and whether it depends on the score. */
static double weight(const head *o, int64_t t, int64_t s, double lse, bool *depends) {
    const double v = score(o, t, s);
    *depends = !(v <= (double)SN_HALF_UNSEEN);
    if (*depends)
        return exp(v - lse);
    return lse <= (double)SN_HALF_UNSEEN ? 1 / (double)o->a.S : 0;
}

/* --- forward --------------------------------------------------------------------------------- */
static void reference_row(const head *o, int64_t t) {
    const sn_attention *a = &o->a;
    const double lse = row_lse(o, t);
    const int64_t at = sn_result_at(a, o->b, t, o->h);
    sn_real_put(o->lse, (o->b * a->T + t) * a->H + o->h, lse);
    for (int64_t e = 0; e < a->E; e += CHUNK) {
        const int64_t n = a->E - e < CHUNK ? a->E - e : CHUNK;
        double sum[CHUNK] = {0};
        for (int64_t s = 0; s < a->S; s++) {
            bool depends;
            const double w = weight(o, t, s, lse, &depends) * kept(o, t, s);
            for (int64_t i = 0; i < n; i++)
                sum[i] += w * sn_real_at(o->v, sn_value_at(a, o->b, s, o->h) + e + i);
        }
        for (int64_t i = 0; i < n; i++)
            sn_real_put(o->y, at + e + i, sum[i]);
    }
}

static snug_status reference_attention(const sn_call *c, snug_error *err) {
    (void)err;
    head o = head_of(c, false);
    for (o.b = 0; o.b < o.a.B; o.b++)
        for (o.h = 0; o.h < o.a.H; o.h++)
            for (int64_t t = 0; t < o.a.T; t++)
                reference_row(&o, t);
    return SNUG_OK;
}

/* --- gradient -------------------------------------------------------------------------------- */
/* Query t and key s: the weight as it was used, and the gradient of q k^T. */
typedef struct {
    double w, ds;
} edge;

static edge edge_of(const head *o, int64_t t, int64_t s) {
    const sn_attention *a = &o->a;
    const double lse = sn_real_at(o->lse, (o->b * a->T + t) * a->H + o->h), keep = kept(o, t, s);
    const int64_t at = sn_result_at(a, o->b, t, o->h);
    bool depends;
    const double p = weight(o, t, s, lse, &depends);
    if (!depends)
        return (edge){p * keep, 0};
    const double dp = keep * dot(o->dy, at, o->v, sn_value_at(a, o->b, s, o->h), a->E);
    return (edge){p * keep, p * (dp - dot(o->dy, at, o->y, at, a->E)) * a->scale};
}

static void gradient_of_query(const head *o, int64_t t, sn_reals dq) {
    const sn_attention *a = &o->a;
    for (int64_t d = 0; d < a->D; d += CHUNK) {
        const int64_t n = a->D - d < CHUNK ? a->D - d : CHUNK;
        double sum[CHUNK] = {0};
        for (int64_t s = 0; s < a->S; s++) {
            const double ds = edge_of(o, t, s).ds;
            for (int64_t i = 0; i < n; i++)
                sum[i] += ds * sn_real_at(o->k, sn_key_at(a, o->b, s, o->h) + d + i);
        }
        for (int64_t i = 0; i < n; i++)
            sn_real_put(dq, sn_query_at(a, o->b, t, o->h) + d + i, sum[i]);
    }
}

/* Of key s, or with `value` of its value, over all heads of q that read it: o->h is the first. */
static void gradient_of_key(const head *o, int64_t s, bool value, sn_reals out) {
    const sn_attention *a = &o->a;
    const int64_t width = value ? a->E : a->D;
    const int64_t at = value ? sn_value_at(a, o->b, s, o->h) : sn_key_at(a, o->b, s, o->h);
    head each = *o;
    for (int64_t d = 0; d < width; d += CHUNK) {
        const int64_t n = width - d < CHUNK ? width - d : CHUNK;
        double sum[CHUNK] = {0};
        for (each.h = o->h; each.h < o->h + a->H / a->G; each.h++)
            for (int64_t t = 0; t < a->T; t++) {
                const edge x = edge_of(&each, t, s);
                const int64_t from =
                    value ? sn_result_at(a, o->b, t, each.h) : sn_query_at(a, o->b, t, each.h);
                for (int64_t i = 0; i < n; i++)
                    sum[i] += value ? x.w * sn_real_at(o->dy, from + d + i)
                                    : x.ds * sn_real_at(o->q, from + d + i);
            }
        for (int64_t i = 0; i < n; i++)
            sn_real_put(out, at + d + i, sum[i]);
    }
}

static snug_status reference_attention_grad(const sn_call *c, snug_error *err) {
    (void)err;
    head o = head_of(c, true);
    const sn_reals dq = sn_reals_of(&c->out[0]), dk = sn_reals_of(&c->out[1]),
                   dv = sn_reals_of(&c->out[2]);
    for (o.b = 0; o.b < o.a.B; o.b++)
        for (o.h = 0; o.h < o.a.H; o.h++) {
            for (int64_t t = 0; t < o.a.T; t++)
                gradient_of_query(&o, t, dq);
            for (int64_t s = 0; o.h % (o.a.H / o.a.G) == 0 && s < o.a.S; s++) {
                gradient_of_key(&o, s, false, dk);
                gradient_of_key(&o, s, true, dv);
            }
        }
    return SNUG_OK;
}

/* --- which kernel runs ----------------------------------------------------------------------- */
static snug_status run_attention(const sn_call *c, snug_error *err) {
    if (sn_call_has_halves(c))
        SN_CPU(attention_halves)(c);
    else if (sn_call_is_f32(c))
        SN_CPU(attention_f32)(c);
    else
        return reference_attention(c, err);
    return SNUG_OK;
}

static snug_status run_attention_grad(const sn_call *c, snug_error *err) {
    if (sn_call_has_halves(c))
        SN_CPU(attention_grad_halves)(c);
    else if (sn_call_is_f32(c))
        SN_CPU(attention_grad_f32)(c);
    else
        return reference_attention_grad(c, err);
    return SNUG_OK;
}

static snug_status describe(const sn_opdesc *d, int n_threads, sn_variant *out, snug_error *err) {
    (void)err;
    sn_attention a = sn_attention_shape(&d->attrs.attention, &d->in[0], &d->in[1], &d->in[2]);
    a.halves = sn_desc_has_halves(d);
    if (!a.halves && d->in[0].dtype != SNUG_F32)
        return SNUG_OK;
    out->speed = SN_SPEED_PRODUCT;
    out->workspace_bytes =
        SN_CPU(attention_workspace)(&a, d->op == SN_OP_attention_grad, n_threads);
    return SNUG_OK;
}

SN_CPU_FAMILY(attention, .reference = reference_attention, .run = run_attention,
              .takes_stored = SN_HALF_DTYPES, .describe = describe)
SN_CPU_FAMILY(attention_grad, .reference = reference_attention_grad, .run = run_attention_grad,
              .takes_stored = SN_HALF_DTYPES, .describe = describe)
