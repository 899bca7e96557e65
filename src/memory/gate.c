/* gate.c: every byte asks. A request passes when what the system would count with it, the whole
 * process included, is within the budget of the process.
 *
 *     counted + (on the ledger, but not touched yet) + asked, with its page tables
 *         + what the system's count may be off (sn_process_inexact) <= budget
 *
 * To count is to read a file of the system's and to look at pages: done at each plan, and where so
 * much was granted since the last look that the answer could be another one.
 *
 * Invariants:
 * 1. All of it happens under the ledger's lock.
 * 2. What is granted between two looks is at most a quarter of what was left, or LEAST_GRANT: the
 *    rest is for what grows without asking (an interpreter, libraries) meanwhile.
 * 3. A process that is larger than its budget from the first is not kept here, nor is one that will
 *    be refused: a refusal names what would do, and finding that out may take more than there is,
 *    but not more than the system has left (sn_gate_tell). */
#include "base/bytes.h"
#include "base/file.h"
#include "base/size.h"
#include "memory/limits.h"
#include "memory/private.h"
#include "memory/process.h"

#include <malloc.h>

#define GRANT_PART  4
#define LEAST_GRANT ((size_t)64 << 10)
#define KEPT_BYTES  ((size_t)1 << 20)
#define NEXT_BYTES  ((size_t)1 << 20)
/* What the C library takes beside a small request: its own words and the alignment. */
#define SMALL_EXTRA (SN_ALLOC_ALIGN + 32)

/* What is left once the request is granted; false: nothing is, and how much is missing. */
static bool look(snug_engine *e, const sn_request *r, size_t *left, size_t *missing) {
    const size_t budget = e->process_budget_bytes;
    size_t need = sn_process_beside(e);
    e->gate.beside_bytes = need;
    if (!sn_size_add(need, e->held_bytes, &need) || !sn_size_add(need, r->bytes, &need) ||
        !sn_size_add(need, r->bytes / 512, &need) ||
        !sn_size_add(need, sn_process_inexact(e), &need))
        need = SIZE_MAX;
    *left = need <= budget ? budget - need : 0;
    *missing = need <= budget ? 0 : need - budget;
    return need <= budget;
}

static snug_status refuse(const snug_engine *e, const sn_request *r, size_t missing,
                          snug_error *err) {
    const size_t budget = e->process_budget_bytes;
    size_t enough;
    char asked[24], have[24], beside[24], held[24], need[24];
    /* Where others make bytes, too, more such requests follow, each of them too much; and the next
     * run's process is another by some pages. */
    const size_t next = !e->makes_beside        ? 0
                        : r->bytes < NEXT_BYTES ? NEXT_BYTES
                                                : sn_process_differ(e);
    if (!sn_size_add(budget, missing, &enough) || !sn_size_add(enough, next, &enough) ||
        !sn_size_align(enough, 4096, &enough))
        enough = SIZE_MAX;
    return sn_fail(err, SNUG_E_BUDGET,
                   "out of memory: %s more for %s%s%.64s do not fit the budget of %s: the process "
                   "has %s, tensors, weights and plans have %s. %s would do; or free "
                   "some, or use a smaller batch",
                   snug_bytes_print(r->bytes, asked, sizeof asked), sn_category_name(r->category),
                   r->owner[0] ? " " : "", r->owner, snug_bytes_print(budget, have, sizeof have),
                   snug_bytes_print(e->gate.beside_bytes, beside, sizeof beside),
                   snug_bytes_print(e->held_bytes, held, sizeof held),
                   sn_bytes_print_up(enough, need, sizeof need));
}

/* What the cgroup and the machine have left, less what goes without asking. */
static snug_status ask_system(const sn_request *r, snug_error *err) {
    const size_t room = sn_limits_read(&sn_io_system).room_bytes;
    if (room >= KEPT_BYTES && r->bytes <= room - KEPT_BYTES)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_BUDGET, "the system has no %zu bytes left to plan with", r->bytes);
}

