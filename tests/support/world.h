/* world.h: an engine, a graph, its state and one executor, for tests that run things. Every call
 * asserts that it succeeds unless its name says otherwise.
 *
 *     world w;
 *     world_open(&w);
 *     world_regression(&w, 8);                // or build w.graph yourself
 *     world_plan(&w);  world_prepare(&w, NULL);
 *     world_run(&w);
 *     world_close(&w);                        // asserts that every byte came back */
#ifndef SN_TESTS_WORLD_H
#define SN_TESTS_WORLD_H

#include "exec/exec.h"
#include "graph/build.h"

#define WORLD_MAX_INPUTS 8

/* An array that is fed row by row. */
typedef struct {
    const void *data;
    size_t row_bytes;
    int64_t n_fills;
    int64_t fail_at; /* fill number that fails, or -1 */
} world_array;

typedef struct {
    snug_engine *engine;
    size_t empty_bytes; /* held by the engine alone */
    sn_graph *graph;
    sn_state *state;
    sn_plan *plan;
    sn_executor *executor;
    sn_session *session;
    sn_cpu_device device;
    sn_cpu_device second; /* the host again, posing as another device */
    int n_devices;        /* 1 unless a test says 2 */
    world_array arrays[WORLD_MAX_INPUTS];
    snug_error err;
} world;

void world_open(world *w);
void world_close(world *w);
void world_ok(const world *w, snug_status status); /* prints the error's text on failure */

snug_type world_type(snug_dtype dtype, int rank, const int64_t *dims);
sn_value world_input(world *w, const char *name, const snug_type *type, const void *data);
sn_value world_variable(world *w, const char *name, const snug_type *type, double value);

/* loss = mean((x w + b - t)^2) over `rows` rows of 3 features with sgd steps for w and b
 * ("learning_rate", 0.1). */
void world_regression(world *w, int64_t rows);

void world_state(world *w); /* homes from the graph's variables */
void world_plan(world *w);
snug_status world_try_parse(world *w, const char *text);
void world_parse(world *w, const char *text);
snug_status world_try_prepare(world *w, const sn_executor_options *o);
void world_prepare(world *w,
                   const sn_executor_options *o); /* state, executor, session, inputs bound */
void world_unprepare(world *w);                   /* executor and state gone; plan and graph stay */
void world_run(world *w);
/* The naive run with the fast kernels; outputs are the caller's. */
void world_naive(world *w, sn_state *state, snug_view *outputs, bool write_state);
sn_input_binding world_binding(world *w, uint32_t input);

/* n_runs of the session, and of the naive executor from the recipes on; after each, outputs (at most
 * 4 of 64 KiB) and variables are equal in every bit. Once per prepared state. */
void world_run_and_compare(world *w, int n_runs);

float world_scalar(const world *w, const char *output);
/* Plans the fused graph, runs it `steps` times, and fails unless its output "loss" falls below
 * `part` of what it was. */
void world_falls(world *w, int steps, float part);
/* Of all homes, allocated or not. */
size_t world_state_bytes(const sn_state *state);
/* A copy of all variables' bytes, one behind the other; the caller frees it. */
unsigned char *world_variables(const world *w, sn_state *state, size_t *bytes);

#endif
