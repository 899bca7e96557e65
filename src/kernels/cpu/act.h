/* act.h: the fused activations of matmul and conv2d over f32, in place. */
#ifndef SN_KERNELS_CPU_ACT_H
#define SN_KERNELS_CPU_ACT_H

#include "kernels/cpu/vmath.h"
#include "op/op.h"

static inline void sn_act_f32(int64_t act, float *y, int64_t n) {
    if (act == SN_ACT_relu)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i];
    else if (act == SN_ACT_relu6)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i] > 6.0f ? 6.0f : y[i];
    else if (act == SN_ACT_silu)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * sn_sigmoid_f32(y[i]);
    else if (act == SN_ACT_tanh)
        for (int64_t i = 0; i < n; i++)
            y[i] = sn_tanh_f32(y[i]);
    else if (act == SN_ACT_sigmoid)
        for (int64_t i = 0; i < n; i++)
            y[i] = sn_sigmoid_f32(y[i]);
    else if (act == SN_ACT_hard_sigmoid)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] <= -3.0f ? 0.0f : y[i] >= 3.0f ? 1.0f : (y[i] + 3.0f) / 6.0f;
}

#endif
