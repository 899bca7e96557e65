/* Rules of room base: statuses and errors, checked sizes, byte counts, random streams,
 * permutations, reals. */
#include "support/support.h"

#include "base/real.h"
#include "base/rng.h"
#include "base/say.h"
#include "base/size.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- statuses ------------------------------------------------------------------------------- */

static void test_status_names_and_exit_codes_come_from_the_table(void **state) {
    (void)state;
    assert_string_equal(snug_status_name(SNUG_OK), "SNUG_OK");
    assert_string_equal(snug_status_name(SNUG_E_BUDGET), "SNUG_E_BUDGET");
    assert_int_equal(snug_status_exit_code(SNUG_E_BUDGET), 3);
    assert_int_equal(snug_status_exit_code(SNUG_E_INTERRUPTED), 130);
    assert_string_equal(snug_status_meaning(SNUG_E_NUMERIC), "NaN or infinity");
    assert_string_equal(snug_version(), "0.1.0");
}

static void test_status_that_does_not_exist_reads_as_internal(void **state) {
    (void)state;
    assert_string_equal(snug_status_name((snug_status)999), "SNUG_E_INTERNAL");
    assert_string_equal(snug_status_name((snug_status)-1), "SNUG_E_INTERNAL");
}

static void test_fail_fills_the_error_and_returns_the_code(void **state) {
    (void)state;
    snug_error err;
    assert_int_equal(sn_fail(&err, SNUG_E_SHAPE, "axis %d", 3), SNUG_E_SHAPE);
    assert_int_equal(err.code, SNUG_E_SHAPE);
    assert_string_equal(err.text, "axis 3");
    assert_int_equal(sn_fail(NULL, SNUG_E_IO, "no one listens"), SNUG_E_IO);
}

static void test_fail_cuts_a_text_that_is_too_long(void **state) {
    (void)state;
    snug_error err;
    memset(&err, 0x55, sizeof err);
    (void)sn_fail(&err, SNUG_E_IO, "%0600d", 1);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void test_fail_in_puts_a_prefix_before_the_text(void **state) {
    (void)state;
    snug_error err;
    (void)sn_fail(&err, SNUG_E_FORMAT, "bad header");
    assert_int_equal(sn_fail_in(&err, SNUG_E_IO, "file %s", "a.npy"), SNUG_E_FORMAT);
    assert_string_equal(err.text, "file a.npy: bad header");
    assert_int_equal(sn_fail_in(NULL, SNUG_E_IO, "x"), SNUG_E_IO);
    (void)sn_fail_in(&err, SNUG_E_IO, "%0505d", 1);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    expect_text(err.text, "1: file");
}

static void test_say_writes_pieces_and_cuts_long_ones(void **state) {
    (void)state;
    snug_error err = {0};
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    expect_ok(sn_say(&w, &err, "%d + %s", 1, "two"), &err);
    expect_ok(sn_say(&w, &err, "%s", ""), &err);
    expect_ok(sn_say(&w, &err, "\n"), &err);
    assert_string_equal(t.text, "1 + two\n");
    expect_ok(sn_say(&w, &err, "%02000d", 7), &err);
    assert_int_equal(t.n, 8 + 1023);
    sn_text_end(&t);
}

/* --- sizes ---------------------------------------------------------------------------------- */

static void test_size_arithmetic_refuses_overflow_and_leaves_the_output(void **state) {
    (void)state;
    size_t n = 7;
    assert_false(sn_size_mul(SIZE_MAX / 2 + 1, 2, &n));
    assert_false(sn_size_add(SIZE_MAX, 1, &n));
    assert_false(sn_size_align(SIZE_MAX - 62, 64, &n));
    assert_int_equal(n, 7);
    assert_true(sn_size_align(SIZE_MAX - 63, 64, &n));
    assert_true(n == SIZE_MAX - 63);
    assert_true(sn_size_align(65, 64, &n));
    assert_int_equal(n, 128);
    int64_t i = 5;
    assert_false(sn_i64_mul(INT64_MIN, -1, &i));
    assert_false(sn_i64_add(INT64_MAX, 1, &i));
    assert_int_equal(i, 5);
}

/* --- byte counts ---------------------------------------------------------------------------- */

static void test_bytes_parse_reads_what_people_write(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"4096", 4096},
        {"0", 0},
        {"512MiB", (size_t)512 << 20},
        {"2GB", 2000000000u},
        {"1.5 KiB", 1536},
        {" 12 kb ", 12000},
        {"1.0001KB", 1000},
        {"3K", 3072},
        {"1T", (size_t)1 << 40},
        {".5MiB", (size_t)512 << 10},
        {"7b", 7},
        {"0.999999999999999999999 MB", 999999},
        {"18446744073709551615", SIZE_MAX},
        {"16777215.99 TiB", 18446744062714435338u},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snug_error err = {0};
        size_t bytes = 1;
        expect_ok(snug_bytes_parse(cases[i].text, &bytes, &err), &err);
        if (bytes != cases[i].bytes)
            fail_msg("'%s' gave %zu, not %zu", cases[i].text, bytes, cases[i].bytes);
    }
}

