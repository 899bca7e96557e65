/* test_kernels.c: rules of the own CPU kernels: fast = reference, bits that depend neither on position, nor on
 * threads, nor on the instruction set, nor on how many outputs there are; broadcasting; sums; moves; indices.
 * (The sweep over all rows of the table is test_ops.c.) Buffers are malloc'ed to the byte, so that a sanitizer
 * build sees a kernel that reads or writes beside them. */
#include "support/support.h"

#include "base/rng.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vmath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCALAR(d) ((snug_type){.dtype = (d)})
#define SHAPE(d, ...)                                                                          \
    ((snug_type){.dtype = (d), .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                 .dims = {__VA_ARGS__}})
#define LIST(...) ((sn_list){.n = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .v = {__VA_ARGS__}})

/* One kernel call with memory of its own. */
typedef struct {
    sn_opdesc d;
    sn_scalar param[SN_MAX_PARAMS];
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    bool accumulate;
    int threads, axis;
    int64_t first, full;
} call;

static snug_view view_of(const snug_type *t) {
    snug_view v = {.type = *t};
    expect_ok(snug_type_bytes(t, &v.bytes, NULL), NULL);
    v.data = malloc(v.bytes > 0 ? v.bytes : 1);
    memset(v.data, 0xAB, v.bytes);
    return v;
}

/* Numbers in [low, high), the same for the same key. */
static void randomise(const snug_view *v, uint64_t key, double low, double high) {
    const int64_t n = sn_type_count(&v->type);
    for (int64_t i = 0; i < n; i++) {
        double u;
        sn_random_fill_f64(SN_RANDOM_UNIFORM, key, (uint64_t)i, 1, &u);
        const double x = low + (high - low) * u;
        if (v->type.dtype == SNUG_F32)
            ((float *)v->data)[i] = (float)x;
        else if (v->type.dtype == SNUG_F64)
            ((double *)v->data)[i] = x;
        else if (v->type.dtype == SNUG_I32)
            ((int32_t *)v->data)[i] = (int32_t)floor(x);
        else if (v->type.dtype == SNUG_I64)
            ((int64_t *)v->data)[i] = (int64_t)floor(x);
        else if (v->type.dtype == SNUG_BOOL)
            ((uint8_t *)v->data)[i] = x >= 0;
        else
            ((uint8_t *)v->data)[i] = (uint8_t)(int64_t)floor(x);
    }
}

static void begin(call *k, sn_op op) {
    memset(k, 0, sizeof *k);
    k->d.op = op;
    k->threads = 1;
    sn_attrs_default(op, &k->d.attrs);
}

static void add_in(call *k, snug_type t, double low, double high) {
    k->d.in[k->d.n_in] = t;
    k->in[k->d.n_in] = view_of(&t);
    randomise(&k->in[k->d.n_in], 7 + (uint64_t)k->d.n_in, low, high);
    k->d.n_in++;
}

/* Infers the outputs and makes their memory. */
static void ready(call *k) {
    snug_error err;
    expect_ok(sn_op_infer(&k->d, &err), &err);
    for (int i = 0; i < k->d.n_out; i++)
        k->out[i] = view_of(&k->d.out[i]);
    k->full = k->d.out[0].rank > 0 ? k->d.out[0].dims[0] : 1;
}

static void end(call *k) {
    for (int i = 0; i < k->d.n_in; i++)
        free(k->in[i].data);
    for (int i = 0; i < k->d.n_out; i++)
        free(k->out[i].data);
}

static snug_status run_with(const call *k, const sn_cpu_family *family, bool reference, snug_error *err) {
    sn_variant variant = {0};
    if (family->describe && !reference)
        expect_ok(family->describe(&k->d, k->threads, &variant, NULL), NULL);
    void *workspace = malloc(variant.workspace_bytes + 1);
    memset(workspace, 0xCD, variant.workspace_bytes);
    const sn_call c = {.op = k->d.op, .attrs = &k->d.attrs, .param = k->param, .n_in = k->d.n_in, .n_out = k->d.n_out,
                       .in = k->in, .out = k->out, .workspace = workspace, .workspace_bytes = variant.workspace_bytes,
                       .accumulate = k->accumulate, .n_threads = k->threads, .axis = k->axis, .first = k->first,
                       .full = k->full};
    const snug_status status = (reference ? family->reference : family->run)(&c, err);
    free(workspace);
    return status;
}

static void run(const call *k) {
    snug_error err;
    expect_ok(run_with(k, sn_cpu_family_of(k->d.op), false, &err), &err);
}

static void run_reference(const call *k) {
    snug_error err;
    expect_ok(run_with(k, sn_cpu_family_of(k->d.op), true, &err), &err);
}

/* What output 0 holds, to be freed. */
static void *copy_out(const call *k) {
    void *copy = malloc(k->out[0].bytes + 1);
    memcpy(copy, k->out[0].data, k->out[0].bytes);
    return copy;
}

static void expect_bits(const call *k, const void *want, const char *what) {
    if (memcmp(k->out[0].data, want, k->out[0].bytes) != 0) {
        char text[192];
        fail_msg("%s of %s: %s", sn_ops[k->d.op].name, snug_type_print(&k->d.in[0], text, sizeof text), what);
    }
}

/* The fast kernel's bits are the reference's. */
static void expect_fast_is_reference(call *k) {
    run_reference(k);
    void *want = copy_out(k);
    memset(k->out[0].data, 0x5A, k->out[0].bytes);
    run(k);
    expect_bits(k, want, "fast differs from reference");
    k->threads = 2;
    memset(k->out[0].data, 0xA5, k->out[0].bytes);
    run(k);
    expect_bits(k, want, "two threads differ from one");
    free(want);
}

