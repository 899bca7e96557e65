/* attention_half.cu: attention of halves on tensor cores, summed in f32; the T x S weights, which
 * are rounded to halves for the products, never in memory.
 *
 * As in attention_mma.cu a block owns 64 rows, 16 for each of its 4 warps, as fragments, and the
 * other side goes by in tiles of shared memory, the next ones on their way. The weights of a tile
 * are the next product's left operand as they lie in registers. A pitch of D + 8 halves keeps both
 * ways of reading a tile free of conflicts.
 *
 * The gradient of q makes each row's sum of dy y on the way, which that of k and v reads. */
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/mma_half.h"

#ifdef SN_CUDA_EMULATED

bool sn_attend_half_takes(const sn_gpu *g, const sn_attend *a, snug_dtype dtype) {
    (void)g, (void)a, (void)dtype;
    return false;
}
void sn_attend_half(const sn_cuda_call *c, const sn_attend *a, snug_dtype dtype) {
    (void)c, (void)a, (void)dtype;
}
void sn_attend_half_grad(const sn_cuda_call *c, const sn_attend *a, snug_dtype dtype) {
    (void)c, (void)a, (void)dtype;
}

#else

enum { TILE = 64, BACK = 32 }; /* rows of a tile; of the gradient of k and v */

bool sn_attend_half_takes(const sn_gpu *g, const sn_attend *a, snug_dtype dtype) {
    return sn_dtype_is_half(dtype) && sn_attend_mma_takes(g, a, SNUG_F32);
}

/* --- fragments ------------------------------------------------------------------------------- */
/* 16 rows of D features as left operand: rows r and r + 8 of the thread, zeros where `there` is
 * false. */
template <class M, int D>
static __device__ __forceinline__ void load_left(const M *low, const M *high, bool low_there,
                                                 bool high_there, uint32_t a[D / 16][4]) {
    const int t = (int)threadIdx.x % 4;
    const uint32_t *l = (const uint32_t *)low + t, *h = (const uint32_t *)high + t;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        a[k][0] = low_there ? l[8 * k] : 0u;
        a[k][1] = high_there ? h[8 * k] : 0u;
        a[k][2] = low_there ? l[8 * k + 4] : 0u;
        a[k][3] = high_there ? h[8 * k + 4] : 0u;
    }
}

/* N rows of D halves, `pitch` apart, on their way into shared memory; zeros behind those there
 * are. */
template <class M, int D, int N>
static __device__ __forceinline__ void fetch(const M *from, int64_t pitch, int64_t there, M *to) {
#pragma unroll
    for (int i = 0; i < N * (D / 8) / THREADS; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / (D / 8), q = e % (D / 8) * 8;
        const unsigned at = (unsigned)__cvta_generic_to_shared(to + r * (D + 8) + q);
        const M *source = from + (r < there ? r : 0) * pitch + q;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(source),
                     "r"(r < there ? 16 : 0)
                     : "memory");
    }
}

/* Two tiles of N rows that go by together, and the two that come next. */
template <class M, int D, int N> struct attend_pair {
    M a[2][N * (D + 8)], b[2][N * (D + 8)];

    __device__ __forceinline__ void fetch_both(int turn, const M *x, const M *y, int64_t pitch,
                                               int64_t there) {
        if (there > 0) {
            fetch<M, D, N>(x, pitch, there, a[turn]);
            fetch<M, D, N>(y, pitch, there, b[turn]);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    /* Those of this turn are there for all; the next are on their way. */
    static __device__ __forceinline__ void ready(void) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
    }
};

/* out[tile of 8 columns] = left times the tile's N rows, turned. */
template <class M, int D, int N>
static __device__ __forceinline__ void times_turned(const uint32_t a[D / 16][4], const M *tile,
                                                    float out[N / 8][4]) {
    const int lane = (int)threadIdx.x % 32;
    const M *row = tile + lane % 8 * (D + 8) + lane / 8 * 8;
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            out[n][e] = 0;
#pragma unroll
        for (int k = 0; k < D / 16; k += 2) {
            uint32_t b[4];
            sn_half_matrices<false>(b, row + 8 * n * (D + 8) + 16 * k);
            sn_half_multiply<M>(out[n], a[k], b[0], b[1]);
            sn_half_multiply<M>(out[n], a[k + 1], b[2], b[3]);
        }
    }
}

