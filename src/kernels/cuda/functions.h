/* functions.h: the elementwise functions that chains of calls are made of (chain.cu), each one
 * expression: of x with the parameters p and q, of a gradient g and y, or of x and y. unary.cu and
 * binary.cu make kernels of their own of the same expressions, so that a chain has the bits of its
 * calls one by one. What costs many registers is not here. */
#ifndef SN_KERNELS_CUDA_FUNCTIONS_H
#define SN_KERNELS_CUDA_FUNCTIONS_H

#include "kernels/cuda/cuda.h"

static __device__ __forceinline__ float exp_of(float x) {
    return expf(x);
}
static __device__ __forceinline__ double exp_of(double x) {
    return exp(x);
}
static __device__ __forceinline__ float root_of(float x) {
    return sqrtf(x);
}
static __device__ __forceinline__ double root_of(double x) {
    return sqrt(x);
}
static __device__ __forceinline__ float size_of(float x) {
    return fabsf(x);
}
static __device__ __forceinline__ double size_of(double x) {
    return fabs(x);
}
template <class T> static __device__ __forceinline__ T sigmoid_of(T x) {
    const T e = exp_of(x < 0 ? x : -x);
    return (x < 0 ? e : (T)1) / (1 + e);
}
template <class T> static __device__ __forceinline__ T relu6_of(T x) {
    return x < 0 ? (T)0 : x > 6 ? (T)6 : x;
}
/* 1 - s is a sigmoid of its own: beside a large x its rounding would show. */
template <class T> static __device__ __forceinline__ T silu_slope(T x) {
    return sigmoid_of(x) * (1 + x * sigmoid_of(-x));
}
template <class T> static __device__ __forceinline__ T hard_silu_slope(T x) {
    const T t = x + 3;
    return relu6_of(t) / 6 + (t > 0 && t < 6 ? x / 6 : (T)0);
}

/* Normalisation by channels, and the sum that its gradient is. */
struct sn_normalised {
    template <class T>
    static __device__ __forceinline__ T at(T x, T mean, T rstd, T gamma, T beta) {
        return gamma * ((x - mean) * rstd) + beta;
    }
};
struct sn_mixed {
    template <class T> static __device__ __forceinline__ T at(T p, T q, T a, T b, T c) {
        return a * p + b * q + c;
    }
};

/* clang-format off */
/* A struct's function of either width. */
#define SN_OF_X(expression)                                                                        \
    template <class T> static __device__ __forceinline__ T at(T x, T p, T q) {                     \
        (void)p, (void)q;                                                                          \
        return expression;                                                                         \
    }
#define SN_OF_PAIR(expression)                                                                     \
    template <class T> static __device__ __forceinline__ T at(T g, T y, T p) {                     \
        (void)p;                                                                                   \
        return expression;                                                                         \
    }

#define SN_LIGHT_UNARY(X)                                                                          \
    X(sqrt,         root_of(x))                                                                    \
    X(rsqrt,        1 / root_of(x))                                                                \
    X(reciprocal,   1 / x)                                                                         \
    X(exp,          exp_of(x))                                                                     \
    X(sigmoid,      sigmoid_of(x))                                                                 \
    X(leaky_relu,   x < 0 ? p * x : x)                                                             \
    X(silu,         x * sigmoid_of(x))                                                             \
    X(relu_max,     x < 0 ? (T)0 : x > p ? p : x)                                                  \
    X(hard_sigmoid, relu6_of(x + 3) / 6)                                                           \
    X(hard_silu,    x * (relu6_of(x + 3) / 6))                                                     \
    X(affine,       p * x + q)
/*      name    floats                              integers, in 64 bits, wrapping */
#define SN_LIGHT_NUMBER(X)                                                                         \
    X(neg,      -x,                                 (int64_t)(0 - (uint64_t)x))                    \
    X(abs,      size_of(x),                         x < 0 ? (int64_t)(0 - (uint64_t)x) : x)        \
    X(square,   x * x,                              (int64_t)((uint64_t)x * (uint64_t)x))          \
    X(relu,     x < 0 ? (T)0 : x,                   x < 0 ? 0 : x)                                 \
    X(clip,     x < p ? p : x > q ? q : x,                                                         \
                (double)x < p ? (int64_t)p : (double)x > q ? (int64_t)q : x)
/* g is the gradient of the output, y input 1: the output for relu, relu_max, elu, tanh, sigmoid,
 * else the input. */
#define SN_LIGHT_PAIR(X)                                                                           \
    X(relu_grad,       y > 0 ? g : (T)0)                                                           \
    X(leaky_relu_grad, y > 0 ? g : p * g)                                                          \
    X(tanh_grad,       g * (1 - y * y))                                                            \
    X(sigmoid_grad,    g * (y * (1 - y)))                                                          \
    X(silu_grad,       g * silu_slope(y))                                                          \
    X(relu_max_grad,   y > 0 && y < p ? g : (T)0)                                                  \
    X(hard_silu_grad,  g * hard_silu_slope(y))
/* NaN in either operand gives NaN. */
#define SN_LARGER  (x > y || x != x ? x : y)
#define SN_SMALLER (x < y || x != x ? x : y)
/*      name       floats                  integers, in 64 bits, wrapping */
#define SN_LIGHT_BINARY(X)                                                                         \
    X(add,         x + y,                  (int64_t)((uint64_t)x + (uint64_t)y))                   \
    X(sub,         x - y,                  (int64_t)((uint64_t)x - (uint64_t)y))                   \
    X(mul,         x * y,                  (int64_t)((uint64_t)x * (uint64_t)y))                   \
    X(maximum,     SN_LARGER,              x > y ? x : y)                                          \
    X(minimum,     SN_SMALLER,             x < y ? x : y)
#define SN_LIGHT_RATIO(X)                                                                          \
    X(div,         x / y)
/* clang-format on */

#endif
