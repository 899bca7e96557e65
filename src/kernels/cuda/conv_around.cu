/* conv_around.cu: what own kernels do around an engine's convolution: filters turned to the order
 * it wants and back, what it left of bias and activation, and the bias gradient. */
#include "kernels/cuda/act.h"
#include "kernels/cuda/conv.h"
#include "kernels/cuda/own.h"

/* --- filters --------------------------------------------------------------------------------- */
/* HWIO to KRSC: the matrix [places and channels][O] is turned, tile by tile. */
enum { TILE = 32, TILE_ROWS = 8 };

/* Row `e` (place and channel) of an engine's filter; -1 where it is not the filter's own. */
static __device__ int64_t row_in_filter(const sn_turned &t, int64_t e) {
    const int64_t pq = e / t.C, c = e % t.C;
    const int64_t p = pq / t.wide - t.top, q = pq % t.wide - t.left;
    return p < 0 || p >= t.kh || q < 0 || q >= t.kw ? -1 : (p * t.kw + q) * t.C + c;
}

static __global__ void turn(const __grid_constant__ sn_turned t, const float *w, const float *scale,
                            float *out) {
    __shared__ float tile[TILE][TILE + 1];
    const int64_t rows = t.high * t.wide * t.C, across = (t.O + TILE - 1) / TILE;
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int64_t i = sn_thread(); i < t.O; i += sn_all_threads())
        out[rows * t.O + i] = 0.0f;
    for (int64_t at = blockIdx.x; at < (rows + TILE - 1) / TILE * across; at += gridDim.x) {
        const int64_t e0 = at / across * TILE, o0 = at % across * TILE;
        for (int r = y; r < TILE; r += TILE_ROWS) {
            const int64_t from = e0 + r < rows ? row_in_filter(t, e0 + r) : -1;
            float v = from >= 0 && o0 + x < t.O ? w[from * t.O + o0 + x] : 0.0f;
            if (scale && o0 + x < t.O)
                v *= scale[o0 + x];
            tile[r][x] = v;
        }
        __syncthreads();
        for (int r = y; r < TILE; r += TILE_ROWS)
            if (o0 + r < t.O && e0 + x < rows)
                out[(o0 + r) * rows + e0 + x] = tile[x][r];
        __syncthreads();
    }
}

/* Back, without what was not the filter's own. */
static __global__ void turn_back(const __grid_constant__ sn_turned t, const float *from, bool add,
                                 float *w) {
    __shared__ float tile[TILE][TILE + 1];
    const int64_t rows = t.high * t.wide * t.C, across = (t.O + TILE - 1) / TILE;
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int64_t at = blockIdx.x; at < (rows + TILE - 1) / TILE * across; at += gridDim.x) {
        const int64_t e0 = at / across * TILE, o0 = at % across * TILE;
        for (int r = y; r < TILE; r += TILE_ROWS)
            tile[r][x] = o0 + r < t.O && e0 + x < rows ? from[(o0 + r) * rows + e0 + x] : 0.0f;
        __syncthreads();
        for (int r = y; r < TILE; r += TILE_ROWS) {
            const int64_t to = e0 + r < rows ? row_in_filter(t, e0 + r) : -1;
            if (to >= 0 && o0 + x < t.O) {
                float *e = w + to * t.O + o0 + x;
                *e = add ? *e + tile[x][r] : tile[x][r];
            }
        }
        __syncthreads();
    }
}

static unsigned tiles_of(const sn_turned *t) {
    return sn_blocks(sn_cuda_ceil(t->high * t->wide * t->C, TILE) * sn_cuda_ceil(t->O, TILE), 1);
}

void sn_filter_turn(const sn_cuda_call *c, const sn_turned *t, const float *w, const float *scale,
                    float *out) {
    if (t->high * t->wide * t->C * t->O > 0)
        SN_LAUNCH(turn, tiles_of(t), TILE * TILE_ROWS, 0, c->stream, *t, w, scale, out);
}

void sn_filter_return(const sn_cuda_call *c, const sn_turned *t, const float *from, bool add,
                      float *w) {
    if (t->high * t->wide * t->C * t->O > 0)
        SN_LAUNCH(turn_back, tiles_of(t), TILE * TILE_ROWS, 0, c->stream, *t, from, add, w);
}

/* --- bias and activation --------------------------------------------------------------------- */
struct finish_one {
    float *y;
    sn_divisor channels;
    const float *scale, *bias;
    int act;

    __device__ void operator()(int64_t i) const {
        const int64_t o = i - sn_div(i, channels) * channels.d;
        float v = y[i];
        if (scale)
            v *= scale[o];
        if (bias)
            v += bias[o];
        y[i] = sn_act_of(act, v);
    }
};

