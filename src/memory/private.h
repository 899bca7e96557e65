/* private.h: the inside of an engine; only this room includes it.
 *
 * Invariants:
 * 1. held is the sum of accounts[].bytes; accounts[c].bytes covers the blocks of category c.
 * 2. The engine's own bytes (this struct) come from the allocator but are not on the ledger, so
 *    that an engine with nothing made from it holds 0.
 * 3. The ledger (sums, peaks, both lists) is read and written under ledger_mutex, which is also
 * held while bytes are taken or given back: between a request's look and its booking nobody else
 *    books. Nothing called under it asks the engine for anything. */
#ifndef SN_MEMORY_PRIVATE_H
#define SN_MEMORY_PRIVATE_H

#include "memory/engine.h"
#include "memory/pool.h"
#include "memory/team.h"

#include <pthread.h>
#include <stdatomic.h>

#define SN_ALLOC_ALIGN 64u

/* Bytes that nobody may touch, for AddressSanitizer to watch. */
#ifdef SN_REDZONES
#include <sanitizer/asan_interface.h>
#define SN_POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define SN_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define SN_POISON(p, n)   ((void)(p), (void)(n))
#define SN_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

typedef struct {
    size_t bytes, peak_bytes;
} sn_account;

/* One fail-the-N-th counter. `at` < 0: not armed. */
typedef struct {
    int64_t at;
    _Atomic int64_t seen;
    bool for_good;
} sn_fault_counter;

typedef struct {
    sn_fault_counter memory, io;
    sn_fault_kind io_kind;
    atomic_bool fired;
    const char *_Atomic struck;
    _Atomic uint64_t folders, readers; /* bit d: descriptor d is a folder's, or only read from */
} sn_faults;

/* An allocation with a mapping of its own (large.c); data follow at SN_ALLOC_ALIGN. */
typedef struct sn_large {
    struct sn_large *next, *prev;
    size_t bytes, mapped_bytes;
    sn_category category;
    bool is_full; /* every page was seen to be resident */
} sn_large;

/* Buffers of pipelines (pool.c). */
#define SN_POOL_CLASSES (8 * 4 + 64 * 32)
typedef struct {
    pthread_mutex_t mutex;
    _Atomic size_t holders;
    _Atomic size_t free_bytes, taken_bytes, limit, work_bytes;
    _Atomic size_t kept_bytes, n_kept, store_bytes;
    atomic_bool rests;
    size_t peak_bytes; /* taken at once while it is held */
    void *free[SN_POOL_CLASSES];
    sn_reporter reporter;
} sn_pool;

/* Whether the process has room for a request (gate.c). */
typedef struct {
    bool closed;         /* requests are looked at */
    bool tells;          /* a refusal is looking for the number that would do */
    size_t grant_bytes;  /* that pass before the next look */
    size_t beside_bytes; /* counted beside the ledger at the last one */
} sn_gate;

struct snug_engine {
    snug_allocator allocator;
    pthread_mutex_t ledger_mutex, team_mutex, idle_mutex;
    bool foreign;       /* the caller's: blocks come from it too, nothing is put around its bytes */
    snug_io io;         /* the real table */
    snug_io guarded_io; /* the same with the fault hook in front; ctx is this engine */
    int n_threads;
    size_t budget_bytes, held_bytes, peak_bytes;
    size_t marked_peak_bytes;    /* most held since sn_peak_restart */
    size_t process_budget_bytes; /* of the whole process; 0: no limit */
    size_t aside_bytes;          /* of it, for what the caller makes without asking */
    int n_aside_lent;            /* planners at work, who may have that meanwhile */
    bool makes_beside;           /* there was such a number */
    sn_gate gate;
    bool is_settled[3]; /* what is there before it is measured (sn_process_is_settled) */
    sn_account accounts[SN_N_CATEGORIES];
    sn_block *blocks;     /* newest first */
    sn_large *large;      /* newest first */
    struct sn_idle *idle; /* what can be had back (idle.h) */
    sn_faults faults;
    sn_rates rates; /* where measured */
    bool measured;
    char spill_folder[1024]; /* "": none */
    _Atomic(sn_team *) team; /* while there are holders, and more than one thread */
    size_t n_team_holders;   /* under team_mutex */
    sn_pool pool;
    void *attached;
    void (*destroy_attached)(void *object);
};

/* A request on its way to the ledger; owner "" when no block. */
typedef struct {
    sn_category category;
    const char *owner;
    size_t bytes;
} sn_request;

const char *sn_category_name(sn_category cat);

/* A mutex is no part of what `const` promises about an engine. */
void sn_ledger_lock(const snug_engine *e);
void sn_ledger_unlock(const snug_engine *e);

/* Under the lock, these four. Whether the request may be made: the fault hook and the budget.
 * Changes nothing but the hook's count. */
SNUG_CHECKED snug_status sn_ledger_ask(snug_engine *e, const sn_request *r, snug_error *err);
void sn_ledger_book(snug_engine *e, const sn_request *r);
void sn_ledger_release(snug_engine *e, sn_category cat, size_t bytes);
snug_status sn_ledger_fail(const snug_engine *e, const sn_request *r, snug_error *err);
/* Under the lock, too: whether the budget of the process has room for it. */
SNUG_CHECKED snug_status sn_gate_ask(snug_engine *e, const sn_request *r, snug_error *err);
/* The budget is another one. */
void sn_gate_set(snug_engine *e);
/* Counted now, less what of the ledger is resident. */
size_t sn_process_beside(const snug_engine *e);

/* From this size on allocations are mapped, unless a caller's allocator serves them. */
#define SN_LARGE_BYTES ((size_t)128 << 10)
/* Under the ledger's lock. NULL when the system has none. Data are zero. */
void *sn_large_take(snug_engine *e, sn_category cat, size_t bytes);
void sn_large_give(snug_engine *e, void *data);
/* NULL: it stays as it is. What is new is zero. */
void *sn_large_resize(snug_engine *e, void *data, size_t bytes);
/* Where a block's pages begin. */
char *sn_block_base(const sn_block *b);

/* Counts a request; true when it is to fail. `what` is what sn_fault_struck gives. */
bool sn_fault_strikes(snug_engine *e, sn_fault_counter *c, const char *what);
void sn_fault_wrap_io(snug_engine *e);

#endif
