/* recurrent_fast.c: the recurrent rows in f32. Examples are cut into blocks of a few rows; a thread
 * takes a block through all its steps, so that nobody waits for anybody between steps. A step is
 * one product of the block's states with the recurrent kernel, packed once per call, that adds
 * straight onto the gates, and then the gates' arithmetic while they are in the cache. Examples
 * that a mask holds are left out of the product's tables of rows.
 *
 * An element's bits come from its own example alone: gemm.h's order of terms depends neither on the
 * rows of a block nor on where it begins, so neither threads nor the batch change them.
 *
 * Gates are packed in groups that see the same states: all of them; in a gru the candidate for
 * itself; with dropout every gate, whose product then runs on states times factors, laid out in the
 * scratch of the block. */
#include "kernels/cpu/recurrent.h"

#include "kernels/cpu/act.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lines.h"

#include <string.h>

enum { MAX_ROWS = SN_RNN_ROWS };

typedef sn_rnn_net net;
typedef sn_rnn_step step;
typedef sn_rnn_group group;

/* --- rows ------------------------------------------------------------------------------------- */
static const float *in_row(const step *s, int i, int64_t at) {
    return (const float *)s->n->c->in[i].data + at;
}

static float *out_row(const step *s, int k, int64_t at) {
    return (float *)s->n->c->out[k].data + at;
}

/* Offset of n H numbers of example b at time t. */
static int64_t at_time(const step *s, int64_t b, int64_t t, int64_t n) {
    return (b * s->n->r.T + t) * n * s->n->r.H;
}

static int64_t gates_at(const step *s, int64_t b) {
    return at_time(s, b, s->t, s->n->r.G);
}

static int64_t units_at(const step *s, int64_t b) {
    return at_time(s, b, s->t, 1);
}

/* States before the step: of the sequence, or the initial ones. */
typedef struct {
    const float *first;
    bool initial;
} states;

static states states_before(const step *s, const snug_view *initial, const snug_view *sequence) {
    const bool first = s->earlier < 0;
    return (states){first ? initial->data : sequence->data, first};
}

static int64_t state_at(const step *s, const states *of, int64_t b) {
    return of->initial ? b * s->n->r.H : at_time(s, b, s->earlier, 1);
}

static void copy_row(float *to, const float *from, int64_t n) {
    if (to != from)
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* --- products --------------------------------------------------------------------------------- */
/* States of a row times up to two vectors, into the scratch. */
static void scale_row(float *to, const float *h, const float *p, const float *q, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        to[k] = h[k];
    for (int64_t k = 0; p && k < n; k++)
        to[k] *= p[k];
    for (int64_t k = 0; q && k < n; k++)
        to[k] *= q[k];
}

/* Adds to (or stores at) `to`, whose rows lie at `at`, what the gates of a group get from states.
 * `reset` (of the gates at gates_at, or NULL) multiplies the states first. */
static void add_product(const step *s, const group *g, const states *h, float *to,
                        const int64_t *at, const float *reset, bool add) {
    const net *n = s->n;
    const int64_t H = n->r.H;
    int64_t row[MAX_ROWS];
    const bool scaled = n->drop || reset;
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t b = s->b[i];
        row[i] = scaled ? b * H : state_at(s, h, b);
        if (scaled)
            scale_row(n->scratch + b * H, h->first + state_at(s, h, b),
                      n->drop ? n->drop + (b * n->r.G + g->first) * H : NULL,
                      reset ? reset + gates_at(s, b) + H : NULL, H);
    }
    const sn_gemm product = {.m = s->rows,
                             .n = g->n * H,
                             .k = H,
                             .a = scaled ? n->scratch : h->first,
                             .a_row = row,
                             .a_col = n->column,
                             .b = g->packed,
                             .c = to,
                             .c_row = at,
                             .add = add};
    SN_CPU(gemm)(&product);
}

/* Into rows of d h (out 1) what a group hands back: with `add`, onto what is there. d holds the
 * gradients of its gates, rows at `at`. */
