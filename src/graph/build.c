/* build.c: the helpers of build.h. Each fills the attributes of one operator and appends it; an
 * error is kept in the builder with the layer's name before it, and everything after it does
 * nothing. */
#include "graph/store.h"

#include "graph/build.h"

#include <string.h>

sn_builder sn_builder_on(sn_graph *g) {
    sn_builder b; /* its error's text is long: not cleared */
    sn_builder_start(&b, g);
    return b;
}

snug_status sn_builder_done(const sn_builder *b, snug_error *err) {
    if (b->error.code != SNUG_OK && err)
        *err = b->error;
    return b->error.code;
}

static bool failed(const sn_builder *b) {
    return b->error.code != SNUG_OK;
}

/* Keeps the first error; names the layer being built. */
static void keep_error(sn_builder *b, snug_status status) {
    const char *owner = sn_graph_owner_name(b->graph, b->graph->owner);
    b->error.code = status;
    if (*owner)
        sn_fail_in(&b->error, status, "%s", owner);
}

/* Whether v is the value `of`, seen in another shape or not. */
static bool is_alias(const sn_graph *g, sn_value v, sn_value of) {
    while (v.i != of.i) {
        const sn_node maker =
            v.i < sn_graph_n_values(g) ? sn_graph_value_at(g, v)->node : (sn_node){UINT32_MAX};
        if (maker.i == UINT32_MAX ||
            sn_ops[sn_graph_node_at(g, maker)->op].inplace != SN_INPLACE_ALIAS)
            return false;
        v = sn_graph_node_at(g, maker)->in[0];
    }
    return true;
}

static sn_value copy_of(sn_builder *b, sn_value v) {
    const snug_type type = *sn_graph_type(b->graph, v);
    sn_attrs a;
    sn_value out[SN_MAX_OUT] = {SN_NO_VALUE};
    sn_attrs_default(SN_OP_broadcast_to, &a);
    a.shape.dims.n = type.rank;
    memcpy(a.shape.dims.v, type.dims, sizeof type.dims);
    const snug_status status =
        sn_graph_node(b->graph, SN_OP_broadcast_to, &a, &v, 1, out, NULL, &b->error);
    if (status != SNUG_OK)
        keep_error(b, status);
    return out[0];
}

/* A variable that is updated by what it holds: it cannot be read while it is written. */
static void copy_what_is_written(sn_builder *b, sn_value *in, int n_in) {
    const uint32_t n_values = sn_graph_n_values(b->graph);
    for (int k = 0; k < n_in; k++)
        for (int j = 0; j < k && in[k].i < n_values; j++)
            if (in[j].i < n_values && sn_graph_value_at(b->graph, in[j])->var >= 0 &&
                is_alias(b->graph, in[k], in[j])) {
                in[k] = copy_of(b, in[k]);
                break;
            }
}

void sn_build_all(sn_builder *b, sn_op op, const sn_attrs *attrs, const sn_value *in, int n_in,
                  sn_value *outs) {
    for (int k = 0; k < SN_MAX_OUT; k++)
        outs[k] = SN_NO_VALUE;
    sn_value operands[SN_MAX_IN];
    if (!failed(b) && sn_ops[op].effect == SN_STATE && n_in <= SN_MAX_IN) {
        memcpy(operands, in, (size_t)n_in * sizeof *in);
        copy_what_is_written(b, operands, n_in);
        in = operands;
    }
    if (failed(b))
        return;
    const snug_status status = sn_graph_node(b->graph, op, attrs, in, n_in, outs, NULL, &b->error);
    if (status != SNUG_OK)
        keep_error(b, status);
}

sn_value sn_build(sn_builder *b, sn_op op, const sn_attrs *attrs, const sn_value *in, int n_in) {
    sn_value outs[SN_MAX_OUT];
    sn_build_all(b, op, attrs, in, n_in, outs);
    return outs[0];
}

static sn_param add_param(sn_builder *b, const sn_param_info *info) {
    sn_param p = {0};
    if (failed(b))
        return p;
    const snug_status status = sn_graph_param(b->graph, info, &p, &b->error);
    if (status != SNUG_OK)
        keep_error(b, status);
    return p;
}

sn_param sn_build_param(sn_builder *b, const char *name, double value) {
    return add_param(b, &(sn_param_info){.name = name, .kind = SN_PARAM_REAL, .real = value});
}

sn_param sn_build_key(sn_builder *b, const char *name, int64_t key) {
    return add_param(b, &(sn_param_info){.name = name, .kind = SN_PARAM_KEY, .key = key});
}

