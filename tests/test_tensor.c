/* Rules of room tensor: types and their text, conversions, feeds, recipes. */
#include "support/support.h"

#include "base/rng.h"
#include "memory/team.h"
#include "tensor/feed.h"
#include "tensor/type.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- types ---------------------------------------------------------------------------------- */

static void test_dtype_names_and_sizes_come_from_the_table(void **state) {
    (void)state;
    assert_string_equal(snug_dtype_name(SNUG_BF16), "bf16");
    assert_int_equal(snug_dtype_bytes(SNUG_I64), 8);
    assert_int_equal(snug_dtype_bytes(SNUG_OPAQUE), 0);
    assert_string_equal(snug_dtype_name((snug_dtype)99), "invalid");
    for (int d = 0; d < SNUG_N_DTYPES; d++) {
        snug_dtype back;
        snug_error err = {0};
        expect_ok(sn_dtype_parse(snug_dtype_name((snug_dtype)d), &back, &err), &err);
        assert_int_equal(back, d);
    }
    snug_error err = {0};
    snug_dtype d = SNUG_I8;
    expect_status(sn_dtype_parse("float", &d, &err), SNUG_E_FORMAT, &err);
    expect_status(sn_dtype_parse("f3", &d, &err), SNUG_E_FORMAT, &err);
    assert_int_equal(d, SNUG_I8);
}

static void test_type_text_comes_back_the_same(void **state) {
    (void)state;
    static const char *const texts[] = {"f32[]",
                                        "f32[32,10]",
                                        "i64[0]",
                                        "bool[?,28,28,1]",
                                        "opaque[7]",
                                        "u8[1,2,3,4,5,6,7,8]",
                                        "i8[9223372036854775807]",
                                        "f32[?,?,?,?,?,?,?,?]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char with_tail[192], text[192];
        snprintf(with_tail, sizeof with_tail, "%s tail", texts[i]);
        snug_type t;
        const char *end;
        snug_error err = {0};
        expect_ok(sn_type_parse(with_tail, &end, &t, &err), &err);
        assert_string_equal(end, " tail");
        assert_string_equal(snug_type_print(&t, text, sizeof text), texts[i]);
    }
}

static void test_type_text_that_is_wrong_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "f32",
                                        "f32[",
                                        "f32[1",
                                        "f32[1,",
                                        "f32[1,]",
                                        "f32[,1]",
                                        "f32[-1]",
                                        "f32[1 ,2]",
                                        "f33[1]",
                                        "f32[1;2]",
                                        "float32[1]",
                                        "f32[??]",
                                        "[1]",
                                        "f32[a]",
                                        "f32[1,2,3,4,5,6,7,8,9]",
                                        "f32[9223372036854775808]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        snug_type t = {.rank = 77};
        const char *end = NULL;
        snug_error err = {0};
        const snug_status status = sn_type_parse(texts[i], &end, &t, &err);
        if (status != SNUG_E_FORMAT)
            fail_msg("'%s' gave %s", texts[i], snug_status_name(status));
        assert_int_equal(t.rank, 77);
        assert_null(end);
    }
    snug_type t;
    snug_error err = {0};
    expect_status(sn_type_parse("f32[9223372036854775807]", NULL, &t, &err), SNUG_E_OVERFLOW, &err);
}

