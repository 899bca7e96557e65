/* test_kernels.c: rules of the own CPU kernels that compute: fast = reference, bits that depend
 * neither on position, nor on threads, nor on the instruction set, nor on how many outputs there
 * are; broadcasting; sums. (test_kernels_move.c: those that move elements. test_ops.c: the sweep
 * over all rows of the table.) */
#include "support/kernel_call.h"

#include "kernels/cpu/vmath.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Units in the last place of f32 between what was got and the exact value. */
static double ulps(float got, long double want) {
    const float rounded = (float)want;
    int exponent;
    if (got == rounded || (isnan(got) && isnan(rounded)))
        return 0;
    if (isinf(rounded) || isinf(got) || isnan(got))
        return INFINITY;
    frexpf(rounded, &exponent);
    return (double)(fabsl((long double)got - want) /
                    ldexpl(1, (exponent < -125 ? -125 : exponent) - 24));
}

/* --- elementwise --------------------------------------------------------------------------- */
/* Inputs from [low, high), parameters, and how far fast f32 may be from the reference, in ulps. */
typedef struct {
    sn_op op;
    int n_in;
    double low, high, p, q, ulps;
} map_case;

static const map_case map_cases[] = {
    {SN_OP_neg, 1, -4, 4, 0, 0, 0},
    {SN_OP_abs, 1, -4, 4, 0, 0, 0},
    {SN_OP_sign, 1, -4, 4, 0, 0, 0},
    {SN_OP_square, 1, -4, 4, 0, 0, 0},
    {SN_OP_sqrt, 1, 0, 9, 0, 0, 0},
    {SN_OP_rsqrt, 1, 0.1, 9, 0, 0, 2},
    {SN_OP_reciprocal, 1, 0.1, 9, 0, 0, 0},
    {SN_OP_exp, 1, -20, 20, 0, 0, 2},
    {SN_OP_log, 1, 0.01, 9, 0, 0, 2},
    {SN_OP_tanh, 1, -6, 6, 0, 0, 2},
    {SN_OP_sigmoid, 1, -20, 20, 0, 0, 3},
    {SN_OP_softplus, 1, -20, 20, 0, 0, 3},
    {SN_OP_erf, 1, -4, 4, 0, 0, 2},
    {SN_OP_relu, 1, -4, 4, 0, 0, 0},
    {SN_OP_leaky_relu, 1, -4, 4, 0.3, 0, 0},
    {SN_OP_elu, 1, -4, 4, 0.7, 0, 3},
    {SN_OP_silu, 1, -6, 6, 0, 0, 4},
    {SN_OP_gelu, 1, -1, 6, 0, 0, 8},
    {SN_OP_affine, 1, -4, 4, 1.5, 20, 2},
    {SN_OP_power, 1, 0.1, 4, 2.5, 0, 2},
    {SN_OP_power, 1, 0.1, 4, 3, 0, 2},
    {SN_OP_clip, 1, -4, 4, -1, 2, 0},
    {SN_OP_relu_grad, 2, -4, 4, 0, 0, 0},
    {SN_OP_leaky_relu_grad, 2, -4, 4, 0.3, 0, 0},
    {SN_OP_elu_grad, 2, -0.5, 4, 0.7, 0, 3},
    {SN_OP_tanh_grad, 2, -0.9, 0.9, 0, 0, 12},
    {SN_OP_sigmoid_grad, 2, 0.1, 0.9, 0, 0, 12},
    {SN_OP_silu_grad, 2, 0, 6, 0, 0, 8},
    {SN_OP_gelu_grad, 2, 0, 4, 0, 0, 8},
};
enum { N_MAP_CASES = sizeof map_cases / sizeof map_cases[0] };

static void begin_map(sn_test_call *k, const map_case *m, snug_dtype dtype, int64_t n) {
    sn_begin(k, m->op);
    for (int i = 0; i < m->n_in; i++)
        sn_add_in(k, SHAPE(dtype, n), m->low, m->high);
    k->param[0].real = m->p;
    k->param[1].real = m->q;
    sn_ready(k);
}

