/* test_exec_plans.c: plans written by hand, with everything the planner does not use yet: repeat
 * blocks with a shorter last slice, accumulation, three queues with waits, two host memories posing
 * as two devices, recompute. Each is parsed, checked, executed and compared with the naive
 * executor. Numbers are small integers where sums are reordered, so that equal means equal in every
 * bit. Byte limit: each test below 64 KiB of tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/inside.h"
#include "support/world.h"

#define N_ROWS 10

static const float xs[N_ROWS][3] = {{1, -2, 3}, {0, 4, -1}, {2, 2, -5}, {-3, 1, 1}, {6, -1, 0},
                                    {1, 1, 1},  {-4, 0, 2}, {3, -3, 3}, {5, 2, -2}, {0, -1, 7}};
static const float ds[N_ROWS][2] = {{1, 2}, {-1, 0}, {3, 1}, {0, -2}, {1, 1},
                                    {2, 0}, {-3, 1}, {1, 4}, {0, 1},  {-1, -1}};

/* Plain kernels: their implementation has one name on every machine and needs no scratch. */
static void open_reference(world *w, int n_devices) {
    world_open(w);
    sn_cpu_device_init(&w->device, 1, true);
    w->n_devices = n_devices;
}

static sn_value input_of(world *w, const char *name, int64_t rows, int64_t columns,
                         const void *data) {
    const snug_type type = world_type(SNUG_F32, 2, (int64_t[]){rows, columns});
    return world_input(w, name, &type, data);
}

static const sn_executor_options strict = {.guard = true, .poison = 0xA5, .poison_set = true};

/* --- repeat blocks -------------------------------------------------------------------------- */

/* %0 x, %1 d, %2 w; n0 relu(x) -> %3; n1 x'd -> %4; n2 dropout(x) -> %5; n3 w -= rate * %4 -> %6 */
static void build_accumulation(world *w) {
    const sn_value x = input_of(w, "x", N_ROWS, 3, xs), d = input_of(w, "d", N_ROWS, 2, ds);
    const snug_type type = world_type(SNUG_F32, 2, (int64_t[]){3, 2});
    const sn_value var = world_variable(w, "w", &type, 1);
    sn_builder b = sn_builder_on(w->graph);
    const sn_value r = sn_build_relu(&b, x);
    const sn_value grad = sn_build_matmul_t(&b, r, d, true, false);
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.rate = sn_build_param(&b, "rate", 0.5).i;
    a.dropout.key = sn_build_key(&b, "key", 7).i;
    const sn_value drop = sn_build(&b, SN_OP_dropout, &a, &x, 1);
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = sn_build_param(&b, "learning_rate", 0.5).i;
    a.sgd.momentum = sn_build_param(&b, "", 0).i;
    (void)sn_build(&b, SN_OP_sgd, &a, (sn_value[]){var, grad}, 2);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_output(w->graph, "grad", grad, &w->err));
    world_ok(w, sn_graph_output(w->graph, "drop", drop, &w->err));
}