static void test_type_bytes_refuses_what_passes_the_address_space(void **state) {
    (void)state;
    static const struct {
        snug_type type;
        snug_status status;
        size_t bytes;
    } cases[] = {
        {{SNUG_F32, 2, {32, 10}}, SNUG_OK, 1280},
        {{SNUG_F64, 0, {0}}, SNUG_OK, 8},
        {{SNUG_F32, 3, {5, 0, 7}}, SNUG_OK, 0},
        {{SNUG_OPAQUE, 1, {5}}, SNUG_OK, 0},
        {{SNUG_I8, 1, {INT64_MAX}}, SNUG_OK, INT64_MAX},
        {{SNUG_F16, 1, {INT64_MAX}}, SNUG_E_OVERFLOW, 0},
        {{SNUG_F32, 2, {(int64_t)1 << 31, (int64_t)1 << 31}}, SNUG_E_OVERFLOW, 0},
        {{SNUG_I8, 2, {(int64_t)1 << 32, (int64_t)1 << 32}}, SNUG_E_OVERFLOW, 0},
        {{SNUG_F32, 3, {0, (int64_t)1 << 40, (int64_t)1 << 40}}, SNUG_E_OVERFLOW, 0},
        {{SNUG_F32, 1, {-1}}, SNUG_E_SHAPE, 0},
        {{SNUG_F32, 9, {1}}, SNUG_E_SHAPE, 0},
        {{SNUG_F32, -1, {1}}, SNUG_E_SHAPE, 0},
        {{(snug_dtype)77, 1, {1}}, SNUG_E_INVALID, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 55;
        snug_error err = {0};
        expect_status(snug_type_bytes(&cases[i].type, &bytes, &err), cases[i].status, &err);
        assert_int_equal(bytes, cases[i].status == SNUG_OK ? cases[i].bytes : 55);
    }
}

static void test_template_types_may_have_unknown_extents(void **state) {
    (void)state;
    const snug_type t = {SNUG_F32, 2, {-1, 3}}, bad = {SNUG_F32, 2, {-2, 3}},
                    known = {SNUG_F32, 2, {4, 3}};
    snug_error err = {0};
    expect_ok(sn_type_check(&t, true, &err), &err);
    expect_status(sn_type_check(&t, false, &err), SNUG_E_SHAPE, &err);
    expect_status(sn_type_check(&bad, true, &err), SNUG_E_SHAPE, &err);
    assert_false(sn_type_known(&t));
    assert_true(sn_type_known(&known));
    assert_false(sn_type_equal(&t, &known));
    assert_int_equal(sn_type_count(&known), 12);
    assert_int_equal(sn_type_span(&known, 1, 2), 3);
    assert_int_equal(sn_type_span(&known, 1, 1), 1);
}

static void test_type_equality_ignores_extents_beyond_the_rank(void **state) {
    (void)state;
    const snug_type a = {SNUG_F32, 1, {4, 9}}, b = {SNUG_F32, 1, {4, 8}}, c = {SNUG_F64, 1, {4}};
    assert_true(sn_type_equal(&a, &b));
    assert_false(sn_type_equal(&a, &c));
    assert_true(sn_dims_equal(&a, &c));
}

/* --- conversions ---------------------------------------------------------------------------- */

/* An f16 or bf16 by its definition, slowly. */
static double value_of(uint16_t h, int n_fraction, int bias) {
    const int n_exponent = 15 - n_fraction;
    const int exponent = h >> n_fraction & ((1 << n_exponent) - 1);
    const int fraction = h & ((1 << n_fraction) - 1);
    const double sign = h >> 15 ? -1.0 : 1.0;
    if (exponent == (1 << n_exponent) - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - n_fraction);
    return sign * ldexp(fraction + (1 << n_fraction), exponent - bias - n_fraction);
}

static void test_every_16_bit_float_has_its_value_and_comes_back(void **state) {
    (void)state;
    snug_error err = {0};
    for (uint32_t h = 0; h < 65536; h++) {
        for (int brain = 0; brain < 2; brain++) {
            const snug_dtype dtype = brain ? SNUG_BF16 : SNUG_F16;
            const uint16_t in = (uint16_t)h;
            const double want = brain ? value_of(in, 7, 127) : value_of(in, 10, 15);
            float f;
            double d;
            expect_ok(sn_convert(dtype, &in, SNUG_F32, &f, 1, &err), &err);
            expect_ok(sn_convert(dtype, &in, SNUG_F64, &d, 1, &err), &err);
            if (isnan(want)) {
                assert_true(isnan(f) && isnan(d));
            } else {
                assert_true((double)f == want && d == want && !signbit(f) == !signbit(want));
            }
            uint16_t back, back64;
            expect_ok(sn_convert(SNUG_F32, &f, dtype, &back, 1, &err), &err);
            expect_ok(sn_convert(SNUG_F64, &d, dtype, &back64, 1, &err), &err);
            if (isnan(want)) {
                assert_true(isnan(brain ? value_of(back, 7, 127) : value_of(back, 10, 15)));
            } else {
                assert_true(back == in && back64 == in);
            }
        }
    }
}

/* Between two neighbours: below the middle down, above it up, at the middle to the even one. From
 * f64 with a nudge that f32 cannot hold, so that rounding twice would go wrong. */
static void test_rounding_to_16_bits_is_to_nearest_even_once(void **state) {
    (void)state;
    snug_error err = {0};
    for (uint32_t h = 0; h < 0x7c00; h += 7) {
        for (int brain = 0; brain < 2; brain++) {
            const int n_fraction = brain ? 7 : 10, bias = brain ? 127 : 15;
            const uint16_t low = (uint16_t)(brain ? h * 32639 / 0x7c00 : h),
                           high = (uint16_t)(low + 1);
            if (isinf(value_of(high, n_fraction, bias)))
                continue;
            const double a = value_of(low, n_fraction, bias), b = value_of(high, n_fraction, bias);
            const double middle = a + (b - a) / 2;
            const double in[3] = {middle - (b - a) * 0x1p-40, middle, middle + (b - a) * 0x1p-40};
            uint16_t out[3];
            expect_ok(sn_convert(SNUG_F64, in, brain ? SNUG_BF16 : SNUG_F16, out, 3, &err), &err);
            assert_int_equal(out[0], low);
            assert_int_equal(out[1], low & 1 ? high : low);
            assert_int_equal(out[2], high);
        }
    }
}

/* The middle between two neighbours of bf16 and one more or less: 1 part in 2^60, which f64 cannot
 * hold. */
static void test_large_integers_round_once_too(void **state) {
    (void)state;
    snug_error err = {0};
    const int64_t low = (int64_t)1 << 60, step = (int64_t)1 << 53, middle = low + step / 2;
    const int64_t in[6] = {middle - 1, middle, middle + 1, -middle + 1, -middle, -middle - 1};
    const int64_t want[6] = {low, low, low + step, -low, -low, -low - step};
    uint16_t out[6];
    float back[6];
    expect_ok(sn_convert(SNUG_I64, in, SNUG_BF16, out, 6, &err), &err);
    expect_ok(sn_convert(SNUG_BF16, out, SNUG_F32, back, 6, &err), &err);
    for (int i = 0; i < 6; i++)
        assert_true(back[i] == (float)want[i]);
}

static void test_overflow_of_16_bit_floats_is_infinity(void **state) {
    (void)state;
    snug_error err = {0};
    const double in[6] = {65519.99, 65520.0,          -1e300,
                          1e-30,    (double)INFINITY, 3.3895313892515355e38};
    uint16_t half[6], brain[6];
    expect_ok(sn_convert(SNUG_F64, in, SNUG_F16, half, 6, &err), &err);
    expect_ok(sn_convert(SNUG_F64, in, SNUG_BF16, brain, 6, &err), &err);
    static const uint16_t want_half[6] = {0x7bff, 0x7c00, 0xfc00, 0x0000, 0x7c00, 0x7c00};
    assert_memory_equal(half, want_half, sizeof half);
    assert_int_equal(brain[2], 0xff80);
    assert_int_equal(brain[4], 0x7f80);
    assert_int_equal(brain[5], 0x7f7f);
}

static bool is_whole(snug_dtype d) {
    return sn_dtype_is_int(d) || d == SNUG_BOOL;
}

/* 0 and 1 exist everywhere: every allowed pair must carry them, every other must be refused. 600
 * elements: more than two chunks. */
static void test_all_pairs_convert_or_are_refused(void **state) {
    (void)state;
    enum { N = 600 };
    snug_error err = {0};
    uint8_t bits[N];
    for (int i = 0; i < N; i++)
        bits[i] = (uint8_t)(i * i % 7 % 2);
    for (int from = 0; from < SNUG_OPAQUE; from++) {
        double src[N], dst[N + 1];
        expect_ok(sn_convert(SNUG_BOOL, bits, (snug_dtype)from, src, N, &err), &err);
        for (int to = 0; to < SNUG_N_DTYPES; to++) {
            memset(dst, 0x33, sizeof dst);
            const bool allowed = to != SNUG_OPAQUE &&
                                 !(sn_dtype_is_float((snug_dtype)from) && is_whole((snug_dtype)to));
            const snug_status status =
                sn_convert((snug_dtype)from, src, (snug_dtype)to, dst, N, &err);
            assert_int_equal(status, allowed ? SNUG_OK : SNUG_E_DATA);
            unsigned char expected[sizeof dst];
            memset(expected, 0x33, sizeof expected);
            if (allowed)
                expect_ok(sn_convert(SNUG_BOOL, bits, (snug_dtype)to, expected, N, &err), &err);
            assert_memory_equal(dst, expected, sizeof dst);
        }
    }
}

static void test_integers_that_do_not_fit_are_refused_with_their_value(void **state) {
    (void)state;
    snug_error err = {0};
    int64_t in[300] = {0};
    int32_t out[300];
    in[299] = (int64_t)INT32_MAX + 1;
    expect_status(sn_convert(SNUG_I64, in, SNUG_I32, out, 300, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "element 299 is 2147483648, which i32 cannot hold");
    in[299] = INT32_MIN;
    expect_ok(sn_convert(SNUG_I64, in, SNUG_I32, out, 300, &err), &err);
    assert_int_equal(out[299], INT32_MIN);
    const int8_t minus = -1;
    uint8_t u;
    expect_status(sn_convert(SNUG_I8, &minus, SNUG_U8, &u, 1, &err), SNUG_E_DATA, &err);
    expect_status(sn_convert(SNUG_I8, &minus, SNUG_BOOL, &u, 1, &err), SNUG_E_DATA, &err);
    float f;
    expect_ok(sn_convert(SNUG_I8, &minus, SNUG_F32, &f, 1, &err), &err);
    assert_true(f == -1.0f);
}

static void test_conversion_takes_any_address(void **state) {
    (void)state;
    snug_error err = {0};
    char src[1 + 3 * sizeof(double)], dst[3 + 3 * sizeof(float)];
    const double in[3] = {1.5, -2.25, 1e10};
    memcpy(src + 1, in, sizeof in);
    expect_ok(sn_convert(SNUG_F64, src + 1, SNUG_F32, dst + 3, 3, &err), &err);
    float out[3];
    memcpy(out, dst + 3, sizeof out);
    for (int i = 0; i < 3; i++)
        assert_true((double)out[i] == in[i]);
}

/* Wider from the end of the buffer down, narrower and equal from its start; more than two
 * chunks. */
static void test_conversion_may_share_the_buffer(void **state) {
    (void)state;
    enum { N = 700 };
    snug_error err = {0};
    double wide[N];
    int32_t equal[N];
    float out[N];
    uint8_t *small = (uint8_t *)wide + sizeof wide - N;
    for (int i = 0; i < N; i++)
        small[i] = (uint8_t)(i % 251);
    expect_ok(sn_convert(SNUG_U8, small, SNUG_F64, wide, N, &err), &err);
    for (int i = 0; i < N; i++)
        assert_true(wide[i] == i % 251);
    expect_ok(sn_convert(SNUG_F64, wide, SNUG_F32, wide, N, &err), &err);
    memcpy(out, wide, sizeof out);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (float)(i % 251));
    for (int i = 0; i < N; i++)
        equal[i] = i - 5;
    expect_ok(sn_convert(SNUG_I32, equal, SNUG_F32, equal, N, &err), &err);
    memcpy(out, equal, sizeof out);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (float)(i - 5));
}

