/* attention_mma.cu: attention on tensor cores (TF32), the T x S weights never in memory.
 *
 * A block owns 64 rows, 16 for each of its 4 warps, whose operands stay in registers as fragments;
 * the other side goes by in tiles of shared memory. Rows of a product are the block's, so forward
 * and dq have queries as rows and keys as columns, dk and dv the other way round. The weights of a
 * tile become the next product's left operand as they lie in registers: column 2t of an
 * accumulator is taken for term t, column 2t + 1 for term t + 4, and the right operand's rows are
 * read in that order. A pitch of D + 4 floats keeps both ways of reading a tile free of conflicts.
 * The next tiles are copied while these are used; who copied a piece rounds it.
 *
 * dk and dv are one kernel, dq is another that makes the weights again: no sums between blocks. */
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/tf32.h"

#ifdef SN_CUDA_EMULATED

bool sn_attend_mma_takes(const sn_gpu *g, const sn_attend *a, snug_dtype dtype) {
    (void)g, (void)a, (void)dtype;
    return false;
}
void sn_attend_mma(const sn_cuda_call *c, const sn_attend *a) {
    (void)c, (void)a;
}
void sn_attend_mma_grad(const sn_cuda_call *c, const sn_attend *a) {
    (void)c, (void)a;
}

#else

enum { TILE = 32 };

bool sn_attend_mma_takes(const sn_gpu *g, const sn_attend *a, snug_dtype dtype) {
    return dtype == SNUG_F32 && !sn_gpu_is_exact(g) && !a->mask && !a->dropout && a->D == a->E &&
           (a->D == 32 || a->D == 64) && a->S > 0 && a->T > 0 && a->S < INT32_MAX / 2 &&
           a->T < INT32_MAX / 2;
}

/* --- fragments ------------------------------------------------------------------------------- */
/* 16 rows of D features as left operand: rows r and r + 8 of the thread, zeros where `there` is
 * false. */
template <int D>
static __device__ void load_left(const float *low, const float *high, bool low_there,
                                 bool high_there, uint32_t a[D / 8][4]) {
    const int t = (int)threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < D / 8; k++) {
        a[k][0] = low_there ? sn_tf32(low[8 * k + t]) : 0u;
        a[k][1] = high_there ? sn_tf32(high[8 * k + t]) : 0u;
        a[k][2] = low_there ? sn_tf32(low[8 * k + t + 4]) : 0u;
        a[k][3] = high_there ? sn_tf32(high[8 * k + t + 4]) : 0u;
    }
}

/* TILE rows of D floats, `pitch` apart, on their way into shared memory; zeros behind the n there
 * are. */
template <int D>
static __device__ __forceinline__ void fetch(const float *from, int64_t pitch, int64_t n,
                                             uint32_t *to) {
#pragma unroll
    for (int i = 0; i < TILE * (D / 4) / THREADS; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / (D / 4), q = e % (D / 4) * 4;
        const unsigned at = (unsigned)__cvta_generic_to_shared(to + r * (D + 4) + q);
        const float *source = from + (r < n ? r : 0) * pitch + q;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(source),
                     "r"(r < n ? 16 : 0)
                     : "memory");
    }
}

