/* product.c: blocks, groups and threads of a product. The order of additions in product.h is the
 * contract.
 *
 * Workspace: shared | own scratch and group sum of each taker | when split, the sum of each group
 * of each block. What a run needs is what it was promised, to the byte and whoever runs it: every
 * taker has a first step of its own, and the largest block, which is block 0, is the last taker's
 * and the last of the sums that wait. */
#include "kernels/cpu/product.h"

#include "kernels/cpu/act.h"

#include <stdatomic.h>
#include <string.h>

/* Sums that wait for the second pass are memory, too: beyond this many floats blocks get fewer rows
 * instead. */
enum { MAX_WAITING = 1 << 18 };
/* Fewer multiplications than this are done before another thread would be awake. */
enum { SMALL = 1 << 18 };

/* --- cutting --------------------------------------------------------------------------------- */
static int64_t count_blocks(sn_product *p) {
    p->n_column_blocks = p->columns > 0 ? sn_ceil_div(p->N, p->columns) : 0;
    p->n_row_blocks = p->count_row_blocks(p, p->limit, &p->rows);
    return p->batch * p->n_row_blocks * p->n_column_blocks;
}

/* Whole blocks, or groups of them. */
static int64_t count_steps(sn_product *p) {
    return count_blocks(p) * (p->split ? p->n_groups : 1);
}

static int64_t group_sum_floats(const sn_product *p) {
    return p->rows * p->columns;
}

static int64_t waiting_floats(sn_product *p) {
    return count_blocks(p) * p->n_groups * sn_lines(group_sum_floats(p));
}

static int64_t taker_floats(const sn_product *p) {
    const int64_t own = p->n_pieces > 0 || p->close ? p->own_floats(p) : 0;
    return p->n_groups > 1 && !p->split ? sn_lines(own) + group_sum_floats(p) : own;
}

/* Where the takers' scratch begins, and the sums that wait. */
static int64_t takers_at(const sn_product *p) {
    return sn_lines(p->shared_floats);
}

static int64_t waiting_at(const sn_product *p) {
    return takers_at(p) + sn_lines(taker_floats(p)) * p->n_takers;
}

/* Only what lies in between is rounded up to whole cache lines. */
static int64_t workspace_floats(sn_product *p) {
    if (count_blocks(p) == 0)
        return 0;
    if (p->split)
        return waiting_at(p) + waiting_floats(p) - sn_lines(group_sum_floats(p)) +
               group_sum_floats(p);
    if (taker_floats(p) > 0)
        return waiting_at(p) - sn_lines(taker_floats(p)) + taker_floats(p);
    return p->shared_floats;
}

/* Where B is not packed any column may begin a block, so that the threads get equal shares in one
 * to four blocks each, and the rows need not be cut: every block of rows goes through B again. */
static bool cut_evenly(sn_product *p) {
    enum { MOST_EACH = 4 };
    int64_t least = INT64_MAX;
    if (p->grain == 0 || p->threads < 2 || p->N < p->threads * 2 * SN_GEMM_VL)
        return false;
    for (int64_t each = 1; each <= MOST_EACH; each++) {
        const int64_t share = sn_ceil_div(p->N, each * p->threads);
        const int64_t columns = sn_ceil_div(share, p->grain) * p->grain;
        const int64_t load = sn_ceil_div(sn_ceil_div(p->N, columns), p->threads) * columns;
        if (columns >= 2 * SN_GEMM_VL && columns <= SN_PRODUCT_COLUMNS && load <= least) {
            least = load;
            p->columns = columns;
        }
    }
    return least < INT64_MAX;
}

static void halve_rows(sn_product *p) {
    p->limit = sn_ceil_div(p->limit / 2, SN_GEMM_MR) * SN_GEMM_MR;
}

/* Fewer columns; or fewer rows, where these are packed as well and are more. */
static void cut_side(sn_product *p) {
    if (p->both && p->rows > p->columns)
        halve_rows(p);
    else
        p->columns = sn_ceil_div(p->columns / 2, SN_GEMM_NR) * SN_GEMM_NR;
}

/* Rows of a B that is not packed are so short that a part of each would be read no faster than all
 * of it: groups are tasks, where their sums may wait. */
static bool goes_by_groups(sn_product *p) {
    return p->grain > 0 && p->N <= SN_PRODUCT_COLUMNS && p->n_groups >= p->threads &&
           waiting_floats(p) <= MAX_WAITING;
}

