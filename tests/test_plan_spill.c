/* test_plan_spill.c: plans with bytes in files: printed, parsed, and checked. Each refused text is
 * the good one with one thing changed. */
#include "support/support.h"

#include "graph/build.h"
#include "plan/passes.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdlib.h>
#include <string.h>

/* %0 g, %1 w, %2 m (a slot), both 2048 x 2; n0 exp(g) -> %3; n1 tanh(%3) -> %4; n2 %3 + %4 -> %5;
 * n3 sgd_momentum(w, m, %5) -> %6, %7. */
typedef struct {
    snug_engine *engine;
    sn_fake_device fake;
    const sn_device *devices[1];
    sn_graph *graph;
    size_t most; /* bytes that may go out; 0: no limit */
} fixture;

static void build_graph(fixture *f) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {2048, 2}};
    const sn_variable w = {.name = "w", .type = type, .trainable = true};
    const sn_variable m = {.name = "m", .type = type, .home = 1, .slot = true};
    snug_error err;
    sn_value g, v[3];
    sn_attrs a;
    expect_ok(sn_graph_create(f->engine, &f->graph, &err), &err);
    expect_ok(sn_graph_input(f->graph, "g", &type, &g, &err), &err);
    expect_ok(sn_graph_variable(f->graph, &w, &v[0], &err), &err);
    expect_ok(sn_graph_variable(f->graph, &m, &v[1], &err), &err);
    sn_builder b = sn_builder_on(f->graph);
    const sn_value e = sn_build_exp(&b, g);
    v[2] = sn_build_add(&b, e, sn_build_tanh(&b, e));
    sn_attrs_default(SN_OP_sgd_momentum, &a);
    a.sgd.rate = sn_build_param(&b, "learning_rate", 0.5).i;
    a.sgd.momentum = sn_build_param(&b, "momentum", 0.5).i;
    sn_value out[SN_MAX_OUT];
    sn_build_all(&b, SN_OP_sgd_momentum, &a, v, 3, out);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(f->graph, "sum", v[2], &err), &err);
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->engine = sn_test_engine(0);
    sn_fake_device_init(&f->fake, "fake:0");
    f->devices[0] = &f->fake.device;
    build_graph(f);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    sn_graph_destroy(f->graph);
    sn_test_engine_end(f->engine);
    free(f);
    return 0;
}
#define plan_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* exp(g) waits in the file while tanh takes its place; m comes from its home and goes back. */
static const char good[] =
    "snug plan 1\n"
    "device 0 align 64 name fake:0\n"
    "memory 0 device 0 bytes 16384 used 16384 bound 16384 name state\n"
    "memory 1 device 0 bytes 49152 used 49152 bound 49152 name arena\n"
    "memory 2 device 0 bytes 20480 used 20480 bound 20480 file name spill\n"
    "spilled %2\n"
    "total flops 0 code 0 peak s1\n"
    "s0 feed 0 -> %0@1+0 on 0.0 name g\n"
    "s1 run n0 exp v0 (%0@1+0) -> (%3@1+16384) on 0.0 impl fake\n"
    "s2 copy %3@1+16384 -> %3@2+4096 on 0.2 wait s1\n"
    "s3 copy %2@state -> %2@1+32768 on 0.1\n"
    "s4 run n1 tanh v0 (%3@1+16384) -> (%4@1+16384) on 0.0 wait s2 impl fake\n"
    "s5 copy %3@2+4096 -> %3@1+0 on 0.1 wait s2 s4\n"
    "s6 run n2 add v0 (%3@1+0 %4@1+16384) -> (%5@1+0) on 0.0 wait s5 impl fake\n"
    "s7 run n3 sgd_momentum v0 (%1@state %2@1+32768 %5@1+0) -> (%6@state %7@1+32768) on 0.0 wait "
    "s3 "
    "impl fake\n"
    "s8 copy %7@1+32768 -> %7@state on 0.2 wait s7\n"
    "output 0 %5@1+0\n"
    "end plan\n";

