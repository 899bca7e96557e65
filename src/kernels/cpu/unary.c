/* unary.c: elementwise operators of one input, and the backward rows of activations (dy, y or x).
 *
 * Each operator is one line with two expressions: over f32 in vector maths, and over double with
 * libm, which is the reference of f32 and the kernel of f64. p and q are the operator's real
 * parameters, rounded to the dtype. All may run in place, so loops carry `ivdep`: element i of the
 * output depends on element i of inputs alone. */
#include "kernels/cpu/lines.h"
#include "kernels/cpu/special.h"
#include "kernels/cpu/vmath.h"

/* TensorFlow's constants of gelu pass through a float, also on their way to doubles. */
#define ROOT_HALF ((double)0.707106781f)

/* clang-format off */
/*      name        f32                                       double */
#define NUMBER_MAP(X)                                                                              \
    X(neg,          -x,                                       -x)                                  \
    X(abs,          fabsf(x),                                 fabs(x))                             \
    X(sign,         x > 0 ? 1.0f : x < 0 ? -1.0f : x,         x > 0 ? 1 : x < 0 ? -1 : x)          \
    X(square,       x * x,                                    x * x)                               \
    X(relu,         x < 0 ? 0 : x,                            x < 0 ? 0 : x)                       \
    X(clip,         x < p ? p : x > q ? q : x,                x < p ? p : x > q ? q : x)
#define REAL_MAP(X)                                                                                \
    X(sqrt,         sqrtf(x),                                 sqrt(x))                             \
    X(rsqrt,        1.0f / sqrtf(x),                          1 / sqrt(x))                         \
    X(reciprocal,   1.0f / x,                                 1 / x)                               \
    X(exp,          sn_exp_f32(x),                            exp(x))                              \
    X(log,          sn_log_f32(x),                            log(x))                              \
    X(tanh,         sn_tanh_f32(x),                           tanh(x))                             \
    X(sigmoid,      sn_sigmoid_f32(x),                        sigmoid(x))                          \
    X(softplus,     sn_softplus_f32(x),                       softplus(x))                         \
    X(erf,          sn_erf_f32(x),                            erf(x))                              \
    X(leaky_relu,   x < 0 ? p * x : x,                        x < 0 ? p * x : x)                   \
    X(elu,          x > 0 ? x : p * sn_expm1_f32(x),          x > 0 ? x : p * expm1(x))            \
    X(silu,         x * sn_sigmoid_f32(x),                    x * sigmoid(x))                      \
    X(gelu,         gelu_value_f32(x),                        0.5 * x * (1 + erf(x * ROOT_HALF)))  \
    X(gelu_tanh,    0.5f * x * (1.0f + sn_tanh_f32(gelu_arg(x))),0.5 * x * (1 + tanh(gelu_arg(x))))\
    X(mish,         x * mish_gate_f32(x),                     x * tanh(softplus(x)))               \
    X(relu_max,     x < 0 ? 0 : x > p ? p : x,                x < 0 ? 0 : x > p ? p : x)           \
    X(hard_sigmoid, relu6f(x + 3.0f) / 6.0f,                  relu6(x + 3) / 6)                    \
    X(hard_silu,    x * (relu6f(x + 3.0f) / 6.0f),            x * (relu6(x + 3) / 6))              \
    X(affine,       p * x + q,                                p * x + q)                           \
    X(power,        raised(x, p),                             pow(x, p))                           \
    X(tan,          tanf(x),                                  tan(x))                              \
    X(asin,         asinf(x),                                 asin(x))                             \
    X(acos,         acosf(x),                                 acos(x))                             \
    X(atan,         atanf(x),                                 atan(x))                             \
    X(sinh,         sinhf(x),                                 sinh(x))                             \
    X(cosh,         coshf(x),                                 cosh(x))                             \
    X(asinh,        asinhf(x),                                asinh(x))                            \
    X(acosh,        acoshf(x),                                acosh(x))                            \
    X(atanh,        atanhf(x),                                atanh(x))                            \
    X(log1p,        sn_log1p_any_f32(x),                      log1p(x))                            \
    X(expm1,        sn_expm1_any_f32(x),                      expm1(x))                            \
    X(erfc,         erfcf(x),                                 erfc(x))                             \
    X(erfinv,       (float)sn_erfinv((double)x),              sn_erfinv(x))                        \
    X(lgamma,       (float)sn_lgamma((double)x),              sn_lgamma(x))                        \
    X(digamma,      (float)sn_digamma((double)x),             sn_digamma(x))                       \
    X(trigamma,     (float)sn_trigamma((double)x),            sn_trigamma(x))                      \
    X(floor,        floorf(x),                                floor(x))                            \
    X(ceil,         ceilf(x),                                 ceil(x))                             \
    X(round,        rintf(x),                                 rint(x))                             \
    X(trunc,        truncf(x),                                trunc(x))
