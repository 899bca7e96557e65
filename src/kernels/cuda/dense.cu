/* dense.cu: C = A B for rows of A with millions of terms and a B of few columns. The sum of an
 * element is cut into ranges of RANGE terms, by the number of terms alone; a block makes those
 * of 32 rows of A over one range, a second kernel adds the ranges.
 *
 * B is rounded to A's type. A warp owns ROWS rows of A, its lanes take turns with the terms:
 * ROWS * N sums in registers. CHUNK rows of B at a time lie in shared memory for all warps, the
 * next ones are on their way. Lanes and ranges are added as trees whose form depends on the
 * number of terms alone. */
#include "kernels/cuda/dense.h"

#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/half_types.h"

enum { WARPS = 8, THREADS = 32 * WARPS, ROWS = 4, BLOCK_ROWS = ROWS * WARPS };
enum { TURNS = 4, CHUNK = 32 * TURNS, RANGE = SN_DENSE_RANGE, LEAST_TERMS = 1 << 16 };

/* Between the rows of B in shared memory: pairs of floats that 16 lanes read lie in other banks. */
template <int N> struct dense_pitch {
    enum { value = N % 2 == 1 || N / 2 % 2 == 1 ? N : N + 2 };
};

/* A thread's part of B's rows of terms [k, k + CHUNK): read ahead, then put into shared memory. */
template <int N> struct dense_chunk {
    enum { EACH = (CHUNK * N + THREADS - 1) / THREADS };
    float value[EACH];

    template <class M>
    __device__ __forceinline__ void read(const sn_line<M> &b, int64_t k, int64_t end) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int e = (int)threadIdx.x + i * THREADS;
            value[i] = e < CHUNK * N && k + e / N < end ? (float)(M)b[k * N + e] : 0.0f;
        }
    }
    __device__ __forceinline__ void write(float *to) const {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int e = (int)threadIdx.x + i * THREADS;
            if (e < CHUNK * N)
                to[e / N * dense_pitch<N>::value + e % N] = value[i];
        }
    }
};

template <class M>
static __device__ __forceinline__ void read_terms(const M *const a[ROWS], int64_t k, int64_t end,
                                                  float x[TURNS][ROWS]) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TURNS; i++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            x[i][r] = k + 32 * i + lane < end ? (float)a[r][k + 32 * i + lane] : 0.0f;
}

template <int N>
static __device__ __forceinline__ void add_terms(const float x[TURNS][ROWS], const float *staged,
                                                 float sum[ROWS][N]) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const float *row = staged + (32 * i + lane) * dense_pitch<N>::value;
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float w = row[j];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sum[r][j] += x[i][r] * w;
        }
    }
}

static __device__ float add_lanes(float v) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

/* partial[range][M][N]; blocks of the same range are neighbours: they read the same B. */
template <class M, int N>
static __global__ void __launch_bounds__(THREADS, N > 10 ? 1 : 2)
    sum_ranges(const M *a, sn_line<M> b, sn_dense_product p, float *partial) {
    __shared__ __align__(16) float staged[2][CHUNK * dense_pitch<N>::value];
    const int64_t groups = (p.M + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const int64_t range = blockIdx.x / groups,
                  end = (range + 1) * RANGE < p.K ? (range + 1) * RANGE : p.K;
    const int64_t m = blockIdx.x % groups * BLOCK_ROWS + threadIdx.x / 32 * ROWS;
    const M *rows[ROWS];
    dense_chunk<N> next;
    float sum[ROWS][N] = {}, x[TURNS][ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        rows[r] = a + (m + r < p.M ? m + r : p.M - 1) * p.K;
    int turn = 0;
    next.template read<M>(b, range * RANGE, end);
    for (int64_t k = range * RANGE; k < end; k += CHUNK, turn ^= 1) {
        read_terms(rows, k, m < p.M ? end : k, x);
        next.write(staged[turn]);
        __syncthreads();
        next.template read<M>(b, k + CHUNK, end);
        if (m < p.M)
            add_terms<N>(x, staged[turn], sum);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float total = add_lanes(sum[r][j]);
            if (threadIdx.x % 32 == 0 && m + r < p.M)
                partial[(range * p.M + m + r) * N + j] = total;
        }
}

/* A warp adds the ranges of an element. */
template <class L>
static __global__ void add_ranges(const float *partial, sn_dense_product p, L bias, L to, bool add,
                                  int act) {
    const int64_t count = p.M * p.N, ranges = (p.K + RANGE - 1) / RANGE;
    const int lane = (int)threadIdx.x % 32;
    const int64_t stride = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t at = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; at < count;
         at += stride) {
        float sum = 0;
        for (int64_t i = lane; i < ranges; i += 32)
            sum += partial[i * count + at];
        sum = add_lanes(sum);
        if (bias.data)
            sum += bias[at % p.N];
        sum = sn_act_of(act, sum);
        if (lane == 0)
            to.put(at, add ? to[at] + sum : sum);
    }
}

static bool has_width(int64_t n) {
#define SAME(width)                                                                                \
    if (n == width)                                                                                \
        return true;
    SN_DENSE_WIDTHS(SAME)
#undef SAME
    return false;
}

bool sn_dense_takes(const sn_dense_product *p) {
    const int64_t most = INT32_MAX; /* blocks */
    return p->K >= LEAST_TERMS && p->M > 0 && has_width(p->N) &&
           (p->K / RANGE + 1) * (p->M / BLOCK_ROWS + 1) < most;
}

size_t sn_dense_workspace(const sn_gpu *g, const sn_dense_product *p) {
    (void)g;
    return (size_t)((p->K + RANGE - 1) / RANGE * p->M * p->N) * sizeof(float);
}

template <class M>
static void run(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o) {
    const int64_t most = 1 << 20, count = p->M * p->N, ranges = (p->K + RANGE - 1) / RANGE,
                  groups = (p->M + BLOCK_ROWS - 1) / BLOCK_ROWS;
    float *partial = (float *)c->call->workspace;
    const bool half = sn_dense_half_takes(p, o->dtype);
    const sn_line<M> b = sn_line_at<M>(o->b, o->b_type),
                     bias = sn_line_at<M>(o->bias, o->bias_type),
                     to = sn_line_at<M>(o->c, o->c_type);
#define RUN(width)                                                                                 \
    if (!half && p->N == width)                                                                    \
        SN_LAUNCH((sum_ranges<M, width>), (unsigned)(ranges * groups), THREADS, 0, c->stream,      \
                  (const M *)o->a, b, *p, partial);
    SN_DENSE_WIDTHS(RUN)
#undef RUN
    if (half)
        sn_dense_half_sums(c, p, o, partial);
    SN_LAUNCH((add_ranges<sn_line<M>>), (unsigned)((count + 3) / 4 < most ? (count + 3) / 4 : most),
              128, 0, c->stream, partial, *p, bias, to, o->add, o->act);
}

void sn_dense_run(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o) {
    if (o->dtype == SNUG_F32)
        run<float>(c, p, o);
    else if (o->dtype == SNUG_F16)
        run<sn_half>(c, p, o);
    else
        run<sn_brain>(c, p, o);
}