/* Units in the last place of f32 between what was got and the exact value. */
static double ulps(float got, long double want) {
    const float rounded = (float)want;
    int exponent;
    if (got == rounded || (isnan(got) && isnan(rounded)))
        return 0;
    if (isinf(rounded) || isinf(got) || isnan(got))
        return INFINITY;
    frexpf(rounded, &exponent);
    return (double)(fabsl((long double)got - want) / ldexpl(1, (exponent < -125 ? -125 : exponent) - 24));
}

/* --- elementwise ------------------------------------------------------------------------------------------------ */
/* Inputs from [low, high), parameters, and how far fast f32 may be from the reference, in ulps. */
typedef struct {
    sn_op op;
    int n_in;
    double low, high, p, q, ulps;
} map_case;

static const map_case map_cases[] = {
    {SN_OP_neg, 1, -4, 4, 0, 0, 0},           {SN_OP_abs, 1, -4, 4, 0, 0, 0},
    {SN_OP_sign, 1, -4, 4, 0, 0, 0},          {SN_OP_square, 1, -4, 4, 0, 0, 0},
    {SN_OP_sqrt, 1, 0, 9, 0, 0, 0},           {SN_OP_rsqrt, 1, 0.1, 9, 0, 0, 2},
    {SN_OP_reciprocal, 1, 0.1, 9, 0, 0, 0},   {SN_OP_exp, 1, -20, 20, 0, 0, 2},
    {SN_OP_log, 1, 0.01, 9, 0, 0, 2},         {SN_OP_tanh, 1, -6, 6, 0, 0, 2},
    {SN_OP_sigmoid, 1, -20, 20, 0, 0, 3},     {SN_OP_softplus, 1, -20, 20, 0, 0, 3},
    {SN_OP_erf, 1, -4, 4, 0, 0, 2},           {SN_OP_relu, 1, -4, 4, 0, 0, 0},
    {SN_OP_leaky_relu, 1, -4, 4, 0.3, 0, 0},  {SN_OP_elu, 1, -4, 4, 0.7, 0, 3},
    {SN_OP_silu, 1, -6, 6, 0, 0, 4},          {SN_OP_gelu, 1, -1, 6, 0, 0, 8},
    {SN_OP_affine, 1, -4, 4, 1.5, 20, 2},     {SN_OP_power, 1, 0.1, 4, 2.5, 0, 2},
    {SN_OP_power, 1, 0.1, 4, 3, 0, 2},        {SN_OP_clip, 1, -4, 4, -1, 2, 0},
    {SN_OP_relu_grad, 2, -4, 4, 0, 0, 0},     {SN_OP_leaky_relu_grad, 2, -4, 4, 0.3, 0, 0},
    {SN_OP_elu_grad, 2, -0.5, 4, 0.7, 0, 3},  {SN_OP_tanh_grad, 2, -0.9, 0.9, 0, 0, 12},
    {SN_OP_sigmoid_grad, 2, 0.1, 0.9, 0, 0, 12}, {SN_OP_silu_grad, 2, 0, 6, 0, 0, 8},
    {SN_OP_gelu_grad, 2, 0, 4, 0, 0, 8},
};
enum { N_MAP_CASES = sizeof map_cases / sizeof map_cases[0] };

static void begin_map(call *k, const map_case *m, snug_dtype dtype, int64_t n) {
    begin(k, m->op);
    for (int i = 0; i < m->n_in; i++)
        add_in(k, SHAPE(dtype, n), m->low, m->high);
    k->param[0].real = m->p;
    k->param[1].real = m->q;
    ready(k);
}

static void test_elementwise_fast_is_near_reference(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        call k;
        begin_map(&k, &map_cases[i], SNUG_F32, 1003);
        run_reference(&k);
        float *want = copy_out(&k);
        run(&k);
        for (int j = 0; j < 1003; j++) {
            const float got = ((float *)k.out[0].data)[j];
            if (ulps(got, (long double)want[j]) > map_cases[i].ulps)
                fail_msg("%s: element %d is %.9g, the reference %.9g", sn_ops[k.d.op].name, j, (double)got,
                         (double)want[j]);
        }
        free(want);
        end(&k);
    }
}

/* The elements [offset, offset + n) alone, at another address, have the bits they have inside the whole. */
static void test_elementwise_bits_do_not_depend_on_position(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        call whole;
        begin_map(&whole, &map_cases[i], SNUG_F32, 120);
        run(&whole);
        for (int64_t n = 0; n < 38; n++) {
            const int64_t offset = n * 7 % 67;
            call part = whole;
            for (int j = 0; j < part.d.n_in; j++) {
                part.in[j].data = (float *)whole.in[j].data + offset;
                part.in[j].type.dims[0] = n;
            }
            float out[40];
            part.out[0].data = out + offset % 3;
            part.out[0].type.dims[0] = n;
            run(&part);
            if (memcmp(out + offset % 3, (float *)whole.out[0].data + offset, (size_t)n * sizeof(float)) != 0)
                fail_msg("%s: %d elements from %d on", sn_ops[whole.d.op].name, (int)n, (int)offset);
        }
        end(&whole);
    }
}

static void test_elementwise_threads_and_place_do_not_matter(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        call k;
        begin_map(&k, &map_cases[i], SNUG_F32, 40003);
        run(&k);
        void *want = copy_out(&k);
        k.threads = 2;
        memset(k.out[0].data, 0, k.out[0].bytes);
        run(&k);
        expect_bits(&k, want, "two threads differ from one");
        call in_place = k;
        in_place.out[0].data = k.in[0].data;
        run(&in_place);
        expect_bits(&in_place, want, "in place differs");
        free(want);
        end(&k);
    }
}

