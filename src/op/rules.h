/* rules.h: inside the room `op` only: every rule the table names, and the questions shape rules
 * ask.
 *
 * The declarations are made from ops.def itself, so a name in the table without a function does not
 * link. Questions are named sn_want_*: they fail with a text that names the operator, what it got
 * and what fits. An extent of -1 is unknown and fits everything. */
#ifndef SN_OP_RULES_H
#define SN_OP_RULES_H

#include "op/op.h"

#define SNUG_OP(name, n, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,      \
                flops, ...)                                                                        \
    snug_status sn_shape_##shape(sn_opdesc *d, snug_error *err);                                   \
    void sn_axes_##axes(const sn_opdesc *d, sn_ways *ways);                                        \
    double sn_flops_##flops(const sn_opdesc *d);
#include "op/ops.def"
#undef SNUG_OP

#define SNUG_ATTRS(name, fields) extern const sn_attr_family sn_family_##name;
#include "op/attrs.def"
#undef SNUG_ATTRS

/* A type as text, to be used inside one expression: sn_type_text(&t).s */
typedef struct {
    char s[192];
} sn_text;
sn_text sn_type_text(const snug_type *t);

static inline const char *sn_op_name(const sn_opdesc *d) {
    return sn_ops[d->op].name;
}

/* The bool and opaque dtypes are no numbers. */
static inline bool sn_dtype_is_number(snug_dtype t) {
    return sn_dtype_is_float(t) || sn_dtype_is_int(t);
}

static inline bool sn_dim_fits(int64_t a, int64_t b) {
    return a == b || a < 0 || b < 0;
}

/* The better known of two extents that fit. */
static inline int64_t sn_dim_merge(int64_t a, int64_t b) {
    return a < 0 ? b : a;
}

SNUG_CHECKED snug_status sn_want_float(const sn_opdesc *d, int i, snug_error *err);
SNUG_CHECKED snug_status sn_want_number(const sn_opdesc *d, int i, snug_error *err);
SNUG_CHECKED snug_status sn_want_bool(const sn_opdesc *d, int i, snug_error *err);
SNUG_CHECKED snug_status sn_want_index(const sn_opdesc *d, int i, snug_error *err); /* i32 or i64 */
SNUG_CHECKED snug_status sn_want_plain(const sn_opdesc *d, int i, snug_error *err); /* not opaque */
SNUG_CHECKED snug_status sn_want_dtype_of(const sn_opdesc *d, int i, int like, snug_error *err);
/* The dtype of input `like`, or f32 where that is a half: weights and statistics are f32. */
SNUG_CHECKED snug_status sn_want_beside(const sn_opdesc *d, int i, int like, snug_error *err);
/* The other way round: a half where input `like` is f32; so gradients come to master weights. */
SNUG_CHECKED snug_status sn_want_below(const sn_opdesc *d, int i, int like, snug_error *err);
/* The attribute `wide`: 1 is for results of halves, of input i; and the dtype of the result. */
SNUG_CHECKED snug_status sn_want_wide(const sn_opdesc *d, int i, int64_t wide, snug_error *err);
static inline snug_dtype sn_wide_dtype(const sn_opdesc *d, int i, int64_t wide) {
    return wide ? sn_dtype_sums(d->in[i].dtype) : d->in[i].dtype;
}
SNUG_CHECKED snug_status sn_want_rank(const sn_opdesc *d, int i, int min, int max, snug_error *err);
/* Input i has the dims of `want`; merges what is known of input i into want. */
SNUG_CHECKED snug_status sn_want_dims(const sn_opdesc *d, int i, snug_type *want, snug_error *err);
/* Inputs [first, first + n) are vectors [C] of the dtype of input 0 (or f32 beside halves), C the
 * last extent of `like`, which learns C. */
SNUG_CHECKED snug_status sn_want_vectors(const sn_opdesc *d, int first, int n, snug_type *like,
                                         snug_error *err);
SNUG_CHECKED snug_status sn_want_axis(const sn_opdesc *d, int64_t axis, int rank, snug_error *err);
SNUG_CHECKED snug_status sn_want_flag(const sn_opdesc *d, const char *name, int64_t value,
                                      snug_error *err);
/* Every one of v[0, n) lies in [min, 2^31). */
SNUG_CHECKED snug_status sn_want_range(const sn_opdesc *d, const char *name, const int64_t *v,
                                       int n, int64_t min, snug_error *err);
/* Every entry of the list is an extent, or -1. */
SNUG_CHECKED snug_status sn_want_extents(const sn_opdesc *d, const char *name, const sn_list *list,
                                         snug_error *err);

/* The answer of most rules. */
static inline snug_status sn_one_output(sn_opdesc *d, snug_type t) {
    d->n_out = 1;
    d->out[0] = t;
    return SNUG_OK;
}

snug_type sn_type_of(snug_dtype dtype, const sn_list *dims);
/* t without its last axis. */
snug_type sn_type_rows(const snug_type *t);
/* [last extent of t], of this dtype. */
snug_type sn_type_channels(const snug_type *t, snug_dtype dtype);
/* Numpy's rule: axes aligned at the last; fails naming the axis. dtype is a's. */
SNUG_CHECKED snug_status sn_type_broadcast(const sn_opdesc *d, const snug_type *a,
                                           const snug_type *b, snug_type *out, snug_error *err);

/* A new way over a label of this extent that no operand carries yet; sn_carry lets one carry it. */
sn_way *sn_way_add(sn_ways *ways, int64_t extent);
static inline void sn_carry(sn_axis_ref *ref, int axis) {
    *ref = (sn_axis_ref){.axis = axis, .outer = 1, .inner = 1};
}

#endif