static void test_bytes_parse_refuses_what_is_no_size(void **state) {
    (void)state;
    static const struct {
        const char *text, *piece;
        snug_status status;
    } cases[] = {
        {"lots", "'lots' is not a number of bytes", SNUG_E_INVALID},
        {"", "not a number", SNUG_E_INVALID},
        {".", "not a number", SNUG_E_INVALID},
        {"-5MiB", "negative", SNUG_E_INVALID},
        {"5 bananas", "'bananas' in '5 bananas' is not a unit", SNUG_E_INVALID},
        {"5MiBx", "not a unit", SNUG_E_INVALID},
        {"1e9", "not a unit", SNUG_E_INVALID},
        {"1.2.3", "not a unit", SNUG_E_INVALID},
        {"nan", "not a number", SNUG_E_INVALID},
        {"18446744073709551616", "address space", SNUG_E_INVALID},
        {"16777216 TiB", "address space", SNUG_E_INVALID},
        {"99999999999999999999999999999999999999999999", "address space", SNUG_E_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snug_error err = {0};
        size_t bytes = 77;
        expect_status(snug_bytes_parse(cases[i].text, &bytes, &err), cases[i].status, &err);
        expect_text(err.text, cases[i].piece);
        assert_int_equal(bytes, 77);
    }
}

static void test_bytes_print_rounds_to_tenths(void **state) {
    (void)state;
    char text[24];
    assert_string_equal(snug_bytes_print(0, text, sizeof text), "0 B");
    assert_string_equal(snug_bytes_print(1023, text, sizeof text), "1023 B");
    assert_string_equal(snug_bytes_print(1024, text, sizeof text), "1.0 KiB");
    assert_string_equal(snug_bytes_print(536870912, text, sizeof text), "512.0 MiB");
    assert_string_equal(snug_bytes_print(1536, text, sizeof text), "1.5 KiB");
    assert_string_equal(snug_bytes_print((1u << 20) - 1, text, sizeof text), "1.0 MiB");
    assert_string_equal(snug_bytes_print(SIZE_MAX, text, sizeof text), "16.0 EiB");
    assert_string_equal(snug_bytes_print(1536, text, 4), "1.5");
}

/* --- random streams ------------------------------------------------------------------------- */

/* The known answers published with Random123 (kat_vectors, philox4x32 10). */
static void test_philox_gives_the_published_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t key, hi, lo;
        uint32_t want[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sn_philox_block b = sn_philox(cases[i].key, cases[i].hi, cases[i].lo);
        assert_memory_equal(b.v, cases[i].want, sizeof b.v);
    }
}

