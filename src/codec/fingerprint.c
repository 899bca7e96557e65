/* fingerprint.c: FarmHash's Fingerprint64 as published: four ways by length (to 16, 32, 64 bytes,
 * and rounds of 64 bytes with 56 bytes of state). Little-endian reads. */
#include "codec/fingerprint.h"

#include <string.h>

static const uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

static uint64_t fetch64(const char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t fetch32(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint64_t turn(uint64_t v, int by) {
    return v >> by | v << (64 - by);
}

static uint64_t fold(uint64_t v) {
    return v ^ v >> 47;
}

static uint64_t hash_two(uint64_t u, uint64_t v, uint64_t mul) {
    uint64_t a = (u ^ v) * mul;
    a ^= a >> 47;
    uint64_t b = (v ^ a) * mul;
    b ^= b >> 47;
    return b * mul;
}

static uint64_t hash_to_16(const char *s, size_t n) {
    const uint64_t mul = k2 + n * 2;
    if (n >= 8) {
        const uint64_t a = fetch64(s) + k2, b = fetch64(s + n - 8);
        const uint64_t c = turn(b, 37) * mul + a, d = (turn(a, 25) + b) * mul;
        return hash_two(c, d, mul);
    }
    if (n >= 4)
        return hash_two(n + (fetch32(s) << 3), fetch32(s + n - 4), mul);
    if (n == 0)
        return k2;
    const unsigned char a = (unsigned char)s[0], b = (unsigned char)s[n >> 1],
                        c = (unsigned char)s[n - 1];
    const uint32_t y = a + ((uint32_t)b << 8), z = (uint32_t)n + ((uint32_t)c << 2);
    return fold(y * k2 ^ z * k0) * k2;
}

static uint64_t hash_to_32(const char *s, size_t n) {
    const uint64_t mul = k2 + n * 2, a = fetch64(s) * k1, b = fetch64(s + 8);
    const uint64_t c = fetch64(s + n - 8) * mul, d = fetch64(s + n - 16) * k2;
    return hash_two(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + k2, 18) + c, mul);
}

static uint64_t hash_to_64(const char *s, size_t n) {
    const uint64_t mul = k2 + n * 2, a = fetch64(s) * k2, b = fetch64(s + 8);
    const uint64_t c = fetch64(s + n - 8) * mul, d = fetch64(s + n - 16) * k2;
    const uint64_t y = turn(a + b, 43) + turn(c, 30) + d;
    const uint64_t z = hash_two(y, a + turn(b + k2, 18) + c, mul);
    const uint64_t e = fetch64(s + 16) * mul, f = fetch64(s + 24);
    const uint64_t g = (y + fetch64(s + n - 32)) * mul, h = (z + fetch64(s + n - 24)) * mul;
    return hash_two(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, mul);
}

typedef struct {
    uint64_t first, second;
} pair;

/* 32 bytes and two seeds to two numbers. */
static pair mix_32(const char *s, uint64_t a, uint64_t b) {
    const uint64_t w = fetch64(s), x = fetch64(s + 8), y = fetch64(s + 16), z = fetch64(s + 24);
    a += w;
    b = turn(b + a + z, 21);
    const uint64_t c = a;
    a += x + y;
    b += turn(a, 44);
    return (pair){a + z, b + c};
}

typedef struct {
    uint64_t x, y, z;
    pair v, w;
} state;

static void swap(uint64_t *a, uint64_t *b) {
    const uint64_t t = *a;
    *a = *b;
    *b = t;
}

static void round_of(state *h, const char *s) {
    h->x = turn(h->x + h->y + h->v.first + fetch64(s + 8), 37) * k1;
    h->y = turn(h->y + h->v.second + fetch64(s + 48), 42) * k1;
    h->x ^= h->w.second;
    h->y += h->v.first + fetch64(s + 40);
    h->z = turn(h->z + h->w.first, 33) * k1;
    h->v = mix_32(s, h->v.second * k1, h->x + h->w.first);
    h->w = mix_32(s + 32, h->z + h->w.second, h->y + fetch64(s + 16));
    swap(&h->z, &h->x);
}

/* The last 64 bytes, which may overlap the rounds before. */
static uint64_t finish(state *h, const char *s, size_t n) {
    const uint64_t mul = k1 + ((h->z & 0xff) << 1);
    h->w.first += (n - 1) & 63;
    h->v.first += h->w.first;
    h->w.first += h->v.first;
    h->x = turn(h->x + h->y + h->v.first + fetch64(s + 8), 37) * mul;
    h->y = turn(h->y + h->v.second + fetch64(s + 48), 42) * mul;
    h->x ^= h->w.second * 9;
    h->y += h->v.first * 9 + fetch64(s + 40);
    h->z = turn(h->z + h->w.first, 33) * mul;
    h->v = mix_32(s, h->v.second * mul, h->x + h->w.first);
    h->w = mix_32(s + 32, h->z + h->w.second, h->y + fetch64(s + 16));
    swap(&h->z, &h->x);
    return hash_two(hash_two(h->v.first, h->w.first, mul) + fold(h->y) * k0 + h->z,
                    hash_two(h->v.second, h->w.second, mul) + h->x, mul);
}

uint64_t sn_fingerprint64(const char *text, size_t n) {
    if (n <= 16)
        return hash_to_16(text, n);
    if (n <= 32)
        return hash_to_32(text, n);
    if (n <= 64)
        return hash_to_64(text, n);
    const uint64_t seed = 81;
    state h = {.x = seed, .y = seed * k1 + 113};
    h.z = fold(h.y * k2 + 113) * k2;
    h.x = h.x * k2 + fetch64(text);
    const char *end = text + (n - 1) / 64 * 64, *last = end + ((n - 1) & 63) - 63;
    for (const char *s = text; s < end; s += 64)
        round_of(&h, s);
    return finish(&h, last, n);
}

uint64_t sn_fingerprint_pair(uint64_t first, uint64_t second) {
    static const uint64_t mul = 0xc6a4a7935bd1e995;
    uint64_t v = ((first ^ mul) ^ fold(second * mul) * mul) * mul;
    v = fold(v) * mul;
    return fold(v);
}

/* --- SipHash ---------------------------------------------------------------------------------- */
static uint64_t turn_left(uint64_t v, int by) {
    return v << by | v >> (64 - by);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turn_left(v[1], 13) ^ v[0];
    v[3] = turn_left(v[3], 16) ^ v[2];
    v[0] = turn_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turn_left(v[1], 17) ^ v[2];
    v[3] = turn_left(v[3], 21) ^ v[0];
    v[2] = turn_left(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t sn_fingerprint_keyed(const uint64_t key[2], const char *text, size_t n) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                     key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    uint64_t last = (uint64_t)n << 56;
    for (size_t i = 0; i + 8 <= n; i += 8)
        sip_word(v, fetch64(text + i));
    for (size_t i = 0; i < n % 8; i++)
        last |= (uint64_t)(unsigned char)text[n - n % 8 + i] << (8 * i);
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
