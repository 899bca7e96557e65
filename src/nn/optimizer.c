/* optimizer.c: Keras' SGD and Adam. Slots are variables of the network behind all weights, named
 * "adam/conv2d/kernel/momentum" and ".../velocity" ("sgd/.../momentum").
 *
 * What changes from step to step is the graph parameter "optimizer/rate": for SGD the learning
 * rate, for Adam the rate with the bias correction of step t in it, rate * sqrt(1 - beta_2^t) / (1
 * - beta_1^t). */
#include "base/real.h"
#include "nn/nn.h"
#include "nn/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const sn_optimizer defaults[] = {
    {.name = "sgd", .learning_rate = 0.01},
    {.name = "adam", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
};
enum { N_OPTIMIZERS = sizeof defaults / sizeof *defaults };

static bool is_adam(const sn_optimizer *o) {
    return strcmp(o->name, "adam") == 0;
}

/* --- settings --------------------------------------------------------------------------------- */
/* Where a number is kept and what it may be: [0, high], or [0, high) when open. */
typedef struct {
    double *at;
    double high;
    bool open;
} setting;

static setting find_setting(sn_optimizer *o, const char *key) {
    if (strcmp(key, "learning_rate") == 0 || strcmp(key, "lr") == 0)
        return (setting){&o->learning_rate, HUGE_VAL, true};
    if (!is_adam(o) && strcmp(key, "momentum") == 0)
        return (setting){&o->momentum, 1, false};
    if (is_adam(o) && strcmp(key, "beta_1") == 0)
        return (setting){&o->beta_1, 1, true};
    if (is_adam(o) && strcmp(key, "beta_2") == 0)
        return (setting){&o->beta_2, 1, true};
    if (is_adam(o) && strcmp(key, "epsilon") == 0)
        return (setting){&o->epsilon, HUGE_VAL, true};
    return (setting){NULL, 0, false};
}

/* Settings of Keras that Snug does not have: fine as long as they are switched off. */
static snug_status check_switched_off(const sn_optimizer *o, const sn_option *option,
                                      snug_error *err) {
    static const char *const known[] = {"weight_decay",
                                        "amsgrad",
                                        "use_ema",
                                        "clipnorm",
                                        "clipvalue",
                                        "global_clipnorm",
                                        "loss_scale_factor",
                                        "gradient_accumulation_steps",
                                        NULL};
    bool on = true;
    double value = 1;
    for (const char *const *k = known; *k; k++) {
        if (strcmp(option->key, *k) != 0)
            continue;
        if (sn_same_name(option->value, "none") || sn_same_name(option->value, "null") ||
            (sn_text_real(option->value, &value) && value == 0) ||
            (sn_text_flag(option->value, &on) && !on))
            return SNUG_OK;
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "optimizer %s: %s=%s is not built yet; leave it out", o->name, option->key,
                       option->value);
    }
    return sn_fail(err, SNUG_E_INVALID,
                   "optimizer %s has no setting '%s'; it has learning_rate, %s", o->name,
                   option->key, is_adam(o) ? "beta_1, beta_2, epsilon" : "momentum, nesterov");
}

static snug_status set_option(sn_optimizer *o, const sn_option *option, snug_error *err) {
    if (!is_adam(o) && strcmp(option->key, "nesterov") == 0)
        return sn_option_flag(option, &o->nesterov, err);
    const setting s = find_setting(o, option->key);
    if (!s.at)
        return check_switched_off(o, option, err);
    double value;
    SNUG_TRY(sn_option_real(option, &value, err));
    if (value < 0 || value > s.high || (s.open && value == s.high))
        return sn_fail(err, SNUG_E_INVALID, "optimizer %s: %s=%s is out of range", o->name,
                       option->key, option->value);
    *s.at = value;
    return SNUG_OK;
}

snug_status sn_optimizer_parse(const char *text, sn_optimizer *out, snug_error *err) {
    char name[48];
    SNUG_TRY(sn_option_name(text, name, sizeof name, err));
    int row = 0;
    while (row < N_OPTIMIZERS && !sn_same_name(name, defaults[row].name))
        row++;
    if (row == N_OPTIMIZERS)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "optimizer '%s' is not known; there are sgd and adam", name);
    sn_optimizer o = defaults[row];
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(&o, &option, err));
    }
    *out = o;
    return SNUG_OK;
}

static void print_changed(char *text, size_t size, const char *key, double value, double usual) {
    const size_t n = strlen(text);
    char number[SN_REAL_TEXT];
    if (value != usual)
        snprintf(text + n, size - n, ",%s=%s", key, sn_real_print(value, 9, number));
}

const char *sn_optimizer_print(const sn_optimizer *o, char *text, size_t size) {
    const sn_optimizer *usual = &defaults[is_adam(o)];
    char number[SN_REAL_TEXT];
    snprintf(text, size, "%s:learning_rate=%s", o->name,
             sn_real_print(o->learning_rate, 9, number));
    print_changed(text, size, "momentum", o->momentum, usual->momentum);
    print_changed(text, size, "nesterov", o->nesterov, usual->nesterov);
    print_changed(text, size, "beta_1", o->beta_1, usual->beta_1);
    print_changed(text, size, "beta_2", o->beta_2, usual->beta_2);
    print_changed(text, size, "epsilon", o->epsilon, usual->epsilon);
    return text;
}

