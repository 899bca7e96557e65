/* shape_recurrent.c: shape and axis rules of the recurrent rows. Letters: B examples, T steps, H
 * units, G gates (lstm 4, gru 3, simple_rnn 1). The input of every gate is projected before: input
 * 0 is [B,T,GH], input 1 the recurrent kernel [H,GH].
 *
 * Inputs behind those that a row always has may be left out; they are told apart by their types:
 *
 *     bool[B,T]   mask: an example keeps its state where it is false
 *     f[B,GH]     factors of the previous hidden state on its way into each gate (dropout)
 *     f[B,T,H]    gradient rows only: the gradient of the sequence of hidden states */
#include "op/rules.h"

typedef struct {
    int64_t B, T, H, G;
} extents;

static snug_type of_steps(const sn_opdesc *d, const extents *e, int64_t n) {
    return (snug_type){
        .dtype = d->in[0].dtype, .rank = 3, .dims = {e->B, e->T, e->H < 0 ? -1 : n * e->H}};
}

static snug_type of_examples(const sn_opdesc *d, const extents *e, int64_t n) {
    return (snug_type){
        .dtype = d->in[0].dtype, .rank = 2, .dims = {e->B, e->H < 0 ? -1 : n * e->H}};
}

/* Input i has this type; B and T may be learnt from it. */
static snug_status want(const sn_opdesc *d, int i, snug_type t, extents *e, snug_error *err) {
    if (t.dtype != SNUG_BOOL)
        SNUG_TRY(sn_want_dtype_of(d, i, 0, err));
    SNUG_TRY(sn_want_dims(d, i, &t, err));
    e->B = t.dims[0];
    if (t.rank == 3)
        e->T = t.dims[1];
    return SNUG_OK;
}

/* Inputs 0 (gates or their projections) and 1. */
static snug_status want_gates(const sn_opdesc *d, int64_t gates, extents *e, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 3, 3, err));
    SNUG_TRY(sn_want_dtype_of(d, 1, 0, err));
    SNUG_TRY(sn_want_rank(d, 1, 2, 2, err));
    const int64_t H = d->in[1].dims[0];
    *e = (extents){d->in[0].dims[0], d->in[0].dims[1], H, gates};
    snug_type kernel = {.rank = 2, .dims = {H, H < 0 ? -1 : gates * H}};
    SNUG_TRY(sn_want_dims(d, 1, &kernel, err));
    return want(d, 0, of_steps(d, e, gates), e, err);
}

static snug_status want_extras(const sn_opdesc *d, int first, bool gradient, extents *e,
                               snug_error *err) {
    uint32_t seen = 0;
    for (int i = first; i < d->n_in; i++) {
        const snug_type *t = &d->in[i];
        const int kind = t->dtype == SNUG_BOOL ? 0 : gradient && t->rank == 3 ? 2 : 1;
        const snug_type mask = {.dtype = SNUG_BOOL, .rank = 2, .dims = {e->B, e->T}};
        const snug_type types[3] = {mask, of_examples(d, e, e->G), of_steps(d, e, 1)};
        if (seen >> kind & 1)
            return sn_fail(err, SNUG_E_SHAPE, "%s: input %d is %s; there is one like it before",
                           sn_op_name(d), i, sn_type_text(t).s);
        seen |= 1u << kind;
        SNUG_TRY(want(d, i, types[kind], e, err));
    }
    return SNUG_OK;
}

