/* idle.c: the engine's list of memory that can be had back (idle.h).
 *
 * Invariants:
 * 1. List, users and threads are read and written under idle_mutex, which is held while an entry
 *    gives, too: who begins to use it meanwhile waits until that is over.
 * 2. It is taken before the ledger's lock, never under it. */
#include "memory/idle.h"

#include "memory/private.h"

void sn_idle_join(snug_engine *e, sn_idle *i) {
    i->thread = pthread_self();
    i->prev = NULL;
    pthread_mutex_lock(&e->idle_mutex);
    i->next = e->idle;
    if (i->next)
        i->next->prev = i;
    e->idle = i;
    pthread_mutex_unlock(&e->idle_mutex);
}

void sn_idle_leave(snug_engine *e, sn_idle *i) {
    pthread_mutex_lock(&e->idle_mutex);
    if (i->prev)
        i->prev->next = i->next;
    else
        e->idle = i->next;
    if (i->next)
        i->next->prev = i->prev;
    pthread_mutex_unlock(&e->idle_mutex);
}

void sn_idle_use(snug_engine *e, sn_idle *i, int users) {
    pthread_mutex_lock(&e->idle_mutex);
    i->busy += users;
    i->thread = pthread_self();
    pthread_mutex_unlock(&e->idle_mutex);
}

/* The next one from `at` on that may be taken. */
static sn_idle *next_of(sn_idle *at, const sn_idle *mine) {
    while (at && (at == mine || at->busy > 0 || !pthread_equal(at->thread, pthread_self())))
        at = at->next;
    return at;
}

/* What they have; they give it if asked to. */
static size_t each_idle(snug_engine *e, const sn_idle *mine, bool gives) {
    size_t sum = 0;
    pthread_mutex_lock(&e->idle_mutex);
    for (sn_idle *i = next_of(e->idle, mine); i; i = next_of(i->next, mine)) {
        sum += i->bytes(i);
        if (gives)
            i->give(i);
    }
    pthread_mutex_unlock(&e->idle_mutex);
    return sum;
}

size_t sn_idle_bytes(snug_engine *e, const sn_idle *mine) {
    return each_idle(e, mine, false);
}

bool sn_idle_give(snug_engine *e, const sn_idle *mine) {
    return each_idle(e, mine, true) > 0;
}
