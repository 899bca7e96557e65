/* grad_unrolled.c: second order of the recurrent rows. Their gradient rows are written out in plain
 * operators, step by step. That is differentiated for the gradient of a gradient row; and it is
 * what lstm and gru use instead of the row where a gradient arrives at what they keep for it
 * (gates; cells or inner), because only there are terms for those.
 *
 * All operands are cut into blocks of H columns, sequences into steps, too; the blocks are what the
 * steps read, what is differentiated by, and what results are put together from. So no step costs
 * the whole sequence. Letters: B examples, T steps, H units; formulas and masks as in
 * kernels/cpu/recurrent.c. */
#include "graph/store.h"

#include "graph/unrolled.h"

#include <string.h>

/* The blocks of one operand: block j of step t is block[t * n + j]. */
typedef struct {
    sn_value *block;
    int64_t steps, n; /* steps is 1 where the operand has none */
} blocks;

enum { MAX_STEPS = 65536 };
enum { DGATES, DINNER, N_MORE }; /* gradients that a row does not take */

typedef struct {
    const sn_grad_call *c;
    sn_builder *b;
    const sn_attrs *attrs;
    int64_t B, T, H;
    snug_dtype dtype;
    blocks in[SN_MAX_IN], more[N_MORE], out[SN_MAX_OUT], dout[SN_MAX_OUT];
    sn_value mask;     /* SN_NO_VALUE: none */
    int drop, dhidden; /* which input; -1: none */
    sn_value *list;    /* blocks of in, more, out, dout; then gradients of those of in */
    size_t n_list, n_in, n_more, n_out;
} unrolled;

/* --- blocks ----------------------------------------------------------------------------------- */
static blocks blocks_of(const unrolled *u, const snug_type *t) {
    return (blocks){.steps = t->rank == 3 ? u->T : 1, .n = t->dims[t->rank - 1] / u->H};
}

static int64_t count(const blocks *k) {
    return k->steps * k->n;
}

static sn_value cut_one(const unrolled *u, sn_value v, const snug_type *t, int64_t step,
                        int64_t j) {
    int64_t begin[3] = {0}, size[3] = {-1, -1, -1};
    const int last = t->rank - 1;
    begin[last] = j * u->H;
    size[last] = u->H;
    if (t->rank == 3)
        begin[1] = step, size[1] = 1;
    const sn_value part = sn_build_slice(u->b, v, begin, size, NULL);
    return t->rank == 3 ? sn_build_reshape(u->b, part, (int64_t[]){u->B, u->H}, 2) : part;
}

static void cut(const unrolled *u, sn_value v, blocks *k) {
    const snug_type t = sn_rule_type(u->c, v);
    for (int64_t step = 0; step < k->steps; step++)
        for (int64_t j = 0; j < k->n; j++)
            k->block[step * k->n + j] = cut_one(u, v, &t, step, j);
}

/* n values next to each other; an operator takes SN_MAX_IN of them at once. */
static sn_value join(const unrolled *u, sn_value *v, int64_t n, int axis) {
    while (n > 1) {
        int64_t made = 0;
        for (int64_t i = 0; i < n; i += SN_MAX_IN)
            v[made++] =
                sn_build_concat(u->b, v + i, (int)(n - i < SN_MAX_IN ? n - i : SN_MAX_IN), axis);
        n = made;
    }
    return v[0];
}

static bool any(const sn_value *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (sn_value_ok(v[i]))
            return true;
    return false;
}

/* A value of the type of `like` from its blocks, which it uses up; SN_NO_VALUE is zeros. */
static sn_value join_blocks(const unrolled *u, sn_value *block, const blocks *k, sn_value like) {
    const snug_type t = sn_rule_type(u->c, like);
    snug_type one = t;
    if (t.rank == 3)
        one.dims[1] = 1;
    one.dims[t.rank - 1] = u->H;
    if (count(k) == 0)
        return sn_build_fill(u->b, &t, 0);
    for (int64_t i = 0; i < count(k); i++)
        block[i] = sn_value_ok(block[i]) ? sn_build_reshape(u->b, block[i], one.dims, one.rank)
                                         : sn_build_fill(u->b, &one, 0);
    for (int64_t step = 0; step < k->steps; step++)
        block[step] = join(u, block + step * k->n, k->n, t.rank - 1);
    return join(u, block, k->steps, 1);
}

