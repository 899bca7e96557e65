/* regularizer.c: Keras' regularisers (a scalar of a weight or of a layer's output, added to the
 * loss) and constraints (what a weight becomes after each update), by their names: "l2",
 * "l1_l2:l1=0.01,l2=0.02", "max_norm:max_value=2,axis=[0,1]". Built from operators there are. */
#include "nn/keras_number.h"
#include "nn/regularizer.h"
#include "base/setting_text.h"

#include <math.h>
#include <string.h>

#define EPSILON 1e-7 /* keras.config.epsilon() */

typedef struct {
    double l1, l2, factor, min_value, max_value, rate;
    uint32_t axes; /* a set of bits */
    bool columns;  /* of orthogonal_regularizer: mode=columns */
} rule;

typedef sn_value (*rule_fn)(sn_builder *b, const rule *r, sn_value x);

typedef struct {
    const char *name;
    const char *settings;
    rule defaults;
    rule_fn build;
    int rank; /* of what it is of; 0: any */
} rule_row;

/* --- small pieces ----------------------------------------------------------------------------- */
static sn_value number_like(sn_builder *b, sn_value x, double value) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, value);
}

/* --- regularisers ----------------------------------------------------------------------------- */
static sn_value l1_l2(sn_builder *b, const rule *r, sn_value x) {
    const sn_value size = sn_build_sum(b, sn_build_abs(b, x), 0, false);
    const sn_value square = sn_build_sum(b, sn_build_square(b, x), 0, false);
    const sn_value first = sn_build_affine(b, size, sn_keras_number(r->l1), 0);
    const sn_value second = sn_build_affine(b, square, sn_keras_number(r->l2), 0);
    if (r->l1 == 0)
        return second;
    return r->l2 == 0 ? first : sn_build_add(b, first, second);
}

/* Half the factor times the mean size of the products of two different rows (or columns) of
 * length 1: all products, less those of a row with itself. */
static sn_value orthogonal(sn_builder *b, const rule *r, sn_value x) {
    const sn_value square = sn_build_sum(b, sn_build_square(b, x), r->columns ? 1u : 2u, true);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const double n = (double)sn_graph_type(b->graph, x)->dims[r->columns ? 1 : 0];
    const sn_value unit = sn_build_mul(
        b, x, sn_build_minimum(b, sn_build_rsqrt(b, square), number_like(b, x, 1 / EPSILON)));
    const sn_value products = sn_build_matmul_t(b, unit, unit, r->columns, !r->columns);
    const sn_value all = sn_build_sum(b, sn_build_abs(b, products), 0, false);
    const sn_value own = sn_build_sum(b, sn_build_square(b, unit), 0, false);
    return sn_build_affine(b, sn_build_sub(b, all, own),
                           sn_keras_number(r->factor) * 0.5 / (n * (n - 1) / 2), 0);
}

/* --- constraints ------------------------------------------------------------------------------ */
static sn_value norms(sn_builder *b, const rule *r, sn_value w) {
    return sn_build_sqrt(b, sn_build_sum(b, sn_build_square(b, w), r->axes, true));
}

/* w * wanted / (epsilon + norm) */
static sn_value scaled(sn_builder *b, sn_value w, sn_value wanted, sn_value norm) {
    return sn_build_mul(b, w, sn_build_div(b, wanted, sn_build_affine(b, norm, 1, EPSILON)));
}

static sn_value max_norm(sn_builder *b, const rule *r, sn_value w) {
    const sn_value norm = norms(b, r, w);
    return scaled(b, w, sn_build_clip(b, norm, 0, r->max_value), norm);
}

static sn_value min_max_norm(sn_builder *b, const rule *r, sn_value w) {
    const sn_value norm = norms(b, r, w);
    const sn_value inside = sn_build_clip(b, norm, r->min_value, r->max_value);
    const sn_value wanted = sn_build_add(b, sn_build_affine(b, inside, r->rate, 0),
                                         sn_build_affine(b, norm, 1 - r->rate, 0));
    return scaled(b, w, wanted, norm);
}

static sn_value unit_norm(sn_builder *b, const rule *r, sn_value w) {
    return sn_build_div(b, w, sn_build_affine(b, norms(b, r, w), 1, EPSILON));
}

static sn_value non_negative(sn_builder *b, const rule *r, sn_value w) {
    (void)r;
    return sn_build_maximum(b, w, number_like(b, w, 0));
}

/* --- the rows --------------------------------------------------------------------------------- */
static const rule_row regularizers[] = {
    {"l1", "l1", {.l1 = 0.01}, l1_l2, 0},
    {"l2", "l2", {.l2 = 0.01}, l1_l2, 0},
    {"l1_l2", "l1 l2", {.l1 = 0}, l1_l2, 0},
    {"orthogonal_regularizer", "factor mode", {.factor = 0.01}, orthogonal, 2},
    {NULL, NULL, {.l1 = 0}, NULL, 0},
};