static void test_elementwise_instruction_sets_agree(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        call k;
        begin_map(&k, &map_cases[i], SNUG_F32, 259);
        expect_ok(run_with(&k, sn_cpu_family_for("base", k.d.op), false, NULL), NULL);
        void *want = copy_out(&k);
        static const char *const others[] = {"avx2", "avx512"};
        for (int j = 0; j < 2; j++) {
            const sn_cpu_family *family = sn_cpu_family_for(others[j], k.d.op);
            if (!family)
                continue;
            expect_ok(run_with(&k, family, false, NULL), NULL);
            expect_bits(&k, want, others[j]);
        }
        free(want);
        end(&k);
    }
}

static void test_elementwise_f64_is_the_reference(void **state) {
    (void)state;
    for (int i = 0; i < N_MAP_CASES; i++) {
        call k;
        begin_map(&k, &map_cases[i], SNUG_F64, 40003);
        expect_fast_is_reference(&k);
        end(&k);
    }
}

static void test_integers_are_exact_and_wrap(void **state) {
    (void)state;
    const int64_t x[3] = {INT64_MIN, -9007199254740993, 3037000501};
    call k;
    begin(&k, SN_OP_neg);
    add_in(&k, SHAPE(SNUG_I64, 3), 0, 1);
    memcpy(k.in[0].data, x, sizeof x);
    ready(&k);
    const int64_t *y = k.out[0].data;
    run(&k);
    assert_true(y[0] == INT64_MIN && y[1] == 9007199254740993);
    k.d.op = SN_OP_square;
    run(&k);
    assert_true(y[0] == 0 && y[2] == (int64_t)(3037000501ULL * 3037000501ULL)); /* just above 2^63 */
    k.d.op = SN_OP_relu;
    run(&k);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 3037000501);
    end(&k);
}

static void test_relu_and_clip_keep_nan(void **state) {
    (void)state;
    static const sn_op ops[] = {SN_OP_relu, SN_OP_clip, SN_OP_tanh, SN_OP_exp, SN_OP_log, SN_OP_sigmoid, SN_OP_erf};
    for (int i = 0; i < 7; i++) {
        call k;
        begin(&k, ops[i]);
        add_in(&k, SHAPE(SNUG_F32, 33), 1, 2);
        for (int j = 0; j < 33; j += 4)
            ((float *)k.in[0].data)[j] = NAN;
        k.param[1].real = 5;
        ready(&k);
        run(&k);
        for (int j = 0; j < 33; j++)
            assert_int_equal(isnan(((float *)k.out[0].data)[j]) != 0, j % 4 == 0);
        end(&k);
    }
}

/* --- vector maths ------------------------------------------------------------------------------------------------ */
static long double exact_sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}

static long double exact_softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* The bounds that vmath.h states; arguments spread evenly, and by bit pattern (all magnitudes). */
static void test_vmath_holds_its_bounds(void **state) {
    (void)state;
    static const struct {
        const char *name;
        float (*f)(float);
        long double (*exact)(long double);
        double low, high, bound;
    } rows[] = {
        {"exp", sn_exp_f32, expl, -110, 95, 1.5},          {"expm1", sn_expm1_f32, expm1l, -110, 0, 1.5},
        {"log", sn_log_f32, logl, 0, 3e38, 1},             {"log", sn_log_f32, logl, 0.5, 2, 1},
        {"log1p", sn_log1p_f32, log1pl, 0, 1, 1.5},        {"tanh", sn_tanh_f32, tanhl, -12, 12, 1.5},
        {"sigmoid", sn_sigmoid_f32, exact_sigmoid, -100, 90, 3},
        {"softplus", sn_softplus_f32, exact_softplus, -100, 90, 2.5},
        {"erf", sn_erf_f32, erfl, -5, 5, 2},
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
                fail_msg("%s(%.9g) = %.9g: %.3f ulps", rows[r].name, (double)x, (double)rows[r].f(x), error);
        }
    }
}

static void test_vmath_limits(void **state) {
    (void)state;
    assert_true(isinf(sn_exp_f32(INFINITY)) && sn_exp_f32(-INFINITY) == 0.0f && sn_exp_f32(0) == 1.0f);
    assert_true(isinf(sn_log_f32(0)) && isnan(sn_log_f32(-1)) && isinf(sn_log_f32(INFINITY)));
    assert_true(sn_tanh_f32(INFINITY) == 1.0f && sn_tanh_f32(-INFINITY) == -1.0f && signbit(sn_tanh_f32(-0.0f)));
    assert_true(sn_sigmoid_f32(INFINITY) == 1.0f && sn_sigmoid_f32(-INFINITY) == 0.0f);
    assert_true(isinf(sn_softplus_f32(INFINITY)) && sn_softplus_f32(-INFINITY) == 0.0f);
    assert_true(sn_erf_f32(INFINITY) == 1.0f && sn_erf_f32(-INFINITY) == -1.0f);
    assert_true(sn_expm1_f32(-INFINITY) == -1.0f && sn_expm1_f32(0) == 0.0f);
}

/* --- broadcasting -------------------------------------------------------------------------------------------------- */
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
            call k;
            begin(&k, rows[r].op);
            add_in(&k, s % 2 ? b : a, -2, 5);
            add_in(&k, s % 2 ? a : b, -3, 5);
            ready(&k);
            expect_fast_is_reference(&k);
            end(&k);
        }
    }
}