/* --- feeds ---------------------------------------------------------------------------------- */

static snug_view view_of(void *data, snug_dtype dtype, int64_t rows, int64_t columns) {
    return (snug_view){.data = data,
                       .bytes = (size_t)(rows * columns) * snug_dtype_bytes(dtype),
                       .type = {dtype, 2, {rows, columns}}};
}

static void count_release(void *ctx) {
    ++*(int *)ctx;
}

static void test_memory_feed_lends_rows_and_releases_once(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    uint8_t pixels[4][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 255}};
    const snug_type type = {SNUG_U8, 2, {4, 3}};
    int released = 0;
    snug_feed *feed;
    expect_ok(snug_feed_from_memory(e, &type, pixels, count_release, &released, &feed, &err), &err);
    assert_true(sn_type_equal(snug_feed_type(feed), &type));
    float out[6];
    const snug_view view = view_of(out, SNUG_F32, 2, 3);
    expect_ok(snug_feed_fill(feed, 2, 2, &view, &err), &err);
    static const float want[6] = {6, 7, 8, 9, 10, 255};
    assert_memory_equal(out, want, sizeof want);
    assert_int_equal(released, 0);
    snug_feed_destroy(feed);
    assert_int_equal(released, 1);
    snug_feed_destroy(NULL);
}

