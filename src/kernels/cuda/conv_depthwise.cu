/* conv_depthwise.cu: convolutions with one filter per channel, f32 and halves, channels in packs of
 * four: neighbouring threads have neighbouring channels, so that every access is a full one. They
 * wait for memory, not for arithmetic: each value of x is read again by the windows around it, out
 * of the nearest cache.
 *
 * A weight gradient: a block has a strip of packs and a chunk of pixels; a thread keeps all places
 * of the window for its pack and goes through its share of the pixels. The block's threads are
 * added up in order, the chunks by a second kernel, in order, too. */
#include "kernels/cuda/cuda_conv.h"

#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/own.h"

enum { THREADS = 256, MOST_STRIP = 32, LEAST_PIXELS = 64, WANTED_BLOCKS = 1024 };

struct __align__(16) four {
    float v[4];
};

/* Packs of memory as they are computed, and back; L: a line of channels. */
template <class M> static __device__ __forceinline__ four load(const M *from, int64_t pack) {
    const sn_four<M> raw = ((const sn_four<M> *)from)[pack];
    four f;
#pragma unroll
    for (int k = 0; k < 4; k++)
        f.v[k] = raw.v[k];
    return f;
}
template <class M>
static __device__ __forceinline__ void store(M *to, int64_t pack, const four &f) {
    sn_four<M> raw;
#pragma unroll
    for (int k = 0; k < 4; k++)
        raw.v[k] = (M)f.v[k];
    ((sn_four<M> *)to)[pack] = raw;
}
template <class L> static __device__ __forceinline__ four load_line(const L &l, int64_t pack) {
    four f;
    sn_line_get<4>(l, 4 * pack, f.v);
    return f;
}

/* Weights: f32 beside halves is rounded to them. */
template <class M, class L>
static __device__ __forceinline__ four load_rounded(const L &l, int64_t pack) {
    four f = load_line(l, pack);
#pragma unroll
    for (int k = 0; k < 4; k++)
        f.v[k] = (M)f.v[k];
    return f;
}

static __device__ __forceinline__ void add_product(four *sum, const four &a, const four &b) {
#pragma unroll
    for (int k = 0; k < 4; k++)
        sum->v[k] += a.v[k] * b.v[k];
}

bool sn_depthwise_takes(const sn_conv *v, snug_dtype dtype) {
    return dtype != SNUG_F64 && v->groups == v->C && v->O == v->C && v->C % 4 == 0 &&
           v->kh == v->kw && (v->kh == 3 || v->kh == 5);
}

/* What of a geometry kernels need, in halves of 64 bits where that is enough. */
typedef struct {
    int H, W, oh, ow, stride[2], dilation[2], top, left;
    int64_t C, packs_all; /* of a pixel */
    sn_divisor packs, across, down, step[2];
} grid_of_windows;

static grid_of_windows windows_of(const sn_conv *v, int64_t rows, int64_t columns) {
    grid_of_windows g = {(int)v->H,
                         (int)v->W,
                         (int)v->oh,
                         (int)v->ow,
                         {(int)v->stride[0], (int)v->stride[1]},
                         {(int)v->dilation[0], (int)v->dilation[1]},
                         (int)v->pad[0],
                         (int)v->pad[2],
                         v->C,
                         v->C / 4,
                         sn_divisor_of(v->C / 4),
                         sn_divisor_of(columns),
                         sn_divisor_of(rows),
                         {sn_divisor_of(v->stride[0]), sn_divisor_of(v->stride[1])}};
    return g;
}

typedef struct {
    int64_t image, pack;
    int row, col;
} window_spot;
static __device__ __forceinline__ window_spot spot_of(const grid_of_windows &g, int64_t i) {
    const int64_t pixel = sn_div(i, g.packs), line = sn_div(pixel, g.across);
    window_spot s;
    s.pack = i - pixel * g.packs_all;
    s.col = (int)(pixel - line * g.across.d);
    s.image = sn_div(line, g.down);
    s.row = (int)(line - s.image * g.down.d);
    return s;
}

/* --- forward --------------------------------------------------------------------------------- */
template <class M, int K> struct forward_f {
    grid_of_windows g;
    const M *x;
    sn_line<M> w, bias, scale;
    M *y;
    int act;
    __device__ void operator()(int64_t i) const {
        const window_spot s = spot_of(g, i);
        const int row = s.row * g.stride[0] - g.top, col = s.col * g.stride[1] - g.left;
        four sum = {};
#pragma unroll
        for (int p = 0; p < K; p++)
#pragma unroll
            for (int q = 0; q < K; q++) {
                const int a = row + p * g.dilation[0], b = col + q * g.dilation[1];
                if (a >= 0 && a < g.H && b >= 0 && b < g.W)
                    add_product(&sum,
                                load(x, ((s.image * g.H + a) * g.W + b) * g.packs_all + s.pack),
                                load_rounded<M>(w, (p * K + q) * g.packs_all + s.pack));
            }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            sum.v[k] *= scale.data ? scale[4 * s.pack + k] : 1.0f;
            sum.v[k] += bias.data ? bias[4 * s.pack + k] : 0.0f;
            sum.v[k] = sn_act_of(act, sum.v[k]);
        }
        store(y, i, sum);
    }
};

