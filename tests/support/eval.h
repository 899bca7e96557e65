/* eval.h: the numbers of a graph, by the naive executor with reference kernels, as doubles; inputs are made from their place, so
 * that two graphs with the same inputs see the same numbers. */
#ifndef SN_TESTS_EVAL_H
#define SN_TESTS_EVAL_H

#include "graph/graph.h"

/* One array per input or output of a graph; freed together. */
typedef struct {
    uint32_t n;
    double **data;
    size_t *count;
} sn_test_arrays;

/* Inputs: floats in [low, high), integers 0, 1, 2, 0, 1, ..., booleans mixed. */
sn_test_arrays sn_test_inputs(const sn_graph *g, double low, double high);
/* Runs the graph on these inputs; variables hold their recipes' numbers. */
sn_test_arrays sn_test_eval(snug_engine *e, const sn_graph *g, const sn_test_arrays *inputs);
void sn_test_arrays_clear(sn_test_arrays *a);

#endif
