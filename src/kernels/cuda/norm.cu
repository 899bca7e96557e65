/* norm.cu: normalisation; channels are the last axis. kernels/cpu/norm.c says what each row gives.
 *
 * Maps over channels: a thread has the same few channels of several rows, so that what depends on
 * the channel alone is read and computed once. What has one number per channel or row may be f32
 * beside halves. Sums over rows go by columns (reduce.h), rows of
 * layernorm by warps or blocks (cuda_rows.h). */
#include "kernels/cuda/functions.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/cuda_rows.h"

/* --- maps over channels ----------------------------------------------------------------------- */
enum { ROWS = 8 }; /* of a thread */

template <class T, int N> struct __align__(sizeof(T) * N) pack_of {
    T v[N];
};
template <class T, int N> static __device__ __forceinline__ pack_of<T, N> load(const T *at) {
    return *(const pack_of<T, N> *)at;
}

/* One thread has channels [pack * N, ...) of ROWS rows. F::Line is what it keeps of the channel. */
template <class F, class T, int N> struct channels_f {
    F f;
    sn_divisor packs;
    int64_t rows;
    __device__ void operator()(int64_t i) const {
        const int64_t group = sn_div(i, packs), channel = (i - group * packs.d) * N;
        const int64_t first = group * ROWS, end = first + ROWS < rows ? first + ROWS : rows;
        const typename F::template Line<N> line = f.template line<N>(channel);
#pragma unroll 4
        for (int64_t r = first; r < end; r++)
            f.template apply<N>(line, r * packs.d * N + channel);
    }
};

template <class F, class T> static void run_channels(const sn_cuda_call *c, F f, bool aligned) {
    const snug_type *t = &c->call->out[0].type;
    const int64_t rows = sn_rows_in(t), C = sn_width_in(t), groups = sn_cuda_ceil(rows, ROWS);
    if (C == 0)
        return;
    if (sizeof(T) <= 4 && C % 4 == 0 && aligned)
        sn_each(c, groups * (C / 4), channels_f<F, T, 4>{f, sn_divisor_of(C / 4), rows});
    else
        sn_each(c, groups * C, channels_f<F, T, 1>{f, sn_divisor_of(C), rows});
}

static bool all_aligned(const sn_cuda_call *c) {
    bool ok = sn_aligned(c->call->out[0].data);
    for (int i = 0; i < c->call->n_in; i++)
        ok = ok && sn_aligned(c->call->in[i].data);
    return ok;
}

template <class T> struct normalise_f {
    typedef sn_computed<T> C;
    const T *x;
    sn_line<T> mean, variance, gamma, beta;
    T *y;
    const sn_scalar *epsilon;
    template <int N> struct Line { C mean[N], rstd[N], gamma[N], beta[N]; };
    template <int N> __device__ Line<N> line(int64_t channel) const {
        Line<N> l;
#pragma unroll
        for (int k = 0; k < N; k++) {
            l.mean[k] = mean[channel + k];
            l.rstd[k] = (C)(1 / sqrt((double)variance[channel + k] + epsilon->real));
            l.gamma[k] = gamma[channel + k];
            l.beta[k] = beta[channel + k];
        }
        return l;
    }
    template <int N> __device__ void apply(const Line<N> &l, int64_t at) const {
        pack_of<T, N> v = load<T, N>(x + at);
#pragma unroll
        for (int k = 0; k < N; k++)
            v.v[k] = (T)sn_normalised::at((C)v.v[k], l.mean[k], l.rstd[k], l.gamma[k], l.beta[k]);
        *(pack_of<T, N> *)(y + at) = v;
    }
};

template <class T> static sn_line<T> line_in(const sn_cuda_call *c, int i) {
    return sn_line_of<T>(&c->call->in[i]);
}

