/* functions_math.c: functions of single elements: of one tensor, of two with broadcasting,
 * comparisons, truth values, limits and casts. */
#include "function/function_call.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- one tensor ------------------------------------------------------------------------------- */
/* Float functions: integers are refused by the row, or cast where the function promotes. */
#define FLOAT_FUNCTION(name)                                                                       \
    void sn_fn_##name(sn_fn_call *c) {                                                             \
        c->out[0] = sn_build_##name(c->b, sn_fn_float(c, 0));                                      \
    }
FLOAT_FUNCTION(exp)
FLOAT_FUNCTION(log)
FLOAT_FUNCTION(log1p)
FLOAT_FUNCTION(expm1)
FLOAT_FUNCTION(sqrt)
FLOAT_FUNCTION(rsqrt)
FLOAT_FUNCTION(sin)
FLOAT_FUNCTION(cos)
FLOAT_FUNCTION(tan)
FLOAT_FUNCTION(asin)
FLOAT_FUNCTION(acos)
FLOAT_FUNCTION(atan)
FLOAT_FUNCTION(sinh)
FLOAT_FUNCTION(cosh)
FLOAT_FUNCTION(tanh)
FLOAT_FUNCTION(asinh)
FLOAT_FUNCTION(acosh)
FLOAT_FUNCTION(atanh)
FLOAT_FUNCTION(erf)
FLOAT_FUNCTION(erfc)
FLOAT_FUNCTION(erfinv)
FLOAT_FUNCTION(lgamma)
FLOAT_FUNCTION(digamma)
FLOAT_FUNCTION(reciprocal)

/* Functions of numbers of any kind. */
#define NUMBER_FUNCTION(name)                                                                      \
    void sn_fn_##name(sn_fn_call *c) {                                                             \
        c->out[0] = sn_build_##name(c->b, sn_fn_value(c, 0));                                      \
    }
NUMBER_FUNCTION(neg)
NUMBER_FUNCTION(abs)
NUMBER_FUNCTION(sign)
NUMBER_FUNCTION(square)
NUMBER_FUNCTION(identity)
NUMBER_FUNCTION(stop_gradient)

/* Whole numbers are what they are rounded to; Keras' floor and ceil make floats of them. */
#define ROUNDING(name, keras_floats)                                                               \
    void sn_fn_##name(sn_fn_call *c) {                                                             \
        const sn_value x = keras_floats && c->promotes ? sn_fn_float(c, 0) : sn_fn_value(c, 0);    \
        c->out[0] = sn_dtype_is_int(sn_fn_dtype_of(c, x)) ? x : sn_build_##name(c->b, x);          \
    }
ROUNDING(floor, true)
ROUNDING(ceil, true)
ROUNDING(trunc, false)

/* A whole number to the nearest multiple of `unit`, halves to the even one. */
static sn_value rounded_whole(sn_fn_call *c, sn_value x, double unit) {
    const sn_value shares = sn_build_div(c->b, sn_build_cast(c->b, x, SNUG_F64),
                                         sn_build_scalar(c->b, SNUG_F64, unit)),
                   size = sn_fn_like(c, x, unit);
    return sn_build_mul(
        c->b, sn_build_cast(c->b, sn_build_round(c->b, shares), sn_fn_dtype_of(c, x)), size);
}

void sn_fn_round(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const double factor = pow(10, (double)sn_fn_int(c, "decimals"));
    if (sn_dtype_is_int(sn_fn_dtype_of(c, x)))
        c->out[0] = factor < 1 ? rounded_whole(c, x, nearbyint(1 / factor)) : x;
    else if (factor == 1)
        c->out[0] = sn_build_round(c->b, x);
    else
        c->out[0] = sn_build_div(c->b, sn_build_round(c->b, sn_build_affine(c->b, x, factor, 0)),
                                 sn_fn_like(c, x, factor));
}

