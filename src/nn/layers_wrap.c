/* layers_wrap.c: layers around layers that work on sequences, and the layer that makes masks of
 * values: Bidirectional, TimeDistributed, Masking. */
#include "nn/recurrent_layers.h"
#include "nn/keras_number.h"
#include "base/setting_text.h"

#include <stdio.h>
#include <string.h>

/* --- Bidirectional ---------------------------------------------------------------------------- */
static snug_status copy_layer(sn_network *n, const sn_layer *from, const char *name, sn_layer **out,
                              snug_error *err);

/* A sn_conf_fill: the configuration of another layer; layers inside are made anew, for they have
 * variables. */
static snug_status copy_conf(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                             snug_error *err) {
    const sn_layer *const from = ctx;
    memcpy(conf, from->conf, cls->conf_bytes);
    for (int i = 0; i < cls->n_fields; i++) {
        const sn_conf_field *f = &cls->fields()[i];
        void *const at = (char *)conf + f->offset;
        sn_layer_list *const list = at;
        sn_layer **const one = at;
        if (f->kind == SN_CONF_LAYER && *one)
            SNUG_TRY(copy_layer(n, *one, (*one)->name, one, err));
        for (int64_t k = 0; f->kind == SN_CONF_LAYERS && k < list->n; k++)
            SNUG_TRY(copy_layer(n, list->at[k], list->at[k]->name, &list->at[k], err));
    }
    return SNUG_OK;
}

static snug_status copy_layer(sn_network *n, const sn_layer *from, const char *name, sn_layer **out,
                              snug_error *err) {
    const sn_layer_spec spec = {
        .class_name = from->cls->class_name, .name = name, .fill = copy_conf, .ctx = (void *)from};
    return sn_layer_make(n, &spec, out, err);
}

/* "forward_lstm" of "lstm" or of itself. */
static void side_name(const char *side, const char *name, char *out, size_t size) {
    const size_t n = strlen(side);
    snprintf(out, size, "%s%s", side, strncmp(name, side, n) == 0 ? name + n : name);
}

static int64_t flag_of(const sn_layer *l, const char *key) {
    const sn_conf_field *f = sn_conf_find(l->cls, key);
    return f ? *(const int64_t *)((const char *)l->conf + f->offset) : -1;
}

/* The second layer where the file has none: the first one, the other way round. */
static void make_backward(sn_layer_call *c, sn_conf_bidirectional *conf) {
    const sn_conf_field *f = sn_conf_find(conf->layer->cls, "go_backwards");
    snug_error *const err = &c->b->error;
    sn_layer *made;
    char name[128];
    side_name("backward_", conf->layer->name, name, sizeof name);
    if (copy_layer(c->network, conf->layer, name, &made, err) != SNUG_OK ||
        sn_conf_set_number(f, made->conf, 0, flag_of(conf->layer, "go_backwards") ? 0 : 1, err) !=
            SNUG_OK)
        return;
    made->policy = conf->layer->policy;
    conf->backward_layer = made;
}

static bool check_sides(sn_layer_call *c, sn_conf_bidirectional *conf) {
    if (!conf->layer || flag_of(conf->layer, "go_backwards") < 0)
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                        "layer must be LSTM, GRU, SimpleRNN, RNN or ConvLSTM");
    else if (!conf->backward_layer)
        make_backward(c, conf);
    if (c->b->error.code != SNUG_OK)
        return false;
    const sn_layer *const one = conf->layer, *const other = conf->backward_layer;
    if (flag_of(one, "go_backwards") == flag_of(other, "go_backwards") ||
        flag_of(one, "return_sequences") != flag_of(other, "return_sequences") ||
        flag_of(one, "return_state") != flag_of(other, "return_state"))
        sn_layer_refuse(c, SNUG_E_INVALID,
                        "the two layers must differ in go_backwards and agree in return_sequences "
                        "and return_state");
    return c->b->error.code == SNUG_OK;
}

