/* calibrate.h: what the calibrations of the processor and of a GPU share. */
#ifndef SN_REPORT_CALIBRATE_H
#define SN_REPORT_CALIBRATE_H

#include "base/rates.h"

#include <snug/engine.h>

/* One row, as soon as it is known: that is the progress. */
SNUG_CHECKED snug_status sn_say_rate(const snug_writer *w, sn_rate rate, double now, double before,
                                     snug_error *err);

/* THE table of whose rates are measured: the processor's, or a GPU's. */
typedef struct {
    /* Name of the machine, and what else its file of rates depends on. */
    snug_status (*describe)(const snug_engine *e, char *title, size_t size, char *kind,
                            size_t kind_size, snug_error *err);
    /* Saying each as soon as it is known. */
    snug_status (*measure)(snug_engine *e, const char *folder, const snug_writer *w, sn_rates *r,
                           snug_error *err);
    void (*set)(snug_engine *e, const sn_rates *r); /* what plans expect from then on */
} sn_calibration;

extern const sn_calibration sn_calibration_of_cpu;
const sn_calibration *sn_calibration_of(const snug_engine *e); /* of what its models run on */

#endif