/* Of whole numbers the answer is the same everywhere. */
static void float_test(sn_fn_call *c, sn_value (*test)(sn_builder *, sn_value), double otherwise) {
    const sn_value x = sn_fn_value(c, 0);
    snug_type t = sn_fn_type(c, x);
    if (sn_dtype_is_float(t.dtype) || !c->promotes) {
        c->out[0] = test(c->b, x);
        return;
    }
    t.dtype = SNUG_BOOL;
    c->out[0] = sn_build_fill(c->b, &t, otherwise);
}
void sn_fn_isnan(sn_fn_call *c) {
    float_test(c, sn_build_isnan, 0);
}
void sn_fn_isinf(sn_fn_call *c) {
    float_test(c, sn_build_isinf, 0);
}
void sn_fn_isfinite(sn_fn_call *c) {
    float_test(c, sn_build_isfinite, 1);
}

void sn_fn_check_numerics(sn_fn_call *c) {
    c->out[0] = sn_build_check_finite(c->b, sn_fn_value(c, 0));
}

void sn_fn_log10(sn_fn_call *c) {
    c->out[0] = sn_build_affine(c->b, sn_build_log(c->b, sn_fn_float(c, 0)), 1 / log(10), 0);
}

void sn_fn_log2(sn_fn_call *c) {
    c->out[0] = sn_build_affine(c->b, sn_build_log(c->b, sn_fn_float(c, 0)), 1 / log(2), 0);
}

void sn_fn_exp2(sn_fn_call *c) {
    c->out[0] = sn_build_exp(c->b, sn_build_affine(c->b, sn_fn_float(c, 0), log(2), 0));
}

void sn_fn_deg2rad(sn_fn_call *c) {
    c->out[0] = sn_build_affine(c->b, sn_fn_float(c, 0), acos(-1) / 180, 0);
}

void sn_fn_rad2deg(sn_fn_call *c) {
    c->out[0] = sn_build_affine(c->b, sn_fn_float(c, 0), 180 / acos(-1), 0);
}

void sn_fn_sinc(sn_fn_call *c) {
    const sn_value x = sn_build_affine(c->b, sn_fn_float(c, 0), acos(-1), 0);
    const sn_value zero = sn_fn_like(c, x, 0), one = sn_fn_like(c, x, 1),
                   none = sn_build_equal(c->b, x, zero), safe = sn_build_select(c->b, none, one, x);
    c->out[0] =
        sn_build_select(c->b, none, one, sn_build_div(c->b, sn_build_sin(c->b, safe), safe));
}

void sn_fn_nan_to_num(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    const double most = dtype == SNUG_F64 ? DBL_MAX : (double)FLT_MAX;
    if (!sn_dtype_is_float(dtype)) {
        c->out[0] = x;
        return;
    }
    const double above = sn_fn_given(c, "posinf") ? sn_fn_real(c, "posinf") : most,
                 below = sn_fn_given(c, "neginf") ? sn_fn_real(c, "neginf") : -most;
    const sn_value zero = sn_fn_like(c, x, 0), endless = sn_build_isinf(c->b, x),
                   positive = sn_build_greater(c->b, x, zero);
    const sn_value limit =
        sn_build_select(c->b, positive, sn_fn_like(c, x, above), sn_fn_like(c, x, below));
    c->out[0] =
        sn_build_select(c->b, sn_build_isnan(c->b, x), sn_fn_like(c, x, sn_fn_real(c, "nan")),
                        sn_build_select(c->b, endless, limit, x));
}

/* --- two tensors ------------------------------------------------------------------------------ */
/* A number beside a float tensor is a parameter of one operator. */
static bool is_number_beside(sn_fn_call *c, int number, int tensor, double *v, sn_value *x) {
    double other;
    if (!sn_fn_number(c, number, v) || sn_fn_number(c, tensor, &other))
        return false;
    *x = sn_fn_value(c, tensor);
    *v = sn_fn_rounded(c, *v);
    return sn_dtype_is_float(sn_fn_dtype_of(c, *x));
}

