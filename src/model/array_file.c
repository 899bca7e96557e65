/* array_file.c: rows of an array file through one window of 256 KiB; elements that need no change
 * go straight to the caller.
 *
 *     file --pread--> [packed window --inflate-->] window --swap, convert--> the caller's view
 *
 * A plain file can be read anywhere. A .gz file is a stream: reading goes forward from where the
 * last read ended and starts over when rows before that are asked for, so shuffling a packed file
 * is slow.
 *
 * Invariants:
 * 1. A plain file is exactly as long as its header says, from opening on. A packed one was found to
 * be when its last row was read, and its checksum was right.
 * 2. After an error in the stream the next read starts it anew, so a fault that passes leaves no
 * wrong rows.
 * 3. zlib's own memory (about 40 KiB) comes from the engine: it is on the ledger. */
#include "model/array_file.h"

#include "base/file.h"

#include <string.h>
#include <zlib.h>

#define WINDOW_BYTES (256u << 10)
#define PACKED_BYTES (64u << 10)

struct sn_array_file {
    snug_engine *engine;
    sn_file file;
    sn_array_header header;
    int64_t data_end; /* behind the last element, in the unpacked stream */
    bool packed;
    z_stream stream;
    bool inflating;    /* the stream is open and stands at stream_at; an error closes it */
    bool ended;        /* the unpacked stream has no byte at stream_at */
    int64_t packed_at; /* next byte of the file to unpack */
    int64_t stream_at; /* next byte of the unpacked stream */
    unsigned char *window, *packed_window; /* packed_window: NULL for a plain file */
};

/* --- unpacking -------------------------------------------------------------------------------- */

/* zlib asks for blocks and gives them back without a size: keep it in front. */
static void *zlib_alloc(void *ctx, unsigned items, unsigned size) {
    const size_t bytes = (size_t)items * size + 64;
    void *block = NULL;
    if (sn_alloc(ctx, SN_MEM_INPUT, bytes, &block, NULL) != SNUG_OK)
        return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return (char *)block + 64;
}

static void zlib_free(void *ctx, void *address) {
    size_t bytes;
    char *block = (char *)address - 64;
    memcpy(&bytes, block, sizeof bytes);
    sn_free(ctx, SN_MEM_INPUT, block, bytes);
}

static void stop_inflating(sn_array_file *a) {
    if (a->inflating)
        inflateEnd(&a->stream);
    a->inflating = false;
}

static snug_status start_inflating(sn_array_file *a, snug_error *err) {
    stop_inflating(a);
    a->stream = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = a->engine};
    a->packed_at = a->stream_at = 0;
    a->ended = false;
    if (inflateInit2(&a->stream, 16 + MAX_WBITS) != Z_OK)
        return sn_fail(err, SNUG_E_MEMORY, "%s: no memory to unpack it (about 40 KiB are needed)",
                       a->file.path);
    a->inflating = true;
    return SNUG_OK;
}

static snug_status refill(sn_array_file *a, snug_error *err) {
    const int64_t left = a->file.size - a->packed_at;
    const size_t n = left < (int64_t)PACKED_BYTES ? (size_t)left : PACKED_BYTES;
    if (n == 0)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s is truncated: its gzip data stop in the middle, at byte %lld",
                       a->file.path, (long long)a->file.size);
    SNUG_TRY(sn_file_read(&a->file, a->packed_window, n, a->packed_at, err));
    a->packed_at += (int64_t)n;
    a->stream.next_in = a->packed_window;
    a->stream.avail_in = (unsigned)n;
    return SNUG_OK;
}

/* Behind a member of the file (its checksum was right): the end of the file, or another member, as
 * `cat a.gz b.gz` makes. */
static snug_status next_member(sn_array_file *a, snug_error *err) {
    if (a->stream.avail_in == 0 && a->packed_at == a->file.size) {
        a->ended = true;
        return SNUG_OK;
    }
    if (a->stream.avail_in == 0)
        SNUG_TRY(refill(a, err));
    if (*a->stream.next_in != 0x1f)
        return sn_fail(err, SNUG_E_FORMAT, "%s has bytes behind its gzip data, from byte %lld on",
                       a->file.path, (long long)(a->packed_at - (int64_t)a->stream.avail_in));
    (void)inflateReset(&a->stream); /* fails on a broken stream object only */
    return SNUG_OK;
}

