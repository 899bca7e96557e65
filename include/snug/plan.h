/* plan.h: what running a graph will use, to the byte, before anything is allocated for it.
 *
 *     snug_plan *plan;
 *     snug_plan_summary sum;
 *     snug_plan_build(engine, graph, NULL, &plan, &err);
 *     snug_plan_summarise(plan, &sum);
 *     printf("arena %zu bytes, %.2f %% above the bound\n", sum.arena_bytes, 100 * sum.gap);
 *     snug_plan_print(plan, &writer, &err);        // one line per step
 *     snug_plan_destroy(plan);
 *
 * The same graph, machine and thread count give the same plan. Models have snug_model_plan
 * (train.h); a session (run.h) plans by itself. */
#ifndef SNUG_PLAN_H
#define SNUG_PLAN_H

#include <snug/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_plan snug_plan;

/* All zero (or NULL): no limit. */
typedef struct {
    /* For arena and state together: the batch is sliced and values are computed again to stay
     * within it. SNUG_E_BUDGET names the smallest that would do. */
    size_t budget_bytes;
} snug_plan_options;

typedef struct {
    size_t arena_bytes;       /* transient memory, mapped before the first run */
    size_t state_bytes;       /* variables */
    size_t lower_bound_bytes; /* no packing of these steps can be smaller than this */
    double gap;               /* arena / lower bound - 1 */
    /* Live at the fullest step; their sum is the lower bound. */
    size_t input_bytes, activation_bytes, gradient_bytes, workspace_bytes, output_bytes;
    size_t n_steps;
    size_t code_bytes;                 /* code that kernels will make */
    double flops;                      /* per run */
    int64_t slices;                    /* pieces the batch runs in; 1: whole */
    size_t recomputed;                 /* runs of operators beyond the first */
    double run_seconds, plain_seconds; /* expected: of a run, and of one without a limit */
} snug_plan_summary;

/* The graph is copied (and fused), must be concrete, and may be destroyed afterwards. */
SNUG_API SNUG_CHECKED snug_status snug_plan_build(snug_engine *engine, const snug_graph *graph,
                                                  const snug_plan_options *options, snug_plan **out,
                                                  snug_error *err);
SNUG_API void snug_plan_destroy(snug_plan *plan); /* NULL is legal */
SNUG_API void snug_plan_summarise(const snug_plan *plan, snug_plan_summary *out);
SNUG_API SNUG_CHECKED snug_status snug_plan_print(const snug_plan *plan, const snug_writer *out,
                                                  snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
