/* impl.h: whose code a planned kernel is, by the text that names it (sn_variant.impl) in plans and
 * in files of them. Who makes such a text begins it with one of these names; who wants to know asks
 * here. */
#ifndef SN_OP_IMPL_H
#define SN_OP_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SN_BY_HOST "host:" /* on a GPU: the processor runs it, between two copies */
#define SN_BY_BLAS "cublaslt:"
#define SN_BY_DNN  "cudnn:"
/* Behind them, in place of a way: the library is missing, and this is what it might have run. */
#define SN_IMPL_ABSENT "absent"

typedef enum {
    SN_IMPL_OWN, /* the device's own kernels, and all that has no name above */
    SN_IMPL_HOST,
    SN_IMPL_BLAS,
    SN_IMPL_DNN
} sn_impl_kind;

static inline sn_impl_kind sn_impl_kind_of(const char *impl) {
    static const char *const begins[] = {SN_BY_HOST, SN_BY_BLAS, SN_BY_DNN};
    static const sn_impl_kind kinds[] = {SN_IMPL_HOST, SN_IMPL_BLAS, SN_IMPL_DNN};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(impl, begins[i], strlen(begins[i])) == 0)
            return kinds[i];
    return SN_IMPL_OWN;
}

/* Of a GPU's library: its code is loaded with its first kernel, and it chooses among ways of its
 * own. */
static inline bool sn_impl_is_library(const char *impl) {
    const sn_impl_kind kind = sn_impl_kind_of(impl);
    return kind == SN_IMPL_BLAS || kind == SN_IMPL_DNN;
}

static inline bool sn_impl_is_absent(const char *impl) {
    const char *way = sn_impl_is_library(impl) ? strchr(impl, ':') : NULL;
    return way && strcmp(way + 1, SN_IMPL_ABSENT) == 0;
}

#endif
