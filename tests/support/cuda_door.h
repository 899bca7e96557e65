/* cuda_door.h: GPU families for tests in C: those of the emulator, where views are plain memory, or
 * the real ones of libsnug-cuda.so. Calls are given and compared on the host either way. */
#ifndef SN_TESTS_CUDA_DOOR_H
#define SN_TESTS_CUDA_DOOR_H

#include "op/runner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the cuda column names a family. */
bool sn_emulated_has(sn_op op);
snug_status sn_emulated_describe(const sn_opdesc *d, sn_variant *out, snug_error *err);
/* Prepares, runs, releases. A refusal of the values is SNUG_E_DATA. */
snug_status sn_emulated_run(const sn_opdesc *d, sn_call *c, snug_error *err);

#ifdef __cplusplus
}
#endif

#endif
