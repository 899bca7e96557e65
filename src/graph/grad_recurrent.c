/* grad_recurrent.c: gradients of the recurrent rows. The gradient row runs the steps backwards and
 * gives the gradients of the gates' inputs; those of the recurrent kernel, the recurrent bias and
 * the dropout factors are sums over all steps, made here of ordinary rows:
 *
 *     gate g sees   f_g s U_g      s the hidden state before the step (gru with reset before the
 *                                  product: r s for the candidate), f_g the dropout factors
 *     dU_g = sum (f_g s)^T d_g     df_g = sum s (d_g U_g^T)     d_g the gradient of what it sees
 *
 * A gradient of what a row keeps for these rules (its gates, cells) comes in second order alone,
 * see grad_unrolled.c. Gates that see the same and have their gradients side by side are one group,
 * one product. Letters: B examples, T steps, H units. */
#include "graph/unrolled.h"

typedef struct {
    const sn_grad_call *c;
    sn_builder *b;
    int64_t B, T, H, n_gates;
    sn_value mask, drop;  /* SN_NO_VALUE: none */
    sn_value h0, hidden;  /* initial state, states after the steps */
    sn_value before;      /* states before the steps, once made */
    sn_value dgates;      /* d of the projections [B,T,GH] */
    sn_value reset;       /* gru: gate r [B,T,H] where the candidate sees r s, or SN_NO_VALUE */
    sn_value d_candidate; /* gru: of what the candidate sees, where dgates has another */
} parts;

static parts parts_of(const sn_grad_call *c, int n_gates, int fixed) {
    const snug_type gates = sn_rule_type(c, c->in[0]);
    parts p = {.c = c,
               .b = c->b,
               .B = gates.dims[0],
               .T = gates.dims[1],
               .H = gates.dims[2] / n_gates,
               .n_gates = n_gates,
               .mask = SN_NO_VALUE,
               .drop = SN_NO_VALUE,
               .before = SN_NO_VALUE,
               .reset = SN_NO_VALUE,
               .d_candidate = SN_NO_VALUE};
    for (int i = fixed; i < c->node->n_in; i++)
        if (sn_rule_type(c, c->in[i]).dtype == SNUG_BOOL)
            p.mask = c->in[i];
        else
            p.drop = c->in[i];
    return p;
}

static sn_value shaped(const parts *p, sn_value v, int64_t d0, int64_t d1, int64_t d2) {
    const int64_t dims[3] = {d0, d1, d2};
    return sn_build_reshape(p->b, v, dims, d2 < 0 ? 2 : 3);
}

/* The state before each step: h0 and all but the last state, in the order of the steps. */
static sn_value states_before(parts *p, bool reverse) {
    if (p->T == 0)
        return p->hidden;
    if (sn_value_ok(p->before))
        return p->before;
    const sn_value h0 = shaped(p, p->h0, p->B, 1, p->H);
    const sn_value rest = sn_build_part(p->b, p->hidden, 1, reverse ? 1 : 0, p->T - 1);
    const sn_value in[2] = {reverse ? rest : h0, reverse ? h0 : rest};
    p->before = p->T == 1 ? h0 : sn_build_concat(p->b, in, 2, 1);
    return p->before;
}

/* --- groups of gates -------------------------------------------------------------------------- */
typedef struct {
    int64_t first, n;
} group;

/* Dropout factors are another for every gate. */
static int groups_of(const parts *p, group *g) {
    const bool split = sn_value_ok(p->reset) || sn_value_ok(p->d_candidate);
    if (!sn_value_ok(p->drop) && !split) {
        g[0] = (group){0, p->n_gates};
        return 1;
    }
    if (!sn_value_ok(p->drop)) {
        g[0] = (group){0, p->n_gates - 1};
        g[1] = (group){p->n_gates - 1, 1};
        return 2;
    }
    for (int64_t k = 0; k < p->n_gates; k++)
        g[k] = (group){k, 1};
    return (int)p->n_gates;
}

static bool is_candidate(const parts *p, group g) {
    return g.first == p->n_gates - 1;
}

/* What the group sees of the states, without dropout: [B,T,H]. */
static sn_value seen(parts *p, group g, bool reverse) {
    const sn_value s = states_before(p, reverse);
    return is_candidate(p, g) && sn_value_ok(p->reset) ? sn_build_mul(p->b, p->reset, s) : s;
}

/* [B,T,nH] */
static sn_value gradient_of(const parts *p, group g) {
    return is_candidate(p, g) && sn_value_ok(p->d_candidate)
               ? p->d_candidate
               : sn_build_part(p->b, p->dgates, 2, g.first * p->H, g.n * p->H);
}

static sn_value kernel_gradient(parts *p, bool reverse) {
    group g[SN_MAX_IN];
    sn_value d[SN_MAX_IN];
    const int n = groups_of(p, g);
    for (int k = 0; k < n; k++) {
        sn_value s = seen(p, g[k], reverse);
        if (sn_value_ok(p->drop)) {
            const sn_value f = sn_build_part(p->b, p->drop, 1, g[k].first * p->H, p->H);
            s = sn_build_mul(p->b, s, shaped(p, f, p->B, 1, p->H));
        }
        d[k] = sn_build_matmul_t(p->b, shaped(p, s, p->B * p->T, p->H, -1),
                                 shaped(p, gradient_of(p, g[k]), p->B * p->T, g[k].n * p->H, -1),
                                 true, false);
    }
    return sn_build_concat(p->b, d, n, 1);
}

