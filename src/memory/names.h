/* names.h: names to numbers, so that large graphs find theirs without comparing all.
 *
 *     sn_names t = {.engine = e, .category = SN_MEM_GRAPH};
 *     sn_names_reserve(&t, err);          // room for one more
 *     sn_names_put(&t, "kernel", 3);      // cannot fail; a name that is there gets the new number
 *     sn_names_find(&t, "kernel", &id);   // true, 3
 *
 * Names are lent: they must stay where they are until the table forgets them or is cleared. */
#ifndef SN_MEMORY_NAMES_H
#define SN_MEMORY_NAMES_H

#include "memory/engine.h"

typedef struct {
    const char *name; /* NULL: empty */
    uint64_t hash;
    uint32_t id;
} sn_name_entry;

typedef struct {
    snug_engine *engine;
    sn_category category;
    sn_name_entry *entries; /* open addressing, at most half full */
    size_t n, cap;          /* cap: 0 or a power of two */
} sn_names;

SNUG_CHECKED snug_status sn_names_reserve(sn_names *t, snug_error *err);
void sn_names_put(sn_names *t, const char *name, uint32_t id);
bool sn_names_find(const sn_names *t, const char *name, uint32_t *id);
void sn_names_forget(sn_names *t); /* all of them; the room stays */
void sn_names_clear(sn_names *t);  /* legal on zeroed */

#endif
