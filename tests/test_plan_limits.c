/* test_plan_limits.c: the budget planner at its limits: graphs without an arena, very long ones,
 * the shortest curve, requests that fail, and sliced plan texts with something broken in them. */
#include "support/support.h"

#include "graph/build.h"
#include "kernels/cpu/cpu.h"
#include "plan/plan.h"
#include "support/fake_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <snug/graph.h>

enum { LONG = 20000, BROKEN = 3000 };

static sn_fake_device fake;
static const sn_device *devices[1];

static int init_device(void **state) {
    (void)state;
    sn_fake_device_init(&fake, "fake:0");
    fake.workspace_bytes[SN_OP_matmul] = 96;
    double *const rates = (double *)&fake.device.rates;
    for (size_t i = 0; i < sizeof fake.device.rates / sizeof *rates; i++)
        rates[i] = 1e9;
    fake.device.rates.call = 1e-7;
    devices[0] = &fake.device;
    return 0;
}

/* A step of y = tanh(x w) ten times over, with 16 rows. */
static sn_graph *chain(snug_engine *e) {
    const snug_type x_type = {SNUG_F32, 2, {16, 8}}, w_type = {SNUG_F32, 2, {8, 8}};
    sn_graph *g;
    snug_error err;
    snug_value y, w, loss, dw, next;
    expect_ok(snug_graph_create(e, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &x_type, &y, &err), &err);
    expect_ok(snug_graph_variable(g, "w", &w_type, NULL, &w, &err), &err);
    for (int i = 0; i < 10; i++) {
        const snug_value yw[2] = {y, w};
        expect_ok(snug_graph_op(g, "matmul", "", yw, 2, &y, 1, &err), &err);
        expect_ok(snug_graph_op(g, "tanh", "", &y, 1, &y, 1, &err), &err);
    }
    expect_ok(snug_graph_op(g, "sum", "axes=0,1", &y, 1, &loss, 1, &err), &err);
    expect_ok(snug_graph_gradients(g, loss, &w, 1, &dw, &err), &err);
    const snug_value in[2] = {w, dw};
    expect_ok(snug_graph_op(g, "sgd", "rate=0.1 momentum=0", in, 2, &next, 1, &err), &err);
    expect_ok(snug_graph_output(g, "loss", loss, &err), &err);
    return g;
}

static sn_plan_options options(size_t arena_bytes, int64_t slices) {
    return (sn_plan_options){
        .devices = devices, .n_devices = 1, .arena_bytes = arena_bytes, .slices = slices};
}