static __device__ __forceinline__ void fetched(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the latest `later` groups have arrived, for this thread. */
template <int LATER> static __device__ __forceinline__ void arrived(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

/* What this thread fetched of a tile. */
template <int D> static __device__ __forceinline__ void round_tile(uint32_t *tile) {
#pragma unroll
    for (int i = 0; i < TILE * (D / 4) / THREADS; i++) {
        const int e = (int)threadIdx.x + i * THREADS;
        float4 *at = (float4 *)(tile + e / (D / 4) * (D + 4) + e % (D / 4) * 4);
        const float4 v = *at;
        *(uint4 *)at = make_uint4(sn_tf32(v.x), sn_tf32(v.y), sn_tf32(v.z), sn_tf32(v.w));
    }
}

/* Two tiles that go by together, and the two that come next. */
template <int D> struct attend_pair {
    uint32_t a[2][TILE * (D + 4)], b[2][TILE * (D + 4)];

    __device__ __forceinline__ void fetch_both(int turn, const float *x, const float *y,
                                               int64_t pitch, int64_t n) {
        if (n > 0) {
            fetch<D>(x, pitch, n, a[turn]);
            fetch<D>(y, pitch, n, b[turn]);
        }
        fetched();
    }
    /* Those of this turn are there for all; the next are on their way. */
    __device__ __forceinline__ void ready(int turn) {
        arrived<1>();
        round_tile<D>(a[turn]);
        round_tile<D>(b[turn]);
        __syncthreads();
    }
};

/* out[tile of 8 columns] = left times the tile's rows, turned. */
template <int D>
static __device__ __forceinline__ void times_turned(const uint32_t a[D / 8][4],
                                                    const uint32_t *tile, float out[TILE / 8][4]) {
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) {
        const uint32_t *row = tile + (8 * n + g) * (D + 4) + t;
#pragma unroll
        for (int e = 0; e < 4; e++)
            out[n][e] = 0;
#pragma unroll
        for (int k = 0; k < D / 8; k++)
            sn_tf32_multiply(out[n], a[k][0], a[k][1], a[k][2], a[k][3], row[8 * k],
                             row[8 * k + 4]);
    }
}

/* sum[tile of 8 features] += weights, as accumulators have them, times the tile's rows. */
template <int D>
static __device__ __forceinline__ void times_tile(const float p[TILE / 8][4], const uint32_t *tile,
                                                  float sum[D / 8][4]) {
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) {
        const uint32_t a[4] = {sn_tf32(p[n][0]), sn_tf32(p[n][2]), sn_tf32(p[n][1]),
                               sn_tf32(p[n][3])};
        const uint32_t *row = tile + (8 * n + 2 * t) * (D + 4) + g;
#pragma unroll
        for (int k = 0; k < D / 8; k++)
            sn_tf32_multiply(sum[k], a[0], a[1], a[2], a[3], row[8 * k], row[D + 4 + 8 * k]);
    }
}

/* Rows g and g + 8 of a thread: sum[k] holds columns 8k + 2t and the next of each. */
template <int D>
static __device__ void store(const float sum[D / 8][4], float *low, float *high, bool low_there,
                             bool high_there, float low_factor, float high_factor) {
    const int t = (int)threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < D / 8; k++) {
        if (low_there)
            *(float2 *)(low + 8 * k + 2 * t) =
                make_float2(sum[k][0] * low_factor, sum[k][1] * low_factor);
        if (high_there)
            *(float2 *)(high + 8 * k + 2 * t) =
                make_float2(sum[k][2] * high_factor, sum[k][3] * high_factor);
    }
}

