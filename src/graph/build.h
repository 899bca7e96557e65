/* build.h: one line per operator. The first error sticks: later calls do nothing and give
 * SN_NO_VALUE, so that layer code and gradient rules read as maths and check once, at the end.
 *
 *     sn_builder b = sn_builder_on(g);
 *     sn_value z = sn_build_matmul(&b, x, w, bias);
 *     sn_value y = sn_build_relu(&b, z);
 *     return sn_builder_done(&b, err); */
#ifndef SN_GRAPH_BUILD_H
#define SN_GRAPH_BUILD_H

#include "graph/graph.h"

typedef struct {
    sn_graph *graph;
    snug_error error; /* code SNUG_OK while all went well */
} sn_builder;

sn_builder sn_builder_on(sn_graph *g);
/* The same in place: a builder is large. */
static inline void sn_builder_start(sn_builder *b, sn_graph *g) {
    b->graph = g;
    b->error.code = SNUG_OK;
    b->error.text[0] = 0;
}
/* Copies the sticky error out. */
SNUG_CHECKED snug_status sn_builder_done(const sn_builder *b, snug_error *err);

/* Any operator, first output. attrs NULL: default. */
sn_value sn_build(sn_builder *b, sn_op op, const sn_attrs *attrs, const sn_value *in, int n_in);
/* Any operator, all outputs into outs[SN_MAX_OUT]. */
void sn_build_all(sn_builder *b, sn_op op, const sn_attrs *attrs, const sn_value *in, int n_in,
                  sn_value *outs);

sn_param sn_build_param(sn_builder *b, const char *name, double value);
sn_param sn_build_key(sn_builder *b, const char *name, int64_t key);
/* One that a training step binds anew: of numbers drawn. */
sn_param sn_build_step_key(sn_builder *b, const char *name, int64_t key);

/* sn_build_relu(b, x), sn_build_add(b, x, y), ...: declared by the rows that say so */
#define SN_BUILD_UNARY(name)                                                                       \
    static inline sn_value sn_build_##name(sn_builder *b, sn_value x) {                            \
        return sn_build(b, SN_OP_##name, NULL, &x, 1);                                             \
    }
#define SN_BUILD_BINARY(name)                                                                      \
    static inline sn_value sn_build_##name(sn_builder *b, sn_value x, sn_value y) {                \
        const sn_value in[2] = {x, y};                                                             \
        return sn_build(b, SN_OP_##name, NULL, in, 2);                                             \
    }
#define SN_BUILD_OWN(name)
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, ...)       \
    SN_BUILD_##build(name)
#include "op/ops.def"
#undef SNUG_OP

/* Rows there are none of, because another says the same. */
static inline sn_value sn_build_less(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_greater(b, y, x);
}
static inline sn_value sn_build_less_equal(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_greater_equal(b, y, x);
}
static inline sn_value sn_build_logical_xor(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_not_equal(b, x, y);
}

