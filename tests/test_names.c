/* test_names.c: the table of names. */
#include "support/support.h"

#include "memory/names.h"

#include <stdio.h>

static void put(sn_names *t, const char *name, uint32_t id) {
    snug_error err;
    expect_ok(sn_names_reserve(t, &err), &err);
    sn_names_put(t, name, id);
}

static void test_every_name_is_found_with_its_number_and_no_other(void **state) {
    sn_names t = {.engine = *state, .category = SN_MEM_GRAPH};
    char names[1000][8];
    uint32_t id;
    assert_false(sn_names_find(&t, "n0", &id));
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        put(&t, names[i], i);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(sn_names_find(&t, names[i], &id));
        assert_int_equal(id, i);
    }
    assert_false(sn_names_find(&t, "n1000", &id));
    assert_false(sn_names_find(&t, "", &id));
    sn_names_clear(&t);
}

static void test_a_name_put_again_has_the_new_number(void **state) {
    sn_names t = {.engine = *state, .category = SN_MEM_GRAPH};
    uint32_t id = 0;
    put(&t, "kernel", 3);
    put(&t, "kernel", 7);
    assert_int_equal(t.n, 1);
    assert_true(sn_names_find(&t, "kernel", &id));
    assert_int_equal(id, 7);
    sn_names_forget(&t);
    assert_false(sn_names_find(&t, "kernel", &id));
    sn_names_clear(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_every_name_is_found_with_its_number_and_no_other),
        engine_test(test_a_name_put_again_has_the_new_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
