/* old_driver.c: a libcuda.so.1 that starts, and says that it knows CUDA 11.0, or what SNUG_STUB_CUDA
 * says (12080: 12.8). */
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);

__attribute__((visibility("default"))) int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version) {
    const char *other = getenv("SNUG_STUB_CUDA");
    *version = other ? atoi(other) : 11000;
    return 0;
}
