/* text_file.c: files that are read whole, because their readers go to and fro in the text. */
#include "model/text_file.h"

#include "base/file.h"

#include <string.h>

#define MAX_BYTES (64 << 20)

snug_status sn_text_file_read(snug_engine *e, const char *path, const char *what,
                              sn_category category, sn_text_file *out, snug_error *err) {
    sn_file f = {.fd = -1};
    void *text = NULL;
    SNUG_TRY(sn_file_open(&f, sn_engine_io(e), path, err));
    const size_t n = (size_t)f.size;
    snug_status status =
        f.size > MAX_BYTES
            ? sn_fail(err, SNUG_E_FORMAT, "%s has %zu bytes; %s has at most 64 MiB", path, n, what)
            : sn_alloc_zero(e, category, n + 1, &text, err);
    if (status == SNUG_OK)
        status = sn_file_read(&f, text, n, 0, err);
    sn_file_close(&f);
    if (status == SNUG_OK)
        *out = (sn_text_file){e, category, text, n};
    else
        sn_free(e, category, text, n + 1);
    return status;
}

snug_status sn_text_file_check(const sn_text_file *f, const char *path, snug_error *err) {
    const char *zero = memchr(f->text, 0, f->length);
    if (!zero)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_FORMAT, "%s has a zero byte at %zu, so it is no text", path,
                   (size_t)(zero - f->text));
}

void sn_text_file_free(sn_text_file *f) {
    if (f->text)
        sn_free(f->engine, f->category, f->text, f->length + 1);
    f->text = NULL;
}
