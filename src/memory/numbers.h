/* numbers.h: numbers (ids, addresses) to numbers, as names.h is for names.
 *
 *     sn_numbers t = {.engine = e, .category = SN_MEM_GRAPH};
 *     sn_numbers_reserve(&t, err);        // room for one more
 *     sn_numbers_put(&t, home, 3);        // cannot fail; a key that is there gets the new number
 *     sn_numbers_find(&t, home, &id);     // true, 3 */
#ifndef SN_MEMORY_NUMBERS_H
#define SN_MEMORY_NUMBERS_H

#include "memory/engine.h"

typedef struct {
    uint64_t key;
    uint32_t id;
    bool used;
} sn_number_entry;

typedef struct {
    snug_engine *engine;
    sn_category category;
    sn_number_entry *entries; /* open addressing, at most half full */
    size_t n, cap;            /* cap: 0 or a power of two */
} sn_numbers;

SNUG_CHECKED snug_status sn_numbers_reserve(sn_numbers *t, snug_error *err);
void sn_numbers_put(sn_numbers *t, uint64_t key, uint32_t id);
bool sn_numbers_find(const sn_numbers *t, uint64_t key, uint32_t *id);
void sn_numbers_forget(sn_numbers *t); /* all of them; the room stays */
void sn_numbers_clear(sn_numbers *t);  /* legal on zeroed */

#endif