static void back_product(const step *s, const group *g, const float *d, const int64_t *at,
                         bool add) {
    const net *n = s->n;
    const int64_t H = n->r.H;
    int64_t row[MAX_ROWS];
    for (int64_t i = 0; i < s->rows; i++)
        row[i] = s->b[i] * H;
    const sn_gemm product = {.m = s->rows,
                             .n = H,
                             .k = g->n * H,
                             .a = d,
                             .a_row = at,
                             .a_col = n->column,
                             .b = g->packed,
                             .c = n->drop ? n->scratch : n->c->out[1].data,
                             .c_row = row,
                             .add = add && !n->drop};
    SN_CPU(gemm)(&product);
    for (int64_t i = 0; n->drop && i < s->rows; i++) {
        const float *from = n->scratch + row[i], *f = n->drop + (s->b[i] * n->r.G + g->first) * H;
        float *dh = out_row(s, 1, row[i]);
        for (int64_t k = 0; k < H; k++)
            dh[k] = add ? dh[k] + from[k] * f[k] : from[k] * f[k];
    }
}

/* --- parts of a step ------------------------------------------------------------------------- */
/* The projections become gates in place: copied first where they lie elsewhere. */
static void bring_gates(const step *s, int64_t *at) {
    for (int64_t i = 0; i < s->rows; i++) {
        at[i] = gates_at(s, s->b[i]);
        copy_row(out_row(s, 0, at[i]), in_row(s, 0, at[i]), s->n->r.G * s->n->r.H);
    }
}

static void clear_row(float *to, int64_t n) {
    memset(to, 0, (size_t)n * sizeof *to);
}

/* The gradient of the hidden state behind the step gets the sequence's part. */
static void add_sequence(const step *s, int64_t b) {
    float *dh = out_row(s, 1, b * s->n->r.H);
    const float *d = s->n->dhidden ? s->n->dhidden + units_at(s, b) : NULL;
    for (int64_t k = 0; d && k < s->n->r.H; k++)
        dh[k] += d[k];
}

static void hold_back(const step *s, int64_t b) {
    clear_row(out_row(s, 0, gates_at(s, b)), s->n->r.G * s->n->r.H);
    add_sequence(s, b);
}

/* What is read again of gates and their gradients is what the outputs keep of them. */
static void round_row(const step *s, float *d, int64_t n) {
    enum { STRIP = 256 };
    uint16_t stored[STRIP];
    for (int64_t k = 0; s->n->stored != SNUG_F32 && k < n; k += STRIP) {
        sn_halves_of_f32(s->n->stored, d + k, sn_min_i64(STRIP, n - k), stored);
        sn_halves_to_f32(s->n->stored, stored, sn_min_i64(STRIP, n - k), d + k);
    }
}

static float slope(int64_t act, float y) {
    return SN_ACT_SLOPE(act, y, 1.0f);
}

/* --- lstm ------------------------------------------------------------------------------------- */
enum { GATES, HIDDEN, LAST, CELLS };

static void lstm_gates(const step *s, const float *before, int64_t b) {
    const sn_rnn *r = &s->n->r;
    const int64_t H = r->H;
    float *a = out_row(s, GATES, gates_at(s, b));
    float *h = out_row(s, HIDDEN, units_at(s, b)), *c = out_row(s, CELLS, units_at(s, b));
    sn_act_f32(r->gate_act, a, 2 * H);
    sn_act_f32(r->act, a + 2 * H, H);
    sn_act_f32(r->gate_act, a + 3 * H, H);
    for (int64_t j = 0; j < H; j++) {
        c[j] = a[H + j] * before[j] + a[j] * a[2 * H + j];
        h[j] = c[j];
    }
    sn_act_f32(r->act, h, H);
    for (int64_t j = 0; j < H; j++)
        h[j] *= a[3 * H + j];
}