static void test_elementwise_fast_is_near_reference(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        sn_test_call k;
        begin_map(&k, &map_cases[i], SNUG_F32, 1003);
        sn_run_reference(&k);
        float *want = sn_copy_out(&k);
        sn_run(&k);
        for (int j = 0; j < 1003; j++) {
            const float got = ((float *)k.out[0].data)[j];
            if (ulps(got, (long double)want[j]) > map_cases[i].ulps)
                fail_msg("%s: element %d is %.9g, the reference %.9g", sn_ops[k.d.op].name, j,
                         (double)got, (double)want[j]);
        }
        free(want);
        sn_kernel_close(&k);
    }
}

/* The elements [offset, offset + n) alone, at another address, have the bits they have inside the
 * whole. */
static void test_elementwise_bits_do_not_depend_on_position(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        sn_test_call whole;
        begin_map(&whole, &map_cases[i], SNUG_F32, 120);
        sn_run(&whole);
        for (int64_t n = 0; n < 38; n++) {
            const int64_t offset = n * 7 % 67;
            sn_test_call part = whole;
            for (int j = 0; j < part.d.n_in; j++) {
                part.in[j].data = (float *)whole.in[j].data + offset;
                part.in[j].type.dims[0] = n;
            }
            float out[40];
            part.out[0].data = out + offset % 3;
            part.out[0].type.dims[0] = n;
            sn_run(&part);
            if (memcmp(out + offset % 3, (float *)whole.out[0].data + offset,
                       (size_t)n * sizeof(float)) != 0)
                fail_msg("%s: %d elements from %d on", sn_ops[whole.d.op].name, (int)n,
                         (int)offset);
        }
        sn_kernel_close(&whole);
    }
}

static void test_elementwise_threads_and_place_do_not_matter(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        sn_test_call k;
        begin_map(&k, &map_cases[i], SNUG_F32, 40003);
        sn_run(&k);
        void *want = sn_copy_out(&k);
        k.threads = 2;
        memset(k.out[0].data, 0, k.out[0].bytes);
        sn_run(&k);
        expect_bits(&k, want, "two threads differ from one");
        sn_test_call in_place = k;
        in_place.out[0].data = k.in[0].data;
        sn_run(&in_place);
        expect_bits(&in_place, want, "in place differs");
        free(want);
        sn_kernel_close(&k);
    }
}

static void test_elementwise_instruction_sets_agree(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        sn_test_call k;
        begin_map(&k, &map_cases[i], SNUG_F32, 259);
        expect_ok(sn_run_with(&k, sn_cpu_family_for("base", k.d.op), false, NULL), NULL);
        void *want = sn_copy_out(&k);
        static const char *const others[] = {"avx2", "avx512"};
        for (int j = 0; j < 2; j++) {
            const sn_cpu_family *family = sn_cpu_family_for(others[j], k.d.op);
            if (!family)
                continue;
            expect_ok(sn_run_with(&k, family, false, NULL), NULL);
            expect_bits(&k, want, others[j]);
        }
        free(want);
        sn_kernel_close(&k);
    }
}

static void test_elementwise_f64_is_the_reference(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        sn_test_call k;
        begin_map(&k, &map_cases[i], SNUG_F64, 40003);
        expect_fast_is_reference(&k);
        sn_kernel_close(&k);
    }
}

static void test_integers_are_exact_and_wrap(void **state) {
    (void)state;
    const int64_t x[3] = {INT64_MIN, -9007199254740993, 3037000501};
    sn_test_call k;
    sn_begin(&k, SN_OP_neg);
    sn_add_in(&k, SHAPE(SNUG_I64, 3), 0, 1);
    memcpy(k.in[0].data, x, sizeof x);
    sn_ready(&k);
    const int64_t *y = k.out[0].data;
    sn_run(&k);
    assert_true(y[0] == INT64_MIN && y[1] == 9007199254740993);
    k.d.op = SN_OP_square;
    sn_run(&k);
    assert_true(y[0] == 0 &&
                y[2] == (int64_t)(3037000501ULL * 3037000501ULL)); /* just above 2^63 */
    k.d.op = SN_OP_relu;
    sn_run(&k);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 3037000501);
    sn_kernel_close(&k);
}

