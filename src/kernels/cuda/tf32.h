/* tf32.h: tensor cores on f32 by way of TF32 (mma.sync), for files that the emulator does without.
 * Operands are fragments as PTX lays them out; they are rounded first: the cores would truncate. */
#ifndef SN_KERNELS_CUDA_TF32_H
#define SN_KERNELS_CUDA_TF32_H

#include "kernels/cuda/cuda.h"

#ifndef SN_CUDA_EMULATED

static __device__ __forceinline__ uint32_t sn_tf32(float v) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return bits;
}

/* d += a b: 16 rows, 8 columns, 8 terms. */
static __device__ __forceinline__ void sn_tf32_multiply(float d[4], uint32_t a0, uint32_t a1,
                                                        uint32_t a2, uint32_t a3, uint32_t b0,
                                                        uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

#endif
#endif
