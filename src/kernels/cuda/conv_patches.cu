/* conv_patches.cu: the weight gradient of a convolution of few channels as one product: of the
 * patches of x under every output pixel, laid out as rows of taps, and dy. No deterministic engine
 * of cuDNN does it well. Images go in chunks, as many as the cap has room for:
 *
 *     patches[pixel][tap] = x under that tap;  dw[tap][o] = sum over pixels of patches^T dy */
#include "kernels/cuda/cuda_conv.h"
#include "kernels/cuda/own.h"

static int64_t taps_of(const sn_conv *v) {
    return v->kh * v->kw * v->C;
}

/* Floats between rows: whole float4s. */
static int64_t pitch_of(const sn_conv *v) {
    return (taps_of(v) + 3) / 4 * 4;
}

static size_t patches_bytes(const sn_conv *v, int64_t images) {
    return (size_t)(images * v->oh * v->ow * pitch_of(v)) * sizeof(float);
}

/* Images of a chunk: the most that divide them all evenly and fit; 0: none does. */
static int64_t chunk_images(const sn_gpu *g, const sn_conv *v) {
    int64_t best = 0;
    for (int64_t n = 1; n <= v->N; n++)
        if (v->N % n == 0 && patches_bytes(v, n) <= sn_gpu_layout_cap(g))
            best = n;
    return best;
}

static sn_blas_product product_of(const sn_conv *v, int64_t images) {
    sn_blas_product p = {};
    p.batch = 1;
    p.M = taps_of(v);
    p.N = v->O;
    p.K = images * v->oh * v->ow;
    p.trans_a = true;
    p.a_pitch = pitch_of(v);
    p.b_pitch = p.c_pitch = v->O;
    return p;
}

bool sn_patches_dw_takes(const sn_gpu *g, const sn_conv *v) {
    enum { MOST_CHANNELS = 4, TAPS = 252, LEAST_PIXELS = 1 << 10 };
    return v->groups == 1 && v->C <= MOST_CHANNELS && taps_of(v) <= TAPS && v->O % 4 == 0 &&
           v->oh * v->ow >= LEAST_PIXELS && chunk_images(g, v) > 0;
}

size_t sn_patches_dw_bytes(const sn_gpu *g, const sn_conv *v) {
    const int64_t images = chunk_images(g, v);
    const sn_blas_product p = product_of(v, images);
    sn_choice choice;
    if (sn_blas_choose(g, &p, &choice, NULL) != SNUG_OK)
        return 0;
    return (patches_bytes(v, images) + 255) / 256 * 256 + choice.workspace_bytes;
}

snug_status sn_patches_dw_make(sn_gpu *g, const sn_conv *v, sn_blas_plan **out, snug_error *err) {
    const sn_blas_product p = product_of(v, chunk_images(g, v));
    return sn_blas_make(g, &p, NULL, out, err);
}

/* A block lays out the patches of a line of output pixels, a warp those of one pixel at a time. A
 * lane has the same taps of all of them: where they lie is worked out once. */
enum { THREADS = 256, LANES = 32, MOST_TAPS = 256, OF_LANE = MOST_TAPS / LANES };

typedef struct {
    sn_conv v;
    int taps, pitch;
    const float *x;
    float *out;
    int64_t lines;
} layout;

/* Of a lane's tap: row and column of x beside the patch's own, and where that lies. */
typedef struct {
    int down, across, at;
} lane_tap;

static __device__ __forceinline__ lane_tap tap_of(const sn_conv &v, int tap) {
    const int width = (int)v.kw * (int)v.C, C = (int)v.C;
    lane_tap t;
    t.down = tap / width * (int)v.dilation[0] - (int)v.pad[0];
    t.across = tap % width / C * (int)v.dilation[1] - (int)v.pad[2];
    t.at = (t.down * (int)v.W + t.across) * C + tap % C;
    return t;
}

static __global__ void __launch_bounds__(THREADS, 2) lay_out(const __grid_constant__ layout k) {
    const sn_conv &v = k.v;
    const int lane = (int)threadIdx.x % LANES, W = (int)v.W, ow = (int)v.ow,
              stride = (int)v.stride[1];
    lane_tap taps[OF_LANE];
#pragma unroll
    for (int t = 0; t < OF_LANE; t++)
        taps[t] = tap_of(v, lane + LANES * t);
    for (int64_t line = blockIdx.x; line < k.lines; line += gridDim.x) {
        const int64_t n = line / v.oh, first = (line - n * v.oh) * v.stride[0];
        const float *row = k.x + (n * v.H + first) * v.W * v.C;
        for (int j = (int)threadIdx.x / LANES; j < ow; j += THREADS / LANES) {
            float *out = k.out + (line * ow + j) * k.pitch;
            float value[OF_LANE];
#pragma unroll
            for (int t = 0; t < OF_LANE; t++) {
                const int64_t down = first + taps[t].down;
                const int across = j * stride + taps[t].across;
                const bool in = lane + LANES * t < k.taps && down >= 0 && down < v.H &&
                                across >= 0 && across < W;
                value[t] = in ? row[taps[t].at + j * stride * (int)v.C] : 0.0f;
            }
#pragma unroll
            for (int t = 0; t < OF_LANE; t++)
                if (lane + LANES * t < k.pitch)
                    out[lane + LANES * t] = value[t];
        }
    }
}

snug_status sn_patches_dw_run(const sn_cuda_call *c, const sn_blas_plan *plan, const sn_conv *v,
                              const sn_cuda_conv *o, void *scratch, snug_error *err) {
    const int64_t images = chunk_images(c->gpu, v);
    void *rest = (char *)scratch + (patches_bytes(v, images) + 255) / 256 * 256;
    for (int64_t n = 0; n < v->N; n += images) {
        const layout k = {*v,
                          (int)taps_of(v),
                          (int)pitch_of(v),
                          (const float *)o->x + n * v->H * v->W * v->C,
                          (float *)scratch,
                          images * v->oh};
        const sn_blas_operands b = {(const float *)scratch,
                                    (const float *)o->dy + n * v->oh * v->ow * v->O,
                                    NULL,
                                    (float *)o->dw,
                                    o->accumulate || n > 0,
                                    rest};
        SN_LAUNCH(lay_out, sn_blocks(k.lines, 1), THREADS, 0, c->stream, k);
        SNUG_TRY(sn_blas_run(c->gpu, plan, &b, c->stream, err));
    }
    return SNUG_OK;
}
