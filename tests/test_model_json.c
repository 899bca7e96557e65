/* test_model_json.c: trees of JSON are on the ledger while they live, with no less than what
 * jansson really takes from the C heap, and not many times more. */
#include "support/support.h"

#include "model/json.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* n times the piece between two ends; "%d" in it is the count. */
static char *repeated(const char *begin, const char *piece, const char *end, int n) {
    char *text = malloc((strlen(piece) + 16) * (size_t)n + 64);
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "%s", begin);
    for (int i = 0; i < n; i++) {
        at += (size_t)sprintf(text + at, "%s", i ? "," : "");
        at += (size_t)sprintf(text + at, piece, i);
    }
    sprintf(text + at, "%s", end);
    return text;
}

static void expect_bound(snug_engine *e, const char *begin, const char *piece, const char *end) {
    snug_error err;
    sn_json tree;
    char *text = repeated(begin, piece, end, 20000);
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    expect_ok(sn_json_parse(e, "file", text, strlen(text), &tree, &err), &err);
    const size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    assert_int_equal(snug_engine_bytes(e), tree.bytes);
#ifndef __SANITIZE_ADDRESS__ /* which has a heap of its own */
    if (taken > tree.bytes || tree.bytes > 4 * taken)
        fail_msg("%s: %zu bytes were booked, %zu taken", piece, tree.bytes, taken);
#endif
    (void)taken;
    sn_json_clear(&tree);
    assert_int_equal(snug_engine_bytes(e), 0);
    free(text);
}

static void test_trees_are_on_the_ledger(void **state) {
    snug_engine *e = *state;
    expect_bound(e, "[", "%d", "]");
    expect_bound(e, "[", "1.5", "]");
    expect_bound(e, "[", "{}", "]");
    expect_bound(e, "[", "[]", "]");
    expect_bound(e, "[", "[1, 2, 3]", "]");
    expect_bound(e, "[", "\"a\"", "]");
    expect_bound(e, "[", "\"text of some more letters than that, because names are long\"", "]");
    expect_bound(e, "{", "\"%d\":null", "}");
    expect_bound(e, "{", "\"a longer key, number %d\":{\"name\":\"kernel\",\"shape\":[3,3,1]}",
                 "}");
    expect_bound(e, "[",
                 "{\"module\":\"keras.layers\",\"class_name\":\"Dense\",\"config\":{\"units\":%d,"
                 "\"use_bias\":true},\"registered_name\":null}",
                 "]");
}

static void test_bad_trees_leave_nothing_booked(void **state) {
    snug_engine *e = *state;
    snug_error err;
    sn_json tree;
    expect_status(sn_json_parse(e, "file", "[1,", 3, &tree, &err), SNUG_E_FORMAT, &err);
    assert_int_equal(snug_engine_bytes(e), 0);
}

/* A tree larger than the budget is refused before it is made. */
static void test_trees_keep_the_budget(void **state) {
    (void)state;
    snug_error err;
    sn_json tree;
    snug_engine *e = sn_test_engine(100000);
    char *text = repeated("[", "{}", "]", 1000);
    expect_status(sn_json_parse(e, "file", text, strlen(text), &tree, &err), SNUG_E_BUDGET, &err);
    expect_text(err.text, "for model");
    free(text);
    sn_test_engine_end(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_trees_are_on_the_ledger),
        engine_test(test_bad_trees_leave_nothing_booked),
        cmocka_unit_test(test_trees_keep_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
