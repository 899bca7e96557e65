/* pool.cu: pooling over x [N, H, W, C]; y is [N, oh, ow, C].
 *
 * 1. The code of maxpool is one byte per output: the place of the maximum in its window, row by
 * row.
 * 2. Padding never wins and is never counted; the first maximum wins; a NaN beats every number.
 * 3. Each element of dx adds up the windows that hold it, in the order of window places.
 *
 * A thread has one pixel's channel, or four of them where channels of f32 or halves divide
 * by four. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/places.h"

template <class T, int N> struct __align__(sizeof(T) * N) pack_of {
    T v[N];
};

/* Pixels of `over` are counted through, with the packs of their channels; the others are looked
 * up. */
typedef struct {
    int64_t H, W, oh, ow, kernel[2], stride[2], pad[2], packs;
    sn_parts over;
    sn_divisor step[2];
} pool;

static pool pool_of(const snug_type *big, const snug_type *small, const sn_attrs_pool *a,
                    bool backward, int width) {
    const snug_type *over = backward ? big : small;
    pool p = {big->dims[1],
              big->dims[2],
              small->dims[1],
              small->dims[2],
              {a->kernel[0], a->kernel[1]},
              {a->stride[0], a->stride[1]},
              {a->pad[0], a->pad[2]},
              big->dims[3] / width,
              sn_parts_of(over->dims[1], over->dims[2], big->dims[3] / width),
              {sn_divisor_of(a->stride[0]), sn_divisor_of(a->stride[1])}};
    return p;
}

/* pool_grad begins like pool: kernel, stride, pad. */
static sn_attrs_pool head_of(const sn_attrs_pool_grad *a) {
    sn_attrs_pool head;
    memcpy(head.kernel, a->kernel, sizeof head.kernel);
    memcpy(head.stride, a->stride, sizeof head.stride);
    memcpy(head.pad, a->pad, sizeof head.pad);
    return head;
}

/* Places [from, to) of a window along one axis that lie inside x, and where the window starts. */
typedef struct {
    int64_t from, to, start;
} span;
static __device__ __forceinline__ span window_of(const pool &p, int axis, int64_t o) {
    const int64_t start = o * p.stride[axis] - p.pad[axis];
    const int64_t room = (axis == 0 ? p.H : p.W) - start;
    span s = {start < 0 ? -start : 0, room < p.kernel[axis] ? room : p.kernel[axis], start};
    s.to = s.to > s.from ? s.to : s.from;
    return s;
}

/* Windows [first, last] along an axis that hold input position `at`; place = shifted - window *
 * stride is where. */
typedef struct {
    int64_t first, last, shifted;
} holders;
static __device__ __forceinline__ holders windows_over(const pool &p, int axis, int64_t at) {
    const int64_t shifted = at + p.pad[axis], most = (axis == 0 ? p.oh : p.ow) - 1;
    const int64_t last = sn_div(shifted, p.step[axis]), past = shifted - p.kernel[axis];
    const holders h = {past < 0 ? 0 : sn_div(past, p.step[axis]) + 1, last < most ? last : most,
                       shifted};
    return h;
}

/* --- forward ---------------------------------------------------------------------------------- */
template <class T, int N> struct maxpool_f {
    pool p;
    const pack_of<T, N> *x;
    pack_of<T, N> *y;
    pack_of<uint8_t, N> *code;
    __device__ void operator()(int64_t i) const {
        const sn_place4 s = sn_place_of_element(p.over, i);
        const span r = window_of(p, 0, s.i), c = window_of(p, 1, s.j);
        pack_of<T, N> best;
        pack_of<uint8_t, N> place;
#pragma unroll
        for (int k = 0; k < N; k++) {
            best.v[k] = (T)-INFINITY;
            place.v[k] = 0;
        }
        bool first = true;
        for (int64_t a = r.from; a < r.to; a++)
            for (int64_t b = c.from; b < c.to; b++) {
                const pack_of<T, N> v =
                    x[((s.n * p.H + r.start + a) * p.W + c.start + b) * p.packs + s.c];
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (first || v.v[k] > best.v[k] ||
                        (v.v[k] != v.v[k] && best.v[k] == best.v[k])) {
                        best.v[k] = v.v[k];
                        place.v[k] = (uint8_t)(a * p.kernel[1] + b);
                    }
                first = false;
            }
        y[i] = best;
        code[i] = place;
    }
};

