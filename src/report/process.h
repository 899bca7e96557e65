/* process.h: this process as the system counts it. */
#ifndef SN_REPORT_PROCESS_H
#define SN_REPORT_PROCESS_H

#include "memory/engine.h"

typedef struct {
    size_t resident_bytes; /* VmRSS */
    size_t peak_bytes;     /* VmHWM */
} sn_process;

/* Zeros where the system does not say. */
void sn_process_read(const snug_io *io, sn_process *out);

#endif
