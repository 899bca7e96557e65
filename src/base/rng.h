/* rng.h: Philox-4x32-10, counter based: element i of a random tensor is a function of (key, i)
 * alone, so any part of it can be made anywhere, in any order, with the same bits.
 *
 * Element i uses block i / 4, lane i % 4. Normals pair lanes (0,1) and (2,3) by Box-Muller. */
#ifndef SN_BASE_RNG_H
#define SN_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t v[4];
} sn_philox_block;

/* The block at 128-bit counter (hi, lo) under a 64-bit key. */
sn_philox_block sn_philox(uint64_t key, uint64_t hi, uint64_t lo);

/* The key of one of the streams below a user's seed. */
uint64_t sn_rng_key(uint64_t seed, uint64_t stream);

typedef enum { SN_RANDOM_UNIFORM, SN_RANDOM_NORMAL, SN_RANDOM_TRUNCATED } sn_random_kind;

/* Elements [first, first + n) of the stream: uniform in [0,1), standard normal, or normal cut at
 * +-2 (redrawn from the element's own sub-stream). */
void sn_random_fill_f32(sn_random_kind kind, uint64_t key, uint64_t first, size_t n, float *out);
void sn_random_fill_f64(sn_random_kind kind, uint64_t key, uint64_t first, size_t n, double *out);

/* A permutation of 0..n-1, evaluated at one point: position i of epoch `key`, without a table. */
uint64_t sn_permute(uint64_t key, uint64_t n, uint64_t i);

#endif
