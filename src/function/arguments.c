/* arguments.c: arguments of a call as functions of the table read them.
 *
 * 1. A signature is a text, "x:T axis:I=None"; nothing of it is kept: it is short, and only what a
 * function asks for is looked up.
 * 2. Numbers become parameters of the graph: their values are no part of its structure.
 * 3. The first error sticks; getters then give zeros. */
#include "function/function_call.h"

#include "base/real.h"
#include "tensor/feed.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sn_fn_refuse(sn_fn_call *c, snug_status code, const char *format, ...) {
    if (sn_fn_failed(c))
        return;
    char text[400];
    va_list args;
    va_start(args, format);
    sn_print_list(text, sizeof text, format, args);
    va_end(args);
    sn_fail(&c->b->error, code, "%.*s: %s", (int)strcspn(c->names, " "), c->names, text);
}

snug_type sn_fn_type(const sn_fn_call *c, sn_value v) {
    return sn_fn_failed(c) || !sn_value_ok(v) ? (snug_type){.rank = 0}
                                              : *sn_graph_type(c->b->graph, v);
}

snug_dtype sn_fn_dtype_of(const sn_fn_call *c, sn_value v) {
    return sn_fn_failed(c) || !sn_value_ok(v) ? (snug_dtype)0
                                              : sn_graph_type(c->b->graph, v)->dtype;
}

