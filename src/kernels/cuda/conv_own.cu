/* conv_own.cu: convolutions without a library: one thread per element of the result, any stride,
 * dilation and groups; f32, f64 and halves. They serve depthwise convolutions, which no engine does
 * well, and everything where cuDNN is missing.
 *
 * A weight gradient's pixels are cut into chunks; a thread sums one element over one chunk, and a
 * second kernel adds the chunks in order. */
#include "kernels/cuda/cuda_conv.h"

#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/places.h"

#define BY_TYPE(dtype, f, ...)                                                                     \
    ((dtype) == SNUG_F32   ? f<float>(__VA_ARGS__)                                                 \
     : (dtype) == SNUG_F64 ? f<double>(__VA_ARGS__)                                                \
     : (dtype) == SNUG_F16 ? f<sn_half>(__VA_ARGS__)                                               \
                           : f<sn_brain>(__VA_ARGS__))

/* --- forward --------------------------------------------------------------------------------- */
template <class M> struct conv_forward {
    typedef sn_computed<M> T;
    sn_conv v;
    sn_parts y_parts;
    sn_divisor group_width;
    int64_t depth;
    const M *x;
    sn_line<M> w, bias, scale;
    M *y;

    __device__ void operator()(int64_t at) const {
        const sn_place4 o = sn_place_of_element(y_parts, at);
        const int64_t first = sn_div(o.c, group_width) * depth;
        T sum = 0;
        for (int64_t p = 0; p < v.kh; p++) {
            const int64_t row = o.i * v.stride[0] + p * v.dilation[0] - v.pad[0];
            if (row < 0 || row >= v.H)
                continue;
            for (int64_t q = 0; q < v.kw; q++) {
                const int64_t col = o.j * v.stride[1] + q * v.dilation[1] - v.pad[2];
                if (col < 0 || col >= v.W)
                    continue;
                const M *from = x + ((o.n * v.H + row) * v.W + col) * v.C + first;
                const int64_t weight = (p * v.kw + q) * depth * v.O + o.c;
                for (int64_t k = 0; k < depth; k++)
                    sum += from[k] * (T)(M)w[weight + k * v.O];
            }
        }
        if (scale.data)
            sum *= scale[o.c];
        if (bias.data)
            sum += bias[o.c];
        y[at] = (M)sn_act_of((int)v.act, sum);
    }
};

template <class M>
static void run_forward(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    const conv_forward<M> f = {*v,
                               sn_parts_of(v->oh, v->ow, v->O),
                               sn_divisor_of(v->O / v->groups),
                               v->C / v->groups,
                               (const M *)o->x,
                               sn_line_at<M>(o->w, o->types.w),
                               sn_line_at<M>(o->bias, o->types.bias),
                               sn_line_at<M>(o->scale, o->types.bias),
                               (M *)o->y};
    sn_each(c, v->N * v->oh * v->ow * v->O, f);
}

void sn_conv_plain(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    BY_TYPE(o->types.dtype, run_forward, c, v, o);
}

/* --- the input's gradient -------------------------------------------------------------------- */
template <class M> struct conv_backward {
    typedef sn_computed<M> T;
    sn_conv v;
    sn_parts x_parts;
    sn_divisor group_depth, down, across;
    int64_t width; /* outputs of a group */
    const M *dy;
    sn_line<M> w;
    M *dx;

    __device__ void operator()(int64_t at) const {
        const sn_place4 x = sn_place_of_element(x_parts, at);
        const int64_t group = sn_div(x.c, group_depth), k = x.c - group * group_depth.d;
        T sum = 0;
        for (int64_t p = 0; p < v.kh; p++) {
            const int64_t i = sn_place_under(x.i, p, v.pad[0], v.dilation[0], down, v.oh);
            for (int64_t q = 0; i >= 0 && q < v.kw; q++) {
                const int64_t j = sn_place_under(x.j, q, v.pad[2], v.dilation[1], across, v.ow);
                if (j < 0)
                    continue;
                const M *from = dy + ((x.n * v.oh + i) * v.ow + j) * v.O + group * width;
                const int64_t first = ((p * v.kw + q) * group_depth.d + k) * v.O + group * width;
                for (int64_t o = 0; o < width; o++)
                    sum += from[o] * (T)(M)w[first + o];
            }
        }
        dx[at] = (M)sum;
    }
};

template <class M>
static void run_backward(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    const conv_backward<M> f = {*v,
                                sn_parts_of(v->H, v->W, v->C),
                                sn_divisor_of(v->C / v->groups),
                                sn_divisor_of(v->stride[0]),
                                sn_divisor_of(v->stride[1]),
                                v->O / v->groups,
                                (const M *)o->dy,
                                sn_line_at<M>(o->w, o->types.w),
                                (M *)o->dx};
    sn_each(c, v->N * v->H * v->W * v->C, f);
}

void sn_conv_plain_dx(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o) {
    BY_TYPE(o->types.dtype, run_backward, c, v, o);
}

