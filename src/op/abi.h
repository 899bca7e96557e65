/* abi.h: what the core and a plug-in must agree on, as one number: the door's version, and the
 * tables of operators and attributes, whose order and fields calls rely on. A plug-in of another
 * tree is refused instead of running other rows than were asked for. */
#ifndef SN_OP_ABI_H
#define SN_OP_ABI_H

#include "op/runner.h"

#include <limits.h>

static inline int sn_gpu_abi(void) {
    static const char tables[] =
#define SNUG_OP(name, ...) #name " "
#include "op/ops.def"
#undef SNUG_OP
#define SNUG_ATTRS(family, fields) #family ":" #fields " "
#include "op/attrs.def"
#undef SNUG_ATTRS
        "";
    uint32_t hash = SN_GPU_ABI;
    for (const char *c = tables; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (int)(hash & INT_MAX);
}

#endif
