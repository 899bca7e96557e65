/* functions_random.c: random numbers. A draw takes its key when it is built, in program order;
 * element i is a function of the key and of i, so nothing is stored and slices have the bits of the
 * whole. Stateless draws, and Keras' with a seed, take their key from the seed; TensorFlow's with a
 * seed the next of its sequence. */
#include "function/function_call.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

int64_t sn_fn_key(sn_fn_call *c) {
    int n = 0;
    const bool stateless = c->traits & SNUG_FUNCTION_SEEDED;
    const int64_t *seed = sn_fn_ints(c, "seed", &n);
    if (sn_fn_failed(c))
        return 0;
    if (stateless && n != 2)
        sn_fn_refuse(c, SNUG_E_INVALID, "seed must be two integers");
    if (!seed || n < 1)
        return c->door->draw(c);
    if (stateless || c->promotes)
        return (int64_t)sn_build_key(
                   c->b, "",
                   (int64_t)sn_rng_key((uint64_t)seed[0], n > 1 ? (uint64_t)seed[1] : UINT64_MAX))
            .i;
    if (n > 1)
        sn_fn_refuse(c, SNUG_E_INVALID, "seed must be one integer");
    return c->door->draw_seeded(c, seed[0]);
}

static sn_value draw(sn_fn_call *c, sn_random_kind kind, const snug_type *t, double a, double b) {
    sn_attrs at;
    sn_attrs_default(SN_OP_random, &at);
    at.random.dims.n = t->rank;
    memcpy(at.random.dims.v, t->dims, sizeof t->dims);
    at.random.dtype = t->dtype;
    at.random.kind = (int64_t)kind;
    at.random.key = sn_fn_key(c);
    at.random.low = sn_fn_parameter(c, a);
    at.random.high = sn_fn_parameter(c, b);
    return sn_fn_failed(c) ? SN_NO_VALUE : sn_build(c->b, SN_OP_random, &at, NULL, 0);
}

/* A setting that is a number; else it is a tensor, and false. */
static bool plain(sn_fn_call *c, const char *name, double otherwise, double *out) {
    *out = otherwise;
    return !sn_fn_given(c, name) || sn_fn_number(c, sn_fn_place(c, name), out);
}

/* kind from standard numbers, scaled and moved by numbers or by tensors. */
static void draw_scaled(sn_fn_call *c, sn_random_kind kind) {
    snug_type t;
    double mean, deviation;
    if (!sn_fn_shape(c, "shape", &t))
        return;
    t.dtype = sn_fn_dtype(c, "dtype", SNUG_F32);
    const bool a = plain(c, "mean", 0, &mean), b = plain(c, "stddev", 1, &deviation);
    sn_value x = draw(c, kind, &t, a && b ? mean : 0, a && b ? deviation : 1);
    if (!a || !b) {
        x = sn_build_mul(c->b, x, sn_fn_named_as(c, "stddev", t.dtype));
        x = sn_build_add(c->b, x, sn_fn_named_as(c, "mean", t.dtype));
    }
    c->out[0] = x;
}

void sn_fn_random_normal(sn_fn_call *c) {
    draw_scaled(c, SN_RANDOM_NORMAL);
}

void sn_fn_random_truncated(sn_fn_call *c) {
    draw_scaled(c, SN_RANDOM_TRUNCATED);
}

/* Whole numbers of [low, high): f64 has enough digits for all of them. */
static void draw_whole(sn_fn_call *c, snug_type t, double low, double high) {
    const snug_dtype dtype = t.dtype;
    t.dtype = SNUG_F64;
    if (!(high > low))
        return sn_fn_refuse(c, SNUG_E_INVALID, "minval %g is not below maxval %g", low, high);
    const sn_value x = sn_build_floor(c->b, draw(c, SN_RANDOM_UNIFORM, &t, low, high));
    c->out[0] = sn_build_cast(c->b, sn_build_minimum(c->b, x, sn_fn_like(c, x, high - 1)), dtype);
}

