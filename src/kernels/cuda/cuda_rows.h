/* cuda_rows.h: kernels that work row by row over the last axis: a warp has a row, or a block of 256
 * where rows are `wide`. The choice and the order of sums follow from the width alone.
 *
 *     struct my_row {
 *         template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const;
 *     };
 *     sn_rows_run(c, rows, width, my_row{...});
 *
 * All threads of a team come to each sum and max together. */
#ifndef SN_KERNELS_CUDA_CUDA_ROWS_H
#define SN_KERNELS_CUDA_CUDA_ROWS_H

#include "kernels/cuda/own.h"

enum { SN_WIDE_ROW = 1024 };

template <bool wide> struct sn_row_team {
    double *scratch; /* of 8 */
    __device__ int at(void) const { return wide ? (int)threadIdx.x : (int)threadIdx.x % 32; }
    __device__ int size(void) const { return wide ? 256 : 32; }
    __device__ double sum(double v) const {
        v = sn_warp_sum(v);
        if (!wide)
            return v;
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = v;
        __syncthreads();
        v = 0;
#pragma unroll
        for (int i = 0; i < 8; i++)
            v += scratch[i];
        __syncthreads();
        return v;
    }
    /* NaN wins. */
    static __device__ double larger(double a, double b) {
        return b > a || b != b ? b : a;
    }
    __device__ double max(double v) const {
#pragma unroll
        for (int by = 16; by > 0; by /= 2)
            v = larger(v, __shfl_xor_sync(0xffffffffu, v, by));
        if (!wide)
            return v;
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = v;
        __syncthreads();
        v = scratch[0];
#pragma unroll
        for (int i = 1; i < 8; i++)
            v = larger(v, scratch[i]);
        __syncthreads();
        return v;
    }
};

template <class F, bool wide>
static __global__ void __launch_bounds__(256, 2)
    sn_rows_team_kernel(const __grid_constant__ F f, int64_t rows) {
    __shared__ double scratch[8];
    const sn_row_team<wide> team = {scratch};
    for (int64_t r = wide ? blockIdx.x : sn_thread() / 32; r < rows;
         r += wide ? gridDim.x : sn_all_threads() / 32)
        f.row(r, team);
}

template <class F>
static void sn_rows_run(const sn_cuda_call *c, int64_t rows, int64_t width, F f) {
    if (rows == 0)
        return;
    if (width > SN_WIDE_ROW)
        SN_LAUNCH((sn_rows_team_kernel<F, true>), sn_blocks(rows, 1), 256, 0, c->stream, f, rows);
    else
        SN_LAUNCH((sn_rows_team_kernel<F, false>), sn_blocks(rows, 8), 256, 0, c->stream, f, rows);
}

static inline int64_t sn_rows_in(const snug_type *t) {
    return sn_cuda_count(t, 0, t->rank - 1);
}
static inline int64_t sn_width_in(const snug_type *t) {
    return t->dims[t->rank - 1];
}

#endif
