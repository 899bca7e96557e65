/* thread.h: a thread whose stack is a block on the ledger, so that a byte of it has a name, too.
 *
 *     sn_thread t = {0};
 *     sn_thread_start(e, &(sn_thread_plan){"copy thread 1", 1 << 20, work, ctx}, &t, err);
 *     sn_thread_join(&t);                                  // after making work return */
#ifndef SN_MEMORY_THREAD_H
#define SN_MEMORY_THREAD_H

#include "memory/engine.h"

#include <pthread.h>

typedef struct {
    pthread_t id;
    sn_block stack;
    bool live;
} sn_thread; /* not moved while live */

typedef struct {
    const char *owner;  /* of the stack, on the ledger and in errors */
    size_t stack_bytes; /* at least */
    void *(*work)(void *ctx);
    void *ctx;
} sn_thread_plan;

/* Signals stay with the caller's threads: a Ctrl-C handler must not run on this one. */
SNUG_CHECKED snug_status sn_thread_start(snug_engine *e, const sn_thread_plan *p, sn_thread *out,
                                         snug_error *err);
/* Waits for its end and gives the stack back; legal on zeroed. */
void sn_thread_join(sn_thread *t);
/* Gives the stack back in a process that has no such thread: the child of a fork. */
void sn_thread_forget(sn_thread *t);
/* Whether fewer bytes than these are left of the calling thread's stack: for what calls itself as
 * deep as the user's data say, which then answers with a status. */
bool sn_stack_is_low(size_t bytes);

#endif
