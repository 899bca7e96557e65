/* loops.h: how own kernels go over elements, in blocks of a constant size: which thread takes a
 * block never changes what is computed. Few elements run on the calling thread alone.
 *
 *     static void exp_f32(const sn_call *c, int64_t first, int64_t n);  // [first, first + n)
 *     sn_spans(c, n_elements, exp_f32);
 *
 * A walk goes over an index space where each operand has its own strides (0: broadcast), row by row
 * along the innermost axis after neighbouring axes have been merged:
 *
 *     sn_walk w = sn_walk_over(&c->out[0].type);      // operand 0: dense over these dims
 *     sn_walk_add_broadcast(&w, &c->in[0].type);      // operand 1: numpy's rule
 *     sn_walk_merge(&w);
 *     sn_walk_run(&w, c, add_row);                    // add_row(c, &w, element offsets, n) */
#ifndef SN_KERNELS_CPU_LOOPS_H
#define SN_KERNELS_CPU_LOOPS_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

/* Before a loop of which element i of each output meets element i of the inputs only. */
#if defined(__clang__) /* which finds that out when it runs */
#define SN_IVDEP
#else
#define SN_IVDEP _Pragma("GCC ivdep")
#endif

#define SN_SPAN     8192  /* elements of a block */
#define SN_SMALL    32768 /* below this many elements no thread is woken */
#define SN_WALK_MAX 4     /* operands of a walk */

static inline int64_t sn_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t sn_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

/* Items [0, n) of a loop over `work` elements in all, on the threads of the call. Which thread
 * takes an item, and together with which others, must not change what is computed. */
static inline void sn_parallel(const sn_call *c, int64_t work, int64_t n, sn_items part,
                               const void *ctx) {
    sn_team_run(work < SN_SMALL || c->n_threads < 2 ? NULL : c->team, n, part, ctx);
}

typedef void (*sn_span)(const sn_call *c, int64_t first, int64_t n);

typedef struct {
    const sn_call *c;
    int64_t n;
    sn_span span;
} sn_span_loop;

static inline void sn_span_part(const void *ctx, int64_t first, int64_t end) {
    const sn_span_loop *l = ctx;
    for (int64_t b = first; b < end; b++)
        l->span(l->c, b * SN_SPAN, sn_min_i64(SN_SPAN, l->n - b * SN_SPAN));
}

static inline void sn_spans(const sn_call *c, int64_t n, sn_span span) {
    const sn_span_loop loop = {c, n, span};
    sn_parallel(c, n, sn_ceil_div(n, SN_SPAN), sn_span_part, &loop);
}

static inline snug_status sn_no_kernel(snug_dtype dtype, snug_error *err) {
    return sn_fail(err, SNUG_E_UNSUPPORTED, "no CPU kernel for %s; cast to f32 before it",
                   snug_dtype_name(dtype));
}

/* Real parameter i of the call; 0 where the operator has none. */
static inline double sn_real_param(const sn_call *c, int i) {
    return i < sn_ops[c->op].attrs->n_params ? c->param[i].real : 0;
}

typedef struct {
    int rank; /* >= 1 once merged */
    int n;    /* operands; 0 is the one written */
    int64_t dims[SNUG_MAX_RANK];
    int64_t stride[SN_WALK_MAX][SNUG_MAX_RANK]; /* in elements */
} sn_walk;

/* at[k]: offset of the row in operand k; its elements are w->stride[k][w->rank - 1] apart. */
typedef void (*sn_row)(const sn_call *c, const sn_walk *w, const int64_t *at, int64_t n);

#define sn_walk_over          SN_CPU(walk_over)
#define sn_walk_add_broadcast SN_CPU(walk_add_broadcast)
#define sn_walk_merge         SN_CPU(walk_merge)
#define sn_walk_run           SN_CPU(walk_run)
#define sn_walk_elements      SN_CPU(walk_elements)
#define sn_dense_strides      SN_CPU(dense_strides)

/* Strides of a dense row-major value. */
void sn_dense_strides(const snug_type *t, int64_t *stride);
sn_walk sn_walk_over(const snug_type *t);
void sn_walk_add_broadcast(sn_walk *w, const snug_type *t);
void sn_walk_merge(sn_walk *w);
void sn_walk_run(const sn_walk *w, const sn_call *c, sn_row row);
/* For references: one element at a time, each found by its own index; w is not merged. Steps
 * are 0. */
void sn_walk_elements(const sn_walk *w, const sn_call *c, sn_row row);

static inline int64_t sn_walk_step(const sn_walk *w, int operand) {
    return w->stride[operand][w->rank - 1];
}

#endif
