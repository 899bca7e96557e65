/* rng.c: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
 * 2011) and the distributions and permutations made from it.
 *
 * Counter (hi, lo) of element i, by use:
 *     hi = 0        lo = i / 4   lane i % 4: the element's 32 bits
 *     hi = 1        lo = i / 4   lane i % 4: 32 more below them, for f64
 *     hi = 2 + k    lo = i       k-th try of a redraw for a truncated normal
 * Invariants:
 * 1. An element depends on (kind, key, its index) alone.
 * 2. f32 numbers use +, -, *, / and sqrt only, without contraction: the same bits on every machine.
 *    An f64 number has the f32 number's bits on top, so the two streams agree to f32's accuracy. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { N_ROUNDS = 10 };

sn_philox_block sn_philox(uint64_t key, uint64_t hi, uint64_t lo) {
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
    uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < N_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (sn_philox_block){{c0, c1, c2, c3}};
}

uint64_t sn_rng_key(uint64_t seed, uint64_t stream) {
    /* "keys" in a place where no element's counter lies. */
    const sn_philox_block b = sn_philox(seed, (uint64_t)0x6b657973u << 32, stream);
    return (uint64_t)b.v[1] << 32 | b.v[0];
}

/* --- f32 -------------------------------------------------------------------------------------- */

typedef struct {
    float v[4];
} block_f32;

/* -2 ln((v + 1) / 2^32). With v + 1 = m 2^e, sqrt(1/2) <= m < sqrt(2): ln m = 2 atanh(s),
 * s = (m-1)/(m+1), |s| < 0.172, whose series is below half an ulp from s^11 on. v + 1 may be 2^32:
 * its halves are exact, their sum is rounded once. No branches, as in turn: wide_f32 makes
 * vectors. */
static inline float minus_two_log(uint32_t v) {
    const float x = (float)(int32_t)(v >> 16) * 65536.0f + (float)(int32_t)((v & 0xffffu) + 1);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t fraction = (bits & 0x7fffffu) | 0x3f800000u;
    float m;
    memcpy(&m, &fraction, sizeof m);
    const bool upper = m >= 1.41421356f;
    const int e = (int)(bits >> 23) - 127 + upper;
    m = upper ? m * 0.5f : m;
    const float s = (m - 1.0f) / (m + 1.0f);
    const float q = s * s;
    const float series =
        s * (1.0f + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9)))));
    return -4.0f * series + (float)(32 - e) * 1.38629436f;
}

/* cos and sin of 2 pi v / 2^32. The nearest quarter turn is taken off in integers, exactly; Taylor
 * on the rest, |x| <= pi / 4, where the first term left out is below half an ulp. */
static inline void turn(uint32_t v, float *c, float *s) {
    const uint32_t quarter = (v + 0x20000000u) >> 30;
    const int32_t rest = (int32_t)(v - (quarter << 30));
    const float x = (float)rest * 1.46291808e-9f; /* 2 pi / 2^32 */
    const float q = x * x;
    const float sin_x =
        x * (1.0f - q * (1.0f / 6 - q * (1.0f / 120 - q * (1.0f / 5040 - q * (1.0f / 362880)))));
    const float cos_x = 1.0f - q * (0.5f - q * (1.0f / 24 - q * (1.0f / 720 - q * (1.0f / 40320))));
    const float a = quarter & 1 ? -sin_x : cos_x;
    const float b = quarter & 1 ? cos_x : sin_x;
    *c = quarter & 2 ? -a : a;
    *s = quarter & 2 ? -b : b;
}

static block_f32 normals_f32(sn_philox_block bits) {
    block_f32 out;
    for (int pair = 0; pair < 4; pair += 2) {
        const float r = sqrtf(minus_two_log(bits.v[pair]));
        float c, s;
        turn(bits.v[pair + 1], &c, &s);
        out.v[pair] = r * c;
        out.v[pair + 1] = r * s;
    }
    return out;
}

