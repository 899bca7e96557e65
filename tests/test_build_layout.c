/* test_build_layout.c: what graph/build_layout.c composes, by values: every helper on the numbers
 * 0, 1, 2, ... of a small value. */
#include "support/eval.h"
#include "support/support.h"

#include "graph/build.h"

#include <string.h>

/* A graph over x (f64) and indices (i32), evaluated on counting numbers and on `at`. */
typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_builder b;
    sn_value x, at;
} world;

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

static void begin(world *w, snug_type x, snug_type at) {
    snug_error err;
    w->engine = sn_test_engine(0);
    expect_ok(sn_graph_create(w->engine, &w->graph, &err), &err);
    expect_ok(sn_graph_input(w->graph, "x", &x, &w->x, &err), &err);
    expect_ok(sn_graph_input(w->graph, "at", &at, &w->at, &err), &err);
    w->b = sn_builder_on(w->graph);
}

static void end(world *w) {
    sn_graph_destroy(w->graph);
    sn_test_engine_end(w->engine);
}

/* y has this shape and these values. */
static void expect(world *w, sn_value y, const int64_t *dims, int rank, const double *at,
                   const double *want) {
    snug_error err;
    expect_ok(sn_builder_done(&w->b, &err), &err);
    const snug_type t = *sn_graph_type(w->graph, y);
    size_t n = 1;
    assert_int_equal(t.rank, rank);
    for (int k = 0; k < rank; k++) {
        assert_int_equal(t.dims[k], dims[k]);
        n *= (size_t)dims[k];
    }
    expect_ok(sn_graph_output(w->graph, "y", y, &err), &err);
    sn_test_arrays in = sn_test_inputs(w->graph, 0, 1);
    for (size_t i = 0; i < in.count[0]; i++)
        in.data[0][i] = (double)i;
    for (size_t i = 0; i < in.count[1]; i++)
        in.data[1][i] = at ? at[i] : 0;
    sn_test_arrays out = sn_test_eval(w->engine, w->graph, &in);
    for (size_t i = 0; i < n; i++)
        if (out.data[0][i] != want[i])
            fail_msg("element %zu is %g, not %g", i, out.data[0][i], want[i]);
    sn_test_arrays_clear(&in);
    sn_test_arrays_clear(&out);
    end(w);
}

static const snug_type six = {SNUG_F64, 2, {2, 3}}, none = {SNUG_I32, 1, {0}};

#define VALUES(...)                                                                                \
    (const double[]) {                                                                             \
        __VA_ARGS__                                                                                \
    }

static void test_slice_goes_backwards(void **state) {
    (void)state;
    world w;
    begin(&w, (snug_type){SNUG_F64, 1, {7}}, none);
    expect(&w, sn_build_slice(&w.b, w.x, DIMS(5), DIMS(3), DIMS(-2)), DIMS(3), 1, NULL,
           VALUES(5, 3, 1));
}

static void test_flip_turns_the_axes_it_is_told(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    expect(&w, sn_build_flip(&w.b, w.x, 2), DIMS(2, 3), 2, NULL, VALUES(2, 1, 0, 5, 4, 3));
    begin(&w, six, none);
    expect(&w, sn_build_flip(&w.b, w.x, 3), DIMS(2, 3), 2, NULL, VALUES(5, 4, 3, 2, 1, 0));
}

static void test_roll_brings_the_end_to_the_front(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    expect(&w, sn_build_roll(&w.b, w.x, -1, 1), DIMS(2, 3), 2, NULL, VALUES(2, 0, 1, 5, 3, 4));
    begin(&w, six, none);
    expect(&w, sn_build_roll(&w.b, w.x, 1, -7), DIMS(2, 3), 2, NULL, VALUES(1, 2, 0, 4, 5, 3));
    begin(&w, six, none);
    assert_int_equal(sn_build_roll(&w.b, w.x, 0, 4).i, w.x.i);
    end(&w);
}

