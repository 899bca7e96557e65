/* parts.h: the items of a loop dealt out in even runs to parts, one for each thread that has any,
 * with scratch of its own each: for loops that need some. Which part takes an item must not change
 * what is computed.
 *
 *     const sn_parts p = sn_parts_of(n_rows, n_threads, floats);
 *     out->workspace_bytes = sn_parts_bytes(&p);             // in describe; and in the kernel
 *     for (row = sn_part_first(&p, k); row < sn_part_first(&p, k + 1); row++)
 *         ... sn_part_scratch(&p, c->workspace, k) ... */
#ifndef SN_KERNELS_CPU_PARTS_H
#define SN_KERNELS_CPU_PARTS_H

#include "kernels/cpu/loops.h"

typedef struct {
    int64_t n_items, n_parts;
    int64_t each;   /* items of every part but the last */
    int64_t floats; /* of a part's scratch */
} sn_parts;

static inline sn_parts sn_parts_of(int64_t n_items, int n_threads, int64_t floats) {
    const int64_t most = sn_min_i64(n_items, n_threads < 1 ? 1 : n_threads);
    const int64_t each = most > 0 ? sn_ceil_div(n_items, most) : 1;
    return (sn_parts){n_items, sn_ceil_div(n_items, each), each, floats};
}

/* Floats as whole cache lines. */
static inline int64_t sn_line_floats(int64_t floats) {
    return (floats + 15) / 16 * 16;
}

static inline size_t sn_parts_bytes(const sn_parts *p) {
    return p->n_parts > 0
               ? (size_t)((p->n_parts - 1) * sn_line_floats(p->floats) + p->floats) * sizeof(float)
               : 0;
}

static inline int64_t sn_part_first(const sn_parts *p, int64_t part) {
    return sn_min_i64(part * p->each, p->n_items);
}

/* Part 0, which has the most to do, has the last bytes. */
static inline float *sn_part_scratch(const sn_parts *p, void *workspace, int64_t part) {
    return (float *)workspace + (p->n_parts - 1 - part) * sn_line_floats(p->floats);
}

#endif
