/* conv_around.cu: what own kernels do around an engine's convolution: filters turned to the order
 * it wants and back, what it left of bias and activation, and the bias gradient. What is of halves
 * goes by lines of any type. */
#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/cuda_conv.h"
#include "kernels/cuda/reduce.h"

/* --- filters --------------------------------------------------------------------------------- */
/* HWIO to KRSC: the matrix [places and channels][O] is turned, tile by tile. */
enum { TILE = 32, TILE_ROWS = 8 };

/* What to divide by, on the way. */
typedef struct {
    sn_turned t;
    int64_t rows;
    sn_divisor channels, wide, across; /* tiles */
} turning;

static turning turning_of(const sn_turned *t) {
    const turning n = {*t, t->high * t->wide * t->C, sn_divisor_of(t->C), sn_divisor_of(t->wide),
                       sn_divisor_of(sn_cuda_ceil(t->O, TILE))};
    return n;
}

/* Row `e` (place and channel) of an engine's filter; -1 where it is not the filter's own. */
static __device__ __forceinline__ int64_t row_in_filter(const turning &n, int64_t e) {
    const int64_t pq = sn_div(e, n.channels), c = e - pq * n.t.C;
    const int64_t line = sn_div(pq, n.wide), p = line - n.t.top;
    const int64_t q = pq - line * n.t.wide - n.t.left;
    const bool own = e < n.rows && p >= 0 && p < n.t.kh && q >= 0 && q < n.t.kw;
    return own ? (p * n.t.kw + q) * n.t.C + c : -1;
}

/* What is written behind the filter. */
template <class L> struct behind_filter { L bias, to; /* bias.data NULL: zeros */ };

template <class L>
static __global__ void __launch_bounds__(TILE *TILE_ROWS)
    turn(const __grid_constant__ turning n, L w, L scale, L out, behind_filter<L> behind) {
    __shared__ float tile[TILE][TILE + 1];
    const int64_t O = n.t.O, tiles = ((n.rows + TILE - 1) / TILE) * n.across.d;
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int64_t i = sn_thread(); i < O; i += sn_all_threads())
        behind.to.put(i, behind.bias.data ? behind.bias[i] : 0.0f);
    for (int64_t at = blockIdx.x; at < tiles; at += gridDim.x) {
        const int64_t down = sn_div(at, n.across), e0 = down * TILE;
        const int64_t o0 = (at - down * n.across.d) * TILE;
        const float factor = scale.data && o0 + x < O ? scale[o0 + x] : 1.0f;
#pragma unroll
        for (int r = 0; r < TILE; r += TILE_ROWS) {
            const int64_t from = row_in_filter(n, e0 + y + r);
            tile[y + r][x] = from >= 0 && o0 + x < O ? w[from * O + o0 + x] * factor : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < TILE; r += TILE_ROWS)
            if (o0 + y + r < O && e0 + x < n.rows)
                out.put((o0 + y + r) * n.rows + e0 + x, tile[x][y + r]);
        __syncthreads();
    }
}

/* Back, without what was not the filter's own. */
template <class L>
static __global__ void __launch_bounds__(TILE *TILE_ROWS)
    turn_back(const __grid_constant__ turning n, L from, bool add, L w) {
    __shared__ float tile[TILE][TILE + 1];
    const int64_t O = n.t.O, tiles = ((n.rows + TILE - 1) / TILE) * n.across.d;
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int64_t at = blockIdx.x; at < tiles; at += gridDim.x) {
        const int64_t down = sn_div(at, n.across), e0 = down * TILE;
        const int64_t o0 = (at - down * n.across.d) * TILE;
#pragma unroll
        for (int r = 0; r < TILE; r += TILE_ROWS)
            tile[y + r][x] =
                o0 + y + r < O && e0 + x < n.rows ? from[(o0 + y + r) * n.rows + e0 + x] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < TILE; r += TILE_ROWS) {
            const int64_t to = row_in_filter(n, e0 + y + r);
            if (to >= 0 && o0 + x < O) {
                const int64_t e = to * O + o0 + x;
                w.put(e, add ? w[e] + tile[x][y + r] : tile[x][y + r]);
            }
        }
        __syncthreads();
    }
}

static unsigned tiles_of(const sn_turned *t) {
    return sn_blocks(sn_cuda_ceil(t->high * t->wide * t->C, TILE) * sn_cuda_ceil(t->O, TILE), 1);
}

typedef sn_plain_line<float> floats;