/* --- what steps are made of ------------------------------------------------------------------- */
static sn_value in_at(const unrolled *u, int i, int64_t t, int64_t j) {
    return u->in[i].block[t * u->in[i].n + j];
}

static void put(const unrolled *u, int k, int64_t t, int64_t j, sn_value v) {
    u->out[k].block[t * u->out[k].n + j] = v;
}

static int64_t time_of(const unrolled *u, int64_t step) {
    return u->attrs->rnn.reverse ? u->T - 1 - step : step;
}

/* A sequence before the step, input `initial` before the first. */
static sn_value before(const unrolled *u, int initial, int sequence, int64_t step) {
    return step == 0 ? in_at(u, initial, 0, 0) : in_at(u, sequence, time_of(u, step - 1), 0);
}

/* v, or where the step is masked `instead`; SN_NO_VALUE: zeros. */
static sn_value kept(const unrolled *u, int64_t t, sn_value v, sn_value instead) {
    if (!sn_value_ok(u->mask))
        return v;
    const sn_value taken = sn_build_part(u->b, u->mask, 1, t, 1);
    const sn_value zero = sn_build_scalar(u->b, u->dtype, 0);
    return sn_build_select(u->b, taken, v, sn_value_ok(instead) ? instead : zero);
}

static sn_value act(const unrolled *u, sn_value x) {
    static const sn_op rows[SN_N_ACTS] = {[SN_ACT_none] = SN_OP_identity,
                                          [SN_ACT_relu] = SN_OP_relu,
                                          [SN_ACT_tanh] = SN_OP_tanh,
                                          [SN_ACT_sigmoid] = SN_OP_sigmoid,
                                          [SN_ACT_hard_sigmoid] = SN_OP_hard_sigmoid};
    return sn_build(u->b, rows[u->attrs->rnn.act], NULL, &x, 1);
}

/* d times the slope of an activation whose result is y. */
static sn_value slope(const unrolled *u, int64_t how, sn_value d, sn_value y) {
    const sn_value in[2] = {d, y};
    if (how == SN_ACT_tanh)
        return sn_build_tanh_grad(u->b, d, y);
    if (how == SN_ACT_sigmoid)
        return sn_build_sigmoid_grad(u->b, d, y);
    if (how == SN_ACT_relu)
        return sn_build_relu_grad(u->b, d, y);
    if (how == SN_ACT_hard_sigmoid)
        return sn_build_affine(u->b, sn_build_value_op(u->b, SN_OP_relu_max_grad, in, 2, 1),
                               1.0 / 6, 0);
    return d;
}

static sn_value act_slope(const unrolled *u, sn_value d, sn_value y) {
    return slope(u, u->attrs->rnn.act, d, y);
}

static sn_value gate_slope(const unrolled *u, sn_value d, sn_value y) {
    return slope(u, u->attrs->rnn.gate_act, d, y);
}

static sn_value factored(const unrolled *u, sn_value v, int j) {
    return u->drop < 0 ? v : sn_build_mul(u->b, v, in_at(u, u->drop, 0, j));
}

/* What a state gets back from gate j. */
static sn_value recur_back(const unrolled *u, sn_value d, int j) {
    return factored(u, sn_build_matmul_t(u->b, d, in_at(u, 1, 0, j), false, true), j);
}

/* d and the gradient that arrived besides. */
static sn_value with_more(const unrolled *u, sn_value d, int which, int64_t t, int64_t j) {
    const blocks *k = &u->more[which];
    return k->n > 0 ? sn_build_add(u->b, d, k->block[t * k->n + j]) : d;
}

