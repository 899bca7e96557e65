/* share.c: what is left of a budget (share.h). */
#include "budget/share.h"

#include "base/bytes.h"
#include "base/size.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lapack.h"

/* What a run needs of code is there before the process is measured. */
static snug_status settle(snug_engine *e, const sn_share_need *need, snug_error *err) {
    if (!sn_process_is_settled(e, SN_SETTLED_CODE))
        sn_cpu_settle_code();
    SNUG_TRY(sn_lapack_warm(e, err));
    if (*sn_lapack_version())
        (void)sn_process_is_settled(e, SN_SETTLED_LAPACK);
    if (need->code_bytes == 0 || sn_process_is_settled(e, SN_SETTLED_LIBRARY))
        return SNUG_OK;
    return sn_onednn_warm(e, snug_engine_threads(e), err);
}

/* What is left beside all others. */
static void divide(sn_share *s) {
    size_t taken = s->process;
    if (!sn_size_add(taken, s->tables, &taken) || !sn_size_add(taken, s->state, &taken) ||
        !sn_size_add(taken, s->books, &taken))
        taken = SIZE_MAX;
    s->arena = taken < s->budget ? s->budget - taken : 0;
    s->missing = taken < s->budget ? 0 : taken - s->budget;
}

snug_status sn_share_find(snug_engine *e, size_t budget, const sn_share_need *need, sn_share *out,
                          snug_error *err) {
    sn_process_booking booking;
    const sn_process_need process = {.code_bytes = need->code_bytes};
    SNUG_TRY(settle(e, need, err));
    SNUG_TRY(sn_process_book(e, &process, &booking, err));
    sn_share s = {.budget = budget,
                  .process = booking.booked_bytes,
                  .expected = booking.predicted_bytes,
                  .tables = sn_process_tables(budget),
                  .differ = sn_process_differ(e),
                  .state = need->state,
                  .books = need->books};
    divide(&s);
    *out = s;
    return SNUG_OK;
}

size_t sn_share_of_card(const sn_gpu_facts *f, size_t asked) {
    const size_t whole = f->context_bytes + f->held_bytes + f->free_bytes;
    return asked > 0 && asked < whole ? asked : whole;
}

/* The margin is the block in which an executor has the parameters of its runs: some KiB, and as any
 * block it takes a granule. Nothing else is made there that the need has not in it. */
void sn_share_find_card(const sn_gpu_facts *f, size_t budget, const sn_share_need *need,
                        sn_share *out) {
    const size_t margin = f->granule_bytes;
    sn_share s = {.budget = budget,
                  .process = f->context_bytes + need->code_bytes,
                  .state = sn_gpu_granules(f, need->state),
                  .granule = f->granule_bytes};
    if (!sn_size_add(need->books, margin, &s.books))
        s.books = SIZE_MAX;
    divide(&s);
    s.arena -= s.arena % s.granule;
    *out = s;
}

size_t sn_share_budget(const sn_share *s, size_t arena_bytes) {
    const size_t sum = s->process + s->state + s->books + arena_bytes + s->differ;
    size_t budget = sum;
    if (s->granule > 0)
        return (sum / s->granule + 2) * s->granule;
    while (budget < sum + sn_process_tables(budget))
        budget = sum + sn_process_tables(budget);
    return sn_in_pages(budget);
}

snug_status snug_budget_check(snug_engine *engine, size_t bytes, snug_error *err) {
    if (!engine)
        return sn_fail(err, SNUG_E_INVALID, "snug_budget_check: engine must not be NULL");
    const size_t budget = snug_budget_bytes(engine);
    const sn_share_need need = {.books = snug_engine_bytes(engine)};
    sn_share share;
    char have[24], taken[24], enough[24];
    if (budget == 0)
        return SNUG_OK;
    SNUG_TRY(sn_share_find(engine, budget, &need, &share, err));
    if (share.arena > bytes)
        return SNUG_OK;
    const size_t least = sn_share_budget(&share, bytes);
    return sn_fail(
        err, SNUG_E_BUDGET,
        "a budget of %s is below the %s that this process needs before it computes "
        "anything: %s would do for that",
        snug_bytes_print(budget, have, sizeof have),
        snug_bytes_print(budget + share.missing - share.arena + bytes, taken, sizeof taken),
        sn_bytes_print_up(least, enough, sizeof enough));
}
