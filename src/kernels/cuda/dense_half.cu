/* dense_half.cu: the product C = A B of dense.cu for halves on tensor cores. A block makes the
 * sums of 32 rows of A over one range of terms, each of its warps of an eighth of that, and adds
 * them, in order; so a row's bits depend on the number of terms alone. B is rounded to A's type.
 *
 * Which terms of 32 a lane has is as memory has them, eight at once: a product takes its terms
 * in any order. */
#include "kernels/cuda/dense.h"
#include "kernels/cuda/mma_half.h"

#ifdef SN_CUDA_EMULATED

bool sn_dense_half_takes(const sn_dense_product *p, snug_dtype dtype) {
    (void)p, (void)dtype;
    return false;
}
void sn_dense_half_sums(const sn_cuda_call *c, const sn_dense_product *p,
                        const sn_dense_operands *o, float *partial) {
    (void)c, (void)p, (void)o, (void)partial;
}

#else

enum { WARPS = 8, THREADS = 32 * WARPS, RANGE = SN_DENSE_RANGE };
enum {
    TILES = 2, /* of 16 rows of A, of a block */
    TILE_ROWS = 16 * TILES,
    WIDTH = 16,            /* columns of B, with zeros */
    SLICE = RANGE / WARPS, /* terms of a warp */
    STEP = 32              /* terms of B in shared memory, for each warp */
};

template <class M> struct dense_shared {
    union {
        M b[WARPS][WIDTH * STEP];
        float sum[WARPS][TILE_ROWS * WIDTH];
    };
};

/* Rows g and g + 8 of each tile, terms [8t, 8t + 8) of 32; zeros where nothing is. */
template <class M>
static __device__ __forceinline__ void read_eights(const M *a, const sn_dense_product &p, int64_t m,
                                                   int64_t k, int64_t end, uint4 x[TILES][2]) {
    const int64_t row = m + threadIdx.x % 32 / 4, at = k + 8 * (threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int64_t r = row + 16 * i + 8 * h;
            x[i][h] = make_uint4(0, 0, 0, 0);
            if (r < p.M && at < end)
                x[i][h] = *(const uint4 *)(a + r * p.K + at);
        }
}

/* B's rows of terms [k, k + STEP), rounded and turned, into the warp's part of shared memory. */
template <class M, int N>
static __device__ __forceinline__ void stage_turned(const sn_line<M> &b, int64_t k, int64_t end,
                                                    M *to) {
    enum { AHEAD = N > 10 ? 8 : N };
    const int lane = (int)threadIdx.x % 32;
#pragma unroll AHEAD
    for (int i = 0; i < STEP * N / 32; i++) {
        const int e = lane + 32 * i;
        to[e % N * STEP + e / N] = (M)(k + e / N < end ? (float)b[k * N + e] : 0.0f);
    }
}

template <class M> static __device__ __forceinline__ void clear(M *staged) {
    for (int e = (int)threadIdx.x % 32; e < WIDTH * STEP; e += 32)
        staged[e] = (M)0.0f;
}

/* b: the lane's first terms of its column. */
template <class M, int ACROSS>
static __device__ __forceinline__ void multiply(const uint4 x[TILES][2], const M *b,
                                                float sum[TILES][2][4]) {
#pragma unroll
    for (int n = 0; n < ACROSS; n++) {
        const uint4 w = *(const uint4 *)(b + 8 * n * STEP);
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            const uint4 low = x[i][0], high = x[i][1];
            const uint32_t one[4] = {low.x, high.x, low.y, high.y},
                           two[4] = {low.z, high.z, low.w, high.w};
            sn_half_multiply<M>(sum[i][n], one, w.x, w.y);
            sn_half_multiply<M>(sum[i][n], two, w.z, w.w);
        }
    }
}

/* The block's sums from its warps', in order. */
template <class M, int N>
static __device__ __forceinline__ void
add_warps(const float sum[TILES][2][4], const sn_dense_product &p, int64_t range, int64_t m,
          float all[WARPS][TILE_ROWS * WIDTH], float *partial) {
    enum { ACROSS = N > 8 ? 2 : 1 };
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4,
              t = lane % 4;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ACROSS; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                all[warp][(16 * i + g + 8 * (e / 2)) * WIDTH + 8 * n + 2 * t + e % 2] =
                    sum[i][n][e];
    __syncthreads();
    for (int e = (int)threadIdx.x; e < TILE_ROWS * N; e += THREADS) {
        float total = 0;
        for (int w = 0; w < WARPS; w++)
            total += all[w][e / N * WIDTH + e % N];
        if (m + e / N < p.M)
            partial[(range * p.M + m) * N + e] = total;
    }
}

template <class M, int N>
static __global__ void __launch_bounds__(THREADS, 2)
    sum_tiles(const M *a, const sn_line<M> b, sn_dense_product p, float *partial) {
    enum { ACROSS = N > 8 ? 2 : 1 };
    __shared__ __align__(16) dense_shared<M> shared;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4,
              t = lane % 4;
    const int64_t groups = (p.M + TILE_ROWS - 1) / TILE_ROWS, range = blockIdx.x / groups,
                  m = blockIdx.x % groups * TILE_ROWS;
    const int64_t first = range * RANGE + warp * SLICE;
    const int64_t end = first + SLICE < p.K ? first + SLICE : p.K;
    M *const staged = shared.b[warp];
    float sum[TILES][2][4] = {};
    clear(staged);
    for (int64_t k = first; k < end; k += STEP) {
        uint4 x[TILES][2];
        read_eights(a, p, m, k, end, x);
        __syncwarp();
        stage_turned<M, N>(b, k, end, staged);
        __syncwarp();
        multiply<M, ACROSS>(x, staged + g * STEP + 8 * t, sum);
    }
    add_warps<M, N>(sum, p, range, m, shared.sum, partial);
}

bool sn_dense_half_takes(const sn_dense_product *p, snug_dtype dtype) {
    return sn_dtype_is_half(dtype) && p->K % 8 == 0;
}

template <class M>
static void sums(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o,
                 float *partial) {
    const int64_t ranges = (p->K + RANGE - 1) / RANGE, groups = (p->M + TILE_ROWS - 1) / TILE_ROWS;
#define RUN(width)                                                                                 \
    if (p->N == width)                                                                             \
        SN_LAUNCH((sum_tiles<M, width>), (unsigned)(ranges * groups), THREADS, 0, c->stream,       \
                  (const M *)o->a, sn_line_at<M>(o->b, o->b_type), *p, partial);
    SN_DENSE_WIDTHS(RUN)
#undef RUN
}

void sn_dense_half_sums(const sn_cuda_call *c, const sn_dense_product *p,
                        const sn_dense_operands *o, float *partial) {
    if (o->dtype == SNUG_F16)
        sums<sn_half>(c, p, o, partial);
    else
        sums<sn_brain>(c, p, o, partial);
}

#endif
