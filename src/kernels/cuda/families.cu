/* families.cu: the cuda column of the operator table. A row whose family nobody defines does not
 * link; `host` rows have none. */
#include "kernels/cuda/own.h"

#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    extern const sn_cuda_family sn_cuda_##cuda;
#include "op/ops.def"
#undef SNUG_OP

const sn_cuda_family sn_cuda_host = {NULL, NULL, NULL, NULL, NULL};

static const sn_cuda_family *const families[SN_N_OPS] = {
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    &sn_cuda_##cuda,
#include "op/ops.def"
#undef SNUG_OP
};

const sn_cuda_family *sn_cuda_family_of(sn_op op) {
    return families[op]->run ? families[op] : NULL;
}
