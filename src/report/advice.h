/* advice.h: what binds in a step that does not fit, and what would make it fit. */
#ifndef SN_REPORT_ADVICE_H
#define SN_REPORT_ADVICE_H

#include "train/model.h"

/* 0: not even one row. */
typedef struct {
    int64_t asked;       /* the batch that does not fit */
    int64_t batch;       /* one that fits the budget where the next larger one looked at does not */
    int64_t whole_batch; /* the same without slices */
    size_t spill_floor;  /* the smallest budget with a folder to spill to; 0: there is one */
} sn_advice;

/* The request has its budget, which is below floor_bytes. Looks at other steps: m->looked is
 * closed, for sn_model_verdict_again. */
SNUG_CHECKED snug_status sn_advice_find(snug_model *m, const snug_plan_request *request,
                                        size_t floor_bytes, sn_advice *out, snug_error *err);
/* Text. `info` is the verdict; the model's looked-at step is the plan at the floor. */
SNUG_CHECKED snug_status sn_advice_say(snug_model *m, const snug_model_plan_info *info,
                                       const sn_advice *a, const snug_writer *w, snug_error *err);

#endif
