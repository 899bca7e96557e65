/* plan_speed.c: how long planning and checking takes, in ms per 1,000 nodes (least of several
 * runs): of random graphs on a device without kernels, and of a step of a small network on the CPU.
 *
 *     bench_plan_speed [nodes] [seeds]
 */
#include "kernels/cpu/cpu.h"
#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <snug/graph.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int fail(const snug_error *err) {
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

/* 784-128-64-10 with tanh, squared differences and plain descent; 32 rows. */
static snug_status build_mlp(snug_graph *g, snug_error *err) {
    static const int64_t width[] = {784, 128, 64, 10};
    const snug_type rows = {SNUG_F32, 2, {32, width[0]}}, wanted = {SNUG_F32, 2, {32, width[3]}};
    snug_value y, t, loss, w[3], dw[3], next;
    SNUG_TRY(snug_graph_input(g, "x", &rows, &y, err));
    SNUG_TRY(snug_graph_input(g, "t", &wanted, &t, err));
    for (int i = 0; i < 3; i++) {
        const snug_type type = {SNUG_F32, 2, {width[i], width[i + 1]}};
        const char name[2] = {(char)('a' + i), 0};
        SNUG_TRY(snug_graph_variable(g, name, &type, NULL, &w[i], err));
        SNUG_TRY(snug_graph_op(g, "matmul", "", (snug_value[]){y, w[i]}, 2, &y, 1, err));
        SNUG_TRY(snug_graph_op(g, "tanh", "", &y, 1, &y, 1, err));
    }
    SNUG_TRY(snug_graph_op(g, "sub", "", (snug_value[]){y, t}, 2, &y, 1, err));
    SNUG_TRY(snug_graph_op(g, "square", "", &y, 1, &y, 1, err));
    SNUG_TRY(snug_graph_op(g, "sum", "axes=0,1", &y, 1, &loss, 1, err));
    SNUG_TRY(snug_graph_gradients(g, loss, w, 3, dw, err));
    for (int i = 0; i < 3; i++)
        SNUG_TRY(snug_graph_op(g, "sgd", "rate=0.1 momentum=0", (snug_value[]){w[i], dw[i]}, 2,
                               &next, 1, err));
    return snug_graph_output(g, "loss", loss, err);
}

static int measure_mlp(snug_engine *e) {
    sn_cpu_device device;
    snug_graph *g;
    snug_error err;
    double best = 1e30;
    if (snug_graph_create(e, &g, &err) != SNUG_OK || build_mlp(g, &err) != SNUG_OK)
        return fail(&err);
    sn_cpu_device_of(e, &device);
    const sn_device *devices[1] = {&device.device};
    for (int run = 0; run < 100; run++) {
        sn_plan *p;
        const double start = now_ms();
        const sn_plan_options options = {.devices = devices, .n_devices = 1};
        if (sn_plan_build(e, g, &options, &p, &err) != SNUG_OK)
            return fail(&err);
        best = now_ms() - start < best ? now_ms() - start : best;
        sn_plan_destroy(p);
    }
    printf("a step of a network of %u nodes: %.3f ms\n", sn_graph_n_nodes(g), best);
    snug_graph_destroy(g);
    return 0;
}

static int measure(snug_engine *e, uint64_t seed, int n_nodes, double *plan_ms, double *check_ms) {
    sn_fake_device device;
    sn_graph *g;
    snug_error err;
    sn_fake_device_init(&device, "fake:0");
    device.workspace_bytes[SN_OP_matmul] = 1000;
    const sn_device *devices[1] = {&device.device};
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    if (sn_random_graph(e, seed, n_nodes, &g, &err) != SNUG_OK)
        return fail(&err);
    const double per_1000 = 1000.0 / (double)sn_graph_n_nodes(g);
    *plan_ms = *check_ms = 1e30;
    sn_plan_memory arena = {0};
    uint32_t n_steps = 0;
    for (int run = 0; run < 5; run++) {
        sn_plan *p;
        const double start = now_ms();
        if (sn_plan_build(e, g, &options, &p, &err) != SNUG_OK)
            return fail(&err);
        const double planned = now_ms();
        if (sn_plan_check(p, devices, 1, &err) != SNUG_OK)
            return fail(&err);
        const double checked = now_ms();
        if ((planned - start) * per_1000 < *plan_ms)
            *plan_ms = (planned - start) * per_1000;
        if ((checked - planned) * per_1000 < *check_ms)
            *check_ms = (checked - planned) * per_1000;
        n_steps = p->n_steps;
        arena = p->memories[SN_MEM_FIRST_ARENA];
        sn_plan_destroy(p);
    }
    printf("seed %2u: %u nodes, %u steps, arena %zu, bound %zu, plan and check %.2f ms per 1,000 "
           "nodes (check %.2f)\n",
           (unsigned)seed, sn_graph_n_nodes(g), n_steps, arena.bytes, arena.lower_bound_bytes,
           *plan_ms, *check_ms);
    sn_graph_destroy(g);
    return 0;
}

int main(int argc, char **argv) {
    const int n_nodes = argc > 1 ? atoi(argv[1]) : 2000, n_seeds = argc > 2 ? atoi(argv[2]) : 5;
    snug_engine *e;
    snug_error err;
    double worst = 0;
    if (snug_engine_create(&(snug_engine_options){0}, &e, &err) != SNUG_OK)
        return fail(&err);
    for (int seed = 0; seed < n_seeds; seed++) {
        double plan_ms, check_ms;
        if (measure(e, (uint64_t)seed, n_nodes, &plan_ms, &check_ms) != 0)
            return 1;
        worst = plan_ms > worst ? plan_ms : worst;
    }
    printf("worst %.2f ms per 1,000 nodes\n", worst);
    const int failed = measure_mlp(e);
    snug_engine_destroy(e);
    return failed;
}
