/* arena.c: the highest byte a plan promises, counted from its steps and from a run. */
#include "support/arena.h"
#include "support/support.h"

/* Bytes that a place has in its memory, over all iterations: slices that stay where they are have
 * only theirs. */
static size_t place_bytes(const sn_plan *p, const sn_place *place) {
    const size_t whole = p->value_bytes[place->value.i];
    if (place->rows < 0 || place->stride > 0)
        return whole;
    const int64_t extent = sn_graph_type(p->graph, place->value)->dims[place->axis];
    return whole / (size_t)extent * (size_t)place->rows;
}

/* The end of all values and all scratch in the first arena. */
static size_t promised_end(const sn_plan *p) {
    size_t highest = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        for (int k = 0; k < s->n_out; k++) {
            const size_t end = s->out[k].offset + place_bytes(p, &s->out[k]);
            if (s->out[k].memory == SN_MEM_FIRST_ARENA && end > highest)
                highest = end;
        }
        if (s->ws_bytes > 0 && s->ws_memory == SN_MEM_FIRST_ARENA &&
            s->ws_offset + s->ws_bytes > highest)
            highest = s->ws_offset + s->ws_bytes;
    }
    return highest;
}

void sn_arena_mark(const sn_executor *x, int poison, unsigned char *written) {
    const snug_view arena = sn_executor_arena(x, SN_MEM_FIRST_ARENA);
    for (size_t i = 0; i < arena.bytes; i++)
        written[i] |= ((const unsigned char *)arena.data)[i] != poison;
}

void sn_arena_expect_exact(const sn_plan *p, const unsigned char *written, const char *what) {
    const sn_plan_memory *memory = &p->memories[SN_MEM_FIRST_ARENA];
    const size_t promised = promised_end(p);
    size_t highest = memory->bytes;
    while (highest > 0 && !written[highest - 1])
        highest--;
    if (highest != promised || memory->used_bytes != promised || promised > memory->bytes)
        fail_msg("%s: written up to %zu; values and scratch end at %zu, the plan says %zu of %zu",
                 what, highest, promised, memory->used_bytes, memory->bytes);
}
