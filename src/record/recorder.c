/* recorder.c: the recorder: what it is made of and how it goes, its settings, and what it says. */
#include "record/recording.h"

static snug_status fill_recorder(snug_recorder *r, snug_error *err) {
    const sn_device *device = &r->device.device;
    sn_cpu_device_of(r->engine, &r->device);
    SNUG_TRY(sn_state_create(r->engine, &r->state, err));
    const sn_executor_options o = {
        .spill_folder = sn_engine_spill_folder(r->engine), .alone = r->worker, .gives = !r->worker};
    SNUG_TRY(sn_executor_create(r->engine, r->state, &device, 1, &o, &r->executor, err));
    SNUG_TRY(sn_card_open(r, &o, err));
    SNUG_TRY(sn_seat_add(r, 0, &r->seat, err));
    r->main = r->now = r->seat->main;
    return SNUG_OK;
}

static void clear_recorder(snug_recorder *r) {
    sn_cache_clear(r);
    sn_seat_clear(r);
    sn_storage_free_left(r);
    sn_recording_drop_spare(r);
    sn_executor_destroy(r->executor);
    sn_card_stop(r);
    sn_state_destroy(r->state);
    r->executor = NULL;
    r->state = NULL;
}

static void free_recorder(snug_recorder *r) {
    sn_numbers_clear(&r->sequences);
    sn_card_close(r);
    sn_sets_clear(r);
    sn_free(r->engine, SN_MEM_OTHER, r, sizeof *r);
}

static snug_status create(snug_engine *engine, bool worker, snug_recorder **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_OTHER, sizeof **out, &block, err));
    snug_recorder *r = block;
    r->engine = engine;
    r->worker = worker;
    r->side = &sn_host_side;
    r->n_sides = 1;
    r->sequences = (sn_numbers){.engine = engine, .category = SN_MEM_OTHER};
    const snug_status status = fill_recorder(r, err);
    if (status != SNUG_OK) {
        clear_recorder(r);
        free_recorder(r);
        return status;
    }
    *out = r;
    return SNUG_OK;
}

snug_status snug_recorder_create(snug_engine *engine, snug_recorder **out, snug_error *err) {
    SNUG_NEEDS(err, engine && out);
    return create(engine, false, out, err);
}

snug_status sn_recorder_create_worker(snug_engine *engine, snug_recorder **out, snug_error *err) {
    return create(engine, true, out, err);
}

void sn_recorder_let_go(snug_recorder *r) {
    if (!r->closed || r->live_tensors > 0)
        return;
    while (r->free_tensors) {
        snug_tensor *t = r->free_tensors;
        r->free_tensors = t->twin;
        sn_free(r->engine, SN_MEM_TENSORS, t, sizeof *t);
    }
    free_recorder(r);
}

void snug_recorder_destroy(snug_recorder *r) {
    if (!r)
        return;
    r->live_tensors++; /* until the end of this function */
    r->closed = true;
    clear_recorder(r);
    r->live_tensors--;
    sn_recorder_let_go(r);
}

snug_engine *snug_recorder_engine(const snug_recorder *r) {
    return r ? r->engine : NULL;
}

void snug_recorder_set_site(snug_recorder *r, uint64_t site) {
    if (r)
        r->site = site;
}

void snug_recorder_set_hooks(snug_recorder *r, const snug_recorder_hooks *hooks) {
    if (!(r && hooks))
        return;
    r->hooks = *hooks;
}

snug_status snug_sync(snug_recorder *r, snug_error *err) {
    SNUG_NEEDS(err, r);
    return sn_seat_flush_all(r, err);
}

/* Whether nobody can ask for what was recorded any more, but for fills and draws, which stay
 * recipes: as after calls that failed, whose nodes would stay until the next read. Looked at each
 * time that there are twice as many. */
static bool is_forgotten(sn_recording *rec) {
    enum { FEW = 64 };
    if (rec->n_values < FEW || rec->n_values < 2 * rec->looked || rec->r->n_open_tapes > 0)
        return false;
    rec->looked = rec->n_values;
    sn_recipe recipe;
    for (uint32_t v = 0; v < rec->n_values; v++)
        if (rec->handle[v] && !sn_recording_recipe(rec, (sn_value){v}, &recipe))
            return false;
    return true;
}

snug_status snug_boundary(snug_recorder *r, snug_error *err) {
    SNUG_NEEDS(err, r);
    const bool ends = r->now == r->main && (r->main->has_effects || is_forgotten(r->main));
    return ends ? sn_flush(r, err) : SNUG_OK;
}

/* Of leaves that only recordings hold, brought there for tapes. */
static size_t tape_bytes(const snug_recorder *r) {
    size_t sum = 0;
    for (const sn_seat *s = r->seats; s; s = s->next) {
        const sn_recording *rec = sn_seat_main(r, s);
        for (size_t i = 0; i < rec->n_brought; i++)
            if (rec->leaf[i].storage && rec->leaf[i].storage->refs == 1)
                sum += rec->leaf[i].storage->bytes;
    }
    return sum;
}

void snug_recorder_tell(snug_recorder *r, snug_recorder_info *out) {
    if (!(r && out))
        return;
    sn_storage_free_left(r);
    *out = r->info;
    out->tape_bytes = tape_bytes(r);
    for (const sn_storage *s = r->in_file; s; s = s->next_slot)
        out->spilled_bytes += s->bytes;
    out->n_nodes = r->main->n_nodes;
    out->n_plans = r->n_entries;
    out->tensor_bytes = r->tensor_bytes;
    out->variable_bytes = r->variable_bytes;
    out->arena_bytes = sn_executor_arena(r->executor, SN_MEM_FIRST_ARENA).bytes;
    out->miss = r->miss;
}
