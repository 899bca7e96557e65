/* random.h: base/rng.h on the device: Philox-4x32-10 by counter. Element i of a stream is a
 * function of (key, i) alone, with the processor's bits: f32 numbers use separate roundings of +,
 * -, *, / and sqrt only, so nothing is contracted; f64 normals may differ in the last bits. */
#ifndef SN_KERNELS_CUDA_RANDOM_H
#define SN_KERNELS_CUDA_RANDOM_H

#include "kernels/cuda/cuda.h"

typedef struct {
    uint32_t v[4];
} sn_bits4;

static __device__ __forceinline__ sn_bits4 sn_philox_at(uint64_t key, uint64_t hi, uint64_t lo) {
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
    uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint32_t h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
        const uint32_t h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const sn_bits4 b = {{c0, c1, c2, c3}};
    return b;
}

static __device__ __forceinline__ float sn_uniform_of(uint32_t bits) {
    return (float)(bits >> 8) * 0x1p-24f; /* exact */
}

/* Element i of the uniform stream. */
static __device__ __forceinline__ float sn_uniform_at(uint64_t key, uint64_t i) {
    const sn_bits4 b = sn_philox_at(key, 0, i / 4);
    const uint32_t low = i & 1 ? b.v[1] : b.v[0], high = i & 1 ? b.v[3] : b.v[2];
    return sn_uniform_of(i & 2 ? high : low);
}

#endif
