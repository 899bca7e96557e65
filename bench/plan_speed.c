/* plan_speed.c: how long planning and checking takes, in ms per 1,000 nodes (least of several
 * runs).
 *
 *     bench_plan_speed [nodes] [seeds]
 */
#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int fail(const snug_error *err) {
    fprintf(stderr, "%s\n", err->text);
    return 1;
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
    snug_engine_destroy(e);
    return 0;
}
