/* world.c: see world.h. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void world_ok(const world *w, snug_status status) {
    if (status != SNUG_OK)
        print_error("%s: %s\n", snug_status_name(status), w->err.text);
    assert_int_equal(status, SNUG_OK);
}

void world_open(world *w) {
    memset(w, 0, sizeof *w);
    world_ok(w, snug_engine_create(&(snug_engine_options){.n_threads = 2}, &w->engine, &w->err));
    w->empty_bytes = snug_engine_bytes(w->engine);
    sn_cpu_device_init(&w->device, 2, false);
    sn_cpu_device_init(&w->second, 1, true);
    w->second.device.name = "host:1";
    w->n_devices = 1;
    world_ok(w, sn_graph_create(w->engine, &w->graph, &w->err));
    for (int i = 0; i < WORLD_MAX_INPUTS; i++)
        w->arrays[i].fail_at = -1;
}

void world_unprepare(world *w) {
    sn_executor_destroy(w->executor);
    sn_state_destroy(w->state);
    w->executor = NULL;
    w->session = NULL;
    w->state = NULL;
}

void world_close(world *w) {
    world_unprepare(w);
    sn_plan_destroy(w->plan);
    sn_graph_destroy(w->graph);
    assert_int_equal(snug_engine_bytes(w->engine), w->empty_bytes);
    snug_engine_destroy(w->engine);
}

snug_type world_type(snug_dtype dtype, int rank, const int64_t *dims) {
    snug_type type = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        type.dims[i] = dims[i];
    return type;
}

static snug_status fill_array(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                              snug_error *err) {
    world_array *a = ctx;
    if (a->n_fills++ == a->fail_at)
        return sn_fail(err, SNUG_E_IO, "the disk is gone");
    (void)n_rows;
    memcpy(dst->data, (const char *)a->data + (size_t)first_row * a->row_bytes, dst->bytes);
    return SNUG_OK;
}

sn_value world_input(world *w, const char *name, const snug_type *type, const void *data) {
    const uint32_t i = sn_graph_n_inputs(w->graph);
    sn_value v = SN_NO_VALUE;
    size_t bytes;
    assert_true(i < WORLD_MAX_INPUTS);
    world_ok(w, sn_graph_input(w->graph, name, type, &v, &w->err));
    world_ok(w, snug_type_bytes(type, &bytes, &w->err));
    w->arrays[i].data = data;
    w->arrays[i].row_bytes =
        type->rank > 0 && type->dims[0] > 0 ? bytes / (size_t)type->dims[0] : 0;
    return v;
}

sn_value world_variable(world *w, const char *name, const snug_type *type, double value) {
    const sn_variable var = {.name = name,
                             .type = *type,
                             .home = sn_graph_n_vars(w->graph),
                             .trainable = true,
                             .init = {.kind = SN_RECIPE_CONSTANT, .a = value}};
    sn_value v = SN_NO_VALUE;
    world_ok(w, sn_graph_variable(w->graph, &var, &v, &w->err));
    return v;
}

/* 16 rows: t = 2 x0 - x1 + 0.5 x2 + 1 on small integers */
static const float xs[16][3] = {{1, 0, 2}, {0, 1, 1}, {2, 1, 0}, {1, 1, 1}, {0, 0, 1}, {1, 2, 0},
                                {2, 0, 1}, {0, 2, 2}, {1, 0, 0}, {0, 1, 0}, {2, 2, 1}, {1, 2, 2},
                                {0, 0, 2}, {2, 1, 2}, {1, 1, 0}, {0, 2, 1}};
static const float ts[16] = {4, .5f, 4, 2.5f, 1.5f, 1, 5.5f, 0, 3, 0, 3.5f, 2, 2, 5, 2, -.5f};

static void add_sgd(world *w, sn_builder *b, sn_value var, sn_value grad) {
    sn_attrs a;
    const sn_value in[2] = {var, grad};
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = sn_build_param(b, "learning_rate", 0.1).i;
    a.sgd.momentum = sn_build_param(b, "", 0).i;
    (void)w;
    (void)sn_build(b, SN_OP_sgd, &a, in, 2);
}