template <class L>
static void turn_by(const sn_cuda_call *c, const sn_turned *t, L w, L scale, L out,
                    const behind_filter<L> &behind) {
    if (t->high * t->wide * t->C * t->O > 0)
        SN_LAUNCH((turn<L>), tiles_of(t), TILE * TILE_ROWS, 0, c->stream, turning_of(t), w, scale,
                  out, behind);
}

template <class L>
static void turn_back_by(const sn_cuda_call *c, const sn_turned *t, L from, bool add, L w) {
    if (t->high * t->wide * t->C * t->O > 0)
        SN_LAUNCH((turn_back<L>), tiles_of(t), TILE * TILE_ROWS, 0, c->stream, turning_of(t), from,
                  add, w);
}

void sn_filter_turn(const sn_cuda_call *c, const sn_turned *t, const float *w, const float *scale,
                    float *out) {
    float *const zeros = out + t->high * t->wide * t->C * t->O;
    turn_by(c, t, floats{(float *)w}, floats{(float *)scale}, floats{out},
            behind_filter<floats>{{NULL}, {zeros}});
}

void sn_filter_turn_to(const sn_cuda_call *c, const sn_turned *t, sn_mixed_line w,
                       sn_mixed_line scale, sn_mixed_line bias, sn_mixed_line out, void *behind) {
    turn_by(c, t, w, scale, out, behind_filter<sn_mixed_line>{bias, {behind, out.dtype}});
}

void sn_filter_return(const sn_cuda_call *c, const sn_turned *t, const float *from, bool add,
                      float *w) {
    turn_back_by(c, t, floats{(float *)from}, add, floats{w});
}

void sn_filter_return_from(const sn_cuda_call *c, const sn_turned *t, sn_mixed_line from, bool add,
                           sn_mixed_line w) {
    turn_back_by(c, t, from, add, w);
}

/* Rows of outputs stay whole: only their order changes. T is one float, or four. */
template <class T> struct filter_reverse {
    const T *w;
    T *out;
    sn_divisor row, places; /* of an input channel's, in Ts */
    int64_t channels;
    __device__ void operator()(int64_t i) const {
        const int64_t line = sn_div(i, row), c = sn_div(line, places);
        const int64_t place = places.d - 1 - (line - c * places.d);
        if (c < channels)
            out[i] = w[(place * channels + c) * row.d + (i - line * row.d)];
        else
            out[i] = T{};
    }
};

template <class T>
static void reverse_by(const sn_cuda_call *c, const sn_turned *t, const float *w, float *out) {
    const int64_t width = sizeof(T) / sizeof(float), places = t->kh * t->kw;
    const int64_t zeros = sn_cuda_ceil(t->C, width);
    sn_each(c, t->C * places * (t->O / width) + zeros,
            filter_reverse<T>{(const T *)w, (T *)out, sn_divisor_of(t->O / width),
                              sn_divisor_of(places), t->C});
}

void sn_filter_reverse(const sn_cuda_call *c, const sn_turned *t, const float *w, float *out) {
    if (t->O % 4 == 0 && t->C % 4 == 0 && sn_aligned(w) && sn_aligned(out))
        reverse_by<float4>(c, t, w, out);
    else
        reverse_by<float>(c, t, w, out);
}

/* Of halves. */
struct filter_reverse_to {
    sn_mixed_line w, out, zeros;
    sn_divisor row, places;
    int64_t channels;
    __device__ void operator()(int64_t i) const {
        const int64_t line = sn_div(i, row), c = sn_div(line, places);
        const int64_t place = places.d - 1 - (line - c * places.d);
        const int64_t count = channels * places.d * row.d;
        if (i < count)
            out.put(i, w[(place * channels + c) * row.d + (i - line * row.d)]);
        else
            zeros.put(i - count, 0.0f);
    }
};