/* sum[tile of 8 features] += weights, as accumulators have them, times the tile's N rows. */
template <class M, int D, int N>
static __device__ __forceinline__ void times_tile(const float p[N / 8][4], const M *tile,
                                                  float sum[D / 8][4]) {
    const int lane = (int)threadIdx.x % 32;
    const M *row = tile + lane % 16 * (D + 8) + lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < N / 16; n++) {
        const float *low = p[2 * n], *high = p[2 * n + 1];
        const uint32_t a[4] = {sn_half_pair<M>(low[0], low[1]), sn_half_pair<M>(low[2], low[3]),
                               sn_half_pair<M>(high[0], high[1]),
                               sn_half_pair<M>(high[2], high[3])};
#pragma unroll
        for (int k = 0; k < D / 8; k += 2) {
            uint32_t b[4];
            sn_half_matrices<true>(b, row + 16 * n * (D + 8) + 8 * k);
            sn_half_multiply<M>(sum[k], a, b[0], b[1]);
            sn_half_multiply<M>(sum[k + 1], a, b[2], b[3]);
        }
    }
}

/* Rows g and g + 8 of a thread: sum[k] holds columns 8k + 2t and the next of each. */
template <class M, int D>
static __device__ void store(const float sum[D / 8][4], M *low, M *high, bool low_there,
                             bool high_there, float low_factor, float high_factor) {
    uint32_t *const l = (uint32_t *)low + threadIdx.x % 4, *const h =
                                                               (uint32_t *)high + threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < D / 8; k++) {
        if (low_there)
            l[4 * k] = sn_half_pair<M>(sum[k][0] * low_factor, sum[k][1] * low_factor);
        if (high_there)
            h[4 * k] = sn_half_pair<M>(sum[k][2] * high_factor, sum[k][3] * high_factor);
    }
}

