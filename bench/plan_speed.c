/* plan_speed.c: how long planning and checking takes, in ms per 1,000 nodes (least of several
 * runs): of random graphs on a device without kernels, of a network there in 4, 64 and 4,096
 * slices, which should cost the same, and of a step of a small network on the CPU. Then of
 * recordings of that many nodes, in ms, without a limit and within parts of what that takes.
 *
 *     bench_plan_speed [nodes] [seeds] */
#include "kernels/cpu/cpu.h"
#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <math.h>
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
    for (int run = 0; run < 7; run++) {
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

/* --- recordings ------------------------------------------------------------------------------- */
/* a = a + 1.5, again and again. */
static snug_status build_chain(snug_graph *g, int n_nodes, snug_error *err) {
    const snug_type one = {SNUG_F32, 1, {1}};
    snug_value y, step;
    SNUG_TRY(snug_graph_input(g, "a", &one, &y, err));
    SNUG_TRY(snug_graph_input(g, "step", &one, &step, err));
    for (int i = 0; i < n_nodes; i++)
        SNUG_TRY(snug_graph_op(g, "add", "", (snug_value[]){y, step}, 2, &y, 1, err));
    return snug_graph_output(g, "y", y, err);
}

/* Dense layers of 100 units with a relu each, their gradients and plain descent: about 8 nodes a
 * layer. */
static snug_status build_layers(snug_graph *g, int n_nodes, int64_t n_rows, snug_error *err) {
    enum { MOST = 8000, UNITS = 100 };
    const snug_type rows = {SNUG_F32, 2, {n_rows, UNITS}}, weights = {SNUG_F32, 2, {UNITS, UNITS}};
    static snug_value w[MOST], dw[MOST];
    const int n = n_nodes / 8 < MOST ? n_nodes / 8 : MOST;
    snug_value y, loss, next;
    SNUG_TRY(snug_graph_input(g, "x", &rows, &y, err));
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        SNUG_TRY(snug_graph_variable(g, name, &weights, NULL, &w[i], err));
        SNUG_TRY(snug_graph_op(g, "matmul", "", (snug_value[]){y, w[i]}, 2, &y, 1, err));
        SNUG_TRY(snug_graph_op(g, "relu", "", &y, 1, &y, 1, err));
    }
    SNUG_TRY(snug_graph_op(g, "sum", "axes=0,1", &y, 1, &loss, 1, err));
    SNUG_TRY(snug_graph_gradients(g, loss, w, (size_t)n, dw, err));
    for (int i = 0; i < n; i++)
        SNUG_TRY(snug_graph_op(g, "sgd", "rate=0.1 momentum=0", (snug_value[]){w[i], dw[i]}, 2,
                               &next, 1, err));
    return snug_graph_output(g, "loss", loss, err);
}

static snug_status build_dense(snug_graph *g, int n_nodes, snug_error *err) {
    return build_layers(g, n_nodes, 32, err);
}

/* Plans without a limit, then within a half, a quarter and a tenth of what that takes. */
static int measure_limits(snug_engine *e, const char *what, const sn_graph *g,
                          const sn_device *device) {
    static const size_t parts[] = {0, 2, 4, 10};
    size_t whole = 0;
    printf("%s, %u nodes:", what, sn_graph_n_nodes(g));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const sn_plan_options o = {.devices = &device,
                                   .n_devices = 1,
                                   .arena_bytes = parts[i] > 0 ? whole / parts[i] + 1 : 0};
        snug_error err;
        sn_plan *p = NULL;
        const double start = now_ms();
        const snug_status status = sn_plan_build(e, g, &o, &p, &err);
        if (status != SNUG_OK && (status != SNUG_E_BUDGET || parts[i] == 0))
            return fail(&err);
        if (parts[i] == 0)
            whole = p->memories[SN_MEM_FIRST_ARENA].bytes;
        if (parts[i] == 0)
            printf(" %.0f ms without a limit", now_ms() - start);
        else
            printf("; %.0f in 1/%zu%s", now_ms() - start, parts[i], p ? "" : " (refused)");
        fflush(stdout);
        sn_plan_destroy(p);
    }
    printf("\n");
    return 0;
}

