/* plan_bound.h: what the arena of a step needs at least when the batch is gone through once, from
 * the graph alone: plans are judged by it. */
#ifndef SUPPORT_PLAN_BOUND_H
#define SUPPORT_PLAN_BOUND_H

#include "plan/plan.h"

SNUG_CHECKED snug_status sn_plan_lower_bound(snug_engine *e, const sn_graph *g, const sn_device *d,
                                             size_t *out, snug_error *err);

#endif
