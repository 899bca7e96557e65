/* conv_pool_mma.cu: 3 x 3 convolution of 3 channels, bias, relu and 2 x 2 max-pooling in one
 * kernel, and its weight gradient in another, on tensor cores (TF32).
 *
 * A block takes a tile of ROWS x COLUMNS pooled pixels; the pixels of x under it lie in shared
 * memory, rounded to TF32. The taps of a filter are 27 = 3 rows of 9 floats that lie side by side
 * in x (k = 9 ky + 3 kx + c, as the filter has them).
 *
 * Forward: rows g and g + 8 of a product are an even column of the convolution and the odd one
 * beside it, and there is one product for an even line and one for the odd one below: so a thread
 * owns the four values of its windows. Terms: per row of taps 0-3 and 4-7 as one k8, then tap 8 of
 * the three rows as a k4. Column n of n-tile q is channel 8 (n / 2) + 2 q + n % 2, so that a thread
 * ends with eight neighbouring channels.
 *
 * Gradient: rows are taps (the 28th is constant 1: the bias), columns are channels (n of n-tile q
 * is 4 n + q), terms are 4 pooled pixels x 2 columns; an entry is the pooled gradient where the
 * code names that place, else 0. A grid that stays makes one sum per block; a second kernel adds
 * them in order. */
#include "kernels/cuda/conv_pool_tiles.h"
#include "kernels/cuda/tf32.h"

#ifdef SN_CUDA_EMULATED

bool sn_conv_pool_mma_takes(const sn_gpu *g, const sn_conv_pool *q) {
    (void)g, (void)q;
    return false;
}
void sn_conv_pool_mma(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    (void)c, (void)q, (void)o;
}
size_t sn_conv_pool_mma_dw_bytes(const sn_gpu *g, const sn_conv_pool *q) {
    (void)g, (void)q;
    return 0;
}
void sn_conv_pool_mma_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                         void *scratch) {
    (void)c, (void)q, (void)o, (void)scratch;
}

#else

bool sn_conv_pool_mma_takes(const sn_gpu *g, const sn_conv_pool *q) {
    const sn_conv *v = &q->v;
    const sn_pool *p = &q->p;
    bool takes = !sn_gpu_is_exact(g) && v->groups == 1 && v->C == 3 && v->kh == 3 && v->kw == 3 &&
                 v->O % CHANNELS == 0 && !v->line && v->N * p->oh * p->ow > 0;
    for (int i = 0; i < 2; i++)
        takes = takes && v->stride[i] == 1 && v->dilation[i] == 1 && p->kernel[i] == 2 &&
                p->stride[i] == 2 && p->pad[2 * i] == 0;
    /* no window reaches over the edge of the convolution's result */
    return takes && 2 * p->oh <= v->oh && 2 * p->ow <= v->ow;
}

/* --- pieces ---------------------------------------------------------------------------------- */
typedef pool_job<float> job;

static __device__ __forceinline__ void multiply4(float d[4], uint32_t a0, uint32_t a1,
                                                 uint32_t b0) {
    asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

/* The pixels of x under a tile, zeros outside the image; AHEAD loads on their way. */
template <int AHEAD> static __device__ void fetch(const job &o, const corner &at, uint32_t *to) {
    const int row0 = 2 * at.i - o.top, first = 3 * (2 * at.j - o.left), line = 3 * o.W;
    const float *image = o.x + at.n * o.H * line;
    if (o.wide_reads) {
#pragma unroll AHEAD
        for (int e = (int)threadIdx.x; e < HIGH * (PITCH / 4); e += THREADS) {
            const int r = e / (PITCH / 4), q = e % (PITCH / 4) * 4, row = row0 + r,
                      at_x = first + q;
            float4 v = make_float4(0, 0, 0, 0);
            if (row >= 0 && row < o.H && at_x < line) /* lines end with a whole float4 */
                v = *(const float4 *)(image + (int64_t)row * line + at_x);
            *(uint4 *)(to + r * PITCH + q) =
                make_uint4(sn_tf32(v.x), sn_tf32(v.y), sn_tf32(v.z), sn_tf32(v.w));
        }
        return;
    }
    for (int e = (int)threadIdx.x; e < HIGH * PITCH; e += THREADS) {
        const int r = e / PITCH, q = e % PITCH, row = row0 + r, at_x = first + q;
        const bool in = row >= 0 && row < o.H && at_x >= 0 && at_x < line;
        to[e] = in ? sn_tf32(image[(int64_t)row * line + at_x]) : 0u;
    }
}

/* --- forward --------------------------------------------------------------------------------- */
/* Fragments of the filters of a thread's columns: three k8 and a k4 for each n-tile. */
typedef struct {
    uint32_t low[4][3], high[4][3], last[4];
} filters;

static __device__ void load_filters(const job &o, int first, filters *f) {
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float *w = o.w.data + first + 8 * (g / 2) + 2 * q + g % 2;
#pragma unroll
        for (int ky = 0; ky < 3; ky++) {
            f->low[q][ky] = sn_tf32(w[(9 * ky + t) * o.O]);
            f->high[q][ky] = sn_tf32(w[(9 * ky + t + 4) * o.O]);
        }
        f->last[q] = t < 3 ? sn_tf32(w[(9 * t + 8) * o.O]) : 0u;
    }
}

