/* attention_tiles.h: what attention on tensor cores has in common for all types: a block's rows,
 * the weights of a tile in registers, as accumulators of products have them (columns 8 i + 2 t
 * and the next of rows g and g + 8 in s[i]), and the order in which tiles go by. For files that
 * the emulator does without. */
#ifndef SN_KERNELS_CUDA_ATTENTION_TILES_H
#define SN_KERNELS_CUDA_ATTENTION_TILES_H

#include "kernels/cuda/cuda_attention.h"

#ifndef SN_CUDA_EMULATED

enum { WARPS = 4, THREADS = 32 * WARPS, ROWS = 16 * WARPS };

#define LOG2E 1.4426950408889634f
#define LN2   0.6931471805599453f

/* --- rows ------------------------------------------------------------------------------------ */
/* Of the four lanes that share a row. */
static __device__ __forceinline__ float row_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
static __device__ __forceinline__ float row_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

/* A block's rows: entry, head, and the first of 64. */
typedef struct {
    int64_t b, h, first;
} stripe;

static __device__ stripe stripe_of(int64_t block, int64_t rows, int64_t heads) {
    const int64_t stripes = (rows + ROWS - 1) / ROWS;
    stripe s;
    s.first = (stripes - 1 - block % stripes) * ROWS; /* causal: the longest first */
    s.h = block / stripes % heads;
    s.b = block / stripes / heads;
    return s;
}

/* Scores in powers of 2; at an edge those of columns that are not there, or not seen by the row,
 * become -infinity. */
template <int N>
static __device__ __forceinline__ void mask_scores(float s[N][4], int column, int n, int row,
                                                   bool causal, float scale) {
    const int t = (int)threadIdx.x % 4;
    const bool edge = column + 8 * N > n || causal;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int at = column + 8 * i + 2 * t + e % 2;
            s[i][e] *= scale;
            if (edge && !(at < n && !(causal && at > row + 8 * (e / 2))))
                s[i][e] = -INFINITY;
        }
}

/* What a row's sum so far is worth now that its maximum has grown; the weights replace the
 * scores. */
template <int N>
static __device__ __forceinline__ void soften(float s[N][4], int half, float *max, float *sum,
                                              float *factor) {
    float top = *max, more = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        top = fmaxf(top, fmaxf(s[i][2 * half], s[i][2 * half + 1]));
    top = row_max(top);
    const float shift = top == -INFINITY ? 0.0f : top;
    *factor = exp2f(*max - shift);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) {
            s[i][e] = exp2f(s[i][e] - shift);
            more += s[i][e];
        }
    *sum = *sum * *factor + more;
    *max = top;
}

static unsigned stripes(int64_t rows, int64_t heads, int64_t entries) {
    return (unsigned)((rows + ROWS - 1) / ROWS * heads * entries);
}

/* --- weights of gradients --------------------------------------------------------------------- */
/* p = exp(score - lse), then dp becomes p (dp - delta); score and lse in powers of 2. */
static __device__ __forceinline__ void slope(float *p, float *dp, float lse, float delta) {
    *p = exp2f(*p - lse);
    *dp = *p * (*dp - delta);
}

/* lse and delta of a tile's queries; behind the last lse is so large that weights are 0. */
template <int TILE>
static __device__ void fetch_sums(const sn_attend &a, int64_t row, int64_t n, float *lse,
                                  float *delta) {
    const int r = (int)threadIdx.x;
    if (r < TILE) {
        lse[r] = r < n ? ((const float *)a.lse)[row + r * a.H] * LOG2E : INFINITY;
        delta[r] = r < n ? ((const float *)a.delta)[row + r * a.H] : 0.0f;
    }
}

/* What a block of keys goes through: tiles of queries, head after head. */
typedef struct {
    int64_t h, t;
} position;

template <int TILE>
static __device__ __forceinline__ position next_of(const sn_attend &a, position p, int64_t first) {
    p.t += TILE;
    if (p.t >= a.T) {
        p.t = first;
        p.h++;
    }
    return p;
}

#endif
#endif
