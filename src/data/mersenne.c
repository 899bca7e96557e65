/* mersenne.c: the Mersenne Twister as published by Matsumoto and Nishimura. */
#include "data/mersenne.h"

enum { N = 624, M = 397 };

void sn_mersenne_init(sn_mersenne *m, uint32_t seed) {
    m->state[0] = seed;
    for (uint32_t i = 1; i < N; i++)
        m->state[i] = 1812433253u * (m->state[i - 1] ^ m->state[i - 1] >> 30) + i;
    m->at = N;
}

static void renew(sn_mersenne *m) {
    for (int i = 0; i < N; i++) {
        const uint32_t y = (m->state[i] & 0x80000000u) | (m->state[(i + 1) % N] & 0x7fffffffu);
        m->state[i] = m->state[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->at = 0;
}

uint32_t sn_mersenne_next(sn_mersenne *m) {
    if (m->at == N)
        renew(m);
    uint32_t y = m->state[m->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

uint32_t sn_mersenne_below(sn_mersenne *m, uint32_t most) {
    uint32_t mask = most, v;
    for (int by = 1; by < 32; by *= 2)
        mask |= mask >> by;
    do
        v = sn_mersenne_next(m) & mask;
    while (v > most);
    return v;
}