/* Rows that do not end at pages, from a row that does not begin at one. */
static void test_threads_copy_large_rows_of_memory(void **state) {
    (void)state;
    enum { ROWS = 700, WIDTH = 131, SKIP = 3 };
    snug_engine *e;
    snug_feed *feed;
    snug_error err = {0};
    sn_team *team;
    expect_ok(snug_engine_create(&(snug_engine_options){.n_threads = 3}, &e, &err), &err);
    expect_ok(sn_team_hold(e, &team, &err), &err);
    float *data = malloc(ROWS * WIDTH * sizeof *data), *out = malloc(ROWS * WIDTH * sizeof *out);
    for (int i = 0; i < ROWS * WIDTH; i++)
        data[i] = (float)i;
    const snug_type type = {SNUG_F32, 2, {ROWS, WIDTH}};
    expect_ok(snug_feed_from_memory(e, &type, data, NULL, NULL, &feed, &err), &err);
    out[(ROWS - SKIP - 1) * WIDTH] = -1; /* behind the last row asked for */
    const snug_view view = view_of(out, SNUG_F32, ROWS - SKIP - 1, WIDTH);
    expect_ok(snug_feed_fill(feed, SKIP, ROWS - SKIP - 1, &view, &err), &err);
    assert_memory_equal(out, data + SKIP * WIDTH, (ROWS - SKIP - 1) * WIDTH * sizeof *out);
    assert_true(out[(ROWS - SKIP - 1) * WIDTH] == -1);
    free(data);
    free(out);
    snug_feed_destroy(feed);
    sn_team_drop(e);
    sn_test_engine_end(e);
}

