/* conv_pool_tiles.h: what the kernels of a pooled convolution of 3 channels on tensor cores have in
 * common (conv_pool_mma.cu, conv_pool_half.cu): tiles, the codes of a pixel, and the sums of the
 * weights' gradient. For files that the emulator does without. */
#ifndef SN_KERNELS_CUDA_CONV_POOL_TILES_H
#define SN_KERNELS_CUDA_CONV_POOL_TILES_H

#include "kernels/cuda/cuda_conv_pool.h"
#include "kernels/cuda/own.h"

#ifndef SN_CUDA_EMULATED

enum {
    WARPS = 4,
    THREADS = 32 * WARPS,
    COLUMNS = 8 * WARPS, /* pooled, of a tile */
    ROWS = 16,
    CHANNELS = 32,
    HIGH = 2 * ROWS + 2,          /* lines of x under a tile */
    WIDE = 3 * (2 * COLUMNS + 2), /* floats of one */
    PITCH = WIDE + 2,             /* whole float4s */
    TAPS = 28,                    /* and the bias */
    RESIDENT = 5                  /* blocks of the gradient on a multiprocessor */
};

/* M: what x, y and dy are of. */
template <class M> struct pool_job {
    const M *x, *dy;
    sn_line<M> w, bias; /* bias.data NULL: none */
    M *y;
    float *partial;
    uint8_t *code;
    int64_t N;
    int H, W, O, oh, ow;   /* oh, ow: pooled */
    int high, wide;        /* the convolution's own */
    int top, left;         /* padding */
    int down, across;      /* tiles */
    int64_t tiles;         /* images, down, across */
    bool relu, wide_reads; /* x may be read by fours */
};

/* Where a tile lies: image and first pooled pixel. */
typedef struct {
    int64_t n;
    int i, j;
} corner;

template <class J> static __device__ __forceinline__ corner corner_of(const J &o, int64_t tile) {
    corner at;
    const int inside = (int)(tile % (o.down * o.across));
    at.n = tile / (o.down * o.across);
    at.i = inside / o.across * ROWS;
    at.j = inside % o.across * COLUMNS;
    return at;
}

/* The codes of 32 channels of a pixel, eight of each of four lanes: lane t stores plane t. */
template <class M>
static __device__ __forceinline__ void store_codes(const pool_job<M> &o, int64_t pixel, int first,
                                                   bool there, uint32_t bits) {
    const int t = (int)threadIdx.x % 4;
    uint32_t word = 0;
#pragma unroll
    for (int e = 0; e < 4; e++)
        word |= (__shfl_sync(0xffffffffu, bits, e, 4) >> 8 * t & 255u) << 8 * e;
    if (there && t < 3)
        *(uint32_t *)(o.code + (pixel * 3 + t) * (o.O / 8) + first / 8) = word;
}

template <class M> static pool_job<M> job_of(const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    pool_job<M> k = {};
    k.x = (const M *)o->o.x;
    k.w = sn_line_at<M>(o->o.w, o->o.types.w);
    k.bias = sn_line_at<M>(o->o.bias, o->o.types.bias);
    k.dy = (const M *)o->o.dy;
    k.y = (M *)o->o.y;
    k.code = o->code;
    k.N = q->v.N;
    k.H = (int)q->v.H;
    k.W = (int)q->v.W;
    k.O = (int)q->v.O;
    k.oh = (int)q->p.oh;
    k.ow = (int)q->p.ow;
    k.high = (int)q->v.oh;
    k.wide = (int)q->v.ow;
    k.top = (int)q->v.pad[0];
    k.left = (int)q->v.pad[2];
    k.down = (k.oh + ROWS - 1) / ROWS;
    k.across = (k.ow + COLUMNS - 1) / COLUMNS;
    k.tiles = k.N * k.down * k.across;
    k.relu = q->relu;
    k.wide_reads = k.left == 0 && 3 * k.W % 4 == 0 && sn_aligned(k.x);
    return k;
}

/* --- the weights' gradient ------------------------------------------------------------------- */
/* The block's sum from its warps', in order; x is free by now. */
template <class M>
static __device__ void store_sums(const pool_job<M> &o, int group, float sum[2][4][4], float *all) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4,
              t = lane % 4;
    const int64_t block = blockIdx.x / (unsigned)(o.O / CHANNELS);
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int tap = 16 * m + g + 8 * (e / 2), channel = 4 * (2 * t + e % 2) + q;
                if (tap < TAPS)
                    all[(warp * TAPS + tap) * CHANNELS + channel] = sum[m][q][e];
            }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < TAPS * CHANNELS; e += THREADS) {
        float total = 0;
        for (int w = 0; w < WARPS; w++)
            total += all[w * TAPS * CHANNELS + e];
        o.partial[(block * TAPS + e / CHANNELS) * o.O + group + e % CHANNELS] = total;
    }
}

/* A warp adds the blocks' sums of an element: 27 taps of dw, then db. */
template <class L>
static __global__ void add_blocks(const float *partial, int64_t blocks, int O, bool add, L dw,
                                  L db) {
    const int lane = (int)threadIdx.x % 32, count = TAPS * O;
    for (int at = (int)(sn_thread() / 32); at < count; at += (int)(sn_all_threads() / 32)) {
        double sum = 0;
        for (int64_t i = lane; i < blocks; i += 32)
            sum += (double)partial[i * count + at];
        sum = sn_warp_sum(sum);
        const int i = at - (count - O); /* of the bias */
        if (lane == 0 && i < 0)
            dw.put(at, add ? dw[at] + (float)sum : (float)sum);
        else if (lane == 0 && db.data)
            db.put(i, add ? db[i] + (float)sum : (float)sum);
    }
}

/* Blocks of each group of channels: as many as the card holds, not more than tiles. */
static int64_t count_blocks(const sn_gpu *g, const sn_conv_pool *q) {
    const int64_t tiles =
        q->v.N * ((q->p.oh + ROWS - 1) / ROWS) * ((q->p.ow + COLUMNS - 1) / COLUMNS);
    const int64_t wanted = RESIDENT * (int64_t)sn_gpu_multiprocessors(g) / (q->v.O / CHANNELS);
    return tiles < wanted ? tiles : wanted > 0 ? wanted : 1;
}

template <class M>
static void add_sums(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                     const pool_job<M> &k) {
    SN_LAUNCH((add_blocks<sn_line<M>>), sn_blocks(TAPS * (int64_t)k.O, 4), 128, 0, c->stream,
              (const float *)k.partial, count_blocks(c->gpu, q), k.O, o->o.accumulate,
              sn_line_at<M>(o->o.dw, o->o.types.w), sn_line_at<M>(o->o.db, o->o.types.bias));
}

#endif
#endif