void sn_fn_add(sn_fn_call *c) {
    sn_value x, y;
    double v;
    if (is_number_beside(c, 1, 0, &v, &x) || is_number_beside(c, 0, 1, &v, &x)) {
        c->out[0] = sn_build_shifted(c->b, x, v);
        return;
    }
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = sn_fn_dtype_of(c, x) == SNUG_BOOL && c->promotes ? sn_build_logical_or(c->b, x, y)
                                                                 : sn_build_add(c->b, x, y);
}

void sn_fn_subtract(sn_fn_call *c) {
    sn_value x, y;
    double v;
    if (is_number_beside(c, 1, 0, &v, &x)) {
        c->out[0] = sn_build_shifted(c->b, x, -v);
        return;
    }
    if (is_number_beside(c, 0, 1, &v, &x)) {
        c->out[0] = sn_build_affine(c->b, x, -1, v);
        return;
    }
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = sn_build_sub(c->b, x, y);
}

void sn_fn_multiply(sn_fn_call *c) {
    sn_value x, y;
    double v;
    if (is_number_beside(c, 1, 0, &v, &x) || is_number_beside(c, 0, 1, &v, &x)) {
        c->out[0] = sn_build_scaled(c->b, x, v);
        return;
    }
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = sn_fn_dtype_of(c, x) == SNUG_BOOL && c->promotes ? sn_build_logical_and(c->b, x, y)
                                                                 : sn_build_mul(c->b, x, y);
}

/* Operands of a division: whole numbers become f64 in TensorFlow (of 8 and 16 bits f32), f32 in
 * Keras. */
static void quotient_pair(sn_fn_call *c, sn_value *x, sn_value *y) {
    sn_fn_pair(c, 0, 1, x, y);
    const snug_dtype dtype = sn_fn_type(c, *x).dtype;
    if (sn_fn_failed(c) || sn_dtype_is_float(dtype))
        return;
    sn_fn_same_dtype(c, *x, *y);
    if (dtype == SNUG_BOOL && !c->promotes)
        return sn_fn_refuse(c, SNUG_E_SHAPE, "a division of bool; cast it");
    const bool small =
        dtype == SNUG_I8 || dtype == SNUG_U8 || c->narrow == SNUG_I16 || c->narrow == SNUG_U16;
    const snug_dtype to = c->promotes || small ? c->floats : SNUG_F64;
    *x = sn_build_cast(c->b, *x, to);
    *y = sn_build_cast(c->b, *y, to);
}

void sn_fn_divide(sn_fn_call *c) {
    sn_value x, y;
    quotient_pair(c, &x, &y);
    c->out[0] = sn_build_div(c->b, x, y);
}

/* op(x, y), and `otherwise` where the test of one of them is zero; no NaN gets into gradients. */
static sn_value guarded(sn_fn_call *c, sn_value x, sn_value y, sn_value test,
                        sn_value (*op)(sn_builder *, sn_value, sn_value)) {
    const sn_value zero = sn_fn_like(c, test, 0), one = sn_fn_like(c, y, 1),
                   none = sn_build_equal(c->b, test, zero);
    return sn_build_select(c->b, none, sn_fn_like(c, x, 0),
                           op(c->b, x, sn_build_select(c->b, none, one, y)));
}

void sn_fn_divide_no_nan(sn_fn_call *c) {
    sn_value x, y;
    quotient_pair(c, &x, &y);
    c->out[0] = guarded(c, x, y, y, sn_build_div);
}

void sn_fn_multiply_no_nan(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = guarded(c, x, y, y, sn_build_mul);
}

void sn_fn_xdivy(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = guarded(c, x, y, x, sn_build_div);
}

static sn_value times_log(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_mul(b, x, sn_build_log(b, y));
}

static sn_value times_log1p(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_mul(b, x, sn_build_log1p(b, y));
}

void sn_fn_xlogy(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = guarded(c, x, y, x, times_log);
}

void sn_fn_xlog1py(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = guarded(c, x, y, x, times_log1p);
}

