/* attrs_text.c: attributes as text, "stride=2,2 act=relu rate=p3", and back, from the schema alone.
 *
 * 1. parse(print(a)) equals a: structure that differs from the default is printed, and so are
 *    parameters that have a slot (a vector of them up to its last slot).
 * 2. Text may come from a file: every number is range checked, *out is written only on success. */
#include "op/rules.h"

#include "base/real.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const act_names[SN_N_ACTS] = {
#define ACT_NAME(name) #name,
    SN_ACT_MAP(ACT_NAME)
#undef ACT_NAME
};

/* --- printing --------------------------------------------------------------------------------- */
typedef struct {
    char *text;
    size_t size, used;
} sink;

static void put(sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(sink *s, const char *format, ...) {
    if (s->used + 1 >= s->size)
        return;
    va_list args;
    va_start(args, format);
    const int n = sn_print_list(s->text + s->used, s->size - s->used, format, args);
    va_end(args);
    const size_t left = s->size - s->used - 1;
    s->used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
}

static bool is_default(const sn_field *f, const sn_attrs *a, const sn_attrs *plain) {
    const int n = f->kind == SN_FIELD_LIST ? 1 : f->n;
    return memcmp(&a->word[f->word], &plain->word[f->word], (size_t)n * sizeof a->word[0]) == 0;
}

static void put_slots(sink *s, const int64_t *slots, int n) {
    while (n > 1 && slots[n - 1] < 0)
        n--;
    for (int i = 0; i < n; i++)
        put(s, "%sp%lld", i ? "," : "", (long long)slots[i]);
}

static void put_numbers(sink *s, const int64_t *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        put(s, "%s%lld", i ? "," : "", (long long)v[i]);
}

static void put_field(sink *s, const sn_field *f, const int64_t *words) {
    put(s, "%s%s=", s->used > 0 ? " " : "", f->name);
    if (sn_field_is_param(f))
        put_slots(s, words, f->n);
    else if (f->kind == SN_FIELD_DTYPE)
        put(s, "%s", snug_dtype_name((snug_dtype)words[0]));
    else if (f->kind == SN_FIELD_ACT)
        put(s, "%s", act_names[words[0]]);
    else if (f->kind == SN_FIELD_LIST)
        put_numbers(s, words + 1, words[0]);
    else
        put_numbers(s, words, f->n);
}

const char *sn_attrs_print(sn_op op, const sn_attrs *a, char *text, size_t size) {
    const sn_attr_family *family = sn_ops[op].attrs;
    sn_attrs plain;
    sn_attrs_default(op, &plain);
    sink s = {text, size, 0};
    if (size > 0)
        text[0] = '\0';
    for (int i = 0; i < family->n_fields; i++) {
        if (!is_default(&family->fields[i], a, &plain))
            put_field(&s, &family->fields[i], &a->word[family->fields[i].word]);
    }
    return text;
}

/* --- parsing ---------------------------------------------------------------------------------- */
#define MAX_ITEM 63

typedef struct {
    sn_op op;
    const sn_param_maker *maker; /* may be NULL */
    const char *at;              /* what is left of the text */
} reader;

/* Takes the characters before any of `stops` (or the end) off the text. */
static snug_status take(reader *r, const char *stops, char item[MAX_ITEM + 1], snug_error *err) {
    const size_t n = strcspn(r->at, stops);
    if (n == 0 || n > MAX_ITEM)
        return sn_fail(err, SNUG_E_FORMAT,
                       "attributes of %s: a name or value is missing or too long at '%.20s'",
                       sn_ops[r->op].name, r->at);
    memcpy(item, r->at, n);
    item[n] = '\0';
    r->at += n;
    return SNUG_OK;
}

static snug_status bad_value(const reader *r, const sn_field *f, const char *item, const char *want,
                             snug_error *err) {
    return sn_fail(err, SNUG_E_FORMAT, "attributes of %s: %s=%s; it must be %s", sn_ops[r->op].name,
                   f->name, item, want);
}

static bool parse_int(const char *item, int64_t *out) {
    char *end;
    errno = 0;
    const long long v = strtoll(item, &end, 10);
    if (end == item || *end != '\0' || errno != 0)
        return false;
    *out = v;
    return true;
}

static bool parse_real(const char *item, double *out) {
    const char *end;
    return sn_real_parse(item, &end, out) && *end == '\0';
}

/* "p3" is slot 3; a literal gets a slot from the maker. */
static snug_status parse_slot(const reader *r, const sn_field *f, const char *item, int64_t *out,
                              snug_error *err) {
    if (item[0] == 'p') {
        if (item[1] < '0' || item[1] > '9' || !parse_int(item + 1, out) || *out > INT32_MAX)
            return bad_value(r, f, item, "a parameter slot such as p3", err);
        return SNUG_OK;
    }
    int64_t key = 0;
    double real = 0;
    const bool is_key = f->kind == SN_FIELD_KEY;
    if (is_key ? !parse_int(item, &key) : !parse_real(item, &real))
        return bad_value(
            r, f, item,
            is_key ? "a slot such as p3 or an integer" : "a slot such as p3 or a number", err);
    if (r->maker == NULL)
        return bad_value(r, f, item, "a parameter slot such as p3: no literals here", err);
    return r->maker->add(r->maker->ctx, is_key, real, key, out, err);
}

static snug_status parse_act(const reader *r, const sn_field *f, const char *item, int64_t *out,
                             snug_error *err) {
    for (int i = 0; i < SN_N_ACTS; i++) {
        if (strcmp(item, act_names[i]) == 0) {
            *out = i;
            return SNUG_OK;
        }
    }
    char names[80];
    sink s = {names, sizeof names, 0};
    for (int i = 0; i < SN_N_ACTS; i++)
        put(&s, "%s%s", i == 0 ? "" : i < SN_N_ACTS - 1 ? ", " : " or ", act_names[i]);
    return bad_value(r, f, item, names, err);
}

static snug_status parse_item(const reader *r, const sn_field *f, const char *item, int64_t *out,
                              snug_error *err) {
    snug_dtype dtype;
    if (sn_field_is_param(f))
        return parse_slot(r, f, item, out, err);
    if (f->kind == SN_FIELD_ACT)
        return parse_act(r, f, item, out, err);
    if (f->kind == SN_FIELD_DTYPE) {
        SNUG_TRY(sn_dtype_parse(item, &dtype, err));
        *out = dtype;
        return SNUG_OK;
    }
    return parse_int(item, out) ? SNUG_OK : bad_value(r, f, item, "an integer", err);
}

/* The comma-separated values of one field. A vector is whole; a list and slots may be shorter. */
static snug_status parse_values(reader *r, const sn_field *f, sn_attrs *a, snug_error *err) {
    const bool is_list = f->kind == SN_FIELD_LIST;
    int64_t *words = &a->word[f->word + is_list];
    int n = 0;
    for (bool more = true; more; n++) {
        char item[MAX_ITEM + 1];
        SNUG_TRY(take(r, ", ", item, err));
        if (n == f->n)
            return sn_fail(err, SNUG_E_FORMAT, "attributes of %s: %s has more than %d values",
                           sn_ops[r->op].name, f->name, f->n);
        SNUG_TRY(parse_item(r, f, item, &words[n], err));
        more = *r->at == ',';
        r->at += more;
    }
    if (is_list)
        a->word[f->word] = n;
    else if (n < f->n && !sn_field_is_param(f))
        return sn_fail(err, SNUG_E_FORMAT, "attributes of %s: %s has %d values; it must have %d",
                       sn_ops[r->op].name, f->name, n, f->n);
    return SNUG_OK;
}

static snug_status unknown_field(const reader *r, const char *name, snug_error *err) {
    const sn_attr_family *family = sn_ops[r->op].attrs;
    char names[160] = "";
    sink s = {names, sizeof names, 0};
    for (int i = 0; i < family->n_fields; i++)
        put(&s, "%s%s", i ? ", " : "", family->fields[i].name);
    return sn_fail(err, SNUG_E_FORMAT, "%s has no attribute '%s'; it has %s", sn_ops[r->op].name,
                   name, family->n_fields > 0 ? names : "none");
}

static snug_status parse_field(reader *r, uint32_t *seen, sn_attrs *a, snug_error *err) {
    const sn_attr_family *family = sn_ops[r->op].attrs;
    char name[MAX_ITEM + 1];
    SNUG_TRY(take(r, "= ", name, err));
    int i = 0;
    while (i < family->n_fields && strcmp(family->fields[i].name, name) != 0)
        i++;
    if (i == family->n_fields)
        return unknown_field(r, name, err);
    if (*seen >> i & 1)
        return sn_fail(err, SNUG_E_FORMAT, "attributes of %s: %s is there twice",
                       sn_ops[r->op].name, name);
    *seen |= 1u << i;
    if (*r->at != '=')
        return sn_fail(err, SNUG_E_FORMAT, "attributes of %s: '=' is missing after %s",
                       sn_ops[r->op].name, name);
    r->at++;
    return parse_values(r, &family->fields[i], a, err);
}

snug_status sn_attrs_parse(sn_op op, const char *text, const sn_param_maker *maker, sn_attrs *out,
                           snug_error *err) {
    reader r = {op, maker, text};
    sn_attrs a;
    uint32_t seen = 0;
    sn_attrs_default(op, &a);
    for (r.at += strspn(r.at, " "); *r.at != '\0'; r.at += strspn(r.at, " "))
        SNUG_TRY(parse_field(&r, &seen, &a, err));
    *out = a;
    return SNUG_OK;
}