static void test_broadcasting_values(void **state) {
    (void)state;
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {10, 20, 30}, want[6] = {11, 22, 33, 14, 25, 36};
    call k;
    begin(&k, SN_OP_add);
    add_in(&k, SHAPE(SNUG_F32, 2, 3), 0, 1);
    add_in(&k, SHAPE(SNUG_F32, 3), 0, 1);
    memcpy(k.in[0].data, a, sizeof a);
    memcpy(k.in[1].data, b, sizeof b);
    ready(&k);
    run(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    run_reference(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    end(&k);
}

static void test_maximum_gives_nan_for_nan(void **state) {
    (void)state;
    call k;
    begin(&k, SN_OP_maximum);
    add_in(&k, SHAPE(SNUG_F32, 40), 0, 1);
    add_in(&k, SHAPE(SNUG_F32, 40), 0, 1);
    ((float *)k.in[0].data)[3] = NAN;
    ((float *)k.in[1].data)[37] = NAN;
    ready(&k);
    for (int i = 0; i < 2; i++) {
        run(&k);
        for (int j = 0; j < 40; j++)
            assert_int_equal(isnan(((float *)k.out[0].data)[j]) != 0, j == 3 || j == 37);
        k.d.op = SN_OP_minimum;
    }
    end(&k);
}

static void test_select_takes_by_condition(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof shape_pairs / sizeof shape_pairs[0]; s++) {
        static const snug_dtype dtypes[3] = {SNUG_F32, SNUG_I64, SNUG_U8};
        snug_type test = shape_pairs[s].a, yes = shape_pairs[s].b, no = shape_pairs[s].a;
        test.dtype = SNUG_BOOL;
        yes.dtype = no.dtype = dtypes[s % 3];
        call k;
        begin(&k, SN_OP_select);
        add_in(&k, test, -1, 1);
        add_in(&k, yes, 0, 100);
        add_in(&k, no, 100, 200);
        ready(&k);
        expect_fast_is_reference(&k);
        end(&k);
    }
}

/* --- sums ------------------------------------------------------------------------------------------------------------ */
static void begin_reduce(call *k, sn_op op, snug_type t, sn_list axes) {
    begin(k, op);
    add_in(k, t, -1, 3);
    k->d.attrs.axes.axes = axes;
    ready(k);
}

/* The reference adds in double: what the fast sum may be off is rounding of lanes of 16 elements. */
static void expect_near_reference(call *k) {
    run_reference(k);
    float *want = copy_out(k);
    memset(k->out[0].data, 0x5A, k->out[0].bytes);
    run(k);
    const int64_t n = sn_type_count(&k->out[0].type);
    for (int64_t i = 0; i < n; i++) {
        const float got = ((float *)k->out[0].data)[i];
        const double terms = (double)sn_type_count(&k->in[0].type) / (double)n;
        if (fabs((double)got - (double)want[i]) > 3e-7 * (fabs((double)want[i]) + sqrt(terms)))
            fail_msg("%s: output %d is %.9g, the reference %.9g", sn_ops[k->d.op].name, (int)i, (double)got,
                     (double)want[i]);
    }
    void *one = copy_out(k);
    k->threads = 2;
    memset(k->out[0].data, 0x5A, k->out[0].bytes);
    run(k);
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
        call k;
        begin_reduce(&k, SN_OP_sum, rows[r].t, rows[r].axes);
        expect_near_reference(&k);
        k.d.op = SN_OP_max;
        k.threads = 1;
        expect_fast_is_reference(&k);
        end(&k);
    }
}

/* The bits of a sum of `n` elements are those it has as one row of many, as one column of many, and with its
 * axes apart. */
static void test_sum_bits_depend_on_the_extent_alone(void **state) {
    (void)state;
    static const int64_t extents[] = {1, 2, 15, 16, 17, 31, 255, 256, 257, 1000, 16384, 16386, 40000};
    for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++) {
        const int64_t n = extents[e], others = n > 1000 ? 19 : 67;
        call one, rows, columns, apart;
        begin_reduce(&one, SN_OP_sum, SHAPE(SNUG_F32, n), LIST(0));
        begin_reduce(&rows, SN_OP_sum, SHAPE(SNUG_F32, others, n), LIST(1));
        begin_reduce(&columns, SN_OP_sum, SHAPE(SNUG_F32, n, others), LIST(0));
        const int64_t half = n % 2 == 0 ? 2 : 1;
        begin_reduce(&apart, SN_OP_sum, SHAPE(SNUG_F32, half, others, n / half), LIST(0, 2));
        float *x = one.in[0].data;
        run(&one);
        x[n / 2] -= ((float *)one.out[0].data)[0]; /* what is left of the sum is the rounding of its order */
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < others; k++) {
                ((float *)rows.in[0].data)[k * n + i] = x[i];
                ((float *)columns.in[0].data)[i * others + k] = x[i];
                ((float *)apart.in[0].data)[(i / (n / half) * others + k) * (n / half) + i % (n / half)] = x[i];
            }
        run(&one);
        run(&rows);
        run(&columns);
        run(&apart);
        for (int64_t k = 0; k < others; k++) {
            assert_memory_equal((float *)rows.out[0].data + k, one.out[0].data, sizeof(float));
            assert_memory_equal((float *)columns.out[0].data + k, one.out[0].data, sizeof(float));
            assert_memory_equal((float *)apart.out[0].data + k, one.out[0].data, sizeof(float));
        }
        end(&one), end(&rows), end(&columns), end(&apart);
    }
}

static void test_sum_adds_into_its_output(void **state) {
    (void)state;
    static const int64_t extents[] = {0, 5, 20000};
    for (int e = 0; e < 3; e++) {
        call k;
        begin_reduce(&k, SN_OP_sum, SHAPE(SNUG_F32, extents[e], 3), LIST(0));
        run(&k);
        float *once = copy_out(&k);
        for (int i = 0; i < 3; i++)
            ((float *)k.out[0].data)[i] = 1;
        k.accumulate = true;
        run(&k);
        for (int i = 0; i < 3; i++)
            assert_true(fabsf(((float *)k.out[0].data)[i] - once[i] - 1) <= 1e-6f * fabsf(once[i]));
        if (extents[e] == 0)
            assert_true(once[0] == 0);
        free(once);
        end(&k);
    }
}

