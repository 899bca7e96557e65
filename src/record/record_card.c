/* record_card.c: a card as the side where recorded steps run: room and plans there, and what the
 * recorder has of it. Where bytes lie is record_place.c. */
#include "record/card.h"

#include "base/bytes.h"
#include "base/size.h"

#include <stdio.h>

#define LEAST_THERE ((size_t)1 << 20) /* bytes that are copied to a card at once */

/* --- life ------------------------------------------------------------------------------------- */
static const sn_side card_side;

snug_status sn_card_open(snug_recorder *r, const sn_executor_options *o, snug_error *err) {
    sn_gpu_device *const gpu = r->worker ? NULL : sn_engine_gpu(r->engine);
    void *block;
    if (!gpu)
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(r->engine, SN_MEM_OTHER, sizeof *r->card, &block, err));
    r->card = block;
    r->card->gpu = gpu;
    r->side = &card_side;
    r->n_sides = 2;
    gpu->n_users++;
    const sn_device *device = &gpu->device;
    return sn_executor_create(r->engine, r->state, &device, 1, o, &r->card->executor, err);
}

void sn_card_stop(snug_recorder *r) {
    if (!r->card)
        return;
    sn_card_end_ahead(r, true);
    sn_executor_destroy(r->card->executor);
    r->card->executor = NULL;
}

/* Tensors that outlive the recorder may lie there. */
void sn_card_close(snug_recorder *r) {
    if (!r->card)
        return;
    r->card->gpu->n_users--;
    sn_free(r->engine, SN_MEM_OTHER, r->card, sizeof *r->card);
    r->card = NULL;
}

/* --- room ------------------------------------------------------------------------------------- */
static bool card_left(const snug_recorder *r, size_t *bytes) {
    if (sn_gpu_room(r->card->gpu, bytes, NULL) != SNUG_OK)
        return false;
    *bytes += sn_executor_arena(r->card->executor, SN_MEM_FIRST_ARENA).bytes;
    return true;
}

void sn_card_trim(snug_recorder *r) {
    if (!r->card)
        return;
    sn_executor_forget(r->card->executor);
    sn_gpu_pool_trim(r->card->gpu);
}

static bool drop_plans(snug_recorder *r, sn_entry **found) {
    const size_t before = r->n_entries;
    *found = NULL;
    sn_cache_keep(r, &card_side, NULL, 0);
    if (r->n_entries == before)
        return false;
    sn_card_trim(r);
    return true;
}

/* All that is held there, but for the arena and idle chunks, which go where a plan wants them. */
static size_t held_bytes(const snug_recorder *r) {
    const sn_gpu_facts *const f = &r->card->gpu->facts;
    const size_t arena = sn_executor_arena(r->card->executor, SN_MEM_FIRST_ARENA).bytes;
    sn_gpu_pool_info pool;
    sn_gpu_pool_tell(r->card->gpu, &pool);
    return f->held_bytes - pool.idle_bytes - sn_gpu_granules(f, arena);
}

/* What captured runs and libraries take is known with the plan. */
static snug_status card_find_room(snug_recorder *r, const sn_recording *rec, size_t extra,
                                  size_t *room, snug_error *err) {
    const sn_gpu_facts *const f = &r->card->gpu->facts;
    sn_share_need need = {.books = sn_gpu_pool_slack(r->card->gpu) + sn_cache_slots(r)};
    (void)rec;
    SNUG_TRY(sn_gpu_look(r->card->gpu, err));
    if (!sn_size_add(need.books, held_bytes(r), &need.books) ||
        !sn_size_add(need.books, extra, &need.books) || need.books > SIZE_MAX / 2)
        return sn_fail(err, SNUG_E_OVERFLOW, "the results of this step exceed the address space");
    sn_share_find_card(f, sn_share_of_card(f, r->card->gpu->budget_bytes), &need, &r->share);
    *room = r->share.arena > 0 ? r->share.arena : 1;
    return SNUG_OK;
}

/* What does not fit any more goes when there is no room for another plan. */
static void card_keep_within(snug_recorder *r, size_t room) {
    (void)r, (void)room;
}

/* --- planning --------------------------------------------------------------------------------- */
static snug_status card_refuse(const snug_recorder *r, const sn_recording *rec,
                               const sn_plan_floor *floor, size_t extra, snug_error *err) {
    const size_t held = r->card->tensor_bytes + r->card->variable_bytes,
                 budget = r->card->gpu->budget_bytes;
    sn_share share = r->share;
    share.process += r->card->reserve_bytes;
    const size_t enough = sn_share_budget(&share, floor->bytes);
    const size_t more = enough > share.budget ? enough - share.budget : 0;
    char arena[24], outputs[24], rest[24], there[24], least[24], have[48] = "", value[320];
    if (budget > 0)
        snprintf(have, sizeof have, " of its budget of %s",
                 snug_bytes_print(budget, there, sizeof there));
    return sn_fail(
        err, SNUG_E_BUDGET,
        "out of memory on %s: this step (its largest value: %s) needs %s beside %s for its "
        "results; %s%s is left, %s is held by tensors and variables there. It wants %s more; or "
        "use a smaller batch, drop tensors that are no longer needed",
        r->card->gpu->device.name, sn_cache_largest(rec, value, sizeof value),
        snug_bytes_print(floor->bytes, arena, sizeof arena),
        snug_bytes_print(extra, outputs, sizeof outputs),
        snug_bytes_print(sn_cache_left(&share, extra), rest, sizeof rest), have,
        snug_bytes_print(held, there, sizeof there), snug_bytes_print(more, least, sizeof least));
}

