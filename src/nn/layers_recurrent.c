/* layers_recurrent.c: LSTM, GRU, SimpleRNN and RNN over cells. The input is projected for all steps
 * at once; what depends on the step before is one operator per cell (op/shape_recurrent.c). Cells
 * of a stack run one after the other, each over the whole sequence: that gives what Keras' order
 * (all cells of a step, then the next step) gives.
 *
 * A cell is a layer of its own inside RNN, and part of LSTM, GRU and SimpleRNN: `cell` is what both
 * have. Variables are Keras': "lstm/lstm_cell/kernel".
 *
 * Dropout of inputs and of states draws one mask per example and keeps it for all steps, as Keras;
 * the gates of a cell have masks of their own for the states and share the inputs'. */
#include "nn/recurrent_layers.h"
#include "base/setting_text.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *prefix; /* of its variables: "lstm_cell/", "" in a cell that is a layer */
    int64_t units, use_bias, unit_forget_bias, reset_after;
    const char *activation, *recurrent_activation;
    const sn_init *kernel, *recurrent, *bias;
    double dropout, recurrent_dropout;
} cell;

/* What a cell runs on and what it makes. */
typedef struct {
    snug_type type; /* of x: [batch, steps, features] */
    sn_value x, mask;
    bool reverse, stateful;
    sn_value first[SN_MAX_TENSOR]; /* initial states; SN_NO_VALUE: zeros */
    int n_given, n_states;         /* initial states that were given; that the cells have */
    sn_value sequence, final;      /* hidden states by time, and behind the last step */
    sn_value last[SN_MAX_TENSOR];
    uint32_t homes[2]; /* of the states of the cell that runs, where it is stateful */
} run;

#define CELL_OF(conf, at)                                                                          \
    {                                                                                              \
        .prefix = at, .units = conf->units, .use_bias = conf->use_bias,                            \
        .activation = conf->activation.text, .kernel = &conf->kernel_initializer,                  \
        .recurrent = &conf->recurrent_initializer, .bias = &conf->bias_initializer,                \
        .dropout = conf->dropout, .recurrent_dropout = conf->recurrent_dropout                     \
    }

/* --- parts of a cell -------------------------------------------------------------------------- */
static int64_t activation_of(sn_layer_call *c, const char *name) {
    static const struct {
        const char *name;
        sn_act act;
    } known[] = {{"linear", SN_ACT_none},
                 {"relu", SN_ACT_relu},
                 {"tanh", SN_ACT_tanh},
                 {"sigmoid", SN_ACT_sigmoid},
                 {"hard_sigmoid", SN_ACT_hard_sigmoid}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sn_same_name(name, known[i].name))
            return known[i].act;
    sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                    "activation '%s' is not known to recurrent layers; there are linear, relu, "
                    "tanh, sigmoid and hard_sigmoid",
                    name);
    return SN_ACT_none;
}

static sn_value variable(sn_layer_call *c, const cell *k, const char *name, const snug_type *type,
                         const sn_init *init) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", k->prefix, name);
    return sn_layer_variable(c, full, type, init, true);
}

/* x W + b for all steps: [batch, steps, n]. */
static sn_value project(sn_layer_call *c, const cell *k, const run *r, sn_value kernel,
                        sn_value bias) {
    const int64_t features = r->type.dims[2];
    const int64_t flat[2] = {-1, features};
    sn_value x = r->x;
    if (sn_drops(c, k->dropout)) {
        const snug_type once = {
            .dtype = r->type.dtype, .rank = 3, .dims = {r->type.dims[0], 1, features}};
        x = sn_build_mul(c->b, x, sn_drop_factors(c, "inputs", &once, k->dropout));
    }
    x = sn_build_matmul(c->b, sn_build_reshape(c->b, x, flat, 2), kernel, bias);
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int64_t n = sn_graph_type(c->b->graph, x)->dims[1];
    const int64_t dims[3] = {r->type.dims[0], r->type.dims[1], n};
    return sn_build_reshape(c->b, x, dims, 3);
}

