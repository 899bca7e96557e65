/* dense.cu: C = A B for rows of A with millions of terms and a B of few columns. The sum of an
 * element is cut into ranges of RANGE terms, by the number of terms alone; a block makes those of
 * ROWS rows of A over one range, a second kernel adds the ranges.
 *
 * A thread takes every 256th term of its range for all ROWS rows and N columns: ROWS * N sums in
 * registers, rows of A read in order, the rows of B of a warp's 32 terms staged in shared memory.
 * Lanes, warps and ranges are added as trees and rows whose form depends on nothing else. */
#include "kernels/cuda/dense.h"

#include "kernels/cuda/act.h"

enum { WARPS = 8, THREADS = 32 * WARPS, STEPS = 64, RANGE = THREADS * STEPS };
enum { LEAST_TERMS = 1 << 16 };

/* Rows of A at once: as many sums as registers hold. */
template <int N> struct rows_of {
    enum { value = N > 10 ? 4 : 8 };
};

/* Between the rows of B in shared memory: pairs of floats that 16 lanes read lie in other banks. */
template <int N> struct pitch_of {
    enum { value = N % 2 == 1 || N / 2 % 2 == 1 ? N : N + 2 };
};

/* B's rows of terms [k, k + 32) as they lie, to `to`; zeros behind the last. */
template <int N>
static __device__ void stage_rows(const float *b, int64_t k, int64_t K, float *to, int lane) {
    enum { PITCH = pitch_of<N>::value };
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int e = 32 * j + lane;
        to[e / N * PITCH + e % N] = k + e / N < K ? b[k * N + e] : 0.0f;
    }
}

template <int N, int ROWS>
static __device__ void add_term(const float x[ROWS], const float *row, float sum[ROWS][N]) {
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float w = row[j];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sum[r][j] += x[r] * w;
    }
}

/* A warp's part of a range: terms k, k + THREADS, ... */
template <int N, int ROWS>
static __device__ void add_terms(const float *const a[ROWS], const float *b, int64_t k, int64_t K,
                                 float *staged, float sum[ROWS][N]) {
    enum { PITCH = pitch_of<N>::value };
    const int lane = (int)threadIdx.x % 32;
    for (int step = 0; step < STEPS && k < K; step++, k += THREADS) {
        float x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            x[r] = k + lane < K ? a[r][k + lane] : 0.0f;
        stage_rows<N>(b, k, K, staged, lane);
        __syncwarp();
        add_term<N, ROWS>(x, staged + lane * PITCH, sum);
        __syncwarp();
    }
}

static __device__ float add_lanes(float v) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

/* partial[range][M][N]; blocks of the same range are neighbours: they read the same B. */
template <int N>
static __global__ void __launch_bounds__(THREADS, 2)
    sum_ranges(const float *a, const float *b, sn_dense_product p, float *partial) {
    enum { ROWS = rows_of<N>::value };
    __shared__ __align__(16) float staged[WARPS][32 * pitch_of<N>::value];
    __shared__ float sums[WARPS][ROWS * N];
    const int64_t groups = (p.M + ROWS - 1) / ROWS, ranges = (p.K + RANGE - 1) / RANGE;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    for (int64_t task = blockIdx.x; task < ranges * groups; task += gridDim.x) {
        const int64_t range = task / groups, m = task % groups * ROWS;
        const float *rows[ROWS];
        float sum[ROWS][N] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            rows[r] = a + (m + r < p.M ? m + r : p.M - 1) * p.K;
        add_terms<N, ROWS>(rows, b, range * RANGE + 32 * warp, p.K, staged[warp], sum);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int j = 0; j < N; j++) {
                const float total = add_lanes(sum[r][j]);
                if (lane == 0)
                    sums[warp][r * N + j] = total;
            }
        __syncthreads();
        for (int e = (int)threadIdx.x; e < ROWS * N; e += THREADS) {
            float total = 0;
            for (int w = 0; w < WARPS; w++)
                total += sums[w][e];
            if (m + e / N < p.M)
                partial[(range * p.M + m) * N + e] = total;
        }
        __syncthreads();
    }
}

/* A warp adds the ranges of an element. */
static __global__ void add_ranges(const float *partial, sn_dense_product p, sn_dense_operands o) {
    const int64_t count = p.M * p.N, ranges = (p.K + RANGE - 1) / RANGE;
    const int lane = (int)threadIdx.x % 32;
    const int64_t stride = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t at = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; at < count;
         at += stride) {
        float sum = 0;
        for (int64_t i = lane; i < ranges; i += 32)
            sum += partial[i * count + at];
        sum = add_lanes(sum);
        if (o.bias)
            sum += o.bias[at % p.N];
        sum = sn_act_of(o.act, sum);
        if (lane == 0)
            o.c[at] = o.add ? o.c[at] + sum : sum;
    }
}

/* The widths there is a kernel for. */
#define WIDTHS(X) X(1) X(2) X(3) X(4) X(5) X(8) X(10) X(16)

static bool has_width(int64_t n) {
#define SAME(width)                                                                                \
    if (n == width)                                                                                \
        return true;
    WIDTHS(SAME)
#undef SAME
    return false;
}

bool sn_dense_takes(const sn_dense_product *p) {
    return p->K >= LEAST_TERMS && p->M > 0 && has_width(p->N);
}

size_t sn_dense_workspace(const sn_gpu *g, const sn_dense_product *p) {
    (void)g;
    return (size_t)((p->K + RANGE - 1) / RANGE * p->M * p->N) * sizeof(float);
}

void sn_dense_run(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o) {
    const int64_t most = 1 << 20, count = p->M * p->N, ranges = (p->K + RANGE - 1) / RANGE;
    float *partial = (float *)c->call->workspace;
#define RUN(width)                                                                                 \
    if (p->N == width) {                                                                           \
        const int64_t rows = rows_of<width>::value, n = ranges * ((p->M + rows - 1) / rows);       \
        SN_LAUNCH(sum_ranges<width>, (unsigned)(n < most ? n : most), THREADS, 0, c->stream, o->a, \
                  o->b, *p, partial);                                                              \
    }
    WIDTHS(RUN)
#undef RUN
    SN_LAUNCH(add_ranges, (unsigned)((count + 3) / 4 < most ? (count + 3) / 4 : most), 128, 0,
              c->stream, partial, *p, *o);
}
