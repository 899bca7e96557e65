/* place.h: where the elements of a call's output lie in the full value (sn_call: axis, first,
 * full). The output is `n_runs` runs of `length` elements; run r starts at element `start + r *
 * pitch` of the full value. */
#ifndef SN_KERNELS_CPU_PLACE_H
#define SN_KERNELS_CPU_PLACE_H

#include "kernels/cpu/cpu.h"

typedef struct {
    int64_t length, start, pitch;
} sn_place_in_full;

static inline sn_place_in_full sn_place_of(const sn_call *c) {
    const snug_type *t = &c->out[0].type;
    if (t->rank == 0)
        return (sn_place_in_full){1, 0, 1};
    const int64_t inner = sn_type_span(t, c->axis + 1, t->rank);
    return (sn_place_in_full){t->dims[c->axis] * inner, c->first * inner, c->full * inner};
}

/* Position in the full value of element i of the output. */
static inline int64_t sn_position(const sn_place_in_full *p, int64_t i) {
    return p->start + i / p->length * p->pitch + i % p->length;
}

#endif
