/* test_init.c: what initialisers make: mean, deviation and bounds of each of Keras' random ones,
 * orthogonality, and that values depend on the key alone. */
#include "support/support.h"

#include "nn/init.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CUT 0.87962566103423978 /* what cutting at two deviations leaves of a normal's */

static void fill(const char *text, const snug_type *type, uint64_t key, void *out) {
    snug_error err;
    sn_init init;
    sn_recipe r;
    expect_ok(sn_init_parse(text, &init, &err), &err);
    expect_ok(sn_init_recipe(&init, type, key, &r, &err), &err);
    expect_ok(sn_recipe_fill(&r, 0, (size_t)sn_type_count(type), type->dtype, out, &err), &err);
}

static void test_initialisers_have_keras_mean_deviation_and_bounds(void **state) {
    (void)state;
    /* of a [3,3,40,60] kernel: fan_in 360, fan_out 540, average 450 */
    static const struct {
        const char *text;
        double mean, deviation, low, high;
    } cases[] = {
        {"zeros", 0, 0, 0, 0},
        {"ones", 1, 0, 1, 1},
        {"constant:value=-0.25", -0.25, 0, -0.25, -0.25},
        {"random_uniform", 0, 0.1 / 3.4641016151377544, -0.05, 0.05},
        {"random_uniform:minval=1,maxval=3", 2, 2 / 3.4641016151377544, 1, 3},
        {"random_normal", 0, 0.05, -0.4, 0.4},
        {"random_normal:mean=2,stddev=0.5", 2, 0.5, -2, 6},
        {"truncated_normal", 0, 0.05 * CUT, -0.1, 0.1},
        {"truncated_normal:mean=1,stddev=0.5", 1, 0.5 * CUT, 0, 2},
        {"glorot_uniform", 0, 0.047140452, -0.0816497, 0.0816497},
        {"glorot_normal", 0, 0.047140452, -0.107184, 0.107184},
        {"he_uniform", 0, 0.074535599, -0.1290995, 0.1290995},
        {"he_normal", 0, 0.074535599, -0.169472, 0.169472},
        {"lecun_uniform", 0, 0.052704628, -0.0912871, 0.0912871},
        {"lecun_normal", 0, 0.052704628, -0.119835, 0.119835},
        {"variance_scaling", 0, 0.052704628, -0.119835, 0.119835},
        {"variance_scaling:scale=2,mode=fan_out,distribution=uniform", 0, 0.060858062, -0.105409,
         0.105409},
        {"variance_scaling:mode=fan_avg,distribution=untruncated_normal", 0, 0.047140452, -1, 1},
    };
    const snug_type type = {.dtype = SNUG_F32, .rank = 4, .dims = {3, 3, 40, 60}};
    const int64_t n = sn_type_count(&type);
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double sum = 0, squares = 0;
        fill(cases[c].text, &type, 42 + c, x);
        for (int64_t i = 0; i < n; i++) {
            assert_true((double)x[i] >= cases[c].low - 1e-6);
            assert_true((double)x[i] <= cases[c].high + 1e-6);
            sum += (double)x[i];
        }
        const double mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        const double deviation = sqrt(squares / (double)n);
        /* four standard errors: of the mean, and generously of the deviation */
        assert_true(fabs(mean - cases[c].mean) <= 4 * cases[c].deviation / sqrt((double)n) + 1e-7);
        assert_true(fabs(deviation - cases[c].deviation) <= 0.012 * cases[c].deviation + 1e-7);
    }
    free(x);
}

/* Of m's columns (rows when it is wide), the largest distance of a product from the identity's. */
static double worst_angle(const double *m, int64_t rows, int64_t columns, double gain) {
    const bool wide = rows < columns;
    const int64_t count = wide ? rows : columns, length = wide ? columns : rows;
    const int64_t stride = wide ? columns : 1, step = wide ? 1 : columns;
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j <= i; j++) {
            double dot = i == j ? -gain * gain : 0;
            for (int64_t k = 0; k < length; k++)
                dot += m[i * stride + k * step] * m[j * stride + k * step];
            worst = fmax(worst, fabs(dot));
        }
    return worst;
}

