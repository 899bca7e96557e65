/* lines.h: half floats under the loops of wider ones. Some hundred elements at a time, halves are
 * widened into lines on the thread's stack, a loop over f32 (or f64, for references) runs on the
 * lines, and what it wrote is rounded back. Nothing is planned for that, and no loop is written
 * twice. I16, U16 and U32 run loops over i64 in the same way, and wrap.
 *
 *     sn_line_spans(c, n, exp_f32, SNUG_F32);   // exp_f32 sees views of f32, from element 0 on
 *     sn_line_walk(&w, c, add_f32, SNUG_F32);   // the same for rows of a walk
 *
 * 1. A piece of all inputs is read before any of an output is written, and outputs are written
 *    where inputs of the same index lie: what may run in place in f32 may in halves.
 * 2. An element's bits do not depend on where pieces are cut: that is for loops in which element i
 *    of an output depends on element i of inputs alone, whatever its index (not for random numbers
 *    by position).
 * 3. Results are rounded once more, from the line, to nearest, ties to even. */
#ifndef SN_KERNELS_CPU_LINES_H
#define SN_KERNELS_CPU_LINES_H

#include "kernels/cpu/half_floats.h"
#include "kernels/cpu/loops.h"

#define SN_LINE_BYTES 2048 /* 512 of f32, 256 of f64 */

#define sn_line_spans    SN_CPU(line_spans)
#define sn_line_walk     SN_CPU(line_walk)
#define sn_line_elements SN_CPU(line_elements)
#define sn_halves_to_f32 SN_CPU(halves_to_f32)
#define sn_halves_of_f32 SN_CPU(halves_of_f32)

static inline bool sn_dtype_is_narrow(snug_dtype d) {
    return d == SNUG_I16 || d == SNUG_U16 || d == SNUG_U32;
}

/* What the lines of a dtype hold, where it has some; else itself. */
static inline snug_dtype sn_dtype_line(snug_dtype d) {
    return sn_dtype_is_half(d) ? SNUG_F32 : sn_dtype_is_narrow(d) ? SNUG_I64 : d;
}

/* Element i of I16, U16 or U32; they wrap as they are stored. */
static inline int64_t sn_narrow_at(snug_dtype d, const void *p, int64_t i) {
    if (d == SNUG_I16)
        return ((const int16_t *)p)[i];
    if (d == SNUG_U16)
        return ((const uint16_t *)p)[i];
    return ((const uint32_t *)p)[i];
}
static inline void sn_narrow_put(snug_dtype d, void *p, int64_t i, uint64_t v) {
    if (d == SNUG_U32)
        ((uint32_t *)p)[i] = (uint32_t)v;
    else
        ((uint16_t *)p)[i] = (uint16_t)v;
}

static inline bool sn_call_has_halves(const sn_call *c) {
    bool has = false;
    for (int i = 0; i < c->n_in; i++)
        has = has || sn_dtype_is_half(c->in[i].type.dtype);
    for (int i = 0; i < c->n_out; i++)
        has = has || sn_dtype_is_half(c->out[i].type.dtype);
    return has;
}

static inline bool sn_desc_has_halves(const sn_opdesc *d) {
    bool has = false;
    for (int i = 0; i < d->n_in; i++)
        has = has || sn_dtype_is_half(d->in[i].dtype);
    for (int i = 0; i < d->n_out; i++)
        has = has || sn_dtype_is_half(d->out[i].dtype);
    return has;
}

/* n elements that lie side by side, of F16 or BF16. */
void sn_halves_to_f32(snug_dtype from, const void *in, int64_t n, float *out);
void sn_halves_of_f32(snug_dtype to, const float *in, int64_t n, void *out);

/* line: SNUG_F32 or SNUG_F64, what the span or row takes where an operand is a half; SNUG_I64 for a
 * narrow one. f32 beside halves is widened where lines are f64; others stay as they are. */
void sn_line_spans(const sn_call *c, int64_t n, sn_span span, snug_dtype line);
void sn_line_walk(const sn_walk *w, const sn_call *c, sn_row row, snug_dtype line);
/* As sn_walk_elements, for references. */
void sn_line_elements(const sn_walk *w, const sn_call *c, sn_row row, snug_dtype line);

/* --- kernels of one elementwise operator ------------------------------------------------------ */
/* Plain loops by dtype, and the fast one, which halves run on lines, too; narrow whole numbers run
 * that of i64. NULL: there is none. */
typedef struct {
    sn_span fast_f32;
    sn_span plain[SNUG_N_DTYPES];
} sn_map;

#define sn_map_reference SN_CPU(map_reference)
#define sn_map_run       SN_CPU(map_run)

SNUG_CHECKED snug_status sn_map_reference(const sn_call *c, const sn_map *map, snug_error *err);
SNUG_CHECKED snug_status sn_map_run(const sn_call *c, const sn_map *map, snug_error *err);

#endif
