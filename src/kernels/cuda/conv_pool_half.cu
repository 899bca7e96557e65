/* conv_pool_half.cu: the kernels of conv_pool_mma.cu for halves, on tensor cores that take
 * halves: 3 x 3 convolution of 3 channels, bias, relu and 2 x 2 max-pooling in one, and its
 * weight gradient in another, summed in f32; and the first without pooling. Tiles are the same,
 * and which rows and columns products have.
 *
 * Forward: a product has 16 terms, and two make a line: taps 0-7 of the first and of the second
 * line of x; those of the third and tap 8 of all three. What the convolution gives is rounded
 * before it is pooled, so that pairs of channels are pooled at once.
 *
 * Gradient: terms are 8 pooled pixels x 2 columns, an even one and the odd one beside it, which
 * lie in shared memory as one word: x and what is 3 behind it. */
#include "kernels/cuda/conv_pool_tiles.h"
#include "kernels/cuda/mma_half.h"

#ifdef SN_CUDA_EMULATED

void sn_conv_pool_half(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    (void)c, (void)q, (void)o;
}
void sn_conv_pool_half_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                          void *scratch) {
    (void)c, (void)q, (void)o, (void)scratch;
}
bool sn_conv_first_takes(const sn_gpu *g, const sn_conv *v, snug_dtype dtype) {
    (void)g, (void)v, (void)dtype;
    return false;
}
void sn_conv_first(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    (void)c, (void)v, (void)o;
}

#else

enum { WORDS = PITCH / 2 }; /* of a line of halves */

/* --- pairs of halves -------------------------------------------------------------------------- */
/* Bytes of a and b, 4 bits each, from the lowest. */
template <uint32_t BYTES>
static __device__ __forceinline__ uint32_t picked(uint32_t a, uint32_t b) {
    return __byte_perm(a, b, BYTES);
}
enum { LOWS = 0x5410, HIGHS = 0x7632, HIGH_LOW = 0x5432 };

/* NaN wins. */
template <class M> static __device__ __forceinline__ uint32_t larger(uint32_t a, uint32_t b);
template <> __device__ __forceinline__ uint32_t larger<sn_brain>(uint32_t a, uint32_t b) {
    uint32_t m;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
    return m;
}
template <> __device__ __forceinline__ uint32_t larger<sn_half>(uint32_t a, uint32_t b) {
    uint32_t m;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
    return m;
}

/* All bits of a half where a is above b. */
template <class M> static __device__ __forceinline__ uint32_t above(uint32_t a, uint32_t b);
template <> __device__ __forceinline__ uint32_t above<sn_brain>(uint32_t a, uint32_t b) {
    uint32_t m;
    asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
    return m;
}
template <> __device__ __forceinline__ uint32_t above<sn_half>(uint32_t a, uint32_t b) {
    uint32_t m;
    asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
    return m;
}

/* Four halves of x from `at` of a line of the image on; zeros outside. WIDE: lines end with a whole
 * four, and begin where the image does. */
template <bool WIDE, class M>
static __device__ __forceinline__ uint2 four_at(const pool_job<M> &o, const M *line, bool there,
                                                int at) {
    const int width = 3 * o.W;
    uint2 v = make_uint2(0, 0);
    uint16_t h[4] = {0, 0, 0, 0};
    if (WIDE && there && at < width)
        v = *(const uint2 *)(line + at);
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (!WIDE && there && at + k >= 0 && at + k < width)
            h[k] = line[at + k].bits;
    return WIDE ? v : make_uint2(h[0] | (uint32_t)h[1] << 16, h[2] | (uint32_t)h[3] << 16);
}

/* --- forward --------------------------------------------------------------------------------- */
/* The pixels of x under a tile as they are; AHEAD loads on their way. */
template <int AHEAD, bool WIDE, class M>
static __device__ __forceinline__ void fetch(const pool_job<M> &o, const corner &at, uint32_t *to) {
    const int row0 = 2 * at.i - o.top, first = 3 * (2 * at.j - o.left), line = 3 * o.W;
    const M *image = o.x + at.n * o.H * line;
#pragma unroll AHEAD
    for (int e = (int)threadIdx.x; e < HIGH * (PITCH / 4); e += THREADS) {
        const int r = e / (PITCH / 4), q = e % (PITCH / 4) * 4, row = row0 + r;
        const bool there = row >= 0 && row < o.H;
        *(uint2 *)(to + r * WORDS + q / 2) =
            four_at<WIDE>(o, image + (int64_t)(there ? row : 0) * line, there, first + q);
    }
}

