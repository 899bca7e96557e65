/* fuse_xent.c: the cross-entropy of a softmax, written in plain rows, as one node in each
 * direction. With p = softmax(x), logp = log(p) or log_softmax(x), labels of x's shape, sums along
 * the last axis, and d the gradient of a row's sum:
 *
 *     forward     sum(labels logp)              -> neg(softmax_xent(x, labels))
 *                 neg of it, or sum(neg(..))    -> softmax_xent(x, labels)
 *     backward    softmax_grad(div(dlogp, p), p), or dlogp - exp(logp) sum(dlogp),
 *                 with dlogp = d labels         -> softmax_xent_grad(x, labels, neg(d))
 *
 * Labels that are one_hot(k) become sparse_xent(x, k) and its gradient, with skip=1: one_hot makes
 * zeros of a class number out of range, so such a row counts nothing there, too.
 *
 * Both directions are matched before anything changes: where there is a backward half, a cross-
 * entropy is fused whole or not at all. x, not p, is then what the backward half keeps; a p that
 * others read stays, what nobody reads is dropped later (fuse.c). */
#include "graph/fuse.h"

typedef struct {
    sn_value x, labels, k; /* k: class numbers, or SN_NO_VALUE */
    sn_record *mul, *sum;
    bool negated;         /* neg stands between mul and sum */
    sn_record *dx;        /* the last node of the backward half; NULL: there is none */
    sn_record *free_node; /* of the backward half, before dx */
    sn_value d;
    bool d_negated;
} xent_match;

/* --- matching --------------------------------------------------------------------------------- */

static bool is_last_axis(const sn_fuser *f, const sn_record *sum, bool keepdims) {
    const sn_attrs_axes *a = &sum->node.attrs.axes;
    const int rank = sn_graph_type(f->g, sum->in[0])->rank;
    return (a->keepdims != 0) == keepdims && rank > 0 &&
           sn_axes_set(&a->axes, rank) == 1u << (rank - 1);
}

/* The product is a b, without broadcasting. */
static bool match_product(const sn_fuser *f, const sn_record *mul, sn_value b, sn_value *a) {
    for (int side = 0; mul && side < 2; side++)
        if (mul->in[1 - side].i == b.i &&
            sn_type_equal(sn_graph_type(f->g, mul->in[side]), sn_graph_type(f->g, b))) {
            *a = mul->in[side];
            return true;
        }
    return false;
}

/* dlogp = (d spread over the classes, or neg of that) * labels; d is one number per row. */
static bool match_spread(const sn_fuser *f, const sn_record *mul, xent_match *m) {
    sn_value full;
    if (!match_product(f, mul, m->labels, &full))
        return false;
    const sn_record *neg = sn_fuse_only_for(f, full, SN_OP_neg);
    const sn_record *spread = sn_fuse_only_for(f, neg ? neg->in[0] : full, SN_OP_broadcast_to);
    const sn_record *column = spread ? sn_fuse_only_for(f, spread->in[0], SN_OP_reshape) : NULL;
    if (!column)
        return false;
    snug_type like = *sn_graph_type(f->g, m->labels), rows = like;
    like.dims[like.rank - 1] = 1;
    rows.rank--;
    m->d = column->in[0];
    m->d_negated = neg != NULL;
    return sn_type_equal(sn_graph_type(f->g, spread->in[0]), &like) &&
           sn_type_equal(sn_graph_type(f->g, m->d), &rows);
}

/* dx = softmax_grad(div(dlogp, p), p) */
static bool match_softmax_back(const sn_fuser *f, sn_record *dx, sn_value p, xent_match *m) {
    sn_record *div = sn_fuse_only_for(f, dx->in[0], SN_OP_div);
    m->dx = dx;
    m->free_node = div;
    return dx->in[1].i == p.i && div && div->in[1].i == p.i &&
           match_spread(f, sn_fuse_only_for(f, div->in[0], SN_OP_mul), m);
}

/* The only reader of v, or NULL. */
static sn_record *only_reader(const sn_fuser *f, sn_value v) {
    const sn_readers *r = &f->readers[v.i];
    return r->n == 1 && !r->is_kept ? &f->records[f->places[r->first]] : NULL;
}

/* dx = dlogp - exp(logp) sum(dlogp) */
static bool match_log_softmax_back(const sn_fuser *f, const sn_record *exp, xent_match *m) {
    sn_record *mul = only_reader(f, exp->out[0]);
    sn_record *dx = mul && mul->node.op == SN_OP_mul ? only_reader(f, mul->out[0]) : NULL;
    if (!dx || dx->node.op != SN_OP_sub || dx->in[1].i != mul->out[0].i ||
        mul->in[0].i != exp->out[0].i)
        return false;
    const sn_value dlogp = dx->in[0];
    const sn_record *total = sn_fuse_only_for(f, mul->in[1], SN_OP_sum);
    const sn_record *product = sn_fuse_maker(f, dlogp);
    m->dx = dx;
    m->free_node = mul;
    return total && total->in[0].i == dlogp.i && is_last_axis(f, total, true) && product &&
           product->node.op == SN_OP_mul && f->readers[dlogp.i].n == 2 &&
           !f->readers[dlogp.i].is_kept && match_spread(f, product, m);
}