static void test_sum_of_other_dtypes(void **state) {
    (void)state;
    static const snug_dtype dtypes[] = {SNUG_F64, SNUG_I32, SNUG_I64, SNUG_U8};
    for (int i = 0; i < 4; i++) {
        call k;
        begin_reduce(&k, SN_OP_sum, SHAPE(dtypes[i], 30, 7, 300), LIST(0, 2));
        expect_fast_is_reference(&k);
        k.d.op = SN_OP_max;
        expect_fast_is_reference(&k);
        end(&k);
    }
}

static void test_max_of_nothing_and_nan(void **state) {
    (void)state;
    call k;
    begin_reduce(&k, SN_OP_max, SHAPE(SNUG_F32, 3, 0), LIST(1));
    run(&k);
    assert_true(((float *)k.out[0].data)[2] == -INFINITY);
    end(&k);
    for (int axis = 0; axis < 2; axis++) {
        begin_reduce(&k, SN_OP_max, SHAPE(SNUG_F32, 20, 20), LIST(axis));
        ((float *)k.in[0].data)[7 * 20 + 7] = NAN;
        run(&k);
        for (int i = 0; i < 20; i++)
            assert_int_equal(isnan(((float *)k.out[0].data)[i]) != 0, i == 7);
        end(&k);
    }
}

static void test_argmax_is_the_first_largest(void **state) {
    (void)state;
    const float x[12] = {1, 5, 5, 2, 9, 0, 1, 9, NAN, 3, NAN, 4};
    const int32_t rows[3] = {1, 0, 0};
    const int64_t columns[4] = {2, 0, 2, 1};
    call k;
    begin(&k, SN_OP_argmax);
    add_in(&k, SHAPE(SNUG_F32, 3, 4), 0, 1);
    memcpy(k.in[0].data, x, sizeof x);
    k.d.attrs.argmax.axis = 1;
    k.d.attrs.argmax.dtype = SNUG_I32;
    ready(&k);
    run(&k);
    assert_memory_equal(k.out[0].data, rows, sizeof rows);
    free(k.out[0].data);
    k.d.attrs.argmax.axis = 0;
    k.d.attrs.argmax.dtype = SNUG_I64;
    ready(&k);
    run(&k);
    assert_memory_equal(k.out[0].data, columns, sizeof columns);
    end(&k);
}

