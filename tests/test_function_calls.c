/* test_function_calls.c: calls of functions: their numbers are no part of plans, shapes are known in
 * traces, rows that draw say so, and all survive want of memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "function/function_call.h"
#include "support/as_operation.h"
#include "support/bench.h"

/* --- numbers, shapes and random draws --------------------------------------------------------- */
static snug_tensor *call(bench *b, const char *name, const snug_argument *args, int n) {
    snug_tensor *out;
    int function, n_out;
    assert_true(snug_function_find(name, &function));
    expect_ok(snug_function_call(b->r, function, args, n, &out, 1, &n_out, &b->err), &b->err);
    return out;
}

static snug_argument of(snug_tensor *t) {
    return (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = t};
}
static snug_argument real(double v) {
    return (snug_argument){.kind = SNUG_ARG_REAL, .real = v};
}
static snug_argument whole(int64_t v) {
    return (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = v};
}
static snug_argument list(const snug_argument *items, int n) {
    snug_argument a = {.kind = SNUG_ARG_LIST};
    a.list.items = items;
    a.list.n = n;
    return a;
}

static snug_tensor *rows(bench *b, int64_t n, int64_t columns) {
    snug_tensor *t;
    void *data;
    const snug_type type = {SNUG_F32, 2, {n, columns}};
    expect_ok(snug_tensor_fresh(b->r, &type, &t, &data, &b->err), &b->err);
    for (int64_t i = 0; i < n * columns; i++)
        ((float *)data)[i] = (float)i;
    return t;
}

static uint64_t misses(const bench *b) {
    snug_recorder_info info;
    snug_recorder_tell(b->r, &info);
    return info.n_misses;
}

/* One chain of calls whose numbers, limits and starts are others at each round. */
static double round_of(bench *b, snug_tensor *x, int k) {
    float v[2 * 3];
    const int64_t from = k % 4;
    snug_tensor *part =
        call(b, "tf.strided_slice",
             (const snug_argument[]){
                 of(x), list(&(snug_argument){.kind = SNUG_ARG_INTEGER, .integer = from}, 1),
                 list(&(snug_argument){.kind = SNUG_ARG_INTEGER, .integer = from + 2}, 1)},
             3);
    snug_tensor *sum = call(b, "tf.add", (const snug_argument[]){of(part), real(k % 3)}, 2);
    snug_tensor *power = call(b, "tf.pow", (const snug_argument[]){of(sum), real(1 + k % 2)}, 2);
    snug_tensor *limited = call(b, "tf.clip_by_value",
                                (const snug_argument[]){of(power), real(-k), real(1000 + k)}, 3);
    expect_ok(snug_tensor_read(limited, v, sizeof v, &b->err), &b->err);
    snug_tensor_drop(part);
    snug_tensor_drop(sum);
    snug_tensor_drop(power);
    snug_tensor_drop(limited);
    return (double)v[0];
}

static void test_numbers_and_starts_are_no_part_of_a_plan(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = rows(&b, 6, 3);
    assert_true(round_of(&b, x, 0) == 0);
    const uint64_t first = misses(&b);
    for (int k = 1; k < 30; k++) {
        const double want = pow(3.0 * (k % 4) + k % 3, 1 + k % 2);
        const double got = round_of(&b, x, k);
        if (fabs(got - want) > 1e-3)
            fail_msg("round %d gives %g instead of %g", k, got, want);
    }
    assert_int_equal(misses(&b), first);
    snug_tensor_drop(x);
    snug_recorder_destroy(b.r);
}

/* What is in its first element, of int32. */
static int32_t first_whole(bench *b, const char *name, const snug_argument *args, int n) {
    int32_t v[8] = {0};
    snug_tensor *out = call(b, name, args, n);
    const snug_type *const t = snug_tensor_type(out);
    expect_ok(snug_tensor_read(out, v, (size_t)sn_type_count(t) * sizeof *v, &b->err), &b->err);
    snug_tensor_drop(out);
    return v[0];
}

