/* grad.h: what a gradient rule sees and says. One function sn_grad_<x> per name in the gradient
 * column. */
#ifndef SN_GRAPH_GRAD_H
#define SN_GRAPH_GRAD_H

#include "graph/build.h"

typedef struct {
    sn_builder *b;
    const sn_node_info *node;  /* lent; copy ids out before building */
    sn_value in[SN_MAX_IN];    /* its inputs */
    sn_value out[SN_MAX_OUT];  /* its outputs */
    sn_value dout[SN_MAX_OUT]; /* gradients of its outputs; SN_NO_VALUE = zero */
    bool wants[SN_MAX_IN];     /* whether the gradient of input i is needed */
    sn_value din[SN_MAX_IN];   /* the rule's answer; SN_NO_VALUE = zero. Preset so. */
} sn_grad_call;

typedef void (*sn_grad_rule)(sn_grad_call *c); /* errors stick in c->b */

/* By operator; NULL where the column says none. */
extern const sn_grad_rule sn_grad_rules[SN_N_OPS];

#endif
