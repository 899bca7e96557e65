/* test_data_ops_golden.c: functions on files, texts and pictures against what TensorFlow gives:
 * every file tests/data_ops/NAME.case (record.py there writes them) is a test of its own. */
#include "support/support.h"

#include <snug/data_ops.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER SNUG_TEST_DATA "/data_ops"
enum { MAX_CASES = 400, MAX_ATTRS = 8, MAX_IN = 8 };

typedef struct {
    snug_datum datum; /* bytes are the test's */
    double tolerance;
} part;

typedef struct {
    char op[64];
    snug_data_attr attrs[MAX_ATTRS];
    char names[MAX_ATTRS][32];
    int n_attrs, n_in, n_out;
    part in[MAX_IN], out[SNUG_MAX_PARTS];
} op_case;

static void *must(size_t n) {
    void *p = calloc(n + 1, 1);
    assert_non_null(p);
    return p;
}

static void read_exactly(FILE *f, void *to, size_t n) {
    assert_int_equal(fread(to, 1, n, f), n);
}

static snug_dtype dtype_of(const char *word) {
    for (int i = 0; i < SNUG_OPAQUE; i++)
        if (strcmp(snug_dtype_name((snug_dtype)i), word) == 0)
            return (snug_dtype)i;
    return SNUG_OPAQUE;
}

