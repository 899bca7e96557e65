/* unary.cu: elementwise operators of one input, and the backward rows of activations (dy, y or x).
 *
 * Each operator is one expression of x (and parameters p, q), computed in f32 for f32 and halves,
 * in f64 for f64. Where f32 would lose digits beside a large number the slope has a form of its
 * own. */
#include "kernels/cuda/functions.h"
#include "kernels/cuda/maps.h"

/* --- functions both widths have --------------------------------------------------------------- */
static __device__ __forceinline__ float log_of(float x) {
    return logf(x);
}
static __device__ __forceinline__ double log_of(double x) {
    return log(x);
}
static __device__ __forceinline__ float log1p_of(float x) {
    return log1pf(x);
}
static __device__ __forceinline__ double log1p_of(double x) {
    return log1p(x);
}
static __device__ __forceinline__ float expm1_of(float x) {
    return expm1f(x);
}
static __device__ __forceinline__ double expm1_of(double x) {
    return expm1(x);
}
static __device__ __forceinline__ float tanh_of(float x) {
    return tanhf(x);
}
static __device__ __forceinline__ double tanh_of(double x) {
    return tanh(x);
}
static __device__ __forceinline__ float erf_of(float x) {
    return erff(x);
}
static __device__ __forceinline__ double erf_of(double x) {
    return erf(x);
}
static __device__ __forceinline__ float pow_of(float x, float p) {
    return p == 2.0f ? x * x : p == 1.0f ? x : p == -1.0f ? 1.0f / x : powf(x, p);
}
static __device__ __forceinline__ double pow_of(double x, double p) {
    return p == 2 ? x * x : p == 1 ? x : p == -1 ? 1 / x : pow(x, p);
}

template <class T> static __device__ __forceinline__ T softplus_of(T x) {
    return x > 0 ? x + log1p_of(exp_of(-x)) : log1p_of(exp_of(x));
}
/* TensorFlow's constants of gelu pass through a float, also on their way to doubles. */
#define ROOT_HALF ((T)0.707106781f)
template <class T> static __device__ __forceinline__ T gelu_arg(T x) {
    return (x + (T)0.044715f * x * x * x) * (T)0.7978845608028654;
}
/* tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); 1 from x = 20 (f64: 40) on. */
template <class T> static __device__ __forceinline__ T mish_gate(T x) {
    const T most = sizeof(T) == 4 ? (T)20 : (T)40;
    const T e = exp_of(x > most ? most : x), n = e * (e + 2);
    return n / (n + 2);
}
template <class T> static __device__ __forceinline__ T sign_of(T x) {
    return x > 0 ? (T)1 : x < 0 ? (T)-1 : x;
}

/* --- one input -------------------------------------------------------------------------------- */
/* clang-format off */
#define UNARY_MAP(X)                                                                               \
    X(log,          log_of(x))                                                                     \
    X(tanh,         tanh_of(x))                                                                    \
    X(softplus,     softplus_of(x))                                                                \
    X(erf,          erf_of(x))                                                                     \
    X(elu,          x > 0 ? x : p * expm1_of(x))                                                   \
    X(gelu,         (T)0.5 * x * (1 + erf_of(x * ROOT_HALF)))                                      \
    X(gelu_tanh,    (T)0.5 * x * (1 + tanh_of(gelu_arg(x))))                                       \
    X(mish,         x * mish_gate(x))                                                              \
    X(power,        pow_of(x, p))
/*      name    floats                              integers, in 64 bits, wrapping */
#define NUMBER_MAP(X)                                                                              \
    X(sign,     sign_of(x),                         x > 0 ? 1 : x < 0 ? -1 : 0)

