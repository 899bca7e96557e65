/* spill.c: a scratch file, with a stage for each direction for what does not lie as the disk wants
 * it.
 *
 *     file  |...|[block][block][block]|..|     in blocks of the file
 *     data  |...|[block][block][block]|..|     the middle goes straight where it is at a block in
 *                                              memory, too, else by the stage
 *
 * Invariants:
 * 1. Each call of the table starts at a multiple of SN_FILE_BLOCK in file and memory and is a
 *    multiple of it long, whether the file is direct or not: one path, tested everywhere.
 * 2. A file that is not direct holds at most one piece in the system's cache: every piece is
 *    forgotten before the next. */
#include "memory/spill.h"

#include "base/size.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* A disk is at its best speed with pieces of this size; a cache must not grow so large. */
#define DIRECT_PIECE_BYTES ((size_t)8 << 20)

typedef struct {
    pthread_mutex_t mutex;
    bool made;
    sn_block stage;
} direction;

struct sn_spill {
    snug_engine *engine;
    sn_file file;
    pid_t process; /* which made it */
    direction in, out;
};

/* A part of a transfer: n bytes, `head` bytes behind the start of the first of the blocks they lie
 * in, which are `padded` bytes. */
typedef struct {
    size_t n, head, padded;
    bool straight;
} piece;

static snug_status open_direction(snug_engine *e, direction *d, const char *owner,
                                  snug_error *err) {
    if (pthread_mutex_init(&d->mutex, NULL) != 0)
        return sn_fail(err, SNUG_E_MEMORY, "no mutex for the spill file; free memory");
    d->made = true;
    return sn_block_init(e, SN_MEM_OTHER, owner, SN_SPILL_STAGE_BYTES,
                         &(sn_block_options){.populate = true}, &d->stage, err);
}

static void close_direction(direction *d) {
    sn_block_clear(&d->stage);
    if (d->made)
        pthread_mutex_destroy(&d->mutex);
}

/* In whole blocks, at least one. */
static snug_status file_bytes(size_t bytes, int64_t *out, snug_error *err) {
    size_t whole = 0;
    if (!sn_size_align(bytes > 0 ? bytes : 1, SN_FILE_BLOCK, &whole) || whole > INT64_MAX)
        return sn_fail(err, SNUG_E_OVERFLOW, "no file holds the %zu bytes to spill", bytes);
    *out = (int64_t)whole;
    return SNUG_OK;
}

snug_status sn_spill_create(snug_engine *e, const char *folder, size_t bytes, sn_spill **out,
                            snug_error *err) {
    int64_t whole = 0;
    void *block;
    SNUG_TRY(file_bytes(bytes, &whole, err));
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_OTHER, sizeof(sn_spill), &block, err));
    sn_spill *s = block;
    s->engine = e;
    s->process = getpid();
    snug_status status = sn_file_scratch(&s->file, sn_engine_io(e), folder, whole, err);
    if (status == SNUG_OK)
        status = open_direction(e, &s->in, "spill file, in", err);
    if (status == SNUG_OK)
        status = open_direction(e, &s->out, "spill file, out", err);
    if (status == SNUG_OK)
        *out = s;
    else
        sn_spill_destroy(s);
    return status;
}

void sn_spill_destroy(sn_spill *s) {
    if (!s)
        return;
    sn_file_close(&s->file);
    close_direction(&s->in);
    close_direction(&s->out);
    sn_free(s->engine, SN_MEM_OTHER, s, sizeof *s);
}

size_t sn_spill_bytes(const sn_spill *s) {
    return (size_t)s->file.size;
}

bool sn_spill_is_direct(const sn_spill *s) {
    return s->file.direct;
}

snug_status sn_spill_grow(sn_spill *s, size_t bytes, snug_error *err) {
    int64_t whole = 0;
    SNUG_TRY(file_bytes(bytes, &whole, err));
    return sn_file_reserve(&s->file, whole, err);
}

static size_t at_most(size_t a, size_t limit) {
    return a < limit ? a : limit;
}

