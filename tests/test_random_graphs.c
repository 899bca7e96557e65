/* test_random_graphs.c: graphs of 5 to 300 nodes with several outputs, in-place chances, shared
 * weights, state writes and reductions; each is planned, checked, executed in a guarded and
 * poisoned arena, and must be equal to the naive executor bit for bit: all outputs and all
 * variables, two runs in a row; every second plan goes through its text form first. The arena is
 * used to the byte the plan says. Others are planned within budgets, half of them close to the
 * smallest there is: still equal bit for bit, in f64 to 1e-12 where the plan has slices. A failure
 * prints the seed; SNUG_RANDOM_SEED and SNUG_RANDOM_GRAPHS choose others. Byte limit: 4 MiB of
 * tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "exec/inside.h"
#include "support/arena.h"
#include "support/random_graph.h"
#include "support/step_run.h"
#include "support/support.h"
#include "support/text.h"

#define MAX_OUTPUTS 8
#define MAX_INPUTS  16

typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_plan *plan;
    sn_cpu_device device;
    sn_state *planned, *naive;
    sn_input_binding inputs[MAX_INPUTS];
    uint64_t keys[MAX_INPUTS];
    snug_error err;
} random_case;

static sn_state *make_state(random_case *c) {
    sn_state *state;
    expect_ok(sn_state_create(c->engine, &state, &c->err), &c->err);
    for (uint32_t i = 0; i < sn_graph_n_vars(c->graph); i++) {
        const sn_variable *v = sn_graph_var_at(c->graph, (sn_var){i});
        const sn_home home = {.name = v->name, .type = v->type, .init = v->init};
        uint32_t id;
        expect_ok(sn_state_add(state, &home, &id, &c->err), &c->err);
        assert_int_equal(id, v->home);
    }
    return state;
}

/* The plan as its own text says it: what is run below was printed, parsed and checked again. */
static void replace_by_text(random_case *c) {
    const sn_device *devices[1] = {&c->device.device};
    sn_test_text text = {0};
    const snug_writer writer = sn_test_text_writer(&text);
    expect_ok(sn_plan_print(c->plan, &writer, &c->err), &c->err);
    sn_plan_destroy(c->plan);
    expect_ok(sn_plan_parse(c->engine, c->graph, text.data, devices, 1, &c->plan, &c->err),
              &c->err);
    sn_test_text_clear(&text);
}

static void begin_case(random_case *c, uint64_t seed) {
    memset(c, 0, sizeof *c);
    c->engine = sn_test_engine(0);
    const int n_nodes = 5 + (int)(sn_rng_key(seed, 1) % (seed % 10 == 0 ? 296 : 60));
    expect_ok(sn_random_graph(c->engine, seed, n_nodes, &c->graph, &c->err), &c->err);
    assert_true(sn_graph_n_inputs(c->graph) <= MAX_INPUTS);
    assert_true(sn_graph_n_outputs(c->graph) <= MAX_OUTPUTS);
    sn_cpu_device_init(&c->device, snug_engine_threads(c->engine), false);
    const sn_device *devices[1] = {&c->device.device};
    const sn_plan_options o = {.devices = devices, .n_devices = 1};
    expect_ok(sn_plan_build(c->engine, c->graph, &o, &c->plan, &c->err), &c->err);
    if (seed % 2 == 1)
        replace_by_text(c);
    for (uint32_t i = 0; i < sn_graph_n_inputs(c->graph); i++) {
        c->keys[i] = sn_rng_key(seed, 100 + i);
        c->inputs[i] = (sn_input_binding){.ctx = &c->keys[i], .fill = sn_random_fill_input};
    }
    c->planned = make_state(c);
    c->naive = make_state(c);
}

static void end_case(random_case *c) {
    sn_state_destroy(c->planned);
    sn_state_destroy(c->naive);
    sn_plan_destroy(c->plan);
    sn_graph_destroy(c->graph);
    sn_test_engine_end(c->engine);
}

