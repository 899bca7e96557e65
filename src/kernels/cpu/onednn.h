/* onednn.h: convolutions in groups, by oneDNN. Own kernels fill vectors with the channels of one
 * group; where groups are thin the library's are faster. Depthwise ones are conv_depthwise.c's.
 *
 * A prepared object owns the primitives. Weights are packed inside each call, into the workspace;
 * scratch is the workspace's, too. What stays outside the plan: the objects' own heap memory and
 * the code the library makes (bounded by code_bytes), and its process-wide cache of primitives. */
#ifndef SN_KERNELS_CPU_ONEDNN_H
#define SN_KERNELS_CPU_ONEDNN_H

#include "kernels/cpu/conv.h"

typedef enum { SN_ONEDNN_FORWARD, SN_ONEDNN_DX, SN_ONEDNN_DW } sn_onednn_kind;

/* Whether a convolution of this shape is oneDNN's; the batch extent has no say (but an empty batch
 * needs nobody). */
static inline bool sn_onednn_wanted(const sn_conv *v) {
    return v->groups > 1 && v->N > 0 && !sn_conv_is_depthwise(v) && !v->line;
}

/* Puts workspace and code of the call into *out and names the implementation; leaves *out alone
 * when the library has only its reference loops for the shape, or is not there. */
SNUG_CHECKED snug_status sn_onednn_describe(sn_onednn_kind kind, const sn_conv *v, int n_threads,
                                            sn_variant *out, snug_error *err);
/* *out is NULL in that case. */
SNUG_CHECKED snug_status sn_onednn_prepare(snug_engine *e, sn_onednn_kind kind, const sn_conv *v,
                                           int n_threads, void **out, snug_error *err);
SNUG_CHECKED snug_status sn_onednn_run(void *prepared, const sn_conv_operands *o, void *workspace,
                                       int n_threads, snug_error *err);
void sn_onednn_release(snug_engine *e, void *prepared);

#endif