int sn_optimizer_params(const sn_optimizer *o, int64_t step, sn_named_real *out, int max) {
    if (max < 1)
        return 0;
    double rate = o->learning_rate;
    if (is_adam(o))
        rate *= sqrt(1 - pow(sn_keras_number(o->beta_2), (double)step)) /
                (1 - pow(sn_keras_number(o->beta_1), (double)step));
    out[0] = (sn_named_real){"optimizer/rate", rate};
    return 1;
}

/* --- the updates ------------------------------------------------------------------------------ */
/* The slot of a weight, made (as zeros) when it is new; its newest version in this graph. */
static snug_status read_slot(const sn_optimizer *o, sn_network *n, sn_graph *g, uint32_t weight,
                             const char *slot, sn_value *out, snug_error *err) {
    char name[224];
    snprintf(name, sizeof name, "%s/%s/%s", o->name, n->vars[weight].name, slot);
    uint32_t home;
    if (sn_network_find_variable(n, name, &home) && n->vars[home].slot)
        return sn_network_read(n, g, home, out, err);
    const sn_net_var var = {.name = name,
                            .type = n->vars[weight].type,
                            .slot = true,
                            .own_seed = true,
                            .init = {.kind = SN_RECIPE_CONSTANT},
                            .layer = n->vars[weight].layer};
    SNUG_TRY(sn_network_variable(n, &var, &home, err));
    return sn_network_read(n, g, home, out, err);
}

static int64_t slot_number(sn_builder *b, const char *name, double value) {
    return (int64_t)sn_build_param(b, name, value).i;
}

static snug_status update_sgd(const sn_optimizer *o, sn_network *n, sn_graph *g, uint32_t home,
                              sn_value gradient, snug_error *err) {
    sn_builder b = sn_builder_on(g);
    sn_value in[3];
    sn_attrs a;
    const bool plain = o->momentum == 0;
    const sn_op op = plain ? SN_OP_sgd : SN_OP_sgd_momentum;
    sn_attrs_default(op, &a);
    a.sgd.nesterov = !plain && o->nesterov;
    a.sgd.rate = slot_number(&b, "optimizer/rate", o->learning_rate);
    a.sgd.momentum = slot_number(&b, "optimizer/momentum", sn_keras_number(o->momentum));
    SNUG_TRY(sn_network_read(n, g, home, &in[0], err));
    if (!plain)
        SNUG_TRY(read_slot(o, n, g, home, "momentum", &in[1], err));
    in[plain ? 1 : 2] = gradient;
    sn_build(&b, op, &a, in, plain ? 2 : 3);
    return sn_builder_done(&b, err);
}

static snug_status update_adam(const sn_optimizer *o, sn_network *n, sn_graph *g, uint32_t home,
                               sn_value gradient, snug_error *err) {
    sn_builder b = sn_builder_on(g);
    sn_value in[4];
    sn_attrs a;
    sn_attrs_default(SN_OP_adam, &a);
    a.adam.rate = slot_number(&b, "optimizer/rate", o->learning_rate);
    a.adam.one_minus_beta1 = slot_number(&b, "optimizer/one_minus_beta1", 1 - o->beta_1);
    a.adam.one_minus_beta2 = slot_number(&b, "optimizer/one_minus_beta2", 1 - o->beta_2);
    a.adam.epsilon = slot_number(&b, "optimizer/epsilon", o->epsilon);
    SNUG_TRY(sn_network_read(n, g, home, &in[0], err));
    SNUG_TRY(read_slot(o, n, g, home, "momentum", &in[1], err));
    SNUG_TRY(read_slot(o, n, g, home, "velocity", &in[2], err));
    in[3] = gradient;
    sn_build(&b, SN_OP_adam, &a, in, 4);
    return sn_builder_done(&b, err);
}

snug_status sn_optimizer_build(const sn_optimizer *o, sn_network *n, sn_graph *g,
                               const sn_value *grads, int n_grads, snug_error *err) {
    sn_graph_set_part(g, SN_PART_UPDATE);
    int k = 0;
    const uint32_t n_weights = (uint32_t)sn_network_n_weights(n);
    for (uint32_t home = 0; home < n_weights && k < n_grads; home++) {
        if (!sn_network_trains(n, home))
            continue;
        const sn_value gradient = grads[k++];
        if (!sn_value_ok(gradient))
            continue; /* the loss does not depend on it */
        SNUG_TRY(sn_graph_set_owner(g, n->layers[n->vars[home].layer].name, err));
        SNUG_TRY((is_adam(o) ? update_adam : update_sgd)(o, n, g, home, gradient, err));
    }
    return SNUG_OK;
}
