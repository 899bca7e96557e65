/* absent.cu: stands in for libraries that are not in the build. */
#include "kernels/cuda/lib.h"

#define WEAK __attribute__((weak))

WEAK void sn_blas_version(const sn_gpu *g, char *text, size_t size) {
    (void)g;
    if (size > 0)
        text[0] = 0;
}

WEAK void sn_dnn_version(const sn_gpu *g, char *text, size_t size) {
    (void)g;
    if (size > 0)
        text[0] = 0;
}

WEAK void sn_blas_close(sn_gpu *g) {
    (void)g;
}

WEAK void sn_dnn_close(sn_gpu *g) {
    (void)g;
}