static void run_naive(random_case *c, snug_view *outputs) {
    for (uint32_t k = 0; k < sn_graph_n_outputs(c->graph); k++) {
        const sn_value v = sn_graph_output_at(c->graph, k);
        outputs[k].bytes = c->plan->value_bytes[v.i];
        outputs[k].data = malloc(outputs[k].bytes + 1);
        assert_non_null(outputs[k].data);
    }
    const sn_naive_options o = {.inputs = c->inputs, .outputs = outputs, .write_state = true};
    expect_ok(sn_naive_run(c->engine, c->graph, c->naive, &o, &c->err), &c->err);
}

static void compare_outputs(random_case *c, sn_session *s, snug_view *wanted) {
    for (uint32_t k = 0; k < sn_graph_n_outputs(c->graph); k++) {
        snug_view got;
        sn_session_output(s, k, &got);
        assert_int_equal(got.bytes, wanted[k].bytes);
        assert_memory_equal(got.data, wanted[k].data, got.bytes);
        free(wanted[k].data);
    }
}

static void compare_variables(random_case *c) {
    for (uint32_t i = 0; i < sn_state_count(c->naive); i++) {
        snug_view a, b;
        expect_ok(sn_state_view(c->planned, i, &a, &c->err), &c->err);
        expect_ok(sn_state_view(c->naive, i, &b, &c->err), &c->err);
        assert_memory_equal(a.data, b.data, a.bytes);
    }
}

static void run_twice(random_case *c, sn_executor *x, sn_session *s) {
    static const int poisons[2] = {0x5A, 0xA5};
    const snug_view arena = sn_executor_arena(x, SN_MEM_FIRST_ARENA);
    unsigned char *written = calloc(arena.bytes + 1, 1);
    assert_non_null(written);
    for (int run = 0; run < 2; run++) {
        snug_view wanted[MAX_OUTPUTS];
        x->options.poison = poisons[run];
        run_naive(c, wanted);
        expect_ok(sn_session_run(s, &c->err), &c->err);
        sn_arena_mark(x, poisons[run], written);
        compare_outputs(c, s, wanted);
        compare_variables(c);
    }
    sn_arena_expect_exact(c->plan, written, "random graph");
    free(written);
}

static void run_case(uint64_t seed) {
    random_case c;
    begin_case(&c, seed);
    const sn_device *devices[1] = {&c.device.device};
    const sn_executor_options o = {.guard = true, .poison_set = true};
    sn_executor *x;
    sn_session *s;
    expect_ok(sn_executor_create(c.engine, c.planned, devices, 1, &o, &x, &c.err), &c.err);
    expect_ok(sn_executor_add(x, c.plan, &s, &c.err), &c.err);
    expect_ok(sn_executor_prepare(x, &c.err), &c.err);
    for (uint32_t i = 0; i < sn_graph_n_inputs(c.graph); i++)
        sn_session_bind_input(s, i, c.inputs[i]);
    run_twice(&c, x, s);
    sn_executor_destroy(x);
    end_case(&c);
}

/* The seed of the case that is running; printed when the test does not get to its end. */
typedef struct {
    uint64_t seed;
    bool through;
} progress;

static uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* How many in this run; under sanitizers, where each takes several times as long, half as many. */
static uint64_t count(uint64_t some, uint64_t all) {
    const uint64_t n = getenv("SNUG_TEST_FULL") ? all : some;
#ifdef SN_REDZONES
    return n / 2;
#else
    return n;
#endif
}

static void test_random_graphs_are_bit_equal_to_the_naive_executor(void **state) {
    progress *p = *state;
    const uint64_t first = number_from("SNUG_RANDOM_SEED", 1);
    const uint64_t n = number_from("SNUG_RANDOM_GRAPHS", count(2000, 10000));
    for (p->seed = first; p->seed < first + n; p->seed++)
        run_case(p->seed);
    p->through = true;
}

