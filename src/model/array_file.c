/* array_file.c: rows of an array file through one window of 256 KiB.
 *
 *     file --pread--> [packed window --inflate-->] window --swap, convert--> the caller's view
 *
 * A plain file can be read anywhere. A .gz file is a stream: reading goes forward from where the last read ended and
 * starts over when rows before that are asked for (shuffling a packed file is slow, which docs say; unpack it).
 * zlib's own memory (about 40 KiB) comes from the engine, so it is on the ledger. */
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
    bool packed, inflating;
    z_stream stream;
    int64_t packed_at;   /* next byte of the file to unpack */
    int64_t stream_at;   /* next byte of the unpacked stream */
    unsigned char *window, *packed_window;
};

/* --- unpacking ------------------------------------------------------------------------------------------------------ */

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
    memset(&a->stream, 0, sizeof a->stream);
    a->stream.zalloc = zlib_alloc;
    a->stream.zfree = zlib_free;
    a->stream.opaque = a->engine;
    a->packed_at = a->stream_at = 0;
    if (inflateInit2(&a->stream, 16 + MAX_WBITS) != Z_OK)
        return sn_fail(err, SNUG_E_MEMORY, "%s: no memory to unpack it (about 40 KiB are needed)", a->file.path);
    a->inflating = true;
    return SNUG_OK;
}

static snug_status refill(sn_array_file *a, snug_error *err) {
    const int64_t left = a->file.size - a->packed_at;
    const size_t n = left < (int64_t)PACKED_BYTES ? (size_t)left : PACKED_BYTES;
    if (n == 0)
        return sn_fail(err, SNUG_E_FORMAT, "%s is truncated: the packed data end after %lld unpacked bytes",
                       a->file.path, (long long)a->stream_at);
    SNUG_TRY(sn_file_read(&a->file, a->packed_window, n, a->packed_at, err));
    a->packed_at += (int64_t)n;
    a->stream.next_in = a->packed_window;
    a->stream.avail_in = (unsigned)n;
    return SNUG_OK;
}

/* Up to n bytes from the stream; *got < n only at its end. */
static snug_status inflate_some(sn_array_file *a, unsigned char *out, size_t n, size_t *got, snug_error *err) {
    a->stream.next_out = out;
    a->stream.avail_out = (unsigned)n;
    while (a->stream.avail_out > 0) {
        if (a->stream.avail_in == 0)
            SNUG_TRY(refill(a, err));
        const int code = inflate(&a->stream, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            break;
        if (code != Z_OK)
            return sn_fail(err, code == Z_MEM_ERROR ? SNUG_E_MEMORY : SNUG_E_FORMAT,
                           "%s: damaged gzip data near unpacked byte %lld", a->file.path, (long long)a->stream_at);
    }
    *got = n - a->stream.avail_out;
    a->stream_at += (int64_t)*got;
    return SNUG_OK;
}

static snug_status read_packed(sn_array_file *a, unsigned char *out, size_t n, int64_t offset, snug_error *err) {
    size_t got;
    if (!a->inflating || offset < a->stream_at)
        SNUG_TRY(start_inflating(a, err));
    while (a->stream_at < offset) { /* skip through `out`, which is about to be overwritten anyway */
        const int64_t skip = offset - a->stream_at;
        SNUG_TRY(inflate_some(a, out, skip < (int64_t)n ? (size_t)skip : n, &got, err));
        if (got == 0)
            break;
    }
    SNUG_TRY(inflate_some(a, out, n, &got, err));
    if (got < n)
        return sn_fail(err, SNUG_E_FORMAT, "%s is truncated: it ends at unpacked byte %lld, byte %lld is needed",
                       a->file.path, (long long)a->stream_at, (long long)(offset + (int64_t)n));
    return SNUG_OK;
}

/* --- opening ---------------------------------------------------------------------------------------------------------- */

static snug_status read_header(sn_array_file *a, snug_error *err) {
    unsigned char magic[2] = {0, 0};
    size_t n = SN_ARRAY_HEADER_BYTES, data_bytes;
    if (a->file.size >= 2)
        SNUG_TRY(sn_file_read(&a->file, magic, 2, 0, err));
    a->packed = magic[0] == 0x1f && magic[1] == 0x8b;
    if (a->packed) {
        SNUG_TRY(start_inflating(a, err));
        SNUG_TRY(inflate_some(a, a->window, n, &n, err));
    } else {
        n = a->file.size < (int64_t)n ? (size_t)a->file.size : n;
        SNUG_TRY(sn_file_read(&a->file, a->window, n, 0, err));
    }
    SNUG_TRY(sn_array_header_parse(a->file.path, a->window, n, &a->header, err));
    SNUG_TRY(snug_type_bytes(&a->header.type, &data_bytes, err));
    const int64_t have = a->file.size - a->header.data_offset;
    if (!a->packed && (have < 0 || (uint64_t)have != data_bytes))
        return sn_fail(err, SNUG_E_FORMAT, "%s is %s: its header describes %zu bytes of data, %lld are there", a->file.path,
                       have < 0 || (uint64_t)have < data_bytes ? "truncated" : "too long", data_bytes, (long long)have);
    return SNUG_OK;
}

snug_status sn_array_file_open(snug_engine *e, const char *path, sn_array_file **out, snug_error *err) {
    void *memory = NULL, *window = NULL, *packed = NULL;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_array_file), &memory, err));
    sn_array_file *a = memory;
    a->engine = e;
    a->file.fd = -1;
    snug_status status = sn_file_open(&a->file, sn_engine_io(e), path, err);
    if (status == SNUG_OK)
        status = sn_alloc(e, SN_MEM_INPUT, WINDOW_BYTES, &window, err);
    a->window = window;
    if (status == SNUG_OK)
        status = sn_alloc(e, SN_MEM_INPUT, PACKED_BYTES, &packed, err);
    a->packed_window = packed;
    if (status == SNUG_OK)
        status = read_header(a, err);
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

