/* test_plan_check.c: the checker accepts good plans written by hand and refuses each of a list of
 * corruptions of them. Plans are texts; a corruption replaces pieces of one. Plans that a random
 * corruption leaves acceptable must compute the same: a second, symbolic executor says so.
 *
 * The graph of the hand-written plans (values in brackets):
 *
 *     n0 z[3] = matmul(x[0], w[2])     n3 g[6] = relu_grad(e, y)        n6 w[9] = sgd(w[2], c)
 *     n1 y[4] = relu(z)                n4 d[7] = matmul(x^T, g)
 *     n2 e[5] = sub(y, t[1])           n5 c[8] = check_finite(d)        output y
 *
 * x is 8 x 4 (16 bytes a row), t, z, y, e, g are 8 x 3 (12 bytes a row), w and d 4 x 3 (48 bytes).
 */
#include "support/support.h"

#include "graph/build.h"
#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "snug plan 1\n"                                                                                \
    "device 0 align 64 name fake:0\n"                                                              \
    "memory 0 device 0 bytes 48 used 48 bound 48 name state\n"
#define TOTAL "total flops 0 code 0 peak s0\n"

static const char plain[] =
    HEAD "memory 1 device 0 bytes 576 used 576 bound 576 name arena\n" TOTAL
         "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
         "s1 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+128) ws 1+512:64 on 0.0 impl fake\n"
         "s2 run n1 relu v0 (%3@1+128) -> (%4@1+128) on 0.0 impl fake\n"
         "s3 feed 1 -> %1@1+256 on 0.0 name t\n"
         "s4 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384) on 0.0 impl fake\n"
         "s5 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384) on 0.0 impl fake\n"
         "s6 run n4 matmul v0 (%0@1+0 %6@1+384) -> (%7@1+256) ws 1+512:64 on 0.0 impl fake\n"
         "s7 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n"
         "s8 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"
         "output 0 %4@1+128\n"
         "end plan\n";

/* Three iterations over 3, 3 and 2 rows. y is collected whole, the rest lives in slots of one
 * slice. */
static const char sliced[] = HEAD
    "memory 1 device 0 bytes 640 used 640 bound 0 name arena\n" TOTAL "s0 repeat 3 rows 3 last 2\n"
    "s1 feed 0 -> %0@1+0 rows 0:0:3 on 0.0 name x\n"
    "s2 run n0 matmul v0 (%0@1+0 rows 0:0:3 %2@state) -> (%3@1+64 rows 0:0:3) ws 1+576:64 on 0.0 "
    "impl fake\n"
    "s3 run n1 relu v0 (%3@1+64 rows 0:0:3) -> (%4@1+128+36 rows 0:0:3) on 0.0 impl fake\n"
    "s4 feed 1 -> %1@1+256 rows 0:0:3 on 0.0 name t\n"
    "s5 run n2 sub v0 (%4@1+128+36 rows 0:0:3 %1@1+256 rows 0:0:3) -> (%5@1+320 rows 0:0:3) on 0.0 "
    "impl fake\n"
    "s6 run n3 relu_grad v0 (%5@1+320 rows 0:0:3 %4@1+128+36 rows 0:0:3) -> (%6@1+320 rows 0:0:3) "
    "on 0.0 impl fake\n"
    "s7 run n4 matmul v0 (%0@1+0 rows 0:0:3 %6@1+320 rows 0:0:3) -> (%7@1+384) ws 1+576:64 on 0.0 "
    "acc add_later impl fake\n"
    "s8 end\n"
    "s9 run n5 check_finite v0 (%7@1+384) -> (%8@1+384) on 0.0 impl fake\n"
    "s10 run n6 sgd v0 (%2@state %8@1+384) -> (%9@state) on 0.0 impl fake\n"
    "output 0 %4@1+128\n"
    "end plan\n";

/* Two slices without a block: the second adds to the first. */
static const char two_slices[] =
    HEAD "memory 1 device 0 bytes 576 used 576 bound 576 name arena\n" TOTAL
         "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
         "s1 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+128) ws 1+512:64 on 0.0 impl fake\n"
         "s2 run n1 relu v0 (%3@1+128) -> (%4@1+128) on 0.0 impl fake\n"
         "s3 feed 1 -> %1@1+256 on 0.0 name t\n"
         "s4 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384) on 0.0 impl fake\n"
         "s5 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384) on 0.0 impl fake\n"
         "s6 run n4 matmul v0 (%0@1+0 rows 0:0:5 %6@1+384 rows 0:0:5) -> (%7@1+256) ws 1+512:64 on "
         "0.0 impl fake\n"
         "s7 run n4 matmul v0 (%0@1+80 rows 5:0:3 %6@1+444 rows 5:0:3) -> (%7@1+256) ws 1+512:64 "
         "on 0.0 acc add impl fake\n"
         "s8 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n"
         "s9 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"
         "output 0 %4@1+128\n"
         "end plan\n";

