/* conv_pool_own.cu: convolution and pooling at once, plainly: one thread per element of the result,
 * which makes every convolution of its window again; f32 and f64. And the two passes that pool, or
 * spread, a convolution's result that does lie in memory.
 *
 * A thread that pools takes eight channels of a pixel: a byte of each plane of codes is one
 * thread's. The first maximum of a window wins, a NaN beats every number, pooling's padding never
 * wins. */
#include "kernels/cuda/cuda_conv_pool.h"

#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/places.h"

/* The maximum so far, and where it stood. */
template <class T> struct conv_pool_winner {
    T best;
    int place; /* -1: none yet */

    __device__ void meet(T v, int at) {
        if (place < 0 || v > best || (v != v && best == best)) {
            best = v;
            place = at;
        }
    }
};

/* Codes of eight channels, until they are stored. */
typedef struct {
    unsigned column, row, alive; /* a bit each */
} octet;

template <class T>
static __device__ __forceinline__ T pooled(const conv_pool_winner<T> &w, bool relu) {
    return relu ? sn_act_of((int)SN_ACT_relu, w.best) : w.best;
}

/* Channel 8 o + e of a pixel; bytes are stored at once, bits wait. */
template <class T>
static __device__ __forceinline__ void note(const sn_pool &p, const conv_pool_winner<T> &w,
                                            bool relu, int e, octet *bits, uint8_t *byte) {
    const bool alive = !relu || w.best > T(0);
    if (!sn_code_is_planes(p)) {
        *byte = alive ? (uint8_t)w.place : (uint8_t)SN_CODE_DEAD;
        return;
    }
    const int wide = (int)p.kernel[1];
    bits->alive |= (unsigned)alive << e;
    bits->row |= (unsigned)(alive && w.place >= wide) << e;
    bits->column |= (unsigned)(alive && w.place % wide) << e;
}

static __device__ __forceinline__ void put_octet(const sn_pool &p, const octet &bits,
                                                 uint8_t *pixel, int64_t o) {
    const int64_t plane = sn_code_plane(p);
    if (!sn_code_is_planes(p))
        return;
    pixel[o] = (uint8_t)bits.column;
    pixel[plane + o] = (uint8_t)bits.row;
    pixel[2 * plane + o] = (uint8_t)bits.alive;
}

/* --- forward --------------------------------------------------------------------------------- */
template <class T> struct conv_pool_forward {
    sn_conv v;
    sn_pool p;
    bool relu;
    sn_parts octets;
    sn_divisor group_width;
    int64_t depth; /* inputs of a group */
    const T *x, *w, *bias, *scale;
    T *y;
    uint8_t *code;

    /* Channel c of the convolution at (i, j) of image n. */
    __device__ __forceinline__ T result(int64_t n, int64_t c, int64_t i, int64_t j) const {
        const int64_t first = sn_div(c, group_width) * depth;
        T sum = 0;
        for (int64_t a = 0; a < v.kh; a++) {
            const int64_t row = i * v.stride[0] + a * v.dilation[0] - v.pad[0];
            for (int64_t b = 0; row >= 0 && row < v.H && b < v.kw; b++) {
                const int64_t col = j * v.stride[1] + b * v.dilation[1] - v.pad[2];
                if (col < 0 || col >= v.W)
                    continue;
                const T *from = x + ((n * v.H + row) * v.W + col) * v.C + first;
                const T *weight = w + (a * v.kw + b) * depth * v.O + c;
                for (int64_t k = 0; k < depth; k++)
                    sum += from[k] * weight[k * v.O];
            }
        }
        if (scale)
            sum *= scale[c];
        return bias ? sum + bias[c] : sum;
    }

    __device__ __forceinline__ conv_pool_winner<T> pool(const sn_place4 &o, int64_t c) const {
        conv_pool_winner<T> win = {0, -1};
        for (int64_t a = 0; a < p.kernel[0]; a++) {
            const int64_t i = o.i * p.stride[0] - p.pad[0] + a;
            for (int64_t b = 0; i >= 0 && i < p.H && b < p.kernel[1]; b++) {
                const int64_t j = o.j * p.stride[1] - p.pad[2] + b;
                if (j >= 0 && j < p.W)
                    win.meet(result(o.n, c, i, j), (int)(a * p.kernel[1] + b));
            }
        }
        return win;
    }

    __device__ void operator()(int64_t at) const {
        const sn_place4 o = sn_place_of_element(octets, at);
        const int64_t pixel = (o.n * p.oh + o.i) * p.ow + o.j;
        uint8_t *codes = code ? code + pixel * sn_code_pixel(p) : NULL;
        octet bits = {0, 0, 0};
        for (int e = 0; e < 8 && 8 * o.c + e < p.C; e++) {
            const int64_t c = 8 * o.c + e;
            const conv_pool_winner<T> win = pool(o, c);
            y[pixel * p.C + c] = pooled(win, relu);
            if (codes)
                note(p, win, relu, e, &bits, codes + c);
        }
        if (codes)
            put_octet(p, bits, codes, o.c);
    }
};

