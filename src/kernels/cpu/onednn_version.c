/* onednn_version.c: which oneDNN this process runs with, for `snug doctor`. */
#include "kernels/cpu/cpu.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

const char *sn_cpu_library_version(char *text, size_t size) {
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, size, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
