/* cost.c: how long a run of an operator takes, from what its variant says it does and the rates of
 * the device. Pure: no clock, no state; the same description gives the same seconds.
 *
 *     seconds = call + hand-off + arithmetic + traffic
 *
 * Arithmetic and traffic add up: where a kernel overlaps them, the smaller one hardly counts. Few
 * elements stay on the calling thread, as in the kernels. */
#include "op/op.h"

#define SMALL 32768.0 /* kernels/cpu/loops.h: below this many elements no thread is woken */

static double rate_of(const sn_rates *r, sn_speed speed) {
    const double rates[SN_N_SPEEDS] = {
        [SN_SPEED_LOOP] = r->loop,           [SN_SPEED_PRODUCT] = r->product,
        [SN_SPEED_MATH] = r->math,           [SN_SPEED_SCALAR] = r->scalar,
        [SN_SPEED_REFERENCE] = r->reference,
    };
    return rates[speed];
}

static double least(double a, double b) {
    return a < b ? a : b;
}

/* Small operands are still in the cache from the step that wrote them, large ones in memory; those
 * between one and two caches are partly there. They are as large as `whole` bytes. */
static double traffic_seconds(const sn_rates *r, const sn_variant *v, double whole, int n_threads) {
    const double beyond = whole / r->cache_bytes - 1;
    const double far = beyond < 0 ? 0 : least(beyond, 1);
    const double one = v->speed == SN_SPEED_PRODUCT ? r->product_memory : r->memory;
    const double memory = least(one * n_threads, r->memory_all);
    return v->bytes * ((1 - far) / (r->cache * n_threads) + far / memory);
}

double sn_cost_slice_seconds(const sn_device *d, const sn_opdesc *desc, const sn_variant *v,
                             double whole) {
    const sn_rates *r = &d->rates;
    if (sn_ops[desc->op].inplace == SN_INPLACE_ALIAS) /* a new name for the same bytes */
        return r->call;
    const bool alone = d->n_threads < 2 || v->speed == SN_SPEED_REFERENCE || v->flops < SMALL;
    const int n_threads = alone ? 1 : d->n_threads;
    const double efficiency = v->efficiency > 0 ? v->efficiency : 1;
    const double arithmetic = v->flops / (rate_of(r, v->speed) * efficiency * n_threads);
    return r->call + (alone ? 0 : r->handoff) + arithmetic +
           traffic_seconds(r, v, whole, n_threads);
}

double sn_cost_seconds(const sn_device *d, const sn_opdesc *desc, const sn_variant *v) {
    return sn_cost_slice_seconds(d, desc, v, v->bytes);
}
