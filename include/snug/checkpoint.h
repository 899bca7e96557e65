/* checkpoint.h: what a run needs to go on, in one file: arrays by name, each with a checksum.
 *
 *     snug_checkpoint_writer *w;
 *     snug_checkpoint_create(engine, "run.ckpt", &w, &err);
 *     snug_checkpoint_begin(w, "dense/kernel", &type, &err);
 *     snug_checkpoint_append(w, bytes, n, &err);       // as often as wanted, until it is full
 *     snug_checkpoint_commit(w, &err);                 // only now the file has its name
 *     snug_checkpoint_writer_destroy(w);
 *
 *     snug_checkpoint *c;
 *     snug_checkpoint_open(engine, "run.ckpt", &c, &err);      // checked to its last byte
 *     snug_checkpoint_find(c, "dense/kernel", &i, &err);
 *     snug_checkpoint_read(c, i, &view, &err);
 *     snug_checkpoint_close(c);
 *
 * The file holds the arrays' bytes in the order they were given, little-endian, each at a multiple
 * of 64; their names, types, places and checksums behind them; a footer that says where those are.
 * It is written under a name of its own, synced and renamed: one moment, or another, never both. */
#ifndef SNUG_CHECKPOINT_H
#define SNUG_CHECKPOINT_H

#include <snug/engine.h>
#include <snug/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_checkpoint_writer snug_checkpoint_writer;
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_create(snug_engine *engine, const char *path,
                                                         snug_checkpoint_writer **out,
                                                         snug_error *err);
/* The next array. Names have 1 to 1,000 letters, and differ. SNUG_E_INVALID: the one before is not
 * full. */
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_begin(snug_checkpoint_writer *w, const char *name,
                                                        const snug_type *type, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_append(snug_checkpoint_writer *w,
                                                         const void *bytes, size_t n,
                                                         snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_commit(snug_checkpoint_writer *w,
                                                         snug_error *err);
/* Without a commit nothing is left; NULL is legal. */
SNUG_API void snug_checkpoint_writer_destroy(snug_checkpoint_writer *w);

typedef struct snug_checkpoint snug_checkpoint;
/* SNUG_E_FORMAT names what is wrong: no such file, cut short, a bit that is not as it was
 * written. */
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_open(snug_engine *engine, const char *path,
                                                       snug_checkpoint **out, snug_error *err);
SNUG_API size_t snug_checkpoint_count(const snug_checkpoint *c);
/* In the order they were written; the name is lent until close. */
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_at(const snug_checkpoint *c, size_t i,
                                                     const char **name, snug_type *type,
                                                     snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_find(const snug_checkpoint *c, const char *name,
                                                       size_t *i, snug_error *err);
/* Into a view of the same type. */
SNUG_API SNUG_CHECKED snug_status snug_checkpoint_read(snug_checkpoint *c, size_t i,
                                                       const snug_view *to, snug_error *err);
SNUG_API void snug_checkpoint_close(snug_checkpoint *c); /* NULL is legal */

#ifdef __cplusplus
}
#endif
#endif
