/* unrolled.h: the gradient rows of recurrent rows, written out in plain operators; for second
 * order, see grad_unrolled.c. */
#ifndef SN_GRAPH_UNROLLED_H
#define SN_GRAPH_UNROLLED_H

#include "graph/rule.h"

/* A gradient row, and gradients that it does not take: of the gates; of lstm's cells, gru's inner.
 * SN_NO_VALUE: none. */
typedef struct {
    sn_op op; /* lstm_grad, gru_grad or simple_rnn_grad */
    const sn_attrs *attrs;
    sn_value in[SN_MAX_IN];
    sn_value like[SN_MAX_OUT]; /* values of the types of its outputs */
    int n_in, n_out;
    sn_value dgates, dinner;
} sn_unrolled_row;

void sn_unroll_row(const sn_grad_call *c, const sn_unrolled_row *row, sn_value *outs);

#endif
