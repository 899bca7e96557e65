/* matmul_mma.cu: tiles of a product on tensor cores (TF32), for nets so small that a library would
 * be most of their memory; halves are TF32 without a rounding. A block of 8 warps makes 64 x 64
 * elements, a warp 32 x 16; STEP terms at a time lie in shared memory as memory has them in order
 * (along the terms, or across them), with pitches that keep fragments free of conflicts, and the
 * next ones are on their way. */
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/tf32.h"

#ifdef SN_CUDA_EMULATED

bool sn_product_mma_takes(const sn_gpu *g, const sn_product *p) {
    (void)g, (void)p;
    return false;
}
void sn_product_mma(const sn_product *p, const sn_product_operands *o, int64_t n_tasks,
                    cudaStream_t stream) {
    (void)p, (void)o, (void)n_tasks, (void)stream;
}

#else

enum { SIZE = 64, STEP = 32, THREADS = 256, EACH = SIZE * STEP / THREADS };

bool sn_product_mma_takes(const sn_gpu *g, const sn_product *p) {
    enum { LEAST = 32 };
    return !sn_gpu_is_exact(g) && p->M >= LEAST && p->N >= LEAST &&
           (p->act == SN_ACT_none || p->act == SN_ACT_relu);
}

/* 64 rows (of A) or columns (of B) of STEP terms. ALONG: terms lie side by side in memory. */
template <bool ALONG> struct product_tile {
    enum { PITCH = ALONG ? STEP + 4 : SIZE + 8, FLOATS = ALONG ? SIZE * PITCH : STEP * PITCH };

    static __device__ __forceinline__ int at(int i, int k) {
        return ALONG ? i * PITCH + k : k * PITCH + i;
    }
    /* Which element a thread's e-th is. */
    static __device__ __forceinline__ int i_of(int e) {
        const int j = (int)threadIdx.x + e * THREADS;
        return ALONG ? j / STEP : j % SIZE;
    }
    static __device__ __forceinline__ int k_of(int e) {
        const int j = (int)threadIdx.x + e * THREADS;
        return ALONG ? j % STEP : j / SIZE;
    }

    /* n and terms: how many there are; the others are zeros. step: between the 64. */
    template <class M>
    static __device__ __forceinline__ void read(const M *from, int64_t n, int64_t terms,
                                                int64_t step, float value[EACH]) {
        const M *first = from + (ALONG ? i_of(0) * step + k_of(0) : i_of(0) + k_of(0) * step);
        const int64_t jump = step * (ALONG ? THREADS / STEP : THREADS / SIZE);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            value[e] = i_of(e) < n && k_of(e) < terms ? (float)first[e * jump] : 0.0f;
    }
    static __device__ __forceinline__ void write(const float value[EACH], uint32_t *to) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            to[at(i_of(e), k_of(e))] = sn_tf32(value[e]);
    }
};

/* STEP terms of the warp's 32 x 16 elements, from row m and column n of the tiles on. */
template <bool A, bool B>
static __device__ __forceinline__ void add_step(const uint32_t *a, const uint32_t *b, int m, int n,
                                                float sum[2][2][4]) {
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int k = t; k < STEP; k += 8) {
        uint32_t left[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            left[i][0] = a[product_tile<A>::at(m + 16 * i + g, k)];
            left[i][1] = a[product_tile<A>::at(m + 16 * i + g + 8, k)];
            left[i][2] = a[product_tile<A>::at(m + 16 * i + g, k + 4)];
            left[i][3] = a[product_tile<A>::at(m + 16 * i + g + 8, k + 4)];
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t b0 = b[product_tile<B>::at(n + 8 * j + g, k)],
                           b1 = b[product_tile<B>::at(n + 8 * j + g, k + 4)];
            sn_tf32_multiply(sum[0][j], left[0][0], left[0][1], left[0][2], left[0][3], b0, b1);
            sn_tf32_multiply(sum[1][j], left[1][0], left[1][1], left[1][2], left[1][3], b0, b1);
        }
    }
}

static __device__ __forceinline__ void close_group(float total[2][2][4], float sum[2][2][4]) {
#pragma unroll
    for (int e = 0; e < 16; e++) {
        total[e / 8][e / 4 % 2][e % 4] += sum[e / 8][e / 4 % 2][e % 4];
        sum[e / 8][e / 4 % 2][e % 4] = 0;
    }
}

/* Where a task's sums go: a group's, which wait as they are, or the output. M: what a and b
 * hold. */
template <class M> struct product_target {
    float *c;
    static __device__ __forceinline__ product_target of(const sn_product_operands &o, float *sums) {
        return product_target{sums ? sums : (float *)o.c};
    }
    __device__ __forceinline__ float get(int64_t i) const { return c[i]; }
    __device__ __forceinline__ void put(int64_t i, float v) const { c[i] = v; }
    static __device__ __forceinline__ float bias(const sn_product_operands &o, int64_t n) {
        return ((const float *)o.bias)[n];
    }
};
struct half_target {
    sn_mixed_line c;
    static __device__ __forceinline__ half_target of(const sn_product_operands &o, float *sums) {
        return half_target{{sums ? sums : o.c, sums ? SNUG_F32 : o.c_type}};
    }
    __device__ __forceinline__ float get(int64_t i) const { return c[i]; }
    __device__ __forceinline__ void put(int64_t i, float v) const { c.put(i, v); }
    static __device__ __forceinline__ float bias(const sn_product_operands &o, int64_t n) {
        return sn_mixed_line{(void *)o.bias, o.bias_type}[n];
    }
};
template <> struct product_target<sn_half> : half_target {};
template <> struct product_target<sn_brain> : half_target {};