static void test_any_part_of_a_stream_has_the_bits_of_the_whole(void **state) {
    (void)state;
    enum { N = 403 }; /* more than are made side by side */
    for (int kind = SN_RANDOM_UNIFORM; kind <= SN_RANDOM_TRUNCATED; kind++) {
        float whole[N], part[N];
        double whole64[N], part64[N];
        sn_random_fill_f32((sn_random_kind)kind, 9, 1000, N, whole);
        sn_random_fill_f64((sn_random_kind)kind, 9, 1000, N, whole64);
        for (size_t first = 0; first < 9; first++) {
            for (size_t n = 0; n < 11; n++) {
                sn_random_fill_f32((sn_random_kind)kind, 9, 1000 + first, n, part);
                sn_random_fill_f64((sn_random_kind)kind, 9, 1000 + first, n, part64);
                assert_memory_equal(part, whole + first, n * sizeof *part);
                assert_memory_equal(part64, whole64 + first, n * sizeof *part64);
            }
        }
        for (size_t i = 0; i < N; i++) {
            sn_random_fill_f32((sn_random_kind)kind, 9, 1000 + i, 1, part);
            assert_memory_equal(part, whole + i, sizeof *part);
        }
    }
}

static void test_keys_and_streams_differ(void **state) {
    (void)state;
    assert_true(sn_rng_key(1, 0) != sn_rng_key(1, 1));
    assert_true(sn_rng_key(1, 0) != sn_rng_key(2, 0));
    assert_true(sn_rng_key(1, 7) == sn_rng_key(1, 7));
}

enum { MANY = 200000 };

/* Mean, deviation, and the share of elements that `inside` covers, against what they must be. 6
 * standard errors: the streams are fixed, so the test cannot flicker. */
static void check_moments(const float *x, double mean, double deviation) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < MANY; i++) {
        sum += (double)x[i];
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    const double error = deviation / sqrt((double)MANY);
    assert_true(fabs(sum / MANY - mean) < 6 * error);
    assert_true(fabs(sqrt(squares / MANY) - deviation) < 6 * error);
}

static void test_uniform_fills_zero_to_one_evenly(void **state) {
    (void)state;
    float *x = malloc(MANY * sizeof *x);
    assert_non_null(x);
    sn_random_fill_f32(SN_RANDOM_UNIFORM, 3, 0, MANY, x);
    size_t bins[10] = {0};
    for (size_t i = 0; i < MANY; i++) {
        assert_true(x[i] >= 0.0f && x[i] < 1.0f);
        bins[(size_t)(x[i] * 10.0f)]++;
    }
    for (size_t b = 0; b < 10; b++)
        assert_true(bins[b] > MANY / 10 - 900 && bins[b] < MANY / 10 + 900);
    check_moments(x, 0.5, 0.28867513);
    free(x);
}

static void test_normal_has_the_shares_of_a_normal(void **state) {
    (void)state;
    float *x = malloc(MANY * sizeof *x);
    assert_non_null(x);
    sn_random_fill_f32(SN_RANDOM_NORMAL, 4, 0, MANY, x);
    check_moments(x, 0.0, 1.0);
    size_t below[4] = {0}; /* under -2, -1, 0, 1 */
    for (size_t i = 0; i < MANY; i++) {
        for (int t = 0; t < 4; t++)
            below[t] += x[i] < (float)(t - 2);
    }
    static const double want[4] = {0.02275013, 0.15865525, 0.5, 0.84134475};
    for (int t = 0; t < 4; t++)
        assert_true(fabs((double)below[t] / MANY - want[t]) < 6 * sqrt(0.25 / MANY));
    free(x);
}

static void test_truncated_normal_stays_within_two(void **state) {
    (void)state;
    float *x = malloc(MANY * sizeof *x);
    float *plain = malloc(MANY * sizeof *plain);
    assert_true(x && plain);
    sn_random_fill_f32(SN_RANDOM_TRUNCATED, 4, 0, MANY, x);
    sn_random_fill_f32(SN_RANDOM_NORMAL, 4, 0, MANY, plain);
    size_t redrawn = 0;
    for (size_t i = 0; i < MANY; i++) {
        assert_true(fabsf(x[i]) <= 2.0f);
        if (fabsf(plain[i]) <= 2.0f)
            assert_true(x[i] == plain[i]);
        else
            redrawn++;
    }
    assert_true(redrawn > MANY / 25 && redrawn < MANY / 20);
    check_moments(x, 0.0, 0.87962566);
    free(x);
    free(plain);
}

