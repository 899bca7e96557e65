/* team.c: fork and join without a lock.
 *
 * A region (one sn_team_run) is cut into shares. `open` counts the shares nobody has taken, and how
 * many workers have taken; `left` those that are not finished.
 *
 *     caller   part, ctx, n := ...   left := s   open := s   [take and run shares]   wait: left = 0
 *     worker   wait: open > 0        take: open := open - 1   run   left := left - 1
 *
 * The caller takes shares from the first on, workers from the last on: what a loop leaves in the
 * cache of a core is there for the loop after it. Between cores that is slower than memory.
 *
 * Invariants:
 * 1. Only who has taken a share reads part, ctx, n and n_shares: the region cannot end before that
 *    share is finished, so they do not change meanwhile.
 * 2. `busy` is set while there is a region; who finds it set does its loop alone.
 * 3. No wake-up is lost. A worker counts itself in n_asleep, looks at `open` once more, and sleeps
 *    only while `rung` is as it was before that look; the caller writes `open`, then looks at
 *    n_asleep, then rings. All of it in one order (seq_cst). At the end the caller marks `left`
 *    with WAITING, and who takes it to zero sees the mark. */
#include "memory/team.h"

#include "memory/private.h"
#include "memory/thread.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Kernels keep their scratch in the arena; the largest frame is some tens of KiB. */
#define STACK_BYTES ((size_t)256 << 10)
/* A loop follows the one before within microseconds, or after something long. */
#define SPIN_NS 20000
/* More shares than threads: when one is late the others take over. */
#define SHARES_PER_THREAD 4
#define WAITING           0x80000000u
/* `open`: shares nobody has taken, and TAKEN for each that a worker has. */
#define OPEN  0xffffu
#define TAKEN 0x10000u

struct sn_team {
    snug_engine *engine;
    pid_t process;
    int n_workers;
    atomic_bool busy;
    /* the region */
    sn_items part;
    const void *ctx;
    int64_t n;
    uint32_t n_shares;
    _Alignas(64) atomic_uint open;
    _Alignas(64) atomic_uint left;
    _Alignas(64) atomic_uint rung;
    atomic_uint n_asleep;
    atomic_bool quit;
    sn_thread workers[]; /* n_workers */
};

/* --- waiting ---------------------------------------------------------------------------------- */

static void futex_wait(atomic_uint *word, unsigned seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static void pause_core(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether it came within the time a thread may spin. */
static bool spin_until(bool (*came)(sn_team *t), sn_team *t) {
    const int64_t start = now_ns();
    do {
        for (int i = 0; i < 16; i++) {
            if (came(t))
                return true;
            pause_core();
        }
    } while (now_ns() - start < SPIN_NS);
    return came(t);
}

/* --- shares ----------------------------------------------------------------------------------- */

static bool take_share(sn_team *t, bool worker, uint32_t *share) {
    unsigned open = atomic_load(&t->open);
    while ((open & OPEN) > 0) {
        const unsigned taken = open / TAKEN;
        if (atomic_compare_exchange_weak(&t->open, &open, open - 1 + (worker ? TAKEN : 0))) {
            *share = worker ? t->n_shares - 1 - taken : t->n_shares - (open & OPEN) - taken;
            return true;
        }
    }
    return false;
}

static int64_t first_of(const sn_team *t, uint32_t share) {
    return t->n / t->n_shares * share + t->n % t->n_shares * share / t->n_shares;
}

static void work_on_shares(sn_team *t, bool worker) {
    uint32_t share;
    while (take_share(t, worker, &share)) {
        t->part(t->ctx, first_of(t, share), first_of(t, share + 1));
        if (atomic_fetch_sub(&t->left, 1) == (WAITING | 1))
            futex_wake(&t->left, 1);
    }
}

/* --- workers ---------------------------------------------------------------------------------- */

static bool has_news(sn_team *t) {
    return (atomic_load(&t->open) & OPEN) > 0 || atomic_load(&t->quit);
}

static void sleep_until_rung(sn_team *t) {
    const unsigned rung = atomic_load(&t->rung);
    atomic_fetch_add(&t->n_asleep, 1);
    if (!has_news(t))
        futex_wait(&t->rung, rung);
    atomic_fetch_sub(&t->n_asleep, 1);
}

static void *work(void *ctx) {
    sn_team *t = ctx;
    while (!atomic_load(&t->quit)) {
        if (!spin_until(has_news, t))
            sleep_until_rung(t);
        work_on_shares(t, true);
    }
    return NULL;
}

static void ring(sn_team *t) {
    atomic_fetch_add(&t->rung, 1);
    futex_wake(&t->rung, t->n_workers);
}

/* --- regions ---------------------------------------------------------------------------------- */

static bool is_over(sn_team *t) {
    return (atomic_load(&t->left) & ~WAITING) == 0;
}

static void wait_for_others(sn_team *t) {
    if (spin_until(is_over, t))
        return;
    atomic_fetch_or(&t->left, WAITING);
    for (unsigned left; (left = atomic_load(&t->left)) != WAITING;)
        futex_wait(&t->left, left);
}

void sn_team_run(sn_team *t, int64_t n, sn_items part, const void *ctx) {
    if (n <= 0)
        return;
    if (!t || n == 1 || t->process != getpid() || atomic_exchange(&t->busy, true)) {
        part(ctx, 0, n);
        return;
    }
    const int64_t wanted = (int64_t)SHARES_PER_THREAD * (t->n_workers + 1);
    const int64_t most = wanted < OPEN ? wanted : OPEN;
    t->part = part;
    t->ctx = ctx;
    t->n = n;
    t->n_shares = (uint32_t)(n < most ? n : most);
    atomic_store(&t->left, t->n_shares);
    atomic_store(&t->open, t->n_shares);
    if (atomic_load(&t->n_asleep) > 0)
        ring(t);
    work_on_shares(t, false);
    wait_for_others(t);
    atomic_store(&t->busy, false);
}

/* --- life ------------------------------------------------------------------------------------- */

static size_t team_bytes(int n_workers) {
    return sizeof(sn_team) + (size_t)n_workers * sizeof(sn_thread);
}

snug_status sn_team_create(snug_engine *e, int n_threads, sn_team **out, snug_error *err) {
    void *block;
    if (n_threads < 2) {
        *out = NULL;
        return SNUG_OK;
    }
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_OTHER, team_bytes(n_threads - 1), &block, err));
    sn_team *t = block;
    t->engine = e;
    t->process = getpid();
    t->n_workers = n_threads - 1;
    snug_status status = SNUG_OK;
    for (int i = 0; i < t->n_workers && status == SNUG_OK; i++) {
        char owner[32];
        snprintf(owner, sizeof owner, "thread %d", i + 1);
        status =
            sn_thread_start(e, &(sn_thread_plan){owner, STACK_BYTES, work, t}, &t->workers[i], err);
    }
    if (status == SNUG_OK)
        *out = t;
    else
        sn_team_destroy(t);
    return status;
}

