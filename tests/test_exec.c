/* test_exec.c: state, executor and sessions on plans the planner made. Byte limit: each test below
 * 64 KiB of tensors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/inside.h"
#include "support/arena.h"
#include "support/world.h"

/* --- state ---------------------------------------------------------------------------------- */

static size_t category_bytes(const snug_engine *e, const char *category, const char *owner) {
    snug_memory_row rows[64];
    const size_t n = snug_engine_memory(e, rows, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (strcmp(rows[i].category, category) == 0 && strcmp(rows[i].owner, owner) == 0)
            return rows[i].bytes;
    return 0;
}

static void test_state_homes_are_filled_from_recipes(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    const snug_type type = world_type(SNUG_F32, 1, (int64_t[]){100});
    world_variable(&w, "a", &type, 1.5);
    world_variable(&w, "b", &type, -2);
    world_state(&w);
    snug_view view;
    world_ok(&w, sn_state_view(w.state, 1, &view, &w.err));
    assert_int_equal(view.bytes, 400);
    for (int i = 0; i < 100; i++)
        assert_true(((float *)view.data)[i] == -2.0f);
    world_close(&w);
}

static void test_state_books_each_variable_under_its_name(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_ok(&w, sn_state_create(w.engine, &w.state, &w.err));
    const snug_type type = world_type(SNUG_F32, 1, (int64_t[]){3000});
    uint32_t id;
    world_ok(&w,
             sn_state_add(w.state, &(sn_home){.name = "dense/kernel", .type = type}, &id, &w.err));
    world_ok(&w,
             sn_state_add(w.state, &(sn_home){.name = "dense/kernel/m", .type = type, .slot = true},
                          &id, &w.err));
    assert_int_equal(category_bytes(w.engine, "weights", "dense/kernel"), 0);
    snug_view view;
    world_ok(&w, sn_state_view(w.state, 0, &view, &w.err));
    assert_true(category_bytes(w.engine, "weights", "dense/kernel") >= 12000);
    assert_int_equal(category_bytes(w.engine, "optimizer", "dense/kernel/m"), 0);
    world_ok(&w, sn_state_view(w.state, 1, &view, &w.err));
    assert_true(category_bytes(w.engine, "optimizer", "dense/kernel/m") >= 12000);
    world_close(&w);
}

static void test_state_view_keeps_what_is_there(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    const snug_type type = world_type(SNUG_F32, 1, (int64_t[]){4});
    world_variable(&w, "a", &type, 1);
    world_state(&w);
    snug_view first, again;
    world_ok(&w, sn_state_view(w.state, 0, &first, &w.err));
    ((float *)first.data)[0] = 7;
    world_ok(&w, sn_state_view(w.state, 0, &again, &w.err));
    assert_ptr_equal(first.data, again.data);
    assert_true(((float *)again.data)[0] == 7.0f);
    world_close(&w);
}

static void test_state_refuses_a_name_twice(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_ok(&w, sn_state_create(w.engine, &w.state, &w.err));
    const sn_home home = {.name = "a", .type = {.dtype = SNUG_F32}};
    uint32_t id = 99;
    world_ok(&w, sn_state_add(w.state, &home, &id, &w.err));
    assert_int_equal(sn_state_add(w.state, &home, &id, &w.err), SNUG_E_INVALID);
    assert_int_equal(id, 0);
    assert_int_equal(sn_state_count(w.state), 1);
    world_close(&w);
}

/* --- running -------------------------------------------------------------------------------- */

static void test_run_equals_naive_over_steps(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 16);
    world_plan(&w);
    world_prepare(&w, NULL);
    sn_state *planned = w.state;
    world_state(&w); /* a second store for the naive run */
    sn_state *naive = w.state;
    w.state = planned;
    float first = 0, last = 0;
    for (int step = 0; step < 20; step++) {
        float loss;
        snug_view out = {.data = &loss, .bytes = sizeof loss};
        world_naive(&w, naive, &out, true);
        world_run(&w);
        last = world_scalar(&w, "loss");
        first = step == 0 ? last : first;
        assert_memory_equal(&loss, &last, sizeof loss);
    }
    assert_true(last < 0.2f * first);
    size_t n;
    unsigned char *a = world_variables(&w, planned, &n), *b = world_variables(&w, naive, NULL);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
    sn_state_destroy(naive);
    world_close(&w);
}

