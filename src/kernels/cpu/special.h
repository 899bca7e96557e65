/* special.h: functions libm lacks, in double: the inverse of erf, digamma and its derivative, and
 * lgamma without its global sign. Accurate to a few units in the last place of a double away from
 * zeros of the function. */
#ifndef SN_KERNELS_CPU_SPECIAL_H
#define SN_KERNELS_CPU_SPECIAL_H

#include <math.h>

/* lgamma writes the global signgam; threads must not. */
static inline double sn_lgamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

/* Two steps of Halley's method, whose error shrinks to its cube, from Winitzki's formula, which is
 * within 0.002. erf(y) - x is taken from erfc where x is near 1. */
static inline double sn_erfinv(double x) {
    const double a = fabs(x), half_root_pi = 0.88622692545275801365;
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
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
static inline double sn_digamma(double x) {
    double shift = 0;
    if (x <= 0) {
        if (x == floor(x))
            return NAN;
        shift = -M_PI / tan(M_PI * (x - floor(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        shift -= 1 / x;
    const double z = 1 / (x * x);
    const double series =
        z *
        (1.0 / 12 -
         z * (1.0 / 120 -
              z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
    return shift + log(x) - 0.5 / x - series;
}

/* psi'(x) = psi'(x + 1) + 1 / x^2, likewise. */
static inline double sn_trigamma(double x) {
    double sign = 1, shift = 0;
    if (x <= 0) {
        if (x == floor(x))
            return INFINITY;
        const double s = sin(M_PI * (x - floor(x)));
        shift = M_PI * M_PI / (s * s);
        sign = -1;
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        shift += sign / (x * x);
    const double z = 1 / (x * x);
    const double series =
        1.0 / 6 -
        z * (1.0 / 30 -
             z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * (7.0 / 6))))));
    return shift + sign * (1 / x + 0.5 * z + z / x * series);
}

#endif
