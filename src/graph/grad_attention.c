/* grad_attention.c: the gradient of scaled dot-product attention: one row that makes the weights
 * again, block by block, from q, k, v and the logarithm of each row's sum, so that no matrix of
 * queries by keys waits between the passes. */
#include "graph/rule.h"

/* attention(q, k, v [, mask]) -> (y, lse); lse exists for this rule. */
SN_GRAD_RULE(attention) {
    if (sn_value_ok(c->dout[1]) || (c->node->n_in > 3 && c->wants[3])) {
        sn_rule_unsupported(c, "attention's bias and its second output have no gradient; compute "
                               "the weights with matmul and softmax");
        return;
    }
    const sn_value in[7] = {c->in[0],  c->in[1],   c->in[2], c->out[0],
                            c->out[1], c->dout[0], c->in[3]};
    sn_value din[SN_MAX_OUT];
    sn_build_all(c->b, SN_OP_attention_grad, &c->node->attrs, in, c->node->n_in + 3, din);
    for (int i = 0; i < 3; i++)
        c->din[i] = din[i];
}
