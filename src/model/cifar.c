/* cifar.c: rows of CIFAR's binary files, read a record at a time (cifar.h). */
#include "model/cifar.h"

#include "base/file.h"
#include "memory/engine.h"

#include <string.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE };

typedef struct {
    const char *name;
    int labels, label; /* bytes before the pixels; which of them is given, -1: the picture */
} cifar_kind;

static const cifar_kind kinds[] = {{"cifar10:", 1, -1},
                                   {"cifar10-labels:", 1, 0},
                                   {"cifar100:", 2, -1},
                                   {"cifar100-labels:", 2, 1},
                                   {"cifar100-coarse:", 2, 0}};

typedef struct {
    snug_engine *engine;
    const cifar_kind *kind;
    sn_file file;
    unsigned char record[2 + PIXELS], picture[PIXELS];
} cifar_file;

static const cifar_kind *find_kind(const char *source) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(source, kinds[i].name, strlen(kinds[i].name)) == 0)
            return &kinds[i];
    return NULL;
}

bool sn_cifar_is(const char *source) {
    return find_kind(source) != NULL;
}

/* Planes become pixels. */
static void interleave(const unsigned char *planes, unsigned char *pixels) {
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++)
            pixels[3 * i + c] = planes[c * PLANE + i];
}

static snug_status fill_rows(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                             snug_error *err) {
    cifar_file *f = ctx;
    const size_t bytes = (size_t)f->kind->labels + PIXELS, to = snug_dtype_bytes(dst->type.dtype);
    const bool label = f->kind->label >= 0;
    const size_t n = label ? 1 : PIXELS;
    for (int64_t i = 0; i < n_rows; i++) {
        SNUG_TRY(sn_file_read(&f->file, f->record, label ? 2 : bytes,
                              (first_row + i) * (int64_t)bytes, err));
        if (!label)
            interleave(f->record + f->kind->labels, f->picture);
        const void *from = label ? f->record + f->kind->label : f->picture;
        const snug_status status = sn_convert(SNUG_U8, from, dst->type.dtype,
                                              (char *)dst->data + (size_t)i * n * to, n, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "%s", f->file.path);
    }
    return SNUG_OK;
}

static void release(void *ctx) {
    cifar_file *f = ctx;
    sn_file_close(&f->file);
    sn_free(f->engine, SN_MEM_INPUT, f, sizeof *f);
}

static snug_status open_records(cifar_file *f, const char *path, snug_type *type, snug_error *err) {
    const int64_t bytes = f->kind->labels + PIXELS;
    SNUG_TRY(sn_file_open(&f->file, sn_engine_io(f->engine), path, err));
    if (f->file.size == 0 || f->file.size % bytes != 0)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s has %lld bytes, no whole number of records of %lld: truncated, or not "
                       "CIFAR-%s's binary version",
                       f->file.path, (long long)f->file.size, (long long)bytes,
                       f->kind->labels == 1 ? "10" : "100");
    *type = (snug_type){.dtype = SNUG_U8,
                        .rank = f->kind->label < 0 ? 4 : 1,
                        .dims = {f->file.size / bytes, SIDE, SIDE, 3}};
    return SNUG_OK;
}

snug_status sn_feed_from_cifar(snug_engine *e, const char *source, snug_feed **out,
                               snug_error *err) {
    void *memory;
    snug_type type;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(cifar_file), &memory, err));
    cifar_file *f = memory;
    f->engine = e;
    f->file.fd = -1;
    f->kind = find_kind(source);
    snug_status status = open_records(f, source + strlen(f->kind->name), &type, err);
    if (status == SNUG_OK)
        status = sn_feed_create(e, &type, f, fill_rows, release, out, err);
    if (status != SNUG_OK)
        release(f);
    return status;
}
