/* flops.c: how much arithmetic an operator does, for the cost model. Products and windows are
 * counted; all others do about one operation per element of their largest operand. */
#include "op/rules.h"

static double count(const snug_type *t, int from, int to) {
    double n = 1;
    for (int k = from; k < to; k++)
        n *= (double)t->dims[k];
    return n;
}

static double all(const snug_type *t) {
    return count(t, 0, t->rank);
}

static double matmul_flops(const sn_opdesc *d) {
    const snug_type *a = &d->in[0];
    return 2 * all(&d->out[0]) * (double)a->dims[a->rank - (d->attrs.matmul.trans_a ? 2 : 1)];
}

static double matmul_adam_flops(const sn_opdesc *d) {
    return all(&d->in[0]) * (2 * (double)d->in[3].dims[0] + 12);
}

static double matmul_adam_dx_flops(const sn_opdesc *d) {
    return all(&d->in[0]) * (4 * (double)d->in[3].dims[0] + 12);
}

/* Each result of the convolution takes kh * kw * C/groups products, in whichever direction. */
static double conv2d_flops(const sn_opdesc *d) {
    return 2 * all(&d->out[0]) * count(&d->in[1], 0, 3);
}

static double conv2d_dx_flops(const sn_opdesc *d) {
    return 2 * all(&d->in[0]) * count(&d->in[1], 0, 3);
}

static double conv2d_dw_flops(const sn_opdesc *d) {
    return 2 * all(&d->in[1]) * count(&d->out[0], 0, 3);
}

/* Each pooled result stands for a stride's worth of the convolution's. */
static double conv2d_pool_flops(const sn_opdesc *d) {
    const int64_t *step = &d->attrs.conv_pool.pool[2];
    return conv2d_flops(d) * (double)step[0] * (double)step[1];
}

static double conv2d_pool_dx_flops(const sn_opdesc *d) {
    const int64_t *step = &d->attrs.conv_pool_dx.pool[2];
    return conv2d_dx_flops(d) * (double)step[0] * (double)step[1];
}

static double conv2d_pool_dw_flops(const sn_opdesc *d) {
    const int64_t *step = &d->attrs.conv_pool_dw.pool[2];
    return conv2d_dw_flops(d) * (double)step[0] * (double)step[1];
}

static double pool_flops(const sn_opdesc *d) {
    return all(&d->out[0]) * (double)d->attrs.pool.kernel[0] * (double)d->attrs.pool.kernel[1];
}

static double avgpool_grad_flops(const sn_opdesc *d) {
    return all(&d->in[0]) * (double)d->attrs.pool_grad.kernel[0] *
           (double)d->attrs.pool_grad.kernel[1];
}

/* Scores and what they weigh: two products of every query with every key; the gradient has five. */
static double attention_flops(const sn_opdesc *d) {
    const snug_type *q = &d->in[0], *k = &d->in[1], *v = &d->in[2];
    const double scores = count(q, 0, q->rank - 1) * (double)k->dims[k->rank - 3];
    const double widths = (double)(q->dims[q->rank - 1] + v->dims[v->rank - 1]);
    return (d->op == SN_OP_attention ? 2 : 5) * scores * widths;
}

/* One product of the states with the recurrent kernel per step, in either direction. */
static double recurrent_flops(const sn_opdesc *d) {
    return 2 * all(&d->in[0]) * (double)d->in[1].dims[0];
}

/* What moves part of a value looks at that part alone. */
static double moved_flops(const sn_opdesc *d) {
    return all(&d->out[0]);
}

static double element_flops(const sn_opdesc *d) {
    double most = 0;
    for (int i = 0; i < d->n_in; i++)
        most = all(&d->in[i]) > most ? all(&d->in[i]) : most;
    for (int i = 0; i < d->n_out; i++)
        most = all(&d->out[i]) > most ? all(&d->out[i]) : most;
    return most;
}

static double (*const heavy[SN_N_OPS])(const sn_opdesc *d) = {
    [SN_OP_matmul] = matmul_flops,
    [SN_OP_matmul_adam] = matmul_adam_flops,
    [SN_OP_matmul_adam_dx] = matmul_adam_dx_flops,
    [SN_OP_conv2d] = conv2d_flops,
    [SN_OP_conv2d_dx] = conv2d_dx_flops,
    [SN_OP_conv2d_dw] = conv2d_dw_flops,
    [SN_OP_conv2d_pool] = conv2d_pool_flops,
    [SN_OP_conv2d_pool_dx] = conv2d_pool_dx_flops,
    [SN_OP_conv2d_pool_dw] = conv2d_pool_dw_flops,
    [SN_OP_maxpool] = pool_flops,
    [SN_OP_avgpool] = pool_flops,
    [SN_OP_avgpool_grad] = avgpool_grad_flops,
    [SN_OP_slice] = moved_flops,
    [SN_OP_gather] = moved_flops,
    [SN_OP_gather_nd] = moved_flops,
    [SN_OP_attention] = attention_flops,
    [SN_OP_attention_grad] = attention_flops,
    [SN_OP_lstm] = recurrent_flops,
    [SN_OP_lstm_grad] = recurrent_flops,
    [SN_OP_gru] = recurrent_flops,
    [SN_OP_gru_grad] = recurrent_flops,
    [SN_OP_simple_rnn] = recurrent_flops,
    [SN_OP_simple_rnn_grad] = recurrent_flops,
};

double sn_op_flops(const sn_opdesc *d) {
    return heavy[d->op] != NULL ? heavy[d->op](d) : element_flops(d);
}
