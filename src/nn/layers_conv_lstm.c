/* layers_conv_lstm.c: ConvLSTM over sequences of rows, pictures and volumes. The input is convolved
 * for all steps at once; a step is then a convolution of the hidden state and the gates'
 * arithmetic, as ordinary rows, so a sequence of T steps is T times as many nodes. Gates are i f g
 * o as in an LSTM. Dropout draws one mask per example, for all steps and gates. */
#include "nn/recurrent_layers.h"
#include "nn/activation.h"
#include "nn/spatial.h"

#include <string.h>

/* The settings of all three classes. */
typedef struct {
    sn_spatial_conf window;
    int64_t filters, use_bias, unit_forget_bias;
    const char *activation, *recurrent_activation;
    const sn_init *kernel, *recurrent, *bias;
    double dropout, recurrent_dropout;
    int64_t return_sequences, return_state, go_backwards, zero_output_for_mask, refused;
} settings;

typedef struct {
    sn_layer_call *c;
    const settings *s;
    snug_type x, step; /* [batch, steps, axes..., channels]; a state [batch, axes..., filters] */
    sn_value recurrent_kernel, factors; /* factors of the hidden state, or SN_NO_VALUE */
    sn_value h, cell;                   /* SN_NO_VALUE: zeros */
} net;

static bool open_net(sn_layer_call *c, const settings *s, net *n) {
    *n = (net){.c = c, .s = s, .factors = SN_NO_VALUE, .h = SN_NO_VALUE, .cell = SN_NO_VALUE};
    if (c->b->error.code != SNUG_OK)
        return false;
    n->x = *sn_graph_type(c->b->graph, c->in[0]);
    if (n->x.rank != s->window.n + 3)
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input must be [batch, steps, %d axes, channels]",
                        s->window.n);
    else if (n->x.dims[1] < 1)
        sn_layer_refuse(c, SNUG_E_SHAPE, "the number of steps must be known and at least 1");
    if (s->filters < 1)
        sn_layer_refuse(c, SNUG_E_INVALID, "filters=%lld must be at least 1",
                        (long long)s->filters);
    if (s->refused || (c->n_in != 1 && c->n_in != 3))
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                        "stateful, time_major and states other than h and c are not supported");
    return c->b->error.code == SNUG_OK;
}

/* [kernel axes..., inputs, 4 filters] */
static sn_value kernel_of(net *n, const char *name, int64_t inputs, const sn_init *init) {
    const int axes = n->s->window.n;
    snug_type t = {.rank = axes + 2};
    memcpy(t.dims, n->s->window.kernel, (size_t)axes * sizeof *t.dims);
    t.dims[axes] = inputs;
    t.dims[axes + 1] = 4 * n->s->filters;
    return sn_layer_variable(n->c, name, &t, init, true);
}

/* The input's part of the gates for all steps: [batch, steps, axes..., 4 filters]. */
static sn_value project(net *n) {
    sn_layer_call *const c = n->c;
    const settings *const s = n->s;
    const int rank = n->x.rank;
    const int64_t channels = n->x.dims[rank - 1];
    const snug_type bias_type = {.rank = 1, .dims = {4 * s->filters}};
    const sn_init bias_init =
        s->unit_forget_bias && s->use_bias ? sn_forget_init(c, s->bias, s->filters) : *s->bias;
    const sn_value kernel = kernel_of(n, "conv_lstm_cell/kernel", channels, s->kernel);
    n->recurrent_kernel = kernel_of(n, "conv_lstm_cell/recurrent_kernel", s->filters, s->recurrent);
    const sn_value bias =
        s->use_bias ? sn_layer_variable(c, "conv_lstm_cell/bias", &bias_type, &bias_init, true)
                    : SN_NO_VALUE;
    sn_value x = c->in[0];
    if (sn_drops(c, s->dropout)) {
        snug_type once = n->x;
        once.dims[1] = 1;
        x = sn_build_mul(c->b, x, sn_drop_factors(c, "inputs", &once, s->dropout));
    }
    int64_t dims[SNUG_MAX_RANK] = {-1};
    memcpy(dims + 1, n->x.dims + 2, (size_t)(rank - 2) * sizeof *dims);
    x = sn_build_reshape(c->b, x, dims, rank - 1);
    const sn_value y = sn_spatial_convolve(c, &s->window, x, kernel, bias);
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    n->step = *sn_graph_type(c->b->graph, y);
    memcpy(dims + 2, n->step.dims + 1, (size_t)(rank - 2) * sizeof *dims);
    dims[0] = n->step.dims[0] = n->x.dims[0];
    dims[1] = n->x.dims[1];
    n->step.dims[n->step.rank - 1] = s->filters;
    return sn_build_reshape(c->b, y, dims, rank);
}

/* The state's part: a convolution that keeps the size. */
static sn_value recur(net *n, sn_value z) {
    static const int64_t ones[SN_SPATIAL_AXES] = {1, 1, 1};
    const sn_spatial_conf same = {
        .n = n->s->window.n, .kernel = n->s->window.kernel, .strides = ones, .padding = "same"};
    sn_value h = n->h;
    if (!sn_value_ok(h))
        return z;
    if (sn_value_ok(n->factors))
        h = sn_build_mul(n->c->b, h, n->factors);
    return sn_build_add(n->c->b, z,
                        sn_spatial_convolve(n->c, &same, h, n->recurrent_kernel, SN_NO_VALUE));
}

