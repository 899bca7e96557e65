/* gpu_state.c: the homes of variables on a GPU: in device memory, those that plans ask for together
 * in one chunk. A block is a copy that somebody looks at: from then on the block is the truth,
 * until sn_state_settle takes its bytes back to the device. A spilled home is pinned host memory.
 *
 * Invariant: a home with a block has its truth there, else at its place on the device, if it has
 * one. */
#include "exec/gpu.h"
#include "exec/homes.h"

#include "base/size.h"

#include <string.h>

static snug_status gpu_put(sn_state *s, const sn_home_entry *entry, size_t first, size_t n,
                           const void *from, snug_error *err) {
    if (!entry->spilled)
        return sn_gpu_move(s->device, SN_GPU_TO, entry->device_bytes + first, from, n, err);
    memcpy(entry->device_bytes + first, from, n);
    return SNUG_OK;
}

static snug_status gpu_get(sn_state *s, const sn_home_entry *entry, size_t first, size_t n,
                           void *to, snug_error *err) {
    if (!entry->spilled)
        return sn_gpu_move(s->device, SN_GPU_FROM, to, entry->device_bytes + first, n, err);
    memcpy(to, entry->device_bytes + first, n);
    return SNUG_OK;
}

#define PLACE_ALIGN 256

static bool is_to_place(const sn_home_entry *entry, const bool *wanted, uint32_t id) {
    return wanted[id] && !entry->device_bytes;
}

static snug_status take_chunk(sn_state *s, const bool *wanted, sn_chunk **out, snug_error *err) {
    size_t sum = 0;
    void *chunk, *data;
    for (uint32_t i = 0; i < s->n; i++) {
        size_t bytes = s->entries[i]->bytes;
        if (is_to_place(s->entries[i], wanted, i) &&
            (!sn_size_align(bytes, PLACE_ALIGN, &bytes) || !sn_size_add(sum, bytes, &sum)))
            return sn_fail(err, SNUG_E_OVERFLOW, "the variables exceed the address space");
    }
    SNUG_TRY(sn_alloc_zero(s->engine, SN_MEM_MODEL, sizeof(sn_chunk), &chunk, err));
    const snug_status status = sn_gpu_take(s->device, "variables", sum, &data, err);
    if (status != SNUG_OK) {
        sn_free(s->engine, SN_MEM_MODEL, chunk, sizeof(sn_chunk));
        return status;
    }
    *out = chunk;
    (*out)->data = data;
    return SNUG_OK;
}

static void leave_chunk(sn_state *s, sn_home_entry *entry) {
    sn_chunk *chunk = entry->chunk;
    entry->chunk = NULL;
    entry->device_bytes = NULL;
    if (!chunk || --chunk->n > 0)
        return;
    sn_gpu_give(s->device, chunk->data);
    sn_free(s->engine, SN_MEM_MODEL, chunk, sizeof *chunk);
}

/* The bytes at its place become those of the block, or of the recipe. */
static snug_status fill_place(sn_state *s, sn_home_entry *entry, snug_error *err) {
    if (!entry->block.data)
        return sn_home_fill(s, entry, err);
    SNUG_TRY(sn_gpu_move(s->device, SN_GPU_TO, entry->device_bytes, entry->block.data, entry->bytes,
                         err));
    sn_home_drop_block(s, entry);
    return SNUG_OK;
}

snug_status sn_state_place(sn_state *s, const bool *wanted, snug_error *err) {
    sn_chunk *chunk = NULL;
    size_t at = 0;
    snug_status status = SNUG_OK;
    bool some = false;
    for (uint32_t i = 0; i < s->n; i++)
        some = some || is_to_place(s->entries[i], wanted, i);
    if (!some)
        return SNUG_OK;
    SNUG_TRY(take_chunk(s, wanted, &chunk, err));
    chunk->n = 1; /* this function's hold */
    for (uint32_t i = 0; status == SNUG_OK && i < s->n; i++) {
        sn_home_entry *entry = s->entries[i];
        if (!is_to_place(entry, wanted, i))
            continue;
        entry->device_bytes = (unsigned char *)chunk->data + at;
        entry->chunk = chunk;
        chunk->n++;
        at += (entry->bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
        status = fill_place(s, entry, err);
        if (status != SNUG_OK)
            leave_chunk(s, entry);
    }
    sn_home_entry hold = {.chunk = chunk};
    leave_chunk(s, &hold);
    return status;
}

void *sn_state_at(const sn_state *s, uint32_t id) {
    return s->entries[id]->device_bytes;
}

snug_status sn_state_settle(sn_state *s, snug_error *err) {
    for (uint32_t i = 0; s->n_here > 0 && i < s->n; i++)
        if (s->entries[i]->block.data && s->entries[i]->device_bytes)
            SNUG_TRY(fill_place(s, s->entries[i], err));
    return SNUG_OK;
}

/* --- spilled ---------------------------------------------------------------------------------- */

static void gpu_unspilled(sn_state *s, sn_home_entry *entry) {
    const sn_gpu_device *card = s->device;
    card->api->unpin(card->gpu, entry->device_bytes, entry->bytes);
    entry->device_bytes = NULL;
    entry->spilled = false;
}

static snug_status gpu_spill(sn_state *s, sn_home_entry *entry, const char *folder,
                             snug_error *err) {
    const sn_gpu_device *card = s->device;
    void *pinned;
    (void)folder;
    SNUG_TRY(card->api->pin(card->gpu, entry->bytes, &pinned, err));
    const bool has = entry->device_bytes || entry->block.data;
    snug_status status = has ? sn_state_read(s, entry->id, 0, entry->bytes, pinned, err) : SNUG_OK;
    if (status == SNUG_OK) {
        sn_home_drop_block(s, entry);
        leave_chunk(s, entry);
        entry->device_bytes = pinned;
        entry->spilled = true;
        status = has ? SNUG_OK : sn_home_fill(s, entry, err);
        if (status != SNUG_OK)
            gpu_unspilled(s, entry);
    } else {
        card->api->unpin(card->gpu, pinned, entry->bytes);
    }
    return status;
}

static void gpu_leave(sn_state *s, sn_home_entry *entry) {
    if (entry->spilled)
        gpu_unspilled(s, entry);
    leave_chunk(s, entry);
}

static void gpu_close(sn_state *s) {
    sn_gpu_device *card = s->device;
    card->n_users--;
}

static const sn_homes_class gpu_homes = {.put = gpu_put,
                                         .get = gpu_get,
                                         .spill = gpu_spill,
                                         .unspilled = gpu_unspilled,
                                         .leave = gpu_leave,
                                         .close = gpu_close};

void sn_homes_choose(sn_state *s, const sn_device *d) {
    sn_gpu_device *card = sn_gpu_of(d);
    if (!card)
        return; /* the processor's, as after create */
    s->kind = &gpu_homes;
    s->device = card;
    card->n_users++;
}
