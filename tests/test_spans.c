/* test_spans.c: the maps over bytes that the plan checker replays on: of one iteration against an
 * array of bytes, of a run of iterations against a map for each of them. */
#include "support/support.h"

#include "memory/spans.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096 };

/* What a span holds, and a word that is no part of it. */
typedef struct {
    sn_ends held;
    uint64_t more;
} record;

static sn_ends both(int64_t a, int64_t b) {
    return (sn_ends){{a, b}};
}

static record holding(int64_t a) {
    return (record){both(a, a), (uint64_t)a};
}

static sn_spans map_on(snug_engine *e) {
    return (sn_spans){.engine = e, .n_content = 1, .record_bytes = sizeof(record)};
}

static void expect_span(const sn_spans *s, size_t i, sn_ends start, sn_ends held) {
    const record *r = sn_spans_record(s, i);
    for (int e = 0; e < 2; e++) {
        assert_int_equal(sn_spans_start(s, i).at[e], start.at[e]);
        assert_int_equal(r->held.at[e], held.at[e]);
    }
}

static void write_span(sn_spans *s, sn_ends start, sn_ends end, sn_ends held) {
    snug_error err;
    size_t first, stop;
    expect_ok(sn_spans_cut(s, start, end, &first, &stop, &err), &err);
    assert_false(s->crossed);
    sn_spans_merge(s, first, stop);
    *(record *)sn_spans_record(s, first) = (record){held, 1};
}

static void test_cutting_copies_the_record_to_all_pieces(void **state) {
    sn_spans s = map_on(*state);
    const record r = holding(7);
    snug_error err;
    size_t first, stop;
    expect_ok(sn_spans_append(&s, 100, &r, &err), &err);
    expect_ok(sn_spans_cut(&s, both(20, 20), both(60, 60), &first, &stop, &err), &err);
    assert_int_equal(first, 1);
    assert_int_equal(stop, 2);
    assert_int_equal(s.n, 3);
    expect_span(&s, 0, both(0, 0), both(7, 7));
    expect_span(&s, 1, both(20, 20), both(7, 7));
    expect_span(&s, 2, both(60, 60), both(7, 7));
    expect_ok(sn_spans_cut(&s, both(0, 0), both(100, 100), &first, &stop, &err), &err);
    assert_int_equal(stop - first, 3);
    sn_spans_merge(&s, first, stop);
    assert_int_equal(s.n, 1);
    expect_span(&s, 0, both(0, 0), both(7, 7));
    sn_spans_clear(&s);
}

static void test_appending_no_bytes_adds_nothing(void **state) {
    sn_spans s = map_on(*state);
    const record r = holding(1);
    snug_error err;
    expect_ok(sn_spans_append(&s, 0, &r, &err), &err);
    assert_int_equal(s.n, 0);
    expect_ok(sn_spans_append(&s, 8, &r, &err), &err);
    expect_ok(sn_spans_append(&s, 8, &r, &err), &err);
    assert_int_equal(s.n, 1);
    sn_spans_clear(&s);
}

static uint64_t random_state;
static int64_t draw(int64_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (int64_t)(random_state >> 33) % below;
}

/* Random writes of a record over a range, against an array with one entry per byte. */
static void test_random_writes_equal_an_array_of_bytes(void **state) {
    static int64_t model[BYTES];
    sn_spans s = map_on(*state);
    const record nothing = {.more = 0};
    snug_error err;
    random_state = 5;
    expect_ok(sn_spans_append(&s, BYTES, &nothing, &err), &err);
    for (int64_t i = 1; i < 3000; i++) {
        const int64_t a = draw(BYTES), b = draw(BYTES), held = draw(40);
        const int64_t start = a < b ? a : b, end = (a < b ? b : a) + 1;
        write_span(&s, both(start, start), both(end, end), both(held, held));
        for (int64_t k = start; k < end; k++)
            model[k] = held;
        if (i % 16 == 0)
            sn_spans_join(&s);
    }
    sn_spans_join(&s);
    int64_t at = 0;
    for (size_t i = 0; i < s.n; i++) {
        const record *r = sn_spans_record(&s, i);
        assert_int_equal(sn_spans_start(&s, i).at[0], at);
        assert_int_equal(r->more, 0);
        assert_true(i == 0 || model[at] != model[at - 1]); /* neighbours differ */
        for (; at < sn_spans_start(&s, i + 1).at[0]; at++)
            assert_int_equal(model[at], r->held.at[0]);
    }
    assert_int_equal(at, BYTES);
    assert_true(s.n_pool < 200); /* entries are used again */
    sn_spans_clear(&s);
}

