/* test_program.c: functions that pipelines repeat: what is known of them before the first element,
 * what they give for each, with any number of workers, and that nothing is left behind. */
#include "base/status.h"
#include "memory/engine.h"
#include "support/streams.h"

#include <snug/program.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) expect_ok(call, &err)

static int row(const char *name) {
    int found = -1;
    assert_true(snug_function_find(name, &found));
    return found;
}

static snug_argument slot(int n) {
    return (snug_argument){.kind = SNUG_ARG_SLOT, .integer = n};
}

static snug_argument whole(int64_t n) {
    return (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = n};
}

static snug_argument real(double v) {
    return (snug_argument){.kind = SNUG_ARG_REAL, .real = v};
}

static int call(snug_program *p, const char *name, const snug_argument *args, int n) {
    int made = -1, n_out = 0;
    snug_error err = {0};
    TRY(snug_program_call(p, row(name), args, n, &made, 1, &n_out, &err));
    assert_int_equal(n_out, 1);
    return made;
}
#define CALL(p, name, ...)                                                                         \
    call(p, name, (const snug_argument[]){__VA_ARGS__},                                            \
         (int)(sizeof((const snug_argument[]){__VA_ARGS__}) / sizeof(snug_argument)))

static snug_program *program(snug_engine *e, const snug_spec *spec) {
    snug_program *p;
    snug_error err = {0};
    TRY(snug_program_create(e, spec, 7, &p, &err));
    return p;
}

/* The program gives these slots; it is used up. */
static snug_dataset *mapped(snug_dataset *d, snug_program *p, const int *slots, int n,
                            int workers) {
    snug_error err = {0};
    snug_mapper f;
    TRY(snug_program_give(p, slots, n, &err));
    snug_program_mapper(p, &f);
    snug_program_drop(p);
    TRY(snug_dataset_map(d, &f, &(snug_map_options){.workers = workers}, &d, &err));
    return d;
}

static snug_dataset *range(snug_engine *e, int64_t n) {
    snug_dataset *d;
    snug_error err = {0};
    TRY(snug_dataset_range(e, 0, n, 1, &d, &err));
    return d;
}

/* Element k has k + 1 numbers. */
typedef struct {
    snug_engine *engine;
    int k;
} ragged_cursor;
static snug_status ragged_open(void *ctx, void **cursor, snug_error *err) {
    (void)err;
    ragged_cursor *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->engine = ctx;
    *cursor = c;
    return SNUG_OK;
}
static snug_status ragged_next(void *cursor, snug_element *out, snug_error *err) {
    ragged_cursor *c = cursor;
    if (c->k == 4)
        return SNUG_E_END;
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {c->k + 1}};
    const snug_status status = snug_datum_create(c->engine, &type, &out->part[0], err);
    if (status != SNUG_OK)
        return status;
    for (int i = 0; i <= c->k; i++)
        ((float *)out->part[0].data)[i] = (float)(10 * c->k + i);
    out->n = 1;
    c->k++;
    return SNUG_OK;
}
static snug_dataset *ragged(snug_engine *e) {
    snug_dataset *d;
    snug_error err = {0};
    const snug_generator g = {
        .ctx = e,
        .spec = {.n = 1, .type = {{.dtype = SNUG_F32, .rank = 1, .dims = {-1}}}},
        .cardinality = SNUG_UNKNOWN,
        .open = ragged_open,
        .next = ragged_next,
        .close = free};
    TRY(snug_dataset_from_generator(e, &g, &d, &err));
    return d;
}

static void expect_slot(const snug_program *p, int n, const char *text) {
    snug_type type;
    int is_text;
    char is[200];
    snug_program_slot(p, n, &type, &is_text);
    if (type.rank < 0)
        snprintf(is, sizeof is, "%s ?", snug_dtype_name(type.dtype));
    else
        snug_type_print(&type, is, sizeof is);
    assert_string_equal(is, text);
}

static void test_calls_are_repeated_for_each_element(void **state) {
    snug_engine *e = *state;
    snug_dataset *d = range(e, 4);
    snug_program *p = program(e, snug_dataset_spec(d));
    const int square = CALL(p, "tf.multiply", slot(0), slot(0));
    const int both[2] = {CALL(p, "tf.add", slot(square), whole(1)), 0};
    assert_string_equal(sn_stream_text(mapped(d, p, both, 2, 0)), "(1,0) (2,1) (5,2) (10,3)");
}

