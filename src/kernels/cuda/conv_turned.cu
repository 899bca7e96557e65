/* conv_turned.cu: the weight gradient of a 3 x 3 convolution with many channels as three plain
 * products. Channels last make it a product of a turned matrix, for which TF32 has only slow
 * kernels; so x is turned first, into three copies that are moved by one column each:
 *
 *     turned[s][c][W + pixel] = x[image, i, j + s - 1, c], zeros outside the row and at both ends
 *     dw[r][s][c][o] = sum over pixels of turned[s][c][r W + pixel] dy[pixel][o]
 *
 * A row that the filter's row r reads beyond an image's edge belongs to its neighbour: before r = 0
 * the last row of every image is cleared in the copies, before r = 2 the first one is instead.
 * Images go in chunks, as many as the cap has room for. */
#include "kernels/cuda/cuda_conv.h"
#include "kernels/cuda/own.h"

#include <string.h>

enum { TILE = 32, TILE_ROWS = 8 };

struct sn_turned_dw {
    sn_blas_plan *product;
};

/* Floats of a row of the copies. */
static int64_t pitch_of(const sn_conv *v, int64_t images) {
    return images * v->H * v->W + 2 * v->W;
}

static size_t copies_bytes(const sn_conv *v, int64_t images) {
    return (size_t)(3 * v->C * pitch_of(v, images)) * sizeof(float);
}

/* Images of a chunk: the most that divide them all evenly and fit; 0: none does. */
static int64_t chunk_images(const sn_gpu *g, const sn_conv *v) {
    int64_t best = 0;
    for (int64_t n = 1; n <= v->N; n++)
        if (v->N % n == 0 && copies_bytes(v, n) <= sn_gpu_layout_cap(g))
            best = n;
    return best;
}

static sn_blas_product product_of(const sn_conv *v, int64_t images) {
    sn_blas_product p = {};
    p.batch = 1;
    p.M = 3 * v->C;
    p.N = v->O;
    p.K = images * v->H * v->W;
    p.a_pitch = pitch_of(v, images);
    p.b_pitch = p.c_pitch = v->O;
    return p;
}

/* Where a chunk's products are large enough to be quicker than an engine (measured): by their
 * result, or by their terms. */
bool sn_turned_dw_takes(const sn_gpu *g, const sn_conv *v) {
    enum { LEAST = 256, LEAST_BOTH = 256 * 512, LARGE = 512 * 1024, LONG = 1 << 16 };
    bool plain = v->groups == 1 && v->kh == 3 && v->kw == 3 && v->oh == v->H && v->ow == v->W &&
                 v->W % 4 == 0 && v->O % 4 == 0;
    for (int i = 0; i < 2; i++)
        plain = plain && v->stride[i] == 1 && v->dilation[i] == 1;
    for (int i = 0; i < 4; i++)
        plain = plain && v->pad[i] == 1;
    return plain && !sn_gpu_is_exact(g) && v->C >= LEAST && v->O >= LEAST &&
           v->C * v->O >= LEAST_BOTH && v->N > 0 &&
           (v->C * v->O >= LARGE || chunk_images(g, v) * v->H * v->W >= LONG);
}

size_t sn_turned_dw_bytes(const sn_gpu *g, const sn_conv *v) {
    const int64_t images = chunk_images(g, v);
    const sn_blas_product p = product_of(v, images);
    sn_choice choice;
    if (images == 0 || sn_blas_choose(g, &p, &choice, NULL) != SNUG_OK)
        return 0;
    return (copies_bytes(v, images) + 255) / 256 * 256 + choice.workspace_bytes;
}

snug_status sn_turned_dw_make(sn_gpu *g, const sn_conv *v, sn_turned_dw **out, snug_error *err) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    const sn_blas_product p = product_of(v, chunk_images(g, v));
    sn_turned_dw *plan = (sn_turned_dw *)host->alloc(host->ctx, sizeof *plan);
    if (!plan)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for a convolution's plan");
    const snug_status status = sn_blas_make(g, &p, NULL, &plan->product, err);
    if (status == SNUG_OK)
        *out = plan;
    else
        host->free(host->ctx, plan, sizeof *plan);
    return status;
}