/* --- runs ------------------------------------------------------------------------------------- */
/* Iteration i writes 8 bytes at 100 + 8 * i and says 5 + i of a word at 0. */
static void write_slice(sn_spans *s, int64_t first, int64_t last) {
    write_span(s, both(0, 0), both(8, 8), both(5 + first, 5 + last));
    write_span(s, both(100 + 8 * first, 100 + 8 * last), both(108 + 8 * first, 108 + 8 * last),
               both(3, 3));
    sn_spans_join(s);
}

static void test_a_run_of_slices_is_as_one_after_the_other(void **state) {
    const record nothing = {.more = 0};
    snug_error err;
    sn_spans s = map_on(*state);
    expect_ok(sn_spans_append(&s, BYTES, &nothing, &err), &err);
    write_slice(&s, 0, 0);
    assert_false(sn_spans_may_move(&s, 4)); /* nothing is kept yet */
    expect_ok(sn_spans_keep(&s, &err), &err);
    write_slice(&s, 1, 1);
    assert_true(sn_spans_may_move(&s, 400));
    assert_false(sn_spans_may_move(&s, 600)); /* 600 slices have no room */
    sn_spans_move(&s, 400);                   /* iterations 2 to 401 */
    assert_int_equal(s.n, 4);
    expect_span(&s, 0, both(0, 0), both(6, 405));
    expect_span(&s, 2, both(100, 100), both(3, 3));
    expect_span(&s, 3, both(116, 116 + 8 * 399), both(0, 0));
    assert_false(sn_spans_is_kept(&s)); /* before the run */
    write_slice(&s, 2, 401);
    assert_true(sn_spans_is_kept(&s));
    sn_spans_land(&s);
    expect_span(&s, 0, both(0, 0), both(406, 406));
    expect_span(&s, 3, both(100 + 8 * 402, 100 + 8 * 402), both(0, 0));
    sn_spans_clear(&s);
}

/* Or that meets another one at one end only. */
static void test_a_border_that_changes_sides_is_crossed(void **state) {
    static const struct {
        int64_t start[2], end[2];
        bool crossed;
    } rows[] = {
        /* the map has borders at 100 and 200, and ends at 400 */
        {{10, 50}, {20, 60}, false},     {{10, 10}, {100, 100}, false},
        {{110, 180}, {120, 190}, false}, {{300, 210}, {310, 220}, false},
        {{10, 150}, {20, 160}, true},    {{150, 10}, {160, 20}, true},
        {{10, 250}, {20, 260}, true},    {{90, 91}, {100, 101}, true},
        {{10, 90}, {20, 100}, true},    /* meets a border in the last iteration */
        {{200, 210}, {300, 310}, true}, /* and in the first */
        {{300, 390}, {310, 400}, true},  {{300, 300}, {400, 400}, false},
    };
    const record nothing = {.more = 0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snug_error err;
        sn_spans s = map_on(*state);
        size_t first, stop;
        expect_ok(sn_spans_append(&s, 400, &nothing, &err), &err);
        write_span(&s, both(100, 100), both(200, 200), both(9, 9));
        expect_ok(sn_spans_cut(&s, both(rows[i].start[0], rows[i].start[1]),
                               both(rows[i].end[0], rows[i].end[1]), &first, &stop, &err),
                  &err);
        if (s.crossed != rows[i].crossed)
            fail_msg("row %zu", i);
        assert_true(s.crossed ? first == stop : first < stop);
        sn_spans_clear(&s);
    }
}

static void test_a_map_that_jumps_is_not_kept(void **state) {
    const record nothing = {.more = 0};
    snug_error err;
    sn_spans s = map_on(*state);
    expect_ok(sn_spans_append(&s, BYTES, &nothing, &err), &err);
    write_slice(&s, 0, 0);
    expect_ok(sn_spans_keep(&s, &err), &err);
    write_slice(&s, 1, 1);
    sn_spans_move(&s, 100);
    write_slice(&s, 2, 101);
    write_span(&s, both(0, 0), both(8, 8), both(7, 105)); /* one less in the last iteration */
    assert_false(sn_spans_is_kept(&s));
    write_span(&s, both(0, 0), both(8, 8), both(7, 106));
    assert_true(sn_spans_is_kept(&s));
    write_span(&s, both(BYTES - 8, BYTES - 8), both(BYTES, BYTES), both(1, 1)); /* one more */
    assert_false(sn_spans_is_kept(&s));
    sn_spans_clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_cutting_copies_the_record_to_all_pieces),
        engine_test(test_appending_no_bytes_adds_nothing),
        engine_test(test_random_writes_equal_an_array_of_bytes),
        engine_test(test_a_run_of_slices_is_as_one_after_the_other),
        engine_test(test_a_border_that_changes_sides_is_crossed),
        engine_test(test_a_map_that_jumps_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
