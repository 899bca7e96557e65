/* open.c: a feed from what a user types: a file name, or a recipe "KIND:SHAPE@NUMBER...".
 *
 *     images.npy  train-images-idx3-ubyte.gz  mnist.npz:x_train  cifar10:data_batch_1.bin
 *     zeros:100x10   constant:100x10@0.5
 *     normal:256x1024x1024x3@7   uniform:..@SEED   truncated:..@SEED
 *     labels:256@7@10          i32 in [0, 10) */
#include "base/real.h"
#include "base/rng.h"
#include "base/size.h"
#include "model/array_file.h"
#include "model/cifar.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    sn_recipe_kind kind;
    int n_numbers; /* behind '@' */
    const char *form;
} recipe_row;

static const recipe_row recipes[] = {
    {"zeros", SN_RECIPE_CONSTANT, 0, "zeros:SHAPE"},
    {"constant", SN_RECIPE_CONSTANT, 1, "constant:SHAPE@VALUE"},
    {"normal", SN_RECIPE_NORMAL, 1, "normal:SHAPE@SEED"},
    {"uniform", SN_RECIPE_UNIFORM, 1, "uniform:SHAPE@SEED"},
    {"truncated", SN_RECIPE_TRUNCATED, 1, "truncated:SHAPE@SEED"},
    {"labels", SN_RECIPE_LABELS, 2, "labels:SHAPE@SEED@CLASSES"},
};

static const recipe_row *find_recipe(const char *source) {
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const size_t n = strlen(recipes[i].name);
        if (strncmp(source, recipes[i].name, n) == 0 && source[n] == ':')
            return &recipes[i];
    }
    return NULL;
}

static snug_status wrong(const recipe_row *row, const char *source, snug_error *err) {
    return sn_fail(err, SNUG_E_INVALID, "'%.200s' is not of the form %s, e.g. %s:256x32x32x3%s",
                   source, row->form, row->name,
                   row->n_numbers == 0   ? ""
                   : row->n_numbers == 1 ? "@7"
                                         : "@7@10");
}

/* Decimal digits below 2^63; *at is moved behind them. */
static bool take_count(const char **at, int64_t *out) {
    const char *begin = *at;
    int64_t n = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (!sn_i64_mul(n, 10, &n) || !sn_i64_add(n, **at - '0', &n))
            return false;
    *out = n;
    return *at > begin;
}

static snug_status parse_dims(const recipe_row *row, const char *source, const char **at,
                              snug_type *type, snug_error *err) {
    size_t bytes;
    for (bool more = true; more; *at += more) {
        if (type->rank == SNUG_MAX_RANK || !take_count(at, &type->dims[type->rank]))
            return wrong(row, source, err);
        type->rank++;
        more = **at == 'x';
    }
    const snug_status status = snug_type_bytes(type, &bytes, err);
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "'%.200s'", source);
}

/* What stands behind the shape: a value, or a seed and a number of classes. */
static snug_status parse_numbers(const recipe_row *row, const char *source, const char *at,
                                 sn_recipe *out, snug_error *err) {
    int64_t seed = 0, classes = 1;
    bool ok = row->n_numbers == 0 || *at++ == '@';
    if (ok && row->n_numbers > 0 && row->kind == SN_RECIPE_CONSTANT) {
        ok = sn_real_parse(at, &at, &out->a);
    } else if (ok && row->n_numbers > 0) {
        ok = take_count(&at, &seed);
    }
    if (ok && row->n_numbers > 1)
        ok = *at++ == '@' && take_count(&at, &classes) && classes >= 1 && classes <= INT32_MAX;
    if (!ok || *at)
        return wrong(row, source, err);
    out->key = sn_rng_key((uint64_t)seed, 0);
    out->b = (double)classes;
    return SNUG_OK;
}

static snug_status open_recipe(snug_engine *e, const recipe_row *row, const char *source,
                               snug_feed **out, snug_error *err) {
    snug_type type = {.dtype = row->kind == SN_RECIPE_LABELS ? SNUG_I32 : SNUG_F32};
    const char *at = source + strlen(row->name) + 1;
    sn_recipe r = {.kind = row->kind, .a = 0, .b = 1};
    SNUG_TRY(parse_dims(row, source, &at, &type, err));
    SNUG_TRY(parse_numbers(row, source, at, &r, err));
    return sn_feed_from_recipe(e, &type, &r, out, err);
}

/* "norml:256x10@7": nobody calls a file that. */
static bool looks_like_recipe(const char *source) {
    const size_t n = strspn(source, "abcdefghijklmnopqrstuvwxyz");
    return n > 0 && source[n] == ':' && source[n + 1] >= '0' && source[n + 1] <= '9';
}

static snug_status refuse_recipe(const char *source, snug_error *err) {
    char forms[200] = "";
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const size_t n = strlen(forms);
        snprintf(forms + n, sizeof forms - n, "%s%s", i ? ", " : "", recipes[i].form);
    }
    return sn_fail(err, SNUG_E_INVALID, "'%.100s' is neither a file nor a recipe; there are %s",
                   source, forms);
}

snug_status snug_feed_open(snug_engine *engine, const char *source, snug_feed **out,
                           snug_error *err) {
    SNUG_NEEDS(err, engine && source);
    const recipe_row *row = find_recipe(source);
    if (sn_cifar_is(source))
        return sn_feed_from_cifar(engine, source, out, err);
    if (row)
        return open_recipe(engine, row, source, out, err);
    const snug_status status = sn_feed_from_array_file(engine, source, out, err);
    return status == SNUG_E_IO && looks_like_recipe(source) ? refuse_recipe(source, err) : status;
}
