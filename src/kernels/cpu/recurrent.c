/* recurrent.c: the recurrent families: references (arithmetic in double, states rounded where they
 * are stored) and which kernel runs. A gate is a block of H columns, in Keras' order:
 *
 *     lstm   i f g o   c' = f c + i g      h' = o act(c')
 *     gru    z r n     h' = z h + (1 - z) n
 *
 * Gradient rows keep the running gradients of the states in their outputs d h0 and d c0. A step
 * that is masked leaves the states as they are; its gates are zeros, which nobody reads. */
#include "kernels/cpu/recurrent.h"

#include "kernels/cpu/loops.h"
#include "kernels/cpu/real_elements.h"

/* H numbers of an operand. */
typedef struct {
    sn_reals of;
    int64_t at;
} row;

static row row_of(const snug_view *v, int64_t at) {
    return (row){sn_reals_of(v), at};
}
static double get(row r, int64_t i) {
    return sn_real_at(r.of, r.at + i);
}
static void put(row r, int64_t i, double v) {
    sn_real_put(r.of, r.at + i, v);
}

static void copy(row to, row from, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        put(to, i, get(from, i));
}

static void clear(row to, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        put(to, i, 0);
}

/* One step of one example. */
typedef struct {
    const sn_call *c;
    const sn_rnn *r;
    int64_t b, at;   /* at: b T + t */
    int64_t earlier; /* the same of the step before; < 0: this is the first */
} step;

/* A state before the step: of the sequence, or the initial one. */
static row state_before(const step *s, const snug_view *initial, const snug_view *sequence) {
    return s->earlier < 0 ? row_of(initial, s->b * s->r->H)
                          : row_of(sequence, s->earlier * s->r->H);
}

static double factor(const step *s, int64_t gate, int64_t k) {
    const sn_rnn *r = s->r;
    return r->drop ? get(row_of(r->drop, (s->b * r->G + gate) * r->H), k) : 1;
}

static double kernel_at(const step *s, int64_t k, int64_t gate, int64_t j) {
    const sn_rnn *r = s->r;
    return get(row_of(&s->c->in[1], (k * r->G + gate) * r->H), j);
}

/* What column j of a gate gets from the states. */
static double recur(const step *s, row state, int64_t gate, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < s->r->H; k++)
        sum += get(state, k) * factor(s, gate, k) * kernel_at(s, k, gate, j);
    return sum;
}

/* What unit k of the state gets back from a gate. */
static double recur_back(const step *s, row dgate, int64_t gate, int64_t k) {
    double sum = 0;
    for (int64_t j = 0; j < s->r->H; j++)
        sum += get(dgate, j) * kernel_at(s, k, gate, j);
    return sum * factor(s, gate, k);
}

static row gate_of(const step *s, const snug_view *v, int64_t gate) {
    return row_of(v, (s->at * s->r->G + gate) * s->r->H);
}

static double slope(int64_t act, double y) {
    return SN_ACT_SLOPE(act, y, 1.0);
}

/* All steps of all examples, forwards or back. */
static void walk(const sn_call *c, const sn_rnn *r, bool back, void (*visit)(const step *s)) {
    for (int64_t b = 0; b < r->B; b++)
        for (int64_t i = 0; i < r->T; i++) {
            const int64_t n = back ? r->T - 1 - i : i;
            const step s = {c, r, b, b * r->T + sn_rnn_time(r, n),
                            n == 0 ? -1 : b * r->T + sn_rnn_time(r, n - 1)};
            visit(&s);
        }
}

static bool taken(const step *s) {
    return !s->r->mask || s->r->mask[s->at];
}

/* The state behind the last step into `last`, from column `first` of its n states. */
static void put_last(const sn_call *c, const sn_rnn *r, const snug_view *initial,
                     const snug_view *sequence, int out, int64_t first, int64_t n) {
    for (int64_t b = 0; b < r->B; b++) {
        const int64_t at = (b * r->T + sn_rnn_time(r, r->T - 1)) * r->H;
        copy(row_of(&c->out[out], (b * n + first) * r->H),
             r->T == 0 ? row_of(initial, b * r->H) : row_of(sequence, at), r->H);
    }
}

