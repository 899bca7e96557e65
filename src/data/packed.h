/* packed.h: elements as bytes, for files: what spills of a shuffle and what a cache keeps.
 *
 *     size_t n;
 *     sn_packed_bytes(&e, &n, err);
 *     sn_packed_write(&e, bytes);           // n bytes
 *     sn_packed_read(engine, bytes, n, &e, err); */
#ifndef SN_DATA_PACKED_H
#define SN_DATA_PACKED_H

#include "data/stage.h"

SNUG_CHECKED snug_status sn_packed_bytes(const snug_element *e, size_t *bytes, snug_error *err);
void sn_packed_write(const snug_element *e, unsigned char *to);
/* SNUG_E_FORMAT: these are not the bytes of an element. */
SNUG_CHECKED snug_status sn_packed_read(snug_engine *engine, const unsigned char *from, size_t n,
                                        snug_element *out, snug_error *err);

#endif
