/* record_spill.c: slots of optimizers that wait in a file. Which plans want which there is decided
 * with each plan (record_cache.c). Before its run they are moved to where it has them, and stay
 * until another run wants them elsewhere; who reads one meanwhile reads the file. Where somebody
 * else has no room, all go there, and stay.
 *
 * Invariants:
 * 1. A storage in the file has no bytes anywhere else; it begins at a block and has whole ones.
 * 2. Those in the file are listed as they lie; there is a file exactly while one is in it. */
#include "record/recording.h"

#include "base/size.h"

/* Initial values on their way to the file; a multiple of SN_FILE_BLOCK. */
#define PIECE_BYTES ((size_t)256 << 10)

bool sn_recorder_spills(const snug_recorder *r) {
    return r->n_sides == 1 && !r->worker && sn_engine_spill_folder(r->engine);
}

/* --- places in the file ----------------------------------------------------------------------- */
static size_t in_blocks(size_t bytes) {
    return (bytes + SN_FILE_BLOCK - 1) / SN_FILE_BLOCK * SN_FILE_BLOCK;
}

/* The first gap that is large enough: where it begins, and who comes behind it. */
static sn_storage **find_gap(snug_recorder *r, size_t bytes, size_t *at) {
    sn_storage **link = &r->in_file;
    for (*at = 0; *link && (*link)->file_at - *at < bytes; link = &(*link)->next_slot)
        *at = (*link)->file_at + in_blocks((*link)->bytes);
    return link;
}

static snug_status make_room(snug_recorder *r, size_t end, snug_error *err) {
    if (!r->file)
        return sn_spill_create(r->engine, sn_engine_spill_folder(r->engine), end, &r->file, err);
    return end > sn_spill_bytes(r->file) ? sn_spill_grow(r->file, end, err) : SNUG_OK;
}

static void close_unused(snug_recorder *r) {
    if (r->in_file)
        return;
    sn_spill_destroy(r->file);
    r->file = NULL;
}

static void enter(sn_storage *s, sn_storage **link) {
    s->next_slot = *link;
    s->slot_link = link;
    if (s->next_slot)
        s->next_slot->slot_link = &s->next_slot;
    *link = s;
}

static void leave(sn_storage *s) {
    if (!s->slot_link)
        return;
    *s->slot_link = s->next_slot;
    if (s->next_slot)
        s->next_slot->slot_link = s->slot_link;
    s->slot_link = NULL;
    s->in_file = false;
}

void sn_storage_enter_slots(snug_recorder *r, sn_storage *s) {
    if (r->n_sides == 1)
        enter(s, &r->slots);
}

void sn_storage_leave_slots(snug_recorder *r, sn_storage *s) {
    leave(s);
    close_unused(r);
}

/* --- moving ----------------------------------------------------------------------------------- */
snug_status sn_storage_from_file(snug_recorder *r, const sn_storage *s, size_t offset, void *to,
                                 size_t bytes, snug_error *err) {
    return sn_spill_read(r->file, to, bytes, s->file_at + offset, err);
}

/* Bytes that were never made yet: piece by piece, for memory may have no room for all. */
static snug_status write_recipe(snug_recorder *r, const snug_variable *v, size_t bytes, size_t at,
                                snug_error *err) {
    const size_t all = sn_recipe_is_whole(&v->init) ? bytes : PIECE_BYTES;
    const size_t element = snug_dtype_bytes(v->type.dtype);
    void *piece;
    snug_status status = SNUG_OK;
    SNUG_TRY(sn_alloc(r->engine, SN_MEM_OTHER, all, &piece, err));
    for (size_t done = 0; status == SNUG_OK && done < bytes; done += all) {
        const size_t n = bytes - done < all ? bytes - done : all;
        status = sn_recipe_fill(&v->init, done / element, n / element, v->type.dtype, piece, err);
        if (status == SNUG_OK)
            status = sn_spill_write(r->file, piece, n, at + done, err);
    }
    sn_free(r->engine, SN_MEM_OTHER, piece, all);
    return status;
}

/* The bytes that it has, or those of the variable, whose storage it will be. */
static snug_status to_file(snug_recorder *r, sn_storage *s, const snug_variable *v,
                           snug_error *err) {
    size_t at;
    (void)find_gap(r, in_blocks(s->bytes), &at);
    SNUG_TRY(make_room(r, at + in_blocks(s->bytes), err));
    SNUG_TRY(s->data ? sn_spill_write(r->file, s->data, s->bytes, at, err)
                     : write_recipe(r, v, s->bytes, at, err));
    sn_storage_leave_host(r, s);
    leave(s);
    enter(s, find_gap(r, in_blocks(s->bytes), &s->file_at));
    s->in_file = true;
    return SNUG_OK;
}

