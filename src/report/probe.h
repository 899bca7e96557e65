/* probe.h: how long a kernel of this machine takes, for calibration.
 *
 *     sn_opdesc d = ...;                                   // one application, types known
 *     SNUG_TRY(sn_probe_run(e, &d, 1, &seconds, err));     // least of several runs, one thread */
#ifndef SN_REPORT_PROBE_H
#define SN_REPORT_PROBE_H

#include "kernels/cpu/cpu.h"

double sn_probe_now(void); /* seconds; goes forward only */
/* Operands are made for it and given back; with several threads the engine's team works. */
SNUG_CHECKED snug_status sn_probe_run(snug_engine *e, const sn_opdesc *d, int n_threads,
                                      double *seconds, snug_error *err);

#endif
