/* conv_patches.cu: the weight gradient of a convolution of few channels as one product: of the
 * patches of x under every output pixel, laid out as rows of taps, and dy. No deterministic engine
 * of cuDNN does it well. Images go in chunks, as many as the cap has room for:
 *
 *     patches[pixel][tap] = x under that tap;  dw[tap][o] = sum over pixels of patches^T dy */
#include "kernels/cuda/conv.h"
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

/* A block lays out the patches of a line of output pixels; where a tap lies is worked out once. */
enum { THREADS = 256, MOST_TAPS = 256 };

typedef struct {
    sn_conv v;
    int taps, pitch;
    const float *x;
    float *out;
    int64_t lines;
} layout;

static __global__ void __launch_bounds__(THREADS, 2) lay_out(const __grid_constant__ layout k) {
    __shared__ int down[MOST_TAPS], across[MOST_TAPS], channel[MOST_TAPS];
    const sn_conv &v = k.v;
    const int width = (int)v.kw * (int)v.C, C = (int)v.C;
    for (int tap = (int)threadIdx.x; tap < k.taps; tap += THREADS) {
        down[tap] = tap / width * (int)v.dilation[0] - (int)v.pad[0];
        across[tap] = tap % width / C * (int)v.dilation[1] - (int)v.pad[2];
        channel[tap] = tap % C;
    }
    __syncthreads();
    for (int64_t line = blockIdx.x; line < k.lines; line += gridDim.x) {
        const int64_t n = line / v.oh, first = (line - n * v.oh) * v.stride[0];
        const float *image = k.x + n * v.H * v.W * v.C;
        float *out = k.out + line * v.ow * k.pitch;
        for (int e = (int)threadIdx.x; e < (int)v.ow * k.pitch; e += THREADS) {
            const int j = e / k.pitch, tap = e - j * k.pitch;
            float value = 0;
            if (tap < k.taps) {
                const int64_t row = first + down[tap];
                const int col = j * (int)v.stride[1] + across[tap];
                if (row >= 0 && row < v.H && col >= 0 && col < v.W)
                    value = image[(row * v.W + col) * v.C + channel[tap]];
            }
            out[e] = value;
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
