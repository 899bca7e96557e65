/* input.c: files read from front to back through a window (input.h).
 *
 * Invariants:
 * 1. window[first, end) are the next bytes; `at` is the number of the first of them.
 * 2. What is asked for in one piece and larger than the window goes past it. */
#include "data/input.h"

#include "base/file.h"
#include "codec/gzip.h"

#include <string.h>

#define WINDOW_BYTES (128u << 10)

struct sn_input {
    snug_engine *engine;
    sn_file file;
    sn_gzip *gzip; /* NULL: plain */
    int64_t at, file_at;
    size_t first, end;
    char window[WINDOW_BYTES];
};

snug_status sn_input_open(snug_engine *e, const char *path, snug_compression packed, sn_input **out,
                          snug_error *err) {
    void *memory;
    SNUG_TRY(sn_alloc(e, SN_MEM_INPUT, sizeof(sn_input), &memory, err));
    sn_input *in = memory;
    memset(in, 0, offsetof(sn_input, window));
    in->engine = e;
    snug_status status = sn_file_open(&in->file, sn_engine_io(e), path, err);
    if (status == SNUG_OK && packed == SNUG_GZIP)
        status = sn_gzip_open(e, &in->file, &in->gzip, err);
    else if (status == SNUG_OK && packed == SNUG_ZLIB)
        status = sn_zlib_open(e, &in->file, &in->gzip, err);
    if (status != SNUG_OK) {
        sn_input_close(in);
        return status;
    }
    *out = in;
    return SNUG_OK;
}

void sn_input_close(sn_input *in) {
    if (!in)
        return;
    sn_gzip_close(in->gzip);
    sn_file_close(&in->file);
    sn_free(in->engine, SN_MEM_INPUT, in, sizeof *in);
}

/* Up to n bytes from the file. */
static snug_status fetch(sn_input *in, void *to, size_t n, size_t *got, snug_error *err) {
    /* No stream at all is an empty file, too. */
    if (in->gzip && (in->file.size == 0 || sn_gzip_ended(in->gzip))) {
        *got = 0;
        return SNUG_OK;
    }
    if (in->gzip)
        return sn_gzip_read(in->gzip, to, n, got, err);
    const int64_t left = in->file.size - in->file_at;
    const size_t here = left < (int64_t)n ? (size_t)left : n;
    if (here > 0)
        SNUG_TRY(sn_file_read(&in->file, to, here, in->file_at, err));
    in->file_at += (int64_t)here;
    *got = here;
    return SNUG_OK;
}

snug_status sn_input_look(sn_input *in, const char **bytes, size_t *n, snug_error *err) {
    if (in->first == in->end) {
        size_t got;
        SNUG_TRY(fetch(in, in->window, WINDOW_BYTES, &got, err));
        in->first = 0;
        in->end = got;
    }
    *bytes = in->window + in->first;
    *n = in->end - in->first;
    return SNUG_OK;
}

void sn_input_take(sn_input *in, size_t n) {
    in->first += n;
    in->at += (int64_t)n;
}

snug_status sn_input_read(sn_input *in, void *to, size_t n, size_t *got, snug_error *err) {
    size_t done = 0;
    while (done < n) {
        size_t here = in->end - in->first;
        if (here == 0 && n - done >= WINDOW_BYTES) {
            SNUG_TRY(fetch(in, (char *)to + done, n - done, &here, err));
            in->at += (int64_t)here;
            if (here == 0)
                break;
            done += here;
            continue;
        }
        const char *bytes;
        SNUG_TRY(sn_input_look(in, &bytes, &here, err));
        if (here == 0)
            break;
        here = here < n - done ? here : n - done;
        memcpy((char *)to + done, bytes, here);
        sn_input_take(in, here);
        done += here;
    }
    *got = done;
    return SNUG_OK;
}

bool sn_input_skip(sn_input *in, int64_t n) {
    const int64_t here = (int64_t)(in->end - in->first);
    if (n <= here) {
        sn_input_take(in, (size_t)n);
        return true;
    }
    if (in->gzip || n > sn_input_left(in))
        return false;
    in->file_at += n - here;
    in->first = in->end = 0;
    in->at += n;
    return true;
}

const char *sn_input_path(const sn_input *in) {
    return in->file.path;
}

int64_t sn_input_at(const sn_input *in) {
    return in->at;
}

int64_t sn_input_left(const sn_input *in) {
    return in->gzip ? -1 : in->file.size - in->at;
}

int64_t sn_input_most(const sn_input *in) {
    const int64_t here = (int64_t)(in->end - in->first), most = sn_input_left(in);
    if (most >= 0)
        return most;
    const int64_t left = sn_gzip_most_left(in->gzip);
    return left <= INT64_MAX - here ? left + here : INT64_MAX;
}