static void test_extents_that_differ_are_unknown_and_work(void **state) {
    snug_engine *e = *state;
    snug_dataset *d = ragged(e);
    snug_program *p = program(e, snug_dataset_spec(d));
    const int half = CALL(p, "tf.multiply", slot(0), real(0.5));
    const snug_argument list[] = {slot(0), slot(half)};
    const int pair = CALL(p, "tf.stack", {.kind = SNUG_ARG_LIST, .list = {list, 2}});
    const int sum = CALL(p, "tf.reduce_sum", slot(pair), whole(1));
    expect_slot(p, half, "f32[?]");
    expect_slot(p, pair, "f32[2,?]");
    expect_slot(p, sum, "f32[2]");
    assert_string_equal(sn_stream_text(mapped(d, p, &sum, 1, 0)),
                        "[0,0] [21,10.5] [63,31.5] [126,63]");
}

static void test_sizes_come_from_the_element(void **state) {
    snug_engine *e = *state;
    snug_dataset *d = ragged(e);
    snug_program *p = program(e, snug_dataset_spec(d));
    const int shape = CALL(p, "tf.shape", slot(0));
    const snug_argument begin[] = {whole(0)}, end[] = {whole(1)};
    const int n =
        CALL(p, "tf.strided_slice", slot(shape), {.kind = SNUG_ARG_LIST, .list = {begin, 1}},
             {.kind = SNUG_ARG_LIST, .list = {end, 1}}, {.kind = SNUG_ARG_NONE}, whole(0), whole(0),
             whole(0), whole(0), whole(1));
    const int twice = CALL(p, "tf.multiply", slot(n), whole(2));
    const snug_argument dims[] = {slot(twice), whole(1)};
    const int made = CALL(p, "tf.zeros", {.kind = SNUG_ARG_LIST, .list = {dims, 2}});
    expect_slot(p, twice, "i32[]");
    expect_slot(p, made, "f32[?,1]");
    const int flat = CALL(p, "tf.reshape", slot(made), whole(-1));
    assert_string_equal(sn_stream_text(mapped(d, p, &flat, 1, 2)),
                        "[0,0] [0,0,0,0] [0,0,0,0,0,0] [0,0,0,0,0,0,0,0]");
}

static void test_what_cannot_be_is_refused_at_once(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const snug_spec spec = {.n = 3,
                            .type = {{SNUG_F32, 1, {3}}, {SNUG_F32, 1, {4}}, {SNUG_OPAQUE, 0, {0}}},
                            .is_text = {0, 0, 1}};
    snug_program *p = program(e, &spec);
    int made, n;
    const snug_argument apart[] = {slot(0), slot(1)}, text[] = {slot(0), slot(2)},
                        none[] = {slot(0), slot(9)};
    expect_status(snug_program_call(p, row("tf.add"), apart, 2, &made, 1, &n, &err), SNUG_E_SHAPE,
                  &err);
    expect_status(snug_program_call(p, row("tf.add"), text, 2, &made, 1, &n, &err), SNUG_E_SHAPE,
                  &err);
    expect_status(snug_program_call(p, row("tf.add"), none, 2, &made, 1, &n, &err), SNUG_E_INVALID,
                  &err);
    TRY(snug_program_give(p, (int[]){0}, 1, &err));
    expect_status(snug_program_call(p, row("tf.add"), apart, 2, &made, 1, &n, &err), SNUG_E_INVALID,
                  &err);
    snug_program_drop(p);
}

/* Where no attempt can be made: extents that do not fit each other, borders that are values. */
static void test_shapes_that_follow_from_operands_are_known(void **state) {
    snug_engine *e = *state;
    const snug_spec spec = {
        .n = 3, .type = {{SNUG_F32, 2, {-1, 3}}, {SNUG_F32, 1, {4}}, {SNUG_I32, 2, {2, 2}}}};
    snug_program *p = program(e, &spec);
    const int row_of = CALL(p, "tf.reshape", slot(0), whole(-1));
    expect_slot(p, CALL(p, "tf.add", slot(row_of), slot(1)), "f32[4]");
    expect_slot(p, CALL(p, "tf.pad", slot(0), slot(2)), "f32[?,?]");
    const snug_argument dims[] = {whole(5), whole(-1)};
    const int unknown = CALL(p, "tf.tile", slot(0), slot(2));
    expect_slot(p, unknown, "f32 ?");
    expect_slot(
        p, CALL(p, "keras.ops.reshape", slot(unknown), {.kind = SNUG_ARG_LIST, .list = {dims, 2}}),
        "f32[5,?]");
    snug_program_drop(p);
}

