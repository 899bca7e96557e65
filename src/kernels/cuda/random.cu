/* random.cu: random and dropout. An element's number is a function of the key and of its position
 * in the full value alone, so slices draw what the whole would, and the gradient of dropout draws
 * its mask again. base/rng.c and tensor/recipe.c say how numbers are made of bits.
 *
 * A block of the generator has four elements. Where the output is one run of the full value that
 * starts at such a block, a thread makes all four; otherwise each makes its own. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/own.h"

extern "C" {
#include "base/rng.h"
}

/* --- f32: the same roundings as on the processor ---------------------------------------------- */
#define MUL(a, b) __fmul_rn((a), (b))
#define ADD(a, b) __fadd_rn((a), (b))
#define SUB(a, b) __fsub_rn((a), (b))

template <class T> struct __align__(16) four {
    T v[4];
};

/* -2 ln((x + 1) / 2^32). */
static __device__ __forceinline__ float minus_two_log(uint32_t x) {
    uint32_t bits = __float_as_uint(x == 0xffffffffu ? 4294967296.0f : (float)(x + 1u));
    int e = (int)(bits >> 23) - 127;
    float m = __uint_as_float((bits & 0x7fffffu) | 0x3f800000u);
    if (m >= 1.41421356f) {
        m = MUL(m, 0.5f);
        e++;
    }
    const float s = SUB(m, 1.0f) / ADD(m, 1.0f), q = MUL(s, s);
    float series = ADD(1.0f / 7, MUL(q, 1.0f / 9));
    series = ADD(1.0f / 5, MUL(q, series));
    series = ADD(1.0f / 3, MUL(q, series));
    series = MUL(s, ADD(1.0f, MUL(q, series)));
    return ADD(MUL(-4.0f, series), MUL((float)(32 - e), 1.38629436f));
}

/* cos and sin of 2 pi v / 2^32. */
static __device__ __forceinline__ void turn(uint32_t v, float *c, float *s) {
    const uint32_t quarter = (v + 0x20000000u) >> 30;
    const int32_t rest = (int32_t)(v - (quarter << 30));
    const float x = MUL((float)rest, 1.46291808e-9f), q = MUL(x, x);
    float sine = SUB(1.0f / 5040, MUL(q, 1.0f / 362880));
    sine = SUB(1.0f / 120, MUL(q, sine));
    sine = SUB(1.0f / 6, MUL(q, sine));
    sine = MUL(x, SUB(1.0f, MUL(q, sine)));
    float cosine = SUB(1.0f / 720, MUL(q, 1.0f / 40320));
    cosine = SUB(1.0f / 24, MUL(q, cosine));
    cosine = SUB(0.5f, MUL(q, cosine));
    cosine = SUB(1.0f, MUL(q, cosine));
    const float a = quarter & 1 ? -sine : cosine, b = quarter & 1 ? cosine : sine;
    *c = quarter & 2 ? -a : a;
    *s = quarter & 2 ? -b : b;
}

static __device__ __forceinline__ four<float> normals(const sn_bits4 &bits, float) {
    four<float> out;
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
        const float r = sqrtf(minus_two_log(bits.v[pair]));
        float c, s;
        turn(bits.v[pair + 1], &c, &s);
        out.v[pair] = MUL(r, c);
        out.v[pair + 1] = MUL(r, s);
    }
    return out;
}

/* The first of the element's tries that lies inside +-2. */
static __device__ __forceinline__ float redraw(uint64_t key, uint64_t i, float) {
    for (uint64_t k = 0;; k++) {
        const four<float> tries = normals(sn_philox_at(key, 2 + k, i), 0.0f);
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            if (fabsf(tries.v[lane]) <= 2.0f)
                return tries.v[lane];
    }
}

/* [0, 1) to [a, b): rounding may reach b, which is outside. */
static __device__ __forceinline__ float scaled(float u, float a, float b) {
    const float v = ADD(a, MUL(SUB(b, a), u));
    return v < b || a == b ? v : nextafterf(b, a);
}
static __device__ __forceinline__ float moved(float z, float a, float b) {
    return ADD(a, MUL(b, z));
}

/* Block lo of the stream; the last argument is for the type alone. */
static __device__ __forceinline__ four<float> draw(int kind, uint64_t key, uint64_t lo, float) {
    const sn_bits4 bits = sn_philox_at(key, 0, lo);
    four<float> out;
    if (kind == SN_RANDOM_UNIFORM) {
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            out.v[lane] = sn_uniform_of(bits.v[lane]);
        return out;
    }
    return normals(bits, 0.0f);
}

/* --- f64 -------------------------------------------------------------------------------------- */
/* The upper 53 of the 64 bits whose halves are a (upper) and b. */
static __device__ __forceinline__ double join53(uint32_t a, uint32_t b) {
    return (double)(((uint64_t)a << 32 | b) >> 11);
}

