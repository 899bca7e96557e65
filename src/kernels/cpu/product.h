/* product.h: a large product cut into blocks for the threads. matmul and the convolutions say where
 * their operands lie (open, piece); this file decides who computes what, and in which order sums
 * are added.
 *
 *     element = ((group 0 + group 1) + ...), group = ((piece 0 + piece 1) + ...), piece: see gemm.h
 *
 * The pieces of K come from the operator's shape, the groups from the number of pieces alone: so
 * bits depend neither on threads nor on how many rows there are. When blocks are too few for the
 * threads and there are groups (a weight gradient, a dense layer over a flattened image), a task is
 * one group of one block: its sum waits in the workspace and a second pass adds the groups, in
 * order. Otherwise a thread makes all groups of its block. The bits are the same. */
#ifndef SN_KERNELS_CPU_PRODUCT_H
#define SN_KERNELS_CPU_PRODUCT_H

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loops.h"

enum { SN_PRODUCT_ROWS = 120, SN_PRODUCT_COLUMNS = 256, SN_PRODUCT_DEPTH = 256 };
/* Of products that pack an operand for every block: larger blocks pack less. */
enum { SN_PRODUCT_TALL = 264 };

typedef struct sn_product sn_product;

/* One block of C; lives on its thread's stack. */
typedef struct {
    int64_t entry, row_block; /* which rows: the operator's business */
    int64_t n, columns;       /* columns [n, n + columns); n is a multiple of SN_GEMM_NR, or of
                               * the product's grain */
    float *own;               /* this taker's scratch, own_floats of it */
    const float *bias;        /* of column 0, or NULL; open may move it */
    const float *scale;       /* the same */
    /* filled by open: */
    int64_t rows;
    float *c; /* C(i, j) = c[c_row[i] + j], j counted from column 0 */
    int64_t a_row[SN_PRODUCT_TALL], c_row[SN_PRODUCT_TALL];
    int64_t a_col[SN_PRODUCT_DEPTH]; /* scratch of piece */
} sn_product_block;

struct sn_product {
    const void *ctx;
    int64_t batch, N, n_pieces;
    /* Blocks of rows per batch entry when none may have more than `limit` of them (a multiple of
     * SN_GEMM_MR); *rows is the first's, and none has more. */
    int64_t (*count_row_blocks)(const sn_product *p, int64_t limit, int64_t *rows);
    void (*open)(const sn_product *p, sn_product_block *b);
    /* Fills k, a, a_row, a_col, b and b_step for piece i of K; b from column b->n on. At most
     * SN_PRODUCT_DEPTH terms. */
    void (*piece)(const sn_product *p, sn_product_block *b, int64_t i, sn_gemm *g);
    /* Once the block is complete, on the same thread; NULL: nothing follows. Its C may then lie in
     * b->own, at whose end. */
    void (*close)(const sn_product *p, const sn_product_block *b);
    /* Fills share i of `shared`, before any block; NULL: nothing is shared. */
    void (*fill_shared)(const sn_product *p, int64_t i);
    int64_t n_shares;
    /* Scratch per taker for open and piece, once rows and columns are known: as much as block 0
     * writes with its first piece, to the last float; no other writes more. */
    int64_t (*own_floats)(const sn_product *p);
    int64_t shared_floats; /* all written by fill_shared */
    double work;           /* multiplications in all */
    const float *bias;     /* of all N columns, or NULL */
    const float *scale;    /* the same: elements are multiplied by it before the bias */
    int64_t act;
    bool accumulate;
    bool tall; /* blocks have up to SN_PRODUCT_TALL rows, and two are enough for a thread */
    bool both; /* each block packs A and B: as square as may be it packs least */
    /* Where B is not packed: columns of a block come in multiples of this, and every thread gets
     * as many; 0: of SN_GEMM_NR. */
    int64_t grain;
    /* set by product_cut (product.c): */
    int64_t limit, rows, columns, n_row_blocks, n_column_blocks, n_groups;
    int threads;
    int64_t n_takers; /* with scratch of their own */
    bool split;
    size_t workspace_bytes; /* of which the last one is always written */
    float *shared;          /* in the workspace */
};

/* Chooses blocks for the threads; fills the last part of p. */
void SN_CPU(product_cut)(sn_product *p, int n_threads);
/* p was cut for c's threads; of c only these and the team count. */
void SN_CPU(product_run)(sn_product *p, const sn_call *c, void *workspace);

/* Groups that so many pieces are summed in. */
static inline int64_t sn_product_groups(int64_t n_pieces) {
    enum { MAX_GROUPS = 16, PIECES_PER_GROUP = 8 };
    return sn_min_i64(sn_ceil_div(n_pieces, PIECES_PER_GROUP), MAX_GROUPS);
}

/* First piece of a group; the group behind the last begins at n_pieces. */
static inline int64_t sn_product_first(const sn_product *p, int64_t group) {
    return group * p->n_pieces / p->n_groups;
}

/* Floats rounded up to whole cache lines. */
static inline int64_t sn_lines(int64_t floats) {
    return sn_ceil_div(floats, 16) * 16;
}

#endif
