/* test_exec_spill.c: plans that keep bytes in files, executed: values and slots that were spilled
 * are the same in every bit as without; every failing call of the I/O table ends in a clean error,
 * torn only where a variable was written; no descriptor, thread or byte stays behind. Byte limit:
 * each test below 64 MiB of tensors. */
#include "support/support.h"

#include "exec/inside.h"
#include "support/world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_ROWS = 2048 };
static float gs[N_ROWS][2];

typedef struct {
    world w;
    sn_test_dir dir;
    sn_executor_options options;
    int n_descriptors, n_threads;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    for (int i = 0; i < N_ROWS * 2; i++)
        ((float *)gs)[i] = (float)(i % 13 - 6) / 8;
    sn_test_dir_begin(&f->dir);
    f->n_descriptors = sn_test_entries("/proc/self/fd");
    f->n_threads = sn_test_entries("/proc/self/task");
    f->options = (sn_executor_options){
        .guard = true, .poison = 0xA5, .poison_set = true, .spill_folder = f->dir.path};
    world_open(&f->w);
    sn_cpu_device_init(&f->w.device, 1, true); /* one name on every machine, no scratch */
    *state = f;
    return 0;
}

static void expect_nothing_left(const fixture *f) {
    assert_int_equal(sn_test_entries("/proc/self/fd"), f->n_descriptors);
    assert_int_equal(sn_test_entries("/proc/self/task"), f->n_threads);
    assert_int_equal(sn_test_dir_count(&f->dir), 0);
}

static int teardown(void **state) {
    fixture *f = *state;
    world_close(&f->w);
    expect_nothing_left(f);
    sn_test_dir_end(&f->dir);
    free(f);
    return 0;
}
#define spill_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* --- graphs and plans ------------------------------------------------------------------------- */

/* %0 g; n0 exp(g) -> %1; n1 tanh(%1) -> %2; n2 %1 + %2 -> %3; all 2048 x 2. */
static void build_values(world *w) {
    const snug_type type = world_type(SNUG_F32, 2, (int64_t[]){N_ROWS, 2});
    const sn_value g = world_input(w, "g", &type, gs);
    sn_builder b = sn_builder_on(w->graph);
    const sn_value e = sn_build_exp(&b, g);
    const sn_value sum = sn_build_add(&b, e, sn_build_tanh(&b, e));
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_output(w->graph, "sum", sum, &w->err));
}

