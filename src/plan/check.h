/* check.h: the half of the checker that looks at each step by itself (check_static.c), for check.c.
 */
#ifndef SN_PLAN_CHECK_H
#define SN_PLAN_CHECK_H

#include "plan/plan.h"

/* More iterations than this are refused: no plan needs them, and a text must not keep the checker
 * busy. */
#define SN_CHECK_MAX_REPEAT (INT64_C(1) << 20)

/* Devices, memories and sizes agree with the plan; every index is in range, every operand is the
 * node's, on the step's device and legal by the table; blocks are flat; waits name earlier steps.
 */
SNUG_CHECKED snug_status sn_check_static(const sn_plan *p, const sn_device *const *devices,
                                         int n_devices, snug_error *err);
/* The device runs this step as the plan says. rows[k]: rows of operand k (inputs first) in this
 * iteration, or -1. */
SNUG_CHECKED snug_status sn_check_variant(const sn_plan *p, const sn_step *s,
                                          const sn_device *device, const int64_t *rows,
                                          snug_error *err);

#endif
