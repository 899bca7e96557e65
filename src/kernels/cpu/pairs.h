/* pairs.h: bf16 as words of two neighbouring terms, which processors with AVX512-BF16 multiply and
 * add at once (gemm.h). Such products are of bf16 operands, or of bf16 and f32 that is rounded to
 * it; elsewhere, and for f16, halves become f32 (halves.h).
 *
 * A word adds its second term first, each sum rounded to f32 on its own; operands and sums below
 * the least normal number count as zero (found on a processor of that kind; test_kernels_halves.c
 * has it as plain C). Behind an odd number of terms both sides have a zero. */
#ifndef SN_KERNELS_CPU_PAIRS_H
#define SN_KERNELS_CPU_PAIRS_H

#include "kernels/cpu/halves.h"

#define sn_pairs_run  SN_CPU(pairs_run)
#define sn_pairs_rows SN_CPU(pairs_rows)
#define sn_pairs_pack SN_CPU(pairs_pack)
#define sn_pairs_here SN_CPU(pairs_here)

/* Whether this processor has the instruction. */
bool sn_pairs_here(void);

/* Products of a and b are done so. */
static inline bool sn_pairs_take(snug_dtype a, snug_dtype b) {
    const bool fit = (a == SNUG_BF16 || a == SNUG_F32) && (b == SNUG_BF16 || b == SNUG_F32);
    return fit && (a == SNUG_BF16 || b == SNUG_BF16) && sn_pairs_here();
}

/* n neighbouring elements from `at` on are the terms. */
void sn_pairs_run(const sn_stored *s, int64_t at, int64_t n, float *to);
/* Terms are two rows of n elements, the second `step` behind the first; one: there is no second. */
void sn_pairs_rows(const sn_stored *s, int64_t at, int64_t step, bool one, int64_t n, float *to);
/* As sn_stored_pack, k terms in words; rows lie side by side, or columns do. */
void sn_pairs_pack(const sn_stored_source *s, float *packed);

#endif
