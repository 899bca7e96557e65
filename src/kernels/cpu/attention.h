/* attention.h: a call of attention or attention_grad taken apart.
 *
 * Letters: B leading entries, T queries, S keys, H heads of q, G of k and v, D features of q and k,
 * E of v. Rows of q, k, v and y are found by their element offsets; a mask is read through strides
 * that are 0 where it is spread.
 *
 * A key that a query does not see has the score SN_UNSEEN instead of its own, as has any score
 * below it (a bias of -infinity). A query that sees no key weighs all of them alike. */
#ifndef SN_KERNELS_CPU_ATTENTION_H
#define SN_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

#define SN_UNSEEN      (-1e30f)
#define SN_HALF_UNSEEN (-5e29f) /* no score that counts is below */

typedef struct {
    int64_t B, T, S, H, G, D, E;
    bool causal, dropout, halves; /* the last: some operand is one */
    double scale, rate;
    uint64_t key;
    const uint8_t *seen; /* the mask, if it is truth values */
    const void *bias;    /* the mask, if it is numbers */
    const snug_type *q;  /* of in[0] */
    const snug_type *mask;
    int64_t mask_h, mask_t, mask_s; /* strides */
    int axis;                       /* where output 0 lies in the full value, see sn_call */
    int64_t first, full;
} sn_attention;

static inline sn_attention sn_attention_shape(const sn_attrs_attention *attrs, const snug_type *q,
                                              const snug_type *k, const snug_type *v) {
    const int r = q->rank;
    return (sn_attention){
        .B = sn_type_span(q, 0, r - 3),
        .T = q->dims[r - 3],
        .S = k->dims[r - 3],
        .H = q->dims[r - 2],
        .G = k->dims[r - 2],
        .D = q->dims[r - 1],
        .E = v->dims[r - 1],
        .causal = attrs->causal != 0,
        .dropout = attrs->dropout != 0,
        .q = q,
    };
}

/* mask: which input it is, where there is one. */
static inline sn_attention sn_attention_of(const sn_call *c, int mask) {
    sn_attention a =
        sn_attention_shape(&c->attrs->attention, &c->in[0].type, &c->in[1].type, &c->in[2].type);
    a.scale = c->param[0].real;
    a.rate = c->param[1].real;
    a.key = (uint64_t)c->param[2].key;
    a.axis = c->axis;
    a.first = c->first;
    a.full = c->full;
    if (c->n_in <= mask)
        return a;
    const snug_type *t = &c->in[mask].type;
    const int64_t *d = t->dims + t->rank - 3;
    a.mask = t;
    a.seen = t->dtype == SNUG_BOOL ? c->in[mask].data : NULL;
    a.bias = t->dtype == SNUG_BOOL ? NULL : c->in[mask].data;
    a.mask_s = d[2] != 1;
    a.mask_t = d[1] != 1 ? d[2] : 0;
    a.mask_h = d[0] != 1 ? d[1] * d[2] : 0;
    return a;
}

/* First element of the mask for entry b. */
static inline int64_t sn_attention_mask_at(const sn_attention *a, int64_t b) {
    const int64_t *d = a->mask->dims;
    const int leading = a->mask->rank - 3;
    int64_t at = 0, stride = d[leading] * d[leading + 1] * d[leading + 2];
    for (int i = leading - 1; i >= 0; i--) {
        if (d[i] != 1)
            at += b % a->q->dims[i] * stride;
        stride *= d[i];
        b /= a->q->dims[i];
    }
    return at;
}

/* Place of the weight of query t and key 0 among all weights [.., H, T, S] of the full value. */
static inline uint64_t sn_attention_place(const sn_attention *a, int64_t b, int64_t h, int64_t t) {
    const int leading = a->q->rank - 3;
    int64_t H = a->H;
    if (a->axis < leading) {
        const int64_t inner = sn_type_span(a->q, a->axis + 1, leading), n = a->q->dims[a->axis];
        b = (b / inner / n * a->full + a->first + b / inner % n) * inner + b % inner;
    } else if (a->axis == leading + 1) {
        H = a->full;
        h += a->first;
    }
    return (uint64_t)(((b * H + h) * a->T + t) * a->S);
}

/* Element offsets of rows. */
static inline int64_t sn_query_at(const sn_attention *a, int64_t b, int64_t t, int64_t h) {
    return ((b * a->T + t) * a->H + h) * a->D;
}
static inline int64_t sn_key_at(const sn_attention *a, int64_t b, int64_t s, int64_t h) {
    return ((b * a->S + s) * a->G + h / (a->H / a->G)) * a->D;
}
static inline int64_t sn_value_at(const sn_attention *a, int64_t b, int64_t s, int64_t h) {
    return ((b * a->S + s) * a->G + h / (a->H / a->G)) * a->E;
}
static inline int64_t sn_result_at(const sn_attention *a, int64_t b, int64_t t, int64_t h) {
    return ((b * a->T + t) * a->H + h) * a->E;
}

/* The fast kernels of f32 and of halves, and the scratch they need. */
size_t SN_CPU(attention_workspace)(const sn_attention *a, bool gradient, int n_threads);
void SN_CPU(attention_f32)(const sn_call *c);
void SN_CPU(attention_grad_f32)(const sn_call *c);
void SN_CPU(attention_halves)(const sn_call *c);
void SN_CPU(attention_grad_halves)(const sn_call *c);

#endif