#define PAIR_FUNCTION(name, row)                                                                   \
    void sn_fn_##name(sn_fn_call *c) {                                                             \
        sn_value x, y;                                                                             \
        sn_fn_pair(c, 0, 1, &x, &y);                                                               \
        c->out[0] = sn_build_##row(c->b, x, y);                                                    \
    }
PAIR_FUNCTION(maximum, maximum)
PAIR_FUNCTION(minimum, minimum)

/* Whole numbers are not divided by a zero that is known: a number, or one of a few that are there
 * already, which are computed with at once. Whether the divisor is known. */
static bool check_divisor(sn_fn_call *c) {
    const snug_argument *const a = &c->arg[1];
    double number = 1;
    bool known = sn_fn_number(c, 1, &number), zero = known && number == 0;
    if (c->door->knows && sn_fn_is_operand(a))
        known = c->door->knows(c, a, &zero);
    if (zero)
        sn_fn_refuse(c, SNUG_E_DATA, "Integer division by zero");
    return known;
}

/* The divisor, and an error where a run finds a zero among its numbers: one over it is infinite. */
static sn_value checked_divisor(sn_fn_call *c, sn_value y) {
    const snug_dtype dtype = sn_fn_type(c, y).dtype;
    const sn_value real = sn_build_cast(c->b, y, SNUG_F32);
    const sn_value inverse = sn_build_div(c->b, sn_fn_like(c, real, 1), real);
    const sn_value none = sn_build_affine(c->b, sn_build_check_finite(c->b, inverse), 0, 0);
    return sn_build_add(c->b, y, sn_build_cast(c->b, none, dtype));
}

/* Operands of a division that gives whole numbers where they are. */
static void divided_pair(sn_fn_call *c, sn_value *x, sn_value *y) {
    sn_fn_pair(c, 0, 1, x, y);
    if (sn_fn_failed(c) || !sn_dtype_is_int(sn_fn_type(c, *x).dtype) || c->promotes)
        return;
    if (!check_divisor(c) && !sn_fn_failed(c))
        *y = checked_divisor(c, *y);
}

void sn_fn_floordiv(sn_fn_call *c) {
    sn_value x, y;
    divided_pair(c, &x, &y);
    c->out[0] = sn_build_floor_div(c->b, x, y);
}

void sn_fn_mod(sn_fn_call *c) {
    sn_value x, y;
    divided_pair(c, &x, &y);
    c->out[0] = sn_build_mod(c->b, x, y);
}
PAIR_FUNCTION(equal, equal)
PAIR_FUNCTION(not_equal, not_equal)
PAIR_FUNCTION(greater, greater)
PAIR_FUNCTION(greater_equal, greater_equal)
PAIR_FUNCTION(less, less)
PAIR_FUNCTION(less_equal, less_equal)

void sn_fn_atan2(sn_fn_call *c) {
    sn_value x, y;
    quotient_pair(c, &x, &y);
    c->out[0] = sn_build_atan2(c->b, x, y);
}

void sn_fn_hypot(sn_fn_call *c) {
    sn_value x, y;
    quotient_pair(c, &x, &y);
    c->out[0] =
        sn_build_sqrt(c->b, sn_build_add(c->b, sn_build_square(c->b, x), sn_build_square(c->b, y)));
}

void sn_fn_squared_difference(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = sn_build_square(c->b, sn_build_sub(c->b, x, y));
}

/* log(exp x + exp y) = max + log(1 + exp(-|x - y|)) */
void sn_fn_logaddexp(sn_fn_call *c) {
    sn_value x, y;
    quotient_pair(c, &x, &y);
    const sn_value apart = sn_build_abs(c->b, sn_build_sub(c->b, x, y));
    c->out[0] = sn_build_add(c->b, sn_build_maximum(c->b, x, y),
                             sn_build_softplus(c->b, sn_build_neg(c->b, apart)));
}

/* Whole numbers have no whole inverse: an error where the exponent is negative, which a root tells
 * of those that only a run knows. */
