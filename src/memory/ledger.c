/* ledger.c: the account book: one sum and one peak per category, a list of named blocks, one budget
 * over all.
 *
 * Invariants:
 * 1. sn_ledger_ask only looks; sn_ledger_book is called once the bytes are really there. So a
 *    refused or failed request leaves every number as it was.
 * 2. All of it happens under the engine's lock.
 * 3. Rows are ordered by bytes, then category, then owner: the same blocks print the same in any
 *    order made. */
#include "base/size.h"
#include "memory/private.h"

#include <assert.h>
#include <string.h>

static const char *const category_names[SN_N_CATEGORIES] = {
#define CATEGORY_NAME(id, name) name,
    SN_CATEGORY_MAP(CATEGORY_NAME)
#undef CATEGORY_NAME
};

const char *sn_category_name(sn_category cat) {
    assert((size_t)cat < SN_N_CATEGORIES);
    return category_names[cat];
}

void sn_ledger_lock(const snug_engine *e) {
    pthread_mutex_lock(&((snug_engine *)e)->ledger_mutex);
}

void sn_ledger_unlock(const snug_engine *e) {
    pthread_mutex_unlock(&((snug_engine *)e)->ledger_mutex);
}

/* Ties go to the category named first, so that messages do not depend on history. */
static sn_category largest_category(const snug_engine *e) {
    size_t best = 0;
    for (size_t c = 1; c < SN_N_CATEGORIES; c++) {
        if (e->accounts[c].bytes > e->accounts[best].bytes)
            best = c;
    }
    return (sn_category)best;
}

static const sn_block *largest_block(const snug_engine *e, sn_category cat) {
    const sn_block *best = NULL;
    for (const sn_block *b = e->blocks; b; b = b->next) {
        if (b->category != cat)
            continue;
        const bool larger = !best || b->booked_bytes > best->booked_bytes;
        if (larger || (b->booked_bytes == best->booked_bytes && strcmp(b->owner, best->owner) < 0))
            best = b;
    }
    return best;
}

static snug_status fail_budget(const snug_engine *e, const sn_request *r, snug_error *err) {
    const sn_category cat = largest_category(e);
    const sn_block *b = largest_block(e, cat);
    size_t need;
    if (!sn_size_add(e->held_bytes, r->bytes, &need))
        need = SIZE_MAX;
    return sn_fail(
        err, SNUG_E_BUDGET,
        "asked %zu bytes for %s%s%.64s, held %zu, budget %zu; largest holder: %s%s%.64s with %zu; "
        "give a budget of at least %zu bytes",
        r->bytes, sn_category_name(r->category), r->owner[0] ? " " : "", r->owner, e->held_bytes,
        e->budget_bytes, sn_category_name(cat), b ? " " : "", b ? b->owner : "",
        b ? b->booked_bytes : e->accounts[cat].bytes, need);
}

snug_status sn_ledger_fail(const snug_engine *e, const sn_request *r, snug_error *err) {
    return sn_fail(
        err, SNUG_E_MEMORY,
        "the allocator has no %zu bytes for %s%s%.64s (%zu held); free memory or make the model or "
        "batch smaller",
        r->bytes, sn_category_name(r->category), r->owner[0] ? " " : "", r->owner, e->held_bytes);
}

snug_status sn_ledger_ask(snug_engine *e, const sn_request *r, snug_error *err) {
    if (sn_fault_strikes(e, &e->faults.memory, sn_category_name(r->category)))
        return sn_ledger_fail(e, r, err);
    size_t sum;
    if (!sn_size_add(e->held_bytes, r->bytes, &sum))
        return sn_ledger_fail(e, r, err);
    if (e->budget_bytes > 0 && sum > e->budget_bytes)
        return fail_budget(e, r, err);
    return sn_gate_ask(e, r, err);
}

void sn_ledger_book(snug_engine *e, const sn_request *r) {
    sn_account *a = &e->accounts[r->category];
    a->bytes += r->bytes;
    if (a->bytes > a->peak_bytes)
        a->peak_bytes = a->bytes;
    e->held_bytes += r->bytes;
    if (e->held_bytes > e->peak_bytes)
        e->peak_bytes = e->held_bytes;
    if (e->held_bytes > e->marked_peak_bytes)
        e->marked_peak_bytes = e->held_bytes;
}

void sn_ledger_release(snug_engine *e, sn_category cat, size_t bytes) {
    assert(e->accounts[cat].bytes >= bytes);
    e->accounts[cat].bytes -= bytes;
    e->held_bytes -= bytes;
}

snug_status sn_claim(snug_engine *e, sn_category cat, size_t bytes, snug_error *err) {
    const sn_request r = {.category = cat, .owner = "", .bytes = bytes};
    sn_ledger_lock(e);
    const snug_status status = sn_ledger_ask(e, &r, err);
    if (status == SNUG_OK)
        sn_ledger_book(e, &r);
    sn_ledger_unlock(e);
    return status;
}

void sn_unclaim(snug_engine *e, sn_category cat, size_t bytes) {
    sn_ledger_lock(e);
    sn_ledger_release(e, cat, bytes);
    sn_ledger_unlock(e);
}

size_t snug_engine_bytes(const snug_engine *engine) {
    if (!engine)
        return 0;
    sn_ledger_lock(engine);
    const size_t bytes = engine->held_bytes;
    sn_ledger_unlock(engine);
    return bytes;
}

size_t snug_engine_peak_bytes(const snug_engine *engine) {
    if (!engine)
        return 0;
    sn_ledger_lock(engine);
    const size_t bytes = engine->peak_bytes;
    sn_ledger_unlock(engine);
    return bytes;
}

void sn_peak_restart(snug_engine *e) {
    sn_ledger_lock(e);
    e->marked_peak_bytes = e->held_bytes;
    sn_ledger_unlock(e);
}

size_t sn_peak_since(const snug_engine *e) {
    sn_ledger_lock(e);
    const size_t bytes = e->marked_peak_bytes;
    sn_ledger_unlock(e);
    return bytes;
}

static bool row_before(const snug_memory_row *a, const snug_memory_row *b) {
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes;
    const int by_category = strcmp(a->category, b->category);
    return by_category != 0 ? by_category < 0 : strcmp(a->owner, b->owner) < 0;
}

/* Puts row into the sorted rows[0..n), of which at most max are kept. */
static void insert_row(snug_memory_row *rows, size_t n, size_t max, const snug_memory_row *row) {
    size_t at = n < max ? n : max;
    while (at > 0 && row_before(row, &rows[at - 1])) {
        if (at < max)
            rows[at] = rows[at - 1];
        at--;
    }
    if (at < max)
        rows[at] = *row;
}

size_t snug_engine_memory(const snug_engine *engine, snug_memory_row *rows, size_t max) {
    if (!(engine && (rows || max == 0)))
        return 0;
    size_t n = 0;
    sn_ledger_lock(engine);
    for (size_t c = 0; c < SN_N_CATEGORIES; c++) {
        const sn_account *a = &engine->accounts[c];
        if (a->peak_bytes == 0)
            continue;
        if (n < max)
            rows[n] = (snug_memory_row){category_names[c], "", a->bytes, a->peak_bytes};
        n++;
    }
    const size_t n_sums = n;
    for (const sn_block *b = engine->blocks; b; b = b->next) {
        const snug_memory_row row = {sn_category_name(b->category), b->owner, b->booked_bytes,
                                     b->booked_bytes};
        if (n_sums < max)
            insert_row(rows + n_sums, n - n_sums, max - n_sums, &row);
        n++;
    }
    sn_ledger_unlock(engine);
    return n;
}
