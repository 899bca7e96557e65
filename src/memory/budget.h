/* budget.h: a budget as people write it (snug_budget_parse), with the system's files through a
 * table of the caller's. */
#ifndef SN_MEMORY_BUDGET_H
#define SN_MEMORY_BUDGET_H

#include "base/status.h"

#include <snug/engine.h>

SNUG_CHECKED snug_status sn_budget_parse(const snug_io *io, const char *text, size_t *bytes,
                                         snug_error *err);

#endif