/* --- the signature ---------------------------------------------------------------------------- */
/* Entry i from `at` on, or its end. */
static const char *skip_entries(const char *at, int i) {
    for (; i > 0 && *at; i--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return at;
}

int sn_fn_place(const sn_fn_call *c, const char *name) {
    const size_t n = strlen(name);
    const char *at = c->signature;
    for (int i = 0; *at; i++, at = skip_entries(at, 1))
        if (strncmp(at, name, n) == 0 && at[n] == ':')
            return i;
    return -1;
}

static bool parse_dtype(const char *name, size_t n, snug_dtype *out) {
    if (n == 3 && memcmp(name, "int", n) == 0)
        *out = SNUG_I32;
    else if (n == 5 && memcmp(name, "float", n) == 0)
        *out = SNUG_F32;
    else
        return sn_dtype_of_word(name, n, out);
    return true;
}

/* "[0,1]": into the call's scratch items. */
static snug_argument parse_list(sn_fn_call *c, const char *text) {
    snug_argument list = {.kind = SNUG_ARG_LIST};
    list.list.items = c->items + c->n_items;
    for (text++; *text && *text != ']' && c->n_items < SN_FN_MAX_ITEMS;) {
        double v;
        if (!sn_real_parse(text, &text, &v))
            break;
        c->items[c->n_items++] = (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = (int64_t)v};
        list.list.n++;
        text += *text == ',';
    }
    return list;
}

/* What stands behind '=' in an entry. */
static snug_argument parse_default(sn_fn_call *c, char kind, const char *text) {
    const size_t n = strcspn(text, " ");
    snug_argument a = {.kind = SNUG_ARG_NONE};
    const char *end;
    double v;
    if (n == 4 && strncmp(text, "None", 4) == 0)
        return a;
    if (kind == 'S')
        return (snug_argument){.kind = SNUG_ARG_TEXT, .text = text};
    if (kind == 'D' && parse_dtype(text, n, &a.dtype)) {
        a.kind = SNUG_ARG_DTYPE;
        return a;
    }
    if (strncmp(text, "True", 4) == 0 || strncmp(text, "False", 5) == 0)
        return (snug_argument){.kind = SNUG_ARG_BOOL, .integer = text[0] == 'T'};
    if (*text == '[')
        return parse_list(c, text);
    if (!sn_real_parse(text, &end, &v))
        return a;
    const bool real = memchr(text, '.', n) || memchr(text, 'e', n);
    a.kind = real ? SNUG_ARG_REAL : SNUG_ARG_INTEGER;
    if (real)
        a.real = v;
    else
        a.integer = (int64_t)v;
    return a;
}

static const snug_argument *argument_at(sn_fn_call *c, int i) {
    static const snug_argument none = {.kind = SNUG_ARG_NONE};
    if (i < 0)
        return &none;
    if (i < c->n_args && c->arg[i].kind != SNUG_ARG_NONE)
        return &c->arg[i];
    const char *const entry = skip_entries(c->signature, i);
    const size_t n = strcspn(entry, " "), colon = strcspn(entry, ":");
    if (colon + 2 >= n || entry[colon + 2] != '=')
        return &none;
    c->scratch = parse_default(c, entry[colon + 1], entry + colon + 3);
    return &c->scratch;
}

const snug_argument *sn_fn_argument(sn_fn_call *c, const char *name) {
    return argument_at(c, sn_fn_place(c, name));
}

bool sn_fn_given(sn_fn_call *c, const char *name) {
    return sn_fn_argument(c, name)->kind != SNUG_ARG_NONE;
}

/* --- settings --------------------------------------------------------------------------------- */
static bool is_number(const snug_argument *a) {
    return a->kind == SNUG_ARG_INTEGER || a->kind == SNUG_ARG_REAL || a->kind == SNUG_ARG_BOOL;
}

static double number_of(const snug_argument *a) {
    return a->kind == SNUG_ARG_REAL ? a->real : (double)a->integer;
}

/* One number of a list of one, too. */
static const snug_argument *alone(const snug_argument *a) {
    return a->kind == SNUG_ARG_LIST && a->list.n == 1 ? &a->list.items[0] : a;
}

int64_t sn_fn_int(sn_fn_call *c, const char *name) {
    const snug_argument *a = alone(sn_fn_argument(c, name));
    if (a->kind == SNUG_ARG_INTEGER || a->kind == SNUG_ARG_BOOL)
        return a->integer;
    if (a->kind == SNUG_ARG_REAL && a->real == floor(a->real) && fabs(a->real) < 9e15)
        return (int64_t)a->real;
    if (a->kind != SNUG_ARG_NONE)
        sn_fn_refuse(c, SNUG_E_INVALID, "%s must be a whole number", name);
    return 0;
}

double sn_fn_real(sn_fn_call *c, const char *name) {
    const snug_argument *a = alone(sn_fn_argument(c, name));
    if (is_number(a))
        return number_of(a);
    if (a->kind != SNUG_ARG_NONE)
        sn_fn_refuse(c, SNUG_E_INVALID, "%s must be a number", name);
    return 0;
}

bool sn_fn_flag(sn_fn_call *c, const char *name) {
    return sn_fn_int(c, name) != 0;
}

const char *sn_fn_text(sn_fn_call *c, const char *name) {
    const snug_argument *a = sn_fn_argument(c, name);
    return a->kind == SNUG_ARG_TEXT ? a->text : "";
}

/* Defaults are followed by a space. */
bool sn_fn_says(sn_fn_call *c, const char *name, const char *text) {
    const char *has = sn_fn_text(c, name);
    for (; *text && (*has | 32) == (*text | 32); text++, has++) {
    }
    return *text == 0 && (*has == 0 || *has == ' ');
}

void sn_fn_dense_only(sn_fn_call *c) {
    if (sn_fn_flag(c, "sparse"))
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "sparse=True is not in Snug: results are dense");
}

void sn_fn_bad_indices_fail(sn_fn_call *c) {
    const char *const name = "bad_indices_policy", *const policy = sn_fn_text(c, name);
    if (*policy && !sn_fn_says(c, name, "ERROR") && !sn_fn_says(c, name, "DEFAULT"))
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED,
                     "bad_indices_policy='%.20s' is not in Snug: an index that is out of range is "
                     "an error",
                     policy);
}

snug_dtype sn_fn_dtype(sn_fn_call *c, const char *name, snug_dtype otherwise) {
    const snug_argument *a = sn_fn_argument(c, name);
    snug_dtype dtype = otherwise;
    if (a->kind == SNUG_ARG_DTYPE)
        return a->dtype;
    if (a->kind == SNUG_ARG_TEXT && !parse_dtype(a->text, strlen(a->text), &dtype))
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "dtype %.40s is not known", a->text);
    return dtype;
}