/* The copy-in queue brings x and t; x is sent away to a second memory and brought back. */
static const char queues[] = HEAD
    "memory 1 device 0 bytes 512 used 496 bound 0 name arena\n"
    "memory 2 device 0 bytes 128 used 128 bound 0 name spill\n" TOTAL
    "s0 feed 0 -> %0@1+0 on 0.1 name x\n"
    "s1 feed 1 -> %1@1+256 on 0.1 name t\n"
    "s2 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+128) ws 1+384:64 on 0.0 wait s0 impl fake\n"
    "s3 copy %0@1+0 -> %0@2+0 on 0.2 wait s0\n"
    "s4 run n1 relu v0 (%3@1+128) -> (%4@1+128) on 0.0 impl fake\n"
    "s5 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+0) on 0.0 wait s1 s3 impl fake\n"
    "s6 run n3 relu_grad v0 (%5@1+0 %4@1+128) -> (%6@1+0) on 0.0 impl fake\n"
    "s7 copy %0@2+0 -> %0@1+256 on 0.1 wait s5 s3\n"
    "s8 run n4 matmul v0 (%0@1+256 %6@1+0) -> (%7@1+448) ws 1+384:64 on 0.0 wait s7 impl fake\n"
    "s9 run n5 check_finite v0 (%7@1+448) -> (%8@1+448) on 0.0 impl fake\n"
    "s10 run n6 sgd v0 (%2@state %8@1+448) -> (%9@state) on 0.0 impl fake\n"
    "output 0 %4@1+128\n"
    "end plan\n";

/* relu runs on a second device with a memory of its own; z is run twice: the second time to be read
 * there. */
static const char devices2[] =
    "snug plan 1\n"
    "device 0 align 64 name fake:0\n"
    "device 1 align 64 name fake:1\n"
    "memory 0 device 0 bytes 48 used 48 bound 48 name state\n"
    "memory 1 device 0 bytes 576 used 576 bound 0 name arena\n"
    "memory 2 device 1 bytes 128 used 96 bound 0 name other\n" TOTAL
    "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
    "s1 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+128) ws 1+512:64 on 0.0 impl fake\n"
    "s2 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+384) ws 1+512:64 on 0.0 impl fake\n"
    "s3 copy %3@1+384 -> %3@2+0 on 0.2 wait s2\n"
    "s4 run n1 relu v0 (%3@2+0) -> (%4@2+0) on 1.0 wait s3 impl fake\n"
    "s5 copy %4@2+0 -> %4@1+128 on 1.2 wait s4\n"
    "s6 feed 1 -> %1@1+256 on 0.0 name t\n"
    "s7 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384) on 0.0 wait s5 impl fake\n"
    "s8 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384) on 0.0 impl fake\n"
    "s9 run n4 matmul v0 (%0@1+0 %6@1+384) -> (%7@1+256) ws 1+512:64 on 0.0 impl fake\n"
    "s10 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n"
    "s11 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"
    "output 0 %4@1+128\n"
    "end plan\n";

typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_fake_device fake[2];
    const sn_device *devices[2];
} world;

static void build_graph(world *w) {
    const snug_type x_type = {.dtype = SNUG_F32, .rank = 2, .dims = {8, 4}};
    const snug_type t_type = {.dtype = SNUG_F32, .rank = 2, .dims = {8, 3}};
    const sn_variable kernel = {.name = "w",
                                .type = {.dtype = SNUG_F32, .rank = 2, .dims = {4, 3}}};
    snug_error err;
    sn_value x, t, v;
    sn_attrs a;
    expect_ok(sn_graph_input(w->graph, "x", &x_type, &x, &err), &err);
    expect_ok(sn_graph_input(w->graph, "t", &t_type, &t, &err), &err);
    expect_ok(sn_graph_variable(w->graph, &kernel, &v, &err), &err);
    sn_builder b = sn_builder_on(w->graph);
    const sn_value y = sn_build_relu(&b, sn_build_matmul(&b, x, v, SN_NO_VALUE));
    const sn_value g = sn_build_relu_grad(&b, sn_build_sub(&b, y, t), y);
    const sn_value d = sn_build_check_finite(&b, sn_build_matmul_t(&b, x, g, true, false));
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = sn_build_param(&b, "rate", 0.1).i;
    a.sgd.momentum = sn_build_param(&b, "momentum", 0.0).i;
    const sn_value in[2] = {v, d};
    (void)sn_build(&b, SN_OP_sgd, &a, in, 2);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(w->graph, "y", y, &err), &err);
}

static int open_world(void **state) {
    world *w = calloc(1, sizeof *w);
    snug_error err;
    w->engine = sn_test_engine(0);
    expect_ok(sn_graph_create(w->engine, &w->graph, &err), &err);
    build_graph(w);
    for (int d = 0; d < 2; d++) {
        sn_fake_device_init(&w->fake[d], d == 0 ? "fake:0" : "fake:1");
        w->fake[d].workspace_bytes[SN_OP_matmul] = 64;
        w->devices[d] = &w->fake[d].device;
    }
    *state = w;
    return 0;
}

static int close_world(void **state) {
    world *w = *state;
    sn_graph_destroy(w->graph);
    sn_test_engine_end(w->engine);
    free(w);
    return 0;
}

static snug_status parse(const world *w, const char *text, sn_plan **out, snug_error *err) {
    const int n_devices = strstr(text, "device 1 align") ? 2 : 1;
    return sn_plan_parse(w->engine, w->graph, text, w->devices, n_devices, out, err);
}

