/* pending.c: stands in until the kernels are here; every call answers SNUG_E_UNSUPPORTED. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

static snug_status missing(const sn_call *c, snug_error *err) {
    return sn_fail(err, SNUG_E_UNSUPPORTED, "%s: no kernel yet", sn_ops[c->op].name);
}

#define FAMILY(name) SN_CPU_FAMILY(name, .reference = missing, .run = missing)
FAMILY(cast)
FAMILY(check_finite)
FAMILY(dropout)
FAMILY(gather)
FAMILY(one_hot)
FAMILY(random)
FAMILY(scatter_add)
