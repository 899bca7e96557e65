/* record_ops.c: the calls of record.h that append operators: rows of the table, numbers, random
 * draws, parts of tensors, reads and updates of variables. */
#include "record/recording.h"

#include "base/rng.h"

#include <string.h>

/* Numbers in attributes are parameters of the recording. */
static snug_status add_number(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                              snug_error *err) {
    sn_record_call *c = ctx;
    *slot = is_key ? sn_record_key(c, key) : sn_record_number(c, real);
    return sn_builder_done(&c->b, err);
}

/* Appends the row and gives its first n_out outputs. */
static void append(sn_record_call *c, const char *name, const char *attributes, const sn_value *in,
                   int n_in, sn_value *outs) {
    const sn_param_maker maker = {c, add_number};
    sn_op op;
    sn_attrs attrs;
    snug_error err;
    if (c->b.error.code != SNUG_OK)
        return;
    if (sn_op_find(name, &op, &err) != SNUG_OK ||
        sn_attrs_parse(op, attributes ? attributes : "", &maker, &attrs, &err) != SNUG_OK) {
        c->b.error = err;
        return;
    }
    sn_build_all(&c->b, op, &attrs, in, n_in, outs);
}

static void give_all(sn_record_call *c, const sn_value *outs, snug_tensor **out, int n) {
    for (int i = 0; i < n; i++)
        out[i] = i < SN_MAX_OUT && sn_value_ok(outs[i]) ? sn_record_give(c, outs[i]) : NULL;
}

/* After an error the handles are gone: nobody shall see them. */
static snug_status ended(sn_record_call *c, snug_tensor **out, int n, snug_error *err) {
    const snug_status status = sn_record_end(c, err);
    for (int i = 0; status != SNUG_OK && i < n; i++)
        out[i] = NULL;
    return status;
}

static snug_status check_count(const char *op, int n_in, snug_error *err) {
    return n_in >= 0 && n_in <= SN_MAX_IN
               ? SNUG_OK
               : sn_fail(err, SNUG_E_INVALID, "%s: %d inputs; at most %d are possible", op, n_in,
                         SN_MAX_IN);
}

snug_status snug_record_op(snug_recorder *r, const char *op, const char *attributes,
                           snug_tensor *const *inputs, int n_in, snug_tensor **outputs, int n_out,
                           snug_error *err) {
    SNUG_NEEDS(err, r && op && (inputs || n_in == 0) && (outputs || n_out == 0));
    sn_record_call c;
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    SNUG_TRY(check_count(op, n_in, err));
    SNUG_TRY(sn_record_begin(r, &c, err));
    for (int i = 0; i < n_in; i++)
        in[i] = sn_record_use(&c, inputs[i]);
    append(&c, op, attributes, in, n_in, outs);
    if (c.b.error.code == SNUG_OK)
        give_all(&c, outs, outputs, n_out);
    return ended(&c, outputs, n_out, err);
}

/* --- values without bytes --------------------------------------------------------------------- */
snug_status snug_tensor_full(snug_recorder *r, const snug_type *type, double value,
                             snug_tensor **out, snug_error *err) {
    SNUG_NEEDS(err, r && type && out);
    sn_record_call c;
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(sn_record_begin(r, &c, err));
    *out = sn_record_give(&c, sn_build_fill(&c.b, type, value));
    return ended(&c, out, 1, err);
}

snug_status snug_tensor_number(snug_recorder *r, snug_dtype dtype, double value, snug_tensor **out,
                               snug_error *err) {
    SNUG_NEEDS(err, r && out);
    return snug_tensor_full(r, &(snug_type){.dtype = dtype}, value, out, err);
}

snug_status snug_tensor_random(snug_recorder *r, const snug_type *type, snug_init_kind kind,
                               double a, double b, snug_tensor **out, snug_error *err) {
    SNUG_NEEDS(err, r && type && out);
    static const int kinds[] = {[SNUG_INIT_UNIFORM] = SN_RANDOM_UNIFORM,
                                [SNUG_INIT_NORMAL] = SN_RANDOM_NORMAL,
                                [SNUG_INIT_TRUNCATED] = SN_RANDOM_TRUNCATED};
    sn_record_call c;
    sn_attrs attrs;
    if ((unsigned)kind > SNUG_INIT_TRUNCATED)
        return sn_fail(err, SNUG_E_INVALID, "there are no random numbers of kind %d", (int)kind);
    if (kind == SNUG_INIT_CONSTANT)
        return snug_tensor_full(r, type, a, out, err);
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(sn_record_begin(r, &c, err));
    sn_attrs_default(SN_OP_random, &attrs);
    attrs.random.dims.n = type->rank;
    memcpy(attrs.random.dims.v, type->dims, sizeof type->dims);
    attrs.random.dtype = type->dtype;
    attrs.random.kind = kinds[kind];
    attrs.random.key = sn_record_draw(&c);
    attrs.random.low = sn_record_number(&c, a);
    attrs.random.high = sn_record_number(&c, b);
    *out = sn_record_give(&c, sn_build(&c.b, SN_OP_random, &attrs, NULL, 0));
    return ended(&c, out, 1, err);
}