static int measure_recording(snug_engine *e, const char *what, int n_nodes,
                             snug_status (*build)(snug_graph *g, int n_nodes, snug_error *err)) {
    sn_cpu_device device;
    snug_graph *g;
    snug_error err;
    if (snug_graph_create(e, &g, &err) != SNUG_OK || build(g, n_nodes, &err) != SNUG_OK)
        return fail(&err);
    sn_cpu_device_of(e, &device);
    const int failed = measure_limits(e, what, g, &device.device);
    snug_graph_destroy(g);
    return failed;
}

/* --- slices ----------------------------------------------------------------------------------- */
/* Least of several runs, in ms per 1,000 nodes. */
typedef struct {
    double plan_ms, check_ms; /* plan: with its check */
    sn_plan_work work;
} sliced_cost;

static snug_status measure_sliced(snug_engine *e, const sn_graph *g, int64_t slices,
                                  sliced_cost *out, snug_error *err) {
    const double per_1000 = 1000.0 / (double)sn_graph_n_nodes(g);
    sn_fake_device device;
    sn_fake_device_init(&device, "fake:0");
    device.workspace_bytes[SN_OP_matmul] = 1000;
    const sn_device *devices[1] = {&device.device};
    const sn_plan_options o = {.devices = devices, .n_devices = 1, .slices = slices};
    *out = (sliced_cost){.plan_ms = 1e30, .check_ms = 1e30};
    for (int run = 0; run < 12; run++) {
        sn_plan *p;
        const double start = now_ms();
        SNUG_TRY(sn_plan_build(e, g, &o, &p, err));
        const double planned = now_ms();
        const snug_status status = sn_plan_check_work(p, devices, 1, &out->work, err);
        const double checked = now_ms();
        sn_plan_destroy(p);
        SNUG_TRY(status);
        out->plan_ms = fmin(out->plan_ms, (planned - start) * per_1000);
        out->check_ms = fmin(out->check_ms, (checked - planned) * per_1000);
    }
    return SNUG_OK;
}

/* 4,096 rows in so many pieces. */
static int measure_slices(snug_engine *e, int n_nodes) {
    static const int64_t slices[] = {4, 64, 4096};
    snug_graph *g;
    snug_error err;
    if (snug_graph_create(e, &g, &err) != SNUG_OK ||
        build_layers(g, n_nodes, 4096, &err) != SNUG_OK)
        return fail(&err);
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++) {
        sliced_cost cost;
        if (measure_sliced(e, g, slices[i], &cost, &err) != SNUG_OK)
            return fail(&err);
        printf("dense layers, %u nodes, in %4d slices: plan and check %.2f ms per 1,000 nodes "
               "(check %.2f: %llu steps replayed, %llu spans)\n",
               sn_graph_n_nodes(g), (int)slices[i], cost.plan_ms, cost.check_ms,
               (unsigned long long)cost.work.steps, (unsigned long long)cost.work.spans);
    }
    snug_graph_destroy(g);
    return 0;
}

static int measure_random(snug_engine *e, int n_nodes) {
    sn_cpu_device device;
    sn_graph *g;
    snug_error err;
    if (sn_random_graph(e, 1, n_nodes, &g, &err) != SNUG_OK)
        return fail(&err);
    sn_cpu_device_of(e, &device);
    const int failed = measure_limits(e, "random operators", g, &device.device);
    sn_graph_destroy(g);
    return failed;
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
    const int failed = measure_mlp(e) || measure_slices(e, n_nodes) ||
                       measure_recording(e, "a chain", n_nodes, build_chain) ||
                       measure_recording(e, "dense layers", n_nodes, build_dense) ||
                       measure_random(e, n_nodes);
    snug_engine_destroy(e);
    return failed;
}