/* The stage at 16448 is not at a page, the place at 0 is one unless a guard moves the arena. */
static const char values[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
    "memory 1 device 0 bytes 32832 used 32832 bound 32768 name arena\n"
    "memory 2 device 0 bytes 20480 used 20480 bound 16384 file name spill\n"
    "total flops 0 code 0 peak s1\n"
    "s0 feed 0 -> %0@1+0 on 0.0 name g\n"
    "s1 run n0 exp v0 (%0@1+0) -> (%1@1+16448) on 0.0 impl reference\n"
    "s2 copy %1@1+16448 -> %1@2+4096 on 0.2 wait s1\n"
    "s3 run n1 tanh v0 (%1@1+16448) -> (%2@1+16448) on 0.0 wait s2 impl reference\n"
    "s4 copy %1@2+4096 -> %1@1+0 on 0.1 wait s2 s3\n"
    "s5 run n2 add v0 (%1@1+0 %2@1+16448) -> (%3@1+0) on 0.0 wait s4 impl reference\n"
    "output 0 %3@1+0\n"
    "end plan\n";

/* exp(g) goes to the file slice by slice, each to its own page, the last one shorter. */
static const char slices[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
    "memory 1 device 0 bytes 32768 used 32768 bound 32768 name arena\n"
    "memory 2 device 0 bytes 24576 used 20864 bound 24576 file name spill\n"
    "total flops 0 code 0 peak s1\n"
    "s0 repeat 6 rows 400 last 48\n"
    "s1 feed 0 -> %0@1+0 rows 0:0:400 on 0.1 name g\n"
    "s2 run n0 exp v0 (%0@1+0 rows 0:0:400) -> (%1@1+3200 rows 0:0:400) on 0.0 wait s1 impl "
    "reference\n"
    "s3 copy %1@1+3200 rows 0:0:400 -> %1@2+0+4096 rows 0:0:400 on 0.2 wait s2\n"
    "s4 end\n"
    "s5 repeat 6 rows 400 last 48\n"
    "s6 copy %1@2+0+4096 rows 0:0:400 -> %1@1+0+3200 rows 0:0:400 on 0.1\n"
    "s7 end\n"
    "s8 run n1 tanh v0 (%1@1+0) -> (%2@1+16384) on 0.0 impl reference\n"
    "s9 run n2 add v0 (%1@1+0 %2@1+16384) -> (%3@1+0) on 0.0 impl reference\n"
    "output 0 %3@1+0\n"
    "end plan\n";

/* %0 g, %1 w, %2 m (a slot); n0 sgd_momentum(w, m, g) -> %3, %4. */
static void build_update(world *w) {
    const snug_type type = world_type(SNUG_F32, 2, (int64_t[]){N_ROWS, 2});
    const sn_value g = world_input(w, "g", &type, gs), var = world_variable(w, "w", &type, 1);
    const sn_variable slot = {.name = "m",
                              .type = type,
                              .home = 1,
                              .slot = true,
                              .init = {.kind = SN_RECIPE_CONSTANT, .a = 0.25}};
    sn_value m, out[SN_MAX_OUT];
    sn_attrs a;
    world_ok(w, sn_graph_variable(w->graph, &slot, &m, &w->err));
    sn_builder b = sn_builder_on(w->graph);
    sn_attrs_default(SN_OP_sgd_momentum, &a);
    a.sgd.rate = sn_build_param(&b, "learning_rate", 0.5).i;
    a.sgd.momentum = sn_build_param(&b, "momentum", 0.5).i;
    sn_build_all(&b, SN_OP_sgd_momentum, &a, (sn_value[]){var, m, g}, 3, out);
    world_ok(w, sn_builder_done(&b, &w->err));
}

static const char resident[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 32768 used 32768 bound 32768 name state\n"
    "memory 1 device 0 bytes 16384 used 16384 bound 16384 name arena\n"
    "total flops 0 code 0 peak s0\n"
    "s0 feed 0 -> %0@1+0 on 0.0 name g\n"
    "s1 run n0 sgd_momentum v0 (%1@state %2@state %0@1+0) -> (%3@state %4@state) on 0.0 "
    "impl reference\n"
    "end plan\n";

static const char staged[] =
    "snug plan 1\n"
    "device 0 align 64 name cpu:0\n"
    "memory 0 device 0 bytes 16384 used 16384 bound 16384 name state\n"
    "memory 1 device 0 bytes 32768 used 32768 bound 32768 name arena\n"
    "spilled %2\n"
    "total flops 0 code 0 peak s0\n"
    "s0 feed 0 -> %0@1+0 on 0.0 name g\n"
    "s1 copy %2@state -> %2@1+16384 on 0.1\n"
    "s2 run n0 sgd_momentum v0 (%1@state %2@1+16384 %0@1+0) -> (%3@state %4@1+16384) on 0.0 wait "
    "s1 impl reference\n"
    "s3 copy %4@1+16384 -> %4@state on 0.2 wait s2\n"
    "end plan\n";

/* Four slices of a page through two stages of one: slice k comes in when slice k - 2 is out. */
static void print_pipeline(char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size,
                                "snug plan 1\n"
                                "device 0 align 64 name cpu:0\n"
                                "memory 0 device 0 bytes 16384 used 16384 bound 16384 name state\n"
                                "memory 1 device 0 bytes 24576 used 24576 bound 24576 name arena\n"
                                "spilled %%2\n"
                                "total flops 0 code 0 peak s0\n"
                                "s0 feed 0 -> %%0@1+0 on 0.0 name g\n");
    for (int k = 0; k < 4; k++) {
        const int stage = 16384 + k % 2 * 4096, in = 1 + 3 * k;
        char at[64], rows[32], wait[32] = "";
        snprintf(at, sizeof at, "+%d rows %d:0:512", k * 4096, k * 512);
        snprintf(rows, sizeof rows, " rows %d:0:512", k * 512);
        if (k >= 2)
            snprintf(wait, sizeof wait, " wait s%d", in - 4);
        n += (size_t)snprintf(
            text + n, size - n,
            "s%d copy %%2@state%s -> %%2@1+%d%s on 0.1%s\n"
            "s%d run n0 sgd_momentum v0 (%%1@state%s %%2@1+%d%s %%0@1%s) -> (%%3@state%s "
            "%%4@1+%d%s) on 0.0 wait s%d impl reference\n"
            "s%d copy %%4@1+%d%s -> %%4@state%s on 0.2 wait s%d\n",
            in, at, stage, rows, wait, in + 1, at, stage, rows, at, at, stage, rows, in, in + 2,
            stage, rows, at, in + 1);
    }
    snprintf(text + n, size - n, "end plan\n");
}

/* --- bit-equal -------------------------------------------------------------------------------- */

static void run_plan(fixture *f, const char *text) {
    world *w = &f->w;
    world_parse(w, text);
    world_prepare(w, &f->options);
    assert_int_equal(sn_test_dir_count(&f->dir), 0); /* files have no name */
    world_run_and_compare(w, 20);
    world_unprepare(w);
    f->options.guard = false; /* arenas begin at a page: some copies go straight to the disk */
    world_prepare(w, &f->options);
    world_run_and_compare(w, 20);
}

static void test_spilled_values_come_back_the_same(void **state) {
    fixture *f = *state;
    build_values(&f->w);
    run_plan(f, values);
    assert_int_equal(f->w.executor->crew.n_live, 2);
}

static void test_values_spilled_by_slices_come_back_the_same(void **state) {
    fixture *f = *state;
    build_values(&f->w);
    run_plan(f, slices);
}

static void test_spilled_slot_is_updated_in_a_stage(void **state) {
    fixture *f = *state;
    build_update(&f->w);
    run_plan(f, staged);
}

static void test_spilled_slot_is_updated_slice_by_slice(void **state) {
    fixture *f = *state;
    char text[4096];
    build_update(&f->w);
    print_pipeline(text, sizeof text);
    run_plan(f, text);
}

static void test_copies_to_files_request_no_memory(void **state) {
    fixture *f = *state;
    build_update(&f->w);
    world_parse(&f->w, staged);
    world_prepare(&f->w, &f->options);
    sn_fault_memory(f->w.engine, INT64_MAX, false);
    world_run(&f->w);
    assert_int_equal(sn_fault_memory_requests(f->w.engine), 0);
    sn_fault_memory(f->w.engine, -1, false);
}

/* --- where homes are -------------------------------------------------------------------------- */

static size_t slot_bytes(const snug_engine *e) {
    snug_memory_row rows[32];
    const size_t n = snug_engine_memory(e, rows, 32);
    for (size_t i = 0; i < n && i < 32; i++)
        if (strcmp(rows[i].category, "optimizer") == 0 && rows[i].owner[0] == '\0')
            return rows[i].bytes;
    return 0;
}

static void test_spilled_slots_take_no_memory_and_have_no_view(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    snug_view view;
    build_update(w);
    world_parse(w, staged);
    world_prepare(w, &f->options);
    assert_int_equal(slot_bytes(w->engine), 0);
    assert_int_equal(sn_state_view(w->state, 1, &view, &w->err), SNUG_E_INVALID);
    expect_text(w->err.text, "variable 'm' lies in the spill file");
    assert_int_equal(sn_state_spill(w->state, 0, f->dir.path, &w->err), SNUG_E_INVALID);
    expect_text(w->err.text, "variable 'w' is no slot");
}

/* A training goes on in memory where another, with a smaller budget, has left off in the file. */
static void test_homes_are_moved_with_their_values(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    const sn_device *devices[1] = {&w->device.device};
    sn_plan *plans[2];
    sn_session *s;
    build_update(w);
    world_ok(w, sn_plan_parse(w->engine, w->graph, staged, devices, 1, &plans[0], &w->err));
    world_ok(w, sn_plan_parse(w->engine, w->graph, resident, devices, 1, &plans[1], &w->err));
    world_state(w);
    sn_state *naive = w->state;
    world_state(w);
    world_ok(
        w, sn_executor_create(w->engine, w->state, devices, 1, &f->options, &w->executor, &w->err));
    for (int i = 0; i < 5; i++) { /* staged, resident, staged, ... */
        world_ok(w, sn_executor_add(w->executor, plans[i % 2], &s, &w->err));
        sn_session_bind_input(s, 0, world_binding(w, 0));
        world_ok(w, sn_executor_prepare(w->executor, &w->err));
        world_ok(w, sn_session_run(s, &w->err));
        world_naive(w, naive, NULL, true);
        assert_int_equal(slot_bytes(w->engine) > 0, 1); /* the naive state's */
        size_t n;
        unsigned char *a = world_variables(w, w->state, &n), *b = world_variables(w, naive, NULL);
        assert_memory_equal(a, b, n);
        free(a);
        free(b);
        sn_executor_remove(w->executor, s);
    }
    world_ok(w, sn_executor_add(w->executor, plans[0], &s, &w->err));
    world_ok(w, sn_executor_add(w->executor, plans[1], &s, &w->err));
    assert_int_equal(sn_executor_prepare(w->executor, &w->err), SNUG_E_INVALID);
    expect_text(w->err.text, "one plan has variable 'm' in the spill file, another in memory");
    sn_state_destroy(naive);
    world_unprepare(w);
    sn_plan_destroy(plans[0]);
    sn_plan_destroy(plans[1]);
}

/* 300,000 numbers: more than one piece, and the last not in whole blocks. */
static void test_initial_values_go_to_the_file_piece_by_piece(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    enum { N = 300001 };
    static float in_memory[N], in_file[N];
    const sn_home homes[3] = {
        {.name = "a",
         .type = world_type(SNUG_F32, 1, (int64_t[]){N}),
         .slot = true,
         .init = {.kind = SN_RECIPE_NORMAL, .a = 0, .b = 1, .key = 3}},
        {.name = "b", .type = world_type(SNUG_F32, 1, (int64_t[]){5}), .slot = true},
        {.name = "c", .type = world_type(SNUG_F32, 1, (int64_t[]){0}), .slot = true}};
    uint32_t id;
    world_ok(w, sn_state_create(w->engine, &w->state, &w->err));
    for (int i = 0; i < 3; i++)
        world_ok(w, sn_state_add(w->state, &homes[i], &id, &w->err));
    world_ok(w, sn_state_read(w->state, 0, 0, sizeof in_memory, in_memory, &w->err));
    sn_state_truncate(w->state, 0);
    for (int i = 0; i < 3; i++) {
        world_ok(w, sn_state_add(w->state, &homes[i], &id, &w->err));
        world_ok(w, sn_state_spill(w->state, id, f->dir.path, &w->err));
    }
    for (int i = 0; i < 2; i++) {
        world_ok(w, sn_state_read(w->state, 0, 0, sizeof in_file, in_file, &w->err));
        assert_memory_equal(in_memory, in_file, sizeof in_file);
        memset(in_file, 0, sizeof in_file);
        world_ok(w, sn_state_write(w->state, 0, 0, sizeof in_file, in_file, &w->err));
        world_ok(w, sn_state_restart(w->state, 0, &w->err));
    }
    assert_int_equal(sn_test_entries("/proc/self/fd"), f->n_descriptors + 1);
    for (uint32_t i = 0; i < 3; i++)
        world_ok(w, sn_state_unspill(w->state, i, &w->err));
    assert_int_equal(sn_test_entries("/proc/self/fd"), f->n_descriptors); /* of no use any more */
    snug_view view;
    world_ok(w, sn_state_view(w->state, 0, &view, &w->err));
    assert_memory_equal(in_memory, view.data, sizeof in_memory);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void refused(fixture *f, const char *folder, snug_status status, const char *text) {
    world *w = &f->w;
    const sn_executor_options options = {.spill_folder = folder};
    const size_t held = snug_engine_bytes(w->engine);
    assert_int_equal(world_try_prepare(w, &options), status);
    expect_text(w->err.text, text);
    world_unprepare(w);
    assert_int_equal(snug_engine_bytes(w->engine), held);
    expect_nothing_left(f);
}

static void test_folders_are_refused_before_the_first_run(void **state) {
    fixture *f = *state;
    build_values(&f->w);
    world_parse(&f->w, values);
    refused(f, NULL, SNUG_E_INVALID, "the plans spill 20480 bytes to files; name a folder");
    refused(f, "/nowhere/at/all", SNUG_E_IO, "No such file or directory");
    refused(f, "/dev/shm", SNUG_E_IO, "it is on tmpfs");
    refused(f, "/sys", SNUG_E_IO, "cannot spill 20480 bytes to '/sys': 0 are free");
}

static void test_folder_for_spilled_slots_is_asked_for_all_of_them(void **state) {
    fixture *f = *state;
    build_update(&f->w);
    world_parse(&f->w, staged);
    refused(f, NULL, SNUG_E_INVALID, "the plans spill 16384 bytes to files; name a folder");
    refused(f, "/sys", SNUG_E_IO, "cannot spill 16384 bytes to '/sys': 0 are free");
}

/* --- faults ----------------------------------------------------------------------------------- */

static void test_faults_while_preparing_leave_nothing_behind(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    build_update(w);
    world_parse(w, staged);
    const size_t held = snug_engine_bytes(w->engine);
    for (int kind = SN_FAULT_EIO; kind <= SN_FAULT_SHORT; kind++) {
        bool through = false;
        for (int64_t n = 0; !through; n++) {
            sn_fault_io(w->engine, n, (sn_fault_kind)kind, false);
            const snug_status status = world_try_prepare(w, &f->options);
            through = !sn_fault_fired(w->engine);
            sn_fault_io(w->engine, -1, SN_FAULT_EIO, false);
            const bool fails = !through && kind != SN_FAULT_SHORT;
            assert_int_equal(status, fails ? SNUG_E_IO : SNUG_OK);
            world_unprepare(w);
            assert_int_equal(snug_engine_bytes(w->engine), held);
            expect_nothing_left(f);
        }
    }
}

static void test_memory_faults_while_preparing_leave_nothing_behind(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    build_update(w);
    world_parse(w, staged);
    const size_t held = snug_engine_bytes(w->engine);
    bool through = false;
    for (int64_t n = 0; !through; n++) {
        sn_fault_memory(w->engine, n, false);
        const snug_status status = world_try_prepare(w, &f->options);
        through = !sn_fault_fired(w->engine);
        sn_fault_memory(w->engine, -1, false);
        assert_int_equal(status, through ? SNUG_OK : SNUG_E_MEMORY);
        world_unprepare(w);
        assert_int_equal(snug_engine_bytes(w->engine), held);
        expect_nothing_left(f);
    }
}

/* Each call of a run fails in turn. A run that wrote nothing has changed nothing; one that did
 * leaves the state torn, and a torn state goes on only from the start. */
static void fail_each_call(fixture *f, bool for_good) {
    world *w = &f->w;
    bool through = false;
    int n_torn = 0, n_whole = 0;
    for (int64_t n = 0; !through; n++) {
        world_prepare(w, &f->options);
        world_run(w);
        size_t n_bytes;
        unsigned char *before = world_variables(w, w->state, &n_bytes);
        sn_fault_io(w->engine, n, SN_FAULT_ENOSPC, for_good);
        const snug_status status = sn_session_run(w->session, &w->err);
        through = !sn_fault_fired(w->engine);
        sn_fault_io(w->engine, -1, SN_FAULT_EIO, false);
        assert_int_equal(status, through ? SNUG_OK : SNUG_E_IO);
        if (!through && !sn_state_torn(w->state)) {
            unsigned char *after = world_variables(w, w->state, NULL);
            assert_memory_equal(before, after, n_bytes);
            free(after);
            world_run(w);
            n_whole++;
        } else if (!through) {
            expect_text(w->err.text, "free space on that disk");
            assert_int_equal(sn_session_run(w->session, &w->err), SNUG_E_TORN);
            n_torn++;
        }
        free(before);
        world_unprepare(w);
        expect_nothing_left(f);
    }
    assert_true(n_torn > 0 && n_whole > 0);
}

static void test_failing_call_of_a_run_tears_only_what_was_written(void **state) {
    fixture *f = *state;
    build_update(&f->w);
    world_parse(&f->w, staged);
    fail_each_call(f, false);
    fail_each_call(f, true);
}

static void test_short_transfers_change_nothing(void **state) {
    fixture *f = *state;
    build_update(&f->w);
    world_parse(&f->w, staged);
    world_prepare(&f->w, &f->options);
    sn_fault_io(f->w.engine, 0, SN_FAULT_SHORT, true);
    world_run_and_compare(&f->w, 5);
    assert_true(sn_fault_fired(f->w.engine));
    sn_fault_io(f->w.engine, -1, SN_FAULT_EIO, false);
}

static void test_failing_call_for_a_value_leaves_the_next_run(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    build_values(w);
    world_parse(w, values);
    world_prepare(w, &f->options);
    for (int64_t n = 0; n < 2; n++) {
        sn_fault_io(w->engine, n, SN_FAULT_EIO, false);
        assert_int_equal(sn_session_run(w->session, &w->err), SNUG_E_IO);
        expect_text(w->err.text, "snug-spill-");
        assert_false(sn_state_torn(w->state));
        sn_fault_io(w->engine, -1, SN_FAULT_EIO, false);
        world_run_and_compare(w, 1);
    }
}

/* The child has no copy threads, and the file is not its own. */
static void test_the_child_of_a_fork_does_not_touch_the_file(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    build_update(w);
    world_parse(w, staged);
    world_prepare(w, &f->options);
    const pid_t child = fork();
    if (child == 0) {
        const bool ok = sn_session_run(w->session, &w->err) == SNUG_E_INVALID &&
                        strstr(w->err.text, "child of a fork") && !sn_state_torn(w->state);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    world_run_and_compare(w, 3);
}

/* --- planned ---------------------------------------------------------------------------------- */

/* Two dense layers with adam; slots of kernels are large enough to spill, those of biases are not.
 * Rows of small ones have 2,800 and 240 bytes: neither is a multiple of a page, nor divides one. */
typedef struct {
    int64_t in, hidden, out;
} widths;
static const widths small = {300, 700, 60}, large = {1024, 2048, 64};

static size_t slot_bytes_of(const widths *n) {
    return (size_t)(2 * 4 * n->hidden * (n->in + n->out));
}

static size_t state_bytes_of(const widths *n) {
    return slot_bytes_of(n) / 2 * 3 + (size_t)(3 * 4 * n->hidden);
}

typedef struct {
    sn_value var, m, v;
} adam_vars;

static sn_value add_variable(world *w, const char *name, const int64_t *dims, int rank, bool slot,
                             double value) {
    const sn_variable var = {.name = name,
                             .type = world_type(SNUG_F32, rank, dims),
                             .home = sn_graph_n_vars(w->graph),
                             .trainable = !slot,
                             .slot = slot,
                             .init = {.kind = slot ? SN_RECIPE_CONSTANT : SN_RECIPE_NORMAL,
                                      .key = sn_graph_n_vars(w->graph),
                                      .a = 0,
                                      .b = value}};
    sn_value v = SN_NO_VALUE;
    world_ok(w, sn_graph_variable(w->graph, &var, &v, &w->err));
    return v;
}

static adam_vars add_weights(world *w, const char *name, const int64_t *dims, int rank) {
    char m[32], v[32];
    snprintf(m, sizeof m, "%s/m", name);
    snprintf(v, sizeof v, "%s/v", name);
    return (adam_vars){add_variable(w, name, dims, rank, false, 0.1),
                       add_variable(w, m, dims, rank, true, 0),
                       add_variable(w, v, dims, rank, true, 0)};
}

static void add_adam(world *w, const adam_vars *vars, sn_value grad) {
    sn_builder b = sn_builder_on(w->graph);
    sn_value out[SN_MAX_OUT];
    sn_attrs a;
    sn_attrs_default(SN_OP_adam, &a);
    a.adam.rate = sn_build_param(&b, "rate", 0.01).i;
    a.adam.one_minus_beta1 = sn_build_param(&b, "beta1", 0.1).i;
    a.adam.one_minus_beta2 = sn_build_param(&b, "beta2", 0.001).i;
    a.adam.epsilon = sn_build_param(&b, "epsilon", 1e-7).i;
    sn_build_all(&b, SN_OP_adam, &a, (sn_value[]){vars->var, vars->m, vars->v, grad}, 4, out);
    world_ok(w, sn_builder_done(&b, &w->err));
}

static void build_dense(world *w, const widths *n) {
    static float x[32 * 1024];
    for (int i = 0; i < 32 * 1024; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 50;
    const snug_type tx = world_type(SNUG_F32, 2, (int64_t[]){32, n->in});
    const sn_value in = world_input(w, "x", &tx, x);
    const adam_vars vars[3] = {add_weights(w, "k0", (int64_t[]){n->in, n->hidden}, 2),
                               add_weights(w, "b0", (int64_t[]){n->hidden}, 1),
                               add_weights(w, "k1", (int64_t[]){n->hidden, n->out}, 2)};
    const sn_value wrt[3] = {vars[0].var, vars[1].var, vars[2].var};
    sn_value grads[3];
    sn_builder b = sn_builder_on(w->graph);
    const sn_value h = sn_build_relu(&b, sn_build_matmul(&b, in, wrt[0], wrt[1]));
    const sn_value y = sn_build_matmul(&b, h, wrt[2], SN_NO_VALUE);
    const sn_value loss = sn_build_mean(
        &b, sn_build_reshape(&b, sn_build_square(&b, y), (int64_t[]){32 * n->out}, 1), 0, false);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_gradients(w->graph, loss, wrt, 3, grads, &w->err));
    sn_graph_set_part(w->graph, SN_PART_UPDATE);
    for (int i = 0; i < 3; i++)
        add_adam(w, &vars[i], grads[i]);
    world_ok(w, sn_graph_output(w->graph, "loss", loss, &w->err));
}

static snug_status plan_with(world *w, const sn_plan_options *more) {
    const sn_device *devices[1] = {&w->device.device};
    sn_plan_options o = *more;
    o.devices = devices;
    o.n_devices = 1;
    sn_plan_destroy(w->plan);
    w->plan = NULL;
    return sn_plan_build(w->engine, w->graph, &o, &w->plan, &w->err);
}

static void test_planned_slots_go_through_stages_bit_for_bit(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    const bool all[9] = {[1] = true, [2] = true, [7] = true, [8] = true};
    sn_cpu_device_init(&w->device, 2, false); /* the fast kernels */
    build_dense(w, &small);
    world_ok(w, plan_with(w, &(sn_plan_options){.spilled = all}));
    assert_int_equal(w->plan->spilled_bytes, slot_bytes_of(&small));
    assert_int_equal(w->plan->memories[SN_MEM_STATE].bytes,
                     state_bytes_of(&small) - slot_bytes_of(&small));
    assert_int_equal(w->plan->n_recomputed, 0);
    world_prepare(w, &f->options);
    world_run_and_compare(w, 5);
    world_unprepare(w); /* the plan must outlive it */
    const bool bias[9] = {[4] = true};
    assert_int_equal(plan_with(w, &(sn_plan_options){.spilled = bias}), SNUG_E_INVALID);
    expect_text(w->err.text, "variable 'b0/m' cannot be spilled");
}

static void test_slots_are_spilled_only_where_that_is_the_way(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    build_dense(w, &small);
    world_ok(w, plan_with(w, &(sn_plan_options){.arena_bytes = 0}));
    const size_t plain = w->plan->memories[SN_MEM_FIRST_ARENA].bytes;
    world_ok(w, plan_with(w, &(sn_plan_options){.arena_bytes = plain, .may_spill = true}));
    assert_int_equal(w->plan->spilled_bytes, 0);
    assert_null(w->plan->spilled);
}

/* arena_bytes and short_bytes for arena and variables together. */
static sn_plan_options within(size_t have, size_t variables) {
    return (sn_plan_options){.arena_bytes = have > variables ? have - variables : 1,
                             .short_bytes = have > variables ? 0 : variables - have};
}

/* From what a plan without a limit takes downwards: each budget is kept, or refused with a floor
 * that is then enough; more bytes never make a slower plan. */
static void test_budgets_below_the_variables_are_kept_or_refused(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    const size_t variables = state_bytes_of(&large);
    build_dense(w, &large);
    world_ok(w, plan_with(w, &(sn_plan_options){.arena_bytes = 0}));
    const size_t plain = w->plan->memories[SN_MEM_FIRST_ARENA].bytes;
    size_t floor = 0, n_spilling = 0;
    double last = 0;
    for (size_t less = 0; floor == 0; less += variables / 16) {
        sn_plan_floor least = {.bytes = 0};
        sn_plan_options o = within(plain + variables - less, variables);
        o.may_spill = true;
        o.floor = &least;
        const snug_status status = plan_with(w, &o);
        if (status == SNUG_E_BUDGET) {
            floor = least.bytes + variables - least.spilled_bytes;
            assert_true(floor > plain + variables - less);
            continue;
        }
        world_ok(w, status);
        assert_true(w->plan->memories[SN_MEM_FIRST_ARENA].bytes +
                        w->plan->memories[SN_MEM_STATE].bytes <=
                    plain + variables - less);
        assert_int_equal(w->plan->memories[SN_MEM_STATE].bytes, variables - w->plan->spilled_bytes);
        assert_true(w->plan->seconds >= last);
        last = w->plan->seconds;
        n_spilling += w->plan->spilled_bytes > 0;
    }
    assert_true(n_spilling > 3);
    sn_plan_options o = within(floor, variables);
    assert_int_equal(plan_with(w, &o), SNUG_E_BUDGET); /* not without the file */
    o.may_spill = true;
    world_ok(w, plan_with(w, &o));
}

/* A chain of eight products and tanh, 65536 x 8: activations of 2 MiB are needed again on the way
 * back, the first of them last. */
static void build_chain(world *w) {
    enum { N = 8, ROWS = 65536, WIDTH = 8 };
    static float x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(i * 29 % 97 - 48) / 97;
    const snug_type tx = world_type(SNUG_F32, 3, (int64_t[]){1, ROWS, WIDTH}); /* no slices */
    const sn_value in = world_input(w, "x", &tx, x);
    sn_value grads[N], wrt[N];
    for (int i = 0; i < N; i++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", i);
        wrt[i] = add_variable(w, name, (int64_t[]){WIDTH, WIDTH}, 2, false, 0.25);
    }
    sn_builder b = sn_builder_on(w->graph);
    sn_value h = sn_build_reshape(&b, in, (int64_t[]){ROWS, WIDTH}, 2);
    for (int i = 0; i < N; i++)
        h = sn_build_tanh(&b, sn_build_matmul(&b, h, wrt[i], SN_NO_VALUE));
    const sn_value loss = sn_build_mean(
        &b, sn_build_reshape(&b, sn_build_square(&b, h), (int64_t[]){ROWS * WIDTH}, 1), 0, false);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_gradients(w->graph, loss, wrt, N, grads, &w->err));
    sn_graph_set_part(w->graph, SN_PART_UPDATE);
    sn_attrs a;
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = sn_build_param(&b, "learning_rate", 0.5).i;
    a.sgd.momentum = sn_build_param(&b, "", 0).i;
    for (int i = 0; i < N; i++)
        (void)sn_build(&b, SN_OP_sgd, &a, (sn_value[]){wrt[i], grads[i]}, 2);
    world_ok(w, sn_builder_done(&b, &w->err));
    world_ok(w, sn_graph_output(w->graph, "loss", loss, &w->err));
}

/* With a disk that costs nothing, values go to the file before anything is computed twice. */
static void test_values_wait_in_the_file_bit_for_bit(void **state) {
    fixture *f = *state;
    world *w = &f->w;
    sn_cpu_device_init(&w->device, 2, false);
    w->device.device.rates.spill_read = w->device.device.rates.spill_write = 1e15;
    build_chain(w);
    world_ok(w, plan_with(w, &(sn_plan_options){.arena_bytes = 0}));
    const size_t plain = w->plan->memories[SN_MEM_FIRST_ARENA].bytes;
    size_t n_spilling = 0;
    for (size_t less = plain / 8; less <= plain / 2; less += plain / 8) {
        const sn_plan_options o = {.arena_bytes = plain - less, .may_spill = true};
        if (plan_with(w, &o) != SNUG_OK)
            break;
        assert_true(w->plan->memories[SN_MEM_FIRST_ARENA].bytes <= o.arena_bytes);
        if (w->plan->spilled_value_bytes == 0)
            continue;
        n_spilling++;
        assert_int_equal(w->plan->memories[2].kind, SN_MEMORY_FILE);
        assert_true(w->plan->memories[SN_MEM_FIRST_ARENA].bytes + SN_SPILL_MEMORY_BYTES <=
                    plain - less);
        world_prepare(w, &f->options);
        world_run_and_compare(w, 3);
        world_unprepare(w);
    }
    assert_true(n_spilling > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spill_test(test_spilled_values_come_back_the_same),
        spill_test(test_values_spilled_by_slices_come_back_the_same),
        spill_test(test_spilled_slot_is_updated_in_a_stage),
        spill_test(test_spilled_slot_is_updated_slice_by_slice),
        spill_test(test_copies_to_files_request_no_memory),
        spill_test(test_spilled_slots_take_no_memory_and_have_no_view),
        spill_test(test_homes_are_moved_with_their_values),
        spill_test(test_initial_values_go_to_the_file_piece_by_piece),
        spill_test(test_folders_are_refused_before_the_first_run),
        spill_test(test_folder_for_spilled_slots_is_asked_for_all_of_them),
        spill_test(test_faults_while_preparing_leave_nothing_behind),
        spill_test(test_memory_faults_while_preparing_leave_nothing_behind),
        spill_test(test_failing_call_of_a_run_tears_only_what_was_written),
        spill_test(test_short_transfers_change_nothing),
        spill_test(test_failing_call_for_a_value_leaves_the_next_run),
        spill_test(test_the_child_of_a_fork_does_not_touch_the_file),
        spill_test(test_planned_slots_go_through_stages_bit_for_bit),
        spill_test(test_slots_are_spilled_only_where_that_is_the_way),
        spill_test(test_values_wait_in_the_file_bit_for_bit),
        spill_test(test_budgets_below_the_variables_are_kept_or_refused),
    };
    return cmocka_run_group_tests_name("exec_spill", tests, NULL, NULL);
}