/* --- forward --------------------------------------------------------------------------------- */
template <class M, int D>
static __global__ void __launch_bounds__(THREADS, 3)
    attend_tiles(const __grid_constant__ sn_attend a) {
    __shared__ __align__(16) attend_pair<M, D, TILE> tiles; /* keys, values */
    const stripe o = stripe_of(blockIdx.x, a.T, a.H);
    const int lane = (int)threadIdx.x % 32, g = lane / 4;
    const int64_t t0 = o.first + 16 * (threadIdx.x / 32) + g, t1 = t0 + 8;
    const int64_t row0 = (o.b * a.T + t0) * a.H + o.h, row1 = row0 + 8 * a.H;
    const int64_t group = o.h / a.share.d, pitch = a.G * D;
    const M *k = (const M *)a.k + (o.b * a.S * a.G + group) * D,
            *v = (const M *)a.v + (o.b * a.S * a.G + group) * D;
    const float scale = (float)a.param[0].real * LOG2E;
    const int64_t end = a.causal && o.first + ROWS < a.S ? o.first + ROWS : a.S;
    uint32_t q[D / 16][4];
    float y[D / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, factor[2];
    load_left<M, D>((const M *)a.q + row0 * D, (const M *)a.q + row1 * D, t0 < a.T, t1 < a.T, q);
    int turn = 0;
    tiles.fetch_both(0, k, v, pitch, a.S);
    for (int64_t s = 0; s < end; s += TILE, turn ^= 1) {
        float p[TILE / 8][4];
        const int64_t next = s + TILE;
        tiles.fetch_both(turn ^ 1, k + next * pitch, v + next * pitch, pitch,
                         next < end ? a.S - next : 0);
        tiles.ready();
        times_turned<M, D, TILE>(q, tiles.a[turn], p);
        mask_scores<TILE / 8>(p, (int)s, (int)a.S, (int)t0, a.causal && next > o.first, scale);
        soften<TILE / 8>(p, 0, &max[0], &sum[0], &factor[0]);
        soften<TILE / 8>(p, 1, &max[1], &sum[1], &factor[1]);
#pragma unroll
        for (int i = 0; i < D / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                y[i][e] *= factor[e / 2];
        times_tile<M, D, TILE>(p, tiles.b[turn], y);
        __syncthreads();
    }
    sum[0] = row_sum(sum[0]);
    sum[1] = row_sum(sum[1]);
    store<M, D>(y, (M *)a.y_out + row0 * D, (M *)a.y_out + row1 * D, t0 < a.T, t1 < a.T,
                1.0f / sum[0], 1.0f / sum[1]);
    if (lane % 4 == 0 && t0 < a.T)
        ((float *)a.lse_out)[row0] = max[0] * LN2 + logf(sum[0]);
    if (lane % 4 == 0 && t1 < a.T)
        ((float *)a.lse_out)[row1] = max[1] * LN2 + logf(sum[1]);
}

/* --- gradients ------------------------------------------------------------------------------- */
/* The sums of dy y of a thread's two rows; fragments are of the same elements. */
template <class M, int D>
static __device__ __forceinline__ void make_deltas(const uint32_t dy[D / 16][4],
                                                   const uint32_t y[D / 16][4], float delta[2]) {
    delta[0] = delta[1] = 0;
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float2 d = sn_half_two<M>(dy[k][e]), v = sn_half_two<M>(y[k][e]);
            delta[e % 2] += d.x * v.x + d.y * v.y;
        }
    delta[0] = row_sum(delta[0]);
    delta[1] = row_sum(delta[1]);
}

template <class M, int D>
static __global__ void __launch_bounds__(THREADS, 2)
    back_q_tiles(const __grid_constant__ sn_attend a) {
    __shared__ __align__(16) attend_pair<M, D, TILE> tiles; /* keys, values */
    const stripe o = stripe_of(blockIdx.x, a.T, a.H);
    const int lane = (int)threadIdx.x % 32, g = lane / 4;
    const int64_t t0 = o.first + 16 * (threadIdx.x / 32) + g, t1 = t0 + 8;
    const int64_t row0 = (o.b * a.T + t0) * a.H + o.h, row1 = row0 + 8 * a.H;
    const bool there[2] = {t0 < a.T, t1 < a.T};
    const int64_t group = o.h / a.share.d, pitch = a.G * D;
    const M *k = (const M *)a.k + (o.b * a.S * a.G + group) * D,
            *v = (const M *)a.v + (o.b * a.S * a.G + group) * D;
    const float factor = (float)a.param[0].real, scale = factor * LOG2E;
    const int64_t end = a.causal && o.first + ROWS < a.S ? o.first + ROWS : a.S;
    const float *lse = (const float *)a.lse;
    const float lses[2] = {there[0] ? lse[row0] * LOG2E : 0, there[1] ? lse[row1] * LOG2E : 0};
    uint32_t q[D / 16][4], dy[D / 16][4];
    float dq[D / 8][4] = {}, deltas[2];
    tiles.fetch_both(0, k, v, pitch, a.S);
    load_left<M, D>((const M *)a.y + row0 * D, (const M *)a.y + row1 * D, there[0], there[1], q);
    load_left<M, D>((const M *)a.dy + row0 * D, (const M *)a.dy + row1 * D, there[0], there[1], dy);
    make_deltas<M, D>(dy, q, deltas);
    if (lane % 4 == 0 && there[0])
        ((float *)a.delta)[row0] = deltas[0];
    if (lane % 4 == 0 && there[1])
        ((float *)a.delta)[row1] = deltas[1];
    load_left<M, D>((const M *)a.q + row0 * D, (const M *)a.q + row1 * D, there[0], there[1], q);
    int turn = 0;
    for (int64_t s = 0; s < end; s += TILE, turn ^= 1) {
        float p[TILE / 8][4], dp[TILE / 8][4];
        const int64_t next = s + TILE;
        tiles.fetch_both(turn ^ 1, k + next * pitch, v + next * pitch, pitch,
                         next < end ? a.S - next : 0);
        tiles.ready();
        times_turned<M, D, TILE>(q, tiles.a[turn], p);
        times_turned<M, D, TILE>(dy, tiles.b[turn], dp);
        mask_scores<TILE / 8>(p, (int)s, (int)a.S, (int)t0, a.causal && next > o.first, scale);
#pragma unroll
        for (int i = 0; i < TILE / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                slope(&p[i][e], &dp[i][e], lses[e / 2], deltas[e / 2]);
        times_tile<M, D, TILE>(dp, tiles.a[turn], dq);
        __syncthreads();
    }
    store<M, D>(dq, (M *)a.dq + row0 * D, (M *)a.dq + row1 * D, there[0], there[1], factor, factor);
}

/* One tile of queries, from t on: what it adds to dk and dv of keys s0 and s0 + 8. */
template <class M, int D>
static __device__ __forceinline__ void
back_tile(const uint32_t k[D / 16][4], const uint32_t v[D / 16][4], const M *queries, const M *dys,
          const float *lse, const float *delta, int later, float scale, float dk[D / 8][4],
          float dv[D / 8][4]) {
    const int lane_t = (int)threadIdx.x % 4;
    float p[BACK / 8][4], dp[BACK / 8][4];
    times_turned<M, D, BACK>(k, queries, p);
    times_turned<M, D, BACK>(v, dys, dp);
#pragma unroll
    for (int i = 0; i < BACK / 8; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int at = 8 * i + 2 * lane_t + e % 2;
            p[i][e] = at < later + 8 * (e / 2) ? -INFINITY : p[i][e] * scale;
            slope(&p[i][e], &dp[i][e], lse[at], delta[at]);
        }
    times_tile<M, D, BACK>(p, dys, dv);
    times_tile<M, D, BACK>(dp, queries, dk);
}

template <class M, int D>
static __global__ void __launch_bounds__(THREADS, 2)
    back_kv_tiles(const __grid_constant__ sn_attend a) {
    __shared__ __align__(16) attend_pair<M, D, BACK> tiles; /* queries, dy */
    __shared__ float lse[BACK], delta[BACK];
    const stripe o = stripe_of(blockIdx.x, a.S, a.G);
    const int64_t s0 = o.first + 16 * (threadIdx.x / 32) + threadIdx.x % 32 / 4, s1 = s0 + 8;
    const int64_t row0 = (o.b * a.S + s0) * a.G + o.h, row1 = row0 + 8 * a.G;
    const float factor = (float)a.param[0].real;
    const int64_t pitch = a.H * D, start = a.causal ? o.first / BACK * BACK : 0;
    const int64_t heads = start < a.T ? (o.h + 1) * a.share.d : 0; /* nobody sees these keys */
    const M *q = (const M *)a.q + o.b * a.T * pitch, *dy = (const M *)a.dy + o.b * a.T * pitch;
    uint32_t k[D / 16][4], v[D / 16][4];
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    load_left<M, D>((const M *)a.k + row0 * D, (const M *)a.k + row1 * D, s0 < a.S, s1 < a.S, k);
    load_left<M, D>((const M *)a.v + row0 * D, (const M *)a.v + row1 * D, s0 < a.S, s1 < a.S, v);
    position at = {o.h * a.share.d, start};
    int turn = 0;
    tiles.fetch_both(0, q + at.t * pitch + at.h * D, dy + at.t * pitch + at.h * D, pitch,
                     at.h < heads ? a.T - at.t : 0);
    for (; at.h < heads; at = next_of<BACK>(a, at, start), turn ^= 1) {
        const position to = next_of<BACK>(a, at, start);
        fetch_sums<BACK>(a, (o.b * a.T + at.t) * a.H + at.h, a.T - at.t, lse, delta);
        tiles.fetch_both(turn ^ 1, q + to.t * pitch + to.h * D, dy + to.t * pitch + to.h * D, pitch,
                         to.h < heads ? a.T - to.t : 0);
        tiles.ready();
        back_tile<M, D>(k, v, tiles.a[turn], tiles.b[turn], lse, delta,
                        a.causal ? (int)(s0 - at.t) : -BACK, factor * LOG2E, dk, dv);
        __syncthreads();
    }
    store<M, D>(dk, (M *)a.dk + row0 * D, (M *)a.dk + row1 * D, s0 < a.S, s1 < a.S, factor, factor);
    store<M, D>(dv, (M *)a.dv + row0 * D, (M *)a.dv + row1 * D, s0 < a.S, s1 < a.S, 1, 1);
}

/* --- launches -------------------------------------------------------------------------------- */
template <class M, int D> static void attend(const sn_cuda_call *c, const sn_attend *a) {
    SN_LAUNCH((attend_tiles<M, D>), stripes(a->T, a->H, a->B), THREADS, 0, c->stream, *a);
}

template <class M, int D> static void attend_back(const sn_cuda_call *c, const sn_attend *a) {
    const unsigned queries = stripes(a->T, a->H, a->B), keys = stripes(a->S, a->G, a->B);
    if (queries > 0 && keys > 0) {
        SN_LAUNCH((back_q_tiles<M, D>), queries, THREADS, 0, c->stream, *a);
        SN_LAUNCH((back_kv_tiles<M, D>), keys, THREADS, 0, c->stream, *a);
    }
}

void sn_attend_half(const sn_cuda_call *c, const sn_attend *a, snug_dtype dtype) {
    if (dtype == SNUG_BF16 && a->D == 64)
        attend<sn_brain, 64>(c, a);
    else if (dtype == SNUG_BF16)
        attend<sn_brain, 32>(c, a);
    else if (a->D == 64)
        attend<sn_half, 64>(c, a);
    else
        attend<sn_half, 32>(c, a);
}

void sn_attend_half_grad(const sn_cuda_call *c, const sn_attend *a, snug_dtype dtype) {
    if (dtype == SNUG_BF16 && a->D == 64)
        attend_back<sn_brain, 64>(c, a);
    else if (dtype == SNUG_BF16)
        attend_back<sn_brain, 32>(c, a);
    else if (a->D == 64)
        attend_back<sn_half, 64>(c, a);
    else
        attend_back<sn_half, 32>(c, a);
}

#endif
