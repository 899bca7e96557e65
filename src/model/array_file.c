/* array_file.c: rows of an array file through one window of 256 KiB; elements that need no change
 * go straight to the caller.
 *
 *     file --pread--> [gzip --inflate-->] window --swap, convert--> the caller's view
 *
 * A plain file can be read anywhere. A .gz file is a stream: it is read forward, and from the start
 * again when row 0 is asked for (the next epoch). When rows are asked for in another order
 * (shuffling), it is unpacked once into a temporary file that has no name any more and goes away
 * with the reader.
 *
 * Invariants:
 * 1. A plain file is exactly as long as its header says, from opening on. A packed one was found to
 *    be, with the right checksum, when its last row was read.
 * 2. After an error in the stream the next read starts it anew: a fault that passes leaves no wrong
 *    rows. */
#include "model/array_file.h"

#include "codec/gzip.h"
#include "model/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_BYTES        (256u << 10)
#define MOST_UNPACKED_BYTES ((int64_t)4 << 30) /* of disk, taken without asking */

struct sn_array_file {
    snug_engine *engine;
    sn_file file;
    sn_array_header header;
    int64_t data_end; /* behind the last element, in the unpacked stream */
    int64_t start,
        end;       /* of a plain file the part that is the array: a member of an .npz, or all */
    bool packed;   /* the file is; even when it was unpacked since */
    sn_gzip *gzip; /* while reading from the packed file; else NULL */
    unsigned char *window;
};

/* --- packed files ----------------------------------------------------------------------------- */

static snug_status wrong_length(const sn_array_file *a, int64_t have, snug_error *err) {
    const int64_t want = a->data_end - a->header.data_offset;
    const bool more = have > want && a->packed; /* how many more is not known */
    return sn_fail(err, SNUG_E_FORMAT,
                   "%s is %s: its header describes %lld bytes of data, %s%lld are there",
                   a->file.path, have < want ? "truncated" : "too long", (long long)want,
                   more ? "more than " : "", (long long)(more ? want : have));
}

/* Having read the last element: the stream must end here, which also compares its checksum. */
static snug_status expect_end(sn_array_file *a, snug_error *err) {
    unsigned char next;
    size_t got;
    SNUG_TRY(sn_gzip_read(a->gzip, &next, 1, &got, err));
    return got == 0 ? SNUG_OK : wrong_length(a, sn_gzip_at(a->gzip) - a->header.data_offset, err);
}

/* The next n bytes of the stream into the window. */
static snug_status read_next(sn_array_file *a, size_t n, snug_error *err) {
    size_t got;
    SNUG_TRY(sn_gzip_read(a->gzip, a->window, n, &got, err));
    if (got < n)
        return wrong_length(a, sn_gzip_at(a->gzip) - a->header.data_offset, err);
    return sn_gzip_at(a->gzip) == a->data_end ? expect_end(a, err) : SNUG_OK;
}

/* Forward from where the stream is. */
static snug_status read_packed(sn_array_file *a, size_t n, int64_t offset, snug_error *err) {
    while (sn_gzip_at(a->gzip) < offset) {
        const int64_t skip = offset - sn_gzip_at(a->gzip);
        SNUG_TRY(read_next(a, skip < (int64_t)WINDOW_BYTES ? (size_t)skip : WINDOW_BYTES, err));
    }
    return read_next(a, n, err);
}

/* --- a temporary file with the unpacked stream ------------------------------------------------ */