static void test_relu_and_clip_keep_nan(void **state) {
    (void)state;
    static const sn_op ops[] = {SN_OP_relu, SN_OP_clip,    SN_OP_tanh, SN_OP_exp,
                                SN_OP_log,  SN_OP_sigmoid, SN_OP_erf};
    for (int i = 0; i < 7; i++) {
        sn_test_call k;
        sn_begin(&k, ops[i]);
        sn_add_in(&k, SHAPE(SNUG_F32, 33), 1, 2);
        for (int j = 0; j < 33; j += 4)
            ((float *)k.in[0].data)[j] = NAN;
        k.param[1].real = 5;
        sn_ready(&k);
        sn_run(&k);
        for (int j = 0; j < 33; j++)
            assert_int_equal(isnan(((float *)k.out[0].data)[j]) != 0, j % 4 == 0);
        sn_kernel_close(&k);
    }
}

/* --- vector maths -------------------------------------------------------------------------- */
static long double exact_sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}

static long double exact_softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* The bounds that vmath.h states; arguments spread evenly, and by bit pattern (all magnitudes). */
static float wave_sin(float x) {
    return sn_wave_f32(x, 0);
}
static float wave_cos(float x) {
    return sn_wave_f32(x, 1);
}

static void test_vmath_holds_its_bounds(void **state) {
    (void)state;
    static const struct {
        const char *name;
        float (*f)(float);
        long double (*exact)(long double);
        double low, high, bound;
    } rows[] = {
        {"exp", sn_exp_f32, expl, -110, 95, 1.5},
        {"expm1", sn_expm1_f32, expm1l, -110, 0, 1.5},
        {"log", sn_log_f32, logl, 0, 3e38, 1},
        {"log", sn_log_f32, logl, 0.5, 2, 1},
        {"log1p", sn_log1p_f32, log1pl, 0, 1, 1.5},
        {"log1p_any", sn_log1p_any_f32, log1pl, -0.999, 3e38, 2},
        {"log1p_any", sn_log1p_any_f32, log1pl, -0.999, 2, 2},
        {"expm1_any", sn_expm1_any_f32, expm1l, -110, 95, 2},
        {"expm1_any", sn_expm1_any_f32, expm1l, -1, 1, 2},
        {"tanh", sn_tanh_f32, tanhl, -12, 12, 1.5},
        {"sigmoid", sn_sigmoid_f32, exact_sigmoid, -100, 90, 3},
        {"softplus", sn_softplus_f32, exact_softplus, -100, 90, 2.5},
        {"erf", sn_erf_f32, erfl, -5, 5, 2},
        {"sin", wave_sin, sinl, -20, 20, 1},
        {"cos", wave_cos, cosl, -20, 20, 1},
        {"sin", wave_sin, sinl, -5e8, 5e8, 1},
        {"cos", wave_cos, cosl, -5e8, 5e8, 1},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint32_t bits = 1;
        for (int i = 0; i < 120000; i++) {
            bits = bits * 1664525u + 1013904223u;
            float x = sn_float_of_bits(bits);
            if (i % 2 == 0 || !(x >= (float)rows[r].low && x <= (float)rows[r].high))
                x = (float)(rows[r].low + (rows[r].high - rows[r].low) * i / 120000);
            const double error = ulps(rows[r].f(x), rows[r].exact((long double)x));
            if (error > rows[r].bound)
                fail_msg("%s(%.9g) = %.9g: %.3f ulps", rows[r].name, (double)x,
                         (double)rows[r].f(x), error);
        }
    }
}

