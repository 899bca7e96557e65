/* half_types.h: floats of 16 bits as kernels hold them. They are computed in f32, sums in double as
 * those of f32 are, and rounded once to the nearest, ties to even. What is not said in the type of
 * a row's main operand (a gradient, statistics, a bias) may be f32 beside halves: sn_line.
 *
 *     template <class M> struct twice {      // M: what memory holds; f32 and f64 are their own
 *         const M *x; M *y;
 *         __device__ void operator()(int64_t i) const {
 *             const sn_computed<M> v = (sn_computed<M>)x[i];
 *             y[i] = (M)(2 * v);
 *         }
 *     };
 *     SN_BY_FLOAT(dtype, err, run_twice, c); */
#ifndef SN_KERNELS_CUDA_HALVES_H
#define SN_KERNELS_CUDA_HALVES_H

#include "kernels/cuda/cuda.h"

/* --- bits ------------------------------------------------------------------------------------- */
static __device__ __forceinline__ float sn_float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static __device__ __forceinline__ uint32_t sn_bits_of_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
/* The exponent moves by 112; of subnormal halves the unit is 2^-24. */
static __device__ __forceinline__ float sn_float_of_half(uint16_t bits) {
#ifdef SN_CUDA_EMULATED
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    const float plain = rest >= 0x7c00u  ? sn_float_of_bits(0x7f800000u | (rest & 0x3ffu) << 13)
                        : rest >= 0x400u ? sn_float_of_bits((rest << 13) + (112u << 23))
                                         : (float)rest * 0x1p-24f;
    return sn_float_of_bits(sn_bits_of_float(plain) | sign);
#else
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
    return f;
#endif
}
static __device__ __forceinline__ float sn_float_of_brain(uint16_t bits) {
    return sn_float_of_bits((uint32_t)bits << 16);
}
/* Of the double's bits, since a float between would round twice: 11 digits, or down to 2^-24. */
static __device__ __forceinline__ uint16_t sn_half_bits(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000u;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const uint64_t digits = (bits & 0xfffffffffffffu) | (uint64_t)1 << 52;
    if (d != d)
        return (uint16_t)(sign | 0x7e00u | (uint32_t)(bits >> 42 & 0x3ff));
    if (exponent > 15)
        return (uint16_t)(sign | 0x7c00u);
    if (exponent < -25)
        return (uint16_t)sign;
    const int cut = exponent < -14 ? 28 - exponent : 42;
    const uint64_t kept = digits >> cut, lost = digits & (((uint64_t)1 << cut) - 1);
    const uint64_t tie = (uint64_t)1 << (cut - 1);
    const uint64_t up = lost > tie || (lost == tie && (kept & 1));
    const uint32_t base = exponent < -14 ? 0 : (uint32_t)(exponent + 14) << 10;
    return (uint16_t)(sign | (base + (uint32_t)(kept + up))); /* a carry moves the exponent */
}
static __device__ __forceinline__ uint16_t sn_half_bits(float f) {
#ifdef SN_CUDA_EMULATED
    return sn_half_bits((double)f);
#else
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
    return bits;
#endif
}
static __device__ __forceinline__ uint16_t sn_brain_bits(float f) {
#ifdef SN_CUDA_EMULATED
    const uint32_t bits = sn_bits_of_float(f), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(f != f ? bits >> 16 | 64 : rounded);
#else
    uint16_t bits; /* of NaN all are set */
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(f));
    return bits;
#endif
}
/* Two neighbours as a word. */
static __device__ __forceinline__ uint32_t sn_half_bits(float low, float high) {
#ifdef SN_CUDA_EMULATED
    return sn_half_bits(low) | (uint32_t)sn_half_bits(high) << 16;
#else
    uint32_t bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
#endif
}
static __device__ __forceinline__ uint32_t sn_brain_bits(float low, float high) {
#ifdef SN_CUDA_EMULATED
    return sn_brain_bits(low) | (uint32_t)sn_brain_bits(high) << 16;
#else
    uint32_t bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
#endif
}

/* --- types ------------------------------------------------------------------------------------ */
/* f16: 5 bits of exponent. */
struct sn_half {
    uint16_t bits;
    sn_half() = default;
    __device__ explicit sn_half(float f) : bits(sn_half_bits(f)) {}
    __device__ explicit sn_half(double d) : bits(sn_half_bits(d)) {}
    __device__ explicit sn_half(int i) : bits(sn_half_bits((float)i)) {}
    __device__ operator float() const { return sn_float_of_half(bits); }
};
/* bf16: the upper half of a float. */
struct sn_brain {
    uint16_t bits;
    sn_brain() = default;
    __device__ explicit sn_brain(float f) : bits(sn_brain_bits(f)) {}
    __device__ explicit sn_brain(double d) : bits(sn_brain_bits((float)d)) {}
    __device__ explicit sn_brain(int i) : bits(sn_brain_bits((float)i)) {}
    __device__ operator float() const { return sn_float_of_brain(bits); }
};

