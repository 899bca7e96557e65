/* radix.h: n numbers in order, each with its place, equal ones as they were: a stable sort in
 * passes over 4 bits. The result depends on the keys alone.
 *
 *     sn_radix r = sn_radix_in(workspace, n);        // of sn_radix_bytes(n)
 *     fill(r.key[r.now], r.at[r.now]);               // a kernel of the caller
 *     sn_radix_sort(c, &r, bits);                    // sorted by the low `bits`: r.key[r.now] */
#ifndef SN_KERNELS_CUDA_RADIX_H
#define SN_KERNELS_CUDA_RADIX_H

#include "kernels/cuda/own.h"

typedef struct {
    int64_t n; /* below 2^32 */
    uint64_t *key[2];
    uint32_t *at[2];
    uint32_t *counts; /* [16, blocks] */
    int64_t blocks;
    int now;
} sn_radix;

size_t sn_radix_bytes(int64_t n);
sn_radix sn_radix_in(void *workspace, int64_t n);
void sn_radix_sort(const sn_cuda_call *c, sn_radix *r, int bits);

/* Bits that numbers below n have. */
static inline int sn_bits_below(int64_t n) {
    return n > 1 ? 64 - __builtin_clzll((unsigned long long)(n - 1)) : 0;
}

#endif