static void test_vmath_limits(void **state) {
    (void)state;
    assert_true(isinf(sn_exp_f32(INFINITY)) && sn_exp_f32(-INFINITY) == 0.0f &&
                sn_exp_f32(0) == 1.0f);
    assert_true(isinf(sn_log_f32(0)) && isnan(sn_log_f32(-1)) && isinf(sn_log_f32(INFINITY)));
    assert_true(sn_tanh_f32(INFINITY) == 1.0f && sn_tanh_f32(-INFINITY) == -1.0f &&
                signbit(sn_tanh_f32(-0.0f)));
    assert_true(sn_sigmoid_f32(INFINITY) == 1.0f && sn_sigmoid_f32(-INFINITY) == 0.0f);
    assert_true(isinf(sn_softplus_f32(INFINITY)) && sn_softplus_f32(-INFINITY) == 0.0f);
    assert_true(sn_erf_f32(INFINITY) == 1.0f && sn_erf_f32(-INFINITY) == -1.0f);
    assert_true(sn_expm1_f32(-INFINITY) == -1.0f && sn_expm1_f32(0) == 0.0f);
}

/* --- broadcasting -------------------------------------------------------------------------- */
static const struct {
    snug_type a, b;
} shape_pairs[] = {
    {{.rank = 0}, {.rank = 0}},
    {{.rank = 1, .dims = {1}}, {.rank = 1, .dims = {17}}},
    {{.rank = 1, .dims = {0}}, {.rank = 0}},
    {{.rank = 2, .dims = {5, 7}}, {.rank = 2, .dims = {5, 7}}},
    {{.rank = 2, .dims = {5, 7}}, {.rank = 1, .dims = {7}}},
    {{.rank = 2, .dims = {5, 1}}, {.rank = 2, .dims = {1, 7}}},
    {{.rank = 4, .dims = {2, 3, 4, 5}}, {.rank = 3, .dims = {3, 1, 5}}},
    {{.rank = 4, .dims = {2, 1, 4, 1}}, {.rank = 4, .dims = {1, 3, 1, 5}}},
    {{.rank = 2, .dims = {0, 7}}, {.rank = 1, .dims = {7}}},
    {{.rank = 2, .dims = {5, 0}}, {.rank = 1, .dims = {0}}},
    {{.rank = 2, .dims = {3, 20011}}, {.rank = 2, .dims = {3, 1}}},
    {{.rank = 2, .dims = {20011, 3}}, {.rank = 1, .dims = {3}}},
    {{.rank = 3, .dims = {300, 1, 70}}, {.rank = 3, .dims = {1, 2, 70}}},
};

static void test_broadcasting_fast_is_reference(void **state) {
    (void)state;
    static const struct {
        sn_op op;
        snug_dtype dtypes[6];
        int n_dtypes;
    } rows[] = {
        {SN_OP_add, {SNUG_F32, SNUG_F64, SNUG_I32, SNUG_I64, SNUG_U8, SNUG_I8}, 6},
        {SN_OP_sub, {SNUG_F32, SNUG_I32}, 2},
        {SN_OP_mul, {SNUG_F32, SNUG_I64}, 2},
        {SN_OP_div, {SNUG_F32, SNUG_F64}, 2},
        {SN_OP_maximum, {SNUG_F32, SNUG_U8}, 2},
        {SN_OP_minimum, {SNUG_F32, SNUG_F64}, 2},
        {SN_OP_equal, {SNUG_F32, SNUG_I32, SNUG_I64}, 3},
        {SN_OP_greater, {SNUG_F32, SNUG_F64}, 2},
        {SN_OP_greater_equal, {SNUG_I32, SNUG_U8}, 2},
        {SN_OP_logical_and, {SNUG_BOOL}, 1},
        {SN_OP_logical_or, {SNUG_BOOL}, 1},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t s = 0; s < 2 * sizeof shape_pairs / sizeof shape_pairs[0]; s++) {
            snug_type a = shape_pairs[s / 2].a, b = shape_pairs[s / 2].b;
            a.dtype = b.dtype = rows[r].dtypes[s % (size_t)rows[r].n_dtypes];
            sn_test_call k;
            sn_begin(&k, rows[r].op);
            sn_add_in(&k, s % 2 ? b : a, -2, 5);
            sn_add_in(&k, s % 2 ? a : b, -3, 5);
            sn_ready(&k);
            expect_fast_is_reference(&k);
            sn_kernel_close(&k);
        }
    }
}

