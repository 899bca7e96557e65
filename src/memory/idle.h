/* idle.h: large memory that its owner could do without while it does not work, such as the arena of
 * a model that is not running. Who plans counts it as free, and who has no room takes it.
 *
 *     sn_idle_join(e, &x->idle);                // x->idle.bytes and .give are set
 *     sn_idle_use(e, &x->idle, 1);              // not now
 *     sn_idle_use(e, &x->idle, -1);             // from now on again
 *     sn_idle_bytes(e, &mine)                   // what others could give
 *     sn_idle_give(e, &mine);                   // and do
 *     sn_idle_leave(e, &x->idle);
 *
 * Only what was last used by the calling thread is taken: others may be at work there. */
#ifndef SN_MEMORY_IDLE_H
#define SN_MEMORY_IDLE_H

#include "memory/engine.h"

#include <pthread.h>

typedef struct sn_idle {
    size_t (*bytes)(const struct sn_idle *i);
    void (*give)(struct sn_idle *i); /* all of them, at once */
    int busy;
    pthread_t thread; /* that used it last */
    struct sn_idle *next, *prev;
} sn_idle;

void sn_idle_join(snug_engine *e, sn_idle *i);
void sn_idle_leave(snug_engine *e, sn_idle *i);
/* So many users more, or fewer (users < 0); it is the calling thread's from now on, also for 0.
 * Waits while another thread takes what it has. */
void sn_idle_use(snug_engine *e, sn_idle *i, int users);
/* Of all that are idle and the calling thread's, but `mine` (may be NULL). */
size_t sn_idle_bytes(snug_engine *e, const sn_idle *mine);
/* Whether that gave anything. */
bool sn_idle_give(snug_engine *e, const sn_idle *mine);

#endif
