/* test_data_flow.c: which elements come, in which order: sources, map, batch and the stages that
 * keep nothing. */
#include "support/streams.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) expect_ok(call, &err)

static snug_dataset *numbers(snug_engine *e, int64_t n, int64_t dims) {
    static float values[64];
    snug_dataset *d;
    snug_error err = {0};
    for (int i = 0; i < 64; i++)
        values[i] = (float)i;
    snug_view view = {values, sizeof values, {.dtype = SNUG_F32, .rank = 2, .dims = {n, dims}}};
    snug_element whole = {.n = 1};
    TRY(snug_datum_borrow(e, &view, NULL, NULL, &whole.part[0], &err));
    TRY(snug_dataset_from_element(e, &whole, 1, &d, &err));
    snug_element_drop(&whole);
    return d;
}

static snug_dataset *words(snug_engine *e) {
    const snug_text texts[] = {{"a", 1}, {"", 0}, {"ccc", 3}};
    snug_element whole = {.n = 1};
    snug_dataset *d;
    snug_error err = {0};
    TRY(snug_datum_texts(e, &(snug_type){.rank = 1, .dims = {3}}, texts, &whole.part[0], &err));
    TRY(snug_dataset_from_element(e, &whole, 1, &d, &err));
    snug_element_drop(&whole);
    return d;
}

static void test_sources_give_their_elements_in_order(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d;
    assert_string_equal(sn_stream_text(numbers(e, 3, 2)), "[0,1] [2,3] [4,5]");
    assert_string_equal(sn_stream_text(words(e)), "'a' '' 'ccc'");
    TRY(snug_dataset_range(e, 5, -4, -3, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), 3);
    assert_string_equal(sn_stream_text(d), "5 2 -1");
    TRY(snug_dataset_range(e, 5, 5, 1, &d, &err));
    assert_string_equal(sn_stream_text(d), "");
    snug_element whole = {.n = 1};
    TRY(snug_datum_create(e, &(snug_type){.dtype = SNUG_I64, .rank = 1, .dims = {2}},
                          &whole.part[0], &err));
    memcpy(whole.part[0].data, (int64_t[]){7, 8}, 16);
    TRY(snug_dataset_from_element(e, &whole, 0, &d, &err));
    snug_element_drop(&whole);
    assert_string_equal(sn_stream_text(d), "[7,8]");
}

static void test_feeds_give_rows(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    static const unsigned char x[6] = {1, 2, 3, 4, 5, 6};
    snug_feed *feeds[2];
    snug_dataset *d;
    TRY(snug_feed_from_memory(e, &(snug_type){.dtype = SNUG_U8, .rank = 2, .dims = {3, 2}}, x, NULL,
                              NULL, &feeds[0], &err));
    TRY(snug_feed_open(e, "constant:3@2.5", &feeds[1], &err));
    TRY(snug_dataset_from_feeds(e, feeds, 2, &d, &err));
    snug_dataset_hold(d);
    assert_string_equal(sn_stream_text(d), "([1,2],2.5) ([3,4],2.5) ([5,6],2.5)");
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    assert_string_equal(sn_stream_text(d), "([[1,2],[3,4]],[2.5,2.5]) ([[5,6]],[2.5])");
    TRY(snug_feed_open(e, "constant:3@1", &feeds[0], &err));
    TRY(snug_feed_open(e, "constant:4@1", &feeds[1], &err));
    expect_status(snug_dataset_from_feeds(e, feeds, 2, &d, &err), SNUG_E_DATA, &err);
}

static void test_batches_are_rows_of_arrays(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d = numbers(e, 5, 1);
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), 3);
    assert_int_equal(snug_dataset_spec(d)->type[0].dims[0], -1);
    assert_string_equal(sn_stream_text(d), "[[0],[1]] [[2],[3]] [[4]]");
    d = sn_range_of(e, 5);
    TRY(snug_dataset_batch(d, 2, 1, &d, &err));
    assert_int_equal(snug_dataset_spec(d)->type[0].dims[0], 2);
    assert_int_equal(snug_dataset_cardinality(d), 2);
    assert_string_equal(sn_stream_text(d), "[0,1] [2,3]");
    d = words(e);
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    assert_string_equal(sn_stream_text(d), "['a',''] ['ccc']");
    d = sn_range_of(e, 6);
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    assert_string_equal(sn_stream_text(d), "[[0,1],[2,3]] [[4,5]]");
    d = sn_range_of(e, 3);
    expect_status(snug_dataset_batch(d, 0, 0, &d, &err), SNUG_E_INVALID, &err);
}

