/* safetensors.h: weights on disk. A file is validated completely before anything is allocated for a
 * tensor; data are read and written through a fixed window, never whole.
 *
 *     sn_safetensors *file;
 *     SNUG_TRY(sn_safetensors_open(e, "w.safetensors", 0, &file, err));
 *     const sn_st_entry *t;
 *     sn_safetensors_find(file, "conv2d/kernel", &t, err);
 *     sn_safetensors_read(file, t, &view, err);      // converts to the view's float dtype
 *     sn_safetensors_close(file); */
#ifndef SN_MODEL_SAFETENSORS_H
#define SN_MODEL_SAFETENSORS_H

#include "memory/engine.h"
#include "tensor/type.h"

typedef struct {
    const char *name;
    snug_type type;
    uint64_t begin; /* in the data part */
    size_t bytes;
} sn_st_entry;

typedef struct sn_safetensors sn_safetensors;

/* SNUG_E_FORMAT names what is wrong and where. most: as of snug_safetensors_open. */
SNUG_CHECKED snug_status sn_safetensors_open(snug_engine *e, const char *path, size_t most,
                                             sn_safetensors **out, snug_error *err);
void sn_safetensors_close(sn_safetensors *s); /* NULL is legal */
size_t sn_safetensors_count(const sn_safetensors *s);
const sn_st_entry *sn_safetensors_at(const sn_safetensors *s, size_t i); /* in order of position */
/* The tensor of that name; else the only one whose path is the same with steps left out
 * ("lstm/kernel" for "lstm/lstm_cell/kernel"). Missing: says what there is. Ambiguous: names
 * two. */
SNUG_CHECKED snug_status sn_safetensors_find(const sn_safetensors *s, const char *name,
                                             const sn_st_entry **out, snug_error *err);
/* Into a view of the same dims. */
SNUG_CHECKED snug_status sn_safetensors_read(sn_safetensors *s, const sn_st_entry *t,
                                             const snug_view *dst, snug_error *err);

typedef struct {
    const char *name;
    snug_view view;
} sn_st_tensor;
/* Writes a temporary file, syncs, renames: PATH is the old file or the whole new one. Names must
 * differ. Same tensors, same bytes. */
SNUG_CHECKED snug_status sn_safetensors_save(snug_engine *e, const char *path,
                                             const sn_st_tensor *tensors, size_t n,
                                             snug_error *err);

#endif