static void test_a_slot_can_be_told_its_shape(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const snug_spec spec = {.n = 1, .type = {{SNUG_U8, -1, {0}}}};
    snug_program *p = program(e, &spec);
    expect_slot(p, 0, "u8 ?");
    TRY(snug_program_refine(p, 0, &(snug_type){.rank = 2, .dims = {-1, 3}}, &err));
    expect_slot(p, 0, "u8[?,3]");
    expect_status(snug_program_refine(p, 0, &(snug_type){.rank = 2, .dims = {-1, 4}}, &err),
                  SNUG_E_SHAPE, &err);
    const snug_argument dims[] = {whole(5), whole(3)};
    const int fixed = CALL(p, "tf.reshape", slot(0), {.kind = SNUG_ARG_LIST, .list = {dims, 2}});
    expect_slot(p, fixed, "u8[5,3]");
    snug_program_drop(p);
}

static snug_dataset *drawn(snug_engine *e, int workers) {
    snug_dataset *d = range(e, 24);
    snug_program *p = program(e, snug_dataset_spec(d));
    const snug_argument dims[] = {whole(2)};
    const int a = CALL(p, "tf.random.uniform", {.kind = SNUG_ARG_LIST, .list = {dims, 1}});
    const int b = CALL(p, "tf.random.uniform", {.kind = SNUG_ARG_LIST, .list = {dims, 1}});
    return mapped(d, p, (int[]){a, b}, 2, workers);
}

static void test_draws_do_not_depend_on_workers(void **state) {
    snug_engine *e = *state;
    char *one = strdup(sn_stream_text(drawn(e, 0)));
    assert_non_null(one);
    for (int workers = 1; workers <= 8; workers += workers < 3 ? 1 : 5)
        assert_string_equal(sn_stream_text(drawn(e, workers)), one);
    /* Elements differ from each other, and so do the two draws of one. */
    char *second = strchr(one, ' ');
    assert_non_null(second);
    assert_int_not_equal(strncmp(one, second + 1, 8), 0);
    assert_int_not_equal(strncmp(one + 1, strchr(one, ']') + 2, 6), 0);
    free(one);
}

static const snug_program_layer noise = {"GaussianNoise", "{\"stddev\": 1, \"seed\": 3}", 1, 0};

/* Layers of equal seeds draw alike; the same one a second time does not. */
static snug_dataset *noisy(snug_engine *e, int workers) {
    snug_error err = {0};
    snug_dataset *d = range(e, 12);
    snug_program *p = program(e, snug_dataset_spec(d));
    const snug_program_layer again = {noise.class_name, noise.config_json, 1, 1},
                             free_one = {noise.class_name, "{\"stddev\": 1}", 1, 0};
    int made[4];
    TRY(snug_program_add_layer(p, &noise, 0, &made[0], &err));
    TRY(snug_program_add_layer(p, &noise, 0, &made[1], &err));
    TRY(snug_program_add_layer(p, &again, 0, &made[2], &err));
    TRY(snug_program_add_layer(p, &free_one, 0, &made[3], &err));
    return mapped(d, p, made, 4, workers);
}