/* --- forward --------------------------------------------------------------------------------- */
template <int D>
static __global__ void __launch_bounds__(THREADS, 3)
    attend_tiles(const __grid_constant__ sn_attend a) {
    __shared__ __align__(16) attend_pair<D> tiles; /* keys, values */
    const stripe o = stripe_of(blockIdx.x, a.T, a.H);
    const int lane = (int)threadIdx.x % 32, g = lane / 4;
    const int64_t t0 = o.first + 16 * (threadIdx.x / 32) + g, t1 = t0 + 8;
    const int64_t row0 = (o.b * a.T + t0) * a.H + o.h, row1 = row0 + 8 * a.H;
    const int64_t group = o.h / a.share.d, pitch = a.G * D;
    const float *k = (const float *)a.k + (o.b * a.S * a.G + group) * D,
                *v = (const float *)a.v + (o.b * a.S * a.G + group) * D;
    const float scale = (float)a.param[0].real * LOG2E;
    const int64_t end = a.causal && o.first + ROWS < a.S ? o.first + ROWS : a.S;
    uint32_t q[D / 8][4];
    float y[D / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, factor[2];
    load_left<D>((const float *)a.q + row0 * D, (const float *)a.q + row1 * D, t0 < a.T, t1 < a.T,
                 q);
    int turn = 0;
    tiles.fetch_both(0, k, v, pitch, a.S);
    for (int64_t s = 0; s < end; s += TILE, turn ^= 1) {
        float p[TILE / 8][4];
        const int64_t next = s + TILE;
        tiles.fetch_both(turn ^ 1, k + next * pitch, v + next * pitch, pitch,
                         next < end ? a.S - next : 0);
        tiles.ready(turn);
        times_turned<D>(q, tiles.a[turn], p);
        mask_scores<TILE / 8>(p, (int)s, (int)a.S, (int)t0, a.causal && next > o.first, scale);
        soften<TILE / 8>(p, 0, &max[0], &sum[0], &factor[0]);
        soften<TILE / 8>(p, 1, &max[1], &sum[1], &factor[1]);
#pragma unroll
        for (int i = 0; i < D / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                y[i][e] *= factor[e / 2];
        times_tile<D>(p, tiles.b[turn], y);
        __syncthreads();
    }
    sum[0] = row_sum(sum[0]);
    sum[1] = row_sum(sum[1]);
    store<D>(y, (float *)a.y_out + row0 * D, (float *)a.y_out + row1 * D, t0 < a.T, t1 < a.T,
             1.0f / sum[0], 1.0f / sum[1]);
    if (lane % 4 == 0 && t0 < a.T)
        ((float *)a.lse_out)[row0] = max[0] * LN2 + logf(sum[0]);
    if (lane % 4 == 0 && t1 < a.T)
        ((float *)a.lse_out)[row1] = max[1] * LN2 + logf(sum[1]);
}

/* --- gradients ------------------------------------------------------------------------------- */
template <int D>
static __global__ void __launch_bounds__(THREADS, 2)
    back_q_tiles(const __grid_constant__ sn_attend a) {
    __shared__ __align__(16) attend_pair<D> tiles; /* keys, values */
    const stripe o = stripe_of(blockIdx.x, a.T, a.H);
    const int lane = (int)threadIdx.x % 32, g = lane / 4;
    const int64_t t0 = o.first + 16 * (threadIdx.x / 32) + g, t1 = t0 + 8;
    const int64_t row0 = (o.b * a.T + t0) * a.H + o.h, row1 = row0 + 8 * a.H;
    const int64_t group = o.h / a.share.d, pitch = a.G * D;
    const float *k = (const float *)a.k + (o.b * a.S * a.G + group) * D,
                *v = (const float *)a.v + (o.b * a.S * a.G + group) * D;
    const float factor = (float)a.param[0].real, scale = factor * LOG2E;
    const int64_t end = a.causal && o.first + ROWS < a.S ? o.first + ROWS : a.S;
    const float *lse = (const float *)a.lse, *delta = (const float *)a.delta;
    const float lses[2] = {t0 < a.T ? lse[row0] * LOG2E : 0, t1 < a.T ? lse[row1] * LOG2E : 0},
                deltas[2] = {t0 < a.T ? delta[row0] : 0, t1 < a.T ? delta[row1] : 0};
    uint32_t q[D / 8][4], dy[D / 8][4];
    float dq[D / 8][4] = {};
    load_left<D>((const float *)a.q + row0 * D, (const float *)a.q + row1 * D, t0 < a.T, t1 < a.T,
                 q);
    load_left<D>((const float *)a.dy + row0 * D, (const float *)a.dy + row1 * D, t0 < a.T, t1 < a.T,
                 dy);
    int turn = 0;
    tiles.fetch_both(0, k, v, pitch, a.S);
    for (int64_t s = 0; s < end; s += TILE, turn ^= 1) {
        float p[TILE / 8][4], dp[TILE / 8][4];
        const int64_t next = s + TILE;
        tiles.fetch_both(turn ^ 1, k + next * pitch, v + next * pitch, pitch,
                         next < end ? a.S - next : 0);
        tiles.ready(turn);
        times_turned<D>(q, tiles.a[turn], p);
        times_turned<D>(dy, tiles.b[turn], dp);
        mask_scores<TILE / 8>(p, (int)s, (int)a.S, (int)t0, a.causal && next > o.first, scale);
#pragma unroll
        for (int i = 0; i < TILE / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                slope(&p[i][e], &dp[i][e], lses[e / 2], deltas[e / 2]);
        times_tile<D>(dp, tiles.a[turn], dq);
        __syncthreads();
    }
    store<D>(dq, (float *)a.dq + row0 * D, (float *)a.dq + row1 * D, t0 < a.T, t1 < a.T, factor,
             factor);
}

/* One tile of queries, from t on: what it adds to dk and dv of keys s0 and s0 + 8. */
template <int D>
static __device__ __forceinline__ void
back_tile(const uint32_t k[D / 8][4], const uint32_t v[D / 8][4], const uint32_t *queries,
          const uint32_t *dys, const float *lse, const float *delta, int later, float scale,
          float dk[D / 8][4], float dv[D / 8][4]) {
    const int lane_t = (int)threadIdx.x % 4;
    float p[TILE / 8][4], dp[TILE / 8][4];
    times_turned<D>(k, queries, p);
    times_turned<D>(v, dys, dp);
#pragma unroll
    for (int i = 0; i < TILE / 8; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int at = 8 * i + 2 * lane_t + e % 2;
            p[i][e] = at < later + 8 * (e / 2) ? -INFINITY : p[i][e] * scale;
            slope(&p[i][e], &dp[i][e], lse[at], delta[at]);
        }
    times_tile<D>(p, dys, dv);
    times_tile<D>(dp, queries, dk);
}

template <int D>
static __global__ void __launch_bounds__(THREADS, 2)
    back_kv_tiles(const __grid_constant__ sn_attend a) {
    __shared__ __align__(16) attend_pair<D> tiles; /* queries, dy */
    __shared__ float lse[TILE], delta[TILE];
    const stripe o = stripe_of(blockIdx.x, a.S, a.G);
    const int64_t s0 = o.first + 16 * (threadIdx.x / 32) + threadIdx.x % 32 / 4, s1 = s0 + 8;
    const int64_t row0 = (o.b * a.S + s0) * a.G + o.h, row1 = row0 + 8 * a.G;
    const float factor = (float)a.param[0].real;
    const int64_t pitch = a.H * D, start = a.causal ? o.first / TILE * TILE : 0;
    const int64_t heads = start < a.T ? (o.h + 1) * a.share.d : 0; /* nobody sees these keys */
    const float *q = (const float *)a.q + o.b * a.T * pitch,
                *dy = (const float *)a.dy + o.b * a.T * pitch;
    uint32_t k[D / 8][4], v[D / 8][4];
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    load_left<D>((const float *)a.k + row0 * D, (const float *)a.k + row1 * D, s0 < a.S, s1 < a.S,
                 k);
    load_left<D>((const float *)a.v + row0 * D, (const float *)a.v + row1 * D, s0 < a.S, s1 < a.S,
                 v);
    position at = {o.h * a.share.d, start};
    int turn = 0;
    tiles.fetch_both(0, q + at.t * pitch + at.h * D, dy + at.t * pitch + at.h * D, pitch,
                     at.h < heads ? a.T - at.t : 0);
    for (; at.h < heads; at = next_of<TILE>(a, at, start), turn ^= 1) {
        const position to = next_of<TILE>(a, at, start);
        fetch_sums<TILE>(a, (o.b * a.T + at.t) * a.H + at.h, a.T - at.t, lse, delta);
        tiles.fetch_both(turn ^ 1, q + to.t * pitch + to.h * D, dy + to.t * pitch + to.h * D, pitch,
                         to.h < heads ? a.T - to.t : 0);
        tiles.ready(turn);
        back_tile<D>(k, v, tiles.a[turn], tiles.b[turn], lse, delta,
                     a.causal ? (int)(s0 - at.t) : -TILE, factor * LOG2E, dk, dv);
        __syncthreads();
    }
    store<D>(dk, (float *)a.dk + row0 * D, (float *)a.dk + row1 * D, s0 < a.S, s1 < a.S, factor,
             factor);
    store<D>(dv, (float *)a.dv + row0 * D, (float *)a.dv + row1 * D, s0 < a.S, s1 < a.S, 1, 1);
}

/* --- launches -------------------------------------------------------------------------------- */
void sn_attend_mma(const sn_cuda_call *c, const sn_attend *a) {
    const unsigned grid = stripes(a->T, a->H, a->B);
    if (a->D == 64)
        SN_LAUNCH(attend_tiles<64>, grid, THREADS, 0, c->stream, *a);
    else
        SN_LAUNCH(attend_tiles<32>, grid, THREADS, 0, c->stream, *a);
}

void sn_attend_mma_grad(const sn_cuda_call *c, const sn_attend *a) {
    const unsigned queries = stripes(a->T, a->H, a->B), keys = stripes(a->S, a->G, a->B);
    if (queries == 0 || keys == 0)
        return;
    if (a->D == 64) {
        SN_LAUNCH(back_q_tiles<64>, queries, THREADS, 0, c->stream, *a);
        SN_LAUNCH(back_kv_tiles<64>, keys, THREADS, 0, c->stream, *a);
    } else {
        SN_LAUNCH(back_q_tiles<32>, queries, THREADS, 0, c->stream, *a);
        SN_LAUNCH(back_kv_tiles<32>, keys, THREADS, 0, c->stream, *a);
    }
}

#endif
