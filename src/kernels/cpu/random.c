/* random.c: random and dropout. An element's number is a function of the key and of its position in
 * the full value alone, so slices draw what the whole would, and the gradient of dropout draws its
 * mask again.
 *
 *     random   kind uniform: low + (high - low) u;  normal, truncated: low + high z (tensor/feed.h
 * has the bits) dropout  x / (1 - rate) where uniform(key, position) >= rate, else 0; one mask for
 * f32 and f64 */
#include "kernels/cpu/random.h"

#include "base/rng.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/place.h"
#include "tensor/feed.h"

#include <math.h>

#define CHUNK 1024

/* Calls part(c, first, position, n) for each piece of [first, first + n) that is contiguous in the
 * full value. */
typedef void (*contiguous)(const sn_call *c, int64_t first, uint64_t position, int64_t n);

static void by_position(const sn_call *c, int64_t first, int64_t n, contiguous part) {
    const sn_place_in_full place = sn_place_of(c);
    while (n > 0) {
        const int64_t run = sn_min_i64(n, sn_min_i64(CHUNK, place.length - first % place.length));
        part(c, first, (uint64_t)sn_position(&place, first), run);
        first += run;
        n -= run;
    }
}

/* --- uniform numbers -------------------------------------------------------------------------- */
/* sn_philox for WIDTH counters (0, lo), (0, lo + 1), ... side by side, so that the compiler makes
 * vectors of them; bits[lane][j] is lane `lane` of counter lo + j. base/rng.c explains the rounds.
 * WIDTH is above 16, because GCC unrolls loops up to that long instead. */
#define WIDTH 32

static void philox_side_by_side(uint64_t key, uint64_t lo, uint32_t bits[4][WIDTH]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (uint32_t j = 0; j < WIDTH; j++) {
        bits[0][j] = (uint32_t)(lo + j);
        bits[1][j] = (uint32_t)((lo + j) >> 32);
        bits[2][j] = 0;
        bits[3][j] = 0;
    }
    for (int round = 0; round < 10; round++) {
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

/* Whole groups of counters in between, the ends as ever. */
void SN_CPU(uniform_f32)(uint64_t key, uint64_t first, int64_t n, float *out) {
    const int64_t head = sn_min_i64(n, (int64_t)(-first & 3));
    int64_t done = head;
    sn_random_fill_f32(SN_RANDOM_UNIFORM, key, first, (size_t)head, out);
    for (; done + 4 * WIDTH <= n; done += 4 * WIDTH) {
        uint32_t bits[4][WIDTH];
        philox_side_by_side(key, (first + (uint64_t)done) / 4, bits);
        for (int j = 0; j < WIDTH; j++)
            for (int lane = 0; lane < 4; lane++)
                out[done + 4 * j + lane] = (float)(int32_t)(bits[lane][j] >> 8) * 0x1p-24f;
    }
    sn_random_fill_f32(SN_RANDOM_UNIFORM, key, first + (uint64_t)done, (size_t)(n - done),
                       out + done);
}

/* --- random ----------------------------------------------------------------------------------- */
static sn_recipe recipe_of(const sn_call *c) {
    static const sn_recipe_kind kinds[] = {[SN_RANDOM_UNIFORM] = SN_RECIPE_UNIFORM,
                                           [SN_RANDOM_NORMAL] = SN_RECIPE_NORMAL,
                                           [SN_RANDOM_TRUNCATED] = SN_RECIPE_TRUNCATED};
    return (sn_recipe){kinds[c->attrs->random.kind], (uint64_t)c->param[0].key, c->param[1].real,
                       c->param[2].real};
}

/* The recipe was tried before, on no elements: it cannot fail here. */
static void random_part(const sn_call *c, int64_t first, uint64_t position, int64_t n) {
    const sn_recipe r = recipe_of(c);
    const snug_dtype dtype = c->out[0].type.dtype;
    char *to = (char *)c->out[0].data + first * (int64_t)snug_dtype_bytes(dtype);
    const snug_status filled = sn_recipe_fill(&r, position, (size_t)n, dtype, to, NULL);
    (void)filled;
}

static void random_span(const sn_call *c, int64_t first, int64_t n) {
    by_position(c, first, n, random_part);
}

/* The bits of the recipe (tensor/recipe.c): rounding may reach `high`, which is outside. */
static void uniform_part(const sn_call *c, int64_t first, uint64_t position, int64_t n) {
    float *out = (float *)c->out[0].data + first;
    const float low = (float)c->param[1].real, high = (float)c->param[2].real;
    const float last = nextafterf(high, low);
    SN_CPU(uniform_f32)((uint64_t)c->param[0].key, position, n, out);
    for (int64_t i = 0; i < n; i++) {
        const float v = low + (high - low) * out[i];
        out[i] = v < high || low == high ? v : last;
    }
}

static void uniform_span(const sn_call *c, int64_t first, int64_t n) {
    by_position(c, first, n, uniform_part);
}

static snug_status check_random(const sn_call *c, snug_error *err) {
    const sn_recipe r = recipe_of(c);
    char nothing;
    return sn_recipe_fill(&r, 0, 0, c->out[0].type.dtype, &nothing, err);
}

static snug_status reference_random(const sn_call *c, snug_error *err) {
    SNUG_TRY(check_random(c, err));
    random_span(c, 0, sn_type_count(&c->out[0].type));
    return SNUG_OK;
}

static snug_status run_random(const sn_call *c, snug_error *err) {
    SNUG_TRY(check_random(c, err));
    const snug_type *t = &c->out[0].type;
    const bool fast = c->attrs->random.kind == SN_RANDOM_UNIFORM && t->dtype == SNUG_F32;
    sn_spans(c, sn_type_count(t), fast ? uniform_span : random_span);
    return SNUG_OK;
}

/* --- dropout ---------------------------------------------------------------------------------- */
static void uniform_plain(uint64_t key, uint64_t first, int64_t n, float *out) {
    sn_random_fill_f32(SN_RANDOM_UNIFORM, key, first, (size_t)n, out);
}

#define DROPOUT_SPAN(name, M, uniform)                                                             \
    static void name##_part(const sn_call *c, int64_t first, uint64_t position, int64_t n) {       \
        const M *in = (const M *)c->in[0].data + first;                                            \
        M *out = (M *)c->out[0].data + first;                                                      \
        const float rate = (float)c->param[0].real;                                                \
        const M scale = (M)(1 / (1 - c->param[0].real));                                           \
        float u[CHUNK];                                                                            \
        uniform((uint64_t)c->param[1].key, position, n, u);                                        \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                     \
            const M kept = in[i] * scale;                                                          \
            out[i] = u[i] >= rate ? kept : 0;                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        by_position(c, first, n, name##_part);                                                     \
    }
DROPOUT_SPAN(dropout_fast, float, SN_CPU(uniform_f32))
DROPOUT_SPAN(dropout_f32, float, uniform_plain)
DROPOUT_SPAN(dropout_f64, double, uniform_plain)

static const sn_map dropouts = {.fast_f32 = dropout_fast,
                                .plain = {[SNUG_F32] = dropout_f32, [SNUG_F64] = dropout_f64}};

static snug_status reference_dropout(const sn_call *c, snug_error *err) {
    return sn_map_reference(c, &dropouts, err);
}

static snug_status run_dropout(const sn_call *c, snug_error *err) {
    return sn_map_run(c, &dropouts, err);
}

SN_CPU_FAMILY(random, .reference = reference_random, .run = run_random, .check = check_random)
SN_CPU_FAMILY(dropout, .reference = reference_dropout, .run = run_dropout)