static const rule_row constraints[] = {
    {"max_norm", "max_value axis", {.max_value = 2, .axes = 1}, max_norm, 0},
    {"min_max_norm",
     "min_value max_value rate axis",
     {.max_value = 1, .rate = 1, .axes = 1},
     min_max_norm,
     0},
    {"unit_norm", "axis", {.axes = 1}, unit_norm, 0},
    {"non_neg", "", {.l1 = 0}, non_negative, 0},
    {NULL, NULL, {.l1 = 0}, NULL, 0},
};

/* --- reading ---------------------------------------------------------------------------------- */
static snug_status refuse(const rule_row *rows, const char *what, const char *name,
                          snug_error *err) {
    char list[160] = "";
    for (const rule_row *row = rows; row->name; row++)
        sn_text_list(list, sizeof list, row->name);
    return sn_refuse_name(what, name, list, err);
}

static snug_status set_axes(const sn_option *o, int rank, uint32_t *axes, snug_error *err) {
    sn_option one = *o;
    uint32_t found = 0;
    for (const char *at = o->value; sn_text_item(&at, one.value, sizeof one.value);) {
        double axis;
        SNUG_TRY(sn_option_real(&one, &axis, err));
        axis += axis < 0 ? rank : 0;
        if (axis != floor(axis) || axis < 0 || axis >= rank)
            return sn_fail(err, SNUG_E_INVALID, "axis=%s of a weight of %d axes", o->value, rank);
        found |= 1u << (int)axis;
    }
    *axes = found;
    return SNUG_OK;
}

static snug_status set_option(const rule_row *row, const sn_option *o, int rank, rule *r,
                              snug_error *err) {
    static const struct {
        const char *key;
        size_t offset;
    } numbers[] = {{"l1", offsetof(rule, l1)},
                   {"l2", offsetof(rule, l2)},
                   {"factor", offsetof(rule, factor)},
                   {"min_value", offsetof(rule, min_value)},
                   {"max_value", offsetof(rule, max_value)},
                   {"rate", offsetof(rule, rate)}};
    if (!sn_text_has(row->settings, o->key))
        return sn_fail(err, SNUG_E_INVALID, "%s has no setting '%s'%s%s", row->name, o->key,
                       row->settings[0] ? "; it has " : "", row->settings);
    if (strcmp(o->key, "axis") == 0)
        return set_axes(o, rank, &r->axes, err);
    if (strcmp(o->key, "mode") == 0) {
        r->columns = sn_same_name(o->value, "columns");
        return r->columns || sn_same_name(o->value, "rows")
                   ? SNUG_OK
                   : sn_fail(err, SNUG_E_INVALID, "mode=%s; it is rows or columns", o->value);
    }
    size_t i = 0;
    while (strcmp(o->key, numbers[i].key) != 0)
        i++;
    double value;
    SNUG_TRY(sn_option_real(o, &value, err));
    if (value < 0)
        return sn_fail(err, SNUG_E_INVALID, "%s: %s=%s is negative", row->name, o->key, o->value);
    *(double *)((char *)r + numbers[i].offset) = value;
    return SNUG_OK;
}

static snug_status parse(const rule_row *rows, const char *what, const char *text, int rank,
                         const rule_row **row, rule *out, snug_error *err) {
    char name[48];
    SNUG_TRY(sn_option_name(text, name, sizeof name, err));
    const rule_row *found = rows;
    while (found->name && !sn_same_name(found->name, name))
        found++;
    if (!found->name)
        return refuse(rows, what, name, err);
    if (found->rank && found->rank != rank)
        return sn_fail(err, SNUG_E_SHAPE, "%s is of %d axes, this weight has %d", found->name,
                       found->rank, rank);
    rule r = found->defaults;
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(found, &option, rank, &r, err));
    }
    if (rank == 0 || r.axes >> rank != 0)
        return sn_fail(err, SNUG_E_SHAPE, "%s on a weight of %d axes", found->name, rank);
    *row = found;
    *out = r;
    return SNUG_OK;
}

static sn_value build(sn_builder *b, const rule_row *rows, const char *what, const char *text,
                      sn_value x) {
    const rule_row *row;
    rule r;
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, x)->rank;
    if (parse(rows, what, text, rank, &row, &r, &b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return row->build(b, &r, x);
}

sn_value sn_regularizer_build(sn_builder *b, const char *text, sn_value x) {
    return build(b, regularizers, "regulariser", text, x);
}

sn_value sn_constraint_build(sn_builder *b, const char *text, sn_value w) {
    return build(b, constraints, "constraint", text, w);
}

snug_status sn_rules_check(const sn_net_var *v, snug_error *err) {
    const rule_row *row;
    rule r;
    if (v->regularizer && v->regularizer[0])
        SNUG_TRY(parse(regularizers, "regulariser", v->regularizer, v->type.rank, &row, &r, err));
    if (v->constraint && v->constraint[0])
        SNUG_TRY(parse(constraints, "constraint", v->constraint, v->type.rank, &row, &r, err));
    return SNUG_OK;
}