#define UNARY_MAP(X) NUMBER_MAP(X) REAL_MAP(X)

/* g is the gradient of the output, y input 1: the output for relu, relu_max, elu, tanh, sigmoid,
 * else the input. */
#define PAIR_MAP(X)                                                                                \
    X(relu_grad,       y > 0 ? g : 0,                         y > 0 ? g : 0)                       \
    X(leaky_relu_grad, y > 0 ? g : p * g,                     y > 0 ? g : p * g)                   \
    X(elu_grad,        y > 0 ? g : g * (y + p),               y > 0 ? g : g * (y + p))             \
    X(tanh_grad,       g * (1.0f - y * y),                    g * (1 - y * y))                     \
    X(sigmoid_grad,    g * (y * (1.0f - y)),                  g * (y * (1 - y)))                   \
    X(silu_grad,       g * silu_slope_f32(y),                 g * silu_slope(y))                   \
    X(gelu_grad,       g * gelu_slope_f32(y),                 g * gelu_slope(y))                   \
    X(gelu_tanh_grad,  g * gelu_tanh_slope_f32(y), g * gelu_tanh_slope(y))              \
    X(mish_grad,       g * mish_slope_f32(y),                 g * mish_slope(y))                   \
    X(relu_max_grad,   y > 0 && y < p ? g : 0,                y > 0 && y < p ? g : 0)              \
    X(hard_silu_grad,  g * hard_silu_slope_f32(y),            g * hard_silu_slope(y))

/* NUMBER_MAP on integers, computed in 64 bits, wrapping. */
#define INTEGER_MAP(X)                                      \
    X(neg, (int64_t)(0 - (uint64_t)x))                      \
    X(abs, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)          \
    X(sign, x > 0 ? 1 : x < 0 ? -1 : 0)                     \
    X(square, (int64_t)((uint64_t)x * (uint64_t)x))         \
    X(relu, x < 0 ? 0 : x)                                  \
    X(clip, (double)x < p ? (int64_t)p : (double)x > q ? (int64_t)q : x)
/* clang-format on */

static double sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double silu_slope(double x) {
    const double s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* 1 - s is a sigmoid of its own: beside a large x its rounding would show. */
static inline float silu_slope_f32(float x) {
    const float s = sn_sigmoid_f32(x), other = sn_sigmoid_f32(-x);
    return s * (1.0f + x * other);
}

/* x Phi(x) of the normal distribution. */
static inline float gelu_value_f32(float x) {
    float e;
    return x * sn_normal_f32(x, &e);
}

/* Phi(x) + x phi(x). */
static double gelu_slope(double x) {
    const double u = x * ROOT_HALF;
    return 0.5 * (1 + erf(u)) + u * exp(-u * u) * 0.56418958354775628695; /* 1 / sqrt(pi) */
}

static inline float gelu_slope_f32(float x) {
    float e;
    const float phi = sn_normal_f32(x, &e);
    return phi + x * e * 0.398942280f;
}

/* sqrt(2 / pi) (x + 0.044715 x^3) and, for the slope, its derivative; of both widths. */
#define gelu_arg(x)                                                                                \
    (((x) + ROUNDED(x, 0.044715f) * (x) * (x) * (x)) * ROUNDED(x, 0.7978845608028654))
#define ROUNDED(x, constant) ((__typeof__(x))(constant))

static double gelu_tanh_slope(double x) {
    const double t = tanh(gelu_arg(x));
    const double inner = 0.7978845608028654 * (1 + 3 * (double)0.044715f * x * x);
    return 0.5 * (1 + t) + (t * t < 1 ? 0.5 * x * (1 - t * t) * inner : 0);
}

static inline float gelu_tanh_slope_f32(float x) {
    const float t = sn_tanh_f32(gelu_arg(x));
    const float inner = 0.797884561f * (1.0f + 0.134145f * x * x);
    return 0.5f * (1.0f + t) + (t * t < 1.0f ? 0.5f * x * (1.0f - t * t) * inner : 0.0f);
}

static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double mish_slope(double x) {
    const double t = tanh(softplus(x));
    return t < 1 ? t + x * sigmoid(x) * (1 - t) * (1 + t) : t;
}

/* tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), which is 1 in f32 from 20 on. */
static inline float mish_gate_f32(float x) {
    const float e = sn_exp_f32(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f);
    return n / (n + 2.0f);
}

/* 1 - t = 2 / (n + 2), and sigmoid(x) is e / (e + 1). */
static inline float mish_slope_f32(float x) {
    const float e = sn_exp_f32(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f);
    const float t = n / (n + 2.0f);
    const float far = x > 20.0f ? 20.0f : x; /* beyond, the rest is below one unit */
    return t + far * (e / (e + 1.0f)) * (2.0f / (n + 2.0f)) * (1.0f + t);
}

static inline double relu6(double x) {
    return x < 0 ? 0 : x > 6 ? 6 : x;
}

static inline float relu6f(float x) {
    return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
}

static inline double hard_silu_slope(double x) {
    const double t = x + 3;
    return relu6(t) / 6 + (t > 0 && t < 6 ? x / 6 : 0);
}

static inline float hard_silu_slope_f32(float x) {
    const float t = x + 3.0f;
    return relu6f(t) / 6.0f + (t > 0.0f && t < 6.0f ? x / 6.0f : 0.0f);
}

/* The exponents models use need no logarithm; others take libm, element by element. */
static inline float raised(float x, float p) {
    return p == 2.0f    ? x * x
           : p == 1.0f  ? x
           : p == 3.0f  ? x * x * x
           : p == -1.0f ? 1.0f / x
                        : powf(x, p);
}

/* --- spans ------------------------------------------------------------------------------------ */
/* `T x` is computed from what memory holds, in type C; p and q were rounded to the dtype M. */
#define UNARY_SPAN(name, M, C, expression)                                                         \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *in = (const M *)c->in[0].data + first;                                            \
        M *out = (M *)c->out[0].data + first;                                                      \
        const C p = (C)(M)sn_real_param(c, 0), q = (C)(M)sn_real_param(c, 1);                      \
        (void)p, (void)q;                                                                          \
        SN_IVDEP for (int64_t i = 0; i < n; i++) {                                                 \
            const C x = in[i];                                                                     \
            out[i] = (M)(expression);                                                              \
        }                                                                                          \
    }

