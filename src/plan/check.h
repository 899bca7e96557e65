/* check.h: the half of the checker that asks devices (check_device.c), for check.c. */
#ifndef SN_PLAN_CHECK_H
#define SN_PLAN_CHECK_H

#include "plan/plan.h"

/* Names, counts, alignments and memories agree with the devices; sizes of values with their types. */
SNUG_CHECKED snug_status sn_check_devices(const sn_plan *p, const sn_device *const *devices, int n_devices,
                                          snug_error *err);
/* The device runs this step as the plan says. rows[k]: rows of operand k (inputs first) in this iteration, or -1;
 * opaque outputs of that many rows have the bytes the plan gives them. */
SNUG_CHECKED snug_status sn_check_variant(const sn_plan *p, const sn_step *s, const sn_device *device,
                                          const int64_t *rows, snug_error *err);

#endif
