/* test_spans.c: the map over bytes that the plan checker replays on. */
#include "support/support.h"

#include "memory/spans.h"

enum { BYTES = 4096 };

static void expect_span(const sn_spans *s, size_t i, size_t start, size_t end, uint64_t record) {
    assert_int_equal(sn_spans_at(s, i)->start, start);
    assert_int_equal(sn_spans_at(s, i)->end, end);
    assert_int_equal(*(const uint64_t *)sn_spans_record(s, i), record);
}

static void test_cutting_copies_the_record_to_all_pieces(void **state) {
    sn_spans s = {.engine = *state, .record_bytes = sizeof(uint64_t)};
    const uint64_t record = 7;
    snug_error err;
    size_t first, stop;
    expect_ok(sn_spans_append(&s, 100, &record, &err), &err);
    expect_ok(sn_spans_cut(&s, 20, 60, &first, &stop, &err), &err);
    assert_int_equal(first, 1);
    assert_int_equal(stop, 2);
    assert_int_equal(s.n, 3);
    expect_span(&s, 0, 0, 20, 7);
    expect_span(&s, 1, 20, 60, 7);
    expect_span(&s, 2, 60, 100, 7);
    expect_ok(sn_spans_cut(&s, 0, 100, &first, &stop, &err), &err);
    assert_int_equal(stop - first, 3);
    sn_spans_merge(&s, first, stop);
    assert_int_equal(s.n, 1);
    expect_span(&s, 0, 0, 100, 7);
    sn_spans_clear(&s);
}

static void test_appending_no_bytes_adds_nothing(void **state) {
    sn_spans s = {.engine = *state, .record_bytes = sizeof(uint64_t)};
    const uint64_t record = 1;
    snug_error err;
    expect_ok(sn_spans_append(&s, 0, &record, &err), &err);
    assert_int_equal(s.n, 0);
    expect_ok(sn_spans_append(&s, 8, &record, &err), &err);
    expect_ok(sn_spans_append(&s, 8, &record, &err), &err);
    assert_int_equal(s.n, 1);
    sn_spans_clear(&s);
}

/* Random writes of a record over a range, against an array with one entry per byte. */
static void test_random_writes_equal_an_array_of_bytes(void **state) {
    static uint64_t model[BYTES];
    sn_spans s = {.engine = *state, .record_bytes = sizeof(uint64_t)};
    uint64_t random = 5, record = 0;
    snug_error err;
    expect_ok(sn_spans_append(&s, BYTES, &record, &err), &err);
    for (record = 1; record < 3000; record++) {
        size_t at[2], first, stop;
        for (int k = 0; k < 2; k++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            at[k] = (size_t)(random >> 33) % BYTES;
        }
        const size_t start = at[0] < at[1] ? at[0] : at[1];
        const size_t end = (at[0] < at[1] ? at[1] : at[0]) + 1;
        expect_ok(sn_spans_cut(&s, start, end, &first, &stop, &err), &err);
        sn_spans_merge(&s, first, stop);
        *(uint64_t *)sn_spans_record(&s, first) = record;
        for (size_t i = start; i < end; i++)
            model[i] = record;
    }
    size_t at = 0;
    for (size_t i = 0; i < s.n; i++) {
        const sn_span *span = sn_spans_at(&s, i);
        assert_int_equal(span->start, at);
        for (; at < span->end; at++)
            assert_int_equal(model[at], *(const uint64_t *)sn_spans_record(&s, i));
    }
    assert_int_equal(at, BYTES);
    sn_spans_clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_cutting_copies_the_record_to_all_pieces),
        engine_test(test_appending_no_bytes_adds_nothing),
        engine_test(test_random_writes_equal_an_array_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