static void test_naive_leaves_variables_unless_told(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 16);
    world_state(&w);
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    world_naive(&w, w.state, NULL, false);
    unsigned char *after = world_variables(&w, w.state, NULL);
    assert_memory_equal(before, after, n);
    world_naive(&w, w.state, NULL, true);
    free(after);
    after = world_variables(&w, w.state, NULL);
    assert_memory_not_equal(before, after, n);
    free(before);
    free(after);
    world_close(&w);
}

static snug_status stop_at_square(void *ctx, sn_node node, const snug_view *outs, int n_outs,
                                  snug_error *err) {
    world *w = ctx;
    assert_int_equal(n_outs, sn_graph_node_at(w->graph, node)->n_out);
    assert_non_null(outs[0].data);
    if (sn_graph_node_at(w->graph, node)->op == SN_OP_square)
        return sn_fail(err, SNUG_E_NUMERIC, "found it");
    return SNUG_OK;
}

static void test_naive_visit_can_stop_at_a_node(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 16);
    world_state(&w);
    const sn_input_binding inputs[2] = {world_binding(&w, 0), world_binding(&w, 1)};
    const sn_naive_options o = {
        .inputs = inputs, .visit = stop_at_square, .ctx = &w, .write_state = true};
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    assert_int_equal(sn_naive_run(w.engine, w.graph, w.state, &o, &w.err), SNUG_E_NUMERIC);
    assert_string_equal(w.err.text, "found it");
    unsigned char *after = world_variables(&w, w.state, NULL);
    assert_memory_equal(before, after, n);
    free(before);
    free(after);
    world_close(&w);
}

static void test_params_are_bound_at_each_run(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 16);
    world_plan(&w);
    world_prepare(&w, NULL);
    sn_param rate;
    world_ok(&w, sn_graph_find_param(w.graph, "learning_rate", &rate, &w.err));
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    sn_session_set_real(w.session, rate, 0);
    world_run(&w);
    unsigned char *after = world_variables(&w, w.state, NULL);
    assert_memory_equal(before, after, n);
    sn_session_set_real(w.session, rate, 0.1);
    world_run(&w);
    free(after);
    after = world_variables(&w, w.state, NULL);
    assert_memory_not_equal(before, after, n);
    free(before);
    free(after);
    world_close(&w);
}

static void test_run_requests_no_memory(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 16);
    world_plan(&w);
    world_prepare(&w, NULL);
    const size_t held = snug_engine_bytes(w.engine);
    sn_fault_memory(w.engine, INT64_MAX, false);
    for (int i = 0; i < 5; i++)
        world_run(&w);
    assert_int_equal(sn_fault_memory_requests(w.engine), 0);
    sn_fault_memory(w.engine, -1, false);
    assert_int_equal(snug_engine_bytes(w.engine), held);
    world_close(&w);
}

static void test_compute_only_plans_start_no_thread(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 4);
    world_plan(&w);
    world_prepare(&w, NULL);
    world_run(&w);
    assert_int_equal(w.executor->crew.n_live, 0);
    assert_false(w.executor->crew.made);
    world_close(&w);
}

static void test_input_without_data_is_named(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 4);
    world_plan(&w);
    world_prepare(&w, NULL);
    sn_session_bind_input(w.session, 1, (sn_input_binding){0});
    assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_INVALID);
    assert_non_null(strstr(w.err.text, "input 't'"));
    assert_false(sn_state_torn(w.state));
    assert_int_equal(sn_session_run(w.session, NULL), SNUG_E_INVALID); /* err may be NULL */
    world_close(&w);
}

static void test_feed_error_is_passed_on_and_the_next_run_works(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 4);
    world_plan(&w);
    world_prepare(&w, NULL);
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    w.arrays[0].fail_at = 0;
    assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_IO);
    assert_string_equal(w.err.text, "input 'x': the disk is gone");
    unsigned char *after = world_variables(&w, w.state, NULL);
    assert_memory_equal(before, after, n);
    assert_false(sn_state_torn(w.state));
    world_run(&w);
    free(before);
    free(after);
    world_close(&w);
}