/* d h0 and its like begin as the gradient of the last state. */
static void take_last(const sn_call *c, const sn_rnn *r, int out, int64_t first, int64_t n) {
    for (int64_t b = 0; b < r->B; b++)
        copy(row_of(&c->out[out], b * r->H), row_of(&c->in[2], (b * n + first) * r->H), r->H);
}

/* The gradient of unit j of the hidden state behind the step: from later steps and the sequence. */
static double hidden_gradient(const step *s, row dh, int64_t j) {
    const sn_rnn *r = s->r;
    return get(dh, j) + (r->dhidden ? get(row_of(r->dhidden, s->at * r->H), j) : 0);
}

/* A masked step: no gate gets a gradient, the state hands its own on. */
static void pass_by(const step *s, row dh) {
    clear(gate_of(s, &s->c->out[0], 0), s->r->G * s->r->H);
    for (int64_t j = 0; j < s->r->H; j++)
        put(dh, j, hidden_gradient(s, dh, j));
}

/* --- lstm ------------------------------------------------------------------------------------- */
enum { GATES, HIDDEN, LAST, CELLS };

static void lstm_step(const step *s) {
    const sn_rnn *r = s->r;
    const snug_view *out = s->c->out;
    const row h = state_before(s, &s->c->in[2], &out[HIDDEN]);
    const row c = state_before(s, &s->c->in[3], &out[CELLS]);
    const row next_h = row_of(&out[HIDDEN], s->at * r->H),
              next_c = row_of(&out[CELLS], s->at * r->H);
    if (!taken(s)) {
        clear(gate_of(s, &out[GATES], 0), 4 * r->H);
        copy(next_h, h, r->H);
        copy(next_c, c, r->H);
        return;
    }
    for (int64_t j = 0; j < r->H; j++) {
        double a[4];
        for (int g = 0; g < 4; g++) {
            const double sum = get(gate_of(s, &s->c->in[0], g), j) + recur(s, h, g, j);
            a[g] = sn_real_act(g == 2 ? r->act : r->gate_act, sum);
            put(gate_of(s, &out[GATES], g), j, a[g]);
        }
        const double cell = a[1] * get(c, j) + a[0] * a[2];
        put(next_c, j, cell);
        put(next_h, j, a[3] * sn_real_act(r->act, cell));
    }
}

static snug_status reference_lstm(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_rnn r = sn_rnn_of(c, 4);
    walk(c, &r, false, lstm_step);
    put_last(c, &r, &c->in[2], &c->out[HIDDEN], LAST, 0, 2);
    put_last(c, &r, &c->in[3], &c->out[CELLS], LAST, 1, 2);
    return SNUG_OK;
}

/* in: gates, U, d last, c0, cells; out: d projections, d h0, d c0 */
static void lstm_back(const step *s) {
    const sn_rnn *r = s->r;
    const row dh = row_of(&s->c->out[1], s->b * r->H), dc = row_of(&s->c->out[2], s->b * r->H);
    const row before = state_before(s, &s->c->in[3], &s->c->in[4]);
    if (!taken(s)) {
        pass_by(s, dh);
        return;
    }
    for (int64_t j = 0; j < r->H; j++) {
        double a[4], d[4];
        for (int g = 0; g < 4; g++)
            a[g] = get(gate_of(s, &s->c->in[0], g), j);
        const double y = sn_real_act(r->act, get(row_of(&s->c->in[4], s->at * r->H), j));
        const double h = hidden_gradient(s, dh, j);
        const double cell = get(dc, j) + h * a[3] * slope(r->act, y);
        d[0] = cell * a[2] * slope(r->gate_act, a[0]);
        d[1] = cell * get(before, j) * slope(r->gate_act, a[1]);
        d[2] = cell * a[0] * slope(r->act, a[2]);
        d[3] = h * y * slope(r->gate_act, a[3]);
        put(dc, j, cell * a[1]);
        for (int g = 0; g < 4; g++)
            put(gate_of(s, &s->c->out[0], g), j, d[g]);
    }
    for (int64_t k = 0; k < r->H; k++) {
        double sum = 0;
        for (int g = 0; g < 4; g++)
            sum += recur_back(s, gate_of(s, &s->c->out[0], g), g, k);
        put(dh, k, sum);
    }
}

static snug_status reference_lstm_grad(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_rnn r = sn_rnn_of(c, 5);
    take_last(c, &r, 1, 0, 2);
    take_last(c, &r, 2, 1, 2);
    walk(c, &r, true, lstm_back);
    return SNUG_OK;
}