static sn_value whole_exponent(sn_fn_call *c, sn_value y) {
    double v;
    if (sn_fn_failed(c) || !sn_dtype_is_int(sn_fn_dtype_of(c, y)))
        return y;
    const bool known = sn_fn_number(c, 1, &v);
    if (known && v < 0)
        sn_fn_refuse(c, SNUG_E_DATA, "Integers to negative integer powers are not allowed");
    if (known)
        return y;
    const sn_value root = sn_build_sqrt(c->b, sn_build_cast(c->b, y, SNUG_F32));
    const sn_value none = sn_build_affine(c->b, sn_build_check_finite(c->b, root), 0, 0);
    return sn_build_add(c->b, y, sn_build_cast(c->b, none, sn_fn_dtype_of(c, y)));
}

void sn_fn_pow(sn_fn_call *c) {
    sn_value x, y;
    double v;
    if (is_number_beside(c, 1, 0, &v, &x)) {
        c->out[0] = sn_build_value_op(c->b, SN_OP_power, &x, 1, v);
        return;
    }
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = sn_build_pow(c->b, x, whole_exponent(c, y));
}

/* Towards zero: the quotient of the magnitudes, with the sign of the quotient. */
static sn_value truncated_quotient(sn_fn_call *c, sn_value x, sn_value y) {
    if (sn_dtype_is_float(sn_fn_dtype_of(c, x)))
        return sn_build_trunc(c->b, sn_build_div(c->b, x, y));
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    x = sn_build_cast(c->b, x, SNUG_I64); /* -128 has no magnitude in 8 bits */
    y = sn_build_cast(c->b, y, SNUG_I64);
    const sn_value size = sn_build_floor_div(c->b, sn_build_abs(c->b, x), sn_build_abs(c->b, y)),
                   sign = sn_build_mul(c->b, sn_build_sign(c->b, x), sn_build_sign(c->b, y));
    return sn_build_cast(c->b, sn_build_mul(c->b, size, sign), dtype);
}

void sn_fn_truncatediv(sn_fn_call *c) {
    sn_value x, y;
    divided_pair(c, &x, &y);
    c->out[0] = truncated_quotient(c, x, y);
}

void sn_fn_truncatemod(sn_fn_call *c) {
    sn_value x, y;
    divided_pair(c, &x, &y);
    c->out[0] = sn_build_sub(c->b, x, sn_build_mul(c->b, y, truncated_quotient(c, x, y)));
}

/* --- truth values ----------------------------------------------------------------------------- */
static sn_value truth(sn_fn_call *c, int i) {
    const sn_value x = sn_fn_value(c, i);
    return c->promotes ? sn_build_cast(c->b, x, SNUG_BOOL) : x;
}

void sn_fn_logical_and(sn_fn_call *c) {
    c->out[0] = sn_build_logical_and(c->b, truth(c, 0), truth(c, 1));
}

void sn_fn_logical_or(sn_fn_call *c) {
    c->out[0] = sn_build_logical_or(c->b, truth(c, 0), truth(c, 1));
}

void sn_fn_logical_xor(sn_fn_call *c) {
    const sn_value x = sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_BOOL),
                   y = sn_build_cast(c->b, sn_fn_value(c, 1), SNUG_BOOL);
    c->out[0] = sn_build_logical_xor(c->b, x, y);
}

void sn_fn_logical_not(sn_fn_call *c) {
    c->out[0] = sn_build_logical_not(c->b, truth(c, 0));
}

/* Without x and y the places where the condition holds: argument 0 is them already. */
void sn_fn_where(sn_fn_call *c) {
    sn_value x, y;
    const sn_value condition = sn_fn_value(c, 0);
    if (c->n_args < 3 || c->arg[1].kind == SNUG_ARG_NONE) {
        c->out[0] = condition;
        return;
    }
    sn_fn_pair(c, 1, 2, &x, &y);
    c->out[0] = sn_build_select(c->b, sn_build_cast(c->b, condition, SNUG_BOOL), x, y);
}

