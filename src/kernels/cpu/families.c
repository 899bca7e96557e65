/* families.c: the cpu column of the operator table, for one instruction set. A row whose family
 * nobody defines does not link. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    extern const sn_cpu_family SN_CPU(cpu);
#include "op/ops.def"
#undef SNUG_OP

extern const sn_cpu_family *const SN_CPU(families)[SN_N_OPS];

const sn_cpu_family *const SN_CPU(families)[SN_N_OPS] = {
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    &SN_CPU(cpu),
#include "op/ops.def"
#undef SNUG_OP
};
