/* recurrent_net.c: what the recurrent rows share: the recurrent kernel packed, examples cut into
 * blocks, their steps one after the other, and the states in front of the first and behind the
 * last. Operands of halves are run by recurrent_halves.c. */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/halves.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/recurrent.h"

#include <string.h>

/* --- groups and the workspace ----------------------------------------------------------------- */
static int cut_groups(int64_t G, bool dropped, sn_rnn_group *g) {
    if (!dropped && G == 3) {
        g[0] = (sn_rnn_group){.first = 0, .n = 2};
        g[1] = (sn_rnn_group){.first = 2, .n = 1};
        return 2;
    }
    const int64_t n = dropped ? 1 : G;
    for (int64_t k = 0; k * n < G; k++)
        g[k] = (sn_rnn_group){.first = k * n, .n = n};
    return (int)(G / n);
}

/* Floats of a group's kernel packed, or of its transpose. */
static int64_t packed_floats(const sn_rnn_group *g, int64_t H, bool back) {
    return back ? sn_gemm_packed(g->n * H, H) : sn_gemm_packed(H, g->n * H);
}

/* Floats rounded up to whole cache lines. */
static int64_t lines(int64_t floats) {
    return sn_ceil_div(floats, 16) * 16;
}

/* Two tables of offsets. */
static int64_t table_floats(int64_t columns) {
    return lines(2 * columns * (int64_t)(sizeof(int64_t) / sizeof(float)));
}

static sn_rnn_operands of_desc(const sn_opdesc *d, const sn_rnn_kind *k) {
    sn_rnn_operands o = {d->n_in, d->n_out, .attrs = &d->attrs};
    for (int i = 0; i < o.n_in; i++)
        o.in[i] = &d->in[i];
    for (int i = 0; i < o.n_out; i++)
        o.out[i] = &d->out[i];
    for (int i = sn_rnn_fixed(k, o.attrs); i < o.n_in; i++)
        o.dropped = o.dropped || (o.in[i]->rank == 2 && o.in[i]->dtype != SNUG_BOOL);
    return o;
}

static sn_rnn_operands of_call(const sn_rnn_net *n) {
    const sn_call *c = n->c;
    sn_rnn_operands o = {c->n_in, c->n_out, .attrs = c->attrs, .dropped = n->drop != NULL};
    for (int i = 0; i < o.n_in; i++)
        o.in[i] = &c->in[i].type;
    for (int i = 0; i < o.n_out; i++)
        o.out[i] = &c->out[i].type;
    return o;
}

/* Of the scratch, which lies behind the tables. */
static int64_t scratch_floats(const sn_rnn_operands *o, const sn_rnn_kind *k, int n_threads) {
    const int64_t H = o->in[1]->dims[0];
    return sn_dtype_is_half(o->in[0]->dtype)
               ? sn_rnn_stage_floats(o, k, n_threads)
               : o->in[0]->dims[0] * sn_rnn_scratch(k, o->attrs, H, o->dropped);
}

size_t sn_rnn_workspace(const sn_opdesc *d, sn_rnn_row row, int n_threads) {
    const sn_rnn_kind *kind = &sn_rnn_kinds[row];
    const sn_rnn_operands o = of_desc(d, kind);
    const int64_t H = d->in[1].dims[0], columns = d->in[0].dims[2];
    sn_rnn_group g[SN_RNN_GATES] = {{.n = 0}};
    int64_t floats = table_floats(columns) + scratch_floats(&o, kind, n_threads);
    const int n = cut_groups(H > 0 ? columns / H : 1, o.dropped, g);
    for (int k = 0; k < n; k++)
        floats = lines(floats) + packed_floats(&g[k], H, kind->back);
    return (size_t)floats * sizeof(float);
}

/* Packs U, or its transpose for the way back. */
static void pack(sn_rnn_net *n, bool back, float *packed) {
    const sn_rnn *r = &n->r;
    const int64_t columns = r->G * r->H;
    const sn_stored kernel = sn_stored_of(&n->c->in[1]);
    int64_t *column = n->c->workspace, *row = column + columns;
    n->column = column;
    for (int64_t k = 0; k < columns; k++)
        column[k] = k;
    for (int k = 0; k < n->n_groups; k++) {
        sn_rnn_group *g = &n->groups[k];
        const int64_t depth = back ? g->n * r->H : r->H, width = back ? r->H : g->n * r->H;
        for (int64_t i = 0; i < depth; i++)
            row[i] = g->first * r->H + (back ? i : i * columns);
        sn_stored_pack(&(sn_stored_source){&kernel, 0, depth, width, row, back ? columns : 1},
                       packed);
        g->packed = packed;
        packed += lines(packed_floats(g, r->H, back));
    }
}