static void expect_accepted(const world *w, const char *text) {
    snug_error err;
    sn_plan *p;
    expect_ok(parse(w, text, &p, &err), &err);
    sn_plan_destroy(p);
}

static void test_a_plain_plan_is_accepted(void **state) {
    expect_accepted(*state, plain);
}
static void test_a_plan_with_a_repeat_block_is_accepted(void **state) {
    expect_accepted(*state, sliced);
}
static void test_slices_without_a_block_are_accepted(void **state) {
    expect_accepted(*state, two_slices);
}
static void test_a_plan_with_queues_and_a_spill_is_accepted(void **state) {
    expect_accepted(*state, queues);
}
static void test_two_devices_and_a_second_run_are_accepted(void **state) {
    expect_accepted(*state, devices2);
}

/* --- corruptions by name -------------------------------------------------------------------- */
typedef struct {
    const char *rule;
    const char *plan;
    const char *from[3], *to[3]; /* every place where `from` stands is replaced */
} corruption;

static const corruption corruptions[] = {
    /* bytes */
    {"an input is overwritten before its last reader", plain, {"%1@1+256"}, {"%1@1+0"}},
    {"a value is read where it does not lie",
     plain,
     {"(%5@1+384 %4@1+128) ->"},
     {"(%5@1+384 %4@1+192) ->"}},
    {"a value is read before it is made",
     plain,
     {"s4 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384)",
      "s5 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384)"},
     {"s4 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384)",
      "s5 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384)"}},
    {"an input is read before it is fed",
     plain,
     {"s0 feed 0 -> %0@1+0 on 0.0 name x"},
     {"s0 feed 1 -> %1@1+0 on 0.0 name t"}},
    {"in place where the row does not allow it",
     plain,
     {"-> (%7@1+256) ws", "(%7@1+256) -> (%8@1+256)", "%8@1+256) -> (%9"},
     {"-> (%7@1+384) ws", "(%7@1+384) -> (%8@1+384)", "%8@1+384) -> (%9"}},
    {"in place over the second input of a FIRST row",
     plain,
     {"-> (%6@1+384) on", "%6@1+384) -> (%7"},
     {"-> (%6@1+128) on", "%6@1+128) -> (%7"}},
    {"in place while the input has a later reader",
     plain,
     {"-> (%5@1+384)", "(%5@1+384 "},
     {"-> (%5@1+128)", "(%5@1+128 "}},
    {"an output partly over an input",
     plain,
     {"-> (%5@1+384)", "(%5@1+384 "},
     {"-> (%5@1+320)", "(%5@1+320 "}},
    {"a workspace over an input", plain, {"(%3@1+128) ws 1+512:64"}, {"(%3@1+128) ws 1+64:64"}},
    {"a workspace over an output", plain, {"(%3@1+128) ws 1+512:64"}, {"(%3@1+128) ws 1+192:64"}},
    {"a workspace over a live value",
     plain,
     {"(%7@1+256) ws 1+512:64"},
     {"(%7@1+256) ws 1+128:64"}},
    {"a workspace that is too small",
     plain,
     {"ws 1+512:64 on 0.0 impl fake\ns2"},
     {"ws 1+512:32 on 0.0 impl fake\ns2"}},
    {"no workspace where one is needed",
     plain,
     {" ws 1+512:64 on 0.0 impl fake\ns2"},
     {" on 0.0 impl fake\ns2"}},
    {"a place that is not aligned", plain, {"%1@1+256"}, {"%1@1+260"}},
    {"a memory smaller than its places", plain, {"bytes 576 used 576"}, {"bytes 512 used 576"}},
    {"another number of used bytes", plain, {"bytes 576 used 576"}, {"bytes 576 used 512"}},
    {"another size of the state", plain, {"bytes 48 used 48"}, {"bytes 64 used 48"}},
    {"a place outside every memory", plain, {"%1@1+256"}, {"%1@2+256"}},
    {"an offset near the end of the address space",
     plain,
     {"%1@1+256"},
     {"%1@1+18446744073709551552"}},
    {"an output that is not there at the end", plain, {"output 0 %4@1+128"}, {"output 0 %4@1+384"}},
    {"another value as the output", plain, {"output 0 %4@1+128"}, {"output 0 %6@1+384"}},
    /* nodes */
    {"an operand that is not the node's",
     plain,
     {"(%4@1+128 %1@1+256) ->"},
     {"(%1@1+256 %4@1+128) ->"}},
    {"an operand left out", plain, {"(%4@1+128 %1@1+256) ->"}, {"(%4@1+128) ->"}},
    {"a variant the device does not have", plain, {"relu v0"}, {"relu v1"}},
    {"an implementation the device does not have",
     plain,
     {"-> (%4@1+128) on 0.0 impl fake"},
     {"-> (%4@1+128) on 0.0 impl other"}},
    {"a device of another name", plain, {"name fake:0"}, {"name cuda:0"}},
    {"another alignment", plain, {"align 64"}, {"align 32"}},
    /* versions and effects */
    {"a variable is updated outside its home", plain, {"-> (%9@state)"}, {"-> (%9@1+448)"}},
    {"a step without the update",
     plain,
     {"s8 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"},
     {""}},
    {"a variable is updated twice",
     plain,
     {"output 0"},
     {"s9 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\noutput 0"}},
    {"an old version is read after its update",
     plain,
     {"output 0"},
     {"s9 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+384) ws 1+512:64 on 0.0 impl fake\noutput "
      "0"}},
    {"a node that may fail is left out",
     plain,
     {"s7 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\ns8"},
     {"s7"}},
    {"a variable is written before a node that may fail",
     plain,
     {"s7 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n",
      "s8 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"},
     {"s7 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n",
      "s8 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n"}},
    {"a copy overwrites a variable",
     plain,
     {"output 0"},
     {"s9 copy %2@1+0 -> %2@state on 0.0\noutput 0"}},
    {"a value that is no version lies in the state",
     plain,
     {"(%4@1+128 %1@1+256) ->"},
     {"(%4@1+128 %1@state) ->"}},
    {"a plain run adds",
     plain,
     {"(%7@1+256) ws 1+512:64 on 0.0 impl"},
     {"(%7@1+256) ws 1+512:64 on 0.0 acc add impl"}},
    {"a plain run adds later",
     plain,
     {"(%7@1+256) ws 1+512:64 on 0.0 impl"},
     {"(%7@1+256) ws 1+512:64 on 0.0 acc add_later impl"}},
    {"a row that cannot add adds",
     plain,
     {"-> (%4@1+128) on 0.0 impl"},
     {"-> (%4@1+128) on 0.0 acc add impl"}},
    /* slices */
    {"a sum is stored in every iteration", sliced, {" acc add_later"}, {""}},
    {"a sum is added to from the first iteration on", sliced, {"acc add_later"}, {"acc add"}},
    {"slices that do not reach the end", sliced, {"last 2"}, {"last 1"}},
    {"slices that reach behind the end", sliced, {"last 2"}, {"last 3"}},
    {"an iteration too few", sliced, {"repeat 3"}, {"repeat 2"}},
    {"an iteration too many", sliced, {"repeat 3"}, {"repeat 4"}},
    {"pieces of a whole value at the wrong stride", sliced, {"%4@1+128+36"}, {"%4@1+128+40"}},
    {"a slice of other rows than the node's other operands",
     sliced,
     {"%1@1+256 rows 0:0:3) ->"},
     {"%1@1+256 rows 3:0:3) ->"}},
    {"a feed of other rows", sliced, {"%1@1+256 rows 0:0:3 on"}, {"%1@1+256 rows 1:0:3 on"}},
    {"a slice along another axis",
     sliced,
     {"(%3@1+64 rows 0:0:3) ->"},
     {"(%3@1+64 rows 0:1:3) ->"}},
    {"a whole operand beside sliced ones", sliced, {"(%0@1+0 rows 0:0:3 %6"}, {"(%0@1+0 %6"}},
    {"a slot of a slice that is still read", sliced, {"%1@1+256"}, {"%1@1+0"}},
    {"the update inside the block",
     sliced,
     {"s8 end\n", "s9 run",
      "s10 run n6 sgd v0 (%2@state %8@1+384) -> (%9@state) on 0.0 impl fake\n"},
     {"", "s8 run",
      "s9 run n6 sgd v0 (%2@state %8@1+384) -> (%9@state) on 0.0 impl fake\ns10 end\n"}},
    {"a block without end", sliced, {"s8 end\ns9", "s10 run"}, {"s8", "s9 run"}},
    {"an end without block", plain, {"output 0"}, {"s9 end\noutput 0"}},
    {"a block inside a block", sliced, {"s8 end\n"}, {"s8 repeat 1 rows 1 last 1\n"}},
    {"a block of far too many iterations",
     sliced,
     {"repeat 3 rows 3"},
     {"repeat 9000000000 rows 3"}},
    {"a second slice that stores", two_slices, {" acc add"}, {""}},
    {"slices of a sum that leave out rows", two_slices, {"rows 0:0:5"}, {"rows 0:0:4"}},
    {"slices of a sum with rows twice",
     two_slices,
     {"(%0@1+80 rows 5:0:3 %6@1+444 rows 5:0:3)"},
     {"(%0@1+64 rows 4:0:4 %6@1+432 rows 4:0:4)"}},
    {"a slice at another row's bytes", two_slices, {"%0@1+80"}, {"%0@1+64"}},
    {"a sum read before its last slice",
     two_slices,
     {"s7 run n4 matmul v0 (%0@1+80 rows 5:0:3 %6@1+444 rows 5:0:3) -> (%7@1+256) ws 1+512:64 on "
      "0.0 acc add impl fake\ns8",
      "s9"},
     {"s7", "s8"}},
    /* waits */
    {"no wait for a feed on another queue", queues, {" on 0.0 wait s0 impl"}, {" on 0.0 impl"}},
    {"no wait for the second feed", queues, {"wait s1 s3 impl"}, {"wait s3 impl"}},
    {"overwrites before a copy on another queue has read",
     queues,
     {"wait s1 s3 impl"},
     {"wait s1 impl"}},
    {"a copy does not wait for the writer", queues, {"%0@2+0 on 0.2 wait s0"}, {"%0@2+0 on 0.2"}},
    {"a copy back does not wait for the copy out", queues, {"on 0.1 wait s5 s3"}, {"on 0.1"}},
    {"a copy back overwrites before a reader is done",
     queues,
     {"on 0.1 wait s5 s3"},
     {"on 0.1 wait s3"}},
    {"a run does not wait for the copy back", queues, {" on 0.0 wait s7 impl"}, {" on 0.0 impl"}},
    {"a wait for a later step", queues, {"on 0.0 wait s7 impl"}, {"on 0.0 wait s9 impl"}},
    {"a queue that is not there", queues, {"%0@2+0 on 0.2 wait s0"}, {"%0@2+0 on 1.2 wait s0"}},
    {"a copy of one value into another",
     queues,
     {"s3 copy %0@1+0 -> %0@2+0"},
     {"s3 copy %0@1+0 -> %1@2+0"}},
    {"a copy onto itself", queues, {"s3 copy %0@1+0 -> %0@2+0"}, {"s3 copy %0@1+0 -> %0@1+0"}},
    /* devices */
    {"a run reaches into another device",
     devices2,
     {"(%3@2+0) -> (%4@2+0)"},
     {"(%3@1+384) -> (%4@2+0)"}},
    {"no wait between devices", devices2, {" on 1.0 wait s3 impl"}, {" on 1.0 impl"}},
    {"no wait for what comes back", devices2, {" on 0.0 wait s5 impl"}, {" on 0.0 impl"}},
    {"overwrites what another device still reads",
     devices2,
     {"on 0.0 wait s5 impl"},
     {"on 0.0 wait s2 impl"}},
    {"a plan for more devices than there are",
     plain,
     {"memory 0"},
     {"device 1 align 64 name fake:1\nmemory 0"}},
};