static void test_elements_of_two_shapes_make_no_batch(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *a = numbers(e, 2, 2), *b = numbers(e, 1, 3), *d;
    TRY(snug_dataset_concatenate(a, b, &d, &err));
    assert_int_equal(snug_dataset_spec(d)->type[0].dims[0], -1);
    TRY(snug_dataset_batch(d, 3, 0, &d, &err));
    assert_non_null(strstr(sn_stream_text(d), "use padded_batch"));
}

static void test_a_batch_of_all_there_are_grows(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const sn_adder even = {.keeps_even = 1};
    const snug_mapper f = sn_adder_mapper(&even);
    snug_dataset *d = sn_range_of(e, 10000);
    TRY(snug_dataset_filter(d, &f, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), SNUG_UNKNOWN);
    TRY(snug_dataset_batch(d, 1 << 30, 0, &d, &err));
    snug_iterator *it;
    snug_element all;
    TRY(snug_iterator_create(d, &it, &err));
    TRY(snug_iterator_next(it, &all, &err));
    assert_int_equal(all.part[0].type.dims[0], 5000);
    for (int64_t i = 0; i < 5000; i++)
        assert_int_equal(((int64_t *)all.part[0].data)[i], 2 * i);
    snug_element_drop(&all);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
}

static void test_unbatch_is_the_other_way(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d = numbers(e, 5, 2);
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    TRY(snug_dataset_unbatch(d, &d, &err));
    assert_string_equal(sn_stream_text(d), "[0,1] [2,3] [4,5] [6,7] [8,9]");
    d = sn_range_of(e, 4);
    expect_status(snug_dataset_unbatch(d, &d, &err), SNUG_E_SHAPE, &err);
}

static void test_take_skip_shard_and_enumerate(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d = sn_range_of(e, 10);
    TRY(snug_dataset_skip(d, 2, &d, &err));
    TRY(snug_dataset_take(d, 5, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), 5);
    assert_string_equal(sn_stream_text(d), "2 3 4 5 6");
    d = sn_range_of(e, 3);
    TRY(snug_dataset_skip(d, 5, &d, &err));
    assert_string_equal(sn_stream_text(d), "");
    d = sn_range_of(e, 3);
    TRY(snug_dataset_take(d, -1, &d, &err));
    assert_string_equal(sn_stream_text(d), "0 1 2");
    for (int64_t i = 0; i < 3; i++) {
        static const char *const want[] = {"0 3 6", "1 4", "2 5"};
        d = sn_range_of(e, 7);
        TRY(snug_dataset_shard(d, 3, i, &d, &err));
        assert_int_equal(snug_dataset_cardinality(d), i == 0 ? 3 : 2);
        assert_string_equal(sn_stream_text(d), want[i]);
    }
    d = words(e);
    TRY(snug_dataset_enumerate(d, 5, &d, &err));
    assert_string_equal(sn_stream_text(d), "(5,'a') (6,'') (7,'ccc')");
}

static void test_repeat_goes_again(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d = sn_range_of(e, 3);
    TRY(snug_dataset_repeat(d, 2, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), 6);
    TRY(snug_dataset_batch(d, 4, 0, &d, &err)); /* batches run over the ends of passes */
    assert_string_equal(sn_stream_text(d), "[0,1,2,0] [1,2]");
    d = sn_range_of(e, 3);
    TRY(snug_dataset_repeat(d, -1, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), SNUG_ENDLESS);
    TRY(snug_dataset_take(d, 7, &d, &err));
    assert_string_equal(sn_stream_text(d), "0 1 2 0 1 2 0");
    d = sn_range_of(e, 0);
    TRY(snug_dataset_repeat(d, -1, &d, &err));
    assert_string_equal(sn_stream_text(d), "");
}

static void test_concatenate_and_zip(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d;
    TRY(snug_dataset_concatenate(sn_range_of(e, 2), sn_range_of(e, 3), &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), 5);
    assert_string_equal(sn_stream_text(d), "0 1 0 1 2");
    TRY(snug_dataset_zip((snug_dataset *[]){sn_range_of(e, 9), words(e)}, 2, &d, &err));
    assert_int_equal(snug_dataset_cardinality(d), 3);
    assert_string_equal(sn_stream_text(d), "(0,'a') (1,'') (2,'ccc')");
    expect_status(snug_dataset_concatenate(sn_range_of(e, 2), words(e), &d, &err), SNUG_E_SHAPE,
                  &err);
}