void sn_team_destroy(sn_team *t) {
    if (!t)
        return;
    const bool here = t->process == getpid();
    atomic_store(&t->quit, true);
    if (here)
        ring(t);
    for (int i = 0; i < t->n_workers; i++)
        (here ? sn_thread_join : sn_thread_forget)(&t->workers[i]);
    sn_free(t->engine, SN_MEM_OTHER, t, team_bytes(t->n_workers));
}

/* --- copying ---------------------------------------------------------------------------------- */
enum { LARGE = 1 << 18, PAGE = 4096 }; /* from LARGE on it is worth waking others */

typedef struct {
    char *to;
    const char *from;
    size_t bytes;
} large_copy;

static void copy_pages(const void *ctx, int64_t first, int64_t end) {
    const large_copy *l = ctx;
    const size_t at = (size_t)first * PAGE, stop = (size_t)end * PAGE;
    memcpy(l->to + at, l->from + at, (stop < l->bytes ? stop : l->bytes) - at);
}

void sn_team_copy(sn_team *t, void *to, const void *from, size_t bytes) {
    const large_copy copy = {to, from, bytes};
    if (bytes >= LARGE)
        sn_team_run(t, (int64_t)((bytes + PAGE - 1) / PAGE), copy_pages, &copy);
    else if (bytes > 0)
        memcpy(to, from, bytes);
}

/* --- the engine's own ------------------------------------------------------------------------- */
snug_status sn_team_hold(snug_engine *e, sn_team **out, snug_error *err) {
    sn_team *team = NULL;
    snug_status status = SNUG_OK;
    pthread_mutex_lock(&e->team_mutex);
    if (e->n_team_holders == 0) {
        status = sn_team_create(e, e->n_threads, &team, err);
        e->team = team;
    }
    if (status == SNUG_OK) {
        e->n_team_holders++;
        *out = e->team;
    }
    pthread_mutex_unlock(&e->team_mutex);
    return status;
}

void sn_team_drop(snug_engine *e) {
    pthread_mutex_lock(&e->team_mutex);
    if (--e->n_team_holders == 0) {
        sn_team_destroy(e->team);
        e->team = NULL;
    }
    pthread_mutex_unlock(&e->team_mutex);
}

sn_team *sn_team_of(const snug_engine *e) {
    return e->team;
}
