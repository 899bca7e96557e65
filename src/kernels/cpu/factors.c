/* factors.c: the families of factors and equations: matrices along the last two axes, each by
 * LAPACK (lapack.h). A matrix is the work of one thread: its bits do not depend on how many there
 * are. There is no other code for them: the reference is the same. */
#include "kernels/cpu/lapack.h"
#include "kernels/cpu/loops.h"

#include <stdio.h>

/* Matrices are dealt out in as many shares as threads can take, each with a workspace. */
typedef struct {
    const sn_call *c;
    sn_lapack_problem problem;
    sn_lapack_need need;
    int64_t n, n_shares;
} matrices;

static const sn_lapack_kind kinds[SN_N_OPS] = {
    [SN_OP_eigh] = SN_LAPACK_EIGH,  [SN_OP_svd] = SN_LAPACK_SVD,
    [SN_OP_qr] = SN_LAPACK_QR,      [SN_OP_lstsq] = SN_LAPACK_LSTSQ,
    [SN_OP_lu] = SN_LAPACK_LU,      [SN_OP_cholesky] = SN_LAPACK_CHOLESKY,
    [SN_OP_solve] = SN_LAPACK_SOLVE};

/* The matrix is the first operand's; b is the second's type, where there is one. */
static snug_status problem_of(sn_op op, const sn_attrs *attrs, const snug_type *a,
                              const snug_type *b, sn_lapack_problem *p, snug_error *err) {
    if (a->dtype != SNUG_F32 && a->dtype != SNUG_F64)
        return sn_no_kernel(a->dtype, err);
    *p = (sn_lapack_problem){.is_f64 = a->dtype == SNUG_F64,
                             .rows = a->dims[a->rank - 2],
                             .columns = a->dims[a->rank - 1]};
    p->kind = kinds[op];
    if (op == SN_OP_svd) {
        p->vectors = attrs->svd.vectors != 0;
        p->whole = attrs->svd.whole != 0;
    } else if (op == SN_OP_qr) {
        p->whole = attrs->qr.whole != 0;
    } else if (op == SN_OP_solve) {
        p->lower = attrs->solve.lower != 0;
        p->upper = attrs->solve.upper != 0;
        p->adjoint = attrs->solve.adjoint != 0;
        p->unit = attrs->solve.unit != 0;
    }
    if (op == SN_OP_lstsq || op == SN_OP_solve)
        p->right = b->dims[b->rank - 1];
    return SNUG_OK;
}

static int64_t count_shares(int64_t n, int n_threads) {
    return n_threads < 1 ? sn_min_i64(n, 1) : sn_min_i64(n, n_threads);
}

static size_t lines(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static snug_status describe(const sn_opdesc *d, int n_threads, sn_variant *out, snug_error *err) {
    sn_lapack_problem p;
    sn_lapack_need need;
    SNUG_TRY(problem_of(d->op, &d->attrs, &d->in[0], &d->in[1], &p, err));
    SNUG_TRY(sn_lapack_describe(&p, &need, err));
    const int64_t n = count_shares(sn_type_span(&d->in[0], 0, d->in[0].rank - 2), n_threads);
    snprintf(out->impl, sizeof out->impl, "lapack:%s", sn_lapack_version());
    if (n > 0 && need.bytes > 0)
        out->workspace_bytes = (size_t)(n - 1) * lines(need.bytes) + need.bytes;
    return SNUG_OK;
}

/* What is one matrix' of an operand. */
static void *part_of(const matrices *m, const snug_view *v, int64_t i) {
    const size_t bytes = (size_t)sn_type_count(&v->type) * snug_dtype_bytes(v->type.dtype);
    return (char *)v->data + (size_t)i * (bytes / (size_t)m->n);
}

static void solve(const matrices *m, int64_t i, void *workspace) {
    const sn_call *c = m->c;
    sn_lapack_operands o = {.a = part_of(m, &c->in[0], i),
                            .b = c->n_in > 1 ? part_of(m, &c->in[1], i) : NULL,
                            .cut = c->op == SN_OP_lstsq ? c->param[0].real : 0};
    for (int k = 0; k < c->n_out; k++)
        o.out[k] = part_of(m, &c->out[k], i);
    sn_lapack_solve(&m->problem, &m->need, &o, workspace);
}

static void solve_shares(const void *ctx, int64_t first, int64_t end) {
    const matrices *m = ctx;
    for (int64_t s = first; s < end; s++) {
        void *const workspace = (char *)m->c->workspace + (size_t)s * lines(m->need.bytes);
        for (int64_t i = s * m->n / m->n_shares; i < (s + 1) * m->n / m->n_shares; i++)
            solve(m, i, workspace);
    }
}

static snug_status run(const sn_call *c, snug_error *err) {
    const snug_type *t = &c->in[0].type;
    const snug_type *right = c->n_in > 1 ? &c->in[1].type : NULL;
    matrices m = {.c = c, .n = sn_type_span(t, 0, t->rank - 2)};
    SNUG_TRY(problem_of(c->op, c->attrs, t, right, &m.problem, err));
    SNUG_TRY(sn_lapack_describe(&m.problem, &m.need, err));
    m.n_shares = count_shares(m.n, c->n_threads);
    const int64_t shorter = sn_min_i64(m.problem.rows, m.problem.columns);
    if (m.n > 0)
        sn_parallel(c, 4 * shorter * sn_type_count(t), m.n_shares, solve_shares, &m);
    return SNUG_OK;
}

SN_CPU_FAMILY(eigh, .reference = run, .run = run, .describe = describe)
SN_CPU_FAMILY(svd, .reference = run, .run = run, .describe = describe)
SN_CPU_FAMILY(qr, .reference = run, .run = run, .describe = describe)
SN_CPU_FAMILY(lstsq, .reference = run, .run = run, .describe = describe)
SN_CPU_FAMILY(lu, .reference = run, .run = run, .describe = describe)
SN_CPU_FAMILY(cholesky, .reference = run, .run = run, .describe = describe)
SN_CPU_FAMILY(solve, .reference = run, .run = run, .describe = describe)
