/* real_elements.h: reading and writing f32 or f64 elements as double, for the reference kernels.
 * `wide` is the same for a whole loop, so the compiler takes the branch out of it. */
#ifndef SN_KERNELS_CPU_REAL_ELEMENTS_H
#define SN_KERNELS_CPU_REAL_ELEMENTS_H

#include "kernels/cpu/cpu.h"

#include <math.h>

typedef struct {
    void *data;
    bool wide; /* f64 */
} sn_reals;

static inline sn_reals sn_reals_of(const snug_view *v) {
    return (sn_reals){v->data, v->type.dtype == SNUG_F64};
}

static inline double sn_real_at(sn_reals r, int64_t i) {
    return r.wide ? ((const double *)r.data)[i] : (double)((const float *)r.data)[i];
}

static inline void sn_real_put(sn_reals r, int64_t i, double v) {
    if (r.wide)
        ((double *)r.data)[i] = v;
    else
        ((float *)r.data)[i] = (float)v;
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

/* All operands f32: the fast kernels' condition. */
static inline bool sn_call_is_f32(const sn_call *c) {
    return c->in[0].type.dtype == SNUG_F32;
}

/* Product of all dims but the last, and the last. */
static inline int64_t sn_rows_of(const snug_type *t) {
    return sn_type_span(t, 0, t->rank - 1);
}

static inline int64_t sn_width_of(const snug_type *t) {
    return t->dims[t->rank - 1];
}

#endif