void sn_turned_dw_drop(sn_gpu *g, sn_turned_dw *plan) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    if (!plan)
        return;
    sn_blas_drop(g, plan->product);
    host->free(host->ctx, plan, sizeof *plan);
}

/* --- copies ---------------------------------------------------------------------------------- */
/* Lines first, first + step, ... (image and row; -1 and the one behind the last are zeros). */
typedef struct {
    int64_t first, step, n;
    bool clear; /* they become zeros */
} lines;

typedef struct {
    const float *x;
    float *out;
    int64_t n_lines, W, C, pitch; /* lines there are */
} copies;

static __global__ void __launch_bounds__(TILE *TILE_ROWS)
    turn_lines(const __grid_constant__ copies k, lines s) {
    __shared__ float tile[TILE + 2][TILE + 1]; /* [column, from one before on][channel] */
    const int64_t wide = (k.W + TILE - 1) / TILE, deep = (k.C + TILE - 1) / TILE;
    const int a = (int)threadIdx.x % TILE, b = (int)threadIdx.x / TILE;
    for (int64_t at = blockIdx.x; at < s.n * wide * deep; at += gridDim.x) {
        const int64_t line = s.first + at / (wide * deep) * s.step;
        const int64_t j0 = at / deep % wide * TILE, c0 = at % deep * TILE;
        const bool zero = s.clear || line < 0 || line >= k.n_lines;
        for (int r = b; r < TILE + 2; r += TILE_ROWS) {
            const int64_t j = j0 + r - 1;
            tile[r][a] = !zero && j >= 0 && j < k.W && c0 + a < k.C
                             ? k.x[(line * k.W + j) * k.C + c0 + a]
                             : 0.0f;
        }
        __syncthreads();
        for (int r = b; r < TILE; r += TILE_ROWS)
            if (c0 + r < k.C && j0 + a < k.W)
                for (int t = 0; t < 3; t++)
                    k.out[(t * k.C + c0 + r) * k.pitch + (line + 1) * k.W + j0 + a] =
                        tile[a + t][r];
        __syncthreads();
    }
}

static void turn(const sn_cuda_call *c, const copies *k, lines s) {
    const int64_t tiles = s.n * sn_cuda_ceil(k->W, TILE) * sn_cuda_ceil(k->C, TILE);
    SN_LAUNCH(turn_lines, sn_blocks(tiles, 1), TILE * TILE_ROWS, 0, c->stream, *k, s);
}

/* --- a call ---------------------------------------------------------------------------------- */
static snug_status multiply(const sn_cuda_call *c, const sn_turned_dw *plan, const sn_conv *v,
                            const float *a, const float *dy, int r, float *dw, bool add,
                            void *scratch, snug_error *err) {
    const sn_blas_operands o = {a + r * v->W, dy, NULL, dw + r * 3 * v->C * v->O, add, scratch};
    return sn_blas_run(c->gpu, plan->product, &o, c->stream, err);
}

snug_status sn_turned_dw_run(const sn_cuda_call *c, const sn_turned_dw *plan, const sn_conv *v,
                             const sn_cuda_conv *o, void *scratch, snug_error *err) {
    const int64_t images = chunk_images(c->gpu, v);
    float *turned = (float *)scratch, *dw = (float *)o->dw;
    void *rest = (char *)scratch + (copies_bytes(v, images) + 255) / 256 * 256;
    for (int64_t n = 0; n < v->N; n += images) {
        const float *dy = (const float *)o->dy + n * v->H * v->W * v->O;
        const copies k = {(const float *)o->x + n * v->H * v->W * v->C,
                          turned,
                          images * v->H,
                          v->W,
                          v->C,
                          pitch_of(v, images)};
        const bool add = o->accumulate || n > 0;
        const lines all = {-1, 1, images * v->H + 2, false}, top = {0, v->H, images, true};
        lines bottom = {v->H - 1, v->H, images, true};
        turn(c, &k, all);
        SNUG_TRY(multiply(c, plan, v, turned, dy, 1, dw, add, rest, err));
        turn(c, &k, bottom);
        SNUG_TRY(multiply(c, plan, v, turned, dy, 0, dw, add, rest, err));
        bottom.clear = false;
        turn(c, &k, bottom);
        turn(c, &k, top);
        SNUG_TRY(multiply(c, plan, v, turned, dy, 2, dw, add, rest, err));
    }
    return SNUG_OK;
}