void world_regression(world *w, int64_t rows) {
    assert_true(rows <= 16);
    const snug_type tx = world_type(SNUG_F32, 2, (int64_t[]){rows, 3}),
                    tt = world_type(SNUG_F32, 2, (int64_t[]){rows, 1});
    const snug_type tw = world_type(SNUG_F32, 2, (int64_t[]){3, 1}),
                    tb = world_type(SNUG_F32, 1, (int64_t[]){1});
    const sn_value x = world_input(w, "x", &tx, xs), t = world_input(w, "t", &tt, ts);
    const sn_value wrt[2] = {world_variable(w, "w", &tw, 0.25), world_variable(w, "b", &tb, 0)};
    sn_value grads[2];
    world_ok(w, sn_graph_set_owner(w->graph, "dense", &w->err));
    sn_builder b = sn_builder_on(w->graph);
    const sn_value y = sn_build_matmul(&b, x, wrt[0], wrt[1]);
    const sn_value loss = sn_build_mean(&b, sn_build_square(&b, sn_build_sub(&b, y, t)), 0, false);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_gradients(w->graph, loss, wrt, 2, grads, &w->err));
    sn_graph_set_part(w->graph, SN_PART_UPDATE);
    for (int i = 0; i < 2; i++)
        add_sgd(w, &b, wrt[i], grads[i]);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_output(w->graph, "loss", loss, &w->err));
}

static snug_status try_state(world *w) {
    SNUG_TRY(sn_state_create(w->engine, &w->state, &w->err));
    for (uint32_t i = 0; i < sn_graph_n_vars(w->graph); i++) {
        const sn_variable *v = sn_graph_var_at(w->graph, (sn_var){i});
        const sn_home home = {.name = v->name,
                              .type = v->type,
                              .trainable = v->trainable,
                              .slot = v->slot,
                              .init = v->init};
        uint32_t id;
        SNUG_TRY(sn_state_add(w->state, &home, &id, &w->err));
        assert_int_equal(id, v->home);
    }
    return SNUG_OK;
}

void world_state(world *w) {
    world_ok(w, try_state(w));
}

void world_plan(world *w) {
    const sn_device *devices[2] = {&w->device.device, &w->second.device};
    const sn_plan_options o = {.devices = devices, .n_devices = w->n_devices};
    world_ok(w, sn_plan_build(w->engine, w->graph, &o, &w->plan, &w->err));
}

snug_status world_try_parse(world *w, const char *text) {
    const sn_device *devices[2] = {&w->device.device, &w->second.device};
    return sn_plan_parse(w->engine, w->graph, text, devices, w->n_devices, &w->plan, &w->err);
}

void world_parse(world *w, const char *text) {
    world_ok(w, world_try_parse(w, text));
}

sn_input_binding world_binding(world *w, uint32_t input) {
    return (sn_input_binding){.ctx = &w->arrays[input], .fill = fill_array};
}

snug_status world_try_prepare(world *w, const sn_executor_options *o) {
    const sn_device *devices[2] = {&w->device.device, &w->second.device};
    SNUG_TRY(try_state(w));
    SNUG_TRY(
        sn_executor_create(w->engine, w->state, devices, w->n_devices, o, &w->executor, &w->err));
    SNUG_TRY(sn_executor_add(w->executor, w->plan, &w->session, &w->err));
    for (uint32_t i = 0; i < sn_graph_n_inputs(w->graph); i++)
        sn_session_bind_input(w->session, i, world_binding(w, i));
    return sn_executor_prepare(w->executor, &w->err);
}

void world_prepare(world *w, const sn_executor_options *o) {
    world_ok(w, world_try_prepare(w, o));
}

void world_run(world *w) {
    world_ok(w, sn_session_run(w->session, &w->err));
}