static void test_a_curve_of_two_points_has_both_ends(void **state) {
    const sn_plan_options o = options(0, 0);
    sn_plan_point two[2], many[64];
    uint32_t n, n_many;
    snug_error err;
    sn_graph *g = chain(*state);
    expect_ok(sn_plan_curve(*state, g, &o, many, 64, &n_many, &err), &err);
    assert_true(n_many > 3);
    expect_ok(sn_plan_curve(*state, g, &o, two, 2, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(two[0].bytes, many[0].bytes);
    assert_int_equal(two[1].bytes, many[n_many - 1].bytes);
    sn_graph_destroy(g);
}

/* 16 rows in 3 slices: 6, 6 and 4 of them; the update and the sums are one run. */
static void test_a_short_last_slice_counts_its_own_flops(void **state) {
    sn_graph *g = chain(*state);
    sn_plan_options o = options(0, 0);
    sn_plan *whole, *sliced;
    snug_error err;
    expect_ok(sn_plan_build(*state, g, &o, &whole, &err), &err);
    o.slices = 3;
    expect_ok(sn_plan_build(*state, g, &o, &sliced, &err), &err);
    assert_int_equal(sliced->n_recomputed, 0);
    assert_true(whole->flops > 0);
    assert_true(fabs(sliced->flops - whole->flops) <= 1e-9 * whole->flops);
    sn_plan_destroy(sliced);
    sn_plan_destroy(whole);
    sn_graph_destroy(g);
}

/* Memory is slow, and a slice would fit the cache: it is not counted on. A slice takes its share of
 * the seconds, and each of the 20 operators on the way there is called 4 times. */
static void test_slices_are_not_taken_to_be_faster_for_the_cache(void **state) {
    sn_graph *g = chain(*state);
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    sn_rates *r = &cpu.device.rates;
    r->cache_bytes = 600;
    r->memory = r->memory_all = r->product_memory = 1e6;
    const sn_device *const device = &cpu.device;
    sn_plan_options o = {.devices = &device, .n_devices = 1};
    sn_plan *whole, *sliced;
    snug_error err;
    expect_ok(sn_plan_build(*state, g, &o, &whole, &err), &err);
    o.slices = 4;
    expect_ok(sn_plan_build(*state, g, &o, &sliced, &err), &err);
    assert_int_equal(sliced->slices, 4);
    assert_true(sliced->seconds > whole->seconds + 20 * 3 * r->call);
    sn_plan_destroy(sliced);
    sn_plan_destroy(whole);
    sn_graph_destroy(g);
}

/* w <- w - rate * v, both in their homes. */
static void test_a_graph_without_an_arena_is_planned_or_refused(void **state) {
    const snug_type type = {SNUG_F32, 2, {8, 8}};
    sn_plan_options o = options(1, 0);
    sn_plan_point points[4];
    sn_plan *p = NULL;
    sn_graph *g;
    snug_error err;
    snug_value in[2], next;
    uint32_t n;
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(snug_graph_variable(g, "w", &type, NULL, &in[0], &err), &err);
    expect_ok(snug_graph_variable(g, "v", &type, NULL, &in[1], &err), &err);
    expect_ok(snug_graph_op(g, "sgd", "rate=0.1 momentum=0", in, 2, &next, 1, &err), &err);
    expect_ok(sn_plan_build(*state, g, &o, &p, &err), &err);
    assert_int_equal(p->memories[SN_MEM_FIRST_ARENA].bytes, 0);
    sn_plan_destroy(p);
    o.step_bytes = 1000;
    expect_status(sn_plan_build(*state, g, &o, &p, &err), SNUG_E_BUDGET, &err);
    expect_text(err.text, "1000 bytes");
    expect_ok(sn_plan_curve(*state, g, &o, points, 4, &n, &err), &err);
    assert_int_equal(points[0].bytes, 1000);
    sn_graph_destroy(g);
}

/* x + tanh(tanh(... 0.5)): slices of x ask for slices of everything behind. */
static void test_a_long_way_back_is_planned(void **state) {
    const snug_type type = {SNUG_F32, 2, {4, 2}};
    const sn_plan_options o = options(0, 2);
    sn_graph *g;
    sn_plan *p;
    sn_value x;
    snug_error err;
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &type, &x, &err), &err);
    sn_builder b = sn_builder_on(g);
    sn_value y = sn_build_fill(&b, &type, 0.5);
    for (int i = 0; i < LONG; i++)
        y = sn_build_tanh(&b, y);
    y = sn_build_add(&b, sn_build_tanh(&b, x), y);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "y", y, &err), &err);
    expect_ok(sn_plan_build(*state, g, &o, &p, &err), &err);
    assert_int_equal(p->slices, 2);
    sn_plan_destroy(p);
    sn_graph_destroy(g);
}

/* The same product and sums, of 16 rows or of a value without a batch. */
static sn_graph *squares(snug_engine *e, bool has_batch) {
    const snug_type type = {SNUG_F32, 2, {16, 8}};
    sn_graph *g;
    sn_value y;
    snug_error err;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    sn_builder b = sn_builder_on(g);
    if (has_batch)
        expect_ok(sn_graph_input(g, "x", &type, &y, &err), &err);
    else
        y = sn_build_fill(&b, &type, 0.5);
    const sn_value first = y;
    for (int i = 0; i < 12; i++)
        y = sn_build_mul(&b, sn_build_tanh(&b, y), first);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "y", y, &err), &err);
    return g;
}

