/* conv_fast.h: the own f32 convolutions: what workspace each needs, and its run on the workspace
 * and threads of c. */
#ifndef SN_KERNELS_CPU_CONV_FAST_H
#define SN_KERNELS_CPU_CONV_FAST_H

#include "kernels/cpu/conv.h"
#include "kernels/cpu/isa.h"

size_t SN_CPU(conv_workspace)(const sn_conv *v, int n_threads);
size_t SN_CPU(conv_dx_workspace)(const sn_conv *v, int n_threads);
size_t SN_CPU(conv_dw_workspace)(const sn_conv *v, int n_threads);
void SN_CPU(conv_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(conv_dx_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(conv_dw_run)(const sn_conv_operands *o, const sn_call *c);

/* The same where each channel has a kernel of its own (sn_conv_is_depthwise); y and dx need no
 * workspace. */
size_t SN_CPU(depthwise_dw_workspace)(const sn_conv *v, int n_threads);
void SN_CPU(depthwise_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(depthwise_dx_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(depthwise_dw_run)(const sn_conv_operands *o, const sn_call *c);

#endif
