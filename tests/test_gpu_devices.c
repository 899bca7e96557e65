/* test_gpu_devices.c: plans and executors with a list of devices, by the emulated plug-in: two GPUs
 * give the bits of one, a GPU and the processor together those of the naive executor with the same
 * placement; what cannot be placed so is refused. */
#include "support/gpu_card.h"
#include "support/world.h"

#include "exec/exec.h"
#include "graph/build.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 16, WIDE = 24, STEPS = 3, MOST_OUTPUTS = 3, OUTPUT_BYTES = 4096, PLACEMENTS = 12 };

/* A graph to train, and the devices it may run on. */
typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_gpu_device *cards[2];
    sn_cpu_device cpu;
    const sn_device *devices[3];
    int n_devices;
    float x[ROWS][8], t[ROWS][3];
    snug_error err;
} stage;

/* What a run leaves: its outputs, and the variables behind them. */
typedef struct {
    unsigned char outputs[STEPS][MOST_OUTPUTS][OUTPUT_BYTES];
    unsigned char *variables;
    size_t n;
} traces;

static void check(stage *g, snug_status status) {
    expect_ok(status, &g->err);
}

static snug_status fill(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *to,
                        snug_error *err) {
    const char *data = ctx;
    const int64_t rows = to->type.dims[0];
    (void)err;
    memcpy(to->data, data + to->bytes / (size_t)rows * (size_t)first_row, to->bytes);
    return n_rows == rows ? SNUG_OK : SNUG_E_INTERNAL;
}

static sn_value variable(stage *g, const char *name, int64_t rows, int64_t columns, uint64_t key) {
    const sn_variable var = {.name = name,
                             .type = {.dtype = SNUG_F32, .rank = 2, .dims = {rows, columns}},
                             .home = sn_graph_n_vars(g->graph),
                             .trainable = true,
                             .init = {.kind = SN_RECIPE_NORMAL, .a = 0, .b = 0.5, .key = key}};
    sn_value v;
    check(g, sn_graph_variable(g->graph, &var, &v, &g->err));
    return v;
}

static sn_value input(stage *g, const char *name, int64_t rows, int64_t columns) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {rows, columns}};
    sn_value v;
    check(g, sn_graph_input(g->graph, name, &type, &v, &g->err));
    return v;
}

/* Two layers with a loss that is checked, their gradients and updates; outputs: the loss, what is
 * between the layers, and the second kernel as it was before its update. */
static void build_training(stage *g) {
    sn_value grads[2];
    sn_attrs a;
    const sn_value x = input(g, "x", ROWS, 8), t = input(g, "t", ROWS, 3);
    const sn_value w[2] = {variable(g, "one", 8, WIDE, 5), variable(g, "two", WIDE, 3, 6)};
    sn_builder b = sn_builder_on(g->graph);
    const sn_value h = sn_build_tanh(&b, sn_build_matmul(&b, x, w[0], SN_NO_VALUE));
    const sn_value y = sn_build_matmul(&b, h, w[1], SN_NO_VALUE);
    const sn_value all = sn_build_mean(&b, sn_build_square(&b, sn_build_sub(&b, y, t)), 0, false);
    const sn_value loss = sn_build(&b, SN_OP_check_finite, NULL, &all, 1);
    check(g, sn_builder_done(&b, &g->err));
    check(g, sn_graph_gradients(g->graph, loss, w, 2, grads, &g->err));
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = sn_build_param(&b, "learning_rate", 0.05).i;
    a.sgd.momentum = sn_build_param(&b, "", 0).i;
    for (int i = 0; i < 2; i++)
        (void)sn_build(&b, SN_OP_sgd, &a, (sn_value[]){w[i], grads[i]}, 2);
    check(g, sn_builder_done(&b, &g->err));
    check(g, sn_graph_output(g->graph, "loss", loss, &g->err));
    check(g, sn_graph_output(g->graph, "between", h, &g->err));
    check(g, sn_graph_output(g->graph, "before", w[1], &g->err));
}

/* A kernel is written twice before what may refuse values that it makes, another one beside it, a
 * third one behind it. */
