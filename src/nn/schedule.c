/* schedule.c: Keras' learning-rate schedules, one row each, as functions of the number of steps
 * taken so far. A rate is a parameter of the step: no plan depends on it. Keras computes them in
 * f32, also for f64 models: every operation here is rounded as there. */
#include "nn/schedule.h"
#include "base/setting_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    sn_schedule defaults;
    const char *settings, *needed;
    float (*rate)(const sn_schedule *s, float step);
} schedule_row;

/* --- the functions ---------------------------------------------------------------------------- */
static float power(float x, float y) {
    return (float)pow((double)x, (double)y);
}

/* (1 + cos(pi p)) / 2 */
static float half_wave(float p) {
    return 0.5f * (1.0f + (float)cos((double)((float)M_PI * p)));
}

static float decays(const sn_schedule *s, float step) {
    const float p = step / (float)s->decay_steps;
    return s->staircase ? floorf(p) : p;
}

static float exponential(const sn_schedule *s, float step) {
    return (float)s->initial_learning_rate * power((float)s->decay_rate, decays(s, step));
}

static float inverse_time(const sn_schedule *s, float step) {
    return (float)s->initial_learning_rate / (1.0f + (float)s->decay_rate * decays(s, step));
}

/* values[i] up to and with boundary i. */
static float piecewise(const sn_schedule *s, float step) {
    int i = 0;
    while (i < s->n_boundaries && (double)step > s->boundaries[i])
        i++;
    return (float)s->values[i];
}

static float polynomial(const sn_schedule *s, float step) {
    const float end = (float)s->end_learning_rate;
    float over = (float)s->decay_steps;
    if (s->cycle)
        over *= step == 0 ? 1.0f : ceilf(step / over);
    else
        step = fminf(step, over);
    const float left = power(1.0f - step / over, (float)s->power);
    return ((float)s->initial_learning_rate - end) * left + end;
}

/* From `first` to alpha times that, in decay_steps. */
static float cosine_from(const sn_schedule *s, float first, float step) {
    const float over = (float)s->decay_steps;
    const float wave = half_wave(fminf(step, over) / over);
    return first * ((float)(1 - s->alpha) * wave + (float)s->alpha);
}

static float cosine(const sn_schedule *s, float step) {
    const float first = (float)s->initial_learning_rate, target = (float)s->warmup_target;
    if (isnan(s->warmup_target))
        return cosine_from(s, first, step);
    if ((double)step < s->warmup_steps)
        return step / (float)s->warmup_steps * (target - first) + first;
    return cosine_from(s, target, step - (float)s->warmup_steps);
}

/* Each restart takes t_mul times as long and starts at m_mul times the rate of the one before. */
static float restarts(const sn_schedule *s, float step) {
    const float t_mul = (float)s->t_mul, alpha = (float)s->alpha;
    float p = step / (float)s->first_decay_steps, n = floorf(p);
    if (t_mul != 1) {
        const float reach = 1.0f - p * (1.0f - t_mul);
        n = floorf((float)log((double)reach) / (float)log((double)t_mul));
        const float length = power(t_mul, n);
        p = (p - (1.0f - length) / (1.0f - t_mul)) / length;
    } else
        p -= n;
    const float wave = power((float)s->m_mul, n) * half_wave(p);
    return (float)s->initial_learning_rate * ((1.0f - alpha) * wave + alpha);
}

/* --- the rows --------------------------------------------------------------------------------- */
static const schedule_row rows[] = {
    {{.name = "exponential_decay"},
     "initial_learning_rate decay_steps decay_rate staircase",
     "initial_learning_rate decay_steps decay_rate",
     exponential},
    {{.name = "inverse_time_decay"},
     "initial_learning_rate decay_steps decay_rate staircase",
     "initial_learning_rate decay_steps decay_rate",
     inverse_time},
    {{.name = "piecewise_constant_decay"}, "boundaries values", "boundaries values", piecewise},
    {{.name = "polynomial_decay", .end_learning_rate = 0.0001, .power = 1},
     "initial_learning_rate decay_steps end_learning_rate power cycle",
     "initial_learning_rate decay_steps",
     polynomial},
    {{.name = "cosine_decay", .warmup_target = (double)NAN},
     "initial_learning_rate decay_steps alpha warmup_target warmup_steps",
     "initial_learning_rate decay_steps",
     cosine},
    {{.name = "cosine_decay_restarts", .t_mul = 2, .m_mul = 1},
     "initial_learning_rate first_decay_steps t_mul m_mul alpha",
     "initial_learning_rate first_decay_steps",
     restarts},
};
enum { N_SCHEDULES = sizeof rows / sizeof *rows };

static const schedule_row *find_row(const char *name) {
    for (int i = 0; i < N_SCHEDULES; i++)
        if (sn_same_name(name, rows[i].defaults.name))
            return &rows[i];
    return NULL;
}