void sn_fn_isclose(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    if (!sn_dtype_is_float(sn_fn_dtype_of(c, x))) {
        c->out[0] = sn_build_equal(c->b, x, y);
        return;
    }
    const sn_value apart = sn_build_abs(c->b, sn_build_sub(c->b, x, y)),
                   most = sn_build_affine(c->b, sn_build_abs(c->b, y), sn_fn_real(c, "rtol"),
                                          sn_fn_real(c, "atol"));
    const sn_value near = sn_build_less_equal(c->b, apart, most); /* two infinities are not */
    const sn_value both =
        sn_build_logical_and(c->b, sn_build_isnan(c->b, x), sn_build_isnan(c->b, y));
    c->out[0] = sn_fn_flag(c, "equal_nan") ? sn_build_logical_or(c->b, near, both) : near;
}

/* --- bits ------------------------------------------------------------------------------------- */
/* Bit k of whole numbers, as 0 or 1: what is left of x over 2^k, which floor division gives for
 * negative numbers, too. It is divided twice: the power of a sign is no number of its type. */
static sn_value bit(sn_fn_call *c, sn_value x, int k) {
    const sn_value two = sn_fn_like(c, x, 2);
    sn_value part = x;
    if (k > 0)
        part = sn_build_floor_div(
            c->b, sn_build_floor_div(c->b, x, sn_fn_like(c, x, ldexp(1, k - 1))), two);
    return sn_build_mod(c->b, part, two);
}

/* Both bits, and as many as only one has, make all three functions: there are no rows of bits, so
 * this is for small tensors. */
static void by_bits(sn_fn_call *c, bool both, bool one) {
    sn_value x, y, sum = SN_NO_VALUE;
    sn_fn_pair(c, 0, 1, &x, &y);
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    if (sn_fn_failed(c) || dtype == SNUG_BOOL || !sn_dtype_is_int(dtype))
        return sn_fn_refuse(c, SNUG_E_SHAPE, "it needs whole numbers");
    const int n = (int)snug_dtype_bytes(dtype) * 8;
    for (int k = 0; k < n && !sn_fn_failed(c); k++) {
        const sn_value a = bit(c, x, k), z = bit(c, y, k), and = sn_build_mul(c->b, a, z);
        const sn_value xor
            = sn_build_sub(c->b, sn_build_add(c->b, a, z), sn_fn_affine(c, and, 2, 0));
        sn_value on = both && one ? sn_build_add(c->b, and, xor) : both ? and : xor;
        const double weight = k == n - 1 && dtype != SNUG_U8 ? -ldexp(1, k) : ldexp(1, k);
        on = sn_build_mul(c->b, on, sn_fn_like(c, x, weight));
        sum = k ? sn_build_add(c->b, sum, on) : on;
    }
    c->out[0] = sum;
}

void sn_fn_bitwise_and(sn_fn_call *c) {
    by_bits(c, true, false);
}

void sn_fn_bitwise_or(sn_fn_call *c) {
    by_bits(c, true, true);
}

void sn_fn_bitwise_xor(sn_fn_call *c) {
    by_bits(c, false, true);
}

void sn_fn_bitwise_invert(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const bool counts = sn_fn_type(c, x).dtype == SNUG_U8;
    c->out[0] = sn_build_sub(c->b, sn_fn_like(c, x, counts ? UINT8_MAX : -1), x);
}

/* Shifts by less than 0 bits are by none, by more than there are by all but one. */
static sn_value power_of_two(sn_fn_call *c, sn_value y, int bits) {
    const sn_value n = sn_build_maximum(c->b, sn_build_minimum(c->b, y, sn_fn_like(c, y, bits - 1)),
                                        sn_fn_like(c, y, 0));
    return sn_build_pow(c->b, sn_fn_like(c, y, 2), n);
}

