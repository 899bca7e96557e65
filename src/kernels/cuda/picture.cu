/* picture.cu: resize, warp and their gradients, of pictures [N, H, W, C].
 *
 * A resize is a linear map per axis. A first launch writes the taps of every output of both axes
 * down: the first input, how many, and their weights (kernels/cpu/resize_taps.c says which); for
 * the gradient also the outputs that each input is a tap of, which are neighbours. Then a thread
 * makes one element. Positions are f32 and rounded as TensorFlow rounds them, so nothing is
 * contracted.
 *
 * A warped pixel has up to four taps. Its gradient goes from the picture: a thread has one element
 * and goes through the result's pixels in order, as the processor adds them. */
#include "kernels/cuda/own.h"
#include "kernels/cuda/wave.h"
#include "kernels/cuda/widen.h"

#include <float.h>

extern "C" {
#include "op/picture_attrs.h"
}

#define MUL(a, b) __fmul_rn((a), (b))
#define ADD(a, b) __fadd_rn((a), (b))
#define SUB(a, b) __fsub_rn((a), (b))

/* --- taps of a resize ------------------------------------------------------------------------- */
typedef struct {
    int64_t from, to;
    int method;
    bool antialias, by_kernel;
    float step, inverse, stretch, radius; /* from / to; 1 / (to / from) */
    int64_t most;                         /* taps of an output, at most */
} axis;

static axis axis_of(const sn_attrs_resize *a, const snug_type *picture, const snug_type *result,
                    int k) {
    static const float radius[SN_N_RESIZE] = {0, 1, 2, 0, 3, 5, 1.5f, 2};
    const int64_t from = picture->dims[1 + k], to = result->dims[1 + k];
    axis x = {from, to, (int)a->method, a->antialias != 0, false, 0, 0, 1, radius[a->method], 1};
    if (from == 0 || to == 0)
        return x;
    x.step = (float)from / (float)to;
    x.inverse = 1 / ((float)to / (float)from);
    x.by_kernel =
        a->method >= SN_RESIZE_LANCZOS3 ||
        (x.antialias && (a->method == SN_RESIZE_BILINEAR || a->method == SN_RESIZE_BICUBIC));
    x.stretch = x.antialias && x.inverse > 1 ? x.inverse : 1;
    const double reach = x.by_kernel                   ? 2.0 * x.radius * x.stretch + 2
                         : a->method == SN_RESIZE_AREA ? (double)x.step + 3
                                                       : 4;
    x.most = reach < (double)from ? (int64_t)reach : from;
    return x;
}

static __device__ __forceinline__ float keys_cubic(float x) {
    if (x >= 2)
        return 0;
    return x >= 1 ? ADD(MUL(SUB(MUL(ADD(MUL(-0.5f, x), 2.5f), x), 4), x), 2)
                  : ADD(MUL(MUL(SUB(MUL(1.5f, x), 2.5f), x), x), 1);
}
static __device__ __forceinline__ float lanczos(float x, float radius) {
    const float pi = 3.14159265358979f;
    if (x > radius)
        return 0;
    if (x <= 1e-3f)
        return 1;
    const float turn = MUL(pi, x);
    const float sines = MUL(MUL(radius, (float)sn_wave((double)turn, 0)),
                            (float)sn_wave((double)(turn / radius), 0));
    return sines / MUL(MUL(MUL(pi, pi), x), x);
}
/* As the C library's expf to the bit: a card's own differs in the last place. */
static __device__ __forceinline__ float gaussian(float x) {
    return x >= 1.5f ? 0 : (float)exp((double)MUL(MUL(-2, x), x));
}
static __device__ __forceinline__ float mitchell(float x) {
    if (x >= 2)
        return 0;
    return x >= 1
               ? ADD(MUL(SUB(MUL(ADD(MUL(-7.0f / 18.0f, x), 2), x), 10.0f / 3.0f), x), 16.0f / 9.0f)
               : ADD(MUL(MUL(SUB(MUL(7.0f / 6.0f, x), 2), x), x), 8.0f / 9.0f);
}
static __device__ __forceinline__ float kernel_at(const axis &a, float x) {
    if (a.method == SN_RESIZE_BILINEAR)
        return x < 1 ? SUB(1, x) : 0;
    if (a.method == SN_RESIZE_GAUSSIAN)
        return gaussian(x);
    if (a.method == SN_RESIZE_MITCHELL)
        return mitchell(x);
    return a.method == SN_RESIZE_BICUBIC ? keys_cubic(x) : lanczos(x, a.radius);
}