static void lstm_take(const step *s) {
    const sn_call *call = s->n->c;
    const states h = states_before(s, &call->in[2], &call->out[HIDDEN]);
    const states c = states_before(s, &call->in[3], &call->out[CELLS]);
    int64_t at[MAX_ROWS];
    bring_gates(s, at);
    for (int k = 0; k < s->n->n_groups; k++) {
        const group *g = &s->n->groups[k];
        add_product(s, g, &h, out_row(s, GATES, g->first * s->n->r.H), at, NULL, true);
    }
    for (int64_t i = 0; i < s->rows; i++)
        lstm_gates(s, c.first + state_at(s, &c, s->b[i]), s->b[i]);
}

static void lstm_hold(const step *s, int64_t b) {
    const sn_call *call = s->n->c;
    const states h = states_before(s, &call->in[2], &call->out[HIDDEN]);
    const states c = states_before(s, &call->in[3], &call->out[CELLS]);
    clear_row(out_row(s, GATES, gates_at(s, b)), 4 * s->n->r.H);
    copy_row(out_row(s, HIDDEN, units_at(s, b)), h.first + state_at(s, &h, b), s->n->r.H);
    copy_row(out_row(s, CELLS, units_at(s, b)), c.first + state_at(s, &c, b), s->n->r.H);
}

/* Rows of one example in its gradient. */
typedef struct {
    const float *a, *c, *before; /* gates, cells behind and before the step */
    const float *dh;
    float *dc, *d; /* d may be a */
    int64_t H;
} lstm_rows;

/* The activations are constants where this is called for the usual ones. */
static inline __attribute__((always_inline)) void lstm_back_row(const lstm_rows *p, int64_t act,
                                                                int64_t gate_act) {
    enum { STRIP = 64 };
    const int64_t H = p->H;
    const float *a = p->a, *before = p->before, *dh = p->dh;
    float *d = p->d, *dc = p->dc;
    for (int64_t j0 = 0; j0 < H; j0 += STRIP) {
        const int64_t end = sn_min_i64(H, j0 + STRIP);
        float y[STRIP];
        copy_row(y, p->c + j0, end - j0);
        sn_act_f32(act, y, end - j0);
#pragma omp simd
        for (int64_t j = j0; j < end; j++) {
            const float i = a[j], f = a[H + j], g = a[2 * H + j], o = a[3 * H + j];
            const float out = y[j - j0], h = dh[j];
            const float cell = dc[j] + h * o * slope(act, out);
            d[j] = cell * g * slope(gate_act, i);
            d[H + j] = cell * before[j] * slope(gate_act, f);
            d[2 * H + j] = cell * i * slope(act, g);
            d[3 * H + j] = h * out * slope(gate_act, o);
            dc[j] = cell * f;
        }
    }
}

/* in: gates, U, d last, c0, cells; out: d projections, d h0, d c0 */
static void lstm_back_take(const step *s) {
    const sn_call *call = s->n->c;
    const sn_rnn *r = &s->n->r;
    const states c = states_before(s, &call->in[3], &call->in[4]);
    const bool usual = r->act == SN_ACT_tanh && r->gate_act == SN_ACT_sigmoid;
    int64_t at[MAX_ROWS];
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t b = s->b[i];
        at[i] = gates_at(s, b);
        add_sequence(s, b);
        const lstm_rows p = {.a = in_row(s, 0, at[i]),
                             .c = in_row(s, 4, units_at(s, b)),
                             .before = c.first + state_at(s, &c, b),
                             .dh = out_row(s, 1, b * r->H),
                             .dc = out_row(s, 2, b * r->H),
                             .d = out_row(s, 0, at[i]),
                             .H = r->H};
        if (usual)
            lstm_back_row(&p, SN_ACT_tanh, SN_ACT_sigmoid);
        else
            lstm_back_row(&p, r->act, r->gate_act);
        round_row(s, p.d, 4 * r->H);
    }
    for (int k = 0; k < s->n->n_groups; k++) {
        const group *g = &s->n->groups[k];
        back_product(s, g, out_row(s, 0, g->first * r->H), at, k > 0);
    }
}

/* --- gru -------------------------------------------------------------------------------------- */
static bool resets_after(const step *s) {
    return s->n->c->attrs->gru.reset_after != 0;
}

