/* step.h: a training step of two dense layers, for the targets that read plans: x[8,4] -> relu ->
 * 2 outputs, the sum of squares of what is missing to t[8,2], and sgd for both kernels. Its numbers
 * are small and whole, so that sums are exact in any order: any correct plan gives the same
 * bits. */
#ifndef SN_TESTS_FUZZ_STEP_H
#define SN_TESTS_FUZZ_STEP_H

#include "fuzz/fuzz.h"
#include "graph/graph.h"

sn_graph *fuzz_step_graph(fuzz *f);
/* Of an input's or a variable's element. */
float fuzz_step_number(uint32_t which, int64_t element);

#endif
