/* source.h: elements that lie elsewhere: a slice of a file, or foreign memory with a release
 * function. Recipes of the kinds FILE and MEMORY (feed.h) stand for a part of one.
 *
 *     sn_source *s;
 *     const sn_file_slice slice = {"weights.bin", 4096, SNUG_F32, 1 << 20};
 *     SNUG_TRY(sn_source_from_file(e, &slice, &s, err));         // opened and measured, not read
 *     const sn_recipe r = sn_source_recipe(s, 1000);             // its elements from 1000 on
 *     status = sn_feed_from_recipe(e, &type, &r, &feed, err);    // the feed holds s, too
 *     sn_source_drop(s);
 *
 * A source is counted: who keeps a recipe of one holds it; with the last drop the file is closed or
 * the memory released, once. Reads may run side by side. */
#ifndef SN_TENSOR_SOURCE_H
#define SN_TENSOR_SOURCE_H

#include "memory/engine.h"
#include "tensor/type.h"

typedef struct sn_source sn_source;

typedef struct {
    const char *path;
    int64_t offset; /* of element 0, in bytes */
    snug_dtype dtype;
    uint64_t count; /* of elements, little endian, side by side */
} sn_file_slice;

/* Only tests open files yet: weights that are read out of their file straight into place are what
 * it is for. Held once. Through the engine's I/O table; SNUG_E_FORMAT when the file is shorter than
 * the slice. */
SNUG_CHECKED snug_status sn_source_from_file(snug_engine *e, const sn_file_slice *slice,
                                             sn_source **out, snug_error *err);
/* Held once. data may be NULL for no elements; it is lent until sn_source_give is called. */
SNUG_CHECKED snug_status sn_source_from_memory(snug_engine *e, const void *data, snug_dtype dtype,
                                               uint64_t count, sn_source **out, snug_error *err);
/* The memory is the source's from now on: the last drop calls release(ctx). release may be NULL. */
void sn_source_give(sn_source *s, void (*release)(void *ctx), void *ctx);

void sn_source_hold(sn_source *s);
void sn_source_drop(sn_source *s); /* NULL is legal in both */

bool sn_source_is_file(const sn_source *s);
uint64_t sn_source_count(const sn_source *s);
/* Elements [first, first + n) where they lie, to be read only; NULL: they lie in a file, are of
 * another dtype, are not aligned as theirs, or are not all there. */
void *sn_source_lend(const sn_source *s, uint64_t first, uint64_t n, snug_dtype dtype);
/* Elements [first, first + n), converted as sn_convert does. After a failure dst holds anything. */
SNUG_CHECKED snug_status sn_source_read(sn_source *s, uint64_t first, size_t n, snug_dtype dtype,
                                        void *dst, snug_error *err);

#endif