static const char accumulation[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 24 used 24 bound 24 name state\n"
    "memory 1 device 0 bytes 320 used 280 bound 280 name arena\n"
    "total flops 0 code 0 peak s5\n"
    "s0 repeat 3 rows 4 last 2\n"
    "s1 feed 0 -> %0@1+128 rows 0:0:4 on 0.0 name x\n"
    "s2 feed 1 -> %1@1+192 rows 0:0:4 on 0.0 name d\n"
    "s3 run n2 dropout v0 (%0@1+128 rows 0:0:4) -> (%5@1+0+48 rows 0:0:4) on 0.0 impl reference\n"
    "s4 run n0 relu v0 (%0@1+128 rows 0:0:4) -> (%3@1+128 rows 0:0:4) on 0.0 impl reference\n"
    "s5 run n1 matmul v0 (%3@1+128 rows 0:0:4 %1@1+192 rows 0:0:4) -> (%4@1+256)"
    " on 0.0 acc add_later impl reference\n"
    "s6 end\n"
    "s7 run n3 sgd v0 (%2@state %4@1+256) -> (%6@state) on 0.0 impl reference\n"
    "output 0 %4@1+256\n"
    "output 1 %5@1+0\n"
    "end plan\n";

static void test_repeat_with_shorter_last_slice_accumulates(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    build_accumulation(&w);
    world_parse(&w, accumulation);
    world_prepare(&w, &strict);
    world_run_and_compare(&w, 3);
    world_close(&w);
}

static void test_repeat_asks_feeds_slice_by_slice(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    build_accumulation(&w);
    world_parse(&w, accumulation);
    world_prepare(&w, NULL);
    world_run(&w);
    assert_int_equal(w.arrays[0].n_fills, 3);
    assert_int_equal(w.arrays[1].n_fills, 3);
    world_close(&w);
}

static void test_repeat_requests_no_memory_and_starts_no_thread(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    build_accumulation(&w);
    world_parse(&w, accumulation);
    world_prepare(&w, NULL);
    sn_fault_memory(w.engine, INT64_MAX, false);
    world_run(&w);
    world_run(&w);
    assert_int_equal(sn_fault_memory_requests(w.engine), 0);
    sn_fault_memory(w.engine, -1, false);
    assert_false(w.executor->crew.made);
    world_close(&w);
}

/* A failure in iteration 1 comes before the update, so nothing is torn. */
static void test_failure_inside_a_block_leaves_variables(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    build_accumulation(&w);
    world_parse(&w, accumulation);
    world_prepare(&w, NULL);
    size_t n;
    unsigned char *before = world_variables(&w, w.state, &n);
    w.arrays[1].fail_at = 1;
    assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_IO);
    assert_string_equal(w.err.text, "input 'd': the disk is gone");
    unsigned char *after = world_variables(&w, w.state, NULL);
    assert_memory_equal(before, after, n);
    assert_false(sn_state_torn(w.state));
    free(before);
    free(after);
    world_run(&w);
    world_close(&w);
}

/* The fast kernels are prepared for both heights: 2 images a slice, 1 in the last. */
static void test_repeat_prepares_kernels_for_both_heights(void **unused) {
    (void)unused;
    static float images[5][6][6][4];
    for (size_t i = 0; i < sizeof images / sizeof(float); i++)
        ((float *)images)[i] = (float)(i % 7) - 3;
    world w;
    world_open(&w);
    const snug_type tx = world_type(SNUG_F32, 4, (int64_t[]){5, 6, 6, 4});
    const snug_type tk = world_type(SNUG_F32, 4, (int64_t[]){3, 3, 4, 8});
    const sn_value in[2] = {world_input(&w, "x", &tx, images),
                            world_variable(&w, "kernel", &tk, 0.5)};
    sn_builder b = sn_builder_on(w.graph);
    const sn_value y = sn_build(&b, SN_OP_conv2d, NULL, in, 2);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "y", y, &w.err));

    sn_opdesc desc;
    sn_variant v = {0};
    sn_graph_desc(w.graph, (sn_node){0}, &desc);
    desc.in[0].dims[0] = desc.out[0].dims[0] = 2;
    world_ok(&w, w.device.device.describe(&w.device.device, &desc, &v, &w.err));
    /* y whole: 5 * 512 bytes at 0; x slice: 1152 bytes at 2560; workspace behind it, at 3712 */
    const size_t used = v.workspace_bytes > 0 ? 3712 + v.workspace_bytes : 2560 + 1152;
    char text[2048], ws[64] = "";
    if (v.workspace_bytes > 0)
        snprintf(ws, sizeof ws, " ws 1+3712:%zu", v.workspace_bytes);
    snprintf(text, sizeof text,
             "snug plan 1\n"
             "device 0 align 64 name cpu:0\n"
             "memory 0 device 0 bytes 1152 used 1152 bound 1152 name state\n"
             "memory 1 device 0 bytes %zu used %zu bound %zu name arena\n"
             "total flops 0 code 0 peak s2\n"
             "s0 repeat 3 rows 2 last 1\n"
             "s1 feed 0 -> %%0@1+2560 rows 0:0:2 on 0.0 name x\n"
             "s2 run n0 conv2d v%d (%%0@1+2560 rows 0:0:2 %%1@state) -> (%%2@1+0+1024 rows 0:0:2)"
             "%s on 0.0 impl %s\n"
             "s3 end\n"
             "output 0 %%2@1+0\n"
             "end plan\n",
             (used + 63) / 64 * 64, used, used, v.id, ws, v.impl);
    world_parse(&w, text);
    world_prepare(&w, &strict);
    world_run_and_compare(&w, 2);
    world_close(&w);
}

/* --- queues --------------------------------------------------------------------------------- */