template <class M> struct sn_computed_in { typedef M type; };
template <> struct sn_computed_in<sn_half> { typedef float type; };
template <> struct sn_computed_in<sn_brain> { typedef float type; };
/* What a type of memory is computed in. */
template <class M> using sn_computed = typename sn_computed_in<M>::type;

template <class M> struct sn_is_half {
    enum { yes = 0 };
};
template <> struct sn_is_half<sn_half> {
    enum { yes = 1 };
};
template <> struct sn_is_half<sn_brain> {
    enum { yes = 1 };
};

/* Four neighbours, aligned as far as 16 bytes go. */
template <class M> struct __align__(sizeof(M) < 4 ? 4 * sizeof(M) : 16) sn_four {
    M v[4];
};

/* Runs f<M>, M one of the four types of floats, by dtype. */
#define SN_BY_FLOAT(dtype, err, f, ...)                                                            \
    do {                                                                                           \
        if ((dtype) == SNUG_F32)                                                                   \
            f<float>(__VA_ARGS__);                                                                 \
        else if ((dtype) == SNUG_F64)                                                              \
            f<double>(__VA_ARGS__);                                                                \
        else if ((dtype) == SNUG_F16)                                                              \
            f<sn_half>(__VA_ARGS__);                                                               \
        else if ((dtype) == SNUG_BF16)                                                             \
            f<sn_brain>(__VA_ARGS__);                                                              \
        else                                                                                       \
            return sn_cuda_no_kernel((dtype), (err));                                              \
    } while (0)

/* --- lines: operands that may be f32 beside halves -------------------------------------------- */
/* Of f32 or halves, as the view says. */
struct sn_mixed_line {
    void *data;
    snug_dtype dtype;
    __device__ __forceinline__ float operator[](int64_t i) const {
        return dtype == SNUG_F32   ? ((const float *)data)[i]
               : dtype == SNUG_F16 ? (float)((const sn_half *)data)[i]
                                   : (float)((const sn_brain *)data)[i];
    }
    __device__ __forceinline__ void put(int64_t i, float v) const {
        if (dtype == SNUG_F32)
            ((float *)data)[i] = v;
        else if (dtype == SNUG_F16)
            ((sn_half *)data)[i] = (sn_half)v;
        else
            ((sn_brain *)data)[i] = (sn_brain)v;
    }
};
/* Of the type itself. */
template <class M> struct sn_plain_line {
    M *data;
    __device__ __forceinline__ M operator[](int64_t i) const { return data[i]; }
    __device__ __forceinline__ void put(int64_t i, M v) const { data[i] = v; }
};
template <class M> struct sn_line_beside { typedef sn_plain_line<M> type; };
template <> struct sn_line_beside<sn_half> { typedef sn_mixed_line type; };
template <> struct sn_line_beside<sn_brain> { typedef sn_mixed_line type; };
template <class M> using sn_line = typename sn_line_beside<M>::type;

static inline void sn_line_set(sn_mixed_line *l, const void *data, snug_dtype dtype) {
    l->data = (void *)data;
    l->dtype = dtype;
}
template <class M>
static inline void sn_line_set(sn_plain_line<M> *l, const void *data, snug_dtype dtype) {
    (void)dtype;
    l->data = (M *)data;
}
/* An operand beside one of type M. */
template <class M> static inline sn_line<M> sn_line_at(const void *data, snug_dtype dtype) {
    sn_line<M> l;
    sn_line_set(&l, data, dtype);
    return l;
}
template <class M> static inline sn_line<M> sn_line_of(const snug_view *v) {
    return sn_line_at<M>(v->data, v->type.dtype);
}

/* Elements [at, at + N), N 1 or 4; of a type's own in one access. */
template <int N, class M>
static __device__ __forceinline__ void sn_line_get(const sn_plain_line<M> &l, int64_t at, M *to) {
    struct __align__(N * sizeof(M)) pack {
        M v[N];
    };
    const pack p = *(const pack *)(l.data + at);
#pragma unroll
    for (int k = 0; k < N; k++)
        to[k] = p.v[k];
}
template <int N>
static __device__ __forceinline__ void sn_line_get(const sn_mixed_line &l, int64_t at, float *to) {
    const float *from = (const float *)l.data + at;
#pragma unroll
    for (int k = 0; k < N; k++)
        to[k] = l.dtype == SNUG_F32 ? from[k] : l[at + k];
}

#endif
