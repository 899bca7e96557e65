/* spill.h: bytes that wait in a file while memory has no room for them.
 *
 *     sn_spill *s;
 *     sn_spill_create(e, "/scratch", 1 << 30, &s, err);   // the disk has promised the bytes
 *     sn_spill_write(s, data, n, offset, err);
 *     sn_spill_read(s, data, n, offset, err);
 *     sn_spill_destroy(s);                                // nothing is left: it has no name
 *
 * data and offset may be any. Where both are at the same place in a block of SN_FILE_BLOCK, whole
 * blocks go straight between data and disk; everything else goes through a stage on the ledger, one
 * for each direction, and nothing stays in the system's cache. Bytes beside those written stay as
 * they are: what shares a block with them is read first.
 *
 * Threads may read and write at once, but not the same bytes; two of them in one direction take
 * turns. */
#ifndef SN_MEMORY_SPILL_H
#define SN_MEMORY_SPILL_H

#include "base/file.h"
#include "memory/engine.h"

#define SN_SPILL_STAGE_BYTES  ((size_t)512 << 10)
#define SN_SPILL_MEMORY_BYTES (2 * SN_SPILL_STAGE_BYTES) /* what an open one takes of memory */

typedef struct sn_spill sn_spill;

/* SNUG_E_IO, with numbers, for a folder that is missing, read-only, too full, or memory itself. */
SNUG_CHECKED snug_status sn_spill_create(snug_engine *e, const char *folder, size_t bytes,
                                         sn_spill **out, snug_error *err);
void sn_spill_destroy(sn_spill *s);         /* NULL is legal */
size_t sn_spill_bytes(const sn_spill *s);   /* of the file: whole blocks */
bool sn_spill_is_direct(const sn_spill *s); /* past the system's cache */
/* What there is stays; nobody else may use s meanwhile. */
SNUG_CHECKED snug_status sn_spill_grow(sn_spill *s, size_t bytes, snug_error *err);
/* The child of a fork is refused: the file is its parent's, too. */
SNUG_CHECKED snug_status sn_spill_write(sn_spill *s, const void *data, size_t n, size_t offset,
                                        snug_error *err);
SNUG_CHECKED snug_status sn_spill_read(sn_spill *s, void *data, size_t n, size_t offset,
                                       snug_error *err);

#endif