static void build_late_check(stage *g) {
    sn_attrs a;
    const sn_value x = input(g, "x", ROWS, 8), t = input(g, "t", ROWS, 3);
    const sn_value one = variable(g, "one", 8, WIDE, 5), two = variable(g, "two", WIDE, 3, 6);
    const sn_value aside = variable(g, "aside", 8, WIDE, 7);
    sn_builder b = sn_builder_on(g->graph);
    const sn_value h = sn_build_tanh(&b, sn_build_matmul(&b, x, one, SN_NO_VALUE));
    const sn_value by = sn_build_matmul_t(&b, x, h, true, false);
    const sn_value once = sn_build(&b, SN_OP_assign_add, NULL, (sn_value[]){one, by}, 2);
    (void)sn_build(&b, SN_OP_assign, NULL, (sn_value[]){aside, by}, 2);
    const sn_value twice = sn_build(&b, SN_OP_assign_add, NULL, (sn_value[]){once, by}, 2);
    const sn_value u = sn_build_tanh(&b, sn_build_matmul(&b, x, twice, SN_NO_VALUE));
    const sn_value y = sn_build_sub(&b, sn_build_matmul(&b, u, two, SN_NO_VALUE), t);
    const sn_value z = sn_build(&b, SN_OP_check_finite, NULL, &y, 1);
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = sn_build_param(&b, "learning_rate", 0.05).i;
    a.sgd.momentum = sn_build_param(&b, "", 0).i;
    const sn_value in[2] = {two, sn_build_matmul_t(&b, u, z, true, false)};
    (void)sn_build(&b, SN_OP_sgd, &a, in, 2);
    check(g, sn_builder_done(&b, &g->err));
    check(g, sn_graph_output(g->graph, "z", z, &g->err));
}

/* %0 x [4, 3]; n0 square -> %1; n1 tanh -> %2. */
static void build_two_nodes(stage *g) {
    const sn_value x = input(g, "x", 4, 3);
    sn_builder b = sn_builder_on(g->graph);
    const sn_value y = sn_build_tanh(&b, sn_build_square(&b, x));
    check(g, sn_builder_done(&b, &g->err));
    check(g, sn_graph_output(g->graph, "y", y, &g->err));
}

/* %0 x [16, 8], %1 t [16, 3]; n0 square(x); n1 qr(t), a row that the host runs; n2 Q^T square. */
static void build_host_row(stage *g) {
    const sn_value x = input(g, "x", ROWS, 8), t = input(g, "t", ROWS, 3);
    sn_value qr[SN_MAX_OUT];
    sn_attrs a;
    sn_builder b = sn_builder_on(g->graph);
    sn_attrs_default(SN_OP_qr, &a);
    const sn_value square = sn_build_square(&b, x);
    sn_build_all(&b, SN_OP_qr, &a, &t, 1, qr);
    const sn_value y = sn_build_matmul_t(&b, qr[0], square, true, false);
    check(g, sn_builder_done(&b, &g->err));
    check(g, sn_graph_output(g->graph, "y", y, &g->err));
}

static void open_stage_of(stage *g, snug_engine *e, int n_cards, void (*build)(stage *g)) {
    memset(g, 0, sizeof *g);
    g->engine = e;
    card()->n_devices = n_cards;
    for (int i = 0; i < n_cards; i++) {
        const snug_device_options o = {.plugin = SNUG_EMULATED_PLUGIN};
        check(g, sn_gpu_open(e, i, &o, &g->cards[i], &g->err));
    }
    sn_cpu_device_of(e, &g->cpu);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 8; k++)
            g->x[i][k] = (float)((i * 7 + k * 5) % 11) / 8 - 0.5f;
        for (int k = 0; k < 3; k++)
            g->t[i][k] = (float)((i + k) % 3);
    }
    check(g, sn_graph_create(e, &g->graph, &g->err));
    build(g);
}

static void open_stage(stage *g, snug_engine *e, int n_cards) {
    open_stage_of(g, e, n_cards, build_training);
}

static void close_stage(stage *g) {
    sn_graph_destroy(g->graph);
    for (int i = 0; i < 2; i++)
        if (g->cards[i])
            sn_gpu_close(g->cards[i]);
}

