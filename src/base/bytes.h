/* bytes.h: byte counts as people write them, beside snug_bytes_parse: parts of a whole. */
#ifndef SN_BASE_BYTES_H
#define SN_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether text is a percentage ("50%", "12.5 %"); then *bytes is that part of whole, rounded down;
 * SIZE_MAX for more than 100 %. */
bool sn_bytes_share(const char *text, size_t whole, size_t *bytes);
/* snug_bytes_print of a number that must suffice: what is written is never less than bytes. */
const char *sn_bytes_print_up(size_t bytes, char *text, size_t size);

#endif