static snug_status new_to_file(snug_variable *v, snug_error *err) {
    snug_recorder *r = v->r;
    sn_storage *s;
    size_t bytes;
    SNUG_TRY(snug_type_bytes(&v->type, &bytes, err));
    SNUG_TRY(sn_storage_like(r, &(sn_storage){.bytes = bytes, .category = SN_MEM_SLOTS}, &s, err));
    const snug_status status = to_file(r, s, v, err);
    if (status != SNUG_OK) {
        sn_storage_drop(r, s);
        return status;
    }
    sn_storage_count(r, s);
    v->storage = s;
    return SNUG_OK;
}

static snug_status variable_to_file(snug_variable *v, snug_error *err) {
    if (v->torn && !v->mended)
        return sn_variable_torn(v, err);
    if (!v->storage)
        return new_to_file(v, err);
    if (v->storage->in_file)
        return SNUG_OK;
    const snug_status status = to_file(v->r, v->storage, v, err);
    close_unused(v->r);
    return status;
}

/* What the file has that nobody lies in. */
static size_t free_bytes(const snug_recorder *r) {
    size_t bytes = r->file ? sn_spill_bytes(r->file) : 0;
    for (const sn_storage *s = r->in_file; s; s = s->next_slot)
        bytes -= in_blocks(s->bytes);
    return bytes;
}

/* Before the first of them goes. */
static snug_status check_folder(const snug_recorder *r, size_t bytes, snug_error *err) {
    const size_t there = free_bytes(r), most = INT64_MAX;
    const size_t more = bytes > there ? bytes - there : 0;
    return more == 0
               ? SNUG_OK
               : sn_file_check_folder(sn_engine_io(r->engine), sn_engine_spill_folder(r->engine),
                                      (int64_t)(more < most ? more : most), err);
}

static snug_status bytes_to_go(const sn_recording *rec, const sn_plan *plan, size_t *sum,
                               snug_error *err) {
    *sum = 0;
    for (uint32_t i = 0; i < rec->n_variable; i++) {
        const snug_variable *v = rec->variable[i];
        size_t bytes;
        if (!sn_plan_spills(plan, (sn_var){i}) || sn_variable_in_file(v))
            continue;
        SNUG_TRY(snug_type_bytes(&v->type, &bytes, err));
        if (!sn_size_add(*sum, in_blocks(bytes), sum))
            return sn_fail(err, SNUG_E_OVERFLOW, "with '%.80s' the spill file exceeds all disks",
                           v->name);
    }
    return SNUG_OK;
}

snug_status sn_recording_to_file(const sn_recording *rec, const sn_plan *plan, snug_error *err) {
    size_t bytes;
    SNUG_TRY(bytes_to_go(rec, plan, &bytes, err));
    SNUG_TRY(check_folder(rec->r, bytes, err));
    for (uint32_t i = 0; i < rec->n_variable; i++)
        if (sn_plan_spills(plan, (sn_var){i}))
            SNUG_TRY(variable_to_file(rec->variable[i], err));
    return SNUG_OK;
}

static bool is_large(const sn_storage *s) {
    return s->bytes >= SN_SPILL_LEAST_BYTES && s->data;
}

/* A file takes memory itself: it is made for what is worth it. */
bool sn_slots_make_way(snug_recorder *r) {
    size_t sum = 0;
    bool any = false;
    for (const sn_storage *s = r->slots; s; s = s->next_slot)
        sum += is_large(s) ? in_blocks(s->bytes) : 0;
    if (!sn_recorder_spills(r) || sn_plan_spill_gain(sum, r->file != NULL) == 0 ||
        check_folder(r, sum, NULL) != SNUG_OK)
        return false;
    for (sn_storage *s = r->slots, *next; s; s = next) {
        next = s->next_slot;
        if (is_large(s) && to_file(r, s, NULL, NULL) != SNUG_OK)
            break;
        any = any || s->in_file;
    }
    close_unused(r);
    return any;
}

snug_status sn_storage_leave_for_host(snug_recorder *r, sn_storage *s, snug_error *err) {
    SNUG_TRY(sn_alloc(r->engine, s->category, s->bytes, &s->data, err));
    const snug_status status = sn_storage_from_file(r, s, 0, s->data, s->bytes, err);
    if (status != SNUG_OK) {
        sn_storage_leave_host(r, s);
        return status;
    }
    sn_storage_leave_slots(r, s);
    sn_storage_enter_slots(r, s);
    return SNUG_OK;
}

/* --- what plans are asked --------------------------------------------------------------------- */
bool sn_variable_in_file(const snug_variable *v) {
    return v->storage && v->storage->in_file;
}

size_t sn_recording_in_file(const sn_recording *rec) {
    size_t sum = 0;
    for (size_t i = 0; rec->r->in_file && i < rec->n_variable; i++)
        sum += sn_variable_in_file(rec->variable[i]) ? rec->variable[i]->storage->bytes : 0;
    return sum;
}
