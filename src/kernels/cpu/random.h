/* random.h: uniform numbers for kernels that drop things. */
#ifndef SN_KERNELS_CPU_RANDOM_H
#define SN_KERNELS_CPU_RANDOM_H

#include "kernels/cpu/isa.h"

#include <stdint.h>

/* The bits of sn_random_fill_f32(SN_RANDOM_UNIFORM, ...), faster. */
void SN_CPU(uniform_f32)(uint64_t key, uint64_t first, int64_t n, float *out);

#endif