static void collect(sn_fn_call *c, const char *name, const snug_argument *a, int *n) {
    if (a->kind == SNUG_ARG_LIST) {
        for (int i = 0; i < a->list.n; i++)
            collect(c, name, &a->list.items[i], n);
        return;
    }
    const bool whole =
        a->kind == SNUG_ARG_INTEGER || a->kind == SNUG_ARG_BOOL ||
        (a->kind == SNUG_ARG_REAL && a->real == floor(a->real) && fabs(a->real) < 9e15);
    if (*n == SN_FN_MAX_ITEMS || (!whole && a->kind != SNUG_ARG_NONE))
        return sn_fn_refuse(c, SNUG_E_INVALID, "%s must be up to %d whole numbers", name,
                            SN_FN_MAX_ITEMS);
    c->ints[(*n)++] = a->kind == SNUG_ARG_NONE   ? -1
                      : a->kind == SNUG_ARG_REAL ? (int64_t)a->real
                                                 : a->integer;
}

const int64_t *sn_fn_ints(sn_fn_call *c, const char *name, int *n) {
    const snug_argument *a = sn_fn_argument(c, name);
    *n = 0;
    if (a->kind == SNUG_ARG_NONE)
        return NULL;
    collect(c, name, a, n);
    *n = sn_fn_failed(c) ? 0 : *n;
    return c->ints;
}