static sn_state *make_state(stage *g, const sn_device *on) {
    sn_state *s;
    check(g, sn_state_create(g->engine, &s, &g->err));
    if (on)
        sn_state_set_device(s, on);
    for (uint32_t i = 0; i < sn_graph_n_vars(g->graph); i++) {
        const sn_variable *v = sn_graph_var_at(g->graph, (sn_var){i});
        const sn_home home = {.name = v->name, .type = v->type, .trainable = true, .init = v->init};
        uint32_t id;
        check(g, sn_state_add(s, &home, &id, &g->err));
    }
    return s;
}

static void keep_variables(stage *g, sn_state *s, traces *out) {
    out->n = world_state_bytes(s);
    out->variables = malloc(out->n);
    size_t at = 0;
    for (uint32_t i = 0; i < sn_state_count(s); i++) {
        size_t n;
        check(g, snug_type_bytes(&sn_state_home(s, i)->type, &n, &g->err));
        check(g, sn_state_read(s, i, 0, n, out->variables + at, &g->err));
        at += n;
    }
}

static sn_input_binding binding(stage *g, uint32_t i) {
    return (sn_input_binding){.ctx = i == 0 ? (void *)g->x : (void *)g->t, .fill = fill};
}

static int count_across(const sn_plan *p) {
    int n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n += p->steps[i].kind == SN_STEP_COPY && p->memories[p->steps[i].in[0].memory].device !=
                                                     p->memories[p->steps[i].out[0].memory].device;
    return n;
}

static void run_plan(stage *g, const sn_plan *plan, traces *out) {
    sn_state *state = make_state(g, g->devices[0]);
    sn_executor *x;
    sn_session *s;
    check(g, sn_executor_create(g->engine, state, g->devices, g->n_devices, NULL, &x, &g->err));
    check(g, sn_executor_add(x, plan, &s, &g->err));
    check(g, sn_executor_prepare(x, &g->err));
    for (uint32_t i = 0; i < sn_graph_n_inputs(g->graph); i++)
        sn_session_bind_input(s, i, binding(g, i));
    for (int step = 0; step < STEPS; step++) {
        check(g, sn_session_run(s, &g->err));
        for (uint32_t k = 0; k < sn_graph_n_outputs(g->graph); k++) {
            snug_view view;
            sn_session_output(s, k, &view);
            assert_true(view.bytes <= OUTPUT_BYTES);
            memcpy(out->outputs[step][k], view.data, view.bytes);
        }
    }
    keep_variables(g, state, out);
    sn_executor_destroy(x);
    sn_state_destroy(state);
}

/* Planned and run; returns how many of its copies go from one device to another. */
static int run_planned(stage *g, const uint16_t *placed, traces *out) {
    const sn_plan_options o = {.devices = g->devices, .n_devices = g->n_devices, .placed = placed};
    sn_plan *plan;
    check(g, sn_plan_build(g->engine, g->graph, &o, &plan, &g->err));
    run_plan(g, plan, out);
    const int n_across = count_across(plan);
    sn_plan_destroy(plan);
    return n_across;
}

static void run_naive(stage *g, const uint16_t *placed, traces *out) {
    sn_state *state = make_state(g, NULL);
    const sn_input_binding inputs[2] = {binding(g, 0), binding(g, 1)};
    for (int step = 0; step < STEPS; step++) {
        snug_view views[MOST_OUTPUTS];
        for (int k = 0; k < MOST_OUTPUTS; k++)
            views[k] = (snug_view){.data = out->outputs[step][k], .bytes = OUTPUT_BYTES};
        const sn_naive_options o = {.write_state = true,
                                    .devices = g->devices,
                                    .placed = placed,
                                    .inputs = inputs,
                                    .outputs = views};
        check(g, sn_naive_run(g->engine, g->graph, state, &o, &g->err));
    }
    keep_variables(g, state, out);
    sn_state_destroy(state);
}

static void expect_same(traces *a, traces *b) {
    assert_memory_equal(a->outputs, b->outputs, sizeof a->outputs);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->variables, b->variables, a->n);
    free(a->variables);
    free(b->variables);
}

