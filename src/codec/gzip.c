/* gzip.c: zlib over the file table. A file is one or more members (`cat a.gz b.gz`); each ends with
 * a checksum, which zlib compares.
 *
 * Invariants:
 * 1. inflating: zlib's stream is open and its next byte is number `at`; an error closes it, and the
 *    next read starts anew.
 * 2. zlib's own memory (about 40 KiB) comes from the engine: it is on the ledger. */
#include "codec/gzip.h"

#include <string.h>
#include <zlib.h>

#define PACKED_BYTES (64u << 10)
/* Two bits, the least that a match takes, make 258 bytes, the most that it makes. */
#define MOST_PER_BYTE 1032
/* Bytes that zlib has taken and not used yet, and of a match what is to come, in packed ones. */
#define UNDER_WAY 16

struct sn_gzip {
    snug_engine *engine;
    sn_file *file;
    z_stream stream;
    bool inflating, ended;
    bool zlib;         /* one stream with zlib's header */
    int64_t packed_at; /* next byte of the file */
    int64_t at;        /* next byte of the unpacked stream */
    unsigned char packed[PACKED_BYTES];
};

bool sn_gzip_looks_like(const unsigned char *bytes, size_t n) {
    return n >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

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

static void stop(sn_gzip *g) {
    if (g->inflating)
        inflateEnd(&g->stream);
    g->inflating = g->ended = false;
    g->packed_at = g->at = 0;
}

static snug_status no_memory(const sn_gzip *g, snug_error *err) {
    return sn_fail(err, SNUG_E_MEMORY, "%s: no memory to unpack it (about 40 KiB are needed)",
                   g->file->path);
}

snug_status sn_gzip_rewind(sn_gzip *g, snug_error *err) {
    stop(g);
    g->stream = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = g->engine};
    if (inflateInit2(&g->stream, g->zlib ? MAX_WBITS : 16 + MAX_WBITS) != Z_OK)
        return no_memory(g, err);
    g->inflating = true;
    return SNUG_OK;
}

static snug_status refill(sn_gzip *g, snug_error *err) {
    const int64_t left = g->file->size - g->packed_at;
    const size_t n = left < (int64_t)PACKED_BYTES ? (size_t)left : PACKED_BYTES;
    if (n == 0)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s is truncated: its gzip data stop in the middle, at byte %lld",
                       g->file->path, (long long)g->file->size);
    SNUG_TRY(sn_file_read(g->file, g->packed, n, g->packed_at, err));
    g->packed_at += (int64_t)n;
    g->stream.next_in = g->packed;
    g->stream.avail_in = (unsigned)n;
    return SNUG_OK;
}

/* Behind a member: the end of the file, or another member. */
static snug_status next_member(sn_gzip *g, snug_error *err) {
    if (g->stream.avail_in == 0 && g->packed_at == g->file->size) {
        g->ended = true;
        return SNUG_OK;
    }
    if (g->stream.avail_in == 0)
        SNUG_TRY(refill(g, err));
    if (g->zlib || *g->stream.next_in != 0x1f)
        return sn_fail(err, SNUG_E_FORMAT, "%s has bytes behind its gzip data, from byte %lld on",
                       g->file->path, (long long)(g->packed_at - (int64_t)g->stream.avail_in));
    (void)inflateReset(&g->stream); /* fails on a broken stream object only */
    return SNUG_OK;
}

static snug_status inflate_loop(sn_gzip *g, snug_error *err) {
    while (!g->ended && g->stream.avail_out > 0) {
        if (g->stream.avail_in == 0)
            SNUG_TRY(refill(g, err));
        const int code = inflate(&g->stream, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            SNUG_TRY(next_member(g, err));
        else if (code == Z_MEM_ERROR)
            return no_memory(g, err);
        else if (code != Z_OK)
            return sn_fail(err, SNUG_E_FORMAT,
                           "%s: damaged gzip data before byte %lld; get a whole copy",
                           g->file->path, (long long)(g->packed_at - (int64_t)g->stream.avail_in));
    }
    return SNUG_OK;
}

snug_status sn_gzip_read(sn_gzip *g, void *out, size_t n, size_t *got, snug_error *err) {
    if (!g->inflating)
        SNUG_TRY(sn_gzip_rewind(g, err));
    g->stream.next_out = out;
    g->stream.avail_out = (unsigned)n;
    const snug_status status = inflate_loop(g, err);
    if (status != SNUG_OK) {
        stop(g);
        return status;
    }
    *got = n - g->stream.avail_out;
    g->at += (int64_t)*got;
    return SNUG_OK;
}

snug_status sn_gzip_open(snug_engine *e, sn_file *file, sn_gzip **out, snug_error *err) {
    void *memory;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_gzip), &memory, err));
    sn_gzip *g = memory;
    g->engine = e;
    g->file = file;
    *out = g;
    return SNUG_OK;
}

snug_status sn_zlib_open(snug_engine *e, sn_file *file, sn_gzip **out, snug_error *err) {
    SNUG_TRY(sn_gzip_open(e, file, out, err));
    (*out)->zlib = true;
    return SNUG_OK;
}

void sn_gzip_close(sn_gzip *g) {
    if (!g)
        return;
    stop(g);
    sn_free(g->engine, SN_MEM_INPUT, g, sizeof *g);
}

int64_t sn_gzip_at(const sn_gzip *g) {
    return g->at;
}

int64_t sn_gzip_most_left(const sn_gzip *g) {
    const int64_t read = g->inflating ? g->packed_at - (int64_t)g->stream.avail_in : 0;
    const int64_t packed = g->file->size - read + UNDER_WAY;
    if (g->ended)
        return 0;
    return packed <= INT64_MAX / MOST_PER_BYTE ? packed * MOST_PER_BYTE : INT64_MAX;
}

bool sn_gzip_ended(const sn_gzip *g) {
    return g->ended;
}
