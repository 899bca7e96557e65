/* test_functions.c: functions on recorded tensors give what TensorFlow and Keras gave when
 * tests/functions/record.py asked them, as nodes of networks, too. Cases are texts: the grammar is in
 * record.py. test_function_calls.c has the rest. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "function/function_call.h"
#include "support/as_operation.h"
#include "support/bench.h"

#define MAX_POOL 400
#define MAX_OUT  64

/* --- reading cases ---------------------------------------------------------------------------- */
typedef struct {
    snug_recorder *r;
    char *text, *at;
    int line;
    snug_argument pool[MAX_POOL]; /* items of lists */
    int n_pool;
    snug_tensor *made[MAX_POOL];
    int n_made;
} reader;

static char *load(const char *group) {
    char path[400];
    snprintf(path, sizeof path, "%s/functions/%s.txt", SNUG_TEST_DATA, group);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *text = malloc((size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    text[n] = 0;
    fclose(f);
    return text;
}

/* The next line without its end; NULL behind the last. */
static char *next_line(reader *in) {
    if (!*in->at)
        return NULL;
    char *const line = in->at;
    in->at += strcspn(in->at, "\n");
    if (*in->at)
        *in->at++ = 0;
    in->line++;
    return line;
}

static snug_dtype dtype_named(const char *name) {
    for (int d = 0; d < SNUG_N_DTYPES; d++)
        if (strcmp(snug_dtype_name((snug_dtype)d), name) == 0)
            return (snug_dtype)d;
    fail_msg("dtype %s", name);
    return SNUG_F32;
}

/* "f32 2 2 3 1.0 ..." */
static double *parse_tensor(char *text, snug_type *type) {
    char name[8];
    int n;
    assert_int_equal(sscanf(text, "%7s %d%n", name, &type->rank, &n), 2);
    type->dtype = dtype_named(name);
    text += n;
    for (int k = 0; k < type->rank; k++)
        type->dims[k] = strtoll(text, &text, 10);
    const int64_t count = sn_type_count(type);
    double *v = malloc((size_t)(count + 1) * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < count; i++)
        v[i] = strtod(text, &text);
    return v;
}

static void put(snug_dtype dtype, double v, void *to, int64_t i) {
    if (dtype == SNUG_F32)
        ((float *)to)[i] = (float)v;
    else if (dtype == SNUG_F64)
        ((double *)to)[i] = v;
    else if (dtype == SNUG_I32)
        ((int32_t *)to)[i] = (int32_t)v;
    else if (dtype == SNUG_I64)
        ((int64_t *)to)[i] = (int64_t)v;
    else if (dtype == SNUG_U8)
        ((uint8_t *)to)[i] = (uint8_t)v;
    else
        ((int8_t *)to)[i] = (int8_t)v;
}

static double get(snug_dtype dtype, const void *from, int64_t i) {
    return dtype == SNUG_F32   ? (double)((const float *)from)[i]
           : dtype == SNUG_F64 ? ((const double *)from)[i]
           : dtype == SNUG_I32 ? (double)((const int32_t *)from)[i]
           : dtype == SNUG_I64 ? (double)((const int64_t *)from)[i]
           : dtype == SNUG_U8  ? (double)((const uint8_t *)from)[i]
                               : (double)((const int8_t *)from)[i];
}

static snug_tensor *make_tensor(reader *in, char *text) {
    snug_type type;
    snug_error err;
    void *data;
    double *const v = parse_tensor(text, &type);
    expect_ok(snug_tensor_fresh(in->r, &type, &in->made[in->n_made], &data, &err), &err);
    for (int64_t i = 0; i < sn_type_count(&type); i++)
        put(type.dtype, v[i], data, i);
    free(v);
    return in->made[in->n_made++];
}

static snug_argument parse_argument(reader *in, char *line) {
    snug_argument a = {.kind = SNUG_ARG_NONE};
    char *const rest = line + (line[1] ? 2 : 1);
    if (*line == 'T') {
        a.kind = SNUG_ARG_TENSOR;
        a.tensor = make_tensor(in, rest);
    } else if (*line == 'I' || *line == 'B') {
        a.kind = *line == 'I' ? SNUG_ARG_INTEGER : SNUG_ARG_BOOL;
        a.integer = strtoll(rest, NULL, 10);
    } else if (*line == 'R') {
        a.kind = SNUG_ARG_REAL;
        a.real = strtod(rest, NULL);
    } else if (*line == 'S') {
        a.kind = SNUG_ARG_TEXT;
        a.text = rest;
    } else if (*line == 'L') {
        const int n = atoi(rest);
        snug_argument *const items = in->pool + in->n_pool;
        in->n_pool += n;
        for (int i = 0; i < n; i++)
            items[i] = parse_argument(in, next_line(in));
        a.kind = SNUG_ARG_LIST;
        a.list.items = items;
        a.list.n = n;
    } else {
        assert_int_equal(*line, 'N');
    }
    return a;
}

/* --- running them ----------------------------------------------------------------------------- */
static bool differs(const snug_type *want, const double *v, snug_tensor *got, char *why,
                    size_t size) {
    const snug_type *has = snug_tensor_type(got);
    char a[192], b[192];
    snug_view view;
    snug_error err;
    if (!sn_type_equal(want, has)) {
        snprintf(why, size, "%s instead of %s", snug_type_print(has, a, sizeof a),
                 snug_type_print(want, b, sizeof b));
        return true;
    }
    if (snug_tensor_pin(got, &view, &err) != SNUG_OK) {
        snprintf(why, size, "%s", err.text);
        return true;
    }
    bool other = false;
    const double tolerance = want->dtype == SNUG_F64 ? 1e-9 : 2e-5;
    for (int64_t i = 0; i < sn_type_count(want) && !other; i++) {
        const double x = get(want->dtype, view.data, i);
        other = isnan(v[i])   ? !isnan(x)
                : isinf(v[i]) ? x != v[i]
                              : !(fabs(x - v[i]) <= tolerance * (1 + fabs(v[i])));
        if (other)
            snprintf(why, size, "element %lld is %g instead of %g", (long long)i, x, v[i]);
    }
    snug_tensor_unpin(got);
    return other;
}

typedef struct {
    char name[96];
    snug_argument args[SN_FN_MAX_ARGS];
    int n_args, function;
    bool known;
} a_call;

static void read_call(reader *in, const char *line, a_call *c) {
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", line + 5);
    c->known = snug_function_find(c->name, &c->function) != 0;
    in->n_pool = 0;
    while (*in->at && strncmp(in->at, "out", 3) != 0 && strncmp(in->at, "fails", 5) != 0 &&
           strncmp(in->at, "grad", 4) != 0) {
        char *text = next_line(in);
        int place = c->n_args;
        if (strncmp(text, "kw ", 3) == 0) {
            sn_fn_call f = {.signature = c->known ? snug_function_at(c->function)->signature : ""};
            place = sn_fn_place(&f, text + 3);
            text = next_line(in);
        }
        const snug_argument a = parse_argument(in, text);
        if (place < 0) {
            c->known = false;
            continue;
        }
        c->args[place] = a;
        c->n_args = place >= c->n_args ? place + 1 : c->n_args;
    }
}

/* A tape that sees the first argument, where that is a float tensor. */
static snug_tape *watch_first(reader *in, const a_call *c) {
    snug_tape *tape;
    snug_error err;
    expect_ok(snug_tape_create(in->r, NULL, &tape, &err), &err);
    if (c->args[0].kind == SNUG_ARG_TENSOR &&
        sn_dtype_is_float(snug_tensor_type(c->args[0].tensor)->dtype))
        expect_ok(snug_tape_watch(tape, c->args[0].tensor, &err), &err);
    return tape;
}

/* The gradient of the sum of the results by the first argument. */
static void check_gradient(snug_tape *tape, const a_call *c, char *line, snug_tensor *const *out,
                           int n, char why[600]) {
    snug_type type;
    snug_error err;
    snug_tensor *targets[MAX_OUT], *got = NULL;
    int n_targets = 0;
    double *const want = parse_tensor(line, &type);
    for (int i = 0; i < n; i++)
        if (sn_dtype_is_float(snug_tensor_type(out[i])->dtype))
            targets[n_targets++] = out[i];
    const snug_source source = {c->args[0].tensor, NULL};
    char inner[500] = "";
    if (n_targets &&
        snug_tape_gradient(tape, targets, NULL, n_targets, &source, 1, &got, &err) != SNUG_OK)
        snprintf(inner, sizeof inner, "%.450s", err.text);
    else if (n_targets && !got)
        snprintf(inner, sizeof inner, "there is none");
    else if (n_targets)
        differs(&type, want, got, inner, sizeof inner);
    if (inner[0])
        snprintf(why, 600, "gradient: %s", inner);
    snug_tensor_drop(got);
    free(want);
}

/* --- the same calls as nodes of networks ------------------------------------------------------ */
/* By rows: which were called as nodes, and which of them for any batch. */
typedef struct {
    bool *as_node, *of_any_batch;
} sweep;

/* Also where both fail as they run: a division by 0. */
static bool same_bits(snug_tensor *a, snug_tensor *b) {
    const snug_type *const t = snug_tensor_type(a);
    snug_view x, y;
    if (!sn_type_equal(t, snug_tensor_type(b)))
        return false;
    const snug_status first = snug_tensor_pin(a, &x, NULL), second = snug_tensor_pin(b, &y, NULL);
    const bool same = first == second && (first != SNUG_OK || memcmp(x.data, y.data, x.bytes) == 0);
    if (first == SNUG_OK)
        snug_tensor_unpin(a);
    if (second == SNUG_OK)
        snug_tensor_unpin(b);
    return same;
}

/* Whether types of an open batch are what the batch at hand made, but for extents that are open. */
static bool covers(const snug_type *open, const snug_type *t) {
    bool fits = open->rank == t->rank && open->dtype == t->dtype;
    for (int k = 0; k < t->rank && fits; k++)
        fits = open->dims[k] == t->dims[k] || open->dims[k] == -1;
    return fits;
}

static void check_node(reader *in, const a_call *c, const sweep *s, snug_tensor *const *out, int n,
                       bool succeeds, char why[600]) {
    sn_test_operation o;
    snug_tensor *made[SN_MAX_TENSOR];
    snug_type types[SN_MAX_TENSOR];
    snug_error err;
    int n_made = 0, n_types = 0;
    bool empty = n > SN_MAX_TENSOR;
    for (int i = 0; i < n; i++)
        empty = empty || sn_type_count(snug_tensor_type(out[i])) == 0;
    if (!c->known || empty || !sn_test_as_operation(c->function, c->args, c->n_args, &o))
        return;
    const snug_status status = sn_test_apply(&o, in->r, made, &n_made, &err);
    if ((status == SNUG_OK) != succeeds || (succeeds && n_made != n))
        snprintf(why, 600, "a node of %d results: %.400s", n_made,
                 status == SNUG_OK ? "succeeds" : err.text);
    for (int i = 0; status == SNUG_OK && i < n_made; i++) {
        if (!why[0] && !same_bits(out[i], made[i]))
            snprintf(why, 600, "result %d of a node is another", i);
        snug_tensor_drop(made[i]);
    }
    s->as_node[c->function] = true;
    const snug_type *const first = snug_tensor_type(o.in[0]);
    const bool is_one = first->rank > 0 && first->dims[0] == 1; /* squeezed, or spread */
    if (status != SNUG_OK || is_one || sn_test_infer(&o, in->r, types, &n_types, &err) != SNUG_OK)
        return;
    for (int i = 0; i < n && !why[0]; i++)
        if (n_types != n || !covers(&types[i], snug_tensor_type(out[i])))
            snprintf(why, 600, "the type of result %d of %d for any batch", i, n_types);
    s->of_any_batch[c->function] = true;
}

/* The number of differences, which are printed into `report`. */
static void check_results(reader *in, const a_call *c, const sweep *s, char *report, size_t size) {
    snug_tensor *out[MAX_OUT];
    snug_error err = {0};
    int n = 0, k = 0;
    char why[600] = "";
    snug_tape *const tape = watch_first(in, c);
    const snug_status status =
        c->known
            ? snug_function_call(in->r, c->function, c->args, c->n_args, out, MAX_OUT, &n, &err)
            : sn_fail(&err, SNUG_E_INVALID, "there is no such function or argument");
    const bool fails = strncmp(in->at, "fails", 5) == 0;
    if (fails) {
        next_line(in);
        if (status == SNUG_OK)
            snprintf(why, sizeof why, "succeeds");
    } else if (status != SNUG_OK) {
        snprintf(why, sizeof why, "%s", err.text);
    }
    for (; strncmp(in->at, "out ", 4) == 0; k++) {
        snug_type type;
        double *const v = parse_tensor(next_line(in) + 4, &type);
        if (status == SNUG_OK && k < n && !why[0])
            differs(&type, v, out[k], why, sizeof why);
        free(v);
    }
    if (strncmp(in->at, "grad ", 5) == 0)
        check_gradient(tape, c, next_line(in) + 5, out, status == SNUG_OK && !why[0] ? n : 0, why);
    snug_tape_drop(tape);
    if (s && !why[0])
        check_node(in, c, s, out, n, status == SNUG_OK, why);
    if (!why[0] && !fails && k != n)
        snprintf(why, sizeof why, "%d results instead of %d", n, k);
    for (int i = 0; i < n; i++)
        snug_tensor_drop(out[i]);
    const size_t used = strlen(report);
    if (why[0] && used + 4 < size)
        snprintf(report + used, size - used, "\n%s (before line %d): %s", c->name, in->line, why);
}

static void run_group(snug_engine *e, const char *group, const sweep *s) {
    static char report[20000];
    reader in = {.line = 0};
    snug_error err;
    report[0] = 0;
    in.text = in.at = load(group);
    expect_ok(snug_recorder_create(e, &in.r, &err), &err);
    int n = 0;
    for (char *line; (line = next_line(&in)); n++) {
        a_call c;
        assert_int_equal(strncmp(line, "call ", 5), 0);
        read_call(&in, line, &c);
        check_results(&in, &c, s, report, sizeof report);
        for (int i = 0; i < in.n_made; i++)
            snug_tensor_drop(in.made[i]);
        in.n_made = 0;
    }
    snug_recorder_destroy(in.r);
    free(in.text);
    assert_true(n > 5);
    if (report[0])
        fail_msg("%s", report);
}

#define GROUP(name)                                                                                \
    static void test_functions_of_##name##_give_what_tensorflow_gives(void **state) {              \
        run_group(*state, #name, NULL);                                                            \
    }
GROUP(one)
GROUP(two)
GROUP(along)
GROUP(shape)
GROUP(index)
GROUP(linalg)
GROUP(nn)
GROUP(image)
GROUP(picture)
GROUP(more)
GROUP(solve)
GROUP(less)

/* 0, and numbers around it. */
static snug_tensor *plain_tensor(reader *in, const snug_type *type) {
    static const double v[12] = {0, 0.25, -0.5, 0.75, 1, 0.5, -1, 2, 0.125, -2, 3, 0.375};
    snug_error err;
    void *data;
    expect_ok(snug_tensor_fresh(in->r, type, &in->made[in->n_made], &data, &err), &err);
    for (int i = 0; i < sn_type_count(type); i++)
        put(type->dtype, v[i % 12], data, i);
    return in->made[in->n_made++];
}

/* What a row asks for: tensors of this type, its defaults, and 1 where a number has none. */
static bool plain_call(reader *in, int function, const snug_type *type, a_call *c) {
    const snug_function_info *const info = snug_function_at(function);
    sn_fn_entry e;
    memset(c, 0, sizeof *c);
    in->n_pool = 0;
    snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(info->names, " "), info->names);
    c->function = function;
    c->known = true;
    for (int i = 0; sn_signature_at(info->signature, i, &e); i++) {
        snug_argument a = {.kind = SNUG_ARG_NONE};
        if (strchr("TO", e.kind) && !e.has_default) {
            a = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = plain_tensor(in, type)};
        } else if (e.kind == 'V') {
            snug_argument *const items = in->pool + in->n_pool;
            in->n_pool += 2;
            for (int k = 0; k < 2; k++)
                items[k] =
                    (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = plain_tensor(in, type)};
            a.kind = SNUG_ARG_LIST;
            a.list.items = items;
            a.list.n = 2;
        } else if (strchr("IN", e.kind) && !e.has_default) {
            a = (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = 1};
        } else if (e.kind == 'D' && !e.has_default) {
            a = (snug_argument){.kind = SNUG_ARG_TEXT, .text = "float32"};
        } else if (!e.has_default) {
            return false;
        }
        c->args[i] = a;
        c->n_args = i + 1;
    }
    return true;
}

