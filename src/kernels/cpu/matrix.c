/* matrix.c: the matmul family: [.., M, K] x [.., K, N] with broadcast leading axes, optional transposes, an
 * optional bias over N and a fused activation. The reference adds in double, in the order of k.
 *
 * The fast kernel (f32) cuts K into pieces of SN_GEMM_KC and the pieces into `groups` by K alone:
 *     element = ((group 0 + group 1) + ...), group = ((piece 0 + piece 1) + ...)
 * The work is cut into tasks (batch entry, block of rows, block of columns). When these are too few for the threads
 * and K is long (a weight gradient, a dense layer over a flattened image) a task is one group of one block, the
 * groups' sums wait in the workspace and a second pass adds them, in order. Both ways give the same bits. */
#include "kernels/cpu/matrix.h"

#include "kernels/cpu/act.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/real.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { MAX_GROUPS = 16, PIECES_PER_GROUP = 8, MAX_ROWS = 120, MAX_COLUMNS = 256 };

/* --- reference -------------------------------------------------------------------------------------------- */
/* Pieces of a sum over k cannot each carry the bias or pass the activation. */
static snug_status check_accumulate(const sn_call *c, snug_error *err) {
    if (c->accumulate && (c->n_in > 2 || c->attrs->matmul.act != SN_ACT_none))
        return sn_fail(err, SNUG_E_INTERNAL, "matmul adds into its output only without bias and activation");
    return SNUG_OK;
}

static void reference_entry(const sn_call *c, const sn_matmul_shape *s, int64_t entry) {
    const sn_reals a = sn_reals_of(&c->in[0]), b = sn_reals_of(&c->in[1]), out = sn_reals_of(&c->out[0]);
    const sn_reals bias = c->n_in > 2 ? sn_reals_of(&c->in[2]) : (sn_reals){NULL, false};
    const int64_t a0 = sn_matmul_offset(s->out, s->a, entry), b0 = sn_matmul_offset(s->out, s->b, entry);
    for (int64_t m = 0; m < s->M; m++)
        for (int64_t n = 0; n < s->N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < s->K; k++)
                sum += sn_real_at(a, a0 + m * s->a_row + k * s->a_col) *
                       sn_real_at(b, b0 + k * s->b_row + n * s->b_col);
            if (bias.data)
                sum += sn_real_at(bias, n);
            sn_real_sum(out, (entry * s->M + m) * s->N + n, sn_real_act(c->attrs->matmul.act, sum), c->accumulate);
        }
}

static sn_matmul_shape shape_of(const sn_call *c) {
    return sn_matmul_shape_of(&c->attrs->matmul, &c->in[0].type, &c->in[1].type, &c->out[0].type);
}

static snug_status reference_matmul(const sn_call *c, snug_error *err) {
    SNUG_TRY(check_accumulate(c, err));
    const sn_matmul_shape s = shape_of(c);
    for (int64_t entry = 0; entry < s.batch; entry++)
        reference_entry(c, &s, entry);
    return SNUG_OK;
}

/* --- how the work is cut ---------------------------------------------------------------------------------- */
typedef struct {
    int64_t rows, columns;                 /* of a block */
    int64_t n_row_blocks, n_column_blocks; /* per batch entry */
    int64_t n_pieces, n_groups;            /* of K */
    bool split;                            /* groups are tasks of their own */
    bool pack_a;                           /* A's columns lie far apart */
    int64_t packed_b, packed_a, group_sum; /* floats per thread */
    int64_t partial;                       /* floats in all, when split */
} cut;