static int64_t count_octets(const sn_pool *p) {
    return p->N * p->oh * p->ow * sn_code_plane(*p);
}

template <class T>
static void run_forward(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    const conv_pool_forward<T> f = {q->v,
                                    q->p,
                                    q->relu,
                                    sn_parts_of(q->p.oh, q->p.ow, sn_code_plane(q->p)),
                                    sn_divisor_of(q->v.O / q->v.groups),
                                    q->v.C / q->v.groups,
                                    (const T *)o->o.x,
                                    (const T *)o->o.w,
                                    (const T *)o->o.bias,
                                    (const T *)o->o.scale,
                                    (T *)o->o.y,
                                    o->code};
    sn_each(c, count_octets(&q->p), f);
}

void sn_conv_pool_plain(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    if (o->o.types.dtype == SNUG_F32)
        run_forward<float>(c, q, o);
    else
        run_forward<double>(c, q, o);
}

/* --- where a gradient goes ------------------------------------------------------------------- */
/* The gradient of element (n, i, j, o) of the convolution's result. */
template <class M> struct conv_pool_spread {
    typedef sn_computed<M> T;
    sn_pool p;
    sn_divisor down, across; /* strides of the pooling */
    const M *dy;
    const uint8_t *code;

    __device__ __forceinline__ T at(int64_t n, int64_t i, int64_t j, int64_t o) const {
        T sum = 0;
        for (int64_t a = 0; a < p.kernel[0]; a++) {
            const int64_t r = sn_place_under(i, a, p.pad[0], 1, down, p.oh);
            for (int64_t b = 0; r >= 0 && b < p.kernel[1]; b++) {
                const int64_t s = sn_place_under(j, b, p.pad[2], 1, across, p.ow);
                const int64_t pixel = (n * p.oh + r) * p.ow + s;
                if (s >= 0 &&
                    sn_code_get(p, code + pixel * sn_code_pixel(p), o) == a * p.kernel[1] + b)
                    sum += dy[pixel * p.C + o];
            }
        }
        return sum;
    }
};

template <class T>
static conv_pool_spread<T> spread_with(const sn_pool *p, const void *dy, const uint8_t *code) {
    const conv_pool_spread<T> s = {*p, sn_divisor_of(p->stride[0]), sn_divisor_of(p->stride[1]),
                                   (const T *)dy, code};
    return s;
}

template <class T> struct conv_pool_backward {
    sn_conv v;
    conv_pool_spread<T> spread;
    sn_parts x_parts;
    sn_divisor group_depth, down, across;
    int64_t width; /* outputs of a group */
    const T *w;
    T *dx;

    __device__ void operator()(int64_t at) const {
        const sn_place4 x = sn_place_of_element(x_parts, at);
        const int64_t group = sn_div(x.c, group_depth), k = x.c - group * group_depth.d;
        T sum = 0;
        for (int64_t a = 0; a < v.kh; a++) {
            const int64_t i = sn_place_under(x.i, a, v.pad[0], v.dilation[0], down, v.oh);
            for (int64_t b = 0; i >= 0 && b < v.kw; b++) {
                const int64_t j = sn_place_under(x.j, b, v.pad[2], v.dilation[1], across, v.ow);
                const T *weight = w + ((a * v.kw + b) * group_depth.d + k) * v.O + group * width;
                for (int64_t o = 0; j >= 0 && o < width; o++)
                    sum += spread.at(x.n, i, j, group * width + o) * weight[o];
            }
        }
        dx[at] = sum;
    }
};