static void test_fill_checks_rows_and_view(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    float data[4][3] = {{0}};
    const snug_type type = {SNUG_F32, 2, {4, 3}};
    snug_feed *feed;
    expect_ok(snug_feed_from_memory(e, &type, data, NULL, NULL, &feed, &err), &err);
    float out[15];
    static const struct {
        int64_t first, n, rows, columns;
        snug_status status;
    } cases[] = {
        {0, 4, 4, 3, SNUG_OK},
        {4, 0, 0, 3, SNUG_OK},
        {-1, 1, 1, 3, SNUG_E_INVALID},
        {3, 2, 2, 3, SNUG_E_INVALID},
        {0, -1, 0, 3, SNUG_E_INVALID},
        {5, 0, 0, 3, SNUG_E_INVALID},
        {1, INT64_MAX, 1, 3, SNUG_E_INVALID},
        {INT64_MAX, 1, 1, 3, SNUG_E_INVALID},
        {0, 2, 3, 3, SNUG_E_SHAPE},
        {0, 2, 2, 4, SNUG_E_SHAPE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const snug_view view = view_of(out, SNUG_F32, cases[i].rows, cases[i].columns);
        expect_status(snug_feed_fill(feed, cases[i].first, cases[i].n, &view, &err),
                      cases[i].status, &err);
    }
    snug_view view = view_of(out, SNUG_F32, 2, 3);
    view.bytes--;
    expect_status(snug_feed_fill(feed, 0, 2, &view, &err), SNUG_E_INVALID, &err);
    view = view_of(NULL, SNUG_F32, 2, 3);
    expect_status(snug_feed_fill(feed, 0, 2, &view, &err), SNUG_E_INVALID, &err);
    view = view_of(out, SNUG_I32, 2, 3);
    expect_status(snug_feed_fill(feed, 0, 2, &view, &err), SNUG_E_DATA, &err);
    view = view_of(out, SNUG_F32, 2, 3);
    view.type.rank = 1;
    expect_status(snug_feed_fill(feed, 0, 2, &view, &err), SNUG_E_SHAPE, &err);
    snug_feed_destroy(feed);
}

static void test_feed_without_rows_of_numbers_is_refused(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    float x = 0;
    static const struct {
        snug_type type;
        snug_status status;
    } cases[] = {
        {{SNUG_F32, 0, {0}}, SNUG_E_SHAPE},
        {{SNUG_OPAQUE, 1, {3}}, SNUG_E_SHAPE},
        {{SNUG_F32, 1, {-1}}, SNUG_E_SHAPE},
        {{SNUG_F32, 2, {INT64_MAX, 2}}, SNUG_E_OVERFLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int released = 0;
        snug_feed *feed = NULL;
        expect_status(
            snug_feed_from_memory(e, &cases[i].type, &x, count_release, &released, &feed, &err),
            cases[i].status, &err);
        assert_null(feed);
        assert_int_equal(released, 0); /* a failed create does not take ownership */
    }
    const snug_type empty = {SNUG_F32, 2, {0, 3}}, full = {SNUG_F32, 2, {1, 3}};
    snug_feed *feed;
    expect_status(snug_feed_from_memory(e, &full, NULL, NULL, NULL, &feed, &err), SNUG_E_INVALID,
                  &err);
    expect_ok(snug_feed_from_memory(e, &empty, NULL, NULL, NULL, &feed, &err), &err);
    snug_feed_destroy(feed);
}

/* A caller's source: element = row * 1000 + column, as f64. Fails at row `bad`. */
typedef struct {
    int calls;
    int64_t bad;
} source;

static snug_status source_fill(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                               snug_error *err) {
    source *s = ctx;
    s->calls++;
    assert_int_equal(dst->type.dtype, SNUG_F64);
    assert_int_equal(dst->type.dims[0], n_rows);
    assert_true(dst->bytes >= (size_t)(n_rows * dst->type.dims[1]) * sizeof(double));
    if (s->bad >= first_row && s->bad < first_row + n_rows)
        return sn_fail(err, SNUG_E_DATA, "row %lld is bad", (long long)s->bad);
    double *out = dst->data;
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t c = 0; c < dst->type.dims[1]; c++)
            *out++ = (double)((first_row + r) * 1000 + c);
    }
    return SNUG_OK;
}

static void test_callback_sees_its_own_dtype_whatever_is_read(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    enum { COLUMNS = 700, ROWS = 50 };
    source s = {.bad = -1};
    const snug_type type = {SNUG_F64, 2, {100, COLUMNS}};
    snug_feed *feed;
    expect_ok(snug_feed_from_callback(e, &type, source_fill, NULL, &s, &feed, &err), &err);
    float *out = malloc(sizeof(float[ROWS][COLUMNS]));
    double *wide = malloc(sizeof(double[ROWS][COLUMNS]));
    assert_true(out && wide);
    const snug_view view = view_of(out, SNUG_F32, ROWS, COLUMNS),
                    wide_view = view_of(wide, SNUG_F64, ROWS, COLUMNS);
    expect_ok(snug_feed_fill(feed, 7, ROWS, &wide_view, &err), &err);
    assert_int_equal(s.calls, 1);
    expect_ok(snug_feed_fill(feed, 7, ROWS, &view, &err), &err);
    assert_true(s.calls > 2); /* in pieces, through a buffer that is on the ledger: */
    assert_in_range(snug_engine_bytes(e), 1000, 80000);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        assert_true(out[i] == (float)((7 + i / COLUMNS) * 1000 + i % COLUMNS));
        assert_true((double)out[i] == wide[i]);
    }
    s.bad = 20;
    expect_status(snug_feed_fill(feed, 7, ROWS, &view, &err), SNUG_E_DATA, &err);
    assert_string_equal(err.text, "row 20 is bad");
    free(out);
    free(wide);
    snug_feed_destroy(feed);
}