/* The same where a limit is a tensor, which is not looked at. */
static void draw_between(sn_fn_call *c, snug_type t) {
    sn_builder *const b = c->b;
    const snug_dtype dtype = t.dtype;
    t.dtype = SNUG_F64;
    const sn_value from = sn_build_cast(b, sn_fn_named(c, "minval"), SNUG_F64),
                   to = sn_build_cast(b, sn_fn_named(c, "maxval"), SNUG_F64);
    const sn_value share = draw(c, SN_RANDOM_UNIFORM, &t, 0, 1),
                   far = sn_build_mul(b, share, sn_build_sub(b, to, from));
    const sn_value x = sn_build_floor(b, sn_build_add(b, far, from));
    c->out[0] = sn_build_cast(b, sn_build_minimum(b, x, sn_build_affine(b, to, 1, -1)), dtype);
}

void sn_fn_random_uniform(sn_fn_call *c) {
    snug_type t;
    double low, high;
    if (!sn_fn_shape(c, "shape", &t))
        return;
    t.dtype = sn_fn_dtype(c, "dtype", SNUG_F32);
    const bool a = plain(c, "minval", 0, &low), b = plain(c, "maxval", 1, &high);
    if (sn_dtype_is_int(t.dtype)) {
        if (!sn_fn_given(c, "maxval"))
            return sn_fn_refuse(c, SNUG_E_INVALID, "whole numbers need minval and maxval");
        if (a && b)
            draw_whole(c, t, low, high);
        else
            draw_between(c, t);
        return;
    }
    sn_value x = draw(c, SN_RANDOM_UNIFORM, &t, a && b ? low : 0, a && b ? high : 1);
    if (!a || !b) {
        const sn_value from = sn_fn_named_as(c, "minval", t.dtype),
                       to = sn_fn_given(c, "maxval") ? sn_fn_named_as(c, "maxval", t.dtype)
                                                     : sn_build_scalar(c->b, t.dtype, 1);
        x = sn_build_add(c->b, sn_build_mul(c->b, x, sn_build_sub(c->b, to, from)), from);
    }
    c->out[0] = x;
}

void sn_fn_random_bernoulli(sn_fn_call *c) {
    snug_type t;
    double share;
    if (!sn_fn_shape(c, "shape", &t) || !plain(c, "probability", 0.5, &share))
        return;
    t.dtype = SNUG_F32;
    const sn_value x = draw(c, SN_RANDOM_UNIFORM, &t, 0, 1);
    c->out[0] = sn_build_cast(c->b, sn_build_less(c->b, x, sn_fn_like(c, x, share)),
                              sn_fn_dtype(c, "dtype", SNUG_I32));
}

/* Rows in the order of random numbers. */
void sn_fn_random_shuffle(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int axis = sn_fn_axis(c, "axis", t.rank, 0);
    sn_value sorted, places;
    if (sn_fn_failed(c))
        return;
    const sn_value numbers =
        draw(c, SN_RANDOM_UNIFORM, &(snug_type){SNUG_F64, 1, {t.dims[axis]}}, 0, 1);
    sn_build_sort(c->b, numbers, &(sn_sort){.axis = -1, .places = SNUG_I32}, &sorted, &places);
    const sn_value in[2] = {x, places};
    sn_attrs a;
    sn_attrs_default(SN_OP_gather, &a);
    a.axis.axis = axis;
    c->out[0] = sn_build(c->b, SN_OP_gather, &a, in, 2);
}