static void test_broadcasting_values(void **state) {
    (void)state;
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {10, 20, 30}, want[6] = {11, 22, 33, 14, 25, 36};
    sn_test_call k;
    sn_begin(&k, SN_OP_add);
    sn_add_in(&k, SHAPE(SNUG_F32, 2, 3), 0, 1);
    sn_add_in(&k, SHAPE(SNUG_F32, 3), 0, 1);
    memcpy(k.in[0].data, a, sizeof a);
    memcpy(k.in[1].data, b, sizeof b);
    sn_ready(&k);
    sn_run(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    sn_run_reference(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    sn_kernel_close(&k);
}

static void test_maximum_gives_nan_for_nan(void **state) {
    (void)state;
    sn_test_call k;
    sn_begin(&k, SN_OP_maximum);
    sn_add_in(&k, SHAPE(SNUG_F32, 40), 0, 1);
    sn_add_in(&k, SHAPE(SNUG_F32, 40), 0, 1);
    ((float *)k.in[0].data)[3] = NAN;
    ((float *)k.in[1].data)[37] = NAN;
    sn_ready(&k);
    for (int i = 0; i < 2; i++) {
        sn_run(&k);
        for (int j = 0; j < 40; j++)
            assert_int_equal(isnan(((float *)k.out[0].data)[j]) != 0, j == 3 || j == 37);
        k.d.op = SN_OP_minimum;
    }
    sn_kernel_close(&k);
}

static void test_select_takes_by_condition(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof shape_pairs / sizeof shape_pairs[0]; s++) {
        static const snug_dtype dtypes[3] = {SNUG_F32, SNUG_I64, SNUG_U8};
        snug_type test = shape_pairs[s].a, yes = shape_pairs[s].b, no = shape_pairs[s].a;
        test.dtype = SNUG_BOOL;
        yes.dtype = no.dtype = dtypes[s % 3];
        sn_test_call k;
        sn_begin(&k, SN_OP_select);
        sn_add_in(&k, test, -1, 1);
        sn_add_in(&k, yes, 0, 100);
        sn_add_in(&k, no, 100, 200);
        sn_ready(&k);
        expect_fast_is_reference(&k);
        sn_kernel_close(&k);
    }
}

/* --- sums ---------------------------------------------------------------------------------- */
static void begin_reduce(sn_test_call *k, sn_op op, snug_type t, sn_list axes) {
    sn_begin(k, op);
    sn_add_in(k, t, -1, 3);
    k->d.attrs.axes.axes = axes;
    sn_ready(k);
}

/* The reference adds in double: what the fast sum may be off is rounding of lanes of 16
 * elements. */
static void expect_near_reference(sn_test_call *k) {
    sn_run_reference(k);
    float *want = sn_copy_out(k);
    memset(k->out[0].data, 0x5A, k->out[0].bytes);
    sn_run(k);
    const int64_t n = sn_type_count(&k->out[0].type);
    for (int64_t i = 0; i < n; i++) {
        const float got = ((float *)k->out[0].data)[i];
        const double terms = (double)sn_type_count(&k->in[0].type) / (double)n;
        if (fabs((double)got - (double)want[i]) > 3e-7 * (fabs((double)want[i]) + sqrt(terms)))
            fail_msg("%s: output %d is %.9g, the reference %.9g", sn_ops[k->d.op].name, (int)i,
                     (double)got, (double)want[i]);
    }
    void *one = sn_copy_out(k);
    k->threads = 2;
    memset(k->out[0].data, 0x5A, k->out[0].bytes);
    sn_run(k);
    expect_bits(k, one, "two threads differ from one");
    free(one);
    free(want);
}

static void test_sum_and_max_over_many_shapes(void **state) {
    (void)state;
    const struct {
        snug_type t;
        sn_list axes;
    } rows[] = {
        {SCALAR(SNUG_F32), {0}},
        {SHAPE(SNUG_F32, 1), LIST(0)},
        {SHAPE(SNUG_F32, 100003), {0}},
        {SHAPE(SNUG_F32, 128, 10), LIST(0)},
        {SHAPE(SNUG_F32, 128, 10), LIST(1)},
        {SHAPE(SNUG_F32, 33, 100), LIST(0)},
        {SHAPE(SNUG_F32, 40000, 17), LIST(0)},
        {SHAPE(SNUG_F32, 3, 40000), LIST(1)},
        {SHAPE(SNUG_F32, 2, 9, 11, 5), LIST(1, 2)},
        {SHAPE(SNUG_F32, 4, 9, 11, 5), LIST(0, 1, 2)},
        {SHAPE(SNUG_F32, 4, 9, 11, 5), LIST(0, 2)},
        {SHAPE(SNUG_F32, 4, 9, 11, 5), LIST(1, 3)},
        {SHAPE(SNUG_F32, 6, 1, 7), LIST(1)},
        {SHAPE(SNUG_F32, 1, 64), LIST(0)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        sn_test_call k;
        begin_reduce(&k, SN_OP_sum, rows[r].t, rows[r].axes);
        expect_near_reference(&k);
        k.d.op = SN_OP_max;
        k.threads = 1;
        expect_fast_is_reference(&k);
        sn_kernel_close(&k);
    }
}

/* The bits of a sum of `n` elements are those it has as one row of many, as one column of many, and
 * with its axes apart. */
static void test_sum_bits_depend_on_the_extent_alone(void **state) {
    (void)state;
    static const int64_t extents[] = {1, 2, 15, 16, 17, 31, 255, 256, 257, 1000, 4096, 4098, 20000};
    for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++) {
        const int64_t n = extents[e], others = n > 1000 ? 19 : 67;
        sn_test_call one, rows, columns, apart;
        begin_reduce(&one, SN_OP_sum, SHAPE(SNUG_F32, n), LIST(0));
        begin_reduce(&rows, SN_OP_sum, SHAPE(SNUG_F32, others, n), LIST(1));
        begin_reduce(&columns, SN_OP_sum, SHAPE(SNUG_F32, n, others), LIST(0));
        const int64_t half = n % 2 == 0 ? 2 : 1;
        begin_reduce(&apart, SN_OP_sum, SHAPE(SNUG_F32, half, others, n / half), LIST(0, 2));
        float *x = one.in[0].data;
        sn_run(&one);
        x[n / 2] -= ((float *)one.out[0]
                         .data)[0]; /* what is left of the sum is the rounding of its order */
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < others; k++) {
                ((float *)rows.in[0].data)[k * n + i] = x[i];
                ((float *)columns.in[0].data)[i * others + k] = x[i];
                ((float *)apart.in[0]
                     .data)[(i / (n / half) * others + k) * (n / half) + i % (n / half)] = x[i];
            }
        sn_run(&one);
        sn_run(&rows);
        sn_run(&columns);
        sn_run(&apart);
        for (int64_t k = 0; k < others; k++) {
            assert_memory_equal((float *)rows.out[0].data + k, one.out[0].data, sizeof(float));
            assert_memory_equal((float *)columns.out[0].data + k, one.out[0].data, sizeof(float));
            assert_memory_equal((float *)apart.out[0].data + k, one.out[0].data, sizeof(float));
        }
        sn_kernel_close(&one), sn_kernel_close(&rows), sn_kernel_close(&columns),
            sn_kernel_close(&apart);
    }
}