/* What a line of x gives: taps t and t + 4 of the even and of the odd column. */
typedef struct {
    uint32_t a[4];
} taps;

static __device__ __forceinline__ taps load_taps(const uint32_t *line, int t) {
    taps r;
    r.a[0] = line[t];
    r.a[1] = line[t + 3];
    r.a[2] = line[t + 4];
    r.a[3] = line[t + 7];
    return r;
}

/* One line of the convolution from three lines of x: sum[n-tile]. */
static __device__ __forceinline__ void convolve(const filters &f, const taps &x0, const taps &x1,
                                                const taps &x2, uint32_t even, uint32_t odd,
                                                float sum[4][4]) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        sn_tf32_multiply(sum[q], x0.a[0], x0.a[1], x0.a[2], x0.a[3], f.low[q][0], f.high[q][0]);
        sn_tf32_multiply(sum[q], x1.a[0], x1.a[1], x1.a[2], x1.a[3], f.low[q][1], f.high[q][1]);
        sn_tf32_multiply(sum[q], x2.a[0], x2.a[1], x2.a[2], x2.a[3], f.low[q][2], f.high[q][2]);
        multiply4(sum[q], even, odd, f.last[q]);
    }
}

static __device__ __forceinline__ float larger(float a, float b) {
    float m;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
    return m;
}

/* The window of one channel; bits: its column, row and whether it is alive, at bit e. */
static __device__ __forceinline__ float pool(float v0, float v1, float v2, float v3, bool relu,
                                             int e, uint32_t bits[3]) {
    const float best = larger(larger(v0, v1), larger(v2, v3));
    const bool up = v0 == best || v1 == best, left = v0 == best || (!(v1 == best) && v2 == best);
    const bool alive = !relu || best > 0.0f;
    bits[0] |= (uint32_t)(alive && !left) << e;
    bits[1] |= (uint32_t)(alive && !up) << e;
    bits[2] |= (uint32_t)alive << e;
    return relu && best < 0.0f ? 0.0f : best;
}

/* Eight channels of one pooled pixel from two lines' sums: 0, 1 the even column, 2, 3 the odd.
 * Gives their codes, a byte for each plane. */
static __device__ uint32_t store_pixel(const job &o, int64_t pixel, int channel, bool there,
                                       const float up[4][4], const float down[4][4]) {
    float y[8];
    uint32_t bits[3] = {0, 0, 0};
#pragma unroll
    for (int e = 0; e < 8; e++) {
        const int q = e / 2, s = e % 2;
        y[e] = pool(up[q][s], up[q][s + 2], down[q][s], down[q][s + 2], o.relu, e, bits);
    }
    if (there) {
        float4 *to = (float4 *)(o.y + pixel * o.O + channel);
        to[0] = make_float4(y[0], y[1], y[2], y[3]);
        to[1] = make_float4(y[4], y[5], y[6], y[7]);
    }
    return bits[0] | bits[1] << 8 | bits[2] << 16;
}

static __global__ void __launch_bounds__(THREADS, 4) pool_tiles(const __grid_constant__ job o) {
    __shared__ __align__(16) uint32_t x[HIGH * PITCH];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4,
              t = lane % 4;
    const int groups = o.O / CHANNELS, first = (int)(blockIdx.x % (unsigned)groups) * CHANNELS;
    const corner at = corner_of(o, blockIdx.x / (unsigned)groups);
    filters f;
    float bias[8];
    load_filters(o, first, &f);
#pragma unroll
    for (int e = 0; e < 8; e++)
        bias[e] = o.bias.data ? o.bias[first + 8 * t + e] : 0.0f;
    fetch<4>(o, at, x);
    __syncthreads();
    const uint32_t *column = x + 6 * (8 * warp + g);
    taps x0 = load_taps(column, t), x1 = load_taps(column + PITCH, t);
    const int lines = t < 3 ? t : 0; /* of the k4: whose fourth filter is zero */
#pragma unroll 2
    for (int r = 0; r < ROWS; r++) {
        const uint32_t *line = column + 2 * r * PITCH, *eighth = line + lines * PITCH + 8;
        const taps x2 = load_taps(line + 2 * PITCH, t), x3 = load_taps(line + 3 * PITCH, t);
        float up[4][4], down[4][4];
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                up[q][e] = down[q][e] = bias[2 * q + e % 2];
        convolve(f, x0, x1, x2, eighth[0], eighth[3], up);
        convolve(f, x1, x2, x3, eighth[PITCH], eighth[PITCH + 3], down);
        const int i = at.i + r, j = at.j + 8 * warp + g;
        const int64_t pixel = (at.n * o.oh + i) * o.ow + j;
        const bool there = i < o.oh && j < o.ow;
        const uint32_t bits = store_pixel(o, pixel, first + 8 * t, there, up, down);
        if (o.code)
            store_codes(o, pixel, first, there, bits);
        x0 = x2;
        x1 = x3;
    }
}

