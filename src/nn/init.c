/* init.c: Keras' initialisers, by its names and with its defaults, as recipes. A variable's initial
 * values are a function of (seed, name of the variable) alone, so no other variable and no order of
 * creation changes them.
 *
 * fan_in and fan_out are Keras' (compute_fans): of a matrix its two extents, of a kernel the last
 * two times the window. A truncated normal is widened by 1 / 0.87962566103423978 so that what is
 * left after cutting at two deviations has the deviation asked for. */
#include "nn/init.h"
#include "base/setting_text.h"

#include <math.h>
#include <string.h>

#define TRUNCATED_DEVIATION 0.87962566103423978

typedef enum { CONSTANT, UNIFORM, NORMAL, TRUNCATED, SCALED, EYE, ORTHOGONAL, FORGET } family;

/* key_a and key_b name the settings a and b, in Keras' words; NULL: not settable. */
typedef struct {
    const char *name, *alias;
    family kind;
    const char *key_a, *key_b;
    double a, b;
    const char *mode, *distribution;
} row;

static const row rows[] = {
    {"zeros", "zero", CONSTANT, NULL, NULL, 0, 0, "", ""},
    {"ones", "one", CONSTANT, NULL, NULL, 1, 0, "", ""},
    {"constant", NULL, CONSTANT, "value", NULL, 0, 0, "", ""},
    {"random_uniform", "uniform", UNIFORM, "minval", "maxval", -0.05, 0.05, "", ""},
    {"random_normal", "normal", NORMAL, "mean", "stddev", 0, 0.05, "", ""},
    {"truncated_normal", NULL, TRUNCATED, "mean", "stddev", 0, 0.05, "", ""},
    {"glorot_uniform", NULL, SCALED, NULL, NULL, 1, 0, "fan_avg", "uniform"},
    {"glorot_normal", NULL, SCALED, NULL, NULL, 1, 0, "fan_avg", "truncated_normal"},
    {"he_uniform", NULL, SCALED, NULL, NULL, 2, 0, "fan_in", "uniform"},
    {"he_normal", NULL, SCALED, NULL, NULL, 2, 0, "fan_in", "truncated_normal"},
    {"lecun_uniform", NULL, SCALED, NULL, NULL, 1, 0, "fan_in", "uniform"},
    {"lecun_normal", NULL, SCALED, NULL, NULL, 1, 0, "fan_in", "truncated_normal"},
    {"variance_scaling", NULL, SCALED, "scale", NULL, 1, 0, "fan_in", "truncated_normal"},
    {"orthogonal", "orthogonal_initializer", ORTHOGONAL, "gain", NULL, 1, 0, "", ""},
    {"identity", "identity_initializer", EYE, "gain", NULL, 1, 0, "", ""},
    {"unit_forget_bias", NULL, FORGET, "value", "units", 0, 0, "", ""},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const row *find_row(const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (sn_same_name(name, rows[i].name) ||
            (rows[i].alias && sn_same_name(name, rows[i].alias)))
            return &rows[i];
    return NULL;
}

static snug_status refuse_name(const char *name, snug_error *err) {
    char list[320] = "";
    for (int i = 0; i < N_ROWS; i++)
        sn_text_list(list, sizeof list, rows[i].name);
    return sn_fail(err, SNUG_E_INVALID, "there is no initialiser '%.40s'; there are %s", name,
                   list);
}

static snug_status set_choice(const sn_option *o, const char *const *choices, char *to, size_t size,
                              snug_error *err) {
    for (const char *const *c = choices; *c; c++)
        if (sn_same_name(o->value, *c)) {
            sn_text_copy(to, size, *c);
            return SNUG_OK;
        }
    return sn_fail(err, SNUG_E_INVALID, "%s=%s is not known; one is %s", o->key, o->value,
                   choices[0]);
}

static snug_status set_option(const row *r, const sn_option *o, sn_init *init, snug_error *err) {
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
    static const char *const distributions[] = {"truncated_normal", "untruncated_normal", "uniform",
                                                "normal", NULL};
    if (r->key_a && strcmp(o->key, r->key_a) == 0)
        return sn_option_real(o, &init->a, err);
    if (r->key_b && strcmp(o->key, r->key_b) == 0)
        return sn_option_real(o, &init->b, err);
    if (strcmp(o->key, "seed") == 0) {
        double seed;
        SNUG_TRY(sn_option_real(o, &seed, err));
        if (seed < 0 || seed > 9007199254740992.0 || seed != floor(seed))
            return sn_fail(err, SNUG_E_INVALID, "seed=%s must be a whole number from 0", o->value);
        init->seed = (int64_t)seed;
        return SNUG_OK;
    }
    const bool scaling = r->kind == SCALED && r->key_a;
    if (scaling && strcmp(o->key, "mode") == 0)
        return set_choice(o, modes, init->mode, sizeof init->mode, err);
    if (scaling && strcmp(o->key, "distribution") == 0)
        return set_choice(o, distributions, init->distribution, sizeof init->distribution, err);
    return sn_fail(err, SNUG_E_INVALID, "initialiser %s has no setting '%s'", r->name, o->key);
}

static snug_status check_values(const row *r, const sn_init *init, snug_error *err) {
    if ((r->kind == NORMAL || r->kind == TRUNCATED) && init->b < 0)
        return sn_fail(err, SNUG_E_INVALID, "initialiser %s: stddev=%g is negative", r->name,
                       init->b);
    if (r->kind == UNIFORM && init->a > init->b)
        return sn_fail(err, SNUG_E_INVALID, "initialiser %s: minval=%g is above maxval=%g", r->name,
                       init->a, init->b);
    if (r->kind == SCALED && init->a <= 0)
        return sn_fail(err, SNUG_E_INVALID, "initialiser %s: scale=%g must be above 0", r->name,
                       init->a);
    return SNUG_OK;
}

snug_status sn_init_parse(const char *text, sn_init *out, snug_error *err) {
    char name[32];
    SNUG_TRY(sn_option_name(text, name, sizeof name, err));
    const row *r = find_row(name);
    if (!r)
        return refuse_name(name, err);
    sn_init init = {.a = r->a, .b = r->b, .seed = -1};
    sn_text_copy(init.kind, sizeof init.kind, r->name);
    sn_text_copy(init.mode, sizeof init.mode, r->mode);
    sn_text_copy(init.distribution, sizeof init.distribution, r->distribution);
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(r, &option, &init, err));
    }
    SNUG_TRY(check_values(r, &init, err));
    *out = init;
    return SNUG_OK;
}