/* Groups in front of the candidate's, which is the last. */
static int candidate_of(const step *s) {
    return s->n->n_groups - 1;
}

/* Gates z and r of a row, or the recurrent part of the candidate, get their bias. */
static void add_bias(const step *s, float *to, int64_t first, int64_t n) {
    const float *bias = in_row(s, 3, first);
    for (int64_t k = 0; k < n; k++)
        to[k] += bias[k];
}

static void gru_candidate(const step *s, const states *h, const int64_t *at) {
    const group *g = &s->n->groups[candidate_of(s)];
    const int64_t H = s->n->r.H;
    int64_t inner[MAX_ROWS];
    if (!resets_after(s)) {
        add_product(s, g, h, out_row(s, GATES, 2 * H), at, out_row(s, GATES, 0), true);
        return;
    }
    for (int64_t i = 0; i < s->rows; i++)
        inner[i] = units_at(s, s->b[i]);
    add_product(s, g, h, out_row(s, 3, 0), inner, NULL, false);
    for (int64_t i = 0; i < s->rows; i++) {
        float *u = out_row(s, 3, inner[i]), *a = out_row(s, GATES, at[i]);
        add_bias(s, u, 2 * H, H);
        for (int64_t j = 0; j < H; j++)
            a[2 * H + j] += a[H + j] * u[j];
    }
}

static void gru_take(const step *s) {
    const sn_rnn *r = &s->n->r;
    const int64_t H = r->H;
    const states h = states_before(s, &s->n->c->in[2], &s->n->c->out[HIDDEN]);
    int64_t at[MAX_ROWS];
    bring_gates(s, at);
    for (int k = 0; k < candidate_of(s); k++) {
        const group *g = &s->n->groups[k];
        add_product(s, g, &h, out_row(s, GATES, g->first * H), at, NULL, true);
    }
    for (int64_t i = 0; i < s->rows; i++) {
        float *a = out_row(s, GATES, at[i]);
        if (resets_after(s))
            add_bias(s, a, 0, 2 * H);
        sn_act_f32(r->gate_act, a, 2 * H);
        round_row(s, a, 2 * H);
    }
    gru_candidate(s, &h, at);
    for (int64_t i = 0; i < s->rows; i++) {
        float *a = out_row(s, GATES, at[i]), *next = out_row(s, HIDDEN, units_at(s, s->b[i]));
        const float *before = h.first + state_at(s, &h, s->b[i]);
        sn_act_f32(r->act, a + 2 * H, H);
        for (int64_t j = 0; j < H; j++)
            next[j] = a[j] * before[j] + (1.0f - a[j]) * a[2 * H + j];
    }
}

static void gru_hold(const step *s, int64_t b) {
    const states h = states_before(s, &s->n->c->in[2], &s->n->c->out[HIDDEN]);
    clear_row(out_row(s, GATES, gates_at(s, b)), 3 * s->n->r.H);
    if (resets_after(s))
        clear_row(out_row(s, 3, units_at(s, b)), s->n->r.H);
    copy_row(out_row(s, HIDDEN, units_at(s, b)), h.first + state_at(s, &h, b), s->n->r.H);
}

/* Rows of one example in its gradient. */
typedef struct {
    const float *a, *h, *inner; /* gates, state before the step, [inner] */
    float *dh, *d, *dinner;     /* d may be a */
    int64_t H;
} gru_rows;

static gru_rows gru_rows_of(const step *s, const states *h, int64_t b) {
    const bool after = resets_after(s);
    return (gru_rows){.a = in_row(s, 0, gates_at(s, b)),
                      .h = h->first + state_at(s, h, b),
                      .inner = after ? in_row(s, 5, units_at(s, b)) : NULL,
                      .dh = out_row(s, 1, b * s->n->r.H),
                      .d = out_row(s, 0, gates_at(s, b)),
                      .dinner = after ? out_row(s, 2, units_at(s, b)) : NULL,
                      .H = s->n->r.H};
}

