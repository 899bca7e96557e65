/* idle.h: large memory that its owner could do without while it does not work, such as the arena of
 * a model that is not running. Who plans counts it as free, and who has no room takes it.
 *
 *     sn_idle_join(e, &x->idle);                // x->idle.bytes and .give are set
 *     x->idle.busy++; ... x->idle.busy--;       // not now
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
/* Of all that are idle and the calling thread's, but `mine` (may be NULL). */
size_t sn_idle_bytes(snug_engine *e, const sn_idle *mine);
/* Whether that gave anything. */
bool sn_idle_give(snug_engine *e, const sn_idle *mine);

#endif