#define PAIR_SPAN(name, M, C, expression)                                                          \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *in0 = (const M *)c->in[0].data + first;                                           \
        const M *in1 = (const M *)c->in[1].data + first;                                           \
        M *out = (M *)c->out[0].data + first;                                                      \
        const C p = (C)(M)sn_real_param(c, 0);                                                     \
        (void)p;                                                                                   \
        SN_IVDEP for (int64_t i = 0; i < n; i++) {                                                 \
            const C g = in0[i], y = in1[i];                                                        \
            out[i] = (M)(expression);                                                              \
        }                                                                                          \
    }

/* Bounds of clip beyond the integers' range clip nothing: no integer lies outside +-2^63. */
static double whole_bound(const sn_call *c, int i) {
    const double limit = 0x1p63, v = sn_real_param(c, i);
    return v < -limit ? -limit : v > limit ? limit : v;
}

#define INTEGER_SPAN(name, M, expression)                                                          \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *in = (const M *)c->in[0].data + first;                                            \
        M *out = (M *)c->out[0].data + first;                                                      \
        const double p = whole_bound(c, 0), q = whole_bound(c, 1);                                 \
        (void)p, (void)q;                                                                          \
        SN_IVDEP for (int64_t i = 0; i < n; i++) {                                                 \
            const int64_t x = in[i];                                                               \
            out[i] = (M)(expression);                                                              \
        }                                                                                          \
    }