static int resolve_axis(sn_fn_call *c, int64_t axis, int rank) {
    if (axis >= -rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    sn_fn_refuse(c, SNUG_E_INVALID, "axis %lld of a tensor with %d axes", (long long)axis, rank);
    return 0;
}

int sn_fn_axis(sn_fn_call *c, const char *name, int rank, int otherwise) {
    const bool given = sn_fn_given(c, name);
    return sn_fn_failed(c) ? 0 : resolve_axis(c, given ? sn_fn_int(c, name) : otherwise, rank);
}

uint32_t sn_fn_axes(sn_fn_call *c, const char *name, int rank) {
    int n;
    uint32_t set = 0;
    const int64_t *axes = sn_fn_ints(c, name, &n);
    for (int i = 0; i < n && !sn_fn_failed(c); i++) {
        const uint32_t one = 1u << resolve_axis(c, axes[i], rank);
        if (set & one)
            sn_fn_refuse(c, SNUG_E_INVALID, "%s has axis %lld twice", name, (long long)axes[i]);
        set |= one;
    }
    return sn_fn_failed(c) ? 0 : set;
}

bool sn_fn_no_axes(sn_fn_call *c, const char *name) {
    int n;
    return sn_fn_ints(c, name, &n) && n == 0;
}

bool sn_fn_shape(sn_fn_call *c, const char *name, snug_type *out) {
    int n;
    const int64_t *dims = sn_fn_ints(c, name, &n);
    if (n > SNUG_MAX_RANK)
        sn_fn_refuse(c, SNUG_E_INVALID, "%s has %d entries; a tensor has at most %d axes", name, n,
                     SNUG_MAX_RANK);
    if (sn_fn_failed(c))
        return false;
    out->rank = n;
    for (int i = 0; i < n; i++)
        out->dims[i] = dims[i];
    return true;
}

/* --- operands --------------------------------------------------------------------------------- */
static snug_dtype own_dtype(const sn_fn_call *c, const snug_argument *a) {
    return a->kind == SNUG_ARG_REAL                             ? c->floats
           : a->kind == SNUG_ARG_BOOL                           ? SNUG_BOOL
           : a->integer >= INT32_MIN && a->integer <= INT32_MAX ? SNUG_I32
                                                                : SNUG_I64;
}

/* A number beside a tensor of 16 bits is one of them. */
double sn_fn_rounded(const sn_fn_call *c, double v) {
    unsigned char half[2];
    double rounded;
    const bool is_one = c->half != SNUG_N_DTYPES && !c->wide &&
                        sn_convert(SNUG_F64, &v, c->half, half, 1, NULL) == SNUG_OK &&
                        sn_convert(c->half, half, SNUG_F64, &rounded, 1, NULL) == SNUG_OK;
    return is_one ? rounded : v;
}

/* Numbers of a recording have 53 bits: one of more is made of its halves, to the last bit. */
static sn_value wide_whole(sn_fn_call *c, int64_t v) {
    const int64_t low = v & UINT32_MAX, high = (v - low) / ((int64_t)1 << 32);
    const sn_value above = sn_build_mul(c->b, sn_build_scalar(c->b, SNUG_I64, (double)high),
                                        sn_build_scalar(c->b, SNUG_I64, 0x1p32));
    return sn_build_add(c->b, above, sn_build_scalar(c->b, SNUG_I64, (double)low));
}

/* A number as this dtype has it: of 8 or 32 bits it keeps the lowest ones, as TensorFlow's do. */
static double number_as(const snug_argument *a, snug_dtype dtype) {
    if (a->kind != SNUG_ARG_INTEGER)
        return number_of(a);
    return dtype == SNUG_I8    ? (double)(int8_t)a->integer
           : dtype == SNUG_U8  ? (double)(uint8_t)a->integer
           : dtype == SNUG_I32 ? (double)(int32_t)a->integer
                               : number_of(a);
}

bool sn_fn_is_wide(int64_t v) {
    const int64_t most = (int64_t)1 << 53;
    return v > most || v < -most;
}

sn_value sn_fn_scalar(sn_fn_call *c, const snug_argument *a, snug_dtype dtype) {
    const double v = number_as(a, dtype);
    if (dtype == SNUG_I64 && a->kind == SNUG_ARG_INTEGER && sn_fn_is_wide(a->integer))
        return wide_whole(c, a->integer);
    return sn_build_scalar(c->b, dtype,
                           dtype == SNUG_F32                       ? sn_fn_rounded(c, v)
                           : c->rounds && a->kind == SNUG_ARG_REAL ? (double)(float)v
                                                                   : v);
}

/* A value of the graph; SN_NO_VALUE for a number that no slot has. */
static sn_value in_slot(const sn_fn_call *c, const snug_argument *a) {
    return a->integer >= 0 && a->integer < c->n_slots ? c->slot[a->integer] : SN_NO_VALUE;
}

snug_dtype sn_fn_operand_dtype(const sn_fn_call *c, const snug_argument *a) {
    return a->kind == SNUG_ARG_TENSOR ? c->door->type(a)->dtype : sn_fn_dtype_of(c, in_slot(c, a));
}

sn_value sn_fn_use(sn_fn_call *c, const snug_argument *a) {
    if (a->kind == SNUG_ARG_TENSOR ? !a->tensor : !sn_value_ok(in_slot(c, a))) {
        sn_fn_refuse(c, SNUG_E_INVALID, "a tensor is wanted");
        return SN_NO_VALUE;
    }
    const snug_dtype dtype = sn_fn_operand_dtype(c, a);
    const sn_value v = a->kind == SNUG_ARG_TENSOR ? c->door->use(c, a) : in_slot(c, a);
    c->wide = c->wide || dtype == SNUG_F32 || dtype == SNUG_F64;
    const snug_dtype as = sn_dtype_computed(dtype);
    if (as == dtype)
        return v;
    if (sn_dtype_is_float(dtype)) /* of the two halves neither holds the other */
        c->wide = c->wide || (c->half != SNUG_N_DTYPES && c->half != dtype);
    *(sn_dtype_is_float(dtype) ? &c->half : &c->narrow) = dtype;
    return sn_build_cast(c->b, v, as);
}

/* Whether the whole numbers of a result are places and counts, whatever the operands are. */
static bool gives_places(const sn_fn_call *c, int result) {
    return c->traits & (SNUG_FUNCTION_PLACES | (result > 0 ? SNUG_FUNCTION_PLACES_BEHIND : 0u));
}

static bool asks_for_dtype(const sn_fn_call *c) {
    bool asked = false;
    for (int i = 0; i < c->n_args; i++)
        asked = asked || c->arg[i].kind == SNUG_ARG_DTYPE;
    return asked;
}

/* Bits of the widest whole numbers there are among the data. */
typedef struct {
    int with_sign, without;
} widths;

static void note_width(const sn_fn_call *c, const snug_argument *a, widths *w) {
    const snug_dtype dtype = sn_fn_is_operand(a) ? sn_fn_operand_dtype(c, a) : SNUG_BOOL;
    if (!sn_dtype_is_int(dtype) || (!c->promotes && (w->with_sign || w->without)))
        return; /* without promotion the first is what the others are, too */
    int *const most = sn_dtype_counts(dtype) ? &w->without : &w->with_sign;
    const int bits = (int)snug_dtype_bytes(dtype) * 8;
    *most = bits > *most ? bits : *most;
}

static snug_dtype of_width(int bits, bool has_sign) {
    return bits == 8    ? (has_sign ? SNUG_I8 : SNUG_U8)
           : bits == 16 ? (has_sign ? SNUG_I16 : SNUG_U16)
           : bits == 32 ? (has_sign ? SNUG_I32 : SNUG_U32)
                        : SNUG_I64;
}

/* Arguments of these kinds. */
static widths widths_of(const sn_fn_call *c, const char *kinds) {
    widths w = {0, 0};
    const char *entry = c->signature;
    for (int i = 0; i < c->n_args; i++, entry = skip_entries(entry, 1)) {
        const size_t colon = strcspn(entry, ": ");
        if (entry[colon] != ':' || !strchr(kinds, entry[colon + 1]))
            continue;
        note_width(c, &c->arg[i], &w);
        for (int k = 0; c->arg[i].kind == SNUG_ARG_LIST && k < c->arg[i].list.n; k++)
            note_width(c, &c->arg[i].list.items[k], &w);
    }
    return w;
}

/* The dtype of the whole numbers that a result is made of: that of the data, or the smallest that
 * holds all of several. Beside data of kind T or V what has a dtype of its own (kind O) are places.
 * SNUG_N_DTYPES: there are none. */
static snug_dtype whole_dtype(const sn_fn_call *c) {
    const bool beside = strstr(c->signature, ":T") || strstr(c->signature, ":V");
    const widths w = widths_of(c, beside ? "TVQ" : "OQ");
    if (w.without == 0)
        return w.with_sign ? of_width(w.with_sign, true) : SNUG_N_DTYPES;
    if (w.with_sign == 0)
        return of_width(w.without, false);
    return of_width(w.with_sign > 2 * w.without ? w.with_sign : 2 * w.without, true);
}

/* Whole numbers, computed as wider ones, in the dtype that they are given in. */
static sn_value cut(sn_fn_call *c, int i) {
    const sn_value v = c->out[i];
    const snug_dtype whole = whole_dtype(c);
    if (whole == SNUG_N_DTYPES || whole == sn_dtype_computed(whole) ||
        sn_fn_dtype_of(c, v) != sn_dtype_computed(whole) || asks_for_dtype(c) || gives_places(c, i))
        return v;
    if (c->traits & SNUG_FUNCTION_SUMS)
        return whole == SNUG_I16 ? v : sn_build_cast(c->b, v, SNUG_U32);
    return sn_build_cast(c->b, v, whole);
}

/* A result that was asked for in a dtype is in it. */
sn_value sn_fn_result(sn_fn_call *c, int i) {
    const sn_value v = c->out[i];
    if (sn_fn_failed(c) || (c->half == SNUG_N_DTYPES && c->narrow == SNUG_N_DTYPES && !c->promotes))
        return v;
    if (c->half == SNUG_N_DTYPES || sn_fn_dtype_of(c, v) != SNUG_F32)
        return cut(c, i);
    const bool asked = asks_for_dtype(c);
    if (c->wide && !c->promotes && !asked)
        sn_fn_refuse(c, SNUG_E_SHAPE, "a tensor of %s beside wider ones; cast it",
                     snug_dtype_name(c->half));
    return asked || c->wide ? v : sn_build_cast(c->b, v, c->half);
}

static sn_value value_of(sn_fn_call *c, const snug_argument *a);
static sn_value value_as(sn_fn_call *c, const snug_argument *a, snug_dtype dtype);

/* A list with tensors in it: along a new axis. */
static sn_value stack_of(sn_fn_call *c, const snug_argument *a) {
    sn_value each[SN_MAX_IN];
    if (a->list.n < 1 || a->list.n > SN_MAX_IN) {
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a list of %d tensors; at most %d become one",
                     a->list.n, SN_MAX_IN);
        return SN_NO_VALUE;
    }
    snug_dtype dtype = SNUG_N_DTYPES;
    for (int i = 0; i < a->list.n; i++) {
        each[i] = is_number(&a->list.items[i]) ? SN_NO_VALUE : value_of(c, &a->list.items[i]);
        if (sn_value_ok(each[i]))
            dtype = sn_fn_type(c, each[i]).dtype;
    }
    for (int i = 0; i < a->list.n; i++)
        if (!sn_value_ok(each[i]))
            each[i] = value_as(c, &a->list.items[i], dtype);
    return sn_fn_failed(c) ? SN_NO_VALUE : sn_build_stack(c->b, each, a->list.n, 0);
}