/* Labels as bytes, read as larger numbers. */
static snug_status bytes_fill(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                              snug_error *err) {
    (void)ctx, (void)err;
    assert_int_equal(dst->type.dtype, SNUG_U8);
    assert_int_equal(dst->bytes, n_rows * 3);
    for (int64_t i = 0; i < n_rows * 3; i++)
        ((uint8_t *)dst->data)[i] = (uint8_t)(first_row * 3 + i);
    return SNUG_OK;
}

static void test_callback_read_as_larger_numbers_needs_no_buffer(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const snug_type type = {SNUG_U8, 2, {80, 3}};
    snug_feed *feed;
    expect_ok(snug_feed_from_callback(e, &type, bytes_fill, NULL, NULL, &feed, &err), &err);
    const size_t held = snug_engine_bytes(e);
    float out[70 * 3 + 5];
    snug_view view = view_of(out, SNUG_F32, 70, 3);
    view.bytes = sizeof out; /* more than the rows need: what is behind them is not touched */
    out[70 * 3] = -1;
    expect_ok(sn_feed_prepare(feed, SNUG_F32, &err), &err);
    expect_ok(snug_feed_fill(feed, 9, 70, &view, &err), &err);
    for (int i = 0; i < 70 * 3; i++)
        assert_true(out[i] == (float)(27 + i));
    assert_true(out[70 * 3] == -1);
    assert_int_equal(snug_engine_bytes(e), held);
    snug_feed_destroy(feed);
}

static void test_prepared_feed_allocates_nothing_when_filled(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    source s = {.bad = -1};
    const snug_type type = {SNUG_F64, 2, {100, 30}};
    snug_feed *feed;
    float out[50 * 30];
    const snug_view view = view_of(out, SNUG_F32, 50, 30);
    expect_ok(snug_feed_from_callback(e, &type, source_fill, NULL, &s, &feed, &err), &err);
    expect_ok(sn_feed_prepare(feed, SNUG_F32, &err), &err);
    sn_fault_memory(e, 0, true);
    expect_ok(snug_feed_fill(feed, 0, 50, &view, &err), &err);
    sn_fault_memory(e, -1, false);
    snug_feed_destroy(feed);
}

/* Rows without elements, from no memory at all. */
static void test_rows_of_nothing_can_be_read(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const snug_type type = {SNUG_F32, 2, {4, 0}};
    snug_feed *feed;
    double out[1];
    const snug_view view = view_of(out, SNUG_F64, 2, 0);
    expect_ok(snug_feed_from_memory(e, &type, NULL, NULL, NULL, &feed, &err), &err);
    expect_ok(snug_feed_fill(feed, 1, 2, &view, &err), &err);
    snug_feed_destroy(feed);
}

/* --- recipes -------------------------------------------------------------------------------- */

static void test_slice_of_a_recipe_has_the_bits_of_the_whole(void **state) {
    (void)state;
    enum { N = 700 };
    snug_error err = {0};
    static const sn_recipe recipes[] = {
        {SN_RECIPE_CONSTANT, 1, 3, 0}, {SN_RECIPE_UNIFORM, 2, -1, 2},
        {SN_RECIPE_NORMAL, 3, 5, 0.1}, {SN_RECIPE_TRUNCATED, 4, 0, 0.05},
        {SN_RECIPE_LABELS, 5, 0, 100}, {SN_RECIPE_EYE, 6, 2, 30},
    };
    for (size_t r = 0; r < sizeof recipes / sizeof recipes[0]; r++) {
        for (int d = 0; d < SNUG_OPAQUE; d++) {
            const bool whole_numbers =
                recipes[r].kind == SN_RECIPE_CONSTANT || recipes[r].kind == SN_RECIPE_LABELS;
            if (!sn_dtype_is_float((snug_dtype)d) && (!whole_numbers || d == SNUG_BOOL))
                continue;
            const size_t size = snug_dtype_bytes((snug_dtype)d);
            unsigned char whole[N * 8], part[N * 8];
            expect_ok(sn_recipe_fill(&recipes[r], 0, N, (snug_dtype)d, whole, &err), &err);
            for (size_t first = 0; first < N; first += 61) {
                const size_t n = N - first < 301 ? N - first : 301;
                expect_ok(sn_recipe_fill(&recipes[r], first, n, (snug_dtype)d, part, &err), &err);
                assert_memory_equal(part, whole + first * size, n * size);
            }
        }
    }
}