/* The same update in two slices through one stage of half the size. */
static const char sliced[] =
    "snug plan 1\n"
    "device 0 align 64 name fake:0\n"
    "memory 0 device 0 bytes 16384 used 16384 bound 16384 name state\n"
    "memory 1 device 0 bytes 40960 used 40960 bound 40960 name arena\n"
    "spilled %2\n"
    "total flops 0 code 0 peak s1\n"
    "s0 feed 0 -> %0@1+0 on 0.0 name g\n"
    "s1 run n0 exp v0 (%0@1+0) -> (%3@1+0) on 0.0 impl fake\n"
    "s2 run n1 tanh v0 (%3@1+0) -> (%4@1+16384) on 0.0 impl fake\n"
    "s3 run n2 add v0 (%3@1+0 %4@1+16384) -> (%5@1+0) on 0.0 impl fake\n"
    "s4 repeat 2 rows 1024 last 1024\n"
    "s5 copy %2@state+0+8192 rows 0:0:1024 -> %2@1+32768 rows 0:0:1024 on 0.1\n"
    "s6 run n3 sgd_momentum v0 (%1@state+0+8192 rows 0:0:1024 %2@1+32768 rows 0:0:1024 "
    "%5@1+0+8192 rows 0:0:1024) -> (%6@state+0+8192 rows 0:0:1024 %7@1+32768 rows 0:0:1024) on 0.0 "
    "wait s5 impl fake\n"
    "s7 copy %7@1+32768 rows 0:0:1024 -> %7@state+0+8192 rows 0:0:1024 on 0.2 wait s6\n"
    "s8 end\n"
    "output 0 %5@1+0\n"
    "end plan\n";

static void comes_back(const fixture *f, const char *text) {
    snug_error err;
    sn_plan *p;
    expect_ok(sn_plan_parse(f->engine, f->graph, text, f->devices, 1, &p, &err), &err);
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    expect_ok(sn_plan_print(p, &w, &err), &err);
    assert_string_equal(t.text, text);
    sn_text_end(&t);
    sn_plan_destroy(p);
}

static void test_files_and_spilled_variables_come_back_as_text(void **state) {
    comes_back(*state, good);
    comes_back(*state, sliced);
}

static void test_what_a_file_is_stands_in_the_plan(void **state) {
    const fixture *f = *state;
    snug_error err;
    sn_plan *p;
    expect_ok(sn_plan_parse(f->engine, f->graph, good, f->devices, 1, &p, &err), &err);
    assert_int_equal(p->memories[1].kind, SN_MEMORY_BYTES);
    assert_int_equal(p->memories[2].kind, SN_MEMORY_FILE);
    assert_false(sn_plan_spills(p, (sn_var){0}));
    assert_true(sn_plan_spills(p, (sn_var){1}));
    sn_plan_destroy(p);
}

typedef struct {
    const char *text, *from, *to;
    const char *message;
} change;

static void refused(const fixture *f, const change *c) {
    const char *at = strstr(c->text, c->from);
    assert_non_null(at);
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    snug_error err;
    sn_plan *p = NULL;
    expect_ok(w.write(w.ctx, c->text, (size_t)(at - c->text), &err), &err);
    expect_ok(w.write(w.ctx, c->to, strlen(c->to), &err), &err);
    at += strlen(c->from);
    expect_ok(w.write(w.ctx, at, strlen(at), &err), &err);
    const snug_status st = sn_plan_parse(f->engine, f->graph, t.text, f->devices, 1, &p, &err);
    if (st == SNUG_OK)
        fail_msg("'%s' in place of '%s' was accepted", c->to, c->from);
    expect_text(err.text, c->message);
    sn_text_end(&t);
}