static sn_rnn_net open_net(const sn_call *c, const sn_rnn_kind *k, sn_rnn_operands *o) {
    sn_rnn_net n = {
        .c = c, .r = sn_rnn_of(c, sn_rnn_fixed(k, c->attrs)), .stored = c->in[0].type.dtype};
    n.block_rows = sn_rnn_block_rows(n.r.B, c->n_threads);
    n.drop = n.r.drop ? n.r.drop->data : NULL;
    n.dhidden = n.r.dhidden ? n.r.dhidden->data : NULL;
    n.n_groups = cut_groups(n.r.G, n.drop != NULL, n.groups);
    n.scratch = (float *)c->workspace + table_floats(n.r.G * n.r.H);
    *o = of_call(&n);
    pack(&n, k->back, n.scratch + lines(scratch_floats(o, k, c->n_threads)));
    return n;
}

/* --- blocks ----------------------------------------------------------------------------------- */
void sn_rnn_walk(const sn_rnn_net *n, const sn_rnn_kind *k, int64_t block, sn_rnn_visit *visit,
                 void *ctx) {
    const sn_rnn *r = &n->r;
    const int64_t b0 = block * n->block_rows, b1 = sn_min_i64(r->B, b0 + n->block_rows);
    for (int64_t i = 0; i < r->T; i++) {
        const int64_t at = k->back ? r->T - 1 - i : i;
        sn_rnn_step s = {.n = n, .t = sn_rnn_time(r, at)};
        s.earlier = at == 0 ? -1 : sn_rnn_time(r, at - 1);
        for (int64_t b = b0; b < b1; b++)
            if (sn_rnn_taken(r, b, s.t))
                s.b[s.rows++] = b;
        visit(ctx, &s, b0, b1);
    }
}

int64_t sn_rnn_block_rows(int64_t B, int n_threads) {
    const int64_t share = sn_ceil_div(B, n_threads > 1 ? n_threads : 1);
    return share > 0 ? sn_ceil_div(share, sn_ceil_div(share, SN_RNN_ROWS)) : 1;
}

typedef struct {
    const sn_rnn_net *n;
    const sn_rnn_kind *kind;
} job;

static void visit_floats(void *ctx, const sn_rnn_step *s, int64_t b0, int64_t b1) {
    const sn_rnn_kind *k = ctx;
    for (int64_t b = b0; s->rows < b1 - b0 && b < b1; b++)
        if (!sn_rnn_taken(&s->n->r, b, s->t))
            k->hold(s, b);
    k->take(s);
}

static void run_blocks(const void *ctx, int64_t first, int64_t end) {
    const job *j = ctx;
    for (int64_t block = first; block < end; block++)
        sn_rnn_walk(j->n, j->kind, block, visit_floats, (void *)j->kind);
}

/* --- the states at both ends ------------------------------------------------------------------ */
/* H numbers of any type. */
static void copy_state(const sn_rnn *r, const snug_view *to, int64_t at, const snug_view *from,
                       int64_t from_at) {
    const size_t bytes = snug_dtype_bytes(to->type.dtype);
    memcpy((char *)to->data + (size_t)at * bytes,
           (const char *)from->data + (size_t)from_at * bytes, (size_t)r->H * bytes);
}

/* The states behind the last step, side by side. */
static void put_last(const sn_rnn_net *n, const sn_rnn_kind *kind) {
    const sn_rnn *r = &n->r;
    for (int k = 0; k < kind->n_states; k++)
        for (int64_t b = 0; b < r->B; b++) {
            const int64_t at = (b * r->T + (r->T > 0 ? sn_rnn_time(r, r->T - 1) : 0)) * r->H;
            const snug_view *from = r->T == 0 ? &n->c->in[kind->states[k].initial]
                                              : &n->c->out[kind->states[k].sequence];
            copy_state(r, &n->c->out[kind->last], (b * kind->n_states + k) * r->H, from,
                       r->T == 0 ? b * r->H : at);
        }
}

/* Running gradients begin as those of the last states. */
static void take_last(const sn_rnn_net *n, const sn_rnn_kind *kind) {
    for (int k = 0; k < kind->n_last; k++)
        for (int64_t b = 0; b < n->r.B; b++)
            copy_state(&n->r, &n->c->out[kind->last + k], b * n->r.H, &n->c->in[2],
                       (b * kind->n_last + k) * n->r.H);
}

void sn_rnn_run(const sn_call *c, sn_rnn_row row) {
    const sn_rnn_kind *kind = &sn_rnn_kinds[row];
    sn_rnn_operands o;
    const sn_rnn_net n = open_net(c, kind, &o);
    const sn_rnn *r = &n.r;
    const job j = {&n, kind};
    if (kind->back)
        take_last(&n, kind);
    if (sn_dtype_is_half(c->in[0].type.dtype))
        sn_rnn_run_halves(&n, kind, &o);
    else
        sn_parallel(c, r->B * r->T * r->G * r->H * 4, sn_ceil_div(r->B, n.block_rows), run_blocks,
                    &j);
    if (!kind->back)
        put_last(&n, kind);
}