static snug_status inflate_loop(sn_array_file *a, snug_error *err) {
    while (!a->ended && a->stream.avail_out > 0) {
        if (a->stream.avail_in == 0)
            SNUG_TRY(refill(a, err));
        const int code = inflate(&a->stream, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            SNUG_TRY(next_member(a, err));
        else if (code == Z_MEM_ERROR)
            return sn_fail(err, SNUG_E_MEMORY,
                           "%s: no memory to unpack it (about 40 KiB are needed)", a->file.path);
        else if (code != Z_OK)
            return sn_fail(err, SNUG_E_FORMAT,
                           "%s: damaged gzip data before byte %lld; get a whole copy", a->file.path,
                           (long long)(a->packed_at - (int64_t)a->stream.avail_in));
    }
    return SNUG_OK;
}

/* Up to n bytes from the stream; *got < n only at its end. */
static snug_status inflate_some(sn_array_file *a, unsigned char *out, size_t n, size_t *got,
                                snug_error *err) {
    a->stream.next_out = out;
    a->stream.avail_out = (unsigned)n;
    const snug_status status = inflate_loop(a, err);
    if (status != SNUG_OK) {
        stop_inflating(a);
        return status;
    }
    *got = n - a->stream.avail_out;
    a->stream_at += (int64_t)*got;
    return SNUG_OK;
}

static snug_status wrong_length(const sn_array_file *a, int64_t have, snug_error *err) {
    const int64_t want = a->data_end - a->header.data_offset;
    return sn_fail(err, SNUG_E_FORMAT,
                   "%s is %s: its header describes %lld bytes of data, %s%lld are there",
                   a->file.path, have < want ? "truncated" : "too long", (long long)want,
                   have > want && a->packed ? "more than " : "",
                   (long long)(have > want && a->packed ? want : have));
}

/* Having read the last element: the stream must end here, which also compares its checksum. */
static snug_status expect_end(sn_array_file *a, snug_error *err) {
    unsigned char more;
    size_t got;
    SNUG_TRY(inflate_some(a, &more, 1, &got, err));
    return got == 0 ? SNUG_OK : wrong_length(a, a->stream_at - a->header.data_offset, err);
}

static snug_status read_packed(sn_array_file *a, size_t n, int64_t offset, snug_error *err) {
    size_t got = 1;
    if (!a->inflating || offset < a->stream_at)
        SNUG_TRY(start_inflating(a, err));
    while (a->stream_at < offset && got > 0) {
        const int64_t skip = offset - a->stream_at;
        SNUG_TRY(inflate_some(
            a, a->window, skip < (int64_t)WINDOW_BYTES ? (size_t)skip : WINDOW_BYTES, &got, err));
    }
    SNUG_TRY(inflate_some(a, a->window, n, &got, err));
    if (got < n)
        return wrong_length(a, a->stream_at - a->header.data_offset, err);
    return a->stream_at == a->data_end ? expect_end(a, err) : SNUG_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The first bytes of the unpacked file into the window. */
static snug_status read_start(sn_array_file *a, size_t *n, snug_error *err) {
    const size_t most =
        a->file.size < SN_ARRAY_HEADER_BYTES ? (size_t)a->file.size : SN_ARRAY_HEADER_BYTES;
    void *memory;
    SNUG_TRY(sn_file_read(&a->file, a->window, most, 0, err));
    *n = most;
    a->packed = most >= 2 && a->window[0] == 0x1f && a->window[1] == 0x8b;
    if (!a->packed)
        return SNUG_OK;
    SNUG_TRY(sn_alloc(a->engine, SN_MEM_INPUT, PACKED_BYTES, &memory, err));
    a->packed_window = memory;
    SNUG_TRY(start_inflating(a, err));
    return inflate_some(a, a->window, SN_ARRAY_HEADER_BYTES, n, err);
}

/* Of a packed file the whole length is known only when it is short; else reading the last row
 * tells. */
static snug_status check_length(const sn_array_file *a, snug_error *err) {
    const int64_t end = a->packed ? a->stream_at : a->file.size;
    const bool whole = !a->packed || a->ended;
    if (end > a->data_end || (whole && end < a->data_end))
        return wrong_length(a, end - a->header.data_offset, err);
    return SNUG_OK;
}

static snug_status open_array(sn_array_file *a, const char *path, snug_error *err) {
    void *memory;
    size_t n, data_bytes;
    SNUG_TRY(sn_file_open(&a->file, sn_engine_io(a->engine), path, err));
    SNUG_TRY(sn_alloc(a->engine, SN_MEM_INPUT, WINDOW_BYTES, &memory, err));
    a->window = memory;
    SNUG_TRY(read_start(a, &n, err));
    SNUG_TRY(sn_array_header_parse(a->file.path, a->window, n, &a->header, err));
    SNUG_TRY(snug_type_bytes(&a->header.type, &data_bytes, err));
    a->data_end = a->header.data_offset + (int64_t)data_bytes;
    return check_length(a, err);
}

snug_status sn_array_file_open(snug_engine *e, const char *path, sn_array_file **out,
                               snug_error *err) {
    void *memory;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_array_file), &memory, err));
    sn_array_file *a = memory;
    a->engine = e;
    a->file.fd = -1;
    const snug_status status = open_array(a, path, err);
    if (status != SNUG_OK) {
        sn_array_file_close(a);
        return status;
    }
    *out = a;
    return SNUG_OK;
}

