/* curve.h: the trade of memory for time, for the table and the page. */
#ifndef SN_REPORT_CURVE_H
#define SN_REPORT_CURVE_H

#include <snug/train.h>

#define SN_CURVE_POINTS 14

typedef struct {
    snug_curve_point points[SN_CURVE_POINTS];
    size_t n;
} sn_curve;

SNUG_CHECKED snug_status sn_curve_find(snug_model *m, const snug_plan_request *request,
                                       sn_curve *out, snug_error *err);
/* 0.0123 -> "12.3 ms" */
const char *sn_seconds_print(double seconds, char *text, size_t size);

#endif