/* What was given, or what is kept from the step before, or zeros. A batch that is not known yet
 * keeps nothing. */
static sn_value initial_state(sn_layer_call *c, run *r, int i, int64_t units) {
    const snug_type t = {.dtype = r->type.dtype, .rank = 2, .dims = {r->type.dims[0], units}};
    char name[24];
    sn_value kept = SN_NO_VALUE;
    snprintf(name, sizeof name, "rnn_state_%d", i);
    if (r->stateful && t.dims[0] >= 0)
        kept = sn_layer_kept(c, name, &t, &r->homes[i]);
    if (sn_value_ok(r->first[i]))
        return r->first[i];
    return sn_value_ok(kept) ? kept : sn_build_fill(c->b, &t, 0);
}

static void keep_states(sn_layer_call *c, const run *r) {
    for (int i = 0; i < r->n_states && r->stateful && r->type.dims[0] >= 0; i++)
        sn_layer_keep(c, r->homes[i], r->last[i]);
}

/* Runs the row on n inputs and those that may be left out. */
static void run_row(sn_layer_call *c, const cell *k, const run *r, sn_op op, sn_value *in, int n,
                    int64_t gates, sn_value *outs) {
    sn_attrs a;
    sn_attrs_default(op, &a);
    a.rnn.act = activation_of(c, k->activation);
    a.rnn.gate_act = gates > 1 ? activation_of(c, k->recurrent_activation) : SN_ACT_none;
    a.rnn.reverse = r->reverse;
    if (op == SN_OP_gru)
        a.gru.reset_after = k->reset_after != 0;
    if (sn_value_ok(r->mask))
        in[n++] = r->mask;
    if (sn_drops(c, k->recurrent_dropout)) {
        const snug_type t = {
            .dtype = r->type.dtype, .rank = 2, .dims = {r->type.dims[0], gates * k->units}};
        in[n++] = sn_drop_factors(c, "states", &t, k->recurrent_dropout);
    }
    sn_build_all(c->b, op, &a, in, n, outs);
}

typedef struct {
    sn_value kernel, recurrent, bias; /* bias: SN_NO_VALUE without one */
} weights;

static bool check_units(sn_layer_call *c, const cell *k) {
    if (k->units < 1)
        sn_layer_refuse(c, SNUG_E_INVALID, "units=%lld must be at least 1", (long long)k->units);
    return c->b->error.code == SNUG_OK;
}

static weights weights_of(sn_layer_call *c, const cell *k, const run *r, int64_t gates,
                          const snug_type *bias_type) {
    const snug_type kernel = {.rank = 2, .dims = {r->type.dims[2], gates * k->units}};
    const snug_type recurrent = {.rank = 2, .dims = {k->units, gates * k->units}};
    weights w = {.bias = SN_NO_VALUE};
    w.kernel = variable(c, k, "kernel", &kernel, k->kernel);
    w.recurrent = variable(c, k, "recurrent_kernel", &recurrent, k->recurrent);
    if (k->use_bias)
        w.bias = variable(c, k, "bias", bias_type, k->bias);
    return w;
}

/* --- cells ------------------------------------------------------------------------------------ */
static void run_lstm(sn_layer_call *c, cell k, run *r) {
    if (!check_units(c, &k))
        return;
    const sn_init forget =
        k.unit_forget_bias && k.use_bias ? sn_forget_init(c, k.bias, k.units) : *k.bias;
    const snug_type bias = {.rank = 1, .dims = {4 * k.units}};
    k.bias = &forget;
    const weights w = weights_of(c, &k, r, 4, &bias);
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_value in[SN_MAX_IN] = {project(c, &k, r, w.kernel, w.bias), w.recurrent,
                              initial_state(c, r, 0, k.units), initial_state(c, r, 1, k.units)};
    run_row(c, &k, r, SN_OP_lstm, in, 4, 4, outs);
    r->sequence = outs[1];
    r->n_states = 2;
    for (int i = 0; i < 2; i++)
        r->last[i] = sn_build_part(c->b, outs[2], 1, i * k.units, k.units);
    r->final = r->last[0];
    keep_states(c, r);
}

