/* type.c: element types and shapes: their names, sizes, text form and checks.
 *
 * Invariants:
 * 1. A type that passed sn_type_check can have the product of any run of its dims taken without
 *    overflow: zero and unknown dims count as one in the check. */
#include "tensor/type.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum { FLOAT, SIGNED, COUNT, TRUTH, NONE } dtype_kind;

typedef struct {
    const char *name;
    size_t bytes;
    dtype_kind kind;
    snug_dtype computed, sums;
    const char *word;
    double largest;
} dtype_row;

static const dtype_row dtypes[SNUG_N_DTYPES] = {
#define DTYPE_ROW(name, lower, bytes, kind, computed, sums, word, largest, npy, st)                \
    {#lower, bytes, kind, SNUG_##computed, SNUG_##sums, word, largest},
    SNUG_DTYPE_MAP(DTYPE_ROW)
#undef DTYPE_ROW
};

_Static_assert(SNUG_OPAQUE == SNUG_N_DTYPES - 1, "dtypes of numbers stand before opaque");

static bool is_dtype(snug_dtype d) {
    return (size_t)d < SNUG_N_DTYPES;
}

const char *snug_dtype_name(snug_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "invalid";
}

size_t snug_dtype_bytes(snug_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

bool sn_dtype_is_float(snug_dtype d) {
    return is_dtype(d) && dtypes[d].kind == FLOAT;
}

bool sn_dtype_is_int(snug_dtype d) {
    return is_dtype(d) && (dtypes[d].kind == SIGNED || dtypes[d].kind == COUNT);
}

bool sn_dtype_counts(snug_dtype d) {
    return is_dtype(d) && dtypes[d].kind == COUNT;
}

snug_dtype sn_dtype_computed(snug_dtype d) {
    return is_dtype(d) ? dtypes[d].computed : d;
}

snug_dtype sn_dtype_sums(snug_dtype d) {
    return is_dtype(d) ? dtypes[d].sums : d;
}

double sn_dtype_largest(snug_dtype d) {
    return is_dtype(d) ? dtypes[d].largest : 0;
}

bool sn_dtype_of_word(const char *word, size_t n, snug_dtype *out) {
    static const struct {
        const char *word;
        snug_dtype dtype;
    } others[] = {{"double", SNUG_F64}, {"half", SNUG_F16}};
    for (int d = 0; d < SNUG_OPAQUE; d++)
        if (strlen(dtypes[d].word) == n && memcmp(dtypes[d].word, word, n) == 0) {
            *out = (snug_dtype)d;
            return true;
        }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i].word) == n && memcmp(others[i].word, word, n) == 0) {
            *out = others[i].dtype;
            return true;
        }
    return false;
}

bool sn_type_known(const snug_type *t) {
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0)
            return false;
    }
    return true;
}

bool sn_dims_equal(const snug_type *a, const snug_type *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i])
            return false;
    }
    return true;
}

bool sn_type_equal(const snug_type *a, const snug_type *b) {
    return a->dtype == b->dtype && sn_dims_equal(a, b);
}

int64_t sn_type_span(const snug_type *t, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= t->dims[i];
    return n;
}

int64_t sn_type_count(const snug_type *t) {
    return sn_type_span(t, 0, t->rank);
}

snug_status sn_type_check(const snug_type *t, bool is_template, snug_error *err) {
    if (!is_dtype(t->dtype))
        return sn_fail(err, SNUG_E_INVALID, "dtype number %d does not exist; there are %d",
                       (int)t->dtype, (int)SNUG_N_DTYPES);
    if (t->rank < 0 || t->rank > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_SHAPE, "rank %d is not in 0..%d; join axes with a reshape",
                       t->rank, SNUG_MAX_RANK);
    const size_t elem_bytes = snug_dtype_bytes(t->dtype);
    size_t bytes = elem_bytes > 0 ? elem_bytes : 1;
    for (int i = 0; i < t->rank; i++) {
        const int64_t d = t->dims[i];
        if (d < (is_template ? -1 : 0))
            return sn_fail(err, SNUG_E_SHAPE, "axis %d has extent %" PRId64 "%s", i, d,
                           d == -1 ? ", which must be known here; bind the shape first"
                                   : "; extents start at 0");
        /* PTRDIFF_MAX, not SIZE_MAX: pointers into the tensor must be subtractable. */
        if (!sn_size_mul(bytes, d > 0 ? (size_t)d : 1, &bytes) || bytes > PTRDIFF_MAX) {
            char text[192];
            return sn_fail(err, SNUG_E_OVERFLOW,
                           "%s is larger than the address space; use smaller extents",
                           snug_type_print(t, text, sizeof text));
        }
    }
    return SNUG_OK;
}