/* Updates on the first device, all else anywhere: every node on the next, then drawn. */
static void draw(const stage *g, uint16_t *placed, int draw_number) {
    uint32_t seed = 77u * (uint32_t)draw_number + 1;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g->graph); i++) {
        const sn_op op = sn_graph_node_at(g->graph, (sn_node){i})->op;
        seed = seed * 1664525u + 1013904223u;
        const uint32_t any = draw_number == 0 ? i : seed >> 16;
        placed[i] = sn_ops[op].effect == SN_STATE ? 0 : (uint16_t)(any % (uint32_t)g->n_devices);
    }
}

static traces *new_traces(void) {
    traces *t = calloc(1, sizeof *t);
    assert_non_null(t);
    return t;
}

static void test_two_gpus_give_the_bits_of_one(void **state) {
    stage g;
    uint16_t placed[256];
    open_stage(&g, *state, 2);
    assert_true(sn_graph_n_nodes(g.graph) < 256);
    for (int i = 0; i < PLACEMENTS; i++) {
        traces *one = new_traces(), *two = new_traces();
        g.devices[0] = &g.cards[0]->device;
        g.n_devices = 1;
        assert_int_equal(run_planned(&g, NULL, one), 0);
        g.devices[1] = &g.cards[1]->device;
        g.n_devices = 2;
        draw(&g, placed, i);
        assert_true(run_planned(&g, placed, two) > 3);
        expect_same(one, two);
        free(one);
        free(two);
    }
    close_stage(&g);
}

static void expect_naive(stage *g) {
    uint16_t placed[256];
    for (int i = 0; i < PLACEMENTS; i++) {
        traces *naive = new_traces(), *planned = new_traces();
        draw(g, placed, i);
        run_naive(g, placed, naive);
        assert_true(run_planned(g, placed, planned) > 3);
        expect_same(naive, planned);
        free(naive);
        free(planned);
    }
}

static void test_a_gpu_and_the_processor_give_the_naive_executors_bits(void **state) {
    stage g;
    open_stage(&g, *state, 1);
    g.n_devices = 2;
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cpu.device;
    expect_naive(&g);
    g.devices[0] = &g.cpu.device;
    g.devices[1] = &g.cards[0]->device;
    expect_naive(&g);
    close_stage(&g);
}

static void test_two_gpus_and_the_processor_give_the_naive_executors_bits(void **state) {
    stage g;
    open_stage(&g, *state, 2);
    g.n_devices = 3;
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cpu.device;
    g.devices[2] = &g.cards[1]->device;
    expect_naive(&g);
    close_stage(&g);
}

/* What the host made for the first GPU is on its way there when the second one's value comes. */
static void test_a_copy_leaves_what_a_host_row_sends(void **state) {
    stage g;
    const uint16_t placed[] = {1, 0, 0};
    traces *naive = new_traces(), *planned = new_traces();
    open_stage_of(&g, *state, 2, build_host_row);
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cards[1]->device;
    g.n_devices = 2;
    run_naive(&g, placed, naive);
    assert_int_equal(run_planned(&g, placed, planned), 1);
    expect_same(naive, planned);
    free(naive);
    free(planned);
    close_stage(&g);
}

/* All nodes on the first of two: the other one has nothing, and gets no memory. */
static void test_a_device_may_have_nothing_to_do(void **state) {
    stage g;
    uint16_t placed[256] = {0};
    traces *one = new_traces(), *two = new_traces();
    open_stage(&g, *state, 2);
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cards[1]->device;
    g.n_devices = 1;
    assert_int_equal(run_planned(&g, NULL, one), 0);
    g.n_devices = 2;
    assert_int_equal(run_planned(&g, placed, two), 0);
    expect_same(one, two);
    free(one);
    free(two);
    close_stage(&g);
}

