/* doctor.h: facts as (key, value, remark) rows, which the files of `snug doctor` share. */
#ifndef SN_REPORT_DOCTOR_H
#define SN_REPORT_DOCTOR_H

#include "base/status.h"
#include "memory/engine.h"

typedef struct {
    const snug_io *io;
    const snug_writer *w;
    bool json;
    int n;
    snug_status status; /* of what was said so far */
    snug_error *err;
} sn_facts;

void sn_fact(sn_facts *f, const char *key, const char *remark, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void sn_gpu_facts_say(sn_facts *f, const snug_engine *engine); /* doctor_gpu.c */

#endif