/* The gradient of the hidden state behind a step. */
static sn_value hidden_gradient(const unrolled *u, sn_value dh, int64_t t) {
    return u->dhidden < 0 ? dh : sn_build_add(u->b, dh, in_at(u, u->dhidden, t, 0));
}

/* --- the rows --------------------------------------------------------------------------------- */
/* (gates, U, d last, c0, cells, ...) -> d projections, d h0, d c0; more: of gates and cells */
static void lstm_steps(unrolled *u) {
    sn_builder *const b = u->b;
    sn_value dh = in_at(u, 2, 0, 0), dc = in_at(u, 2, 0, 1);
    for (int64_t step = u->T; step-- > 0;) {
        const int64_t t = time_of(u, step);
        const sn_value y = act(u, in_at(u, 4, t, 0)), h = hidden_gradient(u, dh, t);
        sn_value a[4], sum = SN_NO_VALUE;
        for (int j = 0; j < 4; j++)
            a[j] = in_at(u, 0, t, j);
        dc = with_more(u, dc, DINNER, t, 0);
        const sn_value cell = sn_build_add(b, dc, act_slope(u, sn_build_mul(b, h, a[3]), y));
        const sn_value da[4] = {sn_build_mul(b, cell, a[2]),
                                sn_build_mul(b, cell, before(u, 3, 4, step)),
                                sn_build_mul(b, cell, a[0]), sn_build_mul(b, h, y)};
        for (int j = 0; j < 4; j++) {
            const sn_value above = with_more(u, da[j], DGATES, t, j);
            const sn_value d = j == 2 ? act_slope(u, above, a[j]) : gate_slope(u, above, a[j]);
            const sn_value back = recur_back(u, d, j);
            sum = j == 0 ? back : sn_build_add(b, sum, back);
            put(u, 0, t, j, kept(u, t, d, SN_NO_VALUE));
        }
        dc = kept(u, t, sn_build_mul(b, cell, a[1]), dc);
        dh = kept(u, t, sum, h);
    }
    put(u, 1, 0, 0, dh);
    put(u, 2, 0, 0, dc);
}

static bool resets_after(const unrolled *u) {
    return u->attrs->gru.reset_after != 0;
}

/* One step: d z, d r, d n and d inner from d, the gradient of the state behind it. Gives what the
 * state before it gets. */
static sn_value gru_step(unrolled *u, int64_t step, sn_value d) {
    sn_builder *const b = u->b;
    const bool after = resets_after(u);
    const int64_t t = time_of(u, step);
    const sn_value h = before(u, 3, 4, step), z = in_at(u, 0, t, 0), r = in_at(u, 0, t, 1),
                   n = in_at(u, 0, t, 2);
    const sn_value above_z = sn_build_mul(b, d, sn_build_sub(b, h, n)),
                   above_n = sn_build_mul(b, d, sn_build_affine(b, z, -1, 1));
    const sn_value dz = gate_slope(u, with_more(u, above_z, DGATES, t, 0), z);
    const sn_value dn = act_slope(u, with_more(u, above_n, DGATES, t, 2), n);
    const sn_value seen = after ? with_more(u, sn_build_mul(b, dn, r), DINNER, t, 0) : dn;
    const sn_value back = recur_back(u, seen, 2);
    const sn_value above_r =
        after ? sn_build_mul(b, dn, in_at(u, 5, t, 0)) : sn_build_mul(b, back, h);
    const sn_value dr = gate_slope(u, with_more(u, above_r, DGATES, t, 1), r);
    const sn_value dgates[3] = {dz, dr, dn};
    for (int j = 0; j < 3; j++)
        put(u, 0, t, j, kept(u, t, dgates[j], SN_NO_VALUE));
    if (after)
        put(u, 2, t, 0, kept(u, t, seen, SN_NO_VALUE));
    const sn_value through = after ? back : sn_build_mul(b, back, r),
                   gates = sn_build_add(b, recur_back(u, dz, 0), recur_back(u, dr, 1));
    return sn_build_add(b, sn_build_mul(b, d, z), sn_build_add(b, through, gates));
}

