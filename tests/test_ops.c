/* test_ops.c: what every row of the table promises without its kernels being right: its cases are
 * worth running, its attributes survive their text, it refuses values that it says it may refuse.
 * The sweeps over kernels, axis rules and gradients are test_ops_kernels, _split and _gradient. */
#include "support/call.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- cases ----------------------------------------------------------------------------------- */

/* What the cases of a row cover together. */
typedef struct {
    int n;
    bool nothing, one, beyond_a_vector, threads;
} coverage;

static coverage covered[SN_N_OPS];

static void look_at(coverage *c, const snug_type *t) {
    for (int k = 0; k < t->rank; k++) {
        c->nothing = c->nothing || t->dims[k] == 0;
        c->one = c->one || t->dims[k] == 1;
        c->beyond_a_vector = c->beyond_a_vector || (t->dims[k] > 64 && t->dims[k] % 2 == 1);
    }
}

static void check_cover(sn_subject *s) {
    coverage *c = &covered[s->op];
    c->n += s->real == SNUG_F32;
    c->threads = c->threads || sn_subject_elements(s) >= 9000;
    for (int i = 0; i < s->desc.n_in; i++)
        look_at(c, &s->desc.in[i]);
    for (int k = 0; k < s->desc.n_out; k++)
        look_at(c, &s->desc.out[k]);
}

static void test_cases_cover_odd_large_and_empty_extents(void **state) {
    (void)state;
    memset(covered, 0, sizeof covered);
    sn_sweep_rows("cases", check_cover);
    for (int op = 0; op < SN_N_OPS; op++) {
        const coverage *c = &covered[op];
        if (c->n < 4 || !c->nothing || !c->one || !c->beyond_a_vector || !c->threads)
            fail_msg("cases of %s: %d; an extent of 0: %d, of 1: %d, odd and above 64: %d; 9000 "
                     "elements: %d",
                     sn_ops[op].name, c->n, c->nothing, c->one, c->beyond_a_vector, c->threads);
    }
}

/* --- attributes ------------------------------------------------------------------------------ */

static void check_attributes(sn_subject *s) {
    char text[512], again[512];
    sn_attrs back;
    snug_error err;
    sn_attrs_print(s->op, &s->desc.attrs, text, sizeof text);
    sn_checked(s);
    if (sn_attrs_parse(s->op, text, NULL, &back, &err) != SNUG_OK) {
        sn_complain(s, "'%s' does not parse: %s", text, err.text);
        return;
    }
    if (strcmp(sn_attrs_print(s->op, &back, again, sizeof again), text) != 0)
        sn_complain(s, "'%s' prints as '%s' when parsed", text, again);
    if (memcmp(&back, &s->desc.attrs, sizeof back) != 0)
        sn_complain(s, "'%s' parses to other words", text);
}

static void test_attributes_survive_their_text(void **state) {
    (void)state;
    sn_sweep_rows("attributes", check_attributes);
}

/* Every structure field, changed by itself, is seen in the text. */
static void check_each_field(sn_subject *s) {
    const sn_attr_family *family = sn_ops[s->op].attrs;
    for (int f = 0; f < family->n_fields; f++) {
        const sn_field *field = &family->fields[f];
        sn_attrs other = s->desc.attrs;
        char text[512], changed[512];
        int word = field->word;
        if (field->kind == SN_FIELD_REAL || field->kind == SN_FIELD_KEY)
            continue;
        if (field->kind == SN_FIELD_LIST && ++word && other.word[field->word] == 0)
            continue;
        other.word[word] = other.word[word] == 1 ? 2 : 1;
        sn_checked(s);
        sn_attrs_print(s->op, &s->desc.attrs, text, sizeof text);
        sn_attrs_print(s->op, &other, changed, sizeof changed);
        if (strcmp(text, changed) == 0)
            sn_complain(s, "another %s goes unseen", field->name);
    }
}

static void test_structure_is_all_of_the_structure(void **state) {
    (void)state;
    sn_sweep_rows("structure", check_each_field);
}

/* --- values that are refused ----------------------------------------------------------------- */

/* Runs with element i of input k replaced; what was there is put back. The error says the index, or
 * where the number that is none stands. */
static void expect_refused(sn_subject *s, const sn_how *how, int k, int64_t i, double bad) {
    char text[64];
    snug_error err = {0};
    snug_view out[SN_MAX_OUT];
    const double good = sn_view_get(&s->in[k], i);
    sn_outputs_make(s, how, &s->desc, out);
    sn_view_put(&s->in[k], i, bad);
    const snug_status status = sn_call_try(s, how, &s->desc, s->in, out, &err);
    sn_view_put(&s->in[k], i, good);
    sn_checked(s);
    if (status != (s->limit[k] > 0 ? SNUG_E_DATA : SNUG_E_NUMERIC))
        sn_complain(s, "%s gives %s for %g at element %lld of input %d", sn_how_text(how, text),
                    snug_status_name(status), bad, (long long)i, k);
    snprintf(text, sizeof text, "%lld", (long long)(s->limit[k] > 0 ? (int64_t)bad : i));
    if (!strstr(err.text, text))
        sn_complain(s, "'%s' does not say %s", err.text, text);
    sn_views_free(out, s->desc.n_out);
}

/* First, last and one in between; both kernels. */
static void refuse_everywhere(sn_subject *s, int k, double bad) {
    const int64_t n = sn_view_count(&s->in[k]);
    const sn_how hows[2] = {{.n_threads = 1}, {.isa = sn_cpu_isa(), .n_threads = 2}};
    for (int h = 0; h < 2; h++) {
        expect_refused(s, &hows[h], k, 0, bad);
        expect_refused(s, &hows[h], k, n / 2, bad);
        expect_refused(s, &hows[h], k, n - 1, bad);
    }
}

/* An index has a limit; a row without any looks at its floats. */
static void check_refusal(sn_subject *s) {
    static const double strange[] = {NAN, -NAN, INFINITY, -INFINITY};
    const bool skips = s->op == SN_OP_sparse_xent && s->desc.attrs.labels.skip; /* takes all */
    if (sn_ops[s->op].effect != SN_MAYFAIL || skips)
        return;
    for (int k = 0; k < s->desc.n_in; k++) {
        const double limit = (double)s->limit[k];
        const double far = s->desc.in[k].dtype == SNUG_I64 ? 1099511627776.0 : 2147483647.0;
        const double indices[] = {-1, limit, -2147483648.0, far};
        if (sn_view_count(&s->in[k]) == 0 || (limit == 0 && s->desc.n_in > 1))
            continue;
        for (int i = 0; i < 4; i++)
            refuse_everywhere(s, k, limit > 0 ? indices[i] : strange[i]);
    }
}

static void test_rows_that_may_fail_refuse_bad_values(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "refusal");
    sn_sweep_run(&w, check_refusal);
    for (int op = 0; op < SN_N_OPS; op++)
        if (sn_ops[op].effect == SN_MAYFAIL && w.checked[op] == 0)
            fail_msg("nothing was refused by %s", sn_ops[op].name);
    sn_sweep_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_cover_odd_large_and_empty_extents),
        cmocka_unit_test(test_attributes_survive_their_text),
        cmocka_unit_test(test_structure_is_all_of_the_structure),
        cmocka_unit_test(test_rows_that_may_fail_refuse_bad_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