/* --- gru -------------------------------------------------------------------------------------- */
static bool resets_after(const sn_call *c) {
    return c->attrs->gru.reset_after != 0;
}

/* The candidate of unit j: what its gate gets from the states, before the activation. */
static double candidate_input(const step *s, row h, int64_t j) {
    const sn_rnn *r = s->r;
    const row reset = gate_of(s, &s->c->out[GATES], 1);
    double sum = 0;
    if (resets_after(s->c)) {
        sum = recur(s, h, 2, j) + get(row_of(&s->c->in[3], 2 * r->H), j);
        put(row_of(&s->c->out[3], s->at * r->H), j, sum);
        return get(reset, j) * sum;
    }
    for (int64_t k = 0; k < r->H; k++)
        sum += get(reset, k) * get(h, k) * factor(s, 2, k) * kernel_at(s, k, 2, j);
    return sum;
}

static void gru_step(const step *s) {
    const sn_rnn *r = s->r;
    const snug_view *out = s->c->out;
    const row h = state_before(s, &s->c->in[2], &out[HIDDEN]);
    const row next = row_of(&out[HIDDEN], s->at * r->H);
    if (!taken(s)) {
        clear(gate_of(s, &out[GATES], 0), 3 * r->H);
        if (resets_after(s->c))
            clear(row_of(&out[3], s->at * r->H), r->H);
        copy(next, h, r->H);
        return;
    }
    for (int g = 0; g < 2; g++)
        for (int64_t j = 0; j < r->H; j++) {
            const double bias = resets_after(s->c) ? get(row_of(&s->c->in[3], g * r->H), j) : 0;
            const double sum = get(gate_of(s, &s->c->in[0], g), j) + recur(s, h, g, j) + bias;
            put(gate_of(s, &out[GATES], g), j, sn_real_act(r->gate_act, sum));
        }
    for (int64_t j = 0; j < r->H; j++) {
        const double x = get(gate_of(s, &s->c->in[0], 2), j);
        const double n = sn_real_act(r->act, x + candidate_input(s, h, j));
        const double z = get(gate_of(s, &out[GATES], 0), j);
        put(gate_of(s, &out[GATES], 2), j, n);
        put(next, j, z * get(h, j) + (1 - z) * n);
    }
}

static snug_status reference_gru(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_rnn r = sn_rnn_of(c, resets_after(c) ? 4 : 3);
    walk(c, &r, false, gru_step);
    put_last(c, &r, &c->in[2], &c->out[HIDDEN], LAST, 0, 1);
    return SNUG_OK;
}

/* d z and d n, and what the state gets straight through z. */
static void gru_back_outer(const step *s, row h, row dh) {
    const sn_rnn *r = s->r;
    for (int64_t j = 0; j < r->H; j++) {
        const double z = get(gate_of(s, &s->c->in[0], 0), j);
        const double n = get(gate_of(s, &s->c->in[0], 2), j);
        const double d = hidden_gradient(s, dh, j);
        put(gate_of(s, &s->c->out[0], 0), j, d * (get(h, j) - n) * slope(r->gate_act, z));
        put(gate_of(s, &s->c->out[0], 2), j, d * (1 - z) * slope(r->act, n));
        put(dh, j, d * z);
    }
}

/* d r, through the candidate. */
static void gru_back_reset(const step *s, row h, row dh) {
    const sn_rnn *r = s->r;
    const row dn = gate_of(s, &s->c->out[0], 2);
    for (int64_t k = 0; k < r->H; k++) {
        const double reset = get(gate_of(s, &s->c->in[0], 1), k);
        double d;
        if (resets_after(s->c)) {
            put(row_of(&s->c->out[2], s->at * r->H), k, get(dn, k) * reset);
            d = get(dn, k) * get(row_of(&s->c->in[5], s->at * r->H), k);
        } else {
            const double u = recur_back(s, dn, 2, k);
            put(dh, k, get(dh, k) + u * reset);
            d = u * get(h, k);
        }
        put(gate_of(s, &s->c->out[0], 1), k, d * slope(r->gate_act, reset));
    }
}