void sn_filter_reverse_to(const sn_cuda_call *c, const sn_turned *t, sn_mixed_line w,
                          sn_mixed_line out, void *behind) {
    const int64_t places = t->kh * t->kw;
    sn_each(c, t->C * places * t->O + t->C,
            filter_reverse_to{
                w, out, {behind, out.dtype}, sn_divisor_of(t->O), sn_divisor_of(places), t->C});
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

/* N neighbouring channels, 1 or 4, of halves. */
template <class M, int N> struct finish_half {
    struct __align__(N * sizeof(M)) pack {
        M v[N];
    };
    pack *y;
    sn_mixed_line bias;
    sn_divisor packs; /* of the channels */
    int act;

    __device__ void operator()(int64_t i) const {
        const int64_t o = N * (i - sn_div(i, packs) * packs.d);
        pack v = y[i];
#pragma unroll
        for (int k = 0; k < N; k++)
            v.v[k] = (M)sn_act_of(act, bias.data ? v.v[k] + bias[o + k] : (float)v.v[k]);
        y[i] = v;
    }
};

template <class M, int N>
static void finish_by(const sn_cuda_call *c, const sn_mixed_line *y, int64_t pixels,
                      int64_t channels, sn_mixed_line bias, int act) {
    typedef finish_half<M, N> finish;
    sn_each(c, pixels * channels / N,
            finish{(typename finish::pack *)y->data, bias, sn_divisor_of(channels / N), act});
}

template <class M>
static void finish_as(const sn_cuda_call *c, const sn_mixed_line *y, int64_t pixels,
                      int64_t channels, sn_mixed_line bias, int act) {
    if (channels % 4 == 0 && sn_aligned(y->data))
        finish_by<M, 4>(c, y, pixels, channels, bias, act);
    else
        finish_by<M, 1>(c, y, pixels, channels, bias, act);
}

void sn_conv_finish_of(const sn_cuda_call *c, sn_mixed_line y, int64_t pixels, int64_t channels,
                       sn_mixed_line bias, int act) {
    if (!bias.data && act == SN_ACT_none)
        return;
    if (y.dtype == SNUG_F16)
        finish_as<sn_half>(c, &y, pixels, channels, bias, act);
    else
        finish_as<sn_brain>(c, &y, pixels, channels, bias, act);
}

/* --- column sums ----------------------------------------------------------------------------- */
struct column_sum {
    typedef double value;
    enum { N = 1 };
    const float *x;
    float *out;
    bool accumulate;
    static __device__ double start() { return 0; }
    static __device__ double combine(double a, double b) { return a + b; }
    __device__ void add(int64_t at, int64_t, int64_t, double *v) const { v[0] += (double)x[at]; }
    __device__ void add_pack(int64_t at, int64_t, int64_t, double v[][1]) const {
        const float4 e = *(const float4 *)(x + at);
        v[0][0] += (double)e.x;
        v[1][0] += (double)e.y;
        v[2][0] += (double)e.z;
        v[3][0] += (double)e.w;
    }
    __device__ void put(int64_t o, const double *v) const {
        out[o] = accumulate ? out[o] + (float)v[0] : (float)v[0];
    }
};

size_t sn_column_sums_bytes(int64_t rows, int64_t columns) {
    const sn_columns p = sn_columns_of(1, rows, columns);
    return sn_columns_bytes(&p, 1);
}

void sn_column_sums(const sn_cuda_call *c, const float *x, int64_t rows, int64_t columns, bool add,
                    float *out, void *scratch) {
    const sn_columns p = sn_columns_of(1, rows, columns);
    const column_sum f = {x, out, add};
    if (columns % SN_PACK == 0 && sn_aligned(x))
        sn_reduce_packs(c, f, &p, scratch);
    else
        sn_reduce_columns(c, f, &p, scratch);
}

template <class M> struct column_sum_of {
    typedef double value;
    enum { N = 1 };
    const M *x;
    sn_mixed_line out;
    bool accumulate;
    static __device__ double start() { return 0; }
    static __device__ double combine(double a, double b) { return a + b; }
    __device__ void add(int64_t at, int64_t, int64_t, double *v) const { v[0] += (double)x[at]; }
    __device__ void add_pack(int64_t at, int64_t, int64_t, double v[][1]) const {
        const sn_four<M> e = *(const sn_four<M> *)(x + at);
#pragma unroll
        for (int k = 0; k < SN_PACK; k++)
            v[k][0] += (double)e.v[k];
    }
    __device__ void put(int64_t o, const double *v) const {
        out.put(o, accumulate ? out[o] + (float)v[0] : (float)v[0]);
    }
};

template <class M>
static void sum_columns(const sn_cuda_call *c, const sn_mixed_line *x, const sn_columns *p,
                        bool add, sn_mixed_line out, void *scratch) {
    const column_sum_of<M> f = {(const M *)x->data, out, add};
    if (p->inner % SN_PACK == 0 && sn_aligned(f.x))
        sn_reduce_packs(c, f, p, scratch);
    else
        sn_reduce_columns(c, f, p, scratch);
}

void sn_column_sums_of(const sn_cuda_call *c, sn_mixed_line x, int64_t rows, int64_t columns,
                       bool add, sn_mixed_line out, void *scratch) {
    const sn_columns p = sn_columns_of(1, rows, columns);
    if (x.dtype == SNUG_F16)
        sum_columns<sn_half>(c, &x, &p, add, out, scratch);
    else
        sum_columns<sn_brain>(c, &x, &p, add, out, scratch);
}