void sn_conv_pool_mma(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    const job k = job_of<float>(q, o);
    SN_LAUNCH(pool_tiles, (unsigned)(k.tiles * (k.O / CHANNELS)), THREADS, 0, c->stream, k);
}

/* --- the weights' gradient ------------------------------------------------------------------- */
/* Offsets of a thread's taps in the tile; the last may be none: then it is `instead`. */
typedef struct {
    int at[4];
    bool there;
    uint32_t instead;
} rows;

static __device__ rows rows_of(int g) {
    rows r;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int tap = g + 8 * e;
        r.at[e] = tap < TAPS - 1 ? tap / 9 * PITCH + tap % 9 : 0;
    }
    r.there = g + 24 < TAPS - 1;
    r.instead = g + 24 == TAPS - 1 ? __float_as_uint(1.0f) : 0u;
    return r;
}

/* d where bit q of the mask is set, else 0. */
static __device__ __forceinline__ uint32_t where(uint32_t mask, int q, uint32_t d) {
    return (mask & 1u << q) != 0 ? d : 0u;
}

/* Four pooled pixels from column `x` of their first line on; d and the codes' planes are of the
 * thread's pixel and channels. */
static __device__ __forceinline__ void add_pixels(const uint32_t *x, const rows &r,
                                                  const uint32_t d[4], const uint32_t plane[3],
                                                  float sum[2][4][4]) {
#pragma unroll
    for (int line = 0; line < 2; line++) {
        const uint32_t here = plane[2] & (line ? plane[1] : ~plane[1]), even = here & ~plane[0],
                       odd = here & plane[0];
        uint32_t a[4][2]; /* taps; even and odd column */
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                const uint32_t v = x[line * PITCH + r.at[e] + 3 * s];
                a[e][s] = e < 3 || r.there ? v : r.instead;
            }
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const uint32_t b0 = where(even, q, d[q]), b1 = where(odd, q, d[q]);
            sn_tf32_multiply(sum[0][q], a[0][0], a[1][0], a[0][1], a[1][1], b0, b1);
            sn_tf32_multiply(sum[1][q], a[2][0], a[3][0], a[2][1], a[3][1], b0, b1);
        }
    }
}

/* A thread's pixel and channels: the gradient and the codes' planes, shifted to its channels. */
typedef struct {
    float4 d;
    uint32_t plane[3];
} pooled;

static __device__ __forceinline__ pooled load_pooled(const float *d, const uint8_t *code, int plane,
                                                     bool there) {
    const int shift = (int)threadIdx.x % 32 / 4 * 4;
    pooled p = {make_float4(0, 0, 0, 0), {0, 0, 0}};
    if (!there)
        return p;
    p.d = *(const float4 *)d;
#pragma unroll
    for (int e = 0; e < 3; e++)
        p.plane[e] = *(const uint32_t *)(code + e * plane) >> shift;
    return p;
}

/* The rows of a tile; the next one's values are on their way. A thread has pixels j and j + 4. */
static __device__ void add_tile(const job &o, const corner &at, int first, const uint32_t *x,
                                const rows &r, float sum[2][4][4]) {
    const int j = (int)threadIdx.x / 32 * 8 + (int)threadIdx.x % 4, g = (int)threadIdx.x % 32 / 4,
              plane = o.O / 8;
    const int64_t pixel = (at.n * o.oh + at.i) * o.ow + at.j + j;
    const float *d = o.dy + pixel * o.O + first + 4 * g;
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
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float4 v = now[half].d;
            const uint32_t values[4] = {sn_tf32(v.x), sn_tf32(v.y), sn_tf32(v.z), sn_tf32(v.w)};
            add_pixels(column + 24 * half, r, values, now[half].plane, sum);
        }
    }
}

static __global__ void __launch_bounds__(THREADS, RESIDENT)
    sum_tiles(const __grid_constant__ job o) {
    __shared__ __align__(16) uint32_t x[HIGH * PITCH];
    const int groups = o.O / CHANNELS, first = (int)(blockIdx.x % (unsigned)groups) * CHANNELS;
    const rows r = rows_of((int)threadIdx.x % 32 / 4);
    float sum[2][4][4] = {};
    for (int64_t tile = blockIdx.x / (unsigned)groups; tile < o.tiles;
         tile += gridDim.x / (unsigned)groups) {
        const corner at = corner_of(o, tile);
        __syncthreads();
        fetch<7>(o, at, x);
        __syncthreads();
        add_tile(o, at, first, x, r, sum);
    }
    store_sums(o, first, sum, (float *)x);
}

size_t sn_conv_pool_mma_dw_bytes(const sn_gpu *g, const sn_conv_pool *q) {
    return (size_t)(count_blocks(g, q) * TAPS * q->v.O) * sizeof(float);
}

void sn_conv_pool_mma_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                         void *scratch) {
    const int64_t blocks = count_blocks(c->gpu, q);
    job k = job_of<float>(q, o);
    k.partial = (float *)scratch;
    SN_LAUNCH(sum_tiles, (unsigned)(blocks * (k.O / CHANNELS)), THREADS, 0, c->stream, k);
    add_sums(c, q, o, k);
}

#endif