/* %0 x; n0 relu(x) -> %1. Slices come in on one queue and go out, into the whole, on another. */
static const char three_queues[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
    "memory 1 device 0 bytes 256 used 248 bound 248 name arena\n"
    "total flops 0 code 0 peak s2\n"
    "s0 repeat 3 rows 4 last 2\n"
    "s1 feed 0 -> %0@1+0 rows 0:0:4 on 0.1 name x\n"
    "s2 run n0 relu v0 (%0@1+0 rows 0:0:4) -> (%1@1+64 rows 0:0:4) on 0.0 wait s1 impl reference\n"
    "s3 copy %1@1+64 rows 0:0:4 -> %1@1+128+48 rows 0:0:4 on 0.2 wait s2\n"
    "s4 end\n"
    "output 0 %1@1+128\n"
    "end plan\n";

static void open_three_queues(world *w) {
    open_reference(w, 1);
    const sn_value x = input_of(w, "x", N_ROWS, 3, xs);
    sn_builder b = sn_builder_on(w->graph);
    const sn_value r = sn_build_relu(&b, x);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_output(w->graph, "r", r, &w->err));
    world_parse(w, three_queues);
    world_prepare(w, &strict);
}

static void test_queues_run_in_the_order_of_their_waits(void **unused) {
    (void)unused;
    world w;
    open_three_queues(&w);
    assert_int_equal(w.executor->crew.n_live, 2);
    world_run_and_compare(&w, 200);
    world_close(&w);
}

/* As kernels do without their team, copy queues do without their threads. */
static void test_the_child_of_a_fork_runs_all_queues_itself(void **unused) {
    (void)unused;
#ifdef __SANITIZE_THREAD__
    skip(); /* it knows no child that starts threads */
#endif
    world w;
    open_three_queues(&w);
    world_run_and_compare(&w, 1);
    const pid_t child = fork();
    if (child == 0) {
        world_run_and_compare(&w, 3);
        world_unprepare(&w); /* forgets the threads, joins none */
        world_prepare(&w, &strict);
        assert_int_equal(w.executor->crew.n_live, 2); /* its own */
        world_run_and_compare(&w, 3);
        world_close(&w); /* every byte came back */
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    world_run_and_compare(&w, 3);
    world_close(&w);
}

static void test_queues_request_no_memory_in_a_run(void **unused) {
    (void)unused;
    world w;
    open_three_queues(&w);
    sn_fault_memory(w.engine, INT64_MAX, false);
    for (int i = 0; i < 20; i++)
        world_run(&w);
    assert_int_equal(sn_fault_memory_requests(w.engine), 0);
    sn_fault_memory(w.engine, -1, false);
    world_close(&w);
}

/* The feed fails on its own thread, in each iteration in turn; the caller gets its error. */
static void test_error_on_a_copy_queue_stops_all_and_the_next_run_works(void **unused) {
    (void)unused;
    world w;
    open_three_queues(&w);
    for (int at = 0; at < 60; at++) {
        w.arrays[0].n_fills = 0;
        w.arrays[0].fail_at = at % 3;
        assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_IO);
        assert_string_equal(w.err.text, "input 'x': the disk is gone");
        assert_int_equal(w.arrays[0].n_fills, at % 3 + 1);
        w.arrays[0].fail_at = -1;
        world_run_and_compare(&w, 1);
    }
    world_close(&w);
}

static bool stop_at_zero(void *ctx) {
    int *countdown = ctx;
    return (*countdown)-- == 0;
}

static void test_interrupt_stops_copy_queues_too(void **unused) {
    (void)unused;
    world w;
    open_three_queues(&w);
    for (int at = 0; at < 3; at++) {
        int countdown = at;
        sn_session_set_interrupt(w.session, stop_at_zero, &countdown);
        assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_INTERRUPTED);
        sn_session_set_interrupt(w.session, NULL, NULL);
        world_run_and_compare(&w, 1);
    }
    world_close(&w);
}

static void test_plan_that_does_not_wait_is_refused(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    const sn_value x = input_of(&w, "x", N_ROWS, 3, xs);
    sn_builder b = sn_builder_on(w.graph);
    const sn_value r = sn_build_relu(&b, x);
    world_ok(&w, sn_graph_output(w.graph, "r", r, &w.err));
    char text[sizeof three_queues];
    memcpy(text, three_queues, sizeof text);
    char *wait = strstr(text, " wait s1");
    memmove(wait, wait + strlen(" wait s1"), strlen(wait + strlen(" wait s1")) + 1);
    assert_int_equal(world_try_parse(&w, text), SNUG_E_INVALID);
    world_close(&w);
}