#define UNARY_OP(name, expression)                                                                 \
    struct name##_op {                                                                             \
        SN_OF_X(expression)                                                                        \
    };                                                                                             \
    SN_CUDA_FLOATS(name, (sn_run_unary<name##_op, float>), NULL, 0)
#define NUMBER_OP(name, real, integer)                                                             \
    struct name##_op {                                                                             \
        SN_OF_X(real)                                                                              \
        static __device__ __forceinline__ int64_t whole(int64_t x, double p, double q) {           \
            (void)p, (void)q;                                                                      \
            return integer;                                                                        \
        }                                                                                          \
    };                                                                                             \
    SN_CUDA_FLOATS(name, sn_run_number<name##_op>, NULL, 0)
/* clang-format on */
SN_LIGHT_UNARY(UNARY_OP)
UNARY_MAP(UNARY_OP)
SN_LIGHT_NUMBER(NUMBER_OP)
NUMBER_MAP(NUMBER_OP)

/* --- backward of activations ------------------------------------------------------------------ */
/* Phi(x) + x phi(x) of the normal distribution. */
template <class T> static __device__ __forceinline__ T gelu_slope(T x) {
    const T u = x * ROOT_HALF;
    return (T)0.5 * (1 + erf_of(u)) + u * exp_of(-u * u) * (T)0.56418958354775628695;
}
template <class T> static __device__ __forceinline__ T gelu_tanh_slope(T x) {
    const T t = tanh_of(gelu_arg(x));
    const T inner = (T)0.7978845608028654 * (1 + 3 * (T)0.044715f * x * x);
    return (T)0.5 * (1 + t) + (t * t < 1 ? (T)0.5 * x * (1 - t * t) * inner : (T)0);
}
/* 1 - t = 2 / (n + 2), and sigmoid(x) is e / (e + 1); far out the rest is below one unit. */
template <class T> static __device__ __forceinline__ T mish_slope(T x) {
    const T most = sizeof(T) == 4 ? (T)20 : (T)40, near = x > most ? most : x;
    const T e = exp_of(near), n = e * (e + 2), t = n / (n + 2);
    return t + near * (e / (e + 1)) * (2 / (n + 2)) * (1 + t);
}
template <class T> static __device__ __forceinline__ T sigmoid_xent_of(T x, T z) {
    return (x < 0 ? (T)0 : x) - x * z + log1p_of(exp_of(-size_of(x)));
}

/* clang-format off */
#define PAIR_MAP(X)                                                                                \
    X(elu_grad,        y > 0 ? g : g * (y + p))                                                    \
    X(gelu_grad,       g * gelu_slope(y))                                                          \
    X(gelu_tanh_grad,  g * gelu_tanh_slope(y))                                                     \
    X(mish_grad,       g * mish_slope(y))                                                          \
    X(sigmoid_xent,    sigmoid_xent_of(g, y))
#define PAIR_OP(name, expression)                                                                  \
    struct name##_op {                                                                             \
        SN_OF_PAIR(expression)                                                                     \
    };                                                                                             \
    SN_CUDA_FLOATS(name, (sn_run_pair<name##_op, float>), NULL, 0)
/* clang-format on */
SN_LIGHT_PAIR(PAIR_OP)
PAIR_MAP(PAIR_OP)

/* --- truth values ----------------------------------------------------------------------------- */
/* clang-format off */
#define TEST_MAP(X)                                                                                \
    X(isnan,    x != x)                                                                            \
    X(isinf,    x == x && x - x != x - x)                                                          \
    X(isfinite, x - x == x - x)
#define TEST_OP(name, expression)                                                                  \
    template <class M> struct name##_f {                                                           \
        static __device__ name##_f make(double, double) { return name##_f{}; }                     \
        __device__ uint8_t operator()(M x, M) const { return expression; }                         \
    };                                                                                             \
    template <class M> static void name##_of(const sn_cuda_call *c) {                              \
        const void *x = c->call->in[0].data;                                                       \
        sn_map<name##_f<M>, M, uint8_t>(c, x, x, sn_cuda_elements(&c->call->out[0]));              \
    }                                                                                              \
    static snug_status run_##name(const sn_cuda_call *c, snug_error *err) {                        \
        SN_BY_FLOAT(sn_dtype_in(c, 0), err, name##_of, c);                                         \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    SN_CUDA_FLOATS(name, run_##name, NULL, 0)
/* clang-format on */
TEST_MAP(TEST_OP)

struct logical_not_f {
    static __device__ logical_not_f make(double, double) { return logical_not_f{}; }
    __device__ uint8_t operator()(uint8_t x, uint8_t) const { return x == 0; }
};
static snug_status run_logical_not(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const void *x = c->call->in[0].data;
    sn_map<logical_not_f, uint8_t, uint8_t>(c, x, x, sn_cuda_elements(&c->call->out[0]));
    return SNUG_OK;
}
SN_CUDA_FAMILY(logical_not, run_logical_not)