/* Right operands of the two products, two registers each, for each n-tile. */
template <class M>
static __device__ void load_filters(const pool_job<M> &o, int first, uint32_t f[4][4]) {
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const int channel = first + 8 * (g / 2) + 2 * q + g % 2;
#pragma unroll
        for (int ky = 0; ky < 3; ky++)
            f[q][ky] = sn_half_pair<M>(o.w[(9 * ky + 2 * t) * o.O + channel],
                                       o.w[(9 * ky + 2 * t + 1) * o.O + channel]);
        const float low = t < 2 ? (float)o.w[(18 * t + 8) * o.O + channel] : 0.0f;
        const float high = t < 1 ? (float)o.w[17 * o.O + channel] : 0.0f;
        f[q][3] = sn_half_pair<M>(low, high);
    }
}

/* What a line of x gives: taps 2t and 2t + 1 of the even and of the odd column. */
typedef struct {
    uint32_t even, odd;
} taps;

static __device__ __forceinline__ taps load_taps(const uint32_t *line, int t) {
    const taps r = {line[t], picked<HIGH_LOW>(line[1 + t], line[2 + t])};
    return r;
}

/* Tap 8 of the even column (in the low half) and of the odd one (in the high half). */
static __device__ __forceinline__ taps load_last(const uint32_t *line) {
    const taps r = {line[4], line[5]};
    return r;
}

/* Tap 8 of two lines. */
static __device__ __forceinline__ taps join_last(const taps &a, const taps &b, uint32_t mask) {
    const taps r = {picked<LOWS>(a.even, b.even) & mask, picked<HIGHS>(a.odd, b.odd) & mask};
    return r;
}

/* One line of the convolution from three lines of x, rounded: pairs of channels, of the even and of
 * the odd column. */
template <class M>
static __device__ __forceinline__ void
convolve(const uint32_t f[4][4], const taps &x0, const taps &x1, const taps &x2, const taps &last,
         const float bias[8], uint32_t even[4], uint32_t odd[4]) {
    const uint32_t a[2][4] = {{x0.even, x0.odd, x1.even, x1.odd},
                              {x2.even, x2.odd, last.even, last.odd}};
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float from[4] = {bias[2 * q], bias[2 * q + 1], bias[2 * q], bias[2 * q + 1]};
        float sum[4];
        sn_half_multiply_from<M>(sum, from, a[0], f[q][0], f[q][1]);
        sn_half_multiply<M>(sum, a[1], f[q][2], f[q][3]);
        even[q] = sn_half_pair<M>(sum[0], sum[1]);
        odd[q] = sn_half_pair<M>(sum[2], sum[3]);
    }
}

/* Bits of eight channels, those of the first of each pair in the low half. */
static __device__ __forceinline__ uint32_t gathered(uint32_t bits) {
    return (bits | bits >> 16) & 255u;
}

/* Eight channels of one pooled pixel, two lines of pairs. Gives their codes, a byte for each
 * plane. */
template <class M>
static __device__ __forceinline__ uint32_t store_pixel(const pool_job<M> &o, int64_t pixel,
                                                       int channel, bool there,
                                                       const uint32_t up[2][4],
                                                       const uint32_t down[2][4]) {
    const uint32_t all = o.relu ? 0u : ~0u;
    uint32_t y[4], columns = 0, lines = 0, alives = 0;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const uint32_t bits = 1u << (2 * q) | 2u << (2 * q + 16);
        const uint32_t high = larger<M>(up[0][q], up[1][q]),
                       low = larger<M>(down[0][q], down[1][q]), line = above<M>(low, high);
        const uint32_t even = (down[0][q] & line) | (up[0][q] & ~line),
                       odd = (down[1][q] & line) | (up[1][q] & ~line);
        const uint32_t best = larger<M>(high, low), alive = (above<M>(best, 0u) | all) & bits;
        y[q] = o.relu ? larger<M>(best, 0u) : best;
        columns |= above<M>(odd, even) & alive;
        lines |= line & alive;
        alives |= alive;
    }
    if (there)
        *(uint4 *)(o.y + pixel * o.O + channel) = make_uint4(y[0], y[1], y[2], y[3]);
    return gathered(columns) | gathered(lines) << 8 | gathered(alives) << 16;
}

