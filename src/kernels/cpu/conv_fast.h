/* conv_fast.h: the own convolutions: what workspace each needs, and its run on the workspace
 * and threads of c. */
#ifndef SN_KERNELS_CPU_CONV_FAST_H
#define SN_KERNELS_CPU_CONV_FAST_H

#include "kernels/cpu/conv.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/onednn.h"

/* Refuses windows so large that a padded patch of an image could exceed the address space. */
SNUG_CHECKED snug_status SN_CPU(conv_check)(const sn_conv *v, snug_error *err);

/* Of the operands only v and pool count for a workspace. */
size_t SN_CPU(conv_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(conv_dx_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(conv_dw_workspace)(const sn_conv_operands *o, int n_threads);
void SN_CPU(conv_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(conv_dx_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(conv_dw_run)(const sn_conv_operands *o, const sn_call *c);

/* The same where each channel has a kernel of its own (sn_conv_is_depthwise); y and dx need no
 * workspace. */
size_t SN_CPU(depthwise_dw_workspace)(const sn_conv_operands *o, int n_threads);
void SN_CPU(depthwise_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(depthwise_dx_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(depthwise_dw_run)(const sn_conv_operands *o, const sn_call *c);

/* The same of halves. */
size_t SN_CPU(depthwise_halves_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(depthwise_halves_dx_workspace)(const sn_conv_operands *o, int n_threads);
size_t SN_CPU(depthwise_halves_dw_workspace)(const sn_conv_operands *o, int n_threads);
void SN_CPU(depthwise_halves_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(depthwise_halves_dx_run)(const sn_conv_operands *o, const sn_call *c);
void SN_CPU(depthwise_halves_dw_run)(const sn_conv_operands *o, const sn_call *c);

/* Which of the own kernels does it; the batch extent has no say. No workspace: NULL. */
typedef struct {
    size_t (*workspace)(const sn_conv_operands *o, int n_threads);
    void (*run)(const sn_conv_operands *o, const sn_call *c);
} sn_conv_kernel;
sn_conv_kernel SN_CPU(conv_kernel)(const sn_conv_operands *o, sn_onednn_kind kind);
/* Whether the direct product multiplies bf16 by pairs (pairs.h). */
bool SN_CPU(conv_has_pairs)(const sn_conv_operands *o, sn_onednn_kind kind);
/* The part of the rate of products it reaches, by o->v and o->pool; work saved counts, too. */
double SN_CPU(conv_efficiency)(const sn_conv_operands *o, sn_onednn_kind kind);

#endif