template <class T, int N> struct avgpool_f {
    pool p;
    const pack_of<T, N> *x;
    pack_of<T, N> *y;
    __device__ void operator()(int64_t i) const {
        const sn_place4 s = sn_place_of_element(p.over, i);
        const span r = window_of(p, 0, s.i), c = window_of(p, 1, s.j);
        double sum[N] = {};
        for (int64_t a = r.from; a < r.to; a++)
            for (int64_t b = c.from; b < c.to; b++) {
                const pack_of<T, N> v =
                    x[((s.n * p.H + r.start + a) * p.W + c.start + b) * p.packs + s.c];
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += (double)v.v[k];
            }
        const int64_t cells = (r.to - r.from) * (c.to - c.from);
        pack_of<T, N> out;
#pragma unroll
        for (int k = 0; k < N; k++)
            out.v[k] = cells > 0 ? (T)(sum[k] / (double)cells) : (T)0;
        y[i] = out;
    }
};

/* The elements that were the maxima. */
template <class T> struct pick_f {
    pool p;
    const T *x;
    const uint8_t *code;
    T *y;
    __device__ void operator()(int64_t i) const {
        const sn_place4 s = sn_place_of_element(p.over, i);
        const int64_t row = s.i * p.stride[0] - p.pad[0] + code[i] / p.kernel[1];
        const int64_t col = s.j * p.stride[1] - p.pad[1] + code[i] % p.kernel[1];
        const bool inside = row >= 0 && row < p.H && col >= 0 && col < p.W;
        y[i] = inside ? x[((s.n * p.H + row) * p.W + col) * p.packs + s.c] : (T)0;
    }
};

/* --- backward --------------------------------------------------------------------------------- */
/* Every window that holds the element, where it was the maximum. */
template <class T, int N> struct max_backward_f {
    pool p;
    const pack_of<T, N> *dy;
    const pack_of<uint8_t, N> *code;
    pack_of<T, N> *dx;
    __device__ void operator()(int64_t i) const {
        const sn_place4 s = sn_place_of_element(p.over, i);
        const holders down = windows_over(p, 0, s.i), across = windows_over(p, 1, s.j);
        const int first = (int)across.first, last = (int)across.last;
        const int width = (int)p.kernel[1], step = (int)p.stride[1];
        double sum[N] = {};
        for (int row = (int)down.last; row >= (int)down.first; row--) {
            const int line = (int)(down.shifted - row * p.stride[0]) * width + (int)across.shifted;
            const int64_t start = (s.n * p.oh + row) * p.ow * p.packs + s.c;
            for (int col = last; col >= first; col--) {
                const int64_t at = start + col * p.packs;
                const pack_of<T, N> g = dy[at];
                const pack_of<uint8_t, N> was = code[at];
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (was.v[k] == line - col * step)
                        sum[k] += (double)g.v[k];
            }
        }
        pack_of<T, N> out;
#pragma unroll
        for (int k = 0; k < N; k++)
            out.v[k] = (T)sum[k];
        dx[i] = out;
    }
};

/* The same where windows have at most 3 x 3 places and a stride of two: then two by two elements
 * are in the same two by two windows at most, which a thread looks at once. Item i: image, rows and
 * columns of which a window starts at the first, and the channels' pack. */