/* --- devices -------------------------------------------------------------------------------- */

/* %0 x, %1 w; n0 x w -> %2; n1 square -> %3; n2 tanh -> %4; n3 add -> %5. The product and its
 * square are made on host:1, what is copied there and back goes over its two copy queues. */
static const char two_devices[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "device 1 align 64 name host:1\n"
    "memory 0 device 0 bytes 24 used 24 bound 24 name state\n"
    "memory 1 device 0 bytes 512 used 464 bound 464 name arena\n"
    "memory 2 device 1 bytes 448 used 400 bound 400 name arena 1\n"
    "total flops 0 code 0 peak s3\n"
    "s0 feed 0 -> %0@1+0 on 0.1 name x\n"
    "s1 copy %0@1+0 -> %0@2+0 on 1.1 wait s0\n"
    "s2 copy %1@state -> %1@2+128 on 1.1\n"
    "s3 run n0 matmul v0 (%0@2+0 %1@2+128) -> (%2@2+192) on 1.0 wait s2 impl reference\n"
    "s4 copy %2@2+192 -> %2@1+128 on 1.2 wait s3\n"
    "s5 run n2 tanh v0 (%2@1+128) -> (%4@1+128) on 0.0 wait s4 impl reference\n"
    "s6 run n1 square v0 (%2@2+192) -> (%3@2+320) on 1.0 impl reference\n"
    "s7 copy %3@2+320 -> %3@1+256 on 1.2 wait s6\n"
    "s8 run n3 add v0 (%3@1+256 %4@1+128) -> (%5@1+384) on 0.0 wait s7 impl reference\n"
    "output 0 %5@1+384\n"
    "end plan\n";

static void build_two_devices(world *w) {
    const sn_value x = input_of(w, "x", N_ROWS, 3, xs);
    const snug_type type = world_type(SNUG_F32, 2, (int64_t[]){3, 2});
    const sn_value var = world_variable(w, "w", &type, 0.25);
    sn_builder b = sn_builder_on(w->graph);
    const sn_value y = sn_build_matmul(&b, x, var, SN_NO_VALUE);
    const sn_value square = sn_build_square(&b, y);
    const sn_value sum = sn_build_add(&b, square, sn_build_tanh(&b, y));
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_output(w->graph, "sum", sum, &w->err));
}

static void test_two_host_memories_pose_as_two_devices(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 2);
    build_two_devices(&w);
    world_parse(&w, two_devices);
    world_prepare(&w, &strict);
    assert_int_equal(sn_executor_arena(w.executor, 1).bytes, 512);
    assert_int_equal(sn_executor_arena(w.executor, 2).bytes, 448);
    assert_int_equal(w.executor->crew.n_live, 3);
    world_run_and_compare(&w, 100);
    world_close(&w);
}

/* --- recompute, torn state -------------------------------------------------------------------- */

/* %0 x; n0 exp(x) -> %1; n1 square(%1) -> %2 over %1; n2 %1 + %2 -> %3: %1 is made a second
 * time. */
static void test_a_node_can_be_computed_again(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    const sn_value x = input_of(&w, "x", N_ROWS, 3, xs);
    sn_builder b = sn_builder_on(w.graph);
    const sn_value e = sn_build_exp(&b, x);
    const sn_value sum = sn_build_add(&b, e, sn_build_square(&b, e));
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "sum", sum, &w.err));
    world_parse(&w, "snug plan 1\n"
                    "device 0 align 64 name cpu:0\n"
                    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
                    "memory 1 device 0 bytes 256 used 248 bound 248 name arena\n"
                    "total flops 0 code 0 peak s1\n"
                    "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
                    "s1 run n0 exp v0 (%0@1+0) -> (%1@1+128) on 0.0 impl reference\n"
                    "s2 run n1 square v0 (%1@1+128) -> (%2@1+128) on 0.0 impl reference\n"
                    "s3 run n0 exp v0 (%0@1+0) -> (%1@1+0) on 0.0 impl reference\n"
                    "s4 run n2 add v0 (%1@1+0 %2@1+128) -> (%3@1+0) on 0.0 impl reference\n"
                    "output 0 %3@1+0\n"
                    "end plan\n");
    world_prepare(&w, &strict);
    world_run_and_compare(&w, 2);
    world_close(&w);
}