double sn_schedule_rate(const sn_schedule *s, int64_t steps) {
    return (double)find_row(s->name)->rate(s, (float)steps);
}

/* --- reading ---------------------------------------------------------------------------------- */
#define OF(field) offsetof(sn_schedule, field)
static const struct {
    const char *key;
    size_t offset;
    double least;
} reals[] = {
    {"initial_learning_rate", OF(initial_learning_rate), 0},
    {"decay_steps", OF(decay_steps), 1e-300},
    {"first_decay_steps", OF(first_decay_steps), 1e-300},
    {"decay_rate", OF(decay_rate), 0},
    {"end_learning_rate", OF(end_learning_rate), 0},
    {"power", OF(power), 0},
    {"alpha", OF(alpha), 0},
    {"warmup_target", OF(warmup_target), 0},
    {"warmup_steps", OF(warmup_steps), 0},
    {"t_mul", OF(t_mul), 1},
    {"m_mul", OF(m_mul), 0},
};

static snug_status set_list(const sn_option *o, double *to, int *n, int max, snug_error *err) {
    sn_option one = *o;
    *n = 0;
    for (const char *at = o->value; sn_text_item(&at, one.value, sizeof one.value);) {
        if (*n == max)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "%s has more than %d numbers", o->key, max);
        SNUG_TRY(sn_option_real(&one, &to[(*n)++], err));
    }
    return SNUG_OK;
}

static snug_status set_option(const schedule_row *row, const sn_option *o, sn_schedule *s,
                              snug_error *err) {
    if (!sn_text_has(row->settings, o->key))
        return sn_fail(err, SNUG_E_INVALID, "schedule %s has no setting '%s'; it has %s",
                       row->defaults.name, o->key, row->settings);
    if (strcmp(o->key, "staircase") == 0)
        return sn_option_flag(o, &s->staircase, err);
    if (strcmp(o->key, "cycle") == 0)
        return sn_option_flag(o, &s->cycle, err);
    if (strcmp(o->key, "boundaries") == 0)
        return set_list(o, s->boundaries, &s->n_boundaries, SN_SCHEDULE_MAX, err);
    if (strcmp(o->key, "values") == 0)
        return set_list(o, s->values, &s->n_values, SN_SCHEDULE_MAX + 1, err);
    size_t i = 0;
    while (strcmp(o->key, reals[i].key) != 0)
        i++;
    double value;
    SNUG_TRY(sn_option_real(o, &value, err));
    if (value < reals[i].least)
        return sn_fail(err, SNUG_E_INVALID, "schedule %s: %s=%s is out of range",
                       row->defaults.name, o->key, o->value);
    *(double *)((char *)s + reals[i].offset) = value;
    return SNUG_OK;
}

/* What has no default was given, and the lists fit. */
static snug_status check(const schedule_row *row, const char *given, const sn_schedule *s,
                         snug_error *err) {
    char key[48];
    for (const char *p = row->needed; *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        snprintf(key, sizeof key, "%.*s", (int)n, p);
        if (!sn_text_has(given, key))
            return sn_fail(err, SNUG_E_INVALID, "schedule %s needs %s", row->defaults.name, key);
        p += n;
    }
    if (row->rate == piecewise && s->n_values != s->n_boundaries + 1)
        return sn_fail(err, SNUG_E_INVALID,
                       "schedule %s: %d boundaries and %d values; there is one value more",
                       row->defaults.name, s->n_boundaries, s->n_values);
    return SNUG_OK;
}

snug_status sn_schedule_parse(const char *text, sn_schedule *out, snug_error *err) {
    char plain[sizeof out->text], name[48], given[256] = "";
    const size_t n = strlen(text);
    char *const open = sn_text_copy(plain, sizeof plain, text) ? strchr(plain, '(') : NULL;
    if (!open || text[n - 1] != ')')
        return sn_fail(err, SNUG_E_INVALID,
                       "'%.80s' is not of the form schedule(key=value,...), in at most %zu letters",
                       text, sizeof plain - 1);
    plain[n - 1] = 0;
    *open = ':';
    SNUG_TRY(sn_option_name(plain, name, sizeof name, err));
    const schedule_row *row = find_row(name);
    char list[200] = "";
    for (int i = 0; i < N_SCHEDULES && !row; i++)
        sn_text_list(list, sizeof list, rows[i].defaults.name);
    if (!row)
        return sn_refuse_name("schedule", name, list, err);
    sn_schedule s = row->defaults;
    memcpy(s.text, text, n + 1);
    sn_option option;
    bool more;
    for (const char *at = plain;;) {
        const size_t used = strlen(given);
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(row, &option, &s, err));
        snprintf(given + used, sizeof given - used, " %s", option.key);
    }
    SNUG_TRY(check(row, given, &s, err));
    *out = s;
    return SNUG_OK;
}
