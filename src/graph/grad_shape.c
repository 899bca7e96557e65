/* grad_shape.c: gradients of the rows that move elements and do no arithmetic: each goes back where
 * it came from. */
#include "graph/rule.h"

SN_GRAD_RULE(reshape) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    c->din[0] = sn_build_reshape(c->b, c->dout[0], t.dims, t.rank);
}

SN_GRAD_RULE(transpose) {
    const sn_list *perm = &c->node->attrs.perm.perm;
    int inverse[SNUG_MAX_RANK] = {0};
    for (int i = 0; i < perm->n; i++)
        inverse[perm->v[i]] = i;
    c->din[0] = sn_build_transpose(c->b, c->dout[0], inverse);
}

/* The part of v that starts at `start` and has the extents of `t`. */
static sn_value part_of(const sn_grad_call *c, sn_value v, const snug_type *t,
                        const int64_t *start) {
    sn_attrs a;
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes.n = a.slice.strides.n = t->rank;
    for (int i = 0; i < t->rank; i++) {
        a.slice.sizes.v[i] = t->dims[i];
        a.slice.strides.v[i] = 1;
        a.slice.start[i] = (int64_t)sn_build_key(c->b, "", start[i]).i;
    }
    return sn_build(c->b, SN_OP_slice, &a, &v, 1);
}

SN_GRAD_RULE(concat) {
    const int64_t axis = c->node->attrs.axis.axis;
    int64_t start[SNUG_MAX_RANK] = {0};
    for (int i = 0; i < c->node->n_in; i++) {
        const snug_type t = sn_rule_type(c, c->in[i]);
        if (c->wants[i])
            c->din[i] = part_of(c, c->dout[0], &t, start);
        start[axis] += t.dims[axis];
    }
}

/* slice and slice_grad are each other's adjoints and share the start slots. */
SN_GRAD_RULE(slice) {
    const sn_attrs_slice *from = &c->node->attrs.slice;
    const snug_type t = sn_rule_type(c, c->in[0]);
    sn_attrs a;
    sn_attrs_default(SN_OP_slice_grad, &a);
    a.slice_grad.dims.n = t.rank;
    a.slice_grad.strides = from->strides;
    for (int i = 0; i < SNUG_MAX_RANK; i++) {
        a.slice_grad.dims.v[i] = i < t.rank ? t.dims[i] : 0;
        a.slice_grad.start[i] = from->start[i];
    }
    c->din[0] = sn_build(c->b, SN_OP_slice_grad, &a, &c->dout[0], 1);
}

SN_GRAD_RULE(slice_grad) {
    const sn_attrs_slice_grad *from = &c->node->attrs.slice_grad;
    const snug_type t = sn_rule_type(c, c->in[0]);
    sn_attrs a;
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes.n = t.rank;
    a.slice.strides = from->strides;
    for (int i = 0; i < SNUG_MAX_RANK; i++) {
        a.slice.sizes.v[i] = i < t.rank ? t.dims[i] : 0;
        a.slice.start[i] = from->start[i];
    }
    c->din[0] = sn_build(c->b, SN_OP_slice, &a, &c->dout[0], 1);
}

SN_GRAD_RULE(pad) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    c->din[0] = part_of(c, c->dout[0], &t, c->node->attrs.pad.before.v);
}

/* in: x, indices */
SN_GRAD_RULE(gather) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    const sn_value in[2] = {c->in[1], c->dout[0]};
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_add, &a);
    a.scatter.axis = c->node->attrs.axis.axis;
    a.scatter.dims.n = t.rank;
    for (int i = 0; i < t.rank; i++)
        a.scatter.dims.v[i] = t.dims[i];
    c->din[0] = sn_build(c->b, SN_OP_scatter_add, &a, in, 2);
}

/* in: indices, updates */
SN_GRAD_RULE(scatter_add) {
    const sn_value in[2] = {c->dout[0], c->in[0]};
    sn_attrs a;
    sn_attrs_default(SN_OP_gather, &a);
    a.axis.axis = c->node->attrs.scatter.axis;
    c->din[1] = sn_build(c->b, SN_OP_gather, &a, in, 2);
}

/* in: x, indices */
SN_GRAD_RULE(gather_nd) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    const sn_value in[2] = {c->in[1], c->dout[0]};
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_nd, &a);
    a.scatter_nd.batch = c->node->attrs.batch.batch;
    a.scatter_nd.dims.n = t.rank;
    for (int i = 0; i < t.rank; i++)
        a.scatter_nd.dims.v[i] = t.dims[i];
    c->din[0] = sn_build(c->b, SN_OP_scatter_nd, &a, in, 2);
}

/* in: indices, updates */
SN_GRAD_RULE(scatter_nd) {
    c->din[1] =
        sn_build_gather_nd(c->b, c->dout[0], c->in[0], (int)c->node->attrs.scatter_nd.batch);
}

SN_GRAD_RULE(band) {
    c->din[0] = sn_rule_same_attrs(c, SN_OP_band, c->dout[0], SN_NO_VALUE);
}