/* Requests of memory that planning within so many bytes makes: a measure of its work. */
static int64_t effort(snug_engine *e, const sn_graph *g, size_t bytes, snug_status expected) {
    const sn_plan_options o = options(bytes, 0);
    sn_plan *p = NULL;
    snug_error err;
    sn_fault_memory(e, INT64_MAX, false);
    expect_status(sn_plan_build(e, g, &o, &p, &err), expected, &err);
    const int64_t n = sn_fault_memory_requests(e);
    sn_fault_memory(e, -1, false);
    sn_plan_destroy(p);
    return n;
}

static void test_what_cannot_be_sliced_is_not_tried_in_slices(void **state) {
    sn_graph *with = squares(*state, true), *without = squares(*state, false);
    assert_true(effort(*state, without, 1, SNUG_E_BUDGET) <
                effort(*state, with, 1, SNUG_E_BUDGET) / 2);
    sn_graph_destroy(with);
    sn_graph_destroy(without);
}

static void test_a_plan_that_fits_is_found_without_the_smallest(void **state) {
    sn_graph *g = chain(*state);
    const sn_plan_options unlimited = options(0, 0);
    sn_plan *p;
    snug_error err;
    expect_ok(sn_plan_build(*state, g, &unlimited, &p, &err), &err);
    const size_t most = p->memories[SN_MEM_FIRST_ARENA].bytes;
    sn_plan_destroy(p);
    assert_true(effort(*state, g, most - most / 8, SNUG_OK) <
                effort(*state, g, 1, SNUG_E_BUDGET) / 2);
    sn_graph_destroy(g);
}

/* The plan of a floor that was found is what a budget of so many bytes gives. */
static void test_the_plan_of_a_floor_is_made_without_a_search(void **state) {
    sn_graph *g = chain(*state);
    sn_plan_floor floor = {0};
    sn_plan_options o = options(1, 0);
    sn_plan *searched, *made;
    snug_error err;
    o.step_bytes = 64;
    o.floor = &floor;
    sn_fault_memory(*state, INT64_MAX, false);
    expect_status(sn_plan_build(*state, g, &o, &made, &err), SNUG_E_BUDGET, &err);
    const int64_t n_searched = sn_fault_memory_requests(*state);
    o.arena_bytes = floor.bytes;
    expect_ok(sn_plan_build(*state, g, &o, &searched, &err), &err);
    o = options(0, 0);
    o.step_bytes = 64;
    o.at = &floor;
    sn_fault_memory(*state, INT64_MAX, false);
    expect_ok(sn_plan_build(*state, g, &o, &made, &err), &err);
    assert_true(sn_fault_memory_requests(*state) < n_searched / 2);
    sn_fault_memory(*state, -1, false);
    assert_int_equal(made->n_steps, searched->n_steps);
    assert_true(made->seconds == searched->seconds && made->seconds == floor.seconds);
    assert_int_equal(made->memories[SN_MEM_FIRST_ARENA].bytes + 64 * made->n_steps, floor.bytes);
    sn_plan_destroy(made);
    sn_plan_destroy(searched);
    sn_graph *other = squares(*state, true);
    expect_status(sn_plan_build(*state, other, &o, &made, &err), SNUG_E_INVALID, &err);
    sn_graph_destroy(other);
    sn_graph_destroy(g);
}

/* --- failed requests -------------------------------------------------------------------------- */
typedef struct {
    const sn_graph *graph;
    sn_plan_options options;
} request;

static snug_status build_and_destroy(snug_engine *e, void *ctx, snug_error *err) {
    const request *r = ctx;
    sn_plan *p = NULL;
    SNUG_TRY(sn_plan_build(e, r->graph, &r->options, &p, err));
    sn_plan_destroy(p);
    return SNUG_OK;
}

static size_t smallest(snug_engine *e, const sn_graph *g) {
    sn_plan_floor floor = {0};
    sn_plan_options o = options(1, 0);
    sn_plan *p;
    snug_error err;
    o.floor = &floor;
    expect_status(sn_plan_build(e, g, &o, &p, &err), SNUG_E_BUDGET, &err);
    return floor.bytes;
}

