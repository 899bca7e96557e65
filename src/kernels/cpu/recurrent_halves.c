/* recurrent_halves.c: the recurrent rows on halves. A step of a block of examples is a call of f32
 * of its own, with one step: what it reads is widened into a stage, the f32 kernels run there, and
 * what they wrote is rounded into the outputs. States are read again from where they were stored,
 * so that they are rounded once per step, whichever way a block is cut.
 *
 * A stage has room for the operands of the largest block; each thread that takes blocks has one. */
#include "kernels/cpu/halves.h"
#include "kernels/cpu/parts.h"
#include "kernels/cpu/recurrent.h"

/* Where the operands of a block lie in its stage. Gates become gradients or activations in place:
 * input 0 and output 0 are one. */
typedef struct {
    int64_t in[SN_RNN_IN], out[SN_MAX_OUT]; /* in floats; < 0: it has no part there */
    int64_t scratch;
    int64_t floats;
} layout;

typedef struct {
    const sn_rnn_net *n;
    const sn_rnn_kind *kind;
    layout l;
    sn_parts parts;
    float *stages;
} job;

/* A block that runs. */
typedef struct {
    const job *j;
    sn_call c;
    sn_rnn_net n; /* of c: one step of the block's examples */
    snug_view in[SN_RNN_IN], out[SN_MAX_OUT];
} block;

static int state_of_input(const sn_rnn_kind *k, int i) {
    for (int s = 0; s < k->n_states; s++)
        if (k->states[s].initial == i)
            return s;
    return -1;
}

static bool is_running(const sn_rnn_kind *k, int out) {
    return k->back && out >= k->last && out < k->last + k->n_last;
}

/* Numbers of an input for each example of a block; those of all examples, or of none: 0. */
static int64_t width_of_input(const sn_rnn_kind *k, const snug_type *t, int i) {
    const bool last_gradient = k->back && i == 2;
    if (i == 1 || last_gradient || t->dtype == SNUG_BOOL || t->rank < 2)
        return 0;
    return t->dims[t->rank - 1];
}

static int64_t width_of_output(const sn_rnn_kind *k, const snug_type *t, int i) {
    return t->rank == 3 || is_running(k, i) ? t->dims[t->rank - 1] : 0;
}

static int64_t place(int64_t *floats, int64_t n) {
    if (n == 0)
        return -1;
    const int64_t at = sn_line_floats(*floats);
    *floats = at + n;
    return at;
}

static layout lay_out(const sn_rnn_operands *o, const sn_rnn_kind *k, int64_t rows) {
    layout l = {.floats = 0};
    for (int i = 0; i < o->n_in; i++) {
        const snug_type *t = o->in[i];
        l.in[i] = place(&l.floats, t->rank == 1 ? t->dims[0] : rows * width_of_input(k, t, i));
    }
    l.out[0] = l.in[0];
    for (int i = 1; i < o->n_out; i++)
        l.out[i] = place(&l.floats, rows * width_of_output(k, o->out[i], i));
    const int64_t scratch = sn_rnn_scratch(k, o->attrs, o->in[1]->dims[0], o->dropped);
    l.scratch = place(&l.floats, rows * scratch);
    return l;
}

/* Without steps nobody needs a stage. */
static sn_parts cut(int64_t B, int64_t T, int n_threads, int64_t floats) {
    return sn_parts_of(T == 0 ? 0 : sn_ceil_div(B, sn_rnn_block_rows(B, n_threads)), n_threads,
                       floats);
}

int64_t sn_rnn_stage_floats(const sn_rnn_operands *o, const sn_rnn_kind *k, int n_threads) {
    const int64_t B = o->in[0]->dims[0];
    const layout l = lay_out(o, k, sn_rnn_block_rows(B, n_threads));
    const sn_parts p = cut(B, o->in[0]->dims[1], n_threads, l.floats);
    return (int64_t)(sn_parts_bytes(&p) / sizeof(float));
}

/* --- in and out ------------------------------------------------------------------------------- */
static void widen(const snug_view *from, int64_t at, int64_t n, float *to) {
    sn_halves_to_f32(from->type.dtype, (const uint16_t *)from->data + at, n, to);
}

static void narrow(const snug_view *to, int64_t at, int64_t n, const float *from) {
    sn_halves_of_f32(to->type.dtype, from, n, (uint16_t *)to->data + at);
}

/* Rows [b0, b1) of an operand, at a time where it has times. */
static int64_t row_at(const snug_type *t, int64_t b, int64_t time) {
    const int64_t n = t->dims[t->rank - 1];
    return t->rank == 3 ? (b * t->dims[1] + time) * n : b * n;
}

/* A state before the step: of the sequence, or the initial one. */
static const snug_view *state_source(const block *k, int state, bool first) {
    const sn_rnn_state *s = &k->j->kind->states[state];
    const sn_call *c = k->j->n->c;
    return first              ? &c->in[s->initial]
           : k->j->kind->back ? &c->in[s->sequence]
                              : &c->out[s->sequence];
}