/* --- the weights' gradient ------------------------------------------------------------------- */
/* Pixels of a chunk: enough chunks to fill the card, not more than their sums have room. */
static int64_t chunk_pixels(const sn_conv *v, size_t cap, size_t element) {
    enum { LEAST = 64, WANTED_THREADS = 1 << 18 };
    const int64_t pixels = v->N * v->oh * v->ow, count = sn_conv_sums(v);
    int64_t chunks = WANTED_THREADS / (count > 0 ? count : 1) + 1;
    const int64_t most = (int64_t)(cap / element) / (count > 0 ? count : 1);
    chunks = chunks < most ? chunks : most;
    chunks = chunks < 1 ? 1 : chunks;
    const int64_t size = sn_cuda_ceil(pixels, chunks);
    return size < LEAST ? (int64_t)LEAST : size;
}

static int64_t count_chunks(const sn_conv *v, size_t cap, size_t element) {
    const int64_t pixels = v->N * v->oh * v->ow;
    return pixels > 0 ? sn_cuda_ceil(pixels, chunk_pixels(v, cap, element)) : 1;
}

template <class M> struct conv_sum_chunk {
    typedef sn_computed<M> T;
    sn_conv v;
    sn_divisor results, outputs, depth, wide, group_width, y_width, y_height;
    int64_t n_weights, pixels, size;
    const M *x, *dy;
    T *partial; /* [chunk][result] */

    __device__ T bias_at(int64_t o, int64_t first, int64_t end) const {
        T sum = 0;
        for (int64_t i = first; i < end; i++)
            sum += dy[i * v.O + o];
        return sum;
    }

    __device__ void operator()(int64_t at) const {
        const int64_t chunk = sn_div(at, results), e = at - chunk * results.d;
        const int64_t first = chunk * size, end = first + size < pixels ? first + size : pixels;
        if (e >= n_weights) {
            partial[at] = bias_at(e - n_weights, first, end);
            return;
        }
        const int64_t kc = sn_div(e, outputs), o = e - kc * v.O;
        const int64_t pq = sn_div(kc, depth), k = kc - pq * depth.d;
        const int64_t p = sn_div(pq, wide), q = pq - p * wide.d;
        const int64_t channel = sn_div(o, group_width) * depth.d + k;
        const int64_t down = p * v.dilation[0] - v.pad[0], across = q * v.dilation[1] - v.pad[2];
        int64_t line = sn_div(first, y_width), j = first - line * y_width.d;
        int64_t n = sn_div(line, y_height), i = line - n * y_height.d;
        T sum = 0;
        for (int64_t pixel = first; pixel < end; pixel++) {
            const int64_t row = i * v.stride[0] + down, col = j * v.stride[1] + across;
            if (row >= 0 && row < v.H && col >= 0 && col < v.W)
                sum += x[((n * v.H + row) * v.W + col) * v.C + channel] * dy[pixel * v.O + o];
            if (++j == v.ow) {
                j = 0;
                if (++i == v.oh) {
                    i = 0;
                    n++;
                }
            }
        }
        partial[at] = sum;
    }
};

template <class M> struct conv_add_chunks {
    typedef sn_computed<M> T;
    int64_t n_results, n_weights, n_chunks;
    const T *partial;
    sn_line<M> dw, db;
    bool add;

    static __device__ void put(const sn_line<M> &to, int64_t e, T sum, bool add) {
        to.put(e, add ? to[e] + sum : sum);
    }

    __device__ void operator()(int64_t e) const {
        double sum = 0;
        for (int64_t i = 0; i < n_chunks; i++)
            sum += (double)partial[i * n_results + e];
        if (e < n_weights)
            put(dw, e, (T)sum, add);
        else
            put(db, e - n_weights, (T)sum, add);
    }
};

size_t sn_conv_plain_dw_bytes(const sn_gpu *g, const sn_conv *v, snug_dtype dtype) {
    const size_t element = dtype == SNUG_F64 ? sizeof(double) : sizeof(float);
    return (size_t)(count_chunks(v, sn_gpu_workspace_cap(g), element) * sn_conv_sums(v)) * element;
}

template <class M>
static void run_dw(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o, void *scratch) {
    typedef sn_computed<M> T;
    const size_t cap = sn_gpu_workspace_cap(c->gpu);
    const int64_t n = sn_conv_sums(v), chunks = count_chunks(v, cap, sizeof(T));
    const conv_sum_chunk<M> f = {*v,
                                 sn_divisor_of(n),
                                 sn_divisor_of(v->O),
                                 sn_divisor_of(v->C / v->groups),
                                 sn_divisor_of(v->kw),
                                 sn_divisor_of(v->O / v->groups),
                                 sn_divisor_of(v->ow),
                                 sn_divisor_of(v->oh),
                                 sn_conv_weights(v),
                                 v->N * v->oh * v->ow,
                                 chunk_pixels(v, cap, sizeof(T)),
                                 (const M *)o->x,
                                 (const M *)o->dy,
                                 (T *)scratch};
    const conv_add_chunks<M> g = {n,
                                  sn_conv_weights(v),
                                  chunks,
                                  (const T *)scratch,
                                  sn_line_at<M>(o->dw, o->types.w),
                                  sn_line_at<M>(o->db, o->types.bias),
                                  o->accumulate};
    sn_each(c, n * chunks, f);
    sn_each(c, n, g);
}

void sn_conv_plain_dw(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                      void *scratch) {
    BY_TYPE(o->types.dtype, run_dw, c, v, o, scratch);
}