/* The place of the largest logit after a Gumbel number is added to each. */
void sn_fn_random_categorical(sn_fn_call *c) {
    const sn_value logits = sn_fn_float(c, 0);
    const snug_type t = sn_fn_type(c, logits);
    const int64_t n = sn_fn_int(c, "num_samples");
    if (t.rank != 2 || n < 0)
        return sn_fn_refuse(c, SNUG_E_INVALID, "logits must be rows of classes");
    const snug_type wide = {t.dtype, 3, {t.dims[0], n, t.dims[1]}};
    const double tiny = t.dtype == SNUG_F64 ? 1e-300 : 1e-30;
    const sn_value u = sn_build_clip(c->b, draw(c, SN_RANDOM_UNIFORM, &wide, 0, 1), tiny, 1);
    const sn_value e = sn_build_clip(c->b, sn_build_neg(c->b, sn_build_log(c->b, u)), tiny, 1e300);
    const sn_value scores =
        sn_build_sub(c->b, sn_build_expand_dims(c->b, logits, 1), sn_build_log(c->b, e));
    c->out[0] = sn_build_argmax(c->b, scores, 2, sn_fn_dtype(c, "dtype", SNUG_I64));
}

/* x / (1 - rate) where it is kept; with a noise shape together along axes of 1. */
void sn_fn_dropout(sn_fn_call *c) {
    sn_value x = sn_fn_float(c, 0);
    snug_type t = sn_fn_type(c, x), noise;
    const double rate = sn_fn_real(c, "rate");
    if (!(rate >= 0 && rate < 1))
        return sn_fn_refuse(c, SNUG_E_INVALID, "rate=%g; it must be in [0, 1)", rate);
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.key = sn_fn_key(c);
    a.dropout.rate = sn_fn_parameter(c, rate);
    if (!sn_fn_given(c, "noise_shape")) {
        c->out[0] = sn_build(c->b, SN_OP_dropout, &a, &x, 1);
        return;
    }
    if (!sn_fn_shape(c, "noise_shape", &noise))
        return;
    noise.dtype = t.dtype;
    for (int k = 0; k < noise.rank && k < t.rank; k++)
        noise.dims[k] = noise.dims[k] < 0 ? t.dims[k] : noise.dims[k];
    const sn_value ones = sn_build_fill(c->b, &noise, 1);
    c->out[0] = sn_build_mul(c->b, x, sn_build(c->b, SN_OP_dropout, &a, &ones, 1));
}

/* A part of the given size that begins anywhere it fits: indices from a random start on. */
void sn_fn_random_crop(sn_fn_call *c) {
    sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    snug_type size;
    if (!sn_fn_shape(c, "size", &size))
        return;
    if (size.rank != t.rank)
        return sn_fn_refuse(c, SNUG_E_INVALID, "size has %d entries, the tensor %d axes", size.rank,
                            t.rank);
    for (int k = 0; k < t.rank && !sn_fn_failed(c); k++) {
        const int64_t n = size.dims[k] < 0 ? t.dims[k] : size.dims[k];
        if (n > t.dims[k])
            return sn_fn_refuse(c, SNUG_E_INVALID, "needs value.shape >= size along axis %d", k);
        if (n == t.dims[k])
            continue;
        const snug_type one = {SNUG_F64, 1, {1}}, row = {SNUG_I32, 1, {n}};
        const sn_value start = sn_build_cast(
            c->b,
            sn_build_floor(c->b, draw(c, SN_RANDOM_UNIFORM, &one, 0, (double)(t.dims[k] - n + 1))),
            SNUG_I32);
        const sn_value steps =
            sn_build_scan(c->b, SN_OP_cumsum, sn_build_fill(c->b, &row, 1), 0, true, false);
        const sn_value in[2] = {x, sn_build_add(c->b, steps, start)};
        sn_attrs a;
        sn_attrs_default(SN_OP_gather, &a);
        a.axis.axis = k;
        x = sn_build(c->b, SN_OP_gather, &a, in, 2);
    }
    c->out[0] = x;
}

/* Marsaglia and Tsang: d (1 + x / sqrt(9 d))^3 of a normal x, where a uniform number allows it. Of
 * TRIES the first that is allowed; that none is happens less than once in 10^7. Below 1 the number
 * for alpha + 1 is multiplied by u^(1 / alpha). */
