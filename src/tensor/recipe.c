/* recipe.c: values without storage: element i is computed from (recipe, i), or read from the
 * recipe's source, when someone needs its bytes.
 *
 * Invariants:
 * 1. A slice of a recipe has the bits of the same slice of the whole, for every dtype; orthogonal
 *    matrices have no slices.
 * 2. f16 and bf16 are the f32 numbers rounded; integers come from integers (constants, labels)
 *    only. */
#include "tensor/feed.h"

#include "base/rng.h"
#include "memory/team.h"
#include "tensor/orthogonal.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { CHUNK = 256 };

sn_recipe sn_source_recipe(const sn_source *s, uint64_t first) {
    const sn_recipe_kind kind = sn_source_is_file(s) ? SN_RECIPE_FILE : SN_RECIPE_MEMORY;
    assert(first < (uint64_t)1 << 53); /* exact as a double */
    return (sn_recipe){kind, (uint64_t)(uintptr_t)s, (double)first, 0};
}

sn_source *sn_recipe_source(const sn_recipe *r) {
    const bool has = r->kind == SN_RECIPE_FILE || r->kind == SN_RECIPE_MEMORY;
    return has ? (sn_source *)(uintptr_t)r->key : NULL;
}

static bool is_random_real(sn_recipe_kind kind) {
    return kind == SN_RECIPE_UNIFORM || kind == SN_RECIPE_NORMAL || kind == SN_RECIPE_TRUNCATED;
}

static sn_random_kind random_kind(sn_recipe_kind kind) {
    if (kind == SN_RECIPE_UNIFORM)
        return SN_RANDOM_UNIFORM;
    return kind == SN_RECIPE_NORMAL ? SN_RANDOM_NORMAL : SN_RANDOM_TRUNCATED;
}

static snug_status check_recipe(const sn_recipe *r, snug_error *err) {
    if (r->kind == SN_RECIPE_UNIFORM && !(r->a <= r->b))
        return sn_fail(err, SNUG_E_INVALID, "uniform from %g to %g: the end lies below the start",
                       r->a, r->b);
    if ((r->kind == SN_RECIPE_NORMAL || r->kind == SN_RECIPE_TRUNCATED) && !(r->b >= 0))
        return sn_fail(err, SNUG_E_INVALID, "a normal with deviation %g; use 0 or more", r->b);
    if (r->kind == SN_RECIPE_LABELS && !(r->b >= 1 && r->b <= 0x1p32))
        return sn_fail(err, SNUG_E_INVALID, "labels of %g classes; use 1 to 4294967296", r->b);
    if ((r->kind == SN_RECIPE_EYE || r->kind == SN_RECIPE_ORTHOGONAL) &&
        !(r->b >= 1 && r->b <= 0x1p53))
        return sn_fail(err, SNUG_E_INVALID, "a matrix of %g columns; use 1 or more", r->b);
    return SNUG_OK;
}

/* [0, 1) to [a, b): rounding may reach b, which is outside. */
static void scale_f32(float a, float b, size_t n, float *x) {
    const float last = a == b ? b : nextafterf(b, a);
    for (size_t i = 0; i < n; i++) {
        const float v = a + (b - a) * x[i];
        x[i] = v < b ? v : last;
    }
}

static double scale_f64(double u, double a, double b) {
    const double v = a + (b - a) * u;
    return v < b || a == b ? v : nextafter(b, a);
}