/* Rules that other rules would often catch later: with the message. */
static const struct {
    corruption what;
    const char *says;
} named[] = {
    {{"a whole value that moves", plain, {"%1@1+256"}, {"%1@1+256+64"}}, "moves a whole value"},
    {{"a slice of other rows than the block's",
      sliced,
      {"%1@1+256 rows 0:0:3 on"},
      {"%1@1+256 rows 0:0:2 on"}},
     "slices by other rows"},
    {{"an update that reads a copy", plain, {"(%2@state %8"}, {"(%2@1+448 %8"}}, "updates a copy"},
    {{"a copy into the state",
      plain,
      {"output 0"},
      {"s9 copy %2@state -> %2@state on 0.0\noutput 0"}},
     "writes a variable"},
    {{"a copy by a device that has neither end",
      devices2,
      {"-> %3@2+0 on 0.2"},
      {"-> %3@1+448 on 1.2"}},
     "another device"},
    {{"a feed of another input",
      plain,
      {"s3 feed 1 -> %1@1+256 on 0.0 name t"},
      {"s3 feed 0 -> %1@1+256 on 0.0 name x"}},
     "feeds something else"},
    {{"a copy of other rows",
      queues,
      {"s3 copy %0@1+0 -> %0@2+0"},
      {"s3 copy %0@1+0 -> %0@2+0 rows 0:0:8"}},
     "copies into something else"},
    {{"a copy partly onto itself",
      queues,
      {"s3 copy %0@1+0 -> %0@2+0"},
      {"s3 copy %0@1+0 -> %0@1+64"}},
     "copies onto itself"},
    {{"a wait for itself", queues, {"on 0.0 wait s7 impl"}, {"on 0.0 wait s8 impl"}},
     "waits for a later step"},
    {{"a device that is not there", queues, {"%0@2+0 on 0.2 wait s0"}, {"%0@2+0 on 3.2 wait s0"}},
     "is on no queue"},
    {{"an end inside a block", sliced, {"s8 end\ns9", "s10 run"}, {"s8", "s9 run"}},
     "inside a block"},
    {{"a peak behind the end", plain, {"peak s0"}, {"peak s9"}}, "before the peak"},
};