static void test_orthogonal_makes_rows_or_columns_orthonormal(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{40, 7, 1}, {7, 40, 1}, {31, 31, 1},
                                        {1, 1, 1},  {3, 5, 12}, {20, 300, 1}};
    static double x[6000], again[6000];
    static float y[6000];
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int gain = 1; gain <= 3; gain += 2) {
            snug_type t = {.dtype = SNUG_F64, .rank = shapes[s][2] > 1 ? 3 : 2};
            memcpy(t.dims, shapes[s], sizeof shapes[s]);
            const int64_t columns = t.dims[t.rank - 1], n = sn_type_count(&t);
            const char *text = gain == 1 ? "orthogonal" : "orthogonal:gain=3";
            fill(text, &t, 5, x);
            assert_true(worst_angle(x, n / columns, columns, gain) < 1e-13);
            fill(text, &t, 5, again);
            assert_memory_equal(x, again, (size_t)n * sizeof *x);
            fill(text, &t, 6, again);
            assert_true(n == 1 || memcmp(x, again, (size_t)n * sizeof *x) != 0);
            t.dtype = SNUG_F32;
            fill(text, &t, 5, y);
            for (int64_t i = 0; i < n; i++)
                again[i] = (double)y[i];
            assert_true(worst_angle(again, n / columns, columns, gain) < 2e-6);
        }
}

/* Uniform among rotations: no element prefers a sign, and each has the same variance. */
static void test_orthogonal_prefers_no_direction(void **state) {
    (void)state;
    enum { N = 400 };
    const snug_type t = {.dtype = SNUG_F64, .rank = 2, .dims = {3, 3}};
    double sum[9] = {0}, squares[9] = {0}, x[9];
    for (uint64_t key = 0; key < N; key++) {
        fill("orthogonal", &t, key, x);
        for (int i = 0; i < 9; i++) {
            sum[i] += x[i];
            squares[i] += x[i] * x[i];
        }
    }
    for (int i = 0; i < 9; i++) {
        assert_true(fabs(sum[i] / N) < 4 / sqrt(3.0 * N));
        assert_true(fabs(squares[i] / N - 1.0 / 3) < 0.06);
    }
}

static void test_identity_has_its_gain_on_the_diagonal(void **state) {
    (void)state;
    const snug_type t = {.dtype = SNUG_F32, .rank = 2, .dims = {3, 5}};
    float x[15];
    fill("identity:gain=0.5", &t, 1, x);
    for (int i = 0; i < 15; i++)
        assert_true(x[i] == (i / 5 == i % 5 ? 0.5f : 0.0f));
}

static void test_matrices_only_where_there_are_some(void **state) {
    (void)state;
    snug_error err;
    sn_init init;
    sn_recipe r;
    const snug_type vector = {.dtype = SNUG_F32, .rank = 1, .dims = {4}};
    const snug_type kernel = {.dtype = SNUG_F32, .rank = 3, .dims = {3, 4, 4}};
    expect_ok(sn_init_parse("orthogonal", &init, &err), &err);
    expect_status(sn_init_recipe(&init, &vector, 1, &r, &err), SNUG_E_SHAPE, &err);
    expect_ok(sn_init_recipe(&init, &kernel, 1, &r, &err), &err);
    float x[48];
    expect_status(sn_recipe_fill(&r, 4, 8, SNUG_F32, x, &err), SNUG_E_INVALID, &err);
    expect_status(sn_recipe_fill(&r, 0, 48, SNUG_F16, x, &err), SNUG_E_DATA, &err);
    expect_ok(sn_init_parse("identity", &init, &err), &err);
    expect_status(sn_init_recipe(&init, &kernel, 1, &r, &err), SNUG_E_SHAPE, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initialisers_have_keras_mean_deviation_and_bounds),
        cmocka_unit_test(test_orthogonal_makes_rows_or_columns_orthonormal),
        cmocka_unit_test(test_orthogonal_prefers_no_direction),
        cmocka_unit_test(test_identity_has_its_gain_on_the_diagonal),
        cmocka_unit_test(test_matrices_only_where_there_are_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