static void test_mayfail_error_names_layer_and_operator(void **unused) {
    (void)unused;
    static const int32_t indices[2] = {1, 9};
    world w;
    world_open(&w);
    const snug_type ti = world_type(SNUG_I32, 1, (int64_t[]){2}),
                    tt = world_type(SNUG_F32, 2, (int64_t[]){4, 3});
    const sn_value i = world_input(&w, "i", &ti, indices),
                   table = world_variable(&w, "table", &tt, 1);
    world_ok(&w, sn_graph_set_owner(w.graph, "embedding", &w.err));
    sn_builder b = sn_builder_on(w.graph);
    const sn_value in[2] = {table, i};
    const sn_value rows = sn_build(&b, SN_OP_gather, NULL, in, 2);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "rows", rows, &w.err));
    world_plan(&w);
    world_prepare(&w, NULL);
    assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_DATA);
    assert_ptr_equal(strstr(w.err.text, "layer embedding (gather): "), w.err.text);
    world_close(&w);
}

typedef struct {
    sn_part checks; /* the part that looks at x */
    bool passes;
    float last; /* of x */
    snug_status status;
    float y, seen, w; /* a result, what the forward pass keeps, what the update writes */
} pass_case;

static float first_of(const world *w, uint32_t home) {
    snug_view view;
    snug_error err;
    assert_int_equal(sn_state_view(w->state, home, &view, &err), SNUG_OK);
    return *(const float *)view.data;
}

static void run_pass_case(const pass_case *c) {
    const float x[2] = {3, c->last};
    world w;
    world_open(&w);
    const snug_type t = world_type(SNUG_F32, 1, (int64_t[]){2});
    const sn_value in = world_input(&w, "x", &t, x);
    const sn_value variable = world_variable(&w, "w", &t, 1),
                   kept = world_variable(&w, "seen", &t, 2);
    sn_builder b = sn_builder_on(w.graph);
    sn_graph_set_part(w.graph, c->checks);
    const sn_value checked = sn_build_check_finite(&b, in);
    sn_graph_set_part(w.graph, SN_PART_UPDATE);
    sn_build(&b, SN_OP_assign_add, NULL, (const sn_value[]){variable, checked}, 2);
    sn_graph_set_part(w.graph, SN_PART_FORWARD);
    sn_build(&b, SN_OP_assign, NULL, (const sn_value[]){kept, in}, 2);
    const sn_value y = sn_build_sum(&b, sn_build_square(&b, kept), 0, false);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "y", y, &w.err));
    world_plan(&w);
    world_prepare(&w, NULL);
    sn_session_set_passes(w.session, c->passes);
    for (int k = 0; k < 2; k++) /* the second run looks anew */
        assert_int_equal(sn_session_run(w.session, &w.err), c->status);
    assert_int_equal(sn_session_passed_over(w.session),
                     c->status == SNUG_OK && c->last == INFINITY);
    assert_true(first_of(&w, 0) == c->w && first_of(&w, 1) == c->seen);
    if (c->status == SNUG_OK && c->last != INFINITY)
        assert_true(world_scalar(&w, "y") == c->y);
    assert_false(sn_state_torn(w.state));
    world_close(&w);
}

