/* grad_picture.c: gradients of resize and warp and of their gradients: linear maps of the pictures
 * and their adjoints. Transforms of a warp get no gradient. */
#include "graph/rule.h"

/* The adjoint row of the pair, making pictures of the size of the node's input 0. */
static sn_attrs adjoint_attrs(const sn_grad_call *c, sn_op op) {
    const snug_type t = sn_rule_type(c, c->in[0]);
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.resize.size[0] = t.dims[1];
    a.resize.size[1] = t.dims[2];
    return a;
}

static void resize_by(sn_grad_call *c, sn_op op) {
    sn_attrs a = adjoint_attrs(c, op);
    a.resize.method = c->node->attrs.resize.method;
    a.resize.antialias = c->node->attrs.resize.antialias;
    c->din[0] = sn_build(c->b, op, &a, &c->dout[0], 1);
}

SN_GRAD_RULE(resize) {
    resize_by(c, SN_OP_resize_grad);
}

SN_GRAD_RULE(resize_grad) {
    resize_by(c, SN_OP_resize);
}

/* in: picture, transforms */
SN_GRAD_RULE(warp) {
    const sn_value in[2] = {c->dout[0], c->in[1]};
    sn_attrs a = adjoint_attrs(c, SN_OP_warp_grad);
    a.warp_grad.mode = c->node->attrs.warp.mode;
    a.warp_grad.nearest = c->node->attrs.warp.nearest;
    if (c->wants[0])
        c->din[0] = sn_build(c->b, SN_OP_warp_grad, &a, in, 2);
}

/* in: dy, transforms. The constant outside has no part in it. */
SN_GRAD_RULE(warp_grad) {
    const sn_value in[2] = {c->dout[0], c->in[1]};
    sn_attrs a = adjoint_attrs(c, SN_OP_warp);
    a.warp.mode = c->node->attrs.warp_grad.mode;
    a.warp.nearest = c->node->attrs.warp_grad.nearest;
    a.warp.value = (int64_t)sn_build_param(c->b, "", 0).i;
    if (c->wants[0])
        c->din[0] = sn_build(c->b, SN_OP_warp, &a, in, 2);
}