/* --- moves ------------------------------------------------------------------------------------------------------------ */
static void test_transpose_fast_is_reference(void **state) {
    (void)state;
    const struct {
        snug_type t;
        sn_list perm;
    } rows[] = {
        {SHAPE(SNUG_F32, 70, 45), LIST(1, 0)},          {SHAPE(SNUG_F64, 33, 32), LIST(1, 0)},
        {SHAPE(SNUG_U8, 3, 65, 31), LIST(0, 2, 1)},     {SHAPE(SNUG_F32, 2, 7, 4, 33), LIST(0, 2, 1, 3)},
        {SHAPE(SNUG_F32, 5, 6, 7), LIST(2, 1, 0)},      {SHAPE(SNUG_I64, 5, 6, 7), LIST(2, 0, 1)},
        {SHAPE(SNUG_F32, 5, 0, 7), LIST(2, 1, 0)},      {SHAPE(SNUG_F32, 1, 1), LIST(1, 0)},
        {SHAPE(SNUG_F32, 300, 400), LIST(1, 0)},        {SHAPE(SNUG_F32, 3, 4, 5, 6, 7), LIST(4, 2, 0, 3, 1)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        call k;
        begin(&k, SN_OP_transpose);
        add_in(&k, rows[r].t, 0, 100);
        k.d.attrs.perm.perm = rows[r].perm;
        ready(&k);
        expect_fast_is_reference(&k);
        end(&k);
    }
}

static void test_transpose_values(void **state) {
    (void)state;
    const int32_t x[6] = {1, 2, 3, 4, 5, 6}, want[6] = {1, 4, 2, 5, 3, 6};
    call k;
    begin(&k, SN_OP_transpose);
    add_in(&k, SHAPE(SNUG_I32, 2, 3), 0, 1);
    memcpy(k.in[0].data, x, sizeof x);
    k.d.attrs.perm.perm = LIST(1, 0);
    ready(&k);
    run_reference(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    end(&k);
}

static void test_broadcast_to_and_fill_are_reference(void **state) {
    (void)state;
    const sn_list shapes[] = {LIST(4, 5, 6), LIST(3, 4, 5, 6), LIST(4, 50, 600)};
    for (int i = 0; i < 3; i++) {
        call k;
        begin(&k, SN_OP_broadcast_to);
        add_in(&k, i == 2 ? SHAPE(SNUG_F32, 50, 1) : SHAPE(SNUG_F32, 4, 1, 6), -1, 1);
        k.d.attrs.shape.dims = shapes[i];
        ready(&k);
        expect_fast_is_reference(&k);
        end(&k);
        begin(&k, SN_OP_fill);
        k.d.attrs.fill.dims = shapes[i];
        k.d.attrs.fill.dtype = i == 0 ? SNUG_F32 : i == 1 ? SNUG_I32 : SNUG_U8;
        k.param[0].real = 7;
        ready(&k);
        expect_fast_is_reference(&k);
        assert_int_equal(((uint8_t *)k.out[0].data)[k.out[0].bytes - 1], i == 0 ? 0x40 : i == 1 ? 0 : 7);
        end(&k);
    }
}

static void test_concat_puts_parts_side_by_side(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        call k;
        begin(&k, SN_OP_concat);
        for (int i = 0; i < 3; i++) {
            snug_type t = SHAPE(SNUG_F32, 4, 5, 6);
            t.dims[axis] = i * 3; /* the first has nothing */
            add_in(&k, t, i, i + 1);
        }
        k.d.attrs.axis.axis = axis;
        ready(&k);
        expect_fast_is_reference(&k);
        const int64_t inner = sn_type_span(&k.d.out[0], axis + 1, 3);
        for (int64_t i = 0; i < sn_type_count(&k.d.out[0]); i++)
            assert_int_equal((int)floorf(((float *)k.out[0].data)[i]), i / inner % 9 < 3 ? 1 : 2);
        end(&k);
    }
}

static void begin_slice(call *k, sn_op op, snug_type t, const int64_t *start) {
    begin(k, op);
    add_in(k, t, -1, 1);
    for (int i = 0; i < t.rank; i++)
        k->param[i].key = start[i];
}

static void test_slice_and_its_gradient(void **state) {
    (void)state;
    const int64_t start[3] = {1, 2, 0};
    call k, back;
    begin_slice(&k, SN_OP_slice, SHAPE(SNUG_F32, 5, 12, 7), start);
    k.d.attrs.slice.sizes = LIST(3, 4, 7);
    k.d.attrs.slice.strides = LIST(1, 3, 1);
    ready(&k);
    expect_fast_is_reference(&k);
    assert_true(((float *)k.out[0].data)[7] == ((float *)k.in[0].data)[(1 * 12 + 5) * 7]);
    begin_slice(&back, SN_OP_slice_grad, k.d.out[0], start);
    back.d.attrs.slice_grad.dims = LIST(5, 12, 7);
    back.d.attrs.slice_grad.strides = LIST(1, 3, 1);
    ready(&back);
    expect_fast_is_reference(&back);
    double sum_in = 0, sum_out = 0;
    for (int i = 0; i < 3 * 4 * 7; i++)
        sum_in += (double)((float *)back.in[0].data)[i];
    for (int i = 0; i < 5 * 12 * 7; i++)
        sum_out += (double)((float *)back.out[0].data)[i];
    assert_true(fabs(sum_in - sum_out) < 1e-9);
    assert_true(((float *)back.out[0].data)[(1 * 12 + 5) * 7] == ((float *)back.in[0].data)[7]);
    end(&back);
    k.param[1].key = 3;
    snug_error err;
    expect_status(run_with(&k, sn_cpu_family_of(SN_OP_slice), false, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "axis 1 of extent 12");
    end(&k);
}

static void test_pad_surrounds_with_the_value(void **state) {
    (void)state;
    const float want[12] = {9, 9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9};
    call k;
    begin(&k, SN_OP_pad);
    add_in(&k, SHAPE(SNUG_F32, 2, 2), 0, 1);
    memcpy(k.in[0].data, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
    k.d.attrs.pad.before = LIST(1, 1);
    k.d.attrs.pad.after = LIST(0, 1);
    k.param[0].real = 9;
    ready(&k);
    expect_fast_is_reference(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    end(&k);
}

static void test_identity_copies_once_and_leaves_itself(void **state) {
    (void)state;
    call k;
    begin(&k, SN_OP_identity);
    add_in(&k, SHAPE(SNUG_F32, 50001), 0, 1);
    ready(&k);
    k.threads = 2;
    run(&k);
    assert_memory_equal(k.out[0].data, k.in[0].data, k.in[0].bytes);
    call alias = k;
    alias.out[0].data = k.in[0].data;
    run(&alias);
    assert_memory_equal(k.out[0].data, k.in[0].data, k.in[0].bytes);
    end(&k);
}

static void test_cast_saturates_and_truncates(void **state) {
    (void)state;
    const float x[6] = {-1.9f, 3.99f, NAN, 1e30f, -1e30f, 0};
    const int32_t i32[6] = {-1, 3, 0, INT32_MAX, INT32_MIN, 0};
    const uint8_t u8[6] = {0, 3, 0, 255, 0, 0}, truth[6] = {1, 1, 1, 1, 1, 0};
    static const snug_dtype to[3] = {SNUG_I32, SNUG_U8, SNUG_BOOL};
    const void *want[3] = {i32, u8, truth};
    for (int i = 0; i < 3; i++) {
        call k;
        begin(&k, SN_OP_cast);
        add_in(&k, SHAPE(SNUG_F32, 6), 0, 1);
        memcpy(k.in[0].data, x, sizeof x);
        k.d.attrs.dtype.dtype = to[i];
        ready(&k);
        run(&k);
        expect_bits(&k, want[i], "cast");
        end(&k);
    }
}

/* --- indices ------------------------------------------------------------------------------------------------------------ */
static void begin_gather(call *k, int64_t extent, int axis, snug_dtype index) {
    snug_type t = SHAPE(SNUG_F32, 3, 4, 5);
    t.dims[axis] = extent;
    begin(k, SN_OP_gather);
    add_in(k, t, -1, 1);
    add_in(k, SHAPE(index, 2, 6), 0, (double)extent);
    k->d.attrs.axis.axis = axis;
    ready(k);
}

static void test_gather_takes_rows_along_any_axis(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        call k;
        begin_gather(&k, 9, axis, axis % 2 ? SNUG_I64 : SNUG_I32);
        run(&k);
        const int64_t inner = sn_type_span(&k.d.in[0], axis + 1, 3);
        for (int64_t i = 0; i < sn_type_count(&k.d.out[0]); i++) {
            const int64_t at = i / inner % 12;
            const int64_t index = axis % 2 ? ((int64_t *)k.in[1].data)[at] : ((int32_t *)k.in[1].data)[at];
            const int64_t from = (i / inner / 12 * 9 + index) * inner + i % inner;
            assert_true(((float *)k.out[0].data)[i] == ((float *)k.in[0].data)[from]);
        }
        end(&k);
    }
}

static void test_gather_names_a_bad_index(void **state) {
    (void)state;
    call k;
    snug_error err;
    begin_gather(&k, 9, 0, SNUG_I32);
    ((int32_t *)k.in[1].data)[7] = 9;
    expect_status(run_with(&k, sn_cpu_family_of(SN_OP_gather), false, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "index 9 at position 7 is outside [0, 9)");
    ((int32_t *)k.in[1].data)[7] = -1;
    expect_status(run_with(&k, sn_cpu_family_of(SN_OP_gather), false, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "index -1");
    end(&k);
}

static void test_scatter_add_is_the_same_for_any_threads(void **state) {
    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        call k;
        begin(&k, SN_OP_scatter_add);
        add_in(&k, SHAPE(SNUG_I64, 900), 0, 50);
        add_in(&k, axis == 0 ? SHAPE(SNUG_F32, 900, 41) : SHAPE(SNUG_F32, 2, 900, 41), -1, 1);
        k.d.attrs.scatter.axis = axis;
        k.d.attrs.scatter.dims = axis == 0 ? LIST(50, 41) : LIST(2, 50, 41);
        ready(&k);
        expect_fast_is_reference(&k);
        double want = 0;
        for (int i = 0; i < 900; i++)
            if (((int64_t *)k.in[0].data)[i] == 13)
                want += (double)((float *)k.in[1].data)[i * 41 + 7];
        assert_true(fabs((double)((float *)k.out[0].data)[13 * 41 + 7] - want) < 1e-5);
        float *once = copy_out(&k);
        k.accumulate = true;
        run(&k);
        for (int64_t i = 0; i < sn_type_count(&k.d.out[0]); i++)
            assert_true(fabsf(((float *)k.out[0].data)[i] - 2 * once[i]) < 1e-4f);
        free(once);
        end(&k);
    }
}

static void test_one_hot_has_zeros_outside(void **state) {
    (void)state;
    const float want[9] = {0, 0, 1, 0, 0, 0, 1, 0, 0};
    call k;
    begin(&k, SN_OP_one_hot);
    add_in(&k, SHAPE(SNUG_I32, 3), 0, 1);
    memcpy(k.in[0].data, (int32_t[]){2, -1, 0}, 3 * sizeof(int32_t));
    k.d.attrs.one_hot.depth = 3;
    ready(&k);
    run(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    end(&k);
}

/* --- randomness, checks, updates ------------------------------------------------------------------------------------------ */
/* Rows [2, 5) of an axis draw what the whole draws there. */
static void test_slices_draw_the_numbers_of_the_whole(void **state) {
    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        call whole, part;
        begin(&whole, SN_OP_dropout);
        add_in(&whole, SHAPE(SNUG_F32, 7, 9, 11), 1, 2);
        whole.param[0].real = 0.4;
        whole.param[1].key = 123;
        ready(&whole);
        run(&whole);
        snug_type t = whole.d.in[0];
        t.dims[axis] = 3;
        begin(&part, SN_OP_dropout);
        add_in(&part, t, 1, 2);
        memcpy(part.param, whole.param, sizeof part.param);
        ready(&part);
        part.axis = axis;
        part.first = 2;
        part.full = whole.d.in[0].dims[axis];
        run(&part);
        const int64_t inner = sn_type_span(&t, axis + 1, 3);
        for (int64_t i = 0; i < sn_type_count(&t); i++) {
            const int64_t at = i / (3 * inner) * part.full * inner + 2 * inner + i % (3 * inner);
            const bool kept = ((float *)part.out[0].data)[i] != 0;
            assert_int_equal(kept, ((float *)whole.out[0].data)[at] != 0);
            if (kept)
                assert_true(fabsf(((float *)part.out[0].data)[i] - ((float *)part.in[0].data)[i] / 0.6f) < 1e-6f);
        }
        end(&whole), end(&part);
    }
}

static void test_dropout_keeps_the_right_share(void **state) {
    (void)state;
    static const snug_dtype dtypes[2] = {SNUG_F32, SNUG_F64};
    int64_t kept[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        call k;
        begin(&k, SN_OP_dropout);
        add_in(&k, SHAPE(dtypes[i], 40000), 1, 2);
        k.param[0].real = 0.25;
        k.param[1].key = -5;
        ready(&k);
        expect_fast_is_reference(&k);
        for (int j = 0; j < 40000; j++)
            kept[i] += i == 0 ? ((float *)k.out[0].data)[j] != 0 : ((double *)k.out[0].data)[j] != 0;
        end(&k);
    }
    assert_true(kept[0] > 29500 && kept[0] < 30500);
    assert_true(kept[0] == kept[1]);
}

static void test_random_follows_its_kind(void **state) {
    (void)state;
    for (int kind = SN_RANDOM_UNIFORM; kind <= SN_RANDOM_TRUNCATED; kind++) {
        call k;
        begin(&k, SN_OP_random);
        k.d.attrs.random.dims = LIST(200, 200);
        k.d.attrs.random.kind = kind;
        k.param[0].key = 77;
        k.param[1].real = 2;
        k.param[2].real = 5;
        ready(&k);
        expect_fast_is_reference(&k);
        double sum = 0, low = INFINITY;
        for (int i = 0; i < 40000; i++) {
            const double v = (double)((float *)k.out[0].data)[i];
            sum += v;
            low = v < low ? v : low;
        }
        assert_true(fabs(sum / 40000 - (kind == SN_RANDOM_UNIFORM ? 3.5 : 2)) < 0.1);
        assert_true(kind == SN_RANDOM_UNIFORM ? low >= 2 : kind == SN_RANDOM_TRUNCATED ? low >= -8 : low < -8);
        end(&k);
    }
}

static void test_check_finite_names_the_first(void **state) {
    (void)state;
    call k;
    snug_error err;
    begin(&k, SN_OP_check_finite);
    add_in(&k, SHAPE(SNUG_F32, 50000), -3e38, 3e38);
    ready(&k);
    k.threads = 2;
    run(&k);
    assert_memory_equal(k.out[0].data, k.in[0].data, k.in[0].bytes);
    ((float *)k.in[0].data)[41234] = NAN;
    ((float *)k.in[0].data)[33333] = -INFINITY;
    k.first = 100;
    k.full = 60000;
    expect_status(run_with(&k, sn_cpu_family_of(SN_OP_check_finite), false, &err), SNUG_E_NUMERIC, &err);
    expect_text(err.text, "element 33433 is -inf");
    end(&k);
}

static void test_updates_follow_keras(void **state) {
    (void)state;
    call k;
    begin(&k, SN_OP_adam);
    for (int i = 0; i < 4; i++)
        add_in(&k, SHAPE(SNUG_F64, 5), 0.5, 1);
    k.param[0].real = 0.01, k.param[1].real = 0.1, k.param[2].real = 0.001, k.param[3].real = 1e-7;
    ready(&k);
    run(&k);
    const double *w = k.in[0].data, *m = k.in[1].data, *v = k.in[2].data, *g = k.in[3].data;
    for (int i = 0; i < 5; i++) {
        const double mean = m[i] * 0.9 + g[i] * 0.1, square = v[i] * 0.999 + g[i] * g[i] * 0.001;
        assert_true(fabs(((double *)k.out[1].data)[i] - mean) < 1e-14);
        assert_true(fabs(((double *)k.out[2].data)[i] - square) < 1e-14);
        assert_true(fabs(((double *)k.out[0].data)[i] - (w[i] - 0.01 * mean / (sqrt(square) + 1e-7))) < 1e-14);
    }
    end(&k);
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        begin(&k, SN_OP_sgd_momentum);
        for (int i = 0; i < 3; i++)
            add_in(&k, SHAPE(SNUG_F64, 5), -1, 1);
        k.d.attrs.sgd.nesterov = nesterov;
        k.param[0].real = 0.1, k.param[1].real = 0.9;
        ready(&k);
        w = k.in[0].data, m = k.in[1].data, g = k.in[2].data;
        run(&k);
        for (int i = 0; i < 5; i++) {
            const double moved = 0.9 * m[i] - 0.1 * g[i];
            const double step = nesterov ? 0.9 * moved - 0.1 * g[i] : moved;
            assert_true(fabs(((double *)k.out[1].data)[i] - moved) < 1e-15);
            assert_true(fabs(((double *)k.out[0].data)[i] - (w[i] + step)) < 1e-15);
        }
        end(&k);
    }
}

/* In their homes, f32, any threads: near the reference, the same bits. */
static void test_updates_in_place_are_the_same(void **state) {
    (void)state;
    static const struct {
        sn_op op;
        int n_in;
    } rows[] = {{SN_OP_sgd, 2}, {SN_OP_sgd_momentum, 3}, {SN_OP_adam, 4}, {SN_OP_moving_average, 2},
                {SN_OP_assign_add, 2}, {SN_OP_assign, 2}};
    for (int r = 0; r < 6; r++) {
        call k;
        begin(&k, rows[r].op);
        for (int i = 0; i < rows[r].n_in; i++)
            add_in(&k, SHAPE(SNUG_F32, 33001), 0.5, 1);
        for (int i = 0; i < 4; i++)
            k.param[i].real = 0.1;
        ready(&k);
        run_reference(&k);
        float *want = copy_out(&k);
        run(&k);
        float *got = copy_out(&k);
        for (int i = 0; i < 33001; i++)
            assert_true(fabsf(got[i] - want[i]) <= 2e-7f);
        call home = k;
        for (int i = 0; i < k.d.n_out; i++)
            home.out[i].data = k.in[i].data;
        home.threads = 2;
        run(&home);
        expect_bits(&home, got, "in place differs");
        free(want);
        free(got);
        end(&k);
    }
}

static void test_device_describes_and_refuses(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_variant v;
    snug_error err;
    call k;
    begin_reduce(&k, SN_OP_sum, SHAPE(SNUG_F32, 40000, 3), LIST(0));
    sn_cpu_device_init(&cpu, 2, false);
    expect_ok(cpu.device.describe(&cpu.device, &k.d, &v, &err), &err);
    assert_int_equal(v.workspace_bytes, 3 * 3 * 8);
    assert_true(v.bytes == 40000 * 3 * 4 + 3 * 4);
    expect_text(v.impl, "own:");
    expect_text(v.impl, sn_cpu_isa());
    sn_cpu_device_init(&cpu, 2, true);
    expect_ok(cpu.device.describe(&cpu.device, &k.d, &v, &err), &err);
    assert_string_equal(v.impl, "reference");
    assert_int_equal(v.workspace_bytes, 0);
    k.d.in[0].dtype = SNUG_BF16;
    expect_status(cpu.device.describe(&cpu.device, &k.d, &v, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "sum with bf16");
    end(&k);
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
        cmocka_unit_test(test_transpose_fast_is_reference),
        cmocka_unit_test(test_transpose_values),
        cmocka_unit_test(test_broadcast_to_and_fill_are_reference),
        cmocka_unit_test(test_concat_puts_parts_side_by_side),
        cmocka_unit_test(test_slice_and_its_gradient),
        cmocka_unit_test(test_pad_surrounds_with_the_value),
        cmocka_unit_test(test_identity_copies_once_and_leaves_itself),
        cmocka_unit_test(test_cast_saturates_and_truncates),
        cmocka_unit_test(test_gather_takes_rows_along_any_axis),
        cmocka_unit_test(test_gather_names_a_bad_index),
        cmocka_unit_test(test_scatter_add_is_the_same_for_any_threads),
        cmocka_unit_test(test_one_hot_has_zeros_outside),
        cmocka_unit_test(test_slices_draw_the_numbers_of_the_whole),
        cmocka_unit_test(test_dropout_keeps_the_right_share),
        cmocka_unit_test(test_random_follows_its_kind),
        cmocka_unit_test(test_check_finite_names_the_first),
        cmocka_unit_test(test_updates_follow_keras),
        cmocka_unit_test(test_updates_in_place_are_the_same),
        cmocka_unit_test(test_device_describes_and_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
