/* recipe_source.c: files and foreign memory as sources of elements.
 *
 * Invariants:
 * 1. A file source's slice lay inside the file when it was opened; a file that has become shorter
 *    since is SNUG_E_FORMAT at the read.
 * 2. release is called with the last drop, once, and never before sn_source_give. */
#include "tensor/source.h"

#include "base/file.h"
#include "base/size.h"
#include "memory/team.h"
#include "tensor/feed.h"

#include <stdatomic.h>
#include <string.h>

struct sn_source {
    snug_engine *engine;
    atomic_uint n_holders;
    snug_dtype dtype;
    uint64_t count;
    const char *data; /* NULL: a file */
    void (*release)(void *ctx);
    void *ctx;
    /* only of a file */
    int64_t offset;
    sn_file file;
};

static size_t source_bytes(bool is_file) {
    return is_file ? sizeof(sn_source) : offsetof(sn_source, offset);
}

/* --- life ------------------------------------------------------------------------------------- */

/* data NULL: a file, not open yet. */
static snug_status create(snug_engine *e, const void *data, snug_dtype dtype, uint64_t count,
                          sn_source **out, snug_error *err) {
    void *p;
    size_t bytes;
    if (snug_dtype_bytes(dtype) == 0)
        return sn_fail(err, SNUG_E_SHAPE, "a source of %s elements; give numbers or truth values",
                       snug_dtype_name(dtype));
    if (!sn_size_mul(count, snug_dtype_bytes(dtype), &bytes) || bytes > INT64_MAX)
        return sn_fail(err, SNUG_E_OVERFLOW, "a source of %llu elements exceeds the address space",
                       (unsigned long long)count);
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, source_bytes(!data), &p, err));
    sn_source *s = p;
    s->engine = e;
    s->dtype = dtype;
    s->count = count;
    s->data = data;
    if (!data)
        s->file.fd = -1;
    atomic_init(&s->n_holders, 1);
    *out = s;
    return SNUG_OK;
}

static snug_status open_slice(sn_source *s, const sn_file_slice *slice, snug_error *err) {
    int64_t end;
    SNUG_TRY(sn_file_open(&s->file, sn_engine_io(s->engine), slice->path, err));
    const int64_t bytes = (int64_t)(s->count * snug_dtype_bytes(s->dtype));
    if (slice->offset < 0 || !sn_i64_add(slice->offset, bytes, &end) || end > s->file.size)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s has %lld bytes, but %lld from byte %lld on are asked for", slice->path,
                       (long long)s->file.size, (long long)bytes, (long long)slice->offset);
    s->offset = slice->offset;
    return SNUG_OK;
}

snug_status sn_source_from_file(snug_engine *e, const sn_file_slice *slice, sn_source **out,
                                snug_error *err) {
    sn_source *s;
    SNUG_TRY(create(e, NULL, slice->dtype, slice->count, &s, err));
    const snug_status status = open_slice(s, slice, err);
    if (status == SNUG_OK)
        *out = s;
    else
        sn_source_drop(s);
    return status;
}

snug_status sn_source_from_memory(snug_engine *e, const void *data, snug_dtype dtype,
                                  uint64_t count, sn_source **out, snug_error *err) {
    if (!data && count > 0)
        return sn_fail(err, SNUG_E_INVALID, "the data are NULL, but there are %llu elements",
                       (unsigned long long)count);
    /* copying no bytes from NULL is undefined, too */
    return create(e, data ? data : "", dtype, count, out, err);
}

void sn_source_give(sn_source *s, void (*release)(void *ctx), void *ctx) {
    s->release = release;
    s->ctx = ctx;
}

void sn_source_hold(sn_source *s) {
    if (s)
        atomic_fetch_add(&s->n_holders, 1);
}

void sn_source_drop(sn_source *s) {
    if (!s || atomic_fetch_sub(&s->n_holders, 1) > 1)
        return;
    if (sn_source_is_file(s))
        sn_file_close(&s->file);
    if (s->release)
        s->release(s->ctx);
    sn_free(s->engine, SN_MEM_INPUT, s, source_bytes(sn_source_is_file(s)));
}

