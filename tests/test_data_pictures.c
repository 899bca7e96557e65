/* test_data_pictures.c: pictures changed at random: what each change does, that the same key gives
 * the same picture, and that workers change nothing. */
#include "support/streams.h"

#include "data/augment.h"

#include <string.h>

#define TRY(call) expect_ok(call, &err)

static const sn_picture_size small = {4, 4, 2};
enum { N = 32 };

static void number_pixels(float *p) {
    for (int i = 0; i < N; i++)
        p[i] = (float)i / N;
}

static void run(const char *words, uint64_t key, float *out) {
    snug_error err = {0};
    sn_augment a;
    float spare[N];
    TRY(sn_augment_parse(words, small, &a, &err));
    number_pixels(out);
    sn_augment_run(&a, small, 1, key, out, spare);
}

/* How many of a hundred keys change the picture; each pixel stays a pixel where `moves`. */
static int count_changed(const char *words, bool moves) {
    float plain[N], got[N];
    int changed = 0;
    number_pixels(plain);
    for (uint64_t key = 0; key < 100; key++) {
        run(words, key, got);
        changed += memcmp(plain, got, sizeof got) != 0;
        for (int i = 0; i < N && moves; i += 2) {
            const int from = (int)(got[i] * N + 0.5f);
            assert_true(from >= 0 && from < N && from % 2 == 0);
            expect_real((double)got[i + 1], (double)plain[from + 1], 1e-6); /* channels together */
        }
    }
    return changed;
}

static void test_changes_come_at_random_and_keep_pixels_whole(void **state) {
    (void)state;
    assert_in_range(count_changed("flip", true), 30, 70);
    assert_in_range(count_changed("flip_up_down", true), 30, 70);
    assert_in_range(count_changed("rot90", true), 55, 95);
    assert_in_range(count_changed("crop:1", true), 75, 99);
    assert_in_range(count_changed("brightness:0.2,contrast:0.2", false), 99, 100);
    assert_int_equal(count_changed("", true), 0);
}

static void test_a_flip_is_the_mirror_image(void **state) {
    (void)state;
    float plain[N], got[N];
    number_pixels(plain);
    for (uint64_t key = 0; key < 20; key++) {
        run("flip", key, got);
        const bool flipped = memcmp(plain, got, sizeof got) != 0;
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 8; x++) {
                const int from = flipped ? (3 - x / 2) * 2 + x % 2 : x;
                assert_true(got[y * 8 + x] == plain[y * 8 + from]);
            }
    }
}

static void test_one_change_draws_nothing_of_another(void **state) {
    (void)state;
    float alone[N], both[N];
    run("flip", 7, alone);
    run("flip,brightness:0.0000001", 7, both);
    for (int i = 0; i < N; i++)
        expect_real((double)both[i], (double)alone[i], 1e-5);
}

static void test_unknown_words_are_refused(void **state) {
    (void)state;
    sn_augment a;
    snug_error err = {0};
    expect_status(sn_augment_parse("flip,twist", small, &a, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "'twist'");
    expect_status(sn_augment_parse("crop:4", small, &a, &err), SNUG_E_INVALID, &err);
    expect_status(sn_augment_parse("rot90x", small, &a, &err), SNUG_E_INVALID, &err);
    expect_status(sn_augment_parse("crop:1e38", small, &a, &err), SNUG_E_INVALID, &err);
}

static const char *pictures(snug_engine *e, int workers) {
    snug_error err = {0};
    snug_feed *feed;
    snug_dataset *d;
    TRY(snug_feed_open(e, "uniform:20x4x4x2@1", &feed, &err));
    TRY(snug_dataset_from_feeds(e, &feed, 1, &d, &err));
    const snug_pictures o = {.height = 4,
                             .width = 4,
                             .channels = 2,
                             .scale = 255,
                             .augment = "flip,crop:1,contrast",
                             .seed = 3,
                             .map = {.workers = workers}};
    TRY(snug_dataset_pictures(d, &o, &d, &err));
    TRY(snug_dataset_repeat(d, 2, &d, &err));
    return sn_stream_text(d);
}

static void test_workers_make_the_same_pictures(void **state) {
    static char want[STREAM_TEXT_BYTES];
    strcpy(want, pictures(*state, 0));
    assert_true(strlen(want) > 1000);
    for (int workers = 1; workers < 5; workers++)
        assert_string_equal(pictures(*state, workers), want);
    /* the second pass draws anew */
    assert_memory_not_equal(want, strchr(want + strlen(want) / 2, ' ') + 1, 100);
}

static void test_pictures_of_another_size_are_refused(void **state) {
    snug_error err = {0};
    snug_dataset *d = sn_range_of(*state, 3);
    TRY(snug_dataset_pictures(d, &(snug_pictures){.height = 2, .width = 2}, &d, &err));
    expect_text(sn_stream_text(d), "a picture is i64[], not f32[2,2,3]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_come_at_random_and_keep_pixels_whole),
        cmocka_unit_test(test_a_flip_is_the_mirror_image),
        cmocka_unit_test(test_one_change_draws_nothing_of_another),
        cmocka_unit_test(test_unknown_words_are_refused),
        engine_test(test_workers_make_the_same_pictures),
        engine_test(test_pictures_of_another_size_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