static void test_f32_stream_is_the_f64_stream_rounded(void **state) {
    (void)state;
    enum { N = 20000 };
    float *x = malloc(N * sizeof *x);
    double *y = malloc(N * sizeof *y);
    assert_true(x && y);
    for (int kind = SN_RANDOM_UNIFORM; kind <= SN_RANDOM_TRUNCATED; kind++) {
        sn_random_fill_f32((sn_random_kind)kind, 5, 0, N, x);
        sn_random_fill_f64((sn_random_kind)kind, 5, 0, N, y);
        for (size_t i = 0; i < N; i++)
            assert_true(fabs((double)x[i] - y[i]) < 2e-6);
    }
    free(x);
    free(y);
}

/* Bits of the first normals, so that a change of the series or of the compiler's contraction shows.
 * */
static void test_f32_normals_keep_their_bits(void **state) {
    (void)state;
    float x[4];
    sn_random_fill_f32(SN_RANDOM_NORMAL, 1, 0, 4, x);
    char text[128];
    snprintf(text, sizeof text, "%a %a %a %a", (double)x[0], (double)x[1], (double)x[2],
             (double)x[3]);
    assert_string_equal(text, "0x1.8587c8p-2 -0x1.2f637cp-2 -0x1.fe6e18p-3 -0x1.00fb7ap+0");
}

/* --- permutations --------------------------------------------------------------------------- */

static void test_permute_is_a_bijection_for_any_n(void **state) {
    (void)state;
    static const uint64_t more[] = {1000, 1023, 1024, 1025, 4097};
    for (uint64_t k = 1; k < 75; k++) {
        const uint64_t n = k < 70 ? k : more[k - 70];
        unsigned char seen[4097] = {0};
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t p = sn_permute(k * 31, n, i);
            assert_true(p < n);
            assert_int_equal(seen[p], 0);
            seen[p] = 1;
        }
    }
}

static void test_permute_handles_the_largest_n(void **state) {
    (void)state;
    const uint64_t n = UINT64_MAX;
    assert_true(sn_permute(1, n, 0) < n);
    assert_true(sn_permute(1, n, 0) != sn_permute(1, n, 1));
    assert_true(sn_permute(1, n, n - 1) != sn_permute(2, n, n - 1));
}

/* Each of the 6 orders of 3, each value at each place of 10: chi-square at far beyond any accident.
 * */
static void test_permute_favours_no_order(void **state) {
    (void)state;
    enum { KEYS = 6000 };
    size_t orders[27] = {0}, places[10][10] = {{0}};
    for (uint64_t key = 0; key < KEYS; key++) {
        const uint64_t k = sn_rng_key(77, key);
        orders[sn_permute(k, 3, 0) * 9 + sn_permute(k, 3, 1) * 3 + sn_permute(k, 3, 2)]++;
        for (uint64_t i = 0; i < 10; i++)
            places[i][sn_permute(k, 10, i)]++;
    }
    static const size_t legal[6] = {5, 7, 11, 15, 19, 21};
    for (int o = 0; o < 6; o++)
        assert_in_range(orders[legal[o]], KEYS / 6 - 180, KEYS / 6 + 180);
    for (int i = 0; i < 100; i++)
        assert_in_range(places[i / 10][i % 10], KEYS / 10 - 150, KEYS / 10 + 150);
}

/* --- reals ---------------------------------------------------------------------------------- */

/* True or false, not assertions: also asked in a process of its own. */
static bool comes_back(double v) {
    char text[SN_REAL_TEXT];
    const char *end;
    double back;
    sn_real_print(v, 17, text);
    return !strchr(text, ',') && sn_real_parse(text, &end, &back) && *end == '\0' &&
           memcmp(&back, &v, sizeof v) == 0;
}

static bool reads(const char *text, double want, const char *rest) {
    const char *end;
    double v;
    return sn_real_parse(text, &end, &v) && v == want && strcmp(end, rest) == 0;
}

static bool reads_nothing(const char *text) {
    const char *end;
    double v;
    return !sn_real_parse(text, &end, &v);
}

