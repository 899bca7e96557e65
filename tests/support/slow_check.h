/* slow_check.h: the plan checker that replays every iteration, to judge the library's by.
 *
 *     if (sn_slow_check(plan, devices, 1, &err) != SNUG_OK)
 *         expect_status(sn_plan_check(plan, devices, 1, &err), SNUG_E_INVALID, &err); */
#ifndef SN_TESTS_SLOW_CHECK_H
#define SN_TESTS_SLOW_CHECK_H

#include "plan/plan.h"

/* For the same plans as sn_plan_check; work and memory grow with the number of iterations. */
SNUG_CHECKED snug_status sn_slow_check(const sn_plan *p, const sn_device *const *devices,
                                       int n_devices, snug_error *err);

#endif