static const change changes[] = {
    /* what lies in files is reached by copies only */
    {good, "-> (%4@1+16384) on 0.0 wait s2", "-> (%4@2+0) on 0.0 wait s2", "in a file"},
    {good, "n2 add v0 (%3@1+0", "n2 add v0 (%3@2+4096", "in a file"},
    {good, "feed 0 -> %0@1+0", "feed 0 -> %0@2+0", "in a file"},
    {good, "(%3@1+16384) on 0.0 impl", "(%3@1+16384) ws 2+0:64 on 0.0 impl", "wrong memory"},
    {good, "(%1@state %2@1+32768 %5@1+0) -> (%6@state %7@1+32768)",
     "(%1@state %2@state %5@1+0) -> (%6@state %7@state)", "in a file"},
    {good, "copy %2@state -> %2@1+32768", "copy %2@state -> %2@2+4096", "in a file"},
    {good, "output 0 %5@1+0", "output 0 %5@2+0", "output in a file"},
    /* whole pages */
    {good, "%3@1+16384 -> %3@2+4096", "%3@1+16384 -> %3@2+4032", "not aligned"},
    {good, "bytes 20480 used 20480 bound 20480 file", "bytes 20544 used 20480 bound 20480 file",
     "whole pages"},
    {good, "bytes 20480 used 20480 bound 20480 file", "bytes 0 used 20480 bound 20480 file",
     "whole pages"},
    {good, "bytes 49152 used 49152 bound 49152 name",
     "bytes 49152 used 49152 bound 49152 file name", "first arena"},
    {good, "bytes 20480 used 20480", "bytes 20480 used 16384", "used bytes differ"},
    {good, "bytes 20480 used 20480", "bytes 16384 used 20480", "outside its memory"},
    {sliced, "rows 1024 last 1024", "rows 1000 last 1024", "bad block"},
    /* bytes are there when they are needed, and not written over before */
    {good, "on 0.1 wait s2 s4", "on 0.1", "wait"},
    {good, "(%4@1+16384) on 0.0 wait s2", "(%4@1+16384) on 0.0", "wait"},
    {good, "(%5@1+0) on 0.0 wait s5", "(%5@1+0) on 0.0", "wait"},
    {good, "copy %3@2+4096 -> %3@1+0", "copy %3@2+0 -> %3@1+0", "something else"},
    /* a spilled variable is updated in its stage and comes home */
    {good, "s8 copy %7@1+32768 -> %7@state on 0.2 wait s7\n", "", "something else"},
    {good, "s8 copy %7@1+32768 -> %7@state on 0.2 wait s7\n",
     "s8 copy %2@1+32768 -> %2@state on 0.2 wait s7\n", "something else"},
    {good, "-> %7@state on 0.2 wait s7", "-> %7@state on 0.2", "wait"},
    {good, "-> (%6@state %7@1+32768)", "-> (%6@state %7@1+16384)", "updates a copy"},
    {good, "copy %7@1+32768 -> %7@state", "copy %6@state -> %6@state", "variable"},
    {good, "spilled %2\n", "", "another size"},
    {good, "bytes 16384 used 16384 bound 16384 name state",
     "bytes 32768 used 32768 bound 32768 name state", "another size"},
    {good, "spilled %2\n", "spilled %3\n", "variable"},
    {good, "spilled %2\n", "spilled %2\nspilled %1\n", "variable"},
    {good, "spilled %2\n", "spilled %2\nspilled %2\n", "variable"},
    {good, "%1@state %2@1", "%1@state+0 %2@1", " rows "},
    /* slices of a home lie at home */
    {sliced, "copy %2@state+0+8192", "copy %2@state+0", "at home"},
    {sliced, "(%1@state+0+8192", "(%1@state+64+8192", "at home"},
    {sliced, "%7@state+0+8192 rows 0:0:1024", "%7@state+4096+4096 rows 0:0:1024", "at home"},
    {sliced, "on 0.2 wait s6", "on 0.2", "wait"},
};

static void test_each_broken_plan_is_refused(void **state) {
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        refused(*state, &changes[i]);
}

/* --- values of any graph ---------------------------------------------------------------------- */

static void begin_plan(sn_planner *p, const fixture *f, const sn_graph *g) {
    snug_error err;
    sn_zone *zone;
    *p = (sn_planner){.engine = f->engine,
                      .graph = g,
                      .device = f->devices[0],
                      .spill_limit = f->most,
                      .n_nodes = sn_graph_n_nodes(g),
                      .n_values = sn_graph_n_values(g)};
    expect_ok(sn_zone_create(f->engine, SN_MEM_PLAN, &p->work, &err), &err);
    expect_ok(sn_zone_create(f->engine, SN_MEM_PLAN, &zone, &err), &err);
    expect_ok(sn_plan_array(zone, 1, sizeof *p->plan, &p->plan, &err), &err);
    *p->plan = (sn_plan){
        .zone = zone, .graph = g, .n_devices = 1, .device_names = {"fake:0"}, .device_align = {64}};
    expect_ok(sn_plan_describe(p, &err), &err);
    expect_ok(sn_plan_readers(p, &err), &err);
    expect_ok(sn_plan_undo(p, &err), &err);
}

/* The plan of the graph in a part of the bytes it takes as written; how many values are spilled,
 * and whether that part is enough. */