/* Blocks as large as the caches like, smaller ones when the threads would go short: first fewer
 * columns, then groups as tasks, and fewer rows last, since every block of rows goes through B
 * again. */
void SN_CPU(product_cut)(sn_product *p, int n_threads) {
    p->threads = p->work < SMALL || n_threads < 1 ? 1 : n_threads;
    const int64_t enough = p->threads > 1 ? (p->tall ? 2 : 4) * (int64_t)p->threads : 1;
    const int64_t wanted = p->threads > 1 && !p->both ? 4 * (int64_t)p->threads : enough;
    p->limit = p->tall ? SN_PRODUCT_TALL : SN_PRODUCT_ROWS;
    p->columns = sn_min_i64(SN_PRODUCT_COLUMNS, p->N);
    p->n_groups = sn_product_groups(p->n_pieces);
    const bool narrow = goes_by_groups(p);
    const bool even = !narrow && count_blocks(p) < wanted && cut_evenly(p);
    while (!even && !narrow && count_blocks(p) < wanted && p->columns > SN_GEMM_NR)
        cut_side(p);
    const bool few = !even && count_blocks(p) < enough && p->batch * p->N > 0;
    p->split = few && p->n_groups > 1 && waiting_floats(p) <= MAX_WAITING;
    while (few && !p->split && count_blocks(p) < enough && p->limit > 4 * SN_GEMM_MR)
        halve_rows(p);
    p->n_takers = sn_min_i64(p->threads, count_steps(p));
    p->workspace_bytes = (size_t)workspace_floats(p) * sizeof(float);
}

/* --- one block ------------------------------------------------------------------------------- */
/* The sum of one group's pieces, as a dense matrix of its own. */
static void sum_group(const sn_product *p, sn_product_block *b, int64_t group, float *sum) {
    int64_t row[SN_PRODUCT_TALL];
    for (int64_t i = 0; i < b->rows; i++)
        row[i] = i * b->columns;
    sn_gemm g = {.m = b->rows, .n = b->columns, .c = sum, .c_row = row};
    for (int64_t i = sn_product_first(p, group); i < sn_product_first(p, group + 1); i++) {
        p->piece(p, b, i, &g);
        SN_CPU(gemm)(&g);
        g.add = true;
    }
}

static void add_sum(const sn_product_block *b, const float *sum, bool add) {
    for (int64_t i = 0; i < b->rows; i++) {
        float *c = b->c + b->c_row[i] + b->n;
        const float *s = sum + i * b->columns;
        for (int64_t j = 0; j < b->columns; j++)
            c[j] = add ? c[j] + s[j] : s[j];
    }
}

/* Bias and activation, where the block is still in the cache. A product over nothing is zero. */
static void finish(const sn_product *p, const sn_product_block *b) {
    for (int64_t i = 0; i < b->rows; i++) {
        float *c = b->c + b->c_row[i] + b->n;
        if (p->n_pieces == 0 && !p->accumulate)
            memset(c, 0, (size_t)b->columns * sizeof(float));
        if (b->scale)
            for (int64_t j = 0; j < b->columns; j++)
                c[j] *= b->scale[b->n + j];
        if (b->bias)
            for (int64_t j = 0; j < b->columns; j++)
                c[j] += b->bias[b->n + j];
        sn_act_f32(p->act, c, b->columns);
    }
}

/* One group: its last piece brings the bias and the simple activations along. */
static void run_single(const sn_product *p, sn_product_block *b) {
    const bool curved = p->act != SN_ACT_none && p->act != SN_ACT_relu && p->act != SN_ACT_relu6;
    sn_gemm g = {.c = b->c + b->n, .c_row = b->c_row, .add = p->accumulate};
    g.m = b->rows;
    g.n = b->columns;
    for (int64_t i = 0; i < p->n_pieces; i++) {
        const bool last = i == p->n_pieces - 1;
        p->piece(p, b, i, &g);
        g.bias = last && b->bias ? b->bias + b->n : NULL;
        g.scale = last && b->scale ? b->scale + b->n : NULL;
        g.relu = last && p->act == SN_ACT_relu;
        g.relu6 = last && p->act == SN_ACT_relu6;
        SN_CPU(gemm)(&g);
        g.add = true;
    }
    b->bias = b->scale = NULL;
    if (curved)
        finish(p, b);
}

