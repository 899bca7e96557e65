/* engine.h: what the rooms below see of the engine: requests for memory that name a category, and
 * the table of files. This room is the only one that calls malloc or mmap.
 *
 * Invariants:
 * 1. Each request names a category, each release states its size; counters change after success.
 * 2. held <= budget at any time when a budget is set, and what the system counts for the process,
 *    with all that is on the ledger, <= the budget of the process; a refused request changes
 *    nothing.
 * 3. Any thread may make any of these calls; a zone, a block or an array that grows is used by one
 *    at a time.
 * 4. The fault hook sees every request of memory and every call of the I/O table. */
#ifndef SN_MEMORY_ENGINE_H
#define SN_MEMORY_ENGINE_H

#include "base/rates.h"
#include "base/status.h"

#include <snug/engine.h>
#include <stdbool.h>

/*      id        name in reports     what it holds */
#define SN_CATEGORY_MAP(X)                                                                         \
    X(WEIGHTS, "weights") /* trainable and not, the model's own */                                 \
    X(SLOTS, "optimizer") /* optimizer slots */                                                    \
    X(ARENA, "arena")     /* the transient block of a device */                                    \
    X(TENSORS, "tensors") /* of recorded code: what handles hold */                                \
    X(TAPES, "tapes")     /* what tapes alone hold */                                              \
    X(INPUT, "input")     /* windows and buffers of feeds */                                       \
    X(KERNELS, "kernels") /* prepared primitives */                                                \
    X(GRAPH, "graph")     /* nodes and values themselves */                                        \
    X(PLAN, "plan")       /* plans and planner work space */                                       \
    X(MODEL, "model")     /* layers, configurations, names */                                      \
    X(ARRAYS, "arrays")   /* of the caller: NumPy's, buffers on their way to a file */             \
    X(STACKS, "stacks")   /* of the engine's own threads */                                        \
    X(OTHER, "other")

typedef enum {
#define SN_CATEGORY_ENUM(id, name) SN_MEM_##id,
    SN_CATEGORY_MAP(SN_CATEGORY_ENUM)
#undef SN_CATEGORY_ENUM
        SN_N_CATEGORIES
} sn_category;

/* Aligned to 64. bytes 0 gives a valid, unique pointer. NULL only with err filled (SNUG_E_MEMORY,
 * SNUG_E_BUDGET). */
SNUG_CHECKED snug_status sn_alloc(snug_engine *e, sn_category cat, size_t bytes, void **out,
                                  snug_error *err);
/* See snug_resize. */
SNUG_CHECKED snug_status sn_resize(snug_engine *e, sn_category cat, size_t from, size_t to,
                                   void **inout, snug_error *err);
SNUG_CHECKED snug_status sn_alloc_zero(snug_engine *e, sn_category cat, size_t bytes, void **out,
                                       snug_error *err);
/* block NULL is legal. bytes is what was asked for. */
void sn_free(snug_engine *e, sn_category cat, void *block, size_t bytes);

/* `array` is the address of a pointer to *cap elements of elem_bytes, or to NULL. Makes it point to
 * room for `need`, doubling; old contents are kept. */
SNUG_CHECKED snug_status sn_grow(snug_engine *e, sn_category cat, void *array, size_t elem_bytes,
                                 size_t *cap, size_t need, snug_error *err);

/* Books bytes that a library takes from the C heap by itself, as a request like any other; give
 * them back when it has freed them. */
SNUG_CHECKED snug_status sn_claim(snug_engine *e, sn_category cat, size_t bytes, snug_error *err);
void sn_unclaim(snug_engine *e, sn_category cat, size_t bytes);

/* Whether so many bytes would be given now, for what the words say: nothing is booked. For a look
 * at the whole of what will be asked for in parts. */
SNUG_CHECKED snug_status sn_ask(snug_engine *e, sn_category cat, size_t bytes, const char *what,
                                snug_error *err);

/* The engine's I/O table with the fault hook in front. Lent. */
const snug_io *sn_engine_io(const snug_engine *e);

/* How fast this machine was measured to be; NULL: not measured, devices have numbers built in. */
const sn_rates *sn_engine_rates(const snug_engine *e);
void sn_engine_set_rates(snug_engine *e, const sn_rates *r);
/* Of snug_spill; NULL: nothing is spilled. Lent. */
const char *sn_engine_spill_folder(const snug_engine *e);

