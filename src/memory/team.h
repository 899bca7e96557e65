/* team.h: threads that work through the parts of a loop together.
 *
 *     static void square(const void *ctx, int64_t first, int64_t end);  // items [first, end)
 *
 *     sn_team *team;
 *     sn_team_create(e, 4, &team, err);            // three workers; the caller is the fourth
 *     sn_team_run(team, n_items, square, &job);    // returns when every item is done
 *     sn_team_destroy(team);
 *
 * Who takes which items is decided while they run: what is computed must not depend on it. A worker
 * that the system has not woken in time is not waited for: the others do its part. Waiting threads
 * look for work for some microseconds and then sleep, so a busy machine loses no core to them. */
#ifndef SN_MEMORY_TEAM_H
#define SN_MEMORY_TEAM_H

#include "memory/engine.h"

typedef struct sn_team sn_team;
/* Items [first, end) of a loop. */
typedef void (*sn_items)(const void *ctx, int64_t first, int64_t end);

/* n_threads - 1 workers with their stacks on the ledger (category STACKS). *out is NULL, which is a
 * team, too, when n_threads is below 2. */
SNUG_CHECKED snug_status sn_team_create(snug_engine *e, int n_threads, sn_team **out,
                                        snug_error *err);
void sn_team_destroy(sn_team *t);
/* All items of [0, n), each once; what the parts wrote is visible afterwards. The caller does them
 * alone where the team is NULL, at work already (a part that calls this, another thread), or was
 * made in the parent process. */
void sn_team_run(sn_team *t, int64_t n, sn_items part, const void *ctx);
/* Copies bytes; large ones together, in pages: one thread does not use up a memory's rate. */
void sn_team_copy(sn_team *t, void *to, const void *from, size_t bytes);

/* The engine's own team of snug_engine_threads: made for the first who holds it, ended with the
 * last, so that an engine nobody uses has no threads and holds no byte. */
SNUG_CHECKED snug_status sn_team_hold(snug_engine *e, sn_team **out, snug_error *err);
void sn_team_drop(snug_engine *e);
sn_team *sn_team_of(const snug_engine *e); /* NULL while nobody holds it */

#endif
