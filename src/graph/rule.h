/* rule.h: what gradient rules share. Letters: x, y a node's input and output; dy the gradient of y;
 * g the gradient of the output of a row that is itself a gradient (second order). */
#ifndef SN_GRAPH_RULE_H
#define SN_GRAPH_RULE_H

#include "graph/grad.h"

/* A rule is defined through this, so that its name and the table's cannot differ in form. */
#define SN_GRAD_RULE(name)                                                                         \
    void sn_grad_##name(sn_grad_call *c);                                                          \
    void sn_grad_##name(sn_grad_call *c)

/* A copy, because rules build while they use it. v is an input or output of the node. */
static inline snug_type sn_rule_type(const sn_grad_call *c, sn_value v) {
    return *sn_graph_type(c->b->graph, v);
}

/* v summed down to the shape of input i. */
static inline sn_value sn_rule_back_to(const sn_grad_call *c, int i, sn_value v) {
    const snug_type like = sn_rule_type(c, c->in[i]);
    return sn_build_sum_to(c->b, v, &like);
}

/* An operator with the attributes of the node: same words, same parameter slots. */
static inline sn_value sn_rule_same_attrs(const sn_grad_call *c, sn_op op, sn_value p, sn_value q) {
    const sn_value in[2] = {p, q};
    return sn_build(c->b, op, &c->node->attrs, in, sn_value_ok(q) ? 2 : 1);
}

/* A scalar with the value of a parameter slot. */
sn_value sn_rule_slot(const sn_grad_call *c, snug_dtype dtype, int64_t slot);

/* Gradients inside a rule, for a row whose own gradient is that of the same in plain operators.
 * wrt are values that the rule made (identity, slices), so that nothing before them counts. */
void sn_rule_pull_back(const sn_grad_call *c, const sn_pull_back *p, sn_value *grads);

/* Keeps SNUG_E_UNSUPPORTED in the builder. */
void sn_rule_unsupported(const sn_grad_call *c, const char *why);

#endif
