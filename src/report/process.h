/* process.h: this process as the system counts it, and small system files as text. */
#ifndef SN_REPORT_PROCESS_H
#define SN_REPORT_PROCESS_H

#include "memory/engine.h"

typedef struct {
    size_t resident_bytes; /* VmRSS */
    size_t peak_bytes;     /* VmHWM */
} sn_process;

/* Zeros where the system does not say. */
void sn_process_read(const snug_io *io, sn_process *out);

/* The first size - 1 bytes of a file as text; "" when it cannot be read. Returns text. */
const char *sn_system_text(const snug_io *io, const char *path, char *text, size_t size);

#endif
