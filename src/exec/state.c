/* state.c: the homes of variables, wherever they lie: what all devices have in common, and the
 * processor's. There a home is one block with the variable's name on the ledger; its address does
 * not change until the store is destroyed, so every plan may keep pointers into it. Or it lies in
 * the spill file, in whole blocks, until it is moved back.
 *
 * Invariants:
 * 1. Names are unique; ids count from 0 in the order of adding.
 * 2. A home without a live block, without a place of its own on a device, and not spilled, has no
 * bytes; others were filled from their recipe first.
 * 3. There is a spill file exactly while a home is in it.
 * 4. torn is set by what stopped between two writes (a run, loading weights), and cleared by
 * sn_state_mend alone. */
#include "exec/homes.h"

#include "base/size.h"

#include <assert.h>
#include <string.h>

/* Populating reads the system's limits first, 0.1 ms each time; filling from the recipe touches
 * every page of a small home just as well. */
#define POPULATE_FROM_BYTES ((size_t)64 << 10)
/* Initial values on their way to the file; a multiple of SN_FILE_BLOCK. */
#define PIECE_BYTES ((size_t)256 << 10)

static const sn_homes_class cpu_homes;

snug_status sn_state_create(snug_engine *e, sn_state **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(sn_state), &block, err));
    sn_state *s = block;
    s->engine = e;
    s->kind = &cpu_homes;
    s->names = (sn_names){.engine = e, .category = SN_MEM_MODEL};
    *out = s;
    return SNUG_OK;
}

void sn_state_set_device(sn_state *s, const sn_device *d) {
    assert(s->n == 0 && s->kind == &cpu_homes);
    sn_homes_choose(s, d);
}

void sn_state_destroy(sn_state *s) {
    if (!s)
        return;
    sn_state_truncate(s, 0);
    s->kind->close(s);
    sn_free(s->engine, SN_MEM_MODEL, s->entries, s->cap * sizeof *s->entries);
    sn_names_clear(&s->names);
    sn_free(s->engine, SN_MEM_MODEL, s, sizeof *s);
}

bool sn_state_find(const sn_state *s, const char *name, uint32_t *id) {
    return sn_names_find(&s->names, name, id);
}

static snug_status check_home(const sn_state *s, const sn_home *home, size_t *bytes,
                              snug_error *err) {
    if (!home->name || !home->name[0])
        return sn_fail(err, SNUG_E_INVALID, "a variable needs a name");
    uint32_t there;
    if (sn_state_find(s, home->name, &there))
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
    SNUG_TRY(sn_names_reserve(&s->names, err));
    void *block;
    const size_t name_bytes = strlen(home->name) + 1;
    const size_t entry_bytes = sizeof(sn_home_entry) + name_bytes;
    SNUG_TRY(sn_alloc_zero(s->engine, SN_MEM_MODEL, entry_bytes, &block, err));
    sn_home_entry *entry = block;
    *entry = (sn_home_entry){.home = *home, .id = s->n, .bytes = bytes, .entry_bytes = entry_bytes};
    sn_source_hold(sn_recipe_source(&home->init));
    memcpy(entry->name, home->name, name_bytes);
    entry->home.name = entry->name;
    *id = s->n;
    sn_names_put(&s->names, entry->name, s->n);
    s->entries[s->n++] = entry;
    s->bytes = sum;
    return SNUG_OK;
}

/* Lists grow to twice what they had, tables to four times. */
size_t sn_state_entry_bytes(const char *name) {
    return sizeof(sn_home_entry) + strlen(name) + 1 + 2 * sizeof(sn_home_entry *) +
           4 * sizeof(sn_name_entry);
}

uint32_t sn_state_count(const sn_state *s) {
    return s->n;
}

const sn_home *sn_state_home(const sn_state *s, uint32_t id) {
    return &s->entries[id]->home;
}

size_t sn_state_held(const sn_state *s) {
    size_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->entries[i]->block.booked_bytes;
    return sum;
}

/* Initial values [first, first + bytes) of the home. */
static snug_status make_values(const sn_home_entry *entry, size_t first, size_t bytes, void *to,
                               snug_error *err) {
    const sn_home *home = &entry->home;
    const size_t elem = snug_dtype_bytes(home->type.dtype);
    const snug_status status =
        sn_recipe_fill(&home->init, first / elem, bytes / elem, home->type.dtype, to, err);
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "variable '%s'", home->name);
}

/* Initial values where no block is: piece by piece, for the home may be larger than what memory has
 * left; in one piece where they can only be made at once. */
