/* draw.c: random and dropout. An element's number is a function of the key and of its position in
 * the full value alone, so slices draw what the whole would, and the gradient of dropout draws its
 * mask again.
 *
 *     random   kind uniform: low + (high - low) u;  normal, truncated: low + high z
 *              (tensor/feed.h has the bits)
 *     dropout  x / (1 - rate) where uniform(key, position) >= rate, else 0; one mask for f32
 *              and f64 */
#include "base/rng.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/place.h"
#include "tensor/feed.h"

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
    sn_spans(c, sn_type_count(&c->out[0].type), random_span);
    return SNUG_OK;
}

/* --- dropout ---------------------------------------------------------------------------------- */
#define DROPOUT_SPAN(name, M)                                                                      \
    static void name##_part(const sn_call *c, int64_t first, uint64_t position, int64_t n) {       \
        const M *in = (const M *)c->in[0].data + first;                                            \
        M *out = (M *)c->out[0].data + first;                                                      \
        const float rate = (float)c->param[0].real;                                                \
        const M scale = (M)(1 / (1 - c->param[0].real));                                           \
        float u[CHUNK];                                                                            \
        sn_random_fill_f32(SN_RANDOM_UNIFORM, (uint64_t)c->param[1].key, position, (size_t)n, u);  \
        SN_IVDEP for (int64_t i = 0; i < n; i++) {                                                 \
            const M kept = in[i] * scale;                                                          \
            out[i] = u[i] >= rate ? kept : 0;                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        by_position(c, first, n, name##_part);                                                     \
    }
DROPOUT_SPAN(dropout_f32, float)
DROPOUT_SPAN(dropout_f64, double)

/* Halves go through a line of f32 here, where the position of its first element is known. */
static void dropout_half_part(const sn_call *c, int64_t first, uint64_t position, int64_t n) {
    float line[CHUNK];
    const snug_dtype half = c->out[0].type.dtype;
    const snug_view view = {.data = line, .bytes = sizeof line, .type = c->out[0].type};
    sn_call lined = *c;
    lined.in = lined.out = &view;
    sn_halves_to_f32(half, (const uint16_t *)c->in[0].data + first, n, line);
    dropout_f32_part(&lined, 0, position, n);
    sn_halves_of_f32(half, line, n, (uint16_t *)c->out[0].data + first);
}

static void dropout_half(const sn_call *c, int64_t first, int64_t n) {
    by_position(c, first, n, dropout_half_part);
}

static const sn_span dropouts[SNUG_N_DTYPES] = {[SNUG_F32] = dropout_f32,
                                                [SNUG_F64] = dropout_f64,
                                                [SNUG_F16] = dropout_half,
                                                [SNUG_BF16] = dropout_half};

static snug_status reference_dropout(const sn_call *c, snug_error *err) {
    const sn_span span = dropouts[c->out[0].type.dtype];
    if (!span)
        return sn_no_kernel(c->out[0].type.dtype, err);
    span(c, 0, sn_type_count(&c->out[0].type));
    return SNUG_OK;
}

static snug_status run_dropout(const sn_call *c, snug_error *err) {
    const sn_span span = dropouts[c->out[0].type.dtype];
    if (!span)
        return sn_no_kernel(c->out[0].type.dtype, err);
    sn_spans(c, sn_type_count(&c->out[0].type), span);
    return SNUG_OK;
}

SN_CPU_FAMILY(random, .reference = reference_random, .run = run_random, .check = check_random,
              .takes_stored = SN_HALF_DTYPES)
SN_CPU_FAMILY(dropout, .reference = reference_dropout, .run = run_dropout,
              .takes_stored = SN_HALF_DTYPES)
