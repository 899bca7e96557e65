/* build.h: one line per operator. The first error sticks: later calls do nothing and give
 * SN_NO_VALUE, so that layer code and gradient rules read as maths and check once, at the end.
 *
 *     sn_builder b = sn_builder_on(g);
 *     sn_value z = sn_build_matmul(&b, x, w, bias);
 *     sn_value y = sn_build_relu(&b, z);
 *     return sn_builder_done(&b, err);
 */
#ifndef SN_GRAPH_BUILD_H
#define SN_GRAPH_BUILD_H

#include "graph/graph.h"

typedef struct {
    sn_graph *graph;
    snug_error error; /* code SNUG_OK while all went well */
} sn_builder;

sn_builder sn_builder_on(sn_graph *g);
/* Copies the sticky error out. */
SNUG_CHECKED snug_status sn_builder_done(const sn_builder *b, snug_error *err);

/* Any operator, first output. attrs NULL: default. */
sn_value sn_build(sn_builder *b, sn_op op, const sn_attrs *attrs, const sn_value *in, int n_in);
/* Any operator, all outputs into outs[SN_MAX_OUT]. */
void sn_build_all(sn_builder *b, sn_op op, const sn_attrs *attrs, const sn_value *in, int n_in,
                  sn_value *outs);

sn_param sn_build_param(sn_builder *b, const char *name, double value);
sn_param sn_build_key(sn_builder *b, const char *name, int64_t key);

/* sn_build_relu(b, x), sn_build_add(b, x, y), ... for rows without attributes */
#define SN_BUILD_UNARY(name)                                                                       \
    static inline sn_value sn_build_##name(sn_builder *b, sn_value x) {                            \
        return sn_build(b, SN_OP_##name, NULL, &x, 1);                                             \
    }
#define SN_BUILD_BINARY(name)                                                                      \
    static inline sn_value sn_build_##name(sn_builder *b, sn_value x, sn_value y) {                \
        const sn_value in[2] = {x, y};                                                             \
        return sn_build(b, SN_OP_##name, NULL, in, 2);                                             \
    }
SN_BUILD_UNARY(identity)
SN_BUILD_UNARY(stop_gradient)
SN_BUILD_UNARY(check_finite)
SN_BUILD_UNARY(neg)
SN_BUILD_UNARY(abs)
SN_BUILD_UNARY(sign)
SN_BUILD_UNARY(square)
SN_BUILD_UNARY(sqrt)
SN_BUILD_UNARY(rsqrt)
SN_BUILD_UNARY(reciprocal)
SN_BUILD_UNARY(exp)
SN_BUILD_UNARY(log)
SN_BUILD_UNARY(tanh)
SN_BUILD_UNARY(sigmoid)
SN_BUILD_UNARY(softplus)
SN_BUILD_UNARY(erf)
SN_BUILD_UNARY(relu)
SN_BUILD_UNARY(silu)
SN_BUILD_UNARY(gelu)
SN_BUILD_UNARY(logical_not)
SN_BUILD_UNARY(softmax)
SN_BUILD_UNARY(log_softmax)
SN_BUILD_BINARY(add)
SN_BUILD_BINARY(sub)
SN_BUILD_BINARY(mul)
SN_BUILD_BINARY(div)
SN_BUILD_BINARY(maximum)
SN_BUILD_BINARY(minimum)
SN_BUILD_BINARY(equal)
SN_BUILD_BINARY(greater)
SN_BUILD_BINARY(greater_equal)
SN_BUILD_BINARY(logical_and)
SN_BUILD_BINARY(logical_or)
SN_BUILD_BINARY(relu_grad)
SN_BUILD_BINARY(tanh_grad)
SN_BUILD_BINARY(sigmoid_grad)
SN_BUILD_BINARY(silu_grad)
SN_BUILD_BINARY(gelu_grad)
SN_BUILD_BINARY(softmax_grad)
SN_BUILD_BINARY(softmax_xent)
SN_BUILD_BINARY(sparse_xent)
SN_BUILD_BINARY(sigmoid_xent)

sn_value sn_build_fill(sn_builder *b, const snug_type *type, double value);
sn_value sn_build_scalar(sn_builder *b, snug_dtype dtype, double value); /* fill of rank 0 */
/* scale * x + shift */
sn_value sn_build_affine(sn_builder *b, sn_value x, double scale, double shift);
/* leaky_relu, elu, power and the like: one parameter called value. */
sn_value sn_build_value_op(sn_builder *b, sn_op op, const sn_value *in, int n_in, double value);
/* x itself when it has that dtype. */
sn_value sn_build_cast(sn_builder *b, sn_value x, snug_dtype to);
sn_value sn_build_select(sn_builder *b, sn_value condition, sn_value yes, sn_value no);
/* axes: a bit set of axes of x; 0 means all. */
sn_value sn_build_sum(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);
sn_value sn_build_max(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);
/* A sum and an inverse-extent scale. */
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

#endif