snug_status sn_gate_ask(snug_engine *e, const sn_request *r, snug_error *err) {
    sn_gate *g = &e->gate;
    size_t left, missing;
    if (e->process_budget_bytes == 0 || !g->closed)
        return SNUG_OK;
    if (g->tells)
        return r->bytes < LEAST_GRANT ? SNUG_OK : ask_system(r, err);
    if (r->bytes <= g->grant_bytes && g->grant_bytes - r->bytes >= SMALL_EXTRA) {
        g->grant_bytes -= r->bytes + SMALL_EXTRA;
        return SNUG_OK;
    }
    if (!look(e, r, &left, &missing)) {
        malloc_trim(0); /* free chunks of the C heap count */
        if (!look(e, r, &left, &missing)) {
            g->grant_bytes = 0;
            return refuse(e, r, missing, err);
        }
    }
    const size_t part = left / GRANT_PART;
    g->grant_bytes = part > LEAST_GRANT ? part : left < LEAST_GRANT ? left : LEAST_GRANT;
    return SNUG_OK;
}

void sn_gate_tell(snug_engine *e, bool tells) {
    sn_ledger_lock(e);
    e->gate.tells = tells;
    e->gate.grant_bytes = 0;
    sn_ledger_unlock(e);
}

void sn_gate_set(snug_engine *e) {
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    e->gate = (sn_gate){.closed = sn_process_counted(&p) <= e->process_budget_bytes};
}

/* --- what callers ask ------------------------------------------------------------------------- */
snug_status snug_take(snug_engine *engine, size_t bytes, void **out, snug_error *err) {
    if (!engine || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_take: engine and out must not be NULL");
    return sn_alloc(engine, SN_MEM_ARRAYS, bytes, out, err);
}

snug_status snug_take_zeros(snug_engine *engine, size_t bytes, void **out, snug_error *err) {
    if (!engine || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_take_zeros: engine and out must not be NULL");
    return sn_alloc_zero(engine, SN_MEM_ARRAYS, bytes, out, err);
}

snug_status snug_resize(snug_engine *engine, size_t from, size_t to, void **inout,
                        snug_error *err) {
    if (!engine || !inout || !*inout)
        return sn_fail(err, SNUG_E_INVALID, "snug_resize: engine and *inout must not be NULL");
    return sn_resize(engine, SN_MEM_ARRAYS, from, to, inout, err);
}

void snug_give(snug_engine *engine, void *block, size_t bytes) {
    if (engine)
        sn_free(engine, SN_MEM_ARRAYS, block, bytes);
}

snug_status sn_ask(snug_engine *e, sn_category cat, size_t bytes, const char *what,
                   snug_error *err) {
    const sn_request r = {.category = cat, .owner = what, .bytes = bytes};
    sn_ledger_lock(e);
    e->gate.grant_bytes = 0; /* what is asked here is not booked: to be looked at each time */
    const snug_status status = sn_ledger_ask(e, &r, err);
    sn_ledger_unlock(e);
    return status;
}

snug_status snug_ask(snug_engine *engine, size_t bytes, const char *what, snug_error *err) {
    if (!engine)
        return sn_fail(err, SNUG_E_INVALID, "snug_ask: engine must not be NULL");
    return sn_ask(engine, SN_MEM_ARRAYS, bytes, what ? what : "", err);
}

snug_status snug_claim(snug_engine *engine, size_t bytes, snug_error *err) {
    if (!engine)
        return sn_fail(err, SNUG_E_INVALID, "snug_claim: engine must not be NULL");
    return sn_claim(engine, SN_MEM_ARRAYS, bytes, err);
}

void snug_unclaim(snug_engine *engine, size_t bytes) {
    if (engine)
        sn_unclaim(engine, SN_MEM_ARRAYS, bytes);
}

size_t snug_set_aside(snug_engine *engine, size_t bytes) {
    if (!engine)
        return 0;
    sn_ledger_lock(engine);
    const size_t before = engine->aside_bytes;
    engine->aside_bytes = bytes;
    engine->makes_beside |= bytes > 0;
    sn_ledger_unlock(engine);
    return before;
}

void sn_aside_lend(snug_engine *e, int n) {
    sn_ledger_lock(e);
    e->n_aside_lent += n;
    e->gate.grant_bytes = 0; /* a look counted it, or did not */
    sn_ledger_unlock(e);
}

size_t snug_room(snug_engine *engine) {
    const sn_request nothing = {.category = SN_MEM_ARRAYS, .owner = "", .bytes = 0};
    size_t left = SIZE_MAX, missing;
    if (!engine || engine->process_budget_bytes == 0)
        return left;
    malloc_trim(0);
    sn_ledger_lock(engine);
    (void)look(engine, &nothing, &left, &missing);
    sn_ledger_unlock(engine);
    return left;
}