/* A file without a name: it is gone when it is closed, whatever happens. */
static snug_status open_nameless(const sn_array_file *a, sn_file *out, snug_error *err) {
    const snug_io *io = sn_engine_io(a->engine);
    const char *folder = getenv("TMPDIR");
    char path[512];
    int fd = -EEXIST;
    for (int i = 0; fd == -EEXIST && i < 100; i++) {
        snprintf(path, sizeof path, "%s/snug-%ld-%d.tmp", folder ? folder : "/tmp", (long)getpid(),
                 i);
        fd = io->open(io->ctx, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (fd < 0) {
        char reason[128];
        return sn_fail_by(
            err, SNUG_E_IO, sn_file_cause(-fd),
            "%s is packed and wanted in another order, and %s cannot be made to unpack "
            "it: %s; set TMPDIR, or unpack it with gunzip",
            a->file.path, path, strerror_r(-fd, reason, sizeof reason));
    }
    (void)io->unlink(io->ctx, path);
    *out = (sn_file){.io = io, .fd = fd, .size = a->data_end};
    memcpy(out->path, path, sizeof path);
    return SNUG_OK;
}

static snug_status copy_unpacked(sn_array_file *a, sn_file *to, snug_error *err) {
    SNUG_TRY(sn_gzip_rewind(a->gzip, err));
    for (int64_t at = 0; at < a->data_end;) {
        const int64_t left = a->data_end - at;
        const size_t n = left < (int64_t)WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        SNUG_TRY(read_next(a, n, err));
        SNUG_TRY(sn_file_write(to, a->window, n, at, err));
        at += (int64_t)n;
    }
    return SNUG_OK;
}

/* Afterwards the file is a plain one. */
static snug_status unpack(sn_array_file *a, snug_error *err) {
    sn_file unpacked = {.fd = -1};
    if (a->data_end > MOST_UNPACKED_BYTES)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "%s is packed, has %lld bytes unpacked, and is wanted in another order; "
                       "unpack it with gunzip",
                       a->file.path, (long long)a->data_end);
    SNUG_TRY(open_nameless(a, &unpacked, err));
    const snug_status status = copy_unpacked(a, &unpacked, err);
    if (status != SNUG_OK) {
        sn_file_close(&unpacked);
        return status;
    }
    sn_gzip_close(a->gzip);
    a->gzip = NULL;
    memcpy(unpacked.path, a->file.path, sizeof unpacked.path); /* which messages are to name */
    sn_file_close(&a->file);
    a->file = unpacked;
    return SNUG_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The first bytes of the unpacked file into the window. */
static snug_status read_start(sn_array_file *a, size_t *n, snug_error *err) {
    const int64_t size = a->end - a->start;
    *n = size < SN_ARRAY_HEADER_BYTES ? (size_t)size : SN_ARRAY_HEADER_BYTES;
    SNUG_TRY(sn_file_read(&a->file, a->window, *n, a->start, err));
    a->packed = sn_gzip_looks_like(a->window, *n);
    if (!a->packed)
        return SNUG_OK;
    SNUG_TRY(sn_gzip_open(a->engine, &a->file, &a->gzip, err));
    return sn_gzip_read(a->gzip, a->window, SN_ARRAY_HEADER_BYTES, n, err);
}

/* Of a packed file the whole length is known only when it is short, and that it is too short when
 * no packed bytes could make so many; else reading the last row tells. */
static snug_status check_length(const sn_array_file *a, snug_error *err) {
    const int64_t end = a->packed ? sn_gzip_at(a->gzip) : a->end;
    const bool whole = !a->packed || sn_gzip_ended(a->gzip);
    if (end > a->data_end || (whole && end < a->data_end))
        return wrong_length(a, end - a->header.data_offset, err);
    if (a->packed && sn_gzip_most_left(a->gzip) < a->data_end - end)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s is truncated: its header describes %lld bytes of data, its %lld packed "
                       "ones unpack to %lld at most",
                       a->file.path, (long long)(a->data_end - a->header.data_offset),
                       (long long)(a->end - a->start),
                       (long long)(sn_gzip_most_left(a->gzip) + end - a->header.data_offset));
    return SNUG_OK;
}

/* "FILE.npz:NAME" is a part of a file. */
static snug_status open_part(sn_array_file *a, const char *path, snug_error *err) {
    char file[1024];
    const char *colon = sn_npz_colon(path);
    if (!colon) {
        SNUG_TRY(sn_file_open(&a->file, sn_engine_io(a->engine), path, err));
        a->end = a->file.size;
        return SNUG_OK;
    }
    const size_t n = (size_t)(colon - path);
    if (n >= sizeof file)
        return sn_fail(err, SNUG_E_INVALID, "a path of %zu bytes is too long", n);
    memcpy(file, path, n);
    file[n] = 0;
    SNUG_TRY(sn_file_open(&a->file, sn_engine_io(a->engine), file, err));
    return sn_npz_find(&a->file, colon + 1, &a->start, &a->end, err);
}

static snug_status open_array(sn_array_file *a, const char *path, snug_error *err) {
    void *memory;
    size_t n, data_bytes;
    SNUG_TRY(open_part(a, path, err));
    SNUG_TRY(sn_alloc(a->engine, SN_MEM_INPUT, WINDOW_BYTES, &memory, err));
    a->window = memory;
    SNUG_TRY(read_start(a, &n, err));
    SNUG_TRY(sn_array_header_parse(a->file.path, a->window, n, &a->header, err));
    SNUG_TRY(snug_type_bytes(&a->header.type, &data_bytes, err));
    a->header.data_offset += a->start;
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
    sn_gzip_close(a->gzip);
    sn_file_close(&a->file);
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

/* A packed file that must go back: to its first row by reading it anew, else by unpacking it. */
static snug_status go_back(sn_array_file *a, int64_t offset, snug_error *err) {
    return offset == a->header.data_offset ? sn_gzip_rewind(a->gzip, err) : unpack(a, err);
}

snug_status sn_array_file_read(sn_array_file *a, int64_t first_row, int64_t n_rows,
                               const snug_view *dst, snug_error *err) {
    const snug_type *type = &a->header.type;
    const size_t elem = snug_dtype_bytes(type->dtype), to = snug_dtype_bytes(dst->type.dtype);
    const int64_t row = sn_type_span(type, 1, type->rank);
    const size_t count = (size_t)(n_rows * row), chunk = WINDOW_BYTES / elem;
    int64_t at = a->header.data_offset + first_row * row * (int64_t)elem;
    if (a->gzip && count > 0 && at < sn_gzip_at(a->gzip))
        SNUG_TRY(go_back(a, at, err));
    if (!a->gzip && !a->header.big_endian && dst->type.dtype == type->dtype)
        return sn_file_read(&a->file, dst->data, count * elem, at, err);
    for (size_t done = 0; done < count; done += chunk) {
        const size_t n = count - done < chunk ? count - done : chunk;
        if (a->gzip)
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
