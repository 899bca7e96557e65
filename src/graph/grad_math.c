/* grad_math.c: gradients of the functions of one number (trigonometric, hyperbolic and their
 * inverses, log1p, expm1, the error functions, lgamma) and of pow, mod and atan2. */
#include "graph/rule.h"

#define HALF_SQRT_PI     0.8862269254527580
#define TWO_OVER_SQRT_PI 1.1283791670955126

/* scale * x^2 + shift */
static sn_value square_affine(const sn_grad_call *c, sn_value x, double scale, double shift) {
    return sn_build_affine(c->b, sn_build_square(c->b, x), scale, shift);
}

/* dy / sqrt(scale * x^2 + shift) */
static sn_value over_root(const sn_grad_call *c, double scale, double shift) {
    return sn_build_mul(c->b, c->dout[0],
                        sn_build_rsqrt(c->b, square_affine(c, c->in[0], scale, shift)));
}

SN_GRAD_RULE(sin) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_cos(c->b, c->in[0]));
}

SN_GRAD_RULE(cos) {
    c->din[0] = sn_build_neg(c->b, sn_build_mul(c->b, c->dout[0], sn_build_sin(c->b, c->in[0])));
}

SN_GRAD_RULE(tan) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], square_affine(c, c->out[0], 1, 1));
}

SN_GRAD_RULE(asin) {
    c->din[0] = over_root(c, -1, 1);
}

SN_GRAD_RULE(acos) {
    c->din[0] = sn_build_neg(c->b, over_root(c, -1, 1));
}

SN_GRAD_RULE(atan) {
    c->din[0] = sn_build_div(c->b, c->dout[0], square_affine(c, c->in[0], 1, 1));
}

SN_GRAD_RULE(sinh) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_cosh(c->b, c->in[0]));
}

SN_GRAD_RULE(cosh) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_sinh(c->b, c->in[0]));
}

SN_GRAD_RULE(asinh) {
    c->din[0] = over_root(c, 1, 1);
}

SN_GRAD_RULE(acosh) {
    c->din[0] = over_root(c, 1, -1);
}

SN_GRAD_RULE(atanh) {
    c->din[0] = sn_build_div(c->b, c->dout[0], square_affine(c, c->in[0], -1, 1));
}

SN_GRAD_RULE(log1p) {
    c->din[0] = sn_build_div(c->b, c->dout[0], sn_build_affine(c->b, c->in[0], 1, 1));
}

SN_GRAD_RULE(expm1) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_affine(c->b, c->out[0], 1, 1));
}

SN_GRAD_RULE(erfc) {
    const sn_value bell = sn_build_exp(c->b, square_affine(c, c->in[0], -1, 0));
    c->din[0] = sn_build_affine(c->b, sn_build_mul(c->b, c->dout[0], bell), -TWO_OVER_SQRT_PI, 0);
}

/* erf(y) = x: dy/dx = sqrt(pi) / 2 exp(y^2) */
SN_GRAD_RULE(erfinv) {
    const sn_value steep = sn_build_exp(c->b, sn_build_square(c->b, c->out[0]));
    c->din[0] = sn_build_affine(c->b, sn_build_mul(c->b, c->dout[0], steep), HALF_SQRT_PI, 0);
}

SN_GRAD_RULE(lgamma) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_digamma(c->b, c->in[0]));
}

SN_GRAD_RULE(digamma) {
    c->din[0] = sn_build_mul(c->b, c->dout[0], sn_build_trigamma(c->b, c->in[0]));
}

/* --- two inputs ------------------------------------------------------------------------------- */

/* z = x^y: dx = dz y x^(y-1), nothing where y is 0; dy = dz z log(x), nothing where x <= 0. */
SN_GRAD_RULE(pow) {
    const sn_value x = c->in[0], y = c->in[1];
    const sn_value zero = sn_build_scalar(c->b, sn_rule_type(c, x).dtype, 0);
    const sn_value one = sn_build_scalar(c->b, sn_rule_type(c, x).dtype, 1);
    if (c->wants[0]) {
        const sn_value lower = sn_build_pow(c->b, x, sn_build_affine(c->b, y, 1, -1));
        const sn_value slope = sn_build_mul(c->b, y, lower);
        const sn_value some = sn_build_select(c->b, sn_build_equal(c->b, y, zero), zero, slope);
        c->din[0] = sn_rule_back_to(c, 0, sn_build_mul(c->b, c->dout[0], some));
    }
    if (c->wants[1]) {
        const sn_value safe =
            sn_build_select(c->b, sn_build_greater(c->b, x, zero), x, one); /* log(1) = 0 */
        const sn_value slope = sn_build_mul(c->b, c->out[0], sn_build_log(c->b, safe));
        c->din[1] = sn_rule_back_to(c, 1, sn_build_mul(c->b, c->dout[0], slope));
    }
}

/* x - floor(x / y) y */
SN_GRAD_RULE(mod) {
    if (c->wants[0])
        c->din[0] = sn_rule_back_to(c, 0, c->dout[0]);
    if (c->wants[1]) {
        const sn_value whole = sn_build_floor_div(c->b, c->in[0], c->in[1]);
        c->din[1] =
            sn_build_neg(c->b, sn_rule_back_to(c, 1, sn_build_mul(c->b, c->dout[0], whole)));
    }
}

/* in: a, b; the angle of (b, a): da = b / (a^2 + b^2), db = -a / (a^2 + b^2) */
SN_GRAD_RULE(atan2) {
    const sn_value far =
        sn_build_add(c->b, sn_build_square(c->b, c->in[0]), sn_build_square(c->b, c->in[1]));
    const sn_value d = sn_build_div(c->b, c->dout[0], far);
    if (c->wants[0])
        c->din[0] = sn_rule_back_to(c, 0, sn_build_mul(c->b, d, c->in[1]));
    if (c->wants[1])
        c->din[1] = sn_build_neg(c->b, sn_rule_back_to(c, 1, sn_build_mul(c->b, d, c->in[0])));
}