static void test_choices_say_where_the_next_comes_from(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d, *choices;
    TRY(snug_dataset_range(e, 0, 2, 1, &choices, &err));
    TRY(snug_dataset_repeat(choices, 4, &choices, &err));
    TRY(snug_dataset_choose((snug_dataset *[]){sn_range_of(e, 2), sn_range_of(e, 9)}, 2,
                            &(snug_choice){.choices = choices}, &d, &err));
    assert_string_equal(sn_stream_text(d), "0 0 1 1 2 3");
    TRY(snug_dataset_range(e, 0, 2, 1, &choices, &err));
    TRY(snug_dataset_repeat(choices, 4, &choices, &err));
    TRY(snug_dataset_choose((snug_dataset *[]){sn_range_of(e, 2), sn_range_of(e, 9)}, 2,
                            &(snug_choice){.choices = choices, .stop_on_empty = 1}, &d, &err));
    assert_string_equal(sn_stream_text(d), "0 0 1 1");
    const double weights[] = {0.5, 0, 0.5};
    TRY(snug_dataset_choose(
        (snug_dataset *[]){sn_range_of(e, 2), sn_range_of(e, 50), sn_range_of(e, 3)}, 3,
        &(snug_choice){.weights = weights, .seed = 3}, &d, &err));
    const char *text = sn_stream_text(d);
    assert_int_equal(strlen(text), 9); /* two and three, none of the one that weighs nothing */
}

/* Columns of a table are the parts of an element; whom the next comes from there may be any number
 * of. */
static void test_there_may_be_many_datasets(void **state) {
    enum { MANY = 3000 };
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d, *all[MANY], *choices;
    for (int i = 0; i <= SNUG_MAX_PARTS; i++)
        all[i] = sn_range_of(e, 2);
    TRY(snug_dataset_zip(all, SNUG_MAX_PARTS, &d, &err));
    assert_int_equal(snug_dataset_spec(d)->n, 128);
    assert_int_equal(strlen(sn_stream_text(d)), 2 * (2 + 2 * SNUG_MAX_PARTS - 1) + 1);
    for (int i = 0; i < SNUG_MAX_PARTS; i++)
        all[i] = sn_range_of(e, 2);
    expect_status(snug_dataset_zip(all, SNUG_MAX_PARTS + 1, &d, &err), SNUG_E_INVALID, &err);
    assert_non_null(strstr(err.text, "129 parts; there may be 128"));
    for (int i = 0; i < MANY; i++)
        all[i] = sn_range_of(e, 1);
    TRY(snug_dataset_range(e, 0, MANY, 1, &choices, &err));
    TRY(snug_dataset_choose(all, MANY, &(snug_choice){.choices = choices}, &d, &err));
    assert_int_equal(strlen(sn_stream_text(d)), 2 * MANY - 1);
}

static snug_dataset *mapped(snug_engine *e, int64_t n, const sn_adder *a, int workers, int ignore) {
    snug_error err = {0};
    const snug_mapper f = sn_adder_mapper(a);
    snug_dataset *d = sn_range_of(e, n);
    TRY(snug_dataset_map(d, &f, &(snug_map_options){.workers = workers, .ignore_errors = ignore},
                         &d, &err));
    return d;
}

static void test_maps_do_not_depend_on_their_workers(void **state) {
    snug_engine *e = *state;
    const sn_adder add = {.add = 100, .sleep_us = 300};
    char want[STREAM_TEXT_BYTES];
    strcpy(want, sn_stream_text(mapped(e, 200, &add, 0, 0)));
    assert_non_null(strstr(want, "100 101 102"));
    for (int workers = SNUG_AUTOTUNE; workers <= 8; workers++)
        assert_string_equal(sn_stream_text(mapped(e, 200, &add, workers, 0)), want);
}

static void test_failures_come_in_order_and_the_stream_goes_on(void **state) {
    snug_engine *e = *state;
    const sn_adder add = {.add = 10, .fails_at = 3, .sleep_us = 200};
    for (int workers = 0; workers <= 4; workers++) {
        assert_string_equal(sn_stream_text(mapped(e, 6, &add, workers, 0)),
                            "10 11 12 !3 is wrong 14 15");
        assert_string_equal(sn_stream_text(mapped(e, 6, &add, workers, 1)), "10 11 12 14 15");
    }
}

static void test_skipped_elements_are_not_mapped(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const sn_adder add = {.add = 10, .fails_at = 3};
    snug_dataset *d = mapped(e, 6, &add, 2, 0);
    TRY(snug_dataset_skip(d, 4, &d, &err));
    assert_string_equal(sn_stream_text(d), "14 15");
}