/* --- rows --------------------------------------------------------------------------------------------------------------- */

static void swap_elements(unsigned char *bytes, size_t n, size_t elem) {
    for (size_t i = 0; i < n; i++, bytes += elem)
        for (size_t j = 0; j < elem / 2; j++) {
            const unsigned char t = bytes[j];
            bytes[j] = bytes[elem - 1 - j];
            bytes[elem - 1 - j] = t;
        }
}

snug_status sn_array_file_read(sn_array_file *a, int64_t first_row, int64_t n_rows, const snug_view *dst,
                               snug_error *err) {
    const snug_type *type = &a->header.type;
    const size_t elem = snug_dtype_bytes(type->dtype), to = snug_dtype_bytes(dst->type.dtype);
    const int64_t row = sn_type_span(type, 1, type->rank);
    const size_t count = (size_t)(n_rows * row), chunk = WINDOW_BYTES / elem;
    int64_t at = a->header.data_offset + first_row * row * (int64_t)elem;
    for (size_t done = 0; done < count; done += chunk) {
        const size_t n = count - done < chunk ? count - done : chunk;
        if (a->packed)
            SNUG_TRY(read_packed(a, a->window, n * elem, at, err));
        else
            SNUG_TRY(sn_file_read(&a->file, a->window, n * elem, at, err));
        if (a->header.big_endian)
            swap_elements(a->window, n, elem);
        SNUG_TRY(sn_convert(type->dtype, a->window, dst->type.dtype, (char *)dst->data + done * to, n, err));
        at += (int64_t)(n * elem);
    }
    return SNUG_OK;
}

static snug_status fill_rows(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst, snug_error *err) {
    return sn_array_file_read(ctx, first_row, n_rows, dst, err);
}

static void release_file(void *ctx) {
    sn_array_file_close(ctx);
}

snug_status sn_feed_from_array_file(snug_engine *e, const char *path, snug_feed **out, snug_error *err) {
    sn_array_file *a;
    SNUG_TRY(sn_array_file_open(e, path, &a, err));
    const snug_status status = sn_feed_create(e, &a->header.type, a, fill_rows, release_file, out, err);
    if (status != SNUG_OK)
        sn_array_file_close(a);
    return status;
}