/* d z and d n; what the state gets straight through z stays in dh. */
static inline __attribute__((always_inline)) void gru_back_outer(const gru_rows *p, int64_t act,
                                                                 int64_t gate_act) {
    const int64_t H = p->H;
    const float *a = p->a, *h = p->h;
    float *dh = p->dh, *d = p->d;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const float z = a[j], n = a[2 * H + j], g = dh[j];
        d[j] = g * (h[j] - n) * slope(gate_act, z);
        d[2 * H + j] = g * (1.0f - z) * slope(act, n);
        dh[j] = g * z;
    }
}

/* d r where the reset gate works on the product: d inner, too. */
static inline __attribute__((always_inline)) void gru_back_after(const gru_rows *p,
                                                                 int64_t gate_act) {
    const int64_t H = p->H;
    const float *a = p->a, *inner = p->inner;
    float *d = p->d, *dinner = p->dinner;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const float r = a[H + j], dn = d[2 * H + j];
        dinner[j] = dn * r;
        d[H + j] = dn * inner[j] * slope(gate_act, r);
    }
}

/* d r where it works on the states: u, what the candidate hands back, is in the scratch. */
static void gru_back_before(const step *s, const gru_rows *p, const float *u) {
    const int64_t H = p->H, gate_act = s->n->r.gate_act;
    for (int64_t j = 0; j < H; j++) {
        const float r = p->a[H + j];
        p->dh[j] += u[j] * r;
        p->d[H + j] = u[j] * p->h[j] * slope(gate_act, r);
    }
}

/* u of all rows: the product of the candidate's gradients, times the dropout factors. */
static void candidate_back(const step *s, const int64_t *at) {
    const net *n = s->n;
    const int64_t H = n->r.H;
    const group *g = &n->groups[candidate_of(s)];
    int64_t row[MAX_ROWS];
    for (int64_t i = 0; i < s->rows; i++)
        row[i] = s->b[i] * H;
    const sn_gemm product = {.m = s->rows,
                             .n = H,
                             .k = H,
                             .a = out_row(s, 0, 2 * H),
                             .a_row = at,
                             .a_col = n->column,
                             .b = g->packed,
                             .c = n->scratch,
                             .c_row = row};
    SN_CPU(gemm)(&product);
    for (int64_t i = 0; n->drop && i < s->rows; i++) {
        const float *f = n->drop + (s->b[i] * 3 + 2) * H;
        for (int64_t k = 0; k < H; k++)
            n->scratch[row[i] + k] *= f[k];
    }
}

/* in: gates, U, d last, h0, hidden, [inner]; out: d projections, d h0, [d inner] */
static void gru_back_take(const step *s) {
    const sn_rnn *r = &s->n->r;
    const states h = states_before(s, &s->n->c->in[3], &s->n->c->in[4]);
    const bool after = resets_after(s);
    const bool usual = r->act == SN_ACT_tanh && r->gate_act == SN_ACT_sigmoid;
    int64_t at[MAX_ROWS], inner[MAX_ROWS];
    for (int64_t i = 0; i < s->rows; i++) {
        const gru_rows p = gru_rows_of(s, &h, s->b[i]);
        at[i] = gates_at(s, s->b[i]);
        inner[i] = units_at(s, s->b[i]);
        add_sequence(s, s->b[i]);
        if (usual)
            gru_back_outer(&p, SN_ACT_tanh, SN_ACT_sigmoid);
        else
            gru_back_outer(&p, r->act, r->gate_act);
        round_row(s, p.d, r->H);
        round_row(s, p.d + 2 * r->H, r->H);
        round_row(s, p.dh, r->H);
        if (after && usual)
            gru_back_after(&p, SN_ACT_sigmoid);
        else if (after)
            gru_back_after(&p, r->gate_act);
        for (int k = 0; after && k < 2; k++)
            round_row(s, k == 0 ? p.dinner : p.d + r->H, r->H);
    }
    if (!after)
        candidate_back(s, at);
    for (int64_t i = 0; !after && i < s->rows; i++) {
        const gru_rows p = gru_rows_of(s, &h, s->b[i]);
        gru_back_before(s, &p, s->n->scratch + s->b[i] * r->H);
        round_row(s, p.d + r->H, r->H);
        round_row(s, p.dh, r->H);
    }
    for (int k = 0; k < candidate_of(s); k++) {
        const group *g = &s->n->groups[k];
        back_product(s, g, out_row(s, 0, g->first * r->H), at, true);
    }
    if (after)
        back_product(s, &s->n->groups[candidate_of(s)], out_row(s, 2, 0), inner, true);
}

