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

/* Whether so many bytes more are within the limit, beside the work that making an element takes
 * (sn_pool_set_work); true without one. */
bool sn_pool_has_room(const snug_engine *e, size_t bytes);
void sn_pool_set_work(snug_engine *e, size_t bytes);
/* While it rests there is no room beyond what is taken: nothing is made ahead of who asks. */
void sn_pool_set_rest(snug_engine *e, bool rests);
/* The most that was taken at once since the pool was held, or since it was forgotten. */
size_t sn_pool_peak(snug_engine *e);
void sn_pool_forget_peak(snug_engine *e);
/* Whether so many bytes could be taken now, beside those that are: sn_ask. */
SNUG_CHECKED snug_status sn_pool_ask(snug_engine *e, size_t bytes, const char *what,
                                     snug_error *err);
/* What so many bytes take. */
size_t sn_pool_rounded(size_t bytes);

/* Of what is taken, elements that wait in stores (shuffle, cache): n more (or fewer) of so many
 * bytes; and the most that all of them may keep, 0: as much as they want. Unless it was set, that
 * is most of the limit, or of what is left of the budget; three eighths where what is beyond
 * goes to a file. */
void sn_pool_keep(snug_engine *e, int64_t bytes, int n);
size_t sn_pool_kept(const snug_engine *e, size_t *n);
void sn_pool_set_store(snug_engine *e, size_t bytes); /* SIZE_MAX: by the room there is */
size_t sn_pool_store(snug_engine *e, bool spills);
/* The share of a store without a file that has reached it: more, where it goes by room and there is
 * room now for `bytes` more and for others; or the same. */
size_t sn_pool_more_store(snug_engine *e, size_t share, size_t bytes);
/* A budget with which stores may keep so many bytes more than now; 0: what they may keep does not
 * follow from the budget alone. */
size_t sn_pool_store_budget(snug_engine *e, size_t more);
/* Whether an element of so many bytes, which is there, may stay: within that share, and so that
 * others have room for their work. */
bool sn_pool_may_keep(const snug_engine *e, size_t bytes, size_t share);

/* The most that this thread took at once since it was marked. */
void sn_pool_mark(void);
size_t sn_pool_marked(void);

/* Who wants to know how far long passes of pipelines are; a report of NULL: nobody. Set while none
 * runs. */
struct snug_pass;
typedef struct {
    void (*report)(void *ctx, const struct snug_pass *pass);
    void *ctx;
    double after_seconds; /* shorter passes are not reported */
} sn_reporter;
void sn_pool_set_reporter(snug_engine *e, sn_reporter reporter);
const sn_reporter *sn_pool_reporter(const snug_engine *e);

#endif
