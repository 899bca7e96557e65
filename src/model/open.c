/* open.c: a feed from what a user types: a file name, or a recipe "KIND:SHAPE@NUMBER...".
 *
 *     images.npy  train-images-idx3-ubyte.gz
 *     zeros:100x10   constant:100x10@0.5   normal:256x1024x1024x3@7   uniform:..@SEED   truncated:..@SEED
 *     labels:256@7@10          i32 in [0, 10)
 */
#include "base/rng.h"
#include "base/size.h"
#include "model/array_file.h"

#include <stdlib.h>
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
    return sn_fail(err, SNUG_E_INVALID, "'%s' is not of the form %s, e.g. %s:256x32x32x3%s", source, row->form, row->name,
                   row->n_numbers == 0 ? "" : row->n_numbers == 1 ? "@7" : "@7@10");
}

static snug_status parse_dims(const recipe_row *row, const char *source, const char **at, snug_type *type,
                              snug_error *err) {
    size_t bytes;
    do {
        char *end;
        const long long dim = strtoll(*at, &end, 10);
        if (end == *at || dim < 0 || dim == 0x7fffffffffffffffLL || type->rank == SNUG_MAX_RANK)
            return wrong(row, source, err);
        type->dims[type->rank++] = dim;
        *at = end;
    } while (*(*at) == 'x' && (*at)++);
    return snug_type_bytes(type, &bytes, err);
}

static snug_status parse_numbers(const recipe_row *row, const char *source, const char *at, double *numbers,
                                 snug_error *err) {
    for (int i = 0; i < row->n_numbers; i++) {
        char *end;
        if (*at != '@')
            return wrong(row, source, err);
        numbers[i] = strtod(at + 1, &end);
        if (end == at + 1)
            return wrong(row, source, err);
        at = end;
    }
    return *at ? wrong(row, source, err) : SNUG_OK;
}

static snug_status open_recipe(snug_engine *e, const recipe_row *row, const char *source, snug_feed **out,
                               snug_error *err) {
    snug_type type = {.dtype = row->kind == SN_RECIPE_LABELS ? SNUG_I32 : SNUG_F32};
    const char *at = source + strlen(row->name) + 1;
    double numbers[2] = {0, 0};
    SNUG_TRY(parse_dims(row, source, &at, &type, err));
    SNUG_TRY(parse_numbers(row, source, at, numbers, err));
    sn_recipe r = {.kind = row->kind, .a = 0, .b = 1};
    if (row->kind == SN_RECIPE_CONSTANT)
        r.a = numbers[0];
    else if (numbers[0] < 0 || numbers[0] > 9e15)
        return wrong(row, source, err);
    else
        r.key = sn_rng_key((uint64_t)numbers[0], 0);
    if (row->kind == SN_RECIPE_LABELS) {
        if (numbers[1] < 1 || numbers[1] > 2147483647.0)
            return wrong(row, source, err);
        r.b = numbers[1];
    }
    return sn_feed_from_recipe(e, &type, &r, out, err);
}

snug_status snug_feed_open(snug_engine *engine, const char *source, snug_feed **out, snug_error *err) {
    const recipe_row *row = find_recipe(source);
    return row ? open_recipe(engine, row, source, out, err) : sn_feed_from_array_file(engine, source, out, err);
}