template <class T>
static void run_dx(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o) {
    const sn_conv *v = &q->v;
    const conv_pool_backward<T> f = {*v,
                                     spread_with<T>(&q->p, o->o.dy, o->code),
                                     sn_parts_of(v->H, v->W, v->C),
                                     sn_divisor_of(v->C / v->groups),
                                     sn_divisor_of(v->stride[0]),
                                     sn_divisor_of(v->stride[1]),
                                     v->O / v->groups,
                                     (const T *)o->o.w,
                                     (T *)o->o.dx};
    sn_each(c, v->N * v->H * v->W * v->C, f);
}

void sn_conv_pool_plain_dx(const sn_cuda_call *c, const sn_conv_pool *q,
                           const sn_cuda_conv_pool *o) {
    if (o->o.types.dtype == SNUG_F32)
        run_dx<float>(c, q, o);
    else
        run_dx<double>(c, q, o);
}

/* --- the weights' gradient ------------------------------------------------------------------- */
static int64_t chunk_pixels(const sn_conv_pool *q, size_t cap, size_t element) {
    enum { LEAST = 64, WANTED_THREADS = 1 << 18 };
    const int64_t pixels = q->p.N * q->p.oh * q->p.ow, count = sn_conv_sums(&q->v);
    const int64_t most = (int64_t)(cap / element) / (count > 0 ? count : 1);
    int64_t chunks = WANTED_THREADS / (count > 0 ? count : 1) + 1;
    chunks = chunks < most ? chunks : most;
    const int64_t size = sn_cuda_ceil(pixels, chunks < 1 ? 1 : chunks);
    return size < LEAST ? (int64_t)LEAST : size;
}

static int64_t count_chunks(const sn_conv_pool *q, size_t cap, size_t element) {
    const int64_t pixels = q->p.N * q->p.oh * q->p.ow;
    return pixels > 0 ? sn_cuda_ceil(pixels, chunk_pixels(q, cap, element)) : 1;
}

/* One element over the pooled pixels of one chunk. */
template <class T> struct conv_pool_sum_chunk {
    sn_conv v;
    sn_pool p;
    sn_divisor results, outputs, depth, wide, group_width, y_width, y_height, across;
    int64_t n_weights, pixels, size;
    const T *x, *dy;
    const uint8_t *code;
    T *partial;

    /* x under place (a, b) of the kernel where the winner of pooled element (n, i, j) stood. */
    __device__ __forceinline__ T under_winner(int64_t n, int64_t i, int64_t j, int won, int64_t a,
                                              int64_t b, int64_t channel) const {
        const int64_t place_row = sn_div(won, across), place_col = won - place_row * across.d;
        const int64_t r = i * p.stride[0] - p.pad[0] + place_row,
                      s = j * p.stride[1] - p.pad[2] + place_col;
        const int64_t row = r * v.stride[0] + a * v.dilation[0] - v.pad[0],
                      col = s * v.stride[1] + b * v.dilation[1] - v.pad[2];
        if (row < 0 || row >= v.H || col < 0 || col >= v.W)
            return T(0);
        return x[((n * v.H + row) * v.W + col) * v.C + channel];
    }

    __device__ void operator()(int64_t at) const {
        const int64_t chunk = sn_div(at, results), e = at - chunk * results.d;
        const int64_t first = chunk * size, end = first + size < pixels ? first + size : pixels;
        const bool is_bias = e >= n_weights;
        const int64_t kc = is_bias ? 0 : sn_div(e, outputs),
                      o = is_bias ? e - n_weights : e - kc * outputs.d;
        const int64_t ab = sn_div(kc, depth), k = kc - ab * depth.d;
        const int64_t a = sn_div(ab, wide), b = ab - a * wide.d;
        const int64_t channel = sn_div(o, group_width) * depth.d + k;
        T sum = 0;
        for (int64_t pixel = first; pixel < end; pixel++) {
            const int won = sn_code_get(p, code + pixel * sn_code_pixel(p), o);
            const int64_t line = sn_div(pixel, y_width), n = sn_div(line, y_height);
            if (won == SN_CODE_DEAD)
                continue;
            const T d = dy[pixel * v.O + o];
            sum += is_bias ? d
                           : d * under_winner(n, line - n * y_height.d, pixel - line * y_width.d,
                                              won, a, b, channel);
        }
        partial[at] = sum;
    }
};