void world_naive(world *w, sn_state *state, snug_view *outputs, bool write_state) {
    sn_input_binding inputs[WORLD_MAX_INPUTS];
    for (uint32_t i = 0; i < sn_graph_n_inputs(w->graph); i++)
        inputs[i] = world_binding(w, i);
    const sn_naive_options o = {.reference_only = w->device.reference_only,
                                .inputs = inputs,
                                .outputs = outputs,
                                .write_state = write_state};
    world_ok(w, sn_naive_run(w->engine, w->graph, state, &o, &w->err));
}

float world_scalar(const world *w, const char *output) {
    uint32_t i;
    snug_error err;
    snug_view view;
    float value;
    assert_int_equal(sn_graph_find_output(w->graph, output, &i, &err), SNUG_OK);
    sn_session_output(w->session, i, &view);
    assert_int_equal(view.bytes, sizeof value);
    memcpy(&value, view.data, sizeof value);
    return value;
}

static size_t home_bytes(const sn_state *state, uint32_t i) {
    size_t n;
    snug_error err;
    assert_int_equal(snug_type_bytes(&sn_state_home(state, i)->type, &n, &err), SNUG_OK);
    return n;
}

size_t world_state_bytes(const sn_state *state) {
    size_t sum = 0;
    for (uint32_t i = 0; i < sn_state_count(state); i++)
        sum += home_bytes(state, i);
    return sum;
}

unsigned char *world_variables(const world *w, sn_state *state, size_t *bytes) {
    unsigned char *copy = malloc(world_state_bytes(state) + 1);
    size_t at = 0;
    assert_non_null(copy);
    for (uint32_t i = 0; i < sn_state_count(state); i++) {
        const size_t n = home_bytes(state, i);
        snug_error err;
        assert_int_equal(sn_state_read(state, i, 0, n, copy + at, &err), SNUG_OK);
        at += n;
    }
    (void)w;
    if (bytes)
        *bytes = at;
    return copy;
}

static void compare_outputs(const world *w, const snug_view *wanted) {
    for (uint32_t k = 0; k < sn_graph_n_outputs(w->graph); k++) {
        snug_view got;
        sn_session_output(w->session, k, &got);
        assert_true(got.bytes > 0 && got.bytes <= wanted[k].bytes);
        assert_memory_equal(got.data, wanted[k].data, got.bytes);
    }
}

static void compare_variables(const world *w, sn_state *planned, sn_state *naive) {
    size_t n;
    unsigned char *a = world_variables(w, planned, &n), *b = world_variables(w, naive, NULL);
    if (n > 0)
        assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

void world_run_and_compare(world *w, int n_runs) {
    enum { MAX_OUTPUTS = 4, OUTPUT_BYTES = 1 << 16 };
    sn_state *planned = w->state;
    snug_view wanted[MAX_OUTPUTS];
    unsigned char *bytes = malloc(MAX_OUTPUTS * OUTPUT_BYTES);
    assert_non_null(bytes);
    assert_true(sn_graph_n_outputs(w->graph) <= MAX_OUTPUTS);
    for (size_t k = 0; k < MAX_OUTPUTS; k++)
        wanted[k] = (snug_view){.data = bytes + k * OUTPUT_BYTES, .bytes = OUTPUT_BYTES};
    world_state(w);
    sn_state *naive = w->state;
    w->state = planned;
    for (int run = 0; run < n_runs; run++) {
        world_naive(w, naive, wanted, true);
        world_run(w);
        compare_outputs(w, wanted);
        compare_variables(w, planned, naive);
    }
    sn_state_destroy(naive);
    free(bytes);
}

void world_falls(world *w, int steps, float part) {
    sn_graph *fused;
    world_ok(w, sn_graph_fuse(w->graph, &fused, &w->err));
    sn_graph_destroy(w->graph);
    w->graph = fused;
    world_plan(w);
    world_prepare(w, NULL);
    world_run(w);
    const float first = world_scalar(w, "loss");
    for (int step = 0; step < steps; step++)
        world_run(w);
    const float last = world_scalar(w, "loss");
    if (!(last < part * first))
        fail_msg("the loss was %g, and after %d steps %g", (double)first, steps, (double)last);
}
