/* functions_quant.c: numbers as a quantized network would see them. A fake quantization gives the
 * nearest of 2^bits - 1 equal steps between two limits, which are moved a little so that zero is
 * one of them. Its gradient passes within the limits; what lies outside counts for the limit.
 *
 * The result is made of the rounded numbers and of a term that is zero and has that gradient: so
 * it is exactly one of the steps. */
#include "function/function_call.h"

typedef struct {
    sn_value low, high, scale; /* the moved limits and the step; of the limits' shape */
} steps;

/* x over the step; between two limits of zero there is no step, and all is zero. */
static sn_value in_steps(sn_fn_call *c, sn_value x, sn_value scale) {
    const sn_value none = sn_build_equal(c->b, scale, sn_fn_like(c, scale, 0));
    return sn_build_div(c->b, x, sn_build_select(c->b, none, sn_fn_like(c, scale, 1), scale));
}

/* `lowest` and `highest` are the codes of the limits. The code of zero is rounded, halves up. */
static steps nudged(sn_fn_call *c, sn_value min, sn_value max, double lowest, double highest) {
    sn_builder *const b = c->b;
    const sn_value range = sn_build_sub(b, max, min),
                   scale = sn_build_div(b, range, sn_fn_like(c, range, highest - lowest));
    const sn_value zero = sn_build_affine(b, in_steps(c, min, scale), -1, lowest);
    const sn_value code =
        sn_build_clip(b, sn_build_floor(b, sn_build_affine(b, zero, 1, 0.5)), lowest, highest);
    return (steps){sn_build_mul(b, sn_build_affine(b, code, -1, lowest), scale),
                   sn_build_mul(b, sn_build_affine(b, code, -1, highest), scale), scale};
}

static sn_value on_steps(sn_fn_call *c, sn_value x, const steps *s) {
    sn_builder *const b = c->b;
    const sn_value zero =
        sn_build_floor(b, sn_build_affine(b, in_steps(c, s->low, s->scale), -1, 0.5));
    const sn_value within = sn_build_minimum(b, sn_build_maximum(b, x, s->low), s->high);
    const sn_value code = in_steps(c, sn_build_sub(b, within, s->low), s->scale);
    const sn_value rounded =
        sn_build_floor(b, sn_build_affine(b, sn_build_sub(b, code, zero), 1, 0.5));
    return sn_build_stop_gradient(b, sn_build_mul(b, rounded, s->scale));
}

void sn_fn_fake_quant(sn_fn_call *c) {
    sn_builder *const b = c->b;
    const sn_value x = sn_fn_value(c, 0);
    const snug_dtype dtype = sn_fn_type(c, x).dtype;
    const sn_value min = sn_fn_named_as(c, "min", dtype), max = sn_fn_named_as(c, "max", dtype);
    const int64_t bits = sn_fn_int(c, "num_bits");
    if (!sn_fn_failed(c) && (bits < 2 || bits > 16))
        return sn_fn_refuse(c, SNUG_E_INVALID, "num_bits is %lld; it must be between 2 and 16",
                            (long long)bits);
    if (sn_fn_failed(c))
        return;
    const double lowest = sn_fn_flag(c, "narrow_range") ? 1 : 0,
                 highest = (double)((INT64_C(1) << bits) - 1);
    steps s = nudged(c, min, max, lowest, highest);
    s.low = sn_build_stop_gradient(b, s.low);
    s.high = sn_build_stop_gradient(b, s.high);
    const snug_type t = sn_fn_type(c, x);
    const sn_value least = sn_build_broadcast_to(b, min, &t),
                   most = sn_build_broadcast_to(b, max, &t);
    const sn_value passes =
        sn_build_select(b, sn_build_less(b, x, s.low), least,
                        sn_build_select(b, sn_build_greater(b, x, s.high), most, x));
    const sn_value nothing = sn_build_sub(b, passes, sn_build_stop_gradient(b, passes));
    c->out[0] = sn_build_add(b, on_steps(c, x, &s), nothing);
}

/* The limits are numbers, which are looked at. */
void sn_fn_fake_quant_args(sn_fn_call *c) {
    double min = -6, max = 6;
    if (sn_fn_number(c, 1, &min) && sn_fn_number(c, 2, &max) && min >= max)
        return sn_fn_refuse(c, SNUG_E_INVALID, "min is %g, max %g; min has to be smaller", min,
                            max);
    sn_fn_fake_quant(c);
}
