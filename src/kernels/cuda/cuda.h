/* cuda.h: the GPU's kernels. The cuda column of ops.def names a family (`host`: none); a family
 * describes what a call will need, may prepare an object per planned step (a cuDNN plan), and
 * enqueues the call on a stream. C++ as nvcc wants it, in C's manner: no classes, no exceptions, no
 * allocation.
 *
 * The same files are compiled twice: by nvcc for the plug-in, and by the C++ compiler with
 * SN_CUDA_EMULATED against tests/support/cuda_emulator.h, which runs grids thread by thread on the
 * processor. So every own kernel is tested where there is no GPU. What the emulator lacks
 * (mma.sync, cp.async) has a plain path beside it. Launch with SN_LAUNCH, declare shared memory
 * with SN_SHARED.
 *
 * Rules, beyond those of op/runner.h and of kernels/cpu/cpu.h (same results, position-free bits):
 * 1. Parameters are read through call->param on the device; attributes, shapes, first and full are
 * launch arguments.
 * 2. No atomics on floats, no order that depends on scheduling.
 * 3. No stack frames (local memory costs 264 MiB of device memory for each KiB): fixed-size arrays
 * only where they stay in registers. The build fails on a frame.
 * 4. 64-bit sizes; a grid-stride loop, so that any size runs; size-0 operands launch nothing. */
#ifndef SN_KERNELS_CUDA_CUDA_H
#define SN_KERNELS_CUDA_CUDA_H

#ifdef SN_CUDA_EMULATED
#include SN_CUDA_EMULATOR /* the build names it */
#else
#include <cuda_runtime.h>
#define SN_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
/* For kernels whose threads never wait for another. */
#define SN_LAUNCH_APART SN_LAUNCH
#define SN_SHARED(type, name)                                                                      \
    extern __shared__ __align__(16) unsigned char sn_shared_bytes[];                               \
    type *const name = (type *)sn_shared_bytes
#endif

extern "C" {
#include "op/runner.h"
}

/* One call on a stream. `gpu` has the libraries' handles, loaded when first asked for. */
typedef struct {
    sn_gpu *gpu;
    cudaStream_t stream;
    const sn_call *call;
    uint32_t *refused; /* device word for MAYFAIL kernels: 0, or the node's complaint */
} sn_cuda_call;

struct sn_held; /* a call, kept (chain.h) */

typedef struct {
    snug_status (*run)(const sn_cuda_call *c, snug_error *err);
    /* NULL: no workspace, "own:cuda", flops and bytes from types. SNUG_E_UNSUPPORTED: these types
     * or attributes have no kernel, the host runs them. */
    snug_status (*describe)(const sn_gpu *g, const sn_opdesc *d, sn_variant *out, snug_error *err);
    snug_status (*prepare)(sn_gpu *g, const sn_opdesc *d, const char *impl, void **prepared,
                           snug_error *err);
    void (*release)(sn_gpu *g, void *prepared);
    /* Several calls of the row, none of which reads or writes what another writes, as one launch;
     * NULL: they run one by one. c->call is not looked at. */
    snug_status (*run_many)(const sn_cuda_call *c, const struct sn_held *calls, int n,
                            snug_error *err);
    /* Which of SN_STORED_DTYPES its operands may have; with others the host runs the row. */
    uint32_t takes_stored;
    /* Where a float is a half, all are of its type; but those of these bits may be f32, too: input
     * k, or output k above SN_CUDA_OUTPUT. What is more its describe refuses. */
    uint32_t mixes;
} sn_cuda_family;

enum { SN_CUDA_OUTPUT = 16 };
#define SN_CUDA_OUT(k)    (1u << (SN_CUDA_OUTPUT + (k)))
#define SN_CUDA_MIXES_ALL 0xffffffffu

static inline snug_dtype sn_cuda_dtype(const sn_opdesc *d, int i) {
    return i < d->n_in ? d->in[i].dtype : d->out[i - d->n_in].dtype;
}

/* Whether floats beside halves are as the family takes them. */
static inline bool sn_cuda_mixes(const sn_cuda_family *family, const sn_opdesc *d) {
    const int n = d->n_in + d->n_out;
    bool ok = true;
    int half = 0;
    while (half < n && !(SN_HALF_DTYPES >> sn_cuda_dtype(d, half) & 1))
        half++;
    for (int i = 0; i < n && half < n; i++) {
        const snug_dtype t = sn_cuda_dtype(d, i);
        const bool listed = i < SN_CUDA_OUTPUT || i >= d->n_in;
        const int bit = i < d->n_in ? i : SN_CUDA_OUTPUT + i - d->n_in;
        const bool may = t == SNUG_F32 && listed && (family->mixes >> bit & 1);
        ok = ok && (!sn_dtype_is_float(t) || t == sn_cuda_dtype(d, half) || may);
    }
    return ok || family->mixes == SN_CUDA_MIXES_ALL;
}

static inline bool sn_cuda_takes(const sn_cuda_family *family, const sn_opdesc *d) {
    const uint32_t refused = SN_STORED_DTYPES & ~family->takes_stored;
    bool all = true;
    for (int i = 0; i < d->n_in + d->n_out; i++)
        all = all && !(refused >> sn_cuda_dtype(d, i) & 1);
    return all && sn_cuda_mixes(family, d);
}

/* random.cu: sn_gpu_api's make. */
snug_status sn_cuda_make(cudaStream_t stream, int kind, const sn_scalar *numbers,
                         const snug_view *to, snug_error *err);

/* NULL for `host`. */
const sn_cuda_family *sn_cuda_family_of(sn_op op);

#endif