/* The caller frees it. */
static char *replace_all(const char *text, const char *from, const char *to) {
    const size_t n = strlen(text), n_from = strlen(from), n_to = strlen(to);
    char *out = malloc((n + 1) * (n_to + 1)), *at = out;
    while (*text) {
        if (strncmp(text, from, n_from) != 0) {
            *at++ = *text++;
            continue;
        }
        memcpy(at, to, n_to);
        at += n_to;
        text += n_from;
    }
    *at = '\0';
    return out;
}

static void expect_caught(const world *w, const corruption *c, const char *says) {
    snug_error err = {0};
    sn_plan *p = NULL;
    char *text = strdup(c->plan);
    for (int i = 0; i < 3 && c->from[i]; i++) {
        char *next = replace_all(text, c->from[i], c->to[i]);
        if (strcmp(next, text) == 0)
            fail_msg("%s: '%s' is not in the plan", c->rule, c->from[i]);
        free(text);
        text = next;
    }
    const int n_devices = strstr(c->plan, "device 1 align") ? 2 : 1;
    const snug_status st =
        sn_plan_parse(w->engine, w->graph, text, w->devices, n_devices, &p, &err);
    if (st == SNUG_OK)
        fail_msg("not caught: %s", c->rule);
    if (st != SNUG_E_INVALID)
        fail_msg("%s: refused by the reader, not by the checker: %s", c->rule, err.text);
    if (!strstr(err.text, says))
        fail_msg("%s: refused with '%s'", c->rule, err.text);
    free(text);
}

