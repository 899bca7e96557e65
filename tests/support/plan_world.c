/* plan_world.c: plans written by hand, and the graph they are of: x times w, relu, its gradient, a
 * step of sgd. */
#include "support/plan_world.h"

#include "graph/build.h"

#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "snug plan 1\n"                                                                                \
    "device 0 align 64 name fake:0\n"                                                              \
    "memory 0 device 0 bytes 48 used 48 bound 48 name state\n"
#define TOTAL "total flops 0 code 0 peak s0\n"

const char plan_plain[] =
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
const char plan_sliced[] = HEAD
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
const char plan_two_slices[] =
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

/* Eight iterations of a row each, in two blocks: x and t are whole and read row by row, y, e and g
 * are made so, in buffers they fill row by row; z has a slot, and the rows of t come on the copy-in
 * queue. */
const char plan_rows[] = HEAD
    "memory 1 device 0 bytes 768 used 688 bound 0 name arena\n" TOTAL
    "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
    "s1 repeat 8 rows 1 last 1\n"
    "s2 run n0 matmul v0 (%0@1+0+16 rows 0:0:1 %2@state) -> (%3@1+576 rows 0:0:1) ws 1+512:64 on "
    "0.0 impl fake\n"
    "s3 run n1 relu v0 (%3@1+576 rows 0:0:1) -> (%4@1+128+12 rows 0:0:1) on 0.0 impl fake\n"
    "s4 feed 1 -> %1@1+256+12 rows 0:0:1 on 0.1 name t\n"
    "s5 end\n"
    "s6 repeat 8 rows 1 last 1\n"
    "s7 run n2 sub v0 (%4@1+128+12 rows 0:0:1 %1@1+256+12 rows 0:0:1) -> (%5@1+384+12 rows 0:0:1) "
    "on 0.0 impl fake\n"
    "s8 run n3 relu_grad v0 (%5@1+384+12 rows 0:0:1 %4@1+128+12 rows 0:0:1) -> (%6@1+384+12 rows "
    "0:0:1) on 0.0 impl fake\n"
    "s9 run n4 matmul v0 (%0@1+0+16 rows 0:0:1 %6@1+384+12 rows 0:0:1) -> (%7@1+640) ws 1+512:64 "
    "on 0.0 acc add_later impl fake\n"
    "s10 end\n"
    "s11 run n5 check_finite v0 (%7@1+640) -> (%8@1+640) on 0.0 impl fake\n"
    "s12 run n6 sgd v0 (%2@state %8@1+640) -> (%9@state) on 0.0 impl fake\n"
    "output 0 %4@1+128\n"
    "end plan\n";

/* The copy-in queue brings x and t; x is sent away to a second memory and brought back. */
const char plan_queues[] = HEAD
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
const char plan_devices2[] =
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

static void build_graph(plan_world *w) {
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

int plan_world_open(void **state) {
    plan_world *w = calloc(1, sizeof *w);
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

int plan_world_close(void **state) {
    plan_world *w = *state;
    sn_graph_destroy(w->graph);
    sn_test_engine_end(w->engine);
    free(w);
    return 0;
}

snug_status plan_world_parse(const plan_world *w, const char *text, sn_plan **out,
                             snug_error *err) {
    const int n_devices = strstr(text, "device 1 align") ? 2 : 1;
    return sn_plan_parse(w->engine, w->graph, text, w->devices, n_devices, out, err);
}

static sn_value add_input(sn_graph *g, const char *name, int64_t rows, int64_t columns) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {rows, columns}};
    snug_error err;
    sn_value v;
    expect_ok(sn_graph_input(g, name, &type, &v, &err), &err);
    return v;
}

static sn_value add_weight(sn_graph *g, const char *name, int64_t rows, int64_t columns) {
    const sn_variable var = {.name = name,
                             .type = {.dtype = SNUG_F32, .rank = 2, .dims = {rows, columns}},
                             .home = sn_graph_n_vars(g),
                             .trainable = true};
    snug_error err;
    sn_value v;
    expect_ok(sn_graph_variable(g, &var, &v, &err), &err);
    return v;
}

static void descend(sn_builder *b, sn_value loss, const sn_value *w, int n) {
    sn_value grads[2];
    snug_error err;
    expect_ok(sn_builder_done(b, &err), &err);
    expect_ok(sn_graph_gradients(b->graph, loss, w, n, grads, &err), &err);
    for (int i = 0; i < n; i++) {
        const sn_value in[2] = {w[i], sn_build_check_finite(b, grads[i])};
        sn_attrs a;
        sn_attrs_default(SN_OP_sgd, &a);
        a.sgd.rate = sn_build_param(b, "", 0.1).i;
        a.sgd.momentum = sn_build_param(b, "", 0).i;
        (void)sn_build(b, SN_OP_sgd, &a, in, 2);
    }
}

sn_graph *plan_world_network(snug_engine *e, int64_t rows) {
    sn_graph *g;
    snug_error err;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    const sn_value x = add_input(g, "x", rows, 6), t = add_input(g, "t", rows, 2);
    const sn_value w[2] = {add_weight(g, "w", 6, 5), add_weight(g, "v", 5, 2)};
    sn_builder b = sn_builder_on(g);
    const sn_value h = sn_build_tanh(&b, sn_build_matmul(&b, x, w[0], SN_NO_VALUE));
    const sn_value c = sn_build_sub(&b, h, sn_build_mean(&b, h, 1, true));
    const sn_value v = sn_build_mean(&b, sn_build_square(&b, c), 1, true);
    const sn_value z = sn_build_matmul(&b, sn_build_mul(&b, c, v), w[1], SN_NO_VALUE);
    const sn_value finite = sn_build_check_finite(&b, z);
    const sn_value loss =
        sn_build_mean(&b, sn_build_square(&b, sn_build_sub(&b, finite, t)), 0, false);
    descend(&b, loss, w, 2);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "z", z, &err), &err);
    expect_ok(sn_graph_output(g, "loss", loss, &err), &err);
    return g;
}