template <class T> struct conv_pool_add_chunks {
    int64_t n_results, n_weights, n_chunks;
    const T *partial;
    T *dw, *db;
    bool add;

    __device__ void operator()(int64_t e) const {
        double sum = 0;
        for (int64_t i = 0; i < n_chunks; i++)
            sum += (double)partial[i * n_results + e];
        T *to = e < n_weights ? dw + e : db + (e - n_weights);
        *to = add ? *to + (T)sum : (T)sum;
    }
};

size_t sn_conv_pool_plain_dw_bytes(const sn_gpu *g, const sn_conv_pool *q, snug_dtype dtype) {
    const size_t element = snug_dtype_bytes(dtype);
    return (size_t)(count_chunks(q, sn_gpu_workspace_cap(g), element) * sn_conv_sums(&q->v)) *
           element;
}

template <class T>
static void run_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                   void *scratch) {
    const sn_conv *v = &q->v;
    const size_t cap = sn_gpu_workspace_cap(c->gpu);
    const int64_t n = sn_conv_sums(v), chunks = count_chunks(q, cap, sizeof(T));
    const conv_pool_sum_chunk<T> f = {*v,
                                      q->p,
                                      sn_divisor_of(n),
                                      sn_divisor_of(v->O),
                                      sn_divisor_of(v->C / v->groups),
                                      sn_divisor_of(v->kw),
                                      sn_divisor_of(v->O / v->groups),
                                      sn_divisor_of(q->p.ow),
                                      sn_divisor_of(q->p.oh),
                                      sn_divisor_of(q->p.kernel[1]),
                                      sn_conv_weights(v),
                                      q->p.N * q->p.oh * q->p.ow,
                                      chunk_pixels(q, cap, sizeof(T)),
                                      (const T *)o->o.x,
                                      (const T *)o->o.dy,
                                      o->code,
                                      (T *)scratch};
    const conv_pool_add_chunks<T> g = {n,
                                       sn_conv_weights(v),
                                       chunks,
                                       (const T *)scratch,
                                       (T *)o->o.dw,
                                       (T *)o->o.db,
                                       o->o.accumulate};
    sn_each(c, n * chunks, f);
    sn_each(c, n, g);
}

void sn_conv_pool_plain_dw(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                           void *scratch) {
    if (o->o.types.dtype == SNUG_F32)
        run_dw<float>(c, q, o, scratch);
    else
        run_dw<double>(c, q, o, scratch);
}

/* --- a result that lies in memory ------------------------------------------------------------ */
template <class M> struct conv_pool_take {
    sn_pool p;
    bool relu;
    sn_parts octets;
    const M *big;
    sn_line<M> bias, scale;
    M *y;
    uint8_t *code;

    /* Place `at` of the window, at `from` on, meets the best so far. */
    __device__ __forceinline__ void meet(conv_pool_winner<float> win[8], const M *from,
                                         int64_t first, int at) const {
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int64_t c = first + e;
            if (c >= p.C)
                continue;
            float v = from[c];
            if (scale.data)
                v *= scale[c];
            win[e].meet(bias.data ? v + bias[c] : v, at);
        }
    }

    __device__ void operator()(int64_t at) const {
        const sn_place4 o = sn_place_of_element(octets, at);
        const int64_t pixel = (o.n * p.oh + o.i) * p.ow + o.j, first = 8 * o.c;
        uint8_t *codes = code ? code + pixel * sn_code_pixel(p) : NULL;
        conv_pool_winner<float> win[8];
#pragma unroll
        for (int e = 0; e < 8; e++)
            win[e].place = -1;
        for (int64_t a = 0; a < p.kernel[0]; a++) {
            const int64_t i = o.i * p.stride[0] - p.pad[0] + a;
            for (int64_t b = 0; i >= 0 && i < p.H && b < p.kernel[1]; b++) {
                const int64_t j = o.j * p.stride[1] - p.pad[2] + b;
                if (j >= 0 && j < p.W)
                    meet(win, big + ((o.n * p.H + i) * p.W + j) * p.C, first,
                         (int)(a * p.kernel[1] + b));
            }
        }
        octet bits = {0, 0, 0};
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (first + e < p.C) {
                y[pixel * p.C + first + e] = (M)pooled(win[e], relu);
                if (codes)
                    note(p, win[e], relu, e, &bits, codes + first + e);
            }
        if (codes)
            put_octet(p, bits, codes, o.c);
    }
};