static void test_every_named_corruption_is_caught(void **state) {
    for (size_t i = 0; i < sizeof corruptions / sizeof corruptions[0]; i++)
        expect_caught(*state, &corruptions[i], "");
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        expect_caught(*state, &named[i].what, named[i].says);
}

/* What no text can say, but a plan in memory can. */
static void test_steps_with_fields_out_of_range_are_refused(void **state) {
    const world *w = *state;
    snug_error err;
    sn_plan *p;
    expect_ok(parse(w, queues, &p, &err), &err);
    for (int field = 0; field < 8; field++) {
        sn_step *run = &p->steps[4], *copy = &p->steps[3];
        const sn_step saved[2] = {*run, *copy};
        switch (field) {
        case 0:
            run->node.i = 7;
            break;
        case 1:
            run->n_in = 2;
            break;
        case 2:
            run->kind = (sn_step_kind)9;
            break;
        case 3:
            run->queue = (sn_queue)3;
            break;
        case 4:
            run->device = 9;
            break;
        case 5:
            copy->n_in = 0;
            break;
        case 6:
            copy->n_out = 2;
            break;
        default:
            run->accumulate = (sn_accumulate)9;
            break;
        }
        expect_status(sn_plan_check(p, w->devices, 1, &err), SNUG_E_INVALID, &err);
        *run = saved[0];
        *copy = saved[1];
    }
    expect_ok(sn_plan_check(p, w->devices, 1, &err), &err);
    sn_plan_destroy(p);
}

/* --- random corruptions against a symbolic run ---------------------------------------------- */
/* Every byte of memory holds a number that says how it was computed. */
typedef struct {
    const sn_plan *p;
    uint64_t *bytes[SN_MAX_MEMORIES];
    uint64_t *home[64];
} symbols;

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xff51afd7ed558ccd);
    return h ^ (h >> 33);
}

static uint64_t *place_at(symbols *s, const sn_place *p) {
    if (p->memory == SN_MEM_STATE)
        return s->home[sn_graph_value_at(s->p->graph, p->value)->var];
    return s->bytes[p->memory] + p->offset;
}

static uint64_t digest(symbols *s, const sn_place *p) {
    const uint64_t *at = place_at(s, p);
    uint64_t h = 1;
    for (size_t i = 0; i < s->p->value_bytes[p->value.i]; i++)
        h = mix(h, at[i]);
    return h;
}

static void run_symbolic(symbols *s, const sn_step *step) {
    const size_t *bytes = s->p->value_bytes;
    if (step->kind == SN_STEP_FEED) {
        for (size_t i = 0; i < bytes[step->out[0].value.i]; i++)
            place_at(s, &step->out[0])[i] = mix(1000 + step->input, i);
        return;
    }
    if (step->kind == SN_STEP_COPY) {
        memmove(place_at(s, &step->out[0]), place_at(s, &step->in[0]),
                bytes[step->out[0].value.i] * sizeof(uint64_t));
        return;
    }
    const sn_op op = sn_graph_node_at(s->p->graph, step->node)->op;
    if (sn_ops[op].inplace == SN_INPLACE_ALIAS) {
        memmove(place_at(s, &step->out[0]), place_at(s, &step->in[0]),
                bytes[step->out[0].value.i] * sizeof(uint64_t));
        return;
    }
    uint64_t h = mix(step->node.i, 77);
    for (int k = 0; k < step->n_in; k++)
        h = mix(h, digest(s, &step->in[k]));
    for (size_t i = 0; i < step->ws_bytes; i++)
        s->bytes[step->ws_memory][step->ws_offset + i] = 666;
    for (int k = 0; k < step->n_out; k++)
        for (size_t i = 0; i < bytes[step->out[k].value.i]; i++)
            place_at(s, &step->out[k])[i] = mix(mix(h, (uint64_t)k), i);
}

/* A digest of all outputs and variables after the plan. */
static uint64_t result_of(const sn_plan *p) {
    symbols s = {.p = p};
    uint64_t h = 5;
    const uint32_t n_vars = sn_graph_n_vars(p->graph);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        s.bytes[m] = calloc(p->memories[m].bytes + 1, sizeof(uint64_t));
    for (uint32_t v = 0; v < n_vars; v++) {
        const size_t n = p->value_bytes[sn_graph_var_at(p->graph, (sn_var){v})->first.i];
        s.home[v] = calloc(n + 1, sizeof(uint64_t));
        for (size_t i = 0; i < n; i++)
            s.home[v][i] = mix(2000 + v, i);
    }
    for (uint32_t i = 0; i < p->n_steps; i++)
        run_symbolic(&s, &p->steps[i]);
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        h = mix(h, digest(&s, &p->outputs[i]));
    for (uint32_t v = 0; v < n_vars; v++) {
        const sn_place home = {.value = sn_graph_var_at(p->graph, (sn_var){v})->first, .rows = -1};
        h = mix(h, digest(&s, &home));
        free(s.home[v]);
    }
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        free(s.bytes[m]);
    return h;
}

static uint64_t random_state;
static uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

/* Changes one thing of the plan and says how to undo it: swapped steps, a moved place, a node run
 * instead of another, a moved workspace. */