typedef struct {
    int64_t first, n;
} taps;

/* Inputs [low, high] as far as there are any; one at least. */
static __device__ __forceinline__ taps between(const axis &a, float low, float high) {
    const int64_t l = (int64_t)low, h = (int64_t)high, last = a.from - 1;
    const int64_t first = l < 0 ? 0 : l > last ? last : l;
    const int64_t end = h < first ? first : h > last ? last : h;
    const taps t = {first, end - first + 1};
    return t;
}
/* Where output o lies among the centres of the inputs; the same from the edge, as kernels have
 * it. */
static __device__ __forceinline__ float centre_of(const axis &a, int64_t o) {
    return SUB(MUL(ADD((float)o, 0.5f), a.step), 0.5f);
}
static __device__ __forceinline__ float sample_of(const axis &a, int64_t o) {
    return MUL(ADD((float)o, 0.5f), a.inverse);
}

static __device__ taps taps_of(const axis &a, int64_t o) {
    if (a.by_kernel) {
        const float at = sample_of(a, o), reach = MUL(a.radius, a.stretch);
        return between(a, ceilf(SUB(SUB(at, reach), 0.5f)), floorf(SUB(ADD(at, reach), 0.5f)));
    }
    if (a.method == SN_RESIZE_NEAREST) {
        const float at = floorf(MUL(ADD((float)o, 0.5f), a.step));
        return between(a, at, at);
    }
    if (a.method == SN_RESIZE_AREA)
        return between(a, floorf(MUL((float)o, a.step)),
                       SUB(ceilf(MUL((float)(o + 1), a.step)), 1));
    const float at = centre_of(a, o), below = floorf(at);
    return a.method == SN_RESIZE_BILINEAR ? between(a, below, ceilf(at))
                                          : between(a, SUB(below, 1), ADD(below, 2));
}

/* Weight of input i, before weights are made to add up to 1. */
static __device__ float weight_of(const axis &a, int64_t o, taps t, int64_t i) {
    if (a.by_kernel)
        return kernel_at(a, fabsf(SUB(ADD((float)i, 0.5f), sample_of(a, o))) / a.stretch);
    if (a.method == SN_RESIZE_NEAREST)
        return 1;
    if (a.method == SN_RESIZE_AREA) {
        const float from = MUL((float)o, a.step), to = MUL((float)(o + 1), a.step), at = (float)i;
        return SUB(fminf(ADD(at, 1), to), fmaxf(at, from)) / a.step;
    }
    const float at = centre_of(a, o), below = floorf(at), share = SUB(at, below);
    if (a.method == SN_RESIZE_BILINEAR)
        return t.n == 1 ? 1 : i == t.first ? SUB(1, share) : share;
    const float rounded = rintf(MUL(share, 1024)) / 1024;
    return keys_cubic(fabsf(SUB((float)(i - (int64_t)below), rounded)));
}

/* The taps of one axis written down; low and high: of input i, the outputs it is a tap of. */
typedef struct {
    int64_t most;
    int64_t *first, *n, *low, *high;
    float *weight; /* [to, most] */
} map;

struct taps_f {
    axis a;
    map m;
    __device__ void operator()(int64_t o) const {
        const taps t = taps_of(a, o);
        const bool shared = a.by_kernel || a.method == SN_RESIZE_BICUBIC;
        float sum = 0;
        for (int64_t i = 0; i < t.n && shared; i++)
            sum = ADD(sum, weight_of(a, o, t, t.first + i));
        const float scale = !shared || fabsf(sum) < 1000 * FLT_MIN ? 1 : 1 / sum;
        for (int64_t i = 0; i < t.n; i++)
            m.weight[o * m.most + i] = MUL(weight_of(a, o, t, t.first + i), scale);
        m.first[o] = t.first;
        m.n[o] = t.n;
    }
};

/* The first output in [0, to) for which the end of its taps (`end`) or their start lies behind i:
 * both grow with the output. */
