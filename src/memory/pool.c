/* pool.c: free buffers by size class (pool.h). Eight classes between two powers of two, so that
 * rounding up costs at most an eighth; sixty-four from 64 KiB on.
 *
 * Invariants:
 * 1. A free buffer's first bytes point to the next of its class.
 * 2. What is taken and free together is never more than the most that was taken at once and
 *    SLACK_BYTES; free buffers never take it past a limit. So keeping them makes a pipeline little
 *    larger than it was, and files of different sizes do not empty the pool at each new size.
 * 3. Below SMALL_BYTES nothing is kept: the C library does that as well. */
#include "memory/pool.h"

#include "base/size.h"
#include "memory/private.h"

#include <string.h>

#define SMALL_BYTES ((size_t)4096)
#define SLACK_BYTES ((size_t)4 << 20)
/* What stores without a file leave to the stages around them. */
#define OTHERS_PART 8
/* By how much the room of equal runs may differ. */
#define RUNS_BYTES ((size_t)1 << 20)

/* Powers of two, and classes between two of them. */
#define FIRST_LOG 12
#define FINE_LOG  16

/* Rounds up to a class and names it. */
static bool find_class(size_t bytes, size_t *rounded, size_t *class_index) {
    if (bytes < SMALL_BYTES) {
        *rounded = bytes;
        return true;
    }
    const unsigned log = 63u - (unsigned)__builtin_clzll(bytes);
    const size_t step = (size_t)1 << (log - (log < FINE_LOG ? 3 : 6));
    if (!sn_size_align(bytes, step, rounded))
        return false;
    const unsigned top = 63u - (unsigned)__builtin_clzll(*rounded);
    *class_index = top < FINE_LOG
                       ? (size_t)(top - FIRST_LOG) * 8 + (*rounded >> (top - 3)) % 8
                       : (size_t)(FINE_LOG - FIRST_LOG) * 8 + (size_t)(top - FINE_LOG) * 64 +
                             (*rounded >> (top - 6)) % 64;
    return *class_index < SN_POOL_CLASSES;
}

static size_t class_bytes(size_t c) {
    const size_t n_coarse = (size_t)(FINE_LOG - FIRST_LOG) * 8;
    if (c < n_coarse)
        return (8 + c % 8) << (FIRST_LOG + c / 8 - 3);
    return (64 + (c - n_coarse) % 64) << (FINE_LOG + (c - n_coarse) / 64 - 6);
}

size_t sn_pool_rounded(size_t bytes) {
    size_t n, class_index;
    return find_class(bytes, &n, &class_index) ? n : SIZE_MAX;
}

/* --- what a thread takes ---------------------------------------------------------------------- */
static _Thread_local struct { int64_t now, most; } own;

static void count_own(int64_t bytes) {
    own.now += bytes;
    own.most = own.now > own.most ? own.now : own.most;
}

void sn_pool_mark(void) {
    own.now = own.most = 0;
}

size_t sn_pool_marked(void) {
    return (size_t)own.most;
}

/* --- buffers ---------------------------------------------------------------------------------- */
static void *pop(sn_pool *p, size_t class_index, size_t bytes) {
    void *block = p->free[class_index];
    if (block) {
        memcpy(&p->free[class_index], block, sizeof block);
        p->free_bytes -= bytes;
    }
    return block;
}

/* Gives every free buffer back to the system; under the mutex. */
static void empty(snug_engine *e) {
    sn_pool *p = &e->pool;
    for (size_t c = 0; c < SN_POOL_CLASSES; c++) {
        const size_t bytes = class_bytes(c);
        for (void *b; (b = pop(p, c, bytes));)
            sn_free(e, SN_MEM_INPUT, b, bytes);
    }
}

