/* npz.h: where an array lies in an .npz file (a ZIP archive), for reading it in place. */
#ifndef SN_MODEL_NPZ_H
#define SN_MODEL_NPZ_H

#include "base/file.h"

/* Where "FILE.npz:NAME" has its colon; NULL: it is no such source. */
const char *sn_npz_colon(const char *source);
/* The bytes [*start, *end) of the member NAME.npy. SNUG_E_UNSUPPORTED: it is compressed.
 * SNUG_E_DATA: there is none, with the names that are. */
SNUG_CHECKED snug_status sn_npz_find(sn_file *f, const char *name, int64_t *start, int64_t *end,
                                     snug_error *err);

#endif
