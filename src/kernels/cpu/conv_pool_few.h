/* conv_pool_few.h: 3 x 3 convolutions of pictures of up to four channels, pooled by 2 x 2, and the
 * gradient of their weights: what the first layer of a network is. AVX-512 only: elsewhere nothing
 * is taken. */
#ifndef SN_KERNELS_CPU_CONV_POOL_FEW_H
#define SN_KERNELS_CPU_CONV_POOL_FEW_H

#include "kernels/cpu/conv_fast.h"
#include "kernels/cpu/conv_pool.h"

/* By the shape of one picture alone. */
bool SN_CPU(few_takes)(const sn_conv_operands *o);
size_t SN_CPU(few_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(few_dw_workspace)(const sn_conv_operands *o, int n_threads);
void SN_CPU(few_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(few_dw_run)(const sn_conv_operands *o, const sn_call *c);

#endif