template <class T, int N> struct max_backward_by_two {
    pool p; /* over: such rows and columns */
    const pack_of<T, N> *dy;
    const pack_of<uint8_t, N> *code;
    pack_of<T, N> *dx;
    __device__ void operator()(int64_t i) const {
        const sn_place4 s = sn_place_of_element(p.over, i);
        const int high = (int)p.kernel[0], wide = (int)p.kernel[1];
        pack_of<T, N> g[2][2];
        pack_of<uint8_t, N> was[2][2];
        bool there[2][2];
#pragma unroll
        for (int a = 0; a < 2; a++)
#pragma unroll
            for (int b = 0; b < 2; b++) {
                const int64_t row = s.i - a, col = s.j - b;
                const int64_t at = ((s.n * p.oh + row) * p.ow + col) * p.packs + s.c;
                there[a][b] = row >= 0 && row < p.oh && col >= 0 && col < p.ow;
                if (there[a][b]) {
                    g[a][b] = dy[at];
                    was[a][b] = code[at];
                }
            }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int64_t row = 2 * s.i + e / 2 - p.pad[0], col = 2 * s.j + e % 2 - p.pad[1];
            pack_of<T, N> out = {};
#pragma unroll
            for (int k = 0; k < N; k++) {
                double sum = 0;
#pragma unroll
                for (int w = 0; w < 4; w++) {
                    const int r = e / 2 + 2 * (w / 2), c = e % 2 + 2 * (w % 2);
                    if (there[w / 2][w % 2] && r < high && c < wide &&
                        was[w / 2][w % 2].v[k] == r * wide + c)
                        sum += (double)g[w / 2][w % 2].v[k];
                }
                out.v[k] = (T)sum;
            }
            if (row >= 0 && row < p.H && col >= 0 && col < p.W)
                dx[((s.n * p.H + row) * p.W + col) * p.packs + s.c] = out;
        }
    }
};

/* The mean's share of every window. */
template <class T, int N> struct mean_backward_f {
    pool p;
    const pack_of<T, N> *dy;
    pack_of<T, N> *dx;
    __device__ void operator()(int64_t i) const {
        const sn_place4 s = sn_place_of_element(p.over, i);
        const holders down = windows_over(p, 0, s.i), across = windows_over(p, 1, s.j);
        double sum[N] = {};
        for (int64_t row = down.last; row >= down.first; row--)
            for (int64_t col = across.last; col >= across.first; col--) {
                const span r = window_of(p, 0, row), c = window_of(p, 1, col);
                const double cells = (double)((r.to - r.from) * (c.to - c.from));
                const pack_of<T, N> g = dy[((s.n * p.oh + row) * p.ow + col) * p.packs + s.c];
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += (double)g.v[k] / cells;
            }
        pack_of<T, N> out;
#pragma unroll
        for (int k = 0; k < N; k++)
            out.v[k] = (T)sum[k];
        dx[i] = out;
    }
};

/* --- calls ------------------------------------------------------------------------------------ */
/* Channels a thread takes. */
static int width_for(const sn_cuda_call *c) {
    const sn_call *k = c->call;
    bool ok = k->in[0].type.dims[3] % 4 == 0 && k->in[0].type.dtype != SNUG_F64;
    for (int i = 0; i < k->n_in; i++)
        ok = ok && sn_aligned(k->in[i].data);
    for (int i = 0; i < k->n_out; i++)
        ok = ok && sn_aligned(k->out[i].data);
    return ok ? 4 : 1;
}

template <class T, int N> static void maxpool_by(const sn_cuda_call *c) {
    const snug_view *x = &c->call->in[0], *y = &c->call->out[0];
    sn_each(c, sn_cuda_elements(y) / N,
            maxpool_f<T, N>{pool_of(&x->type, &y->type, &c->call->attrs->pool, false, N),
                            (const pack_of<T, N> *)x->data, (pack_of<T, N> *)y->data,
                            (pack_of<uint8_t, N> *)c->call->out[1].data});
}
template <class T, int N> static void avgpool_by(const sn_cuda_call *c) {
    const snug_view *x = &c->call->in[0], *y = &c->call->out[0];
    sn_each(c, sn_cuda_elements(y) / N,
            avgpool_f<T, N>{pool_of(&x->type, &y->type, &c->call->attrs->pool, false, N),
                            (const pack_of<T, N> *)x->data, (pack_of<T, N> *)y->data});
}
static bool goes_by_two(const pool *p) {
    bool ok = true;
    for (int i = 0; i < 2; i++)
        ok = ok && p->stride[i] == 2 && p->kernel[i] >= 2 && p->kernel[i] <= 3;
    return ok;
}

template <class T, int N> static void backward_by_two(const sn_cuda_call *c, pool p) {
    const snug_view *dy = &c->call->in[0], *dx = &c->call->out[0];
    const int64_t down = (p.H - 1 + p.pad[0]) / 2 + 1, across = (p.W - 1 + p.pad[1]) / 2 + 1;
    p.over = sn_parts_of(down, across, p.packs);
    sn_each(c, p.H * p.W > 0 ? dx->type.dims[0] * down * across * p.packs : 0,
            max_backward_by_two<T, N>{p, (const pack_of<T, N> *)dy->data,
                                      (const pack_of<uint8_t, N> *)c->call->in[1].data,
                                      (pack_of<T, N> *)dx->data});
}