snug_status sn_pool_take(snug_engine *e, size_t bytes, void **out, size_t *taken, snug_error *err) {
    sn_pool *p = &e->pool;
    size_t n, class_index = 0;
    if (!find_class(bytes > 0 ? bytes : 1, &n, &class_index))
        return sn_fail(err, SNUG_E_OVERFLOW, "an element of %zu bytes exceeds the address space",
                       bytes);
    void *block = NULL;
    snug_status status = SNUG_OK;
    const size_t taken_now = atomic_fetch_add(&p->taken_bytes, n) + n;
    if (n >= SMALL_BYTES) {
        pthread_mutex_lock(&p->mutex);
        block = pop(p, class_index, n);
        const size_t all = taken_now + p->free_bytes;
        if (!block && (all > p->peak_bytes + SLACK_BYTES || (p->limit > 0 && all > p->limit)))
            empty(e);
        if (taken_now > p->peak_bytes)
            p->peak_bytes = taken_now;
        pthread_mutex_unlock(&p->mutex);
    }
    if (!block)
        status = sn_alloc(e, SN_MEM_INPUT, n, &block, err);
    if (status != SNUG_OK && p->free_bytes > 0) {
        pthread_mutex_lock(&p->mutex);
        empty(e);
        pthread_mutex_unlock(&p->mutex);
        status = sn_alloc(e, SN_MEM_INPUT, n, &block, err);
    }
    if (status != SNUG_OK) {
        atomic_fetch_sub(&p->taken_bytes, n);
        return status;
    }
    count_own((int64_t)n);
    *out = block;
    *taken = n;
    return SNUG_OK;
}

snug_status sn_pool_ask(snug_engine *e, size_t bytes, const char *what, snug_error *err) {
    sn_pool *p = &e->pool;
    const size_t there = p->free_bytes;
    snug_status status = sn_ask(e, SN_MEM_INPUT, bytes > there ? bytes - there : 0, what, err);
    if (status == SNUG_OK || there == 0)
        return status;
    pthread_mutex_lock(&p->mutex);
    empty(e);
    pthread_mutex_unlock(&p->mutex);
    return sn_ask(e, SN_MEM_INPUT, bytes, what, err); /* with the whole number, and what is left */
}

void sn_pool_give(snug_engine *e, void *block, size_t taken) {
    sn_pool *p = &e->pool;
    size_t n, class_index = 0;
    count_own(-(int64_t)taken);
    const size_t still = atomic_fetch_sub(&p->taken_bytes, taken) - taken;
    if (taken >= SMALL_BYTES && find_class(taken, &n, &class_index)) {
        pthread_mutex_lock(&p->mutex);
        const size_t with_it = still + p->free_bytes + taken;
        const bool keep = p->holders > 0 && with_it <= p->peak_bytes + SLACK_BYTES &&
                          (p->limit == 0 || with_it <= p->limit);
        if (keep) {
            memcpy(block, &p->free[class_index], sizeof block);
            p->free[class_index] = block;
            p->free_bytes += taken;
        }
        pthread_mutex_unlock(&p->mutex);
        if (keep)
            return;
    }
    sn_free(e, SN_MEM_INPUT, block, taken);
}

void sn_pool_hold(snug_engine *e) {
    pthread_mutex_lock(&e->pool.mutex);
    e->pool.holders++;
    pthread_mutex_unlock(&e->pool.mutex);
}

void sn_pool_drop(snug_engine *e) {
    pthread_mutex_lock(&e->pool.mutex);
    if (--e->pool.holders == 0) {
        empty(e);
        e->pool.peak_bytes = 0;
    }
    pthread_mutex_unlock(&e->pool.mutex);
}

void sn_pool_set_limit(snug_engine *e, size_t bytes) {
    pthread_mutex_lock(&e->pool.mutex);
    e->pool.limit = bytes;
    if (bytes > 0 && e->pool.taken_bytes + e->pool.free_bytes > bytes)
        empty(e);
    pthread_mutex_unlock(&e->pool.mutex);
}

size_t sn_pool_limit(const snug_engine *e) {
    return e->pool.limit;
}

size_t sn_pool_to_come(const snug_engine *e) {
    const size_t limit = e->pool.limit, taken = e->pool.taken_bytes + e->pool.free_bytes;
    return e->pool.holders > 0 && limit > taken ? limit - taken : 0;
}

size_t sn_pool_taken(const snug_engine *e) {
    return e->pool.taken_bytes;
}

