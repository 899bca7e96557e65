/* cost.c: how long a run of an operator takes, from what its variant says it does and the rates of
 * the device. Pure: no clock, no state; the same description gives the same seconds.
 *
 *     seconds = call + hand-off + max(arithmetic, traffic)
 *
 * A kernel overlaps arithmetic with traffic, so the slower of the two counts. Few elements stay on
 * the calling thread, as in the kernels. */
#include "op/op.h"

#define SMALL 32768.0 /* kernels/cpu/loops.h: below this many elements no thread is woken */

static double rate_of(const sn_rates *r, sn_speed speed) {
    const double rates[SN_N_SPEEDS] = {
        [SN_SPEED_LOOP] = r->loop,           [SN_SPEED_PRODUCT] = r->product,
        [SN_SPEED_MATH] = r->math,           [SN_SPEED_GATHER] = r->gather,
        [SN_SPEED_REFERENCE] = r->reference,
    };
    return rates[speed];
}

static double least(double a, double b) {
    return a < b ? a : b;
}

/* Operands that fit the cache are still there from the step that wrote them. */
static double traffic_seconds(const sn_rates *r, double bytes, int n_threads) {
    const double near = least(bytes, r->cache_bytes);
    const double memory = least(r->memory * n_threads, r->memory_all);
    return near / (r->cache * n_threads) + (bytes - near) / memory;
}

double sn_cost_seconds(const sn_device *d, const sn_opdesc *desc, const sn_variant *v) {
    (void)desc;
    const sn_rates *r = &d->rates;
    const bool alone = d->n_threads < 2 || v->speed == SN_SPEED_REFERENCE || v->flops < SMALL;
    const int n_threads = alone ? 1 : d->n_threads;
    const double efficiency = v->efficiency > 0 ? v->efficiency : 1;
    const double arithmetic = v->flops / (rate_of(r, v->speed) * efficiency * n_threads);
    const double traffic = traffic_seconds(r, v->bytes, n_threads);
    return r->call + (alone ? 0 : r->handoff) + (arithmetic > traffic ? arithmetic : traffic);
}