static __device__ int64_t first_behind(const map &m, int64_t to, int64_t i, bool end) {
    int64_t low = 0, high = to;
    while (low < high) {
        const int64_t mid = (low + high) / 2;
        if ((end ? m.first[mid] + m.n[mid] - 1 : m.first[mid]) >= i)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}
struct inverse_f {
    axis a;
    map m;
    __device__ void operator()(int64_t i) const {
        m.low[i] = first_behind(m, a.to, i, true);
        m.high[i] = first_behind(m, a.to, i + 1, false);
    }
};

/* --- resize ----------------------------------------------------------------------------------- */
static size_t map_bytes(const axis *a, bool back) {
    return (size_t)(a->to * 2 + (back ? a->from * 2 : 0)) * sizeof(int64_t) +
           ((size_t)(a->to * a->most) * sizeof(float) + 7) / 8 * 8;
}

static map map_in(char **at, const axis *a, bool back) {
    int64_t *words = (int64_t *)*at;
    map m = {a->most, words, words + a->to, NULL, NULL, NULL};
    words += 2 * a->to;
    if (back) {
        m.low = words;
        m.high = words + a->from;
        words += 2 * a->from;
    }
    m.weight = (float *)words;
    *at += map_bytes(a, back);
    return m;
}

template <class T> struct resize_f {
    map rows, columns;
    const T *x;
    T *y;
    int64_t H, W;
    sn_divisor C, ow, oh;
    __device__ void operator()(int64_t i) const {
        const int64_t pixel = sn_div(i, C), c = i - pixel * C.d, line = sn_div(pixel, ow);
        const int64_t col = pixel - line * ow.d, n = sn_div(line, oh), row = line - n * oh.d;
        double sum = 0;
        for (int64_t a = 0; a < rows.n[row]; a++) {
            const double w = (double)rows.weight[row * rows.most + a];
            const T *from = x + ((n * H + rows.first[row] + a) * W + columns.first[col]) * C.d + c;
            for (int64_t b = 0; b < columns.n[col]; b++)
                sum += w * (double)columns.weight[col * columns.most + b] * (double)from[b * C.d];
        }
        y[i] = (T)sum;
    }
};

template <class T> struct resize_grad_f {
    map rows, columns;
    const T *dy;
    T *dx;
    int64_t oh, ow;
    sn_divisor C, W, H;
    __device__ void operator()(int64_t i) const {
        const int64_t pixel = sn_div(i, C), c = i - pixel * C.d, line = sn_div(pixel, W);
        const int64_t col = pixel - line * W.d, n = sn_div(line, H), row = line - n * H.d;
        double sum = 0;
        for (int64_t a = rows.low[row]; a < rows.high[row]; a++) {
            const double w = (double)rows.weight[a * rows.most + row - rows.first[a]];
            for (int64_t b = columns.low[col]; b < columns.high[col]; b++)
                sum += w * (double)columns.weight[b * columns.most + col - columns.first[b]] *
                       (double)dy[((n * oh + a) * ow + b) * C.d + c];
        }
        dx[i] = (T)sum;
    }
};

template <class T> static void resize(const sn_cuda_call *c, bool back) {
    const snug_view *in = &c->call->in[0], *out = &c->call->out[0];
    const snug_type *picture = back ? &out->type : &in->type,
                    *result = back ? &in->type : &out->type;
    const int64_t count = sn_cuda_elements(out);
    char *at = (char *)c->call->workspace;
    map maps[2];
    for (int k = 0; k < 2 && count > 0; k++) {
        const axis a = axis_of(&c->call->attrs->resize, picture, result, k);
        maps[k] = map_in(&at, &a, back);
        sn_each(c, a.to, taps_f{a, maps[k]});
        if (back)
            sn_each(c, a.from, inverse_f{a, maps[k]});
    }
    const int64_t *p = picture->dims, *r = result->dims;
    if (count > 0 && back)
        sn_each(c, count,
                resize_grad_f<T>{maps[0], maps[1], sn_in<T>(c, 0), sn_out<T>(c, 0), r[1], r[2],
                                 sn_divisor_of(p[3]), sn_divisor_of(p[2]), sn_divisor_of(p[1])});
    else if (count > 0)
        sn_each(c, count,
                resize_f<T>{maps[0], maps[1], sn_in<T>(c, 0), sn_out<T>(c, 0), p[1], p[2],
                            sn_divisor_of(r[3]), sn_divisor_of(r[2]), sn_divisor_of(r[1])});
}

static snug_status describe_resize(const sn_opdesc *d, bool back, sn_variant *out) {
    const snug_type *picture = back ? &d->out[0] : &d->in[0],
                    *result = back ? &d->in[0] : &d->out[0];
    for (int k = 0; k < 2; k++) {
        const axis a = axis_of(&d->attrs.resize, picture, result, k);
        out->workspace_bytes += map_bytes(&a, back);
    }
    return SNUG_OK;
}
#define RESIZE(name, back)                                                                         \
    static snug_status run_##name(const sn_cuda_call *c, snug_error *err) {                        \
        SN_BY_REAL(sn_dtype_in(c, 0), err, resize, c, back);                                       \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    static snug_status describe_##name(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,       \
                                       snug_error *err) {                                          \
        (void)g, (void)err;                                                                        \
        return describe_resize(d, back, out);                                                      \
    }                                                                                              \
    SN_CUDA_WIDENED(name, run_##name, describe_##name)
RESIZE(resize, false)
RESIZE(resize_grad, true)

/* --- warp ------------------------------------------------------------------------------------- */
#define FAR 1e9f /* positions beyond it are outside in every mode that repeats the picture */

typedef struct {
    int mode;
    bool nearest;
    int64_t height, width;         /* of the picture */
    int64_t out_height, out_width; /* of the result */
    sn_divisor channels, columns, rows;
    const float *transforms; /* eight for each picture */
} warp;

static warp warp_of(const sn_cuda_call *c, const snug_type *picture, const snug_type *result,
                    const snug_type *over) {
    /* warp_grad begins like warp. */
    const sn_attrs_warp_grad *a = &c->call->attrs->warp_grad;
    const warp w = {(int)a->mode,
                    a->nearest != 0,
                    picture->dims[1],
                    picture->dims[2],
                    result->dims[1],
                    result->dims[2],
                    sn_divisor_of(over->dims[3]),
                    sn_divisor_of(over->dims[2]),
                    sn_divisor_of(over->dims[1]),
                    sn_in<float>(c, 1)};
    return w;
}

/* dcba|abcd|dcba */
static __device__ float reflect(float at, int64_t n) {
    const float length = (float)n, twice = (float)(2 * n);
    if (n <= 1)
        return 0;
    if (at < 0) {
        at = ADD(MUL(twice, (float)(int64_t)(-at / twice)), at);
        return at < -length ? ADD(at, twice) : SUB(-at, 1);
    }
    at = SUB(at, MUL(twice, (float)(int64_t)(at / twice)));
    return at >= length ? SUB(SUB(twice, at), 1) : at;
}
/* abcd|abcd|abcd */
static __device__ float wrap(float at, int64_t n) {
    const float length = (float)n, last = (float)(n - 1);
    if (n <= 1)
        return 0;
    return at < 0 ? ADD(at, MUL(length, (float)((int64_t)(-at / last) + 1)))
                  : SUB(at, MUL(length, (float)(int64_t)(at / last)));
}
/* Where on an axis of n pixels the position is taken. */
static __device__ float place_of(int mode, float at, int64_t n) {
    const float last = (float)(n - 1);
    const bool repeats = mode == SN_WARP_REFLECT || mode == SN_WARP_WRAP;
    if ((at >= 0 && at <= last) || mode == SN_WARP_CONSTANT || (repeats && !(fabsf(at) < FAR)))
        return at;
    if (repeats)
        at = mode == SN_WARP_REFLECT ? reflect(at, n) : wrap(at, n);
    return at < 0 ? 0 : at > last ? last : at;
}

/* Four taps of a result pixel: pixels (y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1) with weights
 * that are products of two f32. `far`: nowhere, the constant counts once. */
typedef struct {
    float x, y;
    double weight[4];
    bool far;
} spot;

static __device__ spot spot_of(const warp &w, int64_t n, int64_t ox, int64_t oy) {
    const float *t = w.transforms + 8 * n, x = (float)ox, y = (float)oy;
    const float k = ADD(ADD(MUL(t[6], x), MUL(t[7], y)), 1);
    float across = ADD(ADD(MUL(t[0], x), MUL(t[1], y)), t[2]);
    float down = ADD(ADD(MUL(t[3], x), MUL(t[4], y)), t[5]);
    if (k != 1) { /* 1 for all but projections */
        across /= k;
        down /= k;
    }
    across = k == 0 ? NAN : place_of(w.mode, across, w.width);
    down = k == 0 ? NAN : place_of(w.mode, down, w.height);
    spot s = {0, 0, {1, 0, 0, 0}, !(fabsf(across) < FAR) || !(fabsf(down) < FAR)};
    if (s.far)
        return s;
    s.x = w.nearest ? roundf(across) : floorf(across);
    s.y = w.nearest ? roundf(down) : floorf(down);
    if (w.nearest)
        return s;
    const double right = (double)SUB(across, s.x), over = (double)SUB(ADD(s.x, 1), across);
    const double below = (double)SUB(down, s.y), up = (double)SUB(ADD(s.y, 1), down);
    s.weight[0] = over * up;
    s.weight[1] = right * up;
    s.weight[2] = over * below;
    s.weight[3] = right * below;
    return s;
}
/* The pixel of tap k in its picture, or -1: outside. */
static __device__ __forceinline__ int64_t pixel_of(const warp &w, const spot &s, int k) {
    const float x = ADD(s.x, (float)(k & 1)), y = ADD(s.y, (float)(k >> 1));
    const bool inside = !s.far && y >= 0 && x >= 0 && y < (float)w.height && x < (float)w.width;
    return inside ? (int64_t)y * w.width + (int64_t)x : -1;
}

template <class T> struct warp_f {
    warp w;
    const T *x;
    T *y;
    const sn_scalar *fill;
    __device__ void operator()(int64_t i) const {
        const int64_t pixel = sn_div(i, w.channels), c = i - pixel * w.channels.d;
        const int64_t line = sn_div(pixel, w.columns), n = sn_div(line, w.rows);
        const spot s = spot_of(w, n, pixel - line * w.columns.d, line - n * w.rows.d);
        double sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (s.weight[k] == 0)
                continue;
            const int64_t at = pixel_of(w, s, k);
            const double v =
                at < 0 ? fill->real : (double)x[(n * w.height * w.width + at) * w.channels.d + c];
            sum += s.weight[k] * v;
        }
        y[i] = (T)sum;
    }
};