/* Of the initial states the first half goes to the forward layer. */
static sn_layer_call run_side(sn_layer_call *c, sn_layer *layer, const char *name, bool second) {
    sn_layer_call inner = sn_layer_enter(c, layer, name);
    const int n_states = c->n_in - 1, first = 1 + (second ? n_states / 2 : 0);
    inner.in[0] = c->in[0];
    inner.mask[0] = c->mask[0];
    inner.mask_given = c->mask_given;
    inner.n_in = 1 + n_states / 2;
    for (int i = 1; i < inner.n_in; i++) {
        inner.in[i] = c->in[first + i - 1];
        inner.role[i] = c->role[first + i - 1];
    }
    inner.call = flag_of(layer, "return_sequences") > 0 ? "by_time=true zero_output_for_mask=true"
                                                        : "by_time=true";
    if (n_states % 2 != 0)
        sn_layer_refuse(c, SNUG_E_INVALID, "%d initial states; they come in two halves", n_states);
    sn_layer_run(&inner);
    return inner;
}

static sn_value merge(sn_layer_call *c, const char *mode, sn_value a, sn_value b) {
    const sn_value in[2] = {sn_build_cast(c->b, a, c->policy.compute),
                            sn_build_cast(c->b, b, c->policy.compute)};
    if (sn_same_name(mode, "concat"))
        return sn_build_concat(c->b, in, 2, -1);
    if (sn_same_name(mode, "mul"))
        return sn_build_mul(c->b, in[0], in[1]);
    if (sn_same_name(mode, "sum"))
        return sn_build_add(c->b, in[0], in[1]);
    if (sn_same_name(mode, "ave"))
        return sn_build_affine(c->b, sn_build_add(c->b, in[0], in[1]), 0.5, 0);
    sn_layer_refuse(c, SNUG_E_INVALID, "merge_mode=%s; it is concat, sum, mul, ave or none", mode);
    return SN_NO_VALUE;
}

static void add_output(sn_layer_call *c, sn_value y) {
    if (c->n_out < SN_MAX_TENSOR)
        c->outs[c->n_out++] = y;
    else
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "it has more than %d outputs; use fewer cells",
                        SN_MAX_TENSOR);
}

void sn_layer_build_bidirectional(sn_layer_call *c) {
    sn_conf_bidirectional *const conf = c->layer->conf;
    if (!check_sides(c, conf))
        return;
    char name[128];
    side_name("forward_", conf->layer->name, name, sizeof name);
    const sn_layer_call one = run_side(c, conf->layer, name, false);
    const sn_layer_call other = run_side(c, conf->backward_layer, NULL, true);
    if (c->b->error.code != SNUG_OK)
        return;
    if (sn_same_name(conf->merge_mode.text, "none")) {
        c->out = one.out;
        add_output(c, other.out);
    } else {
        c->out = merge(c, conf->merge_mode.text, one.out, other.out);
    }
    c->out_mask = one.out_mask;
    for (int i = 1; i < one.n_out; i++)
        add_output(c, one.outs[i]);
    for (int i = 1; i < other.n_out; i++)
        add_output(c, other.outs[i]);
}

/* --- TimeDistributed -------------------------------------------------------------------------- */
/* Steps become examples of one larger batch. */
static sn_value steps_to_batch(sn_layer_call *c, sn_value x) {
    int64_t dims[SNUG_MAX_RANK] = {-1};
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(c->b->graph, x);
    if (t.rank < 3) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input must be [batch, steps, ...]");
        return SN_NO_VALUE;
    }
    memcpy(dims + 1, t.dims + 2, (size_t)(t.rank - 2) * sizeof *dims);
    return sn_build_reshape(c->b, x, dims, t.rank - 1);
}

