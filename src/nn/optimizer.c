/* optimizer.c: Keras' optimizers, one row each: name and defaults, the settings it takes, and its
 * form: which operator updates a weight, with which slots and numbers. The graph is made from a
 * form by optimizer_build.c.
 *
 * What changes from step to step are graph parameters: "optimizer/rate", for most the learning
 * rate, for Adam with the bias correction of step t in it,
 *
 *     rate * sqrt(1 - beta_2^t) / (1 - beta_1^t);
 *
 * Nadam has three of its own; "optimizer/learning_rate" is the plain one, for
 * weight_decay; those of moving averages of the weights (use_ema). */
#include "base/real.h"
#include "nn/keras_number.h"
#include "nn/optimizer_rows.h"
#include "base/setting_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef sn_optimizer_form form;
typedef sn_optimizer_row optimizer_row;

#define EMA_MOMENTUM 0.99
#define COMMON                                                                                     \
    "learning_rate weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum "          \
    "ema_overwrite_frequency gradient_accumulation_steps"

/* --- forms ------------------------------------------------------------------------------------ */
static void start_form(form *f, sn_op op) {
    f->op = op;
    f->n_slots = 0;
    sn_attrs_default(op, &f->attrs);
    f->squares = f->sizes = false;
    f->given = NULL;
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
    f->squares = true;
    if (o->amsgrad)
        add_slot(f, "velocity_hat", 0);
}

static void rmsprop_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_rmsprop);
    f->squares = true;
    f->given = &f->attrs.rmsprop.squares;
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
    f->squares = true;
    f->attrs.adagrad.rate = rate_of(b, o);
    f->attrs.adagrad.epsilon = epsilon_of(b, o);
    add_slot(f, "accumulator", o->initial_accumulator_value);
}

static void adadelta_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_adadelta);
    f->squares = true;
    f->attrs.adadelta.rate = rate_of(b, o);
    f->attrs.adadelta.rho = number(b, "optimizer/rho", o->rho);
    f->attrs.adadelta.epsilon = epsilon_of(b, o);
    add_slot(f, "accumulated_grad", 0);
    add_slot(f, "accumulated_delta_var", 0);
}

static void adamax_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_adamax);
    f->sizes = true;
    f->attrs.adamax.rate = rate_of(b, o);
    f->attrs.adamax.one_minus_beta1 = number(b, "optimizer/one_minus_beta1", 1 - o->beta_1);
    f->attrs.adamax.beta2 = number(b, "optimizer/beta2", o->beta_2);
    f->attrs.adamax.epsilon = epsilon_of(b, o);
    add_slot(f, "momentum", 0);
    add_slot(f, "norm", 0);
}

static void nadam_form(const sn_optimizer *o, sn_builder *b, form *f) {
    start_form(f, SN_OP_nadam);
    f->squares = true;
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
    f->squares = true;
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

/* Adafactor's: also no more than 1 / sqrt(t). */
static double adafactor_rate(const sn_optimizer *o, int64_t step) {
    return fmin(o->learning_rate, 1 / sqrt((double)step));
}

/* Nadam's share of the mean in step t: beta_1 * (1 - 0.96^t / 2). */
static double nadam_share(double beta_1, double decay, int64_t step) {
    return beta_1 * (1 - 0.5 * pow(decay, (double)step));
}

/* The product of the shares of steps 1 to t. From step 1000 on a share is beta_1, to the last
 * bit. */
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
    if (part == 2)
        return 1 / (1 - pow(sn_keras_number(o->beta_2), (double)step));
    const double product = nadam_product(o->beta_1, step);
    const double next = nadam_share(beta_1, decay, step + 1);
    if (part == 0)
        return o->learning_rate * next / (1 - product * next);
    return o->learning_rate * (1 - nadam_share(beta_1, decay, step)) / (1 - product);
}

