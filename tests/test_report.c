/* test_report.c: reports: what they print adds up, and they survive writers and allocators that
 * fail. */
#include "support/files.h"

#include <jansson.h>
#include <snug/train.h>
#include <stdlib.h>
#include <string.h>

#define MODEL SNUG_TEST_DATA "/data/tfkeras2_cnn.json"

typedef snug_status (*report_fn)(snug_model *m, const snug_writer *w, snug_error *err);

static snug_status plan_text(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_plan(m, &(snug_plan_request){.batch = 4, .train = 1},
                            SNUG_REPORT_COLOR | SNUG_REPORT_STEPS, w, err);
}

static snug_status plan_json(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_plan(m, &(snug_plan_request){.batch = 4, .train = 1},
                            SNUG_REPORT_JSON | SNUG_REPORT_STEPS, w, err);
}

static snug_status summary_text(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_summary(m, 0, w, err);
}

static snug_status summary_json(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_summary(m, SNUG_REPORT_JSON, w, err);
}

static snug_status memory_text(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_memory(snug_model_engine(m), 0, w, err);
}

static snug_status memory_json(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_memory(snug_model_engine(m), SNUG_REPORT_JSON, w, err);
}

static snug_status doctor_text(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_doctor(snug_model_engine(m), 0, w, err);
}

static snug_status doctor_json(snug_model *m, const snug_writer *w, snug_error *err) {
    return snug_report_doctor(snug_model_engine(m), SNUG_REPORT_JSON, w, err);
}

static snug_status ops_text(snug_model *m, const snug_writer *w, snug_error *err) {
    (void)m;
    return snug_report_ops(0, w, err);
}

static snug_status ops_json(snug_model *m, const snug_writer *w, snug_error *err) {
    (void)m;
    return snug_report_ops(SNUG_REPORT_JSON, w, err);
}

static snug_status layers_text(snug_model *m, const snug_writer *w, snug_error *err) {
    (void)m;
    return snug_report_layers(0, w, err);
}

static snug_status layers_json(snug_model *m, const snug_writer *w, snug_error *err) {
    (void)m;
    return snug_report_layers(SNUG_REPORT_JSON, w, err);
}

static const struct {
    const char *name;
    report_fn run;
    bool json;
} reports[] = {
    {"plan", plan_text, false},       {"plan json", plan_json, true},
    {"summary", summary_text, false}, {"summary json", summary_json, true},
    {"memory", memory_text, false},   {"memory json", memory_json, true},
    {"doctor", doctor_text, false},   {"doctor json", doctor_json, true},
    {"ops", ops_text, false},         {"ops json", ops_json, true},
    {"layers", layers_text, false},   {"layers json", layers_json, true},
};
enum { N_REPORTS = sizeof reports / sizeof *reports };

/* --- a writer that takes a number of pieces ------------------------------------------------- */

static snug_status take_pieces(void *ctx, const char *text, size_t n, snug_error *err) {
    int *left = ctx;
    (void)text, (void)n;
    if ((*left)-- > 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_IO, "no room for text");
}

static void test_every_report_passes_on_the_failure_of_its_writer(void **state) {
    snug_model *m;
    snug_error err = {0};
    expect_ok(snug_model_load(*state, MODEL, &m, &err), &err);
    for (int i = 0; i < N_REPORTS; i++) {
        int n = 0;
        for (bool failed = true; failed; n++) {
            int left = n;
            const snug_writer w = {&left, take_pieces};
            const snug_status status = reports[i].run(m, &w, &err);
            failed = left < 0;
            if (status != (failed ? SNUG_E_IO : SNUG_OK))
                fail_msg("%s, %d pieces: %s", reports[i].name, n, snug_status_name(status));
        }
        assert_true(n > 5);
    }
    snug_model_destroy(m);
}

static void test_json_reports_are_json_and_texts_are_lines(void **state) {
    snug_model *m;
    snug_error err = {0};
    expect_ok(snug_model_load(*state, MODEL, &m, &err), &err);
    for (int i = 0; i < N_REPORTS; i++) {
        sn_text t = sn_text_begin();
        const snug_writer w = sn_text_writer(&t);
        expect_ok(reports[i].run(m, &w, &err), &err);
        assert_true(t.n > 0 && t.text[t.n - 1] == '\n');
        json_t *root = json_loadb(t.text, t.n, 0, NULL);
        if ((root != NULL) != reports[i].json)
            fail_msg("%s: %s", reports[i].name, t.text);
        json_decref(root);
        sn_text_end(&t);
    }
    snug_model_destroy(m);
}

/* --- memory --------------------------------------------------------------------------------- */

static json_t *json_of(report_fn run, snug_model *m) {
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    snug_error err = {0};
    expect_ok(run(m, &w, &err), &err);
    json_t *root = json_loadb(t.text, t.n, 0, NULL);
    assert_non_null(root);
    sn_text_end(&t);
    return root;
}

static void test_memory_rows_add_up_to_the_ledger(void **state) {
    snug_model *m;
    snug_error err = {0};
    json_int_t sum = 0;
    expect_ok(snug_model_load(*state, MODEL, &m, &err), &err);
    json_t *root = json_of(memory_json, m);
    const json_t *rows = json_object_get(root, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!*json_string_value(json_object_get(row, "owner")))
            sum += json_integer_value(json_object_get(row, "bytes"));
    }
    assert_int_equal(sum, snug_engine_bytes(*state));
    assert_true(json_integer_value(json_object_get(root, "process_bytes")) > 1 << 20);
    json_decref(root);
    snug_model_destroy(m);
}

/* The same plan, asked for twice, says the same; another batch does not disturb it. */
static void test_plan_report_repeats(void **state) {
    snug_model *m;
    snug_error err = {0};
    expect_ok(snug_model_load(*state, MODEL, &m, &err), &err);
    json_t *a = json_of(plan_json, m);
    snug_model_plan_info info;
    expect_ok(snug_model_plan(m, &(snug_plan_request){.batch = 7, .train = 0}, &info, &err), &err);
    json_t *b = json_of(plan_json, m);
    static const char *const keys[] = {
        "arena_bytes", "lower_bound_bytes", "state_bytes", "flops", "layers", "plan"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_true(json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])));
    json_decref(a);
    json_decref(b);
    snug_model_destroy(m);
}

/* --- faults --------------------------------------------------------------------------------- */

static snug_status report_scenario(snug_engine *e, void *ctx, snug_error *err) {
    snug_model *m;
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    snug_status status = snug_model_load(e, ctx, &m, err);
    if (status == SNUG_OK) {
        status = plan_json(m, &w, err);
        snug_model_destroy(m);
    }
    sn_text_end(&t);
    return status;
}

static void test_plan_report_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(report_scenario, SNUG_TEST_DATA "/data/keras2_list.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_every_report_passes_on_the_failure_of_its_writer),
        engine_test(test_json_reports_are_json_and_texts_are_lines),
        engine_test(test_memory_rows_add_up_to_the_ledger),
        engine_test(test_plan_report_repeats),
        cmocka_unit_test(test_plan_report_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
