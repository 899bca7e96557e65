/* rates.c: what the list of rates makes besides the struct. */
#include "base/rates.h"

#include <string.h>

static uint64_t mix(uint64_t h, double rate) {
    uint64_t bits;
    memcpy(&bits, &rate, sizeof bits);
    h = (h ^ bits) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

uint64_t sn_rates_hash(const sn_rates *r) {
    uint64_t h = 0xcbf29ce484222325u;
#define SN_RATE_MIX(name, what) h = mix(h, r->name);
    SN_RATES_MAP(SN_RATE_MIX)
#undef SN_RATE_MIX
    return h;
}
