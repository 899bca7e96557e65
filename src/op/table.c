/* table.c: the columns of ops.def that the room `op` owns, as rows; finding a row by its name; and
 * the one way to apply a row to types.
 *
 * 1. sn_ops[op] is the row of `op`; ids and rows come from the same file in the same order.
 * 2. A rule that the table names and nobody wrote does not link: rules.h declares them from the
 *    table.
 * 3. sn_op_infer writes n_out and out[] only on success. */
#include "op/rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define VARIADIC                      1, SN_MAX_IN
#define RANGE(min, max)               min, max
#define ARITY(...)                    ARITY_PICK(__VA_ARGS__, ARITY_RANGE, ARITY_ONE, )(__VA_ARGS__)
#define ARITY_PICK(a, b, chosen, ...) chosen
#define ARITY_ONE(n)                  .min_in = n, .max_in = n
#define ARITY_RANGE(min, max)         .min_in = min, .max_in = max
#define NOTHING                       0u
#define IN(i)                         SN_READS_IN(i)
#define OUT(i)                        SN_READS_OUT(i)
#define NO                            false
#define YES                           true

const sn_op_row sn_ops[SN_N_OPS] = {
#define SNUG_OP(op_name, n, family, shape_rule, grad, read, in_place, axis_rule, eff, acc, build,  \
                act, flops_rule, ...)                                                              \
    [SN_OP_##op_name] = {.name = #op_name,                                                         \
                         ARITY(n),                                                                 \
                         .attrs = &sn_family_##family,                                             \
                         .shape = sn_shape_##shape_rule,                                           \
                         .reads = read,                                                            \
                         .inplace = SN_INPLACE_##in_place,                                         \
                         .axes = sn_axes_##axis_rule,                                              \
                         .effect = SN_##eff,                                                       \
                         .accumulates = acc,                                                       \
                         .fuses = SN_ACT_##act,                                                    \
                         .flops = sn_flops_##flops_rule},
#include "op/ops.def"
#undef SNUG_OP
};

/* --- names ------------------------------------------------------------------------------------ */
#define MAX_NAME 31

/* Edits (insert, delete, replace) between two names of at most MAX_NAME characters. */
static int edit_distance(const char *a, const char *b) {
    const size_t n_a = strlen(a), n_b = strlen(b);
    assert(n_a <= MAX_NAME && n_b <= MAX_NAME);
    int row[MAX_NAME + 1];
    for (size_t j = 0; j <= n_b; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n_b; j++) {
            const int replaced = diagonal + (a[i - 1] != b[j - 1]);
            const int moved = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = replaced < moved ? replaced : moved;
        }
    }
    return row[n_b];
}

/* Up to three nearest names, equals in table order, no further than a third of the letters. */
static void print_near(const char *name, char *text, size_t size) {
    const int limit = 1 + (int)strlen(name) / 3;
    int n_found = 0;
    size_t used = 0;
    text[0] = '\0';
    if (strlen(name) > MAX_NAME)
        return;
    for (int distance = 1; distance <= limit && n_found < 3; distance++) {
        for (int i = 0; i < SN_N_OPS && n_found < 3; i++) {
            if (edit_distance(name, sn_ops[i].name) != distance)
                continue;
            const char *before = n_found == 0 ? "; did you mean " : ", ";
            used += (size_t)snprintf(text + used, size - used, "%s%s", before, sn_ops[i].name);
            n_found++;
        }
    }
}

snug_status sn_op_find(const char *name, sn_op *out, snug_error *err) {
    for (int i = 0; i < SN_N_OPS; i++) {
        if (strcmp(sn_ops[i].name, name) == 0) {
            *out = (sn_op)i;
            return SNUG_OK;
        }
    }
    char near[3 * (MAX_NAME + 20)];
    print_near(name, near, sizeof near);
    if (near[0] == '\0')
        snprintf(near, sizeof near, "; docs/ops.md lists all %d", SN_N_OPS);
    return sn_fail(err, SNUG_E_INVALID, "there is no operator '%.64s'%s", name, near);
}