/* The input's and the recurrent bias [3H] of [2,3H]. */
static void split_bias(sn_layer_call *c, int64_t n, sn_value *bias, sn_value *recurrent) {
    const sn_value both = *bias;
    const snug_type none = {.dtype = c->policy.compute, .rank = 1, .dims = {n}};
    if (!sn_value_ok(both)) {
        *recurrent = sn_build_fill(c->b, &none, 0);
        return;
    }
    *bias = sn_build_squeeze(c->b, sn_build_part(c->b, both, 0, 0, 1), 0);
    *recurrent = sn_build_squeeze(c->b, sn_build_part(c->b, both, 0, 1, 1), 0);
}

static void run_gru(sn_layer_call *c, cell k, run *r) {
    if (!check_units(c, &k))
        return;
    const int64_t n = 3 * k.units;
    const snug_type one = {.rank = 1, .dims = {n}}, two = {.rank = 2, .dims = {2, n}};
    weights w = weights_of(c, &k, r, 3, k.reset_after ? &two : &one);
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_value recurrent_bias = SN_NO_VALUE;
    if (k.reset_after)
        split_bias(c, n, &w.bias, &recurrent_bias);
    sn_value in[SN_MAX_IN] = {project(c, &k, r, w.kernel, w.bias), w.recurrent,
                              initial_state(c, r, 0, k.units), recurrent_bias};
    run_row(c, &k, r, SN_OP_gru, in, k.reset_after ? 4 : 3, 3, outs);
    r->sequence = outs[1];
    r->n_states = 1;
    r->final = r->last[0] = outs[2];
    keep_states(c, r);
}

static void run_simple(sn_layer_call *c, cell k, run *r) {
    if (!check_units(c, &k))
        return;
    const snug_type bias = {.rank = 1, .dims = {k.units}};
    const weights w = weights_of(c, &k, r, 1, &bias);
    sn_value outs[SN_MAX_OUT] = {SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE, SN_NO_VALUE};
    sn_value in[SN_MAX_IN] = {project(c, &k, r, w.kernel, w.bias), w.recurrent,
                              initial_state(c, r, 0, k.units)};
    run_row(c, &k, r, SN_OP_simple_rnn, in, 3, 1, outs);
    r->sequence = outs[0];
    r->n_states = 1;
    r->final = r->last[0] = outs[1];
    keep_states(c, r);
}

/* --- cells that are layers -------------------------------------------------------------------- */
static void run_lstm_cell(sn_layer_call *c, run *r) {
    const sn_conf_lstm_cell *conf = c->conf;
    cell k = CELL_OF(conf, "");
    k.recurrent_activation = conf->recurrent_activation.text;
    k.unit_forget_bias = conf->unit_forget_bias;
    run_lstm(c, k, r);
}

static void run_gru_cell(sn_layer_call *c, run *r) {
    const sn_conf_gru_cell *conf = c->conf;
    cell k = CELL_OF(conf, "");
    k.recurrent_activation = conf->recurrent_activation.text;
    k.reset_after = conf->reset_after;
    run_gru(c, k, r);
}

static void run_simple_cell(sn_layer_call *c, run *r) {
    const sn_conf_simple_rnn_cell *conf = c->conf;
    const cell k = CELL_OF(conf, "");
    run_simple(c, k, r);
}

static void run_inner(sn_layer_call *c, sn_layer *inner, run *r);