/* The warp's elements from (m, n) on. */
template <class M>
static __device__ __forceinline__ void store(const sn_product &p, const sn_product_operands &o,
                                             const sn_product_task &t, int64_t m, int64_t n,
                                             const float total[2][2][4]) {
    const int64_t count = p.batch * p.M * p.N;
    float *const sums = o.partial ? (float *)o.partial + t.first * count : NULL;
    const auto c = product_target<M>::of(o, sums);
    const bool relu = p.act == SN_ACT_relu && !o.partial, add = p.add && !o.partial;
    const int64_t first = (t.entry * p.M + m) * p.N + n;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int column = j / 2 * 8 + j % 2;
        const float bias = o.bias && !o.partial && n + column < p.N
                               ? product_target<M>::bias(o, n + column)
                               : 0.0f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float v = total[i / 2][j / 2][i % 2 * 2 + j % 2] + bias;
            const int64_t at = first + (int64_t)(8 * i) * p.N + column;
            v = relu && v < 0.0f ? 0.0f : v;
            if (m + 8 * i < p.M && n + column < p.N)
                c.put(at, add ? c.get(at) + v : v);
        }
    }
}

/* A, B: terms lie side by side in the operand. */
template <class M, bool A, bool B>
static __global__ void __launch_bounds__(THREADS, sn_is_half<M>::yes ? 1 : 2)
    multiply_mma(const __grid_constant__ sn_product p,
                 const __grid_constant__ sn_product_operands o, int64_t n_tasks) {
    __shared__ uint32_t a_tile[product_tile<A>::FLOATS], b_tile[product_tile<B>::FLOATS];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int m = warp / 4 * 32, n = warp % 4 * 16, g = lane / 4, t2 = lane % 4 * 2;
    for (int64_t i = blockIdx.x; i < n_tasks; i += gridDim.x) {
        const sn_product_task t = sn_product_task_of(p, o.partial != NULL, i, SIZE, SIZE);
        const int64_t end = t.last * SN_PRODUCT_DEPTH < p.K ? t.last * SN_PRODUCT_DEPTH : p.K;
        const int64_t a_step = A ? p.a_row : p.a_col, b_step = B ? p.b_col : p.b_row;
        int64_t k = t.first * SN_PRODUCT_DEPTH, a_at, b_at;
        sn_product_entry(p, t.entry, &a_at, &b_at);
        const M *a = (const M *)o.a + a_at + t.m * p.a_row,
                *b = (const M *)o.b + b_at + t.n * p.b_col;
        float total[2][2][4] = {}, sum[2][2][4] = {}, next_a[EACH], next_b[EACH];
        product_tile<A>::read(a + k * p.a_col, p.M - t.m, end - k, a_step, next_a);
        product_tile<B>::read(b + k * p.b_row, p.N - t.n, end - k, b_step, next_b);
        for (; k < end; k += STEP) {
            __syncthreads();
            product_tile<A>::write(next_a, a_tile);
            product_tile<B>::write(next_b, b_tile);
            __syncthreads();
            const int64_t ahead = k + STEP;
            product_tile<A>::read(a + ahead * p.a_col, p.M - t.m, end - ahead, a_step, next_a);
            product_tile<B>::read(b + ahead * p.b_row, p.N - t.n, end - ahead, b_step, next_b);
            add_step<A, B>(a_tile, b_tile, m, n, sum);
            if (ahead % SN_PRODUCT_DEPTH == 0 || ahead >= end)
                close_group(total, sum);
        }
        store<M>(p, o, t, t.m + m + g, t.n + n + t2, total);
    }
}

template <class M>
static void launch(const sn_product *p, const sn_product_operands *o, int64_t n_tasks,
                   cudaStream_t stream) {
    const int64_t most = 1 << 20;
    const unsigned grid = (unsigned)(n_tasks < most ? n_tasks : most);
    const bool a = p->a_col == 1, b = p->b_row == 1;
    if (a && b)
        SN_LAUNCH((multiply_mma<M, true, true>), grid, THREADS, 0, stream, *p, *o, n_tasks);
    else if (a)
        SN_LAUNCH((multiply_mma<M, true, false>), grid, THREADS, 0, stream, *p, *o, n_tasks);
    else if (b)
        SN_LAUNCH((multiply_mma<M, false, true>), grid, THREADS, 0, stream, *p, *o, n_tasks);
    else
        SN_LAUNCH((multiply_mma<M, false, false>), grid, THREADS, 0, stream, *p, *o, n_tasks);
}

void sn_product_mma(const sn_product *p, const sn_product_operands *o, int64_t n_tasks,
                    cudaStream_t stream) {
    if (o->dtype == SNUG_F16)
        launch<sn_half>(p, o, n_tasks, stream);
    else if (o->dtype == SNUG_BF16)
        launch<sn_brain>(p, o, n_tasks, stream);
    else
        launch<float>(p, o, n_tasks, stream);
}

#endif