/* Only the update's writes, only for a check of the update, and only where the caller wants it. */
static void test_an_update_that_refuses_its_values_may_be_passed_over(void **unused) {
    (void)unused;
    static const pass_case cases[] = {
        {SN_PART_UPDATE, true, 4, SNUG_OK, 25, 3, 7},
        {SN_PART_UPDATE, true, INFINITY, SNUG_OK, 0, 3, 1},
        {SN_PART_UPDATE, false, INFINITY, SNUG_E_NUMERIC, 0, 2, 1},
        {SN_PART_FORWARD, true, INFINITY, SNUG_E_NUMERIC, 0, 2, 1},
        {SN_PART_BACKWARD, true, INFINITY, SNUG_E_NUMERIC, 0, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_pass_case(&cases[i]);
}

/* --- inputs where they lie ------------------------------------------------------------------ */

/* An input that says its rows are elements of a source, from one on; fills are the world's. */
typedef struct {
    sn_input_binding filled;
    sn_source *source;
    uint64_t first;
} lender;

static snug_status fill_otherwise(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                                  snug_error *err) {
    const lender *l = ctx;
    return l->filled.fill(l->filled.ctx, first, n, dst, err);
}

static bool name_source(void *ctx, int64_t first_row, sn_recipe *out, uint64_t *first) {
    const lender *l = ctx;
    assert_int_equal(first_row, 0);
    *out = sn_source_recipe(l->source, 1);
    *first = l->first - 1;
    return true;
}

static void bind_lender(world *w, lender *l, uint32_t input, const void *data, snug_dtype dtype,
                        uint64_t count) {
    world_ok(w, sn_source_from_memory(w->engine, data, dtype, count, &l->source, &w->err));
    l->filled = world_binding(w, input);
    l->first = 1;
    sn_session_bind_input(w->session, input, (sn_input_binding){l, fill_otherwise, name_source});
}

/* One run with x at `data` from element 1 on, beside the naive run; whether it was filled. */
static bool run_lent(const void *data, snug_dtype dtype, uint64_t count) {
    world w;
    lender l;
    float loss;
    snug_view out = {.data = &loss, .bytes = sizeof loss};
    world_open(&w);
    world_regression(&w, 16);
    world_plan(&w);
    world_prepare(&w, &(sn_executor_options){.poison = 0xff, .poison_set = true});
    bind_lender(&w, &l, 0, data, dtype, count);
    world_naive(&w, w.state, &out, false);
    const int64_t before = w.arrays[0].n_fills;
    world_run(&w);
    const float got = world_scalar(&w, "loss");
    assert_memory_equal(&got, &loss, sizeof loss);
    const bool filled = w.arrays[0].n_fills > before;
    sn_source_drop(l.source);
    world_close(&w);
    return filled;
}

/* x of the regression from element 1 of `to` on; returns how many that makes. */
static uint64_t copy_x(float *to) {
    world w;
    world_open(&w);
    world_regression(&w, 16);
    memcpy(to + 1, w.arrays[0].data, 48 * sizeof(float));
    world_close(&w);
    return 49;
}

static void test_rows_in_memory_are_read_where_they_lie(void **unused) {
    (void)unused;
    float data[49] = {0}, kept[49];
    const uint64_t n = copy_x(data);
    memcpy(kept, data, sizeof data);
    assert_false(run_lent(data, SNUG_F32, n));
    assert_memory_equal(data, kept, sizeof data);
}

static void test_rows_that_do_not_lie_as_wanted_are_brought(void **unused) {
    (void)unused;
    float data[50] = {0};
    double wide[49] = {0};
    const uint64_t n = copy_x(data);
    assert_true(run_lent(wide, SNUG_F64, n));
    assert_true(run_lent(data, SNUG_F32, n - 1));
    assert_true(run_lent((char *)data + 2, SNUG_F32, n));
}

static void test_a_loan_is_for_one_run(void **unused) {
    (void)unused;
    world w;
    lender l;
    float data[49];
    const uint64_t n = copy_x(data);
    world_open(&w);
    world_regression(&w, 16);
    world_plan(&w);
    world_prepare(&w, NULL);
    sn_param rate;
    world_ok(&w, sn_graph_find_param(w.graph, "learning_rate", &rate, &w.err));
    sn_session_set_real(w.session, rate, 0);
    bind_lender(&w, &l, 0, data, SNUG_F32, n);
    world_run(&w);
    const float first = world_scalar(&w, "loss");
    data[1] += 100;
    world_run(&w);
    assert_true(world_scalar(&w, "loss") > first);
    sn_session_bind_input(w.session, 0, world_binding(&w, 0));
    world_run(&w);
    assert_true(world_scalar(&w, "loss") == first);
    assert_int_equal(w.arrays[0].n_fills, 1);
    sn_source_drop(l.source);
    world_close(&w);
}

/* Where the plan writes over an input, or gives it out, the caller's memory is not touched. */
static void test_what_is_written_over_is_not_lent(void **unused) {
    (void)unused;
    static const float data[5] = {0, 1, -2, 3, -4};
    const snug_type type = world_type(SNUG_F32, 1, (int64_t[]){4});
    for (int given_out = 0; given_out < 2; given_out++) {
        world w;
        lender l;
        snug_view y;
        world_open(&w);
        const sn_value x = world_input(&w, "x", &type, data + 1);
        sn_builder b = sn_builder_on(w.graph);
        const sn_value out = given_out ? x : sn_build_square(&b, sn_build_square(&b, x));
        world_ok(&w, sn_builder_done(&b, &w.err));
        world_ok(&w, sn_graph_output(w.graph, "y", out, &w.err));
        world_plan(&w);
        world_prepare(&w, NULL);
        bind_lender(&w, &l, 0, data, SNUG_F32, 5); /* read-only memory */
        world_run(&w);
        sn_session_output(w.session, 0, &y);
        for (int i = 0; i < 4; i++) {
            const float v = data[i + 1];
            assert_true(((float *)y.data)[i] == (given_out ? v : v * v * v * v));
        }
        assert_int_equal(w.arrays[0].n_fills, 1);
        sn_source_drop(l.source);
        world_close(&w);
    }
}

/* --- interrupts ----------------------------------------------------------------------------- */

typedef struct {
    int asked, stop_at;
} interrupter;

static bool ask(void *ctx) {
    interrupter *i = ctx;
    return i->asked++ == i->stop_at;
}

/* Whenever it comes, an interrupt either stops the run with all variables as they were, or does not
 * stop it at all. */
static void test_interrupt_stops_before_the_first_state_write_or_not_at_all(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 8);
    world_plan(&w);
    world_prepare(&w, NULL);
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    int n_stopped = 0;
    for (;; n_stopped++) {
        interrupter i = {.stop_at = n_stopped};
        sn_session_set_interrupt(w.session, ask, &i);
        const snug_status status = sn_session_run(w.session, &w.err);
        if (status == SNUG_OK)
            break;
        assert_int_equal(status, SNUG_E_INTERRUPTED);
        unsigned char *after = world_variables(&w, w.state, NULL);
        assert_memory_equal(before, after, n);
        free(after);
        assert_false(sn_state_torn(w.state));
    }
    assert_true(n_stopped >= 5); /* feeds, matmul, ... come before the first update */
    assert_true(n_stopped < (int)w.plan->n_steps);
    unsigned char *after = world_variables(&w, w.state, NULL);
    assert_memory_not_equal(before, after, n);
    free(before);
    free(after);
    world_close(&w);
}

/* A start that is a parameter may be wrong at any run: before the first step, not after some
 * updates. */
static void test_a_bad_parameter_is_refused_before_the_first_step(void **unused) {
    (void)unused;
    static const float data[4] = {1, 2, 3, 4};
    world w;
    world_open(&w);
    const snug_type type = world_type(SNUG_F32, 1, (int64_t[]){4});
    const sn_value x = world_input(&w, "x", &type, data), v = world_variable(&w, "v", &type, 1);
    sn_builder b = sn_builder_on(w.graph);
    (void)sn_build(&b, SN_OP_assign_add, NULL, (sn_value[]){v, x}, 2);
    sn_attrs a;
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes = (sn_list){1, {2}};
    const sn_param start = sn_build_key(&b, "start", 2);
    a.slice.start[0] = (int64_t)start.i;
    const sn_value y = sn_build(&b, SN_OP_slice, &a, &x, 1);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "y", y, &w.err));
    world_plan(&w);
    world_prepare(&w, NULL);
    world_run(&w);
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    for (int64_t bad = -1; bad <= 3; bad += 4) {
        sn_session_set_key(w.session, start, bad);
        assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_INVALID);
        assert_non_null(strstr(w.err.text, "start at 0 to 2"));
        unsigned char *after = world_variables(&w, w.state, NULL);
        assert_memory_equal(before, after, n);
        free(after);
        assert_false(sn_state_torn(w.state));
    }
    sn_session_set_key(w.session, start, 0);
    world_run(&w);
    free(before);
    world_close(&w);
}