bool sn_pool_has_room(const snug_engine *e, size_t bytes) {
    const sn_pool *p = &e->pool;
    size_t sum;
    if (p->rests)
        return false;
    return p->limit == 0 || (sn_size_add(p->taken_bytes, bytes, &sum) &&
                             sn_size_add(sum, p->work_bytes, &sum) && sum <= p->limit);
}

void sn_pool_set_rest(snug_engine *e, bool rests) {
    e->pool.rests = rests;
}

void sn_pool_set_work(snug_engine *e, size_t bytes) {
    e->pool.work_bytes = bytes;
}

size_t sn_pool_peak(snug_engine *e) {
    pthread_mutex_lock(&e->pool.mutex);
    const size_t bytes = e->pool.peak_bytes;
    pthread_mutex_unlock(&e->pool.mutex);
    return bytes;
}

void sn_pool_forget_peak(snug_engine *e) {
    pthread_mutex_lock(&e->pool.mutex);
    e->pool.peak_bytes = e->pool.taken_bytes;
    pthread_mutex_unlock(&e->pool.mutex);
}

/* --- stores ----------------------------------------------------------------------------------- */
void sn_pool_keep(snug_engine *e, int64_t bytes, int n) {
    atomic_fetch_add(&e->pool.kept_bytes, (size_t)bytes);
    atomic_fetch_add(&e->pool.n_kept, (size_t)n);
}

size_t sn_pool_kept(const snug_engine *e, size_t *n) {
    *n = e->pool.n_kept;
    return e->pool.kept_bytes;
}

void sn_pool_set_store(snug_engine *e, size_t bytes) {
    e->pool.store_bytes = bytes;
}

static bool goes_by_room(const sn_pool *p) {
    return p->store_bytes == SIZE_MAX || (p->limit == 0 && p->store_bytes == 0);
}

size_t sn_pool_store(snug_engine *e, bool spills) {
    const sn_pool *p = &e->pool;
    const bool by_room = p->limit == 0 || p->store_bytes == SIZE_MAX;
    if (p->store_bytes > 0 && p->store_bytes < SIZE_MAX)
        return p->store_bytes;
    const size_t room = by_room ? snug_room(e) : p->limit;
    if (room == SIZE_MAX)
        return 0;
    const size_t kept = by_room && !spills ? p->kept_bytes : 0; /* which the room lacks */
    const size_t share = spills ? room / OTHERS_PART * 3 : kept + room - room / OTHERS_PART;
    return share > 0 ? share : 1;
}

size_t sn_pool_more_store(snug_engine *e, size_t share, size_t bytes) {
    const size_t kept = e->pool.kept_bytes;
    if (e->process_budget_bytes == 0 || !goes_by_room(&e->pool))
        return share;
    const size_t room = snug_room(e), others = (kept + room) / (2 * OTHERS_PART);
    if (room < others || room - others < bytes)
        return share;
    const size_t part = (room - others) / 2; /* to be looked at a few times only */
    return kept + (part > bytes ? part : bytes);
}

size_t sn_pool_store_budget(snug_engine *e, size_t more) {
    const size_t kept = e->pool.kept_bytes, budget = e->process_budget_bytes;
    size_t need, enough;
    if (budget == 0 || !goes_by_room(&e->pool))
        return 0;
    /* Others' part of it, page tables, and what runs differ by. */
    const size_t room = snug_room(e);
    if (!sn_size_add(more, kept, &need) ||
        !sn_size_add(more, need / (OTHERS_PART - 1) + more / 256 + RUNS_BYTES, &need) ||
        !sn_size_add(budget, need > room ? need - room : 0, &enough) ||
        !sn_size_align(enough, 4096, &enough))
        return SIZE_MAX;
    return enough;
}

bool sn_pool_may_keep(const snug_engine *e, size_t bytes, size_t share) {
    const sn_pool *p = &e->pool;
    const bool shared = p->limit > 0 && p->store_bytes == 0;
    return share == 0 || (p->kept_bytes + bytes <= share &&
                          (!shared || p->taken_bytes <= p->limit - p->limit / (2 * OTHERS_PART)));
}

void sn_pool_set_reporter(snug_engine *e, sn_reporter reporter) {
    e->pool.reporter = reporter;
}

const sn_reporter *sn_pool_reporter(const snug_engine *e) {
    return &e->pool.reporter;
}