/* --- lstm ------------------------------------------------------------------------------------- */
/* (projections, U, h0, c0, ...) -> gates, hidden, last [B,2H], cells */
snug_status sn_shape_lstm(sn_opdesc *d, snug_error *err) {
    extents e;
    SNUG_TRY(want_gates(d, 4, &e, err));
    SNUG_TRY(want(d, 2, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want(d, 3, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want_extras(d, 4, false, &e, err));
    d->n_out = 4;
    d->out[0] = of_steps(d, &e, 4);
    d->out[1] = of_steps(d, &e, 1);
    d->out[2] = of_examples(d, &e, 2);
    d->out[3] = of_steps(d, &e, 1);
    return SNUG_OK;
}

/* (gates, U, d last, c0, cells, ...) -> d projections, d h0, d c0 */
snug_status sn_shape_lstm_grad(sn_opdesc *d, snug_error *err) {
    extents e;
    SNUG_TRY(want_gates(d, 4, &e, err));
    SNUG_TRY(want(d, 2, of_examples(d, &e, 2), &e, err));
    SNUG_TRY(want(d, 3, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want(d, 4, of_steps(d, &e, 1), &e, err));
    SNUG_TRY(want_extras(d, 5, true, &e, err));
    d->n_out = 3;
    d->out[0] = of_steps(d, &e, 4);
    d->out[1] = of_examples(d, &e, 1);
    d->out[2] = of_examples(d, &e, 1);
    return SNUG_OK;
}

/* --- gru -------------------------------------------------------------------------------------- */
static snug_status want_reset_after(const sn_opdesc *d, int least, snug_error *err) {
    SNUG_TRY(sn_want_flag(d, "reset_after", d->attrs.gru.reset_after, err));
    if (d->attrs.gru.reset_after && d->n_in <= least)
        return sn_fail(err, SNUG_E_INVALID, "%s: reset_after=1 takes %d inputs or more, not %d",
                       sn_op_name(d), least + 1, d->n_in);
    return SNUG_OK;
}

/* (projections, U, h0, [recurrent bias], ...) -> gates, hidden, last [B,H], [inner]. What stands in
 * brackets is there with reset_after: the bias [3H], and what the kernel and it make of the hidden
 * state for the candidate, before the reset gate. */
snug_status sn_shape_gru(sn_opdesc *d, snug_error *err) {
    extents e;
    SNUG_TRY(want_gates(d, 3, &e, err));
    SNUG_TRY(want_reset_after(d, 3, err));
    SNUG_TRY(want(d, 2, of_examples(d, &e, 1), &e, err));
    const bool after = d->attrs.gru.reset_after != 0;
    snug_type like = of_steps(d, &e, 3);
    if (after)
        SNUG_TRY(sn_want_vectors(d, 3, 1, &like, err));
    SNUG_TRY(want_extras(d, after ? 4 : 3, false, &e, err));
    d->n_out = after ? 4 : 3;
    d->out[0] = of_steps(d, &e, 3);
    d->out[1] = of_steps(d, &e, 1);
    d->out[2] = of_examples(d, &e, 1);
    if (after)
        d->out[3] = of_steps(d, &e, 1);
    return SNUG_OK;
}

/* (gates, U, d last, h0, hidden, [inner], ...) -> d projections, d h0, [d inner] */
snug_status sn_shape_gru_grad(sn_opdesc *d, snug_error *err) {
    extents e;
    SNUG_TRY(want_gates(d, 3, &e, err));
    SNUG_TRY(want_reset_after(d, 5, err));
    SNUG_TRY(want(d, 2, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want(d, 3, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want(d, 4, of_steps(d, &e, 1), &e, err));
    const bool after = d->attrs.gru.reset_after != 0;
    if (after)
        SNUG_TRY(want(d, 5, of_steps(d, &e, 1), &e, err));
    SNUG_TRY(want_extras(d, after ? 6 : 5, true, &e, err));
    d->n_out = after ? 3 : 2;
    d->out[0] = of_steps(d, &e, 3);
    d->out[1] = of_examples(d, &e, 1);
    if (after)
        d->out[2] = of_steps(d, &e, 1);
    return SNUG_OK;
}

/* --- simple_rnn ------------------------------------------------------------------------------- */
/* (projections, U, h0, ...) -> hidden, last [B,H] */
snug_status sn_shape_simple_rnn(sn_opdesc *d, snug_error *err) {
    extents e;
    SNUG_TRY(want_gates(d, 1, &e, err));
    SNUG_TRY(want(d, 2, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want_extras(d, 3, false, &e, err));
    d->n_out = 2;
    d->out[0] = of_steps(d, &e, 1);
    d->out[1] = of_examples(d, &e, 1);
    return SNUG_OK;
}

/* (hidden, U, d last, ...) -> d projections, d h0 */
snug_status sn_shape_simple_rnn_grad(sn_opdesc *d, snug_error *err) {
    extents e;
    SNUG_TRY(want_gates(d, 1, &e, err));
    SNUG_TRY(want(d, 2, of_examples(d, &e, 1), &e, err));
    SNUG_TRY(want_extras(d, 3, true, &e, err));
    d->n_out = 2;
    d->out[0] = of_steps(d, &e, 1);
    d->out[1] = of_examples(d, &e, 1);
    return SNUG_OK;
}

/* --- axes ------------------------------------------------------------------------------------- */
/* Examples do not know of each other; all of them read the kernel and the bias. */
void sn_axes_recurrent(const sn_opdesc *d, sn_ways *ways) {
    sn_way *way = sn_way_add(ways, d->in[0].dims[0]);
    for (int i = 0; i < d->n_in; i++)
        if (i != 1 && d->in[i].rank > 1)
            sn_carry(&way->in[i], 0);
    for (int i = 0; i < d->n_out; i++)
        sn_carry(&way->out[i], 0);
}