static void run_block(const sn_product *p, sn_product_block *b) {
    if (p->n_groups == 1) {
        run_single(p, b);
        return;
    }
    float *sum = b->own + sn_lines(p->own_floats(p));
    for (int64_t group = 0; group < p->n_groups; group++) {
        sum_group(p, b, group, sum);
        add_sum(b, sum, group > 0 || p->accumulate);
    }
    finish(p, b);
}

/* --- all blocks ------------------------------------------------------------------------------ */
static void open_block(const sn_product *p, int64_t i, float *own, sn_product_block *b) {
    b->n = i % p->n_column_blocks * p->columns;
    b->columns = sn_min_i64(p->columns, p->N - b->n);
    b->row_block = i / p->n_column_blocks % p->n_row_blocks;
    b->entry = i / p->n_column_blocks / p->n_row_blocks;
    b->own = own;
    b->bias = p->bias;
    b->scale = p->scale;
    p->open(p, b);
}

/* One pass over all blocks, groups or shares. Takers go through it, each taking the next one that
 * is free after its first: blocks differ in what they cost. */
typedef struct {
    const sn_product *p;
    void (*step)(const sn_product *p, int64_t i, float *own, float *waiting);
    int64_t n, n_takers;
    float *scratch, *waiting;
    _Atomic int64_t *next;
} product_pass;

static void take_steps(const void *ctx, int64_t first, int64_t end) {
    const product_pass *l = ctx;
    for (int64_t taker = first; taker < end; taker++) {
        float *own = l->scratch + sn_lines(taker_floats(l->p)) * taker;
        for (int64_t i = l->n_takers - 1 - taker; i < l->n; i = atomic_fetch_add(l->next, 1))
            l->step(l->p, i, own, l->waiting);
    }
}

static void run_pass(product_pass *l, const sn_call *c, int64_t n, int64_t n_takers) {
    l->n = n;
    l->n_takers = sn_min_i64(n_takers, n);
    _Atomic int64_t next = l->n_takers;
    l->next = &next;
    sn_team_run(c->team, l->n_takers, take_steps, l);
}

static void fill_share(const sn_product *p, int64_t i, float *own, float *waiting) {
    (void)own, (void)waiting;
    p->fill_shared(p, i);
}

static void run_whole(const sn_product *p, int64_t i, float *own, float *waiting) {
    sn_product_block b;
    (void)waiting;
    open_block(p, i, own, &b);
    run_block(p, &b);
    if (p->close)
        p->close(p, &b);
}

/* Behind the others those of block 0. */
static float *waiting_sum(const sn_product *p, int64_t block, int64_t group, float *waiting) {
    const int64_t n_blocks = p->batch * p->n_row_blocks * p->n_column_blocks;
    const int64_t i = (n_blocks - 1 - block) * p->n_groups + p->n_groups - 1 - group;
    return waiting + i * sn_lines(group_sum_floats(p));
}

static void run_group(const sn_product *p, int64_t i, float *own, float *waiting) {
    sn_product_block b;
    const int64_t block = i / p->n_groups, group = i % p->n_groups;
    open_block(p, block, own, &b);
    sum_group(p, &b, group, waiting_sum(p, block, group, waiting));
}

static void add_groups(const sn_product *p, int64_t i, float *own, float *waiting) {
    sn_product_block b;
    open_block(p, i, own, &b);
    for (int64_t group = 0; group < p->n_groups; group++)
        add_sum(&b, waiting_sum(p, i, group, waiting), group > 0 || p->accumulate);
    finish(p, &b);
    if (p->close)
        p->close(p, &b);
}

void SN_CPU(product_run)(sn_product *p, const sn_call *c, void *workspace) {
    const int64_t n_blocks = p->batch * p->n_row_blocks * p->n_column_blocks;
    product_pass pass = {.p = p,
                         .scratch = (float *)workspace + takers_at(p),
                         .waiting = (float *)workspace + waiting_at(p)};
    if (n_blocks == 0)
        return;
    p->shared = workspace;
    pass.step = fill_share;
    run_pass(&pass, c, p->n_shares, p->threads);
    pass.step = p->split ? run_group : run_whole;
    run_pass(&pass, c, count_steps(p), p->n_takers);
    pass.step = add_groups;
    run_pass(&pass, c, p->split ? n_blocks : 0, p->n_takers);
}