static void test_layers_draw_by_their_seed_and_the_element(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    char *one = strdup(sn_stream_text(noisy(e, 0)));
    assert_non_null(one);
    for (int workers = 1; workers <= 3; workers += 2)
        assert_string_equal(sn_stream_text(noisy(e, workers)), one);
    float a, b, c, f;
    assert_int_equal(sscanf(one, "(%f,%f,%f,%f)", &a, &b, &c, &f), 4);
    assert_true(a == b && a != c && a != f && c != f);
    free(one);
    snug_dataset *d = range(e, 1);
    snug_program *p = program(e, snug_dataset_spec(d));
    int made;
    const snug_program_layer dense = {"PReLU", "{}", 0, 0};
    const snug_argument dims[] = {whole(2), whole(2)};
    const int x = CALL(p, "tf.zeros", {.kind = SNUG_ARG_LIST, .list = {dims, 2}});
    expect_status(snug_program_add_layer(p, &dense, x, &made, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "no place for the weights of PReLU");
    snug_program_drop(p);
    snug_dataset_drop(d);
}

static void test_constants_are_shared_by_workers(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_dataset *d = range(e, 5);
    snug_program *p = program(e, snug_dataset_spec(d));
    snug_datum table;
    int held;
    TRY(snug_datum_create(e, &(snug_type){SNUG_I64, 1, {5}}, &table, &err));
    memcpy(table.data, (int64_t[]){50, 40, 30, 20, 10}, 40);
    TRY(snug_program_constant(p, &table, &held, &err));
    snug_datum_drop(&table);
    const int found = CALL(p, "tf.gather", slot(held), slot(0));
    assert_string_equal(sn_stream_text(mapped(d, p, &found, 1, 3)), "50 40 30 20 10");
}

static void test_a_failure_names_its_element_only(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_element got = {.n = 0};
    snug_iterator *it;
    snug_dataset *d = ragged(e);
    snug_program *p = program(e, snug_dataset_spec(d));
    const snug_argument dims[] = {whole(2), whole(-1)};
    const int pairs = CALL(p, "tf.reshape", slot(0), {.kind = SNUG_ARG_LIST, .list = {dims, 2}});
    d = mapped(d, p, &pairs, 1, 0);
    TRY(snug_iterator_create(d, &it, &err));
    expect_status(snug_iterator_next(it, &got, &err), SNUG_E_SHAPE, &err);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
}

/* Writes a program down, runs it for two elements, lets go of all; the first failure, or
 * SNUG_OK. */
static snug_status all_of_it(snug_engine *e, snug_error *err) {
    snug_dataset *d;
    snug_program *p;
    snug_mapper f;
    snug_iterator *it;
    int made, n_out;
    const snug_argument scale[] = {slot(0), slot(0)}, shape[] = {whole(3), whole(-1)};
    SNUG_TRY(snug_dataset_range(e, 0, 2, 1, &d, err));
    snug_status status = snug_program_create(e, snug_dataset_spec(d), 7, &p, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    status = snug_program_call(p, row("tf.multiply"), scale, 2, &made, 1, &n_out, err);
    const snug_argument fill[] = {{.kind = SNUG_ARG_LIST, .list = {shape, 1}}, slot(made)};
    if (status == SNUG_OK)
        status = snug_program_call(p, row("tf.fill"), fill, 2, &made, 1, &n_out, err);
    if (status == SNUG_OK)
        status = snug_program_add_layer(p, &noise, made, &made, err);
    if (status == SNUG_OK)
        status = snug_program_give(p, &made, 1, err);
    if (status != SNUG_OK) {
        snug_program_drop(p);
        snug_dataset_drop(d);
        return status;
    }
    snug_program_mapper(p, &f);
    snug_program_drop(p);
    status = snug_dataset_map(d, &f, &(snug_map_options){.workers = 0}, &d, err);
    if (status != SNUG_OK) {
        f.release(f.ctx); /* it is the caller's still */
        return status;
    }
    status = snug_iterator_create(d, &it, err);
    for (int i = 0; i < 2 && status == SNUG_OK; i++) {
        snug_element got = {.n = 0};
        status = snug_iterator_next(it, &got, err);
        if (status == SNUG_OK)
            snug_element_drop(&got);
        if (status != SNUG_OK || i == 1)
            snug_iterator_destroy(it);
    }
    snug_dataset_drop(d);
    return status;
}

static void test_any_request_of_memory_may_fail(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    for (int64_t n = 0;; n++) {
        sn_fault_memory(e, n, false);
        const snug_status status = all_of_it(e, &err);
        const bool fired = sn_fault_fired(e);
        sn_fault_expect_told(e, "all_of_it", status);
        sn_fault_memory(e, -1, false);
        assert_int_equal(snug_engine_bytes(e), 0);
        if (!fired) {
            expect_ok(status, &err);
            assert_true(n > 20);
            return;
        }
        assert_true(status == SNUG_OK || status == SNUG_E_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_calls_are_repeated_for_each_element),
        engine_test(test_extents_that_differ_are_unknown_and_work),
        engine_test(test_sizes_come_from_the_element),
        engine_test(test_what_cannot_be_is_refused_at_once),
        engine_test(test_shapes_that_follow_from_operands_are_known),
        engine_test(test_a_slot_can_be_told_its_shape),
        engine_test(test_draws_do_not_depend_on_workers),
        engine_test(test_layers_draw_by_their_seed_and_the_element),
        engine_test(test_constants_are_shared_by_workers),
        engine_test(test_a_failure_names_its_element_only),
        engine_test(test_any_request_of_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