/* Eight channels of a pixel of the convolution itself. */
template <class M>
static __device__ __forceinline__ void store_whole(const pool_job<M> &o, int64_t n, int i, int j,
                                                   int channel, const uint32_t sum[4]) {
    uint32_t y[4];
#pragma unroll
    for (int q = 0; q < 4; q++)
        y[q] = o.relu ? larger<M>(sum[q], 0u) : sum[q];
    if (i < o.high && j < o.wide)
        *(uint4 *)(o.y + ((n * o.high + i) * o.wide + j) * o.O + channel) =
            make_uint4(y[0], y[1], y[2], y[3]);
}

template <class M, bool POOL>
static __global__ void __launch_bounds__(THREADS, 4)
    pool_tiles(const __grid_constant__ pool_job<M> o) {
    __shared__ __align__(16) uint32_t x[(HIGH + 1) * WORDS]; /* the last: loaded, not used */
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4,
              t = lane % 4;
    const int groups = o.O / CHANNELS, first = (int)(blockIdx.x % (unsigned)groups) * CHANNELS;
    const corner at = corner_of(o, blockIdx.x / (unsigned)groups);
    uint32_t f[4][4];
    float bias[8];
    load_filters(o, first, f);
#pragma unroll
    for (int e = 0; e < 8; e++)
        bias[e] = o.bias.data ? (float)o.bias[first + 8 * t + e] : 0.0f;
    if (o.wide_reads)
        fetch<7, true>(o, at, x);
    else
        fetch<2, false>(o, at, x);
    __syncthreads();
    const uint32_t *column = x + 3 * (8 * warp + g), *lasts = column + (t == 1 ? 2 * WORDS : 0);
    const uint32_t mask = t == 0 ? 0xffffffffu : t == 1 ? 0xffffu : 0u;
    taps x0 = load_taps(column, t), x1 = load_taps(column + WORDS, t), l0 = load_last(lasts);
#pragma unroll 2
    for (int r = 0; r < ROWS; r++) {
        const uint32_t *line = column + 2 * r * WORDS, *last = lasts + 2 * r * WORDS;
        const taps x2 = load_taps(line + 2 * WORDS, t), x3 = load_taps(line + 3 * WORDS, t),
                   l1 = load_last(last + WORDS), l2 = load_last(last + 2 * WORDS);
        uint32_t up[2][4], down[2][4];
        convolve<M>(f, x0, x1, x2, join_last(l0, l1, mask), bias, up[0], up[1]);
        convolve<M>(f, x1, x2, x3, join_last(l1, l2, mask), bias, down[0], down[1]);
        const int i = at.i + r, j = at.j + 8 * warp + g;
        const int64_t pixel = (at.n * o.oh + i) * o.ow + j;
        const bool there = i < o.oh && j < o.ow;
        if (POOL) {
            const uint32_t bits = store_pixel(o, pixel, first + 8 * t, there, up, down);
            if (o.code)
                store_codes(o, pixel, first, there, bits);
        } else {
#pragma unroll
            for (int s = 0; s < 2; s++) {
                store_whole(o, at.n, 2 * i, 2 * j + s, first + 8 * t, up[s]);
                store_whole(o, at.n, 2 * i + 1, 2 * j + s, first + 8 * t, down[s]);
            }
        }
        x0 = x2;
        x1 = x3;
        l0 = l2;
    }
}

template <class M, bool POOL>
static void forward(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    const pool_job<M> k = job_of<M>(q, o);
    SN_LAUNCH((pool_tiles<M, POOL>), (unsigned)(k.tiles * (k.O / CHANNELS)), THREADS, 0, c->stream,
              k);
}

void sn_conv_pool_half(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    if (o->o.types.dtype == SNUG_F16)
        forward<sn_half, true>(c, q, o);
    else
        forward<sn_brain, true>(c, q, o);
}

/* As if it were pooled: windows that reach over its edge are whole tiles', too. */
static sn_conv_pool unpooled(const sn_conv *v) {
    sn_conv_pool q = {};
    q.v = *v;
    q.relu = v->act == SN_ACT_relu;
    q.p.N = v->N;
    q.p.C = v->O;
    q.p.oh = (v->oh + 1) / 2;
    q.p.ow = (v->ow + 1) / 2;
    return q;
}