static __device__ __forceinline__ four<double> normals(const sn_bits4 &a, const sn_bits4 &b) {
    four<double> out;
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
        const double u = (join53(a.v[pair], b.v[pair]) + 1) * 0x1p-53;
        const double half_turns = join53(a.v[pair + 1], b.v[pair + 1]) * 0x1p-52;
        const double r = sqrt(-2.0 * log(u));
        out.v[pair] = r * cospi(half_turns);
        out.v[pair + 1] = r * sinpi(half_turns);
    }
    return out;
}

static __device__ __forceinline__ double redraw(uint64_t key, uint64_t i, double) {
    for (uint64_t k = 0;; k++) {
        const sn_bits4 low = sn_philox_at(key, ((uint64_t)1 << 63) + k, i);
        const four<double> tries = normals(sn_philox_at(key, 2 + k, i), low);
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            if (fabs(tries.v[lane]) <= 2.0)
                return tries.v[lane];
    }
}

static __device__ __forceinline__ double scaled(double u, double a, double b) {
    const double v = __dadd_rn(a, __dmul_rn(b - a, u));
    return v < b || a == b ? v : nextafter(b, a);
}
static __device__ __forceinline__ double moved(double z, double a, double b) {
    return __dadd_rn(a, __dmul_rn(b, z));
}

static __device__ __forceinline__ four<double> draw(int kind, uint64_t key, uint64_t lo, double) {
    const sn_bits4 a = sn_philox_at(key, 0, lo), b = sn_philox_at(key, 1, lo);
    four<double> out;
    if (kind == SN_RANDOM_UNIFORM) {
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            out.v[lane] = join53(a.v[lane], b.v[lane]) * 0x1p-53;
        return out;
    }
    return normals(a, b);
}

/* --- random ----------------------------------------------------------------------------------- */
/* param: key, low, high. */
template <class T>
static __device__ __forceinline__ T finish(int kind, uint64_t key, uint64_t position, T v, T a,
                                           T b) {
    if (kind == SN_RANDOM_UNIFORM)
        return scaled(v, a, b);
    if (kind == SN_RANDOM_TRUNCATED && !(v <= 2 && v >= -2))
        v = redraw(key, position, (T)0);
    return moved(v, a, b);
}

template <class T> struct random_f {
    T *out;
    sn_cuda_place place;
    int64_t n;
    int kind;
    bool whole; /* an item is four elements, else one */
    bool packed;
    const sn_scalar *param;
    __device__ void operator()(int64_t i) const {
        const uint64_t key = (uint64_t)param[0].key;
        const T a = (T)param[1].real, b = (T)param[2].real;
        const int64_t first = whole ? 4 * i : i;
        const uint64_t position = (uint64_t)sn_place_at(place, first);
        const four<T> drawn = draw(kind, key, position / 4, (T)0);
        if (!whole) {
            const unsigned lane = (unsigned)(position % 4);
            const T low = lane & 1 ? drawn.v[1] : drawn.v[0];
            const T high = lane & 1 ? drawn.v[3] : drawn.v[2];
            out[i] = finish(kind, key, position, lane & 2 ? high : low, a, b);
            return;
        }
        four<T> made;
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            made.v[lane] = finish(kind, key, position + (uint64_t)lane, drawn.v[lane], a, b);
        if (packed && first + 4 <= n) {
            *(four<T> *)(out + first) = made;
            return;
        }
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            if (first + lane < n)
                out[first + lane] = made.v[lane];
    }
};

/* Whether the output is one run of the full value, from a block's start on. */
static bool is_whole_run(const sn_cuda_place *p, int64_t n) {
    return p->length.d >= n && p->start % 4 == 0;
}

template <class T> static void random(const sn_cuda_call *c) {
    const sn_cuda_place place = sn_cuda_place_of(c->call);
    const int64_t n = sn_cuda_elements(&c->call->out[0]);
    const bool whole = is_whole_run(&place, n);
    sn_each(c, whole ? sn_cuda_ceil(n, 4) : n,
            random_f<T>{sn_out<T>(c, 0), place, n, (int)c->call->attrs->random.kind, whole,
                        sn_aligned(c->call->out[0].data), c->call->param});
}

static snug_status run_random(const sn_cuda_call *c, snug_error *err) {
    SN_BY_REAL(c->call->out[0].type.dtype, err, random, c);
    return SNUG_OK;
}

static snug_status describe_random(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                   snug_error *err) {
    (void)g, (void)out;
    const snug_dtype dtype = d->out[0].dtype;
    return dtype == SNUG_F32 || dtype == SNUG_F64 ? SNUG_OK : sn_cuda_no_kernel(dtype, err);
}
SN_CUDA_FAMILY(random, run_random, describe_random)

