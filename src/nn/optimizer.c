/* optimizer.c: Keras' optimizers, one row each: name and defaults, the settings it takes, and its
 * form: which operator updates a weight, with which slots and numbers. Slots are variables of the
 * network behind all weights, named "adam/conv2d/kernel/momentum" and ".../velocity".
 *
 * What changes from step to step are graph parameters: "optimizer/rate", for most the learning
 * rate, for Adam with the bias correction of step t in it, rate * sqrt(1 - beta_2^t) / (1 -
 * beta_1^t); Nadam has three of its own; "optimizer/learning_rate" is the plain one, for
 * weight_decay.
 *
 * A step clips gradients first (clipnorm, global_clipnorm or clipvalue), then decays weights, then
 * updates them, as Keras does. */
#include "base/real.h"
#include "nn/nn.h"
#include "nn/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* How one weight is updated: op(weight, slots ..., gradient). */
typedef struct {
    sn_op op;
    sn_attrs attrs;
    int n_slots;
    struct {
        const char *name;
        double start;
    } slots[3];
} form;

typedef struct {
    sn_optimizer defaults;
    const char *settings; /* its own; all have the common ones */
    void (*form)(const sn_optimizer *o, sn_builder *b, form *f);
    double (*rate)(const sn_optimizer *o, int64_t step); /* NULL: the learning rate */
} optimizer_row;

#define COMMON "learning_rate weight_decay clipnorm clipvalue global_clipnorm"

/* --- forms ------------------------------------------------------------------------------------ */
static void start_form(form *f, sn_op op) {
    f->op = op;
    f->n_slots = 0;
    sn_attrs_default(op, &f->attrs);
}

static void add_slot(form *f, const char *name, double start) {
    f->slots[f->n_slots].name = name;
    f->slots[f->n_slots++].start = start;
}

/* A graph parameter by name: the word that attributes hold. */
static int64_t number(sn_builder *b, const char *name, double value) {
    return (int64_t)sn_build_param(b, name, value).i;
}

static int64_t rate_of(sn_builder *b, const sn_optimizer *o) {
    return number(b, "optimizer/rate", o->learning_rate);
}

static int64_t epsilon_of(sn_builder *b, const sn_optimizer *o) {
    return number(b, "optimizer/epsilon", o->epsilon);
}

static void sgd_form(const sn_optimizer *o, sn_builder *b, form *f) {
    const bool plain = o->momentum == 0;
    start_form(f, plain ? SN_OP_sgd : SN_OP_sgd_momentum);
    f->attrs.sgd.nesterov = !plain && o->nesterov;
    f->attrs.sgd.rate = rate_of(b, o);
    f->attrs.sgd.momentum = number(b, "optimizer/momentum", sn_keras_number(o->momentum));
    if (!plain)
        add_slot(f, "momentum", 0);
}

static void adam_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, o->amsgrad ? SN_OP_amsgrad : SN_OP_adam);
    f->attrs.adam.rate = rate_of(b, o);
    f->attrs.adam.one_minus_beta1 = number(b, "optimizer/one_minus_beta1", 1 - o->beta_1);
    f->attrs.adam.one_minus_beta2 = number(b, "optimizer/one_minus_beta2", 1 - o->beta_2);
    f->attrs.adam.epsilon = epsilon_of(b, o);
    add_slot(f, "momentum", 0);
    add_slot(f, "velocity", 0);
    if (o->amsgrad)
        add_slot(f, "velocity_hat", 0);
}

static void rmsprop_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_rmsprop);
    f->attrs.rmsprop.centered = o->centered;
    f->attrs.rmsprop.rate = rate_of(b, o);
    f->attrs.rmsprop.rho = number(b, "optimizer/rho", o->rho);
    f->attrs.rmsprop.momentum = number(b, "optimizer/momentum", o->momentum);
    f->attrs.rmsprop.epsilon = epsilon_of(b, o);
    add_slot(f, "velocity", 0);
    if (o->centered)
        add_slot(f, "average_gradient", 0);
    if (o->momentum > 0)
        add_slot(f, "momentum", 0);
}