static void test_repeat_repeats_elements_and_tile_the_axis(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    expect(&w, sn_build_repeat(&w.b, w.x, DIMS(1, 2)), DIMS(2, 6), 2, NULL,
           VALUES(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
    begin(&w, six, none);
    expect(&w, sn_build_tile(&w.b, w.x, DIMS(2, 2)), DIMS(4, 6), 2, NULL,
           VALUES(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
    begin(&w, six, none);
    expect(&w, sn_build_repeat(&w.b, w.x, DIMS(0, 1)), DIMS(0, 3), 2, NULL, NULL);
}

static void test_stack_makes_an_axis(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    const sn_value pair[2] = {w.x, sn_build_neg(&w.b, w.x)};
    expect(&w, sn_build_stack(&w.b, pair, 2, 1), DIMS(2, 2, 3), 3, NULL,
           VALUES(0, 1, 2, -0.0, -1, -2, 3, 4, 5, -3, -4, -5));
    begin(&w, six, none);
    const sn_value same[2] = {w.x, w.x};
    expect(&w, sn_build_stack(&w.b, same, 2, -1), DIMS(2, 3, 2), 3, NULL,
           VALUES(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
}

static void test_axes_of_extent_one_come_and_go(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    const sn_value tall = sn_build_expand_dims(&w.b, w.x, -1);
    assert_int_equal(sn_graph_type(w.graph, tall)->dims[2], 1);
    expect(&w, sn_build_swapaxes(&w.b, sn_build_squeeze(&w.b, tall, 2), 0, -1), DIMS(3, 2), 2, NULL,
           VALUES(0, 3, 1, 4, 2, 5));
    begin(&w, six, none);
    snug_error err;
    sn_build_squeeze(&w.b, w.x, 1);
    expect_status(sn_builder_done(&w.b, &err), SNUG_E_SHAPE, &err);
    end(&w);
}

static void test_borders_are_constant_or_mirrors(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    expect(&w, sn_build_pad_mirror(&w.b, w.x, DIMS(0, 2), DIMS(1, 1), false), DIMS(3, 6), 2, NULL,
           VALUES(2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1));
    begin(&w, six, none);
    expect(&w, sn_build_pad_mirror(&w.b, w.x, DIMS(0, 2), DIMS(1, 1), true), DIMS(3, 6), 2, NULL,
           VALUES(1, 0, 0, 1, 2, 2, 4, 3, 3, 4, 5, 5, 4, 3, 3, 4, 5, 5));
    begin(&w, six, none);
    expect(&w, sn_build_pad(&w.b, w.x, DIMS(0, 1), DIMS(0, 0), 9), DIMS(2, 4), 2, NULL,
           VALUES(9, 0, 1, 2, 9, 3, 4, 5));
    begin(&w, six, none);
    snug_error err;
    sn_build_pad_mirror(&w.b, w.x, DIMS(0, 3), DIMS(0, 0),
                        false); /* there are two beside the edge */
    expect_status(sn_builder_done(&w.b, &err), SNUG_E_SHAPE, &err);
    end(&w);
}

static void test_indices_take_along_any_axis(void **state) {
    (void)state;
    world w;
    const snug_type along = {SNUG_I32, 2, {2, 2}}, down = {SNUG_I32, 2, {1, 3}};
    begin(&w, six, along);
    expect(&w, sn_build_take_along_axis(&w.b, w.x, w.at, -1), DIMS(2, 2), 2, VALUES(2, 0, 1, 1),
           VALUES(2, 0, 4, 4));
    begin(&w, six, down);
    expect(&w, sn_build_take_along_axis(&w.b, w.x, w.at, 0), DIMS(1, 3), 2, VALUES(1, 0, 1),
           VALUES(3, 1, 5));
    begin(&w, six, along);
    expect(&w, sn_build_gather_nd(&w.b, w.x, w.at, 0), DIMS(2), 1, VALUES(1, 2, 0, 1),
           VALUES(5, 1));
}

static void test_one_hot_has_its_axis_and_values(void **state) {
    (void)state;
    world w;
    const sn_one_hot spec = {.depth = 3, .dtype = SNUG_F64, .axis = 0, .on = 2, .off = -1};
    begin(&w, six, (snug_type){SNUG_I32, 1, {2}});
    expect(&w, sn_build_one_hot(&w.b, w.at, &spec), DIMS(3, 2), 2, VALUES(2, 0),
           VALUES(-1, 2, -1, -1, 2, -1));
}

static void test_band_keeps_a_triangle(void **state) {
    (void)state;
    world w;
    begin(&w, six, none);
    expect(&w, sn_build_band(&w.b, w.x, INT32_MIN, 0), DIMS(2, 3), 2, NULL,
           VALUES(0, 0, 0, 3, 4, 0));
    begin(&w, six, none);
    expect(&w, sn_build_band(&w.b, w.x, 1, INT32_MAX), DIMS(2, 3), 2, NULL,
           VALUES(0, 1, 2, 0, 0, 5));
}

/* Layers are inferred before the batch is known. */
static void test_the_batch_may_be_unknown(void **state) {
    (void)state;
    world w;
    snug_error err;
    begin(&w, (snug_type){SNUG_F64, 3, {-1, 2, 3}}, none);
    const sn_value y = sn_build_repeat(&w.b, sn_build_flip(&w.b, w.x, 2), DIMS(1, 2, 2));
    expect_ok(sn_builder_done(&w.b, &err), &err);
    const snug_type *t = sn_graph_type(w.graph, y);
    assert_true(t->rank == 3 && t->dims[0] == -1 && t->dims[1] == 4 && t->dims[2] == 6);
    sn_build_flip(&w.b, w.x, 1);
    expect_status(sn_builder_done(&w.b, &err), SNUG_E_SHAPE, &err);
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slice_goes_backwards),
        cmocka_unit_test(test_flip_turns_the_axes_it_is_told),
        cmocka_unit_test(test_roll_brings_the_end_to_the_front),
        cmocka_unit_test(test_repeat_repeats_elements_and_tile_the_axis),
        cmocka_unit_test(test_stack_makes_an_axis),
        cmocka_unit_test(test_axes_of_extent_one_come_and_go),
        cmocka_unit_test(test_borders_are_constant_or_mirrors),
        cmocka_unit_test(test_indices_take_along_any_axis),
        cmocka_unit_test(test_one_hot_has_its_axis_and_values),
        cmocka_unit_test(test_band_keeps_a_triangle),
        cmocka_unit_test(test_the_batch_may_be_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
