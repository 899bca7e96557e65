/* element_store.c: slots of elements, resident or in a file (element_store.h).
 *
 * Invariants:
 * 1. A slot is empty (bytes 0), resident (item), or in the log (item NULL).
 * 2. Which slots are resident depends on the limit; what they give does not.
 * 3. An element that fails to be put stays the caller's. */
#include "data/element_store.h"

#include "base/bytes.h"
#include "base/size.h"
#include "data/log.h"
#include "data/packed.h"
#include "memory/pool.h"

#include <stdio.h>
#include <string.h>

/* Of elements whose sizes differ, what is added for those that are not known yet. */
#define DIFFER_PART 8

/* A resident element: its parts, without the room that a snug_element has for others. */
typedef struct {
    int n;
    int64_t index;
    snug_datum part[];
} item;

typedef struct {
    item *item;
    uint64_t where; /* in the log */
    size_t bytes;   /* of the record, or counted for the item; 0: empty */
} slot;

struct sn_store {
    snug_engine *engine;
    sn_store_plan plan;
    slot *slots;
    size_t n, cap;
    size_t limit_bytes; /* of all stores in memory; 0: none */
    size_t resident_bytes, n_resident, largest_bytes;
    sn_log *log;
    unsigned char *buffer; /* of one record */
    size_t buffer_cap;
};

snug_status sn_store_create(snug_engine *e, const sn_store_plan *plan, sn_store **out,
                            snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(sn_store), &block, err));
    sn_store *s = block;
    s->engine = e;
    s->plan = *plan;
    s->limit_bytes = sn_pool_store(e, plan->folder != NULL);
    *out = s;
    return SNUG_OK;
}

static size_t item_bytes(int n) {
    return sizeof(item) + (size_t)n * sizeof(snug_datum);
}

/* An element of so many bytes more is resident, or fewer (n < 0). */
static void count_bytes(sn_store *s, int64_t n) {
    s->resident_bytes += (size_t)n;
    s->n_resident += n < 0 ? (size_t)-1 : 1;
    sn_pool_keep(s->engine, n, n < 0 ? -1 : 1);
    if (s->plan.place)
        sn_station_hold(s->plan.place, n);
}

static void free_item(sn_store *s, slot *at) {
    count_bytes(s, -(int64_t)at->bytes);
    sn_free(s->engine, SN_MEM_INPUT, at->item, item_bytes(at->item->n));
    *at = (slot){0};
}

void sn_store_destroy(sn_store *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        item *it = s->slots[i].item;
        if (!it)
            continue;
        for (int p = 0; p < it->n; p++)
            snug_datum_drop(&it->part[p]);
        free_item(s, &s->slots[i]);
    }
    sn_log_destroy(s->log);
    sn_free(s->engine, SN_MEM_INPUT, s->slots, s->cap * sizeof *s->slots);
    sn_free(s->engine, SN_MEM_INPUT, s->buffer, s->buffer_cap);
    sn_free(s->engine, SN_MEM_INPUT, s, sizeof *s);
}

/* --- in memory -------------------------------------------------------------------------------- */
static snug_status keep(sn_store *s, slot *at, snug_element *e, size_t counted, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc(s->engine, SN_MEM_INPUT, item_bytes(e->n), &block, err));
    item *it = block;
    it->n = e->n;
    it->index = e->index;
    memcpy(it->part, e->part, (size_t)e->n * sizeof *e->part);
    e->n = 0;
    *at = (slot){.item = it, .bytes = counted};
    count_bytes(s, (int64_t)counted);
    return SNUG_OK;
}

/* --- in the file ------------------------------------------------------------------------------ */
/* Of what is counted: all elements, where their number is known, or else twice as many as the n of
 * so many bytes. Sizes that differ may do so further on. */
static size_t wanted(const sn_store *s, size_t n, size_t now) {
    const size_t all = s->plan.n_elements > 0 ? (size_t)s->plan.n_elements : 2 * n;
    const size_t each = (now + n - 1) / n;
    size_t bytes;
    if (!sn_size_mul(each, all > n ? all : n, &bytes) ||
        (now != n * s->largest_bytes && !sn_size_add(bytes, bytes / DIFFER_PART, &bytes)))
        return SIZE_MAX;
    return bytes;
}

/* "; a budget of 200 MiB would do" for so many bytes in it. */
static void print_enough(const sn_store *s, size_t bytes, char *text, size_t size) {
    char enough[32];
    const size_t budget = sn_pool_store_budget(s->engine, bytes - s->resident_bytes);
    if (budget > 0)
        snprintf(text, size, "; a budget of %s would do%s",
                 sn_bytes_print_up(budget, enough, sizeof enough),
                 s->plan.n_elements > 0 ? "" : " for twice as many");
}

static snug_status fail_limit(const sn_store *s, size_t counted, snug_error *err) {
    const size_t n = s->n_resident + 1, bytes = wanted(s, n, s->resident_bytes + counted);
    char have[32], all[32], whole[64] = "", enough[64] = "";
    if (s->plan.n_elements > 0 && (size_t)s->plan.n_elements > n) {
        snprintf(whole, sizeof whole, "; all %lld would take about ",
                 (long long)s->plan.n_elements);
        snug_bytes_print(bytes, whole + strlen(whole), sizeof whole - strlen(whole));
    }
    print_enough(s, bytes, enough, sizeof enough);
    return sn_fail(err, SNUG_E_BUDGET,
                   "%s holds %zu elements, %s of the %s that it may; the next of %zu bytes does "
                   "not fit%s%s; or give a folder to spill to or a smaller buffer",
                   s->plan.what, s->n_resident,
                   snug_bytes_print(s->resident_bytes, have, sizeof have),
                   snug_bytes_print(s->limit_bytes, all, sizeof all), counted, whole,
                   enough[0] ? enough : "; a larger budget would do");
}

