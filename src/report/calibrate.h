/* calibrate.h: what the calibrations of the processor and of a GPU share. */
#ifndef SN_REPORT_CALIBRATE_H
#define SN_REPORT_CALIBRATE_H

#include "base/rates.h"
#include "exec/gpu.h"

#include <snug/engine.h>

/* One row, as soon as it is known: that is the progress. */
SNUG_CHECKED snug_status sn_say_rate(const snug_writer *w, sn_rate rate, double now, double before,
                                     snug_error *err);
/* Measures the card's rates, saying each; those of g become the built-in ones meanwhile. */
SNUG_CHECKED snug_status sn_calibrate_gpu(sn_gpu_device *g, const snug_writer *w, sn_rates *r,
                                          snug_error *err);

#endif
