/* thread.c: threads with their stacks on the ledger (thread.h). */
#include "memory/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define MOST_STACK_BYTES ((size_t)16 << 20)

static int create_thread(sn_thread *t, const sn_thread_plan *p) {
    pthread_attr_t attr;
    sigset_t all, old;
    int failed = pthread_attr_init(&attr);
    if (failed)
        return failed;
    failed = pthread_attr_setstack(&attr, t->stack.data, t->stack.bytes);
    if (!failed) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        failed = pthread_create(&t->id, &attr, p->work, p->ctx);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    return failed;
}

/* The stack holds the process's thread-local variables, too, and nobody says how large these are:
 * where they do not fit, pthread_create answers EINVAL. */
snug_status sn_thread_start(snug_engine *e, const sn_thread_plan *p, sn_thread *out,
                            snug_error *err) {
    int failed = EINVAL;
    for (size_t bytes = p->stack_bytes; failed == EINVAL && bytes <= MOST_STACK_BYTES; bytes *= 2) {
        const sn_block_options o = {.touched_bytes = SN_STACK_BOOKED};
        SNUG_TRY(sn_block_init(e, SN_MEM_STACKS, p->owner, bytes, &o, &out->stack, err));
        failed = create_thread(out, p);
        if (failed)
            sn_block_clear(&out->stack);
    }
    if (failed)
        return sn_fail(err, SNUG_E_MEMORY,
                       "the system gives no thread for %s: %s; use fewer threads", p->owner,
                       strerror(failed));
    out->live = true;
    return SNUG_OK;
}

void sn_thread_join(sn_thread *t) {
    if (t->live)
        pthread_join(t->id, NULL);
    sn_thread_forget(t);
}

void sn_thread_forget(sn_thread *t) {
    sn_block_clear(&t->stack);
    t->live = false;
}

/* The lowest byte of the thread's stack, found once per thread: the system's answer for the first
 * thread of a process is read from a file. */
static _Thread_local const char *stack_end;

static const char *find_stack_end(void) {
    pthread_attr_t attr;
    void *low = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &bytes))
            low = NULL;
        pthread_attr_destroy(&attr);
    }
    return low;
}

bool sn_stack_is_low(size_t bytes) {
    const char *here = __builtin_frame_address(0);
    if (!stack_end)
        stack_end = find_stack_end();
    return stack_end && (uintptr_t)here - (uintptr_t)stack_end < bytes;
}