static void test_whole_numbers_beside_whole_tensors_keep_their_digits(void **state) {
    bench b = open_bench(state);
    const snug_type type = {SNUG_I32, 1, {1}};
    const snug_argument width = whole(1);
    snug_tensor *x;
    void *data;
    expect_ok(snug_tensor_fresh(b.r, &type, &x, &data, &b.err), &b.err);
    *(int32_t *)data = 1000000008; /* 1000000000 in a float32 */
    assert_int_equal(
        first_whole(&b, "keras.ops.mod", (const snug_argument[]){of(x), whole(1000000007)}, 2), 1);
    assert_int_equal(first_whole(&b, "keras.ops.floor_divide",
                                 (const snug_argument[]){of(x), whole(1000000009)}, 2),
                     0);
    assert_int_equal(
        first_whole(&b, "keras.ops.pad",
                    (const snug_argument[]){
                        of(x), list(&width, 1), {.kind = SNUG_ARG_NONE}, whole(16777217)},
                    4),
        16777217);
    snug_tensor_drop(x);
    snug_recorder_destroy(b.r);
}

static void test_refused_settings_of_shapes(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = rows(&b, 8, 6), *out;
    const snug_argument twice[3] = {whole(-1), whole(-1), whole(3)},
                        batch[3] = {{.kind = SNUG_ARG_NONE}, whole(-1), whole(3)},
                        far = real(1e300);
    const struct {
        const char *name;
        snug_argument arg;
        const char *piece;
    } cases[] = {{"keras.ops.reshape", list(twice, 3), "leaves extents open"},
                 {"keras.ops.reshape", list(batch, 3), "leaves extents open"},
                 {"tf.split", list(twice, 3), "one of them may be -1"},
                 {"keras.ops.sum", list(&far, 1), "whole numbers"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int function, n_out;
        assert_true(snug_function_find(cases[i].name, &function));
        assert_int_not_equal(snug_function_call(b.r, function,
                                                (const snug_argument[]){of(x), cases[i].arg}, 2,
                                                &out, 1, &n_out, &b.err),
                             SNUG_OK);
        expect_text(b.err.text, cases[i].piece);
    }
    snug_tensor_drop(x);
    snug_recorder_destroy(b.r);
}

static void test_arithmetic_on_shapes_is_known_in_a_trace(void **state) {
    bench b = open_bench(state);
    snug_trace *trace;
    snug_tensor *x, *shape, *rows_of_x, *twice, *flat;
    const snug_type type = {SNUG_F32, 3, {4, 2, 3}};
    expect_ok(snug_trace_begin(b.r, &type, 1, &x, &trace, &b.err), &b.err);
    shape = call(&b, "tf.shape", (const snug_argument[]){of(x)}, 1);
    const snug_argument zero = whole(0), one = whole(1);
    rows_of_x = call(&b, "tf.strided_slice",
                     (const snug_argument[]){of(shape),
                                             list(&zero, 1),
                                             list(&one, 1),
                                             {.kind = 0},
                                             whole(0),
                                             whole(0),
                                             whole(0),
                                             whole(0),
                                             whole(1)},
                     9);
    twice = call(&b, "tf.multiply", (const snug_argument[]){of(rows_of_x), whole(2)}, 2);
    assert_true(snug_tensor_is_ready(twice));
    const snug_argument dims[2] = {of(twice), whole(-1)};
    flat = call(&b, "tf.reshape", (const snug_argument[]){of(x), list(dims, 2)}, 2);
    assert_int_equal(snug_tensor_type(flat)->dims[0], 8);
    assert_int_equal(snug_tensor_type(flat)->dims[1], 3);
    expect_ok(snug_trace_end(trace, &flat, 1, &b.err), &b.err);
    snug_tensor *all[] = {x, shape, rows_of_x, twice, flat};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        snug_tensor_drop(all[i]);
    snug_trace_drop(trace);
    snug_recorder_destroy(b.r);
}

/* The number of rows of x, by its shape. */
static snug_tensor *rows_by_shape(bench *b, snug_tensor *x) {
    const snug_argument zero = whole(0);
    snug_tensor *const shape = call(b, "tf.shape", (const snug_argument[]){of(x)}, 1);
    snug_tensor *const n = call(b, "tf.gather", (const snug_argument[]){of(shape), zero}, 2);
    snug_tensor_drop(shape);
    return n;
}

/* Multiples of an open extent are known while the trace is made, as stand-ins; what may be none is
 * left to a run. */
static void test_multiples_of_open_extents_are_known_in_a_trace(void **state) {
    bench b = open_bench(state);
    const snug_open_axes axes = {.of = {1}};
    snug_trace *trace;
    snug_tensor *x;
    expect_ok(
        snug_trace_begin_open(b.r, &(snug_type){SNUG_F32, 2, {8, 3}}, &axes, 1, &x, &trace, &b.err),
        &b.err);
    snug_tensor *const n = rows_by_shape(&b, x);
    assert_true(snug_tensor_is_ready(n) && snug_tensor_is_open(n));
    const struct {
        const char *name;
        snug_argument other;
        bool known;
    } cases[] = {{"tf.add", whole(1), true},
                 {"tf.subtract", whole(2), true},
                 {"tf.multiply", whole(2), true},
                 {"tf.multiply", of(n), false},
                 {"tf.add", of(n), true},
                 {"tf.maximum", whole(1), false},
                 {"tf.bitwise.bitwise_and", whole(1), false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snug_tensor *const made =
            call(&b, cases[i].name, (const snug_argument[]){of(n), cases[i].other}, 2);
        if (snug_tensor_is_ready(made) != cases[i].known)
            fail_msg("%s, case %zu", cases[i].name, i);
        snug_tensor_drop(made);
    }
    expect_ok(snug_trace_end(trace, &x, 1, &b.err), &b.err);
    snug_tensor_drop(n);
    snug_tensor_drop(x);
    snug_trace_drop(trace);
    snug_recorder_destroy(b.r);
}

static void random_numbers(bench *b, const char *name, const snug_argument *args, int n, float *v,
                           size_t bytes) {
    snug_tensor *t = call(b, name, args, n);
    expect_ok(snug_tensor_read(t, v, bytes, &b->err), &b->err);
    snug_tensor_drop(t);
}

/* What a row asks its caller for, and whether it was built. */
typedef struct {
    sn_fn_call f; /* first: the door gets from it to the whole */
    int keys;
    bool built;
} asked;

static int64_t count_draw(sn_fn_call *f) {
    ((asked *)f)->keys++;
    return (int64_t)sn_build_key(f->b, "", 0).i;
}

static int64_t count_seeded(sn_fn_call *f, int64_t seed) {
    (void)seed;
    return count_draw(f);
}

/* An input of the graph: operands of a row, by slot 0. */
static sn_value operand(sn_builder *b, const snug_type *type) {
    sn_value v = SN_NO_VALUE;
    snug_error err;
    expect_ok(sn_graph_input(b->graph, "x", type, &v, &err), &err);
    return v;
}

/* Builds a row: a tensor of this type for tensors, of_whole for whole numbers, 0.5 for numbers; a
 * seed of two integers, or none. */
static void build_row(snug_engine *e, int function, const snug_type *type, snug_argument of_whole,
                      bool has_seed, asked *a) {
    static const sn_fn_door door = {.draw = count_draw, .draw_seeded = count_seeded};
    const snug_argument seed[2] = {whole(3), whole(9)};
    snug_argument args[SN_FN_MAX_ARGS];
    snug_error err;
    sn_graph *g;
    sn_fn_entry entry;
    int n = 0;
    for (; sn_signature_at(snug_function_at(function)->signature, n, &entry); n++) {
        args[n] = (snug_argument){.kind = SNUG_ARG_NONE};
        if (strncmp(entry.name, "seed:", 5) == 0)
            args[n] = has_seed ? list(seed, 2) : args[n];
        else if (!entry.has_default && strchr("TOWMQV", entry.kind))
            args[n] = (snug_argument){.kind = SNUG_ARG_SLOT, .integer = 0};
        else if (!entry.has_default && entry.kind == 'I')
            args[n] = of_whole;
        else if (!entry.has_default && entry.kind == 'N')
            args[n] = real(0.5);
    }
    expect_ok(sn_graph_create(e, &g, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value slot = operand(&b, type);
    a->keys = 0;
    sn_fn_begin(&a->f, sn_function_row(function), args, n);
    a->f.b = &b;
    a->f.door = &door;
    a->f.slot = &slot;
    a->f.n_slots = 1;
    sn_function_row(function)->build(&a->f);
    a->built = !sn_fn_failed(&a->f);
    sn_fn_end(&a->f, e);
    sn_graph_destroy(g);
}

/* A row that asks for a key says DRAWS, and the other way round; one that is SEEDED takes the key
 * of its seed. A map of tf.data and a trace would repeat the numbers of a row that says neither. */
static void test_rows_that_draw_say_so(void **state) {
    static const snug_type types[] = {{SNUG_F32, 2, {4, 3}}, {SNUG_F32, 3, {4, 4, 3}}};
    const snug_argument ones[3] = {whole(1), whole(1), whole(1)},
                        wholes[] = {whole(1), list(ones, 2), list(ones, 3)};
    static asked a;
    int draw = 0, seeded = 0;
    for (int i = 0; i < snug_function_count(); i++) {
        const snug_function_info *const info = snug_function_at(i);
        const sn_fn_call named = {.signature = info->signature};
        const unsigned says = info->traits & (SNUG_FUNCTION_DRAWS | SNUG_FUNCTION_SEEDED);
        bool asks = false, built = false;
        for (size_t k = 0; k < 12; k++) {
            build_row(*state, i, &types[k / 3 % 2], wholes[k % 3], k > 5, &a);
            asks = asks || (a.built && a.keys);
            built = built || a.built;
        }
        if (asks != (says == SNUG_FUNCTION_DRAWS) || (says && !built) ||
            (sn_fn_place(&named, "seed") >= 0) != (says != 0))
            fail_msg("%s: traits %u, %s", info->names, says, asks ? "draws" : "draws nothing");
        draw += says == SNUG_FUNCTION_DRAWS;
        seeded += says == SNUG_FUNCTION_SEEDED;
    }
    assert_true(draw >= 25 && seeded >= 12);
}

static void test_draws_differ_and_seeds_repeat_them(void **state) {
    bench b = open_bench(state);
    const snug_argument dims[2] = {whole(4), whole(5)}, seed[2] = {whole(3), whole(9)};
    const snug_argument shape = list(dims, 2), stateless[2] = {shape, list(seed, 2)};
    float one[20], two[20], three[20];
    random_numbers(&b, "tf.random.normal", &shape, 1, one, sizeof one);
    const uint64_t first = misses(&b);
    random_numbers(&b, "tf.random.normal", &shape, 1, two, sizeof two);
    assert_int_equal(misses(&b), first);
    assert_memory_not_equal(one, two, sizeof one);
    snug_recorder_seed(b.r, 0);
    random_numbers(&b, "tf.random.normal", &shape, 1, three, sizeof three);
    assert_memory_equal(one, three, sizeof one);
    random_numbers(&b, "tf.random.stateless_normal", stateless, 2, one, sizeof one);
    random_numbers(&b, "tf.random.stateless_normal", stateless, 2, two, sizeof two);
    assert_memory_equal(one, two, sizeof one);
    const snug_argument within[4] = {
        shape, whole(-2), whole(3), {.kind = SNUG_ARG_TEXT, .text = "int32"}};
    int32_t whole_numbers[20];
    random_numbers(&b, "tf.random.uniform", within, 4, (float *)whole_numbers,
                   sizeof whole_numbers);
    for (int i = 0; i < 20; i++)
        assert_in_range(whole_numbers[i] + 2, 0, 4);
    snug_recorder_destroy(b.r);
}

static void test_seeds_decide_what_happens_to_pictures(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = rows(&b, 4, 6), *picture;
    const snug_argument dims[3] = {whole(2), whole(4), whole(3)};
    const snug_argument shape[2] = {of(x), list(dims, 3)};
    picture = call(&b, "tf.reshape", shape, 2);
    const char *const names[2] = {"tf.image.stateless_random_brightness",
                                  "tf.image.stateless_random_hue"};
    float one[24], two[24], three[24];
    for (int i = 0; i < 2; i++) {
        const snug_argument seed[2] = {whole(3), whole(9)}, other[2] = {whole(3), whole(8)};
        const snug_argument most = {.kind = SNUG_ARG_REAL, .real = 0.4};
        const snug_argument args[3] = {of(picture), most, list(seed, 2)};
        const snug_argument others[3] = {of(picture), most, list(other, 2)};
        random_numbers(&b, names[i], args, 3, one, sizeof one);
        random_numbers(&b, names[i], args, 3, two, sizeof two);
        random_numbers(&b, names[i], others, 3, three, sizeof three);
        assert_memory_equal(one, two, sizeof one);
        assert_memory_not_equal(one, three, sizeof one);
    }
    snug_tensor_drop(picture);
    snug_tensor_drop(x);
    snug_recorder_destroy(b.r);
}

static void test_a_shuffle_keeps_every_row(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = rows(&b, 8, 2);
    float v[16];
    uint32_t seen = 0;
    const snug_argument a = of(x);
    random_numbers(&b, "tf.random.shuffle", &a, 1, v, sizeof v);
    for (int i = 0; i < 8; i++) {
        assert_true(v[2 * i + 1] == v[2 * i] + 1);
        seen |= 1u << ((int)v[2 * i] / 2);
    }
    assert_int_equal(seen, 255);
    snug_tensor_drop(x);
    snug_recorder_destroy(b.r);
}

static double mean_of(bench *b, const char *name, const snug_argument *args, int n) {
    static float v[4000];
    double sum = 0;
    random_numbers(b, name, args, n, v, sizeof v);
    for (int i = 0; i < 4000; i++)
        sum += (double)v[i];
    return sum / 4000;
}

static void test_gamma_and_poisson_numbers_have_their_means(void **state) {
    bench b = open_bench(state);
    const snug_argument n = whole(4000), shape = list(&n, 1);
    assert_true(fabs(mean_of(&b, "tf.random.gamma", (const snug_argument[]){shape, real(2)}, 2) -
                     2) < 0.15);
    assert_true(
        fabs(mean_of(&b, "tf.random.gamma", (const snug_argument[]){shape, real(0.5), real(2)}, 3) -
             0.25) < 0.05);
    assert_true(fabs(mean_of(&b, "tf.random.poisson", (const snug_argument[]){shape, real(3)}, 2) -
                     3) < 0.15);
    snug_recorder_destroy(b.r);
}

static void test_a_random_crop_is_a_part_of_the_tensor(void **state) {
    bench b = open_bench(state);
    snug_tensor *x = rows(&b, 8, 6);
    const snug_argument dims[2] = {whole(3), whole(2)}, args[2] = {of(x), list(dims, 2)};
    bool moved = false;
    for (int k = 0; k < 6; k++) {
        float v[6];
        random_numbers(&b, "tf.image.random_crop", args, 2, v, sizeof v);
        for (int i = 0; i < 6; i++)
            assert_true(v[i] == v[0] + (float)(i / 2 * 6 + i % 2));
        moved = moved || v[0] > 0;
    }
    assert_true(moved);
    snug_tensor_drop(x);
    snug_recorder_destroy(b.r);
}

/* --- want of memory --------------------------------------------------------------------------- */
static snug_status try_calls(snug_recorder *r, snug_tensor *x, snug_error *err) {
    static const char *const names[] = {"tf.reduce_mean", "tf.nn.softmax", "tf.shape", "tf.where"};
    const snug_argument one = of(x);
    snug_tensor *out[4];
    int n;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int function;
        assert_true(snug_function_find(names[i], &function));
        SNUG_TRY(snug_function_call(r, function, &one, 1, out, 4, &n, err));
        const snug_status status = snug_tensor_is_ready(out[0]) ? SNUG_OK : snug_sync(r, err);
        snug_tensor_drop(out[0]);
        SNUG_TRY(status);
    }
    const snug_argument items[3] = {real(1), real(2), real(3)}, row = list(items, 3);
    const snug_argument several[2] = {of(x), row};
    int function;
    assert_true(snug_function_find("tf.add", &function));
    SNUG_TRY(snug_function_call(r, function, several, 2, out, 4, &n, err));
    snug_tensor_drop(out[0]);
    assert_true(snug_function_find("tf.stack", &function));
    const snug_argument same[2] = {of(x), of(x)}, stacked[2] = {list(same, 2), whole(1)};
    SNUG_TRY(snug_function_call(r, function, stacked, 2, out, 4, &n, err));
    const snug_status status = snug_sync(r, err);
    snug_tensor_drop(out[0]);
    return status;
}

static snug_status many_calls(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_tensor *x;
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    const float v[6] = {1, 2, 0, 4, 5, 6};
    snug_status status = snug_tensor_copy(r, &(snug_type){SNUG_F32, 2, {2, 3}}, v, &x, err);
    if (status == SNUG_OK) {
        status = try_calls(r, x, err);
        snug_tensor_drop(x);
    }
    snug_recorder_destroy(r);
    return status;
}

static void test_calls_survive_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(many_calls, NULL);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_numbers_and_starts_are_no_part_of_a_plan),
        engine_test(test_whole_numbers_beside_whole_tensors_keep_their_digits),
        engine_test(test_refused_settings_of_shapes),
        engine_test(test_arithmetic_on_shapes_is_known_in_a_trace),
        engine_test(test_multiples_of_open_extents_are_known_in_a_trace),
        engine_test(test_rows_that_draw_say_so),
        engine_test(test_draws_differ_and_seeds_repeat_them),
        engine_test(test_seeds_decide_what_happens_to_pictures),
        engine_test(test_a_shuffle_keeps_every_row),
        engine_test(test_gamma_and_poisson_numbers_have_their_means),
        engine_test(test_a_random_crop_is_a_part_of_the_tensor),
        cmocka_unit_test(test_calls_survive_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