/* --- within budgets --------------------------------------------------------------------------- */
/* The naive executor's results, in the form of a run. */
static void run_naively(const sn_step_subject *s, sn_step_run *out) {
    snug_error err;
    sn_state *state;
    snug_view outputs[MAX_OUTPUTS];
    *out = (sn_step_run){.n = 0};
    state = sn_step_state_copy(s);
    for (int run = 0; run < s->n_runs; run++) {
        for (uint32_t k = 0; k < sn_graph_n_outputs(s->graph); k++) {
            outputs[k].type = *sn_graph_type(s->graph, sn_graph_output_at(s->graph, k));
            expect_ok(snug_type_bytes(&outputs[k].type, &outputs[k].bytes, &err), &err);
            outputs[k].data = malloc(outputs[k].bytes + 1);
        }
        const sn_naive_options o = {.inputs = s->inputs, .outputs = outputs, .write_state = true};
        expect_ok(sn_naive_run(s->engine, s->graph, state, &o, &err), &err);
        sn_step_run_add_outputs(out, outputs, sn_graph_n_outputs(s->graph), run);
        for (uint32_t k = 0; k < sn_graph_n_outputs(s->graph); k++)
            free(outputs[k].data);
    }
    sn_step_run_add_state(out, state);
    sn_state_destroy(state);
}

/* A budget between the smallest and the unlimited arena, every second time near the smallest; every
 * fifth time a number of slices instead. */
static sn_plan_options draw_options(const sn_step_subject *s, uint64_t seed) {
    sn_plan_floor floor = {0};
    sn_step_run run;
    snug_error err;
    sn_step_subject plan_only = *s;
    plan_only.n_runs = 0;
    sn_step_run_make(&plan_only, &(sn_plan_options){.slices = 0}, &run);
    if (seed % 5 == 4) {
        const sn_plan_options o = {.slices = 2 + (int64_t)(sn_rng_key(seed, 8) % 4)};
        return sn_step_run_try(&plan_only, &o, &run, &err) == SNUG_OK ? o : (sn_plan_options){0};
    }
    if (run.arena_bytes == 0)
        return (sn_plan_options){0};
    if (sn_step_run_try(&plan_only, &(sn_plan_options){.arena_bytes = 1, .floor = &floor}, &run,
                        &err) == SNUG_OK)
        return (sn_plan_options){0};
    assert_int_equal(err.code, SNUG_E_BUDGET);
    const size_t span = run.arena_bytes - floor.bytes, part = seed % 2 == 0 ? span / 8 : span;
    return (sn_plan_options){.arena_bytes = floor.bytes + sn_rng_key(seed, 9) % (part + 1)};
}

static void run_within(uint64_t seed, int *n_sliced, int *n_recomputed) {
    snug_engine *e = sn_test_engine(0);
    snug_error err;
    sn_graph *g;
    sn_graph_subject s;
    sn_step_run naive, planned;
    const int n_nodes = 5 + (int)(sn_rng_key(seed, 1) % (seed % 10 == 0 ? 196 : 60));
    expect_ok(sn_random_smooth_graph(e, seed, n_nodes, &g, &err), &err);
    sn_graph_subject_make(e, g, seed, &s);
    const sn_plan_options o = draw_options(&s.subject, seed);
    sn_step_run_make(&s.subject, &o, &planned);
    run_naively(&s.subject, &naive);
    if (o.arena_bytes > 0)
        assert_true(planned.arena_bytes <= o.arena_bytes);
    if (planned.slices > 1)
        sn_step_run_expect_close(&planned, &naive, 1e-12, "slices");
    else
        sn_step_run_expect_equal(&planned, &naive, "budget");
    *n_sliced += planned.slices > 1;
    *n_recomputed += planned.n_recomputed > 0;
    sn_step_run_clear(&naive);
    sn_step_run_clear(&planned);
    sn_graph_subject_clear(&s);
    sn_graph_destroy(g);
    sn_test_engine_end(e);
}