static void adagrad_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_adagrad);
    f->attrs.adagrad.rate = rate_of(b, o);
    f->attrs.adagrad.epsilon = epsilon_of(b, o);
    add_slot(f, "accumulator", o->initial_accumulator_value);
}

static void adadelta_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_adadelta);
    f->attrs.adadelta.rate = rate_of(b, o);
    f->attrs.adadelta.rho = number(b, "optimizer/rho", o->rho);
    f->attrs.adadelta.epsilon = epsilon_of(b, o);
    add_slot(f, "accumulated_grad", 0);
    add_slot(f, "accumulated_delta_var", 0);
}

static void adamax_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_adamax);
    f->attrs.adamax.rate = rate_of(b, o);
    f->attrs.adamax.one_minus_beta1 = number(b, "optimizer/one_minus_beta1", 1 - o->beta_1);
    f->attrs.adamax.beta2 = number(b, "optimizer/beta2", o->beta_2);
    f->attrs.adamax.epsilon = epsilon_of(b, o);
    add_slot(f, "momentum", 0);
    add_slot(f, "norm", 0);
}

static void nadam_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_nadam);
    f->attrs.nadam.one_minus_beta1 =
        number(b, "optimizer/one_minus_beta1", 1 - sn_keras_number(o->beta_1));
    f->attrs.nadam.one_minus_beta2 =
        number(b, "optimizer/one_minus_beta2", 1 - sn_keras_number(o->beta_2));
    f->attrs.nadam.epsilon = epsilon_of(b, o);
    f->attrs.nadam.mean_rate = number(b, "optimizer/mean_rate", 1);
    f->attrs.nadam.now_rate = number(b, "optimizer/now_rate", 1);
    f->attrs.nadam.square_part = number(b, "optimizer/square_part", 1);
    add_slot(f, "momentum", 0);
    add_slot(f, "velocity", 0);
}

static void lion_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_lion);
    f->attrs.lion.rate = rate_of(b, o);
    f->attrs.lion.beta1 = number(b, "optimizer/beta1", sn_keras_number(o->beta_1));
    f->attrs.lion.beta2 = number(b, "optimizer/beta2", sn_keras_number(o->beta_2));
    add_slot(f, "momentum", 0);
}

/* Keras' l2 with its share of beta: depends on the learning rate. */
static double ftrl_l2(const sn_optimizer *o) {
    return o->l2_regularization_strength + (o->beta > 0 ? o->beta / (2 * o->learning_rate) : 0);
}

static void ftrl_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_ftrl);
    f->attrs.ftrl.rate = rate_of(b, o);
    f->attrs.ftrl.power = number(b, "optimizer/power", o->learning_rate_power);
    f->attrs.ftrl.l1 = number(b, "optimizer/l1", o->l1_regularization_strength);
    f->attrs.ftrl.l2 = number(b, "optimizer/l2", ftrl_l2(o));
    f->attrs.ftrl.shrinkage =
        number(b, "optimizer/shrinkage", o->l2_shrinkage_regularization_strength);
    add_slot(f, "accumulator", o->initial_accumulator_value);
    add_slot(f, "linear", 0);
}

/* --- rates ------------------------------------------------------------------------------------ */
static double adam_rate(const sn_optimizer *o, int64_t step) {
    return o->learning_rate * sqrt(1 - pow(sn_keras_number(o->beta_2), (double)step)) /
           (1 - pow(sn_keras_number(o->beta_1), (double)step));
}

static double adamax_rate(const sn_optimizer *o, int64_t step) {
    return o->learning_rate / (1 - pow(sn_keras_number(o->beta_1), (double)step));
}

/* Nadam's share of the mean in step t: beta_1 * (1 - 0.96^t / 2). */
static double nadam_share(double beta_1, double decay, int64_t step) {
    return beta_1 * (1 - 0.5 * pow(decay, (double)step));
}

/* The product of the shares of steps 1 to t. From step 1000 on a share is beta_1, to the last bit.
 */