template <class M, int K>
static void run_forward(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    const forward_f<M, K> f = {windows_of(v, v->oh, v->ow),
                               (const M *)o->x,
                               sn_line_at<M>(o->w, o->types.w),
                               sn_line_at<M>(o->bias, o->types.bias),
                               sn_line_at<M>(o->scale, o->types.bias),
                               (M *)o->y,
                               (int)v->act};
    sn_each(c, v->N * v->oh * v->ow * (v->C / 4), f);
}

/* --- the input's gradient -------------------------------------------------------------------- */
/* The window that has input position `at` at a place this far in, or -1. */
static __device__ __forceinline__ int window_at(int at, const sn_divisor &step, int extent) {
    const int o = at < 0 ? -1 : (int)sn_div(at, step);
    return at >= 0 && o * step.d == at && o < extent ? o : -1;
}

template <class M, int K> struct backward_f {
    grid_of_windows g;
    const M *dy;
    sn_line<M> w;
    M *dx;
    __device__ void operator()(int64_t i) const {
        const window_spot s = spot_of(g, i);
        four sum = {};
#pragma unroll
        for (int p = 0; p < K; p++) {
            const int a = window_at(s.row + g.top - p * g.dilation[0], g.step[0], g.oh);
#pragma unroll
            for (int q = 0; q < K; q++) {
                const int b = window_at(s.col + g.left - q * g.dilation[1], g.step[1], g.ow);
                if (a >= 0 && b >= 0)
                    add_product(&sum,
                                load(dy, ((s.image * g.oh + a) * g.ow + b) * g.packs_all + s.pack),
                                load_rounded<M>(w, (p * K + q) * g.packs_all + s.pack));
            }
        }
        store(dx, i, sum);
    }
};

template <class M, int K>
static void run_backward(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    const backward_f<M, K> f = {windows_of(v, v->H, v->W), (const M *)o->dy,
                                sn_line_at<M>(o->w, o->types.w), (M *)o->dx};
    sn_each(c, v->N * v->H * v->W * (v->C / 4), f);
}

/* --- the weights' gradient ------------------------------------------------------------------- */
/* Places of a window, and one more for the bias. */
static int64_t count_sums(const sn_conv *v) {
    return v->kh * v->kw + (v->bias ? 1 : 0);
}

static int64_t strip_of(const sn_conv *v) {
    const int64_t packs = v->C / 4;
    return packs < MOST_STRIP ? packs : (int64_t)MOST_STRIP;
}

static int64_t chunk_of(const sn_conv *v) {
    const int64_t pixels = v->N * v->oh * v->ow, strips = sn_cuda_ceil(v->C / 4, strip_of(v));
    const int64_t size = sn_cuda_ceil(pixels * strips, WANTED_BLOCKS);
    return size > LEAST_PIXELS ? size : (int64_t)LEAST_PIXELS;
}

static int64_t count_chunks(const sn_conv *v) {
    const int64_t pixels = v->N * v->oh * v->ow;
    return pixels > 0 ? sn_cuda_ceil(pixels, chunk_of(v)) : 1;
}

size_t sn_conv_depthwise_dw_bytes(const sn_conv *v) {
    return (size_t)(count_chunks(v) * count_sums(v) * v->C) * sizeof(float);
}

typedef struct {
    grid_of_windows g;
    int64_t pixels, chunk;
    sn_divisor strips;
    int strip, turns; /* packs of a block, and threads that share one */
    bool bias;
    const void *x, *dy;
    four *partial; /* [chunk][sum][pack] */
} dw_task;