snug_status snug_type_bytes(const snug_type *type, size_t *bytes, snug_error *err) {
    if (!type || !bytes)
        return sn_fail(err, SNUG_E_INVALID, "snug_type_bytes: type and bytes must not be NULL");
    SNUG_TRY(sn_type_check(type, false, err));
    *bytes = (size_t)sn_type_count(type) * snug_dtype_bytes(type->dtype);
    return SNUG_OK;
}

const char *snug_type_print(const snug_type *type, char *text, size_t size) {
    if (!type)
        return NULL;
    if (!text || size == 0)
        return "";
    size_t n = (size_t)snprintf(text, size, "%s[", snug_dtype_name(type->dtype));
    const int rank = type->rank < SNUG_MAX_RANK ? type->rank : SNUG_MAX_RANK;
    for (int i = 0; i < rank && n < size; i++) {
        const char *comma = i > 0 ? "," : "";
        if (type->dims[i] == -1)
            n += (size_t)snprintf(text + n, size - n, "%s?", comma);
        else
            n += (size_t)snprintf(text + n, size - n, "%s%" PRId64, comma, type->dims[i]);
    }
    if (n < size)
        snprintf(text + n, size - n, "]");
    return text;
}

/* The dtype spelled by the first n characters, or SNUG_N_DTYPES. */
static snug_dtype find_dtype(const char *name, size_t n) {
    for (size_t d = 0; d < SNUG_N_DTYPES; d++) {
        if (strlen(dtypes[d].name) == n && memcmp(dtypes[d].name, name, n) == 0)
            return (snug_dtype)d;
    }
    return SNUG_N_DTYPES;
}

static snug_status fail_dtype(const char *name, size_t n, snug_error *err) {
    char known[128];
    size_t used = 0;
    for (int d = 0; d < SNUG_OPAQUE && used < sizeof known; d++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                 d == 0                 ? ""
                                 : d + 1 == SNUG_OPAQUE ? " or "
                                                        : ", ",
                                 dtypes[d].name);
    return sn_fail(err, SNUG_E_FORMAT, "'%.*s' is not a dtype; use %s", n < 32 ? (int)n : 32, name,
                   known);
}

snug_status sn_dtype_parse(const char *name, snug_dtype *out, snug_error *err) {
    const size_t n = strlen(name);
    const snug_dtype d = find_dtype(name, n);
    if (d == SNUG_N_DTYPES)
        return fail_dtype(name, n, err);
    *out = d;
    return SNUG_OK;
}

/* One extent, digits or '?', at *at; false on anything else and beyond 2^63 - 1. */
static bool read_extent(const char **at, int64_t *out) {
    const char *p = *at;
    if (*p == '?') {
        *out = -1;
        *at = p + 1;
        return true;
    }
    int64_t d = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (!sn_i64_mul(d, 10, &d) || !sn_i64_add(d, *p - '0', &d))
            return false;
    }
    const bool any = p != *at;
    *out = d;
    *at = p;
    return any;
}

snug_status sn_type_parse(const char *text, const char **end, snug_type *out, snug_error *err) {
    const size_t n = strcspn(text, "[");
    snug_type t = {.dtype = find_dtype(text, n)};
    if (text[n] != '[')
        return sn_fail(err, SNUG_E_FORMAT, "'%.40s' is not a type; write it like f32[32,10]", text);
    if (t.dtype == SNUG_N_DTYPES)
        return fail_dtype(text, n, err);
    const char *p = text + n + 1;
    while (*p != ']') {
        if (t.rank == SNUG_MAX_RANK)
            return sn_fail(err, SNUG_E_FORMAT, "'%.80s' has more than %d axes", text,
                           SNUG_MAX_RANK);
        if ((t.rank > 0 && *p++ != ',') || !read_extent(&p, &t.dims[t.rank]))
            return sn_fail(err, SNUG_E_FORMAT,
                           "'%.80s': axis %d is not an extent; write it like f32[32,10]", text,
                           t.rank);
        t.rank++;
    }
    SNUG_TRY(sn_type_check(&t, true, err));
    *out = t;
    if (end)
        *end = p + 1;
    return SNUG_OK;
}
