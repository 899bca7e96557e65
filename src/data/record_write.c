/* record_write.c: TFRecord files, written through a buffer, packed on the way where that is wanted.
 *
 *     record -> [buffer] -> file                     plain
 *     record -> deflate -> [buffer] -> file          gzip, zlib */
#include <snug/data_files.h>

#include "base/file.h"
#include "codec/crc32c.h"
#include "memory/engine.h"

#include <string.h>
#include <zlib.h>

#define BUFFER_BYTES (64u << 10)

struct snug_record_writer {
    snug_engine *engine;
    sn_file file;
    bool packed;
    z_stream stream;
    int64_t at; /* of the next byte of the file */
    size_t n;   /* bytes in the buffer */
    size_t claimed;
    unsigned char buffer[BUFFER_BYTES];
};

#define DEFLATE_BYTES ((size_t)272 << 10) /* that zlib takes for its best compression */

static snug_status begin_packing(snug_record_writer *w, bool gzip, snug_error *err) {
    SNUG_TRY(sn_claim(w->engine, SN_MEM_INPUT, DEFLATE_BYTES, err));
    w->claimed = DEFLATE_BYTES;
    if (deflateInit2(&w->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, (gzip ? 16 : 0) + MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to pack a file of records");
    w->packed = true;
    return SNUG_OK;
}

snug_status snug_record_writer_create(snug_engine *engine, const char *path,
                                      snug_compression compression, snug_record_writer **out,
                                      snug_error *err) {
    SNUG_NEEDS(err, engine && path);
    void *memory;
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_INPUT, sizeof(snug_record_writer), &memory, err));
    snug_record_writer *w = memory;
    w->engine = engine;
    w->file.fd = -1;
    snug_status status = sn_file_create(&w->file, sn_engine_io(engine), path, err);
    if (status == SNUG_OK && compression != SNUG_PLAIN)
        status = begin_packing(w, compression == SNUG_GZIP, err);
    if (status != SNUG_OK) {
        snug_record_writer_destroy(w);
        return status;
    }
    *out = w;
    return SNUG_OK;
}

void snug_record_writer_destroy(snug_record_writer *w) {
    if (!w)
        return;
    if (w->packed)
        deflateEnd(&w->stream);
    sn_unclaim(w->engine, SN_MEM_INPUT, w->claimed);
    sn_file_close(&w->file);
    sn_free(w->engine, SN_MEM_INPUT, w, sizeof *w);
}

static snug_status flush(snug_record_writer *w, snug_error *err) {
    SNUG_TRY(sn_file_write(&w->file, w->buffer, w->n, w->at, err));
    w->at += (int64_t)w->n;
    w->n = 0;
    return SNUG_OK;
}

static snug_status put_plain(snug_record_writer *w, const void *bytes, size_t n, snug_error *err) {
    const unsigned char *from = bytes;
    while (n > 0) {
        const size_t room = BUFFER_BYTES - w->n, here = n < room ? n : room;
        memcpy(w->buffer + w->n, from, here);
        w->n += here;
        from += here;
        n -= here;
        if (w->n == BUFFER_BYTES)
            SNUG_TRY(flush(w, err));
    }
    return SNUG_OK;
}

/* finish: Z_FINISH at the end of the file, else Z_NO_FLUSH. */
static snug_status pack(snug_record_writer *w, const void *bytes, size_t n, int finish,
                        snug_error *err) {
    const unsigned char *from = bytes;
    int code = Z_OK;
    while (n > 0 || (finish == Z_FINISH && code != Z_STREAM_END)) {
        const unsigned here = n < BUFFER_BYTES ? (unsigned)n : BUFFER_BYTES;
        w->stream.next_in = (unsigned char *)(uintptr_t)from;
        w->stream.avail_in = here;
        w->stream.next_out = w->buffer + w->n;
        w->stream.avail_out = (unsigned)(BUFFER_BYTES - w->n);
        code = deflate(&w->stream, finish);
        const unsigned taken = here - w->stream.avail_in;
        if (taken > 0) /* of no bytes there may be no address */
            from += taken;
        n -= taken;
        w->n = BUFFER_BYTES - w->stream.avail_out;
        if (w->n == BUFFER_BYTES)
            SNUG_TRY(flush(w, err));
    }
    return SNUG_OK;
}

static snug_status put(snug_record_writer *w, const void *bytes, size_t n, snug_error *err) {
    return w->packed ? pack(w, bytes, n, Z_NO_FLUSH, err) : put_plain(w, bytes, n, err);
}

snug_status snug_record_write(snug_record_writer *w, const void *bytes, size_t n, snug_error *err) {
    SNUG_NEEDS(err, w && (bytes || n == 0));
    unsigned char head[12];
    const uint64_t length = n;
    memcpy(head, &length, 8);
    const uint32_t head_sum = sn_crc32c_masked(head, 8), sum = sn_crc32c_masked(bytes, n);
    memcpy(head + 8, &head_sum, 4);
    SNUG_TRY(put(w, head, sizeof head, err));
    SNUG_TRY(put(w, bytes, n, err));
    return put(w, &sum, sizeof sum, err);
}

snug_status snug_record_writer_close(snug_record_writer *w, snug_error *err) {
    SNUG_NEEDS(err, w);
    snug_status status = w->packed ? pack(w, NULL, 0, Z_FINISH, err) : SNUG_OK;
    if (status == SNUG_OK)
        status = flush(w, err);
    if (status == SNUG_OK)
        status = sn_file_commit(&w->file, err);
    snug_record_writer_destroy(w);
    return status;
}