/* 2 x 2 windows side by side, channels in whole octets: eight channels at once. */
static bool is_even(const sn_pool *p, const void *big, const void *small) {
    bool even = p->C % 8 == 0 && sn_aligned(big) && sn_aligned(small);
    for (int i = 0; i < 2; i++)
        even = even && p->kernel[i] == 2 && p->stride[i] == 2 && p->pad[2 * i] == 0;
    return even && 2 * p->oh <= p->H && 2 * p->ow <= p->W;
}

typedef struct {
    float v[8];
} eight;

static __device__ __forceinline__ eight load_eight(const float *from) {
    const float4 a = ((const float4 *)from)[0], b = ((const float4 *)from)[1];
    const eight e = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    return e;
}

static __device__ __forceinline__ void store_eight(float *to, const eight &e) {
    ((float4 *)to)[0] = make_float4(e.v[0], e.v[1], e.v[2], e.v[3]);
    ((float4 *)to)[1] = make_float4(e.v[4], e.v[5], e.v[6], e.v[7]);
}

template <class M> struct __align__(16) eight_halves {
    M v[8];
};

template <class M> static __device__ __forceinline__ eight load_eight(const M *from) {
    const eight_halves<M> h = *(const eight_halves<M> *)from;
    eight e;
#pragma unroll
    for (int k = 0; k < 8; k++)
        e.v[k] = h.v[k];
    return e;
}

template <class M> static __device__ __forceinline__ void store_eight(M *to, const eight &e) {
    eight_halves<M> h;
#pragma unroll
    for (int k = 0; k < 8; k++)
        h.v[k] = (M)e.v[k];
    *(eight_halves<M> *)to = h;
}

template <class M> struct conv_pool_take_even {
    sn_pool p;
    bool relu;
    sn_parts octets;
    const M *big;
    sn_line<M> bias, scale;
    M *y;
    uint8_t *code;

    __device__ void operator()(int64_t at) const {
        const sn_place4 o = sn_place_of_element(octets, at);
        const int64_t pixel = (o.n * p.oh + o.i) * p.ow + o.j, first = 8 * o.c;
        const M *from = big + ((o.n * p.H + 2 * o.i) * p.W + 2 * o.j) * p.C + first;
        const eight v[4] = {load_eight(from), load_eight(from + p.C), load_eight(from + p.W * p.C),
                            load_eight(from + p.W * p.C + p.C)};
        eight best;
        octet bits = {0, 0, 0};
#pragma unroll
        for (int e = 0; e < 8; e++) {
            conv_pool_winner<float> win = {0, -1};
            const float a = scale.data ? scale[first + e] : 1.0f;
            const float b = bias.data ? bias[first + e] : 0.0f;
#pragma unroll
            for (int i = 0; i < 4; i++)
                win.meet(scale.data ? v[i].v[e] * a + b : v[i].v[e] + b, i);
            best.v[e] = pooled(win, relu);
            note(p, win, relu, e, &bits, (uint8_t *)NULL);
        }
        store_eight(y + pixel * p.C + first, best);
        if (code)
            put_octet(p, bits, code + pixel * sn_code_pixel(p), o.c);
    }
};

template <class M>
static void take(const sn_cuda_call *c, const sn_conv_pool *q, const void *big,
                 const sn_cuda_conv_pool *o) {
    const sn_parts octets = sn_parts_of(q->p.oh, q->p.ow, sn_code_plane(q->p));
    const sn_line<M> bias = sn_line_at<M>(o->o.bias, o->o.types.bias),
                     scale = sn_line_at<M>(o->o.scale, o->o.types.bias);
    const M *from = (const M *)big;
    M *y = (M *)o->o.y;
    const conv_pool_take<M> f = {q->p, q->relu, octets, from, bias, scale, y, o->code};
    const conv_pool_take_even<M> even = {q->p, q->relu, octets, from, bias, scale, y, o->code};
    if (is_even(&q->p, big, y))
        sn_each(c, count_octets(&q->p), even);
    else
        sn_each(c, count_octets(&q->p), f);
}