static size_t count(const snug_type *t) {
    size_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

static void read_texts(FILE *f, snug_datum *d) {
    const size_t n = count(&d->type);
    snug_text *texts = must(n * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        uint32_t bytes;
        read_exactly(f, &bytes, sizeof bytes);
        char *data = must(bytes);
        read_exactly(f, data, bytes);
        texts[i] = (snug_text){data, bytes};
    }
    d->data = texts;
    d->bytes = n * sizeof *texts;
}

static void read_part(FILE *f, part *p) {
    char word[16];
    assert_int_equal(fscanf(f, "%15s %lf %d", word, &p->tolerance, &p->datum.type.rank), 3);
    for (int i = 0; i < p->datum.type.rank; i++)
        assert_int_equal(fscanf(f, "%ld", &p->datum.type.dims[i]), 1);
    while (fgetc(f) != '\n')
        ;
    snug_datum *d = &p->datum;
    d->type.dtype = dtype_of(word);
    d->is_text = d->type.dtype == SNUG_OPAQUE;
    if (d->is_text) {
        read_texts(f, d);
        return;
    }
    d->bytes = count(&d->type) * snug_dtype_bytes(d->type.dtype);
    d->data = must(d->bytes);
    read_exactly(f, d->data, d->bytes);
}

static void read_attr(FILE *f, op_case *c) {
    size_t n;
    assert_int_equal(fscanf(f, "%31s %zu", c->names[c->n_attrs], &n), 2);
    assert_int_equal(fgetc(f), '\n');
    char *value = must(n);
    read_exactly(f, value, n);
    c->attrs[c->n_attrs] = (snug_data_attr){c->names[c->n_attrs], {value, n}};
    c->n_attrs++;
}

static void read_case(const char *name, op_case *c) {
    char path[512], word[16];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    while (fscanf(f, "%15s", word) == 1 && strcmp(word, "end") != 0) {
        if (strcmp(word, "op") == 0)
            assert_int_equal(fscanf(f, "%63s", c->op), 1);
        else if (strcmp(word, "attr") == 0)
            read_attr(f, c);
        else if (strcmp(word, "in") == 0)
            read_part(f, &c->in[c->n_in++]);
        else
            read_part(f, &c->out[c->n_out++]);
    }
    assert_string_equal(word, "end");
    fclose(f);
}

static void free_part(part *p) {
    const snug_text *texts = p->datum.data;
    for (size_t i = 0; p->datum.is_text && i < count(&p->datum.type); i++)
        free((char *)(uintptr_t)texts[i].data);
    free(p->datum.data);
}

static void free_case(op_case *c) {
    for (int i = 0; i < c->n_attrs; i++)
        free((char *)(uintptr_t)c->attrs[i].value.data);
    for (int i = 0; i < c->n_in; i++)
        free_part(&c->in[i]);
    for (int i = 0; i < c->n_out; i++)
        free_part(&c->out[i]);
    free(c);
}

/* --- comparing -------------------------------------------------------------------------------- */
static double number_at(const snug_datum *d, size_t i) {
    switch (d->type.dtype) {
    case SNUG_F32:
        return (double)((const float *)d->data)[i];
    case SNUG_F64:
        return ((const double *)d->data)[i];
    case SNUG_I64:
        return (double)((const int64_t *)d->data)[i];
    case SNUG_I32:
        return ((const int32_t *)d->data)[i];
    case SNUG_I8:
        return ((const int8_t *)d->data)[i];
    default:
        return ((const uint8_t *)d->data)[i];
    }
}

static void expect_type(const snug_type *got, const snug_type *wanted, const char *where) {
    char a[192], b[192];
    if (strcmp(snug_type_print(got, a, sizeof a), snug_type_print(wanted, b, sizeof b)) != 0)
        fail_msg("%s: %s, not %s", where, a, b);
}

static void expect_part(const snug_datum *got, const part *wanted, const char *where) {
    expect_type(&got->type, &wanted->datum.type, where);
    assert_int_equal(got->is_text, wanted->datum.is_text);
    const snug_text *a = got->data, *b = wanted->datum.data;
    for (size_t i = 0; i < count(&got->type); i++) {
        if (got->is_text) {
            if (a[i].bytes != b[i].bytes || memcmp(a[i].data, b[i].data, a[i].bytes) != 0)
                fail_msg("%s: text %zu is '%.*s', not '%.*s'", where, i, (int)a[i].bytes, a[i].data,
                         (int)b[i].bytes, b[i].data);
            continue;
        }
        const double x = number_at(got, i), y = number_at(&wanted->datum, i);
        if (!(fabs(x - y) <= wanted->tolerance) && !(isnan(x) && isnan(y)) && x != y)
            fail_msg("%s: element %zu is %.9g, not %.9g", where, i, x, y);
    }
}

/* What was said before the call must be what came. */
static void expect_spec(const snug_spec *spec, const snug_datum *got, int n, const char *where) {
    assert_int_equal(spec->n, n);
    for (int i = 0; i < n; i++) {
        const snug_type *t = &spec->type[i];
        assert_int_equal(spec->is_text[i], got[i].is_text);
        assert_int_equal(t->dtype, got[i].type.dtype);
        if (t->rank < 0)
            continue;
        assert_int_equal(t->rank, got[i].type.rank);
        for (int k = 0; k < t->rank; k++)
            if (t->dims[k] >= 0 && t->dims[k] != got[i].type.dims[k])
                fail_msg("%s: dim %d of part %d is not as its spec says", where, k, i);
    }
}

static void run_case(const op_case *c, snug_engine *e, const char *name) {
    snug_error err;
    snug_data_op *op;
    snug_spec in = {.n = c->n_in}, spec;
    snug_datum inputs[MAX_IN], got[SNUG_MAX_PARTS];
    int n;
    for (int i = 0; i < c->n_in; i++) {
        inputs[i] = c->in[i].datum;
        in.type[i] = inputs[i].type;
        in.is_text[i] = inputs[i].is_text;
    }
    expect_ok(snug_data_op_create(e, c->op, c->attrs, c->n_attrs, &op, &err), &err);
    expect_ok(snug_data_op_spec(op, &in, &spec, &err), &err);
    expect_ok(snug_data_op_call(op, 0, inputs, c->n_in, got, SNUG_MAX_PARTS, &n, &err), &err);
    assert_int_equal(n, c->n_out);
    expect_spec(&spec, got, n, name);
    for (int i = 0; i < n; i++) {
        expect_part(&got[i], &c->out[i], name);
        snug_datum_drop(&got[i]);
    }
    snug_data_op_destroy(op);
}

static void test_case(void **state) {
    const char *name = *state;
    snug_engine *e = sn_test_engine(0);
    op_case *c = must(sizeof *c);
    read_case(name, c);
    run_case(c, e, name);
    free_case(c);
    sn_test_engine_end(e);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

int main(void) {
    static struct CMUnitTest tests[MAX_CASES];
    size_t n = 0;
    DIR *d = opendir(FOLDER);
    for (struct dirent *x; d && n < MAX_CASES && (x = readdir(d));)
        if (strstr(x->d_name, ".case")) {
            char *name = strdup(x->d_name);
            tests[n++] =
                (struct CMUnitTest){.name = name, .test_func = test_case, .initial_state = name};
        }
    if (d)
        closedir(d);
    qsort(tests, n, sizeof *tests, by_name);
    const int failed = _cmocka_run_group_tests("data_ops", tests, n, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        free(tests[i].initial_state);
    return n == 0 || failed;
}