/* A loss that is no number, found on the second device, leaves the variables on the first. */
static void test_a_refusal_on_another_device_leaves_the_variables(void **state) {
    stage g;
    uint16_t placed[256];
    float after[8 * WIDE + WIDE * 3], before[8 * WIDE + WIDE * 3];
    sn_executor *x;
    sn_session *s;
    sn_plan *plan;
    open_stage(&g, *state, 2);
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cards[1]->device;
    g.n_devices = 2;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g.graph); i++)
        placed[i] = sn_ops[sn_graph_node_at(g.graph, (sn_node){i})->op].effect == SN_MAYFAIL;
    const sn_plan_options o = {.devices = g.devices, .n_devices = 2, .placed = placed};
    sn_state *homes = make_state(&g, g.devices[0]);
    check(&g, sn_plan_build(g.engine, g.graph, &o, &plan, &g.err));
    check(&g, sn_executor_create(g.engine, homes, g.devices, 2, NULL, &x, &g.err));
    check(&g, sn_executor_add(x, plan, &s, &g.err));
    check(&g, sn_executor_prepare(x, &g.err));
    for (uint32_t i = 0; i < 2; i++)
        sn_session_bind_input(s, i, binding(&g, i));
    check(&g, sn_state_read(homes, 0, 0, sizeof(float) * 8 * WIDE, before, &g.err));
    g.t[3][1] = NAN;
    expect_status(sn_session_run(s, &g.err), SNUG_E_NUMERIC, &g.err);
    assert_false(sn_state_torn(homes));
    check(&g, sn_state_read(homes, 0, 0, sizeof(float) * 8 * WIDE, after, &g.err));
    assert_memory_equal(before, after, sizeof(float) * 8 * WIDE);
    g.t[3][1] = 1;
    check(&g, sn_session_run(s, &g.err));
    sn_executor_destroy(x);
    sn_plan_destroy(plan);
    sn_state_destroy(homes);
    close_stage(&g);
}

/* Copies of the plan out of homes on the same device. */
static int count_saved(const sn_plan *p) {
    int n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n += p->steps[i].kind == SN_STEP_COPY && p->steps[i].in[0].memory == SN_MEM_STATE &&
             p->memories[p->steps[i].out[0].memory].device == 0;
    return n;
}

/* Refused at once, and after so many good runs as a captured run takes. */
static void expect_taken_back(stage *g, const sn_plan_options *o) {
    const sn_executor_options poisoned = {.poison = 0xff, .poison_set = true};
    sn_plan *plan;
    sn_executor *x;
    sn_session *s;
    check(g, sn_plan_build(g->engine, g->graph, o, &plan, &g->err));
    assert_int_equal(count_saved(plan), 1); /* of the kernel that the check needs, once */
    assert_true(o->slices == 0 || plan->slices > 1);
    sn_state *homes = make_state(g, g->devices[0]);
    check(g,
          sn_executor_create(g->engine, homes, g->devices, g->n_devices, &poisoned, &x, &g->err));
    check(g, sn_executor_add(x, plan, &s, &g->err));
    check(g, sn_executor_prepare(x, &g->err));
    for (uint32_t i = 0; i < 2; i++)
        sn_session_bind_input(s, i, binding(g, i));
    for (int k = 0; k < 2; k++) {
        traces before, after;
        keep_variables(g, homes, &before);
        g->t[3][1] = NAN;
        expect_status(sn_session_run(s, &g->err), SNUG_E_NUMERIC, &g->err);
        assert_false(sn_state_torn(homes));
        keep_variables(g, homes, &after);
        assert_memory_equal(before.variables, after.variables, before.n);
        free(before.variables);
        free(after.variables);
        g->t[3][1] = 1;
        for (int step = 0; step < STEPS; step++)
            check(g, sn_session_run(s, &g->err));
    }
    sn_executor_destroy(x);
    sn_plan_destroy(plan);
    sn_state_destroy(homes);
}

/* What refuses its values behind a write it needs leaves the variables as they were: on the
 * processor and a GPU, whole and in slices, and where another device is the one that refuses. */
static void test_a_write_behind_which_values_are_refused_is_taken_back(void **state) {
    stage g;
    uint16_t placed[256];
    open_stage_of(&g, *state, 2, build_late_check);
    for (uint32_t i = 0; i < sn_graph_n_nodes(g.graph); i++)
        placed[i] = sn_ops[sn_graph_node_at(g.graph, (sn_node){i})->op].effect == SN_MAYFAIL;
    const sn_device *const all[] = {&g.cpu.device, &g.cards[0]->device, &g.cards[1]->device};
    for (int first = 0; first < 2; first++)
        for (int other = 0; other < 3; other++) {
            g.devices[0] = all[first];
            g.devices[1] = all[other];
            g.n_devices = first == other ? 1 : 2;
            sn_plan_options o = {.devices = g.devices, .n_devices = g.n_devices};
            if (first != other)
                o.placed = placed;
            expect_taken_back(&g, &o);
            o.slices = 4;
            if (first == other)
                expect_taken_back(&g, &o);
        }
    close_stage(&g);
}