template <class T, int N> static void backward_by(const sn_cuda_call *c) {
    const snug_view *dy = &c->call->in[0], *dx = &c->call->out[0];
    const sn_attrs_pool head = head_of(&c->call->attrs->pool_grad);
    const pool p = pool_of(&dx->type, &dy->type, &head, true, N);
    const int64_t n = sn_cuda_elements(dx) / N;
    if (c->call->n_in > 1 && goes_by_two(&p))
        backward_by_two<T, N>(c, p);
    else if (c->call->n_in > 1)
        sn_each(c, n,
                max_backward_f<T, N>{p, (const pack_of<T, N> *)dy->data,
                                     (const pack_of<uint8_t, N> *)c->call->in[1].data,
                                     (pack_of<T, N> *)dx->data});
    else
        sn_each(
            c, n,
            mean_backward_f<T, N>{p, (const pack_of<T, N> *)dy->data, (pack_of<T, N> *)dx->data});
}
template <class T> static void pick(const sn_cuda_call *c) {
    const snug_view *x = &c->call->in[0], *y = &c->call->out[0];
    const sn_attrs_pool head = head_of(&c->call->attrs->pool_grad);
    sn_each(c, sn_cuda_elements(y),
            pick_f<T>{pool_of(&x->type, &y->type, &head, false, 1), sn_in<T>(c, 0),
                      sn_in<uint8_t>(c, 1), sn_out<T>(c, 0)});
}

#define POOLING(name, by, describe)                                                                \
    static snug_status run_##name(const sn_cuda_call *c, snug_error *err) {                        \
        if (sn_dtype_in(c, 0) == SNUG_F32 && width_for(c) == 4)                                    \
            by<float, 4>(c);                                                                       \
        else if (sn_dtype_in(c, 0) == SNUG_F32)                                                    \
            by<float, 1>(c);                                                                       \
        else if (sn_dtype_in(c, 0) == SNUG_F64)                                                    \
            by<double, 1>(c);                                                                      \
        else if (sn_dtype_in(c, 0) == SNUG_F16 && width_for(c) == 4)                               \
            by<sn_half, 4>(c);                                                                     \
        else if (sn_dtype_in(c, 0) == SNUG_F16)                                                    \
            by<sn_half, 1>(c);                                                                     \
        else if (sn_dtype_in(c, 0) == SNUG_BF16 && width_for(c) == 4)                              \
            by<sn_brain, 4>(c);                                                                    \
        else if (sn_dtype_in(c, 0) == SNUG_BF16)                                                   \
            by<sn_brain, 1>(c);                                                                    \
        else                                                                                       \
            return sn_cuda_no_kernel(sn_dtype_in(c, 0), err);                                      \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    SN_CUDA_FLOATS(name, run_##name, describe, 0)

static snug_status check_window(const int64_t kernel[2], snug_error *err) {
    if (kernel[0] > 256 || kernel[1] > 256 || kernel[0] * kernel[1] > 256)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a max-pool window of %lld x %lld has more than 256 places, which one byte "
                       "cannot tell apart; pool in two steps",
                       (long long)kernel[0], (long long)kernel[1]);
    return SNUG_OK;
}
static snug_status describe_maxpool(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                    snug_error *err) {
    (void)g;
    SNUG_TRY(check_window(d->attrs.pool.kernel, err));
    out->opaque_bytes[1] = (size_t)sn_cuda_count(&d->out[0], 0, d->out[0].rank);
    return SNUG_OK;
}
static snug_status describe_code(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                 snug_error *err) {
    (void)g, (void)out;
    return check_window(d->attrs.pool_grad.kernel, err);
}

POOLING(maxpool, maxpool_by, describe_maxpool)
POOLING(avgpool, avgpool_by, NULL)
POOLING(maxpool_grad, backward_by, describe_code)
POOLING(avgpool_grad, backward_by, NULL)

static snug_status run_pick(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, pick, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(maxpool_pick, run_pick, describe_code, 0)