/* --- parts ------------------------------------------------------------------------------------ */
static snug_status share_rows(snug_tensor *t, const snug_type *type, size_t offset,
                              snug_tensor **out, snug_error *err) {
    SNUG_TRY(sn_tensor_create(t->r, type, out, err));
    sn_storage_hold(t->storage);
    sn_tensor_make_ready(*out, t->storage, t->offset + offset);
    return SNUG_OK;
}

snug_status snug_tensor_rows(snug_tensor *t, int64_t first, int64_t n, snug_tensor **out,
                             snug_error *err) {
    SNUG_NEEDS(err, t && out);
    snug_type type = t->type;
    if (type.rank == 0 || first < 0 || n < 0 || n > type.dims[0] || first > type.dims[0] - n)
        return sn_fail(err, SNUG_E_INVALID, "%lld rows from %lld on of a tensor of %lld rows",
                       (long long)n, (long long)first, type.rank ? (long long)type.dims[0] : 0);
    const int64_t rows = type.dims[0];
    type.dims[0] = n;
    if (t->state == SN_READY && t->r->now == t->r->main && sn_tensor_tapes(t) == 0) {
        size_t bytes;
        SNUG_TRY(snug_type_bytes(&t->type, &bytes, err));
        const size_t row = rows > 0 ? bytes / (size_t)rows : 0;
        return share_rows(t, &type, row * (size_t)first, out, err);
    }
    sn_record_call c;
    SNUG_TRY(sn_record_begin(t->r, &c, err));
    const sn_value x = sn_record_use(&c, t);
    *out = sn_record_give(&c, sn_build_part(&c.b, x, 0, first, n));
    return ended(&c, out, 1, err);
}

/* --- variables -------------------------------------------------------------------------------- */
static snug_status check_assigned(const snug_variable *v, const snug_tensor *t, snug_error *err) {
    char want[192], have[192];
    if (sn_type_equal(&v->type, &t->type))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "variable '%s' is %s; it cannot become %s", v->name,
                   snug_type_print(&v->type, want, sizeof want),
                   snug_type_print(&t->type, have, sizeof have));
}

snug_status snug_variable_assign(snug_variable *v, snug_tensor *value, snug_error *err) {
    SNUG_NEEDS(err, v && value);
    sn_record_call c;
    SNUG_TRY(check_assigned(v, value, err));
    SNUG_TRY(sn_record_begin(v->r, &c, err));
    const sn_value in[2] = {sn_record_version(&c, v), sn_record_use(&c, value)};
    sn_build(&c.b, SN_OP_assign, NULL, in, 2);
    if (c.b.error.code == SNUG_OK)
        c.b.error.code = sn_record_watch(v->r, v, &c.b.error);
    SNUG_TRY(sn_record_end(&c, err));
    v->mended = v->torn && !snug_is_tracing(v->r);
    return SNUG_OK;
}

snug_status snug_variable_update(snug_recorder *r, const char *op, const char *attributes,
                                 snug_variable *const *variables, int n_vars,
                                 snug_tensor *const *tensors, int n_tensors, snug_error *err) {
    SNUG_NEEDS(err, r && op && (variables || n_vars == 0) && (tensors || n_tensors == 0));
    SNUG_NEEDS(err, n_vars >= 0 && n_vars <= SN_MAX_IN && n_tensors >= 0 && n_tensors <= SN_MAX_IN);
    sn_record_call c;
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    SNUG_TRY(check_count(op, n_vars + n_tensors, err));
    SNUG_TRY(sn_record_begin(r, &c, err));
    for (int i = 0; i < n_vars; i++) {
        in[i] = sn_record_version(&c, variables[i]);
        if (c.b.error.code == SNUG_OK)
            c.b.error.code = variables[i]->torn && !variables[i]->mended
                                 ? sn_variable_torn(variables[i], &c.b.error)
                                 : sn_record_watch(r, variables[i], &c.b.error);
    }
    for (int i = 0; i < n_tensors; i++)
        in[n_vars + i] = sn_record_use(&c, tensors[i]);
    append(&c, op, attributes, in, n_vars + n_tensors, outs);
    return sn_record_end(&c, err);
}

/* A tensor that is nothing but numbers to come is the variable's recipe; any other is assigned. */
static bool find_recipe(const snug_tensor *t, sn_recipe *out) {
    if (t->state == SN_RECIPE)
        *out = t->recipe;
    return t->state == SN_RECIPE ||
           (t->state == SN_PENDING && !t->rec->outer && sn_recording_recipe(t->rec, t->value, out));
}

snug_status snug_variable_create(snug_recorder *r, snug_tensor *value,
                                 const snug_record_variable_options *options, snug_variable **out,
                                 snug_error *err) {
    SNUG_NEEDS(err, r && value && out);
    sn_recipe init = {.kind = SN_RECIPE_CONSTANT};
    const bool is_recipe = find_recipe(value, &init);
    snug_variable *v;
    SNUG_TRY(sn_record_variable(r, &value->type, &init, options, &v, err));
    const snug_status status = is_recipe ? SNUG_OK : snug_variable_assign(v, value, err);
    if (status == SNUG_OK)
        *out = v;
    else
        snug_variable_drop(v);
    return status;
}