static bool reals_are_right(void) {
    char text[SN_REAL_TEXT];
    return comes_back(0) && comes_back(-0.0) && comes_back(0.1) && comes_back(-2.5e-300) &&
           comes_back(1.7976931348623157e308) && comes_back(5e-324) && comes_back(12345.678) &&
           reads("1.5,2", 1.5, ",2") && reads("1,5", 1, ",5") && reads("-.25 x", -0.25, " x") &&
           reads("2.5.5", 2.5, ".5") && reads("7x.5", 7, "x.5") && reads("1e3@4", 1000, "@4") &&
           reads("inf", (double)INFINITY, "") && reads_nothing("") && reads_nothing(" 1") &&
           reads_nothing("\n1") && reads_nothing("x1") && reads_nothing(".") &&
           strcmp(sn_real_print(0.001, 9, text), "0.001") == 0;
}

static void test_reals_come_back_and_end_where_they_end(void **state) {
    (void)state;
    assert_true(reals_are_right());
}

enum { NO_LOCALE = 77 };

/* Exit code 0: as it should be. The C library reads the place of locales once, so not in this
 * process. */
static int speak_with_commas(const char *dir) {
    char text[8];
    if (setenv("LOCPATH", dir, 1) != 0 || !setlocale(LC_NUMERIC, "xx_XX.UTF-8"))
        return NO_LOCALE;
    snprintf(text, sizeof text, "%.1f", 0.5);
    if (strcmp(text, "0,5") != 0)
        return 1;
    return reals_are_right() ? 0 : 2;
}

static void test_reals_have_a_point_under_every_locale(void **state) {
    (void)state;
    sn_test_dir dir;
    char source[256], command[800];
    sn_test_dir_begin(&dir);
    static const char comma[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                                "grouping -1\nEND LC_NUMERIC\n";
    sn_test_write_file(sn_test_path(&dir, "comma", source), comma, sizeof comma - 1);
    snprintf(command, sizeof command, "localedef -c -i %s -f UTF-8 %s/xx_XX.UTF-8 >%s/log 2>&1",
             source, dir.path, dir.path);
    const int made = system(command); /* says 1, a warning: most categories are not there */
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(made == -1 ? NO_LOCALE : speak_with_commas(dir.path));
    assert_int_equal(waitpid(child, &status, 0), child);
    snprintf(command, sizeof command, "rm -rf %s/xx_XX.UTF-8", dir.path);
    assert_int_equal(system(command), 0);
    sn_test_dir_end(&dir);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_LOCALE) {
        print_message("skipped: localedef cannot make a locale here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_names_and_exit_codes_come_from_the_table),
        cmocka_unit_test(test_status_that_does_not_exist_reads_as_internal),
        cmocka_unit_test(test_fail_fills_the_error_and_returns_the_code),
        cmocka_unit_test(test_fail_cuts_a_text_that_is_too_long),
        cmocka_unit_test(test_fail_in_puts_a_prefix_before_the_text),
        cmocka_unit_test(test_say_writes_pieces_and_cuts_long_ones),
        cmocka_unit_test(test_size_arithmetic_refuses_overflow_and_leaves_the_output),
        cmocka_unit_test(test_bytes_parse_reads_what_people_write),
        cmocka_unit_test(test_bytes_parse_refuses_what_is_no_size),
        cmocka_unit_test(test_bytes_print_rounds_to_tenths),
        cmocka_unit_test(test_philox_gives_the_published_answers),
        cmocka_unit_test(test_any_part_of_a_stream_has_the_bits_of_the_whole),
        cmocka_unit_test(test_keys_and_streams_differ),
        cmocka_unit_test(test_uniform_fills_zero_to_one_evenly),
        cmocka_unit_test(test_normal_has_the_shares_of_a_normal),
        cmocka_unit_test(test_truncated_normal_stays_within_two),
        cmocka_unit_test(test_f32_stream_is_the_f64_stream_rounded),
        cmocka_unit_test(test_f32_normals_keep_their_bits),
        cmocka_unit_test(test_permute_is_a_bijection_for_any_n),
        cmocka_unit_test(test_permute_handles_the_largest_n),
        cmocka_unit_test(test_permute_favours_no_order),
        cmocka_unit_test(test_reals_come_back_and_end_where_they_end),
        cmocka_unit_test(test_reals_have_a_point_under_every_locale),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