static void run_stack(sn_layer_call *c, run *r) {
    const sn_conf_stacked_rnn_cells *conf = c->conf;
    sn_value last[SN_MAX_TENSOR];
    int n = 0;
    if (conf->cells.n < 1)
        sn_layer_refuse(c, SNUG_E_INVALID, "there are no cells");
    for (int64_t i = 0; i < conf->cells.n && c->b->error.code == SNUG_OK; i++) {
        run one = *r;
        memcpy(one.first, r->first + n, (size_t)(SN_MAX_TENSOR - n) * sizeof *one.first);
        run_inner(c, conf->cells.at[i], &one);
        if (c->b->error.code != SNUG_OK)
            return;
        r->x = r->sequence = one.sequence;
        r->final = one.final;
        r->type = *sn_graph_type(c->b->graph, r->x);
        for (int k = 0; k < one.n_states && n < SN_MAX_TENSOR - 2; k++)
            last[n++] = one.last[k];
    }
    memcpy(r->last, last, (size_t)n * sizeof *last);
    r->n_states = n;
}

static const struct {
    sn_layer_kind kind;
    void (*run)(sn_layer_call *c, run *r);
} cells[] = {{SN_LAYER_LSTMCell, run_lstm_cell},
             {SN_LAYER_GRUCell, run_gru_cell},
             {SN_LAYER_SimpleRNNCell, run_simple_cell},
             {SN_LAYER_StackedRNNCells, run_stack}};

static void run_inner(sn_layer_call *c, sn_layer *inner, run *r) {
    sn_layer_call within = sn_layer_enter(c, inner, NULL);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (sn_class_is(inner->cls, cells[i].kind)) {
            cells[i].run(&within, r);
            return;
        }
    sn_layer_refuse(&within, SNUG_E_UNSUPPORTED,
                    "is no cell; there are LSTMCell, GRUCell, SimpleRNNCell and StackedRNNCells");
}

#define LONELY(snake)                                                                              \
    void sn_layer_build_##snake(sn_layer_call *c) {                                                \
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "a cell runs inside an RNN layer, not by itself");  \
    }
LONELY(lstm_cell)
LONELY(gru_cell)
LONELY(simple_rnn_cell)
LONELY(stacked_rnn_cells)

/* --- layers over the steps -------------------------------------------------------------------- */
/* What all of them have. */
typedef struct {
    int64_t return_sequences, return_state, go_backwards, zero_output_for_mask;
    int64_t stateful, time_major;
} over_steps;

/* Reads the call; false after an error. Initial states come by keyword or, as tf.keras 2 writes
 * them, behind the sequence; a mask by keyword, or it is the sequence's: in Keras 3 not beside
 * states by keyword. */
static bool open_run(sn_layer_call *c, const over_steps *o, run *r) {
    int n = 0;
    *r = (run){.x = c->in[0],
               .mask = c->mask[0],
               .reverse = o->go_backwards != 0,
               .stateful = o->stateful != 0};
    for (int i = 0; i < SN_MAX_TENSOR; i++)
        r->first[i] = SN_NO_VALUE;
    for (int i = 1; i < c->n_in; i++)
        if (!c->role[i] || strcmp(c->role[i], "initial_state") == 0)
            r->first[n++] = c->in[i];
        else
            sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "a tensor given as %s is not supported",
                            c->role[i]);
    r->n_given = n;
    if (!c->mask_given && sn_call_role(c, "initial_state", 0) > 0)
        r->mask = SN_NO_VALUE;
    if (c->b->error.code == SNUG_OK)
        r->type = *sn_graph_type(c->b->graph, r->x);
    if (o->time_major)
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "time_major is not supported; put the batch first");
    if (r->type.rank != 3)
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input must be [batch, steps, features]");
    return c->b->error.code == SNUG_OK;
}

/* Keras' output of a step before the first that counts is zero, though the state is not. */
static sn_value hide_unseen(sn_layer_call *c, const run *r, sn_value y, bool sequences) {
    sn_attrs a;
    sn_attrs_default(SN_OP_cumsum, &a);
    a.scan.axis = 1;
    a.scan.reverse = r->reverse;
    const sn_value counts = sn_build_cast(c->b, r->mask, SNUG_I32);
    const sn_value zero = sn_build_scalar(c->b, SNUG_I32, 0);
    const sn_value seen = sequences ? sn_build(c->b, SN_OP_cumsum, &a, &counts, 1)
                                    : sn_build_sum(c->b, counts, 1u << 1, true);
    sn_value is_seen = sn_build_greater(c->b, seen, zero);
    if (sequences)
        is_seen = sn_build_expand_dims(c->b, is_seen, 2);
    return sn_build_select(c->b, is_seen, y, sn_build_scalar(c->b, r->type.dtype, 0));
}