/* One of the types such results have. */
#define BY_SMALL(dtype, f, ...)                                                                    \
    ((dtype) == SNUG_F32   ? f<float>(__VA_ARGS__)                                                 \
     : (dtype) == SNUG_F16 ? f<sn_half>(__VA_ARGS__)                                               \
                           : f<sn_brain>(__VA_ARGS__))

void sn_pool_take(const sn_cuda_call *c, const sn_conv_pool *q, const void *big,
                  const sn_cuda_conv_pool *o) {
    BY_SMALL(o->o.types.dtype, take, c, q, big, o);
}

template <class M> struct conv_pool_spread_one {
    conv_pool_spread<M> spread;
    sn_parts big_parts;
    M *big;

    __device__ void operator()(int64_t at) const {
        const sn_place4 o = sn_place_of_element(big_parts, at);
        big[at] = (M)spread.at(o.n, o.i, o.j, o.c);
    }
};

/* The windows there are, and at the right and lower edge places that no window has. A thread has
 * N channels, 16 bytes: half of an octet, or a whole one of halves; so neighbours store side by
 * side. */
template <class M> struct conv_pool_spread_even {
    enum { N = sn_is_half<M>::yes ? 8 : 4 };
    struct __align__(16) pack {
        M v[N];
    };
    sn_pool p;
    sn_parts packs; /* of ceil(H / 2) x ceil(W / 2) windows */
    const M *dy;
    const uint8_t *code;
    M *big;

    __device__ void operator()(int64_t at) const {
        const sn_place4 o = sn_place_of_element(packs, at);
        const bool there = o.i < p.oh && o.j < p.ow;
        const int64_t pixel = (o.n * p.oh + o.i) * p.ow + o.j, plane = sn_code_plane(p);
        const uint8_t *codes = code + pixel * sn_code_pixel(p) + N * o.c / 8;
        pack d = {};
        unsigned column = 0, row = 0, alive = 0;
        if (there) {
            const int half = N * (int)o.c % 8;
            d = *(const pack *)(dy + pixel * p.C + N * o.c);
            column = (unsigned)codes[0] >> half;
            row = (unsigned)codes[plane] >> half;
            alive = (unsigned)codes[2 * plane] >> half;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const unsigned here = alive & (i % 2 ? column : ~column) & (i / 2 ? row : ~row);
            const int64_t r = 2 * o.i + i / 2, s = 2 * o.j + i % 2;
            pack v;
#pragma unroll
            for (int k = 0; k < N; k++)
                v.v[k] = here >> k & 1u ? d.v[k] : (M)0;
            if (r < p.H && s < p.W)
                *(pack *)(big + ((o.n * p.H + r) * p.W + s) * p.C + N * o.c) = v;
        }
    }
};

template <class M>
static void spread_all(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                       void *big) {
    const sn_conv *v = &q->v;
    const sn_pool *p = &q->p;
    const M *dy = (const M *)o->o.dy;
    M *to = (M *)big;
    const int64_t down = sn_cuda_ceil(p->H, 2), across = sn_cuda_ceil(p->W, 2);
    const conv_pool_spread_one<M> f = {spread_with<M>(p, dy, o->code),
                                       sn_parts_of(v->oh, v->ow, v->O), to};
    const int64_t packs = p->C / conv_pool_spread_even<M>::N;
    const conv_pool_spread_even<M> even = {*p, sn_parts_of(down, across, packs), dy, o->code, to};
    if (is_even(p, big, dy))
        sn_each(c, p->N * down * across * packs, even);
    else
        sn_each(c, v->N * v->oh * v->ow * v->O, f);
}

void sn_pool_spread(const sn_cuda_call *c, const sn_conv_pool *q, const sn_cuda_conv_pool *o,
                    void *big) {
    BY_SMALL(o->o.types.dtype, spread_all, c, q, o, big);
}
