/* update_dense.h: the family matmul_adam (update_dense.c) and its parts for x and dy of halves
 * beside f32 weights (update_dense_halves.c). */
#ifndef SN_KERNELS_CPU_UPDATE_DENSE_H
#define SN_KERNELS_CPU_UPDATE_DENSE_H

#include "kernels/cpu/halves.h"
#include "kernels/cpu/product.h"

#include <stdatomic.h>

enum {
    SN_DENSE_W,
    SN_DENSE_MEAN,
    SN_DENSE_SQUARE,
    SN_DENSE_X,
    SN_DENSE_DY,
    SN_DENSE_DX = SN_DENSE_X
};
enum { SN_DENSE_NARROW = 16 }; /* floats of a row, at most */
enum { SN_DENSE_ROWS = 16 };   /* of g at once: as many floats of x as a cache line has */

/* How the weights are cut, and what a taker needs. Sums go by steps: of one term, or of two where
 * bf16 is multiplied by pairs. */
typedef struct {
    int64_t M, N, K;
    bool halves, pairs;              /* what x and dy are */
    int64_t steps, back_steps;       /* of the sums over K, and over N */
    int64_t rows, n_spans, n_takers; /* rows of every span but the last */
    int64_t n_pieces, n_groups;
    bool narrow;           /* rows are short, and a sum is one piece */
    int64_t dx_pieces;     /* of the sums over N; 0: no dx */
    int64_t shared_floats; /* of dy, for dx of halves */
    int64_t turned_floats; /* whole cache lines, as the next */
    int64_t back_floats;   /* sums of dx of halves */
    int64_t block_floats;  /* of halves, a piece of ROWS columns of x */
    int64_t own_floats;
} sn_dense_cut;

typedef struct {
    sn_dense_cut u;
    const sn_call *c;
    float *shared, *scratch;
    _Atomic int64_t *next;
} sn_dense_pass;

/* Rows [first, first + n) of w. */
typedef struct {
    int64_t first, n;
} sn_dense_span;

/* Steps of every piece of a sum but the last. */
static inline int64_t sn_dense_depth(int64_t steps, int64_t n_pieces) {
    return n_pieces > 0 ? sn_ceil_div(steps, n_pieces) : 0;
}

#define sn_dense_halves_cut       SN_CPU(dense_halves_cut)
#define sn_dense_halves_share     SN_CPU(dense_halves_share)
#define sn_dense_halves_piece     SN_CPU(dense_halves_piece)
#define sn_dense_halves_dx        SN_CPU(dense_halves_dx)
#define sn_dense_halves_narrow_dx SN_CPU(dense_halves_narrow_dx)

/* Scratch that halves need beside: `shared`, `turned` and `back`. */
void sn_dense_halves_cut(sn_dense_cut *u);
/* Fills shared, before any span. */
void sn_dense_halves_share(const sn_dense_pass *l);
/* Steps [k, end) of the sums of a span; block: floats of a piece of ROWS rows. */
void sn_dense_halves_piece(const sn_dense_pass *l, sn_dense_span s, int64_t k, int64_t end,
                           float *block, float *g);
/* The span's columns of dx. */
void sn_dense_halves_dx(const sn_dense_pass *l, sn_dense_span s, float *own);
void sn_dense_halves_narrow_dx(const sn_dense_pass *l, sn_dense_span s);

#endif
