/* cuda_door.h: a GPU's families for tests in C, given calls on host memory: the emulated ones,
 * where host memory is the device's, or those of a plug-in on its device. */
#ifndef SN_TESTS_CUDA_DOOR_H
#define SN_TESTS_CUDA_DOOR_H

#include "op/runner.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    /* SNUG_E_UNSUPPORTED: the host runs it. */
    snug_status (*describe)(const sn_opdesc *d, sn_variant *out, snug_error *err);
    /* Prepares, runs, waits, releases. The workspace is the variant's, full of `poison` before;
     * outputs that lie in inputs' bytes are run so. SNUG_E_INTERNAL when bytes beside an output or
     * the workspace were written. */
    snug_status (*run)(const sn_opdesc *d, sn_call *c, int poison, snug_error *err);
    /* Calls one after the other in one block of memory, which all of their views and parameters
     * lie in; none needs a workspace. `apart`: each is over before the next is given, so that none
     * runs together with another. *n_launches: of kernels, or -1 where nobody counts. */
    snug_status (*run_all)(const sn_call *calls, int n, void *block, size_t bytes, bool apart,
                           int64_t *n_launches, snug_error *err);
} sn_gpu_door;

const sn_gpu_door *sn_emulated_door(void);
/* Of the plug-in at this path on its first GPU; NULL: there is none, and why. Open until the
 * process ends. */
const sn_gpu_door *sn_plugin_door(const char *path, char *why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
