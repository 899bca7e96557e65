/* rates.h: how fast this machine is, as a small table of numbers. Built in per instruction set, or
 * measured once (`snug doctor --calibrate`). The cost model (op/cost.c) reads it; nothing that is
 * computed depends on it, only which of several plans is taken.
 *
 * One list makes the struct, the text form and the hash, so that they cannot disagree. */
#ifndef SN_BASE_RATES_H
#define SN_BASE_RATES_H

#include "base/status.h"

#include <stdint.h>

/*      name           what it counts, per second or in seconds; of one thread unless it says so */
#define SN_RATES_MAP(X)                                                                            \
    X(product, "operations of packed products and convolutions")                                   \
    X(product_memory, "bytes of their operands in memory")                                         \
    X(loop, "elements of plain vector loops")                                                      \
    X(math, "elements of loops with exp, tanh and the like")                                       \
    X(scalar, "elements taken one by one, as in a call of libm")                                   \
    X(reference, "operations of reference kernels")                                                \
    X(memory, "bytes of operands in memory")                                                       \
    X(memory_all, "bytes of operands in memory, all threads together")                             \
    X(cache, "bytes of operands in the cache")                                                     \
    X(cache_bytes, "bytes: operands up to this size are still in the cache")                       \
    X(call, "seconds of a kernel call that does nothing")                                          \
    X(handoff, "seconds to share a loop among threads; of a GPU: of a run beside its rows")        \
    X(spill_read, "bytes read from a spill file")                                                  \
    X(spill_write, "bytes written to a spill file")

typedef struct {
#define SN_RATE_FIELD(name, what) double name;
    SN_RATES_MAP(SN_RATE_FIELD)
#undef SN_RATE_FIELD
} sn_rates;

typedef enum {
#define SN_RATE_ENUM(name, what) SN_RATE_##name,
    SN_RATES_MAP(SN_RATE_ENUM)
#undef SN_RATE_ENUM
        SN_N_RATES
} sn_rate;

const char *sn_rate_name(sn_rate rate);
const char *sn_rate_what(sn_rate rate);
double *sn_rate_at(sn_rates *r, sn_rate rate);

/* Stands in the text of a plan. */
uint64_t sn_rates_hash(const sn_rates *r);
/* Lines "name number"; empty ones and those that begin with # say nothing. Each rate must be there
 * once, above 0 and finite. `from` names the text in messages (SNUG_E_FORMAT). */
SNUG_CHECKED snug_status sn_rates_parse(const char *text, const char *from, sn_rates *out,
                                        snug_error *err);

#endif