/* --- applying a row --------------------------------------------------------------------------- */
snug_status sn_op_check_arity(sn_op op, int n_in, snug_error *err) {
    if ((int)op < 0 || op >= SN_N_OPS)
        return sn_fail(err, SNUG_E_INVALID, "there is no operator number %d in the table", (int)op);
    const sn_op_row *row = &sn_ops[op];
    if (n_in >= row->min_in && n_in <= row->max_in)
        return SNUG_OK;
    if (row->min_in == row->max_in)
        return sn_fail(err, SNUG_E_INVALID, "%s takes %d inputs, got %d", row->name, row->min_in,
                       n_in);
    return sn_fail(err, SNUG_E_INVALID, "%s takes %d to %d inputs, got %d", row->name, row->min_in,
                   row->max_in, n_in);
}

/* What the kind of a field alone says about its words; the rest is the shape rule's. */
static snug_status check_field(const sn_opdesc *d, const sn_field *f, snug_error *err) {
    const int64_t value = d->attrs.word[f->word];
    if (sn_field_is_param(f))
        return SNUG_OK;
    const char *name = sn_op_name(d);
    if (f->kind == SN_FIELD_DTYPE && (value < 0 || value >= SNUG_OPAQUE))
        return sn_fail(err, SNUG_E_INVALID, "%s: %s=%lld is no element type of a tensor", name,
                       f->name, (long long)value);
    if (f->kind == SN_FIELD_ACT && (value < 0 || value >= SN_N_ACTS))
        return sn_fail(err, SNUG_E_INVALID, "%s: %s=%lld is no activation (0 to %d)", name, f->name,
                       (long long)value, SN_N_ACTS - 1);
    if (f->kind == SN_FIELD_LIST && (value < 0 || value > SNUG_MAX_RANK))
        return sn_fail(err, SNUG_E_INVALID, "%s: %s has %lld entries, a list holds 0 to %d", name,
                       f->name, (long long)value, SNUG_MAX_RANK);
    return SNUG_OK;
}

static snug_status check_inputs(const sn_opdesc *d, snug_error *err) {
    for (int i = 0; i < d->n_in; i++) {
        const snug_status status = sn_type_check(&d->in[i], true, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "%s: input %d", sn_op_name(d), i);
    }
    return SNUG_OK;
}

static snug_status check_outputs(const sn_opdesc *d, snug_error *err) {
    for (int i = 0; i < d->n_out; i++) {
        const snug_status status = sn_type_check(&d->out[i], true, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "%s: output %d", sn_op_name(d), i);
    }
    return SNUG_OK;
}

snug_status sn_op_infer_checked(sn_opdesc *d, snug_error *err) {
    const sn_attr_family *family = sn_ops[d->op].attrs;
    for (int i = 0; i < family->n_fields; i++)
        SNUG_TRY(check_field(d, &family->fields[i], err));
    SNUG_TRY(sn_ops[d->op].shape(d, err));
    return check_outputs(d, err);
}

snug_status sn_op_infer(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_op_check_arity(d->op, d->n_in, err));
    SNUG_TRY(check_inputs(d, err));
    const sn_attr_family *family = sn_ops[d->op].attrs;
    int64_t attrs[SN_ATTR_WORDS]; /* what a shape rule writes; the whole is large */
    memcpy(attrs, &d->attrs, family->bytes);
    const int n_out = d->n_out;
    snug_type out[SN_MAX_OUT];
    memcpy(out, d->out, sizeof out);
    const snug_status status = sn_op_infer_checked(d, err);
    if (status != SNUG_OK) {
        memcpy(&d->attrs, attrs, family->bytes);
        d->n_out = n_out;
        memcpy(d->out, out, sizeof out);
    }
    return status;
}

bool sn_op_is_by_element(sn_op op) {
    const sn_op_row *row = &sn_ops[op];
    return row->effect == SN_PURE &&
           (row->axes == sn_axes_elementwise || row->axes == sn_axes_broadcast ||
            row->axes == sn_axes_reshape || row->axes == sn_axes_transpose ||
            row->axes == sn_axes_broadcast_to);
}

/* Halves would be rounded in each part: sums of them are values of another type. */
static bool adds_up(const sn_opdesc *d) {
    bool all = true;
    for (int k = 0; k < d->n_out; k++)
        all = all && sn_dtype_sums(d->out[k].dtype) == d->out[k].dtype;
    return all;
}

void sn_op_ways(const sn_opdesc *d, sn_ways *ways) {
    int kept = 0;
    ways->n = 0;
    sn_ops[d->op].axes(d, ways);
    for (int i = 0; i < ways->n; i++)
        if (!ways->way[i].sum || adds_up(d))
            ways->way[kept++] = ways->way[i];
    ways->n = kept;
}
