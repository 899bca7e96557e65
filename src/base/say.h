/* say.h: printf to a writer. */
#ifndef SN_BASE_SAY_H
#define SN_BASE_SAY_H

#include "base/status.h"

#include <snug/engine.h>

/* One piece of at most 1,023 bytes; longer ones are cut. */
SNUG_CHECKED snug_status sn_say(const snug_writer *w, snug_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
