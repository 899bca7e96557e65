/* mma_half.h: tensor cores on halves, with sums in f32 (mma.sync), for files that the emulator does
 * without. Operands are fragments as PTX lays them out, two halves a register. */
#ifndef SN_KERNELS_CUDA_MMA_HALF_H
#define SN_KERNELS_CUDA_MMA_HALF_H

#include "kernels/cuda/half_types.h"

#ifndef SN_CUDA_EMULATED

/* d = from + a b: 16 rows, 8 columns, 16 terms. */
template <class M>
static __device__ __forceinline__ void sn_half_multiply_from(float d[4], const float from[4],
                                                             const uint32_t a[4], uint32_t b0,
                                                             uint32_t b1);
#define SN_HALF_MULTIPLY(M, type)                                                                  \
    template <>                                                                                    \
    __device__ __forceinline__ void sn_half_multiply_from<M>(                                      \
        float d[4], const float from[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {          \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, "          \
            "{%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                                           \
            : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                       \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(from[0]),          \
              "f"(from[1]), "f"(from[2]), "f"(from[3]));                                           \
    }
SN_HALF_MULTIPLY(sn_brain, "bf16")
SN_HALF_MULTIPLY(sn_half, "f16")
#undef SN_HALF_MULTIPLY

/* d += a b */
template <class M>
static __device__ __forceinline__ void sn_half_multiply(float d[4], const uint32_t a[4],
                                                        uint32_t b0, uint32_t b1) {
    sn_half_multiply_from<M>(d, d, a, b0, b1);
}

/* Two neighbours as a register. */
template <class M> static __device__ __forceinline__ uint32_t sn_half_pair(float low, float high);
template <> __device__ __forceinline__ uint32_t sn_half_pair<sn_brain>(float low, float high) {
    return sn_brain_bits(low, high);
}
template <> __device__ __forceinline__ uint32_t sn_half_pair<sn_half>(float low, float high) {
    return sn_half_bits(low, high);
}
template <class M> static __device__ __forceinline__ float2 sn_half_two(uint32_t bits) {
    M low, high;
    low.bits = (uint16_t)bits;
    high.bits = (uint16_t)(bits >> 16);
    return make_float2((float)low, (float)high);
}

/* Four matrices of 8 x 8 halves in shared memory; lane l names row l % 8 of matrix l / 8. As right
 * operand a matrix of rows by columns is one of terms by columns where it is turned, and one of
 * columns by terms where it is not. */
template <bool TURNED>
static __device__ __forceinline__ void sn_half_matrices(uint32_t r[4], const void *row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}

#endif
#endif