#define TRIES 6
static sn_value gamma_numbers(sn_fn_call *c, sn_value alpha, const snug_type *t) {
    sn_builder *const b = c->b;
    const sn_value one = sn_build_scalar(b, t->dtype, 1), zero = sn_build_scalar(b, t->dtype, 0);
    const sn_value small = sn_build_less(b, alpha, one);
    const sn_value shape = sn_build_select(b, small, sn_build_affine(b, alpha, 1, 1), alpha);
    const sn_value d = sn_build_affine(b, shape, 1, -1.0 / 3);
    const sn_value by = sn_build_rsqrt(b, sn_build_affine(b, d, 9, 0));
    sn_value found = sn_build_broadcast_to(b, d, t);
    for (int i = 0; i < TRIES; i++) {
        const sn_value x = draw(c, SN_RANDOM_NORMAL, t, 0, 1),
                       u = draw(c, SN_RANDOM_UNIFORM, t, 0, 1);
        const sn_value root = sn_build_affine(b, sn_build_mul(b, x, by), 1, 1);
        const sn_value v = sn_build_mul(b, root, sn_build_square(b, root));
        const sn_value safe = sn_build_select(b, sn_build_greater(b, v, zero), v, one);
        const sn_value most = sn_build_add(
            b, sn_build_affine(b, sn_build_square(b, x), 0.5, 0),
            sn_build_mul(b, d,
                         sn_build_add(b, sn_build_affine(b, v, -1, 1), sn_build_log(b, safe))));
        const sn_value fits = sn_build_logical_and(b, sn_build_greater(b, v, zero),
                                                   sn_build_less(b, sn_build_log(b, u), most));
        found = sn_build_select(b, fits, sn_build_mul(b, d, v), found);
    }
    const sn_value less = sn_build_exp(
        b, sn_build_div(b, sn_build_log(b, draw(c, SN_RANDOM_UNIFORM, t, 0, 1)), alpha));
    return sn_build_mul(b, found, sn_build_select(b, small, less, one));
}

void sn_fn_random_gamma(sn_fn_call *c) {
    snug_type t;
    if (!sn_fn_shape(c, "shape", &t))
        return;
    t.dtype = sn_fn_dtype(c, "dtype", SNUG_F32);
    const sn_value alpha = sn_fn_named_as(c, "alpha", t.dtype),
                   beta = sn_fn_named_as(c, "beta", t.dtype);
    const snug_type more = sn_fn_type(c, alpha);
    for (int k = 0; k < more.rank && t.rank < SNUG_MAX_RANK; k++)
        t.dims[t.rank++] = more.dims[k];
    if (sn_fn_failed(c))
        return;
    const sn_value x = gamma_numbers(c, alpha, &t);
    c->out[0] = sn_value_ok(beta) ? sn_build_div(c->b, x, beta) : x;
}

/* How many waiting times of mean 1 fit into `lam`: far more are drawn than are ever needed. */
void sn_fn_random_poisson(sn_fn_call *c) {
    snug_type t;
    const double lam = sn_fn_real(c, "lam");
    if (!sn_fn_shape(c, "shape", &t))
        return;
    if (!(lam >= 0 && lam <= 1000) || t.rank == SNUG_MAX_RANK)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "lam=%g; one number of up to 1000", lam);
    const snug_dtype dtype = sn_fn_dtype(c, "dtype", SNUG_F32);
    t.dtype = SNUG_F32;
    t.dims[t.rank++] = (int64_t)(lam + 10 * sqrt(lam) + 20);
    const sn_value u = sn_build_clip(c->b, draw(c, SN_RANDOM_UNIFORM, &t, 0, 1), 1e-30, 1);
    const sn_value times = sn_build_scan(
        c->b, SN_OP_cumsum, sn_build_neg(c->b, sn_build_log(c->b, u)), -1, false, false);
    const sn_value before = sn_build_less(c->b, times, sn_fn_like(c, times, lam));
    c->out[0] = sn_build_sum(c->b, sn_build_cast(c->b, before, dtype), 1u << (t.rank - 1), false);
}