static void test_random_graphs_are_equal_within_any_budget(void **state) {
    progress *p = *state;
    const uint64_t first = number_from("SNUG_RANDOM_SEED", 1);
    const uint64_t n = number_from("SNUG_RANDOM_GRAPHS", count(300, 2000));
    int n_sliced = 0, n_recomputed = 0;
    for (p->seed = first; p->seed < first + n; p->seed++)
        run_within(p->seed, &n_sliced, &n_recomputed);
    p->through = true;
    if (n >= 150)
        assert_true(n_sliced > (int)n / 8 && n_recomputed > (int)n / 8);
}

/* The bytes of some value that is not a scalar: a part is what stands at values as large. */
static size_t draw_bytes(const sn_graph *g, uint64_t seed) {
    size_t bytes = 0;
    snug_error err;
    for (uint64_t i = 0; i < 16 && bytes <= sizeof(double); i++) {
        const uint64_t v = sn_rng_key(seed, 20 + i) % sn_graph_n_values(g);
        const snug_type *t = sn_graph_type(g, (sn_value){(uint32_t)v});
        if (t->dtype != SNUG_OPAQUE)
            expect_ok(snug_type_bytes(t, &bytes, &err), &err);
    }
    return bytes > 0 ? bytes : 1;
}

/* In slices where they stand at large values, every second time within too few bytes. */
static bool run_part(uint64_t seed) {
    snug_engine *e = sn_test_engine(0);
    snug_error err;
    sn_graph *g;
    sn_graph_subject s;
    sn_step_run naive, planned;
    const int n_nodes = 10 + (int)(sn_rng_key(seed, 1) % 90);
    expect_ok(sn_random_smooth_graph(e, seed, n_nodes, &g, &err), &err);
    sn_graph_subject_make(e, g, seed, &s);
    const sn_plan_options o = {.slices = 2 + (int64_t)(sn_rng_key(seed, 8) % 4),
                               .part_bytes = draw_bytes(g, seed),
                               .arena_bytes = seed % 2 * 512};
    const bool is_part = sn_step_run_try(&s.subject, &o, &planned, &err) == SNUG_OK;
    if (is_part) {
        run_naively(&s.subject, &naive);
        sn_step_run_expect_close(&planned, &naive, 1e-12, "a part");
        sn_step_run_clear(&naive);
        sn_step_run_clear(&planned);
    } else if (o.arena_bytes == 0 || err.code != SNUG_E_BUDGET) {
        expect_status(err.code, SNUG_E_INVALID, &err);
    }
    sn_graph_subject_clear(&s);
    sn_graph_destroy(g);
    sn_test_engine_end(e);
    return is_part;
}

static void test_random_graphs_are_equal_with_a_part_in_slices(void **state) {
    progress *p = *state;
    const uint64_t first = number_from("SNUG_RANDOM_SEED", 1);
    const uint64_t n = number_from("SNUG_RANDOM_GRAPHS", count(300, 2000));
    int n_parts = 0;
    for (p->seed = first; p->seed < first + n; p->seed++)
        n_parts += run_part(p->seed);
    p->through = true;
    if (n >= 150)
        assert_true(n_parts > (int)n / 4);
}

static int say_seed(void **state) {
    const progress *p = *state;
    if (!p->through)
        print_error("failing graph: SNUG_RANDOM_SEED=%llu SNUG_RANDOM_GRAPHS=1\n",
                    (unsigned long long)p->seed);
    return 0;
}

int main(void) {
    progress p = {0}, within = {0}, part = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(
            test_random_graphs_are_bit_equal_to_the_naive_executor, NULL, say_seed, &p),
        cmocka_unit_test_prestate_setup_teardown(test_random_graphs_are_equal_within_any_budget,
                                                 NULL, say_seed, &within),
        cmocka_unit_test_prestate_setup_teardown(test_random_graphs_are_equal_with_a_part_in_slices,
                                                 NULL, say_seed, &part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