sn_param sn_build_step_key(sn_builder *b, const char *name, int64_t key) {
    return add_param(
        b, &(sn_param_info){.name = name, .kind = SN_PARAM_KEY, .key = key, .each_step = true});
}

/* Whether x can be looked at; a builder without an error may still be handed a value that is not
 * there. */
static bool readable(sn_builder *b, sn_value x) {
    if (failed(b))
        return false;
    if (x.i < sn_graph_n_values(b->graph))
        return true;
    keep_error(b, sn_fail(&b->error, SNUG_E_INVALID,
                          "value %u is not in the graph, which has %u values", x.i,
                          sn_graph_n_values(b->graph)));
    return false;
}

static void set_list(sn_list *list, const int64_t *v, int n) {
    list->n = n;
    for (int i = 0; i < n && i < SNUG_MAX_RANK; i++)
        list->v[i] = v[i];
}

static int64_t slot_of(sn_param p) {
    return (int64_t)p.i;
}

/* --- values from nothing ---------------------------------------------------------------------- */

sn_value sn_build_fill(sn_builder *b, const snug_type *type, double value) {
    sn_attrs a;
    sn_attrs_default(SN_OP_fill, &a);
    set_list(&a.fill.dims, type->dims, type->rank);
    a.fill.dtype = type->dtype;
    a.fill.value = slot_of(sn_build_param(b, "", value));
    return sn_build(b, SN_OP_fill, &a, NULL, 0);
}

sn_value sn_build_scalar(sn_builder *b, snug_dtype dtype, double value) {
    return sn_build_fill(b, &(snug_type){.dtype = dtype}, value);
}

/* --- elementwise ------------------------------------------------------------------------------ */

sn_value sn_build_affine(sn_builder *b, sn_value x, double scale, double shift) {
    sn_attrs a; /* all that the row has is set here */
    a.affine.scale = slot_of(sn_build_param(b, "", scale));
    a.affine.shift = slot_of(sn_build_param(b, "", shift));
    return sn_build(b, SN_OP_affine, &a, &x, 1);
}

static int64_t plain(sn_builder *b, int value) {
    sn_param p = {0};
    if (!failed(b)) {
        const snug_status status = sn_graph_plain(b->graph, value, &p, &b->error);
        if (status != SNUG_OK)
            keep_error(b, status);
    }
    return slot_of(p);
}

sn_value sn_build_shifted(sn_builder *b, sn_value x, double shift) {
    sn_attrs a; /* all that the row has is set here */
    a.affine.scale = plain(b, 1);
    a.affine.shift = slot_of(sn_build_param(b, "", shift));
    return sn_build(b, SN_OP_affine, &a, &x, 1);
}

sn_value sn_build_scaled(sn_builder *b, sn_value x, double scale) {
    sn_attrs a; /* all that the row has is set here */
    a.affine.scale = slot_of(sn_build_param(b, "", scale));
    a.affine.shift = plain(b, 0);
    return sn_build(b, SN_OP_affine, &a, &x, 1);
}

sn_value sn_build_value_op(sn_builder *b, sn_op op, const sn_value *in, int n_in, double value) {
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.value.value = slot_of(sn_build_param(b, "", value));
    return sn_build(b, op, &a, in, n_in);
}

sn_value sn_build_cast(sn_builder *b, sn_value x, snug_dtype to) {
    if (!readable(b, x))
        return SN_NO_VALUE;
    if (sn_graph_type(b->graph, x)->dtype == to)
        return x;
    sn_attrs a;
    sn_attrs_default(SN_OP_cast, &a);
    a.dtype.dtype = to;
    return sn_build(b, SN_OP_cast, &a, &x, 1);
}

sn_value sn_build_select(sn_builder *b, sn_value condition, sn_value yes, sn_value no) {
    const sn_value in[3] = {condition, yes, no};
    return sn_build(b, SN_OP_select, NULL, in, 3);
}

/* --- reductions and shapes -------------------------------------------------------------------- */

/* The attribute lists every axis, ascending, also where the caller said 0 for all. */
static sn_value reduce(sn_builder *b, sn_op op, sn_value x, uint32_t axes, bool keepdims,
                       bool wide) {
    if (!readable(b, x))
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, x)->rank;
    if (rank < SNUG_MAX_RANK && axes >> rank) {
        keep_error(b, sn_fail(&b->error, SNUG_E_INVALID, "%s over axes 0x%x of a value of rank %d",
                              sn_ops[op].name, axes, rank));
        return SN_NO_VALUE;
    }
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.axes.keepdims = keepdims;
    a.axes.wide = wide;
    for (int i = 0; i < rank; i++)
        if (axes == 0 || (axes >> i & 1u))
            a.axes.axes.v[a.axes.axes.n++] = i;
    return sn_build(b, op, &a, &x, 1);
}