/* %0 x, %1 y, %2 v; n0 v = x -> %3; n1 relu(y) -> %4. y is fed after v was written. */
static void test_failure_after_a_state_write_tears_the_state(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 1);
    const sn_value x = input_of(&w, "x", 2, 3, xs), y = input_of(&w, "y", 2, 3, xs);
    const snug_type type = world_type(SNUG_F32, 2, (int64_t[]){2, 3});
    const sn_value v = world_variable(&w, "v", &type, 0);
    sn_builder b = sn_builder_on(w.graph);
    (void)sn_build(&b, SN_OP_assign, NULL, (sn_value[]){v, x}, 2);
    const sn_value r = sn_build_relu(&b, y);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "r", r, &w.err));
    world_parse(&w, "snug plan 1\n"
                    "device 0 align 64 name cpu:0\n"
                    "memory 0 device 0 bytes 24 used 24 bound 24 name state\n"
                    "memory 1 device 0 bytes 64 used 24 bound 24 name arena\n"
                    "total flops 0 code 0 peak s0\n"
                    "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
                    "s1 run n0 assign v0 (%2@state %0@1+0) -> (%3@state) on 0.0 impl reference\n"
                    "s2 feed 1 -> %1@1+0 on 0.0 name y\n"
                    "s3 run n1 relu v0 (%1@1+0) -> (%4@1+0) on 0.0 impl reference\n"
                    "output 0 %4@1+0\n"
                    "end plan\n");
    world_prepare(&w, &strict);
    w.arrays[1].fail_at = 0;
    assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_IO);
    assert_true(sn_state_torn(w.state));
    assert_int_equal(sn_session_run(w.session, &w.err), SNUG_E_TORN);
    int countdown = 2; /* after the write nobody asks: the run is not stopped */
    sn_session_set_interrupt(w.session, stop_at_zero, &countdown);
    sn_state_mend(w.state);
    world_run(&w);
    assert_int_equal(countdown, 0);
    assert_false(sn_state_torn(w.state));
    sn_session_set_interrupt(w.session, NULL, NULL);
    world_run_and_compare(&w, 1);
    world_close(&w);
}

/* Request N = 0, 1, 2, ... fails: threads started before it are joined, every byte comes back. */
static void test_faults_with_threads_leave_nothing_behind(void **unused) {
    (void)unused;
    world w;
    open_reference(&w, 2);
    build_two_devices(&w);
    world_parse(&w, two_devices);
    const size_t held = snug_engine_bytes(w.engine);
    int64_t n = 0;
    for (bool through = false; !through; n++) {
        sn_fault_memory(w.engine, n, false);
        const snug_status status = world_try_prepare(&w, NULL);
        through = !sn_fault_fired(w.engine);
        sn_fault_memory(w.engine, -1, false);
        assert_int_equal(status, through ? SNUG_OK : SNUG_E_MEMORY);
        world_unprepare(&w);
        assert_int_equal(snug_engine_bytes(w.engine), held);
    }
    assert_true(n > 10);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeat_with_shorter_last_slice_accumulates),
        cmocka_unit_test(test_repeat_asks_feeds_slice_by_slice),
        cmocka_unit_test(test_repeat_requests_no_memory_and_starts_no_thread),
        cmocka_unit_test(test_failure_inside_a_block_leaves_variables),
        cmocka_unit_test(test_repeat_prepares_kernels_for_both_heights),
        cmocka_unit_test(test_queues_run_in_the_order_of_their_waits),
        cmocka_unit_test(test_the_child_of_a_fork_runs_all_queues_itself),
        cmocka_unit_test(test_queues_request_no_memory_in_a_run),
        cmocka_unit_test(test_error_on_a_copy_queue_stops_all_and_the_next_run_works),
        cmocka_unit_test(test_interrupt_stops_copy_queues_too),
        cmocka_unit_test(test_plan_that_does_not_wait_is_refused),
        cmocka_unit_test(test_two_host_memories_pose_as_two_devices),
        cmocka_unit_test(test_a_node_can_be_computed_again),
        cmocka_unit_test(test_failure_after_a_state_write_tears_the_state),
        cmocka_unit_test(test_faults_with_threads_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
