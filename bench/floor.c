/* floor.c: the smallest arena a training step can be planned into, beside what the graph alone says
 * that it must have (support/plan_bound.h), for bench/budget.py.
 *
 *     bench_floor MODEL.json BATCH LOSS [EFFORT]
 *         ->  {"bound_bytes": ..., "floor_bytes": ..., "ratio": ..., ...}
 *
 * Only transient bytes count here: not the state, and not the steps of the plan. */
#include "plan/plan.h"
#include "support/plan_bound.h"
#include "train/model.h"

#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void print(const sn_plan *p, size_t bound, double seconds) {
    const size_t bytes = p->memories[SN_MEM_FIRST_ARENA].bytes;
    const sn_step *const peak = &p->steps[p->peak_step];
    const sn_node_info *const n =
        peak->kind == SN_STEP_RUN ? sn_graph_node_at(p->graph, peak->node) : NULL;
    printf("{\"bound_bytes\": %zu, \"floor_bytes\": %zu, \"ratio\": %.4f, \"slices\": %lld, "
           "\"steps\": %u, \"slowdown\": %.2f, \"peak\": \"%s %s\", \"seconds\": %.2f}\n",
           bound, bytes, (double)bytes / (double)bound, (long long)p->slices, p->n_steps,
           p->seconds / p->plain_seconds, n ? sn_graph_owner_name(p->graph, n->owner) : "",
           n ? sn_ops[n->op].name : "", seconds);
}

static snug_status measure(snug_model *m, int64_t batch, uint32_t effort, snug_error *err) {
    const snug_plan_request request = {.batch = batch, .train = 1};
    snug_model_plan_info info;
    sn_plan_floor floor = {0};
    sn_plan_options o = {
        .devices = &m->target, .n_devices = 1, .arena_bytes = 1, .effort = effort, .floor = &floor};
    sn_plan *p;
    size_t bound;
    SNUG_TRY(snug_model_plan(m, &request, &info, err));
    /* updates fused with gradients are for steps without slices */
    const sn_graph *const g = m->looked.graph;
    SNUG_TRY(sn_plan_lower_bound(m->engine, g, m->target, &bound, err));
    const clock_t start = clock();
    const snug_status st = sn_plan_build(m->engine, g, &o, &p, err);
    if (st != SNUG_E_BUDGET)
        return st; /* a step without an arena */
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    o.arena_bytes = 0;
    o.floor = NULL;
    o.at = &floor;
    SNUG_TRY(sn_plan_build(m->engine, g, &o, &p, err));
    print(p, bound, seconds);
    sn_plan_destroy(p);
    return SNUG_OK;
}

static snug_status run(snug_engine *e, char **argv, uint32_t effort, snug_error *err) {
    const snug_compile compile = {.optimizer = "adam", .loss = argv[3], .metrics = ""};
    snug_model *m = NULL;
    snug_status st = snug_model_load(e, argv[1], &m, err);
    if (st == SNUG_OK)
        st = snug_model_compile(m, &compile, err);
    if (st == SNUG_OK)
        st = measure(m, atoll(argv[2]), effort, err);
    snug_model_destroy(m);
    return st;
}

int main(int argc, char **argv) {
    snug_engine *e = NULL;
    snug_error err;
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: bench_floor MODEL.json BATCH LOSS [EFFORT]\n");
        return 2;
    }
    snug_status status = snug_engine_create(NULL, &e, &err);
    if (status == SNUG_OK)
        status = run(e, argv, argc > 4 ? (uint32_t)atoi(argv[4]) : 1, &err);
    snug_engine_destroy(e);
    if (status != SNUG_OK)
        fprintf(stderr, "%s\n", err.text);
    return status == SNUG_OK ? 0 : 1;
}
