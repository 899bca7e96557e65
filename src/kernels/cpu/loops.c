/* loops.c: walks over strided index spaces (loops.h). Where a row is cut depends on the dims
 * alone. */
#include "kernels/cpu/loops.h"

void sn_dense_strides(const snug_type *t, int64_t *stride) {
    int64_t step = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= t->dims[k];
    }
}

sn_walk sn_walk_over(const snug_type *t) {
    sn_walk w = {.rank = t->rank, .n = 1};
    for (int k = 0; k < t->rank; k++)
        w.dims[k] = t->dims[k];
    sn_dense_strides(t, w.stride[0]);
    return w;
}

void sn_walk_add_broadcast(sn_walk *w, const snug_type *t) {
    int64_t dense[SNUG_MAX_RANK] = {0};
    int64_t *stride = w->stride[w->n++];
    const int missing = w->rank - t->rank;
    sn_dense_strides(t, dense);
    for (int k = 0; k < w->rank; k++)
        stride[k] = k < missing || t->dims[k - missing] == 1 ? 0 : dense[k - missing];
}

/* Whether every operand steps over axis `outer` as if it were more of axis `inner`. */
static bool joins(const sn_walk *w, int outer, int inner, int64_t inner_extent) {
    for (int i = 0; i < w->n; i++)
        if (w->stride[i][outer] != w->stride[i][inner] * inner_extent)
            return false;
    return true;
}

void sn_walk_merge(sn_walk *w) {
    sn_walk m = {.n = w->n};
    for (int k = 0; k < w->rank; k++) {
        if (w->dims[k] == 1)
            continue;
        int at = m.rank;
        /* Extend the previous axis when it continues through this one. */
        for (int i = 0; i < m.n; i++)
            m.stride[i][at] = w->stride[i][k];
        if (at > 0 && joins(&m, at - 1, at, w->dims[k])) {
            for (int i = 0; i < m.n; i++)
                m.stride[i][at - 1] = m.stride[i][at];
            m.dims[at - 1] *= w->dims[k];
        } else {
            m.dims[at] = w->dims[k];
            m.rank++;
        }
    }
    if (m.rank == 0) {
        m.rank = 1;
        m.dims[0] = 1;
        for (int i = 0; i < m.n; i++)
            m.stride[i][0] = 1;
    }
    *w = m;
}

/* Offsets of row number `row` (row-major over all axes but the last). */
static void locate(const sn_walk *w, int64_t row, int64_t *index, int64_t *at) {
    for (int i = 0; i < w->n; i++)
        at[i] = 0;
    for (int k = w->rank - 2; k >= 0; k--) {
        index[k] = row % w->dims[k];
        row /= w->dims[k];
        for (int i = 0; i < w->n; i++)
            at[i] += index[k] * w->stride[i][k];
    }
}

/* The next row: an odometer over the outer axes. */
static void advance(const sn_walk *w, int64_t *index, int64_t *at) {
    for (int k = w->rank - 2; k >= 0; k--) {
        const bool wraps = ++index[k] == w->dims[k];
        for (int i = 0; i < w->n; i++)
            at[i] += wraps ? -(w->dims[k] - 1) * w->stride[i][k] : w->stride[i][k];
        if (!wraps)
            return;
        index[k] = 0;
    }
}

typedef struct {
    const sn_walk *w;
    const sn_call *c;
    sn_row row;
} walk_loop;

static void run_rows(const void *ctx, int64_t first, int64_t end) {
    const walk_loop *l = ctx;
    const sn_walk *w = l->w;
    int64_t index[SNUG_MAX_RANK] = {0}, at[SN_WALK_MAX];
    locate(w, first, index, at);
    for (int64_t r = first; r < end; r++) {
        l->row(l->c, w, at, w->dims[w->rank - 1]);
        advance(w, index, at);
    }
}

/* Pieces of SN_SPAN elements of long rows. */
static void run_pieces(const void *ctx, int64_t first, int64_t end) {
    const walk_loop *l = ctx;
    const sn_walk *w = l->w;
    const int64_t inner = w->dims[w->rank - 1], pieces = sn_ceil_div(inner, SN_SPAN);
    for (int64_t u = first; u < end; u++) {
        const int64_t from = u % pieces * SN_SPAN;
        int64_t index[SNUG_MAX_RANK] = {0}, at[SN_WALK_MAX];
        locate(w, u / pieces, index, at);
        for (int i = 0; i < w->n; i++)
            at[i] += from * sn_walk_step(w, i);
        l->row(l->c, w, at, sn_min_i64(SN_SPAN, inner - from));
    }
}

void sn_walk_run(const sn_walk *w, const sn_call *c, sn_row row) {
    const int64_t inner = w->dims[w->rank - 1];
    int64_t outer = 1;
    for (int k = 0; k < w->rank - 1; k++)
        outer *= w->dims[k];
    if (outer == 0 || inner == 0)
        return;
    const walk_loop loop = {w, c, row};
    if (inner > SN_SPAN)
        sn_parallel(c, outer * inner, outer * sn_ceil_div(inner, SN_SPAN), run_pieces, &loop);
    else
        sn_parallel(c, outer * inner, outer, run_rows, &loop);
}

void sn_walk_elements(const sn_walk *w, const sn_call *c, sn_row row) {
    const sn_walk one = {.rank = 1, .n = w->n, .dims = {1}};
    int64_t count = 1;
    for (int k = 0; k < w->rank; k++)
        count *= w->dims[k];
    for (int64_t i = 0; i < count; i++) {
        int64_t at[SN_WALK_MAX] = {0}, rest = i;
        for (int k = w->rank - 1; k >= 0; k--) {
            for (int operand = 0; operand < w->n; operand++)
                at[operand] += rest % w->dims[k] * w->stride[operand][k];
            rest /= w->dims[k];
        }
        row(c, &one, at, 1);
    }
}
