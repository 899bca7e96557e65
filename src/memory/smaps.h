/* smaps.h: the mappings of this process, one after the other, from /proc/self/smaps.
 *
 *     static void add(void *ctx, const sn_mapping *m) { *(size_t *)ctx += m->resident_bytes; }
 *     size_t sum = 0;
 *     sn_smaps_each(io, add, &sum); */
#ifndef SN_MEMORY_SMAPS_H
#define SN_MEMORY_SMAPS_H

#include <snug/engine.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uintptr_t start, end;
    bool readable, writable, executable;
    char name[64]; /* of a file without its folder, "[heap]" and its like, "" for none */
    bool file;     /* of a file */
    size_t resident_bytes;
} sn_mapping;

/* In order of address; lent for the call. False when the system does not say. */
bool sn_smaps_each(const snug_io *io, void (*visit)(void *ctx, const sn_mapping *m), void *ctx);

#endif