static void test_sum_adds_into_its_output(void **state) {
    (void)state;
    static const int64_t extents[] = {0, 5, 20000};
    for (int e = 0; e < 3; e++) {
        sn_test_call k;
        begin_reduce(&k, SN_OP_sum, SHAPE(SNUG_F32, extents[e], 3), LIST(0));
        sn_run(&k);
        float *once = sn_copy_out(&k);
        for (int i = 0; i < 3; i++)
            ((float *)k.out[0].data)[i] = 1;
        k.accumulate = true;
        sn_run(&k);
        for (int i = 0; i < 3; i++)
            assert_true(fabsf(((float *)k.out[0].data)[i] - once[i] - 1) <= 1e-6f * fabsf(once[i]));
        if (extents[e] == 0)
            assert_true(once[0] == 0);
        free(once);
        sn_kernel_close(&k);
    }
}

static void test_sum_of_other_dtypes(void **state) {
    (void)state;
    static const snug_dtype dtypes[] = {SNUG_F64, SNUG_I32, SNUG_I64, SNUG_U8};
    for (int i = 0; i < 4; i++) {
        sn_test_call k;
        begin_reduce(&k, SN_OP_sum, SHAPE(dtypes[i], 30, 7, 300), LIST(0, 2));
        expect_fast_is_reference(&k);
        k.d.op = SN_OP_max;
        expect_fast_is_reference(&k);
        sn_kernel_close(&k);
    }
}

