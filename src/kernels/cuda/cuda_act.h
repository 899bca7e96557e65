/* cuda_act.h: the fused activations of products and convolutions, as kernels/cpu/act.h has them. */
#ifndef SN_KERNELS_CUDA_CUDA_ACT_H
#define SN_KERNELS_CUDA_CUDA_ACT_H

#include "kernels/cuda/cuda.h"

static inline __device__ float sn_exp(float x) {
    return expf(x);
}
static inline __device__ double sn_exp(double x) {
    return exp(x);
}
static inline __device__ float sn_tanh(float x) {
    return tanhf(x);
}
static inline __device__ double sn_tanh(double x) {
    return tanh(x);
}

template <class T> static inline __device__ T sn_sigmoid(T x) {
    return T(1) / (T(1) + sn_exp(-x));
}

/* A NaN stays one. */
template <class T> static inline __device__ T sn_act_of(int act, T y) {
    switch (act) {
    case SN_ACT_relu:
        return y < T(0) ? T(0) : y;
    case SN_ACT_relu6:
        return y < T(0) ? T(0) : y > T(6) ? T(6) : y;
    case SN_ACT_silu:
        return y * sn_sigmoid(y);
    case SN_ACT_tanh:
        return sn_tanh(y);
    case SN_ACT_sigmoid:
        return sn_sigmoid(y);
    case SN_ACT_hard_sigmoid:
        return y <= T(-3) ? T(0) : y >= T(3) ? T(1) : (y + T(3)) / T(6);
    default:
        return y;
    }
}

#endif
