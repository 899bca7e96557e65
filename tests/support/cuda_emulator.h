/* cuda_emulator.h: enough of CUDA to run the GPU's own kernels on the processor. The files of
 * src/kernels/cuda are compiled with -x c++ -DSN_CUDA_EMULATED and find this header in place of
 * cuda_runtime.h.
 *
 *     static __global__ void twice(float *x, int64_t n) { ... threadIdx.x ... __syncthreads(); }
 *     SN_LAUNCH(twice, blocks, threads, shared_bytes, stream, x, n);
 *
 * 1. Blocks run one after the other. Each thread of a block is a fiber, which runs until it waits
 * (__syncthreads, __syncwarp, a shuffle or a vote) or ends; those that ended are not waited for.
 * 2. SN_LAUNCH_APART is for kernels whose threads never wait for another: they run as a plain loop.
 * A wait in such a kernel is an error.
 * 3. Shared memory holds rubbish before each block, and so do all registers of a warp that shuffles
 * with lanes that ended. A kernel that hangs or misuses this ends the process with a message.
 * 4. One launch at a time: this is for tests. */
#ifndef SN_TESTS_CUDA_EMULATOR_H
#define SN_TESTS_CUDA_EMULATOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __constant__ const
#define __shared__   static
#define __align__(n) __attribute__((aligned(n)))

typedef struct sn_emulated_stream *cudaStream_t;

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
    unsigned x, y, z;
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

struct __align__(8) float2 {
    float x, y;
};
struct __align__(16) float4 {
    float x, y, z, w;
};
struct __align__(16) double2 {
    double x, y;
};
struct __align__(8) int2 {
    int x, y;
};
struct __align__(16) int4 {
    int x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w) {
    return float4{x, y, z, w};
}

/* --- launches ----------------------------------------------------------------------------------*/
typedef void (*sn_emulated_body)(void *ctx);
void sn_emulate(dim3 grid, dim3 block, size_t shared_bytes, bool apart, sn_emulated_body body,
                void *ctx);
extern unsigned char *sn_emulated_shared;
extern int64_t sn_emulated_launches; /* so far */

template <class Body>
static inline void sn_emulate_call(dim3 grid, dim3 block, size_t shared, bool apart, Body body) {
    sn_emulate(
        grid, block, shared, apart, [](void *ctx) { (*(Body *)ctx)(); }, &body);
}

#define SN_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    sn_emulate_call((grid), (block), (shared), ((void)(stream), false),                            \
                    [&]() { kernel(__VA_ARGS__); })
#define SN_LAUNCH_APART(kernel, grid, block, shared, stream, ...)                                  \
    sn_emulate_call((grid), (block), (shared), ((void)(stream), true),                             \
                    [&]() { kernel(__VA_ARGS__); })
#define SN_SHARED(type, name) type *const name = (type *)sn_emulated_shared

/* --- waiting -----------------------------------------------------------------------------------*/
void __syncthreads(void);
void __syncwarp(unsigned mask = 0xffffffffu);

/* What lane `from` of the caller's warp gives; all lanes of the mask call it together. */
uint64_t sn_emulated_exchange(uint64_t value, int from);
unsigned sn_emulated_lane(void);

template <class T> static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    (void)mask;
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    const int lane = (int)sn_emulated_lane();
    bits = sn_emulated_exchange(bits, lane / width * width + (from & (width - 1)));
    memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int w = 32) {
    const int at = (int)sn_emulated_lane() % w;
    return __shfl_sync(mask, v, at + (int)by < w ? at + (int)by : at, w);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int w = 32) {
    const int at = (int)sn_emulated_lane() % w;
    return __shfl_sync(mask, v, at >= (int)by ? at - (int)by : at, w);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int with, int w = 32) {
    return __shfl_sync(mask, v, ((int)sn_emulated_lane() ^ with) % w, w);
}
unsigned __ballot_sync(unsigned mask, int yes);
static inline int __any_sync(unsigned mask, int yes) {
    return __ballot_sync(mask, yes) != 0;
}
static inline int __all_sync(unsigned mask, int yes) {
    return __ballot_sync(mask, !yes) == 0;
}

/* --- single instructions -----------------------------------------------------------------------*/
template <class T> static inline T atomicAdd(T *at, T by) {
    const T before = *at;
    *at = (T)(before + by);
    return before;
}
template <class T> static inline T atomicMax(T *at, T v) {
    const T before = *at;
    *at = before < v ? v : before;
    return before;
}
template <class T> static inline T atomicMin(T *at, T v) {
    const T before = *at;
    *at = v < before ? v : before;
    return before;
}
template <class T> static inline T atomicCAS(T *at, T old, T v) {
    const T before = *at;
    *at = before == old ? v : before;
    return before;
}
template <class T> static inline T __ldg(const T *at) {
    return *at;
}
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline int __clzll(long long v) {
    return v ? __builtin_clzll((unsigned long long)v) : 64;
}
static inline int __popc(unsigned v) {
    return __builtin_popcount(v);
}
static inline int __ffs(int v) {
    return __builtin_ffs(v);
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fsub_rn(float a, float b) {
    return a - b;
}
static inline double __dmul_rn(double a, double b) {
    return a * b;
}
static inline double __dadd_rn(double a, double b) {
    return a + b;
}
static inline unsigned __float_as_uint(float v) {
    unsigned bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline long long __double_as_longlong(double v) {
    long long bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline double cospi(double v) {
    return cos(v * M_PI);
}
static inline double sinpi(double v) {
    return sin(v * M_PI);
}
static inline float rsqrtf(float v) {
    return 1 / sqrtf(v);
}
static inline double rsqrt(double v) {
    return 1 / sqrt(v);
}

#endif