static sn_value value_of(sn_fn_call *c, const snug_argument *a) {
    if (sn_fn_failed(c) || a->kind == SNUG_ARG_NONE)
        return SN_NO_VALUE;
    if (sn_fn_is_operand(a))
        return sn_fn_use(c, a);
    if (a->kind == SNUG_ARG_LIST)
        return stack_of(c, a);
    if (is_number(a))
        return sn_fn_scalar(c, a, own_dtype(c, a));
    sn_fn_refuse(c, SNUG_E_INVALID, "a text or dtype where a tensor is wanted");
    return SN_NO_VALUE;
}

sn_value sn_fn_value(sn_fn_call *c, int i) {
    return value_of(c, argument_at(c, i));
}

sn_value sn_fn_float(sn_fn_call *c, int i) {
    const sn_value x = sn_fn_value(c, i);
    if (!c->promotes || sn_fn_failed(c) || sn_dtype_is_float(sn_fn_dtype_of(c, x)))
        return x;
    return sn_build_cast(c->b, x, c->floats);
}

static sn_value value_as(sn_fn_call *c, const snug_argument *a, snug_dtype dtype) {
    if (is_number(a) && !sn_fn_failed(c)) {
        if (a->kind != SNUG_ARG_REAL || sn_dtype_is_float(dtype) || a->real == floor(a->real))
            return sn_fn_scalar(c, a, dtype);
        sn_fn_refuse(c, SNUG_E_SHAPE, "%g is no %s", a->real, snug_dtype_name(dtype));
        return SN_NO_VALUE;
    }
    const sn_value v = value_of(c, a);
    if (!sn_value_ok(v) || sn_fn_failed(c) || sn_fn_dtype_of(c, v) == dtype)
        return v;
    if (c->promotes)
        return sn_build_cast(c->b, v, dtype);
    sn_fn_refuse(c, SNUG_E_SHAPE, "a tensor of %s where one of %s is wanted; cast it",
                 snug_dtype_name(sn_fn_dtype_of(c, v)), snug_dtype_name(dtype));
    return SN_NO_VALUE;
}