static void gru_hold_back(const step *s, int64_t b) {
    hold_back(s, b);
    if (resets_after(s))
        clear_row(out_row(s, 2, units_at(s, b)), s->n->r.H);
}

/* --- simple_rnn ------------------------------------------------------------------------------- */
static void simple_take(const step *s) {
    const states h = states_before(s, &s->n->c->in[2], &s->n->c->out[0]);
    int64_t at[MAX_ROWS];
    bring_gates(s, at);
    add_product(s, &s->n->groups[0], &h, out_row(s, 0, 0), at, NULL, true);
    for (int64_t i = 0; i < s->rows; i++)
        sn_act_f32(s->n->r.act, out_row(s, 0, at[i]), s->n->r.H);
}

static void simple_hold(const step *s, int64_t b) {
    const states h = states_before(s, &s->n->c->in[2], &s->n->c->out[0]);
    copy_row(out_row(s, 0, gates_at(s, b)), h.first + state_at(s, &h, b), s->n->r.H);
}

/* in: hidden, U, d last; out: d projections, d h0 */
static void simple_back_take(const step *s) {
    const int64_t H = s->n->r.H, act = s->n->r.act;
    int64_t at[MAX_ROWS];
    for (int64_t i = 0; i < s->rows; i++) {
        at[i] = gates_at(s, s->b[i]);
        add_sequence(s, s->b[i]);
        const float *y = in_row(s, 0, at[i]), *dh = out_row(s, 1, s->b[i] * H);
        float *d = out_row(s, 0, at[i]);
        for (int64_t j = 0; j < H; j++)
            d[j] = dh[j] * slope(act, y[j]);
        round_row(s, d, H);
    }
    back_product(s, &s->n->groups[0], out_row(s, 0, 0), at, false);
}

/* --- the rows -------------------------------------------------------------------------------- */
const sn_rnn_kind SN_CPU(rnn_kinds)[SN_N_RNN] = {
    [SN_RNN_lstm] = {.fixed = 4,
                     .take = lstm_take,
                     .hold = lstm_hold,
                     .n_states = 2,
                     .states = {{2, HIDDEN}, {3, CELLS}},
                     .last = LAST},
    [SN_RNN_lstm_grad] = {.fixed = 5,
                          .take = lstm_back_take,
                          .hold = hold_back,
                          .back = true,
                          .n_states = 1,
                          .states = {{3, 4}},
                          .last = 1,
                          .n_last = 2},
    [SN_RNN_gru] = {.fixed = 3,
                    .after = 1,
                    .take = gru_take,
                    .hold = gru_hold,
                    .n_states = 1,
                    .states = {{2, HIDDEN}},
                    .last = LAST,
                    .resets = true},
    [SN_RNN_gru_grad] = {.fixed = 5,
                         .after = 1,
                         .take = gru_back_take,
                         .hold = gru_hold_back,
                         .back = true,
                         .n_states = 1,
                         .states = {{3, 4}},
                         .last = 1,
                         .n_last = 1,
                         .resets = true},
    [SN_RNN_simple_rnn] = {.fixed = 3,
                           .take = simple_take,
                           .hold = simple_hold,
                           .n_states = 1,
                           .states = {{2, 0}},
                           .last = 1},
    [SN_RNN_simple_rnn_grad] = {.fixed = 3,
                                .take = simple_back_take,
                                .hold = hold_back,
                                .back = true,
                                .last = 1,
                                .n_last = 1},
};
