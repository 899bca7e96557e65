/* log.h: records in a file without a name, appended and read one by one; a segment whose records
 * are all gone is written anew, so the file follows what is live.
 *
 *     sn_log_add(l, bytes, n, &where, err);
 *     sn_log_read(l, where, n, bytes, err);
 *     sn_log_drop(l, where, n); */
#ifndef SN_DATA_LOG_H
#define SN_DATA_LOG_H

#include "memory/engine.h"

typedef struct sn_log sn_log;

SNUG_CHECKED snug_status sn_log_create(snug_engine *e, const char *folder, sn_log **out,
                                       snug_error *err);
void sn_log_destroy(sn_log *l); /* NULL is legal */
SNUG_CHECKED snug_status sn_log_add(sn_log *l, const void *bytes, size_t n, uint64_t *where,
                                    snug_error *err);
SNUG_CHECKED snug_status sn_log_read(sn_log *l, uint64_t where, size_t n, void *bytes,
                                     snug_error *err);
void sn_log_drop(sn_log *l, uint64_t where, size_t n);

#endif
