/* real_elements.h: reading and writing real elements as double, for the reference kernels. Which
 * type it is stays the same for a whole loop, so the compiler takes the branches out of it. */
#ifndef SN_KERNELS_CPU_REAL_ELEMENTS_H
#define SN_KERNELS_CPU_REAL_ELEMENTS_H

#include "kernels/cpu/lines.h"
#include "tensor/feed.h"

#include <math.h>

typedef struct {
    void *data;
    bool wide;          /* f64; else f32, unless */
    snug_dtype half;    /* it is one of these two; SNUG_F32: no */
    snug_dtype rounded; /* f32 that is rounded to this half as it is read; SNUG_F32: no */
} sn_reals;

static inline sn_reals sn_reals_of(const snug_view *v) {
    const snug_dtype d = v->type.dtype;
    return (sn_reals){v->data, d == SNUG_F64, sn_dtype_is_half(d) ? d : SNUG_F32, SNUG_F32};
}

/* A factor of a product: f32 beside a half is rounded to that, as a cast before would. */
static inline sn_reals sn_reals_factor(const snug_view *v, const snug_view *other) {
    sn_reals r = sn_reals_of(v);
    if (v->type.dtype == SNUG_F32 && sn_dtype_is_half(other->type.dtype))
        r.rounded = other->type.dtype;
    return r;
}

static inline double sn_real_at(sn_reals r, int64_t i) {
    float wide;
    uint16_t half;
    if (r.rounded != SNUG_F32) {
        sn_halves_of_f32(r.rounded, (const float *)r.data + i, 1, &half);
        sn_halves_to_f32(r.rounded, &half, 1, &wide);
        return (double)wide;
    }
    if (r.half == SNUG_F32)
        return r.wide ? ((const double *)r.data)[i] : (double)((const float *)r.data)[i];
    sn_halves_to_f32(r.half, (const uint16_t *)r.data + i, 1, &wide);
    return (double)wide;
}

static inline void sn_real_put(sn_reals r, int64_t i, double v) {
    if (r.wide) {
        ((double *)r.data)[i] = v;
    } else if (r.half == SNUG_F32) {
        ((float *)r.data)[i] = (float)v;
    } else { /* rounded once, so not by way of f32 */
        const snug_status done = sn_convert(SNUG_F64, &v, r.half, (uint16_t *)r.data + i, 1, NULL);
        (void)done;
    }
}

/* Stores v, or adds it to what is there. */
static inline void sn_real_sum(sn_reals r, int64_t i, double v, bool add) {
    sn_real_put(r, i, add ? sn_real_at(r, i) + v : v);
}

/* The fused activations of matmul and conv2d. NaN goes through all of them. */
static inline double sn_real_act(int64_t act, double v) {
    if (act == SN_ACT_relu)
        return v < 0 ? 0 : v;
    if (act == SN_ACT_relu6)
        return v < 0 ? 0 : v > 6 ? 6 : v;
    if (act == SN_ACT_silu)
        return v / (1 + exp(-v));
    if (act == SN_ACT_tanh)
        return tanh(v);
    if (act == SN_ACT_sigmoid)
        return 1 / (1 + exp(-v));
    if (act == SN_ACT_hard_sigmoid)
        return v <= -3 ? 0 : v >= 3 ? 1 : (v + 3) / 6;
    return v;
}

/* No real operand but f32: the fast kernels' condition. */
static inline bool sn_call_is_f32(const sn_call *c) {
    return c->in[0].type.dtype == SNUG_F32 && !sn_call_has_halves(c);
}

/* A real operand is f64: for kernels that take halves beside f32. */
static inline bool sn_call_is_f64(const sn_call *c) {
    bool is = false;
    for (int i = 0; i < c->n_in; i++)
        is = is || c->in[i].type.dtype == SNUG_F64;
    return is;
}

/* Product of all dims but the last, and the last. */
static inline int64_t sn_rows_of(const snug_type *t) {
    return sn_type_span(t, 0, t->rank - 1);
}

static inline int64_t sn_width_of(const snug_type *t) {
    return t->dims[t->rank - 1];
}

#endif