static double nadam_product(double beta_1, int64_t step) {
    const int64_t n = step < 1000 ? step : 1000;
    double product = pow(beta_1, (double)(step - n));
    for (int64_t t = 1; t <= n; t++)
        product *= nadam_share(beta_1, 0.96, t);
    return product;
}

/* The numbers of step t that Nadam's operator takes: mean_rate, now_rate, square_part. */
static double nadam_part(const sn_optimizer *o, int64_t step, int part) {
    const double beta_1 = sn_keras_number(o->beta_1), decay = sn_keras_number(0.96);
    const double product = nadam_product(o->beta_1, step);
    const double next = nadam_share(beta_1, decay, step + 1);
    if (part == 0)
        return o->learning_rate * next / (1 - product * next);
    if (part == 1)
        return o->learning_rate * (1 - nadam_share(beta_1, decay, step)) / (1 - product);
    return 1 / (1 - pow(sn_keras_number(o->beta_2), (double)step));
}

/* --- the rows --------------------------------------------------------------------------------- */
static const optimizer_row rows[] = {
    {{.name = "sgd", .learning_rate = 0.01}, "momentum nesterov", sgd_form, NULL},
    {{.name = "adam", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon amsgrad",
     adam_form,
     adam_rate},
    {{.name = "adamw",
      .learning_rate = 0.001,
      .beta_1 = 0.9,
      .beta_2 = 0.999,
      .epsilon = 1e-7,
      .weight_decay = 0.004},
     "beta_1 beta_2 epsilon amsgrad",
     adam_form,
     adam_rate},
    {{.name = "rmsprop", .learning_rate = 0.001, .rho = 0.9, .epsilon = 1e-7},
     "rho momentum epsilon centered",
     rmsprop_form,
     NULL},
    {{.name = "adagrad", .learning_rate = 0.001, .initial_accumulator_value = 0.1, .epsilon = 1e-7},
     "initial_accumulator_value epsilon",
     adagrad_form,
     NULL},
    {{.name = "adadelta", .learning_rate = 0.001, .rho = 0.95, .epsilon = 1e-7},
     "rho epsilon",
     adadelta_form,
     NULL},
    {{.name = "adamax", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon",
     adamax_form,
     adamax_rate},
    {{.name = "nadam", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon",
     nadam_form,
     NULL},
    {{.name = "lion", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.99},
     "beta_1 beta_2",
     lion_form,
     NULL},
    {{.name = "ftrl",
      .learning_rate = 0.001,
      .learning_rate_power = -0.5,
      .initial_accumulator_value = 0.1},
     "learning_rate_power initial_accumulator_value l1_regularization_strength "
     "l2_regularization_strength l2_shrinkage_regularization_strength beta",
     ftrl_form,
     NULL},
};
enum { N_OPTIMIZERS = sizeof rows / sizeof *rows };

static const optimizer_row *find_row(const char *name) {
    for (int i = 0; i < N_OPTIMIZERS; i++)
        if (sn_same_name(name, rows[i].defaults.name))
            return &rows[i];
    return NULL;
}

/* --- settings --------------------------------------------------------------------------------- */
/* Where a number is kept and what it may be: [low, high], or [low, high) when open. */
typedef struct {
    const char *key;
    size_t offset;
    double low, high;
    bool open, flag;
} setting;

#define AT(key) offsetof(sn_optimizer, key)
#define NUMBER(key, low, high, open)                                                               \
    { #key, AT(key), low, high, open, false }
#define POSITIVE(key) NUMBER(key, 0, HUGE_VAL, true)
#define FLAG(key)                                                                                  \
    { #key, AT(key), 0, 1, false, true }
static const setting settings[] = {
    POSITIVE(learning_rate), /* printed always, and first */
    {"lr", AT(learning_rate), 0, HUGE_VAL, true, false},
    NUMBER(momentum, 0, 1, false),
    FLAG(nesterov),
    NUMBER(beta_1, 0, 1, true),
    NUMBER(beta_2, 0, 1, true),
    NUMBER(rho, 0, 1, false),
    POSITIVE(epsilon),
    FLAG(amsgrad),
    FLAG(centered),
    POSITIVE(initial_accumulator_value),
    NUMBER(learning_rate_power, -HUGE_VAL, 0, false),
    POSITIVE(l1_regularization_strength),
    POSITIVE(l2_regularization_strength),
    POSITIVE(l2_shrinkage_regularization_strength),
    POSITIVE(beta),
    POSITIVE(weight_decay),
    POSITIVE(clipnorm),
    POSITIVE(clipvalue),
    POSITIVE(global_clipnorm),
};
enum { N_SETTINGS = sizeof settings / sizeof *settings, FIRST_PRINTED = 2 };

static double *real_at(sn_optimizer *o, const setting *s) {
    return (double *)((char *)o + s->offset);
}
static bool *flag_at(sn_optimizer *o, const setting *s) {
    return (bool *)((char *)o + s->offset);
}
static double value_at(const sn_optimizer *o, const setting *s) {
    const char *at = (const char *)o + s->offset;
    return s->flag ? (double)*(const bool *)at : *(const double *)at;
}

static const setting *find_setting(const optimizer_row *row, const char *key) {
    const char *name = strcmp(key, "lr") == 0 ? "learning_rate" : key;
    if (!sn_text_has(COMMON, name) && !sn_text_has(row->settings, name))
        return NULL;
    for (int i = 0; i < N_SETTINGS; i++)
        if (strcmp(settings[i].key, name) == 0)
            return &settings[i];
    return NULL;
}

static bool is_off(const char *text) {
    bool on = true;
    double value = 1;
    return sn_same_name(text, "none") || sn_same_name(text, "null") ||
           (sn_text_real(text, &value) && value == 0) || (sn_text_flag(text, &on) && !on);
}

/* Settings of Keras that Snug does not have: fine as long as they are switched off. */
static snug_status check_switched_off(const optimizer_row *row, const sn_option *option,
                                      snug_error *err) {
    static const char known[] = "use_ema loss_scale_factor gradient_accumulation_steps";
    const char *name = row->defaults.name;
    if (!sn_text_has(known, option->key))
        return sn_fail(err, SNUG_E_INVALID,
                       "optimizer %s has no setting '%s'; it has " COMMON " %s", name, option->key,
                       row->settings);
    if (is_off(option->value))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED, "optimizer %s: %s=%s is not built yet; leave it out",
                   name, option->key, option->value);
}

static snug_status set_option(const optimizer_row *row, sn_optimizer *o, const sn_option *option,
                              snug_error *err) {
    const setting *s = find_setting(row, option->key);
    double value;
    if (!s)
        return check_switched_off(row, option, err);
    if (s->flag)
        return sn_option_flag(option, flag_at(o, s), err);
    if (sn_text_has("weight_decay clipnorm clipvalue global_clipnorm", s->key) &&
        is_off(option->value)) {
        *real_at(o, s) = 0;
        return SNUG_OK;
    }
    SNUG_TRY(sn_option_real(option, &value, err));
    if (value < s->low || value > s->high || (s->open && value == s->high))
        return sn_fail(err, SNUG_E_INVALID, "optimizer %s: %s=%s is out of range", o->name,
                       option->key, option->value);
    *real_at(o, s) = value;
    return SNUG_OK;
}

static snug_status refuse_name(const char *name, snug_error *err) {
    char list[160] = "";
    for (int i = 0; i < N_OPTIMIZERS; i++)
        sn_text_list(list, sizeof list, rows[i].defaults.name);
    return sn_fail(err, SNUG_E_UNSUPPORTED, "optimizer '%s' is not known; there are %s", name,
                   list);
}

snug_status sn_optimizer_parse(const char *text, sn_optimizer *out, snug_error *err) {
    char name[48];
    SNUG_TRY(sn_option_name(text, name, sizeof name, err));
    const optimizer_row *row = find_row(name);
    if (!row)
        return refuse_name(name, err);
    sn_optimizer o = row->defaults;
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(row, &o, &option, err));
    }
    if ((o.clipnorm > 0) + (o.clipvalue > 0) + (o.global_clipnorm > 0) > 1)
        return sn_fail(err, SNUG_E_INVALID,
                       "optimizer %s: only one of clipnorm, clipvalue and global_clipnorm can be "
                       "set",
                       o.name);
    *out = o;
    return SNUG_OK;
}

const char *sn_optimizer_print(const sn_optimizer *o, char *text, size_t size) {
    const sn_optimizer *usual = &find_row(o->name)->defaults;
    char value[SN_REAL_TEXT];
    snprintf(text, size, "%s:learning_rate=%s", o->name, sn_real_print(o->learning_rate, 9, value));
    for (int i = FIRST_PRINTED; i < N_SETTINGS; i++) {
        const size_t n = strlen(text);
        const double now = value_at(o, &settings[i]);
        if (now != value_at(usual, &settings[i]))
            snprintf(text + n, size - n, ",%s=%s", settings[i].key, sn_real_print(now, 9, value));
    }
    return text;
}

int sn_optimizer_params(const sn_optimizer *o, int64_t step, sn_named_real *out, int max) {
    const optimizer_row *row = find_row(o->name);
    const bool nadam = row->form == nadam_form;
    const sn_named_real all[] = {
        {"optimizer/rate", row->rate ? row->rate(o, step) : o->learning_rate},
        {"optimizer/learning_rate", o->learning_rate},
        {"optimizer/l2", ftrl_l2(o)},
        {"optimizer/mean_rate", nadam ? nadam_part(o, step, 0) : 1},
        {"optimizer/now_rate", nadam ? nadam_part(o, step, 1) : 1},
        {"optimizer/square_part", nadam ? nadam_part(o, step, 2) : 1},
    };
    const int n_all = sizeof all / sizeof *all, n = n_all < max ? n_all : max;
    for (int i = 0; i < n; i++)
        out[i] = all[i];
    return n;
}

/* --- clipping --------------------------------------------------------------------------------- */
static sn_value sum_of_squares(sn_builder *b, sn_value x) {
    return sn_build_sum(b, sn_build_square(b, x), 0, false);
}

static sn_value constant_like(sn_builder *b, sn_value x, double value) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, value);
}

