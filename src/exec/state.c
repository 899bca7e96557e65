/* state.c: the homes of variables. A home is one block with the variable's name on the ledger; its
 * address does not change until the store is destroyed, so every plan may keep pointers into it.
 *
 * Invariants:
 * 1. Names are unique; ids count from 0 in the order of adding.
 * 2. A home without a live block has no bytes; one with a block was filled from its recipe first.
 * 3. torn is set by what stopped between two writes (a run, loading weights), and cleared by
 * sn_state_mend alone. */
#include "exec/exec.h"

#include "base/size.h"

#include <string.h>

/* Populating reads the system's limits first, 0.1 ms each time; filling from the recipe touches
 * every page of a small home just as well. */
#define POPULATE_FROM_BYTES ((size_t)64 << 10)

/* Allocated one by one: the ledger links the blocks, so they must not move; and a store whose homes
 * come and go (each new optimizer has its slots) must not grow. */
typedef struct {
    sn_home home;
    size_t bytes;       /* of the variable */
    size_t entry_bytes; /* of this object */
    sn_block block;     /* zeroed until allocated */
    char name[];
} sn_home_entry;

struct sn_state {
    snug_engine *engine;
    sn_home_entry **entries; /* cap elements by sn_grow */
    size_t cap;
    uint32_t n;
    size_t bytes;
    bool torn;
};

snug_status sn_state_create(snug_engine *e, sn_state **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(sn_state), &block, err));
    sn_state *s = block;
    s->engine = e;
    *out = s;
    return SNUG_OK;
}

void sn_state_destroy(sn_state *s) {
    if (!s)
        return;
    sn_state_truncate(s, 0);
    sn_free(s->engine, SN_MEM_MODEL, s->entries, s->cap * sizeof *s->entries);
    sn_free(s->engine, SN_MEM_MODEL, s, sizeof *s);
}

static snug_status check_home(const sn_state *s, const sn_home *home, size_t *bytes,
                              snug_error *err) {
    if (!home->name || !home->name[0])
        return sn_fail(err, SNUG_E_INVALID, "a variable needs a name");
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->entries[i]->home.name, home->name) == 0)
            return sn_fail(err, SNUG_E_INVALID,
                           "there is a variable '%.80s' already; choose another name", home->name);
    SNUG_TRY(sn_type_check(&home->type, false, err));
    return snug_type_bytes(&home->type, bytes, err);
}

snug_status sn_state_add(sn_state *s, const sn_home *home, uint32_t *id, snug_error *err) {
    size_t bytes, sum;
    SNUG_TRY(check_home(s, home, &bytes, err));
    if (!sn_size_add(s->bytes, bytes, &sum))
        return sn_fail(err, SNUG_E_OVERFLOW, "with '%.80s' the variables exceed the address space",
                       home->name);
    SNUG_TRY(sn_grow(s->engine, SN_MEM_MODEL, (void **)&s->entries, sizeof *s->entries, &s->cap,
                     (size_t)s->n + 1, err));
    void *block;
    const size_t name_bytes = strlen(home->name) + 1;
    const size_t entry_bytes = sizeof(sn_home_entry) + name_bytes;
    SNUG_TRY(sn_alloc_zero(s->engine, SN_MEM_MODEL, entry_bytes, &block, err));
    sn_home_entry *entry = block;
    *entry = (sn_home_entry){.home = *home, .bytes = bytes, .entry_bytes = entry_bytes};
    sn_source_hold(sn_recipe_source(&home->init));
    memcpy(entry->name, home->name, name_bytes);
    entry->home.name = entry->name;
    *id = s->n;
    s->entries[s->n++] = entry;
    s->bytes = sum;
    return SNUG_OK;
}

uint32_t sn_state_count(const sn_state *s) {
    return s->n;
}

const sn_home *sn_state_home(const sn_state *s, uint32_t id) {
    return &s->entries[id]->home;
}

size_t sn_state_bytes(const sn_state *s) {
    return s->bytes;
}

static snug_status fill_home(const sn_home_entry *entry, snug_error *err) {
    const sn_home *home = &entry->home;
    const snug_status status = sn_recipe_fill(&home->init, 0, (size_t)sn_type_count(&home->type),
                                              home->type.dtype, entry->block.data, err);
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "variable '%s'", home->name);
}

static snug_status allocate_home(sn_state *s, sn_home_entry *entry, snug_error *err) {
    if (entry->block.data)
        return SNUG_OK;
    const sn_home *home = &entry->home;
    const sn_block_options options = {.populate = entry->bytes >= POPULATE_FROM_BYTES};
    SNUG_TRY(sn_block_init(s->engine, home->slot ? SN_MEM_SLOTS : SN_MEM_WEIGHTS, home->name,
                           entry->bytes, &options, &entry->block, err));
    const snug_status status = fill_home(entry, err);
    if (status != SNUG_OK)
        sn_block_clear(&entry->block);
    return status;
}

snug_status sn_state_view(sn_state *s, uint32_t id, snug_view *out, snug_error *err) {
    if (id >= s->n)
        return sn_fail(err, SNUG_E_INVALID, "there is no variable with home %u; there are %u", id,
                       s->n);
    sn_home_entry *entry = s->entries[id];
    SNUG_TRY(allocate_home(s, entry, err));
    *out = (snug_view){.data = entry->block.data, .bytes = entry->bytes, .type = entry->home.type};
    return SNUG_OK;
}

snug_status sn_state_restart(sn_state *s, uint32_t id, snug_error *err) {
    const sn_home_entry *entry = s->entries[id];
    return entry->block.data ? fill_home(entry, err) : SNUG_OK;
}

void sn_state_truncate(sn_state *s, uint32_t n) {
    while (s->n > n) {
        sn_home_entry *entry = s->entries[--s->n];
        sn_block_clear(&entry->block);
        sn_source_drop(sn_recipe_source(&entry->home.init));
        s->bytes -= entry->bytes;
        sn_free(s->engine, SN_MEM_MODEL, entry, entry->entry_bytes);
    }
}

bool sn_state_torn(const sn_state *s) {
    return s->torn;
}

void sn_state_tear(sn_state *s) {
    s->torn = true;
}

void sn_state_mend(sn_state *s) {
    s->torn = false;
}