/* (gates, U, d last, h0, hidden, [inner], ...) -> d projections, d h0, [d inner]; more: of gates
 * and inner */
static void gru_steps(unrolled *u) {
    sn_value dh = in_at(u, 2, 0, 0);
    for (int64_t step = u->T; step-- > 0;) {
        const int64_t t = time_of(u, step);
        const sn_value d = hidden_gradient(u, dh, t);
        dh = kept(u, t, gru_step(u, step, d), d);
    }
    put(u, 1, 0, 0, dh);
}

/* (hidden, U, d last, ...) -> d projections, d h0 */
static void simple_steps(unrolled *u) {
    sn_value dh = in_at(u, 2, 0, 0);
    for (int64_t step = u->T; step-- > 0;) {
        const int64_t t = time_of(u, step);
        const sn_value h = hidden_gradient(u, dh, t), d = act_slope(u, h, in_at(u, 0, t, 0));
        put(u, 0, t, 0, kept(u, t, d, SN_NO_VALUE));
        dh = kept(u, t, recur_back(u, d, 0), h);
    }
    put(u, 1, 0, 0, dh);
}

/* --- all of it -------------------------------------------------------------------------------- */
typedef struct {
    int fixed;
    void (*steps)(unrolled *u);
} way;

/* By the row that is written out. */
static way way_of(const sn_unrolled_row *row) {
    if (row->op == SN_OP_lstm_grad)
        return (way){5, lstm_steps};
    if (row->op == SN_OP_gru_grad)
        return (way){row->attrs->gru.reset_after ? 6 : 5, gru_steps};
    return (way){3, simple_steps};
}

static void find_extras(unrolled *u, const sn_unrolled_row *row, int fixed) {
    u->mask = SN_NO_VALUE;
    u->drop = u->dhidden = -1;
    for (int i = fixed; i < row->n_in; i++) {
        const snug_type t = sn_rule_type(u->c, row->in[i]);
        if (t.dtype == SNUG_BOOL)
            u->mask = row->in[i];
        else
            *(t.rank == 3 ? &u->dhidden : &u->drop) = i;
    }
}

/* How many blocks each operand has. */
static void count_blocks(unrolled *u, const sn_unrolled_row *row) {
    for (int i = 0; i < row->n_in; i++) {
        const snug_type t = sn_rule_type(u->c, row->in[i]);
        u->in[i] = t.dtype == SNUG_BOOL ? (blocks){0} : blocks_of(u, &t);
        u->n_in += (size_t)count(&u->in[i]);
    }
    const sn_value more[N_MORE] = {[DGATES] = row->dgates, [DINNER] = row->dinner};
    for (int i = 0; i < N_MORE; i++) {
        if (!sn_value_ok(more[i]))
            continue;
        const snug_type t = sn_rule_type(u->c, more[i]);
        u->more[i] = blocks_of(u, &t);
        u->n_more += (size_t)count(&u->more[i]);
    }
    for (int k = 0; k < row->n_out; k++) {
        const snug_type t = sn_rule_type(u->c, row->like[k]);
        u->out[k] = u->dout[k] = blocks_of(u, &t);
        u->n_out += (size_t)count(&u->out[k]);
    }
}

static sn_value *take(blocks *k, int n, sn_value *at) {
    for (int i = 0; i < n; i++) {
        k[i].block = at;
        at += count(&k[i]);
    }
    return at;
}

static snug_status lay_out(unrolled *u, const sn_unrolled_row *row, snug_error *err) {
    void *list;
    count_blocks(u, row);
    u->n_list = 2 * u->n_in + u->n_more + 2 * u->n_out;
    SNUG_TRY(sn_alloc(u->b->graph->engine, SN_MEM_GRAPH, u->n_list * sizeof *u->list, &list, err));
    u->list = list;
    memset(u->list, 0xff, u->n_list * sizeof *u->list); /* SN_NO_VALUE */
    sn_value *at = take(u->in, row->n_in, u->list);
    at = take(u->more, N_MORE, at);
    at = take(u->out, row->n_out, at);
    take(u->dout, row->n_out, at);
    return SNUG_OK;
}

