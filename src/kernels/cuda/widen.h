/* widen.h: rows that have no kernels of halves of their own: such operands are f32 in the call's
 * scratch, around the row's kernels of f32. It takes twice the bytes of each operand of halves
 * there, and a pass over each; so it is for rows whose work, or whose rarity, hides that.
 *
 *     SN_CUDA_WIDENED(sort, run_sort, describe_sort) */
#ifndef SN_KERNELS_CUDA_WIDEN_H
#define SN_KERNELS_CUDA_WIDEN_H

#include "kernels/cuda/own.h"

typedef snug_status (*sn_cuda_run)(const sn_cuda_call *c, snug_error *err);
/* NULL: there is nothing to say. */
typedef snug_status (*sn_cuda_describe)(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                        snug_error *err);

/* f32 and halves into the same number of elements of f32 or halves. */
void sn_convert_to(const sn_cuda_call *c, const snug_view *from, snug_dtype dtype, void *to);

snug_status sn_widened_describe(const sn_gpu *g, const sn_opdesc *d, sn_cuda_describe describe,
                                sn_variant *out, snug_error *err);
snug_status sn_widened_run(const sn_cuda_call *c, sn_cuda_run run, snug_error *err);

#define SN_CUDA_WIDENED(name, run, describe)                                                       \
    static snug_status widened_##name(const sn_cuda_call *c, snug_error *err) {                    \
        return sn_widened_run(c, run, err);                                                        \
    }                                                                                              \
    static snug_status describe_widened_##name(const sn_gpu *g, const sn_opdesc *d,                \
                                               sn_variant *out, snug_error *err) {                 \
        return sn_widened_describe(g, d, describe, out, err);                                      \
    }                                                                                              \
    SN_CUDA_FAMILY(name, widened_##name, describe_widened_##name, NULL, NULL, NULL,                \
                   SN_HALF_DTYPES, SN_CUDA_MIXES_ALL)

#endif
