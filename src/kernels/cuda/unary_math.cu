/* unary_math.cu: the less common functions of one input. All are computed in double, which a memory
 * bound kernel has time for, and rounded once. */
#include "kernels/cuda/maps.h"
#include "kernels/cuda/wave.h"

#define PI 3.14159265358979323846

/* Two steps of Halley's method, whose error shrinks to its cube, from Winitzki's formula, which is
 * within 0.002. erf(y) - x is taken from erfc where x is near 1. */
static __device__ double erfinv_of(double x) {
    const double a = fabs(x), half_root_pi = 0.88622692545275801365;
    if (!(a < 1))
        return a == 1 ? copysign((double)INFINITY, x) : (double)NAN;
    const double l = log1p(-a * a), t = 4.3307467508 + 0.5 * l;
    double y = sqrt(sqrt(t * t - l / 0.147) - t);
    for (int i = 0; i < 2; i++) {
        const double off = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        const double step = off * half_root_pi * exp(y * y);
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

/* psi(x) = psi(x + 1) - 1 / x up to x >= 10, where the series has all digits; the reflection
 * formula below 0. */
static __device__ double digamma_of(double x) {
    double shift = 0;
    if (x <= 0) {
        if (x == floor(x))
            return (double)NAN;
        shift = -PI / sn_tangent(PI * (x - floor(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        shift -= 1 / x;
    const double z = 1 / (x * x);
    double series = 691.0 / 32760 - z / 12;
    series = 1.0 / 132 - z * series;
    series = 1.0 / 240 - z * series;
    series = 1.0 / 252 - z * series;
    series = 1.0 / 120 - z * series;
    return shift + log(x) - 0.5 / x - z * (1.0 / 12 - z * series);
}

/* psi'(x) = psi'(x + 1) + 1 / x^2, likewise. */
static __device__ double trigamma_of(double x) {
    double sign = 1, shift = 0;
    if (x <= 0) {
        if (x == floor(x))
            return (double)INFINITY;
        const double s = sn_wave(PI * (x - floor(x)), 0);
        shift = PI * PI / (s * s);
        sign = -1;
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        shift += sign / (x * x);
    const double z = 1 / (x * x);
    double series = 691.0 / 2730 - z * (7.0 / 6);
    series = 5.0 / 66 - z * series;
    series = 1.0 / 30 - z * series;
    series = 1.0 / 42 - z * series;
    series = 1.0 / 30 - z * series;
    series = 1.0 / 6 - z * series;
    return shift + sign * (1 / x + 0.5 * z + z / x * series);
}

/* clang-format off */
#define MATH_MAP(X)                                                                                \
    X(sin,      sn_wave(x, 0))                                                                     \
    X(cos,      sn_wave(x, 1))                                                                     \
    X(tan,      sn_tangent(x))                                                                     \
    X(asin,     asin(x))                                                                           \
    X(acos,     acos(x))                                                                           \
    X(atan,     atan(x))                                                                           \
    X(sinh,     sinh(x))                                                                           \
    X(cosh,     cosh(x))                                                                           \
    X(asinh,    asinh(x))                                                                          \
    X(acosh,    acosh(x))                                                                          \
    X(atanh,    atanh(x))                                                                          \
    X(log1p,    log1p(x))                                                                          \
    X(expm1,    expm1(x))                                                                          \
    X(erfc,     erfc(x))                                                                           \
    X(erfinv,   erfinv_of(x))                                                                      \
    X(lgamma,   lgamma(x))                                                                         \
    X(digamma,  digamma_of(x))                                                                     \
    X(trigamma, trigamma_of(x))                                                                    \
    X(floor,    floor(x))                                                                          \
    X(ceiling,  ceil(x))                                                                           \
    X(round,    rint(x))                                                                           \
    X(trunc,    trunc(x))
#define MATH_OP(name, expression)                                                                  \
    struct name##_op {                                                                             \
        static __device__ __forceinline__ double at(double x, double, double) {                    \
            return expression;                                                                     \
        }                                                                                          \
    };                                                                                             \
    SN_CUDA_FLOATS(name, (sn_run_unary<name##_op, double>), NULL, 0)
/* clang-format on */
MATH_MAP(MATH_OP)