static void fill(const block *k, const sn_rnn_step *s, int64_t b0, int64_t b1) {
    const sn_call *c = k->j->n->c;
    for (int i = 0; i < c->n_in; i++) {
        const int state = state_of_input(k->j->kind, i);
        const bool now = c->in[i].type.rank == 3;
        if (k->j->l.in[i] < 0 || (!now && state < 0))
            continue;
        const snug_view *from = state < 0 ? &c->in[i] : state_source(k, state, s->earlier < 0);
        const int64_t n = c->in[i].type.dims[c->in[i].type.rank - 1];
        for (int64_t b = b0; b < b1; b++)
            widen(from, row_at(&from->type, b, state < 0 ? s->t : s->earlier), n,
                  (float *)k->in[i].data + (b - b0) * n);
    }
    for (int i = 0; i < k->j->kind->n_last; i++) {
        const snug_view *running = &c->out[k->j->kind->last + i];
        widen(running, b0 * k->n.r.H, (b1 - b0) * k->n.r.H, k->out[k->j->kind->last + i].data);
    }
}

static void drain(const block *k, const sn_rnn_step *s, int64_t b0, int64_t b1) {
    const sn_call *c = k->j->n->c;
    for (int i = 0; i < c->n_out; i++) {
        const snug_type *t = &c->out[i].type;
        const int64_t n = t->dims[t->rank - 1];
        for (int64_t b = b0; k->j->l.out[i] >= 0 && b < b1; b++)
            narrow(&c->out[i], row_at(t, b, s->t), n, (float *)k->out[i].data + (b - b0) * n);
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */
static void visit(void *ctx, const sn_rnn_step *s, int64_t b0, int64_t b1) {
    const block *k = ctx;
    const sn_rnn_kind *kind = k->j->kind;
    sn_rnn_step own = {.n = &k->n, .earlier = -1, .rows = s->rows};
    for (int64_t i = 0; i < s->rows; i++)
        own.b[i] = s->b[i] - b0;
    fill(k, s, b0, b1);
    for (int64_t b = b0; s->rows < b1 - b0 && b < b1; b++)
        if (!sn_rnn_taken(&s->n->r, b, s->t))
            kind->hold(&own, b - b0);
    kind->take(&own);
    drain(k, s, b0, b1);
}

/* What does not change with the steps: biases, and factors of the examples. */
static void fill_once(block *k, int64_t b0, int64_t rows) {
    const sn_call *c = k->j->n->c;
    for (int i = 0; i < c->n_in; i++) {
        const snug_view *v = &c->in[i];
        if (k->j->l.in[i] < 0)
            continue;
        if (v->type.rank == 1) { /* a bias, of f32 as well */
            const sn_stored bias = sn_stored_of(v);
            sn_stored_read(&bias, 0, v->type.dims[0], k->in[i].data);
        }
        if (v == k->j->n->r.drop) {
            widen(v, b0 * v->type.dims[1], rows * v->type.dims[1], k->in[i].data);
            k->n.drop = k->in[i].data;
        }
        if (v == k->j->n->r.dhidden)
            k->n.dhidden = k->in[i].data;
    }
}

static void run_block(const job *j, float *stage, int64_t at) {
    const sn_rnn_net *n = j->n;
    const int64_t b0 = at * n->block_rows;
    block k = {.j = j, .c = *n->c, .n = *n};
    for (int i = 0; i < n->c->n_in; i++)
        k.in[i] = (snug_view){.data = j->l.in[i] < 0 ? NULL : stage + j->l.in[i]};
    for (int i = 0; i < n->c->n_out; i++)
        k.out[i] = (snug_view){.data = j->l.out[i] < 0 ? NULL : stage + j->l.out[i]};
    k.c.in = k.in;
    k.c.out = k.out;
    k.n.c = &k.c;
    k.n.r.B = sn_min_i64(n->r.B - b0, n->block_rows);
    k.n.r.T = 1;
    k.n.scratch = j->l.scratch < 0 ? NULL : stage + j->l.scratch;
    fill_once(&k, b0, k.n.r.B);
    sn_rnn_walk(n, j->kind, at, visit, &k);
}

static void run_parts(const void *ctx, int64_t first, int64_t end) {
    const job *j = ctx;
    for (int64_t part = first; part < end; part++)
        for (int64_t b = sn_part_first(&j->parts, part); b < sn_part_first(&j->parts, part + 1);
             b++)
            run_block(j, sn_part_scratch(&j->parts, j->stages, part), b);
}

void sn_rnn_run_halves(const sn_rnn_net *n, const sn_rnn_kind *k, const sn_rnn_operands *o) {
    const sn_rnn *r = &n->r;
    const layout l = lay_out(o, k, n->block_rows);
    const job j = {n, k, l, cut(r->B, r->T, n->c->n_threads, l.floats), n->scratch};
    sn_parallel(n->c, r->B * r->T * r->G * r->H * 4, j.parts.n_parts, run_parts, &j);
}
