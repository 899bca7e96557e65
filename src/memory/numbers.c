/* numbers.c: a hash table of numbers with linear probing. Nothing is ever taken out; the order of
 * entries is not visible, so results do not depend on it. */
#include "memory/numbers.h"

#include <string.h>

enum { FIRST_CAP = 16 };

/* Keys are often multiples of a power of two: all bits of the product's upper half depend on them.
 * Of keys in a row it has some bits alike: folded, they do not lie in clusters. */
static size_t place_of(uint64_t key, size_t cap) {
    const uint64_t h = (key ^ key >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(h >> 32 ^ h >> 47) & (cap - 1);
}

/* The entry of the key, or the empty one where it belongs. */
static sn_number_entry *probe(const sn_numbers *t, uint64_t key) {
    size_t i = place_of(key, t->cap);
    while (t->entries[i].used && t->entries[i].key != key)
        i = (i + 1) & (t->cap - 1);
    return &t->entries[i];
}

snug_status sn_numbers_reserve(sn_numbers *t, snug_error *err) {
    if (2 * (t->n + 1) <= t->cap)
        return SNUG_OK;
    sn_numbers larger = *t;
    void *block;
    larger.cap = t->cap > 0 ? 2 * t->cap : FIRST_CAP;
    SNUG_TRY(sn_alloc_zero(t->engine, t->category, larger.cap * sizeof *t->entries, &block, err));
    larger.entries = block;
    for (size_t i = 0; i < t->cap; i++)
        if (t->entries[i].used)
            *probe(&larger, t->entries[i].key) = t->entries[i];
    sn_numbers_clear(t);
    *t = larger;
    return SNUG_OK;
}

void sn_numbers_put(sn_numbers *t, uint64_t key, uint32_t id) {
    sn_number_entry *e = probe(t, key);
    t->n += !e->used;
    *e = (sn_number_entry){key, id, true};
}

bool sn_numbers_find(const sn_numbers *t, uint64_t key, uint32_t *id) {
    if (t->cap == 0)
        return false;
    const sn_number_entry *e = probe(t, key);
    if (!e->used)
        return false;
    *id = e->id;
    return true;
}

void sn_numbers_forget(sn_numbers *t) {
    if (t->cap > 0)
        memset(t->entries, 0, t->cap * sizeof *t->entries);
    t->n = 0;
}

void sn_numbers_clear(sn_numbers *t) {
    if (t->cap > 0)
        sn_free(t->engine, t->category, t->entries, t->cap * sizeof *t->entries);
    t->entries = NULL;
    t->n = t->cap = 0;
}