static void test_recipes_stay_in_their_range(void **state) {
    (void)state;
    enum { N = 20000 };
    snug_error err = {0};
    float *x = malloc(N * sizeof *x);
    int32_t *labels = malloc(N * sizeof *labels);
    assert_true(x && labels);
    /* Near 1e8 the floats are 8 apart: many results round to the end, which is outside. */
    const sn_recipe wide = {SN_RECIPE_UNIFORM, 2, 1e8, 1e8 + 16},
                    point = {SN_RECIPE_UNIFORM, 2, 4, 4};
    expect_ok(sn_recipe_fill(&wide, 0, N, SNUG_F32, x, &err), &err);
    for (int i = 0; i < N; i++)
        assert_true(x[i] >= 1e8f && x[i] < 1e8f + 16);
    expect_ok(sn_recipe_fill(&point, 0, 3, SNUG_F32, x, &err), &err);
    assert_true(x[0] == 4.0f && x[2] == 4.0f);
    const sn_recipe cut = {SN_RECIPE_TRUNCATED, 4, 10, 0.5};
    expect_ok(sn_recipe_fill(&cut, 0, N, SNUG_F32, x, &err), &err);
    for (int i = 0; i < N; i++)
        assert_true(x[i] >= 9.0f && x[i] <= 11.0f);
    const sn_recipe classes = {SN_RECIPE_LABELS, 5, 0, 10};
    expect_ok(sn_recipe_fill(&classes, 0, N, SNUG_I32, labels, &err), &err);
    int seen[10] = {0};
    for (int i = 0; i < N; i++) {
        assert_in_range(labels[i], 0, 9);
        seen[labels[i]]++;
    }
    for (int c = 0; c < 10; c++)
        assert_in_range(seen[c], N / 10 - 250, N / 10 + 250);
    free(x);
    free(labels);
}

static void test_recipes_that_make_no_sense_are_refused(void **state) {
    (void)state;
    snug_error err = {0};
    static const struct {
        sn_recipe recipe;
        snug_dtype dtype;
        snug_status status;
    } cases[] = {
        {{SN_RECIPE_UNIFORM, 1, 2, 1}, SNUG_F32, SNUG_E_INVALID},
        {{SN_RECIPE_NORMAL, 1, 0, -1}, SNUG_F32, SNUG_E_INVALID},
        {{SN_RECIPE_LABELS, 1, 0, 0}, SNUG_I32, SNUG_E_INVALID},
        {{SN_RECIPE_LABELS, 1, 0, 1e10}, SNUG_I32, SNUG_E_INVALID},
        {{SN_RECIPE_NORMAL, 1, 0, 1}, SNUG_I32, SNUG_E_DATA},
        {{SN_RECIPE_EYE, 1, 1, 0}, SNUG_F32, SNUG_E_INVALID},
        {{SN_RECIPE_ORTHOGONAL, 1, 1, 3}, SNUG_F32, SNUG_E_INVALID},
        {{SN_RECIPE_ORTHOGONAL, 1, 1, 2}, SNUG_F16, SNUG_E_DATA},
        {{SN_RECIPE_CONSTANT, 1, 0.5, 0}, SNUG_I32, SNUG_E_DATA},
        {{SN_RECIPE_CONSTANT, 1, 300, 0}, SNUG_U8, SNUG_E_DATA},
        {{SN_RECIPE_CONSTANT, 1, 1e30, 0}, SNUG_I64, SNUG_E_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t out[2];
        expect_status(sn_recipe_fill(&cases[i].recipe, 0, 2, cases[i].dtype, out, &err),
                      cases[i].status, &err);
    }
}

static void test_recipe_feed_has_the_same_bits_from_many_threads(void **unused) {
    (void)unused;
    enum { ROWS = 3, ROW = 50001 };
    static float want[ROWS * ROW], have[ROWS * ROW];
    static const sn_recipe recipes[] = {{SN_RECIPE_NORMAL, 7, 0, 1},
                                        {SN_RECIPE_CONSTANT, 0, 2.5, 0}};
    const snug_type type = {SNUG_F32, 2, {ROWS + 2, ROW}};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        snug_error err;
        snug_engine *e;
        sn_team *team;
        snug_feed *feed;
        expect_ok(snug_engine_create(&(snug_engine_options){.n_threads = 3}, &e, &err), &err);
        expect_ok(sn_team_hold(e, &team, &err), &err);
        expect_ok(sn_feed_from_recipe(e, &type, &recipes[i], &feed, &err), &err);
        const snug_view view = view_of(have, SNUG_F32, ROWS, ROW);
        memset(have, 0xff, sizeof have);
        expect_ok(snug_feed_fill(feed, 2, ROWS, &view, &err), &err);
        expect_ok(sn_recipe_fill(&recipes[i], 2 * ROW, ROWS * ROW, SNUG_F32, want, &err), &err);
        assert_memory_equal(have, want, sizeof want);
        snug_feed_destroy(feed);
        sn_team_drop(e);
        snug_engine_destroy(e);
    }
}