void sn_array_file_close(sn_array_file *a) {
    if (!a)
        return;
    stop_inflating(a);
    sn_file_close(&a->file);
    sn_free(a->engine, SN_MEM_INPUT, a->packed_window, PACKED_BYTES);
    sn_free(a->engine, SN_MEM_INPUT, a->window, WINDOW_BYTES);
    sn_free(a->engine, SN_MEM_INPUT, a, sizeof *a);
}

const sn_array_header *sn_array_file_header(const sn_array_file *a) {
    return &a->header;
}

bool sn_array_file_packed(const sn_array_file *a) {
    return a->packed;
}

/* --- rows ------------------------------------------------------------------------------------- */

static void swap_elements(unsigned char *bytes, size_t n, size_t elem) {
    for (size_t i = 0; i < n; i++, bytes += elem)
        for (size_t j = 0; j < elem / 2; j++) {
            const unsigned char t = bytes[j];
            bytes[j] = bytes[elem - 1 - j];
            bytes[elem - 1 - j] = t;
        }
}

snug_status sn_array_file_read(sn_array_file *a, int64_t first_row, int64_t n_rows,
                               const snug_view *dst, snug_error *err) {
    const snug_type *type = &a->header.type;
    const size_t elem = snug_dtype_bytes(type->dtype), to = snug_dtype_bytes(dst->type.dtype);
    const int64_t row = sn_type_span(type, 1, type->rank);
    const size_t count = (size_t)(n_rows * row), chunk = WINDOW_BYTES / elem;
    int64_t at = a->header.data_offset + first_row * row * (int64_t)elem;
    if (!a->packed && !a->header.big_endian && dst->type.dtype == type->dtype)
        return sn_file_read(&a->file, dst->data, count * elem, at, err);
    for (size_t done = 0; done < count; done += chunk) {
        const size_t n = count - done < chunk ? count - done : chunk;
        if (a->packed)
            SNUG_TRY(read_packed(a, n * elem, at, err));
        else
            SNUG_TRY(sn_file_read(&a->file, a->window, n * elem, at, err));
        if (a->header.big_endian)
            swap_elements(a->window, n, elem);
        const snug_status status = sn_convert(type->dtype, a->window, dst->type.dtype,
                                              (char *)dst->data + done * to, n, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "%s", a->file.path);
        at += (int64_t)(n * elem);
    }
    return SNUG_OK;
}

static snug_status fill_rows(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                             snug_error *err) {
    return sn_array_file_read(ctx, first_row, n_rows, dst, err);
}

static void release_file(void *ctx) {
    sn_array_file_close(ctx);
}

snug_status sn_feed_from_array_file(snug_engine *e, const char *path, snug_feed **out,
                                    snug_error *err) {
    sn_array_file *a;
    SNUG_TRY(sn_array_file_open(e, path, &a, err));
    const snug_status status =
        sn_feed_create(e, &a->header.type, a, fill_rows, release_file, out, err);
    if (status != SNUG_OK)
        sn_array_file_close(a);
    return status;
}
