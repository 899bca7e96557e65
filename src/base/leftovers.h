/* leftovers.h: temporary files that killed writers left behind. */
#ifndef SN_BASE_LEFTOVERS_H
#define SN_BASE_LEFTOVERS_H

#include <stdbool.h>
#include <stddef.h>

/* The file is in use as long as it is open. */
void sn_leftover_hold(int fd);
/* Removes what killed writers left of the file whose name begins with these n letters; whatever
 * goes wrong is nobody's error. */
void sn_leftover_remove(const char *folder, const char *name, size_t n);

#endif