/* Operands of a shift, and the bits that there are. */
static int shift_pair(sn_fn_call *c, sn_value *x, sn_value *y) {
    sn_fn_pair(c, 0, 1, x, y);
    sn_fn_same_dtype(c, *x, *y);
    if (sn_fn_failed(c))
        return 0;
    const snug_dtype own = sn_fn_dtype_of(c, *x),
                     dtype = c->narrow == SNUG_N_DTYPES ? own : c->narrow;
    if (!sn_dtype_is_int(own))
        sn_fn_refuse(c, SNUG_E_SHAPE, "the bits of %s; whole numbers have some",
                     snug_dtype_name(own));
    return (int)snug_dtype_bytes(dtype) * 8;
}

void sn_fn_left_shift(sn_fn_call *c) {
    sn_value x, y;
    const int bits = shift_pair(c, &x, &y);
    if (!sn_fn_failed(c))
        c->out[0] = sn_build_mul(c->b, x, power_of_two(c, y, bits));
}

/* In 64 bits, where the powers of two of all others are positive. There is no 2^63: a number of 64
 * bits is shifted in two steps. */
void sn_fn_right_shift(sn_fn_call *c) {
    sn_value x, y;
    const int bits = shift_pair(c, &x, &y);
    if (sn_fn_failed(c))
        return;
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    x = sn_build_cast(c->b, x, SNUG_I64);
    y = sn_build_cast(c->b, y, SNUG_I64);
    const sn_value half = sn_build_minimum(c->b, y, sn_fn_like(c, y, 31)),
                   rest = sn_build_sub(c->b, sn_build_minimum(c->b, y, sn_fn_like(c, y, bits - 1)),
                                       half);
    x = sn_build_floor_div(c->b, x, power_of_two(c, half, 32));
    c->out[0] = sn_build_cast(c->b, sn_build_floor_div(c->b, x, power_of_two(c, rest, 33)), dtype);
}

/* --- limits ----------------------------------------------------------------------------------- */
void sn_fn_clip(sn_fn_call *c) {
    double low, high;
    const sn_value x = sn_fn_value(c, 0);
    const snug_dtype dtype = sn_fn_dtype_of(c, x);
    const double most_exact =
        sn_dtype_is_float(dtype) ? INFINITY : 0; /* what is no whole number is refused */
    if (sn_fn_number(c, 1, &low) && sn_fn_number(c, 2, &high) && fabs(low) <= most_exact &&
        fabs(high) <= most_exact && low <= high) {
        c->out[0] = sn_build_clip(c->b, x, low, high);
        return;
    }
    sn_value y = x;
    const sn_value most = sn_fn_value_as(c, 2, dtype), least = sn_fn_value_as(c, 1, dtype);
    y = sn_value_ok(most) ? sn_build_minimum(c->b, y, most) : y;
    c->out[0] = sn_value_ok(least) ? sn_build_maximum(c->b, y, least) : y;
}

/* At 0 the root has no slope: that of 1 stands in for it. */
sn_value sn_fn_shortened(sn_fn_call *c, sn_value x, sn_value squares, sn_value limit) {
    const sn_value some = sn_build_greater(c->b, squares, sn_fn_like(c, x, 0));
    const sn_value safe = sn_build_select(c->b, some, squares, sn_fn_like(c, x, 1));
    const sn_value norm = sn_build_select(c->b, some, sn_build_sqrt(c->b, safe), squares);
    return sn_build_div(c->b, sn_build_mul(c->b, x, limit), sn_build_maximum(c->b, norm, limit));
}

void sn_fn_clip_by_norm(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const uint32_t axes = sn_fn_axes(c, "axes", t.rank);
    const sn_value limit = sn_fn_value_as(c, 1, t.dtype);
    const sn_value squares = sn_build_square(c->b, x);
    c->out[0] =
        sn_fn_shortened(c, x, t.rank ? sn_build_sum(c->b, squares, axes, true) : squares, limit);
}

/* The root of the sum of all squares of a list. */
static sn_value global_norm(sn_fn_call *c, const sn_value *x, int n) {
    sn_value sum = SN_NO_VALUE;
    for (int i = 0; i < n; i++) {
        const sn_value squares = sn_build_square(c->b, x[i]);
        const sn_value part =
            sn_fn_type(c, x[i]).rank ? sn_build_sum(c->b, squares, 0, false) : squares;
        sum = i ? sn_build_add(c->b, sum, part) : part;
    }
    return sn_build_sqrt(c->b, sum);
}