template <class T> static void normalise(const sn_cuda_call *c) {
    run_channels<normalise_f<T>, T>(
        c,
        normalise_f<T>{sn_in<T>(c, 0), line_in<T>(c, 1), line_in<T>(c, 2), line_in<T>(c, 3),
                       line_in<T>(c, 4), sn_out<T>(c, 0), c->call->param},
        all_aligned(c));
}
static snug_status run_normalise(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, normalise, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(normalise, run_normalise, NULL, 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4)

template <class T> struct affine_f {
    typedef sn_computed<T> C;
    const T *p, *q;
    sn_line<T> a, b, c;
    T *y;
    template <int N> struct Line { C a[N], b[N], c[N]; };
    template <int N> __device__ Line<N> line(int64_t channel) const {
        Line<N> l;
#pragma unroll
        for (int k = 0; k < N; k++) {
            l.a[k] = a[channel + k];
            l.b[k] = b[channel + k];
            l.c[k] = c[channel + k];
        }
        return l;
    }
    template <int N> __device__ void apply(const Line<N> &l, int64_t at) const {
        const pack_of<T, N> u = load<T, N>(p + at), v = load<T, N>(q + at);
        pack_of<T, N> to;
#pragma unroll
        for (int k = 0; k < N; k++)
            to.v[k] = (T)sn_mixed::at((C)u.v[k], (C)v.v[k], l.a[k], l.b[k], l.c[k]);
        *(pack_of<T, N> *)(y + at) = to;
    }
};

template <class T> static void channel_affine(const sn_cuda_call *c) {
    run_channels<affine_f<T>, T>(c,
                                 affine_f<T>{sn_in<T>(c, 0), sn_in<T>(c, 1), line_in<T>(c, 2),
                                             line_in<T>(c, 3), line_in<T>(c, 4), sn_out<T>(c, 0)},
                                 all_aligned(c));
}
static snug_status run_channel_affine(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, channel_affine, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(channel_affine, run_channel_affine, NULL, 1u << 2 | 1u << 3 | 1u << 4)

template <class T> struct line_f {
    typedef sn_computed<T> C;
    sn_line<T> mean, variance, gamma, beta, bias, out;
    const sn_scalar *epsilon;
    int64_t channels;
    bool biased;
    __device__ void operator()(int64_t k) const {
        const double rstd = 1 / sqrt((double)variance[k] + epsilon->real);
        const double scale = (double)gamma[k] * rstd, moved = biased ? (double)bias[k] : 0;
        out.put(k, (C)scale);
        out.put(channels + k, (C)((double)beta[k] + (moved - (double)mean[k]) * scale));
    }
};

template <class T> static void normalise_line(const sn_cuda_call *c) {
    const int64_t C = sn_width_in(&c->call->in[0].type);
    const bool biased = c->call->n_in > 4;
    sn_each(c, C,
            line_f<T>{line_in<T>(c, 0), line_in<T>(c, 1), line_in<T>(c, 2), line_in<T>(c, 3),
                      line_in<T>(c, biased ? 4 : 0), sn_line_of<T>(&c->call->out[0]),
                      c->call->param, C, biased});
}
static snug_status run_normalise_line(const sn_cuda_call *c, snug_error *err) {
    snug_dtype dtype = sn_dtype_in(c, 0);
    for (int i = 1; i < c->call->n_in; i++)
        dtype = sn_dtype_is_half(sn_dtype_in(c, i)) ? sn_dtype_in(c, i) : dtype;
    if (sn_dtype_is_half(c->call->out[0].type.dtype))
        dtype = c->call->out[0].type.dtype;
    SN_BY_FLOAT(dtype, err, normalise_line, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(normalise_line, run_normalise_line, NULL, 0x1fu | SN_CUDA_OUT(0))

/* --- sums over rows --------------------------------------------------------------------------- */
/* Two sums per channel; L: a line of the outputs', R: what is computed in. */
template <class L, class R> struct pair_sums {
    typedef double value;
    enum { N = 2 };
    L first, second;
    bool accumulate;
    static __device__ double start() { return 0; }
    static __device__ double combine(double a, double b) { return a + b; }
    __device__ void put(int64_t o, const double *v) const {
        first.put(o, (R)(accumulate ? (double)first[o] + v[0] : v[0]));
        second.put(o, (R)(accumulate ? (double)second[o] + v[1] : v[1]));
    }
};

template <class T> struct moments_f : pair_sums<sn_plain_line<double>, double> {
    const T *x;
    __device__ void add(int64_t at, int64_t, int64_t, double *v) const {
        const double e = (double)x[at];
        v[0] += e;
        v[1] += e * e;
    }
    __device__ void add_pack(int64_t at, int64_t, int64_t, double v[][2]) const {
        const pack_of<T, SN_PACK> e = load<T, SN_PACK>(x + at);
#pragma unroll
        for (int k = 0; k < SN_PACK; k++) {
            v[k][0] += (double)e.v[k];
            v[k][1] += (double)e.v[k] * (double)e.v[k];
        }
    }
};
/* Statistics per channel; `spread` is the variance. */
template <class T> struct normalise_sums_f : pair_sums<sn_line<T>, sn_computed<T>> {
    const T *dy, *x;
    sn_line<T> mean, spread;
    const sn_scalar *epsilon;
    __device__ void add(int64_t at, int64_t, int64_t column, double *v) const {
        const double g = (double)dy[at];
        v[0] += g;
        v[1] += g * ((double)x[at] - (double)mean[column]);
    }
    __device__ void add_pack(int64_t at, int64_t, int64_t column, double v[][2]) const {
        const pack_of<T, SN_PACK> g = load<T, SN_PACK>(dy + at), e = load<T, SN_PACK>(x + at);
        sn_computed<T> middle[SN_PACK];
        sn_line_get<SN_PACK>(mean, column, middle);
#pragma unroll
        for (int k = 0; k < SN_PACK; k++) {
            v[k][0] += (double)g.v[k];
            v[k][1] += (double)g.v[k] * ((double)e.v[k] - (double)middle[k]);
        }
    }
    __device__ void put(int64_t o, const double *v) const {
        const double both[2] = {v[0], v[1] / sqrt((double)spread[o] + epsilon->real)};
        pair_sums<sn_line<T>, sn_computed<T>>::put(o, both);
    }
};
/* Statistics per row; `spread` is 1 / deviation. */
template <class T> struct layernorm_sums_f : pair_sums<sn_line<T>, sn_computed<T>> {
    const T *dy, *x;
    sn_line<T> mean, spread;
    __device__ void add(int64_t at, int64_t row, int64_t, double *v) const {
        const double g = (double)dy[at];
        v[0] += g;
        v[1] += g * (((double)x[at] - (double)mean[row]) * (double)spread[row]);
    }
    __device__ void add_pack(int64_t at, int64_t row, int64_t, double v[][2]) const {
        const pack_of<T, SN_PACK> g = load<T, SN_PACK>(dy + at), e = load<T, SN_PACK>(x + at);
        const double middle = (double)mean[row], rstd = (double)spread[row];
#pragma unroll
        for (int k = 0; k < SN_PACK; k++) {
            v[k][0] += (double)g.v[k];
            v[k][1] += (double)g.v[k] * (((double)e.v[k] - middle) * rstd);
        }
    }
};

static sn_columns columns_of(const snug_type *t) {
    return sn_columns_of(1, sn_rows_in(t), sn_width_in(t));
}

static snug_status describe_sums(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                 snug_error *err) {
    (void)g, (void)err;
    const sn_columns p = columns_of(&d->in[0]);
    out->workspace_bytes = sn_columns_bytes(&p, 2);
    return SNUG_OK;
}

template <class L, class R> static void set_outputs(const sn_cuda_call *c, pair_sums<L, R> *f) {
    const snug_view *out = c->call->out;
    sn_line_set(&f->first, out[0].data, out[0].type.dtype);
    sn_line_set(&f->second, out[1].data, out[1].type.dtype);
    f->accumulate = c->call->accumulate;
}

template <class T, class F> static void run_sums(const sn_cuda_call *c, F f) {
    const sn_columns p = columns_of(&c->call->in[0].type);
    if constexpr (sizeof(T) <= sizeof(float))
        if (p.inner % SN_PACK == 0 && all_aligned(c)) {
            sn_reduce_packs(c, f, &p, c->call->workspace);
            return;
        }
    sn_reduce_columns(c, f, &p, c->call->workspace);
}

template <class T> static void moments(const sn_cuda_call *c) {
    moments_f<T> f;
    set_outputs(c, &f);
    f.x = sn_in<T>(c, 0);
    run_sums<T>(c, f);
}
template <class T> static void normalise_sums(const sn_cuda_call *c) {
    normalise_sums_f<T> f;
    set_outputs(c, &f);
    f.dy = sn_in<T>(c, 0);
    f.x = sn_in<T>(c, 1);
    f.mean = line_in<T>(c, 2);
    f.spread = line_in<T>(c, 3);
    f.epsilon = c->call->param;
    run_sums<T>(c, f);
}
template <class T> static void layernorm_sums(const sn_cuda_call *c) {
    layernorm_sums_f<T> f;
    set_outputs(c, &f);
    f.dy = sn_in<T>(c, 0);
    f.x = sn_in<T>(c, 1);
    f.mean = line_in<T>(c, 2);
    f.spread = line_in<T>(c, 3);
    run_sums<T>(c, f);
}
#define BOTH_SUMS (1u << 2 | 1u << 3 | SN_CUDA_OUT(0) | SN_CUDA_OUT(1))
#define SUMS(name, mixes)                                                                          \
    static snug_status run_##name(const sn_cuda_call *c, snug_error *err) {                        \
        SN_BY_FLOAT(sn_dtype_in(c, 0), err, name, c);                                              \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    SN_CUDA_FLOATS(name, run_##name, describe_sums, mixes)
SUMS(moments, SN_CUDA_MIXES_ALL) /* its sums are f64 */
SUMS(normalise_sums, BOTH_SUMS)
SUMS(layernorm_sums, BOTH_SUMS)

/* --- rows of layernorm ------------------------------------------------------------------------ */
/* N: elements at once, 1 or 4. */
template <class T, int N> struct layernorm_f {
    typedef sn_computed<T> V;
    sn_plain_line<T> x;
    sn_line<T> gamma, beta;
    T *y;
    sn_line<T> means, rstds;
    const sn_scalar *epsilon;
    int64_t C;
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const int64_t from = r * C;
        double sum = 0, squares = 0;
#pragma unroll 4
        for (int64_t k = N * t.at(); k < C; k += N * t.size()) {
            T v[N];
            sn_line_get<N>(x, from + k, v);
#pragma unroll
            for (int e = 0; e < N; e++)
                sum += (double)v[e];
        }
        const double mean = t.sum(sum) / (double)C;
        const V middle = (V)mean;
#pragma unroll 4
        for (int64_t k = N * t.at(); k < C; k += N * t.size()) {
            T v[N];
            sn_line_get<N>(x, from + k, v);
#pragma unroll
            for (int e = 0; e < N; e++)
                squares += (double)((v[e] - middle) * (v[e] - middle));
        }
        /* The middle is the mean but for its rounding. */
        const double off = mean - (double)middle, spread = t.sum(squares) / (double)C - off * off;
        const double rstd = 1 / sqrt(spread + epsilon->real);
        write(from, t.at(), t.size(), middle, (V)rstd);
        if (t.at() == 0) {
            means.put(r, (V)mean);
            rstds.put(r, (V)rstd);
        }
    }
    __device__ __forceinline__ void write(int64_t from, int at, int size, V middle, V scale) const {
#pragma unroll 4
        for (int64_t k = N * at; k < C; k += N * size) {
            T v[N];
            V g[N], b[N];
            sn_line_get<N>(x, from + k, v);
            sn_line_get<N>(gamma, k, g);
            sn_line_get<N>(beta, k, b);
            pack_of<T, N> to;
#pragma unroll
            for (int e = 0; e < N; e++)
                to.v[e] = (T)(g[e] * ((v[e] - middle) * scale) + b[e]);
            *(pack_of<T, N> *)(y + from + k) = to;
        }
    }
};

/* dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), where g = gamma * dy */
template <class T, int N> struct layernorm_dx_f {
    typedef sn_computed<T> V;
    sn_plain_line<T> dy, x;
    sn_line<T> gamma, means, rstds;
    T *dx;
    int64_t C;
    /* g and xhat of elements k and on of the row that begins at `from`. */
    __device__ __forceinline__ void terms(int64_t from, int64_t k, V mean, V rstd, V *g,
                                          V *xhat) const {
        T d[N], v[N];
        sn_line_get<N>(dy, from + k, d);
        sn_line_get<N>(x, from + k, v);
        sn_line_get<N>(gamma, k, g);
#pragma unroll
        for (int e = 0; e < N; e++) {
            g[e] = g[e] * d[e];
            xhat[e] = (v[e] - mean) * rstd;
        }
    }
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const V mean = means[r], rstd = rstds[r];
        double sum = 0, product = 0;
        V g[N], xhat[N];
#pragma unroll 4
        for (int64_t k = N * t.at(); k < C; k += N * t.size()) {
            terms(r * C, k, mean, rstd, g, xhat);
#pragma unroll
            for (int e = 0; e < N; e++) {
                sum += (double)g[e];
                product += (double)(g[e] * xhat[e]);
            }
        }
        const V a = (V)(t.sum(sum) / (double)C), b = (V)(t.sum(product) / (double)C);
#pragma unroll 4
        for (int64_t k = N * t.at(); k < C; k += N * t.size()) {
            terms(r * C, k, mean, rstd, g, xhat);
            pack_of<T, N> to;
#pragma unroll
            for (int e = 0; e < N; e++)
                to.v[e] = (T)(rstd * (g[e] - a - xhat[e] * b));
            *(pack_of<T, N> *)(dx + r * C + k) = to;
        }
    }
};

template <class T, int N> static void layernorm_by(const sn_cuda_call *c, int64_t C) {
    const snug_view *out = c->call->out;
    sn_rows_run(c, sn_rows_in(&c->call->in[0].type), C,
                layernorm_f<T, N>{sn_plain_line<T>{(T *)c->call->in[0].data}, line_in<T>(c, 1),
                                  line_in<T>(c, 2), sn_out<T>(c, 0), sn_line_of<T>(&out[1]),
                                  sn_line_of<T>(&out[2]), c->call->param, C});
}
template <class T, int N> static void layernorm_dx_by(const sn_cuda_call *c, int64_t C) {
    sn_rows_run(c, sn_rows_in(&c->call->in[0].type), C,
                layernorm_dx_f<T, N>{sn_plain_line<T>{(T *)c->call->in[0].data},
                                     sn_plain_line<T>{(T *)c->call->in[1].data}, line_in<T>(c, 2),
                                     line_in<T>(c, 3), line_in<T>(c, 4), sn_out<T>(c, 0), C});
}

/* Halves go in packs where rows are made of them: wherever plans put rows, the order of a sum
 * follows from their width. */
template <class T> static bool in_packs(const sn_cuda_call *c, int n_in, int64_t C) {
    uintptr_t places = (uintptr_t)c->call->out[0].data;
    for (int k = 0; k < n_in; k++)
        places |= (uintptr_t)c->call->in[k].data;
    return sn_is_half<T>::yes && C % 4 == 0 && places % (4 * sizeof(T)) == 0;
}
template <class T> static void layernorm(const sn_cuda_call *c) {
    const int64_t C = sn_width_in(&c->call->in[0].type);
    if (in_packs<T>(c, 1, C))
        layernorm_by<T, sn_is_half<T>::yes ? 4 : 1>(c, C);
    else
        layernorm_by<T, 1>(c, C);
}
template <class T> static void layernorm_dx(const sn_cuda_call *c) {
    const int64_t C = sn_width_in(&c->call->in[0].type);
    if (in_packs<T>(c, 2, C))
        layernorm_dx_by<T, sn_is_half<T>::yes ? 4 : 1>(c, C);
    else
        layernorm_dx_by<T, 1>(c, C);
}
static snug_status run_layernorm(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, layernorm, c);
    return SNUG_OK;
}
static snug_status run_layernorm_dx(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, layernorm_dx, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(layernorm, run_layernorm, NULL, 1u << 1 | 1u << 2 | SN_CUDA_OUT(1) | SN_CUDA_OUT(2))
SN_CUDA_FLOATS(layernorm_dx, run_layernorm_dx, NULL, 1u << 2 | 1u << 3 | 1u << 4)