/* Vectors, matrices and pictures, each a few. */
static void run_plain(snug_engine *e, const sweep *s) {
    static char report[20000];
    static const snug_type types[] = {{SNUG_F32, 2, {4, 3}},
                                      {SNUG_I32, 2, {4, 3}},
                                      {SNUG_F64, 2, {4, 3}},
                                      {SNUG_F32, 3, {2, 3, 3}},
                                      {SNUG_F32, 4, {2, 4, 4, 3}}};
    reader in = {.line = 0};
    snug_error err;
    report[0] = 0;
    expect_ok(snug_recorder_create(e, &in.r, &err), &err);
    for (int i = 0; i < snug_function_count(); i++)
        for (size_t d = 0; d < sizeof types / sizeof *types; d++) {
            snug_tensor *out[MAX_OUT];
            a_call c;
            char why[600] = "";
            int n = 0;
            if (plain_call(&in, i, &types[d], &c)) {
                const snug_status status =
                    snug_function_call(in.r, i, c.args, c.n_args, out, MAX_OUT, &n, &err);
                check_node(&in, &c, s, out, n, status == SNUG_OK, why);
                const size_t used = strlen(report);
                if (why[0])
                    snprintf(report + used, sizeof report - used, "\n%s of %d axes of %s: %s",
                             c.name, types[d].rank, snug_dtype_name(types[d].dtype), why);
            }
            for (int k = 0; k < n; k++)
                snug_tensor_drop(out[k]);
            for (int k = 0; k < in.n_made; k++)
                snug_tensor_drop(in.made[k]);
            in.n_made = 0;
        }
    snug_recorder_destroy(in.r);
    if (report[0])
        fail_msg("%s", report);
}