static void corrupt(sn_plan *p, sn_step *saved, sn_place *place, uint32_t *at) {
    const uint32_t i = draw(p->n_steps), j = draw(p->n_steps);
    sn_step *s = &p->steps[i];
    saved[0] = *s;
    saved[1] = p->steps[j];
    at[0] = i;
    at[1] = j;
    const uint32_t kind = draw(5);
    if (kind == 0) {
        p->steps[i] = saved[1];
        p->steps[j] = saved[0];
        return;
    }
    if (kind == 1) {
        p->steps[i] = saved[1]; /* one step lost, one run twice */
        return;
    }
    if (kind == 2 && s->ws_bytes > 0) {
        s->ws_offset = 64 * (size_t)draw((uint32_t)(p->memories[1].bytes / 64) + 1);
        return;
    }
    const bool out = draw(2) == 0 || s->n_in == 0;
    const int n = out ? s->n_out : s->n_in;
    if (n == 0)
        return;
    memcpy(place, out ? s->out : s->in, (size_t)n * sizeof *place);
    const int k = (int)draw((uint32_t)n);
    place[k].offset = 64 * (size_t)draw((uint32_t)(p->memories[1].bytes / 64) + 1);
    if (draw(8) == 0)
        place[k].memory = draw(2);
    if (out)
        s->out = place;
    else
        s->in = place;
}

static void test_plans_accepted_after_random_corruption_compute_the_same(void **state) {
    world *w = *state;
    const sn_plan_options options = {.devices = w->devices, .n_devices = 1};
    int caught = 0, accepted = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        snug_error err;
        sn_graph *g;
        sn_plan *p;
        expect_ok(sn_random_graph(w->engine, seed, 5 + (int)(seed % 40), &g, &err), &err);
        expect_ok(sn_plan_build(w->engine, g, &options, &p, &err), &err);
        const uint64_t wanted = result_of(p);
        random_state = seed;
        for (int i = 0; i < 100 && p->n_steps > 0 && sn_graph_n_vars(g) < 64; i++) {
            sn_step saved[2];
            sn_place place[SN_MAX_IN];
            uint32_t at[2];
            corrupt(p, saved, place, at);
            if (sn_plan_check(p, w->devices, 1, &err) != SNUG_OK) {
                caught++;
            } else {
                accepted++;
                assert_true(result_of(p) == wanted);
            }
            p->steps[at[0]] = saved[0];
            p->steps[at[1]] = saved[1];
        }
        sn_plan_destroy(p);
        sn_graph_destroy(g);
    }
    assert_true(caught > 2000);
    assert_true(accepted > 100);
}

/* --- every number of the hand-written plans changed
 * ----------------------------------------------- */
/* Rows of a value as one step sees them. */
typedef struct {
    uint64_t *at;
    int64_t n;
    size_t row_bytes;
} rows_seen;

static rows_seen see_rows(symbols *s, const sn_place *p, const sn_step *block, int64_t iteration) {
    const snug_type *type = sn_graph_type(s->p->graph, p->value);
    const size_t bytes = s->p->value_bytes[p->value.i];
    rows_seen seen = {place_at(s, p) + (size_t)iteration * p->stride, type->dims[0],
                      bytes / (size_t)type->dims[0]};
    if (p->rows < 0)
        return seen;
    if (p->axis == 1) {
        assert_int_equal(p->rows, type->dims[1]); /* all columns: the whole value */
        return seen;
    }
    const bool is_last = block && iteration == block->repeat - 1;
    seen.n = is_last ? p->rows / block->rows * block->last : p->rows;
    return seen;
}

static uint64_t digest_row(const rows_seen *seen, int64_t row) {
    uint64_t h = 3;
    for (size_t i = 0; i < seen->row_bytes; i++)
        h = mix(h, seen->at[(size_t)row * seen->row_bytes + i]);
    return h;
}

/* Nodes 0 to 3: each row from the same rows of the inputs; the weight is read whole. */
static void run_map(symbols *s, const sn_step *step, const sn_step *block, int64_t iteration) {
    const rows_seen a = see_rows(s, &step->in[0], block, iteration);
    const rows_seen out = see_rows(s, &step->out[0], block, iteration);
    for (int64_t r = 0; r < out.n; r++) {
        uint64_t h = mix(step->node.i, digest_row(&a, r));
        if (step->node.i == 0)
            h = mix(h, digest(s, &step->in[1]));
        if (step->node.i >= 2) {
            const rows_seen b = see_rows(s, &step->in[1], block, iteration);
            h = mix(h, digest_row(&b, r));
        }
        for (size_t i = 0; i < out.row_bytes; i++)
            out.at[(size_t)r * out.row_bytes + i] = mix(h, i);
    }
}

/* Node 4: a sum over rows, in any number of parts. */
static void run_sum(symbols *s, const sn_step *step, const sn_step *block, int64_t iteration) {
    const rows_seen x = see_rows(s, &step->in[0], block, iteration);
    const rows_seen g = see_rows(s, &step->in[1], block, iteration);
    const bool adds =
        step->accumulate == SN_ACC_ADD || (step->accumulate == SN_ACC_ADD_LATER && iteration > 0);
    uint64_t *out = place_at(s, &step->out[0]);
    for (size_t i = 0; i < 48; i++) {
        uint64_t sum = adds ? out[i] : 0;
        for (int64_t r = 0; r < x.n; r++)
            sum += mix(mix(digest_row(&x, r), digest_row(&g, r)), i);
        out[i] = sum;
    }
}