#define UNARY_SPANS(name, single, real)                                                            \
    UNARY_SPAN(name##_fast, float, float, single)                                                  \
    UNARY_SPAN(name##_f32, float, double, real)                                                    \
    UNARY_SPAN(name##_f64, double, double, real)
UNARY_MAP(UNARY_SPANS)

#define PAIR_SPANS(name, single, real)                                                             \
    PAIR_SPAN(name##_fast, float, float, single)                                                   \
    PAIR_SPAN(name##_f32, float, double, real)                                                     \
    PAIR_SPAN(name##_f64, double, double, real)
PAIR_MAP(PAIR_SPANS)

#define INTEGER_SPANS(name, whole)                                                                 \
    INTEGER_SPAN(name##_i8, int8_t, whole)                                                         \
    INTEGER_SPAN(name##_u8, uint8_t, whole)                                                        \
    INTEGER_SPAN(name##_i32, int32_t, whole)                                                       \
    INTEGER_SPAN(name##_i64, int64_t, whole)
INTEGER_MAP(INTEGER_SPANS)

/* Far from 0, and for what is no number, libm finds the angle; elements nearby keep their bits. */
#define WAVE_SPANS(name, quarter)                                                                  \
    static void name##_fast(const sn_call *c, int64_t first, int64_t n) {                          \
        const float *in = (const float *)c->in[0].data + first;                                    \
        float *out = (float *)c->out[0].data + first;                                              \
        bool near = true;                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            near = near & (fabsf(in[i]) <= SN_WAVE_FAR);                                           \
        if (near) {                                                                                \
            SN_IVDEP for (int64_t i = 0; i < n; i++) {                                             \
                out[i] = sn_wave_f32(in[i], quarter);                                              \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] =                                                                           \
                    fabsf(in[i]) <= SN_WAVE_FAR ? sn_wave_f32(in[i], quarter) : name##f(in[i]);    \
        }                                                                                          \
    }                                                                                              \
    UNARY_SPAN(name##_f32, float, double, name(x))                                                 \
    UNARY_SPAN(name##_f64, double, double, name(x))
#define WAVE_MAP(X) X(sin, 0) X(cos, 1)
WAVE_MAP(WAVE_SPANS)

static void logical_not_bool(const sn_call *c, int64_t first, int64_t n) {
    const uint8_t *in = (const uint8_t *)c->in[0].data + first;
    uint8_t *out = (uint8_t *)c->out[0].data + first;
    SN_IVDEP
    for (int64_t i = 0; i < n; i++)
        out[i] = in[i] == 0;
}

/* --- tests of floats -------------------------------------------------------------------------- */
/* x - x is 0 for finite numbers, else NaN. */
#define TEST_MAP(X)                                                                                \
    X(isnan, x != x)                                                                               \
    X(isinf, x == x && x - x != x - x)                                                             \
    X(isfinite, x - x == x - x)

#define TEST_SPAN(name, M, expression)                                                             \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *in = (const M *)c->in[0].data + first;                                            \
        uint8_t *out = (uint8_t *)c->out[0].data + first;                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const M x = in[i];                                                                     \
            out[i] = expression;                                                                   \
        }                                                                                          \
    }
#define TEST_SPANS(name, expression)                                                               \
    TEST_SPAN(name##_f32, float, expression)                                                       \
    TEST_SPAN(name##_f64, double, expression)
TEST_MAP(TEST_SPANS)

static const sn_span tests[SN_N_OPS][SNUG_N_DTYPES] = {
#define TEST_ROW(name, expression)                                                                 \
    [SN_OP_##name] = {[SNUG_F32] = name##_f32, [SNUG_F64] = name##_f64},
    TEST_MAP(TEST_ROW)};

static snug_status run_test(const sn_call *c, snug_error *err) {
    const snug_dtype dtype = c->in[0].type.dtype;
    const bool halves = sn_dtype_is_half(dtype);
    const sn_span span = tests[c->op][halves ? SNUG_F32 : dtype];
    const int64_t n = sn_type_count(&c->out[0].type);
    if (!span)
        return sn_no_kernel(dtype, err);
    if (halves)
        sn_line_spans(c, n, span, SNUG_F32);
    else
        sn_spans(c, n, span);
    return SNUG_OK;
}

#define TEST_FAMILY(name, expression)                                                              \
    SN_CPU_FAMILY(name, .reference = run_test, .run = run_test, .takes_stored = SN_HALF_DTYPES)
TEST_MAP(TEST_FAMILY)

/* --- families --------------------------------------------------------------------------------- */
/* By operator; the two halves of an operator on numbers are joined by dtype below. */
static const sn_map maps[SN_N_OPS] = {
#define FLOAT_ROW(name, ...)                                                                       \
    [SN_OP_##name] = {.fast_f32 = name##_fast,                                                     \
                      .plain = {[SNUG_F32] = name##_f32, [SNUG_F64] = name##_f64}},
    UNARY_MAP(FLOAT_ROW) WAVE_MAP(FLOAT_ROW)
        PAIR_MAP(FLOAT_ROW)[SN_OP_logical_not] = {.plain = {[SNUG_BOOL] = logical_not_bool}},
};

static const sn_map integer_maps[SN_N_OPS] = {
#define INTEGER_ROW(name, whole)                                                                   \
    [SN_OP_##name] = {.plain = {[SNUG_I8] = name##_i8,                                             \
                                [SNUG_U8] = name##_u8,                                             \
                                [SNUG_I32] = name##_i32,                                           \
                                [SNUG_I64] = name##_i64}},
    INTEGER_MAP(INTEGER_ROW)};

static const sn_map *map_of(const sn_call *c) {
    return sn_dtype_is_int(c->out[0].type.dtype) ? &integer_maps[c->op] : &maps[c->op];
}

static snug_status reference(const sn_call *c, snug_error *err) {
    return sn_map_reference(c, map_of(c), err);
}

static snug_status run(const sn_call *c, snug_error *err) {
    return sn_map_run(c, map_of(c), err);
}

#define NUMBER_FAMILY(name, ...)                                                                   \
    SN_CPU_FAMILY(name, .reference = reference, .run = run, .takes_stored = SN_STORED_DTYPES)
NUMBER_MAP(NUMBER_FAMILY)
#define FAMILY(name, ...)                                                                          \
    SN_CPU_FAMILY(name, .reference = reference, .run = run, .takes_stored = SN_HALF_DTYPES)
REAL_MAP(FAMILY)
WAVE_MAP(FAMILY)
PAIR_MAP(FAMILY)
SN_CPU_FAMILY(logical_not, .reference = reference, .run = run)