static void real_f32(const sn_recipe *r, uint64_t first, size_t n, float *out) {
    const float a = (float)r->a, b = (float)r->b;
    sn_random_fill_f32(random_kind(r->kind), r->key, first, n, out);
    if (r->kind == SN_RECIPE_UNIFORM) {
        scale_f32(a, b, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = a + b * out[i];
}

static void real_f64(const sn_recipe *r, uint64_t first, size_t n, double *out) {
    sn_random_fill_f64(random_kind(r->kind), r->key, first, n, out);
    for (size_t i = 0; i < n; i++)
        out[i] =
            r->kind == SN_RECIPE_UNIFORM ? scale_f64(out[i], r->a, r->b) : r->a + r->b * out[i];
}

static void labels(const sn_recipe *r, uint64_t first, size_t n, int64_t *out) {
    const uint64_t classes = (uint64_t)r->b;
    for (size_t i = 0; i < n; i++) {
        const uint64_t at = first + i;
        const uint32_t bits = sn_philox(r->key, 0, at / 4).v[at % 4];
        out[i] = (int64_t)((unsigned __int128)bits * classes >> 32);
    }
}

static void eye(const sn_recipe *r, uint64_t first, size_t n, double *out) {
    const uint64_t columns = (uint64_t)r->b;
    for (size_t i = 0; i < n; i++)
        out[i] = (first + i) / columns == (first + i) % columns ? r->a : 0;
}

/* One chunk, in the widest dtype that the recipe makes for `dtype`; says which. */
typedef union {
    float f32[CHUNK];
    double f64[CHUNK];
    int64_t i64[CHUNK];
} chunk;

static snug_dtype make_chunk(const sn_recipe *r, uint64_t first, size_t n, snug_dtype dtype,
                             chunk *out) {
    if (r->kind == SN_RECIPE_LABELS) {
        labels(r, first, n, out->i64);
        return SNUG_I64;
    }
    if (is_random_real(r->kind) && dtype != SNUG_F64) {
        real_f32(r, first, n, out->f32);
        return SNUG_F32;
    }
    if (is_random_real(r->kind)) {
        real_f64(r, first, n, out->f64);
        return SNUG_F64;
    }
    if (r->kind == SN_RECIPE_EYE) {
        eye(r, first, n, out->f64);
        return SNUG_F64;
    }
    if (sn_dtype_is_float(dtype)) {
        const bool forgets = r->kind == SN_RECIPE_FORGET;
        for (size_t i = 0; i < n; i++) {
            const double at = (double)(first + i);
            out->f64[i] = forgets && at >= r->b && at < 2 * r->b ? 1 : r->a;
        }
        return SNUG_F64;
    }
    for (size_t i = 0; i < n; i++)
        out->i64[i] = (int64_t)r->a;
    return SNUG_I64;
}

static snug_status fill_orthogonal(const sn_recipe *r, size_t n, snug_dtype dtype, void *dst,
                                   snug_error *err) {
    const int64_t columns = (int64_t)r->b, rows = (int64_t)n / columns;
    const sn_recipe normal = {SN_RECIPE_NORMAL, r->key, 0, 1};
    if (dtype != SNUG_F32 && dtype != SNUG_F64)
        return sn_fail(err, SNUG_E_DATA, "an orthogonal matrix of %s; it may be f32 or f64",
                       snug_dtype_name(dtype));
    if (dtype == SNUG_F32) {
        real_f32(&normal, 0, n, dst);
        sn_orthonormal_f32(dst, rows, columns);
        for (size_t i = 0; i < n; i++)
            ((float *)dst)[i] *= (float)r->a;
    } else {
        real_f64(&normal, 0, n, dst);
        sn_orthonormal_f64(dst, rows, columns);
        for (size_t i = 0; i < n; i++)
            ((double *)dst)[i] *= r->a;
    }
    return SNUG_OK;
}

bool sn_recipe_is_whole(const sn_recipe *r) {
    return r->kind == SN_RECIPE_ORTHOGONAL;
}

snug_status sn_recipe_fill(const sn_recipe *r, uint64_t first, size_t n, snug_dtype dtype,
                           void *dst, snug_error *err) {
    sn_source *const source = sn_recipe_source(r);
    if (source)
        return sn_source_read(source, (uint64_t)r->a + first, n, dtype, dst, err);
    SNUG_TRY(check_recipe(r, err));
    const bool integral = r->a == floor(r->a) && fabs(r->a) < 0x1p63;
    if (r->kind == SN_RECIPE_CONSTANT && !sn_dtype_is_float(dtype) && !integral)
        return sn_fail(err, SNUG_E_DATA, "the constant %g is not an integer, but %s is asked for",
                       r->a, snug_dtype_name(dtype));
    if (sn_recipe_is_whole(r) && (first != 0 || n % (uint64_t)r->b != 0))
        return sn_fail(err, SNUG_E_INVALID,
                       "elements %llu to %llu of an orthogonal matrix of %g columns; it is made "
                       "whole",
                       (unsigned long long)first, (unsigned long long)first + n, r->b);
    if (sn_recipe_is_whole(r))
        return fill_orthogonal(r, n, dtype, dst, err);
    const size_t elem_bytes = snug_dtype_bytes(dtype);
    for (size_t done = 0; done < n;) {
        const size_t k = n - done < CHUNK ? n - done : CHUNK;
        chunk c;
        if (done > 0 && r->kind == SN_RECIPE_CONSTANT) { /* like the chunk there is */
            memcpy((char *)dst + done * elem_bytes, dst, k * elem_bytes);
            done += k;
            continue;
        }
        const snug_dtype made = make_chunk(r, first + done, k, dtype, &c);
        SNUG_TRY(sn_convert(made, &c, dtype, (char *)dst + done * elem_bytes, k, err));
        done += k;
    }
    return SNUG_OK;
}

typedef struct {
    snug_engine *engine;
    sn_recipe recipe;
    int64_t row_count;
} recipe_feed;

/* From this size on elements are computed by the engine's threads, in parts. */
enum { LARGE = 1 << 16, PART = 1 << 13 };

typedef struct {
    const sn_recipe *recipe;
    uint64_t first;
    size_t n;
    snug_dtype dtype;
    char *to;
    atomic_bool *failed;
} large_fill;

static void fill_parts(const void *ctx, int64_t first, int64_t end) {
    const large_fill *l = ctx;
    const size_t at = (size_t)first * PART, stop = (size_t)end * PART;
    const size_t n = (stop < l->n ? stop : l->n) - at;
    if (sn_recipe_fill(l->recipe, l->first + at, n, l->dtype,
                       l->to + at * snug_dtype_bytes(l->dtype), NULL) != SNUG_OK)
        atomic_store(l->failed, true);
}

/* Matrices that are made whole and sources go by themselves, and so does what a thread could not
 * do, for the message's sake. */
static snug_status recipe_feed_fill(void *ctx, int64_t first_row, int64_t n_rows,
                                    const snug_view *dst, snug_error *err) {
    const recipe_feed *f = ctx;
    atomic_bool failed = sn_recipe_is_whole(&f->recipe) || sn_recipe_source(&f->recipe);
    const large_fill l = {
        .recipe = &f->recipe,
        .first = (uint64_t)(first_row * f->row_count),
        .n = (size_t)(n_rows * f->row_count),
        .dtype = dst->type.dtype,
        .to = dst->data,
        .failed = &failed,
    };
    if (l.n >= LARGE && !failed) {
        sn_team_run(sn_team_of(f->engine), (int64_t)((l.n + PART - 1) / PART), fill_parts, &l);
        if (!failed)
            return SNUG_OK;
    }
    return sn_recipe_fill(l.recipe, l.first, l.n, l.dtype, l.to, err);
}

static void recipe_feed_release(void *ctx) {
    recipe_feed *f = ctx;
    sn_source_drop(sn_recipe_source(&f->recipe));
    sn_free(f->engine, SN_MEM_INPUT, f, sizeof *f);
}

/* A source has all the elements of the feed. */
static snug_status check_source(const snug_type *type, const sn_recipe *r, snug_error *err) {
    const sn_source *source = sn_recipe_source(r);
    const uint64_t first = source ? (uint64_t)r->a : 0, n = (uint64_t)sn_type_count(type);
    if (!source || (first <= sn_source_count(source) && n <= sn_source_count(source) - first))
        return SNUG_OK;
    char text[192];
    return sn_fail(err, SNUG_E_SHAPE, "a feed of %s from element %llu of a source that has %llu",
                   snug_type_print(type, text, sizeof text), (unsigned long long)first,
                   (unsigned long long)sn_source_count(source));
}

snug_status sn_feed_from_recipe(snug_engine *e, const snug_type *type, const sn_recipe *r,
                                snug_feed **out, snug_error *err) {
    SNUG_TRY(check_recipe(r, err));
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(check_source(type, r, err));
    void *p;
    SNUG_TRY(sn_alloc(e, SN_MEM_INPUT, sizeof(recipe_feed), &p, err));
    recipe_feed *f = p;
    *f = (recipe_feed){e, *r, type->rank > 0 ? sn_type_span(type, 1, type->rank) : 0};
    const snug_status status =
        sn_feed_create(e, type, f, recipe_feed_fill, recipe_feed_release, out, err);
    if (status == SNUG_OK)
        sn_source_hold(sn_recipe_source(r));
    else
        sn_free(e, SN_MEM_INPUT, f, sizeof *f);
    return status;
}

const sn_recipe *sn_feed_recipe(const snug_feed *feed) {
    return feed->fill == recipe_feed_fill ? &((const recipe_feed *)feed->ctx)->recipe : NULL;
}
