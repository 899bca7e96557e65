/* check_finite.c: check_finite passes its input on and refuses NaN and infinities, naming the first
 * by its position in the full value. Blocks are searched in parallel for whether they have one; the
 * first such block says where. */
#include "base/real.h"
#include "kernels/cpu/place.h"
#include "kernels/cpu/real_elements.h"

#include <stdatomic.h>
#include <string.h>

/* x - x is 0 for finite x and NaN for all others. */
#define ALL_FINITE(name, M)                                                                        \
    static bool name(const void *data, int64_t n) {                                                \
        const M *x = data;                                                                         \
        int others = 0;                                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            others |= x[i] - x[i] == 0 ? 0 : 1;                                                    \
        return others == 0;                                                                        \
    }
ALL_FINITE(finite_f32, float)
ALL_FINITE(finite_f64, double)

/* NaN and infinities have all bits of the exponent. */
#define ALL_FINITE_HALVES(name, exponent)                                                          \
    static bool name(const void *data, int64_t n) {                                                \
        const uint16_t *x = data;                                                                  \
        int others = 0;                                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            others |= (x[i] & (exponent)) == (exponent);                                           \
        return others == 0;                                                                        \
    }
ALL_FINITE_HALVES(finite_f16, 0x7c00)
ALL_FINITE_HALVES(finite_bf16, 0x7f80)

static bool (*const all_finite[SNUG_N_DTYPES])(const void *, int64_t) = {
    [SNUG_F32] = finite_f32,
    [SNUG_F64] = finite_f64,
    [SNUG_F16] = finite_f16,
    [SNUG_BF16] = finite_bf16,
};

static double value_at(const snug_view *v, int64_t i) {
    return sn_real_at(sn_reals_of(v), i);
}

static snug_status refuse(const sn_call *c, int64_t first, snug_error *err) {
    const sn_place_in_full place = sn_place_of(c);
    while (isfinite(value_at(&c->in[0], first)))
        first++;
    return sn_fail(err, SNUG_E_NUMERIC,
                   "element %lld is %g; in training lower the learning rate or clip gradients, "
                   "else look for a division by zero, a matrix that has no inverse, or one for "
                   "cholesky that is not positive definite",
                   (long long)sn_position(&place, first), sn_shown(value_at(&c->in[0], first)));
}

typedef struct {
    const sn_call *c;
    int64_t n;
    _Atomic int64_t *bad; /* the lowest element whose block has such a one; n: none has */
} check_loop;

static void lower(_Atomic int64_t *least, int64_t value) {
    int64_t seen = atomic_load(least);
    while (value < seen && !atomic_compare_exchange_weak(least, &seen, value)) {
    }
}

static void check_blocks(const void *ctx, int64_t begin, int64_t end) {
    const check_loop *l = ctx;
    const snug_dtype dtype = l->c->in[0].type.dtype;
    const int64_t size = (int64_t)snug_dtype_bytes(dtype);
    const char *in = l->c->in[0].data;
    char *out = l->c->out[0].data;
    for (int64_t first = begin * SN_SPAN; first < sn_min_i64(end * SN_SPAN, l->n);
         first += SN_SPAN) {
        const int64_t length = sn_min_i64(SN_SPAN, l->n - first);
        if (!all_finite[dtype](in + first * size, length))
            lower(l->bad, first);
        if (in != out)
            memcpy(out + first * size, in + first * size, (size_t)(length * size));
    }
}

static snug_status run_check_finite(const sn_call *c, snug_error *err) {
    const snug_dtype dtype = c->in[0].type.dtype;
    const int64_t n = sn_type_count(&c->in[0].type);
    _Atomic int64_t bad = n;
    const check_loop loop = {c, n, &bad};
    if (!all_finite[dtype])
        return sn_no_kernel(dtype, err);
    sn_parallel(c, n, sn_ceil_div(n, SN_SPAN), check_blocks, &loop);
    return bad < n ? refuse(c, bad, err) : SNUG_OK;
}

SN_CPU_FAMILY(check_finite, .reference = run_check_finite, .run = run_check_finite,
              .takes_stored = SN_HALF_DTYPES)