/* Four channels at once. */
struct finish_four {
    float4 *y;
    sn_divisor quarters; /* of the channels */
    const float *scale, *bias;
    int act;

    __device__ void operator()(int64_t i) const {
        const int64_t o = 4 * (i - sn_div(i, quarters) * quarters.d);
        float4 v = y[i];
        if (scale) {
            v.x *= scale[o];
            v.y *= scale[o + 1];
            v.z *= scale[o + 2];
            v.w *= scale[o + 3];
        }
        if (bias) {
            v.x += bias[o];
            v.y += bias[o + 1];
            v.z += bias[o + 2];
            v.w += bias[o + 3];
        }
        y[i] = make_float4(sn_act_of(act, v.x), sn_act_of(act, v.y), sn_act_of(act, v.z),
                           sn_act_of(act, v.w));
    }
};

void sn_conv_finish(const sn_cuda_call *c, float *y, int64_t pixels, int64_t channels,
                    const float *scale, const float *bias, int act) {
    if (!scale && !bias && act == SN_ACT_none)
        return;
    const finish_one one = {y, sn_divisor_of(channels), scale, bias, act};
    const finish_four four = {(float4 *)y, sn_divisor_of(channels / 4), scale, bias, act};
    if (channels % 4 == 0 && sn_aligned(y))
        sn_each(c, pixels * channels / 4, four);
    else
        sn_each(c, pixels * channels, one);
}

/* --- column sums ----------------------------------------------------------------------------- */
/* A block sums WIDE columns over one chunk of rows: lanes are columns, warps take turns with rows.
 * A warp then adds the chunks of a column. */
enum { WIDE = 32, WARPS = 8, MOST_CHUNKS = 512, LEAST_ROWS = 64 };

static int64_t chunk_rows(int64_t rows, int64_t columns) {
    const int64_t across = sn_cuda_ceil(columns, WIDE);
    int64_t chunks = 4 * MOST_CHUNKS / (across > 0 ? across : 1);
    chunks = chunks < 16 ? 16 : chunks > MOST_CHUNKS ? (int64_t)MOST_CHUNKS : chunks;
    const int64_t size = sn_cuda_ceil(rows, chunks);
    return size < LEAST_ROWS ? (int64_t)LEAST_ROWS : size;
}

size_t sn_column_sums_bytes(int64_t rows, int64_t columns) {
    const int64_t chunks = rows > 0 ? sn_cuda_ceil(rows, chunk_rows(rows, columns)) : 1;
    return (size_t)(chunks * columns) * sizeof(float);
}

static __global__ void __launch_bounds__(WIDE *WARPS)
    sum_columns(const float *x, int64_t rows, int64_t columns, int64_t size, float *partial) {
    __shared__ float sums[WARPS][WIDE];
    const int64_t across = (columns + WIDE - 1) / WIDE, chunks = (rows + size - 1) / size;
    const int lane = (int)threadIdx.x % WIDE, warp = (int)threadIdx.x / WIDE;
    for (int64_t at = blockIdx.x; at < chunks * across; at += gridDim.x) {
        const int64_t chunk = at / across, column = at % across * WIDE + lane;
        const int64_t first = chunk * size, end = first + size < rows ? first + size : rows;
        float sum = 0;
        if (column < columns) {
#pragma unroll 8
            for (int64_t i = first + warp; i < end; i += WARPS)
                sum += x[i * columns + column];
        }
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && column < columns) {
            sum = 0;
            for (int w = 0; w < WARPS; w++)
                sum += sums[w][lane];
            partial[chunk * columns + column] = sum;
        }
        __syncthreads();
    }
}

static __global__ void add_rows(const float *partial, int64_t chunks, int64_t columns, bool add,
                                float *out) {
    const int lane = (int)threadIdx.x % 32;
    for (int64_t at = sn_thread() / 32; at < columns; at += sn_all_threads() / 32) {
        double sum = 0;
        for (int64_t i = lane; i < chunks; i += 32)
            sum += (double)partial[i * columns + at];
        sum = sn_warp_sum(sum);
        if (lane == 0)
            out[at] = add ? out[at] + (float)sum : (float)sum;
    }
}

void sn_column_sums(const sn_cuda_call *c, const float *x, int64_t rows, int64_t columns, bool add,
                    float *out, void *scratch) {
    const int64_t size = chunk_rows(rows, columns), chunks = sn_cuda_ceil(rows, size);
    if (columns == 0)
        return;
    if (chunks > 0)
        SN_LAUNCH(sum_columns, sn_blocks(chunks * sn_cuda_ceil(columns, WIDE), 1), WIDE * WARPS, 0,
                  c->stream, x, rows, columns, size, (float *)scratch);
    SN_LAUNCH(add_rows, sn_blocks(columns, 4), 128, 0, c->stream, (const float *)scratch, chunks,
              columns, add, out);
}