/* --- arenas --------------------------------------------------------------------------------- */

static void run_poisoned(world *w, int poison, unsigned char *written) {
    const sn_executor_options o = {.guard = true, .poison = poison, .poison_set = true};
    world_prepare(w, &o);
    world_run(w);
    assert_int_equal(sn_executor_arena(w->executor, SN_MEM_FIRST_ARENA).bytes,
                     w->plan->memories[SN_MEM_FIRST_ARENA].bytes);
    sn_arena_mark(w->executor, poison, written);
    world_unprepare(w);
}

static void test_arena_is_used_to_the_byte(void **unused) {
    (void)unused;
    for (int64_t rows = 1; rows <= 16; rows += 5) {
        world w;
        world_open(&w);
        world_regression(&w, rows);
        world_plan(&w);
        unsigned char *written = calloc(w.plan->memories[SN_MEM_FIRST_ARENA].bytes, 1);
        assert_non_null(written);
        run_poisoned(&w, 0x5A, written);
        run_poisoned(&w, 0xA5, written);
        sn_arena_expect_exact(w.plan, written, "regression");
        free(written);
        world_close(&w);
    }
}

static void test_results_do_not_depend_on_what_the_arena_held(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 8);
    world_plan(&w);
    float loss[2];
    const int poison[2] = {0, 0xFF};
    for (int k = 0; k < 2; k++) {
        world_prepare(&w, &(sn_executor_options){.poison = poison[k], .poison_set = true});
        world_run(&w);
        world_run(&w);
        loss[k] = world_scalar(&w, "loss");
        world_unprepare(&w);
    }
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    world_close(&w);
}

