/* model_door.c: files for callers outside the library: one that they write themselves and that
 * appears whole, and the tensors of a safetensors file. */
#include <snug/model.h>

#include "base/file.h"
#include "memory/engine.h"
#include "model/safetensors.h"

struct snug_file {
    snug_engine *engine;
    sn_file file;
    char name[SN_FILE_NAME_BYTES];
};

snug_status snug_file_create(snug_engine *engine, const char *path, snug_file **out,
                             snug_error *err) {
    void *memory;
    if (!engine || !path || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_file_create needs an engine, a path and an out");
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_OTHER, sizeof(snug_file), &memory, err));
    snug_file *f = memory;
    f->engine = engine;
    f->file.fd = -1;
    const snug_status status = sn_file_create(&f->file, sn_engine_io(engine), path, err);
    if (status != SNUG_OK) {
        snug_file_destroy(f);
        return status;
    }
    sn_file_name(&f->file, f->name);
    *out = f;
    return SNUG_OK;
}

const char *snug_file_name(const snug_file *f) {
    return f ? f->name : "";
}

snug_status snug_file_commit(snug_file *f, snug_error *err) {
    if (!f || f->file.fd < 0)
        return sn_fail(err, SNUG_E_INVALID, "there is no file to commit, or it was committed");
    return sn_file_commit(&f->file, err);
}

void snug_file_destroy(snug_file *f) {
    if (!f)
        return;
    sn_file_close(&f->file);
    sn_free(f->engine, SN_MEM_OTHER, f, sizeof *f);
}

/* --- safetensors ------------------------------------------------------------------------------ */
/* The library's own reader under its public name. */
static sn_safetensors *inner(const snug_safetensors *file) {
    return (sn_safetensors *)(uintptr_t)file;
}

snug_status snug_safetensors_open(snug_engine *engine, const char *path, size_t most,
                                  snug_safetensors **out, snug_error *err) {
    sn_safetensors *made;
    if (!engine || !path || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_safetensors_open needs an engine, a path and an out");
    SNUG_TRY(sn_safetensors_open(engine, path, most, &made, err));
    *out = (snug_safetensors *)made;
    return SNUG_OK;
}

size_t snug_safetensors_count(const snug_safetensors *file) {
    return file ? sn_safetensors_count(inner(file)) : 0;
}

static snug_status check_index(const snug_safetensors *file, size_t i, snug_error *err) {
    const size_t n = snug_safetensors_count(file);
    if (file && i < n)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "tensor %zu of a file of %zu", i, n);
}

snug_status snug_safetensors_at(const snug_safetensors *file, size_t i, const char **name,
                                snug_type *type, snug_error *err) {
    SNUG_TRY(check_index(file, i, err));
    const sn_st_entry *t = sn_safetensors_at(inner(file), i);
    if (name)
        *name = t->name;
    if (type)
        *type = t->type;
    return SNUG_OK;
}

snug_status snug_safetensors_read(snug_safetensors *file, size_t i, const snug_view *to,
                                  snug_error *err) {
    SNUG_TRY(check_index(file, i, err));
    if (!to || (!to->data && sn_safetensors_at(inner(file), i)->bytes > 0))
        return sn_fail(err, SNUG_E_INVALID, "snug_safetensors_read needs a view with memory");
    return sn_safetensors_read(inner(file), sn_safetensors_at(inner(file), i), to, err);
}

void snug_safetensors_close(snug_safetensors *file) {
    sn_safetensors_close(inner(file));
}