/* What the plan takes of the card when it first runs. The arena has the rest, in granules. */
static void measure(void *ctx, const sn_plan *plain, sn_room_size *out) {
    snug_recorder *const r = ctx;
    r->card->reserve_bytes =
        sn_gpu_granules(&r->card->gpu->facts, sn_gpu_reserve(r->card->gpu, plain));
    out->beside = r->card->reserve_bytes;
}

static snug_status card_plan(snug_recorder *r, const sn_room_ask *ask, sn_entry *e,
                             sn_room_made *made, snug_error *err) {
    sn_room_ask own = *ask;
    own.measure = measure;
    own.ctx = r;
    SNUG_TRY(sn_room_plan(r->engine, &own, made, err));
    e->reserve = r->card->reserve_bytes;
    return SNUG_OK;
}

/* --- bytes ------------------------------------------------------------------------------------ */
static unsigned char *card_bytes(const sn_storage *s) {
    return s->on_card ? s->on_card->data : NULL;
}

static snug_status card_copy_part(snug_recorder *r, const sn_storage *from, size_t offset,
                                  const sn_storage *to, snug_error *err) {
    const bool within = from->on_card != NULL;
    const unsigned char *bytes = within ? from->on_card->data : from->data;
    return sn_gpu_send(r->card->gpu, within ? SN_GPU_WITHIN : SN_GPU_TO, to->on_card->data,
                       bytes + offset, to->bytes, err);
}

static bool card_reads_from(size_t offset) {
    return offset % SN_GPU_ALIGN == 0;
}

static void card_wrote(snug_recorder *r, sn_storage *s) {
    if (s->on_card && s->data)
        sn_storage_leave_host(r, s);
}

static size_t card_taken(const snug_recorder *r, size_t bytes) {
    return sn_gpu_pool_bytes(r->card->gpu, bytes);
}

static bool may_stay(const sn_storage *s) {
    return s->data && !s->on_card;
}

static snug_status leave(snug_recorder *r, sn_storage *s, snug_error *err) {
    if (!s->on_card)
        return SNUG_OK;
    SNUG_TRY(sn_storage_to_host(r, s, err));
    sn_storage_leave_card(r, s);
    return SNUG_OK;
}

/* A large one, where it takes the smaller part of what is left: larger ones may be read in
 * parts. */
static bool card_copy(snug_recorder *r, const snug_type *type, const void *data,
                      snug_tensor **out) {
    size_t bytes, left;
    sn_storage *s;
    snug_tensor *t;
    if (r->on_host || r->now->outer || sn_type_check(type, false, NULL) != SNUG_OK ||
        snug_type_bytes(type, &bytes, NULL) != SNUG_OK || bytes < LEAST_THERE ||
        (r->fed_bytes > 0 && bytes >= r->fed_bytes) ||
        sn_gpu_room(r->card->gpu, &left, NULL) != SNUG_OK || bytes > left / 2 ||
        sn_storage_create_on_card(r, SN_MEM_TENSORS, bytes, &s, NULL) != SNUG_OK)
        return false;
    if (sn_gpu_send(r->card->gpu, SN_GPU_TO, s->on_card->data, data, bytes, NULL) != SNUG_OK ||
        sn_tensor_create(r, type, &t, NULL) != SNUG_OK) {
        sn_storage_drop(r, s);
        return false;
    }
    sn_tensor_make_ready(t, s, 0);
    *out = t;
    return true;
}

/* --- runs ------------------------------------------------------------------------------------- */
static const sn_device *card_device(const snug_recorder *r) {
    return &r->card->gpu->device;
}

static sn_executor *card_executor(const snug_recorder *r) {
    return r->card->executor;
}

/* The arena is as large as the largest plan at hand wants it; where that is too much, only this one
 * stays. */
static snug_status card_prepare(snug_recorder *r, const sn_entry *e, snug_error *err) {
    snug_status status = sn_executor_prepare(r->card->executor, err);
    if (status == SNUG_E_BUDGET || status == SNUG_E_MEMORY) {
        sn_cache_keep(r, &card_side, e, 0);
        sn_executor_forget(r->card->executor);
        status = sn_executor_prepare(r->card->executor, err);
    }
    if (status == SNUG_OK) /* where the pool cannot help, the driver says so */
        (void)sn_gpu_has_beside(r->card->gpu, e->reserve);
    return status;
}

static void card_before(snug_recorder *r, sn_session *s) {
    sn_card_note_peak(r);
    sn_session_set_meanwhile(s, r->card->n_ahead > 0 ? sn_card_bring_ahead : NULL, r);
}

static const sn_feeding card_feeding = {.may_stay = may_stay,
                                        .leave = leave,
                                        .left = card_left,
                                        .drop_doubles = sn_card_drop_doubles,
                                        .drop_plans = drop_plans};

static const sn_side card_side = {.word = 1,
                                  .feeds = &card_feeding,
                                  .device = card_device,
                                  .executor = card_executor,
                                  .bytes = card_bytes,
                                  .create = sn_storage_create_on_card,
                                  .bring = sn_storage_to_card,
                                  .copy_part = card_copy_part,
                                  .reads_from = card_reads_from,
                                  .taken = card_taken,
                                  .wrote = card_wrote,
                                  .copy = card_copy,
                                  .find_room = card_find_room,
                                  .keep_within = card_keep_within,
                                  .plan = card_plan,
                                  .refuse = card_refuse,
                                  .prepare = card_prepare,
                                  .before = card_before,
                                  .after = sn_card_end_ahead};