static sn_value clip_value(sn_builder *b, sn_value g, double limit) {
    sn_attrs a;
    sn_attrs_default(SN_OP_clip, &a);
    a.clip.low = number(b, "", -limit);
    a.clip.high = number(b, "", limit);
    return sn_build(b, SN_OP_clip, &a, &g, 1);
}

/* g * limit / max(|g|, limit) */
static sn_value clip_norm(sn_builder *b, sn_value g, double limit) {
    const sn_value norm = sn_build_sqrt(b, sum_of_squares(b, g));
    return sn_build_div(b, sn_build_affine(b, g, limit, 0),
                        sn_build_maximum(b, norm, constant_like(b, norm, limit)));
}

/* What all gradients are multiplied by: limit * min(1 / norm of all, 1 / limit); NaN where the norm
 * is not finite, as in Keras. */
static sn_value global_scale(sn_builder *b, const sn_value *grads, int n, double limit) {
    sn_value sum = SN_NO_VALUE;
    for (int i = 0; i < n; i++) {
        if (!sn_value_ok(grads[i]))
            continue;
        const sn_value part = sum_of_squares(b, grads[i]);
        sum = sn_value_ok(sum) ? sn_build_add(b, sum, part) : part;
    }
    if (!sn_value_ok(sum))
        return SN_NO_VALUE;
    const sn_value norm = sn_build_sqrt(b, sum);
    const sn_value least =
        sn_build_minimum(b, sn_build_reciprocal(b, norm), constant_like(b, norm, 1 / limit));
    return sn_build_add(b, sn_build_affine(b, least, limit, 0), sn_build_sub(b, norm, norm));
}