/* in: gates, U, d last, h0, hidden, [inner]; out: d projections, d h0, [d inner] */
static void gru_back(const step *s) {
    const sn_rnn *r = s->r;
    const row dh = row_of(&s->c->out[1], s->b * r->H);
    const row h = state_before(s, &s->c->in[3], &s->c->in[4]);
    const bool after = resets_after(s->c);
    if (!taken(s)) {
        pass_by(s, dh);
        if (after)
            clear(row_of(&s->c->out[2], s->at * r->H), r->H);
        return;
    }
    gru_back_outer(s, h, dh);
    gru_back_reset(s, h, dh);
    for (int64_t k = 0; k < r->H; k++) {
        double sum = get(dh, k);
        for (int g = 0; g < 2; g++)
            sum += recur_back(s, gate_of(s, &s->c->out[0], g), g, k);
        if (after)
            sum += recur_back(s, row_of(&s->c->out[2], s->at * r->H), 2, k);
        put(dh, k, sum);
    }
}

static snug_status reference_gru_grad(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_rnn r = sn_rnn_of(c, resets_after(c) ? 6 : 5);
    take_last(c, &r, 1, 0, 1);
    walk(c, &r, true, gru_back);
    return SNUG_OK;
}

/* --- simple_rnn ------------------------------------------------------------------------------- */
static void simple_step(const step *s) {
    const sn_rnn *r = s->r;
    const row h = state_before(s, &s->c->in[2], &s->c->out[0]);
    const row next = row_of(&s->c->out[0], s->at * r->H);
    if (!taken(s)) {
        copy(next, h, r->H);
        return;
    }
    for (int64_t j = 0; j < r->H; j++) {
        const double sum = get(gate_of(s, &s->c->in[0], 0), j) + recur(s, h, 0, j);
        put(next, j, sn_real_act(r->act, sum));
    }
}

static snug_status reference_simple_rnn(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_rnn r = sn_rnn_of(c, 3);
    walk(c, &r, false, simple_step);
    put_last(c, &r, &c->in[2], &c->out[0], 1, 0, 1);
    return SNUG_OK;
}

/* in: hidden, U, d last; out: d projections, d h0 */
static void simple_back(const step *s) {
    const sn_rnn *r = s->r;
    const row dh = row_of(&s->c->out[1], s->b * r->H);
    const row d = gate_of(s, &s->c->out[0], 0);
    if (!taken(s)) {
        pass_by(s, dh);
        return;
    }
    for (int64_t j = 0; j < r->H; j++) {
        const double y = get(gate_of(s, &s->c->in[0], 0), j);
        put(d, j, hidden_gradient(s, dh, j) * slope(r->act, y));
    }
    for (int64_t k = 0; k < r->H; k++)
        put(dh, k, recur_back(s, d, 0, k));
}

static snug_status reference_simple_rnn_grad(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_rnn r = sn_rnn_of(c, 3);
    take_last(c, &r, 1, 0, 1);
    walk(c, &r, true, simple_back);
    return SNUG_OK;
}

/* --- which kernel runs ------------------------------------------------------------------------ */
/* Each thread's step reads the whole recurrent kernel, for however few rows; the one with the most
 * rows is waited for. */
static double efficiency(int64_t batch, int n_threads) {
    const double rows = (double)sn_ceil_div(batch, n_threads);
    return batch > 0 ? (double)batch / ((rows + 0.7) * n_threads) : 1;
}

#define RECURRENT(name)                                                                            \
    static snug_status run_##name(const sn_call *c, snug_error *err) {                             \
        if (c->in[0].type.dtype == SNUG_F64)                                                       \
            return reference_##name(c, err);                                                       \
        sn_rnn_run(c, SN_RNN_##name);                                                              \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    static snug_status describe_##name(const sn_opdesc *d, int n_threads, sn_variant *out,         \
                                       snug_error *err) {                                          \
        (void)err;                                                                                 \
        if (d->in[0].dtype != SNUG_F64)                                                            \
            out->workspace_bytes = sn_rnn_workspace(d, SN_RNN_##name, n_threads);                  \
        out->efficiency *= efficiency(d->in[0].dims[0], n_threads);                                \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    SN_CPU_FAMILY(name, .reference = reference_##name, .run = run_##name,                          \
                  .takes_stored = SN_HALF_DTYPES, .describe = describe_##name)
SN_RNN_KINDS(RECURRENT)
