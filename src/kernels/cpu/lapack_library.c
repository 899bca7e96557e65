/* lapack_library.c: finds liblapack.so.3 (lapack_library.h).
 *
 * Debian's own LAPACK and BLAS are looked for in their folders first: liblapack.so.3 itself may be
 * a link to another (update-alternatives), or another may have been brought by NumPy. What is found
 * in the end is looked at, not what was asked for. */
#include "kernels/cpu/lapack_library.h"

#include "memory/code.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PACKAGES "liblapack3 and libblas3"

/* As a library that a program is linked with: one for the process, and it stays. */
static struct {
    pthread_once_t once;
    void *file; /* NULL: it cannot be loaded, or is refused */
    sn_lapack_library functions;
    char why[256];
} the = {.once = PTHREAD_ONCE_INIT};

/* --- which it is ------------------------------------------------------------------------------ */
/* What OpenBLAS, BLIS, MKL, FlexiBLAS and ATLAS have beside BLAS and LAPACK themselves. */
static bool is_foreign(void *file) {
    static const char *const names[] = {"openblas_get_config", "daxpby_", "ATL_dgelqf"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = dlsym(file, names[i]) != NULL;
    return found;
}

static bool find(void *file, const char *name, void *function) {
    void *const found = dlsym(file, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *file, sn_lapack_library *l) {
    static const char *const kinds[2] = {"s", "d"};
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        const struct {
            const char *name;
            void *function;
        } wanted[] = {{"syevd_", &l->eigh[i]},      {"gesdd_", &l->svd[i]},
                      {"gelqf_", &l->lq[i]},        {"orglq_", &l->rows_of_q[i]},
                      {"gelsd_", &l->lstsq[i]},     {"getrf2_", &l->lu[i]},
                      {"potrf2_", &l->cholesky[i]}, {"trsm_", &l->triangle[i]}};
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            char name[16];
            snprintf(name, sizeof name, "%s%s", kinds[i], wanted[k].name);
            ok = find(file, name, wanted[k].function) && ok;
        }
    }
    return ok;
}

static void find_version(void *file, sn_lapack_library *l) {
    void (*ask)(int *, int *, int *);
    int major = 0, minor = 0, patch = 0;
    if (find(file, "ilaver_", &ask))
        ask(&major, &minor, &patch);
    snprintf(l->version, sizeof l->version, "%d.%d.%d", major, minor, patch);
}

/* --- loading ---------------------------------------------------------------------------------- */
static void *open_debians(void) {
#ifdef SN_LIBRARY_FOLDER
    void *const blas =
        dlopen("/usr/lib/" SN_LIBRARY_FOLDER "/blas/libblas.so.3", RTLD_NOW | RTLD_LOCAL);
    void *const file =
        blas ? dlopen("/usr/lib/" SN_LIBRARY_FOLDER "/lapack/liblapack.so.3", RTLD_NOW | RTLD_LOCAL)
             : NULL;
    if (blas && !file)
        dlclose(blas);
    return file;
#else
    return NULL;
#endif
}

static void load(void) {
    void *file = open_debians();
    if (!file)
        file = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
    const char *const why = file ? NULL : dlerror();
    if (!file)
        snprintf(the.why, sizeof the.why, "it is LAPACK's work; install %s (%s)", PACKAGES,
                 why ? why : "no liblapack.so.3");
    else if (is_foreign(file))
        snprintf(the.why, sizeof the.why,
                 "it is LAPACK's work, and liblapack.so.3 is one whose memory no budget holds "
                 "(OpenBLAS, ATLAS, BLIS, MKL); install %s, and where NumPy brings the other, "
                 "choose them with update-alternatives",
                 PACKAGES);
    else if (!find_all(file, &the.functions))
        snprintf(the.why, sizeof the.why, "liblapack.so.3 lacks functions; install %s anew",
                 PACKAGES);
    else
        the.file = file;
    if (!the.file)
        return;
    find_version(file, &the.functions);
    sn_code_in_small_pages();
}

snug_status sn_lapack_load(const sn_lapack_library **out, snug_error *err) {
    (void)pthread_once(&the.once, load);
    if (!the.file)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s", the.why);
    *out = &the.functions;
    return SNUG_OK;
}

const sn_lapack_library *sn_lapack_loaded(void) {
    return the.file ? &the.functions : NULL;
}

const char *sn_lapack_version(void) {
    return the.file ? the.functions.version : "";
}

/* --- its code --------------------------------------------------------------------------------- */
/* What is called where matrices are too large for one block. */
static const char *const of_blocks[] = {"larfb_", "larft_", "latrd_", "labrd_", "gemm_",
                                        "trmm_",  "trsm_",  "syr2k_", "lacpy_", "gemv_",
                                        "trmv_",  "symv_",  "lasr_",  "lascl_"};

static void bring(const char *name) {
    void *const at = dlsym(the.file, name), *symbol = NULL;
    Dl_info info;
    if (!at || !dladdr1(at, &info, &symbol, RTLD_DL_SYMENT) || !symbol)
        return;
    sn_code_bring((sn_code_range){(uintptr_t)at, (uintptr_t)at + ((ElfW(Sym) *)symbol)->st_size});
}

void sn_lapack_bring_code(const sn_lapack_problem *p) {
    for (size_t i = 0; i < sizeof of_blocks / sizeof *of_blocks; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s%s", p->is_f64 ? "d" : "s", of_blocks[i]);
        bring(name);
    }
}