static sn_value clipped(const sn_optimizer *o, sn_builder *b, sn_value g, sn_value scale) {
    if (o->clipnorm > 0)
        return clip_norm(b, g, o->clipnorm);
    if (o->clipvalue > 0)
        return clip_value(b, g, o->clipvalue);
    return sn_value_ok(scale) ? sn_build_mul(b, g, scale) : g;
}

/* --- the updates ------------------------------------------------------------------------------ */
/* Who updates what, and where. */
typedef struct {
    const sn_optimizer *o;
    sn_network *n;
    sn_graph *g;
    uint32_t weight;
} site;

/* The slot of the weight, made when it is new; its newest version in this graph. */
static snug_status read_slot(const site *s, const form *f, int slot, sn_value *out,
                             snug_error *err) {
    sn_network *const n = s->n;
    const sn_net_var weight = n->vars[s->weight];
    char name[224];
    snprintf(name, sizeof name, "%s/%s/%s", s->o->name, weight.name, f->slots[slot].name);
    uint32_t home;
    if (sn_network_find_variable(n, name, &home) && n->vars[home].slot)
        return sn_network_read(n, s->g, home, out, err);
    const sn_net_var var = {
        .name = name,
        .type = weight.type,
        .slot = true,
        .own_seed = true,
        .init = {.kind = SN_RECIPE_CONSTANT, .a = sn_keras_number(f->slots[slot].start)},
        .layer = weight.layer};
    SNUG_TRY(sn_network_variable(n, &var, &home, err));
    return sn_network_read(n, s->g, home, out, err);
}

