/* norm.h: the fast normalisation kernels, of f32 and of halves. */
#ifndef SN_KERNELS_CPU_NORM_H
#define SN_KERNELS_CPU_NORM_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

/* The three pairs of per-channel sums over rows. */
typedef enum {
    SN_SUMS_MOMENTS,   /* x -> x, x*x */
    SN_SUMS_NORMALISE, /* dy, x, mean, variance -> dy, dy * xhat; statistics per channel */
    SN_SUMS_LAYERNORM  /* dy, x, mean, rstd -> the same; statistics per row */
} sn_sums_kind;

size_t SN_CPU(channel_sums_workspace)(int64_t rows, int64_t channels);
void SN_CPU(channel_sums_f32)(const sn_call *c, sn_sums_kind kind);
size_t SN_CPU(normalise_workspace)(int64_t channels); /* of f32; it alone needs some */
/* Of halves: normalise, channel_affine, layernorm, layernorm_dx. */
size_t SN_CPU(norm_rows_workspace)(const sn_opdesc *d, int n_threads);
void SN_CPU(normalise_f32)(const sn_call *c);
void SN_CPU(channel_affine_f32)(const sn_call *c);
void SN_CPU(layernorm_f32)(const sn_call *c);
void SN_CPU(layernorm_dx_f32)(const sn_call *c);

#endif