sn_value sn_fn_value_as(sn_fn_call *c, int i, snug_dtype dtype) {
    return value_as(c, argument_at(c, i), dtype);
}

sn_value sn_fn_named(sn_fn_call *c, const char *name) {
    return value_of(c, sn_fn_argument(c, name));
}

sn_value sn_fn_named_as(sn_fn_call *c, const char *name, snug_dtype dtype) {
    return value_as(c, sn_fn_argument(c, name), dtype);
}

void sn_fn_same_dtype(sn_fn_call *c, sn_value x, sn_value y) {
    if (!sn_fn_failed(c) && sn_fn_dtype_of(c, x) != sn_fn_dtype_of(c, y))
        sn_fn_refuse(c, SNUG_E_SHAPE, "tensors of %s and %s; cast one",
                     snug_dtype_name(sn_fn_dtype_of(c, x)), snug_dtype_name(sn_fn_dtype_of(c, y)));
}

bool sn_fn_number(sn_fn_call *c, int i, double *out) {
    const snug_argument *a = argument_at(c, i);
    if (is_number(a))
        *out = number_of(a);
    return is_number(a);
}

/* Keras' common dtype of two. */
static snug_dtype common(snug_dtype a, snug_dtype b) {
    const bool real_a = sn_dtype_is_float(a), real_b = sn_dtype_is_float(b);
    if (a == b || a == SNUG_BOOL)
        return b;
    if (b == SNUG_BOOL || (real_a && !real_b))
        return a;
    if (real_b && !real_a)
        return b;
    if (real_a)
        return a == SNUG_F64 || b == SNUG_F64 ? SNUG_F64 : SNUG_F32;
    return a == SNUG_I64 || b == SNUG_I64 ? SNUG_I64 : SNUG_I32;
}