bool sn_conv_first_takes(const sn_gpu *g, const sn_conv *v, snug_dtype dtype) {
    const bool act = v->act == SN_ACT_none || v->act == SN_ACT_relu;
    bool takes = sn_dtype_is_half(dtype) && !sn_gpu_is_exact(g) && act && v->groups == 1 &&
                 v->C == 3 && v->kh == 3 && v->kw == 3 && v->O % CHANNELS == 0 && !v->line &&
                 v->N * v->oh * v->ow > 0;
    for (int i = 0; i < 2; i++)
        takes = takes && v->stride[i] == 1 && v->dilation[i] == 1;
    return takes;
}

void sn_conv_first(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    const sn_conv_pool q = unpooled(v);
    const sn_cuda_conv_pool p = {*o, NULL};
    if (o->types.dtype == SNUG_F16)
        forward<sn_half, false>(c, &q, &p);
    else
        forward<sn_brain, false>(c, &q, &p);
}

/* --- the weights' gradient ------------------------------------------------------------------- */
/* The pixels of x under a tile, each with the one of the next column. */
template <int AHEAD, bool WIDE, class M>
static __device__ __forceinline__ void fetch_pairs(const pool_job<M> &o, const corner &at,
                                                   uint32_t *to) {
    const int row0 = 2 * at.i - o.top, first = 3 * (2 * at.j - o.left), line = 3 * o.W;
    const M *image = o.x + at.n * o.H * line;
#pragma unroll AHEAD
    for (int e = (int)threadIdx.x; e < HIGH * (PITCH / 4); e += THREADS) {
        const int r = e / (PITCH / 4), q = e % (PITCH / 4) * 4, row = row0 + r;
        const bool there = row >= 0 && row < o.H;
        const M *from = image + (int64_t)(there ? row : 0) * line;
        const uint2 a = four_at<WIDE>(o, from, there, first + q),
                    b = four_at<WIDE>(o, from, there, first + q + 4);
        *(uint4 *)(to + r * PITCH + q) =
            make_uint4(picked<0x7610>(a.x, a.y), picked<0x5432>(a.x, b.x), picked<0x7610>(a.y, b.x),
                       picked<0x5432>(a.y, b.y));
    }
}

/* Offsets of a thread's taps in the tile; the last may be none: then it is `instead`. */
typedef struct {
    int at[4];
    bool there;
    uint32_t instead;
} rows;

template <class M> static __device__ rows rows_of(int g) {
    rows r;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int tap = g + 8 * e;
        r.at[e] = tap < TAPS - 1 ? tap / 9 * PITCH + tap % 9 : 0;
    }
    r.there = g + 24 < TAPS - 1;
    r.instead = g + 24 == TAPS - 1 ? sn_half_pair<M>(1.0f, 1.0f) : 0u;
    return r;
}

/* A thread's pixel and channels: the gradient and the codes' planes, shifted to its channels. */
typedef struct {
    uint2 d;
    uint32_t plane[3];
} pooled;

template <class M>
static __device__ __forceinline__ pooled load_pooled(const M *d, const uint8_t *code, int plane,
                                                     bool there) {
    const int shift = (int)threadIdx.x % 32 / 4 * 4;
    pooled p = {make_uint2(0, 0), {0, 0, 0}};
    if (!there)
        return p;
    p.d = *(const uint2 *)d;
#pragma unroll
    for (int e = 0; e < 3; e++)
        p.plane[e] = *(const uint32_t *)(code + e * plane) >> shift;
    return p;
}

/* Where the gradients of a pixel go in a line: bit q for channel q in the even column, bit 16 +
 * q in the odd one. */
static __device__ __forceinline__ uint32_t places_of(const pooled &p, int line) {
    const uint32_t here = p.plane[2] & (line ? p.plane[1] : ~p.plane[1]) & 15u;
    return (here & ~p.plane[0]) | (here & p.plane[0]) << 16;
}