sn_value sn_build_fill(sn_builder *b, const snug_type *type, double value);
sn_value sn_build_scalar(sn_builder *b, snug_dtype dtype, double value); /* fill of rank 0 */
/* scale * x + shift */
sn_value sn_build_affine(sn_builder *b, sn_value x, double scale, double shift);
/* x + shift and scale * x, with one parameter of their own. */
sn_value sn_build_shifted(sn_builder *b, sn_value x, double shift);
sn_value sn_build_scaled(sn_builder *b, sn_value x, double scale);
/* leaky_relu, elu, power and the like: one parameter called value. */
sn_value sn_build_value_op(sn_builder *b, sn_op op, const sn_value *in, int n_in, double value);
/* x itself when it has that dtype. */
sn_value sn_build_cast(sn_builder *b, sn_value x, snug_dtype to);
sn_value sn_build_select(sn_builder *b, sn_value condition, sn_value yes, sn_value no);
/* axes: a bit set of axes of x; 0 means all. */
sn_value sn_build_reduce(sn_builder *b, sn_op op, sn_value x, uint32_t axes, bool keepdims);
#define SN_BUILD_REDUCTION(name, row)                                                              \
    static inline sn_value sn_build_##name(sn_builder *b, sn_value x, uint32_t axes,               \
                                           bool keepdims) {                                        \
        return sn_build_reduce(b, SN_OP_##row, x, axes, keepdims);                                 \
    }
SN_BUILD_REDUCTION(sum, sum)
SN_BUILD_REDUCTION(prod, prod)
SN_BUILD_REDUCTION(max, max)
SN_BUILD_REDUCTION(min, min)
SN_BUILD_REDUCTION(any_true, max) /* of truth values */
SN_BUILD_REDUCTION(all_true, min)
/* A sum and an inverse-extent scale; of integers in f32. */
sn_value sn_build_mean(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);
sn_value sn_build_argmax(sn_builder *b, sn_value x, int axis, snug_dtype dtype);
sn_value sn_build_broadcast_to(sn_builder *b, sn_value x, const snug_type *like);
/* Sums x down to the shape of `like` (the gradient of broadcasting); x itself when equal. */
sn_value sn_build_sum_to(sn_builder *b, sn_value x, const snug_type *like);
/* One dim may be -1. */
sn_value sn_build_reshape(sn_builder *b, sn_value x, const int64_t *dims, int rank);
sn_value sn_build_transpose(sn_builder *b, sn_value x, const int *perm); /* of x's rank */
/* bias may be SN_NO_VALUE. */
sn_value sn_build_matmul(sn_builder *b, sn_value x, sn_value w, sn_value bias);
sn_value sn_build_matmul_t(sn_builder *b, sn_value x, sn_value y, bool trans_x, bool trans_y);
/* numpy's einsum of one or two operands, the result written out: "abc,cde->abde",
 * "...x,xy->...y". */
sn_value sn_build_einsum(sn_builder *b, const char *text, const sn_value *in, int n_in);

/* --- reductions and functions that are no row (build_math.c) ---------------------------------- */
sn_value sn_build_variance(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);
sn_value sn_build_deviation(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);
sn_value sn_build_logsumexp(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);
/* order 1: the sum of magnitudes; 2: the root of the sum of squares. */
sn_value sn_build_norm(sn_builder *b, sn_value x, int order, uint32_t axes, bool keepdims);
/* op: SN_OP_cumsum or SN_OP_cumprod; the axis may be negative. */
sn_value sn_build_scan(sn_builder *b, sn_op op, sn_value x, int axis, bool exclusive, bool reverse);
typedef struct {
    int axis; /* may be negative */
    bool descending;
    int64_t k;         /* only the first k; 0: all */
    snug_dtype places; /* i32 or i64 */
} sn_sort;
/* Equal ones stay in their order; top-k is descending with k. */
void sn_build_sort(sn_builder *b, sn_value x, const sn_sort *how, sn_value *values,
                   sn_value *places);
sn_value sn_build_clip(sn_builder *b, sn_value x, double low, double high);
sn_value sn_build_log_sigmoid(sn_builder *b, sn_value x);

/* --- layout (build_layout.c): compositions; axes may be negative, from the end --------------- */
sn_value sn_build_expand_dims(sn_builder *b, sn_value x, int axis); /* a new axis of extent 1 */
sn_value sn_build_squeeze(sn_builder *b, sn_value x, int axis);     /* without it */
sn_value sn_build_swapaxes(sn_builder *b, sn_value x, int one, int other);
/* x[begin : : stride], `size` elements, per axis of x; size -1: as many as there are from 0 on. A
 * negative stride goes backwards from `begin`. stride NULL: ones. */
sn_value sn_build_slice(sn_builder *b, sn_value x, const int64_t *begin, const int64_t *size,
                        const int64_t *stride);
/* The same along one axis, all of the others; x itself when that is everything. */
sn_value sn_build_part(sn_builder *b, sn_value x, int axis, int64_t begin, int64_t size);
sn_value sn_build_flip(sn_builder *b, sn_value x, uint32_t axes); /* a bit set */
sn_value sn_build_roll(sn_builder *b, sn_value x, int axis, int64_t shift);
sn_value sn_build_concat(sn_builder *b, const sn_value *in, int n, int axis);
sn_value sn_build_stack(sn_builder *b, const sn_value *in, int n, int axis); /* along a new axis */
/* counts[k] times along axis k: each element (repeat), or the whole axis (tile). */
sn_value sn_build_repeat(sn_builder *b, sn_value x, const int64_t *counts);
sn_value sn_build_tile(sn_builder *b, sn_value x, const int64_t *counts);
/* Borders per axis of x: a constant, or the mirror image with (symmetric) or without (reflect) the
 * edge itself. x itself when there are none. */
sn_value sn_build_pad(sn_builder *b, sn_value x, const int64_t *before, const int64_t *after,
                      double value);
sn_value sn_build_pad_mirror(sn_builder *b, sn_value x, const int64_t *before, const int64_t *after,
                             bool edge_twice);
/* x[b..., i0, i1, ...] for the rows i of `indices` [b..., n..., k]: the first `batch` axes belong
 * together. */
sn_value sn_build_gather_nd(sn_builder *b, sn_value x, sn_value indices, int batch);
sn_value sn_build_take_along_axis(sn_builder *b, sn_value x, sn_value indices, int axis);
typedef struct {
    int64_t depth;
    snug_dtype dtype; /* a float type unless on is 1 and off 0 */
    int axis;         /* of the result; -1: the last */
    double on, off;
} sn_one_hot;
sn_value sn_build_one_hot(sn_builder *b, sn_value indices, const sn_one_hot *spec);
/* Element [..., i, j] where low <= j - i <= high, else 0: tril(k) is (INT32_MIN, k), triu(k) is
 * (k, INT32_MAX). */
sn_value sn_build_band(sn_builder *b, sn_value x, int64_t low, int64_t high);
/* The shortest of those x that bring |a x - rhs| lowest; singular values of a up to this part of
 * the largest count as zero. */
sn_value sn_build_lstsq(sn_builder *b, sn_value a, sn_value rhs, double cut);
/* The x of a x = rhs; one, if not NULL: of whole matrices, 1 or NaN where there is no x. */
sn_value sn_build_solve(sn_builder *b, const sn_attrs_solve *how, sn_value a, sn_value rhs,
                        sn_value *one);

#endif
