/* safetensors_read.c: the reader. Layout: u64 length N, N bytes of JSON, data.
 *
 * Invariants after sn_safetensors_open:
 * 1. entries are sorted by begin; the first begins at 0, each begins where the one before ends, the
 * last ends at the end of the file: no gap, no overlap, no trailing byte;
 * 2. bytes of an entry = product of its dims times the dtype's size, computed without overflow;
 * 3. names are unique (the JSON parser refuses duplicates).
 * Nothing is allocated for the header before its length was compared with the file's size. Names
 * are data, never paths. */
#include "model/safetensors.h"

#include "base/file.h"
#include "base/size.h"
#include "model/json.h"
#include "tensor/feed.h"

#include <stdlib.h>
#include <string.h>

#define MAX_HEADER_BYTES 100000000u
#define MAX_ROW_BYTES    160u /* of the header, for each tensor that is expected */
#define WINDOW_BYTES     (256u << 10)

struct sn_safetensors {
    snug_engine *engine;
    sn_zone *zone;
    sn_file file;
    uint64_t data_begin;
    size_t n, most; /* 0: any number */
    sn_st_entry *entries;
    void *window;
};

static snug_status bad(const sn_safetensors *s, snug_error *err, const char *what) {
    return sn_fail(err, SNUG_E_FORMAT, "%s is not a sound safetensors file: %s", s->file.path,
                   what);
}

static bool dtype_from_name(const char *name, snug_dtype *out) {
#define MATCH(upper, lower, bytes, kind, computed, sums, word, largest, npy, st)                   \
    if (st[0] && strcmp(name, st) == 0) {                                                          \
        *out = SNUG_##upper;                                                                       \
        return true;                                                                               \
    }
    SNUG_DTYPE_MAP(MATCH)
#undef MATCH
    return false;
}

static bool read_count(const json_t *value, int64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (int64_t)json_integer_value(value);
    return true;
}

static snug_status parse_shape(const sn_safetensors *s, const json_t *shape, sn_st_entry *t,
                               snug_error *err) {
    if (!json_is_array(shape))
        return sn_fail(err, SNUG_E_FORMAT, "%s: tensor '%s' has no shape", s->file.path, t->name);
    if (json_array_size(shape) > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_FORMAT, "%s: tensor '%s' has %zu axes; Snug reads at most %d",
                       s->file.path, t->name, json_array_size(shape), SNUG_MAX_RANK);
    t->type.rank = (int)json_array_size(shape);
    for (int i = 0; i < t->type.rank; i++)
        if (!read_count(json_array_get(shape, (size_t)i), &t->type.dims[i]))
            return sn_fail(err, SNUG_E_FORMAT, "%s: tensor '%s': axis %d is not a count",
                           s->file.path, t->name, i);
    if (snug_type_bytes(&t->type, &t->bytes, NULL) == SNUG_OK)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_FORMAT, "%s: tensor '%s' has more bytes than any file", s->file.path,
                   t->name);
}

static snug_status parse_entry(const sn_safetensors *s, const json_t *value, sn_st_entry *t,
                               snug_error *err) {
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *offsets = json_object_get(value, "data_offsets");
    int64_t begin, end;
    if (!dtype)
        return sn_fail(err, SNUG_E_FORMAT, "%s: tensor '%s' has no dtype", s->file.path, t->name);
    if (!dtype_from_name(dtype, &t->type.dtype))
        return sn_fail(
            err, SNUG_E_FORMAT,
            "%s: tensor '%s' has dtype %.16s, which Snug does not read; convert it to F32",
            s->file.path, t->name, dtype);
    SNUG_TRY(parse_shape(s, json_object_get(value, "shape"), t, err));
    if (json_array_size(offsets) != 2 || !read_count(json_array_get(offsets, 0), &begin) ||
        !read_count(json_array_get(offsets, 1), &end) || end < begin)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s: tensor '%s': data_offsets are not two counts, begin and end",
                       s->file.path, t->name);
    if ((uint64_t)(end - begin) != t->bytes)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s: tensor '%s' has %lld bytes by its data_offsets, %zu by its shape",
                       s->file.path, t->name, (long long)(end - begin), t->bytes);
    t->begin = (uint64_t)begin;
    return SNUG_OK;
}

static snug_status check_metadata(const sn_safetensors *s, json_t *value, snug_error *err) {
    bool texts = json_is_object(value);
    for (void *it = json_object_iter(value); it; it = json_object_iter_next(value, it))
        texts = texts && json_is_string(json_object_iter_value(it));
    return texts ? SNUG_OK : bad(s, err, "its __metadata__ is not an object of texts");
}