static snug_status spill(sn_store *s, slot *at, snug_element *e, snug_error *err) {
    size_t n = 0;
    uint64_t where;
    SNUG_TRY(sn_packed_bytes(e, &n, err));
    SNUG_TRY(sn_grow(s->engine, SN_MEM_INPUT, &s->buffer, 1, &s->buffer_cap, n, err));
    if (!s->log)
        SNUG_TRY(sn_log_create(s->engine, s->plan.folder, &s->log, err));
    sn_packed_write(e, s->buffer);
    SNUG_TRY(sn_log_add(s->log, s->buffer, n, &where, err));
    *at = (slot){.where = where, .bytes = n};
    snug_element_drop(e);
    return SNUG_OK;
}

static snug_status read_back(sn_store *s, const slot *at, snug_element *out, snug_error *err) {
    SNUG_TRY(sn_log_read(s->log, at->where, at->bytes, s->buffer, err));
    return sn_packed_read(s->engine, s->buffer, at->bytes, out, err);
}

/* What nothing else takes may be asked for beyond the share that there was when the store was made:
 * others may have taken theirs by then, and elements that lie in two stores are there once. */
static bool may_keep(sn_store *s, size_t counted) {
    if (sn_pool_may_keep(s->engine, counted, s->limit_bytes))
        return true;
    if (!s->plan.folder)
        s->limit_bytes = sn_pool_more_store(s->engine, s->limit_bytes, counted);
    return sn_pool_may_keep(s->engine, counted, s->limit_bytes);
}

/* --- slots ------------------------------------------------------------------------------------ */
snug_status sn_store_put(sn_store *s, size_t slot_number, snug_element *e, snug_error *err) {
    const size_t old = s->cap;
    SNUG_TRY(sn_grow(s->engine, SN_MEM_INPUT, &s->slots, sizeof *s->slots, &s->cap, slot_number + 1,
                     err));
    if (s->cap > old)
        memset(s->slots + old, 0, (s->cap - old) * sizeof *s->slots);
    if (slot_number >= s->n)
        s->n = slot_number + 1;
    slot *at = &s->slots[slot_number];
    const size_t own = (size_t)sn_element_bytes(e);
    const size_t counted = item_bytes(e->n) + (own > 0 ? sn_pool_rounded(own) : 0);
    if (counted > s->largest_bytes)
        s->largest_bytes = counted;
    if (may_keep(s, counted))
        return keep(s, at, e, counted, err);
    return s->plan.folder ? spill(s, at, e, err) : fail_limit(s, counted, err);
}

snug_status sn_store_take(sn_store *s, size_t slot_number, snug_element *out, snug_error *err) {
    slot *at = &s->slots[slot_number];
    if (!at->item) {
        SNUG_TRY(read_back(s, at, out, err));
        sn_log_drop(s->log, at->where, at->bytes);
        *at = (slot){0};
        return SNUG_OK;
    }
    out->n = at->item->n;
    out->index = at->item->index;
    memcpy(out->part, at->item->part, (size_t)out->n * sizeof *out->part);
    free_item(s, at);
    return SNUG_OK;
}

snug_status sn_store_copy(sn_store *s, size_t slot_number, snug_element *out, snug_error *err) {
    const slot *at = &s->slots[slot_number];
    if (!at->item)
        return read_back(s, at, out, err);
    out->n = at->item->n;
    out->index = at->item->index;
    memcpy(out->part, at->item->part, (size_t)out->n * sizeof *out->part);
    for (int i = 0; i < out->n; i++)
        snug_datum_hold(&out->part[i]);
    return SNUG_OK;
}

void sn_store_move(sn_store *s, size_t from, size_t to) {
    if (from == to)
        return;
    s->slots[to] = s->slots[from];
    s->slots[from] = (slot){0};
}

/* --- what is to come -------------------------------------------------------------------------- */
size_t sn_store_growth(const snug_dataset *d, size_t most) {
    size_t n_kept, sum = 0, all = most;
    const size_t kept = sn_pool_kept(d->engine, &n_kept);
    if (d->grows && d->cardinality >= 0 && n_kept > 0 &&
        !sn_size_mul((size_t)d->cardinality, kept / n_kept + 1, &all))
        all = most;
    if (d->grows && all > kept)
        sum = (all < most ? all : most) - kept;
    for (int i = 0; i < d->n_before; i++)
        sum += sn_store_growth(d->before[i], most);
    return sum;
}

/* Of an element a part that others may take more; where caches may keep what they want, a store
 * leaves as much again to the stages around it, and nothing is known of a stream without end. */
size_t snug_pipeline_to_come(const snug_dataset *d, size_t *held) {
    enum { WORK_PART = 8, OTHERS_PART = 7, RUNS_BYTES = 1 << 20 };
    if (!d || !held)
        return 0;
    snug_engine *e = d->engine;
    const size_t peak = sn_pool_peak(e), taken = sn_pool_taken(e),
                 work = peak > taken ? peak - taken : 0;
    *held = taken;
    const bool spills = sn_engine_spill_folder(e) != NULL;
    size_t growth = sn_store_growth(d, spills ? sn_pool_store(e, true) : SIZE_MAX);
    if (growth > SIZE_MAX / 2) /* nobody knows */
        growth = 0;
    return work + work / WORK_PART + (growth > 0 ? growth + growth / OTHERS_PART + RUNS_BYTES : 0);
}