static int64_t parts(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t round_up_64(int64_t floats) {
    return parts(floats, 16) * 16;
}

static int64_t count_blocks(const sn_matmul_shape *s, const cut *w) {
    return s->batch * parts(s->M, w->rows) * parts(s->N, w->columns);
}

/* Blocks as large as the caches like, smaller ones when the threads would go short: first fewer columns, then groups
 * of K as tasks, and fewer rows last, since each block of rows packs B again. */
static cut cut_work(const sn_matmul_shape *s, int n_threads) {
    const int64_t wanted = n_threads > 1 ? 4 * (int64_t)n_threads : 1;
    cut w = {.rows = MAX_ROWS, .columns = MAX_COLUMNS};
    w.n_pieces = parts(s->K, SN_GEMM_KC);
    w.n_groups = least(parts(w.n_pieces, PIECES_PER_GROUP), MAX_GROUPS);
    while (count_blocks(s, &w) < wanted && w.columns > SN_GEMM_NR)
        w.columns /= 2;
    w.split = w.n_groups > 1 && count_blocks(s, &w) < wanted;
    while (!w.split && count_blocks(s, &w) < wanted && w.rows > 4 * SN_GEMM_MR)
        w.rows /= 2;
    w.n_row_blocks = parts(s->M, w.rows);
    w.n_column_blocks = parts(s->N, w.columns);
    w.rows = w.n_row_blocks ? parts(parts(s->M, w.n_row_blocks), SN_GEMM_MR) * SN_GEMM_MR : 0;
    w.columns = least(w.columns, s->N);
    w.pack_a = s->a_col * (int64_t)sizeof(float) >= 1024;
    const int64_t depth = least(s->K, SN_GEMM_KC);
    w.packed_b = round_up_64(sn_gemm_packed(depth, w.columns));
    w.packed_a = w.pack_a ? round_up_64(depth * w.rows) : 0;
    w.group_sum = w.n_groups > 1 && !w.split ? round_up_64(w.rows * w.columns) : 0;
    w.partial = w.split ? w.n_groups * s->batch * s->M * s->N : 0;
    return w;
}

static int64_t floats_per_thread(const cut *w) {
    return w->packed_b + w->packed_a + w->group_sum;
}

/* --- one task --------------------------------------------------------------------------------------------- */
typedef struct {
    const sn_call *call;
    sn_matmul_shape s;
    cut w;
} job;

/* A block of C: where it lies in the output's and the operands' matrices. */
typedef struct {
    int64_t entry, m, n, rows, columns;
    const float *a, *b; /* of this entry */
    float *own;         /* this thread's workspace */
} block;

/* A copied so that its columns lie close together: [k][rows]. */
static sn_matrix pack_a(const job *j, const block *at, int64_t k, int64_t depth) {
    float *packed = at->own + j->w.packed_b;
    for (int64_t i = 0; i < depth; i++)
        memcpy(packed + i * at->rows, at->a + (k + i) * j->s.a_col + at->m, (size_t)at->rows * sizeof(float));
    return (sn_matrix){packed, 1, at->rows};
}

/* c = or += one group's sum. */
static void run_group(const job *j, const block *at, int64_t group, float *c, int64_t ldc, bool add) {
    const sn_matmul_shape *s = &j->s;
    const int64_t last = (group + 1) * j->w.n_pieces / j->w.n_groups;
    for (int64_t piece = group * j->w.n_pieces / j->w.n_groups; piece < last; piece++) {
        const int64_t k = piece * SN_GEMM_KC, depth = least(SN_GEMM_KC, s->K - k);
        const sn_matrix b = {at->b + k * s->b_row + at->n * s->b_col, s->b_row, s->b_col};
        const sn_matrix a = {at->a + k * s->a_col + at->m * s->a_row, s->a_row, s->a_col};
        SN_CPU(gemm_pack)(b, depth, at->columns, at->own);
        const sn_gemm_block g = {
            .m = at->rows,
            .n = at->columns,
            .k = depth,
            .a = j->w.pack_a ? pack_a(j, at, k, depth) : a,
            .packed = at->own,
            .c = c,
            .ldc = ldc,
            .add = add,
        };
        SN_CPU(gemm_block)(&g);
        add = true;
    }
}

static void add_rows(float *c, int64_t ldc, const float *sum, const block *at, bool add) {
    for (int64_t i = 0; i < at->rows; i++)
        for (int64_t k = 0; k < at->columns; k++)
            c[i * ldc + k] = add ? c[i * ldc + k] + sum[i * at->columns + k] : sum[i * at->columns + k];
}

/* Bias and activation over one row piece, in place. */
static void finish_row(const sn_call *c, float *y, int64_t first, int64_t n) {
    const float *bias = c->n_in > 2 ? (const float *)c->in[2].data + first : NULL;
    for (int64_t i = 0; bias && i < n; i++)
        y[i] += bias[i];
    sn_act_f32(c->attrs->matmul.act, y, n);
}

/* The whole sum of one block, into the output. */
static void run_block(const job *j, const block *at) {
    const int64_t N = j->s.N;
    float *c = (float *)j->call->out[0].data + (at->entry * j->s.M + at->m) * N + at->n;
    bool add = j->call->accumulate;
    for (int64_t g = 0; g < j->w.n_groups; g++) {
        float *sum = at->own + j->w.packed_b + j->w.packed_a;
        if (j->w.n_groups == 1) {
            run_group(j, at, g, c, N, add);
            break;
        }
        run_group(j, at, g, sum, at->columns, false);
        add_rows(c, N, sum, at, add);
        add = true;
    }
    for (int64_t i = 0; i < at->rows; i++) {
        if (j->w.n_groups == 0 && !add)
            memset(c + i * N, 0, (size_t)at->columns * sizeof(float));
        finish_row(j->call, c + i * N, at->n, at->columns);
    }
}

/* --- all tasks -------------------------------------------------------------------------------------------- */
static float *partial_sums(const job *j, int64_t group) {
    return (float *)j->call->workspace + floats_per_thread(&j->w) * j->call->n_threads +
           group * j->s.batch * j->s.M * j->s.N;
}

static void run_task(const job *j, int64_t task, float *own) {
    const sn_matmul_shape *s = &j->s;
    const int64_t n_groups = j->w.split ? j->w.n_groups : 1;
    const int64_t group = task % n_groups, column_block = task / n_groups % j->w.n_column_blocks;
    const int64_t row_block = task / n_groups / j->w.n_column_blocks % j->w.n_row_blocks;
    const int64_t entry = task / n_groups / j->w.n_column_blocks / j->w.n_row_blocks;
    const int64_t m = row_block * j->w.rows, n = column_block * j->w.columns;
    const block at = {
        .entry = entry,
        .m = m,
        .n = n,
        .rows = least(j->w.rows, s->M - m),
        .columns = least(j->w.columns, s->N - n),
        .a = (const float *)j->call->in[0].data + sn_matmul_offset(s->out, s->a, entry),
        .b = (const float *)j->call->in[1].data + sn_matmul_offset(s->out, s->b, entry),
        .own = own,
    };
    if (j->w.split)
        run_group(j, &at, group, partial_sums(j, group) + (entry * s->M + m) * s->N + n, s->N, false);
    else
        run_block(j, &at);
}

/* Second pass of a split run: one row of the output. */
static void add_groups(const job *j, int64_t row) {
    const int64_t N = j->s.N;
    float *y = (float *)j->call->out[0].data + row * N;
    for (int64_t g = 0; g < j->w.n_groups; g++) {
        const float *sum = partial_sums(j, g) + row * N;
        const bool add = g > 0 || j->call->accumulate;
        for (int64_t i = 0; i < N; i++)
            y[i] = add ? y[i] + sum[i] : sum[i];
    }
    finish_row(j->call, y, 0, N);
}

static snug_status run_matmul(const sn_call *c, snug_error *err) {
    if (!sn_call_is_f32(c))
        return reference_matmul(c, err);
    SNUG_TRY(check_accumulate(c, err));
    job j = {.call = c, .s = shape_of(c)};
    j.w = cut_work(&j.s, c->n_threads);
    const int64_t n_tasks =
        j.s.batch * j.w.n_row_blocks * j.w.n_column_blocks * (j.w.split ? j.w.n_groups : 1);
    if (n_tasks == 0)
        return SNUG_OK;
#pragma omp parallel num_threads(c->n_threads)
    {
        float *own = (float *)c->workspace + floats_per_thread(&j.w) * omp_get_thread_num();
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < n_tasks; task++)
            run_task(&j, task, own);
        if (j.w.split) {
#pragma omp for schedule(static)
            for (int64_t row = 0; row < j.s.batch * j.s.M; row++)
                add_groups(&j, row);
        }
    }
    return SNUG_OK;
}

static snug_status describe_matmul(const sn_opdesc *d, int n_threads, sn_variant *out, snug_error *err) {
    (void)err;
    if (d->in[0].dtype != SNUG_F32) {
        snprintf(out->impl, sizeof out->impl, "reference");
        return SNUG_OK;
    }
    const sn_matmul_shape s = sn_matmul_shape_of(&d->attrs.matmul, &d->in[0], &d->in[1], &d->out[0]);
    const cut w = cut_work(&s, n_threads);
    out->workspace_bytes = (size_t)(floats_per_thread(&w) * n_threads + w.partial) * sizeof(float);
    return SNUG_OK;
}

SN_CPU_FAMILY(matmul, .reference = reference_matmul, .run = run_matmul, .describe = describe_matmul)