/* Two plans share state and the larger one's arena; the second is added late and too large for the
 * arena. */
static void test_plans_share_one_arena_of_the_larger_size(void **unused) {
    (void)unused;
    world small, large;
    world_open(&small);
    world_open(&large);
    world_regression(&small, 2);
    world_regression(&large, 16);
    world_plan(&small);
    world_plan(&large);
    world_prepare(&small, NULL);
    world_run(&small);
    const size_t before = sn_executor_arena(small.executor, SN_MEM_FIRST_ARENA).bytes;
    sn_session *late;
    world_ok(&small, sn_executor_add(small.executor, large.plan, &late, &small.err));
    sn_session_bind_input(late, 0, world_binding(&large, 0));
    sn_session_bind_input(late, 1, world_binding(&large, 1));
    assert_int_equal(sn_session_run(late, &small.err), SNUG_E_INVALID); /* not prepared again yet */
    world_ok(&small, sn_executor_prepare(small.executor, &small.err));
    assert_true(sn_executor_arena(small.executor, SN_MEM_FIRST_ARENA).bytes > before);
    world_ok(&small, sn_session_run(late, &small.err));
    world_run(&small); /* its pointers moved along */
    sn_session *fitting;
    world_ok(&small, sn_executor_add(small.executor, large.plan, &fitting, &small.err));
    sn_session_bind_input(fitting, 0, world_binding(&large, 0));
    sn_session_bind_input(fitting, 1, world_binding(&large, 1));
    world_ok(&small, sn_session_run(fitting, &small.err)); /* fits the arena: ready at once */
    world_close(&small);
    world_close(&large);
}

/* --- refusals ------------------------------------------------------------------------------- */

static void test_add_refuses_a_plan_for_another_device(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 4);
    world_plan(&w);
    world_state(&w);
    sn_cpu_device other = w.device;
    other.device.name = "gpu:7";
    const sn_device *devices[1] = {&other.device};
    world_ok(&w, sn_executor_create(w.engine, w.state, devices, 1, NULL, &w.executor, &w.err));
    sn_session *s = NULL;
    assert_int_equal(sn_executor_add(w.executor, w.plan, &s, &w.err), SNUG_E_INVALID);
    assert_null(s);
    assert_non_null(strstr(w.err.text, "gpu:7"));
    world_close(&w);
}

static void test_add_refuses_homes_of_another_shape(void **unused) {
    (void)unused;
    world w;
    world_open(&w);
    world_regression(&w, 4);
    world_plan(&w);
    world_ok(&w, sn_state_create(w.engine, &w.state, &w.err));
    const sn_home home = {.name = "w", .type = world_type(SNUG_F32, 2, (int64_t[]){3, 2})};
    uint32_t id;
    world_ok(&w, sn_state_add(w.state, &home, &id, &w.err));
    const sn_device *devices[1] = {&w.device.device};
    world_ok(&w, sn_executor_create(w.engine, w.state, devices, 1, NULL, &w.executor, &w.err));
    sn_session *s;
    assert_int_equal(sn_executor_add(w.executor, w.plan, &s, &w.err), SNUG_E_SHAPE);
    assert_non_null(strstr(w.err.text, "f32[3,2]"));
    world_close(&w);
}

