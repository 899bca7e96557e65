/* binary.cu: elementwise operators with broadcasting: arithmetic, comparison, logic, select.
 *
 * An operator is one expression of x and y. Axes are merged first, so that dense operands are one
 * long row; f32 and halves go in packs of four where rows divide by four and addresses allow it. */
#include "kernels/cuda/functions.h"
#include "kernels/cuda/maps.h"

/* --- functions -------------------------------------------------------------------------------- */
/* The rest has the sign of y. */
static __device__ __forceinline__ float fmod_of(float x, float y) {
    return fmodf(x, y);
}
static __device__ __forceinline__ double fmod_of(double x, double y) {
    return fmod(x, y);
}
template <class T> static __device__ __forceinline__ T rest_of(T x, T y) {
    const T r = fmod_of(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static __device__ __forceinline__ float floor_of(float x) {
    return floorf(x);
}
static __device__ __forceinline__ double floor_of(double x) {
    return floor(x);
}
static __device__ __forceinline__ float power_of(float x, float y) {
    return powf(x, y);
}
static __device__ __forceinline__ double power_of(double x, double y) {
    return pow(x, y);
}
static __device__ __forceinline__ float angle_of(float x, float y) {
    return atan2f(x, y);
}
static __device__ __forceinline__ double angle_of(double x, double y) {
    return atan2(x, y);
}

/* -2^63 / -1 wraps. */
static __device__ __forceinline__ int64_t whole_div(int64_t x, int64_t y) {
    if (y == 0 || y == -1)
        return y == 0 ? 0 : (int64_t)(0 - (uint64_t)x);
    return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}
static __device__ __forceinline__ int64_t whole_mod(int64_t x, int64_t y) {
    if (y == 0 || y == -1)
        return 0;
    const int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
/* By squaring, wrapping. */
static __device__ __forceinline__ int64_t whole_pow(int64_t x, int64_t y) {
    uint64_t power = (uint64_t)x, result = 1;
    if (y < 0)
        return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
    for (; y > 0; y /= 2, power *= power)
        result *= y % 2 == 1 ? power : 1;
    return (int64_t)result;
}

/* --- the kernel ------------------------------------------------------------------------------- */
template <class M>
static __device__ __forceinline__ sn_four<M> pack_at(const M *from, int64_t at, int64_t step) {
    if (step == 1)
        return *(const sn_four<M> *)(from + at);
    sn_four<M> p;
#pragma unroll
    for (int k = 0; k < 4; k++)
        p.v[k] = from[at];
    return p;
}

/* M: what memory holds, C: the type computed in, R: the result's. */
template <class Op, class M, class C, class R>
static __global__ void __launch_bounds__(256, 2)
    binary_kernel(const __grid_constant__ sn_steps s, const M *a, const M *b, R *out, bool packed) {
    int64_t done = 0, at[3];
    if (sn_packs<M>::yes && packed) {
        const int64_t step_a = s.stride[1][s.rank - 1], step_b = s.stride[2][s.rank - 1];
        done = s.count / 4 * 4;
        for (int64_t i = 4 * sn_thread(); i < done; i += 4 * sn_all_threads()) {
            sn_locate<3>(s, i, at);
            const sn_four<M> x = pack_at(a, at[1], step_a), y = pack_at(b, at[2], step_b);
            sn_four<R> to;
#pragma unroll
            for (int k = 0; k < 4; k++)
                to.v[k] = (R)Op::at((C)x.v[k], (C)y.v[k]);
            *(sn_four<R> *)(out + i) = to;
        }
    }
#pragma unroll 1
    for (int64_t i = done + sn_thread(); i < s.count; i += sn_all_threads()) {
        sn_locate<3>(s, i, at);
        out[i] = (R)Op::at((C)a[at[1]], (C)b[at[2]]);
    }
}

/* Whether groups of four neighbours stay neighbours in every operand. */
static bool is_packable(const sn_cuda_walk *w, const sn_cuda_call *c) {
    const int last = w->rank - 1;
    bool ok = (w->rank == 1 || w->dims[last] % 4 == 0) && sn_aligned(c->call->out[0].data);
    for (int i = 1; i < w->n; i++) {
        ok = ok && w->stride[i][last] <= 1;
        if (w->stride[i][last] == 0)
            continue;
        ok = ok && sn_aligned(c->call->in[i - 1].data);
        for (int k = 0; k < last; k++)
            ok = ok && w->stride[i][k] % 4 == 0;
    }
    return ok;
}

static sn_cuda_walk walk_of(const sn_call *c) {
    sn_cuda_walk w = sn_cuda_walk_over(&c->out[0].type);
    for (int i = 0; i < c->n_in; i++)
        sn_cuda_walk_broadcast(&w, &c->in[i].type);
    sn_cuda_walk_merge(&w);
    return w;
}

template <class Op, class M, class C, class R> static void launch(const sn_cuda_call *c) {
    const sn_cuda_walk w = walk_of(c->call);
    const sn_steps s = sn_cuda_steps(&w);
    const bool packed = sn_packs<M>::yes && is_packable(&w, c);
    if (s.count > 0)
        SN_LAUNCH_APART((binary_kernel<Op, M, C, R>),
                        sn_blocks(packed ? sn_cuda_ceil(s.count, 4) : s.count, SN_THREADS),
                        SN_THREADS, 0, c->stream, s, sn_in<M>(c, 0), sn_in<M>(c, 1),
                        sn_out<R>(c, 0), packed);
}

/* --- operators -------------------------------------------------------------------------------- */
template <class Op> static snug_status run_float(const sn_cuda_call *c, snug_error *err) {
    if (sn_dtype_in(c, 0) == SNUG_F32)
        launch<Op, float, float, float>(c);
    else if (sn_dtype_in(c, 0) == SNUG_F64)
        launch<Op, double, double, double>(c);
    else if (sn_dtype_in(c, 0) == SNUG_F16)
        launch<Op, sn_half, float, sn_half>(c);
    else if (sn_dtype_in(c, 0) == SNUG_BF16)
        launch<Op, sn_brain, float, sn_brain>(c);
    else
        return sn_cuda_no_kernel(sn_dtype_in(c, 0), err);
    return SNUG_OK;
}

template <class Op> static snug_status run_number(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    if (dtype == SNUG_I8)
        launch<Op, int8_t, int64_t, int8_t>(c);
    else if (dtype == SNUG_U8)
        launch<Op, uint8_t, int64_t, uint8_t>(c);
    else if (dtype == SNUG_I32)
        launch<Op, int32_t, int64_t, int32_t>(c);
    else if (dtype == SNUG_I64)
        launch<Op, int64_t, int64_t, int64_t>(c);
    else
        return run_float<Op>(c, err);
    return SNUG_OK;
}

template <class Op> static snug_status run_compare(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    if (dtype == SNUG_F32)
        launch<Op, float, float, uint8_t>(c);
    else if (dtype == SNUG_F64)
        launch<Op, double, double, uint8_t>(c);
    else if (dtype == SNUG_F16)
        launch<Op, sn_half, float, uint8_t>(c);
    else if (dtype == SNUG_BF16)
        launch<Op, sn_brain, float, uint8_t>(c);
    else if (dtype == SNUG_I8)
        launch<Op, int8_t, int64_t, uint8_t>(c);
    else if (dtype == SNUG_U8 || dtype == SNUG_BOOL)
        launch<Op, uint8_t, int64_t, uint8_t>(c);
    else if (dtype == SNUG_I32)
        launch<Op, int32_t, int64_t, uint8_t>(c);
    else if (dtype == SNUG_I64)
        launch<Op, int64_t, int64_t, uint8_t>(c);
    else
        return sn_cuda_no_kernel(dtype, err);
    return SNUG_OK;
}

template <class Op> static snug_status run_truth(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    launch<Op, uint8_t, int, uint8_t>(c);
    return SNUG_OK;
}

/* clang-format off */
/*      name       floats                  integers, in 64 bits, wrapping */
#define NUMBER_MAP(X)                                                                              \
    X(pow,         power_of(x, y),         whole_pow(x, y))                                        \
    X(floor_div,   floor_of(x / y),        whole_div(x, y))                                        \
    X(mod,         rest_of(x, y),          whole_mod(x, y))
#define FLOAT_MAP(X)                                                                               \
    X(atan2,       angle_of(x, y))
#define COMPARE_MAP(X)                                                                             \
    X(greater,       x > y)                                                                        \
    X(greater_equal, x >= y)                                                                       \
    X(equal,         x == y)                                                                       \
    X(not_equal,     x != y)
#define TRUTH_MAP(X)                                                                               \
    X(logical_and,   x && y)                                                                       \
    X(logical_or,    x || y)

#define PART(T, expression)                                                                        \
    static __device__ __forceinline__ auto at(T x, T y) { return expression; }
#define NUMBER_OP(name, real, whole)                                                               \
    struct name##_op {                                                                             \
        PART(float, real) PART(double, real) PART(int64_t, whole)                                  \
    };                                                                                             \
    SN_CUDA_FLOATS(name, run_number<name##_op>, NULL, 0)
#define FLOAT_OP(name, real)                                                                       \
    struct name##_op {                                                                             \
        PART(float, real) PART(double, real)                                                       \
    };                                                                                             \
    SN_CUDA_FLOATS(name, run_float<name##_op>, NULL, 0)
#define COMPARE_OP(name, test)                                                                     \
    struct name##_op {                                                                             \
        PART(float, test) PART(double, test) PART(int64_t, test)                                   \
    };                                                                                             \
    SN_CUDA_FLOATS(name, run_compare<name##_op>, NULL, 0)
#define TRUTH_OP(name, test)                                                                       \
    struct name##_op {                                                                             \
        PART(int, test)                                                                            \
    };                                                                                             \
    SN_CUDA_FAMILY(name, run_truth<name##_op>)
/* clang-format on */
SN_LIGHT_BINARY(NUMBER_OP)
NUMBER_MAP(NUMBER_OP)
SN_LIGHT_RATIO(FLOAT_OP)
FLOAT_MAP(FLOAT_OP)
COMPARE_MAP(COMPARE_OP)
TRUTH_MAP(TRUTH_OP)

/* --- select: by the bytes of an element ------------------------------------------------------- */
template <class W> struct select_f {
    sn_steps s;
    const uint8_t *test;
    const W *yes, *no;
    W *out;
    __device__ void operator()(int64_t i) const {
        int64_t at[4];
        sn_locate<4>(s, i, at);
        const W a = yes[at[2]], b = no[at[3]];
        out[i] = test[at[1]] ? a : b;
    }
};

template <class W> static void launch_select(const sn_cuda_call *c) {
    const sn_cuda_walk w = walk_of(c->call);
    const sn_steps s = sn_cuda_steps(&w);
    sn_each(c, s.count,
            select_f<W>{s, sn_in<uint8_t>(c, 0), sn_in<W>(c, 1), sn_in<W>(c, 2), sn_out<W>(c, 0)});
}

static snug_status run_select(const sn_cuda_call *c, snug_error *err) {
    const size_t size = snug_dtype_bytes(c->call->out[0].type.dtype);
    if (size == 0)
        return sn_cuda_no_kernel(c->call->out[0].type.dtype, err);
    if (size == 1)
        launch_select<uint8_t>(c);
    else if (size == 2)
        launch_select<uint16_t>(c);
    else if (size == 4)
        launch_select<uint32_t>(c);
    else
        launch_select<uint64_t>(c);
    return SNUG_OK;
}
SN_CUDA_FAMILY(select, run_select, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)

/* --- cast: every dtype to every other --------------------------------------------------------- */
/* A float becomes an integer by cutting its fraction; NaN gives 0, what is out of range the nearest
 * end. Integers wrap among themselves. Truth values are bytes of their own kind. */
struct truth {
    uint8_t v;
};
template <class To> struct convert {
    static __device__ double within(double v, double low, double high) {
        const double below = v > high ? high : v, inside = below < low ? low : below;
        return v != v ? 0 : inside;
    }
    static __device__ double low(void) {
        return (To)-1 > (To)0    ? 0.0
               : sizeof(To) == 8 ? -0x1p63
               : sizeof(To) == 4 ? -0x1p31
               : sizeof(To) == 2 ? -0x1p15
                                 : -128.0;
    }
    static __device__ double high(void) {
        const double twice = (To)-1 > (To)0 ? 2.0 : 1.0;
        return sizeof(To) == 8   ? 9223372036854774784.0
               : sizeof(To) == 4 ? twice * 0x1p31 - 1
               : sizeof(To) == 2 ? twice * 0x1p15 - 1
                                 : twice * 0x1p7 - 1;
    }
    template <class From> static __device__ To of(From x) { return (To)x; }
    static __device__ To of(float x) { return (To)within((double)x, low(), high()); }
    static __device__ To of(double x) { return (To)within(x, low(), high()); }
    static __device__ To of(truth x) { return (To)x.v; }
    static __device__ To of(sn_half x) { return of((float)x); }
    static __device__ To of(sn_brain x) { return of((float)x); }
};
template <> struct convert<float> {
    template <class From> static __device__ float of(From x) { return (float)x; }
    static __device__ float of(truth x) { return (float)x.v; }
    static __device__ float of(sn_half x) { return (float)x; }
    static __device__ float of(sn_brain x) { return (float)x; }
};
template <> struct convert<double> {
    template <class From> static __device__ double of(From x) { return (double)x; }
    static __device__ double of(truth x) { return (double)x.v; }
    static __device__ double of(sn_half x) { return (double)(float)x; }
    static __device__ double of(sn_brain x) { return (double)(float)x; }
};
template <> struct convert<truth> {
    template <class From> static __device__ truth of(From x) { return truth{x != 0}; }
    static __device__ truth of(truth x) { return x; }
    static __device__ truth of(sn_half x) { return truth{(x.bits & 0x7fff) != 0}; }
    static __device__ truth of(sn_brain x) { return truth{(x.bits & 0x7fff) != 0}; }
};
template <> struct convert<sn_half> {
    template <class From> static __device__ sn_half of(From x) {
        return (sn_half)convert<double>::of(x);
    }
    static __device__ sn_half of(float x) { return (sn_half)x; }
    static __device__ sn_half of(sn_half x) { return x; }
};
template <> struct convert<sn_brain> {
    template <class From> static __device__ sn_brain of(From x) {
        return (sn_brain)convert<float>::of(x);
    }
    static __device__ sn_brain of(sn_brain x) { return x; }
};

template <class From, class To> struct cast_f {
    const From *in;
    To *out;
    int64_t n;
    bool packed; /* an item is four elements, else one */
    __device__ void operator()(int64_t i) const {
        const int64_t first = packed ? 4 * i : i;
        if (!packed) {
            out[i] = convert<To>::of(in[i]);
        } else if (first + 4 <= n) {
            const sn_four<From> x = *(const sn_four<From> *)(in + first);
            sn_four<To> to;
#pragma unroll
            for (int k = 0; k < 4; k++)
                to.v[k] = convert<To>::of(x.v[k]);
            *(sn_four<To> *)(out + first) = to;
        } else {
            for (int64_t k = first; k < n; k++)
                out[k] = convert<To>::of(in[k]);
        }
    }
};

template <class From, class To> static void cast_to(const sn_cuda_call *c) {
    const int64_t n = sn_cuda_elements(&c->call->out[0]);
    const bool packed = sn_aligned(sn_in<From>(c, 0)) && sn_aligned(sn_out<To>(c, 0));
    sn_each(c, packed ? sn_cuda_ceil(n, 4) : n,
            cast_f<From, To>{sn_in<From>(c, 0), sn_out<To>(c, 0), n, packed});
}

typedef void (*cast_run)(const sn_cuda_call *c);
template <class From> static cast_run cast_from(snug_dtype to) {
    return to == SNUG_F32    ? cast_to<From, float>
           : to == SNUG_F64  ? cast_to<From, double>
           : to == SNUG_F16  ? cast_to<From, sn_half>
           : to == SNUG_BF16 ? cast_to<From, sn_brain>
           : to == SNUG_I8   ? cast_to<From, int8_t>
           : to == SNUG_U8   ? cast_to<From, uint8_t>
           : to == SNUG_I16  ? cast_to<From, int16_t>
           : to == SNUG_U16  ? cast_to<From, uint16_t>
           : to == SNUG_I32  ? cast_to<From, int32_t>
           : to == SNUG_U32  ? cast_to<From, uint32_t>
           : to == SNUG_I64  ? cast_to<From, int64_t>
           : to == SNUG_BOOL ? cast_to<From, truth>
                             : (cast_run)NULL;
}

static cast_run cast_of(snug_dtype from, snug_dtype to) {
    return from == SNUG_F32    ? cast_from<float>(to)
           : from == SNUG_F64  ? cast_from<double>(to)
           : from == SNUG_F16  ? cast_from<sn_half>(to)
           : from == SNUG_BF16 ? cast_from<sn_brain>(to)
           : from == SNUG_I8   ? cast_from<int8_t>(to)
           : from == SNUG_U8   ? cast_from<uint8_t>(to)
           : from == SNUG_I16  ? cast_from<int16_t>(to)
           : from == SNUG_U16  ? cast_from<uint16_t>(to)
           : from == SNUG_I32  ? cast_from<int32_t>(to)
           : from == SNUG_U32  ? cast_from<uint32_t>(to)
           : from == SNUG_I64  ? cast_from<int64_t>(to)
           : from == SNUG_BOOL ? cast_from<truth>(to)
                               : (cast_run)NULL;
}

static snug_status run_cast(const sn_cuda_call *c, snug_error *err) {
    const cast_run run = cast_of(sn_dtype_in(c, 0), c->call->out[0].type.dtype);
    if (!run)
        return sn_cuda_no_kernel(sn_dtype_in(c, 0), err);
    run(c);
    return SNUG_OK;
}

static snug_status describe_cast(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                 snug_error *err) {
    (void)g, (void)out;
    return cast_of(d->in[0].dtype, d->out[0].dtype) ? SNUG_OK
                                                    : sn_cuda_no_kernel(d->in[0].dtype, err);
}
SN_CUDA_FAMILY(cast, run_cast, describe_cast, NULL, NULL, NULL, SN_STORED_DTYPES, SN_CUDA_MIXES_ALL)
