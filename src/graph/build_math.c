/* build_math.c: reductions, running sums, sorting and small functions as calls; those that are no
 * row are compositions, whose gradients come from their rows. */
#include "graph/build.h"

/* x as a float: means of integers and truth values are f32, as Keras has it. */
static sn_value as_float(sn_builder *b, sn_value x) {
    if (b->error.code != SNUG_OK || sn_dtype_is_float(sn_graph_type(b->graph, x)->dtype))
        return x;
    return sn_build_cast(b, x, SNUG_F32);
}

sn_value sn_build_variance(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    const sn_value real = as_float(b, x);
    const sn_value off = sn_build_sub(b, real, sn_build_mean(b, real, axes, true));
    return sn_build_mean(b, sn_build_square(b, off), axes, keepdims);
}

sn_value sn_build_deviation(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    return sn_build_sqrt(b, sn_build_variance(b, x, axes, keepdims));
}

/* An infinite maximum is not subtracted: the result is that infinity, not NaN. */
sn_value sn_build_logsumexp(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value zero = sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, 0);
    const sn_value max = sn_build_stop_gradient(b, sn_build_max(b, x, axes, true));
    const sn_value shift = sn_build_select(b, sn_build_isfinite(b, max), max, zero);
    const sn_value terms = sn_build_exp(b, sn_build_sub(b, x, shift));
    const sn_value sum = sn_build_log(b, sn_build_sum(b, terms, axes, true));
    const sn_value all = sn_build_add(b, sum, shift);
    return keepdims ? all : sn_build_sum(b, all, axes, false); /* over extents of 1 */
}

sn_value sn_build_norm(sn_builder *b, sn_value x, int order, uint32_t axes, bool keepdims) {
    if (order == 1)
        return sn_build_sum(b, sn_build_abs(b, x), axes, keepdims);
    return sn_build_sqrt(b, sn_build_sum(b, sn_build_square(b, x), axes, keepdims));
}

sn_value sn_build_scan(sn_builder *b, sn_op op, sn_value x, int axis, bool exclusive,
                       bool reverse) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.scan.axis = axis < 0 ? axis + sn_graph_type(b->graph, x)->rank : axis;
    a.scan.exclusive = exclusive;
    a.scan.reverse = reverse;
    return sn_build(b, op, &a, &x, 1);
}

void sn_build_sort(sn_builder *b, sn_value x, const sn_sort *how, sn_value *values,
                   sn_value *places) {
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE};
    *values = *places = SN_NO_VALUE;
    if (b->error.code != SNUG_OK)
        return;
    const int rank = sn_graph_type(b->graph, x)->rank;
    const bool moved = how->axis != -1 && how->axis != rank - 1;
    const sn_value rows = moved ? sn_build_swapaxes(b, x, how->axis, -1) : x;
    sn_attrs a;
    sn_attrs_default(SN_OP_sort, &a);
    a.sort.descending = how->descending;
    a.sort.k = how->k;
    a.sort.dtype = how->places;
    sn_build_all(b, SN_OP_sort, &a, &rows, 1, outs);
    *values = moved ? sn_build_swapaxes(b, outs[0], how->axis, -1) : outs[0];
    *places = moved ? sn_build_swapaxes(b, outs[1], how->axis, -1) : outs[1];
}

sn_value sn_build_clip(sn_builder *b, sn_value x, double low, double high) {
    sn_attrs a;
    sn_attrs_default(SN_OP_clip, &a);
    a.clip.low = (int64_t)sn_build_param(b, "", low).i;
    a.clip.high = (int64_t)sn_build_param(b, "", high).i;
    return sn_build(b, SN_OP_clip, &a, &x, 1);
}

sn_value sn_build_log_sigmoid(sn_builder *b, sn_value x) {
    return sn_build_neg(b, sn_build_softplus(b, sn_build_neg(b, x)));
}