/* The next piece of `left` bytes at `at`, to lie at `offset` of the file. */
static piece next_piece(const sn_spill *s, const void *at, size_t left, size_t offset) {
    const size_t head = offset % SN_FILE_BLOCK, whole = left - left % SN_FILE_BLOCK;
    if (head > 0) {
        const size_t n = at_most(left, SN_FILE_BLOCK - head);
        return (piece){.n = n, .head = head, .padded = SN_FILE_BLOCK};
    }
    if (whole > 0 && (uintptr_t)at % SN_FILE_BLOCK == 0) {
        const size_t n = at_most(whole, s->file.direct ? DIRECT_PIECE_BYTES : SN_SPILL_STAGE_BYTES);
        return (piece){.n = n, .padded = n, .straight = true};
    }
    const size_t n = at_most(whole > 0 ? whole : left, SN_SPILL_STAGE_BYTES);
    return (piece){.n = n, .padded = (n + SN_FILE_BLOCK - 1) / SN_FILE_BLOCK * SN_FILE_BLOCK};
}

/* Only a part of one block has neighbours: all other pieces are in whole blocks. */
static snug_status write_piece(sn_spill *s, const piece *p, const void *from, size_t offset,
                               snug_error *err) {
    unsigned char *stage = s->out.stage.data;
    const int64_t at = (int64_t)(offset - p->head);
    if (p->n < p->padded)
        SNUG_TRY(sn_file_read(&s->file, stage, p->padded, at, err));
    if (!p->straight)
        memcpy(stage + p->head, from, p->n);
    SNUG_TRY(sn_file_write(&s->file, p->straight ? from : stage, p->padded, at, err));
    return sn_file_forget(&s->file, p->padded, at, err);
}

static snug_status read_piece(sn_spill *s, const piece *p, void *to, size_t offset,
                              snug_error *err) {
    unsigned char *stage = s->in.stage.data;
    const int64_t at = (int64_t)(offset - p->head);
    SNUG_TRY(sn_file_read(&s->file, p->straight ? to : stage, p->padded, at, err));
    if (!p->straight)
        memcpy(to, stage + p->head, p->n);
    return sn_file_forget(&s->file, p->padded, at, err);
}

static snug_status check_transfer(const sn_spill *s, size_t n, size_t offset, snug_error *err) {
    assert(offset <= sn_spill_bytes(s) && n <= sn_spill_bytes(s) - offset);
    (void)n, (void)offset;
    if (s->process != getpid())
        return sn_fail(
            err, SNUG_E_INVALID,
            "the spill file belongs to process %ld; build the model anew in the child of "
            "a fork",
            (long)s->process);
    return SNUG_OK;
}

snug_status sn_spill_write(sn_spill *s, const void *data, size_t n, size_t offset,
                           snug_error *err) {
    SNUG_TRY(check_transfer(s, n, offset, err));
    snug_status status = SNUG_OK;
    pthread_mutex_lock(&s->out.mutex);
    for (size_t done = 0; status == SNUG_OK && done < n;) {
        const unsigned char *from = (const unsigned char *)data + done;
        const piece p = next_piece(s, from, n - done, offset + done);
        status = write_piece(s, &p, from, offset + done, err);
        done += p.n;
    }
    pthread_mutex_unlock(&s->out.mutex);
    return status;
}

snug_status sn_spill_read(sn_spill *s, void *data, size_t n, size_t offset, snug_error *err) {
    SNUG_TRY(check_transfer(s, n, offset, err));
    snug_status status = SNUG_OK;
    pthread_mutex_lock(&s->in.mutex);
    for (size_t done = 0; status == SNUG_OK && done < n;) {
        unsigned char *to = (unsigned char *)data + done;
        const piece p = next_piece(s, to, n - done, offset + done);
        status = read_piece(s, &p, to, offset + done, err);
        done += p.n;
    }
    pthread_mutex_unlock(&s->in.mutex);
    return status;
}