static uint32_t spill_some(const fixture *f, const sn_graph *g, uint32_t eighths, bool *kept) {
    sn_planner p;
    sn_order order = {.n = 0};
    sn_program program;
    sn_layout l;
    snug_error err;
    size_t height, bound;
    double seconds;
    uint32_t n = 0;
    begin_plan(&p, f, g);
    expect_ok(sn_plan_order(&p, p.work, SN_ORDER_PROGRAM, p.padded, &order, &err), &err);
    expect_ok(sn_program_plain(&p, p.work, &order, &program, &err), &err);
    expect_ok(sn_plan_layout(&p, p.work, &program, &l, &err), &err);
    const size_t limit = l.bound / 8 * eighths;
    expect_ok(sn_spill_begin(&p, p.work, &program, &err), &err);
    expect_ok(sn_spill_values(&p, p.work, limit, &program, &l, &err), &err);
    *kept = l.bound <= limit;
    assert_true(f->most == 0 || p.file_bytes <= f->most);
    expect_ok(sn_spill_time(&p, &l, &seconds, &err), &err);
    expect_ok(sn_pack(f->engine, l.items, l.n_items, &height, &bound, &err), &err);
    p.plan->memories[SN_MEM_FIRST_ARENA].bytes = height;
    expect_ok(sn_plan_emit(&p, &l, &err), &err);
    expect_ok(sn_plan_check(p.plan, f->devices, 1, &err), &err);
    for (uint32_t i = 0; i < p.plan->n_steps; i++)
        n += p.plan->steps[i].queue == SN_QUEUE_OUT;
    sn_plan_destroy(p.plan);
    sn_zone_destroy(p.work);
    return n;
}

/* All rates the same, but the disk's. */
static void set_disk(fixture *f, double disk) {
    double *rate = (double *)&f->fake.device.rates;
    for (size_t i = 0; i < sizeof f->fake.device.rates / sizeof *rate; i++)
        rate[i] = 1e9;
    f->fake.device.rates.spill_read = f->fake.device.rates.spill_write = disk;
}

/* Whatever goes out, and however slow the disk is, the checker finds every byte where it must
 * be. */
static void test_values_of_random_graphs_go_out_and_come_back(void **state) {
    fixture *f = *state;
    uint32_t n_spilled = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        snug_error err;
        sn_graph *g;
        bool kept;
        set_disk(f, seed % 3 == 0 ? 1e3 : seed % 3 == 1 ? 1e9 : 1e12);
        expect_ok(sn_random_graph(f->engine, seed, 5 + (int)(seed * 3 % 120), &g, &err), &err);
        n_spilled += spill_some(f, g, 2 + (uint32_t)seed % 6, &kept);
        sn_graph_destroy(g);
    }
    assert_true(n_spilled > 300);
}

static void test_no_more_goes_out_than_there_is_room_for(void **state) {
    static const size_t rooms[2] = {0, 24 << 10};
    fixture *f = *state;
    uint32_t n_spilled[2] = {0, 0};
    set_disk(f, 1e9);
    for (int i = 0; i < 2; i++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            snug_error err;
            sn_graph *g;
            bool kept;
            f->most = rooms[i];
            expect_ok(sn_random_graph(f->engine, seed, 40 + (int)(seed * 3 % 80), &g, &err), &err);
            n_spilled[i] += spill_some(f, g, 4, &kept);
            sn_graph_destroy(g);
        }
    assert_true(n_spilled[1] > 40 && n_spilled[1] < n_spilled[0]);
}

/* How low a plan gets is no matter of the disk's speed: a slow one is waited for. */
static void test_a_slow_disk_is_waited_for(void **state) {
    static const double disks[2] = {1e3, 1e12};
    fixture *f = *state;
    int n_kept[2] = {0, 0};
    for (uint64_t seed = 0; seed < 80; seed++)
        for (int i = 0; i < 2; i++) {
            snug_error err;
            sn_graph *g;
            bool kept;
            set_disk(f, disks[i]);
            expect_ok(sn_random_graph(f->engine, seed, 40 + (int)(seed * 3 % 80), &g, &err), &err);
            (void)spill_some(f, g, 6, &kept);
            n_kept[i] += kept;
            sn_graph_destroy(g);
        }
    assert_true(n_kept[0] >= 50 && n_kept[0] >= n_kept[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        plan_test(test_files_and_spilled_variables_come_back_as_text),
        plan_test(test_what_a_file_is_stands_in_the_plan),
        plan_test(test_each_broken_plan_is_refused),
        plan_test(test_values_of_random_graphs_go_out_and_come_back),
        plan_test(test_no_more_goes_out_than_there_is_room_for),
        plan_test(test_a_slow_disk_is_waited_for),
    };
    return cmocka_run_group_tests_name("plan_spill", tests, NULL, NULL);
}