/* Cuts the operands and writes the steps out. False: there is nothing to do (no units), or an error
 * sticks in the builder. */
static bool unroll(unrolled *u, const sn_grad_call *c, const sn_unrolled_row *row) {
    const snug_type gates = sn_rule_type(c, row->in[0]);
    *u = (unrolled){.c = c,
                    .b = c->b,
                    .attrs = row->attrs,
                    .B = gates.dims[0],
                    .T = gates.dims[1],
                    .H = sn_rule_type(c, row->in[1]).dims[0],
                    .dtype = gates.dtype};
    if (u->T > MAX_STEPS)
        sn_rule_unsupported(c, "the second order of a recurrent layer writes every step out, 65536 "
                               "of them at most; use shorter sequences");
    if (u->H == 0 || c->b->error.code != SNUG_OK)
        return false;
    find_extras(u, row, way_of(row).fixed);
    c->b->error.code = lay_out(u, row, &c->b->error);
    if (c->b->error.code != SNUG_OK)
        return false;
    for (int i = 0; i < row->n_in; i++)
        if (u->in[i].n > 0)
            cut(u, row->in[i], &u->in[i]);
    if (u->more[DGATES].n > 0)
        cut(u, row->dgates, &u->more[DGATES]);
    if (u->more[DINNER].n > 0)
        cut(u, row->dinner, &u->more[DINNER]);
    way_of(row).steps(u);
    return true;
}

static void unrolled_clear(unrolled *u) {
    sn_free(u->b->graph->engine, SN_MEM_GRAPH, u->list, u->n_list * sizeof *u->list);
}

void sn_unroll_row(const sn_grad_call *c, const sn_unrolled_row *row, sn_value *outs) {
    unrolled u;
    if (!unroll(&u, c, row)) {
        for (int k = 0; k < row->n_out; k++) {
            const snug_type t = sn_rule_type(c, row->like[k]);
            outs[k] = sn_build_fill(c->b, &t, 0);
        }
        return;
    }
    for (int k = 0; k < row->n_out; k++)
        outs[k] = join_blocks(&u, u.out[k].block, &u.out[k], row->like[k]);
    unrolled_clear(&u);
}

/* --- the rules -------------------------------------------------------------------------------- */
static void differentiate(sn_grad_call *c) {
    unrolled u;
    sn_unrolled_row row = {.op = c->node->op,
                           .attrs = &c->node->attrs,
                           .n_in = c->node->n_in,
                           .n_out = c->node->n_out,
                           .dgates = SN_NO_VALUE,
                           .dinner = SN_NO_VALUE};
    memcpy(row.in, c->in, sizeof row.in);
    memcpy(row.like, c->out, sizeof row.like);
    if (!unroll(&u, c, &row))
        return;
    for (int k = 0; k < row.n_out; k++)
        if (sn_value_ok(c->dout[k]))
            cut(&u, c->dout[k], &u.dout[k]);
    sn_value *const outs = u.list + u.n_in + u.n_more, *grads = outs + 2 * u.n_out;
    const sn_pull_back p = {outs, outs + u.n_out, (int)u.n_out, u.list, (int)u.n_in, NULL};
    sn_rule_pull_back(c, &p, grads);
    for (int i = 0; i < row.n_in; i++) {
        if (c->wants[i] && any(grads, count(&u.in[i])))
            c->din[i] = join_blocks(&u, grads, &u.in[i], c->in[i]);
        grads += count(&u.in[i]);
    }
    unrolled_clear(&u);
}

SN_GRAD_RULE(lstm_grad) {
    differentiate(c);
}

SN_GRAD_RULE(gru_grad) {
    differentiate(c);
}

SN_GRAD_RULE(simple_rnn_grad) {
    differentiate(c);
}