/* The first of the element's tries that lies inside +-2; each has a chance of 0.954. */
static float redraw_f32(uint64_t key, uint64_t i) {
    for (uint64_t k = 0;; k++) {
        const block_f32 tries = normals_f32(sn_philox(key, 2 + k, i));
        for (int lane = 0; lane < 4; lane++) {
            if (fabsf(tries.v[lane]) <= 2.0f)
                return tries.v[lane];
        }
    }
}

static void redraw_outside(uint64_t key, uint64_t first, size_t n, float *z) {
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(z[i]) <= 2.0f))
            z[i] = redraw_f32(key, first + i);
    }
}

static block_f32 make_f32(sn_random_kind kind, uint64_t key, uint64_t lo) {
    const sn_philox_block bits = sn_philox(key, 0, lo);
    if (kind == SN_RANDOM_UNIFORM) {
        block_f32 out;
        for (int lane = 0; lane < 4; lane++)
            out.v[lane] = (float)(bits.v[lane] >> 8) * 0x1p-24f;
        return out;
    }
    block_f32 out = normals_f32(bits);
    if (kind == SN_RANDOM_TRUNCATED)
        redraw_outside(key, lo * 4, 4, out.v);
    return out;
}

/* WIDTH counters side by side, in vectors; above 16, because GCC unrolls loops up to that long
 * instead. Compiled for several instruction sets; which one runs is found out when the library is
 * loaded. */
enum { WIDTH = 32 };
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SN_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SN_CLONES
#endif

