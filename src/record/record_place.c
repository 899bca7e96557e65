/* record_place.c: where the bytes of a storage lie: on the host, on the card, or on both. Slots may
 * lie in a file instead (record_spill.c), where there is no card.
 *
 * Invariants:
 * 1. A storage has bytes on one side at least; where it has them on both, they are the same.
 * 2. What a run wants on the other side is copied there. Then only small ones stay on both; larger
 *    ones move, unless somebody looks at the host's bytes (pins): those are doubles, in a list, and
 *    leave the card where a run has no room otherwise.
 * 3. What a run has written is dropped on the other side (the side's `wrote`).
 * 4. Bytes of the caller's are let go between runs only: doing so may be his code. */
#include "record/card.h"

#include "memory/pool.h"

#include <string.h>

#define BOTH_BYTES  ((size_t)4096)
#define AHEAD_BYTES ((size_t)64 << 10) /* fewer are copied as fast when they are read */

static size_t *sum_of(snug_recorder *r, const sn_storage *s) {
    return s->category == SN_MEM_TENSORS ? &r->tensor_bytes : &r->variable_bytes;
}

void sn_storage_count(snug_recorder *r, sn_storage *s) {
    *sum_of(r, s) += s->counted ? 0 : s->bytes;
    s->counted = true;
}

void sn_storage_uncount(snug_recorder *r, sn_storage *s) {
    *sum_of(r, s) -= s->counted ? s->bytes : 0;
    s->counted = false;
}

static size_t *card_sum_of(snug_recorder *r, const sn_storage *s) {
    return s->category == SN_MEM_TENSORS ? &r->card->tensor_bytes : &r->card->variable_bytes;
}

/* --- on both sides ---------------------------------------------------------------------------- */
static void note_double(snug_recorder *r, sn_storage *s) {
    if (s->double_link || !s->data || !s->on_card || s->bytes <= BOTH_BYTES)
        return;
    s->next_double = r->card->doubles;
    s->double_link = &r->card->doubles;
    if (s->next_double)
        s->next_double->double_link = &s->next_double;
    r->card->doubles = s;
}

static void forget_double(sn_storage *s) {
    if (!s->double_link)
        return;
    *s->double_link = s->next_double;
    if (s->next_double)
        s->next_double->double_link = s->double_link;
    s->double_link = NULL;
}

/* --- giving back ------------------------------------------------------------------------------ */
static void release_foreign(snug_recorder *r, sn_storage *s) {
    if (s->release)
        s->release(s->ctx);
    if (s->claimed)
        sn_unclaim(r->engine, SN_MEM_TENSORS, s->bytes);
    s->foreign = s->claimed = false;
    s->release = NULL;
}

void sn_storage_leave_host(snug_recorder *r, sn_storage *s) {
    forget_double(s);
    if (s->foreign)
        release_foreign(r, s);
    else if (s->taken)
        sn_pool_give(r->engine, s->data, s->taken);
    else if (s->data)
        sn_free(r->engine, s->category, s->data, s->bytes);
    s->data = NULL;
    s->taken = 0;
}

void sn_storage_leave_card(snug_recorder *r, sn_storage *s) {
    forget_double(s);
    if (!s->on_card)
        return;
    *card_sum_of(r, s) -= s->bytes;
    sn_gpu_pool_give(r->card->gpu, s->on_card);
    s->on_card = NULL;
}

/* --- moving ----------------------------------------------------------------------------------- */
/* Arenas of plans that are not running may lie in the way. */
static snug_status take_block(snug_recorder *r, const char *what, size_t bytes, sn_gpu_block **out,
                              snug_error *err) {
    const snug_status status = sn_gpu_pool_take(r->card->gpu, what, bytes, out, err);
    if (status != SNUG_E_BUDGET)
        return status;
    sn_executor_forget(r->card->executor);
    return sn_gpu_pool_take(r->card->gpu, what, bytes, out, err);
}

static size_t card_bytes(const snug_recorder *r) {
    sn_gpu_pool_info pool;
    sn_gpu_pool_tell(r->card->gpu, &pool);
    return pool.used_bytes + sn_executor_arena(r->card->executor, SN_MEM_FIRST_ARENA).bytes;
}

void sn_card_note_peak(snug_recorder *r) {
    const size_t now = card_bytes(r);
    r->card->peak_bytes = now > r->card->peak_bytes ? now : r->card->peak_bytes;
}

/* Not filled. */
static snug_status take_place(snug_recorder *r, sn_storage *s, snug_error *err) {
    const char *what = s->category == SN_MEM_TENSORS ? "a tensor" : "a variable";
    SNUG_TRY(take_block(r, what, s->bytes, &s->on_card, err));
    *card_sum_of(r, s) += s->bytes;
    sn_storage_count(r, s);
    return SNUG_OK;
}

snug_status sn_storage_create_on_card(snug_recorder *r, sn_category cat, size_t bytes,
                                      sn_storage **out, snug_error *err) {
    const sn_storage like = {.bytes = bytes, .category = cat};
    sn_storage *s;
    SNUG_TRY(sn_storage_like(r, &like, &s, err));
    const snug_status status = take_place(r, s, err);
    if (status != SNUG_OK)
        sn_storage_drop(r, s);
    else
        *out = s;
    return status;
}

snug_status sn_storage_to_card(snug_recorder *r, sn_storage *s, snug_error *err) {
    if (s->on_card)
        return SNUG_OK;
    SNUG_TRY(take_place(r, s, err));
    const snug_status status =
        sn_gpu_send(r->card->gpu, SN_GPU_TO, s->on_card->data, s->data, s->bytes, err);
    if (status != SNUG_OK)
        sn_storage_leave_card(r, s);
    else if (s->bytes > BOTH_BYTES && s->pins == 0)
        sn_storage_leave_host(r, s);
    else
        note_double(r, s);
    return status;
}