/* Fail request N = 0, 1, 2, ... of memory, once or for good: a clean error, and every byte comes
 * back. */
static void sweep_faults(bool for_good) {
    world w;
    world_open(&w);
    world_regression(&w, 8);
    world_plan(&w);
    const size_t held = snug_engine_bytes(w.engine);
    int64_t n = 0;
    for (bool through = false; !through; n++) {
        sn_fault_memory(w.engine, n, for_good);
        const snug_status status = world_try_prepare(&w, NULL);
        through = !sn_fault_fired(w.engine);
        sn_fault_memory(w.engine, -1, false);
        if (through)
            world_ok(&w, status);
        else
            assert_int_equal(status, SNUG_E_MEMORY);
        world_unprepare(&w);
        assert_int_equal(snug_engine_bytes(w.engine), held);
    }
    assert_true(n > 8);
    world_close(&w);
}

static void test_faults_once_leave_nothing_behind(void **unused) {
    (void)unused;
    sweep_faults(false);
}

static void test_faults_for_good_leave_nothing_behind(void **unused) {
    (void)unused;
    sweep_faults(true);
}

/* A lane may be past the step that fails on another one: of what it wrote there is no copy. */
static void test_writes_of_a_lane_that_is_ahead_are_not_called_taken_back(void **state) {
    (void)state;
    const sn_step step = {.kind = SN_STEP_RUN};
    sn_bound bound = {.step = &step};
    uint64_t done = 1;
    sn_session s = {.bound = &bound, .done = &done, .undone = {.end = 1}};
    assert_true(sn_undo_restore(&s));
    s.wrote_late = true;
    assert_false(sn_undo_restore(&s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_homes_are_filled_from_recipes),
        cmocka_unit_test(test_state_books_each_variable_under_its_name),
        cmocka_unit_test(test_state_view_keeps_what_is_there),
        cmocka_unit_test(test_state_refuses_a_name_twice),
        cmocka_unit_test(test_run_equals_naive_over_steps),
        cmocka_unit_test(test_naive_leaves_variables_unless_told),
        cmocka_unit_test(test_naive_visit_can_stop_at_a_node),
        cmocka_unit_test(test_params_are_bound_at_each_run),
        cmocka_unit_test(test_run_requests_no_memory),
        cmocka_unit_test(test_compute_only_plans_start_no_thread),
        cmocka_unit_test(test_input_without_data_is_named),
        cmocka_unit_test(test_feed_error_is_passed_on_and_the_next_run_works),
        cmocka_unit_test(test_mayfail_error_names_layer_and_operator),
        cmocka_unit_test(test_an_update_that_refuses_its_values_may_be_passed_over),
        cmocka_unit_test(test_rows_in_memory_are_read_where_they_lie),
        cmocka_unit_test(test_rows_that_do_not_lie_as_wanted_are_brought),
        cmocka_unit_test(test_a_loan_is_for_one_run),
        cmocka_unit_test(test_what_is_written_over_is_not_lent),
        cmocka_unit_test(test_interrupt_stops_before_the_first_state_write_or_not_at_all),
        cmocka_unit_test(test_a_bad_parameter_is_refused_before_the_first_step),
        cmocka_unit_test(test_arena_is_used_to_the_byte),
        cmocka_unit_test(test_results_do_not_depend_on_what_the_arena_held),
        cmocka_unit_test(test_plans_share_one_arena_of_the_larger_size),
        cmocka_unit_test(test_add_refuses_a_plan_for_another_device),
        cmocka_unit_test(test_add_refuses_homes_of_another_shape),
        cmocka_unit_test(test_faults_once_leave_nothing_behind),
        cmocka_unit_test(test_faults_for_good_leave_nothing_behind),
        cmocka_unit_test(test_writes_of_a_lane_that_is_ahead_are_not_called_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