/* Runs a step of the hand-written graph on what its places hold, in the order of the list. */
static void run_by_rows(symbols *s, const sn_step *step, const sn_step *block, int64_t iteration) {
    if (step->kind == SN_STEP_FEED) {
        const sn_place *p = &step->out[0];
        const rows_seen out = see_rows(s, p, block, iteration);
        const int64_t first = p->rows < 0 ? 0 : p->first + iteration * p->rows;
        for (size_t i = 0; i < (size_t)out.n * out.row_bytes; i++)
            out.at[i] = mix(1000 + step->input, (size_t)first * out.row_bytes + i);
        return;
    }
    for (size_t i = 0; i < step->ws_bytes; i++)
        s->bytes[step->ws_memory][step->ws_offset + i] = 666;
    if (step->kind == SN_STEP_RUN && step->node.i < 4)
        run_map(s, step, block, iteration);
    else if (step->kind == SN_STEP_RUN && step->node.i == 4)
        run_sum(s, step, block, iteration);
    else if (step->kind == SN_STEP_RUN && step->node.i == 6)
        run_symbolic(s, step);
    else { /* a copy, or the alias */
        const rows_seen from = see_rows(s, &step->in[0], block, iteration);
        memmove(see_rows(s, &step->out[0], block, iteration).at, from.at,
                (size_t)from.n * from.row_bytes * sizeof(uint64_t));
    }
}

static uint64_t result_by_rows(const sn_plan *p) {
    symbols s = {.p = p};
    uint64_t *w = s.home[0] = calloc(48, sizeof *w);
    const sn_step *block = NULL;
    uint32_t first = 0;
    int64_t iteration = 0;
    for (size_t i = 0; i < 48; i++)
        w[i] = mix(2000, i);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        s.bytes[m] = calloc(p->memories[m].bytes + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind == SN_STEP_REPEAT) {
            block = &p->steps[i];
            first = i;
        } else if (p->steps[i].kind != SN_STEP_END) {
            run_by_rows(&s, &p->steps[i], block, iteration);
        } else if (++iteration < block->repeat) {
            i = first;
        } else {
            block = NULL;
            iteration = 0;
        }
    }
    uint64_t h = digest(&s, &p->outputs[0]);
    for (size_t i = 0; i < 48; i++)
        h = mix(h, w[i]);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        free(s.bytes[m]);
    free(w);
    return h;
}

/* The plan with the number at `at` replaced; accepted only when it computes the same. */
static bool try_number(const world *w, const char *plan, const char *at, int64_t number,
                       uint64_t wanted) {
    char text[4096];
    snug_error err;
    sn_plan *p;
    const size_t digits = strspn(at, "0123456789");
    snprintf(text, sizeof text, "%.*s%lld%s", (int)(at - plan), plan, (long long)number,
             at + digits);
    const int n_devices = strstr(plan, "device 1 align") ? 2 : 1;
    if (number < 0 ||
        sn_plan_parse(w->engine, w->graph, text, w->devices, n_devices, &p, &err) != SNUG_OK)
        return false;
    if (result_by_rows(p) != wanted)
        fail_msg("accepted, but computes something else:\n%s", text);
    sn_plan_destroy(p);
    return true;
}

static void test_plans_accepted_with_any_number_changed_compute_the_same(void **state) {
    static const char *const plans[] = {plain, sliced, two_slices, queues, devices2};
    static const int64_t changes[] = {-64, -36, -16, -12, -3, -2, -1,  1,
                                      2,   3,   12,  16,  36, 64, 128, 256};
    const world *w = *state;
    snug_error err;
    sn_plan *p;
    expect_ok(parse(w, plain, &p, &err), &err);
    const uint64_t wanted = result_by_rows(p);
    sn_plan_destroy(p);
    int tried = 0, accepted = 0;
    for (size_t k = 0; k < sizeof plans / sizeof plans[0]; k++) {
        assert_true(try_number(w, plans[k], strstr(plans[k], "1\n"), 1, wanted));
        for (const char *at = strstr(plans[k], "\ns0 "); *at; at++) {
            if (*at < '0' || *at > '9')
                continue;
            for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++, tried++)
                accepted += try_number(w, plans[k], at, atoll(at) + changes[c], wanted);
            at += strspn(at, "0123456789") - 1;
        }
    }
    assert_true(tried > 5000);
    assert_true(accepted > 0 && accepted < tried / 20); /* a workspace may move a little */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_plan_is_accepted),
        cmocka_unit_test(test_a_plan_with_a_repeat_block_is_accepted),
        cmocka_unit_test(test_slices_without_a_block_are_accepted),
        cmocka_unit_test(test_a_plan_with_queues_and_a_spill_is_accepted),
        cmocka_unit_test(test_two_devices_and_a_second_run_are_accepted),
        cmocka_unit_test(test_every_named_corruption_is_caught),
        cmocka_unit_test(test_steps_with_fields_out_of_range_are_refused),
        cmocka_unit_test(test_plans_accepted_after_random_corruption_compute_the_same),
        cmocka_unit_test(test_plans_accepted_with_any_number_changed_compute_the_same),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