static snug_status decay(const site *s, snug_error *err) {
    const sn_optimizer *o = s->o;
    sn_builder b = sn_builder_on(s->g);
    sn_attrs a;
    sn_value weight;
    sn_attrs_default(SN_OP_weight_decay, &a);
    a.decay.rate = number(&b, "optimizer/learning_rate", o->learning_rate);
    a.decay.decay = number(&b, "optimizer/weight_decay", sn_keras_number(o->weight_decay));
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &weight, err));
    sn_build(&b, SN_OP_weight_decay, &a, &weight, 1);
    return sn_builder_done(&b, err);
}

static snug_status update(const site *s, sn_value gradient, snug_error *err) {
    sn_builder b = sn_builder_on(s->g);
    sn_value in[5];
    form f;
    if (s->o->weight_decay > 0)
        SNUG_TRY(decay(s, err));
    find_row(s->o->name)->form(s->o, &b, &f);
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &in[0], err));
    for (int i = 0; i < f.n_slots; i++)
        SNUG_TRY(read_slot(s, &f, i, &in[1 + i], err));
    in[1 + f.n_slots] = gradient;
    sn_build(&b, f.op, &f.attrs, in, 2 + f.n_slots);
    return sn_builder_done(&b, err);
}

/* The weight's constraint, after its update. */
static snug_status constrain(const site *s, snug_error *err) {
    const char *text = s->n->vars[s->weight].constraint;
    sn_builder b = sn_builder_on(s->g);
    sn_value in[2];
    if (!text || !text[0])
        return SNUG_OK;
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &in[0], err));
    in[1] = sn_constraint_build(&b, text, in[0]);
    sn_build(&b, SN_OP_assign, NULL, in, 2);
    return sn_builder_done(&b, err);
}

snug_status sn_optimizer_build(const sn_optimizer *o, sn_network *n, sn_graph *g,
                               const sn_value *grads, int n_grads, snug_error *err) {
    sn_graph_set_part(g, SN_PART_UPDATE);
    sn_builder b = sn_builder_on(g);
    const sn_value scale =
        o->global_clipnorm > 0 ? global_scale(&b, grads, n_grads, o->global_clipnorm) : SN_NO_VALUE;
    int k = 0;
    const uint32_t n_weights = (uint32_t)sn_network_n_weights(n);
    for (uint32_t home = 0; home < n_weights && k < n_grads; home++) {
        if (!sn_network_trains(n, home))
            continue;
        const sn_value raw = grads[k++];
        if (!sn_value_ok(raw))
            continue; /* the loss does not depend on it */
        SNUG_TRY(sn_graph_set_owner(g, n->layers[n->vars[home].layer].name, err));
        const sn_value gradient = clipped(o, &b, raw, scale);
        SNUG_TRY(sn_builder_done(&b, err));
        const site at = {o, n, g, home};
        SNUG_TRY(update(&at, gradient, err));
        SNUG_TRY(constrain(&at, err));
    }
    return sn_builder_done(&b, err);
}
