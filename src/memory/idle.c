/* idle.c: the engine's list of memory that can be had back (idle.h). The list is under the ledger's
 * lock; what an entry of the calling thread says and does is not: nobody else touches it. */
#include "memory/idle.h"

#include "memory/private.h"

void sn_idle_join(snug_engine *e, sn_idle *i) {
    i->thread = pthread_self();
    i->prev = NULL;
    sn_ledger_lock(e);
    i->next = e->idle;
    if (i->next)
        i->next->prev = i;
    e->idle = i;
    sn_ledger_unlock(e);
}

void sn_idle_leave(snug_engine *e, sn_idle *i) {
    sn_ledger_lock(e);
    if (i->prev)
        i->prev->next = i->next;
    else
        e->idle = i->next;
    if (i->next)
        i->next->prev = i->prev;
    sn_ledger_unlock(e);
}

/* The next one from *at on that may be taken. */
static sn_idle *next_of(snug_engine *e, sn_idle *at, const sn_idle *mine) {
    sn_ledger_lock(e);
    while (at && (at == mine || at->busy > 0 || !pthread_equal(at->thread, pthread_self())))
        at = at->next;
    sn_ledger_unlock(e);
    return at;
}

size_t sn_idle_bytes(snug_engine *e, const sn_idle *mine) {
    size_t sum = 0;
    for (sn_idle *i = next_of(e, e->idle, mine); i; i = next_of(e, i->next, mine))
        sum += i->bytes(i);
    return sum;
}

bool sn_idle_give(snug_engine *e, const sn_idle *mine) {
    const size_t bytes = sn_idle_bytes(e, mine);
    for (sn_idle *i = next_of(e, e->idle, mine); i; i = next_of(e, i->next, mine))
        i->give(i);
    return bytes > 0;
}