bool sn_source_is_file(const sn_source *s) {
    return !s->data;
}

uint64_t sn_source_count(const sn_source *s) {
    return s->count;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* From this size on elements are converted by the engine's threads, in parts. */
enum { LARGE = 1 << 16, PART = 1 << 13 };

typedef struct {
    snug_dtype from, to;
    const char *src;
    char *dst;
    size_t n;
    atomic_bool *failed;
} large_read;

static void convert_parts(const void *ctx, int64_t first, int64_t end) {
    const large_read *l = ctx;
    const size_t at = (size_t)first * PART, stop = (size_t)end * PART;
    const size_t n = (stop < l->n ? stop : l->n) - at;
    if (sn_convert(l->from, l->src + at * snug_dtype_bytes(l->from), l->to,
                   l->dst + at * snug_dtype_bytes(l->to), n, NULL) != SNUG_OK)
        atomic_store(l->failed, true);
}

/* What a thread could not do is done once more, for the message's sake. */
static snug_status convert(const sn_source *s, const char *from, size_t n, snug_dtype dtype,
                           void *dst, snug_error *err) {
    atomic_bool failed = false;
    const large_read l = {s->dtype, dtype, from, dst, n, &failed};
    if (n >= LARGE) {
        sn_team_run(sn_team_of(s->engine), (int64_t)((n + PART - 1) / PART), convert_parts, &l);
        if (!failed)
            return SNUG_OK;
    }
    return sn_convert(s->dtype, from, dtype, dst, n, err);
}

static snug_status read_memory(const sn_source *s, uint64_t first, size_t n, snug_dtype dtype,
                               void *dst, snug_error *err) {
    const size_t element = snug_dtype_bytes(s->dtype);
    const char *from = s->data + first * element;
    if (dtype != s->dtype)
        return convert(s, from, n, dtype, dst, err);
    sn_team_copy(sn_team_of(s->engine), dst, from, n * element);
    return SNUG_OK;
}

void *sn_source_lend(const sn_source *s, uint64_t first, uint64_t n, snug_dtype dtype) {
    const size_t element = snug_dtype_bytes(s->dtype);
    if (sn_source_is_file(s) || dtype != s->dtype || first > s->count || n > s->count - first ||
        (uintptr_t)s->data % element != 0)
        return NULL;
    void *at; /* views have no const data */
    const char *const from = s->data + first * element;
    memcpy(&at, &from, sizeof at);
    return at;
}

/* Through a window where the elements of the file are larger; else they are read to the end of dst
 * and converted from there. */
static snug_status read_file(sn_source *s, uint64_t first, size_t n, snug_dtype dtype, char *dst,
                             snug_error *err) {
    enum { WINDOW = 16384 };
    _Alignas(16) char window[WINDOW];
    const size_t from = snug_dtype_bytes(s->dtype), to = snug_dtype_bytes(dtype);
    const size_t most = from > to ? WINDOW / from : n;
    for (size_t done = 0; done < n;) {
        const size_t k = n - done < most ? n - done : most;
        char *raw = from > to ? window : dst + n * to - n * from;
        const int64_t at = s->offset + (int64_t)((first + done) * from);
        SNUG_TRY(sn_file_read(&s->file, raw, k * from, at, err));
        if (dtype != s->dtype)
            SNUG_TRY(sn_convert(s->dtype, raw, dtype, dst + done * to, k, err));
        done += k;
    }
    return SNUG_OK;
}

snug_status sn_source_read(sn_source *s, uint64_t first, size_t n, snug_dtype dtype, void *dst,
                           snug_error *err) {
    if (first > s->count || n > s->count - first)
        return sn_fail(err, SNUG_E_INVALID,
                       "elements %llu and %zu more are asked of a source that has %llu",
                       (unsigned long long)first, n, (unsigned long long)s->count);
    return s->data ? read_memory(s, first, n, dtype, dst, err)
                   : read_file(s, first, n, dtype, dst, err);
}