snug_status sn_storage_to_host(snug_recorder *r, sn_storage *s, snug_error *err) {
    if (s->data)
        return SNUG_OK;
    if (s->in_file)
        return sn_storage_leave_for_host(r, s, err);
    SNUG_TRY(sn_alloc(r->engine, s->category, s->bytes, &s->data, err));
    const snug_status status =
        sn_gpu_move(r->card->gpu, SN_GPU_FROM, s->data, s->on_card->data, s->bytes, err);
    if (status != SNUG_OK)
        sn_storage_leave_host(r, s);
    else
        note_double(r, s);
    return status;
}

bool sn_card_drop_doubles(snug_recorder *r, bool (*keeps)(const void *ctx, const sn_storage *s),
                          const void *ctx) {
    bool any = false;
    for (sn_storage *s = r->card->doubles, *next; s; s = next) {
        next = s->next_double;
        if (keeps(ctx, s))
            continue;
        sn_storage_leave_card(r, s);
        any = true;
    }
    return any;
}

/* --- ahead ------------------------------------------------------------------------------------ */
/* Arenas stay: a run is in them. */
static void bring_beside(snug_recorder *r, sn_storage *s) {
    size_t left;
    if (s->on_card || !s->data || sn_gpu_room(r->card->gpu, &left, NULL) != SNUG_OK ||
        s->bytes > left / 2 ||
        sn_gpu_pool_take(r->card->gpu, "a tensor", s->bytes, &s->on_card, NULL) != SNUG_OK)
        return;
    *card_sum_of(r, s) += s->bytes;
    sn_storage_count(r, s);
    if (sn_gpu_send_beside(r->card->gpu, s->on_card->data, s->data, s->bytes, NULL) != SNUG_OK)
        sn_storage_leave_card(r, s);
    else
        note_double(r, s);
    sn_card_note_peak(r);
}

/* Nobody else uses the recorder while a plan runs. */
void sn_card_bring_ahead(void *ctx) {
    snug_recorder *r = ctx;
    for (uint32_t i = 0; i < r->card->n_ahead; i++)
        bring_beside(r, r->card->ahead[i]);
}

void sn_card_end_ahead(snug_recorder *r, bool went_well) {
    for (uint32_t i = 0; i < r->card->n_ahead; i++) {
        sn_storage *s = r->card->ahead[i];
        if (!went_well && s->data)
            sn_storage_leave_card(r, s);
        if (s->on_card && s->data && s->pins == 0)
            sn_storage_leave_host(r, s);
        sn_storage_drop(r, s);
    }
    r->card->n_ahead = 0;
}

void snug_tensor_bring(snug_tensor *t) {
    if (!t)
        return;
    snug_recorder *r = t->r;
    if (!r || !r->card || r->on_host || t->state != SN_READY || t->storage->on_card ||
        t->storage->bytes < AHEAD_BYTES || r->card->n_ahead == SN_N_AHEAD)
        return;
    sn_storage_hold(t->storage);
    r->card->ahead[r->card->n_ahead++] = t->storage;
}

void sn_storage_unpin(snug_recorder *r, sn_storage *s) {
    if (--s->pins == 0 && s->on_card && s->bytes > BOTH_BYTES)
        sn_storage_leave_host(r, s);
}

snug_status sn_storage_read(snug_recorder *r, const sn_storage *s, size_t offset, void *to,
                            size_t bytes, snug_error *err) {
    if (bytes == 0)
        return SNUG_OK;
    if (s->in_file)
        return sn_storage_from_file(r, s, offset, to, bytes, err);
    if (!s->data)
        return sn_gpu_move(r->card->gpu, SN_GPU_FROM, to, s->on_card->data + offset, bytes, err);
    memcpy(to, (const char *)s->data + offset, bytes);
    return SNUG_OK;
}

/* --- what the caller asks --------------------------------------------------------------------- */
void snug_recorder_place(snug_recorder *r, int on_host) {
    if (!r)
        return;
    r->on_host = on_host != 0 && r->card;
}

int snug_recorder_is_on_host(const snug_recorder *r) {
    if (!r)
        return 0;
    return !r->card || r->on_host;
}

int snug_tensor_is_on_host(const snug_tensor *t) {
    if (!t)
        return 0;
    return !t->r->card || t->on_host;
}

int snug_variable_is_on_host(const snug_variable *v) {
    if (!v)
        return 0;
    return !v->r->card || v->on_host;
}

void snug_recorder_tell_device(const snug_recorder *r, snug_recorder_device *out) {
    if (!(r && out))
        return;
    sn_gpu_pool_info pool;
    *out = (snug_recorder_device){.tensor_bytes = 0};
    if (!r->card)
        return;
    out->tensor_bytes = r->card->tensor_bytes;
    out->variable_bytes = r->card->variable_bytes;
    sn_gpu_pool_tell(r->card->gpu, &pool);
    out->arena_bytes = sn_executor_arena(r->card->executor, SN_MEM_FIRST_ARENA).bytes;
    out->pool_bytes = pool.chunk_bytes;
    out->pool_free_bytes = pool.chunk_bytes - pool.used_bytes;
    out->pool_largest_free = pool.largest_free_bytes;
    out->bytes = card_bytes(r);
    out->peak_bytes = r->card->peak_bytes > out->bytes ? r->card->peak_bytes : out->bytes;
}

void snug_recorder_reset_peak(snug_recorder *r) {
    if (!r)
        return;
    if (r->card)
        r->card->peak_bytes = card_bytes(r);
}
