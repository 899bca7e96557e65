/* pool.h: buffers of input pipelines. One given back waits for the next of its size, so that a
 * stream of batches maps no page twice; all are on the ledger (category INPUT), and gone when
 * nobody holds the pool.
 *
 *     sn_pool_hold(e);                              // an iterator runs
 *     sn_pool_take(e, bytes, &p, &taken, err);
 *     sn_pool_give(e, p, taken);                    // kept for the next
 *     sn_pool_drop(e);                              // freed
 *
 * Any thread. */
#ifndef SN_MEMORY_POOL_H
#define SN_MEMORY_POOL_H

#include "memory/engine.h"

/* *taken >= bytes: what to give back. Aligned to 64. */
SNUG_CHECKED snug_status sn_pool_take(snug_engine *e, size_t bytes, void **out, size_t *taken,
                                      snug_error *err);
void sn_pool_give(snug_engine *e, void *block, size_t taken);
void sn_pool_hold(snug_engine *e);
void sn_pool_drop(snug_engine *e);

/* The most that pipelines should hold, 0: no limit; and what is taken now. Nothing is refused
 * because of it: who fills a buffer looks how much room there is first. */
void sn_pool_set_limit(snug_engine *e, size_t bytes);
size_t sn_pool_limit(const snug_engine *e);
size_t sn_pool_taken(const snug_engine *e);
/* What pipelines at work may still take: their limit less what they have; 0 without a limit. */
size_t sn_pool_to_come(const snug_engine *e);

/* Who wants to know how far long passes of pipelines are; a tell of NULL: nobody. Set while none
 * runs. */
struct snug_pass;
typedef struct {
    void (*tell)(void *ctx, const struct snug_pass *pass);
    void *ctx;
    double after_seconds; /* of passes that are shorter nobody hears */
} sn_teller;
void sn_pool_set_teller(snug_engine *e, sn_teller teller);
const sn_teller *sn_pool_teller(const snug_engine *e);

#endif