/* All threads of the block that have this pack, added in order; the first of them stores. */
static __device__ void store_sum(const dw_task &t, const four &mine, four *shared, four *to) {
    const int lane = (int)threadIdx.x / t.strip, at = (int)threadIdx.x % t.strip;
    shared[threadIdx.x] = mine;
    __syncthreads();
    if (lane == 0) {
        four sum = mine;
        for (int k = 1; k < t.turns; k++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                sum.v[e] += shared[k * t.strip + at].v[e];
        if (to)
            *to = sum;
    }
    __syncthreads();
}

template <class M, int K>
static __global__ void __launch_bounds__(THREADS) sum_windows(const __grid_constant__ dw_task t) {
    __shared__ four shared[THREADS];
    const int lane = (int)threadIdx.x / t.strip;
    const int64_t chunk = sn_div(blockIdx.x, t.strips);
    const int64_t pack = (blockIdx.x - chunk * t.strips.d) * t.strip + (int)threadIdx.x % t.strip;
    const int64_t first = chunk * t.chunk + lane;
    const int64_t limit = (chunk + 1) * t.chunk, end = limit < t.pixels ? limit : t.pixels;
    const bool works = lane < t.turns && pack < t.g.packs_all;
    four sum[K * K] = {}, all = {};
#pragma unroll 1
    for (int64_t pixel = first; works && pixel < end; pixel += t.turns) {
        const int64_t line = sn_div(pixel, t.g.across), image = sn_div(line, t.g.down);
        const int row = (int)(line - image * t.g.oh) * t.g.stride[0] - t.g.top;
        const int col = (int)(pixel - line * t.g.ow) * t.g.stride[1] - t.g.left;
        const four g = load((const M *)t.dy, pixel * t.g.packs_all + pack);
#pragma unroll
        for (int k = 0; k < 4; k++)
            all.v[k] += g.v[k];
#pragma unroll
        for (int e = 0; e < K * K; e++) {
            const int a = row + e / K * t.g.dilation[0], b = col + e % K * t.g.dilation[1];
            if (a >= 0 && a < t.g.H && b >= 0 && b < t.g.W)
                add_product(
                    &sum[e],
                    load((const M *)t.x, ((image * t.g.H + a) * t.g.W + b) * t.g.packs_all + pack),
                    g);
        }
    }
    const int64_t sums = K * K + (t.bias ? 1 : 0);
    four *to = works ? t.partial + chunk * sums * t.g.packs_all + pack : NULL;
#pragma unroll
    for (int e = 0; e < K * K; e++)
        store_sum(t, sum[e], shared, to ? to + e * t.g.packs_all : NULL);
    if (t.bias)
        store_sum(t, all, shared, to ? to + K * K * t.g.packs_all : NULL);
}

/* A warp adds the chunks of an element. */
template <class L>
static __global__ void __launch_bounds__(THREADS)
    add_chunks(const float *partial, int64_t chunks, int64_t n_weights, int64_t n, bool add, L dw,
               L db) {
    const int lane = (int)threadIdx.x % 32;
    for (int64_t e = sn_thread() / 32; e < n; e += sn_all_threads() / 32) {
        double sum = 0;
#pragma unroll 4
        for (int64_t i = lane; i < chunks; i += 32)
            sum += (double)partial[i * n + e];
        sum = sn_warp_sum(sum);
        const L to = e < n_weights ? dw : db;
        const int64_t at = e < n_weights ? e : e - n_weights;
        if (lane == 0)
            to.put(at, add ? to[at] + (float)sum : (float)sum);
    }
}

template <class M, int K>
static void run_dw(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o, void *scratch) {
    const int64_t chunks = count_chunks(v), strip = strip_of(v);
    const int64_t n = count_sums(v) * v->C;
    dw_task t = {
        windows_of(v, v->oh, v->ow), v->N * v->oh * v->ow, chunk_of(v), {},    (int)strip,
        (int)(THREADS / strip),      v->bias != 0,         o->x,        o->dy, (four *)scratch};
    t.strips = sn_divisor_of(sn_cuda_ceil(v->C / 4, strip));
    SN_LAUNCH((sum_windows<M, K>), (unsigned)(chunks * t.strips.d), THREADS, 0, c->stream, t);
    SN_LAUNCH((add_chunks<sn_line<M>>), sn_blocks(n, THREADS / 32), THREADS, 0, c->stream,
              (const float *)scratch, chunks, K * K * v->C, n, o->accumulate,
              sn_line_at<M>(o->dw, o->types.w), sn_line_at<M>(o->db, o->types.bias));
}

/* f<M, K> of the types and the windows there are. */
#define BY_WINDOW(M, v, f, ...) ((v)->kh == 3 ? f<M, 3>(__VA_ARGS__) : f<M, 5>(__VA_ARGS__))
#define BY_TYPE(dtype, v, f, ...)                                                                  \
    ((dtype) == SNUG_F32   ? BY_WINDOW(float, v, f, __VA_ARGS__)                                   \
     : (dtype) == SNUG_F16 ? BY_WINDOW(sn_half, v, f, __VA_ARGS__)                                 \
                           : BY_WINDOW(sn_brain, v, f, __VA_ARGS__))

void sn_conv_depthwise(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    BY_TYPE(o->types.dtype, v, run_forward, c, v, o);
}

void sn_conv_depthwise_dx(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    BY_TYPE(o->types.dtype, v, run_backward, c, v, o);
}

void sn_conv_depthwise_dw(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                          void *scratch) {
    BY_TYPE(o->types.dtype, v, run_dw, c, v, o, scratch);
}