/* Back again; `like` has the batch and the steps. */
static sn_value batch_to_steps(sn_layer_call *c, sn_value y, sn_value like) {
    int64_t dims[SNUG_MAX_RANK];
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type made = *sn_graph_type(c->b->graph, y);
    if (made.rank == SNUG_MAX_RANK) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "with the steps the result has %d axes; at most %d",
                        made.rank + 1, SNUG_MAX_RANK);
        return SN_NO_VALUE;
    }
    memcpy(dims, sn_graph_type(c->b->graph, like)->dims, 2 * sizeof *dims);
    memcpy(dims + 2, made.dims + 1, (size_t)(made.rank - 1) * sizeof *dims);
    return sn_build_reshape(c->b, y, dims, made.rank + 1);
}

void sn_layer_build_steps_to_batch(sn_layer_call *c) {
    c->out = steps_to_batch(c, c->in[0]);
}

void sn_layer_build_batch_to_steps(sn_layer_call *c) {
    c->out = batch_to_steps(c, c->in[0], c->in[1]);
    c->out_mask = c->mask[1];
}

static void distribute_at_once(sn_layer_call *c, sn_layer *layer) {
    sn_layer_call inner = sn_layer_enter(c, layer, NULL);
    inner.in[inner.n_in++] = steps_to_batch(c, c->in[0]);
    sn_layer_run(&inner);
    c->out = batch_to_steps(c, inner.out, c->in[0]);
}

/* One step after the other: statistics of a batch are each step's own, as in Keras. */
static void distribute_by_steps(sn_layer_call *c, sn_layer *layer, const snug_type *t) {
    sn_steps steps = {.n = 0};
    if (sn_value_ok(c->mask[0]))
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%s inside it cannot train on masked steps",
                        layer->cls->class_name);
    for (int64_t k = 0; k < t->dims[1] && c->b->error.code == SNUG_OK; k++) {
        sn_layer_call inner = sn_layer_enter(c, layer, NULL);
        inner.in[inner.n_in++] = sn_step_of(c, c->in[0], k);
        sn_layer_run(&inner);
        sn_steps_add(c, &steps, inner.out);
    }
    c->out = sn_steps_end(c, &steps);
}

void sn_layer_build_time_distributed(sn_layer_call *c) {
    const sn_conf_time_distributed *conf = c->conf;
    if (!conf->layer)
        sn_layer_refuse(c, SNUG_E_INVALID, "there is no layer");
    if (c->b->error.code != SNUG_OK)
        return;
    const snug_type t = *sn_graph_type(c->b->graph, c->in[0]);
    if (c->training && t.rank > 2 && t.dims[1] > 0 &&
        sn_class_is(conf->layer->cls, SN_LAYER_BatchNormalization))
        distribute_by_steps(c, conf->layer, &t);
    else
        distribute_at_once(c, conf->layer);
}

/* --- Masking ---------------------------------------------------------------------------------- */
/* A step counts where any of its features is not mask_value; the others become zero. */
void sn_layer_build_masking(sn_layer_call *c) {
    const sn_conf_masking *conf = c->conf;
    if (c->b->error.code != SNUG_OK)
        return;
    const snug_type t = *sn_graph_type(c->b->graph, c->in[0]);
    if (t.rank < 3) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input must be [batch, steps, ..., features]");
        return;
    }
    const sn_value value = sn_build_scalar(c->b, t.dtype, sn_keras_number(conf->mask_value));
    const sn_value differs =
        sn_build(c->b, SN_OP_not_equal, NULL, (const sn_value[]){c->in[0], value}, 2);
    const sn_value count =
        sn_build_sum(c->b, sn_build_cast(c->b, differs, SNUG_I32), 1u << (t.rank - 1), true);
    const sn_value counts = sn_build_greater(c->b, count, sn_build_scalar(c->b, SNUG_I32, 0));
    c->out = sn_build_select(c->b, counts, c->in[0], sn_build_scalar(c->b, t.dtype, 0));
    c->out_mask = sn_build_squeeze(c->b, counts, -1);
}
