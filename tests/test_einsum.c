/* test_einsum.c: sn_build_einsum gives what its letters say, term by term, for operands of any
 * order of axes, with a batch that is not known yet, and refuses what it cannot read by name.
 * Byte limit: 4 MiB. */
#include "support/eval.h"
#include "support/support.h"

#include "graph/build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Extents by letter: a is 2, b is 3, ... */
static int64_t extent(char letter) {
    return 2 + (letter - 'a') % 5;
}

/* "ab,bc->ac" taken apart. */
typedef struct {
    char term[3][16];
    int n; /* operands */
} letters;

static letters take_apart(const char *text) {
    letters l = {.n = strchr(text, ',') ? 2 : 1};
    const char *arrow = strstr(text, "->"), *comma = strchr(text, ',');
    const size_t first = (size_t)((comma ? comma : arrow) - text);
    memcpy(l.term[0], text, first);
    if (comma)
        memcpy(l.term[1], comma + 1, (size_t)(arrow - comma - 1));
    snprintf(l.term[2], sizeof l.term[2], "%s", arrow + 2);
    return l;
}

/* Where the element of `term` lies for these values of all letters. */
static int64_t place(const char *term, const int64_t *value) {
    int64_t at = 0;
    for (; *term; term++)
        at = at * extent(*term) + value[*term - 'a'];
    return at;
}

/* The next values of the letters in `all`; false after the last. */
static bool advance(const char *all, int64_t *value) {
    for (; *all; all++) {
        if (++value[*all - 'a'] < extent(*all))
            return true;
        value[*all - 'a'] = 0;
    }
    return false;
}

static void expect_sums(const char *text, const letters *l, const sn_test_arrays *in,
                        const sn_test_arrays *out) {
    char all[32] = "";
    double want[4096] = {0};
    int64_t value[26] = {0};
    for (int t = 0; t < l->n; t++)
        for (const char *c = l->term[t]; *c; c++)
            if (!strchr(all, *c))
                strncat(all, c, 1);
    do {
        double product = 1;
        for (int t = 0; t < l->n; t++)
            product *= in->data[t][place(l->term[t], value)];
        want[place(l->term[2], value)] += product;
    } while (advance(all, value));
    for (size_t i = 0; i < out->count[0]; i++)
        if (fabs(out->data[0][i] - want[i]) > 1e-12)
            fail_msg("%s: element %zu is %g, not %g", text, i, out->data[0][i], want[i]);
}

static void check(snug_engine *e, const char *text) {
    snug_error err;
    sn_graph *g;
    sn_value in[2];
    const letters l = take_apart(text);
    expect_ok(sn_graph_create(e, &g, &err), &err);
    for (int t = 0; t < l.n; t++) {
        snug_type type = {.dtype = SNUG_F64, .rank = (int)strlen(l.term[t])};
        for (int k = 0; k < type.rank; k++)
            type.dims[k] = extent(l.term[t][k]);
        expect_ok(sn_graph_input(g, t ? "y" : "x", &type, &in[t], &err), &err);
    }
    sn_builder b = sn_builder_on(g);
    const sn_value out = sn_build_einsum(&b, text, in, l.n);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "z", out, &err), &err);
    sn_test_arrays inputs = sn_test_inputs(g, -1, 1), outputs = sn_test_eval(e, g, &inputs);
    assert_int_equal(sn_graph_type(g, out)->rank, (int)strlen(l.term[2]));
    expect_sums(text, &l, &inputs, &outputs);
    sn_test_arrays_clear(&outputs);
    sn_test_arrays_clear(&inputs);
    sn_graph_destroy(g);
}

static void test_einsum_is_the_sum_its_letters_say(void **state) {
    static const char *const cases[] = {
        "ab,bc->ac",     "ab,cb->ac",       "ba,bc->ac",     "ba,cb->ca",       "abc,cd->abd",
        "abc,cde->abde", "abcd,cde->abe",   "abc,abd->acd",  "abcd,aecd->acbe", "abc,cb->a",
        "ab,b->a",       "a,a->",           "a,b->ab",       "ab,ab->ab",       "ab,ab->ba",
        "abc->cab",      "abc->b",          "abc->",         "ab,cd->ac",       "abcd,bafe->fabcde",
        "abcd,acbe->ad", "acbe,aecd->abcd", "abcd,dbe->ace", "abe,bcd->aecd",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(*state, cases[i]);
}

/* x f32[?,5,4] and y of this type; the type of the result or the message. */
static void expect_type(snug_engine *e, const char *text, const snug_type *y, const char *want) {
    snug_error err;
    sn_graph *g;
    sn_value in[2];
    char got[192];
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 3, {-1, 5, 4}}, &in[0], &err), &err);
    expect_ok(sn_graph_input(g, "y", y, &in[1], &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value out = sn_build_einsum(&b, text, in, 2);
    if (sn_builder_done(&b, &err) == SNUG_OK)
        assert_string_equal(snug_type_print(sn_graph_type(g, out), got, sizeof got), want);
    else if (!strstr(err.text, want))
        fail_msg("%s: %s", text, err.text);
    sn_graph_destroy(g);
}

static void test_an_open_batch_and_dots_keep_their_axes(void **state) {
    const snug_type w = {SNUG_F32, 2, {4, 6}}, k = {SNUG_F32, 3, {4, 2, 3}};
    const snug_type rows = {SNUG_F32, 2, {5, 6}};
    expect_type(*state, "abc,cd->abd", &w, "f32[?,5,6]");
    expect_type(*state, "...c,cd->...d", &w, "f32[?,5,6]");
    expect_type(*state, "abc,cde->abde", &k, "f32[?,5,2,3]");
    expect_type(*state, "a...c,cde->ad...e", &k, "f32[?,2,5,3]");
    expect_type(*state, "abc,cd->bda", &w, "f32[5,6,?]");
    expect_type(*state, "...c,...d->...cd", &rows, "f32[?,5,4,6]");
}

static void test_what_cannot_be_read_is_refused_by_name(void **state) {
    const snug_type w = {SNUG_F32, 2, {4, 6}};
    expect_type(*state, "abc,cd", &w, "einsum 'abc,cd': the result is not written");
    expect_type(*state, "ab,cd->ad", &w, "another number of axes");
    expect_type(*state, "aac,cd->ad", &w, "twice in one operand");
    expect_type(*state, "abc,cd->abx", &w, "each letter of the result");
    expect_type(*state, "abc,bd->acd", &w, "different extents");
    expect_type(*state, "...c,cd->d", &w, "must stand in the result");
    expect_type(*state, "abc->ab", &w, "fewer terms than operands");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_einsum_is_the_sum_its_letters_say),
        engine_test(test_an_open_batch_and_dots_keep_their_axes),
        engine_test(test_what_cannot_be_read_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