void sn_fn_global_norm(sn_fn_call *c) {
    sn_value *x;
    const int n = sn_fn_list(c, 0, &x);
    c->out[0] = n ? global_norm(c, x, n) : SN_NO_VALUE;
}

/* The list, limited as one vector, and the norm it had. */
void sn_fn_clip_by_global_norm(sn_fn_call *c) {
    sn_value x[SN_FN_MAX_OUT];
    const int n = sn_fn_values(c, 0, x, SN_FN_MAX_OUT - 1);
    if (!n)
        return;
    const sn_value given = sn_fn_named(c, "use_norm");
    const sn_value norm = sn_value_ok(given) ? given : global_norm(c, x, n),
                   limit = sn_fn_value_as(c, 1, sn_fn_type(c, norm).dtype),
                   scale = sn_build_div(c->b, limit, sn_build_maximum(c->b, norm, limit));
    for (int i = 0; i < n; i++)
        c->out[i] = sn_build_mul(c->b, x[i], scale);
    c->out[n] = norm;
    c->n_out = n + 1;
}

/* --- casts ------------------------------------------------------------------------------------ */
void sn_fn_cast(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    c->out[0] = sn_build_cast(c->b, x, sn_fn_dtype(c, "dtype", sn_fn_dtype_of(c, x)));
}

/* What no whole number and no finite number of the new dtype is becomes the nearest one; of those
 * that f32 has, where it is f32. */
void sn_fn_saturate_cast(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_dtype to = sn_fn_dtype(c, "dtype", SNUG_F32);
    const snug_dtype from = sn_fn_type(c, x).dtype;
    const bool of_f32 = from == SNUG_F32, holds_all = to == SNUG_F64 || to == SNUG_I64 ||
                                                      to == SNUG_BOOL ||
                                                      (to == SNUG_F32 && from != SNUG_F64);
    const double most = holds_all        ? 0
                        : to == SNUG_I32 ? INT32_MAX - (of_f32 ? 127 : 0)
                        : to == SNUG_U32 ? UINT32_MAX - (of_f32 ? 255 : 0)
                                         : sn_dtype_largest(to),
                 least = sn_dtype_counts(to)     ? 0
                         : to == SNUG_I32        ? INT32_MIN
                         : sn_dtype_is_float(to) ? -most
                                                 : -most - 1;
    c->out[0] = sn_build_cast(c->b, most > 0 ? sn_build_clip(c->b, x, least, most) : x, to);
}

void sn_fn_to_float32(sn_fn_call *c) {
    c->out[0] = sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_F32);
}

void sn_fn_to_float64(sn_fn_call *c) {
    c->out[0] = sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_F64);
}

void sn_fn_to_int32(sn_fn_call *c) {
    c->out[0] = sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_I32);
}

void sn_fn_to_int64(sn_fn_call *c) {
    c->out[0] = sn_build_cast(c->b, sn_fn_value(c, 0), SNUG_I64);
}

/* --- sums of lists ---------------------------------------------------------------------------- */
void sn_fn_add_n(sn_fn_call *c) {
    sn_value *x;
    const int n = sn_fn_list(c, 0, &x);
    for (int i = 0; i < n; i++)
        c->out[0] = i ? sn_build_add(c->b, c->out[0], x[i]) : x[0];
}

void sn_fn_polyval(sn_fn_call *c) {
    sn_value *a;
    const int n = sn_fn_list(c, 0, &a);
    if (!n)
        return;
    const sn_value x = sn_fn_value_as(c, 1, sn_fn_type(c, a[0]).dtype);
    c->out[0] = a[0];
    for (int i = 1; i < n; i++)
        c->out[0] = sn_build_add(c->b, sn_build_mul(c->b, c->out[0], x), a[i]);
}