snug_status sn_home_fill(sn_state *s, const sn_home_entry *entry, snug_error *err) {
    const bool whole = sn_recipe_is_whole(&entry->home.init);
    const size_t piece_bytes = whole ? entry->bytes : PIECE_BYTES;
    void *piece;
    snug_status status = SNUG_OK;
    SNUG_TRY(sn_alloc(s->engine, SN_MEM_OTHER, piece_bytes, &piece, err));
    for (size_t at = 0; status == SNUG_OK && at < entry->bytes; at += piece_bytes) {
        const size_t left = entry->bytes - at, n = left < piece_bytes ? left : piece_bytes;
        status = make_values(entry, at, n, piece, err);
        if (status == SNUG_OK)
            status = s->kind->put(s, entry, at, n, piece, err);
    }
    sn_free(s->engine, SN_MEM_OTHER, piece, piece_bytes);
    return status;
}

static snug_status take_block(sn_state *s, sn_home_entry *entry, snug_error *err) {
    const sn_home *home = &entry->home;
    const sn_block_options options = {.populate = entry->bytes >= POPULATE_FROM_BYTES};
    SNUG_TRY(sn_block_init(s->engine, home->slot ? SN_MEM_SLOTS : SN_MEM_WEIGHTS, home->name,
                           entry->bytes, &options, &entry->block, err));
    s->n_here++;
    return SNUG_OK;
}

void sn_home_drop_block(sn_state *s, sn_home_entry *entry) {
    s->n_here -= entry->block.data ? 1 : 0;
    sn_block_clear(&entry->block);
}

static snug_status allocate_home(sn_state *s, sn_home_entry *entry, snug_error *err) {
    if (entry->block.data)
        return SNUG_OK;
    SNUG_TRY(take_block(s, entry, err));
    void *data = entry->block.data;
    const snug_status status = entry->device_bytes
                                   ? s->kind->get(s, entry, 0, entry->bytes, data, err)
                                   : make_values(entry, 0, entry->bytes, data, err);
    if (status != SNUG_OK)
        sn_home_drop_block(s, entry);
    return status;
}

snug_status sn_state_view(sn_state *s, uint32_t id, snug_view *out, snug_error *err) {
    if (id >= s->n)
        return sn_fail(err, SNUG_E_INVALID, "there is no variable with home %u; there are %u", id,
                       s->n);
    sn_home_entry *entry = s->entries[id];
    if (entry->spilled)
        return sn_fail(
            err, SNUG_E_INVALID,
            "variable '%s' lies in the spill file; train without a spill folder to look at it",
            entry->name);
    SNUG_TRY(allocate_home(s, entry, err));
    *out = (snug_view){.data = entry->block.data, .bytes = entry->bytes, .type = entry->home.type};
    return SNUG_OK;
}

/* Whether the truth lies in a file or on a device, and no copy of it here. */
static bool is_away(const sn_home_entry *entry) {
    return entry->spilled || (entry->device_bytes && !entry->block.data);
}

snug_status sn_state_read(sn_state *s, uint32_t id, size_t first, size_t n, void *to,
                          snug_error *err) {
    sn_home_entry *entry = s->entries[id];
    assert(first <= entry->bytes && n <= entry->bytes - first);
    if (is_away(entry))
        return s->kind->get(s, entry, first, n, to, err);
    SNUG_TRY(allocate_home(s, entry, err));
    memcpy(to, (unsigned char *)entry->block.data + first, n);
    return SNUG_OK;
}

snug_status sn_state_write(sn_state *s, uint32_t id, size_t first, size_t n, const void *from,
                           snug_error *err) {
    sn_home_entry *entry = s->entries[id];
    assert(first <= entry->bytes && n <= entry->bytes - first);
    if (is_away(entry))
        return s->kind->put(s, entry, first, n, from, err);
    SNUG_TRY(allocate_home(s, entry, err));
    memcpy((char *)entry->block.data + first, from, n);
    return SNUG_OK;
}

snug_status sn_state_restart(sn_state *s, uint32_t id, snug_error *err) {
    const sn_home_entry *entry = s->entries[id];
    if (is_away(entry))
        return sn_home_fill(s, entry, err);
    return entry->block.data ? make_values(entry, 0, entry->bytes, entry->block.data, err)
                             : SNUG_OK;
}

/* --- the spill file --------------------------------------------------------------------------- */

/* Behind the last home there; 0: the file is of no use any more. */
static size_t file_end(const sn_state *s) {
    size_t end = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const sn_home_entry *entry = s->entries[i];
        const size_t blocks = (entry->bytes + SN_FILE_BLOCK - 1) / SN_FILE_BLOCK;
        const size_t stop = entry->offset + (blocks > 0 ? blocks : 1) * SN_FILE_BLOCK;
        end = entry->spilled && stop > end ? stop : end;
    }
    return end;
}

