/* system.h: small files in which the system speaks of itself: /proc/meminfo and its like. */
#ifndef SN_BASE_SYSTEM_H
#define SN_BASE_SYSTEM_H

#include <snug/engine.h>

/* The first size - 1 bytes of a file as text; "" when it cannot be read. Returns text. */
const char *sn_system_text(const snug_io *io, const char *path, char *text, size_t size);

/* The number behind `key` at the start of a line; 0 when it is not there. */
size_t sn_system_number(const char *text, const char *key);

#endif