/* A number beside a tensor of this dtype. */
static snug_dtype beside(const sn_fn_call *c, const snug_argument *number, snug_dtype dtype) {
    if (c->promotes && number->kind == SNUG_ARG_REAL && !sn_dtype_is_float(dtype))
        return c->floats;
    return c->promotes && number->kind == SNUG_ARG_INTEGER && dtype == SNUG_BOOL ? SNUG_I32 : dtype;
}

/* Whether tensors are there whose dtype is not what they are computed in. */
static bool is_strict(const sn_fn_call *c) {
    return (c->narrow != SNUG_N_DTYPES || c->half != SNUG_N_DTYPES) && !c->promotes;
}

/* Of two tensors, whose dtypes may only look alike once they are computed with. */
static bool differ(const sn_fn_call *c, const snug_argument *a, const snug_argument *z) {
    return sn_fn_is_operand(a) && sn_fn_is_operand(z) &&
           sn_fn_operand_dtype(c, a) != sn_fn_operand_dtype(c, z);
}

void sn_fn_pair(sn_fn_call *c, int i, int k, sn_value *x, sn_value *y) {
    const snug_argument a = *argument_at(c, i), z = *argument_at(c, k);
    *x = is_number(&a) ? SN_NO_VALUE : value_of(c, &a);
    *y = is_number(&z) ? SN_NO_VALUE : value_of(c, &z);
    if (sn_fn_failed(c))
        return;
    snug_dtype dtype = c->promotes ? common(own_dtype(c, &a), own_dtype(c, &z)) : own_dtype(c, &a);
    if (sn_value_ok(*x) && sn_value_ok(*y)) {
        dtype = sn_fn_dtype_of(c, *x);
        if (is_strict(c) && differ(c, &a, &z))
            return sn_fn_refuse(c, SNUG_E_SHAPE, "tensors of %s and %s; cast one",
                                snug_dtype_name(sn_fn_operand_dtype(c, &a)),
                                snug_dtype_name(sn_fn_operand_dtype(c, &z)));
        if (sn_fn_dtype_of(c, *y) == dtype || !c->promotes)
            return; /* the row refuses what does not fit */
        dtype = common(dtype, sn_fn_dtype_of(c, *y));
    } else if (sn_value_ok(*x)) {
        dtype = beside(c, &z, sn_fn_dtype_of(c, *x));
    } else if (sn_value_ok(*y)) {
        dtype = beside(c, &a, sn_fn_dtype_of(c, *y));
    }
    *x = sn_value_ok(*x) ? sn_build_cast(c->b, *x, dtype) : value_as(c, &a, dtype);
    *y = sn_value_ok(*y) ? sn_build_cast(c->b, *y, dtype) : value_as(c, &z, dtype);
}

/* Values of a list, in one dtype. */
static void use_items(sn_fn_call *c, const snug_argument *items, int n, sn_value *out) {
    snug_dtype dtype = SNUG_N_DTYPES;
    for (int k = 0; k < n; k++) {
        out[k] = is_number(&items[k]) ? SN_NO_VALUE : value_of(c, &items[k]);
        if (!sn_value_ok(out[k]))
            continue;
        if (is_strict(c) && differ(c, &items[0], &items[k]))
            sn_fn_refuse(c, SNUG_E_SHAPE, "tensors of %s and %s; cast one",
                         snug_dtype_name(sn_fn_operand_dtype(c, &items[0])),
                         snug_dtype_name(sn_fn_operand_dtype(c, &items[k])));
        const snug_dtype own = sn_fn_dtype_of(c, out[k]);
        dtype = dtype == SNUG_N_DTYPES ? own : c->promotes ? common(dtype, own) : dtype;
    }
    const bool numbers = dtype == SNUG_N_DTYPES;
    for (int k = 0; k < n && numbers; k++)
        dtype = k ? common(dtype, own_dtype(c, &items[k])) : own_dtype(c, &items[0]);
    for (int k = 0; k < n && !sn_fn_failed(c); k++)
        out[k] = !sn_value_ok(out[k]) ? value_as(c, &items[k], dtype)
                 : c->promotes        ? sn_build_cast(c->b, out[k], dtype)
                                      : out[k];
}