/* Every node that makes a gradient from v, which is p or logp, must be this cross-entropy's, and
 * there is at most one. */
static bool match_backward(const sn_fuser *f, sn_value v, bool is_log, xent_match *m) {
    const sn_readers *readers = &f->readers[v.i];
    for (uint32_t i = 0; i < readers->n; i++) {
        sn_record *r = &f->records[f->places[readers->first + i]];
        const bool is_back = is_log ? r->node.op == SN_OP_exp && r->node.part == SN_PART_BACKWARD
                                    : r->node.op == SN_OP_softmax_grad;
        if (!is_back || r->gone)
            continue;
        if (m->dx || !(is_log ? match_log_softmax_back(f, r, m) : match_softmax_back(f, r, v, m)))
            return false;
    }
    return true;
}

/* logp is input `side` of the product, the labels are the other. */
static bool match_side(const sn_fuser *f, int side, xent_match *m) {
    const sn_value logp = m->mul->in[side];
    const sn_record *log = sn_fuse_maker(f, logp), *softmax = NULL;
    if (log && log->node.op == SN_OP_log && sn_fuse_only_for(f, logp, SN_OP_log))
        softmax = sn_fuse_maker(f, log->in[0]);
    const bool is_log = log && log->node.op == SN_OP_log_softmax;
    if (!is_log && !(softmax && softmax->node.op == SN_OP_softmax))
        return false;
    m->x = is_log ? log->in[0] : softmax->in[0];
    m->labels = m->mul->in[1 - side];
    m->dx = NULL;
    const snug_type *t = sn_graph_type(f->g, m->x);
    return sn_type_known(t) && sn_type_equal(t, sn_graph_type(f->g, m->labels)) &&
           match_backward(f, is_log ? logp : log->in[0], is_log, m);
}

static bool match(const sn_fuser *f, uint32_t n, xent_match *m) {
    *m = (xent_match){.sum = &f->records[n], .k = SN_NO_VALUE};
    if (m->sum->node.op != SN_OP_sum || !is_last_axis(f, m->sum, false))
        return false;
    const sn_record *neg = sn_fuse_only_for(f, m->sum->in[0], SN_OP_neg);
    m->negated = neg != NULL;
    m->mul = sn_fuse_only_for(f, neg ? neg->in[0] : m->sum->in[0], SN_OP_mul);
    if (!m->mul || (!match_side(f, 0, m) && !match_side(f, 1, m)))
        return false;
    const sn_record *hot = sn_fuse_maker(f, m->labels);
    if (hot && hot->node.op == SN_OP_one_hot)
        m->k = hot->in[0];
    return true;
}

/* --- rewriting -------------------------------------------------------------------------------- */

static void become(sn_record *r, sn_op op, const sn_value *in, uint8_t n_in) {
    r->node.op = op;
    r->node.n_in = n_in;
    sn_attrs_default(op, &r->node.attrs);
    for (int i = 0; i < n_in; i++)
        r->in[i] = in[i];
}

/* The cross-entropy of the match, or with d its gradient, in the place of r. */
static void become_xent(sn_record *r, const xent_match *m, sn_value d) {
    static const sn_op ops[2][2] = {{SN_OP_softmax_xent, SN_OP_softmax_xent_grad},
                                    {SN_OP_sparse_xent, SN_OP_sparse_xent_grad}};
    const bool sparse = sn_value_ok(m->k), back = sn_value_ok(d);
    const sn_value in[3] = {m->x, sparse ? m->k : m->labels, d};
    become(r, ops[sparse][back], in, back ? 3 : 2);
    if (sparse)
        r->node.attrs.labels.skip = 1;
}

static void rewrite_forward(sn_fuser *f, const xent_match *m) {
    sn_record *after = only_reader(f, m->sum->out[0]);
    if (m->negated) {
        become_xent(m->sum, m, SN_NO_VALUE);
    } else if (after && after->node.op == SN_OP_neg) {
        become_xent(after, m, SN_NO_VALUE);
    } else {
        become_xent(m->mul, m, SN_NO_VALUE);
        become(m->sum, SN_OP_neg, &m->mul->out[0], 1);
    }
}

static void rewrite_backward(sn_fuser *f, const xent_match *m) {
    const sn_record *maker = sn_fuse_maker(f, m->d);
    sn_value d = m->d;
    if (!m->d_negated && maker && maker->node.op == SN_OP_neg) {
        d = maker->in[0];
    } else if (!m->d_negated) {
        become(m->free_node, SN_OP_neg, &m->d, 1);
        d = m->free_node->out[0];
    }
    become_xent(m->dx, m, d);
}

bool sn_fuse_cross_entropy(sn_fuser *f, uint32_t n) {
    xent_match m;
    if (!match(f, n, &m))
        return false;
    rewrite_forward(f, &m);
    if (m.dx)
        rewrite_backward(f, &m);
    return true;
}