static void close_unused_file(sn_state *s) {
    if (!s->file || file_end(s) > 0)
        return;
    sn_spill_destroy(s->file);
    s->file = NULL;
}

static snug_status make_room(sn_state *s, const char *folder, size_t bytes, snug_error *err) {
    return s->file ? sn_spill_grow(s->file, bytes, err)
                   : sn_spill_create(s->engine, folder, bytes, &s->file, err);
}

static snug_status cpu_spill(sn_state *s, sn_home_entry *entry, const char *folder,
                             snug_error *err) {
    size_t end;
    if (!entry->home.slot)
        return sn_fail(err, SNUG_E_INVALID,
                       "variable '%s' is no slot of an optimizer; only these are spilled",
                       entry->name);
    entry->offset = file_end(s);
    if (!sn_size_add(entry->offset, entry->bytes, &end))
        return sn_fail(err, SNUG_E_OVERFLOW, "with '%.80s' the spill file exceeds all disks",
                       entry->name);
    SNUG_TRY(make_room(s, folder, end, err));
    const snug_status status = entry->block.data ? sn_spill_write(s->file, entry->block.data,
                                                                  entry->bytes, entry->offset, err)
                                                 : sn_home_fill(s, entry, err);
    if (status == SNUG_OK) {
        sn_home_drop_block(s, entry);
        entry->spilled = true;
    }
    close_unused_file(s);
    return status;
}

static void cpu_unspilled(sn_state *s, sn_home_entry *entry) {
    entry->spilled = false;
    close_unused_file(s);
}

static snug_status cpu_get(sn_state *s, const sn_home_entry *entry, size_t first, size_t n,
                           void *to, snug_error *err) {
    return sn_spill_read(s->file, to, n, entry->offset + first, err);
}

static snug_status cpu_put(sn_state *s, const sn_home_entry *entry, size_t first, size_t n,
                           const void *from, snug_error *err) {
    return sn_spill_write(s->file, from, n, entry->offset + first, err);
}

static void cpu_leave(sn_state *s, sn_home_entry *entry) {
    (void)s, (void)entry;
}

static void cpu_close(sn_state *s) {
    (void)s;
}

static const sn_homes_class cpu_homes = {.on_disk = true,
                                         .put = cpu_put,
                                         .get = cpu_get,
                                         .spill = cpu_spill,
                                         .unspilled = cpu_unspilled,
                                         .leave = cpu_leave,
                                         .close = cpu_close};

/* --- on any device ---------------------------------------------------------------------------- */

snug_status sn_state_spill(sn_state *s, uint32_t id, const char *folder, snug_error *err) {
    sn_home_entry *entry = s->entries[id];
    return entry->spilled ? SNUG_OK : s->kind->spill(s, entry, folder, err);
}

snug_status sn_state_unspill(sn_state *s, uint32_t id, snug_error *err) {
    sn_home_entry *entry = s->entries[id];
    if (!entry->spilled)
        return SNUG_OK;
    SNUG_TRY(take_block(s, entry, err));
    const snug_status status = s->kind->get(s, entry, 0, entry->bytes, entry->block.data, err);
    if (status != SNUG_OK) {
        sn_home_drop_block(s, entry);
        return status;
    }
    s->kind->unspilled(s, entry);
    return SNUG_OK;
}

bool sn_state_on_disk(const sn_state *s) {
    return s->kind->on_disk;
}

bool sn_state_is_spilled(const sn_state *s, uint32_t id) {
    return s->entries[id]->spilled;
}

sn_spill *sn_state_file(const sn_state *s, uint32_t id, size_t *offset) {
    const sn_home_entry *entry = s->entries[id];
    *offset = entry->spilled ? entry->offset : 0;
    return entry->spilled ? s->file : NULL;
}

/* Before those behind go, whose names are lent. */
static void forget_names(sn_state *s, uint32_t n) {
    if (s->n <= n)
        return;
    sn_names_forget(&s->names);
    for (uint32_t i = 0; i < n; i++)
        sn_names_put(&s->names, s->entries[i]->name, i);
}

void sn_state_truncate(sn_state *s, uint32_t n) {
    forget_names(s, n);
    while (s->n > n) {
        sn_home_entry *entry = s->entries[--s->n];
        sn_home_drop_block(s, entry);
        s->kind->leave(s, entry);
        sn_source_drop(sn_recipe_source(&entry->home.init));
        s->bytes -= entry->bytes;
        sn_free(s->engine, SN_MEM_MODEL, entry, entry->entry_bytes);
    }
    close_unused_file(s);
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