static void test_recipe_feed_of_any_size_costs_next_to_nothing(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const snug_type type = {SNUG_F32, 2, {(int64_t)1 << 40, 100000}};
    const sn_recipe r = {SN_RECIPE_NORMAL, sn_rng_key(7, 0), 0, 1};
    snug_feed *feed;
    expect_ok(sn_feed_from_recipe(e, &type, &r, &feed, &err), &err);
    assert_true(snug_engine_bytes(e) < 512);
    float *row = malloc(100000 * sizeof *row);
    assert_non_null(row);
    const snug_view view = view_of(row, SNUG_F32, 1, 100000);
    expect_ok(snug_feed_fill(feed, ((int64_t)1 << 40) - 1, 1, &view, &err), &err);
    float want[3];
    expect_ok(sn_recipe_fill(&r, (((uint64_t)1 << 40) - 1) * 100000, 3, SNUG_F32, want, &err),
              &err);
    assert_memory_equal(row, want, sizeof want);
    free(row);
    snug_feed_destroy(feed);
}

/* --- faults --------------------------------------------------------------------------------- */

static snug_status all_feeds(snug_engine *e, void *ctx, snug_error *err) {
    (void)ctx;
    static const float data[2][3] = {{0}};
    const snug_type type = {SNUG_F32, 2, {2, 3}}, wide = {SNUG_F64, 2, {2, 3}};
    const sn_recipe r = {SN_RECIPE_NORMAL, 1, 0, 1};
    source s = {.bad = -1};
    snug_feed *feeds[3] = {NULL, NULL, NULL};
    float out[6];
    const snug_view view = view_of(out, SNUG_F32, 2, 3);
    snug_status status = snug_feed_from_memory(e, &type, data, NULL, NULL, &feeds[0], err);
    if (status == SNUG_OK)
        status = sn_feed_from_recipe(e, &type, &r, &feeds[1], err);
    if (status == SNUG_OK)
        status = snug_feed_from_callback(e, &wide, source_fill, NULL, &s, &feeds[2], err);
    for (int i = 0; i < 3 && status == SNUG_OK; i++)
        status = snug_feed_fill(feeds[i], 0, 2, &view, err);
    for (int i = 0; i < 3; i++)
        snug_feed_destroy(feeds[i]);
    return status;
}

static void test_feeds_survive_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(all_feeds, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtype_names_and_sizes_come_from_the_table),
        cmocka_unit_test(test_type_text_comes_back_the_same),
        cmocka_unit_test(test_type_text_that_is_wrong_is_refused),
        cmocka_unit_test(test_type_bytes_refuses_what_passes_the_address_space),
        cmocka_unit_test(test_template_types_may_have_unknown_extents),
        cmocka_unit_test(test_type_equality_ignores_extents_beyond_the_rank),
        cmocka_unit_test(test_every_16_bit_float_has_its_value_and_comes_back),
        cmocka_unit_test(test_rounding_to_16_bits_is_to_nearest_even_once),
        cmocka_unit_test(test_large_integers_round_once_too),
        cmocka_unit_test(test_overflow_of_16_bit_floats_is_infinity),
        cmocka_unit_test(test_all_pairs_convert_or_are_refused),
        cmocka_unit_test(test_integers_that_do_not_fit_are_refused_with_their_value),
        cmocka_unit_test(test_conversion_takes_any_address),
        cmocka_unit_test(test_conversion_may_share_the_buffer),
        engine_test(test_memory_feed_lends_rows_and_releases_once),
        engine_test(test_fill_checks_rows_and_view),
        engine_test(test_feed_without_rows_of_numbers_is_refused),
        engine_test(test_callback_sees_its_own_dtype_whatever_is_read),
        engine_test(test_callback_read_as_larger_numbers_needs_no_buffer),
        engine_test(test_prepared_feed_allocates_nothing_when_filled),
        engine_test(test_rows_of_nothing_can_be_read),
        cmocka_unit_test(test_slice_of_a_recipe_has_the_bits_of_the_whole),
        cmocka_unit_test(test_recipes_stay_in_their_range),
        cmocka_unit_test(test_recipes_that_make_no_sense_are_refused),
        cmocka_unit_test(test_recipe_feed_has_the_same_bits_from_many_threads),
        engine_test(test_recipe_feed_of_any_size_costs_next_to_nothing),
        cmocka_unit_test(test_threads_copy_large_rows_of_memory),
        cmocka_unit_test(test_feeds_survive_any_failed_request),
    };
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