/* The driver fails at call n and from then on, as two cards work: the error is its own, and both give
 * everything back. */
static void test_two_gpus_survive_a_driver_that_fails(void **state) {
    uint16_t placed[256];
    bool failed = true;
    int64_t n = 0;
    for (; failed; n++) {
        stage g;
        sn_executor *x;
        sn_session *s;
        sn_plan *plan;
        *card() = fresh;
        open_stage(&g, *state, 2);
        g.devices[0] = &g.cards[0]->device;
        g.devices[1] = &g.cards[1]->device;
        g.n_devices = 2;
        draw(&g, placed, 0);
        const sn_plan_options o = {.devices = g.devices, .n_devices = 2, .placed = placed};
        sn_state *homes = make_state(&g, g.devices[0]);
        check(&g, sn_plan_build(g.engine, g.graph, &o, &plan, &g.err));
        check(&g, sn_executor_create(g.engine, homes, g.devices, 2, NULL, &x, &g.err));
        check(&g, sn_executor_add(x, plan, &s, &g.err));
        check(&g, sn_executor_prepare(x, &g.err));
        for (uint32_t i = 0; i < 2; i++)
            sn_session_bind_input(s, i, binding(&g, i));
        card()->fail_at = n;
        const snug_status status = sn_session_run(s, &g.err);
        failed = status != SNUG_OK;
        if (failed)
            expect_status(status, SNUG_E_DEVICE, &g.err);
        sn_executor_destroy(x);
        sn_plan_destroy(plan);
        sn_state_destroy(homes);
        close_stage(&g);
    }
    assert_true(n > 20);
}

/* --- plans of more queues than the planner's -------------------------------------------------- */

/* Fed on the GPU's copy queue, and copied from there by the processor. */
static const char copied_from_a_queue[] =
    "snug plan 1\n"
    "device 0 align 256 name gpu:0\n"
    "device 1 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
    "memory 1 device 0 bytes 256 used 48 bound 48 name arena\n"
    "memory 2 device 1 bytes 192 used 176 bound 176 name arena 1\n"
    "total flops 0 code 0 peak s0\n"
    "s0 feed 0 -> %%0@1+0 on 0.1 name x\n"
    "s1 copy %%0@1+0 -> %%0@2+0 on 1.0 wait s0\n"
    "s2 run n0 square v0 (%%0@2+0) -> (%%1@2+64) on 1.0 impl %s\n"
    "s3 run n1 tanh v0 (%%1@2+64) -> (%%2@2+128) on 1.0 impl %s\n"
    "output 0 %%2@2+128\n"
    "end plan\n";

/* In the block the copy of the second slice overwrites what the tanh of the first one reads. */
static const char block_of_two_queues[] =
    "snug plan 1\n"
    "device 0 align 256 name gpu:0\n"
    "device 1 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
    "memory 1 device 0 bytes 768 used 560 bound 560 name arena\n"
    "memory 2 device 1 bytes 128 used 112 bound 112 name arena 1\n"
    "total flops 0 code 0 peak s0\n"
    "s0 feed 0 -> %%0@2+0 on 1.0 name x\n"
    "s1 run n0 square v0 (%%0@2+0) -> (%%1@2+64) on 1.0 impl %s\n"
    "s2 copy %%1@2+64 -> %%1@1+256 on 0.0 wait s1\n"
    "s3 repeat 2 rows 2 last 2\n"
    "s4 copy %%1@1+256+24 rows 0:0:2 -> %%1@1+0 rows 0:0:2 on 0.1\n"
    "s5 run n1 tanh v0 (%%1@1+0 rows 0:0:2) -> (%%2@1+512+24 rows 0:0:2) on 0.0 wait s4 impl %s\n"
    "s6 end\n"
    "output 0 %%2@1+512\n"
    "end plan\n";