static int by_position(const void *a, const void *b) {
    const sn_st_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static snug_status check_positions(const sn_safetensors *s, snug_error *err) {
    uint64_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        const sn_st_entry *t = &s->entries[i];
        if (t->begin != at)
            return sn_fail(err, SNUG_E_FORMAT,
                           "%s: tensor '%s' begins at %llu where %llu was expected: gap or overlap",
                           s->file.path, t->name, (unsigned long long)t->begin,
                           (unsigned long long)at);
        at += t->bytes; /* cannot wrap: each end was read as a non-negative int64 */
    }
    if (s->data_begin + at != (uint64_t)s->file.size)
        return sn_fail(
            err, SNUG_E_FORMAT,
            "%s is %lld bytes long, its header describes %llu: truncated or trailing data",
            s->file.path, (long long)s->file.size, (unsigned long long)(s->data_begin + at));
    return SNUG_OK;
}

static snug_status parse_header(sn_safetensors *s, json_t *root, snug_error *err) {
    void *entries;
    size_t bytes;
    if (!json_is_object(root))
        return bad(s, err, "the header is not an object");
    if (!sn_size_mul(json_object_size(root) + 1, sizeof(sn_st_entry), &bytes))
        return bad(s, err, "too many tensors");
    if (s->most > 0 && json_object_size(root) > s->most)
        return sn_fail(err, SNUG_E_FORMAT, "%s holds %zu tensors; at most %zu are expected",
                       s->file.path, json_object_size(root), s->most);
    SNUG_TRY(sn_zone_alloc(s->zone, bytes, &entries, err));
    s->entries = entries;
    for (void *it = json_object_iter(root); it; it = json_object_iter_next(root, it)) {
        const char *name = json_object_iter_key(it);
        if (strcmp(name, "__metadata__") == 0) {
            SNUG_TRY(check_metadata(s, json_object_iter_value(it), err));
            continue;
        }
        sn_st_entry *t = &s->entries[s->n];
        SNUG_TRY(sn_zone_text(s->zone, name, &t->name, err));
        SNUG_TRY(parse_entry(s, json_object_iter_value(it), t, err));
        s->n++;
    }
    qsort(s->entries, s->n, sizeof *s->entries, by_position);
    return check_positions(s, err);
}

static snug_status parse_text(sn_safetensors *s, const char *text, size_t n, snug_error *err) {
    sn_json tree;
    if (text[0] != '{')
        return bad(s, err, "its header does not begin with {");
    SNUG_TRY(sn_json_parse(sn_zone_engine(s->zone), s->file.path, text, n, &tree, err));
    const snug_status status = parse_header(s, tree.root, err);
    sn_json_clear(&tree);
    return status;
}

/* What people take for weights, by how it begins. */
static snug_status not_another(const sn_safetensors *s, const unsigned char *first,
                               snug_error *err) {
    static const struct {
        const char *begin, *what;
    } others[] = {{"\x89HDF", "an HDF5 file"},
                  {"PK\x03\x04", "a zip, as .keras and .npz are"},
                  {"\x93NUM", "an .npy array"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (memcmp(first, others[i].begin, 4) == 0)
            return sn_fail(err, SNUG_E_FORMAT,
                           "%s is %s, and not safetensors: load it in Python and save it by "
                           "model.save_weights('w.safetensors')",
                           s->file.path, others[i].what);
    return SNUG_OK;
}

static snug_status read_length(sn_safetensors *s, size_t *out, snug_error *err) {
    unsigned char length[8];
    uint64_t n = 0;
    if (s->file.size < 8)
        return bad(s, err, "it is shorter than 8 bytes");
    SNUG_TRY(sn_file_read(&s->file, length, 8, 0, err));
    SNUG_TRY(not_another(s, length, err));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > (uint64_t)s->file.size - 8)
        return sn_fail(
            err, SNUG_E_FORMAT,
            "%s is truncated, or no safetensors file: its header claims %llu bytes, %lld follow",
            s->file.path, (unsigned long long)n, (long long)(s->file.size - 8));
    if (n < 2 || n > MAX_HEADER_BYTES)
        return sn_fail(
            err, SNUG_E_FORMAT,
            "%s is not a sound safetensors file: a header of %llu bytes (2 to %u are legal)",
            s->file.path, (unsigned long long)n, MAX_HEADER_BYTES);
    if (s->most > 0 && n / MAX_ROW_BYTES > s->most)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s has a header of %llu bytes, too long for the %zu tensors that are "
                       "expected at most",
                       s->file.path, (unsigned long long)n, s->most);
    s->data_begin = 8 + n;
    *out = (size_t)n;
    return SNUG_OK;
}