static double fan_of(const sn_init *init, const snug_type *t) {
    double fan_in = 1, fan_out = 1;
    if (t->rank == 1)
        fan_in = fan_out = (double)t->dims[0];
    if (t->rank >= 2) {
        double window = 1;
        for (int i = 0; i < t->rank - 2; i++)
            window *= (double)t->dims[i];
        fan_in = window * (double)t->dims[t->rank - 2];
        fan_out = window * (double)t->dims[t->rank - 1];
    }
    if (init->fan_in > 0) {
        fan_in = init->fan_in;
        fan_out = init->fan_out;
    }
    double fan = (fan_in + fan_out) / 2;
    if (strcmp(init->mode, "fan_in") == 0)
        fan = fan_in;
    if (strcmp(init->mode, "fan_out") == 0)
        fan = fan_out;
    return fmax(1, fan);
}

static void scaled_recipe(const sn_init *init, const snug_type *type, sn_recipe *out) {
    const double variance = init->a / fan_of(init, type);
    if (strcmp(init->distribution, "uniform") == 0) {
        out->kind = SN_RECIPE_UNIFORM;
        out->b = sqrt(3 * variance);
        out->a = -out->b;
    } else if (strcmp(init->distribution, "untruncated_normal") == 0) {
        out->kind = SN_RECIPE_NORMAL;
        out->b = sqrt(variance);
    } else {
        out->kind = SN_RECIPE_TRUNCATED;
        out->b = sqrt(variance) / TRUNCATED_DEVIATION;
    }
}

static bool makes_matrices(const row *r) {
    return r->kind == EYE || r->kind == ORTHOGONAL;
}

static snug_status check_matrix(const row *r, const snug_type *type, snug_error *err) {
    const bool any = r->kind == ORTHOGONAL;
    char text[192];
    if (!makes_matrices(r) || type->rank == 2 || (any && type->rank > 2))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "initialiser %s makes matrices%s, but this is %s", r->name,
                   any ? " and kernels" : "", snug_type_print(type, text, sizeof text));
}

snug_status sn_init_recipe(const sn_init *init, const snug_type *type, uint64_t key, sn_recipe *out,
                           snug_error *err) {
    static const sn_recipe_kind kinds[] = {
        [CONSTANT] = SN_RECIPE_CONSTANT,     [UNIFORM] = SN_RECIPE_UNIFORM,
        [NORMAL] = SN_RECIPE_NORMAL,         [TRUNCATED] = SN_RECIPE_TRUNCATED,
        [SCALED] = SN_RECIPE_TRUNCATED,      [EYE] = SN_RECIPE_EYE,
        [ORTHOGONAL] = SN_RECIPE_ORTHOGONAL, [FORGET] = SN_RECIPE_FORGET};
    const row *r = find_row(init->kind);
    SNUG_TRY(check_matrix(r, type, err));
    sn_recipe recipe = {.kind = kinds[r->kind], .key = init->seed < 0 ? key : (uint64_t)init->seed};
    if (r->kind == SCALED) {
        scaled_recipe(init, type, &recipe);
    } else {
        recipe.a = init->a;
        recipe.b = init->b;
    }
    if (makes_matrices(r))
        recipe.b = (double)type->dims[type->rank - 1];
    *out = recipe;
    return SNUG_OK;
}