/* Rows that a model cannot have: of no tensor, of shapes that values decide, of draws. */
static bool may_be_node(const snug_function_info *info) {
    sn_fn_entry e;
    bool tensor = false, values = false;
    for (int i = 0; sn_signature_at(info->signature, i, &e); i++) {
        tensor = tensor || strchr("TOV", e.kind);
        values = values || strchr("MQ", e.kind) || (e.kind == 'W' && !strstr(info->names, "where"));
    }
    return tensor && !values && !sn_test_draws(info);
}

/* Every row that takes a tensor and draws nothing: as a node it gives the bits of the eager call. */
static void test_nodes_of_networks_give_the_bits_of_eager_calls(void **state) {
    static const char *const groups[] = {"one", "two",   "along",   "shape", "index", "linalg",
                                         "nn",  "image", "picture", "more",  "solve", "less"};
    const int n = snug_function_count();
    sweep s = {calloc((size_t)n, 1), calloc((size_t)n, 1)};
    int nodes = 0, batches = 0;
    assert_true(s.as_node && s.of_any_batch);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        run_group(*state, groups[i], &s);
    run_plain(*state, &s);
    for (int i = 0; i < n; i++) {
        nodes += s.as_node[i];
        batches += s.of_any_batch[i];
        if (s.as_node[i] != may_be_node(snug_function_at(i)))
            fail_msg("%s is %s node", snug_function_at(i)->names, s.as_node[i] ? "a" : "no");
    }
    if (nodes < 553 || batches < 532)
        fail_msg("%d rows are nodes, %d of them for any batch", nodes, batches);
    free(s.as_node);
    free(s.of_any_batch);
}

int main(void) {
#define TEST(name) engine_test(test_functions_of_##name##_give_what_tensorflow_gives)
    const struct CMUnitTest tests[] = {
        TEST(one),
        TEST(two),
        TEST(along),
        TEST(shape),
        TEST(index),
        TEST(linalg),
        TEST(nn),
        TEST(image),
        TEST(picture),
        TEST(more),
        TEST(solve),
        TEST(less),
        engine_test(test_nodes_of_networks_give_the_bits_of_eager_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