template <class T> struct warp_grad_f {
    warp w;
    const T *dy;
    T *dx;
    __device__ void operator()(int64_t i) const {
        const int64_t pixel = sn_div(i, w.channels), c = i - pixel * w.channels.d;
        const int64_t line = sn_div(pixel, w.columns), n = sn_div(line, w.rows);
        const int64_t own = pixel - n * w.height * w.width, size = w.out_height * w.out_width;
        T sum = 0;
        for (int64_t p = 0; p < size; p++) {
            const int64_t oy = p / w.out_width;
            const spot s = spot_of(w, n, p - oy * w.out_width, oy);
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (s.weight[k] != 0 && pixel_of(w, s, k) == own)
                    sum += (T)s.weight[k] * dy[(n * size + p) * w.channels.d + c];
        }
        dx[i] = sum;
    }
};

template <class T> static void run_warps(const sn_cuda_call *c, bool back) {
    const snug_view *in = &c->call->in[0], *out = &c->call->out[0];
    const warp w =
        warp_of(c, back ? &out->type : &in->type, back ? &in->type : &out->type, &out->type);
    if (back)
        sn_each(c, sn_cuda_elements(out), warp_grad_f<T>{w, sn_in<T>(c, 0), sn_out<T>(c, 0)});
    else
        sn_each(c, sn_cuda_elements(out),
                warp_f<T>{w, sn_in<T>(c, 0), sn_out<T>(c, 0), c->call->param});
}
static snug_status run_warp(const sn_cuda_call *c, snug_error *err) {
    SN_BY_REAL(sn_dtype_in(c, 0), err, run_warps, c, false);
    return SNUG_OK;
}
static snug_status run_warp_grad(const sn_cuda_call *c, snug_error *err) {
    SN_BY_REAL(sn_dtype_in(c, 0), err, run_warps, c, true);
    return SNUG_OK;
}

/* Every element looks at every pixel of its result: large ones are faster on the processor. */
static snug_status describe_warp_grad(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                      snug_error *err) {
    enum { MOST = 1 << 14 };
    (void)g, (void)out;
    const int64_t pixels = d->in[0].dims[1] * d->in[0].dims[2];
    return pixels <= MOST ? SNUG_OK
                          : sn_fail(err, SNUG_E_UNSUPPORTED,
                                    "the GPU gives back warped pictures of at most %d pixels, not "
                                    "%lld",
                                    (int)MOST, (long long)pixels);
}
SN_CUDA_WIDENED(warp, run_warp, NULL)
SN_CUDA_WIDENED(warp_grad, run_warp_grad, describe_warp_grad)
