/* test_functions.c: functions on recorded tensors give what TensorFlow and Keras gave when
 * tests/functions/record.py asked them; their numbers are no part of plans; they survive want of
 * memory. Cases are texts: the grammar is in record.py. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eager/call.h"
#include "support/support.h"

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
    while (*in->at && strncmp(in->at, "out", 3) != 0 && strncmp(in->at, "fails", 5) != 0) {
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

/* The number of differences, which are printed into `report`. */
static void check_results(reader *in, const a_call *c, char *report, size_t size) {
    snug_tensor *out[MAX_OUT];
    snug_error err = {0};
    int n = 0, k = 0;
    char why[600] = "";
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
    if (!why[0] && !fails && k != n)
        snprintf(why, sizeof why, "%d results instead of %d", n, k);
    for (int i = 0; i < n; i++)
        snug_tensor_drop(out[i]);
    const size_t used = strlen(report);
    if (why[0] && used + 4 < size)
        snprintf(report + used, size - used, "\n%s (before line %d): %s", c->name, in->line, why);
}

static void run_group(snug_engine *e, const char *group) {
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
        check_results(&in, &c, report, sizeof report);
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
        run_group(*state, #name);                                                                  \
    }
GROUP(one)
GROUP(two)
GROUP(along)
GROUP(shape)
GROUP(index)
GROUP(linalg)
GROUP(nn)
GROUP(image)

int main(void) {
#define TEST(name) engine_test(test_functions_of_##name##_give_what_tensorflow_gives)
    const struct CMUnitTest tests[] = {
        TEST(one),   TEST(two),    TEST(along), TEST(shape),
        TEST(index), TEST(linalg), TEST(nn),    TEST(image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