/* --- recipes: the same, from an element on that the device knows alone ------------------------ */
/* Four that are stored at once. */
template <class T> struct alignas(4 * sizeof(T)) quad { T v[4]; };

/* A thread makes MADE blocks, all threads' first ones side by side. */
enum { MADE = 2 };

template <class M> struct make_f {
    typedef sn_computed<M> T;
    M *out;
    int64_t n, threads;
    int kind;
    const sn_scalar *numbers;

    __device__ __forceinline__ void store(int64_t at, bool packed, const quad<M> &made) const {
        if (packed && at + 4 <= n) {
            *(quad<M> *)(out + at) = made;
            return;
        }
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            if (at + lane >= 0 && at + lane < n)
                out[at + lane] = made.v[lane];
    }

    __device__ void operator()(int64_t i) const {
        const uint64_t key = (uint64_t)numbers[0].key, first = (uint64_t)numbers[3].key;
        const T a = (T)numbers[1].real, b = (T)numbers[2].real;
#pragma unroll
        for (int k = 0; k < MADE; k++) {
            const uint64_t block = first / 4 + (uint64_t)(i + k * threads);
            const int64_t at = (int64_t)(4 * block - first); /* may begin before the first */
            quad<M> made = {{(M)a, (M)a, (M)a, (M)a}};
            if (at >= n)
                return;
            if (kind != SN_GPU_CONSTANT) {
                const four<T> drawn = draw(kind, key, block, (T)0);
#pragma unroll
                for (int lane = 0; lane < 4; lane++)
                    made.v[lane] =
                        (M)finish(kind, key, 4 * block + (uint64_t)lane, drawn.v[lane], a, b);
            }
            store(at, first % 4 == 0, made);
        }
    }
};

template <class M>
static void make(const sn_cuda_call *c, int kind, const sn_scalar *numbers, const snug_view *to) {
    const int64_t n = sn_cuda_elements(to), threads = sn_cuda_ceil(n / 4 + 2, MADE);
    if (n > 0)
        sn_each(c, threads, make_f<M>{(M *)to->data, n, threads, kind, numbers});
}

snug_status sn_cuda_make(cudaStream_t stream, int kind, const sn_scalar *numbers,
                         const snug_view *to, snug_error *err) {
    sn_cuda_call c = {NULL, stream, NULL, NULL};
    SN_BY_FLOAT(to->type.dtype, err, make, &c, kind, numbers, to);
    return SNUG_OK;
}

/* --- dropout ---------------------------------------------------------------------------------- */
/* param: rate, key. One mask for floats of all sizes. */
template <class T> struct dropout_f {
    typedef sn_computed<T> C;
    const T *x;
    T *out;
    sn_cuda_place place;
    int64_t n;
    bool whole, packed;
    const sn_scalar *param;
    __device__ void operator()(int64_t i) const {
        const float rate = (float)param[0].real;
        const C scale = (C)(1 / (1 - param[0].real));
        const int64_t first = whole ? 4 * i : i;
        const uint64_t position = (uint64_t)sn_place_at(place, first);
        if (!whole) {
            const float u = sn_uniform_at((uint64_t)param[1].key, position);
            const T kept = (T)((C)x[i] * scale);
            out[i] = u >= rate ? kept : (T)0;
            return;
        }
        const sn_bits4 bits = sn_philox_at((uint64_t)param[1].key, 0, position / 4);
        const bool pack = packed && first + 4 <= n;
        sn_four<T> v;
        if (pack)
            v = *(const sn_four<T> *)(x + first);
#pragma unroll
        for (int lane = 0; lane < 4; lane++) {
            if (!pack)
                v.v[lane] = first + lane < n ? x[first + lane] : (T)0;
            const T kept = (T)((C)v.v[lane] * scale);
            v.v[lane] = sn_uniform_of(bits.v[lane]) >= rate ? kept : (T)0;
        }
        if (pack)
            *(sn_four<T> *)(out + first) = v;
#pragma unroll
        for (int lane = 0; lane < 4; lane++)
            if (!pack && first + lane < n)
                out[first + lane] = v.v[lane];
    }
};

template <class T> static void dropout(const sn_cuda_call *c) {
    const sn_cuda_place place = sn_cuda_place_of(c->call);
    const int64_t n = sn_cuda_elements(&c->call->out[0]);
    const bool whole = is_whole_run(&place, n);
    sn_each(c, whole ? sn_cuda_ceil(n, 4) : n,
            dropout_f<T>{sn_in<T>(c, 0), sn_out<T>(c, 0), place, n, whole,
                         sn_aligned(sn_in<T>(c, 0)) && sn_aligned(sn_out<T>(c, 0)),
                         c->call->param});
}
static snug_status run_dropout(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, dropout, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(dropout, run_dropout, NULL, 0)
