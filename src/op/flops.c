/* flops.c: the flops column: how much arithmetic an operator does, for the cost model. Products and
 * windows are counted; all others do about one operation per element of their largest operand. */
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

double sn_flops_matmul(const sn_opdesc *d) {
    const snug_type *a = &d->in[0];
    return 2 * all(&d->out[0]) * (double)a->dims[a->rank - (d->attrs.matmul.trans_a ? 2 : 1)];
}

double sn_flops_matmul_adam(const sn_opdesc *d) {
    return all(&d->in[0]) * (2 * (double)d->in[3].dims[0] + 12);
}

double sn_flops_matmul_adam_dx(const sn_opdesc *d) {
    return all(&d->in[0]) * (4 * (double)d->in[3].dims[0] + 12);
}

/* Each result of the convolution takes kh * kw * C/groups products, in whichever direction. */
double sn_flops_conv2d(const sn_opdesc *d) {
    return 2 * all(&d->out[0]) * count(&d->in[1], 0, 3);
}

double sn_flops_conv2d_dx(const sn_opdesc *d) {
    return 2 * all(&d->in[0]) * count(&d->in[1], 0, 3);
}

double sn_flops_conv2d_dw(const sn_opdesc *d) {
    return 2 * all(&d->in[1]) * count(&d->out[0], 0, 3);
}

/* Each pooled result stands for a stride's worth of the convolution's. */
double sn_flops_conv2d_pool(const sn_opdesc *d) {
    const int64_t *step = &d->attrs.conv_pool.pool[2];
    return sn_flops_conv2d(d) * (double)step[0] * (double)step[1];
}

double sn_flops_conv2d_pool_dx(const sn_opdesc *d) {
    const int64_t *step = &d->attrs.conv_pool_dx.pool[2];
    return sn_flops_conv2d_dx(d) * (double)step[0] * (double)step[1];
}

double sn_flops_conv2d_pool_dw(const sn_opdesc *d) {
    const int64_t *step = &d->attrs.conv_pool_dw.pool[2];
    return sn_flops_conv2d_dw(d) * (double)step[0] * (double)step[1];
}

double sn_flops_pool(const sn_opdesc *d) {
    return all(&d->out[0]) * (double)d->attrs.pool.kernel[0] * (double)d->attrs.pool.kernel[1];
}

double sn_flops_avgpool_grad(const sn_opdesc *d) {
    return all(&d->in[0]) * (double)d->attrs.pool_grad.kernel[0] *
           (double)d->attrs.pool_grad.kernel[1];
}

/* Scores and what they weigh: two products of every query with every key; the gradient has five. */
double sn_flops_attention(const sn_opdesc *d) {
    const snug_type *q = &d->in[0], *k = &d->in[1], *v = &d->in[2];
    const double scores = count(q, 0, q->rank - 1) * (double)k->dims[k->rank - 3];
    const double widths = (double)(q->dims[q->rank - 1] + v->dims[v->rank - 1]);
    return (d->op == SN_OP_attention ? 2 : 5) * scores * widths;
}

/* One product of the states with the recurrent kernel per step, in either direction. */
double sn_flops_recurrent(const sn_opdesc *d) {
    return 2 * all(&d->in[0]) * (double)d->in[1].dims[0];
}

/* Of the order of n^3: the elements, each met once for each line of the shorter side. */
double sn_flops_factors(const sn_opdesc *d) {
    const snug_type *t = &d->in[0];
    const int64_t m = t->dims[t->rank - 2], n = t->dims[t->rank - 1];
    return all(t) * (double)(m < n ? m : n);
}

/* A triangle meets each right side; of whole matrices there are factors first. */
double sn_flops_solve(const sn_opdesc *d) {
    const double sides = all(&d->in[1]) * (double)d->in[1].dims[d->in[1].rank - 2];
    return d->attrs.solve.lower || d->attrs.solve.upper ? sides / 2
                                                        : sides + sn_flops_factors(d) / 3;
}

/* What moves part of a value looks at that part alone. */
double sn_flops_moved(const sn_opdesc *d) {
    return all(&d->out[0]);
}

double sn_flops_element(const sn_opdesc *d) {
    double most = 0;
    for (int i = 0; i < d->n_in; i++)
        most = all(&d->in[i]) > most ? all(&d->in[i]) : most;
    for (int i = 0; i < d->n_out; i++)
        most = all(&d->out[i]) > most ? all(&d->out[i]) : most;
    return most;
}

double sn_op_flops(const sn_opdesc *d) {
    return sn_ops[d->op].flops(d);
}
