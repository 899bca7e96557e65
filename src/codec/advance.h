/* advance.h: what takes long before the first element comes, reported to whom the engine knows
 * (snug_pipeline_progress).
 *
 *     sn_advance_step(e, &pass, SNUG_PASS_CACHE, n, all);      // for each element
 *     sn_advance_end(e, &pass);                        // in any case
 *
 * A step costs a look at a coarse clock, and nothing where nobody wants to know. */
#ifndef SN_CODEC_ADVANCE_H
#define SN_CODEC_ADVANCE_H

#include "memory/engine.h"

#include <snug/dataset.h>

/* Zeroed at the start; one thread at a time. */
typedef struct {
    snug_pass_kind kind;
    int64_t done, all, began_ns, reported_ns; /* 0: no step yet; 0: never */
} sn_advance;

void sn_advance_step(const snug_engine *e, sn_advance *p, snug_pass_kind kind, int64_t done,
                     int64_t all);
/* Reports that it is over, where anything was reported; zeroed then. */
void sn_advance_end(const snug_engine *e, sn_advance *p);

#endif