static snug_status read_header(sn_safetensors *s, snug_error *err) {
    size_t n = 0;
    void *text;
    SNUG_TRY(read_length(s, &n, err));
    SNUG_TRY(sn_alloc(s->engine, SN_MEM_INPUT, n, &text, err));
    snug_status status = sn_file_read(&s->file, text, n, 8, err);
    if (status == SNUG_OK)
        status = parse_text(s, text, n, err);
    sn_free(s->engine, SN_MEM_INPUT, text, n);
    return status;
}

snug_status sn_safetensors_open(snug_engine *e, const char *path, size_t most, sn_safetensors **out,
                                snug_error *err) {
    void *memory;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_safetensors), &memory, err));
    sn_safetensors *s = memory;
    s->engine = e;
    s->most = most;
    s->file.fd = -1;
    snug_status status = sn_file_open(&s->file, sn_engine_io(e), path, err);
    if (status == SNUG_OK)
        status = sn_zone_create(e, SN_MEM_INPUT, &s->zone, err);
    if (status == SNUG_OK)
        status = read_header(s, err);
    if (status == SNUG_OK)
        status = sn_alloc(e, SN_MEM_INPUT, WINDOW_BYTES, &s->window, err);
    if (status != SNUG_OK) {
        sn_safetensors_close(s);
        return status;
    }
    *out = s;
    return SNUG_OK;
}

void sn_safetensors_close(sn_safetensors *s) {
    if (!s)
        return;
    sn_file_close(&s->file);
    sn_free(s->engine, SN_MEM_INPUT, s->window, WINDOW_BYTES);
    sn_zone_destroy(s->zone);
    sn_free(s->engine, SN_MEM_INPUT, s, sizeof *s);
}

size_t sn_safetensors_count(const sn_safetensors *s) {
    return s->n;
}

const sn_st_entry *sn_safetensors_at(const sn_safetensors *s, size_t i) {
    return &s->entries[i];
}

/* Whether `shorter` is `full` with steps left out; the last step must stay. */
static bool is_short_form(const char *full, const char *shorter) {
    const char *a = full, *b = shorter;
    for (;;) {
        const size_t na = strcspn(a, "/"), nb = strcspn(b, "/");
        const bool last_a = !a[na], last_b = !b[nb];
        const bool same = na == nb && memcmp(a, b, na) == 0;
        if (last_a)
            return last_b && same;
        if (same && !last_b)
            b += nb + 1;
        a += na + 1;
    }
}

snug_status sn_safetensors_find(const sn_safetensors *s, const char *name, const sn_st_entry **out,
                                snug_error *err) {
    const sn_st_entry *found = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->entries[i].name, name) == 0) {
            *out = &s->entries[i];
            return SNUG_OK;
        }
    for (size_t i = 0; i < s->n; i++) {
        const sn_st_entry *t = &s->entries[i];
        if (!is_short_form(name, t->name) && !is_short_form(t->name, name))
            continue;
        if (found)
            return sn_fail(err, SNUG_E_FORMAT,
                           "%s: both '%s' and '%s' could be '%s'; use the full name", s->file.path,
                           found->name, t->name, name);
        found = t;
    }
    if (!found)
        return sn_fail(
            err, SNUG_E_FORMAT,
            "%s has no tensor '%s' (it holds %zu, first '%s'); `snug inspect` lists them",
            s->file.path, name, s->n, s->n ? s->entries[0].name : "");
    *out = found;
    return SNUG_OK;
}

snug_status sn_safetensors_read(sn_safetensors *s, const sn_st_entry *t, const snug_view *dst,
                                snug_error *err) {
    char have[192], want[192];
    if (!sn_dims_equal(&t->type, &dst->type))
        return sn_fail(err, SNUG_E_SHAPE, "%s: tensor '%s' is %s, the model needs %s", s->file.path,
                       t->name, snug_type_print(&t->type, have, sizeof have),
                       snug_type_print(&dst->type, want, sizeof want));
    const size_t from = snug_dtype_bytes(t->type.dtype), to = snug_dtype_bytes(dst->type.dtype);
    const size_t count = t->bytes / from, chunk = WINDOW_BYTES / from;
    for (size_t done = 0; done < count; done += chunk) {
        const size_t n = count - done < chunk ? count - done : chunk;
        const int64_t at = (int64_t)(s->data_begin + t->begin + done * from);
        SNUG_TRY(sn_file_read(&s->file, s->window, n * from, at, err));
        const snug_status status = sn_convert(t->type.dtype, s->window, dst->type.dtype,
                                              (char *)dst->data + done * to, n, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "%s: tensor '%s'", s->file.path, t->name);
    }
    return SNUG_OK;
}
