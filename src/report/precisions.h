/* precisions.h: what a step takes and costs in each precision. */
#ifndef SN_REPORT_PRECISIONS_H
#define SN_REPORT_PRECISIONS_H

#include "train/model.h"

/* A step is slower than in f32 where it takes more than this many times as long: less is noise. */
#define SN_SLOWER 1.05

/* Of a model that computes in halves the same step in f32, without a look for its smallest budget.
 * *found false: the model computes in f32 or f64, or its type can no longer be changed, or f32 does
 * not fit. Before sn_model_verdict: m->looked is closed. */
SNUG_CHECKED snug_status sn_precision_f32(snug_model *m, const snug_plan_request *request,
                                          snug_model_plan_info *out, bool *found, snug_error *err);

#endif