/* --- generators ------------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    int64_t n, opens, closes, releases;
    int64_t wrong_at, fails_at;
} counter_source;

typedef struct {
    counter_source *source;
    int64_t at;
} counter;

static snug_status open_counter(void *ctx, void **cursor, snug_error *err) {
    (void)err;
    counter *c = malloc(sizeof *c);
    *c = (counter){ctx, 0};
    c->source->opens++;
    *cursor = c;
    return SNUG_OK;
}

static snug_status next_counter(void *cursor, snug_element *out, snug_error *err) {
    counter *c = cursor;
    const int64_t i = c->at++;
    if (i >= c->source->n)
        return SNUG_E_END;
    if (i == c->source->fails_at) {
        strcpy(err->text, "the generator raised");
        return SNUG_E_DATA;
    }
    const snug_type type = {.dtype = SNUG_I64, .rank = i == c->source->wrong_at, .dims = {1}};
    const snug_status status = snug_datum_create(c->source->engine, &type, &out->part[0], err);
    if (status != SNUG_OK)
        return status;
    *(int64_t *)out->part[0].data = i;
    out->n = 1;
    return SNUG_OK;
}

static void close_counter(void *cursor) {
    ((counter *)cursor)->source->closes++;
    free(cursor);
}

static void release_counter(void *ctx) {
    ((counter_source *)ctx)->releases++;
}

static snug_dataset *generated(counter_source *s) {
    snug_error err = {0};
    snug_dataset *d;
    const snug_generator g = {.ctx = s,
                              .release = release_counter,
                              .spec = {.n = 1, .type = {{.dtype = SNUG_I64}}},
                              .cardinality = SNUG_UNKNOWN,
                              .open = open_counter,
                              .next = next_counter,
                              .close = close_counter,
                              .serial = 1};
    TRY(snug_dataset_from_generator(s->engine, &g, &d, &err));
    return d;
}

static void test_generators_are_opened_closed_and_released(void **state) {
    snug_error err = {0};
    counter_source s = {.engine = *state, .n = 3, .wrong_at = -1, .fails_at = -1};
    snug_dataset *d = generated(&s);
    TRY(snug_dataset_repeat(d, 2, &d, &err));
    assert_string_equal(sn_stream_text(d), "0 1 2 0 1 2");
    assert_int_equal(s.opens, 2);
    assert_int_equal(s.closes, 2);
    assert_int_equal(s.releases, 1);
}

static void test_a_generator_that_breaks_its_word_is_told(void **state) {
    counter_source s = {.engine = *state, .n = 3, .wrong_at = 1, .fails_at = -1};
    assert_string_equal(
        sn_stream_text(generated(&s)),
        "0 !the generator gave element 1 with i64[1] as part 0; i64[] was promised 2");
    s = (counter_source){.engine = *state, .n = 3, .wrong_at = -1, .fails_at = 0};
    assert_string_equal(sn_stream_text(generated(&s)), "!the generator raised 1 2");
    assert_int_equal(s.opens, 1);
    assert_int_equal(s.closes, 1);
}

static int always(void *ctx) {
    (void)ctx;
    return 1;
}

static void test_an_interrupt_stops_a_wait(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const sn_adder add = {.sleep_us = 1000};
    snug_dataset *d = mapped(e, 100, &add, 2, 0);
    snug_iterator *it;
    snug_element out;
    TRY(snug_iterator_create(d, &it, &err));
    TRY(snug_iterator_next(it, &out, &err));
    snug_element_drop(&out);
    snug_iterator_set_interrupt(it, always, NULL);
    expect_status(snug_iterator_next(it, &out, &err), SNUG_E_INTERRUPTED, &err);
    snug_iterator_set_interrupt(it, NULL, NULL);
    assert_string_equal(sn_next_text(it, 2), "1 2");
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_sources_give_their_elements_in_order),
        engine_test(test_feeds_give_rows),
        engine_test(test_batches_are_rows_of_arrays),
        engine_test(test_elements_of_two_shapes_make_no_batch),
        engine_test(test_a_batch_of_all_there_are_grows),
        engine_test(test_unbatch_is_the_other_way),
        engine_test(test_take_skip_shard_and_enumerate),
        engine_test(test_repeat_goes_again),
        engine_test(test_concatenate_and_zip),
        engine_test(test_choices_say_where_the_next_comes_from),
        engine_test(test_there_may_be_many_datasets),
        engine_test(test_maps_do_not_depend_on_their_workers),
        engine_test(test_failures_come_in_order_and_the_stream_goes_on),
        engine_test(test_skipped_elements_are_not_mapped),
        engine_test(test_generators_are_opened_closed_and_released),
        engine_test(test_a_generator_that_breaks_its_word_is_told),
        engine_test(test_an_interrupt_stops_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