/* What a list argument holds; a tensor alone is a list of one. */
static const snug_argument *items_of(sn_fn_call *c, int i, int *n) {
    const snug_argument *a = argument_at(c, i);
    *n = a->kind == SNUG_ARG_LIST ? a->list.n : a->kind != SNUG_ARG_NONE;
    return a->kind == SNUG_ARG_LIST ? a->list.items : a;
}

int sn_fn_values(sn_fn_call *c, int i, sn_value *out, int max) {
    int n;
    const snug_argument *const items = items_of(c, i, &n);
    if (n > max || n < 1) {
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a list of %d tensors; from 1 to %d are possible", n,
                     max);
        return 0;
    }
    use_items(c, items, n, out);
    return sn_fn_failed(c) ? 0 : n;
}

int sn_fn_list(sn_fn_call *c, int i, sn_value **out) {
    int n;
    const snug_argument *const items = items_of(c, i, &n);
    snug_error *const err = &c->b->error;
    *out = NULL;
    if (n < 1)
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a list of no tensors; at least one is needed");
    if (sn_fn_failed(c) || sn_grow(sn_graph_engine(c->b->graph), SN_MEM_OTHER, &c->values,
                                   sizeof *c->values, &c->cap_values, (size_t)n, err) != SNUG_OK)
        return 0;
    use_items(c, items, n, c->values);
    *out = c->values;
    return sn_fn_failed(c) ? 0 : n;
}

void sn_fn_begin(sn_fn_call *c, const sn_fn_row *row, const snug_argument *args, int n_args) {
    c->slot = NULL;
    c->n_slots = 0;
    c->names = row->info.names;
    c->signature = row->info.signature;
    c->traits = row->info.traits;
    c->promotes = c->traits & SNUG_FUNCTION_PROMOTES;
    c->rounds = c->traits & SNUG_FUNCTION_ROUNDS;
    c->floats = SNUG_F32;
    c->arg = args;
    c->n_args = n_args;
    c->n_out = 1;
    c->known = NULL;
    c->half = c->narrow = SNUG_N_DTYPES;
    c->wide = false;
    c->largest = -1;
    c->n_items = 0;
    c->unique[0].kind = c->unique[1].kind = c->unique[2].kind = SNUG_ARG_NONE;
    c->values = NULL;
    c->cap_values = 0;
}

void sn_fn_end(sn_fn_call *c, snug_engine *e) {
    sn_free(e, SN_MEM_OTHER, c->values, c->cap_values * sizeof *c->values);
}

/* --- small builders --------------------------------------------------------------------------- */
sn_value sn_fn_like(sn_fn_call *c, sn_value x, double v) {
    return sn_fn_failed(c) ? SN_NO_VALUE : sn_build_scalar(c->b, sn_fn_dtype_of(c, x), v);
}

int64_t sn_fn_parameter(sn_fn_call *c, double value) {
    return (int64_t)sn_build_param(c->b, "", value).i;
}

sn_value sn_fn_affine(sn_fn_call *c, sn_value x, double scale, double shift) {
    if (sn_dtype_is_float(sn_fn_dtype_of(c, x)))
        return sn_build_affine(c->b, x, scale, shift);
    return sn_build_add(c->b, sn_build_mul(c->b, x, sn_fn_like(c, x, scale)),
                        sn_fn_like(c, x, shift));
}

void sn_fn_known(sn_fn_call *c, const snug_type *type, const int64_t *v) {
    const int64_t n = sn_type_count(type);
    if (sn_fn_failed(c))
        return;
    for (int64_t i = 0; i < n && i < SN_FN_MAX_ITEMS; i++)
        c->ints[i] = v[i];
    c->known = c->ints;
    c->known_type = *type;
}