sn_value sn_build_reduce(sn_builder *b, sn_op op, sn_value x, uint32_t axes, bool keepdims) {
    return reduce(b, op, x, axes, keepdims, false);
}

sn_value sn_build_mean(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    if (!readable(b, x))
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, x)->dtype;
    const bool real = sn_dtype_is_float(dtype);
    if (!real)
        x = sn_build_cast(b, x, SNUG_F32);
    const sn_value total = reduce(b, SN_OP_sum, x, axes, keepdims, sn_dtype_is_half(dtype));
    sn_attrs a;
    sn_attrs_default(SN_OP_affine, &a);
    a.affine.scale = slot_of(
        add_param(b, &(sn_param_info){.kind = SN_PARAM_INVERSE_EXTENT, .of = x, .axes = axes}));
    a.affine.shift = slot_of(sn_build_param(b, "", 0));
    const sn_value mean = sn_build(b, SN_OP_affine, &a, &total, 1);
    return real ? sn_build_cast(b, mean, dtype) : mean;
}

sn_value sn_build_argmax(sn_builder *b, sn_value x, int axis, snug_dtype dtype) {
    sn_attrs a;
    sn_attrs_default(SN_OP_argmax, &a);
    a.argmax.axis = axis;
    a.argmax.dtype = dtype;
    return sn_build(b, SN_OP_argmax, &a, &x, 1);
}

sn_value sn_build_broadcast_to(sn_builder *b, sn_value x, const snug_type *like) {
    if (!readable(b, x))
        return SN_NO_VALUE;
    if (sn_dims_equal(sn_graph_type(b->graph, x), like))
        return x;
    sn_attrs a;
    sn_attrs_default(SN_OP_broadcast_to, &a);
    set_list(&a.shape.dims, like->dims, like->rank);
    return sn_build(b, SN_OP_broadcast_to, &a, &x, 1);
}

sn_value sn_build_sum_to(sn_builder *b, sn_value x, const snug_type *like_lent) {
    if (!readable(b, x))
        return SN_NO_VALUE;
    const snug_type like = *like_lent; /* it may lie in the graph, which grows */
    const snug_type from = *sn_graph_type(b->graph, x);
    const int lead = from.rank - like.rank;
    uint32_t axes = 0, inner = 0;
    for (int i = 0; i < from.rank; i++) {
        if (i < lead)
            axes |= 1u << i;
        else if (from.dims[i] != like.dims[i - lead])
            inner |= 1u << i;
    }
    if (!(axes | inner))
        return x;
    if (!inner)
        return sn_build_sum(b, x, axes, false);
    const sn_value kept = sn_build_sum(b, x, axes | inner, true);
    return lead > 0 ? sn_build_reshape(b, kept, like.dims, like.rank) : kept;
}

sn_value sn_build_reshape(sn_builder *b, sn_value x, const int64_t *dims, int rank) {
    sn_attrs a;
    sn_attrs_default(SN_OP_reshape, &a);
    set_list(&a.shape.dims, dims, rank);
    return sn_build(b, SN_OP_reshape, &a, &x, 1);
}

sn_value sn_build_transpose(sn_builder *b, sn_value x, const int *perm) {
    if (!readable(b, x))
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_transpose, &a);
    a.perm.perm.n = sn_graph_type(b->graph, x)->rank;
    for (int i = 0; i < a.perm.perm.n; i++)
        a.perm.perm.v[i] = perm[i];
    return sn_build(b, SN_OP_transpose, &a, &x, 1);
}

/* --- matrices --------------------------------------------------------------------------------- */

sn_value sn_build_matmul(sn_builder *b, sn_value x, sn_value w, sn_value bias) {
    const sn_value in[3] = {x, w, bias};
    return sn_build(b, SN_OP_matmul, NULL, in, sn_value_ok(bias) ? 3 : 2);
}

sn_value sn_build_matmul_t(sn_builder *b, sn_value x, sn_value y, bool trans_x, bool trans_y) {
    const sn_value in[2] = {x, y};
    sn_attrs a;
    sn_attrs_default(SN_OP_matmul, &a);
    a.matmul.trans_a = trans_x;
    a.matmul.trans_b = trans_y;
    return sn_build(b, SN_OP_matmul, &a, in, 2);
}