/* The gradient of channel q, in both halves, where it goes. */
static __device__ __forceinline__ uint32_t term(const pooled &p, uint32_t places, int q) {
    const uint32_t two = q / 2 ? p.d.y : p.d.x;
    const uint32_t d = q % 2 ? picked<0x3232>(two, 0u) : picked<0x1010>(two, 0u);
    return d & ((places >> q & 0x10001u) * 0xffffu);
}

/* Eight pooled pixels from column `x` of their first line on; now: the thread's two of them. */
template <class M>
static __device__ __forceinline__ void add_pixels(const uint32_t *x, const rows &r,
                                                  const pooled now[2], float sum[2][4][4]) {
#pragma unroll
    for (int line = 0; line < 2; line++) {
        uint32_t a[2][4];
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                const uint32_t v = x[line * PITCH + r.at[e] + 24 * s];
                a[e / 2][e % 2 + 2 * s] = e < 3 || r.there ? v : r.instead;
            }
        const uint32_t low = places_of(now[0], line), high = places_of(now[1], line);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const uint32_t b0 = term(now[0], low, q), b1 = term(now[1], high, q);
            sn_half_multiply<M>(sum[0][q], a[0], b0, b1);
            sn_half_multiply<M>(sum[1][q], a[1], b0, b1);
        }
    }
}

/* The rows of a tile; the next one's values are on their way. A thread has pixels j and j + 4. */
template <class M>
static __device__ void add_tile(const pool_job<M> &o, const corner &at, int first,
                                const uint32_t *x, const rows &r, float sum[2][4][4]) {
    const int j = (int)threadIdx.x / 32 * 8 + (int)threadIdx.x % 4, g = (int)threadIdx.x % 32 / 4,
              plane = o.O / 8;
    const int64_t pixel = (at.n * o.oh + at.i) * o.ow + at.j + j;
    const M *d = o.dy + pixel * o.O + first + 4 * g;
    const uint8_t *code = o.code + pixel * 3 * plane + first / 8;
    const bool there[2] = {at.j + j < o.ow, at.j + j + 4 < o.ow};
    const int n = o.oh - at.i < ROWS ? o.oh - at.i : (int)ROWS;
    const uint32_t *column = x + 6 * j;
    pooled next[2] = {load_pooled(d, code, plane, there[0]),
                      load_pooled(d + 4 * o.O, code + 12 * plane, plane, there[1])};
#pragma unroll 1
    for (int i = 1; i <= n; i++, column += 2 * PITCH) {
        const pooled now[2] = {next[0], next[1]};
        d += (int64_t)o.ow * o.O;
        code += (int64_t)o.ow * 3 * plane;
        next[0] = load_pooled(d, code, plane, there[0] && i < n);
        next[1] = load_pooled(d + 4 * o.O, code + 12 * plane, plane, there[1] && i < n);
        add_pixels<M>(column, r, now, sum);
    }
}

template <class M>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    sum_tiles(const __grid_constant__ pool_job<M> o) {
    __shared__ __align__(16) uint32_t x[HIGH * PITCH];
    const int groups = o.O / CHANNELS, first = (int)(blockIdx.x % (unsigned)groups) * CHANNELS;
    const rows r = rows_of<M>((int)threadIdx.x % 32 / 4);
    float sum[2][4][4] = {};
    for (int64_t tile = blockIdx.x / (unsigned)groups; tile < o.tiles;
         tile += gridDim.x / (unsigned)groups) {
        const corner at = corner_of(o, tile);
        __syncthreads();
        if (o.wide_reads)
            fetch_pairs<7, true>(o, at, x);
        else
            fetch_pairs<2, false>(o, at, x);
        __syncthreads();
        add_tile(o, at, first, x, r, sum);
    }
    store_sums(o, first, sum, (float *)x);
}

template <class M>
static void gradient(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                     void *scratch) {
    pool_job<M> k = job_of<M>(q, o);
    const unsigned blocks = (unsigned)(count_blocks(c->gpu, q) * (k.O / CHANNELS));
    k.partial = (float *)scratch;
    SN_LAUNCH((sum_tiles<M>), blocks, THREADS, 0, c->stream, k);
    add_sums(c, q, o, k);
}

void sn_conv_pool_half_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                          void *scratch) {
    if (o->o.types.dtype == SNUG_F16)
        gradient<sn_half>(c, q, o, scratch);
    else
        gradient<sn_brain>(c, q, o, scratch);
}

#endif