/* What a masked example keeps of a state: itself, or zeros at the beginning. */
static sn_value keep(net *n, sn_value taken, sn_value next, sn_value before) {
    const sn_value zero = sn_build_scalar(n->c->b, n->step.dtype, 0);
    return sn_value_ok(taken)
               ? sn_build_select(n->c->b, taken, next, sn_value_ok(before) ? before : zero)
               : next;
}

static void take_step(net *n, sn_value z, sn_value taken) {
    sn_builder *const b = n->c->b;
    const char *const act = n->s->activation, *const gate = n->s->recurrent_activation;
    const int64_t F = n->s->filters;
    const sn_value sums = recur(n, z);
    sn_value g[4];
    for (int k = 0; k < 4; k++)
        g[k] = sn_activation(b, k == 2 ? act : gate, sn_build_part(b, sums, -1, k * F, F));
    sn_value cell = sn_build_mul(b, g[0], g[2]);
    if (sn_value_ok(n->cell))
        cell = sn_build_add(b, sn_build_mul(b, g[1], n->cell), cell);
    const sn_value h = sn_build_mul(b, g[3], sn_activation(b, act, cell));
    n->h = keep(n, taken, h, n->h);
    n->cell = keep(n, taken, cell, n->cell);
}

/* bool [batch, 1, ...] of a step, or SN_NO_VALUE without a mask. */
static sn_value taken_at(net *n, int64_t t) {
    const bool unheeded = !n->c->mask_given && sn_call_role(n->c, "initial_state", 0) > 0;
    if (!sn_value_ok(n->c->mask[0]) || unheeded) /* beside states, as in layers_recurrent.c */
        return SN_NO_VALUE;
    sn_value taken = sn_build_part(n->c->b, n->c->mask[0], 1, t, 1);
    for (int k = 2; k < n->step.rank; k++)
        taken = sn_build_expand_dims(n->c->b, taken, k);
    return taken;
}

/* The sequence as Keras gives it: as it was made, or by time where Bidirectional asks for that. */
static sn_value sequence_of(net *n, const sn_steps *steps) {
    sn_layer_call *const c = n->c;
    sn_value y = sn_steps_end(c, steps);
    return n->s->go_backwards && sn_call_flag(c, "by_time", false) ? sn_build_flip(c->b, y, 1u << 1)
                                                                   : y;
}

static void build_conv_lstm(sn_layer_call *c, const settings *s) {
    net n;
    sn_steps steps = {.n = 0};
    if (!open_net(c, s, &n))
        return;
    const sn_value z = project(&n);
    if (sn_drops(c, s->recurrent_dropout))
        n.factors = sn_drop_factors(c, "states", &n.step, s->recurrent_dropout);
    if (c->n_in == 3) {
        n.h = c->in[1];
        n.cell = c->in[2];
    }
    const bool hide = s->zero_output_for_mask || sn_call_flag(c, "zero_output_for_mask", false);
    for (int64_t i = 0; i < n.x.dims[1] && c->b->error.code == SNUG_OK; i++) {
        const int64_t t = s->go_backwards ? n.x.dims[1] - 1 - i : i;
        const sn_value taken = taken_at(&n, t);
        take_step(&n, sn_step_of(c, z, t), taken);
        if (s->return_sequences)
            sn_steps_add(c, &steps, hide ? keep(&n, taken, n.h, SN_NO_VALUE) : n.h);
    }
    c->out = s->return_sequences ? sequence_of(&n, &steps) : n.h;
    c->out_mask = s->return_sequences ? c->mask[0] : SN_NO_VALUE;
    if (s->return_state) {
        c->outs[c->n_out++] = n.h;
        c->outs[c->n_out++] = n.cell;
    }
}

#define CONV_LSTM(snake, axes)                                                                     \
    void sn_layer_build_##snake(sn_layer_call *c) {                                                \
        const sn_conf_##snake *conf = c->conf;                                                     \
        const settings s = {.window = {.n = axes,                                                  \
                                       .kernel = conf->kernel_size,                                \
                                       .strides = conf->strides,                                   \
                                       .dilation = conf->dilation_rate,                            \
                                       .padding = conf->padding.text},                             \
                            .filters = conf->filters,                                              \
                            .use_bias = conf->use_bias,                                            \
                            .unit_forget_bias = conf->unit_forget_bias,                            \
                            .activation = conf->activation.text,                                   \
                            .recurrent_activation = conf->recurrent_activation.text,               \
                            .kernel = &conf->kernel_initializer,                                   \
                            .recurrent = &conf->recurrent_initializer,                             \
                            .bias = &conf->bias_initializer,                                       \
                            .dropout = conf->dropout,                                              \
                            .recurrent_dropout = conf->recurrent_dropout,                          \
                            .return_sequences = conf->return_sequences,                            \
                            .return_state = conf->return_state,                                    \
                            .go_backwards = conf->go_backwards,                                    \
                            .zero_output_for_mask = conf->zero_output_for_mask,                    \
                            .refused = conf->stateful || conf->time_major};                        \
        build_conv_lstm(c, &s);                                                                    \
    }
CONV_LSTM(conv_lstm1d, 1)
CONV_LSTM(conv_lstm2d, 2)
CONV_LSTM(conv_lstm3d, 3)