static void test_max_of_nothing_and_nan(void **state) {
    (void)state;
    sn_test_call k;
    begin_reduce(&k, SN_OP_max, SHAPE(SNUG_F32, 3, 0), LIST(1));
    sn_run(&k);
    assert_true(((float *)k.out[0].data)[2] == -INFINITY);
    sn_kernel_close(&k);
    for (int axis = 0; axis < 2; axis++) {
        begin_reduce(&k, SN_OP_max, SHAPE(SNUG_F32, 20, 20), LIST(axis));
        ((float *)k.in[0].data)[7 * 20 + 7] = NAN;
        sn_run(&k);
        for (int i = 0; i < 20; i++)
            assert_int_equal(isnan(((float *)k.out[0].data)[i]) != 0, i == 7);
        sn_kernel_close(&k);
    }
}

static void test_argmax_is_the_first_largest(void **state) {
    (void)state;
    const float x[12] = {1, 5, 5, 2, 9, 0, 1, 9, NAN, 3, NAN, 4};
    const int32_t rows[3] = {1, 0, 0};
    const int64_t columns[4] = {2, 0, 2, 1};
    sn_test_call k;
    sn_begin(&k, SN_OP_argmax);
    sn_add_in(&k, SHAPE(SNUG_F32, 3, 4), 0, 1);
    memcpy(k.in[0].data, x, sizeof x);
    k.d.attrs.argmax.axis = 1;
    k.d.attrs.argmax.dtype = SNUG_I32;
    sn_ready(&k);
    sn_run(&k);
    assert_memory_equal(k.out[0].data, rows, sizeof rows);
    sn_unready(&k);
    k.d.attrs.argmax.axis = 0;
    k.d.attrs.argmax.dtype = SNUG_I64;
    sn_ready(&k);
    sn_run(&k);
    assert_memory_equal(k.out[0].data, columns, sizeof columns);
    sn_kernel_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise_fast_is_near_reference),
        cmocka_unit_test(test_elementwise_bits_do_not_depend_on_position),
        cmocka_unit_test(test_elementwise_threads_and_place_do_not_matter),
        cmocka_unit_test(test_elementwise_instruction_sets_agree),
        cmocka_unit_test(test_elementwise_f64_is_the_reference),
        cmocka_unit_test(test_integers_are_exact_and_wrap),
        cmocka_unit_test(test_relu_and_clip_keep_nan),
        cmocka_unit_test(test_vmath_holds_its_bounds),
        cmocka_unit_test(test_vmath_limits),
        cmocka_unit_test(test_broadcasting_fast_is_reference),
        cmocka_unit_test(test_broadcasting_values),
        cmocka_unit_test(test_maximum_gives_nan_for_nan),
        cmocka_unit_test(test_select_takes_by_condition),
        cmocka_unit_test(test_sum_and_max_over_many_shapes),
        cmocka_unit_test(test_sum_bits_depend_on_the_extent_alone),
        cmocka_unit_test(test_sum_adds_into_its_output),
        cmocka_unit_test(test_sum_of_other_dtypes),
        cmocka_unit_test(test_max_of_nothing_and_nan),
        cmocka_unit_test(test_argmax_is_the_first_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