static void test_a_failed_request_in_slices_is_a_clean_error(void **state) {
    sn_graph *g = chain(*state);
    sn_fault_sweep(build_and_destroy, &(request){g, options(0, 3)});
    sn_graph_destroy(g);
}

static void test_a_failed_request_within_a_budget_is_a_clean_error(void **state) {
    sn_graph *g = chain(*state);
    sn_fault_sweep(build_and_destroy, &(request){g, options(smallest(*state, g), 0)});
    sn_graph_destroy(g);
}

/* --- broken texts ----------------------------------------------------------------------------- */
static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* A number becomes another one, a byte becomes another one, or a line is missing or comes twice. */
static void break_text(char *text, size_t room, uint64_t *seed) {
    static const char *const numbers[] = {"0",  "1",  "2", "3",          "4",
                                          "16", "64", "7", "4294967294", "9223372036854775807"};
    const size_t n = strlen(text);
    const uint64_t how = draw(seed, 4);
    char *at = text + draw(seed, n);
    if (how == 0) {
        *at = (char)(1 + draw(seed, 255));
    } else if (how == 1) {
        char *const next = strchr(at, '\n');
        memmove(at, next ? next : text + n, strlen(next ? next : text + n) + 1);
    } else if (how == 2 && n + strlen(at) + 1 < room) {
        memmove(at + strlen(at) / 2, at, strlen(at) + 1);
    } else if ((at = strpbrk(at, "0123456789"))) {
        const char *const number = numbers[draw(seed, sizeof numbers / sizeof *numbers)];
        const size_t old = strspn(at, "0123456789"), new = strlen(number);
        if (n - old + new < room) {
            memmove(at + new, at + old, strlen(at + old) + 1);
            memcpy(at, number, new);
        }
    }
}

static void test_a_broken_text_of_a_sliced_plan_never_crashes(void **state) {
    sn_graph *g = chain(*state);
    const sn_plan_options o = options(0, 3);
    snug_error err;
    sn_plan *p;
    expect_ok(sn_plan_build(*state, g, &o, &p, &err), &err);
    assert_int_equal(p->slices, 3);
    sn_text whole = sn_text_begin();
    const snug_writer w = sn_text_writer(&whole);
    expect_ok(sn_plan_print(p, &w, &err), &err);
    sn_plan_destroy(p);
    const size_t room = 2 * strlen(whole.text);
    char *const text = malloc(room);
    uint64_t seed = 1;
    int refused = 0;
    for (int i = 0; i < BROKEN; i++) {
        strcpy(text, whole.text);
        for (uint64_t k = draw(&seed, 3) + 1; k > 0 && text[0]; k--)
            break_text(text, room, &seed);
        if (sn_plan_parse(*state, g, text, devices, 1, &p, &err) != SNUG_OK)
            refused++;
        else
            sn_plan_destroy(p);
    }
    assert_in_range(refused, BROKEN / 2, BROKEN - 1);
    free(text);
    sn_text_end(&whole);
    sn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_curve_of_two_points_has_both_ends),
        engine_test(test_a_short_last_slice_counts_its_own_flops),
        engine_test(test_slices_are_not_taken_to_be_faster_for_the_cache),
        engine_test(test_a_graph_without_an_arena_is_planned_or_refused),
        engine_test(test_a_long_way_back_is_planned),
        engine_test(test_what_cannot_be_sliced_is_not_tried_in_slices),
        engine_test(test_a_plan_that_fits_is_found_without_the_smallest),
        engine_test(test_the_plan_of_a_floor_is_made_without_a_search),
        engine_test(test_a_failed_request_in_slices_is_a_clean_error),
        engine_test(test_a_failed_request_within_a_budget_is_a_clean_error),
        engine_test(test_a_broken_text_of_a_sliced_plan_never_crashes),
    };
    return cmocka_run_group_tests(tests, init_device, NULL);
}
