/* cuda_attention.h: a call of attention or attention_grad taken apart, as kernels get it. Letters:
 * B leading entries, T queries, S keys, H heads of q, G of k and v, D features of q and k, E of v.
 *
 * A key that a query does not see has the score SN_UNSEEN instead of its own, as has any score
 * below it. A query that sees no key weighs all of them alike. */
#ifndef SN_KERNELS_CUDA_CUDA_ATTENTION_H
#define SN_KERNELS_CUDA_CUDA_ATTENTION_H

#include "kernels/cuda/lib.h"
#include "kernels/cuda/own.h"

#define SN_UNSEEN      (-1e30f)
#define SN_HALF_UNSEEN (-5e29f) /* no score that counts is below */

enum { SN_MAX_LEADING = SNUG_MAX_RANK - 3 };

typedef struct {
    int64_t B, T, S, H, G, D, E;
    bool causal, dropout;
    const sn_scalar *param;                         /* scale, rate, key; on the device */
    sn_divisor heads, queries, keys, groups, share; /* H, T, S, G, and heads of q per head of k */
    /* the mask: truth values, or numbers of q's type; NULL: none */
    const void *mask;
    bool truth;
    int n_leading;
    sn_divisor extent[SN_MAX_LEADING];
    int64_t mask_step[SN_MAX_LEADING], mask_h, mask_t, mask_s; /* 0 where it is spread */
    /* where entries and heads of a slice lie in the full value */
    sn_divisor inner, rows; /* entries (b / inner % rows) are the slice's rows */
    int64_t first, full;
    bool in_entries, in_heads;
    const void *q, *k, *v, *y, *lse, *dy;
    void *y_out, *lse_out, *dq, *dk, *dv;
    void *delta; /* [B, T, H], scratch of the gradient: sum(dy y) */
} sn_attend;

/* Flash attention on tensor cores (attention_mma.cu): f32 by way of TF32, no mask, no dropout. */
bool sn_attend_mma_takes(const sn_gpu *g, const sn_attend *a, snug_dtype dtype);
void sn_attend_mma(const sn_cuda_call *c, const sn_attend *a);
/* delta is made. */
void sn_attend_mma_grad(const sn_cuda_call *c, const sn_attend *a);

/* The same of halves, with sums in f32 (attention_half.cu). */
bool sn_attend_half_takes(const sn_gpu *g, const sn_attend *a, snug_dtype dtype);
void sn_attend_half(const sn_cuda_call *c, const sn_attend *a, snug_dtype dtype);
/* Makes delta itself. */
void sn_attend_half_grad(const sn_cuda_call *c, const sn_attend *a, snug_dtype dtype);

#endif
