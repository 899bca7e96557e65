/* names.c: a hash table of lent names with linear probing. Nothing is ever taken out; the order of
 * entries is not visible, so results do not depend on it. */
#include "memory/names.h"

#include <string.h>

enum { FIRST_CAP = 16 };

static uint64_t hash_of(const char *name) { /* FNV-1a */
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return h;
}

/* The entry of the name, or the empty one where it belongs. */
static sn_name_entry *probe(const sn_names *t, const char *name, uint64_t hash) {
    size_t i = (size_t)hash & (t->cap - 1);
    while (t->entries[i].name &&
           (t->entries[i].hash != hash || strcmp(t->entries[i].name, name) != 0))
        i = (i + 1) & (t->cap - 1);
    return &t->entries[i];
}

snug_status sn_names_reserve(sn_names *t, snug_error *err) {
    if (2 * (t->n + 1) <= t->cap)
        return SNUG_OK;
    sn_names larger = *t;
    void *block;
    larger.cap = t->cap > 0 ? 2 * t->cap : FIRST_CAP;
    SNUG_TRY(sn_alloc_zero(t->engine, t->category, larger.cap * sizeof *t->entries, &block, err));
    larger.entries = block;
    for (size_t i = 0; i < t->cap; i++)
        if (t->entries[i].name)
            *probe(&larger, t->entries[i].name, t->entries[i].hash) = t->entries[i];
    sn_names_clear(t);
    *t = larger;
    return SNUG_OK;
}

void sn_names_put(sn_names *t, const char *name, uint32_t id) {
    const uint64_t hash = hash_of(name);
    sn_name_entry *e = probe(t, name, hash);
    t->n += e->name == NULL;
    *e = (sn_name_entry){name, hash, id};
}

bool sn_names_find(const sn_names *t, const char *name, uint32_t *id) {
    if (t->cap == 0)
        return false;
    const sn_name_entry *e = probe(t, name, hash_of(name));
    if (!e->name)
        return false;
    *id = e->id;
    return true;
}

void sn_names_forget(sn_names *t) {
    if (t->cap > 0)
        memset(t->entries, 0, t->cap * sizeof *t->entries);
    t->n = 0;
}

void sn_names_clear(sn_names *t) {
    if (t->cap > 0)
        sn_free(t->engine, t->category, t->entries, t->cap * sizeof *t->entries);
    t->entries = NULL;
    t->n = t->cap = 0;
}
