/* onednn_library.c: finds libdnnl.so (onednn_library.h), and which one it is, for `snug doctor`. */
#include "kernels/cpu/onednn_library.h"

#include "kernels/cpu/cpu.h"
#include "memory/code.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x
#define FILE_NAME   "libdnnl.so." TEXT_OF(DNNL_VERSION_MAJOR)

/* As a library that a program is linked with: one for the process, and it stays. */
static struct {
    pthread_once_t once;
    bool found;
    sn_onednn_library functions;
} the = {.once = PTHREAD_ONCE_INIT};

static bool find(void *file, const char *name, void *function) {
    void *const found = dlsym(file, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *file, sn_onednn_library *l) {
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
#define WANTED(name) {"dnnl_" #name, &l->name},
        SN_ONEDNN_MAP(WANTED)
#undef WANTED
            {"omp_get_max_threads", &l->threads},
        {"omp_set_num_threads", &l->set_threads}};
    bool ok = true;
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        ok = find(file, wanted[k].name, wanted[k].function) && ok;
    return ok;
}

static void load(void) {
    void *const file = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    the.found = file && find_all(file, &the.functions);
    if (file && !the.found)
        dlclose(file);
    if (the.found)
        sn_code_in_small_pages();
}

const sn_onednn_library *sn_onednn_found(void) {
    (void)pthread_once(&the.once, load);
    return the.found ? &the.functions : NULL;
}

const char *sn_cpu_library_version(char *text, size_t size) {
    const sn_onednn_library *l = sn_onednn_found();
    if (l) {
        const dnnl_version_t *v = l->version();
        snprintf(text, size, "%d.%d.%d", v->major, v->minor, v->patch);
    } else {
        snprintf(text, size, "none: convolutions in groups are slower; no " FILE_NAME);
    }
    return text;
}