/* bits[lane][j] is lane `lane` of counter (0, lo + j). */
static inline void philox_wide(uint64_t key, uint64_t lo, uint32_t bits[4][WIDTH]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (uint32_t j = 0; j < WIDTH; j++) {
        bits[0][j] = (uint32_t)(lo + j);
        bits[1][j] = (uint32_t)((lo + j) >> 32);
        bits[2][j] = 0;
        bits[3][j] = 0;
    }
    for (int round = 0; round < N_ROUNDS; round++) {
        for (int j = 0; j < WIDTH; j++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * bits[0][j];
            const uint64_t p1 = (uint64_t)0xCD9E8D57u * bits[2][j];
            const uint32_t next0 = (uint32_t)(p1 >> 32) ^ bits[1][j] ^ k0;
            const uint32_t next2 = (uint32_t)(p0 >> 32) ^ bits[3][j] ^ k1;
            bits[0][j] = next0;
            bits[1][j] = (uint32_t)p1;
            bits[2][j] = next2;
            bits[3][j] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* The 4 WIDTH elements of counters lo, lo + 1, ...: uniform or normal. */
SN_CLONES static void wide_f32(bool uniform, uint64_t key, uint64_t lo, float *out) {
    uint32_t bits[4][WIDTH];
    float z[4][WIDTH];
    philox_wide(key, lo, bits);
    for (int pair = 0; pair < 4; pair += 2) {
        if (uniform) {
            for (int j = 0; j < WIDTH; j++) {
                z[pair][j] = (float)(int32_t)(bits[pair][j] >> 8) * 0x1p-24f;
                z[pair + 1][j] = (float)(int32_t)(bits[pair + 1][j] >> 8) * 0x1p-24f;
            }
        } else {
            for (int j = 0; j < WIDTH; j++) {
                const float r = sqrtf(minus_two_log(bits[pair][j]));
                float c, s;
                turn(bits[pair + 1][j], &c, &s);
                z[pair][j] = r * c;
                z[pair + 1][j] = r * s;
            }
        }
    }
    for (int j = 0; j < WIDTH; j++)
        for (int lane = 0; lane < 4; lane++)
            out[4 * j + lane] = z[lane][j];
}

void sn_random_fill_f32(sn_random_kind kind, uint64_t key, uint64_t first, size_t n, float *out) {
    for (size_t done = 0; done < n;) {
        const uint64_t i = first + done;
        if (i % 4 == 0 && n - done >= 4 * WIDTH) {
            wide_f32(kind == SN_RANDOM_UNIFORM, key, i / 4, out + done);
            if (kind == SN_RANDOM_TRUNCATED)
                redraw_outside(key, i, 4 * WIDTH, out + done);
            done += 4 * WIDTH;
            continue;
        }
        const block_f32 b = make_f32(kind, key, i / 4);
        for (uint64_t lane = i % 4; lane < 4 && done < n; lane++)
            out[done++] = b.v[lane];
    }
}

/* --- f64 -------------------------------------------------------------------------------------- */

typedef struct {
    double v[4];
} block_f64;

/* The upper 53 of the 64 bits whose halves are a (upper) and b. */
static uint64_t join53(uint32_t a, uint32_t b) {
    return ((uint64_t)a << 32 | b) >> 11;
}

static block_f64 normals_f64(sn_philox_block a, sn_philox_block b) {
    block_f64 out;
    for (int pair = 0; pair < 4; pair += 2) {
        const double u = (double)(join53(a.v[pair], b.v[pair]) + 1) * 0x1p-53;
        const double angle =
            (double)join53(a.v[pair + 1], b.v[pair + 1]) * (0x1p-52 * 3.14159265358979323846);
        const double r = sqrt(-2.0 * log(u));
        out.v[pair] = r * cos(angle);
        out.v[pair + 1] = r * sin(angle);
    }
    return out;
}

static double redraw_f64(uint64_t key, uint64_t i) {
    for (uint64_t k = 0;; k++) {
        /* Far from the counters that f32 redraws use, so that the lower bits are no one else's. */
        const sn_philox_block low = sn_philox(key, ((uint64_t)1 << 63) + k, i);
        const block_f64 tries = normals_f64(sn_philox(key, 2 + k, i), low);
        for (int lane = 0; lane < 4; lane++) {
            if (fabs(tries.v[lane]) <= 2.0)
                return tries.v[lane];
        }
    }
}

static block_f64 make_f64(sn_random_kind kind, uint64_t key, uint64_t lo) {
    const sn_philox_block a = sn_philox(key, 0, lo), b = sn_philox(key, 1, lo);
    if (kind == SN_RANDOM_UNIFORM) {
        block_f64 out;
        for (int lane = 0; lane < 4; lane++)
            out.v[lane] = (double)join53(a.v[lane], b.v[lane]) * 0x1p-53;
        return out;
    }
    block_f64 out = normals_f64(a, b);
    if (kind == SN_RANDOM_TRUNCATED) {
        for (unsigned lane = 0; lane < 4; lane++) {
            if (!(fabs(out.v[lane]) <= 2.0))
                out.v[lane] = redraw_f64(key, lo * 4 + lane);
        }
    }
    return out;
}

void sn_random_fill_f64(sn_random_kind kind, uint64_t key, uint64_t first, size_t n, double *out) {
    for (size_t done = 0; done < n;) {
        const uint64_t i = first + done;
        const block_f64 b = make_f64(kind, key, i / 4);
        for (uint64_t lane = i % 4; lane < 4 && done < n; lane++)
            out[done++] = b.v[lane];
    }
}

/* --- permutations ----------------------------------------------------------------------------- */

enum { N_FEISTEL_ROUNDS = 8 };

/* A bijection of the numbers below 2^bits: each round adds (xor) a function of one half to the
 * other. */
static uint64_t feistel(uint64_t key, int bits, uint64_t x) {
    const int low_bits = bits / 2;
    const uint64_t low_mask = ((uint64_t)1 << low_bits) - 1;
    const uint64_t high_mask = ((uint64_t)1 << (bits - low_bits)) - 1;
    uint64_t low = x & low_mask, high = x >> low_bits;
    for (uint64_t round = 0; round < N_FEISTEL_ROUNDS; round += 2) {
        high ^= sn_philox(key, round, low).v[0] & high_mask;
        low ^= sn_philox(key, round + 1, high).v[0] & low_mask;
    }
    return high << low_bits | low;
}

uint64_t sn_permute(uint64_t key, uint64_t n, uint64_t i) {
    assert(i < n);
    if (n <= 1)
        return 0;
    const int bits = 64 - __builtin_clzll(n - 1);
    /* Cycle walking: from a point below n the cycle comes back below n; 2^bits < 2 n, so soon. */
    uint64_t x = i;
    do {
        x = feistel(key, bits, x);
    } while (x >= n);
    return x;
}