/* The text with the names of the kernels that the two nodes have where they are placed. */
static void expect_text_plan(void **state, const char *text, const uint16_t placed[2]) {
    stage g;
    sn_plan *plan;
    char whole[2048];
    sn_variant v[2] = {{0}, {0}};
    traces *naive = new_traces(), *planned = new_traces();
    open_stage_of(&g, *state, 1, build_two_nodes);
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cpu.device;
    g.n_devices = 2;
    for (uint32_t i = 0; i < 2; i++) {
        const sn_device *device = g.devices[placed[i]];
        sn_opdesc d;
        sn_graph_desc(g.graph, (sn_node){i}, &d);
        check(&g, device->describe(device, &d, &v[i], &g.err));
    }
    snprintf(whole, sizeof whole, text, v[0].impl, v[1].impl);
    check(&g, sn_plan_parse(g.engine, g.graph, whole, g.devices, 2, &plan, &g.err));
    run_plan(&g, plan, planned);
    run_naive(&g, placed, naive);
    expect_same(naive, planned);
    sn_plan_destroy(plan);
    free(naive);
    free(planned);
    close_stage(&g);
}

static void test_another_device_waits_for_the_queue_of_what_it_copies(void **state) {
    expect_text_plan(state, copied_from_a_queue, (const uint16_t[]){1, 1});
}

static void test_queues_go_through_a_block_together_beside_another_device(void **state) {
    expect_text_plan(state, block_of_two_queues, (const uint16_t[]){1, 0});
}

static void expect_refused(stage *g, const sn_plan_options *o, snug_status status,
                           const char *text) {
    sn_plan *plan;
    expect_status(sn_plan_build(g->engine, g->graph, o, &plan, &g->err), status, &g->err);
    expect_text(g->err.text, text);
}

static void test_what_cannot_be_placed_is_refused(void **state) {
    stage g;
    uint16_t placed[256] = {0};
    uint32_t update = 0;
    open_stage(&g, *state, 1);
    g.devices[0] = &g.cards[0]->device;
    g.devices[1] = &g.cpu.device;
    sn_plan_options o = {.devices = g.devices, .n_devices = 2, .placed = placed};
    placed[1] = 2;
    expect_refused(&g, &o, SNUG_E_INVALID, "node n1 is placed on device 2; there are 2");
    placed[1] = 0;
    while (sn_ops[sn_graph_node_at(g.graph, (sn_node){update})->op].effect != SN_STATE)
        update++;
    placed[update] = 1;
    expect_refused(&g, &o, SNUG_E_UNSUPPORTED, "variables lie on gpu:0");
    placed[update] = 0;
    o.arena_bytes = 1 << 20;
    expect_refused(&g, &o, SNUG_E_UNSUPPORTED, "without a limit");
    sn_plan_point points[4];
    uint32_t n;
    expect_status(sn_plan_curve(g.engine, g.graph, &o, points, 4, &n, &g.err), SNUG_E_UNSUPPORTED,
                  &g.err);
    close_stage(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        gpu_test(test_two_gpus_give_the_bits_of_one),
        late_gpu_test(test_two_gpus_give_the_bits_of_one),
        gpu_test(test_a_gpu_and_the_processor_give_the_naive_executors_bits),
        late_gpu_test(test_a_gpu_and_the_processor_give_the_naive_executors_bits),
        gpu_test(test_two_gpus_and_the_processor_give_the_naive_executors_bits),
        late_gpu_test(test_two_gpus_and_the_processor_give_the_naive_executors_bits),
        late_gpu_test(test_a_copy_leaves_what_a_host_row_sends),
        gpu_test(test_a_device_may_have_nothing_to_do),
        gpu_test(test_a_refusal_on_another_device_leaves_the_variables),
        gpu_test(test_a_write_behind_which_values_are_refused_is_taken_back),
        late_gpu_test(test_a_write_behind_which_values_are_refused_is_taken_back),
        gpu_test(test_two_gpus_survive_a_driver_that_fails),
        late_gpu_test(test_another_device_waits_for_the_queue_of_what_it_copies),
        late_gpu_test(test_queues_go_through_a_block_together_beside_another_device),
        gpu_test(test_what_cannot_be_placed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