static void finish(sn_layer_call *c, const over_steps *o, const run *r) {
    if (c->b->error.code != SNUG_OK)
        return;
    if (r->n_given > 0 && r->n_given != r->n_states)
        return sn_layer_refuse(c, SNUG_E_INVALID, "it has %d states, initial_state gives %d",
                               r->n_states, r->n_given);
    const bool sequences = o->return_sequences != 0, masked = sn_value_ok(r->mask);
    const bool zero = o->zero_output_for_mask || sn_call_flag(c, "zero_output_for_mask", false);
    sn_value y = sequences ? r->sequence : r->final;
    if (masked && sequences && zero)
        y = sn_build_select(c->b, sn_build_expand_dims(c->b, r->mask, 2), y,
                            sn_build_scalar(c->b, r->type.dtype, 0));
    else if (masked && (r->stateful || sn_value_ok(r->first[0])))
        y = hide_unseen(c, r, y, sequences);
    if (sequences && r->reverse && !sn_call_flag(c, "by_time", false))
        y = sn_build_flip(c->b, y, 1u << 1);
    c->out = y;
    c->out_mask = sequences ? (masked ? r->mask : c->mask[0]) : SN_NO_VALUE;
    for (int i = 0; i < r->n_states && o->return_state; i++)
        c->outs[c->n_out++] = r->last[i];
}

#define OVER_STEPS_OF(conf)                                                                        \
    {                                                                                              \
        .return_sequences = conf->return_sequences, .return_state = conf->return_state,            \
        .go_backwards = conf->go_backwards, .zero_output_for_mask = conf->zero_output_for_mask,    \
        .stateful = conf->stateful, .time_major = conf->time_major                                 \
    }

void sn_layer_build_lstm(sn_layer_call *c) {
    const sn_conf_lstm *conf = c->conf;
    const over_steps o = OVER_STEPS_OF(conf);
    cell k = CELL_OF(conf, "lstm_cell/");
    run r;
    k.recurrent_activation = conf->recurrent_activation.text;
    k.unit_forget_bias = conf->unit_forget_bias;
    if (!open_run(c, &o, &r))
        return;
    run_lstm(c, k, &r);
    finish(c, &o, &r);
}

void sn_layer_build_gru(sn_layer_call *c) {
    const sn_conf_gru *conf = c->conf;
    const over_steps o = OVER_STEPS_OF(conf);
    cell k = CELL_OF(conf, "gru_cell/");
    run r;
    k.recurrent_activation = conf->recurrent_activation.text;
    k.reset_after = conf->reset_after;
    if (!open_run(c, &o, &r))
        return;
    run_gru(c, k, &r);
    finish(c, &o, &r);
}

void sn_layer_build_simple_rnn(sn_layer_call *c) {
    const sn_conf_simple_rnn *conf = c->conf;
    const over_steps o = OVER_STEPS_OF(conf);
    const cell k = CELL_OF(conf, "simple_rnn_cell/");
    run r;
    if (!open_run(c, &o, &r))
        return;
    run_simple(c, k, &r);
    finish(c, &o, &r);
}

void sn_layer_build_rnn(sn_layer_call *c) {
    const sn_conf_rnn *conf = c->conf;
    const over_steps o = OVER_STEPS_OF(conf);
    run r;
    if (!conf->cell)
        sn_layer_refuse(c, SNUG_E_INVALID, "there is no cell");
    if (!open_run(c, &o, &r))
        return;
    run_inner(c, conf->cell, &r);
    finish(c, &o, &r);
}