/* --- the rows --------------------------------------------------------------------------------- */
static const optimizer_row rows[] = {
    {{.name = "sgd", .learning_rate = 0.01}, "momentum nesterov", SN_BY_FORM, sgd_form, NULL},
    {{.name = "adam", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon amsgrad",
     SN_BY_FORM,
     adam_form,
     adam_rate},
    {{.name = "adamw",
      .learning_rate = 0.001,
      .beta_1 = 0.9,
      .beta_2 = 0.999,
      .epsilon = 1e-7,
      .weight_decay = 0.004},
     "beta_1 beta_2 epsilon amsgrad",
     SN_BY_FORM,
     adam_form,
     adam_rate},
    {{.name = "rmsprop", .learning_rate = 0.001, .rho = 0.9, .epsilon = 1e-7},
     "rho momentum epsilon centered",
     SN_BY_FORM,
     rmsprop_form,
     NULL},
    {{.name = "adagrad", .learning_rate = 0.001, .initial_accumulator_value = 0.1, .epsilon = 1e-7},
     "initial_accumulator_value epsilon",
     SN_BY_FORM,
     adagrad_form,
     NULL},
    {{.name = "adadelta", .learning_rate = 0.001, .rho = 0.95, .epsilon = 1e-7},
     "rho epsilon",
     SN_BY_FORM,
     adadelta_form,
     NULL},
    {{.name = "adamax", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon",
     SN_BY_FORM,
     adamax_form,
     adamax_rate},
    {{.name = "nadam", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon",
     SN_BY_FORM,
     nadam_form,
     NULL},
    {{.name = "lion", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.99},
     "beta_1 beta_2",
     SN_BY_FORM,
     lion_form,
     NULL},
    {{.name = "ftrl",
      .learning_rate = 0.001,
      .learning_rate_power = -0.5,
      .initial_accumulator_value = 0.1},
     "learning_rate_power initial_accumulator_value l1_regularization_strength "
     "l2_regularization_strength l2_shrinkage_regularization_strength beta",
     SN_BY_FORM,
     ftrl_form,
     NULL},
    {{.name = "adafactor",
      .learning_rate = 0.001,
      .beta_2_decay = -0.8,
      .epsilon_1 = 1e-30,
      .epsilon_2 = 1e-3,
      .clip_threshold = 1,
      .relative_step = true},
     "beta_2_decay epsilon_1 epsilon_2 clip_threshold relative_step",
     SN_BY_ADAFACTOR,
     NULL,
     adafactor_rate},
    {{.name = "lamb", .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7},
     "beta_1 beta_2 epsilon",
     SN_BY_LAMB,
     NULL,
     NULL},
};
enum { N_OPTIMIZERS = sizeof rows / sizeof *rows };

const optimizer_row *sn_optimizer_find(const char *name) {
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
} setting; /* 0 of clipping, decay and the like means off: they may also be given as none */

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
    NUMBER(beta_2_decay, -HUGE_VAL, 0, false),
    POSITIVE(epsilon_1),
    POSITIVE(epsilon_2),
    POSITIVE(clip_threshold),
    FLAG(relative_step),
    FLAG(use_ema),
    NUMBER(ema_momentum, 0, 1, false),
    NUMBER(ema_overwrite_frequency, 1, 0x1p53, false),
    NUMBER(gradient_accumulation_steps, 2, 0x1p31, false),
};
enum { N_SETTINGS = sizeof settings / sizeof *settings, FIRST_PRINTED = 2 };

#define COUNTS     "ema_overwrite_frequency gradient_accumulation_steps"
#define CAN_BE_OFF "weight_decay clipnorm clipvalue global_clipnorm " COUNTS

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
    static const char known[] = "loss_scale_factor";
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
    if (sn_text_has(CAN_BE_OFF, s->key) && is_off(option->value)) {
        *real_at(o, s) = 0;
        return SNUG_OK;
    }
    if (strcmp(s->key, "learning_rate") == 0 && strchr(option->value, '('))
        return sn_schedule_parse(option->value, &o->schedule, err);
    SNUG_TRY(sn_option_real(option, &value, err));
    const bool counts = sn_text_has(COUNTS, s->key) && value != floor(value);
    if (counts || value < s->low || value > s->high || (s->open && value == s->high))
        return sn_fail(err, SNUG_E_INVALID, "optimizer %s: %s=%s is out of range", o->name,
                       option->key, option->value);
    *real_at(o, s) = value;
    return SNUG_OK;
}

static snug_status refuse_name(const char *name, snug_error *err) {
    char list[160] = "";
    for (int i = 0; i < N_OPTIMIZERS; i++)
        sn_text_list(list, sizeof list, rows[i].defaults.name);
    return sn_refuse_name("optimizer", name, list, err);
}

snug_status sn_optimizer_parse(const char *text, sn_optimizer *out, snug_error *err) {
    char name[48];
    SNUG_TRY(sn_option_name(text, name, sizeof name, err));
    const optimizer_row *row = sn_optimizer_find(name);
    if (!row)
        return refuse_name(name, err);
    sn_optimizer o = row->defaults;
    o.ema_momentum = EMA_MOMENTUM;
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
    sn_optimizer usual = sn_optimizer_find(o->name)->defaults;
    usual.ema_momentum = EMA_MOMENTUM;
    char value[SN_REAL_TEXT];
    snprintf(text, size, "%s:learning_rate=%s", o->name,
             o->schedule.name[0] ? o->schedule.text : sn_real_print(o->learning_rate, 9, value));
    for (int i = FIRST_PRINTED; i < N_SETTINGS; i++) {
        const size_t n = strlen(text);
        const double now = value_at(o, &settings[i]);
        if (now != value_at(&usual, &settings[i]))
            snprintf(text + n, size - n, ",%s=%s", settings[i].key, sn_real_print(now, 9, value));
    }
    return text;
}

/* --- what changes from step to step ----------------------------------------------------------- */
double sn_optimizer_rate(const sn_optimizer *o, int64_t steps) {
    return o->schedule.name[0] ? sn_schedule_rate(&o->schedule, steps) : o->learning_rate;
}

bool sn_optimizer_updates(const sn_optimizer *o, int64_t step) {
    const int64_t k = (int64_t)o->gradient_accumulation_steps;
    return k == 0 || step % k == 0;
}

int sn_optimizer_params(const sn_optimizer *o, int64_t step, sn_named_real *out, int max) {
    const optimizer_row *row = sn_optimizer_find(o->name);
    const bool nadam = row->form == nadam_form;
    const int64_t k =
        o->gradient_accumulation_steps > 0 ? (int64_t)o->gradient_accumulation_steps : 1;
    const int64_t frequency = (int64_t)o->ema_overwrite_frequency;
    const int64_t t = (step - 1) / k + 1; /* updates count, schedules count steps */
    sn_optimizer now = *o;
    now.learning_rate = sn_optimizer_rate(o, step - 1);
    const sn_named_real all[] = {
        {"optimizer/rate", row->rate ? row->rate(&now, t) : now.learning_rate},
        {"optimizer/learning_rate", now.learning_rate},
        {"optimizer/l2", ftrl_l2(&now)},
        {"optimizer/mean_rate", nadam ? nadam_part(&now, t, 0) : 1},
        {"optimizer/now_rate", nadam ? nadam_part(&now, t, 1) : 1},
        {"optimizer/square_part", nadam_part(&now, t, 2)},
        {"optimizer/mean_part", 1 / (1 - pow(sn_keras_number(o->beta_1), (double)t))},
        {"optimizer/beta2_of_step", 1 - pow((double)t, o->beta_2_decay)},
        {"optimizer/ema_momentum", t == 1 ? 0 : o->ema_momentum},
        {"optimizer/ema_keep", frequency > 0 && t % frequency == 0 ? 0 : 1},
    };
    const int n_all = sizeof all / sizeof *all, n = n_all < max ? n_all : max;
    for (int i = 0; i < n; i++)
        out[i] = all[i];
    return n;
}