/* One object that lives as long as the engine and is destroyed before it: the device that models
 * made with it run on. Replaces the one there was. */
void sn_engine_attach(snug_engine *e, void *object, void (*destroy)(void *object));
void *sn_engine_attached(const snug_engine *e);

/* --- blocks: large memory with an owner's name on the ledger ---------------------------------- */
typedef struct sn_block {
    snug_engine *engine;
    sn_category category;
    char owner[96];
    void *data;          /* page aligned, or to 64 where guarded; never NULL in a live block */
    size_t bytes;        /* as asked */
    size_t mapped_bytes; /* in whole pages, without the guard page */
    size_t booked_bytes; /* what the ledger counts: these, or of a stack what is touched of it */
    bool guarded;
    bool is_full;                 /* every page was seen to be resident */
    struct sn_block *next, *prev; /* the ledger's list: a live block must not be moved */
} sn_block;

typedef struct {
    bool guard;    /* an inaccessible page stands right behind data + bytes rounded up to 64 */
    bool populate; /* all pages now, after a look at the cgroup: no fault and no kill later */
    size_t touched_bytes; /* the most that will ever be: that is booked; 0: all */
} sn_block_options;
/* Of a worker's stack, what is booked. Measured: workers touch up to 36 KiB. */
#define SN_STACK_BOOKED ((size_t)64 << 10)

SNUG_CHECKED snug_status sn_block_init(snug_engine *e, sn_category cat, const char *owner,
                                       size_t bytes, const sn_block_options *o, sn_block *out,
                                       snug_error *err);
void sn_block_clear(sn_block *b); /* legal on zeroed */

/* --- zones: many small objects with one lifetime ---------------------------------------------- */
typedef struct sn_zone sn_zone;
SNUG_CHECKED snug_status sn_zone_create(snug_engine *e, sn_category cat, sn_zone **out,
                                        snug_error *err);
/* For a short while and about so many bytes: in one piece where they suffice. */
SNUG_CHECKED snug_status sn_zone_create_for(snug_engine *e, sn_category cat, size_t bytes,
                                            sn_zone **out, snug_error *err);
/* Aligned to 16, zeroed. */
SNUG_CHECKED snug_status sn_zone_alloc(sn_zone *z, size_t bytes, void **out, snug_error *err);
/* The same with any content: pages that are never written cost nothing; pieces from 2 MiB on may
 * have pages as large as that. */
SNUG_CHECKED snug_status sn_zone_alloc_raw(sn_zone *z, size_t bytes, void **out, snug_error *err);
SNUG_CHECKED snug_status sn_zone_text(sn_zone *z, const char *text, const char **out,
                                      snug_error *err); /* copy */
snug_engine *sn_zone_engine(const sn_zone *z);
size_t sn_zone_bytes(const sn_zone *z);
/* All objects go; most bytes stay for those to come. A zone that failed here can be destroyed. */
SNUG_CHECKED snug_status sn_zone_reset(sn_zone *z, snug_error *err);
void sn_zone_destroy(sn_zone *z); /* NULL is legal */

/* --- faults, for tests ------------------------------------------------------------------------ */
typedef enum { SN_FAULT_EIO, SN_FAULT_ENOSPC, SN_FAULT_EROFS, SN_FAULT_SHORT } sn_fault_kind;
/* Fail request number n (0 = the next one) of memory; with for_good all after it too. n < 0
 * disarms. */
void sn_fault_memory(snug_engine *e, int64_t n, bool for_good);
void sn_fault_io(snug_engine *e, int64_t n, sn_fault_kind kind, bool for_good);
/* A request of a device, which the hook of memory sees too: whether it is to fail. */
bool sn_fault_asks(snug_engine *e);
/* Whether the armed fault has struck, and how many requests of each kind were made since arming. */
bool sn_fault_fired(const snug_engine *e);
/* What it struck first: a call of the I/O table by its name ("sync", "sync of a folder"), or the
 * category of the memory that was refused; of no meaning before it fired. */
const char *sn_fault_struck(const snug_engine *e);
int64_t sn_fault_memory_requests(const snug_engine *e);
int64_t sn_fault_io_requests(const snug_engine *e);

#endif