static sn_value drop_gradient(parts *p, bool reverse) {
    group g[SN_MAX_IN];
    sn_value d[SN_MAX_IN];
    const int n = groups_of(p, g);
    for (int k = 0; k < n; k++) {
        const sn_value kernel = sn_build_part(p->b, p->c->in[1], 1, g[k].first * p->H, p->H);
        const sn_value back = sn_build_matmul_t(
            p->b, shaped(p, gradient_of(p, g[k]), p->B * p->T, p->H, -1), kernel, false, true);
        const sn_value product =
            sn_build_mul(p->b, shaped(p, back, p->B, p->T, p->H), seen(p, g[k], reverse));
        d[k] = sn_build_sum(p->b, product, 1u << 1, false);
    }
    return sn_build_concat(p->b, d, n, 1);
}

/* Of the inputs that all rows have alike, and of the factors. */
static void answer(sn_grad_call *c, parts *p, bool reverse) {
    if (c->wants[1])
        c->din[1] = kernel_gradient(p, reverse);
    for (int i = 2; i < c->node->n_in; i++)
        if (c->wants[i] && sn_value_ok(p->drop) && c->in[i].i == p->drop.i)
            c->din[i] = drop_gradient(p, reverse);
}

/* Runs the gradient row on its inputs and those that may be left out. Where gradients of what the
 * forward row kept have arrived, it is written out. */
static void run_row(const parts *p, sn_unrolled_row *r, sn_value dhidden, sn_value *outs) {
    const sn_value more[3] = {dhidden, p->mask, p->drop};
    r->attrs = &p->c->node->attrs;
    for (int i = 0; i < 3; i++)
        if (sn_value_ok(more[i]))
            r->in[r->n_in++] = more[i];
    if (sn_value_ok(r->dgates) || sn_value_ok(r->dinner))
        sn_unroll_row(p->c, r, outs);
    else
        sn_build_all(p->b, r->op, r->attrs, r->in, r->n_in, outs);
}

/* The gradient of the last state, zero where none arrived. */
static sn_value last_gradient(const sn_grad_call *c, int k) {
    const snug_type t = sn_rule_type(c, c->out[k]);
    return sn_value_ok(c->dout[k]) ? c->dout[k] : sn_build_fill(c->b, &t, 0);
}

/* --- the rules -------------------------------------------------------------------------------- */
/* lstm(projections, U, h0, c0, ...) -> gates, hidden, last, cells */
SN_GRAD_RULE(lstm) {
    parts p = parts_of(c, 4, 4);
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_unrolled_row row = {
        .op = SN_OP_lstm_grad,
        .in = {c->out[0], c->in[1], last_gradient(c, 2), c->in[3], c->out[3]},
        .n_in = 5,
        .like = {c->out[0], c->in[2], c->in[3]},
        .n_out = 3,
        .dgates = c->dout[0],
        .dinner = c->dout[3],
    };
    run_row(&p, &row, c->dout[1], outs);
    c->din[0] = outs[0];
    c->din[2] = outs[1];
    c->din[3] = outs[2];
    p.h0 = c->in[2];
    p.hidden = c->out[1];
    p.dgates = outs[0];
    answer(c, &p, c->node->attrs.rnn.reverse != 0);
}

/* gru(projections, U, h0, [bias], ...) -> gates z r candidate, hidden, last, [inner] */
SN_GRAD_RULE(gru) {
    const bool after = c->node->attrs.gru.reset_after != 0;
    parts p = parts_of(c, 3, after ? 4 : 3);
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_unrolled_row row = {
        .op = SN_OP_gru_grad,
        .in = {c->out[0], c->in[1], last_gradient(c, 2), c->in[2], c->out[1], c->out[3]},
        .n_in = after ? 6 : 5,
        .like = {c->out[0], c->in[2], c->out[1]},
        .n_out = after ? 3 : 2,
        .dgates = c->dout[0],
        .dinner = after ? c->dout[3] : SN_NO_VALUE,
    };
    run_row(&p, &row, c->dout[1], outs);
    c->din[0] = outs[0];
    c->din[2] = outs[1];
    p.h0 = c->in[2];
    p.hidden = c->out[1];
    p.dgates = outs[0];
    if (after)
        p.d_candidate = outs[2];
    else if (c->wants[1] || sn_value_ok(p.drop))
        p.reset = sn_build_part(p.b, c->out[0], 2, p.H, p.H);
    answer(c, &p, c->node->attrs.gru.reverse != 0);
    if (after && c->wants[3]) {
        const uint32_t steps = 1u << 0 | 1u << 1;
        const sn_value both = sn_build_sum(p.b, outs[0], steps, false);
        const sn_value d[2] = {sn_build_part(p.b, both, 0, 0, 2 * p.H),
                               sn_build_sum(p.b, outs[2], steps, false)};
        c->din[3] = sn_build_concat(p.b, d, 2, 0);
    }
}

/* simple_rnn(projections, U, h0, ...) -> hidden, last */
SN_GRAD_RULE(simple_rnn) {
    parts p = parts_of(c, 1, 3);
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_unrolled_row row = {
        .op = SN_OP_simple_rnn_grad,
        .in = {c->out[0], c->in[1], last_gradient(c, 1)},
        .n_in = 3,
        .dgates = SN_NO_VALUE,
        .dinner = SN_NO_VALUE,
    };
    run_row(&p, &row, c->dout[0], outs);
    c->din[0] = outs[0];
    c->din[2] = outs[1];
    p.h0 = c->in[2];
    p.hidden = c->out[0];
    p.dgates = outs[0];
    answer(c, &p, c->node->attrs.rnn.reverse != 0);
}
